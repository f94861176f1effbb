"""The paper's tables: its figures, ours beside them, and the report."""

import math
import re
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser

import click.testing
import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from conftest import small_paper_city
from doc_tables import PEOPLE, RESULTS, beyond_summary, people_summary
from hypothesis import given
from hypothesis import strategies as st
from readme import ROOT

import promesse_geo as pg
from promesse_geo import paper
from promesse_geo.cli.commands import main
from promesse_geo.evaluation import PAPER
from promesse_geo.messages import decimal
from promesse_geo.paper import tables as published
from promesse_geo.paper.report import format_mean, format_value, to_markdown
from promesse_geo.plot.comparisons import beside_paper, trade_off


@contextmanager
def warned_of_promesse():
    """Warnings of Promesse are expected; those of Wait for Me are tested elsewhere."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*WaitForMe")
        with pytest.warns(UserWarning, match="dropped"):
            yield


@pytest.fixture
def no_figures(monkeypatch):
    """Reports are written without their figures, which other tests look at and which take most of the time."""
    monkeypatch.setattr("promesse_geo.plot.comparisons._label_points", lambda axes, points, lines: None)
    monkeypatch.setattr("promesse_geo.paper.report._figure", lambda axes, title: "")


@pytest.fixture(scope="module")
def done():
    """Return the tables of a small city."""
    with small_paper_city(), warned_of_promesse():
        return pg.reproduce(seeds=2)


@pytest.fixture(scope="module")
def attacked():
    """Return the tables of a city that is large enough for the paper's story, with those of stronger attacks."""
    with small_paper_city(users=20, days=3), pytest.warns(UserWarning, match="dropped"):
        return pg.reproduce(seeds=1, attacks=True)


def test_the_papers_tables_are_whole():
    labels = [row.label for row in published.ROWS if row.label in published.TABLE_2]
    assert len(labels) == 9
    for table in (published.TABLE_2, published.TABLE_3, published.TABLE_4, published.TABLE_6):
        assert list(table) == labels
        assert all(len(figures) == 3 for figures in table.values())
    assert [row.label for row in published.ROWS if "Cabspotting" in row.without] == [
        "Promesse, ε = 50 m",
        "Promesse, ε = 50 m, pseudocode",
    ]


def test_every_table_has_a_figure_for_each_mechanism(done):
    assert list(done.tables) == [f"Table {number}" for number in ("I", "II", "III", "IV", "V", "VI")]
    for name in ("Table II", "Table III", "Table IV", "Table VI"):
        table = done.tables[name]
        assert table.row.tolist() == [row.label for row in published.ROWS]
        assert table.ours.notna().all()
        assert table.paper.isna().all()  # the paper knows no such city
    assert done.tables["Table V"].row.tolist() == ["Promesse", "Geo-I", "Wait for Me"]


def test_the_papers_story_shows_in_the_city(attacked):
    privacy, error, distortion, size = (
        attacked.tables[name].set_index("row").ours for name in ("Table II", "Table III", "Table IV", "Table VI")
    )
    assert privacy["Promesse, ε = 500 m"] == 0
    assert privacy["Promesse, ε = 200 m"] < 5
    assert privacy["Geo-I, ε = ln(10)/100"] > 40
    assert error[[f"Promesse, ε = {epsilon} m" for epsilon in (50, 100, 200, 500)]].max() < 1e-6
    assert error["Geo-I, ε = ln(10)/100"] < error["Geo-I, ε = ln(2)/200"]
    assert distortion["Promesse, ε = 200 m"] < distortion["Geo-I, ε = ln(2)/200"]
    assert (size[size.index.str.startswith("Geo-I")] == 100).all()


def test_ours_is_the_mean_over_seeds_and_spread_their_deviation():
    results = pd.DataFrame(
        {
            "dataset": "Geolife",
            "mechanism": [repr(pg.GeoIndistinguishability.from_level(4, radius=200))] * 3 + ["Other()"],
            "metric": ["SpatialError()"] * 4,
            "metric_name": ["SpatialError"] * 4,
            "unit": "m",
            "seed": [0, 1, 2, None],
            "value": [100.0, 110.0, 120.0, 3.0],
        }
    )
    table = paper.table_3(results)
    known, other = table.itertuples(index=False)
    assert tuple(known) == ("Geolife", "Geo-I, ε = ln(4)/200", 156.0, 110.0, 10.0, 110 / 156, "m")
    assert (other.row, other.ours) == ("Other()", 3.0)
    assert all(math.isnan(figure) for figure in (other.paper, other.spread, other.ratio))


