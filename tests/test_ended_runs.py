"""Runs over folders of Parquet that are ended by signals, or for which the disk has no space."""

import errno
import os
import re
import signal
import stat
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import pytest
from fresh import CONTEXT

import promesse_geo as pg
from promesse_geo.bulk import files, run

try:
    import resource
except ImportError:  # on Windows
    resource = None

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals and limits"),
    pytest.mark.filterwarnings("ignore:The data", "ignore:.*could not be protected", "ignore:publish dropped"),
]
WAITING = """
import signal, time, importlib, pathlib
import promesse_geo as pg, promesse_geo.cli.commands as cli
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)  # which nohup ignores
signal.signal(signal.SIGINT, signal.default_int_handler)
protect = pg.Promesse._protect
def waiting(mechanism, traces):
    pathlib.Path("protecting").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return protect(mechanism, traces)
pg.Promesse._protect = waiting
cli.main()
"""
RUN = "import promesse_geo.cli.commands as cli; cli.main()"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    pg.write(pg.make_city(users=4, days=1, recorder="phone"), tmp_path / "in" / "city.parquet")
    return tmp_path


def wait_for(path, child):
    deadline = time.monotonic() + 300
    while not path.exists():
        assert time.monotonic() < deadline
        assert child.process.is_alive()
        time.sleep(0.01)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("command", "number", "times", "code"),
    [("smooth", "TERM", 1, 143), ("publish", "HUP", 3, 129), ("smooth", "INT", 3, 1), ("publish", "INT", 1, 1)],
)
def test_signals_leave_no_true_data_and_no_result(folder, start_fresh, command, number, times, code):
    words = [command, folder / "in", folder / "out", "--memory", "2GB"]
    words += ["--epsilon", 200] if command == "smooth" else ["--tz", "UTC", "--recommended", "fleet"]
    child = start_fresh(WAITING, folder, *words)
    wait_for(folder / "protecting", child)
    assert stat.S_IMODE((folder / "out.partial").stat().st_mode) == 0o700
    for _ in range(times):
        os.kill(child.process.pid, getattr(signal, f"SIG{number}"))
        time.sleep(0.1)
    (folder / "go").touch()
    done = child.wait(300)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert names_in(folder) == ["go", "in", "protecting"]


def test_the_same_command_goes_on_after_a_kill(folder, start_fresh):
    words = ["smooth", folder / "in", folder / "out", "--epsilon", 200]
    child = start_fresh(WAITING, folder, *words)
    wait_for(folder / "protecting", child)
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.join(300)
    assert "out.partial" in names_in(folder)
    assert stat.S_IMODE((folder / "out.partial").stat().st_mode) == 0o700
    chunks = {path: path.stat().st_mtime_ns for path in (folder / "out.partial" / "spills").glob("chunk-*")}
    assert chunks
    done = start_fresh(RUN, folder, *words).wait(300)
    assert done.returncode == 0, done.stderr
    assert names_in(folder) == ["in", "out", "protecting"]


def limit_files(size):
    """Make a write that would make a file longer fail, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.fixture
def divided(monkeypatch, folder):
    """Divide the work into chunks, buckets, portions and parts, and write a first result."""
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: 1_000)
    monkeypatch.setattr(files, "count_buckets", lambda records, memory, workers: 3)
    monkeypatch.setattr(files, "max_records_of_results", lambda memory, workers, weight: 3_000)
    monkeypatch.setattr(run, "_PART", 2_000)
    pg.protect_parquet(folder / "in", folder / "out", pg.Promesse(200))
    return folder


def has_no_room(folder, work):
    """Return whether work fails for lack of space; then it says so, and leaves what was there."""
    before, words = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}, None
    try:
        work()
    except OSError as error:
        words = f"{errno.errorcode[error.errno]}: {error}"
    finally:
        limit_files(resource.RLIM_INFINITY)
    if words is not None:
        assert re.fullmatch("EFBIG: The work in .* stopped: File too large. Nothing was written.", words)
        assert names_in(folder) == ["in", "out"]
        assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before
    return words is not None


@pytest.mark.parametrize("kind", ["protect", "publish"])
def test_a_full_disk_at_any_write_leaves_the_old_folder_and_nothing_else(divided, kind):
    def work():
        limit_files(size)
        if kind == "publish":
            pg.publish_parquet(divided / "in", divided / "out", pg.Promesse(20), tz="UTC", force=True)
        else:
            pg.protect_parquet(divided / "in", divided / "out", pg.Promesse(5), force=True)

    size, failed = 64, 0
    while has_no_room(divided, work):
        size, failed = 2 * size, failed + 1
    assert failed > 5


@pytest.mark.parametrize("size", [1_000, 30_000, 100_000])
def test_a_full_disk_of_a_pool_of_processes_is_one_sentence(divided, size):
    with ProcessPoolExecutor(2, mp_context=CONTEXT, initializer=limit_files, initargs=(size,)) as executor:
        choices = {"force": True, "executor": executor}
        assert has_no_room(
            divided, lambda: pg.protect_parquet(divided / "in", divided / "out", pg.Promesse(5), **choices)
        )
