"""The one road from raw data to a published file: `publish` in Python and on the command line."""

import json
import os
import re
import warnings
from dataclasses import dataclass, replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli import main
from promesse_geo.publication.result import METRICS

ROWS_PER_DAY = 240  # one record every two minutes for eight hours


def volunteers(users=6, days=3, *, zeros=4, jumps=5, seed=1):
    """Raw data as volunteers send it: local times, fixes at (0, 0), jumps, a user who stays, one with one record."""
    rng = np.random.default_rng(seed)
    frames = []
    for number in range(users):
        home, work = np.array([[7.62, 51.96]]) + rng.normal(0, 0.02, (2, 2))
        if number == users - 2:
            work = home  # never moves
        share = np.clip(np.interp(np.arange(ROWS_PER_DAY), [0, 30, 60, 180, 210, 240], [0, 0, 1, 1, 0, 0]), 0, 1)[
            :, None
        ]
        for day in range(days):
            begin = pd.Timestamp("2025-10-20 07:00", tz="Europe/Berlin") + pd.Timedelta(days=day)
            times = begin + pd.to_timedelta(np.arange(ROWS_PER_DAY) * 120 + 7, unit="s")
            places = home + (work - home) * share + rng.normal(0, 2e-5, (ROWS_PER_DAY, 2))
            frames.append(pd.DataFrame({"user": f"p{number}", "time": times, "lon": places[:, 0], "lat": places[:, 1]}))
        if number == users - 1:
            frames = [*frames[:-days], frames[-days].iloc[:1]]
    table = pd.concat(frames, ignore_index=True)
    odd = np.flatnonzero(table.user.isin([f"p{number}" for number in range(users - 2)]))[20:-20:40]
    odd = rng.permutation(odd)[: zeros + jumps]
    table.loc[odd[:zeros], ["lon", "lat"]] = 0.0
    table.loc[odd[zeros:], "lon"] += 1.5  # about 100 km in two minutes
    return gpd.GeoDataFrame(table[["user", "time"]], geometry=gpd.points_from_xy(table.lon, table.lat), crs=4326)


@pytest.fixture(scope="module")
def raw():
    return volunteers()


@pytest.fixture(scope="module")
def csv(raw, tmp_path_factory):
    file = tmp_path_factory.mktemp("raw") / "raw.csv"
    pg.write(raw, file)
    return file


def publish(*arguments):
    return CliRunner().invoke(main, ["publish", *map(str, arguments)])


def test_every_oddity_is_counted_and_the_rest_published(raw, tmp_path):
    with pytest.warns(UserWarning, match="4 fixes"):
        result = raw.promesse.publish(tmp_path / "public.parquet", pg.Promesse(200))
    expected = {"records": len(raw), "users": 6, "single_record_users": 1, "zero_fixes": 4, "jumps": 5}
    expected |= {"dropped_zero_fixes": 4, "dropped_jumps": 5, "fast_steps": 0, "swapped_axes": 0}
    assert {name: int(result.counts[name]) for name in expected} == expected
    assert result.counts["gaps"] == 5 * 2  # two nights of each user with more than a record
    assert result.passed
    assert result.path == tmp_path / "public.parquet"
    published = pg.read_table(result.path)
    assert len(published) == len(result.data) == result.counts["published_records"]
    assert not set(published.user) & set(raw.user)


def test_no_published_point_is_off_the_paths(raw, tmp_path):
    with pytest.warns(UserWarning, match="dropped"):
        result = raw.promesse.publish(None, pg.Promesse(200), dry_run=True)
    clean = volunteers(zeros=0, jumps=0).to_crs(25832)
    paths = [shapely.LineString(points.tolist()) for _, points in clean.groupby("user").geometry if len(points) > 1]
    published = result.data.to_crs(25832).geometry.to_numpy()
    _, distances = shapely.STRtree(paths).query_nearest(published, return_distance=True, all_matches=False)
    assert len(published) > 100
    assert distances.max() < 20  # metres: the records that were odd left their path to the next ones


