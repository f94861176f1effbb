"""What an analyst loses who counts users in areas and time windows."""

import hashlib
import math
import secrets
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from promesse_geo import threads
from promesse_geo.kernels import queries as kernels
from promesse_geo.messages import counted, listed, warn
from promesse_geo.metrics.base import Metric
from promesse_geo.traces.columns import check_geometry, make_points, read_times
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.space import EARTH_RADIUS, Space, choose_space
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_integer, check_seed

HALF_DIAGONALS = 500.0, 5_000.0
"""Metres, between which half of a drawn square's diagonal lies."""

_HOUR = 3_600_000_000_000
LENGTHS = 2 * _HOUR, 8 * _HOUR
"""Nanoseconds, between which the length of a drawn window lies."""

MOST_QUERIES = 10_000_000
"""So many queries are drawn at most."""

_COLUMNS = ("half_side", "start", "end")
_OWNER = "RangeQueryDistortion"


@dataclass(frozen=True, eq=False, repr=False)
class OwnQueries:
    """A user's own queries, checked: a frame of centres with half_side in metres, start and end."""

    frame: gpd.GeoDataFrame
    half_sides: np.ndarray
    windows: np.ndarray
    zoned: bool

    def __repr__(self) -> str:
        """Say how many there are, not where, and what tells them from others."""
        digest = hashlib.blake2b(CRS(self.frame.crs).to_wkt().encode(), digest_size=4, person=b"own queries")
        for values in (self.frame.geometry.x, self.frame.geometry.y, self.half_sides, self.windows):
            digest.update(np.ascontiguousarray(values).tobytes())
        return f"<{counted(len(self.frame), 'query', 'queries')}, fingerprint {digest.hexdigest()}>"


class QueryIndex(NamedTuple):
    """Queries as a table with the original counts, and as the kernel wants them."""

    table: gpd.GeoDataFrame
    boxes: np.ndarray
    windows: np.ndarray


@dataclass(frozen=True)
class RangeQueryDistortion(Metric):
    """Relative error of the number of users that cross an area during a time window (paper, section V-C, Table IV).

    A query is a square with sides north-south and east-west around a centre, and a window of time; borders belong to
    both. Its answer is the number of users with at least one record inside, its distortion `|Q(D) − Q(D′)| / Q(D)`.

    The detail has one row per query: geometry (centre), half_side in metres, start, end, the two answers `original`
    and `protected`, and `distortion`. The centres are true locations: the detail is not for publication. The value is
    the mean distortion in percent.

    Parameters
    ----------
    queries : int or geopandas.GeoDataFrame
        How many queries to draw, at most 10 million: each around a record drawn from the original data, with half a
        diagonal of 500 to 5,000 m and a window of 2 to 8 hours, in the middle of which the record's time lies. Or the
        queries themselves: points, with the columns half_side (metres), start and end (times, as the data has them).
    seed : int or str, optional
        Makes the draw repeatable.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is not of its kind or out of its range, or queries lack a column.

    Notes
    -----
    A query of your own that nobody of the original answers has distortion 0 where nobody of the protected data does
    either, else NaN: such queries are left out of the mean, with a warning that counts them.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> metric = pg.RangeQueryDistortion(queries=50, seed=0)
    >>> metric.measure(city, city)
    0.0
    """

    queries: "int | gpd.GeoDataFrame | OwnQueries" = 1000
    seed: int | str | None = field(default=None, repr=False)
    unit: ClassVar[str] = "%"

    def __post_init__(self) -> None:
        """Check the parameters."""
        if isinstance(self.queries, gpd.GeoDataFrame):
            object.__setattr__(self, "queries", _checked(self.queries))
        elif not isinstance(self.queries, OwnQueries):
            object.__setattr__(
                self, "queries", check_integer(self.queries, name="queries", owner=_OWNER, high=MOST_QUERIES)
            )
        object.__setattr__(self, "seed", check_seed(self.seed, owner=_OWNER))

    def _index(self, original: Traces) -> QueryIndex:
        if isinstance(self.queries, OwnQueries):
            table, centres = _brought(self.queries, original)
            windows = self.queries.windows
        else:
            table, centres, windows = _drawn(original, int(self.queries), self.seed)
        boxes = _boxes(original.space, centres, table.half_side.to_numpy(np.float64))
        return QueryIndex(table.assign(original=_answers(original, boxes, windows)), boxes, windows)

    def _detail(self, pairs: Pairs, index: QueryIndex) -> gpd.GeoDataFrame:
        before = index.table.original.to_numpy()
        after = _answers(pairs.protected, index.boxes, index.windows)
        distortion = np.where(after > 0, math.nan, 0.0)
        np.divide(np.abs(before - after), before, out=distortion, where=before > 0)
        return index.table.assign(protected=after, distortion=distortion)

    def value(self, detail: pd.DataFrame) -> float:
        """Return the mean distortion in percent; queries without one are left out, and counted in a warning."""
        missing = int(detail.distortion.isna().sum())
        if missing:
            noun = counted(missing, "query has", "queries have")
            warn(f"{noun} no distortion, for no original user answers: left out of the mean of {len(detail):,}.")
        return 100 * float(detail.distortion.mean())


