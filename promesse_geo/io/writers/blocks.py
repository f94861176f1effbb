"""Points with columns, as all formats write them: blocks of rows, their times, and checks of names and keys."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyproj import CRS

from promesse_geo.io.parquet_table import encode_points
from promesse_geo.messages import counted, listed
from promesse_geo.traces.traces import Traces

_ROWS = 1_000_000  # records per block
_TEXT_LIMIT = 2**31  # bytes of text in one array of arrow


class Block(NamedTuple):
    """Consecutive rows: named columns, and the coordinates of the points, (n,) each, in units of the CRS."""

    columns: list[tuple[str, pa.Array]]
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class PointTable:
    """Points with columns, to be written to a file.

    Parameters
    ----------
    blocks : iterable of Block
        The rows, at least one block, all with the same columns.
    geometry : str
        Name of the geometry column.
    crs : pyproj.CRS
        CRS of the coordinates.
    layer : str
        Name of the layer, in formats that have layers.
    users : iterable
        The distinct user keys.
    metadata : dict of str
        Metadata, for formats that have metadata.
    encoding : {"WKB", "point"}
        How GeoParquet holds the points: as well-known binary, or as structures of x and y.
    """

    blocks: Iterable[Block]
    geometry: str
    crs: CRS
    layer: str
    users: Iterable[Any]
    metadata: dict[str, str]
    encoding: str = "WKB"


def trace_table(traces: Traces, metadata: dict[str, str]) -> PointTable:
    """Return the records of traces as a table."""
    geometry = str(traces.names.geometry)
    return PointTable(_trace_blocks(traces), geometry, traces.space.crs, "traces", traces.users, metadata)


def poi_table(pois: gpd.GeoDataFrame) -> PointTable:
    """Return points of interest, as `pois` returns them, as a table."""
    geometry = pois.geometry
    columns = [(str(name), _as_array(column)) for name, column in pois.drop(columns=geometry.name).items()]
    users = [key for name in pois.columns[: pois.columns.get_loc("arrival")] for key in pois[name].unique()]
    block = Block(columns, geometry.x.to_numpy(), geometry.y.to_numpy())
    return PointTable([block], str(geometry.name), pois.crs, "pois", users, {})


def _trace_blocks(traces: Traces) -> Iterator[Block]:
    """Yield the records in blocks; at least one, so that an empty file has its columns."""
    names = traces.output_names()
    numbers = None if names.segment is None else traces.segment_numbers
    users, step = _as_keys(traces.users.tolist())
    kind = pa.string() if pa.types.is_large_string(users.type) else users.type
    times = replace(
        traces, time_format=replace(traces.time_format, zone=_known_zone(traces.time_format.zone))
    ).time_index()
    for start in range(0, max(traces.records, 1), step):
        rows = slice(start, start + step)
        columns = [("time" if names.time is None else str(names.time), pa.array(times[rows]))]
        if names.user is not None:
            owners = np.searchsorted(traces.offsets, np.arange(*rows.indices(traces.records)), side="right") - 1
            columns.insert(0, (str(names.user), users.take(pa.array(owners)).cast(kind)))
        if numbers is not None:
            columns.append((str(names.segment), pa.array(numbers[rows])))
        yield Block(columns, *traces.space.coordinates(traces.points[rows]))


def _as_keys(users: list[Any]) -> tuple[pa.Array, int]:
    """Return user keys as int64 if they fit, else as text, and how many records a block can hold."""
    keys = _plain_keys(users)
    if keys and not isinstance(keys[0], str):
        return pa.array(keys, pa.int64()), _ROWS
    sizes = [len(str(key).encode()) for key in keys]
    kind = pa.string() if sum(sizes) < _TEXT_LIMIT else pa.large_string()
    return pa.array(keys, kind), max(min(_ROWS, (_TEXT_LIMIT - 1) // max([1, *sizes])), 1)


def _plain_keys(users: list[Any]) -> list[Any]:
    """Return integers of 64 bits as they are, else all keys as text."""
    are_integers = all(not isinstance(user, str) and abs(user) < 2**63 for user in users)
    return users if are_integers else [str(user) for user in users]


def _as_array(column: pd.Series) -> pa.Array:
    """Return numbers and times as they are, user keys as int64 or text."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        return pa.Array.from_pandas(column.dt.tz_convert(_known_zone(column.dt.tz)))
    if column.dtype.kind in "iufM":
        return pa.Array.from_pandas(column) if column.dtype != np.uint64 else pa.array(_plain_keys(column.tolist()))
    return pa.array(_plain_keys(column.tolist()), None if len(column) else pa.string())


