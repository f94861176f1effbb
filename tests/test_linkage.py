"""Linkage of parts without names: examples by hand, laws, and the plain twin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import distance
from strategies import SECOND

import promesse_geo as pg
from promesse_geo import Linkage, Traces

HOUR = 3_600 * SECOND


def in_order(parts):
    """Traces in the plane from (name, first x, last x, begin, end), times in hours; names in ascending order."""
    parts = sorted(parts)
    rows = [((x, 0), hours) for _, *xs, begin, end in parts for x, hours in zip(xs, (begin, end), strict=True)]
    x, y = np.array([place for place, _ in rows], float).reshape(-1, 2).T
    times = np.array([hours * HOUR for _, hours in rows], np.int64)
    users = [name for name, *_ in parts]
    return Traces.from_arrays(
        x, y, times=times, users=users, counts=np.full(len(parts), 2), crs="EPSG:32610", space="plane"
    )


def test_parts_are_joined_by_hand():
    parts = in_order(
        [
            ("a-00000", 0, 100, 0, 1),  # next: a-00001 at 110, nearer than b
            ("a-00001", 110, 200, 2, 3),  # next: b-00001 at 205, though a-00002 begins at 300
            ("a-00002", 300, 400, 5, 6),  # begins none
            ("b-00000", 500, 0, 0, 1),  # next: a-00001, the nearest of what follows
            ("b-00001", 205, 600, 4, 5),
        ]
    )
    detail = Linkage().detail(parts, parts)
    assert detail.index.tolist() == ["a-00000", "a-00001", "b-00000"]
    assert detail.linked.tolist() == [1, 0, 0]
    assert detail.distance.tolist() == [10, 5, 110]
    assert detail.candidates.tolist() == [3, 2, 3]
    assert Linkage().value(detail) == pytest.approx(100 / 3)
    assert detail.attrs["guess"] == pytest.approx(100 * (2 / 3 + 1 / 2 + 1 / 3) / 3)
    assert Linkage(within="1h").detail(parts, parts).index.tolist() == ["a-00000"]


def test_equal_distances_share():
    parts = in_order([("a-00000", 0, 0, 0, 1), ("a-00001", 5, 5, 1, 2), ("b-00000", -5, 9, 1, 2)])
    assert Linkage().detail(parts, parts).linked.tolist() == [0.5]


def test_nothing_published_is_undefined_and_raw_data_counts():
    parts = in_order([("a-00000", 0, 0, 0, 1), ("a-00001", 5, 5, 1, 2)])
    assert math.isnan(Linkage().measure(parts, parts.select(np.zeros(4, bool))))
    with pytest.raises(ValueError, match="within"):
        Linkage(within="0s")


spans = st.tuples(st.sampled_from("ab"), st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 6), st.integers(0, 2))


@pytest.mark.filterwarnings("ignore:.*five digits")
@given(drawn=st.lists(spans, min_size=1, max_size=10), within=st.integers(1, 5))
def test_links_are_those_of_the_twin(drawn, within):
    parts = [(f"{o}-{i:05d}", a, b, begin, begin + length) for i, (o, a, b, begin, length) in enumerate(drawn)]
    traces = in_order(parts)
    detail = Linkage(within=f"{within}h").detail(traces, traces)
    expected = {}
    for name, _, last, _, end in sorted(parts):
        window = [part for part in parts if part[0] != name and end <= part[3] <= end + within]
        own = [part for part in window if part[0][0] == name[0]]
        if own:
            least = min(distance((last, 0), (part[1], 0)) for part in window)
            nearest = [part for part in window if distance((last, 0), (part[1], 0)) == least]
            expected[name] = len(window), least, sum(part[0][0] == name[0] for part in nearest) / len(nearest)
    assert dict(zip(detail.index, detail.itertuples(index=False, name=None), strict=True)) == expected


@pytest.mark.compiled
def test_the_city_is_linked():
    parts = pg.split_gaps(pg.make_city(users=10, days=4, as_traces=True, recorder="phone"), gap="4h", keep_user=True)
    assert Linkage().measure(parts, parts) > 90
    assert Linkage().measure(parts, pg.GeoIndistinguishability(0.0001, seed=1).protect(parts)) < 50
