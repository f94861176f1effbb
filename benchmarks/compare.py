"""Compare two versions of the package: each line runs alternately in two processes that stay open.

    python benchmarks/compare.py OLD/bin/python NEW/bin/python --cabspotting cabspottingdata.tar.gz

Both interpreters have the package installed. Only names that are public in both versions are used.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import promesse_geo as pg
from data import circle, cloud, commuters, creep

ROUNDS = 7
_SAMPLE = 4_000_000  # records of Cabspotting for slow lines


class _Peer:
    """Process that runs one version of the package and times lines on request."""

    def __init__(self, python: str, options: argparse.Namespace) -> None:
        command = [python, __file__, "--worker", "--folder", options.folder]
        if options.cabspotting:
            command += ["--cabspotting", str(options.cabspotting)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = self.answer()

    def ask(self, line: str) -> None:
        """Send the name of a line."""
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Return the answer of the process."""
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def time(self, line: str) -> float:
        """Return the run time of a line in seconds."""
        self.ask(line)
        return float(self.answer())


def _lines(folder: Path, archive: Path | None) -> dict[str, Callable[[], Any]]:
    """Return the timed functions by name."""
    dense = commuters(200, 20_000, interval=1)
    frame = dense.to_frame()
    mercator = frame.to_crs(3857)
    city = pg.make_city(recorder="phone")
    parts = city.promesse.prepare(tz="Europe/Paris", seed=0)
    safe = parts.promesse.smooth(200)
    csv, parquet, gpkg, geojson = (folder / f"city.{end}" for end in ("csv", "parquet", "gpkg", "geojson"))
    for file in (csv, parquet, gpkg, geojson):
        pg.write(city, file, force=True)
    big = folder / "dense.csv"
    pg.write(dense, big, force=True)
    noisy = pg.GeoIndistinguishability.from_level(4, radius=200, seed=0)
    smoothed = pg.Promesse(200).protect(dense)
    metrics = [pg.PoiRetrieval(), pg.SpatialError(), pg.RangeQueryDistortion(seed=0), pg.Compression()]
    mechanisms = [pg.Promesse(100), pg.Promesse(200), noisy]
    hard = {
        "a day's rest": cloud(86_400),
        "circle of 1 M": circle(1_000_000, radius=99.9),
        "creep": creep(400_000, speed=0.4),
    }
    lines: dict[str, Callable[[], Any]] = {
        "from_frame, EPSG:4326": lambda: pg.Traces.from_frame(frame),
        "from_frame, EPSG:3857": lambda: pg.Traces.from_frame(mercator),
        "to_frame": dense.to_frame,
        "frame.promesse.smooth": lambda: frame.promesse.smooth(200),
        "city.promesse.smooth": lambda: parts.promesse.smooth(200),
        "Promesse, dense": lambda: pg.Promesse(200).protect(dense),
        "Promesse, pseudocode, dense": lambda: pg.Promesse(200, variant="pseudocode").protect(dense),
        "Geo-I, dense": lambda: noisy.protect(dense),
        "Wait for Me, city": lambda: pg.WaitForMe(seed=0).protect(parts),
        "prepare, dense": lambda: pg.prepare(dense, tz="UTC", seed=0),
        "drop_jumps, dense": lambda: pg.drop_jumps(dense),
        "pseudonymize, dense": lambda: pg.pseudonymize(dense, seed=0),
        "describe, dense": lambda: pg.describe(dense),
        "pois, dense": lambda: pg.pois(dense),
        "spatial error, dense": lambda: pg.SpatialError().detail(dense, smoothed),
        "compression, dense": lambda: pg.Compression().detail(dense, smoothed),
        "measure, city": lambda: pg.measure(parts, safe),
        "evaluate 3 x 4, city": lambda: pg.evaluate({"city": parts}, mechanisms, metrics, seeds=1),
        "check, city": lambda: pg.check_published(parts, safe),
        "read CSV": lambda: pg.read_file(csv, as_traces=True),
        "read CSV, 4 M": lambda: pg.read_file(big, as_traces=True),
        "read GeoParquet": lambda: pg.read_file(parquet, as_traces=True),
        "read GeoPackage": lambda: pg.read_file(gpkg, as_traces=True),
        "read GeoJSON": lambda: pg.read_file(geojson, as_traces=True),
        "write GeoParquet, dense": lambda: pg.write(dense, folder / "out.parquet", force=True),
        "write CSV, dense": lambda: pg.write(dense, folder / "out.csv", force=True),
        "write GeoPackage, city": lambda: pg.write(city, folder / "out.gpkg", force=True),
        "map, city": lambda: city.promesse.map(city),
    }
    lines |= {f"pois, {name}": lambda traces=traces: pg.pois(traces) for name, traces in hard.items()}
    if archive:
        raw = pg.read_cabspotting(archive, as_traces=True)
        prepared = pg.prepare(raw, tz="America/Los_Angeles", min_days=21, seed=0)
        public, blurred = pg.Promesse(200).protect(prepared), noisy.protect(prepared)
        some = prepared.select(np.arange(prepared.records) < _SAMPLE)
        published = pg.Promesse(200).protect(some)
        lines |= {
            "read Cabspotting": lambda: pg.read_cabspotting(archive, as_traces=True),
            "prepare, Cabspotting": lambda: pg.prepare(raw, tz="America/Los_Angeles", min_days=21, seed=0),
            "drop_jumps, Cabspotting": lambda: pg.drop_jumps(raw),
            "Promesse, Cabspotting": lambda: pg.Promesse(200).protect(prepared),
            "Geo-I, Cabspotting": lambda: noisy.protect(prepared),
            "pois, Cabspotting": lambda: pg.pois(prepared),
            "spatial error of Promesse, Cabspotting": lambda: pg.SpatialError().detail(prepared, public),
            "spatial error of Geo-I, Cabspotting": lambda: pg.SpatialError().detail(prepared, blurred),
            "range queries, Cabspotting": lambda: pg.RangeQueryDistortion(seed=0).detail(prepared, public),
            "retrieval, Cabspotting": lambda: pg.PoiRetrieval().detail(prepared, blurred),
            "check, 4 M of Cabspotting": lambda: pg.check_published(some, published),
        }
    return lines


def _work(options: argparse.Namespace) -> None:
    """Time the lines from standard input."""
    warnings.simplefilter("ignore")
    lines = _lines(Path(options.folder), options.cabspotting)
    print(json.dumps(list(lines)), flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        result = lines[line.strip()]()
        took = time.perf_counter() - start
        del result
        print(took, flush=True)


def main() -> None:
    """Time all lines with both versions alternately and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pythons", nargs="*", help="the interpreters of both versions, older first")
    parser.add_argument("--cabspotting", type=Path)
    parser.add_argument("--only", default="", help="only lines that contain this")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        peers = []
        for number, python in enumerate(options.pythons):
            options.folder = f"{folder}/{number}"
            Path(options.folder).mkdir()
            peers.append(_Peer(python, options))
        print("| line | before s | after s | ratio of medians | median of ratios |\n|---|---:|---:|---:|---:|")
        for line in [line for line in peers[0].lines if options.only in line]:
            times = [[peer.time(line) for peer in peers] for _ in range(ROUNDS + 1)][1:]
            before, after = (statistics.median(column) for column in zip(*times, strict=True))
            ratio = statistics.median(new / old for old, new in times)
            print(f"| {line} | {before:.4f} | {after:.4f} | {after / before:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
