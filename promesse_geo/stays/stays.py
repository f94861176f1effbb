"""Points of interest: the stays of each trace, found as Hariharan and Toyama do (paper, section V-B)."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from geopandas.array import GeometryArray

from promesse_geo import threads
from promesse_geo.kernels import extents
from promesse_geo.kernels import stays as kernel
from promesse_geo.messages import listed
from promesse_geo.traces.columns import Name
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.traces.values import make_points
from promesse_geo.validation import check_duration, check_number


def pois(
    data: gpd.GeoDataFrame | Traces,
    diameter: float = 200,
    duration: Any = "15min",
    *,
    user: Name = ...,
    time: Name = ...,
) -> gpd.GeoDataFrame:
    """Find where users stayed, as the paper's attacker does.

    Records are read in order of time with a candidate stay. A record within `diameter` of every record of the
    candidate joins it. Otherwise a candidate that lasts for `duration` is a stay, and the record begins the next
    candidate; one that does not last loses its oldest records until the record joins. Stays at the same place are
    not merged, as in the paper; `PoiExtractor(merge="places")` does that.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data, original or protected; it is not changed.
    diameter : float
        Greatest distance in metres between any two records of a stay, from 0.01 to 1,000,000.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of a stay. A gap between records counts as time spent.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame
        One row a stay, in the order of traces and of time: the user, `arrival` and `departure` (times of its first
        and last record, in the zone and unit of the data), `records` (their number), the mean of their locations
        in the CRS of the data, and `diameter` (metres between the two records farthest apart).

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is wrong or the data cannot be read.

    References
    ----------
    Hariharan, Toyama: Project Lachesis: Parsing and Modeling Location Histories. GIScience 2004. Paper, section V-B.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> stays = pg.pois(pg.make_city(users=2, days=2))
    >>> list(stays.columns)
    ['user', 'arrival', 'departure', 'records', 'geometry', 'diameter']
    """
    metres, nanoseconds = checked_stay(diameter, duration, owner="pois")
    traces = as_traces(data, user=user, time=time)
    return find_pois(traces, diameter=metres, duration=nanoseconds).to_frame(traces)


def checked_stay(diameter: float, duration: Any, *, owner: str) -> tuple[float, int]:
    """Return the diameter in metres and the duration in nanoseconds of a stay; raise if one is invalid."""
    metres = check_number(diameter, name="diameter", owner=owner, unit="metres", low=0.01, high=1e6)
    return metres, check_duration(duration, name="duration", owner=owner)


@dataclass(frozen=True, eq=False)
class Pois:
    """Points of interest as arrays, in the order of traces and of arrival.

    Parameters
    ----------
    traces : numpy.ndarray of int64, shape (pois,)
        The number of each one's trace.
    starts, ends : numpy.ndarray of int64, shape (pois,)
        A stay holds the records `starts[i]` to `ends[i]` of the data (half open); a place that was merged of several
        lies between its first and its last.
    records : numpy.ndarray of int64, shape (pois,)
        The number of records.
    points : numpy.ndarray of float64, shape (pois, 3) or (pois, 2)
        The mean of the records in kernel coordinates, of unit length on the sphere.
    diameters : numpy.ndarray of float64, shape (pois,)
        Metres between the two records that are farthest apart.
    """

    traces: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    records: np.ndarray
    points: np.ndarray
    diameters: np.ndarray

    def __len__(self) -> int:
        """Return the number of points of interest."""
        return len(self.traces)

    def offsets(self, traces: int) -> np.ndarray:
        """Return where the points of interest of each trace begin, and the end of the last, shape (traces + 1,)."""
        return as_offsets(np.bincount(self.traces, minlength=traces))

    def to_frame(self, traces: Traces, *, stays: np.ndarray | None = None) -> gpd.GeoDataFrame:
        """Return a GeoDataFrame, with the names, the CRS, the zone and the unit of times of the traces.

        `stays`, shape (points of interest,), is the number of stays of each place, which becomes a column.
        """
        names, space = traces.names, traces.space
        ours = ["arrival", "departure", "records", "diameter", *([] if stays is None else ["stays"])]
        taken = [name for name in (names.user, names.geometry) if name in ours]
        if taken:
            raise ValueError(f"Points of interest have columns {listed(ours)} of their own. Rename {listed(taken)}.")
        columns: dict[Hashable, Any] = {} if names.user is None else {names.user: traces.users.take(self.traces)}
        columns["arrival"] = replace(traces, times=traces.times[self.starts]).time_index()
        columns["departure"] = replace(traces, times=traces.times[self.ends - 1]).time_index()
        columns["records"] = self.records
        columns[names.geometry] = GeometryArray(make_points(*space.coordinates(self.points)), crs=space.crs)
        columns["diameter"] = self.diameters
        if stays is not None:
            columns["stays"] = stays
        return gpd.GeoDataFrame(columns, geometry=names.geometry, index=pd.RangeIndex(len(self)))


def find_pois(traces: Traces, *, diameter: float, duration: int) -> Pois:
    """Find the stays of traces: metres and nanoseconds, checked already."""
    space, offsets = traces.space, traces.offsets
    starts, ends = np.empty((2, traces.records // 2), np.int64)  # a stay holds two records or more
    counts = np.zeros(len(traces), np.int64)
    limit = space.chord(diameter) ** 2
    threads.run_interruptible(
        lambda first, last: kernel.find(
            traces.points, traces.times, offsets, limit, duration, kernel.SHORT, first, last, starts, ends, counts
        ),
        threads.fair(traces.counts, most=threads.MANY),
    )
    found = as_offsets(counts)
    slots = np.arange(found[-1]) + np.repeat(offsets[:-1] // 2 - found[:-1], counts)
    starts, ends = starts[slots], ends[slots]
    points, diameters = measured(traces.points, starts, ends, space)
    return Pois(np.repeat(np.arange(len(traces)), counts), starts, ends, ends - starts, points, diameters)


def measured(points: np.ndarray, starts: np.ndarray, ends: np.ndarray, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the diameter of each run of records.

    Parameters
    ----------
    points : numpy.ndarray of float64, shape (records, 3) or (records, 2)
        Kernel coordinates, as in Traces.
    starts, ends : numpy.ndarray of int64, shape (runs,)
        Run i holds the records `starts[i]` to `ends[i]`.
    space : Sphere or Plane
        Where the points lie.

    Returns
    -------
    means : numpy.ndarray of float64, shape (runs, 3) or (runs, 2)
        Kernel coordinates.
    diameters : numpy.ndarray of float64, shape (runs,)
        Greatest distance of two records, in metres.
    """
    centres, squares = np.empty((len(starts), space.dimension)), np.empty(len(starts))
    threads.run(
        lambda first, last: extents.measure(points, starts, ends, first, last, centres, squares),
        threads.fair(ends - starts),
    )
    return centres, space.metres(np.sqrt(squares))
