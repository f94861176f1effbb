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
