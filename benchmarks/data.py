"""Data for the benchmarks of attack and metrics: generated, or Cabspotting."""

import argparse
import math
from pathlib import Path

import numpy as np

import promesse_geo as pg

START = 1_700_000_000
LYON = 4.84, 45.76
_METRES = 111_194.93  # per degree of latitude


def add_cabspotting(parser: argparse.ArgumentParser) -> None:
    """Add arguments for the real data: the archive, or the output file of `promesse-geo prepare`."""
    parser.add_argument("--cabspotting", type=Path, help="cabspottingdata.tar.gz")
    parser.add_argument("--prepared", type=Path, help="prepared Cabspotting, as GeoParquet")


def prepared(options: argparse.Namespace) -> pg.Traces | None:
    """Read the real data, if specified."""
    if options.prepared:
        return pg.read_file(options.prepared, as_traces=True)
    if options.cabspotting:
        raw = pg.read_cabspotting(options.cabspotting, as_traces=True)
        return pg.prepare(raw, tz="America/Los_Angeles", min_days=21)
    return None


def placed(east: np.ndarray, north: np.ndarray, seconds: np.ndarray, *, traces: int = 1) -> pg.Traces:
    """Return traces of equal length, from metres around Lyon and seconds."""
    longitudes = LYON[0] + east / (_METRES * math.cos(math.radians(LYON[1])))
    times = (1e9 * seconds).astype(np.int64) + START * 1_000_000_000
    counts = np.full(traces, len(east) // traces)
    return pg.Traces.from_arrays(
        longitudes, LYON[1] + north / _METRES, times=times, users=list(range(traces)), counts=counts
    )


def _knots(length: float, rng: np.random.Generator) -> np.ndarray:
    """Return the path of a user: rows of seconds, east and north, with straight lines between them."""
    places = rng.normal(0, 4_000, (rng.integers(3, 9), 2))
    here, clock, rows = 0, 0.0, []
    while clock < length:
        rows.append((clock, *places[here]))
        clock += rng.uniform(20 * 60, 6 * 3600)
        rows.append((clock, *places[here]))
        there = (here + rng.integers(1, len(places))) % len(places)
        way = places[there] - places[here]
        took = math.hypot(*way) / rng.uniform(1.5, 15)
        aside = rng.uniform(-0.15, 0.15) * np.array([-way[1], way[0]])
        rows.append((clock + took / 2, *((places[here] + places[there]) / 2 + aside)))
        here, clock = there, clock + took
    return np.array(rows)


def commuters(traces: int, records: int, *, interval: float, seed: int = 0) -> pg.Traces:
    """Return users who stay at 3 to 8 places for 20 minutes to 6 hours, with 5 m of slowly varying error."""
    rng = np.random.default_rng(seed)
    seconds = np.cumsum(interval * rng.choice((0.9, 1.0, 1.1), (traces, records)), axis=1)
    error, errors = rng.normal(0, 5, (2, traces)), np.empty((2, traces, records))
    for i in range(records):
        errors[:, :, i] = error
        error = 0.9 * error + rng.normal(0, 5 * math.sqrt(1 - 0.9**2), (2, traces))
    for trace in range(traces):
        knots = _knots(seconds[trace, -1], rng).T
        for axis in range(2):
            errors[axis, trace] += np.interp(seconds[trace], knots[0], knots[1 + axis])
    return placed(errors[0].ravel(), errors[1].ravel(), seconds.ravel(), traces=traces)


def cloud(records: int, *, metres: float = 25.0) -> pg.Traces:
    """Return one long stay, with equal noise along both axes."""
    east, north = np.random.default_rng(0).normal(0, metres, (2, records))
    return placed(east, north, np.arange(records))


def circle(records: int, *, radius: float) -> pg.Traces:
    """Return records on a circle in random order."""
    turns = np.random.default_rng(0).uniform(0, 2 * math.pi, records)
    return placed(radius * np.cos(turns), radius * np.sin(turns), np.arange(records))


def creep(records: int, *, speed: float) -> pg.Traces:
    """Return a slow straight path with 100 records per second."""
    seconds = np.arange(records) / 100
    return placed(speed * seconds, np.zeros(records), seconds)
