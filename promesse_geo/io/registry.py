"""The formats that can be read, and `read_file`, which recognizes them."""

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import geopandas as gpd
from pyproj import CRS

from promesse_geo.io import (
    cabspotting,
    fit,
    geolife,
    google,
    gpx,
    igc,
    json_records,
    kml,
    mdc,
    nmea,
    overland,
    owntracks,
    polarsteps,
    table,
    tcx,
)
from promesse_geo.io.archives import first_names, has_packed_name, is_archive, is_packed, unpacked
from promesse_geo.io.contents import (
    COMPRESSIONS,
    NO_HEAD,
    ZIP,
    Head,
    check_exists,
    check_no_pipe,
    read_bytes,
    read_head,
)
from promesse_geo.io.json_items import json_outlines
from promesse_geo.io.mixed import Group, read_mixed
from promesse_geo.io.options import FileOptions
from promesse_geo.io.sources import Format, as_path, files_inside, is_geodatabase, warn_unread
from promesse_geo.io.table import kind_of, why_no_table
from promesse_geo.io.table_columns import agrees
from promesse_geo.io.unreadable import name_kind
from promesse_geo.messages import listed
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice, check_errors, check_flag, check_zone

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
        google.FORMAT,
        owntracks.FORMAT,
        overland.FORMAT,
        polarsteps.FORMAT,
        nmea.FORMAT,
        igc.FORMAT,
        json_records.FORMAT,
        table.FORMAT,
    )
}
"""Formats by name; the first one that accepts a file reads it."""

READING = tuple(dict.fromkeys([*(name for format in FORMATS.values() for name in format.options(NO_HEAD)), "crs"]))
"""Names of the options of all readers."""

LABELS = ", ".join(format.label for format in FORMATS.values())
"""Names of the formats in help texts."""

_GEOJSON, _COLLECTION = b'"Feature', b'"FeatureCollection"'
_LONG_HEAD = 1 << 20  # bytes
_TEXTS = (".txt", ".dat")
_JSON = (".json", ".geojson")
_SNIFFED = 3  # files of a folder, in case the first is damaged
_CURE = f"Specify format= (--format): {', '.join(FORMATS)}."


@overload
def read_file(
    source: str | os.PathLike[str], *, as_traces: Literal[False] = ..., **options: Unpack[FileOptions]
) -> gpd.GeoDataFrame: ...
@overload
def read_file(
    source: str | os.PathLike[str], *, as_traces: Literal[True], **options: Unpack[FileOptions]
) -> Traces: ...
@overload
def read_file(
    source: str | os.PathLike[str], *, as_traces: bool, **options: Unpack[FileOptions]
) -> gpd.GeoDataFrame | Traces: ...


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
    """Read a file, a folder or an archive in any format.

    Parameters
    ----------
    source : path
        The file, folder or archive (zip, tar), also compressed with gzip, bzip2, xz or zstd. The files of a folder or
        an archive may be of several formats.
    format : str, optional
        A name in `FORMATS`, such as "gpx", "google" or "table". Detected from the content by default.
    user, time, lon, lat, crs, layer, segment, columns, separator, decimal, encoding, time_format, tz
        As in `read_table`, and `user` as in `read_gpx`; the other formats fix them, and one that does not apply to a
        file is an error. In all formats, times in UTC or with an offset are returned in the zone `tz`.
    users : iterable of text or integers, optional
        The users to read; all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.
    errors : {"raise", "skip"}
        Whether files and records that cannot be read raise an error or are skipped with one counted warning.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        User, time and geometry; `attrs["promesse"]` names the columns.

    Raises
    ------
    FileNotFoundError
        If the file or folder does not exist.
    ValueError
        If no format or several formats fit the content, if the file is not in the format or is read without a
        parameter that is passed, or a user does not exist.

    Examples
    --------
    >>> import promesse_geo as pg, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "city.parquet"
    >>> pg.write(pg.make_city(users=2, days=1), file)
    >>> list(pg.read_file(file).columns)
    ['user', 'time', 'geometry']
    >>> len(pg.read_file(file, as_traces=True))
    2
    """
    path = as_path(source, owner="read_file")
    if str(path) == "-":
        raise FileNotFoundError("Standard input is not supported. Save it to a file and pass that.")
    check_exists(path)
    check_no_pipe(path)
    if format is not None:
        check_choice(format, name="format", owner="read_file", options=list(FORMATS))
    skips = check_errors(errors, owner="read_file") == "drop"
    check_flag(as_traces, name="as_traces", owner="read_file")
    zone = None if tz is None else check_zone(tz, name="tz", owner="read_file")
    given = {"user": user, "time": time, "lon": lon, "lat": lat, "crs": crs, "layer": layer, "segment": segment}
    given |= {"columns": columns, "separator": separator, "decimal": decimal, "encoding": encoding}
    given |= {"time_format": time_format, "tz": tz}
    options = {name: value for name, value in given.items() if value is not ...}
    if format is None and columns is not None:  # only text needs names of columns
        format = "table"
    with unpacked(path, skips=skips, passes=_unpacks_itself) as place:
        groups = find_groups(place) if format is None else [(FORMATS[format], [place])]
        if groups[0][1] != [place]:
            names = {file.name.lower() for _, files in groups for file in files}
            warn_unread([place], lambda name: name in names or any(form.claims(name) for form, _ in groups))
        _check_used(path, [form for form, _ in groups], options)
        traces = _read(groups, users=users, errors=errors, options=options)
    if zone is not None and traces.time_format.zone is not None:
        traces = replace(traces, time_format=replace(traces.time_format, zone=zone))
    return traces if as_traces else traces.to_frame()


