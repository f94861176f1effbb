"""Cabspotting: taxis of San Francisco, 2008 (CRAWDAD epfl/mobility)."""

import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Unpack, overload

import geopandas as gpd
import numpy as np
import pyarrow as pa

from promesse_geo.io import batch, contents, sources
from promesse_geo.io.contents import Head
from promesse_geo.io.options import UserOptions
from promesse_geo.io.sources import Format, Source
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_flag, check_users

_NAME = re.compile(r"new_(.+)\.txt")
_TEN_DIGITS = 10**9  # unix seconds since 2001
_LINES = batch.Lines(
    "Cabspotting",
    "four numbers: latitude, longitude, occupancy (0 or 1), unix seconds, separated by single spaces",
    ("latitude", "longitude", "occupancy", "time"),
    {"latitude": pa.float64(), "longitude": pa.float64(), "occupancy": pa.int8(), "time": pa.int64()},
    delimiter=" ",
)


@overload
def read_cabspotting(
    source: Source, *, as_traces: Literal[False] = ..., **options: Unpack[UserOptions]
) -> gpd.GeoDataFrame: ...
@overload
def read_cabspotting(source: Source, *, as_traces: Literal[True], **options: Unpack[UserOptions]) -> Traces: ...
@overload
def read_cabspotting(
    source: Source, *, as_traces: bool, **options: Unpack[UserOptions]
) -> gpd.GeoDataFrame | Traces: ...


