"""Polarsteps: the locations of a trip, in the export of one's data."""

import re
from collections.abc import Iterator

from promesse_geo.io.batch import Part
from promesse_geo.io.contents import Head
from promesse_geo.io.json_items import json_items
from promesse_geo.io.positions import Positions, as_number, from_seconds, get, position_format

ENDINGS = (".json", ".json.gz")
_START = re.compile(rb'[\xef\xbb\xbf\s]*\{\s*"locations"\s*:\s*\[\s*(\{[^{}]*\})')
_FIELDS = [re.compile(rb'"%s"\s*:\s*-?[0-9]' % field) for field in (b"lat", b"lon", b"time")]


def _parse(name: str, content: bytes, user: str) -> Iterator[Part]:
    """Yield the locations of a file."""
    positions = Positions(name, noun="location")
    locations = (item for key, item in json_items(name, content, arrays=("locations",)) if key == "locations")
    for place, item in enumerate(locations, 1):
        latitude, longitude = as_number(get(item, "lat")), as_number(get(item, "lon"))
        positions.add(from_seconds(get(item, "time")), latitude, longitude, place=place)
    yield from positions.parts(user)


def is_polarsteps(head: Head, name: str) -> bool:
    """Return whether a file begins with locations that have a latitude, a longitude and a time in numbers."""
    match = _START.match(head.content)
    return match is not None and all(field.search(match[1]) for field in _FIELDS)


FORMAT = position_format(
    "polarsteps",
    "Polarsteps",
    _parse,
    is_polarsteps,
    endings=ENDINGS,
    remarks='The locations of `locations.json`. Its folder (`user="folder"`) is that of the trip.',
)
