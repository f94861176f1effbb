"""Data sets: one file is one reader or one maker."""

from promesse_geo.datasets.cabspotting import read_cabspotting
from promesse_geo.datasets.city import make_city
from promesse_geo.datasets.geolife import read_geolife
from promesse_geo.datasets.gpx import read_gpx
from promesse_geo.datasets.guess import read_file
from promesse_geo.datasets.mdc import read_mdc
from promesse_geo.datasets.table import read_table

__all__ = ["make_city", "read_cabspotting", "read_file", "read_geolife", "read_gpx", "read_mdc", "read_table"]
