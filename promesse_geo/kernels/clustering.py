"""Greedy alignment of traces in the plane and time (linear spatio-temporal distance, LST), and nearest traces.

Points are (x, y, z) in metres with z = time · mean speed, which never decreases along a trace. The alignment starts at
the pair of first records (i, j) and goes on to the cheapest of (i + 1, j + 1), (i, j + 1) and (i + 1, j), of equal ones
the first. The distance is the sum of the costs of its pairs.

rule = (size, cap, far, apart): a pair at distance d metres costs min(cap, ⌊d/size⌋); `far` is the least d² that costs
cap, `apart` the least root of such a d². If the next three pairs all cost cap, the alignment follows the diagonal: so
stretches that are far apart are skipped without comparing costs.
"""

import math

from promesse_geo.kernels import inner, loop

_RUN = 16  # steps compared together


@inner()
def _cost(x, y, z, i, j, size, cap):
    """Return the cost of a pair of records."""
    dx = x[i] - x[j]
    dy = y[i] - y[j]
    dz = z[i] - z[j]
    return int(min(cap, math.sqrt(dx * dx + dy * dy + dz * dz) / size))


@inner()
def _diagonal_is_far(x, y, z, i, j, far):
    """Return whether all pairs that the next 16 steps along the diagonal choose from are far."""
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


@inner()
def _later_by_far(z, i, j, steps, apart):
    """Return how many steps along the diagonal keep record i at least `apart` later than j: 0, or 16 or more."""
    done = _RUN
    if z[i] - z[j + done] >= apart:
        while 2 * done <= steps and z[i] - z[j + 2 * done] >= apart:
            done *= 2
        return done
    near = 0
    for step in range(_RUN):
        near += 1 if z[i + step] - z[j + step + 1] < apart else 0
    return _RUN if near == 0 else 0


@inner()
def _far_steps(x, y, z, i, j, steps, far, apart):
    """Return how many steps along the diagonal certainly cost cap: 0, or 16 or more."""
    if steps < _RUN:
        return 0
    if z[i] - z[j] >= apart:
        steps_apart = _later_by_far(z, i, j, steps, apart)
    elif z[j] - z[i] >= apart:
        steps_apart = _later_by_far(z, j, i, steps, apart)
    else:
        steps_apart = 0
    if steps_apart == 0 and _diagonal_is_far(x, y, z, i, j, far):
        steps_apart = _RUN
    return steps_apart


@inner()
def _tail(x, y, z, first, stop, j, rule):
    """Sum the costs of the records first … stop − 1 with record j: cap each, except those near it in time."""
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


@loop()
def align(x, y, z, i, i_stop, j, j_stop, rule):
    """Compute the LST distance of two traces.

    Parameters
    ----------
    x, y, z : float64, shape (records,)
        Metres in the plane, and metres of time.
    i, i_stop : int
        First record of the pivot, and the record after its last.
    j, j_stop : int
        First record of the other trace, and the record after its last.
    rule : tuple
        (size, cap, far, apart); see the module.

    Returns
    -------
    int
        Sum of the costs of all pairs of the alignment.
    """
    size, cap, far, apart = rule
    total = _cost(x, y, z, i, j, size, cap)
    while i + 1 < i_stop and j + 1 < j_stop:
        skipped = _far_steps(x, y, z, i, j, min(i_stop - i, j_stop - j) - 1, far, apart)
        if skipped:
            total += int(cap) * skipped
            i += skipped
            j += skipped
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


@loop("paths, boxes")
def measure_traces(x, y, begins, ends, first, last, paths, boxes):
    """Compute the path length and the bounding box of each trace.

    Parameters
    ----------
    x, y : float64, shape (records,)
        Metres in the plane.
    begins, ends : int64, shape (traces,)
        First record of each trace, and the record after its last.
    first, last : int
        Measures the traces first … last − 1.
    paths : float64, shape (traces,)
        Output: metres.
    boxes : float64, shape (traces, 4)
        Output: least and greatest x, least and greatest y, in metres.
    """
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


@loop("out")
def align_all(x, y, z, begins, ends, boxes, members, first, last, rule, out):
    """Compute the LST distances of some members, as pivots, to all members of a chunk.

    Traces whose boxes or times are far apart are not aligned: each pair costs cap, and there are as many pairs as
    records of the longer trace.

    Parameters
    ----------
    x, y, z : float64, shape (records,)
        Metres in the plane, and metres of time.
    begins, ends : int64, shape (traces,)
        First record of each trace, and the record after its last.
    boxes : float64, shape (traces, 4)
        Least and greatest x, least and greatest y of each trace, in metres.
    members : int64, shape (members,)
        Traces of the chunk.
    first, last : int
        Computes the rows first … last − 1.
    rule : tuple
        (size, cap, far, apart); see the module.
    out : int32 or int64, shape (members, members)
        Output: distance of the member of each row to that of each column.
    """
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


@inner()
def _next(x, y, z, i, j, size, cap):
    """Return the next pair of an alignment, if neither trace is at its end."""
    both = _cost(x, y, z, i + 1, j + 1, size, cap)
    other = _cost(x, y, z, i, j + 1, size, cap)
    pivot = _cost(x, y, z, i + 1, j, size, cap)
    if both <= other and both <= pivot:
        return i + 1, j + 1
    if other <= pivot:
        return i, j + 1
    return i + 1, j


@loop()
def find_radius(x, y, z, i, i_stop, j, j_stop, size, cap, limit):
    """Find the largest distance in the plane between the records of a pair of the alignment (Max2D).

    The first pair does not count. The search stops at a distance beyond `limit`.

    Parameters
    ----------
    x, y, z, i, i_stop, j, j_stop
        As in `align`.
    size, cap : float
        Metres of a unit of cost, and greatest cost of a pair.
    limit : float
        Metres.

    Returns
    -------
    float
        Metres.
    """
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


