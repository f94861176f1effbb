"""Traces: the order in which they stand, and the way in and out."""

import copy
import datetime
import pickle
import re
import warnings
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from geopandas.testing import assert_geodataframe_equal
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg

from_frame = pg.Traces.from_frame


def make_frame(users, seconds=None, *, zone="UTC", unit="ns", crs=4326) -> gpd.GeoDataFrame:
    """A frame of one record for each user given, a minute apart unless seconds are given, going east."""
    seconds = np.arange(len(users)) * 60 if seconds is None else seconds
    times = pd.DatetimeIndex(np.array(seconds, dtype="M8[s]").astype("M8[ns]")) + pd.Timedelta(days=19_000)
    if zone is not None:
        times = times.tz_localize("UTC").tz_convert(zone)
    points = gpd.points_from_xy((480 + np.arange(len(users))) % 36_000 / 100, np.full(len(users), 45.75))
    return gpd.GeoDataFrame({"user": users, "time": times.as_unit(unit)}, geometry=points, crs=crs)


def fields(traces: pg.Traces) -> list:
    return [
        traces.points.tolist(),
        traces.times.tolist(),
        traces.offsets.tolist(),
        list(traces.users),
        traces.positions.tolist(),
        traces.space,
        traces.names,
        traces.time_format,
    ]


class TestOrder:
    @pytest.mark.parametrize(
        ("users", "ordered"),
        [
            ([10, 9, 2], [2, 9, 10]),
            ([-1, -10, 0], [-10, -1, 0]),
            (pd.array([10, 9, 2], dtype="Int64"), [2, 9, 10]),
            (pd.Series([10, 9, 2], dtype=object), [2, 9, 10]),
            (pd.Series([np.int64(10), np.int64(9), np.int32(2)], dtype=object), [2, 9, 10]),
            (pd.Categorical([10, 9, 2], categories=[9, 10, 2]), [2, 9, 10]),
            (["10", "9", "2"], ["10", "2", "9"]),
            (["é", "z", "Z", "😀", "\uffff", ""], ["", "Z", "z", "é", "\uffff", "😀"]),
            (pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True), ["a", "b"]),
            ([10, "9", 2], [10, 2, "9"]),
            ([10, "a", 9], [10, 9, "a"]),
        ],
    )
    def test_users_ascend(self, users, ordered):
        traces = from_frame(make_frame(users))
        assert list(traces.users) == ordered
        assert [isinstance(user, str) for user in traces.users] == [isinstance(user, str) for user in ordered]

    def test_records_stand_by_time_then_input_position(self):
        traces = from_frame(make_frame(["b", "a", "b", "b", "a"], [5, 7, 5, 4, 7]))
        assert traces.positions.tolist() == [1, 4, 3, 0, 2]
        assert traces.offsets.tolist() == [0, 2, 5]
        assert traces.counts.tolist() == [2, 3]
        assert traces.trace_numbers.tolist() == [0, 0, 1, 1, 1]

    def test_many_records_of_one_time_stand_by_input_position(self):
        times = np.repeat([1, 0], 50)
        assert from_frame(make_frame(["a"] * 100, times)).positions.tolist() == [*range(50, 100), *range(50)]

    @given(
        records=st.lists(
            st.tuples(st.one_of(st.integers(-12, 12), st.sampled_from(["a", "B", "é", "x10"])), st.integers(0, 9)),
            max_size=40,
        )
    )
    def test_it_is_that_of_a_plain_sort(self, records):
        users = pd.Series([user for user, _ in records], dtype=object)
        key = int if all(isinstance(user, int) for user in users) else str
        expected = sorted(range(len(records)), key=lambda i: (key(records[i][0]), records[i][1], i))
        frame = make_frame(users, [second for _, second in records])
        traces = from_frame(frame)
        assert traces.positions.tolist() == expected
        assert traces.to_frame()["user"].tolist() == [records[i][0] for i in expected]
        assert traces.to_frame().geometry.x.tolist() == pytest.approx(frame.geometry.x.iloc[expected].tolist())

    def test_more_users_than_sixteen_bits_count_stand_in_order(self):
        users = np.arange(70_000)[::-1]
        traces = from_frame(make_frame(users, np.zeros(70_000)))
        assert traces.users.tolist() == list(range(70_000))
        assert traces.positions.tolist() == users.tolist()


