"""The nearest point on a trace's polyline, for many points: an index of short arcs, and the search in it.

Long segments are cut to about the mean length of their trace's, so that boxes around them are small. The arcs are seen
from above the trace's middle (on the sphere; a plane is seen as it is), sorted along a Morton curve, and boxed eight by
eight, level over level. Seen from above, a chord is at most as long as it is, and an arc lies within its sagitta of its
chord: so distances in the view, less the sagitta, bound the true ones from below, anywhere on the globe.

Bound: for each point the boxes and arcs nearer than its nearest arc, and a few arcs measured exactly, which costs two
square roots and two divisions each.
"""

import math

import numpy as np

from promesse_geo.kernels import loop

_WIDTH = 8  # arcs in a leaf, and boxes in a box
_CELLS = 65535.0  # of the Morton curve, along each axis


@loop
def _read(points, i):
    return points[i, 0], points[i, 1], points[i, 2] if points.shape[1] == 3 else 0.0


@loop
def _leaving(ax, ay, az, bx, by, bz, curvature):
    """V along the segment at a, and |v|²: v = d + κ|d|²/2 · a with d = b − a; any direction between antipodes."""
    x = bx - ax
    y = by - ay
    z = bz - az
    square = x * x + y * y + z * z
    half = 0.5 * curvature * square
    if half > 1.0:  # beyond 90 degrees: from the antipode, where nothing cancels
        x = bx + ax
        y = by + ay
        z = bz + az
        half = -0.5 * (x * x + y * y + z * z)
    x += half * ax
    y += half * ay
    z += half * az
    if half < 0.0:
        off = x * ax + y * ay + z * az
        x -= off * ax
        y -= off * ay
        z -= off * az
    length = x * x + y * y + z * z
    if curvature != 0.0 and length < 1e-24 * square:
        if abs(az) < 0.9:
            return -ax * az, -ay * az, 1.0 - az * az, 1.0 - az * az
        return 1.0 - ax * ax, -ax * ay, -ax * az, 1.0 - ax * ax
    return x, y, z, length


@loop
def _length(ax, ay, az, bx, by, bz, curvature):
    """Length of a segment: 2 atan2(|b − a|, |b + a|) on the sphere."""
    x = bx - ax
    y = by - ay
    z = bz - az
    chord = math.sqrt(x * x + y * y + z * z)
    if curvature == 0.0:
        return chord
    x = bx + ax
    y = by + ay
    z = bz + az
    return 2.0 * math.atan2(chord, math.sqrt(x * x + y * y + z * z))


@loop
def _foot(px, py, pz, points, k, last, curvature):
    """The point of the segment from record k to k + 1 that is nearest to p, and the squared chord between them.

    With u = v/|v|, α = p·a and β = (p − a)·u, the foot on the great circle is (αa + βu)/√(α² + β²), on the line
    a + βu. It lies between the ends where β > 0 and sin(θ − φ) > 0, or β < |b − a|.
    """
    ax, ay, az = _read(points, k)
    wx = px - ax
    wy = py - ay
    wz = pz - az
    square = wx * wx + wy * wy + wz * wz
    if k + 1 >= last:
        return square, ax, ay, az
    bx, by, bz = _read(points, k + 1)
    ux, uy, uz, length = _leaving(ax, ay, az, bx, by, bz, curvature)
    if length > 0.0:
        inverse = 1.0 / math.sqrt(length)
        ux *= inverse
        uy *= inverse
        uz *= inverse
        beta = wx * ux + wy * uy + wz * uz
        if beta > 0.0:
            whole = (bx - ax) * ux + (by - ay) * uy + (bz - az) * uz
            alpha = 1.0
            inside = beta < whole
            if curvature != 0.0:
                alpha = px * ax + py * ay + pz * az
                inside = whole * alpha > (ax * bx + ay * by + az * bz) * beta
            if inside:
                if curvature != 0.0:
                    shrink = 1.0 / math.sqrt(alpha * alpha + beta * beta)
                    alpha *= shrink
                    beta *= shrink
                ax = alpha * ax + beta * ux
                ay = alpha * ay + beta * uy
                az = alpha * az + beta * uz
                wx = px - ax
                wy = py - ay
                wz = pz - az
                return wx * wx + wy * wy + wz * wz, ax, ay, az
    wx = px - bx
    wy = py - by
    wz = pz - bz
    other = wx * wx + wy * wy + wz * wz
    if other < square:
        return other, bx, by, bz
    return square, ax, ay, az


