"""The accessor `ddf.promesse` for frames of Dask and dask-geopandas: lazy, with the results of a notebook.

Importing this module adds the accessor. It needs the extra `dask`::

    import promesse_geo.dask

    safe = ddf.promesse.smooth(200)
    safe.to_parquet("public/")
"""

import copy
import secrets
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask
import dask.dataframe as dd
import dask_geopandas  # makes frames of GeoDataFrames  # noqa: F401
import geopandas as gpd
import numpy as np
import pandas as pd
from dask.base import get_scheduler
from dask.dataframe.extensions import register_dataframe_accessor
from geopandas.array import GeometryArray

from promesse_geo.bulk.measuring import check_divisible, measure_parts
from promesse_geo.bulk.plan import bounds_of, space_of
from promesse_geo.evaluation import PAPER
from promesse_geo.mechanisms import GeoIndistinguishability, Mechanism, PrivacyZones, Promesse
from promesse_geo.mechanisms.base import undeclared_breaks
from promesse_geo.messages import Remark, added_up, collected_warnings, invalid, listed, remarks_of, warn
from promesse_geo.metrics import Metric, RangeQueryDistortion
from promesse_geo.preprocess.pipeline import prepare
from promesse_geo.stays import pois
from promesse_geo.traces.columns import ROLES, Name, Names, find_names, find_unused_segment, read_protection
from promesse_geo.traces.crs import read_crs
from promesse_geo.traces.frames import as_points, find_coordinates
from promesse_geo.traces.marks import Values, find_possible_marks, without_marked_rows
from promesse_geo.traces.owners import PART
from promesse_geo.traces.records import (
    DroppedColumns,
    Records,
    raise_invalid_part,
    warn_dropped_columns,
    warn_unused_segment,
)
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces
from promesse_geo.traces.values import make_points, read_points, read_segments
from promesse_geo.validation import check_flag, check_integer, check_zone

__all__ = ["DaskAccessor", "Grouped"]

_GROUP, _X, _Y, _TIME = "_promesse_group", "_promesse_x", "_promesse_y", "_promesse_time"
_OWNER = "ddf.promesse"
_REMEDY = "specify it, as in ddf.promesse(segment={!r})"
_BITS = 4  # of `Values`
_MASK = (1 << _BITS) - 1


@dataclass(frozen=True)
class _Layout:
    """The columns of a frame.

    Parameters
    ----------
    names : Names
        Their names.
    places : tuple of column names
        Those of longitude and latitude, if it has no geometry.
    crs : pyproj.CRS
        The CRS.
    dropped : DroppedColumns
        The others, of which `marks` may mark bad records.
    specified : mapping
        The names of user and time that the caller specified, which a second frame has, too.
    protection : dict or None
        As for `Traces`.
    """

    names: Names
    places: tuple[Hashable, ...]
    crs: Any
    dropped: DroppedColumns
    specified: Mapping[str, Name]
    protection: dict[str, Any] | None

    @classmethod
    def find(cls, meta: pd.DataFrame, names: dict[str, Name]) -> "_Layout":
        """Return the layout of frames with the columns of an empty one."""
        if taken := [name for name in meta.columns if str(name).startswith("_promesse_")]:
            raise ValueError(f"The frame has {listed(taken)}, names that are used inside. Rename them.")
        places = () if isinstance(meta, gpd.GeoDataFrame) else find_coordinates(meta)
        frame = as_points(meta)
        if frame.crs is None:
            raise ValueError("The frame has no CRS, so its distances have no unit. Set it with ddf.set_crs(4326).")
        found = find_names(frame, **names)
        used: set[Hashable] = {found.user, found.geometry, found.segment}
        used |= set() if found.time_is_index else {found.time}
        marks = find_possible_marks(meta, found)
        others = tuple(name for name in frame.columns if name not in used and name not in marks)
        unused = find_unused_segment(frame, found, names.get("segment", ...))
        dropped = DroppedColumns(others, marks=tuple(marks), segment=unused)
        specified = {role: name for role, name in names.items() if role != "segment"}
        protection = read_protection(frame.attrs.get(ROLES))
        return cls(found, places, read_crs(frame.crs), dropped, specified, protection)

    def plain(self, part: pd.DataFrame, groups: int, held: int = 0) -> pd.DataFrame:
        """Return a partition as plain columns, with the number of the group of each record's user.

        Records that columns mark as bad are left out; `held` is what `_look_at` found in all partitions.
        """
        names, marks = self.names, self.dropped.marks
        bad = [mark for number, mark in enumerate(marks) if Values(held >> _BITS * number & _MASK).mark_some]
        part = without_marked_rows(part, bad)
        x, y = (part[name] for name in self.places) if self.places else read_points(part[names.geometry].array)[:2]
        columns: dict[Hashable, Any] = {} if names.user is None else {names.user: part[names.user]}
        columns[_TIME] = part.index.to_series(index=part.index) if names.time_is_index else part[names.time]
        if names.segment is not None:
            columns[names.segment] = part[names.segment]
        columns |= {_X: np.asarray(x, float), _Y: np.asarray(y, float)}
        columns[_GROUP] = np.zeros(len(part), np.int64)
        if names.user is not None:
            columns[_GROUP] = _groups_of(part[names.user], groups)
        return pd.DataFrame(columns, index=part.index).reset_index(drop=True)

    def traces(self, part: pd.DataFrame, space: Space) -> Traces:
        """Return the records of plain columns."""
        names = self.names
        times = pd.Series(part[_TIME].array, name=names.time)
        records = Records.from_columns(
            part[_X].to_numpy(float),
            part[_Y].to_numpy(float),
            times=pd.DatetimeIndex(times) if names.time_is_index else times,
            users=None if names.user is None else part[names.user],
            crs=self.crs,
            names=names,
            segments=None if names.segment is None else read_segments(part[names.segment]),
            protection=self.protection,
        )
        return Traces.from_records(records, space=space, report=raise_invalid_part)


