"""What evaluate and measure take, checked before any work."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from promesse_geo.messages import invalid
from promesse_geo.metrics import Metric
from promesse_geo.validation import check_integer, check_text, is_integer

MOST_SEEDS = 100_000
"""So many seeds are taken at most."""

MOST_JOBS = 10_000
"""So many processes are asked for at most."""

_LARGEST_SEED = 2**63 - 1


def checked_things(things: Any, kind: type, *, name: str, owner: str, such_as: str) -> list[Any]:
    """Return mechanisms or metrics as a list, or say that some are none, or the same."""
    rule = f"a list such as {such_as}, of what derives from pg.{kind.__name__}"
    if isinstance(things, (str, Mapping)) or not isinstance(things, Sequence):
        raise TypeError(invalid(name, owner, rule, things))
    for thing in things:
        if not isinstance(thing, kind):
            raise TypeError(invalid(name, owner, rule, things))
        if kind is Metric and not isinstance(getattr(thing, "unit", None), str):
            raise TypeError(f'{type(thing).__name__} has no unit. Say one in the class: unit: ClassVar[str] = "%".')
    if len(things) == 0:
        raise ValueError(invalid(name, owner, rule, things))
    shown = [repr(thing) for thing in things]
    twice = next((one for one in shown if shown.count(one) > 1), None)
    if twice is not None:
        raise ValueError(f"The '{name}' of {owner} must differ. Got {twice} twice.")
    return list(things)


def checked_datasets(datasets: Any) -> dict[str, Any]:
    """Return data sets by name, or say that they have none."""
    rule = "a mapping of names to data sets such as {'city': gdf}"
    if not isinstance(datasets, Mapping):
        raise TypeError(invalid("datasets", "evaluate", rule, type(datasets).__name__))
    if len(datasets) == 0:
        raise ValueError(invalid("datasets", "evaluate", rule, {}))
    for name in datasets:
        check_text(name, name="datasets", owner="evaluate")
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise ValueError("The names of 'datasets' of evaluate must be valid Unicode. One has a lone surrogate.")
    return dict(datasets)


def checked_seeds(seeds: Any, *, owner: str) -> list[int]:
    """Return seeds, given as they are or by their number, or say what is wrong with them."""
    if isinstance(seeds, (str, bytes, Mapping)) or not isinstance(seeds, Sequence | np.ndarray | range):
        return list(range(check_integer(seeds, name="seeds", owner=owner, high=MOST_SEEDS)))
    rule = f"one or more different whole numbers up to {_LARGEST_SEED}, at most {MOST_SEEDS:,} of them"
    if not 0 < len(seeds) <= MOST_SEEDS:
        raise ValueError(invalid("seeds", owner, rule, seeds))
    found = [check_integer(seed, name="seeds", owner=owner, low=0) for seed in seeds]
    if len(set(found)) < len(found) or max(int(seed) for seed in seeds) > _LARGEST_SEED:
        raise ValueError(invalid("seeds", owner, rule, list(seeds)))
    return found


def checked_jobs(n_jobs: Any, *, owner: str) -> int:
    """Return a number of processes, or say that it is none."""
    if not is_integer(n_jobs) or n_jobs == 0 or abs(n_jobs) > MOST_JOBS:
        rule = f"a number of processes up to {MOST_JOBS:,}, or -1 for all"
        raise ValueError(invalid("n_jobs", owner, rule, n_jobs))
    return int(n_jobs)
