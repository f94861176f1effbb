"""Loops over arrays, compiled with numba. They do not check their arguments.

Kernels write only to the arrays that their decorators name, for the items first … last − 1, so that threads can share
the work.
"""

import multiprocessing
import sys
from typing import Any

from numba import config, njit, types
from numba.core import event, options, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher


def _probe() -> None:
    """Do nothing; compiled to test whether machine code can be cached."""


def _can_cache() -> bool:
    try:
        njit(cache=True)(_probe)
    except RuntimeError:  # no cache directory is writable: package, user's cache or NUMBA_CACHE_DIR
        return False
    return True


_CACHED = _can_cache()
# No loop is called through a pointer, which would need code of its own.
_OPTIONS: dict[str, Any] = {"nopython": True, "nogil": True, "boundscheck": None, "no_cfunc_wrapper": True}
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


class Loop(CPUDispatcher):
    """A loop that is compiled once for read-only and for writable arrays.

    Numba has a type of its own for read-only arrays and would compile loops for each mix of both, which took a third
    more time. Here all arrays are read-only for the compiler but those that the loop writes to.
    """

    def __init__(self, function: Any, outputs: str, options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options)
        self._outputs = {function.__code__.co_varnames.index(name) for name in outputs.split(", ") if name}
        self._known = set[tuple[Any, ...]]()

    def compile(self, sig: Any) -> Any:
        """Compile for the types of arguments, or return what is compiled."""
        given, _ = sigutils.normalize_signature(sig)
        shared = tuple(t if i in self._outputs else _read_only(t) for i, t in enumerate(given))
        with global_compiler_lock:
            entry = super().compile(shared)
            # Calls from Python look for exactly the types that are given. If they find them twice, because threads
            # waited here for each other, they come here each time.
            if shared != given and given not in self._known:
                self._insert([t._code for t in given], entry, False)  # type: ignore[attr-defined]
                self._known.add(given)
        return entry


def _read_only(given: Any) -> Any:
    if isinstance(given, types.Array):
        return given.copy(readonly=True)
    if isinstance(given, (types.Tuple, types.UniTuple)):
        return types.Tuple([_read_only(item) for item in given])
    return types.unliteral(given)


def loop(outputs: str = "") -> Any:
    """Compile a loop that releases the GIL; its machine code is cached if a cache directory is writable.

    Parameters
    ----------
    outputs : str, optional
        Names of the arguments that the loop writes to, as "x, y": arrays, or tuples of arrays. Numba refuses to compile
        a loop that writes to other arguments ("Cannot modify readonly array").

    Returns
    -------
    function
        A decorator of a function of arrays and numbers.
    """
    return lambda function: _compiled(function, outputs, _OPTIONS)


def inner(outputs: str = "") -> Any:
    """Compile a helper of loops that does not allocate arrays.

    References to its arguments are not counted, because threads contend for the counters: that took three quarters of
    the time of loops over distances. Parameters and result are those of `loop`.
    """
    return lambda function: _compiled(function, outputs, _OPTIONS | _UNCOUNTED)


def _compiled(function: Any, outputs: str, options: dict[str, Any]) -> Any:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    dispatcher = Loop(function, outputs, options)
    if _CACHED:
        dispatcher.enable_caching()
    return dispatcher
