"""The contract of every protection mechanism."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from promesse_geo.messages import counted
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, Traces, map_traces


@dataclass(frozen=True)
class Mechanism(ABC):
    """A protection mechanism: a frozen dataclass of checked parameters with one method, `_protect`.

    A new mechanism is one file with one frozen dataclass that checks its parameters in `__post_init__` and turns
    Traces into Traces in `_protect`. `protect`, the accessor and `evaluate` then take it unchanged.

    Examples
    --------
    >>> from dataclasses import dataclass, replace
    >>> import promesse_geo as pg
    >>> @dataclass(frozen=True)
    ... class Later(pg.Mechanism):
    ...     '''Publish everything some hours later.'''
    ...
    ...     hours: int
    ...
    ...     def _protect(self, traces: pg.Traces) -> pg.Traces:
    ...         return replace(traces, times=traces.times + self.hours * 3_600 * 10**9)
    >>> city = pg.make_city(users=2, days=1)
    >>> city.promesse.protect(Later(3)).time.min() - city.time.min()
    Timedelta('0 days 03:00:00')
    """

    units: ClassVar[Mapping[str, str]] = {}
    """Units of parameters by name, for figures."""

    def protect(self, data: Data, *, user: Name = ..., time: Name = ...) -> Data:
        """Protect a data set.

        Parameters
        ----------
        data : geopandas.GeoDataFrame or Traces
            The original data; it is not changed.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        geopandas.GeoDataFrame or Traces
            The kind that came: user, time and geometry only, in the order of traces, with a fresh index.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=2)
        >>> list(pg.Promesse(200).protect(city).columns)
        ['user', 'time', 'geometry']
        """
        return map_traces(data, self._protected, user=user, time=time)

    def _protected(self, traces: Traces) -> Traces:
        """What `_protect` gives, which others may have written."""
        protected = self._protect(traces)
        if not isinstance(protected, Traces):
            kind = type(protected).__name__
            raise TypeError(f"{type(self).__name__}._protect must return Traces. Got a value of type {kind} instead.")
        fault = _fault(protected)
        if fault:
            raise ValueError(f"{type(self).__name__}._protect returned Traces {fault}. pg.Traces says what they hold.")
        return protected

    @abstractmethod
    def _protect(self, traces: Traces) -> Traces:
        """Turn Traces into protected Traces."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that may be published: all but the seed."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.repr}


def _fault(traces: Traces) -> str:
    """What is wrong with Traces that somebody made by hand, if anything: such would look private to every metric."""
    offsets, records = traces.offsets, traces.records
    if len(offsets) != len(traces) + 1 or offsets[0] != 0 or offsets[-1] != records or (traces.counts <= 0).any():
        return "whose offsets do not lead from 0 to the number of records, with a record for each user"
    if traces.points.shape != (records, traces.space.dimension) or len(traces.positions) != records:
        return "whose arrays differ in length, or whose points are not of their space"
    with np.errstate(invalid="ignore", over="ignore"):
        whole = np.isfinite(traces.points.sum())  # takes no memory, as long as all is well
    bad = 0 if whole else int((~np.isfinite(traces.points)).any(axis=1).sum())
    if bad:
        return f"with {counted(bad, 'record')} of {records:,} without a location (NaN or infinite)"
    back = np.flatnonzero(traces.times[1:] < traces.times[:-1]) + 1
    if not np.isin(back, offsets).all():
        return "with records that are not in the order of their times"
    return ""
