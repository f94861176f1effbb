"""Find encoding and layout of a text table: its header below titles and comments, its separators, its columns."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from promesse_geo.io.contents import UTF16, bare_utf16, decompressed
from promesse_geo.messages import invalid
from promesse_geo.traces.known_columns import KNOWN, fold

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_SEP = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)
_SEPARATOR = re.compile(r'[^a-zA-Z0-9.+"\r\n\0-]')  # what no number and no time holds
_DECIMAL = re.compile(r"[-+]?\d+[.,]\d+")
_KNOWN = {fold(name) for ranks in KNOWN.values() for rank in ranks for name in rank}
_LINES = 50  # looked at
_HEAD, _LONGEST_CHARACTER = 1 << 16, 4  # bytes
_JSON = re.compile(r"[\s\x1e]*(?:\[\s*)*\{")
_TAR = slice(257, 265)  # where a tar archive names its kind
REPLACEMENT = "\ufffd"
"""Stands for bytes that are no text in an encoding."""

OTHER_ENCODING = "cp1252"
"""What text often is in if it is not in UTF-8."""
_REST = "\x1f"  # name of the empty column after the last separator
_TIME_ONLY = re.compile(r"\s*\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*")
_DATE_ONLY = re.compile(r"\s*\d{1,4}([-/.])\d{1,2}\1\d{1,4}\s*")


class TextOptions(NamedTuple):
    """Arguments of `read_table` for text; None is detected."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    time_format: str | None = None
    columns: tuple[str, ...] | None = None


_DETECTED = TextOptions()


def check_text_options(
    separator: str | None,
    decimal: str | None,
    encoding: str | None,
    time_format: str | None,
    columns: Sequence[str] | str | None,
) -> TextOptions:
    """Return the arguments of `read_table` for text; raise ValueError or TypeError if one cannot be."""
    owner = "read_table"
    texts = {"separator": separator, "decimal": decimal, "encoding": encoding, "time_format": time_format}
    for name, value in texts.items():
        if value is not None and (not isinstance(value, str) or not value):
            raise TypeError(invalid(name, owner, "text, not empty", value))
    separator = {"tab": "\t", "\\t": "\t"}.get(separator or "", separator)
    if separator is not None and not (separator.isascii() and _SEPARATOR.fullmatch(separator)):
        rule = "one character such as ';', or 'tab', and no letter, digit, dot, sign or quote"
        raise ValueError(invalid("separator", owner, rule, separator))
    if decimal not in (None, ".", ","):
        raise ValueError(invalid("decimal", owner, "'.' or ','", decimal))
    if decimal is not None and decimal == separator:
        raise ValueError(invalid("decimal", owner, "another character than the separator", decimal))
    if encoding is not None:
        try:
            codecs.decode(pa.py_buffer("a".encode(encoding)), encoding, "replace")
        except (LookupError, ValueError, AttributeError):  # of codecs that are no encodings of text, or not of files
            raise ValueError(invalid("encoding", owner, "an encoding such as 'cp1252'", encoding)) from None
    if time_format is not None and not _is_format(time_format):
        raise ValueError(invalid("time_format", owner, "a format such as '%d.%m.%Y %H:%M:%S'", time_format))
    names = None if columns is None else _names_of_columns(columns, owner=owner)
    return TextOptions(separator, decimal, encoding, time_format, names)


def _is_format(time_format: str) -> bool:
    """Whether a text is a format of times with at least one directive."""
    try:
        pd.to_datetime([""], format=time_format, errors="coerce")
    except (ValueError, re.error):
        return False
    return "%" in time_format


def _names_of_columns(columns: Any, *, owner: str) -> tuple[str, ...]:
    """Return the names of all columns; raise TypeError or ValueError if they cannot be."""
    rule = "names that differ, one for each column, such as 'user,time,lon,lat'"
    names = columns.split(",") if isinstance(columns, str) else columns
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(invalid("columns", owner, rule, columns))
    stripped = tuple(name.strip() for name in names)
    if not stripped or not all(stripped) or len(set(stripped)) < len(stripped):
        raise ValueError(f"The 'columns' parameter of {owner} must be {rule}.")
    return stripped


