"""The steps of protecting files: scatter records by user, protect buckets of users, and write parts.

Each is a pure function of a job and of files, which any executor can call in any process that reaches the folders.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from promesse_geo.bulk.arrow import Layout
from promesse_geo.bulk.job import Job, Piece
from promesse_geo.bulk.memory import check_left, release_freed
from promesse_geo.bulk.results import Gathered, Scattered, as_values
from promesse_geo.bulk.runs import Runs, Spill, joined_up_to
from promesse_geo.bulk.types import TOO_LARGE, in_types
from promesse_geo.io.batch import FAILURES, Skipped, raise_with_remedy
from promesse_geo.io.parquet_table import open_parquet
from promesse_geo.io.table_columns import METADATA_KEY, Columns, as_users
from promesse_geo.io.table_times import as_numbers_or_text, times_of_numbers
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
from promesse_geo.traces.columns import renamed_error
from promesse_geo.traces.marks import Marked, find_marked, reason_of
from promesse_geo.traces.owners import PART, name_owners
from promesse_geo.traces.portions import UserPaths
from promesse_geo.traces.records import Records, as_offsets
from promesse_geo.traces.traces import Traces
from promesse_geo.traces.values import TimeFormat, Unit, check_span, read_users

_BAD = "promesse-geo: marked as bad"  # a column that no file has
_ROWS = 1_000_000  # records of a row group
_Counts = TypeVar("_Counts", bound=Gathered)


def scatter(job: Job, number: int) -> Scattered:
    """Read the pieces of a task, and write their records sorted by the bucket of their user."""
    spills: list[Spill] = []
    invalid, marked = dict[str, tuple[int, str]](), dict[str, tuple[int, str]]()
    counts, elevation, times = np.zeros(2, np.int64), False, list[int]()
    failed: dict[str, str] = {}
    for table, places in _read_chunks(job, number, failed):
        columns = _columns_of(job, table, places, failed)
        if columns is None:
            continue
        left_out = marked_rows(table)
        try:
            runs, buckets, bad = _sort(job, columns, left_out)
        except pa.ArrowException:
            raise _damaged(places[0][1]) from None
        name = f"chunk-{number:06d}-{len(spills):04d}"
        spills.append(Spill.write(job.scratch, name, runs, np.searchsorted(buckets, np.arange(job.buckets + 1))))
        for found, masks in ((invalid, bad), (marked, _by_reason(job, number, left_out))):
            for reason, mask in masks.items():
                count, first = found.get(reason, (0, ""))
                found[reason] = (count + int(mask.sum()), first or _place(int(mask.argmax()), places))
        elevation = elevation or columns.has_z
        counts += (table.num_rows, table.num_rows - len(runs.times) - int(left_out.sum()))
        times += [int(runs.times.min()), int(runs.times.max())] if len(runs.times) else []
    records, dropped = counts.tolist()
    period = min(times, default=None), max(times, default=None)
    skipped = {piece.path: job.skipped[piece.path] for piece in job.tasks[number] if piece.path in job.skipped}
    return Scattered(spills, records, dropped, invalid, elevation, marked, *period, failed, skipped)


def marked_rows(table: pa.Table) -> np.ndarray:
    """Return which records columns mark as bad, bool of shape (records,)."""
    return np.asarray(table.column(_BAD).to_numpy())


def _by_reason(job: Job, number: int, left_out: np.ndarray) -> dict[str, np.ndarray]:
    """Return the mask of records that columns of the files of a task mark as bad, under the reason."""
    marks = dict.fromkeys(mark for piece in job.tasks[number] for mark in piece.marks)
    return {reason_of(list(marks)): left_out} if left_out.any() else {}


_Place = tuple[int, str, int]
"""Where rows of a file begin in a table: the row, the path, and the row of the file."""


def _read_chunks(job: Job, number: int, failed: dict[str, str]) -> Iterator[tuple[pa.Table, list[_Place]]]:
    """Yield the records of a task in tables of about a chunk, and their places.

    If the job skips files, those that cannot be read are added to `failed`, with the reason.
    """
    tables, places, rows = list[pa.Table](), list[_Place](), 0
    for piece in job.tasks[number]:
        if piece.path in job.skipped:
            continue
        row = piece.row
        try:
            for table in read_piece(piece, job.layout, job.chunk, time_numbers=job.time_numbers):
                places.append((rows, piece.path, row))
                tables.append(table)
                row, rows = row + len(table), rows + len(table)
                if rows >= job.chunk:
                    yield pa.concat_tables(tables), places
                    tables, places, rows = [], [], 0
        except FAILURES as error:
            _fail(job, piece.path, error, failed)
    if tables:
        yield pa.concat_tables(tables), places


def _fail(job: Job, path: str, error: Exception, failed: dict[str, str]) -> None:
    """Note that a file cannot be read; raise the error if the job does not skip files."""
    if not job.skips:
        raise_with_remedy(error, files=job.files)
    failed[path] = Skipped.because(path, error).reason


def _columns_of(job: Job, table: pa.Table, places: Sequence[_Place], failed: dict[str, str]) -> Columns | None:
    """Return the columns of a table; None if those of a file cannot be read, which is then in `failed`."""
    try:
        return read_columns(job.layout, table, job.time_numbers)
    except (*FAILURES, pa.ArrowException):
        number = len(failed)
        ends = [start for start, *_ in places[1:]] + [len(table)]
        for (start, path, _), end in zip(places, ends, strict=True):
            try:
                read_columns(job.layout, table.slice(start, end - start), job.time_numbers)
            except pa.ArrowException:
                _fail(job, path, _damaged(path), failed)
            except FAILURES as error:
                _fail(job, path, renamed_error(error, f"{path!r}: {error.args[0]}"), failed)
        if len(failed) == number:  # the files differ
            raise
        return None


def _damaged(path: str) -> ValueError:
    """Return the error for a file of which Arrow says what is wrong in words that quote it."""
    return ValueError(f"{path!r} is damaged, or holds text that is not UTF-8.")


def _place(row: int, places: Sequence[_Place]) -> str:
    """Return the place of a row of a table in its file, in words."""
    start, path, first = max(place for place in places if place[0] <= row)
    return f"row {row - start + first:,} of {path!r}"


def read_piece(
    piece: Piece, layout: Layout, records: int, *, time_numbers: str | None, use_threads: bool = False
) -> Iterator[pa.Table]:
    """Yield the row groups of a piece in tables of at most some records, all of one schema.

    A column says which records are marked as bad.
    """
    name = layout.names.user
    stored = [each for each in layout.columns if piece.user is None or each != name]
    found = Path(piece.path).stat()
    if piece.state not in ((-1, -1), (found.st_size, found.st_mtime_ns)):
        raise ValueError(f"{piece.path!r} changed while it was read. Read it again when nothing writes to it.")
    with open_parquet(piece.path) as source:
        text = [str(name)] if name is not None and piece.user is None else []
        file = pq.ParquetFile(source, read_dictionary=text, page_checksum_verification=True)
        groups = list(range(piece.first, piece.last))
        columns = [*stored, *piece.marks]
        for batch in file.iter_batches(records, row_groups=groups, columns=columns, use_threads=use_threads):
            table = pa.Table.from_batches([batch])
            marked = find_marked(table, piece.marks)
            bad = np.zeros(len(table), bool) if marked is None else marked.bad
            table = table.select(stored).append_column(_BAD, pa.array(bad))
            if piece.user is not None:
                codes = pa.array(np.zeros(len(table), np.int32))
                users = pa.DictionaryArray.from_arrays(codes, pa.array([piece.user], pa.large_string()))
                table = table.append_column(str(name), users)
            yield _in_types(table, piece, layout, time_numbers=time_numbers)


def _in_types(table: pa.Table, piece: Piece, layout: Layout, *, time_numbers: str | None) -> pa.Table:
    """Return rows of a piece in the types of all files; errors name the file."""
    try:
        return in_types(table, layout.names, layout.types, time_numbers=time_numbers)
    except pa.ArrowException:
        raise _damaged(piece.path) from None
    except (ValueError, TypeError) as error:
        raise renamed_error(error, f"{piece.path!r}: {error.args[0]}") from error


def read_columns(layout: Layout, table: pa.Table, time_numbers: str | None) -> Columns:
    """Return the columns of a table of one of many files, with times and segments that mean the same in all.

    Parameters
    ----------
    layout : Layout
        How the table holds records.
    table : pyarrow.Table
        Rows of a file.
    time_numbers : str or None
        The unit of times that are numbers.
    """
    name = str(layout.names.time)
    if time_numbers is not None and not pa.types.is_timestamp(table.schema.field(name).type):
        numbers = as_numbers_or_text(table.column(name))
        if not (pa.types.is_integer(numbers.type) or pa.types.is_floating(numbers.type)):
            raise ValueError(f"The time column {name!r} holds numbers in some records and text in others.")
        times = pa.array(times_of_numbers(numbers, time_numbers))
        table = table.set_column(table.column_names.index(name), name, times)
    columns = layout.read(table)
    if columns.segments is None:
        return columns
    return columns._replace(segments=columns.segments._replace(codes=columns.segments.keys()))


def _sort(job: Job, columns: Columns, left_out: np.ndarray) -> tuple[Runs, np.ndarray, dict[str, np.ndarray]]:
    """Return the valid records by bucket and user, the bucket of each user, and masks of other records by reason.

    Records in `left_out`, bool of shape (records,), are neither.
    """
    if (columns.times.dt.tz is None) != (job.zone is None) and columns.times.notna().any():
        raise ValueError("Some files have times with a zone, others without. Convert them to one notation.")
    records = replace(job.layout.as_records(columns), marked=Marked((), left_out) if left_out.any() else None)
    invalid: dict[str, np.ndarray] = {}
    _, _, valid = records.validate(space=job.space, report=invalid.update)
    invalid = {why: mask for why, mask in invalid.items() if mask.any()}
    buckets = _buckets_of(job, records.users)
    by_bucket = np.argsort(buckets, kind="stable")
    rank = np.empty(len(by_bucket), np.int64)
    rank[by_bucket] = np.arange(len(by_bucket))
    grouped = replace(records, codes=np.where(records.codes < 0, -1, np.append(rank, 0)[records.codes]))
    order, counts = grouped.group(valid)
    used = counts > 0
    users = as_array(records.users.take(by_bucket[used]))
    segments = records.segments
    if order is None:
        runs = Runs(users, counts[used], records.times, records.x, records.y, segments)
    else:
        taken = (records.times[order], records.x[order], records.y[order])
        runs = Runs(users, counts[used], *taken, None if segments is None else segments[order])
    return runs, buckets[by_bucket][used], invalid


def _buckets_of(job: Job, users: pd.Index) -> np.ndarray:
    """The bucket of each user: parts `<user>-00000`, … have that of the user."""
    if job.buckets == 1:
        return np.zeros(len(users), np.int64)
    owners = [PART.sub("", str(user)).encode() for user in users.tolist()]
    digests = b"".join(hashlib.blake2b(owner, key=job.key, digest_size=8).digest() for owner in owners)
    return (np.frombuffer(digests, np.uint64) % np.uint64(job.buckets)).astype(np.int64)


def as_array(users: pd.Index) -> pa.Array:
    """Return users as integers if they are, else as text."""
    if users.dtype.kind in "iu":
        if len(users) and users.max() >= 2**63:
            raise ValueError(TOO_LARGE)
        return pa.array(users.to_numpy().astype(np.int64))
    return pa.array(users, pa.large_string())


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
    return UserPaths.of(traces).divide(room=job.room, count=count, check=check)


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
    batches = joined_up_to(min(_ROWS, job.room), chain([next(left)], left))
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
    step = min(_ROWS, job.room)
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
