"""Local days: a common calendar for all traces, and their first days with data (paper, "Datasets")."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from promesse_geo.messages import CountedWarning, Remark, counted, warn
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, Traces, freeze, map_traces
from promesse_geo.traces.values import TimeFormat
from promesse_geo.validation import check_integer, check_zone

DAY = 86_400_000_000_000
"""Nanoseconds in a day."""

FIRST_DAY = 10_959 * DAY
"""2000-01-03 00:00, a Monday: the day on which every trace begins in the common calendar."""

_LONGEST = 1_000 * DAY  # data on the common calendar is shorter


def uses_common_calendar(traces: Traces) -> bool:
    """Return whether the days of Traces are those of the common calendar, within a day: a time zone shifts them."""
    if not traces.records:
        return False
    first, last = traces.times[traces.offsets[:-1]].min(), traces.times[traces.offsets[1:] - 1].max()
    return is_common_period(int(first), int(last))


def is_common_period(first: int, last: int) -> bool:
    """Return whether times from first to last (ns) are those of the common calendar."""
    return first >= FIRST_DAY - DAY and last < FIRST_DAY + _LONGEST


def collapse_empty_days(data: Data, *, tz: Any = None, user: Name = ..., time: Name = ..., segment: Name = ...) -> Data:
    """Move all traces to a common calendar, without days that have no data.

    The i-th day on which a user has data becomes the day that begins at 2000-01-03 00:00 + i · 24 h. The time of day
    is the time since local midnight, scaled to 24 hours on days of 23 or 25 hours, when clocks change. The times of
    the result are naive: its days are not calendar days, and a time zone would shift and scale them again.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        One trace for each person.
    tz : str or tzinfo, optional
        Time zone in which days begin; by default that of the times. With `tz`, naive times are taken as UTC.
    user, time, segment : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        Of the type of `data`, with naive times in nanoseconds.

    References
    ----------
    Paper, section V-A: "make all traces begin the same day and removed entire days with no data".

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.collapse_empty_days(pg.make_city(users=2, days=2), tz="Europe/Paris")["time"].dt.tz is None
    True
    """
    local = None if tz is None else check_zone(tz, name="tz", owner="collapse_empty_days")
    return map_traces(data, lambda traces: collapse(traces, local), user=user, time=time, segment=segment, selects=True)


def first_days(
    data: Data,
    days: int = 20,
    *,
    min_days: int | None = None,
    tz: Any = None,
    user: Name = ...,
    time: Name = ...,
    segment: Name = ...,
) -> Data:
    """Keep the first days with data of each user.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        One trace for each person.
    days : int
        Number of days with data to keep.
    min_days : int, optional
        Drop users with fewer days of data before the cut. The paper does not mention it, but its Table I is only
        reached with 21.
    tz : str or tzinfo, optional
        Time zone in which days begin; by default that of the times, UTC for naive ones.
    user, time, segment : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        Of the type of `data`; one warning counts what was dropped.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, as_traces=True)
    >>> pg.first_days(city, days=20).records == city.records
    True
    """
    number, least = check_days(days, min_days, owner="first_days")
    local = None if tz is None else check_zone(tz, name="tz", owner="first_days")

    def work(traces: Traces) -> Traces:
        kept, dropped = keep_first_days(traces, number, least, local)
        warn(CountedWarning([dropped]))
        return kept

    return map_traces(data, work, user=user, time=time, segment=segment, selects=True)


def check_days(days: Any, min_days: Any, *, owner: str) -> tuple[int, int]:
    """Return both as whole numbers of at least 1; raise TypeError or ValueError if one is not."""
    number = check_integer(days, name="days", owner=owner)
    return number, 1 if min_days is None else check_integer(min_days, name="min_days", owner=owner)


@dataclass(frozen=True)
class DroppedDays(Remark):
    """A remark on what `first_days` dropped.

    Parameters
    ----------
    late : int
        Records after the first days.
    users, lost : int
        Users with too few days, and their records.
    days, least : int
        The number of days to keep, and the smallest number of days of a user.
    """

    constants: ClassVar[tuple[str, ...]] = ("days", "least")

    late: int
    users: int
    lost: int
    days: int
    least: int

    def __str__(self) -> str:
        """Return the counts."""
        remarks = self.parts()
        return f"first_days dropped {' and '.join(remarks)}." if remarks else ""

    @property
    def totals(self) -> Mapping[str, int]:
        """Users with too few days, and records of them and of other days."""
        return {"dropped_users": self.users, "dropped_other_days": self.late + self.lost}

    def parts(self) -> list[str]:
        """Return what was dropped in words."""
        remarks = []
        if self.late:
            remarks.append(f"{counted(self.late, 'record')} after the first {counted(self.days, 'day')}")
        if self.users:
            users = f"{counted(self.users, 'user')} ({counted(self.lost, 'record')})"
            remarks.append(f"{users} with fewer than {counted(self.least, 'day')} of data")
        return remarks


def _day_starts(traces: Traces, zone: tzinfo | None) -> np.ndarray:
    """Instants (ns) at which the local days of the data begin, and one more day before and after.

    A day begins at the last instant before which the clock shows an earlier date, so that a clock set back over
    midnight does not split a day.
    """
    zone = zone or traces.time_format.zone or UTC
    first, last = (int(time) // DAY for time in (traces.times.min(), traces.times.max()))
    dates = pd.DatetimeIndex(np.arange(first - 2, last + 4).astype("M8[D]").astype("M8[s]"))

    def midnight(*, first_pass: bool) -> pd.DatetimeIndex:
        ambiguous = np.full(len(dates), first_pass)
        return dates.tz_localize(zone, ambiguous=ambiguous, nonexistent="NaT").tz_convert("UTC")

    early, late = midnight(first_pass=True), midnight(first_pass=False)
    before = (late - pd.Timedelta(1, unit="s")).tz_convert(zone).tz_localize(None)
    starts = np.where(before < dates, late.asi8, early.asi8)
    unseen = early.isna()
    starts[unseen] = _jumped_over(dates[unseen], zone)
    return starts * 1_000_000_000


def _jumped_over(midnights: pd.DatetimeIndex, zone: tzinfo) -> np.ndarray:
    """Seconds at which clocks jump over midnights, by bisection (pandas assumes jumps of an hour)."""
    early, late = midnights.asi8 - 2 * 86_400, midnights.asi8 + 2 * 86_400
    while np.any(late - early > 1):
        middle = (early + late) // 2
        read = pd.DatetimeIndex(middle.view("M8[s]"), tz="UTC").tz_convert(zone).tz_localize(None)
        early, late = np.where(read < midnights, middle, early), np.where(read < midnights, late, middle)
    return late


def _local_days(traces: Traces, zone: tzinfo | None) -> tuple[np.ndarray, np.ndarray]:
    """Each record's local day and time of day (ns of a day of 24 h)."""
    if zone is not None and traces.time_format.zone is None:
        warn(
            "The times are naive and were taken as UTC to find the days of the time zone 'tz'. "
            "If they are local times already, omit 'tz'."
        )
    if traces.records == 0:
        return traces.times, traces.times
    starts = _day_starts(traces, zone)
    days = np.searchsorted(starts, traces.times, side="right") - 1
    elapsed = traces.times - starts[days]
    lengths = np.diff(starts)
    for day in np.flatnonzero((lengths != DAY) & (lengths > 0)):
        length = int(lengths[day])
        common = math.gcd(length, DAY)  # the product with DAY exceeds 64 bits
        rows = days == day
        elapsed[rows] = elapsed[rows] * (DAY // common) // (length // common)
    return days, elapsed


def _day_ranks(traces: Traces, days: np.ndarray) -> np.ndarray:
    """Number of each record's day among the days with data of its trace, from 0."""
    begins = np.ones(traces.records, np.int64)
    begins[1:] = days[1:] != days[:-1]
    firsts = traces.offsets[:-1]
    begins[firsts] = 1
    ranks = np.cumsum(begins)
    return ranks - np.repeat(ranks[firsts], traces.counts)


def count_on_days(traces: Traces, zone: tzinfo | None) -> np.ndarray:
    """Return for each record the number of records of its trace on its local day: int64, shape (records,)."""
    days = _local_days(traces, zone)[0]
    begins = np.ones(traces.records, bool)
    begins[1:] = (np.diff(days) != 0) | (np.diff(traces.trace_numbers) != 0)
    runs = np.flatnonzero(begins)
    counts = np.diff(runs, append=traces.records)
    return np.repeat(counts, counts)


def collapse(traces: Traces, zone: tzinfo | None) -> Traces:
    """Move Traces to the common calendar; see `collapse_empty_days`."""
    days, elapsed = _local_days(traces, zone)
    times = FIRST_DAY + _day_ranks(traces, days) * DAY + elapsed
    return replace(traces, times=freeze(times), time_format=TimeFormat())


def keep_first_days(traces: Traces, days: int, least: int, zone: tzinfo | None) -> tuple[Traces, DroppedDays]:
    """Keep the first days of Traces, and return what was dropped; see `first_days`."""
    ranks = _day_ranks(traces, _local_days(traces, zone)[0])
    short = ranks[traces.offsets[1:] - 1] + 1 < least
    late = (ranks >= days) & np.repeat(~short, traces.counts)
    lost = int(traces.counts[short].sum())
    dropped = DroppedDays(int(late.sum()), int(short.sum()), lost, days, least)
    return traces.select((ranks < days) & np.repeat(~short, traces.counts)), dropped
