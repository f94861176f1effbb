"""Promesse: speed smoothing (paper, section IV, Algorithm 1)."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import smoothing
from promesse_geo.mechanisms.base import Mechanism
from promesse_geo.messages import counted, warn
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces, freeze
from promesse_geo.validation import check_choice, check_integer, check_number

_TOLERANCE = (1e-9, 1e-8)  # "at least ε away" forgives 1e-9 of ε and 1e-8 m, so that rounding does not decide
_TABLE = 256  # multiples of ε whose sine and cosine are looked up; longer straight pieces compute theirs


@dataclass(frozen=True)
class Promesse(Mechanism):
    """Publish points at a constant distance and constant time from each other.

    Stops disappear because nothing slows down any more; the path stays where it was. The first and the last point
    are removed, so that publication begins at least epsilon away from the true start. What it does not hide: the
    streets taken, and the time at which a trace begins and ends, roughly.

    A trace is smoothed as a whole. Give parts between pauses, as `prepare` makes them: through a night without records
    the path would run straight on, and over weeks the times of its points would say nothing any more.

    Parameters
    ----------
    epsilon : float
        Distance in metres between consecutive published points, from 0.01 to 1,000,000: the size of the places to
        hide. The paper recommends the diameter of a POI, 200 m.
    variant : {"polyline", "pseudocode"}
        Where samples lie: on the original polyline, at the first point that is exactly epsilon from the last sample
        (the paper's prose, and its spatial error of 0 m); or towards the next record, as Algorithm 1 says to the
        letter, which cuts corners.
    min_points : int
        Traces with fewer points left than this are dropped. The algorithm keeps a single point; the paper's prose
        ("two or less") is `min_points=3`.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of its range.

    References
    ----------
    Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data
    with High Utility. TrustCom 2015, section IV.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2, as_traces=True)
    >>> len(pg.Promesse(200).protect(city))
    2
    """

    units: ClassVar[Mapping[str, str]] = {"epsilon": "m"}

    epsilon: float
    variant: str = "polyline"
    min_points: int = 1

    def __post_init__(self) -> None:
        """Check the parameters."""
        epsilon = check_number(self.epsilon, name="epsilon", owner="Promesse", unit="metres", low=0.01, high=1e6)
        object.__setattr__(self, "epsilon", epsilon)
        check_choice(self.variant, name="variant", owner="Promesse", options=("polyline", "pseudocode"))
        least = check_integer(self.min_points, name="min_points", owner="Promesse")
        object.__setattr__(self, "min_points", least)

    def _protect(self, traces: Traces) -> Traces:
        points, kept, begin, end = self._sample(traces)
        remain = kept > 0
        dropped = len(traces) - int(remain.sum())
        if dropped:
            least = "" if self.min_points == 1 else f"fewer than {self.min_points} points would remain, or "
            warn(
                f"{dropped:,} of {counted(len(traces), 'trace')} could not be protected and "
                f"{'was' if dropped == 1 else 'were'} left out ({least}too short a way for points "
                f"{self.epsilon:g} m apart).{'' if remain.any() else ' Nothing is left: take a smaller epsilon.'}"
            )
        offsets = as_offsets(kept[remain])
        return replace(
            traces,
            points=freeze(points),
            times=freeze(_equal_steps(offsets, begin[remain], end[remain])),
            offsets=offsets,
            users=traces.users[remain],
            positions=freeze(np.arange(len(points))),
            time_format=replace(traces.time_format, unit="ns"),
        )

    def samples(self, traces: Traces) -> tuple[np.ndarray, np.ndarray]:
        """Return the samples of protectable traces before the first and the last are removed, to look at.

        Parameters
        ----------
        traces : Traces
            The original data.

        Returns
        -------
        points : numpy.ndarray, shape (samples, 3) or (samples, 2)
            Kernel coordinates, as in Traces.
        counts : numpy.ndarray of int64, shape (traces,)
            How many of them each trace has; 0 where it is not protectable.
        """
        rest, kept, _, _ = self._sample(traces, last=0)
        firsts = traces.points[traces.offsets[:-1][kept > 0]]
        return np.insert(rest, as_offsets(kept)[:-1][kept > 0], firsts, axis=0), kept + (kept > 0)

    def _sample(self, traces: Traces, *, last: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Points without the first and the `last` last, and each trace's number of them, first and last time."""
        space = traces.space
        points, times, offsets = traces.points, traces.times, traces.offsets
        bounds, kept, begin, end = np.empty(len(traces)), *np.empty((3, len(traces)), np.int64)
        step = self.epsilon / space.scale
        threads.run(
            lambda first, last: smoothing.room(points, offsets, space.curvature, step, first, last, bounds),
            threads.fair(traces.counts),
        )
        shares = threads.fair(bounds)
        rooms = np.array([math.ceil(bounds[:share].sum()) + int(share) for share in shares])
        out = _allocate(int(rooms[-1]), space.dimension, epsilon=self.epsilon)
        rule = (*self._rule(space), self.min_points, last)
        upward = np.arange(len(shares) - 1) % 2 == 1  # each second share begins where the one before it ends
        upward[-1] = True

        def fill(share: int, _: int) -> None:
            smoothing.fill(
                *(points, times, offsets, bounds, shares[share], shares[share + 1]),
                *(rooms[share] if upward[share] else rooms[share + 1], upward[share], out, *rule, kept, begin, end),
            )

        threads.run(fill, np.arange(len(shares)))
        wanted = as_offsets(kept)[shares]
        starts = np.where(upward, rooms[:-1], rooms[1:] - np.diff(wanted))
        return _closed_up(out, starts, wanted), kept, begin, end

    def _rule(self, space: Space) -> tuple[tuple[float, ...], tuple[np.ndarray, ...]]:
        """What the kernel compares with, in its units, and its tables of m steps; on the sphere up to 90 degrees."""
        relative, absolute = _TOLERANCE
        epsilon = self.epsilon / space.scale
        steps = np.arange(min(_TABLE, int(math.pi / 2 / epsilon) + 1) if space.curvature else _TABLE) * epsilon
        nears = (steps - absolute / space.scale) / (1 + relative)
        nears[1] = (self.epsilon * (1 - relative) - absolute) / space.scale
        rule = (
            self.variant == "polyline",
            space.curvature,
            space.chord(self.epsilon) ** 2,
            epsilon,
            absolute / self.epsilon,
        )
        if space.curvature:
            return rule, (np.cos(steps), np.sin(steps), (2 * np.sin(nears / 2)) ** 2)
        return rule, (np.ones_like(steps), steps, nears**2)


