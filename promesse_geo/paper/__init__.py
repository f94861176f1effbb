"""The paper's experiment: its mechanisms, its tables beside ours, the report, and example data.

Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data with High
Utility. TrustCom 2015.

- `reproduce` runs the experiment from raw files and returns a `Reproduction`, which `Reproduction.load` reads again
- `table_1` to `table_6` make one table each, `beyond` those of metrics that the paper does not have
- `side_by_side` shows tables for reading, `beside_paper` draws one
- `ROWS` are the mechanisms of the tables with their labels
- `example_data` returns prepared data for examples
- `most2014` has the tables of a second paper
"""

from promesse_geo.paper import most2014
from promesse_geo.paper.experiment import ExampleData, Reproduction, example_data, reproduce
from promesse_geo.paper.report import side_by_side
from promesse_geo.paper.tables import ROWS, beyond, table_1, table_2, table_3, table_4, table_5, table_6
from promesse_geo.plot.comparisons import beside_paper

__all__ = ["ROWS", "ExampleData", "Reproduction", "beside_paper", "beyond", "example_data", "reproduce", "side_by_side"]
__all__ += ["most2014", "table_1", "table_2", "table_3", "table_4", "table_5", "table_6"]
