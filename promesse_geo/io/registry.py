"""The formats that can be read, and `read_file`, which recognizes them."""

import os
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyproj import CRS

from promesse_geo.io import cabspotting, fit, geolife, gpx, kml, mdc, table, tcx
from promesse_geo.io.sources import NO_HEAD, Format, as_path, check_exists, check_no_pipe, files_inside, read_head
from promesse_geo.io.table import why_no_table
from promesse_geo.messages import listed
from promesse_geo.traces.columns import Name
from promesse_geo.traces.space import read_crs
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice

FORMATS = {
    format.name: format
    for format in (
        cabspotting.FORMAT,
        geolife.FORMAT,
        mdc.FORMAT,
        gpx.FORMAT,
        tcx.FORMAT,
        kml.FORMAT,
        fit.FORMAT,
        table.FORMAT,
    )
}
"""Formats by name; the first one that accepts a file reads it."""

READING = tuple(dict.fromkeys([*(name for format in FORMATS.values() for name in format.options(NO_HEAD)), "crs"]))
"""Names of the options of all readers."""

LABELS = ", ".join(format.label for format in FORMATS.values())
"""Names of the formats in help texts."""

_SNIFFED = 3  # files of a folder, in case the first is damaged
_CURE = f"Specify format= (--format): {', '.join(FORMATS)}."


def read_file(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    user: Name = ...,
    time: Name = ...,
    lon: str | None = None,
    lat: str | None = None,
    crs: Any = None,
    layer: str | None = None,
    segment: Name = ...,
    users: Iterable[Any] | None = None,
    errors: str = "raise",
) -> Traces:
    """Read a file or folder as Traces.

    Parameters
    ----------
    source : path
        The file or folder.
    format : {"cabspotting", "geolife", "mdc", "gpx", "tcx", "kml", "fit", "table"}, optional
        Detected from the content by default.
    user, time, lon, lat, crs, layer, segment
        As in `read_table`, and `user` as in `read_gpx`; the other formats fix them.
    users : iterable of text or integers, optional
        The users to read; all by default.
    errors : {"raise", "skip"}
        Whether files and records that cannot be read raise an error or are skipped with one counted warning.

    Returns
    -------
    Traces

    Raises
    ------
    FileNotFoundError
        If the file or folder does not exist.
    ValueError
        If no format or several formats fit the content, if the file is not in the format, or a user does not exist.

    Examples
    --------
    >>> import promesse_geo as pg, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "city.parquet"
    >>> pg.write(pg.make_city(users=2, days=1), file)
    >>> len(pg.read_file(file))
    2
    """
    path = as_path(source, owner="read_file")
    if str(path) == "-":
        raise FileNotFoundError("Standard input is not supported. Save it to a file and pass that.")
    check_exists(path)
    check_no_pipe(path)
    name = guess_format(path) if format is None else format
    chosen = FORMATS[check_choice(name, name="format", owner="read_file", options=list(FORMATS))]
    allowed = chosen.options(NO_HEAD)
    if crs is not None and "crs" not in allowed and read_crs(crs) != CRS.from_epsg(4326):
        raise ValueError(f"Format '{name}' is in EPSG:4326, but 'crs' (--crs) specifies another CRS. Omit it.")
    given = {"user": user, "time": time, "lon": lon, "lat": lat, "crs": crs, "layer": layer, "segment": segment}
    options = {name: value for name, value in given.items() if name in allowed and value is not ...}
    return chosen.read(path, users=users, as_traces=True, errors=errors, **options)


def used_options(path: Path, format: str) -> set[str]:
    """Return the names in `READING` that apply to a file or folder of a format."""
    return {"crs", *FORMATS[format].options(read_head(path) if path.is_file() else NO_HEAD)}


def guess_format(path: Path) -> str:
    """Return the name of the format of a file or folder, from its content.

    Raises
    ------
    ValueError
        If no format or several formats fit.
    """
    if path.is_dir():
        return _format_of_folder(path)
    head = read_head(path)
    if head.stored.startswith((b"PK\3\4", b"PK\5\6")):
        return _format_of_zip(path)
    for format in FORMATS.values():
        if format.sniff(head, path.name):
            return format.name
    raise ValueError(f"{str(path)!r} {why_no_table(head)}. {_CURE}")


def _format_of_folder(folder: Path) -> str:
    """Return the only format of the files in a folder; each format leaves the files that it does not claim."""
    files = sorted(files_inside(folder, lambda file: any(format.claims(file.name) for format in FORMATS.values())))
    names = []
    for format in FORMATS.values():
        if claimed := _claimed(format, files):
            names.append(format.name)
            files = sorted(set(files) - set(claimed))
    if len(names) == 1:
        return names[0]
    what = f"files of several formats ({', '.join(names)})" if names else "no file in a known format"
    raise ValueError(f"The folder {str(folder)!r} has {what}. {_CURE}")


def _claimed(format: Format, files: Sequence[Path]) -> list[Path]:
    """Return the files that a format claims by name; none if it needs to recognize one of the first and does not."""
    claimed = format.claim(files)
    first = [] if format.by_name else [file for file in claimed[:_SNIFFED] if file.is_file()]
    return claimed if format.by_name or any(format.sniff(read_head(file), file.name) for file in first) else []


def _format_of_zip(path: Path) -> str:
    """Return the first format that reads zip archives and claims a file in this one."""
    zipped = [format for format in FORMATS.values() if format.zipped]
    try:
        with zipfile.ZipFile(path) as archive:
            names = [os.path.basename(name) for name in archive.namelist()]
    except zipfile.BadZipFile:
        raise ValueError(f"The zip archive {str(path)!r} is cut or damaged. Download it again. {_CURE}") from None
    for format in zipped:
        if any(format.claims(name) for name in names):
            return format.name
    raise ValueError(
        f"The zip archive {str(path)!r} has no file of {listed([format.name for format in zipped])}; other zip "
        f"archives are not read. Extract it. {_CURE}"
    )
