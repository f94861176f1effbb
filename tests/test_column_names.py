"""Columns are found by one rule in frames and files."""

import uuid

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tables import csv_of, refused, save, written

import promesse_geo as pg
from promesse_geo.cli import main
from promesse_geo.traces.columns import find_names
from promesse_geo.traces.known_columns import TIMES, USERS, candidates_for, fold

TIME = "2024-03-04T08:00:00Z"


def frame_of(*columns):
    values = {name: [TIME] if "time" in name.lower() else ["a"] for name in columns}
    return gpd.GeoDataFrame(values, geometry=gpd.points_from_xy([4.8], [45.7]), crs=4326)


@st.composite
def spellings(draw, ranks):
    """A known name in other capitals, with blanks and punctuation in it."""
    name = draw(st.sampled_from([name for rank in ranks for name in rank]))
    marks = st.text("-_. #:", max_size=2)
    return "".join(draw(marks) + draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in name)


@given(spellings(USERS), spellings(TIMES))
def test_case_blanks_and_punctuation_do_not_count(user, time):
    assert candidates_for(["speed", user], USERS) == [user]
    assert candidates_for(["speed", time], TIMES) == [time]


def test_a_name_that_is_no_text_is_left_as_it_is():
    assert fold(7) == 7
    assert candidates_for([7, ("a", "b")], USERS) == []


@pytest.mark.parametrize(
    ("columns", "user", "segment"),
    [
        (("device_id", "participant_id", "taxi_id"), "participant_id", None),
        (("MMSI", "tid"), "tid", None),
        (("TRIP_ID", "TAXI_ID"), "TAXI_ID", "TRIP_ID"),
        (("trajectory_id", "id"), "trajectory_id", None),
        (("traj_id", "uid"), "uid", "traj_id"),
        (("individual.local.identifier",), "individual.local.identifier", None),
    ],
)
def test_persons_come_before_devices_vehicles_and_trips(columns, user, segment, tmp_path):
    names = find_names(frame_of(*columns, "timestamp"))
    assert (names.user, names.segment) == (user, segment)
    header, values = ",".join((*columns, "BaseDateTime", "lat", "lon")), ",".join([*"abcd"[: len(columns)], TIME])
    traces = pg.read_table(csv_of(tmp_path, header, f"{values},45.7,4.8"), as_traces=True)
    assert (traces.names.user, traces.names.segment) == (user, segment)


def test_trips_are_breaks_of_their_user(tmp_path):
    lines = [f"ann,{trip},2024-03-04T08:0{minute}:00Z,45.7,4.8{minute}" for minute, trip in enumerate("aab")]
    traces = pg.read_table(csv_of(tmp_path, "uid,trip_id,time,lat,lon", *lines), as_traces=True)
    assert traces.users.tolist() == ["ann"]
    assert traces.breaks.tolist() == [2]


def test_a_row_number_x_is_no_longitude_beside_one(tmp_path):
    path = csv_of(tmp_path, "X,user,time,location.long,location.lat", f"1,ann,{TIME},4.8,45.7")
    assert pg.read_table(path).geometry.x.tolist() == [4.8]


def test_a_user_column_that_is_empty_is_an_error_that_names_it(tmp_path):
    path = csv_of(tmp_path, "track_id,time,lat,lon", f",{TIME},45.7,4.8", ",2024-03-04T08:01:00Z,45.7,4.9")
    words = refused(path)
    assert "'track_id' is empty" in words
    assert "user=None" in words
    assert len(pg.read_table(path, user=None)) == 2


def test_an_empty_user_column_leaves_another_one_to_be_found(tmp_path):
    path = csv_of(tmp_path, "user,device_id,time,lat,lon", f",7,{TIME},45.7,4.8", ",7,2024-03-04T08:01:00Z,45.7,4.9")
    assert pg.read_table(path)["device_id"].tolist() == [7, 7]
    frame = pd.read_csv(path, parse_dates=["time"])
    with pytest.warns(UserWarning, match="'user' was dropped"):
        assert pg.Traces.from_frame(frame).users.tolist() == [7]


