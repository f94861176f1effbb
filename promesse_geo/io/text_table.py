"""Tables in text: CSV with commas, semicolons or tabs, as programs and people write it."""

import csv as lines
import io
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyproj import CRS

from promesse_geo.io.compressed import compression_of, open_decompressed
from promesse_geo.io.last_line import CUT, end_of, judge
from promesse_geo.io.quotes import OPEN, look_within_quotes
from promesse_geo.io.table_columns import (
    MISSING,
    Columns,
    Wanted,
    as_times,
    as_users,
    find_coordinates,
    find_user_and_time,
    without_words,
)
from promesse_geo.messages import counted
from promesse_geo.traces.columns import Names

_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_JSON = re.compile(r"[\s\x1e]*(?:\[\s*)*\{")
_DECIMAL = re.compile(r"[-+]?\d+[.,]\d+")
_NUMBER = r"^[-+]?(?:\d+{0}?\d*|{0}\d+)(?:[eE][-+]?\d+)?$"
READ = (
    "Read are CSV, GeoParquet, GeoPackage, GeoJSON and GPX; and Cabspotting, Geolife and MDC as they are distributed."
)
_HEAD = 1 << 16


class Layout(NamedTuple):
    """How the text is written, and the names in its first line."""

    encoding: str
    delimiter: str
    columns: list[str]


def find_text_columns(layout: Layout, wanted: Wanted) -> tuple[Names, tuple[str, str, Any]]:
    """Say which columns hold user and time, and which x and y in which CRS; without showing a line of values."""
    wanted = wanted._replace(may_lack_header=True)
    coordinates = find_coordinates(layout.columns, wanted)
    return find_user_and_time(layout.columns, wanted), coordinates


def read_text_table(path: Path, wanted: Wanted) -> Columns:
    """Read a CSV; with `wanted.lenient` lines with too few or too many values are counted instead of refused."""
    layout = read_layout(path)
    names, (across, along, crs) = find_text_columns(layout, wanted)
    with _without_values(layout):
        table, ragged = _read(path, layout, numbers=[across, along], names=names, crs=crs, lenient=wanted.lenient)
    if ragged and not table.num_rows:
        raise ValueError(
            _ragged(f"Expected {ragged[0].expected_columns} columns, got {ragged[0].actual_columns}", layout)
        )
    users = None if names.user is None else as_users(table.column(names.user), names.user)
    broken = [] if users is None else [key for key in users.categories if "\n" in key or "\r" in key]
    swallowed, is_open = look_within_quotes(
        path,
        encoding=layout.encoding,
        delimiter=layout.delimiter,
        columns=layout.columns,
        numbers=(across, along),
        rows=None if broken else table.num_rows + len(ragged),
    )
    end = OPEN if is_open else _judge_end(path, layout, used={across, along, names.user, names.time})
    lost = [
        ("a line with too few or too many values", len(ragged)),
        ("a line that quotes before it make part of a value", swallowed),
        (CUT, int(end == "cut")),
        (OPEN, int(is_open)),
    ]
    if end in ("cut", OPEN):
        table = table.slice(0, table.num_rows - 1)
        users = None if users is None else users[:-1].remove_unused_categories()
    if swallowed and users is not None:
        users = users.remove_categories([key for key in broken if key in users.categories])
    times, notes = as_times(table.column(names.time), names.time)
    return Columns(
        table.column(across).to_numpy(),
        table.column(along).to_numpy(),
        times=times,
        users=users,
        crs=crs,
        names=names,
        notes=notes,
        lost=tuple((words, count) for words, count in lost if count),
        is_text=True,
        is_unsure=end == "unsure",
    )


def _judge_end(path: Path, layout: Layout, *, used: set[Any]) -> str:
    """Whether the last line is whole; what packing protects, and values that are not read, need no look."""
    with path.open("rb") as file:
        if compression_of(file.read(4)) or layout.columns[-1] not in used:
            return "whole"
    return judge(end_of(path), delimiter=layout.delimiter, columns=len(layout.columns))


