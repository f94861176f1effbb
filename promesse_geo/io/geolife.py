"""Geolife: people in and around Beijing, 2007 to 2012 (Microsoft Research Asia)."""

import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pyarrow as pa
from pyarrow import csv

from promesse_geo.io import batch
from promesse_geo.io.compressed import Head, size_limit, too_large
from promesse_geo.io.formats import Format
from promesse_geo.io.sources import check_exists, files_inside, read_stored
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_users, check_users_exist

_NAME = r"[/\\][^./\\][^/\\]*\.plt"
_PLACES = (  # what lies above a user's folder, and its name: any one with Trajectory in it, else one of digits
    re.compile(rf"(.*?)([^/\\]+)[/\\]Trajectory{_NAME}", re.DOTALL | re.IGNORECASE),
    re.compile(rf"(.*?[/\\])(\d+)(?:[/\\]Trajectory(?:[/\\].*)?)?{_NAME}", re.DOTALL | re.IGNORECASE),
)
_MEMBER = re.compile(rf"{_NAME}\Z", re.IGNORECASE)
_ENDING = ".plt"
_RULE = "seven fields separated by commas: latitude, longitude, 0, altitude, days, date, time"
_WHERE = "<user>/Trajectory/<name>.plt"
_SHORT_TIME = re.compile(rb",\d\d:\d\d:?\Z")
_HEADER = 6  # lines
_PARSE = {
    "parse_options": csv.ParseOptions(quote_char=False),
    "convert_options": csv.ConvertOptions(
        column_types={
            "latitude": pa.float64(),
            "longitude": pa.float64(),
            "date": pa.date32(),
            "time": pa.time32("s"),
        },
        include_columns=["latitude", "longitude", "date", "time"],
        null_values=[],
    ),
    "read_options": csv.ReadOptions(
        column_names=["latitude", "longitude", "zero", "altitude", "days", "date", "time"],
        use_threads=False,
        block_size=1 << 20,
    ),
}


