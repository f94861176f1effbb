"""KML and KMZ: tracks with times (gx:Track), and points with times."""

import io
import os
import zipfile
from typing import Any, NamedTuple
from xml.parsers import expat

from promesse_geo.io.contents import ZIP, Head, open_zip, read_zipped, size_limit, too_large
from promesse_geo.io.tracks import Points, parse_points, track_format
from promesse_geo.io.xml import has_root, parse_xml, root_pattern, watch
from promesse_geo.messages import counted

ENDINGS = (".kml", ".kmz", ".kml.gz")
_NOUN = "point"
_ROOT = root_pattern("kml")
_MARK = "a placemark beside tracks"
_UNTIMED = "a point or line without a time for each position"


class _Texts(NamedTuple):
    """Points as text: of tracks, and of placemarks."""

    tracks: list[int]
    """Number of points before each placemark with tracks."""
    segments: list[int]
    """Number of points before each track."""
    times: list[str]
    places: list[str]
    mark_times: list[str]
    mark_places: list[str]
    mark_lines: list[int]
    untimed: list[int]
    """Lines of points and lines without times."""
    links: list[int]
    """Lines of links to other files."""


def _parse(name: str, content: bytes) -> Points:
    """Return the points of a file."""
    found = _Texts([], [], [], [], [], [], [], [], [])
    for document in _documents(name, content):
        more = parse_xml(name, document, _collect, label="KML", root="kml")
        before = len(found.times)
        segments = [before + count for count in more.segments]
        shifted = more._replace(tracks=[before + count for count in more.tracks], segments=segments)
        columns: Any = zip(found, shifted, strict=True)
        found = _Texts(*(first + second for first, second in columns))
    others = {_UNTIMED: found.untimed}
    tracks, segments, times, places = found[:4]
    if not times:
        tracks, segments, times, places = [0], [0], found.mark_times, found.mark_places
    else:
        others[_MARK] = found.mark_lines
    if not times:
        without = f" {counted(len(found.untimed), 'point or line has', 'points or lines have')} none."
        link = " It links to other files; read those." if found.links else ""
        raise ValueError(
            f"{name!r} has no positions with times (gx:Track, or placemarks with a TimeStamp or TimeSpan)."
            f"{without if found.untimed else ''}{link}"
        )
    longitudes, latitudes = ([_number(place, axis) for place in places] for axis in (0, 1))
    return parse_points(
        name,
        label="KML",
        noun=_NOUN,
        tracks=tracks,
        segments=segments,
        times=times,
        latitudes=latitudes,
        longitudes=longitudes,
        lost=others,
    )


def _number(place: str, axis: int) -> str | None:
    """Return a number of `lon lat alt` or `lon,lat,alt`; None if it is missing."""
    numbers = (place if " " in place.strip() else place.replace(",", " ")).split()
    return numbers[axis].rstrip(",") if len(numbers) > 1 else None


def _documents(name: str, content: bytes) -> list[bytes]:
    """Return the KML files in a KMZ, doc.kml first; the content itself if it is no KMZ."""
    if not content.startswith(ZIP):
        return [content]
    try:
        with open_zip(io.BytesIO(content)) as archive:
            members = [member for member in archive.infolist() if member.filename.lower().endswith(".kml")]
            members.sort(key=lambda member: (os.path.basename(member.filename).lower() != "doc.kml", member.filename))
            is_large = sum(member.file_size for member in members) > size_limit(len(content))
            documents = [] if is_large else [read_zipped(archive, member, name=name) for member in members]
    except zipfile.BadZipFile as error:
        raise ValueError(f"{name!r} is a KMZ that is cut or damaged. Download it again.") from error
    if is_large:
        raise ValueError(too_large(repr(name), len(content)))
    if not documents:
        raise ValueError(f"{name!r} is a zip archive without a KML file.")
    return documents


def _collect(parser: expat.XMLParserType) -> _Texts:
    """Collect tracks (`when` and `coord`), and placemarks with a time and a point."""
    points = _Texts([], [], [], [], [], [], [], [], [])
    coords: list[str] = []
    whens: list[str] = []
    mark: dict[str, str] = {}  # time and place of a placemark
    has_tracks = False

    def begin_mark(path: list[str]) -> None:
        nonlocal has_tracks
        mark.clear()
        has_tracks = False

    def begin_track(path: list[str]) -> None:
        nonlocal has_tracks
        if not has_tracks:
            points.tracks.append(len(points.times))
        has_tracks = True
        points.segments.append(len(points.times))
        whens.clear()
        coords.clear()

    def end_track(path: list[str]) -> None:
        if len(whens) != len(coords):
            times, places = counted(len(whens), "time"), counted(len(coords), "position")
            raise ValueError(f"the track that ends at line {parser.CurrentLineNumber:,} has {times} and {places}")
        points.times.extend(whens)
        points.places.extend(coords)

    def add_when(path: list[str], text: str) -> None:
        if path[-1] == "Track":
            whens.append(text)
        elif path[-2:] == ["Placemark", "TimeStamp"]:
            mark["time"] = text

    def set_begin(path: list[str], text: str) -> None:
        if path[-2:] == ["Placemark", "TimeSpan"]:
            mark["time"] = text

    def add_coord(path: list[str], text: str) -> None:
        if path[-1] == "Track":
            coords.append(text)

    def set_place(path: list[str], text: str) -> None:
        if path[-2:] == ["Placemark", "Point"]:
            mark["place"] = text
        elif path[-1] in ("LineString", "Point"):
            points.untimed.append(parser.CurrentLineNumber)

    def end_mark(path: list[str]) -> None:
        if "place" in mark and "time" in mark:
            points.mark_times.append(mark["time"])
            points.mark_places.append(mark["place"])
            points.mark_lines.append(parser.CurrentLineNumber)
        elif "place" in mark:
            points.untimed.append(parser.CurrentLineNumber)

    watch(
        parser,
        root="kml",
        begins={
            "Placemark": begin_mark,
            "Track": begin_track,
            "NetworkLink": lambda path: points.links.append(parser.CurrentLineNumber),
        },
        texts={"when": add_when, "begin": set_begin, "coord": add_coord, "coordinates": set_place},
        ends={"Track": end_track, "Placemark": end_mark},
    )
    return points


def is_kml(head: Head, name: str) -> bool:
    """Return whether a file has an element <kml>, in any encoding of XML, or is a zip archive named like a KMZ."""
    return has_root(head, _ROOT) or (head.stored.startswith(ZIP) and name.lower().endswith(".kmz"))


FORMAT = track_format(
    "kml",
    "KML",
    _parse,
    is_kml,
    endings=ENDINGS,
    noun=_NOUN,
    zipped=True,
    remarks="""\
Tracks with times (`gx:Track`), or points with times if there are no such tracks. Each track begins a segment;
`user="track"` makes each placemark with tracks a user. Other users are as in `read_gpx`.
""",
)
