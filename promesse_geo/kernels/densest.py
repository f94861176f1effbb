"""The densest spot among candidates, and the spot that most rays pass.

Points are unit vectors on the sphere or metres in the plane, in groups of consecutive rows, one per owner.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import arc, square_between

_NO_WEIGHT = 40.0  # widths; exp(−½ · 40²) is 0


@inner()
def weight(square, curvature, width):
    """Return exp(−½(d / width)²) for a squared chord; 0 beyond 40 widths.

    Parameters
    ----------
    square : float
        Squared chord of the unit sphere, or square metres in the plane.
    curvature : float
        1 on the sphere, 0 in the plane.
    width : float
        Width of the kernel, in the unit of the points.
    """
    if square > (_NO_WEIGHT * width) ** 2:
        return 0.0
    ratio = arc(square, curvature) / width
    return math.exp(-0.5 * ratio * ratio)


@inner()
def _sum_weights_of(points, i, begin, end, curvature, width):
    """Return the sum of the weights of the candidates begin … end − 1 for candidate i."""
    total = 0.0
    for j in range(begin, end):
        total += weight(square_between(points, i, points, j), curvature, width)
    return total


@loop("best")
def find_densest(points, offsets, curvature, width, first, last, best):
    """Find in each group the candidate with the greatest sum of weights of all candidates of the group.

    Parameters
    ----------
    points : float64, shape (candidates, 3) or (candidates, 2)
        Candidates, group by group.
    offsets : int64, shape (groups + 1,)
        First candidate of each group, and the number of candidates.
    curvature : float
        1 on the sphere, 0 in the plane.
    width : float
        Width of the kernel, in the unit of the points.
    first, last : int
        Searches the groups first … last − 1.
    best : int64, shape (groups,)
        Output: row of the candidate, the first one of equal sums; −1 if the group is empty.
    """
    for group in range(first, last):
        begin, end = offsets[group], offsets[group + 1]
        best[group] = -1
        greatest = -1.0
        for i in range(begin, end):
            total = _sum_weights_of(points, i, begin, end, curvature, width)
            if total > greatest:
                greatest = total
                best[group] = i


@loop("sums")
def sum_weights(points, curvature, width, first, last, sums):
    """Sum for each candidate the weights of all candidates.

    Parameters
    ----------
    points, curvature, width
        As for `find_densest`.
    first, last : int
        Sums for the candidates first … last − 1.
    sums : float64, shape (candidates,)
        Output.
    """
    for i in range(first, last):
        sums[i] = _sum_weights_of(points, i, 0, len(points), curvature, width)


@loop("sums, best")
def take_densest(points, sums, curvature, width, reach, best):
    """Take the densest candidate again and again, each time without the candidates near it.

    Parameters
    ----------
    points, curvature, width
        As for `find_densest`.
    sums : float64, shape (candidates,)
        What `sum_weights` computed; changed.
    reach : float
        Squared chord up to which candidates near a taken one are removed.
    best : int64, shape (guesses,)
        Output: rows of the candidates; −1 when none is left.
    """
    left = np.ones(len(points), np.bool_)
    for guess in range(len(best)):
        best[guess] = -1
        greatest = -math.inf
        for i in range(len(points)):
            if left[i] and sums[i] > greatest:
                greatest = sums[i]
                best[guess] = i
        if best[guess] < 0:
            continue
        taken = best[guess]
        for i in range(len(points)):
            if left[i] and square_between(points, i, points, taken) <= reach:
                left[i] = False
                for j in range(len(points)):
                    if left[j]:
                        sums[j] -= weight(square_between(points, i, points, j), curvature, width)


@loop("near")
def count_near(points, offsets, spots, numbers, limit, first, last, near):
    """Count the points of each trace that are near its spot.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Points, trace by trace.
    offsets : int64, shape (traces + 1,)
        First point of each trace, and the number of points.
    spots : float64, shape (spots, 3) or (spots, 2)
        Spots; no point is near NaN.
    numbers : int64, shape (traces,)
        The row of each trace's spot.
    limit : float
        Greatest squared chord of a near point.
    first, last : int
        Counts for the traces first … last − 1.
    near : int64, shape (traces,)
        Output: number of near points.
    """
    for trace in range(first, last):
        number = 0
        for i in range(offsets[trace], offsets[trace + 1]):
            number += square_between(points, i, spots, numbers[trace]) <= limit
        near[trace] = number


@loop("best")
def find_crossings(origins, directions, offsets, step, count, curvature, width, first, last, best):
    """Find in each group the point of a ray that most rays pass.

    The point `i` of a ray lies i · step along it. Each ray gives a candidate the weight of the distance to its nearest
    point.

    Parameters
    ----------
    origins : float64, shape (rays, 3) or (rays, 2)
        Where the rays begin, group by group.
    directions : float64, shape (rays, 3) or (rays, 2)
        Unit tangents.
    offsets : int64, shape (groups + 1,)
        First ray of each group, and the number of rays.
    step : float
        Distance of the points, in the unit of the points.
    count : int
        Number of points of a ray.
    curvature : float
        1 on the sphere, 0 in the plane.
    width : float
        Width of the kernel, in the unit of the points.
    first, last : int
        Searches the groups first … last − 1.
    best : int64, shape (groups, 2)
        Output: the row of the ray, and the number of its point; −1 if the group has no ray.
    """
    size = origins.shape[1]
    candidate = np.empty((1, size))
    nearest = np.empty((1, size))
    shares = np.ones(count)  # of the origin in a point of a ray; the rest is along the tangent
    alongs = np.empty(count)
    for number in range(count):
        alongs[number] = number * step
        if curvature != 0.0:
            alongs[number] = math.sin(number * step)
            shares[number] = math.cos(number * step)
    far = (count * step + _NO_WEIGHT * width) ** 2
    for group in range(first, last):
        best[group, 0] = best[group, 1] = -1
        greatest = -1.0
        for ray in range(offsets[group], offsets[group + 1]):
            for number in range(count):
                _place(origins, directions, ray, shares[number], alongs[number], candidate)
                votes = 0.0
                for other in range(offsets[group], offsets[group + 1]):
                    if square_between(candidate, 0, origins, other) > far:  # no point of the ray has any weight
                        continue
                    along = _along(origins, directions, other, candidate, curvature) / step
                    point = min(max(math.floor(along + 0.5), 0), count - 1)
                    _place(origins, directions, other, shares[point], alongs[point], nearest)
                    votes += weight(square_between(candidate, 0, nearest, 0), curvature, width)
                if votes > greatest:
                    greatest = votes
                    best[group, 0] = ray
                    best[group, 1] = number


@inner("point")
def _place(origins, directions, ray, share, along, point):
    """Write share · origin + along · tangent of a ray to `point`, shape (1, 3) or (1, 2)."""
    for axis in range(origins.shape[1]):
        point[0, axis] = share * origins[ray, axis] + along * directions[ray, axis]


@inner()
def _along(origins, directions, ray, candidate, curvature):
    """Return the length along the line of a ray at which it is nearest to a candidate, shape (1, 3) or (1, 2)."""
    forward = 0.0
    upward = 0.0
    for axis in range(origins.shape[1]):
        if curvature != 0.0:
            forward += candidate[0, axis] * directions[ray, axis]
            upward += candidate[0, axis] * origins[ray, axis]
        else:
            forward += (candidate[0, axis] - origins[ray, axis]) * directions[ray, axis]
    return math.atan2(forward, upward) if curvature != 0.0 else forward
