"""Publish trajectories in one step: clean, prepare, protect, check, rename and write."""

import json
import os
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo.audit import FAILED, REVIEW, Finding, check_published, worst_first
from promesse_geo.evaluation import measure
from promesse_geo.io.writers import check_output, write
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import counted, invalid, warn
from promesse_geo.metrics import AdaptivePoiRetrieval, Compression, PoiRetrieval, Residue, SpatialError
from promesse_geo.plot.page import page, paragraphs, preformatted
from promesse_geo.plot.tables import findings, measures, span
from promesse_geo.preprocess.calendar import collapse, keep_first_days
from promesse_geo.preprocess.gaps import split
from promesse_geo.preprocess.jumps import Steps, is_zero
from promesse_geo.preprocess.problems import FAST, FASTEST, are_axes_swapped, find_problems
from promesse_geo.preprocess.pseudonyms import pseudonymize
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces, freeze
from promesse_geo.validation import check_choice, check_duration, check_flag, check_integer, check_number, check_zone

CALENDARS = {
    "common": "all days, moved to a common calendar",
    "paper": "the first 20 days of each user, moved to a common calendar",
    "keep-dates": "true dates, split at gaps only",
}
"""What happens to days, by the name of the choice."""

_PAPER_DAYS = 20
_METRICS = (
    PoiRetrieval(),
    AdaptivePoiRetrieval(kind="geo-indistinguishability"),
    Residue(),
    SpatialError(),
    Compression(),
)
_LABELS = [metric.label for metric in _METRICS]
_DATES = (
    "The published times are true dates: holidays, events and other data of the same days can be linked with them. "
    "calendar='common' (--calendar common) hides them."
)
_ONCE = (
    "Publish the same people only once. A second publication, with another ε or of other days, can be joined with "
    "this one: traces at ε = 100 m and ε = 200 m were matched in 149 of 150 cases, whatever their names."
)
_SWAPPED = "the data lie far from their CRS or time zone, and near it with x and y swapped"
_NO_PROOF = "Passing all tests does not prove anonymity."


