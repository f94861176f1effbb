"""Spatial error, range queries and compression: laws, golden cases, examples by hand, and plain twins."""

import json
import math
import pickle
import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import geopandas as gpd
import naive
import naive_metrics as twin
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import METRICS
from shapely import Point
from strategies import SECOND, Walk, crowds, gathered, moved, turns

import promesse_geo as pg
from promesse_geo import AreaCoverage, Compression, RangeQueryDistortion, SpatialError, Traces
from promesse_geo.metrics.utility import range_queries
from promesse_geo.traces.space import EARTH_RADIUS

GRID = "EPSG:32610"
HOUR = 3_600 * SECOND
GOLDEN = json.loads((Path(__file__).parent / "data" / "cases_metrics.json").read_text())["cases"]

every_metric = pytest.mark.parametrize("metric", METRICS, ids=[type(metric).__name__ for metric in METRICS])


def golden(op):
    cases = [case for case in GOLDEN if case["op"] == op]
    return pytest.mark.parametrize("case", cases, ids=[case["id"] for case in cases])


def on_grid(*walks):
    """Traces of users a, b, … in the plane, from (x, y, seconds)."""
    rows = np.array([row for walk in walks for row in walk], float).reshape(-1, 3)
    return Traces.from_arrays(
        rows[:, 0],
        rows[:, 1],
        times=(rows[:, 2] * SECOND).astype(np.int64),
        users=[chr(ord("a") + user) for user in range(len(walks))],
        counts=np.array([len(walk) for walk in walks], int),
        crs=GRID,
        space="plane",
    )


def on_globe(rows, users=("a",), counts=None):
    """Traces from (latitude, longitude) or (latitude, longitude, ns)."""
    table = np.array([row[:2] for row in rows], float)
    times = np.array([row[2] if len(row) > 2 else 0 for row in rows], np.int64)
    counts = [len(rows)] if counts is None else counts
    return Traces.from_arrays(table[:, 1], table[:, 0], times=times, users=list(users), counts=np.array(counts))


def own(rows, crs=GRID, zone="UTC"):
    """Queries from (x, y, half_side, start, end), times in ns."""
    x, y, half_side, start, end = zip(*rows, strict=True)
    times = {name: pd.DatetimeIndex(np.array(t, "M8[ns]"), tz=zone) for name, t in (("start", start), ("end", end))}
    return gpd.GeoDataFrame(
        {"half_side": np.array(half_side, float), **times}, geometry=gpd.points_from_xy(x, y), crs=crs
    )


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=4, days=1, seed=3, recorder="phone")


# The contract


@every_metric
def test_a_metric_compares_frames_and_traces_alike(metric, city):
    safe = city.promesse.smooth(200)
    frames = metric.detail(city, safe)
    traces = metric.detail(Traces.from_frame(city), Traces.from_frame(safe))
    assert len(frames) == len(traces) > 0
    assert metric.value(frames) == pytest.approx(metric.value(traces), rel=1e-12)
    assert np.array_equal(
        frames.to_numpy()[:, -1] if frames.ndim > 1 else frames, traces.to_numpy()[:, -1] if frames.ndim > 1 else traces
    )


@pytest.mark.compiled
@every_metric
def test_the_measure_is_the_value_of_the_detail(metric, city):
    safe = city.promesse.geo_indistinguishability(0.01, seed=1)
    assert metric.measure(city, safe) == metric.value(metric.detail(city, safe))
    other, renamed = (frame.rename(columns={"user": "cab", "time": "stamp"}) for frame in (city, safe))
    assert metric.measure(other, renamed, user="cab", time="stamp") == metric.measure(city, safe)


@pytest.mark.parametrize(
    ("name", "label"), [("Delay", "delay"), ("GPSError", "GPS error"), ("MeanPoiDistance", "mean poi distance")]
)
def test_a_metric_without_a_label_is_named_after_its_class(name, label):
    assert type(name, (Compression,), {}).label == label
    assert type(name, (Compression,), {"label": "other"}).label == "other"


@pytest.mark.compiled
@every_metric
def test_an_index_serves_every_protected_version(metric, city):
    index = metric.index(city)
    for safe in (city.promesse.smooth(200), city.promesse.geo_indistinguishability(0.01, seed=1)):
        assert metric.detail(city, safe, index=index).equals(metric.detail(city, safe))


