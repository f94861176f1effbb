"""Whether a table in text was cut in its last line, which then has no line end, and a last value that is too short."""

import csv
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path

from promesse_geo.messages import counted, warn

CUT = "a last line that is cut: it has no line end, and its last value is shorter than all others"
_TAIL = 1 << 16  # bytes
_FEW, _MANY = 3, 100  # lines beside which one that is shorter is suspicious, and cut for sure
_DECIMALS = re.compile(r"[-+]?\d*[.,](\d+)")
_NUMERIC = re.compile(r"[-+]?[.,]?\d")


def end_of(path: Path) -> str:
    """The last lines of a text in UTF-8 or UTF-16, without a piece of a line before them."""
    with path.open("rb") as file:
        encoding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(file.read(2), "utf-8")
        start = max(0, file.seek(0, os.SEEK_END) - _TAIL) // 2 * 2
        file.seek(start)
        text = file.read().decode(encoding, errors="replace")
    return text.partition("\n")[2] if start else text


def judge(end: str, *, delimiter: str, columns: int) -> str:
    """Say of the last lines of a table whether the very last one is "whole", "cut", or perhaps cut: "unsure".

    Values of one length say much; others little, for a number may have lost its last zeros. Where the last value is
    text, the start of another one is suspicious, if it stands nowhere else.
    """
    if not end or end.endswith(("\n", "\r")):
        return "whole"
    if end.count('"') % 2 and re.split(r"[\r\n]", end)[-1].count('"') % 2:
        return "cut"
    rows = [row for row in csv.reader(io.StringIO(end, newline=""), delimiter=delimiter) if row]
    values = [row[-1].strip() for row in rows[1:] if len(row) == columns]
    return _judge_value(values[-1], values[:-1]) if values and len(rows[-1]) == columns else "whole"


def _judge_value(last: str, others: Sequence[str]) -> str:
    if not any(map(_NUMERIC.match, [last, *others])):
        is_start = last not in others and any(value.startswith(last) for value in others)
        return "unsure" if is_start else "whole"
    lengths = {_length(value) for value in others}
    if len(others) < _FEW or _length(last) >= min(lengths):
        return "whole"
    is_long = min(lengths) >= 10  # a time
    return "cut" if len(lengths) == 1 and (is_long or len(others) >= _MANY) else "unsure"


def _length(value: str) -> int:
    decimals = _DECIMALS.fullmatch(value)
    return len(decimals[1]) if decimals else len(value)


def tell_unsure(names: Sequence[str], *, owner: str) -> None:
    """Warn once of files whose last record may be wrong."""
    if names:
        what = counted(len(names), "file ends", "files end")
        warn(
            f"{what} without a line end and with a short value, so that {owner} may have read a last record that was "
            f"cut (first: {names[0]!r}). If the last line is whole, end it."
        )
