"""Stays: runs of records that are all within a diameter of each other.

Bound: on sparse data a distance or two to each record of a short window. On dense data one distance to the middle of
the window while it is clearly small enough, else two to the corners of each of `_SECTORS` around it; only in windows
that fill the diameter to 0.05 % single sectors are searched, part by part and at last record by record.

A distance is a squared chord or a squared length in the plane, and it is always compared as such: the shortcuts prove
what that comparison would say, with room for their rounding, or leave it to it.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop

SHORT = 192  # windows up to this many records are searched one by one where a circle does not tell
_SECTORS = 128  # around the middle of a window
_PARTS = 32  # of a sector
_PATIENCE = 4  # looks per record of a window that does not move before a circle is made for it
_ROUNDED = 1.0 - 1e-12  # differences of records are exact to 1e-15 of themselves
_COARSE = 1.0 / math.cos(4.0 / _SECTORS)  # corners lie so much beyond an arc: a sector is at most 8/n wide
_FINE = 1.0 / math.cos(4.0 / (_SECTORS * _PARTS))
_LEVELS = 3  # balls around 16, 256 and 4,096 records


@inner
def _square(points, i, j):
    """The squared chord or length between two records."""
    dx = points[i, 0] - points[j, 0]
    dy = points[i, 1] - points[j, 1]
    square = dx * dx + dy * dy
    if points.shape[1] == 3:
        dz = points[i, 2] - points[j, 2]
        square += dz * dz
    return square


@inner
def _square_to(points, i, x, y, z):
    """The same to a point that is no record; z is 0 in the plane."""
    dx = points[i, 0] - x
    dy = points[i, 1] - y
    square = dx * dx + dy * dy
    if points.shape[1] == 3:
        dz = points[i, 2] - z
        square += dz * dz
    return square


@inner
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


@inner
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


@inner
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


@inner
def _newest_beyond(points, i, start, limit):
    """The newest of records start … i − 1 that is beyond the limit from record i; start − 1 if none is."""
    j = i - 1
    while j - 3 >= start:  # four at once, with one branch
        far = max(
            _square(points, i, j), _square(points, i, j - 1), _square(points, i, j - 2), _square(points, i, j - 3)
        )
        if far > limit:
            break
        j -= 4
    while j >= start and _square(points, i, j) <= limit:
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


@inner
def _sector(x, y):
    """In which of all the sectors a direction lies: by its quarter, and how far along a straight line across that."""
    whole = abs(x) + abs(y)
    if whole == 0.0:
        return 0
    part = y / whole if x >= 0.0 else 2.0 - y / whole
    if part < 0.0:
        part += 4.0
    return min(int(part * (_SECTORS * _PARTS // 4)), _SECTORS * _PARTS - 1)


@loop
def _borders():
    """The directions between the sectors, as unit vectors: their x and their y."""
    borders = np.empty((2, _SECTORS * _PARTS + 1))
    for k in range(_SECTORS * _PARTS + 1):
        part = 4.0 * k / (_SECTORS * _PARTS)
        x = abs(2.0 - part) - 1.0
        y = 1.0 - abs(1.0 - part) if part <= 2.0 else abs(3.0 - part) - 1.0
        length = math.sqrt(x * x + y * y)
        borders[0, k] = x / length
        borders[1, k] = y / length
    return borders


@inner
def _spread(points, base, begin, end, centre, axes, sectors, heights):
    """Put records begin … end − 1 into their sectors: how far the farthest lies, and the chain of all of them."""
    far, wide, heads, nexts = sectors
    for i in range(begin, end):
        x, y, up = _seen(points, i, centre, axes)
        heights[0] = min(heights[0], up)
        heights[1] = max(heights[1], up)
        k = _sector(x, y)
        away = math.sqrt(x * x + y * y)
        far[k] = max(far[k], away * _FINE)
        wide[k // _PARTS] = max(wide[k // _PARTS], away * _COARSE)
        nexts[i - base] = heads[k]
        heads[k] = i


@inner
def _corners_beyond(x, y, away, borders, k, reach):
    """How many of a sector's two corners are beyond the reach (squared) of a place."""
    one = (x - away * borders[0, k]) ** 2 + (y - away * borders[1, k]) ** 2
    other = (x - away * borders[0, k + 1]) ** 2 + (y - away * borders[1, k + 1]) ** 2
    return int(one > reach) + int(other > reach)


