"""The commands check and pseudonymize."""

import ast
import re
import shutil
from pathlib import Path

import geopandas as gpd
import pandas as pd
import pytest
from test_cli import done, failed, make_frame, run

import promesse_geo as pg
from promesse_geo.audit import file_mechanism
from promesse_geo.cli.errors import with_options_named

SAMPLES = Path(__file__).parents[1] / "data" / "sample"


@pytest.fixture(scope="module")
def prepared_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    pg.write(make_frame(), folder / "raw.parquet")
    done("prepare", folder / "raw.parquet", folder / "prepared.parquet")
    return folder / "prepared.parquet"


@pytest.fixture
def prepared(prepared_once, tmp_path):
    """The path of prepared data in a folder of its own."""
    return Path(shutil.copy(prepared_once, tmp_path))


def passed(said):
    """The names of the passed tests, which stand in one line."""
    return re.search(r"^\d+(?: of \d+)? tests? passed: (.*)$", said, re.MULTILINE)[1].split(", ")


def left_out(said):
    """The line of the tests that were left out."""
    return re.search(r"^\d+ tests? left out: (.*)$", said, re.MULTILINE)[1]


def smoothed(prepared, *words):
    done("smooth", prepared, prepared.with_name("safe.parquet"), "--epsilon", 200, *words)
    return prepared.with_name("safe.parquet")


def test_the_check_knows_epsilon_from_the_file_and_passes(prepared):
    said = done("check", prepared, smoothed(prepared, "--keep-users")).stdout
    assert "first points are hidden" in passed(said)
    assert not re.search("^failed", said, re.MULTILINE)


def test_the_check_fails_with_3_on_data_as_it_was(prepared, tmp_path):
    copy = tmp_path / "copy.csv"
    pg.write(gpd.read_parquet(prepared), copy)
    result = run("check", prepared, copy)
    assert result.exit_code == 3
    assert "failed  no original locations" in result.stdout


def test_the_check_sees_a_column_that_reading_leaves_out(prepared, tmp_path):
    safe = gpd.read_parquet(smoothed(prepared, "--keep-users")).assign(phone="secret")
    safe.to_parquet(tmp_path / "more.parquet")
    result = run("check", prepared, tmp_path / "more.parquet")
    assert result.exit_code == 3
    assert "'phone'" in result.stdout
    assert "secret" not in result.stdout


@pytest.mark.parametrize("epsilon", [-1, 0, "nan", 1e9])
def test_an_epsilon_that_is_none_is_a_wrong_call(prepared, epsilon):
    assert "--epsilon must be" in failed("check", prepared, prepared, "--epsilon", epsilon, code=2)


@pytest.mark.parametrize("ending", ["parquet", "csv", "gpkg", "geojson"])
@pytest.mark.parametrize(
    "words",
    [["smooth", "--epsilon", 200], ["geo-indistinguishability", "--epsilon", 0.01], ["pseudonymize"]],
    ids=lambda words: words[0],
)
def test_files_of_ours_pass_the_checks_of_files(prepared, tmp_path, words, ending):
    command, *options = words
    path = tmp_path / f"safe.{ending}"
    done(command, prepared, path, *options)
    said = run("check", prepared, path).stdout
    for test in ("no other columns", "written by promesse-geo", "user names are pseudonyms"):
        assert test in passed(said), said


@pytest.mark.parametrize("ending", ["parquet", "csv", "gpkg", "geojson"])
def test_what_was_smoothed_compares_in_every_format(prepared, tmp_path, ending):
    path = tmp_path / f"safe.{ending}"
    done("smooth", prepared, path, "--epsilon", 200, "--keep-users")
    said = done("check", prepared, path, "--epsilon", 199.99).stdout
    for test in ("users are matched or renamed", "first points are hidden", "no original locations"):
        assert test in passed(said), said


def test_records_that_cannot_be_read_are_published_all_the_same(prepared, tmp_path):
    done("smooth", prepared, tmp_path / "safe.csv", "--epsilon", 200, "--keep-users")
    with (tmp_path / "safe.csv").open("a") as file:
        file.write("secret,,,\n")
    said = failed("check", prepared, tmp_path / "safe.csv", "--skip", code=1)
    assert "1 record of" in said
    assert "secret" not in said


