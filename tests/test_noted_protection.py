"""What protected data is noted, and every later step keeps it and adds its own."""

import functools
import inspect
import itertools
import json

import geopandas as gpd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli import main
from promesse_geo.io.table_columns import METADATA_KEY

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

PROTECTING = {
    "zones": lambda frame: frame.promesse.zones(500, 400),
    "smooth": lambda frame: frame.promesse.smooth(100),
    "noise": lambda frame: frame.promesse.geo_indistinguishability(0.05),
}
KEEPING = {
    "prepare": lambda frame: frame.promesse.prepare(keep_user=True),
    "calendar": lambda frame: frame.promesse.collapse_empty_days(),
    "first days": lambda frame: frame.promesse.first_days(2),
    "gaps": lambda frame: frame.promesse.split_gaps("8h", keep_user=True),
    "jumps": lambda frame: frame.promesse.drop_jumps(1_000),
    "zero": lambda frame: frame.promesse.drop_zero(),
    "names": lambda frame: frame.promesse.pseudonymize(),
    "traces": lambda frame: frame.promesse.traces().to_frame(),
}
KINDS = {"zones": "PrivacyZones", "smooth": "Promesse", "noise": "GeoIndistinguishability", "publish": "Promesse"}
COMMANDS = {
    "zones": ["--radius", "500", "--keep-users"],
    "prepare": ["--keep-users"],
    "smooth": ["--epsilon", "100", "--keep-users"],
    "geo-indistinguishability": ["--epsilon", "0.05", "--keep-users"],
    "pseudonymize": [],
    "publish": ["--epsilon", "100"],
}
ORDERS = [*itertools.permutations(["zones", "prepare", "smooth"]), ("zones", "pseudonymize", "publish")]
ORDERS += [("geo-indistinguishability", "prepare", "zones"), ("smooth", "pseudonymize", "geo-indistinguishability")]


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=2, days=2, recorder="phone")


@pytest.fixture(scope="module")
def after(city):
    """Return a function that returns the data after a step, which it takes once."""
    return functools.cache(lambda step: (PROTECTING | KEEPING)[step](city))


def members(protection) -> list[str]:
    """Names of the mechanisms, in their order."""
    if protection is None:
        return []
    inner = protection["parameters"].get("mechanisms", [protection])
    return [each["mechanism"] for each in inner]


def of_frame(frame):
    return members(frame.promesse.traces().protection)


def of_file(path):
    path = next(iter(sorted(path.iterdir()))) if path.is_dir() else path
    content = json.loads(pq.read_schema(path).metadata[METADATA_KEY.encode()])
    return members(content if content["mechanism"] else None)


@pytest.mark.parametrize("steps", list(itertools.permutations([*PROTECTING, *KEEPING], 2)), ids=" then ".join)
def test_every_step_keeps_what_was_noted_and_adds_its_own(after, steps):
    first, second = steps
    expected = [KINDS[first]] if first in PROTECTING else []
    assert of_frame(after(first)) == expected
    expected += [KINDS[second]] if second in PROTECTING else []
    assert of_frame((PROTECTING | KEEPING)[second](after(first))) == expected


def test_every_verb_that_returns_traces_is_among_these_steps():
    verbs = {
        name
        for name, verb in vars(type(pg.make_city(users=1, days=1).promesse)).items()
        if inspect.isfunction(verb) and inspect.signature(verb).return_annotation is gpd.GeoDataFrame
    }
    others = {"protect", "wait_for_me", "pois", "range_query_distortion"}
    assert verbs - others == {
        *("zones", "smooth", "geo_indistinguishability", "prepare", "collapse_empty_days", "first_days"),
        *("split_gaps", "drop_jumps", "drop_zero", "pseudonymize"),
    }


def test_a_change_of_what_a_frame_notes_does_not_change_traces(city):
    traces = pg.Promesse(100).protect(city.promesse.traces())
    traces.to_frame().attrs["promesse"]["mechanism"]["parameters"]["epsilon"] = 1
    assert traces.protection == traces.to_frame().attrs["promesse"]["mechanism"] == pg.Promesse(100).description()


def test_zones_prepare_and_smooth_are_noted_as_a_chain_of_both(city):
    zones, promesse = pg.PrivacyZones(500, 400, seed=1), pg.Promesse(100)
    stepwise = promesse.protect(zones.protect(city).promesse.prepare(keep_user=True))
    assert stepwise.promesse.traces().protection == pg.Chain([zones, promesse]).description()


@pytest.mark.parametrize("form", ["a.parquet", "a"])
@pytest.mark.parametrize("steps", ORDERS, ids=" then ".join)
def test_every_command_keeps_it_in_files_and_folders(city, steps, form, tmp_path):
    if form == "a":
        (tmp_path / "raw").mkdir()
        if "pseudonymize" in steps:
            return  # it writes files only
    source, expected = tmp_path / "raw" if form == "a" else tmp_path / "raw.parquet", []
    pg.write(city, source / "raw.parquet" if form == "a" else source)
    for number, step in enumerate(steps):
        target = tmp_path / f"{number}{form.removeprefix('a')}"
        done = CliRunner().invoke(main, [step, str(source), str(target), *COMMANDS[step]])
        if done.exit_code == 3:
            return  # a test of publish failed, so there is no file
        assert done.exit_code == 0, done.output
        kind = {"geo-indistinguishability": "GeoIndistinguishability"}.get(step, KINDS.get(step))
        expected += [kind] if kind else []
        assert of_file(target) == expected
        source = target


def test_a_table_of_arrow_keeps_it(city, tmp_path):
    pg.write(city.promesse.zones(500, 400), tmp_path / "a.parquet")
    table = pg.protect_arrow(pq.read_table(tmp_path / "a.parquet"), pg.Promesse(100))
    content = json.loads(table.schema.metadata[METADATA_KEY.encode()])
    assert members(content) == ["PrivacyZones", "Promesse"]


@pytest.mark.parametrize("ending", [".parquet", ".gpkg", ".fgb"])
def test_the_risk_report_names_zones_before_prepare(ending, tmp_path):
    raw = pg.make_city(users=2, days=2, recorder="phone")
    pg.write(raw, tmp_path / f"raw{ending}")
    for words in (
        ["zones", "raw", "rest", "--radius", "500", "--keep-users"],
        ["prepare", "rest", "parts", "--keep-users"],
        ["smooth", "parts", "safe", "--epsilon", "100", "--keep-users"],
    ):
        command, source, target, *options = words
        paths = [str(tmp_path / f"{name}{ending}") for name in (source, target)]
        done = CliRunner().invoke(main, [command, *paths, *options])
        assert done.exit_code == 0, done.output
    page = tmp_path / "report.html"
    pg.report(*(pg.read_file(tmp_path / f"{name}{ending}") for name in ("parts", "safe")), page, seed=1)
    assert "PrivacyZones (radius" in page.read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
