"""GPX: tracks of receivers, watches and phones."""

import codecs
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.io import batch
from promesse_geo.io.batch import DroppedRecords, Part
from promesse_geo.io.sources import Format, Head, Source, find_files, name_users, read_bytes
from promesse_geo.messages import counted
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice, check_flag, check_users, check_users_exist

ENDINGS = (".gpx", ".gpx.gz")
_STRAY = "in no segment of a track, or of another namespace than the file"
_NUMBER = r"^(?:[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|NaN)$"
_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[-+][0-9]{2}(?::?[0-9]{2})?)?$"
)
_MIDNIGHT = r"^(.{11})24(:00(?::00(?:\.0+)?)?(?:[-+Z].*)?)$"  # 24:00, the end of a day
_LEAP_SECOND = r"^(.{16}:)60"
_BELOW_NANOSECONDS = r"(\.[0-9]{9})[0-9]+"
_CHUNK = 1 << 20  # bytes for expat at a time
_LONGEST = 16 * _CHUNK  # tag or comment: old versions of expat parse it again from its start with every chunk
_ROOT = re.compile(rb"<(?:[^\s<>:!?/]+:)?gpx[\s/>]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TRACK_DEPTH, _SEGMENT_DEPTH, _POINT_DEPTH, _TIME_DEPTH = 2, 3, 4, 5


class _Points(NamedTuple):
    """Track points as text; None for a missing attribute."""

    tracks: list[int]
    """Number of points before each track."""
    segments: list[int]
    """Number of points before each segment."""
    times: list[str]
    latitudes: list[str | None]
    longitudes: list[str | None]
    strays: list[int]
    """Lines of points in no segment, or of another namespace, but not in extensions."""


def read_gpx(
    source: Source,
    *,
    user: str = "file",
    users: Iterable[Any] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    """Read the tracks of GPX files, also of those compressed with gzip.

    Only the points of tracks are read: no waypoints, routes, elevations or extensions. Points without a valid time,
    points without a location on the globe, and points that lie in no segment or are of another namespace are dropped
    with one counted warning. Another warning counts traces made of tracks that overlap in time.

    A new track or segment is a break: the receiver was off or had no reception, so nothing is interpolated there.

    Times without a zone are UTC, as GPX specifies, and are read to the nanosecond. As in XML Schema, 24:00 is the
    start of the next day. A leap second (second 60) becomes the first second of the next minute.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        A GPX file, a folder with such files (`.gpx`, `.gpx.gz`, at any depth), a pattern such as `"rides/*.gpx"`, or
        several.
    user : {"file", "folder", "track"}
        The user of a track: the file (its name without extension), the folder of the file, or each track alone
        (`<file>-1`, `<file>-2`, …, counted per file).
    users : iterable of text or integers, optional
        The users to read; all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.
    errors : {"raise", "skip"}
        Whether a file that is not GPX, is cut, or has no track point with a time and a location raises an error, or is
        skipped with one counted warning.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user, time (UTC) and geometry (EPSG:4326); with several tracks or segments of a user also segment, their number.

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    ValueError
        If a file cannot be read, two files are of the same user, or a user does not exist.

    Examples
    --------
    >>> import promesse_geo as pg, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "ride.gpx"
    >>> _ = file.write_text(
    ...     '<gpx version="1.1"><trk><trkseg><trkpt lat="45.7" lon="4.8"><time>2024-03-04T08:00:00Z</time></trkpt>'
    ...     "</trkseg></trk></gpx>"
    ... )
    >>> list(pg.read_gpx(file).user)
    ['ride']
    """
    check_choice(user, name="user", owner="read_gpx", options=("file", "folder", "track"))
    chosen = check_users(users, owner="read_gpx")
    check_flag(as_traces, name="as_traces", owner="read_gpx")
    by_track, by_folder = user == "track", user == "folder"
    paths = find_files(source, endings=ENDINGS, owner="read_gpx")
    user_of = name_users(paths, by="folder" if by_folder else "file")
    if chosen is not None:
        names = {name.rpartition("-")[0] if by_track else name for name in chosen}
        check_users_exist(names, user_of.values(), owner="read_gpx")
        user_of = {path: name for path, name in user_of.items() if name in names}
    places = {name: path.parent if by_folder else path for path, name in user_of.items()}
    return batch.read_dataset(
        [(str(path), partial(read_bytes, path)) for path in user_of],
        partial(_parse, user_of={str(path): name for path, name in user_of.items()}, by_track=by_track),
        users=chosen,
        errors=errors,
        owner="read_gpx",
        as_traces=as_traces,
        check=partial(_warn_overlaps, places={} if by_track else places),
    )


def _parse(name: str, content: bytes, *, user_of: Mapping[str, str], by_track: bool) -> Iterator[Part]:
    """Yield the records of each track of a file."""
    points = _read_points(name, content)
    count, strays = len(points.times), points.strays
    if not count:
        lost = counted(len(strays), "point is", "points are")
        others = f" {lost} outside of segments or of another namespace." if strays else ""
        raise ValueError(f"{name!r} has no track points in segments (waypoints and routes are no records).{others}")
    times = _as_times(points.times)
    timeless = np.isnat(times)
    if timeless.all():
        raise ValueError(f"{name!r} has no times: none of its {counted(count, 'track point')} has one.")
    latitudes, longitudes = (_as_degrees(texts, name) for texts in (points.latitudes, points.longitudes))
    y, x = (degrees.fill_null(np.nan).to_numpy() for degrees in (latitudes, longitudes))
    reasons = {
        "no coordinates": pc.or_(latitudes.is_null(), longitudes.is_null()).to_numpy(zero_copy_only=False),
        "not on the globe": ~((np.abs(x) <= 180) & (np.abs(y) <= 90)),
        "no time, or an invalid one": timeless,
    }
    if np.logical_or.reduce(list(reasons.values())).all():
        raise ValueError(f"{name!r} has no track point with both a time and a location on the globe.")
    segments = np.searchsorted(points.segments, np.arange(count), side="right")
    stray = [DroppedRecords(_STRAY, len(strays), f"line {strays[0]:,} of {name!r}")] if strays else []
    for number, (first, last) in enumerate(itertools.pairwise([*points.tracks, count]), 1):
        if first < last:
            track = slice(first, last)
            masks = {reason: mask[track] for reason, mask in reasons.items()}
            keep, dropped = batch.drop_invalid(masks, where=partial(_place, name, first))
            user = f"{user_of[name]}-{number}" if by_track else user_of[name]
            when, codes = times[track][keep].view(np.int64), segments[track][keep] - segments[first]
            yield Part(user, when, x[track][keep], y[track][keep], dropped + stray, segments=codes)
            stray = []


def _place(name: str, first: int, number: int) -> str:
    return f"track point {first + number + 1:,} of {name!r}"


def _warn_overlaps(parts: Sequence[Part], *, places: Mapping[str, Path]) -> None:
    """Warn once of users in `places` whose tracks overlap in time, as those of several people do."""
    spans = [
        batch.Span(part.user, part.times.min(), part.times.max(), str(places[part.user]))
        for part in parts
        if len(part.times) and part.user in places
    ]
    batch.warn_overlaps(spans, noun="tracks", cure="If each track is a user, pass user='track' (--user track).")


def _read_points(name: str, content: bytes) -> _Points:
    """Return the track points of a file; raise ValueError if it is not well-formed to its end."""
    encoding = None
    if content.startswith(_UTF16):
        content, encoding = content.decode("utf-16", errors="replace").encode(), "utf-8"
    content = content.removeprefix(codecs.BOM_UTF8).lstrip()
    if not content:
        raise ValueError(f"{name!r} is not GPX: it is empty.")
    try:
        try:
            return _feed(content, encoding, separator="\n")
        except expat.ExpatError:  # many files use prefixes without declaring them
            return _feed(content, encoding, separator=None)
    except expat.ExpatError as error:
        if b"<" not in content[:2]:
            raise ValueError(f"{name!r} is not GPX: it has no element <gpx>.") from error
        where = f"line {error.lineno:,}: {expat.ErrorString(error.code)}"
        raise ValueError(f"{name!r} is not GPX, or cut or damaged ({where}).") from error
    except (ValueError, LookupError) as error:  # from `_feed`, or of an encoding that expat lacks
        raise ValueError(f"{name!r} is not GPX: {error}.") from error


def _feed(content: bytes, encoding: str | None, *, separator: str | None) -> _Points:
    """Return the points at gpx/trk/trkseg/trkpt in the namespace of gpx; without separator, names have prefixes."""
    parser = expat.ParserCreate(encoding, separator)
    parser.buffer_text = True
    points = _Points([], [], [], [], [], [])
    tracks, segments, times, latitudes, longitudes, strays = points
    begins = {_TRACK_DEPTH: tracks, _SEGMENT_DEPTH: segments}
    text: list[str] = []
    path: list[str] = []
    depth = along = 0  # number of open elements, and of those on the path
    aside = 0  # depth above an open element of extensions

    def begin(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth, along, aside
        if not path:
            if _local(name) != "gpx":
                raise ValueError("it has no element <gpx>")
            path.extend(name[:-3] + step for step in ("gpx", "trk", "trkseg", "trkpt", "time", " "))
        if depth == along and name == path[along]:
            along += 1
            if along == _TIME_DEPTH:
                parser.CharacterDataHandler = text.append
            elif along == _POINT_DEPTH:
                latitudes.append(attributes.get("lat"))
                longitudes.append(attributes.get("lon"))
            elif along in begins:
                begins[along].append(len(times))
        elif along < _POINT_DEPTH and not aside:
            if _local(name) == "trkpt":
                strays.append(parser.CurrentLineNumber)
            elif _local(name) == "extensions":
                aside = depth
        depth += 1

    def end(_: str) -> None:
        nonlocal depth, along, aside
        depth -= 1
        if depth == aside:
            aside = 0
        if depth < along:
            along = depth
            if depth == _TIME_DEPTH - 1:
                parser.CharacterDataHandler = None
            elif depth == _POINT_DEPTH - 1:
                times.append("".join(text))
                text.clear()

    def refuse(name: str, system: str | None, public: str | None, inside: bool) -> None:
        raise ValueError("it declares a document type (DOCTYPE), and GPX has none")

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = begin, end, refuse
    for start in range(0, len(content), _CHUNK):
        parser.Parse(content[start : start + _CHUNK])
        if start - parser.CurrentByteIndex > _LONGEST:
            raise ValueError(f"line {parser.CurrentLineNumber:,} begins a tag or comment of more than 16 MB")
    parser.Parse(b"", True)
    return points


def _local(name: str) -> str:
    """Return a name without namespace or prefix."""
    return re.split("[\n:]", name)[-1]


def _as_times(texts: Sequence[str]) -> np.ndarray:
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


def _as_degrees(texts: Sequence[str | None], name: str) -> pa.Array:
    """Return numbers, null if missing; raise ValueError if a text such as 45,7 is no number."""
    trimmed = pc.ascii_trim_whitespace(pa.array(texts, pa.large_string()))
    numeric = pc.match_substring_regex(trimmed, _NUMBER).fill_null(True).to_numpy(zero_copy_only=False)
    if not numeric.all():
        point = f"track point {int(numeric.argmin()) + 1:,}"
        raise ValueError(f"{name!r} is not GPX: {point} has a coordinate that is no number such as 12.5.")
    return pc.utf8_ltrim(trimmed, "+").cast(pa.float64())


def is_gpx(head: Head, name: str) -> bool:
    """Return whether a file has an element <gpx>, in any encoding of XML."""
    text = head.content.replace(b"\0", b"")
    return _ROOT.search(text) is not None and text.lstrip(b"\xef\xbb\xbf\xff\xfe \r\n\t").startswith(b"<")


FORMAT = Format(
    "gpx", "GPX", read_gpx, is_gpx, files=tuple(f"*{ending}" for ending in ENDINGS), options=lambda head: ("user",)
)
