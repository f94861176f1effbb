"""Threads that end with the work: nothing outlives it that a fork or another thread would trip over."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import COMPILED

import promesse_geo as pg
from promesse_geo import threads

FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
import promesse_geo as pg
from promesse_geo import threads
threads._LEAST = 1
threads.number = lambda: 2
city = pg.make_city(users=3, days=1, as_traces=True, recorder="phone")
before = pg.Promesse(200).protect(city).points.tobytes()
child = os.fork()
if not child:
    os._exit(0 if pg.Promesse(200).protect(city).points.tobytes() == before else 9)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_process_may_fork_after_the_work(tmp_path, start_fresh):
    done = start_fresh(FORK, tmp_path).wait(300)
    assert done.returncode == 0, done.stderr


def test_many_threads_may_protect_at_once(monkeypatch):
    monkeypatch.setattr(threads, "_LEAST", 1)
    monkeypatch.setattr(threads, "number", lambda: 2)
    city = pg.make_city(users=3, days=1, as_traces=True, recorder="phone")
    before = threading.active_count()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: pg.Promesse(200).protect(city).points.tobytes(), range(8)))
    assert len(set(results)) == 1
    assert threading.active_count() == before


def test_shares_cover_all_things_once(monkeypatch):
    monkeypatch.setattr(threads, "_LEAST", 10)
    monkeypatch.setattr(threads, "number", lambda: 4)
    for shares in (threads.even(0), threads.even(103), threads.fair(np.ones(103)), threads.fair(np.empty(0))):
        assert shares[0] == 0
        assert np.all(np.diff(shares) >= 0)
    assert len(threads.even(103)) == len(threads.fair(np.ones(103))) == 5
    assert len(threads.even(19)) == 2
    work = np.array([1000.0, 1, 1, 1])
    assert threads.fair(work)[-1] == 4


def test_what_goes_wrong_in_a_thread_is_told(monkeypatch):
    def work(first, last):
        if first:
            raise MemoryError("too much")

    with pytest.raises(MemoryError, match="too much"):
        threads.run(work, np.array([0, 1, 2]))


UNKEPT = """
import importlib
import numba.core.caching as caching
import numpy as np
from promesse_geo import kernels

caching.CacheImpl._locator_classes = caching.FunctionCache._impl_class._locator_classes = []
importlib.reload(kernels)

def fill(out):
    out[:] = 7

out = np.empty(2)
kernels.loop("out")(fill)(out)
print(kernels._CACHED, *out)
"""


def test_what_cannot_be_kept_is_compiled_all_the_same(tmp_path, run_fresh):
    done = run_fresh(UNKEPT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False" if COMPILED else "True", "7.0", "7.0"]


QUERIES = """
import pathlib, signal
import promesse_geo as pg
signal.signal(signal.SIGINT, signal.default_int_handler)  # what starts in the background may ignore it
city = pg.make_city(users=9, days=1, as_traces=True, recorder="phone")
pg.RangeQueryDistortion(10, seed=0).index(city)
pathlib.Path("ready").touch()
for _ in range(1000):
    pg.RangeQueryDistortion(1_000_000, seed=0).index(city)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system has no such signals")
@pytest.mark.skipif(not COMPILED, reason="a share of plain Python takes minutes")
def test_an_interrupt_is_heard_while_loops_run(tmp_path, start_fresh):
    done = start_fresh(QUERIES, tmp_path)
    while not (tmp_path / "ready").exists():
        assert done.process.is_alive()
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(done.process.pid, signal.SIGINT)
    done = done.wait(300)
    assert done.returncode == 1
    assert "KeyboardInterrupt" in done.stderr
