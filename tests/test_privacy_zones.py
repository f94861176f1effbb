"""Privacy zones: the slow twin, what is guaranteed, and where zones are found and placed."""

import math
import pickle
import warnings
from dataclasses import replace
from itertools import pairwise

import geopandas as gpd
import naive
import naive_zones
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import PLACES, SECOND, Walk, crowds, gathered, moved, walks

import promesse_geo as pg
from promesse_geo import Chain, PrivacyZones, Promesse, Traces, threads
from promesse_geo.mechanisms import zones as module
from promesse_geo.traces.owners import name_owners

GRID = "EPSG:32610"
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*Privacy zones removed",
    "ignore:.*could not be protected",
    "ignore:The data have",
    "ignore:.*in zones entirely",
    "ignore:.*at another place, which may be the home",
)
seeds = st.integers(0, 2**40)


def on_grid(paths: dict[str, list[tuple[float, float]]], *, seconds: float = 60.0) -> Traces:
    """Traces by user in a plane, a record every minute."""
    rows = np.array([row for path in paths.values() for row in path], float).reshape(-1, 2)
    counts = np.array([len(path) for path in paths.values()])
    times = np.concatenate([np.arange(count) for count in counts]) * int(seconds * SECOND)
    return Traces.from_arrays(*rows.T, times=times, users=list(paths), counts=counts, crs=GRID, space="plane")


def frame_of(shapes, users=None, crs=GRID) -> gpd.GeoDataFrame:
    return gpd.GeoDataFrame({} if users is None else {"user": users}, geometry=list(shapes), crs=crs)


def as_points(traces: Traces) -> list[tuple[float, ...]]:
    return [tuple(point) for point in traces.points.tolist()]


def pieces_of(traces: Traces) -> list[list[tuple[float, ...]]]:
    points = as_points(traces)
    return [points[first:last] for first, last in pairwise(traces.segments.tolist())]


def near(walk: Walk, row: int, metres: float, bearing: float) -> gpd.GeoDataFrame:
    """A place some metres from a record of a walk."""
    row = row % len(walk.x)
    place = moved(walk.x[row], walk.y[row], metres=metres, bearing=bearing, space=walk.space)
    return frame_of([shapely.Point(place)], crs=walk.crs)


def point_in(traces: Traces, place: gpd.GeoDataFrame) -> tuple[float, ...]:
    return tuple(traces.space.points(place.geometry.x.to_numpy(), place.geometry.y.to_numpy())[0].tolist())


# The slow twin


@given(walk=walks(epsilon=200.0), row=st.integers(0, 99), off=st.floats(0, 800), turn=st.floats(0, 6.28), seed=seeds)
def test_zones_cut_as_the_twin_cuts(walk, row, off, turn, seed):
    place = near(walk, row, off, turn)
    traces = walk.traces()
    mechanism = PrivacyZones(500, 400, zones=place, seed=seed)
    bearing, metres = naive_zones.draw(seed, None, 0, 400.0)
    centre = moved(place.geometry.x[0], place.geometry.y[0], metres=metres, bearing=bearing, space=walk.space)
    at = tuple(traces.space.points(*np.array(centre)[:, None])[0].tolist())
    original = as_points(traces)
    margins = [abs(naive.distance_to_segment(at, a, b) - 500) for a, b in pairwise(original)]
    assume(min([*margins, *(abs(naive.distance(at, point) - 500) for point in original)]) > 1e-4)
    result = mechanism.protect(traces)
    assert pieces_of(result) == naive_zones.cut(pieces_of(traces), [at], 500.0)