class Layout(NamedTuple):
    """Delimiter and names of the columns of a text, and the lines above the records.

    `replaces_header` is whether `columns` are other names than those of the header, or there is no header.
    """

    delimiter: str
    columns: list[str]
    above: int
    replaces_header: bool


class TextFile(NamedTuple):
    """An open text file, its encoding, its beginning, and its layout."""

    file: pa.NativeFile
    encoding: str
    head: str
    layout: Layout
    options: TextOptions

    @property
    def delimiter(self) -> str:
        """Return what separates the values."""
        return self.layout.delimiter

    @property
    def skipped(self) -> int:
        """Return the number of lines that are not parsed, which are titles, comments, and a header that is replaced."""
        return self.layout.above if self.layout.replaces_header else self.layout.above - 1

    def beginning(self) -> "TextFile":
        """Return the first whole lines, as a file of their own."""
        end = self.head.rfind("\n") + 1 if len(self.head) >= _HEAD // _LONGEST_CHARACTER else 0
        head = self.head[: end or None]
        return self._replace(file=pa.BufferReader(head.encode()), encoding="utf-8", head=head)

    @property
    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return self.layout.columns


def read_layout(file: pa.NativeFile, options: TextOptions = _DETECTED) -> TextFile:
    """Detect encoding and delimiter from the beginning of a text, and read the column names."""
    with decompressed(file) as stream:
        head = stream.read(_HEAD)
    if head[_TAR].startswith(b"ustar"):
        raise ValueError("it is a tar archive. Read it with read_file.")
    encoding = options.encoding or ("utf-16" if head.startswith(UTF16) else bare_utf16(head) or "utf-8")
    text = head.decode(encoding, errors="replace").removeprefix("\ufeff")
    if not text.strip():
        raise ValueError("it is empty, or begins with 64 KiB of blanks." if len(head) == _HEAD else "it is empty.")
    if "\0" in text:
        raise ValueError("it is neither GeoParquet, GeoPackage or GeoJSON nor text in UTF-8 or UTF-16.")
    if _JSON.match(text):
        raise ValueError("it holds JSON, but not as GeoJSON in UTF-8, unpacked. Save it so, or as CSV.")
    layout = find_layout(text, options)
    if any(REPLACEMENT in column for column in layout.columns):
        raise ValueError(not_encoded(encoding))
    return TextFile(file, encoding, text, layout, options)


def not_encoded(encoding: str) -> str:
    """Return the message for a text that is in another encoding."""
    other = OTHER_ENCODING if encoding.lower() != OTHER_ENCODING else "utf-16"
    return f"it is not text in {encoding.upper()}. Specify the encoding, as in encoding='{other}' (--encoding {other})."


