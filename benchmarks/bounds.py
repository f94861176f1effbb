"""Lower bounds: minimal loops with the same threads and the same type of memory as the real ones."""

import math

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import loop, polyline
from promesse_geo.traces.traces import Traces


@loop("points, times")
def _chain(first, last, points, times):
    value = 1.0 + first
    for i in range(first, last):
        root = math.sqrt(value)
        first = 1.7 / root
        second = root / (first + 1.1)
        value = second + 1.3
        points[i, 0] = root
        points[i, 1] = first
        points[i, 2] = second
        times[i] = i


@loop("points, times")
def _stores(first, last, points, times):
    for i in range(first, last):
        points[i, 0] = 1.0
        points[i, 1] = 2.0
        points[i, 2] = 3.0
        times[i] = i


@loop("points")
def _laplace(first, last, points):
    for i in range(first, last):
        value = 1e-9 * (i + 1)
        radius = -math.log(value)
        points[i, 0] = math.sin(value) * math.cos(radius)
        points[i, 1] = math.cos(value) * math.sin(radius)
        points[i, 2] = math.sqrt(value)


@loop("sums")
def _read(first, last, points, sums):
    total = 0.0
    for i in range(first, last):
        for axis in range(points.shape[1]):
            total += points[i, axis]
    sums[first] = total


@loop("lengths")
def _feet(first, last, points, lengths):
    stops = np.zeros(len(points), np.bool_)
    stops[-1] = True
    for i in range(first, last):
        a = (i + 1) % len(points)
        square, _, _, _ = polyline.foot(points[i, 0], points[i, 1], points[i, 2], points, a, stops, 1.0)
        lengths[i] = math.sqrt(square)


@loop("sums")
def _windows(first, last, points, times, offsets, windows, sums):
    for query in range(first, last):
        inside = 0.0
        for trace in range(len(offsets) - 1):
            begin, end = offsets[trace], offsets[trace + 1]
            if times[end - 1] < windows[query, 0] or times[begin] > windows[query, 1]:
                continue
            at = begin + np.searchsorted(times[begin:end], windows[query, 0])
            while at < end and times[at] <= windows[query, 1]:
                inside += points[at, 0] + points[at, 1]
                at += 1
        sums[query] = inside


def chain(outputs: int) -> None:
    """Compute one square root, two divisions and the stores for each output, in a chain as in the smoothing."""
    points, times = np.empty((outputs, 3)), np.empty(outputs, np.int64)
    threads.run(lambda first, last: _chain(first, last, points, times), threads.even(outputs))


def stores(outputs: int) -> None:
    """Store the outputs only: first touch of the memory."""
    points, times = np.empty((outputs, 3)), np.empty(outputs, np.int64)
    threads.run(lambda first, last: _stores(first, last, points, times), threads.even(outputs))


def laplace(records: int) -> None:
    """Compute a logarithm, two sines and cosines, a square root and the stores for each record."""
    points = np.empty((records, 3))
    threads.run(lambda first, last: _laplace(first, last, points), threads.even(records))


def read(points: np.ndarray) -> None:
    """Read the coordinates once: memory."""
    sums = np.zeros(len(points))
    threads.run(lambda first, last: _read(first, last, points, sums), threads.even(len(points)))


def feet(points: np.ndarray) -> None:
    """Compute the exact distance from each record to one segment, as if the nearest were known."""
    lengths = np.empty(len(points))
    threads.run(lambda first, last: _feet(first, last, points, lengths), threads.even(len(points)))


def windows(traces: Traces, spans: np.ndarray) -> None:
    """Add once for each record in each window."""
    sums = np.empty(len(spans))
    threads.run(
        lambda first, last: _windows(first, last, traces.points, traces.times, traces.offsets, spans, sums),
        threads.fair(np.full(len(spans), traces.records)),
    )
