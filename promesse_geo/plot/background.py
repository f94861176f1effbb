"""The background of a map without tiles: lines and areas such as streets and districts, packed for the browser."""

from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import shapely

from promesse_geo.messages import counted, invalid
from promesse_geo.plot import colours
from promesse_geo.plot.layers import Projection, packed
from promesse_geo.traces.placing import place_points

MOST_VERTICES = 60_000
"""Largest number of vertices of a background; larger ones are simplified."""

_FINEST = 4096  # a simplified background errs by this part of the view: less than a pixel until it is enlarged
_LEAST_VIEW = 0.02, 2000.0  # degrees, metres: of a single place
_LINES, _AREAS = ("LineString", "LinearRing"), ("Polygon",)
_RULE = "a GeoDataFrame or GeoSeries of lines or polygons, with a CRS"


class Background(NamedTuple):
    """Data for the JavaScript function `background`, and what a reader must know."""

    data: dict[str, Any]
    remarks: list[str]


class _Paths(NamedTuple):
    """Lines and rings of polygons on the map: vertices, offsets of the paths, and the polygon of each path or -1."""

    vertices: np.ndarray
    offsets: np.ndarray
    polygons: np.ndarray

    def select(self, chosen: np.ndarray) -> "_Paths":
        """Return the paths that a mask of shape (paths,) marks."""
        counts = np.diff(self.offsets)
        return _Paths(
            self.vertices[np.repeat(chosen, counts)], np.append(0, np.cumsum(counts[chosen])), self.polygons[chosen]
        )

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and the upper corner of each path, each of shape (paths, 2)."""
        starts = self.offsets[:-1]
        return np.minimum.reduceat(self.vertices, starts, axis=0), np.maximum.reduceat(self.vertices, starts, axis=0)


def background_of(background: Any, projection: Projection, view: np.ndarray | None, *, owner: str) -> Background:
    """Return what lies in or near the view, shape (2, 2): at most `MOST_VERTICES` vertices, and no attributes.

    Raises
    ------
    TypeError, ValueError
        If the background is not of lines or polygons, has no CRS, or has no place on the map.
    """
    paths = _read(_check(background, owner=owner), projection, owner=owner)
    if view is None:
        return Background(_pack(paths.select(np.zeros(len(paths.polygons), bool)), projection), [])
    size = max(float(np.ptp(view, axis=0).max()), _LEAST_VIEW[projection.flat])
    lower, upper = paths.extremes()
    near = paths.select(np.all((lower < view[1] + size) & (upper > view[0] - size), axis=1))
    remarks = [] if len(near.polygons) else ["The background has nothing near the data."]
    if len(near.vertices) > MOST_VERTICES:
        simple = _longest(_simplified(near, size / _FINEST))
        fewer = len(simple.polygons) < len(near.polygons)
        drawn = f"the longest {len(simple.polygons):,} of {counted(len(near.polygons), 'line')} are drawn, "
        remarks.append(f"The background is simplified: {drawn if fewer else ''}lines are less exact.")
        near = simple
    return Background(_pack(near, projection), remarks)


def _check(background: Any, *, owner: str) -> gpd.GeoSeries:
    """Return the lines and polygons of a background."""
    if not isinstance(background, (gpd.GeoDataFrame, gpd.GeoSeries)):
        raise TypeError(invalid("background", owner, _RULE, background))
    if background.crs is None:
        raise ValueError(invalid("background", owner, _RULE, background, cure="Set the CRS with set_crs."))
    given = background.geometry
    parts = given[~(given.isna() | given.is_empty)].explode(ignore_index=True)
    if not len(parts) or not parts.geom_type.isin([*_LINES, *_AREAS]).all():
        raise ValueError(invalid("background", owner, _RULE, background, cure="Leave other geometries out."))
    return parts


def _read(parts: gpd.GeoSeries, projection: Projection, *, owner: str) -> _Paths:
    """Return the paths of lines and polygons, but for those with vertices that have no place on the map."""
    areas = parts.geom_type.isin(_AREAS).to_numpy()
    lines = parts.array[~areas]
    rings, polygons = shapely.get_rings(np.asarray(parts.array[areas]), return_index=True)
    paths = np.concatenate((np.asarray(lines), rings))
    coordinates, numbers = shapely.get_coordinates(paths, return_index=True)
    points, placed = place_points(*coordinates.T, crs=parts.crs, space=projection.space)
    usable = np.bincount(numbers[~placed], minlength=len(paths)) == 0
    if not usable.any():
        raise ValueError(invalid("background", owner, "in a CRS that can be converted to that of the data", parts))
    offsets = np.append(0, np.cumsum(np.bincount(numbers, minlength=len(paths))))
    read = _Paths(points, offsets, np.append(np.full(len(lines), -1), polygons)).select(usable)
    return read._replace(vertices=projection.paths(read.vertices, read.offsets[:-1]))


def _simplified(paths: _Paths, tolerance: float) -> _Paths:
    """Return paths without vertices that are nearer than the tolerance to the rest."""
    counts = np.diff(paths.offsets)
    drawn = shapely.linestrings(paths.vertices, indices=np.repeat(np.arange(len(counts)), counts))
    simple = shapely.simplify(drawn, tolerance, preserve_topology=False)
    vertices, numbers = shapely.get_coordinates(simple, return_index=True)
    offsets = np.append(0, np.cumsum(np.bincount(numbers, minlength=len(counts))))
    return _Paths(vertices, offsets, paths.polygons)


def _longest(paths: _Paths) -> _Paths:
    """Return the longest paths that have at most `MOST_VERTICES` vertices together."""
    lower, upper = paths.extremes()
    order = np.argsort(-(upper - lower).sum(axis=1), kind="stable")
    chosen = np.zeros(len(order), bool)
    chosen[order[np.cumsum(np.diff(paths.offsets)[order]) <= MOST_VERTICES]] = True
    return paths.select(chosen)


def _pack(paths: _Paths, projection: Projection) -> dict[str, Any]:
    """Pack lines, then polygons of one or several rings."""
    is_line = paths.polygons < 0
    _, rings = np.unique(paths.polygons[~is_line], return_counts=True)
    return packed(paths.vertices, projection) | {
        "counts": np.diff(paths.offsets).tolist(),
        "lines": int(is_line.sum()),
        "rings": rings.tolist(),
        "colour": colours.GROUND,
    }
