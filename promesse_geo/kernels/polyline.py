"""The nearest point on a trace's polyline, for many points, with the index of polyline_index.py.

Bound: for each point the groups of boxes and arcs nearer than its nearest arc, and the few arcs that may be that one,
measured exactly with two square roots and two divisions each. What would be nearer by less than some 1e-8 m is not
searched. Where boxes seen from above tell too little, for arcs lie on or along each other, each box gets an upright one
in space as well, turned along its longest segment: made once for each call of `search` and trace, and only after as
many leaves were looked at in vain. Many arcs that share an end and point everywhere are told apart by neither.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop

_WIDTH = 8  # arcs in a leaf, and boxes in a group
_MANY = 64  # leaves to a point that are more than ordinary paths need
_NOWHERE = 1e150  # where the index puts what fills up
_LEAST = 3e-15, 1e-8  # what distances do not tell apart: about 2e-8 m on the sphere, in metres in the plane


@inner
def _read(points, i):
    return points[i, 0], points[i, 1], points[i, 2] if points.shape[1] == 3 else 0.0


@inner
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


@inner
def _length(ax, ay, az, bx, by, bz, curvature):
    """Length of a segment: 2 atan2(|b − a|, |b + a|) on the sphere."""
    x = bx - ax
    y = by - ay
    z = bz - az
    square = x * x + y * y + z * z
    chord = math.sqrt(square)
    if curvature * square < 1e-4:  # 2 arcsin(c/2) to the last digit
        return chord * (1.0 + curvature * square * (1.0 / 24.0 + square * (3.0 / 640.0)))
    x = bx + ax
    y = by + ay
    z = bz + az
    return 2.0 * math.atan2(chord, math.sqrt(x * x + y * y + z * z))


@inner
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


@inner
def _over(things):
    """How many boxes of eight stand over so many."""
    return (things + _WIDTH - 1) // _WIDTH


@inner
def _to_boxes(tree, group, x, y, squares):
    """Squared distances in the view to eight boxes, 0 inside; max and min do not branch, which would cost the most."""
    for j in range(_WIDTH):
        across = max(tree[group, 0, j] - x, x - tree[group, 2, j], 0.0)
        along = max(tree[group, 1, j] - y, y - tree[group, 3, j], 0.0)
        squares[j] = across * across + along * along


@inner
def _to_lines(lines, leaf, x, y, squares):
    """Squared distances in the view to eight straight lines between two points."""
    for j in range(_WIDTH):
        across = x - lines[leaf, 0, j]
        along = y - lines[leaf, 1, j]
        dx = lines[leaf, 2, j]
        dy = lines[leaf, 3, j]
        part = (across * dx + along * dy) * lines[leaf, 4, j]
        part = min(max(part, 0.0), 1.0)
        across -= part * dx
        along -= part * dy
        squares[j] = across * across + along * along


@inner
def _turn(points, begin, segments, lines, frame):
    """Fill a frame with a box around the segments of some leaves: its origin, three axes, and from where to where.

    The axes point up, along the longest segment and across. An arc is its chord, moved by up to its sagitta.
    """
    frame[:12] = 0.0
    frame[12:15] = -math.inf
    frame[15:] = math.inf
    longest = 0.0
    for leaf in range(segments.shape[0]):
        for j in range(_WIDTH):
            if lines[leaf, 0, j] < _NOWHERE:
                k = begin + segments[leaf, j]
                if k + 1 >= points.shape[0]:
                    return
                ax, ay, az = _read(points, k)
                bx, by, bz = _read(points, k + 1)
                square = (bx - ax) ** 2 + (by - ay) ** 2 + (bz - az) ** 2
                if square > longest:
                    longest = square
                    best = k
    if longest == 0.0:
        return
    ax, ay, az = _read(points, best)
    bx, by, bz = _read(points, best + 1)
    sphere = points.shape[1] == 3
    mx, my, mz = (ax + bx, ay + by, az + bz) if sphere else (0.0, 0.0, 1.0)
    length = math.sqrt(mx * mx + my * my + mz * mz)
    if length < 0.1:
        return
    mx, my, mz = mx / length, my / length, mz / length
    tx, ty, tz = bx - ax, by - ay, bz - az
    off = tx * mx + ty * my + tz * mz
    tx, ty, tz = tx - off * mx, ty - off * my, tz - off * mz
    length = math.sqrt(tx * tx + ty * ty + tz * tz)
    tx, ty, tz = tx / length, ty / length, tz / length
    axes = frame[3:12]
    axes[0], axes[1], axes[2] = mx, my, mz
    axes[3], axes[4], axes[5] = tx, ty, tz
    axes[6], axes[7], axes[8] = my * tz - mz * ty, mz * tx - mx * tz, mx * ty - my * tx
    frame[0], frame[1], frame[2] = ax, ay, az
    low = frame[12:15]
    high = frame[15:]
    low[:] = math.inf
    high[:] = -math.inf
    for leaf in range(segments.shape[0]):
        for j in range(_WIDTH):
            if lines[leaf, 0, j] >= _NOWHERE:
                continue
            k = begin + segments[leaf, j]
            cx, cy, cz = _read(points, k)
            dx, dy, dz = _read(points, k + 1)
            rise = 0.0
            if sphere:
                half = 0.5 * math.sqrt((cx + dx) ** 2 + (cy + dy) ** 2 + (cz + dz) ** 2)
                if half < 0.1:
                    low[:] = -math.inf
                    high[:] = math.inf
                    return
                rise = 0.5 * max(1.0 - half, 0.0) / half
            for axis in range(3):
                ex, ey, ez = axes[3 * axis], axes[3 * axis + 1], axes[3 * axis + 2]
                one = (cx - ax) * ex + (cy - ay) * ey + (cz - az) * ez
                other = (dx - ax) * ex + (dy - ay) * ey + (dz - az) * ez
                up = rise * ((cx + dx) * ex + (cy + dy) * ey + (cz + dz) * ez)
                low[axis] = min(low[axis], min(one, other) + min(up, 0.0))
                high[axis] = max(high[axis], max(one, other) + max(up, 0.0))


@loop
def _turned(points, begin, segments, lines, tree, levels, height):
    """Frames for all boxes of a trace; see `_turn`."""
    frames = np.empty((tree.shape[0], _WIDTH, 18))
    size = 1
    for level in range(1, height + 1):
        end = levels[level + 1] if level < height else tree.shape[0]
        for group in range(levels[level], end):
            for j in range(_WIDTH):
                first = ((group - levels[level]) * _WIDTH + j) * size
                own = slice(first, first + size)
                _turn(points, begin, segments[own], lines[own], frames[group, j])
        size *= _WIDTH
    return frames


@inner
def _to_frames(frames, px, py, pz, curvature, slack, least, squares):
    """Raise squared distances in the view to eight boxes by what their frames say."""
    for j in range(_WIDTH):
        frame = frames[j]
        x = px - frame[0]
        y = py - frame[1]
        z = pz - frame[2]
        square = 0.0
        gap = 0.0
        for axis in range(3):
            along = x * frame[3 + 3 * axis] + y * frame[4 + 3 * axis] + z * frame[5 + 3 * axis]
            low = frame[12 + axis]
            high = frame[15 + axis]
            gap = max(along - high, low - along, 0.0)
            square += gap * gap
        if curvature != 0.0 and gap > 0.0:  # across: an angle from the great circle is more than its sine
            edge = high if along > high else -low
            sine = min(abs(along), 1.0)
            if 0.0 <= edge < sine:
                chord = 2.0 * math.sin(0.5 * (math.asin(sine) - math.asin(edge)))
                square = max(square, chord * chord)
        bound = math.sqrt(square) * (1.0 + 2e-12) + least + slack
        squares[j] = max(squares[j], bound * bound)


@inner
def _limit(square, slack, least):
    """Squared distance in the view beyond which nothing is nearer than the root of `square` by more than `least`."""
    if square <= least * least:
        return -1.0
    limit = math.sqrt(square) + slack
    return limit * limit * (1.0 + 1e-12)


@loop
def _search_one(points, begin, end, curvature, lines, segments, tree, view, slack, queries, first, last, metres, feet):
    """Distances of query points first … last − 1 to the polyline of records begin … end − 1; nearest boxes first.

    Each search starts from the segment that was nearest to the point before.
    """
    stack = np.empty((128, 2), np.int64)
    bounds = np.empty(128)
    squares = np.empty(_WIDTH)
    levels = np.zeros(16, np.int64)  # where each level's groups of boxes begin, from the first above the leaves
    height = 1
    size = _over(lines.shape[0])
    while size > 1:
        levels[height + 1] = levels[height] + size
        height += 1
        size = _over(size)
    east_x, east_y, east_z, north_x, north_y, north_z = view[0], view[1], view[2], view[3], view[4], view[5]
    least = _LEAST[0] if curvature != 0.0 else _LEAST[1]
    frames = np.empty((0, _WIDTH, 18))
    visits = 0
    best = 0
    for query in range(first, last):
        px, py, pz = _read(queries, query)
        x = px * east_x + py * east_y + pz * east_z
        y = px * north_x + py * north_y + pz * north_z
        square, qx, qy, qz = _foot(px, py, pz, points, begin + best, end, curvature)
        limit = _limit(square, slack, least)
        if frames.shape[0] == 0 and visits > _MANY * (query - first) + lines.shape[0]:
            frames = _turned(points, begin, segments, lines, tree, levels, height)
        top = 0
        stack[0, 0] = height
        stack[0, 1] = 0
        bounds[0] = 0.0
        while top >= 0:
            bound = bounds[top]
            level = stack[top, 0]
            node = stack[top, 1]
            top -= 1
            if bound > limit:
                continue
            if level == 0:
                visits += 1
                _to_lines(lines, node, x, y, squares)
                for j in range(_WIDTH):
                    if squares[j] <= limit and segments[node, j] != best:
                        found, fx, fy, fz = _foot(px, py, pz, points, begin + segments[node, j], end, curvature)
                        if found < square:
                            square = found
                            qx, qy, qz = fx, fy, fz
                            best = segments[node, j]
                            limit = _limit(square, slack, least)
                continue
            _to_boxes(tree, levels[level] + node, x, y, squares)
            if frames.shape[0] > 0:
                _to_frames(frames[levels[level] + node], px, py, pz, curvature, slack, least, squares)
            base = top + 1
            for j in range(_WIDTH):
                bound = squares[j]
                if bound <= limit:
                    top += 1
                    place = top
                    while place > base and bounds[place - 1] < bound:
                        stack[place, 1] = stack[place - 1, 1]
                        bounds[place] = bounds[place - 1]
                        place -= 1
                    stack[top, 0] = level - 1
                    stack[place, 1] = node * _WIDTH + j
                    bounds[place] = bound
        metres[query] = _length(px, py, pz, qx, qy, qz, curvature)
        if feet.shape[0] > 0:
            feet[query, 0] = qx
            feet[query, 1] = qy
            if feet.shape[1] == 3:
                feet[query, 2] = qz


@loop
def search(points, offsets, curvature, index, queries, ranges, traces, first, last, metres, feet):
    """Distances of query points first … last − 1 to their polylines, and where those are reached if there is room.

    Query points ranges[j] … ranges[j + 1] − 1 belong to trace traces[j] of the index.
    """
    leaves, groups, lines, segments, tree, views, slacks = index
    group = np.searchsorted(ranges, first, side="right") - 1
    while first < last:
        trace = traces[group]
        own = slice(leaves[trace], leaves[trace + 1])
        _search_one(
            points,
            offsets[trace],
            offsets[trace + 1],
            curvature,
            lines[own],
            segments[own],
            tree[groups[trace] : groups[trace + 1]],
            views[trace],
            slacks[trace],
            queries,
            first,
            min(ranges[group + 1], last),
            metres,
            feet,
        )
        group += 1
        first = ranges[group]
