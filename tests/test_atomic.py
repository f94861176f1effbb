"""Files are complete or not there, keep their permissions, and leave nothing behind."""

import os
import signal
import stat
import sys

import numpy as np
import pytest

import promesse_geo as pg
from promesse_geo.io import atomic
from promesse_geo.io.atomic import atomic_path, check_target, write_text
from promesse_geo.io.writers import gdal, write_pois

ENDINGS = (".parquet", ".gpkg", ".fgb", ".csv", ".geojson")
every_ending = pytest.mark.parametrize("ending", ENDINGS)
unix_only = pytest.mark.skipif(sys.platform == "win32", reason="permissions, locks and limits of Unix")


def make_traces(records=10, *, times=None) -> pg.Traces:
    places = np.linspace(2, 3, records)
    times = np.arange(records) * 10**9 if times is None else np.array(times)
    return pg.Traces.from_arrays(places, places + 43, times=times, users=["a"], counts=[records], zone="UTC")


def mode_of(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Full disks.

FULL_DISKS = """
import os, resource, signal
from pathlib import Path
import numpy as np, promesse_geo as pg
from promesse_geo.io.atomic import write_text
from promesse_geo.io.writers import write_pois

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
places = np.linspace(2, 3, 1500)
traces = pg.Traces.from_arrays(places, places + 43, times=np.arange(1500) * 10**9, users=list("abc"), counts=[500] * 3)
pois = pg.pois(pg.make_city(users=2, days=1, recorder="phone"))
results = pg.evaluate({"city": pg.make_city(users=2, days=1, recorder="phone")}, [pg.Promesse(200)], [pg.Compression()])
jobs = {f"traces{ending}": lambda path: pg.write(traces, path, force=True) for ending in %s}
jobs |= {f"pois{ending}": lambda path: write_pois(pois, path, force=True) for ending in %s}
jobs |= {f"results{ending}": lambda path: pg.save_results(results, path, force=True) for ending in (".csv", ".parquet")}
jobs["page.html"] = lambda path: write_text(path, "é" * 20_000, force=True, private=False)
for name, job in jobs.items():
    path = Path(name)
    job(path)
    size = path.stat().st_size
    path.write_bytes(b"old")
    for limit in {0, 1, size // 3, size // 2, *(max(size - lack, 0) for lack in (8192, 4097, 4096, 4095, 100, 3, 1))}:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            job(path)
        except OSError as error:
            assert name in str(error) and ".part" not in str(error), error
            assert "too large" in str(error).lower(), error
        else:
            raise SystemExit(f"{name} was written with {limit} of {size} bytes")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert path.read_bytes() == b"old"
assert sorted(os.listdir()) == sorted(jobs), os.listdir()
"""


@unix_only
def test_a_file_that_has_no_space_is_an_error_at_every_size(tmp_path, run_fresh):
    done = run_fresh(FULL_DISKS % (repr((*ENDINGS, ".gpx")), repr(ENDINGS)), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("lost", ["the index", "a record", "the last page"])
def test_what_gdal_did_not_write_is_noticed(lost, tmp_path, monkeypatch):
    write = gdal.pyogrio.write_arrow

    def write_less(table, path, **options):
        if lost == "the index":
            options["layer_options"] = options["layer_options"] | {"SPATIAL_INDEX": "NO"}
        write(table.slice(0, 9) if lost == "a record" else table, path, **options)
        if lost == "the last page":
            os.truncate(path, path.stat().st_size - 1)

    path = tmp_path / "a.gpkg"
    path.write_bytes(b"old")
    monkeypatch.setattr(gdal.pyogrio, "write_arrow", write_less)
    with pytest.raises(OSError, match=r"a\.gpkg' could not be written.*no space"):
        pg.write(make_traces(), path, force=True)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.gpkg"]


@pytest.mark.parametrize("lost", ["a record", "the last byte", "all"])
def test_flatgeobuf_that_gdal_did_not_complete_is_noticed(lost, tmp_path, monkeypatch):
    write = gdal.pyogrio.write_arrow

    def write_less(table, path, **options):
        write(table.slice(0, 9) if lost == "a record" else table, path, **options)
        if lost != "a record":
            os.truncate(path, 0 if lost == "all" else path.stat().st_size - 1)

    monkeypatch.setattr(gdal.pyogrio, "write_arrow", write_less)
    with pytest.raises(OSError, match=r"a\.fgb' could not be written.*no space"):
        pg.write(make_traces(), tmp_path / "a.fgb")
    assert os.listdir(tmp_path) == []


@unix_only
def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    steps = []
    replace = os.replace

    def synchronize(descriptor):
        steps.append(os.fstat(descriptor).st_ino)

    def rename(source, target):
        steps.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synchronize)
    monkeypatch.setattr(os, "replace", rename)
    path = tmp_path / "a.html"
    write_text(path, "x", force=True, private=False)
    assert steps[:2] == [path.stat().st_ino, "rename"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_errors_of_the_system_name_the_file_and_the_reason(step, tmp_path, monkeypatch):
    def fail(*arguments):
        raise PermissionError(13, "Permission denied", *arguments)

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(PermissionError, match=r"a\.html' could not be written: Permission denied") as caught:
        write_text(tmp_path / "a.html", "x", force=True, private=False)
    assert caught.value.errno == 13
    assert ".part" not in str(caught.value)
    assert os.listdir(tmp_path) == []


# Paths.


@pytest.mark.parametrize("path", [".", "..", "a.csv/", "a.csv/.", "nowhere/a.csv/"])
def test_the_path_of_a_folder_is_refused_by_its_name(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = pg.evaluate(
        {"city": pg.make_city(users=2, days=1, recorder="phone")}, [pg.Promesse(200)], [pg.Compression()]
    )
    for save in (
        lambda: pg.write(make_traces(), path),
        lambda: pg.save_results(results, path),
        lambda: check_target(path, force=True),
    ):
        with pytest.raises((OSError, ValueError)) as caught:
            save()
        assert repr(path) in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("read", [pg.read_table, pg.read_file, pg.read_gpx, pg.read_cabspotting])
def test_a_file_with_a_slash_after_its_name_is_not_read(read, tmp_path):
    pg.write(make_traces(), tmp_path / "a.csv")
    with pytest.raises(NotADirectoryError, match="is a file, not a folder"):
        read(f"{tmp_path}/a.csv/")


# Permissions.


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@unix_only
@every_ending
@pytest.mark.parametrize(
    ("mechanism", "renames", "mode"),
    [
        (None, False, 0o600),
        (None, True, 0o600),
        (pg.Promesse(200), False, 0o600),
        (pg.Promesse(200), True, 0o644),
        (pg.PrivacyZones(), True, 0o600),
        (pg.Chain([pg.PrivacyZones()]), True, 0o600),
        (pg.Chain([pg.PrivacyZones(), pg.Promesse(200)]), True, 0o644),
    ],
    ids=["true", "true-renamed", "names", "protected", "zones", "chained-zones", "zones-and-protected"],
)
def test_new_files_of_true_positions_or_names_are_private(mechanism, renames, mode, ending, tmp_path, usual_umask):
    traces = pg.pseudonymize(make_traces()) if renames else make_traces()
    pg.write(traces, tmp_path / f"a{ending}", mechanism=mechanism)
    assert mode_of(tmp_path / f"a{ending}") == mode


@unix_only
def test_a_single_trace_has_no_name(tmp_path, usual_umask):
    trace = pg.make_city(users=1, days=1, recorder="phone").drop(columns="user")
    pg.write(pg.Promesse(200).protect(trace, user=None), tmp_path / "a.csv", user=None)
    assert mode_of(tmp_path / "a.csv") == 0o644


@unix_only
@every_ending
def test_points_of_interest_are_private(ending, tmp_path, usual_umask):
    write_pois(pg.pois(pg.make_city(users=2, days=1, recorder="phone")), tmp_path / f"a{ending}", force=False)
    assert mode_of(tmp_path / f"a{ending}") == 0o600


@unix_only
@every_ending
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o444, 0o666])
@pytest.mark.parametrize("mechanism", [None, pg.Promesse(200)])
def test_a_replaced_file_keeps_its_permissions(mechanism, mode, ending, tmp_path, usual_umask):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"old")
    path.chmod(mode)
    pg.write(make_traces(), path, mechanism=mechanism, force=True)
    assert mode_of(path) == mode
    assert path.stat().st_size > 3