@pytest.mark.parametrize("ending", ["parquet", "geojson"])
def test_a_named_user_column_that_is_empty_is_an_error_that_names_it(tmp_path, ending):
    frame = frame_of("cab", "time").assign(cab=pd.Series([None], dtype="string"), time=pd.to_datetime([TIME]))
    words = refused(save(frame, tmp_path / f"table.{ending}"), user="cab")
    assert "'cab' is empty in all rows" in words
    assert len(pg.read_table(tmp_path / f"table.{ending}", user=None)) == 1


def test_records_of_a_file_without_users_are_counted_in_a_folder(tmp_path):
    written(tmp_path, f"uid,time,lat,lon\nann,{TIME},45.7,4.8\n", "a.csv")
    written(tmp_path, f"uid,time,lat,lon\n,{TIME},45.7,4.8\n,{TIME},45.7,4.8\n", "b.csv")
    with pytest.raises(ValueError, match=r"2 records of 3 cannot be used.* no user: 2, first in row 0 of '.*b\.csv'"):
        pg.read_table(tmp_path)
    with pytest.warns(UserWarning, match=r"2 records \(no user; first at row 0 of '.*b\.csv'"):
        assert pg.read_table(tmp_path, errors="skip")["uid"].tolist() == ["ann"]


def test_a_folder_without_any_user_is_an_error_that_names_the_remedies(tmp_path):
    for name in "ab":
        written(tmp_path, f"uid,time,lat,lon\n,{TIME},45.7,4.8\n", f"{name}.csv")
    with pytest.raises(ValueError, match=r"'uid' is empty in all rows.*user='file'.*user=None"):
        pg.read_table(tmp_path)
    assert sorted(set(pg.read_table(tmp_path, user="file")["user"])) == ["a", "b"]


def test_what_a_reader_returns_can_be_used_at_once(tmp_path):
    frame = pg.read_table(csv_of(tmp_path, "User,Time,Lat,Lon", f"ann,{TIME},45.7,4.8"))
    assert pg.Traces.from_frame(pd.concat([frame])).users.tolist() == ["ann"]


@pytest.mark.parametrize(
    ("names", "user", "time", "lon"),
    [
        (["Fahrer", "Datum/Uhrzeit", "Länge", "Breite"], "Fahrer", "Datum/Uhrzeit", "Länge"),
        (["driver_id", "recorded_at", "lon_deg", "lat_deg", "created_at"], "driver_id", "recorded_at", "lon_deg"),
        (["IMEI", "gps_time", "gps_longitude", "gps_latitude"], "IMEI", "gps_time", "gps_longitude"),
        (
            ["driver", "person", "unix_time", "time_utc", "lon_deg", "lat_deg", "Breite"],
            "person",
            "time_utc",
            "lon_deg",
        ),
    ],
)
def test_names_of_fleets_and_databases_are_found(tmp_path, names, user, time, lon):
    values = {"lon": ["2.0", "2.1"], "lat": ["48.0", "48.1"], "time": ["2020-01-01 10:00:00", "2020-01-01 10:01:00"]}
    of = {lon: values["lon"], time: values["time"], "unix_time": ["1", "2"], "Breite": ["7", "8"]}
    of |= {name: values["lat"] for name in names if name in ("lat_deg", "gps_latitude")}
    of |= {} if "lat_deg" in names else {"Breite": values["lat"]}
    frame = pd.DataFrame({name: of.get(name, ["a", "a"]) for name in names})
    frame.to_csv(tmp_path / "a.csv", index=False)
    read = pg.read_file(tmp_path / "a.csv")
    assert read.attrs["promesse"] == {"user": user, "time": time}
    assert read.geometry.x.tolist() == [2.0, 2.1]
    assert read.geometry.y.tolist() == [48.0, 48.1]


