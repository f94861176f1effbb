"""Write traces to files: user, time, location and the mechanism's public parameters, and nothing else."""

import glob
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
from pyarrow import csv
from pyproj import CRS, Transformer

from promesse_geo import check
from promesse_geo.columns import Name
from promesse_geo.mechanisms import Mechanism
from promesse_geo.space import Sphere
from promesse_geo.traces import Traces, as_traces

METADATA_KEY = "promesse_geo"
"""Under this key GeoParquet and GeoPackage files hold the mechanism's name and public parameters, as JSON."""

_ROWS = 1_000_000  # records made into a table at a time
_WKB_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("x", "<f8"), ("y", "<f8")])
_GDAL_EPOCH = "1970-01-01T00:00:00.000Z"  # written where GDAL would write the moment of the run


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
        `.parquet` or `.geoparquet` (GeoParquet), `.gpkg` (GeoPackage), `.csv` (user, ISO time, lon and lat or x and
        y), `.geojson` or `.json` (GeoJSON, always EPSG:4326). The last three keep milliseconds at least.
    mechanism : Mechanism, optional
        Its name and public parameters go into GeoParquet and GeoPackage files.
    force : bool
        Whether to replace a file that is there.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Raises
    ------
    FileExistsError
        If the file is there and `force` is not given.
    FileNotFoundError, ValueError
        If the folder is not there, or the ending is not known.

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
        raise TypeError(check.refuse("mechanism", "write", rule, mechanism))
    save = check_output(path, force=check.flag(force, name="force", owner="write"))
    traces = as_traces(data, user=user, time=time, tells=True)
    about = {} if mechanism is None else {METADATA_KEY: describe_mechanism(mechanism)}
    with renamed_when_whole(Path(path)) as temporary:
        save(traces, temporary, about)


def describe_mechanism(mechanism: Mechanism) -> str:
    """Return the mechanism's name and public parameters as JSON."""
    return json.dumps({"mechanism": type(mechanism).__name__, "parameters": mechanism.parameters()})


def check_output(path: str | os.PathLike[str], *, force: bool) -> Callable[[Traces, Path, dict[str, str]], None]:
    """Return what writes this path's format, or say why the path cannot be written; for a check before long work."""
    path = Path(path)
    if path.suffix.lower() not in _WRITERS:
        raise ValueError(
            f"The output {path.name!r} must end with one of {check.listed(list(_WRITERS))}, which says the format."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {str(path.parent)!r} is not there. Make it first.")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Name a file.")
    if path.exists() and not force:
        raise FileExistsError(f"The file {str(path)!r} is there already. Say force=True (--force) to replace it.")
    return _WRITERS[path.suffix.lower()]


@contextmanager
def renamed_when_whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside a path, and rename what was written under it when that is whole."""
    temporary = path.with_name(f".{path.stem}-{secrets.token_hex(4)}.part{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        for left in path.parent.glob(f"{glob.escape(temporary.name)}*"):  # GDAL may leave a journal beside
            left.unlink()


def _write_parquet(traces: Traces, path: Path, about: dict[str, str]) -> None:
    names = _column_names(traces)
    column = {"encoding": "WKB", "geometry_types": ["Point"], "crs": traces.space.crs.to_json_dict()}
    geo = {"version": "1.1.0", "primary_column": names["geometry"], "columns": {names["geometry"]: column}}
    schema = next(_tables(traces, _with_wkb)).schema.with_metadata({"geo": json.dumps(geo), **about})
    repeated = [names["user"]] if "user" in names else False
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=repeated,
        column_encoding={names["time"]: "DELTA_BINARY_PACKED"},
        write_statistics=repeated,
    ) as writer:
        for table in _tables(traces, _with_wkb):
            writer.write_table(table.cast(schema))


def _write_csv(traces: Traces, path: Path, about: dict[str, str]) -> None:
    schema = next(_tables(traces, _with_text)).schema
    with csv.CSVWriter(path, schema, write_options=csv.WriteOptions(quoting_style="needed")) as writer:
        for table in _tables(traces, _with_text):
            writer.write_table(table)


def _write_geopackage(traces: Traces, path: Path, about: dict[str, str]) -> None:
    _write_by_gdal(traces, path, driver="GPKG", crs=traces.space.crs, about=about)


def _write_geojson(traces: Traces, path: Path, about: dict[str, str]) -> None:
    crs = CRS.from_epsg(4326)
    if traces.space.crs != crs:
        if traces.space.crs.geodetic_crs is None:
            raise ValueError(
                "GeoJSON is in EPSG:4326, and a local grid has no place on the globe. Take another ending."
            )
        change = Transformer.from_crs(traces.space.crs, crs, always_xy=True)
        space = Sphere(crs)
        traces = replace(traces, points=space.points(*change.transform(*traces.coordinates())), space=space)
    _write_by_gdal(traces, path, driver="GeoJSON", crs=crs, about={})


def _write_by_gdal(traces: Traces, path: Path, *, driver: str, crs: CRS, about: dict[str, str]) -> None:
    names = _column_names(traces)
    table = pa.concat_tables(_tables(traces, _with_wkb))
    if traces.names.zone is not None:  # as GeoPackage wants it, and readers lose zones whose offset changes
        number = table.column_names.index(names["time"])
        utc = pa.timestamp(traces.names.unit, "UTC")
        table = table.set_column(number, pa.field(names["time"], utc), table.column(number).cast(utc))
    options = {"GEOMETRY_NAME": names["geometry"], "FID": _free_name(table.column_names)}
    before = pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": _GDAL_EPOCH})
    try:
        pyogrio.write_arrow(
            table,
            path,
            layer="traces",
            driver=driver,
            geometry_name=names["geometry"],
            geometry_type="Point",
            crs=crs.to_wkt(),
            layer_metadata=about or None,
            layer_options=options if driver == "GPKG" else {},
        )
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
        raise OSError(f"The file could not be written. GDAL says: {error}") from error
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": before})


def _free_name(taken: list[str]) -> str:
    """Name for the GeoPackage's own numbers, which no column may have."""
    lower = [name.lower() for name in taken]
    return next(name for name in ("fid", "row", "number", "feature") if name not in lower)


