"""The figure of a tuned parameter."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from promesse_geo.evaluation.tuning import Tuning
from promesse_geo.messages import invalid
from promesse_geo.metrics import Metric
from promesse_geo.plot import colours
from promesse_geo.plot.axes import add_legend, axes_for, finish, make_logarithmic, palette, widen


def tuning(result: Tuning, *, ax: Axes | None = None) -> Axes:
    """Draw the values of goals and objective against the tuned parameter, and mark the best value.

    A dashed line in the colour of a metric is the limit of its goal. Values that meet all goals are filled. If the
    units of the metrics differ, the objective has an axis of its own on the right. With `per_user=True` the figure is
    the cumulative share of users by their best value.

    Parameters
    ----------
    result : Tuning
        What `tune` returned.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If the result or the axes are invalid.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2).promesse.prepare(tz="Europe/Paris")
    >>> result = pg.tune(city, pg.Promesse(200), bounds=(50, 500), goals=[(pg.PoiRetrieval(), "<=", 5)],
    ...                  objective=pg.Compression(), values=4)
    >>> pg.plot.tuning(result).get_xlabel()
    'epsilon (m)'
    """
    if not isinstance(result, Tuning):
        raise TypeError(invalid("result", "tuning", "what pg.tune returned", result))
    axes = axes_for(ax, height=4.5, owner="tuning")
    unit = result.mechanism.units.get(result.parameter)
    axes.set_xlabel(f"{result.parameter} ({unit})" if unit else result.parameter, parse_math=False)
    make_logarithmic(axes, between=_is_short(result))
    if result.is_per_user:
        _draw_users(axes, result)
    else:
        _draw_runs(axes, result)
    finish(axes)
    return axes


def _is_short(result: Tuning) -> bool:
    """Whether the values span less than two decades, so that minor ticks need labels."""
    values = result.table[result.parameter]
    return len(values) == 0 or values.max() < 100 * values.min()


def _draw_users(axes: Axes, result: Tuning) -> None:
    """Draw the cumulative share of users by their best value: all users, and those whose goals are met."""
    lines: list[Line2D] = []
    names = []
    for name, values in (("all users", result.value), ("users whose goals are met", result.value[result.meets_goals])):
        ordered = np.sort(values.to_numpy(float))
        ordered = np.concatenate((ordered[:1], ordered))  # from 0 % on
        shares = 100 * np.arange(len(ordered)) / max(len(result.value), 1)
        style = "-" if name == "all users" else "--"
        lines += axes.step(ordered, shares, style, where="post", color=palette()[len(lines)])
        names.append(name)
    tried = result.table[result.parameter]
    if len(tried) and tried.min() < tried.max():
        axes.set_xlim(0.95 * tried.min(), 1.05 * tried.max())
    axes.set_ylabel("users with at most this value (%)")
    axes.set_ylim(0, 103)
    add_legend(axes, lines, names)


def _draw_runs(axes: Axes, result: Tuning) -> None:
    """Draw a line for each metric, the limits, and the best value."""
    goals = {result.column(goal.metric): goal for goal in result.goals}
    metrics: dict[str, Metric] = {name: goal.metric for name, goal in goals.items()}
    metrics.setdefault(result.column(result.objective), result.objective)
    units = {goal.metric.unit for goal in goals.values()}
    apart = units != {result.objective.unit}
    lines, names = [], []
    for (name, metric), colour in zip(metrics.items(), palette() * len(metrics), strict=False):
        is_objective = metric is result.objective and name not in goals
        ground = axes.twinx() if is_objective and apart else axes
        lines.append(_draw_metric(ground, result, name, colour))
        names.append(f"{metric.label} ({metric.unit}){', objective' if is_objective else ''}")
        if name in goals:
            axes.axhline(goals[name].limit, color=colour, linestyle="--", linewidth=1, zorder=1)
        if ground is not axes:
            ground.set_ylabel(f"{metric.label} ({metric.unit})", parse_math=False)
            ground.spines[["top"]].set_visible(False)
    axes.set_ylabel(
        f"value ({', '.join(sorted(units | (set() if apart else {result.objective.unit})))})", parse_math=False
    )
    axes.axvline(result.value, color=colours.REMOVED, linewidth=4, alpha=0.4, zorder=0)
    verdict = "best" if result.meets_goals else "nearest, no value meets all goals"
    axes.set_title(f"{result.parameter} = {result.value:g} ({verdict})", fontsize=10, parse_math=False)
    add_legend(axes, lines, names)


def _draw_metric(axes: Axes, result: Tuning, name: str, colour: str) -> Line2D:
    """Draw the values of a metric; those of runs that meet all goals are filled."""
    parameters, values, met = (result.table[column].to_numpy() for column in (result.parameter, name, "meets_goals"))
    (line,) = axes.plot(parameters, values, "o-", color=colour, markerfacecolor="none", markersize=5)
    axes.plot(parameters[met], values[met], "o", color=colour, markersize=5, label="_met")
    drawn = np.concatenate([np.asarray(each.get_ydata(), float) for each in axes.get_lines()])
    if np.isfinite(drawn).any():
        widen(drawn[np.isfinite(drawn)], axes.set_ylim)
    return line