def test_nothing_is_written_if_a_test_fails(raw, tmp_path):
    @dataclass(frozen=True)
    class Nothing(pg.Mechanism):
        def _protect(self, traces):
            return replace(traces)

    with pytest.warns(UserWarning, match="[Nn]othing was written"):
        result = raw.promesse.publish(tmp_path / "public.csv", Nothing())
    assert not result.passed
    assert result.path is None
    assert os.listdir(tmp_path) == []
    assert "so nothing was written" in repr(result)


def test_the_page_has_each_count_and_measure_in_a_row_of_its_own(raw):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = raw.promesse.publish(None, pg.Promesse(200), dry_run=True)
    text = result.to_html()
    cells = re.findall(r"<tr><td>([^<]*)</td><td[^>]*>([^<]*)</td></tr>", text)
    counts = [" ".join(line.split()) for line in result.summary[1:]]
    assert [" ".join(row).replace("\N{NO-BREAK SPACE}", " ") for row in cells[: len(counts)]] == counts
    assert len(cells) == len(counts) + len(result.measures)
    assert "lower is more private" in text


def test_places_at_the_ends_of_all_parts_of_a_user_are_measured_beside_guessing():
    city = pg.make_city(users=6, days=7, seed=3, recorder="phone")
    parts = city.promesse.prepare(tz="Europe/Paris", days=7, keep_user=True)
    with warnings.catch_warnings(action="ignore"):
        safe, result = (
            parts.promesse.smooth(200),
            pg.publish(city, None, pg.Promesse(200), tz="Europe/Paris", dry_run=True),
        )
    metric = pg.EndRetrieval()
    detail = metric.detail(parts, safe)
    measured = result.measures.set_index("metric").loc[repr(metric)]
    assert measured.value == pytest.approx(metric.value(detail))
    assert measured.value > 50
    assert measured.guess == pytest.approx(metric.guess(detail))
    assert re.search(r"end retrieval \(lower is more private\), guessing [\d.]+ %", repr(result))


