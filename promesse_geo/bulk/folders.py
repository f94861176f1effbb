"""Folders that appear when they are complete, and the steps that are done."""

import ctypes
import hashlib
import json
import os
import pickle
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from promesse_geo.bulk.job import Job
from promesse_geo.bulk.memory import check_disk, stopped
from promesse_geo.io.atomic import lock_folder
from promesse_geo.io.parquet_table import open_parquet
from promesse_geo.io.table_columns import METADATA_KEY
from promesse_geo.mechanisms.base import keeps_positions
from promesse_geo.messages import warn

_PLAN = "plan.json"
_REPLACED = "replaced"  # what the target was, while it is absent
_OLD = "old"  # what the target was, when it is replaced
_INSIDE = {"spills", "parts", _REPLACED, _OLD}
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_LONGEST_NAME = 255 - 17  # bytes; the folder of spills has a mark, too


class Done:
    """Results of the steps that are done, kept as small files beside the spills.

    Parameters
    ----------
    folder : pathlib.Path
        The folder of spills.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, step: str) -> dict[int, Any]:
        """Return the results of a step by number, as JSON holds them."""
        found = self._folder.glob(f"done-{step}-*.json")
        return {int(path.stem.rpartition("-")[2]): json.loads(path.read_text(encoding="utf-8")) for path in found}

    def add(self, step: str, number: int, result: Any) -> None:
        """Note that a step is done."""
        if isinstance(result, list):
            content: Any = [asdict(each) for each in result]
        else:
            content = result if isinstance(result, int) else asdict(result)
        _write_json(self._folder / f"done-{step}-{number:06d}.json", content)


class NothingDone(Done):
    """Steps of work that is not resumed."""

    def __init__(self) -> None:
        super().__init__(Path())

    def of(self, step: str) -> dict[int, Any]:
        """Return no results."""
        return {}

    def add(self, step: str, number: int, result: Any) -> None:
        """Keep nothing."""


def _write_json(path: Path, content: Any) -> None:
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(path)


@contextmanager
def working_folder(job: Job, target: Path, states: Sequence[Any], *, records: int) -> Iterator[tuple[Job, Done]]:
    """Create the folders of a job, or go on with those of a killed run of the same job; remove them at the end.

    Only their owner can enter them.

    Yields
    ------
    Job, Done
        The job with its secret keys, and the steps that are done.

    Raises
    ------
    FileExistsError
        If another run works on the same target.
    OSError
        If there is no space on the disk.
    """
    work = job.parts.parent
    folders, places = dict.fromkeys((work, job.scratch.parent)), (work, job.scratch)
    for folder in folders:
        _check_ours(folder)
    try:
        for folder in folders:
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise stopped(error, places, job.scratch, records) from None
    locks = [lock_folder(folder, wait=False) for folder in folders]
    if None in locks and os.name != "nt":
        for taken in locks:
            if taken is not None:
                os.close(taken)
        raise FileExistsError(f"Another run is writing {str(target)!r}, or {str(work)!r} cannot be locked.")
    try:
        job = _resume(job, states)
        check_disk(job.scratch, records)
        yield job, Done(job.scratch)
    except OSError as error:
        raise stopped(error, places, job.scratch, records) from error
    finally:
        if _restore(work, target):
            for folder in folders:
                _remove(folder)
        for lock in locks:
            if lock is not None:
                os.close(lock)


def clear_finished(folders: Sequence[Path], target: Path) -> None:
    """Move back what a run took from the target and was killed, and remove folders without spills and parts."""
    for folder in folders:
        if folder.is_symlink() or not folder.is_dir():
            continue
        names = {path.name for path in folder.iterdir()}
        if names - _INSIDE or not (_REPLACED in names or target.exists()):
            continue
        lock = lock_folder(folder, wait=False)
        if lock is not None or os.name == "nt":
            if _restore(folder, target) and not names - {_REPLACED, _OLD}:
                _remove(folder)
            if lock is not None:
                os.close(lock)


def _restore(work: Path, target: Path) -> bool:
    """Move what was taken from the target back if the target is absent; warn and return False if that fails."""
    replaced = work / _REPLACED
    try:
        if replaced.is_dir() and not os.path.lexists(target):
            replaced.rename(target)
    except OSError as error:
        warn(f"What {str(target)!r} was is in {str(replaced)!r}: it could not be moved back ({error.strerror}).")
        return False
    return True


def working_name(target: Path) -> str:
    """Return the name of the working folder of a target, short enough for a file system."""
    name = os.fsencode(target.name)
    if len(name) + len(".partial") <= _LONGEST_NAME:
        return f"{target.name}.partial"
    return f"{hashlib.blake2b(name, digest_size=16).hexdigest()}.partial"


def _check_ours(folder: Path) -> None:
    """Raise FileExistsError if a working folder exists and holds what is not of a killed run."""
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir() or {path.name for path in folder.iterdir()} - _INSIDE:
        raise FileExistsError(
            f"{str(folder)!r} exists, and is no folder of a run that was killed. It would be removed: rename it, or "
            "name another target."
        )


def _remove(folder: Path) -> None:
    """Remove a folder of true data; warn if that fails."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        warn(f"{str(folder)!r} holds true data, and could not be removed ({error.strerror}). Remove it.")
    except BaseException:  # interrupted once more
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _resume(job: Job, states: Sequence[Any]) -> Job:
    """Return the job with the keys of a killed run of the same job, or with new ones in empty folders."""
    mark = _fingerprint(job, states)
    plan = job.scratch / _PLAN
    try:
        found = json.loads(plan.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    if found.get("job") != mark or not job.parts.is_dir():
        for folder in (job.scratch, job.parts):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700, parents=True)
        found = {
            "job": mark,
            "key": "" if job.keep_users else secrets.token_hex(32),  # kept names tell more than the files
            "names": secrets.token_hex(32),
            "seed": secrets.token_hex(32),
        }
        _write_json(plan, found)
    mechanism = None if job.mechanism is None else job.mechanism.with_seed(found["seed"])
    return replace(job, key=bytes.fromhex(found["key"]), seed=found["names"], mechanism=mechanism)


