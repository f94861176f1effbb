"""read_table: which columns are read, and the order of the records."""

import pytest
from tables import HEADER, LINE, LINES, TEXT, as_frame, assert_rows, csv_of, refused, save, written

from promesse_geo.io.table import read_table

LONGITUDES, LATITUDES = ("lng", "lon", "long", "longitude"), ("lat", "latitude")
USERS = ("uid", "user", "user_id", "traj_id", "track_id", "individual-local-identifier")
TIME_NAMES = ("datetime", "timestamp", "time", "tracked_at", "t")


@pytest.mark.parametrize("lon", LONGITUDES)
@pytest.mark.parametrize("lat", LATITUDES)
def test_known_names_of_coordinates_are_found(lon, lat, tmp_path):
    found = read_table(csv_of(tmp_path, f"user,time,{lon},{lat}", LINE))
    assert (found.geometry.x[0], found.geometry.y[0]) == pytest.approx((4.84, 45.75))
    assert found.crs == "EPSG:4326"


@pytest.mark.parametrize(("user", "time"), list(zip(USERS, (*TIME_NAMES, "time"), strict=True)))
def test_known_names_of_users_and_times_are_found(user, time, tmp_path):
    assert list(read_table(csv_of(tmp_path, f"{user},{time},lon,lat", LINE)).columns) == [user, time, "geometry"]
    for ending in ("parquet", "gpkg", "geojson"):
        path = tmp_path / f"table.{ending}"
        as_frame().rename(columns={"user": user, "time": time}).pipe(save, path)
        place = "geom" if ending == "gpkg" else "geometry"  # as GDAL calls it
        assert list(read_table(path).columns) == [user, time, place]


def test_columns_may_stand_in_any_order_among_others(tmp_path):
    path = csv_of(tmp_path, "speed,lat,lon,note,time,user", "3,45.75,4.84,hello,2024-03-04T08:00:00Z,ana")
    found = read_table(path)
    assert list(found.columns) == ["user", "time", "geometry"]
    assert found.geometry.x[0] == pytest.approx(4.84)


def test_the_role_itself_goes_before_other_known_names(tmp_path):
    path = csv_of(tmp_path, "user,uid,time,timestamp,lon,lng,lat", "ana,other,2024-03-04T08:00:00Z,x,4,y,45")
    found = read_table(path)
    assert list(found.columns) == ["user", "time", "geometry"]


@pytest.mark.parametrize(
    ("header", "role", "candidates"),
    [
        ("uid,user_id,time,lon,lat", "user", "'uid' and 'user_id'"),
        ("user,datetime,timestamp,lon,lat", "time", "'datetime' and 'timestamp'"),
        ("user,time,lng,longitude,lat", "lon", "'lng' and 'longitude'"),
    ],
)
def test_several_candidates_are_an_error_that_lists_them(header, role, candidates, tmp_path):
    assert f"Several columns could hold the {role}: {candidates}" in refused(csv_of(tmp_path, header, "a,b,c,d,e"))


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("who,time,lon,lat", "user"),
        ("user,when,lon,lat", "time"),
        ("user,time,a,lat", "lon"),
        ("user,time,lon,b", "lat"),
    ],
)
def test_a_column_that_is_not_found_is_an_error_that_says_what_is_there(header, role, tmp_path):
    said = refused(csv_of(tmp_path, header, LINE))
    assert f"No {role} column" in said
    assert all(repr(name) in said for name in header.split(","))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("who,time,lon,lat", "(--one-trace)"),
        ("who,time,lon,lat", "(--user file)"),
        ("user,time,lon,lat,lat", "There are several columns named 'lat'"),
        ("UID,user_id,lon,lat", "Several columns could hold the user: 'UID' and 'user_id'. Specify which"),
        ("user,time,time,lat,lon", "There are several columns named 'time'"),
        ("user,time,x,y", "specify their CRS"),
        ("user,time,X,Y", "specify their CRS"),
    ],
)
def test_columns_that_are_ambiguous_or_lack_a_crs_are_an_error(header, words, tmp_path):
    assert words in refused(written(tmp_path, f"{header}\n{LINES}"))


def test_columns_can_be_named_as_they_are_spelled(tmp_path):
    path = written(tmp_path, TEXT.replace(HEADER, "Who,When,East,North"))
    assert_rows(read_table(path, user="Who", time="When", lon="East", lat="North"))
    with pytest.raises(KeyError, match="user column 'who' does not exist"):
        read_table(path, user="who", time="When", lon="East", lat="North")


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_a_column_that_is_named_and_not_there_is_an_error_in_every_format(ending, tmp_path):
    save(as_frame(), tmp_path / f"table.{ending}")
    assert "The user column 'cab' does not exist" in refused(tmp_path / f"table.{ending}", user="cab")


@pytest.mark.parametrize("ending", ["csv", "parquet", "gpkg", "geojson"])
def test_a_file_can_be_one_trace(ending, tmp_path):
    path = tmp_path / f"table.{ending}"
    if ending == "csv":
        csv_of(tmp_path, "time,lon,lat", LINE.partition(",")[2])
    else:
        save(as_frame().drop(columns="user"), path)
    assert "pass user=None" in refused(path)
    found = read_table(path, user=None, as_traces=True)
    assert len(found) == 1
    assert "user" not in found.to_frame().columns


def test_x_and_y_need_a_crs(tmp_path):
    path = csv_of(tmp_path, "user,time,x,y", "ana,2024-03-04T08:00:00Z,500000,5000000")
    assert "specify their CRS" in refused(path)
    found = read_table(path, crs="EPSG:32631")
    assert found.crs == "EPSG:32631"
    assert (found.geometry.x[0], found.geometry.y[0]) == (500_000, 5_000_000)
    assert "must be a coordinate reference system" in refused(path, crs="EPSG:0")


def test_longitude_and_latitude_may_be_of_another_crs(tmp_path):
    assert read_table(csv_of(tmp_path, HEADER, LINE), crs=4267).crs == "EPSG:4267"


def test_records_are_put_in_the_order_of_traces(tmp_path):
    lines = LINE.replace("08:00", "08:01"), LINE.replace("ana", "arthur").replace("08:00:00", "08:02:00"), LINE
    found = read_table(csv_of(tmp_path, HEADER, *lines))
    assert found["user"].tolist() == ["ana", "ana", "arthur"]
    assert found["time"].is_monotonic_increasing


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_other_columns_are_ignored(ending, tmp_path):
    path = tmp_path / f"table.{ending}"
    save(as_frame(speed=[1.0, 2.0, 3.0], note=list("abc")), path)
    assert_rows(read_table(path))


def test_a_column_named_as_a_rule_is_not_guessed(tmp_path):
    path = written(tmp_path, TEXT.replace("user", "file"))
    with pytest.raises(ValueError, match="there is a column of that name"):
        read_table(path, user="file")


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_a_format_that_cannot_lack_a_header_lists_its_columns(ending, tmp_path):
    frame = as_frame().rename(columns={"user": "keeper", "time": "moment"})
    with pytest.raises(ValueError, match=r"the columns are .*keeper.*moment") as caught:
        read_table(save(frame, tmp_path / f"parts.{ending}"))
    assert "header" not in str(caught.value)
