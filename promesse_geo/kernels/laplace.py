"""Planar Laplace noise: a direction and a distance for each record, computed from 128 random bits."""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.sorting import find_first

_FINE = 2.0**-42  # random numbers have 42 bits, so that a block of 128 bits holds three


@inner()
def _draw(words, i):
    """Return a direction in [0, 2π) and −ln u₁ − ln u₂, with u₁ and u₂ uniform in (0, 1), from a block of random bits.

    The sum is distributed as Gamma(2, 1), like the radius of planar Laplace noise with ε = 1.
    """
    low = words[i, 0]
    high = words[i, 1]
    turn = np.float64(low >> np.uint64(22)) * _FINE
    first = (np.float64(high >> np.uint64(22)) + 0.5) * _FINE
    rest = ((low & np.uint64(0x3FFFFF)) << np.uint64(20)) | (high & np.uint64(0xFFFFF))
    second = (np.float64(rest) + 0.5) * _FINE
    return 2.0 * math.pi * turn, -math.log(first * second)


@loop("out")
def move_on_sphere(points, words, mean_step, out):
    """Add planar Laplace noise to unit vectors, along the great circle in a random direction.

    p = a cos δ + (north · cos β + east · sin β) sin δ with distance δ and bearing β, where east = (−y, x, 0)/ρ,
    north = (−z x, −z y, ρ²)/ρ and ρ = √(x² + y²).

    Parameters
    ----------
    points : float64, shape (records, 3)
        Unit vectors.
    words : uint64, shape (records, 2)
        Random bits.
    mean_step : float
        1/ε in radians: half the mean distance.
    out : float64, shape (records, 3)
        Output: unit vectors.
    """
    for i in range(points.shape[0]):
        bearing, radius = _draw(words, i)
        x = points[i, 0]
        y = points[i, 1]
        z = points[i, 2]
        distance = radius * mean_step
        sine = math.sin(distance)
        cosine = math.cos(distance)
        square = x * x + y * y
        east_x = 0.0
        east_y = 1.0
        rho = 0.0
        if square > 0.0:
            rho = math.sqrt(square)
            east_x = -y / rho
            east_y = x / rho
        northward = math.cos(bearing) * sine
        eastward = math.sin(bearing) * sine
        # north = (−z · east_y, z · east_x, ρ)
        out[i, 0] = x * cosine - z * east_y * northward + east_x * eastward
        out[i, 1] = y * cosine + z * east_x * northward + east_y * eastward
        out[i, 2] = z * cosine + rho * northward


@loop("out")
def move_in_plane(points, words, mean_step, out):
    """Add planar Laplace noise to points of the plane: p = a + r (sin β, cos β) with distance r and bearing β.

    Parameters
    ----------
    points : float64, shape (records, 2)
        Metres.
    words : uint64, shape (records, 2)
        Random bits.
    mean_step : float
        1/ε in metres: half the mean distance.
    out : float64, shape (records, 2)
        Output: metres.
    """
    for i in range(points.shape[0]):
        bearing, radius = _draw(words, i)
        out[i, 0] = points[i, 0] + radius * mean_step * math.sin(bearing)
        out[i, 1] = points[i, 1] + radius * mean_step * math.cos(bearing)


@loop("blocks")
def label_records(names, offsets, first, last, blocks):
    """Write the block that is encrypted to the random bits of each record: the name of its trace and its number there.

    Parameters
    ----------
    names : uint32, shape (traces, 3)
        Name of each trace, 96 bits.
    offsets : int64, shape (traces + 1,)
        First record of each trace, and the number of records.
    first, last : int
        Writes the blocks of the records first … last − 1.
    blocks : uint32, shape (last − first or more, 4)
        Output: distinct blocks of 128 bits.
    """
    trace = find_first(offsets, 0, len(offsets), first + 1) - 1
    for i in range(first, last):
        while i >= offsets[trace + 1]:
            trace += 1
        blocks[i - first, 0] = names[trace, 0]
        blocks[i - first, 1] = names[trace, 1]
        blocks[i - first, 2] = names[trace, 2]
        blocks[i - first, 3] = i - offsets[trace]
