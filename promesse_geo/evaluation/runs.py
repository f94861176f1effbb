"""Mechanisms on data sets, looked at by metrics: one row a figure."""

import numbers
import time as clock
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import geopandas as gpd
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from promesse_geo.evaluation.parameters import checked_datasets, checked_jobs, checked_seeds, checked_things
from promesse_geo.evaluation.results import provenance
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import shown, warn
from promesse_geo.metrics import Compression, Metric, PoiRetrieval, RangeQueryDistortion, SpatialError
from promesse_geo.metrics.base import mark_of
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces

PAPER: tuple[Metric, ...] = (PoiRetrieval(), SpatialError(), RangeQueryDistortion(), Compression())
"""The measures of the paper: Tables II, III, IV and VI."""

Seeded = TypeVar("Seeded", Mechanism, Metric)


def measure(
    original: gpd.GeoDataFrame | Traces,
    protected: gpd.GeoDataFrame | Traces,
    metrics: Sequence[Metric] = PAPER,
    *,
    user: Name = ...,
    time: Name = ...,
) -> pd.DataFrame:
    """Say in a short table what an attacker still finds in protected data, and what an analyst loses.

    Parameters
    ----------
    original, protected : geopandas.GeoDataFrame or Traces
        Both may differ in CRS and in the order of rows. Users that the mechanism dropped may lack.
    metrics : sequence of Metric
        By default those of the paper.
    user, time : column name, None or ...
        Columns of both frames; see `Traces.from_frame`.

    Returns
    -------
    pandas.DataFrame
        One row a metric: `metric`, `value`, `unit`. `attrs` says how it came about.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read or compared, or a metric is none, or needs `evaluate`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> pg.measure(city, city.promesse.smooth(200), [pg.PoiRetrieval()]).unit.tolist()
    ['%']
    """
    checked = checked_things(metrics, Metric, name="metrics", owner="measure", such_as="[pg.PoiRetrieval()]")
    for metric in checked:
        if _splits(metric):
            raise ValueError(
                f"{type(metric).__name__} protects one half of the data and keeps the other, so it cannot look at data "
                "that was protected already. Use pg.evaluate."
            )
    before, after = (as_traces(data, user=user, time=time) for data in (original, protected))
    values = []
    for metric in checked:
        with _named(metric=metric):
            values.append(_figure(metric, metric.detail(before, after)))
    labels = [repr(metric) for metric in checked]
    table = pd.DataFrame({"metric": labels, "value": values, "unit": [metric.unit for metric in checked]})
    table.attrs.update(provenance({"original": before, "protected": after}, {"metrics": labels}))
    return table


def evaluate(
    datasets: Mapping[str, gpd.GeoDataFrame | Traces],
    mechanisms: Sequence[Mechanism],
    metrics: Sequence[Metric] = PAPER,
    *,
    seeds: int | Sequence[int] = 1,
    n_jobs: int = 1,
    user: Name = ...,
    time: Name = ...,
) -> pd.DataFrame:
    """Protect data sets with mechanisms and look at all of them with metrics.

    Each mechanism runs once per data set and seed; what a metric needs of the original data is computed once. For
    each seed s, s seeds every random mechanism and every random metric that has no seed of its own, so that all
    mechanisms meet the same range queries. What does not depend on chance is done once, and has no seed.

    Parameters
    ----------
    datasets : mapping of str to geopandas.GeoDataFrame or Traces
        Prepared data, by name.
    mechanisms : sequence of Mechanism
        What to protect with.
    metrics : sequence of Metric
        What to look at; by default the measures of the paper.
    seeds : int or sequence of int
        How many seeds (0, 1, …), or which.
    n_jobs : int
        How many processes to use, as joblib understands it: −1 for one per processor. Figures do not depend on it,
        `seconds` do.
    user, time : column name, None or ...
        Columns of the frames; see `Traces.from_frame`.

    Returns
    -------
    pandas.DataFrame
        One row a figure: `dataset`, `mechanism`, `metric`, `unit`, `seed` (missing where chance plays no part),
        `value`, and `seconds`, the time that protecting took (Traces in, Traces out; no reading or writing).
        `attrs` says how it came about: versions, parameters, and a fingerprint of each data set.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is wrong or a data set cannot be read.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> table = pg.evaluate({"city": city}, [pg.Promesse(200), pg.GeoIndistinguishability(0.01)],
    ...                     [pg.SpatialError(), pg.Compression()], seeds=2)
    >>> table.shape
    (6, 7)
    """
    named = checked_datasets(datasets)
    to_run = checked_things(mechanisms, Mechanism, name="mechanisms", owner="evaluate", such_as="[pg.Promesse(200)]")
    looks = checked_things(metrics, Metric, name="metrics", owner="evaluate", such_as="[pg.PoiRetrieval()]")
    chosen = checked_seeds(seeds, owner="evaluate")
    processes = checked_jobs(n_jobs, owner="evaluate")
    parameters = {
        "mechanisms": [repr(mechanism) for mechanism in to_run],
        "metrics": [repr(metric) for metric in looks],
        "seeds": chosen,
    }
    traces = {}
    for name, data in named.items():
        with _named(dataset=name):
            traces[name] = as_traces(data, user=user, time=time)
    runs = [(mechanism, seed) for mechanism in to_run for seed in _seeds_of(mechanism, chosen)]
    rows: list[dict[str, Any]] = []
    with tqdm(desc="evaluating", unit=" runs", total=len(traces) * len(runs), delay=1, disable=None) as bar:
        for name, data in traces.items():
            benches = [_bench(name, data, group, chosen) for group in _groups(looks)]
            jobs = (delayed(_run)(benches, mechanism, seed) for mechanism, seed in runs)
            for (mechanism, _), (found, told) in zip(
                runs, Parallel(n_jobs=processes, return_as="generator")(jobs), strict=True
            ):
                for words in told:
                    warn(f"{name}, {mechanism!r}: {words}")
                rows += [{"dataset": name, "mechanism": repr(mechanism), **row} for row in found]
                bar.update()
    return _table(rows, provenance(traces, parameters))


