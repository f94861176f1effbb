"""Buckets are divided into portions of whole users, so that what is left of a portion fits into memory."""

import dataclasses
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.bulk import files, tasks
from promesse_geo.bulk.memory import check_left, check_memory
from promesse_geo.bulk.runs import Runs, joined_up_to
from promesse_geo.evaluation import runs
from promesse_geo.traces.owners import PART
from promesse_geo.traces.portions import UserPaths

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:The data", "ignore:publish dropped")
TOKEN = "5f" * 32


def make_traces(users, counts):
    total = sum(counts)
    return pg.Traces.from_arrays(
        np.linspace(2, 3, total), np.linspace(48, 49, total), times=np.arange(total) * 10**9, users=users, counts=counts
    )


@st.composite
def data(draw):
    """Traces, some of which are parts of users, in any order."""
    names = draw(st.lists(st.sampled_from(["a", "b", "c-1", "d"]), min_size=1, max_size=8))
    users = list(dict.fromkeys(f"{name}-{number:05d}" if number else name for number, name in enumerate(names)))
    return make_traces(users, [draw(st.integers(1, 9)) for _ in users])


@given(data(), st.integers(1, 40), st.integers(0, 9))
def test_portions_are_whole_users_in_their_order(traces, max_records, factor):
    found = list(UserPaths.of(traces).divide(max_records=max_records, count=lambda some: factor * some.records))
    assert [user for portion in found for user in portion.users] == list(traces.users)
    assert np.concatenate([portion.times for portion in found]).tolist() == traces.times.tolist()
    owners = [{PART.sub("", str(user)) for user in portion.users} for portion in found]
    assert sum(map(len, owners)) == len(set().union(*owners))
    if factor == 0:
        assert len(found) == 1


def test_a_portion_leaves_about_as_much_as_there_is_room_for():
    traces = make_traces(list("abcdefghijklmnopqrst"), [1_000] * 20)
    found = list(UserPaths.of(traces).divide(max_records=20_000, count=lambda some: 10 * some.records))
    sizes = [10 * portion.records for portion in found]
    assert sum(sizes) == 200_000
    assert max(sizes) <= 20_000


def test_users_with_long_paths_are_in_portions_of_their_own_among_many_that_stay():
    x = np.full(40 * 100, 2.0)
    x[[1, 1_001, 2_001, 3_901]] += 1  # four users go far, within two records
    users = [f"u{number:02d}" for number in range(40)]
    times = np.arange(len(x)) * 10**9
    traces = pg.Traces.from_arrays(x, np.full(len(x), 48.0), times=times, users=users, counts=[100] * 40)
    promesse = pg.Promesse(10)
    found = list(UserPaths.of(traces).divide(max_records=5_000, count=lambda some: promesse.protect(some).records))
    far = [set(portion.users) & {"u00", "u10", "u20", "u39"} for portion in found]
    assert [len(each) for each in far if each] == [1] * 4


def test_no_trace_is_one_portion():
    nothing = make_traces([], [])
    assert [len(portion) for portion in UserPaths.of(nothing).divide(max_records=1, count=lambda some: 0)] == [0]


@given(st.lists(st.integers(0, 5), min_size=1), st.integers(1, 9))
def test_runs_are_joined_until_there_are_enough(sizes, enough):
    kinds = {"are_integers": True, "has_segments": False}
    empty = Runs.none(**kinds)
    runs = [dataclasses.replace(empty, times=np.arange(size), x=np.zeros(size), y=np.zeros(size)) for size in sizes]
    found = list(joined_up_to(enough, runs))
    assert np.concatenate([each.times for each in found]).tolist() == [time for run in runs for time in run.times]
    assert all(len(each.times) >= enough for each in found[:-1])
    assert found


@dataclasses.dataclass(frozen=True)
class Counting(pg.Promesse):
    """Keep how many records each call left."""

    left = []  # noqa: RUF012  # of all copies

    def _protect(self, traces):
        result = super()._protect(traces)
        self.left.append(len(result[0]))
        return result


def read(folder):
    parts = [gpd.read_parquet(path) for path in sorted(folder.iterdir())]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("keep_users", [False, True])
