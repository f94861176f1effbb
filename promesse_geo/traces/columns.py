"""Columns of a frame: which of them hold user, time and geometry, and their values as arrays and back."""

import gc
import os
import re
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, tzinfo
from types import EllipsisType
from typing import Any, Literal

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import shapely
from geopandas.array import GeometryArray

from promesse_geo.messages import listed, shown

Name = Hashable | None | EllipsisType
"""The name of a column; None if there is none; ... to detect it."""

Unit = Literal["s", "ms", "us", "ns"]

Ranks = tuple[tuple[str, ...], ...]
"""Known names of a role; those of an earlier rank come first. Case, blanks and `-_.#:` do not count."""

TRIPS = ("traj_id", "track_id", "trajectory_id", "track_fid", "trip_id")
"""Names of columns of trajectories or trips: segments of their user if there is a user column, else the users."""

USERS: Ranks = (
    ("user",),
    (
        *("uid", "user_id", "participant_id", "participant", "pid", "person_id", "individual-local-identifier"),
        *("Teilnehmer", "Benutzer", "Nutzer", "Proband", "Person", "utilisateur", "usuario"),
    ),
    ("device_id", "device", "tid"),
    ("MMSI", "icao24", "taxi_id", "vehicle_id"),
    TRIPS,
)
"""Persons and animals (in English, German, French and Spanish), devices, vehicles and trips.

`id` is none of them: it often numbers the records.
"""

TIMES: Ranks = (
    ("time",),
    ("datetime", "timestamp", "tracked_at", "t", "ts", "tst", "BaseDateTime", "fixtime"),
    ("UTC time", "Zeitstempel", "Zeitpunkt", "Zeit", "Datum/Uhrzeit", "horodatage", "fecha_hora"),
)

ROLES = "promesse"
"""Key in the `attrs` of frames and in the metadata of files: a mapping of role to the name of the column.

In `attrs` the mapping also has the mechanism that protected the data, under "mechanism".
"""

LONGITUDES: Ranks = (
    ("lon",),
    ("lng", "long", "longitude", "location-long", "double_longitude", "Längengrad", "Laengengrad", "longitud"),
    ("x",),
)
LATITUDES: Ranks = (("lat",), ("latitude", "location-lat", "double_latitude", "Breitengrad", "latitud"), ("y",))

_IGNORED = re.compile(r"[\s_.#:-]+")
_YEAR_1678, _YEAR_2262 = (int(np.datetime64(f"{year}-01-01", "ns").astype(np.int64)) for year in (1678, 2262))
_LONGEST_SPAN = 2**63 - 10**9  # nanoseconds; fractions of a longer span may round to 2**63, which is no int64
_BLOCK = 8192  # geometries read at a time, so that they stay in the cache between shapely's functions
_INDEX: Any = object()  # stands for the DatetimeIndex, which may have no name


@dataclass(frozen=True)
class Names:
    """Column names of a frame.

    Parameters
    ----------
    user, time : column name or None
        None if the frame has no such column.
    geometry : column name
        The active geometry.
    time_is_index : bool
        Whether the time is the index, named `time`.
    segment : column name or None
        The column of segments; None if the frame has no such column.
    """

    user: Hashable | None = "user"
    time: Hashable | None = "time"
    geometry: Hashable = "geometry"
    time_is_index: bool = False
    segment: Hashable | None = None

    def roles(self) -> dict[str, Hashable]:
        """Return the names of the columns or the index that hold user, time and segment, as far as they exist."""
        roles = {"user": self.user, "time": self.time, "segment": self.segment}
        return {role: name for role, name in roles.items() if name is not None}


@dataclass(frozen=True)
class TimeFormat:
    """Time zone (None for naive times) and unit of a time column."""

    zone: tzinfo | None = None
    unit: Unit = "ns"


