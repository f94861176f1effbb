"""MDC: the Mobile Data Challenge of Nokia and Idiap, Lausanne, 2009 to 2011."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Unpack, overload

import geopandas as gpd
import numpy as np
import pyarrow as pa

from promesse_geo.io import batch
from promesse_geo.io.contents import Head, check_exists, read_stored, unchanged
from promesse_geo.io.options import UserOptions
from promesse_geo.io.sources import Format, Source, as_paths, check_distinct, files_inside
from promesse_geo.messages import DroppedWarning, counted, listed, warn
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_flag, check_users

_HEADER = (
    *("userid", "time", "tz", "gps_time", "altitude", "longitude", "latitude", "speed", "heading"),
    *("horizontal_accuracy", "horizontal_dop", "vertical_accuracy", "vertical_dop", "speed_accuracy"),
    *("heading_accuracy", "time_since_gps_boot"),
)
_GPS = (
    *("db_key", "time", "longitude", "latitude", "altitude", "speed", "speed_accuracy", "horizontal_dop"),
    *("horizontal_accuracy", "vertical_dop", "vertical_accuracy", "time_since_gps_boot"),
)
_ENDINGS = (".csv", ".tsv", ".txt")
_RECORDS = ("db_key", "userid", "time", "tz", "type")
_TYPES = dict.fromkeys(("db_key", "time"), pa.int64()) | dict.fromkeys(("longitude", "latitude"), pa.float64())
_BLOCK = 1 << 26  # bytes of records.csv in memory


def _lines(columns: Sequence[str], take: Sequence[str]) -> batch.Lines:
    """Return the layout of a table, of which some columns are read."""
    rule = f"{len(columns)} fields separated by tabs, with numbers for keys, times and coordinates"
    types = {column: _TYPES.get(column, pa.string()) for column in take}
    return batch.Lines("MDC", rule, columns, types, delimiter="\t", missing=("", r"\N"), threads=True)


_GPS_LINES, _RECORDS_LINES = _lines(_GPS, _GPS[:4]), _lines(_RECORDS, _RECORDS[:2])


@overload
def read_mdc(
    source: Source, *, as_traces: Literal[False] = ..., **options: Unpack[UserOptions]
) -> gpd.GeoDataFrame: ...
@overload
def read_mdc(source: Source, *, as_traces: Literal[True], **options: Unpack[UserOptions]) -> Traces: ...
@overload
def read_mdc(source: Source, *, as_traces: bool, **options: Unpack[UserOptions]) -> gpd.GeoDataFrame | Traces: ...


def read_mdc(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    users: Iterable[str] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    r"""Read MDC: files of the challenge, or the tables gps.csv and records.csv of the full campaign.

    Files of the challenge have a header with the columns `userid`, `time`, `longitude` and `latitude`. The tables of
    the campaign have none; db_key joins gps.csv to the users in records.csv. Records without a user, time, longitude or
    latitude (`\N` or empty), or with impossible values, are dropped with one counted warning.

    Parameters
    ----------
    source : path or several paths
        A file, a folder, or several. A folder stands for the files directly in it with "gps" in their names, or if
        there is none for all `.csv`, `.tsv` and `.txt` files. records.csv must be beside gps.csv or one of the paths.
    users : iterable of str, optional
        The users to read, as in the files, such as "017"; all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.
    errors : {"raise", "skip"}
        Whether a file that cannot be read raises an error, or is skipped with one counted warning.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user (text), time (UTC) and geometry (EPSG:4326).

    Raises
    ------
    FileNotFoundError
        If a file or folder does not exist, or a folder has no file of MDC.
    ValueError
        If a file is not in the format (the message names the file and the line), or a user does not exist.

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
    chosen = check_users(users, owner="read_mdc")
    check_flag(as_traces, name="as_traces", owner="read_mdc")
    files, records = _find_tables(as_paths(source, owner="read_mdc"))
    return batch.read_dataset(
        [(str(file), partial(read_stored, file)) for file in files],
        partial(_parse, records=records, chosen=chosen),
        users=chosen,
        errors=errors,
        owner="read_mdc",
        as_traces=as_traces,
    )


