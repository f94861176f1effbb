"""The clustering of Wait for Me: groups of traces that are near each other at all times."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import clustering as kernels
from promesse_geo.mechanisms.base import allocate
from promesse_geo.threads import progress_bar

_TOTAL = 2**31 - 1  # totals up to here are kept in 32 bits
_SHARE = 0.25  # of the memory that the distances may take
_BLOCKS = 200  # shares of the rows of a large matrix: each is one step of the progress bar


@dataclass(frozen=True)
class Groups:
    """Result of the clustering: positions of traces, clusters in the order in which they were made.

    Parameters
    ----------
    pivots : list of int
        The pivot of each cluster.
    members : list of lists of int
        All traces of each cluster, its pivot too, in ascending order.
    trash : list of int
        Traces of no cluster, in ascending order.
    radius : float
        Metres: the radius with which the trash was small enough.
    restarts : int
        How often the clustering started again with a larger radius.
    """

    pivots: list[int]
    members: list[list[int]]
    trash: list[int]
    radius: float
    restarts: int


@dataclass(frozen=True, eq=False)
class Tracks:
    """Traces in plane metres and metres of time, from record begins[i] to ends[i]; see kernels.clustering.

    Parameters
    ----------
    x, y, z : numpy.ndarray of float64, shape (records,)
        Metres; z is time weighted by the mean speed.
    begins, ends : numpy.ndarray of int64, shape (traces,)
        Where the records of each trace lie.
    boxes : numpy.ndarray of float64, shape (traces, 4)
        Smallest and largest x, smallest and largest y of each.
    """

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    boxes: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Records of each trace, shape (traces,)."""
        return self.ends - self.begins

    def distances(self, members: np.ndarray, *, size: float, cap: int, bar: bool) -> np.ndarray:
        """Return the LST distances between members, shape (members, members): a row per pivot, a column per other."""
        out = allocate_distances(len(members), largest=int(cap * 2 * self.counts[members].max()))
        far, apart = _thresholds(size, cap)
        rule = (size, float(cap), far, apart)

        def fill(first: int, last: int) -> None:
            kernels.align_all(
                self.x, self.y, self.z, self.begins, self.ends, self.boxes, members, first, last, rule, out
            )

        work = self.counts[members] * len(members) // 16
        shares = np.unique(threads.fair(work, most=_BLOCKS))
        with progress_bar(label="aligning", unit="traces", total=len(shares) - 1, hidden=not bar) as progress:
            threads.run_interruptible(fill, shares, progress=progress.update)
        return out

    def within(self, p: int, q: int, *, size: float, cap: int, limit: float) -> float:
        """Return the radius distance in metres of two traces; if it is beyond the limit, some distance beyond it."""
        ways = (self.begins[p], self.ends[p], self.begins[q], self.ends[q])
        return float(kernels.find_radius(self.x, self.y, self.z, *ways, size, float(cap), float(limit)))


def allocate_distances(traces: int, *, largest: int) -> np.ndarray:
    """Return an uninitialized array for distances, shape (traces, traces), in 32 bits if `largest` fits.

    Raises
    ------
    MemoryError
        If it needs more than a quarter of the memory.
    """
    dtype = np.dtype(np.int32 if largest <= _TOTAL else np.int64)
    size = traces * traces * dtype.itemsize / 2**30
    error = (
        f"The distances between {traces:,} traces need {size:,.1f} GiB, more than a quarter of the memory. "
        "Take chunk=True (--chunk), which groups some traces at a time."
    )
    return allocate((traces, traces), dtype, share=_SHARE, error=error)


def _thresholds(size: float, cap: int) -> tuple[float, float]:
    """The smallest d² with min(cap, trunc(d / size)) = cap, and the smallest root whose square is that or more."""
    far = (cap * size) ** 2
    while math.sqrt(far) / size >= cap:
        far = math.nextafter(far, 0)
    while math.sqrt(far) / size < cap:
        far = math.nextafter(far, math.inf)
    apart = math.sqrt(far)
    while apart * apart >= far:
        apart = math.nextafter(apart, 0)
    while apart * apart < far:
        apart = math.nextafter(apart, math.inf)
    return far, apart


