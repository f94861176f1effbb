"""Runs over folders of Parquet: their disk, their targets, and those that fail, are killed and go on."""

import errno
import os
import shutil
import stat
from dataclasses import replace

import numpy as np
import pytest
from parquet_folders import IGNORED, PROMESSE, TOKEN, Now, Watched, assert_equal, content_of, divide, load, save

import promesse_geo as pg
from promesse_geo.bulk import files, folders, job, memory, run
from promesse_geo.bulk.runs import Spill

pytestmark = IGNORED
REPLACING = pg.Promesse(300)


@pytest.fixture(scope="module")
def results(shuffled_city, tmp_path_factory):
    """Return a folder with an input, a result, and another one that replaces it."""
    folder = tmp_path_factory.mktemp("results")
    save(shuffled_city.iloc[:1_000], folder / "in", number=1)
    with pytest.MonkeyPatch.context() as patch:
        divide(patch)
        for name, mechanism in (("out", PROMESSE), ("new", REPLACING)):
            pg.protect_parquet(folder / "in", folder / name, mechanism, keep_users=True)
    assert content_of(folder / "out") != content_of(folder / "new")
    return folder


@pytest.fixture
def replace_out(results, many_chunks, tmp_path):
    """Return a function that replaces a copy of the result."""
    shutil.copytree(results / "out", tmp_path / "out")

    def work(mechanism=REPLACING, **choices):
        pg.protect_parquet(results / "in", tmp_path / "out", mechanism, keep_users=True, **choices)

    return work


def test_true_data_on_disk_are_private_and_go_away(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city, tmp_path / "in")
    seen = {}

    def look():
        work = tmp_path / "out.partial"
        seen.update({path: stat.S_IMODE(path.stat().st_mode) for path in (work, *work.rglob("*"))})

    pg.protect_parquet(tmp_path / "in", tmp_path / "out", Watched(look))
    assert any(path.name.startswith("chunk-") for path in seen)
    assert seen[tmp_path / "out.partial"] == 0o700
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, MemoryError])
def test_nothing_is_left_when_the_work_fails(shuffled_city, many_chunks, tmp_path, error):
    def fail():
        raise error

    save(shuffled_city, tmp_path / "in")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(error):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", Watched(fail), scratch=scratch)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "scratch"]
    assert not list(scratch.iterdir())


def kill_in(step, number, monkeypatch):
    """End the process without clean-up when a step begins."""
    work = getattr(run, step)

    def dying(job, each, *rest):
        if each == number:
            os._exit(9)
        return work(job, each, *rest)

    dying.__name__ = step
    monkeypatch.setattr(run, step, dying)


@pytest.mark.parametrize(("step", "number"), [("scatter", 3), ("gather", 2), ("write_names", 1)])
def test_a_killed_run_goes_on_where_it_was(shuffled_city, many_chunks, monkeypatch, tmp_path, step, number):
    save(shuffled_city, tmp_path / "in")
    pid = os.fork()
    if not pid:
        kill_in(step, number, monkeypatch)
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, executor=Now())
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "out.partial").exists()
    done = []
    for name in ("scatter", "gather", "write_names"):
        work = getattr(run, name)

        def counting(job, each, *rest, work=work, name=name):
            done.append((name, each))
            return work(job, each, *rest)

        counting.__name__ = name
        monkeypatch.setattr(run, name, counting)
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, executor=Now())
    assert_equal(load(tmp_path / "out"), pg.pseudonymize(PROMESSE.protect(shuffled_city), seed=TOKEN))
    steps = ["scatter", "gather", "write_names"]
    assert not [name for name, _ in done if steps.index(name) < steps.index(step)]
    assert (step, number) in done
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("change", ["mechanism", "seed", "file", "option"])
def test_another_call_starts_clean(shuffled_city, many_chunks, monkeypatch, tmp_path, change):
    save(shuffled_city, tmp_path / "in")
    mechanism = pg.Promesse(200, ends=300, seed="a")
    pid = os.fork()
    if not pid:
        kill_in("gather", 2, monkeypatch)
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, executor=Now())
        os._exit(0)
    os.waitpid(pid, 0)
    keep_users = change == "option"
    if change == "mechanism":
        mechanism = pg.Promesse(100)
    if change == "seed":
        mechanism = replace(mechanism, seed="b")
    data = save(shuffled_city.iloc[1_000:], tmp_path / "in") if change == "file" else shuffled_city
    pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, executor=Now(), keep_users=keep_users)
    expected = mechanism.protect(data)
    expected = expected if keep_users else pg.pseudonymize(expected, seed=TOKEN)
    found = load(tmp_path / "out")
    assert_equal(found.sort_values("user", kind="stable", ignore_index=True) if keep_users else found, expected)


