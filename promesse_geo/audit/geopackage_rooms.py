"""What a GeoPackage says beside its records, held against what GDAL writes here for the same layer."""

import sqlite3
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyogrio
from pyproj import CRS

from promesse_geo.io.writers import write_layer
from promesse_geo.messages import counted

_WORDS = {
    "gpkg_spatial_ref_sys": "a CRS, or words about one,",
    "gpkg_contents": "a title, a description or a moment of writing",
    "gpkg_geometry_columns": "words about the geometry",
    "gpkg_extensions": "extensions",
    "gpkg_metadata": "metadata",
    "gpkg_metadata_reference": "references to metadata",
    "gpkg_tile_matrix_set": "rows about tiles",
    "gpkg_tile_matrix": "rows about tiles",
}
_COUNTS = {"gpkg_ogr_contents", "sqlite_sequence"}
_EXTENT = {"min_x", "min_y", "max_x", "max_y"}
_PAGES = [1, 1, 0, 64, 32, 32]  # the header on how pages are written
_SETTINGS = [4, 0, 0, 1]  # of the schema, without a cache and a vacuum of its own, in UTF-8
_GPKG = int.from_bytes(b"GPKG")
_VERSIONS = {10200, 10300, 10400}  # of GeoPackage
_MOST_CHANGES = 1 << 16  # more than any program that writes a file once commits

# What GDAL of other versions writes, from 3.6 to 3.12, by how their own triggers are called.
_SET = "ST_MinX(NEW.{c}), ST_MaxX(NEW.{c}),ST_MinY(NEW.{c}), ST_MaxY(NEW.{c})"
_PLACED = "(NEW.{c} NOTNULL AND NOT ST_IsEmpty(NEW.{c}))"
_WHEN = 'CREATE TRIGGER {r}_{name}" AFTER UPDATE {of}ON {t} WHEN OLD.{i} {same} NEW.{i} AND ' + _PLACED
_OTHER_TRIGGERS = {
    "update1": (' BEGIN INSERT OR REPLACE INTO {r}" VALUES (NEW.{i},' + _SET + "); END", True),
    "update3": (
        ' BEGIN DELETE FROM {r}" WHERE id = OLD.{i}; INSERT OR REPLACE INTO {r}" VALUES (NEW.{i},' + _SET + "); END",
        False,
    ),
    "update5": (
        ' BEGIN DELETE FROM {r}" WHERE id = OLD.{i}; INSERT OR REPLACE INTO {r}" VALUES (NEW.{i},' + _SET + "); END",
        False,
    ),
    "update6": (
        ' AND (OLD.{c} NOTNULL AND NOT ST_IsEmpty(OLD.{c})) BEGIN UPDATE {r}" SET minx = ST_MinX(NEW.{c}), '
        "maxx = ST_MaxX(NEW.{c}),miny = ST_MinY(NEW.{c}), maxy = ST_MaxY(NEW.{c}) WHERE id = NEW.{i};END",
        True,
    ),
    "update7": (
        ' AND (OLD.{c} ISNULL OR ST_IsEmpty(OLD.{c})) BEGIN INSERT INTO {r}" VALUES (NEW.{i},' + _SET + "); END",
        True,
    ),
}
_OTHER_INDEXES = (
    '{r}" USING rtree(id, minx, maxx, miny, maxy)',
    '{r}" USING rtree("id", "minx", "maxx", "miny", "maxy")',
)


