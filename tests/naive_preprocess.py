"""Slow twins of the preprocessing, in plain Python, straight from the rules.

A record is (user, time, place): the user's key, the time in nanoseconds since 1970-01-01 UTC (of the wall clock where
there is no zone) and anything that says where. A data set is a list of records in input order.
"""

import datetime
import hashlib
import itertools
import math
from functools import cache
from zoneinfo import ZoneInfo

SECOND = 10**9
DAY = 86_400 * SECOND
FIRST_DAY = datetime.date(2000, 1, 3)
EPOCH = datetime.date(1970, 1, 1)


def in_order(records):
    """Records by (user, time, input position); users by value where all are integers, else by text."""
    by_value = all(isinstance(user, int) for user, _, _ in records)
    key = (lambda user: user) if by_value else str
    places = sorted(range(len(records)), key=lambda i: (key(records[i][0]), records[i][1], i))
    return [records[i] for i in places]


def traces_of(records):
    """{user: records in order}, in the order of users."""
    traces = {}
    for record in in_order(records):
        traces.setdefault(record[0], []).append(record)
    return traces


def flat(traces):
    return [record for trace in traces for record in trace]


@cache
def day_start(day, zone):
    """Second since 1970 from which on no date before `day` (since 1970) is read in the zone."""
    tz, date = ZoneInfo(zone), EPOCH + datetime.timedelta(days=day)

    def is_earlier(second):
        return datetime.datetime.fromtimestamp(second, tz).date() < date

    quarters = range((day - 2) * 86_400, (day + 2) * 86_400, 900)
    last = max(second for second in quarters if is_earlier(second))
    return 1 + max(second for second in range(last, last + 900) if is_earlier(second))


def local_day(time, zone):
    """Local day (since 1970) of a time, its start and its length in nanoseconds."""
    day = time // DAY + 2
    while day_start(day, zone) * SECOND > time:
        day -= 1
    start = day_start(day, zone) * SECOND
    return day, start, day_start(day + 1, zone) * SECOND - start


def collapse_empty_days(records, zone):
    """The i-th day of each user that holds data becomes 2000-01-03 + i days; the order of records is kept."""
    collapsed = []
    for user, trace in traces_of(records).items():
        numbers = {}
        for _, time, place in trace:
            day, start, length = local_day(time, zone)
            number = numbers.setdefault(day, len(numbers))
            time_of_day = (time - start) * DAY // length
            collapsed.append((user, ((FIRST_DAY - EPOCH).days + number) * DAY + time_of_day, place))
    return collapsed


def first_days(records, days, min_days, zone):
    """The records of each user's first days with data; without users that have fewer than min_days."""
    kept = []
    for trace in traces_of(records).values():
        present = sorted({local_day(time, zone)[0] for _, time, _ in trace})
        if len(present) >= (min_days or 1):
            kept += [record for record in trace if local_day(record[1], zone)[0] in present[:days]]
    return kept


def virtual_name(user, part, key):
    message = part.to_bytes(8, "little") + str(user).encode("utf-8")
    return hashlib.blake2b(message, key=key, digest_size=64).hexdigest()[:16]


def names_key(seed):
    return hashlib.blake2b(str(seed).encode("utf-8"), digest_size=32, person=b"names").digest()


def parts_of(records, gap):
    """(user, part number, records) of each part of each trace."""
    for user, trace in traces_of(records).items():
        parts = [[trace[0]]]
        for before, record in itertools.pairwise(trace):
            if record[1] - before[1] >= gap:
                parts.append([])
            parts[-1].append(record)
        yield from ((user, number, part) for number, part in enumerate(parts))


def split_gaps(records, gap, seed=None, keep_user=False):
    """Each part under a new name, in the order of the names."""
    named = {}
    for user, number, part in parts_of(records, gap):
        name = f"{user}-{number:05d}" if keep_user else virtual_name(user, number, names_key(seed))
        named[name] = [(name, time, place) for _, time, place in part]
    return flat(named[name] for name in sorted(named))


def pseudonymize(records, seed):
    named = {}
    for user, trace in traces_of(records).items():
        name = virtual_name(user, 2**64 - 1, names_key(seed))
        named[name] = [(name, time, place) for _, time, place in trace]
    return flat(named[name] for name in sorted(named))


def drop_jumps(records, max_speed, distance=math.dist, breaks=()):
    """The longest chain of each trace in which every record can be reached from the one before.

    `breaks` are (user, number in the trace) of the records that begin a new segment.
    """
    kept = []
    for user, trace in traces_of(records).items():
        segments = itertools.accumulate((user, number) in breaks for number in range(len(trace)))
        kept += [trace[i] for i in longest_chain(trace, list(segments), max_speed, distance)]
    return kept


def resolution(times):
    for unit in (60 * SECOND, SECOND):
        if all(time % unit == 0 for time in times):
            return unit
    return 0


def longest_chain(trace, segments, max_speed, distance):
    """Record numbers; of chains of equal length those whose first different number is smaller."""
    added = resolution([time for _, time, _ in trace])

    def reachable(i, j):
        passed = trace[j][1] - trace[i][1] + added
        return segments[i] != segments[j] or distance(trace[i][2], trace[j][2]) * SECOND <= max_speed * passed

    best = {}
    for i in reversed(range(len(trace))):
        chains = [best[j] for j in range(i + 1, len(trace)) if reachable(i, j)]
        best[i] = [i, *min(chains, key=lambda chain: (-len(chain), chain), default=[])]
    return min(best.values(), key=lambda chain: (-len(chain), chain), default=[])


def describe(records):
    """Records, traces, and in seconds: mean and longest duration, sampling interval (None where undefined)."""
    durations = [(trace[-1][1] - trace[0][1]) / SECOND for trace in traces_of(records).values()]
    steps = len(records) - len(durations)
    return {
        "records": len(records),
        "traces": len(durations),
        "mean_duration": sum(durations) / len(durations) if durations else None,
        "longest_duration": max(durations, default=None),
        "sampling_interval": sum(durations) / steps if steps else None,
    }