def find_layout(text: str, options: TextOptions) -> Layout:
    r"""Return the layout of a text from its beginning.

    Parameters
    ----------
    text : str
        The beginning of the text, without a byte order mark.
    options : TextOptions
        What is specified.

    Returns
    -------
    Layout

    Raises
    ------
    ValueError
        If the first line holds values, or no columns.

    Examples
    --------
    >>> find_layout("sep=;\nuser;time\n1;2\n", TextOptions())
    Layout(delimiter=';', columns=['user', 'time'], above=2, replaces_header=False)
    """
    written = text.lstrip("\r\n")
    above = len(_lines_of(text[: len(text) - len(written)]))
    excel = _SEP.match(written)
    if excel:
        above, written = above + 1, written[excel.end() :]
    delimiter = options.separator or (excel[1] if excel else None)
    if options.columns is not None:
        return Layout(delimiter or _delimiter(_lines_of(written)[:1]), list(options.columns), above, True)
    lines = _lines_of(written)[:_LINES]
    if delimiter is None:
        delimiter = _delimiter(lines[:1])
        if not _count(lines[0], delimiter) or lines[0].startswith("#"):
            delimiter = _delimiter(lines)
    skipped = _lines_above_header(lines, delimiter)
    header = "\n".join(lines[skipped:]) if skipped else written
    columns = next(csv.reader(io.StringIO(header, newline=""), delimiter=delimiter), [])
    if any(_DECIMAL.fullmatch(part) for column in columns for part in re.split(r"[;|\s]", column)):
        raise ValueError(
            "its first line holds values, not the names of columns. Add a header, or name the columns in their order, "
            "as in columns='user,time,lon,lat' (--columns user,time,lon,lat)."
        )
    if len(columns) == 1:
        raise ValueError("its first line names no columns separated by commas, semicolons, tabs or bars.")
    above += skipped + 1
    fitted = _fit_to_lines(columns, [line for line in lines[skipped + 1 :] if line], delimiter)
    return Layout(delimiter, fitted, above, fitted != columns)


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text, as other programs count them: str.splitlines has more ends of lines."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _count(line: str, delimiter: str) -> int:
    """Return the number of separators that are not quoted."""
    return re.sub(r'"[^"]*"', "", line).count(delimiter)


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that most separators of the lines are; commas if there are none."""
    return max(DELIMITERS, key=lambda sign: sum(_count(line, sign) for line in lines))


def _lines_above_header(lines: Sequence[str], delimiter: str) -> int:
    """Return the number of title and comment lines: they have fewer separators than most lines, or begin with #."""
    counts = [_count(line, delimiter) for line in lines]
    usual = Counter(counts[1:]).most_common(1)[0][0] if len(counts) > 2 else 0
    if usual and (named := _named_header(lines, counts, delimiter, usual)):
        return named
    if not usual or (abs(counts[0] - usual) <= 1 and not lines[0].startswith("#")):
        return 0
    for number, (line, count) in enumerate(zip(lines, counts, strict=True)):
        if abs(count - usual) > 1:
            continue
        is_comment = line.startswith("#") and number + 1 < len(lines) and lines[number + 1].startswith("#")
        if not is_comment:
            values = next(csv.reader([line], delimiter=delimiter))
            return 0 if any(_DECIMAL.fullmatch(value.strip()) for value in values) else number
    return 0


def _named_header(lines: Sequence[str], counts: Sequence[int], delimiter: str, usual: int) -> int:
    """Return the number of lines above the first one that names at least two known columns, before any with numbers."""
    for number, (line, count) in enumerate(zip(lines, counts, strict=True)):
        values = [value.strip() for value in next(csv.reader([line], delimiter=delimiter), [])]
        if any(map(_DECIMAL.fullmatch, values)):
            return 0
        if abs(count - usual) <= 1 and len(_KNOWN & {fold(value.lstrip("#")) for value in values}) > 1:
            return number
    return 0


def _fit_to_lines(columns: list[str], lines: Sequence[str], delimiter: str) -> list[str]:
    """Return the columns without the last one, or with one more, if header or lines end with a needless separator."""
    counts = {_count(line, delimiter) for line in lines[:-1] or lines}  # the last one may be cut
    if len(counts) != 1:
        return columns
    values = counts.pop() + 1
    if values == len(columns) - 1 and not columns[-1].strip():
        return columns[:-1]
    if values == len(columns) + 1 and all(line.rstrip().endswith(delimiter.strip()) for line in lines[:-1] or lines):
        return [*columns, _REST]
    return columns


def first_rows(text: str, layout: Layout, *, lines: int | None = _LINES) -> list[list[str]]:
    """Return the rows that have a value for each column in the first lines, or all, but the last, which may be cut."""
    end = None if lines is None else layout.above + lines
    content = io.StringIO("\n".join(_lines_of(text)[layout.above : end]), newline="")
    rows = [row for row in csv.reader(content, delimiter=layout.delimiter) if row]
    complete = rows if len(rows) == 1 else rows[:-1]
    return [row for row in complete if len(row) == len(layout.columns)]


def find_date_and_time(text: str, layout: Layout, time: str) -> tuple[str, str] | None:
    """Return the columns of date and time of day if `time` is only one of them and the other is the only such one."""
    row = dict(zip(layout.columns, next(iter(first_rows(text, layout)), []), strict=False))
    dates = [name for name, value in row.items() if _DATE_ONLY.fullmatch(value)]
    clocks = [name for name, value in row.items() if _TIME_ONLY.fullmatch(value)]
    if time in dates and len(clocks) == 1:
        return time, clocks[0]
    if time in clocks and len(dates) == 1:
        return dates[0], time
    return None
