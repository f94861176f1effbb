"""Metrics of attackers who know the first half of a data set and receive the second, protected."""

from collections.abc import Callable
from typing import Any

import numpy as np

from promesse_geo.metrics.base import Metric
from promesse_geo.preprocess.gaps import split_gaps
from promesse_geo.traces.columns import Name
from promesse_geo.traces.owners import count_overlapping, number_owners, pool_parts
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
            One trace per user, not split at gaps, or its parts as `prepare(keep_user=True)` names them.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        known : geopandas.GeoDataFrame or Traces
            The type of `original`, with the records before the midpoint: what the attacker knows. It has one trace per
            user, whose segments are the parts.
        to_protect : geopandas.GeoDataFrame or Traces
            The records from the midpoint on, split at gaps into parts named `<user>-00000`, `<user>-00001`, …; parts
            keep their names.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read, or a user has more than 100,000 parts.
        """
        halves: tuple[Callable[[Traces], Traces], ...] = (_known, self._to_protect)
        known, to_protect = (map_traces(original, half, user=user, time=time, selects=True) for half in halves)
        return known, to_protect

    def _to_protect(self, traces: Traces) -> Traces:
        """Return the second half, split at gaps unless it consists of parts already."""
        second = _half(traces, first=False)
        return second if _are_parts(traces) else split_gaps(second, gap=self.gap, keep_user=True)


def _known(traces: Traces) -> Traces:
    """Return the first half, one trace per user."""
    first = _half(traces, first=True)
    if not _are_parts(traces):
        return first
    owners, numbers = number_owners(first)
    order = np.argsort(owners)
    return pool_parts(first, owners[order], np.argsort(order)[numbers])


def _are_parts(traces: Traces) -> bool:
    """Whether all traces are parts of users; those that overlap in time are users whose names end with five digits."""
    owners, _ = number_owners(traces)
    return not owners.equals(traces.users) and not count_overlapping(traces)


def _half(traces: Traces, *, first: bool) -> Traces:
    """Return the records before the midpoint of the period, or those from it on."""
    if not traces.records:
        return traces
    begin, end = int(traces.times.min()), int(traces.times.max())
    before = traces.times < begin + (end - begin) // 2
    return traces.select(before if first else ~before)
