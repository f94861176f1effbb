"""Slow plain twins of the kernels, straight from the definitions.

A point is a tuple: a unit vector on the sphere (x, y, z), or metres in the plane (x, y). Times are Python integers.
"""

import math

RADIUS = 6_371_008.8

Point = tuple[float, ...]


def on_globe(longitude: float, latitude: float) -> Point:
    """Work on unit vectors: no antimeridian, no poles."""
    across, up = math.radians(longitude), math.radians(latitude)
    return math.cos(up) * math.cos(across), math.cos(up) * math.sin(across), math.sin(up)


def cross(a: Point, b: Point) -> Point:
    """a × b, normal to the great circle through both."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def angle(a: Point, b: Point) -> float:
    """The angle θ between two unit vectors."""
    difference = tuple(q - p for p, q in zip(a, b, strict=True))
    return math.atan2(math.hypot(*cross(a, difference)), math.sumprod(a, b) if False else _dot(a, b))


def distance(a: Point, b: Point) -> float:
    """Great-circle distance on a sphere of radius 6 371 008.8 m, or Euclidean distance in the plane."""
    return angle(a, b) * RADIUS if len(a) == 3 else math.dist(a, b)
