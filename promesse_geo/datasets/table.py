"""Tables that people bring or that we wrote: GeoParquet, GeoPackage, GeoJSON and CSV."""

import json
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyogrio
from pyarrow import csv

from promesse_geo import check
from promesse_geo.columns import KNOWN_TIMES, KNOWN_USERS, Name, Names, find_column
from promesse_geo.records import checked_records
from promesse_geo.traces import Traces

KNOWN_LONGITUDES = ("lng", "lon", "long", "longitude", "x")
KNOWN_LATITUDES = ("lat", "latitude", "y")
_KINDS = {"parquet": "GeoParquet", "geopackage": "a GeoPackage", "geojson": "GeoJSON", "csv": "CSV in UTF-8"}
_WKB_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
_GDAL_ERRORS = (
    pyogrio.errors.DataSourceError,
    pyogrio.errors.DataLayerError,
    pyogrio.errors.FeatureError,
    pyogrio.errors.GeometryError,
)
_LINES = csv.ParseOptions(newlines_in_values=True)
_DECIMAL = re.compile(r"[-+]?\d+[.,]\d+")
_WITH_ZONE = r"[T ].*(?:[Zz]|[-+]\d\d(?::?\d\d)?)$"
_WHOLE = r"^(?:0|-?[1-9][0-9]{0,17})$"


def read_table(
    source: str | os.PathLike[str],
    *,
    user: Name = ...,
    time: Name = ...,
    lon: str | None = None,
    lat: str | None = None,
    crs: Any = None,
    as_traces: bool = False,
) -> gpd.GeoDataFrame | Traces:
    """Read a table of records: GeoParquet, GeoPackage, GeoJSON or CSV, told apart by their content.

    Parameters
    ----------
    source : path
        The file.
    user, time : column name, None or ...
        As in `Traces.from_frame`.
    lon, lat : str, optional
        Columns of the coordinates in a CSV; by default known names are looked for.
    crs : anything pyproj takes, optional
        CRS of a CSV's coordinates; EPSG:4326 by default for longitude and latitude.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user, time and geometry under the file's names.

    Raises
    ------
    FileNotFoundError, ValueError, TypeError, KeyError
        If the file is not there, is not such a table, or cannot be used; the message names the file and holds no
        value of it.
    """
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
    kind = table_kind(path)
    try:
        if kind == "parquet":
            traces = _read_parquet(path, user=user, time=time)
        elif kind == "csv":
            traces = _read_csv(path, user=user, time=time, lon=lon, lat=lat, crs=crs)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # GDAL's, on the file's name and version
                traces = _read_by_gdal(path, kind=kind, user=user, time=time)
    except (pa.ArrowException, OSError, *_GDAL_ERRORS) as error:
        raise ValueError(f"{str(path)!r} is cut, damaged or not {_KINDS[kind]}.") from error
    except (ValueError, TypeError, KeyError) as error:
        kept = type(error) if type(error) in (ValueError, TypeError, KeyError) else ValueError
        raise kept(f"{str(path)!r}: {error.args[0]}") from error
    return traces if as_traces else traces.to_frame()


