"""The contract of every protection mechanism."""

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.messages import SHORT, CountedWarning, Remark, Text, counted, shown, warn
from promesse_geo.preprocess.problems import Unprepared
from promesse_geo.traces.columns import Name
from promesse_geo.traces.space import Sphere
from promesse_geo.traces.traces import Data, Traces, map_traces
from promesse_geo.validation import subclasses_by_name

_ARRAYS: dict[str, np.dtype] = dict.fromkeys(("times", "offsets", "positions", "breaks"), np.dtype(np.int64))
_ARRAYS |= {"points": np.dtype(np.float64)}
_SLIP = 1e-6  # of squared lengths: 3 m
_CHAIN = "Chain"
_BLOCK = 1 << 15  # points whose lengths are measured at a time

Remarks = str | Remark | Sequence[Remark]
"""What a mechanism warns of: text, or what can be counted."""


def as_remarks(given: Remarks) -> Sequence[Remark]:
    """Return remarks as a sequence."""
    given = Text(given) if isinstance(given, str) else given
    return [given] if isinstance(given, Remark) else given


@dataclass(frozen=True)
class Mechanism(ABC):
    """Base class of protection mechanisms.

    A new mechanism is a frozen dataclass that checks its parameters in `__post_init__` and converts Traces to Traces
    in `_protect`. `protect`, the accessor and `evaluate` accept it unchanged. Optional class attributes are `units`,
    the units of parameters by name for figures, `needs_prepared_data`, for which `protect` warns of gaps, breaks and
    jumps, and `remedy`, what to change if nothing is left of the data. What `_remark` returns is part of the warning.

    Examples
    --------
    >>> from dataclasses import dataclass, replace
    >>> import promesse_geo as pg
    >>> @dataclass(frozen=True)
    ... class Later(pg.Mechanism):
    ...     '''Delay everything by some hours.'''
    ...
    ...     hours: int
    ...
    ...     def _protect(self, traces: pg.Traces) -> pg.Traces:
    ...         return replace(traces, times=traces.times + self.hours * 3_600 * 10**9)
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> city.promesse.protect(Later(3)).time.min() - city.time.min()
    Timedelta('0 days 03:00:00')
    """

    units: ClassVar[Mapping[str, str]] = {}
    """Units of parameters by name, for figures."""

    needs_prepared_data: ClassVar[bool] = False
    """Whether gaps, breaks and jumps spoil the published path; `protect` warns of them then."""

    keeps_breaks: ClassVar[bool] = False
    """Whether nothing is published between segments, so that breaks need no such warning."""

    is_per_user: ClassVar[bool] = True
    """Whether each trace is protected as if its user were alone, so that users can be protected one by one."""

    makes_breaks: ClassVar[bool] = False
    """Whether the result may have breaks that the data have not."""

    keeps_positions: ClassVar[bool] = False
    """Whether the records that are left lie where they were, so that new files of them are for their owner only."""

    keeps_periods: ClassVar[bool] = False
    """Whether what is left of a trace lies within its first and last time, so that times show which trace it is of."""

    remedy: ClassVar[str] = ""
    """Imperative sentence with the command line's options for data of which nothing is left."""

    def protect(self, data: Data, *, user: Name = ..., time: Name = ..., segment: Name = ...) -> Data:
        """Protect a data set.

        Parameters
        ----------
        data : geopandas.GeoDataFrame or Traces
            The original data; it is not changed.
        user, time, segment : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        geopandas.GeoDataFrame or Traces
            Of the type of `data`: only user, time and geometry, in the order of traces, with a fresh index.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> city = pg.make_city(users=2, days=1, recorder="phone")
        >>> list(pg.Promesse(200).protect(city).columns)
        ['user', 'time', 'geometry']
        """
        return map_traces(data, self._protected, user=user, time=time, segment=segment)

    def _protected(self, traces: Traces) -> Traces:
        """Protect Traces and check the result, which may come from code of the user."""
        result = self._protect(traces)
        protected, remark = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
        if not isinstance(protected, Traces):
            kind = type(protected).__name__
            raise TypeError(f"{type(self).__name__}._protect must return Traces. Got a value of type {kind} instead.")
        fault = _fault(protected)
        if fault:
            raise ValueError(f"{type(self).__name__}._protect returned invalid Traces: {fault}. See pg.Traces.")
        self._warn(traces, self._remark(traces, protected) if remark is None else remark)
        return self._note(protected, traces)

    def _note(self, protected: Traces, traces: Traces) -> Traces:
        """Note in protected Traces which mechanism protected them, after those that had protected `traces`."""
        return replace(protected, protection=chained(traces.protection, self.description()))

    def _warn(self, traces: Traces, remark: Remarks) -> None:
        """Warn once of the mechanism's remark, and of data that are not prepared."""
        remarks = list(as_remarks(remark))
        if self.needs_prepared_data:
            remarks.append(Unprepared.of(traces, keeps_breaks=self.keeps_breaks))
        warn(CountedWarning(remarks))

    def _remark(self, traces: Traces, protected: Traces) -> Remarks:
        """Return what to warn of, such as the number of dropped traces, "" if nothing.

        A `Remark` with counts can be added up if a data set is protected in parts.
        """
        return ""

    @abstractmethod
    def _protect(self, traces: Traces) -> Traces | tuple[Traces, Remarks]:
        """Return protected Traces, and the remark if `_remark` cannot derive it from them."""

    @property
    def is_random(self) -> bool:
        """Whether two calls give different results, as they do if there is a seed to set and none is set."""
        return getattr(self, "seed", ...) is None

    def with_seed(self, seed: int | str | None) -> Self:
        """Return the mechanism with a seed if it is random, for repeatable experiments; else itself."""
        return replace(self, seed=seed) if self.is_random else self  # type: ignore[call-arg]

    def settings(self) -> dict[str, Any]:
        """Return the parameters that `with_parameter` can change: all but the seed."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.init and each.name != "seed"}

    def with_parameter(self, name: str, value: Any) -> Self:
        """Return the mechanism with another value of a parameter, one of `settings`."""
        return replace(self, **{name: value})

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that can be published: all but the seed."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.repr}

    def description(self) -> dict[str, Any]:
        """Return the name (`mechanism`) and the public `parameters`, as JSON holds them in files.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> pg.GeoIndistinguishability(0.01, seed=1).description()
        {'mechanism': 'GeoIndistinguishability', 'parameters': {'epsilon': 0.01, 'grid': None}}
        """
        text = json.dumps({"mechanism": type(self).__name__, "parameters": as_json(self.parameters())})
        return dict(json.loads(text))


def mechanism_classes() -> dict[str, type[Mechanism]]:
    """Return all mechanisms by the name of their class: subclasses of subclasses too, those of this package first."""
    return subclasses_by_name(Mechanism)


def chained(first: Mapping[str, Any] | None, then: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the description of what was applied first and what was applied then, each None for nothing.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> zones, promesse = pg.PrivacyZones(600, 500), pg.Promesse(200)
    >>> chained(zones.description(), promesse.description()) == pg.Chain([zones, promesse]).description()
    True
    """
    members = [*members_in(first), *members_in(then)]
    if len(members) > 1:
        return {"mechanism": _CHAIN, "parameters": {"mechanisms": members}}
    return dict(members[0]) if members else None


