"""Maps in a browser without network: what is drawn, how it reacts, and that it sends no requests."""

import io
import subprocess
import sys
from pathlib import Path

import folium
import numpy as np
import pandas as pd
import pytest
from browser import Browser
from conftest import saved
from maps import HALL, HOSTILE, MAP, MAPS, pixels, stroll, walk, wrapped
from PIL import Image

from promesse_geo.plot import colours


@pytest.fixture(scope="module")
def city_map(small_city, small_safe, tmp_path_factory) -> Path:
    return saved(small_city.promesse.map(small_safe), tmp_path_factory.mktemp("map"))


@pytest.fixture(scope="module")
def city_pair(small_city, small_safe, tmp_path_factory) -> Path:
    return saved(small_city.promesse.map_pair(small_safe, points=300), tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def sparse_map(small_city, small_safe, tmp_path_factory) -> Path:
    """A map whose page opens faster, because few records are drawn."""
    return saved(small_city.promesse.map(small_safe, points=300), tmp_path_factory.mktemp("sparse"))


def text_of(browser: Browser, selector: str) -> list[str]:
    """The lines of an element, which may take a while to appear."""
    return browser.wait_for(f"document.querySelector({selector!r})?.innerText").split("\n")


def middle_of(browser: Browser, selector: str) -> tuple[float, float]:
    box = f"document.querySelector({selector!r}).getBoundingClientRect()"
    x, y = browser.run(f"(() => {{ const box = {box}; return [box.x + box.width / 2, box.y + box.height / 2]; }})()")
    return x, y


def test_the_browser_is_controlled_with_any_free_descriptors(tmp_path):
    echo = tmp_path / "echo"
    echo.write_text(
        f"#!{sys.executable}\nimport json, os\n"
        "while order := os.read(3, 10_000):\n"
        "    number = json.loads(order[:-1])['id']\n"
        "    os.write(4, json.dumps({'id': number, 'result': {'targetId': 't', 'sessionId': 's'}}).encode() + b'\\0')\n"
    )
    echo.chmod(0o755)
    code = (
        "import os, sys; from pathlib import Path; from browser import Browser\n"
        "for taken in range(14):\n"
        "    with Browser(sys.argv[1], Path(sys.argv[2])) as started: started.ask('Page.enable')\n"
        "    os.open(os.devnull, os.O_RDONLY)"
    )
    command = [sys.executable, "-c", code, str(echo), str(tmp_path)]
    done = subprocess.run(
        command, cwd=Path(sys.modules[Browser.__module__].__file__).parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_record_and_poi_is_drawn_within_the_view(look, city_map, small_city, small_safe):
    browser = look(city_map)
    circles = browser.run(
        f"(() => {{ const map = {MAP}, all = []; map.eachLayer(layer => layer instanceof L.CircleMarker && "
        "all.push(map.getBounds().contains(layer.getLatLng()))); return all; })()"
    )
    assert len(circles) == len(small_city) + len(small_safe)
    assert all(circles)
    table = small_city.promesse.poi_retrieval(small_safe)
    shown = browser.run(
        "[...document.querySelectorAll('.promesse-poi')].map(each => each.getBoundingClientRect())"
        ".map(({x, y, width, height}) => x >= 0 && y >= 0 && x + width <= innerWidth && y + height <= innerHeight "
        "&& width > 5 && height > 5)"
    )
    assert len(shown) >= 2 * int(table.original_pois.sum())
    assert all(shown)
    assert pixels(browser, colours.PROTECTED) > 500
    boxes = "[...document.querySelectorAll('.leaflet-control-layers-selector')]"
    browser.run(f"{boxes}.slice(2, 6).forEach(each => each.click())")
    browser.settle()
    picture = np.asarray(Image.open(io.BytesIO(browser.picture())).convert("RGB"), dtype=int)
    redder = (picture[..., 0] - picture[..., 2] > 40).sum()
    assert redder > (picture[..., 2] - picture[..., 0] > 40).sum()  # the original shows beside what lies on it


@pytest.mark.parametrize("kind", ["one map", "pair", "slider"])
@pytest.mark.parametrize("size", [(1280, 800), (1000, 600), (700, 900), (420, 420)])
def test_no_control_covers_data(look, small_city, small_safe, size, kind):
    draw = small_city.promesse.map_pair if kind == "pair" else small_city.promesse.map
    drawn = draw(small_safe, points=300, **({"slider": True} if kind == "slider" else {}))
    browser = look(drawn, width=size[0], height=size[1])
    hidden = browser.run(
        "(() => { const controls = '.leaflet-control-layers, .promesse-note, .promesse-slider';"
        "const boxes = [...document.querySelectorAll(controls)].map(each => each.getBoundingClientRect());"
        "return [...document.querySelectorAll('.promesse-poi')].map(each => each.getBoundingClientRect())"
        ".filter(poi => boxes.some(box => poi.right > box.left && poi.left < box.right && poi.bottom > box.top"
        " && poi.top < box.bottom)).length; })()"
    )
    assert hidden == 0


@pytest.mark.parametrize(("width", "height"), [(420, 420), (360, 640), (640, 360)])
def test_legends_leave_space_for_the_data(look, sparse_map, width, height):
    browser = look(sparse_map, width=width, height=height)
    boxes = "[...document.querySelectorAll('.promesse-poi')].map(each => each.getBoundingClientRect())"
    sides = [
        browser.run(f"(() => {{ const all = {boxes}.map(({{ {axis} }}) => {axis});"
                    f"return Math.max(...all) - Math.min(...all); }})()")
        for axis in ("x", "y")
    ]  # fmt: skip
    assert max(sides[0] / width, sides[1] / height) > 0.35


def test_each_page_has_a_title_and_says_which_map_is_which(look, city_pair):
    browser = look(city_pair, width=400, height=400)
    assert browser.run("document.title") == "Maps of original and protected data"
    assert browser.run("document.documentElement.lang") == "en"
    notes = browser.run("[...document.querySelectorAll('.promesse-note')].map(each => each.innerText)")
    assert ["Original data" in note for note in notes] == [True, False]
    assert ["Protected data" in note for note in notes] == [False, True]


@pytest.mark.parametrize("pair", [False, True], ids=["one map", "a pair"])
@pytest.mark.parametrize(("width", "height"), [(1000, 180), (1000, 90), (560, 700), (360, 640), (250, 500), (180, 180)])
def test_small_pages_show_everything_and_their_buttons(look, small_city, sparse_map, city_pair, width, height, pair):
    browser = look(city_pair if pair else sparse_map, width=width, height=height)
    south, west, north, east = small_city[~small_city.is_empty].total_bounds[[1, 0, 3, 2]]
    seen = f"{MAPS}.map(map => map.getBounds().pad(0.05).contains([[{south}, {west}], [{north}, {east}]]))"
    zooms = browser.run(f"{MAPS}.map(map => map.getZoom())")
    assert all(browser.run(seen)), zooms
    assert min(zooms) > (8 if min(width, height) > 200 else 6)
    free = browser.run(
        "[...document.querySelectorAll('.leaflet-control-zoom-in')].map(each => {"
        "const box = each.getBoundingClientRect();"
        "return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).closest('a') === each; })"
    )
    assert free == [True] * (2 if pair else 1)


def test_layers_can_be_hidden_and_shown_again(look, city_map, small_city, small_safe):
    browser = look(city_map)
    labels = browser.run(
        "[...document.querySelectorAll('.leaflet-control-layers-overlays label')].map(l => l.innerText.trim())"
    )
    assert [label.partition(":")[0] for label in labels] == [
        "Original",
        "Protected",
        "Stays (POIs) in the original",
        "Hit, still found",
        "Missed, no longer found",
        "False, not in the original",
        "Heat map, original",
        "Heat map, protected",
    ]
    assert browser.run("document.querySelectorAll('.leaflet-control-layers-overlays svg').length") == 8
    before = pixels(browser, colours.PROTECTED)
    boxes = "[...document.querySelectorAll('.leaflet-control-layers-selector')]"
    browser.run(f"{boxes}[1].click(), {boxes}[2].click(), {boxes}[4].click(), {boxes}[5].click()")
    browser.settle()
    assert pixels(browser, colours.PROTECTED) < before / 10
    assert browser.run("document.querySelectorAll('.promesse-poi').length") == int(
        small_city.promesse.poi_retrieval(small_safe).matched.sum()
    )
    browser.run(f"{boxes}[0].click(), {boxes}[0].click(), {boxes}[1].click()")
    browser.settle()
    assert pixels(browser, colours.PROTECTED) > before / 2


def test_the_original_stays_below_when_it_comes_back(look):
    frame = stroll()
    browser = look(frame.promesse.map(frame, attack=None))
    before = pixels(browser, colours.PROTECTED)
    box = "document.querySelector('.leaflet-control-layers-selector')"
    browser.run(f"{box}.click(), {box}.click()")
    browser.settle()
    assert pixels(browser, colours.PROTECTED) == pytest.approx(before, rel=0.02)


@pytest.mark.parametrize("click", [False, True], ids=["hover", "click"])
def test_a_record_shows_its_user_and_time(look, click):
    frame = walk([4.84], [45.76], user="Zoë", tz="Asia/Tokyo")
    browser = look(frame.promesse.map(kind="original"))
    x, y = browser.run(
        f"(() => {{ const map = {MAP}; const p = map.latLngToContainerPoint([45.76, 4.84]); return [p.x, p.y]; }})()"
    )
    browser.move_mouse(x - 30, y)
    browser.settle()
    browser.move_mouse(x, y)
    if click:
        browser.click(x, y)
    browser.settle()
    lines = text_of(browser, ".leaflet-popup-content" if click else ".leaflet-tooltip")
    assert lines == ["Original record", "Zoë", "2024-03-04 08:00:00"]


def test_tooltips_at_the_edge_of_the_map_are_within_it(look, sparse_map):
    browser = look(sparse_map)
    x, y = browser.run(
        "[...document.querySelectorAll('.promesse-poi')].map(each => each.getBoundingClientRect())"
        ".sort((one, other) => other.x - one.x).map(box => [box.x + box.width / 2, box.y + box.height / 2])[0]"
    )
    browser.move_mouse(x, y)
    browser.settle()
    box = browser.wait_for("document.querySelector('.leaflet-tooltip')?.getBoundingClientRect().toJSON()")
    assert box["left"] >= 0
    assert box["right"] <= 1000


def test_hostile_names_are_shown_as_they_are_and_run_nothing(look):
    frame = stroll(user=HOSTILE)
    drawn = frame.promesse.map(frame, slider=True)
    browser = look(drawn)
    browser.move_mouse(*middle_of(browser, ".promesse-poi"))
    browser.settle()
    assert (
        text_of(browser, ".leaflet-tooltip")[1]
        .replace("\u2028", " ")
        .startswith("</script><img src=x onerror=alert(1)>'\"`{{ 7*7 }}")
    )
    assert browser.run("document.images.length") == 0
    assert not any(event.get("method") == "Page.javascriptDialogOpening" for event in browser.events)


def test_names_in_any_language_are_shown_as_they_are(look):
    name = "Zoë 北京 \U0001f600 \ufeff\x7f\x85 end"
    browser = look(stroll(user=name).promesse.map())
    browser.move_mouse(*middle_of(browser, ".promesse-poi"))
    browser.settle()
    assert browser.wait_for("document.querySelector('.leaflet-tooltip > div')?.children[1].textContent") == name


def test_the_slider_moves_users(look, small_city, small_safe):
    browser = look(small_city.promesse.map(small_safe, slider=True))
    assert browser.run("document.querySelectorAll('path.promesse-moving').length") >= 1
    assert (
        text_of(browser, ".promesse-note")[0]
        == "Large dots: users at this time (UTC); dashes connect original and protected."
    )
    where = "[...document.querySelectorAll('path.promesse-moving')].map(each => each.getAttribute('d'))"
    time = "document.querySelector('.promesse-slider output').innerText"
    before, then = browser.run(where), browser.run(time)
    browser.run(
        "(() => { const range = document.querySelector('.promesse-slider input');"
        "range.value = Number(range.value) + 3600; range.dispatchEvent(new Event('input')); })()"
    )
    later = browser.run(time)
    assert pd.Timestamp(later) - pd.Timestamp(then) == pd.Timedelta("1h")
    assert browser.run(where) != before
    browser.click(*middle_of(browser, ".promesse-slider button"))
    browser.wait_for(f"{time} > {later!r}")
    browser.click(*middle_of(browser, ".promesse-slider button"))
    stopped = browser.run(time)
    browser.settle()
    assert browser.run(time) == stopped


def test_the_slider_shows_users_where_they_are_at_that_time(look):
    frame = walk(4.84 + np.arange(11) * 0.001, np.full(11, 45.76))
    browser = look(frame.promesse.map(attack=None, slider=True))
    for minutes in (0, 2.5, 10):
        place = browser.run(
            "(() => { const range = document.querySelector('.promesse-slider input');"
            f"range.value = Number(range.min) + {60 * minutes}; range.dispatchEvent(new Event('input'));"
            f"let place = null; {MAP}.eachLayer(each => {{"
            "if (each.options.className == 'promesse-moving') place = each.getLatLng(); });"
            "return [place.lng, place.lat]; })()"
        )
        assert place == pytest.approx([4.84 + minutes * 0.001, 45.76], abs=2e-6)


def test_the_slider_connects_no_users_whose_long_names_begin_alike(look):
    steps = 4.84 + np.arange(90) * 0.0005
    crowd = pd.concat([walk(steps, np.full(90, 45.76 + n / 100), user=f"{'u' * 70}{n}") for n in range(3)])
    apart = "document.querySelectorAll('path.promesse-link').length"
    moving = "document.querySelectorAll('path.promesse-moving').length"
    browser = look(crowd.promesse.map(attack=None, slider=True))
    assert (browser.run(moving), browser.run(apart)) == (3, 0)
    browser = look(
        crowd.promesse.map(crowd.iloc[90:], users=["u" * 70 + "1", "u" * 70 + "2"], attack=None, slider=True)
    )
    assert (browser.run(moving), browser.run(apart)) == (4, 2)
    lengths = browser.run(
        f"(() => {{ const map = {MAP}, all = []; map.eachLayer(each => each.options.className == 'promesse-link' && "
        "all.push(map.distance(...each.getLatLngs()))); return all; })()"
    )
    assert lengths == pytest.approx([0, 0], abs=0.5)
    tooltips = browser.run(
        f"(() => {{ const all = []; {MAP}.eachLayer(each => each.options.className == 'promesse-moving' && "
        "all.push(each.getTooltip()._content().innerText)); return all; })()"
    )
    assert tooltips == 2 * [f"{'u' * 60}… (trace {number})" for number in (1, 2)]


def test_two_maps_move_together(look, city_pair):
    browser = look(city_pair, width=1400)
    views = f"{MAPS}.map(map => [map.getCenter().lat, map.getCenter().lng, map.getZoom()])"
    for move in (
        "",
        f"{MAPS}[0].setView([45.75, 4.85], 15, {{animate: false}})",
        f"{MAPS}[1].panBy([90, 40], {{animate: false}})",
    ):
        browser.run(f"{move}; 0")
        one, other = browser.run(views)
        assert one == pytest.approx(other, abs=1e-9)
    boxes = browser.run(
        "[...document.querySelectorAll('.folium-map')].map(each => each.getBoundingClientRect().toJSON())"
    )
    assert [(box["left"], box["width"], box["height"]) for box in boxes] == [(0, 700, 700), (700, 700, 700)]
    assert pixels(browser, colours.PROTECTED) > 100
    assert pixels(browser, colours.ORIGINAL) > 100


def test_two_maps_have_one_background_each(browser, small_city, small_safe, tmp_path):
    drawn = small_city.promesse.map_pair(
        small_safe, points=300, tiles=folium.TileLayer("file:///nowhere/{z}/{x}/{y}.png", attr="ours")
    )
    drawn.save(str(tmp_path / "pair.html"))
    browser.open(tmp_path / "pair.html")
    browser.settle()
    tiles = f"{MAPS}.map(map => map.getContainer().querySelectorAll('.leaflet-tile-pane .leaflet-layer').length)"
    assert browser.run(tiles) == [1, 1]
    assert browser.run("document.querySelectorAll('.promesse-poi').length") > 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_both_themes_are_readable(look, city_map, dark):
    browser = look(city_map, dark=dark)
    picture = np.asarray(Image.open(io.BytesIO(browser.picture())).convert("L"), dtype=float)
    assert bool(np.median(picture) < 60) is dark
    for part in (".leaflet-control-layers", ".promesse-note", ".leaflet-control-scale-line"):
        style = f"getComputedStyle(document.querySelector({part!r}))"
        ink, paper = (
            np.dot(
                [int(float(part)) for part in browser.run(f"{style}.{key}.match(/[0-9.]+/g).slice(0, 3)")],
                [0.3, 0.6, 0.1],
            )
            for key in ("color", "backgroundColor")
        )
        assert abs(ink - paper) > 110


def test_no_records_and_one_record_give_a_page_with_something_on_it(look):
    nothing = stroll().iloc[:0]
    browser = look(nothing.promesse.map(nothing))
    assert browser.run("document.querySelector('.promesse-empty').innerText") == "No records to draw."
    browser = look(stroll().iloc[:1].promesse.map())
    assert pixels(browser, colours.ORIGINAL) > 10
    assert browser.run(f"{MAP}.getZoom()") == 17


def test_data_across_the_antimeridian_fills_the_view(look):
    frame = walk((179.9 + np.arange(200) * 0.001 + 180) % 360 - 180, np.full(200, -17.0))
    browser = look(frame.promesse.map())
    assert browser.run(f"{MAP}.getZoom()") > 10
    assert pixels(browser, colours.ORIGINAL) > 50
    assert browser.run(f"{MAP}.getBounds().contains([-17, 180.099]) && {MAP}.getBounds().contains([-17, 179.9])")


def test_no_line_and_no_dot_is_between_segments(look):
    frame = walk(4.8 + np.arange(20) * 0.001, np.repeat([45.7, 45.8], 10)).assign(trip=np.repeat([0, 1], 10))
    browser = look(frame.promesse(segment="trip").map(slider=True))
    drawn = browser.run(
        f"(() => {{ const all = []; {MAP}.eachLayer(each => each instanceof L.Polyline && each.options.interactive === "
        "false && all.push(each.getLatLngs().map(piece => piece.length))); return all; })()"
    )
    assert drawn == [[10, 10]]
    dots = browser.run(
        "(() => { const range = document.querySelector('.promesse-slider input'), all = [];"
        "const first = Number(range.min), step = (Number(range.max) - first) / 19;"
        "for (const number of [9, 9.5, 10]) { range.value = Math.round(first + number * step);"
        "range.dispatchEvent(new Event('input')); all.push(document.querySelectorAll('.promesse-moving').length); }"
        "return all; })()"
    )
    assert dots == [1, 0, 1]


@pytest.mark.parametrize(
    ("x", "moved", "crs", "pieces", "step"),
    [
        (wrapped(np.arange(0, 720, 5.0)), wrapped(np.arange(3, 723, 5.0)), 4326, 3, 5),
        (np.arange(144) % 2 * 180.0 - 93, np.arange(144) % 2 * 180.0 - 90, 4326, 1, 180),
        (np.arange(144) % 2 * 500.0, np.arange(144) % 2 * 500.0 + 3, HALL, 1, 500),
    ],
)
def test_no_line_crosses_the_whole_world_but_some_a_hall(look, x, moved, crs, pieces, step):
    frame, after = (walk(each, np.zeros(144), crs=crs) for each in (x, moved))
    browser = look(frame.promesse.map(after, attack=None, slider=True))
    drawn = browser.run(
        f"(() => {{ const all = []; {MAP}.eachLayer(each => each instanceof L.Polyline && each.options.interactive === "
        "false && all.push(each.getLatLngs().map(piece => piece.map(place => place.lng)))); return all; })()"
    )
    steps = [np.abs(np.diff(piece)) for track in drawn for piece in track]
    assert [len(track) for track in drawn] == [pieces, pieces]
    assert sum(map(len, steps)) == 2 * (144 - pieces)
    assert np.concatenate(steps) == pytest.approx(step, abs=1e-5)
    dashes = browser.run(
        "(() => { const range = document.querySelector('.promesse-slider input'), all = [];"
        "for (let moment = Number(range.min); moment <= Number(range.max); moment += 30) {"
        f"range.value = moment; range.dispatchEvent(new Event('input')); {MAP}.eachLayer(each => {{"
        "if (each.options.className != 'promesse-link') return; const [from, to] = each.getLatLngs();"
        "all.push(to.lng - from.lng); }); } return all; })()"
    )
    assert dashes == pytest.approx([3] * (2 * 143 + 1), abs=1e-5)


def test_a_plane_in_metres_has_a_scale_in_metres(look):
    local = 'ENGCRS["hall",EDATUM["floor"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'
    frame = walk(np.arange(90) * 10.0, np.arange(90) * 3.0, crs=local)
    browser = look(frame.promesse.map(frame.promesse.smooth(50)))
    metres = browser.run("document.querySelector('.leaflet-control-scale-line').innerText")
    width = browser.run("document.querySelector('.leaflet-control-scale-line').clientWidth")
    scale = 2 ** browser.run(f"{MAP}.getZoom()")
    assert float(metres.split()[0]) * scale == pytest.approx(width, rel=0.1)
    assert metres.endswith(" m")


def test_a_notebook_shows_the_map_in_its_frame(look, small_city, small_safe, browser, tmp_path):
    class Notebook:
        def save(self, file: str) -> None:
            Path(file).write_text(
                f"<!DOCTYPE html><body>{small_city.promesse.map(small_safe, points=300)._repr_html_()}</body>",
                encoding="utf-8",
            )

    look(Notebook())
    inside = "document.querySelector('iframe').contentDocument"
    assert browser.run(f"{inside}.querySelectorAll('.promesse-poi').length") > 0
    assert pixels(browser, colours.PROTECTED) > 300
