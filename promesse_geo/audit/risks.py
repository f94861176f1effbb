"""What attackers find in protected data, beside raw data and guessing: the tables of the risk report."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from promesse_geo.audit.owned_parts import Halves, OwnedParts, owner_numbers
from promesse_geo.audit.recognition import noted_mechanism
from promesse_geo.mechanisms import Mechanism
from promesse_geo.mechanisms.base import names_of
from promesse_geo.messages import counted
from promesse_geo.metrics import Compression, Metric, PoiRetrieval, RangeQueryDistortion, SpatialError
from promesse_geo.metrics.attacks import (
    AdaptivePoiRetrieval,
    EndRetrieval,
    HeatMapReidentification,
    Linkage,
    Reidentification,
    Residue,
    Unicity,
)
from promesse_geo.metrics.attacks.poi_retrieval import compare_pois
from promesse_geo.metrics.base import Index
from promesse_geo.metrics.utility import AreaCoverage
from promesse_geo.stays.spots import close_in_words
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import key_of

SINGLING_OUT, LINKABILITY, INFERENCE = "singling out", "linkability", "inference"
"""The questions of the regulators (Article 29 Working Party, Opinion 05/2014)."""

NOT_COMPUTED = (
    "not tried, because the protection was not named when this report was made: ask for a report that names it "
    "(mechanism=, on the command line --mechanism)"
)

NOT_KNOWN = (
    "not tried, because the protection ({names}) is not part of promesse-geo: ask for a report in Python that names it "
    "(mechanism=)"
)

CANNOT_PROTECT = "the mechanism cannot protect the first half of the data alone"


class Measure(NamedTuple):
    """The value of an attack.

    Parameters
    ----------
    question : str
        Which question of the regulators it answers.
    key : str
        Short name.
    title : str
        What the attacker does.
    sentence : str
        What the value means, with the fields `value` (with its unit) and `basis`.
    basis : str
        Of what the value is a share: how many people, pieces or draws.
    value, raw, guess : float
        In %: of the protected data, of the raw data, and of guessing; NaN without a value, such as that of guessing
        where an attack chooses nobody.
    reason : str
        Why there is no value, else empty.
    """

    question: str
    key: str
    title: str
    sentence: str
    basis: str
    value: float
    raw: float
    guess: float
    reason: str


@dataclass(frozen=True, eq=False)
class Risks:
    """The tables of a risk report.

    Parameters
    ----------
    measures : pandas.DataFrame
        One row per attack, with the columns of `Measure`.
    utility : pandas.DataFrame
        One row per metric: `metric`, `title`, `sentence`, `value`, `unit`.
    people : pandas.DataFrame
        One row per user of the original, numbered anew from 1, the worst first.
    dropped : dict of str to int
        Numbers of users, traces and records: of the original, and of the protected data.
    """

    measures: pd.DataFrame
    utility: pd.DataFrame
    people: pd.DataFrame
    dropped: dict[str, int]


@dataclass(frozen=True)
class _Guess(PoiRetrieval):
    """As many random published points of a trace as its original has POIs."""

    is_per_user: ClassVar[bool] = False  # one generator draws for all users

    seed: Any = None

    def _detail(self, pairs: Pairs, index: Any) -> pd.DataFrame:
        offsets, protected = index.offsets(len(pairs.original)), pairs.protected
        counts = np.diff(offsets)[pairs.originals]
        generator = np.random.Generator(np.random.Philox(int.from_bytes(key_of(self.seed, "guess")[:16])))
        shares = generator.random(int(counts.sum()))
        rows = np.repeat(protected.offsets[:-1], counts) + (shares * np.repeat(protected.counts, counts)).astype(
            np.int64
        )
        ends = np.concatenate(([0], np.cumsum(counts)))
        return compare_pois(pairs, (index.points, offsets), (protected.points[rows], ends), threshold=self.threshold)


def find_risks(parts: OwnedParts, *, mechanism: Mechanism | None, seed: int | str | None) -> Risks:
    """Run the attacks and the metrics of utility.

    Parameters
    ----------
    parts : OwnedParts
        Original and protected data.
    mechanism : Mechanism, optional
        What the attacker who treats his data alike applies.
    seed : int or str, optional
        Seed of what is drawn.

    Returns
    -------
    Risks
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is dropped is part of the report
        if mechanism is not None and seed is not None:  # the attacker's own draws, not those of the protection
            mechanism = mechanism.with_seed(f"{seed}/known")
        run = _Run(parts, mechanism, seed, {})
        measures = pd.DataFrame([*run.singling_out(), *run.linkability(), *run.inference()], columns=Measure._fields)
        utility = pd.DataFrame(run.utility(), columns=["metric", "title", "sentence", "value", "unit"])
    return Risks(measures, utility, _people(run), _sizes(parts))


