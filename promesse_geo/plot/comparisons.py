"""Figures of results: reproduced and published values, and privacy against utility."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from adjustText import adjust_text
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from promesse_geo.evaluation.results import complete_results, is_table
from promesse_geo.mechanisms import mechanism_classes, mechanism_in_words, members_of
from promesse_geo.messages import invalid, listed, warn
from promesse_geo.metrics import metric_classes
from promesse_geo.plot import colours
from promesse_geo.plot.axes import add_legend, axes_for, finish, outlined_text, palette, start_at_zero, widen
from promesse_geo.plot.tables import shortened
from promesse_geo.validation import check_text

_PAPER = ("ours", "paper", "spread")  # numbers beside the texts "row" and "unit"
_ROUNDING, _WIDE = 1e-6, 20  # values that are 0 but for rounding; ratio of values that no linear axis shows
_REACH = 4.5  # typographic points from the middle of a marker to its edge
_ITERATIONS = 100  # a limit of time would place labels in another way on a busy machine
_SIZE = 8  # of labels, in typographic points


def beside_paper(table: pd.DataFrame, *, label: str = "", ax: Axes | None = None) -> Axes:
    """Draw the paper's values and ours, one row per mechanism.

    Parameters
    ----------
    table : pandas.DataFrame
        One of the paper's tables for one data set, as `promesse_geo.paper` returns them.
    label : str
        Name of the values, without the unit.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If the table or the axes are invalid.
    """
    if not is_table(table, texts=("row", "unit"), numbers=_PAPER):
        raise TypeError(invalid("table", "beside_paper", "one of the tables of pg.reproduce", table))
    table = table.astype(dict.fromkeys(_PAPER, "float64"))
    axes = axes_for(ax, height=0.34 * len(table) + 1.1, owner="beside_paper")
    rows = np.arange(len(table))[::-1]
    style: dict[str, Any] = {"color": colours.PROTECTED, "markersize": 7, "capsize": 3, "zorder": 3}
    axes.errorbar(table.ours, rows, xerr=table.spread.fillna(0), fmt="o", label="ours", **style)
    if table.paper.notna().any():
        style = {"color": rcParams["text.color"], "markersize": 9, "markeredgewidth": 1.6, "zorder": 2}
        axes.plot(table.paper, rows, "D", markerfacecolor="none", label="paper", **style)
        axes.legend(loc="best")
    axes.set_yticks(rows, table.row.map(shortened), parse_math=False)
    unit = f"({table.unit.iloc[0]})" if len(table) else ""
    axes.set_xlabel(f"{label} {unit}".strip(), parse_math=False)
    _scale_values(axes, table)
    finish(axes)
    axes.grid(False, axis="y")
    return axes


def _scale_values(axes: Axes, table: pd.DataFrame) -> None:
    """Begin the x axis at 0; make it logarithmic if the values, of another unit than percent, are of different size."""
    values = table[["ours", "paper"]].to_numpy().ravel()
    values = values[np.isfinite(values)]
    sizes = values[values > _ROUNDING]
    if (values < 0).any():
        return
    if len(sizes) and (table.unit != "%").all() and sizes.max() > _WIDE * sizes.min():
        start_at_zero(axes, 1.3 * axes.get_xlim()[1])
    else:
        axes.set_xlim(left=-0.02 * axes.get_xlim()[1])  # a marker at 0 is not cut


def trade_off(
    results: pd.DataFrame,
    *,
    privacy: str = "PoiRetrieval",
    utility: str = "RangeQueryDistortion",
    ax: Axes | None = None,
) -> Axes:
    """Draw privacy against utility for one data set; the best mechanisms are at the lower left.

    Parameters
    ----------
    results : pandas.DataFrame
        Results of `evaluate` for one data set. Mechanisms that differ only in epsilon are joined by a line, and each
        point is labelled with its epsilon. The legend names the other parameters that differ, with their units.
    privacy, utility : str
        Names of the metrics, such as `PoiRetrieval`. If the results hold several metrics of the name, the metric with
        its parameters as in the column `metric`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If the table is not a result of `evaluate`, is empty, or holds several data sets, or a metric is missing or
        ambiguous.

    Warns
    -----
    UserWarning
        If a metric is undefined for some mechanisms. They are listed and not drawn.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot import trade_off
    >>> city = pg.make_city(users=3, days=1, recorder="phone")
    >>> results = pg.evaluate({"city": city}, [pg.Promesse(100), pg.Promesse(200)])
    >>> trade_off(results).get_xlabel()
    'range query distortion (%), lower is more useful'
    """
    results = _check_results(results)
    along, across = (
        _rows_of_metric(results, check_text(metric, name=name, owner="trade_off"))
        for name, metric in (("privacy", privacy), ("utility", utility))
    )
    points = _points(across, along)
    axes = axes_for(ax, height=5, owner="trade_off")
    axes.margins(0.12, 0.08)  # space for the outermost labels
    lines = _draw_families(axes, points)
    axes.set_xlabel(_axis_label(across), parse_math=False)
    axes.set_ylabel(_axis_label(along), parse_math=False)
    add_legend(axes, lines, _legend(points), title="numbers: ε" if (points.epsilon != "").any() else None)
    for values, set_limits in ((points.x, axes.set_xlim), (points.y, axes.set_ylim)):
        if len(values):
            widen(values, set_limits)
    _label_points(axes, points, lines)
    finish(axes)
    return axes


def _check_results(results: Any) -> pd.DataFrame:
    """Return complete results of one data set."""
    complete = complete_results(results, owner="trade_off")
    if len(results) == 0:
        raise ValueError("The results are empty, so there is nothing to draw.")
    if len(results.dataset.unique()) > 1:
        raise ValueError("The results are of several data sets. Choose one, as in results[results.dataset == 'city'].")
    return complete


def _rows_of_metric(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the rows of the metric with this name, or with this name and these parameters."""
    rows = results[(results.metric == metric) | (results.metric_name == metric)]
    if len(rows) == 0:
        raise ValueError(f"The results hold no metric {metric!r}. Choose from {listed(sorted(set(results.metric)))}.")
    several = sorted(set(rows.metric))
    if len(several) > 1:
        raise ValueError(f"The results hold several metrics {metric!r}: {listed(several)}. Specify one of these.")
    return rows


