"""Original and protected traces of the same users, in one space."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pyproj import Transformer
from pyproj.exceptions import ProjError

from promesse_geo import check
from promesse_geo.space import EARTH_RADIUS, Plane, Space
from promesse_geo.traces import Traces

SAME_PLACE = 1e-3
"""Metres within which two points are one, whatever CRS and space they went through."""


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
        All protected traces, in their own space.
    """

    original: Traces
    protected: Traces
    originals: np.ndarray
    published: Traces

    def end_distances(self, *, first: bool) -> np.ndarray:
        """Return the metres from each protected trace's first (or last) point to the original's, shape (traces,)."""
        ends = slice(None, -1) if first else slice(1, None)
        back = 0 if first else 1
        theirs = self.original.points[self.original.offsets[ends][self.originals] - back]
        ours = self.protected.points[self.protected.offsets[ends] - back]
        lengths = np.linalg.norm(theirs - ours, axis=1)
        if self.original.space.curvature:
            lengths = 2 * np.arcsin(np.minimum(lengths / 2, 1))
        return lengths * self.original.space.scale

    def shared_times(self) -> np.ndarray:
        """Return whether each protected record has a time of its user's original records, shape (records,).

        Original times count as rounded, up or down, to what the protected ones are in: whole seconds, milli- or
        microseconds.
        """
        unit = next((unit for unit in (10**9, 10**6) if not np.any(self.protected.times % unit)), 10**3)
        times = self.original.times
        theirs = np.concatenate((times // unit, -(-times // unit)))[:, None]
        ours = (self.protected.times // unit + (self.protected.times % unit > unit // 2))[:, None]
        known = _Known(np.tile(self.original.trace_numbers, 2), theirs)
        return known.hold(self._users, ours)

    def shared_points(self) -> np.ndarray:
        """Return whether each protected record lies on one of its user's original ones, shape (records,).

        On it are points within about a millimetre, or where published coordinates are rounded coarser than that,
        within what the rounding can do.
        """
        size = max(1.5 * last_digit(self.published), SAME_PLACE) / self.original.space.scale
        known = _Known(self.original.trace_numbers, np.floor(self.original.points / size))
        places = self.protected.points / size
        cells = np.floor(places)
        nearer = np.where(places - cells < 0.5, -1, 1)  # the neighbour on each axis
        shared = np.zeros(self.protected.records, bool)
        for axes in itertools.product((0, 1), repeat=places.shape[1]):
            left = np.flatnonzero(~shared)
            shared[left] = known.hold(self._users[left], cells[left] + nearer[left] * axes)
        return shared

    @property
    def _users(self) -> np.ndarray:
        """The number of each protected record's original trace."""
        return np.repeat(self.originals, self.protected.counts)


class _Known:
    """Rows of (user, whole numbers), to be found again by 64 bits of each."""

    def __init__(self, users: np.ndarray, rows: np.ndarray) -> None:
        self._hashes = pd.Index(pd.unique(_hashes(users, rows)))

    def hold(self, users: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self._hashes.get_indexer(_hashes(users, rows)) >= 0


def _hashes(users: np.ndarray, rows: np.ndarray) -> np.ndarray:
    hashes = pd.util.hash_array(users.astype(np.uint64))
    for column in rows.T:
        hashes = pd.util.hash_array(hashes ^ column.astype(np.int64).view(np.uint64))
    return hashes


def unit_metres(space: Space) -> float:
    """Return the metres in one unit of the coordinates of a space's CRS: along the meridian for degrees."""
    if isinstance(space, Plane):
        return space.metres
    axes = space.crs.axis_info
    factor = float(axes[0].unit_conversion_factor) if axes else 1.0
    return factor * EARTH_RADIUS if space.crs.is_geographic else factor


def has_decimals(values: np.ndarray, decimals: int) -> np.ndarray:
    """Return which numbers have no more decimals than these, but for the float noise of changing CRS or unit."""
    scaled = values * 10.0**decimals
    return np.abs(scaled - np.round(scaled)) < 1e-4


def last_digit(traces: Traces) -> float:
    """Return the metres of the last decimal that all coordinates have, up to a metre or so; 0 below SAME_PLACE."""
    unit = unit_metres(traces.space)
    x, y = traces.coordinates()
    first, last = (math.ceil(math.log10(unit / size) - 0.1) for size in (1, SAME_PLACE))
    for decimals in range(first, last + 1):
        if has_decimals(x, decimals).all() and has_decimals(y, decimals).all():
            return unit / 10.0**decimals
    return 0.0


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
    some = original.records > 0 and protected.records > 0
    if some and (original.names.zone is None) != (protected.names.zone is None):
        with_zone, without = ("original", "protected") if protected.names.zone is None else ("protected", "original")
        raise ValueError(
            f"The {with_zone} times have a time zone and the {without} ones have none, so they cannot be compared. "
            "Compare with the prepared data, or bring both to one kind with dt.tz_localize."
        )
    numbers = _as_text(original.users).get_indexer(_as_text(protected.users))
    kept = numbers >= 0
    known = protected if kept.all() else protected.select(np.repeat(kept, protected.counts))
    return Pairs(original, _in_space_of(original, known), numbers[kept], protected)


def _as_text(users: pd.Index) -> pd.Index:
    return pd.Index([str(user) for user in users.tolist()], dtype=object)


def _in_space_of(original: Traces, protected: Traces) -> Traces:
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
            f"{check.counted(lost, 'published point')} of {len(points):,} cannot be placed in the CRS of the original "
            "data. Compare in one CRS, for example with gdf.to_crs."
        )
    return replace(protected, points=points, space=original.space)