@dataclass(frozen=True, eq=False)
class _Run:
    """Attacks on one data set; `by_person` collects what they find of each owner."""

    parts: OwnedParts
    mechanism: Mechanism | None
    seed: int | str | None
    by_person: dict[str, np.ndarray]

    def singling_out(self) -> Iterator[Measure]:
        """Attack with a few known points."""
        metric = Unicity(seed=self.seed)
        value, detail = self._measured(metric, self.parts.original, self.parts.protected)
        self._note("singled_out", detail["unique"], np.mean)
        yield Measure(
            SINGLING_OUT,
            "unicity",
            "Four places and hours of a person are known",
            f"Somebody knows 4 squares of {metric.cell:g} m where a person was, and the hours. In {{value}} of "
            "{basis} this person alone fits in the published data. There is no value of guessing, for nobody is "
            "chosen. If times were moved, this attack fails where others may not.",
            f"{counted(len(detail), 'draw')} among {_people_in_words(detail.index.nunique())}",
            value,
            detail.attrs["raw"],
            math.nan,
            _reason(value, metric),
        )

    def linkability(self) -> Iterator[Measure]:
        """Attack with what is known of the first half, and without names."""
        halves = self.parts.halves()
        yield from self._stays(halves)
        yield from self._areas(halves)
        del halves  # as large as the data
        yield self._linkage()

    def _stays(self, halves: Halves) -> Iterator[Measure]:
        known, raw, half = halves
        stays = Reidentification()
        index = stays.index(known)
        value, detail = self._measured(stays, known, half, index)
        is_known = detail["reference_pois"] > 0
        self._note("recognized_by_stays", detail["identified"].where(is_known), np.max)
        with_pois = int(is_known.sum())
        yield Measure(
            LINKABILITY,
            "stays",
            "Stops in the first half of the period are known",
            "An attacker who knows where people stopped in the first half recognizes {value} of {basis} by their stops "
            f"in the published second half. Guesses choose among {_people_in_words(with_pois)}.",
            f"{_people_in_words(with_pois)} with stops in the first half",
            value,
            self._measured(stays, known, raw, index)[0],
            100 / with_pois if with_pois else math.nan,
            _reason(value, stays),
        )

    def _areas(self, halves: Halves) -> Iterator[Measure]:
        known, raw, _ = halves
        areas = HeatMapReidentification().for_halves(known, raw)
        index = areas.index(known)
        found_in_raw = self._measured(areas, known, raw, index)[0]
        yield self._footprints(areas, "footprints", found_in_raw, halves, index)
        yield self._footprints_alike(found_in_raw, halves)

    def _linkage(self) -> Measure:
        metric = Linkage()
        value, detail = self._measured(metric, self.parts.original, self.parts.protected)
        self._note("linked", detail["linked"], np.mean)
        return Measure(
            LINKABILITY,
            "linkage",
            "Published pieces without names are joined",
            "An attacker who takes the piece that begins nearest joins {value} of {basis} to the right one. Guesses "
            "choose among the pieces that begin in these 48 hours.",
            f"{counted(len(detail), 'piece')} with a later one of the same person within 48 hours",
            value,
            self._measured(metric, self.parts.original, self.parts.original)[0],
            detail.attrs["guess"],
            _reason(value, metric),
        )

    def _footprints_alike(self, in_raw: float, halves: Halves) -> Measure:
        """Attack with footprints that the attacker protects alike; without a value if the mechanism cannot do so."""
        noted = self.parts.protected.protection
        is_known = noted is None or noted_mechanism(self.parts.protected) is not None
        reason = NOT_COMPUTED if is_known else NOT_KNOWN.format(names=names_of(noted))
        if self.mechanism is not None:
            metric = HeatMapReidentification(known=self.mechanism).for_halves(halves.known, halves.raw)
            try:
                index = metric.index(halves.known)
            except ValueError:  # Wait for Me needs several traces, for example
                reason = CANNOT_PROTECT
            else:
                return self._footprints(metric, "footprints_alike", in_raw, halves, index)
        title, sentence = _FOOTPRINTS["footprints_alike"]
        return Measure(LINKABILITY, "footprints_alike", title, sentence, "", math.nan, math.nan, math.nan, reason)

    def _footprints(
        self, metric: HeatMapReidentification, key: str, raw: float, halves: Halves, index: Index
    ) -> Measure:
        value, detail = self._measured(metric, halves.known, halves.protected, index)
        self._note(key, detail["identified"], np.max)
        title, sentence = _FOOTPRINTS[key]
        basis = f"{_people_in_words(len(detail))} with records in both halves"
        sentence = f"{sentence} Guesses choose among {_people_in_words(len(halves.known))} of the first half."
        reason = _reason(value, metric)
        return Measure(LINKABILITY, key, title, sentence, basis, value, raw, detail.attrs["guess"], reason)

    def inference(self) -> Iterator[Measure]:
        """Attack for places."""
        before, after = self.parts.compared
        stays = PoiRetrieval().index(before).content  # of all these metrics
        random = _Guess(seed=self.seed)
        guess = self._measured(random, before, after, Index(random, before, stays))[0]
        for key, metric in _PLACES.items():
            value, detail = self._measured(metric, before, after, Index(metric, before, stays))
            self._note_places(key, detail)
            title, sentence = _PLACE_WORDS[key]
            stops, reported, found = (int(detail[name].sum()) for name in _COUNTS)
            basis = f"F-score; {found:,} of {counted(stops, 'stop')} found, {reported:,} reported"
            raw = math.nan if math.isnan(value) else 100.0  # the stays of the raw data are the truth
            yield Measure(INFERENCE, key, title, sentence, basis, value, raw, guess, _reason(value, metric))
        yield self._ends()

    def _ends(self) -> Measure:
        """Attack the places where most traces begin or end; by person also second ones, which may be the homes."""
        metric = EndRetrieval()
        detail = metric.compare_second(metric.pair(self.parts.original, self.parts.protected))
        value, is_located = metric.value(detail), detail["either"] <= metric.threshold
        self._note("place_distance", detail["either"], np.min)
        self._note("place_located", is_located, np.max)
        self._note("second_place", detail["second"], np.max)
        sentence = (
            "An attacker who goes back from where published traces begin and end locates the place of most ends, often "
            f"the home, within {metric.threshold:g} m for {{value}} of {{basis}}."
        )
        if seconds := int(detail["second"].sum()):
            second = close_in_words(seconds, len(detail), nouns=("person", "people"))
            sentence += (
                f" {second}: counting both places, one is located for {_people_in_words(int(is_located.sum()))}."
            )
        return Measure(
            INFERENCE,
            "ends",
            "Going back from where traces begin and end",
            sentence,
            f"{_people_in_words(len(detail))} whose traces often begin or end at one place",
            value,
            detail.attrs["raw"],
            detail.attrs["random"],
            _reason(value, metric),
        )

    def utility(self) -> Iterator[tuple[str, str, str, float, str]]:
        """Compute what is lost."""
        before, after = self.parts.compared
        for metric, title, sentence in (
            (SpatialError(), "Spatial error", "A published point is {value} from the true path, on average."),
            (
                RangeQueryDistortion(seed=self.seed),
                "Distortion of counts",
                "Counts of people in an area and some hours are wrong by {value}, on average.",
            ),
            (AreaCoverage(), "Area coverage", "Of the squares of 200 m that people visit, {value} stay (F-score)."),
            (Compression(), "Records kept", "The published data has {value} of the number of original records."),
        ):
            yield type(metric).__name__, title, sentence, self._measured(metric, before, after)[0], metric.unit

    def _measured(
        self, metric: Metric, original: Traces, protected: Traces, index: Index | None = None
    ) -> tuple[float, Any]:
        detail = metric.compare(metric.pair(original, protected), index)
        return metric.value(detail), detail

    def _note(self, name: str, values: pd.Series, combine: Callable[[Any], Any]) -> None:
        """Keep a value for each owner; NaN for owners without any."""
        column = np.full(self.parts.owners, np.nan)
        if len(values):
            numbers = pd.Series(values.to_numpy(float), owner_numbers(values.index))
            grouped = numbers.groupby(level=0).agg(combine)
            column[grouped.index] = grouped
        self.by_person[name] = column

    def _note_places(self, key: str, detail: pd.DataFrame) -> None:
        """Keep the number of true stays of each owner, and how many of them the best attack on places finds."""
        numbers = owner_numbers(detail.index)
        stays, found = (
            np.bincount(numbers, weights=detail[name], minlength=self.parts.owners)
            for name in ("original_pois", "matched")
        )
        self.by_person["stays"] = stays
        self.by_person["stays_found"] = np.maximum(self.by_person.get("stays_found", np.zeros(len(found))), found)


