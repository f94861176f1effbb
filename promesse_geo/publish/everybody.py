"""Published records beside those of everybody, whoever they are said to be."""

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import sharing
from promesse_geo.pairs import WIDER, in_space_of, rounding
from promesse_geo.traces import Traces

_MOST = 32  # true records of one time that are looked at one by one; more are looked up in cells


def shared_records(original: Traces, protected: Traces) -> np.ndarray:
    """Return whether each protected record is anybody's true one (2), at the time of one near it (1) or neither (0).

    A true one has the same time, as coarsely as times are published, and lies within what the rounding of the
    coordinates can do; near it is what lies within `WIDER` times that. The shape is (records,).
    """
    found = np.zeros(protected.records, np.int8)
    moved = in_space_of(original, protected)
    middles, units = np.empty((2, protected.records), np.int64)
    threads.run(
        lambda first, last: sharing.rounded_times(moved.times, moved.offsets, first, last, middles, units),
        threads.fair(moved.counts),
    )
    levels, reaches = rounding(protected)
    lengths = (reaches / original.space.scale)[levels]
    order = np.argsort(original.times)
    times = original.times[order]
    threads.run(
        lambda first, last: sharing.anybodys(
            times, order, original.points, moved.points, middles, units, lengths, WIDER, _MOST, first, last, found
        ),
        threads.even(moved.records),
    )
    crowded = np.flatnonzero(found < 0)
    if len(crowded):
        alike = np.lexsort((levels[crowded], units[crowded], middles[crowded]))
        crowded = crowded[alike]
        found[crowded] = _in_crowds(
            original.points[order],
            times,
            moved.points[crowded],
            middles[crowded],
            units[crowded],
            levels[crowded],
            original.space.scale / reaches,
        )
    return found


def _in_crowds(
    true: np.ndarray,
    times: np.ndarray,
    published: np.ndarray,
    middles: np.ndarray,
    units: np.ndarray,
    levels: np.ndarray,
    scales: np.ndarray,
) -> np.ndarray:
    """As `shared_records`, of records in order of time, unit and level: who share all three are as one trace."""
    found = np.zeros(len(published), np.int8)
    new = np.ones(len(published) + 1, bool)
    new[1:-1] = (np.diff(middles) != 0) | (np.diff(units) != 0) | (np.diff(levels) != 0)
    starts = np.flatnonzero(new)
    ones = starts[:-1]
    begins = np.searchsorted(times, middles[ones] - units[ones], side="right")
    ends = np.searchsorted(times, middles[ones] + units[ones], side="left")
    threads.run(
        lambda first, last: sharing.nearness(
            true,
            np.column_stack((begins, ends)).ravel(),
            published,
            starts,
            2 * np.arange(len(ones)),
            levels,
            scales,
            WIDER,
            first,
            last,
            found,
        ),
        threads.fair(np.diff(starts) + ends - begins),
    )
    return found
