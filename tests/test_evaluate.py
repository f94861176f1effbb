"""Measure and evaluate: runs, shared queries, seeds, errors, and results as files."""

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import promesse_geo as pg
from promesse_geo import (
    Compression,
    GeoIndistinguishability,
    PoiRetrieval,
    Promesse,
    RangeQueryDistortion,
    SpatialError,
)
from promesse_geo.evaluation import PAPER
from promesse_geo.evaluation.results import fingerprint, short_name
from promesse_geo.plot.tables import measures

COLUMNS = ["dataset", "mechanism", "metric", "unit", "seed", "value", "seconds"]
COLUMNS += ["mechanism_name", "parameters", "metric_name", "label"]
RUNS = Counter()


@dataclass(frozen=True)
class Counting(Promesse):
    """Promesse that counts how often it runs."""

    def _protect(self, traces):
        RUNS[self.epsilon] += 1
        return super()._protect(traces)


@dataclass(frozen=True)
class Drawn(pg.Metric):
    """A random metric that remembers what it was asked."""

    seed: int | None = field(default=None, repr=False)
    unit = "1"

    def _index(self, original):
        RUNS["index", self.seed] += 1
        return self.seed

    def _detail(self, pairs, index):
        return pd.Series([index])

    def value(self, detail):
        return float(detail.iloc[0])


@dataclass(frozen=True)
class Halved(Compression):
    """A metric that lets half of the traces be protected, and compares with the same half."""

    def split(self, original):
        half = original.select(original.trace_numbers < len(original) // 2)
        return half, half


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=4, days=1, seed=3, recorder="phone")


@pytest.fixture(autouse=True)
def _counts_from_zero():
    RUNS.clear()


def test_a_measure_is_a_short_table_with_units(city):
    safe = city.promesse.smooth(200)
    table = city.promesse.measure(safe)
    assert list(table.columns) == ["metric", "value", "unit"]
    assert table.metric.tolist() == [repr(metric) for metric in PAPER]
    assert table.unit.tolist() == ["%", "m", "%", "%"]
    assert table.value[3] == city.promesse.compression(safe)
    assert table.equals(pg.measure(city, safe).assign(value=table.value))  # the queries differ, the rest does not
    assert pg.measure(pg.Traces.from_frame(city), safe, [SpatialError()]).value[0] == table.value[1]


def test_a_measure_takes_the_names_of_columns(city):
    other = city.rename(columns={"user": "cab", "time": "stamp"}).promesse(user="cab", time="stamp")
    assert other.measure(other.smooth(200), [Compression()]).value[0] > 0


def test_a_mechanism_runs_once_a_data_set_and_a_figure_is_a_row(city):
    table = pg.evaluate({"one": city, "two": city.iloc[:200]}, [Counting(100), Counting(200)], seeds=3)
    assert RUNS == {100.0: 2, 200.0: 2}
    assert list(table.columns) == COLUMNS
    assert table.seed.dtype == "Int64"
    assert len(table) == 2 * 2 * (3 + 3)  # three fixed metrics, and range queries for each seed
    assert table.groupby("metric").seed.apply(lambda seeds: seeds.isna().all()).sum() == 3
    assert (table.seconds > 0).all()
    assert table.groupby(["dataset", "mechanism"]).seconds.nunique().eq(1).all()
    direct = SpatialError().measure(city, city.promesse.smooth(200))
    row = table.query("dataset == 'one' and metric == 'SpatialError()' and mechanism.str.contains('200')")
    assert row.value.tolist() == pytest.approx([direct], abs=1e-6)  # the frame went through degrees


