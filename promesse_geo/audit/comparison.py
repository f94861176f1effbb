"""Original and protected data side by side: which times, locations and records are the same."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from promesse_geo import threads
from promesse_geo.audit.matching import (
    WIDER,
    by_chance,
    match_anywhere,
    match_crowded,
    match_locations,
    sample,
    steps_of,
)
from promesse_geo.kernels import record_matching
from promesse_geo.preprocess.calendar import uses_common_calendar
from promesse_geo.traces.pairs import Pairs, align, in_space_of
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces

SAME_PLACE = 1e-3
"""Metres within which two locations are the same, whatever CRS and space they went through."""

COARSE = 10.0
"""Metres of the last digit from which on coordinates are not taken for rounded original ones."""

CLOSE = 10.0
"""Metres within which a published location is as good as the original one: receivers are no better."""

FINE = 0.01
"""Metres below which digits of coordinates are needless."""

FEWEST_MOVED = 500
"""Records whose displacements show the law of the noise."""

_HOUR = 3_600 * 10**9
_SAME_PERIOD = 10**10  # nanoseconds within which times are about the same, if they are not published more coarsely
_APART = 0.3  # share of traces that lie apart with user names that are mixed up; 0.18 of right ones do on real data
_FEW = 16  # published points of a trace, whose distance from the original path is typical
_PLACES = 128  # points of an original path
_ROWS = 256  # pairs of traces compared at a time
_STEP = 0.1  # metres within which steps are the same
_MOST = 32  # original records of one time that are compared one by one; more are looked up in cells
_MOST_OF_SAMPLE = 32 * _MOST


@dataclass(frozen=True, eq=False)
class Comparison:
    """Original and protected traces, with what several tests need of them, computed once.

    Parameters
    ----------
    original : Traces
        The original traces.
    protected : Traces
        The protected traces, in their own space.
    beside : float
        Metres within which traces of one user name do not lie apart: as far as the mechanism moves records.
    has_times : bool
        Whether times can be compared. They cannot if only the protected ones were moved to the common calendar.
    """

    original: Traces
    protected: Traces
    beside: float = 100.0
    has_times: bool = True

    @classmethod
    def of(cls, original: Traces, protected: Traces) -> "Comparison":
        """Return a comparison of locations only if the protected days alone are those of the common calendar."""
        zones = [traces.time_format.zone for traces in (original, protected)]
        is_moved = uses_common_calendar(protected) and (
            not uses_common_calendar(original) or (zones[0] is not None and zones[1] is None)
        )
        if is_moved and (zones[0] is None) != (zones[1] is None):
            protected = replace(protected, time_format=replace(protected.time_format, zone=zones[0]))
        return cls(original, protected, has_times=not is_moved)

    @cached_property
    def pairs(self) -> Pairs:
        """The protected traces whose users the original has, beside the traces of those users."""
        return align(self.original, self.moved)

    @cached_property
    def moved(self) -> Traces:
        """The protected traces in the space of the original."""
        return in_space_of(self.original, self.protected)

    @cached_property
    def by_user(self) -> bool:
        """Whether users are in both who look like the same people; if not, records are compared with all users'."""
        return len(self.pairs.originals) > 0 and float(self.apart.mean()) <= _APART

    @cached_property
    def apart(self) -> np.ndarray:
        """Whether each pair of traces lies farther apart than other traces of the original, bool of shape (pairs,).

        The distance is the median of those from some protected records to the nearest of some original ones.
        """
        originals, count = self.pairs.originals, len(self.original)
        steps = np.unique(np.array([1, 2, 3]) * count // 4)
        if not len(originals) or not steps.any():
            return np.zeros(len(originals), bool)
        paths = self.original.points[_rows_along(self.original)]
        few = self.pairs.protected.points[_some_rows(self.pairs.protected, _FEW)]
        near = self._typical_distances(few, paths, originals)
        others = [self._typical_distances(few, paths, (originals + step) % count) for step in steps[steps > 0]]
        return (near > np.median(others, axis=0)) & (near > self.beside)

    def _typical_distances(self, few: np.ndarray, paths: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the median metres from some points to the nearest points of the paths of given numbers, shape (n,)."""
        squares = np.empty(len(few))
        for first in range(0, len(few), _ROWS):
            some, others = few[first : first + _ROWS], paths[numbers[first : first + _ROWS]]
            products = some @ (-2 * others).transpose(0, 2, 1)  # |a − b|² = |a|² + |b|² − 2ab
            products += (others**2).sum(axis=2)[:, None, :]
            squares[first : first + _ROWS] = np.median(products.min(axis=2) + (some**2).sum(axis=2), axis=1)
        return self.original.space.metres(np.sqrt(np.maximum(squares, 0)))

    @cached_property
    def displacements(self) -> np.ndarray:
        """Metres between sampled records of traces that have as many records as their original, and its times.

        The shape is (n,), 0 without common users.
        """
        if not (self.by_user and self.has_times):
            return np.empty(0)
        records, others, offsets = self.twins
        same = np.abs(self.pairs.protected.times[records] - self.original.times[others]) < 10**9
        kept = np.repeat(np.logical_and.reduceat(same, offsets[:-1]) if len(same) else same, np.diff(offsets))
        return self.distances(others[kept], records[kept])

    @cached_property
    def twins(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sampled records of traces with as many records as their original, those of the original, and offsets.

        The shapes are (n,), (n,) and (traces + 1,).
        """
        pairs = self.pairs
        ours = pairs.protected.counts
        alike = pairs.original.counts[pairs.originals] == ours
        records, offsets = sample(ours)
        shift = np.repeat(pairs.original.offsets[pairs.originals] - pairs.protected.offsets[:-1], np.diff(offsets))
        chosen = np.repeat(alike, np.diff(offsets))
        return records[chosen], (records + shift)[chosen], as_offsets(np.diff(offsets)[alike])

    @cached_property
    def compared(self) -> tuple[np.ndarray | slice, np.ndarray]:
        """Numbers of the protected records whose locations are compared, shape (n,), and offsets, shape (traces + 1,).

        These are the records of `pairs`, or without a common user a sample of each trace.
        """
        if not self.by_user:
            return sample(self.protected.counts)
        pairs = self.pairs.protected
        if len(pairs) == len(self.protected):
            return slice(None), pairs.offsets
        return np.flatnonzero(np.repeat(self.protected.users.isin(pairs.users), self.protected.counts)), pairs.offsets

    @cached_property
    def decimals(self) -> np.ndarray:
        """The decimals of the coordinates of each protected record, int8, shape (records,), within `_decimal_range`."""
        x, y = self.protected.coordinates()
        least, most = _decimal_range(self.protected.space)
        decimals = np.empty(self.protected.records, np.int8)
        threads.run(
            lambda first, last: record_matching.count_decimals(x, y, least, most, first, last, decimals),
            threads.even(self.protected.records),
        )
        return decimals

    @cached_property
    def fine(self) -> np.ndarray:
        """Whether each protected record has digits below `FINE`, shape (records,)."""
        return self.decimals > _decimals_of(self.protected.space, FINE)

    def distances(self, originals: np.ndarray, protected: np.ndarray) -> np.ndarray:
        """Return the metres between original records and records of `pairs.protected`, given by numbers, shape (n,)."""
        chords = self.original.points[originals] - self.pairs.protected.points[protected]
        return self.original.space.metres(np.linalg.norm(chords, axis=1))

    def end_distances(self, *, first: bool) -> np.ndarray:
        """Return the metres between the first (last) points of each pair of traces, shape (pairs,)."""
        ends = slice(None, -1) if first else slice(1, None)
        back = 0 if first else 1
        originals = self.original.offsets[ends][self.pairs.originals]
        return self.distances(originals - back, self.pairs.protected.offsets[ends] - back)

    def hidden_paths(self, numbers: np.ndarray, *, first: bool) -> np.ndarray:
        """Return the metres travelled before the first published point of traces, or after the last one.

        The path goes along the original trace, which it leaves for the first protected point at the last record that is
        not later, or joins from the last protected point at the first record that is not earlier.

        Parameters
        ----------
        numbers : numpy.ndarray of integers, shape (n,)
            Numbers of the pairs.
        first : bool
            Whether the path from the start is meant, and not that to the end.

        Returns
        -------
        numpy.ndarray of float64, shape (n,)
            Metres.
        """
        original, protected = self.original, self.pairs.protected
        lengths = np.empty(len(numbers))
        for place, number in enumerate(numbers):
            begin, end = original.offsets[self.pairs.originals[number] + np.arange(2)]
            published = protected.offsets[number] if first else protected.offsets[number + 1] - 1
            side: Literal["left", "right"] = "right" if first else "left"
            joint = begin + np.searchsorted(original.times[begin:end], protected.times[published], side=side)
            rows = slice(begin, max(joint, begin + 1)) if first else slice(min(joint, end - 1), end)
            travelled = original.points[rows] if first else original.points[rows][::-1]
            chords = np.diff(np.vstack([travelled, protected.points[published]]), axis=0)
            lengths[place] = original.space.metres(np.linalg.norm(chords, axis=1)).sum()
        return lengths

    @cached_property
    def time_matches(self) -> tuple[np.ndarray, np.ndarray]:
        """The original record with the time of each record of `pairs` (or −1), and whether one is near.

        Original times count as rounded, up or down, to what the protected ones are in: whole hours, minutes, seconds,
        milli- or microseconds, trace by trace. Near (1) is what lies within `WIDER` times that, and 2 more where far
        nearer than the original times are to each other. Both have the shape (records,).
        """
        original, protected, partners = self.original, self.pairs.protected, self.pairs.originals
        matches, near = np.empty(protected.records, np.int64), np.empty(protected.records, np.int8)
        threads.run(
            lambda first, last: record_matching.match_times(
                original.times,
                original.offsets,
                protected.times,
                protected.offsets,
                partners,
                WIDER,
                first,
                last,
                matches,
                near,
            ),
            threads.fair(protected.counts + original.counts[partners]),
        )
        return matches, near

    @cached_property
    def same_times(self) -> tuple[np.ndarray, float]:
        """Whether each record of `pairs` has an original time of its user, and how many would have by chance.

        Without a common user the times of all protected records are compared with those of all users, and by chance
        with those an hour earlier or later. The shape is (records,).
        """
        if not self.by_user:
            return self._are_times(0), float(max(self._are_times(shift).sum() for shift in (-_HOUR, _HOUR)))
        matches, near = self.time_matches
        same = matches >= 0
        return same, by_chance(int(same.sum()), int((near & 1).sum()))

    def _are_times(self, shift: int) -> np.ndarray:
        """Whether protected times, moved by some nanoseconds, are those of any original record."""
        middles, units = self._rounded_times
        order, times = np.argsort(middles), np.append(self._by_time[1], np.iinfo(np.int64).max)
        middles, units = middles[order] + shift, units[order]
        same = np.empty(len(order), bool)
        same[order] = times[np.searchsorted(times, middles - units, side="right")] < middles + units
        return same

    @cached_property
    def location_matches(self) -> np.ndarray:
        """Whether each of the `compared` records lies at an original location of its user (2), near one (1) or not (0).

        At it is what lies within about a millimetre, or, where its published coordinates are rounded more coarsely,
        within what rounding can do; near it what lies within `WIDER` times that. Without a common user the locations of
        all users are compared. The shape is (compared,).
        """
        if not self.by_user:
            return self.anywhere
        levels, reaches = self.rounding
        protected, partners, original = self.pairs.protected, self.pairs.originals, self.original
        scales = original.space.scale / reaches
        return match_locations(
            *(original.points, original.offsets, protected.points, protected.offsets, partners),
            *(levels[self.compared[0]], scales),
        )

    @cached_property
    def anywhere(self) -> np.ndarray:
        """`location_matches` with the locations of all users at any time, for a sample of each protected trace.

        The sample is that of `sample(protected.counts)`.
        """
        chosen, (levels, reaches) = sample(self.protected.counts)[0], self.rounding
        return match_anywhere(
            self.original.points, self.moved.points[chosen], levels[chosen], reaches, scale=self.original.space.scale
        )

    @cached_property
    def moved_steps(self) -> tuple[np.ndarray, np.ndarray]:
        """Whether two consecutive steps of sampled records are those of any original record (2), near (1) or not (0).

        So traces are found that were moved by the same distance everywhere. Steps are differences of coordinates; the
        shortest ones are left out (see `steps_of`). The second array has the offsets of traces, shape (traces + 1,).
        """
        published, numbers = steps_of(self.moved, sample(self.moved.counts)[0])
        original, _ = steps_of(self.original, np.arange(self.original.records))
        levels, reaches = self.rounding
        reaches = np.maximum(2 * reaches, _STEP)
        return (
            match_anywhere(original, published, levels[numbers], reaches, scale=1.0),
            as_offsets(np.bincount(self.moved.trace_numbers[numbers], minlength=len(self.moved))),
        )

    @cached_property
    def record_matches(self) -> np.ndarray:
        """Whether each protected record is an original one of any user (2), at the time of one near it (1) or not (0).

        An original record has the same time, as coarsely as times are published, and lies within what the rounding of
        coordinates can do; near it is what lies within `WIDER` times that. The shape is (records,).
        """
        middles, units = self._rounded_times
        levels, reaches = self.rounding
        return self._look_up(self.moved.points, middles, units, levels, reaches, most=_MOST)

    def nearby_records(self, records: np.ndarray) -> np.ndarray:
        """Return `record_matches` for records of shape (n,), within `CLOSE` and at about the same time; shape (n,)."""
        units = np.maximum(self._rounded_times[1][records], _SAME_PERIOD)
        levels, reaches = np.zeros(len(records), np.int8), np.array([CLOSE])
        points, times = self.moved.points[records], self.moved.times[records]
        return self._look_up(points, times, units, levels, reaches, most=_MOST_OF_SAMPLE)

    @cached_property
    def rounding(self) -> tuple[np.ndarray, np.ndarray]:
        """The level of each record's decimals, and how many metres rounding to each level can move a point.

        Levels go from a last digit of `COARSE` metres to one of `SAME_PLACE`, and one more for what is finer.
        """
        coarsest, finest = _decimal_range(self.protected.space)
        digits = np.append(self.protected.space.unit / 10.0 ** np.arange(coarsest, finest + 1), 0)
        return self.decimals - coarsest, np.maximum(1.5 * digits, SAME_PLACE)

    @property
    def tolerance(self) -> str:
        """Return in words how near locations, of which most have as many decimals, are to original ones to be these."""
        levels, reaches = self.rounding
        metres = reaches[levels]
        usual = float(np.median(metres)) if len(metres) else SAME_PLACE
        rounded = ", or what rounding can move them" if (metres > usual).any() else ""
        return f"{usual * 1000:.3g} mm{rounded}" if usual < 1 else f"{usual:.3g} m{rounded}"

    @cached_property
    def _rounded_times(self) -> tuple[np.ndarray, np.ndarray]:
        """The protected times and the unit of each, both in nanoseconds."""
        middles, units = np.empty((2, self.protected.records), np.int64)
        threads.run(
            lambda first, last: record_matching.round_times(
                self.protected.times, self.protected.offsets, first, last, middles, units
            ),
            threads.fair(self.protected.counts),
        )
        return middles, units

    @cached_property
    def _by_time(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the original records in order of time, and their times."""
        order = np.argsort(self.original.times)
        return order, self.original.times[order]

    def _look_up(
        self,
        points: np.ndarray,
        middles: np.ndarray,
        units: np.ndarray,
        levels: np.ndarray,
        reaches: np.ndarray,
        *,
        most: int,
    ) -> np.ndarray:
        """Match original records less than a unit away in time and within the reach of a level in space."""
        matches = np.zeros(len(points), np.int8)
        order, times = self._by_time
        scale = self.original.space.scale
        lengths = (reaches / scale)[levels]
        threads.run(
            lambda first, last: record_matching.match_any_user(
                times, order, self.original.points, points, middles, units, lengths, WIDER, most, first, last, matches
            ),
            threads.even(len(points)),
        )
        crowded = np.flatnonzero(matches < 0)
        if len(crowded):
            crowded = crowded[np.lexsort((levels[crowded], units[crowded], middles[crowded]))]
            matches[crowded] = match_crowded(
                self.original.points[order],
                times,
                points[crowded],
                middles[crowded],
                units[crowded],
                levels[crowded],
                scale / reaches,
            )
        return matches


def _some_rows(traces: Traces, many: int) -> np.ndarray:
    """Return the numbers of records evenly spread over each trace, shape (traces, many); short traces repeat some."""
    return traces.offsets[:-1, None] + traces.counts[:, None] * np.arange(many) // many


def _rows_along(traces: Traces) -> np.ndarray:
    """Return the numbers of records evenly spread over the path of each trace, shape (traces, `_PLACES`)."""
    rows = _some_rows(traces, 4 * _PLACES)
    along = np.empty((len(rows), _PLACES), rows.dtype)
    for first in range(0, len(rows), _ROWS):  # in blocks, because all points take 12 kB per trace
        some = rows[first : first + _ROWS]
        steps = np.linalg.norm(np.diff(traces.points[some], axis=1), axis=2)
        path = np.pad(np.cumsum(steps, axis=1), ((0, 0), (1, 0)))
        path /= np.maximum(path[:, -1:], 1e-12)
        numbers = np.arange(len(some))[:, None]
        keys = (path + 2 * numbers).ravel()  # ascending: one search serves all traces
        found = np.searchsorted(keys, np.linspace(0, 1, _PLACES) + 2 * numbers)
        along[first : first + _ROWS] = some.ravel()[np.minimum(found, some.shape[1] * (numbers + 1) - 1)]
    return along


def _decimals_of(space: Space, metres: float) -> int:
    """Decimals that a coordinate needs so that the last one is about so many metres."""
    return math.ceil(math.log10(space.unit / metres) - 0.1)


def _decimal_range(space: Space) -> tuple[int, int]:
    """Decimals of coordinates with a last digit of `COARSE` and of `SAME_PLACE`."""
    return _decimals_of(space, COARSE), _decimals_of(space, SAME_PLACE)