def _column_names(traces: Traces) -> dict[str, str]:
    """Names in the file, by what they hold."""
    names = traces.names
    named = {} if names.user is None else {"user": str(names.user)}
    return named | {"time": "time" if names.time is None else str(names.time), "geometry": str(names.geometry)}


def _tables(traces: Traces, locate: Callable[..., dict[str, pa.Array]]) -> Iterator[pa.Table]:
    """Yield the records as tables; at least one, so that an empty file has its columns."""
    names = _column_names(traces)
    users = _keys(traces.users.tolist())
    times = traces.time_index()
    for start in range(0, max(traces.records, 1), _ROWS):
        rows = slice(start, start + _ROWS)
        columns: dict[str, pa.Array] = {}
        if "user" in names:
            numbers = np.searchsorted(traces.offsets, np.arange(*rows.indices(traces.records)), side="right") - 1
            columns[names["user"]] = users.take(pa.array(numbers))
        columns[names["time"]] = pa.array(times[rows])
        yield pa.table(columns | locate(columns[names["time"]], *traces.space.coordinates(traces.points[rows]), traces))


def _keys(users: list[Any]) -> pa.Array:
    """Integers of 64 bits as such; else text, where both kinds mix too."""
    whole = users and all(not isinstance(user, str) and abs(user) < 2**63 for user in users)
    return pa.array(users, pa.int64()) if whole else pa.array(map(str, users), pa.string())


def _with_wkb(times: pa.Array, x: np.ndarray, y: np.ndarray, traces: Traces) -> dict[str, pa.Array]:
    """Points as well-known binary, made from the coordinates at once."""
    points = np.empty(len(x), _WKB_POINT)
    points["order"], points["kind"], points["x"], points["y"] = 1, 1, x, y
    offsets = np.arange(len(x) + 1, dtype=np.int32) * _WKB_POINT.itemsize
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(points)]
    return {_column_names(traces)["geometry"]: pa.BinaryArray.from_buffers(pa.binary(), len(x), buffers)}


def _with_text(times: pa.Array, x: np.ndarray, y: np.ndarray, traces: Traces) -> dict[str, pa.Array]:
    """Coordinates as numbers, and the times as ISO 8601."""
    across, along = ("lon", "lat") if traces.space.crs.is_geographic else ("x", "y")
    return {_column_names(traces)["time"]: _iso(times), across: pa.array(x), along: pa.array(y)}


def _iso(times: pa.Array) -> pa.Array:
    """ISO 8601 in the unit of the times; UTC has its Z, wall clocks none."""
    zoned = times.type.tz is not None
    texts = times.cast(pa.timestamp(times.type.unit)).cast(pa.string())
    width = len("2008-05-17T10:00:04") + {"s": 0, "ms": 4, "us": 7, "ns": 10}[times.type.unit]
    written = np.empty((len(texts), width + zoned), np.uint8)
    written[:, :width] = np.frombuffer(texts.buffers()[2] or b"", np.uint8, len(texts) * width).reshape(-1, width)
    written[:, 10] = ord("T")
    if zoned:
        written[:, width] = ord("Z")
    offsets = np.arange(len(texts) + 1, dtype=np.int32) * (width + zoned)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(written))


_WRITERS: dict[str, Callable[[Traces, Path, dict[str, str]], None]] = {
    ".parquet": _write_parquet,
    ".geoparquet": _write_parquet,
    ".gpkg": _write_geopackage,
    ".csv": _write_csv,
    ".geojson": _write_geojson,
    ".json": _write_geojson,
}
