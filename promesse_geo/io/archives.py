"""Unpack archives and compressed files into a private temporary folder, and name the originals in messages."""

import errno
import io
import itertools
import os
import re
import shutil
import stat
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from promesse_geo.io.contents import BROKEN, OPENERS, ZIP, check_no_pipe, open_zip, size_limit, too_large
from promesse_geo.io.sources import files_inside
from promesse_geo.io.unreadable import name_office
from promesse_geo.messages import DroppedWarning, counted, warn

_PACKED = re.compile(r"(.+?)(?:\.(?:gz|bz2|xz|zst)|\.zip|\.tar(?:\.\w+)?|\.t(?:gz|bz2?|xz|zst))", re.IGNORECASE)
_IS_TAR = re.compile(r".+\.(?:tar(?:\.\w+)?|t(?:gz|bz2?|xz|zst))", re.IGNORECASE)
_BROKEN = (*BROKEN, tarfile.TarError, pa.ArrowException)
_PIECE = 1 << 20  # bytes
_MEMBERS = 1_000_000
_DEPTH = 3  # archives in archives
_LOOKED_AT = 50  # names of members
_HIDDEN = ".packed"  # readers pass over hidden folders


class _Member(NamedTuple):
    """A file in an archive: its path there, and a function that opens it."""

    name: str
    open: Callable[[], Any]


class _Budget:
    """How many bytes and members may still be unpacked."""

    def __init__(self, path: Path, shown: str) -> None:
        self._shown, self._size = shown, path.stat().st_size
        self._bytes, self._members = size_limit(self._size), _MEMBERS

    def take(self, size: int) -> None:
        """Count bytes; raise ValueError if there are too many."""
        self._bytes -= size
        if self._bytes < 0:
            raise ValueError(too_large(repr(self._shown), self._size))

    def take_member(self) -> None:
        """Count a member; raise ValueError if there are too many."""
        self._members -= 1
        if self._members < 0:
            raise ValueError(f"{self._shown!r} has more than {_MEMBERS:,} members. Extract it first.")


def is_packed(start: bytes) -> bool:
    """Return whether a file that begins so is an archive (zip, tar) or compressed (gzip, bzip2, xz, zstd)."""
    return start.startswith((*ZIP, *OPENERS)) or _is_tar(start)


def _is_packed(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_packed(file.read(512))
    except OSError:  # reading it raises
        return False


def _is_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar"


def has_packed_name(name: str) -> bool:
    """Return whether a name has the extension of an archive or a compressed file."""
    return _PACKED.fullmatch(name) is not None


def first_names(path: Path) -> list[str]:
    """Return names of the first members of an archive; of a compressed file, its name without the extension."""
    names: list[str] = []
    with (
        suppress(OSError, ValueError, NotImplementedError, *_BROKEN),
        _members(path, block=tarfile.BLOCKSIZE) as members,
    ):
        for member in members:
            names.append(member.name)
            if len(names) == _LOOKED_AT:
                break
    return names


@contextmanager
def unpacked(path: Path, *, skips: bool, passes: Callable[[Path], bool]) -> Iterator[Path]:
    """Provide a file or folder without archives and compressed files.

    Parameters
    ----------
    path : pathlib.Path
        A file or folder.
    skips : bool
        Whether archives that are cut or damaged give what comes before that place, with a warning.
    passes : callable
        Returns whether a packed file stays as it is, because a reader of a format unpacks it itself.

    Yields
    ------
    pathlib.Path
        The path itself if nothing is to be unpacked, else a private temporary folder that is removed at the end. It
        has the name of the folder or archive, in a folder that has the name of the one above. Errors and warnings
        meanwhile name the originals.

    Raises
    ------
    ValueError
        If an archive is cut, damaged, encrypted or too large, or a member's path leads out of it.
    """
    place = Path(os.path.abspath(path))
    packed = [file for file in _packed_files(place) if not passes(file)]
    if not packed:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="promesse-geo-") as folder:  # of mode 0700
        above = place.parent if place.is_dir() else place.parent.parent
        root = Path(folder, above.name or "root", place.name if place.is_dir() else place.parent.name or "root")
        root.mkdir(parents=True)
        names = {str(root): str(path) if place.is_dir() else str(path.parent)}
        with _renamed(names):
            target = _mirror(place, root, packed, names, skips=skips) if place.is_dir() else root
            if place.is_file():
                target = _unpack(place, root, str(path), names, skips=skips)
            yield target


