"""The notebooks run from top to bottom without warnings and are committed with their outputs."""

import os
import re

import pytest
from conftest import COMPILED

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("nbclient", reason="nbclient is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

from jupyter_core.utils import run_sync  # noqa: E402

from notebooks import LARGEST_FILE, NOTEBOOKS, KernelManager, answers, faults, pages, pictures, run  # noqa: E402

ORDER = (
    *("01_overview", "02_datasets", "03_poi_privacy", "04_spatial_error", "05_range_queries"),
    *("06_execution_time_and_compression", "07_wait_for_me", "08_stronger_attacks", "09_your_own_data"),
    *("10_your_own_mechanism", "11_homes_and_ends", "12_a_study_of_your_own"),
)
WITH_EXERCISES = ("01_overview", "03_poi_privacy", "08_stronger_attacks")
# Cities have fewer users and days than those with which the notebooks are committed.
SMALLER = """
import promesse_geo as pg, promesse_geo.paper
pg.paper.example_data.__kwdefaults__.update(users=20, days=2)
pg.make_city = lambda users=50, days=7, make=pg.make_city, **named: make(min(users, 20), min(days, 3), **named)
"""
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def test_all_notebooks_exist():
    assert tuple(path.stem for path in NOTEBOOKS) == ORDER


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return an empty folder, in which the kernel runs."""
    return tmp_path_factory.mktemp("alone")


@pytest.fixture(scope="module")
def kernel(folder):
    """Return a kernel for all notebooks, because its imports take longer than most of them.

    Cities are smaller, and one thread computes, for others run tests.
    """
    manager = KernelManager(kernel_name="python3")
    left_out = ("PROMESSE_CABSPOTTING", "PROMESSE_DATA")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    run_sync(manager.start_kernel)(
        cwd=str(folder),
        env=environment | {"NUMBA_NUM_THREADS": "1"},
        extra_arguments=[f"--IPKernelApp.exec_lines={line}" for line in SMALLER.splitlines()],
    )
    yield manager
    run_sync(manager.shutdown_kernel)(now=True)


@each_notebook
@pytest.mark.skipif(not COMPILED, reason="run once, with compiled loops")
def test_it_and_its_answers_run_from_top_to_bottom_without_other_files(path, kernel, folder):
    notebook = run(path, kernel, folder=folder, with_answers=True)
    assert faults(path, notebook) == []
    assert len(pages(notebook)) == len(pictures(path))


@each_notebook
def test_it_is_committed_with_its_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    assert faults(path, notebook) == []
    assert len(pages(notebook)) == len(pictures(path))
    for picture in pictures(path):
        assert 0 < picture.stat().st_size < LARGEST_FILE
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert re.match(rf"# {int(path.stem[:2])}\. ", text)
    assert sum(len(answers(cell)) for cell in notebook.cells) >= 3 * (path.stem in WITH_EXERCISES)


def test_faults_are_found():
    cells = [
        nbformat.v4.new_code_cell("def long():\n    pass", execution_count=1),
        nbformat.v4.new_code_cell("\n".join("pass" for _ in range(16)), execution_count=2),
        nbformat.v4.new_code_cell("pass"),
    ]
    output = {"output_type": "stream", "name": "stderr", "text": "/home/somebody/x.py: UserWarning"}
    cells[1].outputs = [nbformat.from_dict(output)]
    problems = faults(NOTEBOOKS[0], nbformat.v4.new_notebook(cells=cells))
    starts = ("does not begin", "defines", "long", "a cell has not", "writes to stderr", "shows a path")
    assert [fault.startswith(start) for fault, start in zip(problems, starts, strict=True)] == [True] * 6


def test_answers_are_the_folded_code():
    code = "```python\n{}\n```\n\n"
    text = f"Why?\n\n{code.format('shown()')}<details>\n\n{code.format('folded()')}</details>"
    assert answers(nbformat.v4.new_markdown_cell(text)) == ["folded()\n"]
    assert answers(nbformat.v4.new_code_cell(text)) == []
