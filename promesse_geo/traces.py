"""Traces: the columnar form in which everything is computed, and the two doors from and to GeoDataFrames."""

import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from geopandas.array import GeometryArray

from promesse_geo import check
from promesse_geo.columns import Name, Names, find_names, read_times, read_users
from promesse_geo.space import Space, choose_space

_BLOCK = 8192  # geometries read at a time, so that they stay in the cache between the questions asked of them


@dataclass(frozen=True, eq=False, repr=False)
class Traces:
    """All records of a data set as arrays, one trace after the other.

    Traces stand in ascending order of the user key, records by (time, input position). Make them with
    `from_frame`, `from_arrays` or a reader; the fields are not checked again.

    Parameters
    ----------
    points : numpy.ndarray of float64, shape (records, 3) or (records, 2)
        Unit vectors on the sphere, or metres in the plane.
    times : numpy.ndarray of int64, shape (records,)
        Nanoseconds since 1970-01-01 UTC (of the wall clock where there is no zone).
    offsets : numpy.ndarray of int64, shape (traces + 1,)
        Trace i holds the records `offsets[i]` to `offsets[i + 1]`.
    users : pandas.Index, length traces
        The user key of each trace.
    positions : numpy.ndarray of int64, shape (records,)
        Each record's position in the input.
    space : Sphere or Plane
        Where the points lie, and the CRS in which they come back.
    names : Names
        The column names, the zone and the unit of times in which they come back.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> traces = pg.make_city(users=2, days=2, as_traces=True)
    >>> len(traces)
    2
    """

    points: np.ndarray
    times: np.ndarray
    offsets: np.ndarray
    users: pd.Index
    positions: np.ndarray
    space: Space
    names: Names

    def __len__(self) -> int:
        """Return the number of traces."""
        return len(self.users)

    def __repr__(self) -> str:
        """Say how much there is, without saying where or whose."""
        text = f"{check.counted(len(self), 'trace')}, {check.counted(self.records, 'record')}"
        if self.records:
            first, last = (str(np.datetime64(int(day), "ns"))[:10] for day in (self.times.min(), self.times.max()))
            width, height = (round(side / 1000) for side in self.space.extent(self.points))
            text += f", {first} to {last}, {width:,} km × {height:,} km"
        return f"<Traces: {text}, {self.space.name}>"

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.times)

    @property
    def counts(self) -> np.ndarray:
        """The number of records of each trace, shape (traces,)."""
        return np.diff(self.offsets)

    @property
    def trace_numbers(self) -> np.ndarray:
        """The number of each record's trace, shape (records,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    @classmethod
    def from_frame(
        cls,
        frame: gpd.GeoDataFrame,
        *,
        user: Name = ...,
        time: Name = ...,
        space: str | Space | None = None,
        errors: str = "raise",
    ) -> "Traces":
        """Read a GeoDataFrame of points.

        Parameters
        ----------
        frame : geopandas.GeoDataFrame
            One row a record, with a CRS; it is not changed.
        user, time : column name, None or ...
            Names of the columns; `...` looks for them, `user=None` says that the frame is one trace. A
            DatetimeIndex serves as time.
        space : {"sphere", "plane"}, Sphere, Plane or None
            Where distances are measured; None chooses by the CRS.
        errors : {"raise", "drop"}
            What becomes of records without a valid location, time or user: one error with all complaints, or a
            counted warning.

        Returns
        -------
        Traces

        Raises
        ------
        TypeError, ValueError, KeyError
            If the frame cannot be read; data errors name counts and the first row (counted from 0).

        Examples
        --------
        >>> import promesse_geo as pg
        >>> pg.Traces.from_frame(pg.make_city(users=2, days=2)).space.name
        'sphere'
        """
        traces, left_out = read_frame(frame, user=user, time=time, space=space, errors=errors)
        tell_left_out(left_out)
        return traces

    @classmethod
    def from_arrays(
        cls,
        x: np.ndarray,
        y: np.ndarray,
        *,
        times: np.ndarray,
        users: Sequence[Hashable] | pd.Index,
        counts: np.ndarray,
        crs: Any = "EPSG:4326",
        zone: Any = "UTC",
        space: str | Space | None = None,
        names: Names | None = None,
    ) -> "Traces":
        """Take valid arrays that hold one user's records after the other's, in any order of users and times.

        Parameters
        ----------
        x, y : numpy.ndarray of float64, shape (records,)
            Coordinates in the CRS: longitude and latitude, or easting and northing.
        times : numpy.ndarray of int64, shape (records,)
            Nanoseconds since 1970-01-01.
        users : sequence of text or integers, length traces
            The distinct keys, in the order in which their records stand.
        counts : numpy.ndarray of integers, shape (traces,)
            The number of records of each user.
        crs, zone, space, names
            As everywhere; `names` replaces the default column names.

        Returns
        -------
        Traces
        """
        codes, keys = read_users(pd.Series(users, name="user"))
        tz = check.zone(zone, name="zone", owner="Traces") if zone is not None else None
        names = names or Names(zone=tz)
        return _assemble(
            np.asarray(x, np.float64),
            np.asarray(y, np.float64),
            times=np.asarray(times, np.int64),
            codes=np.repeat(codes, counts),
            users=keys,
            space=choose_space(crs, x, y, space=space),
            names=names,
        )

    def to_frame(self, *, geometry: GeometryArray | None = None) -> gpd.GeoDataFrame:
        """Return a GeoDataFrame with user, time and geometry, in this order and with a fresh index.

        Parameters
        ----------
        geometry : geopandas.array.GeometryArray, optional
            Points to take, in this order, instead of making them.

        Returns
        -------
        geopandas.GeoDataFrame
            Names, CRS and zone as they came in. A DatetimeIndex is one again.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> list(pg.make_city(users=2, days=2, as_traces=True).to_frame().columns)
        ['user', 'time', 'geometry']
        """
        names = self.names
        index = self.time_index()
        columns: dict[Hashable, Any] = {}
        if names.user is not None:
            columns[names.user] = self.users.take(self.trace_numbers)
        if not names.time_is_index:
            columns[names.time] = index
        if geometry is None:
            geometry = GeometryArray(shapely.points(*self.coordinates()), crs=self.space.crs)
        columns[names.geometry] = geometry
        frame = gpd.GeoDataFrame(columns, geometry=names.geometry)
        return frame.set_index(index.rename(names.time)) if names.time_is_index else frame

    def time_index(self) -> pd.DatetimeIndex:
        """Return the times as pandas' own, in their zone and unit."""
        index = pd.DatetimeIndex(self.times.view("M8[ns]")).as_unit(self.names.unit)
        return index if self.names.zone is None else index.tz_localize("UTC").tz_convert(self.names.zone)

    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y of each record in the CRS: longitude and latitude, or easting and northing."""
        return self.space.coordinates(self.points)

    def select(self, keep: np.ndarray) -> "Traces":
        """Return the records where `keep` is true, shape (records,), without the traces that hold none of them."""
        kept = np.add.reduceat(keep, self.offsets[:-1], dtype=np.int64) if len(self) else np.empty(0, np.int64)
        remain = kept > 0
        return replace(
            self,
            points=self.points[keep],
            times=self.times[keep],
            positions=self.positions[keep],
            offsets=as_offsets(kept[remain]),
            users=self.users[remain],
        )


def as_offsets(counts: np.ndarray) -> np.ndarray:
    """Return where each of consecutive runs begins and the last one ends."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def through_doors(
    data: "gpd.GeoDataFrame | Traces",
    work: Callable[[Traces], Traces],
    *,
    user: Name = ...,
    time: Name = ...,
    selects: bool = False,
) -> "gpd.GeoDataFrame | Traces":
    """Do work on a frame or on Traces, and give back the kind that came.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    work : callable
        Traces in, Traces out.
    user, time : column name, None or ...
        The frame's columns.
    selects : bool
        Whether each record that comes out is one that went in: then its geometry is taken, not made.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
    """
    if isinstance(data, Traces):
        return work(_unnamed(data, user=user, time=time))
    traces, left_out = read_frame(data, user=user, time=time)
    tell_left_out(left_out)
    result = work(traces)
    if selects and not left_out.elevation:
        return result.to_frame(geometry=data.geometry.array.take(result.positions))
    return result.to_frame()


