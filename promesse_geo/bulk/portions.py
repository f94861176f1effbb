"""Divide the users of a bucket into portions, so that what is left of a portion fits into memory."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from promesse_geo.bulk.runs import Runs
from promesse_geo.messages import collected_warnings
from promesse_geo.traces.owners import PART
from promesse_geo.traces.traces import Traces

_SAMPLED = 50  # one of so many users is tried first
_SHORT = 1e-12  # in place of no length
_MARGIN = 1.5  # others may become more records than those that are tried


def divide(traces: Traces, *, room: int, count: Callable[[Traces], int]) -> Iterator[Traces]:
    """Yield traces in portions of whole users, in their order, of each of whom about `room` records are left.

    How many records are left of a user is estimated from those that are left of some users of middle size, by records,
    and of the user with the longest path, by length: whichever is more.

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
    if len(ends) < 2:
        yield traces
        return
    begins = np.append(0, ends[:-1])
    sizes = np.diff(traces.offsets[np.append(begins, ends[-1])])
    lengths = _lengths(traces, traces.offsets[begins])
    middle = np.argsort(sizes, kind="stable")[len(sizes) // 2 :][: max(len(sizes) // _SAMPLED, 1)]
    longest = int(np.argmax(lengths))
    with collected_warnings():
        by_record = count(_of(traces, [(begins[user], ends[user]) for user in middle])) / sizes[middle].sum()
        by_length = count(_of(traces, [(begins[longest], ends[longest])])) / max(lengths[longest], _SHORT)
    left = _MARGIN * np.maximum(by_record * sizes, by_length * lengths)
    before = np.cumsum(left) - left
    portions = int(np.ceil(left.sum() / room))
    if portions <= 1:
        yield traces
        return
    numbers = (before * portions / left.sum()).astype(np.int64)  # of the portion in which a user begins
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for first, last in zip(firsts, np.append(firsts[1:], len(ends)), strict=True):
        yield _of(traces, [(begins[first], ends[last - 1])])


def _lengths(traces: Traces, begins: np.ndarray) -> np.ndarray:
    """Return the length of the path of each user, in units of the coordinates: float64, shape (users,).

    `begins`, int64 of shape (users,), are the positions of their first records.
    """
    steps = np.zeros(traces.records)
    steps[1:] = np.linalg.norm(np.diff(traces.points, axis=0), axis=1)
    steps[traces.offsets[:-1]] = 0
    return np.add.reduceat(steps, begins)


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
