"""Slow plain twins of the kernels, straight from the definitions.

A point is a tuple: a unit vector (x, y, z) on the sphere, or metres (x, y) in the plane. Times are Python integers.
"""

import math
from collections.abc import Sequence

RADIUS = 6_371_008.8

Point = tuple[float, ...]
Sample = tuple[Point, int]


def on_globe(longitude: float, latitude: float) -> Point:
    """Work on unit vectors: no antimeridian, no poles."""
    across, up = math.radians(longitude), math.radians(latitude)
    return math.cos(up) * math.cos(across), math.cos(up) * math.sin(across), math.sin(up)


def dot(a: Point, b: Point) -> float:
    """a · b."""
    return math.fsum(p * q for p, q in zip(a, b, strict=True))


def to(a: Point, b: Point) -> Point:
    """b − a."""
    return tuple(q - p for p, q in zip(a, b, strict=True))


def cross(a: Point, b: Point) -> Point:
    """a × b, the normal of the great circle through both; as a × (b − a), which is accurate for neighbours."""
    x, y, z = to(a, b)
    return a[1] * z - a[2] * y, a[2] * x - a[0] * z, a[0] * y - a[1] * x


def distance(a: Point, b: Point) -> float:
    """Great-circle distance on a sphere of radius 6 371 008.8 m, or Euclidean distance in the plane."""
    if len(a) == 2:
        return math.dist(a, b)
    return RADIUS * math.atan2(math.hypot(*cross(a, b)), dot(a, b))


def between(a: Point, b: Point, part: float) -> Point:
    """A segment joins two consecutive records of a trace: a great-circle arc, or a straight line in the plane."""
    weights = 1 - part, part
    if len(a) == 3:
        theta = distance(a, b) / RADIUS
        weights = tuple(math.sin(weight * theta) / math.sin(theta) for weight in weights)
    return tuple(weights[0] * p + weights[1] * q for p, q in zip(a, b, strict=True))


def distance_to_segment(point: Point, a: Point, b: Point) -> float:
    """Distance to the nearest point of a segment: its ends, or the foot of the perpendicular where that is on it."""
    ends = min(distance(point, a), distance(point, b))
    if distance(a, b) == 0:
        return ends
    if len(a) == 2:
        along = to(a, b)
        part = dot(along, to(a, point)) / dot(along, along)
        return math.dist(point, between(a, b, part)) if 0 < part < 1 else ends
    normal = cross(a, b)
    length = math.hypot(*normal)
    normal = tuple(axis / length for axis in normal)
    if dot(cross(normal, a), to(point, a)) < 0 < dot(cross(normal, b), to(point, b)):
        return abs(RADIUS * math.asin(dot(normal, to(a, point))))
    return ends


def far_enough(metres: float, epsilon: float) -> bool:
    """'d ≥ ε' carries a tolerance of 1e-9·ε + 1e-8 m, so that rounding does not decide."""
    return metres >= epsilon - (1e-9 * epsilon + 1e-8)


def crossing(sample: Point, a: Point, b: Point, *, epsilon: float) -> Point:
    """The first point on the segment whose distance to the last sample is exactly ε (clamped to its end)."""
    if distance(sample, b) <= epsilon:
        return b
    inside, outside = 0.0, 1.0
    while inside < (middle := (inside + outside) / 2) < outside:
        if distance(sample, between(a, b, middle)) < epsilon:
            inside = middle
        else:
            outside = middle
    return between(a, b, outside)


def from_anchor(anchor: Point, end: Point, *, epsilon: float) -> list[Point]:
    """Several samples on one straight piece: at m·ε beyond the anchor, m = 1 … ⌊(rest/ε)(1 + 1e-9) + 1e-8/ε⌋.

    At least 1 where d ≥ ε held; a position past the segment's end is clamped to it.
    """
    rest = distance(anchor, end)
    if not far_enough(rest, epsilon):
        return []
    count = max(1, math.floor(rest / epsilon * (1 + 1e-9) + 1e-8 / epsilon))
    return [between(anchor, end, m * epsilon / rest) if m * epsilon < rest else end for m in range(1, count + 1)]


def polyline_samples(points: Sequence[Point], times: Sequence[int], *, epsilon: float) -> list[Sample]:
    """The new sample is the first point on the original polyline whose distance to the last sample is exactly ε.

    Its crossing time is interpolated along the segment.
    """
    samples = [(points[0], times[0])]
    for a, b, begin, end in zip(points, points[1:], times, times[1:], strict=False):
        if not far_enough(distance(samples[-1][0], b), epsilon):
            continue
        first = crossing(samples[-1][0], a, b, epsilon=epsilon)
        for point in [first, *from_anchor(first, b, epsilon=epsilon)]:
            part = min(distance(a, point) / distance(a, b), 1.0)
            samples.append((point, begin + round(part * (end - begin))))
    return samples


def pseudocode_samples(points: Sequence[Point], times: Sequence[int], *, epsilon: float) -> list[Sample]:
    """When a record is at d ≥ ε from the last sample, the new one lies at ε from it towards that record.

    Its time is the record's time; repeat while d ≥ ε.
    """
    samples = [(points[0], times[0])]
    for record, time in zip(points[1:], times[1:], strict=True):
        samples += [(point, time) for point in from_anchor(samples[-1][0], record, epsilon=epsilon)]
    return samples


def spread(begin: int, end: int, *, count: int) -> list[int]:
    """t_min + ⌊i·(t_max − t_min)/(n − 1)⌋; n = 1 keeps t_min."""
    return [begin + i * (end - begin) // max(count - 1, 1) for i in range(count)]


def promesse(
    points: Sequence[Point],
    times: Sequence[int],
    *,
    epsilon: float,
    variant: str,
    min_points: int = 1,
    head: int = 0,
    tail: int = 0,
) -> list[Sample]:
    """With at most two samples the trace is dropped. Else the first and the last are removed; the rest get times.

    `head` and `tail` more are removed from the ends.
    """
    sample = {"polyline": polyline_samples, "pseudocode": pseudocode_samples}[variant]
    remaining = sample(points, times, epsilon=epsilon)[1:-1]
    remaining = remaining[head : max(len(remaining) - tail, 0)]
    if len(remaining) < max(min_points, 1):
        return []
    fresh = spread(remaining[0][1], remaining[-1][1], count=len(remaining))
    return [(point, time) for (point, _), time in zip(remaining, fresh, strict=True)]
