"""Check of digits below a centimetre, which may reveal how a location was computed."""

import numpy as np

from promesse_geo.audit.comparison import FINE, Comparison
from promesse_geo.audit.findings import PASSED, REVIEW, Finding
from promesse_geo.messages import counted
from promesse_geo.traces.traces import Traces

_SAMPLE = 100_000  # records that show quickly that there is no grid
_SAME = 1e-6  # metres by which coordinates of one row of a grid differ at most after they were read from a file
_PAIRS = 20.0  # close pairs that chance would give: fewer are too few to recognize a grid


def check_digits(comparison: Comparison) -> Finding:
    """Check that points published at original times are no finer than a centimetre.

    The last digits of noise that was drawn as floating-point numbers narrow down the original location (Mironov, CCS
    2012), so each noisy record should lie on a grid. Points that were computed for new times, as Promesse's, belong to
    no single original record: their digits reveal no more than the path.
    """
    test, fine, protected = "no needless digits", np.flatnonzero(comparison.fine), comparison.protected
    if not len(fine):
        return Finding(test, PASSED, "no point is finer than a centimetre")
    some = fine[:: len(fine) // _SAMPLE + 1]
    if _is_grid(protected, some, least=0) and _is_grid(protected, fine, least=_PAIRS):
        return Finding(test, PASSED, "the points lie on a grid no finer than a centimetre")
    same_times = comparison.same_times[0]
    if 2 * np.count_nonzero(same_times) <= len(same_times):
        return Finding(test, PASSED, "points are finer than a centimetre, but not those of original times")
    reason = (
        f"{counted(len(fine), 'point')} of {protected.records:,} are finer than a centimetre and most have original "
        "times: the last digits may reveal how the noise was drawn; protect with grid= (--grid)"
    )
    return Finding(test, REVIEW, reason)


def _is_grid(traces: Traces, records: np.ndarray, *, least: float) -> bool:
    """Whether rows, and records of a row, lie a centimetre apart where chance would bring `least` pairs nearer."""
    x, y = traces.space.sinusoidal(traces.points[records])
    order = np.argsort(y)
    steps = np.diff(y[order])
    if np.any((steps > _SAME) & (steps < FINE - _SAME)):
        return False
    spread = max(np.ptp(np.quantile(axis, [0.1, 0.9])) for axis in (x, y))  # of most: outliers do not count
    if 0.64 * len(y) ** 2 * FINE < least * spread:
        return False
    rows = np.concatenate(([0], np.cumsum(steps > _SAME)))
    order = order[np.lexsort((x[order], rows))]
    steps = np.diff(x[order])
    return not np.any((np.diff(rows) == 0) & (steps > _SAME) & (steps < FINE - _SAME))
