"""Parse the times of tables: text, numbers since 1970, and datetimes."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from contextlib import suppress
from datetime import timedelta, timezone, tzinfo
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

MISSING = ("NA", "N/A", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "-", "\\N")
"""Text for missing numbers and times; a user may have such a name."""
_OF_THE_CLOCK = ("now", "today")  # pandas reads them as the time of the run
_WITH_ZONE = r"\d[T ].*[-+Zz]"  # in text that was parsed as ISO 8601
_OF_THREE_DIGITS = r"\d[T ].*[-+]\d\d\d\s*$"  # 1 h 30 min or 13 h
_OFFSET = re.compile(
    r"(?:[T ]\s*\d\d?(?::?\d\d){0,2}|:\d\d)(?:[.,]\d+)?\s*"  # a time of day
    r"([-+])([01]?\d|2[0-3])(?::([0-5]?\d)|(?<=\d\d)([0-5]\d))?\s*$"
)
_UTC = r"\s*(?:UTC|GMT)$"
_DAY_IN_FRONT = re.compile(r"\s*(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})([T ,]+\d{1,2}:\d{2})?(:\d{2})?([.]\d+)?")
_DATE = r"\s*\d{4}-\d\d-\d\d\s*"
_FIRST, _LAST = (np.datetime64(f"{year}-01-01", "s").astype(float) for year in (1990, 2100))
_DAY, _NO_STEP = np.timedelta64(1, "D"), np.timedelta64(0, "ns")
_FIRST_YEAR, _LAST_YEAR = 1678, 2261  # which nanoseconds can count
_KINDS = (
    *(pa.types.is_timestamp, pa.types.is_integer, pa.types.is_floating, pa.types.is_null),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
)
_UNITS = {
    "s": ("seconds", 1),
    "ms": ("milliseconds", 10**3),
    "us": ("microseconds", 10**6),
    "ns": ("nanoseconds", 10**9),
}


def parse_times(
    column: pa.ChunkedArray, name: Hashable, *, time_format: str | None = None
) -> tuple[pd.Series, tuple[str, ...]]:
    """Parse the times of a column.

    Parameters
    ----------
    column : pyarrow.ChunkedArray of length n
        Timestamps, ISO 8601 text, or numbers since 1970.
    name : hashable
        Name of the column.
    time_format : str, optional
        How text is written, as for `datetime.strptime`; seconds may lack or have fractions.

    Returns
    -------
    times : pandas.Series of datetimes, length n
        NaT where there is no time, or one outside the years 1678 to 2261.
    notes : tuple of str
        The unit that numbers were given, for a warning.

    Raises
    ------
    TypeError, ValueError
        If the values are no times, or mix times with and without a zone.
    """
    column = as_numbers_or_text(column) if time_format is None else column
    kind = column.type
    notes: tuple[str, ...] = ()
    if column.null_count == len(column) and not pa.types.is_timestamp(kind):
        times = pd.Series(pd.DatetimeIndex([None] * len(column), tz="UTC"))
    elif time_format is not None and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        times = _in_format(without_words(column).to_pandas(), name, time_format)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        times = _from_text(column, name)
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        unit = unit_of_numbers(column, name)
        times, notes = times_of_numbers(column, unit), (note_of_numbers(name, unit),)
    elif pa.types.is_timestamp(kind):
        times = column.to_pandas()
    else:
        raise TypeError(_no_datetimes(kind, name))
    index = pd.DatetimeIndex(times)
    first, last = _limits(index.unit)
    within = (index.asi8 >= first) & (index.asi8 < last)
    times = times if within.all() else times.where(within)
    times.name = name
    return times, notes


def as_timestamps(column: pa.ChunkedArray, kind: pa.TimestampType) -> pa.ChunkedArray:
    """Convert timestamps to a type of the same or a finer unit; null outside the years 1678 to 2261.

    Those without a zone are in UTC if the type has one.
    """
    numbers = column.cast(pa.int64())
    first, last = _limits(column.type.unit)
    within = pc.and_(pc.greater_equal(numbers, first), pc.less(numbers, last))
    return pc.if_else(within, column, pa.scalar(None, column.type)).cast(kind)


def _limits(unit: str) -> tuple[int, int]:
    """Return the first time that nanoseconds count, by whole years, and the first that they do not."""
    first, last = np.array([f"{_FIRST_YEAR}-01-01", f"{_LAST_YEAR + 1}-01-01"], f"M8[{unit}]").astype(np.int64).tolist()
    return first, last


def check_time_type(kind: pa.DataType, name: Hashable) -> None:
    """Raise TypeError if a column of this type holds no times."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(is_kind(kind) for is_kind in _KINDS):
        raise TypeError(_no_datetimes(kind, name))


