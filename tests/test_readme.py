"""The figures in the README and in other texts are those of the stored results."""

import re

import geopandas as gpd
import nbformat
import pandas as pd
import pytest
from readme import README, commands

import promesse_geo as pg
from promesse_geo.paper import Reproduction

TEXT = README.read_text(encoding="utf-8")
ATTACKS = (README.parent / "docs" / "explanation" / "threat_model.md").read_text(encoding="utf-8")
RESULTS = README.parent / "data" / "results"
STORED = Reproduction.load(RESULTS / "cabspotting")


def percentage_before(words: str) -> str:
    """Return the percentage that stands before these words on the page on attacks."""
    return re.search(rf"(\d+) % {words}", " ".join(ATTACKS.split()))[1]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("recorder", "words"), [("trips", "of the homes"), ("phone", "if phones record all day")])
def test_the_share_of_homes_with_a_published_point_nearby(recorder, words):
    city, stays = pg.make_city(recorder=recorder, return_pois=True)
    safe = city.promesse.prepare(tz="Europe/Paris", keep_user=True).promesse.smooth(200).to_crs(2154)
    homes = stays[stays["kind"] == "home"].to_crs(2154).groupby("user").geometry.first()
    users = safe["user"].str.rpartition("-")[0]
    distances = safe.distance(gpd.GeoSeries(users.map(homes), crs=2154)).groupby(users).min()
    assert f"{100 * (distances < 50).mean():.0f}" == percentage_before(words)


def test_the_results_on_the_city_are_those_of_the_notebook():
    cells = nbformat.read(README.parent / "notebooks" / "08_stronger_attacks.ipynb", as_version=4).cells
    outputs = [out.data.get("text/plain", "") for cell in cells for out in cell.get("outputs", []) if "data" in out]
    residue, recognized = (next(text for text in outputs if mark in text) for mark in ("recall  ", "stays of 600 m"))
    scores = {name: float(re.search(rf"{name} +([\d.]+)", residue)[1]) for name in ("recall", "precision")}
    assert percentage_before("of the places") == f"{scores['recall']:.0f}"
    assert re.search(r"precision of (\d+) %", " ".join(ATTACKS.split()))[1] == f"{scores['precision']:.0f}"
    shares = {row: columns for row, *columns in re.findall(r"ε = (\d+) m +(\d+) +(\d+)\n", recognized + "\n")}
    assert percentage_before("of the users at ε = 100 m") == shares["100"][0]
    assert percentage_before("at 200 m") == shares["200"][0]
    assert percentage_before("at 500 m") == shares["500"][1]


def shares_of_taxis(table, *rows, digits=1):
    """Return percentages in a stored table, as a list in a sentence."""
    values = STORED.tables[table].set_index("row").ours
    texts = [f"{values[row]:.{digits}f}" for row in rows]
    return f"{', '.join(texts[:-1])} and {texts[-1]} %" if len(texts) > 1 else f"{texts[0]} %"


def homes(zones, epsilon, ends, column, *, seed=None):
    """Return the percentage in the tables of ends for the synthetic cities, or for the city of one seed."""
    table = pd.read_csv(RESULTS / "ends" / ("city.csv" if seed is None else "city_runs.csv"))
    rows = table[(table["zones"] == zones) & (table["epsilon"] == epsilon) & (table["ends"] == ends)]
    return f"{(rows if seed is None else rows[rows['seed'] == seed])[column].item():.0f}"


