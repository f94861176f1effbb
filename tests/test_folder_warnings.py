"""A folder of Parquet warns of what one table in memory is warned of, in the same sentences with the same counts."""

import json
import pickle
import warnings
from dataclasses import asdict, dataclass, replace

import geopandas as gpd
import pandas as pd
import pytest
from parquet_folders import save

import promesse_geo as pg
from promesse_geo.bulk.results import Gathered
from promesse_geo.bulk.run import Report
from promesse_geo.messages import CountedWarning, Remark, Text, added_up
from promesse_geo.preprocess.problems import find_problems
from promesse_geo.validation import subclasses_by_name


@pytest.fixture(scope="module")
def odd():
    """A city with fixes at (0, 0), jumps, gaps, users of one record, and users who never move."""
    city = pg.make_city(users=8, days=2, seed=4, recorder="phone").iloc[::3].reset_index(drop=True)
    x, y = city.geometry.x.to_numpy().copy(), city.geometry.y.to_numpy().copy()
    x[100::900], y[100::900] = 0, 0
    y[300::170] += 3
    still = (city["user"] == city["user"].iloc[-1]).to_numpy()
    x[still], y[still] = 4.9, 45.8
    one = gpd.GeoDataFrame(
        {"user": ["one"], "time": city["time"].iloc[:1], "geometry": gpd.points_from_xy([4.8], [45.7])}, crs=4326
    )
    frame = city.assign(geometry=gpd.points_from_xy(x, y, crs=4326))
    return pd.concat([frame, one], ignore_index=True)


@dataclass(frozen=True)
class Halved(pg.Mechanism):
    """Drop every second record of users, and warn in text."""

    needs_prepared_data = True

    def _protect(self, traces: pg.Traces) -> pg.Traces:
        return traces

    def _remark(self, traces: pg.Traces, protected: pg.Traces) -> str:
        return "Be careful."


ZONES = gpd.GeoDataFrame(
    {"user": ["user-001", "user-002", "nobody"], "geometry": gpd.points_from_xy([4.8, 4.82, 4.84], [45.75] * 3)},
    crs=4326,
)
MECHANISMS = [
    pg.Promesse(200),
    pg.Promesse(150, ends=300, seed=1, max_interval="20min", min_points=3),
    pg.GeoIndistinguishability(0.01, seed=1),
    pg.PrivacyZones(600, 500, seed=1),
    pg.PrivacyZones(600, 500, seed=1, zones=ZONES),
    pg.Chain([pg.PrivacyZones(600, 500, seed=1), pg.Promesse(200)]),
    Halved(),
    None,
]
PREPARED = [None, {"days": 2, "tz": "Europe/Paris"}, {"days": 1, "min_days": 2, "keep_zero": False, "max_speed": 350.0}]


def words_of(caught):
    return [str(warning.message) for warning in caught if "overlap in time" not in str(warning.message)]


def apart(traces, mechanism, preparation):
    """What one table is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if preparation is not None:
            traces = pg.prepare(traces, **preparation, keep_user=True)
        if mechanism is not None:
            mechanism.protect(traces)
    return words_of(caught)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("preparation", PREPARED, ids=["as-is", "days", "cleaned"])
@pytest.mark.usefixtures("many_chunks")
def test_a_folder_is_warned_of_as_a_table(odd, tmp_path, mechanism, preparation):
    if mechanism is None and preparation is None:
        return
    save(odd, tmp_path / "in")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", mechanism, prepare=preparation)
    traces = pg.Traces.from_frame(odd)
    assert words_of(caught) == apart(traces, mechanism, preparation)
    found = {name: count for name, count in vars(find_problems(traces)).items() if count is not None}
    assert found.items() <= report.counts.items()
    zeros = int(((odd.geometry.x == 0) & (odd.geometry.y == 0)).sum())
    assert (found["zero_fixes"], found["jumps"] > 20, found["single_record_users"]) == (zeros, True, 1)
    if preparation and "max_speed" in preparation:
        assert report.counts["dropped_zero_fixes"] == zeros
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            located = pg.drop_zero(traces)
            left = pg.drop_jumps(located, 350)
        assert report.counts["dropped_jumps"] == located.records - left.records
    assert ("dropped_users" in report.counts) == (preparation is not None)


@pytest.mark.usefixtures("many_chunks")
def test_the_calendar_is_that_of_all_users_not_of_some(odd, tmp_path):
    """All users but one were recorded in 2000, when the common calendar begins."""
    old = odd["user"].isin(odd["user"].unique()[1:])
    frame = odd.assign(time=odd["time"].where(~old, odd["time"] - pd.Timedelta(days=8_760)))
    save(frame, tmp_path / "in")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = pg.protect_parquet(tmp_path / "in", tmp_path / "out", pg.Promesse(200))
    traces = pg.Traces.from_frame(frame)
    assert words_of(caught) == apart(traces, pg.Promesse(200), None)
    assert report.counts["jumps"] == find_problems(traces).jumps


def test_remarks_survive_json_and_pickle():
    for name, kind in subclasses_by_name(Remark).items():
        if kind.__module__.startswith("promesse_geo."):
            assert set(kind.constants) <= set(kind.__dataclass_fields__), name
    remarks = (Text("Be careful."), Text(""))
    kept = pickle.loads(pickle.dumps(CountedWarning(remarks)))
    assert (kept.remarks, str(kept)) == (remarks, "Be careful.")
    warned = [[{"kind": "Text", "values": vars(each)} for each in remarks]]
    gathered = Gathered(1, 1, 2, 2, 1, 1, 2, "ns", 9, warned=warned)
    assert Gathered.of(json.loads(json.dumps(asdict(gathered)))).remarks == [list(remarks)]


def test_texts_that_differ_are_said_to():
    (warning,) = added_up([[[Text("1 is odd.")]], [[Text("2 are odd.")]], [[Text("")]]])
    assert str(warning) == "1 is odd. There are other warnings of this kind."


def test_a_report_says_whose_traces_were_read():
    report = Report("", *[1] * 11)
    names = {(41, 0): "121 traces of 41 users", (121, 0): "121 users", (121, 121): "121 traces"}
    for (people, pseudonyms), words in names.items():
        assert f"of {words} ->" in str(replace(report, users=121, people=people, pseudonyms=pseudonyms))


@pytest.mark.usefixtures("many_chunks")
def test_parts_are_counted_as_traces_of_people(odd, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = pg.prepare(odd, tz="Europe/Paris", keep_user=True)
    for number, (frame, people) in enumerate([(parts, odd["user"].nunique()), (pg.pseudonymize(parts), None)]):
        save(frame, tmp_path / f"in{number}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = pg.protect_parquet(tmp_path / f"in{number}", tmp_path / f"out{number}", pg.Promesse(200))
        traces = frame["user"].nunique()
        assert f" of {traces} traces{f' of {people} users' if people else ''} ->" in str(report)
        assert report.users == traces
