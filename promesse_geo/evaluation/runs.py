"""Run mechanisms and metrics over data sets."""

import json
import math
import numbers
import time as clock
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import geopandas as gpd
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from promesse_geo.evaluation.arguments import (
    check_components,
    check_datasets,
    check_jobs,
    check_metrics,
    check_seeds,
    name_of,
)
from promesse_geo.evaluation.results import Measures, provenance
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import Remark, added_up, collected_warnings, remarks_of, shown, warn
from promesse_geo.metrics import Compression, Metric, PoiRetrieval, RangeQueryDistortion, SpatialError
from promesse_geo.metrics.base import Index
from promesse_geo.metrics.pairing import warn_if_exchanged
from promesse_geo.threads import progress_bar
from promesse_geo.traces.columns import Name
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.portions import UserPaths
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import key_of

PAPER: tuple[Metric, ...] = (PoiRetrieval(), SpatialError(), RangeQueryDistortion(), Compression())
"""The metrics of the paper: Tables II, III, IV and VI."""

_MAX_RECORDS = 20_000_000  # records that are left of a portion of the users
_DTYPES = dict.fromkeys(("dataset", "mechanism", "metric", "unit"), "str")
_DTYPES |= {"seed": "Int64", "value": "float64", "seconds": "float64"}
_DTYPES |= dict.fromkeys(("mechanism_name", "parameters", "metric_name", "label"), "str")
_DTYPES |= {"guess": "float64"}

Seeded = TypeVar("Seeded", Mechanism, Metric)