@dataclass(frozen=True, eq=False)
class _Bench:
    """Original traces, what is to be protected of them and its mark, and metrics by seed with their indexes."""

    name: str
    reference: Traces
    to_protect: Traces
    mark: bytes
    looks: list[tuple[Metric, list[tuple[int | None, Metric, Any]]]]


def _groups(metrics: list[Metric]) -> list[list[Metric]]:
    """Metrics that look at the same protected data: those that split it stand alone."""
    together = [metric for metric in metrics if not _splits(metric)]
    return ([together] if together else []) + [[metric] for metric in metrics if _splits(metric)]


def _bench(name: str, traces: Traces, metrics: list[Metric], seeds: list[int]) -> _Bench:
    first = metrics[0]
    with _named(dataset=name, metric=first):
        reference, to_protect = _halves(first, traces) if _splits(first) else (traces, traces)
    looks = []
    for metric in metrics:
        ready = [(seed, seeded(metric, seed)) for seed in _seeds_of(metric, seeds)]
        with _named(dataset=name, metric=metric):
            looks.append((metric, [(seed, one, one.index(reference)) for seed, one in ready]))
    return _Bench(name, reference, to_protect, mark_of(to_protect), looks)


def _halves(metric: Any, traces: Traces) -> tuple[Traces, Traces]:
    """What a metric, which others may have written, splits data into."""
    halves = metric.split(traces)
    if not isinstance(halves, tuple) or len(halves) != 2 or not all(isinstance(half, Traces) for half in halves):
        kind = shown(halves)
        raise TypeError(f"{type(metric).__name__}.split must return a pair of Traces. Got {kind} instead.")
    return halves


def _figure(metric: Metric, detail: Any) -> float:
    """The value that a metric, which others may have written, gives to a detail."""
    value = metric.value(detail)
    if not isinstance(value, (numbers.Real, np.bool_)):
        raise TypeError(f"{type(metric).__name__}.value must return a number. Got {shown(value)} instead.")
    return float(value)


@contextmanager
def _named(
    *,
    dataset: str | None = None,
    mechanism: Mechanism | None = None,
    metric: Metric | None = None,
    seed: int | None = None,
) -> Iterator[None]:
    """Add to any error which part of the work it stopped."""
    try:
        yield
    except Exception as error:
        parts = {"dataset": dataset, "mechanism": mechanism, "metric": metric, "seed": seed}
        words = ", ".join(f"{name} {part!r}" for name, part in parts.items() if part is not None)
        error.add_note(f"This came up with {words}.")
        raise


def _run(benches: list[_Bench], mechanism: Mechanism, seed: int | None) -> tuple[list[dict[str, Any]], list[str]]:
    """Protect with one mechanism and one seed, and look; the rows, and what there was to warn of."""
    rows = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for bench in benches:
            with _named(dataset=bench.name, mechanism=mechanism, seed=seed):
                begin = clock.perf_counter()
                protected = seeded(mechanism, seed).protect(bench.to_protect)
                seconds = clock.perf_counter() - begin
                if mark_of(bench.to_protect) != bench.mark:
                    raise ValueError(
                        f"{type(mechanism).__name__}._protect changed the Traces that came, which all others get as "
                        "well. Work on copies of their arrays."
                    )
            for metric, ready in bench.looks:
                for its_seed, one, index in ready:
                    if seed is not None and its_seed is not None and its_seed != seed:
                        continue
                    known_seed = its_seed if seed is None else seed
                    with _named(dataset=bench.name, mechanism=mechanism, metric=metric, seed=known_seed):
                        value = _figure(one, one.detail(bench.reference, protected, index=index))
                    rows.append(
                        {
                            "metric": repr(metric),
                            "unit": metric.unit,
                            "seed": known_seed,
                            "value": value,
                            "seconds": seconds,
                        }
                    )
    return rows, list(dict.fromkeys(str(warning.message) for warning in told))


def _table(rows: list[dict[str, Any]], attrs: dict[str, Any]) -> pd.DataFrame:
    columns = ["dataset", "mechanism", "metric", "unit", "seed", "value", "seconds"]
    kinds = ["str"] * 4 + ["Int64", "float64", "float64"]
    made = {name: pd.Series([row[name] for row in rows], dtype=kind) for name, kind in zip(columns, kinds, strict=True)}
    table = pd.DataFrame(made)  # by column: large seeds beside none would pass through floats
    table.attrs.update(attrs)
    return table


def is_random(thing: Mechanism | Metric) -> bool:
    """Whether chance plays a part and no seed of its own decides it."""
    return any(field.name == "seed" and getattr(thing, field.name) is None for field in fields(thing))


def seeded(thing: Seeded, seed: int | None) -> Seeded:
    """Return a mechanism or metric with a seed, where it takes one and has none."""
    return replace(thing, seed=seed) if is_random(thing) else thing  # type: ignore[call-arg]


def _seeds_of(thing: Mechanism | Metric, seeds: list[int]) -> Sequence[int | None]:
    return seeds if is_random(thing) else [None]


def _splits(metric: Metric) -> bool:
    return hasattr(metric, "split")
