"""Frames of Dask are prepared, protected and measured as frames in memory are."""

import os
import pickle
import signal
import warnings
from dataclasses import replace

import dask
import dask.dataframe as dd
import dask_geopandas
import distributed
import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from fresh import CONTEXT
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo import dask as module
from promesse_geo.traces.columns import Names
from promesse_geo.traces.marks import Values, find_marked_rows

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:.*rivacy zones", "ignore:The data")
TOKEN = "ab" * 32


@pytest.fixture(scope="module")
def city():
    """6,000 records of some users in no order, with many equal times."""
    frame = pg.make_city(users=6, days=2, seed=3, recorder="phone")
    frame = frame.assign(time=frame["time"].dt.floor("6min"))
    return frame.iloc[np.random.default_rng(1).permutation(len(frame))[:6_000]].reset_index(drop=True)


@pytest.fixture(autouse=True)
def known_keys(monkeypatch):
    monkeypatch.setattr(module.secrets, "token_hex", lambda number: TOKEN)


def lazy(frame, *, kind, partitions=5):
    """A frame of Dask that holds the rows in this order."""
    if kind == "points":
        return dask_geopandas.from_geopandas(frame, npartitions=partitions, sort=False)
    table = pd.DataFrame(
        {"user": frame["user"], "time": frame["time"], "lon": frame.geometry.x, "lat": frame.geometry.y}
    )
    return dd.from_pandas(table, npartitions=partitions, sort=False)


def assert_equal(found, expected):
    """Compare without the order of users and the index."""
    computed = found.compute() if hasattr(found, "compute") else found
    assert list(computed.columns) == list(found._meta.columns)
    user = computed.columns[0]
    for name in computed.columns:
        assert computed[name].dtype == found._meta[name].dtype
    computed = computed.sort_values(user, kind="stable", ignore_index=True)
    assert computed.crs == expected.crs
    for name in expected.columns.drop("geometry"):
        assert computed[name].tolist() == expected[name].tolist()
    assert computed.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()


MECHANISMS = [
    pg.Promesse(200),
    pg.Promesse(100, ends=400),
    pg.GeoIndistinguishability(0.01),
    pg.PrivacyZones(600, 500),
    pg.Chain([pg.PrivacyZones(600, 500), pg.Promesse(200, ends=400)]),
]


@pytest.mark.parametrize("number", range(len(MECHANISMS)), ids=lambda each: type(MECHANISMS[each]).__name__)
@pytest.mark.parametrize("partitions", [1, 6])
def test_frames_are_protected_as_in_memory(city, number, partitions):
    mechanism, kind = MECHANISMS[number], ["table", "points"][(number + partitions) % 2]  # all pairs of choices
    found = lazy(city, kind=kind, partitions=partitions).promesse.protect(mechanism)
    assert isinstance(found, dask_geopandas.GeoDataFrame)
    assert_equal(found, mechanism.with_seed(TOKEN).protect(city))


@pytest.mark.parametrize("kind", ["table", "points"])
def test_marked_records_are_left_out_with_a_warning(city, kind):
    is_good = np.arange(len(city)) % 5 > 0
    mechanism = pg.GeoIndistinguishability(0.01)
    frame = lazy(city, kind=kind, partitions=3)
    frame["valid"] = dd.from_pandas(pd.Series(is_good, city.index), npartitions=3, sort=False)
    with pytest.warns(UserWarning, match="marks as bad are left out. To keep them, rename 'valid'"):
        found = frame.promesse.protect(mechanism)
    assert_equal(found, mechanism.with_seed(TOKEN).protect(city[is_good]))


