"""Stays and points of interest, found as the paper's attack does (Hariharan and Toyama 2004)."""

from promesse_geo.stays.stays import Pois, find_pois, pois

__all__ = ["Pois", "find_pois", "pois"]
