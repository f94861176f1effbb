"""Re-identification: examples by hand, laws, and the plain twin."""

import math
import tracemalloc
from dataclasses import replace

import naive
import naive_attacks as twin
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ORIGINS, PLACES, SECOND, moved, turns

import promesse_geo as pg
from promesse_geo import Reidentification, Traces

GRID = "EPSG:32610"
HOUR = 3_600
COLUMNS = ["reference_pois", "protected_pois", "distance", "nearest", "identified"]


def staying(places, users=None, crs=GRID, space="plane"):
    """Users who stay for an hour at each of their places and are nowhere else."""
    rows = [(x, y, HOUR * (2 * n + end)) for own in places for n, (x, y) in enumerate(own) for end in (0, 1)]
    x, y, seconds = np.array(rows, float).reshape(-1, 3).T
    return Traces.from_arrays(
        x,
        y,
        times=(seconds * SECOND).astype(np.int64),
        users=list("abcdefgh"[: len(places)]) if users is None else users,
        counts=np.array([2 * len(own) for own in places], int),
        crs=crs,
        space=space,
    )


def parts(users):
    return [f"{user}-00000" for user in users]


def test_users_are_recognised_by_hand():
    # a's new places are 10, 20 and 30 m from the old ones: nearest distances 10, 20, 30 and 10, 20, 30; median 20.
    # b's is 5,100 m away from its own, and 100 m from the second of a: 100 from there, and 9,900, 100, 10,100 to it.
    known = staying([[(0, 0), (10_000, 0), (20_000, 0)], [(5_000, 0)]])
    found = staying([[(10, 0), (10_020, 0), (20_030, 0)], [(10_100, 0)]], users=parts("ab"))
    detail = Reidentification().detail(known, found)
    assert list(detail.columns) == COLUMNS
    assert detail.loc["a"].tolist() == [3, 3, 20, 1, 1]
    assert detail.loc["b"].tolist() == [1, 1, (100 + 9_900) / 2, 1, 0]
    assert Reidentification().value(detail) == 50


def test_equally_near_users_share():
    known = staying([[(0, 0)], [(0, 0)], [(9_000, 0)]])
    detail = Reidentification().detail(known, staying([[(0, 0)], [(100, 0)], [(0, 0)]], users=parts("abc")))
    assert detail.nearest.tolist() == [2, 2, 2]
    assert detail.identified.tolist() == [0.5, 0.5, 0]
    assert Reidentification().value(detail) == pytest.approx(100 / 3)


def test_parts_of_a_user_are_put_together_and_those_of_the_second_half_alone_left_out():
    known = staying([[(0, 0), (5_000, 0)], [(20_000, 0)]], users=["a", "a-b"])
    names = ["a-00000", "a-00001", "a-b-00000", "c-00000"]
    detail = Reidentification().detail(known, staying([[(0, 0)], [(5_000, 0)], [(20_001, 0)], [(0, 0)]], users=names))
    assert detail.index.tolist() == ["a", "a-b"]
    assert detail.protected_pois.tolist() == [2, 1]
    assert detail.identified.tolist() == [1, 1]


def test_traces_that_were_not_split_belong_to_the_user_of_their_name():
    """A hyphen in a name is not the one before the number of a part."""
    known = staying([[(0, 0)], [(900, 0)]], users=["user-000", "user-001"])
    detail = Reidentification().detail(known, known)
    assert detail.identified.to_dict() == {"user-000": 1, "user-001": 1}


