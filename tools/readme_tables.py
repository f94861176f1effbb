"""Write the tables of data/results/cabspotting into the README: `python tools/readme_tables.py`."""

import re

from readme import README

from promesse_geo import paper
from promesse_geo.paper.report import beyond_summary, summary

RESULTS = README.parent / "data" / "results" / "cabspotting"


def with_tables(text: str) -> str:
    """Return the README's text with the tables from `data/results`."""
    tables = paper.Reproduction.load(RESULTS).tables
    for name, table in (
        ("tables", summary(tables, "Cabspotting")),
        ("attacks", beyond_summary(tables, "Cabspotting")),
    ):
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        text = re.sub(f"{begin}.*{end}", lambda _, new=begin + table + end: new, text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
