"""The real Cabspotting data, read and prepared once by the code of the documentation, gives known figures."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from readme import ROOT

import promesse_geo as pg
from promesse_geo.paper import Reproduction, most2014, table_1

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def data(cabspotting_archive, tmp_path_factory):
    """Return the cabs and their prepared parts, by the names that they have in the documentation."""
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    code = re.search(r"```{code-block} python\n(.*?)```", text, re.DOTALL)[1]
    folder = tmp_path_factory.mktemp("real")
    (folder / "cabspottingdata.tar.gz").symlink_to(cabspotting_archive)
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with pytest.warns(UserWarning, match="74 users"):
            exec(compile(code, "reproduction.md", "exec"), names)
    return names


@pytest.fixture(scope="module")
def cabs(data):
    return data["cabs"]


@pytest.fixture(scope="module")
def parts(data):
    return data["parts"]


def test_all_records_are_read_and_prepared(cabs, parts):
    assert (cabs.records, len(cabs)) == (11_219_955, 536)
    assert cabs.counts.min() == 59
    described = pg.describe(parts)
    assert described["records"] == 8_985_370
    assert described["traces"] == 5_525
    assert round(described["mean_duration"] / pd.Timedelta("1h"), 2) == 32.62
    assert round(described["longest_duration"] / pd.Timedelta("1h"), 2) == 476.97
    assert round(described["sampling_interval"] / pd.Timedelta("1s"), 1) == 72.2


def test_table_1_is_that_of_the_results(parts):
    stored = Reproduction.load(ROOT / "data" / "results" / "cabspotting").tables["Table I"]
    computed = table_1({"Cabspotting": parts})
    pd.testing.assert_frame_equal(computed.drop(columns="unit"), stored.drop(columns="unit"))


def test_a_few_cabs_are_those_of_the_whole(cabspotting_archive):
    one = pg.read_cabspotting(cabspotting_archive, users=["abboip"])
    assert one["user"].unique().tolist() == ["abboip"]
    assert one["time"].is_monotonic_increasing
    assert one["time"].iloc[-1] == pd.Timestamp(1213084687, unit="s", tz="UTC")
    assert (one.geometry.x.iloc[-1], one.geometry.y.iloc[-1]) == (-122.39488, 37.75134)


def test_the_number_of_places_is_that_of_most2014(cabs):
    assert most2014.table_3({"Cabspotting": cabs}).ours.tolist() == [1_110]


@pytest.fixture(scope="module")
def smoothed(parts):
    with pytest.warns(UserWarning, match=r"^41 of 5,525 traces could not be protected"):
        return pg.Promesse(200).protect(parts)


def test_smoothing_drops_what_is_too_short(parts, smoothed):
    assert smoothed.records == 17_627_393
    assert len(smoothed) == 5_525 - 41
    assert round(100 * smoothed.records / parts.records) == 196


SMOOTH, NOISY = pg.Promesse(200), pg.GeoIndistinguishability.from_level(4, radius=200)


def test_metrics_are_what_an_independent_calculation_gave(parts, monkeypatch):
    stays = []
    search = pg.PoiRetrieval._index
    monkeypatch.setattr(pg.PoiRetrieval, "_index", lambda self, traces: stays.append(search(self, traces)) or stays[-1])
    metrics = [pg.PoiRetrieval(), pg.RangeQueryDistortion(), pg.Compression()]
    with pytest.warns(UserWarning, match="dropped"):
        table = pg.evaluate({"Cabspotting": parts}, [SMOOTH, NOISY], metrics)
    [found] = stays
    assert len(found) == 37_787
    assert len(set(found.traces.tolist())) == 5_167
    values = {mechanism: own.value.tolist() for mechanism, own in table.groupby("mechanism")}
    score, distortion, compression = values[repr(SMOOTH)]
    assert score == 0
    assert distortion == pytest.approx(6.6, abs=2.7)
    assert compression == pytest.approx(196, abs=1)
    assert values[repr(NOISY)] == [pytest.approx(3.4, abs=0.6), pytest.approx(3.9, abs=1.5), 100.0]


def test_the_spatial_error_of_a_sample_is_what_an_independent_calculation_gave(parts, smoothed):
    noisy = replace(NOISY, seed=0).protect(parts)
    samples = [traces.select(np.arange(traces.records) % step == 0) for traces, step in ((smoothed, 20), (noisy, 4))]
    metric = pg.SpatialError()
    index = metric.index(parts)
    error, error_of_noise = (metric.value(metric.detail(parts, sample, index=index)) for sample in samples)
    assert error < 1e-6
    assert error_of_noise == pytest.approx(62.6, abs=0.1)
