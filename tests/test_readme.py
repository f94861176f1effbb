"""The README's code runs."""

import re

import geopandas as gpd
import nbformat
import pandas as pd
import pytest
from readme import README, commands

import promesse_geo as pg
from promesse_geo.paper import Reproduction, table_1

TEXT = README.read_text(encoding="utf-8")
LINE = " ".join(TEXT.split())
PYTHON = {  # by the number of lines before each, so that what is told of a line names that of the README
    TEXT.count("\n", 0, block.start(1)): block[1] for block in re.finditer(r"```python\n(.*?)```", TEXT, re.DOTALL)
}


@pytest.mark.whole_city
@pytest.mark.filterwarnings("ignore:.*(could not be protected|left out):UserWarning")
def test_the_python_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for before, block in PYTHON.items():
        if "cabspotting" not in block:
            exec(compile("\n" * before + block, str(README), "exec"), names)
    assert (tmp_path / "safe.parquet").exists()


@pytest.mark.real
def test_the_table_of_the_real_data_is_what_the_code_gives(cabspotting_archive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cabspottingdata.tar.gz").symlink_to(cabspotting_archive)
    block = next(block for block in PYTHON.values() if "cabspotting" in block)
    names = {}
    with pytest.warns(UserWarning, match="74 users"):
        exec(
            compile("import promesse_geo as pg\n" + block, "README", "exec"),
            names,
        )
    kept = Reproduction.load(README.parent / "data" / "results" / "cabspotting").tables["Table I"]
    now = table_1({"Cabspotting": names["parts"]})
    pd.testing.assert_frame_equal(now.drop(columns="unit"), kept.drop(columns="unit"))


@pytest.mark.whole_city
@pytest.mark.filterwarnings("ignore:.*could not be protected")
def test_the_homes_of_the_city_are_as_near_as_is_said():
    city, stays = pg.make_city(return_pois=True)
    safe = city.promesse.prepare(tz="Europe/Paris", keep_user=True).promesse.smooth(200).to_crs(2154)
    homes = stays[stays["kind"] == "home"].to_crs(2154).groupby("user").geometry.first()
    own = safe["user"].str.rpartition("-")[0].map(homes)
    nearest = safe.distance(gpd.GeoSeries(own, crs=2154)).groupby(safe["user"].str.rpartition("-")[0]).min()
    (share,) = re.findall(r"(\d+) % of the homes have a published point of their user within 50 m", LINE)
    assert f"{100 * (nearest < 50).mean():.0f}" == share


def test_the_figures_of_the_city_are_those_of_the_notebook():
    cells = nbformat.read(README.parent / "notebooks" / "08_stronger_attacks.ipynb", as_version=4).cells
    shown = [out.data.get("text/plain", "") for cell in cells for out in cell.get("outputs", []) if "data" in out]
    residue, whose = (next(text for text in shown if mark in text) for mark in ("recall  ", "stays of 600 m"))
    recall, precision = (re.search(rf"{name} +([\d.]+)", residue)[1] for name in ("recall", "precision"))
    said = re.search(r"in the made-up city (\d+) % of the places, and (\d+) % of its finds are right", LINE).groups()
    assert said == (f"{float(recall):.0f}", f"{float(precision):.0f}")
    narrow, wide = (
        dict(re.findall(rf"ε = (\d+) m {columns}\n", whose + "\n")) for columns in (r" +(\d+) +\d+", r" +\d+ +(\d+)")
    )
    said = re.search(r"(\d+) % of the users at ε = 100 m, (\d+) % at 200 m, .* still (\d+) % at 500 m", LINE).groups()
    assert said == (narrow["100"], narrow["200"], wide["500"])


def test_the_readme_names_two_commands():
    assert "promesse-geo demo" in commands()["demo"]
    assert "pytest" in commands()["tests"]
