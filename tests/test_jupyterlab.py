"""JupyterLab itself, once: a notebook is opened and run in the browser, and the map is seen in its output."""

import io

import numpy as np
import pytest
from browser import Browser, find_browser
from conftest import COMPILED
from matplotlib.colors import to_rgb
from PIL import Image

from promesse_geo.plot import colours

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("jupyterlab", reason="jupyterlab is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")
pytest.importorskip("folium", reason="folium is not installed")

from lab import Lab  # noqa: E402

from notebooks import small_notebook  # noqa: E402

_MAP = "document.querySelector('.jp-OutputArea-output iframe')"
_LEAFLET = f"Object.values({_MAP}.contentWindow).find(each => each?.eachLayer && each.getBounds)"


@pytest.mark.skipif(not COMPILED, reason="run once, with compiled loops")
@pytest.mark.skipif(find_browser() is None, reason="there is neither chromium nor google-chrome on the PATH")
def test_a_notebook_run_in_jupyterlab_shows_the_map(tmp_path):
    (tmp_path / "notebooks").mkdir()
    nbformat.write(small_notebook(), tmp_path / "notebooks" / "small.ipynb")
    with (
        Browser(find_browser(), tmp_path / "browser") as browser,
        Lab(tmp_path / "notebooks", tmp_path / "lab") as lab,
    ):
        lab.open(browser, "small.ipynb", width=1280, height=900)
        assert browser.run("document.querySelectorAll('.jp-OutputArea-output').length") == 0
        lab.run_all(browser)
        (tmp_path / "jupyterlab.png").write_bytes(browser.picture())
        counts = "[...document.querySelectorAll('.jp-InputPrompt')].map(each => each.innerText)"
        assert browser.run(counts) == ["[1]:", "[2]:"]
        kinds = "[...document.querySelectorAll('.jp-OutputArea-output')].map(each => each.dataset.mimeType)"
        assert browser.run(kinds) == ["text/html"]  # neither errors nor warnings
        frame = browser.run(f"{_MAP}.getBoundingClientRect().toJSON()")
        assert frame["left"] >= 0
        assert frame["right"] <= 1280
        assert min(frame["width"], frame["height"]) > 400
        within = browser.run(
            f"(() => {{ const map = {_LEAFLET}, all = []; map.eachLayer(layer => layer.getRadius && "
            "all.push(map.getBounds().contains(layer.getLatLng()))); return all; })()"
        )
        assert len(within) > 1000
        assert all(within)
        assert browser.run(f"{_MAP}.contentDocument.querySelectorAll('.promesse-poi').length") > 5
        picture = np.asarray(Image.open(io.BytesIO(browser.picture())).convert("RGB"), dtype=int)
        for colour in (colours.PROTECTED, colours.MISSED):
            drawn = (np.abs(picture - 255 * np.array(to_rgb(colour))).max(axis=2) <= 12).nonzero()
            assert len(drawn[0]) > 100
            assert (drawn[1] > frame["left"]).sum() > 100
        assert browser.errors == []
        assert [url for url in browser.requests if not url.startswith((lab.address, "blob:"))] == []