def test_the_homes_that_attackers_look_for_are_those_before_zones_are_removed(monkeypatch):
    city, seen = pg.make_city(users=6, days=7, seed=3, as_traces=True, recorder="phone"), {}

    def spy(original, protected, metrics):
        seen.update(dict.fromkeys(map(type, metrics), original.records))
        return pg.measure(original, protected, metrics)

    monkeypatch.setattr("promesse_geo.publication.steps.measure", spy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = pg.publish(city, None, pg.recommended("people"), tz="Europe/Paris", dry_run=True)
    assert not any("overlap in time" in str(warning.message) for warning in caught)
    assert seen[pg.EndRetrieval] == city.records > seen[pg.PoiRetrieval]
    assert result.measures["metric"].tolist() == [repr(metric) for metric in METRICS]


def test_a_dry_run_writes_nothing_and_says_the_same(raw, tmp_path):
    with pytest.warns(UserWarning, match="dropped"):
        dry = raw.promesse.publish(tmp_path / "public.csv", pg.Promesse(200), dry_run=True)
    assert os.listdir(tmp_path) == []
    assert dry.path is None
    with pytest.warns(UserWarning, match="dropped"):
        wet = raw.promesse.publish(tmp_path / "public.csv", pg.Promesse(200))
    pd.testing.assert_series_equal(dry.counts, wet.counts)


@pytest.mark.parametrize("calendar", ["common", "paper", "keep-dates"])
def test_calendars(raw, calendar):
    with pytest.warns(UserWarning, match="dropped"):
        result = raw.promesse.publish(None, pg.Promesse(200), calendar=calendar, dry_run=True)
    year = result.data.time.dt.year.unique().tolist()
    assert year == ([2025] if calendar == "keep-dates" else [2000])
    assert any("true dates" in note for note in result.notes) == (calendar == "keep-dates")


def test_the_audit_runs_the_same_tests_whatever_the_data():
    tests, kept = set(), volunteers()
    for choices in ({}, {"keep_zero": True, "max_speed": None, "calendar": "keep-dates"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = kept.promesse.publish(None, pg.Promesse(200), tz="Europe/Paris", dry_run=True, **choices)
            audit = result.audit.set_index("test")
        tests.add(frozenset(audit.index))
        verdicts = {"passed"} if not choices else {"review"}
        assert set(audit.verdict[["no zero fixes in the original", "no impossible jumps in the original"]]) == verdicts
        assert not (audit.verdict == "left out").any()
    assert "calendar='common'" in audit.reason["data are prepared"]
    assert len(tests) == 1


def test_speeds_on_the_common_calendar_are_said_to_be_unknown():
    moved = pg.collapse_empty_days(pg.make_city(users=3, days=2, recorder="phone"), tz="Europe/Paris")
    audit = moved.promesse.publish(None, pg.Promesse(200), dry_run=True).audit.set_index("test")
    assert (audit.verdict[["no impossible jumps in the original", "no fast steps in the raw data"]] == "left out").all()


@pytest.mark.parametrize(
    ("mechanism", "count"), [(pg.GeoIndistinguishability(0.01, grid=1), 3), (pg.WaitForMe(k=2, max_trash=0.5), 4)]
)
def test_tests_that_a_mechanism_leaves_out_are_named_everywhere(mechanism, count):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = pg.make_city(users=6, days=5, recorder="phone").promesse.publish(
            None, mechanism, tz="Europe/Paris", dry_run=True
        )
    left_out = result.audit[result.audit["verdict"] == "left out"]
    line = f"{count} tests left out: {', '.join(left_out['test'])} ({left_out['reason'].iloc[0]})"
    assert len(left_out) == count
    assert line in result.to_text(width=None)
    assert line.split(" (", maxsplit=1)[0] in " ".join(result.to_html().split())
    rows = json.loads(result.to_json())["audit"]
    assert [row["test"] for row in rows if row["verdict"] == "left out"] == left_out["test"].tolist()


@pytest.mark.filterwarnings("error")
def test_publish_warns_of_no_step_that_it_does_itself():
    times = pd.date_range("2025-10-20", periods=100, freq="1h", tz="UTC")  # a trace of four days without a long gap
    places = gpd.points_from_xy(7.6 + np.arange(100) / 100, np.full(100, 52))
    frame = gpd.GeoDataFrame({"user": "a", "time": times}, geometry=places, crs=4326)
    audit = frame.promesse.publish(None, pg.Promesse(200), calendar="keep-dates", dry_run=True).audit
    assert audit.set_index("test").verdict["data are prepared"] == "review"
    gaps = frame[(times.hour < 6) | (times.hour > 10)]
    audit = gaps.promesse.publish(None, pg.Promesse(200), gap="12h", dry_run=True).audit.set_index("test")
    assert "--gap" in audit.reason["data are prepared"]
    with pytest.warns(UserWarning, match="not prepared"):
        frame.promesse.smooth(200)


def test_the_paper_keeps_twenty_days():
    long = volunteers(users=3, days=25, zeros=0, jumps=0)
    with pytest.warns(UserWarning, match="after the first 20 days"):
        paper = long.promesse.publish(None, pg.Promesse(200), calendar="paper", dry_run=True)
    assert paper.counts["dropped_other_days"] == 5 * ROWS_PER_DAY * 2
    with pytest.warns(UserWarning, match="dropped"):
        common = long.promesse.publish(None, pg.Promesse(200), dry_run=True)
    assert common.counts["dropped_other_days"] == 0


def test_zero_fixes_and_jumps_can_be_kept(raw):
    with pytest.warns(UserWarning, match="dropped"):
        kept = raw.promesse.publish(None, pg.Promesse(20_000), keep_zero=True, max_speed=None, dry_run=True)
    assert (kept.counts["dropped_zero_fixes"], kept.counts["dropped_jumps"]) == (0, 0)
    with pytest.warns(UserWarning, match="too high a speed"):
        zeros = raw.promesse.publish(None, pg.Promesse(20_000), keep_zero=True, dry_run=True)
    assert (zeros.counts["dropped_zero_fixes"], zeros.counts["dropped_jumps"]) == (0, 5)
    assert kept.counts["zero_fixes"] == 4


def test_steps_that_may_be_true_are_kept_and_counted():
    slow = volunteers(zeros=0, jumps=0)
    rows = slow.user == "p0"
    x = slow[rows].geometry.x + np.where(np.arange(rows.sum()) % ROWS_PER_DAY > 100, 0.15, 0)
    slow.loc[rows, "geometry"] = gpd.points_from_xy(x, slow[rows].geometry.y)
    with pytest.warns(UserWarning, match="dropped"):
        result = slow.promesse.publish(None, pg.Promesse(200), dry_run=True)
    assert result.counts["fast_steps"] == 3  # 10 km in two minutes, once a day
    assert result.counts["dropped_jumps"] == 0
    assert "--max-speed 50" in repr(result)
    assert result.audit.set_index("test").verdict["no fast steps in the raw data"] == "review"


def test_repeated_fast_steps_are_named_for_review(tmp_path):
    minutes, users = 24, 60
    rng = np.random.default_rng(2)
    homes = np.array([7.62, 51.96]) + rng.normal(0, 0.05, (users, 2))
    east = np.arange(minutes) * 0.006 + np.isin(np.arange(minutes), np.arange(3, 24, 3)) * 0.22  # 15 km in a minute
    times = pd.Timestamp("2025-10-20 07:00:07", tz="Europe/Berlin") + pd.to_timedelta(np.arange(minutes), unit="min")
    names = np.repeat([f"p{number:02}" for number in range(users)], minutes)
    points = gpd.points_from_xy(np.add.outer(homes[:, 0], east).ravel(), np.repeat(homes[:, 1], minutes))
    frame = gpd.GeoDataFrame({"user": names, "time": np.tile(times, users)}, geometry=points, crs=4326)
    pg.write(frame, tmp_path / "raw.csv")
    fast = pg.describe(frame)["fast_steps"]
    assert fast > 7 * users
    run = publish(tmp_path / "raw.csv", tmp_path / "out.parquet", "--epsilon", 200, "--json")
    assert run.exit_code in (0, 3), run.output  # 3 if a test failed
    report = json.loads(run.stdout)
    assert (run.exit_code == 3) is not report["passed"]
    assert (tmp_path / "out.parquet").exists() is report["passed"]
    found = {row["test"]: row for row in report["audit"]}["no fast steps in the raw data"]
    assert found["verdict"] == "review"
    assert report["counts"]["dropped_jumps"] == 0
    assert f"{fast:,.0f} steps" in found["reason"]
    assert "--max-speed 50" in found["reason"]


def test_traces_give_traces(raw):
    with pytest.warns(UserWarning, match="dropped"):
        result = pg.publish(raw.promesse.traces(), None, pg.Promesse(200), dry_run=True)
    assert isinstance(result.data, pg.Traces)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"calendar": "common days"}, "calendar"),
        ({"max_speed": -1}, "max_speed"),
        ({"gap": "often"}, "gap"),
        ({"keep_zero": "no"}, "keep_zero"),
        ({"min_days": 0}, "min_days"),
        ({"tz": "Mars"}, "tz"),
    ],
)
def test_parameters_are_checked_first(raw, choices, words):
    with pytest.raises((ValueError, TypeError), match=words):
        raw.promesse.publish(None, pg.Promesse(200), dry_run=True, **choices)


