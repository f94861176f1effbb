"""The adaptive attack: an example by hand, laws, and the plain twins of what it averages and estimates."""

import math
from dataclasses import replace

import naive
import naive_attacks as twin
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from strategies import SECOND, crowds, gathered

import promesse_geo as pg
from promesse_geo import AdaptivePoiRetrieval, PoiRetrieval, Traces
from promesse_geo import stays as pois
from promesse_geo.kernels import poi_inference
from promesse_geo.metrics.attacks import adaptive_poi_retrieval

GRID = "EPSG:32610"
NOISY = AdaptivePoiRetrieval(kind="geo-indistinguishability")


def on_grid(points, *, every=60, users=("a",)):
    """Users' records in the plane, one after the other at equal times."""
    x, y = np.concatenate(points).T
    times = np.concatenate([np.arange(len(own)) for own in points]) * every * SECOND
    return Traces.from_arrays(
        x, y, times=times, users=list(users), counts=[len(own) for own in points], crs=GRID, space="plane"
    )


def planar_laplace(records, *, epsilon, seed=0):
    rng = np.random.default_rng(seed)
    radius, turn = rng.gamma(2, 1 / epsilon, records), rng.uniform(0, 2 * math.pi, records)
    return np.column_stack((radius * np.cos(turn), radius * np.sin(turn)))


def test_an_attack_by_hand():
    # Two hours each at (0, 0) and at (5,000, 0), published with noise of 100 m on average.
    still = np.repeat([[0.0, 0.0], [5_000.0, 0.0]], 120, axis=0)
    before, after = on_grid([still]), on_grid([still + planar_laplace(240, epsilon=0.02, seed=1)])
    assert NOISY.noise(after) == pytest.approx(100, rel=0.2)
    assert PoiRetrieval().detail(before, after).matched.tolist() == [0]
    assert NOISY.detail(before, after).loc["a"].tolist() == [2, 2, 2, 1, 1, 1]


@pytest.mark.parametrize("space", ["sphere", "plane"])
def test_a_centre_has_the_least_sum_of_distances(space):
    noise = planar_laplace(301, epsilon=0.01)
    if space == "sphere":
        traces = Traces.from_arrays(
            *(noise / 111_195 + [179.999, 0.0]).T, times=np.arange(301), users=["a"], counts=[301]
        )
    else:
        traces = on_grid([noise])
    centres = np.empty((1, traces.space.dimension))
    scale = traces.space.scale
    runs = np.array([0]), np.array([301])
    poi_inference.find_centres(traces.points, *runs, 1 / scale, traces.space.curvature, 0, 1, centres)

    def total(point):
        return float(np.sqrt(((traces.points - point) ** 2).sum(axis=1) * scale**2 + 1).sum())

    for axis in range(traces.space.dimension):
        for metres in (-1, 1):
            beside = centres[0].copy()
            beside[axis] += metres / scale
            beside /= np.linalg.norm(beside) if space == "sphere" else 1
            assert total(centres[0]) <= total(beside) + 1e-6
    if space == "plane":  # nearer to the truth than the mean, as it should be for this noise
        assert np.linalg.norm(centres[0]) < 12


def test_one_far_record_does_not_draw_the_centre():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [900.0, 0.0]])
    centres = np.empty((1, 2))
    poi_inference.find_centres(points, np.array([0]), np.array([6]), 1.0, 0.0, 0, 1, centres)
    assert np.abs(centres).max() < 1