@pytest.mark.compiled
@given(crowd=crowds(), data=st.data())
def test_many_zones_cut_as_the_twin_cuts(crowd, data):
    """Integers in the plane: no rounding; several users with breaks and zones of their own and for all."""
    assume(crowd[0].space == "plane")
    whole = gathered([replace(walk, x=np.rint(walk.x), y=np.rint(walk.y)) for walk in crowd])
    whole = replace(whole, points=np.rint(whole.points))
    breaks = np.setdiff1d(np.arange(5, whole.records, 5), whole.offsets)
    traces = replace(whole, breaks=breaks)
    rows = data.draw(st.lists(st.integers(0, whole.records - 1), min_size=1, max_size=8))
    places = whole.points[rows] + np.array(
        data.draw(
            st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=len(rows), max_size=len(rows))
        )
    )
    users = data.draw(
        st.one_of(st.none(), st.lists(st.integers(0, len(crowd)), min_size=len(rows), max_size=len(rows)))
    )
    frame = frame_of(shapely.points(places), users)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = PrivacyZones(101.5, 0, zones=frame).protect(traces)
    expected = []
    pieces = pieces_of(traces)
    for number in range(len(traces)):
        centres = [
            tuple(place)
            for place, user in zip(places.tolist(), users or [number] * len(rows), strict=True)
            if user == number
        ]
        own = [piece for piece, owner in zip(pieces, traces.segment_owners, strict=True) if owner == number]
        expected += naive_zones.cut(own, centres, 101.5)
    assert pieces_of(result) == expected


# What is guaranteed


@given(walk=walks(epsilon=200.0), row=st.integers(0, 99), off=st.floats(0, 600), turn=st.floats(0, 6.28), seed=seeds)
def test_nothing_comes_near_the_place(walk, row, off, turn, seed):
    """Neither a record, nor a line between two of one segment; also after Promesse."""
    place, traces = near(walk, row, off, turn), walk.traces()
    at = point_in(traces, place)
    zones = PrivacyZones(500, 400, zones=place, seed=seed)
    for mechanism in (zones, Chain([zones, Promesse(200)]), Chain([zones, Promesse(900, variant="pseudocode")])):
        for piece in pieces_of(mechanism.protect(traces)):
            assert all(naive.distance(at, point) > 100 - 1e-5 for point in piece)
            assert all(naive.distance_to_segment(at, a, b) > 100 - 1e-5 for a, b in pairwise(piece))


@given(walk=walks(epsilon=200.0), seed=seeds)
def test_nothing_comes_near_the_place_that_is_found(walk, seed):
    traces = walk.traces()
    ends = as_points(traces)
    gaps = np.flatnonzero(np.diff(traces.times) >= 4 * 3_600 * SECOND) + 1
    bounds = [0, *gaps.tolist(), len(ends)]
    rows = [row for first, last in pairwise(bounds) for row in dict.fromkeys((first, last - 1))]
    spots = naive_zones.spots([ends[row] for row in rows], number=2)
    for count in (1, 2):
        result = Chain([PrivacyZones(500, 400, places=count, seed=seed), Promesse(200)]).protect(traces)
        for piece in pieces_of(result):
            for at in spots[:1]:
                assert all(naive.distance(at, point) > 100 - 1e-5 for point in piece)
                assert all(naive.distance_to_segment(at, a, b) > 100 - 1e-5 for a, b in pairwise(piece))


def test_a_chord_of_promesse_that_crosses_a_zone_is_broken():
    """A way around a circle of 500 m, at 501 m: chords of 700 m come as near as 358 m."""
    angles = np.linspace(0.3, 2 * math.pi - 0.3, 400)
    ring = np.column_stack((np.cos(angles), np.sin(angles))) * 501.0
    path = [(3_000.0, 148.0), *map(tuple, ring.tolist()), (3_000.0, -148.0)]
    traces = on_grid({"a": path})
    zones = PrivacyZones(500, 0, zones=frame_of([shapely.Point(0, 0)]))
    assert len(zones.protect(traces).breaks) == 0
    separately = Promesse(700).protect(zones.protect(traces))
    together = Chain([zones, Promesse(700)]).protect(traces)
    assert separately.points.tobytes() == together.points.tobytes()
    assert len(together.breaks) > 2
    nearest = [
        naive.distance_to_segment((0.0, 0.0), a, b) for piece in pieces_of(separately) for a, b in pairwise(piece)
    ]
    assert min(nearest) < 400
    nearest = [naive.distance_to_segment((0.0, 0.0), a, b) for piece in pieces_of(together) for a, b in pairwise(piece)]
    assert min(nearest, default=500) >= 500


# Breaks, names and times


