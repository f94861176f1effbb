"""Write traces to files: user, time, location and the mechanism's public parameters, and nothing else."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from promesse_geo.io.fields import (
    WGS84,
    check_keys,
    check_names,
    coordinate_names,
    iso,
    on_the_globe,
    plain_keys,
    write_points,
)
from promesse_geo.io.output import bare_crs, check_file, renamed_when_whole
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import invalid
from promesse_geo.traces.columns import Name
from promesse_geo.traces.space import Sphere
from promesse_geo.traces.traces import Traces, as_traces, freeze
from promesse_geo.validation import check_flag

METADATA_KEY = "promesse_geo"
"""Under this key GeoParquet and GeoPackage files hold the mechanism's name and public parameters, as JSON."""

_ROWS = 1_000_000  # records made into a table at a time
_WKB_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
_TEXT_LIMIT = 2**31  # bytes of text that arrow holds in one array


def write(
    data: gpd.GeoDataFrame | Traces,
    path: str | os.PathLike[str],
    *,
    mechanism: Mechanism | None = None,
    force: bool = False,
    user: Name = ...,
    time: Name = ...,
) -> None:
    """Write traces to a file whose ending says the format.

    The file is written under a temporary name beside and renamed when it is whole.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    path : path
        `.parquet` or `.geoparquet` (GeoParquet), `.gpkg` (GeoPackage), `.csv` (user, ISO time, and lon and lat in
        EPSG:4326 or x and y in any other CRS), `.geojson` or `.json` (GeoJSON, always EPSG:4326). The last three
        keep milliseconds at least. Only GeoParquet keeps zones; those that have no name that others know, or are
        odd seconds off UTC, become UTC there too.
    mechanism : Mechanism, optional
        Its name and public parameters go into GeoParquet and GeoPackage files.
    force : bool
        Whether to replace a file that is there.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Raises
    ------
    FileExistsError
        If the file is there, or came while this was written, and `force` is not given.
    FileNotFoundError, ValueError
        If the folder is not there, the ending is not known, the format cannot keep the names of two columns apart
        or a user's key, or the CRS has no way to that of GeoJSON.

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
    save = check_output(path, force=check_flag(force, name="force", owner="write"))
    traces = _with_known_zone(as_traces(data, user=user, time=time, warns=True))
    about = {} if mechanism is None else {METADATA_KEY: describe_mechanism(mechanism)}
    with renamed_when_whole(Path(path), force=force) as temporary:
        save(traces, temporary, about)


def describe_mechanism(mechanism: Mechanism) -> str:
    """Return the mechanism's name and public parameters as JSON."""
    return json.dumps({"mechanism": type(mechanism).__name__, "parameters": mechanism.parameters()})


def check_output(path: str | os.PathLike[str], *, force: bool) -> Callable[[Traces, Path, dict[str, str]], None]:
    """Return what writes this path's format, or say why the path cannot be written; for a check before long work."""
    path = Path(path)
    check_file(path, list(_WRITERS), force=force)
    return _WRITERS[path.suffix.lower()]


def _write_parquet(traces: Traces, path: Path, about: dict[str, str]) -> None:
    names = _column_names(traces)
    column = {"encoding": "WKB", "geometry_types": ["Point"], "crs": bare_crs(traces.space.crs).to_json_dict()}
    geo = {"version": "1.1.0", "primary_column": names["geometry"], "columns": {names["geometry"]: column}}
    schema = next(_tables(traces, _with_wkb)).schema.with_metadata({"geo": json.dumps(geo), **about})
    repeated = [names["user"]] if "user" in names else False
    with (
        path.open("wb") as file,  # arrow opens no name that is not UTF-8
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=repeated,
            column_encoding={names["time"]: "DELTA_BINARY_PACKED"},
            write_statistics=repeated,
        ) as writer,
    ):
        for table in _tables(traces, _with_wkb):
            writer.write_table(table.cast(schema))


def _write_csv(traces: Traces, path: Path, about: dict[str, str]) -> None:
    check_keys(traces.users)
    schema = next(_tables(traces, _with_text)).schema
    options = csv.WriteOptions(quoting_style="needed")
    with path.open("wb") as file, csv.CSVWriter(file, schema, write_options=options) as writer:
        for table in _tables(traces, _with_text):
            writer.write_table(table)