def _look_at(part: pd.DataFrame) -> int:
    """Return what the columns of a partition hold, `_BITS` bits for each."""
    return sum(Values.of(part[mark]) << _BITS * number for number, mark in enumerate(part.columns))


def _joined(held: pd.Series) -> int:
    """Return what the columns of all partitions hold."""
    return int(np.bitwise_or.reduce(held.to_numpy(np.int64)))


def _groups_of(users: pd.Series, groups: int) -> np.ndarray:
    """Return the number of each user's group, int64; parts `<user>-00000`, … have that of the user."""
    codes, keys = pd.factorize(users)
    owners = np.array([PART.sub("", str(key)) for key in keys], object)
    numbers = (pd.util.hash_array(owners) % np.uint64(groups)).astype(np.int64)
    return np.append(numbers, 0)[codes]


@register_dataframe_accessor("promesse")
class DaskAccessor:
    """Prepare, protect and measure the trajectories of a frame of Dask.

    `ddf.promesse` detects the columns as `gdf.promesse` does; `ddf.promesse(user="cab", time="stamp")` specifies them.
    Each verb shuffles the records by user; `grouped()` shuffles them once for several verbs. What is protected is a
    lazy frame of dask-geopandas. Records that a column `visible` or `valid` marks as bad are left out, as of one frame:
    such columns are read first, since their values in all partitions decide.
    Records of one user with equal times are taken in the order of partitions and rows. Results name their
    columns to the next verb in the `attrs` of their meta; where these are lost, as by `merge`, a warning says that the
    column `segment` is not used.

    What is dropped, and other remarks on the data, are counted in one warning each time that all partitions of a
    result of `protect`, `smooth`, `zones`, `geo_indistinguishability` or `prepare` are computed by the schedulers
    "threads" or "synchronous", the default without a cluster. With processes, a cluster (a `Client`), or if only some
    partitions are computed, as by `head`, **nothing warns** of dropped users and records, zones whose names are not
    in the data, naive times taken as UTC, or data that are not prepared. To find out, compute the result before with
    `dask.config.set(scheduler="threads")`, or call the same verb of `gdf.promesse` on a sample in memory.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame or dask_geopandas.GeoDataFrame
        One row per record, with points and a CRS, or with columns of longitude and latitude.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd, promesse_geo as pg, promesse_geo.dask
    >>> city = pg.make_city(users=3, days=1, recorder="phone")
    >>> table = pd.DataFrame({"user": city.user, "time": city.time, "lon": city.geometry.x, "lat": city.geometry.y})
    >>> safe = dd.from_pandas(table, npartitions=4, sort=False).promesse.smooth(200)
    >>> len(safe) == len(city.promesse.smooth(200))
    True
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._names: dict[str, Name] = {}

    def __call__(self, *, user: Name = ..., time: Name = ..., segment: Name = ...) -> "DaskAccessor":
        """Specify the columns of user, time and segment, as for `gdf.promesse`."""
        named = DaskAccessor(self._frame)
        named._names = {"user": user, "time": time, "segment": segment}
        return named

    def grouped(self, *, npartitions: int | None = None, space: Space | None = None) -> "Grouped":
        """Shuffle the records by user once, for several verbs.

        Parameters
        ----------
        npartitions : int, optional
            The number of partitions, by default that of the frame. Each must fit into the memory of a worker.
        space : Sphere or Plane, optional
            Where distances are measured. By default chosen by the CRS, and if it is projected by the bounding box of
            all records, which is computed at once.

        Returns
        -------
        Grouped
            It has the verbs of the accessor.
        """
        frame = self._frame
        number = npartitions
        if number is None:
            number = frame.npartitions
        number = check_integer(number, name="npartitions", owner=_OWNER)
        layout = _Layout.find(frame._meta, self._names)
        if marks := list(layout.dropped.marks):
            warn(f"Records that a column marks as bad are left out. To keep them, rename {listed(marks)}.")
        held = frame[marks].reduction(chunk=_look_at, combine=_joined, aggregate=_joined, meta=0) if marks else 0
        plain = frame.map_partitions(layout.plain, number, held, meta=layout.plain(frame._meta, number))
        chosen = space_of(layout.crs, lambda: _bounds(plain, layout.crs), space=space)
        return Grouped(_shuffled(plain, number), layout, chosen)

    def protect(self, mechanism: Mechanism) -> Any:
        """Protect the records; see `Grouped.protect`."""
        return self.grouped().protect(mechanism)

    def smooth(self, epsilon: float, *, ends: float = 0.0, max_interval: Any = None) -> Any:
        """Apply `Promesse`, as `gdf.promesse.smooth` does."""
        return self.protect(Promesse(epsilon, ends=ends, max_interval=max_interval))

    def geo_indistinguishability(self, epsilon: float, *, grid: float | None = None) -> Any:
        """Apply `GeoIndistinguishability`, as `gdf.promesse.geo_indistinguishability` does."""
        return self.protect(GeoIndistinguishability(epsilon, grid=grid))

    def zones(self, radius: float = 500.0, offset: float = 400.0) -> Any:
        """Apply `PrivacyZones`, as `gdf.promesse.zones` does."""
        return self.protect(PrivacyZones(radius, offset))

    def prepare(
        self,
        *,
        tz: Any = None,
        days: int = 20,
        min_days: int | None = None,
        gap: Any = "4h",
        max_speed: float | None = None,
        keep_zero: bool = True,
        keep_user: bool = False,
        keep_zone: bool = False,
    ) -> Any:
        """Prepare the records; see `Grouped.prepare`."""
        choices = {"tz": tz, "days": days, "min_days": min_days, "gap": gap, "keep_user": keep_user}
        return self.grouped().prepare(**choices, max_speed=max_speed, keep_zero=keep_zero, keep_zone=keep_zone)

    def pois(self, diameter: float = 200, duration: Any = "15min") -> Any:
        """Find points of interest; see `Grouped.pois`."""
        return self.grouped().pois(diameter, duration)

    def measure(self, protected: Any, metrics: Sequence[Metric] = PAPER) -> pd.DataFrame:
        """Measure protected records; see `Grouped.measure`."""
        return self.grouped().measure(protected, metrics)

    def range_query_distortion(
        self, protected: Any, *, queries: int | gpd.GeoDataFrame = 1000, seed: int | str | None = None
    ) -> gpd.GeoDataFrame:
        """Count users in areas; see `Grouped.range_query_distortion`."""
        return self.grouped().range_query_distortion(protected, queries=queries, seed=seed)


class Grouped:
    """Records of a frame of Dask in partitions of whole users; `ddf.promesse.grouped()` makes it.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Plain columns.
    layout : _Layout
        What they were.
    space : Sphere or Plane
        Where distances are measured.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd, promesse_geo as pg, promesse_geo.dask
    >>> city = pg.make_city(users=3, days=1, recorder="phone")
    >>> table = pd.DataFrame({"user": city.user, "time": city.time, "lon": city.geometry.x, "lat": city.geometry.y})
    >>> grouped = dd.from_pandas(table, npartitions=2, sort=False).promesse.grouped()
    >>> len(grouped.pois()) == len(city.promesse.pois())
    True
    """

    def __init__(self, frame: Any, layout: _Layout, space: Space) -> None:
        self._frame, self._layout, self._space = frame, layout, space

    def protect(self, mechanism: Mechanism) -> Any:
        """Protect the records.

        Parameters
        ----------
        mechanism : Mechanism
            Any that protects users one by one. If it is random, its seed is drawn now, so that a task that runs twice
            gives the same result.

        Returns
        -------
        dask_geopandas.GeoDataFrame
            Lazy, in the order of users within each partition. Users keep their names: rename them before you publish.
            Computing it warns of what is dropped, but not with processes or a cluster; see `DaskAccessor`.

        Raises
        ------
        TypeError, ValueError
            If it is no mechanism, or compares users with each other.
        """
        if not isinstance(mechanism, Mechanism):
            raise TypeError(invalid("mechanism", _OWNER, "a mechanism such as pg.Promesse(200)", mechanism))
        if not mechanism.is_per_user:
            raise ValueError(
                f"{type(mechanism).__name__} compares all traces with each other. Use gdf.promesse with ddf.compute()."
            )
        warn_dropped_columns(self._layout.dropped, remedy=_REMEDY)
        return self._map_and_warn(_protected, {"mechanism": mechanism.with_seed(secrets.token_hex(32))})

    def smooth(self, epsilon: float, *, ends: float = 0.0, max_interval: Any = None) -> Any:
        """Apply `Promesse`; see `protect`."""
        return self.protect(Promesse(epsilon, ends=ends, max_interval=max_interval))

    def prepare(
        self,
        *,
        tz: Any = None,
        days: int = 20,
        min_days: int | None = None,
        gap: Any = "4h",
        max_speed: float | None = None,
        keep_zero: bool = True,
        keep_user: bool = False,
        keep_zone: bool = False,
    ) -> Any:
        """Prepare the records, as `gdf.promesse.prepare` does, with the same parameters.

        Without `keep_user` the records are shuffled again by the new names, so that no partition tells which parts are
        of one user.

        Returns
        -------
        dask_geopandas.GeoDataFrame
            Lazy, in the order of users within each partition. Computing it warns of what is dropped, but not with
            processes or a cluster; see `DaskAccessor`.
        """
        zone = None if tz is None else check_zone(tz, name="tz", owner=_OWNER)
        choices = {"tz": zone, "days": days, "min_days": min_days, "gap": gap}
        choices |= {"max_speed": max_speed, "keep_zero": keep_zero}
        choices |= {"keep_user": check_flag(keep_user, name="keep_user", owner=_OWNER)}
        choices |= {"keep_zone": check_flag(keep_zone, name="keep_zone", owner=_OWNER)}
        warn_dropped_columns(self._layout.dropped, remedy=_REMEDY)
        prepared = self._map_and_warn(_prepared, {"choices": choices | {"seed": secrets.token_hex(32)}})
        if keep_user:
            return prepared.map_partitions(_as_points, self._layout, meta=_as_points(prepared._meta, self._layout))
        number = prepared.npartitions
        grouped = prepared.map_partitions(_with_groups, number, meta=_with_groups(prepared._meta, number))
        shuffled = _shuffled(grouped, number)
        return shuffled.map_partitions(_as_points, self._layout, meta=_as_points(shuffled._meta, self._layout))

    def pois(self, diameter: float = 200, duration: Any = "15min") -> Any:
        """Find points of interest, as `gdf.promesse.pois` does.

        Returns
        -------
        dask_geopandas.GeoDataFrame
            Lazy.
        """
        warn_unused_segment(self._layout.dropped, remedy=_REMEDY)
        return self._map(_pois_of, [diameter, duration])

    def measure(self, protected: Any, metrics: Sequence[Metric] = PAPER) -> pd.DataFrame:
        """Measure protected records, as `gdf.promesse.measure` does; the last digits of means may differ.

        Parameters
        ----------
        protected : dask_geopandas.GeoDataFrame or dask.dataframe.DataFrame
            Records under the names of the users, with the columns of user and time that are specified for the original.
            If it has others, pass `safe.promesse(user="cab")`.
        metrics : sequence of Metric
            Metrics that compare the records of each user, and `RangeQueryDistortion`.

        Returns
        -------
        pandas.DataFrame
            One row per metric: `metric`, `value`, `unit`.
        """
        checked = check_divisible(metrics, owner=f"{_OWNER}.measure")
        return measure_parts(self._parts(protected), checked)

    def range_query_distortion(
        self, protected: Any, *, queries: int | gpd.GeoDataFrame = 1000, seed: int | str | None = None
    ) -> gpd.GeoDataFrame:
        """Count users in areas and time windows, as `gdf.promesse.range_query_distortion` does.

        Returns
        -------
        geopandas.GeoDataFrame
            One row per query.
        """
        return RangeQueryDistortion(queries, seed=seed).detail_of_parts(self._parts(protected))

    def _map(self, work: Callable[..., Any], given: Sequence[Any]) -> Any:
        """Return a lazy frame of `work(part, layout, space, *given)` of each partition."""
        arguments = (self._layout, self._space, *given)
        return self._frame.map_partitions(work, *arguments, meta=work(self._frame._meta, *arguments))

    def _map_and_warn(self, work: Callable[..., Any], given: Mapping[str, Any]) -> Any:
        """Return a lazy frame of `work(part, layout=…, space=…, **given)` of each partition, which may warn."""
        partitions = self._frame.npartitions
        arguments = partial(work, layout=self._layout, space=self._space, **given), _Warnings(partitions)
        numbers = dd.from_map(_numbered, range(partitions), meta=_numbered(0))
        meta = _warning_later(self._frame._meta, None, *arguments)
        return self._frame.map_partitions(_warning_later, numbers, *arguments, meta=meta, align_dataframes=False)

    def _parts(self, protected: Any) -> "_DaskParts":
        number = self._frame.npartitions
        if not isinstance(protected, DaskAccessor):
            if not hasattr(protected, "_meta"):
                raise TypeError(invalid("protected", _OWNER, "a frame of Dask with the protected records", protected))
            protected = DaskAccessor(protected)(**self._layout.specified)
        both = [self, protected.grouped(npartitions=number)]
        for each in both:
            warn_unused_segment(each._layout.dropped, remedy=_REMEDY)
        return _DaskParts(both)


class _Warnings:
    """What work on the partitions of a frame warns of, in one warning when all are done.

    A copy in another process, where no warning reaches the user, does nothing.

    Parameters
    ----------
    partitions : int
        The number of partitions; 0 for a copy.
    """

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._remarks: dict[int, list[tuple[Remark, ...]]] = {}
        self._lock = threading.Lock()

    def __dask_tokenize__(self) -> tuple[str, int]:
        return type(self).__name__, self._partitions

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (0,)

    def add(self, number: int, caught: Sequence[UserWarning]) -> None:
        """Add the warnings of a partition; warn if it is the last one, and begin again."""
        if not self._partitions:
            return
        with self._lock:
            self._remarks[number] = list(map(remarks_of, caught))
            if len(self._remarks) < self._partitions:
                return
            remarks = [self._remarks[each] for each in sorted(self._remarks)]
            self._remarks.clear()
        for warning in added_up(remarks):
            warn(warning)


def _numbered(number: int) -> pd.DataFrame:
    """Return the number of a partition as a frame, which stays with it if only some partitions are computed."""
    return pd.DataFrame({"number": [number]})


def _warning_later(part: pd.DataFrame, number: pd.DataFrame | None, work: Callable[..., Any], warned: _Warnings) -> Any:
    """Return `work(part)`, and add what it warns of; without a number it is no partition."""
    with collected_warnings() as caught:
        result = work(part)
    if number is not None:
        warned.add(int(number["number"].iloc[0]), caught)
    return result


@dataclass(frozen=True)
class _DaskParts:
    """Original and protected records in partitions of the same users."""

    both: Sequence[Grouped]

    def map(self, work: Callable[..., Any], given: Sequence[Any] = ()) -> list[Any]:
        """Return `work(original, protected, *given)` of each pair of partitions."""
        pairs = zip(*(each._frame.to_delayed() for each in self.both), strict=True)
        read = tuple((each._layout, each._space) for each in self.both)
        return list(dask.compute(*(dask.delayed(_work_on)(work, read, pair, tuple(given)) for pair in pairs)))


def _work_on(
    work: Callable[..., Any], read: Sequence[tuple[_Layout, Space]], pair: Sequence[Any], given: Sequence[Any]
) -> Any:
    """Call a function for the original and the protected traces of a pair of partitions."""
    original, protected = (layout.traces(part, space) for (layout, space), part in zip(read, pair, strict=True))
    with collected_warnings():
        return work(original, protected, *given)


def _shuffled(frame: Any, number: int) -> Any:
    """Shuffle records by group; without a cluster Dask's default method loses types and the CRS."""
    cluster = getattr(get_scheduler(), "__self__", None)
    method = "tasks" if cluster is None else "p2p"
    return frame.shuffle(on=_GROUP, npartitions=number, shuffle_method=method)


