"""Run and check the notebooks; `python tools/notebooks.py [number ...]` writes them with their outputs.

Writing needs a browser: a picture of each map is saved for pages that cannot show maps. Pictures and the answers of
exercises are folded, in `<details>`.
"""

import html
import itertools
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from browser import Browser, find_browser
from jupyter_client import AsyncKernelManager as KernelManager
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
WITH_DEFINITIONS = "10_your_own_mechanism"
LONGEST_CELL = 15
LARGEST_FILE = 500_000
_FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
_CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MAP = re.compile(r'<iframe srcdoc="(.*?)"', re.DOTALL)
_CHOOSES = re.compile(r"\bif\b.*\.name\b|os\.environ")
_HERE = (str(Path.home()), tempfile.gettempdir(), str(FOLDER.parent), "/home/", "/Users/")
_LOCAL_PATHS = re.compile("|".join([*map(re.escape, _HERE), r"[A-Z]:\\\\"]))


def answers(cell: nbformat.NotebookNode) -> list[str]:
    """Return the code of the answers that are folded in a cell of text."""
    folded = _FOLDED.findall(cell.source) if cell.cell_type == "markdown" else []
    return [code for text in folded for code in _CODE.findall(text)]


def run(
    path: Path, kernel: KernelManager | None = None, *, folder: Path | None = None, with_answers: bool = False
) -> nbformat.NotebookNode:
    """Run a notebook from top to bottom in its folder, or in another one, and return it with its outputs.

    A kernel that is given is started if it does not run, loses all its names before the notebook, and is kept.
    Answers, if they are run, become cells of code.
    """
    notebook = nbformat.read(path, as_version=4)
    if with_answers:
        solved = [[cell, *map(nbformat.v4.new_code_cell, answers(cell))] for cell in notebook.cells]
        notebook.cells = list(itertools.chain.from_iterable(solved))
    if kernel is not None:
        notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
    place = {"metadata": {"path": str(folder or path.parent)}}
    client = NotebookClient(notebook, km=kernel, timeout=240, record_timing=False, resources=place)
    done = client.execute()
    if kernel is not None:
        client.kc.stop_channels()
        del done.cells[0]
    for cell in (cell for cell in done.cells if cell.cell_type == "code"):
        kept = [output for output in cell.outputs if not output.get("text", "").startswith("Compiling loops")]
        cell.outputs = kept  # loops that are compiled for the first time say so
    return done


def small_notebook() -> nbformat.NotebookNode:
    """Return a notebook that protects a small data set and draws a map."""
    cell, kernel = nbformat.v4.new_code_cell, {"name": "python3", "display_name": "Python 3", "language": "python"}
    read = ["import promesse_geo as pg", "", 'original = pg.make_city(users=5, days=1, seed=4, recorder="phone")']
    cells = [cell("\n".join([*read, "safe = original.promesse.smooth(200)"])), cell("original.promesse.map(safe)")]
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def faults(path: Path, notebook: nbformat.NotebookNode) -> list[str]:
    """Return the faults of a notebook with outputs, one text each."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    problems = [] if notebook.cells[0].cell_type == "markdown" else ["does not begin with text"]
    if path.stem != WITH_DEFINITIONS:
        problems += [f"defines: {cell.source}" for cell in cells if re.search(r"^\s*(def|class) ", cell.source, re.M)]
        problems += [f"long: {cell.source}" for cell in cells if len(cell.source.splitlines()) > LONGEST_CELL]
    problems += [f"depends on the data: {each.source}" for each in cells if _CHOOSES.search(each.source)]
    problems += ["a cell has not been run" for cell in cells if cell.execution_count is None]
    for output in (output for cell in cells for output in cell.outputs):
        shown = "" if output.output_type == "error" else output.get("text") or output.data.get("text/plain", "")
        if output.output_type == "error" or output.get("name") == "stderr":
            problems.append(f"writes to stderr: {output.get('evalue') or output.text}")
        if path_shown := _LOCAL_PATHS.search(shown + output.get("data", {}).get("text/html", "")):
            problems.append(f"shows a path of this machine: {path_shown[0]}")
    size = len(nbformat.writes(notebook).encode())
    return problems + ([f"is large: {size:,} bytes"] if size >= LARGEST_FILE else [])


def pages(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the maps in a notebook's outputs as HTML pages."""
    shown = [
        output.get("data", {}).get("text/html", "") for cell in notebook.cells for output in cell.get("outputs", [])
    ]
    return [html.unescape(page) for each in shown for page in _MAP.findall(each)]


def pictures(path: Path) -> list[Path]:
    """Return the picture files of its maps that a notebook shows, folded."""
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    folded = "\n".join(_FOLDED.findall(text))
    return [path.parent / picture for picture in re.findall(r"!\[[^]]*]\((pictures/[^)]+)\)", folded)]


def _write_pictures(path: Path, notebook: nbformat.NotebookNode) -> None:
    with tempfile.TemporaryDirectory() as folder, Browser(find_browser() or "chromium", Path(folder)) as browser:
        for page, picture in zip(pages(notebook), pictures(path), strict=True):
            file = Path(folder) / "map.html"
            file.write_text(page, encoding="utf-8")
            browser.open(file, width=720, height=440)  # as wide as it is shown, so that its texts can be read
            browser.settle()
            picture.parent.mkdir(exist_ok=True)
            picture.write_bytes(browser.picture())


def main(numbers: list[str]) -> None:
    """Run notebooks and write them with their outputs."""
    for path in NOTEBOOKS:
        if not numbers or path.stem[:2] in numbers:
            notebook = run(path)
            nbformat.write(notebook, path)
            _write_pictures(path, notebook)
            sys.stdout.write("\n".join([path.name, *faults(path, notebook)]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
