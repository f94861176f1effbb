"""Where points lie and how distances are measured: on the globe (`Sphere`) or in the plane of a CRS (`Plane`)."""

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from pyproj import CRS, Proj, Transformer
from pyproj.exceptions import ProjError

from promesse_geo import threads
from promesse_geo.kernels import projections
from promesse_geo.messages import counted, warn
from promesse_geo.traces.crs import USE_DEGREES, inner_crs, is_world_mercator, metres_per_unit, read_crs, unit_factor
from promesse_geo.validation import check_choice, set_fields

EARTH_RADIUS = 6_371_008.8
"""Radius in metres of the sphere on which great circles are measured (mean radius of the Earth)."""

LARGEST_SCALE_ERROR = 0.01
"""Largest relative error of scale with which a projected CRS is used as a plane."""

FARTHEST = 1e8
"""Projected coordinates beyond this many metres are errors: no place on Earth has them."""

_BLOCK = 1 << 15  # points whose cells are computed at a time
Base = tuple[np.ndarray, np.ndarray]

_NO_PLACE = "a location that the CRS cannot place on the globe (is it the right CRS?)"


@dataclass(frozen=True, eq=False)
class LocalPlane:
    """Plane metres of a data set, and the way back to kernel coordinates; made by `Sphere` and `Plane`.

    Parameters
    ----------
    x, y : numpy.ndarray of float64, shape (n,)
        Metres.
    scale_error : float
        Relative error of lengths at the farthest point.
    axes : numpy.ndarray of float64, shape (3, 3), or None
        On the sphere the unit vectors that point east, north and up at the centre; None in the plane of a CRS.
    """

    x: np.ndarray
    y: np.ndarray
    scale_error: float
    axes: np.ndarray | None

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y in metres, shape (n,), of kernel coordinates of shape (n, 3) or (n, 2)."""
        if self.axes is None:
            return np.ascontiguousarray(points[:, 0]), np.ascontiguousarray(points[:, 1])
        return _azimuthal(points, self.axes)[:2]

    def points(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return kernel coordinates, shape (n, 3) or (n, 2), of x and y in metres, shape (n,)."""
        if self.axes is None:
            return np.column_stack((x, y))
        points = np.empty((len(x), 3))
        projections.to_sphere(x, y, self.axes, EARTH_RADIUS, points)
        return points

    def warn_of_distortion(self) -> None:
        """Warn if lengths err by more than 1 %."""
        if self.scale_error > LARGEST_SCALE_ERROR:
            error = f"{100 * self.scale_error:,.1f} %" if self.scale_error < 10 else "more than 1,000 %"
            warn(
                f"Lengths in the plane used for the data set err by up to {error} at its farthest record. "
                "Remove impossible jumps with drop_jumps() (promesse-geo prepare --max-speed 350), or protect each "
                "region separately."
            )