SMOOTHED = [f"Promesse, ε = {epsilon} m" for epsilon in (100, 200, 500)]
SMOOTHER = "Heat-map re-identification with protected knowledge"
IN_CITY = [homes("none", epsilon, 0, "located", seed=3) for epsilon in (100, 200, 500)]
NOTEBOOK = nbformat.read(README.parent / "notebooks" / "08_stronger_attacks.ipynb", as_version=4)
TEXTS = {
    "README": TEXT,
    "attacks": ATTACKS,
    "notebook": "\n".join(cell.source for cell in NOTEBOOK.cells if cell.cell_type == "markdown"),
    "Promesse": pg.Promesse.__doc__,
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_on_ends_and_footprints_have_the_figures_of_the_tables(name):
    text = " ".join(TEXTS[name].split())
    assert shares_of_taxis("End retrieval", *SMOOTHED, digits=0) in text
    assert shares_of_taxis("Heat-map re-identification", *SMOOTHED) in text
    assert shares_of_taxis(SMOOTHER, *SMOOTHED) in text
    assert f"{IN_CITY[0]}, {IN_CITY[1]} and {IN_CITY[2]} % of" in text


def of_recorder(recorder, column, *, zones="700/600", ends=400, digits=0):
    """Return a figure of zones and ends near what is recommended for people, over cities of a recorder and secrets."""
    table = pd.read_csv(RESULTS / "ends" / "recommended.csv").set_index(["recorder", "zones", "ends"])
    return f"{table[column][recorder, zones, ends]:.{digits}f}"


def test_texts_on_what_is_recommended_have_the_figures_of_the_tables():
    readme, notes = " ".join(TEXT.split()), " ".join(pg.recommended.__doc__.split())
    page = " ".join((README.parent / "docs" / "howto" / "homes.md").read_text(encoding="utf-8").split())
    for recorder in ("phone", "trips"):
        columns = [of_recorder(recorder, name, digits=1) for name in ("located", "place", "kept")]
        worst = of_recorder(recorder, "worst")
        assert f"| {columns[0]} | {worst} | {columns[1]} | {columns[2]} |" in page
        for text in (readme, notes):
            assert f"{of_recorder(recorder, 'located')} % of" in text
            kept = of_recorder(recorder, "kept")
            assert f"{kept} % of the records" in text or f"{kept} % are kept" in text
    for text in (readme, notes):
        assert f"{of_recorder('phone', 'worst')} % in the worst" in text
        assert f"{of_recorder('trips', 'place')} % of the places where most" in text
        assert f"{homes('none', 200, 0, 'located')} %" in text
        assert f"{shares_of_taxis('End retrieval', 'recommended for fleets', digits=0)} of the taxis" in text
    recommended = [f"recommended for {kind}" for kind in ("fleets", "people")]
    assert f"names {shares_of_taxis(SMOOTHER, *recommended, digits=0)} of the taxis" in notes
    pages = " ".join(ATTACKS.split())
    assert f"{shares_of_taxis(SMOOTHER, recommended[1], digits=0)} of the taxis with" in readme
    assert f"names {shares_of_taxis(SMOOTHER, recommended[1], digits=0)} of the taxis" in pages
    unique = [shares_of_taxis("Unicity", row).removesuffix(" %") for row in (recommended[1], SMOOTHED[1])]
    assert f"single out {unique[0]} % instead of {unique[1]} % of the taxis" in pages


def test_texts_on_raw_data_have_the_figures_of_the_tables():
    prepared = " ".join(pg.prepare.__doc__.split())
    footprints, linked = (shares_of_taxis(name, "raw data") for name in ("Heat-map re-identification", "Linkage"))
    guesses = [STORED.tables[name].guess.iloc[0] for name in ("Heat-map re-identification", "Linkage")]
    assert f"{linked} of the parts of Cabspotting, {guesses[1]:.1f} % by guessing" in prepared
    assert f"{footprints} of the taxis, {guesses[0]:.1f} % by guessing" in prepared
    assert f"names {footprints} of the taxis in raw data" in " ".join(TEXT.split())


def test_the_readme_has_two_commands():
    assert "promesse-geo demo" in commands()["demo"]
    assert "pytest" in commands()["tests"]


def test_the_first_lines_have_the_words_that_people_search_for():
    first = TEXT.split("\n\n")[1]
    assert all(word in first for word in ("trajectory anonymization", "location privacy", "GPS"))
