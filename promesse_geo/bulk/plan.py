"""Plan the work on files: what they hold, how it is divided, and how much memory and disk it needs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyproj import CRS

from promesse_geo.bulk.arrow import Layout
from promesse_geo.bulk.job import Piece
from promesse_geo.bulk.reading import marked_rows, read_columns, read_piece
from promesse_geo.bulk.types import common_types, finest_unit, kind_of
from promesse_geo.io.batch import FAILURES, Skipped, none_read, raise_with_remedy, warn_assumed
from promesse_geo.io.parquet_table import is_int96, native_geometries, note_of_int96, open_parquet
from promesse_geo.io.registry import find_readable
from promesse_geo.io.sources import BY_PLACE, UNREAD, as_paths, find_files, name_users
from promesse_geo.io.table_columns import ReadOptions
from promesse_geo.io.table_times import (
    as_numbers_or_text,
    note_of_numbers,
    parse_times,
    times_of_numbers,
    unit_of_numbers,
)
from promesse_geo.mechanisms.base import cuts_places
from promesse_geo.messages import DroppedWarning, collected_warnings, counted, warn
from promesse_geo.traces.crs import metres_per_unit
from promesse_geo.traces.marks import find_marks, marks_some
from promesse_geo.traces.missing_columns import renamed_error
from promesse_geo.traces.space import FARTHEST, Space, choose_space
from promesse_geo.traces.values import TimeFormat, Unit, read_users

ENDINGS = (".parquet", ".geoparquet")
"""Extensions of the files of a data set."""

_MOST = 500_000  # records whose coordinates are in memory at a time
_LOOK = 10_000  # records by which the unit of numbers is recognized
_BATCH = 100_000  # values of a column of marks that are in memory at a time


@dataclass(frozen=True)
class Sources:
    """The files of a data set, and what their schemas say.

    Parameters
    ----------
    tasks : tuple of tuple of Piece
        All row groups in the order of paths and rows, divided into tasks of about a chunk.
    records : int
        All records.
    layout : Layout
        How the files hold records.
    has_integers : bool
        Whether users are integers.
    time_numbers : str or None
        The unit of times that are numbers.
    zone : tzinfo or None
        The zone of the times.
    unit : {"s", "ms", "us", "ns"}
        The finest unit of timestamps; "ns" for other times.
    states : list of list
        Path, size and time of change of each file.
    unread : int
        Files of other extensions in the folders.
    skips : bool
        Whether files that cannot be read are skipped.
    skipped : list of Skipped
        Those that are known.
    """

    tasks: tuple[tuple[Piece, ...], ...]
    records: int
    layout: Layout
    has_integers: bool
    time_numbers: str | None
    zone: tzinfo | None
    unit: Unit
    states: list[list[Any]]
    unread: int
    skips: bool
    skipped: list[Skipped]

    def choices(self) -> dict[str, Any]:
        """Return what a job takes from the files, by name."""
        names = ("tasks", "layout", "has_integers", "time_numbers", "zone", "unit", "skips")
        return {name: getattr(self, name) for name in names}


def find_sources(source: Any, options: ReadOptions, *, chunk: int, owner: str, drops: bool) -> Sources:
    """Look at the schemas of the files of a source.

    With `drops`, files of other formats are not read, with a warning, and files that cannot be read are skipped.

    Raises
    ------
    TypeError, ValueError, KeyError, OSError
        If there is none, one cannot be read, or they differ in columns, CRS or kinds of users and times.
    """
    paths, unread = _find_parquet(source, owner=owner, drops=drops)
    users = _name_users(paths, options)
    files, skipped = _look_at_all(paths, users, options, drops=drops)
    files = _keep_zones_apart(files)
    _check_equal(files)
    layout, types = _common_layout(files)
    tasks, waiting, rows, total = [], list[Piece](), 0, 0
    for file in files:
        row = 0
        for group, size in enumerate(file.groups):
            path = str(file.path.absolute())
            waiting.append(Piece(path, group, group + 1, row, file.state, file.marks, file.user, file.apart))
            row, rows, total = row + size, rows + size, total + size
            if rows >= chunk:
                tasks.append(_joined(waiting))
                waiting, rows = [], 0
    tasks += [_joined(waiting)] if waiting else []
    if any(file.is_int96 for file in files):
        warn_assumed([note_of_int96(layout.names.time)], owner=owner)
    numbers, times = _look_at_times(files, types, owner=owner, drops=drops)
    return Sources(
        tasks=tuple(tasks),
        records=total,
        layout=layout,
        has_integers=any(kind_of(kind) == "integers" for kind in types.get(str(layout.names.user), ())),
        time_numbers=numbers,
        zone=times.zone,
        unit=times.unit,
        states=[[str(file.path.absolute()), *file.state] for file in files],
        unread=unread,
        skips=drops,
        skipped=skipped,
    )


def _find_parquet(source: Any, *, owner: str, drops: bool) -> tuple[list[Path], int]:
    """Return the files to read, and how many others lie in their folders; raise ValueError if those can be read."""
    folders = [path for path in as_paths(source, owner=owner) if path.is_dir()]
    others = [] if drops else [file for folder in folders for file in find_readable(folder, but=ENDINGS)]
    if others:
        number = counted(len(others), "file of another format lies", "files of other formats lie")
        raise ValueError(
            f"{number} beside the Parquet files (first: {str(others[0])!r}), and {owner} reads Parquet only. "
            "Read all at once with pg.read_file (on the command line, name an OUTPUT with an extension, such as "
            ".parquet), convert the others to Parquet, or leave them out with errors='skip' (--skip)."
        )
    with collected_warnings() as caught:
        paths = find_files(source, endings=ENDINGS, owner=owner)
    counts = [warning.counts for warning in caught if isinstance(warning, DroppedWarning)]
    for warning in caught:
        warn(warning)
    return paths, sum(count.get(UNREAD, 0) for count in counts)


class _File(NamedTuple):
    """A file of a data set, and what its schema says.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    state : tuple of int
        Its size and time of change.
    groups : list of int
        The records of each row group.
    layout : Layout
        How it holds records.
    types : dict of str to pyarrow.DataType
        The types of the columns that are read.
    marks : tuple of str
        Columns that mark some records as bad.
    user : str or None
        The user of all its records, if the name of the file or of a folder gives it.
    is_int96 : bool
        Whether times are of the type int96, which is in UTC.
    apart : str or None
        As for `Piece`.
    """

    path: Path
    state: tuple[int, int]
    groups: list[int]
    layout: Layout
    types: dict[str, pa.DataType]
    marks: tuple[str, ...]
    user: str | None
    is_int96: bool
    apart: str | None = None


def _name_users(paths: Sequence[Path], options: ReadOptions) -> dict[Path, str]:
    """Return the user of each file, if names of files or folders are the users, as `read_file` does."""
    if not isinstance(options.user, str) or options.user not in BY_PLACE:
        return {}
    users = name_users(paths, by=options.user)
    read_users(pd.Series(list(users.values())))  # raises for names that cannot be written
    return users


def _look_at_all(
    paths: Sequence[Path], users: Mapping[Path, str], options: ReadOptions, *, drops: bool
) -> tuple[list[_File], list[Skipped]]:
    """Look at all files; with `drops`, those that cannot be read are skipped, unless none can."""
    files, skipped = list[_File](), list[Skipped]()
    for path in paths:
        try:
            files.append(_look_at(path, users.get(path), options))
        except FAILURES as error:
            if not drops:
                raise_with_remedy(error, files=len(paths))
            skipped.append(Skipped.because(str(path.absolute()), error))
    if not files:
        raise none_read(skipped)
    return files, skipped


def _look_at(path: Path, user: str | None, options: ReadOptions) -> _File:
    """Return what the schema of a file says, and which columns mark bad records."""
    with open_parquet(path) as source:
        stat = path.stat()
        file = pq.ParquetFile(source)
        schema, metadata, native = file.schema_arrow, file.metadata, native_geometries(file)
        try:
            layout = Layout.find(schema, options, native=native)
        except (ValueError, TypeError, KeyError) as error:
            raise renamed_error(error, f"{str(path)!r}: {error.args[0]}") from error
        time = str(layout.names.time)
        types = {name: schema.field(name).type for name in layout.columns}
        if is_96 := is_int96(file, time):
            types[time] = pa.timestamp("ns", "UTC")
    marks = tuple(name for name in find_marks(schema.names, layout.names) if _marks_some(path, name))
    groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if user is not None:
        layout = replace(layout, names=replace(layout.names, user="user"))
    return _File(path, (stat.st_size, stat.st_mtime_ns), groups, layout, types, marks, user, is_96)


def _keep_zones_apart(files: list[_File]) -> list[_File]:
    """Let segments end with their file where zones were applied: a trace may end in a zone, and go on in another file.

    So all files have a column of segments then.
    """
    zoned = [cuts_places(file.layout.protection) for file in files]
    if len(files) == 1 or not any(zoned):
        return files
    apart = [str(number) if is_zoned else None for number, is_zoned in enumerate(zoned)]
    return [_with_segments(*each) for each in zip(files, apart, strict=True)]


def _with_segments(file: _File, apart: str | None) -> _File:
    """Return a file whose segments are its own; without `apart` it has a column of segments at least."""
    names = file.layout.names
    if names.segment is not None:
        return file._replace(apart=apart)
    names = names.with_segment([*file.types, *file.layout.places])
    types = file.types | {str(names.segment): pa.large_string()}
    return file._replace(layout=replace(file.layout, names=names), types=types, apart=apart or "")


def _common_layout(files: Sequence[_File]) -> tuple[Layout, dict[str, set[pa.DataType]]]:
    """Return how all files hold records once columns are of one type, and the types of each column."""
    layout, types = files[0].layout, {name: {file.types[name] for file in files} for name in files[0].types}
    if any(file.layout.protection != layout.protection for file in files):
        layout = replace(layout, protection=None)
    common = common_types(layout.names, types)
    if any(file.is_int96 for file in files):
        common = {str(layout.names.time): pa.timestamp("ns", "UTC"), **common}
    return replace(layout, types=common), types


def _marks_some(path: Path, name: str) -> bool:
    """Whether a column marks some of the records of a file as bad, and holds no values of another kind."""
    with open_parquet(path) as source:
        file = pq.ParquetFile(source, page_checksum_verification=True)
        return marks_some(batch.column(0) for batch in file.iter_batches(_BATCH, columns=[name], use_threads=False))


def _joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Return pieces with consecutive row groups of a file as one."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and joined[-1].path == piece.path and joined[-1].last == piece.first:
            joined[-1] = joined[-1]._replace(last=piece.last)
        else:
            joined.append(piece)
    return tuple(joined)


def _check_equal(files: Sequence[_File]) -> None:
    """Raise ValueError if files hold records in another way than the first."""
    first = files[0].layout
    with_kind = {name: _first_with_kind(files, name) for name in (first.names.user, first.names.time)}
    for file in files:
        layout = file.layout
        differences = {
            "other columns": (layout.names, layout.places) != (first.names, first.places),
            "another encoding of points": layout.encoding != first.encoding,
            "another CRS": not first.crs.equals(layout.crs, ignore_axis_order=True),
        }
        if found := [name for name, differs in differences.items() if differs]:
            raise ValueError(
                f"{str(file.path)!r} has {' and '.join(found)} than {str(files[0].path)!r}. The files of a data set "
                "must hold records in the same way: convert it, or specify the columns."
            )
        for name, other in with_kind.items():
            kinds = [_comparable(kind_of(each.types[str(name)])) for each in (file, other) if str(name) in each.types]
            if all(kinds) and len(set(kinds)) > 1:
                raise ValueError(
                    f"{str(file.path)!r} has another type of values in the column {name!r} than {str(other.path)!r}: "
                    f"{kinds[0]}, not {kinds[1]}. The files of a data set must hold records in one way: convert it."
                )


def _first_with_kind(files: Sequence[_File], name: Any) -> _File:
    """Return the first file in which a column may hold values; the first file if there is none."""
    return next((file for file in files if str(name) in file.types and kind_of(file.types[str(name)])), files[0])


def _comparable(kind: str) -> str:
    """Return a kind of values without the difference of whole and other numbers."""
    return "numbers" if kind == "integers" else kind


def _look_at_times(
    files: Sequence[_File], types: Mapping[str, Collection[pa.DataType]], *, owner: str, drops: bool
) -> tuple[str | None, TimeFormat]:
    """Return the unit of times that are numbers, and how times are kept, from the first records that have any."""
    name = str(files[0].layout.names.time)
    stamps = [kind for kind in types[name] if pa.types.is_timestamp(kind)]
    if stamps:
        zones = {kind.tz for kind in stamps}
        zone = pa.array([], pa.timestamp("ns", zones.pop() if len(zones) == 1 else "UTC"))
        return None, TimeFormat(pd.DatetimeIndex(zone.to_pandas()).tz, finest_unit(stamps))
    for file in files:
        try:
            first = _first_times(file.path, name)
        except FAILURES:
            if not drops:
                raise
            continue  # reading it reports it
        if first is None:
            continue
        unit, zone = first
        if unit is not None:
            warn_assumed([note_of_numbers(name, unit)], owner=owner)
        return unit, TimeFormat(zone)
    return None, TimeFormat()


def _first_times(path: Path, name: str) -> tuple[str | None, tzinfo | None] | None:
    """Return the unit of the first times of a file if they are numbers, and their zone; None if there is no time."""
    with open_parquet(path) as source:
        first = next(pq.ParquetFile(source).iter_batches(_LOOK, columns=[name]), None)
    if first is None or first.column(0).null_count == len(first):
        return None
    column = as_numbers_or_text(pa.chunked_array([first.column(0)]))
    try:
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            unit = unit_of_numbers(column, name)
            return unit, times_of_numbers(column, unit).dt.tz
        return None, parse_times(column, name)[0].dt.tz
    except (ValueError, TypeError) as error:
        raise renamed_error(error, f"{str(path)!r}: {error.args[0]}") from error


def find_space(sources: Sources, space: Any) -> Space:
    """Choose the space for all records: for projected CRSs by their bounding box, which needs a pass."""
    crs = sources.layout.crs

    def look() -> np.ndarray:
        corners: dict[str, list[np.ndarray]] = {}
        failed = set[str]()
        for piece in (piece for task in sources.tasks for piece in task):
            try:
                corners.setdefault(piece.path, []).extend(bounds_of(x, y, crs) for x, y in _coordinates(sources, piece))
            except FAILURES:
                if not sources.skips:
                    raise
                failed.add(piece.path)
        read = [each for path, some in corners.items() if path not in failed for each in some]
        return np.concatenate([np.empty((0, 2)), *read])

    return space_of(crs, look, space=space)


def space_of(crs: CRS, look: Callable[[], np.ndarray], *, space: Any) -> Space:
    """Choose the space of divided data; `look` returns the corners of their bounding boxes, shape (corners, 2)."""
    nothing = np.empty(0)
    if space is not None or crs.is_geographic or not crs.is_projected:
        return choose_space(crs, nothing, nothing, space=space)
    return choose_space(crs, *look().T)


def bounds_of(x: np.ndarray, y: np.ndarray, crs: CRS) -> np.ndarray:
    """Return the corners of the bounding box of coordinates, shape (n,): two, or none; far ones are errors."""
    limit = FARTHEST / metres_per_unit(crs)
    near = (np.abs(x) <= limit) & (np.abs(y) <= limit)
    if not near.any():
        return np.empty((0, 2))
    points = np.column_stack((x[near], y[near]))
    return np.array([points.min(axis=0), points.max(axis=0)])


def _coordinates(sources: Sources, piece: Piece) -> Any:
    """Yield the coordinates of a piece, chunk by chunk, without records that are marked as bad."""
    layout, numbers = sources.layout, sources.time_numbers
    for table in read_piece(piece, layout, _MOST, time_numbers=numbers, use_threads=True):
        columns = read_columns(layout, table, numbers)
        kept = ~marked_rows(table)
        yield columns.x[kept], columns.y[kept]
