"""NMEA 0183: the sentences of GNSS receivers, as loggers write them.

Examples
--------
>>> import promesse_geo as pg, pathlib, tempfile
>>> file = pathlib.Path(tempfile.mkdtemp()) / "boat.nmea"
>>> _ = file.write_text("$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A" + chr(10))
>>> pg.read_file(file).time[0].isoformat()
'1994-03-23T12:35:19+00:00'
"""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from promesse_geo.io.batch import Part
from promesse_geo.io.contents import Head
from promesse_geo.io.positions import Positions, position_format

ENDINGS = (".nmea", ".nme", ".nma", ".log", ".nmea.gz", ".nme.gz", ".nma.gz", ".log.gz")
_SENTENCE = re.compile(rb"\$([A-Z]{2}(RMC|GGA|ZDA),[^$!*\r\n]*)(?:\*([0-9A-Fa-f]{2})?)?")
_START = re.compile(
    rb"^(?:\xef\xbb\xbf)?[ \t]*\$[A-Z]{2}(?:RMC|GGA|GSA|GSV|GLL|VTG|ZDA|GNS),[^*\r\n]*\*[0-9A-F]{2}", re.M
)
_CLOCK = re.compile(r"(\d\d)(\d\d)(\d\d)(?:\.(\d*))?", re.ASCII)
_DATE = re.compile(r"(\d\d)(\d\d)(\d\d)", re.ASCII)
_ANGLE = re.compile(r"(\d{1,3})(\d\d(?:\.\d*)?)", re.ASCII)
_DAY = 86_400 * 10**9  # nanoseconds
_CENTURY = 80  # years below are of this century
_VOID, _CHECKSUM, _NO_CHECKSUM = "no fix (void)", "a checksum that does not match", "no checksum"


class _Sentence(NamedTuple):
    """A fix of RMC or GGA; ns of the day and since 1970, None if missing."""

    line: int
    is_rmc: bool
    is_valid: bool
    clock: int | None
    time: int | None
    latitude: float
    longitude: float


def _parse(name: str, content: bytes, user: str) -> Iterator[Part]:
    """Yield the fixes of a file."""
    positions = Positions(name, noun="line")
    sentences = list(_sentences(content, positions))
    if not sentences and not positions.has_left_out:
        raise ValueError(f"{name!r} is not NMEA 0183: it has no RMC or GGA sentence.")
    if sentences and all(sentence.time is None for sentence in sentences):
        raise ValueError(f"{name!r} has no date: it has no RMC or ZDA sentence with one.")
    known = {sentence.time for sentence in sentences if sentence.is_rmc}
    for line, is_rmc, is_valid, _, time, latitude, longitude in sentences:
        if not is_rmc and time in known:
            continue
        if is_valid:
            positions.add(time, latitude, longitude, place=line)
        else:
            positions.leave_out(_VOID, place=line)
    yield from positions.parts(user)


def _sentences(content: bytes, positions: Positions) -> Iterator[_Sentence]:
    """Yield the RMC and GGA sentences with their times; count those with a wrong checksum or without one."""
    day: int | None = None  # start of the day of the last date, and the clock then
    clock_then = 0
    waiting: list[_Sentence] = []  # before the first date
    for line, text in enumerate(content.splitlines(), 1):
        for match in _SENTENCE.finditer(text):
            if match[3] is None or _checksum(match[1]) != int(match[3], 16):
                positions.leave_out(_NO_CHECKSUM if match[3] is None else _CHECKSUM, place=line)
                continue
            kind, fields = match[2], match[1].decode("ascii", "replace").split(",")
            clock = _clock(_field(fields, 1))
            date = _date(fields, kind)
            if date is not None and clock is not None:
                day, clock_then = date, clock
                yield from (_dated(sentence, day, clock_then) for sentence in waiting)
                waiting.clear()
            if kind != b"ZDA":
                sentence = _fix(fields, line, clock, is_rmc=kind == b"RMC")
                if day is None:
                    waiting.append(sentence)
                else:
                    yield _dated(sentence, day, clock_then)
    yield from waiting


def _checksum(text: bytes) -> int:
    """Return the exclusive or of all bytes."""
    checksum = 0
    for byte in text:
        checksum ^= byte
    return checksum


def _dated(sentence: _Sentence, day: int, clock_then: int) -> _Sentence:
    """Return a sentence with the time nearest to a date and the clock at which that was sent."""
    if sentence.clock is None:
        return sentence
    shift = sentence.clock - clock_then
    days = 1 if shift < -_DAY // 2 else -1 if shift > _DAY // 2 else 0
    return sentence._replace(time=day + days * _DAY + sentence.clock)


def _fix(fields: list[str], line: int, clock: int | None, *, is_rmc: bool) -> _Sentence:
    first = 3 if is_rmc else 2
    quality = _field(fields, 2 if is_rmc else 6)
    is_valid = quality == "A" if is_rmc else quality not in ("", "0")
    latitude = _angle(_field(fields, first), _field(fields, first + 1), "NS")
    longitude = _angle(_field(fields, first + 2), _field(fields, first + 3), "EW")
    return _Sentence(line, is_rmc, is_valid, clock, None, latitude, longitude)


def _field(fields: list[str], number: int) -> str:
    return fields[number].strip() if number < len(fields) else ""


def _clock(text: str) -> int | None:
    """Return nanoseconds since midnight of hhmmss.sss; None if it is no time."""
    match = _CLOCK.fullmatch(text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59 or int(match[3]) > 60:
        return None
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])
    return seconds * 10**9 + int((match[4] or "")[:9].ljust(9, "0"))


def _date(fields: list[str], kind: bytes) -> int | None:
    """Return the start of the day of RMC or ZDA in nanoseconds since 1970; None if it has no date."""
    if kind == b"RMC":
        match = _DATE.fullmatch(_field(fields, 9))
        day, month, year = (int(match[i]) for i in (1, 2, 3)) if match else (0, 0, 0)
        year += 2000 if year < _CENTURY else 1900
    elif kind == b"ZDA":
        texts = [_field(fields, i) for i in (2, 3, 4)]
        day, month, year = map(int, texts) if all(re.fullmatch("[0-9]{1,4}", text) for text in texts) else (0, 0, 0)
    else:
        return None
    try:
        return int(datetime(year, month, day, tzinfo=UTC).timestamp()) * 10**9
    except ValueError:
        return None


def _angle(text: str, side: str, sides: str) -> float:
    """Return degrees of dddmm.mmm and a side such as N; NaN if that is no angle."""
    match = _ANGLE.fullmatch(text)
    if match is None or len(side) != 1 or side not in sides or float(match[2]) >= 60:
        return math.nan
    degrees = int(match[1]) + float(match[2]) / 60
    return degrees if side == sides[0] else -degrees


def is_nmea(head: Head, name: str) -> bool:
    """Return whether one of the first lines is a sentence of a receiver, with its checksum."""
    return _START.search(head.content) is not None


FORMAT = position_format(
    "nmea",
    "NMEA 0183",
    _parse,
    is_nmea,
    endings=ENDINGS,
    library="Python (text)",
    remarks="""\
Positions are those of RMC sentences, and of GGA sentences at times that have no RMC. A GGA has no date: it is that of
the RMC or ZDA before it (after it at the start of a file), or of the next day past midnight. Void fixes, sentences
without a checksum and those whose checksum does not match are dropped with a counted warning. All other sentences are
ignored. Years 00 to 79 are of this century.
""",
)
