"""Find the columns that hold user, time, segments and coordinates by their names."""

import json
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo.messages import shown, warn
from promesse_geo.traces.known_columns import KNOWN, USERS, Ranks, candidates_for, find_trips, fold
from promesse_geo.traces.missing_columns import UnfilledRoles

Name = Hashable | None | EllipsisType
"""The name of a column; None if there is none; ... to detect it."""

SEGMENTS = ("segment", "segment_number", "part", "part_number")
"""Names of the column of segments that results get: the first that is free."""

ROLES = "promesse"
"""Key in the `attrs` of frames and in the metadata of files: a mapping of role to the name of the column.

In `attrs` the mapping also has the mechanism that protected the data, under "mechanism".
"""

INDEX: Any = object()
"""Stands for the DatetimeIndex, which may have no name."""

_LOST = "specify it, as in gdf.promesse(segment='part')"


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
        """Return the column that is named as segments of results or trips, if there are no segments; None without one.

        If it is that of a result, whose `attrs` or metadata are lost, paths lead through what its breaks keep apart.
        """
        if self.segment is not None:
            return None
        name = self.with_segment().segment
        if name in columns:
            return name
        return None if self.user is None else find_trips([*columns], self.user, but=(self.time, self.geometry))


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
        warn_lost_segment(frame.attrs.get(ROLES), frame.columns)
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


def warn_lost_segment(roles: Any, columns: Collection[Hashable], *, remedy: str = _LOST) -> None:
    """Warn if attributes or metadata name a column of segments that does not exist, such as one that was renamed.

    Parameters
    ----------
    roles : Any
        The columns by role.
    columns : collection
        Names of the columns.
    remedy : str
        How the column is named if it was renamed.
    """
    name = roles.get("segment") if isinstance(roles, Mapping) else None
    if isinstance(name, (str, int, tuple)) and name not in columns:
        warn(
            f"The column of segments {name!r} does not exist, so paths lead through breaks, where nothing was recorded "
            f"or zones removed records. Keep the column. If it was renamed, {remedy}. If there are no segments, pass "
            "segment=None."
        )


def warn_joined_zones(frame: pd.DataFrame) -> None:
    """Warn if rows of frames that were joined, as their index tells, lack records that privacy zones removed."""
    text = json.dumps(read_protection(frame.attrs.get(ROLES)), default=str)
    if '"PrivacyZones"' in text and frame.index.dtype.kind in "iu" and not frame.index.is_unique:
        warn(
            "The index has equal values, as after pd.concat of frames that zones were applied to. Where a trace ends "
            "in a zone in one of them and begins in it in another, there is no break, so that paths lead through the "
            "zone. Join frames before zones are applied; reset the index if they are of different users."
        )


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
