"""Greedy alignment of two traces in plane and time (LST), for all pairs; its radius; and who is matched with whom.

Points are (x, y, z) in metres, z = time · mean speed, never falling along a trace. rule = (size, cap, far, apart):
a pair at distance d costs min(cap, trunc(d / size)); `far` is the smallest d² that costs cap, `apart` the smallest
root of such a d². Where the three next pairs all cost cap the alignment goes on along the diagonal, so stretches
that are far apart throughout need no deciding.

Bound: nine subtractions and multiplications a step where traces are near in time; nothing where they are not.
"""

import math

from promesse_geo.kernels import inner, loop

_RUN = 16  # steps looked at together


@inner
def _cost(x, y, z, i, j, size, cap):
    dx = x[i] - x[j]
    dy = y[i] - y[j]
    dz = z[i] - z[j]
    return int(min(cap, math.sqrt(dx * dx + dy * dy + dz * dz) / size))


@inner
def _diagonal_is_far(x, y, z, i, j, far):
    """Whether the next 16 steps along the diagonal have only far pairs to choose from."""
    near = 0
    for step in range(_RUN):
        dx = x[i + step + 1] - x[j + step + 1]
        dy = y[i + step + 1] - y[j + step + 1]
        dz = z[i + step + 1] - z[j + step + 1]
        both = dx * dx + dy * dy + dz * dz
        dx = x[i + step] - x[j + step + 1]
        dy = y[i + step] - y[j + step + 1]
        dz = z[i + step] - z[j + step + 1]
        other = dx * dx + dy * dy + dz * dz
        dx = x[i + step + 1] - x[j + step]
        dy = y[i + step + 1] - y[j + step]
        dz = z[i + step + 1] - z[j + step]
        pivot = dx * dx + dy * dy + dz * dz
        near += 1 if min(both, other, pivot) < far else 0
    return near == 0


@inner
def _later_by_far(z, i, j, steps, apart):
    """How many of the next steps along the diagonal keep the trace of i far later than that of j; 0 or at least 16."""
    done = _RUN
    if z[i] - z[j + done] >= apart:
        while 2 * done <= steps and z[i] - z[j + 2 * done] >= apart:
            done *= 2
        return done
    near = 0
    for step in range(_RUN):
        near += 1 if z[i + step] - z[j + step + 1] < apart else 0
    return _RUN if near == 0 else 0


@inner
def _far_steps(x, y, z, i, j, steps, far, apart):
    """How many of the next steps along the diagonal surely cost cap: 0 or at least 16."""
    if steps < _RUN:
        return 0
    if z[i] - z[j] >= apart:
        found = _later_by_far(z, i, j, steps, apart)
    elif z[j] - z[i] >= apart:
        found = _later_by_far(z, j, i, steps, apart)
    else:
        found = 0
    if found == 0 and _diagonal_is_far(x, y, z, i, j, far):
        found = _RUN
    return found


@inner
def _tail(x, y, z, first, stop, j, rule):
    """Cost of the points first … stop − 1 against point j: cap each, but for those near it in time."""
    size, cap, _, apart = rule
    low = first
    high = stop
    while low < high:
        middle = (low + high) // 2
        if z[j] - z[middle] >= apart:
            low = middle + 1
        else:
            high = middle
    total = int(cap) * (low - first)
    for i in range(low, stop):
        if z[i] - z[j] >= apart:
            return total + int(cap) * (stop - i)
        total += _cost(x, y, z, i, j, size, cap)
    return total


@loop
def align(x, y, z, i, i_stop, j, j_stop, rule):
    """LST of the pivot's points i … i_stop − 1 and the other's j … j_stop − 1."""
    size, cap, far, apart = rule
    total = _cost(x, y, z, i, j, size, cap)
    while i + 1 < i_stop and j + 1 < j_stop:
        free = _far_steps(x, y, z, i, j, min(i_stop - i, j_stop - j) - 1, far, apart)
        if free:
            total += int(cap) * free
            i += free
            j += free
            continue
        for _ in range(_RUN):
            if i + 1 >= i_stop or j + 1 >= j_stop:
                break
            both = _cost(x, y, z, i + 1, j + 1, size, cap)
            other = _cost(x, y, z, i, j + 1, size, cap)
            pivot = _cost(x, y, z, i + 1, j, size, cap)
            if both <= other and both <= pivot:
                i += 1
                j += 1
                total += both
            elif other <= pivot:
                j += 1
                total += other
            else:
                i += 1
                total += pivot
    total += _tail(x, y, z, i + 1, i_stop, j, rule)
    return total + _tail(x, y, z, j + 1, j_stop, i_stop - 1, rule)


@loop
def measure_traces(x, y, begins, ends, first, last, paths, boxes):
    """Write path length and (x, x, y, y) box of traces first … last − 1."""
    for trace in range(first, last):
        path = 0.0
        box = boxes[trace]
        box[0] = box[1] = x[begins[trace]]
        box[2] = box[3] = y[begins[trace]]
        for i in range(begins[trace] + 1, ends[trace]):
            dx = x[i] - x[i - 1]
            dy = y[i] - y[i - 1]
            path += math.sqrt(dx * dx + dy * dy)
            box[0] = min(box[0], x[i])
            box[1] = max(box[1], x[i])
            box[2] = min(box[2], y[i])
            box[3] = max(box[3], y[i])
        paths[trace] = path


