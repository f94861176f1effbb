"""Loops over arrays, compiled."""

from typing import Any

from numba import njit


def _probe() -> None:
    """Do nothing: what is compiled first, to see whether it can be kept."""


def _can_be_kept() -> bool:
    try:
        njit(cache=True)(_probe)
    except RuntimeError:  # neither the package, nor the user's cache, nor NUMBA_CACHE_DIR can be written
        return False
    return True


_KEPT = _can_be_kept()


def loop(function: Any) -> Any:
    """Compile a loop, once for all processes where the machine code can be kept; it runs without Python's lock."""
    return njit(cache=_KEPT, nogil=True)(function)


def inner(function: Any) -> Any:
    """Compile a part of loops, which makes no arrays of its own.

    It does not count who holds the arrays that it is given. All threads would count on the same few bytes, at every
    call: that took three quarters of the time of loops over the distances of records.
    """
    uncounted: dict[str, Any] = {"_nrt": False}  # what Numba's own library says of such functions
    return njit(cache=_KEPT, nogil=True, **uncounted)(function)