def _checked(frame: gpd.GeoDataFrame) -> OwnQueries:
    """Read a user's own queries."""
    check_geometry(frame)
    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing:
        raise KeyError(
            f"The queries of {_OWNER} lack {listed(missing)}. They are points with the columns {listed(_COLUMNS)}."
        )
    several = [name for name in (*_COLUMNS, frame.active_geometry_name) if list(frame.columns).count(name) > 1]
    if several:
        raise ValueError(f"The queries of {_OWNER} have several columns named {listed(several)}. Keep one of each.")
    if frame.crs is None:
        raise ValueError(f"The queries of {_OWNER} have no CRS. Say which one it is, for example frame.set_crs(4326).")
    try:
        choose_space(frame.crs, np.empty(0), np.empty(0))
    except ValueError as error:
        raise ValueError(f"The queries of {_OWNER} cannot be used. {error}") from None
    kind = frame.half_side.dtype
    if not is_numeric_dtype(kind) or is_bool_dtype(kind) or is_complex_dtype(kind):
        raise TypeError(f"The half_side of the queries of {_OWNER} must be numbers of metres. Got the type {kind}.")
    starts, no_start, start_format = read_times(frame.start)
    ends, no_end, end_format = read_times(frame.end)
    if (start_format.zone is None) != (end_format.zone is None):
        raise ValueError(f"The start and the end of the queries of {_OWNER} must both have a time zone, or neither.")
    half_sides = frame.half_side.to_numpy(np.float64, na_value=np.nan)
    points = (frame.geom_type == "Point").to_numpy() & ~frame.is_empty.to_numpy()
    _refuse_any(~points, "a geometry that is not a point")
    _refuse_any(~((half_sides > 0) & np.isfinite(half_sides)), "a half_side that is not a finite number above zero")
    _refuse_any(no_start | no_end, "no start or no end")
    _refuse_any(starts > ends, "an end before the start")
    columns = {"geometry": frame.geometry.array, **{name: frame[name] for name in _COLUMNS}}
    table = gpd.GeoDataFrame(columns, geometry="geometry", index=frame.index)
    return OwnQueries(table, half_sides, np.column_stack((starts, ends)), start_format.zone is not None)


def _refuse_any(bad: np.ndarray, what: str) -> None:
    if bad.any():
        raise ValueError(
            f"{counted(int(bad.sum()), 'query', 'queries')} of {len(bad):,} of {_OWNER} cannot be used: {what}, "
            f"first in row {int(bad.argmax()):,} (counted from 0). Mend them or leave them out."
        )


def _brought(own: OwnQueries, original: Traces) -> tuple[gpd.GeoDataFrame, np.ndarray]:
    """A user's own queries with their centres in the space of the original."""
    if own.zoned != (original.time_format.zone is not None) and original.records:
        having, lacking = ("queries", "data") if own.zoned else ("data", "queries")
        raise ValueError(
            f"The times of the {having} have a time zone and those of the {lacking} have none, so they cannot be "
            "compared. Bring both to one kind with dt.tz_localize."
        )
    space, frame = original.space, own.frame
    x, y = frame.geometry.x.to_numpy(), frame.geometry.y.to_numpy()
    if CRS(frame.crs) != space.crs:
        try:
            x, y = Transformer.from_crs(frame.crs, space.crs, always_xy=True).transform(x, y)
        except ProjError:
            raise ValueError(
                "There is no way from the CRS of the queries to that of the data. Give the queries in the data's CRS."
            ) from None
    centres = np.full((len(x), space.dimension), np.nan)
    placed = np.isfinite(x) & np.isfinite(y)
    placed[placed] = ~space.misplaced(x[placed], y[placed])[0]
    _refuse_any(~placed, "a centre that has no place in the CRS of the data")
    centres[:] = space.points(x, y)
    return frame, centres


