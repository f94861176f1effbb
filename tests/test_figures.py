"""Figures of original and protected data: spatial error, speeds, intervals, and space over time."""

import io

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from matplotlib import style
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import promesse_geo as pg
from promesse_geo.plot import colours, intervals, space_time, spatial_error, speeds

EVERY = pytest.mark.parametrize("draw", [spatial_error, speeds, intervals, space_time], ids=lambda draw: draw.__name__)


def walk(x, *, minutes=None, y=None, user="a", crs="EPSG:32631") -> gpd.GeoDataFrame:
    minutes = np.arange(len(x)) if minutes is None else minutes
    times = pd.Timestamp("2024-03-04 08:00", tz="UTC") + pd.to_timedelta(minutes, unit="min")
    y = np.zeros(len(x)) if y is None else y
    points = gpd.points_from_xy(500_000 + np.asarray(x, float), 5_000_000 + np.asarray(y, float))
    return gpd.GeoDataFrame({"user": user, "time": times}, geometry=points, crs="EPSG:32631").to_crs(crs)


def commute(**named) -> gpd.GeoDataFrame:
    """Half an hour at home, 6 km in half an hour, half an hour at work."""
    return walk(np.concatenate((np.zeros(30), 200 * np.arange(30), np.full(30, 6000))), **named)


def line_of(axes, label) -> np.ndarray:
    (line,) = (line for line in axes.lines if line.get_label() == label)
    return line.get_xydata()


def share_at(axes, label, value) -> float:
    """Percent of the records that a line shows to be at most `value`."""
    x, share = line_of(axes, label).T
    return float(share[x <= value].max(initial=0))


def drawn(axes) -> bytes:
    """The picture, for which every word and every axis must be one that can be drawn."""
    picture = io.BytesIO()
    axes.figure.savefig(picture)
    return picture.getvalue()


@EVERY
def test_axes_are_named_with_their_units_and_the_legend_names_the_lines(draw):
    frame = commute()
    axes = draw(frame, {"smoothed": frame.promesse.smooth(200), "as it was": frame})
    for label in (axes.get_xlabel(), axes.get_ylabel()):
        ticks = [tick.get_text() for tick in axes.get_xticklabels()] if draw is intervals else []
        of_ticks = label == axes.get_xlabel() and {"1 s", "1 min", "1 h"} <= set(ticks)
        assert label.endswith(("(m)", "(m/s)", "(h)", "(km)", "(%)")) or of_ticks
    drawn = [text.get_text() for text in axes.get_legend().get_texts()]
    assert drawn == (["original"] if draw is not spatial_error else []) + ["smoothed", "as it was"]


@EVERY
def test_lines_differ_in_colour_and_in_style(draw):
    frame = commute()
    axes = draw(frame, {str(number): frame for number in range(3)})
    looks = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines]
    assert len({colour for colour, *_ in looks}) == len(looks)
    assert len({(style, marker) for _, style, marker in looks}) == len(looks)
    first = [to_hex(colour).upper() for colour, *_ in looks[:2]]
    assert first[-1 if draw is not spatial_error else 0] == colours.PROTECTED


@EVERY
def test_a_figure_is_drawn_on_the_given_axes_or_on_new_ones(draw):
    frame = commute()
    own = Figure().subplots()
    assert draw(frame, frame.promesse.smooth(200), ax=own) is own
    new = draw(frame, frame.promesse.smooth(200))
    assert new is not own
    stream = io.BytesIO()
    new.figure.savefig(stream, dpi=40)
    assert len(stream.getvalue()) > 1000


@EVERY
@pytest.mark.parametrize("crs", ["EPSG:32631", "EPSG:4326"])
def test_frames_traces_and_any_crs_give_the_same_picture(draw, crs):
    frame = commute()
    safe = frame.promesse.smooth(200)
    one = draw(frame, safe)
    other = draw(pg.Traces.from_frame(frame.to_crs(crs)), pg.Traces.from_frame(safe.to_crs(crs)))
    for line, same in zip(one.lines, other.lines, strict=True):
        # the Earth is not a sphere: lengths differ by some per mille
        assert line.get_xydata() == pytest.approx(same.get_xydata(), rel=0.004, abs=0.004)


@EVERY
def test_columns_can_be_named(draw):
    frame = commute().rename(columns={"user": "cab", "time": "stamp"})
    assert len(draw(frame, frame, user="cab", time="stamp").lines) == (1 if draw is spatial_error else 2)


