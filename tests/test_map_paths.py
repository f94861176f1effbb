"""Lines of thinned maps: paths that are simplified to what a screen shows."""

import itertools

import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from maps import MAP, call_in, calls_in, data_sets, places, walk

import promesse_geo as pg
from promesse_geo.plot import paths
from promesse_geo.plot.paths import drawable, simplified


def wave(count: int, **named) -> pd.DataFrame:
    """A path of some waves, with records close together."""
    x = np.linspace(0, 0.1, count)
    return walk(4.8 + x, 45.7 + 0.01 * np.sin(100 * x), freq="1s", **named)


def paths_of(drawn) -> list[np.ndarray]:
    """The pieces of the path that lines show, cut at ends of traces and at breaks."""
    data = call_in(drawn, "records").data["path"]
    cuts = {*np.cumsum(data["counts"]).tolist(), *data["breaks"]} - {len(data["x"])}
    return np.split(places(type("Path", (), {"data": data})), sorted(cuts))


@given(
    vertices=arrays(np.float64, st.tuples(st.integers(2, 60), st.just(2)), elements=st.integers(-99, 99)),
    cut=st.integers(0, 60),
    tolerance=st.sampled_from([0.0, 0.5, 20.0]),
    piece=st.sampled_from([2, 3, 7, 512]),
)
def test_no_vertex_is_far_from_the_simplified_path(vertices, cut, tolerance, piece):
    numbers = (
        (np.arange(len(vertices)) >= cut).astype(int) if 2 <= cut <= len(vertices) - 2 else np.zeros(len(vertices))
    )
    vertices = vertices / 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "_PIECE", piece)
        chosen = simplified(vertices, numbers, tolerance)
    assert (np.diff(chosen) > 0).all()
    for number in np.unique(numbers):
        of_path = np.flatnonzero(numbers == number)
        kept = chosen[numbers[chosen] == number]
        assert (kept[0], kept[-1]) == (of_path[0], of_path[-1])
        apart = shapely.distance(shapely.LineString(vertices[kept]), shapely.points(vertices[of_path]))
        assert apart.max() <= tolerance + 1e-9


@given(traces=data_sets(), most=st.integers(4, 200))
def test_a_drawable_path_has_few_vertices_and_all_ends(traces, most):
    places = traces.points[:, :2]
    chosen = drawable(places.__getitem__, traces.offsets, size=2.0, most=most)
    if chosen is None:
        return
    assert len(chosen) <= most
    long = np.flatnonzero(traces.counts > 1)
    assert {*traces.offsets[long].tolist(), *(traces.offsets[long + 1] - 1).tolist()} <= set(chosen.tolist())


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1e-2])
def test_a_sample_shows_whether_many_vertices_can_be_drawn(scale):
    rng = np.random.default_rng(0)
    offsets = np.append(0, np.cumsum(rng.integers(1, 3_000, 200)))
    x = np.linspace(0, 1, offsets[-1])
    vertices = np.column_stack((x, np.sin(20 * x))) + rng.normal(scale=scale, size=(offsets[-1], 2))
    read = []

    def places_of(positions):
        read.append(len(positions))
        return vertices[positions]

    chosen = drawable(places_of, offsets, size=2.0, most=20_000)
    if scale == 1e-2:
        assert chosen is None
        assert sum(read) < 60_000  # not all of them
        return
    assert len(chosen) <= 20_000
    for first, last in itertools.pairwise(offsets.tolist()):
        kept = chosen[(chosen >= first) & (chosen < last)]
        apart = shapely.distance(shapely.LineString(vertices[kept]), shapely.points(vertices[first:last]))
        assert apart.max() <= 2 * 2.0 / 128


def test_a_thinned_layer_has_the_lines_of_its_path():
    frame = wave(30_000)
    drawn = frame.promesse.map(attack=None, points=2_000)
    (line,) = paths_of(drawn)
    assert len(line) <= 6_000
    path = shapely.LineString(frame.get_coordinates().to_numpy())
    assert shapely.hausdorff_distance(shapely.LineString(line), path) < 0.1 / 1000
    remarks = call_in(drawn, "addControls").data["remarks"]
    assert any("2,000 records are thinned and have simplified lines" in remark for remark in remarks)


