"""Protect Arrow tables: the function that other engines call."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.io.batch import warn_assumed
from promesse_geo.io.parquet_table import encode_points, is_binary, locate_columns, read_located
from promesse_geo.io.table_columns import (
    METADATA_KEY,
    Columns,
    IfFits,
    ReadOptions,
    check_names_column,
    parse_protection,
)
from promesse_geo.io.writers.crs import written_crs
from promesse_geo.io.writers.output import describe
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import invalid, listed
from promesse_geo.traces.columns import Name, Names
from promesse_geo.traces.crs import read_crs
from promesse_geo.traces.known_columns import USERS
from promesse_geo.traces.marks import find_marked, find_marks, warn_marked
from promesse_geo.traces.records import DroppedColumns, Records, raise_invalid_part, warn_dropped_columns
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces

_NO_NATIVE: Mapping[str, str] = MappingProxyType({})


def protect_arrow(
    table: Any,
    mechanism: Mechanism,
    *,
    user: Name = ...,
    time: Name = ...,
    lon: str | None = None,
    lat: str | None = None,
    crs: Any = None,
    segment: Name = ...,
    space: str | Space | None = None,
    position: str | Sequence[str] | None = None,
) -> pa.Table:
    """Protect whole users in an Arrow table: the one function to call in Dask, Spark, Ray, DuckDB or Polars.

    What comes out of tables of whole users, put together, is what comes out of one table with all of them, if the
    mechanism has a seed and the CRS is geographic or `space` is given. Draw the seed once, for example
    `mechanism.with_seed(secrets.token_hex(32))`, and keep it secret: whoever knows it can remove the noise.

    Records that a column `visible` or `valid` marks as bad are left out with a warning, if no value of the column in
    this table means anything else than true or false. An engine that passes tables of some users decides for each of
    them: leave out such records and the column first, if the column may hold other values.

    Parameters
    ----------
    table : pyarrow.Table or any object with `__arrow_c_stream__`
        One row per record, in any order, with all records of each user that it holds. Users are text, integers or
        dictionaries of them; times are timestamps. Points are two columns of coordinates, well-known binary, or native
        points (structures of x and y, as GeoArrow has them).
    mechanism : Mechanism
        The mechanism.
    user, time : column name, None or ...
        Columns; by default they are detected, as in files. `user=None` if the table is a single trace.
    lon, lat : str, optional
        Columns of the coordinates; by default they are detected.
    crs : pyproj.CRS or anything that pyproj accepts
        The CRS of coordinates or of well-known binary that does not name one; EPSG:4326 for columns of longitude and
        latitude.
    segment : column name, None or ...
        A column whose value changes where the recorder paused; by default the one that the metadata of the table name.
    space : {"sphere", "plane"}, Sphere, Plane or None
        Where distances are measured. None chooses by the CRS, and for projected ones also by the bounding box of this
        table: choose once if you protect several tables.
    position : str or list of str, optional
        Columns that number the rows. Records of one user with equal times are taken in this order, by default in that
        of the table.

    Returns
    -------
    pyarrow.Table
        User, time and points of the protected records in the order of users and times, under the names and in the
        encoding of the input, and a column of segments if the input has one or the mechanism makes breaks.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is invalid, columns are missing, or a record has no valid location, time or user.

    Examples
    --------
    >>> import promesse_geo as pg, pyarrow as pa
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> points = city.geometry
    >>> table = pa.table({"user": city["user"], "time": city["time"], "lon": points.x, "lat": points.y})
    >>> pg.protect_arrow(table, pg.Promesse(200)).column_names
    ['user', 'time', 'lon', 'lat']
    """
    if not isinstance(mechanism, Mechanism):
        raise TypeError(invalid("mechanism", "protect_arrow", "a mechanism such as pg.Promesse(200)", mechanism))
    if not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(invalid("table", "protect_arrow", "a pyarrow.Table or another table of Arrow", table))
    check_names_column(user)
    options = ReadOptions(user, time, lon=lon, lat=lat, crs=crs, layer=None, lenient=False, segment=segment)
    with pa.RecordBatchReader.from_stream(table) as stream:
        whole = stream.read_all()
    try:
        if position is not None:
            whole = _in_order(whole, position)
        layout = Layout.find(whole.schema, options)
        columns = layout.read(whole)
        marked = find_marked(whole, find_marks(whole.schema.names, layout.names))
        records = replace(layout.as_records(columns), marked=marked)
    except pa.ArrowException:  # whose words quote the table
        raise ValueError(
            "The table of protect_arrow cannot be read: several columns have one name, values have no order, or text "
            "is not UTF-8."
        ) from None
    warn_assumed(columns.notes, owner="protect_arrow")
    warn_dropped_columns(DroppedColumns((), columns.has_z))
    warn_marked(marked)
    traces = Traces.from_records(records, space=space, report=raise_invalid_part)
    protected = mechanism.protect(traces)
    return layout.to_table(protected, has_segments=layout.has_segments(mechanism) or len(protected.breaks) > 0)


def _in_order(table: pa.Table, position: Any) -> pa.Table:
    """Return the rows in the order of columns of positions."""
    rule = "the name of a column that numbers the rows, or a list of such names"
    names = [position] if isinstance(position, str) else position
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        raise TypeError(invalid("position", "protect_arrow", rule, position))
    if missing := [name for name in names if name not in table.column_names]:
        raise KeyError(f"The 'position' parameter of protect_arrow must be {rule}. There is no {listed(missing)}.")
    return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))


@dataclass(frozen=True)
class Layout:
    """How a table holds records, and a result is written.

    Parameters
    ----------
    names : Names
        The columns.
    places : tuple of str
        The column of points, or those of x and y.
    crs : pyproj.CRS
        The CRS of the coordinates.
    encoding : {"WKB", "point", ""}
        How points are written; "" as two columns.
    is_encoded : bool
        Whether users are a dictionary.
    protection : dict or None
        What protected the data, as for `Traces`.
    types : mapping of str to pyarrow.DataType
        The type to which columns are brought that files hold in several; see `common_types`.
    """

    names: Names
    places: tuple[str, ...]
    crs: Any
    encoding: str
    is_encoded: bool
    protection: dict[str, Any] | None = field(default=None, compare=False)
    types: Mapping[str, pa.DataType] = field(default_factory=dict, compare=False)

    @classmethod
    def find(cls, schema: pa.Schema, options: ReadOptions, *, native: Mapping[str, str] = _NO_NATIVE) -> "Layout":
        """Return the layout of a table by its schema; `native` as for `locate_columns`."""
        names, places, crs = locate_columns(schema, options, native=native)
        if isinstance(crs, IfFits):  # of two inputs, of which one may be in degrees
            fitting = options.fitting(schema.names)
            named = fitting.lon is not None or fitting.lat is not None
            crs = crs.used() if named or not read_crs(str(crs)).is_projected else "EPSG:4326"
        if len(set(places)) < len(places):
            raise ValueError("'lon' and 'lat' name the same column. Specify one for each.")
        is_encoded = names.user is not None and pa.types.is_dictionary(schema.field(names.user).type)
        encoding = ""
        if len(places) == 1:
            kind = schema.field(places[0]).type
            kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
            encoding = "WKB" if is_binary(kind) else "point"
        text = (schema.metadata or {}).get(METADATA_KEY.encode())
        return cls(names, tuple(places), read_crs(crs), encoding, is_encoded, parse_protection(text))

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        names = (self.names.user, self.names.time, self.names.segment, *self.places)
        return list(dict.fromkeys(str(name) for name in names if name is not None))

    def read(self, table: pa.Table) -> Columns:
        """Return the columns of a table."""
        return read_located(table.select(self.columns), self.names, list(self.places), self.crs)

    def as_records(self, columns: Columns) -> Records:
        """Return the columns as records."""
        users = None if columns.users is None else pd.Series(columns.users, name=self.names.user)
        return Records.from_columns(
            columns.x,
            columns.y,
            times=columns.times,
            users=users,
            crs=self.crs,
            names=self.names,
            segments=None if columns.segments is None else columns.segments.codes,
            protection=self.protection,
        )

    def has_segments(self, mechanism: Mechanism | None) -> bool:
        """Whether results of a mechanism have a column of segments, whatever the users."""
        return self.names.segment is not None or (mechanism is not None and mechanism.makes_breaks)

    def output_names(self, *, has_segments: bool, names_users: bool = False) -> Names:
        """Return the names of the columns of a result; with `names_users` there is one of users in any case."""
        names = self.names
        taken = (names.user, names.time, names.geometry, *self.places)
        if names.user is None and names_users:
            names = replace(names, user=next(name for name in ("user", *USERS[1]) if name not in taken))
        return names.with_segment(self.places) if has_segments else replace(names, segment=None)

    def to_table(self, traces: Traces, *, has_segments: bool) -> pa.Table:
        """Return Traces as a table in this layout."""
        names = self.output_names(has_segments=has_segments)
        columns: dict[str, Any] = {}
        if names.user is not None:
            columns[str(names.user)] = self._users(traces)
        columns[str(names.time)] = pa.array(traces.time_index())
        x, y = traces.space.coordinates(traces.points)
        if names.segment is not None:
            columns[str(names.segment)] = pa.array(traces.segment_numbers)
        columns |= self._points(x, y)
        table = pa.table(columns)
        return table.replace_schema_metadata(self.metadata(traces.protection, names))

    def _users(self, traces: Traces) -> pa.Array:
        """Return the user of each record: text, integers, or a dictionary if the input had one."""
        keys = traces.users.tolist()
        texts = not keys or any(isinstance(key, str) or abs(key) >= 2**63 for key in keys)
        values = pa.array([str(key) for key in keys] if texts else keys, pa.string() if texts else pa.int64())
        encoded = pa.DictionaryArray.from_arrays(pa.array(traces.trace_numbers.astype(np.int32)), values)
        return encoded if self.is_encoded else encoded.cast(values.type)

    def _points(self, x: np.ndarray, y: np.ndarray) -> dict[str, pa.Array]:
        if self.encoding == "WKB":
            return {self.places[0]: encode_points(x, y)}
        if self.encoding == "point":
            return {self.places[0]: pa.StructArray.from_arrays([pa.array(x), pa.array(y)], ["x", "y"])}
        return dict(zip(self.places, (pa.array(x), pa.array(y)), strict=True))

    def metadata(self, protection: dict[str, Any] | None, names: Names) -> dict[str, str]:
        """Return the metadata of a file or table: of GeoParquet if there is a column of points, and the roles."""
        about = {METADATA_KEY: describe(protection, names)}
        if not self.encoding:
            return about
        column = {"encoding": self.encoding, "geometry_types": ["Point"], "crs": written_crs(self.crs)}
        geo = {"version": "1.1.0", "primary_column": self.places[0], "columns": {self.places[0]: column}}
        return {"geo": json.dumps(geo), **about}
