"""What a packed file holds beside the text that comes out of it."""

import bz2
import zlib
from collections.abc import Iterator
from pathlib import Path

from promesse_geo.io.compressed import compression_of

_GZIP_EXTRA, _GZIP_NAME, _GZIP_COMMENT = 4, 8, 16  # bits that say what gzip's header holds
_STEP = 1 << 20
_CHECKSUM, _ONE_SEGMENT = 4, 32  # bits that say what zstd's header holds


def packed_notes(path: Path) -> list[str]:
    """A comment in gzip's header, or a name that is not the file's own."""
    with path.open("rb") as file:
        head = file.read(1024)
    if compression_of(head) != "gzip" or not head[3] & (_GZIP_EXTRA | _GZIP_NAME | _GZIP_COMMENT):
        return []
    name = head[10:].partition(b"\0")[0].decode("latin-1")
    plain = head[3] & ~1 == _GZIP_NAME and name in (path.name, path.stem)
    return [] if plain else ["a name or a comment in gzip's header"]


def packed_things(path: Path) -> list[str]:
    """What follows the first member of gzip, stream of bz2 or frame of zstd: it has a header of its own, or is no text.

    Bound: the file is unpacked once, piece by piece, but for zstd, whose blocks say how long they are.
    """
    with path.open("rb") as file:
        kind = compression_of(file.read(4))
        file.seek(0)
        if kind is None:
            return []
        follows = _zstd_follows(file.read()) if kind == "zstd" else _follows(iter(lambda: file.read(_STEP), b""), kind)
    return [f"more than one piece of {kind}: what follows the first may be anything"] if follows else []


def _follows(pieces: Iterator[bytes], kind: str) -> bool:
    unpacker = zlib.decompressobj(wbits=31) if kind == "gzip" else bz2.BZ2Decompressor()
    for piece in pieces:
        if unpacker.eof:
            return True
        if isinstance(unpacker, bz2.BZ2Decompressor):
            unpacker.decompress(piece)
        else:
            left = piece
            while left and not unpacker.eof:
                unpacker.decompress(left, _STEP)
                left = unpacker.unconsumed_tail
        if unpacker.unused_data:
            return True
    return False


def _zstd_follows(content: bytes) -> bool:
    """Whether bytes follow the first frame: header, then blocks of 3 bytes that say their length, the last one so."""
    flags = content[4]
    one_segment = bool(flags & _ONE_SEGMENT)
    size = (int(one_segment), 2, 4, 8)[flags >> 6]
    place = 5 + (not one_segment) + (0, 1, 2, 4)[flags & 3] + size
    last = False
    while not last and place + 3 <= len(content):
        block = int.from_bytes(content[place : place + 3], "little")
        last, repeated = bool(block & 1), (block >> 1) & 3 == 1
        place += 3 + (1 if repeated else block >> 3)
    return place + (4 if flags & _CHECKSUM else 0) < len(content)
