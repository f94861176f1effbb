"""Read the positions that text holds in one column: WKT, WKB in hexadecimal digits, or lists of positions."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from pyproj import CRS
from pyproj.exceptions import CRSError

from promesse_geo.io.batch import DroppedRecords
from promesse_geo.io.parquet_table import resolve_crs
from promesse_geo.io.table_columns import ReadOptions, needed_crs
from promesse_geo.io.table_times import MISSING
from promesse_geo.messages import counted, listed
from promesse_geo.traces.known_columns import LATITUDES, LONGITUDES, candidates_for, fold
from promesse_geo.traces.points import no_points

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_KINDS = "POINT|LINESTRING|LINEARRING|POLYGON|MULTIPOINT|MULTILINESTRING|MULTIPOLYGON|GEOMETRYCOLLECTION"
_SRID = r"^\s*SRID\s*=\s*(?P<srid>\d{1,9})\s*;\s*"
_WKT = rf"\s*(?:SRID\s*=\s*\d+\s*;\s*)?(?:{_KINDS})\s*(?:ZM?|M)?\s*(?:\(.*\)|EMPTY)\s*"
_LITTLE = "01(?:0[1-7]0000[02468ACE]0|E[9A-F]030000|D[1-7]070000|B[9A-F]0B0000)"  # byte order and type, as in EWKB, ISO
_BIG = "00(?:[02468ACE]000000[1-7]|0000(?:03E[9A-F]|07D[1-7]|0BB[9A-F]))"
_HEX = rf"\s*(?:\\x)?(?:{_LITTLE}|{_BIG})(?:[0-9A-F]{{2}})*\s*"
_POSITION = rf"\[\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\]"
_LIST = rf"\s*\[\s*(?:{_POSITION}(?:\s*,\s*{_POSITION})*)?\s*\]\s*"
SHAPE = re.compile(rf"{_WKT}|{_HEX}|\s*\[\s*(?:\[.*\])?\s*\]\s*", re.IGNORECASE | re.DOTALL)
"""Text of a geometry, or of a list of positions."""

_NAMES = ("geometry", "geom", "thegeom", "wkbgeometry", "wkt", "ewkt", "wkb", "geog", "position", "polyline")  # folded
_PORTO = {"polyline", "timestamp", "taxiid"}
_INTERVAL = 15  # seconds between the positions of a trip in Porto
_DEGREES = (180, 90)


class ShapePositions(NamedTuple):
    """Positions, the row of each if rows hold several, and what is said of them.

    `rows` and `seconds`, of shape (positions,), are None if each row holds one position; `seconds` count from the time
    of the row.
    """

    x: np.ndarray
    y: np.ndarray
    crs: Any
    has_z: bool = False
    notes: tuple[str, ...] = ()
    dropped: tuple[DroppedRecords, ...] = ()
    rows: np.ndarray | None = None
    seconds: np.ndarray | None = None


def find_shape_column(columns: Sequence[str], rows: Sequence[Sequence[str]], options: ReadOptions) -> str | None:
    """Return the column of geometries; None if there is none, or there are columns of longitude and latitude.

    Parameters
    ----------
    columns : sequence of str
        All columns.
    rows : sequence of sequences of str
        The first rows.
    options : ReadOptions
        The names and the CRS that are specified.

    Raises
    ------
    ValueError
        If several columns hold geometries, and not exactly one has a known name.

    Examples
    --------
    >>> options = ReadOptions(..., ..., lon=None, lat=None, crs=None, layer=None, lenient=False)
    >>> find_shape_column(["user", "where"], [["ana", "POINT (4.8 45.7)"]], options)
    'where'
    """
    if options.lon or options.lat:
        return None
    coordinates = [candidates_for(columns, known) for known in (LONGITUDES, LATITUDES)]
    is_planar = any(fold(name) in ("x", "y") for names in coordinates for name in names)
    if all(coordinates) and not (is_planar and options.crs is None):
        return None
    taken = {name for name in (options.user, options.time, options.segment) if isinstance(name, str)}
    possible = [name for name in columns if name not in taken and not SHAPE.fullmatch(name)]
    if rows:
        found = [name for name in possible if _holds_shapes([row[columns.index(name)] for row in rows])]
    else:
        found = [name for name in possible if fold(name) in _NAMES]
    known = [name for name in found if fold(name) in _NAMES]
    if len(found) > 1 and len(known) != 1:
        raise ValueError(f"several columns hold geometries: {listed(found)}. Omit all but one.")
    return next(iter(known or found), None)


def _holds_shapes(values: Sequence[str]) -> bool:
    """Whether most of the values that are not missing are geometries."""
    present = [value for value in values if value.strip() and value.strip() not in MISSING]
    return 2 * sum(SHAPE.fullmatch(value) is not None for value in present) > len(present)


def missing_data_column(columns: Sequence[str], shape: str) -> str | None:
    """Return Porto's column of trips that miss positions, beside the column of positions."""
    is_porto = fold(shape) == "polyline" and set(map(fold, columns)) >= _PORTO
    return next((name for name in columns if is_porto and fold(name) == "missingdata"), None)


