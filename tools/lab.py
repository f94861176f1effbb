"""JupyterLab itself, on loopback, for the browser to open notebooks in."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from browser import PATIENCE, Browser

# The page lets itself be spoken to, and nobody is asked for news nor whether to ask.
_QUIET = "lab/user-settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
_SETTINGS = {
    "IdentityProvider": {"token": ""},
    "LabApp": {
        "check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "expose_app_in_browser": True,
        "extension_manager": "readonly",
        "open_browser": False,
    },
}
_HOMES = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")


class Lab:
    """A JupyterLab on the notebooks of one folder, which reads and writes settings and notes in another alone."""

    def __init__(self, notebooks: Path, folder: Path) -> None:
        homes = {name: str(folder / name.lower()) for name in _HOMES}
        settings = {"jupyter_lab_config.json": _SETTINGS, _QUIET: {"checkForUpdates": False, "fetchNews": "false"}}
        for name, content in settings.items():
            file = Path(homes["JUPYTER_CONFIG_DIR"], name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content), encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        flags = ["--ip=127.0.0.1", f"--port={port}", f"--ServerApp.root_dir={notebooks}"]
        flags += ["--allow-root"] if os.geteuid() == 0 else []
        self._said = folder / "jupyterlab.log"
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *flags],
                env={name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")} | homes,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        self.address = self._started(Path(homes["JUPYTER_RUNTIME_DIR"]) / f"jpserver-{self._process.pid}.json")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()  # it ends its kernels
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _started(self, note: Path) -> str:
        """Where it answers, which it notes once it does."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            if note.exists() and (text := note.read_text(encoding="utf-8")):
                return json.loads(text)["url"]
            time.sleep(0.1)
        self.__exit__(None, None, None)
        raise RuntimeError(f"JupyterLab did not start:\n{self._said.read_text(encoding='utf-8')[-2000:]}")

    def open(self, browser: Browser, notebook: str, *, width: int, height: int, dark: bool = False) -> None:
        """Open a notebook and wait until it is drawn and its kernel answers."""
        browser.open(f"{self.address}lab/tree/{notebook}?reset", width=width, height=height, dark=dark)
        browser.run(
            "(async () => {"
            "const pause = () => new Promise(done => setTimeout(done, 100));"
            "while (!window.jupyterapp) await pause();"
            "await jupyterapp.restored;"
            "while (!jupyterapp.shell.currentWidget?.sessionContext) await pause();"
            "const {sessionContext, revealed} = jupyterapp.shell.currentWidget;"
            "await revealed; await sessionContext.ready; await sessionContext.session.kernel.info;"
            "jupyterapp.shell.collapseLeft();"
            "return 1; })()"
        )
        browser.settle()

    def run_all(self, browser: Browser) -> None:
        """Run all cells of the open notebook, as its menu does."""
        browser.run("jupyterapp.commands.execute('notebook:run-all-cells').then(() => 1)", patience=240)
        browser.settle()