@loop("out, sums")
def write_members(x, y, z, times, begins, ends, pivots, members, first_rows, first, last, size, cap, half, out, sums):
    """Write the published records of members of clusters: as many as the pivot has, at its times.

    Each record of the pivot takes the first record of the member that it is aligned with. If that is more than `half`
    metres away, it is moved straight towards the record of the pivot, up to this distance.

    Parameters
    ----------
    x, y, z : float64, shape (records,)
        Metres in the plane, and metres of time.
    times : int64, shape (records,)
        Nanoseconds.
    begins, ends : int64, shape (traces,)
        First record of each trace, and the record after its last.
    pivots, members : int64, shape (members,)
        Pivot of each member's cluster, and the member.
    first_rows : int64, shape (members,)
        First output row of each member.
    first, last : int
        Writes the members first … last − 1.
    size, cap : float
        Metres of a unit of cost, and greatest cost of a pair.
    half : float
        Greatest distance from the pivot, in metres.
    out : tuple of four arrays, shape (rows,)
        Output: x and y in metres (float64), times in nanoseconds (int64), and the record that was published unchanged,
        or −1 (int64).
    sums : float64, shape (members, 4)
        Output: metres moved, records moved, nanoseconds shifted, records shifted in time.
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
                row = first_rows[member] + i - start
                dx = x[j] - x[i]
                dy = y[j] - y[i]
                distance = math.sqrt(dx * dx + dy * dy)
                beyond = distance > half
                out_x[row] = x[i] + dx * half / distance if beyond else x[j]
                out_y[row] = y[i] + dy * half / distance if beyond else y[j]
                out_times[row] = times[i]
                sources[row] = -1 if beyond else j
                shift = abs(times[i] - times[j])
                sums[member, 0] += max(distance - half, 0.0)
                sums[member, 1] += beyond
                sums[member, 2] += shift
                sums[member, 3] += shift > 0
            if i + 1 == i_stop:
                break
            previous = i
            if j + 1 == j_stop:
                i += 1
            else:
                i, j = _next(x, y, z, i, j, size, cap)
            entered = i > previous


@loop()
def find_candidate(remaining, count, failed, position):
    """Find the first candidate that has not failed, from a position on; the search goes on at the start.

    Parameters
    ----------
    remaining : int64, shape (count or more,)
        Traces.
    count : int
        Number of candidates: the first entries of `remaining`.
    failed : bool, shape (traces,)
        Whether each trace has failed as a pivot; not all candidates have.
    position : int
        First position to test.

    Returns
    -------
    int
        Position in `remaining`.
    """
    while failed[remaining[position]]:
        position = position + 1 if position + 1 < count else 0
    return position


@inner("distances, positions")
def _rise(distances, positions, at):
    """Move entry `at` of a heap (the first is 1) up while its parent is smaller."""
    while at > 1 and distances[at // 2] < distances[at]:
        distances[at // 2], distances[at] = distances[at], distances[at // 2]
        positions[at // 2], positions[at] = positions[at], positions[at // 2]
        at //= 2


@inner("distances, positions")
def _sink(distances, positions, size):
    """Move the top of a heap of `size` entries down while a child is larger; of equal children the left one rises."""
    at = 1
    while 2 * at <= size:
        child = 2 * at
        if child < size and distances[child + 1] > distances[child]:
            child += 1
        if distances[child] <= distances[at]:
            break
        distances[child], distances[at] = distances[at], distances[child]
        positions[child], positions[at] = positions[at], positions[child]
        at = child


@inner()
def _last_nearest(row, remaining, count, pivot):
    """Return the position of the candidate with the least distance to the pivot; of equal ones the last."""
    best = -1
    for position in range(count):
        if position != pivot and (best < 0 or row[remaining[position]] <= row[remaining[best]]):
            best = position
    return best


@loop("distances, positions")
def select_nearest(row, remaining, count, pivot, distances, positions):
    """Select the k − 1 candidates nearest to a pivot with a heap.

    Each candidate passes through the heap in the order of positions, because its layout decides between equal
    distances.

    Parameters
    ----------
    row : int32 or int64, shape (traces,)
        Distance of each trace from the pivot.
    remaining : int64, shape (count or more,)
        Traces.
    count : int
        Number of candidates: the first entries of `remaining`.
    pivot : int
        Position of the pivot, which is not a candidate.
    distances : int32 or int64, shape (k + 1,)
        Working memory: an unused entry 0, a heap of k − 1 entries and an added one.
    positions : int64, shape (k + 1,)
        Output: entries 1 … k − 1 are positions in `remaining`.
    """
    size = len(positions) - 2
    if size == 1:  # of equal distances the last one is selected
        positions[1] = _last_nearest(row, remaining, count, pivot)
        return
    filled = 0
    for position in range(count):
        if position == pivot:
            continue
        filled += 1
        distances[filled] = row[remaining[position]]
        positions[filled] = position
        _rise(distances, positions, filled)
        if filled > size:
            distances[1] = distances[filled]
            positions[1] = positions[filled]
            filled = size
            _sink(distances, positions, filled)


@loop("out")
def compare_features(features, traces, out):
    """Compute the squared Euclidean distance of the features of each trace to those of the first.

    Parameters
    ----------
    features : float64, shape (traces, features)
        Metres.
    traces : int64, shape (chosen,)
        Rows of `features`.
    out : float64, shape (chosen − 1,)
        Output: m², for the second trace and each one after it.
    """
    for i in range(1, len(traces)):
        total = 0.0
        for column in range(features.shape[1]):
            difference = features[traces[i], column] - features[traces[0], column]
            total += difference * difference
        out[i - 1] = total
