"""The paper's tables, one function each: its value, ours, and the ratio."""

import math
from collections.abc import Iterable, Mapping, Sequence

import geopandas as gpd
import pandas as pd

from promesse_geo.paper import published
from promesse_geo.preprocess import describe
from promesse_geo.traces.traces import Traces

COLUMNS = ("dataset", "row", "paper", "ours", "spread", "ratio", "unit")
_METRICS = ("PoiRetrieval", "SpatialError", "RangeQueryDistortion", "Compression")  # of the paper
_HOUR = pd.Timedelta("1h")
_SECOND = pd.Timedelta("1s")


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

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.paper.table_1({"city": pg.make_city(users=2, days=1)}).row.tolist()[:2]
    ['records', 'traces']
    """
    ours = []
    for name, data in datasets.items():
        summary = describe(data)
        values = (
            summary["records"],
            summary["traces"],
            summary["mean_duration"] / _HOUR,
            summary["longest_duration"] / _HOUR,
            summary["sampling_interval"] / _SECOND,
        )
        ours += [(name, row, float(value), math.nan) for row, value in zip(published.TABLE_1, values, strict=True)]
    return _beside(ours, published.TABLE_1, unit="")


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
    """
    return _of_metric(results, "PoiRetrieval", published.TABLE_2)


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
    """
    return _of_metric(results, "SpatialError", published.TABLE_3)


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
    """
    return _of_metric(results, "RangeQueryDistortion", published.TABLE_4)


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
    return _beside(rows, published.TABLE_5, unit="s")


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
    """
    return _of_metric(results, "Compression", published.TABLE_6)


def beyond(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return one table for each metric that the paper does not have.

    Parameters
    ----------
    results : pandas.DataFrame
        What `evaluate` returned.

    Returns
    -------
    dict of str to pandas.DataFrame
        Tables as of `table_2`, by the label of the metric up to its first comma, such as "Adaptive attack".
    """
    others = results[~results.metric_name.isin(_METRICS)]
    found = {}
    for name, label in others.groupby("metric_name", sort=False).label.first().items():
        title = label.partition(",")[0]
        found[title[:1].upper() + title[1:]] = _of_metric(results, str(name), {})
    return found


def _of_metric(results: pd.DataFrame, name: str, paper: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """Return one row per data set and mechanism: the mean over seeds and the standard deviation."""
    chosen = results[results.metric_name == name]
    labels = {repr(row.mechanism): row.label for row in published.ROWS}
    grouped = chosen.groupby(["dataset", "mechanism"], sort=False).value.agg(["mean", "std"])
    rows = [
        (dataset, labels.get(mechanism, mechanism), mean, spread)
        for (dataset, mechanism), mean, spread in grouped.itertuples()
    ]
    return _beside(rows, paper, unit=str(chosen.unit.iloc[0]) if len(chosen) else "")


def _beside(
    ours: Iterable[tuple[str, str, float, float]], paper: Mapping[str, Sequence[float]], *, unit: str
) -> pd.DataFrame:
    """Put the paper's values beside ours."""
    rows = []
    for dataset, row, value, spread in ours:
        is_published = row in paper and dataset in published.DATASETS
        theirs = float(paper[row][published.DATASETS.index(dataset)]) if is_published else math.nan
        rows.append((dataset, row, theirs, value, spread, value / theirs if theirs else math.nan, unit))
    return pd.DataFrame(rows, columns=list(COLUMNS))
