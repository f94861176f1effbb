"""Find the columns that hold user, time, segments and coordinates by their names."""

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from shlex import quote
from types import EllipsisType
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo.messages import listed, shown

Name = Hashable | None | EllipsisType
"""The name of a column; None if there is none; ... to detect it."""

Ranks = tuple[tuple[str, ...], ...]
"""Known names of a role; those of an earlier rank come first. Case, blanks, `-_.#:` and a unit in brackets at the end
do not count.
"""

TRIPS = ("trip_id", "track_id", "traj_id", "trajectory_id", "track_fid")
"""Names of columns of trajectories or trips: segments of their user if there is a user column, else the users."""

USERS: Ranks = (
    ("user",),
    (
        *("uid", "user_id", "username", "participant_id", "participant", "pid", "person_id"),
        *("individual-local-identifier", "Teilnehmer", "Benutzer", "Nutzer", "Proband", "Person"),
        *("utilisateur", "usuario"),
    ),
    ("subject_id", "subject", "animal_id", "rider_id", "rider", "driver_id", "driver", "Fahrer"),
    ("device_id", "tracker_id", "imei"),
    ("device",),
    ("tid",),
    ("MMSI", "icao24", "taxi_id", "vehicle_id", "cab_id", "bus_id"),
    TRIPS,
)
"""Persons and animals (in English, German, French and Spanish), devices, vehicles and trips.

`id` is none of them: it often numbers the records.
"""

TIMES: Ranks = (
    ("time",),
    ("datetime", "timestamp", "tracked_at", "ts", "tst", "BaseDateTime", "fixtime"),
    ("t",),
    ("UTC time", "isotst", "Zeitstempel", "Zeitpunkt", "Zeit", "Datum/Uhrzeit", "horodatage", "fecha_hora"),
    ("recorded_at", "measured_at", "observed_at", "time_utc", "timestamp_utc", "utc", "gps_time", "gps_timestamp"),
    ("unix_time", "epoch"),
    ("created_at",),
    ("Uhrzeit", "heure", "hora", "time_of_day"),  # beside a date
    ("date", "Datum", "fecha"),
)

SEGMENTS = ("segment", "segment_number", "part", "part_number")
"""Names of the column of segments that results get: the first that is free."""

ROLES = "promesse"
"""Key in the `attrs` of frames and in the metadata of files: a mapping of role to the name of the column.

In `attrs` the mapping also has the mechanism that protected the data, under "mechanism".
"""

LONGITUDES: Ranks = (
    ("lon",),
    ("lng", "long", "longitude", "location-long", "double_longitude", "Längengrad", "Laengengrad", "longitud"),
    ("gps_longitude", "gps_lon", "gps_lng", "longitude_deg", "lon_deg", "longitude_wgs84", "lon_wgs84"),
    ("Länge", "Laenge"),  # also a length
    ("x",),
)
LATITUDES: Ranks = (
    ("lat",),
    ("latitude", "location-lat", "double_latitude", "Breitengrad", "latitud"),
    ("gps_latitude", "gps_lat", "latitude_deg", "lat_deg", "latitude_wgs84", "lat_wgs84"),
    ("Breite",),  # also a width
    ("y",),
)

KNOWN: dict[str, Ranks] = {"user": USERS, "time": TIMES, "lon": LONGITUDES, "lat": LATITUDES, "segment": ()}
"""Known names of columns by role."""

_IGNORED = re.compile(r"[\s_.#:-]+")
_UNIT = re.compile(r"(?<=[^\s(\[])\s*(?:\([^()]*\)|\[[^\[\]]*\])\s*$")
INDEX: Any = object()
"""Stands for the DatetimeIndex, which may have no name."""
_MISSING = "missing_columns"  # attribute of errors
_SHOWN = 7  # names that an error lists
_ALIKE = 0.75  # from 0 to 1, of names that differ by a letter or two
_WORD = re.compile(r"[A-ZÀ-Þ]?[a-zß-ÿ]+|[A-ZÀ-Þ]+")


