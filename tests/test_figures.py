"""Figures by what they hold: panels, words, points."""

import io

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams, style
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

import promesse_geo as pg
from promesse_geo.plot import colours
from promesse_geo.plot.comparisons import beside_paper, trade_off
from promesse_geo.plot.figures import overview

METRES = "EPSG:32631"


def walk_of(x, y, *, crs=METRES, user="a") -> gpd.GeoDataFrame:
    times = pd.date_range("2008-05-17 10:00", periods=len(x), freq="30s", tz="UTC")
    return gpd.GeoDataFrame({"user": user, "time": times}, geometry=gpd.points_from_xy(x, y), crs=METRES).to_crs(crs)


def winding(*, crs=METRES, user="a") -> gpd.GeoDataFrame:
    """A walk of some kilometres that turns, and stands still for a while."""
    steps = np.concatenate((np.arange(60), np.full(30, 60), np.arange(60, 120)))
    return walk_of(500_000 + 40.0 * steps, 5_000_000 + 600 * np.sin(steps / 15), crs=crs, user=user)


def points_of(axes) -> np.ndarray:
    """The points of a panel, (n, 2)."""
    (line,) = (line for line in axes.lines if line.get_marker() == "o" and line.get_fillstyle() == "full")
    return line.get_xydata()


def panels_of(data, **named):
    figure = overview(data, **named)
    assert len(figure.axes) == 3
    return figure.axes


@pytest.mark.parametrize("crs", [METRES, "EPSG:4326", "EPSG:3857", "EPSG:2154"])
def test_three_panels_show_records_samples_and_what_is_published(crs):
    frame = winding(crs=crs)
    original, sampled, published = map(points_of, panels_of(frame, epsilon=200))
    safe = pg.Promesse(200).protect(frame)
    assert (len(original), len(sampled), len(published)) == (len(frame), len(safe) + 2, len(safe))
    assert np.array_equal(sampled[1:-1], published)


@pytest.mark.parametrize("crs", [METRES, "EPSG:4326"])
@pytest.mark.parametrize("epsilon", [100, 200, 333.3])
def test_consecutive_points_are_epsilon_apart_in_the_drawing(epsilon, crs):
    _, sampled, published = map(points_of, panels_of(winding(crs=crs), epsilon=epsilon))
    for points in (sampled, published):
        steps = np.hypot(*np.diff(points, axis=0).T)
        assert steps == pytest.approx(np.full(len(steps), epsilon / 1000), rel=1e-6)


@pytest.mark.parametrize("crs", [METRES, "EPSG:4326"])
def test_the_records_are_drawn_in_kilometres_east_and_north(crs):
    original = points_of(panels_of(winding(crs=crs))[0])
    metres = winding().get_coordinates().to_numpy()
    # the globe is no sphere: degrees of longitude differ by 3 m in a kilometre
    assert original == pytest.approx((metres - metres.mean(axis=0)) / 1000, rel=0.004, abs=0.002)


def test_titles_count_and_labels_have_units():
    frame = winding()
    axes = panels_of(frame, epsilon=250)
    published = len(pg.Promesse(250).protect(frame))
    assert [panel.get_title() for panel in axes] == [
        f"Original: {len(frame)} records",
        "Constant speed: one point every 250 m",
        f"Ends removed: {published} points published",
    ]
    assert [panel.get_xlabel() for panel in axes] == ["east (km)"] * 3
    assert axes[0].get_ylabel() == "north (km)"


def test_of_several_traces_the_title_names_the_one_drawn():
    frame = pd.concat([winding(), winding(user="other")], ignore_index=True)
    (first, *_), (second, *_) = (overview(frame, trace=trace).axes for trace in (0, 1))
    count = len(frame) // 2
    assert first.get_title() == f"Original, trace 0: {count} records"
    assert second.get_title() == f"Original, trace 1: {count} records"


