"""Drop records that cannot be reached at a given speed, and fixes at longitude and latitude 0."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import jumps
from promesse_geo.messages import CountedWarning, Remark, counted, warn
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, Traces, map_traces
from promesse_geo.validation import check_number

_BUDGET = 20_000_000  # records to examine between two chances to interrupt, about 0.2 s
_MUCH = 0.1  # share of a trace above which dropped records may be true travel


def drop_jumps(data: Data, max_speed: float = 50.0, *, user: Name = ..., time: Name = ..., segment: Name = ...) -> Data:
    """Drop the fewest records so that each of the others can be reached from the one before.

    A record can be reached from another if their distance is at most `max_speed` times the time between them. If all
    times of a trace are whole minutes (whole seconds), a minute (second) is added to that time, because they are
    rounded. Of several solutions the one is taken whose first different record is earlier. Nothing is compared across
    a break. This step is not in the paper. Apply it first, to the true times.

    Flights and fast trains exceed 50 m/s. Of a day with a flight the part with fewer records is dropped.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    max_speed : float
        Greatest speed in metres per second.
    user, time, segment : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        Of the type of `data`; one warning counts the dropped records.

    Raises
    ------
    TypeError, ValueError, KeyError
        If `max_speed` is not a number above zero, or the data cannot be read.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> len(city.pipe(pg.drop_jumps, 50)) == len(city)
    True
    """
    speed = check_max_speed(max_speed, owner="drop_jumps")

    def work(traces: Traces) -> Traces:
        keep = Steps.survey(traces, speed).longest_chains(speed)
        warn(CountedWarning([DroppedJumps.of(traces, keep, speed)]))
        return traces if keep.all() else traces.select(keep)

    return map_traces(data, work, user=user, time=time, segment=segment, selects=True)


def check_max_speed(value: float, *, owner: str) -> float:
    """Return the greatest speed in metres per second; raise TypeError or ValueError if it is not a number above 0."""
    return check_number(value, name="max_speed", owner=owner, unit="metres per second")


def drop_zero(data: Data, *, user: Name = ..., time: Name = ..., segment: Name = ...) -> Data:
    """Drop fixes at exactly longitude 0 and latitude 0, which receivers report without reception.

    Data in a projected CRS stays as it is.

    Parameters
    ----------
    data, user, time, segment
        As in `drop_jumps`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        Of the type of `data`; one warning counts the dropped records.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> len(pg.drop_zero(city)) == len(city)
    True
    """

    def work(traces: Traces) -> Traces:
        zero = is_zero(traces)
        dropped = int(zero.sum())
        warn(CountedWarning([DroppedZeros(dropped, len(zero))]))
        return traces.select(~zero) if dropped else traces

    return map_traces(data, work, user=user, time=time, segment=segment, selects=True)


def is_zero(traces: Traces) -> np.ndarray:
    """Return which records, bool of shape (records,), are at exactly (0, 0) in a geographic CRS."""
    if not is_geographic(traces):
        return np.zeros(traces.records, bool)
    x, y, z = traces.points.T
    return (y == 0) & (z == 0) & (x > 0)


def is_geographic(traces: Traces) -> bool:
    """Return whether coordinates are longitude and latitude."""
    return bool(traces.space.crs.is_geographic and traces.space.dimension == 3)


@dataclass(frozen=True)
class DroppedZeros(Remark):
    """A remark on what `drop_zero` dropped of how many records."""

    dropped: int
    records: int

    def __str__(self) -> str:
        """Return the counts."""
        if not self.dropped:
            return ""
        return f"drop_zero dropped {self.dropped:,} of {counted(self.records, 'record')} at longitude 0 and latitude 0."

    @property
    def totals(self) -> Mapping[str, int]:
        """Fixes at (0, 0)."""
        return {"dropped_zero_fixes": self.dropped}


@dataclass(frozen=True)
class DroppedJumps(Remark):
    """A remark on what `drop_jumps` dropped.

    Parameters
    ----------
    dropped, records : int
        Records dropped, of how many.
    much : int
        Traces that lost more than a tenth.
    speed : float
        Metres per second.
    """

    constants: ClassVar[tuple[str, ...]] = ("speed",)

    dropped: int
    records: int
    much: int
    speed: float

    @classmethod
    def of(cls, traces: Traces, keep: np.ndarray, speed: float) -> "DroppedJumps":
        """Count the records of Traces that are not kept."""
        rows = np.flatnonzero(~keep)
        owners = np.searchsorted(traces.offsets, rows, side="right") - 1
        much = int((np.bincount(owners, minlength=len(traces)) > _MUCH * traces.counts).sum())
        return cls(len(rows), len(keep), much, speed)

    def __str__(self) -> str:
        """Return the counts, and a remedy if it may be true travel."""
        if not self.dropped:
            return ""
        records = counted(self.records, "record")
        text = f"drop_jumps dropped {self.dropped:,} of {records} that need more than {self.speed:g} m/s."
        if self.much:
            text += (
                f" That is more than a tenth of {counted(self.much, 'trace')}, which may be true travel, such as "
                "flights and fast trains: take a larger max_speed (--max-speed) to keep it."
            )
        return text

    @property
    def totals(self) -> Mapping[str, int]:
        """Records that cannot be reached."""
        return {"dropped_jumps": self.dropped}


class Steps:
    """Steps between consecutive records of a segment.

    Parameters
    ----------
    traces : Traces
        The records.
    counts : numpy.ndarray of int64, shape (segments, 4)
        As `kernels.jumps.survey_steps` counts.
    speed : float
        Metres per second: the speed of the survey.
    """

    def __init__(self, traces: Traces, counts: np.ndarray, speed: float) -> None:
        self.traces, self.counts, self.speed = traces, counts, speed
        self._suspects = np.flatnonzero(counts[:, 0])
        segments = traces.segments
        self._begins, self._ends = segments[self._suspects], segments[self._suspects + 1]
        self._resolutions = self._find_resolutions()

    @classmethod
    def survey(cls, traces: Traces, speed: float, *, gap: int = np.iinfo(np.int64).max) -> "Steps":
        """Survey the steps of traces: those that may be faster than `speed` (m/s), and those of `gap` (ns) or more."""
        space, segments = traces.space, traces.segments
        counts = np.empty((len(segments) - 1, 4), np.int64)
        threads.run(
            lambda first, last: jumps.survey_steps(
                *(traces.points, traces.times, segments, space.curvature, speed / space.scale, gap),
                *(first, last, counts),
            ),
            threads.fair(np.diff(segments)),
        )
        return cls(traces, counts, speed)

    def _find_resolutions(self) -> np.ndarray:
        """Time resolution in seconds of the trace of each segment with steps that may be too fast."""
        traces = self.traces
        owners = np.searchsorted(traces.offsets, self._begins, side="right") - 1
        begins, ends = traces.offsets[owners], traces.offsets[owners + 1]
        seconds = np.empty(len(owners))
        threads.run(
            lambda first, last: jumps.find_resolutions(traces.times, begins, ends, first, last, seconds),
            threads.fair(ends - begins),
        )
        return seconds

    def count_faster(self, speeds: list[float]) -> np.ndarray:
        """Return the number of steps above speeds (m/s, at least that of the survey): int64, (suspects, speeds)."""
        traces, space = self.traces, self.traces.space
        counts = np.empty((len(self._suspects), len(speeds)), np.int64)
        limits = np.array(speeds) / space.scale
        threads.run(
            lambda first, last: jumps.count_fast_steps(
                *(traces.points, traces.times, self._begins, self._ends, self._resolutions, space.curvature, limits),
                *(first, last, counts),
            ),
            threads.fair(self._ends - self._begins),
        )
        return counts

    def longest_chains(self, speed: float, *, fast: np.ndarray | None = None) -> np.ndarray:
        """Return which records, bool of shape (records,), are in the longest chain of their segment at a speed (m/s).

        `fast`, shape (suspects,), is the number of steps above that speed, if known.
        """
        traces, space = self.traces, self.traces.space
        fast = self.count_faster([speed])[:, 0] if fast is None else fast
        begins, ends = self._begins[fast > 0], self._ends[fast > 0]
        keep = np.ones(traces.records, bool)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            keep[begin:end] = False
        sizes = ends - begins
        rows = np.concatenate(([0], np.cumsum(sizes)))
        heads, others = np.empty((2, rows[-1]), np.int32)
        states = np.column_stack((sizes, np.zeros_like(sizes), rows[:-1]))
        rule = (self._resolutions[fast > 0], space.curvature, speed / space.scale)

        def search(first: int, last: int) -> None:
            jumps.mark_longest_chains(
                *(traces.points, traces.times, begins, ends, *rule, pending, first, last, _BUDGET),
                *(heads, others, states, keep),
            )

        pending = np.arange(len(sizes))
        while len(pending):
            threads.run_interruptible(search, threads.fair(sizes[pending], most=threads.MANY))
            pending = pending[states[pending, 1] >= 0]
        return keep
