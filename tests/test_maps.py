"""Contents of maps: layers, coordinates, remarks, and no requests to the network."""

import json
import os
import re
import stat
import sys
import types
from datetime import timedelta, timezone
from pathlib import Path

import folium
import numpy as np
import pandas as pd
import pytest
from maps import HOSTILE, call_in, calls_in, loaded_from_the_network, names, numbers, page, places, stroll, walk

import promesse_geo as pg
from promesse_geo.plot import colours
from promesse_geo.plot.elements import Call, literal
from promesse_geo.plot.layers import bounds_of


def test_layers_are_named_and_counted(city, safe):
    drawn = city.promesse.map(safe)
    table = city.promesse.poi_retrieval(safe)
    before, after, hit = (int(table[name].sum()) for name in ("original_pois", "protected_pois", "matched"))
    found = names(drawn)
    assert found[:4] == [
        f"Original: {len(city):,} records",
        f"Protected: {len(safe):,} records",
        f"Stays (POIs) in the original: {before:,}",
        f"Hit, still found: {hit:,}",
    ]
    assert found[4] == f"Missed, no longer found: {before - hit:,}"
    assert found[5].startswith("False, not in the original: ")
    assert numbers(found[5])[0] <= after - hit
    (control,) = (child for child in drawn._children.values() if isinstance(child, folium.LayerControl))
    assert control.options["collapsed"] is False


def test_records_are_drawn_at_their_coordinates_and_times(city, safe):
    original, protected = calls_in(city.promesse.map(safe), "records")
    for call, frame in ((original, city), (protected, safe)):
        ordered = frame.sort_values(["user", "time"], kind="stable")
        assert places(call) == pytest.approx(ordered.get_coordinates().to_numpy(), abs=1e-6)
        seconds = pd.DatetimeIndex(ordered["time"]).as_unit("s").asi8
        assert np.cumsum(call.data["times"]).tolist() == seconds.tolist()
        assert call.data["users"] == ordered["user"].unique().tolist()
        assert sum(call.data["counts"]) == len(frame)


def test_data_compared_with_itself_has_only_hits():
    frame = stroll()
    assert names(frame.promesse.map(frame))[2:] == [
        "Stays (POIs) in the original: 2",
        "Hit, still found: 2",
        "Missed, no longer found: 0",
        "False, not in the original: 0",
    ]
    away = walk(4.84 + np.zeros(40), np.full(40, 45.8))
    assert names(frame.promesse.map(away))[3:] == [
        "Hit, still found: 0",
        "Missed, no longer found: 2",
        "False, not in the original: 1",
    ]


def test_pois_are_drawn_where_the_attack_finds_them():
    frame = stroll()
    before, hit, missed, false = calls_in(frame.promesse.map(walk(4.8404 + np.zeros(40), np.full(40, 45.76))), "pois")
    stays = frame.promesse.pois()
    assert places(before) == pytest.approx(stays.get_coordinates().to_numpy(), abs=2e-6)
    assert places(hit) == pytest.approx(np.array([[4.8404, 45.76]]), abs=2e-6)
    assert places(missed) == pytest.approx(stays.get_coordinates().to_numpy()[1:], abs=2e-6)
    assert len(places(false)) == 0
    expected = pd.DatetimeIndex(stays["departure"]).as_unit("s").asi8
    assert np.cumsum(before.data["ends"]).tolist() == expected.tolist()


def test_the_attack_can_be_another_or_none(city, safe):
    long = city.promesse.map(safe, attack=pg.PoiRetrieval(duration="6h"))
    assert names(long)[2] == f"Stays (POIs) in the original: {len(city.promesse.pois(duration='6h'))}"
    assert len(names(city.promesse.map(safe, attack=None))) == 2
    with pytest.raises(TypeError, match="'attack' parameter of map"):
        city.promesse.map(safe, attack="paper")


def test_a_stronger_attack_is_drawn_with_what_it_finds(city):
    noisy = city.promesse.geo_indistinguishability(0.01, seed=1)
    adaptive = pg.AdaptivePoiRetrieval(kind="geo-indistinguishability")
    for attack in (pg.PoiRetrieval(), adaptive):
        matched = int(attack.detail(city, noisy).matched.sum())
        assert numbers(names(city.promesse.map(noisy, attack=attack))[3]) == [matched]


def test_the_original_can_be_drawn_alone(city):
    assert [name.partition(":")[0] for name in names(city.promesse.map(kind="original"))] == [
        "Original",
        "Stays (POIs) in the original",
    ]
    assert [name.partition(":")[0] for name in names(city.promesse.map())] == ["Data", "Stays (POIs)"]


