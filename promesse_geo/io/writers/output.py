"""Write traces to GeoParquet, GeoPackage, FlatGeobuf, GeoJSON, GPX and CSV, and points of interest to all but GPX."""

import errno
import json
import mmap
import os
import sqlite3
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyogrio
from pyarrow import csv
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from promesse_geo.io.atomic import atomic_path, check_target, target_of
from promesse_geo.io.gdal import GDAL_ERRORS, quoted, silent, sqlite_uri
from promesse_geo.io.parquet_table import encode_points
from promesse_geo.io.table_columns import METADATA_KEY
from promesse_geo.io.writers.gpx import GpxRows, check_names, gpx_pieces
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import counted, invalid, listed, warn
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_flag, check_path

_WGS84 = CRS.from_epsg(4326)
_ROWS = 1_000_000  # records per block
_TEXT_LIMIT = 2**31  # bytes of text in one array of arrow
_JSON_ROWS = 1 << 16  # features per piece of GeoJSON
_BETWEEN = ",\n"  # features of GeoJSON
_GEOJSON_START = """\
{{
"type": "FeatureCollection",
"name": {layer},
"crs": {{ "type": "name", "properties": {{ "name": "urn:ogc:def:crs:OGC:1.3:CRS84" }} }},
"features": [
"""
_PROBE = 1 << 20  # bytes
_GDAL_SETTINGS = threading.Lock()  # they are global
_GDAL_EPOCH = "1970-01-01T00:00:00.000Z"  # written where GDAL would write the time of the run
_HEADER_START = 8  # bytes: what a FlatGeobuf file begins with
_CRS_TEXTS = {"remarks", "scope", "area", "usages"}


class _Block(NamedTuple):
    """Consecutive rows: named columns, and the coordinates of the points."""

    columns: list[tuple[str, pa.Array]]
    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class _PointTable:
    """Points with columns, to be written to a file.

    Parameters
    ----------
    blocks : iterable of _Block
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
    """

    blocks: Iterable[_Block]
    geometry: str
    crs: CRS
    layer: str
    users: Iterable[Any]
    metadata: dict[str, str]


def write(
    data: gpd.GeoDataFrame | Traces,
    path: str | os.PathLike[str],
    *,
    mechanism: Mechanism | None = None,
    force: bool = False,
    user: Name = ...,
    time: Name = ...,
) -> None:
    """Write traces to a file in the format of its extension: user, time and location, and segments if there are breaks.

    The file is written in a temporary folder beside it and renamed when it is complete. A new file is for its owner
    only (mode 0600), unless a mechanism is named. A replaced file keeps its permissions; of a link, the file that it
    points to is replaced.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    path : path
        `.parquet` or `.geoparquet` (GeoParquet), `.gpkg` (GeoPackage), `.fgb` (FlatGeobuf, without a spatial index,
        so that records keep their order), `.csv` (user, ISO time, and lon and lat in EPSG:4326 or x and y in any other
        CRS), `.geojson` or `.json` (GeoJSON, always EPSG:4326), `.gpx` (GPX 1.1, always EPSG:4326: a track for each
        user, named by the user key as text). GeoPackage, FlatGeobuf and GeoJSON cut times to milliseconds. Only
        GeoParquet keeps time zones; a zone that arrow does not know becomes UTC there too. Times without a zone are
        written without one; other programs take those of GPX for UTC, of which a warning reminds.
    mechanism : Mechanism, optional
        Its name and public parameters go into GeoParquet, GeoPackage and FlatGeobuf files. By default the mechanism
        that the data says it was protected with, if any.
    force : bool
        Whether to overwrite an existing file.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Raises
    ------
    FileExistsError
        If the file exists, or was created meanwhile, and `force` is False.
    FileNotFoundError
        If the folder does not exist.
    OSError
        If the file cannot be written, for example because no space is left. An existing file is then unchanged.
    ValueError
        If the extension is unknown, the format cannot keep a user key or distinguish the names of two columns, or the
        CRS cannot be transformed to that of GeoJSON and GPX.

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> pg.write(pg.make_city(users=2, days=1), folder / "city.parquet")
    >>> [file.name for file in folder.iterdir()]
    ['city.parquet']
    """
    if not isinstance(mechanism, (Mechanism, type(None))):
        rule = "the mechanism that made the data, such as pg.Promesse(200), or None"
        raise TypeError(invalid("mechanism", "write", rule, mechanism))
    check_output(path, force=check_flag(force, name="force", owner="write"))
    traces = as_traces(data, user=user, time=time, warns=True)
    protection = traces.protection if mechanism is None else mechanism.description()
    metadata = {METADATA_KEY: describe(protection, segment=traces.output_names().segment)}
    table = _PointTable(
        _trace_blocks(traces), str(traces.names.geometry), traces.space.crs, "traces", traces.users, metadata
    )
    _write(table, Path(path), force=force, private=protection is None)


