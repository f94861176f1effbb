"""What an analyst loses through the protection."""

from promesse_geo.metrics.utility.area_coverage import AreaCoverage
from promesse_geo.metrics.utility.compression import Compression
from promesse_geo.metrics.utility.range_queries import RangeQueryDistortion
from promesse_geo.metrics.utility.spatial_error import SpatialError

__all__ = ["AreaCoverage", "Compression", "RangeQueryDistortion", "SpatialError"]
