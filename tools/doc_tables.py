"""Write the tables of `data/results` into the documentation: `python tools/doc_tables.py`."""

import math
import re

import pandas as pd
from readme import ROOT

import promesse_geo as pg
from promesse_geo import paper
from promesse_geo.io.registry import FORMATS
from promesse_geo.io.writers import WRITERS
from promesse_geo.paper.report import DRAWN, PAPER_TABLES, format_mean, format_value, to_markdown

RESULTS = ROOT / "data" / "results"
PAGES = [
    ROOT / "docs" / name for name in ("reproduction.md", "most2014.md", "formats.md", "explanation/threat_model.md")
]
PEOPLE = {
    "End retrieval": "ends within 100 m",
    "Heat-map re-identification": "footprints",
    "Heat-map re-identification with protected knowledge": "footprints, protected knowledge",
    "Linkage": "parts linked",
    "Unicity": "unique by 4 points",
}
"""Columns of the table of attacks on people, by the name of the table."""


def with_tables(text: str) -> str:
    """Return a page's text with the tables from `data/results` between its marks."""
    tables = paper.Reproduction.load(RESULTS / "cabspotting").tables
    dataset = "Cabspotting"
    made = {
        "tables": summary(tables, dataset),
        "attacks": beyond_summary(tables, dataset),
        "people": people_summary(tables, dataset),
        "most2014": second_paper(),
        "formats": format_table(),
        "remarks": format_remarks(),
    }
    for name, table in made.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        text = re.sub(f"{begin}.*{end}", lambda _, new=begin + table + "\n" + end: new, text, flags=re.DOTALL)
    return text


def summary(tables: dict[str, pd.DataFrame], dataset: str) -> str:
    """Return Tables I to VI of one data set as two short Markdown tables, with the paper's values in brackets."""
    by_name = {name: table[table.dataset == dataset].set_index("row") for name, table in tables.items()}
    sizes, times = with_paper(by_name["Table I"]), with_paper(by_name["Table V"])
    head = pd.concat([sizes, times.add_suffix(": protecting and writing as text (s)")])
    values = {f"{label} ({by_name[name].unit.iloc[0]})": with_paper(by_name[name]) for name, label in DRAWN.items()}
    return to_markdown(head.to_frame(f"{dataset} (paper)")) + "\n\n" + to_markdown(pd.DataFrame(values))


def beyond_summary(tables: dict[str, pd.DataFrame], dataset: str) -> str:
    """Return the other metrics that the paper does not have beside its own attack, for one data set, as Markdown."""
    names = {name: name for name in tables if name not in PAPER_TABLES and name not in PEOPLE}
    return _columns(tables, {"Table II": "paper's attack"} | names, dataset)


def people_summary(tables: dict[str, pd.DataFrame], dataset: str) -> str:
    """Return the attacks on people for one data set as Markdown, with guessing in brackets."""
    return _columns(tables, PEOPLE, dataset)


def second_paper() -> str:
    """Return the tables of the second paper, each below its name, from its report."""
    report = (RESULTS / "most2014" / "report.md").read_text(encoding="utf-8")
    return report[report.index("## Table") :].strip()


def format_table() -> str:
    """Return the table of all formats as Markdown, from the registry."""
    rows = [("Format", "Name", "Extension", "Reader", "Library", "Writer"), ("---",) * 6]
    last = {pattern: format.name for format in FORMATS.values() for pattern in format.files}  # the most general
    for format in FORMATS.values():
        reader = getattr(format.read, "__name__", "")
        reader = reader if reader in pg.__all__ else "read_file"
        written = ", ".join(f"`{ending}`" for ending in WRITERS if last.get(f"*{ending}") == format.name)
        files = ", ".join(f"`{pattern}`" for pattern in format.files)
        writer = f"`write` ({written})" if written else "–"
        rows.append((format.label, f"`{format.name}`", files, f"`{reader}`", format.library, writer))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def format_remarks() -> str:
    """Return what the formats read and leave out as Markdown, from the registry."""
    described = [format for format in FORMATS.values() if format.remarks]
    return "\n\n".join(f"**{format.label}.** {format.remarks.strip()}" for format in described)


def _columns(tables: dict[str, pd.DataFrame], titles: dict[str, str], dataset: str) -> str:
    """Return tables as the columns of one, without the rows of pseudocode."""
    columns = {}
    for name, title in titles.items():
        table = tables[name][tables[name].dataset == dataset].set_index("row")
        in_brackets = table.get("guess", pd.Series(math.nan, table.index))
        columns[f"{title} ({table.unit.iloc[0]})"] = with_paper(table.assign(paper=in_brackets))
    longest = max(columns.values(), key=len)
    rows = [row for row in longest.index if "pseudocode" not in row]
    return to_markdown(pd.DataFrame(columns).reindex(rows).fillna("–"))


def with_paper(table: pd.DataFrame) -> pd.Series:
    """Return ours as text, with the column `paper` in brackets."""
    theirs = table.paper.map(lambda value: "" if math.isnan(value) else f" ({format_value(value)})")
    return pd.Series(list(map(format_mean, table.ours, table.spread)), table.index) + theirs


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
