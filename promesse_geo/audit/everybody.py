"""Published records beside those of everybody, whoever they are said to be."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import sharing
from promesse_geo.traces.pairs import WIDER, in_space_of, rounding
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces

CLOSE = 10.0
"""Metres within which a published place is as good as the true one: receivers are no better."""

_AROUND = 10**10  # nanoseconds within which times are about the same, where they are not published more coarsely
_SAMPLE = 64  # records of a trace that tell whether most are like them
_MOST = 32  # true records of one time that are looked at one by one; more are looked up in cells
_MOST_OF_SAMPLE = 32 * _MOST


@dataclass(frozen=True, eq=False)
class Everybody:
    """All original records beside all protected ones."""

    original: Traces
    protected: Traces

    def shared(self) -> np.ndarray:
        """Return whether each protected record is anybody's true one (2), at the time of one near it (1) or not (0).

        A true one has the same time, as coarsely as times are published, and lies within what the rounding of the
        coordinates can do; near it is what lies within `WIDER` times that. The shape is (records,).
        """
        middles, units = self._rounded
        levels, reaches = rounding(self.protected)
        return self._looked_up(self._moved.points, middles, units, levels, reaches, most=_MOST)

    def around(self, records: np.ndarray) -> np.ndarray:
        """Return whether protected records are as `shared`, but within `CLOSE` and at about the same time."""
        units = np.maximum(self._rounded[1][records], _AROUND)
        levels, reaches = np.zeros(len(records), np.int8), np.array([CLOSE])
        times = self._moved.times[records]
        return self._looked_up(self._moved.points[records], times, units, levels, reaches, most=_MOST_OF_SAMPLE)

    @cached_property
    def _moved(self) -> Traces:
        return in_space_of(self.original, self.protected)

    @cached_property
    def _rounded(self) -> tuple[np.ndarray, np.ndarray]:
        """The protected times, and the unit of each."""
        middles, units = np.empty((2, self.protected.records), np.int64)
        threads.run(
            lambda first, last: sharing.rounded_times(
                self.protected.times, self.protected.offsets, first, last, middles, units
            ),
            threads.fair(self.protected.counts),
        )
        return middles, units

    @cached_property
    def _by_time(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.original.times)
        return order, self.original.times[order]

    def _looked_up(
        self,
        points: np.ndarray,
        middles: np.ndarray,
        units: np.ndarray,
        levels: np.ndarray,
        reaches: np.ndarray,
        *,
        most: int,
    ) -> np.ndarray:
        """Look for true records less than a unit away in time, and within what is in reach of a level in space."""
        found = np.zeros(len(points), np.int8)
        order, times = self._by_time
        scale = self.original.space.scale
        lengths = (reaches / scale)[levels]
        threads.run(
            lambda first, last: sharing.anybodys(
                times, order, self.original.points, points, middles, units, lengths, WIDER, most, first, last, found
            ),
            threads.even(len(points)),
        )
        crowded = np.flatnonzero(found < 0)
        if len(crowded):
            crowded = crowded[np.lexsort((levels[crowded], units[crowded], middles[crowded]))]
            found[crowded] = _in_crowds(
                self.original.points[order],
                times,
                points[crowded],
                middles[crowded],
                units[crowded],
                levels[crowded],
                scale / reaches,
            )
        return found


def sampled(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of some records of each trace, evenly spread, and where those of each begin and end."""
    some = np.minimum(counts, _SAMPLE)
    offsets = as_offsets(some)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], some)
    return np.repeat(as_offsets(counts)[:-1], some) + within * np.repeat(counts, some) // np.repeat(some, some), offsets


def _in_crowds(
    true: np.ndarray,
    times: np.ndarray,
    published: np.ndarray,
    middles: np.ndarray,
    units: np.ndarray,
    levels: np.ndarray,
    scales: np.ndarray,
) -> np.ndarray:
    """Look up records in order of time, unit and level: those that share all three are as one trace."""
    found = np.zeros(len(published), np.int8)
    new = np.ones(len(published) + 1, bool)
    new[1:-1] = (np.diff(middles) != 0) | (np.diff(units) != 0) | (np.diff(levels) != 0)
    starts = np.flatnonzero(new)
    ones = starts[:-1]
    begins = np.searchsorted(times, middles[ones] - units[ones], side="right")
    ends = np.searchsorted(times, middles[ones] + units[ones], side="left")
    threads.run(
        lambda first, last: sharing.nearness(
            true,
            np.column_stack((begins, ends)).ravel(),
            published,
            starts,
            2 * np.arange(len(ones)),
            levels,
            scales,
            WIDER,
            first,
            last,
            found,
        ),
        threads.fair(np.diff(starts) + ends - begins),
    )
    return found
