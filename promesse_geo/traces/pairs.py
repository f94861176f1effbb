"""Original and protected traces of the same users, in one space."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pyproj import Transformer
from pyproj.exceptions import ProjError

from promesse_geo import threads
from promesse_geo.kernels import sharing
from promesse_geo.messages import counted
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces

SAME_PLACE = 1e-3
"""Metres within which two points are one, whatever CRS and space they went through."""

COARSE = 10.0
"""Metres of the last digit beyond which coordinates are not taken for rounded true ones."""

WIDER = 10
"""Times farther than on a true point is near one: what lies there tells what lies on one by chance."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Protected traces beside the original ones of their users.

    Parameters
    ----------
    original : Traces
        All original traces.
    protected : Traces
        The protected traces whose users the original has, in the original's space.
    originals : numpy.ndarray of int64, shape (protected traces,)
        The number of each one's original trace.
    published : Traces
        The same protected traces, in their own space.
    """

    original: Traces
    protected: Traces
    originals: np.ndarray
    published: Traces

    def end_distances(self, *, first: bool) -> np.ndarray:
        """Return the metres from each protected trace's first (or last) point to the original's, shape (traces,)."""
        ends = slice(None, -1) if first else slice(1, None)
        back = 0 if first else 1
        return self.distances(self.original.offsets[ends][self.originals] - back, self.protected.offsets[ends] - back)

    def distances(self, theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
        """Return the metres between original and protected records, which are named by their numbers."""
        chords = np.linalg.norm(self.original.points[theirs] - self.protected.points[ours], axis=1)
        return self.original.space.metres(chords)

    def same_times(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the original record that has the time of each protected one, or -1, and whether one is near.

        Original times count as rounded, up or down, to what the protected ones are in: whole hours, minutes, seconds,
        milli- or microseconds, looked at trace by trace; near (1) is what lies within `WIDER` times that, and 2 more
        where far nearer than the original times are to each other. Both have the shape (records,).
        """
        found, near = np.empty(self.protected.records, np.int64), np.empty(self.protected.records, np.int8)
        threads.run(
            lambda first, last: sharing.same_times(
                self.original.times,
                self.original.offsets,
                self.protected.times,
                self.protected.offsets,
                self.originals,
                WIDER,
                first,
                last,
                found,
                near,
            ),
            self._shares,
        )
        return found, near

    def nearness(self) -> np.ndarray:
        """Return whether each protected record lies on an original one of its user (2), near one (1) or neither (0).

        On it are points within about a millimetre, or where the record's published coordinates are rounded coarser
        than that, within what the rounding can do; near it are points within `WIDER` times that.
        """
        levels, reaches = rounding(self.published)
        scales = self.original.space.scale / reaches
        found = np.zeros(self.protected.records, np.int8)
        threads.run(
            lambda first, last: sharing.nearness(
                self.original.points,
                self.original.offsets,
                self.protected.points,
                self.protected.offsets,
                self.originals,
                levels,
                scales,
                WIDER,
                first,
                last,
                found,
            ),
            self._shares,
        )
        return found

    @property
    def _shares(self) -> np.ndarray:
        return threads.fair(self.protected.counts + self.original.counts[self.originals])


def decimals_of(space: Space, metres: float) -> int:
    """Return how many decimals a coordinate needs so that the last one is about so many metres."""
    return math.ceil(math.log10(space.unit / metres) - 0.1)


def decimals(traces: Traces, least: int, most: int) -> np.ndarray:
    """Return how many decimals each record's coordinates have, at least `least`; `most` + 1 where they have more."""
    x, y = traces.coordinates()
    found = np.empty(traces.records, np.int8)
    threads.run(
        lambda first, last: sharing.fewest_decimals(x, y, least, most, first, last, found),
        threads.even(traces.records),
    )
    return found


def rounding(published: Traces) -> tuple[np.ndarray, np.ndarray]:
    """Return the level of each record's decimals, and how many metres rounding to each level can move a point.

    Levels go from a last digit of `COARSE` metres to one of `SAME_PLACE`, and one more for what is finer.
    """
    coarsest, finest = decimals_of(published.space, COARSE), decimals_of(published.space, SAME_PLACE)
    digits = np.append(published.space.unit / 10.0 ** np.arange(coarsest, finest + 1), 0)
    return decimals(published, coarsest, finest) - coarsest, np.maximum(1.5 * digits, SAME_PLACE)


def align(original: Traces, protected: Traces) -> Pairs:
    """Put protected traces beside the original ones of their users, in the original's space.

    Parameters
    ----------
    original, protected : Traces
        Both may differ in CRS, in the order of their input, and in whether their users are text or integers: keys
        that differ by nothing else never stand in one data set.

    Returns
    -------
    Pairs

    Raises
    ------
    ValueError
        If one of the two has times with a zone and the other without, or protected points have no place in the
        original's CRS.
    """
    zoned = [traces.time_format.zone is not None for traces in (original, protected)]
    if original.records and protected.records and zoned[0] != zoned[1]:
        with_zone, without = ("original", "protected") if zoned[0] else ("protected", "original")
        raise ValueError(
            f"The {with_zone} times have a time zone and the {without} ones have none, so they cannot be compared. "
            "Compare with the prepared data, or bring both to one kind with dt.tz_localize."
        )
    numbers = _as_text(original.users).get_indexer(_as_text(protected.users))
    kept = numbers >= 0
    known = protected if kept.all() else protected.select(np.repeat(kept, protected.counts))
    return Pairs(original, in_space_of(original, known), numbers[kept], known)


def _as_text(users: pd.Index) -> pd.Index:
    return pd.Index([str(user) for user in users.tolist()], dtype=object)


def in_space_of(original: Traces, protected: Traces) -> Traces:
    """Return protected traces in the space of the original, or say what has no place there."""
    if protected.space == original.space:
        return protected
    x, y = protected.coordinates()
    if protected.space.crs != original.space.crs:
        try:
            change = Transformer.from_crs(protected.space.crs, original.space.crs, always_xy=True)
            x, y = change.transform(x, y)
        except ProjError:
            raise ValueError(
                "There is no way from the CRS of the protected data to that of the original. Compare in one CRS."
            ) from None
    points = original.space.points(np.asarray(x), np.asarray(y))
    lost = int((~np.isfinite(points).all(axis=1)).sum())
    if lost:
        raise ValueError(
            f"{counted(lost, 'published point')} of {len(points):,} cannot be placed in the CRS of the original "
            "data. Compare in one CRS, for example with gdf.to_crs."
        )
    return replace(protected, points=points, space=original.space)