def _axis_label(rows: pd.DataFrame) -> str:
    """Return the label of a metric with its unit, and which values are better if the metric is known."""
    kind = metric_classes().get(rows.metric_name.iloc[0])
    meaning = f", {kind.meaning}" if kind is not None and kind.meaning else ""
    return f"{rows.label.iloc[0]} ({rows.unit.iloc[0]}){meaning}"


def _points(across: pd.DataFrame, along: pd.DataFrame) -> pd.DataFrame:
    """Return one row per mechanism that both metrics are defined for.

    The columns are `name`, `parameters` without epsilon, `epsilon` as text, `family`, which is the number of the
    mechanism but for epsilon, and the means `x` and `y`.
    """
    x, y = (rows.groupby("mechanism", sort=False).value.mean() for rows in (across, along))
    first = across.drop_duplicates("mechanism").set_index("mechanism")
    parameters = first.parameters.map(_parse)
    points = pd.DataFrame({"x": x, "y": y}).replace([np.inf, -np.inf], np.nan)
    points["name"] = first.mechanism_name
    points["epsilon"] = parameters.map(lambda each: _as_text(each.get("epsilon", ""), digits=3))
    points["parameters"] = parameters.map(lambda each: {key: each[key] for key in each if key != "epsilon"})
    defined = points.dropna(subset=["x", "y"])
    undefined = points.index.difference(defined.index, sort=False).tolist()
    if undefined:
        warn(f"Metrics are undefined for some mechanisms, which are not drawn: {listed(undefined)}.")
    family = defined.name + " " + defined.parameters.map(lambda each: json.dumps(each, sort_keys=True))
    return defined.assign(family=pd.factorize(family)[0])


def _parse(text: Any) -> dict[str, Any]:
    """Return the parameters of a mechanism from JSON."""
    try:
        parameters = json.loads(text)
    except (ValueError, TypeError):
        parameters = None
    if not isinstance(parameters, dict):
        rule = "a table that pg.evaluate returned, with JSON objects in the column 'parameters'"
        raise ValueError(invalid("results", "trade_off", rule, text))
    return parameters


