"""Records of a table as arrays: read, validated, and ordered for Traces."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.kernels import sorting
from promesse_geo.messages import counted, invalid, listed, shown, warn
from promesse_geo.traces.columns import (
    ROLES,
    Name,
    Names,
    find_names,
    find_unused_segment,
    read_protection,
    warn_joined_zones,
)
from promesse_geo.traces.frames import as_points
from promesse_geo.traces.marks import Marked, find_marked_rows, warn_marked
from promesse_geo.traces.missing_columns import with_index_named
from promesse_geo.traces.points import check_are_points
from promesse_geo.traces.space import Base, Space, choose_space
from promesse_geo.traces.values import TimeFormat, check_geometry, read_points, read_segments, read_times, read_users

_REMEDY = "specify it, as in gdf.promesse(segment={!r}).traces()"  # many functions have no such parameter
_ARE_SEGMENTS = "numbers segments of traces, with breaks between them"


@dataclass(frozen=True)
class DroppedColumns:
    """What a frame holds besides user, time and location: columns, elevations, and columns that mark bad records.

    `segment` is one of the columns that may number segments, if nobody said whether it does.
    """

    columns: tuple[Hashable, ...] = ()
    elevation: bool = False
    marks: tuple[Hashable, ...] = ()
    segment: Hashable | None = None


def warn_dropped_columns(dropped: DroppedColumns, *, remedy: str = _REMEDY) -> None:
    """Warn once of the columns and elevations that Traces do not hold; `remedy` is for one that may number segments."""
    if not dropped.columns and not dropped.elevation:
        return
    parts = []
    if dropped.columns:
        noun = "The column" if len(dropped.columns) == 1 else "The columns"
        parts.append(f"{noun} {listed(dropped.columns)}")
    if dropped.elevation:
        parts.append("the elevations (Z)" if parts else "The elevations (Z)")
    verb = "were" if dropped.elevation or len(dropped.columns) > 1 else "was"
    text = f"{' and '.join(parts)} {verb} dropped: traces hold user, time and location."
    if dropped.segment is not None:
        text += f" If {dropped.segment!r} {_ARE_SEGMENTS}, {remedy.format(dropped.segment)}."
    warn(text)


def warn_unused_segment(dropped: DroppedColumns, *, remedy: str = _REMEDY) -> None:
    """Warn of a column that may number segments, where other dropped columns do not matter."""
    if dropped.segment is not None:
        warn(f"The column {dropped.segment!r} is not used. If it {_ARE_SEGMENTS}, {remedy.format(dropped.segment)}.")


def raise_invalid(reasons: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError with the number of invalid records and the first row (counted from 0) for each reason.

    Parameters
    ----------
    reasons : mapping of str to numpy.ndarray of bool, shape (records,)
        Which records are invalid, by reason.
    """
    number, details = _count_invalid(reasons)
    raise ValueError(
        f"{number} cannot be used (rows are counted from 0): {details}. "
        "Fix them, or drop them with pg.Traces.from_frame(gdf, errors='skip')."
    )


