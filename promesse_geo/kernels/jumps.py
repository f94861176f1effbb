"""Removal of impossible jumps: a record is kept if it can be reached from the last kept record of its trace.

Each first record that turns out to be the outlier costs another walk through half of its trace. Walks are saved in two
ways: the records kept right after such a record are outliers as well, and a lower bound of the records to remove rules
out the starts from where more than half of the trace would be removed.
"""

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import arc, square_between

_PATIENCE = 32  # walks through a trace before the lower bound is computed, which costs about as much
_BLOCK = 64  # records, compared in pairs for the lower bound


@inner
def _is_reached(square, limit, curvature):
    """Return whether the arc over a squared chord is at most `limit` long."""
    return square <= limit * limit and arc(square, curvature) <= limit  # no arc is shorter than its chord


@inner
def _keep_from(points, times, begin, end, curvature, speed, keep):
    """Mark the records that are kept if records begin … end − 1 are walked from `begin`.

    Returns 0, or if more than half are removed the number of leading records that cannot be the start: `begin` and the
    records kept right after it, from where the walk removes the same records.
    """
    removed = 0
    leading = 1
    latest = begin
    keep[begin] = True
    for i in range(begin + 1, end):
        reach = speed * ((times[i] - times[latest]) / 1e9)
        keep[i] = _is_reached(square_between(points, i, points, latest), reach, curvature)
        if keep[i]:
            latest = i
            leading += removed == 0
        else:
            removed += 1
            if 2 * removed > end - begin:
                return leading
    return 0


@loop
def _must_go(points, times, begin, end, curvature, speed):
    """Return a lower bound of the records removed from each block on, for a walk from any start.

    Of two records that a walk keeps, each can be reached from the other, up to rounding. So of a block it keeps at most
    the longest chain of such records.
    """
    blocks = (end - begin + _BLOCK - 1) // _BLOCK
    least = np.zeros(blocks + 1, np.int64)
    chains = np.empty(_BLOCK, np.int64)
    for block in range(blocks - 1, -1, -1):
        first = begin + block * _BLOCK
        last = min(first + _BLOCK, end)
        longest = 0
        for i in range(first, last):
            chain = 0
            for j in range(first, i):
                if chains[j - first] > chain:
                    reach = speed * ((times[i] - times[j]) / 1e9) * (1.0 + 1e-9) + 1e-12
                    if _is_reached(square_between(points, i, points, j), reach, curvature):
                        chain = chains[j - first]
            chains[i - first] = chain + 1
            longest = max(longest, chain + 1)
        least[block] = least[block + 1] + last - first - longest
    return least


@loop
def mark_reachable(points, times, offsets, curvature, speed, first, last, keep):
    """Mark the records of each trace that can be reached from its last kept record: d ≤ speed · Δt.

    If more than half of the records of a trace would be removed, its first record is the outlier: it is removed, and
    the walk starts again at the next.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    times : int64, shape (records,)
        Nanoseconds, ascending in each trace.
    offsets : int64, shape (traces + 1,)
        First record of each trace, and the number of records.
    curvature : float
        1 on the sphere, 0 in the plane.
    speed : float
        Largest speed, in radians per second on the sphere or metres per second in the plane.
    first, last : int
        Marks the records of the traces first … last − 1.
    keep : bool, shape (records,)
        Output: whether the record is kept.
    """
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        walks = 0
        least = np.zeros(1, np.int64)
        while True:
            block = (begin - offsets[trace] + _BLOCK - 1) // _BLOCK
            outliers = 1
            if walks < _PATIENCE or 2 * least[block] <= end - begin:
                outliers = _keep_from(points, times, begin, end, curvature, speed, keep)
                walks += 1
                if walks == _PATIENCE and outliers:
                    least = _must_go(points, times, offsets[trace], end, curvature, speed)
            if outliers == 0:
                break
            keep[begin : begin + outliers] = False
            begin += outliers