@dataclass(frozen=True)
class Names:
    """Column names of a frame.

    Parameters
    ----------
    user, time : column name or None
        None if the frame has no such column.
    geometry : column name
        The active geometry.
    time_is_index : bool
        Whether the time is the index, named `time`.
    segment : column name or None
        The column of segments; None if the frame has no such column.
    lon, lat : column name or None
        The columns of coordinates of a table that is read; None if it has a geometry.
    times : tuple of column names
        The columns of dates and of times of day of a text, if `time` is one of two; else empty.
    """

    user: Hashable | None = "user"
    time: Hashable | None = "time"
    geometry: Hashable = "geometry"
    time_is_index: bool = False
    segment: Hashable | None = None
    lon: Hashable | None = None
    lat: Hashable | None = None
    times: tuple[Hashable, ...] = field(default=(), compare=False)

    def roles(self) -> dict[str, Hashable]:
        """Return the names of the columns or the index that hold user, time and segment, as far as they exist."""
        roles = {"user": self.user, "time": self.time, "segment": self.segment}
        return {role: name for role, name in roles.items() if name is not None}

    def with_segment(self, taken: Collection[Hashable] = ()) -> "Names":
        """Return the names with a column of segments: that of the data, else one that is free beside those `taken`."""
        if self.segment is not None:
            return self
        used = (self.user, self.time, self.geometry, *taken)
        return replace(self, segment=next(name for name in SEGMENTS if name not in used))

    def unused_segment(self, columns: Collection[Hashable]) -> Hashable | None:
        """Return the column that is named as the segments of results are, if there are no segments; None without one.

        If it is that of a result, whose `attrs` or metadata are lost, paths lead through what its breaks keep apart.
        """
        name = self.with_segment().segment
        return name if self.segment is None and name in columns else None


def find_names(frame: gpd.GeoDataFrame, *, user: Name = ..., time: Name = ..., segment: Name = ...) -> Names:
    """Return the names of the columns that hold user, time, segment and geometry.

    Parameters
    ----------
    frame : geopandas.GeoDataFrame
        The frame; it is not changed.
    user, time : column name, None or ...
        `...` detects the column: the one in `frame.attrs["promesse"]`, if it exists; 'user' and 'time', else the only
        one with a known name of the first rank that has any, else a DatetimeIndex. A column of users that is empty in
        all rows does not count. `user=None` if the frame is a single trace.
    segment : column name, None or ...
        `...` takes the one in `frame.attrs["promesse"]`, or that of trips beside a detected user of another rank.

    Returns
    -------
    Names

    Raises
    ------
    KeyError
        If a column does not exist.
    TypeError
        If a parameter cannot be the name of a column.
    ValueError
        If no column is found, several are possible, or a specified column of users is empty in all rows.
    """
    check_names({"user": user, "time": time, "segment": segment})
    if time is None:
        raise ValueError(
            "The 'time' parameter cannot be None: a trace needs times. Pass the name of the column, as in time='stamp'."
        )
    geometry, index = frame.active_geometry_name, frame.index
    columns = [column for column in frame.columns if column != geometry]
    indexed = isinstance(index, pd.DatetimeIndex)
    roles = existing_roles(frame)
    asked = {role: roles.get(role, ...) if name is ... else name for role, name in (("user", user), ("time", time))}
    is_index = indexed and asked["time"] is not ... and asked["time"] not in columns and asked["time"] == index.name
    if is_index:
        del asked["time"]
    users = [asked["user"]] if asked["user"] in columns else candidates_for(columns, USERS, every=True)
    empty = [name for name in users if _is_empty(frame, name)]
    found = find_columns(columns, asked, indexed=indexed, empty=empty)
    time_column = None if is_index else found["time"]
    is_index = is_index or time_column is INDEX
    if segment is ...:
        trips = find_trips(columns, found["user"], but=empty) if user is ... else None
        segment = roles.get("segment", trips)
    segment_column = find_columns(columns, {"segment": segment})["segment"]
    return Names(found["user"], index.name if is_index else time_column, geometry, is_index, segment_column)