def test_a_seed_seeds_all_that_is_random_and_has_none_of_its_own(city):
    mechanisms = [GeoIndistinguishability(0.01), GeoIndistinguishability(0.02, seed="mine"), Promesse(200)]
    table = pg.evaluate({"city": city}, mechanisms, [SpatialError(), RangeQueryDistortion(30)], seeds=[5, 9])
    by_mechanism = [table[table.mechanism == repr(mechanism)] for mechanism in mechanisms]
    assert [len(rows) for rows in by_mechanism] == [4, 3, 3]
    queries = RangeQueryDistortion(30, seed=9)
    safe = GeoIndistinguishability(0.01, seed=9).protect(city)
    got = by_mechanism[0].query("seed == 9").value.tolist()
    wanted = [metric.measure(city, safe) for metric in (SpatialError(), queries)]
    assert got == pytest.approx(wanted, abs=1e-6)  # the frame went through degrees
    kept = GeoIndistinguishability(0.02, seed="mine").protect(city)
    fixed = by_mechanism[1].query("metric == 'SpatialError()'")
    assert fixed.seed.isna().all()
    assert fixed.value.tolist() == pytest.approx([SpatialError().measure(city, kept)], abs=1e-6)


def test_an_index_is_made_once_and_all_mechanisms_meet_the_same_draw(city):
    mechanisms = [Promesse(100), Promesse(200), GeoIndistinguishability(0.01)]
    table = pg.evaluate({"city": city}, mechanisms, [Drawn()], seeds=3)
    assert {("index", seed): 1 for seed in range(3)} == RUNS
    assert (table.value == table.seed).all()
    assert len(table) == 9


def test_a_metric_that_splits_meets_its_own_protected_data(city):
    table = pg.evaluate({"city": city}, [Counting(200)], [Compression(), Halved()])
    assert RUNS == {200.0: 2}
    traces = pg.Traces.from_frame(city)
    half = traces.select(traces.trace_numbers < 2)
    wanted = [Compression().measure(data, Promesse(200).protect(data)) for data in (traces, half)]
    assert table.value.tolist() == wanted
    with pytest.raises(ValueError, match=r"Halved splits .* Use pg\.evaluate"):
        pg.measure(city, city, [Halved()])


