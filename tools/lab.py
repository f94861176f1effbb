"""A JupyterLab server on the loopback interface, for a browser to open notebooks in."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from browser import PATIENCE, Browser, NavigatedError

_ATTEMPTS = 5
# The page exposes its application, and JupyterLab asks neither for news nor for updates.
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
# What is optional for JupyterLab and takes seconds to import is left out.
_START = "import sys; sys.modules['rfc3987_syntax'] = None; from jupyterlab.labapp import main; main()"
_FOLDERS = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
_READY = """(async () => {
  const panel = window.jupyterapp?.shell.currentWidget;
  if (!panel?.sessionContext?.isReady || !panel.sessionContext.session?.kernel) return false;
  await panel.revealed;
  await panel.sessionContext.session.kernel.info;
  jupyterapp.shell.collapseLeft();
  return true;
})()"""


class Lab:
    """A JupyterLab server for the notebooks of one folder, with its settings and logs in another one."""

    def __init__(self, notebooks: Path, folder: Path) -> None:
        folders = {name: str(folder / name.lower()) for name in _FOLDERS}
        settings = {"jupyter_lab_config.json": _SETTINGS, _QUIET: {"checkForUpdates": False, "fetchNews": "false"}}
        for name, content in settings.items():
            file = Path(folders["JUPYTER_CONFIG_DIR"], name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content), encoding="utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        flags = ["--ip=127.0.0.1", f"--port={port}", f"--ServerApp.root_dir={notebooks}"]
        flags += ["--allow-root"] if os.geteuid() == 0 else []
        self._log = folder / "jupyterlab.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, *flags],
                env={name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")} | folders,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.address = self._address(Path(folders["JUPYTER_RUNTIME_DIR"]) / f"jpserver-{self._process.pid}.json")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()  # ends its kernels as well
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _address(self, file: Path) -> str:
        """Return the URL of the server, which it writes to a file when it is ready."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            if file.exists() and (text := file.read_text(encoding="utf-8")):
                return json.loads(text)["url"]
            time.sleep(0.1)
        self.__exit__(None, None, None)
        raise RuntimeError(f"JupyterLab did not start:\n{self._log.read_text(encoding='utf-8')[-2000:]}")

    def open(
        self, browser: Browser, notebook: str, *, width: int, height: int, dark: bool = False, run: bool = False
    ) -> None:
        """Open a notebook, wait until it is drawn and its kernel is ready, and perhaps run all cells."""
        for attempt in range(_ATTEMPTS):
            try:
                browser.open(f"{self.address}lab/tree/{notebook}?reset", width=width, height=height, dark=dark)
                browser.wait_for(_READY)
                if run:
                    browser.run("jupyterapp.commands.execute('notebook:run-all-cells').then(() => 1)")
                browser.settle()
            except NavigatedError:  # JupyterLab replaced its page
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return
