"""Checks that compare locations, timestamps and records with the original ones."""

import re
from unittest import mock

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from audits import compared, line, plane, reason, unmarked, verdicts
from geopandas import points_from_xy
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo import threads
from promesse_geo.audit.comparison import Comparison
from promesse_geo.kernels import record_matching

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected")


@pytest.fixture(scope="module")
def parts():
    return pg.prepare(pg.make_city(users=4, days=1, recorder="phone"), tz="Europe/Paris", seed=1)


@pytest.fixture(scope="module")
def safe(parts):
    return pg.Promesse(200).protect(parts)


@pytest.fixture(scope="module")
def many_parts():
    """Traces of more people, in which chance gives more coincidences."""
    return pg.prepare(pg.make_city(users=9, days=3, recorder="phone"), tz="Europe/Paris", seed=1)


def test_data_published_as_it_was_fails(parts):
    table = parts.promesse.check(parts, epsilon=200)
    assert verdicts(table)["no original locations"] == "failed"
    assert verdicts(table)["first points are hidden"] == "failed"
    assert verdicts(table)["no original timestamps"] == "review"
    assert f"{len(parts):,} of {len(parts):,}" in reason(table, "no original timestamps")


def test_one_trace_as_it_was_among_others_fails(parts, safe):
    user = safe["user"].iloc[0]
    mixed = pd.concat([safe[safe["user"] != user], parts[parts["user"] == user]], ignore_index=True)
    table = parts.promesse.check(mixed)
    assert verdicts(table)["no original locations"] == "failed"
    assert "1 trace would be published" in reason(table, "no original locations")


def test_one_original_location_or_timestamp_is_counted(parts, safe):
    touched = safe.copy()
    user = touched["user"].iloc[0]
    row = parts[parts["user"] == user].iloc[3]
    touched.loc[1, "geometry"] = row["geometry"]
    touched.loc[1, "time"] = row["time"]
    table = parts.promesse.check(touched)
    assert re.match("1 of .* published locations is an original one of", reason(table, "no original locations"))
    assert re.match("1 of .* published records has the location and time", reason(table, SHARED))


def test_a_true_point_of_another_user_is_not_counted(parts, safe):
    touched = safe.copy()
    other = parts[parts["user"] != touched["user"].iloc[0]].iloc[0]
    touched.loc[1, "geometry"] = other["geometry"]
    assert verdicts(parts.promesse.check(touched))["no original locations"] == "passed"


def test_renamed_data_may_have_no_original_locations_timestamps_or_records(parts, safe):
    true = pg.pseudonymize(parts)
    assert verdicts(parts.promesse.check(true))["no original locations"] == "failed"
    shifted = true.assign(time=true["time"] + pd.Timedelta("71.123s"))
    table = parts.promesse.check(shifted)
    assert verdicts(table)["no original locations"] == "failed"
    noisy = pg.pseudonymize(pg.GeoIndistinguishability(0.01, seed=1).protect(parts))
    table = parts.promesse.check(unmarked(noisy))
    assert verdicts(table)["noise has no guessable seed"] == "passed"  # not of the levels of the paper
    assert verdicts(parts.promesse.check(noisy))["noise has no guessable seed"] == "failed"
    assert verdicts(table)["no original locations"] == "passed"
    assert verdicts(table)["no original timestamps"] == "review"
    assert verdicts(table)["digits reveal no noise"] == "review"
    assert f"{len(parts):,} of {len(parts):,}" in reason(table, "no original timestamps")


def test_timestamps_on_which_all_users_are_recorded_are_no_leak():
    count = 20_000
    seconds = np.arange(count) * 10**9
    before = line(np.arange(count) * 3.0, times=seconds)
    after = line(np.arange(0, count, 2) * 3.0 + 500, times=seconds[::2], users=["x"])
    assert compared(before, after, "no original timestamps")["verdict"] == "passed"


def test_raw_data_under_new_names_and_days_fail_beside_the_raw_data():
    """Moved days leave the tests of times out, not that of locations."""
    raw = pg.make_city(users=3, days=3, recorder="phone")
    for moved in (pg.collapse_empty_days(raw), pg.prepare(raw, tz="Europe/Paris")):
        assert verdicts(raw.promesse.check(moved))["no original locations"] == "failed"


