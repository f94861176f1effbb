"""Linkage of parts without names: which part continues which."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.kernels import linking
from promesse_geo.metrics.base import Metric
from promesse_geo.metrics.pairing import pair_by_owner
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_duration, check_duration_as_text, set_fields


@dataclass(frozen=True)
class Linkage(Metric):
    """Published parts that an attacker joins to the next part of the same owner, although their names do not show it.

    A part is a trace or a segment between breaks. The guess for each part is the part that begins from 0 to `within`
    after its end and whose first point is nearest to its last one; equally near ones share the guess.

    The detail has one row per part with a continuation, a part of the same owner in this window: the number of parts in
    it (`candidates`), the `distance` in metres to the nearest, and `linked`: the share of the nearest ones that are of
    the same owner. `attrs["guess"]` is the percentage that a random choice among the candidates links. The value is the
    percentage of linked parts: 0 is best for privacy. The names serve for scoring alone; keep them when you protect.

    Parameters
    ----------
    within : str, timedelta or number of seconds
        Longest time from the end of a part to the beginning of the next.

    Raises
    ------
    TypeError, ValueError
        If the parameter is no duration.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> parts = pg.make_city(users=4, days=4).promesse.prepare(tz="Europe/Paris", keep_user=True)
    >>> pg.Linkage().measure(parts, parts) > 50
    True
    """

    within: Any = "48h"
    unit: ClassVar[str] = "%"
    bounds: ClassVar[tuple[float, float]] = (0, 100)
    label: ClassVar[str] = "linkage"
    meaning: ClassVar[str] = "lower is more private"
    undefined: ClassVar[str] = "no part has a later part of the same user in the window"

    def __post_init__(self) -> None:
        """Validate the parameter."""
        set_fields(self, {"within": check_duration_as_text(self.within, name="within", owner="Linkage")})

    def pair(self, original: Traces, protected: Traces) -> Pairs:
        """Match the protected parts with their owners."""
        return pair_by_owner(original, protected)

    def _detail(self, pairs: Pairs, index: Any) -> pd.DataFrame:
        traces = pairs.protected
        bounds, numbers = traces.segments, traces.segment_owners
        owners = pairs.originals[numbers]
        begins, ends = traces.times[bounds[:-1]], traces.times[bounds[1:] - 1]
        order = np.argsort(begins, kind="stable")
        starts = begins[order]
        window = check_duration(self.within, name="within", owner="Linkage")
        first = np.searchsorted(starts, ends, side="left")
        last = np.searchsorted(starts, ends + window, side="right")
        parts = len(owners)
        counts, right = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
        nearest, linked = np.full(parts, np.inf), np.zeros(parts)
        firsts, lasts = (np.ascontiguousarray(traces.points[rows]) for rows in (bounds[:-1], bounds[1:] - 1))
        threads.run(
            lambda begin, end: linking.find_next(
                firsts, lasts, owners, order, first, last, begin, end, counts, right, nearest, linked
            ),
            threads.fair(last - first),
        )
        kept = right > 0
        columns = {
            "candidates": counts[kept],
            "distance": traces.space.metres(nearest[kept] ** 0.5),
            "linked": linked[kept],
        }
        detail = pd.DataFrame(columns, index=traces.users[numbers[kept]].rename("user"))
        detail.attrs["guess"] = 100 * float(np.mean(right[kept] / counts[kept])) if kept.any() else np.nan
        return detail

    def value(self, detail: pd.DataFrame) -> float:
        """Return the percentage of linked parts among those that have a continuation; NaN without any."""
        return 100 * float(detail.linked.mean())
