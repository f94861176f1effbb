"""read_table: several files as one data set, users by file, and names of files."""

import bz2
import gzip
import os
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import csv
from tables import HEADER, LINE, ROWS, TEXT, as_frame, assert_rows, csv_of, save, written

import promesse_geo as pg
from promesse_geo.io.table import read_table


def make_files(folder):
    """The three rows in one file for each user, in folders for each user; and what is no table."""
    for user in ("ana", "ben"):
        lines = "".join(",".join(row[1:]) + "\n" for row in ROWS if row[0] == user)
        written(folder, "time,lon,lat\n" + lines, f"{user}/{user}.csv")
    written(folder, "Dear reader", "README.txt")
    written(folder, "user,time,lon,lat", ".hidden/x.csv")
    return folder


@pytest.mark.parametrize("user", ["file", "folder"])
def test_the_user_may_be_the_file_or_the_folder(user, tmp_path):
    folder = make_files(tmp_path)
    assert_rows(read_table(folder, user=user))
    assert_rows(read_table(str(folder / "*" / "*.csv"), user=user))
    assert_rows(read_table([folder / "ben" / "ben.csv", folder / "ana"], user=user))
    assert read_table(folder, user=user, users=["ben"])["user"].tolist() == ["ben"]


def test_a_packed_file_is_named_without_its_endings(tmp_path):
    written(tmp_path, gzip.compress(b"time,lon,lat\n2024-03-04T08:00:00Z,4,45\n"), "ana.csv.gz")
    assert read_table(tmp_path, user="file")["user"].tolist() == ["ana"]


def test_files_are_one_trace_where_there_is_no_user(tmp_path):
    with pytest.warns(UserWarning, match="overlap in time"):
        traces = read_table(make_files(tmp_path), user=None, as_traces=True)
    assert (len(traces), traces.records) == (1, 3)


def test_files_of_several_formats_are_one_data_set(tmp_path):
    for number, ending in enumerate(("csv", "parquet", "gpkg", "geojson")):
        frame = as_frame().assign(user=[f"{number}{user}" for user in as_frame()["user"]])
        pg.write(frame, tmp_path / f"{number}.{ending}")
    traces = read_table(tmp_path, as_traces=True)
    assert (len(traces), traces.records) == (8, 12)


def test_records_of_one_user_in_several_files_are_in_the_order_of_the_paths(tmp_path):
    for number in (2, 0, 1):
        written(tmp_path, f"{HEADER}\nana,2024-03-04T08:00:00Z,{number},45\n", f"{number}.csv")
    files = [tmp_path / f"{number}.csv" for number in (1, 2, 0)]
    with pytest.warns(UserWarning, match="overlap in time"):
        assert read_table(files).geometry.x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("users", [["ana"], ("ana",), {"ana"}, iter(["ana"])])
def test_some_users_are_read_alone(users, tmp_path):
    frame = read_table(written(tmp_path, TEXT), users=users)
    assert frame["user"].tolist() == ["ana", "ana"]


def test_users_of_integers_can_be_asked_for(tmp_path):
    path = written(tmp_path, TEXT.replace("ana", "1").replace("ben", "2"))
    assert read_table(path, users=[2])["user"].tolist() == [2]


@pytest.mark.parametrize(
    ("users", "kind", "words"),
    [
        (["ana", "x", "y"], ValueError, "2 of 3 users"),
        ([], ValueError, "empty list"),
        ([3.5], TypeError, "'users' parameter of read_table"),
    ],
)
@pytest.mark.parametrize("user", [..., "file"])
def test_users_that_cannot_be_had_are_an_error(user, users, kind, words, tmp_path):
    source = make_files(tmp_path) if user == "file" else written(tmp_path, TEXT)
    with pytest.raises(kind, match=words):
        read_table(source, user=user, users=users)


def test_files_of_several_crss_are_an_error(tmp_path):
    as_frame().to_parquet(tmp_path / "a.parquet")
    as_frame().to_crs(2154).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="1 file has another CRS"):
        read_table(tmp_path)