def _drawn(original: Traces, queries: int, seed: int | str | None) -> tuple[gpd.GeoDataFrame, np.ndarray, np.ndarray]:
    """Queries around records of the original, each from three random numbers of its own; none without records."""
    key = secrets.token_bytes(32) if seed is None else str(seed).encode()
    entropy = int.from_bytes(hashlib.blake2b(key, digest_size=32, person=b"queries").digest(), "little")
    draws = np.random.default_rng(entropy).random((queries if original.records else 0, 3))
    records = (draws[:, 0] * original.records).astype(np.int64)
    half_sides = (HALF_DIAGONALS[0] + draws[:, 1] * (HALF_DIAGONALS[1] - HALF_DIAGONALS[0])) / math.sqrt(2)
    lengths = LENGTHS[0] + (draws[:, 2] * (LENGTHS[1] - LENGTHS[0] + 1)).astype(np.int64)
    starts = original.times[records] - lengths // 2
    windows = np.column_stack((starts, starts + lengths))
    centres = original.points[records]
    x, y = original.space.coordinates(centres)
    start, end = (_as_index(original, times) for times in windows.T)
    columns = {"geometry": make_points(x, y), "half_side": half_sides, "start": start, "end": end}
    return gpd.GeoDataFrame(columns, geometry="geometry", crs=original.space.crs), centres, windows


def _as_index(original: Traces, times: np.ndarray) -> pd.DatetimeIndex:
    index = pd.DatetimeIndex(np.ascontiguousarray(times).view("M8[ns]"))
    zone = original.time_format.zone
    return index if zone is None else index.tz_localize("UTC").tz_convert(zone)


def _boxes(space: Space, centres: np.ndarray, half_sides: np.ndarray) -> np.ndarray:
    """What the kernel compares with: centre and half-side in the plane; cosines and sines on the sphere.

    There: of the centre's longitude, of half the width, of the southern and of the northern border. All longitudes
    where half the width reaches 180° or at a pole; nothing beyond the pole.
    """
    if not space.curvature:
        return np.column_stack((centres, half_sides))
    x, y, z = centres.T
    flat = np.hypot(x, y)
    longitude, latitude, half = np.arctan2(y, x), np.arctan2(z, flat), half_sides / EARTH_RADIUS
    width = np.full(len(half), math.pi)
    np.divide(half, flat, out=width, where=half < math.pi * flat)
    south, north = latitude - half, latitude + half
    angles = (longitude, width, np.maximum(south, -math.pi / 2), np.minimum(north, math.pi / 2))
    boxes = np.column_stack([side(angle) for angle in angles for side in (np.cos, np.sin)])
    boxes[width >= math.pi, 2:4] = -1.0, 0.0
    boxes[south <= -math.pi / 2, 4:6] = 0.0, -1.0
    boxes[north >= math.pi / 2, 6:8] = 0.0, 1.0
    return boxes


def _answers(traces: Traces, boxes: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """The number of traces with a record inside, for each query."""
    counts = np.zeros(len(boxes), np.int64)
    if len(traces) == 0:
        return counts
    begins, ends = traces.times[traces.offsets[:-1]], traces.times[traces.offsets[1:] - 1]
    order = np.argsort(begins, kind="stable")
    spans = order, begins[order], np.maximum.accumulate(ends[order])
    threads.take_turns(
        lambda first, last: kernels.count(
            traces.points, traces.times, traces.offsets, spans, boxes, windows, first, last, counts
        ),
        threads.fair(np.full(len(boxes), traces.records), most=threads.MANY),
    )
    return counts
