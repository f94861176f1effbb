"""Match published points with original ones, in samples of traces, with what chance gives."""

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import record_matching
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces

WIDER = 10
"""How many times farther than at a location counts as near it: what is near shows how much is at it by chance."""

_SAMPLE = 64  # records of a trace that show whether most are like them
_STILL = 1.0  # metres of the shortest steps that are compared


def sample(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of some records of each trace, evenly spread, and their offsets by trace.

    Parameters
    ----------
    counts : numpy.ndarray of int64, shape (traces,)
        The number of records of each trace.

    Returns
    -------
    numbers : numpy.ndarray of int64, shape (chosen,)
    offsets : numpy.ndarray of int64, shape (traces + 1,)
    """
    some = np.minimum(counts, _SAMPLE)
    offsets = as_offsets(some)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], some)
    return np.repeat(as_offsets(counts)[:-1], some) + within * np.repeat(counts, some) // np.repeat(some, some), offsets


def by_chance(same: int, near: int) -> float:
    """Return how many of those near a location or time are at it by chance."""
    return (near - same) / (WIDER - 1)


def match_anywhere(
    original: np.ndarray, published: np.ndarray, levels: np.ndarray, reaches: np.ndarray, *, scale: float
) -> np.ndarray:
    """Grade published points by the distance to the nearest of all original ones, as `Comparison.location_matches`.

    The table is that of the published points: each original one is looked up in it, and only those near are kept.

    Parameters
    ----------
    original : numpy.ndarray of float64, shape (records, 3) or (records, 2)
        Points of the original.
    published : numpy.ndarray of float64, shape (n, 3) or (n, 2)
        Some published points.
    levels : numpy.ndarray of int8, shape (n,)
        The level of each published point.
    reaches : numpy.ndarray of float64, shape (levels,)
        Metres at each level, descending.
    scale : float
        Metres per unit of the points.

    Returns
    -------
    numpy.ndarray of int8, shape (n,)
        2 within the reach, 1 within `WIDER` times it, else 0.
    """
    if not len(published):
        return np.zeros(0, np.int8)
    scales = scale / reaches
    ends, shares = np.array([0, len(published)]), threads.even(len(original))
    widest = scales[levels].min(keepdims=True) / 3  # so that the cells of both searches overlap
    partners, same_level = np.zeros(len(shares) - 1, np.int64), np.zeros(len(original), np.int8)
    near = match_locations(published, ends, original, shares, partners, same_level, widest)
    candidates = original[near > 0]
    return match_locations(candidates, np.array([0, len(candidates)]), published, ends, partners[:1], levels, scales)


def steps_of(traces: Traces, records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the two steps after records, folded into three numbers of metres, and the records that have such.

    Records before a step of less than `_STILL` metres have none.

    Parameters
    ----------
    traces : Traces
        The traces.
    records : numpy.ndarray of int64, shape (chosen,)
        Numbers of records.

    Returns
    -------
    steps : numpy.ndarray of float64, shape (n, 3)
        The differences of both coordinates to the next record, and a sum of those to the one after it, in metres.
    numbers : numpy.ndarray of int64, shape (n,)
        The records.
    """
    x, y = traces.coordinates()
    x, y = (np.append(axis, [np.nan, np.nan]) * traces.space.unit for axis in (x, y))
    ends = np.repeat(traces.offsets[1:], traces.counts)
    records = records[records + 2 < ends[records]]
    first = np.stack([axis[records + 1] - axis[records] for axis in (x, y)])
    second = np.stack([axis[records + 2] - axis[records + 1] for axis in (x, y)])
    moving = (np.hypot(*first) > _STILL) & (np.hypot(*second) > _STILL)
    folded = 0.6 * second[0] + 0.8 * second[1]
    return np.ascontiguousarray(np.column_stack((*first, folded))[moving]), records[moving]


def match_locations(
    original: np.ndarray,
    offsets: np.ndarray,
    published: np.ndarray,
    starts: np.ndarray,
    partners: np.ndarray,
    levels: np.ndarray,
    scales: np.ndarray,
) -> np.ndarray:
    """Match locations of traces with those of their partners; see `record_matching.match_locations`."""
    matches = np.zeros(len(published), np.int8)
    threads.run(
        lambda first, last: record_matching.match_locations(
            original, offsets, published, starts, partners, levels, scales, WIDER, first, last, matches
        ),
        threads.fair(np.diff(starts) + (offsets[partners + 1] - offsets[partners])),
    )
    return matches


def match_crowded(
    original: np.ndarray,
    times: np.ndarray,
    published: np.ndarray,
    middles: np.ndarray,
    units: np.ndarray,
    levels: np.ndarray,
    scales: np.ndarray,
) -> np.ndarray:
    """Match records in order of time, unit and level: those that share all three are looked up together."""
    new = np.ones(len(published) + 1, bool)
    new[1:-1] = (np.diff(middles) != 0) | (np.diff(units) != 0) | (np.diff(levels) != 0)
    starts = np.flatnonzero(new)
    heads = starts[:-1]
    begins = np.searchsorted(times, middles[heads] - units[heads], side="right")
    ends = np.searchsorted(times, middles[heads] + units[heads], side="left")
    ranges = np.column_stack((begins, ends)).ravel()
    return match_locations(original, ranges, published, starts, 2 * np.arange(len(heads)), levels, scales)
