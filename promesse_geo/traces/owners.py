"""Owners of traces: who the parts `<user>-00000`, `<user>-00001`, … belong to."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.records import NO_BREAKS, as_offsets, within_traces
from promesse_geo.traces.traces import Traces, freeze

PART = re.compile(r"-[0-9]{5}$")
"""The suffix of the names of parts that `split_gaps(keep_user=True)` makes."""


_LEAST = 10_000  # numbers of people, as in P-10001; parts are numbered from 0


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
    names without them; else each trace is its own owner. So are traces whose numbers begin at 10,000 or more: parts are
    numbered from 0, people often from 10,001.

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
    least = np.full(len(owners), _LEAST)
    np.minimum.at(least, numbers, [int(name[-5:]) for name in names])
    people = least[numbers] == _LEAST
    if people.all():
        return original.users, np.arange(len(original))
    if people.any():
        kept = [name if is_own else PART.sub("", name) for name, is_own in zip(names, people, strict=True)]
        numbers, owners = pd.factorize(np.array(kept, dtype=object))
    return pd.Index(owners, dtype=object), numbers.astype(np.int64)


def with_parts(chosen: Collection[str], names: Sequence[str]) -> set[str]:
    """Return chosen users of data, each owner that is no name itself replaced by the names of the owner's parts.

    What is neither stays as it is. As for `number_owners`, numbers of parts begin below 10,000.
    """
    known, parts = set(names), dict[str, list[str]]()
    for name in names:
        if PART.search(name):
            parts.setdefault(PART.sub("", name), []).append(name)
    parts = {owner: some for owner, some in parts.items() if min(int(name[-5:]) for name in some) < _LEAST}
    return {name for user in chosen for name in ([user] if user in known else parts.get(user, [user]))}


def find_owners(names: Sequence[str], owners: pd.Index, parts: Mapping[str, int] | None = None) -> np.ndarray:
    """Return the position of the owner of each name in `owners`, int64, shape (names,); −1 if it is not there.

    `parts` has the names of the owners' traces, each with the position of its owner: a name among them belongs to that
    owner, and so does a part of it.
    """
    known = {str(owner): position for position, owner in enumerate(owners)} | dict(parts or {})
    found = [known.get(name, known.get(PART.sub("", name, count=1), -1)) for name in names]
    return np.array(found, np.int64)


def name_parts(original: Traces, numbers: np.ndarray) -> dict[str, int]:
    """Return the name of each original trace and the position of its owner, for `find_owners`."""
    return dict(zip(map(str, original.users), numbers.tolist(), strict=True))


def name_owners(traces: Traces) -> list[str]:
    """Return the name of each trace's owner, from the traces of the owner alone.

    Traces `<user>-00000`, `<user>-00001`, … belong to the user if they follow each other in time, as parts do; else
    each is its own owner, for other people may have such names, as they have if the numbers begin at 10,000 or more.
    """
    names = [str(user) for user in traces.users]
    for stem, (rows, follow) in _numbered(traces, names).items():
        if follow:
            for row in rows:
                names[row] = stem
    return names


def pool_parts(parts: Traces, owners: pd.Index, numbers: np.ndarray) -> Traces:
    """Return one trace per owner, whose segments are the parts of the owner in order of time.

    The records of parts that overlap in time are put in order of time; the traces have no segments then.

    Parameters
    ----------
    parts : Traces
        The parts.
    owners : pandas.Index, length owners
        The owners of the parts, ascending.
    numbers : numpy.ndarray of int64, shape (parts,)
        The position of each part's owner.
    """
    order = np.lexsort((parts.times[parts.offsets[:-1]], numbers))
    counts = parts.counts[order]
    begins = as_offsets(counts)
    offsets = freeze(begins[np.searchsorted(numbers[order], np.arange(len(owners) + 1))])
    pooled, breaks = parts, np.union1d(parts.breaks, parts.offsets[1:-1])
    if (np.diff(order) != 1).any():
        rows = np.arange(begins[-1]) + np.repeat(parts.offsets[:-1][order] - begins[:-1], counts)
        pooled, breaks = _reordered(parts, rows), np.flatnonzero(np.isin(rows, np.append(breaks, 0)))
    backward = np.flatnonzero(pooled.times[1:] < pooled.times[:-1]) + 1
    if not np.isin(backward, offsets).all():
        pooled = _reordered(pooled, np.lexsort((pooled.times, np.repeat(np.arange(len(owners)), np.diff(offsets)))))
        breaks = NO_BREAKS
    return replace(pooled, offsets=offsets, users=owners, breaks=freeze(within_traces(breaks, offsets)))


def _reordered(traces: Traces, rows: np.ndarray) -> Traces:
    """Return the records in another order; offsets and breaks are those of before."""
    return replace(
        traces,
        points=freeze(traces.points.take(rows, axis=0)),
        times=freeze(traces.times.take(rows)),
        positions=freeze(traces.positions.take(rows)),
    )


def count_overlapping(traces: Traces) -> int:
    """Count the owners of several traces `<user>-00000`, `<user>-00001`, … that do not follow each other in time."""
    return sum(not follow for _, follow in _numbered(traces, [str(user) for user in traces.users]).values())


def count_renumbered(pairs: Pairs) -> int:
    """Count protected parts that lie in the time of another original part of their user, not in that of their name.

    Parts `<user>-00000`, `<user>-00001`, … are numbered anew where one of two data sets was split elsewhere. 0 if the
    original has other traces, too.
    """
    original, protected = pairs.original, pairs.protected
    begins, ends = original.times[original.offsets[:-1]], original.times[original.offsets[1:] - 1]
    first, last = protected.times[protected.offsets[:-1]], protected.times[protected.offsets[1:] - 1]
    apart = np.flatnonzero((last < begins[pairs.originals]) | (first > ends[pairs.originals]))
    if not len(apart):
        return 0
    owners, numbers = number_owners(original)
    if len(owners) == len(original):
        return 0
    inside = [
        ((numbers == numbers[pairs.originals[part]]) & (begins <= first[part]) & (last[part] <= ends)).any()
        for part in apart
    ]
    return int(np.sum(inside))


def _numbered(traces: Traces, names: list[str]) -> dict[str, tuple[list[int], bool]]:
    """Positions of the traces with each name before a part's number, and whether they follow each other in time."""
    stems: dict[str, list[tuple[str, int]]] = {}
    for number, name in enumerate(names):
        if PART.search(name):
            stems.setdefault(PART.sub("", name), []).append((name, number))
    begins, ends = traces.times[traces.offsets[:-1]], traces.times[traces.offsets[1:] - 1]
    found = {}
    for stem, parts in stems.items():
        rows = [number for _, number in sorted(parts)]
        if int(min(parts)[0][-5:]) >= _LEAST:
            continue
        found[stem] = rows, bool((begins[rows[1:]] >= ends[rows[:-1]]).all())
    return found