def write_pois(pois: gpd.GeoDataFrame, path: str | os.PathLike[str], *, force: bool) -> None:
    """Write points of interest, as `pois` returns them, to a file in the format of its extension; see `write`.

    Raises
    ------
    FileExistsError, FileNotFoundError, OSError
        If the file exists and `force` is False, or it cannot be written.
    ValueError
        As for `write`.
    """
    check_output(path, force=force, holds_traces=False)
    geometry = pois.geometry
    columns = [(str(name), _as_array(column)) for name, column in pois.drop(columns=geometry.name).items()]
    users = [key for name in pois.columns[: pois.columns.get_loc("arrival")] for key in pois[name].unique()]
    block = _Block(columns, geometry.x.to_numpy(), geometry.y.to_numpy())
    table = _PointTable([block], str(geometry.name), pois.crs, "pois", users, {})
    _write(table, Path(path), force=force, private=True)


def describe(protection: dict[str, Any] | None, *, segment: Hashable | None = None) -> str:
    """Return a mechanism's description, null if there is none, and the name of the column of segments, as JSON."""
    about = protection or {"mechanism": None}
    return json.dumps(about if segment is None else {**about, "segment": str(segment)})


def check_output(path: str | os.PathLike[str], *, force: bool, holds_traces: bool = True) -> None:
    """Raise if no file of traces, or of points of interest, can be written to a path: a check before long work.

    Raises
    ------
    TypeError
        If it is no path.
    ValueError
        If the extension is unknown or of traces only, or GDAL cannot write to the folder.
    FileExistsError, FileNotFoundError, IsADirectoryError
        If the file exists and `force` is False, its folder does not exist, or it is a folder.
    """
    ending = check_path(path, name="path", owner="write").suffix.lower()
    endings = [known for known in WRITERS if holds_traces or known != ".gpx"]
    if ending not in endings:
        raise ValueError(
            f"The output {os.fspath(path)!r} must end with one of {listed(endings)}, which sets the format."
        )
    check_target(path, force=force)
    folder = str(target_of(Path(path)).parent)
    if ending in (".gpkg", ".fgb") and (not folder.isprintable() or "!" in folder):
        raise ValueError(
            f"The folder {folder!r} has a '!', a line break or bytes that are not UTF-8 in its path, which GDAL cannot "
            "reach. Write to another folder, or in another format."
        )


def _write(table: _PointTable, path: Path, *, force: bool, private: bool) -> None:
    with atomic_path(path, force=force, private=private) as temporary:
        WRITERS[path.suffix.lower()](table, temporary)


# Blocks of traces and points of interest.


def _trace_blocks(traces: Traces) -> Iterator[_Block]:
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
        yield _Block(columns, *traces.space.coordinates(traces.points[rows]))


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


# Formats.


def _write_parquet(table: _PointTable, path: Path) -> None:
    column = {"encoding": "WKB", "geometry_types": ["Point"], "crs": bare_crs(table.crs).to_json_dict()}
    geo = {"version": "1.1.0", "primary_column": table.geometry, "columns": {table.geometry: column}}
    blocks = _with_wkb(table)
    first = next(blocks)
    schema = first.schema.with_metadata({"geo": json.dumps(geo), **table.metadata})
    repeated = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_integer(field.type)]
    times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    with (
        path.open("wb") as file,  # arrow opens no name that is not UTF-8
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=repeated or False,
            column_encoding=dict.fromkeys(times, "DELTA_BINARY_PACKED"),
            write_statistics=repeated or False,
            write_page_checksum=True,
        ) as writer,
    ):
        for block in chain([first], blocks):
            writer.write_table(block.cast(schema))


def _write_csv(table: _PointTable, path: Path) -> None:
    _check_keys(table.users)
    x_name, y_name = coordinate_names(table.crs)

    def as_text(block: _Block) -> pa.Table:
        columns = [(name, _as_iso(array)) for name, array in block.columns]
        return _as_table([*columns, (x_name, pa.array(block.x)), (y_name, pa.array(block.y))])

    blocks = map(as_text, table.blocks)
    first = next(blocks)
    options = csv.WriteOptions(quoting_style="needed")
    with path.open("wb") as file, csv.CSVWriter(file, first.schema, write_options=options) as writer:
        for block in chain([first], blocks):
            writer.write_table(block)


