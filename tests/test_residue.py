"""The residue attack: examples by hand, laws, and the plain twin."""

import math
from itertools import pairwise

import naive
import naive_attacks as twin
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from strategies import SECOND, crowds, gathered

import promesse_geo as pg
from promesse_geo import PoiRetrieval, Residue, Traces

GRID = "EPSG:32610"


def path(rows, users=("a",), counts=None):
    x, y = np.array(rows, float).reshape(-1, 2).T
    counts = [len(x)] if counts is None else counts
    times = np.arange(len(x)) * 60 * SECOND
    return Traces.from_arrays(x, y, times=times, users=list(users), counts=counts, crs=GRID, space="plane")


def found(rows, **parameters):
    table = Residue(**parameters).find(path(rows))
    return [
        (kind, *point) for kind, point in zip(table["kind"], table.get_coordinates().to_numpy().tolist(), strict=True)
    ]


def test_a_dead_end_by_hand():
    # 300 m east and back, a point every 100 m: the place lies a quarter of a step beyond the last point.
    assert found([(0, 0), (100, 0), (200, 0), (300, 0), (200, 0), (100, 0), (0, 100)]) == [
        ("start", -100, 0),
        ("turn", 325, 0),
        ("end", -100, 200),
    ]


def test_a_small_loop_and_jitter_are_one_residue_each():
    # Three steps about a triangle, then a straight way; and six steps to and fro between two points.
    triangle = [(0, 0), (100, 0), (50, 87), (0, 0)]
    kinds = [kind for kind, *_ in found([(-100, 0), *triangle, (0, -100), (0, -200)])]
    assert kinds == ["start", "turn", "end"]
    jitter = [(0, 0), (100, 0), (0, 0), (100, 0), (0, 0), (100, 0)]
    turns = [row for row in found([(-200, 0), (-100, 0), *jitter, (200, 0)]) if row[0] == "turn"]
    assert len(turns) == 1


def test_corners_and_straight_ways_are_none():
    square = [(0, 0), (100, 0), (200, 0), (200, 100), (200, 200), (100, 200), (0, 200)]
    assert [kind for kind, *_ in found(square)] == ["start", "end"]


def test_closeness_is_in_steps_of_the_path_and_belongs_to_it():
    bend = [(-300, 0), (-200, 0), (-100, 0), (0, 0), (-60, 80), (-160, 80), (-260, 80), (-360, 80)]
    near = math.hypot(40, 80) / 100
    kinds = {
        closeness: [row[0] for row in found(bend, closeness=closeness)] for closeness in (near - 1e-6, near + 1e-6)
    }
    assert kinds == {near - 1e-6: ["start", "end"], near + 1e-6: ["start", "turn", "end"]}


def test_short_traces_have_their_ends():
    assert found([(5, 5)]) == [("start", 5, 5)]
    assert found([(0, 0), (100, 0)]) == [("start", -100, 0), ("end", 200, 0)]
    assert len(Residue().find(pg.make_city(users=1, days=1, recorder="phone").iloc[:0])) == 0


def test_false_positives_can_be_seen():
    # An hour at (0, 0), where the published path ends; it also turns at (900, 0), where nobody stayed.
    stay = [(0, 0)] * 61 + [(100 * n, 0) for n in (*range(1, 9), *range(7, -11, -1))]
    published = [(100 * n, 0) for n in (*range(1, 9), *range(7, -10, -1))]
    detail = Residue().detail(path(stay), path(published)).loc["a"]
    assert detail.tolist() == [1, 3, 1, 1 / 3, 1, 1 / 2]


@pytest.mark.compiled
@pytest.mark.parametrize(("epsilon", "least"), [(100, 25), (200, 15), (500, 4)])
def test_smoothed_data_gives_more_away_than_the_attack_of_the_paper_finds(epsilon, least):
    city = pg.split_gaps(pg.make_city(users=10, days=3, seed=4, as_traces=True, recorder="phone"), keep_user=True)
    with pytest.warns(UserWarning, match="path too short"):
        safe = pg.Promesse(epsilon).protect(city)
    details = [metric.detail(city, safe) for metric in (Residue(), PoiRetrieval())]
    left, as_in_the_paper = (Residue().value(detail) for detail in details)
    assert left > as_in_the_paper + least
    assert 0 < details[0].matched.sum() < details[0].protected_pois.sum()
    assert details[0].original_pois.equals(details[1].original_pois)


