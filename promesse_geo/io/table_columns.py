"""Find the columns of user, time and location in a table, and read users."""

import json
import re
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from datetime import tzinfo
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyproj import CRS

from promesse_geo.io.batch import DroppedRecords
from promesse_geo.io.sources import BY_PLACE
from promesse_geo.io.table_segments import Segments
from promesse_geo.io.table_times import in_zone
from promesse_geo.io.text_layout import TextOptions
from promesse_geo.messages import counted, warn
from promesse_geo.traces.columns import Name, Names, find_columns, read_protection, warn_lost_segment
from promesse_geo.traces.crs import read_crs
from promesse_geo.traces.known_columns import KNOWN, candidates_for, find_trips, fold
from promesse_geo.traces.marks import Marked
from promesse_geo.traces.missing_columns import renamed_error

_KNOWN = {fold(name) for ranks in KNOWN.values() for rank in ranks for name in rank}
_LIKE_A_VALUE = re.compile(r"[-+.,(\s]*\d|[^(]*\(.*\d")  # a number, a time, or a geometry as text
BY_NAME = BY_PLACE
"""Values of `user` that take the user from the name of the file or its folder instead of a column."""


_KEYS = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    *(pa.types.is_integer, pa.types.is_null),
)
_WHOLE = r"^(?:0|-?[1-9][0-9]{0,17})$"
_DEGREES = (360, 90)


class IfFits(str):
    """The name of a column, or a CRS, that counts only for the files that have the column or need the CRS.

    Of two inputs, or the files of a folder, one may have it and another not.
    """

    is_used = False
    """Whether it counted for a file."""

    def used(self) -> str:
        """Return it as plain text, which pyproj needs, and note that it counted."""
        self.is_used = True
        return str(self)


class ReadOptions(NamedTuple):
    """Arguments of `read_table`, and whether the file may lack a header, as only text can."""

    user: Name
    time: Name
    lon: str | None
    lat: str | None
    crs: Any
    layer: str | None
    lenient: bool
    may_lack_header: bool = False
    segment: Name = ...
    several_files: bool = False
    tz: tzinfo | None = None
    text: TextOptions = TextOptions()
    empty: tuple[str, ...] = ()
    """Columns of users that are empty in all rows."""

    def fitting(self, columns: Collection[str]) -> "ReadOptions":
        """Return the options for a file with these columns, without names that count only for others."""
        defaults: dict[str, Any] = {"user": ..., "time": ..., "lon": None, "lat": None, "segment": ...}
        names = {role: getattr(self, role) for role in defaults}
        names = {role: name for role, name in names.items() if isinstance(name, IfFits)}
        for name in names.values():
            name.is_used = name.is_used or name in columns
        return self._replace(**{role: defaults[role] for role, name in names.items() if name not in columns})


class Columns(NamedTuple):
    """Records of a file: coordinates in its CRS (NaN without a point), times, and users if it has them.

    `notes` names the unit assumed for numeric times, `dropped` counts what could not be read, by reason, `is_text` is
    True for formats without types, `written` is the offset of times in text, which are converted to UTC, and `is_ended`
    is False for a text file without a newline at its end. `name` and `file_user` are the path and, if the file's name
    gives it, the user. `protection` is as for `Traces`. `marked` has the rows that are left if a column marks some as
    bad, and `by_clock` which times are missing for a change of the clocks. `line_of` finds the line of a row in a text.
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
    name: str = ""
    file_user: str | None = None
    protection: dict[str, Any] | None = None
    segments: Segments | None = None
    marked: Marked | None = None
    written: tzinfo | None = None
    by_clock: np.ndarray | None = None
    line_of: Callable[[int], int] | None = None

    def in_zone(self, zone: tzinfo | None) -> "Columns":
        """Return the records with times in a zone, as `table_times.in_zone` does."""
        times, by_clock = in_zone(self.times, zone, None if self.users is None else self.users.codes)
        return self._replace(times=times, by_clock=by_clock)

    def without(self, marked: Marked | None) -> "Columns":
        """Return the records that no column marks as bad."""
        if marked is None:
            return self
        kept = marked.kept
        return self._replace(
            x=self.x[kept],
            y=self.y[kept],
            times=self.times.iloc[kept].reset_index(drop=True),
            users=None if self.users is None else self.users.take(kept).remove_unused_categories(),
            segments=None if self.segments is None else self.segments.take(kept),
            marked=marked,
        )


_BY_CLOCK = "a local time that a change of the clocks skips or repeats: write its offset from UTC"


def split_no_time(files: Sequence[Columns], invalid: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Return masks of invalid records of files by reason, with a reason of its own for changes of the clocks."""
    if "no time" not in invalid or all(file.by_clock is None for file in files):
        return invalid
    masks = [np.zeros(len(file.x), bool) if file.by_clock is None else file.by_clock for file in files]
    by_clock = np.concatenate(masks) & invalid["no time"]
    return {**invalid, "no time": invalid["no time"] & ~by_clock, _BY_CLOCK: by_clock}