def test_the_removed_ends_are_marked_and_explained():
    _, middle, right = panels_of(winding())
    marks = {line.get_marker(): line for line in right.lines if line.get_marker() in "xs"}
    assert np.array_equal(marks["x"].get_xydata(), points_of(middle)[:1])
    assert np.array_equal(marks["s"].get_xydata(), points_of(middle)[-1:])
    assert {line.get_fillstyle() for line in marks.values()} == {"none"}
    assert len({line.get_markersize() for line in marks.values()}) == 2
    (legend,) = right.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "record (deep colour: many in one place)",
        "published point",
        "first point, removed",
        "last point, removed",
    ]


@pytest.mark.parametrize("crs", [METRES, "EPSG:4326"])
def test_places_are_ringed_and_named_in_each_panel(crs):
    frame = winding(crs=crs)
    ends = frame.geometry.iloc[[0, -1, 0]].set_axis(["home", "work", "far"])
    far = ends.to_crs(METRES).iloc[2:].translate(1e5, 0)
    places = pd.concat([ends.iloc[:2], far.to_crs(crs)]).to_crs(3857)
    for panel in panels_of(frame, places=places):
        assert [text.get_text() for text in panel.texts] == ["home", "work"]
        (rings,) = (line for line in panel.lines if line.get_fillstyle() == "none" and line.get_marker() == "o")
        assert rings.get_xydata() == pytest.approx(points_of(panels_of(frame)[0])[[0, -1]], abs=1e-6)


def test_names_of_places_are_no_formulas_and_places_are_points():
    frame = winding()
    ends = frame.geometry.iloc[[0, -1]].set_axis(["$home", "_{$"])
    figure = overview(frame, places=ends)
    assert [text.get_text() for text in figure.axes[0].texts] == ["$home", "_{$"]
    picture = io.BytesIO()
    figure.savefig(picture)
    assert picture.getvalue()
    with pytest.raises(TypeError, match="'places' parameter of overview must be a GeoSeries of points"):
        overview(frame, places=[1])


def test_places_without_a_crs_or_with_an_extent_are_refused():
    frame = winding()
    ends = frame.geometry.iloc[[0, -1]]
    for wrong, cure in ((ends.set_crs(None, allow_override=True), "set_crs"), (ends.buffer(5), "centroids")):
        with pytest.raises(ValueError, match=f"'places' parameter of overview must be a GeoSeries of points.*{cure}"):
            overview(frame, places=wrong)


def test_long_names_of_places_are_cut():
    frame = winding()
    figure = overview(frame, places=frame.geometry.iloc[:1].set_axis(["p" * 90]))
    assert [text.get_text() for text in figure.axes[0].texts] == ["p" * 60 + "…"]


def test_on_a_dark_ground_marks_and_words_are_seen():
    frame = winding()
    with style.context("dark_background"):
        panel = overview(frame, places=frame.geometry.iloc[:1].set_axis(["home"])).axes[-1]
        axes = trade_off(results_of([f"Kind{n}(epsilon=1)" for n in range(6)], range(6), range(6)))
        marks = [line for line in panel.lines if line.get_fillstyle() == "none"]
        assert [to_hex(line.get_color()) for line in marks] == ["#ffffff"] * 3
        lines = {to_hex(line.get_color()) for line in axes.lines}
        assert len(lines) == 6
        assert "#ffffff" in lines
        assert "#000000" not in lines
        for text in (*panel.texts, *axes.texts):
            (effect,) = text.get_path_effects()
            assert to_hex(effect._gc["foreground"]) == "#000000"
            assert to_hex(text.get_color()) != "#000000"


def test_a_mechanism_without_a_number_is_named_in_a_warning():
    mechanisms = ["Promesse(epsilon=100)", "Other(epsilon=1)", "Third(epsilon=1)"]
    with pytest.warns(UserWarning, match=r"No number for both metrics.*: 'Other\(epsilon=1\)' and 'Third\(eps") as told:
        axes = trade_off(results_of(mechanisms, [3, np.nan, 4], [1, 2, np.inf]))
    assert len(told) == 1
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Promesse, ε in m"]
    assert len(axes.texts) == 1
    with pytest.warns(UserWarning, match="No number for both metrics"):
        axes = trade_off(results_of(mechanisms, [np.nan] * 3, [1, 2, 3]))
    assert boxes(axes) == []


