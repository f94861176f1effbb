"""Divide the users of a bucket into portions, so that what is left of a portion fits into memory."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from promesse_geo.bulk.runs import Runs
from promesse_geo.messages import collected_warnings
from promesse_geo.traces.owners import PART
from promesse_geo.traces.traces import Traces

_FEW = 10_000  # records that are not divided
_SAMPLED = 50  # one of so many users is tried first
_MARGIN = 1.5  # others may become more records than those that are tried


def divide(traces: Traces, *, room: int, count: Callable[[Traces], int]) -> Iterator[Traces]:
    """Yield traces in portions of whole users, in their order, of each of whom about `room` records are left.

    How many records are left is estimated from some users of middle size.

    Parameters
    ----------
    traces : Traces
        All traces of each user.
    room : int
        Records, at least 1.
    count : callable
        Returns how many records are left of some users.

    Yields
    ------
    Traces
        One or more portions.
    """
    ends = _ends_of_users(traces)
    begins = np.append(0, ends[:-1])
    sizes = traces.offsets[ends] - traces.offsets[begins]
    if traces.records <= _FEW or len(ends) < 2:
        yield traces
        return
    middle = np.argsort(sizes, kind="stable")[len(sizes) // 2 :][: max(len(sizes) // _SAMPLED, 1)]
    with collected_warnings():
        left = count(_of(traces, [(begins[user], ends[user]) for user in middle]))
    each = _MARGIN * left / max(int(sizes[middle].sum()), 1)  # records left of one
    portions = int(np.ceil(each * traces.records / room))
    if portions <= 1:
        yield traces
        return
    numbers = traces.offsets[begins] * portions // traces.records  # of the portion in which a user begins
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for first, last in zip(firsts, np.append(firsts[1:], len(ends)), strict=True):
        yield _of(traces, [(begins[first], ends[last - 1])])


def _ends_of_users(traces: Traces) -> np.ndarray:
    """Return the positions after which no earlier user has a trace: int64, at least one unless there is no trace."""
    last = dict[str, int]()
    users = [PART.sub("", str(user)) for user in traces.users]
    for position, user in enumerate(users):
        last[user] = position
    furthest = np.maximum.accumulate(np.array([last[user] for user in users], np.int64))
    return np.flatnonzero(furthest == np.arange(len(users))) + 1


def _of(traces: Traces, ranges: Iterable[tuple[int, int]]) -> Traces:
    """Return the traces at some ranges of positions."""
    keep = np.zeros(traces.records, bool)
    for first, last in ranges:
        keep[traces.offsets[first] : traces.offsets[last]] = True
    return traces.select(keep)


def joined_up_to(records: int, parts: Iterable[Runs]) -> Iterator[Runs]:
    """Yield runs joined until they have so many records; at least one, and the rest last."""
    waiting, total, is_first = list[Runs](), 0, True
    for part in parts:
        waiting.append(part)
        total += len(part.times)
        if total >= records:
            yield waiting[0] if len(waiting) == 1 else Runs.join(waiting)
            waiting, total, is_first = [], 0, False
    if waiting and (total or is_first):
        yield waiting[0] if len(waiting) == 1 else Runs.join(waiting)
