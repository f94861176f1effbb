"""Original and protected data under neutral names, so that all metrics of the risk report match them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from promesse_geo.mechanisms.base import keeps_periods
from promesse_geo.messages import counted
from promesse_geo.metrics.pairing import exchanged
from promesse_geo.preprocess.gaps import split_gaps
from promesse_geo.preprocess.pseudonyms import rename
from promesse_geo.traces.owners import count_renumbered, find_owners, name_parts, number_owners, pool_parts
from promesse_geo.traces.pairs import align, in_space_of
from promesse_geo.traces.traces import Traces

_GAP = "4h"


class Halves(NamedTuple):
    """What an attacker knows of the first half of the period, and what he receives of the second.

    Parameters
    ----------
    known : Traces
        The original records before the midpoint, one trace per owner.
    raw, protected : Traces
        The original and the protected parts from the midpoint on.
    """

    known: Traces
    raw: Traces
    protected: Traces


@dataclass(frozen=True, eq=False)
class OwnedParts:
    """Original and protected parts, named by the number of their owner, as in 0000012-00000.

    Parameters
    ----------
    owners : int
        Number of owners in the original.
    original, protected : Traces
        The parts. Original data with one trace per user is split at gaps of 4 h.
    compared : tuple of two Traces
        Original and protected traces that match by name: the parts if those of the protected data have the names of
        the original, else all parts of an owner as the segments of one trace.
    """

    owners: int
    original: Traces
    protected: Traces
    compared: tuple[Traces, Traces]

    @classmethod
    def of(cls, original: Traces, protected: Traces) -> "OwnedParts":
        """Match protected traces with their owners.

        Raises
        ------
        ValueError
            If there is no original record, only one of the two has a time zone, a protected trace has no owner in the
            original, or the two have no time in common.
        """
        if not original.records:
            raise ValueError("The original data has no records, so there is nothing to compare with.")
        owners, numbers = number_owners(original)
        protected = in_space_of(original, protected)
        found = find_owners([str(user) for user in protected.users], owners, name_parts(original, numbers))
        _check(original, protected, found)
        before, after = _by_owner(original, numbers), _by_owner(protected, found)
        has_parts = len(owners) < len(original) or not owners.equals(original.users)
        parts = before if has_parts else split_gaps(_pooled(before), gap=_GAP, keep_user=True)
        agree = has_parts and protected.users.isin(original.users).all()
        if agree and not (keeps_periods(protected.protection) and count_renumbered(align(original, protected))):
            compared = before, _named_as(protected, original, before, numbers)
        else:
            compared = _pooled(before), _pooled(after)
        return cls(len(owners), parts, after, compared)

    def count_kept(self) -> int:
        """Count the original parts of which the protected data has records.

        Where names do not match, a part is kept if a protected record of its owner lies in its period.
        """
        before, after = self.compared
        if len(before) == len(self.original):
            return len(after)
        original, protected = self.original, self.protected
        owners, published = owner_numbers(original.users), owner_numbers(protected.users)
        begins, ends = original.times[original.offsets[:-1]], original.times[original.offsets[1:] - 1]
        kept = np.zeros(len(original), bool)
        firsts, lasts = (np.searchsorted(owners, published, side=side) for side in ("left", "right"))
        for trace, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
            times = protected.times[protected.offsets[trace] : protected.offsets[trace + 1]]
            part = slice(first, last)
            kept[part] |= np.searchsorted(times, begins[part]) < np.searchsorted(times, ends[part], side="right")
        return int(kept.sum())

    def halves(self) -> Halves:
        """Divide the data at the midpoint of the period of the original."""
        first, last = int(self.original.times.min()), int(self.original.times.max())
        middle = first + (last - first) // 2
        pooled = _pooled(self.original)
        return Halves(
            pooled.select(pooled.times < middle),
            *(parts.select(parts.times >= middle) for parts in (self.original, self.protected)),
        )


def owner_numbers(users: pd.Index) -> np.ndarray:
    """Return the number of the owner of each neutral name: int64, shape (users,)."""
    return np.array([int(str(user)[:7]) for user in users], np.int64)


def _check(original: Traces, protected: Traces, owners: np.ndarray) -> None:
    unknown = int((owners < 0).sum())
    if unknown:
        remedy = "Compare before users are renamed: prepare and protect with keep_user=True (--keep-users)."
        raise ValueError(
            f"{counted(unknown, 'trace')} of the protected data {'has' if unknown == 1 else 'have'} no user in the "
            f"original. {exchanged(original.protection, protected.protection) or remedy}"
        )
    if protected.records and (
        protected.times.max() < original.times.min() or protected.times.min() > original.times.max()
    ):
        raise ValueError(
            "Original and protected data have no time in common. Compare with the data that was protected, such as "
            "what prepare returned."
        )


def _by_owner(traces: Traces, owners: np.ndarray) -> Traces:
    """Return traces named by owner and part, the parts of an owner in order of time."""
    if not len(traces):
        return traces
    begins = traces.times[traces.offsets[:-1]]
    order = np.lexsort((np.arange(len(owners)), begins, owners))
    counts = np.bincount(owners)
    parts = np.empty(len(owners), np.int64)
    parts[order] = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    names = [f"{owner:07d}-{part:05d}" for owner, part in zip(owners.tolist(), parts.tolist(), strict=True)]
    return rename(traces, traces.offsets, names)


def _named_as(protected: Traces, original: Traces, renamed: Traces, owners: np.ndarray) -> Traces:
    """Return protected traces under the neutral names of the original traces of the same names."""
    begins = original.times[original.offsets[:-1]]
    order = np.lexsort((np.arange(len(owners)), begins, owners))
    names = np.empty(len(owners), object)
    names[order] = renamed.users.to_numpy(object)
    return rename(protected, protected.offsets, names[original.users.get_indexer(protected.users)].tolist())


def _pooled(parts: Traces) -> Traces:
    """Return the parts of each owner as the segments of one trace, named by the owner."""
    owners, numbers = np.unique(owner_numbers(parts.users), return_inverse=True)
    return pool_parts(parts, pd.Index([f"{owner:07d}" for owner in owners.tolist()], dtype=str), numbers)
