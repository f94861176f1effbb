"""The accessor `gdf.promesse`: the functions of the package as methods of a GeoDataFrame."""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import geopandas as gpd
import pandas as pd

from promesse_geo import preprocess
from promesse_geo.audit import check_published
from promesse_geo.docstrings import documented_as
from promesse_geo.evaluation import PAPER, measure
from promesse_geo.mechanisms import GeoIndistinguishability, Mechanism, PrivacyZones, Promesse, WaitForMe
from promesse_geo.messages import invalid
from promesse_geo.metrics import Compression, Metric, PoiRetrieval, RangeQueryDistortion, SpatialError
from promesse_geo.preprocess.problems import FASTEST
from promesse_geo.publication import Publication, publish
from promesse_geo.stays import pois as find_pois
from promesse_geo.traces.columns import Name, with_segment
from promesse_geo.traces.frames import find_coordinates
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces

_ATTACK = PoiRetrieval()


if hasattr(pd.DataFrame, "promesse"):  # the module is loaded again: replace the accessor without a warning
    delattr(pd.DataFrame, "promesse")


@pd.api.extensions.register_dataframe_accessor("promesse")
class PromesseAccessor:
    """Prepare, protect, check and draw the trajectories of a GeoDataFrame of points.

    `gdf.promesse` detects the columns of user and time. `gdf.promesse(user="cab", time="stamp")` specifies them for one
    call. `user=None` makes all records one trace. `segment="trip"` names a column whose value changes where nothing
    was recorded between two records.

    Parameters
    ----------
    frame : geopandas.GeoDataFrame or pandas.DataFrame
        One row per record, with a CRS, or without a geometry, but with columns of longitude and latitude. It is never
        changed.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> list(city.promesse(user="user").smooth(200).columns)
    ['user', 'time', 'geometry']
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        try:
            if not isinstance(frame, gpd.GeoDataFrame):
                find_coordinates(frame)
        except TypeError as error:
            raise AttributeError(f"'promesse' cannot be used: {error.args[0]}") from None
        self._frame = frame
        self._names: dict[str, Name] = {}

    def __call__(self, *, user: Name = ..., time: Name = ..., segment: Name = ...) -> "PromesseAccessor":
        """Specify the columns of user, time and segment.

        Parameters
        ----------
        user, time : column name, None or ...
            Columns of the frame; `...` detects them, `user=None` makes all records one trace.
        segment : column name, None or ...
            A column whose value changes where the recorder paused; see `Traces.from_frame`.

        Returns
        -------
        PromesseAccessor
            The accessor with these columns.
        """
        named = PromesseAccessor(self._frame if segment is ... else with_segment(self._frame, segment))
        named._names = {"user": user, "time": time}
        return named

    def __repr__(self) -> str:
        """Return the number of rows."""
        return f"<promesse accessor on {len(self._frame):,} rows; see help(gdf.promesse)>"

    @documented_as(Traces.from_frame)
    def traces(self, *, space: str | Space | None = None, errors: str = "raise") -> Traces:
        """Return the records as Traces, the columnar form for large data.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> len(city.promesse.traces())
        2
        """
        return Traces.from_frame(self._frame, space=space, errors=errors, **self._names)

    @documented_as(preprocess.describe)
    def describe(self) -> pd.Series:
        """Describe the data by the numbers of the paper's Table I.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> int(city.promesse.describe()["traces"])
        2
        """
        return preprocess.describe(self._frame, **self._names)

    @documented_as(preprocess.prepare)
    def prepare(
        self,
        *,
        tz: Any = None,
        days: int = 20,
        min_days: int | None = None,
        gap: Any = "4h",
        max_speed: float | None = None,
        keep_zero: bool = True,
        seed: int | str | None = None,
        keep_user: bool = False,
        keep_zone: bool = False,
    ) -> gpd.GeoDataFrame:
        """Prepare the data as in the paper: common calendar, first days, parts between gaps.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> parts = city.promesse.prepare(tz="Europe/Paris")
        >>> parts["time"].min().isoformat()[:10]
        '2000-01-03'
        """
        return preprocess.prepare(
            self._frame,
            tz=tz,
            days=days,
            min_days=min_days,
            gap=gap,
            max_speed=max_speed,
            keep_zero=keep_zero,
            seed=seed,
            keep_user=keep_user,
            keep_zone=keep_zone,
            **self._names,
        )

    @documented_as(preprocess.collapse_empty_days)
    def collapse_empty_days(self, *, tz: Any = None) -> gpd.GeoDataFrame:
        """Make every trace begin on the same day, without empty days.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> city.promesse.collapse_empty_days(tz="Europe/Paris")["time"].min().isoformat()[:10]
        '2000-01-03'
        """
        return preprocess.collapse_empty_days(self._frame, tz=tz, **self._names)

    @documented_as(preprocess.first_days)
    def first_days(self, days: int = 20, *, min_days: int | None = None, tz: Any = None) -> gpd.GeoDataFrame:
        """Keep each user's first days that hold data.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> len(city.promesse.first_days(2)) == len(city)
        True
        """
        return preprocess.first_days(self._frame, days=days, min_days=min_days, tz=tz, **self._names)

    @documented_as(preprocess.split_gaps)
    def split_gaps(
        self, gap: Any = "4h", *, distance: float | None = None, seed: int | str | None = None, keep_user: bool = False
    ) -> gpd.GeoDataFrame:
        """Split traces at long gaps and breaks into parts, each with a virtual user.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> city.promesse.split_gaps("4h", keep_user=True)["user"].iloc[0]
        'user-000-00000'
        """
        return preprocess.split_gaps(
            self._frame, gap=gap, distance=distance, seed=seed, keep_user=keep_user, **self._names
        )

    @documented_as(preprocess.drop_jumps)
    def drop_jumps(self, max_speed: float = 50.0) -> gpd.GeoDataFrame:
        """Drop records that cannot be reached at a given speed.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> len(city.promesse.drop_jumps(50)) == len(city)
        True
        """
        return preprocess.drop_jumps(self._frame, max_speed=max_speed, **self._names)

    @documented_as(preprocess.drop_zero)
    def drop_zero(self) -> gpd.GeoDataFrame:
        """Drop fixes at exactly longitude 0 and latitude 0.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> len(city.promesse.drop_zero()) == len(city)
        True
        """
        return preprocess.drop_zero(self._frame, **self._names)

    @documented_as(preprocess.pseudonymize)
    def pseudonymize(self, *, seed: int | str | None = None) -> gpd.GeoDataFrame:
        """Rename all users to random names.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> city.promesse.pseudonymize()["user"].nunique()
        2
        """
        return preprocess.pseudonymize(self._frame, seed=seed, **self._names)

    @documented_as(Mechanism.protect)
    def protect(self, mechanism: Mechanism) -> gpd.GeoDataFrame:
        """Protect the data with any mechanism.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism, such as `pg.Promesse(200)`.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> list(city.promesse.protect(pg.Promesse(200)).columns)
        ['user', 'time', 'geometry']
        """
        return checked_mechanism(mechanism).protect(self._frame, **self._names)

    @documented_as(Promesse, Mechanism.protect)
    def smooth(
        self,
        epsilon: float,
        *,
        variant: str = "polyline",
        min_points: int = 1,
        ends: float = 0.0,
        max_interval: Any = None,
        seed: int | str | None = None,
    ) -> gpd.GeoDataFrame:
        """Protect the data with Promesse; prepare it first.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> parts = city.promesse.prepare(tz="Europe/Paris")
        >>> list(parts.promesse.smooth(200).columns)
        ['user', 'time', 'geometry']
        """
        return self.protect(
            Promesse(epsilon, variant=variant, min_points=min_points, ends=ends, max_interval=max_interval, seed=seed)
        )

    @documented_as(PrivacyZones, Mechanism.protect)
    def zones(
        self,
        radius: float = 500.0,
        offset: float = 400.0,
        *,
        zones: gpd.GeoDataFrame | None = None,
        places: int = 1,
        seed: int | str | None = None,
    ) -> gpd.GeoDataFrame:
        """Remove privacy zones around homes or other places; do it before `prepare`.

        Examples
        --------
        >>> import warnings
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=2)
        >>> with warnings.catch_warnings():  # it counts what was removed
        ...     warnings.simplefilter("ignore")
        ...     rest = city.promesse.zones(600, 500)
        >>> list(rest.columns)
        ['user', 'time', 'segment', 'geometry']
        """
        return self.protect(PrivacyZones(radius, offset, zones=zones, places=places, seed=seed))

    @documented_as(GeoIndistinguishability, Mechanism.protect)
    def geo_indistinguishability(
        self, epsilon: float, *, grid: float | None = None, seed: int | str | None = None
    ) -> gpd.GeoDataFrame:
        """Protect the data with planar Laplace noise.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> len(city.promesse.geo_indistinguishability(0.01, grid=1)) == len(city)
        True
        """
        return self.protect(GeoIndistinguishability(epsilon, grid=grid, seed=seed))

    @documented_as(WaitForMe, Mechanism.protect)
    def wait_for_me(
        self,
        k: int = 2,
        delta: float = 200,
        *,
        max_radius: float = 5000,
        max_trash: float = 0.1,
        chunk: bool = False,
        seed: int | str | None = None,
    ) -> gpd.GeoDataFrame:
        """Protect the data in groups of traces that are close to each other at every instant.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=3, days=1, recorder="phone")
        >>> city.promesse.wait_for_me(2, 200, max_trash=0, seed=1)["user"].nunique()
        3
        """
        return self.protect(WaitForMe(k, delta, max_radius=max_radius, max_trash=max_trash, chunk=chunk, seed=seed))

    @documented_as(find_pois)
    def pois(self, diameter: float = 200, duration: Any = "15min") -> gpd.GeoDataFrame:
        """Find where users stayed, as the paper's attack does.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> list(city.promesse.pois().columns)
        ['user', 'arrival', 'departure', 'records', 'geometry', 'diameter']
        """
        return find_pois(self._frame, diameter, duration, **self._names)

    @documented_as(publish)
    def publish(
        self,
        path: str | os.PathLike[str] | None,
        mechanism: Mechanism,
        *,
        tz: Any = None,
        calendar: str = "common",
        gap: Any = "4h",
        min_days: int | None = None,
        max_speed: float | None = FASTEST,
        keep_zero: bool = False,
        dry_run: bool = False,
        force: bool = False,
    ) -> Publication:
        """Make a file to publish: clean, prepare, protect, check, rename and write.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=3, days=3)
        >>> city.promesse.publish(None, pg.Promesse(200), tz="Europe/Paris", dry_run=True).passed
        True
        """
        return publish(
            self._frame,
            path,
            mechanism,
            tz=tz,
            calendar=calendar,
            gap=gap,
            min_days=min_days,
            max_speed=max_speed,
            keep_zero=keep_zero,
            dry_run=dry_run,
            force=force,
            **self._names,
        )

    @documented_as(check_published)
    def check(
        self, protected: gpd.GeoDataFrame, *, epsilon: float | None = None, mechanism: Mechanism | None = None
    ) -> pd.DataFrame:
        """Run the checks before publication on protected data.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> safe = city.promesse.smooth(200)
        >>> city.promesse.check(safe, epsilon=200).set_index("test").verdict["first points are hidden"]
        'passed'
        """
        return check_published(self._frame, protected, epsilon=epsilon, mechanism=mechanism, **self._names)

    @documented_as(PoiRetrieval, Metric.detail)
    def poi_retrieval(
        self, protected: gpd.GeoDataFrame, *, threshold: float = 100, diameter: float = 200, duration: Any = "15min"
    ) -> pd.DataFrame:
        """Return which POIs of each user the paper's attack finds in the protected data.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> safe = city.promesse.smooth(200)
        >>> list(city.promesse.poi_retrieval(safe)["matched"])
        [0, 0]
        """
        return PoiRetrieval(diameter, duration, threshold).detail(self._frame, protected, **self._names)

    @documented_as(SpatialError, Metric.detail)
    def spatial_error(self, protected: gpd.GeoDataFrame) -> pd.Series:
        """Return the metres from each protected record to its user's original path.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> safe = city.promesse.smooth(200)
        >>> bool(city.promesse.spatial_error(safe).max() < 0.001)
        True
        """
        return SpatialError().detail(self._frame, protected, **self._names)

    @documented_as(SpatialError.project, Metric.detail)
    def project(self, protected: gpd.GeoDataFrame) -> gpd.GeoSeries:
        """Return the nearest point on the user's original path for each protected record.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> safe = city.promesse.smooth(200)
        >>> len(city.promesse.project(safe)) == len(safe)
        True
        """
        return SpatialError().project(self._frame, protected, **self._names)

    @documented_as(RangeQueryDistortion, Metric.detail)
    def range_query_distortion(
        self, protected: gpd.GeoDataFrame, *, queries: int | gpd.GeoDataFrame = 1000, seed: int | str | None = None
    ) -> gpd.GeoDataFrame:
        """Count users in areas and time windows in both data sets.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> safe = city.promesse.smooth(200)
        >>> len(city.promesse.range_query_distortion(safe, queries=50, seed=0))
        50
        """
        return RangeQueryDistortion(queries, seed=seed).detail(self._frame, protected, **self._names)

    @documented_as(Compression)
    def compression(self, protected: gpd.GeoDataFrame) -> float:
        """Return the number of protected records in percent of the original ones.

        Returns
        -------
        float
            Percent.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> safe = city.promesse.smooth(200)
        >>> city.promesse.compression(safe) < 100
        True
        """
        return Compression().measure(self._frame, protected, **self._names)

    def map(
        self,
        protected: gpd.GeoDataFrame | None = None,
        *,
        users: Any = None,
        period: Any = None,
        color: str = "data",
        background: Any = None,
        tiles: Any = None,
        offline: bool = True,
        slider: bool = False,
        attack: PoiRetrieval | None = _ATTACK,
        points: int = 20_000,
        kind: str | None = None,
    ) -> Any:
        """Draw original and protected data on a map; see `promesse_geo.draw_map`.

        Do not publish a map with original data. `safe.promesse.map()` of protected data alone is a map to publish,
        unless `zones` alone protected them, which keeps true positions and times.

        Parameters
        ----------
        protected : geopandas.GeoDataFrame, optional
            The protected data, with the users of this frame. Without it only this frame is drawn.
        users : user key or list of them, optional
            Users to draw; all by default.
        period : str or (start, end), optional
            A day such as '2008-05-18' (or a month, an hour or a minute) or two times, in the time zone of the data.
        color : {"data", "user", "speed"}
            What the colours of records show.
        background : geopandas.GeoDataFrame or geopandas.GeoSeries, optional
            Lines or polygons to draw below the data, such as streets; what is near the data becomes part of the page.
        tiles : str, folium.TileLayer or xyzservices.TileProvider, optional
            A background such as "OpenStreetMap". Its server learns which places are viewed. The default is none.
        offline : bool
            Embed all code in the page, which then loads nothing from the network.
        slider : bool
            Add a time slider that moves users along their traces.
        attack : PoiRetrieval or None
            How to find and compare points of interest; None draws none.
        points : int
            Maximum number of records per layer; larger layers are thinned. Records far from all others and the ends of
            traces are always drawn.
        kind : {"original", "protected"}, optional
            What a frame drawn alone is. By default it is protected if it names the mechanism that protected it, as
            frames from a mechanism do, unless it keeps true positions, as `PrivacyZones` does. Of other frames the map
            says that it is not known.

        Returns
        -------
        folium.Map
            Jupyter displays it; `save("map.html")` writes a page that needs no other files.

        Raises
        ------
        TypeError, ValueError, KeyError
            If a parameter is wrong or the data cannot be read.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> safe = city.promesse.smooth(200)
        >>> type(city.promesse.map(safe)).__name__
        'Map'
        """
        chosen = {"users": users, "period": period, "color": color, "background": background, "tiles": tiles}
        chosen |= {"offline": offline, "slider": slider, "attack": attack, "points": points, "kind": kind}
        return _maps().draw_map(self._frame, protected, **chosen, **self._names)

    @documented_as(map)
    def map_pair(
        self,
        protected: gpd.GeoDataFrame,
        *,
        users: Any = None,
        period: Any = None,
        color: str = "data",
        background: Any = None,
        tiles: Any = None,
        offline: bool = True,
        attack: PoiRetrieval | None = _ATTACK,
        points: int = 20_000,
    ) -> Any:
        """Draw original and protected data on two maps side by side; see `promesse_geo.draw_map_pair`.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> safe = city.promesse.smooth(200)
        >>> type(city.promesse.map_pair(safe)).__name__
        'Figure'
        """
        chosen = {"users": users, "period": period, "color": color, "background": background, "tiles": tiles}
        chosen |= {"offline": offline, "attack": attack, "points": points}
        return _maps().draw_map_pair(self._frame, protected, **chosen, **self._names)

    @documented_as(measure)
    def measure(self, protected: gpd.GeoDataFrame, metrics: Sequence[Metric] = PAPER) -> pd.DataFrame:
        """Measure privacy and utility of protected data: one row per metric.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> safe = city.promesse.smooth(200)
        >>> len(city.promesse.measure(safe))
        4
        """
        return measure(self._frame, protected, metrics, **self._names)


def checked_mechanism(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism; raise TypeError for anything else."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(invalid("mechanism", "protect", "a mechanism such as pg.Promesse(200)", mechanism))
    return mechanism


def _maps() -> Any:
    """The module of maps, which loads folium: only when a map is drawn."""
    return import_module("promesse_geo.plot.maps")
