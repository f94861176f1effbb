"""Segments of users whose records are spread over several files: a value of a column is one segment in all of them."""

import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.io.table_segments import Segments, join_segments

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:In .* overlap", "ignore:The data")
VALUES = [0, 1, 7, None]
START = pd.Timestamp("2024-05-01T08:00", tz="UTC")


def table(segments, *, users=None):
    """Records 30 m and 20 s apart, with a column `trip` of segments."""
    number = np.arange(len(segments))
    return pd.DataFrame(
        {
            "user": ["a"] * len(segments) if users is None else users,
            "time": START + pd.to_timedelta(20 * number, unit="s"),
            "lon": 4.8 + 0.0004 * number,
            "lat": 45.7,
            "trip": pd.array(segments, "Int64"),
        }
    )


def points_of(frame):
    return gpd.GeoDataFrame(
        frame.drop(columns=["lon", "lat"]), geometry=gpd.points_from_xy(frame.lon, frame.lat, crs=4326)
    )


def deal(frame, owners, folder, *, ending=".parquet"):
    """Write each row to the file with the number of its owner."""
    folder.mkdir()
    for owner in sorted(set(owners)):
        rows = frame[np.equal(owners, owner)]
        path = folder / f"{owner}{ending}"
        if ending == ".csv":
            rows.to_csv(path, index=False)
        elif ending == ".parquet":
            rows.to_parquet(path, index=False)
        else:
            points_of(rows).to_file(path)


def breaks_of(frame):
    """Where the segment of a user changes: the slow twin, by the values alone."""
    ordered = frame.sort_values(["user", "time"], kind="stable")
    rows = list(zip(ordered["user"], ordered["trip"].astype(object).where(ordered["trip"].notna(), None), strict=True))
    return [i for i in range(1, len(rows)) if rows[i][0] == rows[i - 1][0] and rows[i][1] != rows[i - 1][1]]


def same(found, expected):
    assert found.users.tolist() == expected.users.tolist()
    assert found.times.tolist() == expected.times.tolist()
    assert np.array(found.coordinates()).tolist() == np.array(expected.coordinates()).tolist()
    assert found.breaks.tolist() == expected.breaks.tolist()


@st.composite
def dealt(draw):
    """Records of two users in any order, each with the number of its file."""
    size = draw(st.integers(4, 40))
    segments = [draw(st.sampled_from(VALUES)) for _ in range(size)]
    frame = table(segments, users=[draw(st.sampled_from("ab")) for _ in range(size)])
    frame = frame.iloc[draw(st.permutations(range(size)))].reset_index(drop=True)
    return frame, [draw(st.integers(0, 2)) for _ in range(size)]


@given(dealt())
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_records_in_any_files_and_order_give_the_traces_of_one_file(tmp_path_factory, ending, drawn):
    frame, owners = drawn
    folder = tmp_path_factory.mktemp("dealt")
    deal(frame, [0] * len(frame), folder / "single", ending=ending)
    deal(frame, owners, folder / "several", ending=ending)
    single, several = (pg.read_file(folder / name, segment="trip", as_traces=True) for name in ("single", "several"))
    same(several, single)
    assert single.breaks.tolist() == breaks_of(frame)


@given(dealt())
def test_folders_and_files_are_protected_alike(tmp_path_factory, drawn):
    frame, owners = drawn
    folder = tmp_path_factory.mktemp("protected")
    deal(frame, owners, folder / "in")
    mechanism = pg.GeoIndistinguishability(0.01, seed="s")
    read = pg.read_file(folder / "in", segment="trip", as_traces=True)
    pg.protect_parquet(folder / "in", folder / "out", mechanism, segment="trip", keep_users=True)
    same(pg.read_file(folder / "out", as_traces=True), mechanism.protect(read))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".gpkg", ".geojson"])