def read_layout(path: Path) -> Layout:
    """Tell from its beginning how a text is written, and the names of its columns."""
    with open_decompressed(path) as file:
        head = file.read(_HEAD)
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    text = head.decode(encoding, errors="replace").removeprefix("\ufeff").lstrip("\r\n")
    if not text.strip():
        raise ValueError("it is empty, or begins with 64 KiB of blanks." if len(head) == _HEAD else "it is empty.")
    if "\0" in text:
        raise ValueError("it is neither GeoParquet, GeoPackage or GeoJSON nor text in UTF-8 or UTF-16.")
    if _JSON.match(text):
        raise ValueError("it holds JSON, but not as GeoJSON in UTF-8, unpacked. Save it so, or as CSV.")
    first = re.sub(r'"[^"]*"', "", text).partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    columns = next(lines.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
    if any(_DECIMAL.fullmatch(part) for column in columns for part in re.split(r"[;|\s]", column)):
        raise ValueError("its first line holds values, not the names of columns.")
    if len(columns) == 1:
        raise ValueError(
            f"its first line names no columns separated by commas, semicolons, tabs or bars, as a table's does. {READ}"
        )
    return Layout(encoding, delimiter, columns)


def _read(
    path: Path, layout: Layout, *, numbers: Sequence[str], names: Names, crs: Any, lenient: bool
) -> tuple[pa.Table, list[csv.InvalidRow]]:
    """Read the wanted columns; where lines do not fit, pass over them if lenient, or say which one is the first."""
    ragged: list[csv.InvalidRow] = []
    parse = partial(_parse, path, layout, time=str(names.time))
    fit = partial(_fit, numbers=numbers, user=names.user, crs=crs, lenient=lenient)
    try:
        return fit(parse), ragged
    except pa.ArrowInvalid as error:
        if "Expected" not in str(error):
            raise
    return fit(partial(parse, ragged=ragged if lenient else None, threads=False)), ragged


def _fit(
    parse: Callable[..., pa.Table], *, numbers: Sequence[str], user: Hashable, crs: Any, lenient: bool
) -> pa.Table:
    """Try the ways in which numbers are written until one fits all lines."""
    text = {} if user is None else {user: pa.string()}
    for missing, point in product(([""], ["", *MISSING]), ".,"):
        try:
            table = parse(types=dict.fromkeys(numbers, pa.float64()) | text, missing=missing, point=point)
        except pa.ArrowInvalid as error:
            if "conversion error to double" not in str(error):
                raise
            continue
        if user is not None and MISSING[0] in missing and table.column(user).null_count:
            literal = parse(types=text, missing=[""], point=point).column(user)  # a user may be called NA
            table = table.set_column(table.column_names.index(user), user, literal)
        if point == ",":
            _check_commas(table, numbers, crs)
        return table
    table = parse(types=dict.fromkeys(numbers, pa.string()) | text, missing=[""], point=".")
    for name in numbers:
        column, sign = _as_numbers(table.column(name), name, lenient=lenient)
        table = table.set_column(table.column_names.index(name), name, column)
        if sign == ",":
            _check_commas(table, [name], crs)
    return table


def _check_commas(table: pa.Table, numbers: Sequence[str], crs: Any) -> None:
    """Refuse 652,123 metres, which are more likely 652123 than 652.123."""
    if not CRS.from_user_input(crs).is_projected:
        return
    for name in numbers:
        largest_number = pc.max(pc.abs(table.column(name))).as_py()
        if largest_number is not None and largest_number < 1000:
            raise ValueError(
                f"the commas in the column {name!r} may be decimal, or group thousands. Write the numbers with "
                "decimal points, and without commas."
            )


def read_as_text(path: Path, layout: Layout, columns: Sequence[str]) -> pa.Table:
    """Read columns of a CSV as they are written; lines that do not fit are passed over."""
    types = dict.fromkeys(columns, pa.string())
    return _parse(path, layout, types=types, missing=[], point=".", time=columns[-1], ragged=[], threads=False)


def _parse(
    path: Path,
    layout: Layout,
    *,
    types: dict[str, pa.DataType],
    missing: list[str],
    point: str,
    time: str,
    ragged: list[csv.InvalidRow] | None = None,
    threads: bool = True,
) -> pa.Table:
    """Read a CSV in one way; lines that do not fit go to `ragged` where there is that list."""

    def skip(row: csv.InvalidRow) -> str:
        assert ragged is not None
        ragged.append(row)
        return "skip"

    encoding = layout.encoding
    if ragged is not None:
        ragged.clear()
        encoding = encoding.replace("utf-8", "utf-8-sig")  # decoded first, for rows are handed over as text
    with open_decompressed(path) as file:
        return csv.read_csv(
            file,
            read_options=csv.ReadOptions(encoding=encoding, use_threads=threads),
            parse_options=csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=True,
                invalid_row_handler=None if ragged is None else skip,
            ),
            convert_options=csv.ConvertOptions(
                include_columns=list(dict.fromkeys([*types, time])),
                column_types=types,
                null_values=missing,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                decimal_point=point,
            ),
        )


def _as_numbers(column: pa.ChunkedArray, name: str, *, lenient: bool) -> tuple[pa.ChunkedArray, str]:
    """Numbers, and the decimal sign, of a column that holds something else too, which is then missing, or told."""
    column = without_words(pc.utf8_trim_whitespace(column))
    ways = {sign: pc.match_substring_regex(column, _NUMBER.format(re.escape(sign))) for sign in ".,"}
    sign = max(ways, key=lambda sign: pc.sum(ways[sign], min_count=0).as_py())
    fits = ways[sign]
    if not pc.all(fits, min_count=0).as_py() and not (lenient and pc.any(fits).as_py()):
        first = pc.index(fits, False).as_py()
        raise ValueError(
            f"the column {name!r} holds something that is not a number, first in row {first:,}, counted from 0."
        )
    written = pc.replace_substring(pc.if_else(fits, column, None), sign, ".")
    return pc.utf8_ltrim(written, "+").cast(pa.float64()), sign


@contextmanager
def _without_values(layout: Layout) -> Iterator[None]:
    """Say what is wrong with a CSV without showing the line, as pyarrow does."""
    try:
        yield
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        words = f"its lines cannot be read as values {_separated(layout)}, in {layout.encoding.upper()}."
        raise ValueError(_ragged(str(error), layout) or words) from None


def _ragged(message: str, layout: Layout) -> str:
    """What pyarrow says of a line with too few or too many values, in our words; nothing of anything else."""
    counts = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", message)
    if not counts:
        return ""
    line = f" (line {int(counts[1]):,}, empty ones not counted)" if counts[1] else ""
    named, held = counted(int(counts[2]), "column"), counted(int(counts[3]), "value")
    return f"its first line names {named} {_separated(layout)}, but a line holds {held}{line}."


def _separated(layout: Layout) -> str:
    return f"separated by {_DELIMITERS[layout.delimiter]}"
