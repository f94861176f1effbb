"""A headless Chromium, controlled over pipes with the DevTools protocol: no driver and no port."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 300  # seconds for any reply, so that a busy machine is no error
# The browser reads commands from descriptor 3 and replies on 4: first copy both beyond these, so that none is lost.
_START = """
import fcntl, os, sys
commands, replies = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 5) for end in sys.argv[1:3])
os.dup2(commands, 3), os.dup2(replies, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
# Canvases and tooltips follow within a few frames. What never ends, such as a spinner, is not waited for.
_STILL = """new Promise(done => {
  const begin = performance.now();
  let changed = begin;
  const observer = new MutationObserver(() => { changed = performance.now(); });
  observer.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  const moves = each => each.playState === "running" && each.effect?.getComputedTiming().endTime < Infinity;
  const look = () => {
    const now = performance.now();
    if (document.getAnimations().some(moves)) changed = now;
    if (now - changed < 120 && now - begin < 5000) return requestAnimationFrame(look);
    observer.disconnect();
    done(1);
  };
  requestAnimationFrame(look);
})"""
_NAVIGATED = ("navigated or closed", "context was destroyed", "Cannot find context", "context with specified id")


class NavigatedError(RuntimeError):
    """The page was replaced by another one while it ran code."""


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page at a time. Its requests and errors are recorded."""

    def __init__(self, program: str, folder: Path) -> None:
        commands, self._commands = os.pipe()
        self._replies, replies = os.pipe()
        flags = [
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
            "--disable-sync",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            "--remote-debugging-pipe",
        ]
        flags += ["--no-sandbox"] if os.geteuid() == 0 else []  # root cannot have one
        start = [sys.executable, "-c", _START, str(commands), str(replies), program]
        self._process = subprocess.Popen(
            [*start, *flags, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(commands, replies),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(replies)
        self._number, self._buffer, self._session = 0, b"", ""
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
        os.close(self._commands)  # the browser ends when its pipe is closed
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._replies)

    def ask(self, method: str, *, patience: float = PATIENCE, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        unsent = json.dumps(command).encode() + b"\0"
        while unsent:
            unsent = unsent[os.write(self._commands, unsent) :]
        reply = self._receive(lambda message: message.get("id") == command["id"], method, patience)
        if "error" in reply:
            text = f"{method}: {reply['error']}"
            raise (NavigatedError if any(words in text for words in _NAVIGATED) else RuntimeError)(text)
        return reply["result"]

    def _receive(self, matches: Callable[[dict[str, Any]], bool], what: str, patience: float) -> dict[str, Any]:
        """Receive messages until one matches."""
        end = time.monotonic() + patience
        while True:
            message, complete, rest = self._buffer.partition(b"\0")
            if not complete:
                if not select.select([self._replies], [], [], max(0, end - time.monotonic()))[0]:
                    raise TimeoutError(what)
                received = os.read(self._replies, 1 << 20)
                if not received:
                    raise RuntimeError(f"the browser ended during {what}")
                self._buffer += received
                continue
            self._buffer = rest
            event = json.loads(message)
            self.events.append(event)
            if matches(event):
                return event

    def open(self, page: Path | str, *, width: int = 1000, height: int = 700, dark: bool = False) -> None:
        """Open a file without network, or a URL on this machine, and wait until it is loaded."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=theme)
        speed = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.ask("Network.emulateNetworkConditions", offline=isinstance(page, Path), **speed)
        url = page.as_uri() if isinstance(page, Path) else page
        reply = self.ask("Page.navigate", url=url)
        if error := reply.get("errorText"):
            raise RuntimeError(f"{url}: {error}")
        self._forget_before(reply["loaderId"])
        self.wait_for("document.readyState === 'complete'")

    def _forget_before(self, loader: str) -> None:
        """Wait until a page has replaced the one before it, which may log errors when it is left, and forget those."""

        def replaced(event: dict[str, Any]) -> bool:
            frame = event.get("params", {}).get("frame", {})
            return event.get("method") == "Page.frameNavigated" and frame.get("loaderId") == loader

        if not any(map(replaced, self.events)):
            self._receive(replaced, "navigation", PATIENCE)
        own = next(number for number, event in enumerate(self.events) if replaced(event))
        requests = [event for event in self.events[:own] if event.get("params", {}).get("loaderId") == loader]
        self.events[:own] = requests

    def run(self, code: str, *, patience: float = PATIENCE) -> Any:
        """Run JavaScript in the page and return its value; a promise is awaited."""
        options = {"returnByValue": True, "awaitPromise": True}
        reply = self.ask("Runtime.evaluate", patience=patience, expression=code, **options)
        if "exceptionDetails" in reply:
            raise RuntimeError(json.dumps(reply["exceptionDetails"])[:2000])
        return reply["result"].get("value")

    def wait_for(self, condition: str, *, patience: float = PATIENCE) -> Any:
        """Wait until a JavaScript expression is true in the page, or in one that replaces it; return its value."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                if value := self.run(condition):
                    return value
            except NavigatedError:
                pass
            time.sleep(0.05)
        raise TimeoutError(condition)

    def settle(self) -> None:
        """Wait until the page has drawn, no animation runs, and no element has changed for 0.12 s."""
        self.run(_STILL)

    def picture(self) -> bytes:
        """Return a screenshot as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def move_mouse(self, x: float, y: float) -> None:
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    @property
    def errors(self) -> list[str]:
        """Errors and warnings of the page since it was opened."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
        found = [event for event in self.events if event.get("method") in kinds]
        found += [
            event
            for event in self.events
            if event.get("method") == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning")
        ]
        return [json.dumps(event["params"])[:2000] for event in found]

    @property
    def requests(self) -> list[str]:
        """URLs that the page requested, except for itself and embedded data."""
        sent = [event["params"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        urls = [each["request"]["url"] for each in sent if each["request"]["url"] != each["documentURL"]]
        return [url[:200] for url in urls if not url.startswith("data:")]