def _write_geojson(table: _PointTable, path: Path) -> None:
    """Write GeoJSON in the form that GDAL gives it, but with all digits of the coordinates."""
    _check_keys(table.users)
    blocks = iter(_in_wgs84(table, label="GeoJSON"))
    first = next(blocks)
    # GDAL, by which most programs read it, does not distinguish capitals and has a column of its own
    _check_column_names([*(name for name, _ in first.columns), table.geometry, "OGC_FID"], fold=str.lower)
    with path.open("wb") as file:
        file.write(_GEOJSON_START.format(layer=json.dumps(table.layer)).encode())
        separator = ""
        for features in chain.from_iterable(map(_as_features, chain([first], blocks))):
            file.write(separator.encode())
            file.write(memoryview(features)[len(_BETWEEN) :])
            separator = _BETWEEN
        file.write(b"\n]\n}\n")


def _as_features(block: _Block) -> Iterator[pa.Buffer]:
    """Yield the text of features, each after `_BETWEEN`."""
    kind = pa.large_string()
    for start in range(0, len(block.x), _JSON_ROWS):
        rows = slice(start, start + _JSON_ROWS)
        parts: list[Any] = [_BETWEEN + '{ "type": "Feature", "properties": {']
        for number, (name, array) in enumerate(block.columns):
            parts += [f"{',' if number else ''} {json.dumps(name, ensure_ascii=False)}: ", _as_json(array[rows])]
        x, y = (pa.array(axis[rows]).cast(pa.string()) for axis in (block.x, block.y))
        parts += [' }, "geometry": { "type": "Point", "coordinates": [ ', x, ", ", y, " ] } }", ""]
        texts = [pa.scalar(part, kind) if isinstance(part, str) else part.cast(kind) for part in parts]
        joined = pc.binary_join_element_wise(*texts)
        yield joined.buffers()[2]


def _as_json(array: pa.Array) -> pa.Array:
    """Return values as JSON text."""
    if pa.types.is_timestamp(array.type):
        return pc.binary_join_element_wise('"', _as_iso(_in_milliseconds(array)), '"', "")
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_finite(array), array, None)
    if not pa.types.is_string(array.type) and not pa.types.is_large_string(array.type):
        return pc.fill_null(array.cast(pa.string()), "null")
    encoded = array.dictionary_encode()
    texts = [json.dumps(text, ensure_ascii=False) for text in encoded.dictionary.to_pylist()]
    return pa.array(texts, array.type).take(encoded.indices)


def _write_gpx(table: _PointTable, path: Path) -> None:
    """Write GPX with all digits of times and coordinates."""
    check_names(table.users)

    def as_rows(block: _Block) -> GpxRows:
        number = next(i for i, (_, array) in enumerate(block.columns) if pa.types.is_timestamp(array.type))
        arrays = [array for _, array in block.columns]
        user = arrays[0] if number else None
        segment = arrays[number + 1] if len(arrays) > number + 1 else None
        if len(block.x) and arrays[number].type.tz is None:
            naive.append(True)
        return GpxRows(user, segment, _as_iso(arrays[number]), block.x, block.y)

    naive: list[bool] = []
    with path.open("wb") as file:
        for piece in gpx_pieces(map(as_rows, _in_wgs84(table, label="GPX"))):
            file.write(piece)
    if naive:
        warn(
            "The times have no zone, so GPX has them without one. Other programs take them for UTC; set the zone "
            "(tz_localize) to write true times."
        )


def _write_geopackage(table: _PointTable, path: Path) -> None:
    """Write a GeoPackage by GDAL, without the time of the run; times are cut to milliseconds.

    Raises
    ------
    OSError
        If it cannot be written, or not completely: GDAL only logs that it could not write the spatial index.
    """

    def options(names: list[str]) -> dict[str, str]:
        folded = [name.lower() for name in names]
        free = next(name for name in ("fid", "row", "number", "feature") if name not in folded)  # for numbers of rows
        return {"GEOMETRY_NAME": table.geometry, "FID": free}

    rows = _write_layer(table, path, driver="GPKG", layer_options=options)
    if not _is_complete(path, rows=rows, layer=table.layer, geometry=table.geometry):
        raise _incomplete(path)