def as_numbers_or_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decode a dictionary; in text, set the words of `MISSING` to missing, and convert to numbers if all are."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    column = without_words(column)
    for kind in (pa.int64(), pa.float64()):
        with suppress(pa.ArrowInvalid):
            return column.cast(kind)
    return column


def without_words(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text with the words of `MISSING` as missing values."""
    missing = pc.is_in(column, value_set=pa.array(MISSING, column.type))
    return pc.if_else(missing, pa.scalar(None, column.type), column)


def _from_text(texts: pa.ChunkedArray, name: Hashable) -> pd.Series:
    """Parse ISO 8601; convert to UTC if there are offsets, which may differ."""
    column = texts.to_pandas()
    written = column.mask(column.isin(_OF_THE_CLOCK))
    if column.notna().any() and column.dropna().str.fullmatch(_DATE).all():
        raise TypeError(_no_datetimes(pa.date32(), name))
    times = pd.to_datetime(written, format="ISO8601", utc=True, errors="coerce")
    if times.isna().any() and (in_utc := column.str.contains(_UTC, na=False)).any():
        column = column.mask(in_utc, column.str.replace(_UTC, "Z", regex=True))
        times = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce")
    parsed = pa.array(column[times.notna()], texts.type)
    zoned = pc.match_substring_regex(parsed, _WITH_ZONE).to_numpy(zero_copy_only=False)
    if zoned.any() or times.isna().all():
        _raise_if_of_three_digits(texts, name)
    if zoned.any() and not zoned.all():
        raise ValueError(f"the time column {name!r} mixes times with and without a zone. Convert them to one notation.")
    if column.notna().any() and times.isna().all():
        raise ValueError(
            f"the time column {name!r} holds text that is no time such as 2008-05-17T10:00:04Z. {_remedy(column)}"
        )
    return times if zoned.any() else times.dt.tz_localize(None)


def _raise_if_of_three_digits(texts: pa.ChunkedArray, name: Hashable) -> None:
    """Raise ValueError for an offset from UTC that may be of hours and minutes in two ways."""
    of_three = pc.match_substring_regex(texts, _OF_THREE_DIGITS)
    if not pc.any(of_three).as_py():
        return
    sign, *digits = texts[pc.index(of_three, True).as_py()].as_py().rstrip()[-4:]
    raise ValueError(
        f"the time column {name!r} has the offset '{sign}{''.join(digits)}' from UTC, whose hours are not sure. Write "
        f"offsets with four digits, as {sign}0{''.join(digits)}."
    )


def written_offset(values: Iterable[Any]) -> tzinfo | None:
    """Return the offset from UTC that most of some texts of times have; None if they have none.

    Examples
    --------
    >>> str(written_offset(["2024-05-01T10:00:00+02:00", "2024-05-01T10:00:10+02:00"]))
    'UTC+02:00'
    """
    found = [match for value in values if isinstance(value, str) and (match := _OFFSET.search(value))]
    if not found:
        return None
    return timezone(Counter(map(_as_offset, found)).most_common(1)[0][0])


def _as_offset(match: re.Match[str]) -> timedelta:
    """Return the offset from UTC of a match of `_OFFSET`."""
    sign, hours, *minutes = match.groups()
    size = timedelta(hours=int(hours), minutes=int(next(filter(None, minutes), 0)))
    return -size if sign == "-" else size


def _no_datetimes(kind: pa.DataType, name: Hashable) -> str:
    """Return why a column of this type holds no times."""
    if pa.types.is_date(kind):
        problem = "It holds dates without a time of day. Join them with the times of day in one column"
    elif pa.types.is_time(kind):
        problem = "It holds times of day without a date. Join them with the dates in one column"
    else:
        problem = f"It holds values of the kind '{kind}'. Write them"
    return f"the time column {name!r} must hold datetimes. {problem}, as 2008-05-17T10:00:04Z."


def _remedy(column: pd.Series) -> str:
    """Return the format of text with the day or the month first, if it is sure, as a remedy."""
    matches = [match for match in map(_DAY_IN_FRONT.fullmatch, column.dropna().astype(str)) if match]
    if not matches:
        return (
            "Write the year first, then month and day, or specify how it is written, as in "
            "time_format='%d.%m.%Y %H:%M:%S' (--time-format \"%d.%m.%Y %H:%M:%S\")."
        )
    first = matches[0]
    year = "%Y" if len(first[4]) == 4 else "%y"
    clock = f" %H:%M{':%S' if first[6] else ''}{'.%f' if first[7] else ''}" if first[5] else ""
    day_first = first[2] == "." or any(int(match[1]) > 12 for match in matches)
    month_first = any(int(match[3]) > 12 for match in matches)
    orders = [("%d", "%m")] * (day_first or not month_first) + [("%m", "%d")] * (month_first or not day_first)
    formats = [f"{first[2].join((*order, year))}{clock}" for order in orders]
    if len(formats) == 1:
        return f"Specify time_format='{formats[0]}' (--time-format \"{formats[0]}\")."
    return (
        f"Whether day or month stands first is not sure: specify time_format='{formats[0]}' (--time-format "
        f'"{formats[0]}") or time_format=\'{formats[1]}\' (--time-format "{formats[1]}").'
    )


def _in_format(column: pd.Series, name: Hashable, time_format: str) -> pd.Series:
    """Parse text in a format; convert to UTC if it has an offset or the name of a zone."""
    has_zone = "%z" in time_format or "%Z" in time_format
    variants = [time_format]
    if "%S" in time_format and "%f" not in time_format:
        variants += [time_format.replace("%S", "%S.%f"), time_format.replace(":%S", "")]
    times = pd.Series(pd.NaT, column.index, dtype="M8[ns, UTC]" if has_zone else "M8[ns]")
    for variant in variants:
        left = column[times.isna() & column.notna()]
        if len(left):
            parsed = pd.to_datetime(left.str.strip(), format=variant, utc=has_zone, errors="coerce")
            within = parsed.where(parsed.dt.year.between(_FIRST_YEAR, _LAST_YEAR))
            times[left.index] = within.dt.as_unit("ns")
    if column.notna().any() and times.isna().all():
        raise ValueError(
            f"the time column {name!r} holds no text in the format of 'time_format' (--time-format). {_remedy(column)}"
        )
    return times


def in_zone(
    times: pd.Series, zone: tzinfo | None, users: np.ndarray | None = None
) -> tuple[pd.Series, np.ndarray | None]:
    """Return times in a zone; those without one are its local times.

    Parameters
    ----------
    times : pandas.Series of datetimes, length n
        With or without a zone.
    zone : tzinfo, optional
        The times are returned as they are if it is None.
    users : numpy.ndarray of int, shape (n,), optional
        The number of each record's user; by default there is one.

    Returns
    -------
    times : pandas.Series of datetimes, length n
        A time that the clock repeats in autumn is the first or the second one by the order of the user's records. NaT
        where that does not tell, and where the clock skips a time in spring.
    lost : numpy.ndarray of bool, shape (n,), or None
        Whether each time is NaT for a change of the clocks; None if none is.
    """
    if zone is None:
        return times, None
    if times.dt.tz is not None:
        return times.dt.tz_convert(zone), None
    found = times.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    lost = (found.isna() & times.notna()).to_numpy()
    if not lost.any():
        return found, None
    early = np.ones(len(times), bool)
    first = times.dt.tz_localize(zone, ambiguous=early, nonexistent="NaT")
    second = times.dt.tz_localize(zone, ambiguous=~early, nonexistent="NaT")
    numbers = np.zeros(len(times), np.int64) if users is None else users
    is_first, is_second = _find_order(times, lost & first.notna().to_numpy(), numbers)
    found = found.mask(is_first, first).mask(is_second, second)
    lost = lost & ~(is_first | is_second)
    return found, lost if lost.any() else None


def _find_order(times: pd.Series, is_repeated: np.ndarray, users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which repeated times are the first and which the second, where the records of a user say so.

    They do if the clock goes back once among consecutive repeated times, and nowhere else among the user's records.
    """
    rows = np.flatnonzero(times.notna())
    rows = rows[np.argsort(users[rows], kind="stable")]
    clock, repeated, owners = times.to_numpy()[rows], is_repeated[rows], users[rows]
    steps, same = np.diff(clock), owners[1:] == owners[:-1]
    together = same & (np.abs(steps) < _DAY) & repeated[1:] & repeated[:-1]
    goes_back = same & (steps < _NO_STEP)
    begins = np.append(True, ~together)[: len(rows)]
    run = np.cumsum(begins) - 1  # of consecutive repeated times of a user
    back_before = np.cumsum(np.append(0, goes_back & together))[: len(rows)]
    back_in_run = np.bincount(run[1:], goes_back & together, minlength=len(rows))[run]
    odd = np.isin(owners, owners[1:][goes_back & ~together])
    known = repeated & (back_in_run == 1) & ~odd
    is_later = back_before > back_before[begins][run]
    is_first, is_second = np.zeros((2, len(times)), bool)
    is_first[rows[known & ~is_later]] = True
    is_second[rows[known & is_later]] = True
    return is_first, is_second


def unit_of_numbers(column: pa.ChunkedArray, name: Hashable) -> str:
    """Return the unit of numbers since 1970, a key of `_UNITS`: the one that puts their median between 1990 and 2100.

    Raises
    ------
    ValueError
        If there is none.
    """
    numbers = column.fill_null(0).to_numpy()
    present = numbers[np.isfinite(numbers) & (numbers != 0)]
    middle = float(np.median(present)) if len(present) else 0.0
    unit = next((unit for unit, (_, size) in _UNITS.items() if _FIRST <= middle / size < _LAST), None)
    if unit is None:
        raise ValueError(
            f"the time column {name!r} holds numbers that are not seconds, milliseconds, microseconds or nanoseconds "
            "since 1970 in the years 1990 to 2099. Convert them, or write ISO 8601 text."
        )
    return unit


def times_of_numbers(column: pa.ChunkedArray, unit: str) -> pd.Series:
    """Convert numbers since 1970 in a unit, a key of `_UNITS`, to times in UTC; NaT outside the years 1990 to 2099."""
    numbers, size = column.fill_null(0).to_numpy(), _UNITS[unit][1]
    if pa.types.is_floating(column.type) and unit != "ns":  # fractions of a second down to the microsecond
        numbers, unit, size = np.round(numbers * (10**6 / size)), "us", 10**6
    good = (numbers >= _FIRST * size) & (numbers < _LAST * size)
    times = np.where(good, numbers, 0).astype(np.int64)
    times[~good] = np.iinfo(np.int64).min  # NaT
    return pd.Series(pd.DatetimeIndex(times.view(f"M8[{unit}]")).tz_localize("UTC"))


def note_of_numbers(name: Hashable, unit: str) -> str:
    """Return how the numbers of a column of times were understood, for a warning."""
    return f"the numbers of the time column {name!r} as {_UNITS[unit][0]} since 1970-01-01 UTC"
