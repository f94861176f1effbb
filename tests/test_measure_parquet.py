"""Folders of Parquet are measured in bounded memory, with the values of one table in memory."""

import inspect
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from instances import METRICS

import promesse_geo as pg
from promesse_geo.bulk import measuring
from promesse_geo.metrics.base import Metric

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*could not be protected", "ignore:In .* files overlap in time", "ignore:.*undefined distortion"
)


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=7, days=3, seed=6, recorder="phone")


@pytest.fixture(scope="module")
def safe(city):
    with warnings.catch_warnings(action="ignore"):
        return city[city["user"] != "user-003"].promesse.smooth(150)


@pytest.fixture(scope="module")
def folders(city, safe, tmp_path_factory):
    """Both data sets as files that each hold all users."""
    folder = tmp_path_factory.mktemp("both")
    for name, frame in (("original", city), ("safe", safe)):
        (folder / name).mkdir()
        for number in range(3):
            pg.write(frame.iloc[number::3], folder / name / f"{number}.parquet")
    return folder / "original", folder / "safe"


@pytest.fixture(params=[1, 4])
def buckets(request, monkeypatch):
    monkeypatch.setattr(measuring, "count_buckets", lambda records, memory, workers: request.param)
    monkeypatch.setattr(measuring, "chunk_size", lambda memory, workers: 5_000)


DIVISIBLE = [
    pg.PoiRetrieval(),
    pg.PoiRetrieval(diameter=100, duration="5min"),
    pg.Residue(),
    pg.AreaCoverage(),
    pg.Compression(),
    pg.RangeQueryDistortion(300, seed=4),
]
DIVISIBLE += [each for each in METRICS if each.is_per_user and type(each) not in set(map(type, DIVISIBLE))]


def test_values_are_those_in_memory(city, safe, folders, buckets):
    found = pg.measure_parquet(*folders, DIVISIBLE)
    expected = pg.measure(city, safe, DIVISIBLE)
    assert found["metric"].tolist() == expected["metric"].tolist()
    assert found["unit"].tolist() == expected["unit"].tolist()
    assert found["value"].tolist() == expected["value"].tolist()


def test_the_mean_over_records_is_equal_but_for_its_last_digits(city, safe, folders, buckets):
    metric = pg.SpatialError()
    found = pg.measure_parquet(*folders, [metric])["value"][0]
    assert found == pytest.approx(metric.measure(city, safe), rel=1e-12)


def test_metrics_that_know_the_data_of_each_user_alone_are_those_tested():
    kinds = {getattr(pg, name) for name in pg.__all__}
    metrics = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Metric) and kind is not Metric}
    divisible = {kind for kind in metrics if kind.is_per_user or kind.measure_parts is not Metric.measure_parts}
    assert divisible == {type(metric) for metric in DIVISIBLE} | {pg.SpatialError}


def test_queries_of_the_caller_are_used(city, safe, folders, buckets):
    queries = pg.RangeQueryDistortion(50, seed=1).detail(city, safe)
    metric = pg.RangeQueryDistortion(queries[["half_side", "start", "end", "geometry"]])
    assert pg.measure_parquet(*folders, [metric])["value"][0] == metric.measure(city, safe)


@pytest.fixture(scope="module")
def walks(tmp_path_factory):
    """Parts of two users with a column of trips, and what of them is protected: as frames, and as tables of a kind."""
    folder = tmp_path_factory.mktemp("walks")
    with warnings.catch_warnings(action="ignore"):
        city = pg.make_city(users=2, days=1, recorder="phone").to_crs(32631)
        city["trip"] = np.arange(len(city)) // 9
        safe = city.promesse(segment="trip").geo_indistinguishability(0.05, seed=1)
    for name, frame, axes in (
        ("x", city, ["x", "y"]),
        ("E", city, ["E", "N"]),
        ("lon", city.to_crs(4326), ["lon", "lat"]),
        ("lonlat", safe.to_crs(4326), ["lon", "lat"]),
    ):
        table = pd.DataFrame(frame.drop(columns="geometry")).join(frame.get_coordinates().set_axis(axes, axis=1))
        table.to_parquet(folder / f"{name}.parquet")
    pg.write(safe, folder / "safe.parquet")
    return city.promesse(segment="trip").traces(), safe, folder