def test_table_1_and_5_stand_beside_the_paper_for_its_data_sets():
    city = pg.make_city(users=3, days=1, recorder="phone")
    first = paper.table_1({"MDC": city}).set_index("row")
    assert first.paper["records"] == 1_124_454
    assert first.ours["records"] == len(city)
    assert first.ratio["records"] == len(city) / 1_124_454
    last = paper.table_5(pd.DataFrame({"dataset": ["MDC"], "row": ["Geo-I"], "seconds": [2.1]}))
    assert last.ratio.tolist() == [pytest.approx(0.1)]


@pytest.mark.parametrize("table", [paper.table_1, paper.most2014.table_3])
@pytest.mark.parametrize(
    "datasets",
    [[pg.make_city(users=1, days=1, recorder="phone")], {}, {1: pg.make_city(users=1, days=1, recorder="phone")}],
)
def test_data_sets_are_a_mapping_of_names(table, datasets):
    with pytest.raises((TypeError, ValueError), match=f"'datasets' parameter of {table.__name__}"):
        table(datasets)


def test_a_bar_in_a_name_ends_no_cell_of_markdown():
    table = paper.side_by_side([paper.table_1({"a|b": pg.make_city(users=1, days=1, recorder="phone")})])
    head, _, *rows = to_markdown(table).splitlines()
    assert head == r"|  | a\|b: ours |"
    assert {row.count("|") for row in rows} == {3}


def test_a_table_as_text_has_the_papers_figure_where_there_is_one():
    city = pg.make_city(users=3, days=1, recorder="phone")
    table = pd.concat((paper.table_1({"Geolife": city}), paper.table_1({"city": city}).iloc[1:]))
    shown = paper.side_by_side([table])
    assert list(shown.columns) == ["Geolife: paper", "ours", "ratio", "city: ours"]
    assert shown.loc["records"].tolist() == ["3,804,788", f"{len(city):,}", "< 0.01", "–"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(math.nan, "–"), (7.2e-10, "0"), (0.0129, "0.0129"), (24.6870, "24.69"), (402.2, "402.2"), (36_300.4, "36,300")],
)
def test_a_figure_has_the_digits_that_one_reads(value, text):
    assert format_value(value) == text


@pytest.mark.parametrize(
    ("mean", "spread", "text"),
    [
        (24.69, 0.014, "24.69 ± 0.01"),
        (24.69, 0.001, "24.69 ± < 0.01"),
        (34.154, 1.84, "34.2 ± 1.8"),
        (13.27, 1.0, "13.3 ± 1.0"),
        (32.97, 0.5, "32.97 ± 0.50"),
        (0.8243, 0.103, "0.82 ± 0.10"),
        (0.00123, 0.000456, "0.00123 ± 0.00046"),
        (109.81, 4.6, "109.8 ± 4.6"),
        (12_345.6, 78.9, "12,346 ± 79"),
        (123.4, 67, "123 ± 67"),
        (0.0, 0.5, "0.00 ± 0.50"),
        (50.0, 0.0, "50"),
        (50.25, math.nan, "50.25"),
        (math.nan, 1.0, "–"),
    ],
)
def test_a_mean_and_its_deviation_have_the_same_digits(mean, spread, text):
    assert format_mean(mean, spread) == text


@given(st.floats(1e-5, 1e5), st.floats(1e-5, 1e5))
def test_any_mean_has_the_digits_of_its_deviation(mean, spread):
    digits = [number.partition(".")[2] for number in format_mean(mean, spread).split(" ± ")]
    assert len(digits[0]) == len(digits[1])


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href") and not value.startswith("#")]


def test_the_report_stands_alone_and_holds_no_user(done, tmp_path, request):
    written = done.save(tmp_path / "out")
    names = sorted(path.name for path in written)
    assert names == [
        "report.html",
        "report.md",
        "results.csv",
        "results.parquet",
        *(f"table_{number}.csv" for number in range(1, 7)),
    ]
    text = (tmp_path / "out" / "report.html").read_text()
    page = Page(text)
    assert page.links == []
    assert page.tags.count("table") == 6
    assert page.tags.count("svg") == 6
    assert not re.search(rb"user-\d", b"".join(path.read_bytes() for path in written))
    markdown = (tmp_path / "out" / "report.md").read_text()
    assert "| Promesse, ε = 200 m |" in markdown
    assert done.results.attrs["date"] in markdown
    with pytest.raises(FileExistsError):
        done.save(tmp_path / "out")
    request.getfixturevalue("no_figures")
    done.save(tmp_path / "out", force=True)
    for name in ("results.csv", "results.parquet"):
        pd.testing.assert_frame_equal(pg.load_results(tmp_path / "out" / name), done.results)
    again = paper.Reproduction.load(tmp_path / "out")
    for name, table in done.tables.items():
        pd.testing.assert_frame_equal(again.tables[name], table)


