"""Backgrounds of maps: lines and polygons without tiles."""

import folium
import geopandas as gpd
import numpy as np
import pytest
import shapely
from maps import HALL, HOSTILE, call_in, calls_in, loaded_from_the_network, page, places, stroll, walk, wrapped

import promesse_geo as pg
from promesse_geo.plot import background


@pytest.fixture(scope="module")
def frame():
    return stroll()


def lines_in(drawn) -> list[np.ndarray]:
    """The paths of the background as the browser reads them."""
    call = call_in(drawn, "background")
    return np.split(places(call), np.cumsum(call.data["counts"])[:-1])


def near(*shapes, crs=4326) -> gpd.GeoDataFrame:
    return gpd.GeoDataFrame({"name": [HOSTILE] * len(shapes)}, geometry=list(shapes), crs=crs)


def test_streets_of_a_city_are_its_background():
    city, streets = pg.make_city(users=2, days=1, return_streets=True, recorder="phone")
    drawn = city.promesse.map(background=streets)
    for line, street in zip(lines_in(drawn), streets.geometry, strict=True):
        assert line == pytest.approx(shapely.get_coordinates(street), abs=1e-6)
    html = page(drawn)
    assert loaded_from_the_network(html) == []
    assert "avenue" not in html  # attributes do not enter the page


def test_lines_and_polygons_of_any_kind_and_crs_are_drawn(frame):
    line = shapely.LineString([(4.84, 45.76), (4.85, 45.77)])
    area = shapely.box(4.84, 45.75, 4.86, 45.77).difference(shapely.box(4.845, 45.755, 4.85, 45.76))
    shapes = near(shapely.MultiPolygon([area]), shapely.MultiLineString([line]), line, shapely.Point(), None)
    for each in (shapes, shapes.to_crs(2154), shapes.geometry):
        drawn = frame.promesse.map(background=each)
        data = call_in(drawn, "background").data
        assert (data["lines"], data["rings"], data["counts"]) == (2, [2], [2, 2, 5, 5])
        assert lines_in(drawn)[0] == pytest.approx(shapely.get_coordinates(line), abs=2e-6)
        assert lines_in(drawn)[2].min(axis=0) == pytest.approx([4.84, 45.75], abs=2e-6)
        assert "alert(1)" not in page(drawn)


def test_both_maps_of_a_pair_have_the_background(frame):
    pair = frame.promesse.map_pair(frame, background=near(shapely.LineString([(4.84, 45.76), (4.85, 45.77)])))
    halves = [child for child in pair._children.values() if isinstance(child, folium.Map)]
    assert [len(calls_in(half, "background")) for half in halves] == [1, 1]


def test_only_what_is_near_the_data_enters_the_page(frame):
    here, there = (shapely.LineString([(x, 45.76), (x + 0.001, 45.76)]) for x in (4.845, 9.0))
    (line,) = lines_in(frame.promesse.map(background=near(there, here, there)))
    assert line[0] == pytest.approx([4.845, 45.76])
    with pytest.warns(UserWarning, match=r"background has nothing near the data\. Check its CRS"):
        drawn = frame.promesse.map(background=near(there))
    assert call_in(drawn, "background").data["counts"] == []
    assert "The background has nothing near the data." in call_in(drawn, "addControls").data["remarks"]
    empty = frame.promesse.map(period="1999-01-01", background=near(here))
    assert call_in(empty, "background").data["counts"] == []


def test_a_large_background_is_simplified_with_a_remark(frame, monkeypatch):
    monkeypatch.setattr(background, "MOST_VERTICES", 300)
    x = np.linspace(4.83, 4.87, 2000)
    wave = shapely.LineString(np.column_stack((x, 45.76 + 0.002 * np.sin(1000 * (x - 4.83)))))
    short = [shapely.LineString([(4.84 + i * 1e-5, 45.75), (4.84 + i * 1e-5, 45.7501)]) for i in range(400)]
    drawn = frame.promesse.map(background=near(wave))
    (line,) = lines_in(drawn)
    assert 40 < len(line) <= 300
    assert line[[0, -1]] == pytest.approx(shapely.get_coordinates(wave)[[0, -1]], abs=2e-6)
    apart = shapely.hausdorff_distance(shapely.LineString(line), wave)
    assert apart < 0.02 / 4096 + 1e-6
    drawn = frame.promesse.map(background=near(*short, wave))
    data = call_in(drawn, "background").data
    assert sum(data["counts"]) <= 300
    assert max(data["counts"]) == len(line)  # the longest is kept
    (remark,) = (each for each in call_in(drawn, "addControls").data["remarks"] if "background" in each)
    assert "simplified" in remark
    assert f"{len(data['counts'])}" in remark
    assert "401 lines" in remark


