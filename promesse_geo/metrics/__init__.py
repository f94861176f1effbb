"""Metrics: one file each."""

from promesse_geo.metrics.adaptive_poi_retrieval import AdaptivePoiRetrieval
from promesse_geo.metrics.area_coverage import AreaCoverage
from promesse_geo.metrics.base import Metric
from promesse_geo.metrics.compression import Compression
from promesse_geo.metrics.poi_retrieval import PoiRetrieval, match_pois
from promesse_geo.metrics.range_queries import RangeQueryDistortion
from promesse_geo.metrics.reidentification import Reidentification
from promesse_geo.metrics.residue import Residue
from promesse_geo.metrics.spatial_error import SpatialError

__all__ = [
    "AdaptivePoiRetrieval",
    "AreaCoverage",
    "Compression",
    "Metric",
    "PoiRetrieval",
    "RangeQueryDistortion",
    "Reidentification",
    "Residue",
    "SpatialError",
    "match_pois",
]
