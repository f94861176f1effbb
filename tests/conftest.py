"""How the suite runs: hypothesis profiles, and the shared folder and real data where they are there."""

import os
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait leave the cores to the other workers

import numba
import pytest
from browser import Browser, find_browser
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
COMPILED = not numba.config.DISABLE_JIT

# "ci" gives every run the same examples; HYPOTHESIS_PROFILE=hunt looks for new ones.
_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large)
settings.register_profile(
    "ci",
    derandomize=True,
    print_blob=True,
    deadline=None,
    database=None,
    max_examples=60 if COMPILED else 30,
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what goes through the whole made-up city where loops are not compiled; the compiled run has it all."""
    for item in items:
        if not COMPILED and (item.get_closest_marker("whole_city") or "paper/experiment.py" in item.nodeid):
            item.add_marker(
                pytest.mark.skip(reason="the whole city is too much for plain Python (NUMBA_DISABLE_JIT=1)")
            )


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder shared by everyone who works on the project, beside the repository."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("there is no ../shared folder beside the repository")
    return folder


@pytest.fixture(scope="session")
def cabspotting_archive() -> Path:
    """Return the archive of the real Cabspotting data; too much for kernels that are not compiled."""
    if not COMPILED:
        pytest.skip("the real Cabspotting data is too much for plain Python (NUMBA_DISABLE_JIT=1)")
    archive = ROOT.parent / "shared" / "data" / "cabspottingdata.tar.gz"
    if not archive.is_file():
        pytest.skip("there is no ../shared/data/cabspottingdata.tar.gz")
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
    """What makes a folder one that cannot be listed: who runs the tests may have all rights."""

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
