"""Many files read as one data set: in parallel, with progress, and one word about what was left out."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from tqdm.auto import tqdm

from promesse_geo import check
from promesse_geo.columns import Names
from promesse_geo.traces import Traces

Content = tuple[str, Callable[[], bytes]]
"""A file's name, as messages give it, and what reads it."""


class LeftOut(NamedTuple):
    """Records of a file that its format calls invalid: why, how many, and where the first one stands."""

    reason: str
    count: int
    first: str


class Part(NamedTuple):
    """Records of one user from one file: times in ns since 1970 UTC, degrees or CRS coordinates."""

    user: str | int
    times: np.ndarray
    x: np.ndarray
    y: np.ndarray
    left_out: Sequence[LeftOut] = ()


class Skipped(NamedTuple):
    """A file that could not be read, and why."""

    name: str
    reason: str


def read_parts(
    contents: Iterable[Content],
    parse: Callable[[str, bytes], Iterable[Part]],
    *,
    errors: str,
    owner: str,
    total: int | None = None,
) -> tuple[list[Part], list[Skipped]]:
    """Parse files in parallel.

    Parameters
    ----------
    contents : iterable of (name, reader)
        The files, in the order in which their records count as input.
    parse : callable
        Makes parts of a file's name and bytes; raises ValueError with the file's name in the message.
    errors : {"raise", "skip"}
        What becomes of a file that cannot be read.
    owner : str
        The reader's name, for messages.
    total : int, optional
        Number of files, for the progress bar.

    Returns
    -------
    parts : list of Part
        In the order of the files.
    skipped : list of Skipped
        Empty unless `errors="skip"`.
    """
    check.choice(errors, name="errors", owner=owner, options=("raise", "skip"))

    def work(content: Content) -> tuple[list[Part], list[Skipped]]:
        name, read = content
        try:
            return list(parse(name, read())), []
        except (ValueError, OSError) as error:
            if errors == "raise":
                raise
            return [], [Skipped(name, str(error))]

    parts: list[Part] = []
    skipped: list[Skipped] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(work, contents)
        for some, bad in tqdm(done, desc="reading", unit=" files", total=total, delay=1, disable=None):
            parts += some
            skipped += bad
    return parts, skipped


def join(parts: Sequence[Part], *, crs: Any = "EPSG:4326", zone: Any = "UTC", names: Names | None = None) -> Traces:
    """Make Traces of parts; the parts of a user count in the order in which they come."""
    users = list(dict.fromkeys(part.user for part in parts))
    number = {user: i for i, user in enumerate(users)}
    ordered = sorted(parts, key=lambda part: number[part.user])
    counts = np.zeros(len(users), np.int64)
    for part in ordered:
        counts[number[part.user]] += len(part.times)

    def column(pick: Callable[[Part], np.ndarray], dtype: Any) -> np.ndarray:
        return np.concatenate([pick(part) for part in ordered] or [np.empty(0, dtype)])

    return Traces.from_arrays(
        column(lambda part: part.x, float),
        column(lambda part: part.y, float),
        times=column(lambda part: part.times, np.int64),
        users=users,
        counts=counts,
        crs=crs,
        zone=zone,
        names=names,
    )


def tell_what_was_left_out(parts: Sequence[Part], skipped: Sequence[Skipped], *, owner: str) -> None:
    """Warn once of records and files that were left out: counts by reason, and where the first one stands."""
    words = []
    reasons: dict[str, list[LeftOut]] = {}
    for part in parts:
        for some in part.left_out:
            reasons.setdefault(some.reason, []).append(some)
    for reason, group in reasons.items():
        count = check.counted(sum(some.count for some in group), "record")
        words.append(f"{count} ({reason}; first at {group[0].first})")
    if skipped:
        words.append(f"{check.counted(len(skipped), 'file')} (first: {skipped[0].reason})")
    if words:
        check.tell(f"{owner} left out " + ", ".join(words) + ".")
