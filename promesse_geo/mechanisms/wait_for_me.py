"""Wait for Me: groups of k traces that go together (Abul, Bonchi and Nanni 2010)."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import clustering as kernels
from promesse_geo.mechanisms.base import Mechanism
from promesse_geo.mechanisms.clustering import Clustering, Groups, Tracks, allocate_distances, chunks
from promesse_geo.mechanisms.published_groups import WaitForMeReport, publish_groups
from promesse_geo.messages import collected_warnings, counted, invalid, warn
from promesse_geo.threads import progress_bar
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
_SECOND = 1_000_000_000
_LONGEST_OF_PROGRAM = 10_000  # records: the program thins longer traces


@dataclass(frozen=True)
class WaitForMe(Mechanism):
    """Publish traces in groups of at least k that are within delta metres of each other at every instant.

    Traces that are similar in place and time are grouped around a pivot drawn at random. Every member gets the times
    of the pivot, and points within delta/2 of the pivot's. Traces that fit no group are dropped (trash).

    What it does not protect: **the pivot of each group is published as it was**, with all places where it stopped.
    Points within delta are not indistinguishable: if delta is above 0, an attacker who knows some true places can
    distinguish members of a group, so this is not k-anonymity of trajectories (Trujillo-Rasua and Domingo-Ferrer).
    Traces with the path and times of another user are of little use for counts and routes.

    Parameters
    ----------
    k : int
        Least number of traces in a group, 2 or more.
    delta : float
        Greatest distance in metres between members of a group at any instant.
    max_radius : float
        Initial limit in metres of distances in a group; it is increased by half until the trash is small enough.
    max_trash : float
        Largest share of traces that are dropped, from 0 to 1.
    cost_cap : int
        Cost of a pair of far points in the alignment, in units of delta; M in the paper.
    radius_test : {"members", "v1.1"}
        Compare the members of a group with the radius; or, like an error of the program of 2010, the traces whose
        numbers are the members' positions in a list.
    chunk : bool
        Group 20·k similar traces at a time, for data too large for all distances at once.
    program : {None, "v1.1"}
        "v1.1" reproduces the program of 2010: random numbers of C (seed 1 by default), whole seconds, speeds in
        single precision, and traces of more than 10,000 records thinned to that number. Its result depends on the
        order of traces: that of first appearance in a frame, but that of user names in Traces, and so on the command
        line and in `evaluate`.
    seed : int or str, optional
        Makes the drawing of pivots repeatable; by default it differs for each call. No repr shows it.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; when protecting, if there are fewer than k traces.
    MemoryError
        Before the work, if the distances between all traces do not fit in memory: take chunk=True.

    Notes
    -----
    Distances are measured in one plane: that of a projected CRS that is true to scale, else the azimuthal equidistant
    plane around the mean of all records. At an angle θ from there, lengths across are too long by θ/sin θ − 1 (0.1 %
    at 500 km, 1 % at 1,550 km, beyond which a warning is issued). The distance of traces is LST, the paper's greedy
    alignment, which is neither symmetric nor divided by length. All distances are exact, and the result does not
    depend on the number of threads.

    References
    ----------
    Abul, Bonchi, Nanni: Anonymization of moving objects databases by clustering and perturbation. Information
    Systems 35(8), 2010. Trujillo-Rasua, Domingo-Ferrer: On the privacy offered by (k, δ)-anonymity. Information
    Systems 38(4), 2013.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=3, days=1, recorder="phone", as_traces=True)
    >>> safe, report = pg.WaitForMe(k=2, delta=200, max_trash=0, seed=1).protect_with_report(city)
    >>> len(safe), report.trash
    (3, 0)
    """

    units: ClassVar[Mapping[str, str]] = {"k": "traces", "delta": "m", "max_radius": "m"}

    needs_prepared_data: ClassVar[bool] = True
    is_per_user: ClassVar[bool] = False

    remedy: ClassVar[str] = "Take a larger max_radius or a smaller max_trash (--max-radius, --max-trash)."

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
        check_choice(self.radius_test, name="radius_test", owner=owner, options=("members", "v1.1"))
        seed = check_seed(self.seed, owner=owner)
        if self.program is not None:
            if not (isinstance(self.program, str) and self.program == "v1.1"):
                kind = ValueError if isinstance(self.program, str) else TypeError
                raise kind(invalid("program", owner, "None or 'v1.1'", self.program))
            seed = _seed_of_c(seed)
        checked = {
            "k": check_integer(self.k, name="k", owner=owner, low=2),
            "delta": check_number(self.delta, name="delta", owner=owner, unit="metres", low=0.01, high=1e7),
            "max_radius": check_number(self.max_radius, name="max_radius", owner=owner, unit="metres", high=1e9),
            "max_trash": _check_share(self.max_trash, owner=owner),
            "cost_cap": check_integer(self.cost_cap, name="cost_cap", owner=owner, high=_LARGEST_CAP),
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

    def protect(self, data: Data, *, user: Name = ..., time: Name = ..., segment: Name = ...) -> Data:
        """Protect a data set; see `Mechanism.protect`."""
        return self.protect_with_report(data, user=user, time=time, segment=segment)[0]

    def protect_with_report(
        self, data: Data, *, user: Name = ..., time: Name = ..., segment: Name = ...
    ) -> tuple[Data, WaitForMeReport]:
        """Protect a data set and report what was done.

        Parameters
        ----------
        data, user, time, segment
            As for `protect`.

        Returns
        -------
        protected : geopandas.GeoDataFrame or Traces
            Of the type of `data`.
        report : WaitForMeReport
            Counts and groups; do not publish the groups.

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
            protected, report = self._protect_and_warn(traces, order)
            reports.append(report)
            return self._note(protected, traces)

        return map_traces(data, work, user=user, time=time, segment=segment), reports[0]

    def _protect(self, traces: Traces) -> Traces:
        return self._protect_in_order(traces, np.arange(len(traces)))[0]

    def _protect_and_warn(self, traces: Traces, order: np.ndarray) -> tuple[Traces, WaitForMeReport]:
        """Protect traces, and warn once of thinned traces, of lengths that err and of trash."""
        with collected_warnings() as collected:
            protected, report = self._protect_in_order(traces, order)
        self._warn(traces, " ".join(filter(None, [*map(str, collected), _trash_in_words(report)])))
        return protected, report

    def _protect_in_order(self, traces: Traces, order: np.ndarray) -> tuple[Traces, WaitForMeReport]:
        if len(traces) < self.k:
            raise ValueError(
                f"Wait for Me with k = {self.k} needs at least {self.k} traces. Got {len(traces):,}. "
                "Take a smaller k, or more traces: prepare() (promesse-geo prepare) splits each user's trace."
            )
        if len(traces.breaks):
            raise ValueError(
                f"Wait for Me needs traces without breaks. Got {counted(len(traces.breaks), 'break')}. "
                "Split the traces there first, with split_gaps or prepare."
            )
        if not self.chunk:
            allocate_distances(len(traces), largest=2 * self.cost_cap * int(traces.counts.max()))
        if self.program:
            traces = _read_like_program(traces)
        plane = traces.space.local_plane(traces.points)
        plane.warn_of_distortion()
        tracks, features = self._tracks(traces, plane, order)
        groups = self._grouped(tracks, features)
        return publish_groups(traces, plane, tracks, groups, order, delta=self.delta, cap=self.cost_cap)

    def _tracks(self, traces: Traces, plane: LocalPlane, order: np.ndarray) -> tuple[Tracks, np.ndarray]:
        """Traces in the order of the algorithm, and the features by which chunks are made."""
        begins, ends = traces.offsets[:-1][order], traces.offsets[1:][order]
        paths, boxes = np.empty(len(order)), np.empty((len(order), 4))
        threads.run(
            lambda first, last: kernels.measure_traces(plane.x, plane.y, begins, ends, first, last, paths, boxes),
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
        slip, several = self.radius_test == "v1.1", len(parts) > 1
        progress = progress_bar(parts, label="grouping", unit="chunks", hidden=not several)
        for number, members in enumerate(progress):
            clustering = Clustering(
                tracks, members, k=self.k, size=self.delta, cap=self.cost_cap, slip=slip, bar=not several
            )
            groups.append(clustering.run(radius=self.max_radius, most_trash=most_trash, draw=draws(number)))
        return groups

    def _draws(self) -> Callable[[int], Callable[[int], int]]:
        """For each chunk, a function that draws a whole number below another."""
        if self.program and self.seed is not None:
            stream = c_rand(int(self.seed))
            return lambda chunk: lambda count: next(stream) % count
        entropy = int.from_bytes(key_of(self.seed, "pivots"), "little")

        def draw_in(chunk: int) -> Callable[[int], int]:
            generator = np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(chunk,)))
            return lambda count: int(generator.integers(count))

        return draw_in


