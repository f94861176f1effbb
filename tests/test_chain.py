"""Chains of mechanisms: each acts on what the one before returned."""

import json
import warnings
from dataclasses import dataclass, replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import crowds, gathered

import promesse_geo as pg
from promesse_geo import Chain, GeoIndistinguishability, PrivacyZones, Promesse, Traces
from promesse_geo.audit import file_mechanism

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*Privacy zones removed", "ignore:.*could not be protected", "ignore:The data have"
)


@dataclass(frozen=True)
class Later(pg.Mechanism):
    """Delay everything, and warn of it."""

    hours: int

    def _protect(self, traces: Traces) -> Traces:
        return replace(traces, times=traces.times + self.hours * 3_600 * 10**9)

    def _remark(self, traces: Traces, protected: Traces) -> str:
        return f"Delayed by {self.hours} h."


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=3, days=2, recorder="phone")


@pytest.fixture(scope="module")
def parts(city):
    return city.promesse.prepare(tz="Europe/Paris", keep_user=True)


@given(crowd=crowds(), seed=st.integers(0, 9))
def test_members_act_one_after_the_other(crowd, seed):
    traces, epsilon = gathered(crowd), crowd[0].epsilon
    first, second = Promesse(epsilon, ends=epsilon, seed=seed), GeoIndistinguishability(0.01, seed=seed)
    chained, apart = Chain([first, second]).protect(traces), second.protect(first.protect(traces))
    assert chained.points.tobytes() == apart.points.tobytes()
    assert chained.times.tobytes() == apart.times.tobytes()
    assert chained.users.tolist() == apart.users.tolist()


def test_a_chain_of_one_does_what_its_member_does(parts):
    pd.testing.assert_frame_equal(
        pd.DataFrame(Chain([Promesse(200)]).protect(parts)), pd.DataFrame(Promesse(200).protect(parts))
    )


def test_zones_hold_after_noise(city):
    """Noise moves records into zones, where they are removed again."""
    traces = city.promesse.traces()
    zones, noise = PrivacyZones(500, 0, seed=1), GeoIndistinguishability(0.005, seed=2)
    placed = zones.place(traces)
    centres = placed.centres[traces.trace_numbers]

    def distances(safe):
        owners = [traces.users.get_loc(user) for user in safe.users.repeat(safe.counts)]
        return safe.space.metres(np.linalg.norm(safe.points - placed.centres[owners], axis=1))

    assert len(centres) == traces.records
    assert distances(noise.protect(zones.protect(traces))).min() < 500
    assert distances(Chain([zones, noise]).protect(traces)).min() > 500 - 1e-6


def test_warnings_of_all_members_are_one(city):
    with pytest.warns(UserWarning, match=r"Delayed by 2 h\. Delayed by 3 h\.$") as caught:
        result = Chain([Later(2), Later(3)]).protect(city)
    assert len(caught) == 1
    assert (result.time.min() - city.time.min()) == pd.Timedelta("5h")
    with pytest.warns(UserWarning, match=r"^Delayed by 2 h\.$"):
        Chain([Later(2), Later(2)]).protect(city)


def test_chains_in_chains_are_one(city):
    nested = Chain([Chain([PrivacyZones(seed=1)]), Chain([Promesse(200), GeoIndistinguishability(0.1, seed=1)])])
    flat = Chain([PrivacyZones(seed=1), Promesse(200), GeoIndistinguishability(0.1, seed=1)])
    assert nested == flat
    assert len(nested.mechanisms) == 3


def test_the_repr_evaluates_back_without_seeds():
    chain = Chain([PrivacyZones(600, 500, seed="secret"), Promesse(200, ends=600, seed="secret")])
    shown = "PrivacyZones(radius=600.0, offset=500.0, zones=None, places=1), "
    shown += "Promesse(epsilon=200.0, variant='polyline', min_points=1, ends=600.0)"
    assert repr(chain) == f"Chain([{shown}])"
    assert eval(repr(chain)) == Chain([PrivacyZones(600, 500), Promesse(200, ends=600)])
    assert hash(chain) == hash(replace(chain))


def test_the_description_makes_the_chain_again():
    chain = Chain([PrivacyZones(600, 500), Promesse(200, ends=600)])
    description = chain.description()
    assert description["mechanism"] == "Chain"
    assert json.loads(json.dumps(description)) == description
    assert Chain(**description["parameters"]) == chain


