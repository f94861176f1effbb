"""Read lines with a time for each vertex: GeoJSON, Moving Features JSON, and lines whose M is a time."""

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import shapely

from promesse_geo.io.parquet_table import resolve_crs
from promesse_geo.io.table_columns import Columns, ReadOptions, as_users, find_names
from promesse_geo.io.table_segments import Segments
from promesse_geo.io.table_times import parse_times
from promesse_geo.messages import DroppedWarning, counted, warn
from promesse_geo.traces.columns import Names
from promesse_geo.traces.known_columns import TRIPS, fold
from promesse_geo.traces.points import no_points

_TIME = "time"
_GEOMETRY = "geometry"
_TIMES = ("coordTimes", "times", "datetimes", "timestamps")
_CRS84 = "OGC:CRS84"
_FARTHEST = 1e300  # coordinates beyond are no numbers of 64 bits
_KINDS = ("LineString", "MultiLineString")
_POINTS = ("MovingPoint", "MovingGeomPoint", "MovingGeogPoint")  # the last two of MobilityDB
_MOVING = (*_POINTS, "MovingGeometryCollection", "MovingGeometry")
_NO_LINE = "features (without a line)"
NAMES = tuple(f'{name}"'.encode() for name in ("LineString", *_POINTS))
"""Ends of the names of lines in JSON."""


class _Line(NamedTuple):
    """Positions of a line, a time for each, and the feature's number and properties."""

    positions: Sequence[Sequence[float]]
    times: Sequence[Any]
    feature: int


def read_json_lines(path: Path, options: ReadOptions) -> Columns | None:
    """Read the lines of GeoJSON or Moving Features JSON, each as a segment; None if there is no line.

    The times are `coordTimes` or `times` of the properties (or of `coordinateProperties`), `datetimes` of a
    `temporalGeometry`, or the fourth number of each position.

    Raises
    ------
    ValueError
        If a line has no times, or another number of times than of positions.
    """
    collection, features = _features(path)
    lines = [line for number, feature in enumerate(features) for line in _lines_of(feature, number)]
    if not lines:
        return None
    others = len(features) - len({line.feature for line in lines})
    if others:
        words = (
            f"{counted(others, 'feature')} of {str(path)!r} without a line {'was' if others == 1 else 'were'} not read."
        )
        warn(DroppedWarning(words, {_NO_LINE: others}))
    for line in lines:
        if len(line.positions) != len(line.times):
            count = counted(len(line.times), "time")
            raise ValueError(f"feature {line.feature:,} has {count} for {counted(len(line.positions), 'position')}.")
    properties = [{**_known_id(feature), **_as_object(feature.get("properties"))} for feature in features]
    columns = list(dict.fromkeys(name for line in lines for name in properties[line.feature]))
    name = find_line_user(columns, options)
    users = None if name is None else [properties[line.feature].get(name) for line in lines]
    positions = [position for line in lines for position in line.positions]
    return _as_columns(
        np.array([position[0] for position in positions], float),
        np.array([position[1] for position in positions], float),
        times=_as_array([time for line in lines for time in line.times]),
        users=users,
        counts=[len(line.positions) for line in lines],
        user=name,
        crs=_crs_of(collection, options),
        has_z=any(len(position) > 2 for position in positions),
    )


def read_measured_lines(table: pa.Table, geometry: str, *, name: str | None, crs: Any) -> Columns:
    """Read lines in well-known binary whose M is the time of each vertex since 1970.

    Parameters
    ----------
    table : pyarrow.Table
        The lines and, if there is one, the column of users.
    geometry, name : str
        Columns of the geometry and of the user, which may be None.
    crs : anything pyproj takes
        The CRS of the lines.

    Raises
    ------
    ValueError
        If a line has no M.
    """
    shapes = shapely.from_wkb(table.column(geometry).to_numpy(), on_invalid="ignore")
    kinds = [shapely.GeometryType.LINESTRING, shapely.GeometryType.MULTILINESTRING]
    is_line = np.isin(shapely.get_type_id(shapes), kinds)
    if not is_line.any() or not shapely.has_m(shapes[is_line]).all():
        raise ValueError(no_points(shapes))
    if not is_line.all():
        others = int((~is_line).sum())
        verb = "was" if others == 1 else "were"
        warn(DroppedWarning(f"{counted(others, 'feature')} without a line {verb} not read.", {_NO_LINE: others}))
    parts, owners = shapely.get_parts(shapes[is_line], return_index=True)
    x, y, m = shapely.get_coordinates(parts, include_m=True).T
    users = None if name is None else [table.column(name)[int(row)].as_py() for row in np.flatnonzero(is_line)[owners]]
    counts = shapely.get_num_coordinates(parts).tolist()
    has_z = bool(shapely.has_z(parts).any())
    times = pa.array(m, from_pandas=True)
    return _as_columns(x, y, times=times, users=users, counts=counts, user=name, crs=crs, has_z=has_z)