def test_lines_that_would_cut_corners_are_not_drawn():
    rng = np.random.default_rng(0)
    frame = walk(*rng.uniform(4, 5, (2, 3_000)), freq="1s")
    drawn = frame.promesse.map(frame.iloc[:100], attack=None, points=500)
    assert [call.data["path"] for call in calls_in(drawn, "records")] == [None, {}]
    assert any("have no lines" in remark for remark in call_in(drawn, "addControls").data["remarks"])
    both = walk(*rng.uniform(4, 5, (2, 3_000)), freq="1s").promesse.map(wave(3_000), attack=None, points=500)
    assert any("have simplified lines or none" in remark for remark in call_in(both, "addControls").data["remarks"])


def test_no_line_is_between_traces_and_segments():
    frame = pd.concat([wave(3_000, user="a"), wave(5_000, user="b"), wave(1, user="c")])
    frame = frame.assign(trip=np.r_[np.repeat([0, 1, 2], 1_000), np.repeat([0, 1], 2_500), 0])
    drawn = frame.promesse(segment="trip").map(attack=None, points=1_000)
    data = call_in(drawn, "records").data
    assert data["users"] == ["a", "b", "c"]
    assert (len(data["path"]["counts"]), data["path"]["counts"][2]) == (3, 0)
    expected = [each.get_coordinates().to_numpy()[[0, -1]] for _, each in frame.iloc[:-1].groupby(["user", "trip"])]
    assert np.array([line[[0, -1]] for line in paths_of(drawn)]) == pytest.approx(np.array(expected), abs=1e-6)


@pytest.mark.parametrize("color", ["user", "speed"])
def test_lines_have_the_colours_of_users_and_speeds(color):
    frame = pd.concat([wave(1, user="a"), wave(4_000, user="b"), wave(4_000, user="c")])
    data = call_in(frame.promesse.map(attack=None, points=1_000, color=color), "records").data
    users = np.repeat(data["users"], data["path"]["counts"])
    inks = np.array(data["path"]["palette"])[data["path"]["inks"]]
    records = dict(zip(np.repeat(data["users"], data["counts"]), np.array(data["palette"])[data["inks"]], strict=True))
    for user in ("b", "c"):
        assert set(inks[users == user]) == {records[user]}


def test_the_browser_draws_the_lines_of_a_thinned_map(look):
    frame = pd.concat([wave(9_000, user="a"), wave(9_000, user="b").assign(geometry=lambda f: f.translate(0, 0.1))])
    frame = frame.set_crs(4326, allow_override=True)
    browser = look(frame.promesse.map(attack=None, points=1_000, color="user"))
    lines = browser.run(
        f"(() => {{ const all = []; {MAP}.eachLayer(each => each instanceof L.Polyline && each.options.interactive === "
        "false && all.push([each.options.color, each.getLatLngs().map(piece => piece.length)])); return all; })()"
    )
    data = call_in(frame.promesse.map(attack=None, points=1_000, color="user"), "records").data
    assert lines == [[colour, [count]] for colour, count in zip(data["palette"], data["path"]["counts"], strict=True)]


def test_a_map_of_many_records_is_small():
    users, each = 100, 4_000
    rng = np.random.default_rng(0)
    turns = rng.normal(scale=0.05, size=(users, each)).cumsum(axis=1)
    x, y = (1e-4 * np.stack((np.cos(turns), np.sin(turns)))).cumsum(axis=2).reshape(2, -1)
    traces = pg.Traces.from_arrays(
        4.8 + x % 0.5,
        45.7 + y % 0.5,
        times=np.tile(np.arange(each) * 10**9, users),
        users=[f"u{number}" for number in range(users)],
        counts=np.full(users, each),
    )
    drawn = pg.draw_map(traces, attack=None)
    assert 1_000 < sum(call_in(drawn, "records").data["path"]["counts"]) <= 60_000
    assert len(drawn.get_root().render().encode()) < 5_000_000
