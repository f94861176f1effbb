"""The tables that the paper published, the mechanisms behind them, and the same tables with our values beside them.

Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data with High
Utility. TrustCom 2015, Tables I to VI.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import geopandas as gpd
import pandas as pd

from promesse_geo.evaluation.arguments import check_datasets
from promesse_geo.evaluation.results import complete_results
from promesse_geo.mechanisms import GeoIndistinguishability, Mechanism, Promesse, WaitForMe, recommended
from promesse_geo.messages import listed
from promesse_geo.preprocess import describe
from promesse_geo.traces.traces import Traces

PAPER_TABLES = {
    "Table I": "The prepared data sets",
    "Table II": "F-scores of POI retrieval (%; 0 is best for privacy)",
    "Table III": "Spatial errors (m; 0 is best for utility)",
    "Table IV": "Range query distortions (%; 0 is best for utility)",
    "Table V": "Execution times: protecting and writing as text (s)",
    "Table VI": "Compression degrees (protected records in % of the original ones)",
}
"""The paper's tables with their titles."""

DATASETS = ("Cabspotting", "Geolife", "MDC")

ZONES = {"Cabspotting": "America/Los_Angeles", "Geolife": "Asia/Shanghai", "MDC": "Europe/Zurich"}
"""Time zones in which days begin at midnight."""

MIN_DAYS = 21
"""Least number of days of data per user, which the sizes in Table I require."""


class Row(NamedTuple):
    """A mechanism of the tables.

    Parameters
    ----------
    label : str
        Name in the tables.
    mechanism : Mechanism
        The mechanism.
    kind : str
        What the adaptive attacker knows of it; see `AdaptivePoiRetrieval`.
    without : tuple of str
        Data sets that it is not run on.
    """

    label: str
    mechanism: Mechanism
    kind: str
    without: tuple[str, ...] = ()


def _promesse(epsilon: int, variant: str = "polyline") -> Row:
    label = f"Promesse, ε = {epsilon} m" + ("" if variant == "polyline" else ", pseudocode")
    return Row(label, Promesse(epsilon, variant=variant), "promesse", ("Cabspotting",) if epsilon == 50 else ())


def _noise(level: int, radius: int) -> Row:
    mechanism = GeoIndistinguishability.from_level(level, radius=radius)
    return Row(f"Geo-I, ε = ln({level})/{radius}", mechanism, "geo-indistinguishability")


_PROGRAM = Row("Wait for Me, k = 2, δ = 200 m", WaitForMe.v1_1(seed=1), "wait-for-me")

ROWS = (
    *(_promesse(epsilon) for epsilon in (50, 100, 200, 500)),
    *(_promesse(epsilon, "pseudocode") for epsilon in (50, 100, 200, 500)),
    *(_noise(level, radius) for level, radius in ((10, 100), (6, 200), (4, 200), (2, 200))),
    _PROGRAM,
    Row(f"{_PROGRAM.label}, members tested", WaitForMe(), "wait-for-me"),
)
"""The mechanisms of the experiment. The paper does not say which variant of its algorithm it measured: both are here.
Its Wait for Me was the program of 2010; the last row is the published algorithm, with the radius test fixed.
"""


@dataclass(frozen=True)
class Unprotected(Mechanism):
    """Return the data as it is: what attackers find in raw data."""

    def _protect(self, traces: Traces) -> Traces:
        return traces


RAW = Row("raw data", Unprotected(), "none")
"""Raw data, to compare with in the tables of metrics that the paper does not have."""

RECOMMENDED = (
    Row("recommended for fleets", recommended("fleet"), "promesse"),
    Row("recommended for people", recommended("people"), "promesse"),
)
"""What we recommend, in the same tables."""

TIMED = (_promesse(200), _noise(4, 200), _PROGRAM)
"""The mechanisms that Table V times; the paper does not say at which epsilon."""

_NAN = math.nan

TABLE_1 = {
    "records": (8_986_419, 3_804_788, 1_124_454),
    "traces": (5_503, 2_475, 4_693),
    "mean duration (h)": (32 + 44 / 60, 3 + 4 / 60, 3 + 15 / 60),
    "longest duration (h)": (480, 46, 480),
    "sampling interval (s)": (72, 7, 32),
}

TABLE_5 = {"Promesse": (210, 25, 15), "Geo-I": (147, 64, 21), "Wait for Me": (605 * 60, 70 * 60, 37 * 60)}

