"""Steps that are too fast, and the longest chain of records in which each can be reached from the one before.

Record j can be reached from an earlier record i of its segment if d(i, j) ≤ speed · (t_j − t_i + τ), τ being the time
resolution of the trace.

Chains are searched from the end. The level of a record is the number of records of the longest chain that begins with
it: one more than the highest level with a record that can be reached. That is the top level for almost all records.
For the others levels are searched downwards, in steps that double as long as the levels between are ruled out: a chain
goes through each level below its own, so that a record k levels above a level can only be reached if one of that level
can be reached at k more resolutions τ.
"""

import math

from promesse_geo.kernels import inner, loop
from promesse_geo.kernels.geometry import arc, read, square_between, squared

_SECOND = 1_000_000_000
_MINUTE = 60_000_000_000
_LARGEST_STRETCH = math.pi**2 / 16 - 0.25  # arc² ≤ c² + 0.367 c⁴ for all chords c of the unit sphere
_ROUNDING = 1e-12  # relative, of lengths
_ROUNDING_ON_SPHERE = 4e-15  # radians, of unit vectors


@loop("counts")
def survey_steps(points, times, offsets, curvature, speed, gap, first, last, counts):
    """Count in each segment what one pass can find.

    Parameters
    ----------
    points : float64, shape (records, 3) or (records, 2)
        Unit vectors, or metres in the plane.
    times : int64, shape (records,)
        Nanoseconds, ascending in each segment.
    offsets : int64, shape (segments + 1,)
        First record of each segment, and the number of records.
    curvature : float
        1 on the sphere, 0 in the plane.
    speed : float
        Radians per second on the sphere or metres per second in the plane.
    gap : int
        Nanoseconds.
    first, last : int
        Counts in the segments first … last − 1.
    counts : int64, shape (segments, 4)
        Output: steps that may be faster than `speed` (all that are, and some that are not); steps without a change of
        time; steps of at least `gap`; records at longitude and latitude 0 (on the sphere).
    """
    stretch = curvature * _LARGEST_STRETCH
    square_speed = speed * speed / 1e18 * (1.0 - _ROUNDING)  # per nanosecond
    for segment in range(first, last):
        begin = offsets[segment]
        bx, by, bz = read(points, begin)
        before = times[begin]
        fast = equal = gaps = 0
        zeros = int((by == 0.0) & (bz == 0.0) & (bx > 0.0))
        for i in range(begin + 1, offsets[segment + 1]):
            x, y, z = read(points, i)
            passed = times[i] - before
            square = squared(bx, by, bz, x, y, z)
            fast += square + stretch * square * square > square_speed * float(passed) * float(passed)
            equal += passed == 0
            gaps += passed >= gap
            zeros += (y == 0.0) & (z == 0.0) & (x > 0.0)
            bx, by, bz, before = x, y, z, times[i]
        counts[segment, 0] = fast
        counts[segment, 1] = equal
        counts[segment, 2] = gaps
        counts[segment, 3] = zeros


@loop("counts")
def count_gaps(times, offsets, gap, first, last, counts):
    """Count the steps of at least `gap` nanoseconds in each segment.

    Parameters
    ----------
    times, offsets, gap, first, last
        As in `survey_steps`.
    counts : int64, shape (segments,)
        Output: the number of steps.
    """
    for segment in range(first, last):
        gaps = 0
        for i in range(offsets[segment] + 1, offsets[segment + 1]):
            gaps += times[i] - times[i - 1] >= gap
        counts[segment] = gaps


@loop("seconds")
def find_resolutions(times, begins, ends, first, last, seconds):
    """Find the time resolution of traces: a minute if all times are whole minutes, a second if whole seconds, else 0.

    Parameters
    ----------
    times : int64, shape (records,)
        Nanoseconds.
    begins, ends : int64, shape (traces,)
        First record of each trace, and the first after it.
    first, last : int
        Finds the resolutions of the traces first … last − 1.
    seconds : float64, shape (traces,)
        Output: 60, 1 or 0 seconds.
    """
    for trace in range(first, last):
        seconds[trace] = 60.0
        for i in range(begins[trace], ends[trace]):
            if times[i] % _MINUTE != 0:
                seconds[trace] = 1.0
                break
        if seconds[trace] == 60.0:
            continue
        for i in range(begins[trace], ends[trace]):
            if times[i] % _SECOND != 0:
                seconds[trace] = 0.0
                break


@inner()
def _limit(times, i, j, speed, resolution):
    """Return the largest distance at which record j can be reached from record i."""
    return speed * ((times[j] - times[i]) / 1e9 + resolution)


@inner()
def _is_within(square, limit, curvature):
    """Return whether the arc over a squared chord is at most `limit` long."""
    return square <= limit * limit and arc(square, curvature) <= limit  # no arc is shorter than its chord


