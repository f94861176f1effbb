"""Pseudonyms that cannot be reversed, and traces in their order."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from promesse_geo.traces.columns import Name
from promesse_geo.traces.known_columns import USERS
from promesse_geo.traces.records import as_offsets, within_traces
from promesse_geo.traces.traces import Data, Traces, freeze, map_traces
from promesse_geo.validation import check_seed, key_of

WHOLE_USER = 2**64 - 1
"""The part number of a user who is renamed but not split."""

PSEUDONYM = "[0-9a-f]{16}"
"""Pattern of the names that `pseudonymize` and `split_gaps` give."""


def pseudonymize(
    data: Data, *, seed: int | str | None = None, user: Name = ..., time: Name = ..., segment: Name = ...
) -> Data:
    """Rename every user to 16 hex digits, without splitting at gaps.

    A user with breaks gets a name for each segment, because published data has no column of segments.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    seed : int or str, optional
        Makes the names repeatable, but also guessable; by default they are random.
    user, time, segment : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        Of the type of `data`, in the order of the new names.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> len(pg.pseudonymize(pg.make_city(users=1, days=1))["user"].iloc[0])
    16
    """
    seed = check_seed(seed, owner="pseudonymize")

    def work(traces: Traces) -> Traces:
        owners = traces.segment_owners
        parts = np.full(len(owners), WHOLE_USER, np.uint64)
        split = np.bincount(owners, minlength=len(traces))[owners] > 1
        parts[split] = (np.arange(len(owners)) - np.searchsorted(owners, owners))[split]
        names = virtual_names(traces.users.take(owners).tolist(), parts.tolist(), seed=seed)
        return rename(traces, traces.segments, names)

    return map_traces(data, work, user=user, time=time, segment=segment, selects=True)


def has_names(traces: Traces) -> bool:
    """Return whether Traces hold a name of a user that is none of `pseudonymize` or `split_gaps`."""
    return traces.names.user is not None and count_pseudonyms(traces) < len(traces)


def count_pseudonyms(traces: Traces) -> int:
    """Return how many users have names as `pseudonymize` gives them."""
    return sum(bool(re.fullmatch(PSEUDONYM, str(user))) for user in traces.users)


def virtual_names(users: Sequence[Any], parts: Sequence[int], *, seed: int | str | None) -> list[str]:
    """Return a name for each user and part: the first 16 hex digits of the keyed BLAKE2b of both.

    Raises
    ------
    ValueError
        If two names are equal.
    """
    names = names_of(messages_of(users, parts), seed=seed)
    if len(set(names)) < len(names):
        raise ValueError("Two virtual users got the same name by chance. Take another seed.")
    return names


def messages_of(users: Sequence[Any], parts: Sequence[int]) -> list[bytes]:
    """Return for each user and part what its name is the hash of."""
    return [part.to_bytes(8, "little") + str(user).encode() for user, part in zip(users, parts, strict=True)]


def names_of(messages: Iterable[bytes], *, seed: int | str | None) -> list[str]:
    """Return the names that a seed gives, one for each message of `messages_of`."""
    empty, names = hashlib.blake2b(key=key_of(seed, "names"), digest_size=64), []
    for message in messages:
        hashed = empty.copy()  # made in a fraction of the time of a new one
        hashed.update(message)
        names.append(hashed.digest()[:8].hex())
    return names


def rename(traces: Traces, offsets: np.ndarray, names: list[str]) -> Traces:
    """Return runs of records under new names, in the order of the names.

    Parameters
    ----------
    traces : Traces
        The records.
    offsets : numpy.ndarray of int64, shape (names + 1,)
        Run i holds the records `offsets[i]` to `offsets[i + 1]`.
    names : list of str
        The distinct new names.
    """
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    counts = np.diff(offsets)[order]
    target = as_offsets(counts)
    labels = traces.names
    if labels.user is None:
        taken = (labels.time, labels.geometry)
        labels = replace(labels, user=next(name for name in ("user", *USERS[1]) if name not in taken))
    renamed = replace(traces, offsets=target, users=pd.Index([names[i] for i in order], dtype=str), names=labels)
    if (np.diff(order) == 1).all():  # the records stay where they are
        return replace(renamed, breaks=freeze(within_traces(traces.breaks, target)))
    rows = np.arange(target[-1]) + np.repeat(offsets[:-1][order] - target[:-1], counts)
    begins = np.zeros(traces.records, bool)
    begins[traces.breaks] = True
    return replace(
        renamed,
        points=freeze(traces.points.take(rows, axis=0)),
        times=freeze(traces.times.take(rows)),
        positions=freeze(traces.positions.take(rows)),
        breaks=freeze(within_traces(np.flatnonzero(begins[rows]), target)),
    )
