"""Read Parquet with or without the metadata of GeoParquet, and convert points from and to well-known binary."""

import json
import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from datetime import tzinfo
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely
from pyproj import CRS
from pyproj.exceptions import CRSError

from promesse_geo.io import table_columns, table_segments, table_times
from promesse_geo.io.contents import unchanged
from promesse_geo.io.table_columns import (
    METADATA_KEY,
    Columns,
    ReadOptions,
    agrees,
    needed_crs,
    parse_protection,
    parse_roles,
)
from promesse_geo.messages import listed, shown
from promesse_geo.traces.columns import Names
from promesse_geo.traces.known_columns import LATITUDES, LONGITUDES, candidates_for
from promesse_geo.traces.marks import find_marked, find_marks
from promesse_geo.traces.points import no_points

_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
_FIRST = 50  # records by which the offset of times is recognized
_NATIVE = ("GEOMETRY", "GEOGRAPHY")
_KNOWN_GEOMETRIES = ("geometry", "geom", "wkb_geometry", "wkb")


@contextmanager
def open_parquet(path: str | os.PathLike[str]) -> Iterator[pa.NativeFile]:
    """Open a Parquet file of any name; raise ValueError that names it if it cannot be read, or changes meanwhile."""
    try:
        with unchanged(Path(path)), pa.OSFile(os.fsencode(path), "rb") as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:  # of the system, not of the format
            raise ValueError(f"{os.fspath(path)!r} cannot be read: {os.strerror(error.errno)}.") from error
        raise ValueError(f"{os.fspath(path)!r} is cut, damaged or not Parquet.") from error


def read_parquet_table(path: Path, source: pa.NativeFile, options: ReadOptions) -> Columns:
    """Read GeoParquet, or Parquet with columns of coordinates, or with points in WKB and a CRS given."""
    file = pq.ParquetFile(source, page_checksum_verification=True)  # where pages have checksums
    names, places, crs = locate_columns(file.schema_arrow, options, native=native_geometries(file))
    marks = find_marks(file.schema_arrow.names, names)
    needed = (names.user, names.time, names.segment, *marks, *places)
    table = file.read(columns=[name for name in needed if name is not None])
    columns = read_located(table, names, places, crs)
    if is_int96(file, names.time):
        columns = columns._replace(times=columns.times.dt.tz_localize("UTC"), notes=(note_of_int96(names.time),))
    text = (file.schema_arrow.metadata or {}).get(METADATA_KEY.encode())
    return columns._replace(protection=parse_protection(text)).without(find_marked(table, marks))


def read_arrow_table(data: Any, options: ReadOptions) -> Columns:
    """Read an object with `__arrow_c_stream__`, such as a table of pyarrow or Polars, by the rules of Parquet."""
    with pa.RecordBatchReader.from_stream(data) as stream:
        names, places, crs = locate_columns(stream.schema, options)
        marks = find_marks(stream.schema.names, names)
        needed = [name for name in (names.user, names.time, names.segment, *marks, *places) if name is not None]
        table = stream.read_all().select(list(dict.fromkeys(needed)))
    columns = read_located(table, names, places, crs)
    text = (stream.schema.metadata or {}).get(METADATA_KEY.encode())
    return columns._replace(protection=parse_protection(text)).without(find_marked(table, marks))


def read_located(table: pa.Table, names: Names, places: list[str], crs: Any) -> Columns:
    """Return the columns of a table with a geometry or two columns of coordinates."""
    points = coordinates_of(table.column(places[0])) if len(places) == 1 else _numbers(table, places)
    return as_columns(table, points, names=names, crs=crs)


def is_int96(file: pq.ParquetFile, name: Hashable) -> bool:
    """Whether a column is of the old type of times that Spark writes, which are in UTC but without a zone."""
    columns = (file.schema.column(i) for i in range(len(file.schema)))
    return any(column.path == name and column.physical_type == "INT96" for column in columns)


def note_of_int96(name: Hashable) -> str:
    """Return how times of the type int96 were understood, for a warning."""
    return f"the times of {name!r}, which are of the type int96, as UTC"


