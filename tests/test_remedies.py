"""Remedies in errors: those that the command has, for what was passed."""

from dataclasses import dataclass

import pandas as pd
import pytest
from test_cli import failed

import promesse_geo as pg


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
