"""Whom and when to draw."""

import re
from collections.abc import Iterable
from datetime import date
from functools import cache
from typing import Any, Literal
from zoneinfo import available_timezones

import numpy as np
import pandas as pd

from promesse_geo.messages import counted, invalid
from promesse_geo.plot.tables import zone_name
from promesse_geo.traces.traces import Traces

_TIME = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}(:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?)?)?)?")
_OFFSET = re.compile(r"[+-][0-9]{2}:[0-9]{2}")
_ZONED = re.compile(rf"{_TIME.pattern}( ?(Z|[+-][0-9]{{2}}:?[0-9]{{2}}))?")


def chosen_traces(
    original: Traces, protected: Traces | None, *, users: Any, period: Any, owner: str
) -> tuple[Traces, Traces | None]:
    """Return the traces of some users within a period, of both data sets."""
    both = [original, *([] if protected is None else [protected])]
    if users is not None:
        wanted = _wanted(users, original, owner=owner)
        keep = [np.isin([str(user) for user in traces.users.tolist()], wanted) for traces in both]
        both = [traces.select(np.repeat(kept, traces.counts)) for traces, kept in zip(both, keep, strict=True)]
    if period is not None:
        windows = _windows(period, original, owner=owner)
        within = [[(first <= each.times) & (each.times <= last) for first, last in windows] for each in both]
        both = [traces.select(np.logical_or.reduce(each)) for traces, each in zip(both, within, strict=True)]
    return both[0], None if protected is None else both[1]


def map_zone(traces: Traces) -> str:
    """Return the zone in which a map tells times: theirs, or UTC where no browser knows it; empty without zone."""
    zone = zone_name(traces)
    return zone if not zone or _OFFSET.fullmatch(zone) or zone in _known_zones() else "UTC"


@cache
def _known_zones() -> set[str]:
    return available_timezones() - {"localtime", "posixrules"}  # which name a file of this machine


def _wanted(users: Any, original: Traces, *, owner: str) -> list[str]:
    if isinstance(users, (str, int, np.integer)) or not isinstance(users, Iterable):
        users = [users]
    wanted = [str(user) for user in users]
    missing = len(set(wanted) - {str(user) for user in original.users.tolist()})
    if missing:
        raise ValueError(
            f"The 'users' parameter of {owner} must name users of the original data. "
            f"It has {missing:,} of the {counted(len(set(wanted)), 'user')} given not."
        )
    return wanted


def _windows(period: Any, original: Traces, *, owner: str) -> list[tuple[int, int]]:
    """First and last nanosecond of a period, the second time too if clocks show it again."""
    try:
        if isinstance(period, str):
            if not _TIME.fullmatch(period):
                raise ValueError
            whole = pd.Period(period)
            first, last = whole.start_time, (whole + 1).start_time.as_unit("ns") - pd.Timedelta(1, "ns")
            return [
                (_moment(first, original, again=again), _moment(last, original, again=again, back=True))
                for again in (False, True)
            ]
        begin, end = (_moment(_end(end), original) for end in period)
        if end < begin:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        rule = (
            "a day such as '2008-05-18' (or its month, hour or minute) or two times, the first not after the second, "
            "with a zone only where the data has one"
        )
        raise ValueError(invalid("period", owner, rule, period)) from None
    return [(begin, end)]


def _end(time: Any) -> pd.Timestamp:
    """One of two times; no number, and text only as ISO 8601 has it, for pandas guesses at all else."""
    if (isinstance(time, str) and _ZONED.fullmatch(time)) or isinstance(time, (date, np.datetime64)):
        return pd.Timestamp(time)
    raise ValueError


def _moment(time: pd.Timestamp, traces: Traces, *, again: bool = False, back: bool = False) -> int:
    """A time in nanoseconds, read in the zone of the traces where it has none.

    Of two times that clocks show it is the first, or that when they show it `again`; in place of one that they skip it
    is the next, or the one `back` before them.
    """
    if pd.isna(time) or (traces.names.zone is None and time.tz is not None):
        raise ValueError
    if traces.names.zone is not None and time.tz is None:
        skipped: Literal["shift_backward", "shift_forward"] = "shift_backward" if back else "shift_forward"
        time = time.tz_localize(traces.names.zone, ambiguous=not again, nonexistent=skipped)
    return int(time.as_unit("ns").value)
