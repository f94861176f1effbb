"""The code of the README and of the documentation runs, page by page."""

import re
import shlex
import shutil

import matplotlib.pyplot as plt
import pytest
from click.testing import CliRunner
from doc_tables import PAGES as PAGES_WITH_TABLES
from doc_tables import with_tables
from readme import README, ROOT

import promesse_geo as pg
from promesse_geo.cli.commands import main

PAGES = {page.relative_to(ROOT).as_posix(): page for page in (README, *sorted((ROOT / "docs").rglob("*.md")))}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
RUN = {"python", "sh"}
SHOWN = {"console", "text"}  # installation, servers, files that are not here


@pytest.fixture(scope="module")
def tracks(tmp_path_factory):
    """Return the file that the pages call tracks.csv."""
    path = tmp_path_factory.mktemp("guide") / "tracks.csv"
    pg.write(pg.make_city(users=10, days=3), path)
    return path


def blocks(page):
    """Yield the language, the code and the number of lines before each block of a page."""
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        yield block[1], block[2], text.count("\n", 0, block.start(2))


WITH_CODE = [name for name, page in PAGES.items() if any(kind in RUN for kind, *_ in blocks(page))]


def run_commands(code):
    for line in filter(None, code.splitlines()):
        program, *arguments = shlex.split(line)
        assert program == "promesse-geo"
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    "name", [name for name, page in PAGES.items() if any(kind in RUN for kind, *_ in blocks(page))]
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:The inplace keyword:DeprecationWarning")
def test_the_code_of_a_page_runs_from_top_to_bottom(name, tracks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    if name != "docs/tutorial.md":  # which makes the file
        shutil.copy(tracks, tmp_path)
    for kind, code, before in blocks(PAGES[name]):
        if kind == "python":
            exec(compile("\n" * before + code, str(PAGES[name]), "exec"), names)
        elif kind == "sh" and PAGES[name] != README:
            run_commands(code)
    plt.close("all")


@pytest.mark.parametrize("name", PAGES)
def test_languages_of_code_say_whether_it_runs(name):
    assert {kind for kind, *_ in blocks(PAGES[name])} <= RUN | SHOWN


@pytest.mark.parametrize("page", PAGES_WITH_TABLES, ids=lambda page: page.stem)
def test_tables_of_pages_are_those_that_the_commands_wrote(page):
    text = page.read_text(encoding="utf-8")
    assert "<!-- end of " in text
    assert with_tables(text) == text


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").split()) <= 900


@pytest.mark.parametrize("name", PAGES)
def test_links_to_files_of_the_project_lead_somewhere(name):
    text = PAGES[name].read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    missing = [target for target in targets if not (PAGES[name].parent / target.split("#")[0]).exists()]
    assert not missing


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_readable_where_nothing_builds_them(name):
    text = re.sub(r"^```.*?^```", "", PAGES[name].read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"\{[\w:]+\}`", text) == []  # roles of Sphinx
