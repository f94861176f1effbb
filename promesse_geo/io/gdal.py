"""Calls of GDAL without its messages, its errors, and addresses and names for SQLite."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyogrio
from pyogrio.errors import DataLayerError, DataSourceError, FeatureError, FieldError, GeometryError

pyogrio.set_gdal_config_options({"GML_DOWNLOAD_SCHEMA": "NO"})  # reading a file does not use the network

GDAL_ERRORS = (DataSourceError, DataLayerError, FeatureError, FieldError, GeometryError)

SQLITE_JOURNALS = ("-wal", "-journal")
"""Extensions of files beside a GeoPackage that hold changes not yet in it, or its previous content."""

silent: Callable[[], AbstractContextManager[Any]] = getattr(pyogrio._err, "capture_errors", nullcontext)
"""Returns a context in which GDAL prints nothing: its messages quote the file.

GDAL prints in threads in which pyogrio handles no messages: all but the one that imported it. The setting CPL_LOG is
no remedy. GDAL looks at it once, at the first message, and keeps it for the whole process.
"""


def sqlite_uri(path: Path) -> str:
    """Return the address by which SQLite opens a file for reading only."""
    return f"file:{quote(os.fsencode(path))}?mode=ro"


def quoted(name: str) -> str:
    """Return the name of a table for SQL."""
    return '"' + name.replace('"', '""') + '"'