_ROLES = ("user", "time", "segment")  # in the order in which files name them
NO_ROLES: Mapping[str, Any] = MappingProxyType({})
"""The columns that a file without metadata names."""
METADATA_KEY = "promesse_geo"
"""Key of the metadata of GeoParquet, GeoPackage and FlatGeobuf files: the mechanism's name and public parameters, and
the columns of user, time, and segments if there are any, as JSON."""


def parse_protection(text: str | bytes | None) -> dict[str, Any] | None:
    """Return the mechanism that the text under `METADATA_KEY` of a file names; None if it names none."""
    try:
        return read_protection({"mechanism": json.loads(text or "null")})
    except ValueError:
        return None


def parse_roles(text: str | bytes | None) -> dict[str, str | None]:
    """Return the columns by role that the text under `METADATA_KEY` of a file names: user, time, and segment.

    A user that is None is a single trace without a column of users. Files of older versions name no user and no time.
    """
    try:
        about = json.loads(text or "null")
    except ValueError:
        return {}
    known = about if isinstance(about, dict) else {}
    roles = {role: known[role] for role in _ROLES if role in known}
    return {role: name for role, name in roles.items() if isinstance(name, str) or (name is None and role == "user")}


def check_names_column(user: Name) -> None:
    """Raise ValueError for users that are names of files, which a table in memory has not."""
    if isinstance(user, str) and user in BY_NAME:
        raise ValueError(f"user={user!r} takes the user from the name of a file; a table has none. Name its column.")


def find_names(
    columns: Sequence[str], options: ReadOptions, *, geometry: str | None = None, roles: Mapping[str, Any] = NO_ROLES
) -> Names:
    """Return the names of the columns of user, time and segment, and of the geometry or of longitude and latitude.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns, without that of the geometry.
    options : ReadOptions
        The names that are specified.
    geometry : str, optional
        Name of the geometry; None if longitude and latitude are columns.
    roles : mapping of str to str or None
        The columns by role that the metadata of the file names, as `parse_roles` returns them.

    Raises
    ------
    KeyError, ValueError
        As `find_columns`, with words for files.
    """
    options = options.fitting(columns)
    if options.user in BY_NAME and options.user in columns:
        raise ValueError(
            f"user={options.user!r} takes the user from the name of the {options.user}, but there is a column of that "
            "name too. Rename the column."
        )
    existing = {role: name for role, name in roles.items() if name is None or name in columns}
    if existing.get("user") in options.empty:
        del existing["user"]
    by_name = options.user is None or options.user in BY_NAME
    user = None if by_name else existing.get("user", ...) if options.user is ... else options.user
    asked = {"user": user, "time": existing.get("time", ...) if options.time is ... else options.time}
    if options.segment is not ...:
        asked["segment"] = options.segment
    if geometry is None:
        asked |= {"lon": options.lon or ..., "lat": options.lat or ...}
    _check_header(columns, asked, options)
    try:
        found = find_columns(columns, asked, empty=options.empty)
    except (ValueError, KeyError) as error:
        words = _for_files(error.args[0], several=options.several_files)
        if options.text.columns is not None:
            words += " The names are those that columns= (--columns) specifies."
        raise renamed_error(error, words) from None
    segment = found.get("segment")
    if options.segment is ...:
        segment = existing.get("segment") or (
            find_trips(columns, found["user"], but=options.empty) if options.user is ... else None
        )
    names = Names(
        user=found["user"],
        time=found["time"],
        geometry=geometry or "geometry",
        segment=segment,
        lon=found.get("lon"),
        lat=found.get("lat"),
    )
    if options.segment is ...:
        warn_lost_segment(roles, columns, remedy="pass its name as segment= (--segment)")
        _warn_unused_segment(names.unused_segment([name for name in columns if name not in options.empty]))
    return names


def _check_header(columns: Sequence[str], asked: Mapping[str, Name], options: ReadOptions) -> None:
    """Raise ValueError if a column is not there and the first line of a text may be a record."""
    if not options.may_lack_header or not columns or _are_names(columns, options):
        return
    for role in sorted(asked, key=("lon", "lat", "user", "time", "segment").index):
        name = asked[role]
        is_there = bool(candidates_for(columns, KNOWN[role])) if name is ... else name is None or name in columns
        if not is_there:
            raise ValueError(
                f"No {role} column was found: the first line names none of its {counted(len(columns), 'column')} as "
                "user, time, lon or lat (it is not shown, since it may be a record). Specify the columns, as in "
                f"{role}='…' (--{role} …); if there is no header, name the columns in their order, as in "
                "columns='user,time,lon,lat' (--columns user,time,lon,lat)."
            )


