"""Unicity: whether a few known points of a person fit one trace alone."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from promesse_geo.metrics.base import Metric
from promesse_geo.metrics.owners import pair_by_owner
from promesse_geo.stays.stays import in_words
from promesse_geo.traces.owners import number_owners
from promesse_geo.traces.traces import Pairs, Traces
from promesse_geo.validation import check_duration, check_integer, check_number, check_seed, key_of, set_fields

_MOST_DRAWS = 1_000_000


@dataclass(frozen=True)
class Unicity(Metric):
    """Persons whom a few known points single out (de Montjoye, Hidalgo, Verleysen, Blondel, Scientific Reports 2013).

    A draw takes a user of the original, uniformly among those with at least `points` different pairs of cell and time
    window, and as many of these pairs without replacement. A published user fits if it has a record in each of them.
    Cells are those of `AreaCoverage`, windows count from 1970-01-01, and all parts of a user are pooled.

    The detail has one row per draw, with the user in the index: the number of published users that fit (`fits`), and
    whether the right one alone does (`unique`). `attrs["raw"]` is the value of the raw data. The value is the
    percentage of draws that the right user alone fits: 0 is best for privacy, raw data often has more than 90 %. The
    names serve for scoring alone; keep them when you protect.

    Parameters
    ----------
    points : int
        Number of known points, at most 100.
    cell : float
        Side of a cell in metres, from 1 to 1,000,000.
    window : str, timedelta or number of seconds
        Length of a time window.
    draws : int
        Number of draws, at most 1,000,000.
    seed : int or str, optional
        Seed of the draws, which are the same for all mechanisms of an evaluation.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    Notes
    -----
    Mechanisms that move times, such as Promesse, fit few windows; this is no proof that nobody recognizes them.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=3, days=1)
    >>> pg.Unicity(draws=100, seed=1).measure(city, city)
    100.0
    """

    points: int = 4
    cell: float = 200.0
    window: Any = "1h"
    draws: int = 1000
    seed: int | str | None = field(default=None, repr=False)
    unit: ClassVar[str] = "%"
    label: ClassVar[str] = "unicity"
    undefined: ClassVar[str] = "no user has enough different cells and windows"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        owner = "Unicity"
        set_fields(
            self,
            {
                "points": check_integer(self.points, name="points", owner=owner, high=100),
                "cell": check_number(self.cell, name="cell", owner=owner, unit="metres", low=1, high=1e6),
                "window": in_words(check_duration(self.window, name="window", owner=owner)),
                "draws": check_integer(self.draws, name="draws", owner=owner, high=_MOST_DRAWS),
                "seed": check_seed(self.seed, owner=owner),
            },
        )

    def pair(self, original: Traces, protected: Traces) -> Pairs:
        """Match protected parts with the owners of the original parts."""
        return pair_by_owner(original, protected)

    def _index(self, original: Traces) -> "_Draws":
        owners, numbers = number_owners(original)
        cells, windows, kept = self._visits(original)
        visitors = np.repeat(numbers, original.counts)[kept]
        visits = _distinct(visitors, cells, windows)
        counts = np.bincount(visits.owner, minlength=len(owners))
        begins = np.cumsum(counts) - counts
        eligible = np.flatnonzero(counts >= self.points)
        generator = np.random.Generator(np.random.Philox(int.from_bytes(key_of(self.seed, "unicity")[:16])))
        drawn = eligible[generator.integers(len(eligible), size=self.draws)] if len(eligible) else eligible
        rows = [begins[owner] + generator.choice(counts[owner], self.points, replace=False) for owner in drawn]
        known = visits.iloc[np.concatenate(rows) if rows else []].drop(columns="owner")
        known = known.assign(draw=np.repeat(np.arange(len(drawn)), self.points))
        fits, right = _count_fits(known, visits, drawn, self.points)
        raw = 100 * float(np.mean(right & (fits == 1))) if len(drawn) else np.nan
        return _Draws(owners, drawn, known, raw)

    def _detail(self, pairs: Pairs, index: "_Draws") -> pd.DataFrame:
        cells, windows, kept = self._visits(pairs.protected)
        visitors = np.repeat(pairs.originals, pairs.protected.counts)[kept]
        known = np.isin(cells, index.known.cell) & np.isin(windows, index.known.window)
        visits = _distinct(visitors[known], cells[known], windows[known])
        fits, right = _count_fits(index.known, visits, index.drawn, self.points)
        columns = {"fits": fits, "unique": right & (fits == 1)}
        detail = pd.DataFrame(columns, index=index.owners[index.drawn].rename("user"))
        detail.attrs["raw"] = index.raw
        return detail

    def value(self, detail: pd.DataFrame) -> float:
        """Return the percentage of draws that the right user alone fits; NaN without draws."""
        return 100 * float(detail["unique"].mean())

    def _visits(self, traces: Traces) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the cell and the window of records, and their rows: the first of consecutive ones in the same pair."""
        columns, rows = traces.space.cells(traces.points, self.cell)
        cells = (rows << 32) + columns  # row and column in 32 bits each
        windows = traces.times // check_duration(self.window, name="window", owner="Unicity")
        changed = np.ones(traces.records, bool)
        changed[1:] = (cells[1:] != cells[:-1]) | (windows[1:] != windows[:-1])
        changed[traces.offsets[:-1]] = True
        kept = np.flatnonzero(changed)
        return cells[kept], windows[kept], kept


def _distinct(owners: np.ndarray, cells: np.ndarray, windows: np.ndarray) -> pd.DataFrame:
    """Return the distinct (owner, cell, window) of records, in this order."""
    cell_codes, distinct_cells = pd.factorize(cells, sort=True)
    window_codes, distinct_windows = pd.factorize(windows, sort=True)
    pair_codes, pairs = pd.factorize(cell_codes * max(len(distinct_windows), 1) + window_codes, sort=True)
    visits = np.sort(pd.unique(owners * max(len(pairs), 1) + pair_codes))  # np.unique is slow for such integers
    owner, pair = np.divmod(visits, max(len(pairs), 1))
    cell, window = np.divmod(pairs[pair], max(len(distinct_windows), 1))
    return pd.DataFrame({"owner": owner, "cell": distinct_cells[cell], "window": distinct_windows[window]})


@dataclass(frozen=True, eq=False)
class _Draws:
    """Owners, the owner of each draw, the known cells and windows by draw, and the value of the raw data."""

    owners: pd.Index
    drawn: np.ndarray
    known: pd.DataFrame
    raw: float


def _count_fits(
    known: pd.DataFrame, visits: pd.DataFrame, drawn: np.ndarray, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of owners that visited all known pairs of each draw, and whether the right one did."""
    hits = known.merge(visits, on=["cell", "window"]).groupby(["draw", "owner"]).size()
    full = hits[hits == points].index
    draws, owners = (full.get_level_values(level).to_numpy(np.int64) for level in ("draw", "owner"))
    right = np.zeros(len(drawn), bool)
    right[draws[owners == drawn[draws]]] = True
    return np.bincount(draws, minlength=len(drawn)), right
