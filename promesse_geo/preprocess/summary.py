"""Summary of a data set, as in the paper's Table I."""

from typing import Any

import pandas as pd

from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, as_traces


def describe(data: Data, *, user: Name = ..., time: Name = ...) -> pd.Series:
    """Summarize a data set as in the paper's Table I.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    pandas.Series
        records, traces, mean_duration, longest_duration and sampling_interval, which is the sum of durations divided
        by the number of steps; NaT if there is no trace or step.

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