class TestRoundTrip:
    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    @pytest.mark.parametrize(
        "zone",
        [
            None,
            "UTC",
            "America/New_York",
            ZoneInfo("Europe/Paris"),
            datetime.timezone(datetime.timedelta(hours=5, minutes=45)),
            datetime.UTC,
        ],
        ids=str,
    )
    def test_zone_and_unit_come_back(self, zone, unit):
        frame = make_frame(["a", "a", "b"], zone=zone, unit=unit)
        assert_geodataframe_equal(from_frame(frame).to_frame(), frame)

    @pytest.mark.parametrize(
        "users",
        [["a", "b"], [1, 2], np.array([1, 2], np.int32), pd.array([1, 2], "Int64"), pd.array(["a", "b"], "string")],
        ids=lambda users: str(pd.Series(users).dtype),
    )
    def test_the_kind_of_users_comes_back(self, users):
        frame = make_frame(users)
        assert from_frame(frame).to_frame()["user"].dtype == frame["user"].dtype

    @pytest.mark.parametrize(
        ("user", "time", "where"), [("cab", "stamp", "spot"), (0, ("t", 1), "spot"), ("time", "user", "g")]
    )
    def test_names_come_back(self, user, time, where):
        frame = make_frame(["a", "b"]).rename(columns={"user": user, "time": time}).rename_geometry(where)
        result = from_frame(frame, user=user, time=time).to_frame()
        assert list(result.columns) == [user, time, where]
        assert result.geometry.name == where

    @pytest.mark.parametrize(("user", "time"), [("uid", "datetime"), ("track_id", "timestamp"), ("user_id", "t")])
    def test_known_names_are_found(self, user, time):
        frame = make_frame(["a", "b"]).rename(columns={"user": user, "time": time})
        assert list(from_frame(frame).to_frame().columns) == [user, time, "geometry"]

    @pytest.mark.parametrize("name", ["time", "stamp", None])
    def test_a_datetime_index_is_one_again(self, name):
        frame = make_frame(["b", "a"], zone="Asia/Tokyo").set_index("time").rename_axis(name)
        result = from_frame(frame).to_frame()
        assert_geodataframe_equal(result, frame.iloc[::-1])

    def test_the_index_is_fresh(self):
        frame = make_frame(["a", "b"]).set_index(pd.Index([7, 7]))
        assert from_frame(frame).to_frame().index.equals(pd.RangeIndex(2))

    @pytest.mark.parametrize("crs", [4326, 4269, 3857, 2154, 2263, "ESRI:54009", "+proj=longlat +pm=paris +type=crs"])
    def test_the_crs_and_the_places_come_back(self, crs):
        frame = make_frame(["a", "b"])
        if crs == 2263:
            frame["geometry"] = frame.translate(-78.8, -5)
        frame = frame.to_crs(crs)
        result = from_frame(frame).to_frame()
        assert result.crs == frame.crs
        tolerance = 1e-12 if frame.crs.is_geographic else 1e-5
        assert result.geometry.x.tolist() == pytest.approx(frame.geometry.x.tolist(), abs=tolerance, rel=0)
        assert result.geometry.y.tolist() == pytest.approx(frame.geometry.y.tolist(), abs=tolerance, rel=0)

    @given(
        degrees=st.lists(
            st.tuples(st.integers(-180_000_000, 180_000_000), st.integers(-60_000_000, 60_000_000)), max_size=9
        )
    )
    def test_six_decimals_come_back_to_the_digit(self, degrees):
        x, y = (np.array(degrees, float).reshape(-1, 2) / 1e6).T
        times, counts = np.arange(len(x)), np.array([len(x)] if len(x) else [], int)
        traces = pg.Traces.from_arrays(x, y, times=times, users=["a"][: len(counts)], counts=counts)
        longitudes, latitudes = traces.coordinates()
        assert np.abs(longitudes).tolist() == np.abs(x).tolist()
        assert longitudes[np.abs(x) < 180].tolist() == x[np.abs(x) < 180].tolist()
        assert latitudes.tolist() == y.tolist()

    def test_a_single_trace_has_no_user_column(self):
        frame = make_frame(["a", "b"]).drop(columns="user")
        traces = from_frame(frame, user=None)
        assert len(traces) == 1
        assert_geodataframe_equal(traces.to_frame(), frame)

    def test_unused_categories_do_not_come_back(self):
        frame = make_frame(pd.Categorical(["a", "b"], categories=["secret", "b", "a"]))
        users = from_frame(frame).to_frame()["user"]
        assert users.tolist() == ["a", "b"]
        assert "secret" not in repr(users.dtype)

    def test_nothing_comes_back_as_nothing(self):
        frame = make_frame(["a"], zone="Asia/Tokyo", unit="ms").iloc[:0]
        traces = from_frame(frame)
        assert (len(traces), traces.records, traces.offsets.tolist()) == (0, 0, [0])
        assert_geodataframe_equal(traces.to_frame(), frame)


