"""Trials of the checks before publication: bad protections fail, good ones do not."""

import functools

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from geopandas import points_from_xy

import promesse_geo as pg
from promesse_geo.audit import check_files, file_mechanism

pytestmark = pytest.mark.filterwarnings("ignore:.*could not be protected", "ignore:.*pivot")


@pytest.fixture(scope="module")
def parts():
    return pg.prepare(pg.make_city(users=5, days=2, recorder="phone"), tz="Europe/Paris", seed="no one guesses this")


@pytest.fixture(scope="module")
def protect(parts):
    """Return a function that protects the data once with each mechanism."""
    return functools.lru_cache(parts.promesse.protect)


def renumbered(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Random names, whose order does not follow that of the users."""
    users = sorted(frame["user"].unique())
    names = [f"{number:016x}" for number in np.random.default_rng(5).integers(2**63, size=len(users)).tolist()]
    return sort(frame.assign(user=frame["user"].map(dict(zip(users, names, strict=True)))))


def dealt_anew(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Each trace under the key of another user."""
    users = sorted(frame["user"].unique())
    half = len(users) // 2
    return sort(frame.assign(user=frame["user"].map(dict(zip(users, users[half:] + users[:half], strict=True)))))


def sort(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    return frame.sort_values(["user", "time"], ignore_index=True)


def later(frame: gpd.GeoDataFrame, by: str = "37min") -> gpd.GeoDataFrame:
    return frame.assign(time=frame["time"] + pd.Timedelta(by))


def each_later(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Each user at times of his own."""
    users = sorted(frame["user"].unique())
    minutes = dict(zip(users, np.random.default_rng(6).integers(-500, 500, len(users)), strict=True))
    return frame.assign(time=frame["time"] + pd.to_timedelta(frame["user"].map(minutes), unit="min"))


def mirrored(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Times that run backwards."""
    return sort(frame.assign(time=frame["time"].max() - (frame["time"] - frame["time"].min())))


def moved(frame: gpd.GeoDataFrame, x: float = 0.01, y: float = 0.0) -> gpd.GeoDataFrame:
    return frame.set_geometry(points_from_xy(frame.geometry.x + x, frame.geometry.y + y, crs=4326))


def noisy(frame: gpd.GeoDataFrame, metres: float) -> gpd.GeoDataFrame:
    """Normal noise on every record."""
    plane, rng = frame.to_crs(32631), np.random.default_rng(7)
    x, y = (axis + rng.normal(0, metres, len(frame)) for axis in (plane.geometry.x, plane.geometry.y))
    return plane.set_geometry(points_from_xy(x, y, crs=32631)).to_crs(4326)


def rounded(frame: gpd.GeoDataFrame, decimals: int) -> gpd.GeoDataFrame:
    x, y = frame.geometry.x.round(decimals), frame.geometry.y.round(decimals)
    return frame.set_geometry(points_from_xy(x, y, crs=4326))


def every(frame: gpd.GeoDataFrame, step: int) -> gpd.GeoDataFrame:
    return frame.iloc[::step].reset_index(drop=True)


def with_true_ends(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """Smoothed traces, to which the last record of the original was added."""
    safe = frame.promesse.smooth(200)
    last = frame.groupby("user").tail(1)
    return sort(pd.concat([safe, last[last["user"].isin(safe["user"])]]))


def with_a_true_trace(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    safe, user = frame.promesse.smooth(200), frame["user"].iloc[0]
    return sort(pd.concat([safe[safe["user"] != user], frame[frame["user"] == user]]))


def unmarked(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    """The frame without the note of its mechanism, as a frame from elsewhere."""
    frame = frame.copy()
    frame.attrs = {}
    return frame


def seeded(frame: gpd.GeoDataFrame, *, epsilon: float = 0.01, seed: int | str = 1) -> gpd.GeoDataFrame:
    return unmarked(frame.promesse.protect(pg.GeoIndistinguishability(epsilon, seed=seed)))


def with_attribute(frame: gpd.GeoDataFrame) -> gpd.GeoDataFrame:
    return frame.promesse.smooth(200).assign(phone=1)


LEVEL = np.log(4) / 200

BAD = {
    "as recorded": lambda parts: parts,
    "renamed": renumbered,
    "keys dealt anew": dealt_anew,
    "dealt anew and 37 minutes later": lambda parts: later(dealt_anew(parts)),
    "renamed and 37 minutes later": lambda parts: later(renumbered(parts)),
    "37 minutes later": later,
    "each user at times of his own": lambda parts: each_later(renumbered(parts)),
    "times mirrored": lambda parts: mirrored(renumbered(parts)),
    "times in hours": lambda parts: sort(renumbered(parts).assign(time=lambda frame: frame["time"].dt.floor("h"))),
    "times shuffled within a trace": lambda parts: sort(
        renumbered(parts).assign(time=lambda frame: frame["time"].sample(frac=1, random_state=1).to_numpy())
    ),
    "every third record": lambda parts: every(renumbered(parts), 3),
    "every third record, later": lambda parts: later(every(renumbered(parts), 3), "11s"),
    "every third record with 8 m of noise": lambda parts: noisy(later(every(renumbered(parts), 3), "11s"), 8),
    "8 m of normal noise": lambda parts: noisy(parts, 8),
    "20 m of normal noise": lambda parts: noisy(parts, 20),
    "20 m of normal noise, renamed and later": lambda parts: noisy(later(renumbered(parts)), 20),
    "50 m of normal noise": lambda parts: noisy(parts, 50),
    "moved by 0.01 degrees": moved,
    "moved by 0.01 degrees, renamed and later": lambda parts: moved(later(renumbered(parts)), 0.01, -0.02),
    "rounded to a metre": lambda parts: rounded(parts, 5),
    "rounded to a metre, renamed and later": lambda parts: rounded(later(renumbered(parts)), 5),
    "rounded to 10 metres, dealt anew": lambda parts: rounded(later(dealt_anew(parts)), 4),
    "first 100 records cut": lambda parts: renumbered(parts[parts.groupby("user").cumcount() >= 100]),
    "the last record added": with_true_ends,
    "one true trace": with_a_true_trace,
    "one true trace, renamed and later": lambda parts: later(renumbered(with_a_true_trace(parts))),
    "noise with seed 1": seeded,
    "noise with seed 42, renamed": lambda parts: renumbered(seeded(parts, epsilon=LEVEL, seed="42")),
    "names with seed 42": lambda parts: pg.pseudonymize(parts.promesse.smooth(200), seed=42),
    "another column": with_attribute,
    "smoothed less than it says": lambda parts: parts.promesse.smooth(20),
    "an index that counts from 1": lambda parts: parts.promesse.smooth(200).rename(index=lambda row: row + 1),
    "nothing left": lambda parts: parts.iloc[:0],
    "Wait for Me is named": renumbered,
}
CLAIMS = {"Wait for Me is named": pg.WaitForMe(), "smoothed less than it says": pg.Promesse(200)}


@pytest.mark.parametrize("name", BAD)
def test_bad_protections_fail(parts, name):
    table = parts.promesse.check(BAD[name](parts), mechanism=CLAIMS.get(name))
    assert "failed" in set(table["verdict"])


def test_keys_dealt_anew_are_reported(parts):
    for frame in (parts, parts.promesse.smooth(200)):
        table = parts.promesse.check(dealt_anew(frame)).set_index("test")
        assert table.verdict["users are matched or renamed"] == "review"
        assert "same people" in table.reason["users are matched or renamed"]


NOISE = pg.GeoIndistinguishability.from_level(4, radius=200, grid=1, seed="no one guesses this either")
GROUPS = pg.WaitForMe(2, 200, seed=3)
DECISIONS = {
    "GeoIndistinguishability": {"stays are hidden"},
    "WaitForMe": {"stays are hidden", "no original locations"},
}
GOOD = {
    "constant distances": (pg.Promesse(200), lambda frame: frame),
    "of 500 m": (pg.Promesse(500), lambda frame: frame),
    "of Algorithm 1": (pg.Promesse(200, variant="pseudocode"), lambda frame: frame),
    "renamed": (pg.Promesse(200), renumbered),
    "in a plane": (pg.Promesse(200), lambda frame: frame.to_crs(32631)),
    "noise": (NOISE, lambda frame: frame),
    "noise, renamed": (NOISE, renumbered),
    "strong noise": (pg.GeoIndistinguishability(0.002, grid=0.1, seed="nor this"), lambda frame: frame),
    "groups": (GROUPS, lambda frame: frame),
    "groups, renamed": (GROUPS, renumbered),
}


def judge(table, mechanism):
    """The tests that failed, and those to review beside what the mechanism leaves to decide."""
    table = table.set_index("test").verdict
    decisions = DECISIONS.get(type(mechanism).__name__, set())
    return set(table.index[table == "failed"]), set(table.index[table == "review"]) - decisions


@pytest.mark.parametrize(
    ("name", "is_named"),
    # without the users the law of the noise cannot be recognized
    [(name, is_named) for name in GOOD for is_named in (True, False) if is_named or name != "noise, renamed"],
)
def test_good_protections_pass_but_for_what_is_to_decide(parts, protect, name, is_named):
    mechanism, change = GOOD[name]
    safe = unmarked(change(protect(mechanism)))
    assert judge(parts.promesse.check(safe, mechanism=mechanism if is_named else None), mechanism) == (set(), set())


@pytest.mark.parametrize("ending", ["parquet", "csv", "gpkg", "geojson"])
@pytest.mark.parametrize(
    "mechanism", [GOOD[name][0] for name in ("constant distances", "of Algorithm 1", "noise", "groups")], ids=str
)
def test_good_protections_pass_in_every_format(parts, protect, tmp_path, mechanism, ending):
    path = tmp_path / f"safe.{ending}"
    pg.write(protect(mechanism), path, mechanism=mechanism)
    safe = pg.read_table(path, as_traces=True)
    tables = pg.check_published(parts, safe, mechanism=file_mechanism(path)), check_files(path, safe)
    assert judge(pd.concat(tables), mechanism) == (set(), set())


def test_geo_indistinguishability_is_not_said_to_hide_stays(parts):
    table = parts.promesse.check(parts.promesse.protect(NOISE)).set_index("test")
    assert table.verdict["stays are hidden"] == "review"
    assert "averages noise" in table.reason["stays are hidden"]


SWAPPED = {
    "Promesse": pg.Promesse(200),
    "Algorithm 1": pg.Promesse(200, variant="pseudocode"),
    "noise": NOISE,
    "groups": GROUPS,
}


@pytest.mark.parametrize("change", [lambda frame: frame, renumbered])
@pytest.mark.parametrize("name", SWAPPED)
def test_swapped_arguments_are_refused(parts, protect, name, change):
    safe = change(protect(SWAPPED[name]))
    with pytest.raises(ValueError, match="swapped"):
        unmarked(safe).promesse.check(parts)
    with pytest.raises(ValueError, match="swapped"):
        safe.promesse.check(parts)


@pytest.mark.parametrize("name", SWAPPED)
def test_protected_data_can_be_protected_again(parts, name):
    once = parts.promesse.protect(pg.Promesse(100))
    again = once.promesse.protect(SWAPPED[name])
    for options, frame in (({}, again), ({"mechanism": SWAPPED[name]}, unmarked(again))):
        assert len(once.promesse.check(frame, **options)) > 5


@pytest.mark.parametrize("swapped", [True, False])
def test_data_of_a_recorder_at_constant_speed_is_not_accused(swapped):
    """A simulated vehicle has constant distances too, but at whole seconds."""
    x, times = 4.8 + 0.001 * np.arange(60), pd.date_range("2000-01-03", periods=60, freq="20s")
    true = gpd.GeoDataFrame({"user": "a", "time": times}, geometry=points_from_xy(x, 45.7 + 0 * x, crs=4326))
    safe = noisy(true, 30)
    table = (safe if swapped else true).promesse.check(true if swapped else safe)
    assert "failed" in set(table["verdict"]) or not swapped


def test_the_same_seed_is_found_in_every_rounding(parts):
    noise = parts.promesse.protect(pg.GeoIndistinguishability(0.02, grid=50, seed=2024))
    named = pg.GeoIndistinguishability(0.02, grid=50)
    for frame in (noise, renumbered(noise), rounded(noise, 7)):
        table = parts.promesse.check(frame, mechanism=named).set_index("test")
        assert table.verdict["noise has no guessable seed"] == "failed"
    other = parts.promesse.protect(pg.GeoIndistinguishability(0.02, grid=50, seed="no one guesses this"))
    table = parts.promesse.check(other, mechanism=named).set_index("test")
    assert table.verdict["noise has no guessable seed"] == "passed"


def test_what_did_not_pass_stands_first(parts):
    verdicts = parts.promesse.check(noisy(parts, 20)).verdict.tolist()
    assert verdicts == sorted(verdicts, key=["failed", "review", "left out", "passed"].index)
    assert set(verdicts) == {"failed", "review", "left out", "passed"}


def test_a_mechanism_is_one_of_ours(parts):
    with pytest.raises(TypeError, match="'mechanism' parameter"):
        parts.promesse.check(parts, mechanism="promesse")


def test_jumps_and_zero_fixes_of_the_original_are_counted():
    city = pg.make_city(users=2, days=1, recorder="phone")
    odd = city.copy()
    odd.loc[[50, 60], "geometry"] = gpd.points_from_xy([0, 0], [0, 0])
    odd.loc[90, "geometry"] = gpd.points_from_xy([30], [45.7])[0]
    jumps, zeros = "no impossible jumps in the original", "no zero fixes in the original"
    for frame, verdict in ((city, "passed"), (odd, "review")):
        table = frame.promesse.check(noisy(frame, 20)).set_index("test")
        assert table.verdict[jumps] == table.verdict[zeros] == verdict
    assert "2 fixes at exactly (0, 0)" in table.reason[zeros]
    assert "drop_zero" in table.reason[zeros]
    assert "3 records" in table.reason[jumps]
    assert "drop_jumps" in table.reason[jumps]


def test_a_noted_mechanism_is_known_and_questioned(parts):
    safe = parts.promesse.smooth(200)
    table = parts.promesse.check(safe).set_index("test")
    assert table.reason["the mechanism is known"] == "named: Promesse (epsilon = 200 m)"
    thinned = safe[safe.index % 3 > 0].reset_index(drop=True)
    table = parts.promesse.check(thinned).set_index("test")
    assert table.verdict["the mechanism is known"] == "review"
    assert "200 m apart" in table.reason["the mechanism is known"]
