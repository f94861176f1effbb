"""Check output paths, and write files atomically."""

import glob
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from promesse_geo.messages import listed

_GDAL_EXTENSIONS = (".gpkg", ".geojson", ".json")
"""Extensions of files that GDAL writes."""

_SQLITE_JOURNALS = ("-wal", "-journal")
"""Extensions of files beside a GeoPackage that hold changes not yet in it, or its previous content."""


def check_file(path: Path, endings: Sequence[str], *, force: bool) -> None:
    """Raise if data cannot be written to a path because of its extension, its folder, or GDAL."""
    ending = path.suffix.lower()
    if ending not in endings:
        raise ValueError(f"The output {path.name!r} must end with one of {listed(endings)}, which sets the format.")
    check_target(path, force=force)
    folder = str(path.absolute().parent)
    if ending in _GDAL_EXTENSIONS and (not folder.isprintable() or "!" in folder):
        raise ValueError(
            f"The folder {folder!r} has a '!', a line break or bytes that are not UTF-8 in its path, which GDAL cannot "
            "reach. Write GeoPackage and GeoJSON to another folder."
        )


def check_target(path: Path, *, force: bool) -> None:
    """Raise if no file can be written to a path: its folder does not exist, it is a folder, or the file exists."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {str(path.parent)!r} does not exist. Create it first.")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Name a file.")
    if os.path.lexists(path) and not force:
        raise FileExistsError(_exists_message(path))
    endings = _SQLITE_JOURNALS if path.suffix.lower() == ".gpkg" else ()
    beside = [path.name + ending for ending in endings if os.path.lexists(f"{path}{ending}")]
    if beside:
        raise FileExistsError(
            f"Beside {str(path)!r} lies {beside[0]!r}, which SQLite would bring into a new file. Close the program "
            "that has the file open, or remove what it left."
        )


@contextmanager
def atomic_path(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary path in the same folder, and rename the file written there when it is complete.

    Raises
    ------
    FileExistsError
        If the file was created meanwhile and `force` is False.
    """
    temporary = path.absolute().with_name(f".{secrets.token_hex(8)}.part{path.suffix}")
    try:
        yield temporary
        if force:
            os.replace(temporary, path)
        else:
            _link(temporary, path)
    finally:
        for left in temporary.parent.glob(f"{glob.escape(temporary.name)}*"):  # GDAL may leave a journal beside
            left.unlink()


def _link(temporary: Path, path: Path) -> None:
    """Name a file by a link: renaming would replace an existing file."""
    try:
        os.link(temporary, path)
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(_exists_message(path)) from None
        os.replace(temporary, path)  # the file system has no links


def _exists_message(path: Path) -> str:
    return f"The file {str(path)!r} already exists. Pass force=True (--force) to overwrite it."
