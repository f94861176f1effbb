"""Many files read as one data set: in parallel, with progress, and one word about what was left out."""

import io
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from promesse_geo.messages import counted, invalid, warn
from promesse_geo.traces.columns import Names
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice, check_text

Content = tuple[str, Callable[[], bytes]]
"""A file's name, as messages give it, and what reads it."""

LAST_SECOND = 9_000_000_000  # nanoseconds count up to the year 2255 here
_AHEAD = 8 * (os.cpu_count() or 1)  # files that wait in memory
_NO_TEXT = {
    b"\x1f\x8b": "it is compressed (gzip); decompress it",
    b"BZh": "it is compressed (bzip2); decompress it",
    b"\xfd7zXZ": "it is compressed (xz); decompress it",
    b"\x28\xb5\x2f\xfd": "it is compressed (zstd); decompress it",
    b"PK\x03\x04": "it is a zip; unpack it",
    b"\xff\xfe": "it is in UTF-16; save it as UTF-8",
    b"\xfe\xff": "it is in UTF-16; save it as UTF-8",
}


class Bar(tqdm):
    """A progress bar without the thread that watches bars: it would outlive reading, and be lost in a fork."""

    monitor_interval = 0


@dataclass(frozen=True)
class DroppedRecords:
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
    left_out: Sequence[DroppedRecords] = ()


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
        The files, in the order in which their records count as input. They are taken as they are needed.
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
    return read_groups(([content] for content in contents), parse, errors=errors, owner=owner, total=total)


def read_groups(
    groups: Iterable[Sequence[Content]],
    parse: Callable[[str, bytes], Iterable[Part]],
    *,
    errors: str,
    owner: str,
    total: int | None = None,
    parse_together: Callable[[Sequence[tuple[str, bytes]]], Iterable[Part]] | None = None,
) -> tuple[list[Part], list[Skipped]]:
    """Parse groups of files in parallel, for many small files; see `read_parts`.

    A group is parsed at once by `parse_together`. When that raises ValueError, its files are parsed one by one, so
    that the message, the count and what is left out are those of a file.
    """
    check_choice(errors, name="errors", owner=owner, options=("raise", "skip"))

    def work(group: Sequence[Content]) -> tuple[list[Part], list[Skipped], int]:
        if parse_together is not None and len(group) > 1:
            try:
                return list(parse_together([(name, read()) for name, read in group])), [], len(group)
            except (ValueError, OSError):
                pass  # said below, of the file that it comes from
        parts: list[Part] = []
        skipped: list[Skipped] = []
        for name, read in group:
            try:
                parts += parse(name, read())
            except (ValueError, OSError) as error:
                if errors == "raise":
                    raise
                skipped.append(Skipped(name, str(error)))
        return parts, skipped, len(group)

    parts: list[Part] = []
    skipped: list[Skipped] = []
    with (
        ThreadPoolExecutor(os.cpu_count()) as pool,
        Bar(desc="reading", unit=" files", total=total, delay=1, disable=None) as bar,
    ):
        for some, bad, files in _in_order(pool, work, groups):
            parts += some
            skipped += bad
            bar.update(files)
    return parts, skipped


