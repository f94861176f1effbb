"""Publish folders of Parquet in bounded memory."""

import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from promesse_geo.audit import FAILED, LEFT_OUT, Finding, merge_findings, replace_findings, worst_first
from promesse_geo.bulk.files import Resources, check_per_user, check_writing, start_run
from promesse_geo.bulk.folders import publish_folder
from promesse_geo.bulk.run import Run
from promesse_geo.evaluation.arguments import name_of
from promesse_geo.evaluation.runs import Measures
from promesse_geo.io.sources import UNREAD
from promesse_geo.io.table_columns import ReadOptions
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import CountedWarning, added_up, counted
from promesse_geo.preprocess.problems import FASTEST
from promesse_geo.publication.buckets import (
    DIVISIBLE,
    ENDS,
    MAPPED_ONCE,
    PublicationJob,
    Published,
    SavedParts,
    SavedTraces,
    publish_bucket,
)
from promesse_geo.publication.choices import Choices, check_mechanism, split_mechanism
from promesse_geo.publication.counts import counts_in_words, dropped_in_words, findings_of
from promesse_geo.publication.notes import already_protected, findings_on_input
from promesse_geo.publication.result import METRICS, Publication, findings_on_ends, with_compression
from promesse_geo.publication.steps import notes_of, warn_dropped
from promesse_geo.publication.work import check_rest, unkept, unprotected
from promesse_geo.traces.columns import Name
from promesse_geo.traces.space import Space
from promesse_geo.traces.values import Unit
from promesse_geo.validation import check_flag, check_path

_OWNER = "publish_parquet"
_NOT_MEASURED = "Not measured, since it needs all users in memory: {names}. Publish a file of some users to see it."
OTHER_GROUPS = "no records of users of other groups"
"""The test that needs all data in memory."""


def publish_parquet(
    source: Any,
    target: str | os.PathLike[str] | None,
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
    memory: str | int = "2GB",
    executor: Executor | None = None,
    scratch: str | os.PathLike[str] | None = None,
    encoding: str = "WKB",
    user: Name = ...,
    time: Name = ...,
    lon: str | None = None,
    lat: str | None = None,
    crs: Any = None,
    segment: Name = ...,
    space: str | Space | None = None,
    errors: str = "raise",
    time_unit: Unit | None = None,
) -> Publication:
    """Make a folder to publish from a folder of Parquet files, in bounded memory; `publish` for large data.

    The users are divided into groups that fit into memory. Each group is cleaned, prepared, protected, and checked
    against its own original. The folder is written only if no test fails in any group, in the order of new names, so
    that no file tells which traces are of one group.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        Parquet or GeoParquet with raw trajectories, one for each person; of a folder, all files at any depth.
    target : path or None
        The folder to write. None is possible with `dry_run`.
    mechanism : Mechanism
        As for `publish`. Wait for Me compares all traces, and cannot be used.
    tz, calendar, gap, min_days, max_speed, keep_zero, dry_run
        As for `publish`.
    force, memory, executor, scratch, encoding, user, time, lon, lat, crs, segment, space, errors, time_unit
        As for `protect_parquet`. `memory` must hold the largest trace (about 600 bytes a record).

    Returns
    -------
    Publication
        As of `publish`, with data None. Metrics that compare users with each other are NaN. Records are compared with
        those of the same group; that those of other groups are not is a test that is left out.

    Raises
    ------
    TypeError, ValueError, KeyError, OSError, MemoryError
        As for `publish` and `protect_parquet`.

    Notes
    -----
    Publish the same people only once: two publications can be joined, even with different ε and new names.

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> pg.write(pg.make_city(users=3, days=3), folder / "city.parquet")
    >>> result = pg.publish_parquet(folder / "city.parquet", folder / "public", pg.Promesse(200), tz="Europe/Paris")
    >>> result.passed, [file.name for file in (folder / "public").iterdir()]
    (True, ['part-00000.parquet'])
    """
    choices = Choices.check(tz, calendar, gap, min_days, max_speed, keep_zero)
    check_mechanism(mechanism)
    check_per_user(mechanism)
    dry_run = check_flag(dry_run, name="dry_run", owner=_OWNER)
    if not dry_run:
        check_path(target, name="target", owner=_OWNER)
    resources = Resources.check(memory, executor, scratch, owner=_OWNER)
    options = ReadOptions(user, time, lon, lat, crs, None, lenient=False, segment=segment, several_files=True)
    writing = check_writing(encoding, time_unit, owner=_OWNER)
    with ExitStack() as stack:
        if dry_run:
            target = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=scratch, prefix="promesse-"))) / "public"
        started = start_run(
            source,
            target,
            resources,
            options,
            owner=_OWNER,
            force=force,
            space=space,
            errors=errors,
            kind=PublicationJob,
            choices={"choices": choices, "mechanism": mechanism, "keep_users": False, **writing},
        )
        run, final = stack.enter_context(started)
        result, summed = _publish(run, mechanism, choices)
        if result.passed and not dry_run:
            publish_folder(run.job, final, force=force)
            result = result.written_to(final)
    _warn(result, summed, len(split_mechanism(mechanism)[0]), already_protected(run.job.layout.protection))
    return result


