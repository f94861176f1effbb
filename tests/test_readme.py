"""The README's code runs."""

import re

import geopandas as gpd
import nbformat
import pytest
from readme import README, commands

import promesse_geo as pg

TEXT = README.read_text(encoding="utf-8")
PYTHON = {  # by the number of lines before each block, so that tracebacks show lines of the README
    TEXT.count("\n", 0, block.start(1)): block[1] for block in re.finditer(r"```python\n(.*?)```", TEXT, re.DOTALL)
}


def percentage_before(words: str) -> str:
    """Return the percentage that stands before these words in the README."""
    return re.search(rf"(\d+) % {words}", " ".join(TEXT.split()))[1]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_python_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for before, block in PYTHON.items():
        if "cabspotting" not in block:
            exec(compile("\n" * before + block, str(README), "exec"), names)
    assert (tmp_path / "public.parquet").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_share_of_homes_with_a_published_point_nearby():
    city, stays = pg.make_city(return_pois=True)
    safe = city.promesse.prepare(tz="Europe/Paris", keep_user=True).promesse.smooth(200).to_crs(2154)
    homes = stays[stays["kind"] == "home"].to_crs(2154).groupby("user").geometry.first()
    users = safe["user"].str.rpartition("-")[0]
    distances = safe.distance(gpd.GeoSeries(users.map(homes), crs=2154)).groupby(users).min()
    assert f"{100 * (distances < 50).mean():.0f}" == percentage_before("of the homes")


def test_the_results_on_the_city_are_those_of_the_notebook():
    cells = nbformat.read(README.parent / "notebooks" / "08_stronger_attacks.ipynb", as_version=4).cells
    outputs = [out.data.get("text/plain", "") for cell in cells for out in cell.get("outputs", []) if "data" in out]
    residue, recognized = (next(text for text in outputs if mark in text) for mark in ("recall  ", "stays of 600 m"))
    scores = {name: float(re.search(rf"{name} +([\d.]+)", residue)[1]) for name in ("recall", "precision")}
    assert percentage_before("of the places") == f"{scores['recall']:.0f}"
    assert re.search(r"precision of (\d+) %", " ".join(TEXT.split()))[1] == f"{scores['precision']:.0f}"
    shares = {row: columns for row, *columns in re.findall(r"ε = (\d+) m +(\d+) +(\d+)\n", recognized + "\n")}
    assert percentage_before("of the users at ε = 100 m") == shares["100"][0]
    assert percentage_before("at 200 m") == shares["200"][0]
    assert percentage_before("at 500 m") == shares["500"][1]


def test_the_readme_has_two_commands():
    assert "promesse-geo demo" in commands()["demo"]
    assert "pytest" in commands()["tests"]


def test_the_first_sentence_names_trajectories():
    first = TEXT.split("\n\n")[1].partition(".")[0]
    assert "trajectories" in first
