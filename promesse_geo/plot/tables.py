"""Tables in plain text, for the terminal."""

import textwrap

import numpy as np
import pandas as pd
import pyarrow as pa

from promesse_geo.preprocess import describe
from promesse_geo.traces.traces import Traces

_LONGEST_NAME = 60
_LEAST_ROOM = 40  # characters for a reason, however narrow the terminal


def description(traces: Traces) -> str:
    """Return the figures of the paper's Table I as lines of text."""
    figures = describe(traces)
    rows = {
        "records": f"{figures['records']:,}",
        "traces": f"{figures['traces']:,}",
        "mean duration": span(figures["mean_duration"]),
        "longest duration": span(figures["longest_duration"]),
        "sampling interval": span(figures["sampling_interval"]),
        "distances": f"on the {traces.space.name}",
        "CRS": traces.space.crs.name,
        "times": zone_name(traces) or "without zone",
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


def zone_name(traces: Traces) -> str:
    """Return the name by which everybody knows the zone of the times; empty where there is none."""
    if traces.names.zone is None:
        return ""
    try:
        return str(pa.lib.tzinfo_to_string(traces.names.zone))
    except (pa.ArrowException, TypeError, ValueError, LookupError):  # no name but, perhaps, the path of a file
        return "UTC"


def shortened(name: object) -> str:
    """Return a name as it is, or its beginning where it would take too much room on a map or in a figure."""
    text = str(name)
    return text if len(text) <= _LONGEST_NAME else text[:_LONGEST_NAME] + "…"


def comparison(original: Traces, protected: Traces) -> str:
    """Return what changed between two data sets as lines of text."""
    rows = [("", "original", "protected")]
    rows += zip(("records", "traces", "spacing", "interval"), _figures(original), _figures(protected), strict=True)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def findings(table: pd.DataFrame, *, width: int | None = None) -> str:
    """Return the findings of the check before publishing as lines of text, whose reasons are wrapped to a width."""
    columns = [table[name].tolist() for name in ("verdict", "test", "reason")]
    first, second = (max(map(len, column)) for column in columns[:2])
    lines = []
    for verdict, test, reason in zip(*columns, strict=True):
        start = f"{verdict:<{first}}  {test:<{second}}  "
        room = len(reason) + 1 if width is None else max(width - len(start), _LEAST_ROOM)
        lines += textwrap.wrap(
            start + reason,
            len(start) + room,
            subsequent_indent=" " * len(start),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def measures(table: pd.DataFrame) -> str:
    """Return what metrics found as lines of text."""
    rows = [(f"{value:,.2f} {unit}", metric) for metric, value, unit in table.itertuples(index=False)]
    width = max(len(figure) for figure, _ in rows)
    return "\n".join(f"{figure:>{width}}  {metric}" for figure, metric in rows)


def span(duration: pd.Timedelta) -> str:
    """Return a duration in the unit that reads best."""
    if pd.isna(duration):
        return "none"
    seconds = duration.total_seconds()
    for size, unit in ((172_800, "days"), (5_400, "h"), (90, "min")):
        if seconds >= size:
            return f"{seconds / {'days': 86_400, 'h': 3_600, 'min': 60}[unit]:.2f} {unit}"
    return f"{seconds:.1f} s"


def _figures(traces: Traces) -> tuple[str, str, str, str]:
    distances, intervals = steps(traces)
    return (
        f"{traces.records:,}",
        f"{len(traces):,}",
        _range([f"{metres:,.0f} m" for metres in _spread(distances)]),
        _range([span(pd.Timedelta(int(step), unit="ns")) for step in _spread(intervals)]),
    )


def steps(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """Distance (m) and time (ns) between consecutive records of a trace."""
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
