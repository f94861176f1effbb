"""read_table: GeoParquet and Parquet, GeoPackage and GeoJSON."""

import json
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely
from tables import (
    HEADER,
    LINE,
    ROWS,
    TIMES,
    as_frame,
    assert_rows,
    csv_of,
    geojson_of,
    parquet_bytes,
    refused,
    save,
    written,
)

import promesse_geo as pg
from promesse_geo.io.parquet_table import decode_points, encode_points
from promesse_geo.io.registry import guess_format
from promesse_geo.io.table import read_table


def columns_of_numbers() -> pa.Table:
    users, _, lon, lat = zip(*ROWS, strict=True)
    numbers = {"longitude": pa.array(map(float, lon)), "latitude": pa.array(map(float, lat))}
    return pa.table({"uid": users, "datetime": pa.array(TIMES), "note": ["a", "b", "c"]} | numbers)


def test_parquet_without_metadata_is_read_by_its_coordinates(tmp_path):
    pq.write_table(columns_of_numbers(), tmp_path / "table.parquet")
    assert_rows(read_table(tmp_path / "table.parquet"))


def test_the_crs_of_coordinates_can_be_given(tmp_path):
    meters = as_frame().to_crs(3857)
    table = pa.table({"user": meters["user"], "time": meters["time"], "x": meters.geometry.x, "y": meters.geometry.y})
    pq.write_table(table, tmp_path / "table.parquet")
    frame = read_table(tmp_path / "table.parquet", crs=3857)
    assert frame.crs == "EPSG:3857"
    np.testing.assert_allclose(frame.geometry.x, meters.geometry.x, rtol=0, atol=1e-6)


def test_well_known_binary_without_metadata_needs_a_crs(tmp_path):
    frame = as_frame()
    table = pa.table({"user": frame["user"], "time": frame["time"], "geometry": shapely.to_wkb(frame.geometry)})
    pq.write_table(table, tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="CRS of 'geometry' is unknown"):
        read_table(tmp_path / "table.parquet")
    assert_rows(read_table(tmp_path / "table.parquet", crs=4326))


@pytest.mark.parametrize("points", ["structures", "pairs", "triples"])
def test_points_of_geoarrow_are_read(points, tmp_path):
    x, y = as_frame().geometry.x, as_frame().geometry.y
    places = {
        "structures": lambda: pa.StructArray.from_arrays([pa.array(x), pa.array(y)], ["x", "y"]),
        "pairs": lambda: pa.FixedSizeListArray.from_arrays(np.column_stack([x, y]).ravel(), 2),
        "triples": lambda: pa.FixedSizeListArray.from_arrays(np.column_stack([x, y, x]).ravel(), 3),
    }[points]()
    about = {"ARROW:extension:name": "geoarrow.point", "ARROW:extension:metadata": json.dumps({"crs": "EPSG:4326"})}
    fields = [pa.field("user", pa.string()), pa.field("time", pa.timestamp("s", "UTC"))]
    schema = pa.schema([*fields, pa.field("place", places.type, metadata=about)])
    whole = pa.table([pa.array(as_frame()["user"]), pa.array(TIMES).cast(fields[1].type), places], schema=schema)
    pq.write_table(whole, tmp_path / "table.parquet")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert_rows(read_table(tmp_path / "table.parquet"))
    assert [str(one.message)[:18] for one in said] == (["The elevations (Z)"] if points == "triples" else [])


@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
def test_missing_points_are_counted(encoding, tmp_path):
    frame = as_frame()
    frame.geometry = [frame.geometry[0], None, shapely.Point()]
    frame.to_parquet(tmp_path / "table.parquet", geometry_encoding=encoding)
    with pytest.raises(ValueError, match=r"2 records of 3 cannot be used .* first in row 1 of"):
        read_table(tmp_path / "table.parquet")


def test_missing_users_of_integers_are_counted(tmp_path):
    as_frame().assign(user=pd.array([1, None, 2], "Int64")).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="no user: 1, first in row 1"):
        read_table(tmp_path / "table.parquet")
    with pytest.warns(UserWarning, match=r"1 record \(no user; first at row 1"):
        assert read_table(tmp_path / "table.parquet", errors="skip")["user"].tolist() == [1, 2]


@pytest.mark.parametrize("column", ["uid", "datetime"])
def test_columns_of_a_dictionary_are_read(column, tmp_path):
    table = columns_of_numbers()
    values = table[column].cast(pa.string()) if column == "uid" else table[column]
    table = table.set_column(table.column_names.index(column), column, values.dictionary_encode())
    pq.write_table(table, tmp_path / "table.parquet")
    assert_rows(read_table(tmp_path / "table.parquet"))


