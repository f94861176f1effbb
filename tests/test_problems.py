"""What is odd in data is counted right, wherever it is asked for."""

import re
import warnings
from datetime import timedelta, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Transformer
from test_preprocess import DAY, GRID, HOUR, SECOND, at, frame_of

import promesse_geo as pg
from promesse_geo.plot.tables import description
from promesse_geo.preprocess.problems import are_axes_swapped, find_problems

MINUTE = 60 * SECOND
START = at("2024-03-04 08:00")


def walk(count=20, user="a", start=START) -> list[tuple]:
    """A walk of one record a minute, and 78 m."""
    return [(user, start + i * MINUTE, (4.8 + 0.001 * i, 45.7)) for i in range(count)]


def problems_of(records, crs=4326, zone="UTC"):
    return find_problems(pg.Traces.from_frame(frame_of(records, crs=crs, zone=zone)))


def with_zero(number=10) -> list[tuple]:
    records = walk()
    records[number] = (*records[number][:2], (0.0, 0.0))
    return records


def test_a_walk_has_none():
    found = problems_of(walk())
    assert (found.jumps, found.fast_steps, found.zero_fixes, found.breaks, found.gaps) == (0, 0, 0, 0, 0)
    assert (found.equal_times, found.long_traces, found.single_record_users) == (0, 0, 0)


def test_a_fix_at_zero_is_a_jump_there_and_back():
    found = problems_of(with_zero())
    assert (found.jumps, found.fast_steps, found.zero_fixes) == (1, 2, 1)


def test_travel_is_fast_but_no_jump():
    """A flight of 900 km in an hour."""
    flight = [("a", START + HOUR, (4.8 + 11.5, 45.7))]
    found = problems_of([*walk(2), *flight])
    assert (found.jumps, found.fast_steps) == (0, 1)


def test_the_resolution_of_times_is_added():
    """10 km in one minute of a trace with times in minutes: up to two minutes, 83 m/s."""
    x = [500_000.0, 510_000.0]
    found = problems_of([("a", i * MINUTE, (x[i], 5e6)) for i in range(2)], crs=GRID)
    assert found.fast_steps == 1
    assert problems_of([("a", i * MINUTE, (x[i] / 2 + 250_000, 5e6)) for i in range(2)], crs=GRID).fast_steps == 0


def test_equal_times_gaps_and_single_records_are_counted():
    records = [*walk(3), ("a", START + 2 * MINUTE, (4.802, 45.7)), ("a", START + 4 * HOUR + 2 * MINUTE, (4.802, 45.7))]
    records += [("a", START + DAY + 2 * MINUTE, (4.802, 45.7)), ("b", START, (4.8, 45.7))]
    found = problems_of(records)
    assert (found.equal_times, found.gaps, found.long_traces, found.single_record_users) == (1, 2, 1, 1)


@pytest.mark.parametrize(("length", "long"), [(DAY, 0), (DAY + 1, 1)])
def test_a_trace_of_just_a_day_is_not_long(length, long):
    assert problems_of([("a", START, (4.8, 45.7)), ("a", START + length, (4.8, 45.7))]).long_traces == long


def test_breaks_are_counted_and_nothing_is_compared_across_them():
    x = np.array([4.8, 4.801, 9.0, 9.001])
    traces = pg.Traces.from_arrays(
        *(x, np.full(4, 45.7)),
        times=START + np.array([0, 1, 300, 301]) * MINUTE,
        users=["a"],
        counts=np.array([4]),
        segments=np.array([0, 0, 1, 1]),
    )
    found = find_problems(traces)
    assert (found.breaks, found.jumps, found.fast_steps, found.gaps) == (1, 0, 0, 0)
    assert pg.describe(traces)["median_interval"].total_seconds() == 60


def test_nothing_has_none():
    found = problems_of([])
    assert (found.jumps, found.gaps, found.single_record_users) == (0, 0, 0)


def test_on_the_common_calendar_speeds_are_not_judged():
    found = find_problems(pg.collapse_empty_days(pg.Traces.from_frame(frame_of(with_zero(), crs=4326))))
    assert found.jumps is None
    assert found.fast_steps is None
    assert found.zero_fixes == 1


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles"])
def test_days_of_the_common_calendar_are_those_in_any_zone(zone):
    """A day of it begins up to a day earlier or later in UTC."""
    frame = pg.collapse_empty_days(frame_of(walk(start=at("2024-03-04 00:10")), crs=4326))
    frame["time"] = frame["time"].dt.tz_localize(zone)
    found = find_problems(pg.Traces.from_frame(frame))
    assert found.jumps is None
    assert found.fast_steps is None


