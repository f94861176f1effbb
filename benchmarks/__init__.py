"""Benchmarks: `python -m benchmarks` runs those that need no real data."""
