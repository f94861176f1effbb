"""The nearest point on a trace's polyline, for many points, with the index of polyline_index.py.

Each search starts from the segment nearest to the previous point and visits the nearest boxes first. What is nearer by
less than `_LEAST` is not searched. shapely's STRtree in a local plane finds the same distances to 0.2 mm in 25 lines,
but takes 4 to 12 times as long.

Cost: for each point, the boxes and arcs nearer than its nearest arc, and the few arcs that may be that one, measured
exactly with two square roots and two divisions each.

Frames: where thousands of arcs lie on one great circle (a tracker that alternates between two cells, positions
interpolated along a straight line), they are equally near to a point, but the view from above tells distances only up
to the sagitta: each point would be compared with each arc, 100 to 200 times as long for 20,000 of them. So where points
visit many leaves, each box also gets a frame: an upright box in space along its longest segment, which loses nothing.
Rests of days visit fewer leaves: frames would double their time. Many arcs that start at one place in all directions
have no such help.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import arc_between, direction, read, square_between
from promesse_geo.kernels.polyline_index import WIDTH, groups_of

_MANY = 64, 64  # frames are made where points visit so many leaves and one in so many; rests of days visit fewer
_LEAST = 3e-15, 1e-8  # distances are equal below this: about 2e-8 m, in radians on the sphere and metres in the plane


@inner()
def foot(px, py, pz, points, k, stops, curvature):
    """Return the squared chord from p to the nearest point of the segment from record k to k + 1, and that point.

    Where stops[k], record k is all of the segment.

    With u = v/|v|, α = p·a and β = (p − a)·u, the foot on the great circle is (αa + βu)/√(α² + β²), on the line
    a + βu. It lies between the ends where β > 0 and sin(θ − φ) > 0, or β < |b − a|.
    """
    ax, ay, az = read(points, k)
    wx = px - ax
    wy = py - ay
    wz = pz - az
    square = wx * wx + wy * wy + wz * wz
    if stops[k]:
        return square, ax, ay, az
    bx, by, bz = read(points, k + 1)
    ux, uy, uz, length = direction(ax, ay, az, bx, by, bz, curvature)
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


@inner("squares")
def _to_boxes(tree, group, x, y, squares):
    """Write the squared distances in the view to eight boxes, 0 inside. No branches: these would cost the most."""
    for j in range(WIDTH):
        across = max(tree[group, 0, j] - x, x - tree[group, 2, j], 0.0)
        along = max(tree[group, 1, j] - y, y - tree[group, 3, j], 0.0)
        squares[j] = across * across + along * along


@inner("squares")
def _to_lines(lines, leaf, x, y, squares):
    """Write the squared distances in the view to the eight chords of a leaf."""
    for j in range(WIDTH):
        across = x - lines[leaf, 0, j]
        along = y - lines[leaf, 1, j]
        dx = lines[leaf, 2, j]
        dy = lines[leaf, 3, j]
        part = (across * dx + along * dy) * lines[leaf, 4, j]
        part = min(max(part, 0.0), 1.0)
        across -= part * dx
        along -= part * dy
        squares[j] = across * across + along * along


@inner()
def _longest(points, begin, segments, stops):
    """Return the first record of the longest segment in some leaves; −1 if none has a length."""
    best = -1
    longest = 0.0
    for leaf in range(segments.shape[0]):
        for j in range(WIDTH):
            k = begin + segments[leaf, j]
            if stops[k]:
                continue
            square = square_between(points, k, points, k + 1)
            if square > longest:
                longest = square
                best = k
    return best


@inner("frame")
def _orient(points, k, frame):
    """Write origin (3) and axes (9: up, along, across) of the segment from record k to k + 1; return |a + b|."""
    ax, ay, az = read(points, k)
    bx, by, bz = read(points, k + 1)
    mx, my, mz = (ax + bx, ay + by, az + bz) if points.shape[1] == 3 else (0.0, 0.0, 1.0)
    span = math.sqrt(mx * mx + my * my + mz * mz)
    if span == 0.0:
        return span
    mx, my, mz = mx / span, my / span, mz / span
    dx, dy, dz = bx - ax, by - ay, bz - az
    cx, cy, cz = my * dz - mz * dy, mz * dx - mx * dz, mx * dy - my * dx
    length = math.sqrt(cx * cx + cy * cy + cz * cz)
    cx, cy, cz = cx / length, cy / length, cz / length
    frame[0], frame[1], frame[2] = ax, ay, az
    frame[3], frame[4], frame[5] = mx, my, mz
    frame[6], frame[7], frame[8] = cy * mz - cz * my, cz * mx - cx * mz, cx * my - cy * mx
    frame[9], frame[10], frame[11] = cx, cy, cz
    return span


@inner("frame")
def _fit_frame(points, begin, segments, stops, frame):
    """Fit a frame around the segments of some leaves: origin, three axes, and lowest and highest value on each axis.

    An arc is its chord, moved by up to its sagitta. Around arcs of more than 168 degrees, and around single records, a
    frame is unbounded.
    """
    frame[:12] = 0.0
    low = frame[12:15]
    high = frame[15:]
    low[:] = -math.inf
    high[:] = math.inf
    longest = _longest(points, begin, segments, stops)
    if longest < 0 or _orient(points, longest, frame) < 0.2:
        return
    low[:] = math.inf
    high[:] = -math.inf
    for leaf in range(segments.shape[0]):
        for j in range(WIDTH):
            k = begin + segments[leaf, j]
            ax, ay, az = read(points, k)
            bx, by, bz = read(points, k if stops[k] else k + 1)
            rise = 0.0
            if points.shape[1] == 3:
                half = 0.5 * math.sqrt((ax + bx) ** 2 + (ay + by) ** 2 + (az + bz) ** 2)
                rise = 0.5 * max(1.0 - half, 0.0) / half
            for axis in range(3):
                ex, ey, ez = frame[3 + 3 * axis], frame[4 + 3 * axis], frame[5 + 3 * axis]
                a = (ax - frame[0]) * ex + (ay - frame[1]) * ey + (az - frame[2]) * ez
                b = (bx - frame[0]) * ex + (by - frame[1]) * ey + (bz - frame[2]) * ez
                up = rise * ((ax + bx) * ex + (ay + by) * ey + (az + bz) * ez)
                low[axis] = min(low[axis], min(a, b) + min(up, 0.0))
                high[axis] = max(high[axis], max(a, b) + max(up, 0.0))


@loop()
def _fit_frames(points, begin, segments, stops, groups, levels, height):
    """Return frames for all boxes of a trace, shape (groups, 8, 18)."""
    frames = np.empty((groups, WIDTH, 18))
    size = 1
    for level in range(1, height + 1):
        end = levels[level + 1] if level < height else groups
        for group in range(levels[level], end):
            for j in range(WIDTH):
                first = ((group - levels[level]) * WIDTH + j) * size
                _fit_frame(points, begin, segments[first : first + size], stops, frames[group, j])
        size *= WIDTH
    return frames


@inner("squares")
def _to_frames(frames, px, py, pz, curvature, slack, least, squares):
    """Raise the squared distances in the view to eight boxes to those of their frames."""
    for j in range(WIDTH):
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


@inner()
def _limit(square, slack, least):
    """Return the squared distance in the view beyond which nothing is nearer than √square by more than `least`."""
    if square <= least * least:
        return -1.0
    limit = math.sqrt(square) + slack
    return limit * limit * (1.0 + 1e-12)


@inner("levels")
def _start_levels(leaves, levels):
    """Write where the groups of each level begin, the first above the leaves at levels[1]; return the top level."""
    levels[1] = 0
    height = 1
    size = groups_of(leaves)
    while size > 1:
        levels[height + 1] = levels[height] + size
        height += 1
        size = groups_of(size)
    return height


@loop("metres, feet")
def _search_one(
    points, begin, stops, curvature, lines, segments, tree, view, slack, queries, first, last, metres, feet
):
    """Search query points first … last − 1 on the polyline of the records from `begin` on; see `search`."""
    stack = np.empty((128, 2), np.int64)  # level and number of each box
    bounds = np.empty(128)
    squares = np.empty(WIDTH)
    levels = np.zeros(16, np.int64)
    height = _start_levels(lines.shape[0], levels)
    east_x, east_y, east_z, north_x, north_y, north_z = view[0], view[1], view[2], view[3], view[4], view[5]
    least = _LEAST[0] if curvature != 0.0 else _LEAST[1]
    frames = np.empty((0, WIDTH, 18))
    many = max(_MANY[0], lines.shape[0] // _MANY[1])
    visits = 0
    best = 0
    for query in range(first, last):
        px, py, pz = read(queries, query)
        x = px * east_x + py * east_y + pz * east_z
        y = px * north_x + py * north_y + pz * north_z
        square, qx, qy, qz = foot(px, py, pz, points, begin + best, stops, curvature)
        limit = _limit(square, slack, least)
        if frames.shape[0] == 0 and visits > many * (query - first) + lines.shape[0]:
            frames = _fit_frames(points, begin, segments, stops, tree.shape[0], levels, height)
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
            if level > 0:
                _to_boxes(tree, levels[level] + node, x, y, squares)
                if frames.shape[0] > 0:
                    _to_frames(frames[levels[level] + node], px, py, pz, curvature, slack, least, squares)
                base = top + 1
                for j in range(WIDTH):
                    bound = squares[j]
                    if bound <= limit:
                        top += 1
                        place = top
                        while place > base and bounds[place - 1] < bound:
                            stack[place, 1] = stack[place - 1, 1]
                            bounds[place] = bounds[place - 1]
                            place -= 1
                        stack[top, 0] = level - 1
                        stack[place, 1] = node * WIDTH + j
                        bounds[place] = bound
                continue
            visits += 1
            _to_lines(lines, node, x, y, squares)
            for j in range(WIDTH):
                if squares[j] <= limit and segments[node, j] != best:
                    nearer, fx, fy, fz = foot(px, py, pz, points, begin + segments[node, j], stops, curvature)
                    if nearer < square:
                        square = nearer
                        qx, qy, qz = fx, fy, fz
                        best = segments[node, j]
                        limit = _limit(square, slack, least)
        metres[query] = arc_between(px, py, pz, qx, qy, qz, curvature)
        if feet.shape[0] > 0:
            feet[query, 0] = qx
            feet[query, 1] = qy
            if feet.shape[1] == 3:
                feet[query, 2] = qz


@loop("metres, feet")
def search(points, offsets, curvature, index, queries, ranges, traces, first, last, metres, feet):
    """Find the nearest points of polylines to query points first … last − 1.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane: the polylines.
    offsets : int64, shape (traces + 1,)
        The first record of each trace, and the number of records.
    curvature : float
        1 on the sphere, 0 in the plane.
    index : tuple of arrays
        leaves, groups, lines, segments, tree, views, slacks and stops of `polyline_index`.
    queries : float64, shape (queries, 3) or (queries, 2)
        The query points, as `points`.
    ranges, traces : int64, shapes (n + 1,) and (n,)
        Query points ranges[j] … ranges[j + 1] − 1 are searched on trace traces[j].
    first, last : int
        The query points to search.
    metres : float64, shape (queries,)
        Written: the distances, in radians on the sphere and metres in the plane.
    feet : float64, shape (queries, 3) or (queries, 2), or empty
        Written, unless it is empty: the nearest points.
    """
    leaves, groups, lines, segments, tree, views, slacks, stops = index
    group = np.searchsorted(ranges, first, side="right") - 1
    while first < last:
        trace = traces[group]
        rows = slice(leaves[trace], leaves[trace + 1])
        _search_one(
            points,
            offsets[trace],
            stops,
            curvature,
            lines[rows],
            segments[rows],
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
