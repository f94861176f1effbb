"""Tools of maps in a browser without network: users, colours, heat maps, backgrounds, pictures and print."""

import base64
import io
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import folium
import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from browser import Browser
from conftest import saved
from maps import HOSTILE, MAP, MAPS, pixels, pixels_of, stroll, walk
from PIL import Image

import promesse_geo as pg
from promesse_geo.plot import colours

BOXES = "[...document.querySelectorAll('.promesse-users input')]"
LEGEND = "[...document.querySelectorAll('.leaflet-control-layers-selector')]"


def users_on(browser: Browser, maps: str = MAP) -> set[str]:
    """The users of all records and points of interest that a map shows."""
    return set(
        browser.run(
            f"(() => {{ const all = []; {maps}.eachLayer(each => each.options.lines && "
            "all.push(each.options.lines()[1])); return all; })()"
        )
    )


def search(browser: Browser, text: str) -> None:
    browser.run(
        "(() => { const search = document.querySelector('.promesse-panel input[type=search]');"
        f"search.value = {text!r}; search.dispatchEvent(new Event('input')); }})()"
    )
    browser.settle()


def picture_of(browser: Browser) -> bytes:
    """What the button saves; the browser has no folder for downloads."""
    browser.run(
        "window.saved = null;"
        "HTMLAnchorElement.prototype.click = function () { window.saved = [this.download, this.href]; };"
        "document.querySelector('.promesse-tools a').dispatchEvent(new MouseEvent('click', { cancelable: true }))"
    )
    name, address = browser.wait_for("window.saved")
    assert name == "map.png"
    assert address.startswith("data:image/png;base64,")
    return base64.b64decode(address.partition(",")[2])


def test_users_are_hidden_and_shown_in_all_layers(look, small_city, small_safe):
    browser = look(small_city.promesse.map(small_safe, points=500))
    assert users_on(browser) == {"user-000", "user-001", "user-002"}
    browser.run(f"{BOXES}[1].click()")
    assert users_on(browser) == {"user-000", "user-002"}
    assert browser.run("document.querySelector('.promesse-panel output').innerText") == ""  # closed
    browser.run("document.querySelector('.promesse-tools details').open = true")
    assert browser.run("document.querySelector('.promesse-panel output').innerText") == "2 of 3 users"
    browser.run("document.querySelector('.promesse-panel > label input').click()")  # some: all
    assert len(users_on(browser)) == 3
    browser.run("document.querySelector('.promesse-panel > label input').click()")
    assert users_on(browser) == set()
    browser.run(f"{BOXES}[2].click()")
    assert users_on(browser) == {"user-002"}


def test_the_original_stays_below_when_users_come_back(look):
    frame = stroll()
    both = pd.concat([frame, stroll(user="b")])
    browser = look(both.promesse.map(both, attack=None))
    before = pixels(browser, colours.PROTECTED)
    browser.run(f"{BOXES}[0].click(), {BOXES}[0].click()")
    browser.settle()
    assert pixels(browser, colours.PROTECTED) == pytest.approx(before, rel=0.02)


def test_hundreds_of_users_are_searched(look):
    crowd = pd.concat([walk([4.8 + n / 1000] * 2, [45.7] * 2, user=f"Cab-{n:03}") for n in range(400)])
    browser = look(crowd.promesse.map(attack=None))
    assert len(users_on(browser)) == 400
    browser.run("document.querySelector('.promesse-tools details').open = true")
    search(browser, "cab-12")
    assert users_on(browser) == {f"Cab-12{n}" for n in range(10)}
    assert browser.run("document.querySelector('.promesse-panel output').innerText") == "10 of 400 users"
    box = browser.run("document.querySelector('.promesse-panel').getBoundingClientRect().toJSON()")
    assert box["bottom"] <= 700
    search(browser, "nobody")
    assert users_on(browser) == set()
    search(browser, "")
    assert len(users_on(browser)) == 400


def test_users_of_two_maps_are_chosen_at_once(look, small_city, small_safe):
    browser = look(small_city.promesse.map_pair(small_safe, points=500))
    assert browser.run("document.querySelectorAll('.promesse-tools').length") == 1
    browser.run(f"{BOXES}[0].click()")
    for number in (0, 1):
        assert users_on(browser, f"{MAPS}[{number}]") == {"user-001", "user-002"}


def test_hostile_names_are_text_in_the_list_and_in_the_picture(look):
    names = ["\x01 & <b>", HOSTILE[:50], "Zoë \U0001f600"]
    crowd = pd.concat([stroll(user=name) for name in names])
    browser = look(crowd.promesse.map(color="user", slider=True))
    browser.run("document.querySelector('.promesse-tools details').open = true")
    assert browser.run("[...document.querySelectorAll('.promesse-users label')].map(each => each.textContent)") == names
    search(browser, "<img src=x onerror")
    assert users_on(browser) == {names[1]}
    x, y = browser.run(
        "(() => { const box = document.querySelector('.promesse-poi').getBoundingClientRect();"
        "return [box.x + 8, box.y + 8]; })()"
    )
    browser.run("document.querySelector('.promesse-tools details').open = false")
    browser.move_mouse(x, y)
    browser.settle()
    assert "<img src=x" in browser.wait_for("document.querySelector('.leaflet-tooltip')?.innerText")
    assert len(picture_of(browser)) > 10_000
    assert browser.run("document.images.length") == 0
    assert not any(event.get("method") == "Page.javascriptDialogOpening" for event in browser.events)