def test_processes_change_no_figure_and_no_error(city):
    mechanisms = [Promesse(100), Promesse(200), GeoIndistinguishability(0.01)]
    alone, shared = (
        pg.evaluate({"city": city}, mechanisms, seeds=2, n_jobs=jobs).drop(columns="seconds") for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(alone, shared)
    assert_an_error_says_which_run_it_ended(city, n_jobs=2)  # in the same processes, which take long to start


def test_what_a_mechanism_leaves_out_is_told_once_with_its_name(city):
    still = gpd.GeoDataFrame(
        {"user": ["x"] * 3, "time": pd.date_range("2024-01-01", periods=3, tz="UTC")},
        geometry=gpd.points_from_xy([2.3] * 3, [48.8] * 3),
        crs=4326,
    )
    both = pd.concat((city, still))
    with pytest.warns(UserWarning, match=r"home, Promesse\(epsilon=200.0, .*1 of 5") as told:
        pg.evaluate({"home": both}, [Promesse(200)], seeds=3)
    assert len(told) == 1


def test_results_say_how_they_came_about_and_no_positions(city):
    table = pg.evaluate({"city": city}, [GeoIndistinguishability(0.01, seed="secret")], [Compression()], seeds=[4])
    about = table.attrs
    traces = pg.Traces.from_frame(city)
    assert about["datasets"] == {"city": {"records": len(city), "traces": 4, "fingerprint": fingerprint(traces)}}
    assert about["seeds"] == [4]
    assert about["versions"]["promesse-geo"] == pg.__version__
    assert about["metrics"] == ["Compression()"]
    assert "secret" not in json.dumps(about)
    assert not any(str(user) in json.dumps(about) for user in traces.users)


def test_a_fingerprint_changes_with_anything_and_not_with_the_order_of_rows(city):
    whole = fingerprint(pg.Traces.from_frame(city))
    assert fingerprint(pg.Traces.from_frame(city.sample(frac=1, random_state=0))) == whole
    moved = city.set_geometry(city.geometry.translate(1e-9))
    later = city.assign(time=city.time + pd.Timedelta(1, unit="us"))
    renamed = city.assign(user=city.user.str.upper() + "x")
    others = {fingerprint(pg.Traces.from_frame(frame)) for frame in (moved, later, renamed, city.iloc[1:])}
    assert len(others | {whole}) == 5


FILES = pytest.mark.parametrize("name", ["results.csv", "results.parquet", "RESULTS.CSV"])


@FILES
def test_results_are_read_from_a_file_to_the_last_digit(city, tmp_path, name):
    table = pg.evaluate({'a "city", # NA': city, "NA": city}, [Promesse(200), GeoIndistinguishability(0.01)], seeds=2)
    pg.save_results(table, tmp_path / name)
    again = pg.load_results(tmp_path / name)
    pd.testing.assert_frame_equal(again, table, check_exact=True)
    assert again.attrs == (table.attrs if name.endswith("parquet") else {})
    with pytest.raises(FileExistsError):
        pg.save_results(table, tmp_path / name)
    pg.save_results(table, str(tmp_path / name), force=True)


@FILES
def test_a_measure_can_be_saved_and_a_value_may_be_missing(city, tmp_path, name):
    table = city.promesse.measure(city.iloc[:0])
    assert np.isnan(table.value[1])
    pg.save_results(table, tmp_path / name)
    pd.testing.assert_frame_equal(pg.load_results(tmp_path / name), table)


@FILES
def test_any_name_of_a_data_set_can_be_stored(city, tmp_path, name):
    names = ["a\rb", "a\nb", "a\r\nb", '"', "a,b", "", "# {}", "\t", "\u2028", "1"]
    table = pg.evaluate(dict.fromkeys(names, city), [Promesse(200)], [Compression()])
    pg.save_results(table, tmp_path / name)
    pd.testing.assert_frame_equal(pg.load_results(tmp_path / name), table, check_exact=True)


@FILES
@pytest.mark.parametrize("seeds", [[2**53, 2**53 + 1], [2**63 - 1]])
def test_large_seeds_are_stored_to_the_digit(city, tmp_path, seeds, name):
    mechanisms = [Promesse(200), GeoIndistinguishability(0.01)]
    table = pg.evaluate({"c": city}, mechanisms, [Compression()], seeds=seeds)
    assert table.seed.dropna().tolist() == seeds
    pg.save_results(table, tmp_path / name)
    assert pg.load_results(tmp_path / name).seed.dropna().tolist() == seeds


def test_a_csv_of_earlier_versions_keeps_its_table_and_its_provenance(tmp_path):
    rows = [
        "dataset,mechanism,metric,unit,seed,value,seconds",
        '"a","Promesse(epsilon=100.0)","SpatialError()","m","",0.1,2.5',
        '"a","Odd(<3 zones>)","PoiRetrieval(diameter=200.0)","%",7,,2.5',
    ]
    about = {"seeds": [7], "rows of this file": 2}
    (tmp_path / "old.csv").write_text("# " + json.dumps(about) + "\n" + "\n".join(rows) + "\n")
    table = pg.load_results(tmp_path / "old.csv")
    assert table.mechanism.tolist() == ["Promesse(epsilon=100.0)", "Odd(<3 zones>)"]
    assert table.value.tolist() == [0.1, pytest.approx(np.nan, nan_ok=True)]
    assert table.attrs == {"seeds": [7]}


@pytest.mark.parametrize("name", ["other.csv", "other.parquet"])
def test_a_file_of_something_else_is_refused(tmp_path, name):
    (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="holds no results"):
        pg.load_results(tmp_path / name)
    with pytest.raises(ValueError, match=r"\.parquet or \.csv\. Got '.*x\.txt'"):
        pg.load_results(tmp_path / "x.txt")
    with pytest.raises(FileNotFoundError):
        pg.load_results(tmp_path / f"none{name}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# {}\nuser,lon,lat\na,1,2\n",
        "# [1]\nmetric,value,unit\n",
        "metric,value,unit,seed\nA(),1.0,%,1.5\n",
        "metric,value,unit,seed\nA(),1.0,%,inf\n",
        "metric,value,unit\n1,2,3,4\n",
        "metric,value,unit\nA(),1.0\n",
        "# " + 100_000 * "[" + "\nmetric,value,unit\nA(),1.0,%\n",
    ],
)
def test_other_tables_are_no_results(tmp_path, text, city):
    (tmp_path / "other.csv").write_text(text)
    city.to_parquet(tmp_path / "city.parquet")
    for name in ("other.csv", "city.parquet"):
        with pytest.raises(ValueError, match="holds no results"):
            pg.load_results(tmp_path / name)