@loop
def align_all(x, y, z, begins, ends, boxes, members, first, last, rule, out):
    """Write rows first … last − 1 of the LSTs between members; traces whose boxes are far apart are not aligned."""
    cap = int(rule[1])
    for row in range(first, last):
        p = members[row]
        for column in range(len(members)):
            q = members[column]
            dx = max(0.0, boxes[p, 0] - boxes[q, 1], boxes[q, 0] - boxes[p, 1])
            dy = max(0.0, boxes[p, 2] - boxes[q, 3], boxes[q, 2] - boxes[p, 3])
            dz = max(0.0, z[begins[p]] - z[ends[q] - 1], z[begins[q]] - z[ends[p] - 1])
            if dx * dx + dy * dy + dz * dz >= rule[2]:
                out[row, column] = cap * max(ends[p] - begins[p], ends[q] - begins[q])
            else:
                out[row, column] = align(x, y, z, begins[p], ends[p], begins[q], ends[q], rule)


@inner
def _next(x, y, z, i, j, size, cap):
    """Return the next pair of an alignment of which neither trace is at its end."""
    both = _cost(x, y, z, i + 1, j + 1, size, cap)
    other = _cost(x, y, z, i, j + 1, size, cap)
    pivot = _cost(x, y, z, i + 1, j, size, cap)
    if both <= other and both <= pivot:
        return i + 1, j + 1
    if other <= pivot:
        return i, j + 1
    return i + 1, j


@loop
def find_radius(x, y, z, i, i_stop, j, j_stop, size, cap, limit):
    """Max2D: the largest plane distance on the alignment but for its first pair; stops at the first beyond limit."""
    largest = 0.0
    while (i + 1 < i_stop or j + 1 < j_stop) and largest <= limit:
        if i + 1 == i_stop:
            j += 1
        elif j + 1 == j_stop:
            i += 1
        else:
            i, j = _next(x, y, z, i, j, size, cap)
        dx = x[i] - x[j]
        dy = y[i] - y[j]
        largest = max(largest, math.sqrt(dx * dx + dy * dy))
    return largest


@loop
def write_members(x, y, z, times, begins, ends, pivots, members, places, first, last, size, cap, half, out, sums):
    """Write members first … last − 1 as they are published: as many points as the pivot has, at its times.

    Each of the pivot's points has a point of the member; beyond `half` metres that is brought to the circle. out =
    (x, y, times, record of the point or −1 where it was moved); sums, for each member = metres beyond half, points
    moved, nanoseconds of difference, points of another time.
    """
    out_x, out_y, out_times, sources = out
    for member in range(first, last):
        start = i = begins[pivots[member]]
        j = begins[members[member]]
        i_stop = ends[pivots[member]]
        j_stop = ends[members[member]]
        sums[member] = 0.0
        entered = True
        while True:
            if entered:
                place = places[member] + i - start
                dx = x[j] - x[i]
                dy = y[j] - y[i]
                away = math.sqrt(dx * dx + dy * dy)
                beyond = away > half
                out_x[place] = x[i] + dx * half / away if beyond else x[j]
                out_y[place] = y[i] + dy * half / away if beyond else y[j]
                out_times[place] = times[i]
                sources[place] = -1 if beyond else j
                later = abs(times[i] - times[j])
                sums[member, 0] += max(away - half, 0.0)
                sums[member, 1] += beyond
                sums[member, 2] += later
                sums[member, 3] += later > 0
            if i + 1 == i_stop:
                break
            before = i
            if j + 1 == j_stop:
                i += 1
            else:
                i, j = _next(x, y, z, i, j, size, cap)
            entered = i > before


@loop
def find_candidate(remaining, count, failed, position):
    """The first of `count` positions, from `position` on and round, whose trace has not failed."""
    while failed[remaining[position]]:
        position = position + 1 if position + 1 < count else 0
    return position


@inner
def _rise(amounts, places, at):
    """Let entry `at` of a heap rise (entries count from 1) while the one above it is smaller."""
    while at > 1 and amounts[at // 2] < amounts[at]:
        amounts[at // 2], amounts[at] = amounts[at], amounts[at // 2]
        places[at // 2], places[at] = places[at], places[at // 2]
        at //= 2


@inner
def _sink(amounts, places, held):
    """Let the top of a heap of `held` entries sink while one below is larger; the left one of equals comes up."""
    at = 1
    while 2 * at <= held:
        child = 2 * at
        if child < held and amounts[child + 1] > amounts[child]:
            child += 1
        if amounts[child] <= amounts[at]:
            break
        amounts[child], amounts[at] = amounts[at], amounts[child]
        places[child], places[at] = places[at], places[child]
        at = child


@inner
def _last_nearest(row, remaining, count, pivot):
    best = -1
    for position in range(count):
        if position != pivot and (best < 0 or row[remaining[position]] <= row[remaining[best]]):
            best = position
    return best


@loop
def select_nearest(row, remaining, count, pivot, amounts, places):
    """Write into places[1], … the positions of the nearest of remaining[:count], but for position `pivot`.

    `amounts` and `places` have room for k + 1: a heap of k − 1 entries, one that comes, and an unused place 0. Each
    candidate goes through the heap, in order of position: its layout decides between equals.
    """
    size = len(places) - 2
    if size == 1:  # of equals the last one stays
        places[1] = _last_nearest(row, remaining, count, pivot)
        return
    held = 0
    for position in range(count):
        if position == pivot:
            continue
        held += 1
        amounts[held] = row[remaining[position]]
        places[held] = position
        _rise(amounts, places, held)
        if held > size:
            amounts[1] = amounts[held]
            places[1] = places[held]
            held = size
            _sink(amounts, places, held)


@loop
def compare_features(features, left, out):
    """Write the squared distances of the features of left[1:] to those of left[0]."""
    for i in range(1, len(left)):
        total = 0.0
        for column in range(features.shape[1]):
            gap = features[left[i], column] - features[left[0], column]
            total += gap * gap
        out[i - 1] = total