@pytest.mark.parametrize(
    ("published", "same"),
    [
        ([7_123_456_789, 9_999_999_999], 2),  # as they were
        ([7_123_456_000, 9_999_999_000], 2),  # cut to microseconds
        ([7_123_457_000, 10_000_000_000], 2),  # or rounded
        ([7_123_000_000, 9_999_000_000], 2),  # cut to milliseconds
        ([7_000_000_000, 9_000_000_000], 2),  # cut to seconds
        ([7_000_000_000, 10_000_000_000], 2),  # rounded
        ([7_123_456_790, 9_999_999_998], 2),  # a nanosecond aside
        ([7_123_460_000, 9_999_990_000], 0),
        ([7_124_460_000, 9_998_990_000], 0),
        ([6_000_000_000, 11_000_000_000], 0),
    ],
)
def test_times_are_compared_as_coarsely_as_they_are_published(published, same):
    before = line([0, 9], times=[7_123_456_789, 9_999_999_999])
    found = compared(before, line([500, 700], times=published), "no original timestamps")
    assert found["verdict"] == ("review" if same else "passed")
    assert found["reason"].startswith(f"{same} of 2" if same else "no ")


def test_published_times_between_whole_seconds_are_not_true_ones():
    before = line([0, 9], times=[0, 10**9])
    found = compared(before, line([500, 700], times=[250_000_000, 750_000_000]), "no original timestamps")
    assert found["verdict"] == "passed"


@pytest.mark.parametrize(
    ("aside", "verdict"),
    [
        (0, "failed"),
        (1e-9, "failed"),
        (-1e-9, "failed"),
        (4e-4, "failed"),
        (8e-3, "failed"),  # the steps are the same
        (0.2, "failed"),  # moved by less than 10 m record by record
        (6, "failed"),
        (8, "passed"),
    ],
)
def test_points_that_moved_by_less_than_ten_metres_fail(aside, verdict):
    places = np.arange(50) * 100 + np.array([0.0, 0.123456789]).repeat(25)
    beside = places + np.where(np.arange(50) % 2, aside, -aside)
    found = compared(line(places), line(beside, y=aside), "no original locations")
    assert found["verdict"] == verdict


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=8),
    st.floats(-4e-4, 4e-4),
)
def test_shared_points_are_those_that_the_plain_twin_finds(before, after, aside):
    def traces(places, aside):
        x, y = np.array(places, float).T * 12.3456789 + 0.123456 + aside  # no round numbers
        times = np.arange(len(x))
        grid = 'LOCAL_CS["grid",UNIT["metre",1]]'
        return pg.Traces.from_arrays(x, y, times=times, users=["u"], counts=[len(x)], crs=grid)

    nearness = Comparison(traces(before, 0), traces(after, aside)).location_matches
    assert (nearness == 2).tolist() == [place in before for place in after]


@pytest.mark.parametrize("crs", [3857, 32631, 2154])
def test_another_crs_does_not_hide_true_points(parts, crs):
    table = parts.promesse.check(parts.to_crs(crs))
    assert verdicts(table)["no original locations"] == "failed"
    assert f"{parts['user'].nunique()} traces would" in reason(table, "no original locations")


@pytest.mark.parametrize("decimals", [7, 6, 5])
def test_rounding_does_not_hide_true_points(parts, decimals):
    rounded = parts.set_geometry(points_from_xy(parts.geometry.x.round(decimals), parts.geometry.y.round(decimals)))
    assert verdicts(parts.promesse.check(rounded.set_crs(4326)))["no original locations"] == "failed"


def test_a_fine_trace_does_not_hide_one_that_is_rounded(parts, safe):
    user = safe["user"].iloc[0]
    true = parts[parts["user"] == user]
    rounded = true.set_geometry(points_from_xy(true.geometry.x.round(5), true.geometry.y.round(5), crs=4326))
    mixed = pd.concat([safe[safe["user"] != user], rounded], ignore_index=True)
    table = parts.promesse.check(mixed)
    assert verdicts(table)["no original locations"] == "failed"
    assert reason(table, "no original locations").startswith("1 trace ")


def test_a_fine_point_does_not_hide_a_trace_that_is_rounded(parts):
    x, y = parts.geometry.x.round(5).to_numpy(copy=True), parts.geometry.y.round(5).to_numpy(copy=True)
    x[::20] += 1e-3 / 3
    rounded = parts.set_geometry(points_from_xy(x, y, crs=4326))
    assert verdicts(parts.promesse.check(rounded))["no original locations"] == "failed"


