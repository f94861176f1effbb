"""What a frame holds beside the records."""

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo import check
from promesse_geo.columns import Names
from promesse_geo.publish.findings import FAILED, LOOK, PASSED, Finding, no_others
from promesse_geo.records import LeftOut


def frame_findings(frame: gpd.GeoDataFrame, names: Names, left_out: LeftOut) -> list[Finding]:
    """Look at the columns that are left out, the index, the categories and the attributes of a protected frame."""
    others = [*left_out.columns, *(["Z or M"] if left_out.elevation else [])]
    return [no_others(others), _index(frame, names), _categories(frame, names), _attributes(frame)]


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
    if users is None or not isinstance(users.dtype, pd.CategoricalDtype):
        return Finding(test, PASSED, "there are no categories")
    unused = len(users.cat.categories) - users.nunique()
    if unused:
        reason = (
            f"{check.counted(unused, 'category', 'categories')} of the user column {names.user!r} without a record "
            "would be published; take them off with .cat.remove_unused_categories()"
        )
        return Finding(test, FAILED, reason)
    return Finding(test, PASSED, "all categories are in use")


def _attributes(frame: gpd.GeoDataFrame) -> Finding:
    test = "no attributes"
    if frame.attrs:
        return Finding(test, LOOK, f"the frame's attrs travel into files: {check.listed(list(frame.attrs))}")
    if any(name is not None for name in frame.columns.names):
        return Finding(test, LOOK, "the row of column names has a name itself, which travels into files")
    return Finding(test, PASSED, "the frame's attrs are empty")
