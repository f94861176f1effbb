"""Folders of Parquet for tests, what is written to them, and runs that are watched."""

from concurrent.futures import Future
from dataclasses import dataclass

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import promesse_geo as pg
from promesse_geo.bulk import files, folders, run

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


def divide(monkeypatch):
    """Divide the work into many chunks and buckets, and make keys known."""
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: 2_000)
    monkeypatch.setattr(files, "count_buckets", lambda records, memory, workers: 4)
    monkeypatch.setattr(run, "_PART", 800)
    monkeypatch.setattr(folders.secrets, "token_hex", lambda number: TOKEN)


def as_table(frame):
    x, y = frame.geometry.x, frame.geometry.y
    return pa.table({"user": frame["user"], "time": frame["time"], "lon": x, "lat": y})


def save(frame, folder, *, number=4, group=900):
    """Write a frame to several files, and return it in the order of their paths and rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in range(number):
        rows = frame.iloc[len(frame) * each // number : len(frame) * (each + 1) // number]
        pq.write_table(as_table(rows), folder / f"{each:03d}.parquet", row_group_size=group)
    return frame


def load(folder):
    """The parts of a result as one frame, in the order of their names."""
    paths = sorted(folder.iterdir())
    schemas = [pq.read_schema(path) for path in paths]
    assert all(schema.equals(schemas[0], check_metadata=True) for schema in schemas)
    return gpd.read_parquet(folder)


def content_of(folder):
    """The bytes of the files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_equal(found, expected):
    assert list(found.columns) == list(expected.columns)
    for name in expected.columns.drop(["geometry", "time"]):
        assert found[name].tolist() == expected[name].tolist()
    pd.testing.assert_series_equal(found["time"], expected["time"], check_index=False)
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
