"""Metrics of privacy and of utility.

- Attacks: `PoiRetrieval`, `AdaptivePoiRetrieval`, `Residue`, `Reidentification`
- Utility: `SpatialError`, `RangeQueryDistortion`, `AreaCoverage`, `Compression`
"""

from promesse_geo.metrics.attacks.adaptive_poi_retrieval import AdaptivePoiRetrieval
from promesse_geo.metrics.attacks.poi_retrieval import PoiRetrieval, match_pois
from promesse_geo.metrics.attacks.reidentification import Reidentification
from promesse_geo.metrics.attacks.residue import Residue
from promesse_geo.metrics.base import Metric
from promesse_geo.metrics.utility.area_coverage import AreaCoverage
from promesse_geo.metrics.utility.compression import Compression
from promesse_geo.metrics.utility.range_queries import RangeQueryDistortion
from promesse_geo.metrics.utility.spatial_error import SpatialError

__all__ = ["AdaptivePoiRetrieval", "Metric", "PoiRetrieval", "Reidentification", "Residue", "match_pois"]
__all__ += ["AreaCoverage", "Compression", "RangeQueryDistortion", "SpatialError"]