def _read(groups: Sequence[Group], *, users: Iterable[Any] | None, errors: str, options: Mapping[str, Any]) -> Traces:
    """Read files in one format or several."""
    if len(groups) > 1:
        return read_mixed(groups, users=users, errors=errors, options=options)
    (form, files), crs = groups[0], options["crs"]
    allowed = form.options(NO_HEAD)
    if crs is not None and "crs" not in allowed and not agrees(crs, CRS.from_epsg(4326)):
        raise ValueError(f"Format '{form.name}' is in EPSG:4326, but 'crs' (--crs) specifies another CRS. Omit it.")
    chosen = {name: value for name, value in options.items() if name in allowed}
    source = files[0] if len(files) == 1 else list(files)
    return form.read(source, users=users, as_traces=True, errors=errors, **chosen)


def _check_used(path: Path, forms: Sequence[Format], options: Mapping[str, Any]) -> None:
    """Raise ValueError for options that apply to none of the formats of a file or folder, but for the CRS and zone."""
    passed = [name for name, value in options.items() if value is not None and name not in ("crs", "tz")]
    used = set[str]().union(*(used_options(path, form.name) for form in forms)) if passed else set[str]()
    if unused := [name for name in passed if name not in used]:
        formats = " and ".join(f"'{form.name}'" for form in forms)
        raise ValueError(
            f"{str(path)!r} (format {formats}) is read without {listed(unused)}, because it specifies this itself or "
            f"needs none. Omit {'it' if len(unused) == 1 else 'them'}."
        )


def used_options(path: Path, format: str) -> set[str]:
    """Return the names in `READING` that apply to a file or folder of a format."""
    head = read_head(path) if path.is_file() else NO_HEAD
    is_native = not is_packed(head.stored) or _unpacks_itself(path)
    return {"crs", *FORMATS[format].options(head if is_native else NO_HEAD)}


def guess_format(path: Path) -> str:
    """Return the name of the format of a file, a folder or an archive, from its content.

    Returns
    -------
    str
        Of several formats that are read together, the one with the most options.

    Raises
    ------
    ValueError
        If no format fits, or several that are not read together.
    """
    if path.is_file() and not is_packed((head := read_head(path)).stored):
        return _format_of_head(path, head).name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # reading warns again
        with unpacked(path, skips=True, passes=_unpacks_itself) as place:
            groups = find_groups(place)
    return max((form for form, _ in groups), key=lambda form: len(form.options(NO_HEAD))).name


