"""Tracks of receivers, watches and phones: their points, breaks and users, whatever the format."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.io import batch
from promesse_geo.io.batch import DroppedRecords, Part
from promesse_geo.io.contents import Head, read_bytes
from promesse_geo.io.sources import BY_PLACE, Format, Source, by_endings, find_files, name_users
from promesse_geo.messages import counted
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice, check_flag, check_users, check_users_exist

_NUMBER = r"^(?:[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|NaN)$"
_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[-+][0-9]{2}(?::?[0-9]{2})?)?$"
)
_MIDNIGHT = r"^(.{11})24(:00(?::00(?:\.0+)?)?(?:[-+Z].*)?)$"  # 24:00, the end of a day
_LEAP_SECOND = r"^(.{16}:)60"
_BELOW_NANOSECONDS = r"(\.[0-9]{9})[0-9]+"
XML_LIBRARY = "Python (expat)"
"""The library that parses XML, for the documentation."""


class Points(NamedTuple):
    """The points of a file's tracks, valid or not, in the order of the file.

    Parameters
    ----------
    tracks, segments : sequence of int
        Number of points before each track and each segment.
    times : numpy.ndarray of datetime64[ns], shape (points,)
        In UTC; NaT if there is none.
    latitudes, longitudes : numpy.ndarray of float64, shape (points,)
        Degrees; NaN if there is none.
    located : numpy.ndarray of bool, shape (points,)
        Whether a point has coordinates, valid or not.
    dropped : sequence of DroppedRecords
        What is in no track, or not read for another reason.
    names : sequence of str or None, optional
        The user of each track, where the file names it; None where it does not.
    zone : str, optional
        The zone of the times; None if they have none.
    """

    tracks: Sequence[int]
    segments: Sequence[int]
    times: np.ndarray
    latitudes: np.ndarray
    longitudes: np.ndarray
    located: np.ndarray
    dropped: Sequence[DroppedRecords] = ()
    names: Sequence[str | None] | None = None
    zone: str | None = "UTC"


def track_format(
    name: str,
    label: str,
    parse: Callable[[str, bytes], Points],
    sniff: Callable[[Head, str], bool],
    *,
    endings: Sequence[str],
    noun: str,
    remarks: str,
    has_tracks: bool = True,
    zipped: bool = False,
    library: str = XML_LIBRARY,
) -> Format:
    """Return the format of files that hold tracks; `parse`, `endings`, `noun` and `has_tracks` as in `read_tracks`."""
    read = partial(read_tracks, parse=parse, endings=endings, noun=noun, has_tracks=has_tracks)
    files = by_endings(endings)
    form = Format(name, label, read, sniff, files, zipped=zipped, options=lambda head: ("user",))
    return replace(form, remarks=remarks, library=library)


def read_tracks(
    source: Source,
    *,
    parse: Callable[[str, bytes], Points],
    endings: Sequence[str],
    noun: str,
    user: Any = ...,
    users: Iterable[Any] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
    owner: str = "read_file",
    has_tracks: bool = True,
    has_names: Callable[[Path], bool] = lambda path: False,
) -> gpd.GeoDataFrame | Traces:
    """Read the tracks of files as one data set.

    Parameters
    ----------
    source, users, as_traces, errors
        As in `read_gpx`.
    parse : callable
        Returns the points of a file from its name and content; raises ValueError with the name in the message.
    endings : sequence of str
        Of the files that are read in a folder.
    noun, owner : str
        Names of a point and of the reader in messages.
    user : {"file", "folder", "folder-2", "track"} or ...
        As in `read_gpx`; `...` is "file", but in files with names of users.
    has_tracks : bool
        Whether `user` may be "track".
    has_names : callable
        Returns whether a file names the users of its tracks.

    Returns
    -------
    geopandas.GeoDataFrame or Traces

    Raises
    ------
    FileNotFoundError, ValueError
        As `read_gpx`.
    """
    by = "file" if user is ... else user
    check_choice(by, name="user", owner=owner, options=(*BY_PLACE, "track") if has_tracks else BY_PLACE)
    chosen = check_users(users, owner=owner)
    check_flag(as_traces, name="as_traces", owner=owner)
    by_track = by == "track"
    paths = find_files(source, endings=endings, owner=owner)
    named = [path for path in paths if user is ... and has_names(path)]
    user_of = name_users([path for path in paths if path not in named], by="file" if by_track else by)
    if chosen is not None:
        names = {name.rpartition("-")[0] if by_track else name for name in chosen}
        check_users_exist(None if named else names, user_of.values(), owner=owner)
        user_of = {path: name for path, name in user_of.items() if name in names}
    places = {name: path.parent if by in ("folder", "folder-2") else path for path, name in user_of.items()}
    user_of |= dict.fromkeys(named, "")
    return batch.read_dataset(
        [(str(path), partial(read_bytes, path)) for path in sorted(user_of)],
        partial(
            _parse,
            parse=parse,
            user_of={str(path): name for path, name in user_of.items()},
            by_track=by_track,
            named={str(path) for path in named},
            noun=noun,
        ),
        users=chosen,
        errors=errors,
        owner=owner,
        as_traces=as_traces,
        check=partial(_warn_overlaps, places={} if by_track else places, by=by, has_tracks=has_tracks),
    )


def _parse(
    name: str,
    content: bytes,
    *,
    parse: Callable[[str, bytes], Points],
    user_of: Mapping[str, str],
    by_track: bool,
    named: set[str],
    noun: str,
) -> Iterator[Part]:
    """Yield the records of each track of a file."""
    points = parse(name, content)
    names = points.names if name in named else None
    count = len(points.times)
    if count or names is None:
        yield from _parts(name, points, count, user_of[name], names, by_track=by_track, noun=noun)


def _parts(
    name: str, points: Points, count: int, user: str, names: Sequence[str | None] | None, *, by_track: bool, noun: str
) -> Iterator[Part]:
    timeless, (x, y) = np.isnat(points.times), (points.longitudes, points.latitudes)
    if timeless.all():
        raise ValueError(f"{name!r} has no times: none of its {counted(count, noun)} has one.")
    reasons = {
        "no coordinates": ~points.located,
        "not on the globe": ~((np.abs(x) <= 180) & (np.abs(y) <= 90)),
        "no time, or an invalid one": timeless,
    }
    if np.logical_or.reduce(list(reasons.values())).all():
        raise ValueError(f"{name!r} has no {noun} with both a time and a location on the globe.")
    segments = np.searchsorted(points.segments, np.arange(count), side="right")
    others = list(points.dropped)
    for number, (first, last) in enumerate(itertools.pairwise([*points.tracks, count])):
        if first < last:
            track = slice(first, last)
            masks = {reason: mask[track] for reason, mask in reasons.items()}
            keep, dropped = batch.drop_invalid(masks, where=partial(_place, name, first, noun))
            own = f"{user}-{number + 1}" if by_track else user
            if names is not None:
                own = Path(name).stem if (given := names[number]) is None else given
            when, codes = points.times[track][keep].view(np.int64), segments[track][keep] - segments[first]
            yield Part(own, when, x[track][keep], y[track][keep], dropped + others, segments=codes, zone=points.zone)
            others = []


def _place(name: str, first: int, noun: str, number: int) -> str:
    return f"{noun} {first + number + 1:,} of {name!r}"


def _warn_overlaps(parts: Sequence[Part], *, places: Mapping[str, Path], by: str, has_tracks: bool) -> None:
    """Warn once of users in `places` whose tracks overlap in time, as those of several people do."""
    spans = [
        batch.Span(part.user, part.times.min(), part.times.max(), str(places[part.user]))
        for part in parts
        if len(part.times) and part.user in places
    ]
    smaller = BY_PLACE[: BY_PLACE.index(by)][::-1] if by in BY_PLACE else ()  # a folder before a file
    kinds = [*smaller, *(["track"] if has_tracks else [])] or ["file"]
    cures = [f"if each {kind} is a user, pass user={kind!r} (--user {kind})" for kind in kinds]
    cure = "; ".join(cures)
    batch.warn_overlaps(spans, noun="tracks", cure=f"{cure[0].upper()}{cure[1:]}.")


def _as_times(texts: Sequence[str | None]) -> np.ndarray:
    """Return times in UTC as datetime64[ns]; NaT if missing, invalid, or out of the range of nanoseconds."""
    iso = pc.ascii_upper(pc.ascii_trim_whitespace(pa.array(texts, pa.large_string())))
    iso = pc.if_else(pc.match_substring_regex(iso, _TIME), iso, None)
    times = _from_iso(iso)
    odd = np.flatnonzero(np.isnat(times) & iso.is_valid().to_numpy(zero_copy_only=False))
    if len(odd):  # XML and receivers write what pandas does not read
        iso = pc.replace_substring_regex(iso.take(pa.array(odd)), _BELOW_NANOSECONDS, r"\1")
        odd_kinds = (pc.match_substring_regex(iso, pattern) for pattern in (_MIDNIGHT, _LEAP_SECOND))
        midnight, leap = (matches.to_numpy(zero_copy_only=False) for matches in odd_kinds)
        iso = pc.replace_substring_regex(pc.replace_substring_regex(iso, _MIDNIGHT, r"\100\2"), _LEAP_SECOND, r"\159")
        times[odd] = _from_iso(iso) + (midnight * 86_400 + leap).astype("m8[s]")
    return times


def _from_iso(texts: pa.Array) -> np.ndarray:
    """Return times of ISO 8601 as datetime64[ns], in UTC if they have no zone."""
    times = pd.DatetimeIndex(pd.to_datetime(texts.to_pandas(), format="ISO8601", utc=True, errors="coerce"))
    within = times.where((times.year >= 1678) & (times.year <= 2261))
    return pd.DatetimeIndex(within).as_unit("ns").asi8.view("M8[ns]")


def parse_points(
    name: str,
    *,
    label: str,
    noun: str,
    tracks: Sequence[int],
    segments: Sequence[int],
    times: Sequence[str | None],
    latitudes: Sequence[str | None],
    longitudes: Sequence[str | None],
    lost: Mapping[str, Sequence[int]],
    names: Sequence[str | None] | None = None,
    zone: str | None = "UTC",
) -> Points:
    """Return the points of a file from their texts.

    Parameters
    ----------
    name, label, noun : str
        Names of the file, of its format and of a point in messages.
    tracks, segments, names, zone
        As in `Points`.
    times, latitudes, longitudes : sequence of str or None, length points
        None for what a point lacks.
    lost : mapping of str to sequence of int
        Lines of what is not read, by reason.

    Raises
    ------
    ValueError
        If a coordinate is no number.
    """
    y, has_y = _as_degrees(latitudes, name, label=label, noun=noun)
    x, has_x = _as_degrees(longitudes, name, label=label, noun=noun)
    dropped = [
        DroppedRecords(reason, len(lines), f"line {lines[0]:,} of {name!r}") for reason, lines in lost.items() if lines
    ]
    return Points(tracks, segments, _as_times(times), y, x, has_y & has_x, dropped, names, zone)


def _as_degrees(texts: Sequence[str | None], name: str, *, label: str, noun: str) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers, NaN if missing, and which are there; raise ValueError if a text such as 45,7 is no number."""
    trimmed = pc.ascii_trim_whitespace(pa.array(texts, pa.large_string()))
    numeric = pc.match_substring_regex(trimmed, _NUMBER).fill_null(True).to_numpy(zero_copy_only=False)
    if not numeric.all():
        point = f"{noun} {int(numeric.argmin()) + 1:,}"
        raise ValueError(f"{name!r} is not {label}: {point} has a coordinate that is no number such as 12.5.")
    degrees = pc.utf8_ltrim(trimmed, "+").cast(pa.float64())
    return degrees.fill_null(np.nan).to_numpy(), degrees.is_valid().to_numpy(zero_copy_only=False)
