"""Processes that have imported the package and done nothing else.

They are forks of one process that imports it once, which takes as long as a hundred tests.
"""

import multiprocessing
import os
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

METHODS = multiprocessing.get_all_start_methods()
CONTEXT = multiprocessing.get_context("forkserver" if "forkserver" in METHODS else "spawn")
# The last is what numba imports with the first loop, which takes long.
CONTEXT.set_forkserver_preload(["promesse_geo.cli.commands", "promesse_geo.io.writers", "numba.np.arraymath"])


@dataclass(frozen=True)
class Ended:
    """What a process that ended has written."""

    returncode: int
    stdout: str
    stderr: str


class Fresh:
    """A process that runs code in a folder; what it writes goes to files in another one."""

    def __init__(self, code: str, folder: Path, *words: object, output: Path) -> None:
        self._files = [output / "stdout", output / "stderr"]
        arguments = textwrap.dedent(code), str(folder), ["-c", *map(str, words)], *map(str, self._files)
        self.process = CONTEXT.Process(target=_run, args=arguments)
        self.process.start()

    def wait(self, seconds: float | None = None) -> Ended:
        """Wait until the process ends."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.process.kill()
            raise TimeoutError(f"the process did not end within {seconds} s")
        texts = [file.read_text(encoding="utf-8") if file.exists() else "" for file in self._files]
        return Ended(self.process.exitcode, *texts)


def _run(code: str, folder: str, words: list[str], *files: str) -> None:
    for number, file in enumerate(files, start=1):
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    sys.argv = words
    exec(compile(code, "<fresh>", "exec"), {"__name__": "__main__"})
