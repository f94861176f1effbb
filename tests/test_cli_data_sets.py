"""Folders of Parquet on the command line."""

import os
import stat

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli.commands import main

pytestmark = pytest.mark.filterwarnings("ignore:In .* files overlap in time")


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=4, days=2, seed=2, recorder="phone")


@pytest.fixture
def folder(city, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(2):
        pg.write(city.iloc[number::2], tmp_path / "in" / f"{number}.parquet")
    return tmp_path / "in"


def run(*given):
    return CliRunner().invoke(main, [str(each) for each in given])


def read(folder):
    return pd.concat([gpd.read_parquet(path) for path in sorted(folder.iterdir())], ignore_index=True)


@pytest.mark.parametrize(
    ("command", "mechanism"),
    [
        (("smooth", "--epsilon", "200"), pg.Promesse(200)),
        (("geo-indistinguishability", "--epsilon", "0.01", "--seed", "s"), pg.GeoIndistinguishability(0.01, seed="s")),
    ],
)
def test_a_folder_is_protected_as_a_frame(city, folder, tmp_path, command, mechanism):
    name, *choices = command
    result = run(name, folder, tmp_path / "out", *choices, "--memory", "600MB", "--workers", "1", "--keep-users")
    assert result.exit_code == 0, result.output
    found = read(tmp_path / "out").sort_values(["user", "time"], ignore_index=True)
    assert found.geometry.to_wkb().tolist() == mechanism.protect(city).geometry.to_wkb().tolist()
    assert f"{len(city):,} records of 4 users -> {len(found):,} records" in result.output


def test_zones_and_prepare_write_folders_too(city, folder, tmp_path):
    secret = tmp_path / "secret"
    result = run("zones", folder, tmp_path / "cut", "--secret-file", secret, "--keep-users")
    assert result.exit_code == 0, result.output
    zones = pg.PrivacyZones(seed=secret.read_text().strip())
    with pytest.warns(UserWarning, match="rivacy zones"):
        expected = zones.protect(city)
    found = read(tmp_path / "cut").sort_values(["user", "time"], ignore_index=True)
    assert found.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()
    result = run("prepare", folder, tmp_path / "prepared", "--tz", "Europe/Paris", "--days", "1", "--keep-users")
    assert result.exit_code == 0, result.output
    with pytest.warns(UserWarning, match="first_days dropped"):
        parts = pg.prepare(city, tz="Europe/Paris", days=1, keep_user=True)
    found = read(tmp_path / "prepared").sort_values(["user", "time"], ignore_index=True)
    assert found["user"].tolist() == parts["user"].tolist()
    assert found["time"].tolist() == parts["time"].tolist()


def test_columns_and_the_unit_of_times_can_be_specified(city, tmp_path):
    (tmp_path / "in").mkdir()
    table = pd.DataFrame({"who": city["user"], "at": city["time"], "a": city.geometry.x, "b": city.geometry.y})
    table.to_parquet(tmp_path / "in" / "a.parquet")
    columns = ("--user", "who", "--time", "at", "--lon", "a", "--lat", "b", "--time-unit", "us")
    result = run("smooth", tmp_path / "in", tmp_path / "out", "--epsilon", "200", *columns)
    assert result.exit_code == 0, result.output
    found = read(tmp_path / "out")
    assert list(found.columns) == ["who", "at", "geometry"]
    assert found["at"].dtype == "datetime64[us, UTC]"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("out.csv", "--memory", "2GB"), "only for an INPUT that is a folder of Parquet"),
        (("out", "--layer", "x"), "not used for a folder of Parquet"),
        (("out", "--encoding", "cp1252"), "not used for a folder of Parquet"),
        (("out", "--tz", "Europe/Paris"), "not used for a folder of Parquet"),
        (("out", "--memory", "2"), "memory"),
        (("out", "--workers", "0"), "--workers"),
        (("in/out",), "lies in the folder INPUT"),
        (("out", "--dask", "tcp://127.0.0.1:1", "--workers", "2"), "omit --workers"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, tmp_path, given, words):
    output, *choices = given
    result = run("smooth", folder, tmp_path / output, "--epsilon", "200", *choices)
    assert result.exit_code in (1, 2)
    assert words in result.output.replace("\n", " ")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_existing_folder_needs_force(folder, tmp_path):
    for choices, code in (((), 0), ((), 1), (("--force",), 0)):
        assert run("smooth", folder, tmp_path / "out", "--epsilon", "200", *choices).exit_code == code


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
@pytest.mark.parametrize(
    ("command", "mode"),
    [
        (("smooth", "--epsilon", "200"), 0o644),
        (("geo-indistinguishability", "--epsilon", "0.01"), 0o644),
        (("zones",), 0o600),
        (("prepare",), 0o600),
    ],
    ids=lambda each: each[0] if isinstance(each, tuple) else "",
)
@pytest.mark.parametrize("keeps", [False, True], ids=["renamed", "names"])
def test_true_positions_and_names_are_for_their_owner_only(folder, tmp_path, command, mode, keeps):
    name, *choices = command
    before = os.umask(0o022)
    try:
        for output in ("out", "out.csv"):
            result = run(name, folder, tmp_path / output, *choices, *(["--keep-users"] if keeps else []))
            assert result.exit_code == 0, result.output
    finally:
        os.umask(before)
    expected = 0o600 if keeps else mode
    written = [tmp_path / "out.csv", *(tmp_path / "out").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {expected}
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == (0o700 if expected == 0o600 else 0o755)


def test_a_user_of_whom_too_much_is_left_is_refused_with_the_options(tmp_path):
    latitudes = 45 + np.arange(20) % 2 * 0.9  # 100 km apart
    times = np.arange(20) * 3_600 * 10**9
    far = pg.Traces.from_arrays(np.full(20, 2.0), latitudes, times=times, users=["a"], counts=[20])
    (tmp_path / "in").mkdir()
    pg.write(far, tmp_path / "in" / "far.parquet")
    choices = ("--epsilon", "1", "--memory", "500MB", "--workers", "2")
    result = run("smooth", tmp_path / "in", tmp_path / "out", *choices)
    assert result.exit_code == 1
    assert "--memory is 500 MB. Specify more, or fewer workers with --workers." in " ".join(result.stderr.split())
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("road", ["file", "folder"])
@pytest.mark.parametrize("command", [("prepare", "--min-days", "10"), ("smooth", "--epsilon", "900000")])
def test_nothing_is_written_if_nothing_is_left(city, tmp_path, road, command):
    (tmp_path / "in").mkdir()
    pg.write(city, tmp_path / "in" / "city.parquet")
    source, out = ("in", "out") if road == "folder" else ("in/city.parquet", "out.parquet")
    name, *choices = command
    done = CliRunner().invoke(main, [name, str(tmp_path / source), str(tmp_path / out), *choices])
    words = " ".join(done.stderr.split())
    assert done.exit_code == 1
    assert "Nothing is left to write: no " in words
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    if name == "prepare":
        assert "no record is left after preparation" in words
        assert any(f"{city['user'].nunique()} {what}" in words for what in ("traces", "users", "of")), words


def test_the_remedy_names_the_longest_interval():
    assert pg.Promesse(200).remedy == "Take a smaller epsilon (--epsilon)."
    assert "a longer max_interval" in pg.Promesse(200, max_interval="2s").remedy
    assert "a longer max_interval" in pg.Chain([pg.Promesse(200, max_interval="2s")]).remedy
