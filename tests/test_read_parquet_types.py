"""Parquet: columns of every type that programs write for users, times and points."""

import datetime
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from pyproj import CRS
from tables import ROWS, TIMES, as_frame, assert_rows, refused

import promesse_geo as pg


class Points(pa.ExtensionType):
    """Well-known binary, which pyarrow writes as Parquet's own type GEOMETRY or GEOGRAPHY."""

    def __init__(self, storage=None, about=b"{}"):
        self.about = about
        super().__init__(storage or pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self):
        return self.about

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, about):
        return cls(storage, about)


def table_of(user=None, time=None, **places) -> pa.Table:
    users, _, lon, lat = zip(*ROWS, strict=True)
    places = places or {"lon": pa.array(map(float, lon)), "lat": pa.array(map(float, lat))}
    user = pa.array(users) if user is None else user
    time = pa.array(TIMES.as_unit("ms")) if time is None else time
    return pa.table({"user": user, "time": time, **places})


def saved(folder, table, **options):
    pq.write_table(table, folder / "table.parquet", **options)
    return folder / "table.parquet"


def native(frame, **about) -> pa.ExtensionArray:
    points = pa.array(shapely.to_wkb(frame.geometry.to_numpy()), pa.binary())
    return pa.ExtensionArray.from_storage(Points(about=json.dumps(about).encode()), points)


def types_of(path) -> dict[str, str]:
    schema = pq.ParquetFile(path).schema
    return {schema.column(i).path: schema.column(i).logical_type.type for i in range(len(schema))}


@pytest.mark.parametrize("has_schema", [True, False], ids=["with Arrow's schema", "without"])
@pytest.mark.parametrize(("about", "kind"), [({}, "GEOMETRY"), ({"edges": "spherical"}, "GEOGRAPHY")])
def test_native_geometries_need_no_metadata(tmp_path, about, kind, has_schema):
    path = saved(tmp_path, table_of(position=native(as_frame(), **about)), store_schema=has_schema)
    assert types_of(path)["position"] == kind
    assert b"geo" not in (pq.read_schema(path).metadata or {})
    frame = pg.read_table(path)
    assert_rows(frame.to_crs(4326))
    assert frame.crs == "OGC:CRS84"
    assert frame.active_geometry_name == "position"
    assert_rows(pg.read_table(path, crs="EPSG:4326").to_crs(4326))


@pytest.mark.parametrize("has_schema", [True, False])
@pytest.mark.parametrize(
    "about",
    [
        {"crs": "EPSG:32631", "crs_type": "authority_code"},
        {"crs": CRS(32631).to_json_dict(), "crs_type": "projjson"},
        {"crs": "32631", "crs_type": "srid"},
    ],
    ids=["code", "PROJJSON", "SRID"],
)
def test_the_crs_of_native_geometries_is_read(tmp_path, about, has_schema):
    frame = as_frame().to_crs(32631)
    path = saved(tmp_path, table_of(geom=native(frame, **about)), store_schema=has_schema)
    read = pg.read_table(path)
    assert read.crs == "EPSG:32631"
    np.testing.assert_allclose(read.geometry.x, frame.geometry.x, rtol=0, atol=1e-6)
    assert "is another one" in refused(path, crs="EPSG:2154")


def test_a_crs_in_the_metadata_is_found_by_its_key(tmp_path):
    table = table_of(geom=native(as_frame().to_crs(32631), crs="projjson:place", crs_type="srid"))
    table = table.replace_schema_metadata({"place": CRS(32631).to_json()})
    assert pg.read_table(saved(tmp_path, table)).crs == "EPSG:32631"


def test_a_crs_that_cannot_be_read_can_be_specified(tmp_path):
    path = saved(tmp_path, table_of(geom=native(as_frame(), crs="nonsense", crs_type="authority_code")))
    assert "CRS cannot be read" in refused(path)
    assert_rows(pg.read_table(path, crs="EPSG:4326"))


def test_of_several_native_geometries_the_known_name_is_taken(tmp_path):
    two = {"start": native(as_frame()), "end": native(as_frame())}
    assert "'start' and 'end'" in refused(saved(tmp_path, table_of(**two)))
    assert_rows(pg.read_table(saved(tmp_path, table_of(**two, geom=native(as_frame())))).to_crs(4326))


def test_coordinates_that_are_named_come_before_native_geometries(tmp_path):
    places = {"lon": [1.0, 2, 3], "lat": [4.0, 5, 6]}
    path = saved(tmp_path, table_of(**places, geom=native(as_frame())))
    assert sorted(pg.read_table(path, lon="lon", lat="lat").geometry.x) == pytest.approx([1, 2, 3])
    assert_rows(pg.read_table(path).to_crs(4326))


def test_other_native_geometries_are_named(tmp_path):
    frame = as_frame()
    frame.geometry = shapely.buffer(frame.geometry.to_numpy(), 1)
    assert "Polygon" in refused(saved(tmp_path, table_of(geom=native(frame))))