@pytest.mark.parametrize(
    ("zone", "place", "swapped"),
    [
        ("Europe/Berlin", (52.0, 7.6), True),
        ("Europe/Berlin", (7.6, 52.0), False),
        ("Europe/Madrid", (-8.5, 42.9), False),  # Galicia is far from its meridian
        ("Asia/Shanghai", (75.9, 39.5), False),  # and Kashgar
        ("America/Los_Angeles", (37.8, 40.0), False),  # neither is near
        ("America/Argentina/Ushuaia", (-68.3, -54.8), False),
        ("Asia/Kolkata", (12.9, 77.6), True),
    ],
)
def test_axes_are_likely_swapped_if_the_time_zone_is_not_for_there(zone, place, swapped):
    traces = pg.Traces.from_frame(frame_of([("a", START, place), ("a", START + MINUTE, place)], crs=4326))
    assert are_axes_swapped(traces, zone=ZoneInfo(zone)) is swapped
    assert not are_axes_swapped(traces)


@pytest.mark.parametrize(
    ("hours", "place", "swapped"),
    [
        (2, (52.0, 7.6), True),  # summer in Germany
        (2, (7.6, 52.0), False),
        (2, (-8.5, 42.9), False),  # and in Galicia, which is far from the meridian of its clock
        (5.5, (12.9, 77.6), True),
    ],
)
def test_axes_are_likely_swapped_if_the_offset_of_times_is_not_for_there(hours, place, swapped):
    traces = pg.Traces.from_frame(frame_of([("a", START, place), ("a", START + MINUTE, place)], crs=4326))
    assert are_axes_swapped(traces, zone=timezone(timedelta(hours=hours))) is swapped


@pytest.mark.parametrize(
    ("crs", "place", "swapped"),
    [
        (4258, (7.6, 51.9), False),  # Europe
        (4258, (51.9, 7.6), True),  # off Somalia
        (4326, (51.9, 7.6), False),  # may be anywhere
        (4258, (-100.0, 40.0), False),  # outside, as the swapped place is
        (25832, (405_000.0, 5_750_000.0), False),
        (25832, (5_750_000.0, 405_000.0), True),
        ('LOCAL_CS["site",UNIT["metre",1]]', (5_750_000.0, 405_000.0), False),
    ],
)
def test_axes_are_likely_swapped_if_the_crs_is_not_for_there_but_for_the_swapped_place(crs, place, swapped):
    records = [("a", START + i * MINUTE, (place[0] + i * 1e-4, place[1])) for i in range(5)]
    assert are_axes_swapped(pg.Traces.from_frame(frame_of(records, crs=crs))) is swapped


class TestOneFixAtZero:
    """One record of 20 at (0, 0) is said wherever the data go."""

    frame = frame_of(with_zero(), crs=4326)

    def test_describe_counts_it(self):
        described = pg.describe(self.frame)
        assert (described["jumps"], described["fast_steps"], described["zero_fixes"]) == (1, 2, 1)
        assert described["bounds"] == (0.0, 0.0, 4.819, 45.7)

    def test_prepare_warns_of_it_and_notes_it(self):
        with pytest.warns(
            UserWarning, match=r"1 fix at longitude 0.* 1 record .*350 m/s.*keep_zero=False.*max_speed=350"
        ) as said:
            parts = pg.prepare(self.frame)
        assert len(said) == 1
        assert said[0].filename == __file__
        assert "prepare()" not in str(said[0].message)
        assert parts.attrs["promesse"]["jumps"] == parts.attrs["promesse"]["zero_fixes"] == 1

    def test_prepare_drops_it_as_drop_zero_and_drop_jumps_do(self):
        frame = frame_of([*with_zero(), ("a", START + 30 * MINUTE, (60.0, 45.7))], crs=4326)
        with pytest.warns(UserWarning, match=r"drop_zero dropped 1 .*drop_jumps dropped 1 ") as said:
            parts = pg.prepare(frame, max_speed=350, keep_zero=False, seed=1)
        assert len(said) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = pg.prepare(pg.drop_jumps(pg.drop_zero(frame), 350), seed=1)
        assert parts.equals(expected)
        assert parts.attrs["promesse"]["jumps"] == parts.attrs["promesse"]["zero_fixes"] == 0
        for wrong in ({"max_speed": -1}, {"keep_zero": "no"}):
            with pytest.raises((ValueError, TypeError), match=f"'{next(iter(wrong))}' parameter of prepare"):
                pg.prepare(frame, **wrong)

    def test_what_prepare_drops_is_in_the_same_warning(self):
        with pytest.warns(UserWarning, match=r"1 fix .*first_days dropped 1 record ") as said:
            pg.prepare(frame_of([*with_zero(), ("a", START + DAY, (4.8, 45.7))], crs=4326), days=1)
        assert len(said) == 1

    @pytest.mark.parametrize("protect", [pg.Promesse(100).protect, lambda frame: frame.promesse.smooth(100)])
    def test_smoothing_warns_of_it(self, protect):
        with pytest.warns(UserWarning, match=r"1 fix at longitude 0.* 1 record .*drop_zero.*drop_jumps") as said:
            assert len(protect(self.frame)) > 100_000
        assert len(said) == 1
        assert said[0].filename == __file__

    def test_nothing_is_said_of_clean_data(self):
        assert len(self.frame.drop(10).promesse.prepare().promesse.smooth(100)) == 13


