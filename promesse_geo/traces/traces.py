"""Traces: the columnar form in which everything is computed, and the two doors from and to GeoDataFrames."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import geopandas as gpd
import numpy as np
import pandas as pd
from geopandas.array import GeometryArray

from promesse_geo.messages import counted
from promesse_geo.traces.columns import Name, Names
from promesse_geo.traces.points import make_points
from promesse_geo.traces.records import (
    DroppedColumns,
    Records,
    array_records,
    as_offsets,
    in_order,
    read_records,
    warn_dropped_columns,
)
from promesse_geo.traces.space import Space
from promesse_geo.validation import check_zone

_ARRAYS = ("points", "times", "offsets", "positions")


def freeze(array: np.ndarray) -> np.ndarray:
    """Make an array that nobody else holds read-only, with those whose memory it shares, and return it."""
    shared: Any = array
    while isinstance(shared, np.ndarray):
        shared.setflags(write=False)
        shared = shared.base
    return array


def _is_writable(array: Any) -> bool:
    """Whether the array, or one whose memory it shares, can be written to."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False


@dataclass(frozen=True, eq=False, repr=False)
class Traces:
    """All records of a data set as arrays, one trace after the other.

    Traces are in ascending order of the user key, records in order of (time, input position). Make them with
    `from_frame`, `from_arrays` or a reader: the constructor does not check its arguments. The arrays are read-only;
    those that can be written to are copied.

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

    def __post_init__(self) -> None:
        """Copy the arrays that others can write to."""
        for name in _ARRAYS:
            array = getattr(self, name)
            if _is_writable(array):
                object.__setattr__(self, name, freeze(array.copy()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays of a pickle or a deep copy read-only."""
        vars(self).update(state)
        for name in _ARRAYS:
            freeze(state[name])

    def __len__(self) -> int:
        """Return the number of traces."""
        return len(self.users)

    def __repr__(self) -> str:
        """Say how much there is, without saying where or whose."""
        text = f"{counted(len(self), 'trace')}, {counted(self.records, 'record')}"
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
        warn_dropped_columns(left_out)
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
        """Take arrays that hold one user's records after the other's, in any order of users and times.

        Parameters
        ----------
        x, y : numpy.ndarray of float64, shape (records,)
            Coordinates in the CRS: longitude and latitude, or easting and northing.
        times : numpy.ndarray of int64 or datetime64, shape (records,)
            Nanoseconds since 1970-01-01, or numpy's own.
        users : sequence of text or integers, length traces
            The distinct keys, in the order in which their records stand.
        counts : numpy.ndarray of integers, shape (traces,)
            The number of records of each user.
        crs, zone, space, names
            As everywhere; `names` replaces the default column names.

        Returns
        -------
        Traces

        Raises
        ------
        TypeError, ValueError
            If lengths, counts, users, times or coordinates are not as said.
        """
        tz = check_zone(zone, name="zone", owner="Traces") if zone is not None else None
        names = Names(zone=tz) if names is None else names
        return cls.from_records(
            array_records(x, y, times=times, users=users, counts=counts, crs=crs, space=space, names=names)
        )

    @classmethod
    def from_records(cls, records: Records) -> "Traces":
        """Take checked records, in any order."""
        order, times, counts = in_order(records)
        x, y, positions = records.x, records.y, np.arange(len(times))
        if order is not None:
            x, y, positions = x[order], y[order], order
        return cls(
            points=freeze(records.space.from_base(x, y)),
            times=times if order is None else freeze(times),
            offsets=as_offsets(counts[counts > 0]),
            users=records.users[counts > 0],
            positions=freeze(positions),
            space=records.space,
            names=records.names,
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
            geometry = GeometryArray(make_points(*self.coordinates()), crs=self.space.crs)
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
            points=freeze(self.points[keep]),
            times=freeze(self.times[keep]),
            positions=freeze(self.positions[keep]),
            offsets=as_offsets(kept[remain]),
            users=self.users[remain],
        )


Data = TypeVar("Data", gpd.GeoDataFrame, Traces)


def map_traces(
    data: Data, work: Callable[[Traces], Traces], *, user: Name = ..., time: Name = ..., selects: bool = False
) -> Data:
    """Do work on a frame or on Traces, and give back the kind that came.

    With `selects`, each record that comes out is one that went in: then its geometry is taken, not made.
    """
    if isinstance(data, Traces):
        return work(_unnamed(data, user=user, time=time))
    traces, left_out = read_frame(data, user=user, time=time)
    warn_dropped_columns(left_out)
    result = work(traces)
    if not selects:
        return result.to_frame()
    points = data.geometry.force_2d() if left_out.elevation else data.geometry
    return result.to_frame(geometry=points.array.take(result.positions))


def as_traces(data: "gpd.GeoDataFrame | Traces", *, user: Name = ..., time: Name = ..., warns: bool = False) -> Traces:
    """Return Traces of a frame or of Traces, for work that gives something else back; say what is left out or not."""
    if isinstance(data, Traces):
        return _unnamed(data, user=user, time=time)
    traces, left_out = read_frame(data, user=user, time=time)
    if warns:
        warn_dropped_columns(left_out)
    return traces


def _unnamed(traces: Traces, *, user: Name, time: Name) -> Traces:
    if user is not ... or time is not ...:
        raise TypeError("The 'user' and 'time' parameters name columns of a GeoDataFrame; Traces have no columns.")
    return traces


def read_frame(
    frame: gpd.GeoDataFrame,
    *,
    user: Name = ...,
    time: Name = ...,
    space: str | Space | None = None,
    errors: str = "raise",
) -> tuple[Traces, DroppedColumns]:
    """Read a frame as `Traces.from_frame` does, and say what was left out instead of warning of it."""
    records, left_out = read_records(frame, user=user, time=time, space=space, errors=errors)
    return Traces.from_records(records), left_out
