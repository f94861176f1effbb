"""Figures of one trace. They return matplotlib figures or axes, and never show or save them."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from promesse_geo.mechanisms import Promesse
from promesse_geo.messages import counted, invalid
from promesse_geo.metrics.pairing import pair_by_user
from promesse_geo.plot import colours
from promesse_geo.plot.axes import add_legend, annotate, axes_for, finish, next_colour
from promesse_geo.plot.distributions import Data, Protected, named_versions
from promesse_geo.plot.tables import shortened
from promesse_geo.traces.columns import Name
from promesse_geo.traces.placing import place_points
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_integer

_CROWDED = 300  # points of a path that are drawn smaller


def overview(
    data: Data,
    *,
    epsilon: float = 200,
    trace: int | None = None,
    places: gpd.GeoSeries | None = None,
    user: Name = ...,
    time: Name = ...,
) -> Figure:
    """Draw what Promesse does to one trace, as in the paper's Figure 1.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The original data.
    epsilon : float
        Distance in metres between published points.
    trace : int, optional
        Number of the trace to draw, in the order of the data set. By default the first trace that is long enough.
    places : geopandas.GeoSeries, optional
        Points to mark with a ring and the name in the index, such as home and work. Points outside the figure are
        not drawn.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    matplotlib.figure.Figure
        Three panels: the original records, the samples at constant speed, and the samples without both ends.

    Raises
    ------
    TypeError, ValueError
        If a parameter is invalid, the trace does not exist or is too short for epsilon, or all traces are too short.

    References
    ----------
    Paper, Figure 1.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot import overview
    >>> len(overview(pg.make_city(users=1, days=1, recorder="phone"), epsilon=200).axes)
    3
    """
    traces = as_traces(data, user=user, time=time)
    _check_places(places)
    number, points, stretches = _choose_samples(traces, Promesse(epsilon), trace=trace)
    chosen = traces.select(traces.trace_numbers == number)
    recorded, samples = _kilometres(chosen.points, chosen), _kilometres(points, chosen)
    lower, upper = _limits(recorded)
    width, height = upper - lower
    figure = Figure(figsize=(12, min(3.6 * height / width, 6) + 1.4), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    title = f"Original{f', trace {number:,}' if len(traces) > 1 else ''}: {len(recorded):,} records"
    _draw_overview(panels, recorded, samples, chosen.breaks, stretches, title=title, epsilon=epsilon)
    if places is not None:
        middles = _kilometres(_points_of(places, traces), chosen)
        inside = np.all((lower < middles) & (middles < upper), axis=1)
        for axes in panels:
            _name(axes, middles[inside], places.index[inside], centre=(lower + upper) / 2)
    panels[0].set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]))
    explained = [line for axes in panels[[0, 2]] for line in axes.lines if not line.get_label().startswith("_")]
    legend = figure.legend(handles=explained, loc="outside lower center", ncols=len(explained), fontsize=11)
    for handle in filter(None, legend.legend_handles):
        handle.set_alpha(1.0)
    return figure


def _check_places(places: Any) -> None:
    rule = "a GeoSeries of points with a CRS, named by its index"
    if places is not None and not isinstance(places, gpd.GeoSeries):
        raise TypeError(invalid("places", "overview", rule, places))
    if places is not None and (places.crs is None or not (places.geom_type == "Point").all()):
        cure = "Set the CRS with set_crs." if places.crs is None else "Use the centroids of areas."
        raise ValueError(invalid("places", "overview", rule, places, cure=cure))


def _points_of(places: gpd.GeoSeries, traces: Traces) -> np.ndarray:
    """Return places as points in the space of traces; raise ValueError if one has no place there."""
    points, placed = place_points(places.x.to_numpy(), places.y.to_numpy(), crs=places.crs, space=traces.space)
    if not placed.all():
        raise ValueError(
            f"{counted(int((~placed).sum()), 'place')} of {len(placed):,} in the 'places' parameter of overview cannot "
            "be placed in the CRS of the data. Check its CRS, or bring both to EPSG:4326."
        )
    return points


def _check_trace(trace: Any, traces: Traces, *, owner: str) -> None:
    if len(traces) == 0:
        raise ValueError("The data has no traces, so there is nothing to draw.")
    if trace is not None and check_integer(trace, name="trace", owner=owner, low=0) >= len(traces):
        count = counted(len(traces), "trace")
        raise ValueError(f"trace={trace} does not exist: the data has {count}, numbered from 0.")


def _choose_samples(traces: Traces, mechanism: Promesse, *, trace: int | None) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of the trace, or of the first one that is long enough, its samples and offsets of stretches."""
    _check_trace(trace, traces, owner="overview")
    number = next(_long_enough(traces, mechanism), None) if trace is None else trace
    if number is None:
        raise ValueError(
            f"No trace is long enough to be protected with epsilon = {mechanism.epsilon:g} m. Use a smaller epsilon."
        )
    points, counts = mechanism.samples(traces.select(traces.trace_numbers == number))
    if len(points) == 0:
        drawable = sum(1 for _ in _long_enough(traces, mechanism))
        raise ValueError(
            f"trace={number} is too short to be protected with epsilon = {mechanism.epsilon:g} m. "
            f"{drawable:,} of {counted(len(traces), 'trace')} can be drawn: omit trace= to draw the first of them."
        )
    return number, points, as_offsets(counts[counts > 0])


