"""Checks of files: whether they are what `promesse_geo.write` writes, and which mechanism they name."""

import io
import json
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
from pyproj import CRS
from pyproj.exceptions import ProjError

from promesse_geo.audit.findings import FAILED, PASSED, REVIEW, Finding, Findings, find_other_columns
from promesse_geo.audit.recognition import mechanism_of
from promesse_geo.io.gdal import GDAL_ERRORS
from promesse_geo.io.gpx import ENDINGS as GPX_ENDINGS
from promesse_geo.io.parquet_table import decode_points, is_binary, plain_points
from promesse_geo.io.registry import guess_format
from promesse_geo.io.sources import find_files
from promesse_geo.io.table import ENDINGS, table_kind
from promesse_geo.io.table_columns import METADATA_KEY, parse_protection, parse_roles
from promesse_geo.io.text_layout import read_layout
from promesse_geo.io.writers.crs import coordinate_names, has_custom_text
from promesse_geo.io.writers.gpx import is_written
from promesse_geo.io.writers.output import describe
from promesse_geo.mechanisms import Mechanism
from promesse_geo.messages import counted, listed, warn
from promesse_geo.traces.columns import Names
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_path

_GEOJSON_LINES = {"", "{", '"type": "FeatureCollection",', '"name": "traces",', '"features": [', "]", "}"}
_GEOJSON_LINES.add('"crs": { "type": "name", "properties": { "name": "urn:ogc:def:crs:OGC:1.3:CRS84" } },')
_TEST = "written by promesse-geo"
_ENDINGS = {"table": ENDINGS, "gpx": GPX_ENDINGS}
_WITH_METADATA = ("geopackage", "flatgeobuf")
_ROWS = 1 << 20  # geometries read at a time
_REMEDY = "write it again with `promesse-geo pseudonymize`"


class _Content(NamedTuple):
    """What a file holds that a file of ours does not: columns, other data, and differences in form."""

    columns: Sequence[str] = ()
    unread: Sequence[str] = ()
    differences: Sequence[str] = ()


def check_files(path: str | os.PathLike[str], traces: Traces) -> pd.DataFrame:
    """Check that a file, or each file of a folder, is one that `promesse_geo.write` writes.

    Such files hold one layer with the columns of user, time and location, and no metadata but those that locate the
    records and name the mechanism. Of other files only columns, layers and metadata are listed.

    Parameters
    ----------
    path : path
        A file or folder.
    traces : Traces
        The traces read from it.

    Returns
    -------
    pandas.DataFrame
        Two rows of test, verdict and reason, as `check_published` returns them. Columns, layers and files that were
        not read fail; any other difference is to be reviewed.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or no known format.
    """
    path = check_path(path, name="path", owner="check_files")
    format = guess_format(path)
    files = find_files(path, endings=_ENDINGS[format], owner="check") if format in _ENDINGS else []
    if format == "gpx" and not all(map(is_written, files)):
        reason = f"not written by promesse-geo: other elements than promesse-geo writes; {_REMEDY}"
        return Findings([Finding(test, REVIEW, reason) for test in ("no other columns", _TEST)])
    if format not in _ENDINGS:
        reason = f"promesse-geo does not write this format; {_REMEDY}"
        return Findings([Finding(test, REVIEW, reason) for test in ("no other columns", _TEST)])
    contents = [_Content() if format == "gpx" else _inspect(file, traces) for file in files]
    columns, unread, differences = (list(dict.fromkeys(chain(*kind))) for kind in zip(*contents, strict=True))
    ignored = sum(not file.is_dir() and file not in files for file in path.rglob("*"))  # of a file none
    if ignored:
        unread.append(f"{counted(ignored, 'file')} that the reader ignores")
    if unread:
        finding = Finding(_TEST, FAILED, f"there is data that was not checked: {', '.join(unread)}; {_REMEDY}")
    elif columns or differences:
        reason = f"not written by promesse-geo: {', '.join(differences or ['other columns'])}; {_REMEDY}"
        finding = Finding(_TEST, REVIEW, reason)
    else:
        finding = Finding(_TEST, PASSED, "records and the name of the mechanism only")
    return Findings([find_other_columns(columns), finding])


