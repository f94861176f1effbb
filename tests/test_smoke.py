"""The main path from data to published file, short enough for every supported set of versions."""

import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli.commands import main
from promesse_geo.plot import overview, spatial_error

MECHANISMS = (pg.Promesse(200), pg.GeoIndistinguishability(0.01, seed=0), pg.WaitForMe(seed=0))
SUFFIXES = ("parquet", "gpkg", "csv", "geojson")

with_every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)


@pytest.fixture(scope="module")
def parts():
    return pg.make_city(users=6, days=2).promesse.prepare(tz="Europe/Paris", seed=0)


@with_every_mechanism
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_protected_data_is_measured_and_checked(parts, mechanism):
    safe = mechanism.protect(parts)
    assert list(safe.columns) == ["user", "time", "geometry"]
    assert len(safe) > 0
    assert safe.crs == parts.crs
    values = parts.promesse.measure(safe).value
    assert values.notna().all()
    assert len(parts.promesse.check(safe, epsilon=200)) > 5


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_files_are_written_and_read(parts, suffix, tmp_path):
    safe = parts.promesse.smooth(200)
    path = tmp_path / f"safe.{suffix}"
    pg.write(safe, path, mechanism=pg.Promesse(200))
    frame = pg.read_file(path).to_frame()
    assert sorted(frame.user.unique()) == sorted(safe.user.unique())
    assert len(frame) == len(safe)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_maps_and_figures_are_drawn(parts, tmp_path):
    safe = parts.promesse.smooth(200)
    path = tmp_path / "map.html"
    parts.promesse.map(safe).save(str(path))
    assert path.stat().st_size > 10_000
    spatial_error(parts, safe).figure.savefig(tmp_path / "error.png")
    overview(parts, epsilon=100).savefig(tmp_path / "overview.png")


def test_points_of_interest_are_clustered(parts):
    assert len(pg.PoiExtractor().fit(parts).pois_) > 0


def test_the_command_line_describes_a_file(parts, tmp_path):
    pg.write(parts, tmp_path / "parts.parquet")
    result = CliRunner().invoke(main, ["info", str(tmp_path / "parts.parquet")])
    assert result.exit_code == 0
    assert "records" in result.output