def table_kind(path: Path) -> str:
    """Return "parquet", "geopackage", "geojson" or "csv", from the first bytes."""
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder. Name a file.")
    with path.open("rb") as file:
        head = file.read(64)
    if not head:
        raise ValueError(f"{str(path)!r} is empty.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"SQLite format 3"):
        return "geopackage"
    if head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{"):
        return "geojson"
    return "csv"


def _read_parquet(path: Path, *, user: Name, time: Name) -> Traces:
    """Read points straight from their bytes; anything but plain WKB points goes by GeoPandas."""
    file = pq.ParquetFile(path)
    geometry, encoding, crs = _geometry_column(file.schema_arrow)
    columns = [name for name in file.schema_arrow.names if name != geometry]
    names = Names(
        user=None if user is None else find_column(columns, user, role="user", known=KNOWN_USERS),
        time=find_column(columns, time, role="time", known=KNOWN_TIMES),
        geometry=geometry,
    )
    wanted = [name for name in (names.user, names.time, geometry) if name is not None]
    table = file.read(columns=wanted)
    points = _wkb_points(table.column(geometry)) if encoding == "WKB" else None
    if points is None:
        return Traces.from_frame(gpd.read_parquet(path, columns=wanted), user=names.user, time=names.time)
    records = checked_records(
        points["x"].copy(),
        points["y"].copy(),
        times=table.column(names.time).to_pandas(),
        users=None if names.user is None else table.column(names.user).to_pandas(),
        crs=crs,
        names=names,
    )
    return Traces.from_records(records)


def _geometry_column(schema: pa.Schema) -> tuple[str, str, Any]:
    """Name, encoding and CRS of the geometry, from the file's GeoParquet metadata."""
    content = (schema.metadata or {}).get(b"geo")
    if content is None:
        raise ValueError("the file has no GeoParquet metadata, so its geometry and CRS are unknown.")
    try:
        about = json.loads(content)
        name = about["primary_column"]
        encoding, crs = about["columns"][name]["encoding"], about["columns"][name].get("crs", "OGC:CRS84")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("the file's GeoParquet metadata cannot be read.") from None
    if crs is None:
        raise ValueError("the file says that its CRS is unknown. Set it first, for example with gdf.set_crs(4326).")
    return name, encoding, crs


def _wkb_points(column: pa.ChunkedArray) -> np.ndarray | None:
    """The fields of WKB points, or None where the column holds anything else."""
    size = _WKB_POINT.itemsize
    plain = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    if not plain or column.null_count or not pc.all(pc.equal(pc.binary_length(column), size), min_count=0).as_py():
        return None
    chunks = []
    for chunk in column.chunks:
        start = chunk.offset
        width = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
        first = np.frombuffer(chunk.buffers()[1], width)[start] if len(chunk) else 0
        chunks.append(np.frombuffer(chunk.buffers()[2], np.uint8, len(chunk) * size, first) if len(chunk) else b"")
    points = np.concatenate([np.frombuffer(chunk, _WKB_POINT) for chunk in chunks] or [np.empty(0, _WKB_POINT)])
    return points if np.all(points["order"] == 1) and np.all(points["kind"] == 1) else None


def _read_csv(path: Path, *, user: Name, time: Name, lon: str | None, lat: str | None, crs: Any) -> Traces:
    columns = _csv_columns(path)
    across = find_column(columns, lon or ..., role="lon", known=KNOWN_LONGITUDES)
    along = find_column(columns, lat or ..., role="lat", known=KNOWN_LATITUDES)
    if crs is None:
        if across == "x" or along == "y":
            raise ValueError("the coordinates are x and y: say in which CRS, as in crs='EPSG:32631'.")
        crs = "EPSG:4326"
    names = Names(
        user=None if user is None else find_column(columns, user, role="user", known=KNOWN_USERS),
        time=find_column(columns, time, role="time", known=KNOWN_TIMES),
    )
    types = {across: pa.float64(), along: pa.float64()} | ({} if names.user is None else {names.user: pa.string()})
    options = csv.ConvertOptions(
        include_columns=[*types, names.time],
        column_types=types,
        null_values=[""],  # a user may be called NA
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    with _without_values(columns):
        table = csv.read_csv(path, parse_options=_LINES, convert_options=options)
    records = checked_records(
        table.column(across).to_numpy(),
        table.column(along).to_numpy(),
        times=_as_times(table.column(names.time).to_pandas(), names.time),
        users=None if names.user is None else _as_users(table.column(names.user)),
        crs=crs,
        names=names,
    )
    return Traces.from_records(records)


def _csv_columns(path: Path) -> list[str]:
    """The names in the first line, which must be names."""
    with pa.input_stream(str(path)) as file:
        if b"\0" in file.read(4096):
            raise ValueError("it is neither GeoParquet, GeoPackage or GeoJSON nor text in UTF-8.")
    with _without_values(), csv.open_csv(path, parse_options=_LINES) as reader:
        columns = list(reader.schema.names)
    if any(_DECIMAL.fullmatch(part) for column in columns for part in re.split(r"[;|\s]", column)):
        raise ValueError("its first line holds values, not the names of columns.")
    return columns


@contextmanager
def _without_values(columns: Sequence[str] = ()) -> Iterator[None]:
    """Say what is wrong with a CSV without showing the line, as pyarrow does."""
    try:
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        words = "its lines cannot be read as values separated by commas, in UTF-8."
        if counts := re.search(r"Expected (\d+) columns, got (\d+)", str(error)):
            names, values = (int(count) for count in counts.groups())
            named = f"{check.counted(names, 'column')} separated by commas"
            words = f"its first line names {named}, but a line holds {check.counted(values, 'value')}."
        elif number := re.search(r"In CSV column #(\d+): CSV conversion error to double", str(error)):
            words = f"the column {columns[int(number[1])]!r} holds something that is not a number."
        raise ValueError(words) from None


def _as_users(column: pa.ChunkedArray) -> pd.Series:
    """Integers where every key is written as an integer is: 017 and 1e5 are text."""
    if pc.all(pc.match_substring_regex(column.unique(), _WHOLE), min_count=0).as_py():
        column = column.cast(pa.int64())
    return column.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)


def _as_times(column: pd.Series, name: Any) -> pd.Series:
    """Times from ISO 8601 texts, in UTC where they have a zone; other columns as they are."""
    if not pd.api.types.is_string_dtype(column):
        return column
    zoned = column.dropna().str.contains(_WITH_ZONE)
    if zoned.any() and not zoned.all():
        raise ValueError(f"the time column {name!r} mixes times with and without a zone.")
    try:
        return pd.to_datetime(column, format="ISO8601", utc=bool(zoned.any()))
    except ValueError:
        example = "2008-05-17T10:00:04Z"
        raise ValueError(f"the time column {name!r} holds texts that are no times such as {example}.") from None


def _read_by_gdal(path: Path, *, kind: str, user: Name, time: Name) -> Traces:
    layer = _layer(path)
    about = pyogrio.read_info(path, layer=layer)
    columns = list(about["fields"])
    found_user = None if user is None else find_column(columns, user, role="user", known=KNOWN_USERS)
    found_time = find_column(columns, time, role="time", known=KNOWN_TIMES)
    frame = pyogrio.read_dataframe(
        path,
        layer=layer,
        columns=[column for column in (found_user, found_time) if column is not None],
        **({"DATE_AS_STRING": "YES"} if kind == "geojson" else {}),  # GDAL takes a user such as 2024-01-01 for a date
    )
    frame[found_time] = _as_times(frame[found_time], found_time)
    name = about["geometry_name"] or "geometry"
    frame = frame.rename(columns={frame.geometry.name: name}).set_geometry(name)
    return Traces.from_frame(frame, user=found_user, time=found_time)


def _layer(path: Path) -> str:
    """The one layer that has a geometry."""
    layers = [name for name, geometry in pyogrio.list_layers(path) if geometry is not None]
    if not layers:
        raise ValueError("it holds no layer with a geometry, or is cut or damaged.")
    if len(layers) > 1:
        raise ValueError(f"it holds several layers, and traces are one: {check.listed(layers)}.")
    return layers[0]
