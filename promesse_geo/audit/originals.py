"""Checks that published times, locations and records are not original ones."""

import math

import numpy as np

from promesse_geo.audit.comparison import CLOSE, Comparison
from promesse_geo.audit.findings import FAILED, PASSED, REVIEW, Finding
from promesse_geo.audit.matching import by_chance, sample
from promesse_geo.audit.recognition import even_distance
from promesse_geo.mechanisms import Mechanism, Promesse, WaitForMe
from promesse_geo.messages import counted, counted_of

TIMES, RECORDS = "no original timestamps", "no record equals an original one"
"""Tests that are left out where a mechanism keeps times or publishes records."""

_FEW = 5  # times close to original ones: one chance in a hundred, where half of all are and one in ten by chance
_LOCATIONS = "no original locations"
_AT_RECORDS = (
    "A path that is kept goes through its records, so a few points may lie on some by chance. If there are more, or "
    "the path is not kept, protect again with another parameter, such as a slightly larger epsilon"
)


def check_times(comparison: Comparison, mechanism: Mechanism | None) -> Finding:
    """Check that published times are not original ones; Promesse may keep the first and the last of each trace."""
    same, expected = comparison.same_times
    if isinstance(mechanism, Promesse):
        offsets = (comparison.pairs.protected if comparison.by_user else comparison.protected).offsets
        same = same.copy()
        same[offsets[:-1]] = same[offsets[1:] - 1] = False
    count = int(same.sum())
    whose = " of their user" if comparison.by_user else ""
    counts = _original(count, len(same), "published timestamp") + whose
    if _beyond_chance(count, expected):
        if comparison.by_user:
            distances = comparison.distances(comparison.time_matches[0][same], np.flatnonzero(same))
            counts += f", who was, in the median, {np.median(distances):,.2f} m from the published location"
        return Finding(TIMES, REVIEW, counts)
    close = int(np.count_nonzero(comparison.time_matches[1] >= 2)) if comparison.by_user else 0
    if 2 * close > len(same) and close > _FEW:
        return Finding(TIMES, REVIEW, _next_to_original(close, len(same), "published timestamp") + whose)
    if count:
        return Finding(TIMES, PASSED, f"{counts}, no more than by chance")
    return Finding(TIMES, PASSED, f"no published timestamp is an original one{whose}")


def _original(part: int, total: int, noun: str) -> str:
    """Return how many values are original ones."""
    return counted_of(part, total, noun, "is an original one", "are original ones")


def _next_to_original(part: int, total: int, noun: str) -> str:
    """Return how many values are next to original ones."""
    return counted_of(part, total, noun, "is next to an original one", "are next to original ones")


def _beyond_chance(same: int, expected: float) -> bool:
    """Whether far more are the same than expected by chance.

    Twice as many are no leak: where original points crowd, as during stays, what is near is not evenly spread.
    """
    return same > 2 * expected + 3 * math.sqrt(expected)


def check_locations(comparison: Comparison, mechanism: Mechanism | None) -> Finding:
    """Check that published locations are not original ones of their user, nor of anybody at any time."""
    tests = [_check_own_locations] if comparison.by_user else []
    tests += [_check_anywhere, *([_check_moved] if mechanism is None else [])]
    verdict, reason = PASSED, ""
    for check in tests:
        found, why = check(comparison)
        if not reason or (FAILED, REVIEW, PASSED).index(found) < (FAILED, REVIEW, PASSED).index(verdict):
            verdict, reason = found, why
        if verdict == FAILED:
            break
    if verdict == FAILED and isinstance(mechanism, WaitForMe):
        return Finding(_LOCATIONS, REVIEW, f"{reason}: Wait for Me publishes one trace of each group unchanged")
    return Finding(_LOCATIONS, verdict, reason)


def _check_own_locations(comparison: Comparison) -> tuple[str, str]:
    """Verdict and reason: whether locations are original ones of their user."""
    chosen, offsets = comparison.compared
    matches = comparison.location_matches
    same, near = (int((matches >= least).sum()) for least in (2, 1))
    total = len(matches)
    disclosed = _count_disclosed(offsets, matches == 2, same=same, near=near)
    if disclosed:
        return FAILED, f"{counted(disclosed, 'trace')} would be published as recorded, entirely or for the most part"
    tolerance = comparison.tolerance
    counts = f"{_original(same, total, 'published location')} of their user (within {tolerance})"
    expected = by_chance(same, near)
    if _beyond_chance(same, expected):
        return REVIEW, f"{counts}; {expected:,.1f} are expected by chance. {_AT_RECORDS}"
    if _is_all_near(near, total, comparison.fine[chosen]):
        return REVIEW, f"{_next_to_original(near, total, 'published location')} of their user"
    moved, median = _count_barely_moved(comparison)
    if moved:
        verdict = FAILED if 2 * moved > len(offsets) - 1 else REVIEW
        return verdict, f"{counted(moved, 'trace')} would be published record by record, moved by {median:,.2f} m"
    if same:
        return PASSED, f"{counts}, no more than by chance"
    return PASSED, "no published location is an original one of their user"


