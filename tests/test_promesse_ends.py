"""Promesse with `ends` and `max_interval`: against the slow twin, and by its laws."""

import math
import warnings
from dataclasses import replace
from itertools import pairwise

import naive
import naive_noise
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_breaks import breaks_of
from strategies import SECOND, Walk, crowds, gathered, texts_of_seeds, walks

import promesse_geo as pg
from promesse_geo import Promesse, Traces, threads

GRID = 'LOCAL_CS["building site",UNIT["metre",1]]'
variants = st.sampled_from(("polyline", "pseudocode"))
seeds = st.one_of(st.integers(0, 2**70), texts_of_seeds.filter(str.isprintable))
cuts = st.sampled_from((1.0, 1.5, 3.0, 10.0))

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:The data have")


def straight(metres: float, *, users: int = 1, seconds: float = 600.0) -> Traces:
    """A straight path of each user, with two records."""
    ends = np.tile([0.0, metres], users)
    times = np.tile([0, int(seconds * SECOND)], users)
    counts = np.full(users, 2)
    return Traces.from_arrays(ends, np.zeros(2 * users), times=times, users=range(users), counts=counts, crs=GRID)


def as_points(traces: Traces) -> list[tuple[float, ...]]:
    return [tuple(point) for point in traces.points.tolist()]


