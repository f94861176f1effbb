"""Pairs of traces by owner, for metrics whose attacker knows which parts belong together."""

import numpy as np

from promesse_geo.messages import counted, warn
from promesse_geo.traces.owners import count_overlapping, find_owners, name_parts, number_owners
from promesse_geo.traces.pairs import Pairs, in_space_of
from promesse_geo.traces.traces import Traces


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

    Warns
    -----
    UserWarning
        If protected traces belong to nobody, or what looks like parts of an owner overlaps in time.

    Raises
    ------
    ValueError
        If none of the protected traces has an owner in the original, only one of the data sets has a time zone, or a
        protected location has no coordinates in the CRS of the original.
    """
    names = [str(user) for user in protected.users]
    owners, owned = number_owners(original)
    numbers = find_owners(names, owners, name_parts(original, owned))
    overlapping = count_overlapping(original) if len(owners) < len(original) else 0
    if overlapping:
        warn(
            f"The names of {counted(len(original), 'trace')} end with five digits, so they are taken for parts of "
            f"{counted(len(owners), 'owner')}, but those of {overlapping:,} overlap in time. If they are different "
            "users, give them other names."
        )
    if names and original.records and np.all(numbers < 0):
        raise ValueError(
            f"None of the {counted(len(names), 'protected trace')} belongs to a user of the original. Protect data "
            "whose user names are kept, as prepare(keep_user=True) (promesse-geo prepare --keep-users) does, and do "
            "not rename the users."
        )
    kept = numbers >= 0
    if not kept.all():
        missing = int(np.sum(~kept))
        verb = "was" if missing == 1 else "were"
        warn(f"{counted(missing, 'protected trace')} of users that the original lacks {verb} dropped.")
    known_traces = protected if kept.all() else protected.select(np.repeat(kept, protected.counts))
    return Pairs(original, in_space_of(original, known_traces), numbers[kept])
