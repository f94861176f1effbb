"""What a Parquet file holds beside the records."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyproj import CRS

from promesse_geo import check
from promesse_geo.columns import Names
from promesse_geo.datasets.geo_table import find_parquet_columns, point_fields
from promesse_geo.datasets.table_columns import Wanted
from promesse_geo.datasets.wkb import bytes_behind
from promesse_geo.output import has_words
from promesse_geo.publish.findings import Extras
from promesse_geo.write import METADATA_KEY

_SCHEMA = "ARROW:schema"
_GEO = {"version", "primary_column", "columns", "creator"}
_GEO_COLUMN = {"encoding", "geometry_types", "crs", "edges", "orientation", "epoch"}
_CREATOR = {"library", "version"}
_PANDAS = {"index_columns", "column_indexes", "columns", "creator", "pandas_version", "attributes", "partition_columns"}
_PANDAS_COLUMN = {"name", "field_name", "pandas_type", "numpy_type", "metadata"}
_PANDAS_TYPE = {"encoding", "timezone", "num_categories", "ordered", "unit"}
_FIELD = {"PARQUET:field_id", "ARROW:extension:name", "ARROW:extension:metadata"}
_EXTENSION = {"crs", "crs_type", "edges"}


def parquet_extras(path: Path, wanted: Wanted) -> Extras:
    """Look at columns, Z and M, users in dictionaries without a record, and the metadata of the file and its fields."""
    file = pq.ParquetFile(path)
    schema = file.schema_arrow
    names, places, _ = find_parquet_columns(schema, wanted)
    columns: list[Any] = [name for name in schema.names if name not in (names.user, names.time, *places)]
    behind = 0
    if len(places) == 1:
        geometries = file.read(columns=places).column(0)
        if point_fields(geometries)[2]:
            columns.append("Z or M")
        behind = bytes_behind(geometries)
    taken = [str(name) for name in (names.user, names.time, *places) if name is not None]
    unused = sum(_unused(path, name) for name in taken if _may_hide(schema, name, names))
    things = [check.counted(unused, "value") + " in a dictionary that no record has"] if unused else []
    if behind:
        things.append(f"{check.counted(behind, 'byte')} behind points")
    things += _unclaimed(path, file.metadata)
    return Extras(columns, things, list(dict.fromkeys(_notes(file, places))))


def parquet_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a file, as text."""
    return _as_text(pq.read_metadata(path).metadata)


def _as_text(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in (metadata or {}).items()}


def _may_hide(schema: pa.Schema, name: str, names: Names) -> bool:
    """Whether a column can have values in a dictionary that reading does not show."""
    return name == names.user or bool(pa.types.is_dictionary(schema.field(name).type))


def _unused(path: Path, name: str) -> int:
    """How many values of a column's dictionaries no record has."""
    column = pq.ParquetFile(path, read_dictionary=[name]).read(columns=[name]).column(0)
    return unused_values(column)


def unused_values(column: pa.ChunkedArray) -> int:
    """Return how many values of a column's dictionaries, if it has such, no record has."""
    if not pa.types.is_dictionary(column.type) or not column.num_chunks:
        return 0
    values = pa.chunked_array([chunk.dictionary for chunk in column.chunks]).unique()
    used = pa.chunked_array([chunk.dictionary.take(chunk.indices.unique().drop_null()) for chunk in column.chunks])
    return pc.count(values).as_py() - pc.count(used.unique()).as_py()


def _unclaimed(path: Path, about: pq.FileMetaData) -> list[str]:
    """Bytes between the columns and before the footer that belong to nothing.

    Indexes of pages stand there too, and nobody says how long they are.
    """
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
    spans = []
    for chunk in chunks:
        first = chunk.data_page_offset if chunk.dictionary_page_offset is None else chunk.dictionary_page_offset
        spans += [(first, first + chunk.total_compressed_size)] if chunk.total_compressed_size else []
    with path.open("rb") as file:
        file.seek(-8, 2)
        end = file.tell() - int.from_bytes(file.read(4), "little")
    bounds = [4, *(one for span in sorted(spans) for one in span), end]
    gaps = [after - before for before, after in zip(bounds[::2], bounds[1::2], strict=True)]
    if any(chunk.has_offset_index or chunk.has_column_index for chunk in chunks):
        gaps[-1] = 0
    unclaimed = sum(gap for gap in gaps if gap > 0)
    return [f"{check.counted(unclaimed, 'byte')} that belong to no column"] if unclaimed else []


