"""A notebook with a map in JupyterLab, opened and run in a browser."""

import io

import numpy as np
import pytest
from conftest import COMPILED
from matplotlib.colors import to_rgb
from PIL import Image

from promesse_geo.plot import colours

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("jupyterlab", reason="jupyterlab is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

from lab import Lab  # noqa: E402

from notebooks import small_notebook  # noqa: E402

IFRAME = "document.querySelector('.jp-OutputArea-output iframe')"
MAP = f"Object.values({IFRAME}.contentWindow).find(each => each?.eachLayer && each.getBounds)"


@pytest.mark.skipif(not COMPILED, reason="once is enough, with compiled kernels")
def test_a_notebook_run_in_jupyterlab_shows_the_map(browser, tmp_path):
    (tmp_path / "notebooks").mkdir()
    nbformat.write(small_notebook(), tmp_path / "notebooks" / "small.ipynb")
    with Lab(tmp_path / "notebooks", tmp_path / "lab") as lab:
        lab.open(browser, "small.ipynb", width=1280, height=900, run=True)
        browser.wait_for(f"{IFRAME}?.contentDocument?.querySelectorAll('.promesse-poi').length > 5")
        browser.settle()
        outputs = "[...document.querySelectorAll('.jp-OutputArea-output')]"
        compiled = "/^Compiling loops [^\\n]*\\n?$/.test(each.textContent)"  # said once
        others = f"{outputs}.filter(each => !{compiled})"
        kinds = browser.run(f"{others}.map(each => each.dataset.mimeType)")
        assert kinds == ["text/html"]  # neither errors nor warnings
        frame = browser.run(f"{IFRAME}.getBoundingClientRect().toJSON()")
        assert frame["left"] >= 0
        assert frame["right"] <= 1280
        assert min(frame["width"], frame["height"]) > 400
        inside = browser.run(
            f"(() => {{ const map = {MAP}, all = []; map.eachLayer(layer => layer.getRadius && "
            "all.push(map.getBounds().contains(layer.getLatLng()))); return all; })()"
        )
        assert len(inside) > 1000
        assert all(inside)
        picture = np.asarray(Image.open(io.BytesIO(browser.picture())).convert("RGB"), dtype=int)
        for colour in (colours.PROTECTED, colours.MISSED):
            close = np.abs(picture - 255 * np.array(to_rgb(colour))).max(axis=2) <= 12
            assert close[:, int(frame["left"]) :].sum() > 100
        assert [error for error in browser.errors if "srcdoc" in error or "promesse" in error] == []
        assert [url for url in browser.requests if not url.startswith((lab.address, "blob:"))] == []
        browser.open("about:blank")
