"""Folders of Parquet are published in bounded memory, with the records of one table in memory."""

import functools
import json
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from parquet_folders import load

import promesse_geo as pg
from promesse_geo.audit import FAILED, LEFT_OUT, PASSED, REVIEW, Finding, merge_findings
from promesse_geo.bulk import files, run
from promesse_geo.cli.commands import main
from promesse_geo.publication import folders
from promesse_geo.publication.buckets import DIVISIBLE, ENDS
from promesse_geo.publication.folders import OTHER_GROUPS
from promesse_geo.publication.result import METRICS

pytestmark = pytest.mark.filterwarnings(
    "ignore:publish dropped", "ignore:drop_zero dropped", "ignore:In .* files overlap in time"
)
PARIS = {"tz": "Europe/Paris"}


@pytest.fixture(scope="module")
def city():
    """12,000 records of some users on three days in no order, with fixes at (0, 0)."""
    frame = pg.make_city(users=9, days=3, seed=4, recorder="phone")
    frame.loc[frame.index[::1_500], "geometry"] = gpd.points_from_xy([0.0], [0.0], crs=4326)[0]
    return frame.iloc[np.random.default_rng(5).permutation(len(frame))[:12_000]].reset_index(drop=True)


@pytest.fixture(scope="module")
def folder(city, tmp_path_factory):
    target = tmp_path_factory.mktemp("raw")
    for number in range(3):
        rows = city.iloc[number::3]
        table = {"user": rows["user"], "time": rows["time"], "lon": rows.geometry.x, "lat": rows.geometry.y}
        pq.write_table(pa.table(table), target / f"{number}.parquet")
    return target


def divide(monkeypatch, buckets):
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: 2_000)
    monkeypatch.setattr(files, "count_buckets", lambda records, memory, workers: buckets)
    monkeypatch.setattr(run, "_PART", 500)


def records(frame):
    """Times and points in an order that does not depend on names."""
    return sorted(zip(frame["time"].tolist(), frame.geometry.to_wkb().tolist(), strict=True))


def traces(frame):
    return sorted(frame.groupby("user").size().tolist())


@pytest.fixture(scope="module")
def publish_table(city):
    """Return a function that publishes the records of one table, once for each calendar."""
    return functools.cache(
        lambda calendar: pg.publish(city, None, pg.Promesse(200), dry_run=True, calendar=calendar, gap="2h", **PARIS)
    )


@pytest.mark.parametrize("buckets", [1, 2, 7])
@pytest.mark.parametrize("calendar", ["common", "paper", "keep-dates"])
def test_the_result_is_that_of_one_table_in_memory(folder, publish_table, monkeypatch, tmp_path, buckets, calendar):
    divide(monkeypatch, buckets)
    choices = PARIS | {"calendar": calendar, "gap": "2h"}
    result = pg.publish_parquet(folder, tmp_path / "out", pg.Promesse(200), **choices)
    expected = publish_table(calendar)
    found = load(tmp_path / "out")
    assert records(found) == records(expected.data)
    assert traces(found) == traces(expected.data)
    assert found["time"].dtype == expected.data["time"].dtype
    assert found["user"].is_monotonic_increasing
    pd.testing.assert_series_equal(result.counts[expected.counts.index], expected.counts)
    measured = result.measures.set_index("metric")
    others = expected.measures.set_index("metric").loc[measured.index]
    assert measured["value"].to_numpy() == pytest.approx(others["value"].to_numpy(), rel=1e-12)
    assert measured["guess"].to_numpy() == pytest.approx(others["guess"].to_numpy(), rel=1e-12, nan_ok=True)
    assert repr(pg.EndRetrieval()) in measured.index
    assert result.path == tmp_path / "out"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_audit_of_one_group_is_that_in_memory(city, folder, monkeypatch):
    divide(monkeypatch, 1)
    result = pg.publish_parquet(folder, None, pg.Promesse(200), dry_run=True, **PARIS)
    expected = pg.publish(city, None, pg.Promesse(200), dry_run=True, **PARIS)
    pd.testing.assert_frame_equal(result.audit, expected.audit)
    assert result.summary == expected.summary


