"""What is left of independent noise when records are averaged.

Bound: each record enters and leaves a running sum once; a few dozen square roots for each record of a stay.
"""

import math

import numpy as np

from promesse_geo.kernels import loop

_ROUNDS = 30  # of Weiszfeld's algorithm: by then it moves by less than the noise that is left


@loop
def average_in_time(points, times, offsets, half, curvature, first, last, means, counts):
    """For the records of traces first … last − 1: the mean of all within `half` of its time, and their number."""
    dimension = points.shape[1]
    total = np.empty(dimension)
    for trace in range(first, last):
        begin = low = high = offsets[trace]
        end = offsets[trace + 1]
        total[:] = 0.0
        for i in range(begin, end):
            while high < end and times[high] - times[i] <= half:
                for axis in range(dimension):
                    total[axis] += points[high, axis] - points[begin, axis]
                high += 1
            while times[i] - times[low] > half:
                for axis in range(dimension):
                    total[axis] -= points[low, axis] - points[begin, axis]
                low += 1
            counts[i] = high - low
            square = 0.0
            for axis in range(dimension):
                means[i, axis] = points[begin, axis] + total[axis] / counts[i]
                square += means[i, axis] ** 2
            if curvature > 0.0:
                means[i] /= math.sqrt(square)


@loop
def find_centres(points, starts, ends, core, curvature, first, last, centres):
    """For runs first … last − 1 of records: the point with the least sum of distances √(d² + core²) to them.

    Weiszfeld's algorithm from the mean. The core keeps a record on the centre from holding it.
    """
    dimension = points.shape[1]
    total = np.empty(dimension)
    for run in range(first, last):
        begin = starts[run]
        for axis in range(dimension):
            total[axis] = 0.0
            for i in range(begin, ends[run]):
                total[axis] += points[i, axis] - points[begin, axis]
            centres[run, axis] = points[begin, axis] + total[axis] / (ends[run] - begin)
        for _ in range(_ROUNDS):
            weights = 0.0
            total[:] = 0.0
            for i in range(begin, ends[run]):
                square = core * core
                for axis in range(dimension):
                    square += (points[i, axis] - centres[run, axis]) ** 2
                weight = 1.0 / math.sqrt(square)
                weights += weight
                for axis in range(dimension):
                    total[axis] += weight * (points[i, axis] - points[begin, axis])
            for axis in range(dimension):
                centres[run, axis] = points[begin, axis] + total[axis] / weights
        if curvature > 0.0:
            square = 0.0
            for axis in range(dimension):
                square += centres[run, axis] ** 2
            centres[run] /= math.sqrt(square)


@loop
def mark_returns(points, offsets, limit, steps, first, last, marks):
    """Mark the records of traces first … last − 1 inside of stretches whose ends are near each other.

    Stretches have 2 to `steps` steps; near are squared distances up to the limit, in kernel units.
    """
    for trace in range(first, last):
        end = offsets[trace + 1]
        for i in range(offsets[trace], end):
            marks[i] = False
        for i in range(offsets[trace], end):
            for j in range(i + 2, min(i + steps + 1, end)):
                square = 0.0
                for axis in range(points.shape[1]):
                    square += (points[j, axis] - points[i, axis]) ** 2
                if square <= limit:
                    for inside in range(i + 1, j):
                        marks[inside] = True
