"""Verdicts of the checks before publication, and the table that shows them."""

import shutil
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from promesse_geo.messages import listed
from promesse_geo.plot.tables import findings

PASSED, REVIEW, FAILED, NOT_COMPARABLE = "passed", "review", "failed", "not comparable"


class Finding(NamedTuple):
    """The verdict of one test, and its reason."""

    test: str
    verdict: str
    reason: str


_COLUMNS = list(Finding._fields)


class Findings(pd.DataFrame):
    """A table of findings that prints complete reasons, wrapped to the width of the terminal."""

    @property
    def _constructor(self) -> type["Findings"]:
        return Findings

    def __repr__(self) -> str:
        """Return all rows with their complete reasons."""
        if not len(self) or list(self.columns) != _COLUMNS:
            return super().__repr__()
        return findings(self, width=shutil.get_terminal_size((120, 24)).columns)

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return str(super()._repr_html_())  # type: ignore[misc]


def find_other_columns(others: Sequence[Any]) -> Finding:
    """Test that there are no columns besides user, time and location."""
    if others:
        return Finding("no other columns", FAILED, f"there is more than user, time and location: {listed(others)}")
    return Finding("no other columns", PASSED, "user, time and location only")
