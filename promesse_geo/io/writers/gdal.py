"""Write points as layers by GDAL: GeoPackage and FlatGeobuf."""

import errno
import mmap
import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyogrio
from pyogrio.errors import CRSError
from pyproj import CRS

from promesse_geo.io.gdal import GDAL_ERRORS, quoted, silent, sqlite_uri
from promesse_geo.io.writers.blocks import PointTable, check_column_names, check_keys, in_milliseconds, with_wkb
from promesse_geo.io.writers.crs import bare_crs

_PROBE = 1 << 20  # bytes
_GDAL_SETTINGS = threading.Lock()  # they are global
_GDAL_EPOCH = "1970-01-01T00:00:00.000Z"  # written where GDAL would write the time of the run
_HEADER_START = 8  # bytes: what a FlatGeobuf file begins with


def write_geopackage(table: PointTable, path: Path) -> None:
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


def write_flatgeobuf(table: PointTable, path: Path) -> None:
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
    table: PointTable, path: Path, *, driver: str, layer_options: Callable[[list[str]], dict[str, str]]
) -> int:
    """Write a layer by GDAL, with times in milliseconds; return the number of its rows.

    `layer_options` returns GDAL's options from the names of all columns.
    """
    check_keys(table.users)
    content = pa.concat_tables(with_wkb(table))
    names = content.column_names
    check_column_names(names, fold=str.lower)
    options = {
        "layer": table.layer,
        "driver": driver,
        "geometry_type": "Point",
        "layer_metadata": table.metadata or None,
        "layer_options": layer_options(names),
    }
    content = pa.table({name: in_milliseconds(content[name]) for name in names})
    with _GDAL_SETTINGS, silent():
        before = pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": _GDAL_EPOCH})
        try:
            crs = bare_crs(table.crs)
            try:
                _write_content(content, path, geometry=table.geometry, options=options | {"crs": _code_or_json(crs)})
            except CRSError:  # GDAL's registry may be older
                _write_content(content, path, geometry=table.geometry, options=options | {"crs": crs.to_json()})
        except GDAL_ERRORS as error:
            raise _incomplete(path) from error
        finally:
            pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": before})
    return len(content)


def _code_or_json(crs: CRS) -> str:
    """Return a code of EPSG, which takes GDAL a fraction of the time, else JSON: GDAL loses units of other WKT."""
    name, code = crs.to_authority() or ("", "")
    return f"EPSG:{code}" if name == "EPSG" and crs == CRS.from_epsg(code) else crs.to_json()


def _write_content(content: pa.Table, path: Path, *, geometry: str, options: dict[str, Any]) -> None:
    """Write a layer by GDAL, from arrow where it reads the times rightly."""
    if any(_has_early_fractions(column) for column in content.columns):
        _write_by_values(content, path, geometry=geometry, options=options)
    else:
        pyogrio.write_arrow(content, path, geometry_name=geometry, **options)


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