@pytest.mark.compiled
@every_metric
def test_an_index_of_other_data_or_of_another_metric_is_refused(metric, city):
    traces = Traces.from_frame(city)
    middle = traces.records // 8
    points = traces.points.copy()
    points[middle, 0] += 1e-9
    moved_by_a_bit = replace(traces, points=points)
    others = pg.make_city(users=3, days=1, seed=8, recorder="phone"), city.iloc[:-1], city.to_crs(32631), moved_by_a_bit
    for other in others:
        with pytest.raises(ValueError, match=rf"'index' parameter of {type(metric).__name__} was made from other"):
            metric.detail(traces, traces, index=metric.index(other))
    with pytest.raises(TypeError, match=r"must be an index\. Got a value of type tuple and length 0 instead"):
        metric.detail(traces, traces, index=())
    stranger = AreaCoverage(300) if isinstance(metric, Compression) else Compression()
    with pytest.raises(ValueError, match="was made by a metric with other parameters"):
        metric.detail(traces, traces, index=stranger.index(traces))


def test_an_index_of_other_data_projects_nothing(city):
    metric = SpatialError()
    assert len(metric.project(city, city, index=metric.index(city))) == len(city)
    with pytest.raises(ValueError, match="made from other original data"):
        metric.project(city, city, index=metric.index(city.iloc[:9]))


def test_an_index_of_data_in_another_order_is_refused():
    def day(*places) -> gpd.GeoDataFrame:
        x, y = np.repeat(places, 20, axis=0).T
        times = pd.date_range("2024-01-01", periods=len(x), freq="10min", tz="UTC")
        return gpd.GeoDataFrame({"user": "a", "time": times}, geometry=gpd.points_from_xy(x, y), crs=4326)

    home, work = (6.62, 46.52), (6.57, 46.50)
    metric = pg.SpatialError()
    one, other = day(home, work, work, home), day(work, home, home, work)
    metric.detail(one, one, index=metric.index(one))
    with pytest.raises(ValueError, match="made from other original data"):
        metric.detail(one, one, index=metric.index(other))
    plane = [
        day(*((500_010 + x, 5e6) for x in walk)).set_crs(32632, allow_override=True) for walk in ((0, 10, 0), (2, 6, 2))
    ]
    with pytest.raises(ValueError, match="made from other original data"):
        metric.detail(plane[0], plane[0], index=metric.index(plane[1]))


def test_a_foot_without_a_place_in_the_published_crs_is_told():
    west = gpd.GeoDataFrame(
        {"user": ["a", "a"], "time": pd.date_range("2024-01-01", periods=2, freq="1h", tz="UTC")},
        geometry=gpd.points_from_xy([-80.0, -79.0], [10.0, 10.0]),
        crs=4326,
    )
    east = west.set_geometry(gpd.points_from_xy([100.0, 101.0], [10.0, 10.0])).set_crs(4326)
    with pytest.raises(ValueError, match=r"2 projected points of 2 cannot be placed in the CRS of the protected data"):
        pg.SpatialError().project(west, east.to_crs("+proj=gnom +lat_0=10 +lon_0=100"))


@pytest.mark.compiled
@every_metric
def test_an_index_can_be_kept_in_a_file(metric, city):
    kept, index = pickle.loads(pickle.dumps((metric, metric.index(city))))
    assert kept.detail(city, city, index=index).equals(metric.detail(city, city, index=metric.index(city)))


@every_metric
def test_a_metric_cannot_be_changed_and_shows_its_parameters(metric):
    shown = eval(repr(metric), vars(pg))
    assert replace(shown, **({"seed": 1} if "seed" in vars(metric) else {})) == metric
    assert hash(metric) == hash(replace(metric))
    with pytest.raises(FrozenInstanceError):
        metric.unit = "feet"


@pytest.mark.compiled
@every_metric
def test_order_of_rows_and_crs_do_not_matter(metric, city):
    safe = city.promesse.geo_indistinguishability(0.01, seed=1)
    whole = metric.detail(city, safe)
    shuffled, turned = city.sample(frac=1, random_state=1), safe.sample(frac=1, random_state=2)
    # Each user's records at distinct times: the traces are the same, whatever the rows' order.
    other = metric.detail(shuffled, turned.to_crs(32631))
    assert metric.value(other) == pytest.approx(metric.value(whole), rel=1e-6)
    if metric.per_record:
        assert other.index.equals(turned.index)
        assert np.allclose(other.loc[whole.index], whole, atol=1e-5)


@every_metric
def test_nothing_protected_gives_a_typed_empty_or_full_result(metric, city):
    safe = city.promesse.smooth(200)
    full, empty = metric.detail(city, safe), metric.detail(city, safe.iloc[:0])
    assert list(empty.dtypes) == list(full.dtypes) if full.ndim > 1 else empty.dtype == full.dtype
    assert len(empty) == (0 if metric.per_record else len(full))
    value = metric.value(empty)
    assert isinstance(value, float)
    if METRICS[metric].dropped is not None:
        assert value == pytest.approx(METRICS[metric].dropped, nan_ok=True)