def test_files_with_and_without_zones_are_an_error(tmp_path):
    written(tmp_path, TEXT, "a.csv")
    written(tmp_path, TEXT.replace("Z", ""), "b.csv")
    with pytest.raises(ValueError, match="with a zone, others without"):
        read_table(tmp_path)


def test_a_file_without_records_among_others_changes_nothing(tmp_path):
    written(tmp_path, TEXT.replace("Z", ""), "b.csv")
    written(tmp_path, HEADER + "\n", "a.csv")
    assert read_table(tmp_path)["time"].dt.tz is None


def test_complaints_of_several_files_are_added_up(tmp_path):
    for name in ("a", "b"):
        written(tmp_path, TEXT.replace("4.85", ""), f"{name}.csv")
    with pytest.raises(ValueError, match=r"^2 records of 6 cannot be used .* finite: 2, first in row 1 of '.*a\.csv'"):
        read_table(tmp_path)


def test_two_files_of_one_name_are_not_one_user(tmp_path):
    make_files(tmp_path / "here")
    make_files(tmp_path / "there")
    with pytest.raises(ValueError, match="2 files have the name of another one"):
        read_table(tmp_path, user="file")


def test_where_nothing_can_be_read_skipping_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"None of 1 file could be read\. The first: .*is empty"):
        read_table(written(tmp_path, ""), errors="skip")


def test_errors_are_raised_or_dropped(tmp_path):
    with pytest.raises(ValueError, match="'errors' parameter of read_table must be one of"):
        read_table(written(tmp_path, TEXT), errors="ignore")


def test_a_folder_without_tables_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file that ends with"):
        read_table(tmp_path)


