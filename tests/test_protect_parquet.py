"""Folders of Parquet are protected in bounded memory, with the bytes of one table in memory."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from parquet_folders import IGNORED, PROMESSE, TOKEN, Now, assert_equal, load, save

import promesse_geo as pg
from promesse_geo.bulk import files, folders, memory, reading, tasks

pytestmark = IGNORED


MECHANISMS = [
    PROMESSE,
    pg.Promesse(100, ends=400),
    pg.GeoIndistinguishability(0.01),
    pg.PrivacyZones(600, 500),
    pg.Chain([pg.PrivacyZones(600, 500), pg.Promesse(200, ends=400)]),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("keep_users", [False, True])
def test_the_result_is_that_of_one_table_in_memory(shuffled_city, many_chunks, tmp_path, mechanism, keep_users):
    save(shuffled_city, tmp_path / "in")
    report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, keep_users=keep_users)
    expected = mechanism.with_seed(TOKEN).protect(shuffled_city)
    if not keep_users:
        expected = pg.pseudonymize(expected, seed=TOKEN)
    found = load(tmp_path / "out")
    if keep_users:  # the files are in no order of users
        found = found.sort_values("user", kind="stable", ignore_index=True)
        found = found.drop(columns=[] if "segment" in expected else ["segment"], errors="ignore")
    assert_equal(found, expected)
    assert report.records == len(shuffled_city)
    assert (report.users, report.protected_records) == (9, len(expected))
    assert report.parts == len(list((tmp_path / "out").iterdir())) > 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("mechanism", [PROMESSE, None], ids=["Promesse", "none"])
def test_prepared_data_are_those_of_the_notebook(shuffled_city, many_chunks, tmp_path, mechanism):
    save(shuffled_city, tmp_path / "in")
    choices = {"tz": "Europe/Paris", "days": 2, "gap": "2h"}
    report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, prepare=choices)
    parts = pg.prepare(shuffled_city, **choices, keep_user=True)
    expected = pg.pseudonymize(parts if mechanism is None else mechanism.protect(parts), seed=TOKEN)
    assert_equal(load(tmp_path / "out"), expected)
    assert (report.traces, report.prepared_records) == (parts["user"].nunique(), len(parts))


def test_jumps_and_zero_fixes_are_dropped_before_if_asked(shuffled_city, many_chunks, tmp_path):
    far = shuffled_city.copy()
    far.loc[far.index[::997], "geometry"] = gpd.points_from_xy([0.0], [0.0], crs=4326)[0]
    save(far, tmp_path / "in")
    cleaned = pg.drop_jumps(pg.drop_zero(far), max_speed=60)
    with pytest.warns(UserWarning, match=f"drop_zero dropped {len(far.index[::997])} of {len(far):,} records"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", None, prepare={"keep_zero": False, "max_speed": 60.0})
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(pg.prepare(cleaned, keep_user=True), seed=TOKEN))


def test_no_file_tells_which_parts_are_of_one_user(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city, tmp_path / "in")
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", None, prepare={"gap": "1h"})
    names = [pd.read_parquet(path, columns=["user"])["user"].unique() for path in sorted((tmp_path / "out").iterdir())]
    assert len(names) > 3
    joined = np.concatenate(names).tolist()
    assert joined == sorted(joined)  # new names alone decide, which are random


@pytest.mark.parametrize("executor", ["one thread", "three threads", "now", "processes"])
def test_any_executor_writes_the_same_bytes(shuffled_city, many_chunks, tmp_path, executor):
    save(shuffled_city, tmp_path / "in")
    mechanism = pg.Promesse(200, ends=300)
    pg.protect_parquet(tmp_path / "in", tmp_path / "expected", mechanism)
    pools = {
        "one thread": lambda: ThreadPoolExecutor(1),
        "three threads": lambda: ThreadPoolExecutor(3),
        "processes": lambda: ProcessPoolExecutor(2, multiprocessing.get_context("fork")),
    }
    if executor == "now":
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, executor=Now())
    else:
        with pools[executor]() as pool:
            pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, executor=pool)
    expected = {path.name: path.read_bytes() for path in (tmp_path / "expected").iterdir()}
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == expected


@pytest.mark.parametrize("buckets", [1, 2, 7])
@pytest.mark.parametrize("chunk", [500, 10**6])
def test_the_division_of_the_work_does_not_matter(shuffled_city, many_chunks, monkeypatch, tmp_path, buckets, chunk):
    monkeypatch.setattr(files, "count_buckets", lambda records, memory, workers: buckets)
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: chunk)
    save(shuffled_city, tmp_path / "in", number=buckets)
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(shuffled_city), seed=TOKEN))


def test_points_can_be_written_as_structures(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city, tmp_path / "in")
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, encoding="point", time_unit="us")
    found, expected = load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(shuffled_city), seed=TOKEN)
    assert found["time"].tolist() == expected["time"].dt.as_unit("us").tolist()
    assert found["time"].dtype == "datetime64[us, UTC]"
    assert found.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()
    path = next((tmp_path / "out").iterdir())
    column = pq.read_metadata(path).row_group(0).column(2)
    assert "BYTE_STREAM_SPLIT" in column.encodings
    assert column.statistics.min <= found.geometry.x.iloc[0] <= column.statistics.max
    assert pg.read_file(path).geometry.to_wkb().tolist() == gpd.read_parquet(path).geometry.to_wkb().tolist()


def test_nothing_is_written_if_nothing_is_left(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city, tmp_path / "in")
    with pytest.raises(ValueError, match="Nothing is left to write"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", pg.Promesse(900_000))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"mechanism": 200}, TypeError, "mechanism"),
        ({"mechanism": None}, ValueError, "nothing to do"),
        ({"mechanism": pg.WaitForMe(k=2)}, ValueError, "compares all traces"),
        ({"mechanism": pg.Chain([pg.WaitForMe(k=2)])}, ValueError, "compares all traces"),
        ({"memory": "1 MB"}, ValueError, "500MB"),
        ({"memory": "lots"}, ValueError, "memory"),
        ({"memory": [2]}, TypeError, "memory"),
        ({"executor": "threads"}, TypeError, "submit"),
        ({"encoding": "wkt"}, ValueError, "encoding"),
        ({"time_unit": "h"}, ValueError, "time_unit"),
        ({"prepare": 3}, TypeError, "prepare"),
        ({"prepare": {"seed": 3}}, ValueError, "seed"),
        ({"prepare": {"days": 0}}, ValueError, "days"),
        ({"prepare": {"tz": "Paris"}}, ValueError, "tz"),
        ({"errors": "ignore"}, ValueError, "errors"),
        ({"keep_users": "no"}, TypeError, "keep_users"),
        ({"scratch": 7}, TypeError, "scratch"),
        ({"target": "nowhere/out"}, FileNotFoundError, "does not exist"),
        ({"source": "nothing"}, FileNotFoundError, "does not exist"),
    ],
)
def test_parameters_are_checked_before_the_work(shuffled_city, tmp_path, given, error, words):
    save(shuffled_city.iloc[:100], tmp_path / "in", number=1)
    given = {"source": "in", "target": "out", "mechanism": PROMESSE} | given
    places = {name: tmp_path / given.pop(name) for name in ("source", "target")}
    with pytest.raises(error, match=words):
        pg.protect_parquet(places["source"], places["target"], given.pop("mechanism"), **given)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@dataclass(frozen=True)
class Torn(pg.Mechanism):
    """A mechanism that makes breaks without saying so."""

    def _protect(self, traces):
        middle = traces.offsets[:-1] + traces.counts // 2
        return replace(traces, breaks=middle)


def test_a_mechanism_that_hides_its_breaks_is_named(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city, tmp_path / "in")
    with pytest.raises(ValueError, match="Torn makes breaks"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", Torn(), keep_users=True)


def test_amounts_of_memory_are_read():
    assert [memory.check_memory(value, owner="x") for value in ("2GB", "1200 mb", "1.5GiB", 10**9)] == [
        2 * 10**9,
        1_200 * 10**6,
        1.5 * 2**30,
        10**9,
    ]


def test_steps_are_functions_of_files_alone(shuffled_city, many_chunks, tmp_path):
    steps = {reading.scatter: reading, tasks.gather: tasks, tasks.write_names: tasks}
    assert all(step.__module__ == module.__name__ for step, module in steps.items())


def test_kept_users_lie_in_the_same_files_each_time(shuffled_city, many_chunks, monkeypatch, tmp_path):
    save(shuffled_city, tmp_path / "in")
    for number in range(2):
        monkeypatch.setattr(folders.secrets, "token_hex", lambda length, number=number: f"{number}f" * length)
        pg.protect_parquet(tmp_path / "in", tmp_path / f"out{number}", PROMESSE, keep_users=True)
    first, second = ({path.name: path.read_bytes() for path in (tmp_path / f"out{each}").iterdir()} for each in (0, 1))
    assert first == second
