"""Matches between published records and original ones in space and time, and the decimals of coordinates.

Points are unit vectors on the sphere or metres in the plane. Locations are matched with a hash table of the cells that
the original trace visits: eight look-ups for each published record (four in the plane).
"""

import math

import numpy as np

from promesse_geo.kernels import inner, loop

_UNITS = (1_000_000, 1_000_000_000, 60_000_000_000, 3_600_000_000_000)  # nanoseconds


@inner()
def _hash(a, b, c, mask):
    """Return the preferred slot of a cell in a table of mask + 1 slots."""
    mixed = a * 73856093 + b * 19349663 + c * 83492791
    return (mixed ^ (mixed >> 9) ^ (mixed >> 21)) & mask


@inner()
def _cell(points, i, scale):
    """Return the cell, a cube or square of edge 1/scale, that a point lies in."""
    a = math.floor(points[i, 0] * scale)
    b = math.floor(points[i, 1] * scale)
    c = math.floor(points[i, 2] * scale) if points.shape[1] == 3 else 0
    return a, b, c


@inner()
def _find_slot(points, scale, slots, a, b, c):
    """Return the slot of a cell, or the free slot where it would be inserted."""
    mask = len(slots) - 1
    slot = _hash(a, b, c, mask)
    while slots[slot] >= 0:
        other = _cell(points, slots[slot], scale)
        if other[0] == a and other[1] == b and other[2] == c:
            break
        slot = (slot + 1) & mask
    return slot


@loop()
def _hash_cells(points, first, last, scale):
    """Return a hash table of the cells of edge 1/scale that records first … last − 1 visit.

    A slot holds the number of a record in its cell; −1 if it is free.
    """
    size = 8
    while size < 3 * (last - first):  # mostly free, so that a missing cell is detected fast
        size *= 2
    slots = np.full(size, -1, np.int64)
    for i in range(first, last):
        a, b, c = _cell(points, i, scale)
        slots[_find_slot(points, scale, slots, a, b, c)] = i
    return slots


@inner()
def _has_cell_near(points, scale, slots, published, i):
    """Return whether the cell of a location, or one of the cells at its nearest corner, is in the table."""
    a, b, c = _cell(published, i, scale)
    side_a = -1 if published[i, 0] * scale - a < 0.5 else 1
    side_b = -1 if published[i, 1] * scale - b < 0.5 else 1
    depth = 2 if points.shape[1] == 3 else 1
    side_c = -1 if depth == 2 and published[i, 2] * scale - c < 0.5 else 1
    for corner in range(4 * depth):
        slot = _find_slot(
            points,
            scale,
            slots,
            a + side_a * (corner & 1),
            b + side_b * ((corner >> 1) & 1),
            c + side_c * (corner >> 2),
        )
        if slots[slot] >= 0:
            return True
    return False


@loop("out")
def match_locations(original, offsets, published, starts, partners, levels, scales, wider, first, last, out):
    """Grade each published record by its distance to the nearest record of the original trace.

    The grade is 2 up to about L and 1 up to about m L, with L the length of the record's level; else 0. A level of
    which fewer than a tenth of a trace's records are, with all coarser ones, is treated as the next finer one, because
    some digits are zero by chance.

    Parameters
    ----------
    original : float64, shape (records, 3) or (records, 2)
        Points of the original traces.
    offsets : int64, shape (traces + 1,)
        First record of each original trace, and the number of records.
    published : float64, shape (published records, 3) or (published records, 2)
        Points of the published traces.
    starts : int64, shape (published traces + 1,)
        First record of each published trace, and the number of records.
    partners : int64, shape (published traces,)
        Original trace of each published trace.
    levels : int8, shape (published records,)
        Level of each published record.
    scales : float64, shape (levels,)
        1/L of each level, L descending: chords between unit vectors on the sphere, metres in the plane.
    wider : float
        Factor m.
    first, last : int
        Grades the records of the published traces first … last − 1.
    out : int8, shape (published records,)
        Output, zeros on entry: 2, 1 or 0.
    """
    for trace in range(first, last):
        begin = offsets[partners[trace]]
        end = offsets[partners[trace] + 1]
        passed = 0
        least = 0  # coarsest level that is not graded yet
        for level in range(len(scales)):
            scale = scales[level]
            members = 0
            for i in range(starts[trace], starts[trace + 1]):
                members += least <= levels[i] <= level
            if members == 0 or (passed == 0 and 10 * members < starts[trace + 1] - starts[trace]):
                continue
            passed += members
            near = False
            slots = _hash_cells(original, begin, end, scale / wider)
            for i in range(starts[trace], starts[trace + 1]):
                if least <= levels[i] <= level and _has_cell_near(original, scale / wider, slots, published, i):
                    out[i] = 1
                    near = True
            slots = _hash_cells(original, begin, end if near else begin, scale)
            for i in range(starts[trace], starts[trace + 1]):
                is_near = near and least <= levels[i] <= level and out[i] == 1
                if is_near and _has_cell_near(original, scale, slots, published, i):
                    out[i] = 2
            least = level + 1


