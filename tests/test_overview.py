"""The overview of a trace: records, points at constant speed, and what is published."""

import io
import itertools

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from matplotlib import style
from matplotlib.colors import to_hex
from PIL import Image

import promesse_geo as pg
from promesse_geo.plot import colours, overview, space_time

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
def test_three_panels_show_records_samples_and_published_points(crs):
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
def test_records_are_drawn_in_kilometres_east_and_north(crs):
    original = points_of(panels_of(winding(crs=crs))[0])
    metres = winding().get_coordinates().to_numpy()
    # the Earth is not a sphere: degrees of longitude differ by 3 m in a kilometre
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
        "record (opaque: many in one place)",
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


def test_names_of_places_are_shown_as_they_are():
    frame = winding()
    ends = frame.geometry.iloc[[0, -1]].set_axis(["$home", "_{$"])
    figure = overview(frame, places=ends)
    assert [text.get_text() for text in figure.axes[0].texts] == ["$home", "_{$"]
    picture = io.BytesIO()
    figure.savefig(picture)
    assert picture.getvalue()
    with pytest.raises(TypeError, match="'places' parameter of overview "):
        overview(frame, places=[1])


def test_places_without_a_crs_or_with_an_area_are_refused():
    frame = winding()
    ends = frame.geometry.iloc[[0, -1]]
    for wrong, cure in ((ends.set_crs(None, allow_override=True), "set_crs"), (ends.buffer(5), "centroids")):
        with pytest.raises(ValueError, match=f"'places' parameter of overview.*{cure}"):
            overview(frame, places=wrong)


def test_places_without_a_place_in_the_crs_of_the_data_are_refused():
    for crs in ("IAU_2015:30100", 'LOCAL_CS["building site",UNIT["metre",1]]'):
        with pytest.raises(ValueError, match="1 place of 1 in the 'places' parameter"):
            overview(
                pg.make_city(users=1, days=1, recorder="phone"), places=gpd.GeoSeries.from_xy([4.8], [45.7], crs=crs)
            )


def test_long_names_of_places_are_cut():
    frame = winding()
    figure = overview(frame, places=frame.geometry.iloc[:1].set_axis(["p" * 90]))
    assert [text.get_text() for text in figure.axes[0].texts] == ["p" * 60 + "…"]


def test_colours_are_those_of_the_package_and_differ_in_lightness():
    drawn = [line for axes in panels_of(winding()) for line in axes.lines if line.get_marker() == "o"]
    expected = [colours.ORIGINAL, colours.PROTECTED, colours.PROTECTED]
    assert [to_hex(line.get_color()).upper() for line in drawn] == expected
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


@pytest.mark.parametrize("direction", ["east", "north"])
def test_a_straight_path_gets_a_panel_that_is_not_too_flat(direction):
    along, still = 5e5 + 40 * np.arange(100.0), np.full(100, 5e5)
    panel = panels_of(walk_of(along, still) if direction == "east" else walk_of(still, along))[0]
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
    for data in (frame, pg.Traces.from_frame(frame)):
        assert [len(points_of(panels_of(data, trace=number)[0])) for number in (0, 1)] == [80, 150]


def in_order(frame, places) -> gpd.GeoDataFrame:
    """The frame with its users renamed so that the first ones stand in these places."""
    users = frame.user.unique()
    others = [place for place in range(len(users)) if place not in places]
    names = [f"{place:016x}" for place in (*places, *others)]
    return frame.assign(user=frame.user.map(dict(zip(users, names, strict=True))))


@pytest.fixture(scope="module")
def some_short():
    """Two traces that are long enough for 200 m and three that are not."""
    traces = [winding(user=f"long-{n}") for n in range(2)] + [winding(user=f"short-{n}").iloc[:4] for n in range(3)]
    return pd.concat(traces, ignore_index=True)


@pytest.mark.parametrize("places", list(itertools.combinations(range(5), 2)))
def test_by_default_the_first_trace_that_can_be_drawn_is_drawn(some_short, places):
    frame = in_order(some_short, places)
    counts = frame.groupby("user").size()
    assert np.flatnonzero(counts > 4).tolist() == list(places)
    first = places[0]
    for axes in (panels_of(frame)[0], panels_of(frame, trace=first)[0]):
        assert axes.get_title() == f"Original, trace {first}: {counts.iloc[first]} records"
    protected = pg.Traces.from_frame(frame)
    protected = protected.select(np.repeat(protected.counts > 4, protected.counts))
    title = f"Trace {first}: {counts.index[first]}"
    assert space_time(frame, {"a": protected, "b": frame}).get_title() == title


def test_a_trace_that_cannot_be_drawn_is_an_error_with_the_number_that_can(some_short):
    for number, count in ((2, "2 of 5 traces"), (4, "2 of 5 traces")):
        with pytest.raises(ValueError, match=f"trace={number} is too short.*{count}.*trace="):
            overview(some_short, trace=number)
    protected = some_short[some_short.user.str.startswith("long")]
    with pytest.raises(ValueError, match=r"trace=3 is not in the protected data.*2 of 5 traces.*trace="):
        space_time(some_short, protected, trace=3)


@pytest.mark.parametrize("crs", [METRES, "EPSG:4326"])
def test_data_of_short_traces_cannot_be_drawn(crs):
    with pytest.raises(ValueError, match=r"No trace is long enough.*50000 m"):
        overview(winding(crs=crs), epsilon=50_000)
    with pytest.raises(ValueError, match="too short"):
        overview(winding(crs=crs).iloc[:1], trace=0)


def test_data_without_traces_cannot_be_drawn():
    frame = winding()
    for draw in (lambda: overview(frame.iloc[:0]), lambda: space_time(frame.iloc[:0], frame.iloc[:0])):
        with pytest.raises(ValueError, match="no traces"):
            draw()
    with pytest.raises(ValueError, match="no trace of the original"):
        space_time(frame, frame.iloc[:0])


@pytest.mark.parametrize("draw", [overview, lambda frame, **named: space_time(frame, frame, **named)])
def test_the_trace_must_exist(draw):
    frame = pd.concat([winding(user="b"), winding(user="a")])
    for number in (2, 99):
        with pytest.raises(ValueError, match=f"trace={number} does not exist.*2 traces"):
            draw(frame, trace=number)
    with pytest.raises(ValueError, match="'trace' parameter"):
        draw(frame, trace=-1)
    with pytest.raises(TypeError, match="'trace' parameter"):
        draw(frame, trace="0")


def test_columns_of_the_overview_can_be_named():
    frame = winding().rename(columns={"user": "cab", "time": "stamp"})
    assert len(points_of(panels_of(frame, user="cab", time="stamp")[0])) == len(frame)


def test_a_single_point_is_drawn_as_well():
    original, sampled, published = map(points_of, panels_of(walk_of([0.0, 450.0], [5e6, 5e6]), epsilon=200))
    assert (len(original), len(sampled), len(published)) == (2, 3, 1)


def test_on_a_dark_background_markers_and_words_are_visible():
    frame = winding()
    with style.context("dark_background"):
        panel = overview(frame, places=frame.geometry.iloc[:1].set_axis(["home"])).axes[-1]
        markers = [line for line in panel.lines if line.get_fillstyle() == "none"]
        assert [to_hex(line.get_color()) for line in markers] == ["#ffffff"] * 3
        (text,) = panel.texts
        (effect,) = text.get_path_effects()
        assert to_hex(effect._gc["foreground"]) == "#000000"
        assert to_hex(text.get_color()) == "#ffffff"
