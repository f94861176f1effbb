"""Preprocessing, as in the paper's "Datasets": a common calendar, the first days, parts between gaps."""

from typing import Any

import numpy as np
import pandas as pd

from promesse_geo import check, threads
from promesse_geo.columns import Name
from promesse_geo.days import checked_days, collapse, keep_first, report
from promesse_geo.kernels import jumps
from promesse_geo.pseudonyms import renamed, virtual_names
from promesse_geo.traces import Data, Traces, as_traces, through_doors

WHOLE_USER = 2**64 - 1
"""The part number of a user who is renamed without being split."""

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
    days, least = checked_days(days, min_days, owner="prepare")
    nanoseconds, seed, keep_user = _checked_gap(gap, seed, keep_user, owner="prepare")
    local = None if tz is None else check.zone(tz, name="tz", owner="prepare")

    def work(traces: Traces) -> Traces:
        collapsed = collapse(traces, local)
        kept, remarks = keep_first(collapsed, days, least, None)
        report(remarks)
        return _split(kept, nanoseconds, seed=seed, keep_user=keep_user)

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
        names = virtual_names(traces.users.tolist(), [WHOLE_USER] * len(traces), seed=seed)
        return renamed(traces, traces.offsets, names)

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
        way = speed / space.scale
        keep = np.empty(traces.records, bool)
        threads.run(
            lambda first, last: jumps.reachable(
                traces.points, traces.times, traces.offsets, space.curvature, way, first, last, keep
            ),
            threads.fair(traces.counts),
        )
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


def _checked_gap(gap: Any, seed: Any, keep_user: Any, *, owner: str) -> tuple[int, int | str | None, bool]:
    return (
        check.duration(gap, name="gap", owner=owner),
        check.seed(seed, owner=owner),
        check.flag(keep_user, name="keep_user", owner=owner),
    )


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
                "Take a longer gap, or new names: no keep_user (--keep-users)."
            )
        names = [f"{user}-{part:05d}" for user, part in zip(users, parts, strict=True)]
    else:
        names = virtual_names(users, parts.tolist(), seed=seed)
    return renamed(traces, np.append(starts, traces.records), names)
