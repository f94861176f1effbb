"""The demonstration says what is true of the files that it leaves."""

import re

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image

import promesse_geo as pg
from promesse_geo.cli.commands import main
from promesse_geo.messages import span
from promesse_geo.plot import figures

SPHERE = 6_371_008.8


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """Folder and words of one run."""
    folder = tmp_path_factory.mktemp("demo") / "promesse-demo"
    result = CliRunner().invoke(main, ["demo", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, result


@pytest.fixture(scope="module")
def parts():
    """What the demo protects."""
    city = pg.make_city(users=50, days=7, seed=0, as_traces=True)
    return pg.prepare(city, tz="Europe/Paris", keep_user=True).to_frame()


@pytest.fixture
def few_people(monkeypatch):
    """The demo takes fewer people, because the claim does not depend on them."""
    few = pg.make_city(users=10, days=3, seed=0, as_traces=True, return_pois=True)
    monkeypatch.setattr("promesse_geo.demo.make_city", lambda **_: few)
    return few


def rows_of(said) -> dict[str, list[str]]:
    table = said.split("\n\n")[1].splitlines()
    assert table[0].split() == ["original", "protected"]
    cut = table[0].index("protected")
    return {line.split()[0]: [line[len(line.split()[0]) : cut].strip(), line[cut:].strip()] for line in table[1:]}


def steps_of(frame) -> tuple[np.ndarray, np.ndarray]:
    """Great-circle metres and seconds between records of one user, from haversines."""
    same = (frame["user"] == frame["user"].shift()).to_numpy()[1:]
    lon, lat = np.radians(frame.geometry.x.to_numpy()), np.radians(frame.geometry.y.to_numpy())
    half = np.sin(np.diff(lat) / 2) ** 2 + np.cos(lat[1:]) * np.cos(lat[:-1]) * np.sin(np.diff(lon) / 2) ** 2
    seconds = frame["time"].diff().dt.total_seconds().to_numpy()[1:]
    return 2 * SPHERE * np.arcsin(np.sqrt(half))[same], seconds[same]


def test_the_table_is_true(demo, parts):
    folder, result = demo
    safe = gpd.read_parquet(folder / "protected.parquet")
    rows = rows_of(result.stdout)
    assert list(rows) == ["records", "traces", "spacing", "interval"]
    assert rows["records"] == [f"{len(parts):,}", f"{len(safe):,}"]
    assert rows["traces"] == [f"{parts['user'].nunique():,}", f"{safe['user'].nunique():,}"]
    for column, frame in enumerate((parts, safe)):
        metres, seconds = steps_of(frame)
        said = re.findall(r"[\d.,]+ (?:min|m|s|h|days)\b", rows["spacing"][column] + " " + rows["interval"][column])
        spacing = ["200 m"] if column else [f"{value:,.0f} m" for value in (0, metres.max(), np.median(metres))]
        interval = [span(pd.Timedelta(value, unit="s")) for value in (seconds.min(), seconds.max(), np.median(seconds))]
        assert said == spacing + interval
    assert np.abs(steps_of(safe)[0] - 200).max() < 1e-3
    assert rows["spacing"][1] == "always 200 m"


def test_what_was_dropped_is_true(demo, parts):
    folder, result = demo
    dropped = parts["user"].nunique() - gpd.read_parquet(folder / "protected.parquet")["user"].nunique()
    assert dropped > 1
    assert f"\n{dropped} traces were too short" in result.stdout
    assert result.stderr == ""


def test_two_files_are_left_and_named(demo):
    folder, result = demo
    assert sorted(path.name for path in folder.iterdir()) == ["overview.png", "protected.parquet"]
    assert f"What would be published:  {folder / 'protected.parquet'}\n" in result.stdout
    assert f"What happened to a trace: {folder / 'overview.png'}\n" in result.stdout


def test_what_would_be_published_is_protected_and_anonymous(demo):
    folder, _ = demo
    safe = gpd.read_parquet(folder / "protected.parquet")
    assert list(safe.columns) == ["user", "time", "geometry"]
    assert safe["user"].str.fullmatch("[0-9a-f]{16}").all()
    assert b'"mechanism": "Promesse"' in pq.read_schema(folder / "protected.parquet").metadata[b"promesse_geo"]
    assert b"user-0" not in (folder / "protected.parquet").read_bytes()


def test_the_picture_opens(demo):
    folder, _ = demo
    with Image.open(folder / "overview.png") as picture:
        picture.load()
        assert picture.format == "PNG"
        assert picture.width == 1800
        colours = {pixel for _, pixel in picture.convert("RGB").getcolors(picture.width * picture.height)}
    assert (0x00, 0x72, 0xB2) in colours


def test_home_and_work_of_the_drawn_person_are_named_in_the_picture(few_people, tmp_path, monkeypatch):
    asked = []

    def looked_at(*data, **named):
        asked.append(named)
        return figures.overview(*data, **named)

    monkeypatch.setattr("promesse_geo.demo.overview", looked_at)
    pg.run_demo(tmp_path)
    _, stays = few_people
    (named,) = asked
    assert sorted(named["places"].index) == ["home", "work"]
    for kind, place in named["places"].items():
        assert place in set(stays.loc[(stays["user"] == "user-000") & (stays["kind"] == kind), "geometry"])


def test_the_commands_to_try_next_exist(demo):
    _, result = demo
    tried = result.stdout.split("Next, on your own data:\n")[1]
    for command in re.findall(r"^  promesse-geo (\w+)", tried, re.MULTILINE):
        assert command in main.commands
    assert "promesse_geo" in tried
    assert hasattr(gpd.GeoDataFrame().promesse, "smooth")


def test_existing_files_are_only_overwritten_by_force(demo, few_people):
    folder, _ = demo
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = CliRunner().invoke(main, ["demo", "--out", str(folder)])
    assert result.exit_code == 1
    assert "already exists" in result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert CliRunner().invoke(main, ["demo", "--out", str(folder), "--force"]).exit_code == 0
    (folder / "overview.png").unlink()
    result = CliRunner().invoke(main, ["demo", "--out", str(folder)])
    assert result.exit_code == 1
    assert "protected.parquet" in result.stderr


def test_a_file_is_no_folder_to_write_to(tmp_path):
    (tmp_path / "promesse-demo").write_bytes(b"")
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "promesse-demo")])
    assert result.exit_code == 1
    assert "is a file" in result.stderr


def test_an_epsilon_at_which_the_second_trace_is_lost_draws_another(few_people, tmp_path):
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "demo"), "--epsilon", "3000"])
    assert result.exit_code == 0, result.stderr
    assert len(list((tmp_path / "demo").iterdir())) == 2


def test_an_epsilon_at_which_all_is_lost_says_so_and_leaves_nothing(few_people, tmp_path):
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "demo"), "--epsilon", "50000"])
    assert result.exit_code == 1
    assert "too short for epsilon = 50000 m" in result.stderr
    assert list((tmp_path / "demo").iterdir()) == []


def test_the_folder_of_the_demo_may_be_text(few_people, tmp_path):
    pg.run_demo(str(tmp_path / "demo"))
    assert (tmp_path / "demo" / "protected.parquet").exists()