@dataclass(frozen=True)
class Sphere:
    """Great circles on a sphere of radius `EARTH_RADIUS`; points are unit vectors.

    The antimeridian and the poles need no special treatment, and kernels need no trigonometry.

    Parameters
    ----------
    crs : pyproj.CRS
        The CRS of the coordinates: geographic, or a projected one that is not true to scale.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.make_city(users=2, days=1, as_traces=True).space.name
    'sphere'
    """

    crs: CRS
    _base: CRS = field(init=False, repr=False, compare=False)
    _is_projected: bool = field(init=False, repr=False, compare=False)
    _degrees_per_unit: float = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "sphere"
    dimension: ClassVar[int] = 3
    curvature: ClassVar[float] = 1.0
    scale: ClassVar[float] = EARTH_RADIUS

    def __post_init__(self) -> None:
        """Find the geographic CRS below."""
        inner = inner_crs(self.crs)
        is_projected = not inner.is_geographic
        base = inner.geodetic_crs if is_projected else inner
        if base is None:
            raise ValueError(f"A CRS of the kind '{self.crs.type_name}' has no longitude and latitude. {USE_DEGREES}")
        degrees = math.degrees(unit_factor(base))
        degrees = 1.0 if abs(degrees - 1.0) < 1e-9 else degrees
        set_fields(self, {"_base": base, "_is_projected": is_projected, "_degrees_per_unit": degrees})

    @property
    def unit(self) -> float:
        """Metres in one unit of the CRS's axes; along the meridian if that is an angle."""
        factor = unit_factor(self.crs)
        return factor * EARTH_RADIUS if self.crs.is_geographic else factor

    def points(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return unit vectors, shape (n, 3), of CRS coordinates, shape (n,); NaN if they have no place on the globe."""
        return self.from_base(*self.to_base(x, y))

    def to_base(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return longitudes and latitudes in degrees, shape (n,), of CRS coordinates, shape (n,)."""
        if self._is_projected:
            x, y = Transformer.from_crs(self.crs, self._base, always_xy=True).transform(x, y)
            x, y = (np.where(np.isfinite(axis), axis, np.nan) for axis in (x, y))
        degrees = self._degrees_per_unit
        return (x, y) if degrees == 1.0 else (x * degrees, y * degrees)

    def from_base(self, longitudes: np.ndarray, latitudes: np.ndarray) -> np.ndarray:
        """Return unit vectors, shape (n, 3), of longitudes and latitudes in degrees, shape (n,)."""
        vectors = np.empty((len(longitudes), 3))
        threads.run(
            lambda first, last: projections.to_vectors(longitudes, latitudes, first, last, vectors),
            threads.even(len(vectors)),
        )
        return vectors

    def coordinates(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y in the CRS, shape (n,), of unit vectors, shape (n, 3).

        Raises
        ------
        ValueError
            If the projection of the CRS does not reach a point.
        """
        x, y = np.empty(len(points)), np.empty(len(points))
        threads.run(lambda first, last: projections.to_degrees(points, first, last, x, y), threads.even(len(points)))
        if self._degrees_per_unit != 1.0:
            x, y = x / self._degrees_per_unit, y / self._degrees_per_unit
        if self._is_projected:
            x, y = Transformer.from_crs(self._base, self.crs, always_xy=True).transform(x, y)
            _raise_if_unreachable(_are_far(x, y, self.crs))
        return x, y

    def misplaced(self, x: np.ndarray, y: np.ndarray, *, base: Base | None = None) -> tuple[np.ndarray, str]:
        """Return which CRS coordinates, shape (n,), lie off the globe, and the words for it.

        What `to_base` returns for them need not be computed again if it is passed as `base`.
        """
        longitudes, latitudes = self.to_base(x, y) if base is None else base
        if not self._is_projected:
            beyond = (np.abs(latitudes) > 90) | (np.abs(longitudes) > 360)
            return beyond, "a latitude beyond 90 or a longitude beyond 360 degrees (are the two swapped?)"
        return ~np.isfinite(latitudes) | _are_far(x, y, self.crs), _NO_PLACE

    def metres(self, chords: np.ndarray) -> np.ndarray:
        """Return great-circle distances in metres of chords of the unit sphere, any shape."""
        return 2 * np.arcsin(np.minimum(chords / 2, 1.0)) * EARTH_RADIUS

    def chord(self, metres: float) -> float:
        """Return the chord of the unit sphere for a great-circle distance in metres."""
        return 2 * math.sin(metres / EARTH_RADIUS / 2)

    def extent(self, points: np.ndarray) -> tuple[float, float]:
        """Return width and height in metres of points, shape (n, 3), seen from above their centre."""
        axes = axes_at_centre(points)
        width, height = (float(np.ptp(points @ axis)) * EARTH_RADIUS for axis in axes[:2])
        return width, height

    def bounds(self, points: np.ndarray) -> tuple[float, float, float, float]:
        """Return the least x and y and the greatest x and y in the CRS of unit vectors, shape (n, 3)."""
        if not self._is_projected:
            rows = np.empty(4, np.int64)
            projections.find_extremes(points, rows)
            points = points[rows]
        x, y = self.coordinates(points)
        return float(x.min()), float(y.min()), float(x.max()), float(y.max())

    def local_plane(self, points: np.ndarray) -> LocalPlane:
        """Return the azimuthal equidistant plane around the centre of points, shape (n, 3).

        The centre is the normalised mean. Distances from it are true; at an angle θ from it lengths across are too
        long by θ/sin θ.
        """
        axes = axes_at_centre(points)
        x, y, farthest = _azimuthal(points, axes)
        stretch = farthest / math.sin(farthest) if 0 < farthest < math.pi else 1.0 if farthest == 0 else math.inf
        return LocalPlane(x, y, stretch - 1, axes)

    def move(self, points: np.ndarray, bearings: np.ndarray, metres: np.ndarray) -> np.ndarray:
        """Return points, shape (n, 3), moved along great circles in bearings (radians from north), shape (n,)."""
        angles = metres / EARTH_RADIUS
        moved = np.empty_like(points)
        for row, point in enumerate(points):
            east, north, up = axes_at_centre(point[None])
            heading = math.cos(bearings[row]) * north + math.sin(bearings[row]) * east
            moved[row] = math.cos(angles[row]) * up + math.sin(angles[row]) * heading
        return moved

    def sinusoidal(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return metres along the parallel from Greenwich and along the meridian from the equator, shape (n,)."""
        latitudes = np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1]))
        longitudes = np.arctan2(points[:, 1], points[:, 0])
        return longitudes * np.cos(latitudes) * EARTH_RADIUS, latitudes * EARTH_RADIUS

    def cells(self, points: np.ndarray, side: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the column and the row, int64 of shape (n,), of the grid cell that each point lies in.

        Rows are `side` metres of latitude, from the equator. Each is divided into round(2πR·cos φ / side) equal cells
        from the meridian of Greenwich, φ being the row's middle, so that all cells have about the same area.

        Parameters
        ----------
        points : numpy.ndarray of float64, shape (n, 3)
            Unit vectors.
        side : float
            Metres.
        """
        columns, rows = np.empty((2, len(points)), np.int64)

        def fill(first: int, last: int) -> None:
            for block in range(first, last):
                part = slice(block * _BLOCK, (block + 1) * _BLOCK)
                x, y, z = points[part].T
                rows[part] = np.floor(np.arctan2(z, np.hypot(x, y)) * EARTH_RADIUS / side)
                number = _cells_around((rows[part] + 0.5) * (side / EARTH_RADIUS), side)
                columns[part] = np.floor(np.arctan2(y, x) / (2 * math.pi) * number)
                columns[part] %= number.astype(np.int64)

        threads.run(fill, threads.fair(np.full(-(-len(points) // _BLOCK), _BLOCK)))
        return columns, rows

    def snap(self, points: np.ndarray, side: float) -> np.ndarray:
        """Return the nearest nodes, shape (n, 3), of a grid of about `side` metres around the equator and Greenwich.

        Latitudes are multiples of `side` metres, up to the poles; longitudes divide each parallel into equal parts.
        """
        step = side / EARTH_RADIUS
        latitudes = np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1]))
        latitudes = np.clip(np.rint(latitudes / step) * step, -math.pi / 2, math.pi / 2)
        number = _cells_around(latitudes, side)
        columns = np.rint(np.arctan2(points[:, 1], points[:, 0]) / (2 * math.pi) * number)
        columns[2 * columns == -number] *= -1  # −180 degrees are 180
        longitudes = columns * (2 * math.pi / number)
        parallel = np.cos(latitudes)
        return np.column_stack((parallel * np.cos(longitudes), parallel * np.sin(longitudes), np.sin(latitudes)))


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
    def unit(self) -> float:
        """Metres in one unit of the CRS's axes."""
        return metres_per_unit(self.crs)

    def points(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return metres, shape (n, 2), of CRS coordinates, shape (n,)."""
        return np.column_stack((x, y)) * self.unit

    def to_base(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return CRS coordinates, shape (n,), as they are; see `Sphere.to_base`."""
        return x, y

    def from_base(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return metres, shape (n, 2), of what `to_base` returns."""
        return self.points(x, y)

    def coordinates(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y in the unit of the CRS, shape (n,), of metres, shape (n, 2).

        Raises
        ------
        ValueError
            If the CRS has no such place.
        """
        x, y = points[:, 0] / self.unit, points[:, 1] / self.unit
        _raise_if_unreachable(self.misplaced(x, y)[0])
        return x, y

    def misplaced(self, x: np.ndarray, y: np.ndarray, *, base: Base | None = None) -> tuple[np.ndarray, str]:
        """Return which CRS coordinates, shape (n,), are too far away or off the globe, and the words for it."""
        far = _are_far(x, y, self.crs)
        text = f"a coordinate beyond {FARTHEST / 1000:,.0f} km from the origin (is it the right CRS?)"
        if inner_crs(self.crs).is_engineering or not (off := _are_off_globe(x, y, self.crs)).any():
            return far, text
        return far | off, text if far.any() else _NO_PLACE

    def metres(self, chords: np.ndarray) -> np.ndarray:
        """Return distances, any shape, as they are: points are in metres."""
        return chords

    def chord(self, metres: float) -> float:
        """Return a distance as it is: points are in metres."""
        return float(metres)  # loops would be compiled again for integers

    def extent(self, points: np.ndarray) -> tuple[float, float]:
        """Return width and height in metres of the bounding box of points, shape (n, 2)."""
        return float(np.ptp(points[:, 0])), float(np.ptp(points[:, 1]))

    def bounds(self, points: np.ndarray) -> tuple[float, float, float, float]:
        """Return the least x and y and the greatest x and y in the unit of the CRS of metres, shape (n, 2)."""
        least, most = points.min(axis=0) / self.unit, points.max(axis=0) / self.unit
        return float(least[0]), float(least[1]), float(most[0]), float(most[1])

    def local_plane(self, points: np.ndarray) -> LocalPlane:
        """Return the plane of the CRS itself, with the points, shape (n, 2), in it."""
        x, y = (np.ascontiguousarray(points[:, axis]) for axis in (0, 1))
        return LocalPlane(x, y, 0.0, None)

    def move(self, points: np.ndarray, bearings: np.ndarray, metres: np.ndarray) -> np.ndarray:
        """Return points, shape (n, 2), moved in bearings (radians from the y axis), shape (n,)."""
        return points + metres[:, None] * np.column_stack((np.sin(bearings), np.cos(bearings)))

    def sinusoidal(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y in metres, shape (n,); see `Sphere.sinusoidal`."""
        return points[:, 0], points[:, 1]

    def cells(self, points: np.ndarray, side: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the column and the row, int64 of shape (n,), of the square of `side` metres that each point is in."""
        columns, rows = np.floor(points.T / side).astype(np.int64, order="C")
        return columns, rows

    def snap(self, points: np.ndarray, side: float) -> np.ndarray:
        """Return the nearest nodes, shape (n, 2), of a grid of `side` metres."""
        return np.rint(points / side) * side


def _azimuthal(points: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """X and y in metres around the centre, and the largest angle from it."""
    x, y = np.empty(len(points)), np.empty(len(points))
    angles = [0.0]
    threads.run(
        lambda first, last: angles.append(projections.to_plane(points, axes, EARTH_RADIUS, first, last, x, y)),
        threads.even(len(points)),
    )
    return x, y, max(angles)


def axes_at_centre(points: np.ndarray) -> np.ndarray:
    """East, north and up at the normalised mean of unit vectors; arbitrary if they cancel each other out."""
    mean = points.mean(axis=0) if len(points) else np.zeros(3)
    length = math.sqrt(mean @ mean)
    up = mean / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
    parallel = math.hypot(up[0], up[1])
    east = np.array([-up[1], up[0], 0.0]) / parallel if parallel > 1e-12 else np.array([0.0, 1.0, 0.0])
    return np.array([east, np.cross(up, east), up])


def _cells_around(latitudes: np.ndarray, side: float) -> np.ndarray:
    """How many cells of about `side` metres divide the parallels at latitudes in radians: whole numbers, at least 1."""
    return np.maximum(np.rint(2 * math.pi * EARTH_RADIUS / side * np.cos(latitudes)), 1)


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
    crs = crs if isinstance(crs, CRS) else read_crs(crs)
    if isinstance(space, (Sphere, Plane)):
        if space.crs != crs:
            raise ValueError(
                "The 'space' parameter of Traces has another CRS than the data. Pass gdf.to_crs(space.crs)."
            )
        return space
    if space is not None:
        space = check_choice(space, name="space", owner="Traces", options=("sphere", "plane"))
    inner = inner_crs(crs)
    if inner.is_geographic:
        if space == "plane":
            raise ValueError(
                "The 'space' parameter of Traces cannot be 'plane' for a geographic CRS, whose units are degrees. "
                "Project the data first, for example with gdf.to_crs(gdf.estimate_utm_crs())."
            )
        return Sphere(crs)
    if inner.is_engineering:
        if space == "sphere":
            raise ValueError("The 'space' parameter of Traces cannot be 'sphere' for a local grid without a globe.")
        return Plane(crs)
    if not inner.is_projected:
        raise ValueError(
            f"The CRS is of the kind '{crs.type_name}', which has no longitude and latitude and no plane. {USE_DEGREES}"
        )
    if space is None:
        near = ~_are_far(x, y, crs)  # errors do not decide
        space = "plane" if not is_world_mercator(crs) and _is_true_to_scale(crs, x[near], y[near]) else "sphere"
    if space == "plane":
        return Plane(crs)
    sphere = Sphere(crs)
    try:
        Transformer.from_crs(crs, inner_crs(crs).geodetic_crs, always_xy=True)
    except ProjError as error:
        raise ValueError(
            "The CRS cannot be converted to longitude and latitude, which distances on the globe need. "
            "Pass the data in EPSG:4326, or space='plane' if the CRS is true to scale."
        ) from error
    return sphere


def _are_far(x: np.ndarray, y: np.ndarray, crs: CRS) -> np.ndarray:
    """Which coordinates are farther than any place, or infinite; missing ones are not among them."""
    return np.maximum(np.abs(x), np.abs(y)) > FARTHEST / metres_per_unit(crs)


def _are_off_globe(x: np.ndarray, y: np.ndarray, crs: CRS) -> np.ndarray:
    """Which coordinates of a projected CRS have no longitude; all are tested only if the bounding box has such."""
    with suppress(ProjError):  # no way back
        back = Transformer.from_crs(crs, inner_crs(crs).geodetic_crs, always_xy=True)
        if len(x) and not np.isfinite(back.transform(*_grid(x, y))[0]).all():
            return np.isfinite(x) & ~np.isfinite(back.transform(x, y)[0])
    return np.zeros(len(x), bool)


def _grid(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """5 × 5 places over the bounding box of coordinates, without missing ones."""
    columns, rows = np.meshgrid(*(np.linspace(np.fmin.reduce(axis), np.fmax.reduce(axis), 5) for axis in (x, y)))
    return columns, rows


def _raise_if_unreachable(lost: np.ndarray) -> None:
    """Raise if the CRS has no place for what was computed."""
    if lost.any():
        number = f"{lost.sum():,} of {counted(len(lost), 'location')}"
        raise ValueError(f"The data's projection does not reach {number} of the result. {USE_DEGREES}")


def _is_true_to_scale(crs: CRS, x: np.ndarray, y: np.ndarray) -> bool:
    """Whether both scale factors are within 1 % of true on a 5 × 5 grid over the bounding box."""
    if len(x) == 0:
        return True
    try:
        longitudes, latitudes = Sphere(crs).to_base(*_grid(x, y))
        factors = Proj(inner_crs(crs)).get_factors(longitudes, latitudes)
    except ProjError:
        return False
    scales = np.stack((factors.meridional_scale, factors.parallel_scale))
    return bool(np.all(np.abs(scales - 1.0) <= LARGEST_SCALE_ERROR))
