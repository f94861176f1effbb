"""Distributions of errors, speeds and intervals. They return matplotlib axes, and never show or save them."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import geopandas as gpd
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from promesse_geo.messages import invalid
from promesse_geo.metrics import SpatialError
from promesse_geo.plot.axes import add_legend, axes_for, finish, make_logarithmic, next_colour, start_at_zero
from promesse_geo.plot.tables import steps
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces

Data: TypeAlias = gpd.GeoDataFrame | Traces
Protected: TypeAlias = Data | Mapping[str, Data]

_SLOWEST, _SHORTEST = 1e-2, 1e-3  # metres per second and seconds: a logarithmic axis has no 0
_DURATIONS = {0.001: "1 ms", 0.01: "10 ms", 0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h"}
_DURATIONS |= {36_000: "10 h", 86_400: "1 day", 864_000: "10 days", 8_640_000: "100 days", 86_400_000: "1,000 days"}


def spatial_error(
    original: Data, protected: Protected, *, ax: Axes | None = None, user: Name = ..., time: Name = ...
) -> Axes:
    """Draw the distribution of the distances from protected records to the original path of their user.

    Parameters
    ----------
    original : geopandas.GeoDataFrame or Traces
        The original data.
    protected : geopandas.GeoDataFrame, Traces or mapping of names to them
        One or several protected versions of the original data.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.
    user, time : column name, None or ...
        Columns of all frames; see `Traces.from_frame`.

    Returns
    -------
    matplotlib.axes.Axes
        x: metres, linear up to 1 m and logarithmic beyond. y: percent of the records.

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
    >>> from promesse_geo.plot import spatial_error
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> spatial_error(city, {"Promesse": city.promesse.smooth(200)}).get_xlabel()
    'distance to the original path (m)'
    """
    before = as_traces(original, user=user, time=time)
    metric = SpatialError()
    index = metric.index(before)
    errors = {
        name: metric.detail(before, as_traces(data, user=user, time=time), index=index).to_numpy()
        for name, data in named_versions(protected, owner="spatial_error").items()
    }
    axes = axes_for(ax, height=4.5, owner="spatial_error")
    previous = axes.get_xlim()[1] if axes.has_data() else 0.0
    x, y = "distance to the original path (m)", "share of protected records up to this distance (%)"
    _draw_distributions(errors, axes, x=x, y=y)
    farthest = max((float(each.max()) for each in errors.values() if len(each)), default=0.0)
    start_at_zero(axes, max(1.15 * farthest, previous))
    return axes


def speeds(original: Data, protected: Protected, *, ax: Axes | None = None, user: Name = ..., time: Name = ...) -> Axes:
    """Draw the distributions of the speed between consecutive records, original and protected.

    Parameters
    ----------
    original, protected, ax, user, time
        As for `spatial_error`.

    Returns
    -------
    matplotlib.axes.Axes
        x: metres per second, logarithmic, with slower steps drawn at 1 cm/s. y: percent of the steps. Steps between
        records of the same time have no speed and are not counted.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot import speeds
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> speeds(city, city.promesse.smooth(200)).get_xlabel()
    'speed between consecutive records (m/s)'
    """
    values = {}
    for name, (lengths, nanoseconds) in _all_steps(original, protected, user=user, time=time, owner="speeds").items():
        timed = nanoseconds > 0
        values[name] = np.maximum(lengths[timed] / (nanoseconds[timed] / 1e9), _SLOWEST)
    axes = axes_for(ax, height=4.5, owner="speeds")
    x, y = "speed between consecutive records (m/s)", "share of steps up to this speed (%)"
    return _draw_distributions(values, axes, x=x, y=y, logarithmic=True)


def intervals(
    original: Data, protected: Protected, *, ax: Axes | None = None, user: Name = ..., time: Name = ...
) -> Axes:
    """Draw the distributions of the time between consecutive records, original and protected.

    Parameters
    ----------
    original, protected, ax, user, time
        As for `spatial_error`.

    Returns
    -------
    matplotlib.axes.Axes
        x: seconds, logarithmic and labelled as durations, with shorter intervals drawn at a millisecond. y: percent of
        the intervals.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot import intervals
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> intervals(city, city.promesse.smooth(200)).get_xscale()
    'log'
    """
    versions = _all_steps(original, protected, user=user, time=time, owner="intervals")
    seconds = {name: np.maximum(nanoseconds / 1e9, _SHORTEST) for name, (_, nanoseconds) in versions.items()}
    axes = axes_for(ax, height=4.5, owner="intervals")
    x, y = "time between consecutive records", "share of steps up to this interval (%)"
    _draw_distributions(seconds, axes, x=x, y=y, logarithmic=True)
    axes.xaxis.set_major_locator(FixedLocator(list(_DURATIONS)))
    axes.xaxis.set_major_formatter(FixedFormatter(list(_DURATIONS.values())))
    axes.xaxis.set_minor_locator(NullLocator())
    return axes


def named_versions(protected: Protected, *, owner: str, original: bool = False) -> Mapping[str, Data]:
    """Return protected data by name; with `original`, the figure draws the original data as well, under that name."""
    if isinstance(protected, (gpd.GeoDataFrame, Traces)):
        return {"protected": protected}
    rule = "a GeoDataFrame, Traces, or a mapping of names to at least one of them"
    if not isinstance(protected, Mapping) or not protected:
        kind = ValueError if isinstance(protected, Mapping) else TypeError
        raise kind(invalid("protected", owner, rule, protected))
    if original and "original" in protected:
        rule = "a mapping of names other than 'original', which names the original data"
        raise ValueError(invalid("protected", owner, rule, protected))
    return protected


def _all_steps(
    original: Data, protected: Protected, *, user: Name, time: Name, owner: str
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return metres and nanoseconds between consecutive records, for the original and each protected version."""
    data = {"original": original, **named_versions(protected, owner=owner, original=True)}
    return {name: steps(as_traces(each, user=user, time=time)) for name, each in data.items()}


def _draw_distributions(
    values: dict[str, np.ndarray], axes: Axes, *, x: str, y: str, logarithmic: bool = False
) -> Axes:
    """Draw cumulative distributions in percent, one line per name; return the axes, labelled with `x` and `y`."""
    shares = np.linspace(0, 1, 1001)
    lines = []
    largest = max((each.max() for each in values.values() if len(each)), default=0.0)
    for name, each in values.items():
        dashes = ("-", "--", "-.", ":")[len(axes.get_lines()) % 4]
        style: dict[str, Any] = {"color": next_colour(name, axes), "linestyle": dashes}
        along = np.append(np.quantile(each, shares, method="inverted_cdf"), largest) if len(each) else np.array([])
        lines += axes.plot(along, 100 * np.append(shares, 1)[: len(along)], label=name, linewidth=1.8, **style)
    axes.set(ylim=(0, 102), xlabel=x, ylabel=y)
    if len(axes.get_lines()) > 1:
        add_legend(axes, lines, list(values))
    finish(axes)
    if logarithmic:
        make_logarithmic(axes)
        if largest == 0:  # without values a logarithmic axis has no limits
            axes.set_xlim(_SLOWEST, 1 / _SLOWEST)
    return axes
