"""What an attacker finds in protected data."""

from promesse_geo.metrics.attacks.adaptive_poi_retrieval import AdaptivePoiRetrieval
from promesse_geo.metrics.attacks.end_retrieval import EndRetrieval
from promesse_geo.metrics.attacks.heat_map_reidentification import HeatMapReidentification
from promesse_geo.metrics.attacks.poi_retrieval import PoiRetrieval, match_pois
from promesse_geo.metrics.attacks.reidentification import Reidentification
from promesse_geo.metrics.attacks.residue import Residue

__all__ = [
    "AdaptivePoiRetrieval",
    "EndRetrieval",
    "HeatMapReidentification",
    "PoiRetrieval",
    "Reidentification",
    "Residue",
    "match_pois",
]