def test_the_pages_show_the_figures_that_the_command_wrote():
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert text.count("| Promesse, ε = 200 m | 0 (0) |") == 1
    stored = paper.Reproduction.load(RESULTS / "cabspotting")
    assert stored.results.attrs["datasets"]["Cabspotting"]["records"] == 8_985_370


def test_several_data_sets_come_together(tmp_path, monkeypatch, no_figures):
    monkeypatch.setitem(paper.experiment._READERS, "Cabspotting", lambda source, as_traces: city(source))
    monkeypatch.setitem(paper.experiment._READERS, "MDC", lambda source, as_traces: city(source))

    def city(seed):
        return pg.make_city(users=3, days=2, seed=seed, as_traces=True, recorder="phone")

    with warned_of_promesse():
        found = pg.reproduce(cabspotting=1, mdc=2, min_days=1, seeds=1)
    table = found.tables["Table II"]
    assert list(dict.fromkeys(table.dataset)) == ["Cabspotting", "MDC"]
    assert (table.dataset == "Cabspotting").sum() == len(published.ROWS) - 2
    assert (table.dataset == "MDC").sum() == len(published.ROWS)
    assert table.paper[(table.dataset == "MDC") & (table.row == "Promesse, ε = 50 m")].tolist() == [13.91]
    assert list(found.results.attrs["datasets"]) == ["Cabspotting", "MDC"]
    assert len(found.save(tmp_path)) == 10


def test_the_command_repeats_the_experiment(tmp_path, no_figures):
    with small_paper_city():
        called = click.testing.CliRunner().invoke(main, ["reproduce", "--seeds", "1", "--out", str(tmp_path / "out")])
    assert called.exit_code == 0, called.output
    assert (tmp_path / "out" / "report.html").is_file()
    again = click.testing.CliRunner().invoke(main, ["reproduce", "--seeds", "1", "--out", str(tmp_path / "out")])
    assert again.exit_code == 1
    assert "already exists" in again.output


def test_the_command_names_a_file_that_is_not_there(tmp_path):
    called = click.testing.CliRunner().invoke(
        main, ["reproduce", "--cabspotting", str(tmp_path / "none.tar.gz"), "--out", str(tmp_path / "out")]
    )
    assert called.exit_code == 1
    assert "none.tar.gz" in called.output
    assert not (tmp_path / "out").exists()


# The second paper


@pytest.fixture(scope="module")
def second():
    with small_paper_city(users=6, days=4) as small:
        return small, pg.reproduce(paper="most2014", seeds=2)


def test_the_tables_of_most2014_are_those_of_its_definitions(second):
    raw, done = second
    assert list(done.tables) == ["Table III", "Table VI", "Table VII"]
    known = pg.PoiExtractor(250, "1h", merge="density").fit(raw).pois_
    assert done.tables["Table III"].ours.tolist() == [len(known)]
    assert done.tables["Table III"].paper.isna().all()  # the paper knows no such city
    assert done.tables["Table VI"].row.tolist() == [f"Geo-I, ε = {epsilon}" for epsilon in (0.00139, 0.00358, 0.00693)]
    for epsilon, diameter in ((0.00139, 2000), (0.00358, 1000), (0.00693, 700)):
        rows = done.results[done.results.parameters.str.contains(str(epsilon))]
        for seed in (0, 1):
            noisy = pg.GeoIndistinguishability(epsilon, seed=seed).protect(raw)
            found = pg.PoiExtractor(diameter, "1h", merge="density").fit(noisy).pois_
            recall = 100 * pg.match_pois(known, found, threshold=1e6).recall.mean()
            values = rows[rows.seed == seed].set_index("metric_name").value
            assert values["PoiRecall"] == pytest.approx(recall)
            assert values["PoiSetReidentification"] == pytest.approx(100 * _identified(known, found))


