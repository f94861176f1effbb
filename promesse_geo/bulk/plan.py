"""Plan the work on files: what they hold, how it is divided, and how much memory and disk it needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyproj import CRS

from promesse_geo.bulk.arrow import Layout
from promesse_geo.bulk.tasks import Piece, read_columns
from promesse_geo.io.batch import warn_assumed
from promesse_geo.io.parquet_table import native_geometries, open_parquet
from promesse_geo.io.registry import find_readable
from promesse_geo.io.sources import UNREAD, as_paths, find_files
from promesse_geo.io.table_columns import ReadOptions
from promesse_geo.io.table_times import (
    as_numbers_or_text,
    note_of_numbers,
    parse_times,
    times_of_numbers,
    unit_of_numbers,
)
from promesse_geo.messages import DroppedWarning, collected_warnings, counted, warn
from promesse_geo.traces.columns import renamed_error
from promesse_geo.traces.crs import metres_per_unit
from promesse_geo.traces.marks import find_marked, find_marks, marks_some
from promesse_geo.traces.space import FARTHEST, Space, choose_space
from promesse_geo.traces.values import UNITS, TimeFormat, Unit

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

    def choices(self) -> dict[str, Any]:
        """Return what a job takes from the files, by name."""
        names = ("tasks", "layout", "has_integers", "time_numbers", "zone", "unit")
        return {name: getattr(self, name) for name in names}


def find_sources(source: Any, options: ReadOptions, *, chunk: int, owner: str, drops: bool) -> Sources:
    """Look at the schemas of the files of a source; with `drops`, files of other formats are not read, with a warning.

    Raises
    ------
    TypeError, ValueError, KeyError, OSError
        If there is none, one cannot be read, or they differ in columns, CRS or kinds of users and times.
    """
    paths, unread = _find_parquet(source, owner=owner, drops=drops)
    tasks, waiting, rows, total = [], list[Piece](), 0, 0
    layouts, kinds, states = list[Layout](), list[tuple[Any, ...]](), []
    for path in paths:
        metadata, layout, kind, marks = _look_at(path, options)
        stat = path.stat()
        states.append([str(path.absolute()), stat.st_size, stat.st_mtime_ns])
        layouts.append(layout)
        kinds.append(kind)
        row = 0
        for group in range(metadata.num_row_groups):
            state = (stat.st_size, stat.st_mtime_ns)
            waiting.append(Piece(str(path.absolute()), group, group + 1, row, state, marks))
            size = metadata.row_group(group).num_rows
            row, rows, total = row + size, rows + size, total + size
            if rows >= chunk:
                tasks.append(_joined(waiting))
                waiting, rows = [], 0
    tasks += [_joined(waiting)] if waiting else []
    _check_equal(paths, layouts, kinds)
    if any(layout.protection != layouts[0].protection for layout in layouts):
        layouts[0] = replace(layouts[0], protection=None)
    numbers, times = _look_at_times(paths, layouts[0], owner=owner)
    return Sources(tuple(tasks), total, layouts[0], kinds[0][0], numbers, times.zone, times.unit, states, unread)


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


def _look_at(path: Path, options: ReadOptions) -> tuple[pq.FileMetaData, Layout, tuple[Any, ...], tuple[str, ...]]:
    """Return metadata and layout of a file, the kinds of its users and times, and columns that mark bad records."""
    with open_parquet(path) as source:
        file = pq.ParquetFile(source)
        schema, metadata, native = file.schema_arrow, file.metadata, native_geometries(file)
    try:
        layout = Layout.find(schema, options, native=native)
    except (ValueError, TypeError, KeyError) as error:
        raise renamed_error(error, f"{str(path)!r}: {error.args[0]}") from error
    time = schema.field(str(layout.names.time)).type
    is_zoned = pa.types.is_timestamp(time) and time.tz is not None
    user = None if layout.names.user is None else schema.field(str(layout.names.user)).type
    values = user.value_type if user is not None and pa.types.is_dictionary(user) else user
    is_integer = values is not None and pa.types.is_integer(values)
    is_number = pa.types.is_integer(time) or pa.types.is_floating(time)
    marks = tuple(name for name in find_marks(schema.names, layout.names) if _marks_some(path, name))
    return metadata, layout, (is_integer, is_zoned, is_number, pa.types.is_timestamp(time)), marks


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


def _check_equal(paths: Sequence[Path], layouts: Sequence[Layout], kinds: Sequence[tuple[Any, ...]]) -> None:
    """Raise ValueError if files hold records in another way than the first."""
    first = layouts[0]
    for path, layout, kind in zip(paths, layouts, kinds, strict=True):
        differences = {
            "other columns": (layout.names, layout.places) != (first.names, first.places),
            "another encoding of points": layout.encoding != first.encoding,
            "another CRS": not first.crs.equals(layout.crs, ignore_axis_order=True),
            "users or times of another type": kind != kinds[0],
        }
        if found := [name for name, differs in differences.items() if differs]:
            raise ValueError(
                f"{str(path)!r} has {' and '.join(found)} than {str(paths[0])!r}. The files of a data set must hold "
                "records in the same way: convert it, or specify the columns."
            )


def _look_at_times(paths: Sequence[Path], layout: Layout, *, owner: str) -> tuple[str | None, TimeFormat]:
    """Return the unit of times that are numbers, and how times are kept, from the first records that have any."""
    name = str(layout.names.time)
    for path in paths:
        with open_parquet(path) as source:
            file = pq.ParquetFile(source)
            kind = file.schema_arrow.field(name).type
            is_timestamp = pa.types.is_timestamp(kind)
            first = None if is_timestamp else next(file.iter_batches(_LOOK, columns=[name]), None)
        if is_timestamp:
            return None, _format_of_files(paths, name)
        if first is None or first.column(0).null_count == len(first):
            continue
        column = as_numbers_or_text(pa.chunked_array([first.column(0)]))
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            unit = unit_of_numbers(column, name)
            warn_assumed([note_of_numbers(name, unit)], owner=owner)
            return unit, TimeFormat(times_of_numbers(column, unit).dt.tz)
        return None, TimeFormat(parse_times(column, name)[0].dt.tz)
    return None, TimeFormat()


def _format_of_files(paths: Sequence[Path], name: str) -> TimeFormat:
    """Return the zone of timestamps, UTC if files have several, None if they have none, and the finest unit."""
    zones, units = set(), set()
    for path in paths:
        with open_parquet(path) as source:
            kind = pq.ParquetFile(source).schema_arrow.field(name).type
        zones.add(kind.tz)
        units.add(kind.unit)
    zone = pa.array([], pa.timestamp("ns", zones.pop() if len(zones) == 1 else "UTC"))
    return TimeFormat(pd.DatetimeIndex(zone.to_pandas()).tz, max(units, key=UNITS.index))


def find_space(sources: Sources, space: Any) -> Space:
    """Choose the space for all records: for projected CRSs by their bounding box, which needs a pass."""
    crs = sources.layout.crs

    def look() -> np.ndarray:
        pieces = [piece for task in sources.tasks for piece in task]
        corners = [bounds_of(x, y, crs) for piece in pieces for x, y in _coordinates(sources, piece)]
        return np.concatenate([np.empty((0, 2)), *corners])

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
    layout = sources.layout
    with open_parquet(piece.path) as source:
        groups = list(range(piece.first, piece.last))
        file = pq.ParquetFile(source, page_checksum_verification=True)
        for batch in file.iter_batches(_MOST, row_groups=groups, columns=[*layout.columns, *piece.marks]):
            table = pa.Table.from_batches([batch])
            marked = find_marked(table, piece.marks)
            columns = read_columns(layout, table, sources.time_numbers).without(marked)
            yield columns.x, columns.y