@every_metric
def test_two_empty_data_sets_give_a_typed_empty_result(metric, city):
    nothing = city.iloc[:0]
    full, empty = metric.detail(city, city), metric.detail(nothing, nothing)
    assert len(empty) == 0
    assert list(empty.dtypes) == list(full.dtypes) if full.ndim > 1 else empty.dtype == full.dtype
    assert math.isnan(metric.value(empty))
    bare = gpd.GeoDataFrame({"user": [], "time": []}, geometry=[], crs=4326)
    assert math.isnan(metric.measure(bare, nothing))


@every_metric
def test_a_user_that_the_original_lacks_is_counted_and_its_first_row_named(metric):
    original = on_grid([(0, 0, 0), (10, 0, 1)], [(0, 0, 0)])
    protected = on_grid([(0, 0, 0)], [(0, 0, 0)], [(1, 1, 1), (2, 2, 2)])
    with pytest.raises(ValueError, match=r"lacks 1 of the 3 users .*first in row 2, counted from 0"):
        metric.detail(original, protected)


@every_metric
def test_when_no_user_is_known_the_way_is_named(metric, city):
    renamed = city.promesse.pseudonymize(seed=1)
    with pytest.raises(
        ValueError, match=r"has none of the 4 users .*first in row 0.*Prepare the\s+original first, protect"
    ):
        metric.detail(city, renamed)


@every_metric
def test_times_with_and_without_a_zone_are_refused(metric, city):
    naive_times = city.assign(time=city.time.dt.tz_localize(None))
    with pytest.raises(ValueError, match="time zone"):
        metric.detail(city, naive_times)


@every_metric
def test_the_same_data_loses_nothing(metric, city):
    value = metric.measure(city, city)
    assert isinstance(value, float)
    if METRICS[metric].same is not None:
        assert value == pytest.approx(METRICS[metric].same, abs=1e-6)


def test_columns_have_the_names_given(city):
    other = city.rename(columns={"user": "cab", "time": "stamp"}).promesse(user="cab", time="stamp")
    safe = other.smooth(200)
    assert other.compression(safe) == city.promesse.compression(city.promesse.smooth(200))
    assert other.spatial_error(safe).max() < 1e-6
    assert len(other.range_query_distortion(safe, queries=5, seed=0)) == 5
    assert len(other.project(safe)) == len(safe)


# Spatial error


@golden("spatial_error")
def test_a_golden_error_comes_out_as_it_should(case):
    detail = SpatialError().detail(on_globe(case["original"]), on_globe(case["protected"]))
    assert np.allclose(detail, case["expected_m"], rtol=0, atol=1e-6)


def test_an_error_by_hand():
    # East 30 m, then north 40 m. (10, 7) is 7 m off the first leg, (33, 44) is 3 m and 4 m past the end.
    original = on_grid([(0, 0, 0), (30, 0, 1), (30, 40, 2)])
    protected = on_grid([(10, 7, 0), (33, 44, 1), (-3, -4, 2), (28, 20, 3), (30, 0, 4)])
    detail = SpatialError().detail(original, protected)
    assert detail.tolist() == [7.0, 5.0, 5.0, 2.0, 0.0]
    assert SpatialError().value(detail) == 19 / 5
    assert SpatialError().project(original, protected).get_coordinates().to_numpy().tolist() == [
        [10, 0],
        [30, 40],
        [0, 0],
        [30, 20],
        [30, 0],
    ]


def test_the_whole_path_counts_not_the_neighbouring_segments():
    # Recorded at the very start, published at the very end.
    original = on_grid([(0, 0, 0), (1000, 0, 1), (2000, 0, 2)])
    assert SpatialError().detail(original, on_grid([(1990, 1, 0)])).tolist() == [1.0]


@st.composite
def scattered(draw):
    """A crowd, and points around each walk of it: on it, beside it, and far away."""
    crowd = draw(crowds())
    away = st.sampled_from((0.0, 1e-3, 0.3, 2.0, 40.0, 3_000.0))
    protected = []
    for walk in crowd:
        picks = draw(st.lists(st.tuples(st.integers(0, len(walk.x) - 1), away, turns), min_size=1, max_size=8))
        x, y = np.array(
            [
                moved(walk.x[i], walk.y[i], metres=ratio * walk.epsilon, bearing=bearing, space=walk.space)
                for i, ratio, bearing in picks
            ]
        ).T
        protected.append(Walk(x, y, np.arange(len(x)), walk.epsilon, walk.space))
    return crowd, protected


def as_points(walk):
    if walk.space == "plane":
        return list(zip(walk.x.tolist(), walk.y.tolist(), strict=True))
    return [naive.on_globe(x, y) for x, y in zip(walk.x, walk.y, strict=True)]


