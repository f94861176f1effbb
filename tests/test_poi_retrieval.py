"""POI retrieval: golden cases, an example by hand, laws, and the plain twin."""

import json
import math
from itertools import pairwise
from pathlib import Path

import geopandas as gpd
import naive
import naive_metrics as twin
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import PLACES, moved, turns

import promesse_geo as pg
from promesse_geo import PoiRetrieval, Traces

GRID = "EPSG:32610"
CASES = json.loads((Path(__file__).parent / "data" / "cases_metrics.json").read_text())["cases"]
GOLDEN = [case for case in CASES if case["op"].startswith("retrieval")]
COLUMNS = ["original_pois", "protected_pois", "matched", "precision", "recall", "fscore"]


def places(rows, users=None, crs=GRID):
    """Points of interest from (x, y)."""
    x, y = zip(*rows, strict=True) if rows else ((), ())
    users = ["a"] * len(rows) if users is None else users
    return gpd.GeoDataFrame({"user": pd.Series(users, dtype=object)}, geometry=gpd.points_from_xy(x, y), crs=crs)


def scores(original, protected, threshold=100):
    return pg.match_pois(places(original), places(protected), threshold=threshold).loc["a"]


@pytest.mark.parametrize("case", GOLDEN, ids=[case["id"] for case in GOLDEN])
def test_a_golden_retrieval_comes_out_as_it_should(case):
    crs, order = (GRID, 1) if case["op"].endswith("planar") else (4326, -1)
    original, protected = (places([row[::order] for row in case[name]], crs=crs) for name in ("original", "protected"))
    found = pg.match_pois(original, protected, threshold=case["l_m"]).loc["a"]
    expected = {name: math.nan if value is None else value for name, value in case["expected"].items()}
    got = [found["matched"], found["precision"], found["recall"], found["fscore"]]
    assert got == pytest.approx([expected[name] for name in ("matched", "precision", "recall", "f")], nan_ok=True)


def test_a_retrieval_by_hand():
    # Of three places one is found twice, one is found, one is missed; one found place is far from all.
    found = scores([(0, 0), (300, 0), (600, 0)], [(10, 0), (-10, 0), (390, 0), (2000, 0)])
    assert found[COLUMNS[:3]].tolist() == [3, 4, 2]
    assert found.precision == 2 / 4
    assert found.recall == 2 / 3
    assert found.fscore == pytest.approx(2 * (1 / 2) * (2 / 3) / (1 / 2 + 2 / 3))


def test_of_equally_near_places_the_first_is_retrieved():
    # (50, 0) lies between both; (-10, 0) retrieves the first as well, so only one is matched.
    assert scores([(0, 0), (100, 0)], [(50, 0), (-10, 0)])["matched"] == 1
    assert scores([(100, 0), (0, 0)], [(50, 0), (-10, 0)])["matched"] == 2


def test_the_threshold_belongs_to_what_is_retrieved():
    assert scores([(0, 0)], [(60, 80)], threshold=100)["matched"] == 1
    assert scores([(0, 0)], [(60, 80.0000001)], threshold=100)["matched"] == 0


def test_users_of_one_frame_alone_have_their_rows():
    table = pg.match_pois(places([(0, 0)] * 2, users=["b", "a"]), places([(0, 0)] * 3, users=["c", "a", "c"]))
    assert table.index.tolist() == ["a", "b", "c"]
    assert table.original_pois.tolist() == [1, 1, 0]
    assert table.protected_pois.tolist() == [1, 0, 2]
    assert table.fscore.tolist() == [1, 0, 0]
    assert math.isnan(table.precision["b"])
    assert math.isnan(table.recall["c"])


def test_users_may_be_text_on_one_side_and_integers_on_the_other():
    table = pg.match_pois(places([(0, 0), (0, 0)], users=["7", "b"]), places([(0, 0), (0, 0)], users=[7, 8]))
    assert table.index.tolist() == ["7", "8", "b"]
    assert table.matched.tolist() == [1, 0, 0]
    table = pg.match_pois(places([(0, 0), (0, 0)], users=[7, 8]), places([(0, 0)], users=["7"]))
    assert table.matched.to_dict() == {7: 1, 8: 0}


def test_a_frame_without_a_geometry_is_named():
    bare = gpd.GeoDataFrame({"user": ["a"]})
    for frames in ((bare, places([(0, 0)])), (places([(0, 0)]), bare)):
        with pytest.raises(ValueError, match="no active geometry column"):
            pg.match_pois(*frames)


@pytest.mark.compiled
def test_frames_match_as_their_data_does():
    city = pg.make_city(users=4, days=2, seed=1, recorder="phone")
    noisy = city.promesse.geo_indistinguishability(0.05, seed=1)
    whole = city.promesse.poi_retrieval(noisy)
    matched = pg.match_pois(city.promesse.pois(), noisy.promesse.pois().to_crs(32631))
    assert whole.matched.sum() > 0
    pd.testing.assert_frame_equal(matched, whole)


def test_a_dropped_trace_counts_with_its_places():
    city = pg.make_city(users=3, days=2, seed=1, recorder="phone")
    safe = city[city.user != city.user.iloc[0]]
    detail = city.promesse.poi_retrieval(safe)
    assert detail.recall.iloc[0] == detail.fscore.iloc[0] == 0
    assert math.isnan(detail.precision.iloc[0])
    assert PoiRetrieval().value(detail) == pytest.approx(200 / 3)


def test_traces_without_places_are_not_in_the_mean():
    detail = pg.match_pois(places([(0, 0)], users=["a"]), places([(0, 0)] * 2, users=["a", "b"]))
    assert PoiRetrieval().value(detail) == 100
    assert math.isnan(PoiRetrieval().value(detail.loc[["b"]]))


