"""Wait for Me: the program's own rows, the slow twin, and what every published group must be."""

import json
import math
import time
import warnings
from dataclasses import replace
from pathlib import Path

import geopandas as gpd
import naive_w4m as naive
import numba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_cli import done, failed, run

import promesse_geo as pg
from promesse_geo import threads
from promesse_geo.audit import file_mechanism
from promesse_geo.mechanisms import base, clustering
from promesse_geo.mechanisms.wait_for_me import c_rand

GRID = 'LOCAL_CS["grid",UNIT["metre",1]]'
GOLDEN = Path(__file__).parent / "data" / "w4m"
CASES = json.loads((GOLDEN / "cases.json").read_text())
JIT = not numba.config.DISABLE_JIT
SECOND = 1_000_000_000


def columns(case, kind):
    return np.loadtxt(GOLDEN / f"{case['name']}.{kind}.tsv")


def as_frame(rows):
    """Rows of (id, second, x, y) as a frame in a plane."""
    return gpd.GeoDataFrame(
        {"user": rows[:, 0].astype(int), "time": pd.to_datetime(rows[:, 1].astype(np.int64), unit="s", utc=True)},
        geometry=gpd.points_from_xy(rows[:, 2], rows[:, 3]),
        crs=GRID,
    )


def program_of(case):
    return pg.WaitForMe.v1_1(
        case["k"],
        case["delta"],
        max_radius=case["radius_max"],
        max_trash=case["trash_max"] / len(np.unique(columns(case, "in")[:, 0])),
        cost_cap=case["M"],
    )