@pytest.mark.parametrize("owners", [lambda i: i % 2, lambda i: i // 25 % 2, lambda i: 0])
def test_a_column_of_two_segments_makes_one_break_whatever_the_files(tmp_path, ending, owners):
    deal(table([0] * 50 + [1] * 50), [owners(i) for i in range(100)], tmp_path / "in", ending=ending)
    traces = pg.read_file(tmp_path / "in", segment="trip", as_traces=True)
    assert traces.breaks.tolist() == [50]
    if ending == ".parquet":
        pg.protect_parquet(tmp_path / "in", tmp_path / "out", pg.Promesse(200), segment="trip", keep_users=True)
        same(pg.read_file(tmp_path / "out", as_traces=True), pg.Promesse(200).protect(traces))


def test_files_of_different_kinds_have_the_same_segments(tmp_path):
    frame = table([0] * 20 + [1] * 20)
    rows = [frame[np.arange(40) % 4 == number] for number in range(4)]
    rows[0].to_csv(tmp_path / "a.csv", index=False)
    rows[1].to_parquet(tmp_path / "b.parquet", index=False)
    points_of(rows[2]).to_file(tmp_path / "c.gpkg")
    points_of(rows[3].astype({"trip": float})).to_file(tmp_path / "d.geojson")
    assert pg.read_file(tmp_path, segment="trip", as_traces=True).breaks.tolist() == [20]


def test_large_numbers_beside_missing_values_are_different_segments(tmp_path):
    first = 1_372_636_858_620_000_589  # as trips of Porto, which floats cannot tell apart
    deal(table([first] * 3 + [first + 1] * 3 + [None] * 2), [0, 1] * 4, tmp_path / "in")
    assert pg.read_file(tmp_path / "in", segment="trip", as_traces=True).breaks.tolist() == [3, 6]
    assert pg.read_file(tmp_path / "in" / "0.parquet", segment="trip", as_traces=True).breaks.tolist() == [2, 3]
    pg.protect_parquet(
        tmp_path / "in", tmp_path / "out", pg.GeoIndistinguishability(0.01), segment="trip", keep_users=True
    )
    assert pg.read_file(tmp_path / "out", as_traces=True).breaks.tolist() == [3, 6]


def test_values_of_columns_of_other_names_are_different_segments(tmp_path):
    frame = table([5] * 8).rename(columns={"trip": "trip_id"})
    frame.iloc[:4].to_parquet(tmp_path / "a.parquet")
    frame.iloc[4:].rename(columns={"trip_id": "Track-ID"}).to_parquet(tmp_path / "b.parquet")
    assert pg.read_file(tmp_path, as_traces=True).breaks.tolist() == [4]
    frame.iloc[4:].rename(columns={"trip_id": "Trip ID"}).to_parquet(tmp_path / "b.parquet")
    assert pg.read_file(tmp_path, as_traces=True).breaks.tolist() == []


def test_lines_of_different_files_are_different_segments(tmp_path):
    for number in range(2):
        times = [f"2024-05-01T0{number}:0{minute}:00Z" for minute in range(4)]
        line = {"type": "LineString", "coordinates": [[4.8 + 0.001 * minute + number, 45.7] for minute in range(4)]}
        feature = {"type": "Feature", "geometry": line, "properties": {"user": "a", "coordTimes": times}}
        collection = {"type": "FeatureCollection", "features": [feature]}
        (tmp_path / f"{number}.geojson").write_text(json.dumps(collection))
    assert pg.read_file(tmp_path, as_traces=True).breaks.tolist() == [4]


def test_tracks_of_different_files_are_different_segments(tmp_path):
    for number in range(2):
        rows = table([0] * 4).assign(time=START + pd.to_timedelta(np.arange(4) + 10 * number, unit="min"))
        pg.write(points_of(rows).promesse(segment="trip").traces(), tmp_path / f"{number}.gpx")
    (tmp_path / "both").mkdir()
    for number in range(2):
        (tmp_path / f"{number}.gpx").rename(tmp_path / "both" / f"{number}.gpx")
    traces = pg.read_file(tmp_path / "both", user="folder", as_traces=True)
    assert (len(traces), traces.breaks.tolist()) == (1, [4])


WHOLE = {
    "integers": pa.array([3, 3, None, 4]),
    "small integers": pa.array([3, 3, None, 4], pa.int8()),
    "unsigned": pa.array([3, 3, None, 4], pa.uint64()),
    "floats": pa.array([3.0, 3.0, None, 4.0]),
    "half floats": pa.array(np.array([3, 3, np.nan, 4], np.float32)),
    "text": pa.array(["3", "3", None, "4"]),
    "large text": pa.array(["3", "3", None, "4"], pa.large_string()),
    "views": pa.array(["3", "3", None, "4"], pa.string_view()),
    "categories": pa.array(["3", "3", None, "4"]).dictionary_encode(),
    "twice in a dictionary": pa.DictionaryArray.from_arrays([0, 2, None, 1], ["3", "4", "3"]),
    "decimals": pa.array([3, 3, None, 4]).cast(pa.decimal128(38, 0)),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_numbers_of_any_type_are_the_same_values(kind):
    found = Segments.of_column(pa.chunked_array([WHOLE[kind].slice(0, 1), WHOLE[kind].slice(1)]), "trip")
    codes = found.codes
    assert codes[:3].tolist() == [codes[3] ^ 1] * 2 + [-1]
    first = Segments.of_column(pa.chunked_array([WHOLE["integers"]]), "Trip")
    assert found.keys().tolist() == first.keys().tolist()
    assert found.keys()[2] == 0


def test_a_column_of_lists_is_refused_by_name(tmp_path):
    pq.write_table(
        pa.table({**pa.Table.from_pandas(table([0, 1])).to_pydict(), "trip": [[1], [2]]}), tmp_path / "a.parquet"
    )
    with pytest.raises(TypeError, match="segment column 'trip' must hold text, numbers or times"):
        pg.read_file(tmp_path / "a.parquet", segment="trip")


def test_records_of_files_without_segments_are_of_one_more():
    column = Segments.of_column(pa.chunked_array([["x", None]]), "trip")
    lines = Segments(np.array([0, 0, 1]))
    keys = join_segments([(2, column), (1, None), (3, lines), (1, None), (3, lines)]).tolist()
    assert keys[1:] == [0, 0, 1, 1, 2, 0, 3, 3, 4]
    assert keys[0] not in keys[1:]
    assert join_segments([(3, None), (0, None)]) is None