def test_results_that_do_not_fit_are_written_in_portions_with_the_same_records(monkeypatch, tmp_path, keep_users):
    city = pg.make_city(users=12, days=1, recorder="phone")
    pg.write(city, tmp_path / "city.parquet")
    monkeypatch.setattr("promesse_geo.bulk.folders.secrets.token_hex", lambda number: TOKEN)
    pg.protect_parquet(tmp_path / "city.parquet", tmp_path / "whole", Counting(5), keep_users=keep_users)
    monkeypatch.setattr(files, "max_records_of_results", lambda memory, workers, weight: 10_000)
    Counting.left.clear()
    report = pg.protect_parquet(tmp_path / "city.parquet", tmp_path / "divided", Counting(5), keep_users=keep_users)
    assert read(tmp_path / "divided").equals(read(tmp_path / "whole"))
    assert len(Counting.left) > 3
    assert max(Counting.left) < 2 * 10_000 < report.protected_records
    assert (report.users, report.records, report.parts) == (12, len(city), 1)


def test_what_is_published_in_portions_has_the_same_counts_and_measures(monkeypatch, tmp_path):
    pg.write(pg.make_city(users=12, days=1, recorder="phone"), tmp_path / "city.parquet")
    whole = pg.publish_parquet(tmp_path / "city.parquet", tmp_path / "whole", pg.Promesse(20), tz="Europe/Paris")
    monkeypatch.setattr(files, "max_records_of_results", lambda memory, workers, weight: 2_500)
    result = pg.publish_parquet(tmp_path / "city.parquet", tmp_path / "divided", pg.Promesse(20), tz="Europe/Paris")
    pd.testing.assert_series_equal(result.counts, whole.counts)
    pd.testing.assert_frame_equal(result.measures, whole.measures)
    assert "compared with its own original only" in result.audit["reason"].str.cat()
    one, other = (read(tmp_path / name).to_wkb().drop(columns="user") for name in ("divided", "whole"))
    assert sorted(one.to_numpy().tolist()) == sorted(other.to_numpy().tolist())


def test_nothing_is_tried_if_paths_are_too_short_for_more_than_there_is_room():
    traces = make_traces(list("abc"), [10] * 3)
    found = UserPaths.of(traces).divide(max_records=10**9, count=lambda some: pytest.fail("tried"))
    assert [portion is traces for portion in found] == [True]


def test_no_more_is_tried_of_long_paths_than_there_is_room_for():
    traces = make_traces(list("abcdefghij"), [1_000] * 10)
    tried = []

    def count(some):
        tried.append(pg.Promesse(0.5).protect(some).records)
        return tried[-1]

    portions = list(UserPaths.of(traces).divide(max_records=5_000, count=count))
    assert max(tried) < 2 * 5_000
    assert len(portions) == 10


def test_the_largest_number_of_records_of_a_user_can_be_refused():
    traces, asked = make_traces(["a", "b"], [1_000, 9_000]), []
    list(UserPaths.of(traces).divide(max_records=1_000, count=lambda some: 3 * some.records, check=asked.append))
    assert asked == [pytest.approx(27_000, rel=0.01)]


DIVIDED = [
    pg.PoiRetrieval(),
    pg.SpatialError(),
    pg.RangeQueryDistortion(200, seed=3),
    pg.Compression(),
    pg.AreaCoverage(),
]


@pytest.mark.parametrize(
    "mechanism",
    [pg.Promesse(5), pg.Promesse(20, ends=400), pg.GeoIndistinguishability(0.01), pg.Chain([pg.Promesse(9)])],
    ids=repr,
)
def test_portions_are_measured_as_all_users_at_once(monkeypatch, mechanism):
    city = pg.make_city(users=12, days=1, recorder="phone")
    with warnings.catch_warnings(record=True) as whole_warnings:
        warnings.simplefilter("always")
        whole = pg.evaluate({"city": city}, [mechanism], DIVIDED, seeds=2)
    portions = []
    monkeypatch.setattr(runs, "_MAX_RECORDS", 1_500)
    monkeypatch.setattr(
        pg.AreaCoverage,
        "condense",
        lambda self, detail, first, last: portions.append((first, last)) or detail.iloc[first:last],
    )
    with warnings.catch_warnings(record=True) as divided_warnings:
        warnings.simplefilter("always")
        divided = pg.evaluate({"city": city}, [mechanism], DIVIDED, seeds=2)
    assert len(portions) > 2
    assert portions[0][0] == 0
    is_error = whole.metric_name == "SpatialError"
    assert divided.value[~is_error].tolist() == whole.value[~is_error].tolist()
    assert divided.value[is_error].to_numpy() == pytest.approx(whole.value[is_error].to_numpy(), rel=1e-13)
    pd.testing.assert_frame_equal(divided.drop(columns=["value", "seconds"]), whole.drop(columns=["value", "seconds"]))
    assert [str(each.message) for each in divided_warnings] == [str(each.message) for each in whole_warnings]