@unix_only
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may change the owner")
def test_a_replaced_file_keeps_its_owner(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")
    os.chown(path, 12345, 54321)
    pg.write(make_traces(), path, force=True)
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


@unix_only
def test_another_group_gets_no_rights(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError

    path = tmp_path / "a.csv"
    path.write_bytes(b"old")
    path.chmod(0o664)
    if os.geteuid() == 0:
        os.chown(path, -1, 54321)
    same = path.stat().st_gid == os.getegid()
    monkeypatch.setattr(os, "chown", refuse)
    pg.write(make_traces(), path, force=True)
    assert mode_of(path) == (0o664 if same else 0o604)


# Temporary files.


@unix_only
def test_only_the_owner_enters_the_temporary_folder(tmp_path, usual_umask):
    with atomic_path(tmp_path / "a.csv", force=False, private=False) as temporary:
        assert mode_of(temporary.parent) == 0o700
        assert temporary.parent.name.startswith(".")
        temporary.write_bytes(b"new")
    assert os.listdir(tmp_path) == ["a.csv"]


KILLED = """
import os, signal
import numpy as np, promesse_geo as pg
from promesse_geo.io import writers

def half(table, path):
    write(table, path)
    os.truncate(path, path.stat().st_size // 2)
    os.kill(os.getpid(), signal.SIGKILL)

write, writers.WRITERS[%r] = writers.WRITERS[%r], half
traces = pg.Traces.from_arrays([2, 3], [45, 46], times=np.arange(2) * 10**9, users=["a"], counts=[2], zone="UTC")
pg.write(traces, %r, force=True)
"""


@unix_only
@every_ending
def test_the_next_run_on_a_target_removes_what_a_killed_one_left(ending, tmp_path, run_fresh):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"old")
    done = run_fresh(KILLED % (ending, ending, path.name), tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.read_bytes() == b"old"
    (left,) = [found for found in tmp_path.iterdir() if found != path]
    assert mode_of(left) == 0o700
    pg.write(make_traces(), tmp_path / f"other{ending}")
    assert left.exists()
    pg.write(make_traces(), path, force=True)
    assert sorted(os.listdir(tmp_path)) == [path.name, f"other{ending}"]


@unix_only
def test_temporary_files_of_a_living_run_stay(tmp_path):
    path = tmp_path / "a.csv"
    with atomic_path(path, force=True, private=False) as temporary:
        temporary.write_bytes(b"slow")
        write_text(path, "fast", force=True, private=False)
        assert path.read_bytes() == b"fast"
        assert temporary.read_bytes() == b"slow"
    assert path.read_bytes() == b"slow"
    assert os.listdir(tmp_path) == ["a.csv"]


@unix_only
def test_a_folder_that_is_taken_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    lock, taken = atomic.lock_folder, []

    def lock_late(folder, *, wait):
        if not taken:
            taken.append(folder)
            folder.rmdir()
        return lock(folder, wait=wait)

    monkeypatch.setattr(atomic, "lock_folder", lock_late)
    write_text(tmp_path / "a.csv", "x", force=False, private=False)
    assert len(taken) == 1
    assert os.listdir(tmp_path) == ["a.csv"]


# Values.


@every_ending
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_before_1970_come_back(zone, ending, tmp_path):
    milliseconds = [-236_698_698, -60_300, -60_000, -59_999, -1_001, -1_000, -999, -1, 0, 1, 59_999]
    times = np.array(milliseconds) * 10**6
    places = np.linspace(2, 3, len(times))
    traces = pg.Traces.from_arrays(places, places, times=times, users=["a"], counts=[len(times)], zone=zone)
    pg.write(traces, tmp_path / f"a{ending}")
    assert pg.read_file(tmp_path / f"a{ending}", as_traces=True).times.tolist() == times.tolist()


def test_coordinates_in_geojson_keep_all_digits(tmp_path):
    x, y = np.array([[0.1 + 0.2, -1e-17, 179.99999999999997, -180.0], [1 / 3, 90.0, -0.0, 5e-324]])
    traces = pg.Traces.from_arrays(x, y, times=np.arange(4), users=["a"], counts=[4], zone="UTC")
    pg.write(traces, tmp_path / "a.geojson")
    pg.write(traces, tmp_path / "a.parquet")
    found, expected = (pg.read_table(tmp_path / f"a{ending}").geometry for ending in (".geojson", ".parquet"))
    assert found.x.tolist() == expected.x.tolist()
    assert found.y.tolist() == expected.y.tolist()
