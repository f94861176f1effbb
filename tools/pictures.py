"""Draw the pictures in docs/pictures from the synthetic city: `python tools/pictures.py`.

Needs a browser and JupyterLab.
"""

import io
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import mistune
import nbformat
from browser import Browser, find_browser
from lab import Lab
from PIL import Image
from readme import README

import promesse_geo as pg
from notebooks import FOLDER, small_notebook
from promesse_geo.demo import run_demo
from promesse_geo.plot import overview, space_time, spatial_error, trade_off

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
LARGEST = 200_000
SCREEN = {"width": 900, "height": 560}  # about as wide as it is shown, so that its texts can be read
_STYLE = """
body { font: 15px/1.5 sans-serif; max-width: 900px; margin: 24px auto; color: #1f2328; }
img { max-width: 100%; } a { color: #0969da; text-decoration: none; }
pre, code { background: #f6f8fa; font: 13px/1.45 monospace; } pre { padding: 12px; }
table { border-collapse: collapse; font-size: 13px; margin-bottom: 14px; }
td, th { border: 1px solid #d1d9e0; padding: 3px 9px; }
h1, h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: 6px; }
"""


def write(name: str, drawn: bytes) -> None:
    """Write a picture, with fewer colours if it is too large."""
    file = PICTURES / f"{name}.png"
    with Image.open(io.BytesIO(drawn)) as picture:
        picture.convert("RGB").save(file, optimize=True)
        if file.stat().st_size >= LARGEST:
            picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    sys.stdout.write(f"{file.name}: {file.stat().st_size:,} bytes\n")


def write_maps(browser: Browser, folder: Path) -> None:
    """Write a map of each kind, and one on a dark page."""
    city, streets = pg.make_city(users=5, days=1, return_streets=True)
    safe = city.promesse.smooth(200)
    few = city.user.unique()[:3]
    kinds = {
        "map": city.promesse.map(safe),
        "map_dark": city.promesse.map(safe),
        "map_slider": city.promesse.map(safe, users=few, slider=True),
        "map_pair": city.promesse.map_pair(safe, users=few),
        "map_users": city.promesse.map(safe, color="user", background=streets, attack=None),
        "map_speed": city.promesse.map_pair(safe, color="speed", attack=None),
        "map_heat": city.promesse.map(attack=None, kind="original"),
    }
    clicks = {
        "map_users": "document.querySelector('.promesse-tools details').open = true",
        "map_heat": "document.querySelectorAll('.leaflet-control-layers-selector').forEach(each => each.click())",
    }
    for name, drawn in kinds.items():
        drawn.save(str(folder / "map.html"))
        browser.open(folder / "map.html", dark=name == "map_dark", **SCREEN)
        browser.settle()
        if name in clicks:
            browser.run(clicks[name])
            browser.settle()
        write(name, browser.picture())


def write_figures() -> None:
    """Write the overview, the trade-off, and two figures of original and protected data."""
    parts = pg.prepare(pg.make_city(users=12, days=4, as_traces=True), tz="Europe/Paris", keep_user=True)
    noise = [pg.GeoIndistinguishability.from_level(level, radius=200, seed=0) for level in (10, 6, 4, 2)]
    smoothing = [pg.Promesse(epsilon) for epsilon in (50, 100, 150, 200, 300, 500)]
    safe = {"Promesse, 200 m": smoothing[3].protect(parts), "Geo-I, ln(4)/200": noise[2].protect(parts)}
    figures = {
        "overview": overview(parts, epsilon=200, trace=53),
        "trade_off": trade_off(pg.evaluate({"synthetic city": parts}, [*smoothing, *noise])).figure,
        "spatial_error": spatial_error(parts, safe).figure,
        "space_time": space_time(parts, safe["Promesse, 200 m"], trace=53).figure,
    }
    for name, figure in figures.items():
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=120)
        write(name, stream.getvalue())


def write_readme(browser: Browser, folder: Path) -> None:
    """Write the picture of the README, which the demo draws, and the first screen of the README."""
    run_demo(folder / "demo")
    write("before_after", (folder / "demo" / "overview.png").read_bytes())
    page = mistune.create_markdown(escape=False, plugins=["table"])(README.read_text(encoding="utf-8"))
    head = f'<meta charset="utf-8"><base href="{README.parent.as_uri()}/"><style>{_STYLE}</style>'
    (folder / "readme.html").write_text(f"<!doctype html>{head}<body>{page}</body>", encoding="utf-8")
    browser.open(folder / "readme.html", width=1000, height=1400)
    browser.settle()
    write("readme", browser.picture())


def write_screens(browser: Browser, folder: Path) -> None:
    """Write JupyterLab with a map, and the first screens of two notebooks."""
    (folder / "notebooks").mkdir()
    nbformat.write(small_notebook(), folder / "notebooks" / "small.ipynb")
    for name in ("01_overview", "09_your_own_data"):
        shutil.copy(FOLDER / f"{name}.ipynb", folder / "notebooks")
    shutil.copytree(FOLDER / "pictures", folder / "notebooks" / "pictures")
    with Lab(folder / "notebooks", folder / "lab") as lab:
        lab.open(browser, "small.ipynb", width=1280, height=920, run=True)
        write("jupyterlab", browser.picture())
        for name in ("01_overview", "09_your_own_data"):
            lab.open(browser, f"{name}.ipynb", width=1280, height=920)
            write(f"notebook_{name[:2]}", browser.picture())


def main() -> None:
    """Write all pictures."""
    warnings.filterwarnings("ignore", ".*could not be protected")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_figures()
        with Browser(find_browser() or "chromium", folder / "browser") as browser:
            write_readme(browser, folder)
            write_maps(browser, folder)
            write_screens(browser, folder)


if __name__ == "__main__":
    main()
