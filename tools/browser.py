"""A real browser without a window, spoken to through a pipe (the DevTools protocol): no driver, no port."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60  # seconds for any answer: machines that run tests are busy
# The browser reads orders from its descriptor 3 and answers on 4: copies beyond them, so that none is overwritten.
_START = """
import fcntl, os, sys
orders, answers = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 5) for end in sys.argv[1:3])
os.dup2(orders, 3), os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page at a time; what it asks for, and what goes wrong in it, is kept."""

    def __init__(self, program: str, folder: Path) -> None:
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        flags = [
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        ]
        flags += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        flags += ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
        start = [sys.executable, "-c", _START, str(orders), str(answers), program]
        self._process = subprocess.Popen(
            [*start, *flags, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(orders, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(orders)
        os.close(answers)
        self._number, self._rest, self._session = 0, b"", ""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._orders)  # without orders the browser ends
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def ask(self, method: str, *, patience: float = PATIENCE, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        order = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            order["sessionId"] = self._session
        sent = json.dumps(order).encode() + b"\0"
        while sent:
            sent = sent[os.write(self._orders, sent) :]
        answer = self._wait(lambda message: message.get("id") == order["id"], method, patience)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _wait(self, wanted: Any, what: str, patience: float = PATIENCE) -> dict[str, Any]:
        end = time.monotonic() + patience
        while True:
            message, found, rest = self._rest.partition(b"\0")
            if not found:
                if not select.select([self._answers], [], [], max(0, end - time.monotonic()))[0]:
                    raise TimeoutError(what)
                some = os.read(self._answers, 1 << 20)
                if not some:
                    raise RuntimeError(f"the browser ended while it was asked for {what}")
                self._rest += some
                continue
            self._rest = rest
            read = json.loads(message)
            self.events.append(read)
            if wanted(read):
                return read

    def open(self, page: Path | str, *, width: int = 1000, height: int = 700, dark: bool = False) -> None:
        """Open a file, the network off, or an address on this machine, and wait until it is loaded."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=theme)
        speed = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.ask("Network.emulateNetworkConditions", offline=isinstance(page, Path), **speed)
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri() if isinstance(page, Path) else page)
        if not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self._wait(lambda message: message.get("method") == "Page.loadEventFired", "load")

    def run(self, code: str, *, patience: float = PATIENCE) -> Any:
        """Run JavaScript in the page and return what it gives."""
        ways = {"returnByValue": True, "awaitPromise": True}
        answer = self.ask("Runtime.evaluate", patience=patience, expression=code, **ways)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def settle(self) -> None:
        """Let the page draw."""
        self.run("new Promise(done => setTimeout(() => requestAnimationFrame(() => done(1)), 400))")

    def picture(self) -> bytes:
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def move_mouse(self, x: float, y: float) -> None:
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    @property
    def errors(self) -> list[str]:
        """What the page complained of."""
        wrong = ("Runtime.exceptionThrown", "Log.entryAdded")
        said = [event for event in self.events if event.get("method") in wrong]
        said += [
            event
            for event in self.events
            if event.get("method") == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning")
        ]
        return [json.dumps(event["params"])[:2000] for event in said]

    @property
    def requests(self) -> list[str]:
        """Whom the page asked, itself and what is inside it left out."""
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        asked = [each["request"]["url"] for each in sent if each["request"]["url"] != each["documentURL"]]
        return [url[:200] for url in asked if not url.startswith("data:")]