def page_of_protected(drawn) -> list[str]:
    (records,) = calls_in(drawn, "records")
    assert records.data["colour"] == colours.PROTECTED
    assert records.data["title"] == "Protected record"
    assert not calls_in(drawn, "pois")
    assert [name.partition(":")[0] for name in names(drawn)] == ["Protected"]
    remarks = call_in(drawn, "addControls").data["remarks"]
    assert not any("true locations" in remark or "do not publish" in remark for remark in remarks)
    return remarks


def test_protected_data_alone_are_a_map_to_publish(city, safe, tmp_path):
    assert "Protected data: Promesse (epsilon = 200 m)." in page_of_protected(safe.promesse.map())
    assert "Protected data: Promesse (epsilon = 200 m)." in page_of_protected(
        pg.draw_map(pg.Traces.from_frame(safe), slider=True)
    )
    pg.write(safe, tmp_path / "safe.gpkg")
    assert page_of_protected(pg.draw_map(pg.read_file(tmp_path / "safe.gpkg", as_traces=True)))
    pg.write(safe, tmp_path / "safe.csv")
    unknown = pg.read_file(tmp_path / "safe.csv", as_traces=True)
    assert "Protected data." in page_of_protected(pg.draw_map(unknown, kind="protected"))
    drawn = safe.promesse.map(kind="original")
    assert names(drawn)[0].startswith("Original")
    assert "Shows true locations: do not publish." in call_in(drawn, "addControls").data["remarks"]


@pytest.mark.filterwarnings("ignore:Privacy zones", "ignore:.*could not be protected")
def test_a_map_names_all_mechanisms_of_a_chain(city):
    chain = pg.Chain([pg.PrivacyZones(300, 200, seed="a secret"), pg.Promesse(200)])
    safe = chain.protect(city.promesse.prepare(tz="UTC", keep_user=True))
    words = "Protected data: PrivacyZones (radius = 300 m, offset = 200 m), then Promesse (epsilon = 200 m)."
    assert words in call_in(safe.promesse.map(), "addControls").data["remarks"]


@pytest.mark.filterwarnings("ignore:Privacy zones")
def test_what_zones_alone_leave_is_no_map_to_publish(city, tmp_path):
    zoned = city.promesse.protect(pg.PrivacyZones(300, 200, seed="a secret"))
    chained = city.promesse.protect(pg.Chain([pg.PrivacyZones(300, 200), pg.PrivacyZones(600, 100)]))
    (tmp_path / "folder").mkdir()
    pg.write(zoned, tmp_path / "folder" / "zoned.parquet")
    for data in (zoned, chained, pg.read_file(tmp_path / "folder"), pg.Traces.from_frame(zoned)):
        drawn = pg.draw_map(data)
        drawn.save(tmp_path / "map.html")
        assert stat.S_IMODE((tmp_path / "map.html").stat().st_mode) == 0o600
        (tmp_path / "map.html").unlink()
        html = page(drawn)
        assert "<title>Map of data with true positions" in html
        (remark,) = (each for each in call_in(drawn, "addControls").data["remarks"] if "publish" in each)
        assert "PrivacyZones (radius = 300 m" in remark
        assert "Shows true locations: do not publish." in remark
        assert "rotected" not in str(names(drawn)) + remark
    assert any("Protected data" in each for each in page_of_protected(zoned.promesse.map(kind="protected")))


def test_a_map_of_data_of_unknown_kind_claims_nothing(safe, tmp_path):
    pg.write(safe, tmp_path / "safe.csv")
    without_metadata = safe.copy()
    without_metadata.attrs.clear()
    for unknown in (pg.read_file(tmp_path / "safe.csv"), without_metadata):
        drawn = pg.draw_map(unknown)
        (remark,) = (each for each in call_in(drawn, "addControls").data["remarks"] if "publish" in each)
        assert "not known whether" in remark
        assert "do not publish" in remark
        shown = str([call.data for call in calls_in(drawn, "records") + calls_in(drawn, "pois")]) + str(names(drawn))
        assert "riginal" not in shown
        assert "rotected" not in shown


def test_a_map_to_publish_names_no_user(safe):
    html = page(safe.promesse.map(users=["user-001", "user-003"], slider=True))
    assert "user-00" not in html
    assert calls_in(safe.promesse.map(users=["user-001", "user-003"]), "records")[0].data["users"] == [
        "trace 1",
        "trace 3",
    ]
    assert "user-001" in page(safe.promesse.map(safe))


