"""Unicity: examples by hand, laws, and the plain twin."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SECOND

import promesse_geo as pg
from promesse_geo import Traces, Unicity

HOUR = 3_600 * SECOND
visits = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=8)


def visiting(people, names=None):
    """Traces with a record in the middle of each (column, hour) of a row of cells of 200 m."""
    names = names or list("abcdef")[: len(people)]
    kept = [(name, sorted(rows, key=lambda row: row[1])) for name, rows in zip(names, people, strict=True) if rows]
    rows = np.array([row for _, rows in kept for row in rows], float).reshape(-1, 2)
    return Traces.from_arrays(
        rows[:, 0] * 200 + 100,
        np.full(len(rows), 50.0),
        times=(rows[:, 1] * HOUR).astype(np.int64) + 60 * SECOND,
        users=[name for name, _ in kept],
        counts=np.array([len(rows) for _, rows in kept], int),
        crs="EPSG:32610",
        space="plane",
    )


def test_two_points_by_hand():
    original = visiting([[(0, 0), (1, 1)], [(0, 0), (2, 1)], [(0, 0)]])
    metric = Unicity(points=2, draws=50, seed=3)
    detail = metric.detail(original, original)
    assert set(detail.index) == {"a", "b"}  # c has one pair
    assert detail.fits.tolist() == [1] * 50
    assert metric.value(detail) == 100
    assert detail.attrs["raw"] == 100
    alike = visiting([[(0, 0), (1, 1)], [(0, 0), (1, 1)]])
    assert metric.measure(alike, alike) == 0
    exchanged = visiting([[(0, 0), (2, 1)], [(0, 0), (1, 1)]])
    assert metric.detail(original, exchanged).fits.tolist() == [1] * 50
    assert metric.measure(original, exchanged) == 0  # one fits, but it is the wrong one


def test_parts_are_pooled():
    original = visiting([[(0, 0), (1, 1)], [(0, 0), (2, 1)]])
    parts = visiting([[(0, 0)], [(1, 1)], [(2, 1)]], names=["a-00000", "a-00001", "b-00000"])
    detail = Unicity(points=2, draws=50, seed=3).detail(original, parts)
    assert detail.loc["a", "unique"].all()
    assert not detail.loc["b", "unique"].any()


def test_nothing_published_is_unique_and_too_few_pairs_are_undefined():
    original = visiting([[(0, 0), (1, 1)]])
    assert Unicity(points=2, seed=1).measure(original, original.select(np.zeros(2, bool))) == 0
    assert math.isnan(Unicity(points=3, seed=1).measure(original, original))


@given(people=st.lists(visits, min_size=1, max_size=4), published=st.lists(visits, min_size=4, max_size=4))
def test_fits_are_those_of_the_twin(people, published):
    original = visiting(people)
    present = [i for i in range(len(people)) if people[i]]
    protected = visiting([published[i] if people[i] else [] for i in range(len(people))])
    detail = Unicity(points=2, draws=40, seed=5).detail(original, protected)
    eligible = [i for i in present if len(set(people[i])) >= 2]
    assert len(detail) == (40 if eligible else 0)
    for name, row in detail.iterrows():
        owner = "abcdef".index(name)
        possible = set()
        for pairs in combinations(set(people[owner]), 2):
            fitting = [i for i in present if set(pairs) <= set(published[i])]
            possible.add((len(fitting), fitting == [owner]))
        assert (row["fits"], row["unique"]) in possible


def test_draws_are_uniform_and_the_same_for_all_mechanisms():
    city = pg.make_city(users=4, days=2, seed=1, recorder="phone")
    details = [Unicity(draws=400, seed=2).detail(city, safe) for safe in (city, city.promesse.smooth(200))]
    assert details[0].index.equals(details[1].index)
    assert details[0].index.value_counts().between(60, 140).all()
    assert not Unicity(draws=400, seed=3).detail(city, city).index.equals(details[0].index)


@pytest.mark.parametrize("parameters", [{"points": 0}, {"cell": 0}, {"window": 0}, {"draws": 0}, {"seed": 0.5}])
def test_invalid_parameters_are_refused(parameters):
    with pytest.raises((TypeError, ValueError), match=next(iter(parameters))):
        Unicity(**parameters)
