"""Which columns of a frame hold the user and the time, and what may stand in them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from types import EllipsisType
from typing import Any, Literal

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa

from promesse_geo.messages import listed, shown

Name = Hashable | None | EllipsisType
"""A column's name; None for 'there is none'; ... for 'find it'."""

Unit = Literal["s", "ms", "us", "ns"]

KNOWN_USERS = ("uid", "user", "user_id", "traj_id", "track_id", "individual-local-identifier")
_YEAR_1678, _YEAR_2262 = (int(np.datetime64(f"{year}-01-01", "ns").astype(np.int64)) for year in (1678, 2262))
_LONGEST_SPAN = 2**63 - 10**9  # nanoseconds; shares of a longer one may round to 2**63, which is no int64
KNOWN_TIMES = ("datetime", "timestamp", "time", "tracked_at", "t")


@dataclass(frozen=True)
class Names:
    """What a frame calls its columns, and how it writes its times, so that they come back as they came in."""

    user: Hashable | None = "user"
    time: Hashable | None = "time"
    geometry: Hashable = "geometry"
    time_is_index: bool = False
    zone: tzinfo | None = None
    unit: Unit = "ns"


def find_names(frame: gpd.GeoDataFrame, *, user: Name = ..., time: Name = ...) -> Names:
    """Say which columns of a frame hold the user, the time and the geometry.

    Parameters
    ----------
    frame : geopandas.GeoDataFrame
        The frame; it is not changed.
    user, time : column name, None or ...
        Given names are taken; `user=None` says that the frame is one trace; `...` looks for 'user' and 'time',
        then for exactly one of the known names, and for times in a DatetimeIndex.

    Returns
    -------
    Names

    Raises
    ------
    KeyError
        If a named column is not there.
    TypeError
        If something is given that can name no column.
    ValueError
        If no column is found, or several could be meant.
    """
    check_names({"user": user, "time": time})
    if time is None:
        raise ValueError(
            "The 'time' parameter cannot be None: a trace needs times. Name the column, as in time='stamp'."
        )
    found_user = user if user is None else _find(frame, user, role="user", known=KNOWN_USERS)
    found_time = _find(frame, time, role="time", known=KNOWN_TIMES)
    return Names(
        user=found_user,
        time=frame.index.name if found_time is _INDEX else found_time,
        geometry=frame.geometry.name,
        time_is_index=found_time is _INDEX,
    )


def check_names(names: Mapping[str, Any]) -> None:
    """Raise TypeError if one of the parameters, by name, is neither None nor `...` nor can name a column."""
    for role, name in names.items():
        try:
            known = {name, pd.NA}  # neither of which can name one
        except TypeError:
            known = set()
        if len(known) < 2:
            raise TypeError(
                f"The '{role}' parameter must be the name of a column. Got {shown(name)} instead. "
                f"Say it as the column is called, as in {role}='{role}'."
            )


_INDEX: Any = object()  # stands for "the DatetimeIndex", which may have no name


def _find(frame: gpd.GeoDataFrame, name: Name, *, role: str, known: tuple[str, ...]) -> Any:
    columns = [column for column in frame.columns if column != frame.geometry.name]
    indexed = role == "time" and isinstance(frame.index, pd.DatetimeIndex)
    if indexed and name is not ... and name not in columns and name == frame.index.name:
        return _INDEX
    return find_column(columns, name, role=role, known=known, indexed=indexed)


def find_column(
    columns: Sequence[Hashable], name: Name, *, role: str, known: tuple[str, ...], indexed: bool = False
) -> Any:
    """Return the column that has a role: the named one, else `role` itself, else the only one with a known name.

    With `indexed`, a DatetimeIndex could serve as well.
    """
    check_names({role: name})
    if name is not ...:
        if name not in columns:
            raise KeyError(f"The {role} column {name!r} is not there. The columns are {_there(columns)}.")
        return _single(columns, name, role=role)
    if role in columns:
        return _single(columns, role, role=role)
    candidates = [column for column in known if column in columns]
    if len(candidates) + indexed == 1:
        return _INDEX if indexed else _single(columns, candidates[0], role=role)
    if candidates:
        index = ["the index"] if indexed else []
        raise ValueError(
            f"Several columns could hold the {role}: {listed(candidates + index)}. "
            f"Name the one to take, as in {role}={candidates[0]!r} (--{role} {candidates[0]})."
        )
    alone = " If all is a single trace, say user=None (--one-trace)." if role == "user" else ""
    raise ValueError(
        f"No {role} column was found. Looked for {listed(known)}; the columns are {_there(columns)}. "
        f"Name it, as in {role}='…' (--{role} …).{alone}"
    )


def _single(columns: Sequence[Hashable], name: Hashable, *, role: str) -> Hashable:
    if list(columns).count(name) > 1:
        raise ValueError(f"There are several columns named {name!r}. Rename all but the {role}'s.")
    return name


def _there(columns: Sequence[Hashable]) -> str:
    return listed(columns) if columns else "none beside the geometry"


