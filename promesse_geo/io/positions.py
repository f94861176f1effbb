"""Positions of phones and loggers: collect them from a file, drop what is invalid, and name their users."""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np

from promesse_geo.io import batch
from promesse_geo.io.batch import DroppedRecords, Part
from promesse_geo.io.contents import Head, read_bytes
from promesse_geo.io.sources import BY_PLACE, Format, Source, by_endings, find_files, name_users
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice, check_flag, check_users, check_users_exist

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LARGEST = (batch.LAST_SECOND + 1) * 10**9  # nanoseconds; what is later is outside the range all the same
_NO_TIME = -(2**63)
_SHORTEST = len("2024-03-04T08:00")
NO_USER = "no device, and another file has the same name"
"""Reason why a record is dropped that names no device, in a file whose name is no user."""


class Positions:
    """The positions of a file, valid or not, in the order of the file.

    Parameters
    ----------
    name : str
        Name of the file in messages.
    noun : str
        What a position comes from in messages: "entry", "line".

    Attributes
    ----------
    notes : sequence of str
        As in `Part`.
    """

    def __init__(self, name: str, *, noun: str = "entry") -> None:
        self.name, self.noun = name, noun
        self.notes: Sequence[str] = ()
        self.times, self.x, self.y = array("q"), array("d"), array("d")
        self.places, self.ranks, self._codes = array("q"), array("b"), array("q")
        self._users: dict[str | None, int] = {}
        self._left_out: dict[str, DroppedRecords] = {}

    def add(
        self, time: int | None, latitude: float, longitude: float, *, place: int, rank: int = 0, user: str | None = None
    ) -> None:
        """Add a position.

        Parameters
        ----------
        time : int, optional
            Nanoseconds since 1970 in UTC; None if it is missing or invalid.
        latitude, longitude : float
            Degrees; NaN if missing or invalid.
        place : int
            Number of the entry or line that it comes from, from 1.
        rank : int
            How exact its kind is, the most exact first; for `less_exact`.
        user : str, optional
            The user that the entry names; None for the user of the file.
        """
        self.times.append(_NO_TIME if time is None else min(max(time, 0), _LARGEST))
        self.y.append(latitude)
        self.x.append(longitude)
        self.places.append(place)
        self.ranks.append(rank)
        self._codes.append(self._users.setdefault(user, len(self._users)))

    def leave_out(self, reason: str, *, place: int, count: int = 1) -> None:
        """Count what is not read."""
        before = self._left_out.get(reason) or DroppedRecords(reason, 0, self.where(place))
        self._left_out[reason] = DroppedRecords(reason, before.count + count, before.first)

    @property
    def has_left_out(self) -> bool:
        """Whether anything was left out."""
        return bool(self._left_out)

    def where(self, place: int) -> str:
        """Return a place in messages."""
        return f"{self.noun} {place:,} of {self.name!r}"

    def invalid(self) -> dict[str, np.ndarray]:
        """Return masks, of bool and shape (positions,), of invalid positions by reason."""
        times, x, y = np.array(self.times), np.array(self.x), np.array(self.y)
        timeless = times == _NO_TIME
        return {
            "no coordinates, or invalid ones": np.isnan(x) | np.isnan(y),
            "no time, or an invalid one": timeless,
            **batch.impossible(y, x, np.where(timeless, 1, times / 1e9)),
        }

    def parts(
        self, user: str | None, *, others: Callable[["Positions", np.ndarray], Mapping[str, np.ndarray]] | None = None
    ) -> Iterator[Part]:
        """Yield the valid positions of each user.

        Parameters
        ----------
        user : str, optional
            The user of positions that name none; None if there is no such user.
        others : callable
            Returns masks of what else to drop, by reason, given the positions and a mask of the valid ones.

        Raises
        ------
        ValueError
            If there is no valid position.
        """
        masks = self.invalid()
        if user is None and None in self._users:
            masks[NO_USER] = np.array(self._codes) == self._users[None]
        valid = ~np.logical_or.reduce(list(masks.values()))
        if not valid.any():
            left_out = [*batch.drop_invalid(masks, where=self._where_position)[1], *self._left_out.values()]
            details = "; ".join(f"{some.reason}: {some.count:,}" for some in left_out)
            raise ValueError(
                f"{self.name!r} has no position with a valid time and place{f' ({details})' if details else ''}."
            )
        if others is not None:
            masks |= others(self, valid)
        keep, dropped = batch.drop_invalid(masks, where=self._where_position)
        dropped += self._left_out.values()
        times, x, y, codes = (np.array(values) for values in (self.times, self.x, self.y, self._codes))
        for given, code in self._users.items():
            mine = keep & (codes == code)
            name = user if given is None else given
            if name is not None and (mine.any() or dropped):
                yield Part(name, times[mine], x[mine], y[mine], dropped, notes=self.notes)
                dropped = []

    def _where_position(self, number: int) -> str:
        return self.where(self.places[number])

    def less_exact(self, valid: np.ndarray) -> np.ndarray:
        """Return a mask of the positions at whose time the file has a more exact valid one."""
        times, ranks = np.array(self.times), np.array(self.ranks)
        if not len(ranks) or ranks.min() == ranks.max():
            return np.zeros(len(ranks), bool)
        _, group = np.unique(times, return_inverse=True)
        best = np.full(len(ranks), np.iinfo(ranks.dtype).max, ranks.dtype)
        np.minimum.at(best, group[valid], ranks[valid])
        return ranks > best[group]