def read_shapes(
    table: pa.Table, name: str, columns: Sequence[str], options: ReadOptions, *, file: str
) -> ShapePositions:
    """Return the positions in a column of text.

    Parameters
    ----------
    table : pyarrow.Table of n rows
        The column, and that of `missing_data_column`.
    name : str
        The column.
    columns : sequence of str
        All columns of the file.
    options : ReadOptions
        The CRS, if it is specified.
    file : str
        The file in messages.

    Raises
    ------
    ValueError
        If no geometry is a point, or their CRS is unknown or not a single one.
    """
    text = pc.utf8_trim_whitespace(table.column(name))
    text = pc.if_else(pc.is_in(text, value_set=pa.array(["", *MISSING])), pa.scalar(None, pa.string()), text)
    if pc.any(pc.starts_with(text, "[")).as_py():
        if not set(map(fold, columns)) >= _PORTO or fold(name) != "polyline":
            raise ValueError(
                f"the column {name!r} holds lists of positions without the time of each. Write each position in a row "
                "of its own, with its time."
            )
        missing = missing_data_column(columns, name)
        return _read_polylines(text, None if missing is None else table.column(missing), options, name=name, file=file)
    return _read_points(text, options, name=name)


def _read_points(text: pa.ChunkedArray, options: ReadOptions, *, name: str) -> ShapePositions:
    """Return the points of a column of WKT, or of WKB in hexadecimal digits; NaN where there is none."""
    is_hex = pc.fill_null(pc.match_substring_regex(text, r"^(\\x)?0[01]"), False).to_numpy()
    digits = pc.replace_substring_regex(text, r"^\\x", "")
    written = pc.replace_substring_regex(text, f"(?i){_SRID}", "")
    codes = pc.struct_field(pc.extract_regex(text, f"(?i){_SRID}"), "srid")
    srids = pc.fill_null(codes.cast(pa.int64()), 0).to_numpy().copy()
    shapes = np.full(len(text), None, object)
    shapes[~is_hex] = shapely.from_wkt(written.to_numpy()[~is_hex], on_invalid="ignore")
    shapes[is_hex] = shapely.from_wkb(digits.to_numpy()[is_hex], on_invalid="ignore")
    srids[is_hex] = shapely.get_srid(shapes[is_hex])
    is_point = (shapely.get_type_id(shapes) == shapely.GeometryType.POINT) & ~shapely.is_empty(shapes)
    if not is_point.any() and (words := no_points(shapes)):
        raise ValueError(
            f"{words.partition(' Lines are')[0]} Write each point in a row of its own, with its time (ST_DumpPoints in "
            "PostGIS), or as GeoPackage if they are lines whose M is the time of each vertex."
        )
    x, y = np.full((2, len(shapes)), np.nan)
    x[is_point], y[is_point] = shapely.get_x(shapes[is_point]), shapely.get_y(shapes[is_point])
    crs, notes = _crs_of(np.unique(srids[is_point]).tolist(), x, y, options, name=name)
    return ShapePositions(x, y, crs, has_z=bool((shapely.get_coordinate_dimension(shapes) > 2).any()), notes=notes)


