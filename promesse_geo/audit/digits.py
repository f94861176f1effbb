"""Digits below a centimetre, which tell how a location was computed."""

import numpy as np

from promesse_geo.audit.findings import LOOK, PASSED, Finding
from promesse_geo.messages import counted
from promesse_geo.traces.pairs import decimals, decimals_of
from promesse_geo.traces.traces import Traces

FINE = 0.01
"""Metres below which a digit of a coordinate is needless."""

_SAMPLE = 100_000  # records that show at once that there is no grid
_SAME = 1e-6  # metres by which coordinates of one row of a grid differ at most, having gone through a file
_PAIRS = 20.0  # close pairs that chance would give: fewer are too few to tell a grid


def digits(after: Traces) -> Finding:
    """Say whether points are finer than a centimetre: by their decimals, else by the gaps between them."""
    test = "no needless digits"
    fine = fine_points(after)
    if not len(fine):
        return Finding(test, PASSED, "no point is finer than a centimetre")
    sample = fine[:: len(fine) // _SAMPLE + 1]
    if _is_grid(after, sample, least=0) and _is_grid(after, fine, least=_PAIRS):
        return Finding(test, PASSED, "the points lie on a grid that is no finer than a centimetre")
    reason = (
        f"{counted(len(fine), 'point')} of {after.records:,} are finer than a centimetre, as computed ones are; "
        "for noise, grid= (--grid) makes them coarse; those of Promesse keep their digits, for rounding may bring them "
        "nearer than epsilon"
    )
    return Finding(test, LOOK, reason)


def fine_points(traces: Traces) -> np.ndarray:
    """Return the numbers of the records whose coordinates have decimals below a centimetre."""
    most = decimals_of(traces.space, FINE)
    return np.flatnonzero(decimals(traces, most, most) > most)


def _is_grid(traces: Traces, records: np.ndarray, *, least: float) -> bool:
    """Whether records stand in rows, and rows apart, by a centimetre, and chance would bring so many pairs nearer."""
    points = traces.points[records]
    x, y = traces.space.sinusoidal(points)
    order = np.argsort(y)
    steps = np.diff(y[order])
    if np.any((steps > _SAME) & (steps < FINE - _SAME)):
        return False
    spread = max(np.ptp(np.quantile(axis, [0.1, 0.9])) for axis in (x, y))  # of most: some may have gone astray
    if 0.64 * len(y) ** 2 * FINE < least * spread:
        return False
    rows = np.concatenate(([0], np.cumsum(steps > _SAME)))
    order = order[np.lexsort((x[order], rows))]
    steps = np.diff(x[order])
    return not np.any((np.diff(rows) == 0) & (steps > _SAME) & (steps < FINE - _SAME))
