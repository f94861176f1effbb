"""Colours of maps by user and by speed."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from maps import call_in, calls_in, data_sets, names, page, stroll, walk

import promesse_geo as pg
from promesse_geo.plot import colours
from promesse_geo.plot.inks import speeds_of, user_colour


def colours_of_users(call) -> dict[str, set[str]]:
    """The colours of the records of each user."""
    each = np.repeat(call.data["users"], call.data["counts"])
    drawn = np.array(call.data["palette"])[call.data["inks"]]
    return {user: set(drawn[each == user].tolist()) for user in call.data["users"]}


def test_one_colour_shows_the_data_set_by_default(city, safe):
    for call, colour in zip(
        calls_in(city.promesse.map(safe), "records"), (colours.ORIGINAL, colours.PROTECTED), strict=True
    ):
        assert (call.data["palette"], call.data["inks"]) == ([colour], [])


def test_a_user_has_one_colour_of_their_own_in_both_data_sets(city, safe):
    drawn = city.promesse.map(safe, color="user")
    original, protected = (colours_of_users(call) for call in calls_in(drawn, "records"))
    assert all(len(found) == 1 for found in original.values())
    assert len(set.union(*original.values())) == 9
    assert {user: original[user] for user in protected} == protected
    few = city.promesse.map(safe, color="user", users=["user-002", "user-005"])
    assert colours_of_users(calls_in(few, "records")[0]) == {user: original[user] for user in ("user-002", "user-005")}


def test_hundreds_of_users_have_different_colours():
    found = [user_colour(number) for number in range(300)]
    assert len(set(found)) == 300
    assert all(len(colour) == 7 and int(colour[1:], 16) >= 0 for colour in found)


def test_a_map_to_publish_has_no_names_whatever_its_colours(safe):
    for color in ("user", "speed"):
        html = page(safe.promesse.map(color=color, slider=True))
        assert "user-00" not in html
    assert call_in(safe.promesse.map(color="user"), "records").data["users"][0] == "trace 0"


def test_speeds_are_in_classes_with_a_legend():
    metres = np.array([0, 10, 10, 210, 1220, 2230]) / 111_319.49  # in a minute: 0.6, 0, 12, 61, 61 km/h
    frame = walk(metres, np.zeros(6))
    drawn = frame.promesse.map(color="speed", attack=None)
    data = call_in(drawn, "records").data
    assert data["inks"] == [0, 0, 0, 1, 4, 4]
    scale = call_in(drawn, "addControls").data["scale"]
    assert [colour for colour, _ in scale] == list(colours.SPEEDS)
    assert [meaning for _, meaning in scale] == ["< 5", "5–15", "15–30", "30–60", "60–120", "≥ 120"]
    assert call_in(frame.promesse.map(), "addControls").data["scale"] == []
    alone = call_in(frame.iloc[:1].promesse.map(color="speed"), "addControls").data["scale"]
    assert alone[-1] == (colours.REMOVED, "unknown")


def naive_speeds(traces: pg.Traces) -> np.ndarray:
    """Speeds, one record at a time."""
    speeds = np.full(traces.records, np.nan)
    for first, last in zip(traces.segments[:-1].tolist(), traces.segments[1:].tolist(), strict=True):
        for record in range(first, last):
            later = max(record, first + 1)
            if later < last and traces.times[later] > traces.times[later - 1]:
                chord = float(np.linalg.norm(traces.points[later] - traces.points[later - 1]))
                seconds = (traces.times[later] - traces.times[later - 1]) / 1e9
                speeds[record] = float(traces.space.metres(np.array([chord]))[0]) / seconds
    return speeds


@given(traces=data_sets())
def test_speeds_are_those_of_the_slow_twin(traces):
    np.testing.assert_allclose(speeds_of(traces), naive_speeds(traces), rtol=1e-12)


def test_records_of_one_time_have_no_speed():
    frame = stroll().iloc[28:33]
    frame = frame.assign(time=frame.time.where(np.arange(5) != 2, frame.time.iloc[1]))
    assert np.isnan(speeds_of(pg.Traces.from_frame(frame))).tolist() == [False, False, True, False, False]


def test_the_speed_of_smoothed_data_is_constant(city, safe):
    data = call_in(safe.promesse.map(color="speed"), "records").data
    classes = pd.Series(data["inks"]).groupby(np.repeat(data["users"], data["counts"])).nunique()
    assert classes.le(2).all()  # a chord of a bend is shorter than the path
    raw = call_in(city.promesse.map(color="speed", attack=None), "records").data
    assert pd.Series(raw["inks"]).nunique() > pd.Series(data["inks"]).nunique()


def test_the_legend_distinguishes_data_sets_by_size(city, safe):
    drawn = city.promesse.map(safe, color="user")
    groups = [each.layer_name for each in drawn._children.values() if hasattr(each, "layer_name")]
    glyphs = [name.partition("</svg>")[0] for name in groups[:2]]
    assert glyphs[0] != glyphs[1]
    assert all(colours.GROUND in glyph for glyph in glyphs)
    assert names(drawn)[0].startswith("Original")


@pytest.mark.parametrize("draw", ["map", "map_pair"])
def test_an_unknown_kind_of_colour_is_an_error(city, safe, draw):
    with pytest.raises(ValueError, match=f"'color' parameter of {draw} must be one of 'data', 'user', 'speed'"):
        getattr(city.promesse, draw)(safe, color="time")
    with pytest.raises(TypeError, match=f"'color' parameter of {draw}"):
        getattr(city.promesse, draw)(safe, color=1)