def test_results_that_were_cut_within_a_row_are_refused(city, tmp_path):
    path = tmp_path / "results.csv"
    pg.save_results(pg.evaluate({"a,\nb": city}, [Promesse(200)], [Compression(), SpatialError()]), path)
    content = path.read_bytes()
    ends = [n for n in range(len(content)) if content[n - 1 : n] == b"\n" and content[:n].count(b'"') % 2 == 0]
    assert len(ends) == 2
    for size in set(range(len(content))) - set(ends):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match="holds no results"):
            pg.load_results(path)


def without_geometry(city):
    return pd.DataFrame(city.drop(columns="geometry")).assign(lon=city.geometry.x, lat=city.geometry.y)


@FILES
def test_added_columns_keep_their_types(city, tmp_path, name):
    table = pg.evaluate({"c": city}, [Promesse(100), Promesse(200)], [Compression()])
    table = table.assign(
        whole=[1, 2**53 + 1],
        large=np.array([1, 2**64 - 1], np.uint64),
        number=[0.1, np.nan],
        maybe=pd.array([7, None], "Int64"),
        text=["1", "2"],
        odd=["", "True"],
    )
    pg.save_results(table, tmp_path / name)
    pd.testing.assert_frame_equal(pg.load_results(tmp_path / name), table, check_exact=True)


@pytest.mark.parametrize("values", [[True, False], pd.to_datetime(["2020-01-01"] * 2), [1j, 2], ["a", 1]], ids=range(4))
def test_a_column_that_csv_does_not_keep_is_refused(city, tmp_path, values):
    table = pg.evaluate({"c": city}, [Promesse(100), Promesse(200)], [Compression()])
    with pytest.raises(ValueError, match="'added'"):
        pg.save_results(table.assign(added=values), tmp_path / "results.csv")
    assert list(tmp_path.iterdir()) == []


def test_seeds_as_floats_are_stored_if_they_are_whole(city, tmp_path):
    table = pg.evaluate({"c": city}, [Promesse(100), GeoIndistinguishability(0.01)], [Compression()])
    pg.save_results(table.astype({"seed": "float64"}), tmp_path / "results.csv")
    pd.testing.assert_frame_equal(pg.load_results(tmp_path / "results.csv"), table)
    with pytest.raises(ValueError, match=r"'seed' .* whole"):
        pg.save_results(table.assign(seed=0.5), tmp_path / "half.csv")


@FILES
def test_a_text_that_is_too_long_for_csv_is_refused_there(city, tmp_path, name):
    table = pg.measure(city, city, [Compression()]).assign(metric="x" * 131_073)
    if name.lower().endswith("csv"):
        with pytest.raises(ValueError, match="131,072 characters"):
            pg.save_results(table, tmp_path / name)
        table = table.assign(metric="x" * 131_072)
    pg.save_results(table, tmp_path / name)
    pd.testing.assert_frame_equal(pg.load_results(tmp_path / name), table)


