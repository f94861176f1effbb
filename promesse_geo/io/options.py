"""The optional parameters that the public readers share, as types for the overloads of readers."""

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from promesse_geo.traces.columns import Name


class UserOptions(TypedDict, total=False):
    """Parameters of readers of data sets."""

    users: Iterable[str] | None
    errors: str


class TrackOptions(TypedDict, total=False):
    """Parameters of `read_gpx`."""

    user: Name
    users: Iterable[Any] | None
    errors: str


class TableOptions(TrackOptions, total=False):
    """Parameters of `read_table`."""

    time: Name
    lon: str | None
    lat: str | None
    crs: Any
    layer: str | None
    segment: Name
    columns: Sequence[str] | str | None
    separator: str | None
    decimal: str | None
    encoding: str | None
    time_format: str | None
    tz: Any


class FileOptions(TableOptions, total=False):
    """Parameters of `read_file`."""

    format: str | None
