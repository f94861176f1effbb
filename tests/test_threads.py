"""Threads that end with the work: nothing outlives it that a fork or another thread would trip over."""

import os
import signal
import subprocess
import sys
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


def test_what_cannot_be_kept_is_compiled_all_the_same(tmp_path):
    code = (
        "import numba, numba.core.caching as c; c.CacheImpl._locator_classes = [];"
        "c.FunctionCache._impl_class._locator_classes = [];"
        "import promesse_geo.kernels as k; print(k._CACHED)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ("True" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "False")


QUERIES = """
import signal
import promesse_geo as pg
signal.signal(signal.SIGINT, signal.default_int_handler)  # what starts in the background may ignore it
city = pg.make_city(users=20, days=2, as_traces=True, recorder="phone")
pg.RangeQueryDistortion(10, seed=0).index(city)
print("ready", flush=True)
for _ in range(1000):
    pg.RangeQueryDistortion(100_000, seed=0).index(city)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system has no such signals")
@pytest.mark.skipif(not COMPILED, reason="a share of plain Python takes minutes")
def test_an_interrupt_is_heard_while_loops_run():
    with subprocess.Popen([sys.executable, "-c", QUERIES], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            _, words = process.communicate(timeout=300)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt" in words
