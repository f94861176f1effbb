"""Unicity: whether a few known points of a person fit one trace alone."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from promesse_geo.metrics.base import Metric
from promesse_geo.metrics.pairing import pair_by_owner
from promesse_geo.traces.owners import number_owners
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import (
    check_duration,
    check_duration_as_text,
    check_integer,
    check_number,
    check_seed,
    key_of,
    set_fields,
)

_MOST_DRAWS = 1_000_000
_BLOCK = 1 << 20  # records whose cells are in memory at a time


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
    bounds: ClassVar[tuple[float, float]] = (0, 100)
    label: ClassVar[str] = "unicity"
    meaning: ClassVar[str] = "lower is more private"
    undefined: ClassVar[str] = "no user has enough different cells and windows"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        owner = "Unicity"
        set_fields(
            self,
            {
                "points": check_integer(self.points, name="points", owner=owner, high=100),
                "cell": check_number(self.cell, name="cell", owner=owner, unit="metres", low=1, high=1e6),
                "window": check_duration_as_text(self.window, name="window", owner=owner),
                "draws": check_integer(self.draws, name="draws", owner=owner, high=_MOST_DRAWS),
                "seed": check_seed(self.seed, owner=owner),
            },
        )

    def pair(self, original: Traces, protected: Traces) -> Pairs:
        """Match protected parts with the owners of the original parts."""
        return pair_by_owner(original, protected)

    def _index(self, original: Traces) -> "_Draws":
        owners, numbers = number_owners(original)
        visitors, cells, windows = self._visits(original, numbers)
        counts = np.bincount(visitors, minlength=len(owners))
        begins = np.cumsum(counts) - counts
        eligible = np.flatnonzero(counts >= self.points)
        generator = np.random.Generator(np.random.Philox(int.from_bytes(key_of(self.seed, "unicity")[:16])))
        drawn = eligible[generator.integers(len(eligible), size=self.draws)] if len(eligible) else eligible
        picks = [begins[owner] + generator.choice(counts[owner], self.points, replace=False) for owner in drawn]
        rows = np.concatenate(picks) if picks else np.empty(0, np.int64)
        known = _Known.of(cells[rows], windows[rows])
        fits, right = _count_fits(known, *known.find(visitors, cells, windows), drawn, self.points)
        raw = 100 * float(np.mean(right & (fits == 1))) if len(drawn) else np.nan
        return _Draws(owners, drawn, known, raw)

    def _detail(self, pairs: Pairs, index: "_Draws") -> pd.DataFrame:
        visitors, visited = self._visits(pairs.protected, pairs.originals, index.known)
        fits, right = _count_fits(index.known, visitors, visited, index.drawn, self.points)
        columns = {"fits": fits, "unique": right & (fits == 1)}
        detail = pd.DataFrame(columns, index=index.owners[index.drawn].rename("user"))
        detail.attrs["raw"] = index.raw
        return detail

    def value(self, detail: pd.DataFrame) -> float:
        """Return the percentage of draws that the right user alone fits; NaN without draws."""
        return 100 * float(detail["unique"].mean())

    def _visits(self, traces: Traces, numbers: np.ndarray, known: "_Known | None" = None) -> tuple[np.ndarray, ...]:
        """Return the distinct (owner, cell, window) of records, in this order, given the number of each trace's owner.

        With `known`, return the distinct (owner, known pair) instead.
        """
        window = check_duration(self.window, name="window", owner="Unicity")
        found = []
        for first in range(0, traces.records, _BLOCK):
            part = slice(first, first + _BLOCK)
            columns, rows = traces.space.cells(traces.points[part], self.cell)
            cells, windows = (rows << 32) + columns, traces.times[part] // window  # row and column in 32 bits each
            last = first + len(cells)
            owners = numbers[np.searchsorted(traces.offsets, np.arange(first, last), side="right") - 1]
            changed = np.flatnonzero(np.diff(cells) | np.diff(windows) | np.diff(owners)) + 1
            kept = np.concatenate(([0], changed))
            visits = owners[kept], cells[kept], windows[kept]
            found.append(visits if known is None else known.find(*visits))
        together = tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))
        if not together:
            return (np.empty(0, np.int64),) * (3 if known is None else 2)
        return _distinct(*together) if known is None else together


def _distinct(owners: np.ndarray, cells: np.ndarray, windows: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the distinct (owner, cell, window), in this order."""
    cell_codes, distinct_cells = pd.factorize(cells, sort=True)
    window_codes, distinct_windows = pd.factorize(windows, sort=True)
    pair_codes, pairs = pd.factorize(cell_codes * len(distinct_windows) + window_codes, sort=True)
    visits = np.sort(pd.unique(owners * len(pairs) + pair_codes))  # np.unique is slow for such integers
    owner, pair = np.divmod(visits, len(pairs))
    cell, window = np.divmod(pairs[pair], len(distinct_windows))
    return owner, distinct_cells[cell], distinct_windows[window]


@dataclass(frozen=True, eq=False)
class _Known:
    """Known pairs of cell and window: distinct ones as numbers, and the number of each row, draw by draw."""

    cells: pd.Index
    windows: pd.Index
    codes: pd.Index
    rows: np.ndarray

    @classmethod
    def of(cls, cells: np.ndarray, windows: np.ndarray) -> "_Known":
        """Number the distinct pairs."""
        cell_codes, distinct_cells = pd.factorize(cells)
        window_codes, distinct_windows = pd.factorize(windows)
        rows, codes = pd.factorize(cell_codes * len(distinct_windows) + window_codes)
        return cls(pd.Index(distinct_cells), pd.Index(distinct_windows), pd.Index(codes), rows)

    def find(self, owners: np.ndarray, cells: np.ndarray, windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return owner and number of visits to known pairs."""
        cell = self.cells.get_indexer(pd.Index(cells))
        rows = np.flatnonzero(cell >= 0)
        window = self.windows.get_indexer(pd.Index(windows[rows]))
        rows, window = rows[window >= 0], window[window >= 0]
        pairs = self.codes.get_indexer(pd.Index(cell[rows] * len(self.windows) + window))
        return owners[rows[pairs >= 0]], pairs[pairs >= 0]


@dataclass(frozen=True, eq=False)
class _Draws:
    """Owners, the owner of each draw, the known pairs, and the value of the raw data."""

    owners: pd.Index
    drawn: np.ndarray
    known: _Known
    raw: float


def _count_fits(
    known: _Known, owners: np.ndarray, pairs: np.ndarray, drawn: np.ndarray, points: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of owners that visited all known pairs of each draw, and whether the right one did."""
    wanted = pd.DataFrame({"draw": np.repeat(np.arange(len(drawn)), points), "pair": known.rows})
    visits = pd.DataFrame({"owner": owners, "pair": pairs}).drop_duplicates()
    hits = wanted.merge(visits, on="pair").groupby(["draw", "owner"]).size()
    full = hits[hits == points].index
    draws, fitting = (full.get_level_values(level).to_numpy(np.int64) for level in ("draw", "owner"))
    right = np.zeros(len(drawn), bool)
    right[draws[fitting == drawn[draws]]] = True
    return np.bincount(draws, minlength=len(drawn)), right
