"""Places at the ends of traces: examples by hand, laws, and the plain twin."""

import math

import geopandas as gpd
import naive_attacks as twin
import naive_zones
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import distance
from strategies import SECOND, crowds, gathered

import promesse_geo as pg
from promesse_geo import EndRetrieval, Traces

GRID = "EPSG:32610"


def on_grid(parts, crs=GRID):
    """Parts by name, as lists of (x, y)."""
    rows = np.array([row for part in parts.values() for row in part], float).reshape(-1, 2)
    times = np.arange(len(rows)) * 60 * SECOND
    counts = [len(part) for part in parts.values()]
    return Traces.from_arrays(*rows.T, times=times, users=list(parts), counts=counts, crs=crs, space="plane")


def places(rows, crs=GRID):
    users, x, y = zip(*rows, strict=True)
    return gpd.GeoDataFrame({"user": users}, geometry=gpd.points_from_xy(x, y), crs=crs)


STAR = {
    f"a-{i:05d}": [(d * math.cos(i), d * math.sin(i)) for d in range(0, 3_000, 100)] for i in range(6)
}  # all begin at (0, 0)


def test_ways_that_begin_at_home_point_home():
    original = on_grid(STAR)
    protected = on_grid({name: rows[2:-2] for name, rows in STAR.items()})  # begin 200 m from home
    detail = EndRetrieval().detail(original, protected)
    assert detail.index.tolist() == ["a"]
    assert detail.loc["a", "step_2"] == pytest.approx(0, abs=1e-9)
    assert detail.loc["a", "rays"] < 15
    assert detail.loc["a", "step_0"] == pytest.approx(200)
    assert detail.loc["a", "ends"] == 12
    assert detail.attrs["strategy"] == "step_1"  # 100 m away, the first of the best
    assert detail.attrs["raw"] == 100
    assert EndRetrieval().measure(original, protected) == 100
    assert EndRetrieval(threshold=99, steps=(0, 1), rays=False).measure(original, protected) == 0


def test_each_step_has_a_name_of_its_own():
    detail = EndRetrieval(steps=(1, 1.0000001, 0.5, 1e-7), rays=False).detail(on_grid(STAR), on_grid(STAR))
    assert list(detail) == ["step_1", "step_1.0000001", "step_0.5", "step_1e-07", "ends"]


def test_places_may_be_told_and_are_not_shown():
    truth = places([("a", 50.0, 0.0), ("nobody", 0.0, 0.0)])
    metric = EndRetrieval(truth=truth, steps=[0], rays=False)
    original = on_grid(STAR)
    with pytest.warns(UserWarning, match="1 of 2 users of 'truth' is not in the original") as caught:
        assert metric.detail(original, original)["step_0"].tolist() == [50.0]
    assert "nobody" not in str(caught[0].message)
    assert "50" not in repr(metric)
    assert metric == EndRetrieval(truth=truth.copy(), steps=(0.0,), rays=False)
    assert metric != EndRetrieval(truth=truth.iloc[:1], steps=[0], rays=False)
    degrees = EndRetrieval(truth=truth.iloc[:1].to_crs(4326), steps=[0], rays=False)
    assert degrees.detail(original, original)["step_0"].tolist() == pytest.approx([50.0], abs=1e-4)


def test_owners_with_few_ends_near_a_place_are_left_out():
    few = {name: rows for name, rows in STAR.items() if name < "a-00004"}
    original = on_grid(few)
    assert len(EndRetrieval().detail(original, original)) == 0
    assert math.isnan(EndRetrieval().measure(original, original))
    assert EndRetrieval(least=4).measure(original, original) == 100


def test_who_is_dropped_is_not_located():
    original = on_grid(STAR)
    nothing = original.select(np.zeros(original.records, bool))
    assert EndRetrieval().measure(original, nothing) == 0
    assert EndRetrieval(linked=False).measure(original, nothing) == 0


def test_a_part_of_one_point_is_a_guess_of_every_step():
    original = on_grid(STAR)
    detail = EndRetrieval(steps=(0, 5)).detail(original, on_grid({"a-00000": [(30, 40)]}))
    assert detail[["step_0", "step_5", "ends"]].to_numpy().tolist() == [[50, 50, 1]]
    assert detail["rays"].isna().all()


