"""Data sets: one file is one reader or one maker."""

from promesse_geo.datasets.cabspotting import read_cabspotting
from promesse_geo.datasets.city import make_city

__all__ = ["make_city", "read_cabspotting"]
