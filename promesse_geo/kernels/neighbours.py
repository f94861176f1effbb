"""Who is nearest in a row of distances.

Bound: one visit to each distance; for k > 2 the steps through a heap of k − 1.
"""

from promesse_geo.kernels import inner, loop


@loop
def next_free(remaining, count, failed, position):
    """The first of `count` positions, from `position` on and round, whose trace has not failed."""
    while failed[remaining[position]]:
        position = position + 1 if position + 1 < count else 0
    return position


@inner
def _rise(amounts, places, at):
    """Let entry `at` of a heap rise (entries count from 1) while the one above it is smaller."""
    while at > 1 and amounts[at // 2] < amounts[at]:
        amounts[at // 2], amounts[at] = amounts[at], amounts[at // 2]
        places[at // 2], places[at] = places[at], places[at // 2]
        at //= 2


@inner
def _sink(amounts, places, held):
    """Let the top of a heap of `held` entries sink while one below is larger; the left one of equals comes up."""
    at = 1
    while 2 * at <= held:
        child = 2 * at
        if child < held and amounts[child + 1] > amounts[child]:
            child += 1
        if amounts[child] <= amounts[at]:
            break
        amounts[child], amounts[at] = amounts[at], amounts[child]
        places[child], places[at] = places[at], places[child]
        at = child


@inner
def _last_nearest(row, remaining, count, pivot):
    best = -1
    for position in range(count):
        if position != pivot and (best < 0 or row[remaining[position]] <= row[remaining[best]]):
            best = position
    return best


@loop
def nearest(row, remaining, count, pivot, amounts, places):
    """Write into places[1], … the positions of the nearest of remaining[:count], but for position `pivot`.

    `amounts` and `places` have room for k + 1: a heap of k − 1 entries, one that comes, and an unused place 0. Each
    candidate goes through the heap, in order of position: its layout decides between equals.
    """
    size = len(places) - 2
    if size == 1:  # of equals the last one stays
        places[1] = _last_nearest(row, remaining, count, pivot)
        return
    held = 0
    for position in range(count):
        if position == pivot:
            continue
        held += 1
        amounts[held] = row[remaining[position]]
        places[held] = position
        _rise(amounts, places, held)
        if held > size:
            amounts[1] = amounts[held]
            places[1] = places[held]
            held = size
            _sink(amounts, places, held)


@loop
def gaps(features, left, out):
    """Write the squared distances of the features of left[1:] to those of left[0]."""
    for i in range(1, len(left)):
        total = 0.0
        for column in range(features.shape[1]):
            gap = features[left[i], column] - features[left[0], column]
            total += gap * gap
        out[i - 1] = total
