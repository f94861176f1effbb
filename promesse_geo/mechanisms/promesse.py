"""Promesse: speed smoothing (paper, section IV, Algorithm 1)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import smoothing
from promesse_geo.mechanisms.base import Mechanism, allocate
from promesse_geo.messages import counted
from promesse_geo.traces.records import NO_BREAKS, as_offsets, within_traces
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces, freeze
from promesse_geo.validation import check_choice, check_integer, check_number, set_fields

_TOLERANCE = (1e-9, 1e-8)  # of "at least ε away": relative, and in metres; so that rounding does not decide
_TABLE = 256  # multiples of ε whose sine and cosine are looked up; longer straight segments compute theirs
_SHARE = 0.75  # of the memory that samples may take: about half of it is written to, and times are added


@dataclass(frozen=True)
class Promesse(Mechanism):
    """Publish points at constant distances and constant time intervals (speed smoothing).

    Stops disappear because the speed is constant; the path stays where it was. The first and the last point are
    removed, so that the published path begins at least epsilon from the true start. Promesse does not hide the
    streets taken, nor roughly when a trace begins and ends.

    Each trace is smoothed as a whole; if it has breaks, each segment on its own, under the same user. Split the data at
    gaps first, as `prepare` does: otherwise the path runs straight on through a night without records, and times of a
    trace of weeks mean nothing.

    Parameters
    ----------
    epsilon : float
        Distance in metres between consecutive published points, from 0.01 to 1,000,000: the size of the places to
        hide. The paper recommends the diameter of a POI, 200 m.
    variant : {"polyline", "pseudocode"}
        Where the next point lies: on the original polyline, where it first is epsilon from the last point (the
        paper's prose, with a spatial error of 0 m); or towards the next record, as in Algorithm 1, which cuts corners.
    min_points : int
        Traces with fewer published points are dropped. The algorithm keeps a single point; the paper's prose ("two
        or less") is `min_points=3`.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    References
    ----------
    Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data
    with High Utility. TrustCom 2015, section IV.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, as_traces=True)
    >>> len(pg.Promesse(200).protect(city))
    2
    """

    units: ClassVar[Mapping[str, str]] = {"epsilon": "m"}
    needs_prepared_data: ClassVar[bool] = True
    keeps_breaks: ClassVar[bool] = True
    remedy: ClassVar[str] = "Take a smaller --epsilon."

    epsilon: float
    variant: str = "polyline"
    min_points: int = 1

    def __post_init__(self) -> None:
        """Check the parameters."""
        epsilon = check_number(self.epsilon, name="epsilon", owner="Promesse", unit="metres", low=0.01, high=1e6)
        check_choice(self.variant, name="variant", owner="Promesse", options=("polyline", "pseudocode"))
        min_points = check_integer(self.min_points, name="min_points", owner="Promesse")
        set_fields(self, {"epsilon": epsilon, "min_points": min_points})

    def _protect(self, traces: Traces) -> Traces:
        points, counts, begin, end = self._sample(traces)
        kept = counts > 0
        segments = offsets = as_offsets(counts[kept])
        remain, owners = kept, traces.segment_owners
        if len(traces.breaks):
            remain = np.bincount(owners[kept], minlength=len(traces)) > 0
            offsets = as_offsets(np.bincount(owners, counts, len(traces)).astype(np.int64)[remain])
        return replace(
            traces,
            points=freeze(points),
            times=freeze(_equal_steps(segments, begin[kept], end[kept])),
            offsets=offsets,
            users=traces.users[remain],
            positions=freeze(np.arange(len(points))),
            time_format=replace(traces.time_format, unit="ns"),
            breaks=freeze(within_traces(segments, offsets)) if len(traces.breaks) else NO_BREAKS,
        )

    def _remark(self, traces: Traces, protected: Traces) -> str:
        """Return how many traces and segments were dropped, and that breaks were kept."""
        dropped, breaks, texts = len(traces) - len(protected), len(traces.breaks), []
        if breaks:
            texts.append(
                f"The data have {counted(breaks, 'break')}: each of {counted(breaks + len(traces), 'segment')} was "
                "protected as a trace of its own."
            )
        segments = len(traces.segments) - len(protected.segments)
        if segments:
            what = counted(len(traces), "trace")
            if breaks:
                what += f" and {segments:,} of {counted(breaks + len(traces), 'segment')}"
            verb = "was" if dropped == 1 and not breaks else "were"
            points = "" if self.min_points == 1 else f" and min_points = {self.min_points}"
            texts.append(
                f"{dropped:,} of {what} could not be protected and {verb} dropped: "
                f"path too short for epsilon = {self.epsilon:g} m{points}."
            )
        if dropped == len(traces) > 0:
            texts.append("Nothing is left: take a smaller epsilon.")
        return " ".join(texts)

    def samples(self, traces: Traces) -> tuple[np.ndarray, np.ndarray]:
        """Return the sampled points of protectable traces with the first and the last ones, which `protect` removes.

        Parameters
        ----------
        traces : Traces
            The original data.

        Returns
        -------
        points : numpy.ndarray of float64, shape (samples, 3) or (samples, 2)
            Kernel coordinates, as in Traces.
        counts : numpy.ndarray of int64, shape (segments,)
            The number of samples of each segment, see `traces.segments`; 0 if it is not protectable. Traces without
            breaks are segments.
        """
        rest, counts, _, _ = self._sample(traces, last=0)
        kept = counts > 0
        firsts = traces.points[traces.segments[:-1][kept]]
        return np.insert(rest, as_offsets(counts)[:-1][kept], firsts, axis=0), counts + kept

    def _sample(self, traces: Traces, *, last: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Points without the first and the `last` last, and each segment's number of them, first and last time."""
        space, points, times, offsets = traces.space, traces.points, traces.times, traces.segments
        number = len(offsets) - 1
        bounds, counts, begin, end = np.empty(number), *np.empty((3, number), np.int64)
        step = self.epsilon / space.scale
        threads.run(
            lambda first, last: smoothing.bound_samples(points, offsets, space.curvature, step, first, last, bounds),
            threads.fair(np.diff(offsets)),
        )
        chunks = threads.fair(bounds)
        limits = np.array([math.ceil(bounds[:first].sum()) + int(first) for first in chunks])  # of rows of a chunk
        error = (
            f"Points {self.epsilon:g} m apart on these traces could be as many as {limits[-1]:,}, which do not fit in "
            "memory. Take a larger epsilon, or remove impossible jumps first with drop_jumps (prepare --max-speed)."
        )
        out = allocate((int(limits[-1]), space.dimension), float, share=_SHARE, error=error)
        rule = (*self._rule(space), self.min_points, last)
        upward = np.arange(len(chunks) - 1) % 2 == 1  # each second chunk begins where the one before it ends
        upward[-1] = True

        def fill(chunk: int, _: int) -> None:
            smoothing.sample_traces(
                *(points, times, offsets, bounds, chunks[chunk], chunks[chunk + 1]),
                *(limits[chunk] if upward[chunk] else limits[chunk + 1], upward[chunk], out, *rule, counts, begin, end),
            )

        threads.run(fill, np.arange(len(chunks)))
        ends = as_offsets(counts)[chunks]
        starts = np.where(upward, limits[:-1], limits[1:] - np.diff(ends))
        for chunk, start in enumerate(starts):  # move the chunks together
            target = starts[0] + ends[chunk]
            if target != start:
                out[target : starts[0] + ends[chunk + 1]] = out[start:][: ends[chunk + 1] - ends[chunk]]
        return out[starts[0] : starts[0] + ends[-1]], counts, begin, end

    def _rule(self, space: Space) -> tuple[tuple[float, ...], tuple[np.ndarray, ...]]:
        """Parameters of the kernel in its units, and tables of multiples of epsilon; on the sphere up to 90 degrees."""
        relative, absolute = _TOLERANCE
        epsilon = self.epsilon / space.scale
        steps = np.arange(min(_TABLE, int(math.pi / 2 / epsilon) + 1) if space.curvature else _TABLE) * epsilon
        nears = (steps - absolute / space.scale) / (1 + relative)
        nears[1] = (self.epsilon * (1 - relative) - absolute) / space.scale
        chord = space.chord(self.epsilon) ** 2
        rule = (self.variant == "polyline", space.curvature, chord, epsilon, absolute / self.epsilon)
        if space.curvature:
            return rule, (np.cos(steps), np.sin(steps), (2 * np.sin(nears / 2)) ** 2)
        return rule, (np.ones_like(steps), steps, nears**2)


def _equal_steps(offsets: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Times in equal steps from each trace's first to its last."""
    times = np.empty(offsets[-1], np.int64)
    threads.run(
        lambda first, last: smoothing.space_times(offsets, begin, end, first, last, times),
        threads.fair(np.diff(offsets)),
    )
    return times