@given(both=scattered())
def test_errors_are_those_of_the_plain_twin(both):
    originals, protecteds = both
    before, after = gathered(originals), gathered(protecteds)
    metric = SpatialError()
    expected = [
        twin.spatial_error(point, as_points(original))
        for original, protected in zip(originals, protecteds, strict=True)
        for point in as_points(protected)
    ]
    detail = metric.detail(before, after)
    # The twin's last digits: points 1e7 m from the origin of a plane have 2e-9 m, unit vectors 1e-9 m.
    assert np.allclose(detail, expected, rtol=1e-12, atol=1e-7)


@given(both=scattered())
def test_projected_points_lie_on_the_path_at_the_distance_found(both):
    originals, protecteds = both
    before, after = gathered(originals), gathered(protecteds)
    metric = SpatialError()
    projected = metric.project(before, after)
    back = replace(after, points=before.space.points(projected.x.to_numpy(), projected.y.to_numpy()))
    assert metric.detail(before, back).max() <= 1e-6
    apart = np.linalg.norm(back.points - after.points, axis=1)
    apart = 2 * np.arcsin(apart / 2) if before.space.curvature else apart
    assert np.allclose(apart * before.space.scale, metric.detail(before, after), rtol=1e-9, atol=1e-6)


def long_trace(records, *, seed, space):
    """A walk with stays, ways back and forth, and a few jumps, and points about it."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, 30, (records, 2)) * rng.choice(
        [0, 0, 1, 1, 5, 400], (records, 1), p=[0.2, 0.1, 0.4, 0.25, 0.04, 0.01]
    )
    way = np.cumsum(steps, axis=0)
    way[records // 2 :] = way[: records - records // 2][::-1]
    near = way[rng.integers(0, records, 300)] + rng.normal(0, 1, (300, 2)) * 10.0 ** rng.uniform(-3, 5, (300, 1))
    if space == "plane":
        return way + 5e6, near + 5e6
    return way / 111_195 + [179.9, 60], near / 111_195 + [179.9, 60]


@pytest.mark.parametrize("space", ["sphere", "plane"])
@pytest.mark.parametrize("records", [1, 2, 8, 9, 65, 700, 4_500])
def test_long_traces_too(space, records):
    way, near = long_trace(records, seed=records, space=space)
    crs = "EPSG:4326" if space == "sphere" else GRID
    before, after = (
        Traces.from_arrays(
            *points.T, times=np.arange(len(points)), users=["a"], counts=[len(points)], crs=crs, space=space
        )
        for points in (way, near)
    )
    detail = SpatialError().detail(before, after)
    path = [tuple(point) for point in before.points]
    for number in range(0, len(near), 1 + len(near) // (25 if records < 4_500 else 9)):
        assert detail[number] == pytest.approx(
            twin.spatial_error(tuple(after.points[number]), path), rel=1e-12, abs=2e-7
        )


@pytest.mark.compiled
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_errors_do_not_depend_on_threads(threads, monkeypatch):
    way, near = long_trace(700, seed=1, space="sphere")
    before, after = (
        Traces.from_arrays(
            *np.tile(points, (reps, 1)).T, times=np.arange(len(points) * reps), users=["a"], counts=[len(points) * reps]
        )
        for points, reps in ((way, 1), (near, 40))
    )
    monkeypatch.setattr("promesse_geo.threads.number", lambda: 1)
    alone = SpatialError().detail(before, after)
    monkeypatch.setattr("promesse_geo.threads.number", lambda: threads)
    monkeypatch.setattr("promesse_geo.threads._LEAST", 500)
    assert SpatialError().detail(before, after).equals(alone)


def on_itself(kind, records):
    """One user's path that lies on or along itself: as often as there are records."""
    numbers, random = np.arange(records), np.random.default_rng(0)
    x, y = {
        "to and fro": (7 + (numbers % 3 == 0) * 5.0, np.full(records, 45.0)),
        "meridian": (np.full(records, 7.0), 45 + random.normal(0, 0.01, records)),
        "zigzag": (7 + numbers % 2 * 10.0, 45 + numbers * 1e-7),
    }[kind]
    return Traces.from_arrays(x, y, times=numbers, users=["a"], counts=np.array([records]))


def parallel(kind, records):
    """The same in the plane."""
    globe = on_itself(kind, records)
    x, y = globe.coordinates()
    x, y = (x - 7) * 80_000, (y - 45) * 110_000
    return Traces.from_arrays(x, y, times=globe.times, users=["a"], counts=globe.counts, crs=GRID, space="plane")


@pytest.mark.parametrize("metres", [1e4, 3e4, 6.3e4, 6.4e4, 1e6, 9e6])
def test_an_error_on_the_globe_is_an_arc_to_the_last_digits(metres):
    record, published = (
        Traces.from_arrays(np.zeros(1), np.array([latitude]), times=np.zeros(1, int), users=["a"], counts=[1])
        for latitude in (0.0, math.degrees(metres / EARTH_RADIUS))
    )
    assert SpatialError().detail(record, published).item() == pytest.approx(metres, rel=1e-12)


