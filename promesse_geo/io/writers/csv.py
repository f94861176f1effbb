"""Write points as CSV."""

from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from promesse_geo.io.writers.blocks import Block, PointTable, as_iso, as_table, check_keys
from promesse_geo.io.writers.crs import coordinate_names


def write_csv(table: PointTable, path: Path) -> None:
    """Write CSV: the columns, times in ISO 8601, then lon and lat, or x and y, with all digits."""
    check_keys(table.users)
    x_name, y_name = coordinate_names(table.crs)

    def as_text(block: Block) -> pa.Table:
        columns = [(name, as_iso(array)) for name, array in block.columns]
        return as_table([*columns, (x_name, pa.array(block.x)), (y_name, pa.array(block.y))])

    blocks = map(as_text, table.blocks)
    first = next(blocks)
    options = csv.WriteOptions(quoting_style="needed")
    with path.open("wb") as file, csv.CSVWriter(file, first.schema, write_options=options) as writer:
        for block in chain([first], blocks):
            writer.write_table(block)
