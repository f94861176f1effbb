"""Measure folders of Parquet in bounded memory."""

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from promesse_geo.bulk.files import count_workers
from promesse_geo.bulk.folders import NothingDone
from promesse_geo.bulk.job import Job
from promesse_geo.bulk.memory import check_disk, check_memory, chunk_size, count_buckets, stopped
from promesse_geo.bulk.plan import Sources, find_sources, find_space
from promesse_geo.bulk.run import Run
from promesse_geo.bulk.runs import Spill
from promesse_geo.bulk.tasks import read_bucket
from promesse_geo.evaluation.arguments import check_metrics, name_of
from promesse_geo.evaluation.runs import PAPER, Measures
from promesse_geo.io.sources import BY_PLACE
from promesse_geo.io.table_columns import IfFits, ReadOptions
from promesse_geo.messages import invalid, warn
from promesse_geo.metrics import Metric
from promesse_geo.metrics.base import Parts
from promesse_geo.metrics.pairing import exchanged
from promesse_geo.traces.columns import Name
from promesse_geo.traces.crs import read_crs
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_errors, check_path

_OWNER = "measure_parquet"


def measure_parquet(
    original: Any,
    protected: Any,
    metrics: Sequence[Metric] = PAPER,
    *,
    memory: str | int = "2GB",
    executor: Executor | None = None,
    scratch: str | os.PathLike[str] | None = None,
    user: Name = ...,
    time: Name = ...,
    lon: str | None = None,
    lat: str | None = None,
    crs: Any = None,
    segment: Name = ...,
    space: str | Space | None = None,
    errors: str = "raise",
) -> pd.DataFrame:
    """Measure the privacy and the utility of a protected folder of Parquet files, in bounded memory.

    Parameters
    ----------
    original, protected : path, glob pattern, or several of these
        Parquet or GeoParquet; of a folder, all files at any depth. The protected data must have the users of the
        original: protect with `keep_users=True`, measure, and rename the users before you publish.
    metrics : sequence of Metric
        Metrics that compare the records of each user, and `RangeQueryDistortion`; by default the metrics of the paper.
    memory, executor, scratch, errors
        As for `protect_parquet`; true data go to the system's folder for temporary files by default.
    user, time, lon, lat, crs, segment : column names and CRS
        As for `read_file`; by default detected. User and time are columns of both; the others count for the files that
        have such a column or need the CRS. Names of files or folders can be the users of the original, and of protected
        data that have no users.
    space : {"sphere", "plane"}, Sphere, Plane or None
        Where distances are measured; None chooses by the CRS of the original and, if it is projected, by its data.

    Returns
    -------
    pandas.DataFrame
        One row per metric: `metric`, `value`, `unit`, and `reason` if any value is undefined, as of `measure`. The
        values are those of `measure`; the last digits of means over records may differ.

    Raises
    ------
    TypeError, ValueError, KeyError, OSError, MemoryError
        As for `protect_parquet`, and if a metric compares users with each other.

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> parts = pg.make_city(users=3, days=2).promesse.prepare(tz="Europe/Paris", keep_user=True)
    >>> pg.write(parts, folder / "city.parquet")
    >>> report = pg.protect_parquet(folder / "city.parquet", folder / "safe", pg.Promesse(200), keep_users=True)
    >>> pg.measure_parquet(folder / "city.parquet", folder / "safe", [pg.Compression()]).unit.tolist()
    ['%']
    """
    checked = check_divisible(metrics, owner=_OWNER)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(invalid("executor", _OWNER, "an executor with 'submit', or None", executor))
    amount, workers = check_memory(memory, owner=_OWNER), count_workers(executor)
    drops = check_errors(errors, owner=_OWNER) == "drop"
    beside = None if scratch is None else check_path(scratch, name="scratch", owner=_OWNER)
    if beside is not None and not beside.is_dir():
        raise FileNotFoundError(f"'scratch' {str(beside)!r} is no folder. Create it first.")
    known = None if crs is None else read_crs(crs).to_wkt()
    lon, lat, known = (IfFits(each) if isinstance(each, str) else each for each in (lon, lat, known))
    segment = IfFits(segment) if isinstance(segment, str) else segment
    options = ReadOptions(user, time, lon, lat, known, None, lenient=False, segment=segment, several_files=True)
    with tempfile.TemporaryDirectory(dir=beside, prefix="promesse-") as folder:  # only its owner can enter it
        plans = list(_plan(Path(folder), (original, protected), options, amount, workers, space=space, drops=drops))
        warn(exchanged(*(job.protection for job, _ in plans)))
        runs = [
            Run(
                job, NothingDone(), executor, workers, amount, drops, found.records, skipped=found.skipped, owner=_OWNER
            )
            for job, found in plans
        ]
        try:
            parts = _ParquetParts([(run, *run.scatter()[1:]) for run in runs])
            return measure_parts(parts, checked)
        except OSError as error:
            raise stopped(error, [Path(folder)], Path(folder), sum(run.records for run in runs)) from error


