"""Bring columns that the files of a data set hold in several Arrow types to one, so that tables can be joined."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.io.parquet_table import coordinates_of, count_dimensions, is_binary
from promesse_geo.io.table_columns import value_type
from promesse_geo.io.table_segments import Segments
from promesse_geo.io.table_times import as_numbers_or_text, as_timestamps, times_of_numbers, unit_of_numbers
from promesse_geo.traces.columns import Names
from promesse_geo.traces.values import UNITS, Unit

_TEXT = pa.large_string()
_USERS = pa.dictionary(pa.int32(), _TEXT)
_OF_NUMBERS = pa.timestamp("ns", "UTC")


def kind_of(kind: pa.DataType) -> str:
    """Return what values of a type of users or times are: those of one kind can be joined; empty if all are missing."""
    kind = value_type(kind)
    if pa.types.is_null(kind):
        return ""
    if pa.types.is_timestamp(kind):
        return "times" if kind.tz is None else "times with a zone"
    if pa.types.is_integer(kind):
        return "integers"
    return "numbers" if pa.types.is_floating(kind) else "text"


def common_types(names: Names, types: Mapping[str, Collection[pa.DataType]]) -> dict[str, pa.DataType]:
    """Return the type to which each column is brought that has several.

    Parameters
    ----------
    names : Names
        The columns.
    types : mapping of str to collection of pyarrow.DataType
        The types of each column that is read, by name.
    """
    several = {name: list(kinds) for name, kinds in types.items() if len(kinds) > 1}
    roles = {names.user: _type_of_users, names.time: _type_of_times, names.segment: lambda _: _TEXT}
    return {name: roles.get(name, _type_of_places)(kinds) for name, kinds in several.items()}


def _type_of_users(kinds: Collection[pa.DataType]) -> pa.DataType:
    return pa.int64() if any(kind_of(kind) == "integers" for kind in kinds) else _USERS


def _type_of_times(kinds: Collection[pa.DataType]) -> pa.DataType:
    stamps = [kind for kind in kinds if pa.types.is_timestamp(kind)]
    if stamps:
        zones = {kind.tz for kind in stamps}
        return pa.timestamp(finest_unit(stamps), zones.pop() if len(zones) == 1 else "UTC")
    return _TEXT if all(kind_of(kind) in ("text", "") for kind in kinds) else _OF_NUMBERS


def finest_unit(kinds: Collection[pa.TimestampType]) -> Unit:
    """Return the finest unit of types of timestamps."""
    units: list[Unit] = [kind.unit for kind in kinds]
    return max(units, key=UNITS.index)


def _type_of_places(kinds: Collection[pa.DataType]) -> pa.DataType:
    stored = [kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind for kind in kinds]
    if all(map(is_binary, stored)):
        return pa.large_binary()
    if not any(map(pa.types.is_nested, stored)):
        return pa.float64()
    has_z = any(count_dimensions(kind) > 2 for kind in stored)
    return pa.struct([(axis, pa.float64()) for axis in ("xyz" if has_z else "xy")])


def in_types(table: pa.Table, names: Names, types: Mapping[str, pa.DataType], *, time_numbers: str | None) -> pa.Table:
    """Return a table with columns of the common types, whose schema is that of all tables of a data set.

    Parameters
    ----------
    table : pyarrow.Table
        Rows of a file.
    names : Names
        The columns.
    types : mapping of str to pyarrow.DataType
        As `common_types` returns it.
    time_numbers : str or None
        The unit of times that are numbers.

    Raises
    ------
    ValueError
        If users are integers of 2⁶³ or more, or coordinates are no numbers.
    """
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for name, kind in types.items():
        column = columns[name]
        if name == names.user:
            columns[name] = _as_users(column, kind)
        elif name == names.time:
            columns[name] = _as_times(column, kind, time_numbers, name)
        elif name == names.segment:
            columns[name] = pa.chunked_array([Segments.of_column(column, name).as_text()])
        else:
            columns[name] = _as_places(column, kind, name)
    return pa.table(columns)  # without metadata and what is not null


def _as_users(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(kind):
        if not pa.types.is_dictionary(column.type):
            return column.cast(_TEXT).dictionary_encode()
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), chunk.dictionary.cast(_TEXT))
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, kind)
    try:
        return column.cast(value_type(column.type)).cast(kind)
    except pa.ArrowInvalid:
        raise ValueError(TOO_LARGE) from None


TOO_LARGE = "Users are numbers of 2⁶³ or more, which GeoParquet cannot keep. Write them as text."
"""The error for users that int64 does not hold."""


def _as_times(column: pa.ChunkedArray, kind: pa.DataType, unit: str | None, name: str) -> pa.ChunkedArray:
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), kind)])
    if pa.types.is_timestamp(column.type):
        return as_timestamps(column, kind)
    if not pa.types.is_timestamp(kind):
        return column.cast(value_type(column.type)).cast(kind)
    numbers = as_numbers_or_text(column)
    times = times_of_numbers(numbers, unit_of_numbers(numbers, name) if unit is None else unit)
    return pa.chunked_array([pa.array(times)]).cast(kind)


def _as_places(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    if pa.types.is_floating(kind):
        try:
            return column.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise ValueError(f"the column {name!r} must hold numbers.") from None
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if pa.types.is_large_binary(kind):
        return column.cast(pa.binary()).cast(kind) if not pa.types.is_large_binary(column.type) else column
    x, y, _ = coordinates_of(column)
    arrays = [pa.array(x), pa.array(y), *[pa.nulls(len(x), pa.float64())] * (kind.num_fields - 2)]
    return pa.chunked_array([pa.StructArray.from_arrays(arrays, fields=list(kind))])


def with_own_segments(table: pa.Table, name: str, apart: str) -> pa.Table:
    """Return a table whose column of segments has the text `apart` before each value, or instead of a missing one."""
    values = Segments.of_column(table.column(name), name).as_text().fill_null("")
    return table.set_column(
        table.column_names.index(name),
        name,
        pc.binary_join_element_wise(pa.scalar(apart, _TEXT), values, pa.scalar("\0", _TEXT)),
    )


def as_array(users: pd.Index) -> pa.Array:
    """Return users as integers if they are, else as text."""
    if users.dtype.kind in "iu":
        if len(users) and users.max() >= 2**63:
            raise ValueError(TOO_LARGE)
        return pa.array(users.to_numpy().astype(np.int64))
    return pa.array(users, pa.large_string())
