"""From raw files to Tables I to VI."""

import os
import tempfile
import time as clock
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from promesse_geo.evaluation import evaluate, load_results
from promesse_geo.evaluation.runs import check_jobs, check_seeds
from promesse_geo.io import read_cabspotting, read_geolife, read_mdc
from promesse_geo.io.writers import write
from promesse_geo.mechanisms import GeoIndistinguishability, Mechanism, Promesse, WaitForMe
from promesse_geo.metrics import AdaptivePoiRetrieval, AreaCoverage, Reidentification, Residue
from promesse_geo.paper import published, tables
from promesse_geo.paper.report import read_tables, write_report
from promesse_geo.preprocess import collapse_empty_days, first_days, split_gaps
from promesse_geo.synthetic import make_city
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_flag, check_integer

CITY = "made-up city"
_READERS: dict[str, Callable[..., Any]] = {
    "Cabspotting": read_cabspotting,
    "Geolife": read_geolife,
    "MDC": read_mdc,
}
_KINDS: dict[type[Mechanism], str] = {
    Promesse: "promesse",
    GeoIndistinguishability: "geo-indistinguishability",
    WaitForMe: "wait-for-me",
}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The paper's tables with our figures beside its own.

    Parameters
    ----------
    tables : dict of str to pandas.DataFrame
        Table I to Table VI: one row a figure, `dataset`, `row`, `paper`, `ours` (the mean over seeds), `spread`
        (their standard deviation), `ratio` of ours to the paper's, `unit`.
    results : pandas.DataFrame
        What `evaluate` returned; `results.attrs` says how it came about.
    """

    tables: dict[str, pd.DataFrame]
    results: pd.DataFrame

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write the tables (CSV), all results (CSV) and a report (Markdown and HTML) to a folder.

        Parameters
        ----------
        folder : path of a folder
            Made if it is not there.
        force : bool
            Whether to replace files that are there.

        Returns
        -------
        list of pathlib.Path
            What was written. No file holds positions or users.

        Raises
        ------
        OSError
            If a file is there and `force` is not given, or cannot be written.
        """
        return write_report(self.tables, self.results, Path(folder), force=force)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Reproduction":
        """Read the tables and results that `save` wrote to a folder.

        Raises
        ------
        ValueError, OSError
            If they are not there, or something else is.
        """
        stored = Path(folder) / "results.parquet"
        results = load_results(stored if stored.exists() else stored.with_suffix(".csv"))
        return cls(read_tables(Path(folder)), results)


def reproduce(
    *,
    cabspotting: Any = None,
    geolife: Any = None,
    mdc: Any = None,
    min_days: int | None = None,
    seeds: int = 3,
    n_jobs: int = 1,
    attacks: bool = False,
) -> Reproduction:
    """Repeat the paper's experiment, from raw files to Tables I to VI.

    Parameters
    ----------
    cabspotting, geolife, mdc : path, optional
        Where the data sets are, as their readers take them. Without any, `make_city(users=50, days=7, seed=0)` takes
        their place, for which the paper has no figures.
    min_days : int, optional
        Users with fewer days of data are left out; by default 21 in real data, as Table I wants it, and none in the
        city.
    seeds : int
        How many seeds for noise and range queries.
    n_jobs : int
        How many processes to use; see `evaluate`. Table V is timed alone.
    attacks : bool
        Whether to go beyond the paper: the adaptive, the residue and the re-identification attack, and area coverage,
        each with one seed.

    Returns
    -------
    Reproduction
        The tables and all results; `.save(folder)` writes them.

    Raises
    ------
    TypeError, ValueError, OSError
        If a parameter is wrong or a data set cannot be read.

    Notes
    -----
    Days are those of Los Angeles, Shanghai and Zurich. ε = 50 m is not run on Cabspotting, as in the paper. Table V
    times protecting and writing as text; that needs room for the text in the temporary folder (about 1.3 GB for
    Cabspotting).

    References
    ----------
    Paper, section V.

    Examples
    --------
    >>> import promesse_geo as pg, warnings
    >>> with warnings.catch_warnings(action="ignore"):  # of traces that cannot be protected
    ...     tables = pg.reproduce(seeds=1).tables
    >>> list(tables)
    ['Table I', 'Table II', 'Table III', 'Table IV', 'Table V', 'Table VI']
    """
    if min_days is not None:
        min_days = check_integer(min_days, name="min_days", owner="reproduce")
    chosen, processes = check_seeds(seeds, owner="reproduce"), check_jobs(n_jobs, owner="reproduce")
    sources = {"Cabspotting": cabspotting, "Geolife": geolife, "MDC": mdc}
    for source in sources.values():
        if isinstance(source, (str, os.PathLike)) and not Path(source).exists():
            raise FileNotFoundError(f"There is no file or folder {str(source)!r}.")
    prepared, results, times = [], [], []
    beyond = check_flag(attacks, name="attacks", owner="reproduce")
    for name, whole, parts in _prepared(sources, min_days, with_whole=beyond):
        prepared.append(tables.table_1({name: parts}))
        mechanisms = [row.mechanism for row in published.ROWS if name not in row.without]
        results.append(evaluate({name: parts}, mechanisms, seeds=chosen, n_jobs=processes))
        times += [(name, *timed) for timed in _times(parts)]
        if whole is not None:
            results += _attacked(name, whole, parts, mechanisms)
    together = _together(results)
    return Reproduction(
        {
            "Table I": pd.concat(prepared, ignore_index=True),
            "Table II": tables.table_2(together),
            "Table III": tables.table_3(together),
            "Table IV": tables.table_4(together),
            "Table V": tables.table_5(pd.DataFrame(times, columns=["dataset", "row", "seconds"])),
            "Table VI": tables.table_6(together),
            **(tables.beyond(together) if beyond else {}),
        },
        together,
    )


