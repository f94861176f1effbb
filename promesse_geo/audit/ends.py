"""The check of what the ends of traces give away: places that an attacker locates from them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from promesse_geo.audit.comparison import Comparison
from promesse_geo.audit.findings import LEFT_OUT, PASSED, REVIEW, Finding
from promesse_geo.mechanisms import PrivacyZones
from promesse_geo.mechanisms.base import includes
from promesse_geo.messages import collected_warnings
from promesse_geo.metrics import EndRetrieval
from promesse_geo.stays.spots import close_in_words
from promesse_geo.traces.owners import number_owners

_TEST = "places at the ends are hidden"
_ATTACK = EndRetrieval()
_MOST = 15.0  # % of users: the goal from which `recommended` was chosen
_REMEDY = (
    "zones and cut ends hide more: publish with recommended('people') (--recommended people), or apply zones() "
    "(promesse-geo zones) and smooth(200, ends=400) (promesse-geo smooth --epsilon 200 --ends 400)"
)
_REMEDY_OF_ZONES = (
    "larger zones and longer cut ends hide more: radius=, offset= and ends= (--zone-radius, --zone-offset and --ends, "
    "instead of --recommended), or known homes as zones (--zones)"
)
_UNKNOWN = (
    f"no user begins or ends {_ATTACK.least} traces at one place, so nothing tells whether homes are hidden: protect "
    "with known homes as zones (--zones)"
)
_SECOND = (
    "zones around both hide more: pass places=2 (--places 2) or known homes as zones (--zones) to zones() "
    "(promesse-geo zones)"
)


def check_ends(comparison: Comparison) -> list[Finding]:
    """Check that the place where most traces of a user begin or end is not located from those that are published.

    Users with another place of at least half as many ends, which may be the home, are counted, and judged by both.
    There is no finding if it is not known which traces are of one user, as after renaming, or times are not compared.
    """
    if not (comparison.by_user and comparison.has_times):
        return []
    original, protected = comparison.original, comparison.moved
    owners, numbers = number_owners(original)
    parts = np.bincount(numbers[original.segment_owners], minlength=len(owners))
    if 2 * parts.max() < _ATTACK.least:  # as of parts under new names
        return []
    with collected_warnings():
        detail = _ATTACK.compare_second(_ATTACK.pair(original, protected))
    value, guess, users = _ATTACK.value(detail), _ATTACK.guess(detail), len(detail)
    seconds = int(detail["second"].sum())
    if not seconds:
        return judge_ends(value, guess, users=users, protection=protected.protection)
    either = 100 * float((detail["either"] <= _ATTACK.threshold).mean())
    return _judge_both(value, guess, either, seconds, users, _remedy_of(protected.protection))


def judge_ends(value: float, guess: float, *, users: int, protection: Mapping[str, Any] | None) -> list[Finding]:
    """Return the finding on the value of `EndRetrieval`, in %, and that of guessing; left out if nobody has a place.

    It is to be reviewed above the goal, beyond what chance gives among so many users in one case of twenty. The remedy
    depends on the description of the mechanism, None if it is not known.
    """
    if math.isnan(value):
        return [Finding(_TEST, LEFT_OUT, _UNKNOWN)]
    reason = _in_words(value, guess)
    if _is_much(value, guess, users):
        return [Finding(_TEST, REVIEW, f"{reason}; {_remedy_of(protection)}")]
    return [Finding(_TEST, PASSED, f"{reason}; stronger attacks may find more")]


def _judge_both(value: float, guess: float, either: float, seconds: int, users: int, remedy: str) -> list[Finding]:
    """Return the finding where users have a second place, which is to be reviewed if it is located, too."""
    reason = (
        f"{_in_words(value, guess)}; {close_in_words(seconds, users)}: counting both places, one is located for "
        f"{either:.1f} % of users"
    )
    is_much = _is_much(value, guess, users)
    if is_much or _is_much(either, guess, users) or either > value:
        return [Finding(_TEST, REVIEW, "; ".join([reason, *[remedy] * is_much, _SECOND]))]
    return [Finding(_TEST, PASSED, f"{reason}; stronger attacks may find more")]


def _remedy_of(protection: Mapping[str, Any] | None) -> str:
    return _REMEDY_OF_ZONES if includes(protection, PrivacyZones.__name__) else _REMEDY


def _in_words(value: float, guess: float) -> str:
    near = f"within {_ATTACK.threshold:g} m"
    return f"where most traces begin or end is located {near} for {value:.1f} % of users, {guess:.1f} % by guessing"


def _is_much(value: float, guess: float, users: int) -> bool:
    """Whether a value exceeds the goal, beyond what chance gives among so many users in one case of twenty."""
    chance = 1.64 * math.sqrt(_MOST * (100 - _MOST) / max(users, 1))
    return value > max(_MOST + chance, guess)
