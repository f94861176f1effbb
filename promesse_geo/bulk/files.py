"""Protect folders of Parquet in bounded memory."""

import hashlib
import os
import time as clock
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from promesse_geo import threads
from promesse_geo.bulk.folders import clear_finished, is_dataset, publish_folder, working_folder, working_name
from promesse_geo.bulk.job import Job
from promesse_geo.bulk.memory import check_memory, chunk_size, count_buckets, max_records_of_results
from promesse_geo.bulk.plan import find_sources, find_space
from promesse_geo.bulk.run import Report, Run
from promesse_geo.bulk.tasks import check_preparation
from promesse_geo.io.table_columns import ReadOptions
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import invalid, listed
from promesse_geo.traces.columns import Name
from promesse_geo.traces.space import Space
from promesse_geo.traces.values import UNITS, Unit
from promesse_geo.validation import check_choice, check_errors, check_flag, check_path

_OWNER = "protect_parquet"
_PREPARE = ("tz", "days", "min_days", "gap", "keep_zone", "max_speed", "keep_zero")


def protect_parquet(
    source: Any,
    target: str | os.PathLike[str],
    mechanism: Mechanism | None,
    *,
    prepare: Mapping[str, Any] | None = None,
    memory: str | int = "2GB",
    executor: Executor | None = None,
    scratch: str | os.PathLike[str] | None = None,
    encoding: str = "WKB",
    keep_users: bool = False,
    force: bool = False,
    user: Name = ...,
    time: Name = ...,
    lon: str | None = None,
    lat: str | None = None,
    crs: Any = None,
    segment: Name = ...,
    space: str | Space | None = None,
    errors: str = "raise",
    time_unit: Unit | None = None,
) -> Report:
    """Protect a folder of Parquet files, in bounded memory, and write a folder of GeoParquet files.

    Users may be spread over all files in any order. The result is that of one table of all files in the order of
    their paths, whatever the memory, the workers and the executor: with new names, the parts in the order of their
    file names hold the traces in the order of their names. Records that a column `visible` or `valid` marks as bad are
    left out with a warning, as `read_file` does.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        Parquet or GeoParquet; of a folder, all files at any depth.
    target : path
        The folder to write. It appears when it is complete.
    mechanism : Mechanism or None
        The mechanism; None if the data are only prepared. Wait for Me compares all traces, and cannot be used.
    prepare : mapping, optional
        Parameters of `prepare`: `tz`, `days`, `min_days`, `gap`, `keep_zone`, `max_speed`, `keep_zero`. By default the
        data are not prepared.
    memory : str or int
        Memory to use, such as "2GB", "1200MB", or a number of bytes; at least 500 MB. It covers the whole process, of
        which Python and the imported packages take about 410 MB. It must hold the largest trace (about 200 bytes a
        record), and for each worker what is left of the longest path (about 80 bytes a record); if it does not, an
        error names what is needed. It is a plan, not a limit: 16 workers on 500 MB took 554 MB. Processes of an
        `executor` take the 410 MB each.
    executor : concurrent.futures.Executor, optional
        Anything with `submit`, such as a pool of threads or processes, or `client.get_executor()` of Dask. Its workers
        must reach all folders. By default a thread for each processor.
    scratch : path, optional
        Folder for true data that do not fit into memory: 24 bytes a record. By default beside `target`. They are in a
        folder of their own that only its owner can enter, and are removed at the end and if the work fails or is
        interrupted. Only a killed process leaves them, until the same call goes on with them or another clears them.
    encoding : {"WKB", "point"}
        How points are written: as well-known binary, which every reader of GeoParquet knows, or as structures of x and
        y, which are smaller and can be filtered by their statistics.
    keep_users : bool
        Keep user names instead of renaming them. Never publish names of people.
    force : bool
        Whether to replace an existing folder that holds nothing but such parts.
    user, time, lon, lat, crs, segment : column names and CRS
        As for `read_file`; by default detected. With `user="file"`, `"folder"` or `"folder-2"` the names of files or
        folders are the users. Files may hold a column in several types of text, of numbers or of times.
    space : {"sphere", "plane"}, Sphere, Plane or None
        Where distances are measured; None chooses by the CRS and, if it is projected, by the data.
    errors : {"raise", "skip"}
        Whether to raise an error if files cannot be read, if records have no valid location, time or user, or if files
        are of formats other than Parquet that `read_file` reads, or to leave them out with a warning that counts them.
        Other files are never read.
    time_unit : {"s", "ms", "us", "ns"}, optional
        The unit of written times; by default that of the input, or of the mechanism if it makes times. Spark needs
        "us".

    Returns
    -------
    Report
        The counts.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is invalid, or the files cannot be read.
    OSError
        If the target exists, or there is no space on the disk.
    MemoryError
        If the largest trace, or what is left of it, does not fit into `memory`.

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> parts = pg.make_city(users=3, days=2).promesse.prepare(tz="Europe/Paris", keep_user=True)
    >>> pg.write(parts, folder / "city.parquet")
    >>> report = pg.protect_parquet(folder / "city.parquet", folder / "safe", pg.Promesse(200))
    >>> [file.name for file in (folder / "safe").iterdir()]
    ['part-00000.parquet']
    """
    begin = clock.perf_counter()
    _check_mechanism(mechanism, prepare)
    resources = Resources.check(memory, executor, scratch, owner=_OWNER)
    options = ReadOptions(user, time, lon, lat, crs, None, lenient=False, segment=segment, several_files=True)
    started = start_run(
        source,
        target,
        resources,
        options,
        owner=_OWNER,
        force=force,
        space=space,
        errors=errors,
        choices={
            "preparation": None if prepare is None else dict(prepare),
            "mechanism": mechanism,
            "keep_users": check_flag(keep_users, name="keep_users", owner=_OWNER),
            **check_writing(encoding, time_unit, owner=_OWNER),
        },
    )
    with started as (run, final):
        report = run.run()
        job = run.job
        has_names = not job.renames and job.layout.names.user is not None and report.pseudonyms < report.users
        publish_folder(job, final, force=force, has_names=has_names)
    return replace(report, path=os.fspath(target), seconds=clock.perf_counter() - begin)


