"""Promesse: speed smoothing (paper, section IV, Algorithm 1)."""

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from promesse_geo import threads
from promesse_geo.kernels import smoothing
from promesse_geo.mechanisms.base import Mechanism, allocate
from promesse_geo.messages import Remark, counted, span
from promesse_geo.traces.records import NO_BREAKS, as_offsets, within_traces
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces, freeze
from promesse_geo.validation import (
    check_choice,
    check_duration,
    check_duration_as_text,
    check_integer,
    check_number,
    check_seed,
    key_of,
    set_fields,
)

_TOLERANCE = (1e-9, 1e-8)  # of "at least ε away": relative, and in metres; so that rounding does not decide
_TABLE = 256  # multiples of ε whose sine and cosine are looked up; longer straight segments compute theirs
_SHARE = 0.75  # of the memory that samples may take: about half of it is written to, and times are added


@dataclass(frozen=True)
class Promesse(Mechanism):
    """Publish points at constant distances and constant time intervals (speed smoothing).

    Stops disappear because the speed is constant; the path stays where it was. The first and the last point of each
    trace are removed, so that the published path begins at least epsilon from the true start.

    Promesse hides how long somebody stopped, not that they went there. It does not hide the streets taken, nor roughly
    when a trace begins and ends. The ends of a trace point at what was removed: an attacker who knows which traces are
    of one user, and steps back once from their ends, located 98, 92 and 66 % of the homes of a synthetic city of phones
    (`recorder="phone"`) within 100 m at epsilon = 100, 200 and 500 m, and the end place of 96, 36 and 9 % of the taxis
    of Cabspotting (`EndRetrieval`). Footprints in cells of 800 m named 7.1, 6.3 and 5.2 % of these taxis, and 20.6,
    18.6 and 18.6 % if the attacker smooths what he knows (`HeatMapReidentification`). Parts without names can be joined
    (`Linkage`). For traces of people, cut ends (`ends`), remove zones around homes before (`PrivacyZones`), and give
    each trace a new name; footprints remain.

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
    ends : float
        Metres to cut from each end at most: after the first and the last point, a random number of points, uniform
        from 0 to ends/epsilon (rounded down), is removed, for each trace and end independently. 0 cuts nothing more,
        as in the paper; else at least epsilon.
    max_interval : str, timedelta or number of seconds, optional
        Traces whose constant interval is longer, after `ends`, are dropped. A trace that hardly moved is a row of
        points many minutes apart, where an attacker with a wider diameter finds stays everywhere. Single points are
        kept.
    seed : int or str, optional
        Makes the cuts repeatable, for experiments only. By default each call takes a new 256-bit key from the
        operating system. No repr and no written file contains the seed.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    Notes
    -----
    What is guaranteed of ends: the published end of a trace is, along the path, at least 1 + k points of epsilon from
    the true end, k being the number cut. Its straight distance to the true end is at least epsilon for the first point
    with `ends=0` only, because a path can turn back. Cuts come from AES-256 of a block with a hash of (user, first time
    of the trace, epsilon, ends) and the segment's number, so that the same seed gives the same output for any order of
    users, number of threads and partitioning.

    References
    ----------
    Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data
    with High Utility. TrustCom 2015, section IV.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, recorder="phone", as_traces=True)
    >>> len(pg.Promesse(200).protect(city))
    2
    """

    keeps_periods: ClassVar[bool] = True
    units: ClassVar[Mapping[str, str]] = {"epsilon": "m", "ends": "m"}
    needs_prepared_data: ClassVar[bool] = True
    keeps_breaks: ClassVar[bool] = True
    remedy: ClassVar[str] = "Take a smaller epsilon (--epsilon)."

    epsilon: float
    variant: str = "polyline"
    min_points: int = 1
    ends: float = field(default=0.0, kw_only=True)
    max_interval: Any = field(default=None, kw_only=True)
    seed: int | str | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parameters."""
        owner, interval = "Promesse", self.max_interval
        epsilon = check_number(self.epsilon, name="epsilon", owner="Promesse", unit="metres", low=0.01, high=1e6)
        check_choice(self.variant, name="variant", owner="Promesse", options=("polyline", "pseudocode"))
        min_points = check_integer(self.min_points, name="min_points", owner="Promesse")
        if interval is not None:
            interval = check_duration_as_text(interval, name="max_interval", owner=owner)
        values = {
            "ends": self._check_ends(epsilon),
            "max_interval": interval,
            "seed": check_seed(self.seed, owner=owner),
        }
        if interval is not None:
            values["remedy"] = f"{type(self).remedy[:-1]}, or a longer max_interval (--max-interval)."
        set_fields(self, {"epsilon": epsilon, "min_points": min_points} | values)

    def _check_ends(self, epsilon: float) -> float:
        """Return `ends` as 0 or a number of metres of at least epsilon."""
        ends = check_number(self.ends, name="ends", owner="Promesse", unit="metres", high=1e7, zero=True)
        if 0 < ends < epsilon:
            raise ValueError(
                f"The 'ends' parameter of Promesse must be 0 or at least epsilon = {epsilon:g} m: less than one point "
                f"would be cut. Got {ends:g} instead."
            )
        return ends

    def __repr__(self) -> str:
        """Return an expression that makes the mechanism but for the seed, without new parameters that do nothing."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.parameters().items())})"

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that can be published: all but the seed, and `ends` and `max_interval` if set."""
        defaults = {"ends": 0.0, "max_interval": None}
        return {name: value for name, value in super().parameters().items() if defaults.get(name, ...) != value}

    @property
    def is_random(self) -> bool:
        """Whether two calls cut different ends, as they do with `ends` and without a seed."""
        return bool(self.ends) and self.seed is None

    def _protect(self, traces: Traces) -> "tuple[Traces, _Dropped]":
        points, counts, begin, end = self._sample(traces, cuts=self._cuts(traces))
        slow = self._are_slow(counts, begin, end)
        if slow.any():
            points = points[np.repeat(~slow, counts)]
            counts[slow] = 0
        protected = self._assemble(traces, points, counts, begin, end)
        return protected, self._remark_on(traces, protected, slow=int(slow.sum()))

    def _cuts(self, traces: Traces) -> np.ndarray | None:
        """Numbers of points to cut from the begin and the end of each segment, int64 of shape (segments, 2), or None.

        Each is the upper half of 64 random bits times the number of choices, divided by 2³².
        """
        if not self.ends:
            return None
        choices = int(self.ends / self.epsilon * (1 + 1e-9)) + 1
        cipher = Cipher(algorithms.AES256(key_of(self.seed, "ends")), modes.ECB()).encryptor()
        firsts = zip(traces.users.tolist(), traces.times[traces.offsets[:-1]].tolist(), strict=True)
        names = np.array([self._name(user, first) for user, first in firsts], np.uint32).reshape(-1, 3)
        owners = traces.segment_owners
        blocks = np.empty((len(owners), 4), np.uint32)
        blocks[:, :3] = names[owners]
        blocks[:, 3] = np.arange(len(owners)) - np.searchsorted(owners, owners)
        words = np.frombuffer(cipher.update(blocks.tobytes()), np.uint64).reshape(-1, 2)
        return ((words >> np.uint64(32)) * np.uint64(choices) >> np.uint64(32)).astype(np.int64)

    def _name(self, user: object, first: int) -> np.ndarray:
        """96 bits that identify a trace with these parameters."""
        message = struct.pack("<qdd", first, self.epsilon, self.ends) + str(user).encode()
        return np.frombuffer(hashlib.blake2b(message, digest_size=12).digest(), np.uint32)

    def _are_slow(self, counts: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Whether the constant interval of each segment exceeds `max_interval`; false for single points."""
        if self.max_interval is None:
            return np.zeros(len(counts), bool)
        longest = check_duration(self.max_interval, name="max_interval", owner="Promesse")
        several = counts > 1
        slow = np.zeros(len(counts), bool)
        steps = counts[several] - 1
        whole, rest = np.divmod(end[several] - begin[several], steps)
        slow[several] = (whole > longest) | ((whole == longest) & (rest > 0))
        return slow

    def _assemble(
        self, traces: Traces, points: np.ndarray, counts: np.ndarray, begin: np.ndarray, end: np.ndarray
    ) -> Traces:
        """Return Traces of the points of each segment, with times in equal steps."""
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

    def _remark_on(self, traces: Traces, protected: Traces, *, slow: int) -> "_Dropped":
        """Return how many traces and segments were dropped, `slow` of them for their interval, and that breaks stay."""
        points = "" if self.min_points == 1 else f" and min_points = {self.min_points}"
        ends = f" and ends = {self.ends:g} m" if self.ends else ""
        reason = f"path too short for epsilon = {self.epsilon:g} m{ends}{points}"
        dropped, segments = len(traces) - len(protected), len(traces.segments) - len(protected.segments)
        slower = "" if self.max_interval is None else f"points more than {span(pd.Timedelta(self.max_interval))} apart"
        return _Dropped(len(traces), dropped, len(traces.breaks), segments, slow, reason, slower)

    def samples(self, traces: Traces) -> tuple[np.ndarray, np.ndarray]:
        """Return the sampled points of protectable traces with the first and the last ones, which `protect` removes.

        `ends` and `max_interval` do not count here.

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

    def _sample(
        self, traces: Traces, *, last: int = 1, cuts: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Points without the first and the `last` last, and each segment's number of them, first and last time.

        With `cuts`, that many more are removed from the begin and the end of each segment.
        """
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
        trims = None if cuts is None else (cuts, np.empty(len(out), np.int64))
        rule = (trims, *self._rule(space), self.min_points, last)
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