@dataclass(frozen=True, eq=False, repr=False)
class Publication:
    """What `publish` did.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The published data, under new names; of the type of the input.
    audit : pandas.DataFrame
        The checks before publication: test, verdict and reason.
    counts : pandas.Series
        Numbers of records, traces, and of what was odd and what was dropped.
    measures : pandas.DataFrame
        What attacks still find, and the utility: metric, value and unit.
    path : pathlib.Path or None
        The file; None if nothing was written: with `dry_run`, or if a test failed.
    notes : tuple of str
        Choices with their consequences.
    summary : tuple of str
        The counts in words, a line each.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=5, days=3)
    >>> result = city.promesse.publish(None, pg.Promesse(200), tz="Europe/Paris", dry_run=True)
    >>> int(result.counts["users"]), result.path
    (5, None)
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

    def __repr__(self) -> str:
        """Return counts, measures, audit and notes as lines of text."""
        return self.to_text()

    def to_text(self, *, width: int | None = 100) -> str:
        """Return counts, audit, measures and notes as lines of text.

        Parameters
        ----------
        width : int or None
            Characters to which reasons are wrapped; None does not wrap.
        """
        texts = [f"{title}\n{text}" for title, text in self._sections(width).items()]
        notes = [note if width is None else textwrap.fill(note, width) for note in self.notes]
        return "\n\n".join([*texts, *notes, self._outcome])

    def to_html(self) -> str:
        """Return the text as one self-contained HTML page."""
        return page("Report of a publication", f"<h1>Report of a publication</h1>{self._repr_html_()}")

    def to_json(self) -> str:
        """Return path, outcome, counts, measures, audit and notes as JSON."""
        content = {
            "path": None if self.path is None else str(self.path),
            "passed": self.passed,
            "counts": self.counts.to_dict(),
            "measures": json.loads(self.measures.to_json(orient="records")),  # NaN becomes null
            "audit": self.audit.to_dict(orient="records"),
            "notes": list(self.notes),
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    def _sections(self, width: int | None) -> dict[str, str]:
        return {
            "Data": "\n".join(self.summary),
            "Audit": findings(self.audit, width=width),
            "What attacks still find (F-scores: 0 % is best), and utility": measures(
                self.measures.assign(metric=_LABELS)
            ),
        }

    def _repr_html_(self) -> str:
        return paragraphs([self._outcome]) + preformatted(self._sections(100)) + paragraphs(self.notes)

    @property
    def _outcome(self) -> str:
        failed, reviews = (int((self.audit["verdict"] == verdict).sum()) for verdict in (FAILED, REVIEW))
        if failed:
            return f"No: {counted(failed, 'test')} failed. NOT written."
        records, traces = self.counts["published_records"], self.counts["published_traces"]
        size = f"{counted(records, 'record')} of {counted(traces, 'trace')}"
        judged = f"{counted(reviews, 'test')} to review: only you can judge whether to publish." if reviews else ""
        done = (
            "Not written (dry run)"
            if self.path is None
            else f"Written: {os.fsencode(self.path.name).decode(errors='replace')}"
        )
        return f"{'' if reviews else 'Yes: '}{'No' if reviews else 'no'} test failed. {judged} {done}, {size}.".replace(
            "  ", " "
        )


def publish(
    data: gpd.GeoDataFrame | Traces,
    path: str | os.PathLike[str] | None,
    mechanism: Mechanism,
    *,
    tz: Any = None,
    calendar: str = "common",
    gap: Any = "4h",
    min_days: int | None = None,
    max_speed: float | None = FASTEST,
    keep_zero: bool = False,
    dry_run: bool = False,
    force: bool = False,
    user: Name = ...,
    time: Name = ...,
) -> Publication:
    """Make a file to publish from raw trajectories: clean, prepare, protect, check, rename and write.

    Fixes at exactly (0, 0) and jumps are dropped and counted. Days are moved to a common calendar, traces are split at
    gaps, and the mechanism is applied. The protected data is checked against the original under the names of its parts,
    and renamed afterwards. It is written only if no test fails.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The raw data, with one trace for each person; it is not changed.
    path : path or None
        The file to write; the extension sets the format, see `write`. None is possible with `dry_run`.
    mechanism : Mechanism
        The protection, such as `pg.Promesse(200)`, without a seed.
    tz : str or tzinfo, optional
        Time zone in which days begin; by default that of the times. Naive times are local times already.
    calendar : {"common", "paper", "keep-dates"}
        "common" moves all days to a common calendar (see `collapse_empty_days`), "paper" keeps the first 20 days of
        each user as well, "keep-dates" keeps true dates and splits traces at gaps only.
    gap : str, timedelta or number of seconds
        Shortest time between records at which a trace is split, before days are moved to the common calendar.
    min_days : int, optional
        Drop users with fewer days of data.
    max_speed : float or None
        Greatest speed in metres per second; records that cannot be reached at it are dropped (see `drop_jumps`). None
        keeps all. Steps over 50 m/s are counted, since trains and planes are as fast.
    keep_zero : bool
        Keep fixes at exactly longitude 0 and latitude 0.
    dry_run : bool
        Do all but write.
    force : bool
        Whether to overwrite an existing file.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    Publication
        With `data`, `audit`, `counts`, `measures` and `path`; it prints as a report.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is invalid, the mechanism has a seed, the data cannot be read, or nothing of it is left.
    OSError
        If the file cannot be written, or exists and `force` is False.

    Notes
    -----
    Publish the same people only once: two publications can be joined, even with different ε and new names.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=5, days=3)
    >>> result = pg.publish(city, None, pg.Promesse(200), tz="Europe/Paris", dry_run=True)
    >>> result.passed
    True
    """
    choices = _Choices.check(tz, calendar, gap, min_days, max_speed, keep_zero)
    _check_mechanism(mechanism)
    dry_run = check_flag(dry_run, name="dry_run", owner="publish")
    target = _check_path(path, dry_run=dry_run, force=force)
    raw = as_traces(data, user=user, time=time, warns=True)
    _check_description(mechanism, raw)
    cleaned, counts = _clean(raw, choices)
    parts, of_parts, remarks = _split(cleaned, choices)
    dropped = [*_dropped(counts), *remarks]
    _check_rest(parts, dropped, "no record is left after cleaning and preparation")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        protected = mechanism.protect(parts)
    _check_rest(protected, dropped, f"no trace could be protected. {mechanism.remedy}".strip())
    checked = check_published(parts, protected, mechanism=mechanism)
    rows = [Finding(*row) for row in checked.itertuples(index=False, name=None)]
    audit = worst_first([*_findings(counts), *rows])
    table = measure(parts, protected, _METRICS)
    published = pseudonymize(protected)
    counts |= of_parts | {
        "dropped_traces": len(parts) - len(protected),
        "published_users": _count_published_users(raw, parts, protected),
        "published_traces": len(published),
        "published_records": published.records,
    }
    written = None if (audit["verdict"] == FAILED).any() else target
    if written is not None:
        write(published, written, mechanism=mechanism, force=force)
    messages = [f"publish dropped {', '.join(dropped)}."] if dropped else []
    messages += [str(warning.message) for warning in caught]
    if written is not target:
        messages.append("Nothing was written, because a test failed: see the audit.")
    if messages:
        warn(" ".join(messages))
    notes = (*((_DATES,) if calendar == "keep-dates" else ()), _ONCE, _NO_PROOF)
    result = published if isinstance(data, Traces) else published.to_frame()
    series = pd.Series(counts, name="count", dtype=np.int64)
    return Publication(result, audit, series, table, written, notes, tuple(_describe(counts, choices, mechanism)))


@dataclass(frozen=True)
class _Choices:
    """The checked parameters of cleaning and preparation."""

    zone: tzinfo | None
    calendar: str
    gap: int
    min_days: int | None
    max_speed: float | None
    keep_zero: bool

    @classmethod
    def check(cls, tz: Any, calendar: Any, gap: Any, min_days: Any, max_speed: Any, keep_zero: Any) -> "_Choices":
        """Check the parameters; raise TypeError or ValueError."""
        owner, speed = "publish", None
        if max_speed is not None:
            speed = check_number(max_speed, name="max_speed", owner=owner, unit="metres per second")
        return cls(
            None if tz is None else check_zone(tz, name="tz", owner=owner),
            check_choice(calendar, name="calendar", owner=owner, options=list(CALENDARS)),
            check_duration(gap, name="gap", owner=owner),
            None if min_days is None else check_integer(min_days, name="min_days", owner=owner),
            speed,
            check_flag(keep_zero, name="keep_zero", owner=owner),
        )


def _check_mechanism(mechanism: Any) -> None:
    if not isinstance(mechanism, Mechanism):
        raise TypeError(invalid("mechanism", "publish", "a mechanism such as pg.Promesse(200)", mechanism))
    if getattr(mechanism, "seed", None) is not None:
        raise ValueError("The mechanism has a seed. Anyone who guesses it can undo the protection. Omit it to publish.")


def _check_description(mechanism: Mechanism, raw: Traces) -> None:
    """Raise ValueError if a parameter of a mechanism, which files name, is the key of a user."""
    users = {str(user) for user in raw.users}
    if not users.isdisjoint(_texts(mechanism.description()["parameters"])):
        raise ValueError("A parameter of the mechanism is the key of a user, and files name the parameters. Omit it.")


def _texts(content: Any) -> Iterator[str]:
    """Yield all texts in content of JSON, keys included."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        yield from (text for pair in content.items() for part in pair for text in _texts(part))
    elif isinstance(content, list | tuple):
        yield from (text for part in content for text in _texts(part))


