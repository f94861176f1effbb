"""The API pages list every public name once, and every public name has an example that runs."""

import inspect
import math
import pkgutil
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import promesse_geo as pg

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.rst"))
MADE = {"names", "_build", "notebooks", "templates"}  # folders of docs whose pages are generated
SHOWN_BY = {"load_results": "save_results"}  # one example shows both

every_name = pytest.mark.parametrize("name", [name for name in pg.__all__ if name not in ("paper", "plot")])


def listed(page: Path) -> list[str]:
    """Return the full names that a page lists in tables or documents."""
    names, module, in_table = [], "", False
    for line in page.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"\.\. (currentmodule|autoclass|autofunction|autosummary):: *(.*)", line):
            directive, name = match.groups()
            module = name if directive == "currentmodule" else module
            in_table = directive == "autosummary"
            names += [f"{module}.{name}"] if directive.startswith(("autoc", "autof")) else []
        elif in_table and re.fullmatch(r"   [\w.]+", line):
            names.append(f"{module}.{line.strip()}")
        elif line and not line.startswith(" "):
            in_table = False
    return names


@every_name
def test_a_public_name_is_on_one_page(name):
    assert sum(listed(page).count(f"promesse_geo.{name}") for page in PAGES) == 1


def test_every_page_is_in_the_index():
    docs = ROOT / "docs"
    files = [page.relative_to(docs) for kind in ("rst", "md") for page in docs.rglob(f"*.{kind}")]
    pages = {page.with_suffix("").as_posix() for page in files if page.parts[0] not in MADE}
    listed = set()
    for page in docs.rglob("*.md"):
        for tree in re.findall(r"^```{toctree}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / entry).resolve().relative_to(docs).as_posix() for entry in entries}
    assert pages == listed - {"notebooks/*"} | {"index"}


@every_name
def test_a_public_name_has_an_example(name):
    assert ">>> " in getattr(pg, SHOWN_BY.get(name, name)).__doc__


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {pg.__version__}\n" in citation
    assert project["version"] == pg.__version__
    assert re.search(rf"^## \[{re.escape(pg.__version__)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)


def test_files_that_contributing_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    path = r"`(?:python )?((?:promesse_geo|tests|tools|docs|data|\.ci)/[\w./]*\w/?|[A-Z]+\.md)"
    named = set(re.findall(path + r"[`\s]", text)) - {"docs/_build"}
    assert len(named) > 10
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_contributing_names_every_package():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    modules = pkgutil.iter_modules(pg.__path__)
    paths = [f"`promesse_geo/{each.name}{'/' if each.ispkg else '.py'}`" for each in modules if each.name[0] != "_"]
    table = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    assert [path for path in paths if not any(path in cell for cell in table)] == []


def test_the_metric_of_the_how_to_is_undefined_for_empty_data():
    text = (ROOT / "docs" / "howto" / "extend.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2]:
        exec(code, names)
    city = pg.make_city(users=3, days=1)
    metric = names["Dropped"]()
    assert metric.measure(city, city[city["user"] != "user-001"]) == 1
    assert math.isnan(metric.measure(city.iloc[:0], city.iloc[:0]))


@pytest.mark.parametrize("name", [name for name in pg.__all__ if isinstance(getattr(pg, name), type)])
def test_a_property_is_described_without_a_colon(name):  # which the pages would take for the end of a type
    members = inspect.getmembers(getattr(pg, name), lambda member: isinstance(member, property))
    assert [each for each, member in members if ": " in (member.__doc__ or "").split("\n\n")[0]] == []
