"""Choose the records that a map draws of large data: representative ones, all outliers, and the ends of all traces."""

import itertools

import numpy as np
import pandas as pd

from promesse_geo.traces.traces import Traces

MOST_ENDS = 50_000
"""Largest number of traces whose first and last records are always drawn."""

_SAMPLE = 10_000  # points from which the extent of most points is estimated
_CELLS, _MOST_CELLS = 256, 2**20  # along an axis: over most points, and over all points
_NONE = np.empty(0, np.int64)


def numbers_of(positions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the number of the trace that each position lies in, shape (n,), for offsets of shape (traces + 1,)."""
    return np.searchsorted(offsets, positions, side="right") - 1


def thinned(count: int, most: int) -> np.ndarray:
    """Return up to `most` positions out of `count`, evenly spaced, with the first and the last; shape (n,)."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(np.int64)


def representative(points: np.ndarray, most: int, *, kept: np.ndarray = _NONE) -> np.ndarray:
    """Choose points that show where all points are: `kept` ones, evenly spaced ones, and one near each isolated point.

    Three quarters are kept or evenly spaced. The points are then sorted into cells, and of each cell without a chosen
    point the first one is chosen. Cells are as small as the number of points allows, but not smaller than 1/256 of the
    extent of the central 99 % of the points. So an outlier is never left out, unless it is in a cell with a chosen
    point.

    Parameters
    ----------
    points : numpy.ndarray of float64, shape (n, dimension)
        Kernel coordinates.
    most : int
        Greatest number of points to choose, at least 2. If more than half of it are kept, half of it besides them.
    kept : numpy.ndarray of int64, shape (m,)
        Positions that are always chosen, ascending.

    Returns
    -------
    numpy.ndarray of int64, shape (min(n, max(most, m + most // 2)),)
        Positions, ascending.
    """
    count, most_isolated = len(points), most // 4
    most = max(most, len(kept) + most // 2)
    if count <= most:
        return np.arange(count)
    even = np.union1d(kept, thinned(count, most - most_isolated - len(kept)))
    cells = _cells(points)
    chosen = np.concatenate((even, np.flatnonzero(~pd.Series(_keys(cells)).duplicated())))
    cells = cells[chosen]
    while (isolated := _first_of_each(cells, after=len(even))).sum() > most_isolated:
        cells >>= 1  # cells of double size
    chosen = chosen[isolated | (np.arange(len(chosen)) < len(even))]
    others = np.ones(count, bool)
    others[chosen] = False
    others = np.flatnonzero(others)
    return np.sort(np.concatenate((chosen, others[thinned(len(others), most - len(chosen))])))


def landmarks(traces: Traces, most: int) -> np.ndarray:
    """Return the first and the last record of each trace, and its outermost ones if all fit into half of `most`.

    The outermost records have the least or the greatest coordinate along an axis. Without the ends of more than
    `MOST_ENDS` traces, which no browser draws.

    Parameters
    ----------
    traces : Traces
        Any data.
    most : int
        Greatest number of points that a layer draws.

    Returns
    -------
    numpy.ndarray of int64, shape (n,)
        Positions of records, ascending.
    """
    if not 0 < len(traces) <= MOST_ENDS:
        return _NONE
    starts = traces.offsets[:-1]
    found = [starts, traces.offsets[1:] - 1]
    if len(traces) * 2 * (1 + traces.points.shape[1]) <= most // 2:
        for axis, extreme in itertools.product(traces.points.T, (np.minimum, np.maximum)):
            positions = np.flatnonzero(axis == np.repeat(extreme.reduceat(axis, starts), traces.counts))
            found.append(positions[np.unique(numbers_of(positions, traces.offsets), return_index=True)[1]])
    return np.unique(np.concatenate(found))


def _cells(points: np.ndarray) -> np.ndarray:
    """Return the smallest cell of each point along each axis: int32 below 2**20, of the shape of the points."""
    lower, upper = points.min(axis=0), points.max(axis=0)
    core = np.quantile(points[thinned(len(points), _SAMPLE)], (0.005, 0.995), axis=0)
    sides = [np.ptp(core, axis=0).max() / _CELLS, (upper - lower).max() / (_MOST_CELLS - 1)]
    return ((points - lower) / (max(sides) or 1.0)).astype(np.int32)


def _keys(cells: np.ndarray) -> np.ndarray:
    """Return one number for each cell: int64 of shape (n,) for cells of shape (n, dimension)."""
    keys = np.zeros(len(cells), np.int64)
    for axis in cells.T:
        keys = keys * _MOST_CELLS + axis
    return keys


def _first_of_each(cells: np.ndarray, *, after: int) -> np.ndarray:
    """Mark the first of equal cells, shape (n,), but none of the first `after`."""
    first = ~pd.Series(_keys(cells)).duplicated().to_numpy()
    first[:after] = False
    return first
