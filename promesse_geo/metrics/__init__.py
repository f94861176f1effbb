"""Metrics of privacy and of utility.

- Attacks: `PoiRetrieval`, `AdaptivePoiRetrieval`, `Residue`, `Reidentification`
- Utility: `SpatialError`, `RangeQueryDistortion`, `AreaCoverage`, `Compression`
"""

from promesse_geo.metrics.adaptive_poi_retrieval import AdaptivePoiRetrieval
from promesse_geo.metrics.area_coverage import AreaCoverage
from promesse_geo.metrics.base import Metric
from promesse_geo.metrics.compression import Compression
from promesse_geo.metrics.poi_retrieval import PoiRetrieval, match_pois
from promesse_geo.metrics.range_queries import RangeQueryDistortion
from promesse_geo.metrics.reidentification import Reidentification
from promesse_geo.metrics.residue import Residue
from promesse_geo.metrics.spatial_error import SpatialError

__all__ = ["AdaptivePoiRetrieval", "Metric", "PoiRetrieval", "Reidentification", "Residue", "match_pois"]
__all__ += ["AreaCoverage", "Compression", "RangeQueryDistortion", "SpatialError"]