def _check_path(path: Any, *, dry_run: bool, force: Any) -> Path | None:
    if path is None:
        if not dry_run:
            raise TypeError(invalid("path", "publish", "a path, or None with dry_run=True", path))
        return None
    check_output(path, force=check_flag(force, name="force", owner="publish") or dry_run)
    return None if dry_run else Path(path)


def _clean(raw: Traces, choices: _Choices) -> tuple[Traces, dict[str, int]]:
    """Drop fixes at (0, 0) and jumps; return the rest, and counts of what was found and dropped."""
    odd, zero = find_problems(raw), is_zero(raw)
    located = raw.select(~zero) if zero.any() else raw
    found, speed = find_problems(located), choices.max_speed
    keep = np.ones(located.records, bool)
    if speed is not None and found.jumps is not None:  # on the common calendar days are closer than they were
        keep = Steps.survey(located, speed).longest_chains(speed)
    kept = zero & choices.keep_zero
    kept[~zero] = keep
    reached = raw.select(kept)
    rest = find_problems(reached)
    return reached, {
        "records": raw.records,
        "users": len(raw),
        "single_record_users": odd.single_record_users,
        "zero_fixes": odd.zero_fixes,
        "dropped_zero_fixes": 0 if choices.keep_zero else int(zero.sum()),
        "jumps": found.jumps or 0,
        "dropped_jumps": int((~keep).sum()),
        "fast_steps": rest.fast_steps or 0,
        "equal_times": odd.equal_times,
        "breaks": rest.breaks,
        "swapped_axes": are_axes_swapped(raw, zone=choices.zone),
    }


