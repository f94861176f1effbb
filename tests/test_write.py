"""write: what other programs read from a file, and what is not in it."""

import datetime
import functools
import json
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import geopandas as gpd
import gpxpy
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pyogrio
import pytest

import promesse_geo as pg
from promesse_geo.io import writers as writing
from promesse_geo.io.writers import blocks

pytestmark = pytest.mark.filterwarnings("ignore:The times have no zone, so GPX")

ENDINGS = (".parquet", ".gpkg", ".fgb", ".csv", ".geojson", ".gpx")
MILLISECONDS = (".gpkg", ".fgb", ".geojson")  # GDAL keeps no more
ON_THE_GLOBE = (".geojson", ".gpx")
every_ending = pytest.mark.parametrize("ending", ENDINGS)
every_table = pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending != ".gpx"])  # with columns
LOCAL_GRID = 'LOCAL_CS["building",UNIT["metre",1]]'
HOSTILE = [
    "a,b",
    'say "hi"',
    "new\nline",
    "<script>alert(1)</script>",
    "=1+1",
    "Zoë 🚕",
    "'; DROP TABLE traces; --",
    "\\",
    " ",
    "",
    "NA",
]


def make_frame(users, times=None, *, crs="EPSG:4326", places=None) -> gpd.GeoDataFrame:
    count = len(users)
    if times is None:
        times = pd.date_range("2008-05-17 10:00:04", periods=count, freq="97s", tz="UTC")
    if places is None:
        places = [(2 + 0.013 * number, 48 + 0.007 * number) for number in range(count)]
    x, y = np.array(places, float).reshape(-1, 2).T
    return gpd.GeoDataFrame({"user": users, "time": times}, geometry=gpd.points_from_xy(x, y), crs=crs)


def times_of(*texts, zone=None, unit="us") -> pd.DatetimeIndex:
    return pd.DatetimeIndex(texts, tz=zone).as_unit(unit)


PARIS = pd.date_range("2024-03-30 22:30", periods=4, freq="97min", tz="Europe/Paris")  # clocks change in between
CASES = {
    "text users": make_frame(list("bab")),
    "integer users": make_frame([30, 4, 30]),
    "hostile users": make_frame(HOSTILE),
    "users that mix text and integers": make_frame([10, "a", 9]),
    "users beyond 64 bits": make_frame(np.array([2**63 + 5, 1], np.uint64)),
    "naive times": make_frame(["a"] * 2, times_of("2008-05-17 10:00:04.5", "2008-05-17 10:01")),
    "times of a zone": make_frame(["a"] * 4, PARIS),
    "times of a fixed offset": make_frame(["a"] * 2, times_of("2008-05-17 10:00", "2008-05-17 10:01", zone="+05:30")),
    "times in seconds": make_frame(["a"] * 2, times_of("2008-05-17 10:00:04", "2008-05-18", unit="s")),
    "times in milliseconds": make_frame(["a"], times_of("2008-05-17 10:00:04.123", unit="ms")),
    "times in microseconds": make_frame(["a"], times_of("2008-05-17 10:00:04.123456")),
    "times in nanoseconds": make_frame(["a"], times_of("2008-05-17 10:00:04.123456789", zone="UTC", unit="ns")),
    "times before 1970": make_frame(["a"] * 2, times_of("1912-06-23 01:02:03", "1969-12-31 23:59:59")),
    "UTM": make_frame(list("ab"), crs="EPSG:32631", places=[(500_000.5, 5e6), (500_100, 5_000_001)]),
    "world Mercator": make_frame(list("ab"), crs="EPSG:3857", places=[(500_000.5, 5e6), (500_100, 5_000_001)]),
    "US feet": make_frame(list("ab"), crs="EPSG:2227", places=[(6e6, 2.1e6), (6_000_010.25, 2.1e6)]),
    "another datum": make_frame(list("ab"), crs="EPSG:4267", places=[(-122.4, 37.7), (-122.3, 37.8)]),
    "a local grid": make_frame(list("ab"), crs=LOCAL_GRID, places=[(3, 4), (5, 6)]),
    "the antimeridian and the poles": make_frame(list("abc"), places=[(180, 1), (-180, 1), (0, -90)]),
    "one record": make_frame(["a"]),
    "no record": make_frame(list("ab")).iloc[:0],
}
every_case = pytest.mark.parametrize("case", CASES)


