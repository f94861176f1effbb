"""Places at the ends of traces: the attacker steps back from where published traces begin and end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.kernels import densest
from promesse_geo.messages import counted, invalid, warn
from promesse_geo.metrics.base import Metric
from promesse_geo.metrics.pairing import pair_by_owner
from promesse_geo.stays.spots import NEAR, SPOT, densest_spots, find_spots
from promesse_geo.traces.owners import find_owners, number_owners
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.placing import place_points
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_flag, check_integer, check_number, set_fields

_Guesses = tuple[np.ndarray, np.ndarray]  # points, and the rows of guesses among them

_RAY_WIDTH, _RAY_STEP, _RAY_POINTS = 40.0, 25.0, 61  # metres, metres, and their number


@dataclass(frozen=True)
class KnownPlaces:
    """Owners and their true places, as an opaque value of a parameter.

    Parameters
    ----------
    owners : tuple of str
        Distinct names.
    x, y : tuple of float
        Coordinates in the CRS.
    crs : str
        The CRS as WKT.
    """

    owners: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    crs: str

    @classmethod
    def from_frame(cls, frame: Any, *, owner: str) -> "KnownPlaces":
        """Read a frame with the columns user and geometry (points), one row per user."""
        rule = "a GeoDataFrame of points with a column user and a CRS, one row per user"
        if isinstance(frame, cls):
            return frame
        is_frame = isinstance(frame, gpd.GeoDataFrame) and frame.active_geometry_name is not None
        if not is_frame or list(frame.columns).count("user") != 1 or frame.crs is None:
            raise TypeError(invalid("truth", owner, rule, frame))
        points = frame.geometry
        is_point = (points.geom_type == "Point").all() and not points.is_empty.any()
        if not is_point or frame["user"].isna().any() or frame["user"].astype(str).duplicated().any():
            raise ValueError(f"The 'truth' parameter of {owner} must be {rule}, without missing values.")
        users = tuple(map(str, frame["user"]))
        return cls(users, tuple(map(float, points.x)), tuple(map(float, points.y)), frame.crs.to_wkt())

    def points(self, space: Space) -> np.ndarray:
        """Return the points of the places, shape (places, 3) or (places, 2); raise ValueError if one has none."""
        points, placed = place_points(np.array(self.x, float), np.array(self.y, float), crs=self.crs, space=space)
        if not placed.all():
            raise ValueError(
                f"{counted(int((~placed).sum()), 'place')} of {len(placed):,} in the 'truth' parameter of EndRetrieval "
                "cannot be placed in the CRS of the data. Check its CRS, or bring both to EPSG:4326."
            )
        return points


@dataclass(frozen=True)
class EndRetrieval(Metric):
    """Places that an attacker locates from the ends of traces.

    Mechanisms such as Promesse remove the first and last point of a trace, which are often home or work. The attacker
    sees the protected data and knows which parts belong together (their owners). For each part with at least two points
    and each of its ends p with its neighbour q, strategy s guesses p + s · (p − q), along the great circle on the
    sphere; a part of one point gives that point. The guess for an owner is the candidate with the greatest sum of
    exp(−½(d / 100 m)²) over the owner's candidates. The strategy "rays" draws points every 25 m up to 1,500 m outward
    from each end, and takes the one with the greatest sum over the rays of exp(−½(d / 40 m)²), with d the distance to
    the ray's nearest point. A part is a trace or a segment between breaks; owners are traces without the suffix of
    five digits that `split_gaps(keep_user=True)` and `prepare(keep_user=True)` add.

    The detail has one row per owner with a true place: the distance in metres of the guess of each strategy (`step_0`,
    `step_0.5`, …, `rays`; NaN without a guess) and the number of `ends`. Its `attrs` hold the best `strategy`, the
    value of the `raw` data, and that of a `random` published point of the owner (its expectation). The value is the
    percentage of owners whose guess is within `threshold`, of the best strategy: 0 is best for privacy. Raw data has
    100 % if places are found from the data, and a mechanism that drops everything 0 %.

    Parameters
    ----------
    threshold : float
        Greatest distance in metres of a guess that counts.
    truth : geopandas.GeoDataFrame, optional
        The true places: columns user and geometry (points) with a CRS, one row per owner. A warning counts the users
        that the original lacks. By default the densest spot of the first and last records of the owner's original
        parts. It is not shown in the repr.
    least : int
        Least number of original ends within 200 m of the densest spot; owners with fewer are left out.
    steps : sequence of float
        The values of s to try.
    rays : bool
        Whether to try the strategy "rays".
    linked : bool
        Whether the attacker knows which parts belong together. If not, all ends are in one pool, without rays: he takes
        the densest spot, removes the candidates within 200 m, and so on, as often as there are owners. The detail has
        the distance from each true place to the nearest guess, and `attrs["precision"]` the percentage of guesses
        within `threshold` of a true place.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    Notes
    -----
    Other strategies may find more. Real streets bend, so that on real data stepping back finds less than in a synthetic
    city of straight streets.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> parts = pg.make_city(users=6, days=7).promesse.prepare(tz="Europe/Paris", keep_user=True)
    >>> metric = pg.EndRetrieval()
    >>> metric.measure(parts, parts)
    100.0
    >>> noisy = parts.promesse.geo_indistinguishability(0.001, seed=1)
    >>> metric.measure(parts, noisy) < 50
    True
    """

    threshold: float = 100.0
    truth: Any = field(default=None, repr=False)
    least: int = 5
    steps: Sequence[float] = (0, 0.5, 1, 1.5, 2, 3, 5)
    rays: bool = True
    linked: bool = True
    unit: ClassVar[str] = "%"
    bounds: ClassVar[tuple[float, float]] = (0, 100)
    label: ClassVar[str] = "end retrieval"
    meaning: ClassVar[str] = "lower is more private"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        owner = "EndRetrieval"
        rule = "one or more different numbers from 0 to 1,000"
        steps = self.steps
        if isinstance(steps, (str, bytes)) or not isinstance(steps, (Sequence, np.ndarray)):
            raise TypeError(invalid("steps", owner, rule, steps))
        checked = tuple(
            check_number(step, name="steps", owner=owner, unit="steps", high=1e3, zero=True) for step in steps
        )
        if not checked or len(set(checked)) < len(checked):
            raise ValueError(invalid("steps", owner, rule, list(steps)))
        set_fields(
            self,
            {
                "threshold": check_number(self.threshold, name="threshold", owner=owner, unit="metres"),
                "truth": None if self.truth is None else KnownPlaces.from_frame(self.truth, owner=owner),
                "least": check_integer(self.least, name="least", owner=owner),
                "steps": checked,
                "rays": check_flag(self.rays, name="rays", owner=owner),
                "linked": check_flag(self.linked, name="linked", owner=owner),
            },
        )

    def pair(self, original: Traces, protected: Traces) -> Pairs:
        """Match the parts of both data sets by owner; `originals` numbers the owners of the original."""
        return pair_by_owner(original, protected)

    def _index(self, original: Traces) -> "_Truth":
        owners, numbers = number_owners(original)
        ends = _Ends.of(original, numbers, len(owners))
        numbers, places, second = self._truth(original, owners, ends)
        raw = self._distances(self._guesses(ends, original.space), numbers, places, original.space)
        return _Truth(owners, numbers, places, second, raw=_share(raw[self._best(raw)], self.threshold))

    def compare_second(self, pairs: Pairs) -> pd.DataFrame:
        """Return the detail with second places, each of which may be the home if the true place is not.

        A second place has at least half as many ends as the true one. There is none with `truth`.

        Parameters
        ----------
        pairs : Pairs
            Matched original and protected parts.

        Returns
        -------
        pandas.DataFrame
            The detail, whether an owner has a `second` place, and the distance in metres `either`: from the guess to
            the nearer of both places, by the strategy that locates most owners at one of them (`attrs["either"]`).
        """
        return self._both(pairs, self._index(pairs.original))

    def _detail(self, pairs: Pairs, index: "_Truth") -> pd.DataFrame:
        detail = self._both(pairs, index).drop(columns=["second", "either"])
        del detail.attrs["either"]
        return detail

    def _both(self, pairs: Pairs, index: "_Truth") -> pd.DataFrame:
        space = pairs.original.space
        ends = _Ends.of(pairs.protected, pairs.originals, len(index.owners))
        guesses = self._guesses(ends, space)
        columns, seconds = (
            self._distances(guesses, index.numbers, places, space) for places in (index.places, index.second)
        )
        nearer = {name: np.fmin(columns[name], seconds[name]) for name in columns}
        strategy, either = self._best(columns), self._best(nearer)
        others = {
            "ends": np.diff(ends.offsets)[index.numbers],
            "second": ~np.isnan(index.second).any(axis=1),
            "either": nearer[either],
        }
        detail = pd.DataFrame(columns | others, index=index.owners[index.numbers].rename("user"))
        detail.attrs |= {"strategy": strategy, "either": either}
        detail.attrs["raw"] = index.raw
        detail.attrs["random"] = self._random(pairs, index)
        if not self.linked:
            detail.attrs["precision"] = self._precision(guesses[strategy], index.places, space)
        return detail

    def value(self, detail: pd.DataFrame) -> float:
        """Return the percentage of owners located within `threshold` by the best strategy; NaN without any owner."""
        return _share(detail[self._best(detail)].to_numpy(), self.threshold)

    def guess(self, detail: pd.DataFrame) -> float:
        """Return the percentage of owners that a random published point of each locates."""
        return float(detail.attrs["random"])

    @property
    def undefined(self) -> str:  # type: ignore[override]
        """Why the value can be NaN although both data sets have records, in words for tables."""
        ends = f"{counted(self.least, 'end')} of traces at one place"
        return f"no user has {ends if self.truth is None else 'a true place'}"

    @property
    def _strategies(self) -> list[str]:
        """The names of the strategies, in the order in which they are tried."""
        return list(map(_name_of, self.steps)) + ["rays"] * (self.rays and self.linked)

    def _best(self, columns: "Mapping[str, np.ndarray] | pd.DataFrame") -> str:
        """Return the first strategy that locates most owners."""
        return max(self._strategies, key=lambda name: int(np.count_nonzero(columns[name] <= self.threshold)))

    def _truth(self, original: Traces, owners: pd.Index, ends: "_Ends") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the positions of owners with a true place, the places, and second places, NaN without one."""
        space = original.space
        second = np.full((len(owners), space.dimension), np.nan)
        if self.truth is not None:
            positions = find_owners(self.truth.owners, owners)
            known = np.flatnonzero(positions >= 0)
            if missing := len(positions) - len(known):
                warn(
                    f"{missing:,} of {counted(len(positions), 'user')} of 'truth' {'is' if missing == 1 else 'are'} "
                    "not in the original data: are the names right?"
                )
            order = known[np.argsort(positions[known], kind="stable")]
            return positions[order], self.truth.points(space)[order], second[positions[order]]
        spots = find_spots(ends.points, ends.offsets, space, number=2)
        first, close = spots.first(1), spots.close(1)
        second[close.groups] = close.points
        enough = first.counts >= self.least
        return first.groups[enough], first.points[enough], second[first.groups[enough]]

    def _guesses(self, ends: "_Ends", space: Space) -> dict[str, _Guesses]:
        """Return points of each strategy, and the rows of the guesses among them.

        They are one for each owner, −1 without ends; or without `linked` all guesses from one pool.
        """
        tried = {_name_of(step): ends.step_back(step, space) for step in self.steps}
        if not self.linked:
            number = int(np.count_nonzero(np.diff(ends.offsets)))
            return {name: (points, self._pooled(points, number, space)) for name, points in tried.items()}
        guesses = {name: (points, densest_spots(points, ends.offsets, space)) for name, points in tried.items()}
        return guesses | ({"rays": ends.cross_rays(space)} if self.rays else {})

    def _distances(
        self, guesses: dict[str, _Guesses], numbers: np.ndarray, places: np.ndarray, space: Space
    ) -> dict[str, np.ndarray]:
        """Return for each strategy the metres from each place, of the owner of a number, to the guess."""
        if self.linked:
            return {name: _between(places, points, rows[numbers], space) for name, (points, rows) in guesses.items()}
        return {
            name: _all_between(places, *each, space).min(axis=1) if len(each[1]) else np.full(len(places), np.nan)
            for name, each in guesses.items()
        }

    def _pooled(self, points: np.ndarray, number: int, space: Space) -> np.ndarray:
        """Return the rows of up to so many guesses from one pool."""
        rows = np.empty(number, np.int64)
        sums, width = np.empty(len(points)), SPOT / space.scale
        threads.run(
            lambda first, last: densest.sum_weights(points, space.curvature, width, first, last, sums),
            threads.even(len(points)),
        )
        densest.take_densest(points, sums, space.curvature, width, space.chord(NEAR) ** 2, rows)
        return rows[rows >= 0]

    def _precision(self, guesses: _Guesses, places: np.ndarray, space: Space) -> float:
        """Return the percentage of guesses within the threshold of a true place; NaN without guesses or places."""
        if not len(guesses[1]) or not len(places):
            return np.nan
        return _share(_all_between(places, *guesses, space).min(axis=0), self.threshold)

    def _random(self, pairs: Pairs, index: "_Truth") -> float:
        """Return the percentage of owners that a random published point of each locates, as expectation."""
        protected, space = pairs.protected, pairs.original.space
        spots = np.full((len(index.owners), space.dimension), np.nan)
        spots[index.numbers] = index.places
        near, limit = np.empty(len(protected), np.int64), space.chord(self.threshold) ** 2
        threads.run(
            lambda first, last: densest.count_near(
                protected.points, protected.offsets, spots, pairs.originals, limit, first, last, near
            ),
            threads.fair(protected.counts),
        )
        records, located = (
            np.bincount(pairs.originals, weights=counts, minlength=len(index.owners))
            for counts in (protected.counts, near)
        )
        shares = (located / np.maximum(records, 1))[index.numbers]
        return 100 * float(shares.mean()) if len(shares) else np.nan