@FILES
def test_what_holds_no_results_is_not_saved(city, tmp_path, name):
    table = pg.measure(city, city, [Compression()])
    placed = gpd.GeoDataFrame(table, geometry=city.geometry.iloc[:1])
    for other in (city, without_geometry(city), table.drop(columns="unit"), placed, "table"):
        with pytest.raises(TypeError, match="'metric', 'unit' and 'value'"):
            pg.save_results(other, tmp_path / name)
    with pytest.raises(ValueError, match="several columns named 'unit'"):
        pg.save_results(pd.concat((table, table[["unit"]]), axis=1), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("column", [["a", 1], ["a\ud800", "b"], [10**30, 1], [object(), object()]], ids=range(4))
def test_a_column_that_parquet_cannot_store_is_refused(city, tmp_path, column):
    table = pg.measure(city, city, [Compression(), SpatialError()])
    with pytest.raises(ValueError, match="cannot be stored"):
        pg.save_results(table.assign(note=pd.Series(column, dtype=object)), tmp_path / "results.parquet")
    assert list(tmp_path.iterdir()) == []


def test_provenance_that_json_cannot_hold_is_refused(city, tmp_path):
    endless = []
    endless.append(endless)
    for value in (np.int64(3), pd.Timestamp(0), endless, {(1, 2): 3}):
        table = pg.measure(city, city, [Compression()])
        table.attrs["mine"] = value
        with pytest.raises(ValueError, match="attrs"):
            pg.save_results(table, tmp_path / "results.parquet")
    assert list(tmp_path.iterdir()) == []


@FILES
@pytest.mark.parametrize(
    ("column", "values"),
    [("value", ["x", "y"]), ("value", [True, False]), ("seed", ["1", "2"]), ("seconds", ["1", "2"])],
)
def test_text_where_results_hold_numbers_is_refused(city, tmp_path, name, column, values):
    table = pg.evaluate({"c": city}, [Promesse(100), Promesse(200)], [Compression()])
    with pytest.raises(ValueError, match=f"'{column}' of the table must hold numbers"):
        pg.save_results(table.assign(**{column: values}), tmp_path / name)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"datasets": []}, TypeError, "'datasets' parameter of evaluate must be a mapping"),
        ({"datasets": {}}, ValueError, "'datasets' parameter of evaluate must be a mapping"),
        ({"datasets": {1: None}}, TypeError, "'datasets' parameter of evaluate must be text"),
        ({"mechanisms": Promesse(200)}, TypeError, "'mechanisms' parameter of evaluate must be a list such as"),
        ({"mechanisms": [200]}, TypeError, "'mechanisms' parameter of evaluate must be a list such as"),
        ({"mechanisms": []}, ValueError, "'mechanisms' parameter of evaluate"),
        ({"mechanisms": [Promesse(200), Promesse(200.0)]}, ValueError, "must differ. Got Promesse"),
        ({"metrics": ["F"]}, TypeError, r"'metrics' parameter of evaluate must be a list such as \[pg.PoiRetrieval"),
        ({"seeds": 0}, ValueError, "'seeds' parameter of evaluate"),
        ({"seeds": "3"}, TypeError, "'seeds' parameter of evaluate"),
        ({"seeds": [1, 1]}, ValueError, "'seeds' parameter of evaluate must be one or more different"),
        ({"seeds": [1.5]}, TypeError, "'seeds' parameter of evaluate"),
        ({"seeds": [2**70]}, ValueError, "whole numbers up to 9223372036854775807"),
        ({"seeds": 10**14}, ValueError, "'seeds' parameter of evaluate must be a whole number of at most 100,000"),
        ({"seeds": range(10**14)}, ValueError, "'seeds' parameter of evaluate .* at most 100,000 of them"),
        ({"datasets": {"\ud800": None}}, ValueError, "'datasets' of evaluate must be valid Unicode"),
        ({"n_jobs": 0}, ValueError, "'n_jobs' parameter of evaluate"),
        ({"n_jobs": 10**20}, ValueError, "'n_jobs' parameter of evaluate must be a number of processes up to 10,000"),
        ({"n_jobs": -(10**20)}, ValueError, "'n_jobs' parameter of evaluate"),
        ({"n_jobs": "all"}, ValueError, "'n_jobs' parameter of evaluate"),
    ],
)
def test_wrong_parameters_are_refused(city, parameters, error, words):
    whole = {"datasets": {"city": city}, "mechanisms": [Promesse(200)], "metrics": [PoiRetrieval()]} | parameters
    with pytest.raises(error, match=words):
        pg.evaluate(whole.pop("datasets"), whole.pop("mechanisms"), **whole)


class Failing(Promesse):
    """A mechanism that fails."""

    def _protect(self, traces):
        raise ValueError("x")


class Mutating(Promesse):
    """A mechanism that works on what others get as well."""

    def _protect(self, traces):
        traces.points[:] = traces.points[0]
        return traces


