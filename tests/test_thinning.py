"""Thinning of large maps: no outlier, no end of a trace and nothing at the edge of a trace is lost."""

import numpy as np
import pandas as pd
import pytest
from conftest import COMPILED
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from maps import call_in, calls_in, data_sets, names, page, places, walk

import promesse_geo as pg
from promesse_geo.plot import thinning
from promesse_geo.plot.layers import MOST_POIS
from promesse_geo.plot.thinning import landmarks, representative, thinned


@pytest.mark.parametrize(("count", "most"), [(0, 5), (1, 5), (5, 5), (6, 5), (1000, 7), (4_000_000, 20_000)])
def test_thinning_keeps_both_ends_and_repeats_nothing(count, most):
    taken = thinned(count, most)
    assert len(taken) == min(count, most)
    assert len(np.unique(taken)) == len(taken)
    if count:
        assert (taken[0], taken[-1]) == (0, count - 1)


def farthest(points: np.ndarray, chosen: np.ndarray) -> float:
    """Greatest distance of any point from the nearest chosen one."""
    apart = np.linalg.norm(points[:, None] - points[chosen][None], axis=2)
    return float(apart.min(axis=1).max())


def test_outliers_are_always_drawn():
    rng = np.random.default_rng(3)
    walks = rng.normal(scale=1e-4, size=(30_000, 2)).cumsum(axis=0) % 0.1 + (4.8, 45.7)
    jumps = rng.choice(30_000, 42, replace=False)
    walks[jumps[:30]] += rng.uniform(0.2, 0.4, (30, 2))
    walks[jumps[30:]] = 0
    frame = walk(*walks.T, freq="1s")
    drawn = places(call_in(frame.promesse.map(points=2_000, attack=None), "records"))
    assert len(drawn) == 2_000
    expected = {tuple(place) for place in walks[jumps].round(6)}
    assert expected <= {tuple(place) for place in drawn.round(6)}


def test_the_only_stay_of_a_kind_is_drawn():
    once = walk([4.84, 4.84, 4.85, 4.85], [45.76] * 4, freq="20min")
    far = walk([9.0, 9.0], [50.0] * 2, freq="20min", user="u0300a")
    stays = pd.concat([once.assign(user=f"u{number:04}") for number in range(600)] + [far])
    before = calls_in(stays.promesse.map(), "pois")[0]
    assert (np.abs(places(before) - (9.0, 50.0)).max(axis=1) < 1e-5).any()


@given(
    points=arrays(np.float64, st.tuples(st.integers(0, 60), st.sampled_from([2, 3])), elements=st.floats(-1e7, 1e7)),
    most=st.integers(2, 70),
)
def test_chosen_points_are_distinct_ascending_and_as_many_as_allowed(points, most):
    chosen = representative(points, most)
    assert len(chosen) == min(len(points), most)
    assert (np.diff(chosen) > 0).all()
    assert len(chosen) == 0 or (chosen[0] >= 0 and chosen[-1] < len(points))


@given(
    cluster=arrays(np.float64, (400, 2), elements=st.floats(0, 1)),
    far=st.dictionaries(st.integers(0, 399), st.tuples(st.integers(2, 9), st.integers(2, 9)), max_size=5),
)
def test_no_point_is_far_from_all_chosen_ones(cluster, far):
    for position, away in far.items():
        cluster[position] += np.array(away) * 100
    chosen = representative(cluster, 100)
    assert farthest(cluster, chosen) < 50


@pytest.mark.skipif(not COMPILED, reason="four million records are too many for plain Python (NUMBA_DISABLE_JIT=1)")
def test_four_million_records_fit_into_a_small_page():
    users, each = 5500, 730
    rng = np.random.default_rng(0)
    steps = rng.normal(scale=1e-3, size=(users * each, 2)).cumsum(axis=0)
    traces = pg.Traces.from_arrays(
        -122.4 + steps[:, 0] % 0.5,
        37.7 + steps[:, 1] % 0.5,
        times=np.tile(np.arange(each) * 60 * 10**9, users),
        users=[f"{'long-name-' * 9}{number}" for number in range(users)],
        counts=np.full(users, each),
    )
    assert traces.records > 4_000_000
    assert len(page(pg.draw_map(traces, traces)).encode()) < 5_000_000


