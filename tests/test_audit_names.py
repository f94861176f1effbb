"""The check of user names: pseudonyms pass, and names that lead back to users do not."""

import hashlib
import os
import zlib

import numpy as np
import pandas as pd
import pytest
from audits import compared, line, reason, verdicts

import promesse_geo as pg
from promesse_geo.audit.names import check_user_names

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected")


@pytest.fixture(scope="module")
def parts():
    return pg.prepare(pg.make_city(users=4, days=1, recorder="phone"), tz="Europe/Paris", seed=1)


@pytest.fixture(scope="module")
def safe(parts):
    return pg.Promesse(200).protect(parts)


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


def test_traces_that_are_not_published_are_counted(parts, safe):
    dropped = safe[safe["user"] != safe["user"].iloc[0]]
    missing = parts["user"].nunique() - dropped["user"].nunique()
    assert f"; {missing} trace{'s' * (missing > 1)} of the original {'are' if missing > 1 else 'is'} not" in reason(
        parts.promesse.check(dropped), "users are matched or renamed"
    )


def test_keys_of_the_original_are_counted(parts, safe):
    assert "names of the original, whose names all look like pseudonyms" in reason(
        parts.promesse.check(safe), "user names are pseudonyms"
    )
    before = parts.assign(user=parts["user"].replace({parts["user"].iloc[-1]: "somebody"}))
    table = before.promesse.check(safe)
    assert verdicts(table)["user names are pseudonyms"] == "review"
    assert "are names of the original" in reason(table, "user names are pseudonyms")
    renamed = pg.pseudonymize(safe)
    assert reason(before.promesse.check(renamed), "user names are pseudonyms").endswith("(16 hex digits)")