def test_residues_are_measured_with_the_step_of_all_groups(folder, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda number=32: "5f" * 32)
    values = []
    for buckets in (1, 2, 5):
        divide(monkeypatch, buckets)
        measures = pg.publish_parquet(folder, None, pg.GeoIndistinguishability(0.01), dry_run=True, **PARIS).measures
        values.append(measures.set_index("metric").value[repr(pg.Residue())])
    assert values == [values[0]] * 3


def test_what_several_groups_cannot_test_is_left_out(folder, monkeypatch):
    divide(monkeypatch, 3)
    result = pg.publish_parquet(folder, None, pg.Promesse(200), dry_run=True, **PARIS)
    assert result.passed
    assert result.audit.set_index("test").verdict[OTHER_GROUPS] == LEFT_OUT
    missing = [metric for metric in METRICS if metric not in (ENDS, *DIVISIBLE)]
    assert result.measures["metric"].tolist() == [repr(metric) for metric in METRICS if metric not in missing]
    note = next(note for note in result.notes if "needs all users in memory" in note)
    assert all(metric.label in note for metric in missing)


@pytest.mark.parametrize("mechanism", [pg.recommended("fleet"), pg.recommended("people", seed="5f" * 32)])
def test_what_is_recommended_can_be_published(city, folder, monkeypatch, tmp_path, mechanism):
    divide(monkeypatch, 3)
    result = pg.publish_parquet(folder, tmp_path / "out", mechanism, **PARIS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = pg.publish(city, None, mechanism, dry_run=True, **PARIS)
    names = ["zone_records", "kept_users", "breaks", "zone_breaks", "gaps", "traces"]
    assert result.counts[names].tolist() == expected.counts[names].tolist()
    assert result.counts["traces"] == result.counts[names[1:-1]].sum()
    assert result.counts["published_records"] == len(load(tmp_path / "out"))
    assert pg.read_file(tmp_path / "out", as_traces=True).protection == mechanism.description()


@pytest.mark.parametrize(
    "mechanism", [pg.Promesse(700), pg.Chain([pg.PrivacyZones(700, 600, seed="5f" * 32), pg.Promesse(700)])]
)
def test_a_folder_is_warned_of_what_mechanisms_say_of_one_table(city, folder, monkeypatch, mechanism):
    divide(monkeypatch, 3)
    said = []
    for publish, data in ((pg.publish_parquet, folder), (pg.publish, city)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            publish(data, None, mechanism, dry_run=True, **PARIS)
        texts = [str(each.message) for each in caught]
        said.append(next(text for text in texts if text.startswith("publish dropped")))
    assert said[0] == said[1]
    assert "path too short for epsilon" in said[0]


def test_a_failed_test_leaves_nothing(folder, monkeypatch, tmp_path):
    divide(monkeypatch, 3)

    def fail(groups):
        return [*merge_findings(groups), Finding("a test", FAILED, "it fails")]

    monkeypatch.setattr(folders, "merge_findings", fail)
    with pytest.warns(UserWarning, match="Nothing was written, because a test failed"):
        result = pg.publish_parquet(folder, tmp_path / "out", pg.Promesse(200), **PARIS)
    assert result.path is None
    assert not result.passed
    assert list(tmp_path.iterdir()) == []


def test_records_of_no_use_are_counted(city, tmp_path):
    table = pa.table({"user": city["user"], "time": city["time"], "lon": city.geometry.x, "lat": city.geometry.y})
    lon = table["lon"].to_pandas().copy()
    lon[::500] = np.nan
    (tmp_path / "in").mkdir()
    pq.write_table(table.set_column(2, "lon", pa.array(lon)), tmp_path / "in" / "a.parquet")
    with pytest.raises(ValueError, match="row 0 of"):
        pg.publish_parquet(tmp_path / "in", tmp_path / "out", pg.Promesse(200))
    with pytest.warns(UserWarning, match="were dropped"):
        result = pg.publish_parquet(tmp_path / "in", tmp_path / "out", pg.Promesse(200), errors="skip")
    assert result.counts[["dropped_reading", "marked_records"]].tolist() == [len(lon[::500]), 0]


def test_marked_records_are_counted_in_folders_and_files(city, tmp_path):
    is_good = np.arange(len(city)) % 500 > 0
    table = pa.table({"user": city["user"], "time": city["time"], "lon": city.geometry.x, "lat": city.geometry.y})
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.parquet"
    pq.write_table(table.append_column("valid", pa.array(is_good)), path)
    with pytest.warns(UserWarning, match="marked as bad"):
        result = pg.publish_parquet(tmp_path / "in", None, pg.Promesse(200), dry_run=True, **PARIS)
    command = ["publish", str(path), "--epsilon", "200", "--tz", "Europe/Paris", "--dry-run", "--json"]
    of_file = json.loads(CliRunner().invoke(main, command).stdout)["counts"]
    for counts in (result.counts, json.loads(result.to_json())["counts"], of_file):
        assert counts["dropped_reading"] == counts["marked_records"] == (~is_good).sum()


@pytest.fixture
def mixed(city, folder, tmp_path):
    """A folder of Parquet, CSV of other users, and files that nobody reads."""
    users = city["user"].unique()
    place = tmp_path / "mixed"
    (place / "more").mkdir(parents=True)
    pg.write(city[city["user"].isin(users[:6])], place / "a.parquet")
    pg.write(city[city["user"].isin(users[6:])], place / "more" / "b.csv")
    (place / "metadata.json").write_text('{"version": 1, "columns": ["user"]}')
    (place / "notes.docx").write_text("notes")
    return place


@pytest.mark.filterwarnings("ignore:. files? w.* not read")
def test_files_of_other_formats_are_never_left_out_in_silence(mixed, tmp_path):
    protect = {
        "publish": lambda **choices: pg.publish_parquet(mixed, tmp_path / "out", pg.Promesse(200), **choices),
        "protect": lambda **choices: pg.protect_parquet(mixed, tmp_path / "out", pg.Promesse(200), **choices),
        "measure": lambda **choices: pg.measure_parquet(mixed, mixed, **choices),
    }
    for work in protect.values():
        with pytest.raises(ValueError, match=r"b\.csv.*errors='skip'"):
            work()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mixed"]
    with pytest.warns(UserWarning, match="3 files were not read"):
        result = protect["publish"](errors="skip", **PARIS)
    assert (result.counts["users"], result.counts["unread_files"]) == (6, 3)
    for text in (result.to_text(), result.to_html()):
        assert "files (of other endings) not read" in text
    assert json.loads(result.to_json())["counts"]["unread_files"] == 3
    report = pg.protect_parquet(mixed, tmp_path / "parts", pg.Promesse(200), errors="skip")
    assert report.counts["unread_files"] == 3


def test_a_folder_of_several_formats_is_read_at_once_if_there_is_no_output_folder(mixed, tmp_path):
    options = ["--epsilon", "200", "--tz", "Europe/Paris", "--json"]

    def run_with(*others):
        return CliRunner().invoke(main, ["publish", str(mixed), *map(str, others), *options])

    (mixed / "metadata.json").unlink()  # which is no positions
    for done in (run_with("--dry-run"), run_with(tmp_path / "out.parquet")):
        assert done.exit_code == 0, done.output
        counts = json.loads(done.stdout)["counts"]
        assert (counts["users"], counts["unread_files"], counts["skipped_files"]) == (9, 1, 0)
    for refused in (run_with(tmp_path / "out"), run_with("--dry-run", "--memory", "1GB")):
        assert refused.exit_code == 1
        assert "--skip" in refused.stderr
    skipped = run_with(tmp_path / "out", "--skip")
    assert json.loads(skipped.stdout)["counts"]["unread_files"] == 2


def test_json_has_the_same_keys_for_frames_files_and_folders(city, folder, monkeypatch, tmp_path):
    divide(monkeypatch, 3)
    frame = pg.publish(city, None, pg.Promesse(200), dry_run=True, **PARIS)
    contents = {
        "frame": json.loads(frame.to_json()),
        "folder": json.loads(pg.publish_parquet(folder, None, pg.Promesse(200), dry_run=True, **PARIS).to_json()),
    }
    pg.write(city, tmp_path / "city.csv")
    done = CliRunner().invoke(main, ["publish", str(tmp_path / "city.csv"), "--epsilon=200", "--dry-run", "--json"])
    contents["file"] = json.loads(done.stdout)
    schemas = {
        name: (set(each), set(each["counts"]), [(row["metric"], row["unit"], set(row)) for row in each["measures"]])
        for name, each in contents.items()
    }
    assert schemas["folder"] == schemas["file"] == schemas["frame"]
    assert contents["frame"]["counts"]["unread_files"] is None
    values = {row["metric"]: row["value"] for row in contents["folder"]["measures"]}
    assert [metric for metric, value in values.items() if value is None] == [
        repr(metric) for metric in METRICS if metric not in (ENDS, *DIVISIBLE)
    ]


@pytest.mark.parametrize(
    ("mechanism", "choices", "error", "words"),
    [
        (pg.WaitForMe(), {}, ValueError, "compares all traces"),
        (pg.Promesse(200, ends=300, seed=1), {}, ValueError, "has a seed"),
        (pg.Promesse(10**6), {}, ValueError, "no trace could be protected"),
        (pg.Promesse(200), {"min_days": 50}, ValueError, "no record is left after"),
        (pg.Promesse(200), {"memory": "2"}, ValueError, "memory"),
        (pg.Promesse(200), {"calendar": "lunar"}, ValueError, "calendar"),
        (200, {}, TypeError, "mechanism"),
    ],
)
def test_errors(folder, tmp_path, mechanism, choices, error, words):
    with pytest.raises(error, match=words):
        pg.publish_parquet(folder, tmp_path / "out", mechanism, **choices)
    assert list(tmp_path.iterdir()) == []


def test_data_without_users_are_split_into_parts(city, tmp_path):
    one = city[city["user"] == city["user"].iloc[0]]
    (tmp_path / "in").mkdir()
    table = pa.table({"time": one["time"], "lon": one.geometry.x, "lat": one.geometry.y})
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    pg.publish_parquet(tmp_path / "in", tmp_path / "out", pg.Promesse(200), user=None, gap="2h", **PARIS)
    alone = one.drop(columns="user")
    expected = pg.publish(alone, None, pg.Promesse(200), dry_run=True, user=None, gap="2h", **PARIS)
    assert traces(load(tmp_path / "out")) == traces(expected.data)
    assert records(load(tmp_path / "out")) == records(expected.data)
    prepare = {"gap": "2h", "keep_zero": False, **PARIS}
    with pytest.warns(UserWarning, match="drop_zero dropped"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "parts", None, user=None, prepare=prepare)
    parts = pg.prepare(pg.drop_zero(alone, user=None), gap="2h", user=None, **PARIS)
    assert traces(load(tmp_path / "parts")) == traces(parts)


def test_groups_are_merged_by_the_worst_verdict():
    groups = [
        [Finding("a", PASSED, "fine"), Finding("b", PASSED, "1 of 2"), Finding("c", PASSED, "fine")],
        [Finding("a", PASSED, "fine"), Finding("b", PASSED, "2 of 3"), Finding("c", REVIEW, "look")],
        [Finding("a", PASSED, "fine"), Finding("b", PASSED, "2 of 3"), Finding("c", FAILED, "bad")],
    ]
    assert merge_findings(groups) == [
        Finding("a", PASSED, "fine"),
        Finding("b", PASSED, "in 3 of 3 groups of users, such as: 1 of 2"),
        Finding("c", FAILED, "in 1 of 3 groups of users, such as: bad"),
    ]


def test_the_command_publishes_a_folder(city, folder, tmp_path):
    given = [folder, tmp_path / "out", "--epsilon", "200", "--tz", "Europe/Paris", "--memory", "600MB", "--json"]
    result = CliRunner().invoke(main, ["publish", *map(str, given)])
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["passed"]
    assert content["counts"]["published_records"] == len(load(tmp_path / "out"))
    again = CliRunner().invoke(main, ["publish", *map(str, given)])
    assert again.exit_code == 1
    assert "already exists" in again.output
    dry = CliRunner().invoke(main, ["publish", str(folder), "--epsilon", "200", "--dry-run", "--workers", "1"])
    assert dry.exit_code == 0, dry.output
    assert "Not written (dry run)" in dry.output
    wrong = CliRunner().invoke(
        main, ["publish", str(folder), str(tmp_path / "a.csv"), "--epsilon", "200", "--memory=2GB"]
    )
    assert wrong.exit_code == 2
