"""Configuration of the tests: hypothesis profiles, compiled loops, and real data if available."""

import contextlib
import functools
import gc
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Workers and processes share the bytecode of the package and of rewritten assertions in the folders in which they share
# the machine code of loops.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads leave the cores to other workers
sys.modules.setdefault("rfc3987_syntax", None)  # optional for nbformat, and takes seconds to import

import geopandas as gpd
import numba
import numpy as np
import pytest
from browser import Browser, find_browser
from fresh import Ended, Fresh
from hypothesis import HealthCheck, settings
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from parquet_folders import divide
from pyproj import CRS

import promesse_geo as pg

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

ROOT = Path(__file__).resolve().parents[1]
COMPILED = not numba.config.DISABLE_JIT

# In plain Python, only files that test loops run: those that import the kernels or slow twins.
_ABOUT_LOOPS = re.compile(
    r"^(import|from) (naive(?!_gpx)|promesse_geo import kernels|promesse_geo\.kernels import sorting)", re.MULTILINE
)
if not COMPILED:
    collect_ignore = [
        path.name
        for path in Path(__file__).parent.glob("test_*.py")
        if not _ABOUT_LOOPS.search(path.read_text(encoding="utf-8"))
    ]

# "quick" and "ci" use the same examples in every run; HYPOTHESIS_PROFILE=hunt searches for new ones.
_PROFILES = {"quick": 10 if COMPILED else 12, "ci": 60 if COMPILED else 12, "hunt": 2000 if COMPILED else 200}
for _profile, _examples in _PROFILES.items():
    settings.register_profile(
        _profile,
        derandomize=_profile != "hunt",
        print_blob=True,
        deadline=None,
        database=None,
        max_examples=_examples,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def examples(number: int) -> settings:
    """Return settings for a test that needs another number of examples than 60 in the profile "ci"."""
    profile = settings()
    return settings(profile, max_examples=max(1, round(number * profile.max_examples / 60)))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Delete compiled loops that are older than any kernel: numba does not notice changes in files that they import."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    folder = ROOT / "promesse_geo" / "kernels"
    changed = max(file.stat().st_mtime for file in folder.glob("*.py"))
    for file in folder.glob("__pycache__/*.nb[ic]"):
        if file.stat().st_mtime < changed:
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def small_paper_city(*, users: int = 6, days: int = 1) -> Iterator[pg.Traces]:
    """Let `reproduce` take a smaller city than that of its documentation, of phones, and return it."""
    small = pg.make_city(users=users, days=days, seed=0, as_traces=True, recorder="phone")

    def make_city(**named: Any) -> pg.Traces:
        assert named == {"users": 50, "days": 7, "seed": 0, "as_traces": True}
        return small

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("promesse_geo.paper.experiment.make_city", make_city)
        yield small


def pytest_collection_finish() -> None:
    """Spare the garbage collector the objects of imported modules, which are many and stay."""
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without compiled loops, run neither slow tests nor docstrings; examples in docstrings protect prepared data.

    That of `reproduce` takes a smaller city.
    """
    left_out = set()
    for item in items:
        is_docstring = isinstance(item, pytest.DoctestItem)
        if is_docstring:
            item.add_marker(pytest.mark.filterwarnings("error:.*The data are not prepared"))
            if item.name.endswith(".reproduce"):
                item.runtest = small_paper_city()(item.runtest)
        if not COMPILED and (is_docstring or item.get_closest_marker("compiled")):
            left_out.add(item)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker tests in a row, so that it makes the data of a file once; idle ones take tests of others.

    This is `--dist worksteal`, by default.
    """
    from xdist.scheduler import WorkStealingScheduling  # noqa: PLC0415  # not installed everywhere

    return WorkStealingScheduling(config, log) if config.option.dist == "load" else None


@pytest.fixture(scope="session", autouse=True)
def compile_once(tmp_path_factory):
    """Let one worker compile a loop while others that need it wait for its machine code."""
    if fcntl is None or not COMPILED or "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    folder = tmp_path_factory.getbasetemp().parent  # of all workers
    compile_loop = Dispatcher.compile

    def compile_alone(self: Dispatcher, signature: Any) -> Any:
        function = self.py_func
        if not function.__module__.startswith("promesse_geo."):
            return compile_loop(self, signature)
        # Threads wait for numba's lock first: otherwise one could hold it and wait for a file that another one locked.
        with global_compiler_lock, (folder / f"{function.__module__}.{function.__qualname__}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return compile_loop(self, signature)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", compile_alone)
        yield


@pytest.fixture(scope="session", autouse=True)
def synchronize_nothing():
    """Check descriptors, but do not wait for the disk: thousands of files are written, and none must survive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: os.fstat(file if isinstance(file, int) else file.fileno()) and None)
        yield


@pytest.fixture(scope="session", autouse=True)
def make_each_city_once():
    """Return a copy of a city that a test has made before; `promesse_geo.synthetic.make_city` makes a new one."""
    make_once = functools.lru_cache(maxsize=100)(pg.make_city)

    def copied(part: Any) -> Any:
        return part if isinstance(part, pg.Traces) else part.copy()  # traces cannot be changed

    @functools.wraps(pg.make_city)
    def make_city(*arguments: Any, **named: Any) -> Any:
        made = make_once(*arguments, **named)
        return tuple(map(copied, made)) if isinstance(made, tuple) else copied(made)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pg, "make_city", make_city)
        yield


@pytest.fixture(scope="session", autouse=True)
def read_each_crs_once():
    """Let GeoPandas read the CRS of files once; the metadata that it writes takes PROJ 25 ms."""
    read, read_text = CRS.from_user_input.__func__, functools.cache(CRS)

    def from_user_input(kind: type[CRS], value: Any, **named: Any) -> CRS:
        if isinstance(value, dict) and "type" in value and not named:
            return read_text(json.dumps(value))
        return read(kind, value, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CRS, "from_user_input", classmethod(from_user_input))
        yield


@pytest.fixture(scope="session")
def cabspotting_archive() -> Path:
    """Return the archive of the real Cabspotting data."""
    archive = Path(os.environ.get("PROMESSE_CABSPOTTING") or ROOT.parent / "shared" / "data" / "cabspottingdata.tar.gz")
    if not archive.is_file():
        pytest.skip("PROMESSE_CABSPOTTING does not name the archive (cabspottingdata.tar.gz)")
    return archive


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Start one browser for all tests."""
    program = find_browser()
    if program is None:
        pytest.skip("no chromium or google-chrome on the PATH")
    with Browser(program, tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="session")
def city() -> gpd.GeoDataFrame:
    """Return a day of nine phones."""
    return pg.make_city(users=9, days=1, recorder="phone")


@pytest.fixture(scope="session")
def safe(city) -> gpd.GeoDataFrame:
    """Return the day of nine phones, protected."""
    return city.promesse.smooth(200)


@pytest.fixture(scope="session")
def small_city(city) -> gpd.GeoDataFrame:
    """Return a day of three phones."""
    return city[city["user"] < "user-003"]


@pytest.fixture(scope="session")
def small_safe(safe) -> gpd.GeoDataFrame:
    """Return the day of three phones, protected."""
    return safe[safe["user"] < "user-003"]


@pytest.fixture(scope="session")
def shuffled_city() -> gpd.GeoDataFrame:
    """Return 10,000 records of some users on three days in no order, with many equal times."""
    frame = pg.make_city(users=9, days=3, seed=4, recorder="phone")
    frame = frame.assign(time=frame["time"].dt.floor("6min"))
    return frame.iloc[np.random.default_rng(5).permutation(len(frame))[:10_000]].reset_index(drop=True)


@pytest.fixture
def many_chunks(monkeypatch):
    """Divide the work into many chunks and buckets, and make keys known."""
    divide(monkeypatch)


def saved(drawn, folder: Path) -> Path:
    drawn.save(str(folder / "map.html"))
    return folder / "map.html"


@pytest.fixture
def look(browser, tmp_path):
    """Open a map. After the test the page must have logged no errors and sent no requests."""

    def opened(drawn, **named) -> Browser:
        browser.open(drawn if isinstance(drawn, Path) else saved(drawn, tmp_path), **named)
        browser.settle()
        return browser

    yield opened
    assert browser.errors == []
    assert browser.requests == []


@pytest.fixture
def lock(monkeypatch):
    """Return a function that makes a folder unreadable, also for root."""

    def lock_folder(locked: Path) -> None:
        def refusing(listed):
            def refuse(path="."):
                if os.fspath(path) == str(locked):
                    raise PermissionError(13, "Permission denied", str(locked))
                return listed(path)

            return refuse

        monkeypatch.setattr(os, "scandir", refusing(os.scandir))
        monkeypatch.setattr(os, "listdir", refusing(os.listdir))

    return lock_folder


@pytest.fixture
def start_fresh(tmp_path_factory):
    """Return a function that starts a process which has imported the package: start_fresh(code, folder, *words)."""

    def start(code: str, folder: Path, *words: object) -> Fresh:
        return Fresh(code, folder, *words, output=tmp_path_factory.mktemp("fresh"))

    return start


@pytest.fixture
def run_fresh(start_fresh):
    """Return a function that runs code in a process which has imported the package, and waits for it."""

    def run(code: str, folder: Path, *words: object) -> Ended:
        return start_fresh(code, folder, *words).wait()

    return run
