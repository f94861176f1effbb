"""Points of interest as files: for the owner of the data, not for publication."""

from pathlib import Path

import geopandas as gpd
import pandas as pd

from promesse_geo import check
from promesse_geo.output import check_gdal_reaches, check_place, renamed_when_whole

_ENDINGS = (".parquet", ".gpkg", ".geojson", ".csv")


def check_pois_output(path: Path, *, force: bool) -> None:
    """Say before long work why points of interest cannot be written to a path."""
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        raise ValueError(
            f"The output {path.name!r} must end with one of {check.listed(_ENDINGS)}, which says the format."
        )
    check_place(path, force=force)
    if ending in (".gpkg", ".geojson"):
        check_gdal_reaches(path.absolute().parent)


def write_pois(pois: gpd.GeoDataFrame, path: Path, *, force: bool) -> None:
    """Write points of interest to GeoParquet, GeoPackage, GeoJSON (EPSG:4326) or CSV, told by the ending."""
    check_pois_output(path, force=force)
    ending = path.suffix.lower()
    with renamed_when_whole(path, force=force) as temporary:
        if ending == ".parquet":
            pois.to_parquet(temporary, index=False)
        elif ending == ".csv":
            _as_text(pois).to_csv(temporary, index=False, lineterminator="\n")
        else:
            there = pois.to_crs(4326) if ending == ".geojson" else pois
            there.to_file(temporary, driver="GPKG" if ending == ".gpkg" else "GeoJSON", layer=path.stem)


def _as_text(pois: gpd.GeoDataFrame) -> pd.DataFrame:
    """Coordinates in columns of their own, named as the CRS calls for."""
    names = ("lon", "lat") if pois.crs.to_epsg() == 4326 else ("x", "y")
    table = pd.DataFrame(pois.drop(columns=pois.geometry.name))
    return table.assign(**dict(zip(names, (pois.geometry.x, pois.geometry.y), strict=True)))
