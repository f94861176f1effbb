"""How much memory and disk the work on files needs, and how it is divided to fit."""

import ctypes
import errno
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from promesse_geo.messages import counted, invalid, sized
from promesse_geo.validation import is_number

_BASE = 410e6  # bytes that a process takes before any data: imports, and compiled loops
_RECORD = 200  # bytes a record of a bucket of users
_LEFT = 80  # bytes a record that is left of a user
_CHUNK = 200  # bytes a record of a chunk
_MOST, _LEAST = 2_000_000, 20_000  # records of a chunk
_SPILL = 24  # bytes a record on disk
_SHARE = 0.7  # of the memory that buckets are planned for
_BYTES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def check_memory(value: Any, *, owner: str) -> int:
    """Return a number of bytes, from text such as '2GB' or a number.

    Raises
    ------
    TypeError, ValueError
        If it is none of at least 500 MB.
    """
    rule = "an amount such as '2GB' or '1200MB', at least 500MB"
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b)?\s*", value.lower(), re.ASCII)
        size = float(match[1]) * _BYTES.get(match[2] or "", 0) if match else 0
    elif is_number(value):
        size = float(value)
    else:
        raise TypeError(invalid("memory", owner, rule, value))
    if not 500e6 <= size < 1e15:
        raise ValueError(invalid("memory", owner, rule, value))
    return int(size)


def chunk_size(memory: int, *, workers: int) -> int:
    """Return how many records a worker reads at a time."""
    budget = max(memory - _BASE, 0) * _SHARE / workers
    return int(min(max(budget / _CHUNK, _LEAST), _MOST))


def count_buckets(records: int, memory: int, *, workers: int) -> int:
    """Return how many buckets of users fit into memory, as many at a time as there are workers."""
    budget = _SHARE * max(memory - _BASE, 1)
    return max(1, int(np.ceil(records * _RECORD * workers / budget)))


def max_records_of_results(memory: int, *, workers: int, weight: int) -> int:
    """Return how many records may be left of a bucket at a time: as many as half a bucket has.

    `weight` is the memory for a record, relative to that of protecting it.
    """
    return max(1, int(_SHARE * max(memory - _BASE, 1) / (2 * _RECORD * weight * workers)))


def bytes_needed(records: int) -> int:
    """Return how much memory a bucket needs."""
    return int(_BASE + _RECORD * records)


def check_left(records: int, memory: int, *, workers: int, weight: int) -> None:
    """Raise MemoryError if the records that are left of a user do not fit into memory, for each worker has one."""
    needed = _BASE + _LEFT * weight * records * workers / _SHARE
    if needed > memory:
        beside = "" if workers == 1 else f" with {workers} workers, which may have such traces at a time"
        fewer = "" if workers == 1 else ", or fewer workers with 'executor' (--workers)"
        raise MemoryError(
            f"About {counted(records, 'record')} would be left of the user with the longest path. This needs about "
            f"{sized(needed)}{beside}, and 'memory' (--memory) is {sized(memory)}. Specify more{fewer}."
        )


def check_disk(folder: Path, records: int) -> None:
    """Raise OSError if a folder has no space for the records."""
    free = shutil.disk_usage(folder).free
    if free < _SPILL * records:
        raise OSError(
            f"{disk_needed(folder, records)} There are {sized(free)}: free some, or name another folder with 'scratch' "
            "(--scratch)."
        )


def disk_needed(folder: Path, records: int) -> str:
    """Return in words how much of a disk the work on records needs."""
    return (
        f"The work on {counted(records, 'record')} needs about {sized(_SPILL * records)} of disk in {str(folder)!r}, "
        "besides the result."
    )


def stopped(error: OSError, folders: Sequence[Path], scratch: Path, records: int) -> OSError:
    """Return an error of the system with a sentence that names the folders instead of a temporary file.

    It names any other file, such as one of the input that was removed meanwhile, and for a full disk the space that is
    needed.
    """
    if error.errno is None or error.strerror is None:
        return error
    names = " or ".join(sorted({repr(str(folder)) for folder in folders}))
    is_full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
    is_own = is_full or _is_inside(error.filename, [*folders, scratch])
    file = "" if is_own else f": {os.fsdecode(error.filename)!r}"
    words = f"The work in {names} stopped: {error.strerror}{file}. Nothing was written."
    if is_full:
        words += f" {disk_needed(scratch, records)} Free some, or name another folder with 'scratch' (--scratch)."
    worded = type(error)(words)
    worded.errno = error.errno
    return worded


def _is_inside(file: Any, folders: Sequence[Path]) -> bool:
    """Whether a file is in one of the folders, or is no path."""
    if not isinstance(file, (str, bytes)):
        return True
    path = Path(os.fsdecode(file)).resolve()
    return any(path.is_relative_to(folder.resolve()) for folder in folders)


_trim: Callable[[int], int] | None = None
if sys.platform == "linux":
    _trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc


def release_freed() -> None:
    """Return to the system what Arrow and the C library keep of memory that is free."""
    pa.default_memory_pool().release_unused()
    if _trim is not None:
        _trim(0)


def call_and_release(step: Callable[..., Any], given: Sequence[Any]) -> Any:
    """Return what a step returns for some arguments, without memory that is left of it."""
    try:
        return step(*given)
    finally:
        release_freed()