def test_a_trade_off_is_drawn_on_axes_with_x_and_y_alone():
    results = results_of(["Promesse(epsilon=100)"], [1], [1])
    with pytest.raises(TypeError, match="'ax' parameter of trade_off must be axes of matplotlib"):
        trade_off(results, ax=5)


def test_long_rows_beside_the_paper_are_cut():
    row = {"paper": 2.0, "spread": 0.1, "ratio": 0.5, "unit": "%", "ours": 1.0}
    axes = beside_paper(pd.DataFrame([{"row": "r" * 90, **row}, {"row": "$short", **row}]))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["r" * 60 + "…", "$short"]


def test_long_kinds_of_mechanisms_are_cut():
    axes = trade_off(results_of([f"{'K' * 90}(epsilon=1)", "Promesse(epsilon=1)"], [1, 2], [1, 2]))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["K" * 60 + "…", "Promesse, ε in m"]


def test_colours_are_those_of_the_package_and_differ_in_lightness():
    drawn = [line for axes in panels_of(winding()) for line in axes.lines if line.get_marker() == "o"]
    wanted = [colours.ORIGINAL, colours.PROTECTED, colours.PROTECTED]
    assert [to_hex(line.get_color()).upper() for line in drawn] == wanted
    assert [line.get_alpha() for line in drawn] == [0.3, 1, 1]


def test_panels_have_one_scale_and_hold_everything():
    axes = panels_of(winding())
    assert len({(panel.get_xlim(), panel.get_ylim()) for panel in axes}) == 1
    for panel in axes:
        assert panel.get_aspect() == 1
        (left, right), (low, high) = panel.get_xlim(), panel.get_ylim()
        for line in panel.lines:
            x, y = line.get_xydata().T
            assert left < x.min()
            assert x.max() < right
            assert low < y.min()
            assert y.max() < high


@pytest.mark.parametrize("way", ["east", "north"])
def test_a_straight_way_gets_a_panel_that_can_be_read(way):
    along, still = 5e5 + 40 * np.arange(100.0), np.full(100, 5e5)
    panel = panels_of(walk_of(along, still) if way == "east" else walk_of(still, along))[0]
    width, height = np.ptp(panel.get_xlim()), np.ptp(panel.get_ylim())
    assert max(width, height) == pytest.approx(2.5 * min(width, height))


@pytest.mark.parametrize("crs", [METRES, "EPSG:4326"])
def test_the_picture_can_be_made(crs):
    stream = io.BytesIO()
    overview(winding(crs=crs)).savefig(stream, dpi=50)
    with Image.open(stream) as picture:
        assert picture.width == 600


def test_the_trace_is_chosen_by_its_number():
    frame = pd.concat([winding(user="b"), winding(user="a").iloc[:80]])
    assert [len(points_of(panels_of(frame, trace=number)[0])) for number in (0, 1)] == [80, 150]
    traces = pg.Traces.from_frame(frame)
    assert len(points_of(panels_of(traces, trace=1)[0])) == 150
    for number in (2, 99):
        with pytest.raises(ValueError, match=f"There is no trace {number}: 2 traces, counted from 0"):
            overview(frame, trace=number)
    with pytest.raises(ValueError, match="'trace' parameter of overview must be a whole number of at least 0"):
        overview(frame, trace=-1)


def test_columns_can_be_named():
    frame = winding().rename(columns={"user": "cab", "time": "stamp"})
    assert len(points_of(panels_of(frame, user="cab", time="stamp")[0])) == len(frame)


def test_the_papers_marks_are_neither_original_nor_protected():
    table = pd.DataFrame([{"row": "one", "paper": 1.0, "ours": 2.0, "spread": 0.1, "unit": "%"}])
    axes = beside_paper(table)
    assert {line.get_color() for line in axes.lines if line.get_label() == "paper"} == {rcParams["text.color"]}


