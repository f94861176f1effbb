"""Records that their owner marked as bad: the columns `visible` of Movebank and `valid` of Traccar."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.io.batch import DroppedRecords
from promesse_geo.traces.columns import Names, candidates_for

_MARKS = ("visible", "valid")
_GOOD, BAD = ("true", "t"), ("false", "f")


class Marked(NamedTuple):
    """Records that were left out because a column marks them.

    Parameters
    ----------
    column : str
        The column.
    kept : numpy.ndarray of int64, shape (records,)
        The rows that were kept.
    rows : int
        The number of rows before.
    """

    column: str
    kept: np.ndarray
    rows: int

    def as_dropped(self, file: str) -> DroppedRecords:
        """Return their number, the reason, and the place of the first."""
        gaps = np.flatnonzero(self.kept != np.arange(len(self.kept)))
        first = int(gaps[0]) if len(gaps) else len(self.kept)
        reason = f"marked as bad in the column {self.column!r}: rename it to keep them"
        return DroppedRecords(reason, self.rows - len(self.kept), f"row {first:,} of {file!r}")


def find_mark(columns: Sequence[str], names: Names) -> str | None:
    """Return the column that marks bad records; None if there is none, or it has another role."""
    used = {names.user, names.time, names.segment, names.geometry, names.lon, names.lat}
    others = [name for name in columns if name not in used]
    return next(iter(candidates_for(others, (_MARKS,))), None)


def find_marks(columns: Sequence[str]) -> list[str]:
    """Return all columns that mark bad records."""
    return [name for mark in _MARKS for name in candidates_for(columns, ((mark,),))]


def find_marked(table: pa.Table, mark: str | None) -> Marked | None:
    """Return which rows of a table are marked as bad; None if none are, or the column holds other values."""
    if mark is None or not table.num_rows:
        return None
    column = table.column(mark)
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if not can_mark(column.type):
        return None
    words = pc.utf8_lower(pc.utf8_trim_whitespace(column.cast(pa.string())))
    values = set(pc.unique(words).to_pylist()) - {None, ""}
    if not values & set(BAD) or values - {*_GOOD, *BAD}:
        return None
    is_bad = pc.fill_null(pc.is_in(words, pa.array(BAD)), False).to_numpy()
    return Marked(mark, np.flatnonzero(~is_bad), table.num_rows)


def can_mark(kind: pa.DataType) -> bool:
    """Whether values of a type say that a record is good or bad: flags and text, no numbers."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return is_text or pa.types.is_boolean(kind)