def find_names(frame: gpd.GeoDataFrame, *, user: Name = ..., time: Name = ..., segment: Name = ...) -> Names:
    """Return the names of the columns that hold user, time, segment and geometry.

    Parameters
    ----------
    frame : geopandas.GeoDataFrame
        The frame; it is not changed.
    user, time : column name, None or ...
        `...` detects the column: the one in `frame.attrs["promesse"]`, if it exists; 'user' and 'time', else the only
        one with a known name of the first rank that has any, else a DatetimeIndex. `user=None` if the frame is a
        single trace.
    segment : column name, None or ...
        `...` takes the one in `frame.attrs["promesse"]`, or that of trips beside a detected user of another rank.

    Returns
    -------
    Names

    Raises
    ------
    KeyError
        If a column does not exist.
    TypeError
        If a parameter cannot be the name of a column.
    ValueError
        If no column is found, or several are possible.
    """
    check_names({"user": user, "time": time, "segment": segment})
    if time is None:
        raise ValueError(
            "The 'time' parameter cannot be None: a trace needs times. Pass the name of the column, as in time='stamp'."
        )
    geometry, index = frame.active_geometry_name, frame.index
    columns = [column for column in frame.columns if column != geometry]
    indexed = isinstance(index, pd.DatetimeIndex)
    roles = existing_roles(frame)
    user, time = roles.get("user", ...) if user is ... else user, roles.get("time", ...) if time is ... else time
    user_column = None if user is None else _find(columns, user, role="user", known=USERS)
    if segment is ...:
        segment = roles.get("segment") or (find_trips(columns, user_column) if user is ... else None)
    if indexed and time is not ... and time not in columns and time == index.name:
        time_column = _INDEX
    else:
        time_column = _find(columns, time, role="time", known=TIMES, indexed=indexed)
    is_index = time_column is _INDEX
    segment_column = None if segment is None else _find(columns, segment, role="segment", known=())
    return Names(user_column, index.name if is_index else time_column, geometry, is_index, segment_column)


