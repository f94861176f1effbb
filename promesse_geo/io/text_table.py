"""Read tables in text: CSV with commas, semicolons, tabs or bars between values."""

import csv as lines
import io
import itertools
import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from promesse_geo.io import table_columns, table_times
from promesse_geo.io.batch import DroppedRecords
from promesse_geo.io.contents import decompressed
from promesse_geo.io.table_columns import Columns, IfFits, ReadOptions
from promesse_geo.io.table_segments import Segments
from promesse_geo.io.table_times import MISSING
from promesse_geo.io.text_geometry import SHAPE, ShapePositions, find_shape_column, missing_data_column, read_shapes
from promesse_geo.io.text_layout import (
    DELIMITERS,
    OTHER_ENCODING,
    REPLACEMENT,
    TextFile,
    TextOptions,
    find_date_and_time,
    first_rows,
    not_encoded,
    read_layout,
)
from promesse_geo.messages import counted
from promesse_geo.traces.columns import Names, find_columns
from promesse_geo.traces.crs import read_crs
from promesse_geo.traces.known_columns import candidates_for
from promesse_geo.traces.marks import find_marked, find_marks
from promesse_geo.traces.missing_columns import renamed_error

_BLOCK = 1 << 20  # bytes that pyarrow reads at a time, which no line may exceed
_NUMBER = r"^[-+]?(?:\d+{0}?\d*|{0}\d+)(?:[eE][-+]?\d+)?$"
_COORDINATE = re.compile(r"\s*[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?\s*")
_SIGNS = r"(?i)^\s*[NSEW]\s*|\s*°\s*[NSEW]?\s*$|\s*[NSEW]\s*$"
_MINUTES = r"\d\s*[°º:]\s*\d+\s*['′’:]"
_SIDES = (
    ("E/W", "EW", "E/W indicator", "lon_dir", "lon_direction", "lon_hemisphere", "longitude_hemisphere"),
    ("N/S", "NS", "N/S indicator", "lat_dir", "lat_direction", "lat_hemisphere", "latitude_hemisphere"),
)
_PIECE = 1 << 20  # bytes
_SMALLEST_METRES = 1000  # projected coordinates below may be thousands with a comma as separator


class _Plan(NamedTuple):
    """The columns to read, by role, and the CRS that is specified for them."""

    names: Names
    time: tuple[str, ...]
    """The column of times, or those of dates and of times of day."""
    numbers: list[str]
    """Columns of coordinates; none if a column holds geometries."""
    shapes: list[str]
    """The column of geometries, and that of trips that miss positions, if they exist."""
    crs: Any
    sides: Mapping[int, str]
    """Columns of the hemispheres (N or S, E or W) of coordinates, by their number in `numbers`."""
    marks: Sequence[str]
    """The columns that mark bad records."""

    @property
    def needed(self) -> list[str]:
        """Return the columns to read."""
        names = self.names.user, self.names.segment, *self.marks
        return [
            *self.numbers,
            *self.sides.values(),
            *self.shapes,
            *self.time,
            *(str(name) for name in names if name is not None),
        ]


def read_text_table(path: Path, file: pa.NativeFile, options: ReadOptions) -> Columns:
    """Read a CSV; with `options.lenient`, count lines with too few or too many values instead of raising.

    An error names all options that the text needs, as far as its beginning shows that.
    """
    try:
        return _read_table(path, file, options)
    except (ValueError, TypeError, KeyError) as error:
        first = str(error.args[0])
        others = [words for words in _problems(file, options) if words.partition(". ")[0] not in first]
        sentences = [first, *(f"{words[0].upper()}{words[1:]}" for words in others)]
        raise renamed_error(error, " ".join(sentences)) from error


