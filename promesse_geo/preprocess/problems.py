"""What is odd in data: jumps, fixes at (0, 0), breaks, gaps, equal times, users with one record, swapped axes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import tzinfo
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pyproj import Transformer
from pyproj.exceptions import ProjError

from promesse_geo import threads
from promesse_geo.kernels import jumps as kernels
from promesse_geo.messages import Remark, added, counted
from promesse_geo.preprocess.calendar import DAY, uses_common_calendar
from promesse_geo.preprocess.jumps import Steps, is_geographic
from promesse_geo.traces.traces import Traces

FASTEST = 350.0
"""Metres per second that no traveller exceeds."""

FAST = 50.0
"""Metres per second that only planes and fast trains exceed."""

GAP = DAY // 6
"""Nanoseconds without records, 4 hours, at which `prepare` splits traces."""

_SAMPLE = 1_000  # records by which swapped axes are recognized
_FAR, _NEAR = 30.0, 22.5  # degrees of longitude from the meridian of a time zone


@dataclass(frozen=True)
class Problems:
    """Counts of what is odd in a data set.

    Parameters
    ----------
    jumps : int or None
        Records outside the longest chains at 350 m/s (see `drop_jumps`); None if the data are on the common calendar,
        where days are closer than they were.
    fast_steps : int or None
        Steps over 50 m/s, which may be true travel; None if the data are on the common calendar.
    zero_fixes : int
        Records at exactly longitude 0 and latitude 0 in a geographic CRS.
    breaks : int
        Breaks of the recorder within traces.
    gaps : int
        Steps of 4 hours or more.
    equal_times : int
        Records with the time of the record before.
    long_traces : int
        Traces that last longer than 24 hours.
    single_record_users : int
        Traces of one record.
    """

    jumps: int | None
    fast_steps: int | None
    zero_fixes: int
    breaks: int
    gaps: int
    equal_times: int
    long_traces: int
    single_record_users: int

    def __add__(self, other: Any) -> Any:
        """Return the counts of both parts of a data set."""
        return added(self, other, [each.name for each in fields(Problems)])


def find_problems(traces: Traces, *, on_calendar: bool | None = None) -> Problems:
    """Find what is odd in Traces, in one pass if no step is too fast.

    Of a part of a data set, specify whether all of the data are on the common calendar.
    """
    steps = Steps.survey(traces, FAST, gap=GAP)
    _, equal, gaps, zeros = steps.counts.sum(axis=0).tolist()
    on_calendar = uses_common_calendar(traces) if on_calendar is None else on_calendar
    fast, jumps = (None, None) if on_calendar else _count_jumps(steps)
    starts, ends = traces.offsets[:-1], traces.offsets[1:]
    return Problems(
        jumps=jumps,
        fast_steps=fast,
        zero_fixes=zeros if is_geographic(traces) else 0,
        breaks=len(traces.breaks),
        gaps=gaps,
        equal_times=equal,
        long_traces=int((traces.times[ends - 1] - traces.times[starts] > DAY).sum()),
        single_record_users=int((traces.counts == 1).sum()),
    )


def _count_jumps(steps: Steps) -> tuple[int, int]:
    """Numbers of steps over 50 m/s, and of records outside the longest chains at 350 m/s."""
    counts = steps.count_faster([FAST, FASTEST])
    if not counts[:, 1].any():
        return int(counts[:, 0].sum()), 0
    keep = steps.longest_chains(FASTEST, fast=counts[:, 1])
    return int(counts[:, 0].sum()), len(keep) - int(keep.sum())


@dataclass(frozen=True)
class Jumps(Problems, Remark):
    """A remark on what `prepare` keeps unless its parameters say otherwise."""

    def __str__(self) -> str:
        """Return counts, and the parameters of `prepare` that drop what is counted."""
        remedies = ["keep_zero=False (--keep-zero omitted)"] * bool(self.zero_fixes)
        remedies += [f"max_speed={FASTEST:g} (--max-speed {FASTEST:g})"] * bool(self.jumps)
        words = _jumps_in_words(self)
        return f"The data have {' and '.join(words)}. Drop them with {' and '.join(remedies)}." if words else ""


@dataclass(frozen=True)
class Unprepared(Problems, Remark):
    """A remark on what a published path should not run through.

    On the common calendar, where jumps are None, only gaps count, and breaks unless they are kept, as everywhere.
    """

    constants: ClassVar[tuple[str, ...]] = ("keeps_breaks",)

    keeps_breaks: bool

    @classmethod
    def of(cls, traces: Traces, *, keeps_breaks: bool) -> "Unprepared":
        """Count it in Traces."""
        if not uses_common_calendar(traces):
            found = find_problems(traces)
        else:
            found = Problems(None, None, 0, len(traces.breaks), _count_gaps(traces), 0, 0, 0)
        return cls(**vars(found), keeps_breaks=keeps_breaks)

    def __str__(self) -> str:
        """Return counts and remedy."""
        found = replace(self, breaks=0) if self.keeps_breaks else self
        if self.jumps is None:
            found = replace(found, zero_fixes=0, long_traces=0)
        words = _splits_in_words(found) + _jumps_in_words(found)
        if not words:
            return ""
        return f"The data are not prepared: {', '.join(words)}. The published path runs through them. {_remedy(found)}"


def _count_gaps(traces: Traces) -> int:
    """Number of steps of 4 hours or more."""
    segments = traces.segments
    counts = np.empty(len(segments) - 1, np.int64)
    threads.run(
        lambda first, last: kernels.count_gaps(traces.times, segments, GAP, first, last, counts),
        threads.fair(np.diff(segments)),
    )
    return int(counts.sum())


def _splits_in_words(found: Problems) -> list[str]:
    """What `prepare` splits at."""
    return _in_words(
        [
            (found.gaps, "gap", "gaps", "of 4 h or more"),
            (found.long_traces, "trace", "traces", "of more than a day"),
            (found.breaks, "break", "breaks", "of the recorder"),
        ]
    )


def _jumps_in_words(found: Problems) -> list[str]:
    """What `drop_zero` and `drop_jumps` drop."""
    return _in_words(
        [
            (found.zero_fixes, "fix", "fixes", "at longitude 0 and latitude 0"),
            (found.jumps, "record", "records", f"that can only be reached at more than {FASTEST:g} m/s"),
        ]
    )


def _in_words(kinds: Sequence[tuple[int | None, str, str, str]]) -> list[str]:
    """Return the counts above 0 in words, given their singular, plural and what follows."""
    return [f"{counted(count, singular, plural)} {more}" for count, singular, plural, more in kinds if count]


def _remedy(found: Problems) -> str:
    """The functions to apply first, in their order, and the options of the command line."""
    verbs = ["drop_zero()"] * bool(found.zero_fixes) + ["drop_jumps()"] * bool(found.jumps)
    verbs += ["prepare()"] * bool(found.gaps or found.breaks or found.long_traces)
    option = f" --max-speed {FASTEST:g}" if found.jumps else ""
    return f"First apply {', then '.join(verbs)} (promesse-geo prepare{option})."


def are_axes_swapped(traces: Traces, *, zone: tzinfo | None = None) -> bool:
    """Return whether nearly all data lie where they cannot be, and would not with x and y swapped.

    They cannot be outside the area of use of the CRS, nor in longitudes far from those of the time zone in which days
    begin, if it is known.
    """
    crs, degrees = traces.space.crs, _degrees_both_ways(traces)
    if degrees is None:
        return False
    if zone is not None and crs.is_geographic:
        given, swapped = (float(np.mean(_degrees_from(zone, longitudes))) for longitudes, _ in degrees)
        if given > _FAR and swapped < _NEAR:
            return True
    if crs.area_of_use is None:
        return False
    given, swapped = (_share_inside(crs.area_of_use, *axes) for axes in degrees)
    return given < 0.1 and swapped > 0.9


def _degrees_both_ways(traces: Traces) -> list[tuple[np.ndarray, np.ndarray]] | None:
    """Return longitudes and latitudes of a sample as it is, and with x and y swapped; None if nothing can be judged."""
    crs = traces.space.crs
    if not traces.records or (crs.area_of_use is None and not crs.is_geographic):
        return None
    rows = np.linspace(0, traces.records - 1, min(_SAMPLE, traces.records)).astype(np.int64)
    x, y = traces.space.coordinates(traces.points[rows])
    try:
        to_degrees = Transformer.from_crs(crs, 4326, always_xy=True)
    except ProjError:  # of another body
        return None
    return [to_degrees.transform(*axes) for axes in ((x, y), (y, x))]


def can_tell_axes(traces: Traces, *, zone: tzinfo | None = None) -> bool:
    """Return whether the data would lie where they cannot be with x and y swapped, so that they are not swapped."""
    crs, degrees = traces.space.crs, _degrees_both_ways(traces)
    if degrees is None:
        return False
    _, swapped = degrees
    if zone is not None and crs.is_geographic and float(np.mean(_degrees_from(zone, swapped[0]))) > _NEAR:
        return True
    return crs.area_of_use is not None and _share_inside(crs.area_of_use, *swapped) < 0.1


def zone_of_times(traces: Traces) -> tzinfo | None:
    """Return the time zone of the times, else their offset in text, if it tells where they were; UTC does not."""
    zones = (traces.time_format.zone, traces.time_format.written)
    return next((zone for zone in zones if zone is not None and any(_offsets(zone))), None)


def _offsets(zone: tzinfo) -> list[float]:
    """Return the seconds between a time zone and UTC in winter and in summer."""
    found = [pd.Timestamp(2024, month, 1, tz=zone).utcoffset() for month in (1, 7)]
    return [offset.total_seconds() for offset in found if offset is not None]


def _degrees_from(zone: tzinfo, longitudes: np.ndarray) -> np.ndarray:
    """Degrees between longitudes and the meridian on which the standard time of a zone is the time of the sun.

    An offset alone may be summer time, and many countries lie west of the meridian of their zone: it is taken an hour
    to the west.
    """
    meridian = min(_offsets(zone)) / 240
    if str(zone).startswith(("UTC", "+", "-")) or "FixedOffset" in type(zone).__name__:
        meridian -= 15
    return np.abs((longitudes - meridian + 180) % 360 - 180)


def _share_inside(area: Any, longitudes: np.ndarray, latitudes: np.ndarray) -> float:
    """Share of positions in an area of use, which may cross the antimeridian; infinite ones are outside."""
    from_west, to_east = longitudes >= area.west, longitudes <= area.east
    across = from_west & to_east if area.west <= area.east else from_west | to_east
    return float(np.mean(across & (latitudes >= area.south) & (latitudes <= area.north) & np.isfinite(longitudes)))