@loop("counts")
def count_fast_steps(points, times, begins, ends, resolutions, curvature, speeds, first, last, counts):
    """Count the steps of segments that are faster than each of some speeds.

    Parameters
    ----------
    points, times, curvature
        As in `survey_steps`.
    begins, ends : int64, shape (segments,)
        First record of each segment, and the first after it.
    resolutions : float64, shape (segments,)
        Seconds: time resolution of the segment's trace.
    speeds : float64, shape (speeds,)
        Radians per second on the sphere or metres per second in the plane.
    first, last : int
        Counts in the segments first … last − 1.
    counts : int64, shape (segments, speeds)
        Output: the number of steps.
    """
    for segment in range(first, last):
        counts[segment] = 0
        for i in range(begins[segment] + 1, ends[segment]):
            square = square_between(points, i, points, i - 1)
            for k in range(len(speeds)):
                limit = _limit(times, i - 1, i, speeds[k], resolutions[segment])
                counts[segment, k] += not _is_within(square, limit, curvature)


@inner()
def _search_level(points, times, i, begin, head, others, curvature, speed, resolution, allowance):
    """Return how many levels are ruled out above a level that is, or −1 if a record of it can be reached from i.

    Also returns the number of records examined.
    """
    least = math.inf
    examined = 0
    member = head
    while member >= 0:
        j = begin + member
        examined += 1
        square = square_between(points, i, points, j)
        if _is_within(square, _limit(times, i, j, speed, resolution), curvature):
            return -1, examined
        lack = math.sqrt(square) * (1.0 - _ROUNDING) - _limit(times, i, j, speed, 0.0) * (1.0 + _ROUNDING)
        least = min(least, lack)
        member = others[member]
    return int(max(min(least / allowance, 1e9) - 2.0, 0.0)), examined


@inner()
def _highest_level(points, times, i, begin, top, heads, others, curvature, speed, resolution):
    """Return the highest level with a record that can be reached from i, 0 if there is none.

    Also returns the number of records examined.
    """
    allowance = speed * resolution * (1.0 + _ROUNDING) + _ROUNDING_ON_SPHERE * curvature + 1e-300
    reached = 0
    highest = top  # levels above it are ruled out
    step = 0
    examined = 0
    while highest > reached:
        level = highest - min(step, highest - reached - 1)
        above, scanned = _search_level(
            points, times, i, begin, heads[level - 1], others, curvature, speed, resolution, allowance
        )
        examined += scanned
        if above < 0:
            reached = level
            step //= 2
        elif level + above >= highest:
            highest = level - 1
            step = 2 * step + 1
        else:
            step //= 2
    return reached, examined


@inner("states, heads, others")
def _extend(points, times, begin, states, search, heads, others, curvature, speed, resolution, budget):
    """Give records their levels, from the last to the first, and return what is left of the budget."""
    while states[search, 0] > 0 and budget > 0:
        record = states[search, 0] - 1
        top = states[search, 1]
        level, examined = _highest_level(
            points, times, begin + record, begin, top, heads, others, curvature, speed, resolution
        )
        others[record] = heads[level] if level < top else -1
        heads[level] = record
        states[search, 0] = record
        states[search, 1] = max(top, level + 1)
        budget -= examined + 1
    return budget


@inner("keep")
def _mark(points, times, begin, top, heads, others, curvature, speed, resolution, keep):
    """Mark the chain that begins at the first record of the top level, and goes on to the first that can be reached."""
    record = heads[top - 1]
    keep[begin + record] = True
    for level in range(top - 2, -1, -1):
        latest = record
        record = heads[level]
        while record >= 0:
            i, j = begin + latest, begin + record
            limit = _limit(times, i, j, speed, resolution)
            if record > latest and _is_within(square_between(points, i, points, j), limit, curvature):
                break
            record = others[record]
        keep[begin + record] = True


@loop("heads, others, states, keep")
def mark_longest_chains(
    points,
    times,
    begins,
    ends,
    resolutions,
    curvature,
    speed,
    searches,
    first,
    last,
    budget,
    heads,
    others,
    states,
    keep,
):
    """Mark the records of the longest chain of each segment, in parts of limited work.

    Of chains of equal length the one is marked whose first different record is earlier.

    Parameters
    ----------
    points, times, curvature
        As in `survey_steps`.
    begins, ends, resolutions
        As in `count_fast_steps`.
    speed : float
        Radians per second on the sphere or metres per second in the plane.
    searches : int64, shape (searches,)
        Numbers of the segments whose chains are not yet marked.
    first, last : int
        Searches the chains of searches[first … last − 1].
    budget : int
        Number of records to examine before the function returns.
    heads, others : int32, shape (records of all segments,)
        Used between calls: the first record of each level, and the next one of a record's level, −1 if none; counted
        from the first record of the segment.
    states : int64, shape (segments, 3)
        Number of records without a level (at first all), highest level (at first 0), and the segment's first row in
        `heads` and `others`. The highest level is −1 when the chain is marked.
    keep : bool, shape (records,)
        Output: true for records of the chains; others must be false before.
    """
    for k in range(first, last):
        search = searches[k]
        begin = begins[search]
        row = states[search, 2]
        rows = row + ends[search] - begin
        level_heads, level_others = heads[row:rows], others[row:rows]
        resolution = resolutions[search]
        budget = _extend(
            points, times, begin, states, search, level_heads, level_others, curvature, speed, resolution, budget
        )
        if states[search, 0] > 0:
            return
        top = states[search, 1]
        _mark(points, times, begin, top, level_heads, level_others, curvature, speed, resolution, keep)
        states[search, 1] = -1
        budget -= rows - row
        if budget <= 0:
            return
