"""Who traces belong to, by their names."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import promesse_geo as pg
from promesse_geo.traces.owners import (
    count_overlapping,
    find_owners,
    name_owners,
    name_parts,
    number_owners,
    owner_of,
    pool_parts,
    with_parts,
)

HOUR = pd.Timedelta("1h")


def frame_of(begins, records=5):
    """Traces of an hour each, by name and hour of the first record."""
    rows = [
        (name, pd.Timestamp("2024-03-04", tz="UTC") + (begin + step / records) * HOUR, 4.8 + number / 10 + step / 100)
        for number, (name, begin) in enumerate(begins.items())
        for step in range(records)
    ]
    table = pd.DataFrame(rows, columns=["user", "time", "x"])
    points = gpd.points_from_xy(table.pop("x"), np.full(len(table), 45.7), crs=4326)
    return gpd.GeoDataFrame(table, geometry=points)


@pytest.mark.parametrize(
    ("begins", "owners"),
    [
        ({"a-00000": 0, "a-00001": 2, "b-00000": 0}, ["a", "b"]),
        ({"cab-00001": 0, "cab-00002": 0.5}, ["cab"]),
        ({"a-00000": 0, "b": 0}, ["a-00000", "b"]),
        ({"a": 0, "b": 0}, ["a", "b"]),
    ],
)
def test_parts_belong_to_the_name_before_their_number(begins, owners):
    found, _ = number_owners(pg.Traces.from_frame(frame_of(begins)))
    assert found.tolist() == owners


def test_parts_that_overlap_in_time_are_reported():
    digits = frame_of({"cab-00001": 0, "cab-00002": 0})
    with pytest.warns(UserWarning, match=r"2 traces end with five digits.*parts of 1 owner, but those of 1 overlap"):
        pg.Unicity(draws=50, seed=1).measure(digits, digits)


@pytest.mark.parametrize(("last", "is_one"), [(3, True), (2.5, False)])
def test_traces_are_parts_of_one_only_if_each_follows_the_one_before(last, is_one):
    begins = {"cab-00000": 0, "cab-00001": 2, "cab-00002": last}
    traces = pg.Traces.from_frame(frame_of(begins))
    assert name_owners(traces) == (["cab"] * 3 if is_one else list(begins))
    assert count_overlapping(traces) == (not is_one)


@pytest.mark.filterwarnings("ignore:.*five digits")
@pytest.mark.parametrize("users", [1, 4])
def test_halves_of_users_with_five_digits_are_recognized(users):
    city = pg.make_city(users=users, days=4, seed=3, recorder="phone")
    names = {name: f"cab-{number + 1:05d}" for number, name in enumerate(city["user"].unique())}
    city["user"] = city["user"].map(names)
    metric = pg.HeatMapReidentification()
    known, second = metric.split(city)
    assert metric.measure(known, second) == 100


def test_a_name_of_the_original_comes_before_a_part_of_it():
    traces = pg.Traces.from_frame(frame_of({"a-00000": 0, "a-00001": 2, "b-00000": 0}))
    owners, numbers = number_owners(traces)
    parts = name_parts(traces, numbers)
    names = ["a-00001", "a-00001-00003", "a-00007", "b", "c-00000", "a-00001-00003-00001"]
    assert find_owners(names, owners, parts).tolist() == [0, 0, 0, 1, -1, -1]


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("ann", "ann"),
        ("ann-00001", "ann-00001"),
        ("ann-00002", "ann"),
        ("ann-00001-00002", "ann-00001"),
        ("ben-00001", "ben-00001"),
    ],
)
def test_a_name_of_the_other_side_is_its_own_owner(name, owner):
    assert owner_of(name, {"ann", "ann-00001"}) == owner


def test_users_without_a_second_half_are_left_out_by_evaluate():
    city = pg.make_city(users=4, days=4, seed=3, recorder="phone").iloc[::20]
    first, middle = city["user"].min(), city["time"].min() + (city["time"].max() - city["time"].min()) / 2
    data = city[(city["user"] != first) | (city["time"] < middle)]
    result = pg.evaluate({"city": data}, [pg.GeoIndistinguishability(1.0, seed=1)], [pg.HeatMapReidentification()])
    assert result["value"].tolist() == [100]


@pytest.mark.parametrize("metric", [pg.Unicity(draws=5), pg.Linkage(), pg.EndRetrieval(), pg.HeatMapReidentification()])
def test_times_with_and_without_a_zone_are_not_compared(metric):
    zoned = frame_of({"a": 0, "b": 0})
    naive = zoned.assign(time=zoned["time"].dt.tz_localize(None))
    with pytest.raises(ValueError, match="original times have a time zone and the protected ones have none"):
        metric.measure(zoned, naive)


@pytest.mark.parametrize(
    ("begins", "numbers", "lengths", "order", "breaks"),
    [
        ({"b-00000": 0, "b-00001": 2}, [0, 0], [10], range(10), [5]),
        ({"p": 4, "q": 2, "r": 0}, [0, 0, 0], [15], [*range(10, 15), *range(5, 10), *range(5)], [5, 10]),
        ({"p": 2, "q": 0, "r": 0}, [1, 0, 1], [5, 10], [*range(5, 10), *range(10, 15), *range(5)], [10]),
        ({"p": 0, "q": 0.1}, [0, 0], [10], [0, 5, 1, 6, 2, 7, 3, 8, 4, 9], []),
    ],
)
def test_parts_of_an_owner_become_segments_of_one_trace(begins, numbers, lengths, order, breaks):
    parts = pg.Traces.from_frame(frame_of(begins))
    pooled = pool_parts(parts, pd.Index([f"o{number}" for number in range(len(lengths))]), np.array(numbers))
    assert pooled.counts.tolist() == lengths
    assert pooled.times.tolist() == parts.times[list(order)].tolist()
    assert (pooled.points == parts.points[list(order)]).all()
    assert pooled.positions.tolist() == parts.positions[list(order)].tolist()
    assert pooled.breaks.tolist() == breaks


@pytest.mark.parametrize(
    ("first", "owners"), [(0, ["P"] * 3), (1, ["P"] * 3), (9_998, ["P"] * 3), (10_000, None), (10_001, None)]
)
def test_numbers_from_ten_thousand_on_are_of_people(first, owners):
    begins = {f"P-{first + number:05d}": 2 * number for number in range(3)}
    traces = pg.Traces.from_frame(frame_of(begins))
    names = owners or list(begins)
    assert name_owners(traces) == names
    found, numbers = number_owners(traces)
    assert found.take(numbers).tolist() == names
    assert name_owners(pg.Traces.from_frame(frame_of({"P-10001": 0}))) == ["P-10001"]


@pytest.mark.parametrize(
    ("chosen", "names", "expected"),
    [
        ({"p"}, ["p-00000", "p-00001", "q-00000"], {"p-00000", "p-00001"}),
        ({"p-00001"}, ["p-00000", "p-00001"], {"p-00001"}),
        ({"p"}, ["p", "p-00000"], {"p"}),  # a user of that name
        ({"p"}, ["p-10001", "p-10002"], {"p"}),  # numbers of people
        ({"p", "r"}, ["p-00000"], {"p-00000", "r"}),
        ({"p-00000"}, ["p-00000-00003"], {"p-00000-00003"}),
    ],
)
def test_owners_stand_for_their_parts(chosen, names, expected):
    assert with_parts(chosen, names) == expected


def test_people_with_high_numbers_change_nothing_for_parts_of_others():
    begins = {"a-00000": 0, "a-00001": 2, "P-10000": 0, "P-10001": 4}
    owners, numbers = number_owners(pg.Traces.from_frame(frame_of(begins)))
    assert owners.take(numbers).tolist() == ["P-10000", "P-10001", "a", "a"]