def test_the_column_of_users_is_named_or_one_user_has_all():
    here, there = (places([(0, 0)], users=["a"]).rename(columns={"user": "cab"}) for _ in "ab")
    assert pg.match_pois(here, there, user="cab").fscore.tolist() == [1]
    assert pg.match_pois(here.drop(columns="cab"), there, user=None).fscore.tolist() == [1]
    with pytest.raises(ValueError, match="No user column was found"):
        pg.match_pois(here, there)


def test_nothing_in_both_frames_gives_a_typed_empty_table():
    table = pg.match_pois(places([]), places([]))
    assert list(table.columns) == COLUMNS
    assert table.dtypes.tolist() == [np.int64] * 3 + [np.float64] * 3
    assert len(table) == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (pd.DataFrame({"user": ["anna"], "x": [48.123]}), r"a value of type DataFrame and shape \(1, 2\)"),
        (pd.Series([48.123]), r"a value of type Series and shape \(1,\)"),
        ([("anna", 48.123)], "a value of type list and length 1"),
        ({"anna": 48.123}, "a value of type dict and length 1"),
        (iter(["anna"]), "a value of type list_iterator"),
        ("pois", "'pois'"),
        (48, "48"),
        (None, "None"),
    ],
)
def test_a_refused_parameter_shows_no_data(wrong, words):
    with pytest.raises(TypeError, match=rf"Got {words} instead\.") as error:
        pg.match_pois(places([]), wrong)
    assert "anna" not in str(error.value)
    assert "48.1" not in str(error.value)


@pytest.mark.parametrize("wrong", [pd.DataFrame(), None, [1], "pois"])
def test_frames_that_are_none_are_named(wrong):
    with pytest.raises(TypeError, match="'protected_pois' parameter of match_pois must be a GeoDataFrame"):
        pg.match_pois(places([]), wrong)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"threshold": 0}, ValueError, "'threshold' parameter of PoiRetrieval must be a finite number of metres"),
        ({"threshold": "100"}, TypeError, "'threshold' parameter of PoiRetrieval"),
        ({"diameter": -1}, ValueError, "'diameter' parameter of PoiRetrieval"),
        ({"duration": "soon"}, ValueError, "'duration' parameter of PoiRetrieval"),
    ],
)
def test_wrong_parameters_are_refused(parameters, error, words):
    with pytest.raises(error, match=words):
        PoiRetrieval(**parameters)


@pytest.mark.compiled
@pytest.mark.parametrize("duration", [900, 900.0, "15min", "0 days 00:15:00", pd.Timedelta("15min")])
def test_a_duration_comes_in_many_ways_and_shows_as_one_can_write_it(duration):
    metric = PoiRetrieval(duration=duration)
    assert eval(repr(metric), vars(pg)) == metric
    city = pg.make_city(users=2, days=1, recorder="phone")
    assert metric.detail(city, city).equals(PoiRetrieval().detail(city, city))


around = st.lists(st.tuples(st.floats(0, 400), turns), max_size=8)


@given(st.sampled_from(PLACES), around, around, st.sampled_from((25.0, 100.0, 700.0)))
def test_the_plain_twin_agrees_on_the_globe(place, original, protected, threshold):
    before, after = (
        [moved(*place, metres=metres, bearing=bearing, space="sphere") for metres, bearing in rows]
        for rows in (original, protected)
    )
    frames = [places(rows or [place], crs=4326).iloc[: len(rows)] for rows in (before, after)]
    table = pg.match_pois(*frames, threshold=threshold)
    if not before and not after:
        assert len(table) == 0
        return
    points = [[naive.on_globe(*row) for row in rows] for rows in (before, after)]
    distances = sorted(naive.distance(a, b) for b in points[1] for a in points[0])
    clear = all(abs(metres - threshold) > 1e-6 for metres in distances)
    apart = all(later - earlier > 1e-6 for earlier, later in pairwise(distances))
    if clear and apart:
        expected = twin.retrieval(*points, threshold=threshold)
        assert table.loc["a", COLUMNS[2:]].tolist() == pytest.approx(list(expected), nan_ok=True)


whole_metres = st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), max_size=10)


@given(whole_metres, whole_metres, st.integers(1, 5))
def test_the_plain_twin_agrees_to_the_last_tie_in_the_plane(original, protected, threshold):
    table = pg.match_pois(places(original), places(protected), threshold=threshold)
    if original or protected:
        points = [[(float(x), float(y)) for x, y in rows] for rows in (original, protected)]
        expected = twin.retrieval(*points, threshold=threshold)
        assert table.loc["a", COLUMNS[2:]].tolist() == pytest.approx(list(expected), nan_ok=True)


@pytest.mark.compiled
def test_traces_and_threads_do_not_matter(monkeypatch):
    city = Traces.from_frame(pg.make_city(users=6, days=2, seed=2, recorder="phone"))
    noisy = pg.GeoIndistinguishability(0.05, seed=1).protect(city)
    tables = []
    for threads in ("1", "2"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
        tables.append(PoiRetrieval().detail(city, noisy))
    assert tables[0].equals(tables[1])


def test_bad_points_of_interest_have_a_cure_of_their_own():
    stays = pg.pois(pg.make_city(users=2, days=2, recorder="phone"))
    empty = stays.set_geometry(stays.geometry.where(stays.index > 0))
    with pytest.raises(ValueError, match=r"drop them from protected_pois\.$"):
        pg.match_pois(stays, empty)