def _as_columns(
    x: np.ndarray,
    y: np.ndarray,
    *,
    times: pa.Array,
    users: Sequence[Any] | None,
    counts: Sequence[int],
    user: str | None,
    crs: Any,
    has_z: bool,
) -> Columns:
    numbers = np.repeat(np.arange(len(counts)), counts)
    parsed, notes = parse_times(pa.chunked_array([times]), _TIME)
    keys = None
    if users is not None:
        by_line = as_users(pa.chunked_array([_as_array(users)]), user)
        keys = by_line.take(numbers)
    return Columns(
        x,
        y,
        times=parsed,
        users=keys,
        crs=crs,
        names=Names(user=user, time=_TIME),
        notes=notes,
        has_z=has_z,
        segments=Segments(numbers.astype(np.int64)),
    )


def _as_array(values: Sequence[Any]) -> pa.Array:
    """Return values as an array: of text if they are of several kinds, or integers of more than 64 bits."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def find_line_user(columns: Sequence[str], options: ReadOptions) -> str | None:
    """Return the column of the user of lines, else that of their trips; None if there is none to be read."""
    options = options.fitting(columns)
    try:
        others = [column for column in columns if column != _TIME]
        found = find_names([*others, _TIME], options._replace(time=_TIME, segment=None), geometry=_GEOMETRY)
    except ValueError:
        trips = [name for known in (*TRIPS, "trip", "id") for name in columns if fold(name) == fold(known)]
        if options.user is not ... or not trips:
            raise
        return trips[0]
    return None if found.user is None else str(found.user)


def _features(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the content of a file and its features, which may be one in each line."""
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        try:
            content = {"features": [json.loads(line) for line in text.replace("\x1e", "").splitlines() if line.strip()]}
        except (ValueError, RecursionError):
            return {}, []
    if not isinstance(content, dict):
        return {}, []
    features = content.get("features", [content])
    return content, [each for each in features if isinstance(each, dict)] if isinstance(features, list) else []


def _known_id(feature: dict[str, Any]) -> dict[str, Any]:
    return {"id": feature["id"]} if isinstance(feature.get("id"), (str, int)) else {}


def _as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _lines_of(feature: dict[str, Any], number: int) -> Iterator[_Line]:
    """Yield the lines of a feature."""
    moving = feature.get("temporalGeometry", feature.get("geometry"))
    moving = _as_object(feature if feature.get("type") in _MOVING else moving)
    if moving.get("type") in _MOVING:
        parts = moving.get("prisms") or moving.get("sequences") or [moving]
        for part in map(_as_object, parts if isinstance(parts, list) else []):
            positions, times = part.get("coordinates"), part.get("datetimes") or part.get("dateTimes")
            if isinstance(positions, list) and isinstance(times, str):  # an instant
                positions, times = [positions], [times]
            if isinstance(positions, list) and isinstance(times, list):
                yield _Line(_checked(positions, number), times, number)
        return
    geometry = _as_object(feature.get("geometry") if feature.get("type") == "Feature" else feature)
    if geometry.get("type") not in _KINDS or not isinstance(geometry.get("coordinates"), list):
        return
    is_single = geometry["type"] == "LineString"
    coordinates = [geometry["coordinates"]] if is_single else geometry["coordinates"]
    lines = [_checked(line, number) for line in coordinates]
    times = _times_of(_as_object(feature.get("properties")))
    if times is not None and (is_single or len(lines) == 1) and not (times and isinstance(times[0], list)):
        times = [times]
    elif times is not None and times and not isinstance(times[0], list):  # of all lines, one after the other
        ends = np.cumsum([0, *map(len, lines)])
        times = [times[start:end] for start, end in itertools.pairwise(ends)]
    for index, positions in enumerate(lines):
        if times is not None:
            yield _Line(positions, times[index] if index < len(times) else [], number)
        elif all(len(position) > 3 for position in positions):
            yield _Line(positions, [position[3] for position in positions], number)
        else:
            raise ValueError(f"{no_points(geometry['type'])} Feature {number:,} has no times for its vertices.")


def _times_of(properties: dict[str, Any]) -> list[Any] | None:
    """Return the times among properties; None if there are none."""
    for place in (properties, _as_object(properties.get("coordinateProperties"))):
        for name in _TIMES:
            if isinstance(place.get(name), list):
                return place[name]
    return None


def _checked(positions: Any, number: int) -> list[Any]:
    """Return positions; raise ValueError if one is not a list of two numbers or more, which are finite."""
    is_valid = isinstance(positions, list) and all(
        isinstance(each, list)
        and len(each) > 1
        and all(isinstance(value, (int, float)) and abs(value) < _FARTHEST for value in each[:2])
        for each in positions
    )
    if not is_valid:
        raise ValueError(f"feature {number:,} has a position that is not a list of numbers.")
    return list(positions)


def _crs_of(collection: dict[str, Any], options: ReadOptions) -> Any:
    """Return the CRS of old GeoJSON and of Moving Features JSON, by default that of GeoJSON."""
    return resolve_crs(_as_object(_as_object(collection.get("crs")).get("properties")).get("name", _CRS84), options)
