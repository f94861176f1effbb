"""Columns that the files of a folder of Parquet hold in several types: protected as what `read_file` reads."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from parquet_folders import assert_equal, load

import promesse_geo as pg
from promesse_geo.bulk import files

SIZE = 240
PROMESSE = pg.Promesse(60)
TIMES = pd.date_range("2024-05-01 08:00", periods=SIZE, freq="30s")
X, Y = 4.8 + 0.0005 * np.arange(SIZE), np.full(SIZE, 45.0)
SECONDS = TIMES.as_unit("s").asi8
NUMBERS = np.arange(SIZE) % 3
NAMES = np.array(["ann", "bob", "cem"])[NUMBERS]


def table_of(**columns):
    return pa.table({"user": NAMES, "time": pa.array(TIMES), "lon": X, "lat": Y, **columns})


def stamps(unit, zone=None):
    return pa.array(TIMES.tz_localize(zone and "UTC").as_unit(unit)).cast(pa.timestamp(unit, zone))


def points(kind):
    """A table with native points of some dimensions, or with WKB of an Arrow type."""
    if isinstance(kind, str):
        values = [pa.array(X), pa.array(Y), pa.array(np.ones(SIZE))][: len(kind)]
        column = pa.StructArray.from_arrays(values, list(kind))
    else:
        column = pa.array(shapely.to_wkb(shapely.points(X, Y)).tolist(), kind)
    table = table_of().drop_columns(["lon", "lat"]).append_column("geometry", column)
    encoding = "point" if isinstance(kind, str) else "WKB"
    geo = {"version": "1.1.0", "primary_column": "geometry"}
    geo["columns"] = {"geometry": {"encoding": encoding, "geometry_types": ["Point"]}}
    return table.replace_schema_metadata({"geo": json.dumps(geo)})


def required(name):
    """A table of which one column has no missing values."""
    table = table_of()
    number = table.schema.get_field_index(name)
    return table.cast(table.schema.set(number, table.schema.field(number).with_nullable(False)))


OF_TIMES = {
    "units": [stamps("s"), stamps("us"), stamps("ms"), stamps("ns")],
    "zones": [stamps("us", "Europe/Paris"), stamps("ns", "Asia/Tokyo")],
    "numbers": [pa.array(SECONDS), pa.array(SECONDS + 0.25), pa.array(SECONDS.astype(np.uint32))],
    "text": [stamps("s").cast(pa.string()), stamps("s").cast(pa.large_string()).dictionary_encode()],
}
OF_USERS = {
    "integers": [pa.array(NUMBERS.astype(kind)) for kind in ("int32", "int64", "uint8", "uint64")],
    "text": [
        *(pa.array(NAMES).cast(kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
        pa.array(pd.Categorical(NAMES)),
        pa.array(NAMES).cast(pa.large_string()).dictionary_encode(),
    ],
}
OF_SEGMENTS = {
    "text": [pa.array(NUMBERS), pa.array(NUMBERS.astype(str)), pa.array(NUMBERS.astype(float)), pa.nulls(SIZE)]
}
CASES = {
    **{f"times: {name}": [table_of(time=each) for each in kinds] for name, kinds in OF_TIMES.items()},
    **{f"users: {name}": [table_of(user=each) for each in kinds] for name, kinds in OF_USERS.items()},
    **{f"segments: {name}": [table_of(trip=each) for each in kinds] for name, kinds in OF_SEGMENTS.items()},
    "coordinates": [table_of(), table_of(lon=X.astype(np.float32)), table_of(lat=pa.array(Y.astype(int)))],
    "WKB": [points(kind) for kind in (pa.binary(), pa.large_binary(), pa.binary(21))],
    "points": [points("xy"), points("xyz")],
    "required": [table_of(), *map(required, ("time", "user", "lon"))],
}


def save(tables, folder):
    """Write a part of the rows of each table to a file."""
    folder.mkdir()
    for number, table in enumerate(tables):
        start = SIZE * number // len(tables)
        rows = table.slice(start, SIZE * (number + 1) // len(tables) - start)
        pq.write_table(rows, folder / f"{number}.parquet", row_group_size=17)
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("chunk", [10, 10**6])
@pytest.mark.parametrize("case", CASES)
def test_files_of_several_types_are_protected_as_they_are_read(tmp_path, monkeypatch, case, chunk):
    monkeypatch.setattr(files, "chunk_size", lambda memory, workers: chunk)
    folder = save(CASES[case], tmp_path / "in")
    segment = "trip" if "segments" in case else ...
    pg.protect_parquet(folder, tmp_path / "out", PROMESSE, keep_users=True, segment=segment)
    expected = PROMESSE.protect(pg.read_file(folder, segment=segment, as_traces=True)).to_frame()
    found = load(tmp_path / "out")
    assert len(found) > 0
    assert_equal(
        found.assign(time=found["time"].dt.as_unit("ns")), expected.assign(time=expected["time"].dt.as_unit("ns"))
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["user", "time"])
def test_columns_without_values_are_of_any_type(tmp_path, name):
    folder = save(
        [table_of(user=NUMBERS), table_of(user=NUMBERS).set_column(0, "user", pa.nulls(SIZE))], tmp_path / "in"
    )
    if name == "time":
        folder = save([table_of(), table_of(time=pa.nulls(SIZE))], tmp_path / "more")
    report = pg.protect_parquet(folder, tmp_path / "out", PROMESSE, keep_users=True, errors="skip")
    assert report.dropped_records == SIZE // 2
    assert load(tmp_path / "out")["user"].dtype.kind == ("i" if name == "user" else "O")


def test_times_beyond_nanoseconds_have_no_time_in_any_unit(tmp_path):
    late = pa.array([10**11, *SECONDS[1:].tolist()], pa.timestamp("s"))  # in the year 5138
    folder = save([table_of(time=late), table_of()], tmp_path / "in")
    with pytest.raises(
        ValueError, match=r"1 of 240 records cannot be used .*no time: 1, first in row 0 of .*0\.parquet"
    ):
        pg.protect_parquet(folder, tmp_path / "out", PROMESSE)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (table_of(user=NUMBERS), "1.parquet' has another type of values in the column 'user' .*: numbers, not text"),
        (table_of(time=SECONDS), "1.parquet' has another type of values in the column 'time' .*: numbers, not times"),
        (table_of(time=stamps("ns", "UTC")), "1.parquet' has .*: times with a zone, not times. .* convert it"),
    ],
)
def test_types_that_cannot_be_joined_are_refused_before_the_work(tmp_path, monkeypatch, other, words):
    monkeypatch.setattr(files, "find_space", None)  # the next step
    folder = save([table_of(), other], tmp_path / "in")
    with pytest.raises(ValueError, match=words) as caught:
        pg.protect_parquet(folder, tmp_path / "out", PROMESSE)
    assert "0.parquet" in str(caught.value)


def test_users_that_int64_does_not_hold_are_named_with_the_file(tmp_path):
    folder = save(
        [table_of(user=NUMBERS), table_of(user=NUMBERS.astype(np.uint64) + np.uint64(2**63))], tmp_path / "in"
    )
    with pytest.raises(ValueError, match=r"1.parquet': Users are numbers of 2⁶³ or more"):
        pg.protect_parquet(folder, tmp_path / "out", PROMESSE)


@pytest.mark.filterwarnings("ignore:The data", "ignore:Nothing is left")
def test_int96_is_utc_in_folders_too(tmp_path):
    pq.write_table(table_of(), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    with pytest.warns(UserWarning, match="'time', which are of the type int96, as UTC"):
        pg.protect_parquet(tmp_path / "a.parquet", tmp_path / "out", PROMESSE, keep_users=True)
    with warnings.catch_warnings(action="ignore"):
        expected = PROMESSE.protect(pg.read_file(tmp_path / "a.parquet", as_traces=True)).to_frame()
    assert_equal(load(tmp_path / "out"), expected)


ODD = {
    "list": pa.array([["a"]] * SIZE),
    "struct": pa.array([{"a": 1}] * SIZE),
    "map": pa.array([[("a", 1)]] * SIZE, pa.map_(pa.string(), pa.int64())),
    "time of day": pa.array([1] * SIZE, pa.time32("s")),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("role", ["user", "time", "segment", "lon"])
def test_columns_of_odd_types_are_refused_in_the_words_of_readers(tmp_path, role, kind):
    if (role, kind) == ("segment", "time of day"):  # which number segments as well as others
        return
    name = "trip" if role == "segment" else role
    table = table_of(**{name: ODD[kind]})
    pq.write_table(table, tmp_path / "a.parquet")
    named = {"segment": "trip"} if role == "segment" else {}
    words = {"user": "must hold text or integers", "time": "must hold datetimes", "lon": "must hold numbers"}
    with pytest.raises((TypeError, ValueError), match=words.get(role, "must hold text, numbers or times")) as read:
        pg.read_file(tmp_path / "a.parquet", **named)
    with pytest.raises(read.type) as protected:
        pg.protect_parquet(tmp_path / "a.parquet", tmp_path / "out", PROMESSE, **named)
    assert str(protected.value) == str(read.value)
    if not named:
        with pytest.raises(read.type, match=words[role]):
            pg.protect_arrow(table, PROMESSE)


@pytest.mark.parametrize(
    "kind", [pa.array([{"x": "1", "y": "2"}] * SIZE), pa.array([["1", "2"]] * SIZE, pa.list_(pa.string(), 2))]
)
def test_points_of_text_are_no_points(tmp_path, kind):
    table = points("xy")
    pq.write_table(
        table.set_column(2, "geometry", kind).replace_schema_metadata(table.schema.metadata), tmp_path / "a.parquet"
    )
    for call in (pg.read_file, lambda path: pg.protect_parquet(path, tmp_path / "out", PROMESSE)):
        with pytest.raises(ValueError, match=r"a.parquet': its geometries are neither WKB nor GeoArrow points"):
            call(tmp_path / "a.parquet")
