"""Loops that nothing can beat, to hold the real ones against."""

import math

import numpy as np
from numba import njit, prange


@njit(parallel=True, cache=True)
def chain(outputs, shares):
    """One square root, two divisions and the stores for each output, each waiting for the one before, as in a walk."""
    points = np.empty((outputs, 3))
    times = np.empty(outputs, np.int64)
    for share in prange(shares):
        value = 1.0 + share
        for i in range(share * outputs // shares, (share + 1) * outputs // shares):
            root = math.sqrt(value)
            first = 1.7 / root
            second = root / (first + 1.1)
            value = second + 1.3
            points[i, 0] = root
            points[i, 1] = first
            points[i, 2] = second
            times[i] = i
    return points, times


@njit(parallel=True, cache=True)
def stores(outputs, shares):
    """The stores alone: first touch of the memory."""
    points = np.empty((outputs, 3))
    times = np.empty(outputs, np.int64)
    for share in prange(shares):
        for i in range(share * outputs // shares, (share + 1) * outputs // shares):
            points[i, 0] = 1.0
            points[i, 1] = 2.0
            points[i, 2] = 3.0
            times[i] = i
    return points, times


@njit(parallel=True, cache=True)
def laplace(records, shares):
    """A logarithm, two sines with their cosines, a square root and the stores for each record."""
    points = np.empty((records, 3))
    for share in prange(shares):
        for i in range(share * records // shares, (share + 1) * records // shares):
            value = 1e-9 * (i + 1)
            radius = -math.log(value)
            points[i, 0] = math.sin(value) * math.cos(radius)
            points[i, 1] = math.cos(value) * math.sin(radius)
            points[i, 2] = math.sqrt(value)
    return points