def test_a_seed_is_refused(raw):
    with pytest.raises(ValueError, match="seed"):
        raw.promesse.publish(None, pg.GeoIndistinguishability(0.01, seed=1), dry_run=True)
    with pytest.raises(TypeError, match="mechanism"):
        raw.promesse.publish(None, 200, dry_run=True)
    with pytest.raises(TypeError, match="path"):
        raw.promesse.publish(None, pg.Promesse(200))


def test_the_command_writes_file_report_and_choices(csv, tmp_path):
    target, report, config = (tmp_path / name for name in ("public.gpkg", "report.html", "choices.json"))
    chosen = ("--epsilon", 200, "--tz", "Europe/Berlin", "--max-speed", 60)
    run = publish(csv, target, *chosen, "--report", report, "--save-config", config)
    assert run.exit_code == 0, run.output
    assert target.stat().st_size
    assert "fixes at exactly (0, 0)" in report.read_text(encoding="utf-8")
    assert json.loads(config.read_text()) == {"epsilon": 200.0, "tz": "Europe/Berlin", "max_speed": 60.0}
    again = publish(csv, tmp_path / "again.csv", "--config", config, "--json")
    assert again.exit_code == 0, again.output
    content = json.loads(again.stdout)
    assert content["passed"]
    assert content["counts"]["zero_fixes"] == 4
    assert content["path"] == str(tmp_path / "again.csv")
    assert {row["verdict"] for row in content["audit"]} <= {"passed", "review"}