@inner()
def _first_after(times, first, last, time):
    """Return the first of records first … last − 1 later than `time`, or `last`."""
    while first < last:
        middle = (first + last) // 2
        if times[middle] <= time:
            first = middle + 1
        else:
            last = middle
    return first


@inner()
def _coarsest_unit(times, first, last):
    """Return the coarsest unit, in nanoseconds, that the times of a trace are rounded to.

    A unit counts if a tenth of the times are multiples of it; minutes and hours if half of them and at least three are.
    """
    coarsest = 1_000
    for unit in _UNITS:
        multiples = 0
        for i in range(first, last):
            multiples += times[i] % unit == 0
        if multiples * 10 < last - first or (unit > 1_000_000_000 and (multiples < 3 or multiples * 2 < last - first)):
            break
        coarsest = unit
    return coarsest


@inner()
def _round(time, coarsest):
    """Return a published time rounded to its unit, and the unit.

    The unit is the coarsest one, or the next finer unit of which the time is a multiple, or microseconds.
    """
    for unit in _UNITS[::-1]:
        if unit <= coarsest and time % unit == 0:
            return time, unit
    rest = time % 1_000
    return time - rest + (1_000 if rest > 500 else 0), 1_000


@inner()
def _first_beyond(times, hint, time):
    """Return the same as `_first_after` for all times; fast if the result is a little after `hint`."""
    low = hint if hint > 0 and times[hint - 1] <= time else 0
    step = 1
    while low + step < len(times) and times[low + step] <= time:
        low += step
        step *= 2
    return _first_after(times, low, min(low + step, len(times)), time)


@loop("out, near")
def match_times(original, offsets, published, starts, partners, wider, first, last, out, near):
    """Match each published record with a record of the original trace that has the same rounded time.

    Published times are rounded to the unit u of their trace: seconds or milliseconds if a tenth of its times are
    multiples of it, minutes or hours if half of them are, else microseconds. An original time less than u away matches.

    Parameters
    ----------
    original : int64, shape (records,)
        Times of the original records, in nanoseconds, ascending in each trace.
    offsets : int64, shape (traces + 1,)
        First record of each original trace, and the number of records.
    published : int64, shape (published records,)
        Times of the published records, in nanoseconds.
    starts : int64, shape (published traces + 1,)
        First record of each published trace, and the number of records.
    partners : int64, shape (published traces,)
        Original trace of each published trace.
    wider : int
        Times less than `wider` times u away are near.
    first, last : int
        Matches the records of the published traces first … last − 1.
    out : int64, shape (published records,)
        Output: number of the first original record that matches, or −1.
    near : int8, shape (published records,)
        Output: 1 if an original time is near, plus 2 if one is closer than a twentieth of the time between the two
        original times around the published one (a tenth are by chance).
    """
    for trace in range(first, last):
        begin = offsets[partners[trace]]
        end = offsets[partners[trace] + 1]
        coarsest = _coarsest_unit(published, starts[trace], starts[trace + 1])
        for i in range(starts[trace], starts[trace + 1]):
            middle, unit = _round(published[i], coarsest)
            match = _first_after(original, begin, end, middle - unit)
            out[i] = match if match < end and original[match] < middle + unit else -1
            match = _first_after(original, begin, end, middle - wider * unit)
            near[i] = match < end and original[match] < middle + wider * unit
            match = _first_after(original, begin, end, published[i])
            if begin < match < end:
                distance = min(published[i] - original[match - 1], original[match] - published[i])
                near[i] += 2 * (20 * distance <= original[match] - original[match - 1])


