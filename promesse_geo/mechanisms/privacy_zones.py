"""Privacy zones: remove what lies near places such as homes."""

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from promesse_geo.mechanisms.base import Mechanism
from promesse_geo.mechanisms.zones import PlacedZones, Zones, flatten, locate, owners_by_name
from promesse_geo.messages import Remark, counted, counted_of
from promesse_geo.preprocess.problems import GAP
from promesse_geo.stays.spots import LEAST, Spots, close_in_words, find_spots
from promesse_geo.traces.owners import name_owners
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces, freeze
from promesse_geo.validation import check_integer, check_number, check_seed, key_of, set_fields

_FINE = 2.0**-53
_OWNER = "PrivacyZones"
_GOLDEN = (5**0.5 - 1) / 2
_MOST_PARTS = 5_000  # of a user: the time grows with their square


@dataclass(frozen=True)
class PrivacyZones(Mechanism):
    """Remove the records in zones around homes or other places, and break traces there.

    A zone is a circle of `radius` metres whose centre is displaced by up to `offset` metres, or a polygon. Records in a
    zone are removed. Where records were removed, or a segment between two remaining ones crosses a zone, a break is
    marked, so that nothing is interpolated there. Names and times stay. Times of remaining records still show when
    somebody left and came back: follow with `Promesse`.

    By default a zone is found for each user, where most traces begin and end: the densest spot of the first and last
    records of parts between gaps of 4 hours. Of many more than 5,000 parts some 5,000 are taken. Apply it before
    `prepare` gives each part a new name, or with `prepare(keep_user=True)`.

    Parameters
    ----------
    radius : float
        Metres from the displaced centre of a circle; `recommended("people")` takes 700.
    offset : float
        Greatest displacement of a centre in metres, below radius; `recommended("people")` takes 600. A circle with the
        home in the middle gives it away: Hassan et al. found 95 % of such places. 0 does not displace.
    zones : geopandas.GeoDataFrame, optional
        Points (as centres of circles) or polygons (as they are), with a CRS. With a column `user`, each row is a zone
        of that user; without, of all users. The repr shows their number, and no written file contains them, but copies
        of the object (pickle) do.
    places : int
        Without `zones`: how many places to find for each user, each next one without the ends within 200 m of those
        before. A warning counts the users for whom fewer are found, and those with a further place that has at least
        half as many ends as the first one.
    seed : int or str, optional
        Secret from which displacements are drawn. By default each call takes a new key from the operating system. Then
        **repeated publication of the same people averages the displacements out**: draw one secret, keep it, and use
        it again (`seed=secrets.token_hex(32)`). Anyone who guesses it can undo the displacement. No repr and no
        written file contains it.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    Notes
    -----
    What is guaranteed: no remaining record, and no segment between two of them, is nearer to the place than radius −
    offset, on the sphere or in the plane of the data. What a later mechanism publishes may be nearer:
    `Chain` and `publish` apply the zones again to it. What is not guaranteed: that a zone is where somebody lives, if
    most traces begin or end elsewhere; and that it cannot be located roughly, from the many ends around it.

    A displacement is uniform in the disc of `offset` metres, from a keyed hash of the owner, the number of the place
    among the owner's (for zones of all users the row), and `offset`. So the same seed gives the same zones for any
    order of users, number of threads and partitioning by user. Traces `<user>-00000`, `<user>-00001`, … that follow
    each other in time are parts of one user, unless their numbers begin at 10,000 or more. Apply all zones to the same
    data, in a `Chain` if there are several: the edges of earlier zones look like ends of traces. Data in pieces that
    were zoned one by one must not be joined to traces: what ends in a zone would go on to where it begins again.

    References
    ----------
    Hassan, Hussain, Bates: Analysis of Privacy Protections in Fitness Tracking Social Networks -or- You can run, but
    can you hide? USENIX Security 2018. Primault, Ben Mokhtar, Brunie: Privacy-preserving Publication of Mobility Data
    with High Utility. ICDCS 2015.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2, as_traces=True)
    >>> zones = pg.PrivacyZones(600, 500)
    >>> zones
    PrivacyZones(radius=600.0, offset=500.0, zones=None, places=1)
    >>> import warnings
    >>> with warnings.catch_warnings():  # it counts what was removed
    ...     warnings.simplefilter("ignore")
    ...     zones.protect(city).records < city.records
    True
    """

    keeps_periods: ClassVar[bool] = True
    units: ClassVar[Mapping[str, str]] = {"radius": "m", "offset": "m"}
    keeps_breaks: ClassVar[bool] = True
    makes_breaks: ClassVar[bool] = True
    keeps_positions: ClassVar[bool] = True
    remedy: ClassVar[str] = "Take a smaller radius (--radius)."

    radius: float = 500.0
    offset: float = 400.0
    zones: Any = field(default=None, kw_only=True)
    places: int = field(default=1, kw_only=True)
    seed: int | str | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parameters."""
        radius = check_number(self.radius, name="radius", owner=_OWNER, unit="metres", high=1e6)
        offset = check_number(self.offset, name="offset", owner=_OWNER, unit="metres", high=1e6, zero=True)
        if offset >= radius:
            raise ValueError(
                f"The 'offset' parameter of PrivacyZones must be below radius = {radius:g} m: else the place may lie "
                f"outside the zone. Got {offset:g} instead."
            )
        zones = None if self.zones is None else Zones.from_frame(self.zones, owner=_OWNER)
        places = check_integer(self.places, name="places", owner=_OWNER)
        if zones is not None and places != 1:
            raise ValueError(
                "The 'places' parameter of PrivacyZones must be omitted with 'zones': no places are found then. "
                f"Got {places:,}."
            )
        seed = check_seed(self.seed, owner=_OWNER)
        set_fields(self, {"radius": radius, "offset": offset, "zones": zones, "places": places, "seed": seed})

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that can be published: neither the seed nor anything of the zones."""
        return {name: value for name, value in super().parameters().items() if name != "zones"}

    @property
    def is_random(self) -> bool:
        """Whether two calls displace centres differently, without a seed and with a circle and an offset."""
        return self.seed is None and self.offset > 0 and (self.zones is None or self.zones.has_points)

    def place(self, traces: Traces) -> PlacedZones:
        """Find or read the zones, and displace their centres."""
        space, unclear, fewer, few = traces.space, 0, 0, 0
        if self.zones is None:
            owners, spots, names = self._find(traces)
            unclear = len(spots.close(self.places).groups)  # without a zone at such a place
            few = len(spots.few().groups)
            fewer = len(owners) - int((spots.ranks == self.places - 1).sum())
            found: list[tuple[str | None, np.ndarray, Any]] = [
                (owners[group], place, None) for group, place in zip(*spots.first(self.places)[:2], strict=True)
            ]
        else:
            found = list(locate(self.zones, traces, owner=_OWNER))
            names = owners_by_name(traces.users, set(self.zones.owners or ()))
        owned = [owner for owner, _, _ in found]
        centres = self._displace(traces, found)
        reaches, polygons = np.full(len(found), space.chord(self.radius)), []
        for number, (_, middle, rings) in enumerate(found):
            polygon = None
            if rings is not None:
                reaches[number], polygon = flatten(middle, rings, space)
            polygons.append(polygon)
        return PlacedZones(space, owned, centres, reaches, polygons, names, unclear, fewer, few)

    def cut(self, traces: Traces, placed: PlacedZones) -> "tuple[Traces, _Removed]":
        """Return what placed zones leave of Traces, whose records keep their positions, and a remark with counts."""
        rest, made = placed.cut_and_count(traces)
        return rest, self._remark_on(traces, rest, placed, made)

    def _protect(self, traces: Traces) -> "tuple[Traces, _Removed]":
        rest, remark = self.cut(traces, self.place(traces))
        return replace(rest, positions=freeze(np.arange(rest.records))), remark

    def _find(self, traces: Traces) -> tuple[list[str], Spots, dict[str, str]]:
        """Return owners, the densest spots of their ends, one more than places, and owners by the names of traces."""
        owned = name_owners(traces)
        owners = list(dict.fromkeys(owned))
        numbers = {owner: number for number, owner in enumerate(owners)}
        of_trace = np.array([numbers[owner] for owner in owned], np.int64)
        gaps = np.flatnonzero(np.diff(traces.times) >= GAP) + 1
        bounds = np.union1d(traces.segments, gaps)
        first, last = bounds[:-1], bounds[1:] - 1
        some = _at_most(_MOST_PARTS, of_trace[np.searchsorted(traces.offsets, first, side="right") - 1])
        first, last = first[some], last[some]
        rows = np.column_stack((first, last)).ravel()
        kept = np.column_stack((np.ones(len(first), bool), last > first)).ravel()  # a single record counts once
        rows = rows[kept]
        group = of_trace[np.searchsorted(traces.offsets, rows, side="right") - 1]
        order = np.argsort(group, kind="stable")
        offsets = as_offsets(np.bincount(group, minlength=len(owners)))
        spots = find_spots(traces.points[rows[order]], offsets, traces.space, number=self.places + 1)
        return owners, spots, dict(zip(map(str, traces.users), owned, strict=True))

    def _displace(self, traces: Traces, found: list[tuple[str | None, np.ndarray, Any]]) -> np.ndarray:
        """Return the centres of zones: those of circles are displaced, middles of polygons stay."""
        space = traces.space
        centres = np.array([middle for _, middle, _ in found], float).reshape(-1, space.dimension)
        key, places = key_of(self.seed, "zones"), dict[str | None, int]()
        moved, bearings, metres = [], [], []
        for row, (owner, _, rings) in enumerate(found):
            number = places.get(owner, 0)
            places[owner] = number + 1
            if rings is None:
                first, second = self._draw(key, owner, number)
                moved.append(row)
                bearings.append(2 * math.pi * first)
                metres.append(self.offset * math.sqrt(second))
        centres[moved] = space.move(centres[moved], np.array(bearings), np.array(metres))
        return centres

    def _draw(self, key: bytes, owner: str | None, number: int) -> tuple[float, float]:
        """Two random numbers in [0, 1) of a place, from a keyed hash of its owner, number and the offset."""
        message = struct.pack("<?Qd", owner is not None, number, self.offset) + (owner or "").encode()
        words = struct.unpack("<QQ", hashlib.blake2b(message, key=key, digest_size=16).digest())
        first, second = ((word >> 11) * _FINE for word in words)
        return first, second

    def _remark_on(self, traces: Traces, rest: Traces, placed: PlacedZones, made: int) -> "_Removed":
        """Return how many records and traces were removed, breaks made, and users of zones not found."""
        owners = set() if self.zones is None else {owner for owner in placed.owners if owner is not None}
        named = zip(traces.users, name_owners(traces), strict=True) if owners else ()
        without = {owner for user, owner in named if str(user) not in placed.names}
        return _Removed(
            removed=traces.records - rest.records,
            records=traces.records,
            made=made,
            dropped=len(traces) - len(rest),
            traces=len(traces),
            found=len(owners & set(placed.names.values())),
            owners=len(owners),
            without=len(without),
            places=self.places,
            unclear=placed.unclear,
            fewer=placed.fewer,
            few=placed.few,
            searched=0 if self.zones is not None else len(set(placed.owners)),
        )


