"""Seeds that people think of first, and whether one of them gives the noise of protected data."""

from itertools import pairwise

import numpy as np

from promesse_geo.audit.comparison import FEWEST_MOVED, Comparison
from promesse_geo.mechanisms import GeoIndistinguishability, Mechanism

GUESSES = (*range(2101), 12_345, 123_456)
"""Seeds that people think of first, years included."""

_LEVELS = (np.log(10) / 100, np.log(6) / 200, np.log(4) / 200, np.log(2) / 200)  # of the paper
_ROUND = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_ABOUT = 0.15  # relative error of an epsilon that was estimated
_TRACES, _RECORDS = 3, 16  # whose noise is computed with each seed
_FEWEST = 4  # records of a trace that no seed gives by chance
_SECOND = 10**9


def has_guessable_noise(comparison: Comparison, mechanism: Mechanism | None, *, named: bool) -> bool:
    """Return whether an obvious seed of geo-indistinguishability gives the published locations of some trace.

    Seeds are tried on the first records of the longest traces, with the epsilon and the grid of the mechanism where it
    is named, else with the levels of the paper and round numbers, those near the estimate where there is one.
    """
    trials = _mechanisms(comparison, mechanism, named=named)
    partners = _partners(comparison) if trials else []
    if not partners:
        return False
    original = comparison.original
    within = np.arange(original.records) - np.repeat(original.offsets[:-1], original.counts)
    tried = np.zeros(len(original), bool)
    tried[[number for number, _ in partners]] = True
    few = original.select((within < _RECORDS) & np.repeat(tried, original.counts))
    bounds = list(pairwise(few.offsets.tolist()))
    candidates = [
        _moved_records(comparison, found, few.points[first:last])
        for (_, found), (first, last) in zip(partners, bounds, strict=True)
    ]
    if not any(len(points) for points, _ in candidates):
        return False
    for trial in trials:
        noisy = trial.points_with_seeds(few, GUESSES)
        for (points, reach), (first, last) in zip(candidates, bounds, strict=True):
            for trace in points:
                if (np.linalg.norm(trace - noisy[:, first:last], axis=2).max(axis=1) <= reach).any():
                    return True
    return False


def _mechanisms(comparison: Comparison, mechanism: Mechanism | None, *, named: bool) -> list[GeoIndistinguishability]:
    """Mechanisms to try: the named one, else levels near the estimate, else those of the paper if there is none."""
    if isinstance(mechanism, GeoIndistinguishability):
        near = [level for level in (*_LEVELS, *_ROUND) if abs(level - mechanism.epsilon) <= _ABOUT * level]
        return [mechanism] if named else [GeoIndistinguishability(level) for level in near]
    if mechanism is not None or len(comparison.displacements) >= FEWEST_MOVED:  # the noise has another law
        return []
    return [GeoIndistinguishability(level) for level in _LEVELS]


def _partners(comparison: Comparison) -> list[tuple[int, np.ndarray]]:
    """Some of the longest original traces, each with the protected traces that have its number of records and start."""
    original, protected = comparison.original, comparison.moved
    firsts, chosen = protected.times[protected.offsets[:-1]], []
    for number in np.sort(np.argsort(-original.counts, kind="stable")[:_TRACES]).tolist():
        same_start = np.abs(firsts - original.times[original.offsets[number]]) < _SECOND
        found = np.flatnonzero(same_start & (protected.counts == original.counts[number]))
        if len(found) and original.counts[number] >= _FEWEST:
            chosen.append((number, found))
    return chosen


def _moved_records(comparison: Comparison, traces: np.ndarray, original: np.ndarray) -> tuple[np.ndarray, float]:
    """First records of those protected traces that moved by more than rounding, and how far rounding moves them.

    `original` are the first records of the original trace, shape (records, dimension); returns points of shape
    (traces, records, dimension) in units of the space. Traces that did not move hold no noise.
    """
    rows = comparison.protected.offsets[traces][:, None] + np.arange(len(original))
    levels, reaches = comparison.rounding
    reach = float(reaches[levels[rows]].max()) / comparison.original.space.scale
    points = comparison.moved.points[rows]
    return points[(np.linalg.norm(points - original, axis=2) > reach).any(axis=1)], reach
