"""Degrees to unit vectors and back.

Bound: two polynomials for each sine with its cosine on the way in, two arc tangents on the way out.
"""

import math

import numpy as np

from promesse_geo.kernels import loop

# Degrees come back rounded to 13 decimals (11 nanometres): one with up to 12 decimals returns to the digit.
_DECIMALS = 1e13


_QUARTER = math.pi / 2.0  # the double, on which the signs at the antimeridian and the longitudes at poles hang
_QUARTER_LEADING = float(np.rint(_QUARTER * 2.0**24) / 2.0**24)  # times 1 to 4 it is exact
_QUARTER_REST = 6.123233995736766e-17 + (_QUARTER - _QUARTER_LEADING)  # of the true π/2
# 1/n! with alternating signs, the largest powers first: all that matters up to 45 degrees
_SINE = tuple((-1.0) ** n / math.factorial(2 * n + 1) for n in range(8, 0, -1))
_COSINE = tuple((-1.0) ** n / math.factorial(2 * n) for n in range(8, 1, -1))


@loop
def _sine_cosine(radians):
    """Sine and cosine of angles up to some turns, to the last digit."""
    quarters = np.rint(radians / _QUARTER)
    x = (radians - quarters * _QUARTER_LEADING) - quarters * _QUARTER_REST
    square = x * x
    odd_terms = 0.0
    for factor in _SINE:
        odd_terms = odd_terms * square + factor
    even_terms = 0.0
    for factor in _COSINE:
        even_terms = even_terms * square + factor
    sine = x + x * square * odd_terms
    cosine = 1.0 - (0.5 * square - square * square * even_terms)
    half = 0.5 * quarters
    swapped = np.rint(half) != half
    below = np.floor(half)
    above = np.floor(half + 0.5)
    sine_sign = 1.0 - 2.0 * (below - 2.0 * np.floor(0.5 * below))
    cosine_sign = 1.0 - 2.0 * (above - 2.0 * np.floor(0.5 * above))
    return sine_sign * (cosine if swapped else sine), cosine_sign * (sine if swapped else cosine)


@loop
def to_vectors(longitudes, latitudes, first, last, vectors):
    """Write (cos φ cos λ, cos φ sin λ, sin φ) of records first … last − 1; degrees in, (n, 3) out."""
    radians = math.pi / 180.0
    for i in range(first, last):
        north, flat = _sine_cosine(latitudes[i] * radians)
        east, ahead = _sine_cosine(longitudes[i] * radians)
        vectors[i, 0] = flat * ahead
        vectors[i, 1] = flat * east
        vectors[i, 2] = north


@loop
def to_degrees(vectors, first, last, longitudes, latitudes):
    """Write λ = atan2(y, x), φ = atan2(z, √(x² + y²)): accurate at the poles, where arcsin(z) is not."""
    degrees = 180.0 / math.pi
    for i in range(first, last):
        x = vectors[i, 0]
        y = vectors[i, 1]
        longitudes[i] = np.rint(math.atan2(y, x) * degrees * _DECIMALS) / _DECIMALS
        latitudes[i] = np.rint(math.atan2(vectors[i, 2], math.sqrt(x * x + y * y)) * degrees * _DECIMALS) / _DECIMALS
