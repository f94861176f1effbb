"""The README's code runs."""

import re

import pandas as pd
import pytest
from readme import README, commands

from promesse_geo.paper import Reproduction, table_1

TEXT = README.read_text(encoding="utf-8")
PYTHON = {  # by the number of lines before each, so that what is told of a line names that of the README
    TEXT.count("\n", 0, block.start(1)): block[1] for block in re.finditer(r"```python\n(.*?)```", TEXT, re.DOTALL)
}


@pytest.mark.whole_city
@pytest.mark.filterwarnings("default")
def test_the_python_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for before, block in PYTHON.items():
        if "cabspotting" not in block:
            exec(compile("\n" * before + block, str(README), "exec"), names)
    assert (tmp_path / "safe.parquet").exists()


@pytest.mark.real
def test_the_table_of_the_real_data_is_what_the_code_gives(cabspotting_archive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cabspottingdata.tar.gz").symlink_to(cabspotting_archive)
    block = next(block for block in PYTHON.values() if "cabspotting" in block)
    names = {}
    with pytest.warns(UserWarning, match="74 users"):
        exec(
            compile("import promesse_geo as pg\n" + block, "README", "exec"),
            names,
        )
    kept = Reproduction.load(README.parent / "data" / "results" / "cabspotting").tables["Table I"]
    now = table_1({"Cabspotting": names["parts"]})
    pd.testing.assert_frame_equal(now.drop(columns="unit"), kept.drop(columns="unit"))


def test_the_readme_names_two_commands():
    assert "promesse-geo demo" in commands()["demo"]
    assert "pytest" in commands()["tests"]