_PER_METRIC = {
    "Promesse, ε = 50 m": ((_NAN, 17.22, 13.91), (_NAN, 0, 0), (_NAN, 15.14, 25.4), (_NAN, 51, 206)),
    "Promesse, ε = 100 m": ((0, 11.06, 7.94), (0, 0, 0), (6.77, 14.83, 25.23), (369, 25, 101)),
    "Promesse, ε = 200 m": ((0, 2.27, 1.01), (0, 0, 0), (6, 15.1, 27), (177, 12, 48)),
    "Promesse, ε = 500 m": ((0, 0, 0), (0, 0, 0), (6.9, 18.97, 31.23), (64, 4, 18)),
    "Geo-I, ε = ln(10)/100": ((30.72, 42.38, 55.95), (24, 45, 52), (0.7, 7.58, 3.08), (100, 100, 100)),
    "Geo-I, ε = ln(6)/200": ((6.33, 9.41, 16.31), (50, 120, 140), (2.46, 20.43, 10.36), (100, 100, 100)),
    "Geo-I, ε = ln(4)/200": ((3.53, 4.5, 9), (62, 156, 183), (3.39, 27.24, 13.47), (100, 100, 100)),
    "Geo-I, ε = ln(2)/200": ((1.49, 0.85, 0.54), (113, 325, 378), (7.21, 60.46, 29.98), (100, 100, 100)),
    "Wait for Me, k = 2, δ = 200 m": ((0, 0, 0), (13_046, 69_676, 19_222), (102, 102, 94), (106, 76, 99)),
}  # by row, then by metric (Tables II, III, IV, VI), then by data set

TABLE_2, TABLE_3, TABLE_4, TABLE_6 = (
    {row: values[number] for row, values in _PER_METRIC.items()} for number in range(4)
)


_METRICS = ("PoiRetrieval", "SpatialError", "RangeQueryDistortion", "Compression")  # of the paper
_UNITS = {"records": 1, "traces": 1, "mean_duration": pd.Timedelta("1h"), "longest_duration": pd.Timedelta("1h")}
_UNITS |= {"sampling_interval": pd.Timedelta("1s")}  # of the rows of Table I


def table_1(datasets: Mapping[str, gpd.GeoDataFrame | Traces]) -> pd.DataFrame:
    """Describe prepared data sets, as Table I does.

    Parameters
    ----------
    datasets : mapping of str to geopandas.GeoDataFrame or Traces
        Prepared data by name: the paper's name of a data set, or any other.

    Returns
    -------
    pandas.DataFrame
        One row per value: `dataset`, `row`, `paper` (missing for other data), `ours`, `spread` (missing), `ratio`
        (ours to the paper's), `unit`.

    Raises
    ------
    TypeError, ValueError, KeyError
        If it is no mapping of names to data sets, or a data set cannot be read.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.paper.table_1({"city": pg.make_city(users=2, days=1)}).row.tolist()[:2]
    ['records', 'traces']
    """
    ours = []
    for name, data in check_datasets(datasets, owner="table_1").items():
        summary = describe(data)
        values = (float(summary[key] / unit) for key, unit in _UNITS.items())
        ours += [(name, row, value, math.nan) for row, value in zip(TABLE_1, values, strict=True)]
    return beside(ours, TABLE_1, unit="")


def table_2(results: pd.DataFrame) -> pd.DataFrame:
    """Return the F-scores of POI retrieval, as Table II.

    Parameters
    ----------
    results : pandas.DataFrame
        What `evaluate` returned.

    Returns
    -------
    pandas.DataFrame
        One row per data set and mechanism: `dataset`, `row` (the mechanism), `paper` (missing where it has none),
        `ours` (mean over seeds), `spread` (standard deviation over seeds), `ratio` (ours to the paper's), `unit`.

    Raises
    ------
    TypeError, ValueError
        If the table is no result of `evaluate`, or holds several of these metrics, which no row can combine.
    """
    return of_class(results, "PoiRetrieval", TABLE_2, owner="table_2")


def table_3(results: pd.DataFrame) -> pd.DataFrame:
    """Return the spatial errors, as Table III.

    Parameters
    ----------
    results : pandas.DataFrame
        What `evaluate` returned.

    Returns
    -------
    pandas.DataFrame
        As of `table_2`.

    Raises
    ------
    TypeError, ValueError
        As of `table_2`.
    """
    return of_class(results, "SpatialError", TABLE_3, owner="table_3")


def table_4(results: pd.DataFrame) -> pd.DataFrame:
    """Return the range query distortions, as Table IV.

    Parameters
    ----------
    results : pandas.DataFrame
        What `evaluate` returned.

    Returns
    -------
    pandas.DataFrame
        As of `table_2`.

    Raises
    ------
    TypeError, ValueError
        As of `table_2`.
    """
    return of_class(results, "RangeQueryDistortion", TABLE_4, owner="table_4")


def table_5(times: pd.DataFrame) -> pd.DataFrame:
    """Return the run times, as Table V.

    Parameters
    ----------
    times : pandas.DataFrame
        Columns `dataset`, `row` (the mechanism) and `seconds` of protecting and writing as text.

    Returns
    -------
    pandas.DataFrame
        As of `table_2`, without `spread`.
    """
    rows = [(dataset, row, seconds, math.nan) for dataset, row, seconds in times.itertuples(index=False)]
    return beside(rows, TABLE_5, unit="s")


def table_6(results: pd.DataFrame) -> pd.DataFrame:
    """Return the compression degrees, as Table VI.

    Parameters
    ----------
    results : pandas.DataFrame
        What `evaluate` returned.

    Returns
    -------
    pandas.DataFrame
        As of `table_2`.

    Raises
    ------
    TypeError, ValueError
        As of `table_2`.
    """
    return of_class(results, "Compression", TABLE_6, owner="table_6")


