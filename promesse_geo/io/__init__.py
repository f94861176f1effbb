"""Readers and writers of files: one module per format or data set, listed in `registry.FORMATS`."""

from promesse_geo.io.cabspotting import read_cabspotting
from promesse_geo.io.geolife import read_geolife
from promesse_geo.io.gpx import read_gpx
from promesse_geo.io.mdc import read_mdc
from promesse_geo.io.registry import read_file
from promesse_geo.io.table import read_table

__all__ = ["read_cabspotting", "read_file", "read_geolife", "read_gpx", "read_mdc", "read_table"]
