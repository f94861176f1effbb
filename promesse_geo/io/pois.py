"""Points of interest as files: for the owner of the data, not for publication."""

from collections.abc import Iterator
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from promesse_geo.io.fields import (
    WGS84,
    check_keys,
    check_names,
    coordinate_names,
    iso,
    on_the_globe,
    plain_keys,
    write_points,
)
from promesse_geo.io.output import check_file, renamed_when_whole


def check_pois_output(path: Path, *, force: bool) -> None:
    """Say before long work why points of interest cannot be written to a path."""
    check_file(path, list(_WRITERS), force=force)


def write_pois(pois: gpd.GeoDataFrame, path: Path, *, force: bool) -> None:
    """Write points of interest to GeoParquet, GeoPackage, GeoJSON (EPSG:4326) or CSV, told by the ending.

    CSV has ISO times, and lon and lat in WGS 84 or x and y in any other CRS. GeoPackage and GeoJSON cut times to
    milliseconds. Zones other than UTC become UTC in all three.

    Raises
    ------
    FileExistsError, FileNotFoundError, OSError
        If the file is there and `force` is not given, or it cannot be written.
    ValueError
        If the format cannot keep the names of two columns apart or a user's key, or the CRS has no way to GeoJSON's.
    """
    check_pois_output(path, force=force)
    with renamed_when_whole(path, force=force) as temporary:
        _WRITERS[path.suffix.lower()](_with_plain_keys(pois), temporary)


def _with_plain_keys(pois: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """The same with users, if there are any, as all files have them."""
    found = pois.copy()
    for name in found.columns[: found.columns.get_loc("arrival")]:
        keys = plain_keys(found[name].tolist())
        found[name] = pd.Series(keys, found.index, "int64" if keys and isinstance(keys[0], int) else "str")
    return found


def _write_parquet(pois: gpd.GeoDataFrame, path: Path) -> None:
    check_names(list(pois))
    pois.to_parquet(path, index=False)


def _write_csv(pois: gpd.GeoDataFrame, path: Path) -> None:
    across, along = coordinate_names(pois.crs)
    columns = [(name, iso(array) if pa.types.is_timestamp(array.type) else array) for name, array in _fields(pois)]
    columns += [(across, pa.array(pois.geometry.x)), (along, pa.array(pois.geometry.y))]
    check_names([name for name, _ in columns])
    with path.open("wb") as file:  # arrow opens no name that is not UTF-8
        csv.write_csv(pa.table(dict(columns)), file, csv.WriteOptions(quoting_style="needed"))


def _write_geojson(pois: gpd.GeoDataFrame, path: Path) -> None:
    places = on_the_globe(pois.geometry.x.to_numpy(), pois.geometry.y.to_numpy(), pois.crs)
    _write_by_gdal(pois.set_geometry(gpd.points_from_xy(*places), crs=WGS84), path)


def _write_by_gdal(pois: gpd.GeoDataFrame, path: Path) -> None:
    place = str(pois.geometry.name)
    columns = [*_fields(pois), (place, pa.array(pois.geometry.to_wkb()))]
    check_names([name for name, _ in columns])
    write_points(pa.table(dict(columns)), path, layer="pois", geometry=place, crs=pois.crs)


def _fields(pois: gpd.GeoDataFrame) -> Iterator[tuple[str, pa.Array]]:
    """All columns but the geometry, as CSV and GDAL keep them."""
    for name, column in pois.drop(columns=pois.geometry.name).items():
        if column.dtype.kind not in "iufM":
            check_keys(column.unique())
        yield str(name), pa.Array.from_pandas(column)


_WRITERS = {".parquet": _write_parquet, ".gpkg": _write_by_gdal, ".geojson": _write_geojson, ".csv": _write_csv}
