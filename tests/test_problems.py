"""What is odd in data is counted right, wherever it is asked for."""

import pytest
from test_preprocess import DAY, GRID, HOUR, SECOND, at, frame_of

import promesse_geo as pg
from promesse_geo.preprocess.problems import find_problems

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
    assert not found.swapped_axes
    assert not found.on_common_calendar


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


def test_nothing_has_none():
    found = problems_of([])
    assert (found.jumps, found.gaps, found.single_record_users) == (0, 0, 0)


def test_on_the_common_calendar_speeds_are_not_judged():
    found = find_problems(pg.collapse_empty_days(pg.Traces.from_frame(frame_of(with_zero(), crs=4326))))
    assert found.on_common_calendar
    assert found.jumps is None
    assert found.fast_steps is None
    assert found.zero_fixes == 1


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
    assert problems_of(records, crs=crs).swapped_axes is swapped