def _bounds(plain: Any, crs: Any) -> np.ndarray:
    """Return the corners of the bounding box of all records."""
    boxes = plain[[_X, _Y]].to_delayed()
    found = dask.compute(*(dask.delayed(_bounds_of_part)(part, crs) for part in boxes))
    return np.concatenate(found)


def _bounds_of_part(part: pd.DataFrame, crs: Any) -> np.ndarray:
    return bounds_of(part[_X].to_numpy(), part[_Y].to_numpy(), crs)


def _attributes(names: Names, protection: dict[str, Any] | None) -> dict[str, Any]:
    """Return the `attrs` of all partitions of a result and of its meta, which name its columns to the next verb."""
    return {ROLES: names.roles() | ({"mechanism": copy.deepcopy(protection)} if protection else {})}


def _protected(part: pd.DataFrame, layout: _Layout, space: Space, mechanism: Mechanism) -> gpd.GeoDataFrame:
    """Protect the users of a partition."""
    protected = mechanism.protect(layout.traces(part, space))
    names = layout.names.with_segment() if mechanism.makes_breaks else layout.names
    frame = protected.to_frame()
    if len(protected.breaks) and names.segment is None:
        raise ValueError(undeclared_breaks(mechanism))
    if names.segment is not None and not len(protected.breaks):
        place = int(frame.columns.get_loc(names.geometry))
        frame.insert(place, names.segment, np.zeros(len(frame), np.int64))
    frame.attrs = _attributes(names, protected.protection)
    return frame