@loop
def _look(points, first, last, view):
    """Axes of the view: two that stand upright on the mean of records first … last − 1, or those of the plane."""
    for i in range(6):
        view[i] = 0.0
    view[0] = 1.0
    view[4] = 1.0
    if points.shape[1] == 2:
        return
    x = 0.0
    y = 0.0
    z = 0.0
    for i in range(first, last):
        x += points[i, 0]
        y += points[i, 1]
        z += points[i, 2]
    flat = math.hypot(x, y)
    length = math.hypot(flat, z)
    if flat <= 1e-9 * length or length == 0.0:  # at a pole, or all around the globe: any view will do
        return
    view[0] = -y / flat
    view[1] = x / flat
    view[3] = -z / length * (x / flat)
    view[4] = -z / length * (y / flat)
    view[5] = flat / length


@loop
def _spread(cell):
    """The lower 16 bits, with a zero between each two."""
    cell = (cell | (cell << 8)) & 0x00FF00FF
    cell = (cell | (cell << 4)) & 0x0F0F0F0F
    cell = (cell | (cell << 2)) & 0x33333333
    return (cell | (cell << 1)) & 0x55555555


@loop
def _target(points, first, last, curvature):
    """Mean length of the segments of records first … last − 1."""
    total = 0.0
    for k in range(first, last - 1):
        ax, ay, az = _read(points, k)
        bx, by, bz = _read(points, k + 1)
        total += _length(ax, ay, az, bx, by, bz, curvature)
    return total / max(last - 1 - first, 1)


@loop
def _pieces(length, target):
    return int(math.ceil(length / target)) if length > target else 1


@loop
def _boxes_over(arcs):
    """How many boxes stand over so many arcs, on all levels."""
    boxes = 0
    while True:
        arcs = (arcs + _WIDTH - 1) // _WIDTH
        boxes += arcs
        if arcs <= 1:
            return boxes


@loop
def count(points, offsets, curvature, first, last, arcs, boxes, targets):
    """Arcs and boxes of traces first … last − 1; a repeated point makes no arc, but a trace has at least one."""
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        target = _target(points, begin, end, curvature)
        found = 0
        for k in range(begin, end - 1):
            ax, ay, az = _read(points, k)
            bx, by, bz = _read(points, k + 1)
            length = _length(ax, ay, az, bx, by, bz, curvature)
            if length > 0.0:
                found += _pieces(length, target)
        arcs[trace] = max(found, 1)
        boxes[trace] = _boxes_over(arcs[trace])
        targets[trace] = target


@loop
def _cut(points, begin, end, curvature, target, view, lines, segments):
    """Fill the lines with the arcs' ends in the view, and say which segments they belong to; returns the sagitta."""
    placed = 0
    sagitta = 0.0
    largest = 0.0
    for k in range(begin, end - 1):
        ax, ay, az = _read(points, k)
        bx, by, bz = _read(points, k + 1)
        length = _length(ax, ay, az, bx, by, bz, curvature)
        if length == 0.0:
            continue
        pieces = _pieces(length, target)
        x = ax * view[0] + ay * view[1] + az * view[2]
        y = ax * view[3] + ay * view[4] + az * view[5]
        largest = max(largest, abs(x), abs(y))
        ux, uy, uz, square = _leaving(ax, ay, az, bx, by, bz, curvature)
        inverse = 1.0 / math.sqrt(square)
        for piece in range(1, pieces + 1):
            cx, cy, cz = bx, by, bz
            if piece < pieces:
                part = length * piece / pieces
                along = part * inverse
                stay = 1.0
                if curvature != 0.0:
                    along = math.sin(part) * inverse
                    stay = math.cos(part)
                cx = stay * ax + along * ux
                cy = stay * ay + along * uy
                cz = stay * az + along * uz
            lines[placed, 0] = x
            lines[placed, 1] = y
            x = cx * view[0] + cy * view[1] + cz * view[2]
            y = cx * view[3] + cy * view[4] + cz * view[5]
            lines[placed, 2] = x
            lines[placed, 3] = y
            segments[placed] = k - begin
            placed += 1
        quarter = math.sin(0.25 * length / pieces)
        sagitta = max(sagitta, 2.0 * curvature * quarter * quarter)
        largest = max(largest, abs(x), abs(y))
    if placed == 0:
        ax, ay, az = _read(points, begin)
        lines[0, 0] = ax * view[0] + ay * view[1] + az * view[2]
        lines[0, 1] = ax * view[3] + ay * view[4] + az * view[5]
        lines[0, 2] = lines[0, 0]
        lines[0, 3] = lines[0, 1]
        segments[0] = 0
        largest = max(abs(lines[0, 0]), abs(lines[0, 1]))
    return sagitta + 4e-15 * max(largest, curvature)  # and what rounding may do


