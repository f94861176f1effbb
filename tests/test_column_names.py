"""Columns are found by one rule in frames and files."""

import geopandas as gpd
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import csv_of, refused

import promesse_geo as pg
from promesse_geo.traces.columns import TIMES, USERS, candidates_for, find_names, fold

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


def test_what_a_reader_returns_can_be_used_at_once(tmp_path):
    frame = pg.read_table(csv_of(tmp_path, "User,Time,Lat,Lon", f"ann,{TIME},45.7,4.8"))
    assert pg.Traces.from_frame(pd.concat([frame])).users.tolist() == ["ann"]
