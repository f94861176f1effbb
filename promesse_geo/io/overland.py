"""Overland: batches of locations of the iOS app, as it sends them."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import geopandas as gpd

from promesse_geo.io.batch import Part
from promesse_geo.io.json_items import json_items
from promesse_geo.io.positions import Positions, as_number, as_user, from_iso, get, items, read_positions
from promesse_geo.io.sources import Format, Head, Source
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces

ENDINGS = (".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
_START = re.compile(rb'[\xef\xbb\xbf\s]*\{.*"locations"\s*:\s*\[\s*\{.*"type"\s*:\s*"Feature"', re.DOTALL)


def read_overland(
    source: Source,
    *,
    user: Name = ...,
    users: Iterable[Any] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    """Read the points in the `locations` of Overland's batches, one or several in a file.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        A file, a folder with such files (`.json`, `.jsonl`, `.ndjson`, also with `.gz`, at any depth), a pattern, or
        several.
    user : {"device", "file", "folder", "folder-2"}
        The user of a location: by default its `device_id`, or the file (its name without extension) without one.
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
    return read_positions(
        source, _parse, user=user, users=users, as_traces=as_traces, errors=errors, endings=ENDINGS, has_devices=True
    )


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


FORMAT = Format(
    "overland",
    "Overland",
    read_overland,
    is_overland,
    files=tuple(f"*{ending}" for ending in ENDINGS),
    by_name=False,
    options=lambda head: ("user",),
)
