"""POI retrieval by an attacker who averages noise."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import geopandas as gpd
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from promesse_geo import threads
from promesse_geo.kernels import poi_inference
from promesse_geo.metrics.attacks.poi_retrieval import Located, PoiRetrieval
from promesse_geo.stays import find_pois
from promesse_geo.stays.stays import checked_stay
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_choice

KINDS = ("geo-indistinguishability", "none", "promesse", "wait-for-me")
"""Kinds of mechanism that the attacker may know of; only the first adds noise."""

_AT_REST = 15  # second differences per median: a quarter of an hour with one record per minute
_FEWEST, _MOST = 30, 200_000  # least number of medians for an estimate, and greatest number computed
_LOW = 0.01, 0.05  # quantiles of medians and of steps that represent stationary users
_LAWS = 2.69, 0.649  # their values for planar Laplace noise of ε = 1, with a third and with all of the data stationary
_BLOCK = 1 << 14  # steps or rows of bends in memory at a time
_NEGLIGIBLE = 0.1  # noise with a mean below this share of the diameter does not affect the paper's attack
_DEVIATIONS = 3.0  # standard deviations of averaged noise along one axis that are added to the diameter


@dataclass(frozen=True)
class AdaptivePoiRetrieval(PoiRetrieval):
    """POI retrieval by an attacker who knows the kind of mechanism and averages its noise.

    The paper's attacker searches the protected data for stays of 200 m; noise that scatters a stay over more than that
    hides it. This attacker also sees the protected data alone, but averages and searches for wider stays. Against
    geo-indistinguishability, which draws independent noise for each record:

    1. Estimate the mean noise from the protected data; see Notes. If it is below a tenth of `diameter`, the attack is
       that of the paper.
    2. Move each record to the mean of the records of its trace within a sixth of `duration` before and after it (5
       minutes in total). Search for stays among these means, with the diameter increased by three standard deviations
       of the noise that remains in them.
    3. A POI is the geometric median of the published records of a stay, which for planar Laplace noise is closer to
       the true location than their mean.

    The other kinds add no noise: Promesse moves no point off the path, and Wait for Me publishes the pivot of each
    cluster unchanged. For these, the attack is that of the paper; see `Residue` for an attack on Promesse. Matching,
    detail and value are those of `PoiRetrieval`.

    Parameters
    ----------
    diameter : float
        Greatest distance in metres between any two records of a stay, before noise.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of a stay.
    threshold : float
        Greatest distance in metres at which an original POI is retrieved.
    kind : {"geo-indistinguishability", "none", "promesse", "wait-for-me"}
        Kind of mechanism that the attacker knows of.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    Notes
    -----
    The noise is estimated from second differences p₁ − 2p₂ + p₃ of consecutive locations that are at most an eighth of
    `duration` apart in time: steady motion cancels. The median of the lengths of 15 consecutive ones is small only if
    the user is stationary. The 1 % quantile of these medians is compared with its value for planar Laplace noise if a
    third of the data is stationary; if 15 or 100 % of it is, the estimate is off by about 15 %. The 5 % quantile of the
    steps between consecutive records bounds the estimate, for motion makes steps longer, not shorter: data without
    noise and without stationary records is not mistaken for noisy data. Without enough data for an estimate, the attack
    is that of the paper. The same holds for data rounded to a grid coarser than the noise, where steps of 0 hide it:
    this is a limit of the attack, not a protection.

    References
    ----------
    Andrés, Bordenabe, Chatzikokolakis, Palamidessi: Geo-Indistinguishability. CCS 2013 (the noise). Hariharan, Toyama:
    Project Lachesis. GIScience 2004 (stays). The attack is specific to this implementation.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2)
    >>> noisy = city.promesse.geo_indistinguishability(0.01, seed=1)
    >>> adaptive = pg.AdaptivePoiRetrieval(kind="geo-indistinguishability")
    >>> adaptive.measure(city, noisy) > 3 * pg.PoiRetrieval().measure(city, noisy)
    True
    """

    is_per_user: ClassVar[bool] = False  # the noise is estimated from all users

    kind: str = field(kw_only=True)
    label: ClassVar[str] = "adaptive attack, F-score"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        super().__post_init__()
        check_choice(self.kind, name="kind", owner="AdaptivePoiRetrieval", options=KINDS)

    def noise(self, protected: gpd.GeoDataFrame | Traces, *, user: Name = ..., time: Name = ...) -> float:
        """Estimate the mean noise from protected data alone.

        Parameters
        ----------
        protected : geopandas.GeoDataFrame or Traces
            The protected data.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        float
            Mean displacement in metres: 2/ε for geo-indistinguishability. 0 if the kind of mechanism adds no noise or
            the data is too small for an estimate.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read.
        """
        return self._noise(as_traces(protected, user=user, time=time))

    def _attack(self, protected: Traces) -> Located:
        noise = self._noise(protected)
        if noise < _NEGLIGIBLE * self.diameter:
            return super()._attack(protected)
        space, (metres, nanoseconds) = protected.space, self._stay()
        means, left = _average(protected, half=nanoseconds // 6, short=nanoseconds // 8)
        deviation = noise / 2 * math.sqrt(3 * left)  # planar Laplace noise: √3/ε along one axis
        wider = min(metres + _DEVIATIONS * deviation, 1e6)
        stays = find_pois(replace(protected, points=means), diameter=wider, duration=nanoseconds)
        centres = np.empty_like(stays.points)
        threads.run(
            lambda first, last: poi_inference.find_centres(
                *(protected.points, stays.starts, stays.ends, 1 / space.scale, space.curvature, first, last, centres)
            ),
            threads.fair(stays.records),
        )
        return centres, stays.offsets(len(protected))

    def _stay(self) -> tuple[float, int]:
        return checked_stay(self.diameter, self.duration, owner="AdaptivePoiRetrieval")

    def _noise(self, protected: Traces) -> float:
        if self.kind != "geo-indistinguishability" or protected.records < _AT_REST + 2:
            return 0.0
        scale = protected.space.scale
        medians = _medians_of_bends(protected, short=self._stay()[1] // 8)
        if len(medians) < _FEWEST:
            return 0.0
        steps = _steps(protected)[~_begins_segment(protected)[1:]]
        rates = [float(np.quantile(medians, _LOW[0])) / _LAWS[0], float(np.quantile(steps, _LOW[1])) / _LAWS[1]]
        return 2 * scale * min(rates)


def _medians_of_bends(traces: Traces, *, short: int) -> np.ndarray:
    """Return medians of the lengths of consecutive second differences, in kernel units, of records close in time."""
    quick = (np.diff(traces.times) <= short) & ~_begins_segment(traces)[1:]
    bends = traces.records - 2
    stride = max(1, bends // _MOST)
    firsts = np.arange(0, bends - _AT_REST + 1, stride)
    medians = [np.empty(0)]
    for part in (slice(first, first + _BLOCK) for first in range(0, len(firsts), _BLOCK)):
        chosen = firsts[part][sliding_window_view(quick, _AT_REST + 1)[firsts[part]].all(axis=1)]
        if len(chosen) and stride < _AT_REST:  # a bend counts for several medians
            lengths = _lengths_of_bends(traces.points, np.arange(chosen[0], chosen[-1] + _AT_REST))
            windows = sliding_window_view(lengths, _AT_REST)[chosen - chosen[0]]
        else:
            windows = _lengths_of_bends(traces.points, chosen[:, None] + np.arange(_AT_REST))
        medians.append(np.partition(windows, _AT_REST // 2, axis=1)[:, _AT_REST // 2])
    return np.concatenate(medians)


def _lengths_of_bends(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the lengths of the second differences that begin at the rows, in kernel units."""
    before, middle, after = (points.take(rows + step, axis=0) for step in range(3))
    return np.linalg.norm(before - 2 * middle + after, axis=-1)


