"""How texts, numbers and times are written, where reading passes over a part of what stands there."""

import re
from collections.abc import Iterable

from promesse_geo.messages import counted

_DIGITS = 17  # as many tell any number of 64 bits from the next one
_LONGEST = 24  # signs that such a number takes at most, as in -1.2345678901234567e-300
_NUMBER = re.compile(r"-?(0|[1-9]\d*)?(?:[.,](\d*))?(?:[eE][-+]?\d{1,3})?")
_TIME = re.compile(
    r"\d{4}([-/])\d\d\1\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|UTC|[-+]\d\d(?::?\d\d)?))?)?"
)
NUL = "a NUL, behind which readers see nothing"


def is_plain_number(text: str) -> bool:
    """Return whether a number is written with no more than 64 bits keep, and nothing around."""
    parts = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    return parts is not None and len(((parts[1] or "") + (parts[2] or "")).lstrip("0")) <= _DIGITS


def is_plain_time(text: str) -> bool:
    """Return whether a time is ISO 8601 to the nanosecond, or the number of an epoch."""
    return bool(_TIME.fullmatch(text)) or is_plain_number(text)


def times_otherwise(texts: Iterable[str]) -> list[str]:
    """Say how many distinct times are written in a way that may hold more than a time."""
    odd = sum(not is_plain_time(text) for text in texts)
    return [f"{counted(odd, 'time')} written otherwise than ISO 8601 to the nanosecond"] if odd else []


def long_numbers(texts: Iterable[str]) -> list[str]:
    """Say how many distinct numbers are written with more than 64 bits keep."""
    odd = sum(not is_plain_number(text) for text in texts)
    return [f"{counted(odd, 'number')} written with more than a number of 64 bits keeps"] if odd else []
