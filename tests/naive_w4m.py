"""Slow twin of Wait for Me, from the rules: plain lists, one pair of points at a time."""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np


@dataclass
class Result:
    """What came out: clusters as (pivot, members in input order), trash, and published (x, y) beside pivot times."""

    clusters: list[tuple[int, list[int]]]
    trash: list[int]
    radius: float
    restarts: int
    published: dict[int, tuple[int, list[tuple[float, float]]]] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)


def c_rand(seed=1):
    """glibc's rand(): r[i] = r[i-3] + r[i-31], the first 310 dropped, shifted right by one."""
    r = [seed]
    for i in range(1, 31):
        r.append(16807 * r[i - 1] % (2**31 - 1))
    for i in range(31, 34):
        r.append(r[i - 31])
    dropped = 0
    while True:
        r.append((r[-3] + r[-31]) % 2**32)
        dropped += 1
        if dropped > 310:
            yield r[-1] >> 1


def v1_1_index(seed=1):
    """rand() mod length."""
    numbers = c_rand(seed)
    return lambda length: next(numbers) % length


def mean_speed(traces, *, single):
    """Mean of (path length / duration); without duration 0; `single` rounds both to float32."""
    speeds = []
    for t, x, y in traces:
        path = 0.0
        for i in range(1, len(t)):
            path += math.sqrt((x[i] - x[i - 1]) * (x[i] - x[i - 1]) + (y[i] - y[i - 1]) * (y[i] - y[i - 1]))
        path = float(np.float32(path)) if single else path
        duration = t[-1] - t[0]
        speed = path / duration if duration > 0 else 0.0
        speeds.append(float(np.float32(speed)) if single else speed)
    return math.fsum(speeds) / len(speeds)


def cost(p, q, *, s, cap):
    dx, dy, dz = p[0] - q[0], p[1] - q[1], p[2] - q[2]
    return int(min(cap, math.sqrt(dx * dx + dy * dy + dz * dz) / s))


def steps(P, Q, *, s, cap):
    """Each step of the greedy alignment: kind, i, j and its cost."""
    n, m = len(P), len(Q)
    i = j = 0
    yield "start", 0, 0, cost(P[0], Q[0], s=s, cap=cap)
    while i + 1 < n and j + 1 < m:
        both = cost(P[i + 1], Q[j + 1], s=s, cap=cap)
        other = cost(P[i], Q[j + 1], s=s, cap=cap)
        pivot = cost(P[i + 1], Q[j], s=s, cap=cap)
        if both <= other and both <= pivot:
            i, j = i + 1, j + 1
            yield "both", i, j, both
        elif other <= pivot:
            j += 1
            yield "other", i, j, other
        else:
            i += 1
            yield "pivot", i, j, pivot
    for a in range(i + 1, n):
        yield "pivot", a, j, cost(P[a], Q[j], s=s, cap=cap)
    for b in range(j + 1, m):
        yield "other", n - 1, b, cost(P[n - 1], Q[b], s=s, cap=cap)


def lst(P, Q, *, s, cap):
    return sum(step[3] for step in steps(P, Q, s=s, cap=cap))


def plane_distance(p, q):
    dx, dy = p[0] - q[0], p[1] - q[1]
    return math.sqrt(dx * dx + dy * dy)


def max_2d(P, Q, *, s, cap):
    return max(
        (plane_distance(P[i], Q[j]) for kind, i, j, _ in steps(P, Q, s=s, cap=cap) if kind != "start"), default=0
    )