def _problems(file: pa.NativeFile, options: ReadOptions) -> Iterator[str]:
    """Yield why the beginning of a text cannot be read as it is: its encoding, its layout, its columns, its times."""
    options = options._replace(segment=None if options.segment is ... else options.segment)  # without a warning
    try:
        text = read_layout(file, options.text)
    except ValueError as error:
        yield str(error.args[0])
        if options.text.encoding is None and error.args[0] == not_encoded("utf-8"):
            yield from _problems(file, options._replace(text=options.text._replace(encoding=OTHER_ENCODING)))
        return
    text = text.beginning()
    time: tuple[str, ...] | None
    try:
        plan = _choose_columns(text, options)
        needed, time = plan.needed, plan.time
    except (ValueError, KeyError) as error:
        yield str(error.args[0])
        needed, time = text.columns, _find_time(text, options)
    places = [text.columns.index(name) for name in needed]
    rows = first_rows(text.head, text.layout, lines=None)
    if any(REPLACEMENT in row[place] for row in rows for place in places):
        yield not_encoded(options.text.encoding or "utf-8")
    if time is not None:
        yield from _problems_of_times(text, time)


def _problems_of_times(text: TextFile, time: Sequence[str]) -> Iterator[str]:
    types = dict.fromkeys(time, pa.string()) if _are_text(time, text.options) else {}
    with suppress(pa.ArrowInvalid, LookupError):
        table = _parse(text, types=types, missing=[""], point=".", time=time, ragged=[], threads=False)
        try:
            _read_times(table, time, time[-1], text.options)
        except (ValueError, TypeError) as error:
            yield str(error.args[0])


def _find_time(text: TextFile, options: ReadOptions) -> tuple[str, ...] | None:
    """Return the column of times, or those of dates and times of day; None if it cannot be found."""
    with suppress(KeyError, ValueError):
        name = str(find_columns(text.columns, {"time": options.fitting(text.columns).time})["time"])
        return find_date_and_time(text.head, text.layout, name) or (name,)
    return None


def _are_text(time: Sequence[str], options: TextOptions) -> bool:
    """Whether times are read as text, because they are in two columns or in a format."""
    return len(time) == 2 or options.time_format is not None


def find_line(path: Path, options: TextOptions, row: int) -> int:
    """Return the line, counted from 1, in which a record of a text file begins, given its row, counted from 0."""
    with pa.OSFile(os.fsencode(path), "rb") as file:
        return _line_of_record(read_layout(file, options), row)


def _line_of_record(text: TextFile, row: int) -> int:
    """Return the line in which a record begins, if no line above was left out."""
    return _line_of(text, text.layout.above + row + 1)


class _NoNumber(ValueError):
    """Something in a row of a column is no number."""

    def __init__(self, column: str, row: int, cure: str) -> None:
        super().__init__(
            f"the column {column!r} holds something that is not a number, first in row {row:,}, counted from 0.{cure}"
        )
        self.row, self.cure = row, cure

    def with_line(self, line: int) -> ValueError:
        """Return the error with the line of the file."""
        return ValueError(f"{self.args[0].removesuffix(self.cure)} That is line {line:,} of the file.{self.cure}")