def position_format(
    name: str,
    label: str,
    parse: Callable[..., Iterable[Part]],
    sniff: Callable[[Head, str], bool],
    *,
    endings: Sequence[str],
    remarks: str,
    by_name: bool = False,
    has_devices: bool = False,
    history_of: Callable[[Sequence[Path]], Mapping[Path, Path]] | None = None,
    library: str = Format.library,
) -> Format:
    """Return the format of files that hold the positions of a phone or a logger.

    Parameters
    ----------
    name, label, sniff, remarks, by_name, library
        As in `Format`.
    parse : callable
        `parse(name, content, user)` yields the parts of a file. With `has_devices`, `by_device` states whether devices
        are users, and `user` is None if the name of the file is no user.
    endings : sequence of str
        Of the files that are read in a folder.
    has_devices : bool
        Whether positions name devices.
    history_of : callable, optional
        Returns the files to read, and for each the path that names its user.
    """
    read = partial(_read_positions, parse=parse, endings=endings, has_devices=has_devices, history_of=history_of)
    files = by_endings(endings)
    form = Format(name, label, read, sniff, files, by_name=by_name, options=lambda head: ("user",))
    return replace(form, remarks=remarks, library=library)


def _read_positions(
    source: Source,
    *,
    parse: Callable[..., Iterable[Part]],
    endings: Sequence[str],
    has_devices: bool,
    history_of: Callable[[Sequence[Path]], Mapping[Path, Path]] | None,
    user: Any = ...,
    users: Iterable[Any] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    """Read files of positions as one data set in EPSG:4326 and UTC; see `read_file`, and `position_format`.

    `user` may be "file", "folder", "folder-2" (the folder above that) or, with `has_devices`, "device" (the file where
    a position names none). The default, `...`, is "device" with `has_devices`, else "file".
    """
    by = ("device" if has_devices else "file") if user is ... else user
    check_choice(by, name="user", owner="read_file", options=(*BY_PLACE, "device") if has_devices else BY_PLACE)
    chosen = check_users(users, owner="read_file")
    check_flag(as_traces, name="as_traces", owner="read_file")
    paths = find_files(source, endings=endings, owner="read_file")
    histories = history_of(paths) if history_of else dict(zip(paths, paths, strict=True))
    by_device = by == "device"
    user_of = _name_files(histories) if by_device else _name_users(histories, by)
    if chosen is not None and not by_device:
        check_users_exist(chosen, user_of.values(), owner="read_file")
        user_of = {path: name for path, name in user_of.items() if name in chosen}
    names = {str(path): name for path, name in user_of.items()}
    options = {"by_device": by_device} if has_devices else {}
    spans: dict[str, list[batch.Span]] = {name: [] for name in names}
    return batch.read_dataset(
        [(str(path), partial(read_bytes, path)) for path in user_of],
        partial(_parse_file, parse=parse, names=names, options=options, spans=spans),
        users=chosen,
        errors=errors,
        owner="read_file",
        as_traces=as_traces,
        check=lambda _: _warn_overlaps(spans, chosen) if by_device else None,
    )


def _parse_file(
    name: str,
    content: bytes,
    *,
    parse: Callable[..., Iterable[Part]],
    names: Mapping[str, str | None],
    options: Mapping[str, bool],
    spans: dict[str, list[batch.Span]],
) -> list[Part]:
    """Return the parts of a file, and note when its users were recorded."""
    parts = list(parse(name, content, names[name], **options))
    spans[name] = [batch.Span(part.user, part.times.min(), part.times.max(), name) for part in parts if len(part.times)]
    return parts


def _warn_overlaps(spans: Mapping[str, Sequence[batch.Span]], chosen: set[str] | None) -> None:
    """Warn if a device names several people, as two letters may, in the spans of each file."""
    ordered = [span for some in spans.values() for span in some if chosen is None or span.user in chosen]
    cure = "If each file or folder is a user, pass user='file' or 'folder' (--user file or --user folder)."
    batch.warn_overlaps(ordered, noun="files", cure=cure)


def _name_users(histories: Mapping[Path, Path], by: str) -> dict[Path, str | None]:
    names = name_users(list(dict.fromkeys(histories.values())), by=by)
    return {path: names[history] for path, history in histories.items()}


def _name_files(files: Iterable[Path]) -> dict[Path, str | None]:
    """Return the name of each file without extensions, None if another file has the same."""
    stems = {path: path.name.partition(".")[0] or path.name for path in files}
    counts = list(stems.values())
    return {path: stem if counts.count(stem) == 1 else None for path, stem in stems.items()}


def as_number(value: Any) -> float:
    """Return a number, or a text that is one, as a float; NaN for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def from_seconds(value: Any) -> int | None:
    """Return seconds since 1970 as nanoseconds, rounded to microseconds; None if it is no number."""
    seconds = as_number(value)
    return round(seconds * 1e6) * 1000 if abs(seconds) < 1e12 else None


def from_iso(value: Any) -> int | None:
    """Return a time of ISO 8601 as nanoseconds since 1970, in UTC if it has no zone; None if it is none.

    Examples
    --------
    >>> from_iso("1970-01-01T01:00:00.5+01:00")
    500000000
    """
    if not isinstance(value, str) or len(value) < _SHORTEST:
        return None
    try:
        time = datetime.fromisoformat(value)
        moment = time.replace(tzinfo=UTC) if time.tzinfo is None else time
        return (moment - _EPOCH) // _MICROSECOND * 1000
    except (ValueError, OverflowError):
        return None


def get(value: Any, path: str) -> Any:
    """Return a member of nested objects by its keys, separated by dots; None if there is none.

    Examples
    --------
    >>> get({"visit": {"place": 7}}, "visit.place"), get([], "visit")
    (7, None)
    """
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def items(value: Any) -> list[Any]:
    """Return an array, and an empty one for everything else."""
    return value if isinstance(value, list) else []


def as_user(value: Any) -> str | None:
    """Return a text or an integer as the key of a user; None if it is empty or something else."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value).encode(errors="backslashreplace").decode().strip() or None
