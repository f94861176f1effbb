"""Data for tests of maps, and what their pages contain and show."""

import io
import json
import re

import folium
import geopandas as gpd
import numpy as np
import pandas as pd
from browser import Browser
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.colors import to_rgb
from PIL import Image

import promesse_geo as pg
from promesse_geo.plot.elements import Call

MAP = "Object.values(window).find(each => each instanceof L.Map)"
MAPS = "Object.values(window).filter(each => each instanceof L.Map)"
HALL = 'ENGCRS["hall",EDATUM["floor"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'
HOSTILE = "</script><img src=x onerror=alert(1)>'\"`{{ 7*7 }}{% for x in y %}{# ${1} &lt; \u2028"


def walk(x, y, *, crs=4326, user="a", start="2024-03-04 08:00", tz="UTC", freq="1min") -> gpd.GeoDataFrame:
    times = pd.date_range(start, periods=len(x), freq=freq, tz=tz)
    return gpd.GeoDataFrame({"user": user, "time": times}, geometry=gpd.points_from_xy(x, y), crs=crs)


def stroll(**named) -> gpd.GeoDataFrame:
    """Half an hour in one place, a kilometre on, half an hour in another."""
    steps = np.concatenate((np.zeros(30), np.arange(30), np.full(30, 30)))
    return walk(4.84 + steps * 0.0005, np.full(len(steps), 45.76), **named)


def calls_in(drawn, function: str) -> list[Call]:
    elements = [drawn, *drawn._children.values()]
    children = [child for element in elements for child in element._children.values()]
    found = {id(child): child for child in children if isinstance(child, Call) and child.function == function}
    return list(found.values())


def call_in(drawn, function: str) -> Call:
    (call,) = calls_in(drawn, function)
    return call


def names(drawn) -> list[str]:
    groups = [child for child in drawn._children.values() if isinstance(child, folium.FeatureGroup)]
    return [re.sub(r"<svg.*</svg> ", "", group.layer_name) for group in groups]


def places(call: Call) -> np.ndarray:
    """Places as the browser reads them, (n, 2): x and y."""
    data = json.loads(json.dumps(call.data))
    return np.column_stack((np.cumsum(data["x"]), np.cumsum(data["y"]))) / data["scale"]


def numbers(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


def page(drawn) -> str:
    return drawn.get_root().render()


def loaded_from_the_network(html: str) -> list[str]:
    """Addresses that a browser would load; links to click and namespaces are none."""
    marks = re.sub(r"(?s)<script>.*?</script>", "", html)
    return re.findall(r"(?i)(?:src|<link[^>]*href)\s*=|@import|url\((?!data:|#)[^)]*\)", marks) + re.findall(
        r"<script[^>]+src[^>]*>", html
    )


def wrapped(x) -> np.ndarray:
    return (np.asarray(x) + 180) % 360 - 180


def pixels_of(picture: bytes, colour: str) -> int:
    """How many pixels of a picture have nearly this colour."""
    close = True
    for channel, value in zip(Image.open(io.BytesIO(picture)).convert("RGB").split(), to_rgb(colour), strict=True):
        shades = np.asarray(channel)
        close = close & (shades >= max(255 * value - 12, 0)) & (shades <= min(255 * value + 12, 255))
    return int(close.sum())


def pixels(browser: Browser, colour: str) -> int:
    """How many pixels of a page have nearly this colour."""
    return pixels_of(browser.picture(), colour)


@st.composite
def data_sets(draw) -> pg.Traces:
    """Traces of a few records each, in the plane or on the sphere."""
    counts = draw(st.lists(st.integers(1, 30), min_size=1, max_size=8))
    records = sum(counts)
    x, y = draw(arrays(np.float64, (2, records), elements=st.floats(-1, 1)))
    return pg.Traces.from_arrays(
        *(x, y),
        times=np.arange(records) * 10**9,
        users=[f"u{number}" for number in range(len(counts))],
        counts=np.array(counts),
        crs=draw(st.sampled_from([4326, 32631])),
    )
