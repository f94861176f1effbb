"""Shapely's points to coordinates and back: the doors of GeoPandas."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor

import geopandas as gpd
import numpy as np
import shapely
from geopandas.array import GeometryArray

_BLOCK = 8192  # geometries read at a time, so that they stay in the cache between the questions asked of them


def check_geometry(frame: gpd.GeoDataFrame) -> None:
    """Raise ValueError if a GeoDataFrame has no geometry, or several of one name."""
    name = frame._geometry_column_name
    if name not in frame.columns:
        raise ValueError("The GeoDataFrame has no active geometry column. Choose one with gdf.set_geometry(…).")
    if frame.columns.tolist().count(name) > 1:
        raise ValueError(f"There are several columns named {name!r}. Rename all but the active geometry.")


def read_points(geometry: GeometryArray) -> tuple[np.ndarray, np.ndarray, bool]:
    """X and y of points, NaN for whatever is none; whether any has Z or M. Bound: one visit to each geometry."""
    geometries = np.asarray(geometry, dtype=object)
    x, y = np.empty(len(geometries)), np.empty(len(geometries))
    more = np.empty(len(geometries), bool)

    def read(start: int) -> None:
        block = slice(start, start + _BLOCK)
        some = geometries[block]
        try:
            shapely.get_x(some, out=x[block])
            shapely.get_y(some, out=y[block])
        except shapely.errors.GEOSException:  # an empty point among them
            located = some.copy()
            located[shapely.is_empty(some)] = None
            shapely.get_x(located, out=x[block])
            shapely.get_y(located, out=y[block])
        more[block] = shapely.get_coordinate_dimension(some) > 2

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(read, range(0, len(geometries), _BLOCK)))
    return x, y, bool(more.any())


def make_points(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Shapely points. Bound: making the objects; Python's cycle collector, which finds nothing, would triple that."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return shapely.points(x, y)
    finally:
        if collecting:
            gc.enable()
