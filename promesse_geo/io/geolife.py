"""Geolife: people in and around Beijing, 2007 to 2012 (Microsoft Research Asia)."""

import os
import re
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import geopandas as gpd
import numpy as np
import pyarrow as pa

from promesse_geo.io import batch
from promesse_geo.io.contents import (
    Head,
    check_exists,
    open_zip,
    read_head,
    read_stored,
    read_zipped,
    size_limit,
    too_large,
    unchanged,
)
from promesse_geo.io.options import UserOptions
from promesse_geo.io.sources import Format, as_path, files_inside
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_flag, check_users, check_users_exist

_NAME = r"[/\\][^./\\][^/\\]*\.plt"
_PATHS = (  # the path above a user's folder, and its name: a folder with Trajectory in it, or one of digits
    re.compile(rf"(.*?)([^/\\]+)[/\\]Trajectory{_NAME}", re.DOTALL | re.IGNORECASE),
    re.compile(rf"(.*?[/\\])(\d+)(?:[/\\]Trajectory(?:[/\\].*)?)?{_NAME}", re.DOTALL | re.IGNORECASE),
)
_MEMBER = re.compile(rf"{_NAME}\Z", re.IGNORECASE)
_ENDING = ".plt"
_WHERE = "<user>/Trajectory/<name>.plt"
_SHORT_TIME = re.compile(rb",\d\d:\d\d:?\Z")
_HEADER = 6  # lines
_LINES = batch.Lines(
    "Geolife",
    "seven fields separated by commas: latitude, longitude, 0, altitude, days, date, time",
    ("latitude", "longitude", "zero", "altitude", "days", "date", "time"),
    {"latitude": pa.float64(), "longitude": pa.float64(), "date": pa.date32(), "time": pa.time32("s")},
)


@overload
def read_geolife(
    source: str | os.PathLike[str], *, as_traces: Literal[False] = ..., **options: Unpack[UserOptions]
) -> gpd.GeoDataFrame: ...
@overload
def read_geolife(
    source: str | os.PathLike[str], *, as_traces: Literal[True], **options: Unpack[UserOptions]
) -> Traces: ...
@overload
def read_geolife(
    source: str | os.PathLike[str], *, as_traces: bool, **options: Unpack[UserOptions]
) -> gpd.GeoDataFrame | Traces: ...