def members_in(description: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return the descriptions of the members of a chain, or of the only mechanism, if any."""
    if description is None:
        return []
    members = description["parameters"].get("mechanisms")
    return list(members) if description["mechanism"] == _CHAIN and isinstance(members, list) else [description]


def undeclared_breaks(mechanism: Any) -> str:
    """Return the error of a mechanism that makes breaks without saying so, for data that are protected in parts."""
    return (
        f"{type(mechanism).__name__} makes breaks, and does not say so. Set its class attribute makes_breaks to True."
    )


def keeps_positions(protection: Mapping[str, Any] | None) -> bool:
    """Return whether data with a description of a mechanism, or None, hold true positions."""
    classes = mechanism_classes()
    kinds = (classes.get(str(member.get("mechanism"))) for member in members_in(protection))
    return all(getattr(kind, "keeps_positions", False) for kind in kinds)


def keeps_periods(protection: Mapping[str, Any] | None) -> bool:
    """Return whether what is left of each trace lies within its first and last time, by a description."""
    classes = mechanism_classes()
    kinds = [classes.get(str(member.get("mechanism"))) for member in members_in(protection)]
    return bool(kinds) and all(getattr(kind, "keeps_periods", False) for kind in kinds)


def cuts_places(protection: Mapping[str, Any] | None) -> bool:
    """Return whether a mechanism removed records at places, with breaks, and left others as they were, as zones do."""
    classes = mechanism_classes()
    kinds = (classes.get(str(member.get("mechanism"))) for member in members_in(protection))
    return any(getattr(kind, "keeps_positions", False) and getattr(kind, "makes_breaks", False) for kind in kinds)


def includes(protection: Mapping[str, Any] | None, name: str) -> bool:
    """Return whether a mechanism of this name was applied, by a description."""
    return any(member.get("mechanism") == name for member in members_in(protection))


def begins_with(protection: Mapping[str, Any] | None, first: Mapping[str, Any] | None) -> bool:
    """Return whether a description begins with the mechanisms of another one, as of data that were made from it."""
    members = members_in(first)
    return members_in(protection)[: len(members)] == members


def names_of(protection: Mapping[str, Any] | None) -> str:
    """Return the names of the mechanisms of a description: 'PrivacyZones and Promesse'."""
    return " and ".join(str(member["mechanism"]) for member in members_in(protection))


def as_json(value: Any) -> Any:
    """Return a value as JSON holds it.

    Numbers of numpy become plain ones, and what JSON does not hold a text that is the same in every run. Of what may
    hold data, such as frames, it names type and size alone. Mappings whose keys would be the same text become pairs.
    """
    if isinstance(value, np.generic):
        value = value.item() if isinstance(value.item(), (bool, int, float, str)) else value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        keys = [key if isinstance(key, str) else _text(key) for key in value]
        values = [as_json(each) for each in value.values()]
        pairs = zip(keys, values, strict=True)
        return dict(pairs) if len(set(keys)) == len(keys) else [list(pair) for pair in pairs]
    if isinstance(value, (set, frozenset)):
        return sorted((as_json(each) for each in value), key=str)
    return [as_json(each) for each in value] if isinstance(value, (list, tuple)) else _text(value)


def _text(value: Any) -> str:
    """Return a text of a value that is the same in every run."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, Enum):
        return str(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, np.generic):
        value = value.item() if isinstance(value.item(), (bool, int, float, str)) else value
    return repr(value) if isinstance(value, SHORT) or value is None else shown(value)


def _fault(traces: Traces) -> str:
    """What is wrong with Traces that a mechanism made, if anything: metrics would take them for private."""
    return _fault_of_arrays(traces) or _fault_of_points(traces) or _fault_of_order(traces)


def _fault_of_arrays(traces: Traces) -> str:
    """What is wrong with types and lengths."""
    for name, kind in _ARRAYS.items():
        array = getattr(traces, name)
        if not isinstance(array, np.ndarray) or array.dtype != kind:
            return f"{name} must be a numpy array of {kind}"
    users, offsets, records = traces.users, traces.offsets, len(traces.times)
    if not isinstance(users, pd.Index) or not users.is_unique or users.hasnans:
        return "users must be a pandas.Index of distinct users, none missing"
    if any(getattr(traces, name).ndim != 1 for name in _ARRAYS if name != "points") or not len(offsets):
        return "arrays other than points must have one dimension, and offsets one or more numbers"
    if (
        len(offsets) != len(traces.users) + 1
        or offsets[0] != 0
        or offsets[-1] != records
        or (np.diff(offsets) <= 0).any()
    ):
        return "offsets must run from 0 to the number of records, with one or more for each user"
    if traces.points.shape != (records, traces.space.dimension) or len(traces.positions) != records:
        return "arrays must have one length, and points the dimension of the space"
    return ""


def _fault_of_points(traces: Traces) -> str:
    """What is wrong with locations."""
    slip = _slip(traces)
    bad = 0 if np.isfinite(slip) else int((~np.isfinite(traces.points)).any(axis=1).sum())
    if bad:
        return f"{counted(bad, 'record')} of {len(traces.points):,} without a location (NaN or infinite)"
    if isinstance(traces.space, Sphere) and not slip <= _SLIP:
        return "points on the sphere must be vectors of length 1"
    return ""


def _fault_of_order(traces: Traces) -> str:
    """What is wrong with the order of times and breaks."""
    offsets, records = traces.offsets, len(traces.times)
    backward = np.flatnonzero(traces.times[1:] < traces.times[:-1]) + 1
    if not np.isin(backward, offsets).all():
        return "records must be in order of time"
    breaks = traces.breaks
    if (
        (np.diff(breaks) <= 0).any()
        or (len(breaks) and not 0 < breaks[0] <= breaks[-1] < records)
        or np.isin(breaks, offsets).any()
    ):
        return "breaks must be ascending positions of records, never the first of a trace"
    return ""


def _slip(traces: Traces) -> float:
    """Return how far any squared length is from 1 on the sphere, in the plane 0; NaN or infinite if any number is."""
    points = traces.points
    with np.errstate(invalid="ignore", over="ignore"):
        if not isinstance(traces.space, Sphere):
            return float(points.sum() * 0)  # needs no memory in the usual case
        slips: list[float] = []

        def measure(first: int, last: int) -> None:
            for start in range(first, last, _BLOCK):
                block = points[start : min(start + _BLOCK, last)]
                squares = np.einsum("ij,ij->i", block, block)
                slips.extend((squares.max() - 1, 1 - squares.min()))

        threads.run(measure, threads.even(len(points)))
        return float(np.max(slips, initial=0))


def allocate(shape: tuple[int, int], dtype: Any, *, share: float, error: str) -> np.ndarray:
    """Return an uninitialized array of a shape, or raise MemoryError if it needs more than a share of the memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    try:
        if shape[0] * shape[1] * np.dtype(dtype).itemsize > share * memory:
            raise MemoryError
        return np.empty(shape, dtype)
    except MemoryError:
        raise MemoryError(error) from None
