"""Remedies in errors: those that the command has, for what was passed."""

import warnings
from dataclasses import dataclass

import pandas as pd
import pytest
from test_cli import failed, run

import promesse_geo as pg
from promesse_geo.audit.recognition import contradiction
from promesse_geo.publication.notes import notes_on


def write_trips(path, *, apart):
    """Two users with six trips of 250 m each, whose starts lie some degrees apart."""
    times = pd.date_range("2024-01-01 10:00", periods=6, freq="30s", tz="UTC")
    rows = [
        (user, time + pd.Timedelta(days=day), longitude + day * apart + 0.0005 * step, 45.7)
        for user, longitude in (("a", 4.8), ("b", 5.8))
        for day in range(6)
        for step, time in enumerate(times)
    ]
    pd.DataFrame(rows, columns=["user", "time", "lon", "lat"]).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("apart", [0, 0.03])
@pytest.mark.parametrize("options", [["--recommended", "people"], ["--epsilon", 5000, "--zone-radius", 700]])
def test_publish_names_its_own_options_if_nothing_is_left(tmp_path, apart, options):
    path = write_trips(tmp_path / "trips.csv", apart=apart)
    said = failed("publish", path, tmp_path / "out.parquet", "--tz", "Europe/Paris", *options)
    assert "Nothing is left" in said
    assert "--zone-radius" in said
    assert " --radius" not in said
    assert "(--radius" not in said
    assert ("instead of --recommended people" in said) is (options[0] == "--recommended")


def test_zones_names_its_own_option_if_nothing_is_left(tmp_path):
    path = write_trips(tmp_path / "trips.csv", apart=0)
    said = failed("zones", path, tmp_path / "out.parquet", "--radius", 2000)
    assert "--radius" in said
    assert "--zone-radius" not in said


def test_a_fleet_has_no_zones_says_publish(tmp_path):
    path = write_trips(tmp_path / "trips.csv", apart=0)
    said = failed("publish", path, tmp_path / "out.parquet", "--recommended", "fleet", "--places", 2, code=2)
    assert "--places goes with --recommended people" in said
    assert "replaces" not in said


def test_publish_without_protection_names_the_recommendation_first(tmp_path):
    path = write_trips(tmp_path / "trips.csv", apart=0)
    said = failed("publish", path, tmp_path / "out.parquet", code=2)
    assert said.index("--recommended people") < said.index("--epsilon")


GOALS = [(pg.PoiRetrieval(), "<=", 5)]


@pytest.mark.parametrize(
    ("bounds", "remedy"),
    [((50, 1000), r"bounds=\(50, 400\)\) \(--to 400\)"), ((500, 1000), "Neither 500 nor 1000 fits")],
)
def test_bounds_that_other_parameters_forbid_are_an_error_with_those_that_fit(bounds, remedy):
    city = pg.make_city(users=2, days=1)
    with pytest.raises(ValueError, match=f"'ends' of Promesse.*{remedy}"):
        pg.tune(city, pg.recommended("people"), bounds=bounds, goals=GOALS, objective=pg.Compression())


@dataclass(frozen=True)
class Coarser(pg.Mechanism):
    """Drop nothing; steps must be at least as long as the floor."""

    step: float
    floor: float = 200.0

    def __post_init__(self):
        """Compare the parameters."""
        if self.step < self.floor:
            raise ValueError(f"The 'floor' parameter of Coarser must be at most {self.step:g}.")

    def _protect(self, traces):
        return traces


def test_lower_bounds_that_other_parameters_forbid_are_an_error_with_those_that_fit():
    city, given = pg.make_city(users=2, days=1), {"bounds": (50, 1000), "goals": GOALS, "objective": pg.Compression()}
    with pytest.raises(ValueError, match=r"'floor' of Coarser.*bounds=\(200, 1000\)\) \(--from 200\)"):
        pg.tune(city, Coarser(300), parameter="step", **given)
    with pytest.raises(ValueError, match="The 'ends' parameter of Promesse"):
        pg.tune(city, pg.Promesse(200, ends=400), parameter="ends", **given)