def _equal_steps(offsets: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Times in equal steps from each trace's first to its last."""
    times = np.empty(offsets[-1], np.int64)
    threads.run(
        lambda first, last: smoothing.spread(offsets, begin, end, first, last, times),
        threads.fair(np.diff(offsets)),
    )
    return times


def _allocate(records: int, dimension: int, *, epsilon: float) -> np.ndarray:
    """Room for the samples; pages that are not written cost nothing."""
    wanted = records * dimension * 8
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    try:
        if wanted > 0.75 * memory:  # about half of it is written to; times and what the caller makes of it come on top
            raise MemoryError
        return np.empty((records, dimension))
    except MemoryError:
        raise MemoryError(
            f"Points {epsilon:g} m apart on these traces could be as many as {records:,}, which do not fit in memory. "
            "Take a larger epsilon, or remove impossible jumps first with drop_jumps "
            "(prepare --max-speed)."
        ) from None


def _closed_up(out: np.ndarray, starts: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Move the shares' samples together in place, where they are not, and return them without the room left over."""
    for share in range(1, len(starts)):
        place = starts[0] + wanted[share]
        if place != starts[share]:
            out[place : starts[0] + wanted[share + 1]] = out[starts[share] :][: wanted[share + 1] - wanted[share]]
    return out[starts[0] : starts[0] + wanted[-1]]