def _find_tables(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the files with locations, and the tables of records."""
    tables: list[Path] = []
    for path in paths:
        check_exists(path)
        tables += _in_folder(path) if path.is_dir() else [path]
    check_distinct(tables)
    inside = {file.resolve() for path in paths for file in files_inside(path, _is_gps) if file.is_file()}
    below = len(inside - {path.resolve() for path in tables})
    if below:
        words = f"Not read: {counted(below, 'GPS file')} in subfolders of 'source'. Pass these folders too."
        warn(DroppedWarning(words, {"files (in subfolders)": below}))
    records = [path for path in tables if _is_records(path)]
    files = [path for path in tables if path not in records]
    if records and not files:
        raise FileNotFoundError(f"{str(records[0])!r} has no locations: pass gps.csv too.")
    return files, records


def _is_table(file: Path) -> bool:
    """Return whether a file has the extension of a table and is not hidden."""
    return file.name.lower().endswith(_ENDINGS) and not file.name.startswith(".")


def _is_gps(file: Path) -> bool:
    return "gps" in file.name.lower() and _is_table(file)


def _in_folder(folder: Path) -> list[Path]:
    """Return the files with "gps" in their names, or else all but tables of records, or else these."""
    files = sorted(file for file in folder.iterdir() if _is_table(file))
    named = [file for file in files if _is_gps(file)]
    others = [file for file in files if not _is_records(file)]
    if not files:
        raise FileNotFoundError(f"The folder {str(folder)!r} has no file of MDC (.csv, .tsv or .txt).")
    _check_layouts(folder, others if len(others) < len(files) else [])
    return named or others or files


def _check_layouts(folder: Path, files: Sequence[Path]) -> None:
    """Raise ValueError if files of the challenge are beside tables of the campaign, which may hold the same records."""
    firsts = {}
    for file in files:
        if file.is_file() and os.access(file, os.R_OK):  # else reading it raises the error
            with file.open("rb") as lines:
                firsts[file.name] = _fields(lines.readline(1 << 16))
    challenge = [name for name, first in firsts.items() if not set(first).isdisjoint(_HEADER)]
    campaign = [name for name, first in firsts.items() if len(first) == len(_GPS) and name not in challenge]
    if challenge and campaign:
        raise ValueError(
            f"The folder {str(folder)!r} has both layouts of MDC, which may hold the same records: with a header "
            f"({challenge[0]!r}) and, beside a table of records, without one ({campaign[0]!r}). Pass the files to read."
        )


def _fields(line: bytes) -> tuple[str, ...]:
    """Return the fields of a line, separated by tabs."""
    return tuple(line.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").rstrip("\r\n").split("\t"))


def _is_records(path: Path) -> bool:
    """Return whether a file's name is that of a table of records, which holds the users."""
    return "record" in path.name.lower() and "gps" not in path.name.lower()


def _parse(name: str, content: bytes, *, records: Sequence[Path], chosen: set[str] | None) -> list[batch.Part]:
    """Return the records of one file, one part per user."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if reason := batch.why_no_text(content):
        raise _GPS_LINES.error(name, reason)
    header = _fields(content[: content.find(b"\n")] if b"\n" in content else content)
    has_header = not set(header).isdisjoint(_HEADER)
    if has_header:
        table = _read_challenge(name, content, header=header)
        codes, users = _as_codes(table.column("userid"))
    else:
        table = _GPS_LINES.read(name, content)
        codes, users = _look_up(table.column("db_key"), records or _records_beside(name))
    if (codes == -1).all():
        raise _GPS_LINES.error(name, f"none of its {counted(len(codes), 'record')} has a user")
    where = partial(batch.place_of_row, name=name, content=content, skip=int(has_header))
    unended = "" if content.endswith((b"\n", b"\r")) else name
    return _split(table, codes, users, chosen=chosen, where=where, unended=unended)


def _read_challenge(name: str, content: bytes, *, header: tuple[str, ...]) -> pa.Table:
    needed = ("userid", "time", "longitude", "latitude")
    lacking = [column for column in needed if header.count(column) != 1]
    if lacking:
        raise _GPS_LINES.error(name, f"its header does not name {listed(lacking)} once")
    body = content.partition(b"\n")[2]
    if not body or body.isspace():
        raise _GPS_LINES.error(name, "it has no record")
    return _lines(header, needed).read(name, body, above=1)


def _as_codes(column: pa.ChunkedArray) -> tuple[np.ndarray, list[str]]:
    """Return the number of each row's user (-1 if missing), and the users."""
    keys = column.combine_chunks().dictionary_encode()
    return keys.indices.fill_null(-1).to_numpy(zero_copy_only=False), keys.dictionary.to_pylist()


def _records_beside(name: str) -> list[Path]:
    folder = Path(name).parent
    usual = folder / "records.csv"
    others = [file for file in sorted(folder.iterdir()) if _is_records(file) and _is_table(file)]
    if not usual.exists() and not others:
        raise _GPS_LINES.error(name, "it has no header, and records.csv, which holds the users, is not beside it")
    return [usual] if usual.exists() else others


def _look_up(db_keys: pa.ChunkedArray, records: Sequence[Path]) -> tuple[np.ndarray, list[str]]:
    """Return the number of the user of each key in the tables of records (-1 if it has none), and the users."""
    keys, places = np.unique(db_keys.fill_null(-1).to_numpy(), return_inverse=True)
    codes = np.full(len(keys), -1)
    numbers: dict[str, int] = {}
    for path, block, lines_before in _blocks(records):
        table = _RECORDS_LINES.read(str(path), block, above=lines_before)
        user_codes, users = _as_codes(table.column("userid"))
        new = np.array([*(numbers.setdefault(user, len(numbers)) for user in users), -1])[user_codes]
        rows = table.column("db_key").fill_null(-1).to_numpy()
        at = np.minimum(np.searchsorted(keys, rows), len(keys) - 1)
        matches = (keys[at] == rows) & (rows != -1) & (new != -1)
        at, new = at[matches], new[matches]
        before, codes[at] = codes[at], new
        if ((before != -1) & (before != new)).any() or (codes[at] != new).any():
            raise ValueError(f"{str(path)!r} has two users for one db_key.")
    return codes[places], list(numbers)


def _blocks(paths: Sequence[Path]) -> Iterator[tuple[Path, bytes, int]]:
    """Yield blocks of whole lines and the number of lines before each; the tables hold all sensors and may be large."""
    for path in paths:
        lines, rest = 0, b""
        with unchanged(path), path.open("rb") as file:
            while piece := file.read(_BLOCK):
                block, end, rest = (rest + piece).rpartition(b"\n")
                if block.strip():
                    yield path, block + end, lines
                lines += block.count(b"\n") + len(end)
        if rest.strip():
            yield path, rest, lines


def _split(
    table: pa.Table,
    codes: np.ndarray,
    users: Sequence[str],
    *,
    chosen: set[str] | None,
    where: Callable[[int], str],
    unended: str,
) -> list[batch.Part]:
    """Return a part for each user, whose number each row has in `codes`; the first one has the dropped records."""
    seconds = table.column("time").fill_null(0).to_numpy()
    longitude, latitude = (table.column(name).fill_null(np.nan).to_numpy() for name in ("longitude", "latitude"))
    chosen_rows = np.array([*(chosen is None or user in chosen for user in users), chosen is None])[codes]
    reasons = {
        "no user": codes == -1,
        "no time, longitude or latitude": (seconds == 0) | np.isnan(longitude) | np.isnan(latitude),
        **batch.impossible(latitude, longitude, seconds),
    }
    keep, dropped = batch.drop_invalid({reason: mask & chosen_rows for reason, mask in reasons.items()}, where=where)
    kept = np.flatnonzero(keep & chosen_rows)
    kept = kept[np.argsort(codes[kept], kind="stable")]
    times, x, y = seconds[kept] * 1_000_000_000, longitude[kept], latitude[kept]
    parts = []
    for number in np.unique(codes[chosen_rows & (codes != -1)]):
        start, end = np.searchsorted(codes[kept], [number, number + 1])
        parts.append(batch.Part(users[number], times[start:end], x[start:end], y[start:end], dropped, unended))
        dropped = []
    return parts


def _is_mdc(head: Head, name: str) -> bool:
    """Return whether the first line names the columns of the challenge, or a line looks like one of gps.csv."""
    lines = [_fields(line) for line in head.content.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    return {"userid", "time", "longitude", "latitude"} <= set(lines[0]) or any(
        len(line) == len(_GPS) and line[0].isdigit() and line[1].isdigit() for line in lines
    )


FORMAT = Format(
    "mdc",
    "MDC",
    read_mdc,
    _is_mdc,
    files=(*(f"*gps*{ending}" for ending in _ENDINGS), *(f"*{ending}" for ending in _ENDINGS)),
    by_name=False,
    joins=False,
    library="pyarrow",
)
