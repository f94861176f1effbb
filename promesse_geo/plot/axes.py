"""Axes, colours and legends that all figures share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation

from promesse_geo.messages import invalid
from promesse_geo.plot import colours
from promesse_geo.plot.tables import shortened


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

    `side`, shape (2,), is 1 or −1 along x and along y, `gap` the distance in typographic points along both.
    """
    across, along = side
    outline = withStroke(linewidth=2.5, foreground=axes.get_facecolor())
    style: dict[str, Any] = {"ha": "left" if across > 0 else "right", "va": "bottom" if along > 0 else "top"}
    style |= {"fontsize": size, "color": colour, "parse_math": False, "path_effects": [outline]}
    x, y = point
    return axes.annotate(text, (x, y), xytext=(gap * across, gap * along), textcoords="offset points", **style)


def add_legend(axes: Axes, lines: Sequence[Line2D], names: Sequence[object], *, title: str | None = None) -> None:
    """Add a legend of the lines, after the labelled lines that were on the axes before.

    Matplotlib hides labels that begin with "_" and reads "$" as a formula: names are set as plain text afterwards.
    """
    others = [line for line in axes.get_lines() if line not in lines and not str(line.get_label()).startswith("_")]
    entries: list[Any] = [*others, *lines]
    texts = [*(str(line.get_label()) for line in others), *map(str, names)]
    numbers = [str(number) for number in range(len(entries))]
    legend = axes.legend(entries, numbers, loc="best", fontsize=9, title=title, title_fontsize=9)
    for text, name in zip(legend.get_texts(), texts, strict=True):
        text.set(text=shortened(name), parse_math=False)


def finish(axes: Axes) -> None:
    """Draw a thin grid, and remove the frame above and on the right."""
    axes.grid(linewidth=0.4)
    axes.spines[["top", "right"]].set_visible(False)
