"""What a frame holds beside the records, and in which order."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa

from promesse_geo.audit.findings import FAILED, LOOK, PASSED, Finding, no_others
from promesse_geo.audit.parquet import unused_values
from promesse_geo.io.writers import has_words
from promesse_geo.messages import counted, listed
from promesse_geo.traces.columns import Names
from promesse_geo.traces.records import DroppedColumns
from promesse_geo.traces.traces import Traces


def frame_findings(frame: gpd.GeoDataFrame, traces: Traces, left_out: DroppedColumns) -> list[Finding]:
    """Look at what a protected frame holds beside the traces that were read from it, and at the order of its rows."""
    others, names = [*left_out.columns, *(["Z or M"] if left_out.elevation else [])], traces.names
    return [
        no_others(others),
        _index(frame, names),
        order_of_rows(traces),
        _categories(frame, names),
        _attributes(frame),
    ]


def order_of_rows(traces: Traces) -> Finding:
    """Say whether traces that have just been read stood in their order, which tells nothing that they do not."""
    test = "rows are in order"
    if np.all(traces.positions[1:] > traces.positions[:-1]):
        return Finding(test, PASSED, "they stand in the order of user and time")
    reason = (
        "they do not stand in the order of user and time, so that theirs may tell which traces belong together; "
        "pseudonymize() and write() bring them into it"
    )
    return Finding(test, LOOK, reason)


def _index(frame: gpd.GeoDataFrame, names: Names) -> Finding:
    test, index = "the index says nothing", frame.index
    if names.time_is_index:
        return Finding(test, PASSED, "it is the time")
    plain = index.nlevels == 1 and pd.api.types.is_integer_dtype(index.dtype) and index.name is None
    if plain and np.array_equal(index.to_numpy(), np.arange(len(index))):
        return Finding(test, PASSED, "it counts the rows")
    reason = "it travels into files and is not the plain number of the row; take it off with reset_index(drop=True)"
    return Finding(test, FAILED, reason)


def _categories(frame: gpd.GeoDataFrame, names: Names) -> Finding:
    test = "no names are left over"
    users = None if names.user is None else frame[names.user]
    if users is not None and isinstance(users.dtype, pd.CategoricalDtype):
        unused, cure = len(users.cat.categories) - users.nunique(), ".cat.remove_unused_categories()"
    elif users is not None and isinstance(users.dtype, pd.ArrowDtype):
        unused, cure = unused_values(pa.table([pa.array(users.array)], ["user"]).column(0)), ".astype(str)"
        if not pa.types.is_dictionary(users.dtype.pyarrow_dtype):
            return Finding(test, PASSED, "there are no categories")
    else:
        return Finding(test, PASSED, "there are no categories")
    if unused:
        reason = (
            f"{counted(unused, 'category', 'categories')} of the user column {names.user!r} without a record "
            f"would be published; take them off with {cure}"
        )
        return Finding(test, FAILED, reason)
    return Finding(test, PASSED, "all categories are in use")


def _attributes(frame: gpd.GeoDataFrame) -> Finding:
    test = "no attributes"
    if frame.attrs:
        return Finding(test, LOOK, f"the frame's attrs travel into files: {listed(list(frame.attrs))}")
    if any(name is not None for name in frame.columns.names):
        return Finding(test, LOOK, "the row of column names has a name itself, which travels into files")
    if frame.crs is not None and has_words(frame.crs):
        reason = (
            "the CRS has a name, remarks or a usage of its own, which travel into files unless write() takes them off"
        )
        return Finding(test, LOOK, reason)
    return Finding(test, PASSED, "the frame's attrs are empty")