def test_two_runs_do_not_write_the_same_target(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city, tmp_path / "in")
    words = []

    def again():
        if words:
            return
        with pytest.raises(FileExistsError, match="Another run is writing") as caught:
            pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
        words.append(str(caught.value))

    pg.protect_parquet(tmp_path / "in", tmp_path / "out", Watched(again))
    assert words
    assert len(load(tmp_path / "out")) == len(PROMESSE.protect(shuffled_city))


def test_a_full_disk_is_one_sentence(shuffled_city, many_chunks, monkeypatch, tmp_path):
    save(shuffled_city, tmp_path / "in")

    def full(*given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/secret/temporary/file")

    monkeypatch.setattr(Spill, "write", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert caught.value.errno == errno.ENOSPC
    assert "secret" not in str(caught.value)
    assert "The work on 10,000 records needs about 240 kB of disk in" in str(caught.value)
    with pytest.raises(OSError, match=r"No space left on device.* needs about 480 kB of disk in"):
        pg.measure_parquet(tmp_path / "in", tmp_path / "in", [pg.Compression()])
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_too_little_room_is_said_before_the_work(shuffled_city, tmp_path, monkeypatch):
    save(shuffled_city, tmp_path / "in")
    monkeypatch.setattr(memory.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 10**5})())
    with pytest.raises(OSError, match=r"needs about [1-9][\d,]* kB of disk"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_trace_that_does_not_fit_is_named_before_it_is_protected(shuffled_city, many_chunks, monkeypatch, tmp_path):
    long = shuffled_city.assign(user=np.where(shuffled_city["user"] < "user-006", "user-000", shuffled_city["user"]))
    save(long, tmp_path / "in")
    monkeypatch.setattr(memory, "_RECORD", 400_000)
    with pytest.raises(MemoryError, match="largest trace has") as caught:
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", Watched(lambda: pytest.fail("protected")))
    assert f"{(long['user'] == 'user-000').sum():,} records" in str(caught.value)


def test_only_a_folder_of_parts_is_replaced(results, replace_out, tmp_path):
    with pytest.raises(FileExistsError, match="already exists"):
        replace_out()
    replace_out(force=True)
    assert content_of(tmp_path / "out") == content_of(results / "new")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="not replaced"):
        replace_out(force=True)
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_big_buckets_run_alone():
    work = run.Run(job=job.Job, done=None, executor=None, workers=2, memory=10**9, drops=False, records=0)
    assert work._has_room([], 10**9)
    assert work._has_room([1_000_000], 1_900_000)
    assert not work._has_room([1_000_000], 2_600_000)
    assert not work._has_room([1, 1], 1)


