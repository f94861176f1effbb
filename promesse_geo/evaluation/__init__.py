"""Evaluate mechanisms with metrics over data sets, and save the results."""

from promesse_geo.evaluation.results import load_results, save_results
from promesse_geo.evaluation.runs import PAPER, evaluate, measure

__all__ = ["PAPER", "evaluate", "load_results", "measure", "save_results"]
