"""The main path from data to published file, short enough for every supported set of versions."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli.commands import main
from promesse_geo.plot import overview, spatial_error

MECHANISMS = (pg.Promesse(200), pg.GeoIndistinguishability(0.01, seed=0), pg.WaitForMe(seed=0))
SUFFIXES = ("parquet", "gpkg", "csv", "geojson")

with_every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)


@pytest.fixture(scope="module")
def parts():
    return pg.make_city(users=6, days=2, recorder="phone").promesse.prepare(tz="Europe/Paris", seed=0)


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
    frame = pg.read_file(path, as_traces=True).to_frame()
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


# What old releases of dependencies do wrong, most of it silently.

COLUMNS = ["user", "time", "lat", "lon"]


def test_a_gpx_time_without_a_zone_is_utc_after_one_with_an_offset(tmp_path):
    points = "".join(
        f'<trkpt lat="45.7" lon="4.8"><time>2024-03-03T{time}</time></trkpt>' for time in ("08:00:00+05:30", "07:30:00")
    )
    (tmp_path / "a.gpx").write_text(f'<gpx version="1.1"><trk><trkseg>{points}</trkseg></trk></gpx>')
    times = pg.read_gpx(tmp_path / "a.gpx").time
    assert sorted(times.dt.strftime("%H:%M")) == ["02:30", "07:30"]


def test_users_that_differ_by_a_null_byte_stay_apart():
    city = pg.make_city(users=2, days=1, recorder="phone")
    keys = city.user.unique()
    frame = city.assign(user=city.user.astype(object).map({keys[0]: "a", keys[1]: "a\0"}))
    assert set(frame.promesse.smooth(200).user) == {"a", "a\0"}


def test_an_empty_parquet_is_read_and_smoothed(tmp_path):
    pg.write(pg.make_city(users=1, days=1, recorder="phone").head(0), tmp_path / "none.parquet")
    output = tmp_path / "safe.parquet"
    result = CliRunner().invoke(main, ["smooth", str(tmp_path / "none.parquet"), str(output), "--epsilon", "200"])
    assert result.exit_code == 0
    assert len(pg.read_table(output)) == 0


def test_z_in_parquet_is_dropped_with_a_warning(tmp_path):
    times = pd.date_range("2024-03-04", periods=2, tz="UTC")
    points = gpd.points_from_xy([4.8, 4.9], [45.7, 45.7], [1.0, np.nan])
    frame = gpd.GeoDataFrame({"user": "a", "time": times}, geometry=points, crs=4326)
    frame.to_parquet(tmp_path / "z.parquet")
    with pytest.warns(UserWarning, match="Z"):
        read = pg.read_table(tmp_path / "z.parquet")
    assert shapely.get_coordinates(read.geometry.array).tolist() == [[4.8, 45.7], [4.9, 45.7]]
    result = CliRunner().invoke(main, ["check", str(tmp_path / "z.parquet"), str(tmp_path / "z.parquet")])
    assert result.exit_code == 3  # a failed check, no error


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_pois_are_written_to_every_format(tmp_path, suffix):
    times = pd.date_range("2024-03-04", periods=20, freq="1min", tz="UTC").astype(str)
    rows = pd.DataFrame({"user": "a", "time": times, "lat": 45.7, "lon": 4.8 + np.arange(20) * 0.01}, columns=COLUMNS)
    rows.to_csv(tmp_path / "moving.csv", index=False)
    output = tmp_path / f"pois.{suffix}"
    result = CliRunner().invoke(main, ["pois", str(tmp_path / "moving.csv"), str(output)])
    assert result.exit_code == 0
    assert "0 points" in result.output
    assert output.exists()


@pytest.mark.parametrize(("zone", "hours"), [("Europe/Paris", 2), ("Africa/Casablanca", 1)])
def test_summer_time_continues_after_2038(zone, hours):
    times = pd.to_datetime(["2050-07-04T23:30:00Z", "2050-07-05T12:00:00Z"])
    frame = gpd.GeoDataFrame(
        {"user": "a", "time": times}, geometry=gpd.points_from_xy([4.8, 4.81], [45.7, 45.7]), crs=4326
    )
    moved = pg.collapse_empty_days(frame, tz=zone)
    assert moved.time.iloc[0].hour == (23 + hours) % 24


def test_numbers_are_times(tmp_path):
    pq.write_table(
        pa.table({"user": ["a", "a"], "time": [1_700_000_000, None], "lat": [45.7, 45.8], "lon": [4.8, 4.8]}),
        tmp_path / "numbers.parquet",
    )
    with pytest.warns(UserWarning, match="seconds|no time"):
        read = pg.read_table(tmp_path / "numbers.parquet", errors="skip")
    assert read.time.tolist() == [pd.Timestamp(1_700_000_000, unit="s", tz="UTC")]
