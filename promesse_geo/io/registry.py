"""Any file or folder that the readers know, told by its content."""

import gzip
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyproj import CRS

from promesse_geo.io import gpx, table
from promesse_geo.io.cabspotting import read_cabspotting
from promesse_geo.io.geolife import read_geolife
from promesse_geo.io.gpx import read_gpx
from promesse_geo.io.gpx_points import IS_GPX
from promesse_geo.io.mdc import read_mdc
from promesse_geo.io.packed import PACKED
from promesse_geo.io.sources import GZIP, check_no_pipe
from promesse_geo.io.table import read_table
from promesse_geo.traces.columns import Name
from promesse_geo.traces.space import read_crs
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice

FORMATS = ("cabspotting", "geolife", "mdc", "gpx", "table")
READING = ("user", "one_trace", "time", "lon", "lat", "crs", "layer")
"""What the command line can say of how to read."""

_USED = {"table": READING, "gpx": ("user", "crs")}
_CURE = f"Name the format with format= (--format): {', '.join(FORMATS)}."
_MDC = {b"userid", b"time", b"longitude", b"latitude"}
_GEOLIFE = b"Geolife trajectory"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 4096


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
    users: Iterable[Any] | None = None,
    errors: str = "raise",
) -> Traces:
    """Read a file or folder as Traces.

    Parameters
    ----------
    source : path
        The file or folder.
    format : {"cabspotting", "geolife", "mdc", "gpx", "table"}, optional
        By default it is told by the content.
    user, time, lon, lat, crs, layer
        As in `read_table`, and `user` as in `read_gpx`; the other formats know theirs.
    users : iterable, optional
        The users to read; all by default.
    errors : {"raise", "skip"}
        What becomes of files and records that cannot be read: an error, or a counted warning.

    Returns
    -------
    Traces

    Raises
    ------
    FileNotFoundError
        If there is no such file or folder.
    ValueError
        If the content fits no format, or several, or is not what the format says.

    Examples
    --------
    >>> import promesse_geo as pg, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "city.parquet"
    >>> pg.write(pg.make_city(users=2, days=1), file)
    >>> len(pg.read_file(file))
    2
    """
    path = Path(source)
    if str(path) == "-":
        raise FileNotFoundError("Standard input is not read. Save what it gives to a file, and name that.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
    check_no_pipe(path)
    format = guess_format(path) if format is None else format
    check_choice(format, name="format", owner="read_file", options=FORMATS)
    if format == "table":
        named: dict[str, Any] = {"user": user, "time": time, "lon": lon, "lat": lat, "crs": crs, "layer": layer}
        return read_table(path, **named, users=users, as_traces=True, errors=errors)
    if crs is not None and read_crs(crs) != CRS.from_epsg(4326):
        raise ValueError(f"The format '{format}' is in EPSG:4326, and 'crs' (--crs) says another one. Leave it out.")
    if format == "gpx":
        by: Any = "file" if user is ... else user
        return read_gpx(path, user=by, users=users, as_traces=True, errors=errors)
    read = {"cabspotting": read_cabspotting, "geolife": read_geolife, "mdc": read_mdc}[format]
    return read(path, users=users, as_traces=True, errors=errors)


def used_options(path: Path, format: str) -> set[str]:
    """Return which of `READING` are of use for a file or folder of a format."""
    if format == "table" and path.is_file():
        kind = table.table_kind(path)
        needless = {"geopackage": {"lon", "lat"}, "geojson": {"lon", "lat", "layer"}}
        return set(READING) - needless.get(kind, {"layer"})
    return set(_USED.get(format, ("crs",)))


def guess_format(path: Path) -> str:
    """Tell the format of a file or folder by its content."""
    if path.is_dir():
        return _format_of_folder(path)
    if path.match("new_*.txt") or _is_tar(path):
        return "cabspotting"
    if zipfile.is_zipfile(path):
        return _format_of_zip(path)
    return _format_of_file(path)


def _format_of_folder(folder: Path) -> str:
    """The one format whose files lie in a folder."""
    files = [file for file in sorted(folder.rglob("*")) if not _is_hidden(file.relative_to(folder))]
    found = {_format_of_name(file.name.lower()) for file in files} - {""}
    texts = [file for file in files if file.suffix.lower() in (".csv", ".tsv", ".txt") and file.is_file()]
    if {"gps.csv", "records.csv"} <= {file.name.lower() for file in files} or any(map(_has_mdc_header, texts[:1])):
        found = found - {"table"} | {"mdc"}
    if len(found) == 1:
        return found.pop()
    what = f"files of several formats ({', '.join(sorted(found))})" if found else "no file of a format that is known"
    raise ValueError(f"The folder {str(folder)!r} holds {what}. {_CURE}")


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") for part in file.parts)


def _format_of_name(name: str) -> str:
    """The format that a file in a folder has by its name; nothing where it has none."""
    endings = {"geolife": (".plt",), "gpx": gpx.ENDINGS, "table": table.ENDINGS}
    if name.startswith("new_") and name.endswith(".txt"):
        return "cabspotting"
    return next((format for format, ends in endings.items() if name.endswith(ends)), "")


def _format_of_zip(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        if any(name.lower().endswith(".plt") for name in archive.namelist()):
            return "geolife"
    raise ValueError(
        f"The zip {str(path)!r} holds no file of Geolife (*.plt), and no other zip is read. Unpack it. {_CURE}"
    )


def _format_of_file(path: Path) -> str:
    if path.suffix.lower() == ".plt" or _head(path).startswith(_GEOLIFE):
        return "geolife"
    if _is_gpx(path):
        return "gpx"
    beside = {file.lower() for file in os.listdir(path.parent)} if path.name.lower() == "gps.csv" else set()
    if "records.csv" in beside or _has_mdc_header(path):
        return "mdc"
    try:
        kind = table.table_kind(path)
    except ValueError as error:
        raise ValueError(f"{error} {_CURE}") from None
    head = _head(path)
    if kind == "csv" and b"\0" in head and not head.startswith((*_UTF16, *PACKED)):
        raise ValueError(f"{str(path)!r} is neither text nor of another format that is known. {_CURE}")
    return "table"


def _head(path: Path) -> bytes:
    """The first bytes of a file, unpacked if gzip packed them."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head.startswith(GZIP):
        return head
    try:
        with gzip.open(path) as file:
            return file.read(_HEAD)
    except (OSError, EOFError, zlib.error):
        return head


def _is_gpx(path: Path) -> bool:
    """Whether there is the element <gpx>, in any encoding that XML has."""
    head = _head(path).replace(b"\0", b"")
    return IS_GPX.search(head) is not None and head.lstrip(b"\xef\xbb\xbf\xff\xfe \r\n\t").startswith(b"<")


def _has_mdc_header(path: Path) -> bool:
    return _MDC.issubset(_head(path).partition(b"\n")[0].strip().split(b"\t"))


def _is_tar(path: Path) -> bool:
    """Whether it is a tar archive; one whose first bytes cannot be unpacked counts, by its name."""
    try:
        return tarfile.is_tarfile(path)
    except (EOFError, zlib.error, lzma.LZMAError):
        return ".tar" in path.suffixes or path.suffix == ".tgz"
