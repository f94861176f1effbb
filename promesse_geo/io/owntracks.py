r"""OwnTracks: the Recorder's .rec files, and the app's messages as JSON or JSON lines.

Examples
--------
>>> import promesse_geo as pg, pathlib, tempfile
>>> file = pathlib.Path(tempfile.mkdtemp()) / "2024-03.rec"
>>> line = '2024-03-04T08:00:00Z\t*\t{"_type": "location", "tid": "an", "lat": 45.7, "lon": 4.8, "tst": 1709539200}'
>>> _ = file.write_text(line + chr(10))
>>> list(pg.read_file(file).user)
['an']
"""

import re
from collections.abc import Iterator
from typing import Any

from promesse_geo.io.batch import Part
from promesse_geo.io.contents import Head
from promesse_geo.io.json_items import json_items
from promesse_geo.io.positions import Positions, as_number, as_user, from_seconds, get, items, position_format

ENDINGS = (".rec", ".rec.gz", ".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
_LINE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*\t([^\t]*)\t(.*)", re.DOTALL)
_REC = re.compile(rb"(?:[\xef\xbb\xbf\s]*)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*\t[^\t\n]*\t\{.*\"_type\"")
_JSON = re.compile(rb'[\xef\xbb\xbf\s]*[\[{].*"_type"\s*:\s*"(location|lwt|transition|encrypted)"', re.DOTALL)
_FIELDS = (b'"lat"', b'"lon"', b'"tst"')


def _parse(name: str, content: bytes, user: str | None, *, by_device: bool) -> Iterator[Part]:
    """Yield the locations of a file."""
    is_rec = _REC.match(content) is not None
    positions = Positions(name, noun="line" if is_rec else "message")
    messages = _lines(name, content) if is_rec else enumerate(_messages(name, content), 1)
    for place, message in messages:
        kind = get(message, "_type")
        if kind == "location":
            device = _device(message) if by_device else None
            latitude, longitude = as_number(message.get("lat")), as_number(message.get("lon"))
            positions.add(from_seconds(message.get("tst")), latitude, longitude, place=place, user=device)
        elif kind == "encrypted":
            positions.leave_out("encrypted", place=place)
    yield from positions.parts(user)


def _lines(name: str, content: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the message of each line of a .rec file."""
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{name!r} is cut or damaged: line {number:,} is not a time, a topic and a message.")
        if match[2].lstrip().startswith((b"{", b"[")):  # other topics hold any text
            try:
                messages = list(_messages(name, match[2]))
            except ValueError as error:
                raise ValueError(f"{name!r} is cut or damaged: the message in line {number:,} is not JSON.") from error
            yield from ((number, message) for message in messages)


def _messages(name: str, content: bytes) -> Iterator[Any]:
    """Yield the messages of JSON; the Recorder's answers hold them in "data"."""
    for key, item in json_items(name, content, arrays=("data",)):
        if key != "{}" or "_type" in item:
            yield from items(item) or [item]


def _device(message: dict[str, Any]) -> str | None:
    """Return the user of a location: that of its topic, else the tracker id."""
    topic = message.get("topic")
    levels = topic.split("/") if isinstance(topic, str) else []
    return as_user(levels[1] if len(levels) > 2 else None) or as_user(message.get("tid"))


def is_owntracks(head: Head, name: str) -> bool:
    """Return whether a file begins with a line of a .rec file, or a location as JSON."""
    start = head.content
    is_json = _JSON.match(start) is not None and all(field in start for field in _FIELDS)
    return _REC.match(start) is not None or (is_json and b'"FeatureCollection"' not in start)


FORMAT = position_format(
    "owntracks",
    "OwnTracks",
    _parse,
    is_owntracks,
    endings=ENDINGS,
    has_devices=True,
    remarks="""\
`.rec` files, messages as JSON lines or an array, and answers of the Recorder. Only messages of the type "location" are
positions; encrypted ones are left out with a counted warning. The user of a location is that of the topic
(`owntracks/<user>/<device>`), else the tracker id (`tid`), else the file (its name without extension). In the
Recorder's store, `rec/<user>/<device>/<month>.rec`, it is `user="folder-2"`.
""",
)