def test_a_map_of_one_user_or_without_users_has_no_list(look):
    frame = stroll()
    for drawn in (frame.promesse.map(), frame.drop(columns="user").promesse(user=None, time="time").map()):
        browser = look(drawn)
        assert browser.run("document.querySelectorAll('.promesse-tools a').length") == 1
        assert browser.run("document.querySelectorAll('.promesse-panel').length") == 0


def test_colours_by_user_are_on_the_map_and_in_the_list(look, small_city, small_safe):
    browser = look(small_city.promesse.map(small_safe, points=500, color="user", attack=None))
    used = [colours.SERIES[0], colours.SERIES[1], colours.SERIES[2]]
    assert all(pixels_of(browser.picture(), colour) > 50 for colour in used)
    swatches = browser.run("[...document.querySelectorAll('.promesse-users i')].map(each => each.style.background)")
    assert [colour.startswith("rgb") for colour in swatches] == [True] * 3
    browser.run(f"{BOXES}[1].click()")
    browser.settle()
    assert pixels_of(browser.picture(), used[1]) == 0
    lines = browser.run(
        f"(() => {{ const all = []; {MAP}.eachLayer(each => each instanceof L.Polyline && "
        "all.push(each.options.color)); return all; })()"
    )
    assert set(lines) == {used[0], used[2]}


def test_each_step_has_the_colour_of_its_speed(look):
    x = 4.84 + np.cumsum([0, 0, 0, 0.002, 0.002, 0.02, 0.02, 0]) / 10
    frame = walk(x, np.full(8, 45.76))
    drawn = frame.promesse.map(color="speed", attack=None, kind="original")
    browser = look(drawn)
    paths = browser.run(
        f"(() => {{ const all = {{}}; {MAP}.eachLayer(each => {{ if (each instanceof L.Polyline) "
        "all[each.options.color] = each.getLatLngs().map(path => path.map(place => place.lng)); }); return all; })()"
    )
    slow, fast = colours.SPEEDS[0], colours.SPEEDS[1]
    assert paths[slow] == [pytest.approx(x[:5]), pytest.approx(x[6:])]
    assert paths[fast] == [pytest.approx(x[4:7])]
    assert browser.run("document.querySelectorAll('.promesse-scale span').length") == 6


def test_a_heat_map_is_shown_on_request_and_follows_the_users(look, small_city, small_safe):
    browser = look(small_city.promesse.map(small_safe, points=500, attack=None))
    heat = "document.querySelectorAll('.leaflet-heatmap-layer').length"
    assert browser.run(heat) == 0
    browser.run(f"{LEGEND}.forEach(each => each.click())")  # the records are hidden, the heat maps shown
    browser.settle()
    assert browser.run(heat) == 2
    shown = "[...document.querySelectorAll('.leaflet-heatmap-layer')].map(each => each.getContext('2d')"
    shown += ".getImageData(0, 0, each.width, each.height).data.filter((value, i) => i % 4 == 3 && value > 0).length)"
    before = browser.run(shown)
    assert min(before) > 500
    browser.run(f"{BOXES}.forEach((each, number) => number && each.click())")
    browser.settle()
    after = browser.run(shown)
    assert all(0 < one < other for one, other in zip(after, before, strict=True))


def test_the_background_lies_below_the_data_and_can_be_seen(look):
    city, streets = pg.make_city(users=2, days=1, return_streets=True, recorder="phone")
    browser = look(city.promesse.map(background=streets, attack=None))
    panes = (".leaflet-overlay-pane", ".leaflet-promesse-background-pane")
    data, ground = (int(browser.run(f"getComputedStyle(document.querySelector({pane!r})).zIndex")) for pane in panes)
    assert ground < data
    with_streets = browser.picture()
    without = look(city.promesse.map(attack=None)).picture()
    dark = [(np.asarray(Image.open(io.BytesIO(each)).convert("L")) < 235).sum() for each in (with_streets, without)]
    assert dark[0] > 3 * dark[1]


