"""Kernels whose thresholds no other test reaches."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError

from promesse_geo import kernels
from promesse_geo.kernels import clustering, laplace, record_matching


@pytest.mark.parametrize(("noise", "decimals"), [(0.0, 2), (9e-7, 2), (2e-6, 5), (5e-5, 5)])
def test_float_noise_of_a_coordinate_does_not_count_as_decimals(noise, decimals):
    found = np.empty(1, np.int64)
    record_matching.count_decimals(np.array([4.25 + noise]), np.array([45.5]), 0, 4, 0, 1, found)
    assert found.tolist() == [decimals]


@pytest.mark.parametrize(("minutes", "near"), [(1, 2), (5, 2), (6, 0), (10, 0), (50, 0), (94, 0), (95, 2)])
def test_a_published_time_is_close_within_a_twentieth_of_the_time_around_it(minutes, near):
    original, one = np.array([0, 100]) * 60_000_000_000 + 1, np.array([0, 1])
    published = original[:1] + minutes * 60_000_000_000
    matches, found = np.empty(1, np.int64), np.empty(1, np.int8)
    record_matching.match_times(original, 2 * one, published, one, one[:1], 1, 0, 1, matches, found)
    assert (matches.tolist(), found.tolist()) == ([-1], [near])


@pytest.mark.parametrize(("most", "grade"), [(2, -1), (3, 2), (4, 2)])
def test_more_records_of_one_time_than_allowed_are_not_compared(most, grade):
    times, points, out = np.array([0, 5, 5, 5, 99]) * 1_000, np.zeros((5, 2)), np.zeros(1, np.int8)
    unit, length = np.array([1_000]), np.array([0.5])
    record_matching.match_any_user(
        times, np.arange(5), points, points[:1], 5 * unit, unit, length, 2.0, most, 0, 1, out
    )
    assert out.tolist() == [grade]


@pytest.mark.parametrize("z", [1.0, -1.0])
def test_noise_at_a_pole_stays_on_the_sphere(z):
    points, moved = np.full((4, 3), [0.0, 0.0, z]), np.empty((4, 3))
    words = np.random.default_rng(1).integers(0, 2**64, (4, 2), np.uint64)
    laplace.move_on_sphere(points, words, 0.1, moved)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1, rtol=0, atol=1e-15)
    assert (moved[:, 2] * z < 1).all()


def test_of_equally_far_traces_the_left_one_leaves_the_heap_first():
    # The heap of the nearest three is 9, 7, 7; 5 takes the place of 9 and sinks to the left, so 3 replaces the first 7.
    distances, positions = np.empty(5, np.int64), np.empty(5, np.int64)
    clustering.select_nearest(np.array([9, 7, 7, 5, 3, 0]), np.arange(6), 6, 5, distances, positions)
    assert sorted(positions[1:4].tolist()) == [2, 3, 4]


def add(values, others, out):
    for i in range(len(out)):
        out[i] = values[i] + others[0][i]


@pytest.mark.compiled
def test_a_loop_is_compiled_once_for_read_only_and_writable_arrays(monkeypatch):
    monkeypatch.setattr(kernels, "_CACHED", False)
    added = kernels.loop("out")(add)
    fixed, out = np.arange(3), np.empty(3, np.int64)
    fixed.flags.writeable = False
    for values in (fixed, fixed.copy()):
        for others in (fixed, fixed.copy()):
            out[:] = 0
            added(values, (others,), out)
            assert out.tolist() == [0, 2, 4]
    assert len(added.signatures) == 1

    @kernels.loop()
    def add_thrice(values):
        made = np.zeros(len(values), np.int64)
        added(values, (values,), made)
        added(made, (values,), made)
        return made

    assert add_thrice(fixed).tolist() == add_thrice(fixed.copy()).tolist() == [0, 3, 6]
    assert len(added.signatures) == len(add_thrice.signatures) == 1


@pytest.mark.compiled
def test_a_loop_that_threads_first_call_at_once_is_found_at_each_further_call(monkeypatch):
    monkeypatch.setattr(kernels, "_CACHED", False)
    added = kernels.loop("out")(add)
    values, out = np.arange(3), np.empty(3, np.int64)
    given = (types.int64[::1], types.Tuple([types.int64[::1]]), types.int64[::1])
    for _ in range(2):
        added.compile(given)  # as threads do that waited for each other
    monkeypatch.setattr(type(added), "compile", lambda loop, given: pytest.fail("the loop was not found"))
    added(values, (values,), out)
    assert out.tolist() == [0, 2, 4]


@pytest.mark.compiled
def test_a_loop_that_writes_to_an_argument_that_is_no_output_is_refused(monkeypatch):
    monkeypatch.setattr(kernels, "_CACHED", False)
    with pytest.raises(TypingError, match="readonly"):
        kernels.loop("values")(add)(np.arange(3), (np.arange(3),), np.empty(3, np.int64))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def compiling(function):
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


def of(module):
    def function():
        pass

    function.__module__ = module
    return function


@pytest.mark.parametrize(
    ("stream", "modules", "lines"),
    [
        (Terminal, ["promesse_geo.kernels.jumps"] * 3, 1),
        (Terminal, ["other.package", "promesse_geo.kernels.jumps"], 1),
        (Terminal, ["other.package"], 0),
        (io.StringIO, ["promesse_geo.kernels.jumps"], 0),
    ],
)
def test_the_first_compilation_is_announced_once_in_a_terminal(stream, modules, lines, monkeypatch):
    written, notice = stream(), kernels.Notice()
    monkeypatch.setattr("sys.stderr", written)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    for module in modules:
        notice.on_start(compiling(of(module)))
    assert written.getvalue().count("Compiling") == written.getvalue().count("\n") == lines


def test_worker_processes_do_not_announce_the_compilation(monkeypatch):
    written = Terminal()
    monkeypatch.setattr("sys.stderr", written)
    monkeypatch.setattr("multiprocessing.current_process", lambda: SimpleNamespace(name="LokyProcess-1"))
    kernels.Notice().on_start(compiling(of("promesse_geo.kernels.jumps")))
    assert written.getvalue() == ""