def file_mechanism(path: str | os.PathLike[str]) -> Mechanism | None:
    """Return the mechanism that the metadata of a file, or of all files of a folder, names, without its seed.

    Return None where they name none or several, or one that is not defined here (with a warning).
    """
    place = check_path(path, name="path", owner="file_mechanism")
    try:
        files = find_files(place, endings=ENDINGS, owner="check") if guess_format(place) == "table" else []
        texts = {_mechanism_text(file) for file in files}
    except (ValueError, OSError, pa.ArrowException, *GDAL_ERRORS):  # a format that holds no metadata of ours
        return None
    try:
        alike = len({json.dumps(parse_protection(text)) for text in texts}) == 1  # roles of columns may differ
        return _read_mechanism(min(texts, key=str)) if alike else None
    except (KeyError, TypeError, ValueError):
        warn(f"The metadata of {str(path)!r} names a mechanism that is not known here; it is ignored.")
        return None


def _read_mechanism(text: str | None) -> Mechanism | None:
    """Return the mechanism that a text under our metadata key names."""
    return mechanism_of(json.loads(text or "null"))


def _is_ours(text: str | None, columns: Sequence[str]) -> bool:
    """Whether a text under our metadata key is what write() stores, to the letter, and names none but the columns."""
    roles = parse_roles(text)
    if not {name for name in roles.values() if name is not None} <= set(columns):
        return False
    try:
        mechanism = _read_mechanism(text)
    except (KeyError, TypeError, ValueError):
        return False
    names = Names(roles.get("user", "user"), roles.get("time", "time"), segment=roles.get("segment"))
    return text == describe(None if mechanism is None else mechanism.description(), names)


def _mechanism_text(path: Path) -> str | None:
    """The text under our metadata key."""
    kind = table_kind(path)
    if kind == "parquet":
        text = (_read_schema(path).metadata or {}).get(METADATA_KEY.encode())
        return None if text is None else text.decode(errors="replace")
    layers = pyogrio.list_layers(path)[:, 0] if kind in _WITH_METADATA else ()
    texts = [(pyogrio.read_info(path, layer=layer)["layer_metadata"] or {}).get(METADATA_KEY) for layer in layers]
    return texts[0] if len(texts) == 1 else None


def _open(path: Path) -> pa.NativeFile:
    return pa.OSFile(os.fsencode(path), "rb")  # for names that are not UTF-8


def _read_schema(path: Path) -> pa.Schema:
    with _open(path) as file:
        return pq.read_schema(file)


def _inspect(path: Path, traces: Traces) -> _Content:
    kind = table_kind(path)
    if kind == "parquet":
        return _inspect_parquet(path, traces)
    if kind == "csv":
        return _inspect_text(path, traces)
    try:
        return _inspect_layers(path, traces, kind=kind)
    except GDAL_ERRORS:
        return _Content(differences=["a form that GDAL does not list"])


def _expected(traces: Traces) -> list[str]:
    """Names of the columns of user, time and segment, as far as there are any."""
    names = (traces.names.user, traces.names.time, traces.names.segment)
    return [str(name) for name in names if name is not None]


def _others(columns: Sequence[str], traces: Traces) -> list[str]:
    """Columns that are none of the traces, nor their coordinates."""
    names = traces.names
    places = [names.geometry] if names.lon is None else [names.lon, names.lat]
    known = {*_expected(traces), *places}
    return [name for name in columns if name not in known]


def _inspect_parquet(path: Path, traces: Traces) -> _Content:
    schema = _read_schema(path)
    metadata = {
        key.decode(errors="replace"): value.decode(errors="replace") for key, value in (schema.metadata or {}).items()
    }
    expected = [*_expected(traces), str(traces.names.geometry)]
    has_geometry = str(traces.names.geometry) in schema.names and traces.names.lon is None
    others = [name for name in schema.names if name not in expected]
    columns = others if has_geometry else _others(schema.names, traces)
    are_ours, has_z = _inspect_points(path, str(traces.names.geometry)) if has_geometry else (True, False)
    if has_z or '"Point Z"' in metadata.get("geo", ""):
        columns = [*columns, "Z or M"]
    foreign = sorted(metadata.keys() - {"geo", METADATA_KEY})
    differences = [f"metadata under {listed(foreign)}"] if foreign else []
    if not are_ours:
        differences.append("points in another form than promesse-geo writes")
    if not all(_is_written(field.type) for field in schema):
        differences.append("types of columns that promesse-geo does not write")
    if any(_holds_unused(path, field.name) for field in schema if pa.types.is_string(field.type)):
        differences.append("values that no record has")
    plain = schema.names == expected and not any(field.metadata for field in schema)
    if not plain or not _is_ours(metadata.get(METADATA_KEY), expected) or not _locates_points(metadata, traces):
        differences.append("other columns or metadata than promesse-geo writes")
    return _Content(columns, differences=differences)