def test_the_kind_is_for_a_data_set_drawn_alone(city, safe):
    with pytest.raises(ValueError, match=r"'kind' parameter of map.*alone"):
        city.promesse.map(safe, kind="protected")
    with pytest.raises(ValueError, match="'kind' parameter of map must be one of 'original', 'protected'"):
        safe.promesse.map(kind="published")
    assert [name.partition(":")[0] for name in names(safe.promesse.map(safe))][:2] == ["Original", "Protected"]


def test_a_user_stands_for_all_parts(small_city):
    parts = small_city.promesse.prepare(tz="Europe/Paris", keep_user=True, seed=1)
    own = sorted(each for each in parts["user"].unique() if each.startswith("user-001-"))
    assert own
    assert sorted(calls_in(parts.promesse.map(users="user-001"), "records")[0].data["users"]) == own
    with pytest.raises(ValueError, match="1 of 1 user not found in the data, neither as users nor as parts"):
        parts.promesse.map(users="nobody")


def test_users_and_period_select_records(city, safe):
    drawn = city.promesse.map(safe, users=["user-001"], period="2024-03-04")
    days = city[(city.user == "user-001") & (city.time.dt.date == pd.Timestamp("2024-03-04").date())]
    original, protected = calls_in(drawn, "records")
    assert names(drawn)[0] == f"Original: {len(days):,} records"
    assert original.data["users"] == protected.data["users"] == ["user-001"]
    first, last = pd.Timestamp("2024-03-04 09:00", tz="UTC"), pd.Timestamp("2024-03-04 13:00", tz="Europe/Paris")
    assert "Only records of this period are drawn: 2024-03-04." in call_in(drawn, "addControls").data["remarks"]
    later = city.promesse.map(users="user-001", period=("2024-03-04 09:00", last))
    remark = f"Only records of this period are drawn: 2024-03-04 09:00 to {last}."
    assert remark in call_in(later, "addControls").data["remarks"]
    assert (
        names(city.promesse.map(period="2024-03-04T09"))[0]
        == names(city.promesse.map(period=("2024-03-04T09:00", np.datetime64("2024-03-04T09:59:59.999999999"))))[0]
    )
    inside = city[(city.user == "user-001") & city.time.between(first, last)]
    assert names(later)[0] == f"Data: {len(inside):,} records"


def test_a_day_includes_its_last_nanosecond():
    frame = walk([0, 0.001], [0, 0], start="2024-03-04 23:59:59.999999999", freq="1ns")
    assert names(frame.promesse.map(period="2024-03-04"))[0] == "Data: 1 record"


@pytest.mark.parametrize(
    ("period", "minutes"),
    [
        ("2024-11-03 00:59", ["00:59"]),
        ("2024-11-03 01:30", ["01:30", "01:30"]),
        ("2024-11-03 01:59", ["01:59", "01:59"]),
        ("2024-11-03 02:00", ["02:00"]),
        ("2024-11-03 01", [f"01:{minute:02}" for minute in range(60)] * 2),
        ("2024-03-10 02:30", []),
        ("2024-03-10 02", []),
    ],
)
def test_a_local_hour_that_occurs_twice_is_drawn_twice(period, minutes):
    zone = "America/New_York"
    days = (walk([0.0] * 1600, [0.0] * 1600, start=day, tz=zone) for day in ("2024-03-10", "2024-11-03"))
    call = call_in(pd.concat(days).promesse.map(period=period, attack=None), "records")
    drawn = pd.to_datetime(np.cumsum(call.data["times"]), unit="s", utc=True).tz_convert(zone)
    assert drawn.strftime("%H:%M").tolist() == minutes


def test_user_keys_that_are_numbers_can_be_named():
    frame = stroll(user=7)
    assert names(frame.promesse.map(users=7))[0] == names(frame.promesse.map(users=["7"]))[0] == "Data: 90 records"