def test_a_folder_is_checked_as_it_is_read(prepared, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    done("smooth", prepared, folder / "safe.parquet", "--epsilon", 200, "--keep-users")
    assert "first points are hidden" in passed(done("check", prepared, folder).stdout)
    (folder / "people.txt").write_text("secret")
    result = run("check", prepared, folder)
    assert result.exit_code == 3
    assert "1 file that the reader ignores" in result.stdout


def test_the_recommended_workflow_ends_with_0(tmp_path):
    raw, parts, safe, published = (tmp_path / f"{name}.parquet" for name in ("raw", "parts", "safe", "published"))
    pg.write(pg.make_city(users=5, days=3, recorder="phone"), raw)
    done("prepare", raw, parts, "--tz", "Europe/Paris")
    done("smooth", parts, safe, "--epsilon", 200, "--keep-users")
    done("check", parts, safe)
    done("pseudonymize", safe, published)
    said = done("check", parts, published).stdout
    assert len(said.splitlines()) == 2, said  # nothing failed, nothing to review
    assert len(passed(said)) + 3 == int(re.match(r"\d+ of (\d+) tests", said)[1])
    for test in ("no impossible jumps in the original", "first points are hidden", "last points are hidden"):
        assert test in left_out(said)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_tests_that_need_the_users_are_said_to_be_left_out_of_renamed_files(prepared, tmp_path, ending):
    path = tmp_path / f"safe.{ending}"
    done("smooth", prepared, path, "--epsilon", 200)
    line = left_out(done("check", prepared, path).stdout)
    assert "first points are hidden, last points are hidden (no user is in both data sets" in line
    assert "--keep-users" in line


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson", "csv"])
def test_unsorted_rows_are_reviewed(prepared, tmp_path, ending):
    safe = gpd.read_parquet(smoothed(prepared, "--keep-users"))
    for number, (frame, verdict) in enumerate([(safe, "passed"), (safe.iloc[::-1], "review")]):
        path = tmp_path / f"{number}.{ending}"
        if ending == "csv":
            frame.assign(lon=frame.geometry.x, lat=frame.geometry.y)[["user", "time", "lon", "lat"]].to_csv(
                path, index=False
            )
        elif ending == "parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_file(path, index=False)
        said = run("check", prepared, path).stdout
        assert ("rows are sorted" in passed(said)) == (verdict == "passed")
        assert bool(re.search("^review +rows are sorted", said, re.MULTILINE)) == (verdict == "review")


def test_what_was_checked_is_renamed_for_publication(prepared, tmp_path):
    safe = smoothed(prepared, "--keep-users")
    done("pseudonymize", safe, tmp_path / "published.parquet")
    published, before = gpd.read_parquet(tmp_path / "published.parquet"), gpd.read_parquet(safe)
    assert set(published["user"]).isdisjoint(before["user"])
    assert sorted(published["time"]) == sorted(before["time"])
    assert file_mechanism(tmp_path / "published.parquet") == pg.Promesse(200)


def test_tests_to_review_are_counted(prepared, tmp_path):
    done("geo-indistinguishability", prepared, tmp_path / "noisy.csv", "--epsilon", 0.01, "--keep-users")
    result = run("check", prepared, tmp_path / "noisy.csv")
    reviews = sum(line.startswith("review ") for line in result.stdout.splitlines())
    assert f"{reviews} test{'s' if reviews > 1 else ''} to review" in result.stderr
    assert "Publish each person once" in result.stderr


@pytest.mark.parametrize("command", [["smooth", "--epsilon", 200], ["geo-indistinguishability", "--epsilon", 0.01]])
def test_swapped_files_are_an_error(prepared, tmp_path, command):
    done(command[0], prepared, tmp_path / "safe.parquet", *command[1:])
    said = failed("check", tmp_path / "safe.parquet", prepared, code=1)
    assert "Are the two swapped?" in said


def test_one_trace_is_smoothed_and_checked_without_users(tmp_path):
    lines = [f"2024-03-04T08:{minute}:00Z,45.7,4.8{minute}" for minute in range(10, 60)]
    (tmp_path / "one.csv").write_text("\n".join(["time,lat,lon", *lines]))
    done("smooth", tmp_path / "one.csv", tmp_path / "safe.csv", "--epsilon", 100, "--one-trace")
    assert (tmp_path / "safe.csv").read_text().splitlines()[0] == '"time","lon","lat"'
    said = done("check", tmp_path / "one.csv", tmp_path / "safe.csv", "--epsilon", 100, "--one-trace").stdout
    assert "no other columns" in passed(said)


def test_help_explains_the_exit_status_3():
    words = " ".join(done("check", "--help").stdout.split())
    assert "exit status is 3 if any test failed" in words


def test_columns_of_the_original_alone_can_be_named(tmp_path):
    """A CSV with names of its own is compared with the GeoParquet made of it."""
    parts = pg.prepare(pg.make_city(users=3, days=1, recorder="phone"), tz="Europe/Paris")
    own = pd.DataFrame({"user": parts.user, "time": parts.time, "Länge": parts.geometry.x, "Breite": parts.geometry.y})
    own.to_csv(tmp_path / "raw.csv", index=False)
    pg.write(parts.promesse.smooth(200), tmp_path / "safe.parquet", mechanism=pg.Promesse(200))
    names = ("--lon", "Länge", "--lat", "Breite")
    assert "failed" not in done("check", tmp_path / "raw.csv", tmp_path / "safe.parquet", *names).stdout


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The folder of raw files of people with naive, zoned and UTC times, with fixes at (0, 0) and jumps."""
    folder = tmp_path_factory.mktemp("recorded")
    frame = pg.make_city(users=3, days=2, recorder="phone")
    frame.loc[[50, 900], "geometry"] = gpd.points_from_xy([0, 9], [0, 50])
    pg.write(frame.assign(time=frame["time"].dt.tz_localize(None)), folder / "naive.csv")
    pg.write(frame, folder / "zoned.parquet")
    pg.write(frame, folder / "tracks.gpx")
    return folder


ENDINGS, RAW = ("parquet", "gpkg", "geojson", "csv", "gpx"), ("naive.csv", "zoned.parquet", "tracks.gpx")
TZ = ((), ("--tz", "Europe/Paris"))


@pytest.mark.parametrize(
    ("raw", "tz", "ending"),  # of these, all pairs
    [(raw, TZ[(i + j) % 2], ending) for i, ending in enumerate(ENDINGS) for j, raw in enumerate(RAW)],
)
def test_raw_files_are_compared_with_what_was_published_of_them(recorded, tmp_path, raw, tz, ending):
    """The files, and the options of reading, are those of publish; days of the common calendar have other times."""
    published = tmp_path / f"published.{ending}"
    done("publish", recorded / raw, published, "--epsilon", 200, *tz)
    said = done("check", recorded / raw, published, *tz).stdout
    assert "no original locations" in passed(said)
    for test in ("no original timestamps", "no record equals an original one"):
        assert test in left_out(said)
    assert "common calendar" in left_out(said)
    said = " ".join(said.split())
    assert "paths are published" not in said
    assert "true dates" not in said
    assert "1 fix at exactly (0, 0); if they were not dropped before, paths to and from there are published" in said
    assert "across which smoothing interpolates if traces were not split there before" in said


def test_true_dates_that_are_published_are_compared_with_raw_files(recorded, tmp_path):
    published = tmp_path / "published.parquet"
    done("publish", recorded / "zoned.parquet", published, "--epsilon", 200, "--calendar", "keep-dates")
    said = done("check", recorded / "zoned.parquet", published).stdout
    assert "no original timestamps" in passed(said)
    assert "true dates" in said


def texts_of(path):
    """Return the texts of a module but docstrings, with X for values."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (docs | parts):
            yield node.value


def test_texts_of_the_check_name_options_that_the_command_has():
    """Whatever is named as a parameter of Python has an option or words of the command behind it."""
    package = Path(pg.__file__).parent
    others = ("risk_page.py", "risk_report.py", "risks.py", "frames.py")  # of the command report, and of frames
    modules = [path for path in (package / "audit").glob("*.py") if path.name not in others]
    texts = [text for path in (*modules, package / "traces" / "pairs.py") for text in texts_of(path)]
    parameter = re.compile(r"\b[a-z_]+=(?![=>])")
    named = [text for text in texts if parameter.search(text)]
    assert len(named) > 5
    assert [text for text in map(with_options_named, named) if parameter.search(text)] == []


def test_exchanged_folders_are_an_error_without_options_that_do_not_exist(tmp_path):
    """Users of folders are read as specified if files of several have the same name."""
    city = pg.make_city(users=3, days=2, recorder="phone")
    for user, rows in city.groupby("user", observed=True):
        for day, part in rows.groupby(rows["time"].dt.date):
            place = tmp_path / "raw" / str(user)
            place.mkdir(parents=True, exist_ok=True)
            pg.write(gpd.GeoDataFrame(part.drop(columns="user")), place / f"{day}.gpx", user=None)
    published = tmp_path / "published.parquet"
    done("publish", tmp_path / "raw", published, "--user", "folder", "--tz", "Europe/Paris", "--epsilon", 200)
    done("check", tmp_path / "raw", published, "--user", "folder")
    said = failed("check", published, tmp_path / "raw", "--user", "folder")
    assert "look exchanged" in said
    assert "mechanism=" not in said