def _warn(result: Publication, warnings: Sequence[CountedWarning], zones: int, remark: str) -> None:
    """Warn once of what was dropped, with a remark; the first `zones` summed warnings are those of privacy zones."""
    counts = {str(name): int(count) for name, count in result.counts.items()} | {"zone_records": 0}
    if any(map(str, warnings[zones:])):  # which says how many traces, and why
        counts["dropped_traces"] = 0
    warn_dropped(_dropped(counts), [remark, *map(str, warnings)], failed=not result.passed)


def _publish(run: Run, mechanism: Mechanism, choices: Choices) -> tuple[Publication, list[CountedWarning]]:
    """Do all steps but the last, return the result and warnings; write the parts if no test failed."""
    scattered, gathered = run.protect(publish_bucket, Published.all_of)
    counts = _sum_up(gathered)
    dropped = _dropped(counts)
    check_rest(counts["traces"], dropped, unkept(mechanism, counts))
    noted = run.job.layout.protection
    before = f"{unprotected(mechanism, counts)} {already_protected(noted)}".strip()
    check_rest(counts["published_records"], dropped, before)
    table = with_compression(_measure(run.job.scratch), counts["records"], counts["published_records"])
    ends = findings_on_ends(table, mechanism, users=counts["users"])
    audit = replace_findings(_audit(gathered, counts, mechanism), [*findings_on_input(noted), *ends])
    names = ", ".join(metric.label for metric in METRICS if metric not in (ENDS, *DIVISIBLE))
    notes = (*notes_of(mechanism, choices), _NOT_MEASURED.format(names=names))
    if not (audit["verdict"] == FAILED).any():
        run.write(gathered)
    invalid = Counter[str]()
    for each in scattered:
        for found in (each.invalid, each.marked):
            invalid.update({f"records ({reason})": count for reason, (count, _) in found.items()})
    if run.unread:
        invalid[UNREAD] = run.unread
    if run.skipped:
        invalid["files"] = len(run.skipped)
    series = pd.Series(counts, name="count", dtype=np.int64)
    summary = counts_in_words(counts, choices, mechanism, zone=run.job.zone)
    result = Publication(None, audit, series, table, None, notes, tuple(summary))
    return result.after_reading(invalid), added_up(each.remarks for each in gathered)


def _sum_up(gathered: Sequence[Published]) -> dict[str, int]:
    """Return the sums of all counts; axes are swapped if most records say so."""
    counts = {name: sum(each.counts[name] for each in gathered) for name in gathered[0].counts}
    swapped = sum(each.counts["swapped_axes"] * each.counts["records"] for each in gathered)
    unknown = all(each.counts["unknown_axes"] for each in gathered)
    return counts | {"swapped_axes": int(2 * swapped > counts["records"]), "unknown_axes": int(unknown)}


def _dropped(counts: Mapping[str, int]) -> list[str]:
    """Return in words what was dropped in all groups."""
    others = {
        "zone_records": ("record", "in privacy zones"),
        "dropped_users": ("user", "with too few days"),
        "dropped_other_days": ("record", "of other days or such users"),
        "dropped_traces": ("trace", "that cannot be protected"),
    }
    words = [f"{counted(counts[name], noun)} {rest}" for name, (noun, rest) in others.items() if counts[name]]
    return [*dropped_in_words(counts), *words]


def _audit(gathered: Sequence[Published], counts: Mapping[str, int], mechanism: Mechanism) -> pd.DataFrame:
    """Return the findings of all groups as one table."""
    groups = [each.findings for each in gathered if each.findings]
    table = worst_first(merge_findings(groups))
    others = findings_of(counts, mechanism, are_dated=any(each.is_dated for each in gathered))
    if len(groups) > 1:
        reason = f"each of {len(groups):,} groups of users is compared with its own original only"
        others.append(Finding(OTHER_GROUPS, LEFT_OUT, reason))
    return replace_findings(table, others)


def _measure(folder: Path) -> pd.DataFrame:
    """Return what metrics computed of all groups, without those that need all data."""
    paths = sorted(folder.glob("details-*"))
    details = SavedParts(paths, 0).map(ENDS.detail)
    sizes = np.array([len(detail) for detail in details], float)
    together = pd.concat(details, ignore_index=True)
    guess = np.dot(sizes, [ENDS.guess(detail) if len(detail) else 0.0 for detail in details]) / max(sizes.sum(), 1)
    rows = [(name_of(ENDS), float(ENDS.value(together)), ENDS.unit, guess if sizes.any() else np.nan)]
    traces = SavedTraces(sorted(folder.glob("traces-*")))
    for metric in DIVISIBLE:
        parts = SavedParts(paths, 1 + MAPPED_ONCE.index(metric)) if metric in MAPPED_ONCE else traces
        rows.append((name_of(metric), float(metric.measure_parts(parts)), metric.unit, np.nan))
    table = Measures(rows, columns=["metric", "value", "unit", "guess"])
    if table["value"].isna().any():
        table["reason"] = np.where(table["value"].isna(), [metric.undefined for metric in (ENDS, *DIVISIBLE)], "")
    return table
