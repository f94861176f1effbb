"""The result of a publication, as text, HTML and JSON."""

import html
import json
import math
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from promesse_geo.audit import FAILED, REVIEW, Finding, judge_ends
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import counted
from promesse_geo.metrics import (
    AdaptivePoiRetrieval,
    Compression,
    EndRetrieval,
    Metric,
    PoiRetrieval,
    Residue,
    SpatialError,
)
from promesse_geo.plot.page import number_table, page, paragraphs, text_table
from promesse_geo.plot.tables import findings, measured_rows, measures, summaries
from promesse_geo.traces.marks import MARKED

METRICS: tuple[Metric, ...] = (
    EndRetrieval(),
    PoiRetrieval(),
    AdaptivePoiRetrieval(kind="geo-indistinguishability"),
    Residue(),
    SpatialError(),
    Compression(),
)
"""What is measured of every publication."""


def with_compression(table: pd.DataFrame, records: int, published: int) -> pd.DataFrame:
    """Return a table of measures whose compression counts all raw records, those that were dropped before, too."""
    value = 100 * published / records if records else float("nan")
    return table.assign(value=table["value"].where(table["metric"] != repr(Compression()), value))


def findings_on_ends(table: pd.DataFrame, mechanism: Mechanism, *, users: int) -> list[Finding]:
    """Return the finding on places at the ends of traces, if any user has one, from a table of measures."""
    row = table[table["metric"] == repr(EndRetrieval())].iloc[0]
    guess = float(row.get("guess", math.nan))
    return judge_ends(float(row["value"]), guess, users=users, protection=mechanism.description())


_READING = ["dropped_reading", "marked_records", "skipped_files", "unread_files"]
"""Counts of records that were dropped, of those that are marked as bad, and of files that were not read."""
_FINDING = ["verdict", "test", "reason"]
_DATA, _CHECKS, _MEASURED = "Data", "Checks before publication", "What attacks still find, and what remains useful"