def test_a_large_background_is_cut_to_the_surroundings_of_the_data(frame, monkeypatch):
    monkeypatch.setattr(background, "MOST_VERTICES", 300)
    x = np.linspace(4, 6, 20_000)
    coast = shapely.LineString(np.column_stack((x, 45.76 + 0.001 * np.sin(400 * x))))
    hole = shapely.box(4.845, 45.755, 4.85, 45.76)
    country = shapely.segmentize(shapely.box(0, 40, 10, 50), 0.01).difference(hole)
    drawn = frame.promesse.map(background=near(coast, country))
    data = call_in(drawn, "background").data
    assert (data["lines"], data["rings"]) == (1, [2])
    line, outer, inner = lines_in(drawn)
    inside = (x > 4.83) & (x < 4.87)  # more than the view, and less than what is kept around it
    assert shapely.hausdorff_distance(shapely.LineString(line), coast) > 0.5
    kept = shapely.points(shapely.get_coordinates(coast)[inside])
    assert shapely.distance(shapely.LineString(line), kept).max() < 0.02 / 4096 + 1e-6
    assert np.ptp(outer, axis=0).max() < 0.1
    assert shapely.equals(shapely.normalize(shapely.Polygon(inner)), shapely.normalize(hole))


def test_a_line_of_equal_waves_takes_no_longer_than_others(frame):
    x = np.linspace(4.84, 4.87, 100_000)
    waves = shapely.LineString(np.column_stack((x, 45.76 + 0.01 * (np.arange(len(x)) % 2))))
    (line,) = lines_in(
        frame.promesse.map(background=near(waves))
    )  # takes minutes if all vertices are compared with all
    assert len(line) <= background.MOST_VERTICES


def test_a_background_across_the_antimeridian_lies_below_the_data():
    x = wrapped(179.9 + np.arange(200) * 0.001)
    frame = walk(x, np.full(200, -17.0))
    ways = near(*(shapely.LineString([(at, -17.1), (at, -16.9)]) for at in (179.95, -179.95)))
    first, second = lines_in(frame.promesse.map(background=ways))
    assert second[0, 0] - first[0, 0] == pytest.approx(0.1, abs=1e-5)
    data = places(call_in(frame.promesse.map(background=ways), "records"))
    assert data[:, 0].min() < first[0, 0] < second[0, 0] < data[:, 0].max()


def test_a_plane_without_a_globe_takes_a_background_of_its_own_crs():
    frame = walk(np.arange(90) * 10.0, np.zeros(90), crs=HALL)
    walls = near(shapely.box(-10, -20, 900, 30), crs=HALL)
    (ring,) = lines_in(frame.promesse.map(background=walls))
    assert ring.max(axis=0) == pytest.approx([900, 30])
    with pytest.raises(ValueError, match="'background' parameter of map must be in a CRS"):
        frame.promesse.map(background=near(shapely.box(0, 0, 1, 1)))


def with_hole(outer) -> shapely.Polygon:
    hole = shapely.box(4.845, 45.755, 4.85, 45.76)
    return shapely.Polygon(shapely.get_coordinates(outer), [hole.exterior])


@pytest.mark.parametrize("at", [95, np.inf])
def test_a_polygon_without_a_place_is_left_out_with_its_holes(frame, at):
    wrong = with_hole(shapely.LinearRing([(0, 40), (10, 40), (10, at), (0, 50)]))
    also = shapely.LineString([(4.84, 45.76), (4.85, at)])
    line = shapely.LineString([(4.84, 45.76), (4.85, 45.77)])
    drawn = frame.promesse.map(background=near(wrong, line, also))
    assert (call_in(drawn, "background").data["lines"], call_in(drawn, "background").data["rings"]) == (1, [])
    (remark,) = (each for each in call_in(drawn, "addControls").data["remarks"] if "background" in each)
    assert "2 lines or polygons of the background left out" in remark


