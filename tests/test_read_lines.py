"""Lines with a time for each vertex are read as segments of their users; lines without are named for what they are."""

import json
import warnings

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pyogrio
import pytest
import shapely

import promesse_geo as pg

START = 1709539200  # 2024-03-04T08:00:00Z
ISO = [f"2024-03-04T08:0{minute}:00Z" for minute in range(5)]
LINES = [[[4.8, 45.7], [4.81, 45.7], [4.82, 45.7]], [[4.9, 45.8], [4.91, 45.8]]]
USERS, X, SEGMENTS = ["ana"] * 5, [4.8, 4.81, 4.82, 4.9, 4.91], [0, 0, 0, 1, 1]


def feature(coordinates, kind="LineString", **properties):
    return {"type": "Feature", "properties": properties, "geometry": {"type": kind, "coordinates": coordinates}}


def collection(*features, **members):
    return {"type": "FeatureCollection", "features": list(features), **members}


def timed(line, first):
    return [[*position, 200.0, START + 60 * (first + i)] for i, position in enumerate(line)]


def moving(line, first, **properties):
    geometry = {"type": "MovingPoint", "coordinates": line, "datetimes": ISO[first : first + len(line)]}
    return {"type": "Feature", "temporalGeometry": geometry, "properties": properties}


FILES = {
    "coordTimes": collection(
        feature(LINES[0], user="ana", coordTimes=ISO[:3]), feature(LINES[1], user="ana", coordTimes=ISO[3:])
    ),
    "coordTimes of several lines": collection(
        feature(LINES, "MultiLineString", user="ana", coordTimes=[ISO[:3], ISO[3:]])
    ),
    "coordTimes without parts": collection(feature(LINES, "MultiLineString", user="ana", coordTimes=ISO)),
    "coordinateProperties": collection(
        feature(LINES, "MultiLineString", user="ana", coordinateProperties={"times": [ISO[:3], ISO[3:]]})
    ),
    "times in milliseconds": collection(
        feature(LINES[0], user="ana", times=[(START + 60 * i) * 1000 for i in range(3)]),
        feature(LINES[1], user="ana", times=[(START + 60 * i) * 1000 for i in (3, 4)]),
    ),
    "positions with a time": collection(
        feature(timed(LINES[0], 0), user="ana"), feature(timed(LINES[1], 3), user="ana")
    ),
    "Moving Features": collection(moving(LINES[0], 0, user="ana"), moving(LINES[1], 3, user="ana")),
    "Moving Features, one": {
        **{"type": "Feature", "properties": {"user": "ana"}},
        "temporalGeometry": {
            "type": "MovingGeometryCollection",
            "prisms": [moving(LINES[0], 0)["temporalGeometry"], moving(LINES[1], 3)["temporalGeometry"]],
        },
    },
}


@pytest.mark.filterwarnings("ignore:read_table took the numbers", "ignore:.*Z coordinate", "ignore:.*elevation")
@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("name", ["t.geojson", "t.json"])
def test_lines_are_segments_of_their_user(tmp_path, kind, name):
    path = tmp_path / name
    path.write_text(json.dumps(FILES[kind]))
    frame = pg.read_table(path)
    assert frame.user.tolist() == USERS
    assert frame.geometry.x.tolist() == X
    assert frame.segment.tolist() == SEGMENTS
    assert pd.DatetimeIndex(frame.time).as_unit("s").asi8.tolist() == [START + 60 * i for i in range(5)]
    assert pg.read_file(path, as_traces=True).records == 5


def test_one_feature_a_line_is_read(tmp_path):
    path = tmp_path / "t.geojson"
    path.write_text("\n".join(json.dumps(each) for each in FILES["coordTimes"]["features"]))
    assert pg.read_table(path).segment.tolist() == SEGMENTS


def test_a_trip_without_user_is_its_own_user(tmp_path):
    path = tmp_path / "t.geojson"
    lines = [dict(feature(LINES[0], coordTimes=ISO[:3]), id=7), dict(feature(LINES[1], coordTimes=ISO[3:]), id=9)]
    path.write_text(json.dumps(collection(*lines)))
    assert pg.read_table(path).groupby("id").size().to_dict() == {7: 3, 9: 2}
    path.write_text(json.dumps(collection(feature(LINES[0], coordTimes=ISO[:3]))))
    with pytest.raises(ValueError, match="user"):
        pg.read_table(path)
    assert len(pg.read_table(path, user=None)) == 3
    assert pg.read_table(path, user="file").user.unique().tolist() == ["t"]


@pytest.mark.filterwarnings("ignore:read_table took the numbers", "ignore:.*Z coordinate", "ignore:.*elevation")
@pytest.mark.parametrize("dimensions", ["ZM", "M"])
@pytest.mark.parametrize(("name", "driver"), [("l.gpkg", "GPKG"), ("l.shp", "ESRI Shapefile"), ("l.sqlite", "SQLite")])
def test_the_m_of_lines_is_their_time(tmp_path, name, driver, dimensions):
    lines = [timed(LINES[0], 0), timed(LINES[1], 3)]
    picked = [[position if dimensions == "ZM" else [*position[:2], position[3]] for position in line] for line in lines]
    texts = [", ".join(" ".join(map(str, position)) for position in line) for line in picked]
    shapes = shapely.from_wkt([f"LINESTRING {dimensions} ({text})" for text in texts])
    geometry = pa.array(shapely.to_wkb(shapes, flavor="iso"), pa.binary())
    table = pa.table({"user": ["ana", "ana"], "geometry": geometry})
    options = {"geometry_name": "geometry", "geometry_type": "Unknown", "crs": "EPSG:4326"}
    pyogrio.write_arrow(table, tmp_path / name, driver=driver, **options)
    frame = pg.read_table(tmp_path / name).sort_values("time")
    other = pg.read_table(tmp_path / name, as_traces=True)
    assert frame.geometry.x.tolist() == X
    assert pd.DatetimeIndex(frame.time).as_unit("s").asi8.tolist() == [START + 60 * i for i in range(5)]
    assert len(other.breaks) == 1
    assert frame.segment.nunique() == 2
    assert set(frame.user) == {"ana"}