@dataclass(frozen=True, eq=False, repr=False)
class Publication:
    """What `publish` did.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The published data, under new names; of the type of the input. None for folders, whose data are in `path`.
    audit : pandas.DataFrame
        The checks before publication: test, verdict and reason.
    counts : pandas.Series
        Numbers of records, traces, and of what was odd and what was dropped. If the data were read from files,
        dropped_reading, marked_records, skipped_files and unread_files, too: records that were dropped, those of them
        that a column marks as bad, and files that could not be read, or were not because of their extension.
    measures : pandas.DataFrame
        What attacks still find, and the utility: metric, value and unit.
    path : pathlib.Path or None
        The file or folder; None if nothing was written: with `dry_run`, or if a test failed.
    notes : tuple of str
        Choices with their consequences.
    summary : tuple of str
        The counts in words, a line each.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=3, days=3)
    >>> result = city.promesse.publish(None, pg.Promesse(200), tz="Europe/Paris", dry_run=True)
    >>> int(result.counts["users"]), result.path
    (3, None)
    """

    data: Any
    audit: pd.DataFrame
    counts: pd.Series
    measures: pd.DataFrame
    path: Path | None
    notes: tuple[str, ...]
    summary: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether no test failed."""
        return not (self.audit["verdict"] == FAILED).any()

    def after_reading(self, dropped: Mapping[str, int]) -> "Publication":
        """Return the result with what was dropped, or not read, while the data were read.

        Parameters
        ----------
        dropped : mapping of str to int
            Numbers by reason, as those of `DroppedWarning`.
        """
        by_kind = [
            sum(count for reason, count in dropped.items() if reason.startswith("records")),
            sum(count for reason, count in dropped.items() if reason.startswith(f"records ({MARKED}")),
            dropped.get("files", 0),
            sum(count for reason, count in dropped.items() if reason.startswith("files (")),
        ]
        counts = pd.concat([self.counts, pd.Series(by_kind, _READING, self.counts.dtype)]).rename("count")
        lines = [_in_words(count, reason) for reason, count in dropped.items() if count]
        return replace(self, counts=counts, summary=(self.summary[0], *aligned([*lines, *self.summary[1:]])))

    def written_to(self, path: Path) -> "Publication":
        """Return the result of data that were written to a path."""
        return replace(self, path=path)

    def __repr__(self) -> str:
        """Return counts, measures, audit and notes as lines of text."""
        return self.to_text()

    def to_text(self, *, width: int | None = 100) -> str:
        """Return counts, audit, measures and notes as lines of text.

        Parameters
        ----------
        width : int or None
            Characters to which texts are wrapped; None does not wrap.
        """
        protection, *counts = self.summary
        sections = {
            _DATA: "\n".join([_filled(protection, width), *counts]),
            _CHECKS: findings(self.audit, width=width),
            _MEASURED: measures(self.measures, self._metrics),
        }
        texts = [f"{title}\n{text}" for title, text in sections.items()]
        return "\n\n".join([*texts, *(_filled(text, width) for text in (*self.notes, self._outcome))])

    def to_html(self) -> str:
        """Return the text as one self-contained HTML page."""
        return page("Report of a publication", f"<h1>Report of a publication</h1>{self._repr_html_()}")

    def to_json(self) -> str:
        """Return path, outcome, counts, measures, audit and notes as JSON; what is not known is null."""
        measured = self.measures.set_index("metric").reindex(list(map(repr, METRICS))).reset_index()
        units = [metric.unit for metric in METRICS]
        content = {
            "path": None if self.path is None else str(self.path),
            "passed": self.passed,
            "counts": dict.fromkeys(_READING) | self.counts.to_dict(),
            "measures": json.loads(measured.assign(unit=units).to_json(orient="records")),  # NaN becomes null
            "audit": self.audit.to_dict(orient="records"),
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    def _repr_html_(self) -> str:
        protection, *counts = self.summary
        judged = self.audit[self.audit["verdict"].isin([FAILED, REVIEW])]
        rows = judged[_FINDING].values.tolist()
        parts = [
            paragraphs([self._outcome]),
            _headed(_DATA, [paragraphs([protection]), number_table(map(_split, counts))]),
            _headed(_CHECKS, [text_table(_FINDING, rows) if rows else "", paragraphs(summaries(self.audit))]),
            _headed(_MEASURED, [number_table(measured_rows(self.measures, self._metrics))]),
            _headed("Before you publish", [paragraphs(self.notes)]),
        ]
        return "\n".join(parts)

    @property
    def _metrics(self) -> list[Metric]:
        """The metrics that were measured, which are not all for folders."""
        return [metric for metric in METRICS if repr(metric) in set(self.measures["metric"])]

    @property
    def _outcome(self) -> str:
        failed, reviews = (int((self.audit["verdict"] == verdict).sum()) for verdict in (FAILED, REVIEW))
        if failed:
            return f"{counted(failed, 'test')} failed, so nothing was written."
        records, traces = self.counts["published_records"], self.counts["published_traces"]
        size = f"{counted(records, 'record')} of {counted(traces, 'trace')}"
        judged = f" {counted(reviews, 'test')} to review: only you can decide whether to publish." if reviews else ""
        done = (
            f"Not written (dry run): {size}."
            if self.path is None
            else f"Written: {os.fsencode(self.path.name).decode(errors='replace')}, {size}."
        )
        return f"No test failed.{judged} {done}"


def _in_words(count: int, reason: str) -> str:
    """Return how many records were dropped or how many files were not read, for a reason."""
    plural, _, why = reason.partition(" ")
    outcome = {"records": "dropped while reading", "archives": "read in part"}.get(plural, "not read")
    return f"{counted(count, plural.removesuffix('s'), plural)} {f'{why} ' * bool(why)}{outcome}"


def _filled(text: str, width: int | None) -> str:
    return text if width is None else textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _headed(title: str, parts: Iterable[str]) -> str:
    return "\n".join([f"<h2>{html.escape(title)}</h2>", *filter(None, parts)])


def aligned(lines: Sequence[str]) -> list[str]:
    """Return lines that begin with a count, with the counts aligned to the right.

    Examples
    --------
    >>> aligned(["1,200 records", "7  users"])
    ['1,200  records', '    7  users']
    """
    rows = [_split(line) for line in lines]
    width = max((len(count) for count, _ in rows), default=0)
    return [f"{count:>{width}}  {text}" for count, text in rows]


def _split(line: str) -> tuple[str, str]:
    """Return the count at the start of a line, and the rest."""
    count, _, text = line.strip().partition(" ")
    return count, text.strip()
