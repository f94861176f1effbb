"""Slow plain twins of the stronger attacks and of area coverage, straight from the definitions."""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from naive import RADIUS, Point, between, distance, to


def cell_on_globe(longitude: float, latitude: float, *, cell: float) -> tuple[int, int]:
    """Rows of `cell` metres of latitude from the equator, each divided in round(2πR·cos φ_mid/cell) equal cells."""
    row = math.floor(math.radians(latitude) * RADIUS / cell)
    around = max(1, round(2 * math.pi * RADIUS * math.cos((row + 0.5) * cell / RADIUS) / cell))
    return row, math.floor(longitude / 360 * around) % around


def cell_in_plane(x: float, y: float, *, cell: float) -> tuple[int, int]:
    """Squares from 0."""
    return math.floor(y / cell), math.floor(x / cell)


def coverage(original: Sequence[tuple[int, int]], protected: Sequence[tuple[int, int]]) -> float:
    """F-score of visited cells; empty against empty 1."""
    before, after = set(original), set(protected)
    if not before and not after:
        return 1.0
    shared = len(before & after)
    if not shared:
        return 0.0
    precision, recall = shared / len(after), shared / len(before)
    return 2 * precision * recall / (precision + recall)


def set_distance(known: Sequence[Point], found: Sequence[Point]) -> float:
    """Median over {each POI's distance to the nearest of the other set, both directions}; infinite if one is empty."""
    if not known or not found:
        return math.inf
    nearest = [min(distance(p, q) for q in found) for p in known] + [min(distance(p, q) for q in known) for p in found]
    return statistics.median(nearest)


def identified(known: Sequence[Sequence[Point]], found: Sequence[Sequence[Point]]) -> list[float]:
    """Each protected user is given the nearest known one; ties count 1/size; without POIs nobody is identified."""
    shares = []
    for user, points in enumerate(found):
        distances = [set_distance(places, points) for places in known]
        nearest = [other for other, metres in enumerate(distances) if metres == min(distances) < math.inf]
        shares.append(1 / len(nearest) if user in nearest else 0.0)
    return shares


def average(records: Sequence[tuple[Point, int]], *, half: int) -> list[tuple[Point, int]]:
    """For each record of a trace: the mean of all that are within `half` of its time, and their number."""
    means = []
    for _, time in records:
        near = [point for point, other in records if abs(other - time) <= half]
        mean = tuple(math.fsum(axis) / len(near) for axis in zip(*near, strict=True))
        length = math.hypot(*mean) if len(mean) == 3 else 1.0
        means.append((tuple(axis / length for axis in mean), len(near)))
    return means


def noise(traces: Sequence[Sequence[tuple[Point, int]]], *, short: int, row: int = 15, fewest: int = 30) -> float:
    """Mean metres of planar Laplace noise: what its law says of low quantiles of steps and of second differences."""
    scale = RADIUS if len(traces[0][0][0]) == 3 else 1.0
    medians, steps = [], []
    for records in traces:
        steps += [scale * math.dist(p, q) for (p, _), (q, _) in pairwise(records)]
        lengths = []
        for (p, a), (q, b), (r, c) in zip(records, records[1:], records[2:], strict=False):
            bend = math.hypot(*(x - 2 * y + z for x, y, z in zip(p, q, r, strict=True)))
            lengths.append(scale * bend if b - a <= short and c - b <= short else math.inf)
        rows = [lengths[first : first + row] for first in range(len(lengths) - row + 1)]
        medians += [statistics.median(lengths) for lengths in rows if math.inf not in lengths]
    if len(medians) < fewest:
        return 0.0
    return 2 * min(quantile(medians, 0.01) / 2.69, quantile(steps, 0.05) / 0.649)


