"""The command `map`: pages of original data, protected data, and both."""

import stat

import geopandas as gpd
import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    city = pg.make_city(users=3, days=1, recorder="phone")
    safe = city.promesse.smooth(200)
    pg.write(city, folder / "raw.parquet")
    pg.write(safe, folder / "safe.parquet")
    pg.write(safe, folder / "safe.csv")
    gpd.GeoDataFrame(geometry=[], crs=4326).to_parquet(folder / "empty.parquet")
    return folder


def run(*arguments) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["map", *map(str, arguments)])
    return done.exit_code, done.output


def test_a_map_of_both_is_for_its_owner_only(folder, tmp_path):
    for name, more in (("both", []), ("slider", ["--slider", "--users", "user-001"]), ("pair", ["--pair"])):
        page = tmp_path / f"{name}.html"
        code, output = run(folder / "raw.parquet", folder / "safe.parquet", page, *more)
        assert code == 0, output
        assert "do not publish" in output
        html = page.read_text(encoding="utf-8")
        assert "Original: " in html
        assert "Protected: " in html
        assert "do not publish" in html
        assert ("user-000" in html) == (name != "slider")
        assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_a_file_of_protected_data_is_recognized(folder, tmp_path):
    page = tmp_path / "map.html"
    code, output = run(folder / "safe.parquet", page)
    assert code == 0, output
    html = page.read_text(encoding="utf-8")
    assert "Protected data: Promesse (epsilon = 200 m)." in html
    for secret in ("do not publish", "Original", "user-000", "Stays (POIs)"):
        assert secret not in html
    assert "do not publish" not in output


def test_a_map_of_what_zones_leave_is_for_its_owner_only(folder, tmp_path):
    zoned, page = tmp_path / "zoned.parquet", tmp_path / "map.html"
    done = CliRunner().invoke(main, ["zones", str(folder / "raw.parquet"), str(zoned)])
    assert done.exit_code == 0, done.output
    code, output = run(zoned, page)
    assert code == 0, output
    assert "true locations" in output
    assert "do not publish" in output
    assert "<title>Map of data with true positions" in page.read_text(encoding="utf-8")
    assert stat.S_IMODE(page.stat().st_mode) == stat.S_IMODE(zoned.stat().st_mode) == 0o600


def test_of_other_data_nothing_is_known_unless_specified(folder, tmp_path):
    page = tmp_path / "map.html"
    code, output = run(folder / "safe.csv", page)
    assert code == 0
    assert "--kind protected" in output
    assert "true locations" not in output
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    html = page.read_text(encoding="utf-8")
    assert "do not publish" in html
    assert "true locations" not in html
    code, output = run(folder / "safe.csv", page)
    assert code == 1
    assert "--force" in output
    assert run(folder / "safe.csv", page, "--kind", "protected", "--force", "--no-pois", "--points", "50")[0] == 0
    html = page.read_text(encoding="utf-8")
    assert "Protected data." in html
    assert "(50 drawn)" in html


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["raw.parquet", "map.txt"], ".html"),
        (["raw.parquet", "safe.parquet", "safe.csv", "map.html"], "three paths"),
        (["raw.parquet", "map.html", "--pair"], "needs PROTECTED"),
        (["raw.parquet", "safe.parquet", "map.html", "--pair", "--slider"], "--slider"),
        (["raw.parquet", "safe.parquet", "map.html", "--kind", "original"], "alone"),
        (["raw.parquet"], "Missing argument"),
    ],
)
def test_wrong_usage_is_said(folder, arguments, words):
    paths = [each if each.startswith("-") or "." not in each else folder / each for each in arguments]
    code, output = run(*paths)
    assert code == 2
    assert words in output
    assert not list(folder.glob("map*"))


def test_an_invalid_period_is_an_error(folder, tmp_path):
    code, output = run(folder / "raw.parquet", tmp_path / "map.html", "--period", "soon")
    assert code == 2
    assert "'--period': must be" in output


def test_colours_and_background_are_options(folder, tmp_path):
    _, streets = pg.make_city(users=1, days=1, return_streets=True, recorder="phone")
    streets.to_file(tmp_path / "streets.gpkg")
    streets.to_parquet(tmp_path / "streets.parquet")
    for number, file in enumerate(("streets.gpkg", "streets.parquet")):
        page = tmp_path / f"{number}.html"
        options = ["--color", "speed", "--background", tmp_path / file, "--kind", "original"]
        code, output = run(folder / "raw.parquet", page, *options)
        assert code == 0, output
        html = page.read_text(encoding="utf-8")
        assert "promesse.background(" in html.split("<script>")[-1]
        assert "60–120" in html


@pytest.mark.parametrize(
    ("file", "code", "words"),
    [
        ("none.gpkg", 1, "--background none.gpkg does not exist"),
        ("safe.csv", 1, "--background safe.csv cannot be read as lines or polygons"),
        ("empty.parquet", 1, "--background empty.parquet is empty: it has no lines or polygons. Omit --background"),
    ],
)
def test_an_unusable_background_is_an_error(folder, tmp_path, monkeypatch, file, code, words):
    monkeypatch.chdir(folder)
    found, output = run("raw.parquet", tmp_path / "map.html", "--background", file)
    assert found == code
    assert words in output
    assert not (tmp_path / "map.html").exists()


def test_the_name_of_a_user_stands_for_the_parts_that_prepare_makes(tmp_path):
    parts = pg.make_city(users=2, days=2).promesse.prepare(tz="Europe/Paris", keep_user=True, seed=1)
    pg.write(parts, tmp_path / "parts.parquet")
    code, said = run(tmp_path / "parts.parquet", tmp_path / "map.html", "--users", "user-000")
    assert code == 0, said
    code, said = run(tmp_path / "parts.parquet", tmp_path / "other.html", "--users", "nobody")
    assert code == 1
    assert "parts such as NAME-00000" in said
