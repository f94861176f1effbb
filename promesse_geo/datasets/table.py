"""Tables that people bring or that we wrote: GeoParquet, GeoPackage, GeoJSON and CSV."""

import json
import os
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

from promesse_geo.columns import KNOWN_TIMES, KNOWN_USERS, Name, Names, find_column
from promesse_geo.records import checked_records
from promesse_geo.traces import Traces

KNOWN_LONGITUDES = ("lng", "lon", "long", "longitude", "x")
KNOWN_LATITUDES = ("lat", "latitude", "y")
_WKB_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])


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
        If the file is not there, is not such a table, or cannot be used; the message names the file.
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
            frame = pyogrio.read_dataframe(path)
            traces = Traces.from_frame(frame, user=user, time=time)
    except (ValueError, TypeError, KeyError, pa.ArrowException, pyogrio.errors.DataSourceError) as error:
        words = error.args[0] if error.args else type(error).__name__
        kept = type(error) if type(error) in (ValueError, TypeError, KeyError) else ValueError
        raise kept(f"{str(path)!r}: {words}") from error
    return traces if as_traces else traces.to_frame()


def table_kind(path: Path) -> str:
    """Return "parquet", "geopackage", "geojson" or "csv", from the first bytes."""
    with path.open("rb") as file:
        head = file.read(64)
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
    about = json.loads((file.schema_arrow.metadata or {}).get(b"geo", b"{}"))
    if not about:
        raise ValueError("the file has no GeoParquet metadata, so its geometry and CRS are unknown.")
    geometry = about["primary_column"]
    column = about["columns"][geometry]
    columns = [name for name in file.schema_arrow.names if name != geometry]
    names = Names(
        user=None if user is None else find_column(columns, user, role="user", known=KNOWN_USERS),
        time=find_column(columns, time, role="time", known=KNOWN_TIMES),
        geometry=geometry,
    )
    wanted = [name for name in (names.user, names.time, geometry) if name is not None]
    table = file.read(columns=wanted)
    points = _wkb_points(table.column(geometry)) if column["encoding"] == "WKB" else None
    if points is None:
        return Traces.from_frame(gpd.read_parquet(path, columns=wanted), user=names.user, time=names.time)
    records = checked_records(
        points["x"].copy(),
        points["y"].copy(),
        times=table.column(names.time).to_pandas(),
        users=None if names.user is None else table.column(names.user).to_pandas(),
        crs=column.get("crs", "OGC:CRS84"),
        names=names,
    )
    return Traces.from_records(records)


def _wkb_points(column: pa.ChunkedArray) -> np.ndarray | None:
    """The fields of WKB points, or None where the column holds anything else."""
    size = _WKB_POINT.itemsize
    if column.null_count or not pc.all(pc.equal(pc.binary_length(column), size), min_count=0).as_py():
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
    table = csv.read_csv(path)
    columns = list(table.column_names)
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
    times = table.column(names.time).to_pandas()
    if pd.api.types.is_string_dtype(times.dtype):
        times = pd.to_datetime(times, format="ISO8601")
    x, y = (pc.cast(table.column(name), pa.float64()).to_numpy() for name in (across, along))
    records = checked_records(
        x,
        y,
        times=times,
        users=None if names.user is None else table.column(names.user).to_pandas(),
        crs=crs,
        names=names,
    )
    return Traces.from_records(records)