def _packed_files(path: Path) -> list[Path]:
    """Return a packed file itself, or those in a folder, at any depth."""
    if path.is_file():
        return [path] if _is_packed(path) else []
    return _packed_within(path)


def _walk(folder: Path) -> list[Path]:
    """Return the files in a folder that readers find, at any depth, and folders that are empty or cannot be read."""
    return sorted(files_inside(folder, lambda path: True))


def _mirror(folder: Path, root: Path, packed: Sequence[Path], names: dict[str, str], *, skips: bool) -> Path:
    """Link the files of a folder into another one, and then unpack some there."""
    targets = {file: root / file.relative_to(folder) for file in _walk(folder)}
    for file, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        if file not in packed:
            target.symlink_to(file)
    for file in packed:
        place = targets[file].parent
        _unpack(file, place, names[str(root)] + str(file)[len(str(folder)) :], names, skips=skips)
    return root


def _unpack(path: Path, folder: Path, shown: str, names: dict[str, str], *, skips: bool, depth: int = 1) -> Path:
    """Unpack a file into a folder; return the folder of an archive, or the file that was compressed."""
    check_no_pipe(path)
    if document := name_office(first_names(path)):
        raise ValueError(f"{shown!r} {document}.")
    match = _PACKED.fullmatch(path.name)
    stem = match[1] if match else path.stem or "data"
    holds_files = is_archive(path)
    numbered = (f"{path.name}-{number}" for number in itertools.count(2))
    free = (folder / name for name in itertools.chain((stem, path.name), numbered))
    target = next(place for place in free if not os.path.lexists(place))  # what was packed may lie beside it, too
    names[str(target)] = shown
    if holds_files:
        target.mkdir()
    budget, count = _Budget(path, shown), 0
    try:
        with _members(path, shown) as members:
            for member in members:
                budget.take_member()
                _write(member, _inside(target, member.name, shown) if holds_files else target, budget)
                count += 1
    except (*_BROKEN, OSError, NotImplementedError, RuntimeError) as error:
        problem = _problem(shown, error)
        if not (skips and count):
            raise ValueError(problem) from error
        warn(DroppedWarning(f"{problem} What comes before that was read.", {"archives (cut or damaged)": 1}))
    for file in _packed_within(target):
        inner = shown + str(file)[len(str(target)) :]
        if depth == _DEPTH:
            problem = f"{inner!r} lies in {_DEPTH} archives, the most that are unpacked. Extract them first."
            if not skips:
                raise ValueError(problem)
            warn(DroppedWarning(f"{problem} It was not read.", {"files": 1}))
            file.unlink()
        else:
            hidden = file.with_name(_HIDDEN)  # the result may get the name of the file
            hidden.mkdir(exist_ok=True)
            packed = file.rename(hidden / file.name)
            unpacked_to = _unpack(packed, file.parent, inner, names, skips=skips, depth=depth + 1)
            target = unpacked_to if file == target else target
            shutil.rmtree(hidden)
    return target


def _packed_within(path: Path) -> list[Path]:
    """Return what is still packed: the file itself, or files in a folder, at any depth."""
    files = [path] if path.is_file() else _walk(path)
    return [file for file in files if has_packed_name(file.name) and file.is_file() and _is_packed(file)]


def _problem(shown: str, error: Exception) -> str:
    """Return why a packed file cannot be unpacked."""
    # a directory of an archive may lead before the start of the file, which is an invalid argument
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return f"{shown!r} cannot be unpacked: {os.strerror(error.errno)}."
    if isinstance(error, NotImplementedError):
        return f"{shown!r} is compressed by a method that Python lacks. Extract it first."
    if isinstance(error, RuntimeError):
        return f"{shown!r} is encrypted. Extract it first."
    noun = "zip archive" if isinstance(error, zipfile.BadZipFile) else "archive"
    return f"The {noun} {shown!r} is cut or damaged. Download it again."


def _inside(folder: Path, name: str, shown: str) -> Path:
    """Return where a member goes; raise ValueError if its path leads out of the folder."""
    steps = [step for step in re.split(r"[/\\]", name) if step not in ("", ".")]
    if ".." in steps or name.startswith(("/", "\\")) or re.match("[A-Za-z]:", name) or "\0" in name or not steps:
        raise ValueError(f"{shown!r} has a member whose path leads out of the archive. Extract it with care.")
    return folder.joinpath(*steps)