def test_an_unknown_user_or_invalid_period_is_an_error_without_names(city, safe):
    with pytest.raises(ValueError, match="1 of 2 users not found") as caught:
        city.promesse.map(safe, users=["user-001", "nobody"])
    assert "nobody" not in str(caught.value)
    noon = pd.Timestamp("2024-03-04 12:00")
    for period in (
        *("yesterday-ish", "", "NaT", "04/03/2024", "2024-03-04/2024-03-05", "2024-02-30", "2024-03-04 08:00Z"),
        *(3, (0, 1), ("2024-03-04",), ("2024-03-04", None), ("NaT", "NaT"), (pd.NaT, pd.NaT), ("04/03/2024", noon)),
        (noon, noon - pd.Timedelta("1ns")),
    ):
        with pytest.raises(ValueError, match="'period' parameter of map"):
            city.promesse.map(safe, period=period)
    bare = stroll(tz=None)
    with pytest.raises(ValueError, match="'period' parameter of map_pair"):
        bare.promesse.map_pair(
            bare, period=(pd.Timestamp("2024-03-04", tz="UTC"), pd.Timestamp("2024-03-05", tz="UTC"))
        )
    with pytest.raises(ValueError, match="The original has none of the 9 users"):
        stroll(user="stranger").promesse.map(safe)


def test_a_map_is_thinned_with_a_remark(city, safe):
    drawn = city.promesse.map(safe, points=100)
    original, protected = calls_in(drawn, "records")
    assert (len(places(original)), len(places(protected))) == (100, 100)
    assert names(drawn)[0] == f"Original: {len(city):,} records (100 drawn)"
    assert len(city) > 3 * 100 >= len(original.data["path"]["x"]) > 50
    assert call_in(drawn, "addControls").data["remarks"] == [
        "Layers of more than 100 records are thinned and have simplified lines; records far from all others and ends "
        "of traces are drawn.",
        "Times are in UTC.",
        "Shows true locations: do not publish.",
    ]
    assert [call.data["path"] for call in calls_in(city.promesse.map(safe), "records")] == [{}, {}]


def test_a_pair_of_thinned_maps_has_one_remark(city, safe):
    assert page(city.promesse.map_pair(safe, points=100)).count("are thinned") == 1


def test_maps_send_no_requests_by_default(city, safe):
    for drawn in (city.promesse.map(safe), city.promesse.map_pair(safe)):
        html = page(drawn)
        assert loaded_from_the_network(html) == []
        assert "Leaflet 1.9.4" in html
        assert "Redistributions in binary form must reproduce the above copyright" in html
        assert "sourceMappingURL" not in html


def test_tiles_and_foliums_code_are_loaded_only_on_request(city, safe):
    tiles = page(city.promesse.map(safe, tiles="OpenStreetMap"))
    assert "tile.openstreetmap.org" in tiles
    assert loaded_from_the_network(tiles) == []
    online = page(city.promesse.map(safe, offline=False))
    assert any("leaflet" in mark for mark in loaded_from_the_network(online))
    assert "Redistributions in binary form" not in online
    tiles = folium.TileLayer("http://localhost/{z}/{x}/{y}.png", attr="ours")
    assert "http://localhost/" in page(city.promesse.map(safe, tiles=tiles))


def test_one_background_can_be_used_on_many_maps(city, safe):
    tiles = folium.TileLayer("http://localhost/{z}/{x}/{y}.png", attr="ours")
    one, other = city.promesse.map(safe, tiles=tiles), city.promesse.map(tiles=tiles)
    pair = city.promesse.map_pair(safe, tiles=tiles)
    halves = [child for child in pair._children.values() if isinstance(child, folium.Map)]
    for maps, html in (([one], page(one)), ([other], page(other)), (halves, page(pair))):
        added = re.findall(r"(\w*element_\w+)\.addTo\((\w+)\)", html)
        assert [name for _, name in added] == [each.get_name() for each in maps]
        assert len({layer for layer, _ in added}) == len(maps)
    assert tiles._parent is None


@pytest.mark.filterwarnings("ignore:Promesse")
def test_names_can_neither_end_a_script_nor_be_a_template():
    frame = stroll(user=HOSTILE)
    for drawn in (frame.promesse.map(frame, slider=True), frame.promesse.map_pair(frame)):
        html = page(drawn)
        assert "<img src=x" not in html
        assert "{{" not in html.split("<script>")[-1]
        assert "49" not in re.findall(r"JSON\.parse\((.*)\)", html)[0].partition("counts")[0]
    assert calls_in(frame.promesse.map(), "records")[0].data["users"] == [HOSTILE[:60] + "… (trace 0)"]


@pytest.mark.parametrize(
    "data", [HOSTILE, [HOSTILE, 1], {"a": {"b": [[]]}}, "é\\\"'\n\u2029 \U0001f600", "\ud800 \udc00"]
)
def test_a_literal_is_read_back_and_has_no_dangerous_character(data):
    text = literal(data)
    assert not set("<>&'{}%#\u2028\u2029\n") & set(text)
    assert text.encode()
    inner = re.fullmatch(r"JSON\.parse\((.*)\)", text)
    assert json.loads(json.loads(inner[1])) == data