_PLACES: dict[str, PoiRetrieval] = {
    "places": PoiRetrieval(),
    "places_noise": AdaptivePoiRetrieval(kind="geo-indistinguishability"),
    "places_residue": Residue(),
}
_COUNTS = ("original_pois", "protected_pois", "matched")
_PLACE_WORDS = {
    "places": (
        "Searching for stops",
        "An attacker who searches the published data for stops of 15 minutes reaches {value} ({basis}).",
    ),
    "places_noise": (
        "Searching for stops, with noise averaged out",
        "The same attacker, averaging positions in case noise was added, reaches {value} ({basis}).",
    ),
    "places_residue": (
        "Searching smoothed paths for turns and ends",
        "An attacker who takes turns, loops and ends of paths for stops reaches {value} ({basis}). The attack is made "
        "for data smoothed by Promesse.",
    ),
}
_FOOTPRINTS = {
    "footprints": (
        "Areas visited in the first half of the period are known",
        "An attacker who knows the squares of 800 m visited in the first half recognizes {value} of {basis}.",
    ),
    "footprints_alike": (
        "The same areas are known, and protected alike before comparing",
        "The same attacker, who treats what he knows as the published data was treated, recognizes {value} of {basis}.",
    ),
}


def _people_in_words(number: int) -> str:
    return counted(number, "person", "people")


