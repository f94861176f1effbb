"""The paper's experiment: its figures, one function per table, and the report."""

from promesse_geo.paper.experiment import Reproduction, reproduce
from promesse_geo.paper.report import check_report_folder, side_by_side
from promesse_geo.paper.tables import table_1, table_2, table_3, table_4, table_5, table_6

__all__ = [
    "Reproduction",
    "check_report_folder",
    "reproduce",
    "side_by_side",
    "table_1",
    "table_2",
    "table_3",
    "table_4",
    "table_5",
    "table_6",
]