def _fingerprint(job: Job, states: Sequence[Any]) -> str:
    """Return what differs if the job, the version or any file does."""
    choices = {name: value for name, value in vars(job).items() if name not in ("mechanism", "layout", "space")}
    parts = [repr(choices), repr(job.layout.names), job.layout.crs.to_wkt(), job.space.name, repr(states)]
    try:
        parts.append(pickle.dumps(job.mechanism).hex())
    except (pickle.PicklingError, AttributeError, TypeError):
        parts.append(repr(job.mechanism))
    return hashlib.blake2b("\n".join(parts).encode(errors="surrogatepass")).hexdigest()


def remove_spills(job: Job, kind: str) -> None:
    """Remove spills that are not needed any more."""
    for path in job.scratch.glob(f"{kind}-*"):
        path.unlink(missing_ok=True)


def is_dataset(folder: Path) -> bool:
    """Whether a folder holds parts of ours and nothing else."""
    if not folder.is_dir() or folder.is_symlink():
        return False
    return all(path.match("part-*.parquet") and _is_part(path) for path in folder.iterdir())


def _is_part(path: Path) -> bool:
    """Whether a file is Parquet that names a mechanism or nothing, as ours does."""
    try:
        with open_parquet(path) as file:
            return METADATA_KEY.encode() in (pq.read_metadata(file).metadata or {})
    except (OSError, ValueError):
        return False


def publish_folder(job: Job, target: Path, *, force: bool, has_names: bool = False) -> None:
    """Move finished parts to the target, in the place of a folder of such parts.

    They are for their owner only if they hold true positions, or names of users.
    """
    private = has_names or keeps_positions(job.protection)
    mask = os.umask(0)
    os.umask(mask)
    for path in job.parts.iterdir():
        path.chmod(0o600 if private else 0o666 & ~mask)
    job.parts.chmod(0o700 if private else 0o777 & ~mask)
    _remove(job.scratch)
    if not target.exists():
        job.parts.rename(target)
        return
    if not force or not is_dataset(target):
        raise FileExistsError(f"{str(target)!r} was created meanwhile, or changed. It is not replaced.")
    work = job.parts.parent
    if _exchange(job.parts, target):
        job.parts.rename(work / _OLD)
        return
    try:
        target.rename(work / _REPLACED)
        job.parts.rename(target)
    except BaseException:
        _restore(work, target)
        raise
    (work / _REPLACED).rename(work / _OLD)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders at once; return False if the system or the disk cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    return rename is not None and not rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
