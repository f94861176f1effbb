"""The colours of the records of a map: one for the data set, one for each user, or one for each class of speed."""

import colorsys
import itertools
from typing import NamedTuple

import numpy as np

from promesse_geo.plot import colours
from promesse_geo.traces.traces import Traces

COLORS = ("data", "user", "speed")
"""What the colour of a record can show."""

_LIMITS = (5, 15, 30, 60, 120)  # km/h: on foot, by bicycle, in town, on a road, on a motorway, faster
_CLASSES = ("< 5", *(f"{low}–{high}" for low, high in itertools.pairwise(_LIMITS)), "≥ 120")
_TURN = 0.381966  # of a circle, the golden angle: hues that follow each other are far apart


class Inks(NamedTuple):
    """Colours, the number of its colour for each record (none if there is one colour), and their meaning in words."""

    palette: list[str]
    numbers: list[int]
    meanings: list[str]


def inks_of(color: str, traces: Traces, chosen: np.ndarray, numbers: np.ndarray, *, colour: str) -> Inks:
    """Return the colours of some records.

    Parameters
    ----------
    color : {"data", "user", "speed"}
        What they show.
    traces : Traces
        The data set.
    chosen : numpy.ndarray of int64, shape (n,)
        Positions of the records.
    numbers : numpy.ndarray of int64, shape (n,)
        The number of each record's user in the original data, so that a user has one colour in both data sets.
    colour : str
        The colour of the data set.
    """
    if color == "user":
        used, places = np.unique(numbers, return_inverse=True)
        return Inks([user_colour(number) for number in used.tolist()], places.tolist(), [])
    if color == "speed":
        classes = _speed_classes(speeds_of(traces)[chosen])
        unknown = ["unknown"] * bool((classes == len(_CLASSES)).any())
        return Inks([*colours.SPEEDS, colours.REMOVED], classes.tolist(), [*_CLASSES, *unknown])
    return Inks([colour], [], [])


def user_colour(number: int) -> str:
    """Return the colour of the user with a number: distinct for colour-blind readers for the first six of them."""
    first = (*colours.SERIES[:-1], colours.ORIGINAL)
    if number < len(first):
        return first[number]
    red, green, blue = colorsys.hls_to_rgb(number * _TURN % 1, (0.38, 0.5, 0.6)[number % 3], 0.7)
    return f"#{round(255 * red):02X}{round(255 * green):02X}{round(255 * blue):02X}"


def speeds_of(traces: Traces) -> np.ndarray:
    """Return the speed of each record in metres per second, shape (records,).

    It is that of the step to the record from the one before, or for the first record of a segment of the step to the
    next one; NaN where there is no such step, or it takes no time.
    """
    speeds = np.full(traces.records, np.nan)
    metres = traces.space.metres(np.linalg.norm(np.diff(traces.points, axis=0), axis=1))
    nanoseconds = np.diff(traces.times)
    np.divide(metres, nanoseconds / 1e9, out=speeds[1:], where=nanoseconds > 0)
    firsts = traces.segments[:-1]
    speeds[firsts] = np.nan
    followed = firsts[firsts + 1 < traces.segments[1:]]
    speeds[followed] = speeds[followed + 1]
    return speeds


def _speed_classes(speeds: np.ndarray) -> np.ndarray:
    """Return the number of the class of each speed in metres per second; the one beyond the last is unknown."""
    return np.where(np.isnan(speeds), len(_CLASSES), np.digitize(3.6 * speeds, _LIMITS))
