"""Facts about coordinate reference systems."""

import functools
import json
import math
from typing import Any

from pyproj import CRS
from pyproj.exceptions import CRSError

from promesse_geo.messages import shown

USE_DEGREES = "Bring the data to EPSG:4326 first: gdf.to_crs(4326) (ogr2ogr -t_srs EPSG:4326)."


_FACTORS = (0.017453292519943295, 0.01570796326794895, 0.30480060960121924)  # degree, grad, and US survey foot


def unit_factor(crs: CRS) -> float:
    """Return the radians or metres in one unit of a CRS's axes, 1 if it has none.

    It is the factor in PROJ's database, of which the CRS in a file has fewer digits.
    """
    factor = float(crs.axis_info[0].unit_conversion_factor) if crs.axis_info else 1.0
    return next((known for known in _FACTORS if math.isclose(factor, known, rel_tol=1e-12)), factor)


def metres_per_unit(crs: CRS) -> float:
    """Metres in one unit of a projected or engineering CRS's axes."""
    return unit_factor(crs) or 1.0


def read_crs(crs: Any) -> CRS:
    """Return a pyproj.CRS of anything that pyproj accepts.

    Raises
    ------
    ValueError
        If pyproj does not accept it.
    """
    try:
        if isinstance(crs, dict) and "type" in crs:  # of a file, which PROJ reads as text
            crs = json.dumps(crs)
        return _named_crs(crs) if isinstance(crs, (str, int)) else CRS.from_user_input(crs)
    except (CRSError, TypeError, ValueError) as error:  # the last two from comparisons in pyproj
        rule = "a coordinate reference system such as 'EPSG:4326'"
        raise ValueError(f"The 'crs' parameter must be {rule}. Got {shown(crs)} instead.") from error


@functools.lru_cache(maxsize=64)
def _named_crs(crs: str | int) -> CRS:
    return CRS.from_user_input(crs)


def inner_crs(crs: CRS) -> CRS:
    """The horizontal CRS inside a bound or compound one."""
    while crs.is_bound or crs.is_compound:
        crs = (crs.source_crs if crs.is_bound else crs.sub_crs_list[0]) or crs
    return crs


def is_world_mercator(crs: CRS) -> bool:
    """Whether a CRS is a Mercator of the whole world, such as EPSG:3857, whose scale grows with the latitude."""
    operation = inner_crs(crs).coordinate_operation
    method = operation.method_name if operation else ""
    return "Mercator" in method and not any(word in method for word in ("Transverse", "Oblique", "Space"))