@pytest.mark.parametrize("name", ["l.geojson", "l.gpkg", "l.shp", "l.fgb", "l.parquet"])
@pytest.mark.parametrize("columns", [["user", "time"], ["name"]])
def test_lines_without_times_are_named_for_what_they_are(tmp_path, name, columns):
    values = {"user": ["a"], "time": pd.to_datetime(["2024-03-04T08:00:00Z"]), "name": ["x"]}
    line = shapely.LineString([(4.8, 45.7), (4.9, 45.8)])
    frame = gpd.GeoDataFrame({column: values[column] for column in columns}, geometry=[line], crs=4326)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame.to_parquet(tmp_path / name) if name.endswith("parquet") else pyogrio.write_dataframe(
            frame, tmp_path / name
        )
    if not (name.endswith("parquet") and columns == ["name"]):
        with pytest.raises(ValueError, match="LineString; a trace is one point a row with a time"):
            pg.read_table(tmp_path / name)
    with pytest.raises(ValueError, match="LineString; a trace is one point a row with a time"):
        pg.Traces.from_frame(frame)


def test_a_frame_with_some_points_is_judged_by_row():
    shapes = [shapely.LineString([(4.8, 45.7), (4.9, 45.8)]), shapely.Point(4.8, 45.7)]
    times = pd.to_datetime(["2024-03-04T08:00:00Z", "2024-03-04T08:01:00Z"])
    frame = gpd.GeoDataFrame({"user": ["a", "a"], "time": times}, geometry=shapes, crs=4326)
    with pytest.raises(ValueError, match="1 record of 2"):
        pg.Traces.from_frame(frame)


@pytest.mark.parametrize("times", [ISO[:2], ISO[:4], []])
def test_a_line_needs_a_time_for_each_position(tmp_path, times):
    path = tmp_path / "t.geojson"
    path.write_text(json.dumps(collection(feature(LINES[0], user="a", coordTimes=times))))
    with pytest.raises(ValueError, match=r"t\.geojson.*feature 0 has \d times? for 3 positions"):
        pg.read_table(path)


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf"), float("nan")])
def test_a_coordinate_beyond_all_numbers_is_an_error_with_the_feature(tmp_path, value):
    path = tmp_path / "t.geojson"
    path.write_text(json.dumps(collection(feature([[4.8, 45.7], [value, 45.7]], user="a", coordTimes=ISO[:2]))))
    with pytest.raises(ValueError, match=r"t\.geojson.*feature 0 has a position"):
        pg.read_table(path)


@pytest.mark.parametrize("coordinates", [[7, 8], [[7]], [None], "x"])
def test_damaged_coordinates_of_several_lines_are_an_error_with_the_file(tmp_path, coordinates):
    path = tmp_path / "t.geojson"
    path.write_text(json.dumps(collection(feature(coordinates, "MultiLineString", user="a", coordTimes=ISO[:2]))))
    with pytest.raises(ValueError, match=r"t\.geojson"):
        pg.read_table(path)


def test_integers_of_many_digits_are_users_but_no_times(tmp_path):
    path = tmp_path / "t.geojson"
    path.write_text(json.dumps(collection(feature(LINES[0], user=2**70, coordTimes=ISO[:3]))))
    assert pg.read_table(path, as_traces=True).users.tolist() == [str(2**70)]
    path.write_text(json.dumps(collection(feature(LINES[0], user="a", coordTimes=[2**70, 2**70, 2**70]))))
    with pytest.raises(ValueError, match=r"t\.geojson.*'time' holds numbers that are not seconds"):
        pg.read_table(path)


def test_waypoints_beside_lines_are_counted(tmp_path):
    path = tmp_path / "t.geojson"
    point = feature([4.8, 45.7], "Point", name="Start")
    path.write_text(json.dumps(collection(point, *FILES["coordTimes"]["features"])))
    with pytest.warns(UserWarning, match="1 feature .*without a line was not read"):
        assert len(pg.read_table(path)) == 5


@pytest.mark.parametrize("member", ["prisms", "sequences", "coordinates", "datetimes"])
@pytest.mark.parametrize("value", [7, "x", True, {"a": 1}, [7], [[1]], [None], ["x"], [{}], [[1, "x"]]])
@pytest.mark.parametrize("kind", ["MovingPoint", "MovingGeomPoint", "MovingGeometryCollection"])
def test_moving_features_that_are_damaged_are_an_error_with_the_file(tmp_path, member, value, kind):
    geometry = moving(LINES[0], 0)["temporalGeometry"] | {"type": kind, member: value}
    path = tmp_path / "m.json"
    for content in (geometry, {"type": "Feature", "properties": {"user": "a"}, "temporalGeometry": geometry}):
        path.write_text(json.dumps(content))
        with pytest.raises((ValueError, TypeError), match=r"m\.json"):
            pg.read_file(path, user=None)
