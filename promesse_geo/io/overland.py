"""Overland: batches of locations of the iOS app, as it sends them."""

import re
from collections.abc import Iterator

from promesse_geo.io.batch import Part
from promesse_geo.io.contents import Head
from promesse_geo.io.json_items import json_items
from promesse_geo.io.positions import Positions, as_number, as_user, from_iso, get, items, position_format

ENDINGS = (".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
_START = re.compile(rb'[\xef\xbb\xbf\s]*\{.*"locations"\s*:\s*\[\s*\{.*"type"\s*:\s*"Feature"', re.DOTALL)


def _parse(name: str, content: bytes, user: str | None, *, by_device: bool) -> Iterator[Part]:
    """Yield the locations of a file."""
    positions = Positions(name, noun="location")
    features = (item for key, item in json_items(name, content, arrays=("locations",)) if key == "locations")
    for place, feature in enumerate(features, 1):
        point = items(get(feature, "geometry.coordinates"))
        is_point = get(feature, "geometry.type") == "Point"
        longitude, latitude = map(as_number, point[:2] if is_point and len(point) > 1 else (None, None))
        device = as_user(get(feature, "properties.device_id")) if by_device else None
        time = from_iso(get(feature, "properties.timestamp"))
        positions.add(time, latitude, longitude, place=place, user=device)
    yield from positions.parts(user)


def is_overland(head: Head, name: str) -> bool:
    """Return whether a file begins with locations that are GeoJSON features."""
    return _START.match(head.content) is not None and b'"FeatureCollection"' not in head.content


FORMAT = position_format(
    "overland",
    "Overland",
    _parse,
    is_overland,
    endings=ENDINGS,
    has_devices=True,
    remarks="""\
The points in the `locations` of batches, one or several in a file. The user of a location is its `device_id`
(`user="device"`), or the file, its name without extension, without one.
""",
)