@loop
def _sort(lines, segments):
    """Bring arcs into the order of their middles on a Morton curve."""
    size = lines.shape[0]
    low_x = math.inf
    low_y = math.inf
    high_x = -math.inf
    high_y = -math.inf
    for i in range(size):
        x = lines[i, 0] + lines[i, 2]
        y = lines[i, 1] + lines[i, 3]
        low_x = min(low_x, x)
        high_x = max(high_x, x)
        low_y = min(low_y, y)
        high_y = max(high_y, y)
    span = max(high_x - low_x, high_y - low_y)
    scale = _CELLS / span if span > 0.0 else 0.0
    keys = np.empty(size, np.int64)
    for i in range(size):
        across = _spread(int((lines[i, 0] + lines[i, 2] - low_x) * scale))
        along = _spread(int((lines[i, 1] + lines[i, 3] - low_y) * scale))
        keys[i] = ((across | (along << 1)) << 31) | i
    keys.sort()
    old_lines = lines.copy()
    old_segments = segments.copy()
    for i in range(size):
        k = keys[i] & 0x7FFFFFFF
        for j in range(4):
            lines[i, j] = old_lines[k, j]
        segments[i] = old_segments[k]


@loop
def _box(lines, boxes):
    """Fill the boxes, from the leaves upwards: (low x, low y, high x, high y)."""
    size = lines.shape[0]
    below = 0
    placed = 0
    leaves = True
    while True:
        start = placed
        for first in range(0, size, _WIDTH):
            low_x = math.inf
            low_y = math.inf
            high_x = -math.inf
            high_y = -math.inf
            for i in range(first, min(first + _WIDTH, size)):
                if leaves:
                    low_x = min(low_x, lines[i, 0], lines[i, 2])
                    low_y = min(low_y, lines[i, 1], lines[i, 3])
                    high_x = max(high_x, lines[i, 0], lines[i, 2])
                    high_y = max(high_y, lines[i, 1], lines[i, 3])
                else:
                    low_x = min(low_x, boxes[below + i, 0])
                    low_y = min(low_y, boxes[below + i, 1])
                    high_x = max(high_x, boxes[below + i, 2])
                    high_y = max(high_y, boxes[below + i, 3])
            boxes[placed, 0] = low_x
            boxes[placed, 1] = low_y
            boxes[placed, 2] = high_x
            boxes[placed, 3] = high_y
            placed += 1
        if placed - start == 1:
            return
        below = start
        size = placed - start
        leaves = False


@loop
def build(points, offsets, curvature, targets, first, last, arcs, boxes, lines, segments, tree, views, slacks):
    """Fill the index of traces first … last − 1; `arcs` and `boxes` say where each trace's begin."""
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        own = slice(arcs[trace], arcs[trace + 1])
        _look(points, begin, end, views[trace])
        slacks[trace] = _cut(points, begin, end, curvature, targets[trace], views[trace], lines[own], segments[own])
        _sort(lines[own], segments[own])
        _box(lines[own], tree[boxes[trace] : boxes[trace + 1]])


@loop
def _to_box(boxes, i, x, y):
    """Squared distance in the view to a box, 0 inside."""
    across = max(boxes[i, 0] - x, x - boxes[i, 2], 0.0)
    along = max(boxes[i, 1] - y, y - boxes[i, 3], 0.0)
    return across * across + along * along


