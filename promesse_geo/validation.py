"""Checks of parameters: each returns the value in its final type, or raises an error that names the rule."""

import math
import numbers
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta, tzinfo
from typing import Any

import numpy as np
import pandas as pd

from promesse_geo.messages import counted, invalid


def is_number(value: object) -> bool:
    """True for real numbers that are neither booleans nor numpy's durations."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_, np.timedelta64))


def is_integer(value: object) -> bool:
    """True for whole numbers that are neither booleans nor numpy's durations."""
    return isinstance(value, numbers.Integral) and is_number(value)


def check_number(
    value: Any,
    *,
    name: str,
    owner: str,
    unit: str,
    low: float = 0.0,
    high: float = math.inf,
) -> float:
    """Return value as a float, or say that it is not a finite number of `unit` above zero, in [low, high]."""
    rule = f"a finite number of {unit} above zero"
    if not is_number(value):
        raise TypeError(invalid(name, owner, rule, value))
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        finite = False
    if not finite or value <= 0:
        raise ValueError(invalid(name, owner, rule, value))
    if not low <= value <= high:
        rule = f"between {low:,.12g} and {high:,.12g} {unit}"
        raise ValueError(invalid(name, owner, rule, value, cure=f"Is it in {unit}?"))
    return float(value)


def check_integer(value: Any, *, name: str, owner: str, low: int = 1, high: int = sys.maxsize) -> int:
    """Return value as an int, or say that it is not a whole number in [low, high]; no `high` takes what is beyond."""
    rule = f"a whole number of at least {low}"
    if not is_integer(value):
        raise TypeError(invalid(name, owner, rule, value))
    if value < low:
        raise ValueError(invalid(name, owner, rule, value))
    if value > high != sys.maxsize:
        raise ValueError(invalid(name, owner, f"a whole number of at most {high:,}", value))
    return min(int(value), high)  # without a bound more than there can be of anything


def check_choice(value: Any, *, name: str, owner: str, options: Sequence[str]) -> str:
    """Return value, or say which of the options it has to be."""
    rule = "one of " + ", ".join(repr(option) for option in options)
    if not isinstance(value, str):
        raise TypeError(invalid(name, owner, rule, value))
    if value not in options:
        raise ValueError(invalid(name, owner, rule, value))
    return value


def check_flag(value: Any, *, name: str, owner: str) -> bool:
    """Return value as a bool, or say that it is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(invalid(name, owner, "True or False", value))
    return bool(value)


def check_duration(value: Any, *, name: str, owner: str) -> int:
    """Return a duration in nanoseconds, from '15min', a timedelta or a number of seconds."""
    rule = "a duration above zero such as '15min', a timedelta or a number of seconds"
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(invalid(name, owner, rule, value))
    with suppress(ValueError):
        value = float(value) if isinstance(value, str) else value  # pandas would take digits alone for nanoseconds
    if isinstance(value, str) and not any(letter.isalpha() or letter == ":" for letter in value):
        raise ValueError(invalid(name, owner, rule, value))  # pandas would take it for nanoseconds
    try:
        delta = pd.Timedelta(value, unit="s") if is_number(value) else pd.Timedelta(value)
        nanoseconds = delta.as_unit("ns").value
    except (ValueError, OverflowError) as error:
        if isinstance(error, pd.errors.OutOfBoundsTimedelta) and not str(value).strip().startswith("-"):
            rule = "a duration of at most 106,751 days, which nanoseconds can count"
        kind = ValueError if isinstance(value, (str, timedelta, np.timedelta64)) or is_number(value) else TypeError
        raise kind(invalid(name, owner, rule, value)) from error
    if pd.isna(delta) or nanoseconds <= 0:
        raise ValueError(invalid(name, owner, rule, value))
    return int(nanoseconds)


def check_zone(value: Any, *, name: str, owner: str) -> tzinfo:
    """Return a time zone, from its name or a tzinfo."""
    rule = "a time zone such as 'Europe/Paris'"
    if not isinstance(value, (str, tzinfo)):
        raise TypeError(invalid(name, owner, rule, value))
    try:
        found = pd.DatetimeTZDtype(tz=value).tz
    except Exception as error:  # each time zone library raises its own kind
        raise ValueError(invalid(name, owner, rule, value)) from error
    return found


def check_seed(value: Any, *, owner: str) -> int | str | None:
    """Return a seed: None, a whole number or a text. The message never shows it."""
    if value is None:
        return value
    if isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError(f"The 'seed' parameter of {owner} must be valid Unicode. Got a lone surrogate instead.")
        return value
    if is_integer(value):
        try:
            str(int(value))  # from which keys are made
        except ValueError:
            raise ValueError(
                f"The 'seed' parameter of {owner} must be None, a whole number or a text. "
                "Got a whole number with too many digits for Python to write instead. Take a shorter one."
            ) from None
        return int(value)
    raise TypeError(
        f"The 'seed' parameter of {owner} must be None, a whole number or a text. Got a {type(value).__name__} instead."
    )


def check_text(value: Any, *, name: str, owner: str) -> str:
    """Return a text, or say that it is none."""
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


def check_users_exist(users: set[str] | None, existing: Iterable[Any], *, owner: str) -> None:
    """Raise ValueError if some of the users, as `check_users` returns them, are not in the data."""
    missing = len(users - {str(user) for user in existing}) if users else 0
    if users and missing:
        total = counted(len(users), "user")
        raise ValueError(f"The 'users' parameter of {owner}: {missing:,} of {total} not found in the data.")
