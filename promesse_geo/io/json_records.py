"""Records as JSON objects, in an array or one a line: Traccar, pandas, databases and web services."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from promesse_geo.io.batch import Part
from promesse_geo.io.contents import Head
from promesse_geo.io.json_items import json_items
from promesse_geo.io.positions import Positions, as_number, as_user, position_format
from promesse_geo.io.table_times import parse_times
from promesse_geo.traces.columns import find_column
from promesse_geo.traces.known_columns import LATITUDES, LONGITUDES, TIMES, USERS, Ranks, candidates_for
from promesse_geo.traces.marks import Marked, find_marked, find_marks

ENDINGS = (".json", ".json.gz", ".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz")
_ROLES: Mapping[str, Ranks] = {"lon": LONGITUDES[:-1], "lat": LATITUDES[:-1], "time": TIMES}  # x and y need a CRS
_LARGEST = 1 << 63


def _parse(name: str, content: bytes, user: str | None, *, by_device: bool) -> Iterator[Part]:
    """Yield the records of a file."""
    items = [item for _, item in json_items(name, content)]
    positions = Positions(name, noun="record")
    records = {place: item for place, item in enumerate(items, 1) if isinstance(item, dict)}
    if not records:
        raise ValueError(f"{name!r} holds no JSON objects.")
    columns = list(dict.fromkeys(key for record in records.values() for key in record))
    try:
        lon, lat, time = (find_column(columns, ..., role=role, known=known) for role, known in _ROLES.items())
        device = find_column(columns, ..., role="user", known=USERS) if candidates_for(columns, USERS) else None
        marked = _find_marked(list(records.values()), find_marks(columns))
        times, positions.notes = _read_times([record.get(time) for record in records.values()], time)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name!r}: {error.args[0]}") from error
    for row, ((place, record), moment) in enumerate(zip(records.items(), times, strict=True)):
        if marked is not None and marked.bad[row]:
            positions.leave_out(marked.reason, place=place)
        else:
            named = as_user(record.get(device)) if by_device and device is not None else None
            positions.add(moment, as_number(record.get(lat)), as_number(record.get(lon)), place=place, user=named)
    for place in sorted(set(range(1, len(items) + 1)) - set(records)):
        positions.leave_out("no JSON object", place=place)
    yield from positions.parts(user)


def _find_marked(records: Sequence[Mapping[str, Any]], marks: Sequence[str]) -> Marked | None:
    """Return which records keys mark as bad, by the rule of columns."""
    values = {mark: [record.get(mark) for record in records] for mark in marks}
    texts = {mark: [None if each is None else str(each) for each in column] for mark, column in values.items()}
    return find_marked(pa.table({mark: pa.array(column, pa.string()) for mark, column in texts.items()}), marks)


def _read_times(values: Sequence[Any], name: str) -> tuple[list[int | None], Sequence[str]]:
    """Return times as nanoseconds since 1970, by the rules of tables, and notes; those without a zone are in UTC."""
    kept = [value if _is_time(value) else None for value in values]
    is_mixed = any(isinstance(value, str) for value in kept)
    column = pa.array([None if value is None else str(value) for value in kept] if is_mixed else kept)
    times, notes = parse_times(pa.chunked_array([column]), name)
    moments = pd.DatetimeIndex(times).as_unit("ns")
    pairs = zip(moments.asi8.tolist(), moments.isna(), strict=True)
    return [None if missing else moment for moment, missing in pairs], notes


def _is_time(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST
    return is_number or isinstance(value, str)


def _is_records(head: Head, name: str) -> bool:
    """Return whether the first object of a file names longitude, latitude and time."""
    text = head.content.decode("utf-8-sig", errors="ignore").lstrip()
    try:
        first, _ = json.JSONDecoder().raw_decode(text.removeprefix("[").lstrip())
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and all(candidates_for(list(first), known) for known in _ROLES.values())


FORMAT = position_format(
    "json",
    "JSON records (Traccar, pandas)",
    _parse,
    _is_records,
    endings=ENDINGS,
    has_devices=True,
    remarks="""\
Objects in an array or one a line, as Traccar and `DataFrame.to_json(orient="records")` write them, with longitude,
latitude (EPSG:4326) and time under the names that `read_table` knows. Times are as in `read_table`; those without a
zone are in UTC. The user of a record is what it names, or the file, its name without extension. What Traccar marks as
not valid is left out with a counted warning.
""",
)
