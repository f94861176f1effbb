"""What a Parquet file holds beside the records."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from promesse_geo.audit.findings import Extras
from promesse_geo.audit.parquet_notes import as_text, parquet_notes
from promesse_geo.io.geo_table import find_parquet_columns, point_fields
from promesse_geo.io.table_columns import Wanted
from promesse_geo.io.wkb import bytes_behind
from promesse_geo.messages import counted
from promesse_geo.traces.columns import Names


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
    things = [counted(unused, "value") + " in a dictionary that no record has"] if unused else []
    if behind:
        things.append(f"{counted(behind, 'byte')} behind points")
    things += _unclaimed(path, file.metadata)
    return Extras(columns, things, list(dict.fromkeys(parquet_notes(file, names, places))))


def parquet_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a file, as text."""
    return as_text(pq.read_metadata(path).metadata)


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
    return [f"{counted(unclaimed, 'byte')} that belong to no column"] if unclaimed else []
