"""JSON as text, where reading forgets what is said before: of two equal keys, and of long numbers."""

import json
from collections.abc import Callable
from typing import Any


def read_strictly(text: str, *, twice: set[str], number: Callable[[str], None] | None = None) -> Any:
    """Read JSON; keys that an object names twice go to `twice`, and numbers as they are written to `number`."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            keys = [key for key, _ in pairs]
            twice.update(key for key in content if keys.count(key) > 1)
        return content

    def heard(read: Callable[[str], Any]) -> Callable[[str], Any]:
        def reading(digits: str) -> Any:
            if number is not None:
                number(digits)
            return read(digits)

        return reading

    return json.loads(text, object_pairs_hook=once, parse_float=heard(float), parse_int=heard(int))