@pytest.mark.parametrize("decimals", [4, 5])
def test_points_rounded_to_some_metres_are_seen(parts, decimals):
    rounded = parts.set_geometry(
        points_from_xy(parts.geometry.x.round(decimals), parts.geometry.y.round(decimals), crs=4326)
    )
    assert verdicts(parts.promesse.check(rounded))["no original locations"] == "failed"


def test_a_fine_time_does_not_hide_those_that_are_cut():
    before = line(np.arange(100), times=np.arange(100) * 7 * 10**9 + 123_456_789)
    cut = before.times // 10**9 * 10**9
    cut[5] += 1
    found = compared(before, line(np.arange(100) + 500, times=cut), "no original timestamps")
    assert found["verdict"] == "review"
    assert found["reason"].startswith("99 of 100")
    assert "500.00 m from" in found["reason"]


def test_a_trace_that_is_original_for_the_most_part_fails():
    x = np.arange(200) * 100 + 0.123456789
    moved = x + np.where(np.arange(200) % 3, 0, 50)
    assert compared(line(x), line(moved), "no original locations")["verdict"] == "failed"


def test_locations_that_are_original_by_chance_are_no_leak():
    rng = np.random.default_rng(1)
    true = np.cumsum(rng.uniform(1, 3, 20_000))
    published = rng.uniform(true[0], true[-1], 20_000)
    found = compared(line(true), line(np.sort(published)), "no original locations")
    assert found["verdict"] == "passed"
    assert found["reason"].endswith("no more than by chance")
    leaked = np.where(np.arange(20_000) % 200, published, true)
    found = compared(line(true), line(np.sort(leaked)), "no original locations")
    assert found["verdict"] == "review"
    assert "expected by chance" in found["reason"]
    assert re.search(r"\(within \d+ m?m.*\).*goes through its records.*protect again", found["reason"])


def test_timestamps_that_are_original_by_chance_are_no_leak():
    rng = np.random.default_rng(1)
    true = np.cumsum(rng.integers(10**8, 10**9, 20_000))
    published = np.sort(rng.integers(true[0], true[-1], 20_000)) // 10**6 * 10**6
    found = compared(line(true * 0, times=true), line(true * 0 + 500, times=published), "no original timestamps")
    assert found["verdict"] == "passed"
    assert found["reason"].endswith("no more than by chance")


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=8),
    st.lists(st.integers(0, 60), min_size=1, max_size=8),
    st.sampled_from([10**3, 10**6, 10**9, 60 * 10**9, 3600 * 10**9]),
)
def test_same_times_are_those_that_the_plain_twin_finds(before, after, unit):
    true = np.sort(np.array(before)) * unit // 7
    published = np.sort(np.array(after)) * unit
    found = Comparison(line(true * 0, times=true), line(published * 0, times=published)).time_matches[0]
    whole = {unit: int((published % unit == 0).sum()) for unit in (3600 * 10**9, 60 * 10**9, 10**9, 10**6)}
    units = [unit for unit, many in whole.items() if 10 * many >= len(published)]
    units = [unit for unit in units if unit <= 10**9 or (whole[unit] >= 3 and 2 * whole[unit] >= len(published))]
    for number, time in zip(found, published.tolist(), strict=True):
        size = next((one for one in units if time % one == 0), 10**3)
        matches = [one for one in true.tolist() if time in (one // size * size, -(-one // size) * size)]
        assert (number >= 0) == bool(matches)
        assert number < 0 or true[number] in matches


SHARED = "no record equals an original one"


def swapped(parts):
    """The true traces, each under the next user's name."""
    users = sorted(parts["user"].unique())
    return parts.assign(user=parts["user"].map(dict(zip(users, users[1:] + users[:1], strict=True))))


@pytest.mark.parametrize("published", [swapped, pg.pseudonymize, lambda parts: parts])
@pytest.mark.parametrize(("decimals", "crs"), [(5, 4326), (15, 4326), (15, 32631)])
def test_true_records_under_other_names_fail(parts, published, decimals, crs):
    places = points_from_xy(parts.geometry.x.round(decimals), parts.geometry.y.round(decimals), crs=4326)
    table = parts.promesse.check(published(parts.set_geometry(places)).to_crs(crs))
    assert verdicts(table)[SHARED] == "failed"
    assert reason(table, SHARED).startswith(f"{len(parts):,} of {len(parts):,} ")


def test_one_true_trace_under_a_new_name_fails(parts, safe):
    users = parts["user"].unique()
    true = parts[parts["user"] == users[0]].assign(user="0123456789abcdef")
    mixed = pd.concat([safe[safe["user"] != users[0]], true], ignore_index=True)
    table = parts.promesse.check(mixed)
    assert verdicts(table)[SHARED] == "failed"
    assert "1 trace for the most part" in reason(table, SHARED)


def test_some_original_records_of_others_are_reviewed(parts, safe):
    touched, n = safe.copy(), 40
    others = parts[parts["user"] != touched["user"].iloc[0]].iloc[:n]
    touched.loc[: n - 1, "geometry"] = others["geometry"].to_numpy()
    assert verdicts(parts.promesse.check(touched))[SHARED] == "passed"
    touched.loc[: n - 1, "time"] = others["time"].to_numpy()
    table = parts.promesse.check(touched)
    assert verdicts(table)[SHARED] == "review"
    assert reason(table, SHARED).startswith(f"{n} of ")


@pytest.mark.parametrize(
    "mechanism", [pg.Promesse(100), *(pg.GeoIndistinguishability(0.01, grid=grid, seed=1) for grid in (None, 1, 100))]
)
@pytest.mark.parametrize("crs", [4326, 32631])
def test_protected_records_equal_no_original_one(many_parts, mechanism, crs):
    there = many_parts.to_crs(crs)
    assert verdicts(there.promesse.check(mechanism.protect(there)))[SHARED] == "passed"


_SPOTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 12)), min_size=1, max_size=9)


