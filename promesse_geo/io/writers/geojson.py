"""Write points as GeoJSON."""

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.io.writers.blocks import (
    Block,
    PointTable,
    as_iso,
    check_column_names,
    check_keys,
    in_milliseconds,
    join_texts,
)
from promesse_geo.io.writers.crs import in_wgs84

_JSON_ROWS = 1 << 16  # features per piece of GeoJSON
_BETWEEN = ",\n"  # features of GeoJSON
_GEOJSON_START = """\
{{
"type": "FeatureCollection",
"name": {layer},
"crs": {{ "type": "name", "properties": {{ "name": "urn:ogc:def:crs:OGC:1.3:CRS84" }} }},
"features": [
"""


def write_geojson(table: PointTable, path: Path) -> None:
    """Write GeoJSON in the form that GDAL gives it, but with all digits of the coordinates."""
    check_keys(table.users)
    blocks = iter(in_wgs84(table, label="GeoJSON"))
    first = next(blocks)
    # GDAL, by which most programs read it, does not distinguish capitals and has a column of its own
    check_column_names([*(name for name, _ in first.columns), table.geometry, "OGC_FID"], fold=str.lower)
    with path.open("wb") as file:
        file.write(_GEOJSON_START.format(layer=json.dumps(table.layer)).encode())
        separator = ""
        for features in chain.from_iterable(map(_as_features, chain([first], blocks))):
            file.write(separator.encode())
            file.write(memoryview(features)[len(_BETWEEN) :])
            separator = _BETWEEN
        file.write(b"\n]\n}\n")


def _as_features(block: Block) -> Iterator[pa.Buffer]:
    """Yield the text of features, each after `_BETWEEN`."""
    for start in range(0, len(block.x), _JSON_ROWS):
        rows = slice(start, start + _JSON_ROWS)
        parts: list[Any] = [_BETWEEN + '{ "type": "Feature", "properties": {']
        for number, (name, array) in enumerate(block.columns):
            parts += [f"{',' if number else ''} {json.dumps(name, ensure_ascii=False)}: ", _as_json(array[rows])]
        x, y = (pa.array(axis[rows]).cast(pa.string()) for axis in (block.x, block.y))
        parts += [' }, "geometry": { "type": "Point", "coordinates": [ ', x, ", ", y, " ] } }", ""]
        yield join_texts(parts)


def _as_json(array: pa.Array) -> pa.Array:
    """Return values as JSON text."""
    if pa.types.is_timestamp(array.type):
        return pc.binary_join_element_wise('"', as_iso(in_milliseconds(array)), '"', "")
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_finite(array), array, None)
    if not pa.types.is_string(array.type) and not pa.types.is_large_string(array.type):
        return pc.fill_null(array.cast(pa.string()), "null")
    encoded = array.dictionary_encode()
    texts = [json.dumps(text, ensure_ascii=False) for text in encoded.dictionary.to_pylist()]
    return pa.array(texts, array.type).take(encoded.indices)
