"""Verdicts of the checks before publication, and the table that shows them."""

import html
import shutil
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from promesse_geo.messages import listed
from promesse_geo.plot.tables import findings, summaries

PASSED, REVIEW, FAILED = "passed", "review", "failed"
LEFT_OUT = "left out"
"""The verdict of a test that cannot judge these data."""

_WORST_FIRST = (FAILED, REVIEW, LEFT_OUT, PASSED)

CLOSING = (
    "Passing all tests does not prove anonymity. Publish each person once: traces of the same people, published again "
    "with another epsilon or for other days, can be joined with these. No test searches for homes from the ends of "
    "traces of renamed users, or recognizes people by the areas that they visit: report (promesse-geo report) does."
)
"""What no test can check."""


class Finding(NamedTuple):
    """The verdict of one test, and its reason."""

    test: str
    verdict: str
    reason: str


_COLUMNS = list(Finding._fields)


class Findings(pd.DataFrame):
    """A table of findings, worst first, that prints complete reasons, and other tests in a line for each verdict."""

    @property
    def _constructor(self) -> type["Findings"]:
        return Findings

    def __repr__(self) -> str:
        """Return what failed or is to be reviewed with its reasons, the names of other tests, and the closing."""
        if not len(self) or list(self.columns) != _COLUMNS:
            return super().__repr__()
        return findings(self, closing=CLOSING, width=shutil.get_terminal_size((120, 24)).columns)

    def _repr_html_(self) -> str:
        if not len(self) or list(self.columns) != _COLUMNS:
            return str(super()._repr_html_())  # type: ignore[misc]
        open_tests = self[self["verdict"].isin([FAILED, REVIEW])]
        with pd.option_context("display.max_colwidth", None, "display.max_rows", None):
            table = open_tests.to_html(index=False, border=0) if len(open_tests) else ""
        return table + "".join(f"<p>{html.escape(text)}</p>" for text in (*summaries(self), CLOSING))


def worst_first(findings: Iterable[Finding]) -> Findings:
    """Return a table of findings: failed, to review, left out, passed ones, each in the given order."""
    rows = sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.verdict))
    return Findings(rows, columns=_COLUMNS)


def replace_findings(table: pd.DataFrame, others: Sequence[Finding]) -> Findings:
    """Return a table, worst first, in which other findings take the place of those of the same tests."""
    replaced = {finding.test for finding in others}
    rows = (Finding(*row) for row in table[_COLUMNS].itertuples(index=False))
    return worst_first([*(row for row in rows if row.test not in replaced), *others])


def merge_findings(groups: Sequence[Sequence[Finding]]) -> list[Finding]:
    """Return one finding for each test of several groups of users: the worst verdict, and in how many groups.

    Parameters
    ----------
    groups : sequence of sequence of Finding
        The findings of each group.
    """
    by_test: dict[str, list[Finding]] = {}
    for finding in chain.from_iterable(groups):
        by_test.setdefault(finding.test, []).append(finding)
    return [_merged(findings) for findings in by_test.values()]


def _merged(findings: Sequence[Finding]) -> Finding:
    """Return the findings of one test on several groups as one."""
    verdict = min((finding.verdict for finding in findings), key=_WORST_FIRST.index)
    reasons = [finding.reason for finding in findings if finding.verdict == verdict]
    if len(reasons) == len(findings) and len(set(reasons)) == 1:
        return Finding(findings[0].test, verdict, reasons[0])
    where = f"in {len(reasons):,} of {len(findings):,} groups of users"
    return Finding(findings[0].test, verdict, f"{where}, such as: {reasons[0]}")


def find_other_columns(others: Sequence[Any]) -> Finding:
    """Test that there are no columns besides user, time and location."""
    if others:
        return Finding("no other columns", FAILED, f"there is more than user, time and location: {listed(others)}")
    return Finding("no other columns", PASSED, "user, time and location only")
