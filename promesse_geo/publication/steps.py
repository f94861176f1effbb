"""Publish trajectories in one step: clean, prepare, protect, check, rename and write."""

import os
from collections.abc import Sequence
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo.audit import FAILED, check_published, replace_findings
from promesse_geo.evaluation import measure
from promesse_geo.io.writers import write
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import warn
from promesse_geo.preprocess.calendar import uses_common_calendar
from promesse_geo.preprocess.problems import FASTEST
from promesse_geo.preprocess.pseudonyms import pseudonymize
from promesse_geo.publication.choices import Choices, check_description, check_mechanism, check_target
from promesse_geo.publication.cleaning import named_by_owner, split_by_owner
from promesse_geo.publication.counts import counts_in_words, findings_of
from promesse_geo.publication.notes import already_protected, findings_on_input, notes_on
from promesse_geo.publication.result import METRICS, Publication, findings_on_ends, with_compression
from promesse_geo.publication.work import Work, check_rest, protect_raw, unkept, unprotected
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_flag

_DATES = (
    "The published times are true dates: holidays, events and other data of the same days can be linked with them. "
    "calendar='common' (--calendar common) hides them."
)
_ONCE = (
    "Publish the same people only once. A second publication, with another ε or of other days, can be joined with "
    "this one: traces at ε = 100 m and ε = 200 m were matched in 149 of 150 cases, whatever their names."
)
_NO_PROOF = "Passing all tests does not prove anonymity."


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

    Fixes at exactly (0, 0) and jumps are dropped and counted. Privacy zones, if the mechanism has some, are applied.
    Days are moved to a common calendar, traces are split at gaps, and the rest of the mechanism is applied. The
    protected data is checked against the original under the names of its parts, and renamed afterwards. It is written
    only if no test fails.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The raw data, with one trace for each person; it is not changed.
    path : path or None
        The file to write; the extension sets the format, see `write`. None is possible with `dry_run`.
    mechanism : Mechanism
        The protection, without a seed: `pg.Promesse(200)` for the paper's, `pg.recommended("people")` or
        `pg.recommended("fleet")` for what we recommend. `pg.Chain([pg.PrivacyZones(seed=secret), …])` applies the zones
        to the raw data, before all else, and again to what is published. Only zones may have a seed, a secret of at
        least 32 characters, to be used again for the same people: without it each publication displaces zones anew,
        and several of them average the displacements out.
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
    >>> city = pg.make_city(users=3, days=3)
    >>> result = pg.publish(city, None, pg.Promesse(200), tz="Europe/Paris", dry_run=True)
    >>> result.passed
    True
    """
    choices = Choices.check(tz, calendar, gap, min_days, max_speed, keep_zero)
    check_mechanism(mechanism)
    dry_run = check_flag(dry_run, name="dry_run", owner="publish")
    target = check_target(path, dry_run=dry_run, force=force)
    raw = as_traces(data, user=user, time=time, warns=True)
    check_description(mechanism, raw)
    work = protect_raw(raw, choices, mechanism)
    counts, dropped, parts, protected = work.counts, work.dropped, work.parts, work.protected
    check_rest(parts.records, dropped, unkept(mechanism, counts))
    before = already_protected(raw.protection)
    check_rest(protected.records, dropped, f"{unprotected(mechanism, counts)} {before}".strip())
    checked = check_published(parts, protected, mechanism=mechanism)
    table = _measured(raw, work, choices)
    others = findings_of(counts, mechanism, are_dated=not uses_common_calendar(raw))
    others += findings_on_input(raw.protection)
    audit = replace_findings(checked, [*others, *findings_on_ends(table, mechanism, users=len(raw))])
    published = pseudonymize(protected)
    counts |= {"published_traces": len(published), "published_records": published.records}
    written = None if (audit["verdict"] == FAILED).any() else target
    if written is not None:
        write(published, written, force=force)
    warn_dropped(dropped, [before, *work.remarks], failed=written is not target)
    result = published if isinstance(data, Traces) else published.to_frame()
    series = pd.Series(counts, name="count", dtype=np.int64)
    summary = counts_in_words(counts, choices, mechanism, zone=raw.time_format.zone)
    return Publication(result, audit, series, table, written, notes_of(mechanism, choices), tuple(summary))


def _measured(raw: Traces, work: Work, choices: Choices) -> pd.DataFrame:
    """Return what attacks find and what remains useful.

    The ends that attackers look for are those of the traces before zones were removed, and published records are
    compared with all records of the raw data.
    """
    parts, protected = named_by_owner(raw, work.parts, work.protected)
    if protected is work.protected:  # nobody knows whose the traces are
        table = measure(parts, protected, METRICS)
    else:
        ends = measure(split_by_owner(raw, work.cleaned, choices, like=parts), protected, METRICS[:1])
        table = pd.concat([ends, measure(parts, protected, METRICS[1:])], ignore_index=True)
    return with_compression(table, raw.records, protected.records)


def notes_of(mechanism: Mechanism, choices: Choices) -> tuple[str, ...]:
    """Return the choices of a publication with their consequences."""
    return (*((_DATES,) if choices.calendar == "keep-dates" else ()), *notes_on(mechanism), _ONCE, _NO_PROOF)


def warn_dropped(dropped: Sequence[str], remarks: Sequence[str], *, failed: bool) -> None:
    """Warn once of what was dropped, of what the mechanism warned of, and that nothing was written."""
    messages = [f"publish dropped {', '.join(dropped)}."] if dropped else []
    messages += filter(None, remarks)
    if failed:
        messages.append("Nothing was written, because a test failed: see the audit.")
    if messages:
        warn(" ".join(messages))