def read_cabspotting(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    users: Iterable[str] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    r"""Read Cabspotting: the archive, its folder, or some of its files.

    Parameters
    ----------
    source : path or several paths
        `cabspottingdata.tar.gz`, a folder with `new_<cab>.txt` files at any depth, one such file, or several.
    users : iterable of str, optional
        The cabs to read (`<cab>` in the file names); all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.
    errors : {"raise", "skip"}
        Whether a file that cannot be read raises an error, or is skipped with one counted warning. Of an archive that
        is cut or damaged, "skip" keeps the files before that place.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user (the cab), time (UTC) and geometry (EPSG:4326).

    Raises
    ------
    FileNotFoundError
        If a file does not exist, or a folder has none.
    ValueError
        If a file is not in the format (the message names the file and the line), or a cab does not exist.

    References
    ----------
    Piorkowski, Sarafijanovic-Djukic, Grossglauser: A Parsimonious Model of Mobile Partitioned Networks with
    Clustering. COMSNETS 2009.

    Examples
    --------
    >>> import promesse_geo as pg, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "new_abc.txt"
    >>> _ = file.write_text("37.75134 -122.39488 0 1213084687\n37.75136 -122.39527 1 1213084659\n")
    >>> pg.read_cabspotting(file).user.unique().tolist()
    ['abc']
    """
    cabs = check_users(users, owner="read_cabspotting")
    check_flag(as_traces, name="as_traces", owner="read_cabspotting")
    return batch.read_dataset(
        _contents(sources.as_paths(source, owner="read_cabspotting"), cabs),
        _parse,
        users=cabs,
        errors=errors,
        owner="read_cabspotting",
        as_traces=as_traces,
        user_of=_cab_of,
        check=_check_distinct,
    )


def _contents(paths: Sequence[Path], cabs: set[str] | None) -> Iterator[batch.Content]:
    """Yield the files of some cabs, or of all (None)."""
    for path in paths:
        contents.check_exists(path)
        if path.is_dir():
            yield from _in_folder(path, cabs)
        elif not _NAME.fullmatch(path.name):
            try:
                yield from _members(path, cabs)
            except ValueError as error:  # the archive is invalid: reading the next file raises
                yield str(path), partial(_raise, error)
        elif _is_of(path.name, cabs):
            yield str(path), partial(contents.read_stored, path)


def _in_folder(path: Path, cabs: set[str] | None) -> Iterator[batch.Content]:
    """Yield the cabs' files in a folder, at any depth, and folders that cannot be read."""
    files = sorted(sources.files_inside(path, lambda file: _NAME.fullmatch(file.name) is not None))
    if not files:
        raise FileNotFoundError(f"The folder {str(path)!r} has no file of Cabspotting (new_<cab>.txt).")
    for file in files:
        if not _NAME.fullmatch(file.name) or _is_of(file.name, cabs):
            yield str(file), partial(contents.read_stored, file)


def _raise(error: Exception) -> bytes:
    raise error


def _members(path: Path, cabs: set[str] | None) -> Iterator[batch.Content]:
    has_cabs = False
    size, limit = 0, contents.size_limit(path.stat().st_size)
    sizes: dict[str, int] = {}
    try:
        with contents.unchanged(path), tarfile.open(path, "r:*") as archive:
            for member in archive:
                name = os.path.basename(member.name)
                has_cabs = has_cabs or bool(_NAME.fullmatch(name))
                sizes[member.name] = sizes.get(member.linkname, 0) if member.islnk() else member.size
                size += sizes[member.name]
                if size > limit:
                    raise ValueError(contents.too_large(f"The archive {str(path)!r}", path.stat().st_size))
                if not member.isdir() and _is_of(name, cabs):
                    yield f"{path}:{name}", _reader_of(f"{path}:{name}", member, archive)
            _check_end(archive)
    except (*contents.BROKEN, tarfile.TarError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise ValueError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
        if has_cabs:
            raise ValueError(f"The archive {str(path)!r} is cut or damaged. Download it again.") from error
        raise ValueError(
            f"{str(path)!r} is neither an archive nor a file of Cabspotting (cabspottingdata.tar.gz or new_<cab>.txt)."
        ) from error
    if not has_cabs:
        raise ValueError(f"The archive {str(path)!r} has no file of Cabspotting (new_<cab>.txt).")


def _reader_of(name: str, member: tarfile.TarInfo, archive: tarfile.TarFile) -> Callable[[], bytes]:
    """Return a reader of a member, whose content is read now: a stream cannot go back."""
    if not (member.isfile() or member.islnk()):
        return partial(_raise, ValueError(f"{name!r} is a link or no file. Extract the archive and read its folder."))
    try:
        stream = archive.extractfile(member)
    except KeyError:
        return partial(_raise, ValueError(f"{name!r} is a link to a file that the archive does not hold."))
    return partial(bytes, stream.read() if stream else b"")


def _check_end(archive: tarfile.TarFile) -> None:
    """Read to the end, because tarfile ends at a damaged header and does not read the checksum."""
    assert archive.fileobj is not None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError
    while archive.fileobj.read(1 << 20):
        pass


def _is_of(name: str, cabs: set[str] | None) -> bool:
    match = _NAME.fullmatch(name)
    return match is not None and (cabs is None or match[1] in cabs)


def _cab_of(name: str) -> str:
    """Return the cab of a file or of a member of an archive; empty for the archive."""
    match = _NAME.fullmatch(re.split(r"[/\\]|:(?=new_)", name)[-1])
    return match[1] if match else ""


def _parse(name: str, content: bytes) -> list[batch.Part]:
    """Return the records of one cab."""
    latitude, longitude, occupancy, seconds = (column.to_numpy() for column in _LINES.read(name, content).columns)
    masks = [*batch.impossible(latitude, longitude, seconds).values(), (occupancy != 0) & (occupancy != 1)]
    wrong = np.logical_or.reduce(masks)
    if wrong.any():
        raise _LINES.error(name, f"line {batch.line_of_row(content, int(wrong.argmax())):,} is not {_LINES.rule}")
    if not content.endswith((b"\n", b"\r")) and seconds[-1] < _TEN_DIGITS and (seconds[:-1] >= _TEN_DIGITS).all():
        raise _LINES.error(name, "the file is cut (its last line has no newline and too short a time)")
    return [batch.Part(_cab_of(name), seconds * 1_000_000_000, longitude, latitude)]


def _check_distinct(parts: Sequence[batch.Part]) -> None:
    if len({part.user for part in parts}) < len(parts):
        raise ValueError("Two files hold the same cab. Read the archive or the folder, not both.")


def _is_cabspotting(head: Head, name: str) -> bool:
    """Return whether a file is one of a cab or a tar archive; a damaged archive is recognized by its name."""
    if _NAME.fullmatch(name):
        return True
    if head.stored and not head.content:
        return ".tar" in name or name.endswith(".tgz")
    try:
        tarfile.TarInfo.frombuf(head.content[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


FORMAT = Format(
    "cabspotting",
    "Cabspotting",
    read_cabspotting,
    _is_cabspotting,
    files=("new_*.txt",),
    joins=False,
    library="pyarrow",
)
