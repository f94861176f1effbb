"""Overlap of the areas that users visit."""

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.kernels import cells as kernel
from promesse_geo.metrics.base import Metric, score
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_number

Visited: TypeAlias = tuple[np.ndarray, np.ndarray]
"""The distinct cells of each trace, ascending, int64 of shape (cells,), and their offsets, shape (traces + 1,)."""


@dataclass(frozen=True)
class AreaCoverage(Metric):
    """Overlap of the cells that original and protected traces visit.

    On the globe, rows of cells are `cell` metres of latitude high, from the equator. Each row is divided into
    round(2πR·cos φ / cell) equal cells from the meridian of Greenwich, with φ the latitude of the row's middle, so all
    cells have about the same area. In a plane, cells are squares. A record visits the cell that contains it; the path
    between records does not count.

    The detail has one row per original trace: the number of cells that the original and the protected trace visit
    (`original_cells`, `protected_cells`), the number of `shared` ones, `precision` = shared / protected (NaN without
    any), `recall` = shared / original, and their harmonic mean `fscore`, 0 for a trace that the mechanism dropped. The
    value is the mean of `fscore` in percent: 100 is best for utility.

    Parameters
    ----------
    cell : float
        Side of a cell in metres, from 1 to 1,000,000.

    Raises
    ------
    TypeError, ValueError
        If the parameter is not a number or is out of range.

    References
    ----------
    Primault, Maouche, Boutet, Ben Mokhtar, Bouchenak, Brunie: ACCIO: How to Make Location Privacy Experimentation Open
    and Easy. ICDCS 2018 (area coverage). The equal-area cells are specific to this implementation.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> metric = pg.AreaCoverage(cell=500)
    >>> metric.measure(city, city)
    100.0
    """

    cell: float = 200.0
    unit: ClassVar[str] = "%"
    bounds: ClassVar[tuple[float, float]] = (0, 100)
    is_per_user: ClassVar[bool] = True
    label: ClassVar[str] = "area coverage, F-score"
    meaning: ClassVar[str] = "higher is more useful"

    def __post_init__(self) -> None:
        """Validate the parameter."""
        cell = check_number(self.cell, name="cell", owner="AreaCoverage", unit="metres", low=1, high=1e6)
        object.__setattr__(self, "cell", cell)

    def _index(self, original: Traces) -> Visited:
        return self._visited(original)

    def _detail(self, pairs: Pairs, index: Visited) -> pd.DataFrame:
        cells, offsets = self._visited(pairs.protected)
        original = np.diff(index[1])
        protected, shared = np.zeros_like(original), np.zeros_like(original)
        protected[pairs.originals] = np.diff(offsets)
        threads.run(
            lambda first, last: kernel.count_shared(*index, cells, offsets, pairs.originals, first, last, shared),
            threads.fair(np.diff(offsets)),
        )
        columns = {"original_cells": original, "protected_cells": protected, "shared": shared}
        columns |= score(original, protected, shared)
        return pd.DataFrame(columns, index=pairs.original.users.rename("user"))

    def value(self, detail: pd.DataFrame) -> float:
        """Return the mean F-score in percent; NaN without any trace."""
        return 100 * float(detail.fscore.mean())

    def _visited(self, traces: Traces) -> Visited:
        columns, cells = traces.space.cells(traces.points, self.cell)
        cells <<= 32  # row and column in 32 bits each
        cells += columns
        counts, offsets = np.empty(len(traces), np.int64), traces.offsets
        threads.run(
            lambda first, last: kernel.sort_distinct(cells, offsets, first, last, counts), threads.fair(traces.counts)
        )
        kept = as_offsets(counts)
        rows = np.arange(kept[-1]) + np.repeat(offsets[:-1] - kept[:-1], counts)
        return cells[rows], kept
