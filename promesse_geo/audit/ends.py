"""The check of what the ends of traces give away: places that an attacker locates from them."""

import math

import numpy as np

from promesse_geo.audit.comparison import Comparison
from promesse_geo.audit.findings import PASSED, REVIEW, Finding
from promesse_geo.messages import collected_warnings
from promesse_geo.metrics import EndRetrieval
from promesse_geo.traces.owners import number_owners

_TEST = "places at the ends are hidden"
_ATTACK = EndRetrieval()
_MOST = 15.0  # % of users: the goal from which `recommended` was chosen
_REMEDY = (
    "zones and cut ends hide more: publish with recommended('people') (--recommended people), or apply zones() "
    "(promesse-geo zones) and smooth(200, ends=400) (promesse-geo smooth --epsilon 200 --ends 400)"
)


def check_ends(comparison: Comparison) -> list[Finding]:
    """Check that the place where most traces of a user begin or end is not located from those that are published.

    There is no finding if it is not known which traces are of one user, as after renaming.
    """
    if not comparison.by_user:
        return []
    original, protected = comparison.original, comparison.moved
    owners, numbers = number_owners(original)
    parts = np.bincount(numbers[original.segment_owners], minlength=len(owners))
    if 2 * parts.max() < _ATTACK.least:  # as of parts under new names
        return []
    with collected_warnings():
        detail = _ATTACK.compare(_ATTACK.pair(original, protected))
    return judge_ends(_ATTACK.value(detail), _ATTACK.guess(detail), users=len(detail))


def judge_ends(value: float, guess: float, *, users: int) -> list[Finding]:
    """Return the finding on the value of `EndRetrieval`, in %, and that of guessing; none if nobody has a place.

    It is to be reviewed above the goal, beyond what chance gives among so many users in one case of twenty.
    """
    if math.isnan(value):
        return []
    near = f"within {_ATTACK.threshold:g} m"
    reason = f"where most traces begin or end is located {near} for {value:.1f} % of users, {guess:.1f} % by guessing"
    chance = 1.64 * math.sqrt(_MOST * (100 - _MOST) / max(users, 1))
    if value > max(_MOST + chance, guess):
        return [Finding(_TEST, REVIEW, f"{reason}; {_REMEDY}")]
    return [Finding(_TEST, PASSED, f"{reason}; stronger attacks may find more")]
