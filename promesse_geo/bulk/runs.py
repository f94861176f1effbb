"""Runs of records, one for each user, and files that hold the runs of many buckets."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from promesse_geo.traces.records import as_offsets

_COLUMNS = (("times", np.int64), ("x", np.float64), ("y", np.float64), ("segments", np.int64))


@dataclass(frozen=True, eq=False)
class Runs:
    """Records of distinct users, one user after the other.

    Parameters
    ----------
    users : pyarrow.Array, length runs
        Text or integers.
    counts : numpy.ndarray of int64, shape (runs,)
        The number of records of each user.
    times : numpy.ndarray of int64, shape (records,)
        Nanoseconds since 1970-01-01.
    x, y : numpy.ndarray of float64, shape (records,)
        Coordinates in the CRS.
    segments : numpy.ndarray of int64, shape (records,), or None
        Codes of segments.
    """

    users: pa.Array
    counts: np.ndarray
    times: np.ndarray
    x: np.ndarray
    y: np.ndarray
    segments: np.ndarray | None = None

    @property
    def offsets(self) -> np.ndarray:
        """Where the runs begin and the last one ends, int64 of shape (runs + 1,)."""
        return as_offsets(self.counts)

    def in_order(self, order: np.ndarray) -> "Runs":
        """Return the runs in another order, int64 of shape (runs,)."""
        counts = self.counts[order]
        target = as_offsets(counts)
        rows = np.arange(target[-1]) + np.repeat(self.offsets[:-1][order] - target[:-1], counts)
        columns: dict[str, Any] = {
            name: None if values is None else values[rows] for name, values in self.columns().items()
        }
        return Runs(self.users.take(pa.array(order)), counts, **columns)

    def columns(self) -> dict[str, Any]:
        """Return times, coordinates and segments by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)[2:]}

    @classmethod
    def none(cls, *, are_integers: bool, has_segments: bool) -> "Runs":
        """Return no runs."""
        users = pa.array([], pa.int64() if are_integers else pa.large_string())
        nothing = {name: np.empty(0, kind) for name, kind in _COLUMNS[: 4 if has_segments else 3]}
        return cls(users, np.empty(0, np.int64), **nothing)

    @classmethod
    def join(cls, parts: Sequence["Runs"]) -> "Runs":
        """Return the runs of all parts, one or more, in their order; a user may then have several."""
        columns: dict[str, Any] = {}
        for name, values in parts[0].columns().items():
            columns[name] = None if values is None else np.concatenate([getattr(part, name) for part in parts])
        users = pa.concat_arrays([part.users for part in parts])
        return cls(users, np.concatenate([part.counts for part in parts]), **columns)


@dataclass(frozen=True)
class Spill:
    """A file of the runs of many buckets, and one of their users beside it.

    The columns follow each other as plain numbers of 8 bytes, so that a bucket is read without the rest.

    Parameters
    ----------
    name : str
        Name of the file of records; that of users ends with `.users`.
    records : tuple of int
        The number of records in each bucket.
    has_segments : bool
        Whether there are codes of segments.
    """

    name: str
    records: tuple[int, ...]
    has_segments: bool

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "Spill":
        """Return the spill that JSON describes."""
        return cls(found["name"], tuple(found["records"]), found["has_segments"])

    @classmethod
    def write(cls, folder: Path, name: str, runs: Runs, buckets: np.ndarray) -> "Spill":
        """Write runs, of which bucket b holds `buckets[b]` to `buckets[b + 1]`, int64 of shape (buckets + 1,)."""
        users = pa.table({"user": runs.users, "count": runs.counts})
        with _new_file(folder / f"{name}.users") as file, pa.ipc.new_file(file, users.schema) as writer:
            for first, last in pairwise(buckets.tolist()):
                writer.write_batch(_as_batch(users.slice(first, last - first)))
        with _new_file(folder / name) as file:
            for values in runs.columns().values():
                if values is not None:
                    file.write(np.ascontiguousarray(values).data)
        return cls(name, tuple(np.diff(runs.offsets[buckets]).tolist()), runs.segments is not None)

    def users_of(self, folder: Path, bucket: int) -> dict[Any, int]:
        """Return the number of records of each user of a bucket."""
        table = self.read_users(folder, bucket, bucket + 1)
        return dict(zip(table.column("user").to_pylist(), table.column("count").to_pylist(), strict=True))

    def read_users(self, folder: Path, first: int, last: int) -> pa.Table:
        """Return the users of the buckets first … last − 1, and the number of records (`count`) of each."""
        with pa.OSFile(os.fsencode(folder / f"{self.name}.users")) as file, pa.ipc.open_file(file) as reader:
            return pa.Table.from_batches([reader.get_batch(bucket) for bucket in range(first, last)], reader.schema)

    def read(self, folder: Path, first: int, last: int) -> Runs:
        """Read the runs of the buckets first … last − 1."""
        users = self.read_users(folder, first, last)
        columns = self.read_records(folder, sum(self.records[:first]), sum(self.records[first:last]))
        return Runs(users.column("user").combine_chunks(), users.column("count").to_numpy(), **columns)

    def read_records(self, folder: Path, begin: int, number: int) -> dict[str, Any]:
        """Return times, coordinates and segments of some records from a position on, by name."""
        total, columns = sum(self.records), dict[str, Any]()
        with (folder / self.name).open("rb", buffering=0) as file:
            for place, (column, kind) in enumerate(_COLUMNS[: 4 if self.has_segments else 3]):
                file.seek(8 * (place * total + begin))
                columns[column] = np.fromfile(file, kind, number)
        return columns


def joined_up_to(records: int, parts: Iterable[Runs]) -> Iterator[Runs]:
    """Yield runs joined until they have so many records; at least one, and the rest last."""
    waiting, total, is_first = list[Runs](), 0, True
    for part in parts:
        waiting.append(part)
        total += len(part.times)
        if total >= records:
            yield waiting[0] if len(waiting) == 1 else Runs.join(waiting)
            waiting, total, is_first = [], 0, False
    if waiting and (total or is_first):
        yield waiting[0] if len(waiting) == 1 else Runs.join(waiting)


def _new_file(path: Path) -> Any:
    """Open a file for writing that only its owner can read."""
    return open(path, "wb", opener=partial(os.open, mode=0o600))


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch, which may be empty."""
    batches = table.combine_chunks().to_batches()
    none = [pa.array([], kind) for kind in table.schema.types]
    return batches[0] if batches else pa.RecordBatch.from_arrays(none, schema=table.schema)