def _identified(known, found):
    """Share of users whose places are nearest to their own noisy ones, by the median of all nearest distances."""
    crs = known.estimate_utm_crs()
    sets = [dict(list(pois.to_crs(crs).groupby("user").geometry)) for pois in (known, found)]

    def distance(first, second):
        both = [[one.distance(other).min() for one in one_set] for one_set, other in ((first, second), (second, first))]
        return np.median([*both[0], *both[1]])

    right = [
        user in sets[1] and min(sets[0], key=lambda other: distance(sets[0][other], sets[1][user])) == user
        for user in sets[0]
    ]
    return np.mean(right)


def test_most2014_has_the_same_report_and_is_read_again(second, tmp_path):
    _, done = second
    written = done.save(tmp_path)
    names = ["report.html", "report.md", "results.csv", "results.parquet", "table_3.csv", "table_6.csv", "table_7.csv"]
    assert sorted(path.name for path in written) == names
    page = Page((tmp_path / "report.html").read_text())
    assert (page.links, page.tags.count("table"), page.tags.count("svg")) == ([], 3, 2)
    assert not re.search(rb"user-\d", b"".join(path.read_bytes() for path in written))
    for _ in range(2):
        again = paper.Reproduction.load(tmp_path)
        assert list(again.tables) == list(done.tables)
        for name, table in done.tables.items():
            pd.testing.assert_frame_equal(again.tables[name], table)
        (tmp_path / "results.parquet").unlink(missing_ok=True)


def test_the_tables_of_most2014_stand_beside_the_paper_for_its_data_sets(second):
    raw, done = second
    assert paper.most2014.table_3({"Cabspotting": raw}).paper.tolist() == [1_111]
    results = done.results.assign(dataset="Geolife")
    assert paper.most2014.table_6(results).paper.tolist() == [60.57, 70.56, 71.94]
    assert paper.most2014.table_7(results).paper.tolist() == [63.04, 82.90, 89.63]


def test_geolife_of_most2014_is_its_first_busy_days():
    # A day has 480 or 481 records; a user needs 30 busy days, and more are cut.
    def user(name, sizes):
        days = np.repeat(np.arange(len(sizes)), sizes)
        seconds = np.concatenate([np.arange(size) for size in sizes])
        times = pd.Timestamp("2024-01-01", tz="Asia/Shanghai") + pd.to_timedelta(days, unit="D")
        times += pd.to_timedelta(seconds, unit="s")
        return pd.DataFrame({"user": name, "time": times, "lon": 116.0, "lat": 40.0})

    frames = [user("a", [481, 480, 481] * 16), user("b", [481] * 29 + [480] * 9)]
    frame = pd.concat(frames)
    points = gpd.points_from_xy(frame.pop("lon"), frame.pop("lat"), crs=4326)
    traces = pg.Traces.from_frame(gpd.GeoDataFrame(frame, geometry=points))
    with pytest.warns(UserWarning, match="fewer than 30 days"):
        kept = paper.most2014.select_busy_days(traces, tz="Asia/Shanghai")
    assert kept.users.tolist() == ["a"]
    assert kept.records == 30 * 481
    days = kept.time_index().tz_convert("Asia/Shanghai").normalize().unique()
    assert len(days) == 30
    assert (days[1] - days[0]).days == 2


@pytest.mark.parametrize("wrong", [{"mdc": "x"}, {"min_days": 3}, {"attacks": True}])
def test_most2014_refuses_what_it_does_not_use(wrong, tmp_path):
    if "mdc" in wrong:
        wrong = {"mdc": tmp_path}
    with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of reproduce"):
        pg.reproduce(paper="most2014", **wrong)
    with pytest.raises(ValueError, match="'paper' parameter of reproduce"):
        pg.reproduce(paper="other")


def test_the_kept_tables_of_most2014_are_near_the_published_ones():
    kept = paper.Reproduction.load(RESULTS / "most2014").tables
    assert kept["Table III"].ours.tolist() == [1_110]
    assert (kept["Table VI"].ours - kept["Table VI"].paper).abs().max() <= 0.6
    assert (kept["Table VII"].ours - kept["Table VII"].paper).abs().max() <= 0.6