def quantile(values: Sequence[float], part: float) -> float:
    """Between the values on both sides of the place that is meant, in proportion."""
    ordered, place = sorted(values), part * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def residues(path: Sequence[Point], *, step: float, closeness: float, steps: int = 3) -> list[tuple[str, Point]]:
    """Ends one step straight on, and what lies inside of stretches that come back; overlapping ones are one."""
    inside: set[int] = set()
    for first in range(len(path)):
        for last in range(first + 2, min(first + steps, len(path) - 1) + 1):
            if distance(path[first], path[last]) <= closeness * step:
                inside |= set(range(first + 1, last))
    found = [("start", on_the_ground(beyond(path[min(1, len(path) - 1)], path[0])))]
    for first in sorted(inside):
        if first - 1 in inside:
            continue
        last = next(number for number in range(first, len(path)) if number not in inside)
        centre = mean(path[first:last])
        outward = to(mean([path[first - 1], path[last]]), centre)
        scale = RADIUS if len(centre) == 3 else 1.0
        length = math.hypot(*outward)
        share = step / scale / 4 / length if length > 1e-3 * step / scale else 1.0
        found.append(("turn", on_the_ground(tuple(c + share * o for c, o in zip(centre, outward, strict=True)))))
    if len(path) > 1:
        found.append(("end", on_the_ground(beyond(path[-2], path[-1]))))
    return found


def mean(points: Sequence[Point]) -> Point:
    """Axis by axis."""
    return tuple(math.fsum(axis) / len(points) for axis in zip(*points, strict=True))


def beyond(a: Point, b: Point) -> Point:
    """As far beyond b as b is from a."""
    return tuple(2 * q - p for p, q in zip(a, b, strict=True))


def on_the_ground(point: Point) -> Point:
    """Of unit length on the sphere."""
    length = math.hypot(*point) if len(point) == 3 else 1.0
    return tuple(axis / length for axis in point)


def weight(a: Point, b: Point, *, width: float) -> float:
    """Return exp(−½(d / width)²)."""
    return math.exp(-0.5 * (distance(a, b) / width) ** 2)


def densest(candidates: Sequence[Point]) -> list[Point]:
    """Return the candidates with the greatest sum of weights of 100 m, up to rounding."""
    return best(candidates, [sum(weight(a, b, width=100) for b in candidates) for a in candidates])


def best(candidates: Sequence[Point], sums: Sequence[float]) -> list[Point]:
    """Return the candidates with the greatest sum, up to rounding."""
    least = max(sums, default=0.0) * (1 - 1e-9)
    return [point for point, total in zip(candidates, sums, strict=True) if total >= least]


def outward(p: Point, q: Point, *, metres: float) -> Point:
    """Return the point so many metres from p, away from q, on the great circle or line through both."""
    return between(q, p, 1 + metres / distance(q, p)) if metres else p


def backwards(p: Point, q: Point, *, step: float) -> Point:
    """Return p + step · (p − q)."""
    return p if p == q else outward(p, q, metres=step * distance(p, q))


def crossing(ends: Sequence[tuple[Point, Point]]) -> list[Point]:
    """Return the points every 25 m up to 1,500 m outward from the ends p that most rays pass, up to rounding."""
    rays = [[outward(p, q, metres=25.0 * i) for i in range(61)] for p, q in ends if p != q]
    candidates = [point for ray in rays for point in ray]
    sums, points = [], np.array(rays)
    for candidate in candidates:
        chords = np.linalg.norm(points - candidate, axis=2)
        metres = 2 * RADIUS * np.arcsin(np.minimum(chords / 2, 1)) if len(candidate) == 3 else chords
        sums.append(np.exp(-0.5 * (metres / 40) ** 2).max(axis=1).sum())
    return best(candidates, sums)


def topsoe(protected: Sequence[tuple[int, int]], known: Sequence[tuple[int, int]]) -> float:
    """Return the divergence between the shares of records per cell; infinite if there are no records."""
    if not protected or not known:
        return math.inf
    total = 0.0
    for cell in {*protected, *known}:
        p, q = protected.count(cell) / len(protected), known.count(cell) / len(known)
        total += sum(share * math.log(2 * share / (p + q)) for share in (p, q) if share)
    return total
