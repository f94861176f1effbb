"""Distances between two sets of points of interest (POIs), and the matches between them.

Points are unit vectors on the sphere or metres in the plane, and the POIs of a set are consecutive rows. Every pair of
POIs of two sets is compared, because sets are small.
"""

import math

import numpy as np

from promesse_geo.kernels import loop


@loop("distances")
def compare_sets(points, offsets, retrieved, retrieved_offsets, curvature, first, last, distances):
    """Compute the distance from each retrieved set of POIs to each reference set.

    It is the median over the POIs of both sets of the distance to the nearest POI of the other set, and infinite if
    one of the sets is empty.

    Parameters
    ----------
    points : float64, shape (points, 3) or (points, 2)
        POIs of the reference sets.
    offsets : int64, shape (sets + 1,)
        First POI of each reference set, and the number of POIs.
    retrieved : float64, shape (retrieved points, 3) or (retrieved points, 2)
        POIs of the retrieved sets.
    retrieved_offsets : int64, shape (retrieved sets + 1,)
        First POI of each retrieved set, and the number of POIs.
    curvature : float
        1 on the sphere, 0 in the plane.
    first, last : int
        Compares the retrieved sets first … last − 1.
    distances : float64, shape (retrieved sets, sets)
        Output: radians on the sphere, metres in the plane.
    """
    for i in range(first, last):
        begin = retrieved_offsets[i]
        count = retrieved_offsets[i + 1] - begin
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
                        step = retrieved[begin + p, axis] - points[offsets[j] + q, axis]
                        square += step * step
                    nearest[p] = min(nearest[p], square)
                    nearest[count + q] = min(nearest[count + q], square)
            nearest = np.sqrt(nearest)
            if curvature > 0.0:
                nearest = 2.0 * np.arcsin(np.minimum(nearest / 2.0, 1.0))
            distances[i, j] = np.median(nearest)


@loop("nearest")
def match_nearest(points, offsets, retrieved, retrieved_offsets, originals, limit, first, last, nearest):
    """Match each retrieved POI with the nearest original POI of its trace; of equally near ones with the first.

    Parameters
    ----------
    points : float64, shape (points, 3) or (points, 2)
        POIs of the original traces.
    offsets : int64, shape (original traces + 1,)
        First POI of each original trace, and the number of POIs.
    retrieved : float64, shape (retrieved points, 3) or (retrieved points, 2)
        POIs retrieved from the protected traces.
    retrieved_offsets : int64, shape (traces + 1,)
        First POI of each protected trace, and the number of POIs.
    originals : int64, shape (traces,)
        Original trace of each protected trace.
    limit : float
        Largest squared chord of a match: between unit vectors on the sphere, in m² in the plane.
    first, last : int
        Matches the POIs of the protected traces first … last − 1.
    nearest : int64, shape (retrieved points,)
        Output: row of the matched POI in `points`; −1 without a match.
    """
    for trace in range(first, last):
        original = originals[trace]
        for i in range(retrieved_offsets[trace], retrieved_offsets[trace + 1]):
            best = math.inf
            nearest[i] = -1
            for j in range(offsets[original], offsets[original + 1]):
                square = 0.0
                for axis in range(points.shape[1]):
                    step = points[j, axis] - retrieved[i, axis]
                    square += step * step
                if square < best and square <= limit:
                    best = square
                    nearest[i] = j
