"""Re-identification of users by their footprints: the share of their records in each cell of a grid."""

from copy import copy
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.kernels import heat_maps
from promesse_geo.mechanisms.base import Mechanism
from promesse_geo.messages import invalid
from promesse_geo.metrics.attacks.halves import HalvesMetric
from promesse_geo.metrics.pairing import pair_by_owner
from promesse_geo.preprocess.gaps import split_gaps
from promesse_geo.traces.owners import find_owners, name_parts, number_owners
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice, check_integer, check_number, set_fields

_SAME = "same"


class _Percent(str):
    """The unit of the values, "%", which knows the parameter of that name for `dataclasses.replace`."""

    level: str

    @classmethod
    def of(cls, level: str) -> "_Percent":
        """Return the unit of a metric."""
        unit = cls("%")
        unit.level = level
        return unit


@dataclass(frozen=True, repr=False)
class HeatMapReidentification(HalvesMetric):
    """Users that an attacker identifies by their footprints (Maouche, Ben Mokhtar, Bouchenak, MobiQuitous 2017).

    The attacker knows the first half of the period of the data set and receives the second half, protected and with
    other names; `split` makes both, as that of `Reidentification` does. Data that `split` did not divide is compared as
    it is: the attacker then knows the very period that is published. A heat map is the share of the records in each
    cell of an equal-area grid, as in `AreaCoverage`. Each protected user is taken for the known one with the smallest
    Topsøe divergence Σ p ln(2p / (p + q)) + q ln(2q / (p + q)) between the heat maps p and q.

    The detail has one row per known user (and per part, with `unit="trace"`); `evaluate` leaves out users who have no
    records in the second half, whom nobody could identify. The columns are the `distance` to the nearest known user,
    the `rank` of the true one (tied ranks: their mean) and `identified`: 1 / ties if the true user is nearest, else 0.
    With `k` above 1, `identified` is 1 if the rank is at most k. Users that the mechanism dropped have no distance and
    are not identified. `attrs["guess"]` is the percentage that random guesses identify. The value is the percentage of
    identified users: 0 is best for privacy.

    Parameters
    ----------
    cell : float
        Side of a cell in metres, from 1 to 1,000,000.
    known : Mechanism or "same", optional
        What the attacker does to the half that he knows before he compares: it is split at gaps of 4 h, protected with
        this mechanism, and pooled by user. "same" is the mechanism that `evaluate` runs; elsewhere it is an error.
    unit : {"user", "trace"}
        Whether all parts of a protected user form one heat map, or each part one.
    k : int
        A user is identified if the true user is among the k nearest.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    References
    ----------
    Maouche, Ben Mokhtar, Bouchenak: AP-Attack: A Novel User Re-identification Attack On Mobility Datasets.
    MobiQuitous 2017.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> metric = pg.HeatMapReidentification()
    >>> known, second = metric.split(pg.make_city(users=4, days=4))
    >>> metric.measure(known, second)
    100.0
    """

    cell: float = 800.0
    known: Any = None
    k: int = 1
    unit: InitVar[str] = field(default="user", kw_only=True)
    level: str = field(init=False)
    _in_both: np.ndarray | None = field(default=None, init=False, repr=False, compare=False)
    label: ClassVar[str] = "heat-map re-identification"
    meaning: ClassVar[str] = "lower is more private"
    undefined: ClassVar[str] = "no user is known"

    def __post_init__(self, unit: str) -> None:
        """Validate the parameters; the metric's own `unit` is "%", so that the parameter is kept as `level`."""
        owner = type(self).__name__
        unit = unit.level if isinstance(unit, _Percent) else unit
        level = check_choice(unit, name="unit", owner=owner, options=("user", "trace"))
        if not (self.known is None or self.known == _SAME or isinstance(self.known, Mechanism)):
            raise TypeError(invalid("known", owner, "a mechanism such as pg.Promesse(200), or 'same'", self.known))
        if self.known is not None:
            set_fields(self, {"label": f"{type(self).label} with protected knowledge"})
        set_fields(
            self,
            {
                "cell": check_number(self.cell, name="cell", owner=owner, unit="metres", low=1, high=1e6),
                "level": level,
                "unit": _Percent.of(level),
                "k": check_integer(self.k, name="k", owner=owner),
            },
        )

    def __repr__(self) -> str:
        """Return the expression that makes the metric."""
        return f"{type(self).__name__}(cell={self.cell!r}, known={self.known!r}, unit={self.level!r}, k={self.k!r})"

    def for_mechanism(self, mechanism: Mechanism) -> "HeatMapReidentification":
        """Return the metric for a run of a mechanism: known="same" becomes it."""
        return self._changed("known", mechanism) if self.known == _SAME else self

    def for_halves(self, known: Traces, to_protect: Traces) -> "HeatMapReidentification":
        """Return the metric that leaves out users without records in the second half."""
        owners, numbers = number_owners(known)
        found = find_owners([str(user) for user in to_protect.users], owners, name_parts(known, numbers))
        return self._changed("_in_both", np.isin(np.arange(len(owners)), found))

    def _changed(self, name: str, value: Any) -> "HeatMapReidentification":
        """Return a copy with another value of a field."""
        changed = copy(self)
        set_fields(changed, {name: value})
        return changed

    def pair(self, original: Traces, protected: Traces) -> Pairs:
        """Match the protected parts with the known users; `originals` numbers the known users."""
        return pair_by_owner(original, protected)

    def _index(self, original: Traces) -> "_HeatMaps | None":
        return None if isinstance(self.known, str) else self._known_maps(original)

    def _detail(self, pairs: Pairs, index: "_HeatMaps | None") -> pd.DataFrame:
        if index is None:
            raise ValueError(
                "known='same' of HeatMapReidentification means the mechanism that evaluate runs. Elsewhere pass the "
                "mechanism itself, as in known=pg.Promesse(200)."
            )
        original, protected = pairs.original, pairs.protected
        names = number_owners(original)[0]
        users = len(names)
        by_trace = self.level == "trace"
        numbers = np.arange(len(protected)) if by_trace else pairs.originals
        maps = self._maps(protected, numbers, len(protected) if by_trace else users)
        owners = pairs.originals if by_trace else np.arange(users)
        distances = _compare(maps, index)
        true = distances[np.arange(len(owners)), owners] if users else np.empty(0)
        nearer, ties = (distances < true[:, None]).sum(axis=1), (distances == true[:, None]).sum(axis=1)
        is_known = np.isfinite(true)
        rank = np.where(is_known, nearer + (ties + 1) / 2, np.nan)
        best = (nearer == 0) / np.maximum(ties, 1) if self.k == 1 else 1.0 * (rank <= self.k)
        columns = {
            "distance": distances.min(axis=1, initial=np.inf),
            "rank": rank,
            "identified": np.where(is_known, best, 0.0),
        }
        columns["distance"][~np.isfinite(columns["distance"])] = np.nan
        detail = pd.DataFrame(columns, index=(protected.users if by_trace else names).rename("user"))
        if self._in_both is not None and not by_trace:
            detail = detail[self._in_both]
        detail.attrs["guess"] = 100 * min(self.k / users, 1.0) if users else np.nan
        return detail

    def value(self, detail: pd.DataFrame) -> float:
        """Return the percentage of identified users; NaN without any."""
        return 100 * float(detail.identified.mean())

    def _known_maps(self, original: Traces) -> "_HeatMaps":
        """Return the heat maps of the known users, in their order, after the mechanism that the attacker applies."""
        owners, numbers = number_owners(original)
        if self.known is None:
            return self._maps(original, numbers, len(owners))
        parts = self.known.protect(split_gaps(original, gap=self.gap, keep_user=True))
        names = [str(user).rpartition("-")[0] for user in parts.users]
        return self._maps(parts, find_owners(names, owners), len(owners))

    def _maps(self, traces: Traces, owners: np.ndarray, number: int) -> "_HeatMaps":
        """Return the number of records per cell of each owner, given the owner of each trace."""
        columns, rows = traces.space.cells(traces.points, self.cell)
        codes, cells = pd.factorize((rows << 32) + columns, sort=True)  # row and column in 32 bits each
        keys, counts = np.unique(np.repeat(owners, traces.counts) * len(cells) + codes, return_counts=True)
        owner, cell = np.divmod(keys, max(len(cells), 1))
        return _HeatMaps(cells[cell], counts, as_offsets(np.bincount(owner, minlength=number)))


HeatMapReidentification.unit = "%"
HeatMapReidentification.bounds = (0, 100)


@dataclass(frozen=True, eq=False)
class _HeatMaps:
    """Cells with records, ascending, the numbers of records in them, and the offsets of the owners."""

    cells: np.ndarray
    counts: np.ndarray
    offsets: np.ndarray


def _compare(maps: _HeatMaps, known: _HeatMaps) -> np.ndarray:
    """Return the Topsøe divergence between each map and each known one; infinite if one is empty."""
    distances = np.empty((len(maps.offsets) - 1, len(known.offsets) - 1))
    threads.run(
        lambda first, last: heat_maps.compare_heat_maps(
            maps.cells, maps.counts, maps.offsets, known.cells, known.counts, known.offsets, first, last, distances
        ),
        threads.fair(np.diff(maps.offsets) + len(known.cells)),
    )
    return distances