def test_users_without_places_are_counted_and_not_identified():
    known = staying([[(0, 0)], [(1, 0)], []], users=["a", "b", "c"])
    moving = replace(known, times=known.times // 60, users=pd.Index(parts("ab")))
    detail = Reidentification().detail(known, moving)
    assert detail.identified.tolist() == [0, 0]
    assert detail.nearest.tolist() == [0, 0]
    assert detail.distance.isna().all()
    assert Reidentification().value(detail) == 0
    assert math.isnan(Reidentification().value(detail.iloc[:0]))


def test_users_are_integers_or_text():
    known, found = staying([[(0, 0)], [(900, 0)]], users=[3, 12]), staying([[(0, 0)]], users=["12-00000"])
    assert Reidentification().detail(known, found).protected_pois.to_dict() == {3: 0, 12: 1}


def test_a_user_may_have_an_empty_name():
    known = staying([[(0, 0)], [(900, 0)]], users=["", "b"])
    detail = Reidentification().detail(known, staying([[(0, 0)], [(900, 0)]], users=["-00000", "b-00000"]))
    assert detail.identified.to_dict() == {"": 1, "b": 1}


@pytest.mark.parametrize("cells", [1, 7, 4_000_000])
def test_blocks_of_users_do_not_matter(cells, monkeypatch):
    monkeypatch.setattr("promesse_geo.metrics.attacks.reidentification._CELLS", cells)
    known = staying([[(0, 0)], [(0, 0)], [(9_000, 0)], [(50, 0)], [(0, 0)]])
    known = known.select(np.arange(known.records) < known.records - 1)  # e is seen once, and stays nowhere
    found = staying([[(0, 0)], [(0, 9)], [(50, 0), (60, 0)], [(0, 0)]], users=parts("acde"))
    detail = Reidentification().detail(known, found)
    assert detail.reference_pois.tolist() == [1, 1, 1, 1, 0]
    assert detail.identified.tolist() == [0.5, 0, 0, 1, 0]
    assert detail.nearest.tolist() == [2, 0, 2, 1, 2]
    assert detail.distance.tolist() == pytest.approx([0, math.nan, 9, 5, 0], nan_ok=True)


def test_users_without_places_take_no_memory():
    users = 20_000
    one = Traces.from_arrays(
        *np.zeros((2, users)), times=np.arange(users), users=[f"u{i}" for i in range(users)], counts=np.ones(users, int)
    )
    tracemalloc.start()
    try:
        detail = Reidentification().detail(one, replace(one, users=one.users + "-00000"))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(detail) == users
    assert most < 100e6


def test_when_nobody_is_known_the_way_is_named_and_nobody_else():
    found = staying([[(0, 0)]], users=["secret-name"])
    with pytest.raises(ValueError, match=r"None of the 1 protected trace .*metric\.split\(gdf\)") as error:
        Reidentification().detail(staying([[(0, 0)]]), found)
    assert "secret" not in str(error.value)


def test_where_only_unknown_users_go_on_nobody_is_identified():
    known, later = staying([[(0, 0)]], users=["a"]), staying([[(0, 0)]], users=["b-00000"])
    metric = Reidentification()
    with pytest.warns(UserWarning, match="None of the 1 protected trace .*no user is identified"):
        assert metric.measure(known, later) == 0
    with pytest.warns(UserWarning, match="no user is identified"):
        assert np.isnan(metric.measure(known.select(np.zeros(known.records, bool)), later))


@pytest.mark.parametrize("kind", ["frame", "traces"])
def test_the_halves_are_cut_at_the_midpoint_and_the_second_at_gaps(kind):
    # From 0 to 20 h: the record at 10 h belongs to the second half, which has a pause of 5 h.
    rows = [(0, 0, hour * HOUR * SECOND) for hour in (0, 9, 10, 11, 16, 20)]
    x, y, times = np.array(rows).T
    data = Traces.from_arrays(x.astype(float), y, times=times, users=["a", "b"], counts=[5, 1], crs=GRID, space="plane")
    data = data.to_frame() if kind == "frame" else data
    halves = Reidentification(gap="5h").split(data)
    assert [type(half) for half in halves] == [type(data)] * 2
    first, second = (Traces.from_frame(half) if kind == "frame" else half for half in halves)
    assert first.users.tolist() == ["a"]
    assert first.times.tolist() == [0, 9 * HOUR * SECOND]
    assert second.users.tolist() == ["a-00000", "a-00001", "b-00000"]
    assert second.counts.tolist() == [2, 1, 1]


def test_nothing_has_two_empty_halves():
    nothing = pg.make_city(users=1, days=1, recorder="phone").iloc[:0]
    metric = Reidentification()
    known, second = metric.split(nothing)
    detail = metric.detail(known, second)
    assert list(detail.columns) == COLUMNS
    assert len(detail) == 0
    assert math.isnan(metric.value(detail))


@pytest.mark.compiled
def test_people_of_the_city_are_recognised_until_noise_or_smoothing_hides_where_they_stay():
    metric = Reidentification()
    known, second = metric.split(pg.make_city(users=6, days=4, seed=1, recorder="phone"))
    index = metric.index(known)
    plain, noisy, smooth = (
        metric.detail(known, safe, index=index)
        for safe in (
            second,
            pg.GeoIndistinguishability(0.002, seed=1).protect(second),
            pg.Promesse(200).protect(second),
        )
    )
    assert metric.value(plain) == 100
    assert metric.value(noisy) < 100
    assert metric.value(smooth) < 100
    other = metric.detail(known.to_crs(32631), second.sample(frac=1, random_state=1))
    assert other.identified.tolist() == plain.identified.tolist()


def test_the_metric_shows_itself_as_one_can_write_it():
    metric = Reidentification(diameter=150, duration=pd.Timedelta("10min"), gap=pd.Timedelta("6h"))
    assert eval(repr(metric), vars(pg)) == metric
    with pytest.raises(ValueError, match="'gap' parameter of Reidentification"):
        Reidentification(gap="never")
    with pytest.raises(ValueError, match="'diameter' parameter of Reidentification"):
        Reidentification(diameter=0)


@st.composite
def two_halves(draw):
    space = draw(st.sampled_from(("sphere", "plane")))
    start = draw(st.sampled_from(ORIGINS if space == "plane" else PLACES))
    own = st.lists(st.tuples(st.floats(500, 50_000), turns), min_size=1, max_size=4)
    halves = draw(st.lists(st.tuples(own, own), min_size=1, max_size=5))
    return space, [
        [[moved(*start, metres=m, bearing=turn, space=space) for m, turn in rows] for rows in half]
        for half in zip(*halves, strict=True)
    ]


@given(two_halves())
def test_the_plain_twin_agrees(halves):
    space, (known, found) = halves
    crs = GRID if space == "plane" else 4326
    users = "abcdefgh"[: len(known)]
    before, after = staying(known, crs=crs, space=space), staying(found, users=parts(users), crs=crs, space=space)
    metric = Reidentification(diameter=0.01)
    detail = metric.detail(before, after)
    places = [
        [[point if space == "plane" else naive.on_globe(*point) for point in dict.fromkeys(own)] for own in half]
        for half in (known, found)
    ]
    if detail.reference_pois.tolist() != [len(own) for own in places[0]]:
        return  # two stays at one place in a row are one stay
    distances = [[twin.set_distance(own, other) for own in places[0]] for other in places[1]]
    if detail.protected_pois.tolist() != [len(own) for own in places[1]]:
        return
    assert detail.distance.tolist() == pytest.approx([min(row) for row in distances], abs=1e-5, rel=1e-9)
    clear = all(abs(a - min(row)) > 1e-4 for row in distances for a in row if a != min(row))
    if clear:
        assert detail.identified.tolist() == twin.identified(*places)


@pytest.mark.compiled
def test_evaluate_splits_the_data_itself():
    city = pg.make_city(users=4, days=4, seed=1, recorder="phone")
    table = pg.evaluate(
        {"city": city},
        mechanisms=[pg.GeoIndistinguishability(0.5, seed=1)],
        metrics=[Reidentification(), pg.AreaCoverage(), pg.Residue(), pg.AdaptivePoiRetrieval(kind="none")],
    )
    assert table["metric"].str.partition("(")[0].tolist() == [
        "AreaCoverage",
        "Residue",
        "AdaptivePoiRetrieval",
        "Reidentification",
    ]
    assert table["value"].iloc[-1] == 100


@pytest.mark.compiled
@pytest.mark.parametrize("metric", [Reidentification(), pg.HeatMapReidentification()])
def test_prepared_parts_give_what_data_before_the_split_gives(metric):
    whole = pg.first_days(pg.collapse_empty_days(pg.make_city(users=6, days=6, seed=1, recorder="phone")))
    parts = whole.promesse.split_gaps(keep_user=True)
    noise = pg.GeoIndistinguishability(0.5, seed=1)
    values = pg.evaluate({"whole": whole, "parts": parts}, [noise], [metric])["value"]
    assert values.iloc[0] == values.iloc[1] > 0
    known, second = metric.split(parts)
    assert known["user"].unique().tolist() == whole["user"].unique().tolist()
    assert set(second["user"]) <= set(parts["user"])


def test_parts_become_segments_of_their_user_in_order_of_time():
    hours = [0, 1, 8, 9, 4, 6, 20]
    traces = Traces.from_arrays(
        np.arange(7.0),
        np.zeros(7),
        times=np.array(hours) * HOUR * SECOND,
        users=["a-00000", "a-00001", "b-00000", "c-00000"],
        counts=[2, 2, 2, 1],
        crs=GRID,
        space="plane",
    )
    known, _ = Reidentification().split(traces)
    assert known.users.tolist() == ["a", "b"]
    assert known.points[:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert known.segments.tolist() == [0, 2, 4, 6]


def test_users_whose_names_end_with_five_digits_stay_apart():
    city = pg.make_city(users=3, days=4, seed=3, recorder="phone")
    city["user"] = city["user"].map({name: f"cab-{number:05d}" for number, name in enumerate(city["user"].unique())})
    known, second = Reidentification().split(city)
    assert known["user"].unique().tolist() == ["cab-00000", "cab-00001", "cab-00002"]
    assert Reidentification().measure(known, second) == 100
