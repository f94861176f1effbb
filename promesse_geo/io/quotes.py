"""Lines of a table in text that quotes, opened before them and not closed, make part of a value."""

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from promesse_geo.io.compressed import open_decompressed

OPEN = "a last line in which quotes are opened and not closed"
_NUMBER = re.compile(r"\s*[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?\s*")
_PIECE = 1 << 20


def look_within_quotes(
    path: Path, *, encoding: str, delimiter: str, columns: Sequence[str], numbers: Sequence[str], rows: int | None
) -> tuple[int, bool]:
    """Count the lines within quotes that would be records without them, and say whether the last quotes are open.

    Parameters
    ----------
    path : pathlib.Path
        The file, which may be packed.
    encoding, delimiter : str
        How it is written.
    columns, numbers : sequence of str
        The names in its first line, and which of them hold coordinates.
    rows : int or None
        How many rows a reader found below the first line, empty lines not counted: where there are as many lines, no
        value goes over several, and no closer look is taken. None where there is such a value.

    Returns
    -------
    count : int
        How many there are; other lines within quotes may be what somebody wrote.
    is_open : bool
        Whether the file ends within quotes, which some value of the last row began.

    Raises
    ------
    ValueError
        If a value is too long for all values.
    """
    with _text_of(path, encoding) as text:
        if not any('"' in piece for piece in iter(partial(text.read, _PIECE), "")):
            return 0, False
    with _text_of(path, encoding) as text:
        if rows is not None and sum(1 for line in text if line.strip("\r\n")) == rows + 1:
            return 0, False
    places = [columns.index(name) for name in numbers]
    count, is_open = 0, False
    held: list[str] = []  # the lines of a row

    def hold(line: str) -> str:
        held.append(line)
        return line

    def is_record(line: str) -> bool:
        row = next(csv.reader([line], delimiter=delimiter), [])
        return len(row) == len(columns) and all(_NUMBER.fullmatch(row[place]) for place in places)

    with _text_of(path, encoding) as text:
        try:
            for _ in csv.reader(map(hold, itertools.chain(text, ["\n"])), delimiter=delimiter):
                if len(held) > 1 and (is_record(held[0]) or is_record(held[0].replace('"', ""))):
                    count += sum(map(is_record, held[1:]))  # else the first value has several lines, as a user may
                is_open = held != ["\n"]  # the line at the end that the file does not hold
                held.clear()
        except csv.Error:
            raise ValueError("a value in quotes is too long, as where they are opened and not closed.") from None
    return count, is_open


@contextmanager
def _text_of(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with open_decompressed(path) as file, io.TextIOWrapper(file, encoding, errors="replace", newline="") as text:
        yield text
