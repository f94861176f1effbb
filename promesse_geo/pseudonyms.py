"""Virtual users: names that nobody can lead back to a user, and traces in their order."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from promesse_geo.columns import KNOWN_USERS
from promesse_geo.records import as_offsets
from promesse_geo.traces import Traces


def virtual_names(users: Sequence[Any], parts: Sequence[int], *, seed: int | str | None) -> list[str]:
    """First 16 hex digits of the keyed BLAKE2b of (part number, user bytes)."""
    if seed is None:
        key = secrets.token_bytes(32)
    else:
        key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"names").digest()

    def name(user: Any, part: int) -> str:
        message = part.to_bytes(8, "little") + str(user).encode()
        return hashlib.blake2b(message, key=key, digest_size=64).hexdigest()[:16]

    names = [name(user, part) for user, part in zip(users, parts, strict=True)]
    if len(set(names)) < len(names):
        raise ValueError("Two virtual users got the same name by chance. Run again with another seed.")
    return names


def renamed(traces: Traces, offsets: np.ndarray, names: list[str]) -> Traces:
    """Put runs of records under new names, in the order of these."""
    order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
    counts = np.diff(offsets)[order]
    target = as_offsets(counts)
    rows = np.arange(target[-1]) + np.repeat(offsets[:-1][order] - target[:-1], counts)
    labels = traces.names
    if labels.user is None:
        taken = (labels.time, labels.geometry)
        labels = replace(labels, user=next(name for name in KNOWN_USERS[1:] if name not in taken))
    return replace(
        traces,
        points=traces.points[rows],
        times=traces.times[rows],
        positions=traces.positions[rows],
        offsets=target,
        users=pd.Index([names[i] for i in order], dtype=str),
        names=labels,
    )