def _read_table(path: Path, file: pa.NativeFile, options: ReadOptions) -> Columns:
    text, name = read_layout(file, options.text), repr(str(path))
    plan = _choose_columns(text, options)
    with _errors_without_values(text):
        try:
            table, ragged = _read(text, plan, lenient=options.lenient)
        except _NoNumber as error:
            raise error if options.lenient else error.with_line(_line_of_record(text, error.row)) from None
        if ragged and not table.num_rows:
            raise pa.ArrowInvalid(f"Expected {ragged[0].expected_columns} columns, got {ragged[0].actual_columns}")
    names = replace(plan.names, times=plan.time) if len(plan.time) == 2 else plan.names
    users = None if names.user is None else table_columns.as_users(table.column(names.user), names.user)
    table, users, dropped, is_ended = _without_damaged(text, table, users, plan, ragged, name=name)
    times, notes = _read_times(table, plan.time, names.time, options.text)
    segments = table_columns.as_segments(table, names)
    if plan.numbers:
        x, y = (_signed(table, name, plan.sides.get(i)) for i, name in enumerate(plan.numbers))
        positions = ShapePositions(x, y, plan.crs)
    else:
        positions = read_shapes(table, plan.shapes[0], text.columns, options, file=name)
    if positions.rows is not None:  # several positions a row, each row a segment
        segments, users = Segments(positions.rows), None if users is None else users.take(positions.rows)
        later = pd.Series(positions.seconds, dtype="m8[s]")
        times = times.take(positions.rows).reset_index(drop=True) + later
    marked = find_marked(table, plan.marks) if positions.rows is None else None
    return Columns(
        positions.x,
        positions.y,
        times=times,
        users=users,
        segments=segments,
        crs=positions.crs,
        names=names,
        notes=(*notes, *positions.notes),
        dropped=(*dropped, *positions.dropped),
        has_z=positions.has_z,
        is_text=True,
        is_ended=is_ended,
        written=_written_offset(text, plan.time[-1]),
        line_of=partial(find_line, path, options.text) if positions.rows is None else None,
    ).without(marked)


def _written_offset(text: TextFile, time: str) -> tzinfo | None:
    """Return the offset from UTC of the times in the first rows."""
    place = text.columns.index(time)
    return table_times.written_offset(row[place] for row in first_rows(text.head, text.layout))


def _choose_columns(text: TextFile, options: ReadOptions) -> _Plan:
    """Return the columns to read; raise ValueError or KeyError if they cannot be found."""
    options = options._replace(may_lack_header=options.text.columns is None).fitting(text.columns)
    shape = find_shape_column(text.columns, first_rows(text.head, text.layout), options)
    if shape is None:
        names = table_columns.find_names(text.columns, options)
        numbers, crs = [str(names.lon), str(names.lat)], table_columns.crs_of(names, options)
        shapes: list[str] = []
    else:
        numbers, crs = [], options.crs
        others = [name for name in text.columns if name != shape]
        names = table_columns.find_names(others, options, geometry=shape)
        shapes = [shape, *filter(None, [missing_data_column(text.columns, shape)])]
    time = find_date_and_time(text.head, text.layout, str(names.time)) or (str(names.time),)
    sides = [candidates_for(text.columns, (known,)) if numbers else [] for known in _SIDES]
    marks = find_marks([name for name in text.columns if name not in time], names)
    return _Plan(names, time, numbers, shapes, crs, {i: found[0] for i, found in enumerate(sides) if found}, marks)


def _signed(table: pa.Table, name: str, side: str | None) -> np.ndarray:
    """Return coordinates, negative where the hemisphere is south or west."""
    numbers = table.column(name).to_numpy()
    if side is None:
        return numbers
    is_negative = pc.match_substring_regex(table.column(side), r"(?i)^\s*(?:S|W)(?:OUTH|EST)?\s*$")
    return np.where(pc.fill_null(is_negative, False).to_numpy(), -np.abs(numbers), numbers)


def _without_damaged(
    text: TextFile,
    table: pa.Table,
    users: pd.Categorical | None,
    plan: _Plan,
    ragged: Sequence[csv.InvalidRow],
    *,
    name: str,
) -> tuple[pa.Table, pd.Categorical | None, list[DroppedRecords], bool]:
    """Return rows and users without what a quote that is never closed holds, what was dropped, and whether it ends.

    Text ends if its last line does.
    """
    has_quotes, is_ended = _find_quotes_and_end(text.file)
    long_keys = [] if users is None else [key for key in users.categories if "\n" in key or "\r" in key]
    may_span_lines = has_quotes and (
        long_keys or _count_lines(text.file) != table.num_rows + len(ragged) + text.layout.above
    )
    places = plan.numbers or plan.shapes[:1]
    swallowed, is_open = _inspect_quotes(text, name, places=places) if may_span_lines else ([], False)
    dropped = list(swallowed)
    if ragged:
        place = f"line {_line_of(text, ragged[0].number):,} of {name}"
        dropped.insert(0, DroppedRecords("a line with too few or too many values", len(ragged), place))
    if is_open:
        dropped.append(DroppedRecords("a quote that is never closed", 1, f"the last record of {name}"))
        table = table.slice(0, table.num_rows - 1)
        users = None if users is None else users[:-1].remove_unused_categories()
    if swallowed and users is not None:
        users = users.remove_categories([key for key in long_keys if key in users.categories])
    return table, users, dropped, is_ended


