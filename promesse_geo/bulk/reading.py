"""The first step of protecting files: read records, and scatter them into files by user."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from promesse_geo.bulk.arrow import Layout
from promesse_geo.bulk.job import Job, Piece
from promesse_geo.bulk.results import Scattered
from promesse_geo.bulk.runs import Runs, Spill
from promesse_geo.bulk.types import as_array, in_types, with_own_segments
from promesse_geo.io.batch import FAILURES, Skipped, raise_with_remedy
from promesse_geo.io.parquet_table import open_parquet
from promesse_geo.io.table_columns import Columns
from promesse_geo.io.table_times import as_numbers_or_text, times_of_numbers
from promesse_geo.traces.marks import Marked, find_marked, reason_of
from promesse_geo.traces.missing_columns import renamed_error
from promesse_geo.traces.owners import PART

_BAD = "promesse-geo: marked as bad"  # a column that no file has


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
    segment = None if layout.names.segment is None else str(layout.names.segment)
    found = Path(piece.path).stat()
    if piece.state not in ((-1, -1), (found.st_size, found.st_mtime_ns)):
        raise ValueError(f"{piece.path!r} changed while it was read. Read it again when nothing writes to it.")
    with open_parquet(piece.path) as source:
        text = [str(name)] if name is not None and piece.user is None else []
        file = pq.ParquetFile(source, read_dictionary=text, page_checksum_verification=True)
        groups = list(range(piece.first, piece.last))
        if piece.apart is not None and segment not in file.schema_arrow.names:
            stored = [each for each in stored if each != segment]
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
            if segment is not None and segment not in table.column_names:
                table = table.append_column(segment, pa.nulls(len(table), pa.large_string()))
            yield _in_types(table, piece, layout, time_numbers=time_numbers)


def _in_types(table: pa.Table, piece: Piece, layout: Layout, *, time_numbers: str | None) -> pa.Table:
    """Return rows of a piece in the types of all files; errors name the file."""
    try:
        table = in_types(table, layout.names, layout.types, time_numbers=time_numbers).select([*layout.columns, _BAD])
        return with_own_segments(table, str(layout.names.segment), piece.apart) if piece.apart else table
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