def test_an_example_by_hand():
    """A way through a circle of 100 m around (0, 0), once with records inside, once across it in one step."""
    path = [(-300, 50), (-200, 50), (-50, 50), (50, 50), (200, 50), (200, 300), (300, 0), (-300, 0), (-400, 0)]
    traces = on_grid({"a": path, "b": [(0, 0), (10, 10)], "c": [(500, 500)]})
    zones = PrivacyZones(100, 0, zones=frame_of([shapely.Point(0, 0)]))
    with pytest.warns(
        UserWarning,
        match=r"removed 4 of 12 records, and made 2 breaks.*1 of 3 traces lies in zones entirely and was dropped",
    ):
        result = zones.protect(traces)
    assert result.users.tolist() == ["a", "c"]
    assert result.segments.tolist() == [0, 2, 5, 7, 8]
    assert [point for piece in pieces_of(result) for point in piece] == [*path[:2], *path[4:], (500, 500)]
    assert (result.times[:7] // SECOND).tolist() == [0, 60, 240, 300, 360, 420, 480]
    frame = zones.protect(traces.to_frame())
    assert frame["segment"].tolist() == [0, 0, 1, 1, 1, 2, 2, 0]
    assert frame["time"].dt.unit == traces.to_frame()["time"].dt.unit


def test_breaks_stay_and_no_line_is_seen_across_them():
    traces = on_grid({"a": [(-300, 0), (-200, 0), (200, 0), (300, 0)]})
    broken = replace(traces, breaks=np.array([2]))
    zones = PrivacyZones(100, 0, zones=frame_of([shapely.Point(0, 0)]))
    result = zones.protect(broken)
    assert result.segments.tolist() == [0, 2, 4]
    far = replace(traces, breaks=np.array([1]))
    assert zones.protect(far).segments.tolist() == [0, 1, 2, 4]


def test_without_zones_near_nothing_changes():
    city = pg.make_city(users=2, days=1, as_traces=True, recorder="phone")
    far = frame_of([shapely.Point(0, 0)], crs=4326)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = PrivacyZones(zones=far, seed=1).protect(city)
    assert result.points.tobytes() == city.points.tobytes()
    assert result.times.tobytes() == city.times.tobytes()
    assert PrivacyZones(seed=1).protect(city.select(np.zeros(city.records, bool))).records == 0


# Polygons


SQUARE = shapely.box(-100, -100, 100, 100)


def test_polygons_are_taken_as_they_are():
    path = [(-300, 0), (-101, 0), (-100, 0), (99, 99), (101, 101), (300, -99), (-300, -300)]
    traces = on_grid({"a": path})
    result = PrivacyZones(zones=frame_of([SQUARE])).protect(traces)
    assert as_points(result) == [path[0], path[1], path[4], path[5], path[6]]
    assert result.segments.tolist() == [0, 2, 5]
    ring = frame_of([SQUARE.difference(shapely.box(-50, -50, 50, 50))])
    hole = PrivacyZones(zones=ring).protect(on_grid({"a": [(0, 0), (10, 10), (200, 0)]}))
    assert hole.segments.tolist() == [0, 2, 3]  # in the hole, and across the ring
    several = frame_of([shapely.MultiPolygon([SQUARE, shapely.box(1_000, -100, 1_100, 100)])])
    assert PrivacyZones(zones=several).protect(on_grid({"a": [(0, 0), (500, 0), (1_050, 0)]})).records == 1
    assert not PrivacyZones(zones=several).is_random


@given(walk=walks(epsilon=200.0), row=st.integers(0, 99), off=st.floats(0, 400), corners=st.integers(3, 9))
def test_polygons_agree_with_what_is_inside_by_angles(walk, row, off, corners):
    """Every removed record lies in the polygon by its winding number; no other one does."""
    traces, row = walk.traces(), row % len(walk.x)
    angles = np.linspace(0, 2 * math.pi, corners, endpoint=False) + 0.1
    far = [
        moved(walk.x[row], walk.y[row], metres=off + 300 * (1 + k % 2), bearing=angle, space=walk.space)
        for k, angle in enumerate(angles)
    ]
    assume(walk.space == "plane" or max(abs(y) for _, y in far) < 89)
    shape = shapely.Polygon(far)
    assume(walk.space == "sphere" or shape.is_valid)
    zones = PrivacyZones(zones=frame_of([shape], crs=walk.crs))
    vertices = traces.space.points(*np.array(far).T)
    kept = set(as_points(zones.protect(traces)))
    for point in set(as_points(traces)):
        inside, margin = winding(point, vertices)
        if margin > 0.5:  # metres from an edge
            assert (point not in kept) == inside


def winding(point, vertices) -> tuple[bool, float]:
    """Whether the angles of the corners seen from a point sum up to a full turn; and metres to the nearest edge."""
    vertices = [tuple(vertex) for vertex in vertices.tolist()]
    edges = list(zip(vertices, [*vertices[1:], vertices[0]], strict=True))
    margin = min(naive.distance_to_segment(point, a, b) for a, b in edges)
    if len(point) == 3 and naive.distance(point, vertices[0]) > 5e6:
        return False, margin
    total = 0.0
    for a, b in edges:
        total += turn_between(point, a, b)
    return abs(total) > math.pi, margin


def turn_between(point, a, b) -> float:
    """The signed angle at a point between the directions to a and b."""
    if len(point) == 2:
        (ax, ay), (bx, by) = naive.to(point, a), naive.to(point, b)
        return math.atan2(ax * by - ay * bx, ax * bx + ay * by)
    up = point
    flat = [tuple(x - naive.dot(up, v) * u for x, u in zip(v, up, strict=True)) for v in (a, b)]
    return math.atan2(naive.dot(up, tuple(np.cross(*flat))), naive.dot(*flat))


def from_place(place: tuple[float, float], metres: float, bearing: float) -> tuple[float, float]:
    """A position some metres away; at a pole, where nothing is north, the bearing is the longitude."""
    if abs(place[1]) == 90:
        return math.degrees(bearing), math.copysign(90 - math.degrees(metres / naive.RADIUS), place[1])
    return moved(*place, metres=metres, bearing=bearing, space="sphere")


@pytest.mark.parametrize("place", PLACES)
def test_polygons_work_anywhere_on_the_globe(place):
    """Corners 1 km around: across the antimeridian and around poles, too."""
    corners = [from_place(place, 1_000, turn) for turn in np.arange(12) * math.pi / 6]
    ways = [from_place(place, metres, 0.3) for metres in (3_000, 1_100, 900, 100)]
    x, y = np.array([*ways, from_place(place, 1_500, 3.4)]).T
    traces = Walk(x, y, np.arange(5) * SECOND, 100.0, "sphere").traces()
    result = PrivacyZones(zones=frame_of([shapely.Polygon(corners)], crs=4326)).protect(traces)
    assert as_points(result) == [as_points(traces)[row] for row in (0, 1, 4)]
    assert result.breaks.tolist() == [2]
    circle = PrivacyZones(1_000, 0, zones=frame_of([shapely.Point(place)], crs=4326)).protect(traces)
    assert circle.points.tobytes() == result.points.tobytes()


def test_edges_are_straight_in_the_crs_of_the_zones():
    """Along the parallel of 60 degrees, the great circle between corners 10 degrees apart runs 10 km further north."""
    box = frame_of([shapely.box(0, 59, 10, 60)], crs=4326)
    x, y = np.array([5.0, 5.0]), np.array([60.01, 59.99])
    traces = Walk(x, y, np.arange(2) * SECOND, 100.0, "sphere").traces()
    assert as_points(PrivacyZones(zones=box).protect(traces)) == as_points(traces)[:1]


def test_a_step_around_the_globe_crosses_what_is_on_its_way():
    square = frame_of([shapely.box(-1, -1, 1, 1)], crs=4326)
    for x in ([-95.0, 84.0], [-40.0, 100.0], [-100.0, 40.0], [-89.0, 89.0]):
        traces = Walk(np.array(x), np.zeros(2), np.arange(2) * SECOND, 100.0, "sphere").traces()
        assert PrivacyZones(zones=square).protect(traces).breaks.tolist() == [1]
    away = Walk(np.array([91.0, -91.0]), np.zeros(2), np.arange(2) * SECOND, 100.0, "sphere").traces()
    assert PrivacyZones(zones=square).protect(away).breaks.tolist() == []


@pytest.mark.parametrize("make", [pg.PrivacyZones, lambda **given: pg.recommended("people", **given)])
def test_places_are_not_found_beside_zones(make):
    homes = gpd.GeoDataFrame(geometry=gpd.points_from_xy([4.8], [45.7]), crs=4326)
    with pytest.raises(ValueError, match="'places' parameter of PrivacyZones must be omitted with 'zones'"):
        make(zones=homes, places=2)


def test_zones_in_another_crs_mean_the_same_places():
    city = pg.make_city(users=3, days=2, as_traces=True, recorder="phone")
    homes = city.to_frame().groupby("user").head(1).reset_index(drop=True)
    circles = gpd.GeoDataFrame({"user": homes["user"]}, geometry=homes.geometry.to_crs(2154).buffer(300))
    for frame in (homes[["user", "geometry"]], circles):
        results = [PrivacyZones(zones=frame.to_crs(crs), seed=1).protect(city).records for crs in (4326, 2154, 3857)]
        assert max(results) - min(results) <= 3  # projections bend edges, and bearings
        assert results[0] < city.records


# Where zones are found


def star(home, *, ways: int, length: float = 3_000.0, start: float = 0.0) -> list[list[tuple[float, float]]]:
    return [
        [
            (home[0] + d * math.cos(start + turn), home[1] + d * math.sin(start + turn))
            for d in np.linspace(0, length, 16)
        ]
        for turn in np.arange(ways)
    ]


def test_the_densest_spot_of_each_owners_ends_is_found():
    parts = {f"a-{number:05d}": path for number, path in enumerate(star((0, 0), ways=5))}
    parts |= {f"b-{number:05d}": path[::-1] for number, path in enumerate(star((20_000, 0), ways=4))}
    traces = in_a_row(parts)
    placed = PrivacyZones(500, 0).place(traces)
    assert placed.owners == ["a", "b"]
    assert placed.centres.tolist() == [[0, 0], [20_000, 0]]
    result = PrivacyZones(500, 0).protect(traces)
    assert np.hypot(*result.points.T).min() > 500


def in_a_row(parts: dict[str, list[tuple[float, float]]]) -> Traces:
    """Parts that follow each other in time."""
    traces = on_grid(parts)
    return replace(traces, times=np.arange(traces.records) * 60 * SECOND)


def test_traces_are_divided_at_gaps_of_four_hours():
    path = [(0, 0), (5_000, 0), (5_000, 3_000), (0, 0), (-5_000, 100), (0, 0)]
    traces = on_grid({"a": path})
    hours = np.array([0, 1, 2, 3, 7, 8]) * 3_600 * SECOND
    assert PrivacyZones(500, 0).place(replace(traces, times=hours)).centres.tolist() == [[0, 0]]
    together = on_grid({"a": [(9_000, 0), *path, (9_000, 10)]})
    assert PrivacyZones(500, 0).place(together).centres.tolist() == [[9_000, 0]]


def test_more_places_are_found_without_the_ends_of_those_before():
    parts = {
        f"a-{number:05d}": path
        for number, path in enumerate(star((0, 0), ways=5) + star((9_000, 0), ways=3, start=0.5))
    }
    traces = in_a_row(parts)
    placed = PrivacyZones(500, 0, places=2).place(traces)
    assert placed.centres.tolist() == [[0, 0], [9_000, 0]]
    many = PrivacyZones(500, 0, places=99).place(traces)
    assert len(many.owners) == 10  # the two, and 8 other ends of ways


@given(walk=walks(epsilon=200.0), count=st.integers(1, 3))
def test_places_are_found_as_the_twin_finds_them(walk, count):
    traces = walk.traces()
    points = as_points(traces)
    gaps = np.flatnonzero(np.diff(traces.times) >= 4 * 3_600 * SECOND) + 1
    bounds = [0, *gaps.tolist(), len(points)]
    rows = [row for first, last in pairwise(bounds) for row in dict.fromkeys((first, last - 1))]
    expected = naive_zones.spots([points[row] for row in rows], number=count)
    placed = PrivacyZones(500, 0, places=count).place(traces)
    assert len(placed.centres) == len(expected)
    assert all(naive.distance(tuple(a), b) < 1e-6 for a, b in zip(placed.centres.tolist(), expected, strict=True))
    assert placed.unclear == naive_zones.is_unclear([points[row] for row in rows], places=count)
    assert placed.fewer == (len(expected) < count)


def test_parts_that_overlap_in_time_are_other_people():
    paths = {f"rider-{number:05d}": path for number, path in enumerate(star((0, 0), ways=3))}
    assert name_owners(on_grid(paths)) == list(paths)
    assert name_owners(in_a_row(paths)) == ["rider"] * 3
    assert len(PrivacyZones(500, 0).place(on_grid(paths)).owners) == 3


# Displacement


def test_displacements_are_uniform_in_the_disc():
    """800 zones of users: a quarter of them in the inner half of the radius, and half on each side."""
    users = [f"user {number}" for number in range(800)]
    frame = frame_of([shapely.Point(0, 0)] * 800, users)
    centres = PrivacyZones(500, 400, zones=frame, seed=5).place(on_grid({"user 0": [(0, 0)]})).centres
    lengths = np.hypot(*centres.T)
    assert lengths.max() < 400
    assert abs(int((lengths < 200).sum()) - 200) < 5 * math.sqrt(150)
    for share in ((centres[:, 0] > 0), (centres[:, 1] > 0), (centres[:, 0] > centres[:, 1])):
        assert abs(int(share.sum()) - 400) < 5 * math.sqrt(200)


@pytest.mark.parametrize("place", PLACES)
def test_displacements_are_no_longer_than_offset_anywhere(place):
    frame = frame_of([shapely.Point(place)] * 50, crs=4326)
    traces = Walk(np.array([0.0]), np.array([0.0]), np.array([0]), 1.0, "sphere").traces()
    centres = PrivacyZones(500, 400, zones=frame, seed=1).place(traces).centres
    at = point_in(traces, frame)
    lengths = [naive.distance(at, tuple(centre)) for centre in centres.tolist()]
    assert 300 < max(lengths) <= 400
    assert np.allclose(np.linalg.norm(centres, axis=1), 1)
    for number, length in enumerate(lengths):
        assert length == pytest.approx(naive_zones.draw(1, None, number, 400.0)[1], abs=1e-6)


def test_a_secret_gives_the_same_zones_and_none_gives_new_ones():
    traces = on_grid({"a": star((0, 0), ways=1)[0], "b": star((0, 0), ways=1)[0]})
    frame = frame_of([shapely.Point(0, 0)] * 3, ["a", "b", "a"])

    def centres(seed, offset=400.0, shapes=frame):
        return PrivacyZones(500, offset, zones=shapes, seed=seed).place(traces).centres

    first = centres("secret")
    assert first.tolist() == centres("secret").tolist()
    assert len({tuple(centre) for centre in first.tolist()}) == 3  # of each owner and place
    assert first[1].tolist() == centres("secret", shapes=frame.iloc[1:])[0].tolist()
    assert first.tolist() != centres("other").tolist()
    assert centres(None).tolist() != centres(None).tolist()
    closer = centres("secret", offset=200.0)  # else two offsets on one line would give the place
    assert abs(first[0, 0] * closer[0, 1] - first[0, 1] * closer[0, 0]) > 1


# Same data, same result


def assert_same_bytes(first: Traces, second: Traces) -> None:
    assert first.users.tolist() == second.users.tolist()
    for name in ("offsets", "points", "times", "breaks"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


@pytest.mark.compiled
@given(crowd=crowds(), shares=st.integers(2, 9), seed=seeds)
def test_threads_and_partitions_do_not_matter(crowd, shares, seed):
    traces = gathered(crowd)
    mechanism = Chain([PrivacyZones(300, 200, seed=seed), Promesse(crowd[0].epsilon, ends=crowd[0].epsilon, seed=seed)])
    together = mechanism.protect(traces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "_LEAST", 1)
        patch.setattr(threads, "number", lambda: shares)
        assert_same_bytes(together, mechanism.protect(traces))
    alone = [mechanism.protect(traces.select(traces.trace_numbers == number)) for number in range(len(traces))]
    assert together.points.tobytes() == b"".join(each.points.tobytes() for each in alone)
    assert np.diff(together.segments).tolist() == [size for each in alone for size in np.diff(each.segments).tolist()]


def test_the_order_of_users_does_not_matter():
    city = pg.make_city(users=4, days=2, recorder="phone")
    mechanism = PrivacyZones(seed="s")
    results = [mechanism.protect(frame) for frame in (city, city.sort_values("user", ascending=False, kind="stable"))]
    pd.testing.assert_frame_equal(pd.DataFrame(results[0]), pd.DataFrame(results[1]))


def test_blocks_of_records_do_not_matter(monkeypatch):
    city = pg.make_city(users=2, days=1, as_traces=True, recorder="phone")
    mechanism = PrivacyZones(seed=2)
    first = mechanism.protect(city)
    monkeypatch.setattr(module.kernel, "BLOCK", 7)
    assert_same_bytes(first, mechanism.protect(city))


# Parameters


def test_zones_are_opaque():
    home = frame_of([shapely.Point(4.8123, 45.7654)], ["somebody"], crs=4326)
    mechanism = PrivacyZones(zones=home, seed="secret")
    shown = repr(mechanism) + str(mechanism.parameters()) + str(mechanism.description())
    assert repr(mechanism) == "PrivacyZones(radius=500.0, offset=400.0, zones=<1 zone>, places=1)"
    assert mechanism.parameters() == {"radius": 500.0, "offset": 400.0, "places": 1}
    assert not any(word in shown for word in ("somebody", "secret", "4.8", "45.7"))
    assert repr(PrivacyZones(zones=pd.concat([home] * 12))) == repr(mechanism).replace("<1 zone>", "<12 zones>")
    assert mechanism == PrivacyZones(zones=home.copy(), seed="secret")
    assert mechanism != PrivacyZones(zones=home.to_crs(3857), seed="secret")
    assert hash(mechanism) == hash(pickle.loads(pickle.dumps(mechanism)))
    assert eval(repr(PrivacyZones(600, 500, places=2))) == PrivacyZones(600, 500, places=2)


BAD = {
    "no frame": "home",
    "no CRS": gpd.GeoDataFrame(geometry=[shapely.Point(0, 0)]),
    "no rows": frame_of([]),
    "a line": frame_of([shapely.LineString([(0, 0), (1, 1)])]),
    "an empty shape": frame_of([shapely.Point()]),
    "a missing shape": frame_of([None]),
    "an infinite place": frame_of([shapely.Point(math.inf, 0)]),
    "a missing user": frame_of([shapely.Point(0, 0)], [None]),
    "two columns of users": gpd.GeoDataFrame(
        pd.concat((frame_of([shapely.Point(0, 0)], ["a"]), pd.Series(["b"], name="user")), axis=1)
    ),
}


@pytest.mark.parametrize("zones", BAD.values(), ids=BAD)
def test_what_is_no_zone_is_refused(zones):
    with pytest.raises((TypeError, ValueError), match="'zones' parameter of PrivacyZones"):
        PrivacyZones(zones=zones)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"radius": 0}, "'radius'"),
        ({"radius": "500"}, "'radius'"),
        ({"radius": 400}, "'offset' parameter of PrivacyZones must be below radius = 400 m"),
        ({"offset": -1}, "'offset'"),
        ({"offset": None}, "'offset'"),
        ({"places": 0}, "'places'"),
        ({"seed": 1.5}, "'seed'"),
    ],
)
def test_parameters_are_checked(parameters, match):
    with pytest.raises((TypeError, ValueError), match=match):
        PrivacyZones(**parameters)


