"""Records that their owner marked as bad: the columns `visible` of Movebank and `valid` of Traccar."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import IntFlag
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.messages import DroppedWarning, counted, listed, warn
from promesse_geo.traces.columns import Names
from promesse_geo.traces.known_columns import candidates_for

_MARKS = ("visible", "valid")
_GOOD, _BAD = ("true", "t"), ("false", "f")
MARKED = "marked as bad"
"""How the reason begins."""


class Marked(NamedTuple):
    """Records that are left out because columns mark them.

    Parameters
    ----------
    columns : sequence of column names
        The columns.
    bad : numpy.ndarray of bool, shape (records,)
        Whether they mark a record.
    """

    columns: Sequence[Hashable]
    bad: np.ndarray

    @property
    def kept(self) -> np.ndarray:
        """The rows that are kept, int64 of shape (kept records,)."""
        return np.flatnonzero(~self.bad)

    @property
    def number(self) -> int:
        """The number of records that are left out."""
        return int(self.bad.sum())

    @property
    def first(self) -> int:
        """The first row that is left out."""
        return int(self.bad.argmax())

    @property
    def reason(self) -> str:
        """Why records are left out."""
        return reason_of(self.columns)


def reason_of(columns: Sequence[Hashable]) -> str:
    """Return why records are left out."""
    one = len(columns) == 1
    return f"{MARKED} in the column{'' if one else 's'} {listed(columns)}: rename {'it' if one else 'them'} to keep"


def warn_marked(marked: Marked | None) -> None:
    """Warn of records of a frame or table that are left out."""
    if marked is not None:
        words = f"{counted(marked.number, 'record')} of {len(marked.bad):,}"
        were = "was" if marked.number == 1 else "were"
        first = f"first in row {marked.first:,}, counted from 0"
        warn(
            DroppedWarning(
                f"{words} {were} left out ({marked.reason}; {first}).", {f"records ({marked.reason})": marked.number}
            )
        )


def find_marks(columns: Sequence[Hashable], names: Names | None = None) -> list[Any]:
    """Return all columns that mark bad records, without those that have another role."""
    used = () if names is None else (names.user, names.time, names.segment, names.geometry, names.lon, names.lat)
    others = [name for name in columns if name not in used]
    return [name for mark in _MARKS for name in candidates_for(others, ((mark,),))]


def find_marked(table: pa.Table, marks: Sequence[str]) -> Marked | None:
    """Return which rows of a table columns mark as bad; None if none are, or the columns hold other values."""
    return _marked({mark: bad_rows(table.column(mark)) for mark in marks})


def find_marked_rows(frame: pd.DataFrame, names: Names) -> Marked | None:
    """Return which rows of a frame columns mark as bad, as `find_marked` does of a table."""
    columns = list(frame.columns)
    marks = [name for name in find_marks(columns, names) if columns.count(name) == 1]
    return _marked({mark: bad_rows(values) for mark in marks if (values := _as_arrow(frame[mark])) is not None})


def _marked(found: Mapping[Any, np.ndarray | None]) -> Marked | None:
    masks = {mark: bad for mark, bad in found.items() if bad is not None}
    return Marked(tuple(masks), np.logical_or.reduce(list(masks.values()))) if masks else None


class Values(IntFlag):
    """What a column that may mark records holds, of which the parts of a column are joined by `|`."""

    BAD, OTHER, TEXT, FLAGS = 1, 2, 4, 8

    @classmethod
    def of(cls, column: pd.Series) -> int:
        """Return what a column of a frame, or a part of it, holds."""
        if not column.notna().any():
            return 0
        values = _as_arrow(column)
        if values is None or not can_mark(_decoded(values).type):
            return int(cls.OTHER)
        kind = cls.FLAGS if pa.types.is_boolean(_decoded(values).type) else cls.TEXT
        words = _words(pc.unique(_decoded(values).cast(pa.string()))).to_pylist()
        has_other = bool(set(words) - {*_GOOD, *_BAD, "", None})
        return int(kind | cls.OTHER * has_other | cls.BAD * (not set(words).isdisjoint(_BAD)))

    @property
    def mark_some(self) -> bool:
        """Whether the column marks some records as bad, as `marks_some` says of all its values."""
        is_mixed = Values.TEXT in self and Values.FLAGS in self
        return Values.BAD in self and Values.OTHER not in self and not is_mixed


def without_marked_rows(frame: pd.DataFrame, marks: Iterable[Hashable]) -> pd.DataFrame:
    """Return a part of a frame without the rows that columns mark as bad, of which the whole frame has decided."""
    columns = [_as_arrow(frame[mark]) for mark in marks]
    bad = [_is_bad(column) for column in columns if column is not None and can_mark(_decoded(column).type)]
    return frame[~np.logical_or.reduce(bad)] if bad else frame


def find_possible_marks(frame: pd.DataFrame, names: Names) -> list[Any]:
    """Return the columns of a frame without records that may mark some as bad."""
    marks = find_marks(list(frame.columns), names)
    return [name for name in marks if not pd.api.types.is_numeric_dtype(frame[name].dtype) or _holds_flags(frame[name])]


def _holds_flags(column: pd.Series) -> bool:
    return bool(pd.api.types.is_bool_dtype(column.dtype))


def _as_arrow(column: pd.Series) -> pa.ChunkedArray | None:
    """Return a column of flags or text as it is in a table; None if it is another."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not _holds_flags(column):
        return None
    with suppress(pa.ArrowException, UnicodeEncodeError):
        values = pa.array(column, from_pandas=True)
        return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    return None


def bad_rows(column: pa.ChunkedArray) -> np.ndarray | None:
    """Return which values mark a record as bad, bool of shape (rows,); None if none does, or others are there."""
    if not marks_some([column]):
        return None
    return _is_bad(column)


def _is_bad(column: pa.ChunkedArray) -> np.ndarray:
    words = _words(_decoded(column).cast(pa.string()))
    return np.asarray(pc.fill_null(pc.is_in(words, pa.array(_BAD)), False).to_numpy())


def _words(column: Any) -> Any:
    """Return text in small letters, without blanks around."""
    return pc.utf8_lower(pc.utf8_trim_whitespace(column))


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
        words = set(_words(pc.unique(column.cast(pa.string()))).to_pylist())
        if words - {*_GOOD, *_BAD, "", None}:
            return False
        found = found or not words.isdisjoint(_BAD)
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
