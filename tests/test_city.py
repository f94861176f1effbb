"""The synthetic city: equal for equal seeds, with stays that smoothing removes."""

import math

import numpy as np
import pandas as pd
import pytest

import promesse_geo as pg
from promesse_geo.synthetic import make_city

RADIUS = 6_371_008.8
SHORTEST_STAY = pd.Timedelta("15min")


@pytest.fixture(scope="module")
def city():
    return make_city(users=4, days=2, return_pois=True, recorder="phone")


def as_arrays(frame) -> tuple[list, list, list, list]:
    times = pd.DatetimeIndex(frame["time"]).as_unit("ns").asi8.tolist()
    return frame["user"].tolist(), times, frame.geometry.x.tolist(), frame.geometry.y.tolist()


def records_of(frame, user) -> list[tuple[float, float, float]]:
    """Seconds, and metres east and north, of a user's records."""
    own = frame[frame["user"] == user]
    seconds = pd.DatetimeIndex(own["time"]).as_unit("ns").asi8 / 1e9
    north = np.radians(own.geometry.y.to_numpy()) * RADIUS
    east = np.radians(own.geometry.x.to_numpy()) * RADIUS * math.cos(math.radians(45.76))
    return list(zip(seconds.tolist(), east.tolist(), north.tolist(), strict=True))


def find_stays(records, *, diameter=200.0, least=900.0) -> list[tuple[float, float, float, float]]:
    """Begin, end and mean place of each stay: a plain loop, records within a diameter of each other."""
    stays, candidate = [], []

    def emit():
        if len(candidate) > 1 and candidate[-1][0] - candidate[0][0] >= least:
            places = [sum(axis) / len(candidate) for axis in list(zip(*candidate, strict=True))[1:]]
            stays.append((candidate[0][0], candidate[-1][0], *places))
            return True
        return False

    for record in records:
        while any(math.dist(record[1:], other[1:]) > diameter for other in candidate):
            if emit():
                candidate.clear()
            else:
                candidate.pop(0)
        candidate.append(record)
    emit()
    return stays


@pytest.mark.parametrize("recorder", ["trips", "phone"])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_same_seed_gives_the_same_bytes(seed, recorder):
    first, pois = make_city(users=2, days=1, seed=seed, recorder=recorder, return_pois=True)
    again, same = make_city(users=2, days=1, seed=seed, recorder=recorder, return_pois=True)
    assert as_arrays(first) == as_arrays(again)
    assert pois.to_wkb().equals(same.to_wkb())


def test_another_seed_gives_other_people():
    assert as_arrays(make_city(users=1, days=1)) != as_arrays(make_city(users=1, days=1, seed=1))


def test_the_first_users_do_not_depend_on_the_number(city):
    records, pois = city
    fewer, fewer_pois = make_city(users=2, days=2, return_pois=True, recorder="phone")
    first = ["user-000", "user-001"]
    assert as_arrays(fewer) == as_arrays(records[records["user"].isin(first)])
    assert fewer_pois.to_wkb().equals(pois[pois["user"].isin(first)].to_wkb())


def test_records_are_a_frame_of_points_in_order(city):
    records, _ = city
    assert list(records.columns) == ["user", "time", "geometry"]
    assert records["user"].unique().tolist() == [f"user-00{i}" for i in range(4)]
    assert records.crs == 4326
    assert str(records["time"].dt.tz) == "UTC"
    for _, times in records.groupby("user")["time"]:
        assert times.is_monotonic_increasing
        assert times.min() >= pd.Timestamp("2024-03-04", tz="Europe/Paris")
        assert times.max() <= pd.Timestamp("2024-03-06", tz="Europe/Paris")


def test_traces_hold_the_same(city):
    traces = make_city(users=4, days=2, as_traces=True, recorder="phone")
    assert isinstance(traces, pg.Traces)
    assert as_arrays(traces.to_frame()) == as_arrays(city[0])


def test_pois_are_stays_with_records_in_them(city):
    records, pois = city
    assert list(pois.columns) == ["user", "kind", "arrival", "departure", "geometry"]
    assert pois.crs == 4326
    assert set(pois["kind"]) <= {"home", "work", "lunch", "errand", "leisure"}
    assert set(pois["user"]) == set(records["user"])
    assert ((pois["departure"] - pois["arrival"]) >= SHORTEST_STAY).all()
    assert pois.sort_values(["user", "arrival"]).index.equals(pois.index)
    for poi in pois.itertuples():
        inside = records[(records["user"] == poi.user) & records["time"].between(poi.arrival, poi.departure)]
        assert len(inside) > 0
        metres = np.hypot(
            (inside.geometry.x - poi.geometry.x) * math.radians(RADIUS) * math.cos(math.radians(45.76)),
            (inside.geometry.y - poi.geometry.y) * math.radians(RADIUS),
        )
        assert np.median(metres) < 60


