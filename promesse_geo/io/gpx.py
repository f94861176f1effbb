"""GPX: tracks of receivers, watches and phones."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack, overload
from xml.parsers import expat

import geopandas as gpd

from promesse_geo.io.contents import Head, read_head
from promesse_geo.io.options import TrackOptions
from promesse_geo.io.sources import Format, Source, by_endings
from promesse_geo.io.tracks import XML_LIBRARY, Points, parse_points, read_tracks
from promesse_geo.io.xml import has_root, local_name, parse_xml, root_pattern
from promesse_geo.messages import counted
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces

ENDINGS = (".gpx", ".gpx.gz")
CREATOR = "promesse_geo"
"""Creator of the GPX files of `write`, which name a trace's user in each track."""

_NOUN = "track point"
_STRAY = "in no segment of a track, or of another namespace than the file"
_ROOT = root_pattern("gpx")
_OURS = re.compile(rb'<gpx version="1\.1" creator="%s" ' % CREATOR.encode())
_TRACK_DEPTH, _SEGMENT_DEPTH, _POINT_DEPTH, _TIME_DEPTH = 2, 3, 4, 5


class _Texts(NamedTuple):
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
    names: list[str | None]
    """The name of each track; None if it has none."""
    creators: list[str]
    """What made the file."""


@overload
def read_gpx(
    source: Source, *, as_traces: Literal[False] = ..., **options: Unpack[TrackOptions]
) -> gpd.GeoDataFrame: ...
@overload
def read_gpx(source: Source, *, as_traces: Literal[True], **options: Unpack[TrackOptions]) -> Traces: ...
@overload
def read_gpx(source: Source, *, as_traces: bool, **options: Unpack[TrackOptions]) -> gpd.GeoDataFrame | Traces: ...


def read_gpx(
    source: Source,
    *,
    user: Name = ...,
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
    start of the next day. A leap second (second 60) becomes the first second of the next minute. Files of `write` whose
    times have no zone are read so.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        A GPX file, a folder with such files (`.gpx`, `.gpx.gz`, at any depth), a pattern such as `"rides/*.gpx"`, or
        several.
    user : {"file", "folder", "folder-2", "track"}, optional
        The user of a track: the file (its name without extension), the folder of the file, the folder of that folder,
        or each track alone (`<file>-1`, `<file>-2`, …, counted per file). By default the file, but the track's name in
        files of `write`.
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
    return read_tracks(
        source,
        parse=_parse,
        endings=ENDINGS,
        noun=_NOUN,
        user=user,
        users=users,
        as_traces=as_traces,
        errors=errors,
        owner="read_gpx",
        has_names=_has_names,
    )


def _parse(name: str, content: bytes) -> Points:
    """Return the points of a file's tracks."""
    found = parse_xml(name, content, _collect, label="GPX", root="gpx")
    count, strays = len(found.times), found.strays
    named = found.creators == [CREATOR]
    if not count and not named:
        lost = counted(len(strays), "point is", "points are")
        others = f" {lost} outside of segments or of another namespace." if strays else ""
        raise ValueError(f"{name!r} has no track points in segments (waypoints and routes are no records).{others}")
    return parse_points(
        name,
        label="GPX",
        noun=_NOUN,
        tracks=found.tracks,
        segments=found.segments,
        times=found.times,
        latitudes=found.latitudes,
        longitudes=found.longitudes,
        lost={_STRAY: strays},
        names=found.names if named else None,
        zone=None if named and not any(time.endswith("Z") for time in found.times) and count else "UTC",
    )


def _collect(parser: expat.XMLParserType) -> _Texts:
    """Collect the points at gpx/trk/trkseg/trkpt in the namespace of gpx."""
    points = _Texts([], [], [], [], [], [], [], [])
    tracks, segments, times, latitudes, longitudes, strays, names, creators = points
    begins = {_TRACK_DEPTH: tracks, _SEGMENT_DEPTH: segments}
    text: list[str] = []
    path: list[str] = []
    depth = along = aside = 0  # number of open elements, of those on the path, and of those around extensions
    named = False  # whether the text is that of a track's name

    def begin(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth, along, aside, named
        if not path:
            if local_name(name) != "gpx":
                raise ValueError("it has no element <gpx>")
            path.extend(name[:-3] + step for step in ("gpx", "trk", "trkseg", "trkpt", "time", " "))
            creators.append(attributes.get("creator", ""))
        if depth == along and name == path[along]:
            along += 1
            if along == _TIME_DEPTH:
                parser.CharacterDataHandler = text.append
            elif along == _POINT_DEPTH:
                latitudes.append(attributes.get("lat"))
                longitudes.append(attributes.get("lon"))
            elif along in begins:
                begins[along].append(len(times))
                if along == _TRACK_DEPTH:
                    names.append(None)
        elif along < _POINT_DEPTH and not aside:
            if depth == along == _TRACK_DEPTH and local_name(name) == "name":
                named, parser.CharacterDataHandler = True, text.append
            elif local_name(name) == "trkpt":
                strays.append(parser.CurrentLineNumber)
            elif local_name(name) == "extensions":
                aside = depth
        depth += 1

    def end(_: str) -> None:
        nonlocal depth, along, aside, named
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
        elif named and depth == _TRACK_DEPTH:
            named, parser.CharacterDataHandler, names[-1] = False, None, "".join(text)
            text.clear()

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    return points


def is_gpx(head: Head, name: str) -> bool:
    """Return whether a file has an element <gpx>, in any encoding of XML."""
    return has_root(head, _ROOT)


def _has_names(path: Path) -> bool:
    """Return whether the tracks of a file are named by their users, as `write` does."""
    with suppress(OSError):
        return path.is_file() and _OURS.search(read_head(path).content) is not None
    return False


FORMAT = Format(
    "gpx", "GPX", read_gpx, is_gpx, by_endings(ENDINGS), options=lambda head: ("user",), library=XML_LIBRARY
)
