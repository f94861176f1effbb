"""Tables as plain text for the terminal, and values as short text."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from promesse_geo.evaluation.results import values_in_words
from promesse_geo.mechanisms import WaitForMeReport
from promesse_geo.messages import brief, counted, span
from promesse_geo.metrics import Metric
from promesse_geo.preprocess import describe
from promesse_geo.traces.columns import Names
from promesse_geo.traces.traces import Traces

_LONGEST_NAME = 60
_ODD = {
    "jumps": (
        "jumps",
        "record",
        "reached only at more than 350 m/s, fixes at (0, 0) included; prepare --max-speed 350 drops them",
    ),
    "fast_steps": ("steps above 50 m/s", "step", "planes and fast trains, or errors"),
    "zero_fixes": ("fixes at (0, 0)", "record", "prepare drops them"),
    "breaks": (
        "breaks",
        "break",
        "of the recorder, {long_breaks:,} of them of 4 h or more; prepare splits there, so that each trace becomes one "
        "part more than its breaks and gaps",
    ),
    "gaps": ("gaps", "gap", "of 4 h or more, without breaks; prepare splits there"),
    "equal_times": ("equal times", "record", "with the time of the record before"),
    "single_record_users": ("one-record users", "user", ""),
}
_USERS_ARE_FILES = "the files; if people have several, pass --user folder for a folder of each"
_PASSED, _LEFT_OUT = "passed", "left out"  # verdicts without a row of their own in texts
_NARROWEST = 40  # characters for a reason, even in a narrower terminal


def description(traces: Traces, *, names_columns: bool = False, users_are_files: bool = False) -> str:
    """Return the summary of a data set as lines of text: its size, where and when, and what is odd.

    With `names_columns`, which columns hold user, time and coordinates, and which one has breaks where it changes. With
    `users_are_files`, that each file is a user.
    """
    summary = describe(traces)
    rows = {
        "records": f"{summary['records']:,}",
        "traces": f"{summary['traces']:,}",
        **({"users": _USERS_ARE_FILES} if users_are_files else {}),
        "records per trace": _per_trace(summary),
        "period": _period(summary["first_time"], summary["last_time"]),
        "times": zone_name(traces) or "without zone",
        **_sides(traces, summary["bounds"]),
        "mean duration": span(summary["mean_duration"]),
        "longest duration": span(summary["longest_duration"]),
        "sampling interval": f"{span(summary['sampling_interval'])}, median {span(summary['median_interval'])}",
        "distances": f"on the {traces.space.name}",
        "CRS": traces.space.crs.name,
        **({"columns": _columns(traces.names)} if names_columns else {}),
        "": "",
        **{label: _count(summary[key], noun, remark.format(**summary)) for key, (label, noun, remark) in _ODD.items()},
    }
    if summary["swapped_axes"]:
        rows["x and y"] = "likely swapped: far from their CRS or time zone, near it if swapped"
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in rows.items())


def _columns(names: Names) -> str:
    """The columns by role."""
    places = {"geometry": names.geometry} if names.lon is None else {"lon": names.lon, "lat": names.lat}
    time = " and ".join(map(str, names.times)) or names.time
    roles = {"user": names.user, "time": time, **places, "breaks where it changes": names.segment}
    return ", ".join(f"{name} ({role})" for role, name in roles.items() if name is not None)


def _per_trace(summary: pd.Series) -> str:
    if not summary["traces"]:
        return "none"
    least, middle, most = (f"{summary[f'{kind}_records']:,.0f}" for kind in ("fewest", "median", "most"))
    return _range([least, middle, most])


def _period(first: Any, last: Any) -> str:
    return "none" if pd.isna(first) else f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}"


def _sides(traces: Traces, bounds: Any) -> dict[str, str]:
    """The bounding box, in degrees with 4 decimals (11 m) or in whole units."""
    axes, decimals = (("longitude", "latitude"), 4) if traces.space.crs.is_geographic else (("x", "y"), 0)
    if not traces.records:
        return dict.fromkeys(axes, "none")
    return {axis: f"{bounds[i]:.{decimals}f} to {bounds[i + 2]:.{decimals}f}" for i, axis in enumerate(axes)}


def _count(count: Any, noun: str, remark: str) -> str:
    if pd.isna(count):
        return "not counted (days were moved to the common calendar)"
    if not count:
        return "0"
    return f"{counted(count, noun)} ({remark})" if remark else counted(count, noun)


def zone_name(traces: Traces) -> str:
    """Return the IANA name or the offset of the time zone of the data; "UTC" if it has none, "" without a zone."""
    if traces.time_format.zone is None:
        return ""
    try:
        return str(pa.timestamp("ns", tz=traces.time_format.zone).tz)
    except (pa.ArrowException, TypeError, ValueError, LookupError):  # a zone from a file has no name
        return "UTC"


def shortened(name: object) -> str:
    """Return a name, cut to 60 characters for maps and figures."""
    text = str(name)
    return text if len(text) <= _LONGEST_NAME else text[:_LONGEST_NAME] + "…"


def comparison(original: Traces, protected: Traces) -> str:
    """Compare two data sets in lines of text."""
    rows = [("", "original", "protected")]
    rows += zip(("records", "traces", "spacing", "interval"), _cells(original), _cells(protected), strict=True)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def findings(table: pd.DataFrame, *, closing: str = "", width: int | None = None) -> str:
    """Return findings of the checks before publication as lines of text, wrapped to a width, with their summaries."""
    named = table["verdict"].isin([_PASSED, _LEFT_OUT])
    rows = list(table.loc[~named, ["verdict", "test", "reason"]].itertuples(index=False))
    first, second = (max((len(row[column]) for row in rows), default=0) for column in range(2))
    lines = []
    for verdict, test, reason in rows:
        start = f"{verdict:<{first}}  {test:<{second}}  "
        line_width = None if width is None else max(width, len(start) + _NARROWEST)
        lines += _wrapped(start + reason, width=line_width, indent=len(start))
    for text in (*summaries(table), closing):
        lines += _wrapped(text, width=width, indent=2) if text else []
    return "\n".join(lines)


def summaries(table: pd.DataFrame) -> list[str]:
    """Return how many of all tests passed and which, and which were left out and why: a text each, if there are any."""
    passed = table.loc[table["verdict"] == _PASSED, "test"].tolist()
    left_out = table[table["verdict"] == _LEFT_OUT]
    of_all = "" if len(passed) == len(table) else f" of {len(table):,}"
    texts = [f"{len(passed):,}{of_all} {'test' if len(table) == 1 else 'tests'} passed: {', '.join(passed)}"]
    groups = [f"{', '.join(rows['test'])} ({reason})" for reason, rows in left_out.groupby("reason", sort=False)]
    return texts * bool(passed) + [f"{counted(len(left_out), 'test')} left out: {'; '.join(groups)}"] * bool(groups)


def _wrapped(text: str, *, width: int | None, indent: int) -> list[str]:
    if width is None:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def measures(table: pd.DataFrame, metrics: Sequence[Metric]) -> str:
    """Return the results of metrics, a row each, as lines of text: the value, and the metric in words."""
    rows = measured_rows(table, metrics)
    width = max((len(value) for value, _ in rows), default=0)
    return "\n".join(f"{value:>{width}}  {metric}" for value, metric in rows)


def measured_rows(table: pd.DataFrame, metrics: Sequence[Metric]) -> list[tuple[str, str]]:
    """Return value and metric in words for each row of a table of `measure`."""
    return values_in_words(table.assign(metric=list(map(metric_in_words, metrics))))


def metric_in_words(metric: Metric) -> str:
    """Return the label of a metric with its meaning."""
    return f"{metric.label} ({metric.meaning})" if metric.meaning else metric.label


def groups_in_words(report: WaitForMeReport) -> str:
    """Return what Wait for Me did as lines of text."""
    means = report.summary
    shift = means["time_translation_per_record"]
    rows = [
        (f"{report.traces:,}", "traces"),
        (f"{report.clusters:,}", "groups; the pivot of each is published unchanged, with all its stops"),
        (f"{report.trash:,}", f"traces without a group (dropped), with {counted(report.trashed_records, 'record')}"),
        (f"{brief(report.final_radius)} m", "radius with which the groups were formed"),
    ]
    if report.clusters:
        rows += [
            (f"{brief(means['space_translation_per_record'])} m", "mean distance by which a record was moved"),
            (span(pd.Timedelta(shift, unit="s")), "mean time by which a record was moved"),
        ]
    width = max(len(value) for value, _ in rows)
    return "\n".join(f"{value:>{width}}  {text}" for value, text in rows)


def _cells(traces: Traces) -> tuple[str, str, str, str]:
    distances, intervals = steps(traces)
    return (
        f"{traces.records:,}",
        f"{len(traces):,}",
        _range([f"{metres:,.0f} m" for metres in _spread(distances)]),
        _range([span(pd.Timedelta(int(step), unit="ns")) for step in _spread(intervals)]),
    )


def steps(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """Return distance (m) and time (ns) between consecutive records of a segment, each of shape (steps,)."""
    inside = np.ones(max(traces.records - 1, 0), bool)
    inside[traces.segments[1:-1] - 1] = False
    chords = np.linalg.norm(np.diff(traces.points, axis=0)[inside], axis=1)
    return traces.space.metres(chords), np.diff(traces.times)[inside]


def _spread(values: np.ndarray) -> list[float]:
    return [values.min(), np.median(values), values.max()] if len(values) else []


def _range(texts: list[str]) -> str:
    if not texts:
        return "none"
    least, middle, most = texts
    return f"always {least}" if least == most else f"{least} to {most}, median {middle}"
