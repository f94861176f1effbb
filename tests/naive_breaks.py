"""Slow twins of whatever deals with breaks."""


def breaks_of(owners, segments) -> list[int]:
    """The positions of records whose segment differs from that of the record before, of one owner."""
    pairs = list(zip(owners, segments, strict=True))
    return [
        row for row in range(1, len(pairs)) if pairs[row][0] == pairs[row - 1][0] and pairs[row][1] != pairs[row - 1][1]
    ]
