"""Figures of results: privacy against utility, and the paper's values beside ours."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams, style
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import promesse_geo as pg
from promesse_geo.plot import colours, trade_off
from promesse_geo.plot.comparisons import beside_paper

PROMESSE = [("Promesse", {"epsilon": epsilon}) for epsilon in (50, 100, 150, 200, 300, 500)]
NOISE = [("GeoIndistinguishability", {"epsilon": epsilon}) for epsilon in (0.0115, 0.00896, 0.00693, 0.00347)]
WAIT = [("WaitForMe", {"k": k}) for k in (2, 3)]


@dataclass(frozen=True)
class Boxed(pg.Mechanism):
    """A mechanism of another author, with a tuple as a parameter."""

    epsilon: float
    box: tuple[float, float]

    def _protect(self, traces: pg.Traces) -> pg.Traces:
        return traces


def results_of(mechanisms, recovered, distortion) -> pd.DataFrame:
    """Results as `evaluate` returns them, of mechanisms given by name and parameters."""
    texts = [
        f"{name}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"
        for name, parameters in mechanisms
    ]
    rows = [("PoiRetrieval", "POI retrieval", recovered), ("RangeQueryDistortion", "distortion", distortion)]
    return pd.concat(
        pd.DataFrame(
            {
                "dataset": "x",
                "mechanism": texts,
                "metric": f"{metric}()",
                "unit": "%",
                "value": values,
                "mechanism_name": [name for name, _ in mechanisms],
                "parameters": [json.dumps(parameters) for _, parameters in mechanisms],
                "metric_name": metric,
                "label": label,
            }
        )
        for metric, label, values in rows
    )


def drawn_for(mechanisms):
    return trade_off(results_of(mechanisms, range(len(mechanisms)), range(len(mechanisms))))


def legend_of(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def boxes(axes) -> list:
    """The extents of the labels of a drawn figure, in pixels."""
    axes.figure.draw_without_rendering()
    return [text.get_window_extent() for text in axes.texts]


def test_points_are_the_means_over_seeds_on_labelled_axes():
    one, other = (results_of(PROMESSE[:1], [found], [lost]) for found, lost in ((10, 20), (30, 60)))
    axes = trade_off(pd.concat([one, other]))
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[40, 20]]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "distortion (%), lower is more useful",
        "POI retrieval (%), lower is more private",
    )


def test_evaluate_returns_results_that_can_be_drawn():
    city = pg.make_city(users=3, days=1, recorder="phone")
    mechanisms = [pg.Promesse(100), pg.Promesse(200), Boxed(epsilon=5, box=(5, 9)), Boxed(epsilon=5, box=(5, 10))]
    axes = trade_off(pg.evaluate({"city": city}, mechanisms))
    assert axes.get_xlabel() == "range query distortion (%), lower is more useful"
    assert legend_of(axes) == ["Promesse, ε in m", "Boxed, box = (5, 9)", "Boxed, box = (5, 10)"]
    assert axes.get_legend().get_title().get_text() == "numbers: ε"


def test_results_of_earlier_versions_are_drawn_by_their_text():
    results = results_of(PROMESSE, range(6), range(6))
    old = results.drop(columns=["mechanism_name", "parameters", "metric_name", "label"])
    axes = trade_off(old)
    assert legend_of(axes) == old.mechanism.unique().tolist()
    assert list(axes.texts) == []
    assert axes.get_ylabel() == "PoiRetrieval (%), lower is more private"
    both = pd.concat([results, old.assign(mechanism="Older(a=1)")])
    assert legend_of(trade_off(both)) == ["Promesse, ε in m", "Older(a=1)"]


def test_labels_cover_neither_each_other_nor_markers_and_stay_inside():
    distortion = [22, 27.6, 27.3, 27.7, 29.2, 31.8, 21.8, 27.8, 35.8, 67.5]
    recovered = [36.3, 13.9, 17.2, 2.6, 0, 0, 0, 1.1, 0.9, 0]
    axes = trade_off(results_of(PROMESSE + NOISE, recovered, distortion))
    labels = boxes(axes)
    assert len(labels) == 10
    for number, box in enumerate(labels):
        assert not any(box.overlaps(other) for other in labels[:number])
        assert axes.bbox.x0 < box.x0
        assert box.x1 < axes.bbox.x1
    markers = np.concatenate([axes.transData.transform(line.get_xydata()) for line in axes.lines])
    assert sum(box.count_contains(markers) for box in labels) == 0


@pytest.mark.parametrize("seed", range(4))
def test_labels_of_any_points_do_not_overlap(seed):
    recovered, distortion = np.random.default_rng(seed).uniform(0, 40, (2, 10))
    axes = trade_off(results_of(PROMESSE + NOISE, recovered, distortion))
    labels = boxes(axes)
    assert len(labels) > 5
    assert not any(box.overlaps(other) for number, box in enumerate(labels) for other in labels[:number])
    again = trade_off(results_of(PROMESSE + NOISE, recovered, distortion))
    assert [text.get_position() for text in again.texts] == [text.get_position() for text in axes.texts]


def test_points_close_together_share_a_label():
    axes = trade_off(results_of(PROMESSE[:3], [0, 0.1, 50], [0, 0.1, 50]))
    assert [text.get_text() for text in axes.texts] == ["50, 100", "150"]


def test_a_mechanism_without_a_value_is_named_in_a_warning():
    mechanisms = [PROMESSE[1], ("Other", {"epsilon": 1}), ("Third", {"epsilon": 1})]
    with pytest.warns(UserWarning, match=r"undefined.*'Other\(epsilon=1\)' and 'Third") as caught:
        axes = trade_off(results_of(mechanisms, [3, np.nan, 4], [1, 2, np.inf]))
    assert len(caught) == 1
    assert legend_of(axes) == ["Promesse, ε in m"]
    assert len(axes.texts) == 1
    with pytest.warns(UserWarning, match="undefined"):
        axes = trade_off(results_of(mechanisms, [np.nan] * 3, [1, 2, 3]))
    assert boxes(axes) == []


def test_metrics_of_one_name_are_not_mixed():
    narrow = results_of(PROMESSE[1:2], [1], [20])
    wide = narrow[narrow.metric_name == "PoiRetrieval"].assign(metric="PoiRetrieval(diameter=1000)", value=10.0)
    results = pd.concat([narrow, wide], ignore_index=True)
    with pytest.raises(ValueError, match=r"several metrics 'PoiRetrieval'.*diameter=1000"):
        trade_off(results)
    axes = trade_off(results, privacy="PoiRetrieval(diameter=1000)")
    assert axes.lines[0].get_xydata().tolist() == [[20, 10]]
    with pytest.raises(ValueError, match=r"no metric 'Speed'"):
        trade_off(results, privacy="Speed")


def test_results_must_be_of_one_data_set():
    results = results_of(PROMESSE, range(6), range(6))
    with pytest.raises(ValueError, match="several data sets"):
        trade_off(pd.concat([results, results.assign(dataset="y")]))
    with pytest.raises(ValueError, match="empty"):
        trade_off(results.iloc[:0])


def test_a_parameter_whose_name_ends_with_epsilon_is_another():
    mechanisms = [("Two", {"start_epsilon": start, "epsilon": 10 * start}) for start in (10.0, 20.0)]
    axes = trade_off(results_of(mechanisms, [1, 2], [3, 4]))
    assert [text.get_text() for text in axes.texts] == ["100", "200"]
    assert legend_of(axes) == ["Two, start_epsilon = 10", "Two, start_epsilon = 20"]


def test_the_legend_names_the_parameters_that_differ():
    parameters = [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}]
    mechanisms = [*(("Ours", each) for each in parameters), ("Promesse", {"epsilon": 1000.0})]
    axes = trade_off(results_of(mechanisms, [1, 2, 3, 4], [1, 2, 3, 4]))
    assert legend_of(axes) == ["Ours, a = 1, b = x", "Ours, b = y", "Ours, a = 2", "Promesse, ε in m"]
    assert [text.get_text() for text in axes.texts] == ["1000"]


def test_parameters_have_their_units():
    assert legend_of(drawn_for([("WaitForMe", {"delta": delta}) for delta in (100.0, 1234.5)])) == [
        "WaitForMe, delta = 100 m",
        "WaitForMe, delta = 1234.5 m",
    ]


def test_a_chain_is_named_by_its_members():
    chains = [pg.Chain([pg.PrivacyZones(radius, 400), pg.Promesse(200)]).description() for radius in (500, 700)]
    described = [(each["mechanism"], each["parameters"]) for each in chains]
    assert legend_of(drawn_for(described[:1])) == ["PrivacyZones + Promesse"]
    first, second = legend_of(drawn_for(described))
    assert first.startswith("PrivacyZones (radius = 500 m")
    assert second.startswith("PrivacyZones (radius = 700 m")


def test_a_long_legend_stands_beside_the_axes():
    axes = drawn_for([("WaitForMe", {"k": k}) for k in range(2, 12)])
    axes.figure.draw_without_rendering()
    legend = axes.get_legend().get_window_extent()
    assert legend.x0 >= axes.bbox.x1
    assert legend.x1 <= axes.figure.bbox.x1


def test_values_of_any_kind_are_shown():
    values = [True, None, "low", [1, 2.5], {"b": 1}]
    assert legend_of(drawn_for([("Own", {"a": value}) for value in values])) == [
        f"Own, a = {text}" for text in ("True", "None", "low", "(1, 2.5)", "{'b': 1}")
    ]
    assert [text.get_text() for text in drawn_for([("Own", {"epsilon": "low"})]).texts] == ["low"]


def test_equal_values_get_an_axis_of_a_percent():
    low, high = trade_off(results_of(PROMESSE[:2], [0, 0], [5, 9])).get_ylim()
    assert -0.1 < low < 0
    assert 1 <= high < 2


def test_negative_values_are_within_the_axes():
    axes = trade_off(results_of(PROMESSE[:1], [-7], [-3]))
    assert axes.get_xlim()[0] < -3 < axes.get_xlim()[1]
    assert axes.get_ylim()[0] < -7 < axes.get_ylim()[1]


def test_invalid_results_are_refused():
    results = results_of(PROMESSE[:1], [1], [1])
    twice = pd.concat([results, results[["value"]]], axis=1)
    for wrong in (results.assign(value="1"), twice, None):
        with pytest.raises(TypeError, match="'results' parameter of trade_off"):
            trade_off(wrong)
    for text in ("{", "[1]"):
        with pytest.raises(ValueError, match="'results' parameter of trade_off"):
            trade_off(results.assign(parameters=text))
    for name in ("privacy", "utility"):
        with pytest.raises(TypeError, match=f"'{name}' parameter of trade_off"):
            trade_off(results, **{name: pg.PoiRetrieval()})
    nullable = trade_off(results.assign(value=pd.array([1.0, 2.0], dtype="Float64")))
    assert nullable.lines[0].get_xydata().tolist() == [[2, 1]]


def test_axes_must_be_rectilinear_and_on_a_figure():
    results = results_of(PROMESSE[:1], [1], [1])
    with pytest.raises(TypeError, match="'ax' parameter of trade_off"):
        trade_off(results, ax=5)
    removed = Figure().subplots()
    removed.remove()
    with pytest.raises(ValueError, match="'ax' parameter of trade_off"):
        trade_off(results, ax=removed)


def colours_of(*mechanisms) -> list[str]:
    return [line.get_color() for line in drawn_for(mechanisms).lines]


def test_a_mechanism_has_one_colour_in_every_figure():
    grid = ("Grid", {"epsilon": 100})
    few = colours_of(grid, WAIT[0], PROMESSE[0])
    many = colours_of(PROMESSE[1], NOISE[0], *WAIT, grid)
    assert few[2] == many[0] == colours.PROTECTED
    assert few[1] == many[2]
    assert len(set(few)) == 3
    assert len(set(many)) == 5
    assert colours.ORIGINAL not in few + many


def test_many_mechanisms_differ_in_colour_and_marker():
    assert len(set(colours_of(*((f"Own{n}", {"epsilon": 1}) for n in range(6))))) == 6
    lines = drawn_for([(f"Own{n}", {"epsilon": 1}) for n in range(13)]).lines
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 13


def test_long_names_of_mechanisms_are_cut():
    axes = drawn_for([("K" * 90, {"epsilon": 1}), PROMESSE[0]])
    assert legend_of(axes) == ["K" * 60 + "…", "Promesse, ε in m"]


def test_everything_is_visible_on_a_dark_background():
    with style.context("dark_background"):
        axes = drawn_for([(f"Kind{n}", {"epsilon": 1}) for n in range(6)])
        lines = {to_hex(line.get_color()) for line in axes.lines}
        assert len(lines) == 6
        assert "#ffffff" in lines
        assert "#000000" not in lines
        for text in axes.texts:
            (effect,) = text.get_path_effects()
            assert to_hex(effect._gc["foreground"]) == "#000000"
            assert to_hex(text.get_color()) != "#000000"


def table_of(*ours, paper=2.0, rows="abcdef") -> pd.DataFrame:
    values = {"paper": paper, "spread": 0.1, "unit": "%"}
    return pd.DataFrame([{"row": row, "ours": value, **values} for row, value in zip(rows, ours, strict=False)])


def test_the_papers_markers_have_the_text_colour():
    axes = beside_paper(table_of(2.0))
    assert {line.get_color() for line in axes.lines if line.get_label() == "paper"} == {rcParams["text.color"]}


def test_long_rows_beside_the_paper_are_cut():
    axes = beside_paper(table_of(1.0, 1.0, rows=["r" * 90, "$short"]))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["r" * 60 + "…", "$short"]


def test_values_below_zero_beside_the_paper_are_drawn():
    axes = beside_paper(table_of(-5.0, 2.0, paper=-4.0))
    assert axes.get_xlim()[0] < -5 < 2 < axes.get_xlim()[1]


def test_values_of_different_size_beside_the_paper_are_apart():
    axes = beside_paper(table_of(2e-9, 24.0, 113.0, 70_000.0, paper=30.0).assign(unit="m"), label="spatial error")
    axes.figure.draw_without_rendering()
    (ours,) = (line for line in axes.lines if line.get_label() != "paper" and line.get_marker() == "o")
    x = axes.transData.transform(np.column_stack((ours.get_xdata(), ours.get_ydata())).astype(float))[:, 0]
    assert (np.diff(x) > 0.1 * axes.bbox.width).all()
    assert axes.get_xlim()[0] < 0
    assert beside_paper(table_of(2.0, 60.0, 0.1)).get_xscale() == "linear"  # percent
    assert beside_paper(table_of(24.0, 50.0, paper=30.0).assign(unit="m")).get_xscale() == "linear"


@pytest.mark.parametrize("wrong", [pd.DataFrame({"a": [1]}), None])
def test_invalid_tables_are_refused(wrong):
    with pytest.raises(TypeError, match="'table' parameter of beside_paper"):
        beside_paper(wrong)