def find_groups(path: Path) -> list[Group]:
    """Return the formats of a file or folder and their files; a folder of one format stands for its files.

    Raises
    ------
    ValueError
        If no format fits, or several that are not read together.
    """
    if path.is_dir() and not is_geodatabase(path):
        return _groups_of_folder(path)
    head = NO_HEAD if path.is_dir() else read_head(path)
    if head.stored.startswith(ZIP) and (zipped := _format_of_zip(path)):
        return [(zipped, [path])]
    return [(_format_of_head(path, head), [path])]


def find_readable(folder: Path, *, but: Sequence[str]) -> list[Path]:
    """Return the files in a folder that `read_file` recognizes, without those whose names end with one of `but`."""

    def is_readable(file: Path) -> bool:
        with suppress(OSError):
            head = read_head(file) if file.is_file() else NO_HEAD
            if has_packed_name(file.name) and is_packed(head.stored):
                return True
            forms = [form for form in FORMATS.values() if form.claims(file.name)]
            is_other = file.suffix.lower() in _JSON and _GEOJSON not in head.content  # such as metadata of a data set
            forms = [form for form in forms if form != table.FORMAT] if is_other else forms
            return bool(forms) and _recognize(file, head, forms) is not None
        return False

    return sorted(
        file
        for file in files_inside(folder, lambda file: not file.name.lower().endswith(tuple(but)))
        if is_readable(file)
    )


def _format_of_head(path: Path, head: Head) -> Format:
    """Return the format of a file with these first bytes."""
    if (form := _recognize(path, head, [form for form in FORMATS.values() if form != table.FORMAT])) is not None:
        return form
    if table.FORMAT.sniff(head, path.name):
        return table.FORMAT
    cure = "" if name_kind(head.stored) or not head.stored else f" {_CURE}"
    raise ValueError(f"{str(path)!r} {why_no_table(head)}.{cure}")


def _groups_of_folder(folder: Path) -> list[Group]:
    """Return the formats of the files in a folder; each format leaves the files that it does not claim."""
    files = sorted(files_inside(folder, lambda file: any(form.claims(file.name) for form in FORMATS.values())))
    by_content = _recognized(files)
    groups: list[Group] = []
    for form in FORMATS.values():
        if form == table.FORMAT:
            groups = [(other, [*claimed, *_unrecognized(other, files)]) for other, claimed in groups]
            files = sorted(set(files).difference(*(claimed for _, claimed in groups)))
        claimed = [file for file in files if by_content.get(file) == form.name] if _has_many(form) else None
        claimed = _claimed(form, files) if claimed is None else claimed
        if claimed:
            groups.append((form, claimed))
            files = sorted(set(files) - set(claimed))
    if not groups:
        return _groups_of_texts(folder)
    if len(groups) == 1:
        return [(groups[0][0], [folder])]
    names = ", ".join(form.name for form, _ in groups)
    apart = [form.name for form, _ in groups if not form.joins]
    if apart:
        raise ValueError(
            f"The folder {str(folder)!r} has files of several formats ({names}), and {listed(apart)} cannot be read "
            f"together with others. {_CURE}"
        )
    return groups


def _groups_of_texts(folder: Path) -> list[Group]:
    """Return the formats of text files in a folder, by their content, as no format claims their extensions."""
    texts = sorted(files_inside(folder, lambda file: file.suffix.lower() in _TEXTS))
    groups: dict[str, list[Path]] = {}
    for file in texts:
        form = _recognize(
            file, read_head(file), [form for form in FORMATS.values() if form.joins and form != table.FORMAT]
        )
        if form is None and not table.names_positions(file):
            groups = {}
            break
        groups.setdefault((form or table.FORMAT).name, []).append(file)
    if groups:
        return [(FORMATS[name], files) for name, files in groups.items()]
    columns = " For text without a header, name the columns, as in columns='user,time,lon,lat' (--columns)."
    raise ValueError(f"The folder {str(folder)!r} has no file in a known format.{columns if texts else ''} {_CURE}")


