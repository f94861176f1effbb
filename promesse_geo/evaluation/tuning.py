"""Tune a parameter of a mechanism: the best value that meets goals."""

import math
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
from tqdm import tqdm

from promesse_geo.evaluation.arguments import name_of
from promesse_geo.evaluation.runs import Group, index_groups, is_random, run_groups
from promesse_geo.mechanisms import Mechanism, mechanism_in_words
from promesse_geo.messages import counted, decimal, invalid, listed, warn
from promesse_geo.metrics import Metric
from promesse_geo.threads import progress_bar
from promesse_geo.traces.columns import Name
from promesse_geo.traces.owners import number_owners
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_flag, check_integer, check_number, check_seed, check_text, is_integer

SIGNS = ("<=", ">=")
"""How the value of a goal is compared with its limit."""

_GRID = 0.5  # share of the values on the logarithmic grid; the others refine
_DIGITS = 3  # significant digits of tried values
_CLOSE = 1.02  # neighbours that differ by less are not refined
_DECIMALS = 6  # of objectives: smaller differences are rounding errors


class Goal(NamedTuple):
    """A limit on the value of a metric.

    Parameters
    ----------
    metric : Metric
        The metric.
    sign : {"<=", ">="}
        Which side of the limit is the goal.
    limit : float
        In the unit of the metric.
    """

    metric: Metric
    sign: str
    limit: float

    def shortfall(self, value: float) -> float:
        """Return how far a value is from the goal, relative to the limit: 0 if it is met, infinite without a value."""
        if math.isnan(value):
            return math.inf
        excess = value - self.limit if self.sign == "<=" else self.limit - value
        return max(excess, 0.0) / (abs(self.limit) or 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """What `tune` found; `promesse_geo.plot.tuning` draws it.

    Parameters
    ----------
    parameter : str
        Name of the tuned parameter.
    mechanism : Mechanism
        The mechanism with the best value, or the given one with `per_user=True`.
    value : float, or pandas.Series with `per_user=True`
        The best value: of those that meet all goals the one with the best objective, or if there are none, the one
        nearest to the goals. A Series has one per user.
    meets_goals : bool, or pandas.Series with `per_user=True`
        Whether the best value meets all goals.
    table : pandas.DataFrame
        One row per run in the order of the values: the parameter, the value of each goal and of the objective,
        `meets_goals`, and `seconds` of protecting. With `per_user=True` also `user`.
    goals : tuple of Goal
        The goals.
    objective : Metric
        The metric to minimize or maximize.
    maximize : bool
        Whether larger values of the objective are better.
    reasons : dict of str to str
        Why metrics have no value in some or all runs, in words, by their column of the table; empty with
        `per_user=True`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2).promesse.prepare(tz="Europe/Paris")
    >>> found = pg.tune(city, pg.Promesse(200), bounds=(100, 400), goals=[(pg.PoiRetrieval(), "<=", 5)],
    ...                 objective=pg.Compression(), values=4)
    >>> list(found.table.columns)
    ['epsilon', 'PoiRetrieval', 'Compression', 'meets_goals', 'seconds']
    """

    parameter: str
    mechanism: Mechanism
    value: Any
    meets_goals: Any
    table: pd.DataFrame
    goals: tuple[Goal, ...]
    objective: Metric
    maximize: bool
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_per_user(self) -> bool:
        """Whether there is a value for each user."""
        return isinstance(self.value, pd.Series)

    def column(self, metric: Metric) -> str:
        """Return the column of the table that has the values of a metric."""
        return _columns(self.goals, self.objective)[name_of(metric)]

    def __repr__(self) -> str:
        """Return the best value and what it reaches, or whether it is only the nearest."""
        if self.is_per_user:
            met = int(self.meets_goals.sum())
            spread = (f"{getattr(self.value, kind)():g}" for kind in ("min", "median", "max"))
            low, middle, high = spread if len(self.value) else ("–",) * 3
            return (
                f"{self.parameter} from {low} to {high}, median {middle}: {met:,} of "
                f"{counted(len(self.value), 'user')} meet all goals. {counted(len(self.table), 'run')}."
            )
        row = self.table[self.table[self.parameter] == self.value].iloc[0]
        columns = [self.column(goal.metric) for goal in self.goals]
        unknown = [name for name in columns if self.table[name].isna().all()]
        reached = [
            f"{_reached(row, name, goal.metric)} (goal {goal.sign} {goal.limit:g})"
            for goal, name in zip(self.goals, columns, strict=True)
            if name not in unknown
        ]
        reached.append(_reached(row, self.column(self.objective), self.objective))
        runs = counted(len(self.table), "run")
        why = "; ".join(f"{name} has no value: {self.reasons.get(name, 'nothing to compare')}" for name in unknown)
        if len(unknown) == len(columns):
            best = "largest" if self.maximize else "smallest"
            return (
                f"No goal could be measured ({why}). {self.parameter} = {self.value:g} has the {best} objective only: "
                f"{reached[0]}. {runs}."
            )
        measured = " that could be measured" if unknown else ""
        verdict = f"is nearest to the goals{measured}; no value meets all of them"
        verdict = f"meets all goals{measured}" if self.meets_goals else verdict
        verdict += f" ({why})" if unknown else ""
        return f"{self.parameter} = {self.value:g} {verdict}: {', '.join(reached)}. {runs}."


def _reached(row: pd.Series, name: str, metric: Metric) -> str:
    """Return the value of a metric in a row of the table in words."""
    return f"{name} undefined" if math.isnan(row[name]) else f"{name} {decimal(row[name])} {metric.unit}"


class _Search(NamedTuple):
    """What to search: a parameter of a mechanism, its bounds, goals, objective, and number of runs."""

    mechanism: Mechanism
    parameter: str
    low: float
    high: float
    goals: tuple[Goal, ...]
    objective: Metric
    maximize: bool
    values: int
    seed: int | str

    def mechanism_of(self, value: float) -> Mechanism:
        """Return the mechanism with a value of the parameter."""
        return self.mechanism.with_parameter(self.parameter, int(value) if self.is_integer else float(value))

    @property
    def is_integer(self) -> bool:
        """Whether the parameter is a whole number."""
        return is_integer(self.mechanism.settings()[self.parameter])

    def metrics(self) -> list[Metric]:
        """Return the distinct metrics of goals and objective."""
        by_name = {name_of(metric): metric for metric in (*(goal.metric for goal in self.goals), self.objective)}
        return list(by_name.values())


def tune(
    data: gpd.GeoDataFrame | Traces,
    mechanism: Mechanism,
    *,
    parameter: str = "epsilon",
    bounds: tuple[float, float],
    goals: Sequence[tuple[Metric, str, float]],
    objective: Metric,
    maximize: bool = False,
    values: int = 30,
    per_user: bool = False,
    seed: int | str | None = None,
    user: Name = ...,
    time: Name = ...,
) -> Tuning:
    """Find the value of a parameter that meets goals at the best value of an objective.

    Half of the values are on a logarithmic grid. The others halve the intervals beside the best value so far, and those
    in which the goals cease to be met, down to 2 %. What remains halves the widest intervals, because metrics can rise
    and fall again. Values have three digits. What metrics compute from the original data is computed once. Runs
    that leave many records are protected and measured in portions of users, as `evaluate` does.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        Prepared data. Keep the users (`keep_user=True`) for metrics that match by owner and for `per_user`.
    mechanism : Mechanism
        The mechanism; its other parameters are kept.
    parameter : str
        The parameter to tune, a number above zero. In a `Chain`, a parameter that one of its members has.
    bounds : tuple of two numbers
        Smallest and largest value to try.
    goals : sequence of tuples (Metric, "<=" or ">=", number)
        What the value of a metric shall be, in its unit. A goal that has no value in any run (such as the retrieval
        of POIs of a user who has none) does not count; if no goal has a value, none is met.
    objective : Metric
        What shall be small among the values that meet all goals.
    maximize : bool
        Whether the objective shall be large instead.
    values : int
        Number of values to try (for each user), at least 2; fewer if all between the bounds are within 2 %.
    per_user : bool
        Whether to tune for each user alone, with the user's own data: users whose data is easy to protect keep more.
        Owners of parts are users without the suffix that `prepare(keep_user=True)` adds.
    seed : int or str, optional
        Makes random mechanisms and metrics repeatable; all values have the same seed. By default it comes from the
        operating system.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    Tuning
        The best value, whether it meets the goals, and the table of all runs.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is invalid or the data cannot be read.

    Warns
    -----
    UserWarning
        What the mechanism warned of at the best value; with `per_user`, for how many users it warned.

    Notes
    -----
    Values of metrics are estimates on this data. The attacks of the goals are those that exist, not all that are
    possible.

    References
    ----------
    Primault, Boutet, Ben Mokhtar, Brunie: Adaptive Location Privacy with ALP. SRDS 2016 (a value per user).

    Examples
    --------
    >>> import promesse_geo as pg
    >>> parts = pg.make_city(users=4, days=3).promesse.prepare(tz="Europe/Paris", keep_user=True)
    >>> tuning = pg.tune(parts, pg.Promesse(200), bounds=(50, 500), goals=[(pg.PoiRetrieval(), "<=", 5)],
    ...                  objective=pg.RangeQueryDistortion(queries=200), values=8, seed=1)
    >>> tuning.meets_goals, 50 <= tuning.value <= 500
    (True, True)
    """
    search = _Search(
        *check_tuning(mechanism, parameter=parameter, bounds=bounds, goals=goals, objective=objective),
        check_flag(maximize, name="maximize", owner="tune"),
        check_integer(values, name="values", owner="tune", low=2, high=100_000),
        _fresh_seed() if seed is None else check_seed(seed, owner="tune"),  # type: ignore[arg-type]
    )
    each = check_flag(per_user, name="per_user", owner="tune")
    traces = as_traces(data, user=user, time=time)
    if each:
        return _tune_users(search, traces)
    with progress_bar(label="tuning", unit="runs", total=search.values) as bar:
        runs, messages, reasons = _sweep(search, traces, bar)
    table, best = _as_table(search, runs)
    chosen = search.mechanism_of(table[parameter].iloc[best])
    for message in messages[best]:
        warn(f"With {mechanism_in_words(chosen.description())}: {message}")
    names = _columns(search.goals, search.objective)
    if search.goals and table[[names[name_of(goal.metric)] for goal in search.goals]].isna().all(axis=None):
        table["meets_goals"] = False  # nothing was measured
    row = table.iloc[best]
    value = int(row[parameter]) if search.is_integer else float(row[parameter])
    met = bool(row["meets_goals"])
    found = parameter, chosen, value, met, table, search.goals, search.objective, search.maximize
    return Tuning(*found, {names[metric]: reason for metric, reason in reasons.items()})


def check_tuning(
    mechanism: Any, *, parameter: Any, bounds: Any, goals: Any, objective: Any
) -> tuple[Mechanism, str, float, float, tuple[Goal, ...], Metric]:
    """Return what `tune` searches for, with the bounds as two numbers; raise TypeError or ValueError if it is invalid.

    For commands that check their options before they read data.
    """
    checked = _check_parameter(mechanism, parameter, bounds)
    return *checked, _check_goals(goals), _check_metric(objective, name="objective")


def _tune_users(search: _Search, traces: Traces) -> Tuning:
    """Tune for the traces of each owner alone."""
    owners, numbers = number_owners(traces)
    tables, values, met, warned = [], [], [], 0
    records = np.repeat(numbers, traces.counts)
    with progress_bar(label="tuning", unit="users", total=len(owners)) as bar:
        for number, owner in enumerate(owners):
            runs, messages, _ = _sweep(search, traces.select(records == number), None)
            table, best = _as_table(search, runs)
            warned += bool(messages[best])
            tables.append(table.assign(user=owner))
            values.append(table[search.parameter].iloc[best])
            met.append(bool(table["meets_goals"].iloc[best]))
            bar.update()
    if warned:
        kind = type(search.mechanism).__name__
        warn(f"{kind} dropped data or warned for {counted(warned, 'user')} at the best values.")
    index = owners.rename("user")
    together = pd.concat(tables, ignore_index=True) if tables else _as_table(search, {})[0].assign(user=[])
    return Tuning(
        search.parameter,
        search.mechanism,
        pd.Series(values, index, name=search.parameter, dtype="int64" if search.is_integer else "float64"),
        pd.Series(met, index, name="meets_goals", dtype=bool),
        together[["user", *together.columns.drop("user")]],
        search.goals,
        search.objective,
        search.maximize,
    )


_Runs = dict[float, dict[str, float]]  # values of metrics by their repr, and seconds, by value of the parameter


def _sweep(search: _Search, traces: Traces, bar: tqdm | None) -> tuple[_Runs, list[list[str]], dict[str, str]]:
    """Return the runs in the order of the values, what they warned of, and why metrics have no value, by their repr."""
    groups = index_groups("data", traces, search.metrics(), [search.seed])
    runs: _Runs = {}
    messages: dict[float, list[str]] = {}
    reasons: dict[str, str] = {}
    for value in _values(search, runs):
        runs[value], messages[value], why = _run(search, groups, value)
        reasons |= why
        if bar is not None:
            bar.update()
    order = sorted(runs)
    return {value: runs[value] for value in order}, [messages[value] for value in order], reasons


def _values(search: _Search, runs: _Runs) -> Iterator[float]:
    """Yield the values to try: the grid, then the middles of the open intervals, then those of the widest ones."""
    grid = np.geomspace(search.low, search.high, max(2, math.ceil(_GRID * search.values)))
    yield from dict.fromkeys(_rounded(search, value) for value in grid)
    while len(runs) < search.values:
        order = sorted(runs)
        every = list(pairwise(order))
        near = [every[place] for place in _open_intervals(search, [runs[each] for each in order])]
        fresh = _middles(search, near, runs) or _middles(search, sorted(every, key=_ratio), runs)[:1]
        if not fresh:
            return
        yield from fresh[: search.values - len(runs)]


def _middles(search: _Search, intervals: Sequence[tuple[float, float]], runs: _Runs) -> list[float]:
    """Return the values in the middle of intervals that are wide enough and that were not tried."""
    middles = [_rounded(search, math.sqrt(low * high)) for low, high in intervals if high > _CLOSE * low]
    return [value for value in dict.fromkeys(middles) if value not in runs]


def _ratio(interval: tuple[float, float]) -> float:
    """Return the share of the lower end in the upper one: least for the widest interval on a logarithmic scale."""
    return interval[0] / interval[1]


def _open_intervals(search: _Search, runs: Sequence[dict[str, float]]) -> list[int]:
    """Return the starts of the intervals beside the best run, and around the runs that meet the goals as it does."""
    best, met = _best(search, runs)
    first = last = best
    while first > 0 and met[first - 1] == met[best]:
        first -= 1
    while last < len(runs) - 1 and met[last + 1] == met[best]:
        last += 1
    return [place for place in dict.fromkeys((best - 1, best, first - 1, last)) if 0 <= place < len(runs) - 1]


def _rounded(search: _Search, value: float) -> float:
    """Return a value with three digits, or a whole number if the parameter is one, within the bounds."""
    short = round(value) if search.is_integer else float(f"{value:.{_DIGITS}g}")
    return min(max(short, search.low), search.high)


def _run(search: _Search, groups: list[Group], value: float) -> tuple[dict[str, float], list[str], dict[str, str]]:
    mechanism = search.mechanism_of(value)
    rows, messages = run_groups(groups, mechanism, search.seed if is_random(mechanism) else None)
    found = {row["metric"]: row["value"] for row in rows}
    reasons = {row["metric"]: row["reason"] for row in rows if row["reason"]}
    return found | {"seconds": max(row["seconds"] for row in rows)}, messages, reasons


def _best(search: _Search, runs: Sequence[dict[str, float]]) -> tuple[int, list[bool]]:
    """Return the place of the best run, and whether each run meets all goals that have values."""
    valid = [goal for goal in search.goals if not all(math.isnan(run[name_of(goal.metric)]) for run in runs)]
    keys = []
    for place, run in enumerate(runs):
        shortfall = sum(goal.shortfall(run[name_of(goal.metric)]) for goal in valid)
        objective = run[name_of(search.objective)] * (-1 if search.maximize else 1)
        keys.append((shortfall, math.inf if math.isnan(objective) else round(objective, _DECIMALS), place))
    return min(keys)[2], [shortfall == 0 for shortfall, _, _ in keys]


def _as_table(search: _Search, runs: _Runs) -> tuple[pd.DataFrame, int]:
    """Return the table of runs, and the row of the best."""
    columns = _columns(search.goals, search.objective)
    best, met = _best(search, list(runs.values())) if runs else (-1, [])
    table = pd.DataFrame({search.parameter: list(runs)}, dtype="int64" if search.is_integer else "float64")
    for metric, column in columns.items():
        table[column] = np.array([run[metric] for run in runs.values()], float)
    table["meets_goals"] = np.array(met, bool)
    table["seconds"] = np.array([run["seconds"] for run in runs.values()], float)
    return table, best


def _columns(goals: Sequence[Goal], objective: Metric) -> dict[str, str]:
    """Return the column of each metric by its repr: the name of its class, or the repr where that is not distinct."""
    metrics = {name_of(metric): type(metric).__name__ for metric in (*(goal.metric for goal in goals), objective)}
    names = list(metrics.values())
    return {text: name if names.count(name) == 1 else text for text, name in metrics.items()}


def _fresh_seed() -> int:
    return secrets.randbits(63)


def _check_parameter(mechanism: Any, parameter: Any, bounds: Any) -> tuple[Mechanism, str, float, float]:
    if not isinstance(mechanism, Mechanism):
        raise TypeError(invalid("mechanism", "tune", "a mechanism such as pg.Promesse(200)", mechanism))
    name = check_text(parameter, name="parameter", owner="tune")
    known = mechanism.settings()
    if name not in known:
        kind = type(mechanism).__name__
        others = f"It has {listed(list(known))}." if known else "It has none to tune."
        raise ValueError(f"{kind} has no parameter {name!r} to tune. {others}")
    rule = "a pair of two numbers above zero, the smaller one first, such as (50, 1000)"
    if not isinstance(bounds, Sequence) or isinstance(bounds, str):
        raise TypeError(invalid("bounds", "tune", rule, bounds))
    if len(bounds) != 2:
        raise ValueError(invalid("bounds", "tune", rule, bounds))
    low, high = (check_number(bound, name="bounds", owner="tune", unit="the parameter") for bound in bounds)
    if low >= high:
        raise ValueError(f"The 'bounds' parameter of tune must be {rule}. Got {low:g} and {high:g} instead.")
    _check_bounds(mechanism, name, low, high)
    return mechanism, name, low, high


def _check_bounds(mechanism: Mechanism, name: str, low: float, high: float) -> None:
    """Raise ValueError if a mechanism cannot have the bounds, with those that other parameters allow, if any."""
    is_whole = is_integer(mechanism.settings()[name])

    def fault(bound: float) -> str:
        try:
            mechanism.with_parameter(name, round(bound) if is_whole else bound)
        except ValueError as error:
            return str(error)
        return ""

    first, last = fault(low), fault(high)
    words = first or last
    if not words:
        return
    if f"'{name}' parameter" in words:
        raise ValueError(words)
    reason = re.sub(r"The ('\w+') parameter of (\w+)", r"the parameter \1 of \2", words)
    if first and last:
        remedy = f"Neither {low:g} nor {high:g} fits: take other bounds, or change the other parameter."
        raise ValueError(f"The bounds do not fit the other parameters of the mechanism: {reason} {remedy}")
    allowed, other = (high, low) if first else (low, high)
    for _ in range(60):
        middle = (allowed + other) / 2
        allowed, other = (allowed, middle) if fault(middle) else (middle, other)
    allowed = round(allowed) if is_whole else allowed
    option, pair = ("--from", (allowed, high)) if first else ("--to", (low, allowed))
    raise ValueError(
        f"The bounds do not fit the other parameters of the mechanism: {reason} "
        f"Specify tune(bounds=({pair[0]:g}, {pair[1]:g})) ({option} {allowed:g})."
    )


def _check_goals(goals: Any) -> tuple[Goal, ...]:
    rule = 'a list of tuples such as (pg.PoiRetrieval(), "<=", 1)'
    if not isinstance(goals, Sequence) or isinstance(goals, str):
        raise TypeError(invalid("goals", "tune", rule, goals))
    if not goals:
        raise ValueError(invalid("goals", "tune", rule, goals))
    checked = []
    for goal in goals:
        if not isinstance(goal, Sequence) or isinstance(goal, str) or len(goal) != 3:
            raise TypeError(invalid("goals", "tune", rule, goal))
        metric, sign, limit = goal
        if not isinstance(sign, str) or sign not in SIGNS:
            raise TypeError(invalid("goals", "tune", 'tuples with the sign "<=" or ">="', sign))
        if isinstance(limit, bool) or not isinstance(limit, (int, float, np.number)) or not math.isfinite(limit):
            raise ValueError(invalid("goals", "tune", f"{rule}, with a finite limit", limit))
        low, high = _check_metric(metric, name="goals").bounds
        if not low <= limit <= high:
            reachable = f"from {low:g} to {high:g}" if math.isfinite(high) else f"at least {low:g}"
            raise ValueError(
                f"The limit of {metric.label} must be {reachable}, as its values are. Got {limit:g} instead."
            )
        checked.append(Goal(metric, sign, float(limit)))
    return tuple(checked)


def _check_metric(metric: Any, *, name: str) -> Metric:
    if not isinstance(metric, Metric):
        raise TypeError(invalid(name, "tune", "a metric such as pg.PoiRetrieval()", metric))
    return metric
