"""Geo-indistinguishability: the distribution, the stream, and what must not show."""

import math
import warnings
from dataclasses import replace

import geopandas as gpd
import naive_noise as naive
import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import texts_of_seeds

import promesse_geo as pg
from promesse_geo import threads
from promesse_geo.kernels import laplace
from promesse_geo.traces.space import EARTH_RADIUS

LEVELS = {"ln10/100": math.log(10) / 100, "ln6/200": math.log(6) / 200, "ln4/200": math.log(4) / 200}
JIT = not numba.config.DISABLE_JIT
DRAWS = 100_000 if JIT else 3_000
GRID = 'LOCAL_CS["grid",UNIT["metre",1]]'


def still(longitude, latitude, records=DRAWS, *, user="a", crs=4326):
    """One trace that stays at a place."""
    return pg.Traces.from_arrays(
        np.full(records, float(longitude)),
        np.full(records, float(latitude)),
        times=np.arange(records) * 10**9,
        users=[user],
        counts=[records],
        crs=crs,
    )


def moves(traces, protected):
    """Metres and bearing of each record's move, by the tangent plane of the first point."""
    here = traces.points[0]
    lengths = 2 * np.arcsin(np.linalg.norm(protected.points - here, axis=1) / 2) * EARTH_RADIUS
    flat = math.hypot(here[0], here[1])
    east = np.array([-here[1], here[0], 0]) / flat
    north = np.cross(here, east)
    return lengths, np.arctan2(protected.points @ east, protected.points @ north) % (2 * np.pi)


@pytest.mark.parametrize(
    ("latitude", "longitude", "level"),  # of these, all pairs
    [
        (latitude, (2.35, 180)[(row + column) % 2], level)
        for row, latitude in enumerate([0, 38, 60, 89.9])
        for column, level in enumerate(LEVELS.values())
    ],
)
def test_radius_and_bearing_are_planar_laplace_wherever_on_the_globe(latitude, longitude, level):
    traces = still(longitude, latitude)
    seed = f"{latitude} {longitude} {level}"
    lengths, bearings = moves(traces, pg.GeoIndistinguishability(level, seed=seed).protect(traces))
    assert stats.kstest(lengths, "gamma", args=(2, 0, 1 / level)).pvalue > 1e-4
    assert stats.kstest(bearings / (2 * np.pi), "uniform").pvalue > 1e-4
    assert abs(stats.spearmanr(lengths, bearings).statistic) < 5 / math.sqrt(DRAWS)


def test_the_noise_is_as_wide_north_as_east():
    traces = still(-122.4, 60)
    lengths, bearings = moves(traces, pg.GeoIndistinguishability(0.01, seed=5).protect(traces))
    north, east = np.abs(lengths * np.cos(bearings)).mean(), np.abs(lengths * np.sin(bearings)).mean()
    assert north / east == pytest.approx(1, abs=6 / math.sqrt(DRAWS))


def test_in_a_plane_the_noise_is_the_same():
    traces = still(1000, 2000, crs=GRID)
    away = pg.GeoIndistinguishability(0.01, seed=6).protect(traces).points - traces.points
    assert stats.kstest(np.hypot(*away.T), "gamma", args=(2, 0, 100)).pvalue > 1e-4
    assert stats.kstest(np.arctan2(*away.T) / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-4


@given(
    seed=st.one_of(st.integers(-5, 5), texts_of_seeds),
    user=st.one_of(st.integers(), st.text("abcé-", max_size=6)),
    longitude=st.floats(-180, 180),
    latitude=st.floats(-89, 89),
    epsilon=st.floats(1e-4, 1),
    grid=st.one_of(st.none(), st.floats(0.5, 500)),
)
def test_it_equals_its_slow_twin(seed, user, longitude, latitude, epsilon, grid):
    traces = still(longitude, latitude, 3, user=user)
    protected = pg.GeoIndistinguishability(epsilon, grid=grid, seed=seed).protect(traces)
    name = naive.trace_name(user, 0, epsilon, grid)
    for index, point in enumerate(protected.points):
        bearing, radius = naive.draw(naive.noise_key(seed), name, index)
        place = naive.destination(longitude, latitude, bearing, radius / epsilon)
        if grid is None:
            expected = traces.space.points(*(np.array([axis]) for axis in place))[0]
            assert np.linalg.norm(point - expected) * EARTH_RADIUS < 1e-6
        else:
            expected = traces.space.points(*(np.array([axis]) for axis in naive.rounded(*place, grid)))[0]
            assert np.linalg.norm(point - expected) * EARTH_RADIUS < 1e-6 or on_an_edge(place, grid)


def on_an_edge(place, grid) -> bool:
    """Whether rounding a place hangs on its last digits."""
    near = {naive.rounded(place[0] + dx, place[1] + dy, grid) for dx in (-1e-9, 1e-9) for dy in (-1e-9, 1e-9)}
    return len(near) > 1


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=5, days=1, as_traces=True, recorder="phone")


