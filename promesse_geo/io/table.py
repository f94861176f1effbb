"""Read tables of records: CSV, Parquet, GeoPackage, GeoJSON and other formats of GDAL."""

import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.types import union_categoricals

from promesse_geo.io import batch, contents, sources
from promesse_geo.io.contents import Head
from promesse_geo.io.gdal import GDAL_ERRORS, SQLITE_JOURNALS
from promesse_geo.io.layer import read_geojson
from promesse_geo.io.options import TableOptions
from promesse_geo.io.parquet_table import read_arrow_table, read_parquet_table
from promesse_geo.io.sources import Format, Source, by_endings
from promesse_geo.io.table_columns import (
    BY_NAME,
    Columns,
    ReadOptions,
    as_integers,
    check_names_column,
    settled_crs,
    split_no_time,
)
from promesse_geo.io.table_segments import Segments, join_segments
from promesse_geo.io.table_times import MISSING
from promesse_geo.io.text_layout import check_text_options, read_layout
from promesse_geo.io.text_table import read_text_table
from promesse_geo.io.unreadable import name_kind
from promesse_geo.io.vector import ENDINGS as VECTOR_ENDINGS
from promesse_geo.io.vector import READERS as VECTOR_READERS
from promesse_geo.io.vector import SQLITE_ENDINGS, read_sqlite, vector_kind
from promesse_geo.mechanisms.base import cuts_places
from promesse_geo.messages import counted, warn
from promesse_geo.preprocess.problems import FAST
from promesse_geo.traces import records
from promesse_geo.traces.columns import Name, check_names
from promesse_geo.traces.frames import type_name
from promesse_geo.traces.known_columns import KNOWN, candidates_for
from promesse_geo.traces.missing_columns import renamed_error
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_errors, check_flag, check_users, check_users_exist, check_zone