def _prepared(
    sources: dict[str, Any], min_days: int | None, *, with_whole: bool
) -> Iterator[tuple[str, Traces | None, Traces]]:
    """Each data set, read and prepared, before (if wanted) and after gaps are cut; one at a time, they are large."""
    if all(source is None for source in sources.values()):
        city = make_city(users=50, days=7, seed=0, as_traces=True)
        yield CITY, *_prepare(city, "Europe/Paris", min_days, with_whole=with_whole)
    for name, source in sources.items():
        if source is not None:
            raw = _READERS[name](source, as_traces=True)
            days = published.MIN_DAYS if min_days is None else min_days
            ready = _prepare(raw, published.ZONES[name], days, with_whole=with_whole)
            del raw
            yield name, *ready


def _prepare(raw: Any, tz: str, min_days: int | None, *, with_whole: bool) -> tuple[Traces | None, Traces]:
    """What `prepare` does, step by step."""
    whole = first_days(collapse_empty_days(raw, tz=tz), days=20, min_days=min_days)
    return whole if with_whole else None, split_gaps(whole, keep_user=True)


def _attacked(name: str, whole: Traces, parts: Traces, mechanisms: list[Mechanism]) -> Iterator[pd.DataFrame]:
    """What stronger attacks find; the attacker knows the kind of mechanism."""
    for mechanism in mechanisms:
        kind = _KINDS[type(mechanism)]
        looks = [AdaptivePoiRetrieval(kind=kind), AreaCoverage(), *([Residue()] if kind == "promesse" else [])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is left out was told before
            yield evaluate({name: parts}, [mechanism], looks)
            yield evaluate({name: whole}, [mechanism], [Reidentification()])


def _times(traces: Traces) -> Iterator[tuple[str, float]]:
    """Seconds to protect and to write as text; what is left out was told before."""
    for row in published.TIMED:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begin = clock.perf_counter()
            write(row.mechanism.protect(traces), Path(folder) / "protected.csv")
            yield row.label.split(",")[0], clock.perf_counter() - begin


def _together(results: list[pd.DataFrame]) -> pd.DataFrame:
    """All results in one table that says how each data set came about."""
    attrs = dict(results[0].attrs)
    attrs["datasets"] = {}
    for result in results:
        for name, about in result.attrs["datasets"].items():
            attrs["datasets"].setdefault(name, about)  # of each the first, which is the one cut at gaps
    for key in ("mechanisms", "metrics"):
        attrs[key] = list(dict.fromkeys(one for result in results for one in result.attrs[key]))
    together = pd.concat(results, ignore_index=True)
    together.attrs.update(attrs)
    return together
