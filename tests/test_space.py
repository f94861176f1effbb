"""Spaces: which one a CRS gets, and the way of coordinates in and out."""

import math
import re

import geopandas as gpd
import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import CRS, Transformer

from promesse_geo import Traces
from promesse_geo.traces.crs import read_crs, unit_factor
from promesse_geo.traces.space import EARTH_RADIUS, Plane, Sphere, choose_space

GRID = 'LOCAL_CS["building site",UNIT["metre",1]]'
FEET_GRID = 'LOCAL_CS["building site",UNIT["US survey foot",0.304800609601219]]'
US_FOOT = 1200 / 3937
PARIS = (2.3, 48.8, 2.4, 48.9)
SAN_FRANCISCO = (-122.5, 37.7, -122.3, 37.8)
DEGREES = Sphere(CRS("EPSG:4326"))


def box(crs: str, bounds: tuple[float, float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates in a CRS of the corners (west, south) and (east, north), given in degrees of WGS 84."""
    west, south, east, north = bounds
    there = Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    return there.transform(np.array([west, east]), np.array([south, north]))


def test_the_crs_of_many_files_is_made_once():
    written = CRS("EPSG:4326").to_json_dict()
    assert read_crs(written) is read_crs(dict(written))
    assert read_crs(written) == CRS(written)


# The choice


@pytest.mark.parametrize(
    "crs",
    [
        pytest.param("EPSG:4326", id="WGS 84"),
        pytest.param("EPSG:4979", id="WGS 84 with heights"),
        pytest.param("EPSG:4807", id="grads from Paris"),
        pytest.param("EPSG:4326+5773", id="WGS 84 and a geoid"),
        pytest.param("OGC:CRS84", id="WGS 84, longitude first"),
        pytest.param("+proj=longlat +ellps=bessel +towgs84=598.1,73.7,418.2 +type=crs", id="with a datum shift"),
        pytest.param("EPSG:3857", id="web Mercator"),
        pytest.param("EPSG:900913", id="web Mercator's old name"),
        pytest.param("EPSG:3857+5773", id="web Mercator and a geoid"),
        pytest.param("EPSG:3395", id="an ellipsoid's Mercator"),
        pytest.param("+proj=merc +lat_ts=48.8 +datum=WGS84 +type=crs", id="Mercator true to scale just there"),
        pytest.param("EPSG:6933", id="equal area, squeezed"),
        pytest.param("+proj=eqc +datum=WGS84 +type=crs", id="true to scale from north to south only"),
        pytest.param("+proj=cass +lon_0=-12 +datum=WGS84 +type=crs", id="true to scale from east to west only"),
        pytest.param("EPSG:32610", id="UTM of the other side of the globe"),
    ],
)
def test_lengths_are_taken_on_the_sphere(crs):
    chosen = choose_space(crs, *box(crs, PARIS))
    assert chosen == Sphere(CRS(crs))


@pytest.mark.parametrize(
    ("crs", "bounds", "metres"),
    [
        pytest.param("EPSG:32610", SAN_FRANCISCO, 1.0, id="UTM in its zone"),
        pytest.param("EPSG:32611", SAN_FRANCISCO, 1.0, id="UTM one zone away"),
        pytest.param("EPSG:32610+5773", SAN_FRANCISCO, 1.0, id="UTM and a geoid"),
        pytest.param("+proj=utm +zone=10 +ellps=WGS84 +towgs84=1,2,3 +type=crs", SAN_FRANCISCO, 1.0, id="datum shift"),
        pytest.param("EPSG:2227", SAN_FRANCISCO, US_FOOT, id="state plane in US feet"),
        pytest.param("+proj=utm +zone=10 +datum=WGS84 +units=km +type=crs", SAN_FRANCISCO, 1000.0, id="kilometres"),
        pytest.param("EPSG:3035", PARIS, 1.0, id="Europe's equal area near its centre"),
        pytest.param("EPSG:27572", (2.3, 50.9, 2.4, 51.0), 1.0, id="Lambert from Paris in grads"),
        pytest.param("EPSG:2056", (7.4, 46.9, 7.5, 47.0), 1.0, id="Swiss oblique Mercator"),
        pytest.param("EPSG:2154", PARIS, 1.0, id="Lambert 93"),
        pytest.param("EPSG:2193", (174.7, -41.3, 174.8, -41.2), 1.0, id="northing before easting"),
        pytest.param("EPSG:2053", (29.0, -26.1, 29.1, -26.0), 1.0, id="westing and southing"),
        pytest.param("EPSG:32661", (0.0, 89.9, 180.0, 89.9), 1.0, id="over the north pole"),
    ],
)
def test_lengths_are_taken_in_the_plane(crs, bounds, metres):
    chosen = choose_space(crs, *box(crs, bounds))
    assert chosen == Plane(CRS(crs))
    assert chosen.unit == pytest.approx(metres, rel=1e-12)


@pytest.mark.parametrize(
    ("crs", "bounds"),
    [
        pytest.param("EPSG:3035", (-9.0, 36.0, 30.0, 60.0), id="Europe's equal area over all of Europe"),
        pytest.param("EPSG:32610", (-135.0, 37.0, -122.0, 38.0), id="UTM far from its zone"),
        pytest.param("EPSG:2154", (2.3, 30.0, 2.4, 49.0), id="Lambert 93 down to the Sahara"),
    ],
)
def test_a_plane_serves_only_while_it_is_true_to_scale(crs, bounds):
    assert choose_space(crs, *box(crs, bounds)).name == "sphere"


@pytest.mark.parametrize(("kilometres", "name"), [(899, "plane"), (901, "sphere")])
def test_one_per_cent_of_scale_is_the_limit(kilometres, name):
    # Transverse Mercator of a sphere stretches by cosh(x/R), which is 1.01 at x = 0.141304 R = 900.25 km.
    x = np.array([-100_000.0, kilometres * 1_000.0])
    chosen = choose_space("+proj=tmerc +lon_0=9 +R=6371008.8 +type=crs", x, np.array([0.0, 1_000.0]))
    assert chosen.name == name


@pytest.mark.parametrize(("grid", "metres"), [(GRID, 1.0), (FEET_GRID, US_FOOT)])
def test_an_engineering_grid_is_a_plane(grid, metres):
    chosen = choose_space(grid, np.array([0.0, 9.0]), np.array([0.0, 9.0]))
    assert chosen.name == "plane"
    assert chosen.unit == pytest.approx(metres, rel=1e-12)


def test_no_data_gets_the_space_that_its_crs_would_have():
    none = np.empty(0)
    assert [choose_space(crs, none, none).name for crs in ("EPSG:4326", "EPSG:3857", "EPSG:32610", GRID)] == [
        "sphere",
        "sphere",
        "plane",
        "plane",
    ]


def test_a_word_decides():
    assert choose_space("EPSG:3857", *box("EPSG:3857", PARIS), space="plane") == Plane(CRS("EPSG:3857"))
    assert choose_space("EPSG:32610", *box("EPSG:32610", PARIS), space="plane") == Plane(CRS("EPSG:32610"))
    assert choose_space("EPSG:32610", *box("EPSG:32610", SAN_FRANCISCO), space="sphere") == Sphere(CRS("EPSG:32610"))
    assert choose_space("EPSG:4326", *box("EPSG:4326", PARIS), space="sphere") == DEGREES
    assert choose_space(GRID, np.zeros(1), np.zeros(1), space="plane").name == "plane"


def test_a_space_of_another_data_set_decides():
    plane = Plane(CRS("EPSG:32610"))
    assert choose_space("EPSG:32610", *box("EPSG:32610", PARIS), space=plane) is plane


@pytest.mark.parametrize(
    ("crs", "space", "error", "message"),
    [
        (
            "EPSG:4326",
            "plane",
            ValueError,
            "The 'space' parameter of Traces cannot be 'plane' for a geographic CRS, whose units are degrees. "
            "Project the data first, for example with gdf.to_crs(gdf.estimate_utm_crs()).",
        ),
        (GRID, "sphere", ValueError, "cannot be 'sphere' for a local grid without a globe."),
        ("EPSG:4326", "Sphere", ValueError, "must be one of 'sphere', 'plane'. Got 'Sphere' instead."),
        ("EPSG:4326", 3, TypeError, "must be one of 'sphere', 'plane'. Got 3 instead."),
        ("EPSG:4978", None, ValueError, "'Geocentric CRS', which has no longitude and latitude and no plane."),
        ("EPSG:5773", None, ValueError, "'Vertical CRS', which has no longitude and latitude and no plane."),
        ("here", None, ValueError, "must be a coordinate reference system such as 'EPSG:4326'. Got 'here' instead."),
    ],
)
def test_a_space_that_cannot_be_is_refused(crs, space, error, message):
    with pytest.raises(error, match=re.escape(message)):
        choose_space(crs, np.zeros(1), np.zeros(1), space=space)


# Coordinates in and out


@pytest.mark.parametrize("decimals", [0, 5, 6, 9, 12])
def test_degrees_come_back_to_the_digit(decimals):
    rng = np.random.default_rng(decimals)
    longitudes = np.round(rng.uniform(-180, 180, 50_000), decimals)
    latitudes = np.round(rng.uniform(-89, 89, 50_000), decimals)
    x, y = DEGREES.coordinates(DEGREES.points(longitudes, latitudes))
    np.testing.assert_array_equal(x, longitudes)
    np.testing.assert_array_equal(y, latitudes)


def test_thirteen_decimals_come_back_to_the_digit_up_to_120_degrees():
    rng = np.random.default_rng(13)
    latitudes = np.round(rng.uniform(-75, 75, 50_000), 13)
    for farthest, wrong in ((120, 0.0), (180, 1.1e-13)):  # radians beyond 2 have a bit less; a last digit is 11 nm
        longitudes = np.round(rng.uniform(-farthest, farthest, 50_000), 13)
        x, y = DEGREES.coordinates(DEGREES.points(longitudes, latitudes))
        np.testing.assert_allclose(x, longitudes, rtol=0, atol=wrong)
        np.testing.assert_array_equal(y, latitudes)


@pytest.mark.parametrize("longitude", [-180.0, 180.0, -90.0, 0.0, 90.0, 179.999999, -179.999999])
@pytest.mark.parametrize("latitude", [-89.999999, -45.0, 0.0, 10.0, 89.999999])
def test_the_antimeridian_comes_back_on_the_side_it_came_from(longitude, latitude):
    x, y = DEGREES.coordinates(DEGREES.points(np.array([longitude]), np.array([latitude])))
    assert x[0] == longitude
    assert y[0] == latitude


@pytest.mark.parametrize("longitude", [-180.0, -77.0, 0.0, 12.0, 180.0])
@pytest.mark.parametrize("latitude", [-90.0, 90.0])
def test_the_poles_come_back(longitude, latitude):
    _, y = DEGREES.coordinates(DEGREES.points(np.array([longitude]), np.array([latitude])))
    assert y[0] == latitude


def test_longitudes_past_the_antimeridian_are_the_same_place():
    there = DEGREES.points(np.array([190.0, 362.0]), np.array([10.0, -20.0]))
    here = DEGREES.points(np.array([-170.0, 2.0]), np.array([10.0, -20.0]))
    np.testing.assert_allclose(there, here, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("crs", "space"),
    [
        ("EPSG:3857", "sphere"),
        ("EPSG:3395", "sphere"),
        ("EPSG:4807", "sphere"),
        ("EPSG:27572", "sphere"),
        ("EPSG:4326+5773", "sphere"),
        ("EPSG:32631", "sphere"),
        ("EPSG:32631+5773", "sphere"),
        ("EPSG:32631", "plane"),
        ("EPSG:3857", "plane"),
        ("+proj=utm +zone=31 +datum=WGS84 +units=us-ft +type=crs", "plane"),
        ("+proj=utm +zone=31 +datum=WGS84 +units=us-ft +type=crs", "sphere"),
        ("+proj=utm +zone=31 +ellps=WGS84 +towgs84=100,200,300 +type=crs", "sphere"),
    ],
)
def test_coordinates_of_every_crs_come_back(crs, space):
    x, y = (np.linspace(*axis, 50) for axis in box(crs, PARIS))
    chosen = choose_space(crs, x, y, space=space)
    points = chosen.points(x, y)
    assert points.shape == (50, chosen.dimension)
    if space == "sphere":
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1.0, rtol=0, atol=4e-16)
    for came, went in zip((x, y), chosen.coordinates(points), strict=True):
        np.testing.assert_allclose(went, came, rtol=1e-14, atol=1e-8 if abs(came).max() > 1000 else 2e-13)


def test_grads_from_paris_are_turned_into_degrees():
    grads = Sphere(CRS("EPSG:4807"))
    x, y = grads.to_base(np.array([100.0, -200.0]), np.array([50.0, 100.0]))
    np.testing.assert_allclose(x, [90.0, -180.0], rtol=1e-15)
    np.testing.assert_allclose(y, [45.0, 90.0], rtol=1e-15)


def test_feet_become_metres():
    feet = Plane(CRS("EPSG:2227"))
    np.testing.assert_allclose(feet.points(np.array([3937.0]), np.array([-3937.0])), [[1200.0, -1200.0]], rtol=1e-12)


def test_coordinates_beyond_the_globe_are_said_to_be_misplaced():
    off, text = DEGREES.misplaced(np.array([0.0, 0.0, 0.0]), np.array([90.0, 90.1, -122.4]))
    assert off.tolist() == [False, True, True]
    assert "swapped?" in text
    off, _ = DEGREES.misplaced(np.array([190.0, -360.0, 360.0, 360.1, -360.1]), np.zeros(5))
    assert off.tolist() == [False, False, False, True, True]
    off, _ = Sphere(CRS("EPSG:4807")).misplaced(np.array([0.0, 0.0]), np.array([99.9, 100.1]))
    assert off.tolist() == [False, True]
    off, _ = Sphere(CRS("EPSG:32631")).misplaced(np.array([5e5, 1e30]), np.array([5e6, 0.0]))
    assert off.tolist() == [False, True]
    off, _ = Plane(CRS("EPSG:2227")).misplaced(np.array([2e8, 4e8, 0.0]), np.array([0.0, 0.0, -4e8]))
    assert off.tolist() == [False, True, True]


@pytest.mark.parametrize("code", [2154, 2263, 3857, 3395])
@pytest.mark.parametrize("wrong", [1e300, -1e30, 1.1e9])
def test_absurd_coordinates_are_misplaced_on_the_globe_too(code, wrong):
    off, _ = Sphere(CRS.from_epsg(code)).misplaced(np.array([5e5, wrong, 5e5]), np.array([2e5, 2e5, wrong]))
    assert off.tolist() == [False, True, True]


def test_coordinates_off_the_globe_are_misplaced_in_a_plane_too():
    off, text = Plane(CRS("EPSG:32631")).misplaced(np.array([5e5, 2e7, np.nan]), np.array([5e6, 5e6, 5e6]))
    assert off.tolist() == [False, True, False]
    assert "cannot place on the globe" in text
    off, text = Plane(CRS("EPSG:32631")).misplaced(np.array([5e5, 2e7, 1e9]), np.array([5e6, 5e6, 5e6]))
    assert off.tolist() == [False, True, True]
    assert "beyond 100,000 km" in text
    off, _ = Plane(CRS(GRID)).misplaced(np.array([5e5, 2e7]), np.array([5e6, 5e6]))
    assert off.tolist() == [False, False]


@pytest.mark.parametrize(
    ("crs", "degrees"),
    [
        pytest.param("+proj=tmerc +approx +lon_0=0 +type=crs", (95.0, 5.0), id="approximate transverse Mercator"),
        pytest.param("+proj=ortho +type=crs", (91.0, 0.0), id="the back of a globe seen from afar"),
        pytest.param("+proj=gnom +type=crs", (90.0, 0.0), id="gnomonic at its horizon"),
        pytest.param("EPSG:32631", (91.0, 0.5), id="UTM a quarter of the globe away"),
        pytest.param("EPSG:3857", (0.0, 90.0), id="web Mercator at the pole"),
    ],
)
def test_what_a_projection_does_not_reach_is_refused(crs, degrees):
    points = DEGREES.points(*np.array([degrees, (2.0, 5.0)]).T)
    with pytest.raises(ValueError, match=r"does not reach 1 of 2 locations .* gdf\.to_crs\(4326\).*ogr2ogr"):
        Sphere(CRS(crs)).coordinates(points)
    assert np.isfinite(Sphere(CRS(crs)).coordinates(points[1:])).all()


@pytest.mark.parametrize(("crs", "metres"), [("EPSG:32631", 2e7), (GRID, 1.1e8), (FEET_GRID, -1.1e8)])
def test_what_a_plane_does_not_reach_is_refused(crs, metres):
    points = np.array([[5e5, 5e6], [metres, 5e6], [5e5, 5e6]])
    with pytest.raises(ValueError, match="does not reach 1 of 3 locations"):
        Plane(CRS(crs)).coordinates(points)
    assert len(Plane(CRS(crs)).coordinates(points[::2])[0]) == 2


@pytest.mark.parametrize("wrong", [9e9, 9e6, np.nan])
def test_records_that_are_left_out_do_not_decide_the_space(wrong):
    frame = gpd.GeoDataFrame(
        {"user": ["a", "a", None], "time": pd.to_datetime([0, 60, 120], unit="s", utc=True)},
        geometry=gpd.points_from_xy([5e5, 5.1e5, wrong], [5e6, 5e6, 5e6]),
        crs=32631,
    )
    with pytest.warns(UserWarning, match="1 record of 3"):
        assert Traces.from_frame(frame, errors="drop").space.name == "plane"


def test_a_crs_without_a_way_back_is_refused_where_the_globe_is_needed():
    with pytest.raises(ValueError, match="cannot be converted to longitude and latitude"):
        choose_space("+proj=urm5 +n=0.5 +type=crs", np.array([0.0]), np.array([0.0]))


# Distances


def haversine(a: tuple[float, float], b: tuple[float, float]) -> float:
    """2R·asin √(sin²(Δφ/2) + cos φ₁ cos φ₂ sin²(Δλ/2))."""
    (west, south), (east, north) = (map(math.radians, place) for place in (a, b))
    square = math.sin((north - south) / 2) ** 2
    square += math.cos(south) * math.cos(north) * math.sin((east - west) / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(min(1.0, math.sqrt(square)))


def chord_length(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Chord c and angle θ: c = 2 sin(θ/2)."""
    one, two = DEGREES.points(*np.array([a, b]).T)
    return 2 * DEGREES.scale * math.asin(min(1.0, np.linalg.norm(two - one) / 2))


@pytest.mark.parametrize(
    ("a", "b", "metres"),
    [
        # One degree of any great circle: 2π · 6 371 008.8 m / 360.
        ((0.0, 0.0), (1.0, 0.0), 111_195.0797343),
        ((25.0, 60.0), (25.0, 61.0), 111_195.0797343),
        ((179.5, 0.0), (-179.5, 0.0), 111_195.0797343),
        ((0.0, 89.5), (180.0, 89.5), 111_195.0797343),
        # A quarter and half of it.
        ((10.0, 0.0), (-77.0, 90.0), 10_007_557.1760902),
        ((0.0, 0.0), (180.0, 0.0), 20_015_114.3521804),
        # One degree of longitude at 60° N: sin(θ/2) = cos 60° · sin 0.5°, so θ = 0.49999524°.
        ((0.0, 60.0), (1.0, 60.0), 55_597.0107),
        # One second of latitude.
        ((5.0, 50.0), (5.0, 50.0 + 1 / 3600), 30.8875221),
    ],
)
def test_distances_by_hand(a, b, metres):
    assert chord_length(a, b) == pytest.approx(metres, rel=1e-8)
    assert haversine(a, b) == pytest.approx(metres, rel=1e-8)
    assert naive.distance(naive.on_globe(*a), naive.on_globe(*b)) == pytest.approx(metres, rel=1e-8)


places = st.tuples(st.floats(-180, 180), st.floats(-90, 90))


@given(a=places, b=places)
def test_chords_of_unit_vectors_give_the_haversine_distance(a, b):
    # Towards the antipode both lose half their digits: an angle that is off by 1e-8 has the same chord.
    far = haversine(a, b)
    near_antipode = far > 0.999 * math.pi * EARTH_RADIUS
    assert chord_length(a, b) == pytest.approx(far, abs=1.0 if near_antipode else 1e-5)
    assert naive.distance(naive.on_globe(*a), naive.on_globe(*b)) == pytest.approx(
        far, abs=1.0 if near_antipode else 1e-5
    )


@given(place=places, metres=st.floats(0.01, 1_000), bearing=st.floats(-math.pi, math.pi))
def test_short_distances_are_accurate_to_nanometres(place, metres, bearing):
    up, arc = math.radians(place[1]), metres / EARTH_RADIUS
    here = naive.on_globe(*place)
    east = np.array([-math.sin(math.radians(place[0])), math.cos(math.radians(place[0])), 0.0])
    north = np.array([-math.sin(up) * east[1], math.sin(up) * east[0], math.cos(up)])
    there = math.cos(arc) * np.array(here) + math.sin(arc) * (math.sin(bearing) * east + math.cos(bearing) * north)
    assert naive.distance(here, tuple(there.tolist())) == pytest.approx(metres, abs=3e-9)


def test_the_extent_is_in_metres():
    width, height = DEGREES.extent(DEGREES.points(np.array([179.5, -179.5]), np.array([0.0, 0.0])))
    assert width == pytest.approx(111_193.7, rel=1e-5)
    assert height == pytest.approx(0.0, abs=1e-6)
    feet = Plane(CRS("EPSG:2227"))
    assert feet.extent(feet.points(np.array([0.0, 3937.0]), np.array([0.0, 7874.0]))) == pytest.approx((1200, 2400))


def test_a_space_of_another_crs_is_refused():
    with pytest.raises(ValueError, match="another CRS"):
        choose_space(4326, np.zeros(1), np.zeros(1), space=Plane(CRS.from_epsg(2154)))


@pytest.mark.parametrize("code", [4326, 4807, 4901, 2263, 2222, 2314, 3857, 32631])
def test_a_crs_from_a_file_has_the_unit_of_the_database(code):
    crs = CRS(code)
    copies = [CRS.from_json_dict(crs.to_json_dict()), CRS.from_wkt(crs.to_wkt()), CRS.from_wkt(crs.to_wkt("WKT1_GDAL"))]
    assert unit_factor(crs) == crs.axis_info[0].unit_conversion_factor
    assert [unit_factor(copy) for copy in copies] == [unit_factor(crs)] * 3