def _in_order(pool: ThreadPoolExecutor, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Work on items in the pool, a few ahead of the one whose result is due."""
    waiting: deque[Future] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > _AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


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


def warn_dropped_records(parts: Sequence[Part], skipped: Sequence[Skipped], *, owner: str) -> None:
    """Warn once of records and files that were left out: counts by reason, and where the first one stands."""
    words = []
    reasons: dict[str, list[DroppedRecords]] = {}
    for part in parts:
        for some in part.left_out:
            reasons.setdefault(some.reason, []).append(some)
    for reason, group in reasons.items():
        count = counted(sum(some.count for some in group), "record")
        words.append(f"{count} ({reason}; first at {group[0].first})")
    if skipped:
        words.append(f"{counted(len(skipped), 'file')} (first: {skipped[0].reason.rstrip('.')})")
    if words:
        warn(f"{owner} left out " + ", ".join(words) + ".")


def warn_unended(names: Sequence[str]) -> None:
    """Warn once of text files without a newline at their end."""
    if names:
        others = f" and {counted(len(names) - 1, 'other file')}" if len(names) > 1 else ""
        warn(f"No newline at end of file: the last record of {names[0]!r}{others} may be cut.")


def check_some_read(parts: Sequence[Part], skipped: Sequence[Skipped]) -> None:
    """Refuse to return nothing where every file was skipped."""
    if skipped and not parts:
        raise ValueError(f"None of {counted(len(skipped), 'file')} could be read. The first: {skipped[0].reason}")


def wanted_users(users: Iterable[str] | None, *, owner: str, noun: str = "users") -> set[str] | None:
    """Return the users asked for, or None for all of them."""
    if users is None:
        return None
    if isinstance(users, str) or not isinstance(users, Iterable):
        raise TypeError(invalid("users", owner, f"a list of {noun}", users, cure="Put it into [ ]."))
    return {check_text(user, name="users", owner=owner) for user in users}


def check_wanted(wanted: set[str] | None, found: Iterable[str | int], *, noun: str = "user") -> None:
    """Say how many of the users asked for are not there."""
    missing = len(wanted - set(found)) if wanted else 0
    if missing:
        are = "is" if missing == 1 else "are"
        raise FileNotFoundError(
            f"{counted(missing, noun)} asked for with 'users' {are} not among the files, or without a record."
        )


def impossible(latitude: np.ndarray, longitude: np.ndarray, seconds: np.ndarray) -> dict[str, np.ndarray]:
    """Return, by reason, where degrees and unix seconds cannot be true; missing numbers are NaN."""
    return {
        "latitude outside ±90°": ~(np.abs(latitude) <= 90),
        "longitude outside ±180°": ~(np.abs(longitude) <= 180),
        "time outside 1970 to 2255": (seconds <= 0) | (seconds > LAST_SECOND),
    }


def sort_out(
    reasons: Mapping[str, np.ndarray], *, where: Callable[[int], str]
) -> tuple[np.ndarray, list[DroppedRecords]]:
    """Return which records to keep, and what is left out; a record counts under its first reason."""
    left_out = []
    bad = np.zeros(len(next(iter(reasons.values()))), bool)
    for reason, mask in reasons.items():
        new = mask & ~bad
        bad |= new
        if new.any():
            left_out.append(DroppedRecords(reason, int(new.sum()), where(int(new.argmax()))))
    return ~bad, left_out


def why_no_text(content: bytes) -> str:
    """Return why content is no text in UTF-8: it is empty, compressed, UTF-16; or nothing where it may be."""
    if not content.strip():
        return "it is empty"
    return next((reason for start, reason in _NO_TEXT.items() if content.startswith(start)), "")


def line_of_row(content: bytes, row: int, *, skip: int = 0) -> int:
    """Return the number (from 1) of the line that holds a row (from 0): empty lines and `skip` first ones hold none."""
    filled = (number for number, line in enumerate(io.BytesIO(content), 1) if number > skip and line.strip(b"\r\n"))
    return next(itertools.islice(filled, row, None))


def first_bad_line(content: bytes, parse: Callable[[bytes], Any]) -> int:
    """Return the number (from 1) of the first line that `parse`, which takes each line by itself, refuses."""
    start, end = 0, len(content)
    while True:
        middle = content.rfind(b"\n", start, (start + end) // 2) + 1 or content.find(b"\n", start, end - 1) + 1
        if not middle:
            return content.count(b"\n", 0, start) + 1
        if _parses(content[start:middle], parse):
            start = middle
        else:
            end = middle


def _parses(content: bytes, parse: Callable[[bytes], Any]) -> bool:
    try:
        if content.strip():
            parse(content)
    except pa.ArrowInvalid:
        return False
    return True
