"""The columns of a table that hold user, time and location: which they are, and what their values mean."""

import re
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.io.batch import DroppedRecords
from promesse_geo.messages import counted
from promesse_geo.traces.columns import KNOWN_TIMES, KNOWN_USERS, Name, Names, find_column

KNOWN_LONGITUDES = ("lng", "lon", "long", "longitude", "location-long", "x")
KNOWN_LATITUDES = ("lat", "latitude", "location-lat", "y")
_KNOWN = {"user", *KNOWN_USERS, *KNOWN_TIMES, *KNOWN_LONGITUDES, *KNOWN_LATITUDES}
_LIKE_A_VALUE = re.compile(r"[-+.,(\s]*\d|[^(]*\(.*\d")  # a number, a time, or a geometry as text
BY_NAME = ("file", "folder")
"""Values of `user` that take the user from the file's name or its folder's instead of from a column."""

MISSING = ("NA", "NaN", "nan", "NULL", "null", "\\N")
"""What programs write where a number or a time is missing; a user may be called so."""

_KEYS = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    *(pa.types.is_integer, pa.types.is_null),
)
_WITH_ZONE = r"[T ].*(?:[Zz]|[-+]\d\d(?::?\d\d)?)$"
_WHOLE = r"^(?:0|-?[1-9][0-9]{0,17})$"
_FIRST, _LAST = (np.datetime64(f"{year}-01-01", "s").astype(float) for year in (1990, 2100))
_FIRST_YEAR, _LAST_YEAR = 1678, 2261  # which nanoseconds can count
_UNITS = {
    "s": ("seconds", 1),
    "ms": ("milliseconds", 10**3),
    "us": ("microseconds", 10**6),
    "ns": ("nanoseconds", 10**9),
}


class Wanted(NamedTuple):
    """What `read_table` was asked to read, and whether the first line may hold values, as only in text it can."""

    user: Name
    time: Name
    lon: str | None
    lat: str | None
    crs: Any
    layer: str | None
    lenient: bool
    may_lack_header: bool = False


class Columns(NamedTuple):
    """Records of a file: coordinates in its CRS (NaN without a point), times, and users if it has them.

    `notes` says which unit numeric times were given, `dropped` counts what could not be read, by reason, `is_text` is
    True for formats without types, and `is_ended` is False for a text file without a newline at its end.
    """

    x: np.ndarray
    y: np.ndarray
    times: pd.Series
    users: pd.Categorical | None
    crs: Any
    names: Names
    notes: tuple[str, ...] = ()
    dropped: tuple[DroppedRecords, ...] = ()
    has_z: bool = False
    is_text: bool = False
    is_ended: bool = True


def find_user_and_time(columns: Sequence[str], wanted: Wanted, *, geometry: str = "geometry") -> Names:
    """Say which columns hold the user and the time."""
    if wanted.user in BY_NAME and wanted.user in columns:
        raise ValueError(
            f"user={wanted.user!r} takes the user from the {wanted.user}'s name, but there is a column of that name "
            "too. Rename the column."
        )
    by_name = wanted.user is None or wanted.user in BY_NAME
    return Names(
        user=None if by_name else _find(columns, wanted.user, wanted, role="user", known=KNOWN_USERS),
        time=_find(columns, wanted.time, wanted, role="time", known=KNOWN_TIMES),
        geometry=geometry,
    )


def find_coordinates(columns: Sequence[str], wanted: Wanted) -> tuple[str, str, Any]:
    """Say which columns hold x and y, and in which CRS they are."""
    across = _find(columns, wanted.lon or ..., wanted, role="lon", known=KNOWN_LONGITUDES)
    along = _find(columns, wanted.lat or ..., wanted, role="lat", known=KNOWN_LATITUDES)
    if wanted.crs is None and (_folded([across]) == ["x"] or _folded([along]) == ["y"]):
        raise ValueError("the coordinates are x and y: say in which CRS, as in crs='EPSG:32631' (--crs EPSG:32631).")
    return across, along, "EPSG:4326" if wanted.crs is None else wanted.crs


def _find(columns: Sequence[str], name: Name, wanted: Wanted, *, role: str, known: tuple[str, ...]) -> Any:
    """Return the column that has a role, as `find_column` does; known names may be in capitals or between blanks."""
    folded = _folded(columns)
    looked = [
        low if name is ... and low in (role, *known) else column for column, low in zip(columns, folded, strict=True)
    ]
    sought = {role, *known} if name is ... else {name}
    if wanted.may_lack_header and columns and sought.isdisjoint(looked) and not _are_names(columns, wanted):
        raise ValueError(
            f"No {role} column was found: the first line names none of its {counted(len(columns), 'column')} as "
            "user, time, lon or lat (it is not shown, for it may be a record). Say which is which, as in "
            f"{role}='…' (--{role} …); if there is no header, add one."
        )
    try:
        found = find_column(looked, name, role=role, known=known)
    except (ValueError, KeyError) as error:
        raise type(error)(_for_readers(error.args[0])) from None
    return columns[looked.index(found)]


