"""Paths on a map, simplified to what a screen shows."""

from collections.abc import Callable

import numpy as np
import shapely

FINEST = 4096
"""Simplified paths err by this part of the view at least: less than a pixel until the map is enlarged."""

_PIECE = 512  # vertices that are simplified at once: the time for a piece can grow with the square of its length
_SAMPLE = 50_000  # vertices that show how coarse the paths of more of them must be
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


def drawable(
    places_of: Callable[[np.ndarray], np.ndarray], offsets: np.ndarray, *, size: float, most: int
) -> np.ndarray | None:
    """Return up to `most` vertices that show paths in a view, or None if so few cannot.

    Of many vertices a sample shows first how coarse the paths must be, and whether they can be drawn at all.

    Parameters
    ----------
    places_of : callable
        Returns coordinates on the map, shape (n, 2), of vertices at positions, shape (n,).
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
    if 2 * np.count_nonzero(counts > 1) > most:
        return None
    parts = FINEST if len(chosen) <= 2 * _SAMPLE else _fineness(places_of, chosen, numbers, size=size, most=most)
    places, kept = places_of(chosen if parts >= _COARSEST else chosen[:0]), np.arange(len(chosen))
    while len(kept) > most:
        if parts < _COARSEST:
            return None
        kept = kept[simplified(places[kept], numbers[chosen[kept]], size / parts)]
        parts //= 2
    return chosen[kept]


def _fineness(
    places_of: Callable[[np.ndarray], np.ndarray], chosen: np.ndarray, numbers: np.ndarray, *, size: float, most: int
) -> int:
    """Return by which part of the view paths may err to have about `most` vertices, from a sample of pieces of them.

    It is less than `_COARSEST` if they would have more in any case.
    """
    starts = np.linspace(0, len(chosen) - _PIECE, _SAMPLE // _PIECE).astype(np.int64)
    sample = chosen[(starts[:, None] + np.arange(_PIECE)).ravel()]
    begins = np.arange(len(sample)) % _PIECE == 0
    pieces = np.cumsum(begins | (np.diff(numbers[sample], prepend=-1) != 0)) - 1
    is_path = np.bincount(pieces)[pieces] > 1
    sample, pieces = sample[is_path], pieces[is_path]
    places, ends = places_of(sample), 2 * len(np.unique(pieces))
    parts = FINEST
    while parts >= _COARSEST:
        inner = len(simplified(places, pieces, size / parts)) - ends
        if inner * len(chosen) <= most * len(sample):
            break
        parts //= 2
    return parts