def _is_empty(frame: pd.DataFrame, name: Any) -> bool:
    """Whether a column, which may be one of several of its name, is empty in all rows, of which there are some."""
    columns = (frame.iloc[:, int(place)] for place in np.flatnonzero(frame.columns == name))
    return len(frame) > 0 and all(column.iloc[:1].isna().all() and column.isna().all() for column in columns)


def existing_roles(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the names of columns by role in the `attrs` of a frame, without those that do not exist.

    That of segments is None if `with_segment` says that there are none.
    """
    roles = frame.attrs.get(ROLES)
    names = {*frame.columns, *([frame.index.name] if isinstance(frame.index, pd.DatetimeIndex) else [])}
    if not isinstance(roles, dict):
        return {}
    exist = {role: name for role, name in roles.items() if isinstance(name, Hashable) and name in names}
    return exist | ({"segment": None} if roles.get("segment", ...) is None else {})


def find_unused_segment(frame: pd.DataFrame, names: Names, segment: Name) -> Hashable | None:
    """Return the column of a frame that may number segments and is none of `names`; None if the caller denies it."""
    denied = segment is None or existing_roles(frame).get("segment", ...) is None
    return None if denied else names.unused_segment(frame.columns)


def read_protection(attributes: Any) -> dict[str, Any] | None:
    """Return the mechanism that attributes or metadata name, with its parameters; None if they name none."""
    protection = attributes.get("mechanism") if isinstance(attributes, dict) else None
    if not isinstance(protection, dict) or not isinstance(protection.get("mechanism"), str):
        return None
    if not isinstance(protection.get("parameters"), dict):
        return None
    return {name: protection[name] for name in ("mechanism", "parameters")}


def known_attributes(frame: pd.DataFrame) -> dict[str, Any]:
    """Return what of the `attrs` of a frame is of ours: the existing roles, and the mechanism if they name one."""
    protection = read_protection(frame.attrs.get(ROLES))
    return existing_roles(frame) | ({"mechanism": protection} if protection else {})


def with_segment(frame: gpd.GeoDataFrame, segment: Hashable | None) -> gpd.GeoDataFrame:
    """Return a shallow copy of a frame whose `attrs` name the column of segments; None for no such column.

    Raises
    ------
    KeyError, TypeError, ValueError
        If there is no such column, or several.
    """
    attributes = {**known_attributes(frame), "segment": segment}
    if segment is not None:
        find_column(list(frame.columns), segment, role="segment", known=())
    copy = frame.copy(deep=False)
    copy.attrs[ROLES] = attributes
    return copy


def check_names(names: Mapping[str, Any]) -> None:
    """Raise TypeError if a parameter is neither None nor `...` nor the possible name of a column."""
    for role, name in names.items():
        try:
            distinct = {name, pd.NA}  # pd.NA is hashable and names no column
        except TypeError:
            distinct = set()
        if len(distinct) < 2:
            raise TypeError(
                f"The '{role}' parameter must be the name of a column. Got {shown(name)} instead. "
                f"Pass the column's name, as in {role}='{role}'."
            )


def find_column(columns: Sequence[Hashable], name: Name, *, role: str, known: Ranks) -> Any:
    """Return the column of a role: `name`, else the one named as the role, else the only one with a known name.

    Raises
    ------
    KeyError, TypeError, ValueError
        As `find_columns`.
    """
    return find_columns(columns, {role: name}, known={role: known})[role]


def find_columns(
    columns: Sequence[Hashable],
    names: Mapping[str, Name],
    *,
    known: Mapping[str, Ranks] | None = None,
    indexed: bool = False,
    empty: Collection[Hashable] = (),
) -> dict[str, Any]:
    """Return the columns of several roles, or raise one error about all that are not found.

    Parameters
    ----------
    columns : sequence
        Names of the columns.
    names : mapping of str to column name, None or ...
        The columns by role: a name is taken, None is kept, and `...` is detected.
    known : mapping of str to Ranks
        The known names by role; `KNOWN` by default.
    indexed : bool
        Whether a DatetimeIndex may be the time, which is then `INDEX`.
    empty : collection
        Columns that are empty in all rows, which are no users.

    Returns
    -------
    dict of str to column name, None or `INDEX`

    Raises
    ------
    KeyError
        If a name does not exist; `missing_columns` returns these names by role.
    TypeError
        If a name cannot be that of a column.
    ValueError
        If no column is found for another role, or several.

    Examples
    --------
    >>> find_columns(["Teilnehmer", "ts", "Längengrad"], {"user": ..., "time": ..., "lon": ...})
    {'user': 'Teilnehmer', 'time': 'ts', 'lon': 'Längengrad'}
    """
    check_names(names)
    ranks = KNOWN if known is None else known
    found: dict[str, Any] = {role: None for role, name in names.items() if name is None}
    problems = UnfilledRoles(list(columns), list(empty))
    for role, name in names.items():
        if name is ...:
            usable = [column for column in columns if role != "user" or column not in empty]
            candidates = candidates_for(usable, ranks[role])
            by_index = indexed and role == "time"
            is_named = len(candidates) == 1 and fold(candidates[0]) == role
            if is_named or len(candidates) + by_index == 1:
                found[role] = candidates[0] if candidates else INDEX
            elif candidates:
                problems.ambiguous[role] = candidates + ["the index"] * by_index
            else:
                problems.absent[role] = ranks[role]
        elif name is not None and name not in columns:
            problems.missing[role] = name
        elif name is not None and role == "user" and name in empty:
            problems.absent[role] = ranks[role]
            problems.empty = [name]
        else:
            found[role] = name
    problems.check(found)
    for role, name in found.items():
        if list(columns).count(name) > 1:
            raise ValueError(f"There are several columns named {name!r}. Rename all but the {role}'s.")
    return {role: found[role] for role in names}


def fold(name: Hashable) -> Hashable:
    """Return a name without what does not count when columns are detected: case, blanks, `-_.#:` and a unit.

    Examples
    --------
    >>> fold("location-long"), fold("Latitude [deg]")
    ('locationlong', 'latitude')
    """
    return _IGNORED.sub("", _UNIT.sub("", name)).casefold() if isinstance(name, str) else name


def candidates_for(columns: Sequence[Hashable], known: Ranks, *, every: bool = False) -> list[Any]:
    """Return the columns with a known name of the first rank that has any, or with `every` those of all ranks.

    The exact name comes before others.
    """
    candidates = []
    for rank in known:
        names = set(map(fold, rank))
        fitting = list(dict.fromkeys(column for column in columns if fold(column) in names))
        if len(rank) == 1 and rank[0] in columns and not every:
            fitting = [rank[0]]
        if fitting and not every:
            return fitting
        candidates += fitting
    return candidates


def find_trips(columns: Sequence[Hashable], user: Hashable, *, but: Collection[Hashable] = ()) -> Any:
    """Return the only column of trips beside a column of users; None if there is none, or the users are trips.

    Columns in `but` do not count.
    """
    trips = [name for name in candidates_for(columns, (TRIPS,)) if name not in but]
    return trips[0] if len(trips) == 1 and fold(user) not in map(fold, (*TRIPS, "id")) else None


@dataclass
class UnfilledRoles:
    """Roles without a column, and what to do about them.

    Parameters
    ----------
    columns : list
        Names of the columns.
    empty : list
        Columns of users that are empty in all rows.
    missing : dict of str to column name
        Names by role that do not exist.
    absent : dict of str to Ranks
        Known names by role, none of which exists.
    ambiguous : dict of str to list
        Columns by role of which only one can be it.
    """

    columns: list[Any]
    empty: list[Any]
    missing: dict[str, Any] = field(default_factory=dict)
    absent: dict[str, Ranks] = field(default_factory=dict)
    ambiguous: dict[str, list[Any]] = field(default_factory=dict)

    def check(self, found: Mapping[str, Any]) -> None:
        """Raise KeyError for missing columns, or ValueError for others; `found` are the columns of other roles."""
        if not (self.missing or self.absent or self.ambiguous):
            return
        error = (KeyError if self.missing else ValueError)(self._words(found))
        vars(error)[_MISSING] = dict(self.missing)
        raise error

    def _words(self, found: Mapping[str, Any]) -> str:
        free = [name for name in self.columns if name not in found.values() and name not in self.empty]
        sentences = [*self._existence(), *self._choices()]
        sentences += [
            f"Did you mean {_as_option(role, close)}?"
            for role, name in self.missing.items()
            if (close := _closest(name, free))
        ]
        if self.absent:
            remedies = [_as_option(role, _likely(free, known) or "…") for role, known in self.absent.items()]
            pronoun = "it" if len(remedies) == 1 else "them"
            sentences.append(f"Specify {pronoun}, as in {_joined(remedies)}.")
        if "user" in self.absent:
            sentences.append("If all is a single trace, pass user=None (--one-trace).")
        return " ".join(sentences)

    def _existence(self) -> Iterator[str]:
        """Yield sentences on columns that do not exist."""
        there = listed(self.columns) if self.columns else "none beside the geometry"
        if self.missing:
            names = _joined([f"the {role} column {name!r}" for role, name in self.missing.items()])
            yield f"{names[0].upper()}{names[1:]} {'does' if len(self.missing) == 1 else 'do'} not exist."
        if "user" in self.absent and self.empty:
            columns, are = ("column", "is") if len(self.empty) == 1 else ("columns", "are")
            yield f"The user {columns} {listed(self.empty)} {are} empty in all rows."
        absent = [role for role in self.absent if role != "user" or not self.empty]
        if absent:
            names = _joined([f"no {role} column" for role in absent])
            known = [name for rank in self.absent[absent[0]] for name in rank]
            looked = f". Looked for {_some(known)}" if len(absent) == 1 and not self.missing else ""
            yield f"N{names[1:]} {'was' if len(absent) == 1 else 'were'} found{looked}; the columns are {there}."
        elif self.missing or self.absent:
            yield f"The columns are {there}."

    def _choices(self) -> Iterator[str]:
        """Yield sentences on roles that several columns could have."""
        for role, candidates in self.ambiguous.items():
            which = f"Specify which, as in {_as_option(role, candidates[0])}."
            yield f"Several columns could hold the {role}: {listed(candidates)}. {which}"


def _some(names: list[str]) -> str:
    """Return the first of many names for a sentence, or all of few."""
    if len(names) <= _SHOWN:
        return listed(names)
    return ", ".join(repr(name) for name in names[: _SHOWN - 1]) + " and other common names"


def missing_columns(error: BaseException) -> dict[str, Any] | None:
    """Return the names by role that do not exist if an error is one of `find_columns`, else None."""
    missing: dict[str, Any] | None = vars(error).get(_MISSING)
    return missing


def renamed_error(error: BaseException, words: str) -> ValueError | TypeError | KeyError:
    """Return an error of the same plain kind with other words, and the same missing columns."""
    plain = (ValueError, TypeError, KeyError)
    renamed = next((kind for kind in plain if type(error) is kind), ValueError)(words)
    if (missing := missing_columns(error)) is not None:
        vars(renamed)[_MISSING] = missing
    return renamed


def _joined(parts: Sequence[str]) -> str:
    """Return parts of a sentence as a list: a, b and c."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _as_option(role: str, name: Any) -> str:
    return f"{role}={name!r} (--{role} {name if name == '…' else quote(str(name))})"


def _closest(name: Any, columns: Sequence[Any]) -> Any:
    """Return the column whose name is almost this one; None if there is none."""
    by_fold = {str(fold(column)): column for column in columns}
    return next((by_fold[close] for close in get_close_matches(str(fold(name)), by_fold, 1, _ALIKE)), None)


def _likely(columns: Sequence[Any], known: Ranks) -> Any:
    """Return the first column that has a known name as one of its words, or almost a known name; else None."""
    names = [str(fold(name)) for rank in known for name in rank if len(str(fold(name))) > 2]
    texts = [column for column in columns if isinstance(column, str)]
    for column in texts:
        if {word.casefold() for word in _WORD.findall(column)} & set(names):
            return column
    by_start = {start: [name for name in names if name[0] == start] for start in {name[0] for name in names}}
    folded = {column: str(fold(column)) for column in texts}
    return next(
        (column for column, name in folded.items() if get_close_matches(name, by_start.get(name[:1], []), 1, _ALIKE)),
        None,
    )
