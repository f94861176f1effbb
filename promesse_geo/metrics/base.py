"""The contract of every metric."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo.messages import invalid
from promesse_geo.metrics.pairing import pair_by_user, warn_if_exchanged
from promesse_geo.traces.columns import Name
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.traces.values import read_users
from promesse_geo.validation import subclasses_by_name


class Parts(Protocol):
    """Original and protected data that are divided by user, such as the partitions of a cluster."""

    def map(self, work: Callable[..., Any], given: Sequence[Any] = ()) -> list[Any]:
        """Return `work(original, protected, *given)` of each part: Traces of the same users."""


Detail = pd.DataFrame | pd.Series
"""The result of a detailed comparison, one row per trace, record or query."""


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """What a metric computes from the original data alone, reusable for all protected versions of the same data.

    Parameters
    ----------
    metric : Metric
        The metric that computed the index.
    original : Traces
        The original data.
    content : Any
        What `Metric._index` returned.
    """

    metric: "Metric"
    original: Traces
    content: Any


@dataclass(frozen=True)
class Metric(ABC):
    """A metric compares original and protected data. It is a frozen dataclass of validated parameters.

    A new metric is one file with one frozen dataclass that validates its parameters in `__post_init__`, names its
    `unit`, compares in `_detail` and aggregates in `value`. `label` names it in figures and tables; the default is the
    name of the class in words. `meaning` says how to read the value, such as "lower is more private". What depends on
    the original data alone comes from `_index` and is computed once for all protected versions.

    Empty data must give an empty detail of the same types, and `value` must return NaN for it. If only the protected
    data are empty, return NaN or the value that this means, such as 0 for a share of the original data.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import Any
    >>> import pandas as pd, promesse_geo as pg
    >>> @dataclass(frozen=True)
    ... class Delay(pg.Metric):
    ...     '''Mean delay of the first record of each trace.'''
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
    >>> Delay().measure(city, city), Delay.label
    (0.0, 'delay')
    """

    unit: ClassVar[str]
    """Unit of the value, such as "%" or "m"."""

    label: ClassVar[str]
    """Name of the value in figures and tables."""

    meaning: ClassVar[str] = ""
    """How to read the value, in a few words for figures and texts: which values are better, or what it counts."""

    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    """The smallest and the largest value that are possible."""

    undefined: ClassVar[str] = "nothing to compare"
    """Why the value can be NaN although both data sets have records, in words for tables."""

    per_record: ClassVar[bool] = False
    """Whether the detail has one row per protected record, in the order of `Pairs.protected`."""

    is_per_user: ClassVar[bool] = False
    """Whether the detail is a table with a row for each original user, which depends on the user's data alone.

    Such metrics also measure data that are divided by user; see `measure_parts`. Nothing in the detail may be estimated
    from the data of other users, such as a median or a noise.
    """

    maps_once: ClassVar[bool] = True
    """Whether `measure_parts` reads each part once."""

    def __init_subclass__(cls) -> None:
        """Set the default label of a new metric."""
        super().__init_subclass__()
        if "label" not in vars(cls):
            cls.label = name_in_words(cls.__name__)

    def measure(
        self,
        original: gpd.GeoDataFrame | Traces,
        protected: gpd.GeoDataFrame | Traces,
        *,
        user: Name = ...,
        time: Name = ...,
    ) -> float:
        """Compare protected data with the original and return the value.

        Parameters
        ----------
        original, protected, user, time
            As for `detail`.

        Returns
        -------
        float
            In `unit`; NaN without anything to compare.

        Raises
        ------
        TypeError, ValueError, KeyError
            As for `detail`.
        """
        return self.value(self.detail(original, protected, user=user, time=time))

    def measure_parts(self, parts: Parts) -> float:
        """Compare data that are divided by user, and return the value that they would have together.

        Parameters
        ----------
        parts : Parts
            The data.

        Returns
        -------
        float
            In `unit`; NaN without anything to compare.

        Raises
        ------
        ValueError
            If the metric compares users with each other.
        """
        if not self.is_per_user:
            raise ValueError(
                f"{type(self).__name__} compares users with each other, so it needs all data in memory. Use pg.measure."
            )
        return self._measure_by_user(parts)

    def _measure_by_user(self, parts: Parts) -> float:
        """Return the value of the details of users together."""
        details = parts.map(_detail_of, [self])
        table = pd.concat([detail for detail in details if len(detail)] or details[:1])
        ranks, users = read_users(pd.Series(table.index, name="user"))
        if len(users) < len(table):
            raise ValueError("Parts hold the same users. Divide the data by user first.")
        return self.value(table.iloc[np.argsort(ranks)])

    @property
    def is_divisible(self) -> bool:
        """Whether the value follows from the details of portions of protected users, each beside the whole original."""
        return self.is_per_user or type(self).value_of_portions is not Metric.value_of_portions

    def condense(self, detail: Any, first: int, last: int) -> Any:
        """Return what `value_of_portions` needs of the detail of a portion of protected users.

        Parameters
        ----------
        detail : pandas.DataFrame or pandas.Series
            What `compare` returned for all original users and the protected ones of the portion.
        first, last : int
            The portion has the original users at the positions first … last − 1.
        """
        return detail.iloc[first:last].copy()  # without the rest

    def value_of_portions(self, condensed: Sequence[Any]) -> float:
        """Return the value of all portions of protected users together.

        Parameters
        ----------
        condensed : sequence
            What `condense` returned for each portion, one or more.
        """
        return self.value(pd.concat(condensed))

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
            Pass it to `detail` for any protected version of the same data.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read.
        """
        traces = as_traces(original, user=user, time=time)
        return Index(self, traces, self._index(traces))

    def detail(
        self,
        original: gpd.GeoDataFrame | Traces,
        protected: gpd.GeoDataFrame | Traces,
        *,
        index: Any = None,
        user: Name = ...,
        time: Name = ...,
    ) -> Any:
        """Compare protected data with the original by trace, record or query.

        Parameters
        ----------
        original, protected : geopandas.GeoDataFrame or Traces
            They may differ in CRS and in the order of rows. Users that the mechanism dropped may be missing.
        index : Index, optional
            What `index(original)` returned. The default is to compute it.
        user, time : column name, None or ...
            Columns of both frames; see `Traces.from_frame`.

        Returns
        -------
        pandas.DataFrame or pandas.Series
            Indexed as the metric documents. With one row per protected record, the index is that of the frame
            `protected`, or for Traces that of the frame that they make.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read, only one of the two has a time zone, the original lacks users of the protected
            data, or the index belongs to other data or to another metric.

        Warns
        -----
        UserWarning
            If the original notes a mechanism that moved or dropped positions, and the protected data does not begin
            with it: the two may be exchanged.
        """
        before, after = (as_traces(data, user=user, time=time) for data in (original, protected))
        pairs = self.pair(before, after)
        warn_if_exchanged(before, after)
        detail = self.compare(pairs, index)
        if self.per_record and isinstance(protected, pd.DataFrame):
            return as_rows_of(protected, detail, after.positions)
        return detail

    def for_halves(self, known: Traces, to_protect: Traces) -> "Metric":
        """Return the metric with which `evaluate` measures the halves that its `split` made; itself by default."""
        return self

    def for_mechanism(self, mechanism: Any) -> "Metric":
        """Return the metric with which `evaluate` measures what a mechanism protected; itself by default.

        Override it in a metric whose attacker knows the mechanism and applies it himself.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism of the run. If it is random, it has a seed of its own, which depends on that of the run.

        Returns
        -------
        Metric
        """
        return self

    def pair(self, original: Traces, protected: Traces) -> Pairs:
        """Match protected traces with the original ones of their users.

        Override it in a metric that matches in another way. `evaluate` shares the pairs of all metrics that do not.

        Parameters
        ----------
        original, protected : Traces
            The data to compare.

        Returns
        -------
        Pairs

        Raises
        ------
        ValueError
            If the original lacks users of the protected data, only one of the two has a time zone, or a protected
            location has no coordinates in the CRS of the original.
        """
        return pair_by_user(original, protected)

    def compare(self, pairs: Pairs, index: Index | None = None) -> Any:
        """Compare matched traces: `detail` for data that `pair` matched.

        Parameters
        ----------
        pairs : Pairs
            What `pair` returned.
        index : Index, optional
            What `index(original)` returned. The default is to compute it.

        Returns
        -------
        pandas.DataFrame or pandas.Series
            As of `detail`, one row per protected record in the order of `pairs.protected`.

        Raises
        ------
        TypeError, ValueError
            If the index belongs to other data or to another metric.
        """
        return self._detail(pairs, self._content(pairs.original, index))

    @abstractmethod
    def value(self, detail: Any) -> float:
        """Aggregate a detail to one number in `unit`; NaN without rows to aggregate."""

    def guess(self, detail: Any) -> float:
        """Return the value that guessing reaches, from a detail: its `attrs["guess"]`; NaN if there is none.

        Parameters
        ----------
        detail : pandas.DataFrame or pandas.Series
            What `detail` returned.

        Returns
        -------
        float
            In `unit`.
        """
        return float(getattr(detail, "attrs", {}).get("guess", math.nan))

    def why_undefined(self, pairs: Pairs) -> str:
        """Return in words why the value for matched traces is NaN.

        Parameters
        ----------
        pairs : Pairs
            What `pair` returned.

        Returns
        -------
        str
            The data set without records, if any, else `undefined`.
        """
        return self.why_undefined_of(pairs.original.records, pairs.protected.records)

    def why_undefined_of(self, original: int, protected: int) -> str:
        """Return in words why the value is NaN, given the numbers of records."""
        counts = {"original": original, "protected": protected}
        empty = [f"the {name} data has no records" for name, records in counts.items() if not records]
        return empty[0] if empty else self.undefined

    def _content(self, original: Traces, index: Any) -> Any:
        """Return what depends on the original alone: from a validated index, or computed."""
        if index is None:
            return self._index(original)
        owner = type(self).__name__
        cure = f"Omit it, or pass what {owner}.index returns for the same original data."
        if not isinstance(index, Index):
            raise TypeError(invalid("index", owner, "an index", index, cure=cure))
        if index.metric is not self and index.metric != self:
            raise ValueError(f"The 'index' parameter of {owner} was made by a metric with other parameters. {cure}")
        if not _is_same_data(index.original, original):
            raise ValueError(f"The 'index' parameter of {owner} was made from other original data. {cure}")
        return index.content

    @abstractmethod
    def _detail(self, pairs: Pairs, index: Any) -> Detail:
        """Compare in detail: a Series or DataFrame, empty but of the same types if there is nothing to compare."""

    def _index(self, original: Traces) -> Any:
        """Compute what depends on the original alone; nothing by default."""
        return None


