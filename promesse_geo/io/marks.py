"""Records that their owner marked as bad: the columns `visible` of Movebank and `valid` of Traccar."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.io.batch import DroppedRecords
from promesse_geo.messages import listed
from promesse_geo.traces.columns import Names, candidates_for

_MARKS = ("visible", "valid")
_GOOD, BAD = ("true", "t"), ("false", "f")


class Marked(NamedTuple):
    """Records that were left out because columns mark them.

    Parameters
    ----------
    columns : sequence of str
        The columns.
    kept : numpy.ndarray of int64, shape (records,)
        The rows that were kept.
    rows : int
        The number of rows before.
    """

    columns: Sequence[str]
    kept: np.ndarray
    rows: int

    def as_dropped(self, file: str) -> DroppedRecords:
        """Return their number, the reason, and the place of the first."""
        gaps = np.flatnonzero(self.kept != np.arange(len(self.kept)))
        first = int(gaps[0]) if len(gaps) else len(self.kept)
        return DroppedRecords(reason_of(self.columns), self.rows - len(self.kept), f"row {first:,} of {file!r}")


def reason_of(columns: Sequence[str]) -> str:
    """Return why records are left out."""
    one = len(columns) == 1
    return (
        f"marked as bad in the column{'' if one else 's'} {listed(columns)}: rename {'it' if one else 'them'} to keep"
    )


def find_marks(columns: Sequence[str], names: Names | None = None) -> list[str]:
    """Return all columns that mark bad records, without those that have another role."""
    used = () if names is None else (names.user, names.time, names.segment, names.geometry, names.lon, names.lat)
    others = [name for name in columns if name not in used]
    return [name for mark in _MARKS for name in candidates_for(others, ((mark,),))]


def find_marked(table: pa.Table, marks: Sequence[str]) -> Marked | None:
    """Return which rows of a table columns mark as bad; None if none are, or the columns hold other values."""
    masks = {mark: bad for mark in marks if (bad := bad_rows(table.column(mark))) is not None}
    if not masks:
        return None
    kept = np.flatnonzero(~np.logical_or.reduce(list(masks.values())))
    return Marked(tuple(masks), kept, table.num_rows)


def bad_rows(column: pa.ChunkedArray) -> np.ndarray | None:
    """Return which values mark a record as bad, bool of shape (rows,); None if none does, or others are there."""
    if not len(column):
        return None
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if not can_mark(column.type):
        return None
    words = pc.utf8_lower(pc.utf8_trim_whitespace(column.cast(pa.string())))
    values = set(pc.unique(words).to_pylist()) - {None, ""}
    if not values & set(BAD) or values - {*_GOOD, *BAD}:
        return None
    return np.asarray(pc.fill_null(pc.is_in(words, pa.array(BAD)), False).to_numpy())


def can_mark(kind: pa.DataType) -> bool:
    """Whether values of a type say that a record is good or bad: flags and text, no numbers."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return is_text or pa.types.is_boolean(kind)
