"""A second paper: geo-indistinguishability against POIs of whole traces (MOST 2014), its tables with ours beside them.

Primault, Ben Mokhtar, Lauradoux, Brunie: Differentially Private Location Privacy in Practice. MOST 2014.

- `reproduce` (with `paper="most2014"` in `promesse_geo.reproduce`) computes all tables from raw data
- `table_3` counts the points of interest, `table_6` is their recall, `table_7` the re-identification of users
"""

import json
import math
import time as clock
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from promesse_geo.evaluation.arguments import check_datasets
from promesse_geo.evaluation.results import provenance
from promesse_geo.evaluation.runs import as_results
from promesse_geo.mechanisms import GeoIndistinguishability
from promesse_geo.messages import invalid
from promesse_geo.metrics.attacks.poi_retrieval import match_nearest_pois
from promesse_geo.metrics.attacks.reidentification import identify_users
from promesse_geo.metrics.pairing import pair_by_user
from promesse_geo.paper.tables import beside, of_class
from promesse_geo.preprocess.calendar import count_on_days, first_days
from promesse_geo.stays import Pois, find_pois
from promesse_geo.stays.places import merge_stays
from promesse_geo.threads import progress_bar
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_zone

TABLES = {
    "Table III": "Points of interest of the raw data",
    "Table VI": "Points of interest found in noisy data (recall in %; 0 is best for privacy)",
    "Table VII": "Users re-identified by the points of interest of noisy data (%; 0 is best for privacy)",
}
"""The tables of the paper that are reproduced, with their titles."""

DIAMETER = 250.0
"""Metres: greatest distance between two records of a stay in the raw data."""

STAY = 3_600_000_000_000  # an hour in nanoseconds
_RECALL, _IDENTIFIED = "PoiRecall", "PoiSetReidentification"  # names of the metrics in results
_BUSY, _DAYS = 480, 30  # Geolife: days with more records, and the number of them per user


class Level(NamedTuple):
    """A level of noise.

    Parameters
    ----------
    label : str
        Name in the tables.
    mechanism : GeoIndistinguishability
        The mechanism, without a seed.
    diameters : dict of str to float
        Metres: diameter of stays in the noisy data by data set; for others that of Cabspotting.
    """

    label: str
    mechanism: GeoIndistinguishability
    diameters: dict[str, float]


LEVELS = tuple(
    Level(f"Geo-I, ε = {epsilon}", GeoIndistinguishability(epsilon), {"Cabspotting": first, "Geolife": second})
    for epsilon, first, second in ((0.00139, 2000.0, 2500.0), (0.00358, 1000.0, 1200.0), (0.00693, 700.0, 600.0))
)
"""The mechanisms of the experiment, from the strongest noise to the weakest."""

_NAN = math.nan
TABLE_3 = {"points of interest": (1_111, 258, _NAN)}
TABLE_6, TABLE_7 = (
    dict(zip((level.label for level in LEVELS), values, strict=True))
    for values in (
        ((71.01, 60.57, _NAN), (71.54, 70.56, _NAN), (73.31, 71.94, _NAN)),
        ((5.79, 63.04, _NAN), (8.12, 82.90, _NAN), (9.66, 89.63, _NAN)),
    )
)  # by row, then by data set


def table_3(datasets: Mapping[str, gpd.GeoDataFrame | Traces]) -> pd.DataFrame:
    """Count the points of interest of raw data, as Table III does.

    Stays of 250 m and an hour are merged by density; see `PoiExtractor`.

    Parameters
    ----------
    datasets : mapping of str to geopandas.GeoDataFrame or Traces
        Raw data by name, one trace per user: the paper's name of a data set, or any other.

    Returns
    -------
    pandas.DataFrame
        As of `promesse_geo.paper.table_1`.

    Raises
    ------
    TypeError, ValueError, KeyError
        As of `promesse_geo.paper.table_1`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.paper.most2014.table_3({"city": pg.make_city(users=2, days=4)}).ours.item() >= 2
    True
    """
    checked = check_datasets(datasets, owner="table_3")
    counts = {name: len(_places(as_traces(data), DIAMETER)) for name, data in checked.items()}
    return _count_table(counts)


def table_6(results: pd.DataFrame) -> pd.DataFrame:
    """Return the recall of points of interest, as Table VI.

    Each point of interest of a user's noisy data retrieves the nearest true one of the same user. The recall of a user
    is the share of true ones that are retrieved, and the value its mean over the users that have any.

    Parameters
    ----------
    results : pandas.DataFrame
        The results of the reproduction.

    Returns
    -------
    pandas.DataFrame
        As of `promesse_geo.paper.table_2`.

    Raises
    ------
    TypeError, ValueError
        As of `promesse_geo.paper.table_2`.
    """
    return of_class(results, _RECALL, TABLE_6, owner="table_6", labels=_LABELS)


def table_7(results: pd.DataFrame) -> pd.DataFrame:
    """Return the share of re-identified users, as Table VII.

    The attacker knows the true points of interest of all users, and compares sets of them as `Reidentification` does.
    The value is the share of identified users among those with true points of interest.

    Parameters
    ----------
    results : pandas.DataFrame
        The results of the reproduction.

    Returns
    -------
    pandas.DataFrame
        As of `promesse_geo.paper.table_2`.

    Raises
    ------
    TypeError, ValueError
        As of `promesse_geo.paper.table_2`.
    """
    return of_class(results, _IDENTIFIED, TABLE_7, owner="table_7", labels=_LABELS)


