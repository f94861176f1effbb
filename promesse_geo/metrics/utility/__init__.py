"""Metrics of the utility of protected data."""