class TestFromArrays:
    @given(
        records=st.lists(st.tuples(st.sampled_from([3, 10, 2]), st.integers(0, 5), st.integers(-100, 100)), max_size=20)
    )
    def test_it_equals_from_frame(self, records):
        records = sorted(records, key=lambda record: [10, 2, 3].index(record[0]))  # one user's after the other's
        users = list(dict.fromkeys(user for user, _, _ in records))
        counts = np.array([sum(record[0] == user for record in records) for user in users], int)
        x = np.array([x / 8 for _, _, x in records])
        times = np.array([second * 10**9 for _, second, _ in records], np.int64)
        frame = gpd.GeoDataFrame(
            {"user": np.array([user for user, _, _ in records], int), "time": pd.DatetimeIndex(times, tz="UTC")},
            geometry=gpd.points_from_xy(x, x / 2),
            crs=4326,
        )
        arrays = pg.Traces.from_arrays(x, x / 2, times=times, users=np.array(users, int), counts=counts)
        assert fields(arrays) == fields(from_frame(frame))

    def test_zone_and_crs_are_taken(self):
        one = np.ones(1)
        traces = pg.Traces.from_arrays(
            one * 5e5, one * 5e6, times=[0], users=["a"], counts=[1], crs=32631, zone="Asia/Tokyo"
        )
        assert traces.space.name == "plane"
        assert str(traces.time_index()[0]) == "1970-01-01 09:00:00+09:00"


class TestBadRecords:
    def test_all_complaints_come_at_once(self):
        frame = make_frame(["a", None, "a", "a", "a", "a", "a"])
        frame.loc[2, "time"] = pd.NaT
        frame.loc[[3, 4], "geometry"] = [None, frame.geometry.iloc[0].buffer(1)]
        frame.loc[5, "geometry"] = gpd.points_from_xy([45.75], [104.8])[0]
        with pytest.raises(ValueError, match="5 records of 7") as caught:
            from_frame(frame)
        for words in (
            "not a point.* 2, first in row 3",
            "swapped.* 1, first in row 5",
            "no time: 1, first in row 2",
            "no user: 1, first in row 1",
        ):
            assert re.search(words, str(caught.value))

    @pytest.mark.parametrize("errors", ["skip", "drop"])
    def test_they_are_dropped_with_one_counted_warning(self, errors):
        frame = make_frame(["b", None, "b", "a", "a"])
        frame.loc[2, "time"] = pd.NaT
        frame.loc[4, "geometry"] = None
        with pytest.warns(UserWarning, match=r"3 records of 5 .*row 4; .*row 2; .*row 1") as caught:
            traces = from_frame(frame, errors=errors)
        assert [warning.filename for warning in caught] == [__file__]
        assert traces.positions.tolist() == [3, 0]
        assert traces.users.tolist() == ["a", "b"]

    def test_a_user_without_a_good_record_is_gone(self):
        frame = make_frame(["a", "b"])
        frame.loc[0, "geometry"] = None
        with pytest.warns(UserWarning, match="1 record of 2"):
            traces = from_frame(frame, errors="drop")
        assert traces.users.tolist() == ["b"]
        assert traces.offsets.tolist() == [0, 1]

    def test_dropping_all_leaves_no_trace(self):
        frame = make_frame([None, "a"])
        frame.loc[1, "geometry"] = None
        with pytest.warns(UserWarning, match="2 records of 2 .*no user: 1, first in row 0"):
            traces = from_frame(frame, errors="skip")
        assert (len(traces), traces.records) == (0, 0)


