"""Checks before publication: each test passes, asks for a review and fails where it should."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from audits import compared, line, plane, reason, verdicts
from geopandas import points_from_xy
from shapely import from_wkt

import promesse_geo as pg

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


def test_smoothed_parts_pass_every_test(parts, safe):
    table = parts.promesse.check(safe)
    assert list(table.columns) == ["test", "verdict", "reason"]
    assert verdicts(table) == {
        "user names are pseudonyms": "passed",
        "no other columns": "passed",
        "plain index": "passed",
        "rows are sorted": "passed",
        "no unused categories": "passed",
        "no attributes": "passed",
        "data are prepared": "passed",
        "no zero fixes in the original": "passed",
        "no impossible jumps in the original": "left out",
        "users are matched or renamed": "passed",
        "first points are hidden": "passed",
        "last points are hidden": "passed",
        "no original timestamps": "passed",
        "no original locations": "passed",
        "stays are hidden": "passed",
        "no record equals an original one": "passed",
        "noise has no guessable seed": "passed",
        "digits reveal no noise": "passed",
        "the mechanism is known": "passed",
    }


@pytest.mark.parametrize("epsilon", [50, 200, 1000])
@pytest.mark.parametrize("variant", ["polyline", "pseudocode"])
def test_promesse_passes_the_tests_of_first_and_last_points_and_digits(many_parts, epsilon, variant):
    table = many_parts.promesse.check(many_parts.promesse.smooth(epsilon, variant=variant), epsilon=epsilon)
    for test in ("first points are hidden", "last points are hidden", "digits reveal no noise"):
        assert verdicts(table)[test] == "passed"


def there_and_back():
    """A trace that goes 1,000 m east and returns by the same way."""
    return line(np.concatenate([np.arange(0, 1001, 50), np.arange(950, -1, -50)]))


def test_a_last_point_near_the_end_passes_if_the_trace_turned_back():
    before = there_and_back()
    inner = line([200, 400, 600, 500], times=np.array([4, 8, 12, 30]) * 10**9)  # on the way back 500 m remain
    assert compared(before, inner, "last points are hidden", epsilon=400)["verdict"] == "passed"
    early = line([200, 400, 600, 100], times=np.array([4, 8, 12, 2]) * 10**9)
    found = compared(before, early, "last points are hidden", epsilon=400)
    assert found["verdict"] == "passed"


def test_a_last_point_less_than_epsilon_of_path_before_the_end_fails():
    before = there_and_back()
    late = line([200, 400, 600, 150], times=np.array([4, 8, 12, 37]) * 10**9)
    found = compared(before, late, "last points are hidden", epsilon=200)
    assert found["verdict"] == "failed"
    assert found["reason"].startswith("1 of 1 trace ends less than 200 m before")
    assert compared(before, late, "last points are hidden", epsilon=150)["verdict"] == "passed"
    assert compared(before, before, "last points are hidden", epsilon=1)["verdict"] == "failed"


def test_people_who_live_within_the_noise_of_each_other_are_matched():
    """Eight neighbours 20 m apart: with noise of 400 m on average, many are nearer to the path of another one."""
    users, records = [f"neighbour {number}" for number in range(8)], 100
    x = (20 * np.arange(8)[:, None] + 2 * np.arange(records)).ravel()
    before = plane(x, np.zeros(len(x)), users=users, counts=[records] * 8, times=np.tile(np.arange(records), 8) * 10**9)
    for seed in range(4):
        safe = pg.GeoIndistinguishability(0.005, grid=0.01, seed=f"neighbours {seed}").protect(before)
        assert compared(before, safe, "users are matched or renamed")["verdict"] == "passed"


def make_hours(hours: np.ndarray) -> gpd.GeoDataFrame:
    times = pd.Timestamp("2000-01-03") + pd.to_timedelta(hours, unit="h")
    places = gpd.points_from_xy(4.8 + 0.01 * np.arange(len(hours)), np.full(len(hours), 45.7))
    return gpd.GeoDataFrame({"user": "a", "time": times}, geometry=places, crs=4326)


def test_data_that_were_not_prepared_are_reported(safe):
    test = "data are prepared"
    city, days = pg.make_city(users=3, days=3, recorder="phone"), "true dates"
    gaps = f"the original has {pg.describe(city)['gaps']} gaps of 4 h"

    def reason_of(frame):
        return reason(frame.promesse.check(frame.promesse.smooth(200)), test)

    assert reason_of(city).startswith(gaps)
    assert days in reason_of(city)
    assert "prepare()" in reason_of(city)
    moved = reason_of(pg.collapse_empty_days(city, tz="Europe/Paris"))
    assert moved.startswith(gaps)
    assert days not in moved
    assert reason_of(pg.split_gaps(city, seed=1)).startswith(f"the original has {days}")
    late = pg.collapse_empty_days(city)
    late.loc[late["user"] == late["user"].iloc[0], "time"] += pd.Timedelta("2000D")
    assert days in reason_of(late)
    every_4_hours = make_hours(4 * np.arange(5))
    assert "4 gaps of 4 h" in reason(every_4_hours.promesse.check(every_4_hours), test)
    pauses = every_4_hours.assign(segment=range(5))  # nothing is interpolated across breaks
    assert "passed" in pauses.promesse(segment="segment").check(every_4_hours).set_index("test").verdict[test]


def test_noise_keeps_the_number_of_records(parts, safe):
    """Data smoothed by Promesse cannot come from geo-indistinguishability."""
    mechanism = pg.GeoIndistinguishability(0.01)
    table = parts.promesse.check(safe, mechanism=mechanism).set_index("test")
    assert table.verdict["the mechanism is known"] == "failed"
    assert "another number of records" in table.reason["the mechanism is known"]
    noisy = parts.promesse.protect(mechanism)
    assert verdicts(parts.promesse.check(noisy, mechanism=mechanism))["the mechanism is known"] == "passed"


def test_stays_that_are_retrieved_are_counted(parts, safe):
    detail = parts.promesse.poi_retrieval(safe)
    counts = f"retrieves {detail.matched.sum():,} of {detail.original_pois.sum():,}"
    table = parts.promesse.check(safe)
    assert f"{counts} (F-score {pg.PoiRetrieval().value(detail):.1f} %)" in reason(table, "stays are hidden")
    assert verdicts(table)["stays are hidden"] == "passed"  # less than a tenth
    finer = parts.promesse.check(parts.promesse.smooth(30))
    assert verdicts(finer)["stays are hidden"] == "review"
    assert "larger epsilon" in reason(finer, "stays are hidden")
    hidden = parts.promesse.check(parts.promesse.smooth(1_000))
    assert verdicts(hidden)["stays are hidden"] == "passed"
    assert "retrieves 0 of" in reason(hidden, "stays are hidden")
    moving = parts.groupby("user").head(1)
    assert "no stays" in reason(moving.promesse.check(moving), "stays are hidden")


def test_without_epsilon_that_of_the_mechanism_counts(parts, safe):
    for options in ({}, {"mechanism": pg.Promesse(200)}):
        table = parts.promesse.check(safe, **options)
        assert verdicts(table)["first points are hidden"] == "passed"
        assert "200 m away" in reason(table, "first points are hidden")


def test_without_epsilon_and_mechanism_the_distances_are_reported(parts, safe):
    table = parts.promesse.check(safe[safe.index % 7 != 3].reset_index(drop=True))
    assert verdicts(table)["the mechanism is known"] == "review"
    assert verdicts(table)["first points are hidden"] == "review"
    assert "the nearest is 200.0 m away" in reason(table, "first points are hidden")


@pytest.mark.parametrize("short", [1e-9 * 200, 1e-3])
def test_the_first_point_may_be_short_by_the_tolerance_only(short):
    grid = 'LOCAL_CS["grid",UNIT["metre",1]]'

    def line(begin):
        x = np.array([begin, begin + 500.0])
        return pg.Traces.from_arrays(x, x * 0, times=np.array([0, 10**10]), users=["u"], counts=[2], crs=grid)

    table = pg.check_published(line(0.0), line(200 - short), epsilon=200)
    assert verdicts(table)["first points are hidden"] == ("failed" if short > 1e-6 else "passed")


def test_renamed_data_is_checked_for_all_that_needs_no_users(parts, safe):
    table = parts.promesse.check(pg.pseudonymize(safe), epsilon=200)
    found = verdicts(table)
    ends = {"first points are hidden", "last points are hidden"}
    left_out = {test for test, verdict in found.items() if verdict == "left out"}
    assert left_out == ends | {"no impossible jumps in the original"}
    assert all("--keep-users" in reason(table, test) for test in ends)
    assert {verdict for test, verdict in found.items() if test not in left_out} == {"passed"}
    assert "of anybody" in reason(table, "stays are hidden")
    other = safe[safe.index % 7 != 3].reset_index(drop=True)  # not what Promesse makes
    assert verdicts(parts.promesse.check(pg.pseudonymize(other)))["users are matched or renamed"] == "review"


def test_other_columns_and_elevations_fail(parts, safe):
    table = parts.promesse.check(safe.assign(phone="secret"))
    assert verdicts(table)["no other columns"] == "failed"
    assert "'phone'" in reason(table, "no other columns")
    assert "secret" not in table.to_string()


def test_attributes_are_reviewed(parts, safe):
    noted = safe.copy()
    noted.attrs["source"] = "secret"
    table = parts.promesse.check(noted)
    assert verdicts(table)["no attributes"] == "review"
    assert "secret" not in table.to_string()


def test_rounded_points_have_no_needless_digits(parts, safe):
    rounded = safe.copy()
    rounded["geometry"] = rounded.geometry.set_precision(1e-7)
    assert verdicts(parts.promesse.check(rounded))["digits reveal no noise"] == "passed"


def test_another_crs_changes_no_verdict_and_another_order_of_rows_only_its_own(parts, safe):
    there = safe.to_crs(3857).sample(frac=1, random_state=0, ignore_index=True)
    table, same = parts.promesse.check(there, epsilon=199.99), parts.promesse.check(safe, epsilon=199.99)
    assert verdicts(table) == verdicts(same) | {"rows are sorted": "review"}


def test_rows_in_the_order_of_original_users_are_reviewed():
    parts = pg.prepare(pg.make_city(users=4, days=2, recorder="phone"), keep_user=True)
    safe, rng = pg.Promesse(200).protect(parts), np.random.default_rng(1)
    names = {user: rng.bytes(8).hex() for user in parts["user"].unique()}
    renamed = safe.assign(user=safe["user"].map(names))
    table = parts.assign(user=parts["user"].map(names)).promesse.check(renamed)
    assert verdicts(table)["rows are sorted"] == "review"
    assert "pseudonymize()" in reason(table, "rows are sorted")
    renamed_again = parts.promesse.check(pg.pseudonymize(renamed))
    assert verdicts(renamed_again)["rows are sorted"] == "passed"


@pytest.mark.parametrize("keys", [["b", "a"], [10, 2], pd.Categorical(["x", "a"], categories=["x", "a"])])
def test_rows_in_the_order_of_traces_pass(keys):
    before = line([0, 9]).to_frame()
    table = before.promesse.check(before.assign(user=keys))
    assert verdicts(table)["rows are sorted"] == "review"
    table = before.promesse.check(before.assign(user=keys[::-1]))
    assert verdicts(table)["rows are sorted"] == "passed"


def test_naive_and_zoned_times_are_not_compared(parts, safe):
    zoned = safe.assign(time=safe["time"].dt.tz_localize("UTC"))
    with pytest.raises(ValueError, match="protected times have a time zone and the original ones have none"):
        parts.promesse.check(zoned)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Paris"])
@pytest.mark.parametrize("is_common", [False, True])
def test_raw_frames_are_compared_with_what_was_published_of_them(zone, is_common):
    """Times of the common calendar are no true times, in whatever zone, even if the raw ones are of the same days."""
    city = pg.make_city(users=3, days=3, recorder="phone")
    moved = city["time"] - (pd.Timedelta("8827D") if is_common else pd.Timedelta(0))
    raw = city.assign(time=moved.dt.tz_localize(None) if zone is None else moved.dt.tz_convert(zone))
    published = raw.promesse.publish(None, pg.Promesse(200), dry_run=True).data
    table = raw.promesse.check(published)
    assert "failed" not in set(table["verdict"])
    assert verdicts(table)["no original locations"] == "passed"
    assert verdicts(table)["no original timestamps"] == ("passed" if is_common and zone is None else "left out")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ends_are_compared_under_kept_names_if_days_were_moved():
    """Where a trace came nearer to its start, times show how long the path to there was, if they are those of it."""
    raw = pg.make_city(users=3, days=3, recorder="phone")
    safe = pg.Promesse(200, ends=400).protect(pg.collapse_empty_days(raw))
    found = verdicts(raw.promesse.check(safe))
    ends = ("first points are hidden", "last points are hidden")
    assert {found[test] for test in ends} <= {"passed", "left out"}
    assert found["no original timestamps"] == "left out"


def test_both_frames_are_read_by_the_same_names(parts, safe):
    names = {"user": "cab", "time": "stamp"}
    table = parts.rename(columns=names).promesse(user="cab", time="stamp").check(safe.rename(columns=names))
    assert verdicts(table)["no other columns"] == "passed"


def test_empty_data_fails(parts, safe):
    for before, after in ((parts, safe[:0]), (parts[:0], safe), (parts[:0], safe[:0])):
        table = before.promesse.check(after)
        assert verdicts(table)["there are records"] == "failed"
        assert set(table["verdict"]) == {"passed", "failed"}


@pytest.mark.parametrize(
    ("index", "verdict"),
    [
        (pd.RangeIndex, "passed"),
        (lambda n: pd.Index(np.arange(n)), "passed"),
        (lambda n: pd.RangeIndex(1, n + 1), "failed"),
        (lambda n: pd.RangeIndex(n, name="secret"), "failed"),
        (lambda n: pd.Index(np.arange(n)[::-1]), "failed"),
        (lambda n: pd.Index([f"secret{i}" for i in range(n)]), "failed"),
        (lambda n: pd.MultiIndex.from_arrays([np.arange(n), ["secret"] * n]), "failed"),
    ],
)
def test_an_index_other_than_the_number_of_the_row_fails(parts, safe, index, verdict):
    table = parts.promesse.check(safe.set_axis(index(len(safe)), axis="index"))
    assert verdicts(table)["plain index"] == verdict
    assert "secret" not in table.to_string()


def test_times_may_be_the_index(parts, safe):
    table = parts.set_index("time").promesse.check(safe.set_index("time"))
    assert verdicts(table)["plain index"] == "passed"


@pytest.mark.parametrize("words", ["POINT Z (2 48 7)", "POINT M (2 48 7)"])
def test_elevations_and_measures_of_a_frame_fail(parts, safe, words):
    touched = safe.copy()
    touched["geometry"] = [from_wkt(words), *touched.geometry[1:]]
    table = parts.promesse.check(touched)
    assert verdicts(table)["no other columns"] == "failed"
    assert "'Z or M'" in reason(table, "no other columns")


def test_categories_without_a_record_fail(parts, safe):
    users = pd.Categorical(safe["user"], categories=[*safe["user"].unique(), "secret"])
    table = parts.promesse.check(safe.assign(user=users))
    assert verdicts(table)["no unused categories"] == "failed"
    assert "1 category " in reason(table, "no unused categories")
    assert "secret" not in table.to_string()
    used = safe.assign(user=users.remove_unused_categories())
    assert verdicts(parts.promesse.check(used))["no unused categories"] == "passed"


def test_a_name_of_the_columns_is_reviewed(parts, safe):
    table = parts.promesse.check(safe.rename_axis(columns="secret"))
    assert verdicts(table)["no attributes"] == "review"
    assert "secret" not in table.to_string()


@pytest.mark.parametrize(
    ("traces", "verdict"),
    [
        (lambda x: line(x / 0.3048, unit="foot", factor=0.3048), "review"),
        (lambda x: line(np.round(x / 0.3048, 2), unit="foot", factor=0.3048), "passed"),
        (lambda x: line(np.round(x, 2) + 260_000, crs=3857, y=6_250_000.25), "passed"),
        (lambda x: line(np.round(x, 3) + 260_000, crs=3857, y=6_250_000.25), "review"),
        (lambda x: line(np.round(x, 2) + 500_000, crs=32631, y=5_000_000.25), "passed"),
        (lambda x: line(np.round(x / 1e5, 7), crs=4326, y=48.1234567), "passed"),
        (lambda x: line(np.round(x / 1e5, 9), crs=4326, y=48.1234567), "review"),
    ],
)
def test_digits_are_needless_below_a_centimetre_in_any_unit(traces, verdict):
    after = traces(np.arange(1, 40) * 7.123456789)
    assert compared(after, after, "digits reveal no noise")["verdict"] == verdict


def test_rounding_that_brings_first_points_nearer_is_named(parts, safe):
    rounded = safe.set_geometry(points_from_xy(safe.geometry.x.round(7), safe.geometry.y.round(7))).set_crs(4326)
    table = parts.promesse.check(rounded, epsilon=200)
    assert verdicts(table)["first points are hidden"] == "failed"
    assert "rounding may cause this" in reason(table, "first points are hidden")


def test_points_without_a_place_in_the_original_crs_are_no_pass(parts):
    grid = line([0, 9], users=[parts["user"].iloc[0]])
    with pytest.raises(ValueError, match="Compare in one CRS"):
        pg.check_published(pg.Traces.from_frame(parts.assign(time=parts["time"].dt.tz_localize("UTC"))), grid)


def test_noise_on_a_grid_has_no_needless_digits(parts):
    for seed in range(3):
        noisy = pg.GeoIndistinguishability(0.01, grid=1, seed=seed).protect(parts)
        table = parts.promesse.check(noisy)
        assert verdicts(table)["digits reveal no noise"] == "passed"
        assert "grid" in reason(table, "digits reveal no noise")
        fine = pg.GeoIndistinguishability(0.01, seed=seed).protect(parts)
        assert verdicts(parts.promesse.check(fine))["digits reveal no noise"] == "review"


@pytest.mark.parametrize("grid", [1 / 3, 1, 10, 100])
def test_noise_on_a_grid_of_a_plane_is_no_leak(parts, grid):
    there = parts.to_crs(32631)
    found = there.promesse.check(pg.GeoIndistinguishability(0.01, grid=grid, seed=1).protect(there))
    assert verdicts(found)["no original locations"] == "passed"
    assert verdicts(found)["digits reveal no noise"] == "passed"


def test_rows_alone_are_no_grid(parts):
    noisy = pg.GeoIndistinguishability(0.01, grid=10, seed=1).protect(parts)
    x = noisy.geometry.x + np.random.default_rng(1).uniform(0, 1e-4, len(noisy))
    rows = noisy.set_geometry(points_from_xy(x, noisy.geometry.y, crs=4326))
    assert verdicts(parts.promesse.check(rows))["digits reveal no noise"] == "review"


def test_few_fine_points_show_no_grid():
    x = np.array([0.123456789, 700.123456, 2000.987654])
    assert compared(plane(x, x), plane(x, x), "digits reveal no noise")["verdict"] == "review"


def test_what_did_not_pass_prints_with_complete_reasons_and_the_rest_in_a_line(parts, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    table = parts.promesse.check(parts.iloc[::2].reset_index(drop=True).assign(secret=1))
    lines = str(table).splitlines()
    assert max(map(len, lines)) <= 90
    words = " ".join(" ".join(lines).split())
    named = table["verdict"].isin(["passed", "left out"])
    passed, others = table[table["verdict"] == "passed"], table[~named]
    assert all(" ".join(why.split()) in words for why in others["reason"])
    assert f"{len(passed)} of {len(table)} tests passed: {', '.join(passed['test'])}" in words
    assert "1 test left out: no impossible jumps in the original (" in words
    assert "Publish each person once" in words
    page = table._repr_html_()
    assert max(others["reason"], key=len).replace("&", "&amp;") in page
    assert f"<p>{len(passed)} of {len(table)} tests passed: " in page
    assert "<p>1 test left out: no impossible jumps in the original (" in page
    assert "Publish each person once" in page
    assert str(table[["test"]]).splitlines()[0].split() == ["test"]
    assert "<table" in table[["test"]]._repr_html_()


def test_unused_categories_of_an_arrow_dictionary_fail(parts, safe):
    users = [*safe["user"].unique(), "secret"]
    codes = pa.array(pd.Categorical(safe["user"], categories=users).codes, pa.int32())

    def table(names):
        column = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, pa.array(names))])
        return parts.promesse.check(safe.assign(user=pd.arrays.ArrowExtensionArray(column)))

    assert verdicts(table(users))["no unused categories"] == "failed"
    assert "1 category " in reason(table(users), "no unused categories")
    assert "secret" not in table(users).to_string()
    assert verdicts(table(users[:-1]))["no unused categories"] == "passed"


ENDS = "places at the ends are hidden"


@pytest.fixture(scope="module")
def crowd():
    """Parts of traces of twenty users, most of which begin or end at one place."""
    city = pg.make_city(users=20, days=4, seed=3, recorder="phone")
    return city.promesse.prepare(tz="Europe/Paris", keep_user=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("mechanism", "verdict", "remedy"),
    [
        (pg.Promesse(200), "review", "recommended('people')"),
        (pg.GeoIndistinguishability(0.01, seed=1), "review", "recommended('people')"),
        (pg.Chain([pg.PrivacyZones(100, 50, seed="secret"), pg.Promesse(200)]), "review", "larger zones"),
        (pg.Chain([pg.PrivacyZones(700, 600, seed="secret"), pg.Promesse(200, ends=400, seed=1)]), "passed", None),
    ],
)
def test_places_at_the_ends_are_to_be_reviewed_if_many_are_located(crowd, mechanism, verdict, remedy):
    parts, safe = crowd, crowd.promesse.protect(mechanism)
    table = parts.promesse.check(safe)
    detail = pg.EndRetrieval().detail(parts, safe)
    value, guess = pg.EndRetrieval().value(detail), detail.attrs["random"]
    assert (value > 28.1) == (verdict == "review")  # 15 % and what chance adds among 20 users
    assert verdicts(table)[ENDS] == verdict
    assert f"for {value:.1f} % of users, {guess:.1f} % by guessing" in reason(table, ENDS)
    assert [each for each in ("recommended('people')", "larger zones") if each in reason(table, ENDS)] == (
        [remedy] if remedy else []
    )
    assert ENDS not in verdicts(parts.promesse.check(safe.promesse.pseudonymize()))  # nobody knows whose traces are


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_users_with_two_places_of_many_ends_are_counted_and_reviewed_if_either_is_located():
    """Trips between home and work, of which zones hide one."""
    city = pg.make_city(users=12, days=10, seed=3, recorder="trips")
    parts = city.promesse.prepare(tz="Europe/Paris", keep_user=True)
    safe = parts.promesse.protect(pg.Chain([pg.PrivacyZones(700, 600, seed="secret"), pg.Promesse(200, seed=1)]))
    metric = pg.EndRetrieval()
    both = metric.compare_second(metric.pair(*map(pg.Traces.from_frame, (parts, safe))))
    seconds, located = int(both["second"].sum()), 100 * (both["either"] <= 100).mean()
    assert located > metric.value(both)
    found = reason(parts.promesse.check(safe), ENDS)
    assert verdicts(parts.promesse.check(safe))[ENDS] == "review"
    assert f"{seconds} of {len(both)} users begin or end at least half as many traces at another place" in found
    assert f"one is located for {located:.1f} % of users" in found
    assert "places=2" in found


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_publish_says_of_ends_what_it_measures():
    city = pg.make_city(users=6, days=7, seed=3, recorder="phone")
    result = city.promesse.publish(None, pg.Promesse(200), tz="Europe/Paris", dry_run=True)
    value = result.measures.iloc[0]["value"]
    assert f"for {value:.1f} % of users" in reason(result.audit, ENDS)
    assert verdicts(result.audit)[ENDS] == ("review" if value > 38.9 else "passed")  # among 6 users


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_chain_is_named_with_all_its_members(parts):
    chain = pg.Chain([pg.PrivacyZones(300, 200), pg.Promesse(200)])
    found = reason(parts.promesse.check(chain.protect(parts), mechanism=chain), "the mechanism is known")
    assert found == "named: PrivacyZones (radius = 300 m, offset = 200 m), then Promesse (epsilon = 200 m)"