def _reason(value: float, metric: Metric) -> str:
    return metric.undefined if math.isnan(value) else ""


def _people(run: _Run) -> pd.DataFrame:
    """Return what is found of each person, the worst first, numbered anew; missing where there is nothing to find."""
    table = pd.DataFrame(run.by_person)
    footprints = table.get("footprints_alike", table["footprints"]).combine(table["footprints"], np.fmax)
    share = table["stays_found"] / table["stays"].where(table["stays"] > 0)
    people = pd.DataFrame(
        {
            "place_located": table["place_located"].astype("boolean"),
            "place_distance": np.ceil(table["place_distance"] / 10) * 10,
            "second_place": table["second_place"] == 1,
            "recognized_by_stays": _is_likely(table["recognized_by_stays"]),
            "recognized_by_footprints": _is_likely(footprints),
            "stays": table["stays"].astype(np.int64),
            "stays_found": table["stays_found"].astype(np.int64),
            "singled_out": 100 * table["singled_out"],
            "linked": 100 * table["linked"],
        }
    )
    risks = people[["place_located", "recognized_by_stays", "recognized_by_footprints"]].sum(axis=1)
    generator = np.random.Generator(np.random.Philox(int.from_bytes(key_of(run.seed, "people")[:16])))
    shuffled = generator.permutation(len(people))  # equal ones are in no order of users
    order = np.lexsort((shuffled, -people["singled_out"].fillna(0), -share.fillna(0), -risks))
    people = people.iloc[order].reset_index(drop=True)
    people.insert(0, "person", np.arange(1, len(people) + 1))
    return people


def _is_likely(shares: pd.Series) -> pd.Series:
    """Return whether shares are above a half, missing where they are."""
    return (shares > 0.5).astype("boolean").mask(shares.isna())


def _sizes(parts: OwnedParts) -> dict[str, int]:
    published = len(np.unique(owner_numbers(parts.protected.users)))
    return {
        "users": parts.owners,
        "published_users": published,
        "traces": len(parts.original),
        "published_traces": parts.count_kept(),
        "records": parts.original.records,
        "published_records": parts.protected.records,
    }
