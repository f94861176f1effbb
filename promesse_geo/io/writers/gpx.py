"""Write points as GPX 1.1, and recognize such files: tracks with a name, times and coordinates, nothing else."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.io.gpx import CREATOR
from promesse_geo.io.writers.blocks import Block, PointTable, as_iso, join_texts
from promesse_geo.io.writers.crs import in_wgs84
from promesse_geo.messages import counted, warn

_ROWS = 1 << 16  # points per piece
_START = f"""\
<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="{CREATOR}" xmlns="http://www.topografix.com/GPX/1/1">
"""
_BEGIN_SEGMENT, _END_SEGMENT, _END_TRACK, _END = "<trkseg>\n", "</trkseg>\n", "</trk>\n", "</gpx>\n"
_IN_LINE = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DEGREES = rb"-?[0-9]+(?:\.[0-9]+)?"
_ISO = rb"[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}(?:\.(?:[0-9]{3}){1,3})?Z?"
_POINT = re.compile(rb'<trkpt lat="%s" lon="%s"><time>%s</time></trkpt>\n' % (_DEGREES, _DEGREES, _ISO))
_BEGIN_TRACK = re.compile(rb"<trk>(?:<name>[^<\n]*</name>)?\n")


class _Rows(NamedTuple):
    """Consecutive points of traces: arrays (n,), without users or segments if there are none.

    Times are texts in ISO 8601; x and y are degrees in EPSG:4326.
    """

    users: pa.Array | None
    segments: pa.Array | None
    times: pa.Array
    x: np.ndarray
    y: np.ndarray


def write_gpx(table: PointTable, path: Path) -> None:
    """Write GPX with all digits of times and coordinates."""
    _check_names(table.users)

    def as_rows(block: Block) -> _Rows:
        number = next(i for i, (_, array) in enumerate(block.columns) if pa.types.is_timestamp(array.type))
        arrays = [array for _, array in block.columns]
        user = arrays[0] if number else None
        segment = arrays[number + 1] if len(arrays) > number + 1 else None
        if len(block.x) and arrays[number].type.tz is None:
            naive.append(True)
        return _Rows(user, segment, as_iso(arrays[number]), block.x, block.y)

    naive: list[bool] = []
    with path.open("wb") as file:
        for piece in _gpx_pieces(map(as_rows, in_wgs84(table, label="GPX"))):
            file.write(piece)
    if naive:
        warn(
            "The times have no zone, so GPX has them without one, which suits the common calendar. Other programs take "
            "them for UTC: if they are true local times, set their zone (tz_localize) first."
        )


def _check_names(users: Iterable[object]) -> None:
    """Raise ValueError if a user key has characters that XML cannot keep."""
    bad = sum(_NO_XML.search(str(user)) is not None for user in users)
    if bad:
        raise ValueError(
            f"{counted(bad, 'user key holds', 'user keys hold')} a control character or a lone surrogate, which GPX "
            "cannot keep. Rename these users, or write GeoParquet."
        )


def _gpx_pieces(blocks: Iterable[_Rows]) -> Iterator[bytes]:
    """Yield the content of a GPX file: a track for each user, a segment for each of its segments."""
    yield _START.encode()
    before: tuple[object, object] | None = None
    for block in blocks:
        for start in range(0, len(block.x), _ROWS):
            pieces: Any = (None if column is None else column[start : start + _ROWS] for column in block)
            rows = _Rows(*pieces)
            yield _as_points(rows, before)
            before = _last(rows.users), _last(rows.segments)
    yield ((_END_SEGMENT + _END_TRACK if before else "") + _END).encode()


def _last(column: pa.Array | None) -> object:
    return None if column is None else column[-1].as_py()


def _as_points(rows: _Rows, before: tuple[object, object] | None) -> bytes:
    """Return the text of points, after those of the user and segment `before`."""
    users, segments = (_codes(column, len(rows.x)) for column in (rows.users, rows.segments))
    is_new = np.concatenate([[True], np.diff(users) != 0])
    begins = is_new | np.concatenate([[True], np.diff(segments) != 0])
    if before is not None and rows.users is not None:
        is_new[0] = rows.users[0].as_py() != before[0]
    elif before is not None:
        is_new[0] = False
    if before is not None:
        begins[0] = is_new[0] or _first(rows.segments) != before[1]
    tags = np.full(len(rows.x), "", object)
    for row in np.flatnonzero(begins).tolist():
        end = "" if before is None and row == 0 else _END_SEGMENT
        if is_new[row]:
            tags[row] = f"{end}{_END_TRACK if end else ''}<trk>{_name(rows.users, row)}\n{_BEGIN_SEGMENT}"
        else:
            tags[row] = end + _BEGIN_SEGMENT
    parts = [
        pa.array(tags, pa.large_string()),
        '<trkpt lat="',
        _as_decimals(rows.y),
        '" lon="',
        _as_decimals(np.where(rows.x >= 180, rows.x - 360, np.where(rows.x < -180, rows.x + 360, rows.x))),
        '"><time>',
        rows.times,
        "</time></trkpt>\n",
        "",
    ]
    return join_texts(parts).to_pybytes()


def _first(column: pa.Array | None) -> object:
    return None if column is None else column[0].as_py()


def _codes(column: pa.Array | None, count: int) -> np.ndarray:
    """Return numbers that differ where the values of a column do."""
    return np.zeros(count, np.int64) if column is None else column.dictionary_encode().indices.to_numpy()


def _name(users: pa.Array | None, row: int) -> str:
    return "" if users is None else f"<name>{escape(str(users[row].as_py()), _IN_LINE)}</name>"


def _as_decimals(degrees: np.ndarray) -> pa.Array:
    """Return the shortest texts that stand for the same numbers, without exponents, which XML's decimals lack."""
    texts = pa.array(degrees).cast(pa.large_string())
    scientific = pc.match_substring(texts, "e").to_numpy(zero_copy_only=False)
    if not scientific.any():
        return texts
    plain = [np.format_float_positional(value, trim="-") for value in degrees[scientific].tolist()]
    return pc.replace_with_mask(texts, pa.array(scientific), pa.array(plain, pa.large_string()))


def is_written(path: Path) -> bool:
    """Return whether a GPX file, which can be read, has no other lines than `write_gpx` writes, in its order."""
    with path.open("rb") as file:
        start = _START.encode()
        if file.read(len(start)) != start:
            return False
        where = "file"
        for line in file:
            where = _next(where, line)
            if not where:
                return False
    return where == "end"


def _next(where: str, line: bytes) -> str:
    """Return the place in the file after a line; empty if the line is not allowed at the place `where`."""
    if where in ("segment", "points") and _POINT.fullmatch(line):
        return "points"
    steps = {
        ("file", _END): "end",
        ("track", _BEGIN_SEGMENT): "segment",
        ("points", _END_SEGMENT): "between",
        ("between", _BEGIN_SEGMENT): "segment",
        ("between", _END_TRACK): "file",
    }
    following = next((to for (at, text), to in steps.items() if at == where and text.encode() == line), "")
    return "track" if where == "file" and _BEGIN_TRACK.fullmatch(line) else following
