"""Which mechanism made protected data, as named or as its records show, and data sets that were swapped."""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from promesse_geo.audit.comparison import FEWEST_MOVED, Comparison
from promesse_geo.audit.findings import FAILED, PASSED, REVIEW, Finding
from promesse_geo.mechanisms import (
    Chain,
    GeoIndistinguishability,
    Mechanism,
    PrivacyZones,
    Promesse,
    WaitForMe,
    mechanism_classes,
    mechanism_in_words,
)
from promesse_geo.mechanisms.base import keeps_positions, members_in, names_of
from promesse_geo.messages import counted
from promesse_geo.metrics.pairing import warn_if_exchanged
from promesse_geo.stays import find_pois
from promesse_geo.traces.traces import Traces

_TEST = "the mechanism is known"
_WINDOWS = 20_000  # of three consecutive records that show whether points are evenly spaced
_FEWEST_WINDOWS = 3
_MOST = 0.9  # of the windows or traces
_EVEN = 0.01  # relative differences of distances: another CRS or rounding changes some
_TICK = 2_000_000  # nanoseconds: some formats hold milliseconds
_SECOND = 10**9
_TOGETHER = 1_000.0  # metres within which traces of a group stay, if their diameter is not named
_RATIO = (1.42, 1.58)  # of the mean square to the squared mean: 1.5 for planar Laplace noise, 1.27 for normal noise
_STAY = (200.0, 15 * 60 * _SECOND)  # metres and nanoseconds
_FEWEST_STAYS = 5
_SOME = 200  # traces whose stays are compared
_LONGER = 3  # times as long as in the original that stays in protected data never are


def mechanism_of(protection: Mapping[str, Any] | None) -> Mechanism | None:
    """Return the mechanism that `Traces.protection` or the metadata of a file describes, without its seed.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is not defined here, or its parameters are invalid.
    """
    if protection is None or protection["mechanism"] is None:
        return None
    return mechanism_classes()[protection["mechanism"]](**protection["parameters"])


def noted_mechanism(traces: Traces) -> Mechanism | None:
    """Return the mechanism that is noted in Traces; None without any, or if it is not known here."""
    try:
        return mechanism_of(traces.protection)
    except (KeyError, TypeError, ValueError):
        return None


def contradiction(named: Mechanism, noted: dict[str, Any] | None) -> str:
    """Return a remark on a named mechanism that is not among those that protected data notes; else "".

    Parameters
    ----------
    named : Mechanism
        What the caller names.
    noted : dict or None
        The `protection` of the data.
    """
    members = members_in(noted)
    known = {json.dumps(_complete(each), sort_keys=True) for each in members}
    others = [each for each in members_in(named.description()) if json.dumps(each, sort_keys=True) not in known]
    if noted is None or not others:
        return ""
    names = " and ".join(str(each["mechanism"]) for each in others)
    if {each["mechanism"] for each in others} <= {each["mechanism"] for each in members}:
        names += " with other parameters"
    return (
        f"The protected data notes that it was protected by {names_of(noted)}, and mechanism= (--mechanism) names "
        f"{names}, which is used here. If it did not protect the data, name what did."
    )