def test_points_of_interest_are_thinned_as_well():
    once = walk([4.84, 4.84, 4.85, 4.85], [45.76] * 4, freq="20min")
    stays = pd.concat([once.assign(user=f"u{number:04}") for number in range(600)])
    drawn = stays.promesse.map(stays)
    before, hit, missed, _ = calls_in(drawn, "pois")
    assert names(drawn)[2] == f"Stays (POIs) in the original: 1,200 ({MOST_POIS:,} drawn)"
    assert (len(places(before)), len(places(hit)), len(places(missed))) == (MOST_POIS, MOST_POIS, 0)


def naive_landmarks(traces: pg.Traces) -> set[int]:
    """The first, the last and the outermost records of each trace, one record at a time."""
    found = set()
    for first, last in zip(traces.offsets[:-1].tolist(), traces.offsets[1:].tolist(), strict=True):
        found |= {first, last - 1}
        for axis in traces.points.T:
            found |= {min(range(first, last), key=axis.__getitem__), max(range(first, last), key=axis.__getitem__)}
    return found


@given(traces=data_sets())
def test_landmarks_are_ends_and_outermost_records(traces):
    found = landmarks(traces, 10_000)
    assert found.tolist() == sorted(naive_landmarks(traces))
    few = landmarks(traces, 4)
    ends = {*traces.offsets[:-1].tolist(), *(traces.offsets[1:] - 1).tolist()}
    assert few.tolist() == sorted(ends)


@given(
    points=arrays(np.float64, st.tuples(st.integers(0, 80), st.just(2)), elements=st.floats(-1e7, 1e7)),
    most=st.integers(2, 70),
    data=st.data(),
)
def test_what_is_kept_is_chosen_even_if_it_is_more_than_allowed(points, most, data):
    kept = np.array(sorted(data.draw(st.sets(st.integers(0, len(points) - 1)))) if len(points) else [], np.int64)
    chosen = representative(points, most, kept=kept)
    assert set(kept.tolist()) <= set(chosen.tolist())
    assert len(chosen) == min(len(points), max(most, len(kept) + most // 2))
    assert (np.diff(chosen) > 0).all()


def test_both_ends_of_every_trace_are_drawn():
    rng = np.random.default_rng(0)
    counts = rng.integers(2, 60, 400)
    traces = pg.Traces.from_arrays(
        4.8 + rng.uniform(0, 0.1, counts.sum()),
        45.7 + rng.uniform(0, 0.1, counts.sum()),
        times=np.arange(counts.sum()) * 10**9,
        users=[f"u{number:03}" for number in range(400)],
        counts=counts,
    )
    ends = np.sort(np.concatenate((traces.offsets[:-1], traces.offsets[1:] - 1)))
    for points in (300, 2_000):
        drawn = pg.draw_map(traces, attack=None, points=points)
        seconds = np.cumsum(call_in(drawn, "records").data["times"])
        assert set(ends.tolist()) <= set(seconds.tolist())
        assert len(seconds) == max(points, len(ends) + points // 2)


def test_more_traces_than_any_browser_draws_are_thinned_with_a_remark(monkeypatch):
    monkeypatch.setattr(thinning, "MOST_ENDS", 3)
    traces = pg.Traces.from_arrays(
        np.arange(200.0) / 1e4, np.zeros(200), times=np.arange(200), users=list("abcde"), counts=np.full(5, 40)
    )
    assert len(landmarks(traces, 100)) == 0
    drawn = pg.draw_map(traces, attack=None, points=20)
    assert len(places(call_in(drawn, "records"))) == 20
    assert not any("ends of traces" in remark for remark in call_in(drawn, "addControls").data["remarks"])
