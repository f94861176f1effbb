"""The attack of the paper: where users stayed (Hariharan and Toyama 2004)."""

from promesse_geo.stays.stays import Pois, find_pois, in_words, pois

__all__ = ["Pois", "find_pois", "in_words", "pois"]
