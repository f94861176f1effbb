"""Many mechanisms, metrics and data sets at once, and the results as files."""

from promesse_geo.evaluation.results import load_results, save_results
from promesse_geo.evaluation.runs import PAPER, evaluate, measure

__all__ = ["PAPER", "evaluate", "load_results", "measure", "save_results"]