class Valued(Compression):
    """A metric that gives no number."""

    def value(self, detail):
        return None


class Unsplit(Compression):
    """A metric that does not split into two."""

    def split(self, original):
        return original


@dataclass(frozen=True)
class Unitless(pg.Metric):
    """A metric without a unit."""

    def _detail(self, pairs, index):
        return pd.Series([1.0])

    def value(self, detail):
        return 1.0


@dataclass(frozen=True, slots=True)
class Slotted(pg.Mechanism):
    """A random mechanism without a __dict__ of its own."""

    seed: int | None = None

    def _protect(self, traces):
        return traces.select(np.arange(traces.records) % (2 + self.seed) == 0)


def assert_an_error_says_which_run_it_ended(city, *, n_jobs):
    with pytest.raises(ValueError, match=r"^x") as error:
        pg.evaluate({"fine city": city}, [Promesse(200), Failing(100)], [Compression()], n_jobs=n_jobs)
    assert "dataset 'fine city', mechanism Failing(epsilon=100" in error.value.__notes__[0]


def test_an_error_says_which_run_it_ended(city):
    assert_an_error_says_which_run_it_ended(city, n_jobs=1)


def test_an_error_says_with_which_data_metric_and_seed_it_came(city):
    with pytest.raises(TypeError, match=r"Valued.value must return a number. Got None instead") as error:
        pg.evaluate({"c": city}, [GeoIndistinguishability(0.01)], [Valued()], seeds=[7])
    assert error.value.__notes__[0].endswith("metric Valued(), seed 7.")
    with pytest.raises(TypeError, match=r"Valued.value must return a number"):
        pg.measure(city, city, [Valued()])
    with pytest.raises(
        TypeError, match=r"Unsplit.split must return a pair of Traces. Got a value of type Traces"
    ) as error:
        pg.evaluate({"c": city}, [Promesse(200)], [Unsplit()])
    assert error.value.__notes__[0].endswith("dataset 'c', metric Unsplit().")
    with pytest.raises(ValueError, match=r"no CRS") as error:
        pg.evaluate({"c": city, "d": city.set_crs(None, allow_override=True)}, [Promesse(200)])
    assert error.value.__notes__[0].endswith("dataset 'd'.")


def test_a_metric_without_a_unit_is_refused(city):
    for look in (
        lambda: pg.measure(city, city, [Unitless()]),
        lambda: pg.evaluate({"c": city}, [Promesse(200)], [Unitless()]),
    ):
        with pytest.raises(TypeError, match="Unitless has no unit"):
            look()


@pytest.mark.parametrize("metric", [Compression(), pg.Reidentification()])
def test_a_mechanism_that_changes_the_original_is_named(city, metric):
    with pytest.raises(ValueError, match="read-only"):
        pg.evaluate({"c": city}, [Mutating(100)], [metric])


@dataclass(frozen=True)
class Reversing(pg.Mechanism):
    """Turn the middle of each trace around, in place."""

    def _protect(self, traces: pg.Traces) -> pg.Traces:
        for begin, end in pairwise(traces.offsets):
            traces.points[begin + 1 : end - 1] = traces.points[begin + 1 : end - 1][::-1].copy()
        return traces


def test_a_mechanism_that_changes_the_order_of_the_original_is_named(city):
    with pytest.raises(ValueError, match="read-only"):
        pg.evaluate({"c": city}, [Reversing()], [Compression()])


def test_a_mechanism_may_have_slots(city):
    table = pg.evaluate({"c": city}, [Slotted()], [Compression()], seeds=2)
    assert table.seed.tolist() == [0, 1]
    assert table.value.tolist() == pytest.approx([50, 100 / 3], rel=0.05)


def test_one_record_leaves_the_figures_of_other_metrics(city):
    with pytest.warns(UserWarning, match=r"no user is identified"):
        table = pg.evaluate(
            {"c": city.iloc[:1]}, [GeoIndistinguishability(0.01)], [Compression(), pg.Reidentification()]
        )
    assert table.value.iloc[0] == 100
    assert np.isnan(table.value.iloc[1])


