"""Stable sorting: records by the number of their user, and the records of each trace by time."""

import numpy as np

from promesse_geo.kernels import inner, loop

_RUN = 32  # records that are sorted by insertion
_MANY = 1_000  # records of a trace that are sorted by digits if they are in no order
_BITS = 11  # of a time that a pass sorts by
_UNITS = (1_000_000_000, 1_000_000, 1_000)  # nanoseconds that times may be multiples of


@inner()
def find_first(values, first, last, least):
    """Return the first of the positions first … last − 1 of ascending values that has at least `least`, or `last`."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < least:
            first = middle + 1
        else:
            last = middle
    return first


@loop("starts, out")
def group_records(codes, first, last, starts, out):
    """Write the positions of the records of users `first` … `last` − 1, in the order of the records of each user.

    Parameters
    ----------
    codes : numpy.ndarray of int64, shape (n,)
        The user of each record; others than these users are passed over.
    first, last : int
        Numbers of users.
    starts : numpy.ndarray of int64, shape (users,)
        Output: where the records of each user begin in `out`; afterwards where they end.
    out : numpy.ndarray of int64, shape (n,)
        Output: positions of records.
    """
    for record in range(len(codes)):
        code = codes[record]
        if first <= code < last:
            out[starts[code]] = record
            starts[code] += 1


@loop("times, order")
def sort_by_time(offsets, first, last, times, order):
    """Sort the records of each trace by time; records of equal times keep their order.

    Parameters
    ----------
    offsets : numpy.ndarray of int64, shape (traces + 1,)
        Trace i holds the records `offsets[i]` to `offsets[i + 1]`.
    first, last : int
        Traces first … last − 1 are sorted.
    times : numpy.ndarray of int64, shape (records,)
        Input and output: times.
    order : numpy.ndarray of int64, shape (records,)
        Input and output: what moves with the times.
    """
    longest = 0
    for trace in range(first, last):
        begin, end = offsets[trace], offsets[trace + 1]
        if end - begin > max(longest, _RUN) and not _is_sorted(times, begin, end):
            longest = end - begin
    other_times, other_order = np.empty(longest, np.int64), np.empty(longest, np.int64)
    bounds, digits = np.empty(longest // _RUN + 3, np.int64), np.empty(1 << _BITS, np.int64)
    for trace in range(first, last):
        begin, end = offsets[trace], offsets[trace + 1]
        if end - begin <= _RUN:
            _insert(times, order, begin, begin + 1, end)
        elif not _is_sorted(times, begin, end):
            _sort_trace(times, order, begin, end, other_times, other_order, bounds, digits)


@inner("times, order, other_times, other_order, bounds, digits")
def _sort_trace(times, order, begin, end, other_times, other_order, bounds, digits):
    """Merge runs if there are few, else sort by digits."""
    backward = 0
    for record in range(begin + 1, end):
        backward += times[record] < times[record - 1]
    number = end - begin
    if number >= _MANY and 8 * min(backward, number - backward) > number:
        _radix_sort(times, order, begin, end, other_times, other_order, digits)
    else:
        number = _find_runs(times, order, begin, end, bounds)
        _merge_runs(times, order, number, end, other_times, other_order, bounds)


@inner()
def _is_sorted(times, begin, end):
    """Whether times do not go back."""
    record = begin + 1
    while record < end and times[record] >= times[record - 1]:
        record += 1
    return record >= end


@inner("times, order")
def _insert(times, order, begin, middle, end):
    """Sort by insertion, given that the records before `middle` are sorted."""
    for record in range(middle, end):
        time, position = times[record], order[record]
        place = record
        while place > begin and times[place - 1] > time:
            times[place], order[place] = times[place - 1], order[place - 1]
            place -= 1
        times[place], order[place] = time, position


@inner("times, order, other_times, other_order, digits")
def _radix_sort(times, order, begin, end, other_times, other_order, digits):
    """Sort by digits of the time since the first one, in the largest unit that all times are multiples of."""
    first, last = times[begin], times[begin]
    for record in range(begin, end):
        first, last = min(first, times[record]), max(last, times[record])
    unit = 1
    for candidate in _UNITS:
        record = begin
        while record < end and (times[record] - first) % candidate == 0:
            record += 1
        if record == end:
            unit = candidate
            break
    for record in range(begin, end):
        times[record] = (times[record] - first) // unit
    left, shift, is_moved = (last - first) // unit, 0, False
    while left > 0:
        if is_moved:
            _sort_digit(other_times, other_order, 0, end - begin, shift, digits, times, order, begin)
        else:
            _sort_digit(times, order, begin, end, shift, digits, other_times, other_order, 0)
        is_moved = not is_moved
        shift += _BITS
        left >>= _BITS
    for record in range(begin, end):
        if is_moved:
            times[record], order[record] = other_times[record - begin], other_order[record - begin]
        times[record] = times[record] * unit + first


@inner("digits, out_times, out_order")
def _sort_digit(times, order, begin, end, shift, digits, out_times, out_order, start):
    """Write records sorted by one digit of the time, from `start` on."""
    mask = (1 << _BITS) - 1
    digits[:] = 0
    for record in range(begin, end):
        digits[(times[record] >> shift) & mask] += 1
    place = start
    for digit in range(len(digits)):
        count = digits[digit]
        digits[digit] = place
        place += count
    for record in range(begin, end):
        digit = (times[record] >> shift) & mask
        place = digits[digit]
        out_times[place], out_order[place] = times[record], order[record]
        digits[digit] = place + 1


@inner("times, order, bounds")
def _find_runs(times, order, begin, end, bounds):
    """Return the number of runs that ascend, or strictly descend and are reversed; they begin at the bounds."""
    number, start = 0, begin
    while start < end:
        bounds[number] = start
        number += 1
        start = _find_run(times, order, start, end)
    bounds[number] = end
    return number


@inner("times, order, other_times, other_order, bounds")
def _merge_runs(times, order, number, end, other_times, other_order, bounds):
    """Merge consecutive sorted runs pair by pair."""
    while number > 1:
        kept = 0
        for run in range(0, number - 1, 2):
            low, middle, high = bounds[run], bounds[run + 1], bounds[run + 2]
            if times[middle] < times[middle - 1]:
                _merge(times, order, low, middle, high, other_times, other_order)
            bounds[kept] = low
            kept += 1
        if number % 2:
            bounds[kept] = bounds[number - 1]
            kept += 1
        bounds[kept] = end
        number = kept


@inner("times, order")
def _find_run(times, order, start, end):
    """Return the end of a sorted run of 32 or more records from `start`, made by reversal and insertion if need be."""
    stop = start + 1
    if stop < end and times[stop] < times[start]:
        while stop < end and times[stop] < times[stop - 1]:
            stop += 1
        low, high = start, stop - 1
        while low < high:
            times[low], times[high] = times[high], times[low]
            order[low], order[high] = order[high], order[low]
            low += 1
            high -= 1
    while stop < end and times[stop] >= times[stop - 1]:
        stop += 1
    if stop - start < _RUN:
        least = min(start + _RUN, end)
        _insert(times, order, start, stop, least)
        stop = least
    return stop


@inner("times, order, other_times, other_order")
def _merge(times, order, low, middle, high, other_times, other_order):
    """Merge two sorted runs; of equal times those of the first run come first."""
    length = middle - low
    for record in range(length):
        other_times[record], other_order[record] = times[low + record], order[low + record]
    left, right, place = 0, middle, low
    while left < length and right < high:
        if times[right] < other_times[left]:
            times[place], order[place] = times[right], order[right]
            right += 1
        else:
            times[place], order[place] = other_times[left], other_order[left]
            left += 1
        place += 1
    while left < length:
        times[place], order[place] = other_times[left], other_order[left]
        left += 1
        place += 1