@pytest.mark.parametrize("reader", [pg.read_table, pg.read_file])
def test_a_file_that_is_not_there_is_named(reader, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv' does not exist"):
        reader(tmp_path / "nowhere.csv")


def test_a_format_that_is_named_is_taken(tmp_path):
    path = csv_of(tmp_path, HEADER, LINE)
    assert pg.read_file(path, format="table", as_traces=True).records == 1
    with pytest.raises(ValueError, match="Cabspotting"):
        pg.read_file(path, format="cabspotting", as_traces=True)


ODD = ["a!b", "a;b", "a\nb", "a b?&#", "a%20b", "a:b", "zip!c"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
@pytest.mark.filterwarnings("ignore:.*files overlap in time")
@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_names(name, tmp_path):
    for ending in ("geojson", "gpkg"):
        save(as_frame(), tmp_path / f"plain.{ending}").rename(tmp_path / f"{name}.{ending}")
    place = [tmp_path / f"{name}.{ending}" for ending in ("geojson", "gpkg")]
    assert read_table(place, user="folder", as_traces=True).records == 6


@pytest.mark.filterwarnings("ignore:.*files overlap in time")
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_not_utf_8_are_names_too(tmp_path):
    for ending in ("gpkg", "parquet"):
        name = os.fsdecode(b"plain\xff." + ending.encode())
        save(as_frame(), tmp_path / f"plain.{ending}").rename(tmp_path / name)
    written(tmp_path, TEXT, os.fsdecode(b"\xff.csv"))
    with pytest.raises(
        ValueError, match=r"udcff\.gpkg': GDAL reads no file whose name is not UTF-8\. Rename it"
    ) as caught:
        read_table(tmp_path)
    assert str(caught.value).isascii()
    with pytest.warns(UserWarning, match="dropped 1 file"):
        assert read_table(tmp_path, errors="skip", as_traces=True).records == 6


def test_an_error_of_the_system_is_not_taken_for_damage(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(5, "Input/output error")

    path = written(tmp_path, TEXT)
    monkeypatch.setattr("pyarrow.csv.read_csv", fail)
    with pytest.raises(ValueError, match=r"table\.csv' cannot be read: Input/output error\."):
        read_table(path)


COUNT_OPENS = """
import sys, warnings, promesse_geo as pg
warnings.simplefilter("ignore")
opens = []
sys.addaudithook(lambda event, values: opens.append(event) if event == "open" and values[0] == sys.argv[1] else None)
pg.read_file(sys.argv[1], errors="skip", as_traces=True)
print(len(opens))
"""


@pytest.mark.parametrize("text", [TEXT, TEXT.replace("ana", '"a\nb"'), TEXT.replace("4.85", "north")])
def test_a_small_file_is_opened_once_or_twice(text, tmp_path, run_fresh):
    done = run_fresh(COUNT_OPENS, tmp_path, written(tmp_path, text))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 2


@pytest.mark.parametrize(
    ("text", "times"),
    [(TEXT, 1), (TEXT.replace(",", ";").replace(".", ","), 2), (TEXT.replace("4.85", "NA"), 3)],
    ids=["plain", "decimal commas", "a word for a missing number"],
)
def test_a_table_is_parsed_once_per_notation_that_is_tried(text, times, tmp_path, monkeypatch):
    parse, parsed = csv.read_csv, []

    def count(source, **options):
        parsed.append(source)
        return parse(source, **options)

    monkeypatch.setattr(csv, "read_csv", count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_table(written(tmp_path, text), errors="skip")
    assert len(parsed) == times


def test_a_file_without_any_user_or_time_does_not_spoil_the_others(tmp_path):
    times = pd.date_range("2024-03-04", periods=2, freq="h")
    columns = {"full": ([1, 2], times), "timeless": ([1, 2], [None, None]), "userless": ([None, None], times)}
    for name, (users, moments) in columns.items():
        frame = pd.DataFrame({"user": users, "time": moments, "lon": 4.8, "lat": 45.7})
        frame.to_parquet(tmp_path / f"{name}.parquet")
    with pytest.raises(ValueError, match=r"no time.*: 2, .*timeless.*no user: 2, .*userless"):
        read_table(tmp_path)
    with pytest.warns(UserWarning, match=r"2 records \(no time.*timeless.*2 records \(no user.*userless"):
        traces = read_table(tmp_path, errors="skip", as_traces=True)
    assert traces.users.tolist() == [1, 2]
    assert traces.time_format.zone is None


def two_people(folder, *, user="", later=0):
    """Write the files of two people at the same time, or `later` minutes apart, without a user column by default."""
    for number in (0, 1):
        times = [f"2024-03-04T08:{minute + number * later:02}:00Z" for minute in (0, 9)]
        names, key = (",user", f",{user}") if user else ("", "")
        rows = "".join(f"{time},45.7,4.8{number}{key}\n" for time in times)
        (folder / f"{number}.csv").write_text(f"time,lat,lon{names}\n{rows}")
    return folder


@pytest.mark.parametrize("key", ["", "ana"])
def test_files_of_one_user_that_overlap_in_time_are_counted(tmp_path, key):
    user = ... if key else None
    with pytest.warns(UserWarning, match=r"^In 1 trace files overlap in time, .*0\.csv'.*user='file'"):
        traces = pg.read_table(two_people(tmp_path, user=key), user=user, as_traces=True)
    assert (len(traces), traces.records) == (1, 4)


def test_files_of_several_users_are_not_taken_for_users(tmp_path):
    for number in (0, 1):
        places = {"a": 4.8 + number / 10, "b": 4.9 - number / 10}  # 8 km apart
        minutes = [f"2024-03-04T08:{2 * minute + number:02}:00Z" for minute in (0, 1)]
        rows = [f"{user},{minute},45.7,{x}\n" for minute in minutes for user, x in places.items()]
        (tmp_path / f"{number}.csv").write_text("user,time,lat,lon\n" + "".join(rows))
    with pytest.warns(UserWarning, match=r"^In 2 traces files overlap in time.*files are parts of one") as said:
        assert len(pg.read_table(tmp_path, as_traces=True)) == 2
    assert "user='file'" not in str(said[0].message)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 12, 250]), st.integers(2, 5), st.booleans())
@settings(max_examples=30, deadline=None)
def test_users_spread_over_files_are_normal_and_those_in_two_places_at_once_are_not(seed, speed, files, has_double):
    """Nobody is at two places at once, at whatever speed they travel, by plane too."""
    assume(not has_double or speed < 50)
    rng = np.random.default_rng(seed)
    seconds = np.arange(400) * 10
    frames = []
    for user in "ab":
        x = rng.uniform(0, 5_000) + speed * seconds + rng.normal(0, 3, 400)
        frames.append(pd.DataFrame({"user": user, "seconds": seconds, "x": x, "y": rng.normal(0, 3, 400)}))
    frame = pd.concat(frames, ignore_index=True)
    frame["file"] = rng.integers(0, files, len(frame))
    if has_double:  # b of the first file is another person, 30 km aside
        frame.loc[(frame["file"] == 0) & (frame["user"] == "b"), "y"] += 30_000
    frame["time"] = pd.Timestamp("2026-05-04T08:00Z") + pd.to_timedelta(frame["seconds"], "s")
    frame["lon"], frame["lat"] = 7 + frame["x"] / 78_000, 45 + frame["y"] / 111_195
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number, rows in frame.groupby("file"):
            rows[["user", "time", "lon", "lat"]].to_parquet(f"{folder}/{number}.parquet", index=False)
        assert pg.read_table(folder, as_traces=True).records == len(frame)
    said = [str(warning.message) for warning in caught]
    assert len(said) == has_double
    assert all(text.startswith("In 1 trace files overlap in time") for text in said)


@pytest.mark.parametrize("later", [9, 20])
def test_files_of_one_user_one_after_the_other_are_fine(tmp_path, later):
    assert len(pg.read_table(two_people(tmp_path, later=later), user=None, as_traces=True)) == 1


@pytest.mark.parametrize("rows", [1, 2])
def test_the_same_records_in_two_files_overlap(tmp_path, rows):
    content = "user,time,lat,lon\n" + "".join(f"ana,2024-03-04T08:0{minute}:00Z,45.7,4.8\n" for minute in range(rows))
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(content)
    with pytest.warns(UserWarning, match="^In 1 trace files overlap in time"):
        assert len(pg.read_table(tmp_path)) == 2 * rows


def test_files_as_users_may_overlap(tmp_path):
    assert len(pg.read_table(two_people(tmp_path), user="file", as_traces=True)) == 2


@pytest.mark.parametrize("files", [1, 2])
def test_of_several_files_without_users_each_file_is_the_first_guess(tmp_path, files):
    two_people(tmp_path)
    source = tmp_path if files > 1 else tmp_path / "0.csv"
    with pytest.raises(ValueError, match="user='file'.*user=None" if files > 1 else "user=None.*user='file'"):
        pg.read_table(source)


def test_files_of_a_folder_that_are_not_read_are_counted(tmp_path):
    two_people(tmp_path, later=20)
    (tmp_path / "deep").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("a.abc", "b.ABC", "deep/c.abc", "deep/d.xyz", ".hidden/e.abc", "labels.txt", ".DS_Store", "Thumbs.db"):
        (tmp_path / name).touch()
    for name in ("README", "LICENSE.md", "_SUCCESS", "a.gpkg-wal"):
        (tmp_path / name).touch()
    with pytest.warns(UserWarning, match=r"^4 files were not read.*\(\.abc, \.xyz\)"):
        pg.read_table(tmp_path, user=None)
    with pytest.warns(UserWarning, match=r"^4 files were not read"):
        pg.read_file(tmp_path, user=None, as_traces=True)


def test_the_user_may_be_the_folder_above(tmp_path):
    for name in ("ann", "ben"):
        (tmp_path / name / "gps").mkdir(parents=True)
        (tmp_path / name / "gps" / "day.csv").write_text("time,lat,lon\n2024-03-04T08:00:00Z,45.7,4.8\n")
    assert read_table(tmp_path, user="folder-2", as_traces=True).users.tolist() == ["ann", "ben"]
    assert pg.read_file(tmp_path, user="folder-2", as_traces=True).users.tolist() == ["ann", "ben"]
    for user in ("file", "folder"):
        with pytest.raises(ValueError, match="user='folder-2'"):
            read_table(tmp_path, user=user)


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
def test_the_user_of_a_compressed_file_is_its_name_without_extensions(tmp_path, ending):
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "zst": lambda text: pa.compress(text, "zstd", asbytes=True)}
    path = tmp_path / f"ana.csv.{ending}"
    path.write_bytes(pack[ending](b"time,lat,lon\n2024-03-04T08:00:00Z,45.7,4.8\n"))
    assert read_table(path, user="file")["user"].tolist() == ["ana"]