def test_segments_are_parts():
    rows = [(0, 0), (100, 0), (5_000, 0), (5_100, 0)]
    joined = Traces.from_arrays(
        *np.array(rows, float).T,
        times=np.arange(4) * SECOND,
        users=["a"],
        counts=[4],
        segments=np.array([0, 0, 1, 1]),
        crs=GRID,
        space="plane",
    )
    apart = on_grid({"a-00000": rows[:2], "a-00001": rows[2:]})
    truth = places([("a", 0.0, 0.0)])
    joined_detail, apart_detail = (EndRetrieval(truth=truth).detail(each, each) for each in (joined, apart))
    assert joined_detail.to_numpy().tolist() == apart_detail.to_numpy().tolist()
    assert joined_detail["ends"].tolist() == [4]


def test_unlinked_ends_are_one_pool():
    original = on_grid({**STAR, **{f"b{name[1:]}": [(x + 20_000, y) for x, y in rows] for name, rows in STAR.items()}})
    detail = EndRetrieval(linked=False).detail(original, original)
    assert detail.index.tolist() == ["a", "b"]
    assert EndRetrieval(linked=False).value(detail) == 100
    assert detail.attrs["precision"] == 100
    assert "rays" not in detail


def test_renamed_data_is_refused():
    original = on_grid(STAR)
    with pytest.raises(ValueError, match="names are kept"):
        EndRetrieval().measure(original, pg.pseudonymize(original, seed=1))


@pytest.mark.parametrize(
    "parameters",
    [
        {"threshold": 0},
        {"least": 0},
        {"steps": ()},
        {"steps": (1, 1)},
        {"steps": (-1,)},
        {"steps": (math.nan,)},
        {"rays": 1},
        {"linked": None},
        {"truth": 3},
        {"truth": places([("a", 0, 0), ("a", 1, 1)])},
        {"truth": places([("a", 0, 0)]).set_crs(None, allow_override=True)},
        {"truth": gpd.GeoDataFrame({"user": ["a"]})},
        {"truth": gpd.GeoDataFrame(pd.concat((places([("a", 0, 0)]), pd.Series(["a"], name="user")), axis=1))},
    ],
)
def test_invalid_parameters_are_refused(parameters):
    with pytest.raises((TypeError, ValueError), match=next(iter(parameters))):
        EndRetrieval(**parameters)


LOCAL = 'LOCAL_CS["building site",UNIT["metre",1]]'
BODY = "IAU_2015:30100"  # the Moon


@pytest.mark.parametrize(("place", "crs"), [((4.8, 45.7), LOCAL), ((4.8, 45.7), BODY), ((45.7, 139.7), 4326)])
def test_places_without_a_place_in_the_crs_of_the_data_are_refused(place, crs):
    city = pg.make_city(users=2, days=1, recorder="phone")
    truth = gpd.GeoDataFrame({"user": ["user-000"]}, geometry=[shapely.Point(place)], crs=crs)
    with pytest.raises(ValueError, match="1 place of 1 in the 'truth' parameter"):
        EndRetrieval(truth=truth).measure(city, city)


