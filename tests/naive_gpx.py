"""The records of a GPX file, from a tree of it and Python's own numbers and times."""

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:[Zz]|([-+])(\d\d):?(\d\d)?)?", re.ASCII
)


def records_of(content: str) -> list[tuple[int, int, float, float]]:
    """Number of the track, nanoseconds since 1970, longitude and latitude; by track and time."""
    root = ElementTree.fromstring(content.encode())
    space = root.tag.removesuffix("gpx")
    records = []
    for number, track in enumerate(root.findall(f"{space}trk"), 1):
        for point in track.findall(f"{space}trkseg/{space}trkpt"):
            when = nanoseconds("".join("".join(time.itertext()) for time in point.findall(f"{space}time")))
            lon, lat = (float(point.get(name, "nan")) for name in ("lon", "lat"))
            if when is not None and abs(lon) <= 180 and abs(lat) <= 90:
                records.append((number, when, lon, lat))
    return sorted(records, key=lambda record: record[:2])


def nanoseconds(text: str) -> int | None:
    """Nanoseconds since 1970 of a time in ISO 8601; None where it is none, or is beyond counting."""
    found = _TIME.fullmatch(text.strip(" \t\r\n"))
    if not found:
        return None
    year, month, day, hour, minute, second = (int(group or 0) for group in found.groups()[:6])
    fraction, sign, hours, minutes = found.groups()[6:]
    past_midnight = hour == 24 and minute == second == 0 and not int(fraction or 0)
    leap = second == 60
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    try:
        time = datetime(year, month, day, 0 if past_midnight else hour, minute, 59 if leap else second, tzinfo=UTC)
        time += timedelta(days=past_midnight, seconds=leap) - offset
    except (ValueError, OverflowError):
        return None
    if int(hours or 0) > 23 or int(minutes or 0) > 59 or not 1678 <= time.year <= 2261:
        return None
    seconds = (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    return seconds * 10**9 + int((fraction or "").ljust(9, "0")[:9])
