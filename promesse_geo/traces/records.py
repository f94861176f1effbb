"""The records of a frame as plain arrays, checked, and the order in which traces hold them."""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo.messages import counted, invalid, listed, warn
from promesse_geo.traces.columns import Name, Names, find_names, read_times, read_users
from promesse_geo.traces.points import check_geometry, read_points
from promesse_geo.traces.space import Space, choose_space
from promesse_geo.validation import check_choice


class Records(NamedTuple):
    """Records in input order: base coordinates of the space (`to_base`), times in ns, and each one's user number."""

    x: np.ndarray
    y: np.ndarray
    times: np.ndarray
    codes: np.ndarray
    users: pd.Index
    space: Space
    names: Names
    bad: np.ndarray | None = None


@dataclass(frozen=True)
class DroppedColumns:
    """What of a frame does not go into Traces: columns, and elevations."""

    columns: tuple[Hashable, ...]
    elevation: bool


def warn_dropped_columns(left_out: DroppedColumns) -> None:
    """Warn once of what a frame held beside user, time and location."""
    parts = []
    if left_out.columns:
        noun = "The column" if len(left_out.columns) == 1 else "The columns"
        parts.append(f"{noun} {listed(left_out.columns)}")
    if left_out.elevation:
        parts.append("the elevations (Z)" if parts else "The elevations (Z)")
    if parts:
        many = len(parts) > 1 or left_out.elevation or len(left_out.columns) > 1
        warn(" and ".join(parts) + f" {'were' if many else 'was'} left out: traces hold user, time and location.")


def read_records(
    frame: gpd.GeoDataFrame, *, user: Name, time: Name, space: str | Space | None, errors: str
) -> tuple[Records, DroppedColumns]:
    """Read a frame as `Traces.from_frame` does, and say what else it holds."""
    check_choice(errors, name="errors", owner="Traces.from_frame", options=("raise", "drop"))
    _check_frame(frame)
    names = find_names(frame, user=user, time=time)
    x, y, elevation = read_points(frame.geometry.array)
    records = checked_records(
        x,
        y,
        times=frame.index if names.time_is_index else frame[names.time],
        users=None if names.user is None else frame[names.user],
        crs=frame.crs,
        space=space,
        names=names,
        errors=errors,
    )
    taken = {names.user, names.geometry} | (set() if names.time_is_index else {names.time})
    return records, DroppedColumns(tuple(column for column in frame.columns if column not in taken), elevation)


def checked_records(
    x: np.ndarray,
    y: np.ndarray,
    *,
    times: pd.Series | pd.DatetimeIndex,
    users: pd.Series | None,
    crs: Any,
    names: Names,
    space: str | Space | None = None,
    errors: str = "raise",
) -> Records:
    """Check the columns of a table.

    Parameters
    ----------
    x, y : numpy.ndarray of float64, shape (n,)
        Coordinates in the CRS; NaN where there is no point.
    times : pandas.Series or pandas.DatetimeIndex, length n
        The column of times.
    users : pandas.Series, length n, or None
        The column of users; None for a single trace.
    crs, names, space, errors
        As in `Traces.from_frame`; the zone and unit of the names come from the times.

    Returns
    -------
    Records

    Raises
    ------
    TypeError, ValueError
        With all complaints at once, their counts and first rows (counted from 0).
    """
    nanoseconds, no_time, zone, unit = read_times(times)
    if users is None:
        codes, keys = np.zeros(len(x), np.int64), pd.Index(["trace"] if len(x) else [], dtype=object)
    else:
        codes, keys = read_users(users)
    names = replace(names, zone=zone, unit=unit)
    return _judged(x, y, nanoseconds, no_time, codes, keys, crs=crs, space=space, names=names, errors=errors)


def array_records(
    x: np.ndarray,
    y: np.ndarray,
    *,
    times: np.ndarray,
    users: Sequence[Hashable] | pd.Index,
    counts: np.ndarray,
    crs: Any,
    names: Names,
    space: str | Space | None = None,
) -> Records:
    """Check arrays as `Traces.from_arrays` takes them."""
    if not isinstance(names, Names):
        raise TypeError(invalid("names", "Traces.from_arrays", "promesse_geo.traces.columns.Names or None", names))
    x, y = _numbers(x, "x"), _numbers(y, "y")
    times, counts = _plain(times, "times"), _plain(counts, "counts")
    counts = counts.astype(np.int64) if counts.shape == (0,) else counts
    if not x.ndim == y.ndim == times.ndim == 1 or not len(x) == len(y) == len(times):
        raise ValueError(
            "x, y and times of Traces.from_arrays must have one dimension and one length. "
            f"Got the shapes {x.shape}, {y.shape} and {times.shape} instead."
        )
    if times.dtype.kind not in "iM":
        raise TypeError(
            "The times of Traces.from_arrays must be int64 nanoseconds since 1970-01-01 or datetime64. "
            f"Got {times.dtype} instead."
        )
    codes, keys = read_users(pd.Series(users, name="user"))
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or np.any(counts < 0) or counts.sum() != len(x):
        raise ValueError(
            "The counts of Traces.from_arrays must be whole numbers, none below 0, that add up to the records: "
            f"{len(x):,}."
        )
    if not len(keys) == len(codes) == len(counts):
        raise ValueError(
            "The users of Traces.from_arrays must be distinct, none missing, one for each count. "
            f"Got {counted(len(codes), 'key')}, {len(keys):,} of them distinct, and {len(counts):,} counts."
        )
    stamps = pd.DatetimeIndex(times if times.dtype.kind == "M" else times.astype(np.int64).view("M8[ns]"))
    nanoseconds, no_time, _, _ = read_times(stamps)
    return _judged(
        x, y, nanoseconds, no_time, np.repeat(codes, counts), keys, crs=crs, space=space, names=names, errors="raise"
    )