def _crs_of(
    srids: Sequence[int], x: np.ndarray, y: np.ndarray, options: ReadOptions, *, name: str
) -> tuple[Any, tuple[str, ...]]:
    """Return the CRS of points from their SRIDs, and a note if it is assumed."""
    if len(srids) > 1:
        words = " and ".join(str(srid) if srid else "none" for srid in srids)
        raise ValueError(
            f"the geometries in {name!r} have several SRIDs ({words}). Write them in one, as with ST_Transform."
        )
    if any(srids):
        try:
            return resolve_crs(CRS.from_epsg(srids[0]), options), ()
        except CRSError:
            if options.crs is not None:
                return needed_crs(options), ()
            raise ValueError(
                f"the geometries in {name!r} have the SRID {srids[0]}, which is no code of EPSG. Specify the CRS, as "
                "in crs='EPSG:4326' (--crs EPSG:4326)."
            ) from None
    if options.crs is not None:
        return options.crs, ()
    is_outside = any((np.abs(values) > largest).any() for values, largest in zip((x, y), _DEGREES, strict=True))
    if is_outside:
        raise ValueError(
            f"the geometries in {name!r} have no SRID, and are no longitudes and latitudes. Specify their CRS, as in "
            "crs='EPSG:32631' (--crs EPSG:32631)."
        )
    note = f"the geometries in {name!r}, which have no SRID, as longitudes and latitudes in EPSG:4326"
    return "EPSG:4326", (note,) if srids else ()


def _read_polylines(
    text: pa.ChunkedArray, missing: pa.ChunkedArray | None, options: ReadOptions, *, name: str, file: str
) -> ShapePositions:
    """Return the positions of lists such as [[-8.6,41.1],[-8.7,41.2]], 15 s apart."""
    is_list = pc.match_substring_regex(text, f"^(?:{_LIST})$")
    is_valid = pc.fill_null(is_list, False).to_numpy()
    text = pc.if_else(is_list, pc.replace_substring_regex(text, r"[\[\]\s]", ""), "")
    numbers = pc.split_pattern(pc.fill_null(text, ""), ",").combine_chunks()
    counts = np.diff(numbers.offsets.to_numpy()) // 2  # an empty list is one empty number
    flat = numbers.flatten()
    x, y = flat.filter(pc.not_equal(flat, "")).cast(pa.float64()).to_numpy().reshape(-1, 2).T
    ends = np.cumsum(counts)
    about = f"the positions in {name!r} as {_INTERVAL} s apart"
    words = {f"{name} has none": int((is_valid & (counts == 0)).sum()), "some are missing": _count_true(missing)}
    details = "; ".join(f"{what} in {counted(count, 'trip')}" for what, count in words.items() if count)
    dropped: tuple[DroppedRecords, ...] = ()
    if not is_valid.all():
        first = f"row {int((~is_valid).argmax()):,} of {file}"
        dropped = (DroppedRecords("a list of positions that is cut or damaged", int((~is_valid).sum()), first),)
    return ShapePositions(
        x,
        y,
        resolve_crs("EPSG:4326", options),
        notes=(f"{about} ({details})" if details else about,),
        dropped=dropped,
        rows=np.repeat(np.arange(len(counts)), counts),
        seconds=(np.arange(len(x)) - np.repeat(ends - counts, counts)) * _INTERVAL,
    )


def _count_true(column: pa.ChunkedArray | None) -> int:
    """Count "True" in a column of text."""
    return 0 if column is None else int(pc.sum(pc.equal(pc.utf8_lower(column), "true"), min_count=0).as_py())