def measure(
    original: gpd.GeoDataFrame | Traces,
    protected: gpd.GeoDataFrame | Traces,
    metrics: Sequence[Metric] = PAPER,
    *,
    user: Name = ...,
    time: Name = ...,
) -> pd.DataFrame:
    """Measure the privacy and the utility of one protected data set.

    Parameters
    ----------
    original, protected : geopandas.GeoDataFrame or Traces
        They may differ in CRS and in the order of rows. Users that the mechanism dropped may be missing.
    metrics : sequence of Metric
        The default is the metrics of the paper.
    user, time : column name, None or ...
        Columns of both frames; see `Traces.from_frame`.

    Returns
    -------
    pandas.DataFrame
        One row per metric: `metric`, `value`, `unit`. If a metric states what guessing reaches, such as `EndRetrieval`,
        the column `guess` has it (NaN for the others). If any value is undefined (NaN), the column `reason` has the
        reason in words, and an empty text for the others. `attrs` holds the provenance.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read or compared, a metric is invalid, or a metric needs `evaluate`.

    Warns
    -----
    UserWarning
        If the original notes a mechanism that moved or dropped positions, and the protected data does not begin with
        it: the two may be exchanged.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> pg.measure(city, city.promesse.smooth(200), [pg.PoiRetrieval()]).unit.tolist()
    ['%']
    """
    checked = check_metrics(metrics, owner="measure")
    for metric in checked:
        if _splits(metric):
            raise ValueError(
                f"{type(metric).__name__} splits the data before one part is protected, so it cannot measure data that "
                "is already protected. Use pg.evaluate."
            )
    before, after = (as_traces(data, user=user, time=time) for data in (original, protected))
    matching, values, guesses, reasons = _Matching(before, after), [], [], []
    for number, metric in enumerate(checked):
        with _noting({"metric": metric}):
            pairs = matching.pairs(metric)
            if not number:
                warn_if_exchanged(before, after)
            value, guess = _value(metric, metric.compare(pairs))
            values.append(value)
            guesses.append(guess)
            reasons.append(metric.why_undefined(pairs) if np.isnan(values[-1]) else "")
    labels = list(map(name_of, checked))
    table = Measures({"metric": labels, "value": values, "unit": [metric.unit for metric in checked]})
    if not np.isnan(guesses).all():
        table["guess"] = guesses
    if any(reasons):
        table["reason"] = reasons
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
    """Protect data sets with mechanisms and compute metrics of the results.

    Each mechanism runs once per data set and seed. If more than some 20 million records are left, users are protected
    and measured in portions: what is left of a portion is in memory at a time. If the mechanism or a metric needs all
    users, such as `WaitForMe` or `Residue`, all that is left is in memory. What a metric computes from the original
    data alone is computed once. A seed sets the seed of every random mechanism and metric that has none, so all
    mechanisms meet the same range queries. Deterministic mechanisms and metrics run once, without a seed.

    Parameters
    ----------
    datasets : mapping of str to geopandas.GeoDataFrame or Traces
        Prepared data by name.
    mechanisms : sequence of Mechanism
        Mechanisms to apply.
    metrics : sequence of Metric
        Metrics to compute. The default is the metrics of the paper.
    seeds : int or sequence of int
        Number of seeds (0, 1, …), or the seeds.
    n_jobs : int
        Number of processes, as in joblib: −1 for one per processor. It changes `seconds`, no value.
    user, time : column name, None or ...
        Columns of the frames; see `Traces.from_frame`.

    Returns
    -------
    pandas.DataFrame
        One row per value:

        - `dataset`, and `mechanism` and `metric` with their parameters, as in their repr
        - `unit`, `seed` (missing for deterministic results) and `value`
        - `seconds`, the run time of the mechanism from Traces to Traces, without reading and writing
        - `mechanism_name` (the class) and `parameters` (JSON) of the mechanism
        - `metric_name` (the class) and `label` (for figures and tables) of the metric
        - `guess`, the value that guessing reaches, if a metric states it (NaN for the others)

        `attrs` holds the provenance: versions, parameters, and a fingerprint of each data set.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is invalid or a data set cannot be read.

    Warns
    -----
    UserWarning
        What a mechanism or metric warns of, once, with the data set and the mechanism.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> table = pg.evaluate({"city": city}, [pg.Promesse(200), pg.GeoIndistinguishability(0.01)],
    ...                     [pg.SpatialError(), pg.Compression()], seeds=2)
    >>> table.shape
    (6, 11)
    >>> table.mechanism_name.unique().tolist()
    ['Promesse', 'GeoIndistinguishability']
    """
    named = check_datasets(datasets, owner="evaluate")
    rule = "a list such as [pg.Promesse(200)], of what derives from pg.Mechanism"
    to_run = check_components(mechanisms, Mechanism, name="mechanisms", owner="evaluate", rule=rule)
    to_compute = check_metrics(metrics, owner="evaluate")
    chosen = check_seeds(seeds, owner="evaluate")
    processes = check_jobs(n_jobs, owner="evaluate")
    traces = {}
    for name, data in named.items():
        with _noting({"dataset": name}):
            traces[name] = as_traces(data, user=user, time=time)
    runs = [(mechanism, seed) for mechanism in to_run for seed in _seeds_of(mechanism, chosen)]
    rows: list[dict[str, Any]] = []
    with progress_bar(label="evaluating", unit="runs", total=len(traces) * len(runs)) as bar:
        for name, data in traces.items():
            groups = index_groups(name, data, to_compute, chosen)
            jobs = (delayed(run_groups)(groups, mechanism, seed) for mechanism, seed in runs)
            outcomes = Parallel(n_jobs=processes, return_as="generator")(jobs)
            for (mechanism, _), (values, messages) in zip(runs, outcomes, strict=True):
                for message in messages:
                    warn(f"{name}, {name_of(mechanism)}: {message}")
                parameters = json.dumps(mechanism.description()["parameters"])
                columns = {"dataset": name, "mechanism": name_of(mechanism), "mechanism_name": type(mechanism).__name__}
                rows += [columns | {"parameters": parameters} | row for row in values]
                bar.update()
    about = {"mechanisms": list(map(name_of, to_run)), "metrics": list(map(name_of, to_compute)), "seeds": chosen}
    table = as_results(rows)
    table.attrs.update(provenance(traces, about))
    return table