def quietly(mechanism, data):
    """Protect without the warning of the trash, which is looked at by itself."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Wait for Me dropped")
        return mechanism.protect_with_report(data)


@pytest.mark.compiled
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_row_is_the_programs(case):
    safe, _ = quietly(program_of(case), as_frame(columns(case, "in")))
    rows = np.column_stack((safe["user"], safe["time"].astype(np.int64) // SECOND, safe.geometry.x, safe.geometry.y))
    printed = columns(case, "out")
    printed = printed[np.argsort(printed[:, 0], kind="stable")]  # ours stand in order of users
    assert rows.shape == printed.shape
    assert np.array_equal(rows[:, :2], printed[:, :2])
    assert np.abs(rows[:, 2:] - printed[:, 2:]).max() <= 0.001


@pytest.mark.compiled
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_figure_is_the_programs(case):
    _, report = quietly(program_of(case), as_frame(columns(case, "in")))
    figures = report.summary
    names = (
        *("traces", "records", "pseudo_diameter", "trash", "trashed_records", "discernibility"),
        *("space_translation", "time_translation", "moved", "shifted", "created", "deleted"),
        *("space_translation_per_trace", "time_translation_per_trace"),
        *("space_translation_per_record", "time_translation_per_record"),
    )
    for name, line in zip(names, case["stats"], strict=True):
        printed = line.split(":")[1].strip()
        digits = len(printed.partition(".")[2])
        assert f"{figures[name]:.{digits}f}" == printed, name


@pytest.mark.compiled
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_slow_twin_gives_the_programs_rows_too(case):
    rows = columns(case, "in")
    numbers = list(dict.fromkeys(rows[:, 0].tolist()))
    traces = [tuple(rows[rows[:, 0] == number, 1:].T.tolist()) for number in numbers]
    result = naive.wait_for_me(
        traces,
        k=case["k"],
        delta=float(case["delta"]),
        max_radius=case["radius_max"],
        max_trash=case["trash_max"] / len(numbers),
        cap=case["M"],
        radius_test="v1.1",
        single=True,
        index_of_chunk=lambda chunk: naive.v1_1_index(),
    )
    ours = [
        (numbers[member], traces[pivot][0][i], *place)
        for pivot, members in result.clusters
        for member in members
        for i, place in enumerate(result.published[member][1])
    ]
    assert np.abs(np.array(ours) - columns(case, "out")).max() <= 0.001


def test_the_random_numbers_are_those_of_c():
    stream = c_rand(1)
    assert [next(stream) for _ in range(5)] == [1804289383, 846930886, 1681692777, 1714636915, 1957747793]
    twin = naive.c_rand(77)
    ours = c_rand(77)
    assert [next(ours) for _ in range(100)] == [next(twin) for _ in range(100)]


def crowd(seed, traces, kind):
    """Random traces in a plane: (seconds, x, y) lists.

    "grid": whole numbers, so that distances and costs tie; "town": walks that meet; "copies": the same few traces
    again and again; "still": nobody moves, many records at one moment. Some have a single record.
    """
    rng = np.random.default_rng(seed)
    out = []
    for number in range(traces):
        n = int(rng.choice([1, 2, 3, 20, 40])) if kind != "town" else int(rng.integers(1, 70))
        if kind == "copies" and number > 2:
            out.append(out[int(rng.integers(0, number))])
        elif kind == "still":
            out.append(([1_000.0] * n, [float(rng.integers(0, 3)) * 100] * n, [0.0] * n))
        elif kind == "town":
            steps = rng.normal(0, 150, (2, n)).cumsum(axis=1) + rng.normal(0, 600, (2, 1))
            seconds = rng.integers(0, 3000) + rng.integers(0, 90, n).cumsum()
            out.append((seconds.astype(float).tolist(), *steps.tolist()))
        else:
            steps = rng.integers(-1, 2, (2, n)).cumsum(axis=1) * 100 + rng.integers(-5, 6, (2, 1)) * 100
            seconds = rng.integers(0, 5) * 60 + np.arange(n) * 60
            out.append((seconds.astype(float).tolist(), *steps.astype(float).tolist()))
    return out


def as_traces(people):
    return pg.Traces.from_arrays(
        np.concatenate([x for _, x, _ in people]),
        np.concatenate([y for _, _, y in people]),
        times=(np.concatenate([t for t, _, _ in people]) * SECOND).astype(np.int64),
        users=range(len(people)),
        counts=np.array([len(t) for t, _, _ in people]),
        crs=GRID,
    )


def assert_equal(result, safe, report, people):
    """Fast and slow made the same clusters and published the same points."""
    groups = {}
    for user, row in report.groups.iterrows():
        groups.setdefault(int(row["cluster"]), []).append(user)
    assert groups.pop(-1, []) == sorted(result.trash)
    assert [groups[number] for number in range(len(groups))] == [members for _, members in result.clusters]
    assert sorted(report.groups.index[report.groups["is_pivot"]]) == sorted(pivot for pivot, _ in result.clusters)
    assert (report.final_radius, report.restarts) == (result.radius, result.restarts)
    assert safe.users.tolist() == sorted(result.published)
    for number, user in enumerate(safe.users):
        pivot, way = result.published[user]
        own = slice(safe.offsets[number], safe.offsets[number + 1])
        assert np.array_equal(safe.points[own], np.array(way))
        assert (safe.times[own] / 1e9).tolist() == people[pivot][0]
    figures = result.figures
    assert report.pseudo_diameter == pytest.approx(figures["pseudo diameter"])
    assert report.space_translation == pytest.approx(figures["space"], abs=1e-6)
    assert report.time_translation == pytest.approx(figures["time"], abs=1e-6)
    assert report.records - report.trashed_records == figures["inputs"]
    for ours, theirs in (
        *(("moved", "moves"), ("shifted", "shifts"), ("created", "created"), ("deleted", "deleted")),
        *(("trash", "trash"), ("trashed_records", "trashed points"), ("discernibility", "discernibility")),
    ):
        assert getattr(report, ours) == figures[theirs], ours


kinds = st.sampled_from(("grid", "town", "copies", "still"))


@given(
    seed=st.integers(0, 10**6),
    kind=kinds,
    k=st.integers(2, 8),
    more=st.integers(0, 22),
    delta=st.sampled_from((50.0, 100.0, 200.0)),
    radius=st.sampled_from((1.0, 300.0, 5000.0)),
    trash=st.sampled_from((0, 0.1, 0.29, 1)),
    cap=st.sampled_from((1, 10, 50, 1000)),
    test=st.sampled_from(("members", "v1.1")),
    program=st.sampled_from((None, "v1.1")),
)
def test_fast_equals_its_slow_twin(seed, kind, k, more, delta, radius, trash, cap, test, program):
    people = crowd(seed, k + more, kind)
    mechanism = pg.WaitForMe(
        *(k, delta), max_radius=radius, max_trash=trash, cost_cap=cap, radius_test=test, program=program, seed=seed
    )
    safe, report = quietly(mechanism, as_traces(people))
    result = naive.wait_for_me(
        people,
        k=k,
        delta=delta,
        max_radius=radius,
        max_trash=trash,
        cap=cap,
        radius_test=test,
        single=program == "v1.1",
        index_of_chunk=mechanism._draws(),
    )
    assert_equal(result, safe, report, people)


@given(seed=st.integers(0, 10**6), kind=kinds, traces=st.integers(70, 130), program=st.sampled_from((None, "v1.1")))
def test_chunks_equal_those_of_the_slow_twin(seed, kind, traces, program):
    people = [tuple(axis[:3] for axis in trace) for trace in crowd(seed, traces, kind)]
    mechanism = pg.WaitForMe(2, 100, max_radius=200, chunk=True, program=program, seed=seed)
    safe, report = quietly(mechanism, as_traces(people))
    draws = mechanism._draws()
    result = naive.wait_for_me(
        people, delta=100.0, max_radius=200.0, chunk=True, single=program == "v1.1", index_of_chunk=draws
    )
    assert_equal(result, safe, report, people)


@pytest.mark.parametrize(("traces", "sizes"), [(79, [79]), (80, [40, 40]), (119, [40, 79]), (120, [40, 40, 40])])
def test_chunks_have_twenty_k_traces_and_the_last_one_fewer_than_twice_as_many(traces, sizes):
    places = np.repeat(np.random.default_rng(1).permutation(traces)[:, None], 6, axis=1) * 1.0
    found = clustering.chunks(places, k=2)
    assert [len(chunk) for chunk in found] == sizes
    assert sorted(np.concatenate(found)) == list(range(traces))


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.sampled_from((1, 2, 17, 100, 400 if JIT else 120)), min_size=2, max_size=4),
    cap=st.sampled_from((1, 10, 50, 1000)),
    gap=st.sampled_from((0, 300, 3_000, 40_000)),
    step=st.sampled_from((0.0, 20.0, 400.0)),
)
def test_skipping_far_stretches_changes_no_distance(seed, sizes, cap, gap, step):
    rng = np.random.default_rng(seed)
    ways = []
    for n in sizes:
        pauses = np.where(rng.random(n) < 0.05, rng.integers(0, gap + 1, n), rng.integers(0, 60, n))
        seconds = (rng.integers(0, gap + 1) + pauses.cumsum()).astype(float)
        ways.append((*(rng.normal(0, step, (2, n)).cumsum(axis=1).round(rng.integers(0, 3))), seconds * 7.5))
    x, y, z = (np.concatenate([way[axis] for way in ways]) for axis in range(3))
    ends = np.cumsum(sizes)
    begins = ends - sizes
    boxes = np.array([(x[a:b].min(), x[a:b].max(), y[a:b].min(), y[a:b].max()) for a, b in zip(begins, ends)])  # noqa: B905
    tracks = clustering.Tracks(x, y, z, begins, ends, boxes)
    found = tracks.distances(np.arange(len(sizes)), size=200.0, cap=cap, bar=False)
    points = [np.column_stack(way).tolist() for way in ways]
    for p, P in enumerate(points):
        for q, Q in enumerate(points):
            assert found[p, q] == naive.lst(P, Q, s=200.0, cap=cap)
            largest = naive.max_2d(P, Q, s=200.0, cap=cap)
            assert tracks.within(p, q, size=200.0, cap=cap, limit=math.inf) == largest
            assert (tracks.within(p, q, size=200.0, cap=cap, limit=largest / 2) > largest / 2) == (largest > 0)


def test_an_alignment_by_hand():
    """P = 0, 100, 200 m at 0, 10, 20 s; Q = 0, 200 m at 0, 10 s; speeds 10 and 20, mean 15; δ = 100, so c = ⌊d/100⌋.

    (P0, Q0) costs 0; (P1, Q1): 100 m, no time apart: 1; (P0, Q1): √(200² + 150²) = 250 m: 2; (P1, Q0): √(100² + 150²)
    = 180 m: 1. Of equals both: (P1, Q1), then P2 against Q1: no way apart, 150 m of time: 1. LST = 2; Max2D = 100.
    """
    x, y, z = np.array([0.0, 100, 200, 0, 200]), np.zeros(5), np.array([0.0, 10, 20, 0, 10]) * 15
    tracks = clustering.Tracks(
        *(x, y, z, np.array([0, 3]), np.array([3, 5])), np.array([[0.0, 200.0, 0, 0], [0.0, 200.0, 0, 0]])
    )
    assert tracks.distances(np.arange(2), size=100.0, cap=10, bar=False)[0, 1] == 2
    assert tracks.within(0, 1, size=100.0, cap=10, limit=math.inf) == 100


def test_a_trace_that_is_ever_one_step_from_being_near_in_time_is_not_skipped():
    """P is 100 m of time behind Q, in steps of 10 m: of the next pairs only (P, next of Q) costs less than the cap."""
    z = np.concatenate((100 + 10 * np.arange(40.0), 10 * np.arange(40.0)))
    still, begins, ends = np.zeros(80), np.array([0, 40]), np.array([40, 80])
    tracks = clustering.Tracks(still, still, z, begins, ends, np.zeros((2, 4)))
    points = [[(0.0, 0.0, time) for time in z[begin:end]] for begin, end in zip(begins, ends, strict=True)]
    found = tracks.distances(np.arange(2), size=9.5, cap=10, bar=False)
    assert found.tolist() == [[naive.lst(P, Q, s=9.5, cap=10) for Q in points] for P in points]


@pytest.fixture(scope="module")
def city():
    return pg.make_city(users=9, days=1, as_traces=True, recorder="phone")


def as_bytes(traces):
    return traces.points.tobytes(), traces.times.tobytes(), traces.users.tolist(), traces.offsets.tolist()


def assert_groups_are_published_well(before, safe, report, *, k, delta):
    """Each group has k members at least, with equal times, pairwise within delta; its pivot is as it was."""
    table = report.groups
    assert table.index.tolist() == before.users.tolist()
    assert safe.users.tolist() == table.index[table["cluster"] >= 0].tolist()
    there = before.space.local_plane(before.points)
    x, y = there.project(safe.points)
    place = {user: slice(safe.offsets[i], safe.offsets[i + 1]) for i, user in enumerate(safe.users)}
    own = {user: slice(before.offsets[i], before.offsets[i + 1]) for i, user in enumerate(before.users)}
    for number, group in table[table["cluster"] >= 0].groupby("cluster"):
        assert len(group) >= k
        pivots = group.index[group["is_pivot"]].tolist()
        assert len(pivots) == 1, number
        assert np.array_equal(safe.points[place[pivots[0]]], before.points[own[pivots[0]]])
        for one in group.index:
            assert np.array_equal(safe.times[place[one]], before.times[own[pivots[0]]])
            for other in group.index:
                dx, dy = x[place[one]] - x[place[other]], y[place[one]] - y[place[other]]
                assert np.hypot(dx, dy).max() <= delta + 1e-6
    assert report.clusters == table["cluster"].max() + 1
    assert report.trash == (table["cluster"] == -1).sum()


@pytest.mark.compiled
@pytest.mark.parametrize("space", ["sphere", "plane"])
@pytest.mark.parametrize(("k", "delta", "trash"), [(2, 200, 0), (3, 50, 0.3), (4, 1000, 0.1)])
def test_members_go_together_and_the_pivot_stays(city, space, k, delta, trash):
    before = city
    if space == "plane":
        before = pg.Traces.from_frame(city.to_frame().to_crs(32631))
        assert before.space.name == "plane"
    safe, report = quietly(pg.WaitForMe(k, delta, max_trash=trash, seed=4), before)
    assert_groups_are_published_well(before, safe, report, k=k, delta=delta)
    assert report.trash <= trash * len(before)
    assert safe.time_format.unit == "ns"


@pytest.mark.compiled
@given(seed=st.integers(0, 10**6), kind=kinds, k=st.integers(2, 4), chunk=st.booleans())
def test_groups_are_published_well_in_any_crowd(seed, kind, k, chunk):
    before = as_traces(crowd(seed, 30, kind))
    safe, report = quietly(pg.WaitForMe(k, 100, max_radius=500, max_trash=0.2, chunk=chunk, seed=seed), before)
    assert_groups_are_published_well(before, safe, report, k=k, delta=100)
    assert report.trash <= 6


@pytest.mark.compiled
def test_the_same_seed_gives_the_same_bytes_with_any_number_of_threads(city, monkeypatch):
    for chunk in (False, True):
        mechanism = pg.WaitForMe(2, 200, chunk=chunk, seed="a")
        one = as_bytes(quietly(mechanism, city)[0])
        for number in (1, 2, 5):
            with monkeypatch.context() as patch:
                patch.setattr(threads, "number", lambda number=number: number)
                patch.setattr(threads, "_LEAST", 1)
                patch.setattr("promesse_geo.mechanisms.published_groups._RECORDS", 500)
                assert as_bytes(quietly(mechanism, city)[0]) == one


def test_another_seed_draws_other_pivots():
    before = as_traces(crowd(3, 24, "town"))
    pivots = {
        tuple(quietly(pg.WaitForMe(max_trash=0, seed=seed), before)[1].groups["is_pivot"]) for seed in (1, 2, 3, None)
    }
    assert len(pivots) > 1


@pytest.mark.compiled
def test_rows_in_any_order_give_the_same(city):
    frame = city.to_frame()
    mechanism = pg.WaitForMe(2, 200, max_trash=0, seed=1)
    turned = frame.sample(frac=1, random_state=0)
    assert mechanism.protect(frame).equals(mechanism.protect(turned))


def test_the_program_takes_traces_in_the_order_in_which_a_frame_names_them():
    rows = columns(CASES[0], "in")
    turned = rows.copy()
    turned[:, 0] = rows[:, 0].max() - rows[:, 0]
    safe, other = (quietly(program_of(CASES[0]), as_frame(table))[0] for table in (rows, turned))
    assert safe["user"].value_counts().to_dict() == {
        rows[:, 0].max() - user: count for user, count in other["user"].value_counts().items()
    }


def test_the_program_takes_a_frame_as_it_stands_and_all_else_by_name():
    rows = columns(CASES[0], "in")
    rows[:, 0] = rows[:, 0].max() - rows[:, 0]
    frame, mechanism = as_frame(rows), program_of(CASES[0])
    by_name = frame.sort_values("user", kind="stable", ignore_index=True)
    as_it_stands, named = quietly(mechanism, frame)[0], quietly(mechanism, by_name)[0]
    assert not as_it_stands.equals(named)
    assert quietly(mechanism, pg.Traces.from_frame(frame))[0].to_frame().equals(named)
    metric = pg.SpatialError()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the trash, and of users that are not in what is published
        evaluated = pg.evaluate({"case": frame}, [mechanism], [metric])["value"].item()
        errors = [metric.measure(frame, safe) for safe in (named, as_it_stands)]
    assert evaluated == errors[0] != errors[1]


def test_the_help_says_in_which_order_the_program_takes_traces():
    said = " ".join(done("wait-for-me", "--help").stdout.split())
    assert "traces in the order of their names" in said
    assert "never publish with one" in said


def test_the_program_thins_long_traces_and_says_so():
    n = 25_000
    people = [(np.arange(n, dtype=float).tolist(), (np.arange(n) * 2.0).tolist(), [0.0] * n) for _ in range(2)]
    with pytest.warns(UserWarning, match="30,000 records of 2 traces"):
        safe, report = pg.WaitForMe.v1_1().protect_with_report(as_traces(people))
    assert report.records == safe.records == 20_000
    kept = [i for i in range(n) if math.fmod(i, n / 10_000) < 1]
    assert (safe.times[:10_000] // SECOND).tolist() == kept
    assert pg.WaitForMe().protect(as_traces(people)).records == 2 * n


def test_the_program_reads_whole_seconds(city):
    moved = pg.Traces.from_frame(city.to_frame().assign(time=lambda frame: frame["time"] + pd.Timedelta("300ms")))
    safe, _ = quietly(pg.WaitForMe.v1_1(max_trash=0), moved)
    assert np.all(safe.times % SECOND == 0)
    safe, _ = quietly(pg.WaitForMe(max_trash=0), moved)
    assert np.all(safe.times % SECOND == 300_000_000)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_fewer_than_k_traces_are_refused(count):
    before = as_traces(crowd(1, 6, "grid"))
    before = before.select(before.trace_numbers < count)
    with pytest.raises(ValueError, match=f"with k = 5 needs at least 5 traces. Got {count}"):
        pg.WaitForMe(5).protect(before)


def test_k_traces_are_one_group():
    before = as_traces(crowd(1, 5, "town"))
    safe, report = pg.WaitForMe(5, max_trash=0, seed=1).protect_with_report(before)
    assert (report.clusters, report.trash, len(safe)) == (1, 0, 5)


@pytest.mark.parametrize(("radius", "metres", "final", "restarts"), [(5, 7, 7, 1), (5, 7.5, 10, 2), (1, 3.5, 4, 3)])
def test_the_radius_grows_by_half_rounded_down_and_by_a_metre_at_least(radius, metres, final, restarts):
    x, y, times = np.zeros(4), np.array([0, 0, metres, metres]), np.tile([0, 10**9], 2)
    traces = pg.Traces.from_arrays(x, y, times=times, users=["a", "b"], counts=[2, 2], crs="EPSG:32631", space="plane")
    _, report = quietly(pg.WaitForMe(2, 100, max_radius=radius, max_trash=0, seed=1), traces)
    assert (report.final_radius, report.restarts) == (final, restarts)


def test_all_may_be_trash():
    people = [([0.0, 60.0], [1e5 * number, 1e5 * number + 50], [0.0, 0.0]) for number in range(4)]
    with pytest.warns(UserWarning, match=r"4 of 4 traces \(8 records\): .* within 10 m"):
        safe, report = pg.WaitForMe(max_radius=10, max_trash=1, seed=1).protect_with_report(as_traces(people))
    assert (len(safe), safe.records, report.clusters) == (0, 0, 0)
    for radius, shown in ((0.001, r"0\.001"), (1_234.5678, r"1,234\.5678")):
        with pytest.warns(UserWarning, match=f"within {shown} m"):
            pg.WaitForMe(max_radius=radius, max_trash=1, seed=1).protect(as_traces(people))
    assert math.isnan(report.summary["space_translation_per_trace"])
    assert len(safe.to_frame()) == 0


def test_it_comes_back_in_crs_zone_and_columns(city):
    frame = city.to_frame().to_crs(2154)
    frame = frame.rename(columns={"user": "cab", "time": "stamp"}).rename_geometry("where")
    frame["stamp"] = frame["stamp"].dt.tz_convert("Europe/Paris").dt.as_unit("s")
    safe = frame.promesse(user="cab", time="stamp").wait_for_me(2, 200, max_trash=0)
    assert list(safe.columns) == ["cab", "stamp", "where"]
    assert safe.crs == frame.crs
    assert str(safe["stamp"].dtype) == "datetime64[ns, Europe/Paris]"
    assert list(safe.index) == list(range(len(safe)))


def test_frames_and_traces_give_the_same(city):
    mechanism = pg.WaitForMe(3, 100, max_trash=0, seed=2)
    frame, report = mechanism.protect_with_report(city.to_frame())
    safe, other = mechanism.protect_with_report(city)
    assert frame.equals(safe.to_frame())
    assert report == other
    assert report.groups.equals(other.groups)
    assert as_bytes(mechanism.protect(city)) == as_bytes(safe) == as_bytes(mechanism._protect(city))


def far_apart(degrees):
    """Two pairs of traces, so many degrees of latitude from each other."""
    latitudes = np.repeat([0.0, 0.0, degrees, degrees], 3) + np.tile([0, 1e-4, 2e-4], 4)
    return pg.Traces.from_arrays(
        np.zeros(12), latitudes, times=np.tile(np.arange(3) * 60 * SECOND, 4), users=range(4), counts=[3] * 4
    )


def test_a_plane_that_is_not_true_to_scale_is_told():
    with pytest.warns(UserWarning, match=r"err by up to 1\.3 % at its farthest record"):
        safe = pg.WaitForMe(seed=1).protect(far_apart(31.4))
    assert len(safe) == 4
    assert len(pg.WaitForMe(seed=1).protect(far_apart(25.0))) == 4


def test_a_call_warns_once():
    latitudes = np.repeat([1.0, 12.0, 22.0, 33.0], 3) + np.tile([0, 1e-4, 2e-4], 4)
    times = np.tile(np.arange(3) * 60 * SECOND, 4)
    traces = pg.Traces.from_arrays(np.ones(12), latitudes, times=times, users=range(4), counts=[3] * 4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pg.WaitForMe(max_radius=0.001, max_trash=1, seed=1).protect(traces)
    (message,) = (str(warning.message) for warning in caught)
    assert "err by up to 1." in message
    assert "dropped 4 of 4 traces" in message


@pytest.mark.parametrize(("longitude", "latitude"), [(-122.4, 37.7), (0, 90), (12, -90), (180, 10), (0, 0)])
def test_the_plane_keeps_distances_from_its_middle_and_comes_back(longitude, latitude):
    rng = np.random.default_rng(1)
    middle = pg.Sphere(pg.make_city(users=1, days=1, recorder="phone").crs).points(
        np.array([longitude]), np.array([latitude])
    )[0]
    points = middle + rng.normal(0, 0.05, (200, 3))
    points = np.concatenate(
        (points, 2 * middle * (points @ middle)[:, None] - points, [middle])
    )  # as far on either side
    points /= np.linalg.norm(points, axis=1)[:, None]
    traces = far_apart(1.0)
    plane = traces.space.local_plane(points)
    angles = np.arctan2(np.linalg.norm(np.cross(points, middle), axis=1), points @ middle)
    assert np.abs(np.hypot(plane.x, plane.y) - angles * traces.space.scale).max() < 1e-6
    assert np.linalg.norm(plane.points(plane.x, plane.y) - points, axis=1).max() * traces.space.scale < 1e-6
    assert plane.scale_error == pytest.approx(angles.max() / math.sin(angles.max()) - 1, rel=1e-6)


def test_points_all_round_the_globe_have_some_plane():
    traces = far_apart(1.0)
    points = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
    plane = traces.space.local_plane(points)
    assert np.isfinite(plane.x).all()
    assert np.isfinite(plane.y).all()
    assert np.abs(plane.points(plane.x, plane.y) - points).max() < 1e-9
    with pytest.warns(UserWarning, match="more than 1,000 %"):
        plane.warn_of_distortion()


def test_too_many_traces_for_the_memory_are_refused_before_the_work(city, monkeypatch):
    monkeypatch.setattr(base.os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 0}[name])
    monkeypatch.setattr(pg.WaitForMe, "_tracks", None)
    with pytest.raises(MemoryError, match="between 9 traces"):
        pg.WaitForMe().protect(city)


def test_distances_beyond_32_bits_have_room():
    assert clustering.allocate_distances(2, largest=2**31 - 1).dtype == np.int32
    assert clustering.allocate_distances(2, largest=2**31).dtype == np.int64


def test_an_interrupt_ends_the_work_soon(monkeypatch):
    monkeypatch.setattr(threads, "number", lambda: 2)
    done = []

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.run_interruptible(
            lambda first, last: (time.sleep(0.001), done.append(first)), np.arange(5_000), progress=stop
        )
    assert len(done) < 2_500


@pytest.mark.parametrize("number", [1, 2])
def test_an_interrupt_ends_a_chunk_between_its_rows(monkeypatch, number):
    monkeypatch.setattr(threads, "number", lambda: number)
    monkeypatch.setattr(threads, "_LEAST", 1)
    rows = []

    def slowly(*rest):
        rows.extend(range(*rest[7:9]))
        time.sleep(0.01)

    def interrupt(*rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(clustering.kernels, "align_all", slowly)
    monkeypatch.setattr(threads._Bar, "update", interrupt)
    before = as_traces([([0.0, 60.0], [float(number), 0.0], [0.0, 0.0]) for number in range(130)])
    with pytest.raises(KeyboardInterrupt):
        pg.WaitForMe(chunk=True, seed=1).protect(before)
    assert 0 < len(rows) < 20


def test_a_small_matrix_is_one_share_and_a_large_one_many():
    assert threads.fair(np.full(40, 1_000), most=200).tolist() == [0, 40]
    shares = threads.fair(np.full(1_000, 10_000), most=200)
    assert len(shares) == 201
    assert set(np.diff(shares).tolist()) <= {4, 5, 6}


@pytest.mark.parametrize("number", [1, 3])
def test_turns_cover_all_shares_once(monkeypatch, number):
    monkeypatch.setattr(threads, "number", lambda: number)
    done, told = [], []
    threads.run_interruptible(
        lambda first, last: done.append((first, last)), np.arange(50), progress=lambda: told.append(1)
    )
    assert sorted(done) == [(first, first + 1) for first in range(49)]
    assert len(told) == 49
    threads.run_interruptible(lambda first, last: done.append(0), np.array([0]), progress=lambda: None)
    assert 0 not in done


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("k", [1, 0, -2, 2.5, "2", True, None]),
        ("delta", [0, -1, math.nan, math.inf, 1e9, 1e-6, "200", None]),
        ("max_radius", [0, -1, math.nan, math.inf, 1e12, None]),
        ("max_trash", [-0.1, 1.1, math.nan, 10, "0.1", None, True]),
        ("cost_cap", [0, -1, 2.5, 10**7, None]),
        ("radius_test", ["member", 1, None]),
        ("chunk", [1, "yes", None]),
        ("program", ["1.1", 1, False]),
        ("seed", [1.5, b"1", [1]]),
    ],
)
def test_wrong_parameters_are_refused(name, values):
    for value in values:
        with pytest.raises((TypeError, ValueError), match=f"'{name}' parameter of WaitForMe"):
            pg.WaitForMe(**{name: value})


@pytest.mark.parametrize("seed", [-1, 2**31, "quiet", "-1"])
def test_the_program_takes_the_seeds_of_c_only(seed):
    with pytest.raises(ValueError, match=r"'seed' parameter of WaitForMe with program='v1\.1'") as error:
        pg.WaitForMe.v1_1(seed=seed)
    assert str(seed) not in str(error.value).replace("v1.1", "").replace("2**31", "")
    assert pg.WaitForMe.v1_1(seed="17").seed == pg.WaitForMe.v1_1(seed="00000000017").seed == 17


def test_it_is_a_value_whose_repr_leaves_the_seed_out():
    mechanism = pg.WaitForMe(3, 150, chunk=True, seed=31_415_926)
    assert eval(repr(mechanism), {"WaitForMe": pg.WaitForMe}) == pg.WaitForMe(3, 150, chunk=True)
    assert "31415926" not in repr(mechanism) + str(mechanism.parameters())
    assert pg.WaitForMe.v1_1() == pg.WaitForMe(program="v1.1", radius_test="v1.1")
    with pytest.raises(AttributeError):
        mechanism.k = 4


def test_the_share_of_trash_is_counted_as_it_is_written():
    """0.29 of 100 traces are 29, though the product of floats is below."""
    people = [
        ([0.0, 60.0], [1e6 * (number >= 71) * number, 1e6 * (number >= 71) * number], [0.0, 0.0])
        for number in range(100)
    ]
    _, report = quietly(pg.WaitForMe(max_radius=10, max_trash=0.29, seed=1), as_traces(people))
    assert report.restarts == 0
    assert report.trash == 29


def test_the_data_is_not_changed(city):
    before = as_bytes(city)
    quietly(pg.WaitForMe(), city)
    quietly(pg.WaitForMe.v1_1(), city)
    assert as_bytes(city) == before


@pytest.fixture
def raw(city, tmp_path):
    pg.write(city, tmp_path / "raw.parquet")
    return tmp_path / "raw.parquet"


def test_the_command_does_what_the_package_does(city, raw, tmp_path):
    said = done(
        *("wait-for-me", raw, tmp_path / "safe.parquet", "--k", 3, "--delta", 100, "--max-radius", 8000),
        *("--max-trash", 0.25, "--cost-cap", 20, "--radius-test", "v1.1", "--seed", 31415926, "--keep-users"),
    )
    mechanism = pg.WaitForMe(3, 100, max_radius=8000, max_trash=0.25, cost_cap=20, radius_test="v1.1", seed="31415926")
    safe, report = quietly(mechanism, city.to_frame())
    assert gpd.read_parquet(tmp_path / "safe.parquet").equals(safe)
    assert f"{report.clusters} groups; the pivot of each is published unchanged" in " ".join(said.stderr.split())
    assert b"31415926" not in (tmp_path / "safe.parquet").read_bytes()
    assert file_mechanism(tmp_path / "safe.parquet") == replace(mechanism, seed=None)


def test_the_command_writes_no_file_where_all_is_trash(raw, tmp_path):
    words = ("--max-radius", 0.001, "--delta", 0.01, "--max-trash", 1)
    said = run("wait-for-me", raw, tmp_path / "safe.parquet", *words)
    assert said.exit_code == 1
    assert said.stdout == ""
    assert "Warning: Wait for Me dropped 9 of 9 traces" in said.stderr
    assert "0.001 m radius " in " ".join(said.stderr.split())
    assert said.stderr.splitlines()[-1] == (
        "Error: Nothing is left to write: no trace of INPUT could be protected. "
        "Take a larger max_radius or a smaller max_trash (--max-radius, --max-trash)."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["raw.parquet"]


def test_large_and_small_figures_can_both_be_read(raw, tmp_path):
    said = done("wait-for-me", raw, tmp_path / "safe.csv", "--max-trash", 0, "--seed", 1, "--max-radius", 1_234_567.5)
    assert "1,234,568 m radius " in " ".join(said.stderr.split())
    assert "e+" not in said.stderr


def test_the_command_renames_users_and_knows_the_program_and_chunks(city, raw, tmp_path):
    done("wait-for-me", raw, tmp_path / "safe.csv", "--program", "v1.1", "--chunk", "--max-trash", 0)
    safe = pg.read_file(tmp_path / "safe.csv", as_traces=True)
    assert len(safe) == len(city)
    assert set(safe.users).isdisjoint(city.users)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--k", 1], "'--k': must be a whole number of at least 2. Got 1 instead"),
        (["--max-trash", 2], "--max-trash of WaitForMe"),
        (["--program", "v1.1", "--seed", "x"], "--seed of WaitForMe"),
    ],
)
def test_a_wrong_call_is_told(raw, tmp_path, words, reason):
    assert reason in failed("wait-for-me", raw, tmp_path / "safe.csv", *words, code=2)


def test_too_few_traces_are_one_line_on_the_command_line(raw, tmp_path):
    assert "needs at least 10 traces. Got 9." in failed("wait-for-me", raw, tmp_path / "safe.csv", "--k", 10, code=1)


def test_experiments_take_it_as_they_take_any_mechanism(city):
    table = pg.evaluate({"city": city}, [pg.WaitForMe(max_trash=0), pg.WaitForMe.v1_1()], [pg.Compression()], seeds=2)
    assert table["seed"].isna().sum() == 1  # the program's random numbers are always the same
    assert len(table) == 3


def test_groups_are_told_by_user_and_pivots_can_be_chosen(city):
    _, report = quietly(pg.WaitForMe(max_trash=0, seed=1), city)
    assert report.groups.index.name == "user"
    assert report.groups[report.groups.is_pivot].cluster.is_unique


def test_another_program_and_an_endless_seed_are_refused():
    for program, kind in (("v1.0", ValueError), (1.1, TypeError), (np.array(["v1.1"]), TypeError)):
        with pytest.raises(kind, match=r"'program' parameter of WaitForMe must be None or 'v1\.1'"):
            pg.WaitForMe(program=program)
    with pytest.raises(ValueError, match="must be a whole number below") as caught:
        pg.WaitForMe.v1_1(seed="4" * 6000)
    assert "444" not in str(caught.value)