def _for_files(words: str, *, several: bool) -> str:
    """Add to an error of a missing user that the names of files may be the users: first of all if there are several."""
    before, single, after = words.partition(" If all is a single trace")
    if not single:
        return words
    by_file = " If each file is a user, pass user='file' (--user file)"
    by_folder = (
        ", if each folder is one, user='folder' (--user folder), or user='folder-2' (--user folder-2) one higher"
    )
    return before + (f"{by_file}{by_folder}.{single}{after}" if several else f"{single}{after}{by_file}.")


def _warn_unused_segment(segment: Hashable | None) -> None:
    if segment is not None:
        warn(
            f"The column {segment!r} is not used. If it numbers segments of traces, with breaks between them, pass "
            f"segment={segment!r} (--segment {segment})."
        )


def crs_of(names: Names, options: ReadOptions) -> Any:
    """Return the CRS of columns of coordinates; raise ValueError if they are x and y, and it is not specified."""
    if fold(names.lon) == "x" or fold(names.lat) == "y":
        if options.crs is None:
            raise ValueError(
                "the coordinates are x and y: specify their CRS, as in crs='EPSG:32631' (--crs EPSG:32631)."
            )
        return needed_crs(options)
    return "EPSG:4326" if options.crs is None else options.crs


def needed_crs(options: ReadOptions) -> Any:
    """Return the CRS that is specified, for a file that needs one."""
    return options.crs.used() if isinstance(options.crs, IfFits) else options.crs


def settled_crs(crs: Any, x: np.ndarray, y: np.ndarray) -> CRS:
    """Return the CRS of positions; a projected one that counts only where it fits is not that of degrees."""
    if not isinstance(crs, IfFits):
        return read_crs(crs)
    are_degrees = not (np.any(np.abs(x) > _DEGREES[0]) or np.any(np.abs(y) > _DEGREES[1]))
    return read_crs("EPSG:4326" if are_degrees and read_crs(str(crs)).is_projected else crs.used())


def agrees(crs: Any, of_file: Any) -> bool:
    """Return whether a CRS that is specified is that of a file, or does not count for the file."""
    if not isinstance(crs, IfFits):
        return bool(read_crs(crs).equals(of_file, ignore_axis_order=True))
    if agrees(str(crs), of_file):
        crs.used()
    return True


def as_segments(table: pa.Table, names: Names) -> Segments | None:
    """Return the segments of a table; None if it has no such column."""
    return None if names.segment is None else Segments.of_column(table.column(names.segment), names.segment)


def _are_names(columns: Sequence[str], options: ReadOptions) -> bool:
    """Whether a message may list the columns: not if they may be the first record of a file without a header."""
    specified = {options.user, options.time, options.lon, options.lat}
    known = [column in specified or fold(column) in _KNOWN for column in columns]
    return any(known) and not any(map(_LIKE_A_VALUE.match, columns))


def as_users(column: pa.ChunkedArray, name: Hashable) -> pd.Categorical:
    """Return the users of a column as categories.

    Parameters
    ----------
    column : pyarrow.ChunkedArray of length n
        Text or integers, which may be dictionary-encoded.
    name : hashable
        Name of the column, for messages.

    Returns
    -------
    pandas.Categorical of length n
        Missing users have code -1.

    Raises
    ------
    TypeError
        If the column holds values of another type.
    """
    check_user_type(column.type, name)
    is_encoded = pa.types.is_dictionary(column.type)
    kind = value_type(column.type)
    column = column.cast(pa.string()) if pa.types.is_null(column.type) else column
    if is_encoded and not _has_distinct_values(column):
        column, is_encoded = column.cast(kind), False
    encoded = column if is_encoded else column.dictionary_encode()
    chunk = encoded.unify_dictionaries().combine_chunks()
    codes = chunk.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)  # may be unsigned
    return pd.Categorical.from_codes(codes, pd.Index(chunk.dictionary.to_pandas()))


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a column, which may be dictionary-encoded."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def check_user_type(kind: pa.DataType, name: Hashable) -> None:
    """Raise TypeError if a column of this type holds no users."""
    kind = value_type(kind)
    if not any(is_kind(kind) for is_kind in _KEYS):
        raise TypeError(
            f"the user column {name!r} must hold text or integers, of one kind. It holds values of the kind '{kind}'. "
            "Write them as text."
        )


def _has_distinct_values(column: pa.ChunkedArray) -> bool:
    """Whether the dictionaries of a column have each value once, and none is missing."""
    dictionaries = [chunk.dictionary for chunk in column.chunks]
    return all(not each.null_count and len(each.unique()) == len(each) for each in dictionaries)


def as_integers(users: pd.Categorical) -> pd.Categorical:
    """Convert text to integers if every key is the text of an integer: 017 and 1e5 are not."""
    keys = pa.array(users.categories, pa.string())
    if not len(keys) or not pc.all(pc.match_substring_regex(keys, _WHOLE)).as_py():
        return users
    return pd.Categorical.from_codes(users.codes, pd.Index(keys.cast(pa.int64()).to_numpy()))