def as_traces(data: "gpd.GeoDataFrame | Traces", *, user: Name = ..., time: Name = ...) -> Traces:
    """Return Traces of a frame or of Traces, for work that gives something else back."""
    if isinstance(data, Traces):
        return _unnamed(data, user=user, time=time)
    return read_frame(data, user=user, time=time)[0]


def _unnamed(traces: Traces, *, user: Name, time: Name) -> Traces:
    if user is not ... or time is not ...:
        raise TypeError("The 'user' and 'time' parameters name columns of a GeoDataFrame; Traces have no columns.")
    return traces


@dataclass(frozen=True)
class LeftOut:
    """What of a frame does not go into Traces: columns, and elevations."""

    columns: tuple[Hashable, ...]
    elevation: bool


def tell_left_out(left_out: LeftOut) -> None:
    """Warn once of what a frame held beside user, time and location."""
    parts = []
    if left_out.columns:
        noun = "The column" if len(left_out.columns) == 1 else "The columns"
        parts.append(f"{noun} {check.listed(left_out.columns)}")
    if left_out.elevation:
        parts.append("the elevations (Z)" if parts else "The elevations (Z)")
    if parts:
        many = len(parts) > 1 or left_out.elevation or len(left_out.columns) > 1
        check.tell(" and ".join(parts) + f" {'were' if many else 'was'} left out: traces hold user, time and location.")