def _at_most(number: int, groups: np.ndarray) -> np.ndarray:
    """Return ascending positions, int64, of about `number` elements of each group that has more, and of all others.

    Multiples of the golden ratio choose them, so that no pattern in the order of elements is preferred.
    """
    sizes = np.bincount(groups)
    if sizes.max(initial=0) <= number:
        return np.arange(len(groups))
    order = np.argsort(groups, kind="stable")
    ranks = np.empty(len(groups), np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(as_offsets(sizes)[:-1], sizes)
    return np.flatnonzero(ranks * _GOLDEN % 1 * sizes[groups] < number)


@dataclass(frozen=True)
class _Removed(Remark):
    """A remark on what zones removed, and on how many of the users that zones name are in the data."""

    constants: ClassVar[tuple[str, ...]] = ("owners", "places")

    removed: int
    records: int
    made: int
    dropped: int
    traces: int
    found: int
    owners: int
    without: int
    places: int
    unclear: int
    fewer: int
    few: int
    searched: int

    def __str__(self) -> str:
        """Return the counts."""
        texts = []
        if self.removed or self.made:
            texts.append(
                f"Privacy zones removed {self.removed:,} of {counted(self.records, 'record')}, and made "
                f"{counted(self.made, 'break')} in traces."
            )
        if self.dropped:
            predicates = ("lies in zones entirely and was dropped", "lie in zones entirely and were dropped")
            texts.append(f"{counted_of(self.dropped, self.traces, 'trace', *predicates)}.")
        if missing := self.owners - self.found:
            texts.append(
                f"{missing:,} of {counted(self.owners, 'user')} of zones {'is' if missing == 1 else 'are'} not in the "
                "data: are the names right?"
            )
        if self.without:
            have = "has" if self.without == 1 else "have"
            users = counted(self.without, "user")
            texts.append(f"{users} of the data {have} no zone, because zones= (--zones) names others only.")
        if self.fewer:
            texts.append(
                f"Fewer than {self.places:,} places were found for {self.fewer:,} of {counted(self.searched, 'user')}, "
                "whose traces begin and end nowhere else."
            )
        if self.few:
            texts.append(f"{few_in_words(self.few, self.searched)}.")
        if self.unclear:
            texts.append(f"{unclear_in_words(self.unclear, self.searched, self.places)}.")
        return " ".join(texts)


def few_in_words(few: int, users: int) -> str:
    """Return of how many users too few traces begin or end at the place of the zone, and what to do."""
    zones = "its zone may lie" if few == 1 else "their zones may lie"
    return (
        f"{counted_of(few, users, 'user', 'begins or ends', 'begin or end')} fewer than {LEAST} traces where most of "
        f"them do, so {zones} elsewhere than at home: pass known homes as zones (--zones)"
    )


def unclear_in_words(unclear: int, users: int, places: int) -> str:
    """Return how many users have another place that may be their home, and what to do."""
    verb = "has" if unclear == 1 else "have"
    return (
        f"{close_in_words(unclear, users)}, and {verb} no zone there: pass places={places + 1} (--places "
        f"{places + 1}), or known homes as zones (--zones)"
    )
