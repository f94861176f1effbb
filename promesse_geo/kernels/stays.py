"""Stays: runs of records that are all within a diameter of each other.

A distance is a squared chord or a squared length in the plane, and is always compared as such. The shortcuts below
only prove what that comparison gives, with a margin for rounding:

- A circle around the window: a record is within the diameter of all records if its distance to the centre plus the
  largest one in the window is at most the diameter. The centre is that of the bounding box, which approaches the
  centre of symmetric clouds quickly (records all over a circle of the diameter: by its square, the mean by its root).
- Balls around 16, 256 and 4,096 records: whole blocks are skipped while the window is searched backwards.
- A pivot: records since the last search that are still near the pivot need no search of what lies well within reach.

Cost: one or two distances per record of a short window on sparse data, one distance to the centre on dense data.
Long windows of records all along the border of a figure of constant diameter that is no circle, such as a Reuleaux
triangle, are searched block by block.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import read, square_between, square_to

SHORT = 192  # windows up to this many records are searched one by one where a circle does not decide
_PATIENCE = 4  # distances per record of a window that does not move before a circle is made for it
_ROUNDED = 1.0 - 1e-12  # differences of records are exact to 1e-15 of themselves
_LEVELS = 3  # balls around 16, 256 and 4,096 records


@inner
def _middle(points, begin, end):
    """Return the centre (x, y, z) of the bounding box of records begin … end − 1; z is 0 in the plane."""
    low_x, low_y, low_z = read(points, begin)
    high_x, high_y, high_z = low_x, low_y, low_z
    for i in range(begin + 1, end):
        x, y, z = read(points, i)
        low_x = min(low_x, x)
        low_y = min(low_y, y)
        low_z = min(low_z, z)
        high_x = max(high_x, x)
        high_y = max(high_y, y)
        high_z = max(high_z, z)
    return 0.5 * (low_x + high_x), 0.5 * (low_y + high_y), 0.5 * (low_z + high_z)


@inner
def _newest_beyond(points, i, start, limit):
    """The newest of records start … i − 1 that is beyond the limit from record i; start − 1 if none is."""
    j = i - 1
    while j - 3 >= start:  # four at once, with one branch
        far = max(
            square_between(points, i, points, j),
            square_between(points, i, points, j - 1),
            square_between(points, i, points, j - 2),
            square_between(points, i, points, j - 3),
        )
        if far > limit:
            break
        j -= 4
    while j >= start and square_between(points, i, points, j) <= limit:
        j -= 1
    return j


@inner
def _make_balls(points, base, start, i, edge, balls, floors, made):
    """Bring the balls around whole blocks of records start … i − 1 up to date: centre, and edge − radius."""
    for level in range(1, _LEVELS + 1):
        shift = 4 * level
        block = max(made[level], (start - base + (1 << shift) - 1) >> shift)
        if (block + 1) << shift > i - base:
            break  # nor is a larger block complete
        while (block + 1) << shift <= i - base:
            at = floors[level] + block
            x = y = z = radius = 0.0
            if level == 1:
                begin = base + block * 16
                x, y, z = _middle(points, begin, begin + 16)
                for j in range(begin, begin + 16):
                    radius = max(radius, square_to(points, j, x, y, z))
                radius = math.sqrt(radius)
            else:
                child = floors[level - 1] + block * 16
                for j in range(child, child + 16):
                    x += balls[j, 0] / 16
                    y += balls[j, 1] / 16
                    z += balls[j, 2] / 16
                for j in range(child, child + 16):
                    away = (balls[j, 0] - x) ** 2 + (balls[j, 1] - y) ** 2 + (balls[j, 2] - z) ** 2
                    radius = max(radius, math.sqrt(away) + edge - balls[j, 3])
            balls[at, 0] = x
            balls[at, 1] = y
            balls[at, 2] = z
            balls[at, 3] = edge - radius
            block += 1
        made[level] = block


@inner
def _newest_beyond_by_balls(points, i, start, rest, base, limit, less, balls, floors):
    """The newest of records start … rest − 1 that is beyond the limit from record i; and how many looks it took.

    Whole blocks whose ball is within the edge less `less` are passed.
    """
    j = rest
    looks = 0
    while j > start:
        level = _LEVELS if (j - base) & 15 == 0 else 0
        while level > 0:
            shift = 4 * level
            size = 1 << shift
            if (j - base) & (size - 1) == 0 and j - size >= start:
                at = floors[level] + ((j - base) >> shift) - 1
                looks += 1
                room = balls[at, 3] - less
                if room > 0.0 and square_to(points, i, balls[at, 0], balls[at, 1], balls[at, 2]) <= room * room:
                    break
            level -= 1
        if level > 0:
            j -= 1 << 4 * level
            continue
        bound = max(start, j - 1 - ((j - base - 1) & 15))  # down to the end of the next block
        looks += j - bound
        while j > bound:
            j -= 1
            if square_between(points, i, points, j) > limit:
                return j, looks
    return start - 1, looks


@inner
def _start_levels(records, floors):
    """Write where the balls of each level begin, and return the number of balls of all levels."""
    floors[:] = 0
    for level in range(1, _LEVELS + 1):
        floors[level + 1] = floors[level] + (records >> 4 * level) + 1
    return floors[_LEVELS + 1]


@loop
def find(points, times, offsets, limit, duration, short, first, last, starts, ends, counts):
    """Find the stays of traces first … last − 1.

    A record within the limit of every record of the candidate joins it. Otherwise, a candidate of at least two
    records and the duration is a stay, and the record begins the next candidate. A shorter candidate loses its oldest
    records until the record joins: all up to the newest one beyond the limit, as removals never make a stay.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    times : int64, shape (records,)
        Nanoseconds, ascending in each trace.
    offsets : int64, shape (traces + 1,)
        The first record of each trace, and the number of records.
    limit : float
        The diameter as a squared chord, or in square metres.
    duration : int
        Least nanoseconds from the first to the last record of a stay.
    short : int
        Windows up to this many records are searched one by one (`SHORT`).
    first, last : int
        The traces to search.
    starts, ends : int64, shape (records // 2,)
        Written from slot offsets[trace] // 2 on: first record of each stay of a trace, and the record after its last.
    counts : int64, shape (traces,)
        Written: the number of stays of each trace.
    """
    base = offsets[first]
    edge = math.sqrt(limit) * _ROUNDED
    step = edge / 8
    floors = np.empty(_LEVELS + 2, np.int64)
    balls = np.empty((_start_levels(offsets[last] - base, floors), 4))
    made = np.zeros(_LEVELS + 1, np.int64)
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        slot = begin // 2
        found = 0
        start = begin
        # A circle holds records ringed … circled − 1: around the middle of the window from its start (is_whole), or
        # of edge − step around a pivot, where the records since are within a step of the pivot.
        ringed = circled = pivot = begin
        is_whole = False
        x = y = z = 0.0
        farthest = 0.0  # from the middle, squared, and what is left of the edge beyond it
        margin = edge
        looks = 0  # at balls and records since the start last moved or a circle was made
        for i in range(begin, end):
            newest = start - 1
            rest = i  # from here on no record is beyond the limit
            window = i - start
            is_short = window <= short
            is_held = is_whole and ringed == start
            is_late = looks > _PATIENCE * window
            is_lasting = not is_short and times[i - 1] - times[start] >= duration
            if is_held or is_late or is_lasting:
                if not is_held or is_late:
                    looks = 0
                    x, y, z = _middle(points, start, i)
                    ringed = circled = start
                    is_whole, farthest, margin = True, 0.0, edge
                for j in range(circled, i + 1):
                    away = square_to(points, j, x, y, z)
                    if j == i and (margin <= 0.0 or away > margin * margin):
                        break
                    if away > farthest:
                        farthest, margin = away, edge - math.sqrt(away)
                    circled = j + 1
                if circled > i:
                    rest = start
                elif not (is_short or is_late or is_lasting):
                    is_whole = False  # it was made while the window was short
            elif not is_short:
                if is_whole or circled != i or square_between(points, i, points, pivot) > step * step:
                    pivot, is_whole = i, False
                    _make_balls(points, base, start, i, edge, balls, floors, made)
                    ringed, more = _newest_beyond_by_balls(
                        points, i, start, i, base, (edge - step) ** 2, step, balls, floors
                    )
                    ringed += 1
                    if ringed > start and i - ringed > 4096:  # from where a block begins, past some that would do
                        ringed += (base - ringed) & 255
                    looks += more
                circled = i + 1
                rest = max(ringed, start)
            if is_short and rest > start:
                newest = _newest_beyond(points, i, start, limit)
                looks += i - newest
            elif rest > start:
                _make_balls(points, base, start, i, edge, balls, floors, made)
                newest, more = _newest_beyond_by_balls(points, i, start, rest, base, limit, 0.0, balls, floors)
                looks += more
            if newest >= start:
                if window >= 2 and times[i - 1] - times[start] >= duration:
                    starts[slot + found], ends[slot + found] = start, i
                    found += 1
                    start = i
                else:
                    start = newest + 1
                looks = 0
        if end - start >= 2 and times[end - 1] - times[start] >= duration:
            starts[slot + found], ends[slot + found] = start, end
            found += 1
        counts[trace] = found
