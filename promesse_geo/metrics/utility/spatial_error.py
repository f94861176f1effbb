"""Distance of protected records from the original path."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.kernels import polyline, polyline_index
from promesse_geo.messages import counted
from promesse_geo.metrics.base import Metric, Parts, as_rows_of
from promesse_geo.metrics.pairing import warn_if_exchanged
from promesse_geo.traces.columns import Name
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.traces.values import make_points

_BLOCK = 4096  # least number of points per block; idle threads take the next block


class PolylineIndex(NamedTuple):
    """Short arcs of each trace in groups of eight, and boxes over them; see `promesse_geo.kernels.polyline_index`."""

    leaves: np.ndarray
    groups: np.ndarray
    lines: np.ndarray
    segments: np.ndarray
    tree: np.ndarray
    views: np.ndarray
    slacks: np.ndarray
    stops: np.ndarray


@dataclass(frozen=True)
class SpatialError(Metric):
    """Distance from each protected record to the nearest point of its user's original path (paper, section V-C).

    The path is the polyline of the trace, regardless of time, without lines across breaks. The detail is the distance
    of each protected record in metres. The value is their mean, as in Table III.

    The search takes quadratic time in one case: many segments that leave the same location in all directions, for
    points nearest to that location.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> metric = pg.SpatialError()
    >>> round(metric.measure(city, city.promesse.smooth(200)), 6)
    0.0
    """

    unit: ClassVar[str] = "m"
    bounds: ClassVar[tuple[float, float]] = (0, np.inf)
    meaning: ClassVar[str] = "lower is more useful"
    per_record: ClassVar[bool] = True

    def project(
        self,
        original: gpd.GeoDataFrame | Traces,
        protected: gpd.GeoDataFrame | Traces,
        *,
        index: Any = None,
        user: Name = ...,
        time: Name = ...,
    ) -> gpd.GeoSeries:
        """Project each protected record onto its user's original path.

        Parameters
        ----------
        original, protected, index, user, time
            As for `detail`.

        Returns
        -------
        geopandas.GeoSeries
            Nearest points of the path, in the CRS and with the index of the protected data. They are true locations:
            do not publish them.

        Raises
        ------
        TypeError, ValueError, KeyError
            As for `detail`.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> len(pg.SpatialError().project(city, city)) == len(city)
        True
        """
        before, after = (as_traces(data, user=user, time=time) for data in (original, protected))
        pairs = self.pair(before, after)
        warn_if_exchanged(before, after)
        feet = np.empty_like(pairs.protected.points)
        _search(pairs, self._content(before, index), feet)
        points = make_points(*before.space.coordinates(feet))
        projected = gpd.GeoSeries(points, crs=before.space.crs, name="projected").to_crs(after.space.crs)
        lost = int((~np.isfinite(projected.x)).sum())
        if lost:
            raise ValueError(
                f"{counted(lost, 'projected point')} of {len(projected):,} cannot be placed in the CRS of the "
                "protected data. Compare in one CRS, for example with gdf.to_crs."
            )
        if isinstance(protected, pd.DataFrame):
            return as_rows_of(protected, projected, after.positions)
        return projected

    def _index(self, original: Traces) -> PolylineIndex:
        path = original.points, original.offsets, original.space.curvature
        stops = np.zeros(original.records, bool)
        stops[original.segments[1:] - 1] = True
        traces, shares = len(original), threads.fair(original.counts)
        leaves, groups = np.empty((2, traces), np.int64)
        targets, slacks, views = np.empty(traces), np.empty(traces), np.empty((traces, 6))
        threads.run(
            lambda first, last: polyline_index.count(*path, stops, first, last, leaves, groups, targets, views), shares
        )
        leaves, groups = as_offsets(leaves), as_offsets(groups)
        lines, tree = np.empty((leaves[-1], 5, 8)), np.empty((groups[-1], 4, 8))
        segments = np.empty((leaves[-1], 8), np.int32)
        index = PolylineIndex(leaves, groups, lines, segments, tree, views, slacks, stops)
        threads.run(lambda first, last: polyline_index.build(*path, targets, first, last, *index), shares)
        return index

    def _detail(self, pairs: Pairs, index: PolylineIndex) -> pd.Series:
        return pd.Series(_search(pairs, index, np.empty((0, pairs.original.space.dimension))), name="spatial_error")

    def value(self, detail: pd.Series) -> float:
        """Return the mean distance in metres; NaN without records."""
        return float(detail.mean())

    def condense(self, detail: pd.Series, first: int, last: int) -> tuple[float, int]:
        """Return the sum of the distances of a portion of users, and their number; see `Metric.condense`."""
        return float(detail.sum()), len(detail)

    def value_of_portions(self, condensed: Sequence[tuple[float, int]]) -> float:
        """Return the mean distance of all portions; its last digits may differ from `value`."""
        return _mean(condensed)

    def measure_parts(self, parts: Parts) -> float:
        """Return the mean distance of data that are divided by user; its last digits may differ from `measure`.

        Parameters
        ----------
        parts : Parts
            The data.
        """
        return _mean(parts.map(_sum_up, [self]))


def _mean(sums: Sequence[tuple[float, int]]) -> float:
    """Return the mean of numbers, given the sums and the counts of parts; NaN without any."""
    records = sum(number for _, number in sums)
    return math.fsum(metres for metres, _ in sums) / records if records else math.nan


def _sum_up(original: Traces, protected: Traces, metric: SpatialError) -> tuple[float, int]:
    """Return the exact sum of the distances of a part, rounded once, and their number."""
    detail = metric.compare(metric.pair(original, protected))
    return math.fsum(detail.tolist()), len(detail)


def _search(pairs: Pairs, index: PolylineIndex, feet: np.ndarray) -> np.ndarray:
    """Return the metres from each protected record to its path; store the nearest points unless `feet` is empty."""
    original, protected = pairs.original, pairs.protected
    metres = np.empty(protected.records)
    longest = int(protected.counts.max(initial=0))
    block = max(_BLOCK, longest // (4 * threads.number()))  # few for a long trace: each may build an index
    path = original.points, original.offsets, original.space.curvature, tuple(index)
    others = protected.points, protected.offsets, pairs.originals
    threads.run_interruptible(
        lambda first, last: polyline.search(*path, *others, first, last, metres, feet),
        np.append(np.arange(0, protected.records, block), protected.records),
    )
    return metres * original.space.scale
