"""Metrics of privacy and of utility.

- Attacks: `PoiRetrieval`, `AdaptivePoiRetrieval`, `Residue`, `Reidentification`, `EndRetrieval`
- Utility: `SpatialError`, `RangeQueryDistortion`, `AreaCoverage`, `Compression`
"""

from promesse_geo.metrics.attacks import (
    AdaptivePoiRetrieval,
    EndRetrieval,
    HeatMapReidentification,
    PoiRetrieval,
    Reidentification,
    Residue,
    match_pois,
)
from promesse_geo.metrics.base import Metric
from promesse_geo.metrics.utility import AreaCoverage, Compression, RangeQueryDistortion, SpatialError

__all__ = [
    "AdaptivePoiRetrieval",
    "EndRetrieval",
    "HeatMapReidentification",
    "Metric",
    "PoiRetrieval",
    "Reidentification",
    "Residue",
    "match_pois",
]
__all__ += ["AreaCoverage", "Compression", "RangeQueryDistortion", "SpatialError"]
