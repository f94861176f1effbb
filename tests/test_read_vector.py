"""Files of other vector formats are read by GDAL, and equal what geopandas reads."""

import json
import shutil
import sqlite3
import warnings

import geopandas as gpd
import numpy as np
import pandas as pd
import pyogrio
import pytest
from pandas.testing import assert_index_equal

import promesse_geo as pg

FORMATS = {
    "track.shp": "ESRI Shapefile",
    "track.fgb": "FlatGeobuf",
    "track.gml": "GML",
    "track.sqlite": "SQLite",
    "track.tab": "MapInfo File",
    "track.mif": "MapInfo File",
    "track.gmt": "OGR_GMT",
    "track.jml": "JML",
    "track.json": "JSONFG",
}
LOCAL = {"MapInfo File"}  # times without zone


def frame(*, crs=4326) -> gpd.GeoDataFrame:
    times = pd.to_datetime(
        ["2024-03-04T08:00:00Z", "2024-03-04T08:01:00.25Z", "2024-03-04T08:02:00Z"], format="ISO8601"
    )
    points = gpd.points_from_xy([4.8, 4.81, 4.82], [45.7, 45.71, 45.72], crs=4326)
    return gpd.GeoDataFrame({"user": ["ana", "ana", "ben"], "time": times}, geometry=points).to_crs(crs)


def write(data, path, driver, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of GDAL, on times as text
        pyogrio.write_dataframe(data, path, driver=driver, **options)
    return path


@pytest.mark.parametrize(("name", "driver"), FORMATS.items())
def test_points_of_gdal_equal_those_of_geopandas(tmp_path, name, driver):
    path = write(frame(), tmp_path / name, driver)
    read, other = pg.read_table(path), gpd.read_file(path).sort_values("time")
    assert list(read.user) == list(other.user) == ["ana", "ana", "ben"]
    np.testing.assert_array_equal(read.geometry.x, other.geometry.x)
    np.testing.assert_array_equal(read.geometry.y, other.geometry.y)
    expected = frame().time.dt.tz_localize(None) if driver in LOCAL else frame().time
    assert_index_equal(pd.DatetimeIndex(read.time), pd.DatetimeIndex(expected), check_names=False, exact="equiv")
    assert pg.read_file(path, as_traces=True).records == 3


RECORDS = [("ana", "2024-03-04T08:00:00Z", 4.8, 45.7), ("ben", "2024-03-04T08:01:00Z", 4.81, 45.71)]
TOPOJSON = {
    "bbox": [4, 45, 5, 46],
    "type": "Topology",
    "arcs": [],
    "objects": {
        "track": {
            "type": "GeometryCollection",
            "geometries": [
                {"type": "Point", "coordinates": [x, y], "properties": {"user": user, "time": time}}
                for user, time, x, y in RECORDS
            ],
        }
    },
}
ESRI = {
    "displayFieldName": "",
    "fields": [{"name": name, "type": "esriFieldTypeString", "length": 99} for name in ("user", "time")],
    "geometryType": "esriGeometryPoint",
    "spatialReference": {"wkid": 4326},
    "features": [
        {"attributes": {"user": user, "time": time}, "geometry": {"x": x, "y": y}} for user, time, x, y in RECORDS
    ],
}


@pytest.mark.parametrize("name", ["track.json", "track.topojson", "track.csv"])
@pytest.mark.parametrize(("content", "driver"), [(TOPOJSON, "TopoJSON"), (ESRI, "ESRIJSON")])
def test_other_json_of_gdal_equals_that_of_geopandas(tmp_path, content, driver, name):
    path = tmp_path / name
    path.write_text(json.dumps(content))
    read, other = pg.read_file(path), gpd.read_file(f"{driver}:{path}")
    assert list(read.user) == list(other.user) == ["ana", "ben"]
    np.testing.assert_allclose(read.geometry.x, other.geometry.x, rtol=0, atol=1e-9)
    np.testing.assert_allclose(read.geometry.y, other.geometry.y, rtol=0, atol=1e-9)
    assert list(read.time) == list(pd.to_datetime(other.time, utc=True))
    assert read.crs.is_geographic


def test_spatialite_is_read(tmp_path):
    path = write(frame(), tmp_path / "track.db", "SQLite", dataset_options={"SPATIALITE": "YES"})
    assert list(pg.read_table(path).user) == ["ana", "ana", "ben"]


def test_a_layer_is_chosen_by_name(tmp_path):
    path = write(frame(), tmp_path / "track.sqlite", "SQLite", layer="one")
    write(frame().head(1), path, "SQLite", layer="two", append=True)
    with pytest.raises(ValueError, match=r"several layers: 'one' and 'two'.*--layer"):
        pg.read_table(path)
    assert len(pg.read_table(path, layer="two")) == 1


def test_the_crs_of_the_file_holds(tmp_path):
    path = write(frame(crs=32631), tmp_path / "track.fgb", "FlatGeobuf")
    assert pg.read_table(path).crs == 32631
    with pytest.raises(ValueError, match="specifies its CRS"):
        pg.read_table(path, crs=3857)


def test_names_and_content_decide_whatever_the_file_is_called(tmp_path):
    path = write(frame(), tmp_path / "track.fgb", "FlatGeobuf")
    for name in ("data", "x.csv", "odd!name.zip!a", "GPX:track", "vsizip"):
        shutil.copy(path, tmp_path / name)
        assert len(pg.read_table(tmp_path / name)) == 3, name


def test_companions_of_a_shapefile_are_not_unread_files(tmp_path):
    write(frame(), tmp_path / "a.shp", "ESRI Shapefile")
    (tmp_path / "a.dbf").rename(tmp_path / "A.DBF")
    assert len(pg.read_table(tmp_path)) == 3  # a warning would be an error
    (tmp_path / "b.dbf").write_bytes(b"\3")
    with pytest.warns(UserWarning, match=r"1 file was not read.*\.dbf"):
        pg.read_table(tmp_path)


def test_a_shapefile_without_its_table_names_what_is_missing(tmp_path):
    path = write(frame(), tmp_path / "a.shp", "ESRI Shapefile")
    (tmp_path / "a.dbf").unlink()
    with pytest.raises(ValueError, match=r"a\.shp.*\.dbf"):
        pg.read_table(path)


def test_reading_writes_nothing_beside_the_file(tmp_path):
    path = write(frame(), tmp_path / "a.gml", "GML")
    (tmp_path / "a.xsd").unlink()
    pg.read_table(path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.gml"]


@pytest.mark.parametrize("name", ["track.fgb", "track.shp", "track.gml", "track.sqlite"])
def test_a_cut_file_is_named(tmp_path, name):
    path = write(frame(), tmp_path / name, FORMATS[name])
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(ValueError, match=name):
        pg.read_table(path)


def test_a_database_without_geometries_is_named_for_what_it_is(tmp_path):

    path = tmp_path / "log.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE log (user, time)")
    database.close()
    with pytest.raises(ValueError, match=r"log\.db.*SQLite database without geometries.*CSV"):
        pg.read_table(path)
