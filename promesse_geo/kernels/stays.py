"""Stays: runs of records that are all within a diameter of each other.

A distance is a squared chord or a squared length in the plane, and is always compared as such. The shortcuts below
only prove what that comparison gives, with a margin for rounding:

- A circle around the window: a record is within the diameter of all records if its distance to the centre plus the
  largest one in the window is at most the diameter. The centre is that of the bounding box, which approaches the
  centre of symmetric clouds quickly (records all over a circle of the diameter: by its square, the mean by its root).
- Balls around 16, 256 and 4,096 records: whole blocks are skipped while the window is searched backwards.
- A pivot: records since the last search that are still near the pivot need no search of what lies well within reach.
- A polygon around the window, where the others do not decide: the farthest record in each of 256 directions. A record
  is within the diameter of all records if all vertices are within the diameter of it.

Cost: one or two distances per record of a short window on sparse data, one distance to the centre on dense data, and
256 projections where a window fills a figure that is no circle, such as a semicircle or places a diameter apart.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import read, square_between, square_to

SHORT = 192  # windows up to this many records are searched one by one where a circle does not decide
_PATIENCE = 4  # distances per record of a window that does not move before a circle is made for it
_ROUNDED = 1.0 - 1e-12  # differences of records are exact to 1e-15 of themselves
_LEVELS = 3  # balls around 16, 256 and 4,096 records
_DIRECTIONS = 256  # of a polygon's sides
_WORTH = 32  # distances per record of a window that does not move before a polygon is made for it
_HALF = math.pi / _DIRECTIONS  # half the angle between two directions


@inner()
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


@inner()
def _newest_beyond(points, i, start, limit):
    """Return the newest of records start … i − 1 that is beyond the limit from record i; start − 1 if none is."""
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


@inner("balls, made")
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


@inner()
def _newest_beyond_by_balls(points, i, start, rest, base, limit, less, balls, floors):
    """Return the newest of records start … rest − 1 beyond the limit from record i, and the number of distances.

    Whole blocks whose ball is within the edge less `less` are skipped.
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
                slack = balls[at, 3] - less
                if slack > 0.0 and square_to(points, i, balls[at, 0], balls[at, 1], balls[at, 2]) <= slack * slack:
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


@inner("polygon")
def _start_polygon(points, start, polygon):
    """Write the directions (x, y, z) in the plane that touches the sphere at a record, and its extents."""
    x, y, z = read(points, start)
    flat = math.sqrt(x * x + y * y)
    is_tilted = points.shape[1] == 3 and flat > 0.0
    for k in range(_DIRECTIONS + 1):
        east = math.cos(2.0 * _HALF * k)
        north = math.sin(2.0 * _HALF * k)
        polygon[0, k] = (-east * y - north * z * x) / flat if is_tilted else east
        polygon[1, k] = (east * x - north * z * y) / flat if is_tilted else north
        polygon[2, k] = north * flat if is_tilted else 0.0
        polygon[3, k] = 0.0


@inner("polygon")
def _extend_polygon(points, start, i, limit, reach, polygon):
    """Extend the polygon to record i, and return whether this is within the limit of all records from `start` on.

    With a and b, how far the window extends from the record in two directions 2h apart, their vertex is at
    √((a − b)²/(2 sin h)² + ab) / cos h.
    """
    x, y, z = read(points, start)
    to_x, to_y, to_z = read(points, i)
    x, y, z = to_x - x, to_y - y, to_z - z
    for k in range(_DIRECTIONS + 1):
        along = x * polygon[0, k] + y * polygon[1, k] + z * polygon[2, k]
        polygon[4, k] = polygon[3, k] - along
        polygon[3, k] = max(polygon[3, k], along)
    scale = 0.5 / math.sin(_HALF)
    beyond = 0
    for k in range(_DIRECTIONS):
        a = polygon[4, k]
        b = polygon[4, k + 1]
        side = (a - b) * scale
        beyond += side * side + a * b > reach
    return beyond == 0 and x * x + y * y + z * z <= limit


@inner("floors")
def _start_levels(records, floors):
    """Write where the balls of each level begin, and return the number of balls of all levels."""
    floors[:] = 0
    for level in range(1, _LEVELS + 1):
        floors[level + 1] = floors[level] + (records >> 4 * level) + 1
    return floors[_LEVELS + 1]


@loop("starts, ends, counts")
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
    # Chords between records within the diameter of the first are at most 1 / (1 − limit/2) times as long as their view.
    tilt = 1.0 - 0.5 * limit if points.shape[1] == 3 else 1.0
    reach = limit * (_ROUNDED * math.cos(_HALF) * tilt) ** 2
    polygon = np.empty((5, _DIRECTIONS + 1))  # directions (x, y, z), extents of the window, and extents from a record
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
        looks = circle_looks = 0  # distances since the start last moved, and those of them before a circle was made
        polygon_start = polygon_end = -1  # the records in the polygon
        for i in range(begin, end):
            newest = start - 1
            rest = i  # from here on no record is beyond the limit
            window = i - start
            is_short = window <= short
            is_held = is_whole and ringed == start
            is_late = looks - circle_looks > _PATIENCE * window
            is_lasting = not is_short and times[i - 1] - times[start] >= duration
            if is_held or is_late or is_lasting:
                if not is_held or is_late:
                    circle_looks = looks
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
            if rest > start and not is_short and (polygon_start == start or looks > _WORTH * window):
                if polygon_start != start:
                    polygon_start = polygon_end = start
                    _start_polygon(points, start, polygon)
                is_within = False
                for j in range(polygon_end, i + 1):
                    is_within = _extend_polygon(points, start, j, limit, reach, polygon)
                polygon_end = i + 1
                rest = start if is_within else rest
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
                looks = circle_looks = 0
        if end - start >= 2 and times[end - 1] - times[start] >= duration:
            starts[slot + found], ends[slot + found] = start, end
            found += 1
        counts[trace] = found
