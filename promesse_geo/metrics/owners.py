"""Owners of traces: who the parts `<user>-00000`, `<user>-00001`, … belong to."""

import re
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from promesse_geo.messages import counted, warn
from promesse_geo.traces.traces import Pairs, Traces, in_space_of

PART = re.compile(r"-[0-9]{5}$")
"""The suffix of the names of parts that `split_gaps(keep_user=True)` makes."""


def owner_of(name: str, others: Collection[str]) -> str:
    """Return the owner of a name, given the names of the other side.

    A name of the other side is its own owner. Else one final hyphen and five digits are removed, if what remains is a
    name of the other side; else the whole name is the owner.
    """
    stem = PART.sub("", name, count=1)
    return stem if name not in others and stem in others else name


def number_owners(original: Traces) -> tuple[pd.Index, np.ndarray]:
    """Return the owners of the original traces, in their order, and the position of each trace's owner.

    If all names end with a hyphen and five digits, as the parts of `split_gaps(keep_user=True)` do, the owners are the
    names without them; else each trace is its own owner.

    Parameters
    ----------
    original : Traces
        The original data.

    Returns
    -------
    owners : pandas.Index, length owners
        Distinct owners.
    numbers : numpy.ndarray of int64, shape (traces,)
        The position of each trace's owner.
    """
    names = [str(user) for user in original.users]
    if not names or not all(map(PART.search, names)):
        return original.users, np.arange(len(original))
    numbers, owners = pd.factorize(np.array([PART.sub("", name) for name in names], dtype=object))
    return pd.Index(owners, dtype=object), numbers.astype(np.int64)


def pair_by_owner(original: Traces, protected: Traces) -> Pairs:
    """Match the parts of both data sets by owner.

    Parameters
    ----------
    original, protected : Traces
        Each may have one trace or several parts per owner.

    Returns
    -------
    Pairs
        `originals` is the position of each protected trace's owner in what `number_owners` returns for the original;
        protected traces of other owners are left out.

    Raises
    ------
    ValueError
        If none of the protected traces has an owner in the original.
    """
    names = [str(user) for user in protected.users]
    numbers = find_owners(names, number_owners(original)[0])
    if names and original.records and np.all(numbers < 0):
        raise ValueError(
            f"None of the {counted(len(names), 'protected trace')} belongs to a user of the original. Protect data "
            "whose user names are kept, such as what prepare(keep_user=True) returns, and do not rename the users."
        )
    kept = numbers >= 0
    if not kept.all():
        warn(f"{counted(int(np.sum(~kept)), 'protected trace')} of users that the original lacks were dropped.")
    known_traces = protected if kept.all() else protected.select(np.repeat(kept, protected.counts))
    return Pairs(original, in_space_of(original, known_traces), numbers[kept])


def find_owners(names: Sequence[str], owners: pd.Index) -> np.ndarray:
    """Return the position of the owner of each name in `owners`, int64, shape (names,); −1 if it is not there."""
    known = pd.Index([str(owner) for owner in owners], dtype=object)
    others = set(known)
    return known.get_indexer(pd.Index([owner_of(name, others) for name in names], dtype=object)).astype(np.int64)
