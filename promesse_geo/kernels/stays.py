"""Stays: runs of records that are all within a diameter of each other.

Bound: on sparse data a distance or two to each record of a short window. On dense data one distance to the middle of
the window while it is clearly small enough, else a dot product for each of `_DIRECTIONS`; only windows that fill the
diameter to 0.03 % are searched record by record.

A distance is a squared chord or a squared length in the plane, and it is always compared as such: the shortcuts prove
what that comparison would say, with room for their rounding, or leave it to it.
"""

import math

import numpy as np

from promesse_geo.kernels import loop

SHORT = 48  # windows up to this many records are best searched one by one
_DIRECTIONS = 128
_PATIENCE = 16  # looks per record of a window that does not move before circle and hull are made for it
_ROUNDED = 1.0 - 1e-12  # differences of records are exact to 1e-15 of themselves
_LEVELS = 3  # balls around 16, 256 and 4,096 records


@loop
def _square(points, i, j):
    """The squared chord or length between two records."""
    dx = points[i, 0] - points[j, 0]
    dy = points[i, 1] - points[j, 1]
    square = dx * dx + dy * dy
    if points.shape[1] == 3:
        dz = points[i, 2] - points[j, 2]
        square += dz * dz
    return square


@loop
def _square_to(points, i, x, y, z):
    """The same to a point that is no record; z is 0 in the plane."""
    dx = points[i, 0] - x
    dy = points[i, 1] - y
    square = dx * dx + dy * dy
    if points.shape[1] == 3:
        dz = points[i, 2] - z
        square += dz * dz
    return square


@loop
def _middle(points, begin, end):
    """The mean of records begin … end − 1, by way of differences, which lose no digits however many they are."""
    x = y = z = 0.0
    for i in range(begin, end):
        x += points[i, 0] - points[begin, 0]
        y += points[i, 1] - points[begin, 1]
        if points.shape[1] == 3:
            z += points[i, 2] - points[begin, 2]
    count = end - begin
    height = points[begin, 2] + z / count if points.shape[1] == 3 else 0.0
    return points[begin, 0] + x / count, points[begin, 1] + y / count, height


@loop
def _turn(points, x, y, z, axes):
    """Write east, north and up at a point, as rows of (3, 3); in the plane those of the plane."""
    axes[:] = 0.0
    axes[0, 0] = 1.0
    axes[1, 1] = 1.0
    axes[2, 2] = 1.0
    flat = math.sqrt(x * x + y * y)
    if points.shape[1] == 3 and flat > 0.0:
        length = math.sqrt(x * x + y * y + z * z)
        axes[0, 0] = -y / flat
        axes[0, 1] = x / flat
        axes[1, 0] = -z * x / flat / length
        axes[1, 1] = -z * y / flat / length
        axes[1, 2] = flat / length
        axes[2, 0] = x / length
        axes[2, 1] = y / length
        axes[2, 2] = z / length


@loop
def _seen(points, i, centre, axes):
    """A record as seen from above a point: how far east, north and up of it."""
    dx = points[i, 0] - centre[0]
    dy = points[i, 1] - centre[1]
    if points.shape[1] == 2:
        return dx, dy, 0.0
    dz = points[i, 2] - centre[2]
    return (
        dx * axes[0, 0] + dy * axes[0, 1] + dz * axes[0, 2],
        dx * axes[1, 0] + dy * axes[1, 1] + dz * axes[1, 2],
        dx * axes[2, 0] + dy * axes[2, 1] + dz * axes[2, 2],
    )


@loop
def _newest_beyond(points, i, start, limit):
    """The newest of records start … i − 1 that is beyond the limit from record i; start − 1 if none is."""
    j = i - 1
    while j >= start and _square(points, i, j) <= limit:
        j -= 1
    return j


@loop
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
                    radius = max(radius, _square_to(points, j, x, y, z))
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


@loop
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
                if room > 0.0 and _square_to(points, i, balls[at, 0], balls[at, 1], balls[at, 2]) <= room * room:
                    break
            level -= 1
        if level > 0:
            j -= 1 << 4 * level
            continue
        bound = max(start, j - 1 - ((j - base - 1) & 15))  # down to the end of the next block
        looks += j - bound
        while j > bound:
            j -= 1
            if _square(points, i, j) > limit:
                return j, looks
    return start - 1, looks