@given(crowds())
def test_averages_are_those_of_the_plain_twin(crowd):
    traces, half = gathered(crowd), 90 * SECOND
    means, counts = np.empty_like(traces.points), np.empty(traces.records, np.int64)
    poi_inference.average_in_time(
        *(traces.points, traces.times, traces.offsets, half, traces.space.curvature, 0, len(traces), means, counts)
    )
    for begin, end in zip(traces.offsets[:-1], traces.offsets[1:], strict=True):
        own = list(zip(map(tuple, traces.points[begin:end].tolist()), traces.times[begin:end].tolist(), strict=True))
        expected = twin.average(own, half=half)
        assert counts[begin:end].tolist() == [count for _, count in expected]
        assert means[begin:end] == pytest.approx(np.array([mean for mean, _ in expected]), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("space", ["sphere", "plane"])
def test_the_noise_estimated_is_that_of_the_plain_twin(space):
    rng = np.random.default_rng(5)
    ways = [np.cumsum(rng.normal(0, 30, (size, 2)) * rng.choice([0.3, 1], (size, 1)), axis=0) for size in (40, 90, 3)]
    times = [np.cumsum(rng.choice([20, 60, 110, 400], size, p=[0.3, 0.4, 0.25, 0.05])) for size in (40, 90, 3)]
    x, y = np.concatenate(ways).T
    if space == "sphere":
        x, y = x / 111_195 + 12, y / 111_195 + 50
    traces = Traces.from_arrays(
        x,
        y,
        times=np.concatenate(times) * SECOND,
        users=["a", "b", "c"],
        counts=[40, 90, 3],
        crs=4326 if space == "sphere" else GRID,
        space=space,
    )
    records = list(zip(map(tuple, traces.points.tolist()), traces.times.tolist(), strict=True))
    own = [records[begin:end] for begin, end in zip(traces.offsets[:-1], traces.offsets[1:], strict=True)]
    for duration in (900, 3_600):
        metric = AdaptivePoiRetrieval(kind="geo-indistinguishability", duration=duration)
        expected = twin.noise(own, short=duration * SECOND // 8)
        assert metric.noise(traces) == pytest.approx(expected, rel=1e-6)
        assert (expected > 0) == (duration == 3_600)  # with shorter intervals there are too few in a row


@pytest.mark.parametrize("block", [7, 1 << 14])
@pytest.mark.parametrize("most", [20, 150, 1_000])  # every 20th, every second and all of the medians
def test_medians_of_second_differences_are_those_of_a_plain_loop(most, block, monkeypatch):
    monkeypatch.setattr(adaptive_poi_retrieval, "_MOST", most)
    monkeypatch.setattr(adaptive_poi_retrieval, "_BLOCK", block)
    rng = np.random.default_rng(3)
    traces = on_grid([rng.normal(0, 9, (250, 2)), rng.normal(0, 9, (160, 2))], users=("a", "b"))
    times = traces.times + np.where(np.arange(410) >= 120, 900, 0) * SECOND  # a pause of the first user
    traces = replace(traces, times=np.where(np.arange(410) < 250, times, traces.times))
    lengths = np.linalg.norm(traces.points[:-2] - 2 * traces.points[1:-1] + traces.points[2:], axis=1)
    close = np.diff(traces.times) <= 60 * SECOND
    close[249] = False
    firsts = range(0, 394, max(1, 408 // most))
    expected = [np.median(lengths[first : first + 15]) for first in firsts if close[first : first + 16].all()]
    found = adaptive_poi_retrieval._medians_of_bends(traces, short=60 * SECOND)
    assert found.tolist() == expected


@pytest.mark.parametrize("epsilon", [0.05, 0.01, 0.003])
def test_the_noise_is_estimated_from_protected_data_alone(epsilon):
    city = pg.make_city(users=6, days=3, seed=2, as_traces=True, recorder="phone")
    noisy = pg.GeoIndistinguishability(epsilon, seed=1).protect(city)
    assert NOISY.noise(noisy) == pytest.approx(2 / epsilon, rel=0.25)
    assert NOISY.noise(noisy.to_frame()) == pytest.approx(NOISY.noise(noisy), rel=1e-6)


def test_the_laws_are_those_of_planar_laplace_noise():
    steps = planar_laplace(200_000, epsilon=1.0)
    bends = np.linalg.norm(steps[:-2] - 2 * steps[1:-1] + steps[2:], axis=1)
    rows = np.lib.stride_tricks.sliding_window_view(bends, 15)
    assert np.quantile(np.median(rows, axis=1), 0.03) == pytest.approx(2.69, rel=0.01)
    assert np.quantile(np.linalg.norm(np.diff(steps, axis=0), axis=1), 0.05) == pytest.approx(0.649, rel=0.02)


@pytest.mark.parametrize(
    ("seconds", "left"),
    [
        (np.full(2_000, 60), 1 / 5),  # five records within 150 s
        (np.repeat([60, 10], [300, 1_800]), (1 / 5 + 1 / 31) / 2),  # five hours each
    ],
    ids=["even", "five hours dense, five hours sparse"],
)
def test_the_diameter_is_wider_by_three_deviations_of_the_noise_left_over_time(seconds, left, monkeypatch):
    noise = planar_laplace(len(seconds), epsilon=0.01, seed=1)
    times = np.cumsum(seconds) * SECOND
    noisy = Traces.from_arrays(*noise.T, times=times, users=["a"], counts=[len(times)], crs=GRID, space="plane")
    searched = []

    def find_pois(traces, *, diameter, duration):
        searched.append(diameter)
        return pois.find_pois(traces, diameter=diameter, duration=duration)

    monkeypatch.setattr(adaptive_poi_retrieval, "find_pois", find_pois)
    NOISY.detail(noisy, noisy)
    one_axis = NOISY.noise(noisy) / 2 * planar_laplace(200_000, epsilon=1)[:, 0].std()
    assert searched == [pytest.approx(200 + 3 * one_axis * math.sqrt(left), rel=0.02)]


@pytest.mark.compiled
@pytest.mark.parametrize("epsilon", [0.025, 0.01, 0.005])
def test_more_is_found_than_by_the_attack_of_the_paper(epsilon):
    city = pg.make_city(users=6, days=3, seed=2, as_traces=True, recorder="phone")
    noisy = pg.GeoIndistinguishability(epsilon, seed=1).protect(city)
    adaptive, fixed = (metric.measure(city, noisy) for metric in (NOISY, PoiRetrieval()))
    assert adaptive > 1.4 * fixed


@pytest.mark.parametrize("kind", ["geo-indistinguishability", "none", "promesse", "wait-for-me"])
def test_without_noise_it_is_the_attack_of_the_paper(kind):
    city = pg.make_city(users=4, days=2, seed=3, recorder="phone")
    metric = AdaptivePoiRetrieval(kind=kind)
    safe = city if kind == "geo-indistinguishability" else city.promesse.geo_indistinguishability(0.02, seed=1)
    pd.testing.assert_frame_equal(metric.detail(city, safe), PoiRetrieval().detail(city, safe))
    assert (metric.noise(safe) == 0) == (kind != "geo-indistinguishability")


@pytest.mark.parametrize(("share", "is_averaged"), [(0.099, False), (0.101, True)])
def test_noise_below_a_tenth_of_the_diameter_is_not_averaged(share, is_averaged, monkeypatch):
    noisy = on_grid([planar_laplace(2_000, epsilon=0.1, seed=1)])
    averaged = []

    def find_pois(traces, **stay):
        averaged.append(stay)
        return pois.find_pois(traces, **stay)

    monkeypatch.setattr(adaptive_poi_retrieval, "find_pois", find_pois)
    AdaptivePoiRetrieval(diameter=NOISY.noise(noisy) / share, kind=NOISY.kind).detail(noisy, noisy)
    assert len(averaged) == is_averaged


def test_ways_without_records_at_rest_are_not_taken_for_noise():
    # A driver recorded every minute, turning at every corner, whose device is off in the hour at each of 40 stops.
    rng = np.random.default_rng(1)
    moves = rng.choice([-400.0, 400.0], (1_000, 2)) * np.eye(2)[rng.integers(0, 2, 1_000)]
    stops = np.arange(1_000) % 12 == 11
    moves[stops] = 0
    times = np.cumsum(np.where(stops, 3_600, 60)) * SECOND
    way = np.cumsum(moves, axis=0)
    car = Traces.from_arrays(*way.T, times=times, users=["a"], counts=[1_000], crs=GRID, space="plane")
    assert NOISY.detail(car, car).equals(PoiRetrieval().detail(car, car))
    assert PoiRetrieval().detail(car, car).original_pois.item() > 40


@pytest.mark.parametrize("records", [0, 1, 2, 16, 17, 40])
def test_too_little_data_has_no_estimate(records):
    traces = (
        on_grid([planar_laplace(records, epsilon=0.01)]) if records else pg.make_city(1, 1, recorder="phone").iloc[:0]
    )
    assert NOISY.noise(traces) == 0
    assert NOISY.detail(traces, traces).equals(PoiRetrieval().detail(traces, traces))


@pytest.mark.parametrize(("records", "is_estimated"), [(16, False), (17, True)])
def test_second_differences_end_with_their_trace(records, is_estimated):
    noisy = on_grid([planar_laplace(records, epsilon=0.01)] * 40, users=range(40))
    assert (NOISY.noise(noisy) > 0) == is_estimated


def test_a_metric_shows_itself_as_one_can_write_it():
    metric = AdaptivePoiRetrieval(kind="promesse", duration=pd.Timedelta("20min"))
    assert eval(repr(metric), vars(pg)) == metric
    with pytest.raises(ValueError, match="'kind' parameter of AdaptivePoiRetrieval must be one of 'geo"):
        AdaptivePoiRetrieval(kind="noise")
    with pytest.raises(ValueError, match="'diameter' parameter of AdaptivePoiRetrieval"):
        AdaptivePoiRetrieval(kind="none", diameter=0)
    with pytest.raises(TypeError):
        AdaptivePoiRetrieval()


@pytest.mark.compiled
def test_threads_do_not_matter(monkeypatch):
    city = pg.make_city(users=6, days=2, seed=2, as_traces=True, recorder="phone")
    noisy = pg.GeoIndistinguishability(0.01, seed=1).protect(city)
    tables = []
    for threads in ("1", "2"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
        tables.append(NOISY.detail(city, noisy))
    assert tables[0].equals(tables[1])


def test_what_points_on_the_globe_average_to_is_on_the_globe():
    way = [naive.on_globe(179.99 + number / 1000, 60) for number in range(5)]
    (mean, count), *_ = twin.average([(point, 0) for point in way], half=1)
    assert count == 5
    assert math.hypot(*mean) == pytest.approx(1, abs=1e-12)
