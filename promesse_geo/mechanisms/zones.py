"""Zones: their shapes as an opaque parameter, where they are placed among traces, and what they cut."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from pyproj import CRS

from promesse_geo import threads
from promesse_geo.kernels import zones as kernel
from promesse_geo.messages import counted, invalid
from promesse_geo.traces.crs import read_crs, unit_factor
from promesse_geo.traces.owners import owner_of
from promesse_geo.traces.placing import place_points
from promesse_geo.traces.records import as_offsets, within_traces
from promesse_geo.traces.space import Space, Sphere, axes_at_centre
from promesse_geo.traces.traces import Traces, freeze

_STEP = 1_000.0  # metres, and a hundredth of a degree: edges are straight in the CRS of the zones
_MOST = 4_096  # points of a ring that are added at most
_WIDEST = 1.0  # chord from the middle of a polygon to its corners on the globe: 60 degrees
_HORIZON = 1e-6  # least height above the horizon of a view
_RULE = "a GeoDataFrame of points or polygons with a CRS, and a column user if zones are those of one user each"


@dataclass(frozen=True, repr=False)
class Zones:
    """Zones of a frame, as an opaque value of a parameter: equal if their content is.

    Parameters
    ----------
    owners : tuple of str, or None
        The owner of each zone; None if all are for everybody.
    shapes : tuple of bytes
        Points and polygons in well-known binary.
    crs : str
        The CRS as WKT.
    """

    owners: tuple[str, ...] | None
    shapes: tuple[bytes, ...]
    crs: str

    def __repr__(self) -> str:
        """Return the number of zones, never their places."""
        return f"<{counted(len(self.shapes), 'zone')}>"

    @classmethod
    def from_frame(cls, frame: Any, *, owner: str) -> "Zones":
        """Read a frame of points and polygons; raise TypeError or ValueError, without a place or user."""
        if isinstance(frame, cls):
            return frame
        if not isinstance(frame, gpd.GeoDataFrame) or frame.active_geometry_name is None or frame.crs is None:
            raise TypeError(invalid("zones", owner, _RULE, frame))
        shapes = frame.geometry.force_2d()
        bad = ~shapes.geom_type.isin(["Point", "Polygon", "MultiPolygon"]) | shapes.is_empty
        bad |= ~np.isfinite(shapes.bounds).all(axis=1)
        if not len(frame) or bad.any():
            got = f"{counted(int(bad.sum()), 'row')} of {len(frame):,} without such a shape"
            raise ValueError(f"The 'zones' parameter of {owner} must be {_RULE}. Got {got} instead.")
        owners = None
        if "user" in frame.columns:
            if not isinstance(frame["user"], pd.Series):
                raise ValueError(f"The 'zones' parameter of {owner} has several columns named 'user'. Keep one.")
            if missing := int(frame["user"].isna().sum()):
                raise ValueError(
                    f"The 'zones' parameter of {owner} has {counted(missing, 'row')} without a user. Fill the column, "
                    "or drop it if the zones are for all users."
                )
            owners = tuple(map(str, frame["user"]))
        return cls(owners, tuple(map(bytes, shapes.to_wkb())), frame.crs.to_wkt())

    @property
    def has_points(self) -> bool:
        """Whether a zone is a circle around a point."""
        return any(isinstance(shape, shapely.Point) for shape in map(shapely.from_wkb, self.shapes))


@dataclass(frozen=True, eq=False)
class PlacedZones:
    """Zones in the space of traces.

    Parameters
    ----------
    space : Sphere or Plane
        Where they lie.
    owners : list of str or None
        The owner of each zone; None for everybody's.
    centres : numpy.ndarray of float64, shape (zones, 3) or (zones, 2)
        Centres of circles, and middles of polygons.
    reaches : numpy.ndarray of float64, shape (zones,)
        Chords of the radius of circles, or from the middle of polygons to their farthest corner.
    polygons : list of shapely.Polygon or None
        Polygons as seen from their middle (see `_flatten`); None for circles.
    names : dict of str to str
        The owner of each trace with zones, by the name of the trace.
    unclear : int
        How many owners begin or end nearly as many traces at a place without a zone; 0 if the zones were given.
    fewer : int
        Of how many owners fewer places were found than asked for; 0 if the zones were given.
    few : int
        How many owners begin and end fewer than 5 traces at the first place; 0 if the zones were given.
    """

    space: Space
    owners: list[str | None]
    centres: np.ndarray
    reaches: np.ndarray
    polygons: list[Any]
    names: Mapping[str, str]
    unclear: int = 0
    fewer: int = 0
    few: int = 0

    def cut(self, traces: Traces, names: Mapping[str, str] | None = None) -> Traces:
        """Return Traces without the records in zones, with breaks instead of segments that cross a zone.

        Parameters
        ----------
        traces : Traces
            Records in this space; they keep their positions in the input.
        names : mapping of str to str, optional
            The owner of each trace by its name, if others than in `names`.
        """
        return self.cut_and_count(traces, names)[0]

    def cut_and_count(self, traces: Traces, names: Mapping[str, str] | None = None) -> tuple[Traces, int]:
        """Return what `cut` returns, and how many breaks were made beside those that Traces had."""
        inside, crossed = self._touch(traces, self.names if names is None else names)
        kept = np.flatnonzero(~inside)
        rest = traces.select(~inside)
        begins = np.flatnonzero((np.diff(kept) > 1) | crossed[kept[:-1]]) + 1
        breaks = within_traces(np.union1d(rest.breaks, begins), rest.offsets)
        return replace(rest, breaks=freeze(breaks)), len(breaks) - len(rest.breaks)

    def _touch(self, traces: Traces, names: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray]:
        """Return which records lie in a zone, and from which a segment crosses one, bool of shape (records,)."""
        inside, crossed = np.zeros(traces.records, bool), np.zeros(traces.records, bool)
        stops = np.zeros(traces.records, bool)
        stops[traces.segments[1:] - 1] = True
        zones, records = self._near(traces, stops, names)
        is_circle = np.array([polygon is None for polygon in self.polygons], bool)[zones]
        rows, numbers = records[is_circle], zones[is_circle]
        crossed[rows] = True
        chords = np.linalg.norm(traces.points[rows] - self.centres[numbers], axis=1)
        inside[rows[chords <= self.reaches[numbers]]] = True
        rows, numbers = records[~is_circle], zones[~is_circle]
        order = np.argsort(numbers, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else []:
            self._touch_polygon(traces.points, stops, int(numbers[group[0]]), rows[group], inside, crossed)
        crossed[stops] = False
        return inside, crossed

    def _near(self, traces: Traces, stops: np.ndarray, names: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of a zone and the first record of a segment that is near its centre."""
        points, curvature = traces.points, traces.space.curvature
        blocks, owners = _cut_blocks(traces.offsets)
        boxes = np.empty((len(owners), 2, points.shape[1]))
        threads.run(
            lambda first, last: kernel.bound_blocks(points, stops, blocks, curvature, first, last, boxes),
            threads.fair(np.diff(blocks)),
        )
        offsets, own = self._zones_of(traces, names)
        common = np.flatnonzero([owner is None for owner in self.owners])
        rule = (points, stops, blocks, boxes, owners, offsets, own, common, self.centres, self.reaches, curvature)
        zones = records = np.empty(0, np.int64)
        pairs = kernel.find_near(*rule, zones, records)
        zones, records = np.empty((2, pairs), np.int64)
        kernel.find_near(*rule, zones, records)
        return zones, records

    def _zones_of(self, traces: Traces, names: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the zones of each trace, and their offsets."""
        known: dict[str, list[int]] = {}
        for number, owner in enumerate(self.owners):
            if owner is not None:
                known.setdefault(owner, []).append(number)
        lists = [known.get(names.get(str(user), ""), []) for user in traces.users]
        own = np.array([number for numbers in lists for number in numbers], np.int64)
        return as_offsets(np.array([len(numbers) for numbers in lists], np.int64)), own

    def _touch_polygon(
        self,
        points: np.ndarray,
        stops: np.ndarray,
        zone: int,
        rows: np.ndarray,
        inside: np.ndarray,
        crossed: np.ndarray,
    ) -> None:
        """Mark the records in a polygon, and from which segments cross it, among the rows near it."""
        polygon, centre = self.polygons[zone], self.centres[zone]
        shapely.prepare(polygon)
        ends = np.unique(np.concatenate((rows, rows[~stops[rows]] + 1)))
        view = _look(points[ends], centre, self.space)
        above = view[:, 2] > _HORIZON
        x, y = (view[above, :2] / view[above, 2:]).T
        inside[ends[above]] |= shapely.intersects_xy(polygon, x, y)
        rows = rows[~stops[rows]]
        rows = rows[~inside[rows] & ~inside[rows + 1]]
        starts, stops_at = (view[np.searchsorted(ends, each)] for each in (rows, rows + 1))
        lines = shapely.linestrings(np.stack((_above(starts, stops_at), _above(stops_at, starts)), axis=1))
        crossed[rows[shapely.intersects(polygon, lines)]] = True


def _cut_blocks(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of blocks of consecutive records of a trace, and the trace of each."""
    counts = -(-np.diff(offsets) // kernel.BLOCK)
    traces = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(traces)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(offsets[:-1][traces] + kernel.BLOCK * within, offsets[-1]), traces


def _look(points: np.ndarray, centre: np.ndarray, space: Space) -> np.ndarray:
    """Return x, y and height of points, shape (n, 3), in the view from above a centre.

    On the sphere, x/height and y/height are gnomonic: great circles are straight lines there. In the plane, the height
    is 1.
    """
    if isinstance(space, Sphere):
        return points @ axes_at_centre(centre[None]).T
    return np.column_stack((points - centre, np.ones(len(points))))


def _above(ends: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return x and y of ends of segments, moved towards their other ends to above the horizon."""
    low = ends[:, 2] < _HORIZON
    if low.any():
        heights, rises = ends[low, 2], others[low, 2] - ends[low, 2]
        shares = np.clip((_HORIZON - heights) / np.where(rises > 0, rises, 1.0), 0.0, 1.0)
        ends = ends.copy()
        ends[low] += shares[:, None] * (others[low] - ends[low])
        ends[low, 2] = np.maximum(ends[low, 2], _HORIZON)
    return ends[:, :2] / ends[:, 2:]


def locate(zones: Zones, traces: Traces, *, owner: str) -> Iterator[tuple[str | None, np.ndarray, Any]]:
    """Yield owner, middle and polygon (None for a point, several for a multipolygon) of each zone among traces.

    Raises
    ------
    ValueError
        If a zone has no place in the CRS of the data, or a polygon is too wide.
    """
    shapes = [shapely.from_wkb(shape) for shape in zones.shapes]
    names = [None] * len(shapes) if zones.owners is None else list(zones.owners)
    for name, shape in zip(names, shapes, strict=True):
        if isinstance(shape, shapely.Point):
            yield name, _place(np.array([[shape.x, shape.y]]), zones, traces.space, owner=owner)[0], None
            continue
        for polygon in getattr(shape, "geoms", [shape]):
            rings = [_place(ring, zones, traces.space, owner=owner) for ring in _rings(polygon, read_crs(zones.crs))]
            middle = rings[0].mean(axis=0)
            if isinstance(traces.space, Sphere):
                middle = axes_at_centre(middle[None])[2]
                if max(np.linalg.norm(ring - middle, axis=1).max() for ring in rings) > _WIDEST:
                    raise ValueError(
                        f"The 'zones' parameter of {owner} has a polygon that spans more than 60 degrees from its "
                        "middle. Divide it."
                    )
            yield name, middle, rings


def flatten(middle: np.ndarray, rings: list[np.ndarray], space: Space) -> tuple[float, Any]:
    """Return the chord to the farthest corner, and the polygon in the view from above its middle."""
    views = [_look(ring, middle, space) for ring in rings]
    shell, *holes = [view[:, :2] / view[:, 2:] for view in views]
    reach = max(float(np.linalg.norm(ring - middle, axis=1).max()) for ring in rings)
    return reach * (1 + 1e-9), shapely.make_valid(shapely.Polygon(shell, holes))


def _rings(polygon: Any, crs: CRS) -> Iterator[np.ndarray]:
    """Yield the rings of a polygon with points added on long edges, straight in the CRS of the zones."""
    unit = unit_factor(crs)
    turn, step = 2 * np.pi / unit, (np.radians(0.01) if crs.is_geographic else _STEP) / unit
    for ring in (polygon.exterior, *polygon.interiors):
        corners = np.asarray(ring.coords)[:, :2]
        if crs.is_geographic:  # across the antimeridian the short way
            corners = np.column_stack((np.unwrap(corners[:, 0], period=turn), corners[:, 1]))
        line = shapely.LineString(corners)
        if line.length:
            corners = np.array(shapely.segmentize(line, max(step, line.length / _MOST)).coords)
        if crs.is_geographic:  # around a pole, longitudes were continued beyond a full turn
            corners[:, 0] = np.where(np.abs(corners[:, 0]) > turn, corners[:, 0] % turn, corners[:, 0])
        yield corners


def _place(corners: np.ndarray, zones: Zones, space: Space, *, owner: str) -> np.ndarray:
    """Return coordinates in the CRS of the zones, shape (n, 2), as points of a space."""
    points, placed = place_points(*corners.T, crs=zones.crs, space=space)
    if not placed.all():
        raise ValueError(
            f"The 'zones' parameter of {owner} has a zone without a place in the CRS of the data. Check its CRS, or "
            "bring both to EPSG:4326."
        )
    return points


def owners_by_name(users: pd.Index, owners: set[str]) -> dict[str, str]:
    """Return the owner of each trace by its name, among owners of zones."""
    named = ((str(user), owner_of(str(user), owners)) for user in users)
    return {name: owner for name, owner in named if owner in owners}
