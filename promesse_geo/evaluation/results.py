"""How results came about, and results as files."""

import csv
import hashlib
import io
import json
import math
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa

from promesse_geo import threads
from promesse_geo.io.output import check_place, renamed_when_whole
from promesse_geo.messages import invalid, listed, shown
from promesse_geo.traces.traces import Traces

_LIBRARIES = ("promesse-geo", "numpy", "numba", "pandas", "geopandas", "shapely", "pyproj")
_ENDINGS = (".parquet", ".csv")
_COMMENT = "# "
_NUMBERS = ["value", "seconds"]
_COLUMNS = {"metric", "value", "unit"}  # of evaluate and of measure
_ABOUT = "metrics"  # in the attrs of both
_ROWS = "rows of this file"


def provenance(datasets: Mapping[str, Traces], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what one must know to repeat results: versions, parameters, and which data; no positions, no users."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}},
        "machine": f"{platform.system()} {platform.machine()}, {threads.number()} threads",
        "datasets": {
            name: {"records": traces.records, "traces": len(traces), "fingerprint": fingerprint(traces)}
            for name, traces in datasets.items()
        },
        **parameters,
    }


def fingerprint(traces: Traces) -> str:
    """Return 16 hex digits that change with any user, time or location of a data set, and tell none of them."""
    digest = hashlib.blake2b(digest_size=8, person=b"data set")
    for user in traces.users.tolist():
        digest.update(str(user).encode() + b"\0")
    for array in (traces.offsets, traces.times, traces.points):
        digest.update(array.tobytes())
    return digest.hexdigest()


def save_results(table: pd.DataFrame, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a table of results, with how they came about, to Parquet or CSV.

    Parameters
    ----------
    table : pandas.DataFrame
        What `evaluate` or `measure` returned. `table.attrs` says how it came about and goes along: in the metadata
        of Parquet, in the first line of CSV, as a comment.
    path : path of a file
        Ends in .parquet or .csv.
    force : bool
        Whether to replace a file that is there.

    Raises
    ------
    TypeError, ValueError, OSError
        If the table is none of `evaluate` or `measure` or has no `attrs`, a column is one that files do not keep,
        the ending is another one, or the file cannot be written.

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> city = pg.make_city(users=2, days=1)
    >>> results = pg.evaluate({"city": city}, [pg.Promesse(200)], [pg.Compression()])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pg.save_results(results, pathlib.Path(folder) / "results.csv")
    ...     again = pg.load_results(pathlib.Path(folder) / "results.csv")
    >>> again.equals(results), again.attrs == results.attrs
    (True, True)
    """
    _check_table(table)
    target = check_results_output(path, force=force)
    _as_json(table.attrs)
    with renamed_when_whole(target, force=force) as temporary:
        if target.suffix.lower() == ".parquet":
            table.to_parquet(temporary, index=False)
        else:
            text = table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)  # else "\r" ends a row
            about = _as_json({**table.attrs, _ROWS: len(table)})
            temporary.write_text(f"{_COMMENT}{about}\n{text}", encoding="utf-8")


def _check_table(table: Any) -> None:
    """Refuse what holds no results, such as positions, and columns that would not come back."""
    if not isinstance(table, pd.DataFrame) or isinstance(table, gpd.GeoDataFrame) or not set(table) >= _COLUMNS:
        rule = f"what pg.evaluate or pg.measure returned, with columns {listed(sorted(_COLUMNS))}"
        raise TypeError(invalid("table", "save_results", rule, table))
    if _ABOUT not in table.attrs:
        raise ValueError(
            "The attrs of the table do not say how it came about; pandas drops them where tables are joined. Give them "
            "back, as in table.attrs.update(results.attrs)."
        )
    if not table.columns.is_unique:
        twice = listed(table.columns[table.columns.duplicated()].unique().tolist())
        raise ValueError(f"The table has several columns named {twice}. Rename all but one.")
    for name, column in table.items():
        numbers_only = name in (*_NUMBERS, "seed")
        if not isinstance(name, str) or not _is_kept([name]) or not _is_kept(column, numbers_only=numbers_only):
            raise ValueError(
                f"The column {name!r} of the table cannot be kept by a file: its name is no text, or it mixes text "
                "with something else, or holds bytes, objects, a lone surrogate or endless text, or no numbers where "
                "there must be some. Make it text or numbers, or drop it."
            )


def _is_kept(values: Any, *, numbers_only: bool = False) -> bool:
    """Whether values are of one kind that both formats have, such as text that is not endless or numbers."""
    try:
        kind = pa.array(values, from_pandas=True).type
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    if numbers_only and not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        return False
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return max((len(text) for text in values if isinstance(text, str)), default=0) <= csv.field_size_limit()
    return not (pa.types.is_binary(kind) or pa.types.is_nested(kind))


def _as_json(about: Mapping[Any, Any]) -> str:
    """How results came about as text, or say what cannot be one."""
    for name, value in about.items():
        try:
            json.dumps({name: value})
        except (TypeError, ValueError, RecursionError):
            raise TypeError(
                f"The attrs of the table hold {shown(name)}, whose value JSON cannot keep: "
                f"{shown(value)}. Make it text, numbers or lists of them, or remove it."
            ) from None
    return json.dumps(about)


def check_results_output(path: str | os.PathLike[str], *, force: bool) -> Path:
    """Return where results go, or say why they cannot be written there; for a check before long work."""
    target = _checked(path, owner="save_results")
    check_place(target, force=force)
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
        As it was, with `attrs`.

    Raises
    ------
    ValueError, OSError
        If the file is not there, not of the kind, or was cut within a row.
    """
    source = _checked(path, owner="load_results")
    try:
        table = pd.read_parquet(source) if source.suffix.lower() == ".parquet" else _from_csv(source)
        if not set(table) >= _COLUMNS or _ABOUT not in table.attrs:
            raise ValueError("neither of evaluate nor of measure")
    except (pa.ArrowException, csv.Error, ValueError, TypeError, OverflowError, RecursionError) as error:
        if isinstance(error, OSError):
            raise
        raise ValueError(
            f"The file {str(source)!r} holds no results that pg.save_results wrote, or not all of them."
        ) from error
    return table


def _from_csv(source: Path) -> pd.DataFrame:
    with source.open(encoding="utf-8", newline="") as file:
        first = file.readline()
        if not first.startswith(_COMMENT):
            raise ValueError("no first line of save_results")
        text = file.read()
    if not text.endswith("\n"):
        raise ValueError("cut within a line")
    heads, *rows = filter(None, csv.reader(io.StringIO(text, newline=""), strict=True))
    if any(len(row) != len(heads) for row in rows):
        raise ValueError("more or fewer fields than heads")
    table = pd.DataFrame(rows, columns=heads, dtype="str")
    for name in table.columns.intersection(_NUMBERS):  # to the last digit
        table[name] = np.array([float(text) if text else math.nan for text in table[name]])
    if "seed" in table:
        table["seed"] = pd.array([int(text) if text else pd.NA for text in table["seed"]], dtype="Int64")
    about = json.loads(first.removeprefix(_COMMENT))
    if about.pop(_ROWS, len(table)) != len(table):  # older files do not say
        raise ValueError("cut between rows")
    table.attrs.update(about)
    return table


def _checked(path: Any, *, owner: str) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(invalid("path", owner, "the path of a file", path))
    place = Path(path)
    if place.suffix.lower() not in _ENDINGS:
        raise ValueError(invalid("path", owner, "a file that ends in .parquet or .csv", place.name))
    return place
