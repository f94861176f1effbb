"""From CRS coordinates to kernel coordinates and back: one geometry for the globe, one for the plane."""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pyproj import CRS, Proj, Transformer
from pyproj.exceptions import CRSError, ProjError

from promesse_geo import threads
from promesse_geo.kernels import globe
from promesse_geo.messages import counted, shown
from promesse_geo.validation import check_choice

EARTH_RADIUS = 6_371_008.8
"""Radius in metres of the sphere on which great circles are measured (mean radius of the Earth)."""

LARGEST_SCALE_ERROR = 0.01
"""A projected CRS serves as a plane while its scale errs by at most this much over the data."""

FARTHEST = 1e8
"""Projected coordinates beyond this many metres are taken for errors: no place on Earth has such ones."""

_CURE = "Bring the data to EPSG:4326 first: gdf.to_crs(4326), or ogr2ogr -t_srs EPSG:4326 for a file."
_NO_PLACE = "a location that the CRS cannot place on the globe (is it the right CRS?)"


@dataclass(frozen=True)
class Sphere:
    """Great circles on a sphere of radius `EARTH_RADIUS`; points are unit vectors.

    No antimeridian, no poles, no trigonometry once the data is in.

    Parameters
    ----------
    crs : pyproj.CRS
        The CRS in which coordinates come and go: geographic, or a projected one that is not true to scale.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.make_city(users=2, days=1, as_traces=True).space.name
    'sphere'
    """

    crs: CRS
    name: ClassVar[str] = "sphere"
    dimension: ClassVar[int] = 3
    curvature: ClassVar[float] = 1.0
    scale: ClassVar[float] = EARTH_RADIUS

    def points(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return (n, 3) unit vectors of CRS coordinates; NaN where a coordinate has no place on the globe."""
        x, y = self.degrees(x, y)
        vectors = np.empty((len(x), 3))
        threads.run(lambda first, last: globe.to_vectors(x, y, first, last, vectors), threads.even(len(vectors)))
        return vectors

    def degrees(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return longitudes and latitudes in degrees of CRS coordinates."""
        base = _geographic(self.crs)
        if not _is_geographic(self.crs):
            x, y = Transformer.from_crs(self.crs, base, always_xy=True).transform(x, y)
            x, y = (np.where(np.isfinite(axis), axis, np.nan) for axis in (x, y))
        degrees = _degrees_per_unit(base)
        return (x, y) if degrees == 1.0 else (x * degrees, y * degrees)

    def coordinates(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y in the CRS of (n, 3) unit vectors; ValueError where the CRS's projection has no place."""
        x, y = np.empty(len(points)), np.empty(len(points))
        threads.run(lambda first, last: globe.to_degrees(points, first, last, x, y), threads.even(len(points)))
        base = _geographic(self.crs)
        degrees = _degrees_per_unit(base)
        if degrees != 1.0:
            x, y = x / degrees, y / degrees
        if not _is_geographic(self.crs):
            x, y = Transformer.from_crs(base, self.crs, always_xy=True).transform(x, y)
            _refuse_lost(_are_far(x, y, self.crs))
        return x, y

    def misplaced(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, str]:
        """Return which coordinates lie off the globe, and how to say so."""
        longitudes, latitudes = self.degrees(x, y)
        if _is_geographic(self.crs):
            beyond = (np.abs(latitudes) > 90) | (np.abs(longitudes) > 360)
            return beyond, "a latitude beyond 90 or a longitude beyond 360 degrees (are the two swapped?)"
        return ~np.isfinite(latitudes) | _are_far(x, y, self.crs), _NO_PLACE

    def extent(self, points: np.ndarray) -> tuple[float, float]:
        """Return width and height in metres of the data, seen from above its middle."""
        middle = points.mean(axis=0)
        middle /= max(math.hypot(*middle), 1e-300)
        east = np.array([-middle[1], middle[0], 0.0])
        east /= max(math.hypot(*east), 1e-300)
        width, height = (np.ptp(points @ axis) * self.scale for axis in (east, np.cross(middle, east)))
        return float(width), float(height)


@dataclass(frozen=True)
class Plane:
    """Straight lines in the plane of a projected or engineering CRS; points are metres.

    Parameters
    ----------
    crs : pyproj.CRS
        The CRS whose plane is used as it is.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.make_city(users=2, days=1).to_crs(2154).promesse.traces().space.name
    'plane'
    """

    crs: CRS
    name: ClassVar[str] = "plane"
    dimension: ClassVar[int] = 2
    curvature: ClassVar[float] = 0.0
    scale: ClassVar[float] = 1.0

    @property
    def metres(self) -> float:
        """Metres in one unit of the CRS's axes."""
        return _metres(self.crs)

    def points(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return (n, 2) metres of CRS coordinates."""
        return np.column_stack((x, y)) * self.metres

    def coordinates(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y in the CRS's unit of (n, 2) metres; ValueError where there is no such place."""
        x, y = points[:, 0] / self.metres, points[:, 1] / self.metres
        _refuse_lost(self.misplaced(x, y)[0])
        return x, y

    def misplaced(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, str]:
        """Return which coordinates are too far to be true or off the globe, and how to say so."""
        far = _are_far(x, y, self.crs)
        text = f"a coordinate beyond {FARTHEST / 1000:,.0f} km from the origin (is it the right CRS?)"
        if _inner(self.crs).is_engineering or not (off := _are_off_globe(x, y, self.crs)).any():
            return far, text
        return far | off, text if far.any() else _NO_PLACE

    def extent(self, points: np.ndarray) -> tuple[float, float]:
        """Return width and height in metres of the data's bounding box."""
        return float(np.ptp(points[:, 0])), float(np.ptp(points[:, 1]))


Space = Sphere | Plane


def choose_space(crs: Any, x: np.ndarray, y: np.ndarray, *, space: Any = None) -> Space:
    """Choose the space of a data set, once for all of it.

    Geographic CRSs are measured on the sphere, engineering ones in the plane. A projected CRS is a plane as long
    as its scale is true to 1 % over the data's bounding box; else, and always for world Mercators such as
    EPSG:3857, lengths are taken on the sphere and coordinates come back in the CRS given.

    Parameters
    ----------
    crs : pyproj.CRS or whatever makes one
        The CRS of the coordinates.
    x, y : numpy.ndarray, shape (n,)
        Finite coordinates in that CRS.
    space : {"sphere", "plane"}, Sphere, Plane or None
        None chooses; a word or a space decides.

    Returns
    -------
    Sphere or Plane

    Raises
    ------
    ValueError
        If the CRS has no such space: a plane of degrees, a sphere of a local grid, geocentric coordinates.
    """
    crs = read_crs(crs)
    if isinstance(space, (Sphere, Plane)):
        if space.crs != crs:
            raise ValueError(
                "The 'space' parameter of Traces is of another CRS than the data. Give gdf.to_crs(space.crs)."
            )
        return space
    if space is not None:
        space = check_choice(space, name="space", owner="Traces", options=("sphere", "plane"))
    if _is_geographic(crs):
        if space == "plane":
            raise ValueError(
                "The 'space' parameter of Traces cannot be 'plane' for a geographic CRS, whose units are degrees. "
                "Project the data first, for example with gdf.to_crs(gdf.estimate_utm_crs())."
            )
        return Sphere(crs)
    if _inner(crs).is_engineering:
        if space == "sphere":
            raise ValueError("The 'space' parameter of Traces cannot be 'sphere' for a local grid without a globe.")
        return Plane(crs)
    if not _inner(crs).is_projected:
        raise ValueError(
            f"The CRS is of the kind '{crs.type_name}', which has no longitude and latitude and no plane. {_CURE}"
        )
    if space is None:
        near = ~_are_far(x, y, crs)  # errors do not decide
        space = "plane" if not _is_world_mercator(crs) and _is_true_to_scale(crs, x[near], y[near]) else "sphere"
    return Plane(crs) if space == "plane" else _sphere_below(crs)


def _sphere_below(crs: CRS) -> Sphere:
    try:
        Transformer.from_crs(crs, _geographic(crs), always_xy=True)
    except ProjError as error:
        rule = "The CRS cannot be turned back into longitude and latitude, which distances on the globe need."
        cure = "Give the data in EPSG:4326, or say space='plane' if the CRS is true to scale."
        raise ValueError(f"{rule} {cure}") from error
    return Sphere(crs)


def _are_far(x: np.ndarray, y: np.ndarray, crs: CRS) -> np.ndarray:
    """Which coordinates are farther than any place, or infinite; not which are missing."""
    return np.maximum(np.abs(x), np.abs(y)) > FARTHEST / _metres(crs)


def _are_off_globe(x: np.ndarray, y: np.ndarray, crs: CRS) -> np.ndarray:
    """Which coordinates of a projected CRS have no longitude; all are asked only if the bounding box holds such."""
    with suppress(ProjError):  # no way back: nobody can tell
        back = Transformer.from_crs(crs, _geographic(crs), always_xy=True)
        if len(x) and not np.isfinite(back.transform(*_grid(x, y))[0]).all():
            return np.isfinite(x) & ~np.isfinite(back.transform(x, y)[0])
    return np.zeros(len(x), bool)


def _grid(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """5 × 5 places over the bounding box of coordinates, missing ones aside."""
    across, along = np.meshgrid(*(np.linspace(np.fmin.reduce(axis), np.fmax.reduce(axis), 5) for axis in (x, y)))
    return across, along


def _refuse_lost(lost: np.ndarray) -> None:
    """Raise if the CRS has no place for what was computed."""
    if lost.any():
        found = f"{lost.sum():,} of {counted(len(lost), 'location')}"
        raise ValueError(f"The data's projection does not reach {found} that would come out. {_CURE}")


def _metres(crs: CRS) -> float:
    """Metres in one unit of a projected or engineering CRS's axes."""
    return float(crs.axis_info[0].unit_conversion_factor) or 1.0


def read_crs(crs: Any) -> CRS:
    """Return the CRS that is meant, or say that it is none."""
    try:
        return CRS.from_user_input(crs)
    except (CRSError, TypeError, ValueError) as error:  # the last two where pyproj compares what came
        rule = "a coordinate reference system such as 'EPSG:4326'"
        raise ValueError(f"The 'crs' parameter must be {rule}. Got {shown(crs)} instead.") from error


def _inner(crs: CRS) -> CRS:
    """The horizontal CRS inside a bound or compound one."""
    while crs.is_bound or crs.is_compound:
        crs = (crs.source_crs if crs.is_bound else crs.sub_crs_list[0]) or crs
    return crs


def _is_geographic(crs: CRS) -> bool:
    return bool(_inner(crs).is_geographic)


def _geographic(crs: CRS) -> CRS:
    """The geographic CRS itself, or the one on which a projected CRS is built."""
    inner = _inner(crs)
    found = inner if inner.is_geographic else inner.geodetic_crs
    assert found is not None  # projected CRSs have one
    return found


def _degrees_per_unit(base: CRS) -> float:
    degrees = math.degrees(base.axis_info[0].unit_conversion_factor)
    return 1.0 if abs(degrees - 1.0) < 1e-9 else degrees


def _is_world_mercator(crs: CRS) -> bool:
    operation = _inner(crs).coordinate_operation
    method = operation.method_name if operation else ""
    return "Mercator" in method and not any(word in method for word in ("Transverse", "Oblique", "Space"))


def _is_true_to_scale(crs: CRS, x: np.ndarray, y: np.ndarray) -> bool:
    """Whether both scale factors are within 1 % of true on a 5 × 5 grid over the bounding box."""
    if len(x) == 0:
        return True
    base = _geographic(crs)
    try:
        longitudes, latitudes = Transformer.from_crs(crs, base, always_xy=True).transform(*_grid(x, y))
        degrees = _degrees_per_unit(base)
        factors = Proj(_inner(crs)).get_factors(longitudes * degrees, latitudes * degrees)
    except ProjError:
        return False
    scales = np.stack((factors.meridional_scale, factors.parallel_scale))
    return bool(np.all(np.abs(scales - 1.0) <= LARGEST_SCALE_ERROR))
