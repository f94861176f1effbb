"""What the program of 2010, "Wait 4 Me v1.1", does in its own way."""

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from promesse_geo.messages import counted, warn
from promesse_geo.traces.traces import Traces

_SECOND = 1_000_000_000
_LONGEST = 10_000  # records: longer traces are thinned


def as_the_program_reads(traces: Traces) -> Traces:
    """Whole seconds, and record i of n where (i mod (n / 10,000)) < 1 of longer traces."""
    traces = replace(traces, times=traces.times // _SECOND * _SECOND)
    counts = traces.counts
    if len(counts) == 0 or counts.max() <= _LONGEST:
        return traces
    number = np.arange(traces.records) - np.repeat(traces.offsets[:-1], counts)
    step = np.repeat(np.maximum(counts / _LONGEST, 1), counts)
    keep = np.mod(number, step) < 1
    long = int(np.sum(counts > _LONGEST))
    warn(
        f"{len(keep) - int(keep.sum()):,} records of {counted(long, 'trace')} were left out: "
        f"the program of 2010 thins traces of more than {_LONGEST:,} records."
    )
    return traces.select(keep)


def seed_of_c(seed: int | str | None) -> int:
    """Return a seed for srand(), 1 where there is none, or say that it is none; the message does not show it."""
    if isinstance(seed, str) and seed.isdecimal():
        with suppress(ValueError):  # Python reads no integers beyond some thousand digits
            seed = int(seed)
    seed = 1 if seed is None else seed
    if not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise ValueError("The 'seed' parameter of WaitForMe with program='v1.1' must be a whole number below 2**31.")
    return seed


def c_rand(seed: int) -> Iterator[int]:
    """Yield what rand() of the GNU C library gives after srand(seed)."""
    r = [seed or 1]
    for _ in range(30):
        r.append(16807 * r[-1] % (2**31 - 1))
    r += r[:3]
    for number in itertools.count():
        r.append((r[-3] + r[-31]) % 2**32)
        del r[0]
        if number >= 310:
            yield r[-1] >> 1
