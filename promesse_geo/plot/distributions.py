"""Figures of the data before and after: spatial error, speeds, intervals, and one trace in space and time."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import geopandas as gpd
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from promesse_geo.messages import counted, invalid
from promesse_geo.metrics import SpatialError
from promesse_geo.metrics.base import pair_by_user
from promesse_geo.plot.comparisons import axes_for
from promesse_geo.plot.legends import name_lines, next_colour
from promesse_geo.plot.tables import shortened, steps
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_integer

Data: TypeAlias = gpd.GeoDataFrame | Traces

_STYLES = ("-", "--", "-.", ":")
_SHOWN = 0.99  # the share of the widest distribution of errors that is drawn; the rest would press all to the left
_SLOWEST, _SHORTEST = 1e-2, 1e-3  # metres per second and seconds: a logarithmic axis has no 0


def spatial_error(
    original: Data,
    protected: Data | Mapping[str, Data],
    *,
    ax: Axes | None = None,
    user: Name = ...,
    time: Name = ...,
) -> Axes:
    """Draw how many protected records lie within how many metres of their user's original path.

    Parameters
    ----------
    original : geopandas.GeoDataFrame or Traces
        The original data.
    protected : geopandas.GeoDataFrame, Traces or mapping of names to them
        One or several protected versions of it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    user, time : column name, None or ...
        Columns of all frames; see `Traces.from_frame`.

    Returns
    -------
    matplotlib.axes.Axes
        Metres to the right (up to where 99 % of the widest distribution lie), percent of the records upwards.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read or compared.

    References
    ----------
    Paper, section V-C.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot.distributions import spatial_error
    >>> city = pg.make_city(users=2, days=1)
    >>> spatial_error(city, {"Promesse": city.promesse.smooth(200)}).get_xlabel()
    'distance to the original path (m)'
    """
    before = as_traces(original, user=user, time=time)
    metric = SpatialError()
    index = metric.index(before)
    errors = {
        name: metric.detail(before, as_traces(data, user=user, time=time), index=index).to_numpy()
        for name, data in _named(protected, owner="spatial_error").items()
    }
    axes = axes_for(ax, height=4.5, owner="spatial_error")
    before_us = axes.get_xlim()[1] if axes.has_data() else 0.0
    _shares(errors, axes)
    widest = max((float(np.quantile(each, _SHOWN)) for each in errors.values() if len(each)), default=0.0)
    right = max(1.0, widest, before_us)  # errors of nanometres are none
    axes.set_xlim(-0.02 * right, right)  # a line at 0 is seen
    axes.set(xlabel="distance to the original path (m)", ylabel="protected records within it (%)")
    return axes


def speeds(
    original: Data,
    protected: Data | Mapping[str, Data],
    *,
    ax: Axes | None = None,
    user: Name = ...,
    time: Name = ...,
) -> Axes:
    """Draw how fast users are from one record to the next, before and after.

    Parameters
    ----------
    original, protected, ax, user, time
        As for `spatial_error`.

    Returns
    -------
    matplotlib.axes.Axes
        Metres per second to the right on a logarithmic axis, percent of the steps upwards. Steps slower than 1 cm/s
        stand at that; those without time between their records have no speed and are left out.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot.distributions import speeds
    >>> city = pg.make_city(users=2, days=1)
    >>> speeds(city, city.promesse.smooth(200)).get_xlabel()
    'speed between consecutive records (m/s)'
    """
    found = {}
    for name, traces in _before_and_after(original, protected, user=user, time=time, owner="speeds").items():
        lengths, nanoseconds = steps(traces)
        moved = nanoseconds > 0
        found[name] = np.maximum(lengths[moved] / (nanoseconds[moved] / 1e9), _SLOWEST)
    axes = axes_for(ax, height=4.5, owner="speeds")
    _shares(found, axes)
    _to_logarithms(axes, found)
    axes.set(xlabel="speed between consecutive records (m/s)", ylabel="steps at most as fast (%)")
    return axes


def intervals(
    original: Data,
    protected: Data | Mapping[str, Data],
    *,
    ax: Axes | None = None,
    user: Name = ...,
    time: Name = ...,
) -> Axes:
    """Draw how much time passes from one record to the next, before and after.

    Parameters
    ----------
    original, protected, ax, user, time
        As for `spatial_error`.

    Returns
    -------
    matplotlib.axes.Axes
        Seconds to the right on a logarithmic axis, percent of the steps upwards. Steps shorter than a
        millisecond stand at that.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot.distributions import intervals
    >>> city = pg.make_city(users=2, days=1)
    >>> intervals(city, city.promesse.smooth(200)).get_xscale()
    'log'
    """
    traces = _before_and_after(original, protected, user=user, time=time, owner="intervals")
    seconds = {name: np.maximum(steps(each)[1] / 1e9, _SHORTEST) for name, each in traces.items()}
    axes = axes_for(ax, height=4.5, owner="intervals")
    _shares(seconds, axes)
    _to_logarithms(axes, seconds)
    axes.set(xlabel="time between consecutive records (s)", ylabel="steps at most as long (%)")
    return axes


def space_time(
    original: Data,
    protected: Data | Mapping[str, Data],
    *,
    trace: int = 0,
    ax: Axes | None = None,
    user: Name = ...,
    time: Name = ...,
) -> Axes:
    """Draw how far a user is from where the trace begins, and when: stops are level, and smoothing takes them away.

    Parameters
    ----------
    original, protected, ax, user, time
        As for `spatial_error`.
    trace : int
        Number of the trace to draw, in the order of the original data set.

    Returns
    -------
    matplotlib.axes.Axes
        Hours since the first original record to the right, kilometres from it (as the crow flies) upwards.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read or compared, or there is no such trace in each of them.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot.distributions import space_time
    >>> city = pg.make_city(users=2, days=1)
    >>> space_time(city, city.promesse.smooth(200)).get_ylabel()
    'distance from the first record (km)'
    """
    before = as_traces(original, user=user, time=time)
    trace = check_integer(trace, name="trace", owner="space_time", low=0)
    if trace >= len(before):
        raise ValueError(f"There is no trace {trace}: {counted(len(before), 'trace')}, counted from 0.")
    ways = {"original": before.select(before.trace_numbers == trace)}
    for name, data in _named(protected, owner="space_time", beside=True).items():
        pairs = pair_by_user(before, as_traces(data, user=user, time=time))
        (own,) = np.nonzero(pairs.originals == trace)
        if len(own) == 0:
            raise ValueError(f"Trace {trace} is not in the protected data. Take another.")
        ways[name] = pairs.protected.select(pairs.protected.trace_numbers == own[0])
    lines: list[Line2D] = []
    axes = axes_for(ax, height=4.5, owner="space_time")
    origin, first = ways["original"].points[0], ways["original"].times[0]
    for name, traces in ways.items():
        hours = (traces.times - first) / 3.6e12
        kilometres = traces.space.metres(np.linalg.norm(traces.points - origin, axis=1)) / 1000
        style: dict[str, Any] = {
            "color": next_colour(name, axes),
            "linewidth": 1.2,
            "marker": "os^Dv"[len(axes.get_lines()) % 5],
        }
        lines += axes.plot(hours, kilometres, label=name, markersize=3, **style)
    axes.set(xlabel="time since the first record (h)", ylabel="distance from the first record (km)")
    axes.set_title(_whose(before, trace), fontsize=11, parse_math=False)
    axes.xaxis.set_major_locator(MaxNLocator(steps=[1, 2, 3, 6, 10]))
    name_lines(axes, lines, list(ways), fontsize=9)
    _finish(axes)
    return axes


def _whose(traces: Traces, trace: int) -> str:
    """Which of the traces it is, and whose."""
    number = f"Trace {trace:,} of {len(traces):,}, counted from 0"
    return number if traces.names.user is None else f"{number}: {shortened(traces.users[trace])}"


def _named(protected: Data | Mapping[str, Data], *, owner: str, beside: bool = False) -> Mapping[str, Data]:
    """Protected data by its name in the legend, perhaps beside the original; a single one is called so."""
    if isinstance(protected, (gpd.GeoDataFrame, Traces)):
        return {"protected": protected}
    rule = "a GeoDataFrame, Traces, or a mapping of names to at least one of them"
    if not isinstance(protected, Mapping) or not protected:
        kind = ValueError if isinstance(protected, Mapping) else TypeError
        raise kind(invalid("protected", owner, rule, protected))
    if beside and "original" in protected:
        rule = "a mapping of names other than 'original', which the figure gives to the original data"
        raise ValueError(invalid("protected", owner, rule, protected))
    return protected


def _before_and_after(
    original: Data, protected: Data | Mapping[str, Data], *, user: Name, time: Name, owner: str
) -> dict[str, Traces]:
    data = {"original": original, **_named(protected, owner=owner, beside=True)}
    return {name: as_traces(each, user=user, time=time) for name, each in data.items()}


def _shares(values: dict[str, np.ndarray], axes: Axes) -> None:
    """Draw distributions as rising lines: how many percent are at most so large."""
    shares = np.linspace(0, 1, 1001)
    lines: list[Line2D] = []
    largest = max((own.max() for own in values.values() if len(own)), default=0.0)
    for name, own in values.items():
        dashes = _STYLES[len(axes.get_lines()) % len(_STYLES)]
        style: dict[str, Any] = {"color": next_colour(name, axes), "linestyle": dashes}
        places = np.append(np.quantile(own, shares, method="inverted_cdf"), largest) if len(own) else np.array([])
        lines += axes.plot(places, 100 * np.append(shares, 1)[: len(places)], label=name, linewidth=1.8, **style)
    axes.set_ylim(0, 102)
    if len(axes.get_lines()) > 1:
        name_lines(axes, lines, list(values), fontsize=9)
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.grid(linewidth=0.4)
    axes.spines[["top", "right"]].set_visible(False)


def _to_logarithms(axes: Axes, values: dict[str, np.ndarray]) -> None:
    """Make the horizontal axis logarithmic, on which nothing at all has no place of its own."""
    axes.set_xscale("log")
    if not any(map(len, values.values())):
        axes.set_xlim(_SLOWEST, 1 / _SLOWEST)