@pytest.mark.parametrize("users", [[1.5, 2.5, 3.5], [True, False, True], [b"a", b"b", b"c"], [["a"], ["b"], []]])
def test_users_of_other_kinds_are_refused_by_the_file(users, tmp_path):
    table = columns_of_numbers()
    pq.write_table(table.set_column(0, "uid", pa.array(users)), tmp_path / "table.parquet")
    with pytest.raises(TypeError, match=r"table\.parquet': the user column 'uid' must hold text or integers"):
        read_table(tmp_path / "table.parquet")


def test_a_file_that_says_its_crs_needs_none(tmp_path):
    as_frame().to_parquet(tmp_path / "table.parquet")
    assert_rows(read_table(tmp_path / "table.parquet", crs="OGC:CRS84"))
    with pytest.raises(ValueError, match="the file specifies its CRS"):
        read_table(tmp_path / "table.parquet", crs=2154)


@pytest.mark.parametrize("ending", ["parquet", "gpkg"])
def test_an_unknown_crs_can_be_given(ending, tmp_path):
    frame, path = as_frame().set_crs(None, allow_override=True), tmp_path / f"table.{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GeoPandas warns too
        frame.to_parquet(path) if ending == "parquet" else frame.to_file(path)
    with pytest.raises(ValueError, match="CRS is unknown"):
        read_table(path)
    assert_rows(read_table(path, crs=4326))


def parquet_of(tmp_path, geometry, **metadata):
    """A GeoParquet file whose geometry is replaced."""
    as_frame().to_parquet(tmp_path / "made.parquet")
    table = pq.read_table(tmp_path / "made.parquet")
    kept = table.schema.metadata | {key.encode(): value for key, value in metadata.items()}
    table = table.set_column(table.column_names.index("geometry"), "geometry", geometry(table["geometry"]))
    pq.write_table(table.replace_schema_metadata(kept), tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


def as_big_endian(column):
    return pa.array([shapely.to_wkb(shapely.from_wkb(point), byte_order=0) for point in column.to_pylist()])


def as_mixed_endian(column):
    return pa.array([*as_big_endian(column).to_pylist()[:2], *column.to_pylist()[2:]])


BYTES = {
    "as they are": lambda column: column,
    "large": lambda column: column.cast(pa.large_binary()),
    "large, in pieces": lambda column: pa.chunked_array(
        [column.cast(pa.large_binary()).combine_chunks()[:1], column.cast(pa.large_binary()).combine_chunks()[1:]]
    ),
    "of fixed size": lambda column: column.cast(pa.binary(21)),
    "views": lambda column: column.cast(pa.binary_view()),
    "big endian": as_big_endian,
    "of both ends": as_mixed_endian,
}


@pytest.mark.parametrize("kind", BYTES)
def test_well_known_binary_is_read_in_every_shape(kind, tmp_path):
    assert_rows(read_table(parquet_of(tmp_path, BYTES[kind])))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_well_known_binary_is_read_from_within_a_column(kind):
    column = pa.chunked_array([encode_points(np.arange(5.0), np.arange(5.0) + 40).cast(kind)] * 2)
    x, y, has_z = decode_points(column[3:7])
    assert (x.tolist(), y.tolist(), has_z) == ([3, 4, 0, 1], [43, 44, 40, 41], False)


def test_native_points_are_read(tmp_path):
    as_frame().to_parquet(tmp_path / "table.parquet", geometry_encoding="geoarrow")
    assert_rows(read_table(tmp_path / "table.parquet"))


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_elevations_are_left_out_and_said(ending, tmp_path):
    frame, path = as_frame(), tmp_path / f"table.{ending}"
    frame.geometry = gpd.points_from_xy(frame.geometry.x, frame.geometry.y, [1, 2, 3])
    save(frame, path)
    with pytest.warns(UserWarning, match=r"elevations \(Z\)"):
        found = read_table(path)
    assert_rows(found)


@pytest.mark.parametrize("geometry", [None, shapely.Point(), shapely.LineString([(0, 0), (1, 1)])])
@pytest.mark.parametrize("ending", ["parquet", "gpkg"])
def test_records_without_a_point_are_counted(geometry, ending, tmp_path):
    frame, path = as_frame(), tmp_path / f"table.{ending}"
    places = np.array(frame.geometry, dtype=object)
    places[1] = geometry
    save(frame.set_geometry(gpd.GeoSeries(places, crs=4326)), path)
    said = refused(path)
    assert "1 record of 3" in said
    assert "first in row 1" in said


@pytest.mark.parametrize("rows", [0, 1])
def test_few_or_no_records_are_a_table_as_well(rows, tmp_path):
    as_frame().iloc[:rows].to_parquet(tmp_path / "table.parquet")
    assert len(read_table(tmp_path / "table.parquet")) == rows
    assert len(read_table(csv_of(tmp_path, HEADER, *[LINE] * rows))) == rows


def test_a_geoparquet_index_of_times_is_found_by_its_name(tmp_path):
    as_frame().set_index("time").to_parquet(tmp_path / "table.parquet")
    assert_rows(read_table(tmp_path / "table.parquet"))


def test_geoparquet_without_crs_is_longitude_and_latitude(tmp_path):
    about = {"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Point"]}}}
    found = read_table(parquet_of(tmp_path, BYTES["as they are"], geo=json.dumps(about).encode()))
    assert found.crs == "OGC:CRS84"


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ('{"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "crs": null}}}', "CRS is unknown"),
        ("{cut", "metadata cannot be read"),
        ("[1]", "metadata cannot be read"),
        ('{"columns": {}}', "metadata cannot be read"),
        ('{"primary_column": "geometry", "columns": {"geometry": 3}}', "metadata cannot be read"),
    ],
)
def test_geoparquet_metadata_that_says_too_little_is_an_error(about, words, tmp_path):
    assert words in refused(parquet_of(tmp_path, BYTES["as they are"], geo=about.encode()))