def _steps(traces: Traces) -> np.ndarray:
    """Return the chords between consecutive records, in kernel units."""
    points, chords = traces.points, np.empty(max(traces.records - 1, 0))
    for first in range(0, len(chords), _BLOCK):
        part = slice(first, first + _BLOCK)
        chords[part] = np.linalg.norm(np.diff(points[first : first + _BLOCK + 1], axis=0), axis=1)
    return chords


def _begins_segment(traces: Traces) -> np.ndarray:
    """Return whether each record is the first of a trace or follows a break: bool, shape (records,)."""
    begins = np.zeros(traces.records, bool)
    begins[traces.segments[:-1]] = True
    return begins


def _average(traces: Traces, *, half: int, short: int) -> tuple[np.ndarray, float]:
    """Return the mean of the records around each record, and the share of the noise variance that remains over time."""
    means, counts = np.empty_like(traces.points), np.empty(traces.records, np.int64)
    threads.run(
        lambda first, last: poi_inference.average_in_time(
            *(traces.points, traces.times, traces.offsets, half, traces.space.curvature, first, last, means, counts)
        ),
        threads.fair(traces.counts),
    )
    seconds = np.diff(traces.times) / 1e9
    seconds[(np.diff(traces.trace_numbers) != 0) | (seconds > short / 1e9)] = 0
    weights = np.append(seconds, 0.0)
    return means, float(np.average(1 / counts, weights=weights if weights.any() else None))