def _split(traces: Traces, choices: _Choices) -> tuple[Traces, dict[str, int], list[str]]:
    """Choose days and split Traces at gaps; return the parts, counts, and what was dropped in words."""
    zone = choices.zone if traces.time_format.zone is not None else None  # naive times are local times
    days = _PAPER_DAYS if choices.calendar == "paper" else max(traces.records, 1)
    dated, gaps = _break_at_gaps(traces, choices.gap)
    if choices.calendar != "keep-dates":
        dated, zone = collapse(dated, zone), None
    kept, remarks = keep_first_days(dated, days, choices.min_days or 1, zone)
    parts = split(kept, choices.gap, seed=None, keep_user=False)
    return (
        parts,
        {
            "dropped_users": len(traces) - len(kept),
            "dropped_other_days": traces.records - kept.records,
            "gaps": int(np.isin(gaps, kept.positions).sum()),
            "traces": len(parts),
        },
        remarks,
    )


def _break_at_gaps(traces: Traces, gap: int) -> tuple[Traces, np.ndarray]:
    """Return Traces with breaks at gaps of true time, which the common calendar may close, and positions after gaps."""
    after = np.flatnonzero(np.diff(traces.times) >= gap) + 1
    after = np.setdiff1d(after, traces.segments)
    breaks = np.union1d(traces.breaks, after)
    return replace(traces, breaks=freeze(breaks)), traces.positions[after]


def _findings(counts: Mapping[str, int]) -> list[Finding]:
    """Return what of the raw data somebody has to decide."""
    findings = []
    if fast := counts["fast_steps"]:
        steps = (
            f"{counted(fast, 'step')} over {FAST:g} m/s {'is' if fast == 1 else 'are'} kept, with the path along them"
        )
        reason = f"{steps}: if nobody took a plane or a fast train, pass max_speed={FAST:g} (--max-speed {FAST:g})"
        findings.append(Finding("no fast steps in the raw data", REVIEW, reason))
    if counts["swapped_axes"]:
        findings.append(Finding("x and y are not swapped", REVIEW, _SWAPPED))
    return findings


