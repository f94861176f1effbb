"""Original and protected traces of the same users, in one space."""

from dataclasses import dataclass, replace

import numpy as np
from pyproj import Transformer

from promesse_geo.traces import Traces


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
    """

    original: Traces
    protected: Traces
    originals: np.ndarray

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
        """Return whether each protected record has a time of its user's original records, shape (records,)."""
        return self._shared(self.original.times[:, None], self.protected.times[:, None])

    def shared_points(self) -> np.ndarray:
        """Return whether each protected record lies exactly on one of its user's original ones, shape (records,)."""
        ours, theirs = (np.column_stack(traces.coordinates()) for traces in (self.protected, self.original))
        return self._shared(theirs, ours)

    def _shared(self, originals: np.ndarray, protecteds: np.ndarray) -> np.ndarray:
        """Whether (user, values) of the protected records occur among those of the original ones."""
        theirs = np.column_stack((self.original.trace_numbers, _bits(originals)))
        ours = np.column_stack((np.repeat(self.originals, self.protected.counts), _bits(protecteds)))
        row = np.dtype([(f"{i}", np.int64) for i in range(theirs.shape[1])])
        return np.isin(np.ascontiguousarray(ours).view(row).ravel(), np.ascontiguousarray(theirs).view(row).ravel())


def _bits(values: np.ndarray) -> np.ndarray:
    """Numbers as integers of the same bits; −0.0 is 0.0."""
    return (values + 0).astype(values.dtype).view(np.int64)


def align(original: Traces, protected: Traces) -> Pairs:
    """Put protected traces beside the original ones of their users, in the original's space.

    Parameters
    ----------
    original, protected : Traces
        Both may differ in CRS and in the order of their input.

    Returns
    -------
    Pairs

    Raises
    ------
    ValueError
        If one of the two has times with a zone and the other without.
    """
    if (original.names.zone is None) != (protected.names.zone is None):
        with_zone, without = ("original", "protected") if protected.names.zone is None else ("protected", "original")
        raise ValueError(
            f"The {with_zone} times have a time zone and the {without} ones have none, so they cannot be compared. "
            "Compare with the prepared data, or bring both to one kind with dt.tz_localize."
        )
    numbers = original.users.get_indexer(protected.users)
    kept = numbers >= 0
    return Pairs(original, _in_space_of(original, protected.select(np.repeat(kept, protected.counts))), numbers[kept])


def _in_space_of(original: Traces, protected: Traces) -> Traces:
    if protected.space == original.space:
        return protected
    x, y = protected.coordinates()
    if protected.space.crs != original.space.crs:
        x, y = Transformer.from_crs(protected.space.crs, original.space.crs, always_xy=True).transform(x, y)
    return replace(protected, points=original.space.points(np.asarray(x), np.asarray(y)), space=original.space)