def _write_geojson(traces: Traces, path: Path, about: dict[str, str]) -> None:
    if traces.space.crs != WGS84:
        space = Sphere(WGS84)
        places = on_the_globe(*traces.coordinates(), traces.space.crs)
        traces = replace(traces, points=freeze(space.points(*places)), space=space)
    _write_by_gdal(traces, path, {})


def _write_by_gdal(traces: Traces, path: Path, about: dict[str, str]) -> None:
    check_keys(traces.users)
    table, names = pa.concat_tables(_tables(traces, _with_wkb)), _column_names(traces)
    write_points(table, path, layer="traces", geometry=names["geometry"], crs=traces.space.crs, about=about)


def _column_names(traces: Traces) -> dict[str, str]:
    """Names in the file, by what they hold."""
    names = traces.names
    named = {} if names.user is None else {"user": str(names.user)}
    return named | {"time": "time" if names.time is None else str(names.time), "geometry": str(names.geometry)}


def _with_known_zone(traces: Traces) -> Traces:
    """The traces in UTC where arrow has no name for their zone, or one that nobody else could find."""
    try:
        pa.lib.string_to_tzinfo(pa.lib.tzinfo_to_string(traces.names.zone or UTC))
    except (pa.ArrowException, TypeError, ValueError, LookupError):
        return replace(traces, names=replace(traces.names, zone=UTC))
    return traces


def _tables(traces: Traces, locate: Callable[..., list[tuple[str, pa.Array]]]) -> Iterator[pa.Table]:
    """Yield the records as tables; at least one, so that an empty file has its columns."""
    names = _column_names(traces)
    users, step = _keys(traces.users.tolist())
    kind = pa.string() if pa.types.is_large_string(users.type) else users.type
    times = traces.time_index()
    for start in range(0, max(traces.records, 1), step):
        rows = slice(start, start + step)
        columns = locate(pa.array(times[rows]), *traces.space.coordinates(traces.points[rows]), traces)
        if "user" in names:
            numbers = np.searchsorted(traces.offsets, np.arange(*rows.indices(traces.records)), side="right") - 1
            columns.insert(0, (names["user"], users.take(pa.array(numbers)).cast(kind)))
        check_names([name for name, _ in columns])
        yield pa.table(dict(columns))


def _keys(users: list[Any]) -> tuple[pa.Array, int]:
    """Integers of 64 bits as such, else text, where both kinds mix too; and how many records a table can hold."""
    keys = plain_keys(users)
    if keys and not isinstance(keys[0], str):
        return pa.array(keys, pa.int64()), _ROWS
    sizes = [len(str(key).encode()) for key in keys]
    kind = pa.string() if sum(sizes) < _TEXT_LIMIT else pa.large_string()
    return pa.array(keys, kind), max(min(_ROWS, (_TEXT_LIMIT - 1) // max([1, *sizes])), 1)


def _with_wkb(times: pa.Array, x: np.ndarray, y: np.ndarray, traces: Traces) -> list[tuple[str, pa.Array]]:
    """Points as well-known binary, made from the coordinates at once."""
    points = np.empty(len(x), _WKB_POINT)
    points["order"], points["kind"], points["x"], points["y"] = 1, 1, x, y
    offsets = np.arange(len(x) + 1, dtype=np.int32) * _WKB_POINT.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(points)]
    names = _column_names(traces)
    return [(names["time"], times), (names["geometry"], pa.BinaryArray.from_buffers(pa.binary(), len(x), buffers))]


def _with_text(times: pa.Array, x: np.ndarray, y: np.ndarray, traces: Traces) -> list[tuple[str, pa.Array]]:
    """Coordinates as numbers, and the times as ISO 8601."""
    across, along = coordinate_names(traces.space.crs)
    return [(_column_names(traces)["time"], iso(times)), (across, pa.array(x)), (along, pa.array(y))]


_WRITERS: dict[str, Callable[[Traces, Path, dict[str, str]], None]] = {
    ".parquet": _write_parquet,
    ".geoparquet": _write_parquet,
    ".gpkg": _write_by_gdal,
    ".csv": _write_csv,
    ".geojson": _write_geojson,
    ".json": _write_geojson,
}
