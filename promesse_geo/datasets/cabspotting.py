"""Cabspotting: taxis of San Francisco, 2008 (CRAWDAD epfl/mobility)."""

import io
import os
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pyarrow as pa
from pyarrow import csv
from tqdm.auto import tqdm

from promesse_geo import check
from promesse_geo.traces import Traces

_NAME = re.compile(r"new_(.+)\.txt")
_RULE = "four numbers: latitude, longitude, occupancy (0 or 1), unix seconds"
_PARSE = {
    "parse_options": csv.ParseOptions(delimiter=" ", quote_char=False),
    "convert_options": csv.ConvertOptions(
        column_types={"latitude": pa.float64(), "longitude": pa.float64(), "occupancy": pa.int8(), "time": pa.int64()},
        null_values=[],
    ),
    "read_options": csv.ReadOptions(
        column_names=["latitude", "longitude", "occupancy", "time"], use_threads=False, block_size=1 << 26
    ),
}
_LAST_SECOND = 9_000_000_000  # nanoseconds count up to the year 2255 here


def read_cabspotting(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    users: Iterable[str] | None = None,
    as_traces: bool = False,
) -> gpd.GeoDataFrame | Traces:
    """Read Cabspotting: the archive, its folder, or some of its files.

    Parameters
    ----------
    source : path or several paths
        `cabspottingdata.tar.gz`, a folder that holds `new_<cab>.txt` files, one such file, or several.
    users : iterable of str, optional
        The cabs to read (`<cab>` of the file names); all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user (the cab), time (UTC) and geometry (EPSG:4326).

    Raises
    ------
    FileNotFoundError
        If there is no such file, or none of the cabs asked for.
    ValueError
        If a file is not what the format says; the message names the file and the line.

    References
    ----------
    Piorkowski, Sarafijanovic-Djukic, Grossglauser: A Parsimonious Model of Mobile Partitioned Networks with
    Clustering. COMSNETS 2009.
    """
    if isinstance(users, str):
        raise TypeError(check.refuse("users", "read_cabspotting", "a list of cabs", users, cure="Put it into [ ]."))
    wanted = None if users is None else {check.text(user, name="users", owner="read_cabspotting") for user in users}
    cabs, tables = [], []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting: list[Future[tuple[str, tuple[np.ndarray, ...]]]] = []
        for name, content in tqdm(_contents(source, wanted), desc="cabs", unit=" files", delay=1, disable=None):
            waiting.append(pool.submit(_parse, name, content))
        for future in waiting:
            cab, columns = future.result()
            cabs.append(cab)
            tables.append(columns)
    _check_cabs(cabs, wanted)
    latitudes, longitudes, seconds = (np.concatenate([table[i] for table in tables]) for i in range(3))
    counts = np.array([len(table[0]) for table in tables])
    traces = Traces.from_arrays(
        longitudes, latitudes, times=seconds * 1_000_000_000, users=cabs, counts=counts, crs="EPSG:4326", zone="UTC"
    )
    return traces if as_traces else traces.to_frame()


def _contents(source: Any, wanted: set[str] | None) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each cab's file."""
    paths = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    for path in map(Path, paths):
        if path.is_dir():
            files = sorted(path.glob("new_*.txt")) or sorted(path.glob("*/new_*.txt"))
            if not files:
                raise FileNotFoundError(f"The folder {str(path)!r} holds no file of Cabspotting (new_<cab>.txt).")
            yield from ((str(file), file.read_bytes()) for file in files if _is_wanted(file.name, wanted))
        elif not path.exists():
            raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
        elif _NAME.fullmatch(path.name):
            if _is_wanted(path.name, wanted):
                yield str(path), path.read_bytes()
        else:
            yield from _members(path, wanted)


def _members(path: Path, wanted: set[str] | None) -> Iterator[tuple[str, bytes]]:
    found = False
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                name = os.path.basename(member.name)
                found = found or bool(_NAME.fullmatch(name))
                if member.isfile() and _is_wanted(name, wanted):
                    stream = archive.extractfile(member)
                    assert stream is not None
                    yield f"{path}:{name}", stream.read()
            _check_end(archive)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        if found:
            raise ValueError(f"The archive {str(path)!r} is cut or damaged. Fetch it again.") from error
        raise ValueError(
            f"{str(path)!r} is neither an archive nor a file of Cabspotting (cabspottingdata.tar.gz or new_<cab>.txt)."
        ) from error
    if not found:
        raise ValueError(f"The archive {str(path)!r} holds no file of Cabspotting (new_<cab>.txt).")


def _check_end(archive: tarfile.TarFile) -> None:
    """Read on to the end: tarfile takes a cut or damaged header for the end, and leaves the checksum unread."""
    assert archive.fileobj is not None
    archive.fileobj.seek(archive.offset)
    if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError
    while archive.fileobj.read(1 << 20):
        pass


def _is_wanted(name: str, wanted: set[str] | None) -> bool:
    match = _NAME.fullmatch(name)
    return match is not None and (wanted is None or match[1] in wanted)


def _parse(name: str, content: bytes) -> tuple[str, tuple[np.ndarray, ...]]:
    """Latitudes, longitudes and unix seconds of one cab."""
    try:
        table = csv.read_csv(io.BytesIO(content), **_PARSE)
    except pa.ArrowInvalid:
        raise ValueError(_complaint(name, _first_bad_line(content))) from None
    latitude, longitude, occupancy, seconds = (column.to_numpy() for column in table.columns)
    wrong = (
        ~(np.abs(latitude) <= 90)
        | ~(np.abs(longitude) <= 180)
        | ((occupancy != 0) & (occupancy != 1))
        | (seconds < 0)
        | (seconds > _LAST_SECOND)
    )
    if wrong.any():
        written = [number for number, line in enumerate(content.splitlines(), start=1) if line]
        raise ValueError(_complaint(name, written[int(wrong.argmax())]))
    match = _NAME.fullmatch(os.path.basename(name.rpartition(":")[2] if ".txt" in name else name))
    assert match is not None
    return match[1], (latitude, longitude, seconds)


def _complaint(name: str, line: int) -> str:
    where = f"line {line:,} is not" if line else "it is empty; each line should be"
    return f"{name!r} is not in the format of Cabspotting: {where} {_RULE}, separated by one blank."


def _first_bad_line(content: bytes) -> int:
    """Number of the first line that the parser refuses; 0 if there is none at all."""
    lines = content.splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            csv.read_csv(io.BytesIO(line + b"\n"), **_PARSE)
        except pa.ArrowInvalid:
            return number
    return 0


def _check_cabs(cabs: list[str], wanted: set[str] | None) -> None:
    if not cabs and not wanted:
        raise ValueError("Nothing is to be read: 'source' or 'users' of read_cabspotting is an empty list.")
    missing = len(wanted - set(cabs)) if wanted else 0
    if missing:
        are = "is" if missing == 1 else "are"
        raise FileNotFoundError(f"{check.counted(missing, 'cab')} asked for with 'users' {are} not among the files.")
    if len(set(cabs)) < len(cabs):
        raise ValueError("Two files hold the same cab. Read the archive or the folder, not both.")
