"""Write traces to GeoParquet, GeoPackage, FlatGeobuf, GeoJSON, GPX and CSV, and points of interest to all but GPX."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import geopandas as gpd

from promesse_geo.io.atomic import atomic_path, check_target, target_of
from promesse_geo.io.table_columns import METADATA_KEY
from promesse_geo.io.writers.blocks import PointTable, poi_table, trace_table
from promesse_geo.io.writers.csv import write_csv
from promesse_geo.io.writers.gdal import write_flatgeobuf, write_geopackage
from promesse_geo.io.writers.geojson import write_geojson
from promesse_geo.io.writers.gpx import write_gpx
from promesse_geo.io.writers.parquet import write_parquet
from promesse_geo.mechanisms import Mechanism
from promesse_geo.mechanisms.base import keeps_positions
from promesse_geo.messages import invalid, listed
from promesse_geo.preprocess.pseudonyms import has_names
from promesse_geo.traces.columns import Name, Names
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_flag, check_path

WRITERS: dict[str, Callable[[PointTable, Path], None]] = {
    ".parquet": write_parquet,
    ".geoparquet": write_parquet,
    ".gpkg": write_geopackage,
    ".fgb": write_flatgeobuf,
    ".csv": write_csv,
    ".gpx": write_gpx,
    ".geojson": write_geojson,
    ".json": write_geojson,
}
"""What writes a file, by its extension."""

_WITH_METADATA = (".parquet", ".geoparquet", ".gpkg", ".fgb")
_STANDARD = Names()


def write(
    data: gpd.GeoDataFrame | Traces,
    path: str | os.PathLike[str],
    *,
    mechanism: Mechanism | None = None,
    force: bool = False,
    user: Name = ...,
    time: Name = ...,
) -> None:
    """Write traces to a file in the format of its extension: user, time and location, and segments if there are breaks.

    The file is written in a temporary folder beside it and renamed when it is complete. A new file is for its owner
    only (mode 0600), unless a mechanism is named. A replaced file keeps its permissions; of a link, the file that it
    points to is replaced.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    path : path
        `.parquet` or `.geoparquet` (GeoParquet), `.gpkg` (GeoPackage), `.fgb` (FlatGeobuf, without a spatial index,
        so that records keep their order), `.csv` (user, ISO time, and lon and lat in EPSG:4326 or x and y in any other
        CRS), `.geojson` or `.json` (GeoJSON, always EPSG:4326), `.gpx` (GPX 1.1, always EPSG:4326: a track for each
        user, named by the user key as text). GeoPackage, FlatGeobuf and GeoJSON cut times to milliseconds. Only
        GeoParquet keeps time zones; a zone that arrow does not know becomes UTC there too. Times without a zone are
        written without one; other programs take those of GPX for UTC, of which a warning reminds. GeoParquet,
        GeoPackage and FlatGeobuf keep the names of the columns, and name those of user, time and segments in their
        metadata, so that they are found again; in the other formats they are user, time and segment.
    mechanism : Mechanism, optional
        Its name and public parameters go into GeoParquet, GeoPackage and FlatGeobuf files. By default the mechanism
        that the data says it was protected with, if any.
    force : bool
        Whether to overwrite an existing file.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Notes
    -----
    A new file is for its owner only (mode 0600) if it holds true positions, of no mechanism or of `PrivacyZones` alone,
    or names of users that are not those of `pseudonymize`. A file that is replaced keeps its permissions.

    Raises
    ------
    FileExistsError
        If the file exists, or was created meanwhile, and `force` is False.
    FileNotFoundError
        If the folder does not exist.
    OSError
        If the file cannot be written, for example because no space is left. An existing file is then unchanged.
    ValueError
        If the extension is unknown, the format cannot keep a user key or distinguish the names of two columns, or the
        CRS cannot be transformed to that of GeoJSON and GPX.

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> pg.write(pg.make_city(users=2, days=1), folder / "city.parquet")
    >>> [file.name for file in folder.iterdir()]
    ['city.parquet']
    """
    if not isinstance(mechanism, (Mechanism, type(None))):
        rule = "the mechanism that made the data, such as pg.Promesse(200), or None"
        raise TypeError(invalid("mechanism", "write", rule, mechanism))
    check_output(path, force=check_flag(force, name="force", owner="write"))
    traces = as_traces(data, user=user, time=time, warns=True)
    protection = traces.protection if mechanism is None else mechanism.description()
    if Path(path).suffix.lower() not in _WITH_METADATA:
        traces = replace(traces, names=Names(user=None if traces.names.user is None else "user"))
    metadata = {METADATA_KEY: describe(protection, traces.output_names())}
    private = keeps_positions(protection) or has_names(traces)
    _write(trace_table(traces, metadata), Path(path), force=force, private=private)


def write_pois(pois: gpd.GeoDataFrame, path: str | os.PathLike[str], *, force: bool) -> None:
    """Write points of interest, as `pois` returns them, to a file in the format of its extension; see `write`.

    Raises
    ------
    FileExistsError, FileNotFoundError, OSError
        If the file exists and `force` is False, or it cannot be written.
    ValueError
        As for `write`.
    """
    check_output(path, force=force, holds_traces=False)
    _write(poi_table(pois), Path(path), force=force, private=True)


def describe(protection: dict[str, Any] | None, names: Names = _STANDARD) -> str:
    """Return what is stored under `METADATA_KEY`: a mechanism's description and the columns by role, as JSON.

    Parameters
    ----------
    protection : dict or None
        As for `Traces`; the mechanism is null if it is None.
    names : Names
        The columns. Those of user and time are stored if they have another name than their role, and null for no user.
    """
    roles = {
        role: None if name is None else str(name)
        for role, name in (("user", names.user), ("time", "time" if names.time is None else names.time))
        if name != role
    }
    segment = {} if names.segment is None else {"segment": str(names.segment)}
    return json.dumps({**(protection or {"mechanism": None}), **roles, **segment})


def check_output(path: str | os.PathLike[str], *, force: bool, holds_traces: bool = True) -> None:
    """Raise if no file of traces, or of points of interest, can be written to a path: a check before long work.

    Raises
    ------
    TypeError
        If it is no path.
    ValueError
        If the extension is unknown or of traces only, or GDAL cannot write to the folder.
    FileExistsError, FileNotFoundError, IsADirectoryError
        If the file exists and `force` is False, its folder does not exist, or it is a folder.
    """
    ending = check_path(path, name="path", owner="write").suffix.lower()
    endings = [known for known in WRITERS if holds_traces or known != ".gpx"]
    if ending not in endings:
        raise ValueError(
            f"The output {os.fspath(path)!r} must end with one of {listed(endings)}, which sets the format."
        )
    check_target(path, force=force)
    folder = str(target_of(Path(path)).parent)
    if ending in (".gpkg", ".fgb") and (not folder.isprintable() or "!" in folder):
        raise ValueError(
            f"The folder {folder!r} has a '!', a line break or bytes that are not UTF-8 in its path, which GDAL cannot "
            "reach. Write to another folder, or in another format."
        )


def _write(table: PointTable, path: Path, *, force: bool, private: bool) -> None:
    with atomic_path(path, force=force, private=private) as temporary:
        WRITERS[path.suffix.lower()](table, temporary)
