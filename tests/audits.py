"""What tests of the audit share: its verdicts, and traces in the plane."""

import geopandas as gpd
import numpy as np
import pandas as pd

import promesse_geo as pg


def unmarked(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """The frame without the note of its mechanism, as a frame from elsewhere."""
    frame = frame.copy()
    frame.attrs = {}
    return frame


def verdicts(table: pd.DataFrame) -> dict[str, str]:
    return dict(zip(table["test"], table["verdict"], strict=True))


def reason(table: pd.DataFrame, test: str) -> str:
    return table.set_index("test").loc[test, "reason"]


def line(x, *, unit="metre", factor=1, crs=None, users=("u",), times=None, y=0.0):
    """Traces of one user in the plane, a record a second."""
    x = np.asarray(x, float)
    times = np.arange(len(x)) * 10**9 if times is None else np.asarray(times)
    crs = crs or f'LOCAL_CS["grid",UNIT["{unit}",{factor}]]'
    return pg.Traces.from_arrays(x, np.full(len(x), y), times=times, users=list(users), counts=[len(x)], crs=crs)


def compared(before, after, test, **options):
    return pg.check_published(before, after, **options).set_index("test").loc[test]


def plane(x, y, *, users=("u",), counts=None, times=None):
    """Traces in the plane, a record a second."""
    times = np.arange(len(x)) * 10**9 if times is None else np.asarray(times)
    grid = 'LOCAL_CS["grid",UNIT["metre",1]]'
    counts = [len(x)] if counts is None else counts
    return pg.Traces.from_arrays(
        np.asarray(x, float), np.asarray(y, float), times=times, users=list(users), counts=counts, crs=grid
    )
