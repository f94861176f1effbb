"""The contract of every metric."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.messages import counted, invalid
from promesse_geo.traces.columns import Name
from promesse_geo.traces.pairs import Pairs, align
from promesse_geo.traces.traces import Traces, as_traces

_CHUNK = 32_768  # values marked at a time
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio

Detail = pd.DataFrame | pd.Series
"""What a metric finds, on its own index: per trace, record or query."""


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """What a metric computed of the original alone, with the metric and what tells that original from others."""

    metric: "Metric"
    mark: bytes
    found: Any


@dataclass(frozen=True)
class Metric(ABC):
    """A metric: a frozen dataclass of checked parameters that compares original and protected data.

    A new metric is one file with one frozen dataclass that checks its parameters in `__post_init__`, says its `unit`,
    looks closely in `_detail` and sums up in `value`. What depends on the original alone comes from `_index`, so that
    many protected versions of one data set share it.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import Any
    >>> import pandas as pd, promesse_geo as pg
    >>> @dataclass(frozen=True)
    ... class Delay(pg.Metric):
    ...     '''How much later each protected trace begins.'''
    ...
    ...     unit = "s"
    ...
    ...     def _detail(self, pairs: Any, index: None) -> pd.Series:
    ...         first = pairs.original.times[pairs.original.offsets[:-1]]
    ...         later = pairs.protected.times[pairs.protected.offsets[:-1]] - first[pairs.originals]
    ...         return pd.Series(later / 10**9, pairs.protected.users)
    ...
    ...     def value(self, detail: pd.Series) -> float:
    ...         return float(detail.mean())
    >>> city = pg.make_city(users=2, days=1)
    >>> Delay().value(Delay().detail(city, city))
    0.0
    """

    unit: ClassVar[str]
    per_record: ClassVar[bool] = False
    """Whether the detail has one row per protected record, in the order of `Pairs.protected`."""

    def index(self, original: gpd.GeoDataFrame | Traces, *, user: Name = ..., time: Name = ...) -> Index:
        """Compute what depends on the original data alone.

        Parameters
        ----------
        original : geopandas.GeoDataFrame or Traces
            The original data.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        Index
            To be handed to `detail`, for any protected version of the same data.
        """
        traces = as_traces(original, user=user, time=time)
        return Index(self, mark_of(traces), self._index(traces))

    def detail(
        self,
        original: gpd.GeoDataFrame | Traces,
        protected: gpd.GeoDataFrame | Traces,
        *,
        index: Any = None,
        user: Name = ...,
        time: Name = ...,
    ) -> Any:
        """Compare protected data with the original, trace by trace, record by record or query by query.

        Parameters
        ----------
        original, protected : geopandas.GeoDataFrame or Traces
            Both may differ in CRS and in the order of rows. Users that the mechanism dropped may lack.
        index : Index, optional
            What `index(original)` returned; computed where it is not given.
        user, time : column name, None or ...
            Columns of both frames; see `Traces.from_frame`.

        Returns
        -------
        pandas.DataFrame or pandas.Series
            On the metric's own index. One row per protected record has the index of the frame `protected`; of
            Traces, that of the frame that they make.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read, only one of the two has a time zone, the original lacks users, or the index is
            of other data or of another metric.
        """
        before, after = (as_traces(data, user=user, time=time) for data in (original, protected))
        pairs = self._paired(before, after)
        detail = self._detail(pairs, self._index_of(before, index))
        if self.per_record and isinstance(protected, gpd.GeoDataFrame):
            return as_rows_of(protected, detail, after.positions)
        return detail

    @abstractmethod
    def value(self, detail: Any) -> float:
        """Sum up a detail in one number of `unit`; NaN where there is nothing to sum up."""

    def _index_of(self, original: Traces, index: Any) -> Any:
        """What depends on the original alone, from an index that is checked, or anew."""
        if index is None:
            return self._index(original)
        owner = type(self).__name__
        cure = f"Leave it out, or give what {owner}.index returns for the same original data."
        if not isinstance(index, Index):
            raise TypeError(invalid("index", owner, "an index", index, cure=cure))
        if index.metric is not self and index.metric != self:
            raise ValueError(f"The 'index' parameter of {owner} was made by a metric of other parameters. {cure}")
        if index.mark != mark_of(original):
            raise ValueError(f"The 'index' parameter of {owner} was made of other original data. {cure}")
        return index.found

    def _paired(self, original: Traces, protected: Traces) -> Pairs:
        """Put protected traces beside the original ones; a metric that knows better who is who has its own way."""
        return paired(original, protected)

    @abstractmethod
    def _detail(self, pairs: Pairs, index: Any) -> Detail:
        """Look closely."""

    def _index(self, original: Traces) -> Any:
        """What depends on the original alone; by default nothing."""
        return None


def mark_of(traces: Traces) -> bytes:
    """A fingerprint that costs little more than reading the data: space, offsets, and all bits by their places."""
    mark = hashlib.blake2b(repr((type(traces.space).__name__, traces.space.crs.to_wkt())).encode())
    for values in (traces.points, traces.times, traces.offsets):
        mark.update(_marks(values.reshape(-1).view(np.uint64)).tobytes())
    return mark.digest()


def _marks(bits: np.ndarray) -> np.ndarray:
    """For each chunk the sum of its bits, mixed with their places so that no sum of changes cancels; modulo 2^64."""
    marks = np.empty(-(-len(bits) // _CHUNK), np.uint64)
    places = np.arange(_CHUNK, dtype=np.uint64) * _ODD

    def mark(first: int, last: int) -> None:
        for chunk in range(first, last):
            part = bits[chunk * _CHUNK : (chunk + 1) * _CHUNK]
            mixed = part + places[: len(part)]
            mixed ^= mixed >> np.uint64(32)
            mixed *= _ODD
            mixed ^= mixed >> np.uint64(29)
            marks[chunk] = mixed.sum()

    threads.run(mark, np.append(threads.even(len(bits))[:-1] // _CHUNK, len(marks)))
    return marks


def paired(original: Traces, protected: Traces) -> Pairs:
    """Put protected traces beside the original ones of their users.

    Raises
    ------
    ValueError
        If the original lacks users of the protected data, only one of the two has a time zone, or a protected
        location has no place in the original's CRS.
    """
    pairs = align(original, protected)
    unknown = ~protected.users.isin(pairs.protected.users)
    if unknown.any():
        row = int(protected.positions[np.repeat(unknown, protected.counts)].min())
        raise ValueError(_unknown_users(int(unknown.sum()), len(unknown), row))
    return pairs


def _unknown_users(unknown: int, users: int, row: int) -> str:
    where = f"first in row {row:,}, counted from 0"
    if unknown == users:
        return (
            f"The original has none of the {counted(users, 'user')} of the protected data ({where}). Prepare the "
            "original first, protect the prepared data keeping its users, and compare those two: "
            "parts = gdf.promesse.prepare(), then parts.promesse.smooth(200)."
        )
    return (
        f"The original lacks {unknown:,} of the {counted(users, 'user')} of the protected data ({where}). "
        "Compare with the data that was protected, and before users are renamed."
    )


def as_rows_of(frame: gpd.GeoDataFrame, detail: Any, positions: np.ndarray) -> Any:
    """Return a detail per record in the order, and with the index, of the frame that was read."""
    rows = np.empty_like(positions)
    rows[positions] = np.arange(len(positions))
    return detail.take(rows).set_axis(frame.index)
