"""Conversions between degrees, unit vectors and the azimuthal equidistant plane.

Coordinates in degrees are those of a sphere: longitude λ and latitude φ. The plane keeps true distances and bearings
from its centre.
"""

import math

import numpy as np

from promesse_geo.kernels import loop

# Degrees are rounded to 13 decimals (11 nanometres), so that input with up to 12 decimals is returned exactly.
_DECIMALS = 1e13


@loop("vectors")
def to_vectors(longitudes, latitudes, first, last, vectors):
    """Convert degrees to unit vectors (cos φ cos λ, cos φ sin λ, sin φ).

    Parameters
    ----------
    longitudes, latitudes : float64, shape (records,)
        Degrees.
    first, last : int
        Converts the records first … last − 1.
    vectors : float64, shape (records, 3)
        Output: unit vectors.
    """
    radians = math.pi / 180.0
    for i in range(first, last):
        x = longitudes[i] * radians
        y = latitudes[i] * radians
        cosine = math.cos(y)
        vectors[i, 0] = cosine * math.cos(x)
        vectors[i, 1] = cosine * math.sin(x)
        vectors[i, 2] = math.sin(y)


@loop("longitudes, latitudes")
def to_degrees(vectors, first, last, longitudes, latitudes):
    """Convert unit vectors to degrees: λ = atan2(y, x), φ = atan2(z, √(x² + y²)).

    Unlike arcsin(z), this is accurate at the poles.

    Parameters
    ----------
    vectors : float64, shape (records, 3)
        Unit vectors.
    first, last : int
        Converts the records first … last − 1.
    longitudes, latitudes : float64, shape (records,)
        Output: degrees.
    """
    degrees = 180.0 / math.pi
    for i in range(first, last):
        x = vectors[i, 0]
        y = vectors[i, 1]
        longitudes[i] = np.rint(math.atan2(y, x) * degrees * _DECIMALS) / _DECIMALS
        latitudes[i] = np.rint(math.atan2(vectors[i, 2], math.sqrt(x * x + y * y)) * degrees * _DECIMALS) / _DECIMALS


@loop("rows")
def find_extremes(vectors, rows):
    """Find the records farthest west, south, east and north, without trigonometry.

    y / (|x| + |y|), folded at ±1, increases with the longitude.

    Parameters
    ----------
    vectors : float64, shape (records, 3)
        Unit vectors; at least one.
    rows : int64, shape (4,)
        Output: rows of the least longitude and latitude, and of the greatest longitude and latitude.
    """
    west = south = math.inf
    east = north = -math.inf
    for i in range(len(vectors)):
        x, y, z = vectors[i, 0], vectors[i, 1], vectors[i, 2]
        size = abs(x) + abs(y)
        turn = y / size if size > 0.0 else 0.0
        if x < 0.0:
            turn = 2.0 - turn if y >= 0.0 else -2.0 - turn
        if turn < west:
            west, rows[0] = turn, i
        if z < south:
            south, rows[1] = z, i
        if turn > east:
            east, rows[2] = turn, i
        if z > north:
            north, rows[3] = z, i


@loop("x, y")
def to_plane(points, axes, scale, first, last, x, y):
    """Project unit vectors to the azimuthal equidistant plane.

    A point p at angle δ = atan2(√(e² + n²), u) from the centre, where (e, n, u) = axes · p, is at
    (x, y) = R δ (e, n)/√(e² + n²).

    Parameters
    ----------
    points : float64, shape (records, 3)
        Unit vectors.
    axes : float64, shape (3, 3)
        Rows: the unit vectors of east, north and up at the centre.
    scale : float
        Radius R of the sphere in metres.
    first, last : int
        Projects the records first … last − 1.
    x, y : float64, shape (records,)
        Output: metres east and north of the centre.

    Returns
    -------
    float
        Largest angle from the centre, in radians.
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
        x[i] = scale * angle * (east / flat if flat > 0.0 else 1.0)  # the antipode of the centre is put east of it
        y[i] = scale * angle * (north / flat if flat > 0.0 else 0.0)
        largest = max(largest, angle)
    return largest


@loop("points")
def to_sphere(x, y, axes, scale, points):
    """Convert points of the azimuthal equidistant plane to unit vectors; the inverse of `to_plane`.

    With r = √(x² + y²) and δ = r/R: p = sin δ · (x · east + y · north)/r + cos δ · up.

    Parameters
    ----------
    x, y : float64, shape (records,)
        Metres east and north of the centre.
    axes : float64, shape (3, 3)
        Rows: the unit vectors of east, north and up at the centre.
    scale : float
        Radius R of the sphere in metres.
    points : float64, shape (records, 3)
        Output: unit vectors.
    """
    for i in range(len(x)):
        distance = math.sqrt(x[i] * x[i] + y[i] * y[i])
        angle = distance / scale
        flat = math.sin(angle) / distance if distance > 0.0 else 0.0
        up = math.cos(angle)
        for k in range(3):
            points[i, k] = flat * (x[i] * axes[0, k] + y[i] * axes[1, k]) + up * axes[2, k]
