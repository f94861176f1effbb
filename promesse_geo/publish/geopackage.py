"""What a GeoPackage holds beside the records."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyogrio

from promesse_geo import check
from promesse_geo.datasets.table_columns import Wanted, find_user_and_time
from promesse_geo.datasets.wkb import read_points
from promesse_geo.output import OF_SQLITE
from promesse_geo.publish.findings import Extras
from promesse_geo.write import METADATA_KEY

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
        layer, geometry = layers[0]
        own = _OWN_TABLES | {layer} | {f"rtree_{layer}_{geometry}{part}" for part in _RTREE}
        others = sorted(tables - own)
        things = [f"the {'table' if len(others) == 1 else 'tables'} {check.listed(others)}"] if others else []
        things += _row_numbers(file, layer)
        columns = _columns(file, path, wanted, layer=layer, geometry=geometry)
        return Extras(columns, things, list(dict.fromkeys(_notes(file, layer, path))))


def geopackage_metadata(path: Path) -> dict[str, str]:
    """Return what GDAL wrote as metadata, by its keys."""
    with closing(_opened(path)) as file:
        return {key: value for text in _texts(file) for domain, key, value in _items(text) if domain is None}


def _opened(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    file.text_factory = lambda content: content.decode(errors="replace")
    return file


def _columns(file: sqlite3.Connection, path: Path, wanted: Wanted, *, layer: str, geometry: str) -> list[Any]:
    names = find_user_and_time(list(pyogrio.read_info(path, layer=layer)["fields"]), wanted, geometry=geometry)
    about = file.execute(f"PRAGMA table_xinfo({_quoted(layer)})").fetchall()
    taken = {names.user, names.time, geometry}
    others: list[Any] = [name for _, name, _, _, _, key, _ in about if not key and name not in taken]
    described, table = pyogrio.read_arrow(path, layer=layer, columns=[])
    if read_points(table.column(described["geometry_name"] or "wkb_geometry"))[2]:
        others.append("Z or M")
    return others


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _row_numbers(file: sqlite3.Connection, layer: str) -> list[str]:
    """Whether the rows are numbered otherwise than from 1."""
    first, last, count = file.execute(f"SELECT min(rowid), max(rowid), count(*) FROM {_quoted(layer)}").fetchone()
    return [] if not count or (first, last) == (1, count) else ["numbers of rows that do not count from 1"]


def _notes(file: sqlite3.Connection, layer: str, path: Path) -> Iterator[str]:
    """Metadata, names and descriptions that are not ours, and room where deleted records may still stand."""
    for text in _texts(file):
        items = list(_items(text))
        if not items:
            yield "metadata in another form"
        yield from (f"metadata under {key!r}" for domain, key, _ in items if domain is not None or key != METADATA_KEY)
    for name, described in file.execute(
        "SELECT identifier, description FROM gpkg_contents WHERE table_name = ?", [layer]
    ):
        if described or name not in (None, "", layer):
            yield "a title or a description"
    if layer not in ("traces", path.stem):
        yield f"the layer's name {layer!r}"
    if file.execute("PRAGMA freelist_count").fetchone()[0]:
        yield "room of deleted records, which may still stand there"


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
