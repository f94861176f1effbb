"""Dropping of jumps against its slow twin, and by hand; and of fixes at (0, 0)."""

import math

import naive_preprocess as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_preprocess import PLACES, SECOND, USERS, frame_of, quietly, records_of

import promesse_geo as pg
from promesse_geo import threads
from promesse_geo.kernels import jumps as kernels
from promesse_geo.preprocess import jumps

UNITS = (60 * SECOND, SECOND, SECOND // 10)
STEPS = st.tuples(USERS, st.integers(0, 30), PLACES)
LONGITUDES = st.sampled_from([0.0, 0.001, 0.5, 90.0, 179.999, -179.999])
DEGREES = st.tuples(LONGITUDES, st.sampled_from([0.0, 1e-4, 45.0, 90.0]))


def great_circle(one, other):
    a, b = (np.array(unit_vector(*place)) for place in (one, other))
    return 6_371_008.8 * math.atan2(np.linalg.norm(np.cross(a, b)), a @ b)


def unit_vector(longitude, latitude):
    x, y = math.radians(longitude), math.radians(latitude)
    return math.cos(y) * math.cos(x), math.cos(y) * math.sin(x), math.sin(y)


def chain_of(places, seconds, speed=50.0) -> list[int]:
    """Numbers of the records kept of one trace in the plane."""
    records = [("a", round(time * SECOND), place) for time, place in zip(seconds, places, strict=True)]
    return quietly(pg.drop_jumps, pg.Traces.from_frame(frame_of(records)), speed).positions.tolist()


def looks(points, times, speed=50.0) -> tuple[list[int], int]:
    """Numbers of the records kept of one trace in the plane, and about how many records were looked at."""
    count, budget, calls = len(times), 1000, 0
    heads, others = np.empty((2, count), np.int32)
    states, keep = np.array([[count, 0, 0]]), np.zeros(count, bool)
    segment = np.array([0]), np.array([count]), np.ones(1)
    while states[0, 1] >= 0:
        kernels.mark_longest_chains(
            *(points, times, *segment, 0.0, speed, np.array([0]), 0, 1, budget, heads, others, states, keep)
        )
        calls += 1
    return np.flatnonzero(keep).tolist(), calls * budget


class TestTwin:
    @given(records=st.lists(STEPS, max_size=30), speed=st.sampled_from([1, 5, 25, 1000]), unit=st.sampled_from(UNITS))
    def test_in_the_plane(self, records, speed, unit):
        records = [(user, time * unit, place) for user, time, place in records]
        expected = naive.drop_jumps(records, speed)
        frame = frame_of(records)
        assert records_of(quietly(pg.drop_jumps, frame, max_speed=speed)) == expected
        assert records_of(quietly(pg.drop_jumps, pg.Traces.from_frame(frame), max_speed=speed)) == expected

    @given(
        records=st.lists(st.tuples(USERS, st.integers(0, 9), DEGREES), max_size=25),
        speed=st.sampled_from([1.0, 200.0, 1e4, 1e6]),
        unit=st.sampled_from(UNITS),
    )
    def test_on_the_sphere(self, records, speed, unit):
        records = [(user, time * unit, place) for user, time, place in records]
        expected = naive.drop_jumps(records, speed, great_circle)
        assert records_of(quietly(pg.drop_jumps, frame_of(records, crs=4326), speed)) == expected

    @given(data=st.data(), unit=st.sampled_from(UNITS), size=st.sampled_from([3, 60, 3000]))
    def test_with_many_records_of_an_instant(self, data, unit, size):
        places, steps = st.integers(0, size), st.sampled_from([0, 0, 0, 1, 2])
        drawn = data.draw(st.lists(st.tuples(steps, places, places), min_size=1, max_size=60))
        times = (np.cumsum([step[0] for step in drawn]) * unit).tolist()
        records = [("a", time, (float(x), float(y))) for time, (_, x, y) in zip(times, drawn, strict=True)]
        assert records_of(quietly(pg.drop_jumps, frame_of(records), 2)) == naive.drop_jumps(records, 2)

    @given(data=st.data(), unit=st.sampled_from(UNITS))
    def test_of_walks_with_bad_fixes(self, data, unit):
        """Long chains, so that levels are passed in large steps."""
        bad = data.draw(st.lists(st.tuples(st.integers(0, 79), st.integers(1, 4000)), max_size=12))
        x = np.cumsum(data.draw(st.lists(st.integers(0, 2), min_size=80, max_size=80)))
        for number, metres in bad:
            x[number] += metres
        records = [("a", i * unit, (float(x), 0.0)) for i, x in enumerate(x.tolist())]
        speed = 2 if unit < SECOND else 2 / (unit // SECOND)
        assert records_of(quietly(pg.drop_jumps, frame_of(records), speed)) == naive.drop_jumps(records, speed)

    @given(
        steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.booleans()), min_size=1, max_size=30),
        unit=st.sampled_from(UNITS),
    )
    def test_with_breaks(self, steps, unit):
        """Everything can be reached across a break, and a dropped record hands its break on."""
        times = np.cumsum([step[0] for step in steps]) * unit
        x = np.array([step[1] for step in steps], float)
        traces = pg.Traces.from_arrays(
            *(x, np.zeros(len(x))),
            times=times,
            users=["a"],
            counts=np.array([len(x)]),
            crs='LOCAL_CS["site",UNIT["metre",1]]',
            segments=np.cumsum([step[2] for step in steps]),
        )
        records = [("a", time, (metre, 0.0)) for time, metre in zip(times.tolist(), x.tolist(), strict=True)]
        breaks = {("a", number) for number in traces.breaks.tolist()}
        kept = quietly(pg.drop_jumps, traces, 2)
        expected = naive.drop_jumps(records, 2, breaks=breaks)
        assert list(zip(kept.times.tolist(), kept.points[:, 0].tolist(), strict=True)) == [
            (time, place[0]) for _, time, place in expected
        ]
        assert len(kept.breaks) == len(traces.breaks)  # each segment keeps a record

    def test_an_interrupt_ends_the_search(self):
        """The search returns between parts of the work, so that Ctrl-C is noticed."""
        records = [("a", 0, (500_000.0 + 1000 * i, 5e6)) for i in range(50)]
        rounds = []

        def interrupted(work, bounds):
            rounds.append(bounds)
            if len(rounds) == 3:
                raise KeyboardInterrupt
            work(0, 1)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jumps, "_BUDGET", 1)
            patch.setattr(threads, "run_interruptible", interrupted)
            with pytest.raises(KeyboardInterrupt):
                pg.drop_jumps(frame_of(records), 5)
        assert len(rounds) == 3

    @given(data=st.data(), budget=st.sampled_from([1, 7]))
    def test_work_in_parts_gives_the_same(self, data, budget):
        records = [(user, time * SECOND, place) for user, time, place in data.draw(st.lists(STEPS, max_size=20))]
        expected = records_of(quietly(pg.drop_jumps, frame_of(records), 5))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jumps, "_BUDGET", budget)
            patch.setattr(threads, "_LEAST", 1)
            patch.setattr(threads, "number", lambda: 2)
            assert records_of(quietly(pg.drop_jumps, frame_of(records), 5)) == expected


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([(0.1, 0), (1.1, 50), (2.1, 100)], [0, 1, 2]),  # exactly the speed
        ([(0.1, 0), (1.1, 51), (2.1, 100)], [0, 2]),  # one metre too far
        ([(0, 0), (1, 100), (2, 200)], [0, 1, 2]),  # whole seconds: each step may have taken one more
        ([(0, 0), (1, 101), (2, 200)], [1, 2]),
        ([(0, 0), (60, 6000), (120, 12_000)], [0, 1, 2]),  # whole minutes
        ([(0, 0), (60, 6001), (120, 12_000)], [1, 2]),
        ([(0.1, 900), (1.1, 0), (2.1, 1), (3.1, 2)], [1, 2, 3]),  # the first record is the outlier
        ([(0.1, 9000), (1.1, 9001), (2.1, 0), (3.1, 1), (4.1, 2)], [2, 3, 4]),  # so is the second
        ([(0.1, 9000), (1.1, 9001), (2.1, 0), (3.1, 1)], [0, 1]),  # of equal chains the earlier
        ([(0.1, 0), (1.1, 900), (1.1, 9000), (20.1, 0)], [0, 3]),
        ([(0.1, 0), (0.1, 1), (1.1, 10)], [0, 2]),  # no time for any distance
        ([(0.1, 0), (0.1, 0), (1.1, 10)], [0, 1, 2]),  # nor is any needed
        ([(0, 0), (1, 9000)], [0]),
    ],
)
def test_by_hand(steps, kept):
    assert chain_of([(500_000.0 + metre, 5e6) for _, metre in steps], [second for second, _ in steps]) == kept


