"""Whether geometries are points, and the words for those that are not."""

from typing import Any

import numpy as np
import shapely

_NAMES = ("Point", "LineString", "LinearRing", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon")


def no_points(geometries: Any) -> str:
    """Return why geometries that hold no point are no records; empty if there is one, or no geometry at all.

    Parameters
    ----------
    geometries : numpy.ndarray of shapely geometries, shape (n,), or str
        May hold None; or the name of their type.
    """
    if isinstance(geometries, str):
        names = geometries
    else:
        kinds = np.unique(shapely.get_type_id(geometries[~shapely.is_missing(geometries)])).tolist()
        if not kinds or 0 in kinds:
            return ""
        names = " and ".join(_NAMES[kind] if kind < len(_NAMES) else "GeometryCollection" for kind in kinds)
    remedy = (
        " Lines are read from files if each vertex has a time: coordTimes in GeoJSON, or M." if "Line" in names else ""
    )
    return f"the geometries are {names}; a trace is one point a row with a time.{remedy}"


def check_are_points(geometries: np.ndarray) -> None:
    """Raise ValueError if there are geometries, and the first is no point and none is one."""
    first = next((geometry for geometry in geometries if geometry is not None), None)
    if first is not None and shapely.get_type_id(first) and (words := no_points(geometries)):
        raise ValueError(f"The GeoDataFrame holds no points: {words}")
