"""Read GeoPackage and GeoJSON by GDAL, and count what GDAL silently drops."""

import json
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyogrio
import shapely

from promesse_geo.io.batch import DroppedRecords
from promesse_geo.io.gdal import SQLITE_JOURNALS, quoted, silent, sqlite_uri
from promesse_geo.io.lines import NAMES, find_line_user, read_json_lines, read_measured_lines
from promesse_geo.io.parquet_table import as_columns, decode_points, resolve_crs
from promesse_geo.io.table_columns import (
    BY_NAME,
    METADATA_KEY,
    Columns,
    ReadOptions,
    find_names,
    parse_protection,
    parse_roles,
)
from promesse_geo.messages import counted, listed
from promesse_geo.traces.columns import Names
from promesse_geo.traces.marks import find_marked, find_marks

_LONGEST = 1 << 20  # bytes of one feature
_PIECE = 1 << 20  # bytes in memory
_BOM = b"\xef\xbb\xbf"
_LINE_TYPES = (shapely.GeometryType.LINESTRING, shapely.GeometryType.MULTILINESTRING)
_OVERLAP = max(map(len, NAMES))  # bytes
_MEMBERS = (b'"Feature"', b'"geometry"')
_TEXT_POSITION = re.compile(
    rb'("coordinates"\s*:\s*\[)\s*"\s*(-?\d+(?:\.\d+)?)\s*"\s*,\s*"\s*(-?\d+(?:\.\d+)?)\s*"\s*\]'
)


def read_geopackage(path: Path, file: pa.NativeFile, options: ReadOptions) -> Columns:
    """Read a layer of a GeoPackage; check its pages and the number of records, since GDAL silently stops early."""
    try:
        is_intact = _query(path, "PRAGMA quick_check(1)") == "ok"
    except sqlite3.OperationalError as error:  # locked, or in a format that this SQLite lacks
        journals = [name for ending in SQLITE_JOURNALS if Path(name := f"{path}{ending}").exists()]
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
    columns, layer, read = _read("GPKG", path, options)
    try:
        count = _query(path, f"SELECT count(*) FROM {quoted(layer)}")
    except sqlite3.OperationalError:  # a view with functions of GDAL, or a format that this SQLite lacks
        return columns
    if count != read:
        raise ValueError(f"only {counted(read, 'record')} of {count:,} could be read. Read it again.")
    return columns


def _query(path: Path, query: str) -> Any:
    """Return the first value that a query of a GeoPackage yields."""
    with closing(sqlite3.connect(sqlite_uri(path), uri=True)) as database:
        return database.execute(query).fetchone()[0]


def read_geojson(path: Path, file: pa.NativeFile, options: ReadOptions) -> Columns:
    """Read GeoJSON or a GeoJSON sequence; count features that cannot be read."""
    with path.open("rb") as stored:
        if _may_hold_lines(stored) and (lines := read_json_lines(path, options)) is not None:
            return lines
        is_sequence = _is_sequence(stored)
        with _with_numbers(path, stored) as source:
            columns, _, _ = _read("GeoJSONSeq" if is_sequence else "GeoJSON", source, options)
        read = len(columns.x) if columns.marked is None else len(columns.marked.bad)
        lost = (_count_lines(stored) if is_sequence else _count_features(stored, expected=read)) - read
    if lost <= 0:
        return columns
    return columns._replace(dropped=(DroppedRecords("a feature that is cut or damaged", lost, repr(str(path))),))


