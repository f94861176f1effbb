"""The README's code runs."""

import re

import pytest
from readme import README, commands

PYTHON = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.filterwarnings("default")
def test_the_python_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in PYTHON:
        if "cabspotting" not in block:
            exec(compile(block, str(README), "exec"), names)
    assert (tmp_path / "safe.parquet").exists()


@pytest.mark.real
def test_the_table_of_the_real_data_is_what_the_code_gives(cabspotting_archive, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cabspottingdata.tar.gz").symlink_to(cabspotting_archive)
    block = next(block for block in PYTHON if "cabspotting" in block)
    names = {}
    with pytest.warns(UserWarning, match="74 users"):
        exec(
            compile(
                "import promesse_geo as pg\n" + block.replace("pg.describe", "figures = pg.describe"), "README", "exec"
            ),
            names,
        )
    figures = names["figures"]
    row = dict(re.findall(r"^\| (\w[\w ]+) \| [^|]+ \| ([^|]+) \|$", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert row["records"] == f"{figures['records']:,}"
    assert row["traces"] == f"{figures['traces']:,}"
    hours, rest = divmod(figures["mean_duration"].total_seconds(), 3600)
    assert row["mean duration"] == f"{hours:.0f} h {rest / 60:.0f} min"
    assert row["longest duration"] == f"{figures['longest_duration'].total_seconds() / 86400:.1f} days"
    assert row["sampling interval"] == f"{figures['sampling_interval'].total_seconds():.1f} s"


def test_the_readme_names_two_commands():
    assert "promesse-geo demo" in commands()["demo"]
    assert "pytest" in commands()["tests"]
