"""Wait for Me, the mechanism: its parameters, and the way through it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import alignment
from promesse_geo.mechanisms.base import Mechanism
from promesse_geo.mechanisms.wait_for_me.grouping import Clustering, Groups, Tracks, allocate_distances, chunks
from promesse_geo.mechanisms.wait_for_me.program import as_the_program_reads, c_rand, seed_of_c
from promesse_geo.mechanisms.wait_for_me.publication import WaitForMeReport, publish
from promesse_geo.messages import invalid
from promesse_geo.progress import progress_bar
from promesse_geo.traces.columns import Name
from promesse_geo.traces.space import LocalPlane
from promesse_geo.traces.traces import Data, Traces, map_traces
from promesse_geo.validation import (
    check_choice,
    check_flag,
    check_integer,
    check_number,
    check_seed,
    is_number,
    key_of,
    set_fields,
)

_LARGEST_CAP = 1_000_000


@dataclass(frozen=True)
class WaitForMe(Mechanism):
    """Publish traces in groups of at least k that are within delta metres of each other at every instant.

    Traces that resemble each other in place and time are grouped around a pivot drawn at random; every member gets
    the pivot's times, and points within delta/2 of the pivot's. Traces that suit no group are left out (trash).

    What it does not promise. **The pivot of each group is published as it was**, with all places where it stopped:
    of k members one is not protected at all, but for the doubt which of them it is. Uncertainty within delta is no
    indistinguishability: with delta above 0 an attacker who knows some true places can tell members of a group apart,
    so that this is not the k-anonymity of trajectories that the name suggests (Trujillo-Rasua and Domingo-Ferrer).
    And traces that are moved to a stranger's path and times are of little use for counts and routes of their own.

    Parameters
    ----------
    k : int
        Traces of a group, at least; 2 or more.
    delta : float
        Metres between members of a group at any instant, at most.
    max_radius : float
        Metres to which plane distances in a group are limited at first; it grows by half until the trash is small
        enough.
    max_trash : float
        Share of the traces that may be left out, from 0 to 1.
    cost_cap : int
        What a pair of far points costs in the alignment, in units of delta; the paper's M.
    radius_test : {"members", "v1.1"}
        Test the members of a group against the radius, or, as a slip in the program of 2010 has it, the traces whose
        numbers are the members' positions in a list.
    chunk : bool
        Group 20·k traces at a time, those that resemble each other, for data too large for all distances at once.
    program : {None, "v1.1"}
        "v1.1" does as the program of 2010: the random numbers of C (seed 1 unless given), whole seconds, speeds in
        single precision, and traces above 10,000 records thinned to that number. The order of traces decides what it
        finds: it takes a frame's in the order in which the frame names them first, but Traces, and so the command
        line and `evaluate`, in the order of their users' names.
    seed : int or str, optional
        Makes the draw of pivots repeatable. By default it is drawn anew for each call. It shows in no repr.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of its range; when protecting, if there are fewer than k traces.
    MemoryError
        Before the work, if the distances between all traces are too many for the memory: take chunk=True.

    Notes
    -----
    All is done in one plane: that of a projected CRS that is true to scale, else the azimuthal equidistant plane of
    the sphere around the mean of all records. There, lengths across the way to the middle are too long by θ/sin θ − 1
    at an angle θ from it (0.1 % at 500 km, 1 % at 1,550 km; a warning says when that is exceeded). The distance of
    traces is LST, the paper's greedy alignment: neither symmetric nor divided by length. Every distance is exact,
    and any number of threads gives the same result.

    References
    ----------
    Abul, Bonchi, Nanni: Anonymization of moving objects databases by clustering and perturbation. Information
    Systems 35(8), 2010. Trujillo-Rasua, Domingo-Ferrer: On the privacy offered by (k, δ)-anonymity. Information
    Systems 38(4), 2013.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=6, days=1, as_traces=True)
    >>> safe, report = pg.WaitForMe(k=2, delta=200, max_trash=0, seed=1).protect_with_report(city)
    >>> len(safe), report.trash
    (6, 0)
    """

    units: ClassVar[Mapping[str, str]] = {"delta": "m"}

    remedy: ClassVar[str] = "Take a larger --max-radius or a smaller --max-trash."

    k: int = 2
    delta: float = 200.0
    max_radius: float = field(default=5000.0, kw_only=True)
    max_trash: float = field(default=0.1, kw_only=True)
    cost_cap: int = field(default=10, kw_only=True)
    radius_test: str = field(default="members", kw_only=True)
    chunk: bool = field(default=False, kw_only=True)
    program: str | None = field(default=None, kw_only=True)
    seed: int | str | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        """Check the parameters."""
        owner = "WaitForMe"
        cap = check_integer(self.cost_cap, name="cost_cap", owner=owner)
        if cap > _LARGEST_CAP:
            raise ValueError(invalid("cost_cap", owner, f"at most {_LARGEST_CAP:,}", self.cost_cap))
        check_choice(self.radius_test, name="radius_test", owner=owner, options=("members", "v1.1"))
        seed = check_seed(self.seed, owner=owner)
        if self.program is not None:
            if not (isinstance(self.program, str) and self.program == "v1.1"):
                kind = ValueError if isinstance(self.program, str) else TypeError
                raise kind(invalid("program", owner, "None or 'v1.1'", self.program))
            seed = seed_of_c(seed)
        checked = {
            "k": check_integer(self.k, name="k", owner=owner, low=2),
            "delta": check_number(self.delta, name="delta", owner=owner, unit="metres", low=0.01, high=1e7),
            "max_radius": check_number(self.max_radius, name="max_radius", owner=owner, unit="metres", high=1e9),
            "max_trash": _share(self.max_trash, owner=owner),
            "cost_cap": cap,
            "chunk": check_flag(self.chunk, name="chunk", owner=owner),
            "seed": seed,
        }
        set_fields(self, checked)

    @classmethod
    def v1_1(
        cls,
        k: int = 2,
        delta: float = 200,
        *,
        max_radius: float = 5000,
        max_trash: float = 0.1,
        cost_cap: int = 10,
        radius_test: str = "v1.1",
        chunk: bool = False,
        seed: int | None = None,
    ) -> "WaitForMe":
        """Make the mechanism that gives what the program of 2010, version 1.1, printed.

        Parameters
        ----------
        k, delta, max_radius, max_trash, cost_cap, radius_test, chunk
            As for the class.
        seed : int, optional
            For srand(); 1 by default.

        Returns
        -------
        WaitForMe
            With program="v1.1".

        Examples
        --------
        >>> import promesse_geo as pg
        >>> pg.WaitForMe.v1_1(delta=300).program
        'v1.1'
        """
        return cls(
            k,
            delta,
            max_radius=max_radius,
            max_trash=max_trash,
            cost_cap=cost_cap,
            radius_test=radius_test,
            chunk=chunk,
            program="v1.1",
            seed=seed,
        )

    def protect(self, data: Data, *, user: Name = ..., time: Name = ...) -> Data:
        """Protect a data set; see `Mechanism.protect`."""
        return self.protect_with_report(data, user=user, time=time)[0]

    def protect_with_report(self, data: Data, *, user: Name = ..., time: Name = ...) -> tuple[Data, WaitForMeReport]:
        """Protect a data set and say what was done.

        Parameters
        ----------
        data, user, time
            As for `protect`.

        Returns
        -------
        protected : geopandas.GeoDataFrame or Traces
            The kind that came.
        report : WaitForMeReport
            What was done; its groups are not for publication.

        Raises
        ------
        TypeError, ValueError, KeyError, MemoryError
            As for `protect`.
        """
        reports = []

        def work(traces: Traces) -> Traces:
            order = np.arange(len(traces))
            if self.program and not isinstance(data, Traces) and traces.records:
                order = np.argsort(np.minimum.reduceat(traces.positions, traces.offsets[:-1]), kind="stable")
            protected, report = self._protect_in_order(traces, order)
            reports.append(report)
            return protected

        return map_traces(data, work, user=user, time=time), reports[0]

    def _protect(self, traces: Traces) -> Traces:
        return self._protect_in_order(traces, np.arange(len(traces)))[0]

    def _protect_in_order(self, traces: Traces, order: np.ndarray) -> tuple[Traces, WaitForMeReport]:
        if len(traces) < self.k:
            raise ValueError(
                f"Wait for Me with k={self.k} needs at least {self.k} traces. Got {len(traces):,}. "
                "Take a smaller k, or more traces: prepare() makes several of one user's."
            )
        if not self.chunk:
            allocate_distances(len(traces), largest=2 * self.cost_cap * int(traces.counts.max()))
        if self.program:
            traces = as_the_program_reads(traces)
        plane = traces.space.local_plane(traces.points)
        plane.warn_of_distortion()
        tracks, features = self._tracks(traces, plane, order)
        groups = self._grouped(tracks, features)
        return publish(traces, plane, tracks, groups, order, delta=self.delta, cap=self.cost_cap)

    def _tracks(self, traces: Traces, plane: LocalPlane, order: np.ndarray) -> tuple[Tracks, np.ndarray]:
        """Traces in the order of the algorithm, and what chunks are made by."""
        begins, ends = traces.offsets[:-1][order], traces.offsets[1:][order]
        paths, boxes = np.empty(len(order)), np.empty((len(order), 4))
        threads.run(
            lambda first, last: alignment.measure(plane.x, plane.y, begins, ends, first, last, paths, boxes),
            threads.fair(ends - begins),
        )
        z = traces.times / 1e9
        durations = z[ends - 1] - z[begins]
        if self.program:
            paths = paths.astype(np.float32).astype(np.float64)
        speeds = np.divide(paths, durations, out=np.zeros(len(paths)), where=durations > 0)
        if self.program:
            speeds = speeds.astype(np.float32)
        z *= math.fsum(speeds.tolist()) / len(speeds)
        tracks = Tracks(plane.x, plane.y, z, begins, ends, boxes)
        return tracks, np.column_stack((z[begins], z[ends - 1], boxes))

    def _grouped(self, tracks: Tracks, features: np.ndarray) -> list[Groups]:
        parts = chunks(features, k=self.k) if self.chunk else [np.arange(len(features))]
        most_trash = math.floor(Fraction(str(self.max_trash)) * len(features)) // len(parts)
        draws = self._draws()
        groups = []
        several = len(parts) > 1
        progress = progress_bar(parts, label="grouping", unit="chunks", hidden=not several)
        for number, members in enumerate(progress):
            clustering = Clustering(
                tracks,
                members,
                k=self.k,
                size=self.delta,
                cap=self.cost_cap,
                slip=self.radius_test == "v1.1",
                bar=not several,
            )
            groups.append(clustering.run(radius=self.max_radius, most_trash=most_trash, draw=draws(number)))
        return groups

    def _draws(self) -> Callable[[int], Callable[[int], int]]:
        """For each chunk, what draws a whole number below another."""
        if self.program and self.seed is not None:
            stream = c_rand(int(self.seed))
            return lambda chunk: lambda count: next(stream) % count
        entropy = int.from_bytes(key_of(self.seed, "pivots"), "little")

        def draw_in(chunk: int) -> Callable[[int], int]:
            generator = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(chunk,)))
            return lambda count: int(generator.integers(count))

        return draw_in


def _share(value: Any, *, owner: str) -> float:
    """Return a share, or say that it is none."""
    rule = "a number from 0 to 1, the share of the traces"
    if not is_number(value):
        raise TypeError(invalid("max_trash", owner, rule, value))
    if not 0 <= value <= 1:
        raise ValueError(invalid("max_trash", owner, rule, value))
    return float(value)