@pytest.mark.parametrize("kind", ["other files", "file", "link"])
def test_a_working_folder_that_is_not_ours_is_left_alone(shuffled_city, many_chunks, tmp_path, kind):
    save(shuffled_city.iloc[:500], tmp_path / "in", number=1)
    work, other = tmp_path / "out.partial", tmp_path / "other"
    other.mkdir()
    if kind == "link":
        work.symlink_to(other)
    elif kind == "file":
        work.write_text("mine")
    else:
        work.mkdir()
        (work / "thesis.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="is no folder of a run"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE)
    assert os.path.lexists(work)
    assert not list(other.iterdir())
    assert kind != "other files" or (work / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("target", ["in", "in/out", "."])
def test_the_target_is_apart_from_the_source(shuffled_city, many_chunks, tmp_path, target):
    save(shuffled_city.iloc[:500], tmp_path / "in", number=1)
    (tmp_path / "in" / "000.parquet").rename(tmp_path / "in" / "part-000.parquet")
    with pytest.raises((ValueError, FileExistsError)):
        pg.protect_parquet(tmp_path / "in", tmp_path / target, PROMESSE, force=True)
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["part-000.parquet"]


def test_parts_of_others_are_not_replaced(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city.iloc[:500], tmp_path / "in", number=1)
    save(shuffled_city.iloc[:500], tmp_path / "out", number=1)
    (tmp_path / "out" / "000.parquet").rename(tmp_path / "out" / "part-00000.parquet")
    with pytest.raises(FileExistsError, match="not replaced"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, force=True)


def test_targets_of_one_name_do_not_share_their_scratch(shuffled_city, many_chunks, tmp_path):
    data = save(shuffled_city.iloc[:1_000], tmp_path / "in")
    for name in ("x", "y", "scratch"):
        (tmp_path / name).mkdir()
    places = {"scratch": tmp_path / "scratch", "keep_users": True}

    def other():
        if not (tmp_path / "y" / "out").exists():
            pg.protect_parquet(tmp_path / "in", tmp_path / "y" / "out", PROMESSE, **places)

    pg.protect_parquet(tmp_path / "in", tmp_path / "x" / "out", Watched(other), executor=Now(), **places)
    for name in ("x", "y"):
        assert len(load(tmp_path / name / "out")) == len(PROMESSE.protect(data))
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("scratch", [False, True])
def test_what_a_run_left_that_was_killed_at_its_end_is_removed(shuffled_city, many_chunks, tmp_path, scratch):
    save(shuffled_city.iloc[:1_000], tmp_path / "in")
    (tmp_path / "scratch").mkdir()
    choices = {"scratch": tmp_path / "scratch"} if scratch else {}
    pid = os.fork()
    if not pid:
        rename = files.publish_folder
        files.publish_folder = lambda *given, **choices: (rename(*given, **choices), os._exit(9))
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, executor=Now(), **choices)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert (tmp_path / "out.partial").exists()
    with pytest.raises(FileExistsError, match="already exists"):
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", PROMESSE, **choices)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "scratch"]
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("scratch", [False, True])
@pytest.mark.usefixtures("many_chunks")
def test_names_may_be_as_long_as_the_file_system_allows(results, tmp_path, scratch):
    target = tmp_path / ("o" * 255)
    scratch = tmp_path if scratch else None
    pg.protect_parquet(results / "in", target, PROMESSE, keep_users=True, scratch=scratch)
    assert content_of(target) == content_of(results / "out")


def test_the_files_of_a_pattern_are_not_replaced(shuffled_city, many_chunks, tmp_path):
    save(shuffled_city.iloc[:2000], tmp_path / "in", number=1)
    pg.protect_parquet(tmp_path / "in", tmp_path / "parts", None, prepare={"tz": "UTC"})
    before = load(tmp_path / "parts")
    with pytest.raises(ValueError, match="originals would be lost"):
        pg.protect_parquet(str(tmp_path / "parts" / "*.parquet"), tmp_path / "parts", PROMESSE, force=True)
    assert_equal(load(tmp_path / "parts"), before)


STEPS = [(fast, step, after) for fast in (True, False) for step in range(2 if fast else 3) for after in (False, True)]


def stop_at(number, stop, monkeypatch, *, exchanges, after):
    """Call a function before or after a step of replacing a folder, which are numbered from 0."""
    done = []

    def wrapped(work):
        def step(*given):
            done.append(work)
            if len(done) != number + 1:
                return work(*given)
            result = work(*given) if after else None
            stop()
            return result

        return step

    monkeypatch.setattr(folders, "_exchange", wrapped(folders._exchange) if exchanges else lambda *paths: False)
    work, rename = folders.publish_folder, folders.Path.rename

    def publish(*given, **choices):
        with monkeypatch.context() as patch:
            patch.setattr(folders.Path, "rename", wrapped(rename))
            work(*given, **choices)

    monkeypatch.setattr(files, "publish_folder", publish)


@pytest.mark.parametrize(("exchanges", "step", "after"), STEPS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.EIO, "no more")])
def test_a_folder_is_whole_when_replacing_it_fails(
    results, replace_out, monkeypatch, tmp_path, exchanges, step, after, error
):
    def stop():
        raise error

    with monkeypatch.context() as patch:
        stop_at(step, stop, patch, exchanges=exchanges, after=after)
        with pytest.raises((KeyboardInterrupt, OSError)):
            replace_out(force=True)
    is_replaced = (step, after) >= ((0, True) if exchanges else (1, True))
    assert content_of(tmp_path / "out") == content_of(results / ("new" if is_replaced else "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(("exchanges", "step", "after"), STEPS)
@pytest.mark.parametrize("force", [False, True])
def test_a_folder_is_whole_after_a_run_that_was_killed_and_one_that_fails(
    results, replace_out, monkeypatch, tmp_path, exchanges, step, after, force
):
    pid = os.fork()
    if not pid:
        stop_at(step, lambda: os._exit(9), monkeypatch, exchanges=exchanges, after=after)
        replace_out(force=True, executor=Now())
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert (tmp_path / "out").exists() == (exchanges or (step, after) not in {(0, True), (1, False)})
    with pytest.raises((ValueError, FileExistsError)):  # no trace is as long
        replace_out(pg.Promesse(1e6), force=force)
    is_replaced = (step, after) >= ((0, True) if exchanges else (1, True))
    assert content_of(tmp_path / "out") == content_of(results / ("new" if is_replaced else "out"))
    assert not (tmp_path / "out.partial" / "replaced").exists()
    if force:
        assert not (tmp_path / "out.partial").exists()


def test_what_cannot_be_moved_back_is_kept(results, replace_out, monkeypatch, tmp_path):
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out").rename(tmp_path / "out.partial" / "replaced")

    def refuse(path, target):
        raise OSError(errno.EIO, "no more")

    with monkeypatch.context() as patch:
        patch.setattr(folders.Path, "rename", refuse)
        with pytest.raises(OSError, match="no more"), pytest.warns(UserWarning, match="could not be moved back"):
            replace_out(force=True)
    assert content_of(tmp_path / "out.partial" / "replaced") == content_of(results / "out")
    with pytest.raises(FileExistsError, match="already exists"):
        replace_out()
    assert content_of(tmp_path / "out") == content_of(results / "out")