@pytest.mark.parametrize("outer", [(-180, -90, 180, 90), (-170, -80, 170, 80), (4, 45, 5, 46)])
def test_a_hole_of_a_large_polygon_is_not_painted(look, outer):
    frame = stroll()
    west, south, east, north = frame.total_bounds
    hole = shapely.box(west - 0.01, south - 0.01, (west + east) / 2, north + 0.01)
    area = gpd.GeoSeries([shapely.box(*outer).difference(hole)], crs=4326)
    browser = look(frame.promesse.map(background=area, attack=None))
    colour = np.asarray(Image.open(io.BytesIO(browser.picture())).convert("RGB")).astype(int)
    plain = np.asarray(Image.open(io.BytesIO(look(frame.promesse.map(attack=None)).picture())).convert("RGB")).astype(
        int
    )
    painted = (np.abs(colour - plain).sum(axis=2) > 3)[300:400]
    assert painted[:, 550:600].mean() > 0.9
    assert painted[:, 400:450].mean() < 0.1


@pytest.mark.parametrize("kind", ["one map", "pair"])
def test_a_picture_shows_what_the_map_shows(look, small_city, small_safe, kind):
    draw = small_city.promesse.map_pair if kind == "pair" else small_city.promesse.map
    browser = look(draw(small_safe, points=500), dark=True)
    picture = picture_of(browser)
    assert Image.open(io.BytesIO(picture)).size == (2000, 1400)
    assert pixels_of(picture, colours.PROTECTED) > 1000
    assert pixels_of(picture, colours.MISSED) > 100
    light = np.asarray(Image.open(io.BytesIO(picture)).convert("L"))
    assert np.median(light) > 200
    corner = light[-320:-40, -520:-20]  # remarks, which say that the map is not to be published
    assert (corner < 100).sum() > 300
    buttons = light[:300, :100]
    assert (buttons < 100).sum() == 0


@pytest.fixture
def tile_server(tmp_path):
    """Serve the pages of a folder, and green tiles."""
    stream = io.BytesIO()
    Image.new("RGB", (256, 256), "#00ff00").save(stream, format="png")

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self):
            if not self.path.endswith(".png"):
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "image/png")
            self.end_headers()
            self.wfile.write(stream.getvalue())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_picture_has_the_tiles_of_the_map(browser, tile_server, tmp_path):
    tiles = folium.TileLayer(f"{tile_server}/{{z}}/{{x}}/{{y}}.png", attr="ours")
    saved(stroll().promesse.map(tiles=tiles), tmp_path)
    browser.open(f"{tile_server}/map.html")
    browser.wait_for("document.querySelectorAll('.leaflet-tile-loaded').length > 3")
    browser.settle()
    assert pixels_of(picture_of(browser), "#00ff00") > 0.5 * 2000 * 1400
    assert all(address.startswith(tile_server) for address in browser.requests)


def test_an_open_list_lies_above_the_legend_of_a_small_map(look, small_city, small_safe):
    browser = look(small_city.promesse.map(small_safe, points=500), width=380, height=640)
    browser.run("document.querySelector('.promesse-tools details').open = true")
    browser.settle()
    top = browser.run(
        "(() => { const box = document.querySelector('.promesse-panel').getBoundingClientRect();"
        "return [0.1, 0.5, 0.9].every(share => document.elementFromPoint(box.x + share * box.width, box.y + 8)"
        ".closest('.promesse-panel')); })()"
    )
    assert top


def test_the_picture_of_a_filtered_map_has_no_hidden_user(look, small_city, small_safe):
    browser = look(small_city.promesse.map(small_safe, points=500, color="user", attack=None))
    browser.run(f"{BOXES}[1].click()")
    browser.settle()
    picture = picture_of(browser)
    assert pixels_of(picture, colours.SERIES[1]) == 0
    assert pixels_of(picture, colours.SERIES[2]) > 100


def test_the_slider_hides_users_that_are_hidden(look):
    crowd = pd.concat([stroll(user=f"u{number:02}") for number in range(60)])
    browser = look(crowd.promesse.map(attack=None, slider=True, kind="original"))
    moving = "document.querySelectorAll('path.promesse-moving').length"
    assert browser.run(moving) == 60
    search(browser, "u1")
    assert browser.run(moving) == 10
    search(browser, "")
    assert browser.run(moving) == 60


@pytest.mark.parametrize("kind", ["one map", "pair", "slider"])
def test_paper_shows_the_whole_screen(look, small_city, small_safe, kind):
    draw = small_city.promesse.map_pair if kind == "pair" else small_city.promesse.map
    browser = look(draw(small_safe, points=500, **({"slider": True} if kind == "slider" else {})), dark=True)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    size = browser.run("[document.body.clientWidth, document.body.clientHeight]")
    assert size == [1000, 700]
    hidden = [".leaflet-control-zoom", ".promesse-tools"]
    shown = [f"getComputedStyle(document.querySelector({each!r})).display" for each in hidden]
    assert [browser.run(each) for each in shown] == ["none", "none"]
    page = base64.b64decode(browser.ask("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
    assert page.count(b"/Type /Page\n") == 1
    assert np.median(np.asarray(Image.open(io.BytesIO(browser.picture())).convert("L"))) > 200
    browser.ask("Emulation.setEmulatedMedia", media="")