def native_geometries(file: pq.ParquetFile) -> dict[str, str]:
    """Return the CRS of the columns of Parquet's own types GEOMETRY and GEOGRAPHY, by name.

    The CRS is text as in the file: empty for its default (OGC:CRS84), an authority with a code, srid: or projjson:
    before a number or a key of the file's metadata, or PROJJSON.
    """
    columns = [file.schema.column(i) for i in range(len(file.schema))]
    types = {column.path: column.logical_type for column in columns if column.path in file.schema_arrow.names}
    kinds = {name: json.loads(kind.to_json()) for name, kind in types.items() if kind.type in _NATIVE}
    return {name: str(kind.get("crs", "")) for name, kind in kinds.items()}


def _native_crs(crs: str, schema: pa.Schema, options: ReadOptions) -> Any:
    """Return the CRS of a column of Parquet's own types."""
    kind, _, key = crs.partition(":")
    if kind == "projjson":
        crs = ((schema.metadata or {}).get(key.encode()) or b"").decode(errors="replace") or crs
    try:
        declared = CRS.from_user_input(f"EPSG:{key}" if kind == "srid" else crs or "OGC:CRS84")
    except CRSError:
        if options.crs is not None:
            return needed_crs(options)
        raise ValueError(
            "the file's CRS cannot be read. Specify it, as in crs='EPSG:4326' (--crs EPSG:4326)."
        ) from None
    return resolve_crs(declared, options)


def locate_columns(
    schema: pa.Schema, options: ReadOptions, *, native: Mapping[str, str] = MappingProxyType({})
) -> tuple[Names, list[str], Any]:
    """Return the columns of user and time, of the points or of x and y, and the CRS."""
    names, places, crs = _locate(schema, options, native)
    _check_types(schema, names, places)
    return names, places, crs


def _check_types(schema: pa.Schema, names: Names, places: list[str]) -> None:
    """Raise TypeError or ValueError if columns hold values that are not of their role."""
    for name, check in (
        (names.user, table_columns.check_user_type),
        (names.time, table_times.check_time_type),
        (names.segment, table_segments.check_segment_type),
    ):
        if name is not None:
            check(schema.field(str(name)).type, name)
    if names.time is not None:
        _check_zone(schema.field(str(names.time)))
    if len(places) == 1:
        _check_point_type(schema.field(places[0]).type)
    else:
        _numbers(pa.schema([schema.field(name) for name in dict.fromkeys(places)]).empty_table(), places)


def _check_zone(field: pa.Field) -> None:
    """Raise ValueError if times have a zone that is not known here."""
    if not pa.types.is_timestamp(field.type) or field.type.tz is None:
        return
    try:
        pa.array([], field.type).to_pandas()
    except (KeyError, ValueError, pa.ArrowException):
        raise ValueError(
            f"the time zone of column {field.name!r} is {shown(field.type.tz)}, which is not known here. Convert the "
            "times to UTC, or install tzdata."
        ) from None


def _locate(schema: pa.Schema, options: ReadOptions, native: Mapping[str, str]) -> tuple[Names, list[str], Any]:
    metadata, options = schema.metadata or {}, options.fitting(schema.names)
    roles = parse_roles(metadata.get(METADATA_KEY.encode()))
    located = None if options.lon or options.lat else _geometry_column(schema, options, native)
    if located is not None:
        geometry, crs = located
        others = [name for name in schema.names if name != geometry]
        return table_columns.find_names(others, options, geometry=geometry, roles=roles), [geometry], crs
    try:
        names = table_columns.find_names(schema.names, options, roles=roles)
        return names, [str(names.lon), str(names.lat)], table_columns.crs_of(names, options)
    except ValueError as error:
        has_both = all(candidates_for(schema.names, known) for known in (LONGITUDES[:-1], LATITUDES[:-1]))
        if has_both or b"geo" in metadata:
            raise
        raise ValueError(
            f"the file has no GeoParquet metadata, so columns of coordinates are needed. {error}"
        ) from None


def _geometry_column(schema: pa.Schema, options: ReadOptions, native: Mapping[str, str]) -> tuple[str, Any] | None:
    """Return name and CRS of the geometry; None if the file may only have columns of coordinates."""
    content = (schema.metadata or {}).get(b"geo")
    if content is None and native:
        known = [name for name in native if name in _KNOWN_GEOMETRIES]
        if len(native) > 1 and len(known) != 1:
            raise ValueError(f"the file has several columns of geometries: {listed(list(native))}. Omit all but one.")
        name = (known or list(native))[0]
        if not native[name] and (written := _extension_of(schema.field(name))) and written.get("crs"):
            return name, resolve_crs(written["crs"], options)
        return name, _native_crs(native[name], schema, options)
    if content is None:
        return _bare_geometry(schema, options)
    try:
        geo = json.loads(content)
        name = geo["primary_column"]
        crs = geo["columns"][name].get("crs", "OGC:CRS84")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("the file's GeoParquet metadata cannot be read.") from None
    if name not in schema.names:
        raise ValueError(
            f"the file's GeoParquet metadata names the column of points {name!r}, which the file does not have. Write "
            "it again, or name columns of coordinates with 'lon' (--lon) and 'lat' (--lat)."
        )
    return name, resolve_crs(crs, options)


