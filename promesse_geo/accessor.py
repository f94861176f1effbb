"""`gdf.promesse`: the front door."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import geopandas as gpd
import pandas as pd

from promesse_geo import preprocess
from promesse_geo.audit import check_published
from promesse_geo.evaluation import PAPER, measure
from promesse_geo.mechanisms import GeoIndistinguishability, Mechanism, Promesse, WaitForMe
from promesse_geo.messages import shown
from promesse_geo.metrics import Compression, Metric, PoiRetrieval, RangeQueryDistortion, SpatialError
from promesse_geo.stays import pois as find_pois
from promesse_geo.traces.columns import Name
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces

_ATTACK = PoiRetrieval()

if hasattr(pd.DataFrame, "promesse"):  # the module is loaded again: replace the accessor without a warning
    delattr(pd.DataFrame, "promesse")


@pd.api.extensions.register_dataframe_accessor("promesse")
class PromesseAccessor:
    """Protect and describe the traces of a GeoDataFrame of points.

    `gdf.promesse` finds the columns of user and time; `gdf.promesse(user="cab", time="stamp")` names them for one
    call chain, and `user=None` says that the frame is one trace.

    Parameters
    ----------
    frame : geopandas.GeoDataFrame
        One row a record, with a CRS; it is never changed.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2)
    >>> list(city.promesse(user="user").smooth(200).columns)
    ['user', 'time', 'geometry']
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        if not isinstance(frame, gpd.GeoDataFrame):
            raise AttributeError(
                "'promesse' needs a GeoDataFrame of points; make one with geopandas.GeoDataFrame(df, "
                "geometry=geopandas.points_from_xy(df.lon, df.lat), crs=4326)"
            )
        self._frame = frame
        self._names: dict[str, Name] = {}

    def __call__(self, *, user: Name = ..., time: Name = ...) -> "PromesseAccessor":
        """Name the columns of user and time."""
        named = PromesseAccessor(self._frame)
        named._names = {"user": user, "time": time}
        return named

    def __repr__(self) -> str:
        """Say what this is."""
        return f"<promesse accessor on {len(self._frame):,} rows; see help(gdf.promesse)>"

    def traces(self, *, space: str | Space | None = None, errors: str = "raise") -> Traces:
        """Return the frame as Traces; see `Traces.from_frame`."""
        return Traces.from_frame(self._frame, space=space, errors=errors, **self._names)

    def describe(self) -> pd.Series:
        """Describe the data by the figures of the paper's Table I; see `promesse_geo.describe`."""
        return preprocess.describe(self._frame, **self._names)

    def prepare(
        self,
        *,
        tz: Any = None,
        days: int = 20,
        min_days: int | None = None,
        gap: Any = "4h",
        seed: int | str | None = None,
        keep_user: bool = False,
    ) -> gpd.GeoDataFrame:
        """Prepare the data as the paper does; see `promesse_geo.prepare`."""
        return preprocess.prepare(
            self._frame, tz=tz, days=days, min_days=min_days, gap=gap, seed=seed, keep_user=keep_user, **self._names
        )

    def collapse_empty_days(self, *, tz: Any = None) -> gpd.GeoDataFrame:
        """Make every trace begin on the same day, without empty days; see `promesse_geo.collapse_empty_days`."""
        return preprocess.collapse_empty_days(self._frame, tz=tz, **self._names)

    def first_days(self, days: int = 20, *, min_days: int | None = None, tz: Any = None) -> gpd.GeoDataFrame:
        """Keep each user's first days that hold data; see `promesse_geo.first_days`."""
        return preprocess.first_days(self._frame, days=days, min_days=min_days, tz=tz, **self._names)

    def split_gaps(
        self, gap: Any = "4h", *, seed: int | str | None = None, keep_user: bool = False
    ) -> gpd.GeoDataFrame:
        """Cut traces at long pauses; see `promesse_geo.split_gaps`."""
        return preprocess.split_gaps(self._frame, gap=gap, seed=seed, keep_user=keep_user, **self._names)

    def drop_jumps(self, max_speed: float = 50.0) -> gpd.GeoDataFrame:
        """Remove records that nobody could have reached; see `promesse_geo.drop_jumps`."""
        return preprocess.drop_jumps(self._frame, max_speed=max_speed, **self._names)

    def pseudonymize(self, *, seed: int | str | None = None) -> gpd.GeoDataFrame:
        """Rename every user; see `promesse_geo.pseudonymize`."""
        return preprocess.pseudonymize(self._frame, seed=seed, **self._names)

    def protect(self, mechanism: Mechanism) -> gpd.GeoDataFrame:
        """Protect the data with any mechanism; see `promesse_geo.Mechanism`."""
        return checked_mechanism(mechanism).protect(self._frame, **self._names)

    def smooth(self, epsilon: float, *, variant: str = "polyline", min_points: int = 1) -> gpd.GeoDataFrame:
        """Protect the data, best prepared, with Promesse; see `promesse_geo.Promesse`."""
        return self.protect(Promesse(epsilon, variant=variant, min_points=min_points))

    def geo_indistinguishability(
        self, epsilon: float, *, grid: float | None = None, seed: int | str | None = None
    ) -> gpd.GeoDataFrame:
        """Protect the data with planar Laplace noise; see `promesse_geo.GeoIndistinguishability`."""
        return self.protect(GeoIndistinguishability(epsilon, grid=grid, seed=seed))

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
        """Publish traces in groups that go together; see `promesse_geo.WaitForMe`, which takes more."""
        return self.protect(WaitForMe(k, delta, max_radius=max_radius, max_trash=max_trash, chunk=chunk, seed=seed))

    def pois(self, diameter: float = 200, duration: Any = "15min") -> gpd.GeoDataFrame:
        """Find where users stayed, as the paper's attacker does; see `promesse_geo.stays`."""
        return find_pois(self._frame, diameter, duration, **self._names)

    def check(self, protected: gpd.GeoDataFrame, *, epsilon: float | None = None) -> pd.DataFrame:
        """Look at protected data as a careful friend would; see `promesse_geo.check_published`."""
        return check_published(self._frame, protected, epsilon=epsilon, **self._names)

    def poi_retrieval(
        self, protected: gpd.GeoDataFrame, *, threshold: float = 100, diameter: float = 200, duration: Any = "15min"
    ) -> pd.DataFrame:
        """Return what the paper's attacker still finds, per user; see `promesse_geo.PoiRetrieval`."""
        return PoiRetrieval(diameter, duration, threshold).detail(self._frame, protected, **self._names)

    def spatial_error(self, protected: gpd.GeoDataFrame) -> pd.Series:
        """Return the metres from each protected record to the original's path; see `promesse_geo.SpatialError`."""
        return SpatialError().detail(self._frame, protected, **self._names)

    def project(self, protected: gpd.GeoDataFrame) -> gpd.GeoSeries:
        """Return the nearest point on the original's path; see `promesse_geo.SpatialError.project`."""
        return SpatialError().project(self._frame, protected, **self._names)

    def range_query_distortion(
        self,
        protected: gpd.GeoDataFrame,
        *,
        queries: int | gpd.GeoDataFrame = 1000,
        seed: int | str | None = None,
    ) -> gpd.GeoDataFrame:
        """Count users in areas and windows, before and after; see `promesse_geo.RangeQueryDistortion`."""
        return RangeQueryDistortion(queries, seed=seed).detail(self._frame, protected, **self._names)

    def compression(self, protected: gpd.GeoDataFrame) -> float:
        """Return the protected records in percent of the original ones; see `promesse_geo.Compression`."""
        return Compression().measure(self._frame, protected, **self._names)

    def map(
        self,
        protected: gpd.GeoDataFrame | None = None,
        *,
        users: Any = None,
        period: Any = None,
        tiles: Any = None,
        offline: bool = True,
        slider: bool = False,
        attack: PoiRetrieval | None = _ATTACK,
        points: int = 20_000,
    ) -> Any:
        """Draw both on a map, with what an attacker finds; see `promesse_geo.draw_map`."""
        return _maps().draw_map(
            self._frame,
            protected,
            users=users,
            period=period,
            tiles=tiles,
            offline=offline,
            slider=slider,
            attack=attack,
            points=points,
            **self._names,
        )

    def map_pair(
        self,
        protected: gpd.GeoDataFrame,
        *,
        users: Any = None,
        period: Any = None,
        tiles: Any = None,
        offline: bool = True,
        attack: PoiRetrieval | None = _ATTACK,
        points: int = 20_000,
    ) -> Any:
        """Draw before and after side by side; see `promesse_geo.draw_map_pair`."""
        return _maps().draw_map_pair(
            self._frame,
            protected,
            users=users,
            period=period,
            tiles=tiles,
            offline=offline,
            attack=attack,
            points=points,
            **self._names,
        )

    def measure(self, protected: gpd.GeoDataFrame, metrics: Sequence[Metric] = PAPER) -> pd.DataFrame:
        """Sum up what an attacker finds and an analyst loses; see `promesse_geo.measure`."""
        return measure(self._frame, protected, metrics, **self._names)


def checked_mechanism(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism, or say that it is none."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            "The 'mechanism' parameter of protect must be a mechanism such as pg.Promesse(200). "
            f"Got {shown(mechanism)} instead."
        )
    return mechanism


def _maps() -> Any:
    """The room of maps, which loads folium: only when a map is drawn."""
    return import_module("promesse_geo.plot.maps")
