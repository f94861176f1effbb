"""Preprocessing against its slow twins, and against days and names worked out by hand."""

import hashlib
import warnings

import geopandas as gpd
import naive_preprocess as naive
import numpy as np
import pandas as pd
import pytest
from geopandas.testing import assert_geodataframe_equal
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts_of_seeds

import promesse_geo as pg

SECOND = 10**9
HOUR = 3600 * SECOND
DAY = 24 * HOUR
GRID = "EPSG:32631"  # metres, true to scale near its middle

# A zone, and an instant at which something happens to its clocks.
CHANGES = {
    "Europe/Paris": "2024-03-31 01:00",  # 23 h
    "America/Los_Angeles": "2008-11-02 09:00",  # 25 h
    "America/St_Johns": "2008-11-02 02:31",  # 00:01 goes back to 23:01 of the day before
    "America/Havana": "2024-11-03 05:00",  # 01:00 goes back to 00:00
    "Asia/Beirut": "2023-03-25 22:00",  # there is no midnight: 00:00 becomes 01:00
    "Pacific/Apia": "2011-12-30 10:00",  # there is no 2011-12-30
    "Australia/Lord_Howe": "2024-04-06 15:00",  # half an hour back
    "America/Sao_Paulo": "2018-11-04 03:00",  # there is no midnight
    "America/Toronto": "1919-03-31 04:30",  # 23:30 becomes 00:30
    "UTC": "2024-02-29 12:00",
}


def nanoseconds(times) -> list[int]:
    return pd.DatetimeIndex(times).as_unit("ns").asi8.tolist()


def frame_of(records, zone="UTC", crs=GRID) -> gpd.GeoDataFrame:
    """A frame of (user, ns, (x, y)) records, in their order."""
    users, times, places = zip(*records, strict=True) if records else ((), (), ())
    index = pd.DatetimeIndex(np.array(times, np.int64).view("M8[ns]"))
    if zone is not None:
        index = index.tz_localize("UTC").tz_convert(zone)
    x, y = np.array(places, float).reshape(-1, 2).T
    columns = {"user": pd.Series(users, dtype=None if users else str), "time": index}
    return gpd.GeoDataFrame(columns, geometry=gpd.points_from_xy(x, y), crs=crs)


def records_of(data) -> list[tuple]:
    """(user, ns, (x, y)) of a frame or of Traces."""
    frame = data.to_frame() if isinstance(data, pg.Traces) else data
    places = zip(frame.geometry.x.tolist(), frame.geometry.y.tolist(), strict=True)
    return list(zip(frame["user"].tolist(), nanoseconds(frame["time"]), places, strict=True))