def test_an_option_overrides_the_file_of_choices(csv, tmp_path):
    config = tmp_path / "choices.json"
    config.write_text('{"epsilon": 100, "keep_zero": true}')
    run = publish(csv, "--dry-run", "--config", config, "--json", "--max-speed", 1000, "--epsilon", 20_000)
    assert run.exit_code in (0, 1), run.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "epsilon"),
        (["--epsilon", "0"], "epsilon"),
        (["--epsilon", "200", "--parameter", "seed=1"], "seed"),
        (["--epsilon", "200", "--parameter", "k"], "NAME=VALUE"),
        (["--epsilon", "200", "--tz", "Mars"], "tz"),
        (["--epsilon", "200", "--gap", "often"], "gap"),
    ],
)
def test_wrong_use_is_status_2(csv, tmp_path, arguments, words):
    run = publish(csv, tmp_path / "public.csv", *arguments)
    assert run.exit_code == 2
    assert words in run.output


@pytest.mark.parametrize(
    "content",
    [
        '{"seed": 1}',
        "no json",
        "[1]",
        '{"epsilon": true}',
        '{"epsilon": [200]}',
        '{"epsilon": 200, "epsilon": 3}',
        '{"epsilon": 200, "min_days": 1.7}',
        '{"epsilon": 200, "min_days": 1e400}',
        '{"epsilon": 200, "max_speed": null}',
        '{"epsilon": 200, "keep_zero": 1}',
        '{"epsilon": 200, "crs": {"a": 1}}',
        '{"epsilon": 200, "report": "x.html"}',
        "[" * 100_000,
    ],
)
def test_a_wrong_file_of_choices_is_wrong_use(csv, tmp_path, content):
    config = tmp_path / "choices.json"
    config.write_text(content)
    run = publish(csv, "--dry-run", "--config", config)
    assert run.exit_code == 2, run.output
    assert "Traceback" not in run.output


@pytest.mark.parametrize("option", ["--report", "--save-config"])
def test_the_files_of_a_run_are_different(csv, tmp_path, option):
    target = tmp_path / "same.geojson"
    run = publish(csv, target, "--epsilon", 200, option, target, "--force")
    assert run.exit_code == 2
    assert "same file" in run.output
    config = tmp_path / "choices.json"
    config.write_text('{"epsilon": 200}')
    assert publish(csv, target, "--config", config, option, config, "--force").exit_code == 2
    assert config.read_text() == '{"epsilon": 200}'


def test_traces_are_split_at_gaps_that_the_calendar_closes():
    """The last record of a day and the first of the next day with data are minutes apart on the common calendar."""
    times = [
        *pd.date_range("2024-01-01 23:00", periods=60, freq="30s"),
        *pd.date_range("2024-01-06 00:10", periods=60, freq="30s"),
    ]
    x = np.concatenate((2.0 + np.arange(60) * 5e-4, 2.3 + np.arange(60) * 5e-4))
    frame = gpd.GeoDataFrame(
        {"user": "a", "time": pd.DatetimeIndex(times, tz="UTC")},
        geometry=gpd.points_from_xy(x, np.full(120, 48.0)),
        crs=4326,
    )
    result = frame.promesse.publish(None, pg.Promesse(200), dry_run=True)
    assert (result.counts["gaps"], result.counts["traces"]) == (1, 2)
    assert not result.data.geometry.x.between(2.031, 2.299).any()


