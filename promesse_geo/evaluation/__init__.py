"""Evaluate mechanisms with metrics over data sets, tune them, and save the results."""

from promesse_geo.evaluation.results import load_results, save_results
from promesse_geo.evaluation.runs import PAPER, evaluate, measure
from promesse_geo.evaluation.tuning import Goal, Tuning, tune

__all__ = ["PAPER", "Goal", "Tuning", "evaluate", "load_results", "measure", "save_results", "tune"]
