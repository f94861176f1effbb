"""Notes on the mechanism of a publication: what is recommended and missing."""

from promesse_geo.mechanisms import Chain, Mechanism, PrivacyZones, Promesse

_ENDS = (
    "The ends of traces point at homes and other places. An attacker who knows which traces are of one user, and steps "
    "back from their ends, located 88 % of the homes of ten synthetic cities of people with phones within 100 m at "
    "ε = 200 m. For traces of people use pg.recommended('people') (--recommended people), for vehicles that many "
    "people drive pg.recommended('fleet') (--recommended fleet)."
)
_FRESH = (
    "Privacy zones were displaced by a new key. If you publish the same people again, several displacements average "
    "out. Keep one secret in a file, with recommended('people', seed=secret) or PrivacyZones(seed=secret) "
    "(--secret-file FILE), and use it each time."
)


def notes_on(mechanism: Mechanism) -> list[str]:
    """Return notes on a mechanism: recommended parts that are missing, and zones displaced by a new key."""
    members = mechanism.mechanisms if isinstance(mechanism, Chain) else (mechanism,)
    zones = [member for member in members if isinstance(member, PrivacyZones)]
    cuts = any(isinstance(member, Promesse) and member.ends for member in members)
    notes = [] if cuts else [_ENDS]
    if any(member.is_random for member in zones):
        notes.append(_FRESH)
    return notes
