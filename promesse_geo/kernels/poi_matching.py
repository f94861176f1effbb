"""How far two users' points of interest are from each other.

Bound: every pair of points of two sets, once.
"""

import math

import numpy as np

from promesse_geo.kernels import loop


@loop
def compare_sets(points, offsets, found, found_offsets, curvature, first, last, distances):
    """For sets first … last − 1 of the found points: their distance to each set of points, in kernel units.

    It is the median over {each point's distance to the nearest of the other set, both directions}; infinite where
    one of the two sets is empty.
    """
    for i in range(first, last):
        begin = found_offsets[i]
        count = found_offsets[i + 1] - begin
        for j in range(len(offsets) - 1):
            others = offsets[j + 1] - offsets[j]
            distances[i, j] = math.inf
            if count == 0 or others == 0:
                continue
            nearest = np.full(count + others, math.inf)
            for p in range(count):
                for q in range(others):
                    square = 0.0
                    for axis in range(points.shape[1]):
                        step = found[begin + p, axis] - points[offsets[j] + q, axis]
                        square += step * step
                    nearest[p] = min(nearest[p], square)
                    nearest[count + q] = min(nearest[count + q], square)
            nearest = np.sqrt(nearest)
            if curvature > 0.0:
                nearest = 2.0 * np.arcsin(np.minimum(nearest / 2.0, 1.0))
            distances[i, j] = np.median(nearest)


@loop
def match_nearest(points, offsets, found, found_offsets, originals, limit, first, last, nearest):
    """For the found points of traces first … last − 1: the row of the nearest original point; −1 beyond the limit.

    Distances are squared, as is the limit, which belongs to it; of equally near points the first is taken.
    """
    for trace in range(first, last):
        own = originals[trace]
        for i in range(found_offsets[trace], found_offsets[trace + 1]):
            best = math.inf
            nearest[i] = -1
            for j in range(offsets[own], offsets[own + 1]):
                square = 0.0
                for axis in range(points.shape[1]):
                    step = points[j, axis] - found[i, axis]
                    square += step * step
                if square < best and square <= limit:
                    best = square
                    nearest[i] = j