def test_the_command_tune_names_the_bound_that_fits(tmp_path):
    path = write_trips(tmp_path / "trips.csv", apart=0)
    options = ["--from", 50, "--to", 1000, "--at-most", "poi-retrieval", 1]
    said = failed("tune", path, "--recommended", "people", *options, code=2)
    assert "--to 400" in said
    assert "--parameter" not in said


def test_tune_calls_nothing_nearest_if_no_goal_has_a_value():
    city = pg.make_city(users=2, days=1, recorder="phone")
    goals = [(pg.EndRetrieval(), "<=", 70)]
    found = pg.tune(city, pg.Promesse(200), bounds=(50, 300), goals=goals, objective=pg.Compression(), values=2)
    assert not found.meets_goals
    assert found.reasons == {"EndRetrieval": pg.EndRetrieval().undefined}
    assert "nearest" not in repr(found)
    assert "nan" not in repr(found)
    assert pg.EndRetrieval().undefined in repr(found)


def test_tune_names_the_goals_without_a_value():
    city = pg.make_city(users=2, days=1, recorder="phone")
    goals = [(pg.EndRetrieval(), "<=", 70), (pg.SpatialError(), "<=", 10_000)]
    found = pg.tune(city, pg.Promesse(200), bounds=(50, 300), goals=goals, objective=pg.Compression(), values=2)
    assert found.meets_goals
    assert "meets all goals that could be measured (EndRetrieval has no value" in repr(found)
    assert "nan" not in repr(found)


@pytest.mark.parametrize("sign", ["<", "=", None])
def test_a_goal_of_another_sign_is_an_error_with_both_signs(sign):
    goals = [(pg.PoiRetrieval(), sign, 5)]
    with pytest.raises(TypeError, match='"<=" or ">="'):
        pg.tune(pg.make_city(users=1, days=1), pg.Promesse(200), bounds=(50, 300), goals=goals, objective=GOALS[0][0])


@pytest.mark.parametrize(
    ("call", "instance"),
    [
        (lambda city: pg.measure(city, city, [pg.Compression]), r"pg.Compression\(\)"),
        (lambda city: pg.measure(city, city, pg.Compression), r"pg.Compression\(\)"),
        (lambda city: city.promesse.protect(pg.Promesse), r"pg.Promesse\(epsilon=…\)"),
        (lambda city: pg.evaluate({"city": city}, [pg.Promesse]), r"pg.Promesse\(epsilon=…\)"),
        (lambda city: pg.Chain([pg.PrivacyZones(), pg.WaitForMe]), r"pg.WaitForMe\(\)"),
        (lambda city: city.promesse.publish(None, Coarser, dry_run=True), r" Coarser\(step=…\)"),
    ],
)
def test_a_class_instead_of_an_instance_is_an_error_with_the_call(call, instance):
    with pytest.raises(TypeError, match=f"make an instance, ?{instance}"):
        call(pg.make_city(users=1, days=1, recorder="phone"))


def test_a_frame_without_coordinates_is_an_error_with_two_remedies():
    with pytest.raises(TypeError, match=r"Rename those of longitude and latitude, or make a GeoDataFrame with"):
        pg.describe(pd.DataFrame({"a": [1], "b": [2]}))


@pytest.fixture(scope="module")
def parts():
    return pg.make_city(users=3, days=3).promesse.prepare(tz="Europe/Paris", keep_user=True, seed=1)


def safe_of(parts, mechanism):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dropped parts
        return parts.promesse.protect(mechanism)


@pytest.mark.parametrize(
    ("named", "words"),
    [(pg.WaitForMe(), "names WaitForMe"), (pg.Promesse(300), "names Promesse with other parameters")],
)
def test_report_warns_of_another_mechanism_than_the_data_note(parts, tmp_path, named, words):
    safe = safe_of(parts, pg.Promesse(200))
    with pytest.warns(UserWarning, match=f"protected by Promesse.*{words}"):
        pg.report(parts, safe, tmp_path / "report.html", mechanism=named, seed=1)