def _read_times(
    table: pa.Table, time: Sequence[str], name: Hashable, options: TextOptions
) -> tuple[pd.Series, tuple[str, ...]]:
    """Parse the times of a table, as `parse_times` does; `name` is that of the column, or of one of two."""
    column = table.column(time[0])
    if len(time) == 2:  # dashes in dates that begin with the year
        column = pc.binary_join_element_wise(*(table.column(part) for part in time), " ")
        if options.time_format is None:
            column = pc.replace_substring_regex(column, r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2}) ", r"\1-\2-\3 ")
    return table_times.parse_times(column, name, time_format=options.time_format)


def _read(text: TextFile, plan: _Plan, *, lenient: bool) -> tuple[pa.Table, list[csv.InvalidRow]]:
    """Read the columns of the roles; return lines that do not fit if lenient, else raise for the first one."""
    ragged: list[csv.InvalidRow] = []
    parse = partial(_parse, text, time=plan.time)
    as_text = [*plan.shapes, *plan.sides.values(), *(plan.time if _are_text(plan.time, text.options) else ())]
    fit = partial(_fit, plan=plan, as_text=as_text, points=text.options.decimal or ".,", lenient=lenient)
    try:
        return fit(parse), ragged
    except pa.ArrowInvalid as error:
        if "Expected" not in str(error):
            raise
    return fit(partial(parse, ragged=ragged if lenient else None, threads=False)), ragged


def _fit(
    parse: Callable[..., pa.Table], *, plan: _Plan, as_text: Sequence[str], points: str, lenient: bool
) -> pa.Table:
    """Try the notations of numbers until one fits all lines."""
    numbers, user, crs = plan.numbers, plan.names.user, plan.crs
    text = {name: pa.string() for name in (user, plan.names.segment, *plan.marks, *as_text) if name is not None}
    for missing, point in itertools.product(([""], ["", *MISSING]), points):
        try:
            table = parse(types=dict.fromkeys(numbers, pa.float64()) | text, missing=missing, point=point)
        except pa.ArrowInvalid as error:
            if "conversion error to double" not in str(error):
                raise
            continue
        if user is not None and MISSING[0] in missing and table.column(user).null_count:
            literal = parse(types=text, missing=[""], point=point).column(user)  # a user may be called NA
            table = table.set_column(table.column_names.index(user), user, literal)
        if point == "," and len(points) > 1:
            _check_decimal_commas(table, numbers, crs)
        return table
    table = parse(types=dict.fromkeys(numbers, pa.string()) | text, missing=[""], point=".")
    for name in numbers:
        column, sign = _as_numbers(table.column(name), name, points=points, lenient=lenient)
        table = table.set_column(table.column_names.index(name), name, column)
        if sign == "," and len(points) > 1:
            _check_decimal_commas(table, [name], crs)
    return table


def _check_decimal_commas(table: pa.Table, numbers: Sequence[str], crs: Any) -> None:
    """Raise ValueError for a column such as 652,123 metres, where all numbers are below 1000: it may be 652123."""
    if isinstance(crs, IfFits) or not read_crs(crs).is_projected:
        return
    for name in numbers:
        largest_number = pc.max(pc.abs(table.column(name))).as_py()
        if largest_number is not None and largest_number < _SMALLEST_METRES:
            raise ValueError(
                f"the commas in the column {name!r} may be decimal, or group thousands. Write the numbers with "
                "decimal points, and without commas."
            )


