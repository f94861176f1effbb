"""Read many files as one data set: in parallel, with a progress bar, and one warning about dropped data."""

import io
import itertools
import os
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, Self

import geopandas as gpd
import numpy as np
import pyarrow as pa
from pyarrow import csv

from promesse_geo.io import contents
from promesse_geo.messages import DroppedWarning, counted, warn
from promesse_geo.threads import progress_bar
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_errors, check_users_exist

Content = tuple[str, Callable[[], Any]]
"""A file's name in messages, and a function that reads it: usually its bytes."""

LAST_SECOND = 9_000_000_000  # of the year 2255: int64 nanoseconds end in 2262
_AHEAD = 8 * (os.cpu_count() or 1)  # files in memory
_TOGETHER = 50  # files parsed at once: a call of arrow's parser costs as much as hundreds of lines
_BLOCK = 1 << 24  # bytes parsed at once
_NOTHING = "nothing_read"  # attribute of errors
FAILURES = (ValueError, TypeError, KeyError, OSError)
"""Errors of files that cannot be read."""


@dataclass(frozen=True)
class DroppedRecords:
    """Invalid records of a file: the reason, their number, and the place of the first."""

    reason: str
    count: int
    first: str


class Part(NamedTuple):
    """Records of one user from one file: arrays (n,) of ns since 1970 in UTC, longitudes and latitudes in degrees."""

    user: str
    times: np.ndarray
    x: np.ndarray
    y: np.ndarray
    dropped: Sequence[DroppedRecords] = ()
    unended: str = ""
    """Name of the file if no newline ends it."""
    segments: np.ndarray | None = None
    """Codes from 0 that change at breaks, int64; each part with them begins a segment. None if there are no breaks."""
    zone: str | None = "UTC"
    """The zone of the times; None if they have none."""
    notes: Sequence[str] = ()
    """How the file was understood where it does not say, for a warning."""


class Skipped(NamedTuple):
    """A file that could not be read, and the reason."""

    name: str
    reason: str

    @classmethod
    def because(cls, name: str, error: Exception) -> Self:
        """Return the file that could not be read because of an error."""
        return cls(name, str(error if isinstance(error, OSError) else error.args[0]))


class Span(NamedTuple):
    """First and last time, in nanoseconds, of the records of a user in one file or track, and its place in messages."""

    user: Any
    first: int
    last: int
    place: str


def read_dataset(
    contents: Iterable[Content],
    parse: Callable[[str, bytes], Iterable[Part]],
    *,
    users: set[str] | None,
    errors: str,
    owner: str,
    as_traces: bool,
    user_of: Callable[[str], str] | None = None,
    parse_together: Callable[[Sequence[tuple[str, bytes]]], Iterable[Part]] | None = None,
    check: Callable[[Sequence[Part]], None] = lambda parts: None,
) -> gpd.GeoDataFrame | Traces:
    """Read files as one data set in EPSG:4326 and UTC.

    Parameters
    ----------
    contents, parse, errors, owner, user_of, parse_together
        As in `read_parts`.
    users : set of str, optional
        The users to keep, as `check_users` returns them.
    as_traces : bool
        Whether to return Traces instead of a frame.
    check : callable
        Raises or warns because of all parts.

    Returns
    -------
    geopandas.GeoDataFrame or Traces

    Raises
    ------
    ValueError
        If no file can be read, or users do not exist.
    """
    parts, skipped = read_parts(
        contents, parse, errors=errors, owner=owner, user_of=user_of, parse_together=parse_together
    )
    parts = [part for part in parts if users is None or part.user in users]
    existing = {part.user for part in parts if len(part.times)}
    if user_of is not None:
        existing |= {user_of(file.name) for file in skipped}
    check_users_exist(users, existing, owner=owner)
    check(parts)
    warn_dropped([dropped for part in parts for dropped in part.dropped], skipped, owner=owner)
    warn_assumed([note for part in parts for note in part.notes], owner=owner)
    warn_unended(list(dict.fromkeys(part.unended for part in parts if part.unended)))
    traces = join(parts)
    return traces if as_traces else traces.to_frame()


