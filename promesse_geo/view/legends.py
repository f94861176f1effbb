"""Legends that show names as they are, and what makes words readable on lines."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

HALO = withStroke(linewidth=2.5, foreground="white")
"""Parts words from what is drawn below them."""


def name_lines(
    axes: Axes, lines: Sequence[Line2D], names: Sequence[object], *, fontsize: float, title: str | None = None
) -> None:
    """Add a legend of lines: no "_" hides a name, and no "$" makes a formula of it.

    Lines that were on the axes before and have names stay in it.
    """
    others = [line for line in axes.get_lines() if line not in lines and not str(line.get_label()).startswith("_")]
    entries: list[Any] = [*others, *lines]
    texts = [*(str(line.get_label()) for line in others), *map(str, names)]
    numbers = [str(number) for number in range(len(entries))]
    legend = axes.legend(entries, numbers, loc="best", fontsize=fontsize, title=title, title_fontsize=fontsize)
    for text, name in zip(legend.get_texts(), texts, strict=True):
        text.set(text=name, parse_math=False)
