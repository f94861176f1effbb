"""Figures: take Traces or frames, return what matplotlib drew on, never show or save."""

import geopandas as gpd
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
        If the trace is too short to be protected.

    References
    ----------
    Paper, Figure 1.
    """
    traces = as_traces(data, user=user, time=time)
    chosen = traces.select(traces.trace_numbers == trace)
    safe = Promesse(epsilon).protect(chosen)
    if safe.records == 0:
        raise ValueError(f"Trace {trace} is too short to be protected with epsilon = {epsilon:g} m. Take another.")
    samples = _kilometres(Promesse(epsilon).samples(chosen)[0], chosen)
    recorded, published = _kilometres(chosen.points, chosen), _kilometres(safe.points, chosen)
    width, height = np.maximum(np.ptp(recorded, axis=0), 1e-3)
    figure = Figure(figsize=(12, float(np.clip(3.6 * height / width, 2, 6)) + 1), layout="constrained")
    left, middle, right = figure.subplots(1, 3, sharex=True, sharey=True)
    _draw(left, recorded, colour=colours.ORIGINAL, title=f"Original: {len(recorded):,} records")
    _draw(middle, samples, colour=colours.PROTECTED, title=f"Constant speed: one point every {epsilon:g} m")
    _draw(right, published, colour=colours.PROTECTED, title=f"Ends removed: {len(published):,} points published")
    right.plot(*samples[[0, -1]].T, "x", color=colours.REMOVED, markersize=9, label="removed ends")
    right.legend(loc="best", frameon=True)
    left.set_ylabel("north (km)")
    return figure


def _kilometres(points: np.ndarray, reference: Traces) -> np.ndarray:
    """East and north of the reference's middle, shape (n, 2); true enough over a city."""
    middle = reference.points.mean(axis=0)
    if reference.space.name == "plane":
        return (points - middle) / 1000
    middle /= np.linalg.norm(middle)
    east = np.cross([0.0, 0.0, 1.0], middle)
    east /= np.linalg.norm(east)
    return points @ np.column_stack((east, np.cross(middle, east))) * reference.space.scale / 1000


def _draw(axes: Axes, places: np.ndarray, *, colour: str, title: str) -> None:
    axes.plot(*places.T, "-", color=colours.REMOVED, linewidth=0.7, zorder=1)
    axes.plot(*places.T, "o", color=colour, markersize=4, alpha=0.4, markeredgewidth=0, zorder=2)
    axes.set_aspect("equal", adjustable="box")
    axes.set_title(title, fontsize=11)
    axes.set_xlabel("east (km)")
