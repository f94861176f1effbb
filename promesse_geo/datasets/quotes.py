"""Lines of a table in text that quotes, opened before them and not closed, make part of a value."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from promesse_geo.datasets.packed import opened

_NUMBER = re.compile(r"\s*[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?\s*")
_PIECE = 1 << 20


def count_swallowed(
    path: Path, *, encoding: str, delimiter: str, columns: Sequence[str], numbers: Sequence[str], rows: int
) -> int:
    """Count the lines within quotes that would be records without them; others may be what somebody wrote.

    Parameters
    ----------
    path : pathlib.Path
        The file, which may be packed.
    encoding, delimiter : str
        How it is written.
    columns, numbers : sequence of str
        The names in its first line, and which of them hold coordinates.
    rows : int
        How many rows a reader found below the first line, empty lines not counted.

    Returns
    -------
    int
        How many there are.

    Raises
    ------
    ValueError
        If a value is too long for all values.
    """
    with _text_of(path, encoding) as text:
        if not any('"' in piece for piece in iter(partial(text.read, _PIECE), "")):
            return 0
    with _text_of(path, encoding) as text:
        if sum(1 for line in text if line.strip("\r\n")) == rows + 1:
            return 0
    places = [columns.index(name) for name in numbers]
    count = 0
    held: list[str] = []  # the lines of a row

    def hold(line: str) -> str:
        held.append(line)
        return line

    def is_record(line: str) -> bool:
        row = next(csv.reader([line], delimiter=delimiter), [])
        return len(row) == len(columns) and all(_NUMBER.fullmatch(row[place]) for place in places)

    with _text_of(path, encoding) as text:
        try:
            for _ in csv.reader(map(hold, text), delimiter=delimiter):
                count += sum(map(is_record, held[1:]))
                held.clear()
        except csv.Error:
            raise ValueError("a value in quotes is too long, as where they are opened and not closed.") from None
    return count


@contextmanager
def _text_of(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with opened(path) as file, io.TextIOWrapper(file, encoding, errors="replace", newline="") as text:
        yield text
