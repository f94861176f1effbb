"""What a file, or a folder of files, holds beside the records that the reader takes."""

import json
import os
import sqlite3
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.audit.findings import FAILED, LOOK, NOT_COMPARABLE, PASSED, Extras, Finding, Findings, no_others
from promesse_geo.audit.geojson import geojson_extras
from promesse_geo.audit.geopackage import geopackage_extras, geopackage_metadata
from promesse_geo.audit.packed import packed_notes, packed_things
from promesse_geo.audit.parquet import parquet_extras, parquet_metadata
from promesse_geo.audit.spelling import NUL, long_numbers, times_otherwise
from promesse_geo.io.layer import GDAL_ERRORS
from promesse_geo.io.registry import guess_format
from promesse_geo.io.sources import find_files
from promesse_geo.io.table import ENDINGS, table_kind
from promesse_geo.io.table_columns import Wanted
from promesse_geo.io.text_table import find_text_columns, read_as_text, read_layout
from promesse_geo.io.writers import METADATA_KEY, describe_mechanism
from promesse_geo.mechanisms import Mechanism, Promesse
from promesse_geo.messages import counted, warn
from promesse_geo.traces.columns import Name, check_names

_TESTS = ("no other columns", "nothing else in the file", "metadata of the file")
_CANNOT = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OSError,
    sqlite3.Error,
    struct.error,
    pa.ArrowException,
    *GDAL_ERRORS,
)


def file_findings(
    path: str | os.PathLike[str],
    *,
    user: Name = ...,
    time: Name = ...,
    lon: str | None = None,
    lat: str | None = None,
    crs: Any = None,
) -> pd.DataFrame:
    """Return what a file holds beside the records, as rows of `check_published`.

    Parameters
    ----------
    path : path
        GeoParquet, GeoPackage, GeoJSON or CSV, or a folder of such files: what `read_table` reads.
    user, time, lon, lat, crs
        As they are said to `read_table`.

    Returns
    -------
    pandas.DataFrame
        test, verdict and reason: of the columns that the reader does not take, of other tables, members and names,
        and of the file's own metadata.

    Raises
    ------
    FileNotFoundError, KeyError, ValueError
        If there is no such file, or its content cannot be looked into.
    """
    check_names({"user": user, "time": time, "lon": lon, "lat": lat})
    path = Path(path)
    if path.exists() and guess_format(path) != "table":
        reason = "only GeoParquet, GeoPackage, GeoJSON and CSV are looked into; write the data anew as one of them"
        return Findings([Finding(test, NOT_COMPARABLE, reason) for test in _TESTS])
    wanted = Wanted(user, time, lon=lon, lat=lat, crs=crs, layer=None, lenient=False)
    files = find_files(path, endings=ENDINGS, owner="check")
    found = [_extras(file, wanted) for file in files]
    if path.is_dir():
        found.append(_beside(path, files))
    columns, things, notes = (
        list(dict.fromkeys(one for some in kind for one in some)) for kind in zip(*found, strict=True)
    )
    return Findings([no_others(columns), _nothing_else(things), _metadata(notes)])


def file_mechanism(path: str | os.PathLike[str]) -> Mechanism | None:
    """Return the mechanism that the metadata of a file, or of all files of a folder, names, without its seed.

    None where there is no one mechanism that we know.
    """
    path = Path(path)
    try:
        files = find_files(path, endings=ENDINGS, owner="check")
        texts = {_about(file) for file in files}
    except _CANNOT:  # another format
        return None
    text = texts.pop() if len(texts) == 1 else None
    if text is None:
        return None
    mechanism = _named(text)
    if mechanism is None:
        warn(f"The metadata of {str(path)!r} names a mechanism that cannot be read; it is passed over.")
    return mechanism


def file_epsilon(path: str | os.PathLike[str]) -> float | None:
    """Return the epsilon of Promesse that a file's metadata names, if it does."""
    mechanism = file_mechanism(path)
    return mechanism.epsilon if isinstance(mechanism, Promesse) else None


def _about(path: Path) -> str | None:
    """The text under our own key."""
    read = {"parquet": parquet_metadata, "geopackage": geopackage_metadata}.get(table_kind(path))
    return None if read is None else read(path).get(METADATA_KEY)


def _named(text: str) -> Mechanism | None:
    try:
        named = json.loads(text)
        kinds = {kind.__name__: kind for kind in Mechanism.__subclasses__()}
        return kinds[named["mechanism"]](**named["parameters"])
    except (KeyError, TypeError, ValueError):
        return None


def _extras(path: Path, wanted: Wanted) -> Extras:
    kind = table_kind(path)
    looks: dict[str, Callable[[Path, Wanted], Extras]] = {
        "parquet": parquet_extras,
        "geopackage": geopackage_extras,
        "geojson": geojson_extras,
        "csv": _text_extras,
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # GDAL's, on a file's name and version
            extras, about = looks[kind](path, wanted), _about(path)
    except _CANNOT as error:
        words = (
            error.args[0]
            if type(error) in (KeyError, TypeError, ValueError) and error.args
            else "it is damaged, or in a form that is not known."
        )
        raise ValueError(f"{str(path)!r} cannot be looked into: {words}") from error
    if about is not None and not _is_ours(about):
        extras.notes.append(f"more under {METADATA_KEY!r} than a mechanism's name and public parameters")
    return extras


def _is_ours(text: str) -> bool:
    mechanism = _named(text)
    return mechanism is not None and text == describe_mechanism(mechanism)


def _text_extras(path: Path, wanted: Wanted) -> Extras:
    with pa.OSFile(os.fsencode(path), "rb") as file:
        layout = read_layout(file)
        names, (across, along, _) = find_text_columns(layout, wanted)
        taken = [name for name in (names.user, across, along, names.time) if name is not None]
        texts = read_as_text(layout, list(map(str, taken)))
    cut = any(pc.any(pc.match_substring(column, "\0")).as_py() for column in texts.columns)
    numbers, times = (
        {text for name in some for text in texts.column(name).unique().to_pylist()}
        for some in ((across, along), (str(names.time),))
    )
    others = [name for name in layout.columns if name not in taken]
    notes = [*packed_notes(path), *long_numbers(numbers), *times_otherwise(times)]
    return Extras(others, packed_things(path) + [NUL] * cut, notes)


def _beside(folder: Path, files: list[Path]) -> Extras:
    """Files in a folder that the reader passes over."""
    read = set(files)
    others = sum(file not in read for file in folder.rglob("*") if not file.is_dir())
    return Extras([], [counted(others, "file") + " that the reader passes over"] if others else [], [])


def _nothing_else(things: list[str]) -> Finding:
    if things:
        return Finding(_TESTS[1], FAILED, f"the file holds {', '.join(things)}")
    return Finding(_TESTS[1], PASSED, "the records only")


def _metadata(notes: list[str]) -> Finding:
    if notes:
        return Finding(_TESTS[2], LOOK, f"the file holds {', '.join(notes)}")
    return Finding(_TESTS[2], PASSED, "nothing but the mechanism and its parameters")