@pytest.mark.parametrize("crs", [4326, GRID])
@pytest.mark.parametrize("grid", [None, 50])
def test_many_seeds_at_once_give_the_noise_of_each(crs, grid):
    city = pg.make_city(users=3, days=1, recorder="phone").iloc[::50]
    traces = pg.Traces.from_arrays(
        city.geometry.x,
        city.geometry.y,
        times=np.arange(len(city)) * 10**9,
        users=[*"ab"],
        counts=[40, len(city) - 40],
        crs=crs,
    )
    mechanism = pg.GeoIndistinguishability(0.01, grid=grid)
    seeds = [0, 7, "2026", "a long sentence"]
    points = mechanism.points_with_seeds(traces, seeds)
    for seed, expected in zip(seeds, points, strict=True):
        assert np.array_equal(replace(mechanism, seed=seed).protect(traces).points, expected)


def as_bytes(frame_or_traces):
    traces = frame_or_traces if isinstance(frame_or_traces, pg.Traces) else pg.Traces.from_frame(frame_or_traces)
    return traces.points.tobytes(), traces.times.tobytes(), traces.users.tolist()


def test_the_same_seed_gives_the_same_bytes_whatever_the_order_of_users(city):
    frame = city.to_frame()
    safe = frame.promesse.geo_indistinguishability(0.01, seed=3)
    groups = [group for _, group in frame.groupby("user")]
    turned = pd.concat(groups[::-1], ignore_index=True)
    assert as_bytes(turned.promesse.geo_indistinguishability(0.01, seed=3)) == as_bytes(safe)
    assert as_bytes(frame.sample(frac=1, random_state=0).promesse.geo_indistinguishability(0.01, seed=3)) == as_bytes(
        safe
    )


def test_one_user_at_a_time_gives_the_same_as_all_at_once(city):
    mechanism = pg.GeoIndistinguishability(0.01, seed=3)
    together = mechanism.protect(city)
    parts = [mechanism.protect(city.select(city.trace_numbers == number)).points for number in range(len(city))]
    assert np.concatenate(parts).tobytes() == together.points.tobytes()


def test_any_number_of_threads_gives_the_same_bytes(city, monkeypatch):
    one = as_bytes(pg.GeoIndistinguishability(0.01, seed=3).protect(city))
    monkeypatch.setattr(threads, "_LEAST", 1)
    for number in (2, 7):
        monkeypatch.setattr(threads, "number", lambda number=number: number)
        assert as_bytes(pg.GeoIndistinguishability(0.01, seed=3).protect(city)) == one


def test_blocks_drawn_in_several_goes_are_the_same(city, monkeypatch):
    whole = pg.GeoIndistinguishability(0.01, seed=3).protect(city)
    monkeypatch.setattr("promesse_geo.mechanisms.geo_indistinguishability._BLOCKS", 977)
    assert as_bytes(pg.GeoIndistinguishability(0.01, seed=3).protect(city)) == as_bytes(whole)


def words(mechanism, traces):
    """The random numbers behind the moves: radius in units of 1/ε and bearing."""
    lengths, bearings = moves(traces, mechanism.protect(traces))
    return np.round(lengths * mechanism.epsilon, 6), np.round(bearings, 6)


def test_two_levels_with_one_seed_share_no_draws():
    traces = still(4.8, 45.7, 2_000)
    (near, turn), (far, other) = (words(pg.GeoIndistinguishability(level, seed=1), traces) for level in (0.01, 0.02))
    assert np.mean(near == far) < 0.001
    assert np.mean(turn == other) < 0.001
    assert abs(stats.pearsonr(near, far).statistic) < 0.15


@pytest.mark.parametrize("other", [{"user": "b"}, {"records": 2_000, "latitude": 45.7}])
def test_another_user_or_grid_draws_anew(other):
    traces = still(4.8, 45.7, 2_000)
    first = words(pg.GeoIndistinguishability(0.01, seed=1), traces)[0]
    if "user" in other:
        second = words(pg.GeoIndistinguishability(0.01, seed=1), still(4.8, 45.7, 2_000, user="b"))[0]
    else:
        second = words(pg.GeoIndistinguishability(0.01, grid=1e-3, seed=1), traces)[0]
    assert np.mean(np.abs(first - second) < 1e-4) < 0.01


def test_without_a_seed_two_runs_differ(city):
    mechanism = pg.GeoIndistinguishability(0.01)
    assert as_bytes(mechanism.protect(city)) != as_bytes(mechanism.protect(city))


