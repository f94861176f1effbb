"""The next steps of protecting files: protect buckets of users, and write parts.

Each is a pure function of a job and of files, which any executor can call in any process that reaches the folders.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from promesse_geo.bulk.job import Job
from promesse_geo.bulk.memory import check_left, release_freed
from promesse_geo.bulk.results import Gathered, as_values
from promesse_geo.bulk.runs import Runs, Spill, joined_up_to
from promesse_geo.bulk.types import as_array
from promesse_geo.io.table_columns import METADATA_KEY, as_users
from promesse_geo.io.writers.blocks import Block, PointTable
from promesse_geo.io.writers.output import describe
from promesse_geo.io.writers.parquet import write_parquet
from promesse_geo.mechanisms import Chain
from promesse_geo.mechanisms.base import undeclared_breaks
from promesse_geo.messages import Remark, collected_warnings, remarks_of
from promesse_geo.preprocess.calendar import is_common_period
from promesse_geo.preprocess.pipeline import prepare
from promesse_geo.preprocess.problems import Jumps, Unprepared, find_problems
from promesse_geo.preprocess.pseudonyms import count_pseudonyms, pseudonymize
from promesse_geo.traces.owners import name_owners
from promesse_geo.traces.portions import UserPaths
from promesse_geo.traces.records import Records, as_offsets
from promesse_geo.traces.traces import Traces
from promesse_geo.traces.values import TimeFormat, Unit, check_span, read_users

_ROWS = 1_000_000  # records of a row group
_Counts = TypeVar("_Counts", bound=Gathered)


def gather(job: Job, bucket: int, spills: Sequence[Spill]) -> list[Gathered]:
    """Protect the users of a bucket, and write what is left by new names, or as a part."""
    traces = read_bucket(job, bucket, spills)
    portions = divide(job, traces, lambda users: _protected(job, users)[1].records)
    return write_portions(job, bucket, portions, lambda portion, _: _protect(job, portion))


def divide(job: Job, traces: Traces, count: Callable[[Traces], int]) -> Iterator[Traces]:
    """Yield the users of a bucket in portions of which as many records are left as fit into memory.

    Raises
    ------
    MemoryError
        Before the first portion, if what is left of a user does not fit.
    """
    check = partial(check_left, memory=job.memory, workers=job.workers, weight=job.weight)
    return UserPaths.of(traces).divide(max_records=job.max_records, count=count, check=check)


def _protect(job: Job, traces: Traces) -> tuple[Traces, Gathered]:
    """Return what is left of users, under new names if they are renamed, and counts."""
    read = (len(traces), traces.records, int(traces.counts.max(initial=0)))
    names = len(set(name_owners(traces))), count_pseudonyms(traces)
    odd = vars(find_problems(traces, on_calendar=is_common_period(*job.period)))
    with collected_warnings() as collected:
        prepared, protected = _protected(job, traces)
        left = len(protected)
        if job.renames:
            protected = pseudonymize(protected, seed=job.seed)
    counts = count_kept(protected, read=read, prepared=prepared, left=left)
    warned = [remarks_of(warning) for warning in collected]
    remarks = [[as_values(remark, odd if _is_of_all(remark, job) else {}) for remark in each] for each in warned]
    return protected, replace(counts, people=names[0], pseudonyms=names[1], odd=odd, warned=remarks)


def _protected(job: Job, traces: Traces) -> tuple[tuple[int, int], Traces]:
    """Return the traces and records that the mechanism gets, and what is left of them."""
    prepared = _prepared(traces, job.preparation)
    left = prepared if job.mechanism is None else job.mechanism.protect(prepared)
    return (len(prepared), prepared.records), left


def _is_of_all(remark: Remark, job: Job) -> bool:
    """Whether a remark counts what is odd in all records of a bucket, before anything was done with them."""
    preparation = job.preparation
    if preparation is None:
        return isinstance(remark, Unprepared) and not isinstance(job.mechanism, Chain)
    is_cleaned = preparation.get("max_speed") is not None or not preparation.get("keep_zero", True)
    return isinstance(remark, Jumps) and not is_cleaned


def count_kept(protected: Traces, *, read: tuple[int, int, int], prepared: tuple[int, int], left: int) -> Gathered:
    """Return the counts of what is left of users.

    Parameters
    ----------
    protected : Traces
        What is left.
    read : tuple of int
        Users, records, and records of the longest trace of the users.
    prepared : tuple of int
        Traces and records that the mechanism got.
    left : int
        Traces that it left.
    """
    users, records, largest = read
    return Gathered(
        users=users,
        traces=prepared[0],
        records=records,
        prepared_records=prepared[1],
        protected_traces=left,
        protected_records=protected.records,
        largest=largest,
        unit=protected.time_format.unit,
    )


def write_portions(
    job: Job, bucket: int, portions: Iterable[Traces], work: Callable[[Traces, int], tuple[Traces, _Counts]]
) -> list[_Counts]:
    """Write what is left of the portions of a bucket, by new names or as a part, and return the counts of each.

    Parameters
    ----------
    portions : iterable of Traces
        One or more.
    work : callable
        Called with a portion and its number; returns what is left, under new names if the job renames users, and
        counts.
    """
    results: list[_Counts] = []

    def runs() -> Iterator[Runs]:
        for number, portion in enumerate(portions):
            protected, counts = work(portion, number)
            results.append(counts)
            yield _as_runs(job, protected)
            del protected
            release_freed()

    left = runs()
    batches = joined_up_to(min(_ROWS, job.max_records), chain([next(left)], left))
    if job.renames:
        spills = [_spill_names(job, f"names-{bucket:06d}-{each:04d}", batch) for each, batch in enumerate(batches)]
        results[-1] = replace(results[-1], spills=spills)
    else:
        size = write_part(job, bucket, batches, unit=results[0].unit)  # this fills the results
        results[-1] = replace(results[-1], bytes=size)
    return results


def read_bucket(job: Job, bucket: int, spills: Sequence[Spill]) -> Traces:
    """Return the users of a bucket."""
    runs = Runs.join([_no_runs(job), *(spill.read(job.scratch, bucket, bucket + 1) for spill in spills)])
    return Traces.from_records(_as_records(job, runs), space=job.space)


def _no_runs(job: Job) -> Runs:
    """Return no runs, of the kinds of the job."""
    return Runs.none(are_integers=job.has_integers, has_segments=job.layout.names.segment is not None)


def largest_trace(job: Job, bucket: int, spills: Sequence[Spill]) -> int:
    """Return the number of records of the user of a bucket with most records."""
    counts: dict[Any, int] = {}
    for spill in spills:
        for user, count in spill.users_of(job.scratch, bucket).items():
            counts[user] = counts.get(user, 0) + count
    return max(counts.values(), default=0)


def check_preparation(preparation: Mapping[str, Any]) -> None:
    """Raise TypeError or ValueError if a parameter of `prepare` is invalid."""
    nothing = Traces.from_arrays(
        np.empty(0), np.empty(0), times=np.empty(0, np.int64), users=[], counts=np.empty(0, np.int64)
    )
    _prepared(nothing, preparation)


def _as_records(job: Job, runs: Runs) -> Records:
    """Return runs, of which a user may have several, as records."""
    name = job.layout.names.user
    if len(runs.times):
        check_span(int(runs.times.min()), int(runs.times.max()), job.layout.names.time)
    codes, users = read_users(pd.Series(as_users(pa.chunked_array([runs.users]), name), name=name))
    return Records(
        runs.x,
        runs.y,
        times=runs.times,
        no_time=np.zeros(len(runs.times), bool),
        codes=np.repeat(codes, runs.counts),
        users=users,
        crs=job.layout.crs,
        names=job.layout.names,
        time_format=TimeFormat(job.zone, job.unit),
        segments=runs.segments,
        protection=job.layout.protection,
    )


def _prepared(traces: Traces, preparation: Mapping[str, Any] | None) -> Traces:
    """Apply `prepare`."""
    return traces if preparation is None else prepare(traces, **preparation, keep_user=True)


def _as_runs(job: Job, traces: Traces) -> Runs:
    """Return Traces as runs, with the numbers of segments if they are written."""
    if len(traces.breaks) and not job.has_segments:
        raise ValueError(undeclared_breaks(job.mechanism))
    x, y = traces.space.coordinates(traces.points)
    segments = traces.segment_numbers if job.has_segments else None
    return Runs(as_array(traces.users), traces.counts, traces.times, x, y, segments)


def _spill_names(job: Job, name: str, runs: Runs) -> Spill:
    """Write runs in the order of their names of hex digits, by the first digits."""
    names = runs.users.to_pylist()
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    runs = runs if (np.diff(order) == 1).all() else runs.in_order(order)
    firsts = np.array([int(user[:8], 16) for user in runs.users.to_pylist()], np.int64)
    buckets = firsts * job.name_buckets >> 32
    return Spill.write(job.scratch, name, runs, np.searchsorted(buckets, np.arange(job.name_buckets + 1)))


def write_names(job: Job, number: int, first: int, last: int, spills: Sequence[Spill], unit: Unit) -> int:
    """Write a part of the new names of the buckets first … last − 1, in their order, and return its bytes."""
    return write_part(job, number, _in_name_order(job, first, last, spills), unit=unit)


def _in_name_order(job: Job, first: int, last: int, spills: Sequence[Spill]) -> Iterator[Runs]:
    """Yield the records of the new names of the buckets first … last − 1 in the order of names, as many as fit.

    Each spill is in the order of names, so that its share of what is yielded is read at once.
    """
    users = [spill.read_users(job.scratch, first, last) for spill in spills]
    names = [name for table in users for name in table.column("user").to_pylist()]
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    if any(names[one] == names[other] for one, other in pairwise(order)):
        raise ValueError("Two virtual users got the same name by chance. Repeat the command.")
    counts = np.concatenate([table.column("count").to_numpy() for table in users])
    owners = np.repeat(np.arange(len(spills)), [len(table) for table in users])
    offsets, read = as_offsets(counts[order]), [sum(spill.records[:first]) for spill in spills]
    step = min(_ROWS, job.max_records)
    for begin in range(0, max(offsets[-1], 1), step):
        end = min(begin + step, offsets[-1])
        some = slice(np.searchsorted(offsets, begin, side="right") - 1, np.searchsorted(offsets, end))
        sizes = np.minimum(offsets[1:][some], end) - np.maximum(offsets[:-1][some], begin)
        parts = [Runs.none(are_integers=False, has_segments=job.has_segments)]
        by_spill = np.argsort(owners[order[some]], kind="stable")
        for place in np.unique(owners[order[some]]):
            mine = owners[order[some]] == place
            columns = spills[place].read_records(job.scratch, read[place], int(sizes[mine].sum()))
            read[place] += len(columns["times"])
            labels = pa.array([names[name] for name in order[some][mine]], pa.large_string())
            parts.append(Runs(labels, sizes[mine], **columns))
        back = np.empty_like(by_spill)
        back[by_spill] = np.arange(len(by_spill))
        yield Runs.join(parts).in_order(back)


def write_part(job: Job, number: int, parts: Iterable[Runs], *, unit: Unit) -> int:
    """Write runs, one or more parts of them, as a GeoParquet file, which appears whole, and return its bytes."""
    names = job.output_names
    table = PointTable(
        blocks=(block for runs in parts for block in _blocks(job, runs, unit=unit)),
        geometry=str(names.geometry),
        crs=job.layout.crs,
        layer="",
        users=(),
        metadata={METADATA_KEY: describe(job.protection, names)},
        encoding=job.encoding,
    )
    path = job.parts / f"part-{number:05d}.parquet"
    temporary = path.with_suffix(".new")
    write_parquet(table, temporary)
    temporary.replace(path)
    return path.stat().st_size


def _blocks(job: Job, runs: Runs, *, unit: Unit) -> Any:
    """Yield blocks of rows; at least one."""
    names = job.output_names
    offsets = as_offsets(runs.counts)
    index = pd.DatetimeIndex(runs.times.view("M8[ns]")).as_unit(job.time_unit or unit)
    zone = job.output_zone
    for start in range(0, max(len(runs.times), 1), _ROWS):
        rows = slice(start, min(start + _ROWS, len(runs.times)))
        times = index[rows] if zone is None else index[rows].tz_localize("UTC").tz_convert(zone)
        columns = [(str(names.time), pa.array(times))]
        if names.user is not None:
            owners = np.searchsorted(offsets, np.arange(rows.start, rows.stop), side="right") - 1
            users = runs.users.take(pa.array(owners))
            kind = pa.string() if pa.types.is_large_string(users.type) else users.type
            columns.insert(0, (str(names.user), users.cast(kind)))
        if names.segment is not None and runs.segments is not None:
            columns.append((str(names.segment), pa.array(runs.segments[rows])))
        yield Block(columns, runs.x[rows], runs.y[rows])
