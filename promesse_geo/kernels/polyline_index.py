"""An index of the polylines of traces: short arcs and boxes around them, to find what is nearest to a point.

Long segments are cut into arcs of about the mean length of the trace's segments, so that boxes around them are small.
The arcs are projected to the view from above the trace's mean (in the plane, they stay as they are), sorted along a
Morton curve, and boxed eight by eight, level over level. The projection of a chord is at most as long as the chord, and
an arc lies within its sagitta of its chord, so distances in the view less the sagitta are lower bounds of the true
distances, anywhere on the globe.

For trace i, rows leaves[i] … leaves[i + 1] − 1 of `lines` hold its arcs, eight to a row, and the same rows of
`segments` their segments. Rows groups[i] … groups[i + 1] − 1 of `tree` hold its boxes, eight to a row: first those of
the leaves, then, level by level, those of eight boxes each. A row of fewer than eight boxes is filled with boxes far
away, a row of fewer than eight arcs with the last arc.

Cost: the length of each segment, measured three times, and the sort.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import arc_between, direction, read

WIDTH = 8  # arcs in a leaf, and boxes in a group
_CELLS = 65535.0  # of the Morton curve, along each axis
_FINEST = 8.0  # arcs to a segment of mean length, at most
NOWHERE = 1e150  # far away, and its square is a number


@inner("view")
def _look(points, first, last, view):
    """Write the axes of the view: east and north at the mean of records first … last − 1, or those of the plane."""
    view[:] = 0.0
    view[0] = 1.0
    view[4] = 1.0
    if points.shape[1] == 2:
        return
    x, y, z = 0.0, 0.0, 0.0
    for i in range(first, last):
        x += points[i, 0]
        y += points[i, 1]
        z += points[i, 2]
    flat = math.hypot(x, y)
    length = math.hypot(flat, z)
    if flat <= 1e-9 * length or length == 0.0:  # at a pole, or all around the globe: any view is valid
        return
    view[0] = -y / flat
    view[1] = x / flat
    view[3] = -z / length * (x / flat)
    view[4] = -z / length * (y / flat)
    view[5] = flat / length


@inner()
def _spread(cell):
    """Return the lower 16 bits of a number, with a zero between each two."""
    cell = (cell | (cell << 8)) & 0x00FF00FF
    cell = (cell | (cell << 4)) & 0x0F0F0F0F
    cell = (cell | (cell << 2)) & 0x33333333
    return (cell | (cell << 1)) & 0x55555555


@inner()
def _target(points, first, last, stops, curvature, view):
    """Return the largest length of an arc: the mean of the segments, down to an eighth of it where they cross densely.

    Arcs of length s cover N s² = L s with their boxes, so that a point lies in few leaves where L s ≤ 8 A.
    """
    total = 0.0
    segments = 0
    low_x, low_y, high_x, high_y = math.inf, math.inf, -math.inf, -math.inf
    for k in range(first, last):
        ax, ay, az = read(points, k)
        x = ax * view[0] + ay * view[1] + az * view[2]
        y = ax * view[3] + ay * view[4] + az * view[5]
        low_x = min(low_x, x)
        high_x = max(high_x, x)
        low_y = min(low_y, y)
        high_y = max(high_y, y)
        if not stops[k]:
            segments += 1
            bx, by, bz = read(points, k + 1)
            total += arc_between(ax, ay, az, bx, by, bz, curvature)
    if total == 0.0:
        return 0.0
    mean = total / segments
    return min(mean, max(8.0 * (high_x - low_x) * (high_y - low_y) / total, mean / _FINEST))


@inner()
def _pieces(length, target):
    """Return the number of arcs of a segment."""
    return math.ceil(length / target) if length > target else 1


@inner()
def groups_of(things):
    """Return the number of groups of eight.

    Parameters
    ----------
    things : int
        The number of boxes or arcs.
    """
    return (things + WIDTH - 1) // WIDTH


@loop("leaves, groups, targets, views")
def count(points, offsets, curvature, stops, first, last, leaves, groups, targets, views):
    """Count the leaves and groups of boxes of traces first … last − 1.

    Repeated points have no arc, but between two stops there is at least one.

    Parameters
    ----------
    points, offsets, curvature, first, last
        As for `polyline.search`, for the traces to count.
    stops : bool, shape (records,)
        Whether no segment leads from a record to the next: the last record of a trace, or before a break.
    leaves, groups : int64, shape (traces,)
        Written: how many leaves and groups of boxes each trace has.
    targets : float64, shape (traces,)
        Written: the length of arcs, in radians on the sphere and metres in the plane.
    views : float64, shape (traces, 6)
        Written: the two axes of the view.
    """
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        _look(points, begin, end, views[trace])
        target = _target(points, begin, end, stops, curvature, views[trace])
        arcs = 0
        before = 0  # arcs up to the last stop
        for k in range(begin, end):
            if stops[k]:
                arcs += arcs == before
                before = arcs
                continue
            ax, ay, az = read(points, k)
            bx, by, bz = read(points, k + 1)
            length = arc_between(ax, ay, az, bx, by, bz, curvature)
            if length > 0.0:
                arcs += _pieces(length, target)
        size = groups_of(arcs)
        leaves[trace] = size
        groups[trace] = 0
        while True:
            size = groups_of(size)
            groups[trace] += size
            if size == 1:
                break
        targets[trace] = target


@inner("ends, owners")
def _cut(points, begin, end, stops, curvature, target, view, ends, owners):
    """Write the arcs' ends in the view and their segments; return their number and sagitta."""
    placed = 0
    before = 0  # arcs up to the last stop
    sagitta = 0.0
    largest = curvature
    ax, ay, az = read(points, begin)
    x = ax * view[0] + ay * view[1] + az * view[2]
    y = ax * view[3] + ay * view[4] + az * view[5]
    for k in range(begin, end):
        if stops[k]:
            if placed == before:
                ends[placed, 0] = ends[placed, 2] = x
                ends[placed, 1] = ends[placed, 3] = y
                owners[placed] = k - begin
                placed += 1
                largest = max(largest, abs(x), abs(y))
            before = placed
            if k + 1 < end:
                ax, ay, az = read(points, k + 1)
                x = ax * view[0] + ay * view[1] + az * view[2]
                y = ax * view[3] + ay * view[4] + az * view[5]
            continue
        ax, ay, az = read(points, k)
        bx, by, bz = read(points, k + 1)
        length = arc_between(ax, ay, az, bx, by, bz, curvature)
        if length == 0.0:
            continue
        pieces = _pieces(length, target)
        ux, uy, uz, square = direction(ax, ay, az, bx, by, bz, curvature)
        for piece in range(1, pieces + 1):
            cx, cy, cz = bx, by, bz
            if piece < pieces:
                part = length * piece / pieces
                along = part / math.sqrt(square)
                stay = 1.0
                if curvature != 0.0:
                    along = math.sin(part) / math.sqrt(square)
                    stay = math.cos(part)
                cx = stay * ax + along * ux
                cy = stay * ay + along * uy
                cz = stay * az + along * uz
            ends[placed, 0] = x
            ends[placed, 1] = y
            x = cx * view[0] + cy * view[1] + cz * view[2]
            y = cx * view[3] + cy * view[4] + cz * view[5]
            ends[placed, 2] = x
            ends[placed, 3] = y
            owners[placed] = k - begin
            placed += 1
        half = 0.5 * length / pieces
        sagitta = max(sagitta, 0.5 * curvature * half * half)  # at least 1 − cos
        largest = max(largest, abs(x), abs(y))
    return placed, sagitta + 4e-15 * largest  # and rounding