def _write(member: _Member, target: Path, budget: _Budget) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):  # of an archive that was appended to
        target.unlink()
    try:
        with member.open() as source, target.open("xb") as file:
            while piece := source.read(_PIECE):
                budget.take(len(piece))
                file.write(piece)
    except BaseException:
        with suppress(OSError):
            target.unlink()
        raise


def is_archive(path: Path) -> bool:
    """Return whether a file is a zip or tar archive, and not a single compressed file."""
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith(ZIP) or _is_tar(head) or _IS_TAR.fullmatch(path.name):
        return True
    with suppress(OSError, ValueError, *_BROKEN), _decompressed(path) as stream:
        return _is_tar(stream.read(512))
    return False


@contextmanager
def _decompressed(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        head = file.read(8)
        file.seek(0)
        opener = next((opener for magic, opener in OPENERS.items() if head.startswith(magic)), None)
        if opener is None:
            yield file
            return
        with opener(file) as stream:
            yield stream


@contextmanager
def _members(path: Path, shown: str = "", *, block: int = tarfile.RECORDSIZE) -> Iterator[Iterator[_Member]]:
    """Open a packed file, and provide its members that are plain files; tar is read in blocks, the last one whole."""
    with path.open("rb") as file:
        is_zip = file.read(4) in ZIP
    if is_zip:
        with open_zip(path) as archive:
            yield _of_zip(archive, shown)
    elif is_archive(path):
        with _decompressed(path) as stream, tarfile.open(fileobj=stream, mode="r|", bufsize=block) as archive:
            yield _of_tar(archive, shown)
    else:
        match = _PACKED.fullmatch(path.name)
        with _decompressed(path) as stream:
            yield iter([_Member(match[1] if match else path.name, lambda: io.BufferedReader(_Unclosed(stream)))])


class _Unclosed(io.RawIOBase):
    """A stream that leaves the one below open."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return the number of bytes."""
        piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def _of_zip(archive: zipfile.ZipFile, shown: str) -> Iterator[_Member]:
    others = 0
    for info in archive.infolist():
        mode = info.external_attr >> 16
        is_plain = not stat.S_IFMT(mode) or stat.S_ISREG(mode)
        if is_plain and not info.is_dir():
            yield _Member(info.filename, partial(archive.open, info))
        others += not is_plain and not stat.S_ISDIR(mode)
    _warn_others(others, shown)


def _of_tar(archive: tarfile.TarFile, shown: str) -> Iterator[_Member]:
    others = 0
    for info in archive:
        if info.isreg():
            yield _Member(info.name, partial(archive.extractfile, info))
        others += not info.isreg() and not info.isdir()
    _warn_others(others, shown)


def _warn_others(others: int, shown: str) -> None:
    """Warn of members that are neither files nor folders."""
    if others and shown:
        number = counted(others, "link or special file", "links or special files")
        words = f"{number} in {shown!r} {'was' if others == 1 else 'were'} not read."
        warn(DroppedWarning(words, {"files (links or special files)": others}))


@contextmanager
def _renamed(names: dict[str, str]) -> Iterator[None]:
    """Replace paths in the messages of errors and warnings, those of what is in folders before those of the folders."""

    def rename(text: str) -> str:
        paths = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        return re.sub(rf"(?:{paths})(?=[/\\'\":]|$)", lambda match: names[match[0]], text)

    failure: Exception | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except (ValueError, TypeError, KeyError, OSError) as error:
            failure = error
    for each in caught:
        if isinstance(each.message, UserWarning):  # which keeps its class and counts
            each.message.args = (rename(str(each.message)),)
            warn(each.message)
    if failure is None:
        return
    words = failure.args[0] if isinstance(failure, KeyError) and failure.args else str(failure)
    kinds = (FileNotFoundError, PermissionError, ValueError, TypeError, KeyError, OSError)
    kind = next(kind for kind in kinds if isinstance(failure, kind))
    renamed = kind(rename(str(words)))
    vars(renamed).update({name: value for name, value in vars(failure).items() if name != "__notes__"})
    for note in getattr(failure, "__notes__", ()):
        renamed.add_note(rename(note))
    raise renamed from failure
