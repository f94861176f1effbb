"""Any file that the readers know, told by its content."""

import lzma
import os
import tarfile
import zlib
from pathlib import Path
from typing import Any

from promesse_geo import check
from promesse_geo.columns import Name
from promesse_geo.datasets.cabspotting import read_cabspotting
from promesse_geo.datasets.table import read_table
from promesse_geo.traces import Traces

FORMATS = ("cabspotting", "table")


def read_file(
    source: str | os.PathLike[str], *, format: str | None = None, user: Name = ..., time: Name = ..., crs: Any = None
) -> Traces:
    """Read a file or folder as Traces.

    Parameters
    ----------
    source : path
        The file or folder.
    format : {"cabspotting", "table"}, optional
        By default it is told by the content.
    user, time, crs
        As in `read_table`; the other formats know theirs.

    Returns
    -------
    Traces
    """
    path = Path(source)
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
    format = guess_format(path) if format is None else format
    check.choice(format, name="format", owner="read_file", options=FORMATS)
    if format == "cabspotting":
        return read_cabspotting(path, as_traces=True)
    return read_table(path, user=user, time=time, crs=crs, as_traces=True)


def guess_format(path: Path) -> str:
    """Tell the format of a file or folder by its content."""
    is_cabspotting = path.is_dir() or path.match("new_*.txt") or _is_archive(path)
    return "cabspotting" if is_cabspotting else "table"


def _is_archive(path: Path) -> bool:
    """Whether it is a tar archive; one whose first bytes cannot be unpacked counts."""
    try:
        return tarfile.is_tarfile(path)
    except (EOFError, zlib.error, lzma.LZMAError):
        return True