class TestUnpreparedPaths:
    nights = frame_of(
        [*walk(), *walk(start=START + DAY), *walk(user="b"), *walk(user="b", start=START + 2 * DAY)], crs=4326
    )

    @pytest.mark.parametrize("mechanism", [pg.Promesse(100), pg.WaitForMe(k=2, max_trash=0, seed=1)])
    def test_gaps_and_days_are_said_with_the_remedy(self, mechanism):
        with pytest.warns(UserWarning, match=r"2 gaps of 4 h.* 2 traces of more than a day.*prepare\(\)") as said:
            mechanism.protect(self.nights)
        assert len(said) == 1

    def test_what_was_dropped_is_in_the_same_warning(self):
        with pytest.warns(UserWarning, match=r"2 traces could not be protected.*2 gaps") as said:
            pg.Promesse(10_000).protect(self.nights)
        assert len(said) == 1

    @pytest.mark.parametrize("mechanism", [pg.Promesse(100), pg.WaitForMe(k=2, max_trash=0, seed=1)])
    @pytest.mark.filterwarnings("error")
    def test_prepared_data_are_fine(self, mechanism):
        mechanism.protect(pg.prepare(self.nights))

    @pytest.mark.filterwarnings("error")
    def test_noise_does_not_care(self):
        pg.GeoIndistinguishability(0.01).protect(self.nights)

    def test_days_moved_but_not_split_still_have_gaps(self):
        with pytest.warns(UserWarning, match="2 gaps of 4 h"):
            pg.Promesse(100).protect(pg.collapse_empty_days(self.nights))


class TestDescription:
    def test_counts_have_their_remedy(self):
        lines = description(pg.Traces.from_frame(frame_of(with_zero(), crs=4326))).splitlines()
        rows = dict(re.split(r"  +", line, maxsplit=1) for line in lines if line)
        assert rows["period"] == "2024-03-04 08:00 to 2024-03-04 08:19"
        assert (rows["longitude"], rows["latitude"]) == ("0.0000 to 4.8190", "0.0000 to 45.7000")
        assert re.match(r"1 .*--max-speed", rows["jumps"])
        assert re.match(r"1 .*prepare", rows["fixes at (0, 0)"])
        assert (rows["gaps"], rows["equal times"]) == ("0", "0")

    def test_swapped_axes_are_said(self):
        records = [("a", START, (51.9, 7.6))]
        assert "likely swapped" in description(pg.Traces.from_frame(frame_of(records, crs=4258)))

    def test_speeds_are_not_counted_on_the_common_calendar(self):
        text = description(pg.collapse_empty_days(pg.Traces.from_frame(frame_of(walk(), crs=4326))))
        assert re.search(r"jumps +not counted", text)


@pytest.mark.parametrize("crs", [4326, 2154, 3857])
@given(places=st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), min_size=1, max_size=20))
def test_bounds_are_those_of_the_coordinates(crs, places):
    if crs != 4326:
        places = [(2 + x / 60, 46 + y / 30) for x, y in places]
    x, y = np.array(places).T
    if crs != 4326:
        x, y = Transformer.from_crs(4326, crs, always_xy=True).transform(x, y)
    traces = pg.Traces.from_arrays(x, y, times=np.arange(len(x)), users=["a"], counts=np.array([len(x)]), crs=crs)
    x, y = traces.coordinates()
    expected = x.min(), y.min(), x.max(), y.max()
    np.testing.assert_allclose(traces.space.bounds(traces.points), expected, rtol=1e-12, atol=1e-12)


def test_a_trace_of_several_days_without_gaps_is_said():
    frame = frame_of([("a", START + i * HOUR, (4.8 + 0.01 * i, 45.7)) for i in range(60)], crs=4326)
    with pytest.warns(UserWarning, match=r"1 trace of more than a day.*prepare\(\)"):
        frame.promesse.smooth(200)
