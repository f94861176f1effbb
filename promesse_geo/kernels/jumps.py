"""Impossible jumps: the records that can be reached from the last kept one.

Bound: memory on sound data; each first record found to be the outlier costs one more walk through half of its trace.
"""

import math

from promesse_geo.kernels import loop


@loop
def _is_reached(square, way, curvature):
    """Whether the arc over a squared chord is at most `way` long: angles on the sphere, lengths in the plane."""
    if square > way * way:  # no arc is shorter than its chord
        return False
    if curvature * square < 1e-4:
        return math.sqrt(square) * (1.0 + curvature * square * (1.0 / 24.0 + square * (3.0 / 640.0))) <= way
    return 2.0 * math.asin(min(0.5 * math.sqrt(square), 1.0)) <= way


@loop
def _keep_from(points, times, begin, end, curvature, speed, keep):
    """Mark what is kept when records begin … end − 1 are walked from `begin`; False when more than half would go."""
    removed = 0
    at = begin
    keep[begin] = True
    for i in range(begin + 1, end):
        square = 0.0
        for axis in range(points.shape[1]):
            square += (points[i, axis] - points[at, axis]) ** 2
        keep[i] = _is_reached(square, speed * ((times[i] - times[at]) / 1e9), curvature)
        if keep[i]:
            at = i
        else:
            removed += 1
            if 2 * removed > end - begin:
                return False
    return True


@loop
def reachable(points, times, offsets, curvature, speed, first, last, keep):
    """Whether each record of traces first … last − 1 is kept: d ≤ speed · Δt from the last kept one of its trace.

    When that removes more than half of a trace, its first record is the outlier: it goes and the rest starts again.
    Speed is in kernel units per second.
    """
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        while not _keep_from(points, times, begin, end, curvature, speed, keep):
            keep[begin] = False
            begin += 1
