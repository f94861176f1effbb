"""The slow plain twin of stay detection, straight from the definition."""

from collections.abc import Callable, Sequence
from itertools import combinations

from naive import Point, distance


def stays(
    points: Sequence[Point], times: Sequence[int], *, near: Callable[[Point, Point], bool], duration: int
) -> list[tuple[int, int]]:
    """First and end record of each stay; `near` says whether two records are within the diameter."""
    found: list[tuple[int, int]] = []
    candidate: list[int] = []

    def is_stay() -> bool:
        return len(candidate) >= 2 and times[candidate[-1]] - times[candidate[0]] >= duration

    for record in range(len(points)):
        while not all(near(points[other], points[record]) for other in candidate):
            if is_stay():
                found.append((candidate[0], candidate[-1] + 1))
                candidate = []
            else:
                candidate = candidate[1:]
        candidate = [*candidate, record]
    if is_stay():
        found.append((candidate[0], candidate[-1] + 1))
    return found


def diameter(points: Sequence[Point]) -> float:
    """Metres between the two points farthest apart."""
    return max((distance(a, b) for a, b in combinations(points, 2)), default=0.0)


def connected(points: Sequence[Point], *, near: Callable[[Point, Point], bool]) -> list[list[int]]:
    """Groups of points that chains of near ones join, each in ascending order, by their first points."""
    groups: list[list[int]] = []
    for number, point in enumerate(points):
        joined = [group for group in groups if any(near(points[other], point) for other in group)]
        members = [other for group in joined for other in group]
        groups = [group for group in groups if group not in joined] + [sorted([*members, number])]
    return sorted(groups)