def quoted(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def other_rooms(file: sqlite3.Connection, path: Path, *, layer: str, geometry: str, about: dict[str, str]) -> list[str]:
    """Return what tables, indexes, triggers and rows say that GDAL would not write for this layer."""
    with tempfile.TemporaryDirectory() as folder:
        twin = Path(folder) / "twin.gpkg"
        number = _write_twin(file, path, twin, layer=layer, geometry=geometry, about=about)
        with closing(sqlite3.connect(twin)) as plain:
            known = set(_definitions(plain)) | set(_of_other_versions(layer, geometry=geometry, number=number))
            notes = ["definitions of tables, indexes or triggers that GDAL does not write"]
            notes = notes if set(_definitions(file)) - known else []
            for table, words in _WORDS.items():
                if Counter(_rows(file, table)) - Counter(_rows(plain, table)) or _jumps(file, table):
                    notes.append(f"{words} that we do not write ({table!r})")
    (records,) = file.execute(f"SELECT count(*) FROM {quoted(layer)}").fetchone()
    for table in _COUNTS & _names(file):
        if set(file.execute(f"SELECT * FROM {table}")) - {(layer, records), (layer, None)}:
            notes.append(f"another count than that of the records ({table!r})")
    return notes


def _write_twin(
    file: sqlite3.Connection, path: Path, twin: Path, *, layer: str, geometry: str, about: dict[str, str]
) -> str:
    """Write the same layer without records; and return how it calls the numbers of the rows."""
    described, table = pyogrio.read_arrow(path, layer=layer, max_features=1)
    columns = file.execute(f"PRAGMA table_info({quoted(layer)})").fetchall()
    number = next((name for _, name, _, _, _, key in columns if key), "fid")
    crs = CRS.from_user_input(described["crs"] or "EPSG:4326")
    bare = pa.schema([field.remove_metadata() for field in table.schema]).empty_table()  # GDAL puts clauses there
    write_layer(
        bare, twin, driver="GPKG", layer=layer, geometry=geometry, crs=crs, about=about, options={"FID": number}
    )
    return number


def _definitions(file: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return file.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()


def _of_other_versions(layer: str, *, geometry: str, number: str) -> Iterator[tuple[Any, ...]]:
    index = f"rtree_{layer}_{geometry}"
    names = {"t": quoted(layer), "c": quoted(geometry), "i": quoted(number), "r": quoted(index)[:-1]}
    for text in _OTHER_INDEXES:
        yield "table", index, index, "CREATE VIRTUAL TABLE " + text.format(**names)
    for name, (text, same) in _OTHER_TRIGGERS.items():
        of = f"OF {names['c']} " if same else ""
        sql = (_WHEN + text).format(name=name, of=of, same="=" if same else "!=", **names)
        yield "trigger", f"{index}_{name}", layer, sql


def _names(file: sqlite3.Connection) -> set[str]:
    return {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _rows(file: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    """All rows, but for the extent of the records."""
    if table not in _names(file):
        return []
    columns = [name for _, name, *_ in file.execute(f"PRAGMA table_info({table})") if name not in _EXTENT]
    return file.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {table}").fetchall()


def _jumps(file: sqlite3.Connection, table: str) -> bool:
    """Whether rows that have a number beside their columns are not numbered from 1."""
    if table not in _names(file) or table == "gpkg_spatial_ref_sys":
        return False
    least, most, count = file.execute(f"SELECT min(rowid), max(rowid), count(*) FROM {table}").fetchone()
    return bool(count) and (least, most) != (1, count)


def header(path: Path) -> tuple[list[str], list[str]]:
    """Return what a SQLite file has in its header and behind its last page that GDAL does not write: things, notes.

    Raises
    ------
    ValueError
        If the file is shorter than its header says.
    """
    with path.open("rb") as file:
        head = file.read(100)
    size, *about_pages, changes, pages, _, _ = struct.unpack_from(">H6B4I", head, 16)
    cookie, *settings, version, vacuum, application = struct.unpack_from(">8I", head, 40)
    seen, _ = struct.unpack_from(">2I", head, 92)
    behind = path.stat().st_size - pages * (65536 if size == 1 else size)
    if behind < 0:
        raise ValueError("it is cut: pages are missing at its end.")
    things = [f"{counted(behind, 'byte')} behind the last page"] if behind else []
    if head[72:92].strip(b"\0"):
        things.append("bytes in the part of the header that SQLite leaves empty")
    plain = (about_pages, settings, vacuum, application) == (_PAGES, _SETTINGS, 0, _GPKG) and version in _VERSIONS
    counts = changes == seen and max(changes, cookie) < _MOST_CHANGES
    return things, [] if plain and counts else ["numbers in the header that GDAL does not write"]
