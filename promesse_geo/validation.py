"""Checks of parameters: each returns the value in its final type, or raises TypeError or ValueError with the rule."""

import hashlib
import math
import numbers
import os
import secrets
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from promesse_geo.messages import counted, invalid

_NO_NUMBERS = (bool, np.bool_, np.timedelta64)
_NO_SEEDS = ("", "nan")
LARGEST = 1e12
"""The largest number where none is specified: in metres, more than any place on Earth is away from another."""


def is_number(value: object) -> bool:
    """Return whether a value is a real number, neither a boolean nor a duration of numpy."""
    return isinstance(value, numbers.Real) and not isinstance(value, _NO_NUMBERS)


def is_integer(value: object) -> bool:
    """Return whether a value is a whole number, neither a boolean nor a duration of numpy."""
    return isinstance(value, numbers.Integral) and not isinstance(value, _NO_NUMBERS)


def check_number(
    value: Any, *, name: str, owner: str, unit: str, low: float = 0.0, high: float = LARGEST, zero: bool = False
) -> float:
    """Return a finite number of `unit` above zero, from low to high, as a float; with `zero`, 0 as well.

    Raises
    ------
    TypeError, ValueError
        If it is none.
    """
    rule = f"0 or a finite number of {unit} above" if zero else f"a finite number of {unit} above zero"
    if not is_number(value):
        raise TypeError(invalid(name, owner, rule, value))
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer larger than any float
        finite = False
    if not finite or value < 0 or (value == 0 and not zero):
        raise ValueError(invalid(name, owner, rule, value))
    if value and not low <= value <= high:
        rule = f"between {low:,.13g} and {high:,.13g} {unit}"
        raise ValueError(invalid(name, owner, rule, value, cure=f"Is it in {unit}?"))
    return float(value)


def check_integer(value: Any, *, name: str, owner: str, low: int = 1, high: int = sys.maxsize) -> int:
    """Return a whole number from low to high as an int.

    Raises
    ------
    TypeError, ValueError
        If it is none.
    """
    rule = f"a whole number of at least {low}"
    if not is_integer(value):
        raise TypeError(invalid(name, owner, rule, value))
    if value < low:
        raise ValueError(invalid(name, owner, rule, value))
    if value > high:
        raise ValueError(invalid(name, owner, f"a whole number of at most {high:,}", value))
    return int(value)


def check_choice(value: Any, *, name: str, owner: str, options: Sequence[str]) -> str:
    """Return a text that is one of the options.

    Raises
    ------
    TypeError, ValueError
        If it is none of them.
    """
    rule = "one of " + ", ".join(repr(option) for option in options)
    if not isinstance(value, str):
        raise TypeError(invalid(name, owner, rule, value))
    if value not in options:
        raise ValueError(invalid(name, owner, rule, value))
    return value


def check_path(value: Any, *, name: str, owner: str, cure: str = "") -> Path:
    """Return a path; raise for anything else, such as bytes or an open file.

    Raises
    ------
    TypeError, ValueError
        If it is no path, or no file can have this name.
    """
    rule = "a path, as text or pathlib.Path"
    if not isinstance(value, (str, os.PathLike)) or not isinstance(text := os.fspath(value), str):
        raise TypeError(invalid(name, owner, rule, value, cure=cure))
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(invalid(name, owner, f"{rule}, without lone surrogates", text)) from None
    if b"\0" in encoded:
        raise ValueError(invalid(name, owner, f"{rule}, without the character NUL", text))
    return Path(text)


def check_ending(path: Path, endings: Sequence[str], *, name: str, owner: str) -> Path:
    """Return a path that ends as the format of the file to write.

    Raises
    ------
    ValueError
        If it ends otherwise.
    """
    if path.suffix.lower() not in endings:
        raise ValueError(invalid(name, owner, f"a file that ends in {' or '.join(endings)}", path.name or str(path)))
    return path


