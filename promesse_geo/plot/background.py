"""The background of a map without tiles: lines and areas such as streets and districts, packed for the browser."""

from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import shapely

from promesse_geo.messages import counted, invalid, warn
from promesse_geo.plot import colours
from promesse_geo.plot.layers import Projection, packed
from promesse_geo.plot.paths import FINEST, simplified
from promesse_geo.traces.placing import place_points

MOST_VERTICES = 60_000
"""Largest number of vertices of a background; larger ones are simplified."""

_LEAST_VIEW = 0.02, 2000.0  # degrees, metres: of a single place
_KINDS = ("LineString", "LinearRing", "Polygon")
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
    if len(near.vertices) > MOST_VERTICES:
        near = _clipped(near, view[0] - size, view[1] + size)
    if not len(near.polygons):
        nothing = "The background has nothing near the data."
        warn(f"{nothing} Check its CRS, and that x is the longitude.")
        return Background(_pack(near, projection), [nothing])
    remarks = []
    if len(near.vertices) > MOST_VERTICES:
        simple = _longest(_simplified(near, size / FINEST))
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
    if not len(parts):
        raise ValueError(
            invalid("background", owner, _RULE, background, cure="It is empty. Omit it, or check its file.")
        )
    if not parts.geom_type.isin(_KINDS).all():
        raise ValueError(invalid("background", owner, _RULE, background, cure="Leave other geometries out."))
    return parts


def _read(parts: gpd.GeoSeries, projection: Projection, *, owner: str) -> _Paths:
    """Return the paths of lines and polygons, but for those with vertices that have no place on the map."""
    paths, polygons = _lines_and_rings(np.asarray(parts.array))
    coordinates, numbers = shapely.get_coordinates(paths, return_index=True)
    points, placed = place_points(*coordinates.T, crs=parts.crs, space=projection.space)
    usable = np.bincount(numbers[~placed], minlength=len(paths)) == 0
    if not usable.any():
        raise ValueError(invalid("background", owner, "in a CRS that can be converted to that of the data", parts))
    offsets = np.append(0, np.cumsum(np.bincount(numbers, minlength=len(paths))))
    read = _Paths(points, offsets, polygons).select(usable)
    return read._replace(vertices=projection.paths(read.vertices, read.offsets[:-1]))


def _lines_and_rings(parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lines, then the rings of polygons, and the polygon of each of them or -1."""
    areas = shapely.get_dimensions(parts) == 2
    rings, polygons = shapely.get_rings(parts[areas], return_index=True)
    return np.concatenate((parts[~areas], rings)), np.append(np.full((~areas).sum(), -1), polygons)


def _clipped(paths: _Paths, lower: np.ndarray, upper: np.ndarray) -> _Paths:
    """Return what lies within a box: parts of lines, and polygons that its edges may cut."""
    counts = np.diff(paths.offsets)
    is_line = paths.polygons < 0
    of_line = np.repeat(is_line, counts)
    numbers = np.repeat(np.arange(len(counts)), counts)
    lines = shapely.linestrings(paths.vertices[of_line], indices=numbers[of_line])
    rings = shapely.linearrings(paths.vertices[~of_line], indices=numbers[~of_line] - is_line.sum())
    areas = shapely.polygons(rings, indices=np.unique(paths.polygons[~is_line], return_inverse=True)[1])
    parts = shapely.get_parts(shapely.clip_by_rect(np.append(lines, areas), *lower, *upper))
    parts = parts[(shapely.get_dimensions(parts) > 0) & ~shapely.is_empty(parts)]
    inside, polygons = _lines_and_rings(parts)
    vertices, numbers = shapely.get_coordinates(inside, return_index=True)
    return _Paths(vertices, np.append(0, np.cumsum(np.bincount(numbers, minlength=len(inside)))), polygons)


def _simplified(paths: _Paths, tolerance: float) -> _Paths:
    """Return paths without vertices that are nearer than the tolerance to the rest."""
    numbers = np.repeat(np.arange(len(paths.polygons)), np.diff(paths.offsets))
    chosen = simplified(paths.vertices, numbers, tolerance)
    counts = np.bincount(numbers[chosen], minlength=len(paths.polygons))
    return _Paths(paths.vertices[chosen], np.append(0, np.cumsum(counts)), paths.polygons)


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