def _parse(
    text: TextFile,
    *,
    types: dict[str, pa.DataType],
    missing: list[str],
    point: str,
    time: Sequence[str],
    ragged: list[csv.InvalidRow] | None = None,
    threads: bool = True,
) -> pa.Table:
    """Parse a CSV with one notation; append lines that do not fit to `ragged`, or raise if that is None."""

    def skip(row: csv.InvalidRow) -> str:
        assert ragged is not None
        ragged.append(row)
        return "skip"

    encoding = text.encoding
    if ragged is not None:
        ragged.clear()
        encoding = encoding.replace("utf-8", "utf-8-sig")  # decoded first, for rows are handed over as text
    with decompressed(text.file) as stream:
        return csv.read_csv(
            stream,
            read_options=csv.ReadOptions(
                encoding=encoding,
                use_threads=threads,
                skip_rows=text.skipped,
                column_names=text.columns if text.layout.replaces_header else None,
            ),
            parse_options=csv.ParseOptions(
                delimiter=text.delimiter, newlines_in_values=True, invalid_row_handler=None if ragged is None else skip
            ),
            convert_options=csv.ConvertOptions(
                include_columns=list(dict.fromkeys([*types, *time])),
                column_types=types,
                null_values=missing,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                decimal_point=point,
            ),
        )


def _as_numbers(column: pa.ChunkedArray, name: str, *, points: str, lenient: bool) -> tuple[pa.ChunkedArray, str]:
    """Convert text to numbers; what is no number becomes missing if lenient, else raises. Return the decimal sign."""
    column = table_times.without_words(pc.utf8_trim_whitespace(column))
    column = _without_signs(pc.if_else(pc.equal(column, ""), None, column))  # empty if quoted
    matches = {sign: pc.match_substring_regex(column, _NUMBER.format(re.escape(sign))) for sign in points}
    sign = max(matches, key=lambda sign: pc.sum(matches[sign], min_count=0).as_py())
    fits = matches[sign]
    if not pc.all(fits, min_count=0).as_py() and not (lenient and pc.any(fits).as_py()):
        first = pc.index(fits, False).as_py()
        cure = " Fix such records, or drop them with errors='skip' (--skip)." if pc.any(fits).as_py() else ""
        if not cure and pc.any(pc.match_substring_regex(column, _MINUTES)).as_py():
            raise ValueError(
                f"the column {name!r} holds degrees, minutes and seconds. Write decimal degrees, such as 12.5."
            )
        raise _NoNumber(name, first, cure)
    written = pc.replace_substring(pc.if_else(fits, column, None), sign, ".")
    return pc.utf8_ltrim(written, "+").cast(pa.float64()), sign


