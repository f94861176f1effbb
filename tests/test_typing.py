"""Type checkers see the types of the public names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import promesse_geo as pg

pytest.importorskip("mypy", reason="mypy is not installed")

PACKAGE = Path(pg.__file__).parent
# Types of other packages are theirs to check, and reading them takes most of the time.
CONFIGURATION = """
[mypy]
ignore_missing_imports = true
[mypy-PIL.*,branca.*,click.*,cryptography.*,folium.*,jinja2.*,matplotlib.*,numpy.*,pandas.*,requests.*,sklearn.*]
follow_imports = skip
follow_imports_for_stubs = true
"""


def check(source: str, folder: Path) -> str:
    file = folder / "script.py"
    file.write_text(source, encoding="utf-8")
    (folder / "mypy.ini").write_text(CONFIGURATION, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", f"--cache-dir={os.devnull}", "--config-file=mypy.ini", str(file)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},  # found as an installed package, which needs py.typed
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout


def test_mypy_finds_wrong_types_in_a_users_script(tmp_path):
    lines = [
        "import promesse_geo as pg",
        "reveal_type(pg.Promesse(200))",
        'pg.Promesse("far")',
        "reveal_type(pg.make_city)",
        "reveal_type(pg.draw_map)",
        "reveal_type(pg.PoiExtractor)",
        "reveal_type(pg.plot.trade_off)",
        "reveal_type(pg.paper.example_data)",
    ]
    output = check("\n".join(lines), tmp_path)
    assert 'script.py:2: note: Revealed type is "promesse_geo.mechanisms.promesse.Promesse"' in output
    assert "script.py:3: error: Argument 1" in output
    assert '"Any"' not in output
    assert "found 1 error" in output.lower()