@pytest.mark.parametrize("wrong", [{"min_days": 0}, {"seeds": 0}, {"n_jobs": 0}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        pg.reproduce(**wrong)


def test_stronger_attacks_find_more_than_the_papers(attacked, tmp_path):
    others = list(attacked.tables)[6:]
    assert others[:4] == ["Adaptive attack", "Residue attack", "Area coverage", "Re-identification"]
    assert set(others[4:]) == set(PEOPLE)
    fixed, adaptive, residue, *_ = (attacked.tables[name].set_index("row").ours for name in ("Table II", *others))
    noisy = [row.label for row in published.ROWS if row.label.startswith("Geo-I")]
    smooth = [f"Promesse, ε = {epsilon} m" for epsilon in (100, 200, 500)]
    assert (adaptive[noisy] > 1.5 * fixed[noisy]).all()
    assert (residue[smooth] > fixed[smooth] + 10).all()
    assert not residue.index.str.startswith("Geo-I").any()
    assert len(attacked.save(tmp_path)) == 10 + len(others)
    assert (tmp_path / "report.html").stat().st_size < 1e6
    again = paper.Reproduction.load(tmp_path)
    assert list(again.tables) == list(attacked.tables)
    for name, table in attacked.tables.items():
        pd.testing.assert_frame_equal(again.tables[name], table)
    labels = ["raw data", *(row.label for row in published.ROWS), *(row.label for row in published.RECOMMENDED)]
    plain = [label for label in labels if "pseudocode" not in label]
    for summary in (beyond_summary, people_summary):
        shown = summary(again.tables, "synthetic city").splitlines()
        assert [line.split(" | ")[0].removeprefix("| ") for line in shown[2:]] == plain
    noise = next(line for line in beyond_summary(again.tables, "synthetic city").splitlines() if "ln(2)/200" in line)
    assert "| – |" in noise  # residues mean nothing in noise


@pytest.mark.parametrize("name", [*PEOPLE, "Adaptive attack", "Area coverage", "Re-identification"])
def test_tables_of_attacks_have_raw_data_first_and_all_mechanisms(attacked, name):
    table = attacked.tables[name]
    mechanisms = [*published.ROWS, *published.RECOMMENDED]
    assert table.row.tolist() == ["raw data", *(row.label for row in mechanisms)]
    assert table.ours.notna().all()
    guessed = name in PEOPLE and name != "Unicity"
    assert ("guess" in table) == guessed
    if guessed:
        assert table.guess.between(0, 100).all()
        markdown = paper.side_by_side([table])
        assert markdown.columns.tolist() == ["synthetic city: ours", "guessing"]
        assert markdown.index[0] == "raw data"
    if name in ("End retrieval", "Adaptive attack", "Area coverage"):
        assert table.ours[0] == 100


# The figures


def test_a_table_is_drawn_with_the_papers_figures(done):
    table = done.tables["Table III"]
    axes = beside_paper(table, label="spatial error")
    assert axes.get_xlabel() == "spatial error (m)"
    assert [label.get_text() for label in axes.get_yticklabels()] == table.row.tolist()
    assert axes.get_legend() is None
    known = table.assign(paper=table.ours + 1)
    assert {text.get_text() for text in beside_paper(known).get_legend().get_texts()} == {"ours", "paper"}


def test_a_trade_off_joins_what_differs_by_epsilon(done):
    axes = trade_off(done.results)
    assert axes.get_xlabel() == "range query distortion (%), lower is more useful"
    assert axes.get_ylabel() == f"{pg.PoiRetrieval.label} (%), {pg.PoiRetrieval.meaning}"
    assert [len(line.get_xdata()) for line in axes.get_lines()] == [4, 4, 4, 1, 1]
    means = done.results.groupby("metric").get_group("PoiRetrieval(diameter=200.0, duration='15min', threshold=100.0)")
    assert axes.get_lines()[0].get_ydata().tolist() == means[:4].value.tolist()
    texts = [text.get_text() for text in axes.texts]
    assert ", ".join(texts).split(", ")[:4] == ["50", "100", "200", "500"]
    assert axes.get_legend().get_title().get_text() == "numbers: ε"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "Promesse, variant = polyline, ε in m",
        "Promesse, variant = pseudocode, ε in m",
        "GeoIndistinguishability, ε in 1/m",
        "WaitForMe, radius_test = v1.1",
        "WaitForMe, radius_test = members",
    ]


def test_a_trade_off_is_of_one_data_set_and_of_metrics_that_are_there(done):
    with pytest.raises(ValueError, match="several data sets"):
        trade_off(pd.concat((done.results, done.results.assign(dataset="other"))))
    with pytest.raises(ValueError, match="hold no metric 'Loss'"):
        trade_off(done.results, utility="Loss")


@dataclass(frozen=True)
class _Level(pg.Mechanism):
    """A mechanism of somebody else's."""

    epsilon: str

    def _protect(self, traces):
        return traces


def test_a_trade_off_takes_any_mechanism_and_says_what_it_cannot_take(tmp_path):
    city = pg.make_city(users=2, days=1, recorder="phone")
    metrics = [pg.PoiRetrieval(), pg.SpatialError()]
    results = pg.evaluate({"a$": city}, [_Level("low"), _Level("$x$")], metrics)
    axes = trade_off(results, utility="SpatialError")
    assert [text.get_text() for text in axes.texts] == ["low, $x$"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["_Level"]
    axes.set_title("a$", parse_math=False)
    axes.figure.savefig(tmp_path / "figure.png")
    with pytest.raises(ValueError, match="empty"):
        trade_off(results.iloc[:0])
    for other in (pg.measure(city, city, metrics), [1]):
        with pytest.raises(TypeError, match="'results' parameter of trade_off"):
            trade_off(other)


# The other commands


def invoke(*words):
    return click.testing.CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def city_file(tmp_path):
    pg.write(pg.make_city(users=3, days=2, recorder="phone"), tmp_path / "city.parquet")
    return tmp_path / "city.parquet"


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson", "csv"])
def test_pois_are_written_in_each_format(city_file, tmp_path, ending):
    out = tmp_path / f"pois.{ending}"
    called = invoke("pois", city_file, out)
    assert called.exit_code == 0, called.output
    expected = pg.pois(pg.read_file(city_file, as_traces=True))
    assert f"{len(expected)} points of interest in 3 of 3 traces" in called.output
    if ending == "csv":
        table = pd.read_csv(out)
        assert list(table.columns) == ["user", "arrival", "departure", "records", "diameter", "lon", "lat"]
        assert table.lon.tolist() == pytest.approx(expected.geometry.x.tolist(), abs=1e-12)
    else:
        frame = gpd.read_parquet(out) if ending == "parquet" else gpd.read_file(out)
        assert frame.records.tolist() == expected.records.tolist()
        assert frame.crs == 4326
        assert frame.geometry.x.tolist() == pytest.approx(expected.geometry.x.tolist(), abs=1e-6)
    assert invoke("pois", city_file, out).exit_code == 1
    assert invoke("pois", city_file, out, "--force", "--diameter", "100").exit_code == 0


def test_pois_refuse_other_formats_and_wrong_parameters(city_file, tmp_path):
    for words, said in (
        (["p.txt"], "must end with one of '.parquet'"),
        (["p.csv", "--diameter", "-1"], "--diameter must be"),
        (["p.csv", "--duration", "soon"], "duration"),
    ):
        called = invoke("pois", city_file, tmp_path / words[0], *words[1:])
        assert called.exit_code == 2
        assert said in called.output
        assert not (tmp_path / words[0]).exists()


def test_measure_says_what_is_found_and_lost(city_file, tmp_path):
    safe = tmp_path / "safe.parquet"
    assert invoke("smooth", city_file, safe, "--epsilon", "200", "--keep-users").exit_code == 0
    called = invoke("measure", city_file, safe, "--seed", "1", "--out", tmp_path / "m.csv")
    assert called.exit_code == 0, called.output
    table = pg.load_results(tmp_path / "m.csv")
    assert len(table) == 4
    assert table.value[1] < 1e-6
    for figure, unit in zip(table.value, table.unit, strict=True):
        assert f"{decimal(figure)} {unit}" in called.output
    assert "seed" not in (tmp_path / "m.csv").read_text()
    assert invoke("measure", city_file, safe, "--threshold", "0").exit_code == 2
    odd = invoke("measure", city_file, safe, "--out", tmp_path / "m.txt")
    assert "must be a file that ends in .parquet or .csv" in odd.output
    assert "reading" not in odd.output
    assert "--duration must be" in invoke("measure", city_file, safe, "--duration", "soon").output


def test_measure_says_when_users_were_renamed(city_file, tmp_path):
    safe = tmp_path / "safe.parquet"
    assert invoke("smooth", city_file, safe, "--epsilon", "200").exit_code == 0
    called = invoke("measure", city_file, safe)
    assert called.exit_code == 1
    assert "The original has none of the" in called.output


def test_tables_stand_side_by_side_in_the_papers_order_and_later_figures_replace_earlier_ones():
    row = {"paper": 2.0, "spread": math.nan, "ratio": 0.5, "unit": "%"}
    kept = pd.DataFrame([{"dataset": "Cabspotting", "row": "Promesse, ε = 200 m", "ours": 1.0, **row}])
    others = pd.DataFrame(
        [
            {"dataset": "city", "row": "mine", "ours": 7.0, **row, "paper": math.nan, "ratio": math.nan},
            {"dataset": "city", "row": "Promesse, ε = 50 m", "ours": 5.0, **row, "paper": math.nan, "ratio": math.nan},
            {"dataset": "Cabspotting", "row": "Promesse, ε = 200 m", "ours": 3.0, **row, "ratio": 1.5},
        ]
    )
    table = paper.side_by_side([kept, others])
    assert table.columns.tolist() == ["Cabspotting: paper", "ours", "ratio", "city: ours"]
    assert table.index.tolist() == ["Promesse, ε = 50 m", "Promesse, ε = 200 m", "mine"]
    assert table.to_numpy().tolist() == [["–", "–", "–", "5"], ["2", "3", "1.50", "–"], ["–", "–", "–", "7"]]


# Example data


def test_our_results_come_with_the_package(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ours, stored = paper.Reproduction.load(), paper.Reproduction.load(RESULTS / "cabspotting")
    assert list(ours.tables) == list(stored.tables)
    assert ours.results.equals(stored.results)


def test_example_data_are_a_prepared_city_without_the_archive(monkeypatch):
    monkeypatch.delenv("PROMESSE_CABSPOTTING", raising=False)
    example = paper.example_data(users=3, days=2)
    raw = pg.make_city(users=3, days=2, as_traces=True)
    parts = pg.prepare(raw, tz="Europe/Paris", keep_user=True)
    assert (example.name, example.zone, example.min_days) == ("synthetic city", "Europe/Paris", None)
    days = pg.first_days(pg.collapse_empty_days(raw, tz="Europe/Paris"))
    for found, expected in ((example.raw, raw), (example.days, days), (example.parts, parts)):
        assert found.users.equals(expected.users)
        assert (found.times == expected.times).all()


def test_example_data_are_those_of_the_archive_that_the_environment_names(monkeypatch):
    folder = ROOT / "data" / "sample" / "cabspotting"
    monkeypatch.setenv("PROMESSE_CABSPOTTING", str(folder))
    with pytest.warns(UserWarning, match="fewer than 21 days"):
        example = paper.example_data(users=1)
    assert (example.name, example.zone, example.min_days) == ("Cabspotting", "America/Los_Angeles", 21)
    assert example.raw.records == pg.read_cabspotting(folder, as_traces=True).records
    assert len(example.parts) == 0


# New mechanisms and metrics


@dataclass(frozen=True)
class _MeanDelay(pg.Metric):
    """A metric of another author."""

    unit = "s"

    def _detail(self, pairs, index):
        return pd.Series([7.0])

    def value(self, detail):
        return float(detail.mean())


def test_a_new_mechanism_and_a_new_metric_have_rows_and_tables_of_their_own(tmp_path, no_figures):
    city = pg.make_city(users=2, days=1, recorder="phone")
    results = pg.evaluate({"city": city}, [_Level("low")], [*PAPER, _MeanDelay()])
    tables = paper.beyond(results)
    assert list(tables) == ["Mean delay"]
    assert tables["Mean delay"].row.tolist() == ["_Level(epsilon='low')"]
    assert tables["Mean delay"].unit.tolist() == ["s"]
    times = pd.DataFrame({"dataset": ["city"], "row": ["_Level"], "seconds": [2.1]})
    done = paper.Reproduction(
        {
            "Table I": paper.table_1({"city": city}),
            "Table II": paper.table_2(results),
            "Table III": paper.table_3(results),
            "Table IV": paper.table_4(results),
            "Table V": paper.table_5(times),
            "Table VI": paper.table_6(results),
            **tables,
        },
        results,
    )
    done.save(tmp_path)
    assert "## Mean delay (s)" in (tmp_path / "report.md").read_text()
    assert "<h2>Mean delay (s)</h2>" in (tmp_path / "report.html").read_text()
    assert list(paper.Reproduction.load(tmp_path).tables) == list(done.tables)
    (tmp_path / "results.parquet").unlink()
    from_csv = paper.Reproduction.load(tmp_path)
    pd.testing.assert_frame_equal(from_csv.tables["Mean delay"], tables["Mean delay"])
    from_csv.save(tmp_path / "again")  # without provenance


# Results of any origin


def results_of(*metrics, **columns):
    """Results of one mechanism by several metrics (repr, class, label), with the values 1, 2, …"""
    texts = pd.DataFrame(metrics, columns=["metric", "metric_name", "label"])
    return texts.assign(dataset="city", mechanism="Mine()", unit="%", value=range(1, len(texts) + 1), **columns)


@pytest.mark.parametrize(
    "labels",
    [
        ("error, mean", "error, max"),
        ("same", "same"),
        ("table II", "Table vi, more"),
        ("", ","),
        ("B()", "x"),
        ("same", "SAME, of others"),
    ],
)
def test_each_other_metric_has_a_table_of_its_own(labels):
    results = results_of(("A()", "A", labels[0]), ("B()", "B", labels[1]), ("C()", "C", "third"))
    tables = paper.beyond(results)
    assert [table.ours.tolist() for table in tables.values()] == [[1.0], [2.0], [3.0]]
    assert len({title.casefold() for title in (*tables, *published.PAPER_TABLES)}) == 3 + 6
    assert "Third" in tables


def test_metrics_of_a_class_are_not_mixed():
    results = results_of(
        ("AreaCoverage(100)", "AreaCoverage", "area coverage"), ("AreaCoverage(2000)", "AreaCoverage", "area coverage")
    )
    assert {title: table.ours.tolist() for title, table in paper.beyond(results).items()} == {
        "AreaCoverage(100)": [1.0],
        "AreaCoverage(2000)": [2.0],
    }
    apart = paper.beyond(results.assign(mechanism=["Mine()", "Other()"]))  # such as an attack on each mechanism
    assert apart["Area coverage"].ours.tolist() == [1.0, 2.0]
    several = results_of(("PoiRetrieval(1)", "PoiRetrieval", "F"), ("PoiRetrieval(2)", "PoiRetrieval", "F"))
    with pytest.raises(ValueError, match="several metrics 'PoiRetrieval'"):
        paper.table_2(several)
    assert paper.table_2(several[several.metric == "PoiRetrieval(2)"]).ours.tolist() == [2.0]


def test_results_of_version_0_1_have_tables():
    results = results_of(("SpatialError()", "", ""), ("Loss(a=1)", "", "")).drop(columns=["metric_name", "label"])
    assert paper.table_3(results).ours.tolist() == [1.0]
    assert {title: table.ours.tolist() for title, table in paper.beyond(results).items()} == {"Loss": [2.0]}


@pytest.mark.parametrize("make", ["table_2", "table_3", "table_4", "table_6", "beyond"])
@pytest.mark.parametrize(
    "wrong", [None, [1], pd.DataFrame({"a": [1]}), results_of(("A()", "A", "a")).astype({"value": "str"})]
)
def test_what_holds_no_results_is_refused(make, wrong):
    with pytest.raises(TypeError, match=f"'results' parameter of {make}"):
        getattr(paper, make)(wrong)


@pytest.mark.parametrize("wrong", [[], None, pd.DataFrame(), [pd.DataFrame({"dataset": ["city"]})], "table"])
def test_what_are_no_tables_cannot_stand_side_by_side(wrong):
    with pytest.raises(TypeError, match="'tables' parameter of side_by_side"):
        paper.side_by_side(wrong)


def test_a_table_without_rows_stands_side_by_side():
    empty = paper.table_2(results_of(("A()", "A", "a")))
    assert paper.side_by_side([empty]).empty


def test_a_folder_without_a_reproduction_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder .*none.* does not exist"):
        paper.Reproduction.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"results\.csv"):
        paper.Reproduction.load(tmp_path)
    with pytest.raises(TypeError, match="'folder' parameter"):
        paper.Reproduction.load(5)
    pg.save_results(results_of(("A()", "A", "a")), tmp_path / "results.csv")
    with pytest.raises(FileNotFoundError, match=r"table_1\.csv"):
        paper.Reproduction.load(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n1,2\n", b"\xff\xfe\x00", b"dataset,row,paper,ours,spread,ratio,unit\nc,r,high,1,,,m\n"]
)
def test_a_foreign_file_of_a_table_is_refused(tmp_path, content):
    pg.save_results(results_of(("A()", "A", "a")), tmp_path / "results.csv")
    (tmp_path / "table_1.csv").write_bytes(content)
    with pytest.raises(ValueError, match=r"table_1\.csv"):
        paper.Reproduction.load(tmp_path)
