"""Original and protected data in the wrong order, as their notes tell."""

import warnings

import pandas as pd
import pytest

import promesse_geo as pg

RUNS = {
    "measure": lambda before, after, folder: pg.measure(before, after, [pg.SpatialError(), pg.EndRetrieval()]),
    "accessor": lambda before, after, folder: before.promesse.measure(after, [pg.Compression()]),
    "metric": lambda before, after, folder: pg.PoiRetrieval().measure(before, after),
    "owners": lambda before, after, folder: pg.EndRetrieval().detail(before, after),
    "project": lambda before, after, folder: pg.SpatialError().project(before, after),
    "map": lambda before, after, folder: before.promesse.map(after),
    "map_pair": lambda before, after, folder: before.promesse.map_pair(after),
    "report": lambda before, after, folder: pg.report(before, after, folder / "report.html", seed=1, force=True),
}


@pytest.fixture(scope="module")
def parts():
    return pg.make_city(users=3, days=3).promesse.prepare(tz="Europe/Paris", keep_user=True, seed=1)


@pytest.fixture(scope="module")
def safe(parts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of dropped parts
        return parts.promesse.smooth(200)


def warned_of(work):
    """What work warns of: texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(each.message) for each in caught if issubclass(each.category, UserWarning)]


@pytest.mark.parametrize("name", RUNS)
def test_an_original_that_is_protected_is_warned_of_once(parts, safe, tmp_path, name):
    known = parts[parts["user"].isin(safe["user"].unique())]
    said = warned_of(lambda: RUNS[name](safe, known, tmp_path))
    said = [text for text in said if "exchanged" in text]
    assert len(said) == 1
    assert "Promesse" in said[0]
    assert "pass the original first" in said[0]
    assert not any("exchanged" in text for text in warned_of(lambda: RUNS[name](known, safe, tmp_path)))


@pytest.mark.parametrize("name", ["measure", "metric", "project", "map", "map_pair"])
def test_the_error_on_unknown_users_says_that_the_original_is_protected(parts, safe, tmp_path, name):
    fewer = safe[safe["user"] != safe["user"].iloc[0]]
    with pytest.raises(ValueError, match=r"lacks 1.*already protected \(Promesse\).*exchanged"):
        RUNS[name](fewer, without_note(safe), tmp_path)


def without_note(frame):
    """The same frame without what it notes of its mechanism."""
    bare = frame.copy()
    bare.attrs = {}
    return bare


def test_data_that_were_made_from_a_protected_original_are_not_warned_of(safe):
    twice = safe.promesse.geo_indistinguishability(0.01, grid=1, seed=1)
    assert not warned_of(lambda: pg.SpatialError().measure(safe, twice))
    assert not warned_of(lambda: pg.SpatialError().measure(safe, safe))


def test_zones_of_the_original_are_not_warned_of(parts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zoned = parts.promesse.zones(600, 500, seed=1)
        safe = zoned.promesse.smooth(200)
    assert not warned_of(lambda: pg.SpatialError().measure(zoned, safe))
    bare = without_note(safe)
    assert not any("exchanged" in text for text in warned_of(lambda: pg.SpatialError().measure(zoned, bare)))


def test_check_warns_of_another_protected_original(parts, safe):
    other = parts.promesse.geo_indistinguishability(0.01, grid=1, seed=1)
    other = other[other["user"].isin(safe["user"].unique())]
    assert any("exchanged" in text for text in warned_of(lambda: pg.check_published(safe, other)))


def test_folders_that_are_exchanged_are_warned_of(parts, safe, tmp_path):
    known = parts[parts["user"].isin(safe["user"].unique())]
    for name, frame in (("parts", known), ("safe", safe)):
        (tmp_path / name).mkdir()
        pg.write(frame, tmp_path / name / "0.parquet")
    metrics = [pg.Compression()]
    with pytest.warns(UserWarning, match="exchanged"):
        table = pg.measure_parquet(tmp_path / "safe", tmp_path / "parts", metrics)
    assert isinstance(table, pd.DataFrame)
    assert not warned_of(lambda: pg.measure_parquet(tmp_path / "parts", tmp_path / "safe", metrics))
