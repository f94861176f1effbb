"""Summary of a data set: the paper's Table I, where and when it was recorded, and what is odd in it."""

from typing import Any

import numpy as np
import pandas as pd

from promesse_geo.preprocess.problems import GAP, are_axes_swapped, find_problems, zone_of_times
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, Traces, as_traces


def describe(data: Data, *, user: Name = ..., time: Name = ...) -> pd.Series:
    """Summarize a data set: the paper's Table I, period and bounds, and what is odd.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    pandas.Series
        Of the paper: records, traces, mean_duration, longest_duration and sampling_interval, which is the sum of
        durations divided by the number of steps.

        Besides: first_time and last_time; bounds (least x and y, greatest x and y, in the unit of the CRS);
        fewest_records, median_records and most_records of a trace; median_interval between records.

        Counts of what is odd: jumps (records outside the longest chains at 350 m/s, see `drop_jumps`); fast_steps (over
        50 m/s: maybe planes and trains); zero_fixes (at exactly longitude 0 and latitude 0); breaks of the recorder;
        long_breaks (those of 4 hours or more); gaps (of 4 hours or more elsewhere); equal_times (records with the time
        of the record before); single_record_users; swapped_axes (whether data outside the area of use of its CRS,
        or far from the time zone of its times, would lie inside with x and y swapped).

        What is undefined is NaT or NA: jumps and fast_steps are on the common calendar, where days are closer than
        they were.

    References
    ----------
    Paper, Table I.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> described = pg.describe(pg.make_city(users=2, days=1))
    >>> int(described["traces"]), described["jumps"], described["zero_fixes"]
    (2, 0, 0)
    """
    traces = as_traces(data, user=user, time=time)
    return pd.Series(
        {**_durations(traces), **_extents(traces), **_intervals(traces), **_problems(traces)},
        name="value",
        dtype=object,
    )


def _durations(traces: Traces) -> dict[str, Any]:
    """The paper's Table I."""
    durations = traces.times[traces.offsets[1:] - 1] - traces.times[traces.offsets[:-1]]
    total = sum(durations.tolist())
    return {
        "records": traces.records,
        "traces": len(traces),
        "mean_duration": _as_timedelta(total, len(traces)),
        "longest_duration": pd.Timedelta(int(durations.max()), unit="ns") if len(traces) else pd.NaT,
        "sampling_interval": _as_timedelta(total, traces.records - len(traces)),
    }


def _extents(traces: Traces) -> dict[str, Any]:
    """Period and bounds."""
    if not traces.records:
        return {"first_time": pd.NaT, "last_time": pd.NaT, "bounds": pd.NA}
    zone = traces.time_format.zone
    first, last = (pd.Timestamp(int(time), unit="ns") for time in (traces.times.min(), traces.times.max()))
    if zone is not None:
        first, last = (time.tz_localize("UTC").tz_convert(zone) for time in (first, last))
    return {"first_time": first, "last_time": last, "bounds": traces.space.bounds(traces.points)}


def _intervals(traces: Traces) -> dict[str, Any]:
    """Records per trace, and the median interval."""
    counts, steps = traces.counts, np.delete(np.diff(traces.times), traces.segments[1:-1] - 1)
    return {
        "fewest_records": int(counts.min()) if len(counts) else pd.NA,
        "median_records": float(np.median(counts)) if len(counts) else pd.NA,
        "most_records": int(counts.max()) if len(counts) else pd.NA,
        "median_interval": pd.Timedelta(int(np.median(steps)), unit="ns") if len(steps) else pd.NaT,
    }


def _problems(traces: Traces) -> dict[str, Any]:
    """What is odd."""
    found = find_problems(traces)
    return {
        "jumps": pd.NA if found.jumps is None else found.jumps,
        "fast_steps": pd.NA if found.fast_steps is None else found.fast_steps,
        "zero_fixes": found.zero_fixes,
        "breaks": found.breaks,
        "long_breaks": int((np.diff(traces.times)[traces.breaks - 1] >= GAP).sum()),
        "gaps": found.gaps,
        "equal_times": found.equal_times,
        "single_record_users": found.single_record_users,
        "swapped_axes": are_axes_swapped(traces, zone=zone_of_times(traces)),
    }


def _as_timedelta(total: int, count: int) -> Any:
    return pd.Timedelta(round(total / count / 1e6), unit="ms") if count else pd.NaT
