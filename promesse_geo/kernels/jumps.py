"""Impossible jumps: the records that can be reached from the last kept one.

Bound: memory on sound data; each first record found to be the outlier costs one more walk through half of its trace,
unless it can be told without one: it was kept right after another such record, or so many records exclude each other
that more than half go wherever the walk starts.
"""

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import arc, square_between

_PATIENCE = 32  # walks through a trace before it is counted what must go, which costs about as much
_BLOCK = 64  # records compared each with each for that


@inner
def _is_reached(square, limit, curvature):
    """Return whether the arc over a squared chord is at most `limit` long."""
    return square <= limit * limit and arc(square, curvature) <= limit  # no arc is shorter than its chord


@inner
def _keep_from(points, times, begin, end, curvature, speed, keep):
    """Mark what is kept when records begin … end − 1 are walked from `begin`; how many starts this rules out.

    That is 0 unless more than half would go; else `begin` and what is kept right after it, from where the same go.
    """
    removed = 0
    alike = 1
    at = begin
    keep[begin] = True
    for i in range(begin + 1, end):
        keep[i] = _is_reached(square_between(points, i, points, at), speed * ((times[i] - times[at]) / 1e9), curvature)
        if keep[i]:
            at = i
            alike += removed == 0
        else:
            removed += 1
            if 2 * removed > end - begin:
                return alike
    return 0


@loop
def _must_go(points, times, begin, end, curvature, speed):
    """How many records go at least from each block of them on, wherever a walk starts.

    What a walk keeps can be reached one from the other (but for rounding, which is forgiven here), so that of each
    block it keeps no more than the longest chain of such records.
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
                    way = speed * ((times[i] - times[j]) / 1e9) * (1.0 + 1e-9) + 1e-12
                    if _is_reached(square_between(points, i, points, j), way, curvature):
                        chain = chains[j - first]
            chains[i - first] = chain + 1
            longest = max(longest, chain + 1)
        least[block] = least[block + 1] + last - first - longest
    return least


@loop
def mark_reachable(points, times, offsets, curvature, speed, first, last, keep):
    """Mark the records of traces first … last − 1 that are kept: d ≤ speed · Δt from the last kept one of its trace.

    When that removes more than half of a trace, its first record is the outlier: it goes and the rest starts again.
    Speed is in kernel units per second.
    """
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        walks = 0
        least = np.zeros(1, np.int64)
        while True:
            block = (begin - offsets[trace] + _BLOCK - 1) // _BLOCK
            wrong = 1
            if walks < _PATIENCE or 2 * least[block] <= end - begin:
                wrong = _keep_from(points, times, begin, end, curvature, speed, keep)
                walks += 1
                if walks == _PATIENCE and wrong:
                    least = _must_go(points, times, offsets[trace], end, curvature, speed)
            if wrong == 0:
                break
            keep[begin : begin + wrong] = False
            begin += wrong