def test_parquet_without_geometry_is_an_error(tmp_path):
    pd.DataFrame(as_frame().drop(columns="geometry")).to_parquet(tmp_path / "table.parquet")
    assert "no GeoParquet metadata" in refused(tmp_path / "table.parquet")


def test_polygons_are_no_records(tmp_path):
    ring = [[4, 45], [5, 45], [5, 46], [4, 45]]
    square = {"type": "Polygon", "coordinates": [ring]}
    said = refused(geojson_of(tmp_path, {"user": "ana", "time": "2024-03-04T08:00:00Z"}, geometry=square))
    assert "the geometries are Polygon; a trace is one point a row with a time" in said


@pytest.mark.parametrize(
    ("named", "columns"),
    [
        ({}, ["user", "time", "geometry"]),
        ({"user": "cab", "time": "when"}, ["cab", "when", "geometry"]),
        ({"user": None}, ["time", "geometry"]),
        ({"user": "file"}, ["user", "time", "geometry"]),
    ],
)
def test_an_empty_geojson_holds_no_records(named, columns, tmp_path):
    found = read_table(geojson_of(tmp_path), **named)
    assert list(found.columns) == columns
    assert len(found) == 0


def test_a_geopackage_has_one_layer_with_a_geometry(tmp_path):
    path = tmp_path / "table.gpkg"
    pyogrio.write_dataframe(pd.DataFrame({"style": ["red"]}), path, layer="styles")
    assert "no layer with a geometry" in refused(path)
    as_frame().to_file(path, layer="traces")
    assert_rows(read_table(path))
    as_frame().to_file(path, layer="more")
    assert "several layers: 'traces' and 'more'" in refused(path)


@pytest.mark.parametrize("ending", ["csv", "parquet", "gpkg", "geojson"])
def test_the_content_tells_the_format_whatever_the_name(ending, tmp_path):
    made, path = tmp_path / f"made.{ending}", tmp_path / "new_table.dat"
    pg.write(as_frame(), made)
    made.rename(path)
    assert guess_format(path) == "table"
    assert_rows(pg.read_file(path, as_traces=True).to_frame())


def test_a_layer_can_be_named(tmp_path):
    path = tmp_path / "table.gpkg"
    for layer in ("monday", "tuesday"):
        as_frame().to_file(path, layer=layer)
    with pytest.raises(ValueError, match="several layers: 'monday' and 'tuesday'"):
        read_table(path)
    with pytest.raises(ValueError, match=r"no layer 'friday' .*'monday' and 'tuesday'"):
        read_table(path, layer="friday")
    assert_rows(read_table(path, layer="tuesday"))


def test_parquet_is_read_by_its_content(tmp_path):
    assert_rows(read_table(written(tmp_path, parquet_bytes())))