@loop
def _widen(points, begin, end, centre, axes, rays, support, heights):
    """Let the hull, the farthest any record lies in each direction, hold records begin … end − 1 as well."""
    inner = -1.0
    for i in range(begin, end):
        x, y, up = _seen(points, i, centre, axes)
        heights[0] = min(heights[0], up)
        heights[1] = max(heights[1], up)
        if inner >= 0.0 and x * x + y * y < inner * inner:
            continue
        for k in range(_DIRECTIONS):
            support[k] = max(support[k], x * rays[0, k] + y * rays[1, k])
        if end - i > 1:
            inner = support.min() * _ROUNDED


@loop
def _fits(points, i, centre, axes, rays, support, heights, limit):
    """Whether the hull proves that record i is within the limit of all records in it.

    A record q beyond D of p is so along some direction: for the one nearest to it, at most π/n off,
    (q − p)·u > D cos(π/n). Heights come on top: chord² = (as seen from above)² + (difference in height)².
    """
    x, y, up = _seen(points, i, centre, axes)
    rise = max(heights[1] - up, up - heights[0])
    seen = limit - rise * rise
    if seen <= 0.0:
        return False
    reach = math.sqrt(seen) * math.cos(math.pi / _DIRECTIONS) * _ROUNDED
    beyond = 0
    for k in range(_DIRECTIONS):
        if support[k] - (x * rays[0, k] + y * rays[1, k]) > reach:
            beyond += 1
    return beyond == 0


@loop
def find(points, times, offsets, limit, duration, short, first, last, starts, ends, counts):
    """Write first and end record of the stays of traces first … last − 1, from slot offsets[trace] // 2 on.

    A record within the limit (squared, in kernel units) of every record of the candidate joins it; else a candidate
    of at least two records and the duration is a stay, and the record begins the next; else the oldest records go
    until it joins: all up to the newest one beyond the limit, as removals never make a stay.
    """
    base = offsets[first]
    edge = math.sqrt(limit) * _ROUNDED
    step = edge / 8
    floors = np.zeros(_LEVELS + 2, np.int64)
    for level in range(1, _LEVELS + 1):
        floors[level + 1] = floors[level] + ((offsets[last] - base) >> 4 * level) + 1
    balls = np.empty((floors[_LEVELS + 1], 4))
    made = np.zeros(_LEVELS + 1, np.int64)
    turns = np.arange(_DIRECTIONS) * (2.0 * math.pi / _DIRECTIONS)
    rays = np.empty((2, _DIRECTIONS))
    rays[0] = np.cos(turns)
    rays[1] = np.sin(turns)
    support = np.empty(_DIRECTIONS)
    heights = np.empty(2)
    centre = np.empty(3)
    axes = np.empty((3, 3))
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        slot = begin // 2
        found = 0
        start = begin
        # A circle holds records ringed … circled − 1: around the middle of the whole window, and a hull those up to
        # hulled − 1; or of edge − step around a pivot, and the records since are within a step of that.
        ringed = circled = hulled = pivot = begin
        whole = False
        radius = 0.0
        looks = 0  # at balls and records since the start last moved
        for i in range(begin, end):
            newest = start - 1
            rest = i  # from here on none is beyond the limit
            if i - start <= short:
                newest, rest = _newest_beyond(points, i, start, limit), start
            elif (
                times[i - 1] - times[start] >= duration
                or looks >= _PATIENCE * (i - start)
                or (whole and ringed == start)
            ):
                if not whole or ringed != start:
                    centre[0], centre[1], centre[2] = _middle(points, start, i)
                    ringed = circled = hulled = start
                    whole, radius = True, 0.0
                for j in range(circled, i):
                    radius = max(radius, math.sqrt(_square_to(points, j, centre[0], centre[1], centre[2])))
                circled = i
                if math.sqrt(_square_to(points, i, centre[0], centre[1], centre[2])) + radius <= edge:
                    rest = start
                elif i - start > _PATIENCE * short:
                    if hulled == start:
                        _turn(points, centre[0], centre[1], centre[2], axes)
                        support[:] = -np.inf
                        heights[0], heights[1] = np.inf, -np.inf
                    _widen(points, hulled, i, centre, axes, rays, support, heights)
                    hulled = i
                    if _fits(points, i, centre, axes, rays, support, heights, limit):
                        rest = start
            else:
                if whole or circled != i or _square(points, i, pivot) > step * step:
                    pivot, whole = i, False
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
            if rest > start:
                _make_balls(points, base, start, i, edge, balls, floors, made)
                newest, more = _newest_beyond_by_balls(points, i, start, rest, base, limit, 0.0, balls, floors)
                looks += more
            if newest >= start:
                if i - start >= 2 and times[i - 1] - times[start] >= duration:
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
