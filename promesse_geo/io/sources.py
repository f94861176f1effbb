"""Find the files of a source, name their users, read and decompress them, and declare their formats."""

import bz2
import errno
import glob
import gzip
import io
import lzma
import os
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from promesse_geo.messages import DroppedWarning, counted, warn
from promesse_geo.traces.frames import conversion_of, type_name
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_path

Source = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A file, a folder, a glob pattern, or several of these."""

_GZIP = b"\x1f\x8b"
COMPRESSIONS = {_GZIP: "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of compressed files that tables may be, and pyarrow's name of the compression."""

UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of text in UTF-16."""

OPENERS: dict[bytes, Callable[[Any], Any]] = {
    _GZIP: gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda file: pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd"),
}
"""Functions that open compressed files, by their first bytes."""

ZIP = (b"PK\3\4", b"PK\5\6")
"""First bytes of zip archives, the second of those without members."""

BROKEN = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, UnicodeDecodeError)
"""Errors of Python's readers of damaged archives and compressed files, beside OSError."""

_NO_TEXT = {
    **{magic: f"is compressed ({name}); decompress it" for magic, name in COMPRESSIONS.items()},
    b"\xfd7zXZ": "is compressed (xz); decompress it",
    **dict.fromkeys(UTF16, "is in UTF-16; save it as UTF-8"),
    b"PK\x03\x04": "is a zip archive; read it with read_file, or save a workbook as CSV",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook or Word document; save the table as CSV",
}
_COMPANION = re.compile(r"[._]|thumbs\.db|desktop\.ini|(readme|licen[cs]e|labels)\b|.*-(journal|wal|shm)$")
COMPANIONS = {
    ".shp": (".dbf", ".shx", ".prj", ".cpg", ".sbn", ".sbx", ".qix", ".qpj", ".qmd", ".ain", ".aih", ".shp.xml"),
    ".tab": (".dat", ".map", ".id", ".ind"),
    ".mif": (".mid",),
    ".gml": (".xsd", ".gfs"),
}
"""Extensions of the files that belong to a file of another extension and the same name, and are read with it."""
_COMPRESSED = (".gz", ".bz2", ".zst")
_LISTED = 3  # endings in a warning
_HEAD = 4096  # bytes
_GROWTH, _SMALL, _LARGEST = 200, 1 << 30, 100 << 30  # a factor, and bytes: trajectories shrink to about a tenth


def find_files(source: Source, *, endings: Sequence[str], owner: str) -> list[Path]:
    """Return the files of a source in the order of their paths.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        A folder stands for the files in it, at any depth, that end with one of `endings`. Links to folders outside of
        it are followed.
    endings : sequence of str
        Lower case, with the dot; the case of names is ignored.
    owner : str
        Name of the reader in messages.

    Returns
    -------
    list of pathlib.Path
        Including what cannot be read, so that reading it fails: links to nothing, folders without permission, and
        folders that are named like a file but hold none.

    Raises
    ------
    FileNotFoundError, ValueError
        If a path does not exist, a folder or a pattern has no file, or a file is given twice.
    """
    paths = as_paths(source, owner=owner)
    files = [file for path in paths for file in _files_of(os.fspath(path), endings)]
    check_distinct(files)
    warn_unread(paths, lambda name: name.endswith(tuple(endings)))
    return sorted(files)


UNREAD = "files (of other endings)"
"""What `warn_unread` counts."""


def warn_unread(source: Sequence[Path], is_read: Callable[[str], bool]) -> None:
    """Warn once of the files in folders that have other endings, but for hidden files and known companions.

    Parameters
    ----------
    source : sequence of pathlib.Path
        Files, which are not looked at, and folders.
    is_read : callable
        Returns whether a file with this name, in lower case, is read.
    """
    unread: Counter[str] = Counter()
    for path in filter(Path.is_dir, source):
        for _, folders, files in os.walk(path):
            folders[:] = [name for name in folders if not name.startswith(".")]
            names = {name.lower() for name in files}
            unread.update(
                os.path.splitext(name)[1] or "none"
                for name in names
                if not is_read(name) and not _COMPANION.match(name) and not _belongs(name, names)
            )
    if unread:
        of_endings = ", ".join(ending for ending, _ in unread.most_common(_LISTED))
        more = ", …" if len(unread) > _LISTED else ""
        files_were = counted(unread.total(), "file was", "files were")
        message = f"{files_were} not read, because the ending is another one ({of_endings}{more})."
        warn(DroppedWarning(message, {UNREAD: unread.total()}))


def _belongs(name: str, names: Collection[str]) -> bool:
    """Whether a file is a part of one of the files beside it, as .dbf of .shp; names are in lower case."""
    for ending, companions in COMPANIONS.items():
        stems = (name.removesuffix(companion) for companion in companions if name.endswith(companion))
        if any(f"{stem}{ending}" in names for stem in stems):
            return True
    return False


