"""Paths on a map, simplified to what a screen shows."""

import numpy as np
import shapely

FINEST = 4096
"""Simplified paths err by this part of the view at least: less than a pixel until the map is enlarged."""

_PIECE = 512  # vertices that are simplified at once: the time for a piece can grow with the square of its length
_COARSEST = 128  # by this part of the view at most, a few pixels


def simplified(places: np.ndarray, numbers: np.ndarray, tolerance: float) -> np.ndarray:
    """Return which vertices of paths remain without those that are nearer than a tolerance to the rest.

    Parameters
    ----------
    places : numpy.ndarray of float64, shape (n, 2)
        Coordinates on the map.
    numbers : numpy.ndarray of int, shape (n,)
        The number of each vertex's path, ascending; a path has at least two vertices.
    tolerance : float
        In units of the map.

    Returns
    -------
    numpy.ndarray of int64, shape (m,)
        Positions, ascending, with the first and the last vertex of each path.
    """
    if not len(numbers):
        return np.empty(0, np.int64)
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    counts = np.diff(starts, append=len(numbers))
    within = np.arange(len(numbers)) - np.repeat(starts, counts)
    begins = (within % _PIECE == 0) & ((within == 0) | (within < np.repeat(counts, counts) - 1))
    vertices = np.column_stack((places, np.arange(len(places))))
    lines = shapely.linestrings(vertices, indices=np.cumsum(begins) - 1)
    simple = shapely.simplify(lines, tolerance, preserve_topology=False)
    return shapely.get_coordinates(simple, include_z=True)[:, 2].astype(np.int64)


def drawable(places: np.ndarray, offsets: np.ndarray, *, size: float, most: int) -> np.ndarray | None:
    """Return up to `most` vertices that show paths in a view, or None if so few cannot.

    Parameters
    ----------
    places : numpy.ndarray of float64, shape (n, 2)
        Coordinates on the map.
    offsets : numpy.ndarray of int, shape (paths + 1,)
        Position of the first vertex of each path, and the number of vertices.
    size : float
        Of the view, in units of the map.
    most : int
        Greatest number of vertices.

    Returns
    -------
    numpy.ndarray of int64, shape (m,), or None
        Positions, ascending, with the first and the last vertex of each path of at least two.
    """
    counts = np.diff(offsets)
    numbers = np.repeat(np.arange(len(counts)), counts)
    chosen = np.flatnonzero(np.repeat(counts > 1, counts))
    parts = FINEST
    while len(chosen) > most:
        if parts < _COARSEST:
            return None
        chosen = chosen[simplified(places[chosen], numbers[chosen], size / parts)]
        parts //= 2
    return chosen