def test_records_that_share_a_minute_are_kept():
    """Three fixes a minute at 5 m/s, whose times are cut to minutes."""
    assert len(chain_of([(500_000.0 + 100 * i, 5e6) for i in range(30)], [60 * (i // 3) for i in range(30)])) == 30


def test_each_minute_keeps_a_record_however_far_apart_they_are():
    """Records of a minute are farther apart than can be travelled in two, the minutes are not."""
    kept = chain_of([(500_000.0 + 20_000 * (i % 3), 5e6) for i in range(30)], [60 * (i // 3) for i in range(30)])
    assert {i // 3 for i in kept} == set(range(10))


def test_stale_first_fixes_are_dropped_and_no_others():
    longitudes = 4.8 + np.arange(200) * 0.0005
    longitudes[:3] = 6.1
    records = [("a", 30 * i * SECOND, (x, 45.7)) for i, x in enumerate(longitudes.tolist())]
    assert records_of(quietly(pg.drop_jumps, frame_of(records, crs=4326), 50)) == records[3:]


def test_a_receiver_stuck_far_away_is_passed_in_few_looks():
    count, stuck = 4_000, 1_000
    points = np.zeros((count, 2))
    points[stuck:, 0] = 1e7
    kept, looked = looks(points, np.arange(count) * SECOND)
    assert kept == list(range(stuck, count))
    assert looked < 30 * count


def test_bad_fixes_in_a_dense_trace_take_few_looks():
    points = np.zeros((4_000, 2))
    points[::50] = 1e7
    kept, looked = looks(points, np.arange(4_000) * SECOND)
    assert kept == [i for i in range(4_000) if i % 50]
    assert looked < 30 * 4_000


def test_the_pipe_takes_the_speed():
    frame = frame_of([("ann", 0, (500_000.0, 5e6)), ("ann", SECOND, (500_200.0, 5e6))])
    assert len(quietly(frame.pipe, pg.drop_jumps, 50)) == 1
    assert len(frame.pipe(pg.drop_jumps, 100)) == 2


def test_what_is_dropped_is_counted_in_one_warning():
    steps = [(0, 0), (1, 9000), *((second, 0) for second in range(2, 30))]
    records = [("ann", second * SECOND, (500_000.0 + metre, 5e6)) for second, metre in steps]
    with pytest.warns(UserWarning, match=r"drop_jumps.* 1 of 30 records.* 50 m/s") as caught:
        pg.drop_jumps(frame_of(records))
    assert len(caught) == 1
    assert "travel" not in str(caught[0].message)
    assert caught[0].filename == __file__


def test_more_than_a_tenth_of_a_trace_may_be_true_travel():
    records = [("ann", second * SECOND, (500_000.0 + metre, 5e6)) for second, metre in [(0, 0), (1, 9000), (2, 0)]]
    with pytest.warns(UserWarning, match=r"a tenth of 1 trace.* true travel.*--max-speed"):
        pg.drop_jumps(frame_of(records))


@pytest.mark.parametrize(("records", "is_much"), [(9, True), (10, False)])
def test_just_a_tenth_of_a_trace_is_no_true_travel(records, is_much):
    steps = [(0, 0), (1, 9000), *((second, 0) for second in range(2, records))]
    frame = frame_of([("ann", second * SECOND, (500_000.0 + metre, 5e6)) for second, metre in steps])
    with pytest.warns(UserWarning, match=rf"drop_jumps dropped 1 of {records} records") as caught:
        pg.drop_jumps(frame)
    assert ("true travel" in str(caught[0].message)) is is_much


def test_on_the_globe_a_jump_over_the_antimeridian_is_short():
    times = [SECOND // 2, 3 * SECOND // 2, 5 * SECOND // 2]
    records = [("ann", time, (x, 0.0)) for time, x in zip(times, (179.9999, -179.9999, -179.0), strict=True)]
    kept = quietly(pg.drop_jumps, frame_of(records, crs=4326))
    assert kept.geometry.x.tolist() == [179.9999, -179.9999]


class TestDropZero:
    def test_only_fixes_at_exactly_zero_are_dropped(self):
        places = [(0.0, 0.0), (-0.0, 0.0), (0.0, 1e-9), (1e-9, 0.0), (180.0, 0.0)]
        records = [("ann", i * SECOND, place) for i, place in enumerate(places)]
        with pytest.warns(UserWarning, match=r"drop_zero.* 2 of 5 records") as caught:
            kept = pg.drop_zero(frame_of(records, crs=4326))
        assert records_of(kept) == records[2:]
        assert len(caught) == 1

    def test_the_origin_of_a_plane_is_a_place(self):
        frame = frame_of([("ann", 0, (0.0, 0.0))], crs='LOCAL_CS["site",UNIT["metre",1]]')
        assert len(pg.drop_zero(frame)) == 1

    def test_so_is_that_of_a_projected_crs_on_the_sphere(self):
        assert len(pg.drop_zero(frame_of([("ann", 0, (0.0, 0.0))], crs=3857))) == 1
