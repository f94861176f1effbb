"""The API pages name everything public, once, and everything public has an example that runs."""

import re
from pathlib import Path

import pytest

import promesse_geo as pg

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.rst"))
SHOWN_BY = {"load_results": "save_results"}  # an example goes there and back

every_name = pytest.mark.parametrize("name", pg.__all__)


def listed(page: Path) -> list[str]:
    """Names that a page lists in its tables or describes itself, as they are seen from `promesse_geo`."""
    names, module, in_table = [], "", False
    for line in page.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. (currentmodule|autoclass|autofunction|autosummary):: *(.*)", line):
            directive, name = found.groups()
            module = name if directive == "currentmodule" else module
            in_table = directive == "autosummary"
            names += [f"{module}.{name}"] if directive.startswith(("autoc", "autof")) else []
        elif in_table and re.fullmatch(r"   [\w.]+", line):
            names.append(f"{module}.{line.strip()}")
        elif line and not line.startswith(" "):
            in_table = False
    return names


@every_name
def test_a_public_name_stands_on_one_page(name):
    assert sum(listed(page).count(f"promesse_geo.{name}") for page in PAGES) == 1


def test_every_page_is_in_the_index():
    index = next(page for page in PAGES if page.stem == "index").read_text(encoding="utf-8")
    assert {page.stem for page in PAGES} - {"index"} == set(re.findall(r"^   (\w+)$", index, re.MULTILINE))


@every_name
def test_a_public_name_has_an_example(name):
    assert ">>> " in getattr(pg, SHOWN_BY.get(name, name)).__doc__


def test_what_is_cited_is_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {pg.__version__}\n" in citation


def test_files_that_contributors_are_sent_to_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:promesse_geo|tests|docs|data|\.ci)/[\w./]*\w/?|[A-Z]+\.md)`", text)) - {"docs/_build"}
    assert len(named) > 10
    assert {name for name in named if not (ROOT / name).exists()} == set()
