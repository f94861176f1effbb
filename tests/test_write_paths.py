"""Paths that write takes: a file appears complete or not at all, and replaces nothing unless it may."""

import os
import signal
import sys
import time

import pytest
from test_write import ENDINGS, every_ending, make_frame, read_by_others

import promesse_geo as pg
from promesse_geo.io import writers as writing

pytestmark = pytest.mark.filterwarnings("ignore:The times have no zone, so GPX")


@every_ending
def test_only_the_file_itself_is_left_behind(ending, tmp_path):
    pg.write(make_frame(["a"]), tmp_path / f"a{ending}")
    assert [path.name for path in tmp_path.iterdir()] == [f"a{ending}"]


@every_ending
@pytest.mark.parametrize("error", [RuntimeError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["a", "week[1] *?"])
def test_an_error_in_the_middle_leaves_nothing_new(name, error, ending, tmp_path, monkeypatch):
    def fail(table, path):
        path.write_bytes(b"half")
        path.with_name(path.name + "-journal").write_bytes(b"GDAL's")
        raise error("in the middle")

    path = tmp_path / f"{name}{ending}"
    path.write_bytes(b"old")
    monkeypatch.setitem(writing.WRITERS, ending, fail)
    with pytest.raises(error, match="in the middle"):
        pg.write(make_frame(["a"]), path, force=True)
    assert [left.name for left in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"


PLANE_TRACES = """
import numpy as np, promesse_geo as pg
from pyproj import CRS
def traces(records):
    metres = np.random.default_rng(0).uniform(0, 1000, records)
    return pg.Traces.from_arrays(metres, metres, times=np.arange(records) * 1000, users=["a"], counts=[records],
                                 crs="EPSG:32631", space=pg.Plane(CRS("EPSG:32631")))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("ending", [".csv", ".gpkg"])
def test_a_killed_run_leaves_no_half_file(ending, tmp_path, start_fresh):
    records = 3_000_000 if ending == ".csv" else 600_000
    child = start_fresh(f"{PLANE_TRACES}\npg.write(traces({records}), 'safe{ending}')", tmp_path)
    deadline = time.monotonic() + 300
    while not any(path.stat().st_size for path in tmp_path.glob(".*.part/*")):
        assert time.monotonic() < deadline
        assert child.process.is_alive()
        time.sleep(0.002)
    child.process.kill()
    assert child.wait().returncode == -signal.SIGKILL
    assert not (tmp_path / f"safe{ending}").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are a matter of Unix")
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path, run_fresh):
    code = f"""
import resource
{PLANE_TRACES}
data = traces(30_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
for ending in {ENDINGS}:
    try:
        pg.write(data, "safe" + ending)
    except OSError:
        continue
    raise SystemExit(ending + " was written")
"""
    done = run_fresh(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


@every_ending
def test_a_file_is_only_replaced_by_force(ending, tmp_path):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError, match="already exists"):
        pg.write(make_frame(["a"]), path)
    assert path.read_bytes() == b"old"
    pg.write(make_frame(["a"]), path, force=True)
    assert len(read_by_others(path)) == 1
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("ending", [".PARQUET", ".GeoParquet", ".Gpkg", ".CSV", ".GEOJSON", ".Json"])
def test_endings_may_be_written_in_capitals(ending, tmp_path):
    pg.write(make_frame(["a"]), str(tmp_path / f"a{ending}"))
    assert [path.name for path in tmp_path.iterdir()] == [f"a{ending}"]
    assert len(pg.read_table(tmp_path / f"a{ending}")) == 1


@pytest.mark.parametrize("name", ["a", "a.shp", "a.csv.gz", ".csv", "a.parquet.part"])
def test_an_unknown_ending_is_refused_by_the_list_of_known_ones(name, tmp_path):
    with pytest.raises(ValueError, match=r"must end with one of '\.parquet', .* and '\.json'"):
        pg.write(make_frame(["a"]), tmp_path / name)


@every_ending
def test_a_folder_that_is_not_there_is_named(ending, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"The folder .*nowhere' does not exist"):
        pg.write(make_frame(["a"]), tmp_path / "nowhere" / f"a{ending}")


def test_a_folder_is_no_output(tmp_path):
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        pg.write(make_frame(["a"]), tmp_path / "a.csv", force=True)


def test_a_path_through_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        pg.write(make_frame(["a"]), tmp_path / "file" / "a.csv")


@every_ending
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_an_error_of_the_system(ending, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(OSError, match=r"ermission|written"):
            pg.write(make_frame(["a"]), tmp_path / f"a{ending}")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("force", [1, "yes", None])
def test_force_is_true_or_false(force, tmp_path):
    with pytest.raises(TypeError, match="'force' parameter of write must be True or False"):
        pg.write(make_frame(["a"]), tmp_path / "a.csv", force=force)


@every_ending
@pytest.mark.parametrize("exists", [True, False])
def test_the_file_that_a_link_points_to_is_replaced(exists, ending, tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / f"target{ending}", tmp_path / f"link{ending}"
    if exists:
        target.write_bytes(b"old")
    link.symlink_to(target.relative_to(tmp_path))
    pg.write(make_frame(["a"]), link, force=True)
    assert link.is_symlink()
    assert len(read_by_others(target)) == 1
    assert os.listdir(tmp_path / "folder") == [target.name]
    assert len(os.listdir(tmp_path)) == 2


@every_ending
@pytest.mark.parametrize("name", ["a!b", "a;b", "a\nb", "GPKG:x", "week?", "é" * 120, "a\udcff"])
def test_a_file_may_have_any_name(name, ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pg.write(make_frame(["a"]), f"{name}{ending}")
    assert os.listdir(tmp_path) == [f"{name}{ending}"]
    os.rename(f"{name}{ending}", f"plain{ending}")
    assert len(read_by_others(tmp_path / f"plain{ending}")) == 1


@every_ending
@pytest.mark.parametrize("name", ["a!b", "a\nb", "a\udcff"])
def test_folders_that_gdal_cannot_reach_are_refused_before_the_work(name, ending, tmp_path):
    folder = tmp_path / name
    folder.mkdir()
    if ending in (".gpkg", ".fgb"):
        with pytest.raises(ValueError, match="which GDAL cannot reach"):
            writing.check_output(folder / f"a{ending}", force=False)
    else:
        pg.write(make_frame(["a"]), folder / f"a{ending}")
        assert os.listdir(folder) == [f"a{ending}"]


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_what_came_during_the_run_is_not_replaced(links, tmp_path, monkeypatch):
    path, save = tmp_path / "a.csv", writing.WRITERS[".csv"]

    def slowly(table, temporary):
        save(table, temporary)
        path.write_bytes(b"of another program")

    def refuse(old, new):
        raise PermissionError("the file system knows no links")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setitem(writing.WRITERS, ".csv", slowly)
    with pytest.raises(FileExistsError, match="already exists"):
        pg.write(make_frame(["a"]), path)
    assert path.read_bytes() == b"of another program"
    assert os.listdir(tmp_path) == ["a.csv"]
    monkeypatch.setitem(writing.WRITERS, ".csv", save)
    pg.write(make_frame(["a"]), tmp_path / "b.csv")
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv"]


def test_a_broken_link_is_an_existing_file(tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match="already exists"):
        pg.write(make_frame(["a"]), tmp_path / "a.csv")
    assert (tmp_path / "a.csv").is_symlink()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_what_sqlite_left_of_an_old_file_does_not_get_into_the_new_one(ending, force, tmp_path):
    (tmp_path / f"safe.gpkg{ending}").write_bytes(b"pages of the original")
    with pytest.raises(FileExistsError, match="SQLite would bring into a new file"):
        pg.write(pg.make_city(users=1, days=1, recorder="phone"), tmp_path / "safe.gpkg", force=force)
    assert not (tmp_path / "safe.gpkg").exists()
