"""Loops that nothing can beat, to hold the real ones against: in the same threads, into memory of the same kind."""

import math

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import loop


@loop
def _chain(first, last, points, times):
    value = 1.0 + first
    for i in range(first, last):
        root = math.sqrt(value)
        one = 1.7 / root
        other = root / (one + 1.1)
        value = other + 1.3
        points[i, 0] = root
        points[i, 1] = one
        points[i, 2] = other
        times[i] = i


@loop
def _stores(first, last, points, times):
    for i in range(first, last):
        points[i, 0] = 1.0
        points[i, 1] = 2.0
        points[i, 2] = 3.0
        times[i] = i


@loop
def _laplace(first, last, points):
    for i in range(first, last):
        value = 1e-9 * (i + 1)
        radius = -math.log(value)
        points[i, 0] = math.sin(value) * math.cos(radius)
        points[i, 1] = math.cos(value) * math.sin(radius)
        points[i, 2] = math.sqrt(value)


def chain(outputs: int) -> None:
    """One square root, two divisions and the stores for each output, each waiting for the one before, as in a walk."""
    points, times = np.empty((outputs, 3)), np.empty(outputs, np.int64)
    threads.run(lambda first, last: _chain(first, last, points, times), threads.even(outputs))


def stores(outputs: int) -> None:
    """The stores alone: first touch of the memory."""
    points, times = np.empty((outputs, 3)), np.empty(outputs, np.int64)
    threads.run(lambda first, last: _stores(first, last, points, times), threads.even(outputs))


def laplace(records: int) -> None:
    """A logarithm, two sines with their cosines, a square root and the stores for each record."""
    points = np.empty((records, 3))
    threads.run(lambda first, last: _laplace(first, last, points), threads.even(records))