def test_report_does_not_warn_of_what_the_data_note(parts, tmp_path):
    safe = safe_of(parts, pg.Chain([pg.PrivacyZones(300, 200, seed="s" * 40), pg.Promesse(200)]))
    for named in (pg.Promesse(200), pg.Chain([pg.PrivacyZones(300, 200), pg.Promesse(200)])):
        assert not contradiction(named, safe.promesse.traces().protection)
        assert not contradiction(named, None)


def test_the_report_of_an_unknown_mechanism_names_no_option(parts, tmp_path):
    safe = safe_of(parts, pg.Promesse(200))
    safe.attrs["promesse"]["mechanism"] = {"mechanism": "Theirs", "parameters": {}}
    found = pg.report(parts, safe, tmp_path / "report.html", seed=1)
    reason = found.measures.set_index("key").loc["footprints_alike", "reason"]
    assert "Theirs" in reason
    assert "--mechanism" not in reason


def test_publish_says_that_its_input_is_already_protected(parts):
    safe = safe_of(parts, pg.Promesse(200))
    with pytest.warns(UserWarning, match=r"already protected \(Promesse\)"):
        result = pg.publish(safe, None, pg.Promesse(200), tz="Europe/Paris", dry_run=True)
    verdicts = result.audit.set_index("test")["verdict"]
    assert verdicts["the raw data are not protected"] == "review"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        raw = pg.publish(parts, None, pg.Promesse(200), tz="Europe/Paris", dry_run=True)
    assert "the raw data are not protected" not in set(raw.audit["test"])
    assert not any("already protected" in str(each.message) for each in caught)


def test_publish_of_folders_says_that_its_input_is_already_protected(parts, tmp_path):
    (tmp_path / "safe").mkdir()
    pg.write(safe_of(parts, pg.Promesse(200)), tmp_path / "safe" / "0.parquet")
    with pytest.warns(UserWarning, match=r"already protected \(Promesse\)"):
        result = pg.publish_parquet(tmp_path / "safe", None, pg.Promesse(200), tz="Europe/Paris", dry_run=True)
    assert "the raw data are not protected" in set(result.audit["test"])


def test_notes_have_figures_of_promesse_for_promesse_only():
    assert "88 %" in " ".join(notes_on(pg.Promesse(200)))
    other = " ".join(notes_on(pg.GeoIndistinguishability(0.01)))
    assert "%" not in other
    assert "--recommended people" in other


def test_options_of_a_configuration_are_said_to_stand_there(tmp_path):
    csv, package, saved = tmp_path / "city.csv", tmp_path / "city.gpkg", tmp_path / "saved.json"
    city = pg.make_city(users=2, days=2)
    pg.write(city, csv)
    pg.write(city, package)
    options = ["--epsilon", 200, "--tz", "Europe/Paris", "--dry-run"]
    run("publish", csv, *options, "--encoding", "utf-8", "--save-config", saved)
    said = failed("publish", package, "--config", saved, "--dry-run")
    assert "--encoding" in said
    assert "stands in the file of --config" in said
    said = failed("publish", package, *options, "--encoding", "utf-8")
    assert "Omit it" in said
    assert "--config" not in said


def test_tracks_that_overlap_name_smaller_units_as_users(tmp_path):
    for name in ("a/x/1.gpx", "a/y/1.gpx", "b/z/1.gpx"):
        (tmp_path / name).parent.mkdir(parents=True)
        pg.write(pg.make_city(users=1, days=1, recorder="phone"), tmp_path / name)
    with pytest.warns(UserWarning, match=r"user='folder' \(--user folder\).*user='track' \(--user track\)"):
        pg.read_file(tmp_path, user="folder-2")