def _as_text(value: Any, *, digits: int = 12) -> str:
    """Return a parameter as text; of a number no more digits than these after the point."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"
    if isinstance(value, list):
        return f"({', '.join(map(_as_text, value))})"
    return str(value)


def _draw_families(axes: Axes, points: pd.DataFrame) -> list[Line2D]:
    """Draw a line per family of mechanisms."""
    names = points.drop_duplicates("family").name.tolist()
    lines: list[Line2D] = []
    for (_, family), (colour, marker) in zip(points.groupby("family"), _styles(names), strict=True):
        lines += axes.plot(family.x, family.y, "-", marker=marker, color=colour, markersize=7)
    return lines


def _label_points(axes: Axes, points: pd.DataFrame, lines: list[Line2D]) -> None:
    """Label points with their epsilon; adjustText moves labels away from each other, markers, lines and the legend."""
    axes.autoscale_view()
    figure: Any = axes.figure.figure  # the figure of a subfigure
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)  # labels are moved in pixels, so the size of the axes must be final
    labels = [
        outlined_text(axes, text, point, size=_SIZE, colour=colour) for text, point, colour in _labels(points, lines)
    ]
    if labels:
        legend = axes.get_legend()
        pixels = np.concatenate([axes.transData.transform(line.get_xydata()) for line in lines])
        reach = _REACH * axes.figure.dpi / 72
        covered = [Bbox([pixel - reach, pixel + reach]) for pixel in pixels]
        covered += [] if legend is None else [legend.get_window_extent()]
        x, y = _along(axes, lines)
        link: dict[str, Any] = {"arrowstyle": "-", "color": colours.GROUND, "linewidth": 0.7, "min_arrow_len": 12}
        link |= {"expand": (1.4, 1.8), "force_static": (0.5, 0.7)}  # space around labels, and strength
        adjust_text(labels, x=x, y=y, objects=covered, ax=axes, iter_lim=_ITERATIONS, **link)


def _along(axes: Axes, lines: list[Line2D]) -> tuple[np.ndarray, np.ndarray]:
    """Return markers, and places along the lines between them, at most 12 pixels apart."""
    found = []
    for line in lines:
        pixels = axes.transData.transform(line.get_xydata())
        found.append(pixels)
        for start, end in itertools.pairwise(pixels):
            steps = max(int(np.linalg.norm(end - start) // 12), 1)
            found.append(start + np.linspace(0, 1, steps + 1)[:, None] * (end - start))
    x, y = axes.transData.inverted().transform(np.concatenate(found)).T
    return x, y


def _labels(points: pd.DataFrame, lines: list[Line2D]) -> Iterator[tuple[str, np.ndarray, Any]]:
    """Yield text, point and colour of each label: one for points of a family that are close together."""
    spans = points[["x", "y"]].max() - points[["x", "y"]].min()
    for (_, family), line in zip(points.groupby("family"), lines, strict=True):
        labelled = family[family.epsilon != ""]
        near = (labelled[["x", "y"]].diff().abs() <= 0.05 * spans).all(axis=1)
        for _, close in labelled.groupby((~near).cumsum()):
            yield ", ".join(close.epsilon), close[["x", "y"]].iloc[0].to_numpy(), line.get_color()


def _styles(names: list[str]) -> list[tuple[str, str]]:
    """Choose colour and marker of each family, six colours before a colour returns with another marker.

    The first family of each of the first six classes of mechanisms has the same style in every figure. Other families
    get the styles that remain.
    """
    first, second, *others = palette()
    inks, markers = (second, first, *others), "soD^vP"  # Promesse, the second class by name, has its usual blue
    styles = [(inks[number % 6], markers[(number + number // 6) % 6]) for number in range(36)]
    classes = {name: number for number, name in enumerate(mechanism_classes()) if number < len(inks)}
    taken = {classes[name] for name in names if name in classes}
    free = set(range(len(styles))) - taken
    remaining = itertools.cycle(sorted(free, key=lambda number: (number // 6, number < len(classes), number)))
    return [
        styles[classes[name] if name in classes and name not in names[:number] else next(remaining)]
        for number, name in enumerate(names)
    ]


def _legend(points: pd.DataFrame) -> list[str]:
    """Name each family: its class, the parameters that distinguish it from others of the class, the unit of epsilon."""
    families = points.drop_duplicates("family")
    names = []
    for name, parameters in zip(families.name, families.parameters, strict=True):
        others = [each for other, each in zip(families.name, families.parameters, strict=True) if other == name]
        if members := members_of(parameters):
            description = {"mechanism": name, "parameters": parameters}
            joined = " + ".join(str(member["mechanism"]) for member in members)
            names.append(joined if len(others) == 1 else mechanism_in_words(description))
            continue
        counts = {key: sum(key in each and each[key] == value for each in others) for key, value in parameters.items()}
        differing = [key for key, count in counts.items() if count < len(others)]
        enough = [key for key in differing if counts[key] == 1][:1] or differing
        unit = mechanism_classes()[name].units if name in mechanism_classes() else {}
        texts = [f"{key} = {_as_text(parameters[key])} {unit.get(key, '')}".rstrip() for key in enough]
        names.append(", ".join([name, *texts, *([f"ε in {unit['epsilon']}"] if "epsilon" in unit else [])]))
    return names