class TestDroppedColumns:
    def test_other_columns_and_elevations_are_named_in_one_warning(self):
        frame = make_frame(["a", "a"]).assign(speed=1.0, phone="0123")
        frame["geometry"] = gpd.points_from_xy(frame.geometry.x, frame.geometry.y, [1.0, 2.0])
        with pytest.warns(UserWarning, match=r"'speed' and 'phone' and .* \(Z\) were dropped") as caught:
            result = from_frame(frame).to_frame()
        assert [warning.filename for warning in caught] == [__file__]
        assert not result.geometry.has_z.any()

    @pytest.mark.parametrize(
        ("names", "words"), [(["speed"], "The column 'speed' was"), (["b", "c"], "The columns 'b' and 'c' were")]
    )
    def test_other_columns_are_named(self, names, words):
        with pytest.warns(UserWarning, match=f"{words} dropped"):
            from_frame(make_frame(["a"]).assign(**dict.fromkeys(names, 1)))

    def test_elevations_are_named(self):
        frame = make_frame(["a"])
        frame["geometry"] = gpd.points_from_xy([1.0], [2.0], [3.0])
        with pytest.warns(UserWarning, match="elevations .* dropped"):
            from_frame(frame)


class TestSelect:
    def test_traces_without_records_are_gone(self):
        traces = from_frame(make_frame(["a", "a", "b", "c", "c"]))
        selected = traces.select(np.array([False, True, False, True, True]))
        assert selected.users.tolist() == ["a", "c"]
        assert selected.offsets.tolist() == [0, 1, 3]
        assert selected.positions.tolist() == [1, 3, 4]
        assert selected.points.tolist() == traces.points[[1, 3, 4]].tolist()
        assert selected.times.tolist() == traces.times[[1, 3, 4]].tolist()
        assert (traces.records, len(traces)) == (5, 3)

    @pytest.mark.parametrize("count", [0, 3])
    def test_nothing_selected_is_no_trace(self, count):
        selected = from_frame(make_frame(["a", "b", "b"]).iloc[:count]).select(np.zeros(count, bool))
        assert (len(selected), selected.records, selected.offsets.tolist()) == (0, 0, [0])

    @given(users=st.lists(st.sampled_from("abc"), max_size=12), data=st.data())
    def test_it_is_a_frame_of_the_rows_kept(self, users, data):
        keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(users), max_size=len(users))), bool)
        traces = from_frame(make_frame(pd.Series(users, dtype=str)))
        expected = traces.to_frame()[keep].reset_index(drop=True)
        assert_geodataframe_equal(traces.select(keep).to_frame(), expected)


