"""Records that their owner marked as bad: the columns `visible` of Movebank and `valid` of Traccar."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

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
    if not marks_some([column]):
        return None
    words = pc.utf8_lower(pc.utf8_trim_whitespace(_decoded(column).cast(pa.string())))
    return np.asarray(pc.fill_null(pc.is_in(words, pa.array(BAD)), False).to_numpy())


def marks_some(parts: Iterable[pa.Array | pa.ChunkedArray]) -> bool:
    """Whether the values of a column mark some records as bad, and none is of another kind.

    Parameters
    ----------
    parts : iterable of pyarrow.Array or pyarrow.ChunkedArray
        The column in parts, of which one at a time is taken, up to the first that decides.
    """
    found = False
    for part in parts:
        column = _decoded(part)
        if not can_mark(column.type):
            return False
        words = set(pc.utf8_lower(pc.utf8_trim_whitespace(pc.unique(column.cast(pa.string())))).to_pylist())
        if words - {*_GOOD, *BAD, "", None}:
            return False
        found = found or not words.isdisjoint(BAD)
        if found and pa.types.is_boolean(column.type):
            return True
    return found


def _decoded(column: pa.Array | pa.ChunkedArray) -> Any:
    """Return a column without a dictionary of its values."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def can_mark(kind: pa.DataType) -> bool:
    """Whether values of a type say that a record is good or bad: flags and text, no numbers."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return is_text or pa.types.is_boolean(kind)