def test_times_units_zones_and_counts_stay():
    frame = pg.make_city(users=2, days=1, recorder="phone")
    frame["time"] = frame["time"].dt.tz_convert("Europe/Paris").dt.as_unit("s")
    safe = frame.promesse.geo_indistinguishability(0.01)
    assert safe["time"].dtype == frame["time"].dtype
    assert safe["time"].tolist() == frame["time"].tolist()
    assert safe["user"].tolist() == frame["user"].tolist()
    assert isinstance(safe, gpd.GeoDataFrame)
    assert safe.crs == frame.crs


def test_a_grid_leaves_few_places():
    traces = still(4.8, 45.7, 5_000)
    protected = pg.GeoIndistinguishability(0.1, grid=10, seed=1).protect(traces)
    latitudes = protected.coordinates()[1]
    steps = latitudes / math.degrees(10 / EARTH_RADIUS)
    assert np.abs(steps - np.rint(steps)).max() < 1e-5
    assert len(np.unique(np.round(protected.points, 10), axis=0)) < 1_000


def test_at_a_pole_it_moves_all_the_same():
    protected = pg.GeoIndistinguishability(0.01, seed=1, grid=50).protect(still(10, 90, 500))
    away = np.arccos(np.clip(protected.points[:, 2], -1, 1)) * EARTH_RADIUS
    assert away.mean() == pytest.approx(200, rel=0.2)
    assert np.isfinite(protected.points).all()


def test_the_seed_shows_nowhere(tmp_path, capfd):
    secret = 31_415_926_535
    mechanism = pg.GeoIndistinguishability(0.01, seed=secret)
    city = pg.make_city(users=2, days=1, recorder="phone")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        safe = mechanism.protect(city)
        for ending in ("parquet", "gpkg", "csv", "geojson"):
            pg.write(safe, tmp_path / f"safe.{ending}", mechanism=mechanism)
            assert str(secret).encode() not in (tmp_path / f"safe.{ending}").read_bytes()
    shown = repr(mechanism) + str(mechanism.parameters()) + str(told) + "".join(capfd.readouterr())
    assert str(secret) not in shown
    assert eval(repr(mechanism), {"GeoIndistinguishability": pg.GeoIndistinguishability}).epsilon == 0.01
    with pytest.raises(TypeError) as error:
        pg.GeoIndistinguishability(0.01, seed=3.14159)
    assert "3.14159" not in str(error.value)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, 1e9, "0.01", True, None])
def test_a_wrong_level_is_refused(epsilon):
    with pytest.raises((TypeError, ValueError), match="'epsilon' parameter of GeoIndistinguishability"):
        pg.GeoIndistinguishability(epsilon)


def test_a_level_at_a_radius():
    assert pg.GeoIndistinguishability.from_level(4, radius=200).epsilon == math.log(4) / 200
    with pytest.raises(ValueError, match="'level' parameter"):
        pg.GeoIndistinguishability.from_level(1, radius=200)
    with pytest.raises(ValueError, match="'radius' parameter"):
        pg.GeoIndistinguishability.from_level(4, radius=0)


def test_an_example_by_hand():
    """Bits 0…0 draw: bearing 0, u₁ = u₂ = 2⁻⁴³, radius 86 ln 2 = 59.6 in units of 1/ε: nobody moves farther."""
    bearing, radius = laplace._draw(np.zeros((1, 2), np.uint64), 0)
    assert bearing == 0
    assert radius == pytest.approx(86 * math.log(2))


def test_nothing_in_gives_nothing_out():
    empty = pg.make_city(users=1, days=1, as_traces=True, recorder="phone")
    empty = empty.select(np.zeros(empty.records, bool))
    assert pg.GeoIndistinguishability(0.01).protect(empty).records == 0


def test_a_grid_has_one_name_for_the_antimeridian():
    frame = gpd.GeoDataFrame(
        {"user": "a", "time": pd.date_range("2024-01-01", periods=400, freq="min", tz="UTC")},
        geometry=gpd.points_from_xy(np.full(400, 180.0), np.zeros(400)),
        crs=4326,
    )
    safe = pg.GeoIndistinguishability(0.01, grid=EARTH_RADIUS * math.radians(5), seed=1).protect(frame)
    assert set(safe.geometry.x) == {180.0}


def test_noise_that_could_go_round_the_globe_is_refused():
    with pytest.raises(ValueError, match="between 3e-06 and 10"):
        pg.GeoIndistinguishability(1e-6)
    farthest = 86 * math.log(2)  # two numbers of at least half of 2^-42
    assert farthest / 3e-6 < math.pi * EARTH_RADIUS
