"""The experiment from raw files to Tables I to VI, and example data."""

import os
import tempfile
import time as clock
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from promesse_geo.evaluation import evaluate, load_results
from promesse_geo.evaluation.arguments import check_jobs, check_seeds
from promesse_geo.io import read_cabspotting, read_geolife, read_mdc
from promesse_geo.io.writers import write
from promesse_geo.metrics import (
    AdaptivePoiRetrieval,
    AreaCoverage,
    EndRetrieval,
    HeatMapReidentification,
    Linkage,
    Reidentification,
    Residue,
    Unicity,
)
from promesse_geo.paper import most2014, tables
from promesse_geo.paper.report import PAPERS, paper_of, read_tables, write_report
from promesse_geo.paper.tables import MIN_DAYS, RAW, RECOMMENDED, ROWS, TIMED, ZONES, Row
from promesse_geo.preprocess import collapse_empty_days, first_days, prepare, split_gaps
from promesse_geo.synthetic import make_city
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice, check_flag, check_integer, check_path

CITY = "synthetic city"
CITY_ZONE = "Europe/Paris"
_STORED = (Path(__file__).parent / "results", Path(__file__).parents[2] / "data" / "results" / "cabspotting")
"""Our results on Cabspotting: as they are installed, and in a clone."""
_READERS: dict[str, Callable[..., Any]] = {"Cabspotting": read_cabspotting, "Geolife": read_geolife, "MDC": read_mdc}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The paper's tables with our values beside its own.

    Parameters
    ----------
    tables : dict of str to pandas.DataFrame
        Table I to Table VI, and those of `beyond`; of another paper, its tables. One row per value: `dataset`, `row`,
        `paper`, `ours` (the mean over seeds), `spread` (their standard deviation), `ratio` (ours to the paper's),
        `unit`.
    results : pandas.DataFrame
        What `evaluate` returned. `results.attrs` holds the provenance.
    """

    tables: dict[str, pd.DataFrame]
    results: pd.DataFrame

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
        """Write the tables (CSV), the results (Parquet and CSV) and a report (Markdown and HTML) to a folder.

        Parameters
        ----------
        folder : path of a folder
            Created if it does not exist.
        force : bool
            Whether to overwrite existing files.

        Returns
        -------
        list of pathlib.Path
            The files. None of them holds locations or users.

        Raises
        ------
        TypeError, OSError
            If a parameter is invalid, a file exists and `force` is False, or cannot be written.
        """
        owner = "Reproduction.save"
        place = check_path(folder, name="folder", owner=owner)
        return write_report(self.tables, self.results, place, force=check_flag(force, name="force", owner=owner))

    @classmethod
    def load(cls, folder: str | os.PathLike[str] | None = None) -> "Reproduction":
        """Read what `save` wrote to a folder, or our results on Cabspotting.

        Parameters
        ----------
        folder : path of a folder, optional
            Folder with the paper's tables, such as table_1.csv to table_6.csv, and results.parquet or results.csv. The
            default is our results on all of Cabspotting, which are installed with the package.

        Returns
        -------
        Reproduction

        Raises
        ------
        TypeError, ValueError, OSError
            If the folder or a file does not exist or holds something else.

        Examples
        --------
        >>> import promesse_geo as pg
        >>> table = pg.paper.Reproduction.load().tables["Table I"].set_index("row")
        >>> int(table.ours["records"])
        8985370
        """
        if folder is None:
            folder = next(filter(Path.is_dir, _STORED), _STORED[0])
        place = check_path(folder, name="folder", owner="Reproduction.load")
        if not place.is_dir():
            raise FileNotFoundError(f"The folder {str(place)!r} does not exist.")
        stored = place / "results.parquet"
        results = load_results(stored if stored.exists() else stored.with_suffix(".csv"))
        others = tables.beyond(results) if paper_of(results) is PAPERS["trustcom2015"] else {}
        return cls({**read_tables(place, results), **others}, results)


class ExampleData(NamedTuple):
    """Raw and prepared data for examples.

    Parameters
    ----------
    name : str
        "Cabspotting" or "synthetic city".
    raw : Traces
        The data as recorded, one trace per user.
    parts : Traces
        The data prepared as in the paper, split at gaps.
    zone : str
        Time zone in which days begin at midnight.
    min_days : int or None
        Least number of days of data that a user of `parts` has; None for any.
    """

    name: str
    raw: Traces
    parts: Traces
    zone: str
    min_days: int | None

    @property
    def days(self) -> Traces:
        """The data on the common calendar as in the paper, one trace per user, not split at gaps."""
        return first_days(collapse_empty_days(self.raw, tz=self.zone), min_days=self.min_days)


def example_data(*, users: int = 50, days: int = 7) -> ExampleData:
    """Return data for examples: Cabspotting if its archive is available, or a synthetic city.

    Parameters
    ----------
    users, days : int
        Size of the synthetic city, as in `make_city`. Cabspotting is always complete.

    Returns
    -------
    ExampleData
        Cabspotting if the environment variable PROMESSE_CABSPOTTING names its archive (cabspottingdata.tar.gz).

    Raises
    ------
    TypeError, ValueError, OSError
        If `users` or `days` is invalid, or the archive cannot be read.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> example = pg.paper.example_data(users=3, days=2)
    >>> len(example.raw), example.parts.records == example.raw.records
    (3, True)
    """
    archive = os.environ.get("PROMESSE_CABSPOTTING")
    if archive:
        name, zone, min_days = "Cabspotting", ZONES["Cabspotting"], MIN_DAYS
        raw = read_cabspotting(archive, as_traces=True)
    else:
        name, zone, min_days = CITY, CITY_ZONE, None
        raw = make_city(users, days, as_traces=True)
    return ExampleData(name, raw, prepare(raw, tz=zone, min_days=min_days, keep_user=True), zone, min_days)


def reproduce(
    *,
    paper: str = "trustcom2015",
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
    paper : {"trustcom2015", "most2014"}
        Which paper: the one on Promesse, or that on noise against points of interest, with its Tables III, VI and VII;
        see `promesse_geo.paper.most2014`. The latter takes neither `mdc`, `min_days` nor `attacks`.
    cabspotting, geolife, mdc : path, optional
        Data sets, as their readers take them. The default is `make_city(users=50, days=7, seed=0)`, for which the
        paper has no values.
    min_days : int, optional
        Drop users with fewer days of data. The default is 21 in real data, which Table I requires, and none in the
        city.
    seeds : int
        Number of seeds for noise and range queries.
    n_jobs : int
        Number of processes; see `evaluate`. Table V is timed with one.
    attacks : bool
        Whether to compute metrics that the paper does not have, with one seed, of raw data and the `recommended`
        mechanisms as well: the adaptive and the residue attack, re-identification by POIs and by heat maps, end
        retrieval, linkage, unicity, and area coverage.

    Returns
    -------
    Reproduction
        The tables and all results. `.save(folder)` writes them.

    Raises
    ------
    TypeError, ValueError, OSError
        If a parameter is invalid or a data set cannot be read.

    Notes
    -----
    Days begin at midnight in Los Angeles, Shanghai and Zurich. ε = 50 m is not run on Cabspotting, as in the paper.
    Table V times protecting and writing as text, which needs space in the temporary folder (about 1.3 GB for
    Cabspotting).

    References
    ----------
    Paper, section V. Primault, Ben Mokhtar, Lauradoux, Brunie: Differentially Private Location Privacy in Practice.
    MOST 2014.

    Examples
    --------
    >>> import promesse_geo as pg, warnings
    >>> with warnings.catch_warnings(action="ignore"):  # of traces that are too short to protect
    ...     tables = pg.reproduce(seeds=1).tables
    >>> list(tables)
    ['Table I', 'Table II', 'Table III', 'Table IV', 'Table V', 'Table VI']
    """
    check_choice(paper, name="paper", owner="reproduce", options=list(PAPERS))
    if min_days is not None:
        min_days = check_integer(min_days, name="min_days", owner="reproduce")
    chosen, processes = check_seeds(seeds, owner="reproduce"), check_jobs(n_jobs, owner="reproduce")
    check_flag(attacks, name="attacks", owner="reproduce")
    sources = {"Cabspotting": cabspotting, "Geolife": geolife, "MDC": mdc}
    for name, source in sources.items():
        if isinstance(source, (str, os.PathLike)) and not Path(source).exists():
            raise FileNotFoundError(
                f"The '{name.lower()}' parameter of reproduce must be a path of data. {str(source)!r} does not exist."
            )
    if paper == "most2014":
        most2014.check_choices(mdc=mdc, min_days=min_days, attacks=attacks)
        return _reproduce_most2014(sources, seeds=chosen, n_jobs=processes)
    descriptions, results, times = [], [], []
    for name, unsplit, parts in _prepared(sources, min_days, with_unsplit=attacks):
        descriptions.append(tables.table_1({name: parts}))
        rows = [row for row in ROWS if name not in row.without]
        mechanisms = [row.mechanism for row in rows]
        results.append(evaluate({name: parts}, mechanisms, seeds=chosen, n_jobs=processes))
        times += [(name, *timed) for timed in _times(parts)]
        if unsplit is not None:
            results += _attacked(name, unsplit, parts, rows)
    combined = _combine(results)
    return Reproduction(
        {
            "Table I": pd.concat(descriptions, ignore_index=True),
            "Table II": tables.table_2(combined),
            "Table III": tables.table_3(combined),
            "Table IV": tables.table_4(combined),
            "Table V": tables.table_5(pd.DataFrame(times, columns=["dataset", "row", "seconds"])),
            "Table VI": tables.table_6(combined),
            **tables.beyond(combined),
        },
        combined,
    )


def _reproduce_most2014(sources: dict[str, Any], *, seeds: list[int], n_jobs: int) -> Reproduction:
    """Run the experiment of MOST 2014 on the city, or on raw Cabspotting and a part of Geolife."""
    counts, results = [], []
    for name, traces in _raw(sources):
        used = most2014.select_busy_days(traces, tz=ZONES[name]) if name == "Geolife" else traces
        table, found = most2014.run(name, used, seeds=seeds, n_jobs=n_jobs)
        counts.append(table)
        results.append(found)
    combined = _combine(results)
    found_tables = {
        "Table III": pd.concat(counts, ignore_index=True),
        "Table VI": most2014.table_6(combined),
        "Table VII": most2014.table_7(combined),
    }
    return Reproduction(found_tables, combined)


def _raw(sources: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Read each data set, or make the city if there is none. Hold one at a time."""
    if all(source is None for source in sources.values()):
        yield CITY, make_city(users=50, days=7, seed=0, as_traces=True)
    for name, source in sources.items():
        if source is not None:
            yield name, _READERS[name](source, as_traces=True)


def _prepared(
    sources: dict[str, Any], min_days: int | None, *, with_unsplit: bool
) -> Iterator[tuple[str, Traces | None, Traces]]:
    """Read and prepare each data set: before (if requested) and after it is split at gaps. Hold one at a time."""
    for name, traces in _raw(sources):
        days = MIN_DAYS if min_days is None and name != CITY else min_days
        yield name, *_prepare(traces, CITY_ZONE if name == CITY else ZONES[name], days, with_unsplit=with_unsplit)


def _prepare(raw: Any, tz: str, min_days: int | None, *, with_unsplit: bool) -> tuple[Traces | None, Traces]:
    """Prepare step by step, to keep what is not yet split at gaps."""
    unsplit = first_days(collapse_empty_days(raw, tz=tz), days=20, min_days=min_days)
    return unsplit if with_unsplit else None, split_gaps(unsplit, keep_user=True)


def _attacked(name: str, unsplit: Traces, parts: Traces, rows: list[Row]) -> Iterator[pd.DataFrame]:
    """Compute the metrics that the paper does not have, of raw data and what we recommend as well."""
    all_rows = (*rows, *RECOMMENDED, RAW)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the main evaluation warned of the same traces
        for row in all_rows:
            attacks = [AdaptivePoiRetrieval(kind=row.kind), *([Residue()] if row.kind == "promesse" else [])]
            yield evaluate({name: parts}, [row.mechanism], [*attacks, AreaCoverage()])
            yield evaluate({name: unsplit}, [row.mechanism], [Reidentification()])
        mechanisms = [row.mechanism for row in all_rows]
        yield evaluate({name: parts}, mechanisms, [EndRetrieval(), Linkage(), Unicity()])
        footprints = [HeatMapReidentification(), HeatMapReidentification(known="same")]
        yield evaluate({name: unsplit}, mechanisms, footprints)


def _times(traces: Traces) -> Iterator[tuple[str, float]]:
    """Time protecting and writing as text, in seconds."""
    for row in TIMED:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the main evaluation warned of the same traces
            begin = clock.perf_counter()
            write(row.mechanism.protect(traces), Path(folder) / "protected.csv")
            yield row.label.split(",")[0], clock.perf_counter() - begin


def _combine(results: list[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate results and their provenance."""
    attrs = dict(results[0].attrs)
    attrs["datasets"] = {}
    for result in results:
        for name, about in result.attrs["datasets"].items():
            attrs["datasets"].setdefault(name, about)  # the first of each name is the one split at gaps
    for key in ("mechanisms", "metrics"):
        attrs[key] = list(dict.fromkeys(label for result in results for label in result.attrs[key]))
    combined = pd.concat(results, ignore_index=True)
    combined.attrs.update(attrs)
    return combined
