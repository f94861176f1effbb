"""Degrees to unit vectors and back.

Bound: four trigonometric calls a record on the way in, two arc tangents on the way out.
"""

import math

import numpy as np

from promesse_geo.kernels import loop

# Degrees come back rounded to 13 decimals (11 nanometres): one with up to 12 decimals returns to the digit.
_DECIMALS = 1e13


@loop
def to_vectors(longitudes, latitudes, first, last, vectors):
    """Write (cos φ cos λ, cos φ sin λ, sin φ) of records first … last − 1; degrees in, (n, 3) out."""
    radians = math.pi / 180.0
    for i in range(first, last):
        x = longitudes[i] * radians
        y = latitudes[i] * radians
        cosine = math.cos(y)
        vectors[i, 0] = cosine * math.cos(x)
        vectors[i, 1] = cosine * math.sin(x)
        vectors[i, 2] = math.sin(y)


@loop
def to_degrees(vectors, first, last, longitudes, latitudes):
    """Write λ = atan2(y, x), φ = atan2(z, √(x² + y²)): accurate at the poles, where arcsin(z) is not."""
    degrees = 180.0 / math.pi
    for i in range(first, last):
        x = vectors[i, 0]
        y = vectors[i, 1]
        longitudes[i] = np.rint(math.atan2(y, x) * degrees * _DECIMALS) / _DECIMALS
        latitudes[i] = np.rint(math.atan2(vectors[i, 2], math.sqrt(x * x + y * y)) * degrees * _DECIMALS) / _DECIMALS


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