@pytest.mark.parametrize("crs", [METRES, "EPSG:4326"])
def test_a_trace_that_is_too_short_is_an_error_not_a_warning(crs):
    with pytest.raises(ValueError, match=r"Trace 0 is too short to be protected with epsilon = 50000 m\. Take another"):
        overview(winding(crs=crs), epsilon=50_000)
    with pytest.raises(ValueError, match="too short"):
        overview(winding(crs=crs).iloc[:1])


def test_a_data_set_without_traces_has_none_to_draw():
    with pytest.raises(ValueError, match="There is no trace 0: 0 traces"):
        overview(winding().iloc[:0])


def test_a_single_point_is_drawn_as_well():
    original, sampled, published = map(points_of, panels_of(walk_of([0.0, 450.0], [5e6, 5e6]), epsilon=200))
    assert (len(original), len(sampled), len(published)) == (2, 3, 1)


def results_of(mechanisms, found, distortion) -> pd.DataFrame:
    rows = [("PoiRetrieval()", found), ("RangeQueryDistortion()", distortion)]
    return pd.concat(
        pd.DataFrame({"dataset": "x", "mechanism": mechanisms, "metric": metric, "unit": "%", "value": values})
        for metric, values in rows
    )


def boxes(axes) -> list:
    """Where the labels of a drawn figure are, in pixels."""
    axes.figure.draw_without_rendering()
    return [text.get_window_extent() for text in axes.texts]


def test_labels_of_a_trade_off_are_apart_from_each_other_and_from_marks_and_edges():
    mechanisms = [f"Promesse(epsilon={epsilon})" for epsilon in (50, 100, 150, 200, 300, 500)]
    mechanisms += [f"GeoIndistinguishability(epsilon={epsilon})" for epsilon in (0.0115, 0.00896, 0.00693, 0.00347)]
    distortion = [22, 27.6, 27.3, 27.7, 29.2, 31.8, 21.8, 27.8, 35.8, 67.5]
    found = [36.3, 13.9, 17.2, 2.6, 0, 0, 0, 1.1, 0.9, 0]
    axes = trade_off(results_of(mechanisms, found, distortion))
    assert colours.ORIGINAL not in [line.get_color() for line in axes.lines]  # no mechanism looks like the original
    labels = boxes(axes)
    assert len(labels) == 10
    for number, box in enumerate(labels):
        assert not any(box.overlaps(other) for other in labels[:number])
        assert axes.bbox.x0 < box.x0
        assert box.x1 < axes.bbox.x1
    marks = np.concatenate([axes.transData.transform(line.get_xydata()) for line in axes.lines])
    assert not any(box.contains(*mark) for box in labels for mark in marks)


def test_metrics_of_one_name_are_not_mixed():
    narrow = results_of(["Promesse(epsilon=100)"], [1], [20])
    wide = narrow[narrow.metric.str.startswith("PoiRetrieval")].assign(metric="PoiRetrieval(diameter=1000)", value=10.0)
    results = pd.concat([narrow, wide], ignore_index=True)
    with pytest.raises(
        ValueError, match=r"several metrics 'PoiRetrieval': 'PoiRetrieval\(.*\)' and 'PoiRetrieval\(dia"
    ):
        trade_off(results)
    axes = trade_off(results, privacy="PoiRetrieval(diameter=1000)")
    assert axes.lines[0].get_xydata().tolist() == [[20, 10]]
    assert axes.get_ylabel() == "POI retrieval, F-score (%)"


def test_a_parameter_that_ends_like_epsilon_is_another():
    mechanisms = ["Two(start_epsilon=10.0, epsilon=100.0)", "Two(start_epsilon=20.0, epsilon=300.0)"]
    axes = trade_off(results_of(mechanisms, [1, 2], [3, 4]))
    assert [text.get_text() for text in axes.texts] == ["100", "300"]
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["Two, start_epsilon = 10.0", "Two, start_epsilon = 20.0"]


