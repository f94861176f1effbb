"""Error of the counts of users in areas and time windows."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype
from pyproj import CRS

from promesse_geo import threads
from promesse_geo.kernels import queries as kernels
from promesse_geo.messages import counted, listed, warn
from promesse_geo.metrics.base import Metric, Parts
from promesse_geo.metrics.pairing import pair_by_user
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.placing import place_points
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.space import EARTH_RADIUS, Space, choose_space
from promesse_geo.traces.traces import Traces
from promesse_geo.traces.values import check_geometry, make_points, read_times, read_users
from promesse_geo.validation import check_integer, check_seed, key_of

HALF_DIAGONALS = 500.0, 5_000.0
"""Least and greatest half diagonal of a drawn square, in metres."""

_HOUR = 3_600_000_000_000
LENGTHS = 2 * _HOUR, 8 * _HOUR
"""Least and greatest length of a drawn time window, in nanoseconds."""

MOST_QUERIES = 10_000_000
"""Greatest number of drawn queries."""

_COLUMNS = ("half_side", "start", "end")
_OWNER = "RangeQueryDistortion"

_HALVING = 25.0  # nanoseconds to halve the records of a trace in search of a time, if each query searches its traces
_RECORD, _BLOCKS = 100.0, 2e7  # nanoseconds for a record and for all, if each record searches a block of queries
_BLOCK = 16 * kernels.BITS  # queries whose masks stay in the cache
_SAMPLE = 10_000  # records
_SLACK = 1e-9  # of the radius: more than the rounding of a box
Spans = tuple[np.ndarray, np.ndarray, np.ndarray]
"""What `kernels.count_traces` documents as spans."""


@dataclass(frozen=True, eq=False, repr=False)
class FrameQueries:
    """Validated queries of the caller: a frame of centres with half_side in metres, start and end."""

    frame: gpd.GeoDataFrame
    half_sides: np.ndarray
    windows: np.ndarray
    zoned: bool

    def __repr__(self) -> str:
        """Return the number of queries and a fingerprint, no locations."""
        digest = hashlib.blake2b(CRS(self.frame.crs).to_wkt().encode(), digest_size=4, person=b"own queries")
        for values in (self.frame.geometry.x, self.frame.geometry.y, self.half_sides, self.windows):
            digest.update(np.ascontiguousarray(values).tobytes())
        return f"<{counted(len(self.frame), 'query', 'queries')}, fingerprint {digest.hexdigest()}>"


class QueryIndex(NamedTuple):
    """Queries as a table with the original counts, and as the arguments of the kernel."""

    table: gpd.GeoDataFrame
    boxes: np.ndarray
    windows: np.ndarray


@dataclass(frozen=True)
class RangeQueryDistortion(Metric):
    """Relative error of the number of users that cross an area during a time window (paper, section V-C, Table IV).

    A query is a square with sides north-south and east-west around a centre, and a time window, borders included. Its
    answer is the number of users with at least one record inside, its distortion `|Q(D) − Q(D′)| / Q(D)`.

    The detail has one row per query: geometry (centre), half_side in metres, start, end, the answers `original` and
    `protected`, and `distortion`. The centres are true locations: do not publish the detail. The value is the mean
    distortion in percent.

    Parameters
    ----------
    queries : int or geopandas.GeoDataFrame
        Number of queries to draw, at most 10 million. Each is centred on a random record of the original data in space
        and time, with a half diagonal of 500 to 5,000 m and a window of 2 to 8 hours. Or the queries: points with the
        columns half_side (metres), start and end (times with or without a zone, as in the data).
    seed : int or str, optional
        Seed of the draw.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter has the wrong type or is out of range, or the queries lack a column.

    Notes
    -----
    A query that no original user matches has distortion 0 if no protected user matches it, and an undefined distortion
    (NaN) otherwise. A warning counts undefined distortions, which are excluded from the mean.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> metric = pg.RangeQueryDistortion(queries=50, seed=0)
    >>> metric.measure(city, city)
    0.0
    """

    queries: "int | gpd.GeoDataFrame | FrameQueries" = 1000
    seed: int | str | None = field(default=None, repr=False)
    unit: ClassVar[str] = "%"
    bounds: ClassVar[tuple[float, float]] = (0, np.inf)
    meaning: ClassVar[str] = "lower is more useful"
    undefined: ClassVar[str] = "no query matches an original user"

    maps_once: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Validate the parameters."""
        if isinstance(self.queries, gpd.GeoDataFrame):
            object.__setattr__(self, "queries", _check_queries(self.queries))
        elif not isinstance(self.queries, FrameQueries):
            number = check_integer(self.queries, name="queries", owner=_OWNER, high=MOST_QUERIES)
            object.__setattr__(self, "queries", number)
        object.__setattr__(self, "seed", check_seed(self.seed, owner=_OWNER))

    def _index(self, original: Traces) -> QueryIndex:
        if isinstance(self.queries, FrameQueries):
            table, centres = _project(self.queries, original)
            windows = self.queries.windows
        else:
            table, centres, windows = _draw(original, int(self.queries), self.seed)
        boxes = _to_boxes(original.space, centres, table.half_side.to_numpy(np.float64))
        return QueryIndex(table.assign(original=_answer(original, boxes, windows)), boxes, windows)

    def _detail(self, pairs: Pairs, index: QueryIndex) -> gpd.GeoDataFrame:
        return _compare(index.table, _answer(pairs.protected, index.boxes, index.windows))

    def detail_of_parts(self, parts: Parts) -> gpd.GeoDataFrame:
        """Compare data that are divided by user; the queries are those that `detail` draws for all of them.

        Parameters
        ----------
        parts : Parts
            The data.

        Returns
        -------
        geopandas.GeoDataFrame
            As of `detail`.
        """
        sizes = parts.map(_sizes)
        empty = next((empty for users, _, empty in sizes if len(users)), sizes[0][2])
        queries = self.queries
        if isinstance(queries, FrameQueries):
            table, centres = _project(queries, empty)
            windows = queries.windows
        else:
            table, centres, windows = self._draw_of_parts(int(queries), parts, sizes, empty)
        boxes = _to_boxes(empty.space, centres, table.half_side.to_numpy(np.float64))
        before, after = np.sum(parts.map(_answers, [boxes, windows]), axis=0)
        return _compare(table.assign(original=before), after)

    def _draw_of_parts(
        self, number: int, parts: Parts, sizes: list[Any], empty: Traces
    ) -> tuple[gpd.GeoDataFrame, np.ndarray, np.ndarray]:
        """Draw the queries that `_draw` draws for all parts together."""
        counts = np.concatenate([counts for _, counts, _ in sizes])
        ranks, users = read_users(pd.Series([user for names, _, _ in sizes for user in names], name="user"))
        ordered = np.zeros(len(users), np.int64)
        ordered[ranks] = counts
        offsets = as_offsets(ordered)
        draws = _draw_numbers(int(offsets[-1]), number, self.seed)
        owners = np.searchsorted(offsets, draws.records, side="right") - 1
        wanted: dict[Any, list[tuple[int, int]]] = {}
        for query, (owner, record) in enumerate(zip(owners, draws.records - offsets[owners], strict=True)):
            wanted.setdefault(users[owner], []).append((query, int(record)))
        centres, times = np.empty((len(owners), empty.space.dimension)), np.empty(len(owners), np.int64)
        for queries, points, moments in parts.map(_find_records, [wanted]):
            centres[queries], times[queries] = points, moments
        return _query_table(empty, centres, times, draws)

    def measure_parts(self, parts: Parts) -> float:
        """Return the mean distortion of data that are divided by user.

        Parameters
        ----------
        parts : Parts
            The data.
        """
        return self.value(self.detail_of_parts(parts))

    def condense(self, detail: gpd.GeoDataFrame, first: int, last: int) -> gpd.GeoDataFrame:
        """Return the detail of a portion of users as it is: protected answers can be added."""
        return detail

    def value_of_portions(self, condensed: Sequence[gpd.GeoDataFrame]) -> float:
        """Return the mean distortion of all portions of users."""
        return self.value(_compare(condensed[0], np.sum([detail.protected for detail in condensed], axis=0)))

    def value(self, detail: pd.DataFrame) -> float:
        """Return the mean distortion in percent; warn of undefined distortions and exclude them."""
        missing = int(detail.distortion.isna().sum())
        if missing:
            noun = counted(missing, "query has an undefined distortion", "queries have an undefined distortion")
            warn(f"{noun} (no original user matches), excluded from the mean of {len(detail):,}.")
        return 100 * float(detail.distortion.mean())


