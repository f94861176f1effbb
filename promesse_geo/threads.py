"""Run a function over chunks of traces or records in a thread pool: compiled loops release the GIL.

The pool ends with the work, so that a process can fork afterwards, and any thread may call.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import pairwise

import numba
import numpy as np
from tqdm import tqdm

MANY = 256
"""Number of chunks with which long work can be interrupted, or balanced if some chunks take longer."""

_LEAST = 50_000  # records or so in a chunk: less is done before a thread has started


def number() -> int:
    """Return the number of threads: the processors this process may use, or NUMBA_NUM_THREADS."""
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


def even(items: int) -> np.ndarray:
    """Return the bounds, int64 of shape (chunks + 1,), of chunks with equal numbers of items."""
    chunks = items // _LEAST
    if chunks <= 1:
        return np.array([0, items], np.int64)
    return np.linspace(0, items, min(number(), chunks) + 1).astype(np.int64)


def fair(work: np.ndarray, *, most: int | None = None) -> np.ndarray:
    """Return the bounds of chunks of consecutive items that take about the same work.

    Parameters
    ----------
    work : numpy.ndarray, shape (items,)
        The work of each item, in records or so.
    most : int, optional
        The largest number of chunks; by default the number of threads. Some of many may be empty.

    Returns
    -------
    numpy.ndarray of int64, shape (chunks + 1,)
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
    """Call `work(first, last)` for each chunk between two bounds, shape (chunks + 1,); one thread per chunk."""
    chunks = list(pairwise(bounds.tolist()))
    if len(chunks) == 1:
        work(*chunks[0])
        return
    with ThreadPoolExecutor(len(chunks)) as pool:
        for future in [pool.submit(work, first, last) for first, last in chunks]:
            future.result()


def run_interruptible(
    work: Callable[[int, int], object], bounds: np.ndarray, *, progress: Callable[[], object] = lambda: None
) -> None:
    """Call `work(first, last)` for each of many chunks in a pool of threads, and `progress()` after each.

    An exception in the calling thread, such as Ctrl-C, ends the work after the chunks that are being done.
    """
    chunks = list(pairwise(bounds.tolist()))
    if number() == 1 or len(chunks) <= 1:
        for first, last in chunks:
            work(first, last)
            progress()
        return
    with ThreadPoolExecutor(min(number(), len(chunks))) as pool:
        futures = [pool.submit(work, first, last) for first, last in chunks]
        try:
            for future in as_completed(futures):
                future.result()
                progress()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class _Bar(tqdm):
    """A bar without tqdm's monitor thread, which would outlive the work and be lost in a fork."""

    monitor_interval = 0


def progress_bar(
    items: Iterable | None = None, *, label: str, unit: str, total: int | None = None, hidden: bool = False
) -> tqdm:
    """Return a progress bar on standard error that appears after a second, and only in a terminal.

    Parameters
    ----------
    items : iterable, optional
        What the bar counts when it is iterated; otherwise call its `update`.
    label, unit : str
        What is done, and to what (in the plural).
    total : int, optional
        Number of units.
    hidden : bool
        Whether to show nothing at all.
    """
    return _Bar(items, desc=label, unit=f" {unit}", total=total, delay=1, disable=True if hidden else None)