def _plain(values: Any, name: str) -> np.ndarray:
    if masked := int(np.ma.count_masked(values)) if isinstance(values, np.ma.MaskedArray) else 0:
        rule = f"The {name} of Traces.from_arrays must hold no masked values."
        raise ValueError(f"{rule} Got {masked:,} of {len(values):,}. Leave these records out.")
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(
            f"The {name} of Traces.from_arrays must have one dimension. Got rows of many lengths."
        ) from None


def _numbers(values: Any, name: str) -> np.ndarray:
    """An array of floats."""
    found = _plain(values, name)
    with suppress(TypeError, ValueError, OverflowError):
        if found.dtype.kind in "iufO":
            return found.astype(np.float64, copy=False)
    raise TypeError(f"The {name} of Traces.from_arrays must hold numbers. Got {found.dtype} instead.")


def _judged(
    x: np.ndarray,
    y: np.ndarray,
    times: np.ndarray,
    no_time: np.ndarray,
    codes: np.ndarray,
    users: pd.Index,
    *,
    crs: Any,
    space: str | Space | None,
    names: Names,
    errors: str,
) -> Records:
    """Choose the space by the good records, and raise or report what is wrong with the others."""
    placed = np.isfinite(x) & np.isfinite(y)
    good = placed & ~no_time & (codes >= 0)
    whole = good.all()
    chosen = choose_space(crs, x if whole else x[good], y if whole else y[good], space=space)
    base = chosen.to_base(x, y)
    misplaced, misplaced_text = chosen.misplaced(x, y, base=base)
    complaints = [
        (~placed, "a missing or empty geometry, one that is not a point, or a coordinate that is not finite"),
        (placed & misplaced, misplaced_text),
        (no_time, "no time"),
        (codes < 0, "no user"),
    ]
    return Records(*base, times, codes, users, chosen, names, _heard(complaints, drop=errors == "drop"))


def _check_frame(frame: gpd.GeoDataFrame) -> None:
    if not isinstance(frame, gpd.GeoDataFrame):
        raise TypeError(
            f"Traces are read from a GeoDataFrame of points. Got a {type(frame).__name__} instead. Make one with "
            "geopandas.GeoDataFrame(df, geometry=geopandas.points_from_xy(df.lon, df.lat), crs=4326)."
        )
    check_geometry(frame)
    if frame.crs is None:
        raise ValueError(
            "The GeoDataFrame has no CRS, so its distances have no unit. "
            "Say which one it is, for example gdf.set_crs(4326) for longitude and latitude."
        )


def _heard(complaints: list[tuple[np.ndarray, str]], *, drop: bool) -> np.ndarray | None:
    """Raise or report all complaints at once; return the bad records, or None."""
    found = [(mask, text) for mask, text in complaints if mask.any()]
    if not found:
        return None
    bad = np.logical_or.reduce([mask for mask, _ in found])
    details = "; ".join(f"{text}: {mask.sum():,}, first in row {mask.argmax():,}" for mask, text in found)
    if not drop:
        raise ValueError(
            f"{counted(int(bad.sum()), 'record')} of {len(bad):,} cannot be used (rows are counted from 0): "
            f"{details}. Mend them, or leave them out with pg.Traces.from_frame(gdf, errors='drop')."
        )
    warn(f"{counted(int(bad.sum()), 'record')} of {len(bad):,} left out (rows are counted from 0): {details}.")
    return bad


def in_order(records: Records) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Order the good records by (user, time, input position).

    Parameters
    ----------
    records : Records
        The records of a data set.

    Returns
    -------
    order : numpy.ndarray of int64, shape (good records,), or None
        Positions in the input; None where all records stand in order already.
    times : numpy.ndarray of int64, shape (good records,)
        Their times.
    counts : numpy.ndarray of int64, shape (users,)
        How many of them each user has.
    """
    codes, times, order = records.codes, records.times, None
    if records.bad is not None:
        order = np.flatnonzero(~records.bad)
        codes = codes[order]
    if np.any(codes[1:] < codes[:-1]):
        narrow = np.uint16 if len(records.users) <= np.iinfo(np.uint16).max else np.int64  # 16 bits sort by radix
        by_user = np.argsort(codes.astype(narrow), kind="stable")
        order = by_user if order is None else order[by_user]
    counts = np.bincount(codes, minlength=len(records.users))
    order, times = _sorted_by_time(order, times if order is None else times[order], as_offsets(counts[counts > 0]))
    return order, times, counts


def _sorted_by_time(
    order: np.ndarray | None, times: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray]:
    """Sort the records of each trace that is not in order of time; equal times stay in input order."""
    backward = times[1:] < times[:-1]
    backward[offsets[1:-1] - 1] = False  # from one trace to the next
    unsorted = np.unique(np.searchsorted(offsets, np.flatnonzero(backward), side="right") - 1)
    if len(unsorted) == 0:
        return order, times
    order = np.arange(len(times)) if order is None else order.copy()
    times = times.copy()
    for start, stop in zip(offsets[unsorted], offsets[unsorted + 1], strict=True):
        by_time = np.argsort(times[start:stop], kind="stable")
        order[start:stop] = order[start:stop][by_time]
        times[start:stop] = times[start:stop][by_time]
    return order, times


def as_offsets(counts: np.ndarray) -> np.ndarray:
    """Return where each of consecutive runs begins and the last one ends."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
