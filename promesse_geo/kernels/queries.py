"""Range queries: in how many traces a record lies inside a box during a window.

Bound: one visit to each record in the window of each trace alive then, up to the first one inside.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop


@inner
def _on_sphere(points, i, box):
    """|Δlon| ≤ w and south ≤ lat ≤ north, as signs of sines of differences; box = cosines and sines.

    With θ = |Δlon| and ρ = cos lat: ρ sin(w − θ) = sin w · (ρ cos θ) − cos w · (ρ sin θ).
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


@inner
def _in_plane(points, i, box):
    return abs(points[i, 0] - box[0]) <= box[2] and abs(points[i, 1] - box[1]) <= box[2]


@inner
def _first_since(times, first, last, start):
    """The first of records first … last − 1 whose time is not before start."""
    while first < last:
        middle = (first + last) // 2
        if times[middle] < start:
            first = middle + 1
        else:
            last = middle
    return first


@loop
def count_traces(points, times, offsets, spans, boxes, windows, first, last, counts):
    """Count the traces with a record inside, for queries first … last − 1.

    spans = (traces by their first time, those times, the latest time of any trace up to there): so the traces alive in
    a window are among those from the first whose third entry reaches its start to the last that begins before its end.
    """
    order, begins, latest = spans
    sphere = points.shape[1] == 3
    for query in range(first, last):
        box = boxes[query]
        start = windows[query, 0]
        end = windows[query, 1]
        found = 0
        for k in range(np.searchsorted(latest, start), np.searchsorted(begins, end, side="right")):
            stop = offsets[order[k] + 1]
            if times[stop - 1] < start:
                continue
            for i in range(_first_since(times, offsets[order[k]], stop, start), stop):
                if times[i] > end:
                    break
                if _on_sphere(points, i, box) if sphere else _in_plane(points, i, box):
                    found += 1
                    break
        counts[query] = found
