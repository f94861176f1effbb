"""Pieces of data that privacy zones were applied to one by one, and that are joined later."""

import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import promesse_geo as pg

pytestmark = pytest.mark.filterwarnings(
    "ignore:Privacy zones removed", "ignore:.*not prepared", "ignore:.*protected as"
)
HOME = gpd.GeoDataFrame({"user": ["ana"]}, geometry=gpd.points_from_xy([2.35], [48.85]), crs=4326)
ZONES = pg.PrivacyZones(600, 100, zones=HOME, seed="s" * 40)


def walk(longitudes, begin, user="ana"):
    times = pd.Timestamp(begin, tz="UTC") + pd.to_timedelta(np.arange(120) * 20, unit="s")
    points = gpd.points_from_xy(np.linspace(*longitudes, 120), np.full(120, 48.85), crs=4326)
    return gpd.GeoDataFrame({"user": user, "time": times}, geometry=points)


@pytest.fixture(scope="module")
def pieces():
    """A way home and a way from home."""
    return [walk((2.31, 2.35), "2024-03-04 11:20"), walk((2.35, 2.39), "2024-03-04 13:00")]


def distance_from_home(frame):
    return frame.to_crs(2154).distance(HOME.to_crs(2154).geometry[0]).min()


@pytest.mark.parametrize(
    ("road", "ending"), [("file", "gpx"), ("file", "parquet"), ("file", "gpkg"), ("folder", "parquet")]
)
@pytest.mark.parametrize("others", [False, True])
def test_files_are_read_with_a_break_between_them(pieces, road, others, ending, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for number, piece in enumerate(pieces):
        pg.write(piece.promesse.protect(ZONES), data / f"{number}.{ending}")
    if others:
        pg.write(walk((2.2, 2.3), "2024-03-04 11:20", user="bob"), data / f"raw.{ending}")
    if road == "folder":
        pg.protect_parquet(data, tmp_path / "safe", pg.Promesse(50), keep_users=True)
        safe = pg.read_file(tmp_path / "safe")
    else:
        safe = pg.read_file(data).promesse.smooth(50)
    assert distance_from_home(safe[safe["user"] == "ana"]) > 499
    assert safe["user"].nunique() == 1 + others


def test_users_of_other_files_go_on_as_before(pieces, tmp_path):
    """Zones of one file do not make breaks for users of files without zones."""
    data = tmp_path / "data"
    data.mkdir()
    pg.write(pieces[0].promesse.protect(ZONES), data / "a.parquet")
    for number, longitudes in enumerate([(2.2, 2.25), (2.25, 2.3)]):
        pg.write(walk(longitudes, f"2024-03-04 1{number + 1}:20", user="bob"), data / f"b{number}.parquet")
    traces = pg.read_file(data, as_traces=True)
    assert len(traces.segments) == 3
    pg.protect_parquet(data, tmp_path / "safe", pg.GeoIndistinguishability(10, seed=1), keep_users=True)
    assert len(pg.read_file(tmp_path / "safe", as_traces=True).segments) == 3


@pytest.mark.parametrize("road", ["file", "folder"])
@pytest.mark.parametrize("missing", [0, 1])
def test_segments_without_a_value_and_files_without_the_column_are_kept_apart(pieces, road, missing, tmp_path):
    """One of the files has a column of segments, of which a value is missing, the other one has none."""
    data = tmp_path / "data"
    data.mkdir()
    for number, piece in enumerate(pieces):
        zoned = piece.promesse.protect(ZONES)
        path = data / f"{number}.parquet"
        pg.write(zoned, path)
        if number == missing:
            table = pq.read_table(path)
            values = pa.array([None] * 5 + [0] * (len(table) - 5), pa.int64())
            about = json.loads(table.schema.metadata[b"promesse_geo"]) | {"segment": "segment"}
            metadata = table.schema.metadata | {b"promesse_geo": json.dumps(about).encode()}
            pq.write_table(table.append_column("segment", values).replace_schema_metadata(metadata), path)
    if road == "folder":
        pg.protect_parquet(data, tmp_path / "safe", pg.Promesse(50), keep_users=True)
        safe = pg.read_file(tmp_path / "safe")
    else:
        safe = pg.read_file(data).promesse.smooth(50)
    assert distance_from_home(safe) > 499


def test_joined_frames_are_a_warning(pieces):
    joined = pd.concat([piece.promesse.protect(ZONES) for piece in pieces])
    with pytest.warns(UserWarning, match=r"concat.*Join frames before zones"):
        assert distance_from_home(joined.promesse.smooth(50)) < 100
    assert distance_from_home(pd.concat(pieces).promesse.protect(ZONES).promesse.smooth(50)) > 499
