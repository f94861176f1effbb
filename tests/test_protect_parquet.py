"""Folders of Parquet are protected in bounded memory, with the bytes of one table in memory."""

import errno
import multiprocessing
import os
import stat
import sys
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fresh import Ended

import promesse_geo as pg
from promesse_geo.bulk import files, folders, plan, run, tasks
from promesse_geo.bulk.runs import Spill

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*could not be protected",
    "ignore:.*rivacy zones",
    "ignore:The data",
    "ignore:Nothing is left of",
    "ignore:In .* files overlap in time",
    "ignore:first_days dropped",
    "ignore:drop_zero dropped",
    "ignore:drop_jumps dropped",
)
TOKEN = "5f" * 32
PROMESSE = pg.Promesse(200)


@pytest.fixture(scope="module")
def city():
    """Records of some users in no order, with many equal times."""
    frame = pg.make_city(users=9, days=3, seed=4, recorder="phone")
    frame = frame.assign(time=frame["time"].dt.floor("2min"))
    return frame.iloc[np.random.default_rng(5).permutation(len(frame))].reset_index(drop=True)


@pytest.fixture
def small(monkeypatch):
    """Divide the work into many chunks and buckets, and make keys known."""
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: 3_000)
    monkeypatch.setattr(files, "count_buckets", lambda records, memory, workers: 5)
    monkeypatch.setattr(run, "_PART", 2_000)
    monkeypatch.setattr(folders.secrets, "token_hex", lambda number: TOKEN)


def as_table(frame):
    x, y = frame.geometry.x, frame.geometry.y
    return pa.table({"user": frame["user"], "time": frame["time"], "lon": x, "lat": y})