@dataclass(frozen=True, eq=False)
class _Truth:
    """Owners, positions of those with a true place, these and second places, and the percentage found in raw data."""

    owners: pd.Index
    numbers: np.ndarray
    places: np.ndarray
    second: np.ndarray
    raw: float


@dataclass(frozen=True, eq=False)
class _Ends:
    """Ends of parts by owner: points and their neighbours, shape (ends, 3) or (ends, 2), and offsets of owners."""

    points: np.ndarray
    neighbours: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, traces: Traces, owners: np.ndarray, number: int) -> "_Ends":
        """Return the ends of traces, given the position of each trace's owner: by part, start before end."""
        bounds = traces.segments
        first, last = bounds[:-1], bounds[1:] - 1
        several = last > first
        rows = np.column_stack((first, last)).ravel()
        inward = np.column_stack((np.minimum(first + 1, last), np.maximum(last - 1, first))).ravel()
        kept = np.column_stack((np.ones(len(first), bool), several)).ravel()  # a single point counts once
        rows, inward = rows[kept], inward[kept]
        group = np.repeat(owners[traces.segment_owners], 2)[kept] if len(first) else np.empty(0, np.int64)
        order = np.argsort(group, kind="stable")
        offsets = as_offsets(np.bincount(group, minlength=number))
        return cls(traces.points[rows[order]], traces.points[inward[order]], offsets)

    def step_back(self, step: float, space: Space) -> np.ndarray:
        """Return p + step · (p − q) for each end p with its neighbour q."""
        if step == 0:
            return self.points
        directions, lengths = self._outward(space)
        return _along(self.points, directions, step * lengths, space)

    def cross_rays(self, space: Space) -> tuple[np.ndarray, np.ndarray]:
        """Return the points that most rays of each owner pass, and the row of each owner's; −1 without rays."""
        directions, lengths = self._outward(space)
        drawn = lengths > 0
        owners = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))[drawn]
        counts = np.bincount(owners, minlength=len(self.offsets) - 1)
        origins, directions = np.ascontiguousarray(self.points[drawn]), np.ascontiguousarray(directions[drawn])
        best = np.empty((len(counts), 2), np.int64)
        step, width = _RAY_STEP / space.scale, _RAY_WIDTH / space.scale
        offsets = as_offsets(counts)
        threads.run(
            lambda first, last: densest.find_crossings(
                origins, directions, offsets, step, _RAY_POINTS, space.curvature, width, first, last, best
            ),
            threads.fair(counts**2),
        )
        found = np.flatnonzero(best[:, 0] >= 0)
        rows = np.full(len(counts), -1)
        rows[found] = np.arange(len(found))
        chosen = best[found, 0]
        return _along(origins[chosen], directions[chosen], best[found, 1] * step, space), rows

    def _outward(self, space: Space) -> tuple[np.ndarray, np.ndarray]:
        """Return unit tangents at the ends away from their neighbours, and the distances, in the unit of the space."""
        chords = self.neighbours - self.points
        squares = np.einsum("ij,ij->i", chords, chords)
        inward = chords + (0.5 * space.curvature * squares)[:, None] * self.points
        sizes = np.sqrt(np.einsum("ij,ij->i", inward, inward))
        lengths = np.where(sizes > 0, space.metres(np.sqrt(squares)) / space.scale, 0.0)
        return -inward / np.where(sizes > 0, sizes, 1.0)[:, None], lengths


