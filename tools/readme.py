"""Print a command of the README: `python tools/readme.py demo` or `python tools/readme.py tests`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def commands() -> dict[str, str]:
    """Return the README's two commands: the first shell block runs the demo, the second the tests."""
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return dict(zip(("demo", "tests"), (block.strip() for block in blocks), strict=False))


if __name__ == "__main__":
    sys.stdout.write(commands()[sys.argv[1]] + "\n")
