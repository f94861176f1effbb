"""What a GeoPackage holds beside the records."""

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyogrio

from promesse_geo.audit.findings import Extras
from promesse_geo.audit.geopackage_rooms import header, other_rooms, quoted
from promesse_geo.audit.rtree import says_more
from promesse_geo.audit.spelling import NUL, times_otherwise
from promesse_geo.audit.sqlite_pages import pages_with_remains
from promesse_geo.io.output import OF_SQLITE
from promesse_geo.io.table_columns import Wanted, find_user_and_time
from promesse_geo.io.wkb import decode_points
from promesse_geo.io.writers import METADATA_KEY
from promesse_geo.messages import counted, listed
from promesse_geo.traces.columns import Names

_OWN_TABLES = {
    "gpkg_spatial_ref_sys",
    "gpkg_contents",
    "gpkg_ogr_contents",
    "gpkg_geometry_columns",
    "gpkg_tile_matrix_set",
    "gpkg_tile_matrix",
    "gpkg_extensions",
    "gpkg_metadata",
    "gpkg_metadata_reference",
    "sqlite_sequence",
}
_BLOB = 29  # bytes of a point: 8 of GeoPackage, 21 of well-known binary
_POINT = (1).to_bytes(1) + (1).to_bytes(4, "little")  # how well-known binary says a point
_NOWHERE = np.full(2, np.nan, "<f8").tobytes()
_RTREE = ("", "_rowid", "_node", "_parent")


def geopackage_extras(path: Path, wanted: Wanted) -> Extras:
    """Look at other layers and tables, columns, Z and M, the numbers of the rows, and metadata."""
    for beside in (path.with_name(path.name + ending) for ending in OF_SQLITE):
        if beside.exists() and beside.stat().st_size:
            return Extras([], [f"what {beside.name!r} holds beside it: changes that are not in the file yet"], [])
    with closing(_opened(path)) as file:
        layers = file.execute("SELECT table_name, column_name FROM gpkg_geometry_columns").fetchall()
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
        if len(layers) != 1:
            return Extras([], [f"{len(layers)} layers with a geometry, where traces are one"], [])
        if file.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise ValueError("it is damaged: its pages do not fit together.")
        layer, geometry = layers[0]
        own = _OWN_TABLES | {layer} | {f"rtree_{layer}_{geometry}{part}" for part in _RTREE}
        others = sorted(tables - own)
        things = [f"the {'table' if len(others) == 1 else 'tables'} {listed(others)}"] if others else []
        x, y, high = _points(path, layer)
        behind, numbers = header(path)
        things += [*_row_numbers(file, layer), *behind]
        remains, elsewhere = pages_with_remains(
            file,
            path,
            {layer, f"rtree_{layer}_{geometry}_node"},
            passed_over={f"rtree_{layer}_{geometry}{part}" for part in ("_rowid", "_parent")},
        )
        if remains:
            room = counted(remains, "page")
            things.append(f"what was deleted or changed, in {room} of free room (write it anew, or VACUUM it)")
        things += _hidden(file, layer, geometry=geometry, points=None if high else (x, y))
        names, columns = _columns(file, path, wanted, layer=layer, geometry=geometry)
        cut, times = _spelled(file, layer, names)
        things += cut
        notes = [*_notes(file, layer, path), *_extent(file, layer, x, y), *numbers, *times]
        notes += other_rooms(file, path, layer=layer, geometry=geometry, about=geopackage_metadata(path))
        if elsewhere or file.execute("PRAGMA freelist_count").fetchone()[0]:
            notes.append("room of deleted records, which may still stand there")
        return Extras([*columns, *(["Z or M"] if high else [])], things, list(dict.fromkeys(notes)))


def geopackage_metadata(path: Path) -> dict[str, str]:
    """Return what GDAL wrote as metadata, by its keys."""
    with closing(_opened(path)) as file:
        return {key: value for text in _texts(file) for domain, key, value in _items(text) if domain is None}


