"""Provenance of results, and results as files."""

import ast
import csv
import functools
import hashlib
import io
import json
import math
import os
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import geopandas as gpd
import pandas as pd
import pyarrow as pa
from pandas.api.types import is_any_real_numeric_dtype, is_bool_dtype, is_numeric_dtype, is_string_dtype

from promesse_geo import threads
from promesse_geo.io.atomic import atomic_path, check_target
from promesse_geo.messages import decimal, invalid, listed
from promesse_geo.metrics import metric_classes
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_ending, check_flag, check_path

_LIBRARIES = ("promesse-geo", "numpy", "numba", "pandas", "geopandas", "shapely", "pyproj")

_TEXTS = ("dataset", "mechanism", "metric", "unit")  # of evaluate
_FLOATS = ["value", "seconds", "guess"]
_NUMBERS = [*_FLOATS, "seed"]
_LONGEST_CELL = 131_072  # characters that the csv module reads
_KNOWN = {*_NUMBERS, *_TEXTS, "mechanism_name", "parameters", "metric_name", "label", "reason"}
_COLUMNS = {"metric", "value", "unit"}  # of evaluate and of measure


_MEASURES = ["metric", "value", "unit"]


class Measures(pd.DataFrame):
    """A table of metrics, values and units that prints short names of metrics, and values with two digits."""

    @property
    def _constructor(self) -> type["Measures"]:
        return Measures

    def _is_complete(self) -> bool:
        optional = [name for name in ("guess", "reason") if name in self.columns]
        return len(self) > 0 and list(self.columns) == [*_MEASURES, *optional]

    def __repr__(self) -> str:
        """Return one line per metric: value, unit, metric and guess, or the reason why the value is undefined."""
        if not self._is_complete():
            return super().__repr__()
        rows = values_in_words(self.assign(metric=[short_name(metric) for metric in self["metric"]]))
        width = max(len(value) for value, _ in rows)
        return "\n".join(f"{value:>{width}}  {metric}" for value, metric in rows)

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            readable = pd.DataFrame(self)
            if self._is_complete():
                readable["metric"] = [short_name(metric) for metric in self["metric"]]
                for name in readable.columns.intersection(["value", "guess"]):
                    readable[name] = [decimal(value) for value in self[name]]
            return str(readable._repr_html_())  # type: ignore[operator]


def short_name(metric: str) -> str:
    """Return the label of a metric given by its repr, with the parameters that differ from the default; else the repr.

    >>> short_name("PoiRetrieval(diameter=100.0, duration='15min', threshold=100.0)")
    'POI retrieval, F-score (diameter=100.0)'
    """
    try:
        call: Any = ast.parse(metric, mode="eval").body
        kind: Any = metric_classes()[call.func.id]
        given = {each.arg: each.value for each in call.keywords}
        required = [each.name for each in fields(kind) if each.default is MISSING and each.name in given]
        usual = kind(**{name: ast.literal_eval(given[name]) for name in required})
        texts = {name: ast.unparse(value) for name, value in given.items()}
        differing = [
            f"{name}={text}" for name, text in texts.items() if name in required or text != repr(getattr(usual, name))
        ]
    except (SyntaxError, AttributeError, KeyError, TypeError, ValueError):  # of another author, or no repr
        return metric
    return f"{usual.label} ({', '.join(differing)})" if differing else str(usual.label)