@dataclass(frozen=True)
class Resources:
    """What the work on files may use.

    Parameters
    ----------
    memory : int
        Bytes of memory.
    executor : Executor or None
        What runs the steps; None for threads.
    workers : int
        How many steps run at a time.
    scratch : pathlib.Path or None
        The folder for true data; None for that of the target.
    """

    memory: int
    executor: Executor | None
    workers: int
    scratch: Path | None

    @classmethod
    def check(cls, memory: Any, executor: Any, scratch: Any, *, owner: str) -> "Resources":
        """Check the parameters; raise TypeError, ValueError or FileNotFoundError."""
        amount = check_memory(memory, owner=owner)
        if executor is not None and not callable(getattr(executor, "submit", None)):
            raise TypeError(invalid("executor", owner, "an executor with 'submit', or None", executor))
        folder = None if scratch is None else check_path(scratch, name="scratch", owner=owner).absolute()
        if folder is not None and not folder.is_dir():
            raise FileNotFoundError(f"'scratch' (--scratch) {str(folder)!r} is no folder. Create it first.")
        return cls(amount, executor, count_workers(executor), folder)


def check_writing(encoding: Any, time_unit: Any, *, owner: str) -> dict[str, Any]:
    """Return how records are written, by name; raise TypeError or ValueError."""
    check_choice(encoding, name="encoding", owner=owner, options=("WKB", "point"))
    if time_unit is not None:
        check_choice(time_unit, name="time_unit", owner=owner, options=UNITS)
    return {"encoding": encoding, "time_unit": time_unit}