def _write_flatgeobuf(table: _PointTable, path: Path) -> None:
    """Write FlatGeobuf by GDAL, without a spatial index, which would order the records by their places.

    Raises
    ------
    OSError
        If it cannot be written, or not completely.
    """
    rows = _write_layer(table, path, driver="FlatGeobuf", layer_options=lambda names: {"SPATIAL_INDEX": "NO"})
    if not _has_features(path, rows=rows):
        raise _incomplete(path)


def _write_layer(
    table: _PointTable, path: Path, *, driver: str, layer_options: Callable[[list[str]], dict[str, str]]
) -> int:
    """Write a layer by GDAL, with times in milliseconds; return the number of its rows.

    `layer_options` returns GDAL's options from the names of all columns.
    """
    _check_keys(table.users)
    content = pa.concat_tables(_with_wkb(table))
    names = content.column_names
    _check_column_names(names, fold=str.lower)
    options = {
        "layer": table.layer,
        "driver": driver,
        "geometry_type": "Point",
        "crs": bare_crs(table.crs).to_json(),  # GDAL loses units of WKT that has no authority's code
        "layer_metadata": table.metadata or None,
        "layer_options": layer_options(names),
    }
    content = pa.table({name: _in_milliseconds(content[name]) for name in names})
    with _GDAL_SETTINGS, silent():
        before = pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": _GDAL_EPOCH})
        try:
            if any(_has_early_fractions(column) for column in content.columns):
                _write_by_values(content, path, geometry=table.geometry, options=options)
            else:
                pyogrio.write_arrow(content, path, geometry_name=table.geometry, **options)
        except GDAL_ERRORS as error:
            raise _incomplete(path) from error
        finally:
            pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": before})
    return len(content)


WRITERS: dict[str, Callable[[_PointTable, Path], None]] = {
    ".parquet": _write_parquet,
    ".geoparquet": _write_parquet,
    ".gpkg": _write_geopackage,
    ".fgb": _write_flatgeobuf,
    ".csv": _write_csv,
    ".gpx": _write_gpx,
    ".geojson": _write_geojson,
    ".json": _write_geojson,
}
"""What writes a file, by its extension."""


def _has_early_fractions(column: pa.ChunkedArray) -> bool:
    """Whether a column has times before 1970 between seconds, which GDAL reads wrongly from arrow: 59.3 as 0."""
    if column.type not in (pa.timestamp("ms"), pa.timestamp("ms", "UTC")):
        return False
    times = column.cast(pa.int64()).drop_null().to_numpy()
    early = times[times < 0]
    return bool(np.any(early % 1000))


def _write_by_values(content: pa.Table, path: Path, *, geometry: str, options: dict[str, Any]) -> None:
    """Write a layer by GDAL from arrays of values, which is slower."""
    fields = [name for name in content.column_names if name != geometry]
    zoned = [name for name in fields if getattr(content.field(name).type, "tz", None)]
    pyogrio.raw.write(
        path,
        content[geometry].to_numpy(),
        [content[name].to_numpy() for name in fields],
        fields,
        gdal_tz_offsets={name: np.full(len(content), 100) for name in zoned},  # GDAL's number of UTC
        **options,
    )


def _is_complete(path: Path, *, rows: int, layer: str, geometry: str) -> bool:
    """Whether a GeoPackage has all its pages, and as many features and entries of the index as there are rows."""
    try:
        with closing(sqlite3.connect(sqlite_uri(path), uri=True)) as database:
            (pages,), (size,) = (database.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
            tables = (layer, f"rtree_{layer}_{geometry}_rowid")
            counts = [database.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0] for name in tables]
    except sqlite3.Error:
        return False
    return pages * size == path.stat().st_size and counts == [rows, rows]


def _has_features(path: Path, *, rows: int) -> bool:
    """Whether a FlatGeobuf file without an index ends after as many features as there are rows."""
    size = path.stat().st_size if path.is_file() else 0
    if size < _HEADER_START + 4:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        end, features = _HEADER_START, -1  # the header, and each feature, after its size
        while end + 4 <= size:
            end += 4 + int.from_bytes(content[end : end + 4], "little")
            features += 1
    return end == size and features == rows


def _incomplete(path: Path) -> OSError:
    """Return the error for a file that GDAL did not write completely: the system's, if writing more fails too."""
    try:
        with path.open("ab") as file:
            file.write(bytes(_PROBE))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error
    return OSError(errno.ENOSPC, "GDAL wrote only a part of it, most likely because there was no space left")


