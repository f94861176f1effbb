"""Values of columns as arrays: users, segments, times and points, and points back."""

import gc
import os
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, tzinfo
from typing import Literal, get_args

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from geopandas.array import GeometryArray

Unit = Literal["s", "ms", "us", "ns"]
UNITS: tuple[Unit, ...] = get_args(Unit)
"""All units of times."""

_YEAR_1678, _YEAR_2262 = (int(np.datetime64(f"{year}-01-01", "ns").astype(np.int64)) for year in (1678, 2262))
_LONGEST_SPAN = 2**63 - 10**9  # nanoseconds; fractions of a longer span may round to 2**63, which is no int64
_BLOCK = 8192  # geometries read at a time, so that they stay in the cache between shapely's functions


@dataclass(frozen=True)
class TimeFormat:
    """Time zone (None for naive times) and unit of a time column.

    `written` is the offset from UTC of times in text, which are converted to UTC; None if they have none.
    """

    zone: tzinfo | None = None
    unit: Unit = "ns"
    written: tzinfo | None = field(default=None, compare=False, repr=False)


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
    column = _without_encoding(column)
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


def _without_encoding(column: pd.Series) -> pd.Series:
    """Return a column of Arrow without dictionaries and views of text, of which pandas knows little."""
    if not isinstance(column.dtype, pd.ArrowDtype):
        return column
    kind = column.dtype.pyarrow_dtype
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    plain = pa.string() if pa.types.is_string_view(plain) else plain
    if plain == kind:
        return column
    values = pa.chunked_array(pa.array(column.array)).cast(plain)
    return pd.Series(pd.arrays.ArrowExtensionArray(values), column.index, name=column.name)


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
    elif kind == "bytes":
        remedy = f" Decode them with frame[{name!r}].str.decode('utf-8')."
    else:
        remedy = f" Convert them to text with frame[{name!r}].astype(str)."
    raise TypeError(f"The user column {name!r} must hold text or integers. Got values of the kind '{kind}'.{remedy}")


def _kind(column: pd.Series) -> str:
    """What pandas infers for the values; 'empty' also for floats that are all missing."""
    if column.dtype == np.float64 and column.isna().all():
        return "empty"
    return pd.api.types.infer_dtype(column, skipna=True)


def _ascending(users: pd.Index, name: Hashable) -> np.ndarray:
    """Order of distinct users: integers by value, everything else as text."""
    if users.dtype.kind in "iu":
        return np.argsort(users.to_numpy(), kind="stable").astype(np.int64)
    if isinstance(users.dtype, pd.StringDtype):
        with suppress(pa.ArrowException, UnicodeEncodeError):  # the order of UTF-8 is that of Python's text
            return pc.sort_indices(pa.array(users, pa.large_string())).to_numpy().astype(np.int64)
    keys = users.tolist()
    try:
        texts = list(map(str, keys))
    except ValueError:
        raise ValueError("A user is an integer with too many digits for Python to write. Rename it.") from None
    if any(not isinstance(key, (int, np.integer)) for key in keys):
        if len(set(texts)) < len(texts):
            remedy = f"Convert them to one type, for example with frame[{name!r}] = frame[{name!r}].astype(str)."
            if name is None:  # of several files
                remedy = (
                    "Write them in one type in all files, as text if one is text, or read the files one by one. If "
                    "each file is a user, pass user='file' (--user file)."
                )
            raise ValueError(f'Two users differ only by their type, as 1 and "1" do. {remedy}')
        keys = texts
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise ValueError("A user is not valid Unicode (it holds a lone surrogate). Rename it.") from None
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def read_segments(column: pd.Series) -> np.ndarray:
    """Return int64 codes, shape (n,), that differ where the values of a column differ; missing values are equal."""
    return pd.factorize(_without_encoding(column))[0].astype(np.int64)


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
        check_span(earliest, latest, name)
    return times, missing, TimeFormat(index.tz, index.unit)


def check_span(earliest: int, latest: int, name: Hashable) -> None:
    """Raise ValueError if times in nanoseconds are farther apart than can be computed with."""
    if latest - earliest > _LONGEST_SPAN:
        raise ValueError(
            f"The time column {name!r} spans more than 292 years, the limit of nanoseconds. "
            "Drop the records with wrong dates."
        )


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