def _known_zone(zone: tzinfo | None) -> tzinfo | None:
    """Return the zone, or UTC if arrow has no name for it, or one that others do not know."""
    try:
        pa.lib.string_to_tzinfo(pa.lib.tzinfo_to_string(zone or UTC))
    except (pa.ArrowException, TypeError, ValueError, LookupError):
        return UTC
    return zone


def with_points(table: PointTable) -> Iterator[pa.Table]:
    """Yield the blocks as tables with points in the encoding of GeoParquet."""
    if table.encoding == "WKB":
        return with_wkb(table)
    return (as_table([*block.columns, (table.geometry, _as_structures(block.x, block.y))]) for block in table.blocks)


def _as_structures(x: np.ndarray, y: np.ndarray) -> pa.StructArray:
    """Return points as structures of x and y, shape (n,) each."""
    fields = [pa.field(name, pa.float64(), nullable=False) for name in "xy"]
    return pa.StructArray.from_arrays([pa.array(x), pa.array(y)], fields=fields)


def with_wkb(table: PointTable) -> Iterator[pa.Table]:
    """Yield the blocks as tables with points in well-known binary."""
    return (as_table([*block.columns, (table.geometry, encode_points(block.x, block.y))]) for block in table.blocks)


def as_table(columns: list[tuple[str, pa.Array]]) -> pa.Table:
    """Return named columns as a table; raise ValueError if a file cannot keep their names."""
    check_column_names([name for name, _ in columns])
    return pa.table(dict(columns))


def as_iso(array: pa.Array) -> pa.Array:
    """Return times as ISO 8601 in their unit: UTC with Z, times without a zone without; all else as it is."""
    kind = array.type
    if not pa.types.is_timestamp(kind):
        return array
    texts = array.cast(pa.timestamp(kind.unit)).cast(pa.string())
    width = len("2008-05-17T10:00:04") + {"s": 0, "ms": 4, "us": 7, "ns": 10}[kind.unit]
    letters = np.empty((len(texts), width + (kind.tz is not None)), np.uint8)
    letters[:, :width] = np.frombuffer(texts.buffers()[2] or b"", np.uint8, len(texts) * width).reshape(-1, width)
    letters[:, 10] = ord("T")
    letters[:, width:] = ord("Z")
    offsets = np.arange(len(texts) + 1, dtype=np.int32) * letters.shape[1]
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(letters))


def in_milliseconds(column: pa.Array | pa.ChunkedArray) -> Any:
    """Return times as GDAL keeps them, in UTC, for offsets change; all else as it is."""
    kind = column.type
    if not pa.types.is_timestamp(kind):
        return column
    unit = "s" if kind.unit == "s" else "ms"  # finer, GDAL rounds 59.9996 s up to 60, which no reader accepts
    return column.cast(pa.timestamp(unit, None if kind.tz is None else "UTC"), safe=False)


def join_texts(parts: Iterable[str | pa.Array]) -> pa.Buffer:
    """Return the text of all rows, each the parts in turn; the last part, which must be text, joins the others."""
    kind = pa.large_string()
    texts = [pa.scalar(part, kind) if isinstance(part, str) else part.cast(kind) for part in parts]
    return pc.binary_join_element_wise(*texts).buffers()[2]


def check_column_names(names: list[str], *, fold: Callable[[str], str] = str) -> None:
    """Raise ValueError if a file cannot keep the names, or not distinguish them."""
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in "".join(names)):
        raise ValueError("The name of a column holds a NUL or a lone surrogate, which files cannot keep. Rename it.")
    if len({fold(name) for name in names}) < len(names):
        raise ValueError(
            f"The file would have the columns {listed(names)}, two of one name. Rename one of them in the frame"
            f"{'; the format does not distinguish capitals' if fold is str.lower else ''}."
        )


def check_keys(users: Iterable[Any]) -> None:
    """Raise ValueError if a user key holds a NUL, where all formats but GeoParquet would end it."""
    bad = sum("\0" in str(user) for user in users)
    if bad:
        raise ValueError(
            f"{counted(bad, 'user key holds', 'user keys hold')} a NUL character, which only GeoParquet can "
            "keep. Rename these users, or write GeoParquet."
        )
