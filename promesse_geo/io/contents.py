"""Contents of files, which may be compressed or change meanwhile: first bytes, streams, and members of archives."""

import bz2
import errno
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

_GZIP = b"\x1f\x8b"
COMPRESSIONS = {_GZIP: "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of compressed files that tables may be, and pyarrow's name of the compression."""

UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of text in UTF-16 with a byte order mark."""

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
_HEAD, _LOOK = 4096, 1024  # bytes
_MOSTLY = 0.95  # of the letters of a text in UTF-16 are Latin
_OF_TEXT = bytes([*b"\t\r\n", *range(32, 127), *range(160, 256)])
_GROWTH, _SMALL, _LARGEST = 200, 1 << 30, 100 << 30  # a factor, and bytes: trajectories shrink to about a tenth


def check_exists(path: str | os.PathLike[str]) -> None:
    """Raise FileNotFoundError if a path does not exist or is a link to nothing."""
    if os.path.islink(path) and not os.path.exists(path):
        raise FileNotFoundError(f"{os.fspath(path)!r} is a link to nothing.")
    if not os.path.exists(path):
        raise FileNotFoundError(f"The file or folder {os.fspath(path)!r} does not exist.")


def check_no_pipe(path: Path) -> None:
    """Raise ValueError for a pipe or a device, which cannot be read twice."""
    if os.path.exists(path) and not path.is_file() and not path.is_dir():
        raise ValueError(f"{str(path)!r} is a pipe or a device. Save its content to a file first.")


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
    """Raise ValueError if a file changes meanwhile, whatever other error that leads to; before, for a pipe."""
    check_no_pipe(path)
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
    """Return the first bytes of a file, decompressed too if gzip, bzip2, xz or zstd compressed it.

    Raise ValueError for a pipe, which would block.
    """
    check_no_pipe(path)
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


def bare_utf16(head: bytes) -> str:
    """Return the encoding of text in UTF-16 without a byte order mark, whose first bytes these are; else "".

    Nearly every second byte is zero, and the others are letters, digits and signs.

    Examples
    --------
    >>> bare_utf16("user,time".encode("utf-16-le")), bare_utf16(b"user,time")
    ('utf-16-le', '')
    """
    first = head[:_LOOK] if len(head) >= _LOOK else head[: len(head) // 2 * 2]
    for encoding, zeros, others in (("utf-16-le", first[1::2], first[::2]), ("utf-16-be", first[::2], first[1::2])):
        if others and zeros.count(0) >= _MOSTLY * len(zeros) and not others.translate(None, _OF_TEXT):
            return encoding
    return ""


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
