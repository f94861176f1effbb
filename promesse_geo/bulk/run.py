"""Run the steps of protecting files under an executor, and count what they did."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import accumulate, chain, pairwise
from operator import add
from typing import Any

import numpy as np

from promesse_geo.bulk.folders import Done, remove_spills
from promesse_geo.bulk.job import Job
from promesse_geo.bulk.memory import bytes_needed, call_and_release
from promesse_geo.bulk.reading import scatter
from promesse_geo.bulk.results import Gathered, Scattered
from promesse_geo.bulk.runs import Spill
from promesse_geo.bulk.tasks import gather, largest_trace, write_names
from promesse_geo.io.batch import Skipped, none_read, warn_dropped
from promesse_geo.messages import CountedWarning, DroppedWarning, added_up, counted, counted_of, sized, warn
from promesse_geo.threads import progress_bar
from promesse_geo.traces.records import DroppedColumns, warn_dropped_columns

_PART = 2_000_000  # records of a part


@dataclass(frozen=True)
class Report:
    """What `protect_parquet` did.

    Parameters
    ----------
    path : str
        The folder of the result.
    records : int
        Records read.
    dropped_records : int
        Records without a valid location, time or user, which were dropped.
    users : int
        Users read.
    traces, prepared_records : int
        What the mechanism got: the traces of users, or what `prepare` made of them.
    protected_traces, protected_records : int
        What was written.
    largest_trace : int
        Records of the user with most records.
    parts : int
        Files written.
    bytes : int
        Their size.
    seconds : float
        How long it took.
    people : int
        Users, of whom `<user>-00000`, `<user>-00001`, … are one.
    pseudonyms : int
        Users with names as `pseudonymize` gives them.
    counts : mapping of str to int
        What is odd in the data, under the names of `describe`, and numbers of what was dropped by `prepare` before
        protection: dropped_zero_fixes, dropped_jumps, dropped_users and dropped_other_days. What was not counted is
        not in it. `unread_files` are files in the folders whose extension is another one, `skipped_files` those that
        could not be read, and `marked_records` those that a column `visible` or `valid` marks as bad, which are not in
        `dropped_records`.

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> parts = pg.make_city(users=3, days=2).promesse.prepare(tz="Europe/Paris", keep_user=True)
    >>> pg.write(parts, folder / "city.parquet")
    >>> report = pg.protect_parquet(folder / "city.parquet", folder / "safe", pg.Promesse(200))
    >>> report.users, report.dropped_traces
    (12, 0)
    """

    path: str
    records: int
    dropped_records: int
    users: int
    traces: int
    prepared_records: int
    protected_traces: int
    protected_records: int
    largest_trace: int
    parts: int
    bytes: int
    seconds: float
    people: int = 0
    pseudonyms: int = 0
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def dropped_traces(self) -> int:
        """Traces of which nothing is left."""
        return max(self.traces - self.protected_traces, 0)

    def __str__(self) -> str:
        """Return the numbers in words."""
        users = counted(self.users, "user")
        if self.users == self.pseudonyms:
            users = counted(self.users, "trace")
        elif self.people < self.users:
            users = f"{counted(self.users, 'trace')} of {counted(self.people, 'user')}"
        return (
            f"{counted(self.records, 'record')} of {users} -> "
            f"{counted(self.protected_records, 'record')} of {counted(self.protected_traces, 'trace')} in "
            f"{counted(self.parts, 'file')} ({sized(self.bytes)}), {self.seconds:,.1f} s"
        )


@dataclass
class Run:
    """A run of a job.

    Parameters
    ----------
    job : Job
        The job.
    done : Done
        The steps that are done, and their results.
    executor : Executor or None
        What runs the steps; None for threads.
    workers : int
        How many steps run at a time.
    memory : int
        Bytes to use.
    drops : bool
        Whether invalid records are dropped with a warning.
    records : int
        Records of the input.
    unread : int
        Files in the folders of the input that are not read, because their extension is another one.
    skipped : sequence of Skipped
        Files that cannot be read.
    owner : str
        The function that warnings name.
    """

    job: Job
    done: Done
    executor: Executor | None
    workers: int
    memory: int
    drops: bool
    records: int
    unread: int = 0
    skipped: Sequence[Skipped] = ()
    owner: str = "protect_parquet"

    def run(self) -> Report:
        """Do all steps, and return the counts."""
        scattered, gathered = self.protect(gather, Gathered.all_of)
        if self.records and not any(each.protected_records for each in gathered):
            raise ValueError(f"Nothing is left to write: {self._why_nothing(gathered)}")
        warnings = added_up(each.remarks for each in gathered)
        result = self._sum_up(scattered, gathered, self.write(gathered), warnings)
        for warning in warnings:
            warn(warning)
        if result.dropped_traces and not (self.job.mechanism is not None and str(warnings[-1])):
            warn(f"Nothing is left of {result.dropped_traces:,} of {counted(result.traces, 'trace')}.")
        return result

    def _why_nothing(self, gathered: Sequence[Gathered]) -> str:
        """Return why no record is left: what preparation dropped, or that no trace could be protected."""
        mechanism, texts = self.job.mechanism, list(map(str, added_up(each.remarks for each in gathered)))
        if self.job.preparation is not None and (mechanism is None or not texts[-1]):
            return " ".join(filter(None, ["no record is left after preparation.", *texts]))
        return f"no trace could be protected. {'' if mechanism is None else mechanism.remedy}".strip()

    def protect(
        self, step: Callable[..., Sequence[Gathered]], restore: Callable[[Any], Any]
    ) -> tuple[list[Scattered], list[Any]]:
        """Divide the input by user, protect each bucket, and return what was read and what its portions became.

        Parameters
        ----------
        step : callable
            Called with the job, a bucket and the spills.
        restore : callable
            Makes a result of what JSON holds of it.
        """
        scattered, spills, counts = self.scatter()
        times = [time for each in scattered for time in (each.first, each.last) if time is not None]
        self.job = replace(self.job, period=(min(times, default=0), max(times, default=0)))
        calls = {bucket: (bucket, spills) for bucket in range(self.job.buckets)}
        gathered = self.all("protecting", step, calls, counts, restore)
        remove_spills(self.job, "chunk")
        left_out = sum(each.dropped + sum(count for count, _ in each.marked.values()) for each in scattered)
        if self.records and self.records == left_out:
            raise ValueError("Nothing is left to write: no record has a valid location, time and user.")
        return scattered, list(chain.from_iterable(gathered))

    def write(self, gathered: Sequence[Gathered]) -> list[int]:
        """Write what has new names, and return the size of each part."""
        return self._write_names(gathered) if self.job.renames else [each.bytes for each in gathered if each.bytes]

    def scatter(self) -> tuple[list[Scattered], list[Spill], list[int]]:
        """Divide the input by user; return what was read, all spills, and the number of records of each bucket."""
        tasks, records = self.job.tasks, self.records
        calls, sizes = {number: (number,) for number in range(len(tasks))}, [records // max(len(tasks), 1)] * len(tasks)
        scattered = self.all("reading", scatter, calls, sizes, Scattered.of)
        while again := self._skip_failed(scattered):
            some = {number: calls[number] for number in again}
            results = self.all("reading", scatter, some, sizes, Scattered.of, anew=True)
            by_number = dict(zip(again, results, strict=True))
            scattered = [by_number.get(number, result) for number, result in enumerate(scattered)]
        self.records = sum(each.records for each in scattered)
        self._report_skipped()
        self._report_invalid(scattered)
        spills = [spill for each in scattered for spill in each.spills]
        counts = np.sum([spill.records for spill in spills], axis=0).tolist() if spills else [0] * self.job.buckets
        self._check_memory(spills, counts)
        return scattered, spills, counts

    def all(
        self,
        label: str,
        step: Callable[..., Any],
        calls: Mapping[int, tuple[Any, ...]],
        sizes: Sequence[int],
        restore: Callable[[Any], Any],
        *,
        most: int | None = None,
        anew: bool = False,
    ) -> list[Any]:
        """Do a step for each number, and return the results in their order.

        The largest ones are done first, and as many at a time as fit into memory.

        Parameters
        ----------
        label : str
            What the progress bar says.
        step : callable
            Called with the job and the arguments of `calls`.
        calls : mapping of int to tuple
            The arguments by number.
        sizes : sequence of int
            The records of each number.
        restore : callable
            Makes a result of what JSON holds of it.
        most : int, optional
            Records that a step has in memory at a time, by default all of its number.
        anew : bool
            Whether results that there are do not count.
        """
        held = sizes if most is None else [min(size, most) for size in sizes]
        done = {} if anew else self.done.of(step.__name__)
        results = {number: restore(result) for number, result in done.items()}
        waiting = sorted(calls.keys() - results, key=lambda number: (-sizes[number], number))
        running: dict[Future[Any], int] = {}
        pool = ThreadPoolExecutor(self.workers) if self.executor is None else nullcontext(self.executor)
        with pool as executor, progress_bar(label=label, unit="records", total=sum(sizes)) as bar:
            bar.update(sum(sizes[number] for number in results))
            try:
                while waiting or running:
                    while waiting and self._has_room([held[each] for each in running.values()], held[waiting[0]]):
                        number = waiting.pop(0)
                        running[executor.submit(call_and_release, step, (self.job, *calls[number]))] = number
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        number = running.pop(future)
                        results[number] = future.result()
                        self.done.add(step.__name__, number, results[number])
                        bar.update(sizes[number])
            except BaseException:
                for future in running:
                    future.cancel()
                wait(running)
                raise
        return [results[number] for number in sorted(results)]

    def _has_room(self, running: Sequence[int], size: int) -> bool:
        """Whether a step on so many records can begin beside those that run."""
        return not running or (len(running) < self.workers and self._bytes_needed(sum(running) + size) <= self.memory)

    def _bytes_needed(self, records: int) -> int:
        return bytes_needed(self.job.weight * records)

    def _skip_failed(self, scattered: Sequence[Scattered]) -> list[int]:
        """Skip the files that could not be read, and return the tasks that read some of them."""
        failed = {path: why for each in scattered for path, why in [*each.failed.items(), *each.skipped.items()]}
        if not failed:
            return []
        self.job = replace(self.job, skipped={**failed, **self.job.skipped})
        return [
            number
            for number, (pieces, result) in enumerate(zip(self.job.tasks, scattered, strict=True))
            if any(piece.path in failed and piece.path not in result.skipped for piece in pieces)
        ]

    def _report_skipped(self) -> None:
        """Warn of files that could not be read; raise ValueError if none could."""
        self.skipped = sorted([*self.skipped, *(Skipped(path, why) for path, why in self.job.skipped.items())])
        if not self.skipped:
            return
        paths = {piece.path for task in self.job.tasks for piece in task}
        if paths and paths <= self.job.skipped.keys():
            raise none_read(self.skipped)
        warn_dropped([], self.skipped, owner=self.owner)

    def _report_invalid(self, scattered: Sequence[Scattered]) -> None:
        """Raise or warn of invalid records, and warn of elevations."""
        invalid, marked = (
            _sum_by_reason([getattr(each, name) for each in scattered]) for name in ("invalid", "marked")
        )
        if invalid:
            number = sum(each.dropped for each in scattered)
            total = sum(each.records for each in scattered)
            details = "; ".join(f"{reason}: {count:,}, first in {place}" for reason, (count, place) in invalid.items())
            if not self.drops:
                raise ValueError(
                    f"{number:,} of {counted(total, 'record')} cannot be used (rows are counted from 0): {details}. "
                    "Fix them, or drop them with errors='skip' (--skip)."
                )
            dropped = counted_of(number, total, "record", "was dropped", "were dropped")
            warn(f"{dropped} (rows are counted from 0): {details}.")
        if marked:
            details = "; ".join(
                f"{counted(count, 'record')} {reason} (first in {place}, counted from 0)"
                for reason, (count, place) in marked.items()
            )
            counts = {f"records ({reason})": count for reason, (count, _) in marked.items()}
            warn(DroppedWarning(f"Left out: {details}.", counts))
        warn_dropped_columns(DroppedColumns((), any(each.elevation for each in scattered)))

    def _check_memory(self, spills: Sequence[Spill], counts: Sequence[int]) -> None:
        """Raise MemoryError if the users of a bucket do not fit into memory, before they are read."""
        bucket = int(np.argmax(counts))
        needed = self._bytes_needed(counts[bucket])
        if needed <= self.memory:
            return
        longest = largest_trace(self.job, bucket, spills)
        raise MemoryError(
            f"The largest trace has {counted(longest, 'record')}. It and those that are protected with it need about "
            f"{sized(needed)}, and 'memory' (--memory) is {sized(self.memory)}. Specify more."
        )

    def _write_names(self, gathered: Sequence[Gathered]) -> list[int]:
        """Write parts of traces in the order of their new names, and return the size of each."""
        spills = [spill for each in gathered for spill in each.spills]
        counts = np.sum([spill.records for spill in spills], axis=0).tolist()
        least = max(min(_PART, self.memory // (self.workers * 400)), 1)
        bounds = [0]
        for bucket, total in enumerate(accumulate(counts)):
            if total - sum(counts[: bounds[-1]]) >= least:
                bounds.append(bucket + 1)
        bounds = bounds if bounds[-1] == len(counts) else [*bounds, len(counts)]
        parts = [part for part in pairwise(bounds) if sum(counts[slice(*part)])] or [(0, len(counts))]
        unit = gathered[0].unit
        calls = {number: (number, *part, spills, unit) for number, part in enumerate(parts)}
        sizes = [sum(counts[first:last]) for first, last in parts]
        return self.all("writing", write_names, calls, sizes, int, most=self.job.max_records)

    def _sum_up(
        self,
        scattered: Sequence[Scattered],
        gathered: Sequence[Gathered],
        sizes: Sequence[int],
        warnings: Sequence[CountedWarning],
    ) -> Report:
        """Return the counts of all steps."""
        found = vars(reduce(add, (each.problems for each in gathered)))
        counts = {name: count for name, count in found.items() if count is not None}
        counts["unread_files"] = self.unread
        counts["skipped_files"] = len(self.skipped)
        counts["marked_records"] = sum(count for each in scattered for count, _ in each.marked.values())
        for warning in warnings:
            for remark in warning.remarks:
                counts |= remark.totals
        return Report(
            path="",
            records=self.records,
            dropped_records=sum(each.dropped for each in scattered),
            users=sum(each.users for each in gathered),
            traces=sum(each.traces for each in gathered),
            prepared_records=sum(each.prepared_records for each in gathered),
            protected_traces=sum(each.protected_traces for each in gathered),
            protected_records=sum(each.protected_records for each in gathered),
            largest_trace=max(each.largest for each in gathered),
            parts=len(sizes),
            bytes=sum(sizes),
            seconds=0.0,
            people=sum(each.people for each in gathered),
            pseudonyms=sum(each.pseudonyms for each in gathered),
            counts=counts,
        )


def _sum_by_reason(parts: Sequence[Mapping[str, tuple[int, str]]]) -> dict[str, tuple[int, str]]:
    """Return sums of counts by reason, with the first place of each."""
    sums: dict[str, tuple[int, str]] = {}
    for part in parts:
        for reason, (count, first) in part.items():
            before, place = sums.get(reason, (0, first))
            sums[reason] = (before + count, place)
    return sums
