"""What the tests before publishing say."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from promesse_geo import check

PASSED, LOOK, FAILED, NOT_COMPARABLE = "passed", "look", "failed", "not comparable"


class Finding(NamedTuple):
    """What one test says, and why."""

    test: str
    verdict: str
    reason: str


def no_others(others: Sequence[Any]) -> Finding:
    """Say whether there are columns beside user, time and location."""
    if others:
        reason = f"there is more than user, time and location: {check.listed(others)}"
        return Finding("no other columns", FAILED, reason)
    return Finding("no other columns", PASSED, "user, time and location only")


class Extras(NamedTuple):
    """What a file holds beside the records: columns, other things, and notes about the file."""

    columns: list[Any]
    things: list[str]
    notes: list[str]
