"""What we recommend to publish traces of people and of fleets with."""

from typing import Any, Literal, get_args

from promesse_geo.mechanisms.base import Mechanism
from promesse_geo.mechanisms.chain import Chain
from promesse_geo.mechanisms.privacy_zones import PrivacyZones
from promesse_geo.mechanisms.promesse import Promesse
from promesse_geo.validation import check_choice

Kind = Literal["people", "fleet"]
"""A kind of data with a recommendation."""
KINDS = get_args(Kind)


def recommended(kind: Kind, *, seed: str | None = None, places: int = 1, zones: Any = None) -> Mechanism:
    """Return the mechanism that we recommend to publish raw traces of people, or of a fleet, with.

    For people: privacy zones of 700 m around the place where most traces of a user begin or end (around two with
    `places=2`), displaced by up to 600 m, then Promesse at 200 m with up to 400 m more cut from each end. For a fleet,
    whose vehicles begin and end in many places: Promesse at 200 m with up to 1,000 m more cut.

    Parameters
    ----------
    kind : {"people", "fleet"}
        Whose traces they are.
    seed : str, optional
        For people: the secret from which zones are displaced, see `PrivacyZones`. Draw it once, keep it, and use it for
        each publication of the same people.
    places : int
        For people: how many places of each user get a zone, see `PrivacyZones`.
    zones : geopandas.GeoDataFrame, optional
        For people: known homes (points or polygons), which get the zones instead of places that are found, see
        `PrivacyZones`. With a column `user`, users that it does not name get no zone.

    Returns
    -------
    Mechanism
        For `publish`, which applies zones to the raw data.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid.

    Notes
    -----
    They were chosen from a table over epsilon, ends and zones (`data/results/ends`). On ten synthetic cities of 50
    users and 14 days with phones (`make_city(recorder="phone")`), the best of eight strategies of `EndRetrieval`
    locates 13 % of the homes within 100 m, as the mean over two secrets (10 and 15 %; 18 % in the worst run; 88 % with
    `Promesse(200)`, 100 % in raw data), and 77 % of the records of `Promesse(200)` are kept. Of people whose devices
    are switched on for trips (`recorder="trips"`) it locates 16 % of the homes, since for some of them the zone is
    around work, and 6 % of the places where most traces begin or end; 74 % of the records of `Promesse(200)` are kept.
    None of 17 other zones and ends near these locates at most 15 % of homes and keeps 75 % of these records with both
    recorders.
    On Cabspotting, it locates the end place of 5 % of the taxis with what we recommend for fleets (36 % with
    `Promesse(200)`, 100 % in raw data), and nearly all records are kept. Other strategies may find more, and places
    where fewer traces begin or end were not measured. Neither hides footprints: an attacker who protects what he knows
    names 18 and 19 % of the taxis (`HeatMapReidentification`).

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.recommended("fleet")
    Promesse(epsilon=200.0, variant='polyline', min_points=1, ends=1000.0)
    """
    if check_choice(kind, name="kind", owner="recommended", options=KINDS) == "people":
        return Chain([PrivacyZones(700, 600, seed=seed, places=places, zones=zones), Promesse(200, ends=400)])
    for name, is_given in (("places", places != 1), ("zones", zones is not None)):
        if is_given:
            raise ValueError(f"The {name!r} parameter of recommended is for people: a fleet gets no zones. Omit it.")
    return Promesse(200, ends=1_000)