def read_parts(
    contents: Iterable[Content],
    parse: Callable[[str, Any], Iterable[Any]],
    *,
    errors: str,
    owner: str,
    user_of: Callable[[str], str] | None = None,
    parse_together: Callable[[Sequence[tuple[str, bytes]]], Iterable[Part]] | None = None,
) -> tuple[list[Any], list[Skipped]]:
    """Parse files in parallel.

    Parameters
    ----------
    contents : iterable of (name, read)
        The files, in the order in which their records count as input. They are taken when they are needed.
    parse : callable
        Makes parts from a file's name and content; raises ValueError with the file's name in the message.
    errors : {"raise", "skip", "drop"}
        Whether to raise the error of a file that cannot be read, or skip the file.
    owner : str
        Name of the reader in messages.
    user_of : callable, optional
        Returns the user of a file from its name.
    parse_together : callable, optional
        Parses many small files of one user, as `user_of` returns it, at once. If it raises ValueError, the files are
        parsed one by one.

    Returns
    -------
    parts : list
        Of what `parse` makes, in the order of the files.
    skipped : list of Skipped
        Empty if errors are raised.

    Raises
    ------
    ValueError
        If every file was skipped, for which `is_of_nothing_read` is true.
    """
    raises = check_errors(errors, owner=owner) == "raise"
    total = len(contents) if isinstance(contents, Sequence) else None
    groups: Iterable[Sequence[Content]] = ([content] for content in contents)
    if parse_together is not None and user_of is not None:
        groups = _groups(contents, user_of)

    def work(group: Sequence[Content]) -> tuple[list[Any], list[Skipped], int]:
        if parse_together is not None and len(group) > 1:
            try:
                return list(parse_together([(name, read()) for name, read in group])), [], len(group)
            except (ValueError, OSError):
                pass  # the loop below finds the file
        parts: list[Any] = []
        skipped: list[Skipped] = []
        for name, read in group:
            try:
                parts += parse(name, read())
            except FAILURES as error:
                if raises:
                    raise_with_remedy(error, files=total)
                skipped.append(Skipped.because(name, error))
        return parts, skipped, len(group)

    parts: list[Any] = []
    skipped: list[Skipped] = []
    count = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool, progress_bar(label="reading", unit="files", total=total) as bar:
        for read, failed, files in _in_order(pool, work, groups):
            parts += read
            skipped += failed
            count += files
            bar.update(files)
    if skipped and len(skipped) == count:
        raise none_read(skipped)
    return parts, skipped


def raise_with_remedy(error: Exception, *, files: int | None) -> NoReturn:
    """Raise the error of a file, of several with the note that such files can be skipped."""
    if files != 1 and "errors='skip'" not in str(error):
        error.add_note("Skip files that cannot be read with errors='skip' (--skip).")
    raise error


def none_read(skipped: Sequence[Skipped]) -> ValueError:
    """Return the error for files that were all skipped, for which `is_of_nothing_read` is true."""
    error = ValueError(f"None of {counted(len(skipped), 'file')} could be read. The first: {skipped[0].reason}")
    vars(error)[_NOTHING] = True
    return error


def _groups(contents: Iterable[Content], user_of: Callable[[str], str]) -> Iterator[list[Content]]:
    """Yield consecutive files of one user, at most 50 at a time."""
    for _, files in itertools.groupby(contents, key=lambda content: user_of(content[0])):
        while group := list(itertools.islice(files, _TOGETHER)):
            yield group


