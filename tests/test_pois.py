"""The paper's attack: which stays it finds, what it says of them, and the estimator."""

import json
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import geopandas as gpd
import naive
import naive_pois
import numba
import numpy as np
import pandas as pd
import pytest
from geopandas.testing import assert_geodataframe_equal
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone
from strategies import SECOND, crowds, moved, spaces, walks

import promesse_geo as pg
from promesse_geo.kernels import stays as kernel
from promesse_geo.stays import find_pois
from promesse_geo.stays.places import merge_stays
from promesse_geo.stays.stays import measured

GOLDEN = json.loads((Path(__file__).parent / "data" / "stays.json").read_text())["cases"]
GRID = 'LOCAL_CS["grid",UNIT["metre",1]]'
MINUTES = 60 * SECOND
JIT = not numba.config.DISABLE_JIT


def on_grid(*records, users="a"):
    """Records (x, y, minutes) of one user in a plane."""
    x, y, minutes = np.array(records, float).T
    times = (minutes * MINUTES).astype(np.int64)
    return pg.Traces.from_arrays(x, y, times=times, users=[users], counts=[len(x)], crs=GRID, zone=None)


def runs(pois):
    return list(zip(pois.starts.tolist(), pois.ends.tolist(), strict=True))


def as_points(traces):
    return [tuple(point) for point in traces.points.tolist()]


def kernel_runs(traces, *, diameter, duration, short):
    """Stays as the kernel finds them when it takes the long way for windows beyond `short` records."""
    starts, ends = np.empty((2, traces.records // 2), np.int64)
    counts = np.zeros(len(traces), np.int64)
    limit = traces.space.chord(diameter) ** 2
    args = (limit, duration, short, 0, len(traces), starts, ends, counts)
    kernel.find(traces.points, traces.times, traces.offsets, *args)
    assert len(traces) == 1
    return list(zip(starts[: counts[0]].tolist(), ends[: counts[0]].tolist(), strict=True))


# Against the twin


@given(
    walk=walks(),
    ratio=st.sampled_from((0.31, 1.07, 2.9, 11.3)),
    duration=st.sampled_from((1, 30 * SECOND, 2 * MINUTES, 3_600 * SECOND)),
)
def test_stays_are_those_of_the_twin(walk, ratio, duration):
    traces, diameter = walk.traces(), walk.epsilon * ratio
    points = as_points(traces)
    pairs = [naive.distance(a, b) for a, b in combinations(set(points), 2)]
    assume(all(abs(pair - diameter) > 1e-6 for pair in pairs))
    expected = naive_pois.stays(
        points, traces.times.tolist(), near=lambda a, b: naive.distance(a, b) <= diameter, duration=duration
    )
    found = find_pois(traces, diameter=diameter, duration=duration)
    assert runs(found) == expected
    assert kernel_runs(traces, diameter=diameter, duration=duration, short=0) == expected
    for (start, end), centre, wide in zip(expected, found.points.tolist(), found.diameters.tolist(), strict=True):
        stay = points[start:end]
        mean = [math.fsum(axis) / len(stay) for axis in zip(*stay, strict=True)]
        length = math.hypot(*mean) if traces.space.curvature else 1
        assert naive.distance(tuple(centre), tuple(axis / length for axis in mean)) <= 1e-6
        assert wide == pytest.approx(naive_pois.diameter(stay), abs=1e-6)
        assert wide <= diameter


@given(
    records=st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6), st.integers(0, 3)), min_size=1, max_size=80),
    diameter=st.sampled_from((1.0, 2.0, 5.0, 10.0, 13.0)),
    duration=st.integers(1, 12),
)
def test_stays_are_those_of_the_twin_where_distances_and_durations_are_exactly_the_limits(records, diameter, duration):
    x, y, pauses = np.array(records).T
    traces = on_grid(*zip(x, y, np.cumsum(pauses), strict=True))

    def near(a, b):
        return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 <= diameter**2

    expected = naive_pois.stays(as_points(traces), traces.times.tolist(), near=near, duration=duration * MINUTES)
    assert runs(find_pois(traces, diameter=diameter, duration=duration * MINUTES)) == expected
    assert kernel_runs(traces, diameter=diameter, duration=duration * MINUTES, short=0) == expected


