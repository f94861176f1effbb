"""Promesse: against its slow twin, against right answers from elsewhere, and against its own laws."""

import json
import math
import re
import warnings
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import geopandas as gpd
import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from strategies import EPSILONS, SECOND, Walk, crowds, gathered, walks

import promesse_geo as pg
from promesse_geo import Promesse, Traces, threads
from promesse_geo.kernels import smoothing
from promesse_geo.mechanisms.promesse import _equal_steps

VARIANTS = ("polyline", "pseudocode")
GRID = 'LOCAL_CS["building site",UNIT["metre",1]]'
GOLDEN = json.loads((Path(__file__).parent / "data" / "cases.json").read_text())["cases"]

variants = st.sampled_from(VARIANTS)


def protected(data, mechanism: Promesse):
    """Protect without the warning about dropped traces, which has its own tests."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*could not be protected", category=UserWarning)
        return mechanism.protect(data)


def on_grid(*records: tuple[float, float, float]) -> Traces:
    """One trace in a plane, from (x, y, seconds)."""
    x, y, seconds = np.array(records, float).T
    times = (seconds * SECOND).astype(np.int64)
    return Traces.from_arrays(x, y, times=times, users=["a"], counts=np.array([len(x)]), crs=GRID)


def as_records(traces: Traces) -> list[tuple[float, float, int]]:
    """The records of a plane, as (x, y, ns)."""
    return [(*point, time) for point, time in zip(traces.points.tolist(), traces.times.tolist(), strict=True)]


def as_points(traces: Traces) -> list[tuple[float, ...]]:
    return [tuple(point) for point in traces.points.tolist()]


def gaps(points) -> list[float]:
    """Straight distances between consecutive points."""
    return [naive.distance(a, b) for a, b in pairwise(points)]


def blur(traces: Traces, time: int) -> float:
    """1 µs, and the time that the walker takes for 10 nm just then: a slow one makes nanometres into milliseconds."""
    points, times = as_points(traces), traces.times.tolist()
    slowest = 0.0
    for a, b, begin, end in zip(points, points[1:], times, times[1:], strict=False):
        if begin <= time <= end and (length := naive.distance(a, b)) > 0:
            slowest = max(slowest, (end - begin) * min(1.0, 1e-8 / length))
    return 1_000 + slowest


def assert_as_the_twin_says(walk: Walk, variant: str) -> None:
    traces = walk.traces()
    original, times = as_points(traces), traces.times.tolist()
    result = protected(traces, Promesse(walk.epsilon, variant=variant))
    expected = naive.promesse(original, times, epsilon=walk.epsilon, variant=variant)
    assert result.records == len(expected)
    if not expected:
        return
    assert max(map(naive.distance, as_points(result), [point for point, _ in expected])) <= 1e-6
    late = np.abs(result.times - np.array([time for _, time in expected]))
    if variant == "pseudocode":
        assert late.max() == 0
    else:
        samples = naive.polyline_samples(original, times, epsilon=walk.epsilon)
        assert late.max() <= max(blur(traces, samples[1][1]), blur(traces, samples[-2][1]))


def wandering(seed: int, *, space: str, epsilon: float, records: int) -> Walk:
    """A long drunken walk with steps of half an epsilon on average, and a stay now and then."""
    rng = np.random.default_rng(seed)
    steps = rng.exponential(0.5 * epsilon, records) * (rng.random(records) > 0.2)
    bearings = np.cumsum(rng.normal(0.0, 0.7, records))
    east, north = np.cumsum(steps * np.sin(bearings)), np.cumsum(steps * np.cos(bearings))
    times = 1_211_018_404 * SECOND + np.cumsum(rng.integers(0, 90 * SECOND, records))
    if space == "plane":
        return Walk(550_000 + east, 4_180_000 + north, times, epsilon, space)
    degree = math.radians(naive.RADIUS)
    return Walk(-122.4 + east / degree, 37.7 + north / degree, times, epsilon, space)


# The slow twin


@pytest.mark.parametrize("variant", VARIANTS)
@given(walk=walks())
def test_the_kernel_agrees_with_its_twin(walk, variant):
    assert_as_the_twin_says(walk, variant)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("space", ["sphere", "plane"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_kernel_agrees_with_its_twin_on_long_traces(variant, space, epsilon):
    assert_as_the_twin_says(wandering(1, space=space, epsilon=epsilon, records=500), variant)


@pytest.mark.parametrize("variant", VARIANTS)
@given(walk=walks(space="sphere", epsilon=1e6))
def test_the_kernel_agrees_with_its_twin_around_the_whole_globe(walk, variant):
    # An arc to within 500 km of the antipode magnifies the rounding of its ends more than tenfold; and in the
    # pseudocode variant, whose samples build on one another, arcs of more than a quarter of the globe add it up.
    longest = {"polyline": 19.5e6, "pseudocode": 10.0e6}[variant]
    assume(max(gaps(as_points(walk.traces())), default=0.0) < longest)
    assert_as_the_twin_says(walk, variant)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("space", "x", "y"),
    [("sphere", [179.9, -179.7, -179.6], [69.0, 69.9, 69.0]), ("plane", [5e5, 6e5, 6e5], [4.1e6, 4.1e6, 4e6])],
)
def test_the_kernel_agrees_with_its_twin_on_pieces_of_a_thousand_samples(space, x, y, variant):
    assert_as_the_twin_says(Walk(np.array(x), np.array(y), np.arange(3) * 3_600 * SECOND, 99.0, space), variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_kernel_agrees_with_its_twin_from_near_one_antipode_to_the_other(variant):
    x, y = np.array([-122.4, -122.4, 58.10794724]), np.array([37.7, 42.19660182, -42.04062715])
    assert_as_the_twin_says(Walk(x, y, np.array([0, 60, 3_600]) * SECOND, 1e6, "sphere"), variant)


@pytest.mark.parametrize("variant", VARIANTS)
@given(walk=walks(epsilon=0.01))
def test_the_kernel_agrees_with_its_twin_at_the_smallest_epsilon(walk, variant):
    assert_as_the_twin_says(walk, variant)


@pytest.mark.parametrize("variant", VARIANTS)
@given(
    records=st.lists(st.tuples(st.integers(-12, 12), st.integers(-12, 12), st.integers(0, 3)), min_size=2, max_size=40),
    epsilon=st.sampled_from((1.0, 2.0, 5.0, 10.0)),
)
def test_the_kernel_agrees_with_its_twin_where_distances_are_exactly_epsilon(records, epsilon, variant):
    x, y, pauses = np.array(records).T
    assert_as_the_twin_says(Walk(x * 1.0, y * 1.0, np.cumsum(pauses) * SECOND, epsilon, "plane"), variant)


@given(crowd=crowds(), variant=variants)
def test_each_trace_is_protected_as_if_it_were_alone(crowd, variant):
    together = protected(gathered(crowd), Promesse(crowd[0].epsilon, variant=variant))
    alone = [protected(walk.traces(), Promesse(walk.epsilon, variant=variant)) for walk in crowd]
    assert together.users.tolist() == [number for number, result in enumerate(alone) if len(result)]
    assert together.counts.tolist() == [result.records for result in alone if len(result)]
    assert together.points.tobytes() == b"".join(result.points.tobytes() for result in alone)
    assert together.times.tobytes() == b"".join(result.times.tobytes() for result in alone)


@given(walk=walks(), variant=variants)
def test_there_is_room_for_every_sample(walk, variant):
    traces = walk.traces()
    sample = naive.polyline_samples if variant == "polyline" else naive.pseudocode_samples
    samples = sample(as_points(traces), traces.times.tolist(), epsilon=walk.epsilon)
    epsilon = walk.epsilon / traces.space.scale
    bound = np.empty(1)
    smoothing.bound_samples(traces.points, traces.offsets, traces.space.curvature, epsilon, 0, 1, bound)
    assert bound[0] >= len(samples) - 1  # the first one is never written


@given(
    begin=st.integers(-(2**61), 2**61),
    length=st.integers(0, 2**62),
    count=st.integers(1, 300),
    others=st.integers(1, 9),
)
@example(begin=0, length=1, count=50, others=1)  # 49 · (1/49) is less than 1 in floats
def test_times_are_spread_as_the_twin_spreads_them(begin, length, count, others):
    offsets = np.array([0, others, others + count])
    times = _equal_steps(offsets, np.array([0, begin]), np.array([SECOND, begin + length]))
    assert times[:others].tolist() == naive.spread(0, SECOND, count=others)
    assert times[others:].tolist() == naive.spread(begin, begin + length, count=count)


# Right answers from elsewhere


@pytest.mark.parametrize("case", GOLDEN, ids=[case["id"] for case in GOLDEN])
def test_a_golden_case_comes_out_as_it_should(case):
    rows = np.array([row[:2] for row in case["input"]], float)
    planar = case["op"] == "promesse_planar"
    traces = Traces.from_arrays(
        *(rows.T if planar else rows.T[::-1]),
        times=np.array([row[2] for row in case["input"]]),
        users=["a"],
        counts=np.array([len(rows)]),
        crs=GRID if planar else "EPSG:4326",
    )
    result = protected(traces, Promesse(case["epsilon_m"], variant=case["variant"]))
    assert result.records == len(case["expected"]) == max(case["n_samples"] - 2, 0)
    for x, y, time, (*wanted, then) in zip(*result.coordinates(), result.times.tolist(), case["expected"], strict=True):
        ours, theirs = ((x, y), wanted) if planar else (naive.on_globe(x, y), naive.on_globe(*wanted[::-1]))
        assert naive.distance(ours, theirs) <= 1e-6
        assert abs(time - then) <= (0 if case["variant"] == "pseudocode" else 1_000)


def test_an_example_by_hand_of_the_polyline_variant():
    # East 6 m in 6 s, north 28 m at half a metre a second, east 24 m in 24 s; epsilon is 10 m.
    walk = on_grid((0, 0, 0), (6, 0, 6), (6, 28, 62), (30, 28, 86))
    # 10 m from (0, 0) the walk is at (6, 8), as 6² + 8² = 10²: after 6 s + 8 m / 0.5 m/s = 22 s. Then straight on:
    # (6, 18) at 42 s, (6, 28) at 62 s, (16, 28) at 72 s, (26, 28) at 82 s. Six samples with (0, 0); the first and
    # the last go. The other four share the 50 s from 22 s to 72 s: a point each 16.666… s, rounded down.
    assert as_records(Promesse(10).protect(walk)) == [
        (6.0, 8.0, 22_000_000_000),
        (6.0, 18.0, 38_666_666_666),
        (6.0, 28.0, 55_333_333_333),
        (16.0, 28.0, 72_000_000_000),
    ]


def test_an_example_by_hand_of_the_pseudocode_variant():
    walk = on_grid((0, 0, 0), (6, 0, 5), (12, 16, 20), (12, 51, 60))
    # (6, 0) is 6 m away: nothing. (12, 16) is 20 m away: samples 10 m and 20 m towards it, straight from (0, 0) and
    # not by way of (6, 0): (6, 8) and (12, 16), both at 20 s. (12, 51) is 35 m further: (12, 26), (12, 36), (12, 46),
    # all at 60 s. The first and the last go; four share the 40 s from 20 s to 60 s.
    result = as_records(Promesse(10, variant="pseudocode").protect(walk))
    assert [time for *_, time in result] == [20_000_000_000, 33_333_333_333, 46_666_666_666, 60_000_000_000]
    places = [(x, y) for x, y, _ in result]
    np.testing.assert_allclose(places, [(6, 8), (12, 16), (12, 26), (12, 36)], rtol=0, atol=1e-12)


# Laws


@given(walk=walks(), variant=variants)
def test_consecutive_points_are_epsilon_apart(walk, variant):
    result = protected(walk.traces(), Promesse(walk.epsilon, variant=variant))
    for gap in gaps(as_points(result)):
        assert gap == pytest.approx(walk.epsilon, rel=1e-7, abs=2e-8)


@given(walk=walks(), variant=variants)
def test_intervals_are_constant_to_a_nanosecond(walk, variant):
    steps = np.diff(protected(walk.traces(), Promesse(walk.epsilon, variant=variant)).times)
    assert len(steps) == 0 or steps.max() - steps.min() <= 1


@given(walk=walks(), variant=variants)
def test_publication_begins_epsilon_away_from_the_true_start(walk, variant):
    traces = walk.traces()
    result = protected(traces, Promesse(walk.epsilon, variant=variant))
    if result.records:
        away = naive.distance(as_points(traces)[0], as_points(result)[0])
        assert away >= walk.epsilon * (1 - 2e-9) - 2e-8


@given(walk=walks(), variant=variants)
def test_published_times_lie_in_the_period_of_the_original(walk, variant):
    result = protected(walk.traces(), Promesse(walk.epsilon, variant=variant))
    assert np.all((walk.times[0] <= result.times) & (result.times <= walk.times[-1]))


@given(walk=walks())
def test_published_points_follow_the_original_polyline(walk):
    traces = walk.traces()
    records = as_points(traces)
    segments = iter(pairwise(records))
    segment = next(segments, None)
    for point in as_points(protected(traces, Promesse(walk.epsilon))):
        while naive.distance_to_segment(point, *segment) > 1e-6:
            segment = next(segments)


@given(walk=walks(), variant=variants, least=st.integers(1, 20))
def test_min_points_drops_traces_with_fewer_points(walk, variant, least):
    every = protected(walk.traces(), Promesse(walk.epsilon, variant=variant))
    enough = protected(walk.traces(), Promesse(walk.epsilon, variant=variant, min_points=least))
    assert enough.records == (every.records if every.records >= least else 0)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("space", ["sphere", "plane"])
@given(
    cuts=st.lists(st.one_of(st.floats(0, 1000), st.integers(0, 10).map(lambda i: 100.0 * i)), max_size=60),
    bearing=st.floats(-math.pi, math.pi),
)
def test_a_straight_kilometre_has_eleven_samples_however_it_is_cut(cuts, bearing, space, variant):
    ways = np.array([0.0, *sorted(cuts), 1000.0])
    if space == "plane":
        x, y = 550_000 + ways * math.sin(bearing), 4_180_000 + ways * math.cos(bearing)
    else:  # along the great circle through (0, 0) in this direction
        arcs = ways / naive.RADIUS
        x = np.degrees(np.arctan2(np.sin(arcs) * math.sin(bearing), np.cos(arcs)))
        y = np.degrees(np.arcsin(np.sin(arcs) * math.cos(bearing)))
    walk = Walk(x, y, np.arange(len(x)) * SECOND, 100.0, space)
    result = Promesse(walk.epsilon, variant=variant).protect(walk.traces())
    assert result.records == 9
    assert np.ptp(gaps(as_points(result))) < 1e-6


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("space", ["sphere", "plane"])
@pytest.mark.parametrize("steps", [1, 2, 10])
def test_a_piece_a_hair_too_short_for_its_last_sample_ends_in_it(steps, space, variant):
    # At 100 km the tolerance is 0.1 mm; half of that is missing. The sample lies in the corner, the next one 100 km
    # from there; were it not counted, the next would be 3 m north of the corner; were it not clamped, 50 µm east.
    epsilon = 1e5
    east, north = steps * epsilon - 5e-5, 3.5 * epsilon
    x, y = np.array([0.0, east, east]), np.array([0.0, 0.0, north])
    if space == "sphere":
        x, y = np.degrees(x / naive.RADIUS), np.degrees(y / naive.RADIUS)
    walk = Walk(x, y, np.arange(3) * SECOND, epsilon, space)
    assert_as_the_twin_says(walk, variant)
    result = Promesse(epsilon, variant=variant).protect(walk.traces())
    assert result.records == steps + 2
    assert naive.distance(as_points(walk.traces())[1], as_points(result)[steps - 1]) <= 1e-6


def test_antipodes_are_joined_by_some_great_circle():
    for x, y in (([0.0, 180.0], [0.0, 0.0]), ([10.0, 10.0], [90.0, -90.0]), ([-70.0, 110.0], [30.0, -30.0])):
        walk = Walk(np.array(x), np.array(y), np.array([0, 3_600 * SECOND]), 1e6, "sphere")
        for variant in VARIANTS:
            result = Promesse(1e6, variant=variant).protect(walk.traces())
            assert result.records == 19  # half the globe is 20,015 km: 21 samples
            np.testing.assert_allclose(gaps(as_points(result)), 1e6, rtol=1e-9)


@pytest.mark.parametrize("off", [1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-2])
@pytest.mark.parametrize("variant", VARIANTS)
def test_points_are_apart_as_they_should_on_the_way_to_near_the_antipode(variant, off):
    walk = Walk(np.array([39.0, off - 141.0]), np.array([-53.0, 53.0]), np.array([0, SECOND]), 1000.0, "sphere")
    ahead = as_points(Promesse(1000.0, variant=variant).protect(walk.traces()))
    np.testing.assert_allclose(gaps(ahead), 1000.0, atol=1e-6)


# Same data, same result


@pytest.mark.compiled
@given(crowd=crowds(), variant=variants, shares=st.integers(2, 20))
def test_any_number_of_threads_gives_the_same_bytes(crowd, variant, shares):
    traces, mechanism = gathered(crowd), Promesse(crowd[0].epsilon, variant=variant)
    one = protected(traces, mechanism)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_LEAST", 1)
        patch.setattr(threads, "number", lambda: shares)
        assert_same_bytes(one, protected(traces, mechanism))


@given(crowd=crowds(), variant=variants, randomly=st.randoms(use_true_random=False))
def test_any_order_of_users_gives_the_same_bytes(crowd, variant, randomly):
    frame = as_frame(crowd)
    mechanism = Promesse(crowd[0].epsilon, variant=variant)
    turns = frame["user"].tolist()
    randomly.shuffle(turns)  # whose record comes next; each user's own order stays
    waiting = {user: iter(np.flatnonzero(frame["user"] == user)) for user in set(turns)}
    mixed = frame.iloc[[next(waiting[user]) for user in turns]]
    assert_same_bytes(*(protected(Traces.from_frame(each, space=crowd[0].space), mechanism) for each in (frame, mixed)))


@given(crowd=crowds(), variant=variants, randomly=st.randoms(use_true_random=False))
def test_any_order_of_rows_gives_the_same_bytes_where_times_are_distinct(crowd, variant, randomly):
    frame = as_frame(crowd)
    frame["time"] += pd.to_timedelta(np.arange(len(frame)), unit="s")
    mechanism = Promesse(crowd[0].epsilon, variant=variant)
    rows = list(range(len(frame)))
    randomly.shuffle(rows)
    assert_same_bytes(
        *(protected(Traces.from_frame(each, space=crowd[0].space), mechanism) for each in (frame, frame.iloc[rows]))
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_unit_of_time_gives_the_same_result(city, variant):
    frames = [city.assign(time=city["time"].dt.floor("s").dt.as_unit(unit)) for unit in ("s", "ms", "us", "ns")]
    first, *others = [Promesse(200, variant=variant).protect(frame) for frame in frames]
    assert first["time"].dt.unit == "ns"
    for other in others:
        pd.testing.assert_frame_equal(pd.DataFrame(first), pd.DataFrame(other))


@pytest.mark.compiled
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("crs", "other"),
    [
        pytest.param("EPSG:4326", "EPSG:3857", id="degrees and world Mercator"),
        pytest.param("EPSG:4326", "EPSG:3395", id="degrees and an ellipsoid's Mercator"),
        pytest.param("EPSG:4807", "EPSG:4275", id="grads from Paris and degrees from Greenwich"),
        pytest.param("EPSG:26943", "EPSG:2227", id="metres and US feet of the same state plane"),
        pytest.param("EPSG:32610", "+proj=utm +zone=10 +datum=WGS84 +units=km", id="metres and kilometres"),
        pytest.param("EPSG:32610", "+proj=utm +zone=10 +datum=WGS84 +units=us-ft", id="metres and US feet of UTM"),
    ],
)
def test_coordinates_of_two_kinds_give_the_same_result(city, variant, crs, other):
    place = city.set_crs("EPSG:4326", allow_override=True)
    if crs == "EPSG:4807":  # France, where that grid is at home
        place = place.set_geometry(place.translate(122.4 + 2.3, 48.8 - 37.7))
    elif crs == "EPSG:26943":
        place = place.set_crs("EPSG:4269", allow_override=True)
    mechanism = Promesse(200, variant=variant)
    one = mechanism.protect(place.to_crs(crs))
    two = mechanism.protect(place.to_crs(other))
    assert one.crs == crs
    assert two.crs == other
    assert one["user"].tolist() == two["user"].tolist()
    late = (one["time"] - two["time"]).abs().max()
    assert late <= pd.Timedelta(10, unit="us")
    one, two = (as_points(Traces.from_frame(frame.to_crs(other))) for frame in (one, two))
    assert max(map(naive.distance, one, two)) <= 1e-6


@given(walk=walks(space="sphere", epsilon=200.0), variant=variants)
def test_a_walk_moved_over_the_antimeridian_gives_the_same_result(walk, variant):
    turned = np.where(walk.x < 0, walk.x + 180.0, walk.x - 180.0)  # exactly half around the axis
    other = Walk(turned, walk.y, walk.times, walk.epsilon, walk.space)
    one, two = (protected(each.traces(), Promesse(walk.epsilon, variant=variant)) for each in (walk, other))
    assert one.records == two.records
    back = two.points * np.array([-1.0, -1.0, 1.0])
    assert all(naive.distance(a, tuple(b)) <= 1e-6 for a, b in zip(as_points(one), back.tolist(), strict=True))


def assert_same_bytes(first: Traces, *others: Traces) -> None:
    for other in others:
        assert first.users.tolist() == other.users.tolist()
        assert first.offsets.tobytes() == other.offsets.tobytes()
        assert first.points.tobytes() == other.points.tobytes()
        assert first.times.tobytes() == other.times.tobytes()


def as_frame(crowd: list[Walk]) -> gpd.GeoDataFrame:
    """Walks as a frame, of users '0', '1' …"""
    x, y, times = (np.concatenate([getattr(walk, name) for walk in crowd]) for name in ("x", "y", "times"))
    users = np.repeat([str(number) for number in range(len(crowd))], [len(walk.x) for walk in crowd])
    return gpd.GeoDataFrame(
        {"user": users, "time": pd.to_datetime(times, utc=True)}, geometry=gpd.points_from_xy(x, y, crs=crowd[0].crs)
    )


# What comes out


@pytest.fixture(scope="module")
def city() -> gpd.GeoDataFrame:
    return pg.make_city(users=3, days=2, recorder="phone")


def test_a_frame_comes_back_as_a_frame_with_user_time_and_geometry(city):
    result = Promesse(200).protect(city.rename(columns={"user": "cab"}), user="cab")
    assert isinstance(result, gpd.GeoDataFrame)
    assert list(result.columns) == ["cab", "time", "geometry"]
    assert result.crs == city.crs
    assert result.index.equals(pd.RangeIndex(len(result)))
    assert result["cab"].is_monotonic_increasing
    assert result["time"].dtype == city["time"].dt.as_unit("ns").dtype


def test_traces_come_back_as_traces(city):
    traces = Traces.from_frame(city.iloc[::-1])
    result = Promesse(200).protect(traces)
    assert isinstance(result, Traces)
    assert result.space == traces.space
    assert result.positions.tolist() == list(range(result.records))
    pd.testing.assert_frame_equal(pd.DataFrame(result.to_frame()), pd.DataFrame(Promesse(200).protect(city)))


def test_the_accessor_smooths_as_the_mechanism_does(city):
    ours = city.promesse.smooth(200, variant="pseudocode", min_points=3)
    pd.testing.assert_frame_equal(
        pd.DataFrame(ours), pd.DataFrame(Promesse(200, variant="pseudocode", min_points=3).protect(city))
    )


def test_the_input_is_not_changed(city):
    traces = Traces.from_frame(city)
    copies = city.copy(deep=True), traces.points.copy(), traces.times.copy()
    Promesse(200).protect(traces)
    Promesse(200).protect(city)
    pd.testing.assert_frame_equal(pd.DataFrame(city), pd.DataFrame(copies[0]))
    assert traces.points.tobytes() == copies[1].tobytes()
    assert traces.times.tobytes() == copies[2].tobytes()


def test_no_records_give_no_records(city):
    result = Promesse(200).protect(city.iloc[:0])
    assert list(result.columns) == ["user", "time", "geometry"]
    assert len(result) == 0


def test_points_on_the_globe_stay_unit_vectors_on_long_traces():
    walk = wandering(2, space="sphere", epsilon=25.0, records=5_000)
    for variant in VARIANTS:
        lengths = np.linalg.norm(Promesse(25, variant=variant).protect(walk.traces()).points, axis=1)
        np.testing.assert_allclose(lengths, 1.0, rtol=0, atol=1e-12)


# Traces that cannot be protected


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("records", "left"),
    [
        pytest.param([(0, 0, 0)], 0, id="one record"),
        pytest.param([(0, 0, 0), (99, 0, 9)], 0, id="one sample"),
        pytest.param([(0, 0, 0), (100, 0, 9)], 0, id="two samples"),
        pytest.param([(0, 0, 0), (199, 0, 9)], 0, id="two samples and a rest"),
        pytest.param([(0, 0, 0), (200, 0, 9)], 1, id="three samples"),
    ],
)
def test_at_most_two_samples_are_dropped(records, left, variant):
    assert protected(on_grid(*records), Promesse(100, variant=variant)).records == left


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_still_trace_is_dropped(variant):
    still = on_grid(*[(7, 7, second) for second in range(50)])
    assert len(protected(still, Promesse(100, variant=variant))) == 0


def test_a_trace_that_cannot_be_protected_has_no_samples():
    still, walk = (on_grid((0, 0, 0), (metres, 0, 60)) for metres in (0, 300))
    for traces, expected in ((still, [0]), (walk, [4])):
        points, counts = Promesse(100).samples(traces)
        assert counts.tolist() == expected
        assert points[:, 0].tolist() == pytest.approx([0.0, 100.0, 200.0, 300.0][: len(points)])
        assert len(points) == sum(expected)


def test_the_prose_of_the_paper_drops_two_points_left_and_keeps_three():
    for metres, left in ((300, 0), (400, 3)):
        walk = on_grid((0, 0, 0), (metres, 0, 60))
        assert protected(walk, Promesse(100, min_points=3)).records == left


def test_dropped_traces_are_counted_in_a_warning():
    far, near = ([0.0, 1000.0], [0.0, 50.0])
    traces = Traces.from_arrays(
        np.array([*far, *near, *near]),
        np.zeros(6),
        times=np.tile([0, SECOND], 3),
        users=["a", "b", "c"],
        counts=np.array([2, 2, 2]),
        crs=GRID,
    )
    with pytest.warns(UserWarning, match="could not be protected") as told:
        result = Promesse(100).protect(traces)
    assert [warning.filename for warning in told] == [__file__]
    assert str(told[0].message).startswith("2 of 3 traces")
    assert result.users.tolist() == ["a"]


def test_the_warning_says_how_many_points_had_to_remain():
    with pytest.warns(UserWarning, match="^1 of 1 trace .* min_points = 5"):
        Promesse(100, min_points=5).protect(on_grid((0, 0, 0), (500, 0, 60)))


def test_nothing_is_said_where_no_trace_is_dropped():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Promesse(100).protect(on_grid((0, 0, 0), (500, 0, 60)))


# Parameters

ABOVE_ZERO = "The 'epsilon' parameter of Promesse must be a finite number of metres above zero. Got {} instead."
IN_RANGE = (
    "The 'epsilon' parameter of Promesse must be between 0.01 and 1,000,000 metres. Got {} instead. Is it in metres?"
)


@pytest.mark.parametrize(
    ("epsilon", "error", "message"),
    [
        (-5, ValueError, ABOVE_ZERO.format("-5")),
        (0, ValueError, ABOVE_ZERO.format("0")),
        (math.nan, ValueError, ABOVE_ZERO.format("nan")),
        (math.inf, ValueError, ABOVE_ZERO.format("inf")),
        (True, TypeError, ABOVE_ZERO.format("True")),
        (np.True_, TypeError, ABOVE_ZERO.format("np.True_")),
        ("200", TypeError, ABOVE_ZERO.format("'200'")),
        (None, TypeError, ABOVE_ZERO.format("None")),
        (200 + 0j, TypeError, ABOVE_ZERO.format("(200+0j)")),
        (Decimal(200), TypeError, ABOVE_ZERO.format("Decimal('200')")),
        (1e-3, ValueError, IN_RANGE.format("0.001")),
        (1e7, ValueError, IN_RANGE.format("10000000.0")),
    ],
)
def test_an_epsilon_that_is_no_distance_is_refused(epsilon, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Promesse(epsilon)


def test_an_epsilon_too_large_for_a_float_is_refused_like_any_other():
    with pytest.raises(ValueError, match="'epsilon' parameter of Promesse must be"):
        Promesse(10**400)


@pytest.mark.parametrize("epsilon", [200, 200.0, np.float32(200), np.int16(200), Fraction(400, 2)])
def test_numbers_of_every_kind_are_accepted(epsilon):
    assert repr(Promesse(epsilon)) == "Promesse(epsilon=200.0, variant='polyline', min_points=1)"


@pytest.mark.parametrize("epsilon", [0.01, 1e6])
def test_the_limits_of_epsilon_are_accepted(epsilon):
    assert Promesse(epsilon).epsilon == epsilon


@pytest.mark.parametrize(
    ("variant", "error"), [("Polyline", ValueError), ("", ValueError), (None, TypeError), (1, TypeError)]
)
def test_an_unknown_variant_is_refused(variant, error):
    message = "The 'variant' parameter of Promesse must be one of 'polyline', 'pseudocode'. Got {!r} instead."
    with pytest.raises(error, match=f"^{re.escape(message.format(variant))}$"):
        Promesse(200, variant=variant)


@pytest.mark.parametrize(
    ("least", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError), (None, TypeError)]
)
def test_a_min_points_that_is_no_count_is_refused(least, error):
    message = "The 'min_points' parameter of Promesse must be a whole number of at least 1. Got {!r} instead."
    with pytest.raises(error, match=f"^{re.escape(message.format(least))}$"):
        Promesse(200, min_points=least)


@pytest.mark.parametrize(
    "mechanism",
    [Promesse(200), Promesse(0.1, variant="pseudocode"), Promesse(np.float64(33.3), min_points=np.int64(3))],
)
def test_the_repr_evaluates_back(mechanism):
    assert eval(repr(mechanism)) == mechanism
    assert hash(eval(repr(mechanism))) == hash(mechanism)


def test_a_mechanism_does_not_change():
    with pytest.raises(FrozenInstanceError):
        Promesse(200).epsilon = 100


def test_its_parameters_may_be_published():
    assert Promesse(200).parameters() == {"epsilon": 200.0, "variant": "polyline", "min_points": 1}


def test_more_points_than_there_can_be_are_just_many():
    city = pg.make_city(users=1, days=1, as_traces=True, recorder="phone")
    with pytest.warns(UserWarning, match="could not be protected"):
        assert len(Promesse(200, min_points=10**18).protect(city)) == 0
