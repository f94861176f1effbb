r"""IGC: flight recorders of gliders, paragliders and balloons.

Examples
--------
>>> import promesse_geo as pg, pathlib, tempfile
>>> file = pathlib.Path(tempfile.mkdtemp()) / "flight.igc"
>>> _ = file.write_text("AXXX001\nHFDTE040324\nB1101355206343N00006198WA0058700558\n")
>>> pg.read_file(file).time[0].isoformat()
'2024-03-04T11:01:35+00:00'
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from promesse_geo.io.batch import Part
from promesse_geo.io.contents import Head
from promesse_geo.io.positions import Positions, position_format

ENDINGS = (".igc", ".igc.gz")
_FIX = re.compile(r"B(\d\d)(\d\d)(\d\d)(\d\d)(\d{5})([NS])(\d{3})(\d{5})([EW])([AV])", re.ASCII)
_DATE = re.compile(r"H.DTE(?:DATE)?[: ]*(\d\d)(\d\d)(\d\d)", re.ASCII)
_EXTENSION = re.compile(r"(\d\d)(\d\d)(LAD|LOD|TDS)", re.ASCII)
_START = re.compile(rb"^(?:H.DTE(?:DATE)?[: ]*\d{6}|B\d{13}[NS]\d{8}[EW][AV])", re.M)
_MAKER = re.compile(rb"(?:\xef\xbb\xbf)?\s*[AH][A-Z]")
_DAY = 86_400  # seconds
_CENTURY = 80  # years below are of this century
_NO_FIX = "no fix in three dimensions (V)"
_NOT_A_FIX = "B record that is cut or damaged"


def _parse(name: str, content: bytes, user: str) -> Iterator[Part]:
    """Yield the fixes of a file."""
    positions = Positions(name, noun="line")
    day: int | None = None
    before = 0
    extensions: dict[str, slice] = {}
    for number, line in enumerate(content.decode("latin-1").removeprefix("\xef\xbb\xbf").splitlines(), 1):
        if line.startswith("I"):
            extensions = {kind: slice(int(first) - 1, int(last)) for first, last, kind in _EXTENSION.findall(line[3:])}
        elif match := _DATE.match(line):
            day, before = _day(match), 0
        elif line.startswith("B"):
            fix = _FIX.match(line)
            if fix is None:
                positions.leave_out(_NOT_A_FIX, place=number)
                continue
            if day is None:
                raise ValueError(f"{name!r} has no date (HFDTE) before its first fix, in line {number:,}.")
            seconds = int(fix[1]) * 3600 + int(fix[2]) * 60 + int(fix[3])
            if before - seconds > _DAY // 2:
                day += _DAY
            before = seconds
            if fix[10] == "V":
                positions.leave_out(_NO_FIX, place=number)
                continue
            digits = {kind: line[place] for kind, place in extensions.items() if re.fullmatch("[0-9]+", line[place])}
            is_time = int(fix[1]) < 24 and int(fix[2]) < 60 and int(fix[3]) < 60
            time = (day + seconds) * 10**9 + int(digits.get("TDS", "")[:9].ljust(9, "0"))
            latitude = _degrees(fix[4], fix[5] + digits.get("LAD", ""), fix[6] == "S")
            longitude = _degrees(fix[7], fix[8] + digits.get("LOD", ""), fix[9] == "W")
            positions.add(time if is_time else None, latitude, longitude, place=number)
    if not len(positions.times) and not positions.has_left_out:
        raise ValueError(f"{name!r} has no fix (B record).")
    yield from positions.parts(user)


def _day(match: re.Match[str]) -> int | None:
    """Return the start of a day in seconds since 1970; None if there is no such day."""
    day, month, year = (int(match[i]) for i in (1, 2, 3))
    try:
        return int(datetime(year + (2000 if year < _CENTURY else 1900), month, day, tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _degrees(degrees: str, minutes: str, is_negative: bool) -> float:
    """Return degrees of whole degrees and minutes without the point after two digits; NaN from 60 minutes."""
    value = int(degrees) + float(f"{minutes[:2]}.{minutes[2:]}") / 60 if int(minutes[:2]) < 60 else float("nan")
    return -value if is_negative else value


def is_igc(head: Head, name: str) -> bool:
    """Return whether a file begins with the record of a maker, and has a date or a fix."""
    return _MAKER.match(head.content) is not None and _START.search(head.content) is not None


FORMAT = position_format(
    "igc",
    "IGC",
    _parse,
    is_igc,
    endings=ENDINGS,
    by_name=True,
    library="Python (text)",
    remarks="""\
The fixes (B records), also with more digits of place and time as the I record declares. The date is that of the header
(HFDTE); when the clock goes back by more than half a day, the next day begins. Fixes marked V (no position, or none in
three dimensions) and damaged B records are dropped with a counted warning. Years 00 to 79 are of this century.
""",
)