def test_geometries_whose_type_is_known_to_the_process_are_read(tmp_path):
    """As when geoarrow is imported."""
    about = {"crs": "EPSG:4326"}
    path = saved(tmp_path, table_of(place=native(as_frame(), **about)))
    pa.register_extension_type(Points())
    try:
        assert isinstance(pq.read_schema(path).field("place").type, Points)
        assert_rows(pg.read_table(path).to_crs(4326))
        assert_rows(pg.read_table(pq.read_table(path)).to_crs(4326))
    finally:
        pa.unregister_extension_type("geoarrow.wkb")


indices = pytest.mark.parametrize(
    "index", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
)
texts = pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])


@indices
@pytest.mark.parametrize("column", ["user", "time", "lon"])
def test_dictionaries_of_any_index_are_read(tmp_path, index, column):
    table = table_of()
    keys = table[column].cast(pa.string()) if column == "user" else table[column]
    if column == "time":
        keys = pa.chunked_array([[time for _, time, *_ in ROWS]])
    encoded = keys.combine_chunks().dictionary_encode()
    encoded = pa.DictionaryArray.from_arrays(encoded.indices.cast(index), encoded.dictionary)
    place = table.column_names.index(column)
    table = table.set_column(place, column, encoded)
    assert_rows(pg.read_table(saved(tmp_path, table)))
    assert_rows(pg.read_table(table))


@texts
@pytest.mark.parametrize("is_encoded", [False, True])
def test_text_of_any_type_is_read(tmp_path, kind, is_encoded):
    users, times, *_ = zip(*ROWS, strict=True)
    columns = [pa.array(column).cast(kind) for column in (users, times)]
    if is_encoded and kind != pa.string_view():  # pyarrow encodes no views
        columns = [column.dictionary_encode() for column in columns]
    assert_rows(pg.read_table(saved(tmp_path, table_of(*columns))))
    assert_rows(pg.read_table(table_of(*columns)))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pa.array([datetime.date(2024, 3, 4)] * 3), "dates without a time of day"),
        (pa.array([datetime.date(2024, 3, 4)] * 3, pa.date64()), "dates without a time of day"),
        (pa.array([datetime.date(2024, 3, 4)] * 3).dictionary_encode(), "dates without a time of day"),
        (pa.array([datetime.time(8, 0)] * 3), "times of day without a date"),
        (pa.array([1, 2, 3], pa.time32("s")), "times of day without a date"),
        (pa.array([1, 2, 3], pa.duration("s")), "must hold datetimes"),
        (pa.array([True, False, True]), "must hold datetimes"),
    ],
    ids=["date32", "date64", "date32 encoded", "time64", "time32", "duration", "bool"],
)
def test_what_is_no_time_is_refused_in_words(tmp_path, values, words):
    assert words in refused(saved(tmp_path, table_of(time=values)))


@pytest.mark.parametrize("has_schema", [True, False])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Paris"])
def test_int96_is_utc_with_a_word(tmp_path, zone, has_schema):
    times = pa.array(TIMES.tz_convert(zone) if zone else TIMES.tz_localize(None)).cast(pa.timestamp("ns", zone))
    path = saved(tmp_path, table_of(time=times), use_deprecated_int96_timestamps=True, store_schema=has_schema)
    schema = pq.ParquetFile(path).schema
    assert schema.column(1).physical_type == "INT96"
    with pytest.warns(UserWarning, match="'time', which are of the type int96, as UTC"):
        assert_rows(pg.read_table(path))
    with pytest.warns(UserWarning, match="int96"):
        read = pg.read_table(path, tz="Europe/Berlin")
    assert str(read["time"].dt.tz) == "Europe/Berlin"
    assert set(read["time"]) == set(pd.DatetimeIndex(TIMES))


def test_geoparquet_that_names_no_column_of_the_file_is_refused(tmp_path):
    table = table_of(place=pa.array(shapely.to_wkb(shapely.points([[4.8, 45.7]] * 3)).tolist()))
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}
    path = saved(tmp_path, table.replace_schema_metadata({"geo": json.dumps(geo)}))
    words = "names the column of points 'geometry', which the file does not have"
    assert words in refused(path)
    with pytest.raises(ValueError, match=words):
        pg.protect_parquet(path, tmp_path / "out", pg.Promesse(200))


def test_times_of_several_zones_are_in_utc(tmp_path):
    (tmp_path / "in").mkdir()
    for zone in ("Europe/Paris", "Asia/Tokyo", "UTC"):
        table = table_of(time=pa.array(TIMES.tz_convert(zone)))
        pq.write_table(table, tmp_path / "in" / f"{zone[-5:]}.parquet")
    read = pg.read_table(tmp_path / "in", user="file")
    assert str(read["time"].dt.tz) == "UTC"
    assert set(read["time"]) == set(TIMES)
