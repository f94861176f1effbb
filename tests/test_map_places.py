"""Where maps draw data: across meridians, around the world, at poles, and on planes without a globe."""

import folium
import numpy as np
import pandas as pd
import pytest
from maps import HALL, call_in, calls_in, page, places, stroll, walk, wrapped


@pytest.mark.parametrize("crs", [4326, 3857, 3832])
def test_data_across_the_antimeridian_stays_together(crs):
    frame = walk((179.9 + np.arange(200) * 0.001 + 180) % 360 - 180, np.full(200, -17.0)).to_crs(crs)
    drawn = frame.promesse.map()
    x = places(call_in(drawn, "records"))[:, 0]
    assert np.diff(x) == pytest.approx(np.full(199, 0.001), abs=2e-6)
    (south, west), (north, east) = call_in(drawn, "addControls").data["corners"]
    assert (east - west, north - south) == pytest.approx((0.199, 0), abs=1e-5)


def with_stays(x) -> np.ndarray:
    """Longitudes of a trip with an hour before and after it."""
    return np.concatenate((np.full(60, x[0]), x, np.full(60, x[-1])))


def assert_pois_are_on_records(drawn) -> None:
    """Every POI, and there are some, has a drawn record of its data beside it."""
    original, protected = (places(call) for call in calls_in(drawn, "records"))
    before, hit, missed, false = (places(call) for call in calls_in(drawn, "pois"))
    assert len(before)
    for pois, records in ((before, original), (missed, original), (hit, protected), (false, protected)):
        apart = np.abs(pois[:, None] - records[None]).max(axis=2)
        assert (apart.min(axis=1, initial=np.inf) < 0.01).all()


@pytest.mark.filterwarnings("ignore:1 of 2 traces could not be protected")
@pytest.mark.parametrize("crs", [4326, 3857])
def test_a_flight_across_the_opposite_meridian_stays_with_its_protected_trace(crs):
    beijing = walk(np.full(3000, 116.4), np.full(3000, 39.9), user="b")
    flight = walk(np.linspace(-70, -0.1, 400), np.linspace(42.36, 51.5, 400), user="f")
    frame = pd.concat([beijing, flight]).to_crs(crs)
    safe = frame.promesse.smooth(600_000)
    original, protected = (
        places(call)[-len(part) :]
        for call, part in zip(
            calls_in(frame.promesse.map(safe, slider=True), "records"), (flight, safe[safe.user == "f"]), strict=True
        )
    )
    assert original == pytest.approx(flight.get_coordinates().to_numpy(), abs=2e-6)
    assert len(protected) > 5
    near = np.abs(protected[:, None] - original[None]).max(axis=2).min(axis=1)
    assert near.max() < 0.2
    alone = safe[safe.user == "f"]
    later = places(
        calls_in(frame.promesse.map(alone, users="f", period=("2024-03-04 10:00", "2025-01-01")), "records")[1]
    )
    assert np.abs(later[:, None] - original[None]).max(axis=2).min(axis=1).max() < 0.2


@pytest.mark.filterwarnings("ignore:1 of 2 traces could not be protected")
@pytest.mark.parametrize("other", ["itself", "smoothed", "elsewhere"])
@pytest.mark.parametrize(
    "x",
    [
        with_stays(np.linspace(-71, -0.1, 400)),
        with_stays(wrapped(np.linspace(-118, -478, 400))),
        with_stays(wrapped(np.linspace(170, 170 + 355, 400))),
        with_stays(wrapped(np.linspace(0, 3 * 360 + 90, 400))),
        with_stays(wrapped(np.linspace(178, 182, 400))),
    ],
)
def test_pois_are_drawn_on_their_records(x, other):
    beijing = walk(np.full(3000, 116.4), np.full(3000, 39.9), user="b")
    frame = pd.concat([beijing, walk(x, np.linspace(20, 30, len(x)).round(), user="f")])
    if other == "itself":
        after = frame
    elif other == "smoothed":
        after = frame.promesse.smooth(500)
    else:
        after = frame.set_geometry(frame.translate(0, -1))
    assert_pois_are_on_records(frame.promesse.map(after))


