"""Preprocessing, as in the paper's "Datasets": a common calendar, the first days, parts between gaps."""

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

import numpy as np
import pandas as pd

from promesse_geo import check
from promesse_geo.columns import Name
from promesse_geo.kernels import jumps
from promesse_geo.mechanisms.base import Data
from promesse_geo.traces import Traces, as_offsets, as_traces, through_doors

DAY = 86_400_000_000_000
"""Nanoseconds of a day."""

FIRST_DAY = 10_959 * DAY
"""2000-01-03 00:00, a Monday: the day on which every trace begins in the common calendar."""

_WHOLE_USER = 2**64 - 1  # the part number of a user who is renamed without being split
_MOST_PARTS = 100_000  # parts are named in five digits, so that text order is part order


def prepare(
    data: Data,
    *,
    tz: Any = None,
    days: int = 20,
    min_days: int | None = None,
    gap: Any = "4h",
    seed: int | str | None = None,
    keep_user: bool = False,
    user: Name = ...,
    time: Name = ...,
) -> Data:
    """Prepare a data set as the paper does: `collapse_empty_days`, `first_days`, `split_gaps`.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        One trace for each physical user.
    tz : str or tzinfo, optional
        Zone in which days begin; by default that of the times, UTC for naive ones.
    days : int
        Days of data to keep of each user.
    min_days : int, optional
        Users with fewer days of data are left out.
    gap : str, timedelta or number of seconds
        Where no record comes for this long, a trace is cut.
    seed : int or str, optional
        Makes the new names repeatable, and guessable; by default they come from the operating system's randomness.
    keep_user : bool
        Name the parts after their user, for analysis; never publish those.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        The kind that came, with a virtual user for each part and zone-free times of the common calendar. What was
        left out is said in one warning.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is wrong or the data cannot be read.

    References
    ----------
    Paper, section V-A, "Datasets".

    Examples
    --------
    >>> import promesse_geo as pg
    >>> parts = pg.prepare(pg.make_city(users=2, days=2), tz="Europe/Paris")
    >>> parts["time"].min().isoformat()[:10]
    '2000-01-03'
    """
    days, least = _checked_days(days, min_days, owner="prepare")
    nanoseconds, seed, keep_user = _checked_gap(gap, seed, keep_user, owner="prepare")
    local = None if tz is None else check.zone(tz, name="tz", owner="prepare")

    def work(traces: Traces) -> Traces:
        collapsed = _collapse(traces, local)
        kept, remarks = _keep_first(collapsed, days, least, None)
        _report(remarks)
        return _split(kept, nanoseconds, seed=seed, keep_user=keep_user)

    return through_doors(data, work, user=user, time=time, selects=True)


def collapse_empty_days(data: Data, *, tz: Any = None, user: Name = ..., time: Name = ...) -> Data:
    """Make every trace begin on the same day, and leave no day empty.

    The i-th day on which a user has data becomes the day that begins at 2000-01-03 00:00 + i · 24 h. The time of day
    is the time since local midnight; on days of 23 or 25 hours, when clocks change, it is stretched to 24. The result
    has no zone: its days are nobody's calendar days, and a zone would shift and stretch them again.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        One trace for each physical user.
    tz : str or tzinfo, optional
        Zone in which days begin; by default that of the times. Naive times are taken as UTC: without `tz` they stand.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        The kind that came, with naive times in nanoseconds.

    References
    ----------
    Paper, section V-A: "make all traces begin the same day and removed entire days with no data".

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.collapse_empty_days(pg.make_city(users=2, days=2), tz="Europe/Paris")["time"].dt.tz is None
    True
    """
    local = None if tz is None else check.zone(tz, name="tz", owner="collapse_empty_days")
    return through_doors(data, lambda traces: _collapse(traces, local), user=user, time=time, selects=True)


