"""The check before publishing: what a careful friend would look at."""

from promesse_geo.audit.comparison import check_published, checked_epsilon
from promesse_geo.audit.files import file_epsilon, file_findings, file_mechanism
from promesse_geo.audit.findings import FAILED, LOOK, NOT_COMPARABLE, PASSED, Findings
from promesse_geo.audit.frames import order_of_rows

__all__ = [
    "FAILED",
    "LOOK",
    "NOT_COMPARABLE",
    "PASSED",
    "Findings",
    "check_published",
    "checked_epsilon",
    "file_epsilon",
    "file_findings",
    "file_mechanism",
    "order_of_rows",
]