def test_a_parameter_that_is_a_user_is_refused(raw):
    @dataclass(frozen=True)
    class Without(pg.Mechanism):
        skipped: tuple[str, ...]

        def _protect(self, traces):
            return traces.select(~np.isin(traces.trace_numbers, [0]))

    with pytest.raises(ValueError, match="key of a user") as caught:
        raw.promesse.publish(None, Without(("p0",)), dry_run=True)
    assert "p0" not in str(caught.value)
    words = {"p0": "skipped", "p1": "mechanisms", "p2": "epsilon"}
    named = raw.assign(user=raw["user"].map(words).fillna("other"))
    with pytest.raises(ValueError, match="key of a user"):
        named.promesse.publish(None, pg.Chain([Without(({"epsilon": 1},)), pg.Promesse(200)]), dry_run=True)
    with warnings.catch_warnings(action="ignore"):
        named.promesse.publish(None, pg.Chain([Without(("nobody",)), pg.Promesse(200)]), dry_run=True)


def test_users_may_be_called_like_parameters_and_choices(raw, tmp_path):
    words = ["polyline", "variant", "epsilon", "members", "mechanisms", "radius"]
    users = raw["user"].unique().tolist()
    named = raw.assign(user=raw["user"].map(dict(zip(users, words, strict=False))).fillna("other"))
    for mechanism in (pg.Promesse(200), pg.WaitForMe(), pg.Chain([pg.PrivacyZones(50, 10), pg.Promesse(200)])):
        with warnings.catch_warnings(action="ignore"):
            pg.publish(named, tmp_path / "out.parquet", mechanism, force=True)
        assert not set(pg.read_file(tmp_path / "out.parquet")["user"]) & set(words)


def test_users_with_few_days_are_counted(raw):
    with pytest.warns(UserWarning, match="1 user .* with fewer than 2 days"):
        result = raw.promesse.publish(None, pg.Promesse(200), min_days=2, dry_run=True)
    assert result.counts["dropped_users"] == 1
    assert result.counts["published_users"] == 4  # one never moves


def test_nothing_left_says_what_was_dropped(raw):
    with pytest.raises(ValueError, match=r"4 fixes .* 6 users .* with fewer than 30 days"):
        raw.promesse.publish(None, pg.Promesse(200), min_days=30, dry_run=True)
    with pytest.raises(ValueError, match="no trace could be protected"):
        raw.promesse.publish(None, pg.Promesse(500_000), dry_run=True)


def test_a_file_is_needed_but_in_a_dry_run(csv):
    assert publish(csv, "--epsilon", 200).exit_code == 2
    assert publish(csv, "--epsilon", 200, "--dry-run").exit_code == 0


def test_other_mechanisms_take_their_parameters(csv, tmp_path):
    run = publish(
        csv, tmp_path / "a.csv", "--mechanism", "geo-indistinguishability", "--epsilon", 0.01, "--parameter", "grid=1"
    )
    assert run.exit_code == 0, run.output


def test_an_existing_file_stays(csv, tmp_path):
    target = tmp_path / "public.csv"
    target.write_text("mine")
    assert publish(csv, target, "--epsilon", 200).exit_code == 1
    assert target.read_text() == "mine"
    assert publish(csv, csv, "--epsilon", 200, "--force").exit_code == 2


def test_a_report_shows_no_markup_of_the_data(raw, tmp_path):
    hostile = raw.replace({"user": {"p0": "<script>alert(1)</script>"}})
    with pytest.warns(UserWarning, match="dropped"):
        page = hostile.promesse.publish(None, pg.Promesse(200), dry_run=True).to_html()
    assert "<script" not in page


def test_what_is_dropped_while_reading_is_in_the_report(tmp_path):
    city = pg.make_city(users=3, days=2, recorder="phone")
    rows = pd.DataFrame({"user": city["user"], "time": city["time"].astype(str)})
    rows["lon"], rows["lat"] = city.geometry.x, city.geometry.y
    rows.loc[[3, 5, 8], "time"] = ""
    rows.loc[[20, 21], "lat"] = None
    rows.to_csv(tmp_path / "raw.csv", index=False)
    words = [str(tmp_path / "raw.csv"), "--skip", "--epsilon", "200", "--dry-run", "--json"]
    done = CliRunner().invoke(main, ["publish", *words, "--report", str(tmp_path / "report.html")])
    assert done.exit_code == 0, done.output
    counts = json.loads(done.stdout)["counts"]
    assert counts["dropped_reading"] == 5
    assert counts["skipped_files"] == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "dropped while reading" in page
    assert "raw.csv" not in page
    assert "dropped 2 records" in done.stderr
    assert "3 records (no time" in done.stderr