def values_in_words(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Return value with unit, and metric with guess, of each row of a table of `measure`; or why it is undefined."""
    columns = (table[name].tolist() for name in _MEASURES)
    reasons = table["reason"].fillna("").tolist() if "reason" in table else [""] * len(table)
    guesses = table["guess"].tolist() if "guess" in table else [math.nan] * len(table)
    return [
        ("undefined", f"{metric}: {reason}")
        if reason
        else (
            f"{decimal(value)} {unit}",
            metric if math.isnan(guess) else f"{metric}, guessing {decimal(guess)} {unit}",
        )
        for metric, value, unit, guess, reason in zip(*columns, guesses, reasons, strict=True)
    ]


def provenance(datasets: Mapping[str, Traces], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is needed to repeat results: versions, parameters and data sets; no locations and no users."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _LIBRARIES}},
        "machine": f"{platform.system()} {platform.machine()}, {threads.number()} threads",
        "datasets": {
            name: {"records": traces.records, "traces": len(traces), "fingerprint": fingerprint(traces)}
            for name, traces in datasets.items()
        },
        **parameters,
    }


_version = functools.cache(version)  # which reads and parses a file


def fingerprint(traces: Traces) -> str:
    """Return 16 hex digits that change with any user, time, location or break of a data set and reveal none of them."""
    digest = hashlib.blake2b(digest_size=8, person=b"data set")
    digest.update("\0".join([*map(str, traces.users.tolist()), ""]).encode())
    for array in (traces.offsets, traces.times, traces.points, traces.breaks):
        digest.update(array.tobytes())
    return digest.hexdigest()


def save_results(table: pd.DataFrame, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a table of results to Parquet or CSV.

    Parameters
    ----------
    table : pandas.DataFrame
        What `evaluate` or `measure` returned.
    path : path of a file
        Ends in .parquet, which keeps the provenance (`table.attrs`), or in .csv, which keeps the table alone.
    force : bool
        Whether to overwrite an existing file.

    Raises
    ------
    TypeError, ValueError, OSError
        If the table holds no results or values that the format cannot store, the suffix is another one, or the file
        cannot be written.

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> results = pg.evaluate({"city": city}, [pg.Promesse(200)], [pg.Compression()])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pg.save_results(results, pathlib.Path(folder) / "results.parquet")
    ...     again = pg.load_results(pathlib.Path(folder) / "results.parquet")
    >>> again.equals(results), again.attrs == results.attrs
    (True, True)
    """
    _check_table(table)
    target = check_results_output(path, force=check_flag(force, name="force", owner="save_results"))
    as_text = _for_csv(table) if target.suffix.lower() == ".csv" else table
    with atomic_path(target, force=force, private=False) as temporary:
        try:
            if target.suffix.lower() == ".parquet":
                json.dumps(table.attrs)  # pandas would drop what JSON cannot hold
                with temporary.open("wb") as file:  # whose errors have the number of the system's
                    table.to_parquet(file, index=False, write_page_checksum=True)
            else:
                quoting: Literal[2] = csv.QUOTE_NONNUMERIC  # else a carriage return in a name would end the row
                as_text.to_csv(temporary, index=False, lineterminator="\n", quoting=quoting)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(
                f"The table cannot be stored in {target.name!r}: {type(error).__name__} in a column or in its attrs. "
                "Use text or numbers in columns, and text, numbers or lists of them in attrs."
            ) from error


def _check_table(table: Any) -> None:
    """Raise if a table holds no results, or columns that would not be read as they were."""
    if not isinstance(table, pd.DataFrame) or isinstance(table, gpd.GeoDataFrame) or not set(table) >= _COLUMNS:
        rule = f"what pg.evaluate or pg.measure returned, with columns {listed(sorted(_COLUMNS))}"
        raise TypeError(invalid("table", "save_results", rule, table))
    if not table.columns.is_unique:
        repeated = listed(table.columns[table.columns.duplicated()].unique().tolist())
        raise ValueError(f"The table has several columns named {repeated}. Rename all but one.")
    for name in table.columns.intersection(_NUMBERS):
        if not is_numeric_dtype(table[name]) or is_bool_dtype(table[name]):
            raise ValueError(f"The column {name!r} of the table must hold numbers. Got the type {table[name].dtype}.")


def _for_csv(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose seeds are integers; raise if a column would not be read from CSV as it is."""
    cure = "Convert it to text or numbers, or save to a file that ends in .parquet."
    for name, column in table.items():
        if is_bool_dtype(column) or not (is_any_real_numeric_dtype(column) or is_string_dtype(column)):
            raise ValueError(f"CSV does not keep the type {column.dtype} of the column {name!r}. {cure}")
        if is_string_dtype(column) and column.str.len().max() > _LONGEST_CELL:
            rule = f"a text of more than {_LONGEST_CELL:,} characters, which cannot be read from CSV"
            raise ValueError(f"The column {name!r} of the table has {rule}. Save to a file that ends in .parquet.")
    if "seed" not in table:
        return table
    try:
        return table.assign(seed=table["seed"].astype("Int64"))
    except (TypeError, ValueError):
        raise ValueError("The column 'seed' of the table must hold whole numbers.") from None


def is_table(table: object, *, texts: Sequence[str], numbers: Sequence[str]) -> bool:
    """Whether a frame has these columns of text and of numbers."""
    if not isinstance(table, pd.DataFrame) or not set(table) >= {*texts, *numbers} or not table.columns.is_unique:
        return False
    return all(is_any_real_numeric_dtype(table[name]) for name in numbers) and all(
        is_string_dtype(table[name]) for name in texts
    )


def complete_results(results: Any, *, owner: str) -> pd.DataFrame:
    """Return results with all columns of `evaluate` that tables and figures need; those of version 0.1 lack some.

    Raises
    ------
    TypeError
        If they are no results of `evaluate`.
    """
    if not is_table(results, texts=_TEXTS, numbers=("value",)):
        raise TypeError(invalid("results", owner, "a table that pg.evaluate returned", results))
    name = results.metric.str.replace(r"(?s)\(.*", "", regex=True)
    defaults = {"mechanism_name": results.mechanism, "parameters": "{}", "metric_name": name, "label": name}
    complete = results.assign(value=results.value.astype("float64"))
    for column, default in defaults.items():
        complete[column] = results[column].where(results[column].notna(), default) if column in results else default
    return complete


def check_results_output(path: str | os.PathLike[str], *, force: bool) -> Path:
    """Return the path to write results to; raise if they cannot be written there, before a long computation."""
    target = _check_suffix(path, owner="save_results")
    check_target(path, force=force)
    return target


def load_results(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a table of results that `save_results` wrote.

    Parameters
    ----------
    path : path of a file
        Ends in .parquet or .csv.

    Returns
    -------
    pandas.DataFrame
        The table. `attrs` holds the provenance if the file has it; see `save_results`.

    Raises
    ------
    ValueError, OSError
        If the file does not exist, holds something else, or was cut within a row.
    """
    source = _check_suffix(path, owner="load_results")
    try:
        table = _read_parquet(source) if source.suffix.lower() == ".parquet" else _read_csv(source)
        if not set(table) >= _COLUMNS:
            raise ValueError("no results")
    except (pa.ArrowException, csv.Error, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"The file {str(source)!r} holds no results that pg.save_results wrote, or was cut."
        ) from error
    return Measures(table) if list(table)[:3] == _MEASURES else table


def _read_parquet(source: Path) -> pd.DataFrame:
    try:
        with source.open("rb") as file:  # whose errors have the number of the system's
            return pd.read_parquet(file, page_checksum_verification=True)
    except OSError as error:
        if error.errno:  # of the system, not of the format
            raise
        raise ValueError("damaged pages") from error


def _read_csv(source: Path) -> pd.DataFrame:
    """Read a CSV file. Earlier versions wrote the provenance to its first line, as a comment."""
    with source.open(encoding="utf-8", newline="") as file:
        text = file.read()
    first, _, rest = text.partition("\n")
    is_old = first.startswith("# ")
    names, *rows = csv.reader(io.StringIO(rest if is_old else text, newline=""), strict=True)
    if not text.endswith("\n") or any(len(row) != len(names) for row in rows):
        raise ValueError("missing or surplus fields")
    table = pd.DataFrame(rows, columns=names, dtype="str")
    for name in table.columns.intersection(_FLOATS):
        table[name] = [float(number or "nan") for number in table[name]]  # exact to the last digit
    if "seed" in table:
        seeds = [int(seed.removesuffix(".0")) if seed else None for seed in table["seed"]]
        table["seed"] = pd.array(seeds, dtype="Int64")
    for name in _unquoted(rest if is_old else text, set(names) - _KNOWN):
        table[name] = _as_numbers(table[name].tolist())
    if is_old:
        about = dict(json.loads(first.removeprefix("# ")))
        table.attrs.update({name: value for name, value in about.items() if name != "rows of this file"})
    return table


def _unquoted(text: str, columns: Collection[str]) -> list[str]:
    """Return those of the columns that hold numbers, which `save_results` does not quote, or nothing."""
    if not columns:
        return []
    names, *rows = csv.reader(io.StringIO(text, newline=""), strict=True, quoting=csv.QUOTE_NONNUMERIC)
    kinds = {name: {type(value) for value in values if value != ""} for name, *values in zip(names, *rows, strict=True)}
    return [name for name in columns if kinds[name] == {float}]


def _as_numbers(texts: list[str]) -> pd.Series:
    """Return integers if all are, else floats; an empty text is a missing number."""
    try:
        numbers = [int(text) if text else None for text in texts]
    except ValueError:
        return pd.Series([float(text or "nan") for text in texts])
    return pd.Series(numbers, dtype="Int64" if None in numbers else None)


def _check_suffix(path: Any, *, owner: str) -> Path:
    place = check_path(path, name="path", owner=owner)
    return check_ending(place, (".parquet", ".csv"), name="path", owner=owner)
