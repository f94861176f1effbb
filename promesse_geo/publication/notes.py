"""Notes on the mechanism of a publication: what is recommended and missing."""

from collections.abc import Mapping
from typing import Any

from promesse_geo.audit import REVIEW, Finding
from promesse_geo.mechanisms import Chain, Mechanism, PrivacyZones, Promesse
from promesse_geo.mechanisms.base import keeps_positions, names_of

_POINT = "The ends of traces point at homes and other places."
_FIGURES = (
    "An attacker who knows which traces are of one user, and steps back from their ends, located 88 % of the homes of "
    "ten synthetic cities of people with phones within 100 m with Promesse at ε = 200 m."
)
_ENDS = (
    "For traces of people use pg.recommended('people') (--recommended people), for vehicles that many "
    "people drive pg.recommended('fleet') (--recommended fleet)."
)
_FRESH = (
    "Privacy zones were displaced by a new key. If you publish the same people again, several displacements average "
    "out. Keep one secret in a file, with recommended('people', seed=secret) or PrivacyZones(seed=secret) "
    "(--secret-file FILE), and use it each time."
)


def already_protected(protection: Mapping[str, Any] | None) -> str:
    """Return a remark on data to publish that a mechanism which moves positions has protected before; else ""."""
    if keeps_positions(protection):
        return ""
    return (
        f"The data to publish is already protected ({names_of(protection)}), so all tests and measures compare with "
        "protected data instead of what was recorded, and what is protected twice in the same way may stay as it is. "
        "Publish the raw data. To publish the protected data itself, apply check_published() (promesse-geo check) and "
        "pseudonymize() (promesse-geo pseudonymize)."
    )


def findings_on_input(protection: Mapping[str, Any] | None) -> list[Finding]:
    """Return the finding on data to publish that are already protected, if they note it."""
    words = already_protected(protection)
    return [Finding("the raw data are not protected", REVIEW, words[0].lower() + words[1:-1])] if words else []


def notes_on(mechanism: Mechanism) -> list[str]:
    """Return notes on a mechanism: recommended parts that are missing, and zones displaced by a new key."""
    members = mechanism.mechanisms if isinstance(mechanism, Chain) else (mechanism,)
    zones = [member for member in members if isinstance(member, PrivacyZones)]
    cuts = any(isinstance(member, Promesse) and member.ends for member in members)
    is_promesse = any(isinstance(member, Promesse) for member in members)
    notes = [] if cuts else [" ".join([_POINT, *([_FIGURES] if is_promesse else []), _ENDS])]
    if any(member.is_random for member in zones):
        notes.append(_FRESH)
    return notes
