"""Where a file can be written, how it gets there whole or not at all, and a layer as GDAL writes it."""

import glob
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyogrio
from pyproj import CRS

from promesse_geo.messages import listed

OF_GDAL = (".gpkg", ".geojson", ".json")
"""Endings of files that GDAL writes."""

OF_SQLITE = ("-wal", "-journal")
"""Endings of files beside a GeoPackage that hold changes not yet in it, or what stood there before them."""


def check_file(path: Path, endings: Sequence[str], *, force: bool) -> None:
    """Say why data cannot be written to a path: its ending, its place, or that GDAL does not reach it."""
    ending = path.suffix.lower()
    if ending not in endings:
        raise ValueError(f"The output {path.name!r} must end with one of {listed(endings)}, which says the format.")
    check_place(path, force=force)
    if ending in OF_GDAL:
        _check_gdal_reaches(path.absolute().parent)


def check_place(path: Path, *, force: bool) -> None:
    """Say why nothing can be written to a path: no folder, a folder itself, or a file that is there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {str(path.parent)!r} is not there. Make it first.")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Name a file.")
    if _is_there(path) and not force:
        raise FileExistsError(_there_already(path))
    endings = OF_SQLITE if path.suffix.lower() == ".gpkg" else ()
    beside = [path.name + ending for ending in endings if os.path.lexists(f"{path}{ending}")]
    if beside:
        raise FileExistsError(
            f"Beside {str(path)!r} stands {beside[0]!r}, which SQLite would bring into a new file. Close the program "
            "that has the file open, or remove what it left."
        )


def _check_gdal_reaches(folder: Path) -> None:
    """Refuse the folders whose paths GDAL takes for something else."""
    text = str(folder)
    if not text.isprintable() or "!" in text:
        raise ValueError(
            f"The folder {text!r} has a '!', a line break or bytes that are not UTF-8 in its path, which GDAL cannot "
            "reach. Write GeoPackage and GeoJSON to another folder."
        )


@contextmanager
def renamed_when_whole(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a temporary name beside a path, and rename what was written under it when that is whole.

    Without `force`, what came to the path meanwhile stays, and is an error.
    """
    temporary = path.absolute().with_name(f".{secrets.token_hex(8)}.part{path.suffix}")
    try:
        yield temporary
        if force:
            os.replace(temporary, path)
        else:
            _place(temporary, path)
    finally:
        for left in temporary.parent.glob(f"{glob.escape(temporary.name)}*"):  # GDAL may leave a journal beside
            left.unlink()


def _place(temporary: Path, path: Path) -> None:
    """Give a file its name, by a link: renaming would replace what has the name."""
    try:
        os.link(temporary, path)
    except OSError:
        if _is_there(path):
            raise FileExistsError(_there_already(path)) from None
        os.replace(temporary, path)  # the file system knows no links


def _is_there(path: Path) -> bool:
    """Whether anything has the name, be it a link that leads nowhere."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def _there_already(path: Path) -> str:
    return f"The file {str(path)!r} is there already. Say force=True (--force) to replace it."


_GDAL_SETTINGS = threading.Lock()  # they are global
_GDAL_EPOCH = "1970-01-01T00:00:00.000Z"  # written where GDAL would write the moment of the run
_CRS_WORDS = {"remarks", "scope", "area", "usages"}


def bare_crs(crs: CRS) -> CRS:
    """Return a CRS without words of its own: that of the registry where it is one, else without remarks and usages."""
    authority = crs.to_authority()
    known = None if authority is None else CRS.from_authority(*authority)
    if known is not None and known == crs:
        return known
    content = _without_words(crs.to_json_dict())
    nameless = CRS.from_json_dict(content | {"name": "unknown"})
    return nameless if nameless == crs else CRS.from_json_dict(content)


def has_words(crs: CRS) -> bool:
    """Whether a CRS has a name, remarks or usages that files would carry and that no registry knows."""
    content, bare = crs.to_json_dict(), bare_crs(crs).to_json_dict()
    return content["name"] not in ("unknown", bare["name"]) or bool(_words(content) - _words(bare))


def _without_words(content: Any) -> Any:
    if isinstance(content, list):
        return [_without_words(one) for one in content]
    if isinstance(content, dict):
        return {key: _without_words(one) for key, one in content.items() if key not in _CRS_WORDS}
    return content


def _words(content: Any) -> set[str]:
    """Remarks and usages at any depth, as text."""
    if isinstance(content, list):
        return set().union(*map(_words, content))
    if not isinstance(content, dict):
        return set()
    own = {str(one) for key, one in content.items() if key in _CRS_WORDS}
    return own.union(*map(_words, content.values()))


def write_layer(
    table: pa.Table,
    path: Path,
    *,
    driver: str,
    layer: str,
    geometry: str,
    crs: CRS,
    about: dict[str, str],
    options: dict[str, str],
) -> None:
    """Write a table with points in well-known binary as a layer, and nothing of the run or of its moment.

    Raises
    ------
    OSError
        If GDAL cannot write it.
    """
    named = {"GEOMETRY_NAME": geometry} if driver == "GPKG" else {}
    with _GDAL_SETTINGS:
        before = pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": _GDAL_EPOCH})
        try:
            pyogrio.write_arrow(
                table,
                path,
                layer=layer,
                driver=driver,
                geometry_name=geometry,
                geometry_type="Point",
                crs=bare_crs(crs).to_json(),  # GDAL loses units of WKT that has no authority's code
                layer_metadata=about or None,
                layer_options=named | options,
            )
        except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as error:
            raise OSError(f"The file could not be written. GDAL says: {error}") from error
        finally:
            pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": before})
