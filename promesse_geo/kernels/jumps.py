"""Impossible jumps: the records that can be reached from the last kept one.

Bound: memory on sound data; each first record found to be the outlier costs one more walk through its trace.
"""

import math

import numpy as np
from numba import njit, prange


@njit(cache=True)
def _keep_from(points, times, first, last, curvature, scale, max_speed, keep):
    """Mark what is kept when records first … last − 1 are walked from `first`; return how many are removed."""
    removed = 0
    at = first
    keep[first] = True
    for i in range(first + 1, last):
        square = 0.0
        for axis in range(points.shape[1]):
            square += (points[i, axis] - points[at, axis]) ** 2
        distance = math.sqrt(square)
        if curvature > 0.0:
            distance = 2.0 * math.asin(min(0.5 * distance, 1.0))
        keep[i] = distance * scale <= max_speed * (times[i] - times[at]) * 1e-9
        if keep[i]:
            at = i
        else:
            removed += 1
    return removed


@njit(cache=True, parallel=True)
def reachable(points, times, offsets, curvature, scale, max_speed):
    """Whether each record is kept: d ≤ max_speed · Δt from the last kept one of its trace.

    When that removes more than half of a trace, its first record is the outlier: it goes and the rest starts again.
    """
    keep = np.empty(points.shape[0], np.bool_)
    for trace in prange(offsets.shape[0] - 1):
        first = offsets[trace]
        last = offsets[trace + 1]
        while 2 * _keep_from(points, times, first, last, curvature, scale, max_speed, keep) > last - first:
            keep[first] = False
            first += 1
    return keep
