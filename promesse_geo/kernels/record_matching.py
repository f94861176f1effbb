"""Which published records are true ones of their user, and how many decimals coordinates have.

Bound: eight (four in the plane) looks into a hash table of the trace's cells for each record, and a binary search.
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop

_UNITS = (1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000)  # nanoseconds


@inner
def _hash(a, b, c, mask):
    mixed = a * 73856093 + b * 19349663 + c * 83492791
    return (mixed ^ (mixed >> 9) ^ (mixed >> 21)) & mask


@inner
def _cell(points, i, scale):
    a = math.floor(points[i, 0] * scale)
    b = math.floor(points[i, 1] * scale)
    c = math.floor(points[i, 2] * scale) if points.shape[1] == 3 else 0
    return a, b, c


@inner
def _find(points, scale, slots, a, b, c):
    """The slot of a cell, or the free one where it belongs."""
    mask = len(slots) - 1
    slot = _hash(a, b, c, mask)
    while slots[slot] >= 0:
        known = _cell(points, slots[slot], scale)
        if known[0] == a and known[1] == b and known[2] == c:
            break
        slot = (slot + 1) & mask
    return slot


@loop
def _table(points, first, last, scale):
    """A record of each cell of edge 1/scale, at the slot of the cell; −1 in free slots."""
    size = 8
    while size < 3 * (last - first):  # mostly free: what is not there shows at once
        size *= 2
    slots = np.full(size, -1, np.int64)
    for i in range(first, last):
        a, b, c = _cell(points, i, scale)
        slots[_find(points, scale, slots, a, b, c)] = i
    return slots


@inner
def _is_known(points, scale, slots, places, i):
    """Whether a cell of the table is the place's own or one of its nearer neighbours."""
    a, b, c = _cell(places, i, scale)
    side_a = -1 if places[i, 0] * scale - a < 0.5 else 1
    side_b = -1 if places[i, 1] * scale - b < 0.5 else 1
    depth = 2 if points.shape[1] == 3 else 1
    side_c = -1 if depth == 2 and places[i, 2] * scale - c < 0.5 else 1
    for number in range(4 * depth):
        found = _find(
            points,
            scale,
            slots,
            a + side_a * (number & 1),
            b + side_b * ((number >> 1) & 1),
            c + side_c * (number >> 2),
        )
        if slots[found] >= 0:
            return True
    return False


@loop
def match_locations(original, offsets, published, starts, partners, levels, scales, wider, first, last, out):
    """Write for each record of traces first … last − 1 whether a true point is at it (2), near it (1) or neither (0).

    At it: within 1/scales[level of the record] or so; near it: within `wider` times that. Levels that fewer than a
    tenth of a trace have, or a coarser one, are taken for the next: some digits are zero by chance. `out` comes with
    zeros.
    """
    for trace in range(first, last):
        begin = offsets[partners[trace]]
        end = offsets[partners[trace] + 1]
        passed = 0
        least = 0  # of the levels that are looked at now
        for level in range(len(scales)):
            scale = scales[level]
            some = 0
            for i in range(starts[trace], starts[trace + 1]):
                some += least <= levels[i] <= level
            if some == 0 or (passed == 0 and 10 * some < starts[trace + 1] - starts[trace]):
                continue
            passed += some
            near = False
            slots = _table(original, begin, end, scale / wider)
            for i in range(starts[trace], starts[trace + 1]):
                if least <= levels[i] <= level and _is_known(original, scale / wider, slots, published, i):
                    out[i] = 1
                    near = True
            slots = _table(original, begin, end if near else begin, scale)
            for i in range(starts[trace], starts[trace + 1]):
                is_near = near and least <= levels[i] <= level and out[i] == 1
                if is_near and _is_known(original, scale, slots, published, i):
                    out[i] = 2
            least = level + 1


@inner
def _first_after(times, first, last, time):
    while first < last:
        middle = (first + last) // 2
        if times[middle] <= time:
            first = middle + 1
        else:
            last = middle
    return first


@inner
def _coarsest(times, first, last):
    """The coarsest unit that a tenth of the times is in; for minutes and hours half, and no fewer than three."""
    coarsest = 1_000
    for unit in _UNITS:
        whole = 0
        for i in range(first, last):
            whole += times[i] % unit == 0
        if whole * 10 < last - first or (unit > 1_000_000_000 and (whole < 3 or whole * 2 < last - first)):
            break
        coarsest = unit
    return coarsest