def save(frame, folder, *, number=4, group=1_700):
    """Write a frame to several files, and return it in the order of their paths and rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in range(number):
        rows = frame.iloc[len(frame) * each // number : len(frame) * (each + 1) // number]
        pq.write_table(as_table(rows), folder / f"{each:03d}.parquet", row_group_size=group)
    return frame


def load(folder):
    """The parts of a result as one frame, in the order of their names."""
    return pd.concat([gpd.read_parquet(path) for path in sorted(folder.iterdir())], ignore_index=True)


def assert_equal(found, expected):
    assert list(found.columns) == list(expected.columns)
    for name in expected.columns.drop("geometry"):
        assert found[name].tolist() == expected[name].tolist()
    assert found["time"].dtype == expected["time"].dtype
    assert found.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()
    assert found.crs == expected.crs


MECHANISMS = [
    PROMESSE,
    pg.Promesse(100, ends=400),
    pg.GeoIndistinguishability(0.01),
    pg.PrivacyZones(600, 500),
    pg.Chain([pg.PrivacyZones(600, 500), pg.Promesse(200, ends=400)]),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("keep_users", [False, True])
def test_the_result_is_that_of_one_table_in_memory(city, small, tmp_path, mechanism, keep_users):
    save(city, tmp_path / "in")
    report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, keep_users=keep_users)
    expected = mechanism.with_seed(TOKEN).protect(city)
    if not keep_users:
        expected = pg.pseudonymize(expected, seed=TOKEN)
    found = load(tmp_path / "out")
    if keep_users:  # the files are in no order of users
        found = found.sort_values("user", kind="stable", ignore_index=True)
        found = found.drop(columns=[] if "segment" in expected else ["segment"], errors="ignore")
    assert_equal(found, expected)
    assert report.records == len(city)
    assert (report.users, report.protected_records) == (9, len(expected))
    assert report.parts == len(list((tmp_path / "out").iterdir())) > 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("mechanism", [PROMESSE, None], ids=["Promesse", "none"])
def test_prepared_data_are_those_of_the_notebook(city, small, tmp_path, mechanism):
    save(city, tmp_path / "in")
    choices = {"tz": "Europe/Paris", "days": 2, "gap": "2h"}
    report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, prepare=choices)
    parts = pg.prepare(city, **choices, keep_user=True)
    expected = pg.pseudonymize(parts if mechanism is None else mechanism.protect(parts), seed=TOKEN)
    assert_equal(load(tmp_path / "out"), expected)
    assert (report.traces, report.prepared_records) == (parts["user"].nunique(), len(parts))


def test_jumps_and_zero_fixes_are_dropped_before_if_asked(city, small, tmp_path):
    far = city.copy()
    far.loc[far.index[::997], "geometry"] = gpd.points_from_xy([0.0], [0.0], crs=4326)[0]
    save(far, tmp_path / "in")
    cleaned = pg.drop_jumps(pg.drop_zero(far), max_speed=60)
    with pytest.warns(UserWarning, match=f"drop_zero dropped {len(far.index[::997])} of {len(far):,} records"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", None, prepare={"keep_zero": False, "max_speed": 60.0})
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(pg.prepare(cleaned, keep_user=True), seed=TOKEN))


def test_no_file_tells_which_parts_are_of_one_user(city, small, tmp_path):
    save(city, tmp_path / "in")
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", None, prepare={"gap": "1h"})
    names = [pd.read_parquet(path, columns=["user"])["user"].unique() for path in sorted((tmp_path / "out").iterdir())]
    assert len(names) > 3
    joined = np.concatenate(names).tolist()
    assert joined == sorted(joined)  # new names alone decide, which are random


class Now:
    """An executor that works at once."""

    def submit(self, work, *given):
        future = Future()
        future.set_result(work(*given))
        return future


@pytest.mark.parametrize("executor", ["one thread", "three threads", "now", "processes"])
def test_any_executor_writes_the_same_bytes(city, small, tmp_path, executor):
    save(city, tmp_path / "in")
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
def test_the_division_of_the_work_does_not_matter(city, small, monkeypatch, tmp_path, buckets, chunk):
    monkeypatch.setattr(files, "count_buckets", lambda records, memory, workers: buckets)
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: chunk)
    save(city, tmp_path / "in", number=buckets)
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(city), seed=TOKEN))


def test_points_can_be_written_as_structures(city, small, tmp_path):
    save(city, tmp_path / "in")
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, encoding="point", time_unit="us")
    found, expected = load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(city), seed=TOKEN)
    assert found["time"].tolist() == expected["time"].dt.as_unit("us").tolist()
    assert found["time"].dtype == "datetime64[us, UTC]"
    assert found.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()
    path = next((tmp_path / "out").iterdir())
    column = pq.read_metadata(path).row_group(0).column(2)
    assert "BYTE_STREAM_SPLIT" in column.encodings
    assert column.statistics.min <= found.geometry.x.iloc[0] <= column.statistics.max
    assert pg.read_file(path).geometry.to_wkb().tolist() == gpd.read_parquet(path).geometry.to_wkb().tolist()


@dataclass(frozen=True)
class Watched(pg.Mechanism):
    """Promesse that does something when it protects a bucket."""

    action: object = None

    def _protect(self, traces):
        self.action()
        return pg.Promesse(200)._protect(traces)


def test_true_data_on_disk_are_private_and_go_away(city, small, tmp_path):
    save(city, tmp_path / "in")
    seen = {}

    def look():
        work = tmp_path / "out.partial"
        seen.update({path: stat.S_IMODE(path.stat().st_mode) for path in (work, *work.rglob("*"))})

    pg.protect_parquet(tmp_path / "in", tmp_path / "out", Watched(look))
    assert any(path.name.startswith("chunk-") for path in seen)
    assert seen[tmp_path / "out.partial"] == 0o700
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, MemoryError])
def test_nothing_is_left_when_the_work_fails(city, small, tmp_path, error):
    def fail():
        raise error

    save(city, tmp_path / "in")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(error):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", Watched(fail), scratch=scratch)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "scratch"]
    assert not list(scratch.iterdir())


def kill_in(step, number, monkeypatch):
    """End the process without clean-up when a step begins."""
    work = getattr(run, step)

    def dying(job, each, *rest):
        if each == number:
            os._exit(9)
        return work(job, each, *rest)

    dying.__name__ = step
    monkeypatch.setattr(run, step, dying)


@pytest.mark.parametrize(("step", "number"), [("scatter", 3), ("gather", 2), ("write_names", 1)])
def test_a_killed_run_goes_on_where_it_was(city, small, monkeypatch, tmp_path, step, number):
    save(city, tmp_path / "in")
    pid = os.fork()
    if not pid:
        kill_in(step, number, monkeypatch)
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, executor=Now())
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "out.partial").exists()
    done = []
    for name in ("scatter", "gather", "write_names"):
        work = getattr(run, name)

        def counting(job, each, *rest, work=work, name=name):
            done.append((name, each))
            return work(job, each, *rest)

        counting.__name__ = name
        monkeypatch.setattr(run, name, counting)
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, executor=Now())
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(city), seed=TOKEN))
    steps = ["scatter", "gather", "write_names"]
    assert not [name for name, _ in done if steps.index(name) < steps.index(step)]
    assert (step, number) in done
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("change", ["mechanism", "seed", "file", "option"])
def test_another_call_starts_clean(city, small, monkeypatch, tmp_path, change):
    save(city, tmp_path / "in")
    mechanism = pg.Promesse(200, ends=300, seed="a")
    pid = os.fork()
    if not pid:
        kill_in("gather", 2, monkeypatch)
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, executor=Now())
        os._exit(0)
    os.waitpid(pid, 0)
    keep_users = change == "option"
    if change == "mechanism":
        mechanism = pg.Promesse(100)
    if change == "seed":
        mechanism = replace(mechanism, seed="b")
    data = save(city.iloc[1_000:], tmp_path / "in") if change == "file" else city
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, executor=Now(), keep_users=keep_users)
    expected = mechanism.protect(data)
    expected = expected if keep_users else pg.pseudonymize(expected, seed=TOKEN)
    found = load(tmp_path / "out")
    assert_equal(found.sort_values("user", kind="stable", ignore_index=True) if keep_users else found, expected)


def test_two_runs_do_not_write_the_same_target(city, small, tmp_path):
    save(city, tmp_path / "in")
    words = []

    def again():
        with pytest.raises(FileExistsError, match="Another run is writing") as caught:
            pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
        words.append(str(caught.value))

    pg.protect_parquet(tmp_path / "in", tmp_path / "out", Watched(again))
    assert words
    assert len(load(tmp_path / "out")) == len(PROMESSE.protect(city))


def test_a_full_disk_is_one_sentence(city, small, monkeypatch, tmp_path):
    save(city, tmp_path / "in")

    def full(*given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/secret/temporary/file")

    monkeypatch.setattr(Spill, "write", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert caught.value.errno == errno.ENOSPC
    assert "secret" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_too_little_room_is_said_before_the_work(city, tmp_path, monkeypatch):
    save(city, tmp_path / "in")
    monkeypatch.setattr(plan.shutil, "disk_usage", lambda folder: Ended(0, 0, 10**5))
    monkeypatch.setattr(plan.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 10**5})())
    with pytest.raises(OSError, match=r"needs about [1-9][\d,]* kB of disk"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_trace_that_does_not_fit_is_named_before_it_is_protected(city, small, monkeypatch, tmp_path):
    long = city.assign(user=np.where(city["user"] < "user-006", "user-000", city["user"]))
    save(long, tmp_path / "in")
    monkeypatch.setattr(plan, "_RECORD", 100_000)
    with pytest.raises(MemoryError, match="largest trace has") as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", Watched(lambda: pytest.fail("protected")))
    assert f"{(long['user'] == 'user-000').sum():,} records" in str(caught.value)


def spoiled(city):
    bad = as_table(city)
    lat = bad.column("lat").to_pylist()
    user = bad.column("user").to_pylist()
    lat[5_000], lat[5_001], user[9_000] = 95.0, None, None
    bad = bad.set_column(3, "lat", pa.array(lat, pa.float64()))
    return bad.set_column(0, "user", pa.array(user))


def test_invalid_records_are_counted_once_with_file_and_row(city, small, tmp_path):
    (tmp_path / "in").mkdir()
    bad = spoiled(city)
    pq.write_table(bad.slice(0, 4_000), tmp_path / "in" / "a.parquet", row_group_size=900)
    pq.write_table(bad.slice(4_000), tmp_path / "in" / "b.parquet", row_group_size=900)
    with pytest.raises(ValueError, match=f"3 of {len(city):,} records") as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    for words in ("row 1,000 of", "row 1,001 of", "row 5,000 of", "b.parquet", "no user: 1"):
        assert words in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    with pytest.warns(UserWarning, match=f"3 of {len(city):,} records were dropped"):
        report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, errors="skip")
    good = city.drop(index=[5_000, 5_001, 9_000])
    assert report.dropped_records == 3
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(good), seed=TOKEN))


def test_breaks_of_text_hold_over_files(city, small, tmp_path):
    segments = np.array(["morning", "evening", None], object)[(np.arange(len(city)) // 50) % 3]
    (tmp_path / "in").mkdir()
    table = as_table(city).append_column("phase", pa.array(segments))
    for number in range(3):
        rows = table.slice(number * len(city) // 3, (number + 1) * len(city) // 3 - number * len(city) // 3)
        pq.write_table(rows, tmp_path / "in" / f"{number}.parquet")
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, segment="phase", keep_users=True)
    expected = city.assign(phase=segments).promesse(segment="phase").smooth(200)
    found = load(tmp_path / "out").sort_values("user", kind="stable", ignore_index=True)
    assert_equal(found[["user", "time", "phase", "geometry"]], expected)


@pytest.mark.parametrize("kind", ["seconds", "text", "naive", "Paris", "microseconds", "fractions"])
def test_times_of_any_kind_mean_the_same_in_all_files(city, small, tmp_path, kind):
    times = city["time"]
    written = {
        "seconds": times.astype("int64") // 10**9,
        "fractions": times.astype("int64") / 1e9,
        "text": times.dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "naive": times.dt.tz_localize(None),
        "Paris": times.dt.tz_convert("Europe/Paris"),
        "microseconds": times.dt.as_unit("us"),
    }[kind]
    (tmp_path / "in").mkdir()
    table = as_table(city).set_column(1, "time", pa.array(written))
    half = len(city) // 2
    pq.write_table(table.slice(0, half), tmp_path / "in" / "a.parquet")
    pq.write_table(table.slice(half), tmp_path / "in" / "b.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what numbers mean
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
        expected = PROMESSE.protect(pg.read_file(tmp_path / "in"))
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(expected, seed=TOKEN))


def test_a_projected_crs_is_measured_as_all_records_in_memory_are(city, small, tmp_path):
    metric = city.to_crs(32631)
    (tmp_path / "in").mkdir()
    for number in range(3):
        metric.iloc[number::3].to_parquet(tmp_path / "in" / f"{number}.parquet")
    ordered = pd.concat([metric.iloc[number::3] for number in range(3)], ignore_index=True)
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(ordered), seed=TOKEN))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.rename_columns(["who", "time", "lon", "lat"]), "user"),
        (lambda table: table.set_column(0, "user", pa.array(range(len(table)))), "another type"),
        (lambda table: table.set_column(1, "time", table.column("time").cast(pa.timestamp("ns"))), "another type"),
        (lambda table: table.drop(["lat"]), "lat"),
    ],
)
def test_files_that_hold_records_in_another_way_are_named(city, small, tmp_path, change, words):
    save(city, tmp_path / "in")
    table = pq.read_table(tmp_path / "in" / "002.parquet")
    pq.write_table(change(table), tmp_path / "in" / "002.parquet")
    with pytest.raises((ValueError, KeyError), match=words) as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert "002.parquet" in str(caught.value)


def test_a_file_that_is_no_parquet_is_named(city, small, tmp_path):
    save(city, tmp_path / "in")
    (tmp_path / "in" / "003.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ValueError, match=r"003.parquet.*not Parquet"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)


def test_no_records_give_an_empty_part_with_all_columns(city, small, tmp_path):
    save(city.iloc[:0], tmp_path / "in", number=2)
    report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    found = load(tmp_path / "out")
    assert (len(found), list(found.columns), report.records) == (0, ["user", "time", "geometry"], 0)


def test_a_single_trace_keeps_no_user(city, small, tmp_path):
    track = city[city["user"] == "user-003"].drop(columns="user")
    (tmp_path / "in").mkdir()
    track.to_parquet(tmp_path / "in" / "a.parquet")
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, user=None)
    assert_equal(load(tmp_path / "out"), track.promesse(user=None).smooth(200))


def test_nothing_is_written_if_nothing_is_left(city, small, tmp_path):
    save(city, tmp_path / "in")
    with pytest.raises(ValueError, match="Nothing is left to write"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", pg.Promesse(900_000))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_only_a_folder_of_parts_is_replaced(city, small, tmp_path):
    save(city, tmp_path / "in")
    out = tmp_path / "out"
    pg.protect_parquet(tmp_path / "in", out, pg.Promesse(500))
    with pytest.raises(FileExistsError, match="already exists"):
        pg.protect_parquet(tmp_path / "in", out, PROMESSE)
    pg.protect_parquet(tmp_path / "in", out, PROMESSE, force=True)
    assert len(load(out)) == len(PROMESSE.protect(city))
    (out / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not replaced"):
        pg.protect_parquet(tmp_path / "in", out, pg.Promesse(500), force=True)
    assert (out / "notes.txt").read_text() == "mine"


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
def test_parameters_are_checked_before_the_work(city, tmp_path, given, error, words):
    save(city.iloc[:100], tmp_path / "in", number=1)
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


def test_a_mechanism_that_hides_its_breaks_is_named(city, small, tmp_path):
    save(city, tmp_path / "in")
    with pytest.raises(ValueError, match="Torn makes breaks"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", Torn(), keep_users=True)


def test_amounts_of_memory_are_read():
    assert [plan.check_memory(value, owner="x") for value in ("2GB", "1200 mb", "1.5GiB", 10**9)] == [
        2 * 10**9,
        1_200 * 10**6,
        1.5 * 2**30,
        10**9,
    ]


def test_big_buckets_run_alone():
    work = run.Run(job=tasks.Job, done=None, executor=None, workers=2, memory=10**9, drops=False, records=0)
    assert work._has_room([], 10**9)
    assert work._has_room([1_000_000], 2_000_000)
    assert not work._has_room([1_000_000], 2_600_000)
    assert not work._has_room([1, 1], 1)


def test_steps_are_functions_of_files_alone(city, small, tmp_path):
    assert all(step.__module__ == tasks.__name__ for step in (tasks.scatter, tasks.gather, tasks.write_names))


@pytest.mark.parametrize("kind", ["other files", "file", "link"])
def test_a_working_folder_that_is_not_ours_is_left_alone(city, small, tmp_path, kind):
    save(city.iloc[:500], tmp_path / "in", number=1)
    work, other = tmp_path / "out.partial", tmp_path / "other"
    other.mkdir()
    if kind == "link":
        work.symlink_to(other)
    elif kind == "file":
        work.write_text("mine")
    else:
        work.mkdir()
        (work / "thesis.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is no folder of a run"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert os.path.lexists(work)
    assert not list(other.iterdir())
    assert kind != "other files" or (work / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("target", ["in", "in/out", "."])
def test_the_target_is_apart_from_the_source(city, small, tmp_path, target):
    save(city.iloc[:500], tmp_path / "in", number=1)
    (tmp_path / "in" / "000.parquet").rename(tmp_path / "in" / "part-000.parquet")
    with pytest.raises((ValueError, FileExistsError)):
        pg.protect_parquet(tmp_path / "in", tmp_path / target, PROMESSE, force=True)
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["part-000.parquet"]


def test_parts_of_others_are_not_replaced(city, small, tmp_path):
    save(city.iloc[:500], tmp_path / "in", number=1)
    save(city.iloc[:500], tmp_path / "out", number=1)
    (tmp_path / "out" / "000.parquet").rename(tmp_path / "out" / "part-00000.parquet")
    with pytest.raises(FileExistsError, match="not replaced"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, force=True)


def test_targets_of_one_name_do_not_share_their_scratch(city, small, tmp_path):
    save(city, tmp_path / "in")
    for name in ("x", "y", "scratch"):
        (tmp_path / name).mkdir()
    places = {"scratch": tmp_path / "scratch", "keep_users": True}

    def other():
        if not (tmp_path / "y" / "out").exists():
            pg.protect_parquet(tmp_path / "in", tmp_path / "y" / "out", PROMESSE, **places)

    pg.protect_parquet(tmp_path / "in", tmp_path / "x" / "out", Watched(other), executor=Now(), **places)
    for name in ("x", "y"):
        assert len(load(tmp_path / name / "out")) == len(PROMESSE.protect(city))
    assert not list((tmp_path / "scratch").iterdir())


def test_a_file_that_is_replaced_after_the_look_is_noticed(city, small, monkeypatch, tmp_path):
    save(city, tmp_path / "in")
    look = files.find_space

    def replace_file(sources, space):
        (tmp_path / "in" / "002.parquet").write_bytes((tmp_path / "in" / "001.parquet").read_bytes())
        return look(sources, space)

    monkeypatch.setattr(files, "find_space", replace_file)
    with pytest.raises(ValueError, match=r"002.parquet.*changed"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)


def test_text_that_is_no_utf8_is_not_quoted(city, small, tmp_path):
    (tmp_path / "in").mkdir()
    name = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 6], np.int32)), pa.py_buffer(b"M\xfcller")]
    )
    table = as_table(city.iloc[:1]).set_column(0, "user", name)
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    for call in (
        lambda: pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE),
        lambda: pg.protect_arrow(table, PROMESSE),
    ):
        with pytest.raises(ValueError, match="UTF-8") as caught:
            call()
        assert "ller" not in str(caught.value)


def test_times_far_apart_in_different_chunks_are_an_error(city, small, monkeypatch, tmp_path):
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: 10)
    far = city.iloc[:40].assign(user="a", time=pd.to_datetime(["1700-02-01", "2200-02-01"], utc=True).repeat(20))
    save(far, tmp_path / "in", number=2)
    with pytest.raises(ValueError, match="292 years"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", pg.GeoIndistinguishability(0.01))


@pytest.mark.parametrize("scratch", [False, True])
def test_what_a_run_left_that_was_killed_at_its_end_is_removed(city, small, tmp_path, scratch):
    save(city, tmp_path / "in")
    (tmp_path / "scratch").mkdir()
    choices = {"scratch": tmp_path / "scratch"} if scratch else {}
    pid = os.fork()
    if not pid:
        rename = files.publish_folder
        files.publish_folder = lambda *given, **choices: (rename(*given, **choices), os._exit(9))
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, executor=Now(), **choices)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert (tmp_path / "out.partial").exists()
    with pytest.raises(FileExistsError, match="already exists"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, **choices)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "scratch"]
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("scratch", [False, True])
def test_names_may_be_as_long_as_the_file_system_allows(city, small, tmp_path, scratch):
    save(city, tmp_path / "in")
    target = tmp_path / ("o" * 255)
    pg.protect_parquet(tmp_path / "in", target, PROMESSE, scratch=tmp_path if scratch else None)
    assert len(load(target)) == len(PROMESSE.protect(city))


def test_kept_users_lie_in_the_same_files_each_time(city, small, monkeypatch, tmp_path):
    save(city, tmp_path / "in")
    for number in range(2):
        monkeypatch.setattr(folders.secrets, "token_hex", lambda length, number=number: f"{number}f" * length)
        pg.protect_parquet(tmp_path / "in", tmp_path / f"out{number}", PROMESSE, keep_users=True)
    first, second = ({path.name: path.read_bytes() for path in (tmp_path / f"out{each}").iterdir()} for each in (0, 1))
    assert first == second


def test_an_unknown_time_zone_is_named_with_the_file(tmp_path):
    times = pa.array([1, 2], pa.timestamp("ns", "Mars/Phobos"))
    table = pa.table({"user": ["a", "a"], "time": times, "lon": [1.0, 2.0], "lat": [1.0, 2.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    words = r"the time zone of column 'time' is 'Mars/Phobos', which is not known here. Convert"
    with pytest.raises(ValueError, match=f"a.parquet': {words}"):
        pg.protect_parquet(tmp_path / "a.parquet", tmp_path / "out", PROMESSE)
    with pytest.raises(ValueError, match=words):
        pg.protect_arrow(table, PROMESSE)
    with pytest.raises(ValueError, match=f"a.parquet': {words}"):
        pg.read_file(tmp_path / "a.parquet")


@pytest.mark.parametrize("kind", ["integers", "fractions", "unsigned", "text"])
def test_numbers_that_are_no_times_are_invalid_as_in_readers(city, small, tmp_path, kind):
    numbers = city["time"].astype("int64").to_numpy() // 10**9
    numbers[[5, 6, 7]] = 0, 9, 2**62
    written = {
        "integers": pa.array(numbers),
        "fractions": pa.array(np.where(numbers == 2**62, 1e30, numbers)),
        "unsigned": pa.array(numbers.astype(np.uint64)),
        "text": pa.array(numbers.astype(str)),
    }[kind]
    (tmp_path / "in").mkdir()
    pq.write_table(as_table(city).set_column(1, "time", written), tmp_path / "in" / "a.parquet")
    with (
        pytest.raises(ValueError, match=r"cannot be used .*: 3, first in row 5"),
        pytest.warns(UserWarning, match="as seconds since"),
    ):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    with pytest.warns(UserWarning, match=r"as seconds since|3 of .* were dropped"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, errors="skip")
    with pytest.warns(UserWarning, match=r"as seconds since|dropped 3 records"):
        read = pg.read_file(tmp_path / "in", errors="skip")
    expected = PROMESSE.protect(read)
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(expected, seed=TOKEN))


@pytest.mark.parametrize("number", range(8))
def test_a_damaged_file_is_named(city, small, tmp_path, number):
    save(city.iloc[:2000], tmp_path / "in", number=1)
    path = next((tmp_path / "in").iterdir())
    content = bytearray(path.read_bytes())
    random = np.random.default_rng(number)
    for place in random.integers(4, len(content) - 8, 40):
        content[place] ^= random.integers(1, 256)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=path.name):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode")
def test_paths_that_are_no_utf8_are_read_and_written(city, small, tmp_path):
    save(city.iloc[:2000], tmp_path / "in", number=1)
    odd = {name: os.fsdecode(os.fsencode(tmp_path / name) + b"\xff") for name in ("in", "out", "scratch")}
    (tmp_path / "in").rename(odd["in"])
    os.mkdir(odd["scratch"])
    pg.protect_parquet(odd["in"], odd["out"], PROMESSE, scratch=odd["scratch"])
    assert os.listdir(odd["out"]) == ["part-00000.parquet"]
    pg.protect_parquet(odd["in"], odd["out"], PROMESSE, force=True)


def test_the_files_of_a_pattern_are_not_replaced(city, small, tmp_path):
    save(city.iloc[:2000], tmp_path / "in", number=1)
    pg.protect_parquet(tmp_path / "in", tmp_path / "parts", None, prepare={"tz": "UTC"})
    before = load(tmp_path / "parts")
    with pytest.raises(ValueError, match="originals would be lost"):
        pg.protect_parquet(str(tmp_path / "parts" / "*.parquet"), tmp_path / "parts", PROMESSE, force=True)
    assert_equal(load(tmp_path / "parts"), before)


def test_a_folder_that_cannot_be_replaced_comes_back(city, small, monkeypatch, tmp_path):
    save(city.iloc[:2000], tmp_path / "in", number=1)
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    before = load(tmp_path / "out")
    rename = folders.Path.rename

    def refuse(path, target):
        if path.name == "parts":
            raise OSError(errno.EIO, "no more")
        return rename(path, target)

    monkeypatch.setattr(folders.Path, "rename", refuse)
    with pytest.raises(OSError, match="no more"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, force=True)
    assert_equal(load(tmp_path / "out"), before)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("columns", [("visible",), ("valid",), ("visible", "valid")])
def test_folders_leave_out_records_marked_as_bad_as_tables_do(tmp_path, columns):
    city = pg.make_city(users=3, days=1, recorder="phone")
    table = pd.DataFrame(city.assign(lon=city.geometry.x, lat=city.geometry.y).drop(columns="geometry"))
    is_bad = np.zeros(len(table), bool)
    for number, column in enumerate(columns):
        bad = np.arange(len(table)) % 10 == number
        table[column], is_bad = ~bad, is_bad | bad
    table.loc[is_bad, "lat"] = np.nan  # bad records need no position
    (tmp_path / "in").mkdir()
    table[: len(table) // 2].to_parquet(tmp_path / "in" / "a.parquet")
    others = table[len(table) // 2 :].drop(columns=columns[0])
    others[others["lat"].notna()].to_parquet(tmp_path / "in" / "b.parquet")
    with pytest.warns(UserWarning, match=r"marked as bad in the column.*row \d+ of .*counted from 0"):
        report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, keep_users=True)
    with pytest.warns(UserWarning, match=r"marked as bad in the column.*row \d+ of .*counted from 0"):
        expected = pg.read_table(tmp_path / "in")
    assert report.dropped_records == 0
    assert len(expected) == int((~is_bad).sum())
    assert_equal(load(tmp_path / "out"), PROMESSE.protect(expected))
    with pytest.warns(UserWarning, match="marked as bad"):
        result = pg.publish_parquet(tmp_path / "in", None, pg.Promesse(200), dry_run=True)
    assert result.counts["dropped_reading"] == int(is_bad[: len(table) // 2].sum())
