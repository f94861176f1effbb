"""Alternating timing: medians and ratios of tasks that run in turn in one process."""

import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any


def in_turn(tasks: dict[str, Callable[[], Any]], *, rounds: int = 7) -> dict[str, float]:
    """Run all tasks in turn, `rounds` times after a warm-up, and return the median seconds of each."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            start = time.perf_counter()
            result = task()
            passed = time.perf_counter() - start
            del result
            if turn:
                seconds[name].append(passed)
    return {name: statistics.median(times) for name, times in seconds.items()}


def machine() -> str:
    """Return the name of the machine and the versions."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "pandas", "geopandas", "shapely"))
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, {packages}"


def table(title: str, rows: list[tuple[str, ...]], *, head: tuple[str, ...]) -> str:
    """Return a Markdown table."""
    lines = [f"## {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