def _notes(file: pq.ParquetFile, places: list[str]) -> Iterator[str]:
    """What the metadata says beside what the readers need."""
    schema, metadata = file.schema_arrow, _as_text(file.metadata.metadata)
    inner = _as_text(_arrow_schema(metadata).metadata) if _SCHEMA in metadata else {}
    known = {"geo", "pandas", _SCHEMA, METADATA_KEY}
    yield from (f"metadata under {key!r}" for key in sorted((metadata.keys() | inner.keys()) - known))
    if any(metadata.get(key, value) != value for key, value in inner.items()):
        yield f"other metadata in {_SCHEMA!r}"
    try:
        geo, pandas = (json.loads(metadata.get(name, "{}")) for name in ("geo", "pandas"))
        yield from _geo_notes(geo, places)
        yield from _pandas_notes(pandas, schema.names, file.metadata.num_rows)
        for field in _all_fields(schema):
            yield from _field_notes(_as_text(field.metadata))
    except (TypeError, ValueError, KeyError, AttributeError):
        yield "metadata of the file or a column in another form"


def _arrow_schema(metadata: dict[str, str]) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(metadata[_SCHEMA])))


def _geo_notes(geo: dict[str, Any], places: list[str]) -> Iterator[str]:
    yield from _foreign(geo, _GEO, "'geo'")
    yield from _foreign(geo.get("creator", {}), _CREATOR, "'geo'")
    for name, column in geo.get("columns", {}).items():
        if name not in places:
            yield "the description of another column under 'geo'"
        yield from _foreign(column, _GEO_COLUMN, "'geo'")
        yield from _crs_notes(column.get("crs"))


def _crs_notes(crs: Any) -> Iterator[str]:
    """Remarks, and whatever else a CRS does not need."""
    if crs is None:
        return
    read = CRS.from_user_input(crs)
    if _keys(crs) - _keys(read.to_json_dict()) or has_words(read):
        yield "remarks in the CRS"


def _keys(content: Any) -> set[str]:
    """All keys at any depth."""
    if isinstance(content, list):
        return set().union(*map(_keys, content))
    return set(content).union(*map(_keys, content.values())) if isinstance(content, dict) else set()


def _pandas_notes(pandas: dict[str, Any], columns: list[str], rows: int) -> Iterator[str]:
    yield from _foreign(pandas, _PANDAS, "'pandas'")
    yield from _foreign(pandas.get("creator", {}), _CREATOR, "'pandas'")
    if pandas.get("attributes"):
        yield "attributes of the frame under 'pandas'"
    if pandas.get("partition_columns"):
        yield "partition columns under 'pandas'"
    plain = {"kind": "range", "name": None, "start": 0, "stop": rows, "step": 1}
    if pandas.get("index_columns", []) not in ([], [plain]):
        yield "an index under 'pandas' that is not the number of the row"
    if any(index.get("name") is not None for index in pandas.get("column_indexes", [])):
        yield "a name for the row of column names under 'pandas'"
    for column in (*pandas.get("columns", []), *pandas.get("column_indexes", [])):
        yield from _foreign(column, _PANDAS_COLUMN, "'pandas'")
        yield from _foreign(column.get("metadata") or {}, _PANDAS_TYPE, "'pandas'")
    if {column["name"] for column in pandas.get("columns", [])} - set(columns):
        yield "the description of another column under 'pandas'"


def _foreign(content: Any, known: set[str], where: str) -> Iterator[str]:
    """Keys that are not known."""
    if not isinstance(content, dict):
        raise TypeError
    others = sorted(set(content) - known)
    if others:
        yield f"{check.listed(others)} under {where}"


def _all_fields(fields: Any) -> Iterator[pa.Field]:
    """Fields at any depth."""
    for field in fields:
        yield field
        kind = field.type
        yield from _all_fields(kind.field(i) for i in range(kind.num_fields))


def _field_notes(metadata: dict[str, str]) -> Iterator[str]:
    yield from _foreign(metadata, _FIELD, "a column's metadata")
    about = metadata.get("ARROW:extension:metadata")
    if about:
        content = json.loads(about)
        yield from _foreign(content, _EXTENSION, "a column's metadata")
        yield from _crs_notes(content.get("crs"))