@dataclass(frozen=True)
class _Dropped(Remark):
    """A remark on what cannot be protected: `slow` segments for the time between points, others for their length."""

    constants: ClassVar[tuple[str, ...]] = ("reason", "slower")

    traces: int
    dropped: int
    breaks: int
    segments: int
    slow: int
    reason: str
    slower: str

    def __str__(self) -> str:
        """Return the counts, and that breaks stay."""
        texts, several = [], counted(self.breaks + self.traces, "segment")
        if self.breaks:
            breaks = counted(self.breaks, "break")
            texts.append(f"The data have {breaks}: each of {several} was protected as a trace of its own.")
        if self.segments:
            what, reason = counted(self.traces, "trace"), self.reason
            if self.breaks:
                what += f" and {self.segments:,} of {several}"
            verb = "was" if self.dropped == 1 and not self.breaks else "were"
            if self.slow:
                reason += f", or (for {counted(self.slow, 'segment' if self.breaks else 'trace')}) {self.slower}"
            texts.append(f"{self.dropped:,} of {what} could not be protected and {verb} dropped: {reason}.")
        if self.dropped == self.traces > 0:
            longer = " or a longer max_interval" if self.slow else ""
            texts.append(f"Nothing is left: take a smaller epsilon{longer}.")
        return " ".join(texts)


def _equal_steps(offsets: np.ndarray, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Times in equal steps from each trace's first to its last."""
    times = np.empty(offsets[-1], np.int64)
    threads.run(
        lambda first, last: smoothing.space_times(offsets, begin, end, first, last, times),
        threads.fair(np.diff(offsets)),
    )
    return times
