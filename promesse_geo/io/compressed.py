"""Compressed files: their first bytes, and their content decompressed while it is read."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from promesse_geo.io.sources import read_stored

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of compressed files that tables may be, and pyarrow's name of the compression."""

_DECOMPRESSORS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lzma.LZMADecompressor,
}
_HEAD = 4096  # bytes
_GROWTH, _SMALL, _LARGEST = 200, 1 << 30, 100 << 30  # a factor, and bytes: trajectories shrink to about a tenth


class Head(NamedTuple):
    """First bytes of a file: as they are stored, and decompressed (empty if that fails)."""

    stored: bytes
    content: bytes


NO_HEAD = Head(b"", b"")
"""What a folder or an unknown file starts with."""


class _TooLargeError(Exception):
    """A compressed file exceeds `size_limit` when decompressed."""


def read_head(path: Path) -> Head:
    """Return the first 4096 bytes of a file, decompressed too if gzip, bzip2 or xz compressed it."""
    with path.open("rb") as file:
        stored = piece = file.read(_HEAD)
        make = next((make for magic, make in _DECOMPRESSORS.items() if stored.startswith(magic)), None)
        if make is None:
            return Head(stored, stored)
        decompressor, content = make(), b""
        with suppress(OSError, EOFError, zlib.error, lzma.LZMAError):
            while piece and len(content) < _HEAD and not decompressor.eof:
                content += decompressor.decompress(piece, _HEAD - len(content))
                piece = file.read(1 << 16)
        return Head(stored, content)


def compression_of(head: bytes) -> str | None:
    """Return what compressed a file with these first bytes, or None."""
    return next((name for magic, name in COMPRESSIONS.items() if head.startswith(magic)), None)


@contextmanager
def decompressed(file: pa.NativeFile) -> Iterator[pa.NativeFile]:
    """Open a stream of an open file from its start, decompressed if it is compressed; the file stays open.

    Raises
    ------
    ValueError
        If it is damaged, too large or compressed in a way that this pyarrow cannot read; the message lacks the name.
    """
    size = file.size()
    compression = compression_of(file.read_at(4, 0))
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
    if compression_of(content) != "gzip":
        return content
    try:
        with gzip.open(io.BytesIO(content)) as stream:
            decompressed = stream.read(size_limit(len(content)) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{str(file)!r} is compressed with gzip, and cut or damaged. Download it again.") from error
    if len(decompressed) > size_limit(len(content)):
        raise ValueError(too_large(repr(str(file)), len(content)))
    return decompressed


def size_limit(compressed: int) -> int:
    """Return to how many bytes a file of `compressed` bytes may grow: more than trajectories do, less than a bomb."""
    return min(max(_SMALL, _GROWTH * compressed), _LARGEST)


def too_large(name: str, compressed: int) -> str:
    """Return the message for a file that exceeds `size_limit`."""
    return (
        f"{name} would take more than {size_limit(compressed) / (1 << 30):,.0f} GiB decompressed, far more than "
        "trajectories do. If you trust it, decompress it first."
    )
