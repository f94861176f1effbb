"""Configuration of the tests: hypothesis profiles, compiled loops, and real data if available."""

import os
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads leave the cores to other workers

import numba
import pytest
from browser import Browser, find_browser
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
COMPILED = not numba.config.DISABLE_JIT

# "ci" uses the same examples in every run; HYPOTHESIS_PROFILE=hunt searches for new ones.
_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile(
    "ci",
    derandomize=True,
    print_blob=True,
    deadline=None,
    database=None,
    max_examples=60 if COMPILED else 12,
    suppress_health_check=_QUIET,
)
settings.register_profile(
    "hunt",
    print_blob=True,
    deadline=None,
    database=None,
    max_examples=2000 if COMPILED else 200,
    suppress_health_check=_QUIET,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Delete compiled loops that are older than any kernel: numba does not notice changes in files that they import."""
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return
    folder = ROOT / "promesse_geo" / "kernels"
    changed = max(file.stat().st_mtime for file in folder.glob("*.py"))
    for file in folder.glob("__pycache__/*.nb[ic]"):
        if file.stat().st_mtime < changed:
            file.unlink(missing_ok=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that are too slow if loops are not compiled; examples in docstrings protect prepared data."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.filterwarnings("error:.*The data are not prepared"))
        if not COMPILED and (
            item.get_closest_marker("compiled") or item.nodeid.startswith("promesse_geo/paper/experiment.py")
        ):
            item.add_marker(pytest.mark.skip(reason="too slow in plain Python (NUMBA_DISABLE_JIT=1)"))


@pytest.fixture(scope="session")
def cabspotting_archive() -> Path:
    """Return the archive of the real Cabspotting data."""
    if not COMPILED:
        pytest.skip("the real Cabspotting data is too slow in plain Python (NUMBA_DISABLE_JIT=1)")
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