@pytest.mark.parametrize("names", [("Datum", "Uhrzeit"), ("Date", "Heure"), ("fecha", "hora"), ("Datum", "Zeit")])
def test_a_date_beside_a_time_of_day_is_found(tmp_path, names):
    lines = [";".join((*names, "user", "lon", "lat")), "13.02.2020;10:00:00;a;2;48", "13.02.2020;10:01:00;a;2;48"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    read = pg.read_file(tmp_path / "a.csv", time_format="%d.%m.%Y %H:%M:%S")
    assert read.iloc[:, 1].tolist() == [pd.Timestamp("2020-02-13 10:00"), pd.Timestamp("2020-02-13 10:01")]
    said = CliRunner().invoke(main, ["info", str(tmp_path / "a.csv"), "--time-format", "%d.%m.%Y %H:%M:%S"]).stdout
    assert f"user (user), {names[0]} and {names[1]} (time), lon (lon), lat (lat)" in said


def test_a_column_date_may_hold_times(tmp_path):
    (tmp_path / "a.csv").write_text("date,user,lon,lat\n2020-02-13T10:00:00Z,a,2,48\n", encoding="utf-8")
    assert pg.read_file(tmp_path / "a.csv")["date"].tolist() == [pd.Timestamp("2020-02-13 10:00", tz="UTC")]


def test_a_column_date_without_times_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("date,user,lon,lat\n2020-02-13,a,2,48\n", encoding="utf-8")
    with pytest.raises(TypeError, match=r"'date'.*time of day"):
        pg.read_file(tmp_path / "a.csv")


@pytest.mark.parametrize("levels", [["user"], ["user", "time"], ["UID"]])
def test_columns_in_the_index_are_named(levels):
    city = pg.make_city(users=2, days=1, recorder="phone").rename(columns={"user": levels[0]})
    hidden = city.set_index(levels)
    with pytest.raises(ValueError, match=r"in the index: pass frame.reset_index\(\)") as caught:
        hidden.promesse.traces()
    assert all(repr(name) in str(caught.value) for name in levels)
    with pytest.raises(KeyError, match=r"in the index: pass frame.reset_index\(\)"):
        hidden.promesse(user=levels[0]).traces()
    assert hidden.reset_index().promesse.traces().users.equals(city.promesse.traces().users)


def test_a_time_in_the_index_is_no_remedy_for_missing_users():
    city = pg.make_city(users=1, days=1, recorder="phone").drop(columns="user").set_index("time")
    with pytest.raises(ValueError, match="No user column") as caught:
        city.promesse.traces()
    assert "reset_index" not in str(caught.value)


@pytest.mark.parametrize(
    ("convert", "remedy"),
    [
        (lambda users: users.str.encode("utf-8"), "str.decode"),
        (lambda users: users.str.encode("utf-8").astype("category"), "str.decode"),
        (lambda users: users.map({"user-000": uuid.UUID(int=1), "user-001": uuid.UUID(int=2)}), r"astype\(str\)"),
        (lambda users: users == "user-000", r"astype\(str\)"),
    ],
)
def test_users_of_other_types_are_refused_with_a_remedy(convert, remedy):
    city = pg.make_city(users=2, days=1, recorder="phone")
    with pytest.raises(TypeError, match=f"must hold text or integers.*{remedy}"):
        city.assign(user=convert(city["user"])).promesse.traces()


def test_views_of_text_are_text():
    city = pg.make_city(users=2, days=1, recorder="phone")
    views = pa.array(city["user"].tolist(), pa.string_view())
    column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([views])), city.index)
    viewed = city.assign(user=column).promesse.smooth(200)
    assert viewed["user"].tolist() == city.promesse.smooth(200)["user"].tolist()
    halves = city.assign(half=column).promesse(segment="half").traces()
    assert halves.breaks.tolist() == city.promesse.traces().breaks.tolist()