def test_data_are_protected_at_once_if_a_metric_or_a_mechanism_compares_users(monkeypatch):
    city = pg.make_city(users=12, days=2, recorder="phone")
    monkeypatch.setattr(runs, "_MAX_RECORDS", 3_000)
    Counting.left.clear()
    pg.evaluate({"city": city}, [Counting(5)], [pg.EndRetrieval()])
    assert len(Counting.left) == 1


def test_tuning_in_portions_finds_the_same(monkeypatch):
    parts = pg.make_city(users=6, days=2).promesse.prepare(tz="Europe/Paris", keep_user=True)
    choices = {
        "goals": [(pg.PoiRetrieval(), "<=", 5)],
        "objective": pg.RangeQueryDistortion(100),
        "values": 6,
        "seed": 1,
    }
    whole = pg.tune(parts, pg.Promesse(200), bounds=(2, 400), **choices)
    monkeypatch.setattr(runs, "_MAX_RECORDS", 3_000)
    divided = pg.tune(parts, pg.Promesse(200), bounds=(2, 400), **choices)
    pd.testing.assert_frame_equal(divided.table.drop(columns="seconds"), whole.table.drop(columns="seconds"))


@st.composite
def spilled(draw):
    """Names of 16 hex digits with numbers of records, divided into spills."""
    numbers = draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=12, unique=True))
    names = [f"{number:016x}" for number in numbers]
    return [(name, draw(st.integers(1, 7)), draw(st.integers(0, 2))) for name in names]


@given(spilled(), st.integers(1, 9), st.booleans())
def test_names_are_read_in_their_order_as_many_records_as_fit(tmp_path_factory, users, max_records, has_segments):
    folder = tmp_path_factory.mktemp("spills")
    job = SimpleNamespace(scratch=folder, max_records=max_records, name_buckets=3, has_segments=has_segments)
    spills, expected, total = [], {}, 0
    for place in sorted({place for _, _, place in users}):
        mine = [(name, count) for name, count, each in users if each == place]
        size = sum(count for _, count in mine)
        times = np.arange(total, total + size)
        total += size
        segments = times % 5 if has_segments else None
        names, counts = pa.array([name for name, _ in mine], pa.large_string()), np.array([n for _, n in mine])
        spills.append(
            tasks._spill_names(job, f"names-{place}", Runs(names, counts, times, times / 2, times / 4, segments))
        )
        expected |= dict(zip(names.to_pylist(), np.split(times, np.cumsum(counts)[:-1]), strict=True))
    found = list(tasks._in_name_order(job, 0, 3, spills))
    joined = Runs.join(found)
    assert [len(each.times) for each in found[:-1]] == [max_records] * (len(found) - 1)
    assert 0 < len(found[-1].times) <= max_records
    order = np.concatenate([expected[name] for name in sorted(expected)])
    assert joined.times.tolist() == order.tolist()
    assert (joined.x.tolist(), joined.y.tolist()) == ((order / 2).tolist(), (order / 4).tolist())
    owners = np.repeat(joined.users.to_pylist(), joined.counts).tolist()
    assert owners == [name for name in sorted(expected) for _ in expected[name]]
    assert not has_segments or joined.segments.tolist() == (order % 5).tolist()


def test_a_user_of_whom_too_much_is_left_is_refused_with_the_memory_that_is_needed(tmp_path):
    users, records = 4, 20
    latitudes = np.tile(np.arange(records) % 2 * 0.9, users) + 45  # 100 km apart
    times = np.tile(np.arange(records), users) * 3_600 * 10**9
    counts = [records] * users
    far = pg.Traces.from_arrays(np.full(80, 2.0), latitudes, times=times, users=list("abcd"), counts=counts)
    pg.write(far, tmp_path / "far.parquet")
    with ThreadPoolExecutor(2) as executor:
        choices = {"memory": "500MB", "executor": executor}
        with pytest.raises(MemoryError, match=r"About 1,9\d\d,\d{3} records would be left .* needs about") as caught:
            pg.protect_parquet(tmp_path / "far.parquet", tmp_path / "out", pg.Promesse(1), **choices)
    needed = re.search(r"needs about ([\d.]+ MB)", str(caught.value))[1]
    assert [path.name for path in tmp_path.iterdir()] == ["far.parquet"]
    size = check_memory(needed.replace(" ", ""), owner="") + 10**6
    with pytest.raises(MemoryError):
        check_left(1_900_640, size - 5 * 10**6, workers=2, weight=1)
    check_left(1_900_640, size, workers=2, weight=1)
