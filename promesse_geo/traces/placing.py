"""Coordinates of another frame, such as zones, true places or queries, as points among traces."""

from typing import Any

import numpy as np
from pyproj import Transformer
from pyproj.exceptions import ProjError

from promesse_geo.traces.crs import read_crs
from promesse_geo.traces.space import Space


def place_points(x: np.ndarray, y: np.ndarray, *, crs: Any, space: Space) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates in any CRS as points of a space, and which of them have a place there.

    Parameters
    ----------
    x, y : numpy.ndarray of float64, shape (n,)
        Coordinates in the CRS.
    crs : pyproj.CRS or anything that pyproj accepts
        The CRS of the coordinates.
    space : Sphere or Plane
        Where the traces lie.

    Returns
    -------
    points : numpy.ndarray of float64, shape (n, 3) or (n, 2)
        Unit vectors on the sphere, or metres in the plane; undefined for what has no place.
    placed : numpy.ndarray of bool, shape (n,)
        Whether each location has a place in the CRS of the traces: none has if one CRS cannot be converted to the
        other, or if the coordinates are not finite or lie off the globe.
    """
    given = read_crs(crs)
    try:
        if given != space.crs:
            x, y = Transformer.from_crs(given, space.crs, always_xy=True).transform(x, y)
    except ProjError:
        return np.zeros((len(x), space.dimension)), np.zeros(len(x), bool)
    placed = np.isfinite(x) & np.isfinite(y)
    placed[placed] = ~space.misplaced(x[placed], y[placed])[0]
    return space.points(x, y), placed