def test_zones_that_cannot_be_placed_are_refused():
    traces = on_grid({"a": [(0, 0), (9, 9)]})
    local = frame_of([shapely.Point(0, 0)], crs='LOCAL_CS["building site",UNIT["metre",1]]')
    with pytest.raises(ValueError, match="without a place in the CRS"):
        PrivacyZones(zones=local).protect(traces)
    swapped = frame_of([shapely.Point(35.7, 139.7)], crs=4326)  # latitude and longitude
    for zones in (swapped, frame_of([shapely.Point(4.8, 45.7)], crs="IAU_2015:30100")):
        with pytest.raises(ValueError, match="without a place in the CRS"):
            PrivacyZones(zones=zones).protect(pg.make_city(users=1, days=1, recorder="phone"))
    huge = frame_of([shapely.box(-100, -80, 100, 80)], crs=4326)
    with pytest.raises(ValueError, match="more than 60 degrees"):
        PrivacyZones(zones=huge).protect(pg.make_city(users=1, days=1, recorder="phone"))


def test_users_of_zones_that_the_data_lack_are_counted():
    traces = on_grid({"a": [(0, 0), (9, 9)]})
    frame = frame_of([shapely.Point(5_000, 0)] * 2, ["a", "nobody"])
    with pytest.warns(UserWarning, match="1 of 2 users of zones is not in the data") as caught:
        PrivacyZones(zones=frame).protect(traces)
    assert "nobody" not in str(caught[0].message)


