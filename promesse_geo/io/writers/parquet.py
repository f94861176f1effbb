"""Write points as GeoParquet."""

import json
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from promesse_geo.io.writers.blocks import PointTable, with_points
from promesse_geo.io.writers.crs import written_crs


def write_parquet(table: PointTable, path: Path) -> None:
    """Write GeoParquet 1.1 in row groups of a block each, with checksums."""
    column = {"encoding": table.encoding, "geometry_types": ["Point"], "crs": written_crs(table.crs)}
    geo = {"version": "1.1.0", "primary_column": table.geometry, "columns": {table.geometry: column}}
    blocks = with_points(table)
    first = next(blocks)
    schema = first.schema.with_metadata({"geo": json.dumps(geo), **table.metadata})
    repeated = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_integer(field.type)]
    times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    encodings = dict.fromkeys(times, "DELTA_BINARY_PACKED")
    statistics = list(repeated)
    if table.encoding == "point":
        axes = [f"{table.geometry}.{axis}" for axis in "xy"]
        encodings |= dict.fromkeys(axes, "BYTE_STREAM_SPLIT")
        statistics += axes
    with (
        path.open("wb") as file,  # arrow opens no name that is not UTF-8
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=repeated or False,
            column_encoding=encodings,
            write_statistics=statistics or False,
            write_page_checksum=True,
        ) as writer,
    ):
        for block in chain([first], blocks):
            writer.write_table(block.cast(schema))
