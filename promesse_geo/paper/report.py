"""The tables as CSV, Markdown and a self-contained HTML page."""

import html
import io
import math
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes

from promesse_geo.evaluation import save_results
from promesse_geo.evaluation.results import is_table
from promesse_geo.io.atomic import check_target, write_text
from promesse_geo.messages import decimal, invalid
from promesse_geo.paper import most2014
from promesse_geo.paper.tables import PAPER_TABLES, RAW, RECOMMENDED, ROWS
from promesse_geo.plot.comparisons import beside_paper, trade_off
from promesse_geo.plot.page import page

_TITLES = {
    "Adaptive attack": "F-scores of an attacker who averages noise (%; 0 is best for privacy)",
    "Residue attack": "F-scores of an attacker who knows what smoothing leaves (%; 0 is best for privacy)",
    "Re-identification": "Users recognized by their POIs (%; 0 is best for privacy)",
    "Area coverage": "F-scores of visited cells (%; 100 is best for utility)",
    "End retrieval": "Users whose place at the ends of traces is located within 100 m (%; 0 is best for privacy)",
    "Linkage": "Parts joined to the right next part (%; 0 is best for privacy)",
    "Unicity": "Users singled out by 4 known cells and hours (%; 0 is best for privacy)",
    "Heat-map re-identification": "Users recognized by their footprints (%; 0 is best for privacy)",
    "Heat-map re-identification with protected knowledge": "Users recognized by their footprints (%; 0 is best)",
}

_NOTES = {
    "Adaptive attack": "It estimates the noise from the protected data alone, widens its diameter and averages.",
    "Residue attack": "It searches smoothed paths for loops, turns and ends. It has no meaning for other mechanisms.",
    "Re-identification": "It knows where users stayed in the first half and receives the second half, protected.",
    "Area coverage": "Not an attack: the share of the cells that each user visited that stays the same.",
    "End retrieval": "It steps back from the ends of all traces of a user, in several ways; the best one counts. The "
    "place is where most original traces of the user begin and end. Guessing: a random published point of the user.",
    "Linkage": "It joins each part to the nearest one that begins within 48 hours after it. Guessing: any of these.",
    "Unicity": "It knows 4 cells of 200 m and hours of a user, and looks for who was there. Promesse changes times, so "
    "that few records fit; this does not prove that nobody is recognized.",
    "Heat-map re-identification": "It knows the share of records in cells of 800 m in the first half, and receives the "
    "second half, protected. Guessing: any of the known users.",
    "Heat-map re-identification with protected knowledge": "The same attacker first protects what it knows with the "
    "same mechanism.",
}

DRAWN = {"Table II": "F-score", "Table III": "spatial error", "Table IV": "distortion", "Table VI": "compression"}
"""Labels of the tables that have figures."""

_TABLE_TEXTS = ("dataset", "row", "unit")
_TABLE_NUMBERS = ("paper", "ours", "spread", "ratio")
_FILES = ("report.md", "report.html", "results.parquet", "results.csv")

_OURS = "Ours: the mean over seeds ± the standard deviation. Ratio: our value divided by the paper's. "


class Paper(NamedTuple):
    """A paper whose tables are reproduced.

    Parameters
    ----------
    heading : str
        Title of the report.
    about : str
        What the tables show, and the reference.
    tables : dict of str to str
        The paper's tables with their titles.
    drawn : dict of str to str
        Labels of the tables that have figures.
    utility : tuple of str
        Metrics that are drawn against the paper's attack.
    """

    heading: str
    about: str
    tables: dict[str, str]
    drawn: dict[str, str]
    utility: tuple[str, ...] = ()


PAPERS = {
    "trustcom2015": Paper(
        "The paper's experiment, repeated",
        f"{_OURS}The paper: Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the "
        "Publication of Mobility Data with High Utility. TrustCom 2015. It does not say which variant of its algorithm "
        "it measured; its spatial error of 0 m belongs to points interpolated on the path, as in rows without a "
        "remark.",
        PAPER_TABLES,
        DRAWN,
        ("RangeQueryDistortion", "SpatialError"),
    ),
    "most2014": Paper(
        "Differentially Private Location Privacy in Practice, repeated",
        f"{_OURS}The paper: Primault, Ben Mokhtar, Lauradoux, Brunie: Differentially Private Location Privacy in "
        "Practice. MOST 2014. The attacker searches raw and noisy data for stays of an hour, merged by density.",
        most2014.TABLES,
        {"Table VI": "recall", "Table VII": "re-identified"},
    ),
}
"""The papers by the names that `reproduce` takes."""

_ROMAN = {name: number for number, name in enumerate(("I", "II", "III", "IV", "V", "VI", "VII"), start=1)}


def paper_of(results: pd.DataFrame) -> Paper:
    """Return the paper that results belong to."""
    return PAPERS["most2014" if most2014.is_result(results) else "trustcom2015"]


