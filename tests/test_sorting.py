"""Stable sorting of records by user and time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promesse_geo.kernels import sorting

SECOND = 1_000_000_000


def sorted_plainly(times, counts):
    """The twin: Python's stable sort of each trace."""
    order, start = [], 0
    for count in counts:
        order += sorted(range(start, start + count), key=times.__getitem__)
        start += count
    return order


def check(times, counts, *, first=0, last=None):
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    given_times = np.array(times, np.int64)
    found, order = given_times.copy(), np.arange(len(times))
    sorting.sort_by_time(offsets, first, len(counts) if last is None else last, found, order)
    assert order.tolist() == sorted_plainly(given_times.tolist(), counts)
    assert found.tolist() == given_times[order].tolist()


@given(st.lists(st.lists(st.integers(-3, 9), max_size=70), max_size=4))
def test_short_traces_are_sorted_as_the_twin_sorts(traces):
    check([time for trace in traces for time in trace], [len(trace) for trace in traces])


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(-1, 1), st.integers(0, 50)), min_size=1, max_size=12))
def test_runs_are_merged_as_the_twin_sorts(runs):
    times = [start + step * record for length, step, start in runs for record in range(length)]
    check(times, [len(times)])


@pytest.mark.parametrize("unit", [SECOND, 1_000_000, 1_000, 1])
@pytest.mark.parametrize("span", [1, 5, 2_000, 5_000_000])
@pytest.mark.parametrize("start", [-(2**60), 0, 1_600_000_000 * SECOND + 7])
def test_many_records_in_no_order_are_sorted_as_the_twin_sorts(unit, span, start):
    times = np.random.default_rng(span).integers(0, span + 1, 3_000) * unit + start
    check(times.tolist(), [1_500, 0, 1_500])


def test_the_longest_possible_span_is_sorted():
    times = np.random.default_rng(0).integers(-(2**62), 2**62, 2_000)
    check(times.tolist(), [2_000])


def test_only_the_traces_asked_for_are_sorted():
    times, order = np.array([3, 1, 2, 9, 8, 7]), np.arange(6)
    sorting.sort_by_time(np.array([0, 3, 6]), 1, 2, times, order)
    assert times.tolist() == [3, 1, 2, 7, 8, 9]
    assert order.tolist() == [0, 1, 2, 5, 4, 3]


@given(st.lists(st.integers(0, 5), max_size=50), st.integers(1, 5))
def test_records_are_grouped_in_their_order(codes, middle):
    counts = np.bincount(np.array(codes, np.int64), minlength=6)
    starts, out = np.concatenate(([0], np.cumsum(counts)))[:-1], np.empty(len(codes), np.int64)
    for first, last in ((0, middle), (middle, 6)):
        sorting.group_records(np.array(codes, np.int64), first, last, starts, out)
    assert out.tolist() == sorted(range(len(codes)), key=codes.__getitem__)