VALUES = {
    "text": ["true", "false", "maybe", "true", "false"],
    "flags in words": ["TRUE", " f", "", None, "false"],
    "flags": [True, False, True, False, True],
    "objects": [True, None, False, True, None],
    "objects and text": [True, False, "false", "true", None],
    "numbers in between": ["false", 1, "true", "false", 0],
    "nothing": [None] * 5,
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_values_in_all_partitions_decide_about_marks(kind, partitions):
    times = pd.date_range("2024", periods=5, freq="5min")
    frame = pd.DataFrame({"user": "a", "time": times, "lon": 4.8, "lat": 45.0, "visible": VALUES[kind]})
    if (list(VALUES).index(kind) + min(partitions, 3)) % 2:  # all pairs of choices
        frame["visible"] = frame["visible"].astype("category")
    mechanism = pg.GeoIndistinguishability(0.1)
    with warnings.catch_warnings(action="ignore"):
        lazily = dd.from_pandas(frame, npartitions=partitions, sort=False)
        found = lazily.promesse.protect(mechanism)
        expected = mechanism.with_seed(TOKEN).protect(pg.Traces.from_frame(lazily.compute())).to_frame()
    assert_equal(found, expected)


@given(st.lists(st.sampled_from(["true", "F", "maybe", "", None, True, False, 1]), max_size=7), st.integers(0, 7))
def test_parts_of_a_column_decide_as_the_whole(values, cut):
    whole = pd.Series(values, dtype=object)
    bad = find_marked_rows(pd.DataFrame({"visible": whole}), Names())
    assert Values(Values.of(whole[:cut]) | Values.of(whole[cut:])).mark_some == (bad is not None)


@pytest.mark.parametrize(
    ("parts", "mark_some"),
    [
        ((["true", "f"], ["false", None]), True),
        (([True, False], [False, None]), True),
        ((["true", "f"], [True, False]), False),
        (([True, False], ["false"]), False),
        ((["true", "f"], ["maybe"]), False),
    ],
)
def test_text_and_flags_in_one_column_mark_nothing(parts, mark_some):
    columns = [pd.Series(values, dtype=object) for values in parts]
    whole = pd.DataFrame({"visible": pd.concat(columns, ignore_index=True)})
    assert (find_marked_rows(whole, Names()) is not None) is mark_some
    assert Values(Values.of(columns[0]) | Values.of(columns[1])).mark_some is mark_some


@pytest.mark.filterwarnings("ignore:first_days dropped")
def test_prepared_frames_are_those_in_memory(city):
    choices = {"tz": "Europe/Paris", "days": 1, "gap": "1h"}
    expected = pg.prepare(city, **choices, seed=TOKEN)
    kept = pg.prepare(city, **choices, keep_user=True)
    frame = lazy(city, kind="table")
    assert_equal(frame.promesse.prepare(**choices), expected)
    parts = frame.promesse.prepare(**choices, keep_user=True)
    assert_equal(parts, kept)
    zoned = pg.prepare(city, **choices, keep_user=True, keep_zone=True)
    assert_equal(frame.promesse.prepare(**choices, keep_user=True, keep_zone=True), zoned)
    assert_equal(parts.promesse.smooth(200), pg.Promesse(200).protect(kept))


def test_no_partition_of_new_names_holds_all_parts_of_a_user(city):
    choices = {"gap": "30min", "tz": "Europe/Paris"}
    with warnings.catch_warnings(action="ignore"):
        kept = pg.prepare(city, **choices, keep_user=True)
        renamed = pg.prepare(city, **choices, seed=TOKEN)
    owner = dict(zip(renamed.geometry.to_wkb(), kept["user"].str[:-6], strict=False))
    found = lazy(city, kind="table").promesse.prepare(**choices)
    sizes = [part["user"].nunique() for part in dask.compute(*found.partitions[:].to_delayed())]
    assert sum(sizes) == renamed["user"].nunique()
    assert len([size for size in sizes if size]) > 1
    assert owner


def test_pois_and_measures_are_those_in_memory(city):
    frame = lazy(city, kind="points").promesse.grouped(npartitions=3)
    assert_equal(frame.pois(150, "10min"), pg.pois(city, 150, "10min"))
    safe = frame.smooth(150)
    metrics = [pg.PoiRetrieval(), pg.AreaCoverage(), pg.RangeQueryDistortion(200, seed=3), pg.Compression()]
    with warnings.catch_warnings(action="ignore"):  # of undefined distortions
        expected = pg.measure(city, pg.Promesse(150).protect(city), metrics)
        found = frame.measure(safe, metrics)
        answers = frame.range_query_distortion(safe, queries=200, seed=3)
        table = pg.RangeQueryDistortion(200, seed=3).detail(city, pg.Promesse(150).protect(city))
    assert found["value"].tolist() == expected["value"].tolist()
    assert answers.drop(columns="geometry").equals(table.drop(columns="geometry"))
    assert answers.geometry.to_wkb().tolist() == table.geometry.to_wkb().tolist()
    with pytest.raises(ValueError, match="compares users with each other"):
        frame.measure(safe, [pg.Linkage()])


@pytest.mark.parametrize("partitions", [1, 2, 5])
def test_the_step_of_residues_is_that_of_all_partitions(city, partitions):
    noise = pg.GeoIndistinguishability(0.1)
    frame = lazy(city, kind="points").promesse.grouped(npartitions=partitions)
    found = frame.measure(frame.protect(noise), [pg.Residue()])
    assert found["value"].tolist() == [pg.Residue().measure(city, noise.with_seed(TOKEN).protect(city))]


def test_columns_can_be_specified_and_the_space_is_chosen_for_all(city):
    metric = city.to_crs(32631).rename(columns={"user": "cab", "time": "stamp"})
    found = lazy(metric.rename_geometry("at"), kind="points").promesse(user="cab", time="stamp").smooth(200)
    expected = metric.promesse(user="cab", time="stamp").smooth(200).rename_geometry("at")
    computed = found.compute().sort_values("cab", kind="stable", ignore_index=True)
    assert computed.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()
    assert list(computed.columns) == ["cab", "stamp", "at"]


@pytest.fixture(scope="module")
def passing():
    """A user who passes home, and another one, with names of columns that are not detected."""
    times = pd.date_range("2024-03-01 08:00", periods=80, freq="30s")
    points = gpd.points_from_xy(2.25 + np.arange(80) * 0.00125, np.full(80, 48.8))
    parts = [gpd.GeoDataFrame({"cab": name, "stamp": times}, geometry=points, crs=4326) for name in ("a", "b")]
    return pd.concat(parts, ignore_index=True)


ZONES = pg.PrivacyZones(500, 400, zones=gpd.GeoSeries(gpd.points_from_xy([2.3], [48.8]), crs=4326).to_frame("geometry"))
NAMES = {"user": "cab", "time": "stamp"}


@pytest.fixture(scope="module")
def zoned(passing):
    """The same outside a zone, in memory and by Dask, with breaks."""
    with warnings.catch_warnings(action="ignore"):
        lazily = lazy(passing, kind="points", partitions=2).promesse(**NAMES)
        return passing.promesse(**NAMES).protect(ZONES.with_seed(TOKEN)), lazily.protect(ZONES.with_seed(TOKEN))


ROUTES = {
    "results": lambda frame: frame,
    "partitions": lambda frame: frame.repartition(npartitions=3),
    "filters": lambda frame: frame[frame["cab"] != "c"],
    "another index": lambda frame: frame.set_index("stamp").reset_index(),
    "kept in memory": lambda frame: frame.persist(),
    "shuffles": lambda frame: frame.shuffle(on="stamp"),
    "of GeoPandas": lambda frame: dask_geopandas.from_geopandas(frame.compute(), npartitions=2),
}


@pytest.mark.parametrize("route", ROUTES)
def test_breaks_of_results_stay_breaks(zoned, route):
    expected, found = zoned[0], ROUTES[route](zoned[1])
    assert found._meta.attrs == expected.attrs
    safe = found.promesse.smooth(200)
    assert_equal(safe, expected.promesse.smooth(200))
    assert safe._meta.attrs == expected.promesse.smooth(200).attrs


def test_results_are_prepared_between_breaks(zoned):
    expected, found = (frame.promesse.prepare(keep_user=True) for frame in zoned)
    assert_equal(found, expected)
    assert found._meta.attrs["promesse"].items() <= expected.attrs["promesse"].items()
    assert_equal(found.promesse.smooth(200), expected.promesse.smooth(200))


def test_stays_of_results_end_at_breaks(zoned):
    expected, found = (frame.promesse.pois(1_000, "1min") for frame in zoned)
    assert_equal(found, expected)


@pytest.mark.filterwarnings("ignore:.*undefined distortion")
@pytest.mark.parametrize(
    "verb",
    [
        lambda each, safe: each.measure(safe, [pg.Residue(1_000, "1min", 900)])["value"],
        lambda each, safe: each.range_query_distortion(safe, queries=9, seed=1)["distortion"],
    ],
    ids=["measure", "range_query_distortion"],
)
def test_columns_that_are_specified_are_those_of_both_frames(zoned, passing, verb):
    frame = lazy(passing, kind="points", partitions=1)
    assert verb(frame.promesse(**NAMES), zoned[1]).equals(verb(passing.promesse(**NAMES), zoned[0]))


def test_breaks_of_files_that_dask_reads_are_no_secret(zoned, tmp_path):
    expected = zoned[0].rename(columns={"cab": "user", "stamp": "time"})
    pg.write(expected, tmp_path / "zoned.parquet")
    read = dask_geopandas.read_parquet(tmp_path / "zoned.parquet", gather_spatial_partitions=False)
    words = "'segment' was dropped.* If 'segment' numbers segments of traces.* ddf.promesse.segment='segment'"
    for verb in (lambda frame: frame.promesse.smooth(200), lambda frame: frame.promesse.prepare()):
        with pytest.warns(UserWarning, match=words):
            verb(read)
    safe = read.promesse(segment="segment").smooth(200)
    with warnings.catch_warnings(action="ignore"):  # of dask-geopandas
        assert_equal(safe, expected.promesse.smooth(200))


def _without_attrs(part):
    """A partition as merges return it."""
    return gpd.GeoDataFrame(dict(part.items()), geometry="geometry")


def test_breaks_that_operations_lose_are_no_secret(zoned):
    lost = zoned[1].map_partitions(_without_attrs).promesse(**NAMES)
    for verb in (lost.pois, lambda: lost.measure(zoned[1], [pg.Compression()])):
        with pytest.warns(UserWarning, match=r"'segment' is not used.*ddf.promesse\(segment='segment'\)"):
            verb()
    again, never = (lost._frame.promesse(**NAMES, segment=segment) for segment in ("segment", None))
    never.pois()
    assert again.measure(again, [pg.Compression()])["value"].tolist() == [100]


def test_other_columns_are_dropped_with_a_warning(city):
    frame = lazy(city, kind="table").assign(speed=1)
    with pytest.warns(UserWarning, match="The column 'speed' was dropped"):
        frame.promesse.smooth(200)


def warned_of(work):
    """What work warns of, other than data that are not prepared."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        work()
    return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]


OTHERS = gpd.GeoDataFrame({"user": ["x", "y"]}, geometry=gpd.points_from_xy([4.8, 4.9], [45.7, 45.8]), crs=4326)
WARNING_VERBS = {
    "zones of others": lambda each: each.protect(pg.PrivacyZones(500, 100, zones=OTHERS, seed="s")),
    "nothing left": lambda each: each.smooth(50_000),
    "not prepared": lambda each: each.smooth(100),
    "days": lambda each: each.prepare(tz="Europe/Paris", days=1, keep_user=True),
    "naive times": lambda each: each.prepare(tz="Europe/Paris", min_days=9, keep_user=True),
}


@pytest.mark.parametrize("verb", WARNING_VERBS)
@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_counts_of_all_partitions_are_one_warning(city, verb, scheduler):
    frame = city.assign(time=city["time"].dt.tz_localize(None)) if verb == "naive times" else city
    lazily = WARNING_VERBS[verb](lazy(frame, kind="table").promesse)
    expected = warned_of(lambda: WARNING_VERBS[verb](frame.promesse))
    assert expected
    for _ in range(2):
        lazily.partitions[1].compute(scheduler=scheduler)  # some partitions are counted with the others
        assert warned_of(lambda: lazily.compute(scheduler=scheduler)) == expected


def test_copies_for_other_processes_warn_of_nothing():
    original = module._Warnings(1)
    with pytest.warns(UserWarning, match="lost"):
        original.add(0, [UserWarning("lost")])
    pickle.loads(pickle.dumps(original)).add(0, [UserWarning("lost")])


def test_a_mechanism_must_say_that_it_makes_breaks(passing):
    class Cut(pg.Mechanism):
        def _protect(self, traces):
            return replace(traces, breaks=traces.offsets[:-1] + 1)

    with pytest.raises(ValueError, match="Cut makes breaks, and does not say so"):
        lazy(passing, kind="points").promesse(**NAMES).protect(Cut()).compute()


@pytest.mark.parametrize(("name", "keep_user"), [("time", True), (None, False)])
def test_an_index_of_times_stays_one(passing, name, keep_user):
    frame = passing.rename(columns={"cab": "user"}).set_index("stamp").rename_axis(name)
    found = dask_geopandas.from_geopandas(frame, npartitions=1, sort=False).promesse.prepare(keep_user=keep_user)
    expected = frame.promesse.prepare(keep_user=keep_user, seed=TOKEN)
    index = found.compute().index
    assert index.equals(expected.index)
    assert index.name == expected.index.name == found._meta.index.name
    assert found._meta.attrs["promesse"].items() <= expected.attrs["promesse"].items()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda frame: frame.promesse.protect(200), TypeError, "mechanism"),
        (lambda frame: frame.promesse.protect(pg.WaitForMe(k=2)), ValueError, "compares all traces"),
        (lambda frame: frame.promesse(user="who").smooth(200), KeyError, "who"),
        (lambda frame: frame.promesse.grouped(npartitions=0), ValueError, "npartitions"),
        (lambda frame: frame.promesse.prepare(tz="Paris"), ValueError, "tz"),
        (lambda frame: frame.promesse.smooth(-1), ValueError, "epsilon"),
        (lambda frame: frame[["user", "time"]].promesse.smooth(200), TypeError, "lon and lat"),
    ],
)
def test_what_cannot_be_done_is_an_error_at_once(city, call, error, words):
    with pytest.raises(error, match=words):
        call(lazy(city.head(50), kind="table"))


def test_a_cluster_of_processes_gives_the_same_and_survives_a_killed_worker(city, monkeypatch, tmp_path):
    monkeypatch.setattr(distributed.utils, "_forkserver_preload_set", True)  # what `fresh` preloads
    mechanism = pg.Promesse(100, ends=400)
    expected = mechanism.with_seed(TOKEN).protect(city)
    (tmp_path / "in").mkdir()
    for number in range(3):
        pg.write(city.iloc[number * 2_000 : (number + 1) * 2_000], tmp_path / "in" / f"{number}.parquet")
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": CONTEXT.get_start_method()}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert_equal(lazy(city, kind="table").promesse.protect(mechanism), expected)
        report = pg.protect_parquet(
            tmp_path / "in", tmp_path / "out", mechanism, keep_users=True, executor=client.get_executor()
        )
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        assert_equal(lazy(city, kind="points").promesse.protect(mechanism), expected)
    assert report.protected_records == len(expected)