@contextmanager
def _with_numbers(path: Path, file: BinaryIO) -> Iterator[Path]:
    """Provide the file, or a private copy with coordinates as numbers if they are text, which GDAL takes for none."""
    file.seek(0)
    if _TEXT_POSITION.search(file.read(_PIECE)) is None:
        yield path
        return
    file.seek(0)
    with tempfile.TemporaryDirectory(prefix="promesse-geo-") as folder:  # of mode 0700
        copy = Path(folder, "data.json")
        copy.write_bytes(_TEXT_POSITION.sub(rb"\1\2,\3]", file.read()))
        yield copy


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file in pieces: a map of it in memory would end the process if the file is cut."""
    file.seek(0)
    return iter(partial(file.read, _PIECE), b"")


def _may_hold_lines(file: BinaryIO) -> bool:
    """Whether a name of lines stands anywhere in a file."""
    window = b""
    for piece in _pieces(file):
        window = window[-_OVERLAP:] + piece
        if any(word in window for word in NAMES):
            return True
    return False


def _is_sequence(file: BinaryIO) -> bool:
    """Whether there is one feature per line, or one after each record separator."""
    file.seek(0)
    content = file.read(2 * _LONGEST).removeprefix(_BOM).lstrip(b" \r\n\t")
    end = content.find(b"\n", 0, _LONGEST)
    end = _LONGEST if end < 0 else end
    first = content[:end].strip()
    if first.startswith(b"\x1e"):
        return True
    is_single = not content[end : end + 1024].strip()
    return not is_single and first.endswith(b"}") and b'"Feature"' in first and b'"FeatureCollection"' not in first


def _count_lines(file: BinaryIO) -> int:
    """Count the features of a sequence: its lines, or more if a line holds several."""
    file.seek(0)
    has_separators = file.read(_PIECE).removeprefix(_BOM).lstrip().startswith(b"\x1e")
    lines = _count_filled(file, separator=b"\x1e" if has_separators else b"\n")
    return max(lines, min(_count(member, file) for member in _MEMBERS))


def _count_features(file: BinaryIO, *, expected: int) -> int:
    """Count the features; parse them only if counts of words differ from the expected number."""
    if all(_count(member, file) == expected for member in _MEMBERS):
        return expected
    file.seek(0)
    try:
        collection = json.load(file)
    except ValueError:
        raise ValueError(
            "it is not a single JSON text, as GeoJSON is. Write it again, or one feature per line."
        ) from None
    features = collection.get("features")
    return len(features) if isinstance(features, list) else 1


def _count(word: bytes, file: BinaryIO) -> int:
    """Count a word, which does not overlap with itself."""
    count, window = 0, b""
    for piece in _pieces(file):
        window = window[1 - len(word) :] + piece
        count += window.count(word)
    return count


def _count_filled(file: BinaryIO, *, separator: bytes) -> int:
    """Count what separators part, without what is blank."""
    count, is_filled = 0, False
    for piece in _pieces(file):
        first, *others = piece.removeprefix(_BOM).split(separator)
        is_filled = is_filled or bool(first.strip())
        for part in others:
            count += is_filled
            is_filled = bool(part.strip())
    return count + is_filled


def _read(driver: str, path: Path, options: ReadOptions) -> tuple[Columns, str, int]:
    """Return the records of a layer, its name, and the number of its features."""
    with silent():
        source = _for_gdal(driver, path)
        layer = _layer(source, options.layer)
    dates = {"DATE_AS_STRING": "YES"} if driver == "GeoJSON" else {}  # or a user such as 2024-01-01 becomes a date
    columns, count, _ = read_layer(source, options, opening=dates, layer=layer, may_be_empty=driver == "GeoJSON")
    return columns, layer, count


def read_layer(
    source: str,
    options: ReadOptions,
    *,
    opening: Mapping[str, str],
    layer: str | None = None,
    may_be_empty: bool = False,
) -> tuple[Columns, int, int]:
    """Read a layer by GDAL.

    Parameters
    ----------
    source : str
        What GDAL opens.
    options : ReadOptions
        The names of columns, and the CRS.
    opening : mapping of str to str
        Options of GDAL for the format.
    layer : str, optional
        The layer; by default the one of `options`, or the only one with a geometry.
    may_be_empty : bool
        Whether a file without columns is one without records.

    Returns
    -------
    columns : Columns
        The records.
    count, expected : int
        The number of features that were read, and that the file declares; −1 if it declares none.
    """
    with silent():
        layer = _layer(source, options.layer) if layer is None else layer
        info = pyogrio.read_info(source, layer=layer)
        if may_be_empty and not info["features"] and not len(info["fields"]):
            return _no_records(info["crs"], options), 0, 0
        geometry = info["geometry_name"] or "wkb_geometry"
        if (first := _first_line(source, layer, str(info["geometry_type"]))) is not None:
            user = find_line_user(list(info["fields"]), options) if shapely.has_m(first) else None
            asked = [] if user is None else [user]
            _, table = pyogrio.read_arrow(source, layer=layer, columns=asked, **opening)
            lines = read_measured_lines(table, geometry, name=user, crs=resolve_crs(info["crs"], options))
            return lines, len(table), info["features"]
        text = (info["layer_metadata"] or {}).get(METADATA_KEY)
        name = info["geometry_name"] or "geometry"
        names = find_names(list(info["fields"]), options, geometry=name, roles=parse_roles(text))
        marks = find_marks(list(info["fields"]), names)
        columns = [name for name in (names.user, names.time, names.segment, *marks) if name is not None]
        _, table = pyogrio.read_arrow(source, layer=layer, columns=columns, datetime_as_string=True, **opening)
    points = decode_points(table.column(geometry))
    content = as_columns(_with_dashes(table, names.time), points, names=names, crs=resolve_crs(info["crs"], options))
    content = content._replace(protection=parse_protection(text)).without(find_marked(table, marks))
    return content, len(table), info["features"]


def _first_line(source: str, layer: str, kind: str) -> Any:
    """Return the first geometry of a layer if it is a line, else None."""
    if kind.startswith(("Point", "2.5D Point")):
        return None
    _, table = pyogrio.read_arrow(source, layer=layer, columns=[], max_features=1)
    shapes = shapely.from_wkb(table.column(table.num_columns - 1).to_numpy(), on_invalid="ignore")
    return shapes[0] if len(shapes) and shapely.get_type_id(shapes[0]) in _LINE_TYPES else None


def _with_dashes(table: pa.Table, name: Any) -> pa.Table:
    """Write the dates of a table as 2024-03-04, not as 2024/03/04, as GDAL writes them to the text of dBase."""
    column = table.column(name)
    if not pa.types.is_string(column.type):
        return table
    dashed = pc.replace_substring_regex(column, r"^(\d{4})/(\d\d)/(\d\d)", r"\1-\2-\3")
    return table.set_column(table.column_names.index(name), name, dashed)


def _no_records(crs: Any, options: ReadOptions) -> Columns:
    """Return the columns of an empty GeoJSON file, which has no names of columns."""
    user = None if options.user in (None, *BY_NAME) else "user" if options.user is ... else str(options.user)
    names = Names(user=user, time="time" if options.time is ... else options.time, geometry="geometry")
    table = pa.table({name: pa.array([], pa.string()) for name in (user, names.time) if name is not None})
    points = (np.empty(0), np.empty(0), False)
    return as_columns(table, points, names=names, crs=resolve_crs(crs, options))


def _for_gdal(driver: str, path: Path) -> str:
    """Return a path that GDAL takes literally: it guesses formats from extensions and signs such as !."""
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
