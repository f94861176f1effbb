"""Checks before publication, what protected data and files reveal that they should not, and the risk report."""

from promesse_geo.audit.checks import JUMPS, check_epsilon, check_published, one_person
from promesse_geo.audit.ends import judge_ends
from promesse_geo.audit.files import check_files, file_mechanism
from promesse_geo.audit.findings import (
    CLOSING,
    FAILED,
    LEFT_OUT,
    PASSED,
    REVIEW,
    Finding,
    merge_findings,
    replace_findings,
    worst_first,
)
from promesse_geo.audit.frames import check_row_order
from promesse_geo.audit.risk_report import RiskReport, report

__all__ = ["CLOSING", "FAILED", "LEFT_OUT", "PASSED", "REVIEW", "Finding", "merge_findings", "replace_findings"]
__all__ += ["worst_first"]
__all__ += ["JUMPS", "check_epsilon", "check_files", "check_published", "check_row_order", "file_mechanism"]
__all__ += ["judge_ends", "one_person"]
__all__ += ["RiskReport", "report"]
