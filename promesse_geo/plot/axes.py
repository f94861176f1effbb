"""Axes, colours and legends that all figures share."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FuncFormatter, LogFormatter, NullFormatter

from promesse_geo.messages import invalid
from promesse_geo.plot import colours
from promesse_geo.plot.tables import shortened

_MOST_INSIDE = 6  # entries of a legend on the axes
_ROUNDING = 1e-6  # smaller differences are rounding errors


def axes_for(ax: Axes | None, *, height: float, owner: str) -> Axes:
    """Return the given axes, or those of a new figure of this height in inches."""
    if ax is None:
        return Figure(figsize=(8, height), layout="constrained").subplots()
    if not isinstance(ax, Axes) or ax.name != "rectilinear" or ax.figure is None:
        kind = ValueError if isinstance(ax, Axes) else TypeError
        raise kind(invalid("ax", owner, "matplotlib axes with an x and a y axis that belong to a figure", ax))
    return ax


def palette() -> tuple[str, ...]:
    """Return the colours of `colours.SERIES`, with the text colour as the last one: white on a dark background."""
    return (*colours.SERIES[:-1], to_hex(rcParams["text.color"]).upper())


def next_colour(name: str, axes: Axes) -> str:
    """Return the colour of the next line on the axes; the line "original" has its own colour."""
    inks = palette()
    used = sum(str(line.get_color()) in inks for line in axes.get_lines())
    return colours.ORIGINAL if name == "original" else inks[used % len(inks)]


def annotate(
    axes: Axes, text: str, point: np.ndarray, *, side: np.ndarray, gap: float, size: float, colour: str | None = None
) -> Annotation:
    """Write text beside a point, shape (2,), and return it, with an outline in the background colour.

    `side`, shape (2,), is 1, 0 or −1 along x and along y, `gap` the distance in typographic points along both.
    """
    across, along = (int(np.sign(each)) for each in side)
    outline = withStroke(linewidth=2.5, foreground=axes.get_facecolor())
    style: dict[str, Any] = {"ha": ("center", "left", "right")[across], "va": ("center", "bottom", "top")[along]}
    style |= {"fontsize": size, "color": colour, "parse_math": False, "path_effects": [outline]}
    x, y = point
    return axes.annotate(text, (x, y), xytext=(gap * across, gap * along), textcoords="offset points", **style)


def outlined_text(axes: Axes, text: str, point: np.ndarray, *, size: float, colour: str) -> Text:
    """Write text at a point, shape (2,), and return it, with an outline in the background colour."""
    outline = withStroke(linewidth=2.5, foreground=axes.get_facecolor())
    style: dict[str, Any] = {"fontsize": size, "color": colour, "parse_math": False, "path_effects": [outline]}
    x, y = point
    return axes.text(x, y, text, **style)


def add_legend(axes: Axes, lines: Sequence[Line2D], names: Sequence[object], *, title: str | None = None) -> None:
    """Add a legend of the lines, after the labelled lines that were on the axes before.

    Matplotlib hides labels that begin with "_" and reads "$" as a formula: names are set as plain text afterwards. A
    long legend stands beside the axes if the figure makes space for it.
    """
    others = [line for line in axes.get_lines() if line not in lines and not str(line.get_label()).startswith("_")]
    entries: list[Any] = [*others, *lines]
    texts = [*(str(line.get_label()) for line in others), *map(str, names)]
    numbers = [str(number) for number in range(len(entries))]
    place: dict[str, Any] = {"loc": "best"}
    if len(entries) > _MOST_INSIDE and axes.figure.get_layout_engine() is not None:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1), "borderaxespad": 0}
    legend = axes.legend(entries, numbers, fontsize=9, title=title, title_fontsize=9, **place)
    for text, name in zip(legend.get_texts(), texts, strict=True):
        text.set(text=shortened(name), parse_math=False)


def widen(values: Iterable[float], set_limits: Callable[[float, float], Any]) -> None:
    """Set the limits of an axis of equal values, such as no POI at all, to one unit: rounding errors would fill it."""
    low, high = min(values), max(values)
    if high - low < _ROUNDING:
        lowest = low - 0.5 if low < -_ROUNDING else max(low - 0.5, -0.06)
        set_limits(lowest, lowest + 1.06)


class PlainFormatter(LogFormatter):
    """Labels of a logarithmic axis as plain numbers: 0.01 and 1,000 instead of powers of ten."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the label of a tick; empty if there are enough others."""
        return f"{x:,.10g}" if super().__call__(x, pos) else ""


def make_logarithmic(axes: Axes, *, between: bool = False) -> None:
    """Make the x axis logarithmic, with plain numbers; `between` labels also ticks between powers of ten."""
    axes.set_xscale("log")
    formatter = PlainFormatter(minor_thresholds=(2, 0.5))
    axes.xaxis.set_major_formatter(formatter)
    axes.xaxis.set_minor_formatter(formatter if between else NullFormatter())


def start_at_zero(axes: Axes, right: float) -> None:
    """Make the x axis logarithmic above 1 and linear below, from 0 to a limit of at least 1.

    So what is exactly 0 has a place beside values of any size, and rounding errors are drawn at 0.
    """
    axes.set_xscale("symlog", linthresh=1, linscale=0.4)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))
    axes.set_xlim(-0.15, max(right, 1.0))  # a line or a marker at 0 is visible


def finish(axes: Axes) -> None:
    """Draw a thin grid, and remove the frame above and on the right."""
    axes.grid(linewidth=0.4, alpha=0.6)
    axes.spines[["top", "right"]].set_visible(False)
