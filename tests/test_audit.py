"""Checks before publication: each test passes, asks for a review and fails where it should."""

import hashlib
import os
import re
import zlib
from unittest import mock

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from geopandas import points_from_xy
from hypothesis import given
from hypothesis import strategies as st
from shapely import from_wkt

import promesse_geo as pg
from promesse_geo import threads
from promesse_geo.audit.comparison import Comparison
from promesse_geo.audit.names import check_user_names
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


def unmarked(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """The frame without the note of its mechanism, as a frame from elsewhere."""
    frame = frame.copy()
    frame.attrs = {}
    return frame


def verdicts(table: pd.DataFrame) -> dict[str, str]:
    return dict(zip(table["test"], table["verdict"], strict=True))


def reason(table: pd.DataFrame, test: str) -> str:
    return table.set_index("test").loc[test, "reason"]


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


def test_names_of_people_are_reviewed():
    city = pg.make_city(users=2, days=1, recorder="phone")
    assert verdicts(city.promesse.check(city.promesse.smooth(200)))["user names are pseudonyms"] == "review"


NAMES = "user names are pseudonyms"


def named(frame, name):
    """The frame, each user's key made anew."""
    return frame.assign(user=frame["user"].map({key: name(key) for key in frame["user"].unique()}))


@pytest.mark.parametrize(
    "kind", ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s"]
)
@pytest.mark.parametrize("cut", [slice(16), slice(-16, None), slice(12), slice(None)])
def test_hashes_of_users_are_no_pseudonyms(kind, cut):
    city = pg.make_city(users=2, days=1, recorder="phone").groupby("user").head(20).reset_index(drop=True)
    table = city.promesse.check(named(city, lambda key: hashlib.new(kind, key.encode()).hexdigest()[cut]))
    assert verdicts(table)[NAMES] == "failed"
    assert f"2 user names of 2 are hashes ({kind})" in reason(table, NAMES)


@pytest.mark.parametrize(
    "name",
    [
        lambda key: hashlib.blake2b(key.encode(), digest_size=8).hexdigest(),
        lambda key: f"{zlib.crc32(key.encode()):08x}",
        lambda key: f"{zlib.crc32(key.encode()):016x}",
        lambda key: hashlib.md5(key.encode()).hexdigest().upper(),
        lambda key: hashlib.md5(key.rsplit("-", 1)[0].encode()).hexdigest()[:16],  # of the user behind a part
    ],
)
def test_short_and_other_hashes_are_none_either(name):
    parts = pg.split_gaps(pg.make_city(users=3, days=1, recorder="phone"), keep_user=True).drop_duplicates(
        "user", ignore_index=True
    )
    firsts = parts[parts["user"].str.endswith("-00000")]
    assert verdicts(firsts.promesse.check(named(firsts, name)))[NAMES] == "failed"


def test_one_hash_among_pseudonyms_fails():
    city = pg.make_city(users=3, days=1, recorder="phone")
    first = city["user"].iloc[0]
    table = city.promesse.check(
        named(city, lambda key: hashlib.md5(key.encode()).hexdigest()[:16] if key == first else os.urandom(8).hex())
    )
    assert verdicts(table)[NAMES] == "failed"
    assert "1 user name of 3 is a hash (md5)" in reason(table, NAMES)


def test_hashes_of_numbers_are_found():
    numbers = line([0, 9], users=[7])
    assert compared(numbers, line([0, 9], users=[hashlib.sha256(b"7").hexdigest()]), NAMES)["verdict"] == "failed"


@pytest.mark.parametrize(("hashed", "verdict"), [(0, "review"), (1, "review"), (2, "failed"), (60, "failed")])
def test_hashes_count_from_a_hundred_times_what_chance_gives(hashed, verdict):
    """Of 6,000 random keys of 8 digits 0.02 are the CRC of one of 6,000 users by chance, on either end."""
    count = 6_000
    users = [f"user-{number}" for number in range(count)]
    names = [f"{number:08x}" for number in np.random.default_rng(1).integers(2**32, size=count).tolist()]
    names[:hashed] = [f"{zlib.crc32(user.encode()):08x}" for user in users[:hashed]]
    names = list(dict.fromkeys(names))

    def of(keys):
        x = np.zeros(len(keys))
        return pg.Traces.from_arrays(x, x, times=x.astype(int), users=keys, counts=np.ones(len(keys), int))

    assert check_user_names(of(users), of(names)).verdict == verdict


@pytest.mark.parametrize("seed", [0, 1, "42", 2024, 123456])
@pytest.mark.parametrize("renamed", [pg.pseudonymize, pg.split_gaps])
def test_names_of_an_easily_guessed_seed_fail(seed, renamed):
    city = pg.make_city(users=30, days=1, recorder="phone", as_traces=True)
    parts = pg.split_gaps(city, keep_user=True)
    for before in (city, parts):
        found = check_user_names(before, renamed(city, seed=seed))
        assert found.verdict == "failed"
        assert "seed" in found.reason
    assert check_user_names(parts, pg.pseudonymize(parts, seed=seed)).verdict == "failed"
    assert check_user_names(city, renamed(city, seed=f"{seed}, which nobody guesses")).verdict == "passed"


def test_the_check_of_frames_tries_seeds_of_names():
    city = pg.make_city(users=3, days=1, recorder="phone")
    assert verdicts(city.promesse.check(pg.pseudonymize(city, seed=1)))[NAMES] == "failed"
    assert verdicts(city.promesse.check(pg.pseudonymize(city)))[NAMES] == "passed"


@pytest.mark.parametrize("form", ["{:016x}", "{:016d}", "00005eed{:08x}"])
def test_consecutive_names_are_reviewed(form):
    city = pg.make_city(users=12, days=1, recorder="phone")
    numbers = {user: number for number, user in enumerate(city["user"].unique())}
    table = city.promesse.check(named(city, lambda key: form.format(3 * numbers[key] + 1)))
    assert verdicts(table)[NAMES] == "review"
    assert "consecutive" in reason(table, NAMES)
    one = city[city["user"] == city["user"].iloc[0]]
    assert verdicts(city.promesse.check(named(one, lambda key: f"{1:016x}")))[NAMES] == "review"


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


def test_raw_data_under_new_names_and_days_fail_beside_the_raw_data():
    """Moved days leave the tests of times out, not that of locations."""
    raw = pg.make_city(users=3, days=3, recorder="phone")
    for moved in (pg.collapse_empty_days(raw), pg.prepare(raw, tz="Europe/Paris")):
        assert verdicts(raw.promesse.check(moved))["no original locations"] == "failed"


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


def line(x, *, unit="metre", factor=1, crs=None, users=("u",), times=None, y=0.0):
    """Traces of one user in the plane, a record a second."""
    x = np.asarray(x, float)
    times = np.arange(len(x)) * 10**9 if times is None else np.asarray(times)
    crs = crs or f'LOCAL_CS["grid",UNIT["{unit}",{factor}]]'
    return pg.Traces.from_arrays(x, np.full(len(x), y), times=times, users=list(users), counts=[len(x)], crs=crs)


def compared(before, after, test, **options):
    return pg.check_published(before, after, **options).set_index("test").loc[test]


def test_traces_of_users_that_the_original_has_not_are_counted(parts, safe):
    half = safe[safe["user"].isin(sorted(safe["user"].unique())[:2])]
    named = pd.concat([half, pg.pseudonymize(safe)], ignore_index=True)
    table, many = parts.promesse.check(named), named["user"].nunique()
    assert verdicts(table)["users are matched or renamed"] == "review"
    assert reason(table, "users are matched or renamed").startswith(f"2 of {many} traces compared")
    assert verdicts(table)["no original locations"] == "passed"


def test_users_of_the_same_text_are_the_same(parts, safe):
    numbers = {user: number for number, user in enumerate(sorted(parts["user"].unique()))}
    before = parts.assign(user=parts["user"].map(numbers))
    after = safe.assign(user=safe["user"].map(numbers).astype(str))
    for one, other in ((before, after), (before.assign(user=before["user"].astype(str)), after.astype({"user": int}))):
        table = one.promesse.check(other, epsilon=200)
        assert verdicts(table)["users are matched or renamed"] == "passed"
        assert verdicts(table)["first points are hidden"] == "passed"


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


def test_a_single_trace_has_no_user_to_rename(parts, safe):
    one = parts.drop(columns="user").promesse(user=None)
    assert verdicts(one.check(safe.drop(columns="user")))["user names are pseudonyms"] == "passed"


def test_many_users_are_checked_together():
    count = 5_000
    x = np.zeros(count)
    users = [f"{number:016x}" for number in range(count - 1)] + ["secret"]
    traces = pg.Traces.from_arrays(x, x, times=np.arange(count), users=users, counts=np.ones(count, int))
    table = pg.check_published(traces, traces)
    assert reason(table, "user names are pseudonyms").startswith("1 of 5,000 user names")
    assert "5,000 traces would be published" in reason(table, "no original locations")


def plane(x, y, *, users=("u",), counts=None, times=None):
    """Traces in the plane, a record a second."""
    times = np.arange(len(x)) * 10**9 if times is None else np.asarray(times)
    grid = 'LOCAL_CS["grid",UNIT["metre",1]]'
    counts = [len(x)] if counts is None else counts
    return pg.Traces.from_arrays(
        np.asarray(x, float), np.asarray(y, float), times=times, users=list(users), counts=counts, crs=grid
    )


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


def test_traces_that_are_not_published_are_counted(parts, safe):
    dropped = safe[safe["user"] != safe["user"].iloc[0]]
    missing = parts["user"].nunique() - dropped["user"].nunique()
    assert f"; {missing} trace{'s' * (missing > 1)} of the original {'are' if missing > 1 else 'is'} not" in reason(
        parts.promesse.check(dropped), "users are matched or renamed"
    )


def test_keys_of_the_original_are_counted(parts, safe):
    assert "names of the original, which has pseudonyms too" in reason(
        parts.promesse.check(safe), "user names are pseudonyms"
    )
    before = parts.assign(user=parts["user"].replace({parts["user"].iloc[-1]: "somebody"}))
    table = before.promesse.check(safe)
    assert verdicts(table)["user names are pseudonyms"] == "review"
    assert "are names of the original" in reason(table, "user names are pseudonyms")
    renamed = pg.pseudonymize(safe)
    assert reason(before.promesse.check(renamed), "user names are pseudonyms").endswith("(16 hex digits)")


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
def weeks():
    """Parts of traces of twenty users, most of which begin or end at one place."""
    city = pg.make_city(users=20, days=7, seed=3, recorder="phone")
    return city.promesse.prepare(tz="Europe/Paris", keep_user=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("mechanism", "verdict"),
    [
        (pg.Promesse(200), "review"),
        (pg.GeoIndistinguishability(0.01, seed=1), "review"),
        (pg.Chain([pg.PrivacyZones(700, 600, seed="secret"), pg.Promesse(200, ends=400, seed=1)]), "passed"),
    ],
)
def test_places_at_the_ends_are_to_be_reviewed_if_many_are_located(weeks, mechanism, verdict):
    parts, safe = weeks, weeks.promesse.protect(mechanism)
    table = parts.promesse.check(safe)
    detail = pg.EndRetrieval().detail(parts, safe)
    value, guess = pg.EndRetrieval().value(detail), detail.attrs["random"]
    assert (value > 28.1) == (verdict == "review")  # 15 % and what chance adds among 20 users
    assert verdicts(table)[ENDS] == verdict
    assert f"for {value:.1f} % of users, {guess:.1f} % by guessing" in reason(table, ENDS)
    assert ("recommended" in reason(table, ENDS)) == (verdict == "review")
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