def _long_enough(traces: Traces, mechanism: Promesse) -> Iterator[int]:
    """Yield the numbers of the traces that Promesse can protect, computed in chunks of growing size."""
    first, size = 0, 1
    while first < len(traces):
        last = min(first + size, len(traces))
        records = np.arange(traces.records)
        chunk = traces.select((traces.offsets[first] <= records) & (records < traces.offsets[last]))
        _, counts = mechanism.samples(chunk)
        yield from (first + np.unique(chunk.segment_owners[counts > 0])).tolist()
        first, size = last, 2 * size


def _limits(places: np.ndarray) -> np.ndarray:
    """Return the lower and the upper corner of a frame around places, one side at most 2.5 times the other."""
    lower, upper = places.min(axis=0), places.max(axis=0)
    sides = np.maximum(upper - lower, max(0.4 * (upper - lower).max(), 1e-3))
    return (lower + upper) / 2 + np.outer((-0.54, 0.54), sides)


def _kilometres(points: np.ndarray, reference: Traces) -> np.ndarray:
    """Return kilometres east and north of the reference's centre, shape (n, 2), for areas of the size of a city."""
    plane = reference.space.local_plane(reference.points)
    x, y = plane.project(points)
    return np.column_stack((x - plane.x.mean(), y - plane.y.mean())) / 1000


def _draw_overview(
    panels: np.ndarray,
    recorded: np.ndarray,
    samples: np.ndarray,
    breaks: np.ndarray,
    stretches: np.ndarray,
    *,
    title: str,
    epsilon: float,
) -> None:
    """Draw the records, the samples, and the samples without both ends; `stretches` are the offsets of their lines."""
    left, middle, right = panels
    firsts, lasts = stretches[:-1], stretches[1:] - 1
    published = np.delete(samples, np.append(firsts, lasts), axis=0)
    inner = (stretches - 2 * np.arange(len(stretches)))[1:-1]
    label = "record (opaque: many in one place)"
    _draw(left, recorded, breaks, colour=colours.ORIGINAL, opacity=0.3, title=title, label=label)
    _draw(middle, samples, firsts[1:], colour=colours.PROTECTED, title=f"Constant speed: one point every {epsilon:g} m")
    title = f"Ends removed: {len(published):,} points published"
    _draw(right, published, inner, colour=colours.PROTECTED, title=title, label="published point")
    _mark(right, samples[firsts], "x", size=6, label="first point, removed")
    _mark(right, samples[lasts], "s", size=7, label="last point, removed")
    left.set_ylabel("north (km)", fontsize=12)


def _draw(
    axes: Axes,
    places: np.ndarray,
    breaks: np.ndarray,
    *,
    colour: str,
    title: str,
    opacity: float = 1.0,
    label: str | None = None,
) -> None:
    """Draw a path, interrupted before `breaks`, and its points; translucent points show a stop as a dark spot."""
    axes.plot(*np.insert(places, breaks, np.nan, axis=0).T, "-", color=colours.REMOVED, linewidth=0.8, zorder=1)
    points: dict[str, Any] = {"color": colour, "alpha": opacity, "label": label}
    size = 4 if len(places) <= _CROWDED or opacity < 1 else 2.5
    axes.plot(*places.T, "o", markersize=size, markeredgewidth=0, zorder=2, **points)
    axes.set_aspect("equal", adjustable="box")
    axes.set_title(title, fontsize=12)
    axes.set_xlabel("east (km)", fontsize=12)
    axes.tick_params(labelsize=11)