def as_results(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of results as a table with the columns and types of `evaluate`, without provenance."""
    table = pd.DataFrame(rows, columns=list(_DTYPES), dtype="object")  # large seeds stay integers beside missing ones
    table = table.astype(_DTYPES)
    return table.drop(columns="guess") if table["guess"].isna().all() else table


class _Indexed(NamedTuple):
    """A metric as given, and with a seed and its index of the original data."""

    metric: Metric
    seed: int | None
    seeded: Metric
    of_original: Index


@dataclass(frozen=True, eq=False)
class Group:
    """Metrics with their indexes, that compare the same original with the same protected data.

    If all of them can measure users in portions, `paths` says how long the path of each user is.
    """

    dataset: str
    original: Traces
    to_protect: Traces
    metrics: list[_Indexed]
    paths: UserPaths | None

    def portions(self, mechanism: Mechanism) -> Iterator[Traces]:
        """Yield the data to protect, in portions of users if the mechanism leaves more than fits into memory."""
        if self.paths is None or not mechanism.is_per_user:
            return iter([self.to_protect])
        return self.paths.divide(max_records=_MAX_RECORDS, count=lambda some: mechanism.protect(some).records)


class _Matching:
    """Original and protected traces, matched once for all metrics that match by user."""

    def __init__(self, original: Traces, protected: Traces) -> None:
        self._original, self._protected = original, protected
        self._by_user: Pairs | None = None

    def pairs(self, metric: Metric) -> Pairs:
        """Return the matched traces of a metric."""
        if type(metric).pair is not Metric.pair:
            return metric.pair(self._original, self._protected)
        if self._by_user is None:
            self._by_user = metric.pair(self._original, self._protected)
        return self._by_user


def _by_split(metrics: list[Metric]) -> list[list[Metric]]:
    """Group metrics by the data that is protected for them: each one that splits the data is alone."""
    together = [metric for metric in metrics if not _splits(metric)]
    return [*([together] if together else []), *([metric] for metric in metrics if _splits(metric))]


def index_groups(dataset: str, traces: Traces, metrics: list[Metric], seeds: Sequence[Any]) -> list[Group]:
    """Group metrics by the data that is protected for them, and compute what depends on the original alone."""
    return [_index(dataset, traces, group, seeds) for group in _by_split(metrics)]


def _index(dataset: str, traces: Traces, metrics: list[Metric], seeds: Sequence[Any]) -> Group:
    first = metrics[0]
    with _noting({"dataset": dataset, "metric": first}):
        original, to_protect = _split(first, traces) if _splits(first) else (traces, traces)
    indexed = []
    for metric in metrics:
        with _noting({"dataset": dataset, "metric": metric}):
            for seed in _seeds_of(metric, seeds):
                with_seed = seeded(metric, seed)
                if _splits(with_seed):
                    with_seed = with_seed.for_halves(original, to_protect)
                indexed.append(_Indexed(metric, seed, with_seed, with_seed.index(original)))
    paths = UserPaths.of(traces) if all(metric.is_divisible and not _splits(metric) for metric in metrics) else None
    return Group(dataset, original, to_protect, indexed, paths)


def _split(metric: Any, traces: Traces) -> tuple[Traces, Traces]:
    """Split data with a metric of any author."""
    halves = metric.split(traces)
    if not isinstance(halves, tuple) or len(halves) != 2 or not all(isinstance(half, Traces) for half in halves):
        raise TypeError(f"{type(metric).__name__}.split must return a pair of Traces. Got {shown(halves)} instead.")
    return halves


def run_groups(
    groups: list[Group], mechanism: Mechanism, seed: int | str | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Protect with one mechanism and one seed, and compute the metrics: the rows and the warnings."""
    rows = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for group in groups:
            rows += _run(group, mechanism, seed)
    return rows, list(dict.fromkeys(str(warning.message) for warning in caught))


def _run(group: Group, mechanism: Mechanism, seed: int | str | None) -> list[dict[str, Any]]:
    """Protect the data of a group, and compute its metrics: the rows."""
    parts = {"dataset": group.dataset, "mechanism": mechanism}
    metrics = [each for each in group.metrics if seed is None or each.seed is None or each.seed == seed]
    measured = [_Measured(each, _of_attacker(mechanism, seed)) for each in metrics]
    seeds = [each.seed if seed is None else seed for each in metrics]
    seconds, first, remarks = 0.0, 0, list[list[tuple[Remark, ...]]]()
    for done in _protect(group, seeded(mechanism, seed), parts | {"seed": seed}):
        matching, last = _Matching(group.original, done.protected), first + done.traces
        for each, row_seed in zip(measured, seeds, strict=True):
            with _noting(parts | {"metric": each.given.metric, "seed": row_seed}):
                each.add(group.original, matching, None if done.is_whole else (first, last))
        seconds, first = seconds + done.seconds, last
        remarks.append(done.remarks)
        del done, matching  # before the next portion is protected
    for warning in added_up(remarks):
        warn(warning)
    rows = []
    for each, row_seed in zip(measured, seeds, strict=True):
        with _noting(parts | {"metric": each.given.metric, "seed": row_seed}):
            value, guess = each.value()
        result = {"seed": row_seed, "value": value, "guess": guess, "seconds": seconds, "reason": each.reason}
        rows.append(_describe(each.given.metric) | result)
    return rows


class _Portion(NamedTuple):
    """What is left of some traces of a data set, the seconds that it took, and the remarks of each warning."""

    traces: int
    is_whole: bool
    protected: Traces
    seconds: float
    remarks: list[tuple[Remark, ...]]


def _protect(group: Group, mechanism: Mechanism, noted: Mapping[str, Any]) -> Iterator[_Portion]:
    """Protect the data of a group, in portions if it leaves much."""

    def work(portion: Traces) -> _Portion:
        begin = clock.perf_counter()
        with collected_warnings() as caught:
            protected = mechanism.protect(portion)
        seconds = clock.perf_counter() - begin
        is_whole = portion is group.to_protect
        return _Portion(len(portion), is_whole, protected, seconds, list(map(remarks_of, caught)))

    with _noting(noted):
        yield from map(work, group.portions(mechanism))


class _Measured:
    """A metric of a run, what it found in each portion of the protected data, and why it has no value."""

    def __init__(self, given: _Indexed, attacker: Mechanism) -> None:
        self.given = given
        self._metric = given.seeded.for_mechanism(attacker)
        self._condensed: list[Any] = []
        self._whole: tuple[float, float] | None = None
        self.reason = ""

    def add(self, original: Traces, matching: _Matching, users: tuple[int, int] | None) -> None:
        """Compare a portion that has the original users at some positions, or all protected data if it is None."""
        metric, pairs = self._metric, matching.pairs(self._metric)
        detail = metric.compare(
            pairs, self.given.of_original if metric is self.given.seeded else metric.index(original)
        )
        if users is None:
            self._whole = _value(metric, detail)
            self.reason = metric.why_undefined(pairs) if math.isnan(self._whole[0]) else ""
        else:
            self._condensed.append(metric.condense(detail, *users))

    def value(self) -> tuple[float, float]:
        """Return the value, and that of guessing."""
        if self._whole is not None:
            return self._whole
        value = float(self._metric.value_of_portions(self._condensed))
        self.reason = self._metric.undefined if math.isnan(value) else ""
        return value, math.nan


def _value(metric: Metric, detail: Any) -> tuple[float, float]:
    """Return the value of a detail by a metric of any author, and that of guessing."""
    value = metric.value(detail)
    if not isinstance(value, (numbers.Real, np.bool_)):
        raise TypeError(f"{type(metric).__name__}.value must return a number. Got {shown(value)} instead.")
    return float(value), metric.guess(detail)


def _of_attacker(mechanism: Mechanism, seed: int | str | None) -> Mechanism:
    """Return the mechanism with another seed than that of the run, which the attacker does not know."""
    return mechanism if seed is None else seeded(mechanism, int.from_bytes(key_of(seed, "attacker")[:7]))


@contextmanager
def _noting(parts: Mapping[str, Any]) -> Iterator[None]:
    """Add to any error a note that names the run it stopped: the data set, mechanism, metric and seed, if any."""
    try:
        yield
    except Exception as error:
        words = ", ".join(f"{name} {part!r}" for name, part in parts.items() if part is not None)
        error.add_note(f"Raised for {words}.")
        raise


def _describe(metric: Metric) -> dict[str, Any]:
    """Return the columns of a metric."""
    return {"metric": name_of(metric), "metric_name": type(metric).__name__, "label": metric.label, "unit": metric.unit}


def is_random(component: Mechanism | Metric) -> bool:
    """Whether a mechanism or metric takes a seed and has none."""
    return component.is_random if isinstance(component, Mechanism) else getattr(component, "seed", ...) is None


def seeded(component: Seeded, seed: int | str | None) -> Seeded:
    """Return a mechanism or metric with a seed if it takes one and has none."""
    if isinstance(component, Mechanism):
        return component.with_seed(seed)
    return replace(component, seed=seed) if is_random(component) else component  # type: ignore[call-arg]


def _seeds_of(component: Mechanism | Metric, seeds: Sequence[Any]) -> Sequence[Any]:
    return seeds if is_random(component) else [None]


def _splits(metric: Metric) -> bool:
    return hasattr(metric, "split")