def first_days(
    data: Data, *, days: int = 20, min_days: int | None = None, tz: Any = None, user: Name = ..., time: Name = ...
) -> Data:
    """Keep each user's first days that hold data.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        One trace for each physical user.
    days : int
        Days of data to keep of each user.
    min_days : int, optional
        Users with fewer days of data, before the cut, are left out. The paper does not say so, but its Table I is
        reached with 21.
    tz : str or tzinfo, optional
        Zone in which days begin; by default that of the times, UTC for naive ones.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        The kind that came; one warning says what was left out.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, as_traces=True)
    >>> pg.first_days(city, days=20).records == city.records
    True
    """
    number, least = _checked_days(days, min_days, owner="first_days")
    local = None if tz is None else check.zone(tz, name="tz", owner="first_days")

    def work(traces: Traces) -> Traces:
        kept, remarks = _keep_first(traces, number, least, local)
        _report(remarks)
        return kept

    return through_doors(data, work, user=user, time=time, selects=True)


def split_gaps(
    data: Data,
    *,
    gap: Any = "4h",
    seed: int | str | None = None,
    keep_user: bool = False,
    user: Name = ...,
    time: Name = ...,
) -> Data:
    """Cut traces where two consecutive records are at least `gap` apart, and give each part a virtual user.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    gap : str, timedelta or number of seconds
        Shortest pause that cuts.
    seed : int or str, optional
        Makes the new names repeatable, and guessable; by default they come from the operating system's randomness.
    keep_user : bool
        Name the parts `<user>-00000`, `<user>-00001`, … for analysis; never publish those.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        The kind that came, in the order of the new names, so that neighbours are not parts of one user.

    Raises
    ------
    ValueError
        If two parts get the same name, or a user falls into more than 100,000 parts with `keep_user=True`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.split_gaps(pg.make_city(users=1, days=2), keep_user=True)["user"].iloc[0]
    'user-000-00000'
    """
    nanoseconds, seed, keep_user = _checked_gap(gap, seed, keep_user, owner="split_gaps")
    return through_doors(
        data,
        lambda traces: _split(traces, nanoseconds, seed=seed, keep_user=keep_user),
        user=user,
        time=time,
        selects=True,
    )


def pseudonymize(data: Data, *, seed: int | str | None = None, user: Name = ..., time: Name = ...) -> Data:
    """Give every user a new name of 16 hex digits, without splitting.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    seed : int or str, optional
        Makes the names repeatable, and guessable; by default they come from the operating system's randomness.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        The kind that came, in the order of the new names.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> len(pg.pseudonymize(pg.make_city(users=1, days=1))["user"].iloc[0])
    16
    """
    seed = check.seed(seed, owner="pseudonymize")

    def work(traces: Traces) -> Traces:
        names = _virtual_names(traces.users.tolist(), [_WHOLE_USER] * len(traces), seed=seed)
        return _renamed(traces, traces.offsets, names)

    return through_doors(data, work, user=user, time=time, selects=True)


def drop_jumps(data: Data, *, max_speed: float = 50.0, user: Name = ..., time: Name = ...) -> Data:
    """Remove records that nobody could have reached from the last kept one.

    A record goes when it is farther than `max_speed` times the time passed. When more than half of a trace would go,
    its first record is the outlier: it goes, and the rest starts again. Not in the paper; use it first, on true times.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    max_speed : float
        Metres per second.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        The kind that came; one warning says how many records were removed.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, as_traces=True)
    >>> pg.drop_jumps(city, max_speed=1000).records == city.records
    True
    """
    speed = check.number(max_speed, name="max_speed", owner="drop_jumps", unit="metres per second")

    def work(traces: Traces) -> Traces:
        space = traces.space
        keep = jumps.reachable(traces.points, traces.times, traces.offsets, space.curvature, space.scale, speed)
        removed = len(keep) - int(keep.sum())
        if removed:
            check.tell(
                f"drop_jumps removed {removed:,} of {check.counted(len(keep), 'record')} "
                f"that need more than {speed:g} m/s."
            )
        return traces.select(keep)

    return through_doors(data, work, user=user, time=time, selects=True)