def random_arcs():
    """Places of a path of 400 arcs all over the globe, and parts of these arcs."""
    random = np.random.default_rng(1)
    return random.uniform([[-180], [-90]], [[180], [90]], (2, 400)), random.random(399)


def arcs_side_by_side():
    """Places of a path of 1,000 arcs of 10 degrees that are 0.1 m apart, and the middles of these arcs."""
    numbers = np.arange(1_000)
    return (7 + numbers % 2 * 10.0, 45 + numbers * 1e-6), np.full(999, 0.5)


@pytest.mark.parametrize(("make", "every"), [(random_arcs, 1), (arcs_side_by_side, 3)])
def test_points_on_long_arcs_have_no_error(make, every):
    places, parts = make()
    path = Traces.from_arrays(*places, times=np.arange(len(places[0])), users=["a"], counts=[len(places[0])])
    inside = path.points[:-1] + parts[:, None] * np.diff(path.points, axis=0)
    x, y = path.space.coordinates((inside / np.linalg.norm(inside, axis=1, keepdims=True))[::every])
    published = Traces.from_arrays(x, y, times=np.arange(len(x)), users=["a"], counts=[len(x)])
    assert SpatialError().detail(path, published).max() < 1e-6


@pytest.mark.compiled
@pytest.mark.parametrize("make", [on_itself, parallel])
@pytest.mark.parametrize("kind", ["to and fro", "meridian", "zigzag"])
def test_a_path_along_itself_is_measured_right(make, kind):
    original = make(kind, 1_000)
    safe = pg.GeoIndistinguishability(0.01, seed=1).protect(original)
    assert SpatialError().detail(original, original).max() < 1e-6
    found = SpatialError().detail(original, safe).to_numpy()
    axis = naive.on_globe if make is on_itself else (lambda x, y: (x, y))
    line, points = ([axis(*place) for place in zip(*data.coordinates(), strict=True)] for data in (original, safe))
    for place in range(0, 1_000, 61):
        assert found[place] == pytest.approx(twin.spatial_error(points[place], line), abs=1e-6)


@pytest.mark.compiled
def test_mechanisms_cost_what_they_promise(city):
    assert city.promesse.spatial_error(city.promesse.smooth(100)).max() < 1e-6
    error = city.promesse.spatial_error(city.promesse.geo_indistinguishability(0.01, seed=1))
    assert 50 < error.mean() < 200  # the mean move is 200 m; the path passes nearer


# Range queries


@golden("query")
def test_a_golden_query_comes_out_as_it_should(case):
    rows, (start, end) = case["records"], case["window"]
    users = [f"{number:02}" for number in range(len(rows))]
    traces = on_globe(rows, users=users, counts=[1] * len(rows))
    latitude, longitude = case["centre"]
    query = own([(longitude, latitude, case["half_side_m"], start, end)], crs=4326)
    metric = RangeQueryDistortion(query)
    for user, inside in zip(users, case["expected_inside"], strict=True):
        alone = traces.select(traces.users.take(traces.trace_numbers) == user)
        assert metric.index(alone).content.table.original.tolist() == [int(inside)]
    assert metric.index(traces).content.table.original.tolist() == [sum(case["expected_inside"])]


def test_a_distortion_by_hand():
    # Three users near (0, 0) in the first 10 s, one of them twice; the mechanism drops one and moves one away.
    original = on_grid([(5, 5, 0), (6, 6, 1)], [(-10, 10, 10)], [(0, 0, 5)], [(11, 0, 5)])
    protected = on_grid([(5, 5, 0)], [(-10, 10.5, 10)])
    queries = own(
        [(0, 0, 10, 0, 10 * SECOND), (0, 0, 10, 11 * SECOND, 12 * SECOND), (0, 0, 11, 5 * SECOND, 5 * SECOND)]
    )
    detail = RangeQueryDistortion(queries).detail(original, protected)
    assert detail.original.tolist() == [3, 0, 2]
    assert detail.protected.tolist() == [1, 0, 0]
    assert detail.distortion.tolist() == [2 / 3, 0.0, 1.0]
    assert RangeQueryDistortion(queries).value(detail) == pytest.approx(100 * 5 / 9)


def test_a_query_that_only_protected_users_answer_is_left_out_and_counted():
    original, protected = on_grid([(0, 0, 0)]), on_grid([(100, 0, 0)])
    metric = RangeQueryDistortion(own([(100, 0, 1, 0, 0), (0, 0, 1, 0, 0)]))
    detail = metric.detail(original, protected)
    assert detail.distortion.isna().tolist() == [True, False]
    with pytest.warns(UserWarning, match="1 query .*excluded from the mean of 2"):
        assert metric.value(detail) == 100.0