class TestRepr:
    def test_it_says_how_much_and_when_but_not_where_or_whose(self):
        traces = from_frame(make_frame(["zaphod"] * 3 + ["trillian"] * 100))
        assert repr(traces) == "<Traces: 2 traces, 103 records, 2022-01-08 to 2022-01-08, 79 km × 0 km, sphere>"
        assert len(traces) == 2

    def test_one_of_each_and_a_plane(self):
        traces = from_frame(make_frame(["a"], crs=32631))
        assert repr(traces) == "<Traces: 1 trace, 1 record, 2022-01-08 to 2022-01-08, 0 km × 0 km, plane>"

    def test_nothing(self):
        assert repr(from_frame(make_frame(["a"]).iloc[:0])) == "<Traces: 0 traces, 0 records, sphere>"


def test_the_space_can_be_set():
    frame = make_frame(["a", "b"]).to_crs(2154)
    assert from_frame(frame).space.name == "plane"
    assert from_frame(frame, space="sphere").space.name == "sphere"
    space = from_frame(frame, space="sphere").space
    assert from_frame(frame, space=space).space is space


def test_the_frame_that_came_is_not_changed():
    frame = make_frame(["b", None, "a"], [9, 5, 7]).assign(speed=1).set_index(pd.Index([4, 4, 2]))
    before = frame.copy(deep=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from_frame(frame, errors="drop").to_frame()
    assert_geodataframe_equal(frame, before)


@pytest.mark.parametrize("less", [0, 5, 1023, 10**9 - 2])
def test_times_as_far_apart_as_int64_reaches_are_too_far(less):
    frame = make_frame(["a", "a"], zone=None)
    first = pd.Timestamp("1678-01-01").value
    frame["time"] = np.array([first, first + 2**63 - 1 - less], "M8[ns]")
    with pytest.raises(ValueError, match="spans more than 292 years"):
        from_frame(frame)
    frame["time"] = np.array([first, first + 2**63 - 10**9], "M8[ns]")
    assert np.ptp(from_frame(frame).times) == 2**63 - 10**9


def test_a_record_after_292_years_is_too_far_for_nanoseconds():
    frame = make_frame(["a", "b"], zone=None)
    frame["time"] = pd.DatetimeIndex(["1700-01-01", "2200-01-01"])
    with pytest.raises(ValueError, match=r"'time' spans more than 292 years.*wrong dates"):
        from_frame(frame)


# Arrays of one's own

ARRAYS = {
    "x": np.array([4.0, 4.1, 4.2]),
    "y": np.array([45.0, 45.1, 45.2]),
    "times": np.array([0, 60, 120]) * 10**9,
    "users": ["b", "a"],
    "counts": np.array([2, 1]),
}


def test_arrays_become_traces():
    traces = pg.Traces.from_arrays(**ARRAYS)
    assert traces.users.tolist() == ["a", "b"]
    assert traces.counts.tolist() == [1, 2]
    stamps = pg.Traces.from_arrays(**ARRAYS | {"times": ARRAYS["times"].view("M8[ns]").astype("M8[s]")})
    assert stamps.times.tolist() == traces.times.tolist()


def are_read_only(traces):
    arrays = (traces.points, traces.times, traces.offsets, traces.positions)
    return not any(array.flags.writeable for array in arrays)


def test_arrays_are_not_shared():
    times = ARRAYS["times"].copy()
    traces = pg.Traces.from_arrays(**ARRAYS | {"times": times})
    times[:] = 0
    assert traces.times.max() > 0
    assert are_read_only(traces)


def test_writable_arrays_are_copied_and_stay_writable():
    traces = pg.Traces.from_arrays(**ARRAYS)
    points = traces.points.copy()
    half = points[: len(points)]
    half.flags.writeable = False
    for given_points in (points, half):
        changed = replace(traces, points=given_points)
        points[0] = 0
        assert changed.points[0].any()
        assert are_read_only(changed)
        points[0] = traces.points[0]
    assert replace(traces, times=traces.times).times is traces.times


@pytest.mark.parametrize("kind", [bytearray, bytes, lambda content: np.frombuffer(content, "u1").copy()])
def test_a_pickle_does_not_change_with_its_buffers(kind):
    city, given = pg.make_city(users=2, days=1, as_traces=True, recorder="phone"), []
    text = pickle.dumps(city, protocol=5, buffer_callback=given.append)
    buffers = [kind(each.raw()) for each in given]
    again = pickle.loads(text, buffers=buffers)
    for buffer in buffers if kind is not bytes else []:
        memoryview(buffer)[:] = bytes(len(buffer))
    for name in ("points", "times", "offsets", "positions", "breaks"):
        assert np.array_equal(getattr(again, name), getattr(city, name))
        assert not getattr(again, name).flags.writeable


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda traces: pickle.loads(pickle.dumps(traces))])
def test_copies_are_read_only(duplicate):
    assert are_read_only(duplicate(pg.Traces.from_arrays(**ARRAYS)))