def _along(points: np.ndarray, directions: np.ndarray, lengths: np.ndarray, space: Space) -> np.ndarray:
    """Return the points at lengths along unit tangents."""
    if not space.curvature:
        return points + lengths[:, None] * directions
    return np.cos(lengths)[:, None] * points + np.sin(lengths)[:, None] * directions


def _name_of(step: float) -> str:
    """Return the name of a strategy, which no other step has: that of steps with more than six digits has all."""
    short = f"{step:g}"
    return f"step_{short if float(short) == step else repr(step)}"


def _between(places: np.ndarray, points: np.ndarray, rows: np.ndarray, space: Space) -> np.ndarray:
    """Return the metres from each place to the point in its row; NaN for row −1."""
    if not len(points):
        return np.full(len(places), np.nan)
    return np.where(rows >= 0, space.metres(np.linalg.norm(points[rows] - places, axis=1)), np.nan)


def _all_between(places: np.ndarray, points: np.ndarray, rows: np.ndarray, space: Space) -> np.ndarray:
    """Return the metres from each place to each of the points in rows, shape (places, rows)."""
    return space.metres(np.linalg.norm(places[:, None] - points[rows][None], axis=2))


def _share(distances: np.ndarray, threshold: float) -> float:
    """Return the percentage of distances within the threshold; NaN without any."""
    return 100 * float(np.mean(distances <= threshold)) if len(distances) else np.nan
