"""Work in shares of consecutive traces or records, each in a thread of its own; loops run without Python's lock.

Threads end with the work: none outlives it, so that a process may fork afterwards, and any thread may call.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import pairwise

import numba
import numpy as np

MANY = 256
"""So many shares let a long work be interrupted, or be shared where some take longer than others."""

_LEAST = 50_000  # records or so in a share: less is done before a thread has started


def number() -> int:
    """Return how many threads work at once: the processors this process may use, or NUMBA_NUM_THREADS."""
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


def even(things: int) -> np.ndarray:
    """Return the bounds of shares of as many things each."""
    shares = max(1, min(number(), things // _LEAST))
    return np.linspace(0, things, shares + 1).astype(np.int64)


def fair(work: np.ndarray, *, most: int | None = None) -> np.ndarray:
    """Return the bounds of shares of consecutive things that take about the same work, given in records or so.

    There are at most as many as threads, or `most`; some of many may be empty.
    """
    done = np.cumsum(work)
    whole = done[-1] if len(done) else 0
    shares = max(1, min(most or number(), int(min(whole, 1e18)) // _LEAST))
    inner = np.searchsorted(done, np.arange(1, shares) / shares * whole)
    return np.concatenate(([0], inner, [len(work)])).astype(np.int64)


def run(work: Callable[[int, int], object], shares: np.ndarray) -> None:
    """Call `work(first, last)` for each share."""
    bounds = list(pairwise(shares.tolist()))
    if len(bounds) == 1:
        work(*bounds[0])
        return
    with ThreadPoolExecutor(len(bounds)) as pool:
        for outcome in [pool.submit(work, first, last) for first, last in bounds]:
            outcome.result()


def take_turns(
    work: Callable[[int, int], object], shares: np.ndarray, *, told: Callable[[], object] = lambda: None
) -> None:
    """Call `work(first, last)` for each of many shares, in whichever thread is free, and `told()` after each.

    What interrupts the caller ends the work with the shares that are being done.
    """
    bounds = list(pairwise(shares.tolist()))
    if number() == 1 or len(bounds) <= 1:
        for first, last in bounds:
            work(first, last)
            told()
        return
    with ThreadPoolExecutor(min(number(), len(bounds))) as pool:
        outcomes = [pool.submit(work, first, last) for first, last in bounds]
        try:
            for outcome in as_completed(outcomes):
                outcome.result()
                told()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
