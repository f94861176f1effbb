"""The commands measure, pois and reproduce: what they write, and what they never do to their inputs."""

import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli import main


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def files(tmp_path):
    """The paths of a city and of what became of it, each in a folder of its own."""
    city = pg.make_city(users=3, days=1, seed=1)
    for folder, data in (("before", city), ("after", city.promesse.smooth(100))):
        (tmp_path / folder).mkdir()
        pg.write(data, tmp_path / folder / "c.parquet")
    return tmp_path / "before" / "c.parquet", tmp_path / "after" / "c.parquet"


@pytest.mark.parametrize("by_link", [False, True])
def test_no_input_is_ever_written_over(files, tmp_path, by_link):
    city, safe = files
    before = [path.read_bytes() for path in files]
    over_city, over_safe = files
    if by_link:
        over_city, over_safe = tmp_path / "city.parquet", tmp_path / "safe.parquet"
        over_city.symlink_to(city)
        over_safe.symlink_to(safe)
    for words, name in (
        (("pois", city, over_city), "OUTPUT is INPUT itself"),
        (("measure", city, safe, "--out", over_city), "--out is INPUT itself"),
        (("measure", city, safe, "--out", over_safe), "--out is PROTECTED itself"),
    ):
        called = run(*words, "--force")
        assert called.exit_code == 2
        assert f"{name}, which would be lost" in " ".join(called.stderr.split())
        assert "reading" not in called.stderr
    assert [path.read_bytes() for path in files] == before


def test_nothing_is_written_into_a_folder_that_is_an_input(files):
    city, safe = files[0].parent, files[1].parent
    for words, name in (
        (("pois", city, city / "p.parquet"), "OUTPUT lies in the folder INPUT"),
        (("measure", city, safe, "--out", city / "m.csv"), "--out lies in the folder INPUT"),
        (("measure", city, safe, "--out", safe / "m.csv"), "--out lies in the folder PROTECTED"),
        (("reproduce", "--mdc", city, "--out", city / "tables"), "--out lies in the folder --mdc"),
    ):
        called = run(*words)
        assert called.exit_code == 2
        assert name in " ".join(called.stderr.split())
    assert [path.name for folder in (city, safe) for path in folder.iterdir()] == ["c.parquet"] * 2
