"""Tune a parameter: which values are tried, which one is best, and what is computed once."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import promesse_geo as pg
from promesse_geo.plot import tuning

INDEXED = Counter()


@dataclass(frozen=True)
class Moved(pg.Mechanism):
    """Delay all records by some seconds, and some milliseconds."""

    amount: float = 5.0
    count: int = 5
    units: ClassVar = {"amount": "m"}

    def _protect(self, traces):
        return replace(traces, times=traces.times + round(1e9 * self.amount) + self.count * 1_000_000)


@dataclass(frozen=True)
class Delay(pg.Metric):
    """A function of the amount of `Moved`, in seconds."""

    kind: str = "plain"
    unit = "s"

    def _index(self, original):
        INDEXED[self.kind] += 1
        return self.kind

    def _detail(self, pairs, index):
        seconds = float(pairs.protected.times[0] - pairs.original.times[0]) / 1e9
        value = {
            "plain": seconds,
            "valley": abs(math.log(seconds / 37)),
            "missing": math.nan,
            "until 80": seconds if seconds <= 80 else math.nan,
        }
        return pd.Series([value[index]])

    def value(self, detail):
        return float(detail.iloc[0])


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=2, days=1, as_traces=True, recorder="phone")


def tuned(city, **named):
    choices = {"parameter": "amount", "bounds": (1, 100), "goals": [(Delay(), ">=", 1)], "objective": Delay("valley")}
    return pg.tune(city, Moved(), **choices | named)


def test_the_best_value_is_found_between_those_of_the_grid(city):
    found = tuned(city, values=24)
    assert found.value == pytest.approx(37, rel=0.02)
    assert found.meets_goals
    assert found.mechanism == Moved(found.value)
    table = found.table
    assert table["amount"].is_monotonic_increasing
    assert table["amount"].is_unique
    assert (table["amount"].min(), table["amount"].max()) == (1, 100)
    grid = [float(f"{value:.3g}") for value in np.geomspace(1, 100, 12)]
    assert set(grid) <= set(table["amount"])
    assert len(table) <= 24
    assert found.value == table["amount"][table[found.column(found.objective)].idxmin()]


def test_runs_that_the_search_does_not_need_halve_the_widest_intervals(city):
    found = tuned(city, values=60)
    values = found.table["amount"].to_numpy()
    assert len(values) == 60
    assert found.value == pytest.approx(37, rel=0.02)
    assert (values[1:] / values[:-1]).max() < 1.3  # a grid of 30 values alone has steps of 1.17, one of 4 of 4.6
    few = tuned(city, bounds=(10, 11), values=60)
    ratios = few.table["amount"].to_numpy()[1:] / few.table["amount"].to_numpy()[:-1]
    assert len(few.table) < 60
    assert ratios.max() <= 1.02


def test_the_parameter_of_a_member_of_a_chain_is_tuned(city):
    chain = pg.Chain([Moved(), pg.PrivacyZones(600, 500, zones=None, seed=1)])
    choices = {"goals": [(Delay(), "<=", 20)], "objective": Delay(), "maximize": True, "values": 8}
    with pytest.warns(UserWarning, match="Privacy zones removed"):
        found = pg.tune(city, chain, parameter="amount", bounds=(1, 100), **choices)
    assert found.mechanism.mechanisms == (Moved(found.value), chain.mechanisms[1])
    assert tuning(found).get_xlabel() == "amount (m)"
    with pytest.raises(ValueError, match=r"Chain has no parameter 'size' to tune\. It has 'amount'"):
        pg.tune(city, chain, parameter="size", bounds=(1, 100), **choices)
    with pytest.raises(ValueError, match="no parameter 'amount'"):  # of which of the two?
        pg.tune(city, pg.Chain([Moved(), Moved()]), parameter="amount", bounds=(1, 100), **choices)


@pytest.mark.parametrize(("goal", "best"), [(("<=", 20), 20), ((">=", 60), 60)])
def test_the_best_value_that_meets_the_goals_is_at_their_limit(city, goal, best):
    found = tuned(city, goals=[(Delay(), *goal)], values=30)
    assert found.meets_goals
    assert found.value == pytest.approx(best, rel=0.03)
    assert (found.value <= best) if goal[0] == "<=" else (found.value >= best)
    column = found.column(Delay())
    met = found.table[column] <= best if goal[0] == "<=" else found.table[column] >= best
    assert found.table["meets_goals"].tolist() == met.tolist()
    assert "meets all goals" in repr(found)


def test_without_a_value_that_meets_the_goals_the_nearest_is_returned_and_named_so(city):
    found = tuned(city, goals=[(Delay(), ">=", 500), (Delay("valley"), ">=", 0)], objective=pg.Compression(), values=6)
    assert (found.value, found.meets_goals) == (100, False)
    assert not found.table["meets_goals"].any()
    assert "nearest" in repr(found)


def test_larger_values_of_the_objective_can_be_better(city):
    assert tuned(city, objective=Delay(), maximize=True, values=4).value == 100
    assert tuned(city, objective=Delay(), values=4).value == 1


def test_a_goal_without_any_value_does_not_count_and_one_without_some_is_not_met_there(city):
    missing = tuned(city, goals=[(Delay("missing"), "<=", 1), (Delay(), "<=", 10)], objective=Delay(), maximize=True)
    assert missing.meets_goals
    assert missing.value == pytest.approx(10, rel=0.02)
    assert "could be measured" in repr(missing)
    nothing = tuned(city, goals=[(Delay("missing"), "<=", 1)], objective=Delay(), values=3)
    assert not nothing.meets_goals
    assert not nothing.table["meets_goals"].any()
    some = tuned(city, goals=[(Delay("until 80"), "<=", 1000)], objective=Delay(), maximize=True)
    assert some.meets_goals
    assert some.value == pytest.approx(80, rel=0.02)
    assert not some.table["meets_goals"][some.table["amount"] > 80].any()


def test_an_objective_without_a_value_is_never_best(city):
    found = tuned(city, objective=Delay("until 80"), maximize=True)
    assert found.value == pytest.approx(80, rel=0.02)


def test_a_whole_number_stays_one(city):
    found = tuned(city, parameter="count", bounds=(2, 9), objective=Delay(), maximize=True, goals=[(Delay(), ">=", 0)])
    assert found.table["count"].tolist() == [2, 3, 4, 5, 6, 7, 8, 9]
    assert (type(found.value), found.value, found.mechanism.count) == (int, 9, 9)


def test_the_original_is_indexed_once_for_all_runs(city):
    INDEXED.clear()
    found = tuned(city, goals=[(Delay(), "<=", 50), (Delay(), ">=", 2)], values=12)
    assert len(found.table) > 6
    assert INDEXED == {"plain": 1, "valley": 1}
    assert list(found.table.columns) == ["amount", repr(Delay()), repr(Delay("valley")), "meets_goals", "seconds"]


def test_values_are_those_of_evaluate_and_a_seed_repeats_them():
    parts = pg.make_city(users=4, days=3, recorder="phone").promesse.prepare(tz="Europe/Paris", keep_user=True)
    choices = {
        "bounds": (0.002, 0.05),
        "goals": [(pg.PoiRetrieval(), "<=", 20)],
        "objective": pg.RangeQueryDistortion(50),
    }
    first, again = (pg.tune(parts, pg.GeoIndistinguishability(0.01), values=4, seed=7, **choices) for _ in range(2))
    columns = first.table.columns.drop("seconds")
    pd.testing.assert_frame_equal(first.table[columns], again.table[columns])
    for row in first.table.itertuples():
        mechanism = pg.GeoIndistinguishability(row.epsilon)
        expected = pg.evaluate({"a": parts}, [mechanism], [pg.PoiRetrieval(), pg.RangeQueryDistortion(50)], seeds=[7])
        assert [row.PoiRetrieval, row.RangeQueryDistortion] == expected.value.tolist()
    other = pg.tune(parts, pg.GeoIndistinguishability(0.01), values=4, **choices).table
    assert other["PoiRetrieval"].tolist() != first.table["PoiRetrieval"].tolist()


def test_each_user_gets_the_value_that_it_would_get_alone():
    parts = pg.make_city(users=3, days=3, recorder="phone").promesse.prepare(tz="Europe/Paris", keep_user=True)
    choices = {"bounds": (50, 800), "goals": [(pg.PoiRetrieval(), "<=", 5)], "objective": pg.Compression(), "values": 6}
    choices |= {"maximize": True, "seed": 1}
    found = pg.tune(parts, pg.Promesse(200), per_user=True, **choices)
    assert found.value.index.tolist() == ["user-000", "user-001", "user-002"]
    assert list(found.table.columns)[:2] == ["user", "epsilon"]
    for user, value in found.value.items():
        alone = pg.tune(parts[parts["user"].str.startswith(user)], pg.Promesse(200), **choices)
        assert (alone.value, alone.meets_goals) == (value, found.meets_goals[user])
    assert "of 3 users meet all goals" in repr(found)
    assert isinstance(tuning(found), Axes)


def test_what_the_best_value_drops_is_warned_of_once():
    # Two users walk 1,000 m and 10,000 m: from 500 m on, the first has two samples at most and is dropped.
    times = pd.date_range("2024-01-01", periods=11, freq="60s", tz="UTC")
    frames = [
        pd.DataFrame({"user": user, "time": times, "x": step * np.arange(11.0)})
        for user, step in (("a", 99), ("b", 990))
    ]
    frame = pd.concat(frames, ignore_index=True)
    traces = pg.Traces.from_arrays(
        frame["x"],
        np.zeros(22),
        times=frame["time"].astype("int64"),
        users=["a", "b"],
        counts=[11, 11],
        crs="EPSG:32631",
    )
    choices = {"goals": [(pg.Compression(), "<=", 1000)], "objective": pg.Compression(), "values": 4}
    with pytest.warns(UserWarning, match="1 of 2 traces") as caught:
        found = pg.tune(traces, pg.Promesse(200), bounds=(100, 900), **choices)
    assert found.value == 900
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"parameter": "size"}, ValueError, "no parameter 'size'.*'amount' and 'count'"),
        ({"bounds": (5, 5)}, ValueError, "'bounds' parameter of tune"),
        ({"bounds": (0, 5)}, ValueError, "'bounds' parameter of tune"),
        ({"bounds": 5}, TypeError, "'bounds' parameter of tune"),
        ({"bounds": (1, 2, 3)}, ValueError, "'bounds' parameter of tune"),
        ({"goals": []}, ValueError, "'goals' parameter of tune"),
        ({"goals": [(Delay(), "<", 1)]}, TypeError, "'goals' parameter of tune"),
        ({"goals": [("Delay", "<=", 1)]}, TypeError, "'goals' parameter of tune"),
        ({"goals": [(Delay(), "<=", math.nan)]}, ValueError, "'goals' parameter of tune"),
        ({"objective": "Delay"}, TypeError, "'objective' parameter of tune"),
        ({"values": 1}, ValueError, "'values' parameter of tune"),
        ({"per_user": 1}, TypeError, "'per_user' parameter of tune"),
    ],
)
def test_wrong_parameters_are_refused(city, wrong, error, words):
    with pytest.raises(error, match=words):
        tuned(city, **wrong)
    with pytest.raises(TypeError, match="'mechanism' parameter of tune"):
        pg.tune(city, 200, bounds=(1, 2), goals=[(Delay(), "<=", 1)], objective=Delay())


def test_rounding_errors_do_not_fill_an_axis(city):
    promesse = pg.tune(
        city,
        pg.Promesse(200),
        bounds=(50, 500),
        goals=[(pg.Compression(), "<=", 50)],
        objective=pg.SpatialError(),
        values=3,
    )
    assert 0 < promesse.table[promesse.column(pg.SpatialError())].max() < 1e-6
    axes = tuning(promesse)
    low, high = axes.figure.axes[1].get_ylim()
    assert high - low > 1
    axes.figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_xticklabels(which="both") if label.get_text()]
    assert labels
    assert not any("e" in text or "$" in text for text in labels)  # plain numbers


def test_the_figure_has_a_line_for_each_metric_and_marks_the_best_value(city, tmp_path):
    found = tuned(city, goals=[(Delay(), "<=", 20)], values=8)
    axes = tuning(found)
    (line, filled), xs = axes.get_lines()[:2], found.table["amount"].tolist()
    assert line.get_xdata().tolist() == xs
    assert line.get_ydata().tolist() == found.table[found.column(Delay())].tolist()
    assert filled.get_xdata().tolist() == found.table["amount"][found.table["meets_goals"]].tolist()
    assert axes.get_xlabel() == "amount (m)"
    assert f"{found.value:g}" in axes.get_title()
    assert len(axes.get_legend().get_texts()) == 2
    axes.figure.savefig(tmp_path / "figure.png")
    apart = tuning(tuned(city, objective=pg.Compression(), values=4))
    assert len(apart.figure.axes) == 2  # the objective has another unit
    with pytest.raises(TypeError, match="'result' parameter of tuning"):
        tuning(found.table)
