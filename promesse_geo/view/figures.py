"""Figures: take Traces or frames, return what matplotlib drew on, never show or save."""

import geopandas as gpd
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from promesse_geo import check
from promesse_geo.columns import Name
from promesse_geo.mechanisms import Promesse
from promesse_geo.traces import Traces, as_traces
from promesse_geo.view import colours


def overview(
    data: gpd.GeoDataFrame | Traces, *, epsilon: float = 200, trace: int = 0, user: Name = ..., time: Name = ...
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
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    matplotlib.figure.Figure
        Three panels: the original records, the samples at constant speed, and those without the ends.

    Raises
    ------
    ValueError
        If there is no such trace, or it is too short to be protected.

    References
    ----------
    Paper, Figure 1.
    """
    traces = as_traces(data, user=user, time=time)
    trace = check.whole(trace, name="trace", owner="overview", low=0)
    if trace >= len(traces):
        raise ValueError(f"There is no trace {trace}: {check.counted(len(traces), 'trace')}, counted from 0.")
    chosen = traces.select(traces.trace_numbers == trace)
    points, _ = Promesse(epsilon).samples(chosen)
    if len(points) == 0:
        raise ValueError(f"Trace {trace} is too short to be protected with epsilon = {epsilon:g} m. Take another.")
    recorded, samples = _kilometres(chosen.points, chosen), _kilometres(points, chosen)
    published = samples[1:-1]
    lower, upper = _limits(recorded)
    width, height = upper - lower
    figure = Figure(figsize=(12, min(3.6 * height / width, 6) + 1), layout="constrained")
    left, middle, right = figure.subplots(1, 3, sharex=True, sharey=True)
    _draw(left, recorded, colour=colours.ORIGINAL, opacity=0.3, title=f"Original: {len(recorded):,} records")
    _draw(middle, samples, colour=colours.PROTECTED, title=f"Constant speed: one point every {epsilon:g} m")
    _draw(right, published, colour=colours.PROTECTED, title=f"Ends removed: {len(published):,} points published")
    right.plot(*samples[[0, -1]].T, "x", color="black", markersize=9, markeredgewidth=1.8, label="removed ends")
    right.legend(loc="best", fontsize=11)
    left.set_ylabel("north (km)", fontsize=12)
    left.set(xlim=(lower[0], upper[0]), ylim=(lower[1], upper[1]))
    return figure


def _limits(places: np.ndarray) -> np.ndarray:
    """Corners of a frame around the places, one side at most 2.5 times the other."""
    lower, upper = places.min(axis=0), places.max(axis=0)
    sides = np.maximum(upper - lower, max(0.4 * (upper - lower).max(), 1e-3))
    return (lower + upper) / 2 + np.outer((-0.54, 0.54), sides)


def _kilometres(points: np.ndarray, reference: Traces) -> np.ndarray:
    """East and north of the reference's middle, shape (n, 2); true enough over a city."""
    middle = reference.points.mean(axis=0)
    if reference.space.name == "plane":
        return (points - middle) / 1000
    middle /= np.linalg.norm(middle)
    east = np.cross([0.0, 0.0, 1.0], middle)
    east /= np.linalg.norm(east)
    return points @ np.column_stack((east, np.cross(middle, east))) * reference.space.scale / 1000


def _draw(axes: Axes, places: np.ndarray, *, colour: str, title: str, opacity: float = 1.0) -> None:
    """Draw the way and its points; through pale ones many in one place show as a dark spot."""
    axes.plot(*places.T, "-", color=colours.REMOVED, linewidth=0.8, zorder=1)
    axes.plot(*places.T, "o", color=colour, markersize=4, alpha=opacity, markeredgewidth=0, zorder=2)
    axes.set_aspect("equal", adjustable="box")
    axes.set_title(title, fontsize=12)
    axes.set_xlabel("east (km)", fontsize=12)
    axes.tick_params(labelsize=11)