def _detail_of(original: Traces, protected: Traces, metric: Metric) -> Any:
    """Compare the traces of a part."""
    return metric.compare(metric.pair(original, protected))


def metric_classes() -> dict[str, type[Metric]]:
    """Return all metrics by the name of their class."""
    return subclasses_by_name(Metric)


def name_in_words(name: str) -> str:
    """Return the name of a class in lower-case words; acronyms stay as they are."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z_]+", name)
    return " ".join(word if len(word) > 1 and word.isupper() else word.lower() for word in words)


def _is_same_data(first: Traces, second: Traces) -> bool:
    """Whether two Traces have the same records and breaks. The same object has, without comparison."""
    arrays = ((traces.offsets, traces.breaks, traces.times, traces.points) for traces in (first, second))
    return first is second or (first.space == second.space and all(map(np.array_equal, *arrays)))


def score(original: np.ndarray, protected: np.ndarray, shared: np.ndarray) -> dict[str, np.ndarray]:
    """Return precision, recall and F-score of counts.

    Parameters
    ----------
    original, protected : numpy.ndarray of int64, shape (traces,)
        Number of items of each original and each protected trace.
    shared : numpy.ndarray of int64, shape (traces,)
        Number of items of the original trace that the protected one has as well.

    Returns
    -------
    dict of str to numpy.ndarray of float64, shape (traces,)
        `precision` = shared / protected and `recall` = shared / original, NaN without any, and their harmonic mean
        `fscore` = 2 · shared / (original + protected), 0 without any.
    """
    precision, recall = np.full((2, len(shared)), np.nan)
    np.divide(shared, protected, out=precision, where=protected > 0)
    np.divide(shared, original, out=recall, where=original > 0)
    return {"precision": precision, "recall": recall, "fscore": 2 * shared / np.maximum(original + protected, 1)}


def as_rows_of(frame: gpd.GeoDataFrame, detail: Any, positions: np.ndarray) -> Any:
    """Return a detail per record in the order and with the index of the frame.

    Parameters
    ----------
    frame : geopandas.GeoDataFrame
        The protected data.
    detail : pandas.Series or pandas.DataFrame
        One row per record, in the order of traces.
    positions : numpy.ndarray of int64, shape (records,)
        Row of the frame of each record.

    Returns
    -------
    pandas.Series or pandas.DataFrame
    """
    rows = np.empty_like(positions)
    rows[positions] = np.arange(len(positions))
    return detail.take(rows).set_axis(frame.index)
