"""Verdicts of the checks before publication, and the table that shows them."""

import html
import shutil
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from promesse_geo.messages import listed
from promesse_geo.plot.tables import findings, passed_tests

PASSED, REVIEW, FAILED = "passed", "review", "failed"

CLOSING = (
    "Passing all tests does not prove anonymity. Publish each person once: traces of the same people, published again "
    "with another epsilon or for other days, can be joined with these."
)
"""What no test can check."""


class Finding(NamedTuple):
    """The verdict of one test, and its reason."""

    test: str
    verdict: str
    reason: str


_COLUMNS = list(Finding._fields)


class Findings(pd.DataFrame):
    """A table of findings, worst first, that prints complete reasons and the passed tests in one line."""

    @property
    def _constructor(self) -> type["Findings"]:
        return Findings

    def __repr__(self) -> str:
        """Return the tests that did not pass with their complete reasons, the names of the others, and the closing."""
        if not len(self) or list(self.columns) != _COLUMNS:
            return super().__repr__()
        return findings(self, closing=CLOSING, width=shutil.get_terminal_size((120, 24)).columns)

    def _repr_html_(self) -> str:
        if not len(self) or list(self.columns) != _COLUMNS:
            return str(super()._repr_html_())  # type: ignore[misc]
        open_tests = self[self["verdict"] != PASSED]
        with pd.option_context("display.max_colwidth", None, "display.max_rows", None):
            table = open_tests.to_html(index=False, border=0) if len(open_tests) else ""
        texts = [text for text in (passed_tests(self), CLOSING) if text]
        return table + "".join(f"<p>{html.escape(text)}</p>" for text in texts)


def worst_first(findings: Iterable[Finding]) -> Findings:
    """Return a table of findings: failed, then to review, then passed ones, each in the given order."""
    rows = sorted(findings, key=lambda finding: (FAILED, REVIEW, PASSED).index(finding.verdict))
    return Findings(rows, columns=_COLUMNS)


def find_other_columns(others: Sequence[Any]) -> Finding:
    """Test that there are no columns besides user, time and location."""
    if others:
        return Finding("no other columns", FAILED, f"there is more than user, time and location: {listed(others)}")
    return Finding("no other columns", PASSED, "user, time and location only")
