"""MDC: the Mobile Data Challenge of Nokia and Idiap, Lausanne, 2009 to 2011."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import geopandas as gpd
import numpy as np
import pyarrow as pa
from pyarrow import csv

from promesse_geo.io import batch
from promesse_geo.io.compressed import Head
from promesse_geo.io.formats import Format
from promesse_geo.io.mdc_files import GPS, HEADER, fields, find_tables, is_records, is_table
from promesse_geo.messages import counted, listed
from promesse_geo.traces.traces import Traces

_RECORDS = ("db_key", "userid", "time", "tz", "type")
_TYPES = {
    "db_key": pa.int64(),
    "userid": pa.string(),
    "time": pa.int64(),
    "longitude": pa.float64(),
    "latitude": pa.float64(),
}
_BLOCK = 1 << 26  # bytes of records.csv in memory


class _Rows(NamedTuple):
    """Rows of a file: the number of each user in `users`, -1 where unknown, and NaN or 0 where a number is missing."""

    users: list[str]
    codes: np.ndarray
    seconds: np.ndarray
    longitude: np.ndarray
    latitude: np.ndarray


def read_mdc(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    users: Iterable[str] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    r"""Read MDC: files of the challenge, or the tables gps.csv and records.csv of the full campaign.

    Files of the challenge begin with a header; `userid`, `time`, `longitude` and `latitude` are taken from it. The
    tables have none: each row of gps.csv gets its user from records.csv, by db_key. Records without a user, a time, a
    longitude or a latitude (`\N` or nothing), or with impossible ones, are left out and counted.

    Parameters
    ----------
    source : path or several paths
        A file, a folder, or several. Of a folder, without the folders in it, the files with "gps" in their names are
        read, or where there is none all .csv, .tsv and .txt. records.csv lies beside gps.csv, or is one of the paths.
    users : iterable of str, optional
        The users to read, as written in the files, such as "017"; all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.
    errors : {"raise", "skip"}
        What becomes of a file that cannot be read: an error, or a counted warning.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user (text), time (UTC) and geometry (EPSG:4326).

    Raises
    ------
    FileNotFoundError
        If there is no such file or folder, or not all of the users asked for.
    ValueError
        If a file is not what the format says; the message names the file and the line.

    References
    ----------
    Laurila, Gatica-Perez, Aad, Blom, Bornet, Do, Dousse, Eberle, Miettinen: The Mobile Data Challenge: Big Data for
    Mobile Computing Research. Pervasive 2012.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "gps.csv"
    >>> rows = ["userid", "time", "longitude", "latitude"], ["017", "1255109147", "4.8", "45.7"]
    >>> _ = file.write_text("".join(chr(9).join(row) + chr(10) for row in rows))
    >>> read_mdc(file)["user"].tolist()
    ['017']
    """
    wanted = batch.wanted_users(users, owner="read_mdc")
    files, records = find_tables([source] if isinstance(source, (str, os.PathLike)) else list(source))
    if not files or (wanted is not None and not wanted):
        raise ValueError("Nothing is to be read: 'source' or 'users' of read_mdc is an empty list.")
    parse = partial(_parse, records=records, wanted=wanted)
    contents = [(str(file), file.read_bytes) for file in files]
    parts, skipped = batch.read_parts(contents, parse, errors=errors, owner="read_mdc", total=len(contents))
    batch.check_some_read(parts, skipped)
    batch.check_wanted(wanted, [part.user for part in parts if len(part.times)])
    batch.warn_dropped_records(parts, skipped, owner="read_mdc")
    unread = {file.name for file in skipped}
    batch.warn_unended([str(file) for file in files if str(file) not in unread and not _is_ended(file)])
    traces = batch.join(parts)
    return traces if as_traces else traces.to_frame()


def _parse(name: str, content: bytes, *, records: Sequence[Path], wanted: set[str] | None) -> list[batch.Part]:
    """Make the parts of one file, one a user."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    header = fields(content[: content.find(b"\n")] if b"\n" in content else content)
    has_header = not set(header).isdisjoint(HEADER)
    if has_header:
        table = _read_challenge(name, content, header=header)
        codes, users = _as_codes(table.column("userid"))
    else:
        table = _read(name, content, columns=GPS, take=GPS[:4])
        codes, users = _look_up(table.column("db_key"), records or _records_beside(name))
    if (codes == -1).all():
        raise ValueError(_complaint(name, f"none of its {counted(len(codes), 'record')} has a user"))
    rows = _Rows(users, codes, *(_numbers(table.column(column)) for column in ("time", "longitude", "latitude")))

    def where(row: int) -> str:
        return f"line {batch.line_of_row(content, row, skip=int(has_header)):,} of {name!r}"

    return _split(rows, wanted=wanted, where=where)


def _is_ended(path: Path) -> bool:
    """Whether the last line of a file, if any, has an end."""
    with path.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        return file.read() in (b"", b"\n", b"\r")


def _complaint(name: str, reason: str) -> str:
    return f"{name!r} is not in the format of MDC: {reason}."


def _read_challenge(name: str, content: bytes, *, header: tuple[str, ...]) -> pa.Table:
    needed = ("userid", "time", "longitude", "latitude")
    lacking = [column for column in needed if header.count(column) != 1]
    if lacking:
        raise ValueError(_complaint(name, f"its header does not name {listed(lacking)} once"))
    below = content.find(b"\n") + 1 or len(content)
    return _read(name, content[below:], columns=header, take=needed, lines_before=1)


