"""What the tests before publishing say."""

import shutil
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from promesse_geo.messages import listed
from promesse_geo.plot.tables import findings

PASSED, LOOK, FAILED, NOT_COMPARABLE = "passed", "look", "failed", "not comparable"


class Finding(NamedTuple):
    """What one test says, and why."""

    test: str
    verdict: str
    reason: str


_COLUMNS = list(Finding._fields)


class Findings(pd.DataFrame):
    """A table of findings that shows whole reasons, wrapped to the terminal."""

    @property
    def _constructor(self) -> type["Findings"]:
        return Findings

    def __repr__(self) -> str:
        """Return all rows and all words."""
        if not len(self) or list(self.columns) != _COLUMNS:
            return super().__repr__()
        return findings(self, width=shutil.get_terminal_size((120, 24)).columns)

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return str(super()._repr_html_())  # type: ignore[misc]


def no_others(others: Sequence[Any]) -> Finding:
    """Say whether there are columns beside user, time and location."""
    if others:
        reason = f"there is more than user, time and location: {listed(others)}"
        return Finding("no other columns", FAILED, reason)
    return Finding("no other columns", PASSED, "user, time and location only")


class Extras(NamedTuple):
    """What a file holds beside the records: columns, other things, and notes about the file."""

    columns: list[Any]
    things: list[str]
    notes: list[str]
