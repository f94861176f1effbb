"""Values of divided data are those of the whole, however they are divided and whatever protected them."""

import inspect
import math
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import instance_of
from strategies import crowds, gathered

import promesse_geo as pg
from promesse_geo.evaluation import runs
from promesse_geo.metrics.attacks import residue
from promesse_geo.metrics.base import Metric, metric_classes
from promesse_geo.traces.traces import Traces

MECHANISMS = [
    pg.Promesse(100),
    pg.Promesse(30, ends=200),
    pg.GeoIndistinguishability(0.1, seed="a"),
    pg.GeoIndistinguishability(0.01, seed="a"),
    pg.PrivacyZones(300, 200, seed="a"),
    pg.Chain([pg.PrivacyZones(300, 200, seed="a"), pg.Promesse(50)]),
    pg.WaitForMe(2, 500),
]
METRICS = [
    pg.RangeQueryDistortion(seed=3) if kind is pg.RangeQueryDistortion else instance_of(kind)
    for _, kind in sorted(metric_classes().items())
    if kind.__module__.startswith("promesse_geo.") and not inspect.isabstract(kind)
]
IN_PARTS = [each for each in METRICS if each.is_per_user or type(each).measure_parts is not Metric.measure_parts]
IN_PORTIONS = [each for each in METRICS if each.is_divisible]
pytestmark = pytest.mark.filterwarnings("ignore")


@dataclass
class Divided:
    """Data whose users are dealt out to buckets."""

    original: Traces
    protected: Traces
    buckets: int

    def map(self, work, given=()):
        return [work(*(self._of(data, bucket) for data in (self.original, self.protected)), *given)
                for bucket in range(self.buckets)]  # fmt: skip

    def _of(self, data, bucket):
        hashed = pd.util.hash_array(np.array(list(map(str, data.users)), object), categorize=False)
        return data.select(np.repeat(hashed % np.uint64(self.buckets) == bucket, data.counts))


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=9, days=2, seed=1, as_traces=True, recorder="phone")


def mixed(traces):
    """Each third user is protected otherwise."""
    frames = [
        mechanism.protect(traces.select(traces.trace_numbers % 3 == number)).to_frame()
        for number, mechanism in enumerate(
            [pg.Promesse(50), pg.GeoIndistinguishability(0.1, seed="a"), pg.GeoIndistinguishability(0.01, seed="a")]
        )
    ]
    return Traces.from_frame(pd.concat(frames, ignore_index=True))


def assert_same(metric, found, whole):
    if isinstance(metric, pg.SpatialError):
        assert found == pytest.approx(whole, rel=1e-12, nan_ok=True)
    else:
        assert found == whole or (math.isnan(found) and math.isnan(whole))


@pytest.mark.parametrize("most", [1_000_000, 100])
@pytest.mark.parametrize("mechanism", [*MECHANISMS, None], ids=repr)
def test_buckets_have_the_values_of_the_whole(mechanism, most, city, monkeypatch):
    monkeypatch.setattr(residue, "_MOST", most)
    safe = mixed(city) if mechanism is None else mechanism.protect(city)
    assert len(IN_PARTS) > 5
    for metric in IN_PARTS if most > 100 else [pg.Residue()]:
        whole = metric.measure(city, safe)
        for buckets in (1, 2, 5):
            assert_same(metric, metric.measure_parts(Divided(city, safe, buckets)), whole)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_portions_have_the_values_of_the_whole(mechanism, city, monkeypatch):
    assert len(IN_PORTIONS) > 4
    with warnings.catch_warnings(action="ignore"):
        for metrics in (IN_PORTIONS, [pg.Residue()]):
            monkeypatch.setattr(runs, "_MAX_RECORDS", 20_000_000)
            whole = pg.evaluate({"city": city}, [mechanism], metrics)
            monkeypatch.setattr(runs, "_MAX_RECORDS", 100)
            divided = pg.evaluate({"city": city}, [mechanism], metrics)
            for metric, found, expected in zip(metrics, divided["value"], whole["value"], strict=True):
                assert_same(metric, found, expected)


@given(crowds(), st.sampled_from(MECHANISMS[:5]), st.sampled_from([1, 2, 5]), st.sampled_from([3, 1_000_000]))
def test_buckets_of_any_data_have_the_step_of_the_whole(crowd, mechanism, buckets, most):
    traces = gathered(crowd)
    safe = mechanism.protect(traces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(residue, "_MOST", most)
        assert residue._step_of_parts(Divided(traces, safe, buckets)) == residue._step_of(safe)