@given(_SPOTS, _SPOTS, st.sampled_from([1, 10**3, 10**6, 10**9]), st.floats(-4e-4, 4e-4), st.sampled_from([0, 2, 32]))
def test_shared_records_are_those_that_the_plain_twin_finds(before, after, unit, aside, most):
    def traces(spots, aside):
        x, y, times = (np.array(one) for one in zip(*spots, strict=True))
        counts = np.ones(len(spots), int)
        users = [f"{number:02}" for number in range(len(spots))]
        places = (x * 12.3456789 + 0.123456 + aside, y * 12.3456789 + aside)  # no round numbers
        return plane(*places, users=users, counts=counts, times=(10 * times + 1) * unit)  # in no coarser unit

    expected = [  # below a microsecond times are not told apart
        any(x == a and y == b and (t == s or unit == 1) for a, b, s in before) for x, y, t in after
    ]
    with mock.patch("promesse_geo.audit.comparison._MOST", most):  # looked up in cells, or one by one
        assert (Comparison(traces(before, 0), traces(after, aside)).record_matches == 2).tolist() == expected


def test_records_of_crowds_at_one_time_are_not_compared_in_pairs():
    many = 6_000
    places = np.round(np.random.default_rng(1).normal(0, 2, (2, many)))
    users, counts = [f"{number:03}" for number in range(500)], np.full(500, many // 500)

    def crowd(aside):
        return plane(places[0] + aside, places[1], users=users, counts=counts, times=np.zeros(many, int))

    with (
        mock.patch(
            "promesse_geo.kernels.record_matching.match_locations", wraps=record_matching.match_locations
        ) as looked_up,
        mock.patch("promesse_geo.audit.comparison.threads.fair", wraps=threads.fair) as shared_out,
    ):
        matches = Comparison(crowd(0), crowd(9)).record_matches
    assert (matches > 0).all()
    assert looked_up.call_count == 1
    (work,) = shared_out.call_args.args
    assert work.sum() <= 4 * many  # records looked at; pairs would be 36 million


@pytest.fixture(scope="module")
def elsewhere(parts):
    """The true points, rounded to five decimals and again in another CRS, which moves them by less than a metre."""
    rounded = parts.set_geometry(points_from_xy(parts.geometry.x.round(5), parts.geometry.y.round(5), crs=4326))
    there = rounded.to_crs(32631)
    return there.set_geometry(points_from_xy(there.geometry.x.round(2), there.geometry.y.round(2), crs=32631))


@pytest.mark.parametrize("unit", ["min", "h"])
def test_original_points_in_other_digits_and_at_coarser_times_are_reviewed(parts, elsewhere, unit):
    coarse = elsewhere.assign(time=elsewhere["time"].dt.floor(unit))
    table, many = parts.promesse.check(coarse), parts["user"].nunique()
    found = [verdicts(table)[test] for test in ("no original timestamps", "no original locations", SHARED)]
    assert found == ["review", "failed", "review"]
    assert reason(table, "no original timestamps").startswith(f"{len(parts):,} of {len(parts):,} ")
    assert reason(table, "no original locations").startswith(
        f"{many} traces would be published record by record, moved by 0."
    )
    assert f"most records of {many} traces lie within 10 m" in reason(table, SHARED)


@pytest.mark.parametrize("change", [pg.pseudonymize, swapped, lambda frame: frame.iloc[::2].reset_index(drop=True)])
@pytest.mark.parametrize("unit", ["us", "s", "min"])
def test_records_that_barely_moved_are_reviewed_under_any_name(parts, elsewhere, change, unit):
    moved = elsewhere.assign(time=(elsewhere["time"] + pd.Timedelta("5us")).dt.floor(unit))
    assert verdicts(parts.promesse.check(change(moved)))[SHARED] == "review"


def test_one_trace_that_barely_moved_among_others_is_reviewed(parts, elsewhere, safe):
    user = safe["user"].iloc[0]
    mixed = pd.concat([safe[safe["user"] != user].to_crs(32631), elsewhere[elsewhere["user"] == user]])
    table = parts.promesse.check(mixed.assign(time=mixed["time"] + pd.Timedelta("5us")).reset_index(drop=True))
    assert reason(table, "no original locations").startswith("1 trace would be published record by record, moved by 0.")
    assert "most records of 1 trace" in reason(table, SHARED)


@pytest.mark.parametrize("aside", ["5us", "500ms", "-500ms"])
def test_noise_of_some_centimetres_and_shifted_times_are_reviewed(parts, aside):
    noisy = unmarked(pg.GeoIndistinguishability(10, grid=0.01, seed=1).protect(parts))
    table = parts.promesse.check(noisy.assign(time=noisy["time"] + pd.Timedelta(aside)))
    found = [verdicts(table)[test] for test in ("no original timestamps", "no original locations", SHARED)]
    assert found == ["review", "failed", "review"]
    assert "next to original ones" in reason(table, "no original timestamps")


@pytest.mark.parametrize(
    "mechanism",
    [*map(pg.Promesse, (20, 100, 500)), *(pg.GeoIndistinguishability(e, seed=1) for e in (0.007, 0.023, 0.1))],
)
def test_what_usual_protection_gives_is_not_close(many_parts, mechanism):
    table = many_parts.promesse.check(mechanism.protect(many_parts))
    assert verdicts(table)["no original locations"] == "passed"
    assert verdicts(table)[SHARED] == "passed"


def test_protected_times_in_seconds_are_new(parts, safe):
    for unit in ("ms", "s"):
        coarse = safe.assign(time=safe["time"].dt.floor(unit))
        assert verdicts(parts.promesse.check(coarse))["no original timestamps"] == "passed"


def with_times_of_the_path(safe: gpd.GeoDataFrame, parts: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Points of Promesse, at about the times at which their users were nearest to them."""
    records = dict(tuple(parts.to_crs(32631).groupby("user")))
    points = safe.to_crs(32631).geometry
    pairs = zip(safe["user"], points, strict=True)
    nearest = [records[user].geometry.distance(point).argmin() for user, point in pairs]
    times = [records[user]["time"].iloc[row] for user, row in zip(safe["user"], nearest, strict=True)]
    late = pd.Series(times, safe.index).groupby(safe["user"]).cummax() + pd.Timedelta("50ms")
    return safe.assign(time=late.astype(safe["time"].dtype))


def test_trips_without_stops_are_nearly_as_they_were_at_constant_intervals_only():
    trips = pg.make_city(users=12, days=2).promesse.prepare(days=2)
    with pytest.warns(UserWarning, match="dropped"):
        safe = trips.promesse.smooth(200)
    table = trips.promesse.check(unmarked(safe), mechanism=pg.Promesse(200))
    assert verdicts(table)[SHARED] == "passed"
    assert "they hardly stop, and Promesse hides stops only" in reason(table, SHARED)
    timed = unmarked(with_times_of_the_path(safe, trips))
    for mechanism in (None, pg.Promesse(200)):
        assert verdicts(trips.promesse.check(timed, mechanism=mechanism))[SHARED] != "passed"
