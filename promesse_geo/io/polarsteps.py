"""Polarsteps: the locations of a trip, in the export of one's data."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import geopandas as gpd

from promesse_geo.io.batch import Part
from promesse_geo.io.json_items import json_items
from promesse_geo.io.positions import Positions, as_number, from_seconds, get, read_positions
from promesse_geo.io.sources import Format, Head, Source
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces

ENDINGS = (".json", ".json.gz")
_START = re.compile(rb'[\xef\xbb\xbf\s]*\{\s*"locations"\s*:\s*\[\s*(\{[^{}]*\})')
_FIELDS = [re.compile(rb'"%s"\s*:\s*-?[0-9]' % field) for field in (b"lat", b"lon", b"time")]


def read_polarsteps(
    source: Source,
    *,
    user: Name = ...,
    users: Iterable[Any] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    """Read locations.json of Polarsteps.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        A file (`.json`, `.json.gz`), a folder with such files at any depth, a pattern, or several.
    user : {"file", "folder", "folder-2"}
        The user of a file: its name without extension, its folder (that of the trip), or the folder above that.
    users, as_traces, errors
        As in `read_gpx`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user, time (UTC) and geometry (EPSG:4326).

    Raises
    ------
    FileNotFoundError, ValueError
        If a file does not exist, is damaged or has no location.
    """
    return read_positions(source, _parse, user=user, users=users, as_traces=as_traces, errors=errors, endings=ENDINGS)


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


FORMAT = Format(
    "polarsteps",
    "Polarsteps",
    read_polarsteps,
    is_polarsteps,
    files=tuple(f"*{ending}" for ending in ENDINGS),
    by_name=False,
    options=lambda head: ("user",),
)
