"""Planar Laplace noise: a direction and a distance for each record, and the move.

Bound: for each record a logarithm, two sines with their cosines, and a square root.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop

_FINE = 2.0**-42  # random numbers have 42 bits: three of them from one block of 128


@inner
def _draw(words, i):
    """Direction in [0, 2π), and minus the logarithm of two uniform numbers in (0, 1), from the record's block.

    −log u₁ − log u₂ is Gamma(2, 1), the radius of planar Laplace noise at ε = 1.
    """
    low = words[i, 0]
    high = words[i, 1]
    turn = np.float64(low >> np.uint64(22)) * _FINE
    first = (np.float64(high >> np.uint64(22)) + 0.5) * _FINE
    rest = ((low & np.uint64(0x3FFFFF)) << np.uint64(20)) | (high & np.uint64(0xFFFFF))
    second = (np.float64(rest) + 0.5) * _FINE
    return 2.0 * math.pi * turn, -math.log(first * second)


@loop
def move_on_sphere(points, words, mean_step, out):
    """Move unit vectors along the great circle in the drawn bearing; mean_step = 1/ε in radians.

    p = a cos δ + (north cos β + east sin β) sin δ, where east = (−y, x, 0)/ρ and north = (−zx, −zy, ρ²)/ρ.
    """
    for i in range(points.shape[0]):
        bearing, radius = _draw(words, i)
        x = points[i, 0]
        y = points[i, 1]
        z = points[i, 2]
        distance = radius * mean_step
        along = math.sin(distance)
        stay = math.cos(distance)
        square = x * x + y * y
        east_x = 0.0
        east_y = 1.0
        rho = 0.0
        if square > 0.0:
            rho = math.sqrt(square)
            east_x = -y / rho
            east_y = x / rho
        northward = math.cos(bearing) * along
        eastward = math.sin(bearing) * along
        # north = (−z · east_y, z · east_x, ρ)
        out[i, 0] = x * stay - z * east_y * northward + east_x * eastward
        out[i, 1] = y * stay + z * east_x * northward + east_y * eastward
        out[i, 2] = z * stay + rho * northward


@loop
def move_in_plane(points, words, mean_step, out):
    """Move points of the plane in the drawn direction; mean_step = 1/ε in metres."""
    for i in range(points.shape[0]):
        bearing, radius = _draw(words, i)
        out[i, 0] = points[i, 0] + radius * mean_step * math.sin(bearing)
        out[i, 1] = points[i, 1] + radius * mean_step * math.cos(bearing)


@loop
def label_records(names, offsets, first, last, blocks):
    """Blocks of records first … last − 1: the three words of the trace's name, and the record's number in it."""
    trace = np.searchsorted(offsets, first, side="right") - 1
    for i in range(first, last):
        while i >= offsets[trace + 1]:
            trace += 1
        blocks[i - first, 0] = names[trace, 0]
        blocks[i - first, 1] = names[trace, 1]
        blocks[i - first, 2] = names[trace, 2]
        blocks[i - first, 3] = i - offsets[trace]
