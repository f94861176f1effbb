"""CRS of written files: points in EPSG:4326, names of coordinates, and CRS without text of their own."""

import functools
import json
import threading
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from promesse_geo.io.writers.blocks import Block, PointTable

_WGS84 = CRS.from_epsg(4326)
_CRS_TEXTS = {"remarks", "scope", "area", "usages"}


def in_wgs84(table: PointTable, *, label: str) -> Iterable[Block]:
    """Return the blocks in EPSG:4326, the CRS of the format with this name."""
    return table.blocks if table.crs == _WGS84 else map(partial(_to_wgs84, crs=table.crs, label=label), table.blocks)


def _to_wgs84(block: Block, *, crs: CRS, label: str) -> Block:
    try:
        x, y = Transformer.from_crs(crs, _WGS84, always_xy=True).transform(block.x, block.y)
    except ProjError:
        raise ValueError(
            f"{label} is in EPSG:4326, and the CRS of the data cannot be transformed to it: a local grid or another "
            "body has no place on the globe. Use another extension."
        ) from None
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(f"Some points have no place in EPSG:4326, the CRS of {label}. Use another extension.")
    return block._replace(x=x, y=y)


def coordinate_names(crs: CRS) -> tuple[str, str]:
    """Return the names of coordinates in CSV: lon and lat in WGS 84, else x and y."""
    return ("lon", "lat") if crs.to_2d().equals(_WGS84, ignore_axis_order=True) else ("x", "y")


def bare_crs(crs: CRS) -> CRS:
    """Return a CRS without text of its own: the registry's if it has a code, else without remarks and usages."""
    authority = crs.to_authority()
    known = None if authority is None else CRS.from_authority(*authority)
    if known is not None and known == crs:
        return known
    content = _without_texts(crs.to_json_dict())
    nameless = CRS.from_json_dict(content | {"name": "unknown"})
    return nameless if nameless == crs else CRS.from_json_dict(content)


def written_crs(crs: CRS) -> dict[str, Any]:
    """Return `bare_crs` as JSON for files: the same text in all threads and processes."""
    bare = bare_crs(crs)
    authority = crs.to_authority()
    if authority is None or bare != CRS.from_authority(*authority):
        return bare.to_json_dict()
    content: dict[str, Any] = json.loads(_registered(*authority))
    return content


@functools.cache
def _registered(name: str, code: str) -> str:
    """Return the JSON of a CRS of the registry.

    PROJ keeps objects for each thread, and describes some otherwise after it searched for the code of a CRS. A new
    thread has searched for nothing.
    """
    found = list[str]()
    thread = threading.Thread(target=lambda: found.append(CRS.from_authority(name, code).to_json()))
    thread.start()
    thread.join()
    return found[0]


def has_custom_text(crs: CRS) -> bool:
    """Return whether a CRS has a name, remarks or usages that files would carry and that no registry knows."""
    content, bare = crs.to_json_dict(), bare_crs(crs).to_json_dict()
    has_name = content["name"] not in ("unknown", bare["name"])
    return content != bare and (has_name or bool(_texts(content) - _texts(bare)))


def _without_texts(content: Any) -> Any:
    if isinstance(content, list):
        return [_without_texts(item) for item in content]
    if isinstance(content, dict):
        return {key: _without_texts(item) for key, item in content.items() if key not in _CRS_TEXTS}
    return content


def _texts(content: Any) -> set[str]:
    """Remarks and usages at any depth, as text."""
    if isinstance(content, list):
        return set().union(*map(_texts, content))
    if not isinstance(content, dict):
        return set()
    texts = {str(item) for key, item in content.items() if key in _CRS_TEXTS}
    return texts.union(*map(_texts, content.values()))