def _bare_geometry(schema: pa.Schema, options: ReadOptions) -> tuple[str, Any] | None:
    """Return name and CRS of a GeoArrow column, or of a binary column with a known name if `crs` is specified."""
    for field in schema:
        if (extension := _extension_of(field)) is not None:
            return field.name, resolve_crs(extension.get("crs"), options)
    bare = [name for name in schema.names if name in _KNOWN_GEOMETRIES and _is_geometry(schema.field(name).type)]
    if len(bare) != 1:
        return None
    if options.crs is None:
        raise ValueError(
            f"the file has no GeoParquet metadata, so the CRS of {bare[0]!r} is unknown. "
            "Specify it, as in crs='EPSG:4326' (--crs EPSG:4326), or name columns of coordinates with 'lon' (--lon) "
            "and 'lat' (--lat)."
        )
    return bare[0], needed_crs(options)


def _extension_of(field: pa.Field) -> dict[str, Any] | None:
    """Return what a GeoArrow column of points says of itself; None for other columns."""
    metadata = field.metadata or {}
    kind, about = metadata.get(b"ARROW:extension:name", b""), metadata.get(b"ARROW:extension:metadata")
    if isinstance(field.type, pa.ExtensionType):  # known to this process, as when geoarrow is imported
        kind, about = field.type.extension_name.encode(), field.type.__arrow_ext_serialize__()
    return json.loads(about or "{}") if kind in (b"geoarrow.point", b"geoarrow.wkb") else None


def _is_geometry(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) or pa.types.is_fixed_size_list(kind) or is_binary(kind)


def is_binary(kind: pa.DataType) -> bool:
    """Whether a column of this type can hold well-known binary."""
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests)


def resolve_crs(crs: Any, options: ReadOptions) -> Any:
    """Return the CRS of the file, else that of `options`, which must not contradict it."""
    if crs is None and options.crs is None:
        raise ValueError(
            "the file declares that its CRS is unknown. Specify it, as in crs='EPSG:4326' (--crs EPSG:4326)."
        )
    if crs is None:
        return needed_crs(options)
    if options.crs is not None and not agrees(options.crs, crs):
        raise ValueError("the file specifies its CRS, and 'crs' (--crs) is another one. Omit it.")
    return crs


def coordinates_of(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the coordinates of points in WKB or of GeoArrow (structures of x and y, or pairs of numbers).

    Parameters
    ----------
    column : pyarrow.ChunkedArray of length n
        The geometries.

    Returns
    -------
    x, y : numpy.ndarray of float64, shape (n,)
        Coordinates, NaN where there is no point.
    has_z : bool
        Whether any geometry has Z or M.

    Raises
    ------
    ValueError
        If the column is neither.
    """
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], type=column.type.storage_type)
    _check_point_type(column.type)
    if is_binary(column.type):
        return decode_points(column)
    chunk, kind = column.combine_chunks(), column.type
    if pa.types.is_struct(kind):
        x, y = (chunk.field(axis).cast(pa.float64()).to_numpy(zero_copy_only=False) for axis in "xy")
    else:
        flat = chunk.values.slice(chunk.offset * kind.list_size, len(chunk) * kind.list_size)
        x, y = flat.cast(pa.float64()).to_numpy(zero_copy_only=False).reshape(-1, kind.list_size).T[:2]
    is_point = chunk.is_valid().to_numpy(zero_copy_only=False)
    return np.where(is_point, x, np.nan), np.where(is_point, y, np.nan), count_dimensions(kind) > 2


def _check_point_type(kind: pa.DataType) -> None:
    """Raise ValueError if a column of this type holds no points."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    values = list[pa.DataType]()
    if pa.types.is_struct(kind) and all(kind.get_field_index(axis) >= 0 for axis in "xy"):
        values = [kind.field(axis).type for axis in "xy"]
    elif pa.types.is_fixed_size_list(kind) and kind.list_size >= 2:
        values = [kind.value_type]
    if not is_binary(kind) and not (values and all(map(_is_number, values))):
        raise ValueError("its geometries are neither WKB nor GeoArrow points.")


def _is_number(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal))