def read_by_others(path, *, user="user", time="time", crs=None) -> gpd.GeoDataFrame:
    """Read a file with GeoPandas or pandas."""
    if path.suffix == ".parquet":
        return gpd.read_parquet(path)
    if path.suffix == ".gpx":
        with path.open(encoding="utf-8") as file:
            return read_by_gpxpy(gpxpy.parse(file), user=user, time=time)
    if path.suffix != ".csv":
        return gpd.read_file(path)
    table = pd.read_csv(path, dtype={user: str}, keep_default_na=False)
    x, y = ("lon", "lat") if "lon" in table else ("x", "y")
    table[time] = pd.to_datetime(table[time], format="ISO8601")
    return gpd.GeoDataFrame(table[[user, time]], geometry=gpd.points_from_xy(table[x], table[y]), crs=crs)


def read_by_gpxpy(content, *, user, time) -> gpd.GeoDataFrame:
    rows = [
        (track.name or "", point.time, point.longitude, point.latitude)
        for track in content.tracks
        for part in track.segments
        for point in part.points
    ]
    users, times, x, y = zip(*rows, strict=True) if rows else ((), pd.to_datetime([]), (), ())
    return gpd.GeoDataFrame(
        {user: list(users), time: pd.DatetimeIndex(times).as_unit("us")},
        geometry=gpd.points_from_xy(x, y),
        crs="EPSG:4326",
    )


def read_by_us(path, *, user=..., time=..., crs=None) -> gpd.GeoDataFrame:
    """Read a file with `read_gpx` or `read_table`."""
    if path.suffix == ".gpx":
        return pg.read_gpx(path)
    return pg.read_table(path, user=user, time=time, crs=crs if path.suffix == ".csv" else None)


def instants(times) -> np.ndarray:
    return pd.DatetimeIndex(times).as_unit("ns").asi8


