"""Traces: the arrays on which everything is computed, and their conversion from and to GeoDataFrames."""

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import geopandas as gpd
import numpy as np
import pandas as pd
from geopandas.array import GeometryArray

from promesse_geo.messages import counted
from promesse_geo.traces.columns import ROLES, Name, Names
from promesse_geo.traces.frames import as_points
from promesse_geo.traces.records import (
    NO_BREAKS,
    DroppedColumns,
    Records,
    as_offsets,
    raise_invalid,
    warn_dropped_columns,
    warn_invalid,
    warn_unused_segment,
    within_traces,
)
from promesse_geo.traces.space import Space
from promesse_geo.traces.values import TimeFormat, make_points
from promesse_geo.validation import check_errors, check_zone

_ARRAYS = ("points", "times", "offsets", "positions", "breaks")


def freeze(array: np.ndarray) -> np.ndarray:
    """Make an array read-only, of any shape, with those whose memory it shares, and return it.

    Use it on arrays without other references: `Traces` copies writable ones.
    """
    shared: Any = array
    while isinstance(shared, np.ndarray):
        shared.setflags(write=False)
        shared = shared.base
    return array


def _is_in_open_buffer(array: np.ndarray) -> bool:
    """Whether the memory of an array is that of another object that can be written to, such as a bytearray."""
    shared: Any = array
    while isinstance(shared, np.ndarray):
        shared = shared.base
    while isinstance(shared, memoryview):  # which may be read-only where what it shows is not
        shared = shared.obj
    return shared is not None and not memoryview(shared).readonly