def _are_names(columns: Sequence[str], wanted: Wanted) -> bool:
    """Whether these may be listed in a message: the first record of a file without a header may not."""
    asked = {wanted.user, wanted.time, wanted.lon, wanted.lat}
    known = [column in asked or low in _KNOWN for column, low in zip(columns, _folded(columns), strict=True)]
    return any(known) and not any(map(_LIKE_A_VALUE.match, columns))


def _folded(columns: Sequence[str]) -> list[str]:
    return [column.strip().casefold() for column in columns]


def _for_readers(words: str) -> str:
    """The complaint with a reader's cure."""
    return words + (" If each file is a user, pass user='file' (--user file)." if "user=None" in words else "")


def as_users(column: pa.ChunkedArray, name: Hashable) -> pd.Categorical:
    """Users as categories, for there are few beside the records."""
    is_encoded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if is_encoded else column.type
    if not any(is_kind(kind) for is_kind in _KEYS):
        raise TypeError(
            f"the user column {name!r} must hold text or integers, of one kind. It holds values of the kind '{kind}'. "
            "Write them as text."
        )
    encoded = column if is_encoded else column.dictionary_encode()
    chunk = encoded.unify_dictionaries().combine_chunks()
    codes = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return pd.Categorical.from_codes(codes, pd.Index(chunk.dictionary.to_pandas()))


def as_integers(users: pd.Categorical) -> pd.Categorical:
    """Integers instead of text, where every key is written as an integer is: 017 and 1e5 are text."""
    keys = pa.array(users.categories, pa.string())
    if not len(keys) or not pc.all(pc.match_substring_regex(keys, _WHOLE)).as_py():
        return users
    return pd.Categorical.from_codes(users.codes, pd.Index(keys.cast(pa.int64()).to_numpy()))


def parse_times(column: pa.ChunkedArray, name: Hashable) -> tuple[pd.Series, tuple[str, ...]]:
    """Times of a column, NaT where there is none; and what to say about how its numbers were taken."""
    column = _as_written(column)
    kind = column.type
    notes: tuple[str, ...] = ()
    if column.null_count == len(column) and not pa.types.is_timestamp(kind):
        times = pd.Series(pd.DatetimeIndex([None] * len(column), tz="UTC"))
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        times = _from_text(column.to_pandas(), name)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        times, unit = _from_numbers(column, name)
        notes = (f"the numbers of the time column {name!r} as {unit} since 1970-01-01 UTC",)
    elif pa.types.is_timestamp(kind):
        times = column.to_pandas()
    else:
        raise TypeError(
            f"the time column {name!r} must hold datetimes. It holds values of the kind '{kind}'. Write "
            "them as 2008-05-17T10:00:04Z."
        )
    if not all(_FIRST_YEAR <= time.year <= _LAST_YEAR for time in (times.min(), times.max())):  # or there are none
        times = times.where(times.dt.year.between(_FIRST_YEAR, _LAST_YEAR))
    times.name = name
    return times, notes


def _as_written(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without the words for missing times; whole numbers where there is nothing else; nothing encoded."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    column = without_words(column)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


def without_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text, missing where there is a word that says so."""
    missing = pc.is_in(column, value_set=pa.array(MISSING, column.type))
    return pc.if_else(missing, pa.scalar(None, column.type), column)


def _from_text(column: pd.Series, name: Hashable) -> pd.Series:
    """ISO 8601, in UTC where there are offsets: each text says its own."""
    times = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce")
    zoned = column[times.notna()].str.contains(_WITH_ZONE)
    if zoned.any() and not zoned.all():
        raise ValueError(f"the time column {name!r} mixes times with and without a zone. Write them in one way.")
    if column.notna().any() and times.isna().all():
        raise ValueError(
            f"the time column {name!r} holds texts that are no times such as 2008-05-17T10:00:04Z. Write "
            "them so: the year first, then month and day."
        )
    return times if zoned.any() else times.dt.tz_localize(None)


def _from_numbers(column: pa.ChunkedArray, name: Hashable) -> tuple[pd.Series, str]:
    """Seconds, milliseconds, microseconds or nanoseconds since 1970, whichever is between 1990 and 2100."""
    numbers = column.fill_null(0).to_numpy()
    present = numbers[np.isfinite(numbers) & (numbers != 0)]
    middle = float(np.median(present)) if len(present) else 0.0
    unit = next((unit for unit, (_, size) in _UNITS.items() if _FIRST <= middle / size < _LAST), None)
    if unit is None:
        raise ValueError(
            f"the time column {name!r} holds numbers that are no seconds, milliseconds, microseconds or nanoseconds "
            "since 1970 in the years 1990 to 2099. Write them so, or as text."
        )
    word, size = _UNITS[unit]
    if pa.types.is_floating(column.type) and unit != "ns":  # fractions of a second down to the microsecond
        numbers, unit, size = np.round(numbers * (10**6 / size)), "us", 10**6
    good = (numbers >= _FIRST * size) & (numbers < _LAST * size)
    times = np.where(good, numbers, 0).astype(np.int64).view(f"M8[{unit}]")
    times[~good] = np.datetime64("NaT")
    return pd.Series(pd.DatetimeIndex(times).tz_localize("UTC")), word
