"""What the metadata of a Parquet file says beside what readers need."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyproj import CRS
from pyproj.exceptions import CRSError

from promesse_geo.audit.strict_json import read_strictly
from promesse_geo.io.writers import METADATA_KEY, has_words
from promesse_geo.messages import listed
from promesse_geo.traces.columns import Names

_SCHEMA = "ARROW:schema"
_VERSION = r"\d{1,2}(\.\d{1,2}){1,2}"
_MAKER = re.compile(rf"parquet-cpp-arrow version {_VERSION}")
_CREATOR = {"library": re.compile("geopandas|pandas|pyarrow"), "version": re.compile(_VERSION)}
_EDGES = re.compile("planar|spherical")
_GEO = {
    "version": re.compile(r"[01]\.\d\.\d(-(beta|rc|dev)(\.\d)?)?"),
    "primary_column": ...,
    "columns": ...,
    "creator": _CREATOR,
}
_GEO_COLUMN = {
    "encoding": re.compile("WKB|point"),
    "geometry_types": [re.compile("Point")],
    "crs": ...,
    "edges": _EDGES,
    "orientation": re.compile("counterclockwise"),
    "epoch": re.compile("None"),
}
_PANDAS_COLUMN = {
    "name": ...,
    "field_name": ...,
    "pandas_type": re.compile(
        "unicode|string|bytes|object|empty|bool|categorical|datetimetz|datetime|date|u?int(8|16|32|64)|float(16|32|64)"
    ),
    "numpy_type": re.compile(
        r"object|bool|u?int(8|16|32|64)|float(16|32|64)|str|string(\[(python|pyarrow)\])?|category|"
        r"datetime64\[(s|ms|us|ns)\]"
    ),
    "metadata": {
        "encoding": re.compile("None|UTF-8"),
        "timezone": ...,
        "num_categories": ...,
        "ordered": re.compile("True|False"),
        "unit": re.compile("None|s|ms|us|ns"),
    },
}
_PANDAS = {
    "index_columns": ...,
    "column_indexes": [_PANDAS_COLUMN],
    "columns": [_PANDAS_COLUMN],
    "creator": _CREATOR,
    "pandas_version": re.compile(_VERSION),
    "attributes": ...,
    "partition_columns": ...,
}
_FIELD = {
    "PARQUET:field_id": re.compile(r"-1|\d\d?"),
    "ARROW:extension:name": re.compile(r"geoarrow\.(wkb|point)"),
    "ARROW:extension:metadata": ...,
}
_EXTENSION = {"crs": ..., "crs_type": re.compile("projjson|wkt2:2019|authority_code"), "edges": _EDGES}
_CRS_CODE = re.compile(r"(EPSG|OGC|ESRI|IGNF):\w{1,12}")
_CRS_SCHEMA = re.compile(r"https://proj\.org/schemas/v\d\.\d/projjson\.schema\.json")


def as_text(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    """Return keys and values as text."""
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in (metadata or {}).items()}


def parquet_notes(file: pq.ParquetFile, names: Names, places: list[str]) -> Iterator[str]:
    """Yield what the metadata says beside what the readers need."""
    schema, metadata = file.schema_arrow, as_text(file.metadata.metadata)
    fields = list(_all_fields(schema))
    if _SCHEMA in metadata:
        inner = _arrow_schema(metadata)
        fields += _all_fields(inner)
        kept = base64.b64encode(inner.serialize().to_pybytes()).decode()
        others = as_text(inner.metadata)
        known = {"geo", "pandas", METADATA_KEY}
        yield from (f"metadata under {key!r}" for key in sorted(others.keys() - known))
        if kept != metadata[_SCHEMA] or inner.names != schema.names or others.items() - metadata.items():
            yield f"other metadata in {_SCHEMA!r}"
    known = {"geo", "pandas", _SCHEMA, METADATA_KEY}
    yield from (f"metadata under {key!r}" for key in sorted(metadata.keys() - known))
    yield from _footer_notes(file)
    twice: set[str] = set()
    try:
        geo, pandas = (read_strictly(metadata.get(name, "{}"), twice=twice) for name in ("geo", "pandas"))
        yield from _geo_notes(geo, places)
        yield from _pandas_notes(pandas, file, names)
        for field in fields:
            yield from _field_notes(as_text(field.metadata), twice)
    except (TypeError, ValueError, KeyError, AttributeError, CRSError):
        yield "metadata of the file or a column in another form"
    if twice:
        yield f"{listed(sorted(twice))} twice in one object"


def _footer_notes(file: pq.ParquetFile) -> Iterator[str]:
    """Names of programs and of other files in the footer, and bounds of values that are not theirs."""
    about = file.metadata
    if not _MAKER.fullmatch(about.created_by or ""):
        yield "the name of a program in the footer that is not Arrow"
    for number in range(about.num_row_groups):
        chunks = [about.row_group(number).column(place) for place in range(about.num_columns)]
        if any(chunk.file_path for chunk in chunks):
            yield "the name of another file in the footer"
        told = [None if chunk.statistics is None else chunk.statistics.to_dict() for chunk in chunks]
        columns = {chunk.path_in_schema.partition(".")[0] for chunk, one in zip(chunks, told, strict=True) if one}
        if columns and told != _true_bounds(file, number, columns=columns, told=told):
            yield "bounds of values that are not those of the records"


def _true_bounds(file: pq.ParquetFile, number: int, *, columns: set[str], told: list[Any]) -> list[Any]:
    """The statistics of a group of records as Arrow writes them, where any are told."""
    table = file.read_row_group(number, columns=sorted(columns))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=max(len(table), 1))
    about = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    written = [about.column(place) for place in range(about.num_columns)]
    true = {chunk.path_in_schema: chunk.statistics and chunk.statistics.to_dict() for chunk in written}
    group = file.metadata.row_group(number)
    paths = [group.column(place).path_in_schema for place in range(len(told))]
    return [one and _as_told(one, true[path]) for path, one in zip(paths, told, strict=True)]


def _as_told(told: dict[str, Any], true: dict[str, Any] | None) -> dict[str, Any] | None:
    """The true bounds; none where none are told, which says nothing."""
    bare = {"has_min_max": False, "min": None, "max": None}
    return true | bare if true and not told["has_min_max"] else true


def _arrow_schema(metadata: dict[str, str]) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(metadata[_SCHEMA])))


def _geo_notes(geo: dict[str, Any], places: list[str]) -> Iterator[str]:
    yield from _unlike(geo, _GEO, "'geo'")
    if geo.get("primary_column", places[0]) not in places:
        yield "the description of another column under 'geo'"
    for name, column in geo.get("columns", {}).items():
        if name not in places:
            yield "the description of another column under 'geo'"
        yield from _unlike(column, _GEO_COLUMN, "'geo'")
        yield from _crs_notes(column.get("crs"))


def _crs_notes(crs: Any) -> Iterator[str]:
    """Remarks, and whatever else a CRS does not need."""
    if crs is None:
        return
    read = CRS.from_user_input(crs)
    if isinstance(crs, dict):
        schema = crs.get("$schema")
        plain = _is_within(crs | {"$schema": None}, read.to_json_dict() | {"$schema": None})
        plain &= schema is None or bool(_CRS_SCHEMA.fullmatch(str(schema)))
    else:
        plain = bool(_CRS_CODE.fullmatch(crs)) or crs == read.to_wkt()
    if not plain or has_words(read):
        yield "remarks in the CRS"


def _is_within(part: Any, whole: Any) -> bool:
    """Whether all that stands in a part stands at the same place in the whole."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and _is_within(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(_is_within, part, whole))
    return bool(part == whole)