def read_frame(
    frame: gpd.GeoDataFrame,
    *,
    user: Name = ...,
    time: Name = ...,
    space: str | Space | None = None,
    errors: str = "raise",
) -> tuple[Traces, LeftOut]:
    """Read a frame as `Traces.from_frame` does, and say what was left out instead of warning of it."""
    check.choice(errors, name="errors", owner="Traces.from_frame", options=("raise", "drop"))
    _check_frame(frame)
    names = find_names(frame, user=user, time=time)
    x, y, has_z = _read_points(frame.geometry.array)
    times, no_time, zone, unit = read_times(frame.index if names.time_is_index else frame[names.time])
    names = replace(names, zone=zone, unit=unit)
    if names.user is None:
        codes, users = np.zeros(len(frame), np.int64), pd.Index(["trace"] if len(frame) else [], dtype=object)
    else:
        codes, users = read_users(frame[names.user])
    placed = np.isfinite(x) & np.isfinite(y)
    whole = placed.all()
    chosen = choose_space(frame.crs, x if whole else x[placed], y if whole else y[placed], space=space)
    misplaced, misplaced_text = chosen.misplaced(x, y)
    complaints = [
        (~placed, "a missing or empty geometry, one that is not a point, or a coordinate that is not finite"),
        (placed & misplaced, misplaced_text),
        (no_time, "no time"),
        (codes < 0, "no user"),
    ]
    bad = _heard(complaints, drop=errors == "drop")
    traces = _assemble(x, y, times=times, codes=codes, users=users, space=chosen, names=names, bad=bad)
    taken = {names.user, names.geometry} | (set() if names.time_is_index else {names.time})
    return traces, LeftOut(tuple(column for column in frame.columns if column not in taken), has_z)


def _check_frame(frame: gpd.GeoDataFrame) -> None:
    if not isinstance(frame, gpd.GeoDataFrame):
        raise TypeError(
            f"Traces are read from a GeoDataFrame of points. Got a {type(frame).__name__} instead. Make one with "
            "geopandas.GeoDataFrame(df, geometry=geopandas.points_from_xy(df.lon, df.lat), crs=4326)."
        )
    if frame._geometry_column_name not in frame.columns:
        raise ValueError("The GeoDataFrame has no active geometry column. Choose one with gdf.set_geometry(…).")
    if frame.crs is None:
        raise ValueError(
            "The GeoDataFrame has no CRS, so its distances have no unit. "
            "Say which one it is, for example gdf.set_crs(4326) for longitude and latitude."
        )


def _read_points(geometry: GeometryArray) -> tuple[np.ndarray, np.ndarray, bool]:
    """X and y of points, NaN for whatever is none; and whether any has a Z. Bound: one visit to each geometry."""
    geometries = np.asarray(geometry, dtype=object)
    x, y = np.empty(len(geometries)), np.empty(len(geometries))
    has_z = np.empty(len(geometries), bool)

    def read(start: int) -> None:
        block = slice(start, start + _BLOCK)
        shapely.get_x(geometries[block], out=x[block])
        shapely.get_y(geometries[block], out=y[block])
        shapely.has_z(geometries[block], out=has_z[block])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(read, range(0, len(geometries), _BLOCK)))
    return x, y, bool(has_z.any())


def _heard(complaints: list[tuple[np.ndarray, str]], *, drop: bool) -> np.ndarray | None:
    """Raise or report all complaints at once; return the bad records, or None."""
    found = [(mask, text) for mask, text in complaints if mask.any()]
    if not found:
        return None
    bad = np.logical_or.reduce([mask for mask, _ in found])
    details = "; ".join(f"{text}: {mask.sum():,}, first in row {mask.argmax():,}" for mask, text in found)
    if not drop:
        raise ValueError(
            f"{check.counted(int(bad.sum()), 'record')} of {len(bad):,} cannot be used (rows are counted from 0): "
            f"{details}. Mend them, or leave them out with pg.Traces.from_frame(gdf, errors='drop')."
        )
    check.tell(f"{check.counted(int(bad.sum()), 'record')} of {len(bad):,} left out: {details}.")
    return bad


def _assemble(
    x: np.ndarray,
    y: np.ndarray,
    *,
    times: np.ndarray,
    codes: np.ndarray,
    users: pd.Index,
    space: Space,
    names: Names,
    bad: np.ndarray | None = None,
) -> Traces:
    """Put records in the order of (user, time, input position)."""
    order = None
    if bad is not None:
        order = np.flatnonzero(~bad)
        codes = codes[order]
    if np.any(codes[1:] < codes[:-1]):
        narrow = np.uint16 if len(users) <= np.iinfo(np.uint16).max else np.int64  # numpy sorts 16 bits by radix
        by_user = np.argsort(codes.astype(narrow), kind="stable")
        order = by_user if order is None else order[by_user]
    counts = np.bincount(codes, minlength=len(users))
    users, offsets = users[counts > 0], as_offsets(counts[counts > 0])
    if order is not None:
        times = times[order]
    order, times = _sorted_by_time(order, times, offsets)
    if order is not None:
        x, y = x[order], y[order]
    positions = np.arange(len(times)) if order is None else order
    return Traces(space.points(x, y), times, offsets, users, positions, space, names)


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