def _prepared(part: pd.DataFrame, layout: _Layout, space: Space, choices: dict[str, Any]) -> pd.DataFrame:
    """Prepare the users of a partition; return user, time and plain coordinates."""
    parts = prepare(layout.traces(part, space), **choices)
    x, y = parts.coordinates()
    user = parts.names.user
    columns: dict[Hashable, Any] = {user: parts.users.repeat(parts.counts), _TIME: parts.time_index(), _X: x, _Y: y}
    return pd.DataFrame(columns)


def _with_groups(part: pd.DataFrame, groups: int) -> pd.DataFrame:
    """Add the group of each record's user, which is the first column."""
    return part.assign(**{_GROUP: _groups_of(part.iloc[:, 0], groups)})


def _as_points(part: pd.DataFrame, layout: _Layout) -> gpd.GeoDataFrame:
    """Return plain columns as points in the order of users."""
    names = replace(layout.names, user=part.columns[0], segment=None)
    ordered = part.sort_values(part.columns[0], kind="stable", ignore_index=True)
    columns: dict[Hashable, Any] = {names.user: ordered[names.user]}
    if not names.time_is_index:
        columns[names.time] = ordered[_TIME]
    points = GeometryArray(make_points(ordered[_X].to_numpy(), ordered[_Y].to_numpy()), crs=layout.crs)
    columns[names.geometry] = points
    frame = gpd.GeoDataFrame(columns, geometry=names.geometry)
    frame.attrs = _attributes(names, layout.protection)
    return frame.set_index(pd.DatetimeIndex(ordered[_TIME]).rename(names.time)) if names.time_is_index else frame


def _pois_of(part: pd.DataFrame, layout: _Layout, space: Space, diameter: float, duration: Any) -> gpd.GeoDataFrame:
    """Find the points of interest of the users of a partition."""
    found = pois(layout.traces(part, space), diameter, duration)
    found.attrs = {}
    return found