def write_report(tables: dict[str, pd.DataFrame], results: pd.DataFrame, folder: Path, *, force: bool) -> list[Path]:
    """Write tables, results and report to a folder and return the paths."""
    check_report_folder(folder, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[Path, str] = {
        folder / _file_name(name, number, paper_of(results)): table.to_csv(index=False, lineterminator="\n")
        for number, (name, table) in enumerate(tables.items(), start=1)
    }
    texts[folder / "report.md"] = as_markdown(tables, results)
    texts[folder / "report.html"] = as_html(tables, results)
    for path, text in texts.items():
        write_text(path, text, force=force, private=False)
    stored = [folder / "results.parquet", folder / "results.csv"]
    for path in stored:
        save_results(results, path, force=force)
    return [*texts, *stored]


def check_report_folder(folder: Path, *, force: bool) -> None:
    """Raise, before a long computation, if a report cannot be written to a folder, which need not exist yet.

    Parameters
    ----------
    folder : pathlib.Path
        Folder of the report.
    force : bool
        Whether to overwrite existing files.

    Raises
    ------
    OSError
        If the folder is a file or is not writable, or a file of the report exists and `force` is False.
    """
    existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not existing.is_dir():
        raise NotADirectoryError(f"{str(existing)!r} is a file. Pass a folder, existing or new.")
    try:
        with tempfile.TemporaryDirectory(dir=existing):
            pass
    except OSError as error:
        raise type(error)(f"The folder {str(existing)!r} is not writable. Pass another one.") from error
    if folder.is_dir():
        for path in (*sorted(folder.glob("table_*.csv")), *(folder / name for name in _FILES)):
            check_target(path, force=force)


def _file_name(name: str, number: int, paper: Paper) -> str:
    """Return the file of a table: the paper's ones have their numbers, others follow."""
    return f"table_{_ROMAN[name.removeprefix('Table ')] if name in paper.tables else number}.csv"


def read_tables(folder: Path, results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Read the paper's tables that `write_report` wrote beside the results.

    Raises
    ------
    ValueError, OSError
        If a table does not exist or holds something else.
    """
    paper = paper_of(results)
    return {name: _read_table(folder / _file_name(name, 0, paper)) for name in paper.tables}


def _read_table(path: Path) -> pd.DataFrame:
    kinds = dict.fromkeys(_TABLE_TEXTS, "str") | dict.fromkeys(_TABLE_NUMBERS, "float64")
    missing = {name: [""] for name in _TABLE_NUMBERS}
    try:
        table = pd.read_csv(path, keep_default_na=False, na_values=missing, dtype=kinds)
    except ValueError as error:  # of pandas, and of bytes that are no text
        raise ValueError(f"The file {str(path)!r} holds no table that Reproduction.save wrote.") from error
    if not is_table(table, texts=_TABLE_TEXTS, numbers=_TABLE_NUMBERS):
        raise ValueError(f"The file {str(path)!r} holds no table that Reproduction.save wrote.")
    return table


def as_markdown(tables: dict[str, pd.DataFrame], results: pd.DataFrame) -> str:
    """Return the tables and their provenance as Markdown."""
    paper = paper_of(results)
    about = (textwrap.fill(text, 120) for text in (paper.about, _provenance(results.attrs)))
    parts = [f"# {paper.heading}", *about]
    for name, table in tables.items():
        parts += [f"## {_heading(name, table, paper)}", _NOTES.get(name, ""), to_markdown(side_by_side([table]))]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_html(tables: dict[str, pd.DataFrame], results: pd.DataFrame) -> str:
    """Return the tables and figures as one self-contained HTML page."""
    paper = paper_of(results)
    parts = [f"<h1>{html.escape(paper.heading, quote=False)}</h1><p>{html.escape(paper.about)}</p>"]
    for name, table in tables.items():
        note = f"<p>{html.escape(_NOTES[name])}</p>" if name in _NOTES else ""
        parts.append(f"<h2>{html.escape(_heading(name, table, paper))}</h2>{note}{_html_table(table)}")
        if name in paper.drawn:
            parts += [
                _figure(beside_paper(rows, label=paper.drawn[name]), title=dataset)
                for dataset, rows in _by_dataset(table)
            ]
    if paper.utility:
        parts.append("<h2>Privacy and utility</h2><p>Lower left is better. Labels are ε.</p>")
        for dataset, rows in _by_dataset(results):
            parts += [_figure(trade_off(rows, utility=utility), title=dataset) for utility in paper.utility]
    parts.append(f'<p class="faint">{html.escape(_provenance(results.attrs))}</p>')
    return page(paper.heading, "\n".join(parts))


def side_by_side(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return tables of the same values as one table to read: for each data set the paper's value, ours, and the ratio.

    Values of guessing follow where a table has them.

    Parameters
    ----------
    tables : sequence of pandas.DataFrame
        Such as Table II of a `Reproduction`, or what `table_2` returns. If two have the same data set and row, the
        later one counts.

    Returns
    -------
    pandas.DataFrame
        Text, indexed by row; raw data and the mechanisms of the paper come first, in its order.

    Raises
    ------
    TypeError
        If it is no list of such tables.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> table = pg.paper.table_1({"city": pg.make_city(users=2, days=1)})
    >>> pg.paper.side_by_side([table]).columns.tolist()
    ['city: ours']
    """
    if (
        not isinstance(tables, Sequence)
        or len(tables) == 0
        or not all(is_table(each, texts=_TABLE_TEXTS[:2], numbers=_TABLE_NUMBERS) for each in tables)
    ):
        rule = "a list of one or more tables, as pg.paper.table_2 returns them"
        raise TypeError(invalid("tables", "side_by_side", rule, tables))
    table = pd.concat(tables, ignore_index=True)
    order = {row.label: place for place, row in enumerate((RAW, *ROWS, *RECOMMENDED))}
    labels = sorted(dict.fromkeys(table.row), key=lambda label: order.get(label, len(order)))
    columns: list[pd.Series] = []
    for dataset, group in _by_dataset(table):
        rows = group.drop_duplicates("row", keep="last").set_index("row")
        ours = pd.Series(list(map(format_mean, rows.ours, rows.spread)), rows.index)
        if rows.paper.notna().any():
            columns.append(rows.paper.map(format_value).rename(f"{dataset}: paper"))
            columns += [ours.rename("ours"), rows.ratio.map(_ratio).rename("ratio")]
        else:
            columns.append(ours.rename(f"{dataset}: ours"))
        if "guess" in rows and rows.guess.notna().any():
            columns.append(rows.guess.map(format_value).rename("guessing"))
    texts = [column.reindex(labels, fill_value="–").astype("str") for column in columns]
    return pd.concat(texts, axis=1).rename_axis(None) if texts else pd.DataFrame()


def format_value(value: float) -> str:
    """Return a value as text, with as many digits as are useful."""
    if math.isnan(value):
        return "–"
    if value and abs(value) < 1e-6:  # a rounding error of points on the path
        return "0"
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"


def format_mean(mean: float, spread: float) -> str:
    """Return a mean ± its standard deviation as text, both with the same digits after the point.

    There are as many as are useful in the mean, but no more than show two significant digits of the deviation. A
    deviation of zero or NaN is left out.
    """
    if math.isnan(mean) or not spread > 0:
        return format_value(mean)
    size = max(abs(mean), spread)
    useful = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 1 else 2 - math.floor(math.log10(size))
    digits = max(min(useful, 1 - math.floor(math.log10(spread))), 0)
    deviation = f"{spread:,.{digits}f}"
    least = f"< {10**-digits:.{digits}f}"
    return f"{mean:,.{digits}f} ± {deviation if float(deviation.replace(',', '')) else least}"


def _heading(name: str, table: pd.DataFrame, paper: Paper) -> str:
    title = paper.tables.get(name) or _TITLES.get(name)
    return f"{name}. {title}" if title else f"{name} ({table.unit.iloc[0]})"


def to_markdown(table: pd.DataFrame) -> str:
    """Return a table of text with its index as Markdown."""
    rows = [["", *table.columns], ["---"] + ["---:"] * len(table.columns), *table.reset_index().to_numpy().tolist()]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


def _html_table(table: pd.DataFrame) -> str:
    with pd.option_context("display.max_colwidth", None):
        return f'<div class="wide">{side_by_side([table]).to_html(border=0)}</div>'


def _figure(axes: Axes, *, title: str) -> str:
    axes.set_title(title, parse_math=False)
    text = io.StringIO()
    axes.figure.savefig(text, format="svg", metadata={"Date": None})  # type: ignore[union-attr]
    return f"<figure>{text.getvalue()[text.getvalue().index('<svg') :]}</figure>"


def _by_dataset(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    return ((str(name), rows) for name, rows in table.groupby("dataset", sort=False))


def _provenance(about: Mapping[Any, Any]) -> str:
    """Return the provenance as text; empty for results read from CSV, which have none."""
    if "datasets" not in about:
        return ""
    data = "; ".join(
        f"{name}: {sizes['records']:,} records of {sizes['traces']:,} traces, fingerprint {sizes['fingerprint']}"
        for name, sizes in about["datasets"].items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    seeds = ", ".join(map(str, about["seeds"]))
    return f"Made on {about['date']} ({about['machine']}) with {versions}. Seeds {seeds}. {data}."


def _ratio(ratio: float) -> str:
    return "–" if math.isnan(ratio) else decimal(ratio)