def _without_signs(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text such as -4.8 for 4.8 W, W4.8 or 4.8°W: without a degree sign, negative in the south and west."""
    if not pc.any(pc.match_substring_regex(column, _SIGNS)).as_py():
        return column
    is_negative = pc.match_substring_regex(column, r"(?i)^\s*[SW]\s*[\d.,]|[\d.,]\s*°?\s*[SW]\s*$")
    bare = pc.replace_substring_regex(column, _SIGNS, "")
    return pc.if_else(is_negative, pc.binary_join_element_wise("-", pc.utf8_ltrim(bare, "-+"), ""), bare)


def _pieces(file: pa.NativeFile) -> Iterator[bytes]:
    """Yield the bytes of a text but for zeros, which are halves of letters in UTF-16."""
    with decompressed(file) as stream:
        while piece := stream.read(_PIECE):
            yield piece.replace(b"\0", b"")


def _find_quotes_and_end(file: pa.NativeFile) -> tuple[bool, bool]:
    """Return whether a text has quotes, and whether its last line has an end."""
    has_quotes, last = False, b""
    for piece in _pieces(file):
        has_quotes = has_quotes or b'"' in piece
        last = piece[-1:] or last
    return has_quotes, last.endswith((b"\n", b"\r"))


def _count_lines(file: pa.NativeFile) -> int:
    """Return an upper bound of the number of lines: in UTF-16 halves of letters may be counted too."""
    count, last = 0, b""
    for piece in _pieces(file):
        returns = piece.count(b"\r")
        count += piece.count(b"\n") + returns - (piece.count(b"\r\n") if returns else 0)
        count -= last == b"\r" and piece.startswith(b"\n")
        last = piece[-1:] or last
    return count + (last not in (b"\n", b"\r"))


def _line_of(text: TextFile, row: int) -> int:
    """Return the line in which a row begins; pyarrow counts rows of several lines once, and no empty lines."""
    count, end = text.skipped, 0
    with (
        decompressed(text.file) as stream,
        io.TextIOWrapper(stream, text.encoding, errors="replace", newline="") as content,
    ):
        above = sum(1 for _ in itertools.islice(content, text.skipped))
        reader = lines.reader(content, delimiter=text.delimiter)
        with suppress(lines.Error):  # a value that is too long
            for values in reader:
                count += bool(values)
                if count == row:
                    break
                end = reader.line_num
    return above + end + 1


def _inspect_quotes(text: TextFile, name: str, *, places: Sequence[str]) -> tuple[list[DroppedRecords], bool]:
    """Count the lines within quotes that would be records without them, and return whether a quote is open at the end.

    Other lines within quotes may be legitimate text of several lines.
    """
    indices = [text.columns.index(name) for name in places]
    located = _COORDINATE if len(places) > 1 else SHAPE
    row_lines: list[str] = []

    def collect(line: str) -> str:
        row_lines.append(line)
        return line

    def is_record(line: str) -> bool:
        row = next(lines.reader([line], delimiter=text.delimiter), [])
        return len(row) == len(text.columns) and all(located.fullmatch(row[index]) for index in indices)

    swallowed: list[int] = []  # numbers of lines
    is_open = False
    with (
        decompressed(text.file) as stream,
        io.TextIOWrapper(stream, text.encoding, errors="replace", newline="") as content,
    ):
        reader = lines.reader(map(collect, itertools.chain(content, ["\n"])), delimiter=text.delimiter)
        try:
            for _ in reader:
                # a row whose first line is no record has its line breaks in an earlier value, such as the user
                if len(row_lines) > 1 and (is_record(row_lines[0]) or is_record(row_lines[0].replace('"', ""))):
                    first = reader.line_num - len(row_lines) + 1
                    swallowed += [first] * sum(map(is_record, row_lines[1:]))
                is_open = row_lines != ["\n"]  # the line appended to the file's own
                row_lines.clear()
        except lines.Error:
            raise ValueError("a quoted value is too long; its quote may never be closed.") from None
    place = f"line {swallowed[0]:,} of {name}" if swallowed else ""
    reason = "a line that became part of a quoted value"
    return [DroppedRecords(reason, len(swallowed), place)] if swallowed else [], is_open


@contextmanager
def _errors_without_values(text: TextFile) -> Iterator[None]:
    """Reword errors of pyarrow, which show the line."""
    try:
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        counts = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", str(error))
        separated = f"separated by {DELIMITERS.get(text.delimiter, repr(text.delimiter))}"
        if counts is None:
            if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
                raise ValueError(not_encoded(text.encoding)) from None
            no_end = "cannot infer" in str(error) and text.file.size() > _BLOCK  # of the header
            if "straddl" in str(error) or no_end:  # a block of pyarrow ends within the line
                raise ValueError("a line is longer than 1 MiB, as in no table of positions. Shorten it.") from None
            raise ValueError(f"its lines cannot be read as values {separated}, in {text.encoding.upper()}.") from None
        where = f" (line {_line_of(text, int(counts[1])):,})" if counts[1] else ""
        columns, values = counted(int(counts[2]), "column"), counted(int(counts[3]), "value")
        raise ValueError(f"its first line names {columns} {separated}, but a line holds {values}{where}.") from None
