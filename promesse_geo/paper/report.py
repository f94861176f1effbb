"""The tables as files: CSV, Markdown, and one HTML page that stands alone."""

import html
import io
import math
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from promesse_geo.evaluation import save_results
from promesse_geo.io.output import check_place, renamed_when_whole
from promesse_geo.paper import published
from promesse_geo.plot.comparisons import beside_paper, trade_off

TITLES = {
    "Table I": "The data sets, prepared",
    "Table II": "F-scores of the retrieval of points of interest (%; 0 is best for the users)",
    "Table III": "Spatial errors (m; 0 is best for the analyst)",
    "Table IV": "Range query distortions (%; 0 is best for the analyst)",
    "Table V": "Execution times: protecting and writing as text (s)",
    "Table VI": "Compression degrees (protected records in % of the original ones)",
    "Adaptive attack": "F-scores of an attacker who averages noise away (%; 0 is best for the users)",
    "Residue attack": "F-scores of an attacker who knows what smoothing leaves (%; 0 is best for the users)",
    "Re-identification": "Users recognised by where they used to stay (%; 0 is best for the users)",
    "Area coverage": "F-scores of visited cells of 200 m (%; 100 is best for the analyst)",
}

_WHAT = {
    "Adaptive attack": "It estimates the noise from the protected data alone, widens its diameter and averages.",
    "Residue attack": "It looks in smoothed paths for loops, there-and-back and ends; it means nothing for others.",
    "Re-identification": "It knows where users stayed in the first half, and is given the second one, protected.",
    "Area coverage": "No attack: how much of the cells that each user visited stays the same.",
}

_DRAWN = {"Table II": "F-score", "Table III": "spatial error", "Table IV": "distortion", "Table VI": "compression"}

_OTHERS = ("report.md", "report.html", "results.parquet", "results.csv")

_MISSING = {name: [""] for name in ("paper", "ours", "spread", "ratio")}

_STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #ccc; --faint: #595959; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #16181c; --line: #444; --faint: #a8a8a8; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid var(--line); }
.faint { color: var(--faint); font-size: .9rem; }
figure { margin: 1rem 0; background: #fff; border-radius: 4px; padding: .5rem; display: inline-block; max-width: 100%; }
figure svg { max-width: 100%; height: auto; }
"""

_ABOUT = (
    "Ours is the mean over seeds ± its standard deviation; where the paper has a figure, the ratio is ours to it. "
    "The paper: Primault, Ben "
    "Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data with High Utility. "
    "TrustCom 2015. It does not say which reading of its algorithm it measured; its spatial error of 0 m belongs to "
    "points interpolated on the path, which is what rows without a remark are."
)


def write_report(tables: dict[str, pd.DataFrame], results: pd.DataFrame, folder: Path, *, force: bool) -> list[Path]:
    """Write everything to a folder; return what was written."""
    check_report_folder(folder, force=force)
    folder.mkdir(parents=True, exist_ok=True)
    texts: dict[Path, str] = {
        folder / f"table_{number}.csv": table.to_csv(index=False, lineterminator="\n")
        for number, table in enumerate(tables.values(), start=1)
    }
    texts[folder / "report.md"] = as_markdown(tables, results)
    texts[folder / "report.html"] = as_html(tables, results)
    for path, text in texts.items():
        with renamed_when_whole(path, force=force) as temporary:
            temporary.write_text(text, encoding="utf-8")
    stored = [folder / "results.parquet", folder / "results.csv"]
    for path in stored:
        save_results(results, path, force=force)
    return [*texts, *stored]


def check_report_folder(folder: Path, *, force: bool) -> None:
    """Say before long work why a report cannot be written to a folder, which may not be there yet."""
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{str(there)!r} is a file. Name a folder, or one to be made.")
    try:
        with tempfile.TemporaryDirectory(dir=there):
            pass
    except OSError as error:
        raise type(error)(f"Nothing can be written to the folder {str(there)!r}. Name another one.") from error
    if folder.is_dir():
        for name in (*(f"table_{number}.csv" for number in range(1, len(TITLES) + 1)), *_OTHERS):
            check_place(folder / name, force=force)


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Read the tables that `write_report` wrote."""
    return {
        name: pd.read_csv(path, keep_default_na=False, na_values=_MISSING)
        for number, name in enumerate(TITLES, start=1)
        if (path := folder / f"table_{number}.csv").exists() or number == 1
    }


def as_markdown(tables: dict[str, pd.DataFrame], results: pd.DataFrame) -> str:
    """Return the tables as Markdown, with how they came about."""
    parts = ["# The paper's experiment, repeated", _wrapped(_ABOUT), _wrapped(_provenance(results.attrs))]
    for name, table in tables.items():
        parts += [f"## {name}. {TITLES[name]}", *([_WHAT[name]] if name in _WHAT else []), _markdown(cells(table))]
    return "\n\n".join(parts) + "\n"


def as_html(tables: dict[str, pd.DataFrame], results: pd.DataFrame) -> str:
    """Return one page with tables and figures that needs nothing else."""
    parts = [f"<h1>The paper's experiment, repeated</h1><p>{html.escape(_ABOUT)}</p>"]
    for name, table in tables.items():
        what = f"<p>{html.escape(_WHAT[name])}</p>" if name in _WHAT else ""
        parts.append(f"<h2>{name}. {html.escape(TITLES[name])}</h2>{what}{_html_table(table)}")
        if name in _DRAWN:
            parts += [
                _figure(beside_paper(own, label=_DRAWN[name]), title=dataset) for dataset, own in _by_dataset(table)
            ]
    parts.append("<h2>Privacy against utility</h2><p>Down and left is better. Labels are ε.</p>")
    for dataset, own in _by_dataset(results):
        for utility in ("RangeQueryDistortion", "SpatialError"):
            parts.append(_figure(trade_off(own, utility=utility), title=dataset))
    parts.append(f'<p class="faint">{html.escape(_provenance(results.attrs))}</p>')
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The paper's experiment, repeated</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def cells(table: pd.DataFrame) -> list[list[str]]:
    """Return a table as text, first line first: for each data set the paper's figure, ours, and the ratio."""
    datasets = list(dict.fromkeys(table.dataset))
    with_paper = [name for name in datasets if table.paper[table.dataset == name].notna().any()]
    head = [""]
    for name in datasets:
        head += [f"{name}: paper", "ours", "ratio"] if name in with_paper else [f"{name}: ours"]
    body = []
    by_place = {(row.dataset, row.row): row for row in table.itertuples()}
    for label in dict.fromkeys(table.row):
        line = [str(label)]
        for name in datasets:
            line += _cell(by_place.get((name, label)), with_paper=name in with_paper)
        body.append(line)
    return [head, *body]


def side_by_side(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return tables of the same figures as one to read: for each data set the paper's figure, ours, and the ratio.

    Parameters
    ----------
    tables : sequence of pandas.DataFrame
        Such as Table II of a `Reproduction`, or what `table_2` makes. Where two have the same data set and row, the
        later one is taken.

    Returns
    -------
    pandas.DataFrame
        Text, a row of the tables each; mechanisms of the paper in its order.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> from promesse_geo.paper import side_by_side, table_1
    >>> side_by_side([table_1({"city": pg.make_city(users=2, days=1)})]).columns.tolist()
    ['city: ours']
    """
    places = {row.label: place for place, row in enumerate(published.ROWS)}
    (_, *columns), *rows = cells(pd.concat(tables, ignore_index=True))
    rows.sort(key=lambda row: places.get(row[0], len(places)))
    return pd.DataFrame([row[1:] for row in rows], index=[row[0] for row in rows], columns=columns)


def summary(tables: dict[str, pd.DataFrame], dataset: str) -> str:
    """Return Tables I and II to VI of one data set as two short Markdown tables; the paper's figures in brackets."""
    own = {name: table[table.dataset == dataset].set_index("row") for name, table in tables.items()}
    sizes = [(row, _with_paper(own["Table I"], row)) for row in own["Table I"].index]
    sizes += [
        (f"{row}: protecting and writing as text (s)", _with_paper(own["Table V"], row)) for row in own["Table V"].index
    ]
    looks = ["Table II", "Table III", "Table IV", "Table VI"]
    head = [f"{_DRAWN[name]} ({own[name].unit.iloc[0]})" for name in looks]
    rows = [(row, *(_with_paper(own[name], row) for name in looks)) for row in own["Table II"].index]
    return _markdown([("", f"{dataset} (paper)"), *sizes]) + "\n\n" + _markdown([("", *head), *rows])


def beyond_summary(tables: dict[str, pd.DataFrame], dataset: str) -> str:
    """Return what stronger attacks find in one data set beside the paper's own attack, as a Markdown table."""
    names = {"Table II": "paper's attack", **{name: name for name in list(TITLES)[6:]}}
    own = {name: table[table.dataset == dataset].set_index("row") for name, table in tables.items() if name in names}
    labels = [row for row in own["Table II"].index if "pseudocode" not in row]
    rows = [
        (
            row,
            *(_with_paper(own[name].assign(paper=math.nan), row) if row in own[name].index else "–" for name in names),
        )
        for row in labels
    ]
    return _markdown([("", *(f"{title} (%)" for title in names.values())), *rows])


def _with_paper(table: pd.DataFrame, row: str) -> str:
    theirs, ours, spread = map(float, table.loc[row, ["paper", "ours", "spread"]].to_numpy(np.float64))
    around = f" ± {spread:.2g}" if spread > 0 else ""
    return f"{number(ours)}{around}" + ("" if math.isnan(theirs) else f" ({number(theirs)})")


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    rule = ["---"] + ["---:"] * (len(rows[0]) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:]))


def _cell(row: Any, *, with_paper: bool) -> list[str]:
    if row is None:
        return ["–"] * (3 if with_paper else 1)
    ours = number(row.ours) + (f" ± {row.spread:.2g}" if row.spread > 0 else "")
    ratio = "–" if math.isnan(row.ratio) else f"{row.ratio:.2f}"
    return [number(row.paper), ours, ratio] if with_paper else [ours]


def number(value: float) -> str:
    """Return a figure with as many digits as one reads."""
    if math.isnan(value):
        return "–"
    if value and abs(value) < 1e-6:  # a rounding error of the path's own points
        return "0"
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"


def _html_table(table: pd.DataFrame) -> str:
    head, *rows = cells(table)
    first = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table></div>'


def _figure(axes: Axes, *, title: str) -> str:
    axes.set_title(title, parse_math=False)
    text = io.StringIO()
    axes.figure.savefig(text, format="svg", metadata={"Date": None})  # type: ignore[union-attr]
    return f"<figure>{text.getvalue()[text.getvalue().index('<svg') :]}</figure>"


def _by_dataset(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    return [(name, table[table.dataset == name]) for name in dict.fromkeys(table.dataset)]


def _provenance(about: Mapping[Any, Any]) -> str:
    data = "; ".join(
        f"{name}: {figures['records']:,} records of {figures['traces']:,} traces, fingerprint {figures['fingerprint']}"
        for name, figures in about["datasets"].items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    seeds = ", ".join(map(str, about["seeds"]))
    return f"Made on {about['date']} ({about['machine']}) with {versions}. Seeds {seeds}. {data}."


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120)
