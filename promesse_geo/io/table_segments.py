"""Segments of the records of tables, which may be spread over several files."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.traces.known_columns import fold


class Segments(NamedTuple):
    """The segment of each record of a file.

    Parameters
    ----------
    codes : numpy.ndarray of int64, shape (records,)
        The number of the segment; −1 if the value is missing.
    column : str or None
        The column that numbers or names the segments of users, in all files that have it. None if segments are pieces
        of the file, such as lines, which are others than those of any other file.
    values : numpy.ndarray of text, shape (segments,)
        The values that `codes` count; nothing for pieces of the file.
    """

    codes: np.ndarray
    column: str | None = None
    values: np.ndarray = np.empty(0, object)

    @classmethod
    def of_column(cls, column: pa.ChunkedArray, name: Any) -> Self:
        """Return the segments of a column.

        Raises
        ------
        TypeError
            If it holds lists or other values of several parts.
        """
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_string_view(column.type):
            column = column.cast(pa.large_string())
        if pa.types.is_null(column.type):
            return cls(np.full(len(column), -1), str(name))
        check_segment_type(column.type, name)
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        encoded = column.dictionary_encode().combine_chunks()
        codes = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return cls(codes, str(name), _as_text(encoded.dictionary))

    def as_text(self) -> pa.Array:
        """Return the value of each record of a column as text, the same for equal values of any type."""
        codes = pa.array(self.codes, mask=self.codes < 0)
        return pa.array(self.values, pa.large_string()).take(codes)

    def take(self, rows: np.ndarray) -> Self:
        """Return the segments of some records."""
        return self._replace(codes=self.codes[rows])

    def keys(self) -> np.ndarray:
        """Return int64 keys of the records of a column, equal in all files for equal values; 0 if one is missing."""
        hashes = pd.util.hash_array(self.values, categorize=False)
        column = pd.util.hash_array(np.array([fold(self.column)], object))
        return np.append(hashes ^ column, np.uint64(0))[self.codes].view(np.int64)


def check_segment_type(kind: pa.DataType, name: Any) -> None:
    """Raise TypeError if a column of this type holds lists or other values of several parts."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(kind):
        raise TypeError(
            f"the segment column {name!r} must hold text, numbers or times. It holds values of the kind '{kind}'. "
            "Write them as text."
        )


def _as_text(values: pa.Array) -> np.ndarray:
    """Return distinct values as text, the same for a whole number of any type."""
    if pa.types.is_floating(values.type):
        return np.array([str(int(each)) if each.is_integer() else repr(each) for each in values.to_pylist()], object)
    if pa.types.is_integer(values.type):
        values = values.cast(pa.string())
    return np.array([str(each) for each in values.to_pylist()], object)


def join_segments(files: Sequence[tuple[int, Segments | None]]) -> np.ndarray | None:
    """Return codes that differ where the segments of the records of all files do; None if no file has segments.

    Equal values of a column are one segment in all files, as users are spread over files. Records without a value, and
    those of files without such a column, are of one more. Pieces of a file are segments of their own.

    Parameters
    ----------
    files : sequence of (int, Segments or None)
        The number of records of each file, and their segments.

    Returns
    -------
    numpy.ndarray of int64, shape (records,), or None
    """
    if all(segments is None for _, segments in files):
        return None
    if len(files) == 1 and files[0][1] is not None:
        return files[0][1].codes
    parts, pieces = [], 0
    for count, segments in files:
        if segments is None:
            parts.append(np.zeros(count, np.int64))
        elif segments.column is None:
            parts.append(segments.codes + pieces + 1)
            pieces += int(segments.codes.max(initial=-1)) + 1
        else:
            parts.append(segments.keys())
    return np.concatenate(parts)