def _complete(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the description of a mechanism with all parameters of this version, if it is known here."""
    try:
        mechanism = mechanism_of(description)
    except (KeyError, TypeError, ValueError):
        return description
    return description if mechanism is None else mechanism.description()


def main_mechanism(mechanism: Mechanism | None) -> Mechanism | None:
    """Return the member of a chain that is no privacy zones, if there is one such; else the mechanism itself."""
    if not isinstance(mechanism, Chain):
        return mechanism
    others = [member for member in mechanism.mechanisms if not isinstance(member, PrivacyZones)]
    return others[0] if len(others) == 1 else mechanism


def identify(comparison: Comparison, named: Mechanism | None) -> tuple[Mechanism | None, Finding]:
    """Return the mechanism that is named, noted or recognized, and the finding whether the data is what it makes.

    Promesse is recognized by its constant distances and intervals, geo-indistinguishability by the law of its noise,
    Wait for Me by groups of traces that stay together. A named mechanism whose output looks different fails, a noted
    one is to be reviewed.
    """
    given = noted_mechanism(comparison.protected) if named is None else named
    mechanism = main_mechanism(given)
    if given is None or mechanism is None:
        found = _recognize(comparison)
        if found is None:
            reason = (
                "none of promesse-geo is named or recognized, so what it hides is not known; if it is one, name it: "
                "mechanism= (promesse-geo writes it to GeoParquet and GeoPackage)"
            )
            return None, Finding(_TEST, REVIEW, reason)
        return found, Finding(_TEST, PASSED, f"recognized: {type(found).__name__}")
    difference = _difference(comparison, mechanism)
    if mechanism is given and isinstance(mechanism, GeoIndistinguishability):  # in a chain, zones remove records
        difference = difference or _difference_in_size(comparison)
    if difference:
        reason = f"{type(mechanism).__name__} is named, but {difference}: the data was changed, or another made it"
        return None, Finding(_TEST, REVIEW if named is None else FAILED, reason)
    return mechanism, Finding(_TEST, PASSED, f"named: {mechanism_in_words(given.description())}")


def _recognize(comparison: Comparison) -> Mechanism | None:
    distance = even_distance(comparison.protected)
    if distance is not None:
        return Promesse(distance)
    if _are_grouped(comparison.protected, _TOGETHER) and not _are_grouped(comparison.original, _TOGETHER):
        return WaitForMe()
    moved = comparison.displacements
    if len(moved) < FEWEST_MOVED or not 0.2 <= moved.mean() <= 2 / 3e-6:  # levels from 3e-6 to 10 per metre
        return None
    is_laplace = _RATIO[0] <= (moved**2).mean() / moved.mean() ** 2 <= _RATIO[1]
    return GeoIndistinguishability(2 / moved.mean()) if is_laplace else None


def _difference(comparison: Comparison, mechanism: Mechanism) -> str:
    """What shows that a mechanism did not make the data, if anything."""
    protected = comparison.protected
    if isinstance(mechanism, Promesse):
        steps = _steps(protected)[0]
        even = np.abs(steps - mechanism.epsilon) <= _EVEN * mechanism.epsilon
        if len(steps) and even.mean() < _MOST:
            return f"points are not {mechanism.epsilon:g} m apart"
    if isinstance(mechanism, WaitForMe) and not _are_grouped(protected, 3 * mechanism.delta, k=mechanism.k):
        return f"traces are not in groups of {mechanism.k:,} that stay together"
    moved = comparison.displacements
    if isinstance(mechanism, GeoIndistinguishability) and len(moved) >= FEWEST_MOVED:
        expected = 2 / mechanism.epsilon
        if not expected / 2 <= moved.mean() <= 2 * expected + (mechanism.grid or 0):
            return f"records moved by {moved.mean():,.1f} m on average, not by {expected:,.1f} m"
    return ""


def _difference_in_size(comparison: Comparison) -> str:
    """What shows that records were added or removed, if anything."""
    pairs = comparison.pairs
    other = pairs.protected.counts != pairs.original.counts[pairs.originals]
    if not comparison.by_user or not other.any():
        return ""
    traces = f"{other.sum():,} of {counted(len(other), 'trace')}"
    return f"{traces} {'has' if other.sum() == 1 else 'have'} another number of records than the original"


def even_distance(traces: Traces) -> float | None:
    """Return the constant distance in metres of points that lie at constant intervals of time; None of other data.

    Intervals of whole seconds are those of a recorder, not of Promesse. Only a sample is examined.
    """
    steps, waits = _steps(traces)
    if len(steps) < _FEWEST_WINDOWS:
        return None
    middle = float(np.median(steps))
    even = (np.abs(steps - middle) <= _EVEN * middle).all(axis=1) & (np.abs(np.diff(waits)[:, 0]) <= _TICK)
    whole = (waits[:, 0] + _TICK) % _SECOND <= 2 * _TICK
    if middle < 0.01 or middle > 1e6 or even.mean() < _MOST or whole.mean() > 0.5:
        return None
    centimetres = math.floor(middle * 100 + 1e-3) / 100
    return centimetres if middle - centimetres < 1e-5 else max(float(np.quantile(steps, 0.01)) - 0.01, 0.01)


def _steps(traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """Return metres and nanoseconds between some runs of three records of a trace, each of shape (runs, 2)."""
    last = max(traces.records - 2, 0)
    starts = np.unique(np.linspace(0, last - 1, min(last, _WINDOWS)).astype(np.int64))
    whose = np.searchsorted(traces.segments, np.stack((starts, starts + 2)), side="right")
    starts = starts[whose[0] == whose[1]]
    rows = starts[:, None] + np.arange(3)
    chords = np.linalg.norm(np.diff(traces.points[rows], axis=1), axis=2)
    return traces.space.metres(chords), np.diff(traces.times[rows], axis=1)


def _are_grouped(traces: Traces, diameter: float, *, k: int = 2) -> bool:
    """Whether traces come in groups of k or more that have the same times and stay within `diameter` metres."""
    if len(traces) < k:
        return False
    begins, counts = traces.offsets[:-1], traces.counts
    middles = begins + counts // 2
    keys = np.column_stack([counts, *(traces.times[rows] for rows in (begins, middles, begins + counts - 1))])
    _, firsts, groups, sizes = np.unique(keys, axis=0, return_index=True, return_inverse=True, return_counts=True)
    if (sizes[groups.ravel()] >= k).mean() < _MOST:
        return False
    leaders = begins[firsts[groups.ravel()]]
    apart = [
        traces.space.metres(np.linalg.norm(traces.points[begins + rows] - traces.points[leaders + rows], axis=1))
        for rows in (counts * share // 8 for share in range(8))
    ]
    return bool((np.max(apart, axis=0) <= diameter).mean() >= _MOST)


def raise_if_swapped(original: Traces, protected: Traces, mechanism: Mechanism | None) -> None:
    """Raise ValueError if the original looks protected and the protected data does not, or warn by what they note.

    Parameters
    ----------
    original, protected : Traces
        The data sets as given.
    mechanism : Mechanism or None
        What is known to have made the protected data, which is not questioned then. If the data notes a mechanism, it
        is compared with what the original notes alone.

    Warns
    -----
    UserWarning
        If both note mechanisms, and those of the protected data do not begin with those of the original.

    Raises
    ------
    ValueError
        If the original notes a mechanism, or has constant distances or groups, or hardly any of the stays of the
        protected data, and the protected data has no mechanism, constant distances or groups.
    """
    if mechanism is not None or not original.records or not protected.records:
        return
    if protected.protection is not None:
        warn_if_exchanged(original, protected)
        return
    if even_distance(protected) is not None or _are_grouped(protected, _TOGETHER):
        return
    sign = ""
    if not keeps_positions(original.protection):
        sign = f"the original was protected by {names_of(original.protection)}"
    elif even_distance(original) is not None:
        sign = "the original has points at constant distances and intervals, as Promesse makes them"
    elif _are_grouped(original, _TOGETHER):
        sign = "the original has groups of traces, as Wait for Me makes them"
    elif _has_more_stays(protected, original):
        sign = "the protected data has many times the stays of the original"
    if sign:
        raise ValueError(
            f"The original and the protected data look exchanged: {sign}, and nothing shows that the protected data "
            "was protected. Are the two swapped? Pass the original first, then the protected data. If they are right, "
            "name what protected the data: mechanism= (promesse-geo writes it to GeoParquet and GeoPackage)."
        )


def _has_more_stays(protected: Traces, original: Traces) -> bool:
    """Whether stays in some protected traces last many times as long as in original ones."""
    (ours, many), (theirs, _) = (_time_in_stays(traces) for traces in (protected, original))
    return many >= _FEWEST_STAYS and ours > _LONGER * theirs


def _time_in_stays(traces: Traces) -> tuple[float, int]:
    """Return the mean time in stays of some traces, in nanoseconds, and their number of stays."""
    chosen = np.zeros(len(traces), bool)
    chosen[np.linspace(0, len(traces) - 1, min(_SOME, len(traces))).astype(int)] = True
    some = traces if chosen.all() else traces.select(np.repeat(chosen, traces.counts))
    stays = find_pois(some, diameter=_STAY[0], duration=_STAY[1])
    return float((some.times[stays.ends - 1] - some.times[stays.starts]).sum()) / len(some), len(stays)