def _read(name: str, content: bytes, *, columns: Sequence[str], take: Sequence[str], lines_before: int = 0) -> pa.Table:
    """Return some columns, or say which line is wrong."""
    convert = csv.ConvertOptions(
        column_types={column: _TYPES[column] for column in take},
        include_columns=list(take),
        null_values=["", r"\N"],
        strings_can_be_null=True,
    )

    def parse(lines: bytes) -> pa.Table:
        read = csv.ReadOptions(column_names=list(columns), block_size=1 << 24)
        form = csv.ParseOptions(delimiter="\t", quote_char=False)
        return csv.read_csv(pa.BufferReader(lines), read_options=read, parse_options=form, convert_options=convert)

    if not content.strip(b"\r\n"):
        raise ValueError(_complaint(name, "it holds no record" if lines_before else "it is empty"))
    try:
        return parse(content)
    except pa.ArrowInvalid:
        line = lines_before + batch.first_bad_line(content, parse)
        rule = f"line {line:,} is not {len(columns)} fields separated by tabs, with numbers for keys, times and places"
        raise ValueError(_complaint(name, batch.why_no_text(content) or rule)) from None


def _as_codes(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """Number the users of a column; -1 where there is none."""
    keys = column.combine_chunks().dictionary_encode()
    return keys.indices.fill_null(-1).to_numpy(zero_copy_only=False), keys.dictionary.to_pylist()


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    return column.fill_null(0 if pa.types.is_integer(column.type) else np.nan).to_numpy()


def _records_beside(name: str) -> list[Path]:
    folder = Path(name).parent
    usual = folder / "records.csv"
    others = [file for file in sorted(folder.iterdir()) if is_records(file) and is_table(file)]
    if not usual.exists() and not others:
        raise ValueError(_complaint(name, "it has no header, and there is no records.csv beside it to tell the users"))
    return [usual] if usual.exists() else others


def _look_up(db_keys: pa.ChunkedArray, records: Sequence[Path]) -> tuple[np.ndarray, list[str]]:
    """Number the users that tables of records give to keys; -1 where they give none."""
    keys, places = np.unique(db_keys.fill_null(-1).to_numpy(), return_inverse=True)
    codes = np.full(len(keys), -1)
    numbers: dict[str, int] = {}
    for path, block, lines_before in _blocks(records):
        table = _read(str(path), block, columns=_RECORDS, take=_RECORDS[:2], lines_before=lines_before)
        own, users = _as_codes(table.column("userid"))
        known = np.array([*(numbers.setdefault(user, len(numbers)) for user in users), -1])[own]
        rows = table.column("db_key").fill_null(-1).to_numpy()
        at = np.minimum(np.searchsorted(keys, rows), len(keys) - 1)
        hit = (keys[at] == rows) & (rows != -1) & (known != -1)
        at, known = at[hit], known[hit]
        before, codes[at] = codes[at], known
        if ((before != -1) & (before != known)).any() or (codes[at] != known).any():
            raise ValueError(f"{str(path)!r} gives two users to one db_key.")
    return codes[places], list(numbers)


def _blocks(paths: Sequence[Path]) -> Iterator[tuple[Path, bytes, int]]:
    """Yield pieces of files, cut at line ends, and the number of lines before each: these tables hold all sensors."""
    for path in paths:
        lines, rest = 0, b""
        with path.open("rb") as file:
            while piece := file.read(_BLOCK):
                whole, end, rest = (rest + piece).rpartition(b"\n")
                if whole.strip():
                    yield path, whole + end, lines
                lines += whole.count(b"\n") + len(end)
        if rest.strip():
            yield path, rest, lines


def _split(rows: _Rows, *, wanted: set[str] | None, where: Callable[[int], str]) -> list[batch.Part]:
    """Make a part of each user; what is left out is said with the first one."""
    chosen = np.array([*(wanted is None or user in wanted for user in rows.users), wanted is None])[rows.codes]
    reasons = {
        "no user": rows.codes == -1,
        "no time, longitude or latitude": (rows.seconds == 0) | np.isnan(rows.longitude) | np.isnan(rows.latitude),
        **batch.impossible(rows.latitude, rows.longitude, rows.seconds),
    }
    keep, left_out = batch.sort_out({reason: mask & chosen for reason, mask in reasons.items()}, where=where)
    kept = np.flatnonzero(keep & chosen)
    kept = kept[np.argsort(rows.codes[kept], kind="stable")]
    times, x, y = rows.seconds[kept] * 1_000_000_000, rows.longitude[kept], rows.latitude[kept]
    parts = []
    for number in np.unique(rows.codes[chosen & (rows.codes != -1)]):
        start, end = np.searchsorted(rows.codes[kept], [number, number + 1])
        parts.append(batch.Part(rows.users[number], times[start:end], x[start:end], y[start:end], left_out))
        left_out = []
    return parts


def _is_mdc(head: Head, name: str) -> bool:
    """Return whether the first line names the columns of the challenge, or a line looks like one of gps.csv."""
    lines = [fields(line) for line in head.content.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    return {"userid", "time", "longitude", "latitude"} <= set(lines[0]) or any(
        len(line) == len(GPS) and line[0].isdigit() and line[1].isdigit() for line in lines
    )


FORMAT = Format(
    "mdc", read_mdc, _is_mdc, files=("*gps*.csv", "*gps*.tsv", "*gps*.txt", "*.csv", "*.tsv", "*.txt"), by_name=False
)
