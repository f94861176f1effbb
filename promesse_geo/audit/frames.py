"""Checks of a frame to publish: its columns, index, order of rows, categories and attributes."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.audit.findings import FAILED, PASSED, REVIEW, Finding, find_other_columns
from promesse_geo.io.writers.crs import has_custom_text
from promesse_geo.messages import counted, listed
from promesse_geo.traces.columns import ROLES, Names, known_attributes
from promesse_geo.traces.records import DroppedColumns
from promesse_geo.traces.traces import Traces


def check_frame(frame: gpd.GeoDataFrame, traces: Traces, dropped: DroppedColumns) -> list[Finding]:
    """Check columns, index, row order, categories and attributes of a frame and of the traces read from it."""
    others = [*dropped.columns, *dropped.marks, *(["Z or M"] if dropped.elevation else [])]
    return [
        find_other_columns(others),
        _check_index(frame, traces.names),
        check_row_order(traces),
        _check_categories(frame, traces.names),
        _check_attributes(frame),
    ]


def check_row_order(traces: Traces) -> Finding:
    """Check that the rows were sorted by user and time when the traces were read."""
    test = "rows are sorted"
    if np.all(traces.positions[1:] > traces.positions[:-1]):
        return Finding(test, PASSED, "they are sorted by user and time")
    reason = (
        "they are not sorted by user and time, and their order may reveal which traces belong together; "
        "pseudonymize() (promesse-geo pseudonymize) sorts them"
    )
    return Finding(test, REVIEW, reason)


def _check_index(frame: gpd.GeoDataFrame, names: Names) -> Finding:
    test, index = "plain index", frame.index
    if names.time_is_index:
        return Finding(test, PASSED, "the index is the time")
    plain = index.nlevels == 1 and pd.api.types.is_integer_dtype(index.dtype) and index.name is None
    if plain and np.array_equal(index.to_numpy(), np.arange(len(index))):
        return Finding(test, PASSED, "the index counts the rows")
    reason = "the index is written to files and does not just count the rows; drop it with reset_index(drop=True)"
    return Finding(test, FAILED, reason)


def _check_categories(frame: gpd.GeoDataFrame, names: Names) -> Finding:
    test = "no unused categories"
    unused, remedy = _unused_categories(None if names.user is None else frame[names.user])
    if not unused:
        return Finding(test, PASSED, "every category of users has a record")
    categories = counted(unused, "category", "categories")
    reason = f"the user column {names.user!r} would publish {categories} without a record; remove them with {remedy}"
    return Finding(test, FAILED, reason)


def _unused_categories(users: pd.Series | None) -> tuple[int, str]:
    """Number of categories without a record, and the call that removes them."""
    if users is not None and isinstance(users.dtype, pd.CategoricalDtype):
        return len(users.cat.categories) - users.nunique(), ".cat.remove_unused_categories()"
    if users is None or not isinstance(users.dtype, pd.ArrowDtype):
        return 0, ""
    column = pa.table([pa.array(users.array)], ["user"]).column(0)
    if not pa.types.is_dictionary(column.type) or not column.num_chunks:
        return 0, ""
    values = pa.chunked_array([chunk.dictionary for chunk in column.chunks]).unique()
    return pc.count(values).as_py() - users.nunique(), ".astype(str)"


def _check_attributes(frame: gpd.GeoDataFrame) -> Finding:
    test = "no attributes"
    others = [key for key in frame.attrs if key != ROLES or frame.attrs[key] != known_attributes(frame)]
    if others:
        return Finding(test, REVIEW, f"the frame's attrs are written to files: {listed(others)}")
    if any(name is not None for name in frame.columns.names):
        return Finding(test, REVIEW, "the columns have a name (frame.columns.name), which is written to files")
    if frame.crs is not None and has_custom_text(frame.crs):
        reason = "the CRS has a name, remarks or a scope that no registry knows; write() removes them, others do not"
        return Finding(test, REVIEW, reason)
    return Finding(test, PASSED, "the frame has no attrs but the roles of its columns and the mechanism")
