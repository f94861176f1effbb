"""Impossible jumps: the records that can be reached from the last kept one.

Bound: memory on sound data; each first record found to be the outlier costs one more walk through half of its trace,
unless it can be told without one: it was kept right after another such record, or so many records exclude each other
that more than half go wherever the walk starts.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop

_PATIENCE = 32  # walks through a trace before it is counted what must go, which costs about as much
_BLOCK = 64  # records compared each with each for that


@inner
def _is_reached(square, way, curvature):
    """Whether the arc over a squared chord is at most `way` long: angles on the sphere, lengths in the plane."""
    if square > way * way:  # no arc is shorter than its chord
        return False
    if curvature * square < 1e-4:
        return math.sqrt(square) * (1.0 + curvature * square * (1.0 / 24.0 + square * (3.0 / 640.0))) <= way
    return 2.0 * math.asin(min(0.5 * math.sqrt(square), 1.0)) <= way


@inner
def _squared(points, i, j):
    square = 0.0
    for axis in range(points.shape[1]):
        square += (points[i, axis] - points[j, axis]) ** 2
    return square


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
        keep[i] = _is_reached(_squared(points, i, at), speed * ((times[i] - times[at]) / 1e9), curvature)
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
                    if _is_reached(_squared(points, i, j), way, curvature):
                        chain = chains[j - first]
            chains[i - first] = chain + 1
            longest = max(longest, chain + 1)
        least[block] = least[block + 1] + last - first - longest
    return least


@loop
def reachable(points, times, offsets, curvature, speed, first, last, keep):
    """Whether each record of traces first … last − 1 is kept: d ≤ speed · Δt from the last kept one of its trace.

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