@loop()
def _in_order(ends):
    """Return the arcs in the order of their middles on a Morton curve: the number of each in the lower 31 bits."""
    size = ends.shape[0]
    middle_x = ends[:, 0] + ends[:, 2]
    middle_y = ends[:, 1] + ends[:, 3]
    low_x = middle_x.min()
    low_y = middle_y.min()
    span = max(middle_x.max() - low_x, middle_y.max() - low_y)
    scale = _CELLS / span if span > 0.0 else 0.0
    keys = np.empty(size, np.int64)
    for i in range(size):
        across = _spread(int((middle_x[i] - low_x) * scale))
        along = _spread(int((middle_y[i] - low_y) * scale))
        keys[i] = ((across | (along << 1)) << 31) | i
    keys.sort()
    return keys


@inner("lines, segments, tree")
def _plant(ends, owners, keys, lines, segments, tree):
    """Fill the leaves with arcs (x, y, dx, dy, 1/d²), and the first level of the tree with their boxes."""
    tree[:, :2] = NOWHERE
    tree[:, 2:] = -NOWHERE
    for leaf in range(lines.shape[0]):
        group = leaf // WIDTH
        place = leaf % WIDTH
        for j in range(WIDTH):
            k = keys[min(leaf * WIDTH + j, keys.shape[0] - 1)] & 0x7FFFFFFF
            dx = ends[k, 2] - ends[k, 0]
            dy = ends[k, 3] - ends[k, 1]
            square = dx * dx + dy * dy
            lines[leaf, 0, j] = ends[k, 0]
            lines[leaf, 1, j] = ends[k, 1]
            lines[leaf, 2, j] = dx
            lines[leaf, 3, j] = dy
            lines[leaf, 4, j] = 1.0 / square if square > 1e-290 else 0.0
            segments[leaf, j] = owners[k]
            tree[group, 0, place] = min(tree[group, 0, place], ends[k, 0], ends[k, 2])
            tree[group, 1, place] = min(tree[group, 1, place], ends[k, 1], ends[k, 3])
            tree[group, 2, place] = max(tree[group, 2, place], ends[k, 0], ends[k, 2])
            tree[group, 3, place] = max(tree[group, 3, place], ends[k, 1], ends[k, 3])


