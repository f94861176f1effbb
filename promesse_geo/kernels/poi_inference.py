"""Inference of stays from protected traces: noise is averaged, and returns of a smoothed path are marked.

Points are unit vectors on the sphere (curvature 1) or metres in the plane (curvature 0).
"""

import math

import numpy as np

from promesse_geo.kernels import loop

_ROUNDS = 30  # of Weiszfeld's algorithm: the last one moves the centre by much less than the remaining noise


@loop("means, counts")
def average_in_time(points, times, offsets, half, curvature, first, last, means, counts):
    """Average the records of a trace in a time window around each record, with running sums.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    times : int64, shape (records,)
        Nanoseconds, ascending in each trace.
    offsets : int64, shape (traces + 1,)
        First record of each trace, and the number of records.
    half : int
        Half the length of the window, in nanoseconds. Records at its ends are in it.
    curvature : float
        1 on the sphere, where means are normalised; 0 in the plane.
    first, last : int
        Averages the traces first … last − 1.
    means : float64, shape (records, 3) or (records, 2)
        Output: unit vectors, or metres in the plane.
    counts : int64, shape (records,)
        Output: number of records in each window.
    """
    dimension = points.shape[1]
    total = np.empty(dimension)
    for trace in range(first, last):
        begin = low = high = offsets[trace]
        end = offsets[trace + 1]
        total[:] = 0.0
        for i in range(begin, end):
            while high < end and times[high] - times[i] <= half:
                for axis in range(dimension):
                    total[axis] += points[high, axis] - points[begin, axis]  # differences keep more digits
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
                for axis in range(dimension):
                    means[i, axis] /= math.sqrt(square)


@loop("centres")
def find_centres(points, starts, ends, core, curvature, first, last, centres):
    """Find the centre c of each stay with the least Σ √(|pᵢ − c|² + core²) over its points pᵢ.

    Weiszfeld's algorithm starts at the mean. The core avoids that it stops at a point pᵢ, whose weight would be
    infinite.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    starts, ends : int64, shape (stays,)
        First record of each stay, and the record after its last.
    core : float
        Radians on the sphere, metres in the plane.
    curvature : float
        1 on the sphere, where centres are normalised; 0 in the plane.
    first, last : int
        Finds the centres of the stays first … last − 1.
    centres : float64, shape (stays, 3) or (stays, 2)
        Output: unit vectors, or metres in the plane.
    """
    dimension = points.shape[1]
    total = np.empty(dimension)
    for stay in range(first, last):
        begin = starts[stay]
        for axis in range(dimension):
            total[axis] = 0.0
            for i in range(begin, ends[stay]):
                total[axis] += points[i, axis] - points[begin, axis]
            centres[stay, axis] = points[begin, axis] + total[axis] / (ends[stay] - begin)
        for _ in range(_ROUNDS):
            weights = 0.0
            total[:] = 0.0
            for i in range(begin, ends[stay]):
                square = core * core
                for axis in range(dimension):
                    square += (points[i, axis] - centres[stay, axis]) ** 2
                weight = 1.0 / math.sqrt(square)
                weights += weight
                for axis in range(dimension):
                    total[axis] += weight * (points[i, axis] - points[begin, axis])
            for axis in range(dimension):
                centres[stay, axis] = points[begin, axis] + total[axis] / weights
        if curvature > 0.0:
            square = 0.0
            for axis in range(dimension):
                square += centres[stay, axis] ** 2
            for axis in range(dimension):
                centres[stay, axis] /= math.sqrt(square)


@loop("marks")
def mark_returns(points, offsets, limit, steps, first, last, marks):
    """Mark the records between two nearby records of a trace, where its path returns to an earlier location.

    The two records are 2 to `steps` records apart; those strictly between them are marked.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    offsets : int64, shape (traces + 1,)
        First record of each trace, and the number of records.
    limit : float
        Largest squared chord of nearby records: between unit vectors on the sphere, in m² in the plane.
    steps : int
        Largest difference between the numbers of the two records.
    first, last : int
        Marks the records of the traces first … last − 1.
    marks : bool, shape (records,)
        Output: whether the record is marked.
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
