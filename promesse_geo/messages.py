"""Wording of errors and warnings: how values, counts and lists are shown."""

import numbers
import os
import reprlib
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import date, timedelta, tzinfo
from typing import Any, ClassVar, Self

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
    cure = cure or instance_of(value)
    return f"{message} {cure}" if cure else message


def instance_of(value: object) -> str:
    """Return the remedy if a value is a class of mechanisms or metrics instead of an instance, else ""."""
    if not isinstance(value, type) or not is_dataclass(value):
        return ""
    required = [each.name for each in fields(value) if each.init and each.default is each.default_factory is MISSING]
    prefix = "pg." if value.__module__.startswith(f"{__package__}.") else ""
    return (
        f"This is a class: make an instance, {prefix}{value.__name__}({', '.join(f'{name}=…' for name in required)})."
    )


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun: '1 trace', '2,345 traces'."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def counted_of(part: int, total: int, noun: str, singular: str, plural: str) -> str:
    """Return a part of a number with its predicate: '1 of 41 traces lies there', '2 of 41 traces lie there'."""
    return f"{part:,} of {counted(total, noun)} {singular if part == 1 else plural}"


def sized(size: float) -> str:
    """Return a number of bytes in a unit that suits it: '12 kB', '1.2 GB'."""
    unit, name = next((each for each in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")) if size >= each[0]), (1e3, "kB"))
    return f"{size / unit:,.1f} {name}" if size / unit < 10 else f"{size / unit:,.0f} {name}"


def decimal(value: float) -> str:
    """Return a number with two digits after the point; one that would be 0.00 but is not as < 0.01 or > -0.01."""
    if 0 < abs(value) < 0.005:
        return "< 0.01" if value > 0 else "> -0.01"
    return f"{value:,.2f}"


def brief(value: float) -> str:
    """Return a number with three significant digits, or as a whole number, as '0.00693', '56.4' and '12,345'."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def span(duration: pd.Timedelta) -> str:
    """Return a duration in seconds, minutes, hours or days, whichever is easiest to read."""
    if pd.isna(duration):
        return "none"
    seconds = duration.total_seconds()
    for least, unit, size in ((172_800, "days", 86_400), (5_400, "h", 3_600), (90, "min", 60)):
        if seconds >= least:
            return f"{brief(seconds / size)} {unit}"
    return f"{brief(seconds)} s" if seconds >= 0.001 or not seconds else "< 0.001 s"


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
        Numbers by noun and reason: {"records (no time)": 3}, and "files" for files that could not be read, "files (…)"
        for those that were not meant to be read; without names, paths and places.
    """

    def __init__(self, message: str, counts: Mapping[str, int]) -> None:
        super().__init__(message)
        self.counts = dict(counts)


@dataclass(frozen=True)
class Remark(ABC):
    """A sentence with counts, of which a warning has one or more.

    Remarks on parts of a data set can be added: counts are summed, so that the sentence on all parts is that on the
    whole. `constants` names the fields that are no counts. Each field is a number, text, bool or None.
    """

    constants: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def __str__(self) -> str:
        """Return the sentence, "" if there is nothing to warn of."""

    @property
    def totals(self) -> Mapping[str, int]:
        """What was dropped, by the name of the count in a report."""
        return {}

    @property
    def kind(self) -> tuple[object, ...]:
        """What remarks that can be added have in common."""
        return (type(self).__name__, *(getattr(self, name) for name in self.constants))

    def __add__(self, other: Self) -> Self:
        """Return the remark on both parts."""
        return added(self, other, [each.name for each in fields(self) if each.name not in self.constants])


def added(first: Any, second: Any, names: Iterable[str]) -> Any:
    """Return a dataclass with sums of its counts; one that one of both does not know (None) is that of the other."""
    sums = {}
    for name in names:
        known = [count for count in (getattr(first, name), getattr(second, name)) if count is not None]
        sums[name] = sum(known) if known else None
    return replace(first, **sums)


@dataclass(frozen=True)
class Text(Remark):
    """A sentence without counts, or one whose counts cannot be added."""

    words: str
    has_others: bool = False

    def __str__(self) -> str:
        """Return the sentence."""
        return f"{self.words} There are other warnings of this kind." if self.has_others else self.words

    def __add__(self, other: Self) -> Self:
        """Return the first sentence, and that there are others if they differ."""
        if not self.words:
            return other
        return self if not other.words or other.words == self.words else replace(self, has_others=True)


class CountedWarning(UserWarning):
    """A warning made of remarks.

    Parameters
    ----------
    remarks : sequence of Remark
        Those without words count, too, when remarks on parts of a data set are added.
    """

    def __init__(self, remarks: Sequence[Remark]) -> None:
        super().__init__(" ".join(dict.fromkeys(filter(None, map(str, remarks)))))
        self.remarks = tuple(remarks)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the remarks instead of their words."""
        return type(self), (self.remarks,)


def remarks_of(warning: Warning | str) -> tuple[Remark, ...]:
    """Return the remarks of a warning."""
    return warning.remarks if isinstance(warning, CountedWarning) else (Text(str(warning)),)


def added_up(parts: Iterable[Sequence[Sequence[Remark]]]) -> list[CountedWarning]:
    """Return the warnings on a whole data set, given the remarks of each warning on each of its parts."""
    sums: dict[tuple[Any, ...], list[Remark]] = {}
    for warned in parts:
        seen: list[tuple[Any, ...]] = []
        for remarks in warned:
            kinds = tuple(remark.kind for remark in remarks)
            key = (kinds, seen.count(kinds))
            seen.append(kinds)
            before = sums.get(key)
            sums[key] = list(remarks) if before is None else [a + b for a, b in zip(before, remarks, strict=True)]
    return [CountedWarning(remarks) for remarks in sums.values()]


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
    """Issue a UserWarning that points at the first line outside this package, unless it has no words."""
    messages = _collected.get()
    if messages is not None:
        messages.append(message if isinstance(message, UserWarning) else UserWarning(message))
        return
    if not str(message):
        return
    level, frame = 1, sys._getframe()
    while frame.f_back and os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level)  # a warning keeps its class
