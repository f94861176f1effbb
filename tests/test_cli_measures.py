"""The commands measure, pois and reproduce: what they write, and what they never do to their inputs."""

import sys

import pandas as pd
import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli.commands import main
from promesse_geo.cli.measures import PAPERS


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def files(tmp_path):
    """The paths of a city and of what became of it, each in a folder of its own."""
    city = pg.make_city(users=3, days=1, seed=1, recorder="phone")
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


def test_the_module_is_the_command(tmp_path, run_fresh):
    code = "import runpy; runpy.run_module('promesse_geo', run_name='__main__')"
    called = run_fresh(code, tmp_path, "--version")
    assert (called.returncode, called.stdout) == (0, f"promesse-geo, version {pg.__version__}\n")


def test_without_users_there_is_one_trace_to_stay_in(files, tmp_path):
    one = pg.read_file(files[0], as_traces=True).to_frame().query("user == 'user-000'")
    pg.write(pg.Traces.from_frame(one.drop(columns="user"), user=None), tmp_path / "one.parquet")
    called = run("pois", tmp_path / "one.parquet", tmp_path / "p.csv", "--one-trace")
    found = len(pd.read_csv(tmp_path / "p.csv"))
    assert found > 1
    assert f"{found} points of interest in 1 of 1 trace" in called.stdout
    pg.write(pg.Traces.from_frame(one.drop(columns="user").iloc[:2], user=None), tmp_path / "two.parquet")
    assert (
        "0 points of interest in 0 of 1 trace"
        in run(*("pois", tmp_path / "two.parquet", tmp_path / "q.csv", "--one-trace")).stdout
    )


def test_a_wrong_parameter_is_refused_before_the_input_is_read(files, tmp_path):
    for words in (("--diameter", "nan"), ("--diameter", "0"), ("--duration", "0")):
        called = run("pois", files[0], tmp_path / "p.csv", *words)
        assert called.exit_code == 2
        assert "reading" not in called.stderr


@pytest.mark.parametrize("name", ["table_1.csv", "table_10.csv", "report.md", "report.html", "results.csv"])
def test_a_report_that_cannot_be_written_is_refused_before_the_work(name, tmp_path, monkeypatch):
    monkeypatch.setattr("promesse_geo.paper.reproduce", _no_work)
    (tmp_path / name).touch()
    called = run("reproduce", "--out", tmp_path, "--seeds", 1)
    assert called.exit_code == 1
    assert f"{name}' already exists" in called.stderr
    for folder in (tmp_path / name, tmp_path / name / "more"):
        called = run("reproduce", "--out", folder, "--seeds", 1)
        assert called.exit_code == 1
        assert "is a file" in called.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="a folder that nobody can write to, not even root")
def test_a_folder_that_takes_nothing_is_refused_before_the_work(monkeypatch):
    monkeypatch.setattr("promesse_geo.paper.reproduce", _no_work)
    called = run("reproduce", "--out", "/proc/tables", "--seeds", 1)
    assert called.exit_code == 1
    assert "'/proc' is not writable" in called.stderr


def _no_work(**named):
    raise AssertionError("the work was begun")


def test_the_number_of_draws_has_a_bound(tmp_path):
    called = run("reproduce", "--seeds", 99999999999999, "--out", tmp_path)
    assert called.exit_code == 2
    assert "100,000" in called.stderr


@pytest.mark.parametrize("wrong", [{"n_jobs": 0}, {"seeds": 0}, {"mdc": "/none"}])
def test_the_experiment_checks_all_it_is_given_before_it_reads(wrong, tmp_path, monkeypatch):
    monkeypatch.setattr("promesse_geo.paper.experiment._prepared", _no_work)
    with pytest.raises((ValueError, FileNotFoundError), match=r"of reproduce must|'/none' does not exist"):
        pg.reproduce(geolife=tmp_path, **wrong)


def test_memory_that_is_short_is_said_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr("promesse_geo.paper.reproduce", _out_of_memory)
    called = run("reproduce", "--out", tmp_path / "tables")
    assert called.stderr == "Error: There is not enough memory. This came up with dataset 'c'.\n"


def _out_of_memory(**named):
    error = MemoryError()
    error.add_note("This came up with dataset 'c'.")
    raise error


def test_the_papers_are_those_of_reproduce():
    assert list(PAPERS) == list(pg.paper.report.PAPERS)


def test_the_command_line_imports_neither_scikit_learn_nor_matplotlib(tmp_path, run_fresh):
    code = (
        "import sys; from promesse_geo.cli.commands import main; "
        "print({'sklearn', 'matplotlib', 'promesse_geo.paper'} & set(sys.modules))"
    )
    done = run_fresh(code, tmp_path)
    assert done.stdout == "set()\n", done.stderr


def test_measure_says_that_values_without_a_seed_differ(files):
    without, again = (run("measure", *files, "--queries", "20", *words) for words in ((), ("--seed", "1")))
    assert "--seed" in without.stderr
    assert "--seed" not in again.stderr
    assert without.exit_code == again.exit_code == 0
