"""Published records beside those of everybody, whoever they are said to be."""

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import sharing
from promesse_geo.pairs import WIDER, in_space_of, rounding
from promesse_geo.traces import Traces

_LANE = np.array([0.48, 0.6, 0.64])  # across all: no street and no grid runs along it
_MOST_KEYS = 2.0**62
_UNITS = (1_000_000_000, 1_000_000, 1_000)  # nanoseconds


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
    theirs, ours = (one.points @ _LANE[: one.space.dimension] for one in (original, moved))
    begin, end = int(original.times.min()), int(original.times.max())
    for unit in _UNITS:
        within = (units == unit) & (middles >= begin - unit) & (middles <= end + unit)
        if not within.any():
            continue
        span = end // unit - begin // unit + 1
        lanes = int(min(_MOST_KEYS // (2 * span + 4), 2.0**40))
        low, width = theirs.min(), max(float(np.ptp(theirs)) / lanes, 1e-18)
        lane = np.minimum((theirs - low) / width, lanes - 1).astype(np.int64)
        moment = 2 * (original.times // unit - begin // unit) + (original.times % unit > 0)  # odd between whole units
        keys = moment * lanes + lane
        order = np.argsort(keys)
        moments = np.where(within, 2 * (middles // unit - begin // unit), -2)
        _search(keys[order], order, original, lanes, width, moved, ours - low, moments, lengths, found)
    return found


def _search(
    keys: np.ndarray,
    order: np.ndarray,
    original: Traces,
    lanes: int,
    width: float,
    moved: Traces,
    positions: np.ndarray,
    moments: np.ndarray,
    lengths: np.ndarray,
    found: np.ndarray,
) -> None:
    threads.run(
        lambda first, last: sharing.anybodys(
            keys,
            order,
            original.points,
            lanes,
            width,
            moved.points,
            positions,
            moments,
            lengths,
            WIDER,
            first,
            last,
            found,
        ),
        threads.even(moved.records),
    )