class Clustering:
    """Clustering of traces around pivots drawn at random.

    Parameters
    ----------
    tracks : Tracks
        All traces.
    members : numpy.ndarray of int64
        The traces to cluster.
    k : int
        Least number of traces in a cluster.
    size, cap
        Metres and cap of the distance; see kernels.clustering.
    slip : bool
        Take positions for trace numbers in the radius test, like the program of 2010.
    bar : bool
        Show progress.
    """

    def __init__(
        self, tracks: Tracks, members: np.ndarray, *, k: int, size: float, cap: int, slip: bool, bar: bool
    ) -> None:
        self._tracks, self._members = tracks, members
        self._k, self._size, self._cap, self._slip = k, size, cap, slip
        self._distances = tracks.distances(members, size=size, cap=cap, bar=bar)
        self._radii: dict[tuple[int, int], tuple[float, float]] = {}

    def run(self, *, radius: float, most_trash: int, draw: Callable[[int], int]) -> Groups:
        """Cluster with a growing radius until at most `most_trash` traces are left; draw(n) is below n."""
        restarts = 0
        while True:
            pivots, groups, left = self._around_pivots(radius, draw)
            trash = self._join(pivots, groups, left, radius)
            if len(trash) <= most_trash:
                break
            radius, restarts = max(math.trunc(1.5 * radius), radius + 1), restarts + 1
        number = self._members
        members = [sorted(number[group].tolist()) for group in groups]
        return Groups(number[pivots].tolist(), members, sorted(number[trash].tolist()), radius, restarts)

    def _around_pivots(self, radius: float, draw: Callable[[int], int]) -> tuple[list[int], list[list[int]], list[int]]:
        """Pivots with their k − 1 nearest, as positions among the members, and the members left over."""
        k, count = self._k, len(self._members)
        remaining, failed = np.arange(count), np.zeros(count, bool)
        amounts, places = np.empty(k + 1, self._distances.dtype), np.empty(k + 1, np.int64)
        pivots: list[int] = []
        groups: list[list[int]] = []
        free = count
        while count >= k and free:
            position = kernels.find_candidate(remaining, count, failed, draw(count))
            pivot = int(remaining[position])
            kernels.select_nearest(self._distances[pivot], remaining, count, position, amounts, places)
            nearest = places[1:k]
            tested = nearest if self._slip else remaining[nearest]
            if any(self._is_beyond(pivot, other, radius) for other in tested.tolist()):
                failed[pivot] = True
                free -= 1
                continue
            group = [pivot, *remaining[nearest].tolist()]
            free -= int(np.sum(~failed[group]))
            pivots.append(pivot)
            groups.append(group)
            for gone in sorted([position, *nearest.tolist()], reverse=True):
                count -= 1
                remaining[gone] = remaining[count]
        return pivots, groups, remaining[:count].tolist()

    def _join(self, pivots: list[int], groups: list[list[int]], left: list[int], radius: float) -> list[int]:
        """Let those left over join the cluster of the nearest pivot; return those that are too far from it."""
        if not pivots:
            return left
        rows = np.array(pivots)
        nearest = [int(np.argmin(self._distances[rows, trace])) for trace in left]
        trash = []
        for trace, group in zip(left, nearest, strict=True):
            if self._is_beyond(pivots[group], trace, radius):
                trash.append(trace)
            else:
                groups[group].append(trace)
        return trash

    def _is_beyond(self, pivot: int, other: int, radius: float) -> bool:
        """Whether their radius distance is larger than `radius`; kept, with the limit up to which it is known."""
        distance, limit = self._radii.get((pivot, other), (0.0, -1.0))
        if limit < distance <= radius:
            p, q = int(self._members[pivot]), int(self._members[other])
            distance = self._tracks.within(p, q, size=self._size, cap=self._cap, limit=radius)
            self._radii[pivot, other] = (distance, radius)
        return distance > radius


def chunks(features: np.ndarray, *, k: int) -> list[np.ndarray]:
    """Divide traces into chunks of 20 k: the first one left and those nearest to it; the last chunk may be larger.

    Parameters
    ----------
    features : numpy.ndarray of float64, shape (traces, 6)
        Begin, end and box of each trace, in metres.
    k : int
        Least number of traces in a group.

    Returns
    -------
    list of numpy.ndarray of int64
        The positions of the traces of each chunk.
    """
    left, shared = np.arange(len(features)), []
    while len(left) >= 40 * k:
        gaps = np.empty(len(left) - 1)
        kernels.compare_features(features, left, gaps)
        others = 20 * k - 1
        near = np.flatnonzero(gaps <= np.partition(gaps, others - 1)[others - 1])
        near = near[np.argsort(gaps[near], kind="stable")][:others] + 1
        shared.append(left[np.concatenate(([0], near))])
        left = np.delete(left, np.concatenate(([0], near)))
    return [*shared, left]
