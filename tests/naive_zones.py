"""Slow twins of privacy zones, one record and one zone at a time."""

import hashlib
import math
import struct
from collections.abc import Sequence

from naive import Point, distance, distance_to_segment


def draw(seed, owner: str | None, number: int, offset: float) -> tuple[float, float]:
    """Bearing and metres of a displacement: uniform in the disc."""
    key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"zones").digest()
    message = struct.pack("<?Qd", owner is not None, number, offset) + (owner or "").encode()
    first, second = struct.unpack("<QQ", hashlib.blake2b(message, key=key, digest_size=16).digest())
    return 2 * math.pi * (first >> 11) / 2**53, offset * math.sqrt((second >> 11) / 2**53)


def cut(segments: Sequence[Sequence[Point]], centres: Sequence[Point], radius: float) -> list[list[Point]]:
    """Cut the segments of a trace: records in a circle go; a new segment begins behind them, and where one crosses."""
    pieces: list[list[Point]] = []
    for segment in segments:
        piece: list[Point] = []
        before = None
        for point in segment:
            if any(distance(point, centre) <= radius for centre in centres):
                pieces.append(piece)
                piece, before = [], None
                continue
            if before is not None and any(distance_to_segment(centre, before, point) <= radius for centre in centres):
                pieces.append(piece)
                piece = []
            piece.append(point)
            before = point
        pieces.append(piece)
    return [piece for piece in pieces if piece]


def spots(ends: Sequence[Point], *, number: int) -> list[Point]:
    """The densest spots of ends, each next one without the ends within 200 m of those before."""
    found, left = [], list(ends)
    while left and len(found) < number:
        sums = [math.fsum(math.exp(-0.5 * (distance(p, q) / 100) ** 2) for q in left) for p in left]
        spot = left[sums.index(max(sums))]
        found.append(spot)
        left = [point for point in left if distance(point, spot) > 200]
    return found


def is_unclear(ends: Sequence[Point], *, places: int) -> bool:
    """Whether the first spot without a zone has at least half as many ends as the first one of all."""
    counts, left = [], list(ends)
    for spot in spots(ends, number=places + 1):
        counts.append(sum(distance(point, spot) <= 200 for point in left))
        left = [point for point in left if distance(point, spot) > 200]
    return len(counts) > places and 2 * counts[places] >= counts[0]