def _with_wkb(table: _PointTable) -> Iterator[pa.Table]:
    """Yield the blocks as tables with points in well-known binary."""
    return (_as_table([*block.columns, (table.geometry, encode_points(block.x, block.y))]) for block in table.blocks)


def _as_table(columns: list[tuple[str, pa.Array]]) -> pa.Table:
    _check_column_names([name for name, _ in columns])
    return pa.table(dict(columns))


def _as_iso(array: pa.Array) -> pa.Array:
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


def _in_milliseconds(column: pa.Array | pa.ChunkedArray) -> Any:
    """Return times as GDAL keeps them, in UTC, for offsets change; all else as it is."""
    kind = column.type
    if not pa.types.is_timestamp(kind):
        return column
    unit = "s" if kind.unit == "s" else "ms"  # finer, GDAL rounds 59.9996 s up to 60, which no reader accepts
    return column.cast(pa.timestamp(unit, None if kind.tz is None else "UTC"), safe=False)


def _in_wgs84(table: _PointTable, *, label: str) -> Iterable[_Block]:
    """Return the blocks in EPSG:4326, the CRS of the format with this name."""
    return table.blocks if table.crs == _WGS84 else map(partial(_to_wgs84, crs=table.crs, label=label), table.blocks)


def _to_wgs84(block: _Block, *, crs: CRS, label: str) -> _Block:
    try:
        x, y = Transformer.from_crs(crs, _WGS84, always_xy=True).transform(block.x, block.y)
    except ProjError:
        raise ValueError(
            f"{label} is in EPSG:4326, and the CRS of the data cannot be transformed to it: a local grid or another "
            "body has no place on the globe. Use another extension."
        ) from None
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(f"Some points have no place in EPSG:4326, the CRS of {label}. Use another extension.")
    return block._replace(x=x, y=y)


def _check_column_names(names: list[str], *, fold: Callable[[str], str] = str) -> None:
    """Raise ValueError if a file cannot keep the names, or not distinguish them."""
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in "".join(names)):
        raise ValueError("The name of a column holds a NUL or a lone surrogate, which files cannot keep. Rename it.")
    if len({fold(name) for name in names}) < len(names):
        raise ValueError(
            f"The file would have the columns {listed(names)}, two of one name. Rename one of them in the frame"
            f"{'; the format does not distinguish capitals' if fold is str.lower else ''}."
        )


def _check_keys(users: Iterable[Any]) -> None:
    """Raise ValueError if a user key holds a NUL, where all formats but GeoParquet would end it."""
    bad = sum("\0" in str(user) for user in users)
    if bad:
        raise ValueError(
            f"{counted(bad, 'user key holds', 'user keys hold')} a NUL character, which only GeoParquet can "
            "keep. Rename these users, or write GeoParquet."
        )


# CRS.


def coordinate_names(crs: CRS) -> tuple[str, str]:
    """Return the names of coordinates in CSV: lon and lat in WGS 84, else x and y."""
    return ("lon", "lat") if crs.to_2d().equals(_WGS84, ignore_axis_order=True) else ("x", "y")


def bare_crs(crs: CRS) -> CRS:
    """Return a CRS without text of its own: the registry's if it has a code, else without remarks and usages."""
    authority = crs.to_authority()
    known = None if authority is None else CRS.from_authority(*authority)
    if known is not None and known == crs:
        return known
    content = _without_texts(crs.to_json_dict())
    nameless = CRS.from_json_dict(content | {"name": "unknown"})
    return nameless if nameless == crs else CRS.from_json_dict(content)


def has_custom_text(crs: CRS) -> bool:
    """Return whether a CRS has a name, remarks or usages that files would carry and that no registry knows."""
    content, bare = crs.to_json_dict(), bare_crs(crs).to_json_dict()
    has_name = content["name"] not in ("unknown", bare["name"])
    return content != bare and (has_name or bool(_texts(content) - _texts(bare)))


def _without_texts(content: Any) -> Any:
    if isinstance(content, list):
        return [_without_texts(item) for item in content]
    if isinstance(content, dict):
        return {key: _without_texts(item) for key, item in content.items() if key not in _CRS_TEXTS}
    return content


def _texts(content: Any) -> set[str]:
    """Remarks and usages at any depth, as text."""
    if isinstance(content, list):
        return set().union(*map(_texts, content))
    if not isinstance(content, dict):
        return set()
    texts = {str(item) for key, item in content.items() if key in _CRS_TEXTS}
    return texts.union(*map(_texts, content.values()))