@loop
def _to_line(lines, i, x, y):
    """Squared distance in the view to a straight line between two points."""
    dx = lines[i, 2] - lines[i, 0]
    dy = lines[i, 3] - lines[i, 1]
    x -= lines[i, 0]
    y -= lines[i, 1]
    square = dx * dx + dy * dy
    if square > 0.0:
        part = min(max((x * dx + y * dy) / square, 0.0), 1.0)
        x -= part * dx
        y -= part * dy
    return x * x + y * y


@loop
def _limit(square, slack):
    """Squared distance in the view beyond which nothing is nearer than the root of `square`."""
    limit = math.sqrt(square) + slack
    return limit * limit * (1.0 + 1e-12)


@loop
def _nearest(p, points, begin, end, curvature, lines, segments, tree, view, slack, guess, stack, bounds, levels):
    """The segment nearest to p = (x, y, z); `guess` is one that may be near. Nearest boxes first."""
    px, py, pz = p
    x = px * view[0] + py * view[1] + pz * view[2]
    y = px * view[3] + py * view[4] + pz * view[5]
    best = guess
    square, _, _, _ = _foot(px, py, pz, points, begin + guess, end, curvature)
    limit = _limit(square, slack)
    depth = 0
    size = lines.shape[0]
    start = 0
    while True:  # where each level begins and how many boxes it has
        size = (size + _WIDTH - 1) // _WIDTH
        levels[depth, 0] = start
        levels[depth, 1] = size
        start += size
        depth += 1
        if size <= 1:
            break
    top = 0
    stack[0, 0] = depth - 1
    stack[0, 1] = 0
    bounds[0] = _to_box(tree, levels[depth - 1, 0], x, y)
    while top >= 0:
        bound = bounds[top]
        level = stack[top, 0]
        box = stack[top, 1]
        top -= 1
        if bound > limit:
            continue
        child = box * _WIDTH
        if level == 0:
            for i in range(child, min(child + _WIDTH, lines.shape[0])):
                if _to_line(lines, i, x, y) <= limit and segments[i] != best:
                    found, _, _, _ = _foot(px, py, pz, points, begin + segments[i], end, curvature)
                    if found < square:
                        square = found
                        best = segments[i]
                        limit = _limit(square, slack)
            continue
        below = levels[level - 1, 0]
        for i in range(child, min(child + _WIDTH, levels[level - 1, 1])):
            bound = _to_box(tree, below + i, x, y)
            if bound <= limit:
                top += 1
                place = top
                while place > 0 and stack[place - 1, 0] == level - 1 and bounds[place - 1] < bound:
                    stack[place, 0] = stack[place - 1, 0]
                    stack[place, 1] = stack[place - 1, 1]
                    bounds[place] = bounds[place - 1]
                    place -= 1
                stack[place, 0] = level - 1
                stack[place, 1] = i
                bounds[place] = bound
    return best


@loop
def search(points, offsets, curvature, index, queries, ranges, traces, first, last, metres, feet):
    """Distances of query points first … last − 1 to their polylines, and where those are reached if there is room.

    Query points ranges[j] … ranges[j + 1] − 1 belong to trace traces[j] of the index.
    """
    arcs, boxes, lines, segments, tree, views, slacks = index
    stack = np.empty((128, 2), np.int64)
    bounds = np.empty(128)
    levels = np.empty((16, 2), np.int64)
    group = np.searchsorted(ranges, first, side="right") - 1
    guess = 0
    for i in range(first, last):
        if i >= ranges[group + 1]:
            guess = 0
            while i >= ranges[group + 1]:
                group += 1
        trace = traces[group]
        begin = offsets[trace]
        end = offsets[trace + 1]
        px, py, pz = _read(queries, i)
        guess = _nearest(
            (px, py, pz),
            points,
            begin,
            end,
            curvature,
            lines[arcs[trace] : arcs[trace + 1]],
            segments[arcs[trace] : arcs[trace + 1]],
            tree[boxes[trace] : boxes[trace + 1]],
            views[trace],
            slacks[trace],
            guess,
            stack,
            bounds,
            levels,
        )
        _, x, y, z = _foot(px, py, pz, points, begin + guess, end, curvature)
        metres[i] = _length(px, py, pz, x, y, z, curvature)
        if feet.shape[0] > 0:
            feet[i, 0] = x
            feet[i, 1] = y
            if feet.shape[1] == 3:
                feet[i, 2] = z