@dataclass(frozen=True, eq=False, repr=False)
class Traces:
    """Records of a data set as arrays, one trace after the other.

    Traces are in ascending order of the user, records in order of (time, input position). Make them with
    `from_frame`, `from_arrays` or a reader: the constructor does not check its arguments. The arrays are read-only;
    writable ones are copied.

    Parameters
    ----------
    points : numpy.ndarray of float64, shape (records, 3) or (records, 2)
        Unit vectors on the sphere, or metres in the plane.
    times : numpy.ndarray of int64, shape (records,)
        Nanoseconds since 1970-01-01 UTC; of the wall clock for naive times.
    offsets : numpy.ndarray of int64, shape (traces + 1,)
        Trace i holds the records `offsets[i]` to `offsets[i + 1]`.
    users : pandas.Index, length traces
        The user of each trace.
    positions : numpy.ndarray of int64, shape (records,)
        The position of each record in the input.
    space : Sphere or Plane
        Where the points lie, and the CRS of their coordinates.
    names : Names
        The column names of `to_frame`.
    time_format : TimeFormat
        The time zone and the unit of `to_frame`.
    breaks : numpy.ndarray of int64, shape (breaks,)
        Ascending positions of the records, never the first of a trace, that begin a new segment: what lies between
        them and the record before was not recorded, so that nothing is interpolated there.
    protection : dict or None
        Name (`mechanism`) and public `parameters` of the mechanism that protected the data; None if the data is not
        known to be protected.

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
    time_format: TimeFormat = field(default=TimeFormat())
    breaks: np.ndarray = field(default_factory=lambda: NO_BREAKS)
    protection: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Copy the arrays that can be written to, or that share memory with such."""
        for name in _ARRAYS:
            array = shared = getattr(self, name)
            while isinstance(shared, np.ndarray):
                if shared.flags.writeable:
                    array = array.copy()
                    array.setflags(write=False)
                    object.__setattr__(self, name, array)
                    break
                shared = shared.base

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays of a pickle or a deep copy read-only; copy those in buffers that others can write to."""
        owned = {name: state[name].copy() if _is_in_open_buffer(state[name]) else state[name] for name in _ARRAYS}
        vars(self).update(state | owned)
        for array in owned.values():
            freeze(array)

    def __len__(self) -> int:
        """Return the number of traces."""
        return len(self.users)

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the remedy if GeoDataFrames have such an attribute."""
            known = not name.startswith("_") and (name == "promesse" or hasattr(gpd.GeoDataFrame, name))
            remedy = f" Make a GeoDataFrame, which has it: traces.to_frame().{name}" if known else ""
            raise AttributeError(f"Traces have no attribute {name!r}.{remedy}")

    def __repr__(self) -> str:
        """Summarize, without users and places."""
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
        """The number of records of each trace, int64 of shape (traces,)."""
        return np.diff(self.offsets)

    @property
    def trace_numbers(self) -> np.ndarray:
        """The position of each record's trace, int64 of shape (records,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    @property
    def segments(self) -> np.ndarray:
        """Offsets of all segments, int64 of shape (segments + 1,). Segment i is `segments[i]` to `segments[i + 1]`."""
        return np.union1d(self.offsets, self.breaks) if len(self.breaks) else self.offsets

    @property
    def segment_owners(self) -> np.ndarray:
        """The position of each segment's trace, int64 of shape (segments,)."""
        if not len(self.breaks):
            return np.arange(len(self))
        return np.searchsorted(self.offsets, self.segments[:-1], side="right") - 1

    @property
    def segment_numbers(self) -> np.ndarray:
        """The number of each record's segment in its trace, from 0, int64 of shape (records,)."""
        begins = np.zeros(self.records, np.int64)
        begins[self.breaks] = 1
        numbers = np.cumsum(begins)
        return numbers - np.repeat(numbers[self.offsets[:-1]], self.counts)

    @classmethod
    def from_frame(
        cls,
        frame: gpd.GeoDataFrame,
        *,
        user: Name = ...,
        time: Name = ...,
        segment: Name = ...,
        space: str | Space | None = None,
        errors: str = "raise",
    ) -> "Traces":
        """Read a GeoDataFrame of points, a DataFrame with coordinates, or trajectories of MovingPandas.

        Parameters
        ----------
        frame : geopandas.GeoDataFrame, pandas.DataFrame, or movingpandas TrajectoryCollection or Trajectory
            One row per record, with a CRS; it is not changed. A DataFrame without a geometry needs columns of longitude
            and latitude, named as lon and lat or lng and lat, in EPSG:4326. Trajectories of MovingPandas are one user
            each, or if they have an object's id, segments of one user. Records that a column `visible` or `valid` marks
            as bad are left out with a warning; rename the column to keep them.
        user, time : column name, None or ...
            Names of the columns; by default they are detected. `user=None` if the frame is a single trace. A
            DatetimeIndex serves as time.
        segment : column name, None or ...
            A column whose value changes where the recorder paused or lost reception: nothing is interpolated between
            two segments. By default only the column that this package added to the frame.
        space : {"sphere", "plane"}, Sphere, Plane or None
            Where distances are measured; None chooses by the CRS.
        errors : {"raise", "skip"}
            What to do with records that have no valid location, time or user: raise one error that counts them, or
            drop them with a warning. "drop" is a synonym of "skip".

        Returns
        -------
        Traces

        Raises
        ------
        TypeError, ValueError, KeyError
            If the frame cannot be read; for invalid records with their number and first row (counted from 0).

        Examples
        --------
        >>> import promesse_geo as pg
        >>> pg.Traces.from_frame(pg.make_city(users=2, days=2)).space.name
        'sphere'
        """
        report = raise_invalid if check_errors(errors, owner="Traces.from_frame") == "raise" else warn_invalid
        records = Records.from_frame(frame, user=user, time=time, segment=segment)
        traces = cls.from_records(records, space=space, report=report)
        warn_dropped_columns(records.dropped)
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
        segments: np.ndarray | None = None,
    ) -> "Traces":
        """Make Traces of arrays that hold the records of one user after the other.

        Users and times may be in any order.

        Parameters
        ----------
        x, y : numpy.ndarray of float64, shape (records,)
            Coordinates in the CRS: longitude and latitude, or easting and northing.
        times : numpy.ndarray of int64 or datetime64, shape (records,)
            Integers are nanoseconds since 1970-01-01.
        users : sequence of text or integers, length traces
            The distinct users, in the order of their records.
        counts : numpy.ndarray of integers, shape (traces,)
            The number of records of each user.
        crs : pyproj.CRS or anything that pyproj accepts
            The CRS of the coordinates.
        zone : str, tzinfo or None
            The time zone of `to_frame`; times are UTC then, or naive for None.
        space : {"sphere", "plane"}, Sphere, Plane or None
            Where distances are measured; None chooses by the CRS.
        names : Names, optional
            Column names of `to_frame`.
        segments : numpy.ndarray of integers, shape (records,), optional
            Numbers that differ between two consecutive records of a user if nothing was recorded between them.

        Returns
        -------
        Traces

        Raises
        ------
        TypeError, ValueError
            If an array has the wrong type, shape or length, or a record is invalid.
        """
        time_format = TimeFormat(None if zone is None else check_zone(zone, name="zone", owner="Traces"))
        records = Records.from_arrays(
            x,
            y,
            times=times,
            users=users,
            counts=counts,
            crs=crs,
            names=Names() if names is None else names,
            time_format=time_format,
            segments=segments,
        )
        return cls.from_records(records, space=space)

    @classmethod
    def from_records(
        cls,
        records: Records,
        *,
        space: str | Space | None = None,
        report: Callable[[Mapping[str, np.ndarray]], None] = raise_invalid,
    ) -> "Traces":
        """Validate and sort records; `report` gets masks of shape (records,), see `Records.validate`."""
        space, base, valid = records.validate(space=space, report=report)
        order, times, offsets, users = records.sort(valid)
        x, y = base if order is None else (axis[order] for axis in base)
        positions = np.arange(len(times)) if order is None else order
        return cls(
            points=freeze(space.from_base(x, y)),
            times=times if order is None else freeze(times),
            offsets=offsets,
            users=users,
            positions=freeze(positions),
            space=space,
            names=records.names,
            time_format=records.time_format,
            breaks=freeze(records.breaks(order, offsets)),
            protection=records.protection,
        )

    def to_frame(self, *, geometry: GeometryArray | None = None) -> gpd.GeoDataFrame:
        """Return a GeoDataFrame with user, time and geometry, in the order of the traces and with a fresh index.

        Parameters
        ----------
        geometry : geopandas.array.GeometryArray, optional
            Points to use instead of new ones, in the order of the traces.

        Returns
        -------
        geopandas.GeoDataFrame
            With the column names, CRS, time zone and unit of the input. A DatetimeIndex is one again. If there are
            breaks, an integer column `segment` numbers the segments of each user from 0. `attrs["promesse"]` holds the
            names of the columns by role and, if a mechanism protected the data, its name and public parameters under
            "mechanism".

        Examples
        --------
        >>> import promesse_geo as pg
        >>> list(pg.make_city(users=2, days=2, as_traces=True).to_frame().columns)
        ['user', 'time', 'geometry']
        """
        names = self.output_names()
        index = self.time_index()
        columns: dict[Hashable, Any] = {}
        if names.user is not None:
            columns[names.user] = self.users.repeat(np.diff(self.offsets))
        if not names.time_is_index:
            columns[names.time] = index
        if names.segment is not None:
            columns[names.segment] = self.segment_numbers
        if geometry is None:
            geometry = GeometryArray(make_points(*self.space.coordinates(self.points)), crs=self.space.crs)
        columns[names.geometry] = geometry
        frame = gpd.GeoDataFrame(columns, geometry=names.geometry)
        frame.attrs[ROLES] = names.roles() | ({"mechanism": copy.deepcopy(self.protection)} if self.protection else {})
        return frame.set_index(index.rename(names.time)) if names.time_is_index else frame

    def output_names(self) -> Names:
        """Return the column names of `to_frame`: with a segment if there are breaks."""
        return self.names.with_segment() if len(self.breaks) else replace(self.names, segment=None)

    def time_index(self) -> pd.DatetimeIndex:
        """Return the times, length records, in their zone and unit."""
        index = pd.DatetimeIndex(self.times.view("M8[ns]")).as_unit(self.time_format.unit)
        zone = self.time_format.zone
        return index if zone is None else index.tz_localize("UTC").tz_convert(zone)

    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y in the CRS, each of shape (records,): longitude and latitude, or easting and northing."""
        return self.space.coordinates(self.points)

    def select(self, keep: np.ndarray) -> "Traces":
        """Return the records where `keep`, bool of shape (records,), is true, and only traces that hold such.

        A segment begins with its first record that is kept.
        """
        return self.take(np.flatnonzero(keep))  # three times as fast as indexing with a mask

    def take(self, rows: np.ndarray) -> "Traces":
        """Return records by their positions, ascending int64 of shape (records,), and only traces that hold such.

        A segment begins with its first record that is kept.
        """
        kept = np.diff(np.searchsorted(rows, self.offsets))
        remain = kept > 0
        offsets = as_offsets(kept[remain])
        breaks = self.breaks
        if len(breaks):
            breaks = within_traces(np.searchsorted(rows, breaks), offsets)
        return replace(
            self,
            points=freeze(self.points.take(rows, axis=0)),
            times=freeze(self.times.take(rows)),
            positions=freeze(self.positions.take(rows)),
            offsets=offsets,
            users=self.users[remain],
            breaks=freeze(breaks),
        )


Data = TypeVar("Data", gpd.GeoDataFrame, Traces)


def map_traces(
    data: Data,
    work: Callable[[Traces], Traces],
    *,
    user: Name = ...,
    time: Name = ...,
    segment: Name = ...,
    selects: bool = False,
) -> Data:
    """Apply a function of Traces to a frame or to Traces, and return the same kind.

    With `selects` the function only selects records, so that their geometries are reused.
    """
    if isinstance(data, Traces):
        return work(_without_names(data, user=user, time=time, segment=segment))
    data = as_points(data)
    records = Records.from_frame(data, user=user, time=time, segment=segment)
    traces = Traces.from_records(records)
    warn_dropped_columns(records.dropped)
    result = work(traces)
    if not selects:
        return result.to_frame()
    points = data.geometry.force_2d() if records.dropped.elevation else data.geometry
    return result.to_frame(geometry=points.array.take(result.positions))


def as_traces(data: "gpd.GeoDataFrame | Traces", *, user: Name = ..., time: Name = ..., warns: bool = False) -> Traces:
    """Return Traces of a frame or of Traces; with `warns`, warn of the columns that they do not hold.

    Warn in any case of a column that may number segments.
    """
    if isinstance(data, Traces):
        return _without_names(data, user=user, time=time)
    traces, dropped = read_frame(data, user=user, time=time)
    if warns:
        warn_dropped_columns(dropped)
    else:
        warn_unused_segment(dropped)
    return traces


def _without_names(traces: Traces, *, user: Name, time: Name, segment: Name = ...) -> Traces:
    if not user is time is segment is ...:
        raise TypeError("'user', 'time' and 'segment' are names of columns of a GeoDataFrame; Traces have no columns.")
    return traces


def read_frame(frame: gpd.GeoDataFrame, *, user: Name = ..., time: Name = ...) -> tuple[Traces, DroppedColumns]:
    """Read a frame as `Traces.from_frame` does; return what it holds besides instead of warning of it."""
    records = Records.from_frame(frame, user=user, time=time)
    return Traces.from_records(records), records.dropped
