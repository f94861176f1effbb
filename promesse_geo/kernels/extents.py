"""Means and diameters of stays.

Cost: four reads of each record, and a sort of the few that may be an end of the diameter: on a circle, all of them.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import square_between, square_to

_FEW = 40  # up to so many records are measured pair by pair


@inner()
def _mean(points, begin, end):
    """Return the mean (x, y, z) of records begin … end − 1, summed as differences, which lose no digits."""
    x = 0.0
    y = 0.0
    z = 0.0
    for i in range(begin, end):
        x += points[i, 0] - points[begin, 0]
        y += points[i, 1] - points[begin, 1]
        if points.shape[1] == 3:
            z += points[i, 2] - points[begin, 2]
    count = end - begin
    height = points[begin, 2] + z / count if points.shape[1] == 3 else 0.0
    return points[begin, 0] + x / count, points[begin, 1] + y / count, height


@inner("axes")
def _turn(points, x, y, z, axes):
    """Write east, north and up at a point as rows of `axes` (3, 3); in the plane, the identity."""
    axes[:] = 0.0
    axes[0, 0] = 1.0
    axes[1, 1] = 1.0
    axes[2, 2] = 1.0
    flat = math.sqrt(x * x + y * y)
    if points.shape[1] == 3 and flat > 0.0:
        length = math.sqrt(x * x + y * y + z * z)
        axes[0, 0] = -y / flat
        axes[0, 1] = x / flat
        axes[1, 0] = -z * x / flat / length
        axes[1, 1] = -z * y / flat / length
        axes[1, 2] = flat / length
        axes[2, 0] = x / length
        axes[2, 1] = y / length
        axes[2, 2] = z / length


@inner()
def _seen(points, i, centre, axes):
    """Return how far east, north and up of a centre a record is."""
    dx = points[i, 0] - centre[0]
    dy = points[i, 1] - centre[1]
    if points.shape[1] == 2:
        return dx, dy, 0.0
    dz = points[i, 2] - centre[2]
    return (
        dx * axes[0, 0] + dy * axes[0, 1] + dz * axes[0, 2],
        dx * axes[1, 0] + dy * axes[1, 1] + dz * axes[1, 2],
        dx * axes[2, 0] + dy * axes[2, 1] + dz * axes[2, 2],
    )


@inner()
def _longest_pair(points, chosen):
    """Return the largest squared distance between the chosen records, pair by pair."""
    longest = 0.0
    for i in range(len(chosen)):
        for j in range(i):
            longest = max(longest, square_between(points, chosen[i], points, chosen[j]))
    return longest


@loop()
def _corners(x, y):
    """Return the corners of the convex hull of points, anticlockwise (Andrew's monotone chain)."""
    order = np.argsort(x)
    count = len(x)
    hull = np.empty(2 * count + 1, np.int64)
    size = 0
    for turn in range(2):
        floor = size + 1
        for step in range(count):
            i = order[step] if turn == 0 else order[count - 1 - step]
            while size > floor:
                a = hull[size - 2]
                b = hull[size - 1]
                if (x[b] - x[a]) * (y[i] - y[a]) - (y[b] - y[a]) * (x[i] - x[a]) > 0.0:
                    break
                size -= 1
            hull[size] = i
            size += 1
        size -= 1  # the last point of a chain is the first of the other
    return hull[: max(size, 1)]


@loop()
def _longest_across(points, chosen, x, y):
    """Return the largest squared distance between opposite corners (rotating calipers)."""
    corners = _corners(x, y)
    count = len(corners)
    longest = 0.0
    j = 1 % count
    for side in range(count):
        a = corners[side]
        b = corners[(side + 1) % count]
        for _ in range(count):
            here = corners[j]
            there = corners[(j + 1) % count]
            if (x[b] - x[a]) * (y[there] - y[here]) - (y[b] - y[a]) * (x[there] - x[here]) <= 0.0:
                break
            j = (j + 1) % count
        for k in (corners[j], corners[(j + 1) % count]):
            longest = max(
                longest,
                square_between(points, chosen[a], points, chosen[k]),
                square_between(points, chosen[b], points, chosen[k]),
            )
    return longest


@loop()
def _widest(points, begin, end, centre, axes):
    """Return the squared diameter of records begin … end − 1.

    Where all records are within r of a centre, both ends of a diameter of at least L are at least L − r from it. These
    records are measured pair by pair, or across their convex hull in the view from above the centre.
    """
    if end - begin <= _FEW:
        return _longest_pair(points, np.arange(begin, end))
    away = np.empty(end - begin)
    for i in range(begin, end):
        away[i - begin] = square_to(points, i, centre[0], centre[1], centre[2])
    far = begin + np.argmax(away)
    radius = away[far - begin]
    least = 0.0
    for i in range(begin, end):
        least = max(least, square_between(points, i, points, far))
    if least == 0.0:
        return 0.0
    nearest = max((math.sqrt(least) - math.sqrt(radius)) * (1.0 - 1e-9), 0.0) ** 2
    chosen = np.empty(end - begin, np.int64)
    count = 0
    for i in range(begin, end):
        chosen[count] = i
        count += away[i - begin] >= nearest
    chosen = chosen[:count]
    if count <= _FEW:
        return max(least, _longest_pair(points, chosen))
    x = np.empty(count)
    y = np.empty(count)
    for k in range(count):
        east, north, _ = _seen(points, chosen[k], centre, axes)
        x[k] = math.cos(1.0) * east + math.sin(1.0) * north  # turned, so that points of a grid do not share an x
        y[k] = math.cos(1.0) * north - math.sin(1.0) * east
    return max(least, _longest_across(points, chosen, x, y))


@loop("centres, squares")
def measure(points, starts, ends, first, last, centres, squares):
    """Measure the means and diameters of stays first … last − 1.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    starts, ends : int64, shape (stays,)
        Stay i holds records starts[i] … ends[i] − 1.
    first, last : int
        The stays to measure.
    centres : float64, shape (stays, 3) or (stays, 2)
        Written: the means, of unit length on the sphere.
    squares : float64, shape (stays,)
        Written: the squared chords between the two records farthest apart; in the plane, square metres.
    """
    centre = np.empty(3)
    axes = np.empty((3, 3))
    for stay in range(first, last):
        centre[0], centre[1], centre[2] = _mean(points, starts[stay], ends[stay])
        _turn(points, centre[0], centre[1], centre[2], axes)
        squares[stay] = _widest(points, starts[stay], ends[stay], centre, axes)
        length = 1.0
        if points.shape[1] == 3:
            length = math.sqrt(centre[0] ** 2 + centre[1] ** 2 + centre[2] ** 2)
        for axis in range(points.shape[1]):
            centres[stay, axis] = centre[axis] / length
