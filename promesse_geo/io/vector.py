"""Read layers of the vector formats that GDAL reads, beside GeoPackage and GeoJSON."""

import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

import pyarrow as pa

from promesse_geo.io.gdal import sqlite_uri
from promesse_geo.io.layer import read_geopackage, read_layer
from promesse_geo.io.sources import COMPANIONS
from promesse_geo.io.table_columns import Columns, IfFits, ReadOptions
from promesse_geo.messages import counted


class Driver(NamedTuple):
    """A vector format of GDAL: its name in messages, its first bytes, and its file extensions."""

    label: str
    start: re.Pattern[bytes]
    endings: tuple[str, ...]
    required: tuple[str, ...] = ()
    """Extensions of companions without which the file cannot be read."""
    is_xml: bool = False


DRIVERS = {
    "flatgeobuf": Driver("FlatGeobuf", re.compile(rb"fgb[\1-\x20]fgb"), (".fgb",)),
    "shapefile": Driver(
        "a Shapefile", re.compile(rb"\0\0'\x0a\0{20}", re.DOTALL), (".shp",), required=(".dbf", ".shx")
    ),
    "mapinfo": Driver(
        "a MapInfo table", re.compile(rb"\s*!table\s+!version\s", re.IGNORECASE), (".tab",), required=(".dat",)
    ),
    "mif": Driver(
        "MapInfo MIF",
        re.compile(rb"\s*version\s+\d+\s+(?:charset|delimiter|unique|index|coordsys|columns)\b", re.IGNORECASE),
        (".mif",),
        required=(".mid",),
    ),
    "gmt": Driver("GMT", re.compile(rb"# ?@VGMT"), (".gmt",)),
    "gml": Driver(
        "GML",
        re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?!.{0,4000}<(?:\w+:)?(?:kml|gpx)\b).{0,4000}opengis\.net/gml", re.DOTALL),
        (".gml",),
        is_xml=True,
    ),
    "jml": Driver("JML", re.compile(rb"(?:\xef\xbb\xbf)?\s*<.{0,400}<?JCSDataFile", re.DOTALL), (".jml",), is_xml=True),
    "esrijson": Driver("Esri JSON", re.compile(rb'\s*\{.{0,4000}"esri(?:Geometry|FieldType)', re.DOTALL), ()),
    "topojson": Driver("TopoJSON", re.compile(rb'\s*\{.{0,4000}"type"\s*:\s*"Topology"', re.DOTALL), (".topojson",)),
    "jsonfg": Driver("JSON-FG", re.compile(rb'\s*\{.{0,4000}"conformsTo".{0,400}json-fg', re.DOTALL), ()),
}
"""Formats by name. Only files that begin as one of these do are passed to GDAL."""

ENDINGS = tuple(ending for driver in DRIVERS.values() for ending in driver.endings)
"""Extensions of the formats."""

SQLITE_ENDINGS = (".sqlite", ".sqlite3")


def vector_kind(start: bytes) -> str:
    """Return the name in `DRIVERS` of a file with these first bytes; empty if there is none."""
    return next((name for name, driver in DRIVERS.items() if driver.start.match(start)), "")


def read_vector(path: Path, file: pa.NativeFile, options: ReadOptions, *, kind: str) -> Columns:
    """Read a layer of a file in one of the `DRIVERS`; raise ValueError if GDAL reads only a part of it."""
    driver = DRIVERS[kind]
    if kind == "topojson" and (options.crs is None or isinstance(options.crs, IfFits)):  # by its specification
        options = options._replace(crs="OGC:CRS84")
    if driver.is_xml:
        _check_ended(path)
    with _linked(path, driver) as link:
        return _read_all(str(link), options)


def _check_ended(path: Path) -> None:
    """Raise ValueError if XML is not well-formed to its end, which GDAL does not mind."""
    parser = expat.ParserCreate()
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        where = f"line {error.lineno:,}: {expat.ErrorString(error.code)}"
        raise ValueError(f"it is XML that is cut or damaged ({where}). Download it again.") from error


def _read_all(source: str, options: ReadOptions) -> Columns:
    columns, count, expected = read_layer(source, options, opening={})
    if expected > count:
        raise ValueError(f"only {counted(count, 'record')} of {expected:,} could be read. Download it again.")
    return columns


@contextmanager
def _linked(path: Path, driver: Driver) -> Iterator[Path]:
    """Link a file and its companions into a private folder, under a plain name and in lower case.

    GDAL guesses formats from names and signs such as `!`, and writes files beside GML.
    """
    ending = driver.endings[0] if driver.endings else ".json"
    found = _companions(path, COMPANIONS.get(ending, ()))
    missing = [companion for companion in driver.required if companion not in found]
    if missing:
        raise ValueError(
            f"{driver.label} consists of several files, and {' and '.join(missing)} of the same name is not beside it. "
            "Copy all of them."
        )
    with tempfile.TemporaryDirectory(prefix="promesse-geo-") as folder:
        for companion, place in found.items():
            Path(folder, f"data{companion}").symlink_to(place.resolve())
        link = Path(folder, f"data{ending}")
        link.symlink_to(path.resolve())
        yield link


def _companions(path: Path, endings: Sequence[str]) -> dict[str, Path]:
    """Return the companions of a file by their extension in lower case."""
    if not endings:
        return {}
    stem = path.name.removesuffix(path.suffix).lower()
    beside = {place.name.lower(): place for place in path.parent.iterdir() if place.is_file()}
    return {ending: beside[stem + ending] for ending in endings if stem + ending in beside}


def read_sqlite(path: Path, file: pa.NativeFile, options: ReadOptions) -> Columns:
    """Read a layer of an SQLite database: a GeoPackage, or one with the tables of SpatiaLite."""
    tables = _tables(path)
    if "gpkg_contents" in tables or "geometry_columns" not in tables:
        if tables and not tables & {"gpkg_contents", "gpkg_spatial_ref_sys"}:
            raise ValueError(
                "it is an SQLite database without geometries, neither a GeoPackage nor SpatiaLite. Export the table "
                "as CSV, as in: sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > table.csv"
            )
        return read_geopackage(path, file, options)
    return _read_all(f"SQLite:{os.path.abspath(path)}", options)


def _tables(path: Path) -> set[str]:
    """Return the names of the tables in lower case; none if SQLite cannot read them."""
    try:
        with closing(sqlite3.connect(sqlite_uri(path), uri=True)) as database:
            return {name.lower() for (name,) in database.execute("SELECT name FROM sqlite_master")}
    except sqlite3.Error:
        return set()


READERS = {name: (partial(read_vector, kind=name), driver.label) for name, driver in DRIVERS.items()}
"""Function that reads each of the `DRIVERS`, and its name in messages."""