def check_flag(value: Any, *, name: str, owner: str) -> bool:
    """Return True or False as a bool.

    Raises
    ------
    TypeError
        If it is neither.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(invalid(name, owner, "True or False", value))
    return bool(value)


def is_plain(text: str) -> bool:
    """Whether a text may be a number as people write it: Python also takes 1_0, and digits of other scripts."""
    return "_" not in text and not any(sign.isdigit() and not sign.isascii() for sign in text)


def check_duration(value: Any, *, name: str, owner: str) -> int:
    """Return a duration in nanoseconds, from text such as '15min', a timedelta or a number of seconds.

    Raises
    ------
    TypeError, ValueError
        If it is no duration above zero.
    """
    rule = "a duration above zero such as '15min', a timedelta or a number of seconds"
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(invalid(name, owner, rule, value))
    if isinstance(value, str) and not is_plain(value):
        raise ValueError(invalid(name, owner, rule, value))
    with suppress(ValueError):
        value = float(value) if isinstance(value, str) else value  # pandas reads digits alone as nanoseconds
    if isinstance(value, str) and not any(letter.isalpha() or letter == ":" for letter in value):
        raise ValueError(invalid(name, owner, rule, value))  # pandas reads it as nanoseconds
    try:
        if is_number(value):
            delta = pd.Timedelta(value if is_integer(value) else float(value), unit="s")
        else:
            delta = pd.Timedelta(value)
        nanoseconds = delta.as_unit("ns").value
    except (ValueError, OverflowError) as error:
        if isinstance(error, pd.errors.OutOfBoundsTimedelta) and not str(value).strip().startswith("-"):
            rule = "a duration of at most 106,751 days, the limit of nanoseconds"
        kind = ValueError if isinstance(value, (str, timedelta, np.timedelta64)) or is_number(value) else TypeError
        raise kind(invalid(name, owner, rule, value)) from error
    if pd.isna(delta) or nanoseconds <= 0:
        raise ValueError(invalid(name, owner, rule, value))
    return int(nanoseconds)


def check_duration_as_text(value: Any, *, name: str, owner: str) -> str:
    """Return a duration as text such as '15min', '90s' or '1500ms', which `check_duration` reads again.

    Raises
    ------
    TypeError, ValueError
        If it is no duration above zero.
    """
    nanoseconds = check_duration(value, name=name, owner=owner)
    units = ((60 * 10**9, "min"), (10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))
    return next(f"{nanoseconds // each}{unit}" for each, unit in units if nanoseconds % each == 0)


def check_zone(value: Any, *, name: str, owner: str) -> tzinfo:
    """Return a time zone, from its name or a tzinfo.

    Raises
    ------
    TypeError, ValueError
        If it is none.
    """
    rule = "a time zone such as 'Europe/Paris'"
    if not isinstance(value, (str, tzinfo)):
        raise TypeError(invalid(name, owner, rule, value))
    try:
        return pd.DatetimeTZDtype(tz=value).tz
    except Exception as error:  # each time zone library raises its own type
        raise ValueError(invalid(name, owner, rule, value)) from error


def check_seed(value: Any, *, owner: str) -> int | str | None:
    """Return a seed: None, a whole number or a text that is neither blank nor "nan", a number that is missing.

    Raises
    ------
    TypeError, ValueError
        If it is none. The message does not show it.
    """
    if value is None:
        return value
    rule = f"The 'seed' parameter of {owner} must be None, a whole number or a text."
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError(f"The 'seed' parameter of {owner} must be valid Unicode. Got a lone surrogate instead.")
        if value.strip().lower() in _NO_SEEDS:
            got = "a missing number (nan)" if value.strip() else "an empty text"
            raise ValueError(f"{rule} Got {got} instead. Omit it to draw one at random.")
        return value
    if not is_integer(value):
        raise TypeError(f"{rule} Got a {type(value).__name__} instead.")
    try:
        str(int(value))  # as in key_of
    except ValueError:
        remedy = "Got a whole number with too many digits for Python to write instead. Take a shorter one."
        raise ValueError(f"{rule} {remedy}") from None
    return int(value)


def key_of(seed: int | str | None, purpose: str) -> bytes:
    """Return the 32-byte key of a checked seed for a purpose; without a seed, one from the operating system."""
    if seed is None:
        return secrets.token_bytes(32)
    return hashlib.blake2b(str(seed).encode(), digest_size=32, person=purpose.encode()).digest()


def set_fields(instance: object, values: Mapping[str, Any]) -> None:
    """Set fields of a frozen dataclass, by name, in its `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def check_text(value: Any, *, name: str, owner: str) -> str:
    """Return a text.

    Raises
    ------
    TypeError
        If it is none.
    """
    if not isinstance(value, str):
        raise TypeError(invalid(name, owner, "text", value))
    return value


def check_errors(value: Any, *, owner: str) -> str:
    """Return "raise" or "drop"; "skip" means the same as "drop"."""
    check_choice(value, name="errors", owner=owner, options=("raise", "skip", "drop"))
    return "raise" if value == "raise" else "drop"


def check_users(value: Any, *, owner: str) -> set[str] | None:
    """Return the users to select as text, from one user or several; None for all.

    Users are compared as text: no data set holds two that differ only by type. The message never shows one.

    Raises
    ------
    TypeError
        If a user is neither text nor an integer.
    ValueError
        If there is none.
    """
    if value is None:
        return None
    users = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    rule = f"The 'users' parameter of {owner} must be a user or a list of users, as text or integers."
    if not users:
        raise ValueError(f"{rule} Got an empty list instead. Omit it to select all users.")
    wrong = [type(user).__name__ for user in users if not isinstance(user, str) and not is_integer(user)]
    if wrong:
        raise TypeError(f"{rule} Got {counted(len(wrong), 'value')} of another type instead (first: {wrong[0]}).")
    return {str(user) for user in users}


def check_users_exist(users: set[str] | None, existing: Iterable[Any], *, owner: str, has_parts: bool = False) -> None:
    """Raise ValueError if some of the users, as `check_users` returns them, are not in the data.

    `has_parts` says that users were looked for by their parts, too.
    """
    missing = len(users - {str(user) for user in existing}) if users else 0
    if users and missing:
        total = counted(len(users), "user")
        where = "the data, neither as users nor as parts such as NAME-00000" if has_parts else "the data"
        raise ValueError(f"The 'users' parameter of {owner}: {missing:,} of {total} not found in {where}.")


def subclasses_by_name(base: Any) -> dict[str, Any]:
    """Return all subclasses by their name, subclasses of subclasses too, those in the package of the base first."""
    found: dict[str, Any] = {}
    package = f"{base.__module__.rpartition('.')[0]}."
    kinds = base.__subclasses__()
    while kinds:
        for kind in kinds:
            known = found.get(kind.__name__)
            if known is None or not known.__module__.startswith(package):
                found[kind.__name__] = kind
        kinds = [each for kind in kinds for each in kind.__subclasses__()]
    return found
