"""Figures of results: ours beside the paper's, and privacy against utility."""

import itertools
import re

import numpy as np
import pandas as pd
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Affine2D

from promesse_geo.messages import invalid, listed, warn
from promesse_geo.plot import colours
from promesse_geo.plot.legends import name_lines, series, write_beside
from promesse_geo.plot.tables import shortened
from promesse_geo.validation import check_text

_COLUMNS = {"dataset", "mechanism", "metric", "unit", "value"}
_PAPERS = {"row", "paper", "ours", "spread", "unit"}


def beside_paper(table: pd.DataFrame, *, label: str = "", ax: Axes | None = None) -> Axes:
    """Draw the paper's figures and ours, one line a mechanism.

    Parameters
    ----------
    table : pandas.DataFrame
        One of the paper's tables for one data set, as `promesse_geo.paper` makes them.
    label : str
        What the figures are, without the unit.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not _is_table(table, _PAPERS, numbers=["ours", "paper", "spread"]):
        raise TypeError(invalid("table", "beside_paper", "one of the tables of pg.reproduce", table))
    table = table.astype(dict.fromkeys(("ours", "paper", "spread"), "float64"))
    axes = axes_for(ax, height=0.34 * len(table) + 1.1, owner="beside_paper")
    places = np.arange(len(table))[::-1]
    axes.errorbar(
        table.ours,
        places,
        xerr=table.spread.fillna(0),
        fmt="o",
        color=colours.PROTECTED,
        markersize=7,
        capsize=3,
        label="ours",
        zorder=3,
    )
    if table.paper.notna().any():
        axes.plot(
            table.paper,
            places,
            "D",
            color=rcParams["text.color"],
            markersize=9,
            markerfacecolor="none",
            markeredgewidth=1.6,
            label="paper",
            zorder=2,
        )
        axes.legend(loc="best")
    axes.set_yticks(places, table.row.map(shortened), parse_math=False)
    unit = f"({table.unit.iloc[0]})" if len(table) else ""
    axes.set_xlabel(f"{label} {unit}".strip(), parse_math=False)
    axes.grid(axis="x", linewidth=0.4)
    if not (table[["ours", "paper"]].min() < 0).any():
        axes.set_xlim(left=-0.02 * axes.get_xlim()[1])  # a mark at 0 is whole
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _is_table(table: object, columns: set[str], *, numbers: list[str]) -> bool:
    if not isinstance(table, pd.DataFrame) or not set(table.columns) >= columns or not table.columns.is_unique:
        return False
    texts = columns & {"mechanism", "metric", "row"}
    return all(pd.api.types.is_any_real_numeric_dtype(table[name]) for name in numbers) and all(
        pd.api.types.is_string_dtype(table[name]) for name in texts
    )


def axes_for(ax: Axes | None, *, height: float, owner: str) -> Axes:
    """The given axes, or those of a new figure of this height in inches."""
    if ax is None:
        return Figure(figsize=(8, height), layout="constrained").subplots()
    if not isinstance(ax, Axes) or ax.name != "rectilinear" or ax.figure is None:
        kind = ValueError if isinstance(ax, Axes) else TypeError
        raise kind(invalid("ax", owner, "axes of matplotlib with an x and a y, or None for new ones", ax))
    return ax


def trade_off(
    results: pd.DataFrame,
    *,
    privacy: str = "PoiRetrieval",
    utility: str = "RangeQueryDistortion",
    ax: Axes | None = None,
) -> Axes:
    """Draw what an attacker finds against what an analyst loses, for one data set; down and left is better.

    Parameters
    ----------
    results : pandas.DataFrame
        What `evaluate` returned for one data set. Mechanisms that differ by epsilon alone are joined by a line, and
        each point is labelled with its epsilon; the legend says in which unit, where it is known.
    privacy, utility : str
        Names of the metrics, as in `PoiRetrieval`; with their parameters, as in the results, where there are several.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    TypeError, ValueError
        If the results are not of `evaluate`, or hold no row, no such metric, several of it, or several data sets.

    Warns
    -----
    UserWarning
        If a metric has no number for some mechanisms, which are named and have no point.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.plot.comparisons import trade_off
    >>> city = pg.make_city(users=3, days=1)
    >>> results = pg.evaluate({"city": city}, [pg.Promesse(100), pg.Promesse(200)])
    >>> trade_off(results).get_xlabel()
    'range query distortion (%)'
    """
    if not _is_table(results, _COLUMNS, numbers=["value"]):
        raise TypeError(invalid("results", "trade_off", "what pg.evaluate returned", results))
    privacy = check_text(privacy, name="privacy", owner="trade_off")
    utility = check_text(utility, name="utility", owner="trade_off")
    results = results.assign(value=results.value.astype("float64"))
    if len(results) == 0:
        raise ValueError("The results hold no row, so there is nothing to draw. Take those of one data set.")
    if len(set(results.dataset)) > 1:
        raise ValueError("The results are of several data sets. Choose one, as in results[results.dataset == 'city'].")
    across, along = (_of_metric(results, metric) for metric in (utility, privacy))
    x, y = (rows.groupby("mechanism", sort=False).value.mean() for rows in (across, along))
    figures = _drawable(pd.DataFrame({"x": x, "y": y}))
    axes = axes_for(ax, height=5, owner="trade_off")
    families = pd.Series(
        [re.sub(r"\bepsilon=[^,)]+(, )?", "", mechanism) for mechanism in figures.index], figures.index
    )
    names = _names(list(dict.fromkeys(families)))
    lines: list[Line2D] = []
    looks = _looks([family.partition("(")[0] for family in dict.fromkeys(families)])
    texts: list[tuple[tuple[float, float], str, str]] = []
    for number, (_, own) in enumerate(figures.groupby(families, sort=False)):
        colour, marker = looks[number]
        lines += axes.plot(own.x, own.y, "-", marker=marker, color=colour, label=names[number], markersize=7)
        texts += [(*label, colour) for label in _labels(own, near=0.05 * (figures.max() - figures.min()))]
    axes.set_xlabel(_words(across), parse_math=False)
    axes.set_ylabel(_words(along), parse_math=False)
    name_lines(axes, lines, names, fontsize=9, title="numbers: ε" if any(text for _, text, _ in texts) else None)
    axes.grid(linewidth=0.4)
    axes.margins(0.12, 0.08)  # room for the last label
    for values, limit in ((figures.x, axes.set_xlim), (figures.y, axes.set_ylim)):
        if values.max() - values.min() < 1e-6:  # such as no POI at all: a whole percent rather than parts of none
            lowest = values.min() - 0.5 if values.min() < 0 else max(values.min() - 0.5, -0.06)
            limit(lowest, lowest + 1.06)
    if texts:
        _write(axes, texts, lines)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _looks(kinds: list[str]) -> list[tuple[str, str]]:
    """A colour and a marker for each: ours keep theirs in every figure, a second one of a kind and others the rest.

    After six, colours come again with other markers.
    """
    inks, markers = series(), "osD^vP"
    looks = [(inks[n % 6], markers[(n + n // 6) % 6]) for n in range(36)]
    own = {kind: number for number, kind in enumerate(_OURS)}
    taken = {own[kind] for kind in kinds if kind in own}
    free = sorted(set(range(len(looks))) - taken, key=lambda number: (number // 6, number < len(own), number))
    others = itertools.cycle(free)
    firsts = [kind in own and kind not in kinds[:number] for number, kind in enumerate(kinds)]
    return [looks[own[kind] if first else next(others)] for kind, first in zip(kinds, firsts, strict=True)]


def _drawable(figures: pd.DataFrame) -> pd.DataFrame:
    """The mechanisms that both metrics give a number, with a warning that names the others."""
    drawable = figures.replace([np.inf, -np.inf], np.nan).dropna()
    lost = [name for name in figures.index if name not in drawable.index]
    if lost:
        warn(f"No number for both metrics, so no point in the figure: {listed(lost)}.")
    return drawable


def _names(families: list[str]) -> list[str]:
    """Mechanisms by their kind, by the parameters that tell those of one kind apart, and the unit of their epsilon."""
    kinds = [family.partition("(")[0] for family in families]
    parameters = [family.partition("(")[2].rstrip(")").split(", ") for family in families]
    names = []
    for kind, own in zip(kinds, parameters, strict=True):
        others = [theirs for other, theirs in zip(kinds, parameters, strict=True) if other == kind]
        differing = [one for one in own if not all(one in theirs for theirs in others)]
        enough = [one for one in differing if sum(one in theirs for theirs in others) == 1][:1] or differing
        unit = [f"ε in {_OURS[kind]}"] if _OURS.get(kind) else []
        names.append(", ".join([kind, *(one.replace("=", " = ").replace("'", "") for one in enough), *unit]))
    return names


def _labels(figures: pd.DataFrame, *, near: pd.Series) -> list[tuple[tuple[float, float], str]]:
    """The epsilon of each point; of points too near each other to be read apart, together at the first."""
    labels: list[tuple[tuple[float, float], str]] = []
    for mechanism, x, y in figures.itertuples():
        epsilon = re.search(r"\bepsilon=([^,)]+)", str(mechanism))
        text = "" if epsilon is None else _short(epsilon[1])
        if labels and abs(labels[-1][0][0] - x) <= near.x and abs(labels[-1][0][1] - y) <= near.y:
            labels[-1] = labels[-1][0], f"{labels[-1][1]}, {text}"
        else:
            labels.append(((x, y), text))
    return labels


def _write(axes: Axes, texts: list[tuple[tuple[float, float], str, str]], lines: list[Line2D]) -> None:
    """Write labels beside their points, each on the side where the least is drawn and written."""
    axes.autoscale_view()
    to_points = axes.transData + axes.figure.dpi_scale_trans.inverted() + Affine2D().scale(72)
    marks = [to_points.transform(line.get_xydata()) for line in lines]
    parts = np.linspace(0, 1, 50)[:, None]
    ways = [start + parts * (end - start) for own in marks for start, end in itertools.pairwise(own)]
    drawn = [(np.concatenate(marks), 4.0, 10), (np.concatenate([*ways, marks[0]]), 1.0, 0.3)]  # places, radius, cost
    written: list[np.ndarray] = []
    for place, text, colour in texts:
        size = np.array([5.0 * len(text), 9.0])
        sides = [np.array(side) for side in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
        middles = [to_points.transform(place) + side * (size / 2 + 4) for side in sides]
        costs = [
            sum(cost * _within(places, middle, size / 2 + radius) for places, radius, cost in drawn)
            + sum(20 * _within(other[:1], middle, (size + other[1]) / 2) for other in written)
            for middle in middles
        ]
        best = int(np.argmin(costs))
        written.append(np.stack((middles[best], size)))
        write_beside(axes, text, place, sides[best], gap=4, size=8, colour=colour)


def _within(places: np.ndarray, middle: np.ndarray, reach: np.ndarray) -> int:
    """How many places are in a box."""
    return int(np.all(np.abs(places - middle) < reach, axis=1).sum())


def _short(epsilon: str) -> str:
    """Three digits of a number, or all before its point; what is none, such as "low", as it is."""
    try:
        number = float(epsilon)
    except ValueError:
        return epsilon.strip("'")
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"


_OURS = {"Promesse": "m", "GeoIndistinguishability": "1/m", "WaitForMe": ""}  # the unit of epsilon, if they have one

_NAMES = {
    "PoiRetrieval": "POI retrieval, F-score",
    "SpatialError": "spatial error",
    "RangeQueryDistortion": "range query distortion",
    "Compression": "compression",
    "AdaptivePoiRetrieval": "POIs found again by averaging, F-score",
    "Residue": "POIs found again by residues, F-score",
    "Reidentification": "users recognised",
    "AreaCoverage": "area coverage, F-score",
}


def _words(rows: pd.DataFrame) -> str:
    name = rows.metric.iloc[0].partition("(")[0]
    return f"{_NAMES.get(name, name)} ({rows.unit.iloc[0]})"


def _of_metric(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of the one metric of this name, or with these parameters."""
    rows = results[(results.metric == metric) | results.metric.str.startswith(f"{metric}(")]
    if len(rows) == 0:
        raise ValueError(f"The results hold no metric {metric!r}. They hold {listed(sorted(set(results.metric)))}.")
    several = sorted(set(rows.metric))
    if len(several) > 1:
        raise ValueError(f"The results hold several metrics {metric!r}: {listed(several)}. Name one of them whole.")
    return rows
