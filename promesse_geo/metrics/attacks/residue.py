"""What speed smoothing leaves of the places where users stayed."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import geopandas as gpd
import numpy as np
from geopandas.array import GeometryArray

from promesse_geo import threads
from promesse_geo.kernels import residues
from promesse_geo.metrics.attacks.poi_retrieval import PoiRetrieval
from promesse_geo.traces.columns import Name, make_points
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_number

_STEPS = 3  # a path that is back after more steps went round a block
_BEYOND = 0.25  # part of a step by which a place lies beyond the last point before the way back
_NOWHERE = 1e-3  # part of a step below which there is no direction to speak of
_START, _END, _TURN = "start", "end", "turn"


class _Found(NamedTuple):
    """Residues in the order of traces: the number of each one's trace, where it lies, and of which kind it is."""

    traces: np.ndarray
    points: np.ndarray
    kinds: np.ndarray


@dataclass(frozen=True)
class Residue(PoiRetrieval):
    """How many points of interest can be guessed from the path that speed smoothing (Promesse) publishes.

    Promesse hides how long a user stayed, not the way there and back. The attacker sees protected data only and reads
    epsilon off it: it is the median distance of consecutive points. Taken for places are

    - the ends of traces: the points one step before the first and one after the last published one, straight on,
      because the true start and end were cut off there; of a single point, itself;
    - turns: where the path is denser than its length explains, for after two or three steps it is back within
      `closeness` steps of where it was. That is a way there and back, a small loop, or jitter above epsilon. Turns
      that overlap are one, and it is taken to lie at the mean of its points, a quarter of a step farther out.

    A turn need not be a stay, so there are false positives: the detail, that of `PoiRetrieval`, has the residues as
    `protected_pois`, and `precision` is the part of them that retrieves a place. Matching and value are the same, too:
    compare it with `PoiRetrieval`, which finds next to nothing in such data. On other data it guesses wildly, and means
    nothing.

    Parameters
    ----------
    diameter : float
        Greatest distance in metres between any two records of an original stay.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of an original stay.
    threshold : float
        Greatest distance in metres at which an original point of interest is retrieved.
    closeness : float
        Steps between the ends of a stretch that has come back, from 0.01 to 1. Fewer find less, with fewer false
        positives.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of its range.

    References
    ----------
    The attack is ours; Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of
    Mobility Data with High Utility, TrustCom 2015, section IV, is what it attacks.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.split_gaps(pg.make_city(users=5, days=3), keep_user=True)
    >>> safe = pg.Promesse(100).protect(city)
    >>> left, found_as_in_the_paper = (m.measure(city, safe) for m in (pg.Residue(), pg.PoiRetrieval()))
    >>> left > 20 + found_as_in_the_paper
    True
    """

    closeness: float = field(default=0.75, kw_only=True)
    label: ClassVar[str] = "residue attack, F-score"

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        steps = check_number(self.closeness, name="closeness", owner="Residue", unit="steps", low=0.01, high=1)
        object.__setattr__(self, "closeness", steps)

    def find(self, protected: gpd.GeoDataFrame | Traces, *, user: Name = ..., time: Name = ...) -> gpd.GeoDataFrame:
        """Find the residues in protected data, to look at.

        Parameters
        ----------
        protected : geopandas.GeoDataFrame or Traces
            The protected data.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        geopandas.GeoDataFrame
            One row a residue in the order of traces: user, kind ("start", "end" or "turn") and location in the CRS of
            the data.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> safe = pg.make_city(users=2, days=2).promesse.smooth(100)
        >>> pg.Residue().find(safe)["kind"].value_counts()["start"].item()
        2
        """
        traces = as_traces(protected, user=user, time=time)
        found = self._find(traces)
        points = GeometryArray(make_points(*traces.space.coordinates(found.points)), crs=traces.space.crs)
        columns = {"user": traces.users.take(found.traces), "kind": found.kinds, "geometry": points}
        return gpd.GeoDataFrame(columns, geometry="geometry")

    def _attack(self, protected: Traces) -> tuple[np.ndarray, np.ndarray]:
        found = self._find(protected)
        return found.points, as_offsets(np.bincount(found.traces, minlength=len(protected)))

    def _find(self, traces: Traces) -> _Found:
        parts = (_ends(traces, first=True), self._turns(traces), _ends(traces, first=False))
        together = _Found(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        order = np.argsort(together.traces, kind="stable")
        points = together.points[order]
        if traces.space.curvature:
            points /= np.linalg.norm(points, axis=1, keepdims=True)
        return _Found(together.traces[order], points, together.kinds[order])

    def _turns(self, traces: Traces) -> _Found:
        points, step = traces.points, _step(traces)
        marks = np.empty(traces.records, bool)
        limit = traces.space.chord(self.closeness * step) ** 2
        threads.run(
            lambda first, last: residues.mark(points, traces.offsets, limit, _STEPS, first, last, marks),
            threads.fair(traces.counts),
        )
        inside = np.flatnonzero(marks)
        numbers = np.searchsorted(traces.offsets, inside, side="right") - 1
        begins = np.flatnonzero(np.diff(inside, prepend=-2) > 1)  # the ends of a trace are never inside
        counts = np.diff(begins, append=len(inside))
        if not len(begins):
            return _Found(numbers, points[:0], np.full(0, _TURN))
        centres = np.add.reduceat(points[inside], begins) / counts[:, None]
        firsts = inside[begins]
        outward = centres - (points[firsts - 1] + points[firsts + counts]) / 2
        lengths = np.linalg.norm(outward, axis=1, keepdims=True)
        far = step / traces.space.scale
        np.divide(outward * _BEYOND * far, lengths, out=outward, where=lengths > _NOWHERE * far)
        centres += outward
        return _Found(numbers[begins], centres, np.full(len(centres), _TURN))


def _step(traces: Traces) -> float:
    """Metres between consecutive points, the median over the data set; 0 without any."""
    points = traces.points
    within = np.ones(max(traces.records - 1, 0), bool)
    within[traces.offsets[1:-1] - 1] = False
    pairs = np.flatnonzero(within)
    pairs = pairs[:: max(1, len(pairs) // 1_000_000)]
    if not len(pairs):
        return 0.0
    return float(np.median(np.linalg.norm(points[pairs + 1] - points[pairs], axis=1))) * traces.space.scale


def _ends(traces: Traces, *, first: bool) -> _Found:
    """One step straight on beyond the first or the last points; a single point itself, as a start."""
    numbers = np.flatnonzero(traces.counts >= (1 if first else 2))
    starts, lasts = traces.offsets[:-1][numbers], traces.offsets[1:][numbers] - 1
    ends = starts if first else lasts
    inner = np.minimum(starts + 1, lasts) if first else lasts - 1
    points = 2 * traces.points[ends] - traces.points[inner]
    return _Found(numbers, points, np.full(len(points), _START if first else _END))