def test_a_trip_goes_on_around_the_world_rather_than_back():
    frame = walk(wrapped(np.arange(100, 455, 5.0)), np.zeros(71), freq="1h")
    x = places(call_in(frame.promesse.map(), "records"))[:, 0]
    assert np.diff(x) == pytest.approx(np.full(70, 5.0))


@pytest.mark.parametrize(("x", "latitude"), [(np.arange(0, 720, 5.0), 0.0), (np.linspace(0, 1080, 300), 89.999)])
def test_a_trace_several_times_around_the_world_or_a_pole_stays_in_view(x, latitude):
    frame = walk(wrapped(x), np.full(len(x), latitude))
    original, protected = calls_in(frame.promesse.map(frame, attack=None), "records")
    drawn = places(original)[:, 0]
    assert np.ptp(drawn) <= 360
    assert (wrapped(drawn - x + 1) - 1) == pytest.approx(np.zeros(len(x)), abs=2e-6)
    assert places(protected) == pytest.approx(places(original))


def test_protected_records_without_original_ones_stay_together():
    frame = walk([179.9, 179.95], [-17.0] * 2)
    later = walk(wrapped(179.9 + np.arange(100) * 0.01), np.full(100, -17.0), start="2024-03-05")
    x = places(calls_in(frame.promesse.map(later, period="2024-03-05"), "records")[1])[:, 0]
    assert np.diff(x) == pytest.approx(np.full(99, 0.01), abs=2e-6)


@pytest.mark.parametrize("crs", [3857, 32631, 2154])
def test_any_crs_is_drawn_at_its_longitude_and_latitude(crs):
    frame = stroll()
    drawn = frame.to_crs(crs).promesse.map(frame.to_crs(3035))
    for call in calls_in(drawn, "records"):
        assert places(call) == pytest.approx(frame.get_coordinates().to_numpy(), abs=2e-6)


def test_a_plane_without_a_globe_takes_no_named_background():
    frame = walk(np.arange(90) * 10.0, np.zeros(90), crs=HALL)
    with pytest.raises(ValueError, match="'tiles' parameter of map must be None"):
        frame.promesse.map(tiles="OpenStreetMap")
    tiles = folium.TileLayer("http://localhost/{z}/{x}/{y}.png", attr="the plan of the hall")
    assert "http://localhost/" in page(frame.promesse.map(tiles=tiles))


def test_a_plane_without_a_globe_is_drawn_in_metres():
    frame = walk(np.arange(90) * 10.0, np.zeros(90), crs=HALL)
    drawn = frame.promesse.map(frame.promesse.smooth(50))
    assert drawn.crs == "Simple"
    assert places(calls_in(drawn, "records")[0])[:, 0] == pytest.approx(np.arange(90) * 10.0)


def test_records_beyond_the_edge_of_the_map_are_counted():
    frame = walk(np.zeros(90), np.linspace(84, 89, 90))
    beyond = int((frame.geometry.y > 85.0512).sum())
    remark = f"{beyond} records beyond latitude 85.05° are drawn at the edge of the map."
    assert remark in call_in(frame.promesse.map(attack=None), "addControls").data["remarks"]
    pair = frame.promesse.map_pair(frame.iloc[:1], attack=None)
    halves = [child for child in pair._children.values() if isinstance(child, folium.Map)]
    assert [remark in call_in(half, "addControls").data["remarks"] for half in halves] == [True, False]
    near = walk(np.zeros(90), np.linspace(-84, -85.05, 90)).promesse.map(attack=None)
    assert not any("edge" in remark for remark in call_in(near, "addControls").data["remarks"])


@pytest.mark.parametrize("crs", ["IAU_2015:49900", "+proj=longlat +R=1737400 +type=crs"])
def test_another_body_is_drawn_at_its_degrees(crs):
    frame = stroll()
    drawn = frame.set_crs(crs, allow_override=True).promesse.map(attack=None)
    assert drawn.crs == "EPSG3857"
    assert places(call_in(drawn, "records")) == pytest.approx(frame.get_coordinates().to_numpy(), abs=1e-6)