@pytest.mark.parametrize(
    ("original", "protected", "names"),
    [
        ("lon", "safe", {}),
        ("lon", "safe", {"lon": "lon", "lat": "lat", "crs": 4326}),
        ("x", "safe", {"crs": "EPSG:32631"}),
        ("x", "lonlat", {"crs": 32631}),
        ("E", "safe", {"lon": "E", "lat": "N", "crs": 32631, "space": "plane"}),
        ("E", "lonlat", {"lon": "E", "lat": "N", "crs": 32631}),
    ],
)
def test_columns_crs_and_breaks_can_be_specified(walks, original, protected, names):
    city, safe, folder = walks
    files = (folder / f"{name}.parquet" for name in (original, protected))
    found = pg.measure_parquet(*files, [pg.SpatialError()], segment="trip", **names)["value"][0]
    assert found == pytest.approx(pg.SpatialError().measure(city, safe), rel=2e-3)  # sphere and plane differ
    across_breaks = pg.SpatialError().measure(replace(city, breaks=city.breaks[:0]), safe)
    assert across_breaks < found * 0.99


def test_what_counts_for_no_file_is_an_error(walks):
    files = [walks[2] / "lon.parquet", walks[2] / "safe.parquet"]
    for names in ({"segment": "tour"}, {"lon": "E", "lat": "N"}):
        with pytest.raises(KeyError, match="exists neither in the original nor in the protected"):
            pg.measure_parquet(*files, **names)
    with pytest.raises(ValueError, match="'crs' is the CRS of neither"):
        pg.measure_parquet(*files, crs=2154)
    for names in ({"crs": "nowhere"}, {"space": "moon"}):
        with pytest.raises(ValueError, match=next(iter(names))):
            pg.measure_parquet(*files, **names)


def test_folders_are_measured_with_the_columns_that_folders_are_protected_with():
    protect, measure = (inspect.signature(each).parameters for each in (pg.protect_parquet, pg.measure_parquet))
    of_writing = {"source", "target", "mechanism", "prepare", "encoding", "keep_users", "force", "time_unit"}
    shared = [name for name in protect if name not in of_writing]
    assert [name for name in measure if name in protect] == shared
    assert [protect[name].default for name in shared] == [measure[name].default for name in shared]


def test_metrics_that_compare_users_are_refused(folders):
    for metric in (pg.Linkage(), pg.Unicity(), pg.EndRetrieval(), pg.AdaptivePoiRetrieval(kind="none")):
        with pytest.raises(ValueError, match="compares users with each other"):
            pg.measure_parquet(*folders, [metric])


def test_protected_users_must_be_those_of_the_original(safe, folders, tmp_path):
    pg.write(pg.pseudonymize(safe), tmp_path / "renamed.parquet")
    with pytest.raises(ValueError, match="The original has none"):
        pg.measure_parquet(folders[0], tmp_path / "renamed.parquet", [pg.Compression()])


def test_true_data_on_disk_go_away(folders, tmp_path):
    pg.measure_parquet(*folders, [pg.Compression()], scratch=tmp_path)
    assert not list(tmp_path.iterdir())


def test_no_records_have_no_value(city, tmp_path):
    pg.write(city.iloc[:0], tmp_path / "none.parquet")
    values = pg.measure_parquet(
        tmp_path / "none.parquet", tmp_path / "none.parquet", [pg.Compression(), pg.SpatialError()]
    )
    assert np.isnan(values["value"]).all()
    assert values["reason"].tolist() == ["the original data has no records"] * 2


def test_undefined_values_have_the_reason_of_one_table(city, tmp_path, buckets):
    moving = city.groupby("user").head(2)
    for name in ("original", "safe"):
        pg.write(moving, tmp_path / f"{name}.parquet")
    metrics = [pg.PoiRetrieval(), pg.Compression()]
    found = pg.measure_parquet(tmp_path / "original.parquet", tmp_path / "safe.parquet", metrics)
    expected = pg.measure(moving, moving, metrics)
    assert found["reason"].tolist() == expected["reason"].tolist() == [pg.PoiRetrieval.undefined, ""]