def test_it_is_random_without_a_secret_only():
    home, square = frame_of([shapely.Point(0, 0)]), frame_of([SQUARE])
    assert PrivacyZones().is_random
    assert PrivacyZones(zones=home).is_random
    assert not PrivacyZones(seed=1).is_random
    assert not PrivacyZones(500, 0).is_random
    assert not PrivacyZones(zones=square).is_random
    assert PrivacyZones().with_seed(4) == PrivacyZones(seed=4)


def commutes(numbers: dict[str, tuple[int, ...]]) -> Traces:
    """Parts of each user that begin at places 5 km apart, so many at each, and end where no other one does."""
    paths, metres = {}, 0.0
    for user, counts in numbers.items():
        part = 0
        for place, count in enumerate(counts):
            for _ in range(count):
                metres += 1_000.0
                paths[f"{user}-{part:05d}"] = [(500_000 + 5_000.0 * place, 4e6), (600_000 + metres, 4.1e6)]
                part += 1
    traces = on_grid(paths)
    hours = np.repeat(np.arange(len(traces)) * 10 * 3_600 * SECOND, traces.counts)
    return replace(traces, times=traces.times + hours)


@pytest.mark.parametrize(
    ("counts", "places", "unclear"),
    [((4, 2), 1, 1), ((5, 2), 1, 0), ((3, 3), 1, 1), ((4, 3, 1), 2, 0), ((4, 1, 2), 1, 1), ((4, 3, 2), 2, 1)],
)
def test_users_with_another_place_of_nearly_as_many_ends_are_counted(counts, places, unclear):
    traces = commutes({"ann": counts, "bob": (9, 1)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivacyZones(places=places, seed=1).protect(traces)
    words = " ".join(str(each.message) for each in caught)
    assert (f"places={places + 1}" in words) == bool(unclear)
    assert (f"{unclear} of 2 users begins or ends" in words) == bool(unclear)
    placed = PrivacyZones(places=places, seed=1).place(traces)
    assert placed.unclear == unclear
    assert placed.owners.count("ann") == min(places, len(counts) + 1)
    homes = frame_of([shapely.Point(500_000, 4e6)])
    assert PrivacyZones(zones=homes, seed=1).place(traces).unclear == 0


@pytest.mark.parametrize(("places", "fewer"), [(1, 0), (2, 1), (3, 2)])
def test_users_of_whom_fewer_places_are_found_are_counted(places, fewer):
    traces = on_grid({"ann": [(0, 0), (3_000, 0)], "bob": [(9_000, 0), (11_000, 0), (9_000, 0)]})
    zones = PrivacyZones(places=places, seed=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        zones.protect(traces)
    words = " ".join(str(each.message) for each in caught)
    assert (f"Fewer than {places} places were found for {fewer} of 2 users" in words) == bool(fewer)
    assert zones.place(traces).fewer == fewer
    homes = frame_of([shapely.Point(500_000, 4e6)])
    assert PrivacyZones(zones=homes, seed=1).place(traces).fewer == 0


@pytest.mark.compiled
@pytest.mark.parametrize("trips", [2_000, 5_001, 15_000])
@pytest.mark.parametrize("beginning", [False, True])
def test_places_are_found_from_some_of_very_many_ends(trips, beginning):
    """Ways between a home and many other places, all in one direction."""
    home, others = np.zeros(trips), 5_000.0 + 10 * np.arange(trips)
    x = np.column_stack((home, others) if beginning else (others, home)).ravel()
    times = (np.arange(trips)[:, None] * 100_000 + [0, 600]).ravel() * 10**9
    traces = pg.Traces.from_arrays(x, np.zeros(2 * trips), times=times, users=["u"], counts=[2 * trips], crs=GRID)
    assert pg.PrivacyZones(300, 0, seed="s").place(traces).centres.tolist() == [[0, 0]]


@pytest.mark.compiled
@pytest.mark.parametrize("trips", [2_000, 12_000])
def test_a_second_place_of_many_ends_is_counted_however_many_there_are(trips):
    x = np.tile([0.0, 9_000], trips)
    times = (np.arange(trips)[:, None] * 100_000 + [0, 600]).ravel() * 10**9
    traces = pg.Traces.from_arrays(x, np.zeros(2 * trips), times=times, users=["u"], counts=[2 * trips], crs=GRID)
    assert pg.PrivacyZones(300, 0, seed="s").place(traces).unclear == 1
