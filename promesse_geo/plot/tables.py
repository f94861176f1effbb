"""Tables as plain text for the terminal, and values as short text."""

import textwrap
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from promesse_geo.preprocess import describe
from promesse_geo.traces.traces import Traces

_LONGEST_NAME = 60
_NARROWEST = 40  # characters for a reason, even in a narrower terminal


def description(traces: Traces) -> str:
    """Return the summary of the paper's Table I as lines of text."""
    summary = describe(traces)
    rows = {
        "records": f"{summary['records']:,}",
        "traces": f"{summary['traces']:,}",
        "mean duration": span(summary["mean_duration"]),
        "longest duration": span(summary["longest_duration"]),
        "sampling interval": span(summary["sampling_interval"]),
        "distances": f"on the {traces.space.name}",
        "CRS": traces.space.crs.name,
        "times": zone_name(traces) or "without zone",
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


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


def findings(table: pd.DataFrame, *, width: int | None = None) -> str:
    """Return the findings of the checks before publication as lines of text, with reasons wrapped to a width."""
    columns = [table[name].tolist() for name in ("verdict", "test", "reason")]
    first, second = (max(map(len, column)) for column in columns[:2])
    lines = []
    for verdict, test, reason in zip(*columns, strict=True):
        start = f"{verdict:<{first}}  {test:<{second}}  "
        available = len(reason) + 1 if width is None else max(width - len(start), _NARROWEST)
        style: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        lines += textwrap.wrap(start + reason, len(start) + available, subsequent_indent=" " * len(start), **style)
    return "\n".join(lines)


def measures(table: pd.DataFrame) -> str:
    """Return the results of metrics as lines of text."""
    columns = (table[name].tolist() for name in ("metric", "value", "unit"))
    rows = [(f"{value:,.2f} {unit}", metric) for metric, value, unit in zip(*columns, strict=True)]
    width = max(len(value) for value, _ in rows)
    return "\n".join(f"{value:>{width}}  {metric}" for value, metric in rows)


def span(duration: pd.Timedelta) -> str:
    """Return a duration in seconds, minutes, hours or days, whichever is easiest to read."""
    if pd.isna(duration):
        return "none"
    seconds = duration.total_seconds()
    for least, unit, size in ((172_800, "days", 86_400), (5_400, "h", 3_600), (90, "min", 60)):
        if seconds >= least:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds:.1f} s"


def _cells(traces: Traces) -> tuple[str, str, str, str]:
    distances, intervals = steps(traces)
    return (
        f"{traces.records:,}",
        f"{len(traces):,}",
        _range([f"{metres:,.0f} m" for metres in _spread(distances)]),
        _range([span(pd.Timedelta(int(step), unit="ns")) for step in _spread(intervals)]),
    )


def steps(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """Return distance (m) and time (ns) between consecutive records of the same trace, each of shape (steps,)."""
    inside = np.diff(traces.trace_numbers) == 0
    chords = np.linalg.norm(np.diff(traces.points, axis=0)[inside], axis=1)
    return traces.space.metres(chords), np.diff(traces.times)[inside]


def _spread(values: np.ndarray) -> list[float]:
    return [values.min(), np.median(values), values.max()] if len(values) else []


def _range(texts: list[str]) -> str:
    if not texts:
        return "none"
    least, middle, most = texts
    return f"always {least}" if least == most else f"{least} to {most}, median {middle}"
