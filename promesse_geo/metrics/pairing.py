"""Pairs of original and protected traces, by user or by owner."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from promesse_geo.mechanisms.base import begins_with, keeps_periods, keeps_positions, names_of
from promesse_geo.messages import counted, warn
from promesse_geo.traces.owners import count_overlapping, count_renumbered, find_owners, name_parts, number_owners
from promesse_geo.traces.pairs import Pairs, align, in_space_of
from promesse_geo.traces.traces import Traces

_SPLIT_ELSEWHERE = (
    "Zones and dropped jumps before prepare() (promesse-geo prepare) split traces elsewhere, and number parts anew. "
    "Prepare first, apply zones to the prepared data, and compare with the prepared data."
)


def exchanged(original: Mapping[str, Any] | None, protected: Mapping[str, Any] | None) -> str:
    """Return a remark on an original that is protected, of which the protected data was not made; else "".

    Parameters
    ----------
    original, protected : mapping or None
        The `protection` of both data sets.
    """
    if keeps_positions(original) or begins_with(protected, original):
        return ""
    return (
        f"The original is already protected ({names_of(original)}), and the protected data does not note that it was "
        "made from it. The two may be exchanged: pass the original first, then the protected data. If they are not, "
        "the results compare with protected data instead of what was recorded: pass the data that was protected."
    )


def warn_if_exchanged(original: Traces, protected: Traces) -> None:
    """Warn if the original is protected, and the protected data was not made from it: both may be exchanged."""
    warn(exchanged(original.protection, protected.protection))


def pair_by_user(original: Traces, protected: Traces) -> Pairs:
    """Match protected traces with the original ones of their users, as `Metric.pair` documents."""
    pairs = align(original, protected)
    if len(pairs.protected) < len(protected):
        unknown = ~protected.users.isin(pairs.protected.users)
        row = int(protected.positions[np.repeat(unknown, protected.counts)].min())
        raise ValueError(_unknown_users(original, protected, unknown, row))
    if keeps_periods(protected.protection):
        raise_if_renumbered(pairs)
    return pairs


def raise_if_renumbered(pairs: Pairs) -> None:
    """Raise ValueError if protected parts have the names of other parts of their users, as times tell.

    The mechanism that protected them must leave each within its first and last time.
    """
    if renumbered := count_renumbered(pairs):
        lie = "lies" if renumbered == 1 else "lie"
        raise ValueError(
            f"{renumbered:,} of {counted(len(pairs.protected), 'protected part')} {lie} in the time of another "
            f"original part of the user, so their numbers do not mean the same parts. {_SPLIT_ELSEWHERE}"
        )


def _unknown_users(original: Traces, protected: Traces, is_unknown: np.ndarray, row: int) -> str:
    """Return the error for users of the protected data that the original lacks; the first is in a row."""
    unknown, users = int(is_unknown.sum()), len(is_unknown)
    where = f"first in row {row:,}, counted from 0"
    lacks = f"The original lacks {unknown:,} of the {counted(users, 'user')} of the protected data ({where})."
    if remark := exchanged(original.protection, protected.protection):
        return f"{lacks} {remark}"
    if unknown == users:
        return (
            f"The original has none of the {counted(users, 'user')} of the protected data ({where}). Prepare the "
            "original first, protect the prepared data with its user names, and compare what gdf.promesse.prepare() "
            "(promesse-geo prepare) returns with what parts.promesse.smooth(200) (promesse-geo smooth --keep-users) "
            "makes of it."
        )
    owners, numbers = number_owners(original)
    names = [str(user) for user in protected.users[is_unknown]]
    if len(owners) < len(original) and (find_owners(names, owners, name_parts(original, numbers)) >= 0).all():
        return f"{lacks} They are other parts of users that it has. {_SPLIT_ELSEWHERE}"
    return f"{lacks} Compare with the data that was protected, before users are renamed."


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
        remedy = (
            "Protect data whose user names are kept, as prepare(keep_user=True) (promesse-geo prepare --keep-users) "
            "does, and do not rename the users."
        )
        raise ValueError(
            f"None of the {counted(len(names), 'protected trace')} belongs to a user of the original. "
            f"{exchanged(original.protection, protected.protection) or remedy}"
        )
    kept = numbers >= 0
    if not kept.all():
        missing = int(np.sum(~kept))
        verb = "was" if missing == 1 else "were"
        warn(f"{counted(missing, 'protected trace')} of users that the original lacks {verb} dropped.")
    known_traces = protected if kept.all() else protected.select(np.repeat(kept, protected.counts))
    return Pairs(original, in_space_of(original, known_traces), numbers[kept])
