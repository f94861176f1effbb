"""Check the arguments of evaluations, and name mechanisms and metrics."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import invalid
from promesse_geo.metrics import Metric
from promesse_geo.validation import check_integer, check_text, is_integer

MOST_SEEDS = 100_000
"""Greatest number of seeds."""

MOST_JOBS = 10_000
"""Greatest number of processes."""

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")
_LARGEST_SEED = 2**63 - 1


def name_of(component: Mechanism | Metric) -> str:
    """Return the repr of a mechanism or metric, without the addresses in memory that functions have in theirs."""
    return _ADDRESS.sub("", repr(component))


def check_metrics(metrics: Any, *, owner: str) -> list[Metric]:
    """Return metrics as a list; raise TypeError or ValueError if they are none, or one comes twice."""
    rule = "a list such as [pg.PoiRetrieval()], of what derives from pg.Metric"
    checked = check_components(metrics, Metric, name="metrics", owner=owner, rule=rule)
    for metric in checked:
        if not isinstance(getattr(metric, "unit", None), str):
            raise TypeError(f'{type(metric).__name__} has no unit. Set one in the class: unit: ClassVar[str] = "%".')
    return checked


def check_components(components: Any, kind: type, *, name: str, owner: str, rule: str) -> list[Any]:
    """Return mechanisms or metrics as a list; raise if one is of another type or comes twice."""
    is_list = isinstance(components, Sequence) and not isinstance(components, str)
    if not is_list or not all(isinstance(component, kind) for component in components):
        given = components if is_list else [components]
        raise TypeError(
            invalid(name, owner, rule, next((each for each in given if isinstance(each, type)), components))
        )
    if len(components) == 0:
        raise ValueError(invalid(name, owner, rule, components))
    labels = [name_of(component) for component in components]
    repeated = next((label for label in labels if labels.count(label) > 1), None)
    if repeated is not None:
        raise ValueError(f"The '{name}' of {owner} must differ. Got {repeated} twice.")
    return list(components)


def check_datasets(datasets: Any, *, owner: str) -> dict[str, Any]:
    """Return data sets by name; raise TypeError or ValueError if they are no mapping of names to data sets."""
    rule = "a mapping of names to data sets such as {'city': gdf}"
    if not isinstance(datasets, Mapping):
        raise TypeError(invalid("datasets", owner, rule, datasets))
    if len(datasets) == 0:
        raise ValueError(invalid("datasets", owner, rule, datasets))
    for name in datasets:
        check_text(name, name="datasets", owner=owner)
        if name.encode(errors="ignore").decode() != name:
            raise ValueError(f"The names of 'datasets' of {owner} must be valid Unicode. One has a lone surrogate.")
    return dict(datasets)


def check_seeds(seeds: Any, *, owner: str) -> list[int]:
    """Return seeds as a list, from the seeds or their number; raise if they are invalid."""
    if isinstance(seeds, (str, bytes, Mapping)) or not isinstance(seeds, Sequence | np.ndarray | range):
        if not is_integer(seeds):
            rule = "a number of seeds, or a list of whole numbers"
            raise TypeError(invalid("seeds", owner, rule, type(seeds)))
        return list(range(check_integer(seeds, name="seeds", owner=owner, high=MOST_SEEDS)))
    rule = f"one or more different whole numbers up to {_LARGEST_SEED}, at most {MOST_SEEDS:,} of them"
    if not 0 < len(seeds) <= MOST_SEEDS:
        raise ValueError(invalid("seeds", owner, rule, seeds))
    if not all(is_integer(seed) for seed in seeds):
        raise TypeError(f"The 'seeds' parameter of {owner} must be {rule}. Got a value of another type among them.")
    checked = [int(seed) for seed in seeds]
    if len(set(checked)) < len(checked) or min(checked) < 0 or max(checked) > _LARGEST_SEED:
        raise ValueError(invalid("seeds", owner, rule, list(seeds)))
    return checked


def check_jobs(n_jobs: Any, *, owner: str) -> int:
    """Return a number of processes; raise if it is invalid."""
    if not is_integer(n_jobs) or n_jobs == 0 or abs(n_jobs) > MOST_JOBS:
        rule = f"a number of processes up to {MOST_JOBS:,}, or -1 for all"
        raise ValueError(invalid("n_jobs", owner, rule, n_jobs))
    return int(n_jobs)
