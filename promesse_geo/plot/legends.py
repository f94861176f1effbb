"""Legends that show names as they are, and what makes words readable on lines."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from promesse_geo.plot import colours
from promesse_geo.plot.tables import shortened


def write_beside(
    axes: Axes,
    text: str,
    place: Sequence[float] | np.ndarray,
    side: np.ndarray,
    *,
    gap: float,
    size: float,
    colour: str | None = None,
) -> None:
    """Write words `gap` points from a place, on the side (1 or -1 across and along), parted from what lies below."""
    across, along = side
    axes.annotate(
        text,
        (place[0], place[1]),
        xytext=(gap * across, gap * along),
        textcoords="offset points",
        ha="left" if across > 0 else "right",
        va="bottom" if along > 0 else "top",
        fontsize=size,
        color=colour,
        parse_math=False,
        path_effects=[withStroke(linewidth=2.5, foreground=axes.get_facecolor())],
    )


def series() -> tuple[str, ...]:
    """Return the colours of mechanisms side by side, the last one that of words: black on a light ground."""
    return (*colours.SERIES[:-1], to_hex(rcParams["text.color"]).upper())


def next_colour(name: str, axes: Axes) -> str:
    """Return the colour of the next line on the axes: the original has its own, others go on after those there."""
    inks = series()
    used = sum(str(line.get_color()) in inks for line in axes.get_lines())
    return colours.ORIGINAL if name == "original" else inks[used % len(inks)]


def name_lines(
    axes: Axes, lines: Sequence[Line2D], names: Sequence[object], *, fontsize: float, title: str | None = None
) -> None:
    """Add a legend of lines: no "_" hides a name, and no "$" makes a formula of it; long names are cut.

    Lines that were on the axes before and have names stay in it.
    """
    others = [line for line in axes.get_lines() if line not in lines and not str(line.get_label()).startswith("_")]
    entries: list[Any] = [*others, *lines]
    texts = [*(str(line.get_label()) for line in others), *map(str, names)]
    numbers = [str(number) for number in range(len(entries))]
    legend = axes.legend(entries, numbers, loc="best", fontsize=fontsize, title=title, title_fontsize=fontsize)
    for text, name in zip(legend.get_texts(), texts, strict=True):
        text.set(text=shortened(name), parse_math=False)