def _has_many(form: Format) -> bool:
    """Whether a format is one of several that share extensions, so that each file has to be recognized."""
    return form.joins and not form.by_name


def _recognized(files: Iterable[Path]) -> dict[Path, str]:
    """Return the names of formats that share extensions, by the files that they recognize."""
    found: dict[Path, str] = {}
    for file in files:
        forms = [form for form in FORMATS.values() if _has_many(form) and form.claims(file.name)]
        with suppress(OSError):  # which reading it reports
            if forms and file.is_file() and (form := _recognize(file, read_head(file), forms)) is not None:
                found[file] = form.name
    return found


def _recognize(path: Path, head: Head, forms: Sequence[Format]) -> Format | None:
    """Return the first format that accepts a file; of JSON, more is read if its first bytes do not tell."""
    form = next((form for form in forms if form.sniff(head, path.name)), None)
    is_json = head.content.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] in (b"{", b"[")
    if form is not None or not is_json or _COLLECTION in head.content:
        return form
    with suppress(ValueError, OSError):  # which reading it reports
        for outline in chain.from_iterable(map(json_outlines, _longer_heads(path))):
            if _is_geojson(outline):
                return None
            if form := next((form for form in forms if form.sniff(Head(outline, outline), path.name)), None):
                return form
    return None


def _longer_heads(path: Path) -> Iterator[bytes]:
    """Yield more of a file, and all of it."""
    yield read_head(path, size=_LONG_HEAD).content
    yield read_bytes(path)


def _is_geojson(outline: bytes) -> bool:
    """Whether the first line of a JSON text is an object of GeoJSON."""
    first = json.loads(outline.partition(b"\n")[0])
    return isinstance(first, dict) and ("features" in first or str(first.get("type")).startswith("Feature"))


def _unrecognized(form: Format, files: Sequence[Path]) -> list[Path]:
    """Return the files that a format of the folder claims by name though none recognizes them, but for GeoJSON.

    They are damaged, or parts of an export without positions: its reader knows what to say.
    """
    if not _has_many(form):
        return []
    return [file for file in form.claim(files) if not file.is_file() or _GEOJSON not in read_head(file).content]


def _claimed(form: Format, files: Sequence[Path]) -> list[Path]:
    """Return the files that a format claims by name; none if it needs to recognize one of the first and does not."""
    claimed = form.claim(files)
    first = [] if form.by_name else [file for file in claimed[:_SNIFFED] if file.is_file()]
    return claimed if form.by_name or any(form.sniff(read_head(file), file.name) for file in first) else []


def _format_of_zip(path: Path) -> Format | None:
    """Return the first format that reads zip archives and claims a file in this one."""
    names = [os.path.basename(name) for name in first_names(path)]
    for form in FORMATS.values():
        is_for_it = (not form.joins or not has_packed_name(path.name)) and any(form.claims(name) for name in names)
        if form.zipped and (is_for_it or form.claims(path.name)):
            return form
    return None


def _unpacks_itself(path: Path) -> bool:
    """Whether the reader of a format takes an archive or compressed file as it is."""
    head = read_head(path)
    accepting = [form for form in FORMATS.values() if form.sniff(head, path.name)]
    if head.stored.startswith(ZIP):
        return _format_of_zip(path) is not None
    if any(form.claims(path.name) for form in accepting):
        return True
    if is_archive(path):
        datasets = [form for form in accepting if not form.joins]
        names = [os.path.basename(name) for name in first_names(path)]
        return any(form.claims(name) for form in datasets for name in names)
    if is_packed(head.content):  # compressed twice
        return False
    plain = Head(head.content, head.content)
    first = next((form for form in FORMATS.values() if form.sniff(plain, path.name)), None)
    return bool(first in accepting and head.stored.startswith(tuple(COMPRESSIONS)) and kind_of(plain) == "csv")