def _compare(table: gpd.GeoDataFrame, after: np.ndarray) -> gpd.GeoDataFrame:
    """Add the protected counts, shape (queries,), and distortions to a table of queries with the original ones."""
    before = table.original.to_numpy()
    distortion = np.where(after > 0, math.nan, 0.0)
    np.divide(np.abs(before - after), before, out=distortion, where=before > 0)
    return table.assign(protected=after, distortion=distortion)


def _sizes(original: Traces, protected: Traces) -> tuple[list[Any], np.ndarray, Traces]:
    """Users and counts of the original records of a part, and the original without any."""
    return original.users.tolist(), original.counts, original.select(np.zeros(original.records, bool))


def _find_records(
    original: Traces, protected: Traces, wanted: Mapping[Any, list[tuple[int, int]]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find records by user and their number in the trace: the numbers of their queries, points and times."""
    starts = dict(zip(original.users.tolist(), original.offsets[:-1].tolist(), strict=True))
    found = [(query, starts[user] + record) for user in starts for query, record in wanted.get(user, ())]
    queries, rows = np.array(found, np.int64).reshape(-1, 2).T
    return queries, original.points[rows], original.times[rows]


def _answers(original: Traces, protected: Traces, boxes: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the counts of the original and of the protected traces of a part, int64 of shape (2, queries)."""
    pairs = pair_by_user(original, protected)
    return np.stack([_answer(traces, boxes, windows) for traces in (original, pairs.protected)])


def _check_queries(frame: gpd.GeoDataFrame) -> FrameQueries:
    """Validate the queries of the caller."""
    check_geometry(frame)
    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing:
        raise KeyError(
            f"The queries of {_OWNER} lack {listed(missing)}. Pass points with the columns {listed(_COLUMNS)}."
        )
    repeated = [name for name in (*_COLUMNS, frame.active_geometry_name) if list(frame.columns).count(name) > 1]
    if repeated:
        raise ValueError(f"The queries of {_OWNER} have several columns named {listed(repeated)}. Keep one of each.")
    if frame.crs is None:
        raise ValueError(f"The queries of {_OWNER} have no CRS. Set it, for example with frame.set_crs(4326).")
    try:
        choose_space(frame.crs, np.empty(0), np.empty(0))
    except ValueError as error:
        raise ValueError(f"The queries of {_OWNER} are invalid. {error}") from None
    kind = frame.half_side.dtype
    if not is_numeric_dtype(kind) or is_bool_dtype(kind) or is_complex_dtype(kind):
        raise TypeError(f"The half_side of the queries of {_OWNER} must be numbers of metres. Got the type {kind}.")
    starts, no_start, start_format = read_times(frame.start)
    ends, no_end, end_format = read_times(frame.end)
    if (start_format.zone is None) != (end_format.zone is None):
        raise ValueError(f"The start and the end of the queries of {_OWNER} must both have a time zone, or neither.")
    half_sides = frame.half_side.to_numpy(np.float64, na_value=np.nan)
    points = (frame.geom_type == "Point").to_numpy() & ~frame.is_empty.to_numpy()
    _raise_if_any(~points, "a geometry that is not a point")
    _raise_if_any(~((half_sides > 0) & np.isfinite(half_sides)), "a half_side that is not a finite number above zero")
    _raise_if_any(no_start | no_end, "no start or no end")
    _raise_if_any(starts > ends, "an end before the start")
    columns = {"geometry": frame.geometry.array, **{name: frame[name] for name in _COLUMNS}}
    table = gpd.GeoDataFrame(columns, geometry="geometry", index=frame.index)
    return FrameQueries(table, half_sides, np.column_stack((starts, ends)), start_format.zone is not None)


def _raise_if_any(bad: np.ndarray, what: str) -> None:
    if bad.any():
        verb = "is" if bad.sum() == 1 else "are"
        raise ValueError(
            f"{counted(int(bad.sum()), 'query', 'queries')} of {len(bad):,} of {_OWNER} {verb} invalid: {what}, "
            f"first in row {int(bad.argmax()):,}, counted from 0. Fix or drop them."
        )


def _project(queries: FrameQueries, original: Traces) -> tuple[gpd.GeoDataFrame, np.ndarray]:
    """Return the queries of the caller and their centres in the space of the original."""
    if queries.zoned != (original.time_format.zone is not None) and original.records:
        having, lacking = ("queries", "data") if queries.zoned else ("data", "queries")
        raise ValueError(
            f"The times of the {having} have a time zone and those of the {lacking} have none. Localize one of them "
            "with dt.tz_localize."
        )
    space, frame = original.space, queries.frame
    x, y = frame.geometry.x.to_numpy(), frame.geometry.y.to_numpy()
    points, placed = place_points(x, y, crs=frame.crs, space=space)
    _raise_if_any(~placed, "a centre without a place in the CRS of the data")
    return frame, points


class Draws(NamedTuple):
    """Numbers of records, half sides in metres, and lengths of windows in nanoseconds, shape (queries,) each."""

    records: np.ndarray
    half_sides: np.ndarray
    lengths: np.ndarray


def _draw_numbers(records: int, queries: int, seed: int | str | None) -> Draws:
    """Draw queries around records, each from three random numbers; none without records."""
    entropy = int.from_bytes(key_of(seed, "queries"), "little")
    draws = np.random.default_rng(entropy).random((queries if records else 0, 3))
    half_sides = (HALF_DIAGONALS[0] + draws[:, 1] * (HALF_DIAGONALS[1] - HALF_DIAGONALS[0])) / math.sqrt(2)
    lengths = LENGTHS[0] + (draws[:, 2] * (LENGTHS[1] - LENGTHS[0] + 1)).astype(np.int64)
    return Draws((draws[:, 0] * records).astype(np.int64), half_sides, lengths)


def _draw(original: Traces, queries: int, seed: int | str | None) -> tuple[gpd.GeoDataFrame, np.ndarray, np.ndarray]:
    """Draw queries around records of the original; return them with their centres and windows."""
    draws = _draw_numbers(original.records, queries, seed)
    centres = original.points[draws.records]
    return _query_table(original, centres, original.times[draws.records], draws)


def _query_table(
    original: Traces, centres: np.ndarray, times: np.ndarray, draws: Draws
) -> tuple[gpd.GeoDataFrame, np.ndarray, np.ndarray]:
    """Return queries around centres and times, with the space and the zone of the original."""
    starts = times - draws.lengths // 2
    windows = np.column_stack((starts, starts + draws.lengths))
    x, y = original.space.coordinates(centres)
    start, end = (_as_index(original, times) for times in windows.T)
    columns = {"geometry": make_points(x, y), "half_side": draws.half_sides, "start": start, "end": end}
    return gpd.GeoDataFrame(columns, geometry="geometry", crs=original.space.crs), centres, windows


def _as_index(original: Traces, times: np.ndarray) -> pd.DatetimeIndex:
    index = pd.DatetimeIndex(np.ascontiguousarray(times).view("M8[ns]"))
    zone = original.time_format.zone
    return index if zone is None else index.tz_localize("UTC").tz_convert(zone)


def _to_boxes(space: Space, centres: np.ndarray, half_sides: np.ndarray) -> np.ndarray:
    """Return the boxes of the kernel: centre and half side in the plane; cosines and sines of angles on the sphere.

    The angles are the centre's longitude, half the width, and the latitudes of the southern and northern borders. A box
    holds all longitudes if half its width reaches 180° or it reaches a pole. It never extends beyond a pole.
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


def _answer(traces: Traces, boxes: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the number of traces with a record inside each query.

    Each query searches the traces that exist during its window, or each record its queries, whichever takes less time.
    """
    if len(traces) == 0:
        return np.zeros(len(boxes), np.int64)
    begins, ends = traces.times[traces.offsets[:-1]], traces.times[traces.offsets[1:] - 1]
    order = np.argsort(begins, kind="stable")
    spans = order, begins[order], np.maximum.accumulate(ends[order])
    blocks = math.ceil(len(boxes) / _BLOCK)
    if _time_of_search(traces, spans, windows) < (_BLOCKS + _RECORD * traces.records) * blocks:
        return _search_traces(traces, spans, boxes, windows)
    counts = np.empty(len(boxes), np.int64)
    for queries in np.array_split(np.argsort(windows[:, 0], kind="stable"), blocks):
        counts[queries] = _search_queries(traces, boxes[queries], windows[queries])
    return counts


def _time_of_search(traces: Traces, spans: Spans, windows: np.ndarray) -> float:
    """Estimate how long `_search_traces` takes, in nanoseconds."""
    _, begins, latest = spans
    starts, ends = np.ascontiguousarray(windows.T)
    pairs = np.searchsorted(begins, ends, side="right") - np.searchsorted(latest, starts)
    step = math.ceil(traces.records / _SAMPLE)
    sample = np.sort(traces.times[::step])
    records = np.searchsorted(sample, ends, side="right") - np.searchsorted(sample, starts)
    halvings = math.log2(1 + traces.records / len(traces))
    return _HALVING * halvings * float(np.maximum(pairs, 0).sum()) + step * float(records.sum())


def _search_traces(traces: Traces, spans: Spans, boxes: np.ndarray, windows: np.ndarray) -> np.ndarray:
    counts = np.zeros(len(boxes), np.int64)
    records = traces.points, traces.times, traces.offsets
    threads.run_interruptible(
        lambda first, last: kernels.count_traces(*records, spans, boxes, windows, first, last, counts),
        threads.fair(np.full(len(boxes), traces.records), most=threads.MANY),
    )
    return counts


def _search_queries(traces: Traces, boxes: np.ndarray, windows: np.ndarray) -> np.ndarray:
    slabs = [_slabs(*borders) for borders in (*_borders(traces.space, boxes), tuple(windows.T.astype(np.float64)))]
    edges, masks = (np.stack(arrays) for arrays in zip(*slabs, strict=True))
    records = traces.points, traces.times, traces.offsets
    counts: list[np.ndarray] = []
    threads.run_interruptible(
        lambda first, last: counts.append(
            kernels.count_traces_by_record(*records, edges, masks, boxes, windows, first, last)
        ),
        threads.fair(traces.counts, most=threads.MANY),
    )
    return np.sum(counts, axis=0)


def _borders(space: Space, boxes: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the least and the greatest coordinate of each box along each axis of the space, a little beyond it."""
    if not space.curvature:
        slack = 1e-9 * (1 + np.abs(boxes[:, :2]).max(axis=1) + boxes[:, 2])
        return [(boxes[:, axis] - boxes[:, 2] - slack, boxes[:, axis] + boxes[:, 2] + slack) for axis in (0, 1)]
    longitude, width, south, north = (np.arctan2(boxes[:, i + 1], boxes[:, i]) for i in (0, 2, 4, 6))
    widest = np.where(south * north < 0, 1.0, np.maximum(boxes[:, 4], boxes[:, 6]))
    narrowest = np.minimum(boxes[:, 4], boxes[:, 6])
    sides = []
    for turn in (0.0, math.pi / 2):  # x = cos φ cos λ and y = cos φ cos(λ − 90°)
        middle = np.abs((longitude - turn + math.pi) % (2 * math.pi) - math.pi)
        low = np.where(middle + width >= math.pi, -1.0, np.cos(middle + width))
        high = np.where(middle <= width, 1.0, np.cos(middle - width))
        sides.append((np.minimum(low * widest, low * narrowest), np.maximum(high * widest, high * narrowest)))
    return [(low - _SLACK, high + _SLACK) for low, high in (*sides, (boxes[:, 5], boxes[:, 7]))]


def _slabs(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of slabs along an axis and the masks of intervals that overlap them, as the kernel takes them.

    The edges are quantiles of the ends of the intervals, so that few intervals overlap a slab in part only.
    """
    ends = np.unique(np.concatenate((low, high)))
    edges = np.full(kernels.EDGES, np.inf)
    chosen = ends[np.linspace(0, len(ends) - 1, min(len(ends), kernels.EDGES)).astype(np.int64)]
    edges[: len(chosen)] = chosen
    words = math.ceil(len(low) / kernels.BITS)
    overlaps = np.zeros((kernels.EDGES + 1, words * kernels.BITS), np.int64)
    slabs = np.arange(kernels.EDGES + 1)[:, np.newaxis]
    first, last = (np.searchsorted(edges, border, side="right") for border in (low, high))
    overlaps[:, : len(low)] = (first <= slabs) & (slabs <= last)
    bits = np.left_shift(1, np.arange(kernels.BITS))
    return edges, overlaps.reshape(len(slabs), words, kernels.BITS) @ bits
