"""Slow plain twins of the metrics, straight from the definitions; points and times as in naive.py."""

import math
from collections.abc import Sequence
from itertools import pairwise

from naive import RADIUS, Point, distance, distance_to_segment


def spatial_error(point: Point, polyline: Sequence[Point]) -> float:
    """Distance to the nearest point of the whole polyline, all segments. One record: distance to it."""
    if len(polyline) == 1:
        return distance(point, polyline[0])
    return min(distance_to_segment(point, a, b) for a, b in pairwise(polyline))


def inside_on_globe(longitude: float, latitude: float, *, centre: tuple[float, float], half_side: float) -> bool:
    """|Δlat| ≤ h/R and |Δlon| ≤ h/(R·cos lat of the centre), longitudes modulo 360°, borders included.

    All longitudes where that reaches 180° or at a pole; nothing beyond the pole.
    """
    if abs(latitude - centre[1]) > math.degrees(half_side / RADIUS):
        return False
    flat = RADIUS * math.cos(math.radians(centre[1]))
    if abs(centre[1]) == 90 or half_side / flat >= math.pi:
        return True
    apart = abs(longitude - centre[0]) % 360
    return min(apart, 360 - apart) <= math.degrees(half_side / flat)


def inside_in_plane(x: float, y: float, *, centre: tuple[float, float], half_side: float) -> bool:
    """Square with sides north-south and east-west, borders included."""
    return abs(x - centre[0]) <= half_side and abs(y - centre[1]) <= half_side


def answer(
    users: Sequence[Sequence[tuple[float, float, int]]],
    *,
    centre: tuple[float, float],
    half_side: float,
    window: tuple[int, int],
    space: str,
) -> int:
    """Number of distinct users with at least one record (x, y, time) inside; both ends of the window included."""
    inside = inside_on_globe if space == "sphere" else inside_in_plane
    return sum(
        any(
            window[0] <= time <= window[1] and inside(x, y, centre=centre, half_side=half_side)
            for x, y, time in records
        )
        for records in users
    )


def distortion(before: int, after: int) -> float:
    """|Q(D) − Q(D′)|/Q(D); 0/0 = 0, n/0 = NaN."""
    if before == 0:
        return 0.0 if after == 0 else math.nan
    return abs(before - after) / before


def retrieval(
    original: Sequence[Point], protected: Sequence[Point], *, threshold: float
) -> tuple[int, float, float, float]:
    """Matched, precision, recall and F-score of one trace: each found point retrieves the nearest within reach."""
    retrieved = set()
    for found in protected:
        distances = [distance(found, place) for place in original]
        if distances and min(distances) <= threshold:
            retrieved.add(distances.index(min(distances)))
    matched = len(retrieved)
    precision = matched / len(protected) if protected else math.nan
    recall = matched / len(original) if original else math.nan
    score = 2 * precision * recall / (precision + recall) if matched else 0.0
    return matched, precision, recall, score