def _opened(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    file.text_factory = lambda content: content.decode(errors="replace")
    return file


def _columns(
    file: sqlite3.Connection, path: Path, wanted: Wanted, *, layer: str, geometry: str
) -> tuple[Names, list[Any]]:
    """What the columns of user and time are called, and the others."""
    names = find_user_and_time(list(pyogrio.read_info(path, layer=layer)["fields"]), wanted, geometry=geometry)
    about = file.execute(f"PRAGMA table_xinfo({quoted(layer)})").fetchall()
    taken = {names.user, names.time, geometry}
    return names, [name for _, name, _, _, _, key, _ in about if not key and name not in taken]


def _spelled(file: sqlite3.Connection, layer: str, names: Names) -> tuple[list[str], list[str]]:
    """Things and notes on users and times that hold more than is read of them."""
    cut = [
        file.execute(f"SELECT 1 FROM {quoted(layer)} WHERE instr(CAST({quoted(str(name))} AS BLOB), x'00')").fetchone()
        for name in (names.user, names.time)
        if name is not None
    ]
    times = file.execute(f"SELECT DISTINCT {quoted(str(names.time))} FROM {quoted(layer)}")
    return [NUL] * any(cut), times_otherwise(str(time) for (time,) in times if time is not None)


def _points(path: Path, layer: str) -> tuple[np.ndarray, np.ndarray, bool]:
    described, table = pyogrio.read_arrow(path, layer=layer, columns=[])
    return decode_points(table.column(described["geometry_name"] or "wkb_geometry"))


def _hidden(
    file: sqlite3.Connection, layer: str, *, geometry: str, points: tuple[np.ndarray, np.ndarray] | None
) -> Iterator[str]:
    """What the layer has beside its points: bytes behind them, and other places in their index."""
    if points is None:
        return
    (longer,) = file.execute(
        f"SELECT count(*) FROM {quoted(layer)} WHERE length(CAST({quoted(geometry)} AS BLOB)) > ?", [_BLOB]
    ).fetchone()
    if longer:
        yield f"{counted(longer, 'geometry', 'geometries')} with more bytes than a point has"
    nowhere = int(np.count_nonzero(np.isnan(points).any(axis=0)))
    odd = _odd_points(file, quoted(layer), quoted(geometry), nowhere=nowhere)
    if odd and not longer:
        yield f"{counted(odd, 'geometry', 'geometries')} written otherwise than GDAL writes a point of this layer"
    index = f"rtree_{layer}_{geometry}_node"
    if file.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [index]).fetchall():
        rows = np.array(file.execute(f"SELECT rowid FROM {quoted(layer)} ORDER BY 1").fetchall(), np.int64).ravel()
        if says_more(file, quoted(index), rows, *points) or _leads_elsewhere(file, index.removesuffix("_node")):
            yield "an index of other places than those of the records"


def _leads_elsewhere(file: sqlite3.Connection, index: str) -> bool:
    """Whether the tables that lead to an index's nodes hold anything but their numbers."""
    if file.execute("SELECT rtreecheck(?)", [index]).fetchone() != ("ok",):
        return True
    ways = {"_rowid": "nodeno", "_parent": "parentnode"}
    return any(
        file.execute(f"SELECT 1 FROM {quoted(index + part)} WHERE typeof({column}) != 'integer'").fetchone()
        for part, column in ways.items()
    )


def _odd_points(file: sqlite3.Connection, layer: str, geometry: str, *, nowhere: int) -> int:
    """How many geometries are neither a plain header with the layer's CRS and a place, nor GDAL's point without one."""
    (crs,) = file.execute("SELECT srs_id FROM gpkg_geometry_columns").fetchone()
    plain, empty = (b"GP\0" + bytes([flags]) + struct.pack("<i", crs) + _POINT for flags in (1, 17))
    missing, emptied, right = file.execute(
        f"SELECT count(*) - count({geometry}), coalesce(sum({geometry} = ?), 0), "
        f"coalesce(sum(length({geometry}) = ? AND substr({geometry}, 1, ?) = ?), 0) FROM {layer}",
        [empty + _NOWHERE, _BLOB, len(plain), plain],
    ).fetchone()
    (count,) = file.execute(f"SELECT count(*) FROM {layer}").fetchone()
    return count - min(right, count - nowhere) - missing - emptied


def _row_numbers(file: sqlite3.Connection, layer: str) -> list[str]:
    """Whether the rows are numbered otherwise than from 1."""
    first, last, count = file.execute(f"SELECT min(rowid), max(rowid), count(*) FROM {quoted(layer)}").fetchone()
    return [] if not count or (first, last) == (1, count) else ["numbers of rows that do not count from 1"]


def _notes(file: sqlite3.Connection, layer: str, path: Path) -> Iterator[str]:
    """Metadata and names that are not ours."""
    for text in _texts(file):
        items = list(_items(text))
        if not items:
            yield "metadata in another form"
        yield from (f"metadata under {key!r}" for domain, key, _ in items if domain is not None or key != METADATA_KEY)
    if layer not in ("traces", path.stem):
        yield f"the layer's name {layer!r}"


def _extent(file: sqlite3.Connection, layer: str, x: np.ndarray, y: np.ndarray) -> Iterator[str]:
    """An extent that is not that of the records."""
    extents = file.execute(
        "SELECT min_x, min_y, max_x, max_y FROM gpkg_contents WHERE table_name = ?", [layer]
    ).fetchall()
    placed = np.isfinite(x) & np.isfinite(y)
    true = [side(axis[placed]) for side in (np.min, np.max) for axis in (x, y)] if placed.any() else None
    for extent in extents:
        if extent != (None,) * 4 and (true is None or None in extent or not np.allclose(extent, true, 1e-12, 1e-12)):
            yield "an extent that is not that of the records"


def _texts(file: sqlite3.Connection) -> list[str]:
    tables = file.execute("SELECT 1 FROM sqlite_master WHERE name = 'gpkg_metadata'").fetchall()
    return [text or "" for (text,) in file.execute("SELECT metadata FROM gpkg_metadata")] if tables else []


def _items(text: str) -> list[tuple[str | None, str, str]]:
    """Domain, key and value of what GDAL wrote; nothing where it is something else."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return []
    if root.tag != "GDALMultiDomainMetadata":
        return []
    return [(part.get("domain"), item.get("key", ""), item.text or "") for part in root for item in part]