def describe(data: Data, *, user: Name = ..., time: Name = ...) -> pd.Series:
    """Describe a data set by the figures of the paper's Table I.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    pandas.Series
        records, traces, mean_duration, longest_duration and sampling_interval, which is the sum of durations over
        the number of steps; a timedelta is missing (NaT) where there is nothing to divide by.

    References
    ----------
    Paper, Table I.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> int(pg.describe(pg.make_city(users=2, days=1))["traces"])
    2
    """
    traces = as_traces(data, user=user, time=time)
    durations = traces.times[traces.offsets[1:] - 1] - traces.times[traces.offsets[:-1]]
    steps = traces.records - len(traces)
    total = sum(durations.tolist())
    return pd.Series(
        {
            "records": traces.records,
            "traces": len(traces),
            "mean_duration": _as_timedelta(total, len(traces)),
            "longest_duration": pd.Timedelta(int(durations.max()), unit="ns") if len(traces) else pd.NaT,
            "sampling_interval": _as_timedelta(total, steps),
        },
        name="value",
        dtype=object,
    )


def _as_timedelta(total: int, count: int) -> Any:
    return pd.Timedelta(round(total / count / 1e6), unit="ms") if count else pd.NaT


def _checked_days(days: Any, min_days: Any, *, owner: str) -> tuple[int, int]:
    number = check.whole(days, name="days", owner=owner)
    return number, 1 if min_days is None else check.whole(min_days, name="min_days", owner=owner)


def _checked_gap(gap: Any, seed: Any, keep_user: Any, *, owner: str) -> tuple[int, int | str | None, bool]:
    return (
        check.duration(gap, name="gap", owner=owner),
        check.seed(seed, owner=owner),
        check.flag(keep_user, name="keep_user", owner=owner),
    )


def _report(remarks: list[str]) -> None:
    if remarks:
        check.tell("first_days left out " + " and ".join(remarks) + ".")


