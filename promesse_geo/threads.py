"""Thread pools for compiled loops, which release the GIL, and progress bars.

A function is called for chunks of consecutive traces or records. Each pool is shut down after the work, so that the
process can fork afterwards. All functions can be called from any thread.
"""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import pairwise
from threading import Lock

import numba
import numpy as np
from tqdm import tqdm

MANY = 256
"""Number of chunks of work that takes long, to balance it between threads and to interrupt it."""

_LEAST = 50_000  # least work of a chunk in records: less takes no longer than to start a thread


def number() -> int:
    """Return the number of threads: NUMBA_NUM_THREADS, by default the number of processors that the process may use."""
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


def even(items: int) -> np.ndarray:
    """Divide items into chunks with equal numbers of items.

    Parameters
    ----------
    items : int
        Number of items.

    Returns
    -------
    numpy.ndarray of int64, shape (chunks + 1,)
        First item of each chunk, and the number of items. There is at most one chunk per thread.
    """
    chunks = items // _LEAST
    if chunks <= 1:
        return np.array([0, items], np.int64)
    return np.linspace(0, items, min(number(), chunks) + 1).astype(np.int64)


def fair(work: np.ndarray, *, most: int | None = None) -> np.ndarray:
    """Divide consecutive items into chunks that take about the same time.

    Parameters
    ----------
    work : numpy.ndarray, shape (items,)
        Work of each item, such as its number of records.
    most : int, optional
        Greatest number of chunks, by default the number of threads. Chunks may be empty.

    Returns
    -------
    numpy.ndarray of int64, shape (chunks + 1,)
        First item of each chunk, and the number of items.
    """
    done = np.cumsum(work)
    total = done[-1] if len(done) else 0
    chunks = int(min(total, 1e18)) // _LEAST
    if chunks <= 1:
        return np.array([0, len(work)], np.int64)
    chunks = min(most or number(), chunks)
    inner = np.searchsorted(done, np.arange(1, chunks) / chunks * total)
    return np.concatenate(([0], inner, [len(work)])).astype(np.int64)


def run(work: Callable[[int, int], object], bounds: np.ndarray) -> None:
    """Call a function for each chunk in a thread of its own.

    Parameters
    ----------
    work : callable
        Called as work(first, last) for the items first … last − 1 of a chunk.
    bounds : numpy.ndarray of int64, shape (chunks + 1,)
        First item of each chunk, and the number of items.
    """
    chunks = list(pairwise(bounds.tolist()))
    if len(chunks) == 1:
        work(*chunks[0])
        return
    with ThreadPoolExecutor(len(chunks)) as pool:
        for future in [pool.submit(work, first, last) for first, last in chunks]:
            future.result()


def run_interruptible(
    work: Callable[[int, int], object], bounds: np.ndarray, *, progress: Callable[[], object] | None = None
) -> None:
    """Call a function for each of many chunks in a thread pool; Ctrl-C stops the work after the running chunks.

    Parameters
    ----------
    work : callable
        Called as work(first, last) for the items first … last − 1 of a chunk.
    bounds : numpy.ndarray of int64, shape (chunks + 1,)
        First item of each chunk, and the number of items.
    progress : callable, optional
        Called after each chunk, in any thread, but in one at a time.
    """
    chunks = list(pairwise(bounds.tolist()))
    if number() == 1 or len(chunks) <= 1:
        for first, last in chunks:
            work(first, last)
            if progress:
                progress()
        return
    waiting, alone = deque(chunks), Lock()
    threads = min(number(), len(chunks))

    def work_off() -> None:  # a future of its own would take longer than many a chunk
        while True:
            try:
                first, last = waiting.popleft()
            except IndexError:
                return
            work(first, last)
            if progress:
                with alone:
                    progress()

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work_off) for _ in range(threads)]
        try:
            for future in as_completed(futures):
                future.result()
        except BaseException:
            waiting.clear()
            raise


class _Bar(tqdm):
    """A bar without tqdm's monitor thread, which would keep running after the work and be lost in a fork."""

    monitor_interval = 0


def progress_bar(
    items: Iterable | None = None, *, label: str, unit: str, total: int | None = None, hidden: bool = False
) -> tqdm:
    """Return a progress bar on standard error, which appears after one second, only in a terminal, until its end.

    Parameters
    ----------
    items : iterable, optional
        Iterable to wrap. Without it, call `update` of the bar.
    label : str
        Text before the bar.
    unit : str
        Unit of the count, in the plural.
    total : int, optional
        Number of units.
    hidden : bool
        Whether to disable the bar.

    Returns
    -------
    tqdm.tqdm
    """
    return _Bar(items, desc=label, unit=f" {unit}", total=total, delay=1, leave=False, disable=True if hidden else None)