def _trash_in_words(report: WaitForMeReport) -> str:
    """What to warn of."""
    if not report.trash:
        return ""
    return (
        f"Wait for Me dropped {report.trash:,} of {counted(report.traces, 'trace')} "
        f"({counted(report.trashed_records, 'record')}): no group within {report.final_radius:,.12g} m."
    )


def _check_share(value: Any, *, owner: str) -> float:
    rule = "a number from 0 to 1, the share of the traces"
    if not is_number(value):
        raise TypeError(invalid("max_trash", owner, rule, value))
    if not 0 <= value <= 1:
        raise ValueError(invalid("max_trash", owner, rule, value))
    return float(value)


# The program of 2010, "Wait 4 Me v1.1".


def _read_like_program(traces: Traces) -> Traces:
    """Whole seconds, and of traces with n > 10,000 records those with (i mod (n / 10,000)) < 1."""
    traces = replace(traces, times=traces.times // _SECOND * _SECOND)
    counts = traces.counts
    if len(counts) == 0 or counts.max() <= _LONGEST_OF_PROGRAM:
        return traces
    number = np.arange(traces.records) - np.repeat(traces.offsets[:-1], counts)
    step = np.repeat(np.maximum(counts / _LONGEST_OF_PROGRAM, 1), counts)
    keep = np.mod(number, step) < 1
    long, dropped = int(np.sum(counts > _LONGEST_OF_PROGRAM)), len(keep) - int(keep.sum())
    warn(
        f"{counted(dropped, 'record')} of {counted(long, 'trace')} {'was' if dropped == 1 else 'were'} dropped: "
        f"the program of 2010 thins traces of more than {_LONGEST_OF_PROGRAM:,} records."
    )
    return traces.select(keep)


def _seed_of_c(seed: int | str | None) -> int:
    """Return a seed for srand(), by default 1; raise ValueError, without the seed, if it is none."""
    if isinstance(seed, str) and seed.isdecimal():
        with suppress(ValueError):  # too many digits for Python
            seed = int(seed)
    seed = 1 if seed is None else seed
    if not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise ValueError("The 'seed' parameter of WaitForMe with program='v1.1' must be a whole number below 2**31.")
    return seed


def c_rand(seed: int) -> Iterator[int]:
    """Yield what rand() of the GNU C library gives after srand(seed)."""
    r = [seed or 1]
    for _ in range(30):
        r.append(16807 * r[-1] % (2**31 - 1))
    r += r[:3]
    for number in itertools.count():
        r.append((r[-3] + r[-31]) % 2**32)
        del r[0]
        if number >= 310:
            yield r[-1] >> 1