@pytest.mark.parametrize(
    "work",
    [
        pg.Promesse(200).protect,
        pg.GeoIndistinguishability(0.01, grid=1).protect,
        pg.WaitForMe(2, max_trash=0).protect,
        pg.prepare,
        pg.drop_jumps,
        lambda traces: pg.Traces.from_frame(traces.to_frame()),
    ],
)
def test_what_is_computed_is_read_only(work):
    assert are_read_only(work(pg.make_city(users=2, days=1, as_traces=True, recorder="phone")))


def test_a_frame_made_of_traces_can_be_changed():
    traces = pg.make_city(users=1, days=1, as_traces=True, recorder="phone")
    times, frame = traces.times.copy(), traces.to_frame()
    frame.loc[0, "time"] = frame["time"].iloc[5]
    assert traces.times.tolist() == times.tolist()


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        ({"x": [4.0]}, ValueError, r"one length. Got the shapes \(1,\), \(3,\) and \(3,\)"),
        ({"x": [[4.0, 4.1, 4.2]]}, ValueError, "one dimension"),
        ({"times": [0.0, 1.0, 2.0]}, TypeError, "int64 nanoseconds .* or datetime64. Got float64"),
        ({"times": np.array(["2024", "NaT", "2025"], "M8[s]")}, ValueError, "no time: 1, first in row 1"),
        ({"counts": [2, 2]}, ValueError, "add up to the records: 3"),
        ({"counts": [4, -1]}, ValueError, "none below 0"),
        ({"counts": [1.5, 1.5]}, ValueError, "whole numbers"),
        ({"users": ["a", "a"]}, ValueError, "one for each count. Got 2 users, 1 of them distinct"),
        ({"users": ["a", None]}, ValueError, "distinct, none missing"),
        ({"users": ["a", "b", "c"]}, ValueError, "3 users, 3 of them distinct, and 2 counts"),
        ({"y": [45.0, 45.1, 95.0]}, ValueError, "a latitude beyond 90"),
        ({"y": [45.0, 45.1, np.nan]}, ValueError, "not finite: 1, first in row 2"),
    ],
)
def test_arrays_that_are_not_as_said_are_refused(wrong, kind, words):
    with pytest.raises(kind, match=words):
        pg.Traces.from_arrays(**ARRAYS | wrong)


def test_protected_data_name_their_mechanism_in_frames_and_files(tmp_path):
    city = pg.make_city(users=3, days=1, recorder="phone")
    assert "mechanism" not in city.attrs.get("promesse", {})
    mechanism = pg.GeoIndistinguishability(0.01, seed="secret")
    safe = mechanism.protect(city)
    expected = {"mechanism": "GeoIndistinguishability", "parameters": {"epsilon": 0.01, "grid": None}}
    assert safe.attrs["promesse"]["mechanism"] == mechanism.description() == expected
    for kept in (safe.iloc[:50], safe.to_crs(2154), safe.promesse.pseudonymize()):
        assert kept.attrs["promesse"]["mechanism"] == kept.promesse.traces().protection == expected
    for name in ("safe.parquet", "safe.gpkg"):
        pg.write(safe, tmp_path / name)
        again = pg.read_table(tmp_path / name)
        assert (
            again.attrs["promesse"]["mechanism"] == pg.read_file(tmp_path / name, as_traces=True).protection == expected
        )
        pg.write(city, tmp_path / name, force=True)
        assert pg.read_file(tmp_path / name, as_traces=True).protection is None
    pg.write(safe, tmp_path / "safe.csv")
    assert pg.read_file(tmp_path / "safe.csv", as_traces=True).protection is None