def _day_starts(traces: Traces, zone: tzinfo | None) -> np.ndarray:
    """Instants (ns) at which the local days of the data begin, with one more before and after.

    A day begins at the last instant before which an earlier date was read: clocks that go back over midnight
    leave days whole.
    """
    zone = zone or traces.names.zone or UTC
    first, last = (int(time) // DAY for time in (traces.times.min(), traces.times.max()))
    dates = pd.DatetimeIndex(np.arange(first - 2, last + 4).astype("M8[D]").astype("M8[s]"))

    def midnight(*, first_pass: bool) -> pd.DatetimeIndex:
        ambiguous = np.full(len(dates), first_pass)
        return dates.tz_localize(zone, ambiguous=ambiguous, nonexistent="shift_forward").tz_convert("UTC")

    early, late = midnight(first_pass=True), midnight(first_pass=False)
    before = (late - pd.Timedelta(1, unit="s")).tz_convert(zone).tz_localize(None)
    return np.where(before < dates, late.asi8, early.asi8) * 1_000_000_000


def _local_days(traces: Traces, zone: tzinfo | None) -> tuple[np.ndarray, np.ndarray]:
    """Each record's local day and time of day (ns of a day of 24 h)."""
    if traces.records == 0:
        return traces.times, traces.times
    starts = _day_starts(traces, zone)
    days = np.searchsorted(starts, traces.times, side="right") - 1
    elapsed = traces.times - starts[days]
    lengths = np.diff(starts)
    for day in np.flatnonzero((lengths != DAY) & (lengths > 0)):
        length = int(lengths[day])
        common = math.gcd(length, DAY)  # the product with DAY itself would exceed 64 bits
        here = days == day
        elapsed[here] = elapsed[here] * (DAY // common) // (length // common)
    return days, elapsed


def _day_ranks(traces: Traces, days: np.ndarray) -> np.ndarray:
    """Number from 0 the days on which each trace holds data."""
    begins = np.ones(traces.records, np.int64)
    begins[1:] = days[1:] != days[:-1]
    firsts = traces.offsets[:-1]
    begins[firsts] = 1
    ranks = np.cumsum(begins)
    return ranks - np.repeat(ranks[firsts], traces.counts)


def _collapse(traces: Traces, zone: tzinfo | None) -> Traces:
    days, elapsed = _local_days(traces, zone)
    times = FIRST_DAY + _day_ranks(traces, days) * DAY + elapsed
    return replace(traces, times=times, names=replace(traces.names, zone=None, unit="ns"))


def _keep_first(traces: Traces, days: int, least: int, zone: tzinfo | None) -> tuple[Traces, list[str]]:
    ranks = _day_ranks(traces, _local_days(traces, zone)[0])
    short = ranks[traces.offsets[1:] - 1] + 1 < least
    late = (ranks >= days) & np.repeat(~short, traces.counts)
    remarks = []
    if late.any():
        remarks.append(f"{check.counted(int(late.sum()), 'record')} after the first {check.counted(days, 'day')}")
    if short.any():
        users = check.counted(int(short.sum()), "user")
        lost = check.counted(int(traces.counts[short].sum()), "record")
        remarks.append(f"{users} ({lost}) with fewer than {check.counted(least, 'day')} of data")
    return traces.select((ranks < days) & np.repeat(~short, traces.counts)), remarks


def _split(traces: Traces, gap: int, *, seed: int | str | None, keep_user: bool) -> Traces:
    cut = np.ones(traces.records, bool)
    cut[1:] = np.diff(traces.times) >= gap
    cut[traces.offsets[:-1]] = True
    starts = np.flatnonzero(cut)
    owners = np.searchsorted(traces.offsets, starts, side="right") - 1
    parts = np.arange(len(starts)) - np.searchsorted(owners, owners)
    users = [traces.users[owner] for owner in owners]
    if keep_user:
        if len(parts) and parts.max() >= _MOST_PARTS:
            raise ValueError(
                f"A user falls into more than {_MOST_PARTS:,} parts, which five digits cannot number. "
                "Take a longer gap, or keep_user=False."
            )
        names = [f"{user}-{part:05d}" for user, part in zip(users, parts, strict=True)]
    else:
        names = _virtual_names(users, parts.tolist(), seed=seed)
    return _renamed(traces, np.append(starts, traces.records), names)


def _virtual_names(users: Sequence[Any], parts: Sequence[int], *, seed: int | str | None) -> list[str]:
    """First 16 hex digits of the keyed BLAKE2b of (part number, user bytes)."""
    if seed is None:
        key = secrets.token_bytes(32)
    else:
        key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"names").digest()

    def name(user: Any, part: int) -> str:
        message = part.to_bytes(8, "little") + str(user).encode()
        return hashlib.blake2b(message, key=key, digest_size=64).hexdigest()[:16]

    names = [name(user, part) for user, part in zip(users, parts, strict=True)]
    if len(set(names)) < len(names):
        raise ValueError("Two virtual users got the same name by chance. Run again with another seed.")
    return names


def _renamed(traces: Traces, offsets: np.ndarray, names: list[str]) -> Traces:
    """Put runs of records under new names, in the order of these."""
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    counts = np.diff(offsets)[order]
    target = as_offsets(counts)
    rows = np.arange(target[-1]) + np.repeat(offsets[:-1][order] - target[:-1], counts)
    labels = traces.names if traces.names.user is not None else replace(traces.names, user="user")
    return replace(
        traces,
        points=traces.points[rows],
        times=traces.times[rows],
        positions=traces.positions[rows],
        offsets=target,
        users=pd.Index([names[i] for i in order], dtype=str),
        names=labels,
    )
