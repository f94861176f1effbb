"""One plane for a whole data set, for what needs plane metres."""

import math
from dataclasses import dataclass, field

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import azimuthal
from promesse_geo.messages import warn
from promesse_geo.traces.space import LARGEST_SCALE_ERROR
from promesse_geo.traces.traces import Traces


@dataclass(frozen=True, eq=False)
class Flat:
    """The records of a data set in plane metres, and the way back.

    A plane of the CRS is used as it is. On the sphere it is the azimuthal equidistant plane around the normalised
    mean unit vector of all records: distances from there are true, and across, at angle θ, it stretches by θ/sin θ.

    Parameters
    ----------
    traces : Traces
        The data set.

    Attributes
    ----------
    x, y : numpy.ndarray of float64, shape (records,)
        Metres.
    scale_error : float
        By how much the scale errs at the farthest record, as a share of the true length.
    """

    traces: Traces
    x: np.ndarray = field(init=False)
    y: np.ndarray = field(init=False)
    scale_error: float = field(init=False)
    _axes: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Go to the plane."""
        points, space = self.traces.points, self.traces.space
        axes, farthest = np.eye(3), 0.0
        if space.curvature:
            axes = _axes_at_the_middle(points)
            x, y = np.empty(len(points)), np.empty(len(points))
            angles = [0.0]
            threads.run(
                lambda first, last: angles.append(azimuthal.to_plane(points, axes, space.scale, first, last, x, y)),
                threads.even(len(points)),
            )
            farthest = max(angles)
        else:
            x, y = (np.ascontiguousarray(points[:, axis]) for axis in (0, 1))
        stretch = farthest / math.sin(farthest) if 0 < farthest < math.pi else 1.0 if farthest == 0 else math.inf
        for name, value in (("x", x), ("y", y), ("scale_error", stretch - 1), ("_axes", axes)):
            object.__setattr__(self, name, value)

    def points(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the kernel coordinates of places in the plane."""
        space = self.traces.space
        if not space.curvature:
            return np.column_stack((x, y))
        points = np.empty((len(x), 3))
        azimuthal.to_sphere(x, y, self._axes, space.scale, points)
        return points

    def tell(self) -> None:
        """Warn where lengths in the plane err by more than 1 %."""
        if self.scale_error > LARGEST_SCALE_ERROR:
            error = f"{100 * self.scale_error:,.1f} %" if self.scale_error < 10 else "more than 1,000 %"
            warn(
                f"Lengths in the plane that serves the whole data set err by up to {error} at its farthest record. "
                "Remove impossible jumps with drop_jumps(), or protect each region by itself."
            )


def _axes_at_the_middle(points: np.ndarray) -> np.ndarray:
    """East, north and up at the normalised mean of unit vectors; anywhere where they cancel each other out."""
    middle = points.mean(axis=0) if len(points) else np.zeros(3)
    length = math.sqrt(middle @ middle)
    up = middle / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
    flat = math.hypot(up[0], up[1])
    east = np.array([-up[1], up[0], 0.0]) / flat if flat > 1e-12 else np.array([0.0, 1.0, 0.0])
    return np.array([east, np.cross(up, east), up])