def share_found(frame, pois) -> float:
    """Share of true stays of half an hour and more that are found, by place (100 m) and half of the time."""
    found = []
    for user in pois["user"].unique():
        stays = find_stays(records_of(frame, user))
        for poi in pois[pois["user"] == user].itertuples():
            begin, end = poi.arrival.timestamp(), poi.departure.timestamp()
            place = [math.radians(degrees) * RADIUS for degrees in (poi.geometry.x, poi.geometry.y)]
            place[0] *= math.cos(math.radians(45.76))
            found.append(
                any(
                    math.dist(place, stay[2:]) <= 100 and min(end, stay[1]) - max(begin, stay[0]) >= 0.5 * (end - begin)
                    for stay in stays
                )
            )
    return sum(found) / len(found)


def test_stays_stand_out_before_smoothing_and_are_gone_after(city):
    records, pois = city
    long_ones = pois[pois["departure"] - pois["arrival"] >= 2 * SHORTEST_STAY]
    assert len(long_ones) >= 20
    assert share_found(records, long_ones) > 0.9
    assert share_found(pg.Promesse(200).protect(records), long_ones) < 0.05


def test_smoothed_samples_are_evenly_spaced_and_timed(city):
    smoothed = pg.Promesse(200).protect(city[0])
    assert set(smoothed["user"]) == set(city[0]["user"])
    for user in smoothed["user"].unique():
        seconds, *places = np.array(records_of(smoothed, user)).T
        assert np.hypot(*np.diff(places)) == pytest.approx(200, rel=0.005)
        assert np.ptp(np.diff(seconds)) < 1e-5


def test_speeds_differ_before_smoothing_and_not_after(city):
    records, _ = city

    def spread(frame):
        speeds = []
        for user in frame["user"].unique():
            seconds, *places = np.array(records_of(frame, user)).T
            speeds.append(np.hypot(*np.diff(places)) / np.maximum(np.diff(seconds), 1))
        return [speed.std() / speed.mean() for speed in speeds]

    assert min(spread(records)) > 0.5
    assert max(spread(pg.Promesse(200).protect(records))) < 0.01


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"users": 0}, ValueError, r"'users' parameter of make_city must be a whole number of at least 1\. Got 0"),
        ({"days": 1.5}, TypeError, r"'days' .* whole number of at least 1\. Got 1\.5"),
        ({"seed": -1}, ValueError, r"'seed' .* whole number of at least 0\. Got -1"),
        ({"seed": None}, TypeError, r"'seed' .* whole number"),
        ({"return_pois": 1}, TypeError, r"'return_pois' .* True or False"),
        ({"as_traces": "yes"}, TypeError, r"'as_traces' .* True or False"),
    ],
)
def test_a_wrong_parameter_is_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        make_city(**arguments)


def test_recorders_have_names():
    trips, phones = (as_arrays(make_city(1, 1, recorder=recorder)) for recorder in ("trips", "phone"))
    assert as_arrays(make_city(1, 1)) == trips != phones
    with pytest.raises(ValueError, match="'recorder' parameter of make_city must be one of 'trips', 'phone'"):
        make_city(1, 1, recorder="watch")
    with pytest.raises(TypeError, match="'recorder' parameter of make_city"):
        make_city(1, 1, recorder=None)


@pytest.fixture(scope="module")
def trips():
    return make_city(users=12, days=5, recorder="trips", as_traces=True)


def test_devices_for_trips_record_every_one_to_five_seconds(trips):
    for trace in range(len(trips)):
        steps = np.diff(trips.times[trips.offsets[trace] : trips.offsets[trace + 1]]) / 1e9
        assert 1 <= steps.min() == np.median(steps) <= 5


@pytest.mark.compiled
def test_about_half_of_the_time_of_trips_is_in_stays(city):
    for data, low, high in ((make_city(as_traces=True), 0.35, 0.55), (city[0], 0.85, 1)):
        parts = pg.prepare(data, tz="Europe/Paris")
        stays, described = pg.pois(parts, 200, "15min"), pg.describe(parts)
        inside = (stays["departure"] - stays["arrival"]).sum() / (described["mean_duration"] * described["traces"])
        assert low < inside < high


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore:25 of 600 traces")
def test_the_attack_orders_mechanisms_of_trips_as_in_the_paper():
    parts = pg.prepare(make_city(as_traces=True), tz="Europe/Paris", keep_user=True)
    levels = ((4, 200), (10, 100))
    noise = [pg.GeoIndistinguishability.from_level(level, radius=radius, seed=0) for level, radius in levels]
    found = [pg.PoiRetrieval().measure(parts, each.protect(parts)) for each in (pg.Promesse(200), *noise)]
    assert found[0] < found[1] / 2 < found[2] / 8


def test_users_of_trips_do_not_depend_on_their_number(trips):
    few = make_city(users=3, days=5, recorder="trips", as_traces=True)
    assert few.times.tolist() == trips.times[: few.records].tolist()
    assert few.points.tolist() == trips.points[: few.records].tolist()


def test_each_user_records_something():
    assert make_city(users=100, days=1, recorder="trips", as_traces=True).counts.min() > 0


def test_records_of_trips_are_near_streets(trips):
    streets = make_city(users=1, days=1, return_pois=True, return_streets=True)[2].to_crs(2154)
    assert set(streets["kind"]) == {"street", "avenue"}
    points = trips.to_frame().iloc[::97].to_crs(2154)
    assert points.distance(streets.union_all()).quantile(0.99) < 60