def test_the_papers_marks_below_zero_are_drawn():
    row = {"row": "a", "paper": -4.0, "spread": 0.0, "unit": "m"}
    axes = beside_paper(pd.DataFrame([{**row, "ours": -5.0}, {**row, "ours": 2.0}]))
    assert axes.get_xlim()[0] < -5 < 2 < axes.get_xlim()[1]


def test_values_below_zero_are_within_the_axes():
    axes = trade_off(results_of(["Promesse(epsilon=100)"], [-7], [-3]))
    assert axes.get_xlim()[0] < -3 < axes.get_xlim()[1]
    assert axes.get_ylim()[0] < -7 < axes.get_ylim()[1]


def test_what_is_no_table_of_results_is_refused():
    results = results_of(["Promesse(epsilon=100)"], [1], [1])
    for wrong in (results.assign(value="1"), pd.concat([results, results[["value"]]], axis=1), None):
        with pytest.raises(TypeError, match=r"The 'results' parameter of trade_off must be what pg\.evaluate returned"):
            trade_off(wrong)
    for name in ("privacy", "utility"):
        with pytest.raises(TypeError, match=f"The '{name}' parameter of trade_off must be text"):
            trade_off(results, **{name: pg.PoiRetrieval()})
    missing = trade_off(results.assign(value=pd.array([1.0, 2.0], dtype="Float64")))
    assert missing.lines[0].get_xydata().tolist() == [[2, 1]]
    for wrong in (pd.DataFrame({"a": [1]}), None):
        with pytest.raises(TypeError, match=r"The 'table' parameter of beside_paper must be one of the tables"):
            beside_paper(wrong)
    gone = Figure().subplots()
    gone.remove()
    with pytest.raises(ValueError, match="The 'ax' parameter of trade_off must be axes"):
        trade_off(results, ax=gone)


def test_a_mechanism_has_one_colour_in_every_trade_off():
    def drawn(*mechanisms: str) -> dict[str, str]:
        axes = trade_off(results_of(list(mechanisms), range(len(mechanisms)), range(len(mechanisms))))
        return dict(zip(mechanisms, (line.get_color() for line in axes.lines), strict=True))

    few = drawn("Grid(epsilon=100)", "WaitForMe(k=2)", "Promesse(epsilon=200)")
    kinds = ["Promesse(epsilon=100)", "GeoIndistinguishability(epsilon=0.01)", "WaitForMe(k=2)", "WaitForMe(k=3)"]
    many = drawn(*kinds, "Grid(epsilon=100)")
    assert few["Promesse(epsilon=200)"] == many["Promesse(epsilon=100)"] == colours.PROTECTED
    assert few["WaitForMe(k=2)"] == many["WaitForMe(k=2)"]
    assert len(set(many.values())) == 5
    assert len(set(few.values())) == 3
    assert len(set(drawn(*(f"Own{n}(epsilon=1)" for n in range(6))).values())) == 6
    axes = trade_off(results_of([f"Own{n}(epsilon=1)" for n in range(13)], range(13), range(13)))
    assert len({(line.get_color(), line.get_marker()) for line in axes.lines}) == 13


def test_names_of_a_trade_off_say_no_more_than_tells_mechanisms_apart():
    mechanisms = ["Ours(a=1, b='x')", "Ours(a=1, b='y')", "Ours(a=2, b='x')", "Promesse(epsilon=1000.0)"]
    axes = trade_off(results_of(mechanisms, [1, 2, 3, 4], [1, 2, 3, 4]))
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["Ours, a = 1, b = x", "Ours, b = y", "Ours, a = 2", "Promesse, ε in m"]
    assert [text.get_text() for text in axes.texts if text.get_text()] == ["1000"]


def test_a_trade_off_of_nothing_found_has_an_axis_of_a_percent():
    low, high = trade_off(results_of(["Promesse(epsilon=100)", "Promesse(epsilon=200)"], [0, 0], [5, 9])).get_ylim()
    assert -0.1 < low < 0
    assert 1 <= high < 2