def as_paths(source: Source, *, owner: str) -> list[Path]:
    """Return the paths of a source; raise ValueError if there is none, TypeError for data that are no file."""
    check_is_no_data(source, owner=owner)
    if isinstance(source, (str, bytes, os.PathLike)) or not isinstance(source, Iterable) or hasattr(source, "read"):
        return [as_path(source, owner=owner)]
    paths = list(source)
    if not paths:
        raise ValueError(f"The 'source' parameter of {owner} must be a path or a list of paths. Got an empty list.")
    return [as_path(path, owner=owner) for path in paths]


def as_path(path: Any, *, owner: str) -> Path:
    """Return a path; raise NotADirectoryError for a file with a slash after its name, which `Path` would drop.

    An open file and data in memory are no path: TypeError.
    """
    check_is_no_data(path, owner=owner)
    cure = "Save the content to a file, and pass its path."
    place = check_path(path, name="source", owner=owner, cure=cure)
    if os.path.basename(os.fspath(path)) in ("", ".") and place.is_file():
        raise NotADirectoryError(f"{os.fspath(path)!r} is a file, not a folder. Omit what follows its name.")
    return place


def check_is_no_data(source: Any, *, owner: str) -> None:
    """Raise TypeError for a frame, a table or other data in memory, with what takes it."""
    if isinstance(source, (pd.DataFrame, Traces)) or hasattr(source, "trajectories"):
        remedy = "Functions take it as it is, as in pg.describe(data)."
    elif not (conversion := conversion_of(source)):
        return
    elif conversion.startswith("pg."):
        remedy = f"Read it with {conversion}."
    else:
        remedy = f"Functions take what {conversion} returns, as in pg.describe(…)."
    raise TypeError(f"{owner} reads files. Got a {type_name(source)} instead. {remedy}")


def check_distinct(files: Sequence[Path]) -> None:
    """Raise ValueError if a file is given twice."""
    twice = len(files) - len({file.resolve() for file in files})
    if twice:
        raise ValueError(f"{counted(twice, 'file')} would be read twice: the paths in 'source' overlap.")


def _files_of(path: str, endings: Sequence[str]) -> list[Path]:
    def fits(file: Path) -> bool:
        return file.name.lower().endswith(tuple(endings))

    if os.path.isdir(path):
        files = list(files_inside(path, fits))
        if not files:
            raise FileNotFoundError(f"The folder {path!r} has no file that ends with {' or '.join(endings)}.")
        return files
    if os.path.exists(path):
        check_no_pipe(Path(path))
        return [Path(path)]
    if not glob.has_magic(path):
        check_exists(path)
    matches = [Path(match) for match in glob.glob(path, recursive=True)]
    files = [match for match in matches if not match.is_dir()]
    files += [match for match in matches if match.is_dir() and not set(files_inside(match, fits)) <= set(files)]
    if not files:
        raise FileNotFoundError(f"No file matches the pattern {path!r}.")
    return files


def is_geodatabase(path: Path) -> bool:
    """Whether a folder is a file geodatabase of ArcGIS."""
    return path.suffix.lower() == ".gdb" and path.is_dir() and any(path.glob("*.gdbtable"))


