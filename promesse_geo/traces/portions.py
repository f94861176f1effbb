"""Divide traces into portions of whole users, so that what is left of a portion fits into memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from promesse_geo.messages import collected_warnings
from promesse_geo.traces.owners import PART
from promesse_geo.traces.traces import Traces

_SAMPLED = 50  # one of so many users is tried first
_ENOUGH = 1_000  # records that are left of a piece of a path, to know how many are left of a metre
_GROWTH = 16  # of such a piece, until enough are left of it
_MARGIN = 1.5  # others may become more records than those that are tried
_LEAST = 0.01  # metres of a path for each record that is left of it
_BLOCK = 1_000_000  # records whose distances are in memory at a time


@dataclass(frozen=True, eq=False)
class UserPaths:
    """Traces, and how long the path of each user is.

    Parameters
    ----------
    traces : Traces
        All traces of each user.
    ends : numpy.ndarray of int64, shape (users + 1,)
        User i has the traces `ends[i]` to `ends[i + 1]`.
    lengths : numpy.ndarray of float64, shape (users,)
        In units of the coordinates.
    farthest : int
        The record at the end of the longest step of the user with the longest path.
    """

    traces: Traces
    ends: np.ndarray
    lengths: np.ndarray
    farthest: int

    @classmethod
    def of(cls, traces: Traces) -> Self:
        """Measure the paths of users."""
        ends, steps = np.append(0, _ends_of_users(traces)), _steps(traces)
        offsets = traces.offsets[ends]
        lengths = np.add.reduceat(steps, offsets[:-1]) if traces.records else np.empty(0)
        longest = int(np.argmax(lengths)) if traces.records else 0
        first, last = offsets[longest : longest + 2] if traces.records else (0, 0)
        farthest = int(first + np.argmax(steps[first:last])) if traces.records else 0
        return cls(traces, ends, lengths, farthest)

    def divide(
        self, *, max_records: int, count: Callable[[Traces], int], check: Callable[[int], None] | None = None
    ) -> Iterator[Traces]:
        """Yield traces in portions of whole users, in their order, each with about `max_records` records left of it.

        How many records are left of a user is estimated from those that are left of some users of middle size, by
        records, and of a piece of the longest path, by length: whichever is more. Not many more than `max_records`
        records are left of what is tried, however long the paths are. Nothing is tried if the paths are too short for
        more.

        Parameters
        ----------
        max_records : int
            Records, at least 1.
        count : callable
            Returns how many records are left of some traces.
        check : callable, optional
            Called first with the greatest number of records that are left of a user, which it may refuse.

        Yields
        ------
        Traces
            One or more portions.
        """
        users, metres = len(self.lengths), float(self.lengths.sum() * self.traces.space.scale)
        if users < (1 if check else 2) or max(self.traces.records, metres / _LEAST) * _MARGIN <= max_records:
            yield self.traces
            return
        with collected_warnings():
            left = self._estimate(max_records, count)
        if check:
            check(int(left.max()))
        before, portions = np.cumsum(left) - left, int(np.ceil(_MARGIN * left.sum() / max_records))
        if portions <= 1:
            yield self.traces
            return
        numbers = (before * portions / left.sum()).astype(np.int64)  # of the portion in which a user begins
        firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
        offsets = self.traces.offsets[self.ends]
        for first, last in zip(firsts, np.append(firsts[1:], users), strict=True):
            yield self.traces.take(np.arange(offsets[first], offsets[last]))

    def _estimate(self, max_records: int, count: Callable[[Traces], int]) -> np.ndarray:
        """Return about how many records are left of each user, float64 of shape (users,)."""
        offsets = self.traces.offsets[self.ends]
        sizes, by_length = np.diff(offsets), self._left_of_length(offsets, count)
        middle = np.argsort(sizes, kind="stable")[len(sizes) // 2 :][: max(len(sizes) // _SAMPLED, 1)]
        some = self.traces.take(np.concatenate([np.arange(*offsets[user : user + 2]) for user in np.sort(middle)]))
        fitting = max(int(np.searchsorted(np.cumsum(_steps(some)) * by_length, max_records, side="right")), 1)
        by_record = count(some.take(np.arange(fitting))) / fitting
        return np.maximum(by_record * sizes, by_length * self.lengths)

    def _left_of_length(self, offsets: np.ndarray, count: Callable[[Traces], int]) -> float:
        """Return how many records are left of a unit of the longest path, from a piece around its longest step."""
        user = int(np.searchsorted(offsets, self.farthest, side="right")) - 1
        begin, end = offsets[user : user + 2].tolist()
        reach = 1
        while True:
            first, last = max(self.farthest - reach, begin), min(self.farthest + reach, end)
            piece = self.traces.take(np.arange(first, last))
            left, length = count(piece), float(_steps(piece).sum())
            if left >= _ENOUGH or (first, last) == (begin, end):
                return left / length if length else 0.0
            reach *= _GROWTH


def _steps(traces: Traces) -> np.ndarray:
    """Return the length of the path from the record before to each, float64 of shape (records,).

    It is in units of the coordinates, and 0 for the first record of a trace.
    """
    steps = np.zeros(traces.records)
    for first in range(1, traces.records, _BLOCK):
        points = traces.points[first - 1 : first + _BLOCK]
        steps[first : first + _BLOCK] = np.linalg.norm(np.diff(points, axis=0), axis=1)
    steps[traces.offsets[:-1]] = 0
    return steps


def _ends_of_users(traces: Traces) -> np.ndarray:
    """Return the positions after which no earlier user has a trace: int64, at least one unless there is no trace."""
    last = dict[str, int]()
    users = [PART.sub("", str(user)) for user in traces.users]
    for position, user in enumerate(users):
        last[user] = position
    furthest = np.maximum.accumulate(np.array([last[user] for user in users], np.int64))
    return np.flatnonzero(furthest == np.arange(len(users))) + 1
