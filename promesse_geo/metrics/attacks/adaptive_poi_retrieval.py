"""What an attacker finds who allows for the noise."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import geopandas as gpd
import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import averaging
from promesse_geo.metrics.attacks.poi_retrieval import PoiRetrieval
from promesse_geo.stays import find_pois
from promesse_geo.stays.stays import checked_stay
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_choice

KINDS = ("geo-indistinguishability", "none", "promesse", "wait-for-me")
"""Kinds of mechanism that an attacker may know to be used; only the first one adds noise."""

_AT_REST = 15  # second differences of which a median is taken: a quarter of an hour at one a minute
_FEWEST, _MOST = 30, 200_000  # such medians that tell something, and that are looked at
_LOW = 0.01, 0.05  # the quantiles of the medians and of the steps that are taken to be of users at rest
_LAWS = 2.69, 0.649  # what they are for planar Laplace noise of ε = 1, a third and all of the users being at rest
_NEGLIGIBLE = 0.1  # noise whose mean is below this part of the diameter does not hamper the paper's attack
_DEVIATIONS = 3.0  # standard deviations of averaged noise along one axis by which the diameter is widened


@dataclass(frozen=True)
class AdaptivePoiRetrieval(PoiRetrieval):
    """How many points of interest an attacker finds who knows the kind of mechanism and allows for its noise.

    The paper's attacker looks for stays of 200 m in whatever is published, and noise that scatters a stay over more
    than that hides it. This one sees protected data only, too, but averages and looks for wider stays. Against
    geo-indistinguishability, whose noise is drawn anew for each record:

    1. The mean noise is estimated from the protected data itself; see Notes. Below a tenth of `diameter` it does not
       matter, and the attack is the paper's.
    2. Each record is moved to the mean of its trace's records within a sixth of `duration` before and after it (5
       minutes in all), and stays are searched among these means, with a diameter that is wider by three standard
       deviations of the noise that is left in them.
    3. A point of interest is the geometric median of the stay's published records, which for planar Laplace noise is
       nearer to the truth than their mean.

    The other kinds add no noise: Promesse moves nothing off the path, and Wait for Me publishes each cluster's pivot as
    it was. There the attack is the paper's; see `Residue` for one on Promesse. Matching, detail and value are those
    of `PoiRetrieval`.

    Parameters
    ----------
    diameter : float
        Greatest distance in metres between any two records of a stay, before noise.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of a stay.
    threshold : float
        Greatest distance in metres at which an original point of interest is retrieved.
    kind : {"geo-indistinguishability", "none", "promesse", "wait-for-me"}
        What the attacker knows of the mechanism.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of its range.

    Notes
    -----
    The noise is estimated from second differences p₁ − 2p₂ + p₃ of consecutive locations, no two of them more than an
    eighth of `duration` apart in time: steady motion cancels out. The median of the lengths of 15 of them in a row is
    small only where somebody rests. The 1 % quantile of these medians is set equal to what it is for planar Laplace
    noise when a third of the data is at rest; with 15 or 100 % at rest the estimate errs by about 15 %. So that
    data without noise is not taken for noisy where nobody is recorded at rest, the estimate is at most what the
    5 % quantile of the steps between consecutive records allows: motion makes steps longer, not shorter. Too little
    data for that has no estimate, and is attacked as in the paper; so is data rounded to a grid coarser than the
    noise, where steps of 0 hide it: that is a limit of this attack, not a protection.

    References
    ----------
    Andrés, Bordenabe, Chatzikokolakis, Palamidessi: Geo-Indistinguishability. CCS 2013 (the noise). Hariharan, Toyama:
    Project Lachesis. GIScience 2004 (stays). The attack is ours.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2)
    >>> noisy = city.promesse.geo_indistinguishability(0.01, seed=1)
    >>> adaptive = pg.AdaptivePoiRetrieval(kind="geo-indistinguishability")
    >>> found, found_as_in_the_paper = (m.measure(city, noisy) for m in (adaptive, pg.PoiRetrieval()))
    >>> found > 3 * found_as_in_the_paper
    True
    """

    kind: str = field(kw_only=True)
    label: ClassVar[str] = "adaptive attack, F-score"

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        check_choice(self.kind, name="kind", owner="AdaptivePoiRetrieval", options=KINDS)

    def noise(self, protected: gpd.GeoDataFrame | Traces, *, user: Name = ..., time: Name = ...) -> float:
        """Estimate from protected data alone how far its records were moved.

        Parameters
        ----------
        protected : geopandas.GeoDataFrame or Traces
            The protected data.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        float
            Metres on average; for geo-indistinguishability 2/ε. 0 where the kind of mechanism adds no noise or there
            is too little data to tell.

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read.
        """
        return self._noise(as_traces(protected, user=user, time=time))

    def _attack(self, protected: Traces) -> tuple[np.ndarray, np.ndarray]:
        noise = self._noise(protected)
        if noise < _NEGLIGIBLE * self.diameter:
            return super()._attack(protected)
        space, (metres, nanoseconds) = protected.space, self._stay()
        means, left = _averaged(protected, half=nanoseconds // 6, short=nanoseconds // 8)
        deviation = noise / 2 * math.sqrt(3 * left)  # planar Laplace noise: √3/ε along one axis
        wider = min(metres + _DEVIATIONS * deviation, 1e6)
        stays = find_pois(replace(protected, points=means), diameter=wider, duration=nanoseconds)
        centres = np.empty_like(stays.points)
        threads.run(
            lambda first, last: averaging.centre(
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
        points, numbers, scale = protected.points, protected.trace_numbers, protected.space.scale
        steps = np.linalg.norm(np.diff(points, axis=0), axis=1)[np.diff(numbers) == 0]
        medians = _medians_in_a_row(protected, short=self._stay()[1] // 8)
        if len(medians) < _FEWEST:
            return 0.0
        rates = (
            float(np.quantile(lengths, low)) / law
            for lengths, low, law in zip((medians, steps), _LOW, _LAWS, strict=True)
        )
        return 2 * scale * min(rates)


def _medians_in_a_row(traces: Traces, *, short: int) -> np.ndarray:
    """Medians of the lengths of second differences in a row, in kernel units, of records in quick succession."""
    points, times, numbers = traces.points, traces.times, traces.trace_numbers
    lengths = np.linalg.norm(points[:-2] - 2 * points[1:-1] + points[2:], axis=1)
    quick = np.diff(times) <= short
    lengths[~(quick[:-1] & quick[1:] & (numbers[2:] == numbers[:-2]))] = np.nan
    firsts = np.arange(0, len(lengths) - _AT_REST + 1, max(1, len(lengths) // _MOST))
    rows = lengths[firsts[:, None] + np.arange(_AT_REST)]
    return np.median(rows[~np.isnan(rows).any(axis=1)], axis=1)


def _averaged(traces: Traces, *, half: int, short: int) -> tuple[np.ndarray, float]:
    """The mean of the records around each record, and the part of the variance of noise that is left, over time."""
    means, counts = np.empty_like(traces.points), np.empty(traces.records, np.int64)
    threads.run(
        lambda first, last: averaging.average(
            *(traces.points, traces.times, traces.offsets, half, traces.space.curvature, first, last, means, counts)
        ),
        threads.fair(traces.counts),
    )
    seconds = np.diff(traces.times) / 1e9
    seconds[(np.diff(traces.trace_numbers) != 0) | (seconds > short / 1e9)] = 0
    weights = np.append(seconds, 0.0)
    return means, float(np.average(1 / counts, weights=weights if weights.any() else None))