class Heap:
    """The bounded binary max-heap (1-based) that keeps the k - 1 smallest."""

    def __init__(self, size):
        self.size, self.items = size, [None]

    def feed(self, distance, position):
        items = self.items
        items.append((distance, position))
        at = len(items) - 1
        while at > 1 and items[at // 2][0] < items[at][0]:
            items[at // 2], items[at] = items[at], items[at // 2]
            at //= 2
        if len(items) - 1 > self.size:
            items[1] = items[-1]
            items.pop()
            at = 1
            while 2 * at < len(items):
                child = 2 * at
                if child + 1 < len(items) and items[child + 1][0] > items[child][0]:
                    child += 1
                if items[child][0] <= items[at][0]:
                    break
                items[child], items[at] = items[at], items[child]
                at = child


def cluster(traces, distance, radius_of, *, k, radius, limit, slip, index):
    """The clustering of `traces` (numbers) until the trash is small enough."""
    restarts = 0
    while True:
        remaining, failed, clusters = list(traces), set(), []
        while len(remaining) >= k and any(trace not in failed for trace in remaining):
            r = index(len(remaining))
            while remaining[r] in failed:
                r = (r + 1) % len(remaining)
            p = remaining[r]
            heap = Heap(k - 1)
            for position, trace in enumerate(remaining):
                if position != r:
                    heap.feed(distance(p, trace), position)
            positions = [position for _, position in heap.items[1:]]
            tested = [traces[position] if slip else remaining[position] for position in positions]
            if max(radius_of(p, trace) for trace in tested) > radius:
                failed.add(p)
                continue
            clusters.append((p, [p] + [remaining[position] for position in positions]))
            for position in sorted([r, *positions], reverse=True):
                failed.discard(remaining[position])
                remaining[position] = remaining[-1]
                remaining.pop()
        trash = [trace for trace in remaining if not joined(trace, clusters, distance, radius_of, radius=radius)]
        if len(trash) <= limit:
            return Result([(pivot, sorted(members)) for pivot, members in clusters], sorted(trash), radius, restarts)
        radius, restarts = max(int(1.5 * radius), radius + 1), restarts + 1


def joined(trace, clusters, distance, radius_of, *, radius):
    """Let a trace join the cluster of the nearest pivot, the first of equals, unless that is too far."""
    if not clusters:
        return False
    pivot, members = min(clusters, key=lambda cluster: distance(cluster[0], trace))
    if radius_of(pivot, trace) > radius:
        return False
    members.append(trace)
    return True


def squared_gap(one, other):
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total += (a - b) * (a - b)
    return total


def chunks_of(traces, speed, k):
    """Chunks of 20 k traces: the next unassigned one and its nearest, by first and last time and box."""
    features = [(t[0] * speed, t[-1] * speed, min(x), max(x), min(y), max(y)) for t, x, y in traces]
    left, chunks = list(range(len(traces))), []
    while len(left) >= 40 * k:
        first = left[0]
        gaps = {trace: squared_gap(features[trace], features[first]) for trace in left[1:]}
        near = sorted(left[1:], key=lambda trace: (gaps[trace], trace))[: 20 * k - 1]
        chunks.append([first, *near])
        left = [trace for trace in left[1:] if trace not in set(near)]
    return [*chunks, left]


def published(P, Q, *, delta, cap):
    """Match each point of the pivot to a point of Q, and bring that to within delta / 2."""
    matched = {}
    for kind, i, j, _ in steps(P, Q, s=delta / 2, cap=cap):
        if kind != "other":
            matched[i] = j
    points, moved = [], []
    for i, p in enumerate(P):
        q = Q[matched[i]]
        d = plane_distance(p, q)
        moved.append(max(d - delta / 2, 0.0))
        if d > delta / 2:
            q = (p[0] + (q[0] - p[0]) * (delta / 2) / d, p[1] + (q[1] - p[1]) * (delta / 2) / d)
        points.append((q[0], q[1]))
    return points, matched, moved


def wait_for_me(
    traces,
    *,
    k=2,
    delta=200.0,
    max_radius=5000.0,
    max_trash=0.1,
    cap=10,
    radius_test="members",
    chunk=False,
    single=False,
    index_of_chunk,
):
    """Protect traces given as (seconds, x, y) lists; `index_of_chunk(number)` gives each chunk's random index."""
    assert len(traces) >= k
    speed = mean_speed(traces, single=single)
    points = [[(x[i], y[i], t[i] * speed) for i in range(len(t))] for t, x, y in traces]
    lsts, radii = {}, {}

    def distance(p, q):
        if (p, q) not in lsts:
            lsts[p, q] = lst(points[p], points[q], s=delta, cap=cap)
        return lsts[p, q]

    def radius_of(p, q):
        if (p, q) not in radii:
            radii[p, q] = max_2d(points[p], points[q], s=delta, cap=cap)
        return radii[p, q]

    chunks = chunks_of(traces, speed, k) if chunk else [list(range(len(traces)))]
    limit = math.floor(Fraction(str(max_trash)) * len(traces)) // len(chunks)
    result = Result([], [], max_radius, 0)
    for number, members in enumerate(chunks):
        part = cluster(
            members,
            distance,
            radius_of,
            k=k,
            radius=max_radius,
            limit=limit,
            slip=radius_test == "v1.1",
            index=index_of_chunk(number),
        )
        result.clusters += part.clusters
        result.trash += part.trash
        result.radius = max(result.radius, part.radius)
        result.restarts += part.restarts
    _publish(result, traces, points, delta=delta, cap=cap)
    return result


def _publish(result, traces, points, *, delta, cap):
    space = time = 0.0
    moves = shifts = created = deleted = squares = inputs = 0
    for pivot, members in result.clusters:
        squares += len(members) ** 2
        for member in members:
            way, matched, moved = published(points[pivot], points[member], delta=delta, cap=cap)
            result.published[member] = (pivot, way)
            inputs += len(points[member])
            space += math.fsum(moved)
            moves += sum(move > 0 for move in moved)
            gaps = [abs(traces[pivot][0][i] - traces[member][0][j]) for i, j in matched.items()]
            time += math.fsum(gaps)
            shifts += sum(gap > 0 for gap in gaps)
            created += max(0, len(points[pivot]) - len(points[member]))
            deleted += max(0, len(points[member]) - len(points[pivot]))
    xs = [x for _, way, _ in traces for x in way]
    ys = [y for _, _, way in traces for y in way]
    result.figures = {
        "pseudo diameter": math.hypot(max(xs) - min(xs), max(ys) - min(ys)),
        "trash": len(result.trash),
        "trashed points": sum(len(points[trace]) for trace in result.trash),
        "discernibility": squares + len(result.trash) * len(traces),
        "space": space,
        "time": time,
        "moves": moves,
        "shifts": shifts,
        "created": created,
        "deleted": deleted,
        "inputs": inputs,
    }