def raise_invalid_part(reasons: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError with the number of invalid records of a part of divided data, whose rows mean nothing."""
    invalid = np.logical_or.reduce(list(reasons.values()))
    details = "; ".join(f"{reason}: {bad.sum():,}" for reason, bad in reasons.items() if bad.any())
    raise ValueError(
        f"{int(invalid.sum()):,} of {counted(len(invalid), 'record')} of a table or partition cannot be used: "
        f"{details}. Filter such records out before, or fix them."
    )


def warn_invalid(reasons: Mapping[str, np.ndarray]) -> None:
    """Warn of invalid records, shape (records,) for each reason, as `raise_invalid` raises."""
    number, details = _count_invalid(reasons)
    warn(f"{number} dropped (rows are counted from 0): {details}.")


def _count_invalid(reasons: Mapping[str, np.ndarray]) -> tuple[str, str]:
    invalid = np.logical_or.reduce(list(reasons.values()))
    rows = [f"{reason}: {bad.sum():,}, first in row {bad.argmax():,}" for reason, bad in reasons.items() if bad.any()]
    return f"{counted(int(invalid.sum()), 'record')} of {len(invalid):,}", "; ".join(rows)


@dataclass(frozen=True, eq=False)
class Records:
    """Records of a table as arrays, in input order and not yet validated.

    Parameters
    ----------
    x, y : numpy.ndarray of float64, shape (n,)
        Coordinates in the CRS; NaN if there is no point.
    times : numpy.ndarray of int64, shape (n,)
        Nanoseconds since 1970-01-01 UTC; of the wall clock for naive times.
    no_time : numpy.ndarray of bool, shape (n,)
        Whether the time is missing.
    codes : numpy.ndarray of int64, shape (n,)
        The position of each record's user in `users`; −1 if it is missing.
    users : pandas.Index
        The distinct users, ascending.
    crs : pyproj.CRS or anything that pyproj accepts
        The CRS of the coordinates.
    names : Names
        Column names.
    time_format : TimeFormat
        Time zone and unit.
    dropped : DroppedColumns
        What else the table holds.
    segments : numpy.ndarray of int64, shape (n,), or None
        Codes that change where a segment begins; None if there are no breaks.
    protection : dict or None
        As for `Traces`.
    marked : Marked or None
        Records that are left out, valid or not, because columns mark them as bad.
    """

    x: np.ndarray
    y: np.ndarray
    times: np.ndarray
    no_time: np.ndarray
    codes: np.ndarray
    users: pd.Index
    crs: Any
    names: Names
    time_format: TimeFormat
    dropped: DroppedColumns = DroppedColumns()
    segments: np.ndarray | None = None
    protection: dict[str, Any] | None = None
    marked: Marked | None = None

    @classmethod
    def from_frame(
        cls, frame: gpd.GeoDataFrame, *, user: Name = ..., time: Name = ..., segment: Name = ...
    ) -> "Records":
        """Read a GeoDataFrame, and warn of records that are marked as bad; see `Traces.from_frame`."""
        frame = as_points(frame)
        check_geometry(frame)
        check_are_points(np.asarray(frame.geometry.array, dtype=object))
        if frame.crs is None:
            raise ValueError(
                "The GeoDataFrame has no CRS, so its distances have no unit. "
                "Set it, for example with gdf.set_crs(4326) for longitude and latitude."
            )
        try:
            names = find_names(frame, user=user, time=time, segment=segment)
        except (KeyError, ValueError) as error:
            raise with_index_named(error, [name for name in frame.index.names if name is not None]) from None
        warn_joined_zones(frame)
        x, y, has_z = read_points(frame.geometry.array)
        taken = {names.user, names.geometry, names.segment} | (set() if names.time_is_index else {names.time})
        marked = find_marked_rows(frame, names)
        marks = () if marked is None else tuple(marked.columns)
        others = [column for column in frame.columns if column not in taken and column not in marks]
        unused = find_unused_segment(frame, names, segment)
        warn_marked(marked)
        records = cls.from_columns(
            x,
            y,
            times=frame.index if names.time_is_index else frame[names.time],
            users=None if names.user is None else frame[names.user],
            crs=frame.crs,
            names=names,
            dropped=DroppedColumns(tuple(others), has_z, marks, unused),
            segments=None if names.segment is None else read_segments(frame[names.segment]),
            protection=read_protection(frame.attrs.get(ROLES)),
        )
        return replace(records, marked=marked)

    @classmethod
    def from_columns(
        cls,
        x: np.ndarray,
        y: np.ndarray,
        *,
        times: pd.Series | pd.DatetimeIndex,
        users: pd.Series | None,
        crs: Any,
        names: Names,
        dropped: DroppedColumns = DroppedColumns(),
        segments: np.ndarray | None = None,
        protection: dict[str, Any] | None = None,
    ) -> "Records":
        """Read the columns of a table.

        Parameters
        ----------
        x, y : numpy.ndarray of float64, shape (n,)
            Coordinates in the CRS; NaN if there is no point.
        times : pandas.Series or pandas.DatetimeIndex, length n
            The column of times.
        users : pandas.Series, length n, or None
            The column of users; None for a single trace.
        crs, names, dropped, segments, protection
            As for the class.

        Raises
        ------
        TypeError, ValueError
            If times or users are of the wrong type; see `read_times` and `read_users`.
        """
        nanoseconds, no_time, time_format = read_times(times)
        if users is None:
            codes, keys = np.zeros(len(x), np.int64), pd.Index(["trace"] if len(x) else [], dtype=object)
        else:
            codes, keys = read_users(users)
        return cls(x, y, nanoseconds, no_time, codes, keys, crs, names, time_format, dropped, segments, protection)

    @classmethod
    def from_arrays(
        cls,
        x: np.ndarray,
        y: np.ndarray,
        *,
        times: np.ndarray,
        users: Sequence[Hashable] | pd.Index,
        counts: np.ndarray,
        crs: Any,
        names: Names,
        time_format: TimeFormat,
        segments: np.ndarray | None = None,
    ) -> "Records":
        """Read x, y, times, segments, shape (records,), and counts, shape (traces,); see `Traces.from_arrays`."""
        if not isinstance(names, Names):
            raise TypeError(invalid("names", "Traces.from_arrays", "promesse_geo.traces.columns.Names or None", names))
        x, y = _numbers(x, "x"), _numbers(y, "y")
        times, counts = _unmasked(times, "times"), _unmasked(counts, "counts")
        counts = counts.astype(np.int64) if counts.shape == (0,) else counts
        segments = None if segments is None else _unmasked(segments, "segments")
        _check_columns(x, y, times, segments)
        codes, keys = read_users(_as_column(users))
        if counts.ndim != 1 or counts.dtype.kind not in "iu" or np.any(counts < 0) or counts.sum() != len(x):
            raise ValueError(
                "The counts of Traces.from_arrays must be whole numbers, none below 0, that add up to the records: "
                f"{len(x):,}."
            )
        if not len(keys) == len(codes) == len(counts):
            raise ValueError(
                "The users of Traces.from_arrays must be distinct, none missing, one for each count. "
                f"Got {counted(len(codes), 'user')}, {len(keys):,} of them distinct, and {len(counts):,} counts."
            )
        stamps = pd.DatetimeIndex(times if times.dtype.kind == "M" else times.astype(np.int64).view("M8[ns]"))
        nanoseconds, no_time, _ = read_times(stamps)
        return cls(
            x, y, nanoseconds, no_time, np.repeat(codes, counts), keys, crs, names, time_format, segments=segments
        )

    def validate(
        self, *, space: str | Space | None = None, report: Callable[[Mapping[str, np.ndarray]], None] = raise_invalid
    ) -> tuple[Space, Base, np.ndarray]:
        """Choose the space for the valid records, and report the others.

        Parameters
        ----------
        space : {"sphere", "plane"}, Sphere, Plane or None
            See `choose_space`.
        report : callable
            Raises or warns; called once if there are invalid records that are not marked as bad, with masks of shape
            (n,) by reason.

        Returns
        -------
        space : Sphere or Plane
            The space.
        base : pair of numpy.ndarray of float64, shape (n,)
            What `space.to_base` returns for the coordinates.
        valid : numpy.ndarray of bool, shape (n,)
            Whether each record is valid, and not marked as bad.

        Raises
        ------
        ValueError
            If `report` raises it, as `raise_invalid` does.
        """
        x, y = self.x, self.y
        placed = np.isfinite(x) & np.isfinite(y)
        valid = placed & ~self.no_time & (self.codes >= 0)
        if self.marked is not None:
            valid &= ~self.marked.bad
        all_valid = valid.all()
        chosen = choose_space(self.crs, x if all_valid else x[valid], y if all_valid else y[valid], space=space)
        base = chosen.to_base(x, y)
        misplaced, rule = chosen.misplaced(x, y, base=base)
        if all_valid and not misplaced.any():
            return chosen, base, valid
        reasons = {
            "a missing or empty geometry, one that is not a point, or a coordinate that is not finite": ~placed,
            rule: placed & misplaced,
            "no time": self.no_time,
            "no user": self.codes < 0,
        }
        if self.marked is not None:
            reasons = {reason: mask & ~self.marked.bad for reason, mask in reasons.items()}
        if any(mask.any() for mask in reasons.values()):
            report(reasons)
        return chosen, base, valid & ~misplaced

    def group(self, valid: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Order the valid records by (user, input position).

        Parameters
        ----------
        valid : numpy.ndarray of bool, shape (n,)
            Whether each record is valid.

        Returns
        -------
        order : numpy.ndarray of int64, shape (valid records,), or None
            Input positions in order; None if all records are valid and in order already.
        counts : numpy.ndarray of int64, shape (users,)
            The number of valid records of each user.
        """
        codes, order = self.codes, None
        if not valid.all():
            order = np.flatnonzero(valid)
            codes = codes[order]
        counts = np.bincount(codes, minlength=len(self.users))
        if np.any(codes[1:] < codes[:-1]):
            by_user = _group(codes, counts)
            order = by_user if order is None else order[by_user]
        return order, counts

    def sort(self, valid: np.ndarray) -> tuple[np.ndarray | None, np.ndarray, np.ndarray, pd.Index]:
        """Order the valid records by (user, time, input position).

        Parameters
        ----------
        valid : numpy.ndarray of bool, shape (n,)
            Whether each record is valid.

        Returns
        -------
        order : numpy.ndarray of int64, shape (valid records,), or None
            Input positions in order; None if all records are valid and in order already.
        times : numpy.ndarray of int64, shape (valid records,)
            Times in order.
        offsets : numpy.ndarray of int64, shape (traces + 1,)
            Where the records of each user with valid records begin, and the last one's end.
        users : pandas.Index, length traces
            These users.
        """
        order, counts = self.group(valid)
        offsets, users = as_offsets(counts[counts > 0]), self.users[counts > 0]
        times = self.times if order is None else self.times[order]
        backward = times[1:] < times[:-1]
        backward[offsets[1:-1] - 1] = False  # from one trace to the next
        if not backward.any():
            return order, times, offsets, users
        order = np.arange(len(times)) if order is None else order
        times = times.copy() if times is self.times else times
        threads.run(
            lambda first, last: sorting.sort_by_time(offsets, first, last, times, order), threads.fair(np.diff(offsets))
        )
        return order, times, offsets, users

    def breaks(self, order: np.ndarray | None, offsets: np.ndarray) -> np.ndarray:
        """Return where the segment changes within a trace.

        Parameters
        ----------
        order : numpy.ndarray of int64, shape (valid records,), or None
            As `sort` returns it.
        offsets : numpy.ndarray of int64, shape (traces + 1,)
            As `sort` returns it.

        Returns
        -------
        numpy.ndarray of int64, shape (breaks,)
            Positions in the order, ascending.
        """
        if self.segments is None:
            return NO_BREAKS
        codes = self.segments if order is None else self.segments[order]
        return within_traces(np.flatnonzero(codes[1:] != codes[:-1]) + 1, offsets)


def _group(codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the positions of records, shape (n,), in the order of their users' numbers, each user's as they stand.

    Parameters
    ----------
    codes : numpy.ndarray of int64, shape (n,)
        The user of each record.
    counts : numpy.ndarray of int64, shape (users,)
        The number of records of each user.
    """
    starts, out = as_offsets(counts)[:-1].copy(), np.empty(len(codes), np.int64)
    threads.run(lambda first, last: sorting.group_records(codes, first, last, starts, out), threads.fair(counts))
    return out


NO_BREAKS = np.empty(0, np.int64)
"""Breaks of traces that have none."""
NO_BREAKS.setflags(write=False)


def within_traces(breaks: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the breaks, ascending int64 positions of records, that are not at an offset, where a trace begins."""
    return np.setdiff1d(breaks, offsets) if len(breaks) else NO_BREAKS


def as_offsets(counts: np.ndarray) -> np.ndarray:
    """Return read-only offsets, int64 of shape (n + 1,), of consecutive runs of `counts` elements, shape (n,)."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    offsets.setflags(write=False)
    return offsets


def _as_column(users: Any) -> pd.Series:
    """Return the users of `Traces.from_arrays` as a column."""
    rule = "The users of Traces.from_arrays must be a list of text or integers."
    if not isinstance(users, (Sequence, pd.Series, pd.Index, pd.api.extensions.ExtensionArray, np.ndarray)):
        raise TypeError(f"{rule} Got {shown(users)} instead.")
    if getattr(users, "ndim", 1) != 1 or isinstance(users, bytes):
        raise TypeError(f"{rule} Got {type(users).__name__} instead.")
    try:
        return pd.Series(users, name="user")
    except UnicodeEncodeError:
        raise ValueError(f"{rule} One has a lone surrogate, which is no valid Unicode.") from None


def _unmasked(values: Any, name: str) -> np.ndarray:
    """Convert to an array; raise ValueError for masked values and ragged rows."""
    if masked := int(np.ma.count_masked(values)) if isinstance(values, np.ma.MaskedArray) else 0:
        rule = f"The {name} of Traces.from_arrays must hold no masked values."
        raise ValueError(f"{rule} Got {masked:,} of {len(values):,}. Drop these records.")
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(
            f"The {name} of Traces.from_arrays must have one dimension. Got rows of different lengths."
        ) from None


def _numbers(values: Any, name: str) -> np.ndarray:
    """Convert to an array of floats."""
    array = _unmasked(values, name)
    with suppress(TypeError, ValueError, OverflowError):
        if array.dtype.kind in "iufO":
            return array.astype(np.float64, copy=False)
    raise TypeError(f"The {name} of Traces.from_arrays must hold numbers. Got {array.dtype} instead.")


def _check_columns(x: np.ndarray, y: np.ndarray, times: np.ndarray, segments: np.ndarray | None) -> None:
    """Raise ValueError or TypeError if arrays of records differ in shape, or times or segments are of another type."""
    if not x.ndim == y.ndim == times.ndim == 1 or not len(x) == len(y) == len(times):
        raise ValueError(
            "x, y and times of Traces.from_arrays must have one dimension and one length. "
            f"Got the shapes {x.shape}, {y.shape} and {times.shape} instead."
        )
    if times.dtype.kind not in "iM":
        raise TypeError(
            "The times of Traces.from_arrays must be int64 nanoseconds since 1970-01-01 or datetime64. "
            f"Got {times.dtype} instead."
        )
    if segments is not None and (segments.shape != x.shape or segments.dtype.kind not in "iub"):
        raise ValueError(
            f"The segments of Traces.from_arrays must be whole numbers, one for each of {len(x):,} records. "
            f"Got {segments.dtype} of shape {segments.shape} instead."
        )
