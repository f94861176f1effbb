"""Compiled loops over arrays: arrays and numbers in, arrays out, no checks."""

from typing import Any

from numba import njit
from numba.core import options


def _probe() -> None:
    """Do nothing: compiled to test whether machine code can be cached."""


def _can_cache() -> bool:
    try:
        njit(cache=True)(_probe)
    except RuntimeError:  # neither the package, nor the user's cache, nor NUMBA_CACHE_DIR can be written
        return False
    return True


_CACHED = _can_cache()
# Private, but what numba's own library uses. A numba without it compiles the same helpers, only slower.
_UNCOUNTED: dict[str, Any] = {"_nrt": False} if hasattr(getattr(options, "DefaultOptions", None), "_nrt") else {}


def loop(function: Any) -> Any:
    """Compile a loop. It releases the GIL; its machine code is cached where a cache directory can be written."""
    return njit(cache=_CACHED, nogil=True)(function)


def inner(function: Any) -> Any:
    """Compile a helper of loops that allocates no arrays.

    It does not count references to its arguments, because the counters contend between threads: that took three
    quarters of the time of loops over distances.
    """
    return njit(cache=_CACHED, nogil=True, **_UNCOUNTED)(function)
