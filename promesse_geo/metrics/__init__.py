"""Metrics: one file each."""

from promesse_geo.metrics.area_coverage import AreaCoverage
from promesse_geo.metrics.base import Metric
from promesse_geo.metrics.compression import Compression
from promesse_geo.metrics.poi_retrieval import PoiRetrieval, match_pois
from promesse_geo.metrics.range_queries import RangeQueryDistortion
from promesse_geo.metrics.spatial_error import SpatialError

__all__ = [
    "AreaCoverage",
    "Compression",
    "Metric",
    "PoiRetrieval",
    "RangeQueryDistortion",
    "SpatialError",
    "match_pois",
]