def assert_same_bytes(first: Traces, second: Traces) -> None:
    assert first.users.tolist() == second.users.tolist()
    for name in ("offsets", "points", "times", "breaks"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


# The slow twin


@given(walk=walks(), variant=variants, ends=cuts, seed=seeds, least=st.integers(1, 3))
def test_ends_are_cut_as_the_twin_cuts_them(walk, variant, ends, seed, least):
    traces, metres = walk.traces(), ends * walk.epsilon
    result = Promesse(walk.epsilon, variant=variant, min_points=least, ends=metres, seed=seed).protect(traces)
    original, times = as_points(traces), traces.times.tolist()
    head, tail = naive_noise.cut(seed, 0, times[0], 0, epsilon=walk.epsilon, ends=metres)
    expected = naive.promesse(
        original, times, epsilon=walk.epsilon, variant=variant, head=head, tail=tail, min_points=least
    )
    assert result.records == len(expected)
    for point, (wanted, _) in zip(as_points(result), expected, strict=True):
        assert naive.distance(point, wanted) <= 1e-6


@given(walk=walks(), variant=variants, seed=seeds)
def test_the_times_are_those_at_which_the_remaining_ends_are_passed(walk, variant, seed):
    traces = walk.traces()
    plain = Promesse(walk.epsilon, variant=variant).protect(traces)
    result = Promesse(walk.epsilon, variant=variant, ends=3 * walk.epsilon, seed=seed).protect(traces)
    head, tail = naive_noise.cut(seed, 0, int(traces.times[0]), 0, epsilon=walk.epsilon, ends=3 * walk.epsilon)
    assert result.points.tobytes() == plain.points[head : plain.records - tail].tobytes()
    if not result.records:
        return
    sample = naive.polyline_samples if variant == "polyline" else naive.pseudocode_samples
    passed = [time for _, time in sample(as_points(traces), traces.times.tolist(), epsilon=walk.epsilon)][1:-1]
    remaining = passed[head : len(passed) - tail]
    if variant == "pseudocode":
        assert result.times.tolist() == naive.spread(remaining[0], remaining[-1], count=len(remaining))
    assert np.all((walk.times[0] <= result.times) & (result.times <= walk.times[-1]))
    assert np.all(np.diff(result.times) >= 0)


def test_an_example_by_hand():
    """2 km straight in 20 minutes: samples each 100 m and minute, of which 19 remain, at minutes 1 to 19."""
    path = straight(2_000, seconds=1_200)
    for seed in range(20):
        head, tail = naive_noise.cut(seed, 0, 0, 0, epsilon=100.0, ends=350.0)
        assert 0 <= head <= 3
        assert 0 <= tail <= 3
        result = Promesse(100, ends=350, seed=seed).protect(path)
        numbers = np.arange(1 + head, 20 - tail)
        assert result.points[:, 0].tolist() == pytest.approx(100.0 * numbers)
        assert np.abs(result.times - 60 * SECOND * numbers).max() <= 1


@given(crowd=crowds(), variant=variants, seed=seeds, ends=cuts)
def test_segments_are_cut_each_on_its_own(crowd, variant, seed, ends):
    whole = gathered(crowd)
    epsilon = crowd[0].epsilon
    numbers = (np.arange(whole.records) // 7) % 3
    breaks = np.array(breaks_of(whole.trace_numbers.tolist(), numbers.tolist()), np.int64)
    traces = replace(whole, breaks=breaks)
    result = Promesse(epsilon, variant=variant, ends=ends * epsilon, seed=seed).protect(traces)
    plain = Promesse(epsilon, variant=variant).protect(
        replace(whole, offsets=traces.segments, users=pd.RangeIndex(len(traces.segments) - 1))
    )
    pieces = {
        int(number): plain.points[first:last]
        for number, first, last in zip(plain.users, plain.offsets, plain.offsets[1:], strict=False)
    }
    expected = []
    for number, owner in enumerate(traces.segment_owners.tolist()):
        index = int(np.sum(traces.segment_owners[:number] == owner))
        first = int(whole.times[whole.offsets[owner]])
        head, tail = naive_noise.cut(seed, whole.users[owner], first, index, epsilon=epsilon, ends=ends * epsilon)
        piece = pieces.get(number, plain.points[:0])
        piece = piece[head : max(len(piece) - tail, 0)]
        expected += [piece] if len(piece) else []
    assert result.points.tobytes() == b"".join(piece.tobytes() for piece in expected)
    assert np.diff(result.segments).tolist() == [len(piece) for piece in expected]


# Laws


@given(walk=walks(), variant=variants, seed=seeds)
def test_without_ends_nothing_changes(walk, variant, seed):
    plain = Promesse(walk.epsilon, variant=variant).protect(walk.traces())
    assert_same_bytes(plain, Promesse(walk.epsilon, variant=variant, ends=0, seed=seed).protect(walk.traces()))


@given(walk=walks(), variant=variants, seed=seeds, ends=cuts)
def test_points_stay_epsilon_apart_and_intervals_constant(walk, variant, seed, ends):
    result = Promesse(walk.epsilon, variant=variant, ends=ends * walk.epsilon, seed=seed).protect(walk.traces())
    points = as_points(result)
    for a, b in pairwise(points):
        assert naive.distance(a, b) == pytest.approx(walk.epsilon, rel=1e-7, abs=2e-8)
    steps = np.diff(result.times)
    assert len(steps) == 0 or steps.max() - steps.min() <= 1


@given(walk=walks(), seed=seeds, ends=cuts)
def test_the_path_to_a_remaining_end_has_at_least_one_and_the_cut_samples(walk, seed, ends):
    traces, metres = walk.traces(), ends * walk.epsilon
    samples, counts = Promesse(walk.epsilon).samples(traces)
    result = Promesse(walk.epsilon, ends=metres, seed=seed).protect(traces)
    head, tail = naive_noise.cut(seed, 0, int(traces.times[0]), 0, epsilon=walk.epsilon, ends=metres)
    if result.records:
        inner = samples[1 + head : counts[0] - 1 - tail]
        assert result.points.tobytes() == inner.tobytes()


@pytest.mark.parametrize("seed", ["a", 7])
def test_cuts_are_uniform_and_independent(seed):
    """4,000 ends: each of four cuts about a quarter of them, each pair of cuts about a sixteenth of 2,000 traces."""
    result = Promesse(100, ends=300, seed=seed).protect(straight(1_500, users=2_000))
    heads = np.rint(result.points[result.offsets[:-1], 0] / 100).astype(int) - 1
    tails = 14 - np.rint(result.points[result.offsets[1:] - 1, 0] / 100).astype(int)
    pairs = np.bincount(4 * heads + tails, minlength=16)
    assert len(pairs) == 16
    assert np.abs(pairs - 125).max() < 5 * math.sqrt(125)


def test_another_level_or_seed_draws_anew():
    path = straight(3_000, users=300)
    drawn = [
        Promesse(100, ends=300, seed=1).protect(path).counts,
        Promesse(100, ends=300, seed=2).protect(path).counts,
        Promesse(100, ends=350, seed=1).protect(path).counts,
        Promesse(100, ends=300).protect(path).counts,
        Promesse(100, ends=300).protect(path).counts,
    ]
    assert len({counts.tobytes() for counts in drawn}) == len(drawn)


@pytest.mark.compiled
@given(crowd=crowds(), variant=variants, shares=st.integers(2, 20), seed=seeds)
def test_any_number_of_threads_gives_the_same_bytes(crowd, variant, shares, seed):
    mechanism = Promesse(crowd[0].epsilon, variant=variant, ends=2 * crowd[0].epsilon, seed=seed)
    traces = gathered(crowd)
    single = mechanism.protect(traces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_LEAST", 1)
        patch.setattr(threads, "number", lambda: shares)
        assert_same_bytes(single, mechanism.protect(traces))


@given(crowd=crowds(), variant=variants, seed=seeds)
def test_each_user_is_cut_as_if_alone(crowd, variant, seed):
    mechanism = Promesse(crowd[0].epsilon, variant=variant, ends=2 * crowd[0].epsilon, seed=seed)
    traces = gathered(crowd)
    together = mechanism.protect(traces)
    alone = [mechanism.protect(traces.select(traces.trace_numbers == number)) for number in range(len(traces))]
    assert together.points.tobytes() == b"".join(each.points.tobytes() for each in alone)
    assert together.times.tobytes() == b"".join(each.times.tobytes() for each in alone)


# The longest interval


@given(crowd=crowds(), variant=variants, longest=st.integers(1, 400 * SECOND))
def test_slow_traces_are_dropped(crowd, variant, longest):
    traces, epsilon = gathered(crowd), crowd[0].epsilon
    plain = Promesse(epsilon, variant=variant).protect(traces)
    result = Promesse(epsilon, variant=variant, max_interval=pd.Timedelta(longest, unit="ns")).protect(traces)
    kept = []
    for user, first, last in zip(plain.users, plain.offsets, plain.offsets[1:], strict=False):
        times = plain.times[first:last].tolist()
        if len(times) == 1 or times[-1] - times[0] <= longest * (len(times) - 1):
            kept.append(user)
    assert result.users.tolist() == kept
    expected = plain.select(np.isin(plain.users, kept).repeat(plain.counts))
    assert_same_bytes(expected, result)


def test_a_single_point_has_no_interval():
    path = straight(250, seconds=36_000)
    assert Promesse(100, max_interval="1s").protect(path).records == 1


@pytest.mark.filterwarnings("default:.*could not be protected")
def test_slow_traces_are_counted():
    fast, slow = straight(2_000, users=2), straight(2_000, users=1, seconds=36_000)
    traces = Traces.from_arrays(
        np.tile([0.0, 2_000.0], 3),
        np.zeros(6),
        times=np.array([0, 600, 0, 600, 0, 7_200]) * SECOND,
        users=["a", "b", "c"],
        counts=np.full(3, 2),
        crs=GRID,
    )
    assert fast.records + slow.records == traces.records
    with pytest.warns(UserWarning, match=r"1 of 3 traces .* \(for 1 trace\) points more than 5 min apart"):
        result = Promesse(100, max_interval="5min").protect(traces)
    assert result.users.tolist() == ["a", "b"]
    with pytest.warns(UserWarning, match=r"points more than 1.5 s apart.* Nothing is left.*longer max_interval"):
        Promesse(100, max_interval=1.5).protect(traces)
    assert Promesse(100, max_interval=1.5).max_interval == "1500ms"


def test_an_interval_of_just_max_interval_is_kept():
    path = straight(2_000)  # points from 100 to 1,900 m, 30 s apart
    kept = Promesse(100, max_interval=30).protect(path)
    assert kept.records == 19
    assert np.diff(kept.times).tolist() == [30 * SECOND] * 18
    assert len(Promesse(100, max_interval=pd.Timedelta(30 * SECOND - 1, unit="ns")).protect(path)) == 0


# Parameters


def test_what_is_not_used_is_not_shown():
    assert repr(Promesse(200)) == "Promesse(epsilon=200.0, variant='polyline', min_points=1)"
    assert Promesse(200).parameters() == {"epsilon": 200.0, "variant": "polyline", "min_points": 1}
    used = Promesse(200, ends=600, max_interval=300, seed="secret")
    assert repr(used) == "Promesse(epsilon=200.0, variant='polyline', min_points=1, ends=600.0, max_interval='5min')"
    assert used.parameters()["ends"] == 600
    assert "secret" not in str(used.description())
    assert eval(repr(used)) == Promesse(200, ends=600, max_interval="5min")


@pytest.mark.parametrize("ends", [-1, 199, math.nan, math.inf, "600", None, True])
def test_ends_that_are_no_distance_are_refused(ends):
    with pytest.raises((TypeError, ValueError), match="'ends' parameter of Promesse must be"):
        Promesse(200, ends=ends)


@pytest.mark.parametrize("interval", [0, -5, "soon", True, []])
def test_intervals_that_are_no_duration_are_refused(interval):
    with pytest.raises((TypeError, ValueError), match="'max_interval' parameter of Promesse must be"):
        Promesse(200, max_interval=interval)


def test_a_seed_that_is_none_is_refused_without_showing_it():
    with pytest.raises(TypeError, match="'seed' parameter of Promesse") as caught:
        Promesse(200, ends=600, seed=1.25)
    assert "1.25" not in str(caught.value)


def test_it_is_random_with_ends_only():
    assert not Promesse(200).is_random
    assert not Promesse(200, ends=600, seed=1).is_random
    assert Promesse(200, ends=600).is_random
    assert Promesse(200).with_seed(3) == Promesse(200)
    assert Promesse(200, ends=600).with_seed(3).seed == 3


def test_evaluate_runs_it_once_a_seed_if_ends_are_cut():
    city = pg.make_city(users=2, days=1, recorder="phone")
    mechanisms = [Promesse(200), Promesse(200, ends=600)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = pg.evaluate({"city": city}, mechanisms, [pg.Compression()], seeds=2)
    assert table.seed.isna().tolist() == [True, False, False]
    assert table.value[1:].max() < table.value[0]


def test_the_walk_strategy_reaches_traces_that_remain():
    walk = Walk(np.array([0.0, 5_000.0]), np.zeros(2), np.array([0, 60 * SECOND]), 100.0, "plane")
    assert Promesse(100, ends=1_000, seed=1).protect(walk.traces()).records > 20