def read_geolife(
    source: str | os.PathLike[str],
    *,
    users: Iterable[str] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    """Read Geolife: the zip as it is, its folder, or the folder of one user.

    Times are those of the date and time columns (GMT): the column of days is rounded. Records out of the range of
    degrees are left out and counted (the original holds one). Duplicates stay; `labels.txt` is not read.

    Parameters
    ----------
    source : path
        The zip, the folder that it unpacks to, its `Data`, the folder of one user such as `Data/000`, or one file. All
        files of its kind below are read. The user is the folder above `Trajectory`, or without that the folder of
        digits that the file lies in; another file cannot be read, for its user is unknown.
    users : iterable of str, optional
        The users to read, by the names of their folders, such as "000"; all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.
    errors : {"raise", "skip"}
        What becomes of a file that cannot be read: an error, or a counted warning.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user, time (UTC) and geometry (EPSG:4326).

    Raises
    ------
    FileNotFoundError
        If there is no such file or folder, or not all of the users asked for.
    ValueError
        If a file is not what the format says; the message names the file and the line.

    References
    ----------
    Zheng, Xie, Ma: GeoLife: A Collaborative Social Networking Service among User, Location and Trajectory. IEEE Data
    Engineering Bulletin 33 (2), 2010.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "000" / "Trajectory"
    >>> folder.mkdir(parents=True)
    >>> header = ["Geolife trajectory", "WGS 84", "Altitude is in Feet", "Reserved 3", "0,2,255,My Track,0,0,2", "0"]
    >>> lines = [*header, "45.7,4.8,0,492,45355.25,2024-03-04,06:00:00"]
    >>> _ = (folder / "20240304060000.plt").write_text(chr(10).join(lines))
    >>> read_geolife(folder.parent)["user"].tolist()
    ['000']
    """
    chosen = check_users(users, owner="read_geolife")
    path = Path(os.path.abspath(source))  # the name of the working directory may be the user
    check_exists(path)
    is_zip = path.is_file() and path.suffix.lower() != _ENDING
    with _open_zip(path) if is_zip else nullcontext() as archive:
        contents = _members(path, archive) if archive else _files(path)
        _check_users(path, contents, chosen)
        contents = [content for content in contents if chosen is None or _user_of(content[0]) in {"", *chosen}]
        return batch.read_dataset(
            contents,
            _parse,
            users=chosen,
            errors=errors,
            owner="read_geolife",
            as_traces=as_traces,
            total=len(contents),
            user_of=_user_of,
            parse_together=_parse_together,
        )


def _files(path: Path) -> list[batch.Content]:
    """Return the files of a folder at any depth, or the file itself, in the order of their paths."""
    files = [path] if path.is_file() else sorted(files_inside(path, lambda file: file.suffix.lower() == _ENDING))
    return [_content(str(file), partial(read_stored, file)) for file in files]


def _content(name: str, read: Callable[[], bytes]) -> batch.Content:
    """The file, which fails to be read where its place does not tell the user; or a folder that cannot be read."""
    told = _place(name) is not None or not name.lower().endswith(_ENDING)
    return name, read if told else partial(_refuse_place, name)


def _refuse_place(name: str) -> bytes:
    raise ValueError(f"The user of {name!r} is unknown, for its place is not {_WHERE}.")


def _place(name: str) -> tuple[str, str] | None:
    """Return the path above the user's folder, and the user; None where they cannot be told."""
    match = _PLACES[0].fullmatch(name) or _PLACES[1].fullmatch(name)
    return (match[1], match[2]) if match else None


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        with path.open("rb") as file:
            is_cut = file.read(4) == b"PK\3\4"
        what = "is cut or damaged. Fetch it again." if is_cut else "is neither a zip nor a folder of Geolife."
        raise ValueError(f"{str(path)!r} {what}") from error


def _members(path: Path, archive: zipfile.ZipFile) -> list[batch.Content]:
    """Return the files of a zip, in the order of their paths."""
    members = sorted((info for info in archive.infolist() if not info.is_dir()), key=lambda info: info.filename)
    packed = path.stat().st_size
    if sum(info.file_size for info in members) > size_limit(packed):
        raise ValueError(too_large(repr(str(path)), packed))
    return [
        _content(f"{path}/{info.filename}", partial(_read_member, archive, info))
        for info in members
        if _MEMBER.search(f"/{info.filename}") and "__MACOSX" not in info.filename
    ]


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    name = f"{archive.filename}/{info.filename}"
    if info.flag_bits & 1:
        raise ValueError(f"{name!r} is encrypted. Unpack the zip with its password, and read the folder.")
    try:
        return archive.read(info)
    except NotImplementedError as error:
        raise ValueError(f"{name!r} is compressed in a way that Python cannot undo. Unpack the zip.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise ValueError(f"{name!r} is damaged. Fetch the zip again.") from error


def _user_of(name: str) -> str:
    """Return the user, or nothing where it is unknown."""
    place = _place(name)
    return place[1] if place else ""


def _check_users(path: Path, contents: Sequence[batch.Content], chosen: set[str] | None) -> None:
    """Raise an error if there is no file, a chosen user does not exist or two folders are of one user."""
    if not contents:
        raise FileNotFoundError(f"{str(path)!r} holds no file of Geolife ({_WHERE}).")
    places = {place for name, _ in contents if (place := _place(name))}
    users = {user for _, user in places}
    check_users_exist(chosen, users, owner="read_geolife")
    if len(users) < len(places):
        raise ValueError(f"Two folders in {str(path)!r} hold the same user. Read one of them.")


def _parse_together(files: Sequence[tuple[str, bytes]]) -> list[batch.Part]:
    """Make one part of files of one user, or raise where anything is wrong with one of them."""
    bodies = [_body(name, content) for name, content in files]
    lines = b"".join(body if body.endswith(b"\n") else body + b"\n" for body in bodies)
    try:
        latitude, longitude, seconds = _columns(lines)
    except pa.ArrowInvalid as error:
        raise ValueError("one of the files is not in the format") from error
    if any(mask.any() for mask in batch.impossible(latitude, longitude, seconds).values()):
        raise ValueError("one of the files holds impossible records")
    return [batch.Part(_user_of(files[0][0]), seconds * 1_000_000_000, longitude, latitude)]


def _parse(name: str, content: bytes) -> list[batch.Part]:
    """Make the part of one file."""
    body = _body(name, content)
    try:
        latitude, longitude, seconds = _columns(body)
    except pa.ArrowInvalid:
        line = _HEADER + batch.first_bad_line(body, _table)
        raise ValueError(_complaint(name, batch.why_no_text(content) or f"line {line:,} is not {_RULE}")) from None

    def where(row: int) -> str:
        return f"line {batch.line_of_row(content, row, skip=_HEADER):,} of {name!r}"

    keep, dropped = batch.drop_invalid(batch.impossible(latitude, longitude, seconds), where=where)
    return [batch.Part(_user_of(name), seconds[keep] * 1_000_000_000, longitude[keep], latitude[keep], dropped)]


def _body(name: str, content: bytes) -> bytes:
    """Return what stands below the header, after a look at the header's last line: a record there would be lost."""
    start = last = 0
    for _ in range(_HEADER):
        last, start = start, content.find(b"\n", start) + 1
        if not start:
            raise ValueError(
                _complaint(name, batch.why_no_text(content) or "it ends within the six lines of its header")
            )
    if b"," in content[last:start]:
        raise ValueError(_complaint(name, "line 6 should be the last one of the header, and looks like a record"))
    if _SHORT_TIME.search(content, max(start, len(content) - 10)):
        raise ValueError(_complaint(name, "the file is cut, for its last line has no end and no seconds"))
    body = content[start:]
    if not body.strip():
        reason = batch.why_no_text(content) or "it holds no record below the six lines of its header"
        raise ValueError(_complaint(name, reason))
    return body


def _complaint(name: str, reason: str) -> str:
    return f"{name!r} is not in the format of Geolife: {reason}."


def _table(lines: bytes) -> pa.Table:
    return csv.read_csv(pa.BufferReader(lines), **_PARSE)


def _columns(lines: bytes) -> tuple[Any, Any, Any]:
    """Return latitudes, longitudes and unix seconds."""
    latitude, longitude, date, time = _table(lines).columns
    days, seconds = (column.cast(pa.int32()).to_numpy().astype(np.int64) for column in (date, time))
    return latitude.to_numpy(), longitude.to_numpy(), days * 86_400 + seconds


def _is_geolife(head: Head, name: str) -> bool:
    """Return whether a file has the extension or the first line of Geolife's."""
    return name.lower().endswith(_ENDING) or head.content.startswith(b"Geolife trajectory")


FORMAT = Format("geolife", read_geolife, _is_geolife, files=(f"*{_ENDING}",), zipped=True)