def test_letters_of_any_language_are_not_escaped():
    assert len(literal(["\U0001f600" * 60]).encode()) < 4 * 60 + 50


def test_data_without_records_gives_an_empty_map():
    nothing = stroll().iloc[:0]
    drawn = nothing.promesse.map(nothing)
    assert names(drawn)[:2] == ["Original: 0 records", "Protected: 0 records"]
    assert call_in(drawn, "addControls").data["corners"] is None
    nothing.promesse.map_pair(nothing)
    empty = stroll().promesse.map(period="1999-01-01", slider=True, kind="original")
    assert names(empty)[0] == "Original: 0 records"
    period = "Only records of this period are drawn: 1999-01-01."
    assert call_in(empty, "addControls").data["remarks"] == [period, "Shows true locations: do not publish."]


def test_one_record_gives_a_view():
    drawn = stroll().iloc[:1].promesse.map()
    assert np.array(call_in(drawn, "addControls").data["corners"]) == pytest.approx(np.array([[45.76, 4.84]] * 2))


def test_a_few_records_far_away_do_not_make_the_rest_a_dot():
    x = np.full(1000, 4.84) + np.arange(1000) * 1e-5
    frame = walk(np.append(x, 0.0), np.append(np.full(1000, 45.76), 0.0))
    drawn = frame.promesse.map()
    (south, _), _ = call_in(drawn, "addControls").data["corners"]
    assert south == pytest.approx(45.76)
    assert "A few records are far outside this view." in call_in(drawn, "addControls").data["remarks"]
    assert bounds_of([]) == (None, False)


def test_the_slider_moves_any_number_of_users(city, safe):
    drawn = city.promesse.map(safe, users=["user-000"], slider=True)
    call = call_in(drawn, "slider")
    assert call.data == "UTC"
    assert [element.get_name() for element in call.elements[1]] == [
        group.get_name() for group in list(drawn._children.values()) if isinstance(group, folium.FeatureGroup)
    ][:2]
    many = pd.concat([stroll(user=f"u{number}") for number in range(60)])
    drawn = many.promesse.map(slider=True)
    assert len(calls_in(drawn, "slider")) == 1
    with pytest.raises(TypeError, match="'slider' parameter of map"):
        many.promesse.map(slider=1)


def test_a_pair_of_maps_is_side_by_side(city, safe):
    figure = city.promesse.map_pair(safe)
    left, right = (child for child in figure._children.values() if isinstance(child, folium.Map))
    assert [name.partition(":")[0] for name in names(left)] == ["Original", "Stays (POIs) in the original"]
    assert next(iter(names(right))).partition(":")[0] == "Protected"
    assert len(names(right)) == 4
    assert call_in(left, "addControls").data["corners"] == call_in(right, "addControls").data["corners"]
    assert next(each for each in figure._children.values() if isinstance(each, Call)).elements == [left, right]
    assert page(figure).count("Volodymyr Agafonkin") == 1
    assert (left.width, right.left) == ((50.0, "%"), (50.0, "%"))


def test_a_map_shows_in_jupyter_and_can_be_saved_twice(city, safe, tmp_path):
    drawn = city.promesse.map(safe)
    assert "srcdoc" in drawn._repr_html_()
    files = tmp_path / "one.html", tmp_path / "two.html"
    for file in files:
        drawn.save(file)
    one, two = (re.findall(r"promesse\.\w+\(.*", file.read_text(encoding="utf-8")) for file in files)
    assert one == two
    assert len(one) == 10


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
@pytest.mark.parametrize("as_path", [str, os.fsencode, Path])
def test_a_new_page_with_true_locations_is_for_its_owner_only(small_city, small_safe, tmp_path, as_path):
    before = os.umask(0o022)
    try:
        for name, drawn, mode in (
            ("both", small_city.promesse.map(small_safe), 0o600),
            ("unknown", small_city.promesse.map(), 0o600),
            ("root", small_city.promesse.map().get_root(), 0o600),
            ("slider", small_city.promesse.map(small_safe, slider=True, users="user-001"), 0o600),
            ("pair", small_city.promesse.map_pair(small_safe), 0o600),
            ("protected", small_safe.promesse.map(), 0o644),
            ("root of protected", small_safe.promesse.map().get_root(), 0o644),
        ):
            file = tmp_path / f"{name}.html"
            drawn.save(as_path(file))
            assert stat.S_IMODE(file.stat().st_mode) == mode, name
            file.chmod(0o640)
            drawn.save(as_path(file))  # a file that is replaced keeps its permissions
            assert stat.S_IMODE(file.stat().st_mode) == 0o640
    finally:
        os.umask(before)
    with open(tmp_path / "open.html", "wb") as opened:
        drawn.save(opened, close_file=False)
    assert (tmp_path / "open.html").read_bytes().startswith(b"<!DOCTYPE html>")


