"""Names of files and folders are users: folders of Parquet give what `read_file` and a mechanism give."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from parquet_folders import TOKEN, assert_equal, load

import promesse_geo as pg
from promesse_geo.cli.commands import main

PROMESSE = pg.Promesse(60)
PLACES = ("ann/gps/first", "ann/gps/second", "bob/phone/third")
pytestmark = pytest.mark.filterwarnings("ignore:In .* files overlap in time", "ignore:The data")


@pytest.fixture
def folder(tmp_path):
    """Files of several people without a column of users, but for one that does not count."""
    for number, place in enumerate(PLACES):
        times = pd.date_range(f"2024-05-0{number + 1} 08:00", periods=300, freq="30s", tz="UTC")
        table = {"time": times, "lon": 4.8 + 0.0005 * np.arange(300), "lat": 45.0 + number}
        path = tmp_path / "in" / f"{place}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            pa.table(pd.DataFrame({**table, "user": "nobody"} if number else table)), path, row_group_size=70
        )
    return tmp_path / "in"


@pytest.mark.usefixtures("many_chunks")
@pytest.mark.parametrize(
    ("user", "users"),
    [("file", ["first", "second", "third"]), ("folder", ["gps", "phone"]), ("folder-2", ["ann", "bob"])],
)
def test_names_of_files_and_folders_are_users(folder, tmp_path, user, users):
    read = pg.read_file(folder, user=user, as_traces=True)
    assert read.users.tolist() == users
    protected = PROMESSE.protect(read)
    report = pg.protect_parquet(folder, tmp_path / "kept", PROMESSE, user=user, keep_users=True)
    assert (report.users, report.records) == (len(users), read.records)
    kept = load(tmp_path / "kept").sort_values("user", kind="stable", ignore_index=True)
    assert_equal(kept, protected.to_frame())
    pg.protect_parquet(folder, tmp_path / "renamed", PROMESSE, user=user)
    assert_equal(load(tmp_path / "renamed"), pg.pseudonymize(protected, seed=TOKEN).to_frame())


def test_two_files_of_one_name_are_refused(folder, tmp_path):
    (folder / "bob/phone/third.parquet").rename(folder / "bob/phone/first.parquet")
    with pytest.raises(ValueError, match="1 file has the name of another one") as caught:
        pg.protect_parquet(folder, tmp_path / "out", PROMESSE, user="file")
    with pytest.raises(ValueError, match="1 file has the name of another one") as read:
        pg.read_file(folder, user="file")
    assert str(caught.value) == str(read.value)


def test_a_table_in_memory_has_no_name(folder):
    table = pq.read_table(folder / f"{PLACES[0]}.parquet")
    with pytest.raises(ValueError, match="a table has none"):
        pg.protect_arrow(table, PROMESSE, user="file")


def test_each_file_is_published_as_a_person(folder):
    result = pg.publish_parquet(folder, None, PROMESSE, user="file", dry_run=True)
    expected = pg.publish(pg.read_file(folder, user="file"), None, PROMESSE, dry_run=True)
    assert result.counts["users"] == 3
    for name in ("users", "records", "dropped_jumps", "published_traces", "published_records"):
        assert result.counts[name] == expected.counts[name]


def test_protected_data_are_measured_beside_each_file(folder, tmp_path):
    pg.protect_parquet(folder, tmp_path / "safe", PROMESSE, user="file", keep_users=True)
    for source in (tmp_path / "safe", folder):  # with users, and without
        found = pg.measure_parquet(folder, source, [pg.Compression(), pg.AreaCoverage()], user="file")
        protected = pg.read_file(source, user=... if source != folder else "file")
        expected = pg.measure(pg.read_file(folder, user="file"), protected, [pg.Compression(), pg.AreaCoverage()])
        assert found["value"].tolist() == pytest.approx(expected["value"].tolist(), rel=1e-12)


@pytest.mark.parametrize("command", [("smooth", "--epsilon", 60), ("geo-indistinguishability", "--epsilon", 0.01)])
def test_commands_give_the_users_of_a_file_and_of_a_folder(folder, tmp_path, command):
    for output in ("out", "out.parquet"):
        given = [command[0], folder, tmp_path / output, *command[1:], "--user", "folder-2", "--keep-users"]
        result = CliRunner().invoke(main, list(map(str, given)))
        assert result.exit_code == 0, result.output
    users = [sorted(pg.read_file(tmp_path / output)["user"].unique()) for output in ("out", "out.parquet")]
    assert users == [["ann", "bob"]] * 2
