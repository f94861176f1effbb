"""Google location history: Records.json, Semantic Location History, and Timeline of Android and iOS.

Examples
--------
>>> import promesse_geo as pg, pathlib, tempfile
>>> file = pathlib.Path(tempfile.mkdtemp()) / "Records.json"
>>> _ = file.write_text(
...     '{"locations": [{"latitudeE7": 457000000, "longitudeE7": 48000000, "timestamp": "2024-03-04T08:00:00Z"}]}'
... )
>>> list(pg.read_file(file).user)
['Records']
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from promesse_geo.io.batch import Part
from promesse_geo.io.contents import Head
from promesse_geo.io.json_items import json_items
from promesse_geo.io.positions import Positions, as_number, from_iso, from_seconds, get, items, position_format
from promesse_geo.messages import DroppedWarning, counted, warn

ENDINGS = (".json", ".json.gz")
_ARRAYS = ("locations", "timelineObjects", "semanticSegments", "rawSignals")
_POINT = re.compile(r"\s*(?:geo:)?\s*([-+]?\d+(?:\.\d*)?)\s*°?\s*,\s*([-+]?\d+(?:\.\d*)?)\s*°?\s*(?:[,;].*)?", re.ASCII)
_RAW, _PATH, _VISIT, _ACTIVITY = range(4)  # the most exact first
_NOWHERE = (math.nan, math.nan)
_MONTH = re.compile(r"\d{4}_[A-Z]+\.json(\.gz)?", re.IGNORECASE)
_RECORDS = re.compile(r"(records|location history)\.json(\.gz)?", re.IGNORECASE)
_MINUTE = 60 * 10**9  # nanoseconds
_WRAP = 2**32  # some old positions lie that many units beyond the globe
_OBJECT = re.compile(rb'[\s\xef\xbb\xbf]*\{\s*"(semanticSegments|rawSignals|userLocationProfile|timelineObjects)"\s*:')
_LOCATIONS = re.compile(rb'[\s\xef\xbb\xbf]*\{.*"locations"\s*:\s*\[\s*\{.*"(latitudeE7|timestampMs)"\s*:', re.DOTALL)
_ARRAY = re.compile(
    rb'[\s\xef\xbb\xbf]*\[\s*\{(?=.*"geo:-?\d)(?=.*"(startTime|endTime)"\s*:)'
    rb'(?=.*"(visit|activity|timelinePath|timelineMemory)"\s*:)',
    re.DOTALL,
)
_INSIDE = "visits inside of others"
_WAYPOINT = "waypoints without a time"
_DERIVED = "derived from raw positions, in the period of these"
_SAME_TIME = "at the time of a more exact position"


def _histories(paths: Sequence[Path]) -> Mapping[Path, Path]:
    """Return the files to read and the history of each: the folder of the months' folders, else the file."""
    raw = {path.parent: path for path in paths if _RECORDS.fullmatch(path.name)}
    derived = [path for path in paths if path not in raw.values() and not raw.keys().isdisjoint(path.parents)]
    if derived:
        files = counted(len(derived), "file beside Records.json was", "files beside Records.json were")
        words = f"{files} not read, because such files hold none or derived positions (first: {str(derived[0])!r})."
        warn(DroppedWarning(words, {"files (without positions, or with derived ones)": len(derived)}))
    kept = [path for path in paths if path not in derived]
    return {path: path.parent.parent if _MONTH.fullmatch(path.name) else path for path in kept}


def _parse(name: str, content: bytes, user: str) -> Iterator[Part]:
    """Yield the positions of a file."""
    positions = Positions(name)
    place = 0
    seen = False
    for key, item in json_items(name, content, arrays=_ARRAYS):
        if key == "{}":
            seen = seen or not item.keys().isdisjoint(_ARRAYS)
            continue
        seen = True
        place += 1
        _ADD[key](positions, item, place)
    if not seen and not place:
        raise ValueError(
            f"{name!r} is no location history of Google: it is no array and has no {', '.join(_ARRAYS[:-1])} or "
            f"{_ARRAYS[-1]}."
        )
    yield from positions.parts(user, others=_repeated)


def _repeated(positions: Positions, valid: np.ndarray) -> dict[str, np.ndarray]:
    """Return masks of what was derived from other positions of the file."""
    ranks, times = np.array(positions.ranks), np.array(positions.times)
    raw = valid & (ranks == _RAW)
    derived = np.zeros(len(ranks), bool)
    if raw.any():
        derived = (ranks > _RAW) & (times >= times[raw].min()) & (times <= times[raw].max())
    return {_DERIVED: derived, _SAME_TIME: positions.less_exact(valid)}


def _add_location(positions: Positions, item: Any, place: int) -> None:
    """Add an entry of Records.json."""
    latitude, longitude = _from_e7(item)
    positions.add(_time_of(item, "timestamp"), latitude, longitude, place=place)


def _add_signal(positions: Positions, item: Any, place: int) -> None:
    """Add a position of the raw signals of Android, which also hold Wi-Fi scans."""
    if (position := get(item, "position")) is not None:
        latitude, longitude = _from_text(position)
        positions.add(from_iso(get(position, "timestamp")), latitude, longitude, place=place, rank=_RAW)