def quietly(verb, *arguments, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return verb(*arguments, **named)


def shuffled(records, draw_order):
    """Users in another order, each one's records in their own."""
    return sorted(records, key=lambda record: draw_order[record[0]])


def at(text: str, zone: str = "UTC") -> int:
    return pd.Timestamp(text, tz=zone).as_unit("ns").value


USERS = st.sampled_from(["ann", "bob", "Zoë", "10", "9"])
PLACES = st.tuples(st.integers(500_000, 500_400), st.integers(5_000_000, 5_000_400)).map(
    lambda place: (float(place[0]), float(place[1]))
)


@st.composite
def cases(draw, least=0):
    """A zone, and records of some users in the days before and after its clocks change."""
    zone = draw(st.sampled_from(sorted(CHANGES)))
    around = at(CHANGES[zone])
    moments = st.one_of(
        st.integers(-3 * DAY, 3 * DAY), st.integers(-80, 80).map(lambda quarters: quarters * HOUR // 4)
    ).map(lambda moment: around + moment)
    return zone, draw(st.lists(st.tuples(USERS, moments, PLACES), min_size=least, max_size=25))


class TestCollapseEmptyDays:
    @given(case=cases())
    def test_it_equals_its_twin(self, case):
        zone, records = case
        expected = naive.collapse_empty_days(records, zone)
        assert records_of(pg.collapse_empty_days(frame_of(records), tz=zone)) == expected
        assert records_of(pg.collapse_empty_days(pg.Traces.from_frame(frame_of(records)), tz=zone)) == expected
        assert records_of(pg.collapse_empty_days(frame_of(records, zone=zone))) == expected

    @given(case=cases(least=1))
    def test_the_order_of_records_is_kept(self, case):
        zone, records = case
        traces = pg.Traces.from_frame(frame_of(records))
        collapsed = pg.collapse_empty_days(traces, tz=zone)
        assert collapsed.positions.tolist() == traces.positions.tolist()
        for start, stop in zip(collapsed.offsets[:-1], collapsed.offsets[1:], strict=True):
            assert (np.diff(collapsed.times[start:stop]) >= 0).all()

    @given(case=cases(least=1))
    def test_every_trace_begins_on_the_first_day_and_no_day_is_empty(self, case):
        zone, records = case
        collapsed = pg.collapse_empty_days(frame_of(records), tz=zone)
        for _, times in collapsed.groupby("user")["time"]:
            days = sorted(set(times.dt.normalize()))
            assert days == list(pd.date_range("2000-01-03", periods=len(days)))

    @pytest.mark.parametrize(
        ("zone", "moment", "time_of_day"),
        [
            # 23 h: 02:00 is 03:00; 12:00 is 11 h after midnight, 11 · 24/23 h
            ("Europe/Paris", "2024-03-31 10:00", 11 * HOUR * 24 // 23),
            # 25 h: the second 01:30 is 2.5 h after midnight, 2.5 · 24/25 h
            ("America/Los_Angeles", "2008-11-02 09:30", 5 * HOUR * 24 // (2 * 25)),
            # 24.5 h
            ("Australia/Lord_Howe", "2024-04-07 10:00", 21 * HOUR * 48 // 49),
            # the last minute before and the minute after the clocks go back over midnight: the day before is whole
            ("America/St_Johns", "2008-11-02 02:30", (24 * 60) * 60 * SECOND * 24 // 25),
            ("America/St_Johns", "2008-11-02 03:30", 0),
            ("America/Havana", "2024-11-03 05:30", 90 * 60 * SECOND * 24 // 25),
            ("Asia/Beirut", "2023-03-25 22:00", 0),
            ("America/Toronto", "1919-03-31 04:29", (23 * 60 + 29) * 60 * SECOND * 48 // 47),
            ("America/Toronto", "1919-03-31 04:30", 0),
            ("UTC", "2024-02-29 13:14:15.016", 13 * HOUR + 14 * 60 * SECOND + 15_016 * 10**6),
        ],
    )
    def test_the_time_of_day_is_stretched_to_24_hours(self, zone, moment, time_of_day):
        moment = at(moment)
        collapsed = pg.collapse_empty_days(frame_of([("ann", moment, (500_000.0, 5_000_000.0))]), tz=zone)
        assert nanoseconds(collapsed["time"]) == [at("2000-01-03") + time_of_day]

    def test_a_day_that_a_country_skipped_is_no_day(self):
        records = [("ann", at(moment), (500_000.0, 5e6)) for moment in ("2011-12-30 09:59:59", "2011-12-30 10:00")]
        collapsed = pg.collapse_empty_days(frame_of(records), tz="Pacific/Apia")
        assert collapsed["time"].tolist() == [pd.Timestamp("2000-01-03 23:59:59"), pd.Timestamp("2000-01-04")]

    def test_the_last_nanosecond_of_a_long_day_stays_in_it(self):
        midnight = at("2008-11-03", "America/Los_Angeles")
        records = [("ann", midnight - 1, (500_000.0, 5e6)), ("ann", midnight, (500_000.0, 5e6))]
        collapsed = pg.collapse_empty_days(frame_of(records), tz="America/Los_Angeles")
        assert nanoseconds(collapsed["time"]) == [at("2000-01-04") - 1, at("2000-01-04")]

    def test_naive_times_stand_as_they_are(self):
        moments = [at("2024-03-31 02:30"), at("2024-03-31 23:00"), at("2024-04-05 00:00")]
        records = [("ann", moment, (500_000.0, 5e6)) for moment in moments]
        collapsed = pg.collapse_empty_days(frame_of(records, zone=None))
        assert collapsed["time"].tolist() == [
            pd.Timestamp("2000-01-03 02:30"),
            pd.Timestamp("2000-01-03 23:00"),
            pd.Timestamp("2000-01-04"),
        ]

    @pytest.mark.parametrize("zone", ["Asia/Tokyo", "+05:30"])
    def test_the_zone_of_the_times_is_the_default_and_the_result_has_none(self, zone):
        records = [("ann", at("2024-05-01 20:00"), (500_000.0, 5e6))]
        collapsed = pg.collapse_empty_days(frame_of(records, zone=zone))
        expected = pd.Timestamp("2024-05-01 20:00", tz="UTC").tz_convert(zone)
        assert collapsed["time"].dt.tz is None
        assert collapsed["time"].iloc[0] - pd.Timestamp("2000-01-03") == expected.tz_localize(None) - pd.Timestamp(
            expected.date()
        )

    @pytest.mark.parametrize("moment", ["1678-01-01 00:00", "2261-12-31 23:59:59.999999999"])
    def test_the_ends_of_time_do_not_overflow(self, moment):
        collapsed = pg.collapse_empty_days(frame_of([("ann", at(moment), (500_000.0, 5e6))]), tz="America/Los_Angeles")
        assert collapsed["time"].iloc[0].date() == pd.Timestamp("2000-01-03").date()


class TestFirstDays:
    @given(case=cases(), days=st.integers(1, 4), min_days=st.none() | st.integers(1, 4))
    def test_it_equals_its_twin(self, case, days, min_days):
        zone, records = case
        expected = naive.first_days(records, days, min_days, zone)
        frame = frame_of(records)
        assert records_of(quietly(pg.first_days, frame, days=days, min_days=min_days, tz=zone)) == expected
        traces = pg.Traces.from_frame(frame)
        assert records_of(quietly(pg.first_days, traces, days=days, min_days=min_days, tz=zone)) == expected

    def test_what_is_left_out_is_counted_in_one_warning(self):
        moments = [0, 1, 2, 3]
        records = [("ann", day * DAY, (500_000.0, 5e6)) for day in moments] + [("bob", 0, (500_000.0, 5e6))] * 3
        with pytest.warns(UserWarning, match="first_days") as caught:
            kept = pg.first_days(frame_of(records), days=2, min_days=2)
        assert [str(warning.message) for warning in caught] == [
            "first_days dropped 2 records after the first 2 days and 1 user (3 records) with fewer than 2 days of data."
        ]
        assert caught[0].filename == __file__
        assert records_of(kept) == records[:2]

    def test_times_keep_their_zone_and_unit(self):
        frame = frame_of([("ann", 0, (500_000.0, 5e6))], zone="Europe/Paris")
        frame["time"] = frame["time"].dt.as_unit("ms")
        assert pg.first_days(frame)["time"].dtype == frame["time"].dtype

    def test_nothing_left_out_is_nothing_said(self):
        pg.first_days(frame_of([("ann", 0, (500_000.0, 5e6))]), days=1)


class TestSplitGaps:
    @given(case=cases(), gap=st.sampled_from([1, HOUR // 4, 4 * HOUR, 30 * HOUR]), keep_user=st.booleans())
    def test_it_equals_its_twin(self, case, gap, keep_user):
        _, records = case
        expected = naive.split_gaps(records, gap, seed=7, keep_user=keep_user)
        frame = frame_of(records)
        arguments = {"gap": pd.Timedelta(gap, unit="ns"), "seed": 7, "keep_user": keep_user}
        assert records_of(pg.split_gaps(frame, **arguments)) == expected
        assert records_of(pg.split_gaps(pg.Traces.from_frame(frame), **arguments)) == expected

    def test_exactly_the_gap_apart_is_a_cut(self):
        places = (500_000.0, 5e6)
        records = [("ann", 0, places), ("ann", 4 * HOUR - 1, places), ("ann", 8 * HOUR - 1, places)]
        parts = pg.split_gaps(frame_of(records), gap="4h", keep_user=True)
        assert parts["user"].tolist() == ["ann-00000", "ann-00000", "ann-00001"]

    def test_names_are_keyed_hashes_of_part_number_and_user(self):
        records = [("Zoë", 0, (500_000.0, 5e6)), ("Zoë", 5 * HOUR, (500_000.0, 5e6))]
        key = hashlib.blake2b(b"42", digest_size=32, person=b"names").digest()
        names = sorted(
            hashlib.blake2b(part + "Zoë".encode(), key=key, digest_size=64).hexdigest()[:16]
            for part in (b"\0" * 8, b"\1" + b"\0" * 7)
        )
        for seed in (42, "42", np.int64(42)):
            assert pg.split_gaps(frame_of(records), seed=seed)["user"].tolist() == names

    def test_integer_users_are_hashed_as_text(self):
        records = [(12, 0, (500_000.0, 5e6))]
        name = naive.virtual_name("12", 0, naive.names_key(0))
        assert pg.split_gaps(frame_of(records), seed=0)["user"].tolist() == [name]

    def test_rows_are_in_the_order_of_the_new_names(self):
        parts = pg.split_gaps(pg.make_city(users=3, days=2, recorder="phone"), gap="1h")
        names = parts["user"].drop_duplicates().tolist()
        assert names == sorted(names)
        assert parts["user"].nunique() > 3
        assert list(parts.index) == list(range(len(parts)))

    def test_names_differ_at_each_call_without_a_seed(self):
        frame = frame_of([("ann", 0, (500_000.0, 5e6))])
        assert pg.split_gaps(frame)["user"].tolist() != pg.split_gaps(frame)["user"].tolist()

    def test_integer_users_kept_in_names_stand_in_text_order(self):
        records = [(user, 0, (500_000.0, 5e6)) for user in (2, 10, 1)]
        parts = pg.split_gaps(frame_of(records), keep_user=True)
        assert parts["user"].tolist() == ["1-00000", "10-00000", "2-00000"]

    def test_a_single_trace_gets_a_user_column(self):
        frame = frame_of([("ann", 0, (500_000.0, 5e6))]).drop(columns="user")
        parts = pg.split_gaps(frame, user=None)
        assert list(parts.columns) == ["user", "time", "geometry"]
        assert len(parts["user"].iloc[0]) == 16

    def test_more_parts_than_five_digits_number_are_an_error(self):
        times = np.arange(100_001) * 2 * SECOND
        ones = np.ones(len(times))
        traces = pg.Traces.from_arrays(ones, ones, times=times, users=["ann"], counts=np.array([len(times)]))
        with pytest.raises(ValueError, match="more than 100,000 parts"):
            pg.split_gaps(traces, gap=1, keep_user=True)

    @pytest.mark.parametrize("gap", ["4h", 14_400, 14_400.0, pd.Timedelta("4h"), np.timedelta64(4, "h")])
    def test_a_gap_comes_in_many_forms(self, gap):
        records = [("ann", 0, (500_000.0, 5e6)), ("ann", 4 * HOUR, (500_000.0, 5e6))]
        assert pg.split_gaps(frame_of(records), gap=gap)["user"].nunique() == 2


@pytest.mark.compiled
class TestPseudonymize:
    @given(case=cases(), seed=st.integers() | texts_of_seeds)
    def test_it_equals_its_twin(self, case, seed):
        _, records = case
        expected = naive.pseudonymize(records, seed)
        frame = frame_of(records)
        assert records_of(pg.pseudonymize(frame, seed=seed)) == expected
        assert records_of(pg.pseudonymize(pg.Traces.from_frame(frame), seed=seed)) == expected

    def test_names_differ_at_each_call_without_a_seed(self):
        frame = frame_of([("ann", 0, (500_000.0, 5e6))])
        assert pg.pseudonymize(frame)["user"].tolist() != pg.pseudonymize(frame)["user"].tolist()

    def test_a_users_name_is_not_that_of_the_first_part(self):
        frame = frame_of([("ann", 0, (500_000.0, 5e6))])
        assert pg.pseudonymize(frame, seed=1)["user"].tolist() != pg.split_gaps(frame, seed=1)["user"].tolist()


class TestPrepare:
    @given(case=cases(), days=st.integers(1, 3), min_days=st.none() | st.integers(1, 3))
    def test_it_is_the_three_steps_in_order(self, case, days, min_days):
        zone, records = case
        expected = naive.collapse_empty_days(records, zone)
        expected = naive.split_gaps(naive.first_days(expected, days, min_days, "UTC"), 4 * HOUR, seed="s")
        arguments = {"tz": zone, "days": days, "min_days": min_days, "seed": "s"}
        frame = frame_of(records)
        assert records_of(quietly(pg.prepare, frame, **arguments)) == expected
        assert records_of(quietly(pg.prepare, pg.Traces.from_frame(frame), **arguments)) == expected

    def test_its_one_warning_counts_what_was_left_out(self):
        records = [("ann", day * DAY, (500_000.0, 5e6)) for day in range(3)] + [("bob", 0, (500_000.0, 5e6))]
        with pytest.warns(UserWarning, match="first_days") as caught:
            pg.prepare(frame_of(records), days=2, min_days=2)
        assert [str(warning.message) for warning in caught] == [
            "first_days dropped 1 record after the first 2 days and 1 user (1 record) with fewer than 2 days of data."
        ]
        assert caught[0].filename == __file__

    def test_nobody_left_is_a_typed_empty_frame(self):
        with pytest.warns(UserWarning, match=r"1 user \(1 record\)"):
            nobody = pg.prepare(frame_of([("ann", 0, (500_000.0, 5e6))]), min_days=2)
        assert len(nobody) == 0
        assert pd.api.types.is_string_dtype(nobody["user"])
        assert nobody["time"].dtype == "M8[ns]"
        assert nobody.crs == GRID


class TestDescribe:
    @given(case=cases())
    def test_it_equals_its_twin(self, case):
        _, records = case
        for data in (frame_of(records), pg.Traces.from_frame(frame_of(records))):
            described, expected = pg.describe(data), naive.describe(records)
            assert described["records"] == expected["records"]
            assert described["traces"] == expected["traces"]
            for figure in ("mean_duration", "longest_duration", "sampling_interval"):
                if expected[figure] is None:
                    assert described[figure] is pd.NaT
                else:
                    assert described[figure].total_seconds() == pytest.approx(expected[figure], abs=0.001)

    def test_the_interval_is_all_durations_over_all_steps(self):
        # 10 s in one step and 10 s in five: 20 s / 6, not (10 s + 2 s) / 2
        records = [("ann", second * SECOND, (500_000.0, 5e6)) for second in (0, 10)]
        records += [("bob", second * SECOND, (500_000.0, 5e6)) for second in range(0, 11, 2)]
        described = pg.describe(frame_of(records))
        assert described["sampling_interval"] == pd.Timedelta("3333ms")
        assert described["mean_duration"] == pd.Timedelta("10s")
        assert described["longest_duration"] == pd.Timedelta("10s")
        first = ["records", "traces", "mean_duration", "longest_duration", "sampling_interval"]
        assert list(described.index[:5]) == first
        assert described["median_interval"] == pd.Timedelta("2s")
        assert (described["fewest_records"], described["median_records"], described["most_records"]) == (2, 4, 6)
        assert (described["last_time"] - described["first_time"]) == pd.Timedelta("10s")
        assert described["bounds"] == (500_000.0, 5e6, 500_000.0, 5e6)

    def test_one_record_has_a_duration_but_no_interval(self):
        described = pg.describe(frame_of([("ann", 0, (500_000.0, 5e6))]))
        assert described["mean_duration"] == pd.Timedelta(0)
        assert described["sampling_interval"] is pd.NaT

    def test_nothing_is_described_by_zeros_and_missing_times(self):
        described = pg.describe(frame_of([]))
        assert described[:5].tolist() == [0, 0, pd.NaT, pd.NaT, pd.NaT]
        assert described[["first_time", "bounds", "most_records", "median_interval"]].isna().all()
        assert (described[["jumps", "zero_fixes", "gaps", "single_record_users"]] == 0).all()


VERBS = {
    "collapse_empty_days": lambda data: pg.collapse_empty_days(data, tz="Europe/Paris"),
    "first_days": lambda data: pg.first_days(data, days=1, tz="Europe/Paris"),
    "split_gaps": lambda data: pg.split_gaps(data, gap="30min", seed=1),
    "pseudonymize": lambda data: pg.pseudonymize(data, seed=1),
    "drop_jumps": lambda data: pg.drop_jumps(data, max_speed=4),
    "drop_zero": pg.drop_zero,
    "prepare": lambda data: pg.prepare(data, days=1, gap="30min", seed=1),
    "smooth": lambda data: pg.Promesse(200).protect(data),
}
SELECTING = [name for name in VERBS if name != "smooth"]


@pytest.fixture(scope="module")
def city() -> gpd.GeoDataFrame:
    return pg.make_city(users=3, days=2, recorder="phone").iloc[::5].reset_index(drop=True)


@pytest.mark.parametrize("name", VERBS)
def test_frames_and_traces_give_the_same(name, city):
    from_frame = quietly(VERBS[name], city)
    from_traces = quietly(VERBS[name], pg.Traces.from_frame(city))
    assert isinstance(from_traces, pg.Traces)
    assert_geodataframe_equal(from_frame, from_traces.to_frame(), check_less_precise=True)


@pytest.mark.parametrize("name", VERBS)
def test_any_order_of_users_gives_the_same(name, city):
    order = {user: i for i, user in enumerate(reversed(city["user"].unique()))}
    other = city.sort_values("user", key=lambda users: users.map(order), kind="stable")
    assert other["user"].iloc[0] != city["user"].iloc[0]
    assert_geodataframe_equal(quietly(VERBS[name], city), quietly(VERBS[name], other))


@pytest.mark.parametrize("name", VERBS)
def test_interleaved_users_give_the_same(name, city):
    assert_geodataframe_equal(quietly(VERBS[name], city), quietly(VERBS[name], city.sort_values("time", kind="stable")))


@pytest.mark.parametrize("name", SELECTING)
def test_points_come_back_to_the_last_bit(name):
    rng = np.random.default_rng(0)
    count = 50
    frame = gpd.GeoDataFrame(
        {"user": rng.choice(["ann", "bob"], count), "time": pd.date_range("2024-03-30", periods=count, freq="1h")},
        geometry=gpd.points_from_xy(rng.uniform(-180, 180, count), rng.uniform(-89, 89, count)),
        crs=4326,
    )
    given_points = set(zip(frame.geometry.x, frame.geometry.y, strict=True))
    result = quietly(VERBS[name], frame)
    assert len(result) > 0
    assert set(zip(result.geometry.x, result.geometry.y, strict=True)) <= given_points


def test_points_with_elevations_come_back_to_the_last_bit_without_them():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-180, 180, 20), rng.uniform(-89, 89, 20)
    frame = gpd.GeoDataFrame(
        {"user": "ann", "time": pd.date_range("2024-03-30", periods=20, freq="1min")},
        geometry=gpd.points_from_xy(x, y, np.arange(20.0)),
        crs=4326,
    )
    with pytest.warns(UserWarning, match=r"elevations \(Z\)"):
        parts = pg.split_gaps(frame)
    assert not parts.geometry.has_z.any()
    assert parts.geometry.x.tolist() == x.tolist()
    assert parts.geometry.y.tolist() == y.tolist()


@pytest.mark.parametrize("name", VERBS)
def test_the_frame_that_came_is_not_changed(name, city):
    before = city.copy(deep=True)
    quietly(VERBS[name], city)
    assert_geodataframe_equal(city, before)


def test_digits_without_a_unit_are_seconds():
    city = pg.make_city(users=2, days=2, as_traces=True, recorder="phone")
    assert len(pg.split_gaps(city, gap="14400", seed=1)) == len(pg.split_gaps(city, gap="4h", seed=1))


def test_a_zone_for_times_that_have_none_is_named():
    city = pg.make_city(users=1, days=1, recorder="phone")
    city["time"] = city["time"].dt.tz_localize(None)
    with pytest.warns(UserWarning, match="taken as UTC"):
        pg.collapse_empty_days(city, tz="Europe/Paris")


@pytest.mark.parametrize("gap", ["14,400", "1 000", "5+", ""])
def test_a_gap_without_a_unit_that_is_no_number_is_refused(gap):
    with pytest.raises(ValueError, match="'gap' parameter of split_gaps"):
        pg.split_gaps(pg.make_city(users=1, days=1, as_traces=True, recorder="phone"), gap=gap)