def read_geolife(
    source: str | os.PathLike[str],
    *,
    users: Iterable[str] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    """Read Geolife: the zip as it is, its folder, or the folder of one user.

    Times are those of the date and time columns (GMT), because the column of days is rounded. Records outside the range
    of degrees are dropped with one counted warning (the original has one). Duplicates are kept; `labels.txt` is not
    read.

    Parameters
    ----------
    source : path
        The zip, its extracted folder, its `Data`, the folder of one user such as `Data/000`, or one file. All `.plt`
        files below are read. The user is the folder above `Trajectory`, or else the folder of the file if its name has
        only digits; other files cannot be read, because their user is unknown.
    users : iterable of str, optional
        The users to read (names of their folders, such as "000"); all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.
    errors : {"raise", "skip"}
        Whether a file that cannot be read raises an error, or is skipped with one counted warning.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user, time (UTC) and geometry (EPSG:4326).

    Raises
    ------
    FileNotFoundError
        If the file or folder does not exist, or has no file of Geolife.
    ValueError
        If a file is not in the format (the message names the file and the line), or a user does not exist.

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
    check_flag(as_traces, name="as_traces", owner="read_geolife")
    path = Path(
        os.path.abspath(as_path(source, owner="read_geolife"))
    )  # the name of the working directory may be the user
    check_exists(path)
    is_zip = path.is_file() and path.suffix.lower() != _ENDING
    with unchanged(path) if is_zip else nullcontext(), _open_zip(path) if is_zip else nullcontext() as archive:
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
            user_of=_user_of,
            parse_together=_parse_together,
        )


def _files(path: Path) -> list[batch.Content]:
    """Return the files of a folder at any depth, or a single file, in the order of their paths."""
    files = [path] if path.is_file() else sorted(files_inside(path, lambda file: file.suffix.lower() == _ENDING))
    return [(str(file), partial(read_stored, file)) for file in files]


def _split_path(name: str) -> tuple[str, str] | None:
    """Return the path above the user's folder, and the user; None if they are unknown."""
    match = _PATHS[0].fullmatch(name) or _PATHS[1].fullmatch(name)
    return (match[1], match[2]) if match else None


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return open_zip(path)
    except zipfile.BadZipFile as error:
        if path.is_file() and _is_geolife(read_head(path), path.name):
            raise ValueError(
                f"{str(path)!r} is a file of Geolife, but is not named so. Rename it to end with .plt."
            ) from error
        raise ValueError(f"{str(path)!r} is neither a folder nor a zip archive, or cut or damaged.") from error


def _members(path: Path, archive: zipfile.ZipFile) -> list[batch.Content]:
    """Return the files of a zip archive, in the order of their paths."""
    members = sorted((info for info in archive.infolist() if not info.is_dir()), key=lambda info: info.filename)
    packed = path.stat().st_size
    if sum(info.file_size for info in members) > size_limit(packed):
        raise ValueError(too_large(repr(str(path)), packed))
    return [
        (f"{path}/{info.filename}", partial(read_zipped, archive, info, name=f"{path}/{info.filename}"))
        for info in members
        if _MEMBER.search(f"/{info.filename}") and "__MACOSX" not in info.filename
    ]


def _user_of(name: str) -> str:
    """Return the user, or an empty text if it is unknown."""
    split = _split_path(name)
    return split[1] if split else ""


def _check_users(path: Path, contents: Sequence[batch.Content], chosen: set[str] | None) -> None:
    """Raise an error if there is no file, a chosen user does not exist or two folders are of one user."""
    if not contents:
        raise FileNotFoundError(f"{str(path)!r} has no file of Geolife ({_WHERE}).")
    folders = {folder for name, _ in contents if (folder := _split_path(name))}
    users = {user for _, user in folders}
    check_users_exist(chosen, users, owner="read_geolife")
    if len(users) < len(folders):
        raise ValueError(f"Two folders in {str(path)!r} are of the same user. Read one of them.")


def _parse_together(files: Sequence[tuple[str, bytes]]) -> list[batch.Part]:
    """Return the records of several files of one user; raise ValueError if one has any fault."""
    bodies = [_body(name, content) for name, content in files]
    lines = b"".join(body if body.endswith(b"\n") else body + b"\n" for body in bodies)
    latitude, longitude, seconds = _columns(_LINES.read("", lines))
    if any(mask.any() for mask in batch.impossible(latitude, longitude, seconds).values()):
        raise ValueError("one of the files holds impossible records")
    return [batch.Part(_user_of(files[0][0]), seconds * 1_000_000_000, longitude, latitude)]


def _parse(name: str, content: bytes) -> list[batch.Part]:
    """Return the records of one file."""
    body = _body(name, content)
    latitude, longitude, seconds = _columns(_LINES.read(name, body, above=_HEADER))
    where = partial(batch.place_of_row, name=name, content=content, skip=_HEADER)
    keep, dropped = batch.drop_invalid(batch.impossible(latitude, longitude, seconds), where=where)
    return [batch.Part(_user_of(name), seconds[keep] * 1_000_000_000, longitude[keep], latitude[keep], dropped)]


def _body(name: str, content: bytes) -> bytes:
    """Return the lines below the header; raise ValueError if they, the header or the user cannot be read."""
    if _split_path(name) is None:
        raise ValueError(f"The user of {name!r} is unknown: its path does not end with {_WHERE}.")
    if reason := batch.why_no_text(content):
        raise _LINES.error(name, reason)
    *header, body = content.split(b"\n", _HEADER)
    if len(header) < _HEADER:
        reason = "it ends within the six lines of the header"
    elif not body.strip():
        reason = "it has no record below the six lines of the header"
    elif b"," in header[-1]:
        reason = "line 6, the last of the header, looks like a record"
    elif _SHORT_TIME.search(body, max(0, len(body) - 10)):
        reason = "the file is cut (its last line has no newline and no seconds)"
    else:
        return body
    raise _LINES.error(name, reason)


def _columns(table: pa.Table) -> tuple[Any, Any, Any]:
    """Return latitudes, longitudes and seconds since 1970."""
    latitude, longitude, date, time = table.columns
    days, seconds = (column.cast(pa.int32()).to_numpy().astype(np.int64) for column in (date, time))
    return latitude.to_numpy(), longitude.to_numpy(), days * 86_400 + seconds


def _is_geolife(head: Head, name: str) -> bool:
    """Return whether a file has the extension or the first line of Geolife's."""
    is_other = head.content.startswith(b"OziExplorer")
    return (name.lower().endswith(_ENDING) and not is_other) or head.content.startswith(b"Geolife trajectory")


FORMAT = Format(
    "geolife", "Geolife", read_geolife, _is_geolife, files=(f"*{_ENDING}",), zipped=True, joins=False, library="pyarrow"
)
