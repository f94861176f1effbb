"""Slow plain twins of the stronger attacks and of area coverage, straight from the definitions."""

import math
from collections.abc import Sequence

from naive import RADIUS


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