def beyond(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return one table for each metric that the paper does not have.

    Parameters
    ----------
    results : pandas.DataFrame
        What `evaluate` returned.

    Returns
    -------
    dict of str to pandas.DataFrame
        Tables as of `table_2`, by the label of the metric up to its first comma, such as "Adaptive attack". Raw data
        is the first row. If the metric states what guessing reaches, the column `guess` has its mean. Where the label
        would be the title of two tables, or of one of the paper's, it is the whole label, or the metric with its
        parameters. Metrics of the same label are in one table if no row combines them.

    Raises
    ------
    TypeError
        If the table is no result of `evaluate`.
    """
    complete = complete_results(results, owner="beyond")
    others = complete[~complete.metric_name.isin(_METRICS)]
    groups: list[pd.DataFrame] = []
    for _, group in others.groupby(["metric_name", "label", "unit"], sort=False):
        groups += [rows for _, rows in group.groupby("metric", sort=False)] if _is_mixed(group) else [group]
    titles = _titles([(str(group.label.iloc[0]), str(group.metric.iloc[0])) for group in groups])
    return {title: _of_metric(group, {}) for title, group in zip(titles, groups, strict=True)}


def _is_mixed(results: pd.DataFrame) -> bool:
    """Whether several metrics have values of the same data set and mechanism, which no row can combine."""
    distinct = results[["dataset", "mechanism", "metric"]].drop_duplicates()
    return bool(distinct.duplicated(["dataset", "mechanism"]).any())


def _titles(metrics: Sequence[tuple[str, str]]) -> list[str]:
    """Return a title of its own for each metric of a label and a repr, from the label if possible."""
    options = [
        (label.partition(",")[0].strip(), label.strip(), metric, f"Metric {metric}") for label, metric in metrics
    ]
    taken = Counter(["", *(name.casefold() for name in PAPER_TABLES)])
    for choices in options:
        taken.update({choice.casefold() for choice in choices})
    chosen = [next((each for each in choices if taken[each.casefold()] == 1), choices[-1]) for choices in options]
    return [
        title if title in choices[2:] else title[:1].upper() + title[1:]
        for title, choices in zip(chosen, options, strict=True)
    ]


def of_class(
    results: pd.DataFrame,
    name: str,
    paper: Mapping[str, Sequence[float]],
    *,
    owner: str,
    labels: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return the table of the only metric of a class.

    `paper` has the published values of each row by data set, `labels` the rows of mechanisms by their repr; by default
    those of `ROWS`.
    """
    complete = complete_results(results, owner=owner)
    chosen = complete[complete.metric_name == name]
    several = sorted(set(chosen.metric))
    if _is_mixed(chosen):
        raise ValueError(
            f"The results hold several metrics {name!r}: {listed(several)}. Choose one, as in "
            f"results[results.metric == {several[0]!r}]."
        )
    return _of_metric(chosen, paper, labels)


def _of_metric(
    chosen: pd.DataFrame, paper: Mapping[str, Sequence[float]], labels: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return one row per data set and mechanism of a metric: the mean over seeds and the standard deviation."""
    labels = {repr(row.mechanism): row.label for row in (RAW, *ROWS, *RECOMMENDED)} if labels is None else labels
    groups = chosen.groupby(["dataset", "mechanism"], sort=False)
    means = groups.value.agg(["mean", "std"]).assign(guess=groups.guess.mean() if "guess" in chosen else math.nan)
    order = {dataset: number for number, dataset in enumerate(chosen.dataset.unique())}
    means = means.loc[sorted(means.index, key=lambda key: (order[key[0]], key[1] != repr(RAW.mechanism)))]
    rows = [
        (dataset, labels.get(mechanism, mechanism), mean, spread)
        for (dataset, mechanism), mean, spread, _ in means.itertuples()
    ]
    table = beside(rows, paper, unit=str(chosen.unit.iloc[0]) if len(chosen) else "")
    if means.guess.notna().any():
        table["guess"] = means.guess.to_numpy()
    return table


def beside(
    ours: Iterable[tuple[str, str, float, float]], paper: Mapping[str, Sequence[float]], *, unit: str
) -> pd.DataFrame:
    """Put the paper's values, by row and data set, beside ours: data set, row, mean and standard deviation."""
    rows = []
    for dataset, row, value, spread in ours:
        is_published = row in paper and dataset in DATASETS
        theirs = float(paper[row][DATASETS.index(dataset)]) if is_published else math.nan
        rows.append((dataset, row, theirs, value, spread, value / theirs if theirs else math.nan, unit))
    texts, numbers = ["dataset", "row"], ["paper", "ours", "spread", "ratio"]
    table = pd.DataFrame(rows, columns=[*texts, *numbers, "unit"])
    return table.astype(dict.fromkeys([*texts, "unit"], "str") | dict.fromkeys(numbers, "float64"))