@pytest.mark.filterwarnings("ignore:.*five digits")
@settings(deadline=None)
@given(crowd=crowds(), least=st.integers(1, 3))
def test_guesses_are_those_of_the_twin(crowd, least):
    traces = gathered(crowd)
    names = [f"{'ab'[i % 2]}-{i:05d}" for i in range(len(traces))]
    parts = Traces.from_arrays(
        *traces.coordinates(),
        times=traces.times,
        users=names,
        counts=traces.counts,
        crs=traces.space.crs,
        space=traces.space,
    )
    metric = EndRetrieval(least=least, steps=(0, 1, 3))
    detail = metric.detail(parts, parts)
    points = [tuple(point) for point in parts.points.tolist()]
    ends = {"a": [], "b": []}
    for name, first, end in zip(parts.users, parts.offsets[:-1], parts.offsets[1:], strict=True):
        track = points[first:end]
        ends[name[0]] += [(track[0], track[0])] if len(track) == 1 else [track[:2], (track[-1], track[-2])]
    for owner, row in detail.iterrows():
        truths = twin.densest([p for p, _ in ends[owner]])
        for step in (0, 1, 3):
            guesses = twin.densest([twin.backwards(p, q, step=step) for p, q in ends[owner]])
            assert_one_of(row[f"step_{step}"], guesses, truths)
        if len(ends[owner]) <= 6:
            assert_one_of(row["rays"], twin.crossing(ends[owner]), truths)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=3, max_size=14),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=8),
    st.integers(1, 3),
)
def test_second_places_are_those_of_the_twin(original, protected, least):
    """One user's parts of one point each, on a coarse grid; the guess of step 0 is the densest published point."""
    traces = [
        on_grid({f"a-{i:05d}": [(150 * x, 170 * y)] for i, (x, y) in enumerate(rows)}) for rows in (original, protected)
    ]
    metric = EndRetrieval(least=least, steps=[0], rays=False)
    both = metric.compare_second(metric.pair(*traces))
    detail = metric.detail(*traces)
    pd.testing.assert_frame_equal(both[["step_0", "ends"]], detail)
    assert set(both.attrs) - set(detail.attrs) == {"either"}
    points, published = ([tuple(point) for point in each.points.tolist()] for each in traces)
    spots = naive_zones.spots(points, number=2)
    assert len(both) == (sum(distance(point, spots[0]) <= 200 for point in points) >= least)
    if len(both):
        is_close = naive_zones.is_unclear(points, places=1)
        guess = naive_zones.spots(published, number=1)[0]
        assert both["second"].tolist() == [is_close]
        assert both["either"].item() == pytest.approx(min(distance(guess, spot) for spot in spots[: 1 + is_close]))


def test_the_strategy_for_both_places_locates_most_users_at_one_of_them():
    """All begin at the first place, of which nothing is published, and half as often at the second, 3 km away."""
    first = {f"a-{i:05d}": [(d * math.cos(i), d * math.sin(i)) for d in range(0, 1_000, 100)] for i in range(6)}
    second = {f"a-{i + 6:05d}": [(3_000 + x, y) for x, y in first[f"a-{i:05d}"]] for i in range(3)}
    original = on_grid(first | second)
    protected = on_grid({name: rows[2:-2] for name, rows in second.items()})
    metric = EndRetrieval()
    both = metric.compare_second(metric.pair(original, protected))
    assert metric.value(both) == metric.measure(original, protected) == 0
    assert both.attrs["strategy"] == "step_0"
    assert both["second"].all()
    assert both["either"].item() <= 100
    assert both.attrs["either"] != "step_0"
    known = EndRetrieval(truth=places([("a", 0.0, 0.0)]))
    assert not known.compare_second(known.pair(original, protected))["second"].any()


def assert_one_of(metres, guesses, truths):
    """Distances of guesses that rounding may exchange."""
    options = [distance(guess, truth) for guess in guesses for truth in truths]
    if not options:
        assert math.isnan(metres)
    else:
        assert min(abs(metres - option) for option in options) <= 1e-6 * (1 + metres)


@pytest.mark.compiled
def test_threads_and_the_order_of_users_do_not_matter(monkeypatch):
    parts = pg.make_city(users=8, days=7, seed=3, as_traces=True, recorder="phone")
    parts = pg.split_gaps(parts, gap="4h", keep_user=True)
    safe = pg.Promesse(200).protect(parts)
    frame = safe.to_frame()
    safe = Traces.from_frame(frame)
    expected = EndRetrieval().detail(parts, safe)
    assert EndRetrieval().value(expected) > 50
    shuffled = frame.sample(frac=1, random_state=1)
    assert EndRetrieval().detail(parts, Traces.from_frame(shuffled)).equals(expected)
    monkeypatch.setattr("promesse_geo.threads.number", lambda: 1)
    assert EndRetrieval().detail(parts, safe).equals(expected)


def test_what_is_undefined_names_the_number_of_ends():
    assert "7 ends of traces at one place" in pg.EndRetrieval(least=7).undefined
    place = gpd.GeoDataFrame({"user": ["a"]}, geometry=gpd.points_from_xy([4.8], [45.7]), crs=4326)
    assert "true place" in pg.EndRetrieval(truth=place).undefined
