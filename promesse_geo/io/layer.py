"""Read GeoPackage and GeoJSON by GDAL, and count what GDAL silently drops."""

import json
import mmap
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyogrio
from pyogrio.errors import DataLayerError, DataSourceError, FeatureError, GeometryError

from promesse_geo.io.batch import DroppedRecords
from promesse_geo.io.parquet_table import as_columns, decode_points, resolve_crs
from promesse_geo.io.table_columns import Columns, ReadOptions, find_user_and_time
from promesse_geo.messages import listed

GDAL_ERRORS = (DataSourceError, DataLayerError, FeatureError, GeometryError)
_LONGEST = 1 << 20  # bytes of one feature
_MEMBERS = (b'"Feature"', b'"geometry"')


def read_geopackage(path: Path, file: pa.NativeFile, options: ReadOptions) -> Columns:
    """Read a layer of a GeoPackage; check its pages first, since GDAL silently stops at a damaged one."""
    try:
        with closing(sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True)) as database:
            is_intact = database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError as error:  # locked, or in a format that this SQLite lacks
        journals = [name for ending in ("-journal", "-wal") if Path(name := f"{path}{ending}").exists()]
        if journals:
            raise ValueError(
                f"a change of it is unfinished and cannot be applied (see {journals[0]!r}). Open and close it with the "
                "program that made the change."
            ) from error
        is_intact = True
    except sqlite3.DatabaseError:
        is_intact = False
    if not is_intact:
        raise ValueError("it is a GeoPackage that is cut or damaged: its pages are inconsistent. Download it again.")
    return _read("GPKG", path, options)


def read_geojson(path: Path, file: pa.NativeFile, options: ReadOptions) -> Columns:
    """Read GeoJSON or a GeoJSON sequence; count features that cannot be read."""
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        is_sequence = _is_sequence(content)
        columns = _read("GeoJSONSeq" if is_sequence else "GeoJSON", path, options)
        count = _count_lines(content) if is_sequence else _count_features(content, expected=len(columns.x))
    lost = count - len(columns.x)
    if lost <= 0:
        return columns
    return columns._replace(dropped=(DroppedRecords("a feature that is cut or damaged", lost, repr(str(path))),))


def _is_sequence(content: mmap.mmap) -> bool:
    """Whether there is one feature per line, or one after each record separator."""
    blanks = re.match(rb"(?:\xef\xbb\xbf)?[ \r\n\t]*", content)
    start = blanks.end() if blanks else 0
    end = content.find(b"\n", start, start + _LONGEST)
    end = start + _LONGEST if end < 0 else end
    first = content[start:end].strip()
    if first.startswith(b"\x1e"):
        return True
    is_single = not content[end : end + 1024].strip()
    return not is_single and first.endswith(b"}") and b'"Feature"' in first and b'"FeatureCollection"' not in first


def _count_lines(content: mmap.mmap) -> int:
    """Count the features of a sequence: its lines, or more if a line holds several."""
    with_marks = re.match(rb"[\xef\xbb\xbf\s]*\x1e", content)
    lines = _count(rb"\x1e\s*[^\s\x1e]" if with_marks else rb"[^\s][^\n]*", content)
    return max(lines, min(_count(re.escape(member), content) for member in _MEMBERS))


def _count_features(content: mmap.mmap, *, expected: int) -> int:
    """Count the features; parse them only if counts of words differ from the expected number."""
    if all(_count(re.escape(member), content) == expected for member in _MEMBERS):
        return expected
    try:
        collection = json.loads(content[:])
    except ValueError:
        raise ValueError(
            "it is not a single JSON text, as GeoJSON is. Write it again, or one feature per line."
        ) from None
    features = collection.get("features")
    return len(features) if isinstance(features, list) else 1


def _count(pattern: bytes, content: mmap.mmap) -> int:
    return sum(1 for _ in re.finditer(pattern, content))


def _read(driver: str, path: Path, options: ReadOptions) -> Columns:
    source = _for_gdal(driver, path)
    layer = _layer(source, options.layer)
    info = pyogrio.read_info(source, layer=layer)
    names = find_user_and_time(list(info["fields"]), options, geometry=info["geometry_name"] or "geometry")
    columns = [name for name in (names.user, names.time) if name is not None]
    dates = {"DATE_AS_STRING": "YES"} if driver == "GeoJSON" else {}  # or a user such as 2024-01-01 becomes a date
    _, table = pyogrio.read_arrow(source, layer=layer, columns=columns, datetime_as_string=True, **dates)
    points = decode_points(table.column(info["geometry_name"] or "wkb_geometry"))
    return as_columns(table, points, names=names, crs=resolve_crs(info["crs"], options))


def _for_gdal(driver: str, path: Path) -> str:
    """Return a path that GDAL takes literally, and silence GDAL.

    GDAL guesses formats from extensions and signs such as !, and prints messages that quote the file on the standard
    error of threads that it or we start.
    """
    if pyogrio.get_gdal_config_option("CPL_LOG") is None:
        pyogrio.set_gdal_config_options({"CPL_LOG": os.devnull})
    name = str(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError("GDAL reads no file whose name is not UTF-8. Rename it.") from None
    return name if driver == "GPKG" and ":" in name else f"{driver}:{name}"


def _layer(source: str, requested: str | None) -> str:
    """Return the specified layer, or the only one with a geometry."""
    layers = [name for name, geometry in pyogrio.list_layers(source) if geometry is not None]
    if requested is not None and requested in layers:
        return requested
    if not layers:
        raise ValueError("it holds no layer with a geometry, or is cut or damaged.")
    if requested is not None:
        raise ValueError(f"it has no layer {requested!r} with a geometry. Its layers are {listed(layers)}.")
    if len(layers) > 1:
        raise ValueError(
            f"it has several layers: {listed(layers)}. "
            f"Name the one to read, as in layer={layers[0]!r} (--layer {layers[0]})."
        )
    return layers[0]