def dense(kind, *, space, count, seed):
    """Many records to a diameter of 200 m: one after the other every second or every hundredth of one."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 2 * math.pi, count)
    if kind == "circle":
        metres = np.full(count, rng.choice([90.0, 99.9, 99.9999, 100.0, 100.0001]))
    elif kind == "ring":
        metres = rng.uniform(95, 100.5, count)
    elif kind == "creep":
        metres, turn = np.cumsum(rng.uniform(0, 4, count)), np.full(count, 0.7)
    elif kind == "ends":  # to and fro between two places a diameter apart
        metres = 100.0 + rng.normal(0, 1e-3, count)
        turn = 0.7 + math.pi * rng.integers(0, 2, count)
    elif kind == "semicircle":
        metres, turn = np.full(count, rng.choice([99.9, 99.9999, 100.0, 100.0001])), 0.5 * turn
    elif kind == "places":  # to and fro between three places a diameter apart
        metres = (200.0 + rng.choice([-0.1, -1e-4, 1e-4])) / math.sqrt(3)
        metres, turn = np.full(count, metres), 0.7 + 2 * math.pi / 3 * rng.integers(0, 3, count)
    elif kind == "noise":
        metres = 25.0 * np.sqrt(rng.gamma(1, 2, count))
    elif kind == "still":
        metres = np.zeros(count)
    else:  # a walk that comes and goes
        way = np.cumsum(rng.normal(0, 12, (count, 2)), axis=0)
        metres, turn = np.hypot(*way.T), np.arctan2(*way.T)
    origin = {"sphere": [(-122.4, 37.7), (180.0, 60.0), (5.0, 90.0)], "plane": [(0.0, 0.0), (550_000.0, 4_180_000.0)]}
    x, y = origin[space][seed % len(origin[space])]
    places = [moved(x, y, metres=m, bearing=b, space=space) for m, b in zip(metres, turn, strict=True)]
    times = np.cumsum(rng.choice([0, SECOND // 100, SECOND], count)) + SECOND
    return pg.Traces.from_arrays(
        *np.array(places).T, times=times, users=["a"], counts=[count], crs=4326 if space == "sphere" else GRID
    )


@given(
    kind=st.sampled_from(("circle", "ring", "semicircle", "places", "creep", "ends", "noise", "still", "walk")),
    space=spaces,
    count=st.integers(2, 700 if JIT else 120),
    seconds=st.sampled_from((1, 20, 100, 10_000)),
    seed=st.integers(0, 1000),
)
@example(kind="circle", space="sphere", count=700 if JIT else 120, seconds=10_000, seed=1)
@example(kind="creep", space="plane", count=700 if JIT else 120, seconds=10_000, seed=2)
@example(kind="ring", space="sphere", count=700 if JIT else 120, seconds=20, seed=5)
@example(kind="semicircle", space="sphere", count=700 if JIT else 120, seconds=10_000, seed=3)
@example(kind="places", space="plane", count=700 if JIT else 120, seconds=10_000, seed=4)
def test_long_windows_are_searched_to_the_same_end(kind, space, count, seconds, seed):
    traces = dense(kind, space=space, count=count, seed=seed)
    limit = traces.space.chord(200) ** 2

    def near(a, b):
        axes = [(p - q) * (p - q) for p, q in zip(a, b, strict=True)]
        return sum(axes[1:], axes[0]) <= limit

    expected = naive_pois.stays(as_points(traces), traces.times.tolist(), near=near, duration=seconds * SECOND)
    for short in (0, 20, kernel.SHORT, count):
        assert kernel_runs(traces, diameter=200, duration=seconds * SECOND, short=short) == expected


@pytest.mark.skipif(not JIT, reason="too many records for plain Python")
@pytest.mark.parametrize("kind", ["circle", "ring", "semicircle", "places", "creep", "noise", "still", "walk"])
@pytest.mark.parametrize("seed", range(4))
def test_whole_blocks_are_passed_to_the_same_end(kind, seed):
    traces = dense(kind, space=("sphere", "plane")[seed % 2], count=9_000, seed=seed)
    if kind == "creep":  # so slowly that windows hold whole blocks of 4,096
        middle = traces.points[0]
        traces = replace(traces, points=middle + (traces.points - middle) * 0.01)
    for seconds in (60, 100_000):
        found = [kernel_runs(traces, diameter=200, duration=seconds * SECOND, short=short) for short in (48, 9_000)]
        assert found[0] == found[1]


@given(
    kind=st.sampled_from(("circle", "ring", "creep", "ends", "noise", "still", "walk")),
    space=spaces,
    count=st.integers(2, 400 if JIT else 90),
    seed=st.integers(0, 1000),
)
def test_the_diameter_is_that_of_the_two_records_farthest_apart(kind, space, count, seed):
    traces = dense(kind, space=space, count=count, seed=seed)
    _, diameters = measured(traces.points, np.array([0]), np.array([count]), traces.space)
    apart = np.linalg.norm(traces.points[:, None] - traces.points[None], axis=2).max()
    if space == "sphere":
        apart = 2 * math.asin(apart / 2) * traces.space.scale
    assert diameters[0] == pytest.approx(apart, rel=1e-7, abs=1e-7)


@given(records=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=41, max_size=200))
def test_the_diameter_of_records_on_a_grid_is_exact(records):
    points = np.array(records, float)
    _, diameters = measured(points, np.array([0]), np.array([len(points)]), on_grid((0, 0, 0)).space)
    assert diameters[0] == max((math.dist(a, b) for a, b in combinations(set(records), 2)), default=0)


@pytest.mark.compiled
@given(crowd=crowds())
def test_each_trace_has_its_stays_as_if_it_were_alone(crowd):
    from_all = find_pois(pg.Traces.from_arrays(**together(crowd)), diameter=crowd[0].epsilon, duration=60 * SECOND)
    alone = [find_pois(walk.traces(), diameter=walk.epsilon, duration=60 * SECOND) for walk in crowd]
    assert np.bincount(from_all.traces, minlength=len(crowd)).tolist() == [len(pois) for pois in alone]
    assert from_all.points.tobytes() == b"".join(pois.points.tobytes() for pois in alone)
    begins = np.cumsum([0] + [len(walk.x) for walk in crowd])
    assert runs(from_all) == [
        (start + begin, end + begin)
        for begin, pois in zip(begins[:-1].tolist(), alone, strict=True)
        for start, end in runs(pois)
    ]


def together(crowd):
    return {
        "x": np.concatenate([walk.x for walk in crowd]),
        "y": np.concatenate([walk.y for walk in crowd]),
        "times": np.concatenate([walk.times for walk in crowd]),
        "users": range(len(crowd)),
        "counts": np.array([len(walk.x) for walk in crowd]),
        "crs": crowd[0].crs,
        "space": crowd[0].space,
    }


# Right answers from elsewhere


@pytest.mark.parametrize("case", GOLDEN, ids=[case["id"] for case in GOLDEN])
def test_a_golden_case_comes_out_as_it_should(case):
    rows = np.array([row[:2] for row in case["input"]], float)
    planar = case["op"] == "stays_planar"
    traces = pg.Traces.from_arrays(
        *(rows.T if planar else rows.T[::-1]),
        times=np.array([row[2] for row in case["input"]]),
        users=["a"],
        counts=[len(rows)],
        crs=GRID if planar else 4326,
    )
    found = find_pois(traces, diameter=case["diameter_m"], duration=case["duration_ns"])
    assert runs(found) == [(stay["start"], stay["end"]) for stay in case["expected"]]
    frame = found.to_frame(traces)
    for (_, row), stay in zip(frame.iterrows(), case["expected"], strict=True):
        assert (row["arrival"].value, row["departure"].value, row["records"]) == (
            stay["arrival"],
            stay["departure"],
            stay["n"],
        )
        centre = naive.on_globe(*stay["centre"][::-1])
        assert naive.distance(naive.on_globe(row.geometry.x, row.geometry.y), centre) <= 1e-6


def test_an_example_by_hand():
    # (0, 0), (120, 0), (0, 160) over 15 minutes: the last two are √(120² + 160²) = 200 m apart, so all three are a
    # stay of exactly the limits. (150, 160) is 219 m from (0, 0) and begins the next candidate; so is (150, 400) too
    # far from it; (150, 390) and the last record lie within 200 m of (150, 400), but for 14 minutes only.
    records = on_grid(
        (0, 0, 0), (120, 0, 5), (0, 160, 15), (150, 160, 16), (150, 400, 20), (150, 390, 30), (151, 400, 34)
    )
    found = pg.pois(records)
    assert found["records"].tolist() == [3]
    assert found["arrival"].tolist() == [pd.Timestamp("1970-01-01 00:00")]
    assert found["departure"].tolist() == [pd.Timestamp("1970-01-01 00:15")]
    assert found["diameter"].tolist() == [200.0]
    assert found.geometry.iloc[0].x == 40
    assert found.geometry.iloc[0].y == pytest.approx(160 / 3, rel=1e-15)
    assert pg.pois(records, duration="14min")["records"].tolist() == [3, 3]


# What comes out


@pytest.fixture(scope="module")
def city() -> gpd.GeoDataFrame:
    return pg.make_city(users=3, days=3, recorder="phone").iloc[::4].reset_index(drop=True)


def test_the_table_keeps_names_zone_unit_and_crs(city):
    local = city.assign(time=city["time"].dt.tz_convert("Europe/Paris").dt.as_unit("ms"))
    local = local.rename(columns={"user": "cab", "time": "stamp"}).rename_geometry("place").to_crs(2154)
    found = pg.pois(local, user="cab", time="stamp")
    assert list(found.columns) == ["cab", "arrival", "departure", "records", "place", "diameter"]
    assert str(found["arrival"].dtype) == str(found["departure"].dtype) == "datetime64[ms, Europe/Paris]"
    assert found.crs == local.crs
    assert found.geometry.name == "place"
    assert found.index.equals(pd.RangeIndex(len(found)))
    assert (found["departure"] - found["arrival"] >= pd.Timedelta("15min")).all()
    assert (found["diameter"] <= 200).all()
    assert set(found["cab"]) == set(city["user"])


def test_a_single_trace_has_no_user_column(city):
    single = city[city["user"] == "user-000"].drop(columns="user")
    found = single.promesse(user=None).pois()
    assert list(found.columns) == ["arrival", "departure", "records", "geometry", "diameter"]
    assert len(found) == (pg.pois(city)["user"] == "user-000").sum() > 0


def test_the_accessor_and_traces_give_the_same(city):
    expected = pg.pois(city, 150, "20min")
    assert_geodataframe_equal(city.promesse.pois(150, "20min"), expected)
    assert_geodataframe_equal(pg.pois(city.promesse.traces(), diameter=150, duration=1200), expected)


def test_the_true_stays_of_the_made_up_city_are_found():
    city, truth = pg.make_city(users=3, days=3, return_pois=True, recorder="phone")
    found = pg.pois(city).to_crs(city.estimate_utm_crs())
    truth = truth.to_crs(found.crs)
    near = [
        ((found["user"] == true.user) & (found.distance(true.geometry) <= 100)).any()
        for true in truth.itertuples(index=False)
    ]
    assert len(truth) > 20
    assert np.mean(near) > 0.9


@pytest.mark.parametrize("records", [0, 1])
def test_too_little_data_gives_a_typed_empty_table(city, records):
    few, many = pg.pois(city.iloc[:records]), pg.pois(city)
    assert len(few) == 0
    assert few.dtypes.drop("user").to_dict() == many.dtypes.drop("user").to_dict()
    assert few.crs == many.crs
    for merge in ("places", "density"):
        merged = pg.PoiExtractor(merge=merge).fit(city.iloc[:records])
        assert len(merged.pois_) == 0
        assert merged.labels_.tolist() == [-1] * records


def test_a_column_that_the_table_needs_is_not_overwritten(city):
    named = city.rename(columns={"user": "records"})
    with pytest.raises(ValueError, match=r"columns .* of their own\. Rename 'records'"):
        pg.pois(named, user="records")


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        ({"diameter": 0}, ValueError, "'diameter' parameter of pois must be a finite number of metres above zero"),
        ({"diameter": "200"}, TypeError, "'diameter' parameter of pois"),
        ({"diameter": 1e7}, ValueError, "between 0.01 and 1,000,000 metres"),
        ({"duration": "15"}, None, ""),
        ({"duration": 0}, ValueError, "'duration' parameter of pois must be a duration above zero"),
        ({"duration": "long"}, ValueError, "'duration' parameter of pois"),
    ],
)
def test_wrong_parameters_are_refused(city, named, error, words):
    if error is None:
        assert len(pg.pois(city, **named)) >= len(pg.pois(city))  # seconds
        return
    with pytest.raises(error, match=words):
        pg.pois(city, **named)


# The estimator


def test_labels_say_which_records_are_in_which_stay(city):
    shuffled = city.sample(frac=1, random_state=3)
    extractor = pg.PoiExtractor()
    labels = extractor.fit_predict(shuffled)
    assert_geodataframe_equal(extractor.pois_, pg.pois(city))
    assert labels is extractor.labels_
    assert len(labels) == len(shuffled)
    members = shuffled.assign(label=labels)[labels >= 0].groupby("label")
    assert members.size().tolist() == extractor.pois_["records"].tolist()
    assert members["time"].min().tolist() == extractor.pois_["arrival"].tolist()
    assert members["time"].max().tolist() == extractor.pois_["departure"].tolist()
    assert members["user"].unique().map(list).tolist() == [[user] for user in extractor.pois_["user"]]
    assert (labels == -1).any()


def test_labels_of_traces_are_in_the_order_of_the_traces(city):
    shuffled = city.sample(frac=1, random_state=3)
    traces = pg.Traces.from_frame(shuffled)
    of_frame, of_traces = pg.PoiExtractor().fit(shuffled).labels_, pg.PoiExtractor().fit(traces).labels_
    assert of_frame[traces.positions].tolist() == of_traces.tolist()


def test_it_is_an_estimator_like_any_other(city):
    extractor = pg.PoiExtractor(150, duration="20min", merge="places")
    assert extractor.get_params() == {"diameter": 150, "duration": "20min", "merge": "places"}
    copy = clone(extractor)
    assert copy.get_params() == extractor.get_params()
    assert not hasattr(copy, "labels_")
    assert copy.set_params(merge=None, diameter=200, duration="15min").fit(city) is copy
    assert_geodataframe_equal(copy.pois_, pg.pois(city))
    assert repr(extractor) == "PoiExtractor(diameter=150, duration='20min', merge='places')"
    renamed = city.rename(columns={"user": "cab"})
    assert copy.fit_predict(renamed, user="cab").tolist() == pg.PoiExtractor().fit(city).labels_.tolist()


def test_wrong_parameters_are_refused_when_it_is_fitted(city):
    for merge, error in (("homes", ValueError), (True, TypeError)):
        with pytest.raises(error, match=rf"'merge' parameter of PoiExtractor .*'places'.*'density'\. Got {merge!r}"):
            pg.PoiExtractor(merge=merge).fit(city)
    with pytest.raises(ValueError, match="'diameter' parameter of PoiExtractor"):
        pg.PoiExtractor(diameter=-1).fit(city)


def test_repeated_stays_become_places_of_one_user():
    # Home, work, home, and a stay of another user at the home of the first.
    at = [(0, 0, 0), (3, 0, 20), (5_000, 0, 40), (5_003, 4, 60), (0, 4, 80), (9, 4, 110), (5_000, 50_000, 120)]
    first = on_grid(*at).to_frame()
    second = on_grid((0, 0, 0), (0, 1, 30)).to_frame().assign(user="b")
    both = pd.concat([first, second], ignore_index=True)
    assert pg.pois(both)["records"].tolist() == [2, 2, 2, 2]
    extractor = pg.PoiExtractor(merge="places").fit(both)
    assert extractor.labels_.tolist() == [0, 0, 1, 1, 0, 0, -1, 2, 2]
    places = extractor.pois_
    assert places["user"].tolist() == ["a", "a", "b"]
    assert places["records"].tolist() == [4, 2, 2]
    assert places["stays"].tolist() == [2, 1, 1]
    assert places["departure"].dt.minute.tolist() == [50, 0, 30]
    assert [(point.x, point.y) for point in places.geometry] == [(3, 2), (5001.5, 2), (0, 0.5)]
    assert places["diameter"].tolist() == [math.hypot(9, 4), 5.0, 1.0]


def test_stays_exactly_a_diameter_apart_are_one_place_and_chains_are_not():
    stays = [
        record
        for number in range(5)
        for record in ((200 * number, 0, 40 * number), (200 * number, 0, 40 * number + 20))
    ]
    gone = [(1e6, 1e6, 40 * number + 30) for number in range(5)]
    records = on_grid(*sorted(stays + gone, key=lambda record: record[2]))
    places = pg.PoiExtractor(merge="places").fit(records).pois_
    assert places["stays"].sum() == 5
    assert places["stays"].max() == 2
    assert (places["diameter"] <= 200).all()


def test_density_keeps_chains_of_stays_and_drops_single_ones():
    # eps is 0.75 · 200 m: stays 150 m apart are chained over 300 m, one 151 m away and one of another user are alone.
    where = [0, 150, 300, 451, 300]
    stays = [(x, 0, 60 * number + minute) for number, x in enumerate(where) for minute in (0, 10, 20)[: 2 + (x == 300)]]
    away = [(1e6, 1e6, 60 * number + 40) for number in range(5)]
    records = on_grid(*sorted(stays + away, key=lambda record: record[2])).to_frame()
    other = on_grid((0, 0, 0), (0, 0, 30)).to_frame().assign(user="b")
    extractor = pg.PoiExtractor(duration="10min", merge="density").fit(pd.concat([records, other], ignore_index=True))
    places = extractor.pois_
    assert (places["user"].tolist(), places["stays"].tolist(), places["records"].tolist()) == (["a"], [4], [10])
    assert [(point.x, point.y) for point in places.geometry] == [((0 + 150 + 300 + 300) / 4, 0)]  # not of the records
    assert places["diameter"].tolist() == [300]
    assert (places["arrival"].dt.hour.tolist(), places["departure"].dt.hour.tolist()) == ([0], [4])
    inside = {0, 150, 300}
    assert extractor.labels_.tolist() == [0 if x in inside else -1 for x in records.geometry.x] + [-1, -1]


@given(walk=walks(), ratio=st.sampled_from((0.31, 1.07, 2.9, 11.3)))
def test_places_by_density_are_the_connected_groups_of_two_or_more_stays(walk, ratio):
    metres = ratio * walk.epsilon
    traces = walk.traces()
    stays = find_pois(traces, diameter=metres, duration=30 * SECOND)
    limit = traces.space.chord(0.75 * metres)
    groups = naive_pois.connected(as_points(stays), near=lambda a, b: math.dist(a, b) <= limit)
    groups = [group for group in groups if len(group) > 1]
    places, place_of = merge_stays(stays, traces, diameter=metres, merge="density")
    assert [np.flatnonzero(place_of == number).tolist() for number in range(len(places))] == groups
    assert places.records.tolist() == [stays.records[group].sum() for group in groups]
    assert runs(places) == [(stays.starts[group[0]], stays.ends[group[-1]]) for group in groups]
    means = np.array([stays.points[group].mean(axis=0) for group in groups]).reshape(-1, traces.space.dimension)
    if walk.space == "sphere":
        means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(places.points, means, rtol=1e-13, atol=1e-15)


@pytest.mark.compiled
def test_importing_the_package_does_not_import_scikit_learn(tmp_path, run_fresh):
    code = (
        "import sys, promesse_geo as pg; assert 'sklearn' not in sys.modules; "
        "pg.PoiExtractor; assert 'sklearn' in sys.modules; assert callable(pg.pois)"
    )
    done = run_fresh(code, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["user", "geometry"])
def test_places_do_not_overwrite_a_column_named_stays(name):
    city = pg.make_city(users=2, days=1, recorder="phone")
    city = city.rename_geometry("stays") if name == "geometry" else city.rename(columns={"user": "stays"})
    user = "stays" if name == "user" else ...
    with pytest.raises(ValueError, match=r"columns .*'stays' of their own\. Rename 'stays'"):
        pg.PoiExtractor(merge="places").fit(city, user=user)
    assert "stays" in pg.PoiExtractor().fit(city, user=user).pois_
