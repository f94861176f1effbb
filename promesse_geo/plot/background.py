"""The background of a map without tiles: lines and areas such as streets and districts, packed for the browser."""

from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import shapely
from pyproj import CRS

from promesse_geo.messages import counted, invalid, warn
from promesse_geo.plot import colours
from promesse_geo.plot.layers import Projection, packed
from promesse_geo.plot.paths import FINEST, simplified
from promesse_geo.traces.placing import place_points

MOST_VERTICES = 60_000
"""Largest number of vertices of a background; larger ones are simplified."""

_LEAST_VIEW = 0.02, 2000.0  # degrees, metres: of a single place
_EDGE = 85.051129  # degrees of latitude: where maps in Web Mercator end
_STEP = 90, 5e6  # of a ring, in degrees and metres, that is less than half around the globe
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

    def wholes(self) -> np.ndarray:
        """Return the number of the outer ring, which is the first, for each path of a polygon; of a line, its own."""
        _, first, polygon = np.unique(self.polygons, return_index=True, return_inverse=True)
        return np.where(self.polygons < 0, np.arange(len(self.polygons)), first[polygon])

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
    paths, missing = _read(_check(background, owner=owner), projection, owner=owner)
    nothing = paths.select(np.zeros(len(paths.polygons), bool))
    if view is None:
        return Background(_pack(nothing, projection), [])
    remarks = []
    if missing:
        remarks.append(
            f"{counted(missing, 'line or polygon', 'lines or polygons')} of the background left out: vertices have no "
            "place on the map."
        )
    size = max(float(np.ptp(view, axis=0).max()), _LEAST_VIEW[projection.flat])
    lower, upper = paths.extremes()
    if not projection.flat and np.all((lower[:, 1] > _EDGE) | (upper[:, 1] < -_EDGE)):
        beyond = f"The background lies beyond the edge of the map, which ends at latitude {_EDGE:.2f}."
        warn(beyond)
        return Background(_pack(nothing, projection), [*remarks, beyond])
    is_near = np.all((lower < view[1] + size) & (upper > view[0] - size), axis=1)
    near = paths.select(is_near[paths.wholes()])  # polygons with all their holes
    if len(near.vertices) > MOST_VERTICES:
        near = _clipped(near, view[0] - size, view[1] + size)
    if not len(near.polygons):
        far = "The background has nothing near the data."
        warn(f"{far} Check its CRS, and that x is the longitude.")
        return Background(_pack(near, projection), [*remarks, far])
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


def _read(parts: gpd.GeoSeries, projection: Projection, *, owner: str) -> tuple[_Paths, int]:
    """Return the paths of lines and polygons, but for those with vertices that have no place on the map, and how many.

    Rings keep the extent that they have in their CRS. Polygons wider than half the globe are there on both sides, too.
    """
    paths, polygons = _lines_and_rings(np.asarray(parts.array))
    paths[polygons >= 0] = _divided(paths[polygons >= 0], parts.crs)
    coordinates, numbers = shapely.get_coordinates(paths, return_index=True)
    points, placed = place_points(*coordinates.T, crs=parts.crs, space=projection.space)
    counts = np.bincount(numbers, minlength=len(paths))
    misplaced = np.bincount(numbers[~placed], minlength=len(paths)) > 0
    of_polygon = polygons >= 0
    left_out = np.where(of_polygon, np.isin(polygons, polygons[misplaced]), misplaced)
    if left_out.all():
        raise ValueError(invalid("background", owner, "in a CRS that can be converted to that of the data", parts))
    read = _Paths(points, np.append(0, np.cumsum(counts)), polygons).select(~left_out)
    read = read._replace(vertices=projection.paths(read.vertices, read.offsets[:-1]))
    missing = (left_out & ~of_polygon).sum() + len(np.unique(polygons[left_out & of_polygon]))
    return (read if projection.flat else _around(read)), int(missing)


def _divided(rings: np.ndarray, crs: CRS) -> np.ndarray:
    """Return rings with vertices on edges that may be longer than half around the globe."""
    unit = crs.axis_info[0].unit_conversion_factor if crs.axis_info else 1.0
    step = _STEP[0] if crs.is_geographic else _STEP[1] / (unit or 1.0)
    x, y = shapely.bounds(rings).reshape(-1, 2, 2).transpose(2, 0, 1)
    size = np.maximum(np.ptp(x, axis=1), np.ptp(y, axis=1))
    large = (size > step) & (size < 16 * step)  # others are not on the globe
    divided = rings.copy()
    divided[large] = shapely.segmentize(rings[large], step)
    return divided


def _around(paths: _Paths) -> _Paths:
    """Return paths with the holes of each polygon inside of it, and wide polygons once more on both sides."""
    is_line = paths.polygons < 0
    counts = np.diff(paths.offsets)
    lower, upper = (corner[:, 0] for corner in paths.extremes())
    outer = paths.wholes()
    turns = np.rint(((lower + upper)[outer] - lower - upper) / 720)
    vertices = paths.vertices + np.column_stack((360 * np.repeat(turns, counts), np.zeros(len(paths.vertices))))
    moved = paths._replace(vertices=vertices)
    wide = moved.select(~is_line & ((upper - lower)[outer] > 180))
    for turn in (-360, 360) if len(wide.polygons) else ():
        moved = _Paths(
            np.concatenate((moved.vertices, np.add(wide.vertices, (turn, 0)))),
            np.append(moved.offsets, moved.offsets[-1] + wide.offsets[1:]),
            np.append(moved.polygons, wide.polygons + moved.polygons.max() + 1),
        )
    return moved


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
    """Return the longest lines and polygons that have at most `MOST_VERTICES` vertices together."""
    lower, upper = paths.extremes()
    wholes = paths.wholes()
    counts = np.bincount(wholes, np.diff(paths.offsets), minlength=len(wholes))
    order = np.argsort(-(upper - lower).sum(axis=1)[wholes], kind="stable")
    chosen = np.zeros(len(order), bool)
    order = order[(counts[order] > 0) & (counts[order] <= MOST_VERTICES)]
    chosen[order[np.cumsum(counts[order]) <= MOST_VERTICES]] = True
    return paths.select(chosen[wholes])


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
