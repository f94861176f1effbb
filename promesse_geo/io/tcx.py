"""TCX: activities of sports watches."""

from typing import Any, NamedTuple
from xml.parsers import expat

from promesse_geo.io.contents import Head
from promesse_geo.io.tracks import Points, parse_points, track_format
from promesse_geo.io.xml import has_root, parse_xml, root_pattern, watch
from promesse_geo.messages import counted

ENDINGS = (".tcx", ".tcx.gz")
_NOUN = "track point"
_ROOT_NAME = "TrainingCenterDatabase"
_ROOT = root_pattern(_ROOT_NAME)
_COURSE = "of a course, which is a plan and no recording"


class _Texts(NamedTuple):
    """Track points as text; None for what a point lacks."""

    tracks: list[int]
    """Number of points before each activity."""
    segments: list[int]
    """Number of points before each track of a lap."""
    times: list[str | None]
    latitudes: list[str | None]
    longitudes: list[str | None]
    planned: list[int]
    """Lines of points of courses."""


def _parse(name: str, content: bytes) -> Points:
    """Return the points of a file's activities."""
    found = parse_xml(name, content, _collect, label="TCX", root=_ROOT_NAME)
    if not found.times:
        plans = f" {counted(len(found.planned), 'point is', 'points are')} {_COURSE}." if found.planned else ""
        raise ValueError(f"{name!r} has no track points in the laps of an activity.{plans}")
    return parse_points(
        name,
        label="TCX",
        noun=_NOUN,
        tracks=found.tracks,
        segments=found.segments,
        times=found.times,
        latitudes=found.latitudes,
        longitudes=found.longitudes,
        lost={_COURSE: found.planned},
    )


def _collect(parser: expat.XMLParserType) -> _Texts:
    """Collect the points at Activity/Lap/Track/Trackpoint, also of the sports of a multisport session."""
    points = _Texts([], [], [], [], [], [])

    def begin_activity(path: list[str]) -> None:
        points.tracks.append(len(points.times))

    def begin_track(path: list[str]) -> None:
        points.segments.append(len(points.times))

    def begin_point(path: list[str]) -> None:
        if path[-3:] == ["Activity", "Lap", "Track"]:
            for column in (points.times, points.latitudes, points.longitudes):
                column.append(None)
        elif path[-2:] == ["Course", "Track"]:
            points.planned.append(parser.CurrentLineNumber)

    def set_last(column: list[str | None], around: list[str]) -> Any:
        within = ["Activity", "Lap", "Track", *around]

        def set_text(path: list[str], text: str) -> None:
            if path[-len(within) :] == within:
                column[-1] = text

        return set_text

    watch(
        parser,
        root=_ROOT_NAME,
        begins={"Activity": begin_activity, "Track": begin_track, "Trackpoint": begin_point},
        texts={
            "Time": set_last(points.times, ["Trackpoint"]),
            "LatitudeDegrees": set_last(points.latitudes, ["Trackpoint", "Position"]),
            "LongitudeDegrees": set_last(points.longitudes, ["Trackpoint", "Position"]),
        },
        ends={},
    )
    return points


def is_tcx(head: Head, name: str) -> bool:
    """Return whether a file has an element <TrainingCenterDatabase>, in any encoding of XML."""
    return has_root(head, _ROOT)


FORMAT = track_format(
    "tcx",
    "TCX",
    _parse,
    is_tcx,
    endings=ENDINGS,
    noun=_NOUN,
    remarks="Activities; each track of a lap begins a segment. Users are as in `read_gpx`.",
)
