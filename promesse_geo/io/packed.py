"""Files that may be packed by gzip, bzip2 or zstd, unpacked while they are read."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from promesse_geo.io.sources import largest, too_large

PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


class _TooLargeError(Exception):
    """A packed file that grows beyond measure."""


@contextmanager
def opened(path: Path) -> Iterator[pa.NativeFile]:
    """The bytes of a file, unpacked if they are packed, whatever its name says."""
    with pa.OSFile(os.fsencode(path), "rb") as file:
        packing = packing_of(file.read(4))
        file.seek(0)
        size = file.size()
        if packing is None:
            yield file
            return
        if not pa.Codec.is_available(packing):
            raise ValueError(f"it is packed by {packing}, which this pyarrow cannot undo. Unpack it.")
        try:
            with pa.CompressedInputStream(file, packing) as unpacked:
                yield pa.PythonFile(_Unpacked(unpacked, largest(size)), "r")
        except OSError as error:
            raise ValueError(f"it is packed by {packing}, and cut or damaged. Fetch it again.") from error
        except _TooLargeError:
            raise ValueError(too_large("it", size)) from None


def packing_of(head: bytes) -> str | None:
    """Return what packed a file that begins so, or None."""
    return next((name for magic, name in PACKED.items() if head.startswith(magic)), None)


class _Unpacked(io.RawIOBase):
    """What a packed file holds, up to so many bytes."""

    def __init__(self, content: pa.NativeFile, left: int) -> None:
        self._content, self._left = content, left

    def readable(self) -> bool:
        """Return True: it is there to be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, or raise where there were too many."""
        piece = self._content.read(self._left + 1 if size < 0 else size)
        self._left -= len(piece)
        if self._left < 0:
            raise _TooLargeError
        return piece
