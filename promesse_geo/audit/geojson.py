"""What GeoJSON holds beside the records."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyogrio

from promesse_geo.audit.findings import Extras
from promesse_geo.audit.spelling import NUL, is_plain_number, long_numbers, times_otherwise
from promesse_geo.audit.strict_json import read_strictly
from promesse_geo.io.table_columns import Wanted, find_user_and_time
from promesse_geo.messages import counted, listed
from promesse_geo.traces.columns import Names

_COLLECTION = {"type", "features", "name", "crs", "bbox", "xy_coordinate_resolution"}
_FEATURE = {"type", "properties", "geometry", "id"}
_GEOMETRY = {"type", "coordinates"}
_CRS = re.compile(r"urn:ogc:def:crs:(OGC:(1\.3)?:CRS84|EPSG::\d{4,6})")
_RESOLUTIONS = {float(f"1e{power}") for power in range(-18, 4)}  # GDAL writes powers of ten


def geojson_extras(path: Path, wanted: Wanted) -> Extras:
    """Look at properties, Z and M, members that GeoJSON does not know, identifiers of features, and names."""
    twice: set[str] = set()
    long: set[str] = set()

    def hear(number: str) -> None:
        if not is_plain_number(number):
            long.add(number)

    collection = read_strictly(path.read_bytes().decode("utf-8-sig"), twice=twice, number=hear)
    is_collection = collection.get("type") == "FeatureCollection"
    features = collection["features"] if is_collection else [collection]
    names = Names() if not features else find_user_and_time(list(pyogrio.read_info(path)["fields"]), wanted)
    geometries = [feature.get("geometry") or {} for feature in features]
    columns: list[Any] = sorted(
        _members(feature.get("properties") or {} for feature in features) - {names.user, names.time}
    )
    if any(len(geometry.get("coordinates", ())) > 2 for geometry in geometries):
        columns.append("Z or M")
    foreign = (_members(features) - _FEATURE) | (_members(geometries) - _GEOMETRY)
    if is_collection:
        foreign |= set(collection) - _COLLECTION
    things = [f"the {'member' if len(foreign) == 1 else 'members'} {listed(sorted(foreign))}"] if foreign else []
    odd = len(features) - sum(map(_is_of_a_point, features))
    if odd:
        things.append(f"{counted(odd, 'feature')} of another kind than one with a point and plain properties")
    if twice:
        things.append(f"{listed(sorted(twice))} twice in one object")
    if _are_named([feature.get("id") for feature in features]):
        things.append("identifiers of features that are not their numbers")
    values = [feature.get("properties") or {} for feature in features]
    if any("\0" in value for one in values for value in one.values() if isinstance(value, str)):
        things.append(NUL)
    times = {str(one[names.time]) for one in values if one.get(names.time) is not None}
    return Extras(columns, things, [*_notes(collection, path), *long_numbers(long), *times_otherwise(times)])


def _members(contents: Any) -> set[str]:
    return set().union(*contents)


def _is_of_a_point(feature: dict[str, Any]) -> bool:
    """Whether a feature is one, with nothing inside of it but a point or nothing, and texts, numbers or nothing."""
    geometry, values = feature.get("geometry"), (feature.get("properties") or {}).values()
    if feature.get("type") != "Feature" or any(isinstance(value, (dict, list)) for value in values):
        return False
    if geometry is None:
        return True
    place = geometry.get("coordinates")
    if geometry.get("type") != "Point" or not isinstance(place, list):
        return False
    return all(isinstance(number, (int, float)) for number in place)


def _are_named(names: list[Any]) -> bool:
    """Whether features have identifiers other than the number of the row, from 0 or from 1."""
    texts = [str(name) for name in names]
    plain = ([str(i + first) for i in range(len(names))] for first in (0, 1))
    return any(name is not None for name in names) and texts not in tuple(plain)


def _notes(collection: dict[str, Any], path: Path) -> Iterator[str]:
    if collection.get("name", "traces") not in ("traces", path.stem):
        yield "a name of its own"
    if "bbox" in collection:
        yield "a bounding box"
    if collection.get("xy_coordinate_resolution", 1) not in _RESOLUTIONS:
        yield "a resolution that is no power of ten"
    crs = collection.get("crs")
    if crs is not None and not _is_plain(crs):
        yield "a CRS with remarks"


def _is_plain(crs: Any) -> bool:
    """Whether a CRS is no more than the name that GDAL writes."""
    if not isinstance(crs, dict) or crs.keys() != {"type", "properties"} or not isinstance(crs["properties"], dict):
        return False
    name = crs["properties"].get("name")
    return crs["type"] == "name" and crs["properties"].keys() == {"name"} and bool(_CRS.fullmatch(str(name)))