@pytest.mark.parametrize("draw", [spatial_error, speeds, intervals])
def test_data_without_records_gives_an_empty_figure(draw):
    nothing = commute().iloc[:0]
    axes = draw(nothing, nothing)
    for line in axes.lines:
        assert len(line.get_xydata()) == 0
    assert drawn(axes)


@pytest.mark.parametrize("draw", [spatial_error, speeds, intervals, space_time])
@pytest.mark.parametrize("records", [1, 2])
def test_a_record_or_two_can_be_drawn(draw, records):
    few = commute().iloc[:records]
    assert drawn(draw(few, few))


@EVERY
def test_names_are_shown_as_they_are(draw):
    frame, names = commute(), ["$a", "_b", "$c$", "\\$d", "__", "{e}^$"]
    axes = draw(frame, dict.fromkeys(names, frame))
    before = [] if draw is spatial_error else ["original"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == before + names
    assert drawn(axes)


@EVERY
def test_lines_that_were_there_keep_their_names(draw):
    axes = Figure().subplots()
    axes.plot([1, 2], [1, 2], label="mine")
    axes.plot([1, 2], [1, 2])
    frame = commute()
    draw(frame, {"a": frame, "b": frame}, ax=axes)
    assert axes.get_legend().get_texts()[0].get_text() == "mine"
    assert len(axes.get_legend().get_texts()) == 3 + (draw is not spatial_error)


@EVERY
def test_a_second_figure_on_the_same_axes_goes_on_with_other_colours(draw):
    frame = commute()
    axes = draw(frame, frame.promesse.smooth(200))
    first = len(axes.lines)
    draw(frame, {"again": frame, "more": frame}, ax=axes)
    inks = [line.get_color() for line in axes.lines if line.get_label() != "original"]
    assert inks == list(colours.SERIES[:3])
    assert {line.get_color() for line in axes.lines if line.get_label() == "original"} <= {colours.ORIGINAL}
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == [line.get_label() for line in axes.lines]
    assert len(names) == (5 if first == 2 else 3)


def test_a_second_distribution_of_errors_does_not_cut_the_first_off():
    frame = commute()
    wide = walk(np.full(4, 3000.0), y=[0, 100, 200, 400])
    axes = spatial_error(frame, wide)
    right = axes.get_xlim()[1]
    spatial_error(frame, walk(np.full(4, 3000.0), y=[0, 1, 2, 3]), ax=axes)
    assert axes.get_xlim()[1] == right
    assert 400 < right < 500
    other = spatial_error(frame, walk(np.full(4, 3000.0), y=[0, 1, 2, 3]))
    spatial_error(frame, wide, ax=other)
    assert other.get_xlim()[1] == right
    assert len(axes.get_legend().get_texts()) == 2


@EVERY
def test_invalid_data_and_axes_are_refused(draw):
    frame, owner = commute(), draw.__name__
    for wrong in ([frame], None, 5):
        with pytest.raises(TypeError, match=f"'protected' parameter of {owner}"):
            draw(frame, wrong)
    with pytest.raises(ValueError, match=f"'protected' parameter of {owner}"):
        draw(frame, {})
    with pytest.raises(TypeError, match=f"'ax' parameter of {owner}"):
        draw(frame, frame, ax=5)
    with pytest.raises(ValueError, match=f"'ax' parameter of {owner}"):
        draw(frame, frame, ax=Figure().subplots(subplot_kw={"projection": "polar"}))


@pytest.mark.parametrize("draw", [speeds, intervals, space_time])
def test_no_protected_data_may_be_named_original(draw):
    frame = commute()
    with pytest.raises(ValueError, match=f"'protected' parameter of {draw.__name__} must be .*'original'"):
        draw(frame, {"original": frame.promesse.smooth(200)})


@EVERY
def test_long_names_are_cut(draw):
    frame = commute(user="u" * 90)
    axes = draw(frame, {"n" * 90: frame, "short": frame})
    assert [text.get_text() for text in axes.get_legend().get_texts()][-2:] == ["n" * 60 + "…", "short"]
    assert axes.get_title() == ("" if draw is not space_time else f"Trace 0: {'u' * 60}…")


@EVERY
def test_on_a_dark_background_every_line_is_visible(draw):
    frame = commute()
    with style.context("dark_background"):
        axes = draw(frame, {str(number): frame for number in range(6)})
        inks = [to_hex(line.get_color()) for line in axes.lines]
    assert "#000000" not in inks
    assert inks[-1] == "#ffffff"
    assert len(set(inks)) == len(inks)


def test_spatial_errors_are_shown_as_shares_of_records():
    frame = commute()
    aside = walk(np.full(4, 3000.0), y=[0, 10, 20, 400])
    axes = spatial_error(frame, {"aside": aside, "exact": frame.promesse.smooth(200)})
    assert [share_at(axes, "aside", metres) for metres in (1, 11, 21)] == pytest.approx([25, 50, 75], abs=0.2)
    assert share_at(axes, "exact", 1e-3) == 100
    low, high = axes.get_xlim()
    assert low < 0
    assert 400 < high < 500


def test_errors_of_any_size_can_be_read_from_one_axis():
    frame = walk(np.arange(100) * 100.0)
    versions = {f"{metres:g}": walk(np.arange(100) * 100.0, y=np.full(100, metres)) for metres in (1e-8, 5, 50, 7e4)}
    axes = spatial_error(frame, versions)
    axes.figure.draw_without_rendering()
    middles = [axes.transData.transform((line.get_xdata()[500], 50))[0] for line in axes.lines]
    apart = np.diff(middles) / axes.bbox.width
    assert (apart > 0.1).all()
    low, high = axes.get_xlim()
    labels = [text.get_text() for text in axes.get_xticklabels() if low <= text.get_position()[0] <= high]
    assert labels == ["0", "1", "10", "100", "1,000", "10,000"]


def test_no_error_at_all_is_drawn_on_an_axis_of_a_metre():
    frame = commute()
    axes = spatial_error(frame, frame)
    assert axes.get_xlim()[1] == 1
    assert axes.get_legend() is None


def test_promesse_has_one_speed_and_the_original_has_stops():
    frame = commute()
    axes = speeds(frame, frame.promesse.smooth(200))
    assert share_at(axes, "original", 0.01) == pytest.approx(100 * 59 / 89, abs=0.2)
    assert share_at(axes, "original", 3.4) == 100
    constant = line_of(axes, "protected")[:1001, 0]
    assert np.ptp(constant) < 1e-6 * constant.mean()
    assert axes.get_xscale() == "log"


def test_steps_without_time_have_no_speed():
    frame = walk([0, 100, 200], minutes=[0, 0, 1])
    axes = speeds(frame, frame)
    assert line_of(axes, "original")[:, 0] == pytest.approx(np.full(1002, 100 / 60))


def test_intervals_are_seconds_within_traces():
    frame = pd.concat([walk(np.arange(4), minutes=[0, 1, 2, 4]), walk(np.arange(2), minutes=[60, 70], user="b")])
    axes = intervals(frame, frame)
    assert [share_at(axes, "original", seconds) for seconds in (59, 61, 121, 601)] == pytest.approx(
        [0, 50, 75, 100], abs=0.2
    )
    assert share_at(intervals(walk([0, 1], minutes=[0, 0]), frame), "original", 0.002) == 100


def test_a_trace_in_space_and_time_shows_stops_as_level_lines():
    frame = pd.concat([commute(user="b"), walk([0, 1000, 3000], minutes=[0, 60, 120], user="a")])
    hours, kilometres = line_of(space_time(frame, frame.promesse.smooth(100), trace=0), "original").T
    assert (hours, kilometres) == (pytest.approx([0, 1, 2]), pytest.approx([0, 1, 3]))
    axes = space_time(frame, frame.promesse.smooth(100), trace=1)
    assert (np.diff(line_of(axes, "original")[:, 1]) == 0).sum() > 50
    smoothed = np.diff(line_of(axes, "protected"), axis=0)
    assert smoothed[:, 1] / smoothed[:, 0] == pytest.approx(np.full(len(smoothed), smoothed[0, 1] / smoothed[0, 0]))


def test_the_title_of_space_and_time_names_trace_and_user():
    frame = pd.concat([commute(user="b"), commute(user="$a_b$")])
    titles = [space_time(frame, frame, trace=number).title for number in (0, 1)]
    assert [title.get_text() for title in titles] == [
        f"Trace {number}: {user}" for number, user in enumerate(frame.user.drop_duplicates().sort_values())
    ]
    assert not any(title.get_parse_math() for title in titles)
    alone = commute().drop(columns="user")
    assert space_time(alone, alone, user=None).get_title() == "Trace 0"