ENDINGS = (
    *(".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".geoparquet", ".gpkg", ".geojson", ".json"),
    *SQLITE_ENDINGS,
    *VECTOR_ENDINGS,
)
_READERS: dict[str, tuple[Callable[[Path, pa.NativeFile, ReadOptions], Columns], str]] = {
    "parquet": (read_parquet_table, "GeoParquet"),
    "geopackage": (read_sqlite, "a GeoPackage or SpatiaLite"),
    "geojson": (read_geojson, "GeoJSON"),
    "csv": (read_text_table, "CSV in UTF-8 or UTF-16"),
    **VECTOR_READERS,
}


_KINDS = {b"PAR1": "parquet", b"SQLite format 3": "geopackage"}
_READABLE = (*contents.UTF16, *contents.COMPRESSIONS)
_HEAD = 4096  # bytes
_SAME_PLACE, _MANY = 100.0, 0.1  # metres, and the share of steps that jumps of the receiver do not reach
_TEXT_OPTIONS = ("columns", "separator", "decimal", "encoding", "time_format")
_GEOJSON = ("FeatureCollection", "Feature", "Point", "MultiPoint", "GeometryCollection")
_WORDS_FOR_MISSING = {cased for word in MISSING for cased in (word, word.lower(), word.upper(), word.title())}
_REASONS = {"no time": "no time, or one that cannot be read"}


def why_no_table(head: Head, *, encoding: str | None = None) -> str:
    """Return why a file with these first bytes is no table; empty if it may be one, such as text in `encoding`."""
    stored = head.stored
    if not stored:
        return "is empty"
    if vector_kind(stored):
        return ""
    if reason := name_kind(stored) or contents.why_no_text(stored, readable=_READABLE):
        return reason
    is_known = stored.startswith((*_READABLE, *_KINDS)) or bool(contents.bare_utf16(stored))
    if encoding is None and b"\0" in stored and not is_known:
        return "is neither in a known format nor text in UTF-8 or UTF-16"
    return ""


def kind_of(head: Head, *, encoding: str | None = None) -> str:
    """Return "parquet", "geopackage", "geojson" or "csv"; empty if a file with these first bytes is no table."""
    if why_no_table(head, encoding=encoding):
        return ""
    if kind := vector_kind(head.stored):
        return kind
    is_json = head.stored.lstrip(b"\xef\xbb\xbf \r\n\t").startswith((b"{", b"\x1e")) and b"\0" not in head.stored[:2]
    known = next((kind for magic, kind in _KINDS.items() if head.stored.startswith(magic)), None)
    return known or ("geojson" if is_json else "csv")


def table_kind(path: Path) -> str:
    """Return the kind of a table file, as `kind_of` does; raise ValueError if it is another file."""
    contents.check_is_file(path)
    head = contents.read_head(path)
    if reason := why_no_table(head):
        raise ValueError(f"{str(path)!r} {reason}.")
    return kind_of(head)


def names_positions(path: Path) -> bool:
    """Return whether a text has a header that names a time, a longitude and a latitude."""
    with suppress(ValueError, OSError, pa.ArrowException), pa.OSFile(os.fsencode(path), "rb") as file:
        columns = read_layout(file).columns
        return all(candidates_for(columns, KNOWN[role]) for role in ("time", "lon", "lat"))
    return False


@overload
def read_table(
    source: Source | Any, *, as_traces: Literal[False] = ..., **options: Unpack[TableOptions]
) -> gpd.GeoDataFrame: ...
@overload
def read_table(source: Source | Any, *, as_traces: Literal[True], **options: Unpack[TableOptions]) -> Traces: ...
@overload
def read_table(
    source: Source | Any, *, as_traces: bool, **options: Unpack[TableOptions]
) -> gpd.GeoDataFrame | Traces: ...


def read_table(
    source: Source | Any,
    *,
    user: Name = ...,
    time: Name = ...,
    lon: str | None = None,
    lat: str | None = None,
    crs: Any = None,
    layer: str | None = None,
    segment: Name = ...,
    columns: Sequence[str] | str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    time_format: str | None = None,
    tz: Any = None,
    users: Iterable[Any] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    r"""Read tables of records: CSV, Parquet, GeoPackage, GeoJSON and other formats, detected from their content.

    GDAL reads points of Shapefile, FlatGeobuf, GML, SpatiaLite, MapInfo, GMT, JML, TopoJSON and Esri JSON.

    CSV may use commas, semicolons, tabs or bars between values, decimal points or commas, UTF-8 or UTF-16, and
    compression with gzip, bzip2 or zstd. Instead of two columns of coordinates it may have one of points, in WKT or in
    WKB with hexadecimal digits (as PostGIS writes them, with or without SRID), or the POLYLINE of the taxis of Porto.
    Coordinates may have a degree sign or the letter of a hemisphere (`4.8 W`), or columns N/S and E/W beside them.
    Parquet may be GeoParquet (WKB or GeoArrow points) or have columns of coordinates. Only user, time and location are
    read; a warning reports dropped elevations (Z), and a CSV without a newline at its end, which may be cut. Lines with
    too few or too many values, lines that look like records but are part of a quoted value, and a quote that is never
    closed are invalid records. In GeoJSON, `true` among integer users is 1.

    Records that a column `visible` (Movebank) or `valid` (Traccar) marks as false are left out, with a warning that
    counts them. Rename the column to keep them.

    Warnings count the files of a folder that have other endings, and the users whose files overlap in time, as those of
    several people do; in tables with users, only if the records of these files lie apart at the same time. In text, one
    counts the users who are called as programs write missing values, such as NA, NaN, null and None, who may be nobody.

    Times in text are ISO 8601. If all have an offset from UTC, offsets may differ and the times are in UTC; times
    with and without an offset in one column raise. Numeric times are seconds, milliseconds, microseconds or
    nanoseconds since 1970, whichever falls between 1990 and 2100, and a warning names the unit.

    Parameters
    ----------
    source : path, glob pattern, several of these, or Arrow table
        A file, a folder with tables in it (at any depth), a pattern such as `"2024-*.csv"`, or several. All files
        form one data set, in the order of their paths. Or an object with `__arrow_c_stream__`, such as a table of
        pyarrow, a frame of Polars or a relation of DuckDB, which is read as Parquet is.
    user, time : column name, None or ...
        As in `Traces.from_frame`; known names may be in capitals. `user="file"` makes each file's name without
        extension the user of all its records, `user="folder"` the name of its folder, and `user="folder-2"` that of
        the folder above, as for `<participant>/gps/*.csv`.
    lon, lat : str, optional
        Columns of the coordinates in CSV and Parquet; detected by known names by default.
    crs : anything pyproj takes, optional
        CRS of the coordinates if the file does not specify it; EPSG:4326 by default for longitude and latitude.
    layer : str, optional
        The layer to read from a GeoPackage or another file with several layers.
    segment : column name, None or ...
        A column whose value changes where nothing was recorded between two records; see `Traces.from_frame`. Equal
        values of a user are one segment in all files. By default only the one that the metadata of a file of `write`
        names.
    columns : sequence of text, optional
        Names of all columns of text without a header, in their order, or one text with commas between them.
    separator, decimal, encoding : str, optional
        What stands between the values of a CSV, what before decimals ("." or ","), and its encoding, such as "cp1252";
        detected by default.
    time_format : str, optional
        How times in text are written, such as "%d.%m.%Y %H:%M:%S"; ISO 8601 by default.
    tz : str or tzinfo, optional
        Time zone of times without one, which are its local times; times with a zone are converted to it. A time
        that the clock shows twice is the first or the second one by the order of the user's records, if it goes back
        once among them; else it is invalid, as a time that the clock skips.
    users : iterable of text or integers, optional
        The users to read; all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.
    errors : {"raise", "skip"}
        Whether files that cannot be read, and records without a valid location, time or user, raise an error that
        counts them and names the first, or are dropped with one warning that does so.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        User, time and geometry, under the names of the file's columns.

    Raises
    ------
    FileNotFoundError
        If a file or folder does not exist.
    ValueError, TypeError, KeyError
        If a file is no such table or has invalid records, or a user is not in the data; the message names the file
        and shows none of its values.

    Examples
    --------
    >>> import promesse_geo as pg, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "trips.csv"
    >>> _ = file.write_text("driver;time;lat;lon\nann;2024-03-04T08:00:00Z;45,7;4,8\n")
    >>> list(pg.read_table(file, user="driver").columns)
    ['driver', 'time', 'geometry']
    """
    errors = check_errors(errors, owner="read_table")
    requested = check_users(users, owner="read_table")
    check_flag(as_traces, name="as_traces", owner="read_table")
    check_names({"user": user, "time": time, "lon": lon, "lat": lat, "segment": segment})
    text = check_text_options(separator, decimal, encoding, time_format, columns)
    zone = None if tz is None else check_zone(tz, name="tz", owner="read_table")
    options = ReadOptions(user, time, lon=lon, lat=lat, crs=crs, layer=layer, lenient=errors == "drop", segment=segment)
    options = options._replace(tz=zone, text=text)
    endings = ENDINGS if columns is None else (*ENDINGS, ".txt", ".txt.gz")
    is_table = hasattr(source, "__arrow_c_stream__") and not isinstance(source, (pd.DataFrame, pd.Series))
    if is_table:
        check_names_column(user)
    paths = [] if is_table else sources.find_files(source, endings=endings, owner="read_table")
    by_name = sources.name_users(paths, by=str(user)) if isinstance(user, str) and user in BY_NAME else {}
    if requested is not None and by_name:
        check_users_exist(requested, by_name.values(), owner="read_table")
        paths = [path for path in paths if by_name[path] in requested]
    options = options._replace(several_files=len(paths) > 1)

    def contents(options: ReadOptions) -> list[batch.Content]:
        if is_table:
            return [(type_name(source), partial(_read_arrow, source, options))]
        return [(str(path), partial(_read, path, options, user=by_name.get(path))) for path in paths]

    files, skipped = _read_all(contents, options, errors=errors)
    invalid: dict[str, np.ndarray] = {}
    traces = Traces.from_records(_join(files), report=invalid.update)
    _raise_or_warn(files, skipped, invalid, errors=errors)
    if len(files) > 1 and user != "file":
        spans, has_column = list(_spans(files, requested)), any(file.users is not None for file in files)
        if max(Counter(span.place for span in spans).values(), default=0) > 1:  # a file is not a user
            cure = "If one name is several users, name them differently in the files; else the files are parts of one."
        else:
            who = "one name in several files is several users" if has_column else "each file is a user"
            cure = f"If {who}, pass user='file' (--user file)."
            if user == "folder-2":
                cure = f"If each folder is a user, pass user='folder' (--user folder). {cure}"
        sizes = as_offsets(np.array([len(file.x) for file in files]))
        apart = partial(_users_apart, traces, sizes) if has_column else None  # else nothing says that files are of one
        batch.warn_overlaps(spans, noun="files", cure=cure, apart=apart)
    if requested is not None:
        check_users_exist(requested, traces.users, owner="read_table")
        traces = traces.select(np.repeat([str(key) in requested for key in traces.users], traces.counts))
    return traces if as_traces else traces.to_frame()


def _read_all(
    contents: Callable[[ReadOptions], list[batch.Content]], options: ReadOptions, *, errors: str
) -> tuple[list[Columns], list[batch.Skipped]]:
    """Read files; read them again without a column of users that is empty in all rows of all files.

    Then either another column holds the users, or the error names the empty one. Where only some files have no users,
    their records are invalid.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of GDAL, on a file's name and version
        warnings.filterwarnings("ignore", "Measured", UserWarning)  # of pyogrio, which reads M nevertheless
        while True:
            files, skipped = batch.read_parts(
                contents(options), lambda _, file: [file], errors=errors, owner="read_table"
            )
            empty = {file.names.user for file in files if _has_rows_without_users(file)}
            if not empty or any(len(file.x) and not _has_rows_without_users(file) for file in files):
                return files, skipped
            options = options._replace(empty=(*options.empty, *sorted(map(str, empty))))


def _has_rows_without_users(file: Columns) -> bool:
    """Whether a file has records, and a column of users that is empty in all rows."""
    return len(file.x) > 0 and file.users is not None and bool((file.users.codes < 0).all())


def _spans(files: Sequence[Columns], users: set[str] | None) -> Iterator[batch.Span]:
    """Yield when the users of each file begin and end."""
    for file in files:
        valid = file.times.notna().to_numpy()
        times = pd.Series(pd.DatetimeIndex(file.times).as_unit("ns").asi8[valid])
        keys: Sequence[Any] = [file.file_user] if file.users is None else file.users.categories.tolist()
        codes = np.zeros(len(valid), np.int8) if file.users is None else file.users.codes
        for code, first, last in times.groupby(codes[valid]).agg(["min", "max"]).itertuples():
            if code >= 0 and (users is None or str(keys[code]) in users):
                yield batch.Span(None if keys[code] is None else str(keys[code]), first, last, file.name)


def _users_apart(traces: Traces, offsets: np.ndarray) -> set[str]:
    """Return the users whose records of different files lie apart at the same time, given the first row of each file.

    A tenth or more of the steps from a record of one file to the next one of another are then as fast as planes, and at
    most half as many of those within a file.
    """
    files = np.searchsorted(offsets, traces.positions, side="right")
    metres = traces.space.metres(np.linalg.norm(np.diff(traces.points, axis=0), axis=1))
    is_fast = metres > _SAME_PLACE + FAST * np.diff(traces.times) / 1e9
    inside = np.diff(traces.trace_numbers) == 0
    shares = []
    for rows in (inside & (np.diff(files) != 0), inside & (np.diff(files) == 0)):
        numbers, size = traces.trace_numbers[:-1][rows], len(traces)
        shares.append(np.bincount(numbers, is_fast[rows], size) / np.maximum(np.bincount(numbers, minlength=size), 1))
    return set(map(str, traces.users[(shares[0] >= _MANY) & (shares[1] <= shares[0] / 2)]))


def _read(path: Path, options: ReadOptions, *, user: str | None) -> Columns:
    """Read a file; errors name it."""
    contents.check_is_file(path)
    has_journal = any(os.path.lexists(f"{path}{ending}") for ending in SQLITE_JOURNALS)
    with nullcontext() if has_journal else contents.unchanged(path):  # else reading it changes it
        return _read_columns(path, options, user=user)


def _read_arrow(source: Any, options: ReadOptions) -> Columns:
    """Read an Arrow table; errors name its type."""
    name = type_name(source)
    try:
        columns = read_arrow_table(source, options)
        return columns._replace(crs=settled_crs(columns.crs, columns.x, columns.y), name=name)
    except (pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise renamed_error(error, f"{name!r}: {error.args[0]}") from error


def _read_columns(path: Path, options: ReadOptions, *, user: str | None) -> Columns:
    name, kind = str(path), ""
    try:
        with pa.OSFile(os.fsencode(path), "rb") as file:
            stored = file.read_at(_HEAD, 0)
            head, encoding = Head(stored, stored), options.text.encoding
            if reason := why_no_table(head, encoding=encoding):
                raise ValueError(f"it {reason}.")
            read, kind = _READERS[kind_of(head, encoding=encoding)]
            columns = read(path, file, options)
            if columns.times.dt.tz != options.tz:
                columns = columns.in_zone(options.tz)
            return columns._replace(crs=settled_crs(columns.crs, columns.x, columns.y), name=name, file_user=user)
    except (pa.ArrowException, OSError, *GDAL_ERRORS) as error:
        if isinstance(error, OSError) and error.errno:  # of the system, not of a format
            raise ValueError(f"{name!r} cannot be read: {os.strerror(error.errno)}.") from error
        if kind in ("GeoJSON", "TopoJSON", "Esri JSON") and (words := _why_no_geojson(path)):
            raise ValueError(f"{name!r} {words}") from error
        raise ValueError(f"{name!r} is cut, damaged or not {kind}.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise renamed_error(error, f"{name!r}: {error.args[0]}") from error


def _why_no_geojson(path: Path) -> str:
    """Return what a JSON text, or one of several in a file, is; empty if it is cut or damaged."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read().lstrip("\x1e \r\n\t")
        content, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, OSError, RecursionError):
        return ""
    about = content if isinstance(content, dict) else {}
    features = about.get("features")
    if about.get("type") in _GEOJSON and text[end:].strip("\x1e \r\n\t"):
        return (
            "holds several GeoJSON texts, so it is not a single JSON text. Write one collection with the features of "
            "all, or one feature per line."
        )
    if about.get("type") in _GEOJSON:
        return (
            "is GeoJSON that GDAL does not recognize, because long members stand before its type. Write it again with "
            "the member 'type' first."
        )
    if about.get("type") == "Topology":
        return "is TopoJSON that GDAL cannot read as points. Convert it, as in: ogr2ogr points.gpkg TopoJSON:FILE"
    if isinstance(features, list) and all(isinstance(each, dict) and "attributes" in each for each in features):
        return "is Esri JSON. Convert it, as in: ogr2ogr points.gpkg ESRIJSON:FILE"
    lines = ", lines=True" if text[end:].strip() else ""
    return (
        "is JSON, but not GeoJSON or another kind with positions that is known. Write its records as CSV, as in: "
        f"pandas.read_json(…{lines}).to_csv(…)"
    )


def _raise_or_warn(
    files: Sequence[Columns], skipped: Sequence[batch.Skipped], invalid: Mapping[str, np.ndarray], *, errors: str
) -> None:
    """Raise or warn of invalid records; warn of other columns, numeric times and files without a newline at the end."""
    invalid = split_no_time(files, invalid)
    unread = [records for file in files for records in file.dropped]
    dropped = [*_locate(files, invalid, with_lines=errors == "raise"), *unread]
    if dropped and errors == "raise":
        count = sum(records.count for records in unread)
        bad = count + int(np.sum(np.logical_or.reduce(list(invalid.values()))))
        total = count + sum(len(file.x) for file in files)
        details = "; ".join(f"{some.reason}: {some.count:,}, first in {some.first}" for some in batch.sum_up(dropped))
        prefix = f"{files[0].name!r}: " if len(files) == 1 else ""
        raise ValueError(
            f"{prefix}{counted(bad, 'record')} of {total:,} cannot be used (rows are counted from 0): {details}. "
            "Fix them, or drop them with errors='skip' (--skip)."
        )
    dropped += [
        batch.DroppedRecords(file.marked.reason, file.marked.number, f"row {file.marked.first:,} of {file.name!r}")
        for file in files
        if file.marked is not None
    ]
    dropped = [replace(some, first=re.sub(r"^row .*", r"\g<0>, counted from 0", some.first)) for some in dropped]
    batch.warn_dropped(dropped, skipped, owner="read_table")
    records.warn_dropped_columns(records.DroppedColumns((), any(file.has_z for file in files)))
    batch.warn_assumed([note for file in files for note in file.notes], owner="read_table")
    batch.warn_unended([file.name for file in files if not file.is_ended])
    _warn_unnamed(files, invalid)


def _warn_unnamed(files: Sequence[Columns], invalid: Mapping[str, np.ndarray]) -> None:
    """Warn of users who are called as missing values are written in text; they may be names, so nothing is dropped.

    Records that are `invalid` do not count.
    """
    users, records, start = set[str](), 0, 0
    for file in files:
        rows = slice(start, start + len(file.x))
        start = rows.stop
        if not file.is_text or file.users is None:
            continue
        codes = np.flatnonzero(file.users.categories.isin(_WORDS_FOR_MISSING))
        if len(codes):
            called = np.isin(file.users.codes, codes)
            for mask in invalid.values():
                called &= ~mask[rows]
            users.update(file.users.categories[np.unique(file.users.codes[called])].astype(str))
            records += int(called.sum())
    if records:
        who = (
            f"{counted(len(users), 'user')} ({counted(records, 'record')}) {'is' if len(users) == 1 else 'are'} called"
        )
        warn(
            f"{who} as programs write missing values, such as NA, NaN, null or None. If this is no name, leave "
            "these cells empty, or omit the records."
        )


def _locate(
    files: Sequence[Columns], invalid: Mapping[str, np.ndarray], *, with_lines: bool
) -> Iterator[batch.DroppedRecords]:
    """Yield the number of invalid records by reason, with file and row of the first, from masks of all records.

    `with_lines` adds the line of a text file, as far as it can be found, which takes time.
    """
    starts = np.cumsum([0, *(len(file.x) for file in files)])
    for reason, mask in invalid.items():
        if mask.any():
            row = int(mask.argmax())
            number = int(np.searchsorted(starts, row, side="right")) - 1
            kept, place = files[number].marked, row - starts[number]
            place = int(place if kept is None else kept.kept[place])
            first = f"row {place:,} of {files[number].name!r}"
            if with_lines and (line_of := files[number].line_of) is not None:
                with suppress(OSError, ValueError):  # the file is gone or was changed
                    first += f" (line {line_of(place):,})"
            yield batch.DroppedRecords(_REASONS.get(reason, reason), int(mask.sum()), first)


def _join(files: Sequence[Columns]) -> records.Records:
    """Return the records of all files, in the order of the files."""
    first = files[0]
    different = sum(not first.crs.equals(file.crs, ignore_axis_order=True) for file in files)
    if different:
        raise ValueError(f"{counted(different, 'file has', 'files have')} another CRS than the first file.")
    kinds = [file.times.dtype for file in files if file.times.notna().any()] or [first.times.dtype]
    if len({isinstance(kind, pd.DatetimeTZDtype) for kind in kinds}) > 1:
        raise ValueError("Some files have times with a zone, others without. Convert them to one notation.")
    times = [
        file.times if file.times.dtype in kinds else pd.Series(pd.NaT, file.times.index, kinds[0])
        for file in files  # without any time, a file has no zone
    ]
    if len({str(each.dt.tz) for each in times}) > 1:
        times = [each.dt.tz_convert("UTC") for each in times]
    joined = records.Records.from_columns(
        np.concatenate([file.x for file in files]),
        np.concatenate([file.y for file in files]),
        times=pd.concat(times, ignore_index=True),
        users=_join_users(files),
        crs=first.crs,
        names=first.names if first.file_user is None else replace(first.names, user="user"),
        segments=join_segments([(len(file.x), _segments_of(file)) for file in files]),
        protection=first.protection if all(file.protection == first.protection for file in files) else None,
    )
    written = next((file.written for file in files if file.written is not None), None)
    return replace(joined, time_format=replace(joined.time_format, written=written))


def _segments_of(file: Columns) -> Segments | None:
    """Return the segments of one of several files.

    Where zones were applied they end with the file: the trace may end in a zone, and go on in another file.
    """
    if not cuts_places(file.protection):
        return file.segments
    return Segments(np.zeros(len(file.x), np.int64) if file.segments is None else file.segments.codes + 1)


def _join_users(files: Sequence[Columns]) -> pd.Series | None:
    """Return the users of all files as one column; those of text files are integers only if all of them are."""
    if files[0].file_user is not None:
        keys = pd.Index([file.file_user for file in files])
        codes = np.repeat(np.arange(len(files)), [len(file.x) for file in files])
        return pd.Series(pd.Categorical.from_codes(codes, keys) if keys.is_unique else keys.take(codes), name="user")
    columns = [file.users for file in files if file.users is not None]
    if not columns:
        return None
    kinds = {column.categories.dtype for column in columns if len(column.categories)}
    if len(kinds) > 1:
        return pd.concat([pd.Series(column).astype(object) for column in columns], ignore_index=True)
    none = pd.Index([], *(kinds or ["str"]))
    columns = [column if len(column.categories) else column.set_categories(none) for column in columns]
    joined = union_categoricals(columns)
    is_text = all(file.is_text for file in files)
    return pd.Series(as_integers(joined) if is_text else joined, name=files[0].names.user)


def _options(head: Head) -> list[str]:
    """Return the options that apply to a kind of table."""
    options = ["user", "one_trace", "time", "lon", "lat", "crs", "layer", "segment"]
    options += [*_TEXT_OPTIONS, "tz"]
    needless: dict[str, set[str]] = {
        "geojson": {"lon", "lat", "layer"},
        **{kind: {"lon", "lat"} for kind in ("geopackage", *VECTOR_READERS)},
    }
    kind = kind_of(head)
    without = set() if head == contents.NO_HEAD else needless.get(kind, {"layer"})
    if head != contents.NO_HEAD and kind not in ("csv", ""):  # text in another encoding has no kind
        without = without | set(_TEXT_OPTIONS)
    return [name for name in options if name not in without]


FORMAT = Format(
    "table",
    "CSV, GeoParquet, GeoPackage, GeoJSON, Shapefile, FlatGeobuf, GML, SpatiaLite, MapInfo",
    read_table,
    lambda head, name: not why_no_table(head),
    files=by_endings(ENDINGS),
    options=_options,
    library="pyarrow (CSV, Parquet), GDAL (the others)",
)
