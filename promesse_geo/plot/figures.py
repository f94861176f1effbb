"""Figures: take Traces or frames, return what matplotlib drew on, never show or save."""

from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from promesse_geo.mechanisms import Promesse
from promesse_geo.messages import counted, invalid
from promesse_geo.plot import colours
from promesse_geo.plot.legends import write_beside
from promesse_geo.plot.tables import shortened
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_integer


def overview(
    data: gpd.GeoDataFrame | Traces,
    *,
    epsilon: float = 200,
    trace: int = 0,
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
    trace : int
        Number of the trace to draw, in the order of the data set.
    places : geopandas.GeoSeries, optional
        Points to ring and to name by their index, such as home and work; those outside the drawing are left out.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    matplotlib.figure.Figure
        Three panels: the original records, the samples at constant speed, and those without the ends.

    Raises
    ------
    TypeError, ValueError
        If a parameter is wrong, there is no such trace, or it is too short to be protected.

    References
    ----------
    Paper, Figure 1.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot.figures import overview
    >>> len(overview(pg.make_city(users=1, days=1), epsilon=200).axes)
    3
    """
    traces = as_traces(data, user=user, time=time)
    trace = check_integer(trace, name="trace", owner="overview", low=0)
    _check_places(places)
    if trace >= len(traces):
        raise ValueError(f"There is no trace {trace}: {counted(len(traces), 'trace')}, counted from 0.")
    chosen = traces.select(traces.trace_numbers == trace)
    points, _ = Promesse(epsilon).samples(chosen)
    if len(points) == 0:
        raise ValueError(f"Trace {trace} is too short to be protected with epsilon = {epsilon:g} m. Take another.")
    recorded, samples = _kilometres(chosen.points, chosen), _kilometres(points, chosen)
    published = samples[1:-1]
    lower, upper = _limits(recorded)
    width, height = upper - lower
    figure = Figure(figsize=(12, min(3.6 * height / width, 6) + 1.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, sharex=True, sharey=True)
    title = f"Original{f', trace {trace}' if len(traces) > 1 else ''}: {len(recorded):,} records"
    _draw(
        left,
        recorded,
        colour=colours.ORIGINAL,
        opacity=0.3,
        title=title,
        label="record (deep colour: many in one place)",
    )
    _draw(middle, samples, colour=colours.PROTECTED, title=f"Constant speed: one point every {epsilon:g} m")
    title = f"Ends removed: {len(published):,} points published"
    _draw(right, published, colour=colours.PROTECTED, title=title, label="published point")
    _mark(right, samples[:1], "x", size=6, label="first point, removed")
    _mark(right, samples[-1:], "s", size=7, label="last point, removed")
    if places is not None:
        ringed = places.to_crs(traces.space.crs)
        middles = _kilometres(traces.space.points(ringed.x.to_numpy(), ringed.y.to_numpy()), chosen)
        seen = np.all((lower < middles) & (middles < upper), axis=1)
        for axes in (left, middle, right):
            _name(axes, middles[seen], places.index[seen], centre=(lower + upper) / 2)
    left.set_ylabel("north (km)", fontsize=12)
    left.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]))
    explained = [line for axes in (left, right) for line in axes.lines if not line.get_label().startswith("_")]
    legend = figure.legend(handles=explained, loc="outside lower center", ncols=len(explained), fontsize=11)
    for handle in filter(None, legend.legend_handles):
        handle.set_alpha(1.0)
    return figure


def _check_places(places: Any) -> None:
    rule = "a GeoSeries of points with a CRS, named by its index"
    if places is not None and not isinstance(places, gpd.GeoSeries):
        raise TypeError(invalid("places", "overview", rule, places))
    if places is not None and (places.crs is None or not (places.geom_type == "Point").all()):
        cure = "Give it the CRS that it is in with set_crs." if places.crs is None else "Take centroids of areas."
        raise ValueError(invalid("places", "overview", rule, places, cure=cure))


def _limits(places: np.ndarray) -> np.ndarray:
    """Corners of a frame around the places, one side at most 2.5 times the other."""
    lower, upper = places.min(axis=0), places.max(axis=0)
    sides = np.maximum(upper - lower, max(0.4 * (upper - lower).max(), 1e-3))
    return (lower + upper) / 2 + np.outer((-0.54, 0.54), sides)


def _kilometres(points: np.ndarray, reference: Traces) -> np.ndarray:
    """East and north of the reference's middle, shape (n, 2); true enough over a city."""
    plane = reference.space.local_plane(reference.points)
    x, y = plane.project(points)
    return np.column_stack((x - plane.x.mean(), y - plane.y.mean())) / 1000


def _mark(axes: Axes, places: np.ndarray, marker: str, *, size: float, label: str = "") -> None:
    """Draw hollow marks, of shapes and sizes that can lie on each other and on points."""
    axes.plot(
        *places.T,
        marker,
        color=rcParams["text.color"],
        fillstyle="none",
        markersize=size,
        markeredgewidth=1.3,
        label=label or None,
        zorder=3,
    )


def _name(axes: Axes, places: np.ndarray, names: pd.Index, *, centre: np.ndarray) -> None:
    """Ring places and name them, on the side where the middle of the drawing is."""
    _mark(axes, places, "o", size=16)
    for place, name in zip(places, names, strict=True):
        write_beside(axes, shortened(name), place, np.where(place < centre, 1, -1), gap=9, size=11)


def _draw(
    axes: Axes, places: np.ndarray, *, colour: str, title: str, opacity: float = 1.0, label: str | None = None
) -> None:
    """Draw the way and its points; through pale ones many in one place show as a dark spot."""
    axes.plot(*places.T, "-", color=colours.REMOVED, linewidth=0.8, zorder=1)
    points: dict[str, Any] = {"color": colour, "alpha": opacity, "label": label}
    axes.plot(*places.T, "o", markersize=4, markeredgewidth=0, zorder=2, **points)
    axes.set_aspect("equal", adjustable="box")
    axes.set_title(title, fontsize=12)
    axes.set_xlabel("east (km)", fontsize=12)
    axes.tick_params(labelsize=11)