def read_users(column: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Number the users of a column in the order of their keys.

    Parameters
    ----------
    column : pandas.Series, length n
        Text or integers.

    Returns
    -------
    codes : numpy.ndarray of int64, shape (n,)
        Each record's user as a number into `users`; −1 where it is missing.
    users : pandas.Index
        The distinct keys, ascending; as text where text and integers mix.

    Raises
    ------
    TypeError, ValueError
        If a key is neither text nor an integer, or two keys differ only by type.
    """
    if isinstance(column.dtype, pd.ArrowDtype) and pa.types.is_dictionary(column.dtype.pyarrow_dtype):
        column = column.astype(pd.ArrowDtype(column.dtype.pyarrow_dtype.value_type))
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes, users = column.cat.codes.to_numpy(np.int64), pd.Index(column.cat.categories)
        _check_keys(pd.Series(users), column.name)
        used = np.bincount(codes[codes >= 0], minlength=len(users)) > 0
        users = users[used]
        codes = np.append(np.cumsum(used) - 1, -1)[codes]
    else:
        _check_keys(column, column.name)
        codes, users = pd.factorize(column)
        users = pd.Index(users)
    order = _key_order(users, column.name)
    rank = np.empty(len(order) + 1, np.int64)
    rank[order], rank[-1] = np.arange(len(order)), -1
    return rank[codes], users.take(order)


def _check_keys(column: pd.Series, name: Hashable) -> None:
    kind = _kind(column)
    if kind == "mixed-integer":
        kinds = {type(key) for key in column[column.notna()]}
        if all(issubclass(k, (str, int, np.integer)) and k is not bool for k in kinds):
            kind = "string"
    if kind in ("string", "integer", "empty"):
        return
    cure = ""
    if kind in ("floating", "mixed-integer-float"):
        cure = f" Whole numbers become integers with frame[{name!r}].astype('Int64')."
    raise TypeError(f"The user column {name!r} must hold text or integers. Got values of the kind '{kind}'.{cure}")


def _kind(column: pd.Series) -> str:
    """What pandas calls the values; 'empty' where there is none, in columns of floats too."""
    if column.dtype == np.float64 and column.isna().all():
        return "empty"
    return pd.api.types.infer_dtype(column, skipna=True)


def _key_order(users: pd.Index, name: Hashable) -> np.ndarray:
    """Ascending order of distinct keys: integers by value, everything else by text."""
    keys = users.tolist()
    try:
        texts = [str(key) for key in keys]
    except ValueError:
        raise ValueError("A user key is an integer with too many digits for Python to write. Rename it.") from None
    if not all(isinstance(key, (int, np.integer)) for key in keys):
        if len(set(texts)) < len(texts):
            raise ValueError(
                'Two user keys differ only by their type, as 1 and "1" do. '
                f"Make them one kind, for example with frame[{name!r}].astype(str)."
            )
        keys = texts
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise ValueError("A user key is not valid Unicode (it holds a lone surrogate). Rename it.") from None
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def read_times(column: pd.Series | pd.DatetimeIndex) -> tuple[np.ndarray, np.ndarray, tzinfo | None, Unit]:
    """Read a column of times.

    Parameters
    ----------
    column : pandas.Series or pandas.DatetimeIndex, length n
        Datetimes of any unit, with one zone or none.

    Returns
    -------
    times : numpy.ndarray of int64, shape (n,)
        Nanoseconds since 1970-01-01 UTC (of the wall clock where there is no zone).
    missing : numpy.ndarray of bool, shape (n,)
        Where the time is missing.
    zone : tzinfo or None
        The zone of the column.
    unit : {"s", "ms", "us", "ns"}
        The column's own unit.

    Raises
    ------
    TypeError, ValueError
        If the column does not hold times of one zone, within the years 1678 to 2261 and 292 years of each other.
    """
    name = column.name
    index = column if isinstance(column, pd.DatetimeIndex) else _as_datetimes(column, name)
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
                f"The time column {name!r} spans more than 292 years, which nanoseconds cannot count. "
                "Leave out the records with wrong dates."
            )
    return times, missing, index.tz, index.unit


def _out_of_bounds(name: Hashable) -> str:
    return (
        f"The time column {name!r} holds dates outside the years 1678 to 2261, which nanoseconds cannot count. "
        "Leave out the records with wrong dates."
    )


def _as_datetimes(column: pd.Series, name: Hashable) -> pd.DatetimeIndex:
    kind = _kind(column)
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or kind in ("datetime64", "datetime"):
        return _converted(column, name, pd.DatetimeIndex)
    if kind == "empty":
        return _converted(column, name, lambda values: pd.DatetimeIndex(pd.to_datetime(values)))
    cures = {
        "string": f"Convert it first: frame[{name!r}] = pd.to_datetime(frame[{name!r}], utc=True).",
        "integer": f"If they are epochs, say their unit: pd.to_datetime(frame[{name!r}], unit='s', utc=True).",
        "floating": f"If they are epochs, say their unit: pd.to_datetime(frame[{name!r}], unit='s', utc=True).",
        "period": f"Convert it first with frame[{name!r}].dt.to_timestamp().",
    }
    cure = cures.get(kind, "Convert it first with pd.to_datetime.")
    raise TypeError(f"The time column {name!r} must hold datetimes. Got values of the kind '{kind}'. {cure}")


def _converted(column: pd.Series, name: Hashable, convert: Callable[[Any], pd.DatetimeIndex]) -> pd.DatetimeIndex:
    try:
        return convert(column)
    except pd.errors.OutOfBoundsDatetime:
        raise ValueError(_out_of_bounds(name)) from None
    except (ValueError, TypeError):
        raise ValueError(
            f"The time column {name!r} mixes time zones, or times with and without one. "
            f"Bring them to one zone: frame[{name!r}] = pd.to_datetime(frame[{name!r}], utc=True)."
        ) from None
