"""Preprocessing: common calendar, gaps, jumps, pseudonyms, and a summary of the data."""

from promesse_geo.preprocess.calendar import collapse_empty_days, first_days
from promesse_geo.preprocess.gaps import split_gaps
from promesse_geo.preprocess.jumps import drop_jumps, drop_zero
from promesse_geo.preprocess.pipeline import prepare
from promesse_geo.preprocess.pseudonyms import pseudonymize
from promesse_geo.preprocess.summary import describe

__all__ = ["collapse_empty_days", "describe", "drop_jumps", "drop_zero", "first_days"]
__all__ += ["prepare", "pseudonymize", "split_gaps"]