def test_drawn_queries_are_as_the_rules_say(city):
    traces = Traces.from_frame(city)
    table = RangeQueryDistortion(500, seed=7).index(traces).content.table
    assert (table.original > 0).all()
    half = table.half_side * math.sqrt(2)
    assert 500 <= half.min() < 600
    assert 4_900 < half.max() <= 5_000
    length = (table.end - table.start).dt.total_seconds() / 3600
    assert 2 <= length.min() < 2.2
    assert 7.8 < length.max() <= 8
    lengths = (table.end - table.start).to_numpy().astype(np.int64)
    middles = table.start.dt.tz_convert(None).to_numpy().astype("M8[ns]").astype(np.int64) + lengths // 2
    records = set(zip(traces.times.tolist(), *(axis.round(9).tolist() for axis in traces.coordinates()), strict=True))
    drawn = set(zip(middles.tolist(), table.geometry.x.round(9), table.geometry.y.round(9), strict=True))
    assert drawn <= records
    assert table.crs == city.crs
    assert str(table.start.dt.tz) == str(city.time.dt.tz)


def test_a_seed_draws_the_same_queries_again(city):
    first = RangeQueryDistortion(30, seed=7).index(city).content.table
    assert first.equals(RangeQueryDistortion(30, seed=7).index(city).content.table)
    assert first.equals(RangeQueryDistortion(60, seed=7).index(city).content.table.head(30))
    assert not first.equals(RangeQueryDistortion(30, seed=8).index(city).content.table)
    unseeded, again = (RangeQueryDistortion(30).index(city).content.table for _ in range(2))
    assert not unseeded.equals(again)


@st.composite
def asked(draw):
    """Walks before and after, and queries around records of either."""
    before = draw(crowds())
    after = [replace(walk, x=walk.x[::2], y=walk.y[::2], times=walk.times[::2]) for walk in before[::-1]]
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        walk = draw(st.sampled_from(before))
        i = draw(st.integers(0, len(walk.x) - 1))
        x, y = moved(
            walk.x[i], walk.y[i], metres=draw(st.floats(0, 3)) * walk.epsilon, bearing=draw(turns), space=walk.space
        )
        start = int(walk.times[i]) + draw(st.integers(-90, 90)) * SECOND
        half_side = draw(st.floats(0.1, 5) | st.sampled_from((1e3, 1e6))) * walk.epsilon
        rows.append((x, y, half_side, start, start + draw(st.sampled_from((0, 1, 60 * SECOND, 50 * HOUR)))))
    return before, after, rows


def told(walks):
    return [list(zip(walk.x.tolist(), walk.y.tolist(), walk.times.tolist(), strict=True)) for walk in walks]


@given(case=asked())
def test_answers_are_those_of_the_plain_twin(case):
    before, after, rows = case
    space, crs = before[0].space, before[0].crs
    originals, protecteds = gathered(before), gathered(after)
    detail = RangeQueryDistortion(own(rows, crs=crs)).detail(originals, protecteds)
    for (x, y, half_side, start, end), found in zip(rows, detail.itertuples(), strict=True):
        answers = []
        for users, answer in ((before, found.original), (after, found.protected)):
            lowest, highest = (  # on the sphere to a micrometre
                twin.answer(told(users), centre=(x, y), half_side=half_side + slack, window=(start, end), space=space)
                for slack in ((-2e-6, 2e-6) if space == "sphere" else (-1e-9 * (1 + abs(y)), 1e-9 * (1 + abs(y))))
            )
            assert lowest <= answer <= highest
            answers.append(answer)
        assert np.array_equal(found.distortion, twin.distortion(*answers), equal_nan=True)


@given(st.data())
def test_answers_in_the_plane_are_exact_with_integers(data):
    small = st.integers(-5, 5)
    walks = data.draw(
        st.lists(st.lists(st.tuples(small, small, st.integers(0, 9)), min_size=1, max_size=6), min_size=1, max_size=6)
    )
    walks = [sorted(walk, key=lambda row: row[2]) for walk in walks]
    x, y, half, start, length = data.draw(
        st.tuples(small, small, st.integers(1, 5), st.integers(0, 9), st.integers(0, 9))
    )
    index = RangeQueryDistortion(own([(x, y, half, start * SECOND, (start + length) * SECOND)])).index(on_grid(*walks))
    expected = twin.answer(walks, centre=(x, y), half_side=half, window=(start, start + length), space="plane")
    assert index.content.table.original.tolist() == [expected]


def both_searches(traces, boxes, windows):
    """Return the answers if queries search traces, and if records search queries."""
    begins, ends = traces.times[traces.offsets[:-1]], traces.times[traces.offsets[1:] - 1]
    order = np.argsort(begins, kind="stable")
    spans = order, begins[order], np.maximum.accumulate(ends[order])
    by_query = range_queries._search_traces(traces, spans, boxes, windows)
    return by_query.tolist(), range_queries._search_queries(traces, boxes, windows).tolist()