def check_divisible(metrics: Any, *, owner: str) -> list[Metric]:
    """Return metrics as a list; raise TypeError or ValueError if one is none, or compares users with each other."""
    checked = check_metrics(metrics, owner=owner)
    for metric in checked:
        if type(metric).measure_parts is Metric.measure_parts and not metric.is_per_user:
            raise ValueError(
                f"{type(metric).__name__} compares users with each other, so it needs all data in memory. Use "
                "pg.measure, on some of the data if all do not fit."
            )
    return checked


def measure_parts(parts: Parts, metrics: Sequence[Metric]) -> pd.DataFrame:
    """Return a table with the value of each metric for data that are divided by user."""
    values = [float(metric.measure_parts(parts)) for metric in metrics]
    labels = list(map(name_of, metrics))
    table = Measures({"metric": labels, "value": values, "unit": [metric.unit for metric in metrics]})
    if table["value"].isna().any():
        original, protected = np.sum(parts.map(_count_records), axis=0)
        reasons = [metric.why_undefined_of(original, protected) for metric in metrics]
        table["reason"] = np.where(table["value"].isna(), reasons, "")
    return table


def _count_records(original: Traces, protected: Traces) -> tuple[int, int]:
    return original.records, protected.records


def _plan(
    folder: Path, both: Sequence[Any], options: ReadOptions, memory: int, workers: int, *, space: Any, drops: bool
) -> Iterator[tuple[Job, Sources]]:
    """Yield the jobs of the original and of the protected data, with the same buckets, and their files."""
    chunk = chunk_size(memory, workers=workers)
    found = [
        find_sources(both[0], options, chunk=chunk, owner=_OWNER, drops=drops),
        _find_protected(both[1], options, chunk=chunk, drops=drops),
    ]
    _check_used(options)
    records = [sources.records for sources in found]
    check_disk(folder, sum(records))
    buckets, key = count_buckets(sum(records), memory, workers=workers), secrets.token_bytes(32)
    spaces = find_space(found[0], space), find_space(found[1], None)
    for name, sources, each in zip(("original", "protected"), found, spaces, strict=True):
        (folder / name).mkdir(mode=0o700)
        choices = {"scratch": folder / name, "chunk": chunk, "buckets": buckets, "key": key, **sources.choices()}
        yield Job(space=each, **choices), sources


def _find_protected(source: Any, options: ReadOptions, *, chunk: int, drops: bool) -> Sources:
    """Look at protected files; names of files and folders are their users only if they have no users themselves."""
    if isinstance(options.user, str) and options.user in BY_PLACE:
        with suppress(ValueError):  # another fault is one of the second look, too
            detected = options._replace(user=...)
            return find_sources(source, detected, chunk=chunk, owner=_OWNER, drops=drops)
    return find_sources(source, options, chunk=chunk, owner=_OWNER, drops=drops)


def _check_used(options: ReadOptions) -> None:
    """Raise if a column that is specified is in no file, or none needs the CRS."""
    for role in ("segment", "lon", "lat"):
        name = getattr(options, role)
        if isinstance(name, IfFits) and not name.is_used:
            raise KeyError(f"The {role} column {str(name)!r} exists neither in the original nor in the protected data.")
    if isinstance(options.crs, IfFits) and not options.crs.is_used:
        raise ValueError("'crs' is the CRS of neither the original nor the protected data, which need none. Omit it.")


@dataclass(frozen=True)
class _ParquetParts:
    """Buckets of original and protected data; for each of both the run, the spills, and the records of each bucket."""

    both: Sequence[tuple[Run, list[Spill], list[int]]]

    def map(self, work: Callable[..., Any], given: Sequence[Any] = ()) -> list[Any]:
        """Return `work(original, protected, *given)` of each bucket."""
        run = self.both[0][0]
        read = tuple((each.job, spills) for each, spills, _ in self.both)
        sizes = [sum(counts) for counts in zip(*(counts for _, _, counts in self.both), strict=True)]
        calls = {bucket: (read, bucket, work, given) for bucket in range(len(sizes))}
        return run.all("measuring", _measure_bucket, calls, sizes, lambda result: result)


def _measure_bucket(
    job: Job, read: Sequence[tuple[Job, list[Spill]]], bucket: int, work: Callable[..., Any], given: Sequence[Any]
) -> Any:
    """Call a function for the original and the protected traces of a bucket."""
    original, protected = (read_bucket(each, bucket, spills) for each, spills in read)
    return work(original, protected, *given)
