"""Loops over arrays, compiled with numba. They do not check their arguments.

Kernels write to the arrays documented as output, for the items first … last − 1, so that threads can share the work.
"""

from typing import Any

from numba import njit
from numba.core import options


def _probe() -> None:
    """Do nothing; compiled to test whether machine code can be cached."""


def _can_cache() -> bool:
    try:
        njit(cache=True)(_probe)
    except RuntimeError:  # no cache directory is writable: package, user's cache or NUMBA_CACHE_DIR
        return False
    return True


_CACHED = _can_cache()
# Private option, used by numba's library itself. Without it the helpers are slower.
_UNCOUNTED: dict[str, Any] = {"_nrt": False} if hasattr(getattr(options, "DefaultOptions", None), "_nrt") else {}


def loop(function: Any) -> Any:
    """Compile a loop that releases the GIL; its machine code is cached if a cache directory is writable.

    Parameters
    ----------
    function : function
        Function of arrays and numbers.

    Returns
    -------
    numba.core.registry.CPUDispatcher
        The compiled function.
    """
    return njit(cache=_CACHED, nogil=True)(function)


def inner(function: Any) -> Any:
    """Compile a helper of loops that does not allocate arrays.

    References to its arguments are not counted, because threads contend for the counters: that took three quarters of
    the time of loops over distances.

    Parameters
    ----------
    function : function
        Function of arrays and numbers.

    Returns
    -------
    numba.core.registry.CPUDispatcher
        The compiled function.
    """
    return njit(cache=_CACHED, nogil=True, **_UNCOUNTED)(function)
