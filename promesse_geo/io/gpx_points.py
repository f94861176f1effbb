"""What a GPX file says of its track points: text from a parser that checks every byte, numbers from whole columns."""

import codecs
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.parsers import expat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

_NUMBER = r"^(?:[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|NaN)$"
_TIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[-+][0-9]{2}(?::?[0-9]{2})?)?$"
)
_BEYOND = (r"^(.{11})24(:00(?::00(?:\.0+)?)?(?:[-+Z].*)?)$", r"^(.{16}:)60")  # the end of a day, and of a minute
_SMALLER = r"(\.[0-9]{9})[0-9]+"  # than a nanosecond
_CHUNK = 1 << 20  # bytes that expat takes at once
_LONGEST = 16 * _CHUNK  # tag or comment: older ones of expat read it again from its start with every chunk
IS_GPX = re.compile(rb"<(?:[^\s<>:!?/]+:)?gpx[\s/>]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TRACK_DEPTH, _POINT_DEPTH, _TIME_DEPTH = 2, 4, 5


class Points(NamedTuple):
    """Track points as they are written; None where there is no attribute."""

    tracks: list[int]
    """How many points come before each track."""
    times: list[str]
    latitudes: list[str | None]
    longitudes: list[str | None]
    strays: list[int]
    """Lines of points that lie in no segment, or are of another namespace; those in extensions are others' own."""


def read_points(name: str, content: bytes) -> Points:
    """The track points of a file that is well-formed from end to end."""
    content, encoding = _from_first_bracket(content)
    if not content:
        raise ValueError(f"{name!r} is not GPX: it is empty.")
    try:
        try:
            return _feed(content, encoding, separator="\n")
        except expat.ExpatError:  # many a file uses prefixes that it does not declare
            return _feed(content, encoding, separator=None)
    except expat.ExpatError as error:
        if b"<" not in content[:2]:
            raise ValueError(f"{name!r} is not GPX: it has no element <gpx>.") from error
        where = f"line {error.lineno:,}: {expat.ErrorString(error.code)}"
        raise ValueError(f"{name!r} is not GPX, or cut or damaged ({where}).") from error
    except (ValueError, LookupError) as error:  # ours, and those of encodings that expat does not know
        raise ValueError(f"{name!r} is not GPX: {error}.") from error


def _from_first_bracket(content: bytes) -> tuple[bytes, str | None]:
    """The document without marks and blanks before it, and its encoding where a mark tells it."""
    if content.startswith(_UTF16):
        content = content.decode("utf-16", errors="replace").encode()
        return content.lstrip(), "utf-8"
    return content.removeprefix(codecs.BOM_UTF8).lstrip(), None


def _feed(content: bytes, encoding: str | None, *, separator: str | None) -> Points:
    """Take what lies at gpx/trk/trkseg/trkpt, in the namespace of gpx; names have prefixes if there is no separator."""
    parser = expat.ParserCreate(encoding, separator)
    parser.buffer_text = True
    points = Points([], [], [], [], [])
    tracks, times, latitudes, longitudes, strays = points
    text: list[str] = []
    path: list[str] = []
    depth = along = 0  # elements that are open, and how many of them lie on the path
    aside = 0  # how many are open above one of extensions

    def begin(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth, along, aside
        if not path:
            if _local(name) != "gpx":
                raise ValueError("it has no element <gpx>")
            path.extend(name[:-3] + step for step in ("gpx", "trk", "trkseg", "trkpt", "time", " "))
        if depth == along and name == path[along]:
            along += 1
            if along == _TIME_DEPTH:
                parser.CharacterDataHandler = text.append
            elif along == _POINT_DEPTH:
                latitudes.append(attributes.get("lat"))
                longitudes.append(attributes.get("lon"))
            elif along == _TRACK_DEPTH:
                tracks.append(len(times))
        elif along < _POINT_DEPTH and not aside:
            if _local(name) == "trkpt":
                strays.append(parser.CurrentLineNumber)
            elif _local(name) == "extensions":
                aside = depth
        depth += 1

    def end(_: str) -> None:
        nonlocal depth, along, aside
        depth -= 1
        if depth == aside:
            aside = 0
        if depth < along:
            along = depth
            if depth == _TIME_DEPTH - 1:
                parser.CharacterDataHandler = None
            elif depth == _POINT_DEPTH - 1:
                times.append("".join(text))
                text.clear()

    def refuse(name: str, system: str | None, public: str | None, inside: bool) -> None:
        raise ValueError("it declares a document type (DOCTYPE), and GPX has none")

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = begin, end, refuse
    for start in range(0, len(content), _CHUNK):
        parser.Parse(content[start : start + _CHUNK])
        if start - parser.CurrentByteIndex > _LONGEST:
            raise ValueError(f"line {parser.CurrentLineNumber:,} begins a tag or comment of more than 16 MB")
    parser.Parse(b"", True)
    return points


def _local(name: str) -> str:
    """The name without its namespace or prefix."""
    return re.split("[\n:]", name)[-1]


def as_times(texts: Sequence[str]) -> np.ndarray:
    """Times in UTC, as datetime64[ns]; NaT where there is none, or none that nanoseconds can count."""
    iso = pc.ascii_upper(pc.ascii_trim_whitespace(pa.array(texts, pa.large_string())))
    iso = pc.if_else(pc.match_substring_regex(iso, _TIME), iso, None)
    times = _from_iso(iso)
    odd = np.flatnonzero(np.isnat(times) & iso.is_valid().to_numpy(zero_copy_only=False))
    if len(odd):  # what XML or receivers write, and pandas does not read
        iso = pc.replace_substring_regex(iso.take(pa.array(odd)), _SMALLER, r"\1")
        midnight, leap = (pc.match_substring_regex(iso, kind).to_numpy(zero_copy_only=False) for kind in _BEYOND)
        iso = pc.replace_substring_regex(pc.replace_substring_regex(iso, _BEYOND[0], r"\100\2"), _BEYOND[1], r"\159")
        times[odd] = _from_iso(iso) + (midnight * 86_400 + leap).astype("m8[s]")
    return times


def _from_iso(texts: pa.Array) -> np.ndarray:
    """Times of ISO 8601, in UTC where no zone is written."""
    times = pd.DatetimeIndex(pd.to_datetime(texts.to_pandas(), format="ISO8601", utc=True, errors="coerce"))
    countable = times.where((times.year >= 1678) & (times.year <= 2261))
    return pd.DatetimeIndex(countable).as_unit("ns").asi8.view("M8[ns]")


def as_degrees(texts: Sequence[str | None], name: str) -> pa.Array:
    """Numbers, null where there is none; what is no number, such as 45,7, is refused."""
    written = pc.ascii_trim_whitespace(pa.array(texts, pa.large_string()))
    numeric = pc.match_substring_regex(written, _NUMBER).fill_null(True).to_numpy(zero_copy_only=False)
    if not numeric.all():
        point = f"track point {int(numeric.argmin()) + 1:,}"
        raise ValueError(f"{name!r} is not GPX: {point} has a coordinate that is no number such as 12.5.")
    return pc.utf8_ltrim(written, "+").cast(pa.float64())