@inner("tree")
def _grow(tree, leaves):
    """Fill the levels above: each group of eight boxes is one box of the next level."""
    below = 0
    size = groups_of(leaves)
    while size > 1:
        above = below + size
        for i in range(size):
            group = above + i // WIDTH
            place = i % WIDTH
            for side in range(4):
                bound = tree[below + i, side, 0]
                for box in range(1, WIDTH):  # not .min(): whether that compiles depends on what is in the cache
                    other = tree[below + i, side, box]
                    bound = min(bound, other) if side < 2 else max(bound, other)
                tree[group, side, place] = bound
        below = above
        size = groups_of(size)


@loop("lines, segments, tree, slacks")
def build(
    points, offsets, curvature, targets, first, last, leaves, groups, lines, segments, tree, views, slacks, stops
):
    """Fill the index of traces first … last − 1.

    Parameters
    ----------
    points, offsets, curvature, targets, views, stops
        As for `count`.
    first, last : int
        The traces to index.
    leaves, groups : int64, shape (traces + 1,)
        The first leaf and the first group of each trace, and their number.
    lines : float64, shape (leaves, 5, 8)
        Written: x, y, dx, dy and 1/d² of eight arcs in the view.
    segments : int32, shape (leaves, 8)
        Written: the record at which the segment of each arc starts, counted from the first of its trace.
    tree : float64, shape (groups, 4, 8)
        Written: low x, low y, high x and high y of eight boxes.
    slacks : float64, shape (traces,)
        Written: how much nearer an arc may be than it is in the view.
    """
    for trace in range(first, last):
        begin = offsets[trace]
        end = offsets[trace + 1]
        rows = slice(leaves[trace], leaves[trace + 1])
        boxes = tree[groups[trace] : groups[trace + 1]]
        most = (leaves[trace + 1] - leaves[trace]) * WIDTH
        ends = np.empty((most, 4))
        owners = np.empty(most, np.int32)
        arcs, slacks[trace] = _cut(points, begin, end, stops, curvature, targets[trace], views[trace], ends, owners)
        _plant(ends, owners, _in_order(ends[:arcs]), lines[rows], segments[rows], boxes)
        _grow(boxes, leaves[trace + 1] - leaves[trace])
