"""write_pois: points of interest come back, and what a format cannot keep is refused."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyogrio
import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli.commands import main
from promesse_geo.io.writers import write_pois

ENDINGS = (".parquet", ".gpkg", ".geojson", ".csv")
LOCAL_GRID = 'LOCAL_CS["building",UNIT["metre",1]]'
MARS = "+proj=longlat +a=3396190 +b=3376200"


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=3, days=1, seed=1, recorder="phone")


def run(*words):
    called = CliRunner().invoke(main, [str(word) for word in words])
    assert called.exception is None or isinstance(called.exception, SystemExit)
    return called


def written(data, path, **named) -> gpd.GeoDataFrame:
    """Write the points of interest of data to a file, and return them."""
    found = pg.pois(data, **named)
    write_pois(found, path, force=False)
    return found


def read_back(path) -> pd.DataFrame:
    """Read a file with GeoPandas or pandas."""
    if path.suffix == ".csv":
        table = pd.read_csv(path, dtype={"user": str}, keep_default_na=False)
        return table.assign(**{name: pd.to_datetime(table[name]) for name in ("arrival", "departure")})
    return gpd.read_parquet(path) if path.suffix == ".parquet" else gpd.read_file(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_points_of_interest_come_back(city, ending, tmp_path):
    wanted = written(city, tmp_path / f"p{ending}")
    found = read_back(tmp_path / f"p{ending}")
    assert len(found) == len(wanted) > 3
    assert found["user"].tolist() == wanted["user"].tolist()
    assert found["records"].tolist() == wanted["records"].tolist()
    assert np.allclose(found["diameter"], wanted["diameter"])
    for name in ("arrival", "departure"):
        times = [pd.DatetimeIndex(table[name]).as_unit("ms") for table in (found, wanted)]
        assert times[0].equals(times[1])
    x, y = (found["lon"], found["lat"]) if ending == ".csv" else (found.geometry.x, found.geometry.y)
    assert np.allclose([x, y], [wanted.geometry.x, wanted.geometry.y], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "crs", "endings"),
    [
        ("lon", 4326, [".csv"]),
        ("lat", 4326, [".csv"]),
        ("x", 32631, [".csv"]),
        ("y", 32631, [".csv"]),
        ("Arrival", 4326, [".gpkg", ".geojson"]),
        ("ogc_fid", 4326, [".geojson"]),
    ],
)
def test_a_user_column_that_a_format_cannot_keep_apart_is_refused(city, name, crs, endings, tmp_path):
    city.rename(columns={"user": name}).to_crs(crs).to_parquet(tmp_path / "in.parquet")
    for ending in endings:
        called = run("pois", tmp_path / "in.parquet", tmp_path / f"p{ending}", "--user", name)
        assert called.exit_code == 1
        assert "The file would have the columns " in called.stderr
        assert "two of one name" in called.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ["fid", "FID", "geom", "id", "a.b"])
def test_a_user_column_keeps_its_name(city, name, ending, tmp_path):
    city.rename(columns={"user": name}).to_parquet(tmp_path / "in.parquet")
    assert run("pois", tmp_path / "in.parquet", tmp_path / f"p{ending}", "--user", name).exit_code == 0
    found = read_back(tmp_path / f"p{ending}")
    assert set(found[name]) == set(city["user"])


@pytest.mark.parametrize("stem", ["gpkg_contents", "sqlite_x", "rtree"])
def test_the_name_of_a_file_is_not_that_of_its_layer(city, stem, tmp_path):
    wanted = written(city, tmp_path / f"{stem}.gpkg")
    assert gpd.list_layers(tmp_path / f"{stem}.gpkg")["name"].tolist() == ["pois"]
    assert len(gpd.read_file(tmp_path / f"{stem}.gpkg")) == len(wanted)


@pytest.mark.parametrize("crs", [LOCAL_GRID, MARS, "+proj=utm +zone=31 +a=3396190 +b=3376200"])
@pytest.mark.parametrize("command", [["pois"], ["smooth", "--epsilon", "200"]])
def test_geojson_refuses_a_crs_that_cannot_be_transformed(city, crs, command, tmp_path):
    data = city if "longlat" in crs else city.to_crs(32631)
    data.set_crs(crs, allow_override=True).to_parquet(tmp_path / "in.parquet")
    called = run(command[0], tmp_path / "in.parquet", tmp_path / "p.geojson", *command[1:])
    assert called.exit_code == 1
    assert "has no place on the globe" in called.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.parametrize(
    ("crs", "names"),
    [("OGC:CRS84", ["lon", "lat"]), ("EPSG:4979", ["lon", "lat"]), ("EPSG:4267", ["x", "y"]), (32631, ["x", "y"])],
)
def test_a_csv_names_coordinates_as_that_of_the_traces_does(city, crs, names, tmp_path):
    data = city.to_crs(crs)
    written(data, tmp_path / "p.csv")
    pg.write(data, tmp_path / "traces.csv")
    for path in (tmp_path / "p.csv", tmp_path / "traces.csv"):
        assert list(pd.read_csv(path).columns)[-2:] == names


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Paris"])
def test_times_are_kept_to_the_nanosecond_or_cut_to_the_millisecond(ending, zone, tmp_path):
    times = np.array([59_999_500_069, 59_999_500_069 + 3600 * 10**9 + 10**6])
    traces = pg.Traces.from_arrays(np.zeros(2), np.zeros(2), times=times, users=["a"], counts=[2], zone=zone)
    written(traces, tmp_path / f"p{ending}")
    found = read_back(tmp_path / f"p{ending}")
    unit = 10**6 if ending in (".gpkg", ".geojson") else 1
    stays = [pd.DatetimeIndex(found[name]) for name in ("arrival", "departure")]
    assert [int(stay.as_unit("ns").asi8[0]) for stay in stays] == (times // unit * unit).tolist()
    assert all((stay.tz is None) == (zone is None) for stay in stays)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("users", [["[1]", "a\rb", ""], [1, "a", "b"], [2**63 + 5, 2, 3]])
def test_users_of_any_kind_come_back_as_text(users, ending, tmp_path):
    times = np.tile([0, 3600 * 10**9], 3)
    traces = pg.Traces.from_arrays(np.zeros(6), np.zeros(6), times=times, users=users, counts=[2] * 3)
    written(traces, tmp_path / f"p{ending}")
    if ending != ".csv":
        found = read_back(tmp_path / f"p{ending}")["user"]
    else:
        found = pd.read_csv(tmp_path / "p.csv", dtype=str, keep_default_na=False, lineterminator="\n")["user"]
    assert sorted(found) == sorted(map(str, users))


def test_a_nul_in_a_key_is_kept_by_geoparquet_alone(tmp_path):
    traces = pg.Traces.from_arrays(
        np.zeros(2), np.zeros(2), times=np.array([0, 3600 * 10**9]), users=["hush\0"], counts=[2]
    )
    written(traces, tmp_path / "p.parquet")
    assert gpd.read_parquet(tmp_path / "p.parquet")["user"].tolist() == ["hush\0"]
    for ending in (".gpkg", ".geojson", ".csv"):
        with pytest.raises(ValueError, match="1 user key holds a NUL"):
            written(traces, tmp_path / f"p{ending}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_stays_and_no_users_can_be_written(city, ending, tmp_path):
    assert len(written(city.iloc[:1], tmp_path / f"none{ending}")) == 0
    assert len(read_back(tmp_path / f"none{ending}")) == 0
    alone = city[city["user"] == city["user"].iloc[0]].drop(columns="user").rename_geometry("place")
    wanted = written(alone, tmp_path / f"alone{ending}", user=None)
    found = read_back(tmp_path / f"alone{ending}")
    assert len(found) == len(wanted)
    assert "user" not in found
    if ending == ".gpkg":
        assert pyogrio.read_arrow(tmp_path / "alone.gpkg")[0]["geometry_name"] == "place"