def test_an_undefined_value_has_its_reason_in_words(city):
    metrics = [pg.PoiRetrieval(), Compression(), SpatialError(), RangeQueryDistortion(5, seed=0)]
    moving = city.groupby("user", observed=True).head(1)  # nobody stays with one record
    table = pg.measure(moving, moving, metrics)
    assert table.reason.tolist() == [pg.PoiRetrieval.undefined, "", "", ""]
    lines = measures(table, metrics).splitlines()
    assert "POI" in lines[0].split(": ")[-1]
    assert not any("nan" in line for line in lines)
    nothing = pg.measure(city, city.iloc[:0], metrics)
    assert nothing.reason.tolist() == ["", "", "the protected data has no records", ""]
    assert "original data has no records" in pg.measure(city.iloc[:0], city.iloc[:0], metrics).reason[1]
    assert "reason" not in pg.measure(city, city, metrics)


def test_a_metric_of_another_author_has_a_reason_too(city):
    @dataclass(frozen=True)
    class Never(pg.Metric):
        unit = "m"

        def _detail(self, pairs, index):
            return pd.Series(dtype=float)

        def value(self, detail):
            return float("nan")

    assert pg.measure(city, city, [Never()]).reason.tolist() == ["nothing to compare"]


@pytest.mark.filterwarnings("ignore:.*too short for epsilon")
def test_guessing_stands_beside_values_where_a_metric_states_it(tmp_path):
    parts = pg.make_city(users=3, days=4, seed=1, recorder="phone").promesse.prepare(tz="Europe/Paris", keep_user=True)
    metrics = [Compression(), pg.EndRetrieval(least=1), pg.Linkage()]
    safe = parts.promesse.smooth(200)
    details = [metric.detail(parts, safe) for metric in metrics[1:]]
    guesses = [details[0].attrs["random"], details[1].attrs["guess"]]
    table = pg.measure(parts, safe, metrics)
    assert np.isnan(table.guess[0])
    assert table.guess[1:].tolist() == guesses
    lines = measures(table, metrics).splitlines()
    assert ["guessing" in line for line in lines] == [False, True, True]
    results = pg.evaluate({"c": parts}, [Promesse(200)], metrics)
    assert list(results.columns) == [*COLUMNS, "guess"]
    assert results.guess[1:].tolist() == guesses
    for name in ("results.csv", "results.parquet"):
        pg.save_results(results, tmp_path / name)
        pd.testing.assert_frame_equal(pg.load_results(tmp_path / name), results)
    assert list(pg.evaluate({"c": parts}, [Promesse(200)], metrics[:1]).columns) == COLUMNS


def test_measures_print_the_whole_metric_and_readable_values():
    city = pg.make_city(users=2, days=1, recorder="phone")
    table = city.promesse.measure(city.promesse.smooth(200))
    table.loc[1, "value"] = 2.4e-09
    lines = repr(table).splitlines()
    assert len(lines) == 4
    assert lines[0].endswith("%  POI retrieval, F-score")
    assert lines[1].strip().startswith("< 0.01 m")
    html = table._repr_html_()
    assert "<td>POI retrieval, F-score</td>" in html
    assert "&lt; 0.01" in html
    assert "e-09" not in html
    assert isinstance(table.value.sum(), float)
    assert "metric" in repr(table[["metric"]])


def test_short_names_of_metrics_have_only_unusual_parameters():
    metrics = [
        (pg.PoiRetrieval(), "POI retrieval, F-score"),
        (pg.PoiRetrieval(diameter=100), "POI retrieval, F-score (diameter=100.0)"),
        (RangeQueryDistortion(30, seed=1), "range query distortion (queries=30)"),
    ]
    for metric, name in metrics:
        assert short_name(repr(metric)) == name
    adaptive = short_name(repr(pg.AdaptivePoiRetrieval(kind="none")))
    assert adaptive.endswith("(kind='none')")
    for metric in PAPER:
        assert short_name(repr(metric)) == metric.label
    for other in ("Older(a=1)", "SpatialError", "PoiRetrieval(size=3)", "x +", ""):
        assert short_name(other) == other
