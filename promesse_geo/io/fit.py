"""FIT: activities of sports watches and cycling computers, decoded by fitdecode."""

import importlib
from typing import Any

import numpy as np

from promesse_geo.io.contents import Head
from promesse_geo.io.tracks import Points, track_format

ENDINGS = (".fit", ".fit.gz")
_EPOCH = np.datetime64("1989-12-31T00:00:00", "ns")
_FIRST_DATE = 0x10000000  # seconds; less is a time since the receiver was switched on
_NO_TIME, _NO_POSITION = 0xFFFFFFFF, 0x7FFFFFFF
_DEGREES = 180 / 2**31  # of a semicircle
_TIMESTAMP, _LATITUDE, _LONGITUDE, _EVENT = 253, 0, 1, 0  # numbers of fields
_EVENT_MESSAGE, _RECORD_MESSAGE, _TIMER = 21, 20, 0


def _import() -> Any:
    try:
        return importlib.import_module("fitdecode")  # late: an optional package
    except ImportError:
        raise ImportError(
            "FIT files are read by the package fitdecode, which is not installed. Install it with "
            "`pip install promesse_geo[formats]`."
        ) from None


def _parse(name: str, content: bytes) -> Points:
    """Return the records of a file."""
    fitdecode = _import()
    records: list[tuple[Any, ...]] = []
    segments: list[int] = []
    lenient, strict = fitdecode.ErrorHandling.IGNORE, fitdecode.CrcCheck.RAISE
    try:
        with fitdecode.FitReader(content, processor=None, check_crc=strict, error_handling=lenient) as frames:
            for frame in frames:
                _add(frame, records, segments, fitdecode)
        columns = [np.array([row[i] for row in records], np.float64) for i in range(3)]
    except Exception as error:  # of any kind: fitdecode checks little
        raise ValueError(f"{name!r} is not FIT, or cut or damaged. Copy it again from the device.") from error
    if not records:
        raise ValueError(f"{name!r} has no records of positions: it may hold a workout, a course or settings.")
    seconds, latitudes, longitudes = columns
    dated = (seconds >= _FIRST_DATE) & (seconds < _NO_TIME)
    times = _EPOCH + np.where(dated, seconds, 0).astype(np.int64).astype("m8[s]")
    times[~dated] = np.datetime64("NaT")
    located = (np.abs(latitudes) < _NO_POSITION) & (np.abs(longitudes) < _NO_POSITION)
    return Points([0], segments, times, latitudes * _DEGREES, longitudes * _DEGREES, located)


def _add(frame: Any, records: list[tuple[Any, ...]], segments: list[int], fitdecode: Any) -> None:
    """Add the record of a frame, or the segment that an event of the timer or another file begins."""
    if frame.frame_type == fitdecode.FIT_FRAME_HEADER:
        segments.append(len(records))
    if frame.frame_type != fitdecode.FIT_FRAME_DATA or frame.global_mesg_num not in (_RECORD_MESSAGE, _EVENT_MESSAGE):
        return
    fields = (field for field in frame.fields if field.field_def is None or not field.field_def.is_dev)
    values = {field.def_num: field.raw_value for field in fields}
    if frame.global_mesg_num == _RECORD_MESSAGE:
        records.append(tuple(values.get(number) for number in (_TIMESTAMP, _LATITUDE, _LONGITUDE)))
    elif values.get(_EVENT) == _TIMER:
        segments.append(len(records))


def is_fit(head: Head, name: str) -> bool:
    """Return whether a file has the header of FIT."""
    return head.content[8:12] == b".FIT" and head.content[:1] in (b"\x0c", b"\x0e")


FORMAT = track_format(
    "fit",
    "FIT",
    _parse,
    is_fit,
    endings=ENDINGS,
    noun="record",
    has_tracks=False,
    library="fitdecode",
    remarks="""\
Records; each stop or start of the timer begins a segment. Users are as in `read_gpx`, without `user="track"`. Needs
fitdecode: `pip install promesse_geo[formats]`.
""",
)
