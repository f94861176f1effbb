"""The azimuthal equidistant plane of the sphere and back: true distances and bearings from its middle.

Bound: an arc tangent and two square roots a record, or a sine and a cosine.
"""

import math

from promesse_geo.kernels import loop


@loop
def to_plane(points, axes, scale, first, last, x, y):
    """Write metres of unit vectors first … last − 1, and return the largest angle from the middle.

    axes = east, north and up there.
    """
    largest = 0.0
    for i in range(first, last):
        a = points[i, 0]
        b = points[i, 1]
        c = points[i, 2]
        east = a * axes[0, 0] + b * axes[0, 1] + c * axes[0, 2]
        north = a * axes[1, 0] + b * axes[1, 1] + c * axes[1, 2]
        up = a * axes[2, 0] + b * axes[2, 1] + c * axes[2, 2]
        flat = math.sqrt(east * east + north * north)
        angle = math.atan2(flat, up)
        x[i] = scale * angle * (east / flat if flat > 0.0 else 1.0)  # straight below the middle is east of it
        y[i] = scale * angle * (north / flat if flat > 0.0 else 0.0)
        largest = max(largest, angle)
    return largest


@loop
def to_sphere(x, y, axes, scale, points):
    """Write the unit vectors of places in the plane."""
    for i in range(len(x)):
        away = math.sqrt(x[i] * x[i] + y[i] * y[i])
        angle = away / scale
        flat = math.sin(angle) / away if away > 0.0 else 0.0
        up = math.cos(angle)
        for k in range(3):
            points[i, k] = flat * (x[i] * axes[0, k] + y[i] * axes[1, k]) + up * axes[2, k]