def test_columns_can_be_named_and_there_may_be_no_user():
    frame = stroll().rename(columns={"user": "cab", "time": "stamp"})
    named = frame.promesse(user="cab", time="stamp")
    assert names(named.map(frame))[0] == "Original: 90 records"
    assert len(page(named.map_pair(frame))) > 100_000
    alone = frame.drop(columns="cab").promesse(user=None, time="stamp").map()
    assert calls_in(alone, "records")[0].data["users"] == []


@pytest.mark.parametrize(
    ("zone", "name"),
    [
        ("Europe/Paris", "Europe/Paris"),
        ("dateutil/Europe/Paris", "Europe/Paris"),  # its repr is a path of this machine
        ("UTC", "UTC"),
        (None, ""),
        ("+02:00", "+02:00"),
        ("posixrules", "UTC"),
        ("localtime", "UTC"),
        ("posix/Europe/Paris", "UTC"),
        (timezone(timedelta(hours=2), "/home/me"), "+02:00"),
    ],
)
def test_times_are_in_the_zone_of_the_data(zone, name):
    frame = stroll(tz=zone)
    secret = "Shows true locations: do not publish."
    drawn = frame.promesse.map(kind="original")
    assert calls_in(drawn, "records")[0].data["zone"] == name
    remarks = [f"Times are in {name}."] if name else []
    assert call_in(drawn, "addControls").data["remarks"] == [*remarks, secret]
    left, right = (each for each in frame.promesse.map_pair(frame)._children.values() if isinstance(each, folium.Map))
    assert call_in(left, "addControls").data["remarks"] == [*remarks, f"Original data. {secret}"]
    assert call_in(right, "addControls").data["remarks"] == [
        f"Protected data. Stays of the original are shown. {secret}"
    ]
    halves = frame.promesse.map_pair(frame, attack=None)._children.values()
    _, right = (each for each in halves if isinstance(each, folium.Map))
    assert call_in(right, "addControls").data["remarks"] == ["Protected data."]
    moving = frame.promesse.map(slider=True, kind="original")
    assert call_in(moving, "slider").data == name
    dots = f"Large dots: users at this time ({name})." if name else "Large dots: users at this time."
    assert call_in(moving, "addControls").data["remarks"] == [dots, secret]


def test_a_slider_explains_its_dots(city, safe):
    drawn = city.promesse.map(safe, slider=True, points=100)
    assert call_in(drawn, "addControls").data["remarks"][1:3] == [
        "Large dots: users at this time (UTC); dashes connect original and protected.",
        "Dots move in straight lines between drawn records.",
    ]


def test_parameters_are_checked(city, safe):
    for wrong in ({"points": 1}, {"points": 2.5}, {"offline": "yes"}):
        with pytest.raises((TypeError, ValueError), match=f"'{next(iter(wrong))}' parameter of map must be"):
            city.promesse.map(safe, **wrong)
    nothing = [("", ValueError), *((each, TypeError) for each in (0, False, [], {}))]
    for tiles, error in ((5, TypeError), ([1], TypeError), ("Nonesuch", ValueError), *nothing):
        for draw, owner in ((pg.draw_map, "map"), (pg.draw_map_pair, "map_pair")):
            with pytest.raises(error, match=f"'tiles' parameter of {owner} must be the name"):
                draw(city, safe, tiles=tiles)


def test_a_pair_needs_protected_data(city):
    with pytest.raises(TypeError, match="'protected' parameter of map_pair"):
        pg.draw_map_pair(city, None)


def test_the_data_is_not_changed(city, safe):
    frame = city.copy(deep=True)
    city.promesse.map(safe)
    pd.testing.assert_frame_equal(frame, city)


def test_folium_is_imported_on_first_use(tmp_path, run_fresh):
    code = "import sys, promesse_geo; assert 'folium' not in sys.modules; promesse_geo.draw_map"
    done = run_fresh(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert isinstance(pg.draw_map, types.FunctionType)
