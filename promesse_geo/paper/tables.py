"""The paper's tables, one function each: its figure, ours, and the ratio."""

import math
from collections.abc import Iterable, Mapping, Sequence

import geopandas as gpd
import pandas as pd

from promesse_geo.metrics import (
    AdaptivePoiRetrieval,
    AreaCoverage,
    Compression,
    Metric,
    PoiRetrieval,
    RangeQueryDistortion,
    Reidentification,
    Residue,
    SpatialError,
)
from promesse_geo.paper import published
from promesse_geo.preprocess import describe
from promesse_geo.traces.traces import Traces

COLUMNS = ("dataset", "row", "paper", "ours", "spread", "ratio", "unit")
_HOUR = pd.Timedelta("1h")
_SECOND = pd.Timedelta("1s")


def table_1(datasets: Mapping[str, gpd.GeoDataFrame | Traces]) -> pd.DataFrame:
    """Return the figures about prepared data sets.

    Parameters
    ----------
    datasets : mapping of str to geopandas.GeoDataFrame or Traces
        Prepared data by the paper's name of it, or any other name.

    Returns
    -------
    pandas.DataFrame
        One row a figure: `dataset`, `row`, `paper` (missing for other data), `ours`, `spread` (missing), `ratio`
        of ours to the paper's, and `unit`.
    """
    ours = []
    for name, data in datasets.items():
        figures = describe(data)
        values = (
            figures["records"],
            figures["traces"],
            figures["mean_duration"] / _HOUR,
            figures["longest_duration"] / _HOUR,
            figures["sampling_interval"] / _SECOND,
        )
        ours += [(name, row, float(value), math.nan) for row, value in zip(published.TABLE_1, values, strict=True)]
    return _beside(ours, published.TABLE_1, unit="")


def table_2(results: pd.DataFrame) -> pd.DataFrame:
    """Return F-scores of the retrieval of points of interest; results are those of `evaluate`."""
    return _from_results(results, PoiRetrieval, published.TABLE_2)


def table_3(results: pd.DataFrame) -> pd.DataFrame:
    """Return spatial errors; results are those of `evaluate`."""
    return _from_results(results, SpatialError, published.TABLE_3)


def table_4(results: pd.DataFrame) -> pd.DataFrame:
    """Return distortions of range queries; results are those of `evaluate`."""
    return _from_results(results, RangeQueryDistortion, published.TABLE_4)


def table_5(times: pd.DataFrame) -> pd.DataFrame:
    """Return execution times: `dataset`, `row` and `seconds` of protecting and writing as text."""
    rows = [(dataset, row, seconds, math.nan) for dataset, row, seconds in times.itertuples(index=False)]
    return _beside(rows, published.TABLE_5, unit="s")


def table_6(results: pd.DataFrame) -> pd.DataFrame:
    """Return compression degrees; results are those of `evaluate`."""
    return _from_results(results, Compression, published.TABLE_6)


def beyond(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return what stronger attacks find, and how much of the covered area stays; the paper has no such figures."""
    looks: dict[str, type[Metric]] = {
        "Adaptive attack": AdaptivePoiRetrieval,
        "Residue attack": Residue,
        "Re-identification": Reidentification,
        "Area coverage": AreaCoverage,
    }
    return {name: _from_results(results, metric, {}) for name, metric in looks.items()}


def _from_results(results: pd.DataFrame, metric: type[Metric], paper: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """One row for each data set and mechanism: the mean over seeds, and how far they spread."""
    chosen = results[results.metric_name == metric.__name__]
    labels = {repr(row.mechanism): row.label for row in published.ROWS}
    grouped = chosen.groupby(["dataset", "mechanism"], sort=False).value.agg(["mean", "std"])
    rows = [
        (dataset, labels.get(mechanism, mechanism), mean, spread)
        for (dataset, mechanism), mean, spread in grouped.itertuples()
    ]
    return _beside(rows, paper, unit=metric.unit)


def _beside(
    ours: Iterable[tuple[str, str, float, float]], paper: Mapping[str, Sequence[float]], *, unit: str
) -> pd.DataFrame:
    rows = []
    for dataset, row, value, spread in ours:
        known = row in paper and dataset in published.DATASETS
        theirs = float(paper[row][published.DATASETS.index(dataset)]) if known else math.nan
        rows.append((dataset, row, theirs, value, spread, value / theirs if theirs else math.nan, unit))
    return pd.DataFrame(rows, columns=list(COLUMNS))