def _check_anywhere(comparison: Comparison) -> tuple[str, str]:
    """Verdict and reason: whether locations are original ones of anybody, at whatever time."""
    (chosen, offsets), matches = sample(comparison.protected.counts), comparison.anywhere
    same, near = (int((matches >= least).sum()) for least in (2, 1))
    disclosed = _count_disclosed(offsets, matches == 2, same=same, near=near)
    if disclosed:
        traces = f"{counted(disclosed, 'trace')} {'consists' if disclosed == 1 else 'consist'} of original locations"
        return FAILED, f"{traces} of anybody, entirely or for the most part, whatever the times and the user names"
    beside = near - same
    expected = float(beside) if 2 * beside > len(matches) else by_chance(same, near)  # unreliable if most are near
    tolerance = comparison.tolerance
    counts = f"{_original(same, len(matches), 'sampled location')} of anybody (within {tolerance})"
    if _beyond_chance(same, expected) and (same > _FEW or not comparison.by_user):
        return REVIEW, f"{counts}; {expected:,.1f} are expected by chance. {_AT_RECORDS}"
    if not comparison.by_user and _is_all_near(near, len(matches), comparison.fine[chosen]):
        return REVIEW, f"{_next_to_original(near, len(matches), 'sampled location')} of anybody"
    return PASSED, f"{counts}, no more than by chance" if same else "no sampled location is an original one"


def _check_moved(comparison: Comparison) -> tuple[str, str]:
    """Verdict and reason: whether traces are original ones that were moved by the same distance everywhere."""
    matches, offsets = comparison.moved_steps
    filled = np.append(offsets[:-1][np.diff(offsets) > 0], offsets[-1])
    same, near = (int((matches >= least).sum()) for least in (2, 1))
    disclosed = _count_disclosed(filled, matches == 2, same=same, near=near) if len(matches) else 0
    if disclosed:
        traces = f"{counted(disclosed, 'trace')} {'has' if disclosed == 1 else 'have'} the steps of original ones"
        return FAILED, f"{traces}: moved by about the same distance everywhere, which one known place reveals"
    return PASSED, "no trace is an original one that was moved"


def _is_all_near(near: int, total: int, fine: np.ndarray) -> bool:
    """Whether most locations are near original ones, though their digits are fine: coarse digits bring all near."""
    return 2 * near > total and 2 * int(np.count_nonzero(fine)) > total


def _count_barely_moved(comparison: Comparison) -> tuple[int, float]:
    """Count the traces with as many records as the original, most of them close to those; and return how close."""
    records, others, offsets = comparison.twins
    if not len(records):
        return 0, 0.0
    distances = comparison.distances(others, records)
    long = np.diff(offsets) > 2
    moved = _are_most(offsets, distances <= CLOSE) & long
    return int(moved.sum()), float(np.median(distances[np.repeat(moved, np.diff(offsets))])) if moved.any() else 0.0


def check_records(comparison: Comparison, mechanism: Mechanism | None) -> Finding:
    """Check that no original records are published under any name.

    Promesse leaves traces that hardly stop nearly as they were, for it hides stops only: they are counted.
    """
    protected, matches = comparison.protected, comparison.record_matches
    same, near = (int((matches >= least).sum()) for least in (2, 1))
    expected = by_chance(same, near)
    disclosed = _count_disclosed(protected.offsets, matches == 2, same=same, near=near)
    rest = "the location and time of an original one"
    counts = counted_of(same, protected.records, "published record", f"has {rest}", f"have {rest}")
    if disclosed:
        reason = f"{counts}; {counted(disclosed, 'trace')} for the most part, under whatever name"
        return Finding(RECORDS, FAILED, reason)
    if _beyond_chance(same, expected):
        chance = f"{expected:,.1f} are expected by chance. {_AT_RECORDS}"
        return Finding(RECORDS, REVIEW, f"{counts} (within {comparison.tolerance}); {chance}")
    records, offsets = sample(protected.counts)
    around = comparison.nearby_records(records)
    close, beside = (int((around >= least).sum()) for least in (2, 1))
    disclosed = _count_disclosed(offsets, around == 2, same=close, near=beside)
    if disclosed:
        reason = f"most records of {counted(disclosed, 'trace')} lie within {CLOSE:g} m of original ones"
        reason = f"{reason} of about the same time"
        if isinstance(mechanism, Promesse) and even_distance(protected) is not None:
            stop = "it hardly stops" if disclosed == 1 else "they hardly stop"
            return Finding(RECORDS, PASSED, f"{reason}: {stop}, and Promesse hides stops only")
        return Finding(RECORDS, REVIEW, reason)
    if same:
        return Finding(RECORDS, PASSED, f"{counts}, no more than by chance")
    return Finding(RECORDS, PASSED, "no published record has the location and time of an original one")


def _count_disclosed(offsets: np.ndarray, disclosed: np.ndarray, *, same: int, near: int) -> int:
    """Count the traces with more original records than others, beyond what chance can give in any trace.

    Of n records at least n/2 are original by chance with a probability of (4p)^(original records) at most.
    """
    records, beside = len(disclosed), near - same
    chance = beside if 2 * beside > records else by_chance(same, near)  # unreliable if most are near
    odds = np.minimum(4 * min(chance, same) / records, 1.0) ** _count(offsets, disclosed) * (len(offsets) - 1)
    return int((_are_most(offsets, disclosed) & (odds < 0.01)).sum())


def _are_most(offsets: np.ndarray, records: np.ndarray) -> np.ndarray:
    return 2 * _count(offsets, records) > np.diff(offsets)


def _count(offsets: np.ndarray, records: np.ndarray) -> np.ndarray:
    return np.add.reduceat(records, offsets[:-1], dtype=np.int64)