@pytest.mark.compiled
@pytest.mark.parametrize("epsilon", [100, 200])
def test_it_finds_far_more_than_as_many_guesses_along_the_path(epsilon):
    city = pg.make_city(users=8, days=3, seed=5, recorder="phone")
    safe, metric = city.promesse.smooth(epsilon), Residue()
    frame = metric.find(safe)
    guesses = pd.concat(
        own.sample((frame["user"] == user).sum(), random_state=1, replace=True) for user, own in safe.groupby("user")
    )
    left, guessed = (pg.match_pois(city.promesse.pois(), found) for found in (frame, guesses))
    assert left["matched"].sum() > 3 * guessed["matched"].sum()


def test_the_frame_of_residues_is_what_is_scored():
    city = pg.make_city(users=3, days=2, seed=4, recorder="phone")
    safe = city.promesse.smooth(100)
    metric = Residue()
    frame, detail = metric.find(safe), metric.detail(city, safe)
    assert frame.crs == safe.crs
    assert frame.groupby("user").size().to_dict() == detail.protected_pois.to_dict()
    pd.testing.assert_frame_equal(pg.match_pois(city.promesse.pois(), frame), detail)


def test_steps_across_breaks_do_not_count():
    # A point every 100 m to a dead end at 300 m, then eight segments of one point each, far apart.
    way = [(0, 0), (100, 0), (200, 0), (300, 0), (200, 0), (100, 0), (0, 100)]
    x, y = np.array([*way, *((9_500 * n, 10_000) for n in range(1, 9))], float).T
    segments = np.concatenate((np.zeros(len(way), np.int64), np.arange(1, 9)))
    times = np.arange(len(x)) * 60 * SECOND
    traces = Traces.from_arrays(x, y, times=times, users=["a"], counts=[len(x)], crs=GRID, segments=segments)
    table = Residue().find(traces)
    assert table["kind"].tolist() == ["start", "turn", "end", *["start"] * 8]
    assert table.get_coordinates().to_numpy()[1].tolist() == pytest.approx([325, 0])


@given(crowds())
def test_residues_are_those_of_the_plain_twin(crowd):
    traces, metric = gathered(crowd), Residue()
    own = [
        list(map(tuple, traces.points[begin:end].tolist()))
        for begin, end in zip(traces.offsets[:-1], traces.offsets[1:], strict=True)
    ]
    chords = [math.dist(p, q) for way in own for p, q in pairwise(way)]
    step = float(np.median(chords)) * traces.space.scale if chords else 0.0
    edge = [naive.distance(p, q) for way in own for k in (2, 3) for p, q in zip(way, way[k:], strict=False)]
    if any(abs(metres - 0.75 * step) < 1e-6 + 1e-6 * step for metres in edge) or step > 1e6:
        return  # so near that the last digit decides
    table = metric.find(traces)
    expected = [(user, *row) for user, way in enumerate(own) for row in twin.residues(way, step=step, closeness=0.75)]
    assert [(user, kind) for user, kind, _ in expected] == list(zip(table["user"], table["kind"], strict=True))
    points = traces.space.points(*table.get_coordinates().to_numpy().T)
    for (_, _, point), ours in zip(expected, points, strict=True):
        assert naive.distance(tuple(ours), point) < 1e-3 + 1e-4 * step


@pytest.mark.compiled
def test_threads_and_order_do_not_matter(monkeypatch):
    city = pg.make_city(users=6, days=2, seed=2, as_traces=True, recorder="phone")
    safe = pg.Promesse(20).protect(city)
    tables = []
    for threads in ("1", "2"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
        tables.append(Residue().detail(city, safe))
    assert tables[0].equals(tables[1])


def test_the_metric_shows_itself_as_one_can_write_it():
    metric = Residue(duration=pd.Timedelta("20min"), closeness=0.5)
    assert eval(repr(metric), vars(pg)) == metric
    for closeness, error in ((0, ValueError), (2, ValueError), ("near", TypeError)):
        with pytest.raises(error, match="'closeness' parameter of Residue"):
            Residue(closeness=closeness)
    with pytest.raises(ValueError, match="'threshold' parameter of Residue"):
        Residue(threshold=-1)