def _is_written(kind: pa.DataType) -> bool:
    """Whether promesse-geo writes columns of a type. A dictionary, for example, may hold users that no record has."""
    written = (pa.string(), pa.large_string(), pa.int64(), pa.binary())
    return kind in written or pa.types.is_timestamp(kind)


def _holds_unused(path: Path, name: str) -> bool:
    """Whether the dictionaries of a column of text, which the schema may not show, hold values without a record."""
    with _open(path) as source:
        file = pq.ParquetFile(source, read_dictionary=[name])
        chunks = chain.from_iterable(
            file.read_row_group(group, columns=[name]).column(0).chunks for group in range(file.num_row_groups)
        )
        return any(len(chunk.indices.drop_null().unique()) < len(chunk.dictionary) for chunk in chunks)


def _inspect_points(path: Path, name: str) -> tuple[bool, bool]:
    """Return whether all geometries are points as promesse-geo writes them, and whether any geometry has Z or M."""
    are_ours, has_z = True, False
    with _open(path) as source:
        file = pq.ParquetFile(source)
        for batch in file.iter_batches(_ROWS, columns=[name]):
            column = pa.chunked_array([batch.column(0)])
            if not is_binary(column.type):
                return False, False
            if plain_points(column) is None:
                are_ours, has_z = False, has_z or decode_points(column)[2]
    return are_ours, has_z


def _locates_points(metadata: dict[str, str], traces: Traces) -> bool:
    """Whether GeoParquet metadata describe points of a CRS without text of its own, and nothing else."""
    name = str(traces.names.geometry)
    try:
        geo = json.loads(metadata["geo"])
        crs = geo["columns"][name].pop("crs")
        known = CRS.from_json_dict(crs)
    except (KeyError, TypeError, ValueError, ProjError):
        return False
    column = {"encoding": "WKB", "geometry_types": ["Point"]}
    expected = {"version": "1.1.0", "primary_column": name, "columns": {name: column}}
    return geo == expected and set(crs) <= set(known.to_json_dict()) and not has_custom_text(known)


def _inspect_layers(path: Path, traces: Traces, *, kind: str) -> _Content:
    if kind not in (*_WITH_METADATA, "geojson"):
        return _Content(differences=["another format than promesse-geo writes"])
    has_metadata = kind in _WITH_METADATA
    layers, expected = pyogrio.list_layers(path)[:, 0].tolist(), _expected(traces)
    if len(layers) > 1:
        return _Content(unread=[f"{len(layers)} layers, where traces are one"])
    about = pyogrio.read_info(path, layer=layers[0])
    columns = [name for name in about["fields"] if name not in expected]
    has_others, has_z = (False, False) if has_metadata else _inspect_features(path)
    if has_z or about["geometry_type"] != "Point":
        columns.append("Z or M")
    ours = {METADATA_KEY} if has_metadata else set()
    differences = []
    if layers != ["traces"] or about["fields"].tolist() != expected:
        differences.append("other names of layer or columns than promesse-geo writes")
    stored = about["layer_metadata"] or {}
    if set(stored) != ours or about["dataset_metadata"] or (ours and not _is_ours(stored[METADATA_KEY], expected)):
        differences.append("other metadata than promesse-geo writes")
    if has_others:
        differences.append("other members than promesse-geo writes")
    return _Content(columns, differences=differences)


def _inspect_features(path: Path) -> tuple[bool, bool]:
    """Return whether GeoJSON has other lines than ours, and whether any point has more than two numbers."""
    has_others = has_z = False
    with _open(path) as file:
        for line in io.TextIOWrapper(io.BufferedReader(file), encoding="utf-8", errors="replace"):
            if line.strip() in _GEOJSON_LINES:
                continue
            try:
                feature = json.loads(line.rstrip().removesuffix(","))
                members = set(feature), set(feature["geometry"])
                has_z = has_z or len(feature["geometry"]["coordinates"]) > 2
            except (ValueError, TypeError, KeyError):
                has_others = True
                continue
            has_others = has_others or members != ({"type", "properties", "geometry"}, {"type", "coordinates"})
    return has_others, has_z


def _inspect_text(path: Path, traces: Traces) -> _Content:
    expected = [*_expected(traces), *coordinate_names(traces.space.crs)]
    header = ",".join('"' + name.replace('"', '""') + '"' for name in expected).encode() + b"\n"
    with _open(path) as file:
        if file.read_at(len(header), 0) == header:
            return _Content()
        columns = read_layout(file).columns
    return _Content(_others(columns, traces), differences=["another header than promesse-geo writes"])
