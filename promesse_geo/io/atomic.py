"""Write files completely or not at all, with the right permissions, and remove what killed runs left."""

import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from promesse_geo.io.gdal import SQLITE_JOURNALS

if sys.platform != "win32":
    import fcntl

_ENDING = ".part"


def check_target(path: str | os.PathLike[str], *, force: bool) -> None:
    """Raise if no file can be written to a path: a check before long work.

    Raises
    ------
    FileExistsError, FileNotFoundError, IsADirectoryError
        If the file exists and `force` is False, its folder does not exist, or it is a folder.
    """
    if os.path.basename(os.fspath(path)) in ("", ".", "..") or Path(path).is_dir():
        raise IsADirectoryError(f"{os.fspath(path)!r} is a folder, or ends like one. Name a file.")
    if os.path.lexists(path) and not force:
        raise FileExistsError(_exists_message(Path(path)))
    target = target_of(Path(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {str(target.parent)!r} does not exist. Create it first.")
    endings = SQLITE_JOURNALS if target.suffix.lower() == ".gpkg" else ()
    beside = [target.name + ending for ending in endings if os.path.lexists(f"{target}{ending}")]
    if beside:
        raise FileExistsError(
            f"Beside {str(target)!r} lies {beside[0]!r}, which SQLite would bring into a new file. Close the program "
            "that has the file open, or remove what it left."
        )


@contextmanager
def atomic_path(path: Path, *, force: bool, private: bool) -> Iterator[Path]:
    """Yield a temporary path, and put the file written there in the place of `path` when it is complete.

    The temporary file lies in a hidden folder beside the target, which only its owner can enter. The folder is
    locked while the run lives, and the next run on the same target removes it if the run was killed. Of a link, the
    file that it points to is replaced.

    Parameters
    ----------
    path : pathlib.Path
        The file to write.
    force : bool
        Whether to replace an existing file, whose permissions are kept.
    private : bool
        Whether a new file is for its owner only (mode 0600), because it holds true data. Otherwise it has the usual
        permissions.

    Raises
    ------
    FileExistsError
        If the file was created meanwhile and `force` is False.
    OSError
        If it cannot be written; the message names `path` and the reason, and an existing file is unchanged.
    """
    target = target_of(path)
    try:
        _remove_leftovers(target)
        with _temporary_folder(target) as folder:
            temporary = folder / f"content{path.suffix}"
            yield temporary
            _synchronize(temporary)
            _set_permissions(temporary, target=target, private=private)
            _move(temporary, target, force=force)
        with suppress(OSError):  # some systems cannot open folders
            _synchronize(target.parent, flags=os.O_RDONLY)
    except OSError as error:
        if isinstance(error, FileExistsError) and error.errno is None:  # from _move
            raise
        raise _with_path(error, path) from error


def write_text(path: Path, text: str, *, force: bool, private: bool) -> None:
    """Write text in UTF-8 to a file, as `atomic_path` does."""
    with atomic_path(path, force=force, private=private) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _exists_message(path: Path) -> str:
    return f"The file {str(path)!r} already exists. Pass force=True (--force) to overwrite it."


def _with_path(error: OSError, path: Path) -> OSError:
    """Return an error that names the file and the reason, without the temporary path."""
    renamed = type(error)(f"The file {str(path)!r} could not be written: {error.strerror or error}.")
    renamed.errno = error.errno
    return renamed


def target_of(path: Path) -> Path:
    """Return the file that a link points to, or the path itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path.absolute()


def _prefix_of(target: Path) -> str:
    """Return the beginning of the names of a target's temporary folders; names themselves may be too long."""
    return f".{blake2b(os.fsencode(target.name), digest_size=8).hexdigest()}-"


@contextmanager
def _temporary_folder(target: Path) -> Iterator[Path]:
    """Create a locked folder beside the target, and remove it with all that is in it."""
    folder, lock = _create_folder(target)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _create_folder(target: Path) -> tuple[Path, int | None]:
    while True:
        folder = target.with_name(f"{_prefix_of(target)}{secrets.token_hex(8)}{_ENDING}")
        folder.mkdir(mode=0o700)
        lock = lock_folder(folder, wait=True)
        if folder.exists():
            return folder, lock
        if lock is not None:  # another run took the folder for a leftover before it was locked
            os.close(lock)


def lock_folder(folder: Path, *, wait: bool) -> int | None:
    """Lock a folder and return its descriptor; None if a living run holds the lock, or nothing can be locked."""
    if sys.platform == "win32":
        return None
    descriptor = None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor


def _remove_leftovers(target: Path) -> None:
    """Remove the temporary folders of killed runs on the same target."""
    try:
        names = os.listdir(target.parent)
    except OSError:  # a folder may be writable but not readable
        return
    for name in names:
        if not (name.startswith(_prefix_of(target)) and name.endswith(_ENDING)):
            continue
        lock = lock_folder(target.with_name(name), wait=False)
        if lock is not None:
            shutil.rmtree(target.with_name(name), ignore_errors=True)
            os.close(lock)


def _synchronize(path: Path, *, flags: int = os.O_RDWR) -> None:
    """Wait until a file is on the disk: some systems report a lack of space only then."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _set_permissions(temporary: Path, *, target: Path, private: bool) -> None:
    """Give a file the owner, group and permissions of the file that it replaces, or of a new file."""
    try:
        old = target.stat()
    except FileNotFoundError:
        if private:
            temporary.chmod(0o600)
        return
    if sys.platform != "win32":
        with suppress(OSError):  # only root may change the owner
            os.chown(temporary, old.st_uid, old.st_gid)
    same_group = temporary.stat().st_gid == old.st_gid
    temporary.chmod(stat.S_IMODE(old.st_mode) & (0o777 if same_group else 0o707))


def _move(temporary: Path, target: Path, *, force: bool) -> None:
    """Rename a complete file; raise FileExistsError if the target was created meanwhile and `force` is False."""
    if not force:
        try:
            os.link(temporary, target)  # renaming would replace an existing file
            return
        except OSError:
            if os.path.lexists(target):
                raise FileExistsError(_exists_message(target)) from None
    os.replace(temporary, target)  # without force, the file system has no links