def _count_published_users(raw: Traces, parts: Traces, protected: Traces) -> int:
    """Number of users of whom anything is published."""
    chosen = parts.users.get_indexer(protected.users)
    firsts = parts.positions[parts.offsets[:-1][chosen[chosen >= 0]]]
    owners = np.empty(raw.positions.max() + 1, np.int64)
    owners[raw.positions] = raw.trace_numbers
    return len(np.unique(owners[firsts]))


def _check_rest(rest: Traces, dropped: Sequence[str], reason: str) -> None:
    """Raise ValueError if no record is left, and say what was dropped before."""
    if not rest.records:
        before = f" Dropped before: {', '.join(dropped)}." if dropped else ""
        raise ValueError(f"Nothing is left to publish: {reason}{'' if reason.endswith('.') else '.'}{before}")


def _dropped(counts: Mapping[str, int]) -> list[str]:
    """Return in words how many records were dropped by cleaning."""
    words = {
        "dropped_zero_fixes": ("fix at exactly (0, 0)", "fixes at exactly (0, 0)"),
        "dropped_jumps": ("record that implies too high a speed", "records that imply too high a speed"),
    }
    return [counted(counts[name], *nouns) for name, nouns in words.items() if counts[name]]


def _describe(counts: Mapping[str, int], choices: _Choices, mechanism: Mechanism) -> list[str]:
    """Return the counts as lines of text: what was read, what was odd, and what was done with it."""
    zeros, speed = "dropped" if counts["dropped_zero_fixes"] else "kept", choices.max_speed
    slower_too = speed is not None and speed < FASTEST and counts["dropped_jumps"] > counts["jumps"]
    jumps = "dropped" if counts["dropped_jumps"] else "kept; max_speed=350 (--max-speed 350) drops them"
    if speed is not None and speed > FASTEST and counts["dropped_jumps"]:
        jumps = f"{counts['dropped_jumps']:,} over {speed:g} m/s dropped"
    slower = f"kept; if nobody travelled as fast, pass max_speed={FAST:g} (--max-speed {FAST:g})"
    gap = span(pd.Timedelta(choices.gap, unit="ns"))
    rows = [
        ("records", "record", f"of {counted(counts['users'], 'user')}", ""),
        ("zero_fixes", "fix", "at exactly (0, 0)", zeros),
        ("jumps", "record", f"that would need over {FASTEST:g} m/s", jumps),
        ("dropped_jumps", "record", f"in all that would need over {speed or 0:g} m/s", "dropped" * slower_too),
        ("fast_steps", "other step", f"over {FAST:g} m/s", slower),
        ("equal_times", "record", "at the time of the record before", "kept"),
        ("single_record_users", "user", "with a single record", ""),
        ("breaks", "break", "of the recorder", "traces are split there"),
        ("gaps", "gap", f"of {gap} or more", "traces are split there"),
        ("dropped_users", "user", "with too few days", "dropped"),
        ("dropped_other_days", "record", "of other days or such users", "dropped"),
        ("traces", "trace", "after splitting", ""),
        ("dropped_traces", "trace", "that cannot be protected", "dropped"),
        ("published_users", "user", "in the data to publish", ""),
        ("published_traces", "trace", "to publish", ""),
        ("published_records", "record", "to publish", ""),
    ]
    width = max(len(f"{counts[name]:,}") for name, *_ in rows)
    lines = [
        f"{counts[name]:>{width},}  {_noun(noun, counts[name])} {rest}{f' ({done})' if done else ''}"
        for name, noun, rest, done in rows
        if counts[name] and not (name == "dropped_jumps" and not done)
    ]
    zone = f", days of {choices.zone}" if choices.zone is not None else ""
    return [f"Protected with {mechanism!r}, calendar {choices.calendar!r}{zone}", *lines]


def _noun(singular: str, count: int) -> str:
    """Return a noun in the form for a count."""
    return singular if count == 1 else f"{singular}es" if singular.endswith("x") else f"{singular}s"
