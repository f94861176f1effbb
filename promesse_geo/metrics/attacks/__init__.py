"""What an attacker finds in protected data."""

from promesse_geo.metrics.attacks.adaptive_poi_retrieval import AdaptivePoiRetrieval
from promesse_geo.metrics.attacks.end_retrieval import EndRetrieval
from promesse_geo.metrics.attacks.heat_map_reidentification import HeatMapReidentification
from promesse_geo.metrics.attacks.linkage import Linkage
from promesse_geo.metrics.attacks.poi_retrieval import PoiRetrieval, match_pois
from promesse_geo.metrics.attacks.reidentification import Reidentification
from promesse_geo.metrics.attacks.residue import Residue
from promesse_geo.metrics.attacks.unicity import Unicity

__all__ = [
    "AdaptivePoiRetrieval",
    "EndRetrieval",
    "HeatMapReidentification",
    "Linkage",
    "PoiRetrieval",
    "Reidentification",
    "Residue",
    "Unicity",
    "match_pois",
]