def _in_order(pool: ThreadPoolExecutor, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Yield the results in the order of the items, with a few items in work ahead."""
    waiting: deque[Future] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) > _AHEAD:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def join(parts: Sequence[Part]) -> Traces:
    """Make Traces in EPSG:4326; the records of a user count as input in the order of the parts."""
    zones = {part.zone for part in parts} or {"UTC"}
    if len(zones) > 1:
        raise ValueError("Some files have times with a zone, others without. Convert them to one notation.")
    number = {user: i for i, user in enumerate(dict.fromkeys(part.user for part in parts))}
    ordered = sorted(parts, key=lambda part: number[part.user])
    counts = np.zeros(len(number), np.int64)
    np.add.at(counts, [number[part.user] for part in ordered], [len(part.times) for part in ordered])
    empty = Part("", np.empty(0, np.int64), np.empty(0), np.empty(0))
    times, x, y = (np.concatenate(arrays) for arrays in list(zip(empty, *ordered, strict=True))[1:4])
    segments = _join_pieces([(len(part.times), part.segments) for part in ordered])
    zone = zones.pop()
    return Traces.from_arrays(x, y, times=times, users=list(number), counts=counts, segments=segments, zone=zone)


def _join_pieces(parts: Sequence[tuple[int, np.ndarray | None]]) -> np.ndarray | None:
    """Return the codes of all parts, each above those of the parts before; None if no part has codes.

    Parameters
    ----------
    parts : sequence of (int, numpy.ndarray of int64, shape (records,), or None)
        The number of records of each part, and their codes from −1.
    """
    if all(segments is None for _, segments in parts):
        return None
    codes = [np.zeros(count, np.int64) if segments is None else segments + 1 for count, segments in parts]
    bases = np.cumsum([0, *(each.max(initial=0) + 1 for each in codes)])
    return np.concatenate([each + base for each, base in zip(codes, bases[:-1], strict=True)])


def warn_dropped(dropped: Sequence[DroppedRecords], skipped: Sequence[Skipped], *, owner: str) -> None:
    """Warn once of dropped records (counts by reason, and the place of the first) and of skipped files."""
    sums = sum_up(dropped)
    details = [f"{counted(some.count, 'record')} ({some.reason}; first at {some.first})" for some in sums]
    counts = {f"records ({some.reason})": some.count for some in sums}
    if skipped:
        details.append(f"{counted(len(skipped), 'file')} (first: {skipped[0].reason.rstrip('.')})")
        counts["files"] = len(skipped)
    if details:
        warn(DroppedWarning(f"{owner} dropped {', '.join(details)}.", counts))


def sum_up(dropped: Sequence[DroppedRecords]) -> list[DroppedRecords]:
    """Sum up by reason, and keep the first place."""
    sums: dict[str, DroppedRecords] = {}
    for some in dropped:
        before = sums.setdefault(some.reason, replace(some, count=0))
        sums[some.reason] = replace(before, count=before.count + some.count)
    return list(sums.values())


def warn_assumed(notes: Iterable[str], *, owner: str) -> None:
    """Warn once of how files were understood where they do not say."""
    if distinct := list(dict.fromkeys(notes)):
        warn(f"{owner} took {' and '.join(distinct)}.")


def warn_unended(names: Sequence[str]) -> None:
    """Warn once of text files without a newline at their end."""
    if names:
        others = f" and {counted(len(names) - 1, 'other file')}" if len(names) > 1 else ""
        warn(f"No newline at end of file: the last record of {names[0]!r}{others} may be cut.")


def warn_overlaps(
    spans: Iterable[Span], *, noun: str, cure: str, apart: Callable[[], Container[Any]] | None = None
) -> None:
    """Warn once of users with files or tracks that overlap in time, as those of several people do.

    With `apart` only users that it returns count, and those of whom two files begin and end at the same times.
    """
    by_user: dict[Any, list[Span]] = {}
    for span in spans:
        by_user.setdefault(span.user, []).append(span)
    mixed = [ordered for ordered in by_user.values() if _overlap(sorted(ordered, key=lambda span: span.first))]
    if mixed and apart is not None:
        users = apart()
        mixed = [some for some in mixed if some[0].user in users or len({each[1:3] for each in some}) < len(some)]
    if mixed:
        warn(
            f"In {counted(len(mixed), 'trace')} {noun} overlap in time, as those of several people or devices do "
            f"(first: {mixed[0][0].place!r}). {cure}"
        )


def _overlap(spans: Sequence[Span]) -> bool:
    """Whether spans in order of their starts overlap; a span may end at the time at which the next one begins."""
    ends = itertools.accumulate((span.last for span in spans), max)
    return any(
        span.first < end or span.first == before.first
        for before, span, end in zip(spans, spans[1:], ends, strict=False)
    )


def is_of_nothing_read(error: ValueError) -> bool:
    """Return whether an error is that of `read_parts` if it skipped every file."""
    return _NOTHING in vars(error)


def impossible(latitude: np.ndarray, longitude: np.ndarray, seconds: np.ndarray) -> dict[str, np.ndarray]:
    """Return masks of invalid records, by reason.

    Parameters
    ----------
    latitude, longitude, seconds : numpy.ndarray of shape (n,)
        Degrees, NaN if missing, and seconds since 1970.
    """
    return {
        "latitude outside ±90°": ~(np.abs(latitude) <= 90),
        "longitude outside ±180°": ~(np.abs(longitude) <= 180),
        "time outside 1970 to 2255": (seconds <= 0) | (seconds > LAST_SECOND),
    }


def drop_invalid(
    reasons: Mapping[str, np.ndarray], *, where: Callable[[int], str]
) -> tuple[np.ndarray, list[DroppedRecords]]:
    """Return a mask of the valid records, and the dropped ones; a record counts under its first reason.

    Parameters
    ----------
    reasons : mapping of str to numpy.ndarray of bool of shape (n,)
        Masks of invalid records.
    where : callable
        Returns the place of a record (from 0), for messages.
    """
    dropped = []
    invalid = np.zeros(len(next(iter(reasons.values()))), bool)
    for reason, mask in reasons.items():
        new = mask & ~invalid
        invalid |= new
        if new.any():
            dropped.append(DroppedRecords(reason, int(new.sum()), where(int(new.argmax()))))
    return ~invalid, dropped


def why_no_text(content: bytes) -> str:
    """Return why content is not UTF-8 text (empty, compressed, UTF-16); empty if it may be."""
    reason = "is empty" if not content or content.isspace() else contents.why_no_text(content)
    return f"it {reason}" if reason else ""


def line_of_row(content: bytes, row: int, *, skip: int = 0) -> int:
    """Return the line (from 1) of a row (from 0); the first `skip` lines and empty ones hold no row."""
    lines = io.TextIOWrapper(io.BytesIO(content), "latin-1")  # whatever ends a line
    filled = (number for number, line in enumerate(lines, 1) if number > skip and line != "\n")
    return next(itertools.islice(filled, row, None))


def place_of_row(row: int, *, name: str, content: bytes, skip: int) -> str:
    """Return the line of a row, as `line_of_row` does, and the name of its file, for messages."""
    return f"line {line_of_row(content, row, skip=skip):,} of {name!r}"


@dataclass(frozen=True)
class Lines:
    """How the lines of a data set are written.

    Parameters
    ----------
    dataset : str
        Name in messages.
    rule : str
        What each line is, in messages.
    columns : sequence of str
        Names of the values of a line.
    types : mapping of str to pyarrow.DataType
        The columns to read, and their types.
    delimiter : str
        What separates values.
    missing : tuple of str
        Texts for missing values.
    threads : bool
        Whether to parse a file in parallel, which pays for large files only.
    """

    dataset: str
    rule: str
    columns: Sequence[str]
    types: Mapping[str, pa.DataType]
    delimiter: str = ","
    missing: tuple[str, ...] = ()
    threads: bool = False

    def parse(self, content: bytes) -> pa.Table:
        """Return the columns of lines; raise pyarrow.ArrowInvalid if one does not follow the rule."""
        return csv.read_csv(
            pa.BufferReader(content),
            read_options=csv.ReadOptions(column_names=self.columns, use_threads=self.threads, block_size=_BLOCK),
            parse_options=csv.ParseOptions(delimiter=self.delimiter, quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=self.types,
                include_columns=list(self.types),
                null_values=self.missing,
                strings_can_be_null=True,
            ),
        )

    def read(self, name: str, content: bytes, *, above: int = 0) -> pa.Table:
        """Return the columns of lines, `above` lines below a file's start; raise ValueError with the first bad line."""
        try:
            return self.parse(content)
        except pa.ArrowInvalid:
            reason = why_no_text(content)
            line = 0 if reason else above + first_bad_line(content, self.parse)
            raise self.error(name, reason or f"line {line:,} is not {self.rule}") from None

    def error(self, name: str, reason: str) -> ValueError:
        """Return the error for a file that is not in the format."""
        return ValueError(f"{name!r} is not in the format of {self.dataset}: {reason}.")


def first_bad_line(content: bytes, parse: Callable[[bytes], Any]) -> int:
    """Return the first line (from 1) that `parse`, which parses each line alone, rejects."""
    start, end = 0, len(content)
    while True:
        middle = content.rfind(b"\n", start, (start + end) // 2) + 1 or content.find(b"\n", start, end - 1) + 1
        if not middle:
            return content.count(b"\n", 0, start) + 1
        piece = content[start:middle]
        try:
            if piece.strip():
                parse(piece)
            start = middle
        except pa.ArrowInvalid:
            end = middle