@pytest.mark.parametrize(
    ("zone", "tz", "expected"),
    [
        (None, None, "days of the local times"),
        ("UTC", None, "days of UTC, the zone of the times"),
        ("Asia/Tokyo", None, "days of Asia/Tokyo, the zone of the times"),
        ("UTC", "Asia/Tokyo", "days of Asia/Tokyo"),
    ],
)
def test_the_first_line_says_where_days_begin(zone, tz, expected):
    city = pg.make_city(users=2, days=2, recorder="phone")
    city["time"] = city["time"].dt.tz_convert(zone)
    result = pg.publish(city, None, pg.Promesse(200), tz=tz, dry_run=True)
    assert expected in result.summary[0]


@pytest.mark.filterwarnings("ignore:publish dropped")
def test_a_single_person_is_to_be_reviewed():
    """New names hide nobody among nobody else."""
    alone, several = (pg.make_city(users=users, days=2, recorder="phone") for users in (1, 2))
    for city, expected in ((alone, {"review"}), (several, set())):
        audit = pg.publish(city, None, pg.Promesse(200), tz="Europe/Paris", dry_run=True).audit
        assert set(audit.loc[audit["test"] == "there are several people", "verdict"]) == expected
    parts = alone.promesse.prepare(tz="Europe/Paris", keep_user=True)
    checked = pg.check_published(parts, pg.Promesse(200).protect(parts))
    assert checked.set_index("test").verdict["there are several people"] == "review"


def test_users_breaks_and_gaps_add_up_to_traces():
    city = pg.make_city(users=4, days=4, seed=2, recorder="trips")
    frame = city.assign(segment=np.arange(len(city)) // 900)
    traces = pg.Traces.from_frame(frame, segment="segment")
    zones = pg.Chain([pg.PrivacyZones(300, 200, seed="5f" * 32), pg.Promesse(200)])
    for mechanism in (pg.Promesse(200), zones):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = pg.publish(traces, None, mechanism, tz="Europe/Paris", dry_run=True)
        counts = result.counts
        users = counts["kept_users"]
        assert users == counts["users"] - counts["zone_users"] - counts["dropped_users"]
        assert counts["breaks"] > 5
        assert counts["gaps"] > 5
        assert counts["traces"] == users + counts["breaks"] + counts["zone_breaks"] + counts["gaps"]
        assert re.search(r"after splitting at gaps and breaks \(of \d+ users?\)", " ".join(result.to_text().split()))


@pytest.mark.filterwarnings("ignore:The data")
@pytest.mark.parametrize("road", ["frame", "folder"])
def test_the_gap_is_named_if_it_split_all(small_city, tmp_path, road):
    (tmp_path / "in").mkdir()
    pg.write(small_city, tmp_path / "in" / "city.parquet")
    few = pg.Promesse(100_000)
    publish = pg.publish_parquet if road == "folder" else pg.publish
    source = tmp_path / "in" if road == "folder" else small_city
    with pytest.raises(ValueError, match=r"gaps split .* records: take a longer gap \(--gap\)"):
        publish(source, tmp_path / "public.parquet", few, tz="UTC", gap=0.5)
    with pytest.raises(ValueError, match=r"Take a smaller epsilon \(--epsilon\)\.") as caught:
        publish(source, tmp_path / "public.parquet", few, tz="UTC")
    assert "--gap" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("tz", "swapped", "verdict"),
    [
        (None, True, "left out"),
        (None, False, "left out"),
        ("Europe/Paris", True, "review"),
        ("Europe/Paris", False, "passed"),
    ],
)
def test_axes_are_judged_only_if_something_tells_where_the_data_are(tz, swapped, verdict):
    city = pg.make_city(users=3, days=2)
    if swapped:
        city = city.set_geometry(gpd.points_from_xy(city.geometry.y, city.geometry.x, crs=4326))
    audit = city.promesse.publish(None, pg.Promesse(200), tz=tz, dry_run=True).audit.set_index("test")
    assert audit.verdict["x and y are not swapped"] == verdict