def existing_roles(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the names of columns by role in the `attrs` of a frame, without those that do not exist."""
    roles = frame.attrs.get(ROLES)
    names = {*frame.columns, *([frame.index.name] if isinstance(frame.index, pd.DatetimeIndex) else [])}
    if not isinstance(roles, dict):
        return {}
    return {role: name for role, name in roles.items() if isinstance(name, Hashable) and name in names}


def read_protection(attributes: Any) -> dict[str, Any] | None:
    """Return the mechanism that attributes or metadata name, with its parameters; None if they name none."""
    protection = attributes.get("mechanism") if isinstance(attributes, dict) else None
    if not isinstance(protection, dict) or not isinstance(protection.get("mechanism"), str):
        return None
    if not isinstance(protection.get("parameters"), dict):
        return None
    return {name: protection[name] for name in ("mechanism", "parameters")}


def known_attributes(frame: pd.DataFrame) -> dict[str, Any]:
    """Return what of the `attrs` of a frame is of ours: the existing roles, and the mechanism if they name one."""
    protection = read_protection(frame.attrs.get(ROLES))
    return existing_roles(frame) | ({"mechanism": protection} if protection else {})


def with_segment(frame: gpd.GeoDataFrame, segment: Hashable | None) -> gpd.GeoDataFrame:
    """Return a shallow copy of a frame whose `attrs` name the column of segments; None for no such column.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there is no such column, or several.
    """
    attributes = {**known_attributes(frame), "segment": segment}
    if segment is None:
        del attributes["segment"]
    else:
        find_column(list(frame.columns), segment, role="segment", known=())
    copy = frame.copy(deep=False)
    copy.attrs[ROLES] = attributes
    return copy


def check_names(names: Mapping[str, Any]) -> None:
    """Raise TypeError if a parameter is neither None nor `...` nor the possible name of a column."""
    for role, name in names.items():
        try:
            distinct = {name, pd.NA}  # pd.NA is hashable and names no column
        except TypeError:
            distinct = set()
        if len(distinct) < 2:
            raise TypeError(
                f"The '{role}' parameter must be the name of a column. Got {shown(name)} instead. "
                f"Pass the column's name, as in {role}='{role}'."
            )


def find_column(columns: Sequence[Hashable], name: Name, *, role: str, known: tuple[tuple[str, ...], ...]) -> Any:
    """Return the column of a role: `name`, else the one named as the role, else the only one with a known name.

    Raises
    ------
    KeyError, TypeError, ValueError
        As `find_names`.
    """
    check_names({role: name})
    return _find(columns, name, role=role, known=known)


def fold(name: Hashable) -> Hashable:
    """Return a name without what does not count when columns are detected: case, blanks and `-_.#:`."""
    return _IGNORED.sub("", name).casefold() if isinstance(name, str) else name


def candidates_for(columns: Sequence[Hashable], known: Ranks) -> list[Any]:
    """Return the columns with a known name of the first rank that has any; the exact name comes before others."""
    for rank in known:
        if len(rank) == 1 and rank[0] in columns:
            return [rank[0]]
        names = set(map(fold, rank))
        if fitting := list(dict.fromkeys(column for column in columns if fold(column) in names)):
            return fitting
    return []


def find_trips(columns: Sequence[Hashable], user: Hashable) -> Any:
    """Return the only column of trips beside a column of users; None if there is none, or the users are trips."""
    trips = candidates_for(columns, (TRIPS,))
    return trips[0] if len(trips) == 1 and fold(user) not in map(fold, (*TRIPS, "id")) else None


def _find(columns: Sequence[Hashable], name: Name, *, role: str, known: Ranks, indexed: bool = False) -> Any:
    """Find a column, or `_INDEX` if there is a DatetimeIndex (`indexed`) and no such column."""
    if name is ...:
        candidates = candidates_for(columns, known)
        is_named = bool(candidates) and fold(candidates[0]) == role and len(candidates) == 1
        if not is_named and len(candidates) + indexed != 1:
            raise ValueError(_ambiguous(columns, candidates, role=role, known=known, indexed=indexed))
        name = candidates[0] if candidates else _INDEX
    elif name not in columns:
        raise KeyError(f"The {role} column {name!r} does not exist. The columns are {_listed_columns(columns)}.")
    if list(columns).count(name) > 1:
        raise ValueError(f"There are several columns named {name!r}. Rename all but the {role}'s.")
    return name


def _ambiguous(columns: Sequence[Hashable], candidates: list[Any], *, role: str, known: Ranks, indexed: bool) -> str:
    """Word the error for no column, or several."""
    if candidates:
        return (
            f"Several columns could hold the {role}: {listed(candidates + ['the index'] * indexed)}. "
            f"Specify which, as in {role}={candidates[0]!r} (--{role} {candidates[0]})."
        )
    single = " If all is a single trace, pass user=None (--one-trace)." if role == "user" else ""
    names = [name for rank in known for name in rank]
    return (
        f"No {role} column was found. Looked for {listed(names)}; the columns are {_listed_columns(columns)}. "
        f"Specify it, as in {role}='…' (--{role} …).{single}"
    )


def _listed_columns(columns: Sequence[Hashable]) -> str:
    return listed(columns) if columns else "none beside the geometry"


def read_users(column: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Number the users of a column in ascending order.

    Parameters
    ----------
    column : pandas.Series, length n
        Text or integers.

    Returns
    -------
    codes : numpy.ndarray of int64, shape (n,)
        The position of each record's user in `users`; −1 if it is missing.
    users : pandas.Index
        The distinct users, ascending; compared as text if text and integers mix.

    Raises
    ------
    TypeError, ValueError
        If a user is neither text nor an integer, or two users differ only by type.
    """
    if isinstance(column.dtype, pd.ArrowDtype) and pa.types.is_dictionary(column.dtype.pyarrow_dtype):
        column = column.astype(pd.ArrowDtype(column.dtype.pyarrow_dtype.value_type))
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, users = column.cat.codes.to_numpy(np.int64), pd.Index(column.cat.categories)
        _check_users(pd.Series(users), column.name)
        used = np.bincount(codes[codes >= 0], minlength=len(users)) > 0
        users = users[used]
        codes = np.append(np.cumsum(used) - 1, -1)[codes]
    else:
        if not isinstance(column.dtype, pd.StringDtype):
            _check_users(column, column.name)
        codes, users = pd.factorize(column)
        users = pd.Index(users)
    order = _ascending(users, column.name)
    rank = np.empty(len(order) + 1, np.int64)
    rank[order], rank[-1] = np.arange(len(order)), -1
    return rank[codes], users.take(order)


def _check_users(column: pd.Series, name: Hashable) -> None:
    kind = _kind(column)
    if kind == "mixed-integer":
        types = {type(user) for user in column[column.notna()]}
        if all(issubclass(each, (str, int, np.integer)) and each is not bool for each in types):
            kind = "string"
    if kind in ("string", "integer", "empty"):
        return
    remedy = ""
    if kind in ("floating", "mixed-integer-float"):
        remedy = f" Convert whole numbers to integers with frame[{name!r}].astype('Int64')."
    raise TypeError(f"The user column {name!r} must hold text or integers. Got values of the kind '{kind}'.{remedy}")


def _kind(column: pd.Series) -> str:
    """What pandas infers for the values; 'empty' also for floats that are all missing."""
    if column.dtype == np.float64 and column.isna().all():
        return "empty"
    return pd.api.types.infer_dtype(column, skipna=True)


def _ascending(users: pd.Index, name: Hashable) -> np.ndarray:
    """Order of distinct users: integers by value, everything else as text."""
    keys = users.tolist()
    try:
        texts = list(map(str, keys))
    except ValueError:
        raise ValueError("A user is an integer with too many digits for Python to write. Rename it.") from None
    if any(not isinstance(key, (int, np.integer)) for key in keys):
        if len(set(texts)) < len(texts):
            raise ValueError(
                'Two users differ only by their type, as 1 and "1" do. '
                f"Convert them to one type, for example with frame[{name!r}].astype(str)."
            )
        keys = texts
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise ValueError("A user is not valid Unicode (it holds a lone surrogate). Rename it.") from None
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def read_segments(column: pd.Series) -> np.ndarray:
    """Return int64 codes, shape (n,), that differ where the values of a column differ; missing values are equal."""
    return pd.factorize(column)[0].astype(np.int64)


def read_times(column: pd.Series | pd.DatetimeIndex) -> tuple[np.ndarray, np.ndarray, TimeFormat]:
    """Read a column of times.

    Parameters
    ----------
    column : pandas.Series or pandas.DatetimeIndex, length n
        Datetimes of any unit, all in one time zone or all naive.

    Returns
    -------
    times : numpy.ndarray of int64, shape (n,)
        Nanoseconds since 1970-01-01 UTC; of the wall clock for naive times.
    missing : numpy.ndarray of bool, shape (n,)
        Whether the time is missing.
    time_format : TimeFormat
        Time zone and unit of the column.

    Raises
    ------
    TypeError, ValueError
        If the column does not hold times of one zone, from 1678 to 2261 and within 292 years of each other.
    """
    name = column.name
    if isinstance(column, pd.DatetimeIndex):
        index = column
    elif isinstance(column.dtype, (np.dtype, pd.DatetimeTZDtype)) and column.dtype.kind == "M":
        index = pd.DatetimeIndex(column)
    else:
        index = _as_datetimes(column, name)
    missing = np.asarray(index.isna())
    try:
        times = index.as_unit("ns").asi8
    except pd.errors.OutOfBoundsDatetime:
        raise ValueError(_out_of_bounds(name)) from None
    present = times[~missing] if missing.any() else times
    if len(present):
        earliest, latest = int(present.min()), int(present.max())
        if earliest < _YEAR_1678 or latest >= _YEAR_2262:
            raise ValueError(_out_of_bounds(name))
        if latest - earliest > _LONGEST_SPAN:
            raise ValueError(
                f"The time column {name!r} spans more than 292 years, the limit of nanoseconds. "
                "Drop the records with wrong dates."
            )
    return times, missing, TimeFormat(index.tz, index.unit)


def _out_of_bounds(name: Hashable) -> str:
    return (
        f"The time column {name!r} holds dates outside the years 1678 to 2261, the limits of nanoseconds. "
        "Drop the records with wrong dates."
    )


def _as_datetimes(column: pd.Series, name: Hashable) -> pd.DatetimeIndex:
    is_datetime = pd.api.types.is_datetime64_any_dtype(column.dtype) and column.dtype.type is not date  # of Arrow
    kind = "datetime" if is_datetime else _kind(column)
    try:
        if kind in ("datetime64", "datetime"):
            return pd.DatetimeIndex(column)
        if kind == "empty":
            return pd.DatetimeIndex(pd.to_datetime(column))
    except pd.errors.OutOfBoundsDatetime:
        raise ValueError(_out_of_bounds(name)) from None
    except (ValueError, TypeError):
        raise ValueError(
            f"The time column {name!r} mixes time zones, or times with and without one. "
            f"Convert them to one zone: frame[{name!r}] = pd.to_datetime(frame[{name!r}], utc=True)."
        ) from None
    epochs = f"If they are epochs, specify their unit: pd.to_datetime(frame[{name!r}], unit='s', utc=True)."
    remedies = {
        "string": f"Convert it first: frame[{name!r}] = pd.to_datetime(frame[{name!r}], utc=True).",
        "integer": epochs,
        "floating": epochs,
        "period": f"Convert it first with frame[{name!r}].dt.to_timestamp().",
    }
    remedy = remedies.get(kind, "Convert it first with pd.to_datetime.")
    raise TypeError(f"The time column {name!r} must hold datetimes. Got values of the kind '{kind}'. {remedy}")


def check_geometry(frame: gpd.GeoDataFrame) -> None:
    """Raise ValueError if a GeoDataFrame has no active geometry, or several columns of its name."""
    name = frame.active_geometry_name
    if name is None or name not in frame.columns:
        raise ValueError("The GeoDataFrame has no active geometry column. Choose one with gdf.set_geometry(…).")
    if frame.columns.tolist().count(name) > 1:
        raise ValueError(f"There are several columns named {name!r}. Rename all but the active geometry.")


def read_points(geometry: GeometryArray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Read the coordinates of points, in one pass over the geometries.

    Parameters
    ----------
    geometry : geopandas.array.GeometryArray, length n
        Geometries of any type, or missing.

    Returns
    -------
    x, y : numpy.ndarray of float64, shape (n,)
        Coordinates; NaN for whatever is not a point.
    has_z : bool
        Whether any geometry has a Z or M coordinate.
    """
    geometries = np.asarray(geometry, dtype=object)
    x, y = np.empty(len(geometries)), np.empty(len(geometries))
    has_z = np.empty(len(geometries), bool)

    def read(start: int) -> None:
        rows = slice(start, start + _BLOCK)
        block = geometries[rows]
        try:
            shapely.get_x(block, out=x[rows])
            shapely.get_y(block, out=y[rows])
        except shapely.errors.GEOSException:  # one of them is empty
            nonempty = block.copy()
            nonempty[shapely.is_empty(block)] = None
            shapely.get_x(nonempty, out=x[rows])
            shapely.get_y(nonempty, out=y[rows])
        has_z[rows] = shapely.get_coordinate_dimension(block) > 2

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(read, range(0, len(geometries), _BLOCK)))
    return x, y, bool(has_z.any())


def make_points(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return shapely points, shape (n,), of coordinates, shape (n,).

    Python's cycle collector is off meanwhile: it would triple the time and find nothing.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return shapely.points(x, y)
    finally:
        if collecting:
            gc.enable()
