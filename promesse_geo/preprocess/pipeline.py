"""The preprocessing of the paper: common calendar, first days, split at gaps."""

from dataclasses import replace
from datetime import UTC
from typing import Any

from promesse_geo.messages import CountedWarning, Remark, collected_warnings, remarks_of, warn
from promesse_geo.preprocess.calendar import check_days, collapse, keep_first_days
from promesse_geo.preprocess.gaps import check_gap, split
from promesse_geo.preprocess.jumps import check_max_speed, drop_jumps, drop_zero
from promesse_geo.preprocess.problems import Jumps, find_problems
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, Traces, map_traces
from promesse_geo.traces.values import TimeFormat
from promesse_geo.validation import check_flag, check_zone


def prepare(
    data: Data,
    *,
    tz: Any = None,
    days: int = 20,
    min_days: int | None = None,
    gap: Any = "4h",
    max_speed: float | None = None,
    keep_zero: bool = True,
    seed: int | str | None = None,
    keep_user: bool = False,
    keep_zone: bool = False,
    user: Name = ...,
    time: Name = ...,
    segment: Name = ...,
) -> Data:
    """Apply the paper's preprocessing: `collapse_empty_days`, `first_days`, `split_gaps`.

    New names of parts do not make them anonymous: parts of one user can be linked by where one ends and the next begins
    (`Linkage`: 14.5 % of the parts of Cabspotting, 0.3 % by guessing), by the place where most of them begin or end
    (`EndRetrieval`), and by the cells that they visit (`HeatMapReidentification`: 44.6 % of the taxis, 0.2 % by
    guessing).

    Records that no traveller can reach (350 m/s) and fixes at longitude 0 and latitude 0 are counted, and by default
    kept, as in the paper: pass `max_speed=350` and `keep_zero=False` to drop them first. `publish` drops them.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        One trace for each person.
    tz : str or tzinfo, optional
        Time zone in which days begin; by default that of the times, UTC for naive ones.
    days : int
        Number of days with data to keep of each user.
    min_days : int, optional
        Drop users with fewer days of data.
    gap : str, timedelta or number of seconds
        Shortest time between records at which a trace is split.
    max_speed : float, optional
        First drop records that cannot be reached at this speed in metres per second (see `drop_jumps`).
    keep_zero : bool
        Whether to keep fixes at exactly longitude 0 and latitude 0; with False, drop them before all else (see
        `drop_zero`). The command line drops them unless you pass `--keep-zero`.
    seed : int or str, optional
        Makes the new names repeatable, but also guessable; by default they are random.
    keep_user : bool
        Name the parts after their user, for analysis. Do not publish such names.
    keep_zone : bool
        Return the times with the zone UTC instead of naive ones, for libraries that need a zone. The clock shows the
        same local times of the common calendar.
    user, time, segment : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        Of the type of `data`, with a virtual user for each part and naive times of the common calendar, or with
        `keep_zone` times in UTC. One warning counts what was dropped, jumps and fixes at (0, 0). A frame has these and
        other counts of what was odd in `data` in `attrs["promesse"]`.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is invalid or the data cannot be read.

    Notes
    -----
    As in the paper, gaps are those of the common calendar, which closes the gap between a record before midnight and
    the next one after midnight of a later day. `publish` splits there too.

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
    days, least = check_days(days, min_days, owner="prepare")
    check_flag(keep_zone, name="keep_zone", owner="prepare")
    nanoseconds, seed, keep_user = check_gap(gap, seed, keep_user, owner="prepare")
    speed = None if max_speed is None else check_max_speed(max_speed, owner="prepare")
    check_flag(keep_zero, name="keep_zero", owner="prepare")
    local = None if tz is None else check_zone(tz, name="tz", owner="prepare")

    counts = {}

    def work(traces: Traces) -> Traces:
        with collected_warnings() as caught:
            traces = traces if keep_zero else drop_zero(traces)
            traces = traces if speed is None else drop_jumps(traces, speed)
        before: list[Remark] = [remark for warning in caught for remark in remarks_of(warning)]
        found = find_problems(traces)
        counts.update({name: count for name, count in vars(found).items() if count is not None})
        collapsed = collapse(traces, local)
        kept, dropped = keep_first_days(collapsed, days, least, None)
        warn(CountedWarning([*before, Jumps(**vars(found)), dropped]))
        parts = split(kept, nanoseconds, seed=seed, keep_user=keep_user)
        return replace(parts, time_format=TimeFormat(UTC)) if keep_zone else parts

    result = map_traces(data, work, user=user, time=time, segment=segment, selects=True)
    if not isinstance(result, Traces):
        result.attrs["promesse"] = result.attrs.get("promesse", {}) | counts
    return result