def _add_object(positions: Positions, item: Any, place: int) -> None:
    """Add a visit or an activity of Semantic Location History."""
    visit, activity = get(item, "placeVisit"), get(item, "activitySegment")
    for kind in (visit, activity):
        for point in items(get(kind, "simplifiedRawPath.points")):
            positions.add(_time_of(point, "timestamp"), *_from_e7(point), place=place, rank=_PATH)
    if visit is not None:
        location = _from_e7(get(visit, "location"))
        _add_ends(positions, _duration(visit), (location, location), place, rank=_VISIT)
        if inside := items(get(visit, "childVisits")):
            positions.leave_out(_INSIDE, place=place, count=len(inside))
    if activity is not None:
        ends = _from_e7(get(activity, "startLocation")), _from_e7(get(activity, "endLocation"))
        _add_ends(positions, _duration(activity), ends, place, rank=_ACTIVITY)
        if waypoints := items(get(activity, "waypointPath.waypoints")):
            positions.leave_out(_WAYPOINT, place=place, count=len(waypoints))


def _add_segment(positions: Positions, item: Any, place: int) -> None:
    """Add a segment of the Timeline of Android or iOS."""
    times = from_iso(get(item, "startTime")), from_iso(get(item, "endTime"))
    for point in items(get(item, "timelinePath")):
        positions.add(_path_time(point, times[0]), *_from_text(get(point, "point")), place=place, rank=_PATH)
    if (visit := get(item, "visit")) is not None:
        if as_number(get(visit, "hierarchyLevel")) > 0:
            positions.leave_out(_INSIDE, place=place)
        else:
            location = _from_text(get(visit, "topCandidate.placeLocation"))
            _add_ends(positions, times, (location, location), place, rank=_VISIT)
    if (activity := get(item, "activity")) is not None:
        ends = _from_text(get(activity, "start")), _from_text(get(activity, "end"))
        _add_ends(positions, times, ends, place, rank=_ACTIVITY)


_ADD = {
    "locations": _add_location,
    "timelineObjects": _add_object,
    "semanticSegments": _add_segment,
    "rawSignals": _add_signal,
    "": _add_segment,
}


def _add_ends(
    positions: Positions,
    times: tuple[int | None, int | None],
    ends: tuple[tuple[float, float], tuple[float, float]],
    place: int,
    *,
    rank: int,
) -> None:
    for time, (latitude, longitude) in zip(times, ends, strict=True):
        positions.add(time, latitude, longitude, place=place, rank=rank)


def _path_time(point: Any, start: int | None) -> int | None:
    """Return the time of a point of a path: its own (Android), or minutes after the start (iOS)."""
    offset = get(point, "durationMinutesOffsetFromStartTime")
    if offset is None:
        return from_iso(get(point, "time"))
    minutes = as_number(offset)
    return start + round(minutes * _MINUTE) if start is not None and abs(minutes) < 1e8 else None


def _duration(value: Any) -> tuple[int | None, int | None]:
    duration = get(value, "duration")
    return _time_of(duration, "startTimestamp"), _time_of(duration, "endTimestamp")


def _time_of(value: Any, key: str) -> int | None:
    """Return a time: ISO 8601 or, in older files, milliseconds since 1970."""
    if (text := get(value, key)) is not None:
        return from_iso(text)
    return from_seconds(as_number(get(value, f"{key}Ms")) / 1000)


def _from_e7(value: Any) -> tuple[float, float]:
    """Return latitude and longitude of units of 1e-7 degrees."""
    longitude, latitude = get(value, "longitudeE7"), get(value, "latitudeE7")
    if latitude is None and longitude is None:  # points of paths
        longitude, latitude = get(value, "lngE7"), get(value, "latE7")
    return _unwrap(as_number(latitude), 90e7) / 1e7, _unwrap(as_number(longitude), 180e7) / 1e7


def _unwrap(units: float, largest: float) -> float:
    return units - _WRAP if largest < units and units - _WRAP >= -largest else units


def _from_text(value: Any) -> tuple[float, float]:
    """Return latitude and longitude of a text such as "45.7°, 4.8°" or "geo:45.7,4.8", also in an object."""
    if isinstance(value, dict):
        value = get(value, "latLng") or get(value, "LatLng")
    if not isinstance(value, str) or (match := _POINT.fullmatch(value)) is None:
        return _NOWHERE
    return float(match[1]), float(match[2])


def is_google(head: Head, name: str) -> bool:
    """Return whether a file begins as a location history of Google does."""
    start = head.content
    if b'"FeatureCollection"' in start:
        return False
    return any(pattern.match(start) for pattern in (_OBJECT, _LOCATIONS, _ARRAY))


FORMAT = position_format(
    "google",
    "Google location history",
    _parse,
    is_google,
    endings=ENDINGS,
    history_of=_histories,
    remarks="""\
The layouts since 2012: Records.json (once Location History.json) with each position; Semantic Location History (one
file a month, all of one history) with points of paths that have a time, visits and activities; Timeline, exported from
Android or iOS, with raw positions, points of paths, visits and activities.

A visit counts at its start and its end, an activity too. What Google derived from the same positions is not read twice:
between the first and the last raw position of a Timeline, only raw positions count. At the same time, points of paths
are preferred to visits and these to activities. Visits inside of others (shops of a mall) and waypoints, which have no
time, are left out. One warning counts all that is left out, by reason. Other JSON files in and below the folder of a
Records.json are not read, with a warning. The files of a Semantic Location History have one user, as if they were one
file beside the folders of years' folder.
""",
)