@given(case=asked())
def test_it_makes_no_difference_whether_queries_search_traces_or_records_search_queries(case):
    before, _, rows = case
    traces = gathered(before)
    content = RangeQueryDistortion(own(rows, crs=before[0].crs)).index(traces).content
    by_query, by_record = both_searches(traces, content.boxes, content.windows)
    assert by_record == by_query == content.table.original.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_many_queries_at_poles_and_the_antimeridian_have_the_answers_of_either_search(seed):
    random = np.random.default_rng(seed)
    count, queries = 60, 200  # more queries than bits in a word
    x, y = random.uniform(-180, 180, count), 90 - random.exponential(10, count)
    x[::3], y[::3] = random.choice([-180, 180, 179.99, -179.99], count // 3), random.uniform(-1, 1, count // 3)
    y *= random.choice([-1, 1])
    times = np.sort(random.integers(0, 50, (count // 3, 3))).ravel() * SECOND
    traces = Traces.from_arrays(x, y, times=times, users=list(range(count // 3)), counts=np.full(count // 3, 3))
    picked = random.integers(0, count, queries)
    half_sides = 10 ** random.uniform(3, 7.3, queries)
    starts = times[picked] - random.integers(0, 3, queries) * SECOND
    boxes = range_queries._to_boxes(traces.space, traces.points[picked], half_sides)
    windows = np.column_stack((starts, starts + random.integers(2, 20, queries) * SECOND))
    by_query, by_record = both_searches(traces, boxes, windows)
    assert by_record == by_query
    assert min(by_query) > 0


def test_records_search_queries_where_many_traces_exist_at_once(monkeypatch):
    used = []
    for name in ("_search_traces", "_search_queries"):
        search = getattr(range_queries, name)
        monkeypatch.setattr(range_queries, name, lambda *a, name=name, search=search: used.append(name) or search(*a))
    monkeypatch.setattr(range_queries, "_BLOCKS", 0)
    monkeypatch.setattr(range_queries, "_BLOCK", 70)
    crowd = on_grid(*([(user % 7, user % 11, 0), (user % 5, 0, 9)] for user in range(100)))
    alone = on_grid([(second % 7, second % 11, second) for second in range(200)])
    places = [(x, y) for x in range(5) for y in range(5)]
    rows = [(x, y, 2, second * SECOND, (second + 1) * SECOND) for x, y in places for second in range(8)]
    for traces, expected in ((crowd, {"_search_queries"}), (alone, {"_search_traces"})):
        used.clear()
        index = RangeQueryDistortion(own(rows)).index(traces)
        assert set(used) == expected
        content = index.content
        assert content.table.original.tolist() == both_searches(traces, content.boxes, content.windows)[0]


def test_own_queries_come_back_on_their_own_index_and_in_their_own_words(city):
    centre = city.geometry.iloc[0]
    frame = gpd.GeoDataFrame(
        {
            "name": ["x"],
            "half_side": [500],
            "start": [city.time.iloc[0]],
            "end": [city.time.iloc[5]],
            "where": [centre],
        },
        geometry="where",
        crs=city.crs,
        index=["home"],
    )
    detail = city.promesse.range_query_distortion(city, queries=frame.to_crs(2154))
    assert detail.index.tolist() == ["home"]
    assert detail.crs == "EPSG:2154"
    assert list(detail.columns) == ["geometry", "half_side", "start", "end", "original", "protected", "distortion"]
    assert detail.original.iloc[0] >= 1
    assert detail.distortion.tolist() == [0.0]
    metric = RangeQueryDistortion(frame)
    assert re.fullmatch(r"RangeQueryDistortion\(queries=<1 query, fingerprint [0-9a-f]{8}>\)", repr(metric))
    assert replace(metric, seed=3) != metric
    assert "name" in frame.columns


def test_queries_and_data_must_agree_on_zones(city):
    centre = city.geometry.iloc[0]
    with pytest.raises(ValueError, match="times of the data have a time zone and those of the queries have none"):
        RangeQueryDistortion(own([(centre.x, centre.y, 5, 0, 1)], crs=4326, zone=None)).index(city)


def test_wrong_queries_are_refused():
    good = own([(0, 0, 5, 0, 1), (1, 1, 5, 0, 1)])
    with pytest.raises(KeyError, match="lack 'half_side'"):
        RangeQueryDistortion(good.drop(columns="half_side"))
    with pytest.raises(ValueError, match="no CRS"):
        RangeQueryDistortion(gpd.GeoDataFrame(good.drop(columns="geometry"), geometry=list(good.geometry)))
    with pytest.raises(ValueError, match=r"1 query of 2 .*not a point, first in row 1"):
        RangeQueryDistortion(good.set_geometry([Point(0, 0), None], crs=GRID))
    with pytest.raises(ValueError, match=r"1 query of 2 .*half_side.*first in row 0"):
        RangeQueryDistortion(good.assign(half_side=[-1.0, 1.0]))
    with pytest.raises(TypeError, match="numbers of metres"):
        RangeQueryDistortion(good.assign(half_side="wide"))
    with pytest.raises(ValueError, match=r"2 queries of 2 .*end before the start"):
        RangeQueryDistortion(good.assign(end=good.start - pd.Timedelta("1s")))
    with pytest.raises(ValueError, match=r"2 queries of 2 .*no start or no end"):
        RangeQueryDistortion(good.assign(end=pd.DatetimeIndex([pd.NaT, pd.NaT], tz="UTC")))
    with pytest.raises(ValueError, match="both have a time zone, or neither"):
        RangeQueryDistortion(good.assign(end=good.end.dt.tz_localize(None)))
    with pytest.raises(ValueError, match=r"2 queries of 2 .*without a place"):
        RangeQueryDistortion(own([(0, 95, 5, 0, 1)] * 2, crs=4326)).index(on_globe([(0, 0)]))
    for half_side in ([True, False], [5 + 1j, 5]):
        with pytest.raises(TypeError, match=r"half_side .*numbers of metres"):
            RangeQueryDistortion(good.assign(half_side=half_side))
    for name in ("start", "half_side"):
        with pytest.raises(ValueError, match=f"several columns named '{name}'"):
            RangeQueryDistortion(gpd.GeoDataFrame(pd.concat((good, pd.DataFrame(good)[[name]]), axis=1)))
    with pytest.raises(ValueError, match="no active geometry column"):
        RangeQueryDistortion(gpd.GeoDataFrame(pd.DataFrame(good).drop(columns="geometry")))
    for crs, kind in ((4978, "Geocentric CRS"), (5703, "Vertical CRS")):
        with pytest.raises(ValueError, match=f"queries of RangeQueryDistortion are invalid.*'{kind}'"):
            RangeQueryDistortion(good.set_crs(crs, allow_override=True))


def test_queries_on_a_local_grid_do_not_meet_the_globe():
    grid = 'ENGCRS["site",EDATUM["site"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'
    with pytest.raises(ValueError, match=r"1 query of 1 .*without a place in the CRS"):
        RangeQueryDistortion(own([(0, 0, 5, 0, 1)], crs=grid)).index(on_globe([(0, 0)]))


@pytest.mark.parametrize("queries", [0, -3])
def test_the_number_of_queries_is_at_least_one(queries):
    with pytest.raises(ValueError, match=r"'queries' parameter of RangeQueryDistortion .*at least 1"):
        RangeQueryDistortion(queries)


@pytest.mark.parametrize("queries", [10_000_001, 10**12, 10**30])
def test_the_number_of_queries_is_at_most_ten_million(queries):
    with pytest.raises(ValueError, match=r"'queries' parameter of RangeQueryDistortion .*at most 10,000,000"):
        RangeQueryDistortion(queries)


@pytest.mark.parametrize("queries", [1.5, "many", None, True])
def test_the_number_of_queries_is_whole(queries):
    with pytest.raises(TypeError, match="'queries' parameter of RangeQueryDistortion"):
        RangeQueryDistortion(queries)


# Compression


def test_a_compression_by_hand():
    original = on_grid([(0, 0, 0), (1, 0, 1)], [(0, 0, 0), (1, 0, 1), (2, 0, 2)], [(0, 0, 0)])
    protected = on_grid([(0, 0, 0)] * 5, [(0, 0, 0)])
    detail = Compression().detail(original, protected)
    assert detail.original.tolist() == [2, 3, 1]
    assert detail.protected.tolist() == [5, 1, 0]
    assert detail.compression.tolist() == [2.5, 1 / 3, 0.0]
    assert detail.index.tolist() == ["a", "b", "c"]
    assert Compression().value(detail) == 100.0


def test_own_queries_of_one_number_can_be_compared(city):
    centres = city.geometry.iloc[:8]
    ends = {"start": city.time.min(), "end": city.time.max()}
    near, far = (
        gpd.GeoDataFrame({"half_side": np.full(8, side), **ends}, geometry=centres) for side in (1_000.0, 2_000.0)
    )
    metrics = [RangeQueryDistortion(queries) for queries in (near, far, near.iloc[::-1])]
    assert len(pg.measure(city, city, metrics)) == 3
    assert repr(RangeQueryDistortion(near.copy())) == repr(metrics[0])
    with pytest.raises(ValueError, match="must differ"):
        pg.measure(city, city, [metrics[0], RangeQueryDistortion(near.copy())])