def is_result(results: pd.DataFrame) -> bool:
    """Whether results are of this paper."""
    names = set(results["metric_name"]) if "metric_name" in results else set()
    return bool(names) and names <= {_RECALL, _IDENTIFIED}


def select_busy_days(traces: Traces, *, tz: Any) -> Traces:
    """Select the part of Geolife that the paper used.

    Parameters
    ----------
    traces : Traces
        One trace per user.
    tz : str or tzinfo
        Time zone in which days begin.

    Returns
    -------
    Traces
        The first 30 days with more than 480 records of each user that has as many.
    """
    zone = check_zone(tz, name="tz", owner="select_busy_days")
    busy = traces.select(count_on_days(traces, zone) > _BUSY)
    return first_days(busy, days=_DAYS, min_days=_DAYS, tz=tz)


def run(name: str, traces: Traces, *, seeds: Sequence[int], n_jobs: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run the experiment on one data set.

    Parameters
    ----------
    name : str
        Name of the data set.
    traces : Traces
        Raw data, one trace per user.
    seeds : sequence of int
        Seeds of the noise.
    n_jobs : int
        Number of processes, as in joblib.

    Returns
    -------
    table : pandas.DataFrame
        Table III.
    results : pandas.DataFrame
        As of `evaluate`.
    """
    known = _places(traces, DIAMETER)
    runs = [(level, seed) for level in LEVELS for seed in seeds]
    jobs = (delayed(_attack)(name, traces, known, level, seed) for level, seed in runs)
    rows: list[dict[str, Any]] = []
    with progress_bar(label="attacking", unit="runs", total=len(runs)) as bar:
        for found in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
            rows += found
            bar.update()
    about = {
        "mechanisms": [repr(level.mechanism) for level in LEVELS],
        "metrics": list(dict.fromkeys(row["metric"] for row in rows)),
        "seeds": list(seeds),
    }
    results = as_results(rows)
    results.attrs.update(provenance({name: traces}, about))
    return _count_table({name: len(known)}), results


_LABELS = {repr(level.mechanism): level.label for level in LEVELS}


def _count_table(counts: Mapping[str, int]) -> pd.DataFrame:
    rows = [(name, row, float(count), _NAN) for name, count in counts.items() for row in TABLE_3]
    return beside(rows, TABLE_3, unit="")


def _places(traces: Traces, diameter: float) -> Pois:
    """Find stays of an hour, merged by density."""
    stays = find_pois(traces, diameter=diameter, duration=STAY)
    return merge_stays(stays, traces, diameter=diameter, merge="density")[0]


def _attack(name: str, traces: Traces, known: Pois, level: Level, seed: int) -> list[dict[str, Any]]:
    """Add noise and return the rows of both metrics."""
    diameter = level.diameters.get(name, level.diameters["Cabspotting"])
    begin = clock.perf_counter()
    noisy = GeoIndistinguishability(level.mechanism.epsilon, seed=seed).protect(traces)
    common = {
        "dataset": name,
        "mechanism": repr(level.mechanism),
        "mechanism_name": type(level.mechanism).__name__,
        "parameters": json.dumps(level.mechanism.description()["parameters"]),
        "unit": "%",
        "seed": seed,
        "seconds": clock.perf_counter() - begin,
    }
    values = _values(traces, noisy, known, _places(noisy, diameter))
    labels = {_RECALL: "recall of POIs", _IDENTIFIED: "re-identification"}
    return [
        common | {"metric": f"{metric}(diameter={diameter})", "metric_name": metric, "label": label, "value": value}
        for (metric, label), value in zip(labels.items(), values, strict=True)
    ]


def _values(traces: Traces, noisy: Traces, known: Pois, found: Pois) -> tuple[float, float]:
    """Return the mean recall and the share of identified users, in % of the users with known places."""
    pairs, users = pair_by_user(traces, noisy), len(traces)
    before, after = (known.points, known.offsets(users)), (found.points, found.offsets(len(noisy)))
    counts = np.diff(before[1])
    if not counts.any():
        return _NAN, _NAN
    retrieved = np.unique(match_nearest_pois(pairs, before, after, threshold=None))
    matched = np.bincount(known.traces[retrieved[retrieved >= 0]], minlength=users)
    _, nearest, is_true = identify_users(pairs, before, after)
    identified = is_true / np.maximum(nearest, 1)
    has_any = counts > 0
    return 100 * float(np.mean(matched[has_any] / counts[has_any])), 100 * float(identified[has_any].mean())


def check_choices(*, mdc: Any, min_days: Any, attacks: bool) -> None:
    """Raise ValueError if a parameter of `reproduce` does not apply to this paper."""
    for name, value, unset in (("mdc", mdc, None), ("min_days", min_days, None), ("attacks", attacks, False)):
        if value is not unset:
            raise ValueError(invalid(name, "reproduce", f"{unset} with paper='most2014', which does not use it", value))