def _pandas_notes(pandas: dict[str, Any], file: pq.ParquetFile, names: Names) -> Iterator[str]:
    yield from _unlike(pandas, _PANDAS, "'pandas'")
    if pandas.get("attributes"):
        yield "attributes of the frame under 'pandas'"
    if pandas.get("partition_columns"):
        yield "partition columns under 'pandas'"
    plain = {"kind": "range", "name": None, "start": 0, "stop": file.metadata.num_rows, "step": 1}
    if pandas.get("index_columns", []) not in ([], [plain]):
        yield "an index under 'pandas' that is not the number of the row"
    for index in pandas.get("column_indexes", []):
        if index.get("name") is not None or index.get("field_name") is not None:
            yield "a name for the row of column names under 'pandas'"
    schema = file.schema_arrow
    for column in pandas.get("columns", []):
        name, about = column["name"], column.get("metadata") or {}
        if name not in schema.names or column.get("field_name", name) != name:
            yield "the description of another column under 'pandas'"
        elif about.get("timezone") not in (None, getattr(schema.field(name).type, "tz", None)):
            yield "another time zone under 'pandas'"
        elif "num_categories" in about and (
            name != names.user
            or about["num_categories"]
            != pc.count_distinct(file.read(columns=[name]).column(0).cast(pa.string())).as_py()
        ):
            yield "another number of categories under 'pandas'"


def _unlike(content: Any, known: Any, where: str, name: str = "") -> Iterator[str]:
    """Keys and values that nobody writes: `known` has what may stand under each key, and ... where others look."""
    if isinstance(known, dict):
        if not isinstance(content, dict):
            raise TypeError
        others = sorted(set(content) - set(known))
        if others:
            yield f"{listed(others)} under {where}"
        for key in known.keys() & content.keys():
            if content[key] is not None or not isinstance(known[key], dict):
                yield from _unlike(content[key], known[key], where, key)
    elif isinstance(known, list):
        if not isinstance(content, list):
            raise TypeError
        for one in content:
            yield from _unlike(one, known[0], where, name)
    elif known is not ... and not known.fullmatch(str(content)):
        yield f"another value of {name!r} under {where} than those that are known"


def _all_fields(fields: Any) -> Iterator[pa.Field]:
    """Fields at any depth."""
    for field in fields:
        yield field
        kind = field.type
        yield from _all_fields(kind.field(i) for i in range(kind.num_fields))


def _field_notes(metadata: dict[str, str], twice: set[str]) -> Iterator[str]:
    yield from _unlike(metadata, _FIELD, "a column's metadata")
    about = metadata.get("ARROW:extension:metadata")
    if about:
        content = read_strictly(about, twice=twice)
        yield from _unlike(content, _EXTENSION, "a column's metadata")
        yield from _crs_notes(content.get("crs"))