@inner
def _fits(points, base, i, centre, axes, coarse, borders, marks, sectors, heights, limit):
    """Whether record i is within the limit of all records in the sectors.

    What lies in a sector lies in the triangle of the centre and two corners on its borders, a little beyond its
    farthest record: it is no farther from the record than the farthest of the three. Heights come on top:
    chord² = (as seen from above)² + (difference in height)². Where corners are too far parts of the sector are
    looked at, and then their records. A no may be wrong where the centre itself is too far, or heights differ much.
    """
    far, wide, heads, nexts = sectors
    x, y, up = _seen(points, i, centre, axes)
    rise = max(heights[1] - up, up - heights[0])
    reach = (limit - rise * rise) * _ROUNDED
    if x * x + y * y > reach:
        return False
    beyond = 0
    for k in range(_SECTORS):
        marks[k] = _corners_beyond(x, y, wide[k], coarse, k, reach)
        beyond += marks[k]
    if beyond == 0:
        return True
    for k in range(_SECTORS):
        if marks[k] == 0:
            continue
        for part in range(_PARTS * k, _PARTS * (k + 1)):
            if _corners_beyond(x, y, far[part], borders, part, reach) == 0:
                continue
            j = heads[part]
            while j >= 0:
                if _square(points, i, j) > limit:
                    return False
                j = nexts[j - base]
    return True


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
    borders = _borders()
    coarse = borders[:, ::_PARTS].copy()
    marks = np.empty(_SECTORS, np.int64)
    wide = np.empty(_SECTORS)
    far = np.empty(_SECTORS * _PARTS)
    heads = np.empty(_SECTORS * _PARTS, np.int64)
    nexts = np.empty(offsets[last] - base, np.int64)
    sectors = far, wide, heads, nexts
    heights = np.empty(2)
    centre = np.empty(3)
    axes = np.empty((3, 3))
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        slot = begin // 2
        found = 0
        start = begin
        # A circle holds records ringed … circled − 1: around the middle of the whole window, and sectors those up to
        # spread − 1; or of edge − step around a pivot, and the records since are within a step of that.
        ringed = circled = spread = pivot = begin
        whole = False
        farthest = 0.0  # from the middle, squared, and what is left of the edge beyond it
        room = edge
        looks = 0  # at balls and records since the start last moved or a circle was made
        for i in range(begin, end):
            newest = start - 1
            rest = i  # from here on none is beyond the limit
            window = i - start
            brief = window <= short
            held = whole and ringed == start
            late = looks > _PATIENCE * window
            lasting = not brief and times[i - 1] - times[start] >= duration
            if held or late or lasting:
                if not held or (brief and late):
                    looks = 0 if brief else looks
                    centre[0], centre[1], centre[2] = _middle(points, start, i)
                    ringed = circled = spread = start
                    whole, farthest, room = True, 0.0, edge
                for j in range(circled, i):
                    away = _square_to(points, j, centre[0], centre[1], centre[2])
                    if away > farthest:
                        farthest, room = away, edge - math.sqrt(away)
                circled = i
                away = _square_to(points, i, centre[0], centre[1], centre[2])
                if room > 0.0 and away <= room * room:
                    rest, circled = start, i + 1
                    if away > farthest:
                        farthest, room = away, edge - math.sqrt(away)
                elif away <= limit and window > 8 * short and (spread > start or looks >= window):
                    if spread == start:
                        _turn(points, centre[0], centre[1], centre[2], axes)
                        wide[:] = 0.0
                        far[:] = 0.0
                        heads[:] = -1
                        heights[0], heights[1] = np.inf, -np.inf
                    _spread(points, base, spread, i, centre, axes, sectors, heights)
                    spread = i
                    if _fits(points, base, i, centre, axes, coarse, borders, marks, sectors, heights, limit):
                        rest = start
                elif not (brief or late or lasting):
                    whole = False  # it was made while the window was short
            elif not brief:
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
            if brief and rest > start:
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