@inner
def _rounded(time, coarsest):
    """A published time, rounded to the unit it is in, and that unit: the coarsest, a finer one, or microseconds."""
    for unit in _UNITS[::-1]:
        if unit <= coarsest and time % unit == 0:
            return time, unit
    rest = time % 1_000
    return time - rest + (1_000 if rest > 500 else 0), 1_000


@inner
def _first_beyond(times, hint, time):
    """As `_first_after` among all times, quick where it is a little after the hint."""
    low = hint if hint > 0 and times[hint - 1] <= time else 0
    step = 1
    while low + step < len(times) and times[low + step] <= time:
        low += step
        step *= 2
    return _first_after(times, low, min(low + step, len(times)), time)


@loop
def match_times(original, offsets, published, starts, partners, wider, first, last, out, near):
    """Give each record of traces first … last − 1 the true record that has its time, or −1; and whether one is near.

    Near it (1) is what lies within `wider` times what rounding can do; 2 more where a true time is nearer than a
    twentieth of the time between the two around it, as one in ten is by chance.
    A time counts as rounded to whole seconds or milliseconds where a tenth of its trace is, to minutes or hours where
    half is, else to microseconds.
    """
    for trace in range(first, last):
        begin = offsets[partners[trace]]
        end = offsets[partners[trace] + 1]
        coarsest = _coarsest(published, starts[trace], starts[trace + 1])
        for i in range(starts[trace], starts[trace + 1]):
            middle, unit = _rounded(published[i], coarsest)
            found = _first_after(original, begin, end, middle - unit)
            out[i] = found if found < end and original[found] < middle + unit else -1
            found = _first_after(original, begin, end, middle - wider * unit)
            near[i] = found < end and original[found] < middle + wider * unit
            found = _first_after(original, begin, end, published[i])
            if begin < found < end:
                aside = min(published[i] - original[found - 1], original[found] - published[i])
                near[i] += 2 * (20 * aside <= original[found] - original[found - 1])


@loop
def round_times(published, starts, first, last, middles, units):
    """Round the times of traces first … last − 1 as `match_times` does, and say the unit of each."""
    for trace in range(first, last):
        coarsest = _coarsest(published, starts[trace], starts[trace + 1])
        for i in range(starts[trace], starts[trace + 1]):
            middles[i], units[i] = _rounded(published[i], coarsest)


@loop
def match_any_user(times, order, original, published, middles, units, lengths, wider, most, first, last, out):
    """Write for records first … last − 1 whether any user's true record is at (2) or near (1) it in space and time.

    `times` are those of the true records, in the ascending `order`. At a record is what lies within `lengths` in space
    and less than its unit from the middle in time, near it what lies within `wider` times that in space. Where more
    than `most` are there in time, none is compared and −1 is written. `out` comes with zeros.
    """
    slot = 0
    for i in range(first, last):
        end = middles[i] + units[i]
        slot = _first_beyond(times, slot, middles[i] - units[i])
        if slot + most < len(times) and times[slot + most] < end:
            out[i] = -1
            continue
        found = slot
        while found < len(times) and times[found] < end and out[i] < 2:
            square = 0.0
            for axis in range(original.shape[1]):
                square += (original[order[found], axis] - published[i, axis]) ** 2
            if square <= lengths[i] ** 2:
                out[i] = 2
            elif square <= (lengths[i] * wider) ** 2:
                out[i] = 1
            found += 1


@loop
def count_decimals(x, y, least, most, first, last, out):
    """Find how many decimals, from `least` to `most`, both coordinates have; else most + 1.

    A coordinate has n decimals if coordinate · 10ⁿ is within 1e-4 of a whole number (float noise).

    Parameters
    ----------
    x, y : float64, shape (records,)
        Coordinates in degrees or metres.
    least, most : int
        Numbers of decimals to try.
    first, last : int
        The records to look at.
    out : int64, shape (records,)
        Written: the number of decimals.
    """
    for i in range(first, last):
        decimals = least
        scale = 10.0**least
        while decimals <= most:
            across = x[i] * scale
            along = y[i] * scale
            if abs(across - math.floor(across + 0.5)) < 1e-4 and abs(along - math.floor(along + 0.5)) < 1e-4:
                break
            decimals += 1
            scale *= 10.0
        out[i] = decimals