def test_files_name_the_chain(parts, tmp_path):
    chain = Chain([PrivacyZones(300, 200, seed="secret"), Promesse(200)])
    pg.write(chain.protect(parts), tmp_path / "safe.parquet")
    assert file_mechanism(tmp_path / "safe.parquet") == Chain([PrivacyZones(300, 200), Promesse(200)])
    assert b"secret" not in (tmp_path / "safe.parquet").read_bytes()


def test_each_member_has_a_seed_of_its_own(city):
    noise = GeoIndistinguishability(0.01)
    chain = Chain([noise, Promesse(200), noise])
    assert chain.is_random
    seeded = chain.with_seed(5)
    assert [getattr(member, "seed", None) for member in seeded.mechanisms] == ["5/0", None, "5/2"]
    assert not seeded.is_random
    assert seeded.with_seed(6) == seeded
    assert not Chain([Promesse(200)]).is_random
    kept = Chain([GeoIndistinguishability(0.01, seed=1), noise]).with_seed(2)
    assert [member.seed for member in kept.mechanisms] == [1, "2/1"]
    moved = Chain([noise, noise]).with_seed(1).protect(city)
    once = noise.with_seed("1/0").protect(city)
    pairs = [moved.to_crs(2154).distance(city.to_crs(2154)), once.to_crs(2154).distance(city.to_crs(2154))]
    assert pairs[0].mean() < 1.7 * pairs[1].mean()  # independent: √2 times as far, not twice


def test_users_are_protected_one_by_one_only_if_all_members_do_so():
    noise, groups = GeoIndistinguishability(0.01), pg.WaitForMe(k=2)
    assert Chain([noise, Promesse(200)]).is_per_user
    assert not Chain([groups]).is_per_user
    assert not Chain([noise, groups]).is_per_user
    assert not Chain([groups, Promesse(200)]).is_per_user


def test_evaluate_takes_chains(parts):
    chains = [Chain([PrivacyZones(300, 200), Promesse(200)]), Chain([Promesse(200)])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = pg.evaluate({"city": parts}, chains, [pg.Compression(), pg.EndRetrieval(least=1)], seeds=2)
    assert table.mechanism.unique().tolist() == [repr(chain) for chain in chains]
    assert table.seed.isna().tolist() == [False] * 4 + [True] * 2
    assert table.mechanism_name.unique().tolist() == ["Chain"]


def test_the_check_knows_the_last_member(parts):
    chain = Chain([PrivacyZones(300, 200, seed=1), Promesse(200)])
    table = parts.promesse.check(chain.protect(parts)).set_index("test")
    assert table.verdict["the mechanism is known"] == "passed"
    assert table.verdict["first points are hidden"] == "passed"
    assert table.verdict["last points are hidden"] == "passed"
    assert "failed" not in table.verdict.tolist()


DESCRIBED = [{"a": 1}, {"mechanism": "X", "parameters": {}}, {"mechanism": "Promesse"}]
DESCRIBED += [{"mechanism": "Promesse", "parameters": values} for values in (3, {"size": 1})]


@pytest.mark.parametrize(
    "members", [None, "Promesse", Promesse(200), [Promesse(200), "x"], [], {"a": 1}, *([each] for each in DESCRIBED)]
)
def test_what_is_no_list_of_mechanisms_is_refused(members):
    with pytest.raises((TypeError, ValueError), match="'mechanisms' parameter of Chain"):
        Chain(members)


@pytest.mark.parametrize("seed", range(4))
def test_the_check_knows_that_paths_turn_back(seed):
    """A way out of 1 km and back past the start: with cut ends the first point may be next to the true start."""
    x = np.array([0.0, 1_000.0, 3.0, -3_000.0])
    times = np.array([0, 100, 200, 500]) * 10**9
    original = Traces.from_arrays(x, np.zeros(4), times=times, users=["a"], counts=np.array([4]), crs="EPSG:32610")
    promesse, elsewhere = Promesse(200, ends=2_000, seed=seed), gpd.GeoSeries.from_xy([9e5], [9e5], crs="EPSG:32610")
    zones = PrivacyZones(100, 0, zones=elsewhere.to_frame("geometry"))
    for mechanism in (promesse, Chain([zones, promesse])):
        verdicts = pg.check_published(original, mechanism.protect(original)).set_index("test").verdict
        assert verdicts["first points are hidden"] == "passed"
    nothing_cut = (
        pg.check_published(
            original, original.select(np.array([False, False, True, True])), epsilon=200, mechanism=Promesse(200)
        )
        .set_index("test")
        .verdict
    )
    assert nothing_cut["first points are hidden"] == "failed"