def assert_same_records(read, expected, *, ending, digits=None):
    """The same users (as text), instants (in the format's unit) and places, in the order of traces."""
    expected = pg.Traces.from_frame(expected).to_frame()
    if ending in ON_THE_GLOBE:
        expected = expected.to_crs("EPSG:4326")
    assert [str(user) for user in read["user"]] == [str(user) for user in expected["user"]]
    unit = digits or (1_000_000 if ending in MILLISECONDS else 1)
    assert (instants(read["time"]) // unit).tolist() == (instants(expected["time"]) // unit).tolist()
    assert (pd.DatetimeIndex(read["time"]).tz is None) == (expected["time"].dt.tz is None)
    tolerance = 1e-9 if np.abs(expected.total_bounds).max() <= 360 else 1e-7
    for axis in "xy":
        off = getattr(read.geometry, axis).to_numpy() - getattr(expected.geometry, axis).to_numpy()
        assert np.abs((off + 180) % 360 - 180 if expected.crs.is_geographic else off).max() < tolerance


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return a function that returns the path of a case, which it writes once in each format."""

    @functools.cache
    def write(case, ending):
        path = tmp_path_factory.mktemp("written") / f"traces{ending}"
        pg.write(CASES[case], path)
        return path

    return write


@every_ending
@every_case
def test_other_programs_read_the_records_that_were_written(case, ending, written, tmp_path):
    frame = CASES[case]
    if ending in ON_THE_GLOBE and case == "a local grid":
        pytest.skip("it cannot be transformed to EPSG:4326")
    if ending == ".gpx" and case == "hostile users":
        frame, path = frame[frame["user"] != " "], tmp_path / "traces.gpx"  # gpxpy strips names
        pg.write(frame, path)
    else:
        path = written(case, ending)
    found = read_by_others(path, crs=frame.crs)
    if len(frame) == 0:
        assert len(found) == 0
        assert ending == ".geojson" or list(found.columns) == ["user", "time", "geometry"]
    else:
        assert_same_records(found, frame, ending=ending, digits=1_000 if ending == ".gpx" else None)
        assert found.crs == ("EPSG:4326" if ending in ON_THE_GLOBE else frame.crs)
        assert list(found.columns) == ["user", "time", "geometry"]


@pytest.mark.filterwarnings("ignore:.*as programs write missing values")
@every_ending
@every_case
def test_we_read_the_records_that_we_wrote(case, ending, written):
    frame = CASES[case]
    if ending in ON_THE_GLOBE and case == "a local grid":
        pytest.skip("it cannot be transformed to EPSG:4326")
    found = read_by_us(written(case, ending), crs=frame.crs)
    if len(frame) == 0:
        assert list(found.columns) == ["user", "time", "geometry"]
        assert len(found) == 0
    else:
        if ending == ".gpx":  # which knows no integers
            frame = frame.assign(user=frame["user"].astype(str))
        assert_same_records(found, frame, ending=ending)


@pytest.mark.parametrize("ending", [".gpkg", ".fgb"])
def test_a_crs_whose_code_gdal_does_not_know_is_described(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(writing.gdal, "_code_or_json", lambda crs: "EPSG:999999")
    pg.write(CASES["UTM"], tmp_path / f"traces{ending}")
    found = read_by_us(tmp_path / f"traces{ending}")
    assert_same_records(found, CASES["UTM"], ending=ending)
    assert found.crs == "EPSG:32631"


@every_ending
@pytest.mark.parametrize("users", [["017", "018"], ["2024-01-01", "2024-01-02"], ["true", "false"], ["1e5", "2e5"]])
def test_text_users_that_look_like_something_else_stay_text(users, ending, tmp_path):
    path = tmp_path / f"traces{ending}"
    pg.write(make_frame(users), path)
    assert sorted(read_by_us(path)["user"]) == sorted(users)


@every_ending
def test_a_user_with_line_breaks_is_read_across_the_blocks_of_the_reader(ending, tmp_path):
    path, user = tmp_path / f"traces{ending}", "line\n" * 100
    pg.write(make_frame([user] * 3_000), path)
    assert set(read_by_us(path)["user"]) == {user}


@every_table
def test_integer_users_come_back_as_integers_in_order_of_value(ending, tmp_path):
    path = tmp_path / f"traces{ending}"
    pg.write(make_frame([10, 9, 10]), path)
    assert pg.read_table(path)["user"].tolist() == [9, 10, 10]


@every_table
def test_a_single_trace_has_no_user_column(ending, tmp_path):
    frame, path = make_frame(["a"] * 3).drop(columns="user"), tmp_path / f"traces{ending}"
    pg.write(frame, path, user=None)
    assert "user" not in pg.read_table(path, user=None).columns
    assert len(pg.read_table(path, user=None)) == 3


WITH_METADATA = (".parquet", ".gpkg", ".fgb")


@every_table
@pytest.mark.parametrize(("user", "time"), [("cab", "stamp"), ("fid", "when"), ("id", "a.b"), ("a, b", 'the "time"')])
def test_columns_keep_their_names_where_metadata_have_their_roles(user, time, ending, tmp_path):
    frame, path = make_frame(list("aab")).rename(columns={"user": user, "time": time}), tmp_path / f"traces{ending}"
    pg.write(frame.rename_geometry("place"), path, user=user, time=time)
    found = pg.read_table(path)
    place = "place" if ending in (".parquet", ".gpkg") else "geometry"  # the other formats have no name for it
    names = (user, time) if ending in WITH_METADATA else ("user", "time")
    assert list(found.columns) == [*names, place]
    assert set(read_by_others(path, user=names[0], time=names[1]).columns) >= set(names)
    assert found[names[0]].tolist() == list("aab")


@every_table
def test_a_single_trace_is_one_again_where_metadata_say_so(ending, tmp_path):
    frame, path = make_frame(["a"] * 3).drop(columns="user"), tmp_path / f"traces{ending}"
    pg.write(frame, path, user=None)
    if ending in WITH_METADATA:
        assert len(pg.read_table(path, as_traces=True)) == 1
    else:
        with pytest.raises(ValueError, match="No user column was found"):
            pg.read_table(path)


def test_roles_of_columns_count_only_while_the_columns_exist(tmp_path):
    pg.write(make_frame(list("aab")).rename(columns={"user": "cab"}), tmp_path / "traces.parquet", user="cab")
    table = pq.read_table(tmp_path / "traces.parquet")
    renamed = table.rename_columns(["uid", "time", "geometry"]).replace_schema_metadata(table.schema.metadata)
    pq.write_table(renamed, tmp_path / "renamed.parquet")
    assert list(pg.read_table(tmp_path / "renamed.parquet").columns) == ["uid", "time", "geometry"]


@every_table
@pytest.mark.parametrize("name", [None, "stamp"])
def test_a_datetime_index_becomes_a_column(name, ending, tmp_path):
    frame, path = make_frame(list("aab")), tmp_path / f"traces{ending}"
    pg.write(frame.set_index("time").rename_axis(name), path)
    found = pg.read_table(path)
    kept = name if name and ending in WITH_METADATA else "time"
    assert instants(found[kept]).tolist() == instants(frame["time"]).tolist()


def test_zones_and_units_come_back_from_geoparquet(tmp_path):
    pg.write(CASES["times of a zone"], tmp_path / "paris.parquet")
    assert str(gpd.read_parquet(tmp_path / "paris.parquet")["time"].dtype) == "datetime64[us, Europe/Paris]"
    pg.write(CASES["times in nanoseconds"], tmp_path / "fine.parquet")
    assert str(gpd.read_parquet(tmp_path / "fine.parquet")["time"].dtype) == "datetime64[ns, UTC]"


def test_a_csv_is_what_the_documentation_says(tmp_path):
    pg.write(make_frame(["a"] * 2), tmp_path / "degrees.csv")
    assert (tmp_path / "degrees.csv").read_text(encoding="utf-8").splitlines()[:2] == [
        '"user","time","lon","lat"',
        '"a","2008-05-17T10:00:04.000000Z",2,48',
    ]
    pg.write(make_frame(["a"], times_of("2008-05-17 10:00:04", unit="s"), crs="EPSG:32631"), tmp_path / "metres.csv")
    assert (tmp_path / "metres.csv").read_text(encoding="utf-8").splitlines() == [
        '"user","time","x","y"',
        '"a","2008-05-17T10:00:04",2,48',
    ]


def test_geojson_refuses_a_crs_that_cannot_be_transformed(tmp_path):
    with pytest.raises(ValueError, match="no place on the globe"):
        pg.write(CASES["a local grid"], tmp_path / "traces.geojson")
    assert list(tmp_path.iterdir()) == []


def test_traces_longer_than_a_block_are_written_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_ROWS", 7)
    frame = make_frame(list("aabbbccccd") * 3)
    for ending in ENDINGS:
        path = tmp_path / f"traces{ending}"
        pg.write(frame, path)
        assert_same_records(read_by_others(path, crs=frame.crs), frame, ending=ending)


# Content that must not be in a file.


@dataclass(frozen=True)
class Seeded(pg.Mechanism):
    """A mechanism with a seed."""

    radius: float
    seed: int = field(default=0, repr=False)

    def _protect(self, traces):
        return traces


def write_protected(tmp_path, ending) -> tuple[bytes, str]:
    """Bytes of a protected file, and the name of the temporary folder in which it was written."""
    source = tmp_path / "hush-folder"
    source.mkdir()
    count = 60
    frame = make_frame(["hush-user"] * count, places=[(2 + 0.004 * number, 48) for number in range(count)])
    frame.assign(**{"hush-column": "hush-value"}).to_parquet(source / "hush-file.parquet")
    safe = pg.Promesse(200).protect(pg.read_table(source / "hush-file.parquet", as_traces=True))
    path, seen = tmp_path / f"safe{ending}", []
    original = os.link

    def spy(old, new):
        seen.append(old.parent.name)
        original(old, new)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "link", spy)
        pg.write(pg.pseudonymize(safe, seed=918273645), path, mechanism=Seeded(25, seed=918273645))
    return path.read_bytes(), seen[0]


@every_ending
def test_nothing_of_the_input_or_the_run_is_in_the_bytes(ending, tmp_path):
    content, temporary = write_protected(tmp_path, ending)
    now = datetime.datetime.now(datetime.UTC)
    secrets = ("hush", str(tmp_path), "918273645", temporary, temporary.split(".")[1], ".part")
    dates = (f"{now.year}-", f"{now:%Y/%m/%d}", f"{now:%Y%m%d}", "pandas")
    for secret in (*secrets, *dates):
        assert secret.encode() not in content
        assert secret.encode("utf-16-le") not in content


@every_ending
def test_a_file_holds_user_time_and_geometry_only(ending, tmp_path):
    write_protected(tmp_path, ending)
    found = read_by_others(tmp_path / f"safe{ending}")
    assert list(found.columns) == ["user", "time", "geometry"]
    assert found["user"].str.fullmatch("[0-9a-f]{16}").all()


def test_geoparquet_and_geopackage_name_the_mechanism_and_its_public_parameters(tmp_path):
    wanted = {"mechanism": "Seeded", "parameters": {"radius": 25}}
    pg.write(make_frame(["a"]), tmp_path / "a.parquet", mechanism=Seeded(25, seed=7))
    assert json.loads(pq.read_schema(tmp_path / "a.parquet").metadata[b"promesse_geo"]) == wanted
    assert set(pq.read_schema(tmp_path / "a.parquet").metadata) == {b"promesse_geo", b"geo"}
    pg.write(make_frame(["a"]), tmp_path / "a.gpkg", mechanism=Seeded(25, seed=7))
    metadata = pyogrio.read_info(tmp_path / "a.gpkg")["layer_metadata"]
    assert {key: json.loads(value) for key, value in metadata.items()} == {"promesse_geo": wanted}
    for ending in (".csv", ".geojson"):
        pg.write(make_frame(["a"]), tmp_path / f"a{ending}", mechanism=Seeded(25, seed=7))
        assert b"Seeded" not in (tmp_path / f"a{ending}").read_bytes()


def test_a_file_without_mechanism_names_none(tmp_path):
    pg.write(make_frame(["a"]), tmp_path / "a.parquet")
    metadata = pq.read_schema(tmp_path / "a.parquet").metadata
    assert set(metadata) == {b"geo", b"promesse_geo"}
    assert json.loads(metadata[b"promesse_geo"]) == {"mechanism": None}
    pg.write(make_frame(["a"]), tmp_path / "a.gpkg")
    assert pyogrio.read_info(tmp_path / "a.gpkg")["layer_metadata"] == {"promesse_geo": '{"mechanism": null}'}


def test_geoparquet_metadata_is_what_the_standard_says(tmp_path):
    pg.write(make_frame(["a"], crs="EPSG:32631").rename_geometry("place"), tmp_path / "a.parquet")
    about = json.loads(pq.read_schema(tmp_path / "a.parquet").metadata[b"geo"])
    assert (about["version"], about["primary_column"], list(about["columns"])) == ("1.1.0", "place", ["place"])
    column = about["columns"]["place"]
    assert (column["encoding"], column["geometry_types"]) == ("WKB", ["Point"])
    assert column["crs"]["id"] == {"authority": "EPSG", "code": 32631}


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".geojson"])
def test_the_same_traces_make_the_same_bytes(ending, tmp_path):
    for name in ("first", "second"):
        pg.write(CASES["hostile users"], tmp_path / f"{name}{ending}", mechanism=pg.Promesse(200))
    assert (tmp_path / f"first{ending}").read_bytes() == (tmp_path / f"second{ending}").read_bytes()


def test_the_same_traces_make_the_same_geopackage(tmp_path):
    contents = []
    for name in ("first", "second"):
        pg.write(CASES["hostile users"], tmp_path / f"{name}.gpkg", mechanism=pg.Promesse(200))
        connection = sqlite3.connect(tmp_path / f"{name}.gpkg")
        contents.append(list(connection.iterdump()))
        changed = connection.execute("select last_change from gpkg_contents").fetchall()
        connection.close()
        assert [text[:10] for (text,) in changed] == ["1970-01-01"]
    assert contents[0] == contents[1]


def test_settings_of_gdal_are_unchanged(tmp_path):
    before = pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
    pg.write(make_frame(["a"]), tmp_path / "a.gpkg")
    assert pyogrio.get_gdal_config_option("OGR_CURRENT_DATE") == before


# What write takes.


def test_traces_have_no_columns_to_name(tmp_path):
    traces = pg.Traces.from_frame(make_frame(["a"]))
    with pytest.raises(TypeError, match="columns of a GeoDataFrame"):
        pg.write(traces, tmp_path / "a.csv", user="user")


def test_the_input_is_not_changed(tmp_path):
    frame = make_frame(list("ba"))
    before = frame.copy()
    traces = pg.Traces.from_frame(frame)
    kept = replace(traces, points=traces.points.copy(), times=traces.times.copy())
    for ending in ENDINGS:
        pg.write(traces, tmp_path / f"traces{ending}")
        pg.write(frame, tmp_path / f"frame{ending}")
    assert frame.equals(before)
    assert np.array_equal(traces.points, kept.points)
    assert np.array_equal(traces.times, kept.times)


def test_columns_that_are_not_written_are_named(tmp_path):
    frame = pg.make_city(users=1, days=1, recorder="phone").assign(phone="x")
    with pytest.warns(UserWarning, match="The column 'phone' was dropped"):
        pg.write(frame, tmp_path / "city.csv")


# What a format cannot keep is refused; the rest comes back as it was.


@pytest.mark.parametrize("crs", ["EPSG:4807", "EPSG:4301", "EPSG:4267", "+proj=longlat +pm=paris"])
def test_a_csv_says_lon_and_lat_of_epsg_4326_only(crs, tmp_path):
    frame, path = make_frame(list("ab")).to_crs(crs), tmp_path / "traces.csv"
    pg.write(frame, path)
    assert path.read_text(encoding="utf-8").startswith('"user","time","x","y"\n')
    with pytest.raises(ValueError, match="specify their CRS"):
        pg.read_table(path)
    found = pg.read_table(path, crs=crs)
    assert np.allclose(found.geometry.x, frame.geometry.x, atol=1e-9)


@pytest.mark.parametrize("crs", ["OGC:CRS84", "EPSG:4979", "+proj=longlat +datum=WGS84"])
def test_a_csv_says_lon_and_lat_of_wgs_84_in_all_its_names(crs, tmp_path):
    pg.write(make_frame(["a"], crs=crs), tmp_path / "traces.csv")
    assert (tmp_path / "traces.csv").read_text(encoding="utf-8").startswith('"user","time","lon","lat"\n')


UNITS = ["+proj=utm +zone=31 +units=us-ft", "+proj=utm +zone=31 +units=ft", "+proj=laea +lat_0=45 +lon_0=5 +units=km"]


@pytest.mark.parametrize("crs", [*UNITS, "EPSG:4807", "ESRI:102001", "+proj=eqearth +units=ft"])
@pytest.mark.parametrize("ending", [".parquet", ".gpkg"])
def test_the_crs_and_its_unit_come_back(crs, ending, tmp_path):
    frame, path = make_frame(list("ab")).to_crs(crs), tmp_path / f"traces{ending}"
    pg.write(frame, path)
    found = read_by_others(path)
    assert found.crs.equals(frame.crs, ignore_axis_order=True)
    back = found.to_crs("EPSG:4326").geometry
    assert np.allclose([back.x, back.y], [[2, 2.013], [48, 48.007]], atol=1e-7)


@pytest.mark.parametrize("ending", [".gpkg", ".csv", ".geojson"])
@pytest.mark.parametrize(
    ("users", "count"), [(["hush\0b", "hush\0c"], "2 user keys hold"), (["hush\0", "hush"], "1 user key holds")]
)
def test_a_nul_in_a_key_is_refused_by_formats_that_would_end_there(users, count, ending, tmp_path):
    with pytest.raises(ValueError, match=f"^{count} a NUL") as caught:
        pg.write(make_frame(users), tmp_path / f"traces{ending}")
    assert "hush" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    pg.write(make_frame(users), tmp_path / "traces.parquet")
    assert sorted(gpd.read_parquet(tmp_path / "traces.parquet")["user"]) == sorted(users)


@pytest.mark.filterwarnings("ignore:.*as programs write missing values")
@every_ending
def test_users_that_look_like_json_stay_text(ending, tmp_path):
    users = ['{"a": 1}', '{"a":1}', "[1]", "[ 1 ]", "{}", "[]", '"a"', "null", "1.0"]
    pg.write(make_frame(users), tmp_path / f"traces{ending}")
    assert sorted(read_by_others(tmp_path / f"traces{ending}")["user"]) == sorted(users)
    assert sorted(read_by_us(tmp_path / f"traces{ending}")["user"]) == sorted(users)


def renamed_frame(user, time="time", place="geometry") -> gpd.GeoDataFrame:
    renamed = make_frame(list("ab")).rename(columns={"user": user, "time": time, "geometry": place})
    return renamed.set_geometry(place)


@pytest.mark.parametrize(
    ("frame", "endings"),
    [
        (renamed_frame(0, "0"), (".parquet", ".gpkg", ".fgb")),
        (renamed_frame(1, place="1"), (".parquet", ".gpkg")),
        (renamed_frame("GEOM", place="geom"), (".gpkg",)),
        (renamed_frame("Time"), (".gpkg", ".fgb")),
    ],
)
def test_two_columns_of_one_name_are_refused(frame, endings, tmp_path):
    user, time = frame.columns[:2]
    for ending in endings:
        with pytest.raises(ValueError, match="two of one name"):
            pg.write(frame, tmp_path / f"traces{ending}", user=user, time=time)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "frame",
    [
        renamed_frame(0, "0"),
        renamed_frame("ogc_fid", place="1"),
        renamed_frame("lon", "lat"),
        renamed_frame("x", "Time").set_crs(32631, allow_override=True),
    ],
)
def test_formats_without_metadata_have_names_that_differ(frame, tmp_path):
    user, time = frame.columns[:2]
    for ending in (".csv", ".geojson", ".gpx"):
        pg.write(frame, tmp_path / f"traces{ending}", user=user, time=time)
        crs = frame.crs if ending == ".csv" else None
        assert list(pg.read_file(tmp_path / f"traces{ending}", crs=crs).columns) == ["user", "time", "geometry"]


@pytest.mark.parametrize("ending", WITH_METADATA)
@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_column_s_name_that_no_file_keeps_is_refused(name, ending, tmp_path):
    traces = pg.Traces.from_frame(make_frame(["a"]))
    with pytest.raises(ValueError, match="NUL or a lone surrogate"):
        pg.write(replace(traces, names=replace(traces.names, user=name)), tmp_path / f"traces{ending}")


@pytest.mark.parametrize("names", [{"time": "user"}, {"geometry": "user"}])
def test_new_names_stand_in_a_column_of_their_own(names, tmp_path):
    frame = make_frame(list("aa")).drop(columns="user").rename(columns=names)
    frame = frame.set_geometry(names.get("geometry", "geometry"))
    found = pg.pseudonymize(frame, user=None, time=names.get("time", "time"))
    assert list(found.columns) == ["uid", *frame.columns]
    assert found["uid"].str.fullmatch("[0-9a-f]{16}").all()


class Keyless(datetime.tzinfo):
    """Two hours off UTC, under a name that nobody knows."""

    def utcoffset(self, moment):
        return datetime.timedelta(hours=2)

    def dst(self, moment):
        return datetime.timedelta(0)

    def tzname(self, moment):
        return "MY"


@every_ending
@pytest.mark.parametrize("zone", [Keyless(), datetime.timezone(datetime.timedelta(seconds=-1234))], ids=["name", "odd"])
def test_a_zone_without_a_name_becomes_utc(zone, ending, tmp_path):
    frame = make_frame(list("aa"))
    pg.write(frame.assign(time=frame["time"].dt.tz_convert(zone)), tmp_path / f"traces{ending}")
    found = read_by_us(tmp_path / f"traces{ending}")
    assert instants(found["time"]).tolist() == instants(frame["time"]).tolist()
    assert str(found["time"].dt.tz) == "UTC"


@every_ending
@pytest.mark.parametrize("total", [10, 40])
def test_more_text_than_an_array_holds_is_written_in_several(total, ending, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_TEXT_LIMIT", total)  # a record at a time; all keys together in large text or not
    frame = make_frame(["zaphod-1", "zaphod-2", "zaphod-1"])
    pg.write(frame, tmp_path / f"traces{ending}")
    assert_same_records(read_by_others(tmp_path / f"traces{ending}"), frame, ending=ending)


def test_threads_leave_the_settings_of_gdal_unchanged(tmp_path):
    before = pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
    frame = make_frame(list("ab") * 200)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: pg.write(frame, tmp_path / f"{number}.gpkg"), range(16)))
    assert pyogrio.get_gdal_config_option("OGR_CURRENT_DATE") == before


@pytest.mark.parametrize("ending", ["gpkg", "geojson"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_seconds_just_before_a_minute_are_written_as_such(tmp_path, ending, zone):
    times = np.array([59_999_000_000, 59_999_499_999, 59_999_500_000, 59_999_999_999, 10**18 + 39_999_999_999])
    traces = pg.Traces.from_arrays(np.arange(5.0), np.arange(5.0), times=times, users=["a"], counts=[5], zone=zone)
    pg.write(traces, tmp_path / f"late.{ending}")
    assert pg.read_file(tmp_path / f"late.{ending}", as_traces=True).times.tolist() == (times // 10**6 * 10**6).tolist()
