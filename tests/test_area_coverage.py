"""Area coverage: an example by hand, laws, and the plain twin."""

import math
from itertools import chain

import naive_attacks as twin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import PLACES, moved, turns

import promesse_geo as pg
from promesse_geo import AreaCoverage, Traces

GRID = "EPSG:32610"


def traces(rows, crs=GRID, space="plane"):
    """One user's records from (x, y)."""
    x, y = np.array(rows, float).reshape(-1, 2).T
    return Traces.from_arrays(x, y, times=np.arange(len(x)), users=["a"], counts=[len(x)], crs=crs, space=space)


def coverage(original, protected, *, cell=200, crs=GRID, space="plane"):
    both = traces(original, crs, space), traces(protected, crs, space)
    return AreaCoverage(cell=cell).detail(*both).loc["a"]


def test_a_coverage_by_hand():
    # Four squares before, two after, one of them the same: a border belongs to the square that begins there.
    before = [(0, 0), (199, 199), (200, 0), (-1, 0), (0, -1)]
    found = coverage(before, [(10, 10), (20, 20), (400, 0)])
    assert found.tolist() == [4, 2, 1, 1 / 2, 1 / 4, pytest.approx(1 / 3)]


def test_cells_on_the_globe_are_about_as_wide_as_high_everywhere():
    degree = math.radians(1) * 6_371_008.8
    for latitude in (0.001, 45, 80):
        east = [(200 * k / degree / math.cos(math.radians(latitude)), latitude) for k in range(1, 60)]
        found = coverage(east, east, crs=4326, space="sphere")
        assert found.original_cells in (58, 59, 60)
    north = [(10.0, 200.5 * k / degree) for k in range(50)]
    assert coverage(north, north, crs=4326, space="sphere").original_cells == 50


@pytest.mark.parametrize("row", range(10))
def test_a_row_is_divided_into_the_rounded_number_of_cells(row):
    middle = (row + 0.5) * 1e6 / 6_371_008.8
    around = [(longitude, math.degrees(middle)) for longitude in np.arange(-179.8, 180, 0.4)]
    expected = round(2 * math.pi * 6_371_008.8 * math.cos(middle) / 1e6)
    assert coverage(around, around, cell=1e6, crs=4326, space="sphere").original_cells == expected


def test_no_cell_is_cut_by_the_antimeridian_or_missing_at_the_poles():
    assert coverage([(180, 10.0)], [(-180, 10.0)], crs=4326, space="sphere").fscore == 1
    assert coverage([(0, 90)], [(120, 90)], crs=4326, space="sphere", cell=1e6).fscore == 1
    assert coverage([(0, -90)], [(120, -90)], crs=4326, space="sphere").original_cells == 1


def test_noise_leaves_cells_and_dropped_traces_have_none():
    city = pg.make_city(users=3, days=1, seed=1, recorder="phone")
    metric = AreaCoverage()
    values = [
        metric.measure(city, city.promesse.geo_indistinguishability(epsilon, seed=1)) for epsilon in (1.0, 0.05, 0.01)
    ]
    assert 100 > values[0] > values[1] > values[2] > 0
    detail = metric.detail(city, city[city.user != city.user.iloc[0]])
    assert detail.fscore.tolist() == [0, 1, 1]
    assert math.isnan(detail.precision.iloc[0])
    assert metric.value(detail) == pytest.approx(200 / 3)


@pytest.mark.parametrize(("cell", "error"), [(0, ValueError), (0.5, ValueError), ("200", TypeError)])
def test_wrong_parameters_are_refused(cell, error):
    with pytest.raises(error, match="'cell' parameter of AreaCoverage"):
        AreaCoverage(cell=cell)


around = st.lists(st.tuples(st.floats(0, 3_000), turns), min_size=1, max_size=12)


@given(st.sampled_from(PLACES), around, around, st.sampled_from((50.0, 200.0, 1_000.0)))
def test_the_plain_twin_agrees_on_the_globe(place, before, after, cell):
    ways = [[moved(*place, metres=m, bearing=turn, space="sphere") for m, turn in rows] for rows in (before, after)]
    cells = [[twin.cell_on_globe(*point, cell=cell) for point in way] for way in ways]
    nudges = [(-1e-11, 0), (1e-11, 0), (0, -1e-11), (0, 1e-11)]
    for point, own in zip(chain(*ways), chain(*cells), strict=True):
        if any(twin.cell_on_globe(point[0] + x, point[1] + y, cell=cell) != own for x, y in nudges):
            return  # so near to a border that the last digit decides
    if abs(place[1]) > 89:
        return  # where the longitude of a unit vector has no digits left
    assert coverage(*ways, cell=cell, crs=4326, space="sphere").fscore == pytest.approx(twin.coverage(*cells))


@given(around, around, st.sampled_from((50.0, 200.0, 1_000.0)))
def test_the_plain_twin_agrees_in_the_plane(before, after, cell):
    ways = [[moved(0, 0, metres=m, bearing=turn, space="plane") for m, turn in rows] for rows in (before, after)]
    expected = twin.coverage(*([twin.cell_in_plane(*point, cell=cell) for point in way] for way in ways))
    assert coverage(*ways, cell=cell).fscore == pytest.approx(expected)
