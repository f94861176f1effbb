"""Re-identification by footprints: examples by hand, laws, and the plain twin."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import naive_attacks as twin
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SECOND

import promesse_geo as pg
from promesse_geo import HeatMapReidentification, Traces

cells = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12)


def visiting(visits, names):
    """Traces with one record in the middle of each visited cell of 800 m."""
    kept = [(name, rows) for name, rows in zip(names, visits, strict=True) if rows]
    rows = np.array([row for _, rows in kept for row in rows], float).reshape(-1, 2) * 800 + 400
    return Traces.from_arrays(
        *rows.T,
        times=np.arange(len(rows)) * SECOND,
        users=[name for name, _ in kept],
        counts=np.array([len(rows) for _, rows in kept], int),
        crs="EPSG:32610",
        space="plane",
    )


def test_the_nearest_footprint_by_hand():
    known = visiting([[(0, 0), (0, 1)], [(5, 5)]], ["a", "b"])
    second = visiting([[(0, 0)], [(5, 5)], [(0, 0)]], ["a-00000", "a-00001", "b-00000"])
    detail = HeatMapReidentification().detail(known, second)
    # a: p = 1/2 in cells (0, 0) and (5, 5); the known a has 1/2 in (0, 0) and (0, 1), the known b 1 in (5, 5).
    to_a = 2 * 0.5 * math.log(2)
    to_b = 0.5 * math.log(2 * 0.5 / 1.5) + math.log(2 / 1.5) + 0.5 * math.log(2)
    assert detail.distance.tolist() == pytest.approx(
        [to_b, 0.5 * math.log(2 / 3) + math.log(4 / 3) + 0.5 * math.log(2)]
    )
    assert to_b < to_a
    assert detail["rank"].tolist() == [2, 2]
    assert HeatMapReidentification(k=2).measure(known, second) == 100
    assert detail.attrs["guess"] == 50
    by_part = HeatMapReidentification(unit="trace").detail(known, second)
    assert by_part.index.tolist() == ["a-00000", "a-00001", "b-00000"]
    assert by_part.identified.tolist() == [1, 0, 0]


def test_ties_share():
    known = visiting([[(0, 0)], [(0, 0)], [(1, 0)]], ["a", "b", "c"])
    detail = HeatMapReidentification().detail(known, visiting([[(0, 0)], [(3, 3)]], ["a-00000", "c-00000"]))
    assert detail.identified.tolist() == [0.5, 0, pytest.approx(1 / 3)]
    assert detail["rank"].tolist() == pytest.approx([1.5, math.nan, 2], nan_ok=True)
    assert HeatMapReidentification().value(detail) == pytest.approx(100 * (0.5 + 1 / 3) / 3)


def test_raw_data_is_recognized_and_nothing_is_not():
    known = visiting([[(i, 0)] for i in range(5)], list("abcde"))
    parts = visiting([[(i, 0)] for i in range(5)], [f"{name}-00000" for name in "abcde"])
    assert HeatMapReidentification().measure(known, parts) == 100
    assert HeatMapReidentification().measure(known, parts.select(np.zeros(5, bool))) == 0


@given(known=st.lists(cells, min_size=1, max_size=5), second=st.lists(cells, min_size=5, max_size=5))
def test_distances_are_those_of_the_twin(known, second):
    names = list("abcde")[: len(known)]
    original = visiting(known, names)
    if not len(original):
        return
    protected = visiting(second[: len(known)], [f"{name}-00000" for name in names])
    present = [name for name in names if name in list(original.users)]
    if not any(name[0] in present for name in protected.users):
        return
    with pytest.warns() if any(name[0] not in present for name in protected.users) else _no_warning():
        detail = HeatMapReidentification().detail(original, protected)
    for name in present:
        row = second[names.index(name)]
        distances = [twin.topsoe(row, known[names.index(other)]) for other in present]
        true = distances[present.index(name)]
        if not row:
            assert math.isnan(detail.loc[name, "distance"])
            assert detail.loc[name, "identified"] == 0
            continue
        assert detail.loc[name, "distance"] == pytest.approx(min(distances), abs=1e-12)
        nearer, ties = sum(d < true - 1e-12 for d in distances), sum(abs(d - true) <= 1e-12 for d in distances)
        assert nearer + 1 <= detail.loc[name, "rank"] <= nearer + ties


class _no_warning:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        return False


def test_the_attacker_may_know_the_mechanism():
    city = pg.make_city(users=5, days=4, seed=2, recorder="phone")
    metric = HeatMapReidentification(known=pg.Promesse(200))
    known, second = metric.split(city)
    safe = second.promesse.smooth(200)
    expected = metric.measure(known, safe)
    table = pg.evaluate({"city": city}, [pg.Promesse(200)], [HeatMapReidentification(known="same")])
    assert table.value.tolist() == [expected]
    assert table.unit.tolist() == ["%"]
    with pytest.raises(ValueError, match=r"known=pg\.Promesse"):
        HeatMapReidentification(known="same").measure(known, safe)


@dataclass(frozen=True)
class Shaken(pg.Mechanism):
    """Move everything by metres drawn from the seed, and keep the seeds that were used."""

    seed: int | None = None
    used: ClassVar[list] = []

    def _protect(self, traces):
        self.used.append(self.seed)
        shift = np.random.default_rng(self.seed).normal(size=(traces.records, 1)) * 1e-4
        points = traces.points + shift
        return replace(traces, points=points / np.linalg.norm(points, axis=1)[:, None])


def test_an_attacker_who_knows_a_random_mechanism_has_another_seed_of_the_run():
    city = pg.make_city(users=4, days=4, seed=2, recorder="phone")
    metrics = [HeatMapReidentification(known="same")]
    runs = []
    for _ in range(2):
        Shaken.used.clear()
        runs.append(pg.evaluate({"city": city}, [Shaken()], metrics, seeds=2).value.tolist())
        assert None not in Shaken.used
        assert len(set(Shaken.used)) == 4  # of each run, and of the attacker in it
    assert runs[0] == runs[1]


def test_parameters_are_checked_and_shown():
    metric = HeatMapReidentification(cell=400, known=pg.Promesse(100), unit="trace", k=5)
    assert eval(repr(metric), {"HeatMapReidentification": HeatMapReidentification, "Promesse": pg.Promesse}) == metric
    assert metric.unit == "%"
    assert metric != HeatMapReidentification(cell=400, known=pg.Promesse(100), k=5)
    assert hash(metric) == hash(HeatMapReidentification(cell=400, known=pg.Promesse(100), unit="trace", k=5))
    for parameters in ({"cell": 0}, {"known": "other"}, {"unit": "part"}, {"k": 0}):
        with pytest.raises((TypeError, ValueError), match=next(iter(parameters))):
            HeatMapReidentification(**parameters)


@pytest.mark.parametrize("known", [None, "same"])
def test_prepared_parts_keep_their_names_in_the_second_half(known):
    parts = pg.make_city(users=4, days=4).promesse.prepare(keep_user=True)
    metric = pg.HeatMapReidentification(known=known)
    _, second = metric.split(parts)
    assert set(second["user"]) <= set(parts["user"])
    [value] = pg.evaluate({"parts": parts}, [pg.GeoIndistinguishability(0.1, seed=1)], [metric])["value"]
    assert value == 100