@pytest.mark.parametrize(
    ("lon", "outer", "crs"),
    [(lon, (-180, -85, 180, 85), crs) for lon in (-179.9, -100.0, 4.8, 130.0, 179.9) for crs in (4326, 3857)]
    + [(lon, (-170, -80, 170, 80), crs) for lon in (-169.99, 4.8, 169.0) for crs in (4326, 3857)]
    + [(lon, (0, -80, 190, 80), 4326) for lon in (0.0, 4.8, 179.9, -179.9)]
    + [(lon, (-101, 40, 131, 50), crs) for lon in (-100.0, 130.0) for crs in (4326, 3857)],
)
def test_polygons_keep_their_extent(lon, outer, crs):
    frame = walk(lon + np.arange(60) * 1e-4, np.full(60, 45.0))
    area = shapely.box(*outer).difference(shapely.box(lon - 0.01, 44.99, lon + 0.01, 45.01))
    drawn = frame.promesse.map(background=near(area).to_crs(crs))
    rings = iter(lines_in(drawn))
    parts = [[next(rings) for _ in range(count)] for count in call_in(drawn, "background").data["rings"]]
    polygons = [shapely.Polygon(first, holes) for first, *holes in parts]
    for each in polygons:
        assert each.is_valid
        assert each.bounds[2] - each.bounds[0] == pytest.approx(outer[2] - outer[0], abs=1e-4)
    painted = shapely.union_all(polygons)
    around = shapely.union_all(
        [shapely.transform(area, lambda xy, by=by: np.add(xy, (by, 0))) for by in (-360, 0, 360)]
    )
    first = places(call_in(drawn, "records"))[0]
    for point in shapely.points(first + np.random.default_rng(0).uniform(-0.015, 0.015, (50, 2))):
        assert painted.covers(point) == around.covers(point)


def test_far_holes_of_a_near_polygon_stay_open(frame):
    far = shapely.box(9.0, 49.0, 9.5, 49.5)
    drawn = frame.promesse.map(background=near(shapely.box(0, 40, 10, 50).difference(far)))
    assert call_in(drawn, "background").data["rings"] == [2]


def test_polygons_are_simplified_with_all_their_holes(frame, monkeypatch):
    monkeypatch.setattr(background, "MOST_VERTICES", 20)
    holes = [shapely.box(4.84 + i * 1e-3, 45.76, 4.8405 + i * 1e-3, 45.7605) for i in range(6)]
    area = shapely.box(4.83, 45.75, 4.87, 45.77).difference(shapely.union_all(holes))
    line = shapely.LineString([(4.84, 45.76), (4.85, 45.77)])
    data = call_in(frame.promesse.map(background=near(area, line)), "background").data
    assert (data["lines"], data["rings"]) in [(0, [7]), (1, [])]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_background_beyond_the_edge_of_the_map_is_named(frame, sign):
    beyond = shapely.LineString([(4.84, sign * 86), (4.85, sign * 89)])
    with pytest.warns(UserWarning, match=r"lies beyond the edge of the map, which ends at latitude 85\.05"):
        drawn = frame.promesse.map(background=near(beyond))
    assert call_in(drawn, "background").data["counts"] == []
    (remark,) = (each for each in call_in(drawn, "addControls").data["remarks"] if "background" in each)
    assert "beyond the edge" in remark


def test_what_is_no_background_is_refused(frame):
    line = shapely.LineString([(4.84, 45.76), (4.85, 45.77)])
    with pytest.raises(TypeError, match="'background' parameter of map must be a GeoDataFrame"):
        frame.promesse.map(background="streets.gpkg")
    for empty in (near(line).iloc[:0], near(shapely.LineString(), None)):
        with pytest.raises(ValueError, match=r"'background' parameter of map must be .*It is empty"):
            frame.promesse.map(background=empty)
    wrong = [near(line).set_crs(None, allow_override=True), near(shapely.Point(4.84, 45.76)), near(line).iloc[:0]]
    for each in wrong:
        with pytest.raises(ValueError, match="'background' parameter of map_pair must be a GeoDataFrame"):
            frame.promesse.map_pair(frame, background=each)


def test_the_background_is_not_changed(frame):
    shapes = near(shapely.LineString([(4.84, 45.76), (4.85, 45.77)]))
    before = shapes.copy(deep=True)
    frame.promesse.map(background=shapes)
    assert shapes.equals(before)