def test_data_are_protected_only_if_all_parts_are_in_the_same_way(tmp_path):
    city = pg.make_city(users=3, days=1, recorder="phone")
    safe = city.promesse.smooth(200)
    mixed = pd.concat([city, safe])
    assert mixed.promesse.traces().protection is None
    for name, part in (("a", safe.assign(user="a")), ("b", safe.assign(user="b"))):
        pg.write(part, tmp_path / f"{name}.parquet")
    assert pg.read_file(tmp_path, as_traces=True).protection == pg.Promesse(200).description()
    pg.write(city, tmp_path / "c.parquet")
    assert pg.read_file(tmp_path, as_traces=True).protection is None


@pytest.mark.parametrize("noted", [None, 1, {}, {"mechanism": "Promesse"}, {"mechanism": {"mechanism": "Promesse"}}])
def test_other_attributes_name_no_mechanism(noted):
    city = pg.make_city(users=2, days=1, recorder="phone")
    city.attrs["promesse"] = noted
    assert city.promesse.traces().protection is None


def test_a_mechanism_notes_parameters_that_are_no_json_by_their_kind():
    @dataclass(frozen=True)
    class Noted(pg.Mechanism):
        zones: gpd.GeoDataFrame

        def _protect(self, traces):
            return traces

    city = pg.make_city(users=2, days=1, recorder="phone")
    noted = city.promesse.protect(Noted(city)).attrs["promesse"]["mechanism"]["parameters"]["zones"]
    assert "GeoDataFrame" in noted
    assert "user-000" not in noted


def test_wait_for_me_notes_itself_with_and_without_report():
    city = pg.make_city(users=6, days=1, recorder="phone")
    mechanism = pg.WaitForMe(2, 200, max_trash=0, seed=1)
    assert mechanism.protect(city).attrs["promesse"]["mechanism"] == mechanism.description()
    assert mechanism.protect_with_report(city)[0].attrs["promesse"]["mechanism"]["mechanism"] == "WaitForMe"


@pytest.mark.parametrize("kind", ["date32[pyarrow]", "date64[pyarrow]"])
def test_dates_of_arrow_are_no_times(kind):
    frame = pg.make_city(users=1, days=1, recorder="phone").head(3)
    frame["time"] = frame.time.dt.date.astype(kind)
    with pytest.raises(TypeError, match=r"'time' must hold datetimes.*'date'"):
        from_frame(frame)


def test_a_frame_of_another_package_is_named_with_its_module():
    class GeoDataFrame:
        def compute(self):
            """As of dask-geopandas."""

    GeoDataFrame.__module__ = "dask_geopandas.core"
    with pytest.raises(TypeError, match=r"dask_geopandas\.GeoDataFrame.*\.compute\(\)"):
        from_frame(GeoDataFrame())


@pytest.mark.parametrize("name", ["promesse", "head", "plot", "crs", "columns", "to_parquet"])
def test_an_attribute_of_frames_names_the_remedy(name):
    traces = pg.make_city(users=2, days=1, as_traces=True, recorder="phone")
    with pytest.raises(AttributeError, match=rf"to_frame\(\)\.{name}"):
        getattr(traces, name)
    assert not hasattr(traces, name)


def test_an_unknown_attribute_names_no_remedy():
    traces = pg.make_city(users=2, days=1, as_traces=True, recorder="phone")
    with pytest.raises(AttributeError) as caught:
        _ = traces.nonsense
    assert "to_frame" not in str(caught.value)
    assert len(copy.deepcopy(traces)) == len(pickle.loads(pickle.dumps(traces))) == 2