@contextmanager
def start_run(
    source: Any,
    target: Any,
    resources: Resources,
    options: ReadOptions,
    *,
    owner: str,
    force: bool,
    space: Any,
    errors: str,
    choices: Mapping[str, Any],
    kind: type[Job] = Job,
) -> Iterator[tuple[Run, Path]]:
    """Yield a run on the files of a source, in folders that are removed at the end, and the target as a path.

    Parameters
    ----------
    source, target, force, space, errors
        As for `protect_parquet`.
    resources : Resources
        What the work may use.
    options : ReadOptions
        The columns.
    owner : str
        The function that errors name.
    choices : mapping
        The other parameters of the job.
    kind : type of Job
        The job.
    """
    drops = check_errors(errors, owner=owner) == "drop"
    final = check_path(target, name="target", owner=owner).absolute()
    mark = "" if resources.scratch is None else "-" + hashlib.blake2b(os.fsencode(final), digest_size=8).hexdigest()
    beside = final.parent if resources.scratch is None else resources.scratch
    work = final.with_name(working_name(final))
    private = beside / f"{work.stem}{mark}.partial"
    clear_finished(list(dict.fromkeys((work, private))), final)
    _check_target(final, force=check_flag(force, name="force", owner=owner))
    _check_apart(final, source, owner=owner)
    workers, memory = resources.workers, resources.memory
    chunk = chunk_size(memory, workers=workers)
    sources = find_sources(source, options, chunk=chunk, owner=owner, drops=drops)
    _check_apart(final, [path for path, *_ in sources.states], owner=owner)  # of a pattern
    weighted = kind.weight * sources.records
    buckets = 1 if sources.layout.names.user is None else count_buckets(weighted, memory, workers=workers)
    job = kind(
        scratch=private / "spills",
        parts=work / "parts",
        space=find_space(sources, space),
        **sources.choices(),
        chunk=chunk,
        buckets=buckets,
        name_buckets=min(256, 4 * buckets),
        max_records=max_records_of_results(memory, workers=workers, weight=kind.weight),
        memory=memory,
        workers=workers,
        **choices,
    )
    with working_folder(job, final, sources.states, records=sources.records) as (job, done):
        run = Run(job, done, resources.executor, workers, memory, drops, sources.records, sources.unread)
        yield replace(run, skipped=sources.skipped, owner=owner), final


def _check_mechanism(mechanism: Any, preparation: Any) -> None:
    """Raise TypeError or ValueError if a mechanism cannot be used bucket by bucket, or parameters are unknown."""
    if not isinstance(mechanism, (Mechanism, type(None))):
        raise TypeError(invalid("mechanism", _OWNER, "a mechanism such as pg.Promesse(200), or None", mechanism))
    if mechanism is None and preparation is None:
        raise ValueError("'mechanism' of protect_parquet is None, and so is 'prepare': there is nothing to do.")
    if mechanism is not None:
        check_per_user(mechanism)
    if preparation is None:
        return
    if not isinstance(preparation, Mapping):
        raise TypeError(invalid("prepare", _OWNER, "a mapping such as {'tz': 'Europe/Paris', 'days': 20}", preparation))
    unknown = [name for name in preparation if name not in _PREPARE]
    if unknown:
        raise ValueError(f"'prepare' of protect_parquet has no {listed(unknown)}. Choose from {listed(_PREPARE)}.")
    check_preparation(preparation)


def check_per_user(mechanism: Mechanism) -> None:
    """Raise ValueError if a mechanism cannot be used bucket by bucket."""
    if not mechanism.is_per_user:
        raise ValueError(
            f"{type(mechanism).__name__} compares all traces with each other, which do not fit into bounded memory. "
            "Read the data with pg.read_file, and protect them at once, or in regions. On the command line, name an "
            "output with an extension, such as .parquet."
        )


def _check_target(target: Path, *, force: bool) -> None:
    """Raise if a folder cannot be written: a check before long work."""
    if target.is_symlink():
        raise FileExistsError(f"{str(target)!r} is a link. Name the folder that it points to.")
    if target.exists() and not force:
        raise FileExistsError(f"{str(target)!r} already exists. Pass force=True (--force) to replace it.")
    if target.exists() and not is_dataset(target):
        raise FileExistsError(
            f"{str(target)!r} is no folder of parts that protect_parquet wrote, and is not replaced. Name another one."
        )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {str(target.parent)!r} does not exist. Create it first.")


def _check_apart(target: Path, source: Any, *, owner: str) -> None:
    """Raise ValueError if the target is the source, lies in it or holds it."""
    paths = [source] if isinstance(source, (str, os.PathLike)) else source if isinstance(source, (list, tuple)) else []
    inside = target.resolve()
    for path in paths:
        if not isinstance(path, (str, os.PathLike)) or not os.path.exists(path):
            continue
        read = Path(os.fspath(path)).resolve()
        if inside.is_relative_to(read) or read.is_relative_to(inside):
            raise ValueError(
                f"'target' of {owner} is the source, lies in it or holds it: the originals would be lost, or "
                "the result read as part of them. Name another folder."
            )


def count_workers(executor: Any) -> int:
    """Return how many tasks run at a time."""
    number = getattr(executor, "_max_workers", None)
    client = getattr(executor, "_client", None)  # of Dask
    if number is None and client is not None:
        number = sum(client.nthreads().values())
    return number if isinstance(number, int) and number > 0 else threads.number()
