"""Densest spots of points, such as the ends of traces."""

from typing import NamedTuple

import numpy as np

from promesse_geo import threads
from promesse_geo.kernels import densest
from promesse_geo.messages import counted
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.space import Space

SPOT = 100.0
"""Metres: width of the kernel of the densest spot."""

NEAR = 200.0
"""Metres within which ends belong to a spot."""

LEAST = 5
"""Fewest ends of traces at a place from which an attacker, or a zone, takes it for one where somebody lives."""

_CLOSE = 0.5  # of the points of the first spot: with as many ends at another one, that may be the home


def densest_spots(points: np.ndarray, offsets: np.ndarray, space: Space) -> np.ndarray:
    """Return the row of the densest point of each group, int64 of shape (groups,); −1 for an empty group.

    It has the greatest sum of exp(−½(d / 100 m)²) over the points of the group; of equal ones the first.

    Parameters
    ----------
    points : numpy.ndarray of float64, shape (n, 3) or (n, 2)
        Points in the space, group by group.
    offsets : numpy.ndarray of int64, shape (groups + 1,)
        First point of each group, and the number of points.
    space : Sphere or Plane
        Where they lie.
    """
    best = np.empty(len(offsets) - 1, np.int64)
    points, width = np.ascontiguousarray(points), SPOT / space.scale
    threads.run(
        lambda first, last: densest.find_densest(points, offsets, space.curvature, width, first, last, best),
        threads.fair(np.diff(offsets) ** 2),
    )
    return best


class Spots(NamedTuple):
    """Densest spots of groups: those of all groups, then the second ones, and so on.

    Parameters
    ----------
    groups : numpy.ndarray of int64, shape (spots,)
        The group of each spot.
    points : numpy.ndarray of float64, shape (spots, 3) or (spots, 2)
        Where they are.
    ranks : numpy.ndarray of int64, shape (spots,)
        0 for the densest spot of a group, 1 for the second one.
    counts : numpy.ndarray of int64, shape (spots,)
        Points of the group within 200 m, without those of spots before.
    """

    groups: np.ndarray
    points: np.ndarray
    ranks: np.ndarray
    counts: np.ndarray

    def first(self, number: int) -> "Spots":
        """Return the first spots of each group."""
        return self._select(self.ranks < number)

    def close(self, rank: int) -> "Spots":
        """Return the spots of a rank that have at least half as many points as the first one of their group."""
        first = self.first(1)
        most = first.counts[np.searchsorted(first.groups, self.groups)]
        return self._select((self.ranks == rank) & (self.counts >= _CLOSE * most))

    def few(self) -> "Spots":
        """Return the first spots with fewer than `LEAST` points, which tell little of where somebody lives."""
        return self._select((self.ranks == 0) & (self.counts < LEAST))

    def _select(self, kept: np.ndarray) -> "Spots":
        return Spots(*(values[kept] for values in self))


def find_spots(points: np.ndarray, offsets: np.ndarray, space: Space, *, number: int) -> Spots:
    """Return up to `number` densest points of each group, each one without the points near those before.

    Parameters
    ----------
    points, offsets, space
        As for `densest_spots`.
    number : int
        Greatest number of spots of a group.
    """
    none = np.empty(0, np.int64)
    owners, rounds = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), [Spots(none, points[:0], none, none)]
    for rank in range(number):
        if not len(points):
            break
        sizes = np.bincount(owners, minlength=len(offsets) - 1)
        rows = densest_spots(points, as_offsets(sizes), space)
        found = np.flatnonzero(rows >= 0)
        far = space.metres(np.linalg.norm(points - points[rows[owners]], axis=1)) > NEAR
        counts = sizes - np.bincount(owners[far], minlength=len(sizes))
        rounds.append(Spots(found, points[rows[found]], np.full(len(found), rank), counts[found]))
        points, owners = points[far], owners[far]
    return Spots(*map(np.concatenate, zip(*rounds, strict=True)))


def close_in_words(number: int, users: int, *, nouns: tuple[str, str] = ("user", "users")) -> str:
    """Return how many users have another place with at least half as many ends as the first one (`Spots.close`)."""
    verb = "begins or ends" if number == 1 else "begin or end"
    return (
        f"{number:,} of {counted(users, *nouns)} {verb} at least half as many traces at another place, which may be "
        "the home"
    )
