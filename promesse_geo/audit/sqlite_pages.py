"""The room in a SQLite file that holds nothing any more, and what still stands there."""

import re
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

_LEAST_TEXT = 0x2000  # two bytes of text, as a number: more than the places in a page of 8192 bytes

_DAMAGED = "it is damaged: its pages go in circles."


def pages_with_remains(
    file: sqlite3.Connection, path: Path, tables: set[str], *, passed_over: set[str]
) -> tuple[int, int]:
    """Return how many pages have bytes, in free room, of what was deleted or changed.

    GDAL clears what it frees (`PRAGMA secure_delete`), other programs do not. What remains of a page's own list of
    places is no content.

    Parameters
    ----------
    file, path
        The same database.
    tables : set of str
        Those that hold records.
    passed_over : set of str
        Those that hold nothing but numbers of rows.

    Returns
    -------
    tuple of int
        The pages of these tables, with those that belong to nothing any more; and the pages of other tables.
    """
    size, count = (file.execute(f"PRAGMA page_{what}").fetchone()[0] for what in ("size", "count"))
    pages = np.memmap(path, np.uint8, "r", shape=(count, size))
    roots: dict[bool, list[int]] = {True: [], False: [1]}
    for table, root in file.execute("SELECT tbl_name, rootpage FROM sqlite_master WHERE rootpage > 0"):
        if table not in passed_over:
            roots[table in tables].append(root)
    ours, others = (sum(any(map(_remains, rooms)) for rooms in _tree_room(pages, roots[one])) for one in (True, False))
    return ours + sum(map(_remains, _free_room(pages))), others


def _remains(room: bytes) -> bool:
    """Whether a piece between zeros is no list of places, wherever that begins."""
    return any(_is_text(piece) and _is_text(b"\0" + piece) for piece in re.split(rb"\0\0+", room.strip(b"\0")))


def _is_text(piece: bytes) -> bool:
    piece += b"\0" * (len(piece) % 2)
    return bool((np.frombuffer(piece, ">u2") >= _LEAST_TEXT).any())


def _tree_room(pages: np.ndarray, roots: list[int]) -> Iterator[list[bytes]]:
    """Yield the free room of each page of all b-trees."""
    left, seen = list(roots), 0
    while left:
        number, seen = left.pop(), seen + 1
        if seen > len(pages):
            raise ValueError(_DAMAGED)
        page = pages[number - 1].tobytes()
        start = 100 if number == 1 else 0
        kind, block, cells, content = struct.unpack_from(">BHHH", page, start)
        inner = kind in (2, 5)  # of an index, of a table; the latter has no content but numbers
        places = start + (12 if inner else 8)
        free = [page[places + 2 * cells : content or 65536]]
        while block:
            following, length = struct.unpack_from(">HH", page, block)
            free.append(page[block + 4 : block + length])
            if 0 < following <= block:
                raise ValueError(_DAMAGED)
            block = following
        if kind != 5:
            yield free
        if inner:
            found = struct.unpack_from(f">{cells}H", page, places)
            left += [struct.unpack_from(">I", page, place)[0] for place in found]
            left.append(struct.unpack_from(">I", page, start + 8)[0])


def _free_room(pages: np.ndarray) -> Iterator[bytes]:
    """Yield the room of pages that belong to nothing."""
    (trunk,) = struct.unpack_from(">I", pages[0].tobytes(), 32)
    for _ in range(len(pages)):
        if not trunk:
            break
        page = pages[trunk - 1].tobytes()
        trunk, count = struct.unpack_from(">II", page)
        yield page[8 + 4 * count :]
        yield from (pages[number - 1].tobytes() for number in struct.unpack_from(f">{count}I", page, 8))
