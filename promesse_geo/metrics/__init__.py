"""Metrics of privacy and of utility.

- Attacks: `PoiRetrieval`, `AdaptivePoiRetrieval`, `Residue`, `Reidentification`, `EndRetrieval`,
  `HeatMapReidentification`, `Linkage`, `Unicity`
- Utility: `SpatialError`, `RangeQueryDistortion`, `AreaCoverage`, `Compression`
"""

from promesse_geo.metrics.attacks import (
    AdaptivePoiRetrieval,
    EndRetrieval,
    HeatMapReidentification,
    Linkage,
    PoiRetrieval,
    Reidentification,
    Residue,
    Unicity,
    match_pois,
)
from promesse_geo.metrics.base import Metric, metric_classes
from promesse_geo.metrics.utility import AreaCoverage, Compression, RangeQueryDistortion, SpatialError

__all__ = [
    "AdaptivePoiRetrieval",
    "EndRetrieval",
    "HeatMapReidentification",
    "Linkage",
    "Metric",
    "PoiRetrieval",
    "Reidentification",
    "Residue",
    "Unicity",
    "match_pois",
    "metric_classes",
]
__all__ += ["AreaCoverage", "Compression", "RangeQueryDistortion", "SpatialError"]
