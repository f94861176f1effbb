"""POI retrieval from what speed smoothing leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
from geopandas.array import GeometryArray

from promesse_geo import threads
from promesse_geo.kernels import poi_inference
from promesse_geo.metrics.attacks.poi_retrieval import Located, PoiRetrieval
from promesse_geo.metrics.base import Parts
from promesse_geo.traces.columns import Name
from promesse_geo.traces.pairs import align
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.traces.values import make_points, read_users
from promesse_geo.validation import check_number, set_fields

_STEPS = 3  # a path that returns after more steps went around a block
_BEYOND = 0.25  # share of a step by which a POI lies beyond the last point before the turn
_NEGLIGIBLE = 1e-3  # share of a step below which a direction is undefined
_MOST = 1_000_000  # distances, about, of which the step is the median
_START, _END, _TURN = "start", "end", "turn"


class _Residues(NamedTuple):
    """Residues in the order of traces: number of the trace or segment, location and kind of each."""

    traces: np.ndarray
    points: np.ndarray
    kinds: np.ndarray


@dataclass(frozen=True)
class Residue(PoiRetrieval):
    """POI retrieval from the path that speed smoothing (Promesse) publishes.

    Promesse hides how long a user stayed, not the path there and back. The attacker sees the protected data alone and
    takes the median distance between consecutive points for ε (one step). The residues are

    - ends: the points one step before the first and one step after the last published point of a trace, or of a
      segment of a trace with breaks, straight on, where Promesse removed the true start and end. A single point is its
      own residue.
    - turns: stretches of path that return within `closeness` steps of where they began after two or three steps: a path
      there and back, a small loop, or jitter above ε. Overlapping turns are one turn, located at the mean of its points
      and a quarter of a step farther out.

    A turn is not always a stay, so there are false positives. The detail is that of `PoiRetrieval`, with the residues
    as `protected_pois`: `precision` is the share of the residues that retrieve a POI. Matching and value are also the
    same. Compare with `PoiRetrieval`, which finds almost nothing in smoothed data. The value has no meaning for other
    mechanisms. The step is that of all data: `evaluate` keeps all protected data in memory for it, and data that are
    divided are read three times.

    Parameters
    ----------
    diameter : float
        Greatest distance in metres between any two records of an original stay.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of an original stay.
    threshold : float
        Greatest distance in metres at which an original POI is retrieved.
    closeness : float
        Greatest distance in steps between the ends of a turn, from 0.01 to 1. Smaller values find fewer POIs with
        fewer false positives.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    References
    ----------
    Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data with
    High Utility. TrustCom 2015, section IV (the mechanism). The attack is specific to this implementation.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.prepare(pg.make_city(users=5, days=3), tz="Europe/Paris", keep_user=True)
    >>> safe = pg.Promesse(100).protect(city)
    >>> pg.Residue().measure(city, safe) > 20 + pg.PoiRetrieval().measure(city, safe)
    True
    """

    is_per_user: ClassVar[bool] = False  # the step is estimated from all users
    maps_once: ClassVar[bool] = False

    closeness: float = field(default=0.75, kw_only=True)
    _step: float | None = field(default=None, init=False, repr=False, compare=False)
    label: ClassVar[str] = "residue attack, F-score"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        super().__post_init__()
        steps = check_number(self.closeness, name="closeness", owner="Residue", unit="steps", low=0.01, high=1)
        object.__setattr__(self, "closeness", steps)

    def find(self, protected: gpd.GeoDataFrame | Traces, *, user: Name = ..., time: Name = ...) -> gpd.GeoDataFrame:
        """Find the residues in protected data.

        Parameters
        ----------
        protected : geopandas.GeoDataFrame or Traces
            The protected data.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        geopandas.GeoDataFrame
            One row per residue in the order of traces: user, kind ("start", "end" or "turn") and location in the CRS
            of the data.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> safe = pg.make_city(users=2, days=1, recorder="phone").promesse.smooth(100)
        >>> pg.Residue().find(safe)["kind"].value_counts()["start"].item()
        2
        """
        traces = as_traces(protected, user=user, time=time)
        residues = self._find(traces)
        points = GeometryArray(make_points(*traces.space.coordinates(residues.points)), crs=traces.space.crs)
        columns = {"user": traces.users.take(residues.traces), "kind": residues.kinds, "geometry": points}
        return gpd.GeoDataFrame(columns, geometry="geometry")

    def measure_parts(self, parts: Parts) -> float:
        """Return the mean F-score of data that are divided by user; the step is that of all of them.

        Parameters
        ----------
        parts : Parts
            The data.
        """
        with_step = replace(self)
        set_fields(with_step, {"_step": _step_of_parts(parts)})
        return with_step._measure_by_user(parts)

    def _attack(self, protected: Traces) -> Located:
        residues = self._find(protected)
        return residues.points, as_offsets(np.bincount(residues.traces, minlength=len(protected)))

    def _find(self, traces: Traces) -> _Residues:
        parts = (_ends(traces, first=True), self._turns(traces), _ends(traces, first=False))
        together = _Residues(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        order = np.argsort(together.traces, kind="stable")
        points = together.points[order]
        if traces.space.curvature:
            points /= np.linalg.norm(points, axis=1, keepdims=True)
        return _Residues(traces.segment_owners[together.traces[order]], points, together.kinds[order])

    def _turns(self, traces: Traces) -> _Residues:
        points, segments = traces.points, traces.segments
        step = _step_of(traces) if self._step is None else self._step
        marks = np.empty(traces.records, bool)
        limit = traces.space.chord(self.closeness * step) ** 2
        threads.run(
            lambda first, last: poi_inference.mark_returns(points, segments, limit, _STEPS, first, last, marks),
            threads.fair(np.diff(segments)),
        )
        inside = np.flatnonzero(marks)
        numbers = np.searchsorted(segments, inside, side="right") - 1
        begins = np.flatnonzero(np.diff(inside, prepend=-2) > 1)  # the ends of a trace are never in a turn
        counts = np.diff(begins, append=len(inside))
        if not len(begins):
            return _Residues(numbers, points[:0], np.full(0, _TURN))
        centres = np.add.reduceat(points[inside], begins) / counts[:, None]
        firsts = inside[begins]
        outward = centres - (points[firsts - 1] + points[firsts + counts]) / 2
        lengths = np.linalg.norm(outward, axis=1, keepdims=True)
        far = step / traces.space.scale
        np.divide(outward * _BEYOND * far, lengths, out=outward, where=lengths > _NEGLIGIBLE * far)
        centres += outward
        return _Residues(numbers[begins], centres, np.full(len(centres), _TURN))


def _step_of(traces: Traces) -> float:
    """Return the median distance in metres between consecutive points of the data set; 0 without any."""
    firsts = _find_steps(traces)
    return _median(_lengths(traces, firsts[:: _stride(len(firsts))])) * traces.space.scale


def _step_of_parts(parts: Parts) -> float:
    """Return the step of all parts together: the median of the distances that `_step_of` takes of them."""
    sizes = parts.map(_count_steps)
    ranks, users = read_users(pd.Series([user for names, _, _ in sizes for user in names], name="user"))
    ordered = np.zeros(len(users), np.int64)
    np.add.at(ordered, ranks, np.concatenate([counts for _, counts, _ in sizes]))
    before, stride = np.cumsum(ordered) - ordered, _stride(int(ordered.sum()))
    lengths = parts.map(_sample_steps, [dict(zip(users, before.tolist(), strict=True)), stride])
    return _median(np.concatenate(lengths)) * sizes[0][2]


def _count_steps(original: Traces, protected: Traces) -> tuple[list[Any], np.ndarray, float]:
    """Return the protected users of a part, the number of steps of each, and the metres in a unit of kernels."""
    traces = align(original, protected).protected
    return traces.users.tolist(), np.diff(np.searchsorted(_find_steps(traces), traces.offsets)), traces.space.scale


def _sample_steps(original: Traces, protected: Traces, before: Mapping[Any, int], stride: int) -> np.ndarray:
    """Return the length of each `stride`-th step of all data in a part; `before` counts the steps of earlier users."""
    traces = align(original, protected).protected
    firsts = _find_steps(traces)
    bounds = np.searchsorted(firsts, traces.offsets)
    shifts = np.array([before[user] for user in traces.users.tolist()], np.int64) - bounds[:-1]
    numbers = np.arange(len(firsts)) + np.repeat(shifts, np.diff(bounds))
    return _lengths(traces, firsts[numbers % stride == 0])


def _find_steps(traces: Traces) -> np.ndarray:
    """Return the records that another one of their segment follows, int64 of shape (steps,)."""
    within = np.ones(max(traces.records - 1, 0), bool)
    within[traces.segments[1:-1] - 1] = False
    return np.flatnonzero(within)


def _stride(steps: int) -> int:
    return max(1, steps // _MOST)


def _lengths(traces: Traces, firsts: np.ndarray) -> np.ndarray:
    """Return the distances from records to the next ones, in units of kernels."""
    return np.linalg.norm(traces.points[firsts + 1] - traces.points[firsts], axis=1)


def _median(lengths: np.ndarray) -> float:
    return float(np.median(lengths)) if len(lengths) else 0.0


def _ends(traces: Traces, *, first: bool) -> _Residues:
    """Return the points one step beyond the first or the last points; of a single point, itself as a start."""
    segments = traces.segments
    numbers = np.flatnonzero(np.diff(segments) >= (1 if first else 2))
    starts, lasts = segments[:-1][numbers], segments[1:][numbers] - 1
    ends = starts if first else lasts
    inner = np.minimum(starts + 1, lasts) if first else lasts - 1
    points = 2 * traces.points[ends] - traces.points[inner]
    return _Residues(numbers, points, np.full(len(points), _START if first else _END))
