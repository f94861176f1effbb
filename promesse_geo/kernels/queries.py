"""Range queries: the number of traces with a record in a box during a time window."""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.sorting import find_first


@inner()
def _on_sphere(points, i, box):
    """Return whether |Δλ| ≤ w and south ≤ φ ≤ north, by the signs of sines of differences.

    With ρ = cos φ: ρ sin(w − |Δλ|) = sin w · ρ cos Δλ − cos w · ρ |sin Δλ|.
    """
    x = points[i, 0]
    y = points[i, 1]
    z = points[i, 2]
    ahead = x * box[0] + y * box[1]
    aside = abs(y * box[0] - x * box[1])
    if box[3] * ahead - box[2] * aside < 0.0:
        return False
    rho = math.sqrt(x * x + y * y)
    return z * box[4] - rho * box[5] >= 0.0 and rho * box[7] - z * box[6] >= 0.0


@inner()
def _in_plane(points, i, box):
    """Return whether a point lies in a square of the plane."""
    return abs(points[i, 0] - box[0]) <= box[2] and abs(points[i, 1] - box[1]) <= box[2]


@loop("counts")
def count_traces(points, times, offsets, spans, boxes, windows, first, last, counts):
    """Count for each query the traces with a record in its box during its window; borders are included.

    A trace can only be in a window if its first time is not after the end of the window. Sorted by first time, these
    are the leading traces; of them those before the latest time reaches the start of the window are skipped.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    times : int64, shape (records,)
        Nanoseconds, ascending in each trace.
    offsets : int64, shape (traces + 1,)
        First record of each trace, and the number of records.
    spans : tuple of three int64 arrays, shape (traces,)
        Traces in ascending order of their first times, those first times, and the latest time of the traces so far, in
        nanoseconds.
    boxes : float64, shape (queries, 8) or (queries, 3)
        On the sphere the cosine and sine of the longitude of the centre, of half the width w, of the southern and of
        the northern latitude; in the plane x and y of the centre and half the side, in metres.
    windows : int64, shape (queries, 2)
        First and last nanosecond.
    first, last : int
        Answers the queries first … last − 1.
    counts : int64, shape (queries,)
        Output: number of traces.
    """
    order, begins, latest = spans
    sphere = points.shape[1] == 3
    for query in range(first, last):
        box = boxes[query]
        start = windows[query, 0]
        end = windows[query, 1]
        traces = 0
        for rank in range(find_first(latest, 0, len(latest), start), len(begins)):
            if begins[rank] > end:
                break
            stop = offsets[order[rank] + 1]
            if times[stop - 1] < start:
                continue
            for i in range(find_first(times, offsets[order[rank]], stop, start), stop):
                if times[i] > end:
                    break
                if _on_sphere(points, i, box) if sphere else _in_plane(points, i, box):
                    traces += 1
                    break
        counts[query] = traces


EDGES = 255
"""Number of edges between the slabs of an axis; one less than a power of two, for the search of a slab."""

BITS = 62
"""Number of queries in a word of the masks, so that each bit is a positive int64 and an exact float64."""


@inner()
def _slab_of(edges, value):
    """Return the number of sorted edges that are not greater than a value."""
    slab = 0
    step = (EDGES + 1) // 2
    while step:
        if edges[slab + step - 1] <= value:
            slab += step
        step //= 2
    return slab


@loop()
def count_traces_by_record(points, times, offsets, edges, masks, boxes, windows, first, last):
    """Count for each query the traces with a record in its box during its window; borders are included.

    The same answers as of `count_traces`, but each record searches its queries: those whose bits are set in the mask of
    its slab along each axis. That takes about the same time for all traces, however many are in a window.

    Parameters
    ----------
    points, times, offsets, boxes, windows
        As of `count_traces`.
    edges : float64, shape (axes + 1, EDGES)
        Ascending edges of slabs along the axes of `points`, and of times. A slab holds its lower edge.
    masks : int64, shape (axes + 1, EDGES + 1, words)
        Queries that overlap each slab: query q is bit q % BITS of word q // BITS.
    first, last : int
        Reads the traces first … last − 1.

    Returns
    -------
    int64, shape (queries,)
        Number of these traces.
    """
    axes = points.shape[1]
    words = masks.shape[2]
    counts = np.zeros(len(boxes), np.int64)
    found = np.zeros(words, np.int64)
    slabs = np.zeros(3, np.int64)
    for trace in range(first, last):
        found[:] = 0
        for i in range(offsets[trace], offsets[trace + 1]):
            during = _slab_of(edges[axes], float(times[i]))
            for axis in range(axes):
                slabs[axis] = _slab_of(edges[axis], points[i, axis])
            for word in range(words):
                bits = masks[axes, during, word] & ~found[word]
                if bits == 0:
                    continue
                for axis in range(axes):
                    bits &= masks[axis, slabs[axis], word]
                while bits:
                    bit = bits & -bits
                    bits ^= bit
                    query = word * BITS + math.frexp(float(bit))[1] - 1
                    if windows[query, 0] <= times[i] <= windows[query, 1] and (
                        _on_sphere(points, i, boxes[query]) if axes == 3 else _in_plane(points, i, boxes[query])
                    ):
                        found[word] |= bit
                        counts[query] += 1
    return counts