@loop("middles, units")
def round_times(published, starts, first, last, middles, units):
    """Round the published times as `match_times` does.

    Parameters
    ----------
    published : int64, shape (published records,)
        Times of the published records, in nanoseconds.
    starts : int64, shape (published traces + 1,)
        First record of each published trace, and the number of records.
    first, last : int
        Rounds the times of the published traces first … last − 1.
    middles, units : int64, shape (published records,)
        Output: rounded times and their units, in nanoseconds.
    """
    for trace in range(first, last):
        coarsest = _coarsest_unit(published, starts[trace], starts[trace + 1])
        for i in range(starts[trace], starts[trace + 1]):
            middles[i], units[i] = _round(published[i], coarsest)


@loop("out")
def match_any_user(times, order, original, published, middles, units, lengths, wider, most, first, last, out):
    """Grade each published record by the nearest original record of any user at the same rounded time.

    The grade is 2 up to a distance L and 1 up to m L; else 0. It is −1 if too many original records have the time, and
    none is compared.

    Parameters
    ----------
    times : int64, shape (records,)
        Times of the original records, in nanoseconds, ascending.
    order : int64, shape (records,)
        Number of the original record with each of these times.
    original : float64, shape (records, 3) or (records, 2)
        Points of the original records.
    published : float64, shape (published records, 3) or (published records, 2)
        Points of the published records.
    middles, units : int64, shape (published records,)
        Rounded times of the published records and their units, in nanoseconds; original times less than a unit away are
        the same.
    lengths : float64, shape (published records,)
        L: chords between unit vectors on the sphere, metres in the plane.
    wider : float
        Factor m.
    most : int
        Largest number of original records with the same time.
    first, last : int
        Grades the published records first … last − 1.
    out : int8, shape (published records,)
        Output, zeros on entry: 2, 1, 0 or −1.
    """
    slot = 0
    for i in range(first, last):
        end = middles[i] + units[i]
        slot = _first_beyond(times, slot, middles[i] - units[i])
        if slot + most < len(times) and times[slot + most] < end:
            out[i] = -1
            continue
        match = slot
        while match < len(times) and times[match] < end and out[i] < 2:
            square = 0.0
            for axis in range(original.shape[1]):
                square += (original[order[match], axis] - published[i, axis]) ** 2
            if square <= lengths[i] ** 2:
                out[i] = 2
            elif square <= (lengths[i] * wider) ** 2:
                out[i] = 1
            match += 1


@loop("out")
def count_decimals(x, y, least, most, first, last, out):
    """Count the decimals of the coordinates of each record: the larger number of its two coordinates.

    A coordinate has n decimals if coordinate · 10ⁿ is within 1e-4 of an integer (float noise).

    Parameters
    ----------
    x, y : float64, shape (records,)
        Coordinates in degrees, or in the unit of a projected CRS.
    least, most : int
        Smallest and largest number of decimals to test.
    first, last : int
        Counts the decimals of the records first … last − 1.
    out : int8, shape (records,)
        Output: number of decimals; most + 1 if there are more.
    """
    for i in range(first, last):
        decimals = least
        scale = 10.0**least
        while decimals <= most:
            scaled_x = x[i] * scale
            scaled_y = y[i] * scale
            if abs(scaled_x - math.floor(scaled_x + 0.5)) < 1e-4 and abs(scaled_y - math.floor(scaled_y + 0.5)) < 1e-4:
                break
            decimals += 1
            scale *= 10.0
        out[i] = decimals
