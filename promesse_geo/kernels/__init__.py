"""Loops over arrays, compiled with numba. They do not check their arguments.

Kernels write to the arrays documented as output, for the items first … last − 1, so that threads can share the work.
"""

import multiprocessing
import sys
from typing import Any

from numba import njit
from numba.core import event, options


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


class Notice(event.Listener):
    """Writes one line to standard error when a loop of this package is first compiled, which takes long.

    It does so in a terminal or a notebook, as progress bars do, and only in the main process. Calls cost nothing: numba
    calls it when it compiles, not when it loads machine code from the cache.
    """

    def __init__(self) -> None:
        self.is_written = False

    def on_start(self, event: Any) -> None:
        """Write the line, unless it is written or the loop is of another package."""
        is_ours = event.data["dispatcher"].py_func.__module__.startswith(__name__)
        if self.is_written or not is_ours or multiprocessing.current_process().name != "MainProcess":
            return
        self.is_written = True
        if sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules):
            when = "once" if _CACHED else "in each process, because no cache directory is writable"
            sys.stderr.write(f"Compiling loops ({when}; about 30 s in all) …\n")

    def on_end(self, event: Any) -> None:
        """Do nothing."""


event.register("numba:compile", Notice())


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
    the time of loops over distances. Parameters and result are those of `loop`.
    """
    return njit(cache=_CACHED, nogil=True, **_UNCOUNTED)(function)