def _mark(axes: Axes, places: np.ndarray, marker: str, *, size: float, label: str = "") -> None:
    """Draw hollow markers, which stay visible on points and on each other."""
    style: dict[str, Any] = {"color": rcParams["text.color"], "fillstyle": "none", "markersize": size, "clip_on": False}
    axes.plot(*places.T, marker, markeredgewidth=1.3, label=label or None, zorder=3, **style)


def _name(axes: Axes, places: np.ndarray, names: pd.Index, *, centre: np.ndarray) -> None:
    """Draw a ring around each place and write its name on the side of the figure's centre."""
    _mark(axes, places, "o", size=16)
    for place, name in zip(places, names, strict=True):
        annotate(axes, shortened(name), place, side=np.where(place < centre, 1, -1), gap=9, size=11)


def space_time(
    original: Data,
    protected: Protected,
    *,
    trace: int | None = None,
    ax: Axes | None = None,
    user: Name = ...,
    time: Name = ...,
) -> Axes:
    """Draw the distance of a user from the start of a trace over time: stops are level, and smoothing removes them.

    Parameters
    ----------
    original, protected, ax, user, time
        As for `spatial_error`.
    trace : int, optional
        Number of the trace to draw, in the order of the original data set. By default the first trace that all
        protected versions hold.

    Returns
    -------
    matplotlib.axes.Axes
        x: hours since the first original record. y: kilometres from it as the crow flies.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read or compared, or a data set does not hold the trace.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot import space_time
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> space_time(city, city.promesse.smooth(200)).get_ylabel()
    'distance from the first record (km)'
    """
    before = as_traces(original, user=user, time=time)
    _check_trace(trace, before, owner="space_time")
    pairs = {
        name: pair_by_user(before, as_traces(data, user=user, time=time))
        for name, data in named_versions(protected, owner="space_time", original=True).items()
    }
    drawable = reduce(np.intersect1d, (each.originals for each in pairs.values()), np.arange(len(before)))
    number = _choose_trace(trace, drawable, len(before))
    versions = {"original": before.select(before.trace_numbers == number)}
    for name, each in pairs.items():
        versions[name] = each.protected.select(each.originals[each.protected.trace_numbers] == number)
    axes = axes_for(ax, height=4.5, owner="space_time")
    _draw_distances(versions, axes)
    axes.set(xlabel="time since the first record (h)", ylabel="distance from the first record (km)")
    axes.set_title(_title(before, number), fontsize=11, parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 3, 6, 10]))
    return axes


def _choose_trace(trace: int | None, drawable: np.ndarray, traces: int) -> int:
    """Return the trace, or the first drawable one; raise if it is not drawable."""
    if len(drawable) == 0:
        raise ValueError("The protected data has no trace of the original data, so there is nothing to draw.")
    if trace is None:
        return int(drawable[0])
    if trace not in drawable:
        raise ValueError(
            f"trace={trace} is not in the protected data. {len(drawable):,} of {counted(traces, 'trace')} can be "
            "drawn: omit trace= to draw the first of them."
        )
    return trace


def _draw_distances(versions: dict[str, Traces], axes: Axes) -> None:
    """Draw the distance from the first original record over time, one line per version."""
    lines = []
    origin, first = versions["original"].points[0], versions["original"].times[0]
    for name, traces in versions.items():
        hours = (traces.times - first) / 3.6e12
        kilometres = traces.space.metres(np.linalg.norm(traces.points - origin, axis=1)) / 1000
        style: dict[str, Any] = {"color": next_colour(name, axes), "marker": "os^Dv"[len(axes.get_lines()) % 5]}
        hours, kilometres = (np.insert(each, traces.breaks, np.nan) for each in (hours, kilometres))
        lines += axes.plot(hours, kilometres, label=name, markersize=3, linewidth=1.2, **style)
    add_legend(axes, lines, list(versions))
    finish(axes)


def _title(traces: Traces, trace: int) -> str:
    number = f"Trace {trace:,}"
    return number if traces.names.user is None else f"{number}: {shortened(traces.users[trace])}"
