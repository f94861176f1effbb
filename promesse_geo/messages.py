"""Wording of errors and warnings: how values, counts and lists are shown."""

import numbers
import os
import reprlib
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, timedelta, tzinfo

import numpy as np
import pandas as pd

SHORT = (str, bytes, numbers.Number, np.bool_, np.datetime64, np.timedelta64, date, timedelta, tzinfo, type)
_MOST_NAMES = 50
_name = reprlib.Repr()
_name.maxstring = _name.maxother = 80
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def shown(value: object) -> str:
    """Return a short repr of a text, a number or a time; of anything else, which may hold data, its type."""
    kind = f"a value of type {type(value).__name__}"
    if not isinstance(value, SHORT) and value is not None and value is not pd.NA:
        shape = getattr(value, "shape", None)
        if isinstance(shape, tuple):
            return f"{kind} and shape {shape}"
        return f"{kind} and length {len(value):,}" if isinstance(value, (list, tuple, dict, set)) else kind
    try:
        return reprlib.repr(value)
    except Exception:  # an integer of too many digits
        return f"{kind} that cannot be written out"


def invalid(name: str, owner: str, rule: str, value: object, *, cure: str = "") -> str:
    """Return the error message for a parameter: name, rule, value and remedy."""
    message = f"The '{name}' parameter of {owner} must be {rule}. Got {shown(value)} instead."
    return f"{message} {cure}" if cure else message


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: '1 trace', '2,345 traces'."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def decimal(value: float) -> str:
    """Return a number with two digits after the point; one that would be 0.00 but is not as < 0.01 or > -0.01."""
    if 0 < abs(value) < 0.005:
        return "< 0.01" if value > 0 else "> -0.01"
    return f"{value:,.2f}"


def brief(value: float) -> str:
    """Return a number with three significant digits, or as a whole number, as '0.00693', '56.4' and '12,345'."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def listed(names: Sequence[object]) -> str:
    """Return names as a list in a sentence: 'a', 'b' and 'c'; long names are cut, and of many only the first listed."""
    texts = [_name.repr(name) for name in names[:_MOST_NAMES]]
    others = len(names) - len(texts)
    texts += [counted(others, "other")] if others else []
    return texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]


class DroppedWarning(UserWarning):
    """A warning of what a reader dropped.

    Parameters
    ----------
    message : str
        What was dropped, and where the first of each reason was.
    counts : mapping of str to int
        Numbers by reason, as in {"records (no time)": 3}; without names, paths and places.
    """

    def __init__(self, message: str, counts: Mapping[str, int]) -> None:
        super().__init__(message)
        self.counts = dict(counts)


class UnpreparedWarning(UserWarning):
    """A warning of a mechanism about data that are not prepared.

    Parameters
    ----------
    message : str
        All that the mechanism warns of.
    remark : str
        What it warns of besides, "" if nothing.
    """

    def __init__(self, message: str, remark: str) -> None:
        super().__init__(message)
        self.remark = remark


_collected: ContextVar[list[UserWarning] | None] = ContextVar("collected", default=None)


@contextmanager
def collected_warnings() -> Iterator[list[UserWarning]]:
    """Collect what this package would warn of in this thread instead of warning.

    Unlike `warnings.catch_warnings` it can be used in several threads at once.
    """
    messages: list[UserWarning] = []
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)


def warn(message: str | UserWarning) -> None:
    """Issue a UserWarning that points at the first line outside this package."""
    messages = _collected.get()
    if messages is not None:
        messages.append(message if isinstance(message, UserWarning) else UserWarning(message))
        return
    level, frame = 1, sys._getframe()
    while frame.f_back and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level)  # a warning keeps its class