def check_exists(path: str | os.PathLike[str]) -> None:
    """Raise FileNotFoundError if a path does not exist or is a link to nothing."""
    if os.path.islink(path) and not os.path.exists(path):
        raise FileNotFoundError(f"{os.fspath(path)!r} is a link to nothing.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"The file or folder {os.fspath(path)!r} does not exist.")


def check_no_pipe(path: Path) -> None:
    """Raise ValueError for a pipe or a device, which cannot be read twice."""
    if not path.is_file() and not path.is_dir():
        raise ValueError(f"{str(path)!r} is a pipe or a device. Save its content to a file first.")


def files_inside(root: str | os.PathLike[str], fits: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield the files in a folder that fit, at any depth, and folders that cannot be read; hidden ones are ignored."""
    unreadable: list[OSError] = []
    inside = os.path.realpath(root)
    seen = {inside}
    for folder, names, files in os.walk(root, onerror=unreadable.append, followlinks=True):
        for name in list(names):
            path = Path(folder, name)
            real = os.path.realpath(path)
            if name.startswith(".") or (path.is_symlink() and (real in seen or Path(real).is_relative_to(inside))):
                names.remove(name)
            elif fits(path) and os.access(path, os.R_OK | os.X_OK) and not any(files_inside(path, fits)):
                yield path
            seen.add(real)
        yield from (Path(folder, name) for name in files if not name.startswith(".") and fits(Path(name)))
    yield from (Path(error.filename) for error in unreadable)


_FOLDERS: dict[str, Callable[[Path], Path]] = {
    "file": lambda file: file,
    "folder": lambda file: file.parent,
    "folder-2": lambda file: file.parent.parent,
}
BY_PLACE = tuple(_FOLDERS)
"""Values of `user` that take the user from the name of the file, its folder, or the folder above that."""


def name_users(files: Sequence[Path], *, by: str) -> dict[Path, str]:
    """Return the user of each file, from the place of the file.

    Parameters
    ----------
    files : sequence of pathlib.Path
        The files.
    by : {"file", "folder", "folder-2"}
        The file's name without extension, its folder's name, or the name of the folder above that, as for
        `<participant>/gps/*.csv`.

    Raises
    ------
    ValueError
        If two files, or two folders, have the same name.
    """
    stems = {file: Path(file.stem).stem if file.suffix.lower() in _COMPRESSED else file.stem for file in files}
    places = {file: _FOLDERS[by](file.resolve()) for file in files}
    names = {file: stems[file] if by == "file" else places[file].name for file in files}
    alike = len({(names[file], places[file]) for file in files}) - len(set(names.values()))
    if alike:
        what = (
            counted(alike, "file has", "files have") if by == "file" else counted(alike, "folder has", "folders have")
        )
        others = [f"user={other!r} (--user {other})" for other in _FOLDERS if other not in ("file", by)]
        raise ValueError(
            f"{what} the name of another one, so that two users would become one. Rename them, or read them one by "
            f"one. If each folder is a user, pass {' or, for the folder above, '.join(others)}."
        )
    return names


class _State(NamedTuple):
    """What changes when a file does."""

    device: int
    inode: int
    size: int
    modified: int


def _state_of(path: Path) -> _State | None:
    """Return the state of a file; None if it does not exist or cannot be reached."""
    try:
        found = path.stat()
    except OSError:
        return None
    return _State(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Raise ValueError if a file changes meanwhile, whatever other error that leads to."""
    before = _state_of(path)
    failure: Exception | None = None
    try:
        yield
    except Exception as error:
        failure = error
    if _state_of(path) != before:
        raise ValueError(
            f"{str(path)!r} changed while it was read. Read it again when nothing writes to it."
        ) from failure
    if failure is not None:
        raise failure


def read_stored(file: Path) -> bytes:
    """Return the content of a file; raise ValueError if it cannot be read, or changes meanwhile."""
    try:
        check_is_file(file)
        with unchanged(file):
            return file.read_bytes()
    except OSError as error:
        if error.errno is None:  # from check_is_file
            raise
        raise ValueError(f"{str(file)!r} cannot be read: {error.strerror}.") from error


def check_is_file(path: Path) -> None:
    """Raise an error if a path is a folder, does not exist, or is a pipe, which would block."""
    if path.is_dir():
        list(path.iterdir())  # raises PermissionError
        raise ValueError(f"{str(path)!r} is a folder. Pass a file.")
    check_exists(path)
    check_no_pipe(path)


class Head(NamedTuple):
    """First bytes of a file: as they are stored, and decompressed (empty if that fails)."""

    stored: bytes
    content: bytes


NO_HEAD = Head(b"", b"")
"""What a folder or an unknown file starts with."""


class _TooLargeError(Exception):
    """A compressed file exceeds `size_limit` when decompressed."""


def open_zip(source: Path | io.BytesIO) -> zipfile.ZipFile:
    """Open a zip archive.

    Raises
    ------
    zipfile.BadZipFile
        Whatever is wrong in its directory: zipfile has several errors for that.
    """
    try:
        archive = zipfile.ZipFile(source)
    except ValueError as error:
        raise zipfile.BadZipFile(str(error)) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # an offset before the start of the file
            raise
        raise zipfile.BadZipFile(str(error)) from error
    if not all(info.filename for info in archive.infolist()):
        archive.close()
        raise zipfile.BadZipFile("A member has no name.")
    return archive


def read_zipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo, *, name: str) -> bytes:
    """Return the content of a member; raise ValueError with a name if it cannot be read."""
    try:
        return archive.read(info)
    except RuntimeError as error:  # also NotImplementedError
        raise ValueError(f"{name!r} is encrypted, or compressed in an unknown way. Extract the zip archive.") from error
    except (*BROKEN, OSError, ValueError) as error:  # ValueError of a place before the start of the file
        raise ValueError(f"{name!r} is damaged. Download the zip archive again.") from error


def read_head(path: Path, *, size: int = _HEAD) -> Head:
    """Return the first bytes of a file, decompressed too if gzip, bzip2, xz or zstd compressed it."""
    with path.open("rb") as file:
        stored = content = file.read(size)
        for magic, opener in OPENERS.items():
            if stored.startswith(magic):
                content = b""
                file.seek(0)
                failures = (*BROKEN, OSError, pa.ArrowException)
                with suppress(*failures), opener(file) as stream:
                    content = getattr(stream, "read1", stream.read)(size)
    return Head(stored, content)


def why_no_text(head: bytes, *, readable: Collection[bytes] = ()) -> str:
    """Return why a file with these first bytes is no text (compressed, UTF-16), unless they are readable; else ""."""
    starts = (magic for magic in _NO_TEXT if head.startswith(magic) and magic not in readable)
    return next((_NO_TEXT[magic] for magic in starts), "")


@contextmanager
def decompressed(file: pa.NativeFile) -> Iterator[pa.NativeFile]:
    """Open a stream of an open file from its start, decompressed if it is compressed; the file stays open.

    Raises
    ------
    ValueError
        If it is damaged, too large or compressed in a way that this pyarrow cannot read; the message lacks the name.
    """
    size = file.size()
    head = file.read_at(4, 0)
    compression = next((name for magic, name in COMPRESSIONS.items() if head.startswith(magic)), None)
    with file.get_stream(0, size) as stored:
        if compression is None:
            yield stored
            return
        if not pa.Codec.is_available(compression):
            raise ValueError(f"it is compressed with {compression}, which this pyarrow cannot read. Decompress it.")
        try:
            with pa.CompressedInputStream(stored, compression) as stream:
                yield pa.PythonFile(_Limited(stream, size_limit(size)), "r")
        except OSError as error:
            raise ValueError(f"it is compressed with {compression}, and cut or damaged. Download it again.") from error
        except _TooLargeError:
            raise ValueError(too_large("it", size)) from None


class _Limited(io.RawIOBase):
    """A decompressed stream of at most so many bytes."""

    def __init__(self, stream: pa.NativeFile, limit: int) -> None:
        self._stream, self._left = stream, limit

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; raise if they exceed the limit."""
        piece = self._stream.read(self._left + 1 if size < 0 else size)
        self._left -= len(piece)
        if self._left < 0:
            raise _TooLargeError
        return piece


def read_bytes(file: Path) -> bytes:
    """Return the content of a file, decompressed if gzip compressed it, whatever its name."""
    content = read_stored(file)
    if not content.startswith(_GZIP):
        return content
    try:
        with decompressed(pa.BufferReader(content)) as stream:
            return b"".join(iter(partial(stream.read, 1 << 20), b""))
    except ValueError as error:
        raise ValueError(f"{str(file)!r}: {error}") from error


def size_limit(compressed: int) -> int:
    """Return to how many bytes a file of `compressed` bytes may grow: more than trajectories do, less than a bomb."""
    return min(max(_SMALL, _GROWTH * compressed), _LARGEST)


def too_large(name: str, compressed: int) -> str:
    """Return the message for a file that exceeds `size_limit`."""
    return (
        f"{name} would take more than {size_limit(compressed) / (1 << 30):,.0f} GiB decompressed, far more than "
        "trajectories do. If you trust it, decompress it first."
    )


@dataclass(frozen=True)
class Format:
    """A file format or a data set: one module defines it, and one line in `registry.FORMATS` adds it.

    Parameters
    ----------
    name : str
        Value of `format=` and `--format`.
    label : str
        Name in help texts.
    read : callable
        `read(path, users=, as_traces=, errors=)`, with the further keywords that `options` returns.
    sniff : callable
        `sniff(head, name)` returns whether a file with these first bytes and this name has the format.
    files : tuple of str
        Lower-case glob patterns of file names in a folder that the format claims, the most specific first.
    by_name : bool
        Whether a name that fits is enough. Otherwise `sniff` must accept one of the first such files.
    zipped : bool
        Whether `read` reads zip archives of such files.
    joins : bool
        Whether `read` takes a list of files, and what it reads may be joined with files of other formats.
    options : callable
        `options(head)` returns the names of the options of `read` for a file with these first bytes. If these are
        `NO_HEAD`, it returns all.
    remarks : str
        What is read and what is left out, for the documentation; empty if the format has a function with a docstring.
    library : str
        The libraries that parse the files, for the documentation.
    """

    name: str
    label: str
    read: Callable[..., Any]
    sniff: Callable[[Head, str], bool]
    files: tuple[str, ...]
    by_name: bool = True
    zipped: bool = False
    joins: bool = True
    options: Callable[[Head], Collection[str]] = lambda head: ()
    remarks: str = ""
    library: str = "Python (json)"

    def claims(self, name: str) -> bool:
        """Return whether the format claims a file by its name."""
        return any(fnmatchcase(name.lower(), pattern) for pattern in self.files)

    def claim(self, files: Sequence[Path]) -> list[Path]:
        """Return the files that the format claims by their names, the most specific first."""
        claimed = (file for pattern in self.files for file in files if fnmatchcase(file.name.lower(), pattern))
        return list(dict.fromkeys(claimed))


def by_endings(endings: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of file names with these endings."""
    return tuple(f"*{ending}" for ending in endings)
