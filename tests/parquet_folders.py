"""Folders of Parquet for tests, what is written to them, and runs that are watched."""

from concurrent.futures import Future
from dataclasses import dataclass

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import promesse_geo as pg

IGNORED = pytest.mark.filterwarnings(
    "ignore:.*could not be protected",
    "ignore:.*rivacy zones",
    "ignore:The data",
    "ignore:Nothing is left of",
    "ignore:In .* files overlap in time",
    "ignore:first_days dropped",
    "ignore:drop_zero dropped",
    "ignore:drop_jumps dropped",
)
"""Warnings of data that are not of interest here."""

TOKEN = "5f" * 32
PROMESSE = pg.Promesse(200)


def as_table(frame):
    x, y = frame.geometry.x, frame.geometry.y
    return pa.table({"user": frame["user"], "time": frame["time"], "lon": x, "lat": y})


def save(frame, folder, *, number=4, group=1_700):
    """Write a frame to several files, and return it in the order of their paths and rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in range(number):
        rows = frame.iloc[len(frame) * each // number : len(frame) * (each + 1) // number]
        pq.write_table(as_table(rows), folder / f"{each:03d}.parquet", row_group_size=group)
    return frame


def load(folder):
    """The parts of a result as one frame, in the order of their names."""
    return pd.concat([gpd.read_parquet(path) for path in sorted(folder.iterdir())], ignore_index=True)


def assert_equal(found, expected):
    assert list(found.columns) == list(expected.columns)
    for name in expected.columns.drop("geometry"):
        assert found[name].tolist() == expected[name].tolist()
    assert found["time"].dtype == expected["time"].dtype
    assert found.geometry.to_wkb().tolist() == expected.geometry.to_wkb().tolist()
    assert found.crs == expected.crs


class Now:
    """An executor that works at once."""

    def submit(self, work, *given):
        future = Future()
        future.set_result(work(*given))
        return future


@dataclass(frozen=True)
class Watched(pg.Mechanism):
    """Promesse that does something when it protects a bucket."""

    action: object = None

    def _protect(self, traces):
        self.action()
        return pg.Promesse(200)._protect(traces)
