"""Metrics of attackers who know the first half of a data set and receive the second, protected."""

from collections.abc import Callable
from typing import Any

from promesse_geo.metrics.base import Metric
from promesse_geo.preprocess.gaps import split_gaps
from promesse_geo.traces.columns import Name
from promesse_geo.traces.owners import number_owners
from promesse_geo.traces.traces import Data, Traces, map_traces


class HalvesMetric(Metric):
    """A metric that splits the original data into what the attacker knows and what is protected."""

    gap: Any = "4h"
    """Shortest gap at which the traces of the second half are split: text, a timedelta or seconds."""

    def split(self, original: Data, *, user: Name = ..., time: Name = ...) -> tuple[Data, Data]:
        """Split a data set at the midpoint of its period.

        Parameters
        ----------
        original : geopandas.GeoDataFrame or Traces
            One trace per user, not split at gaps; for `HeatMapReidentification` also its parts, as
            `prepare(keep_user=True)` names them.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        known : geopandas.GeoDataFrame or Traces
            The type of `original`, with the records before the midpoint: what the attacker knows.
        to_protect : geopandas.GeoDataFrame or Traces
            The records from the midpoint on, split at gaps into parts named `<user>-00000`, `<user>-00001`, …; parts
            keep their names.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read, or a user has more than 100,000 parts.
        """
        halves: tuple[Callable[[Traces], Traces], ...] = (
            lambda traces: _half(traces, first=True),
            lambda traces: self._as_parts(_half(traces, first=False)),
        )
        known, second = (map_traces(original, half, user=user, time=time, selects=True) for half in halves)
        return known, second

    def _as_parts(self, traces: Traces) -> Traces:
        """Return traces split at gaps, unless they are parts already."""
        owners, _ = number_owners(traces)
        return split_gaps(traces, gap=self.gap, keep_user=True) if owners.equals(traces.users) else traces


def _half(traces: Traces, *, first: bool) -> Traces:
    """Return the records before the midpoint of the period, or those from it on."""
    if not traces.records:
        return traces
    begin, end = int(traces.times.min()), int(traces.times.max())
    before = traces.times < begin + (end - begin) // 2
    return traces.select(before if first else ~before)