def count_dimensions(kind: pa.DataType) -> int:
    """Return how many coordinates the points of a GeoArrow type have."""
    return int(kind.num_fields if pa.types.is_struct(kind) else kind.list_size)


def _numbers(table: pa.Table, places: list[str]) -> tuple[np.ndarray, np.ndarray, bool]:
    try:
        x, y = (table.column(name).cast(pa.float64()).to_numpy() for name in places)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(f"the columns {listed(places)} must hold numbers.") from None
    return x, y, False


def as_columns(table: pa.Table, points: tuple[np.ndarray, np.ndarray, bool], *, names: Names, crs: Any) -> Columns:
    """Parse users, times and segments of a table, beside its points."""
    x, y, has_z = points
    times, notes = table_times.parse_times(table.column(names.time), names.time)
    users = None if names.user is None else table_columns.as_users(table.column(names.user), names.user)
    segments = table_columns.as_segments(table, names)
    return Columns(
        x,
        y,
        times=times,
        users=users,
        crs=crs,
        names=names,
        notes=notes,
        has_z=has_z,
        segments=segments,
        written=_written_offset(table.column(names.time)),
    )


def _written_offset(times: pa.ChunkedArray) -> tzinfo | None:
    """Return the offset from UTC of the first times, if they are text."""
    if pa.types.is_timestamp(times.type):
        return None
    return table_times.written_offset(times.slice(0, _FIRST).to_pylist())


def encode_points(x: np.ndarray, y: np.ndarray) -> pa.BinaryArray:
    """Return points in well-known binary.

    Parameters
    ----------
    x, y : numpy.ndarray of float64, shape (n,)
        Coordinates.

    Returns
    -------
    pyarrow.BinaryArray of length n
        Little-endian points without Z.
    """
    points = np.empty(len(x), _POINT)
    points["order"], points["kind"], points["x"], points["y"] = 1, 1, x, y
    offsets = np.arange(len(x) + 1, dtype=np.int32) * _POINT.itemsize
    return pa.BinaryArray.from_buffers(pa.binary(), len(x), [None, pa.py_buffer(offsets), pa.py_buffer(points)])


def decode_points(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return the coordinates of points in well-known binary.

    Plain points, as nearly all programs write them, are copied; anything else becomes shapely objects first.

    Parameters
    ----------
    column : pyarrow.ChunkedArray of length n
        Geometries in any binary type.

    Returns
    -------
    x, y : numpy.ndarray of float64, shape (n,)
        Coordinates, NaN where there is no point.
    has_z : bool
        Whether any geometry has Z or M.
    """
    if pa.types.is_fixed_size_binary(column.type) or pa.types.is_binary_view(column.type):
        column = column.cast(pa.binary())
    points = plain_points(column)
    if points is not None:
        return points["x"].copy(), points["y"].copy(), False
    geometries = shapely.from_wkb(column.to_numpy(), on_invalid="ignore")
    is_point = (shapely.get_type_id(geometries) == shapely.GeometryType.POINT) & ~shapely.is_empty(geometries)
    if not is_point.any() and (words := no_points(geometries)):
        raise ValueError(words)
    x, y = np.full((2, len(geometries)), np.nan)
    x[is_point], y[is_point] = shapely.get_x(geometries[is_point]), shapely.get_y(geometries[is_point])
    return x, y, bool((shapely.get_coordinate_dimension(geometries) > 2).any())


def plain_points(column: pa.ChunkedArray) -> np.ndarray | None:
    """Return the fields of plain points, as `encode_points` writes them, or None if the column holds anything else."""
    has_size = pc.equal(pc.binary_length(column), _POINT.itemsize)
    if column.null_count or not pc.all(has_size, min_count=0).as_py():
        return None
    points = [np.empty(0, _POINT)]
    for chunk in filter(len, column.chunks):
        width = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
        first = np.frombuffer(chunk.buffers()[1], width)[chunk.offset]
        points.append(np.frombuffer(chunk.buffers()[2], _POINT, len(chunk), first))
    joined = np.concatenate(points)
    return joined if np.all(joined["order"] == 1) and np.all(joined["kind"] == 1) else None
