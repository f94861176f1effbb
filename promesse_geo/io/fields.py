"""Fields of the files that we write: which names and keys a format keeps, and how it has times and places."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from promesse_geo.io.output import write_layer
from promesse_geo.messages import counted, listed

WGS84 = CRS.from_epsg(4326)


def check_names(names: list[str], *, fold: Callable[[str], str] = str) -> None:
    """Refuse names that a file would not keep, or not apart."""
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in "".join(names)):
        raise ValueError("The name of a column holds a NUL or a lone surrogate, which files cannot keep. Rename it.")
    if len({fold(name) for name in names}) < len(names):
        raise ValueError(
            f"The file would have the columns {listed(names)}, two of one name. Rename one of them in the frame"
            f"{'; capitals do not tell them apart in this format' if fold is str.lower else ''}."
        )


def check_keys(users: Iterable[Any]) -> None:
    """Refuse users whose keys would end early in all formats but GeoParquet."""
    bad = sum("\0" in str(user) for user in users)
    if bad:
        raise ValueError(
            f"{counted(bad, 'user key holds', 'user keys hold')} a NUL character, which CSV, GeoPackage and "
            "GeoJSON cannot keep. Rename these users, or write GeoParquet."
        )


def plain_keys(users: list[Any]) -> list[int] | list[str]:
    """Integers of 64 bits as such, else text, where both kinds mix too."""
    whole = all(not isinstance(user, str) and abs(user) < 2**63 for user in users)
    return users if whole else [str(user) for user in users]


def iso(times: pa.Array) -> pa.Array:
    """ISO 8601 in the unit of the times; UTC has its Z, wall clocks none."""
    zoned = times.type.tz is not None
    texts = times.cast(pa.timestamp(times.type.unit)).cast(pa.string())
    width = len("2008-05-17T10:00:04") + {"s": 0, "ms": 4, "us": 7, "ns": 10}[times.type.unit]
    written = np.empty((len(texts), width + zoned), np.uint8)
    written[:, :width] = np.frombuffer(texts.buffers()[2] or b"", np.uint8, len(texts) * width).reshape(-1, width)
    written[:, 10] = ord("T")
    if zoned:
        written[:, width] = ord("Z")
    offsets = np.arange(len(texts) + 1, dtype=np.int32) * (width + zoned)
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(written))


def coordinate_names(crs: CRS) -> tuple[str, str]:
    """Return what text formats call coordinates: lon and lat in WGS 84, as everybody takes them, else x and y."""
    return ("lon", "lat") if crs.to_2d().equals(WGS84, ignore_axis_order=True) else ("x", "y")


def on_the_globe(x: np.ndarray, y: np.ndarray, crs: CRS) -> tuple[np.ndarray, np.ndarray]:
    """Return longitudes and latitudes in EPSG:4326, which GeoJSON has, or say that the CRS has no way there."""
    try:
        longitudes, latitudes = Transformer.from_crs(crs, WGS84, always_xy=True).transform(x, y)
    except ProjError:
        raise ValueError(
            "GeoJSON is in EPSG:4326, and the CRS of the data has no way there: a local grid or another body has no "
            "place on the globe. Take another ending."
        ) from None
    return longitudes, latitudes


def write_points(
    table: pa.Table, path: Path, *, layer: str, geometry: str, crs: CRS, about: dict[str, str] | None = None
) -> None:
    """Write a table with points in well-known binary to GeoPackage, or to GeoJSON if the path does not end in .gpkg.

    Times are cut to milliseconds, which is what GDAL keeps, and zones become UTC.

    Raises
    ------
    ValueError
        If the format cannot keep the names of the columns apart.
    OSError
        If GDAL cannot write the file.
    """
    packed = path.suffix.lower() == ".gpkg"
    own = [] if packed else ["OGC_FID"]  # GDAL's numbers, which in GeoPackage get a free name
    check_names([*table.column_names, *own], fold=str.lower)
    write_layer(
        pa.table({name: _in_milliseconds(table[name]) for name in table.column_names}),
        path,
        driver="GPKG" if packed else "GeoJSON",
        layer=layer,
        geometry=geometry,
        crs=crs,
        about=about or {},
        # without the second a user called "[1]" becomes a list
        options={"FID": _free_name(table.column_names)} if packed else {"AUTODETECT_JSON_STRINGS": "NO"},
    )


def _in_milliseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as GDAL keeps them, in UTC, for offsets change; all else as it is."""
    kind = column.type
    if not pa.types.is_timestamp(kind):
        return column
    unit = "s" if kind.unit == "s" else "ms"  # finer, GDAL rounds 59.9996 s up to 60, which nobody reads
    return column.cast(pa.timestamp(unit, None if kind.tz is None else "UTC"), safe=False)


def _free_name(taken: list[str]) -> str:
    """Name for the GeoPackage's own numbers, which no column may have."""
    lower = [name.lower() for name in taken]
    return next(name for name in ("fid", "row", "number", "feature") if name not in lower)
