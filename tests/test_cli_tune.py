"""The command tune: what it prints and writes, and what it refuses before it reads."""

import pandas as pd
import pytest
from click.testing import CliRunner

import promesse_geo as pg
from promesse_geo.cli.commands import main
from promesse_geo.cli.tune import METRICS


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The path of a prepared city."""
    path = tmp_path_factory.mktemp("tune") / "parts.parquet"
    pg.write(
        pg.make_city(users=3, days=2, seed=1, recorder="phone").promesse.prepare(tz="Europe/Paris", keep_user=True),
        path,
    )
    return path


RANGE = ("--from", 50, "--to", 800, "--values", 5, "--seed", 3)


def test_the_command_finds_what_the_function_finds(parts, tmp_path):
    words = ("--at-most", "poi-retrieval", 5, "--at-least", "compression", 1, "--objective", "spatial-error")
    table, figure = tmp_path / "table.csv", tmp_path / "figure.svg"
    called = run("tune", parts, *RANGE, *words, "--out", table, "--figure", figure)
    assert called.exit_code == 0, called.output
    found = pg.tune(
        pg.read_file(parts, as_traces=True),
        pg.Promesse(50),
        bounds=(50, 800),
        goals=[(pg.PoiRetrieval(), "<=", 5), (pg.Compression(), ">=", 1)],
        objective=pg.SpatialError(),
        values=5,
        seed="3",
    )
    assert called.stdout.splitlines()[0] == repr(found)
    columns = found.table.columns.drop("seconds")
    pd.testing.assert_frame_equal(pd.read_csv(table)[columns], found.table[columns])
    assert "<svg" in figure.read_text(encoding="utf-8")
    again = run("tune", parts, *RANGE, *words, "--out", table)
    assert again.exit_code == 1
    assert "already exists" in again.stderr


def test_a_value_for_each_user_is_written_for_its_owner_only(parts, tmp_path):
    table = tmp_path / "table.csv"
    goal = ("--at-most", "poi-retrieval", 5, "--objective", "compression", "--maximize")
    called = run("tune", parts, *RANGE, *goal, "--per-user", "--out", table)
    assert called.exit_code == 0, called.output
    assert "user-0" not in called.stdout
    assert sorted(set(pd.read_csv(table)["user"])) == ["user-000", "user-001", "user-002"]
    assert table.stat().st_mode & 0o077 == 0


def test_other_mechanisms_are_tuned(parts):
    goal = ("--at-most", "adaptive-poi-retrieval", 50, "--values", 3, "--seed", 1)
    called = run("tune", parts, "--mechanism", "geo-indistinguishability", "--from", 0.001, "--to", 0.1, *goal)
    assert called.exit_code == 0, called.output
    ends = ("--recommended", "people", "--tune", "ends", "--from", 200, "--to", 900)
    called = run("tune", parts, *ends, *goal)
    assert called.exit_code == 0, called.output
    assert called.stdout.startswith("ends = ")


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_can_be_a_goal(name):
    called = run("tune", "none.parquet", *RANGE, "--at-most", name, 5, "--objective", name)
    assert called.exit_code == 1  # the file does not exist
    assert "none.parquet" in called.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Specify a goal"),
        (("--at-most", "poi-retrieval", "nan"), "Specify a goal"),
        (("--at-most", "poi-retrieval", 1, "--to", 20), "--from must be above zero and less than --to"),
        (("--at-most", "poi-retrieval", 1, "--tune", "size", "--epsilon", 200), "no parameter 'size' to tune"),
        (("--at-most", "poi-retrieval", 1, "--out", "t.txt"), "--out must end with .csv"),
        (("--at-most", "poi-retrieval", 1, "--figure", "t.txt"), "--figure must end with .png"),
        (("--at-most", "poi-retrieval", 1, "--recommended", "people", "--mechanism", "promesse"), "--recommended"),
        (("--at-most", "poi-retrieval", 1, "--tune", "ends"), "needs --epsilon"),
        (("--at-most", "luck", 1), "luck"),
    ],
)
def test_wrong_options_are_refused_before_the_input_is_read(parts, words, said):
    called = run("tune", parts, *RANGE, *words)
    assert called.exit_code == 2
    assert said in called.stderr
    assert "reading" not in called.stderr
