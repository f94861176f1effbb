"""Elements of the page of a map: the map itself, the code that it embeds, and calls of it."""

import base64
import copy
import json
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import branca.element
import folium
from branca.element import Element, MacroElement
from folium import TileLayer
from folium.plugins import HeatMap
from folium.template import Template

from promesse_geo.io.atomic import write_text
from promesse_geo.messages import invalid
from promesse_geo.plot import colours
from promesse_geo.validation import check_flag

_FOLDER = Path(__file__).parent
_SURROGATES = range(0xD800, 0xE000)  # no encoding of files has them
_UNSAFE = {code: f"\\u{code:04x}" for code in (*map(ord, "<>&'{}%#\u2028\u2029"), *_SURROGATES)}


def literal(data: Any) -> str:
    """Return data as a JavaScript expression in which no text can end a script, an attribute or a Jinja template."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return f"JSON.parse({json.dumps(text, ensure_ascii=False).translate(_UNSAFE)})"


class _Page(Element):
    """An element that saves its page, for its owner only if it shows true locations."""

    is_private = True
    """Whether a new file is for its owner only (mode 0600)."""

    def save(self, outfile: Any, close_file: bool = True) -> None:  # type: ignore[override]
        """Write the page to a path, where it replaces a file, or to an open file."""
        if not isinstance(outfile, str | bytes | os.PathLike):
            super().save(outfile, close_file=close_file)
            return
        path = Path(os.fsdecode(outfile))
        write_text(path, self.get_root().render(), force=True, private=self.is_private)


class Map(_Page, folium.Map):
    """A map of folium that saves its page as `_Page` does."""


class Figure(_Page, branca.element.Figure):
    """A page of maps that is saved as `_Page` does."""


class Assets(MacroElement):
    """Styles and code of the maps, embedded in the page: our own and, on request, Leaflet and its heat map."""

    _template = Template("""
        {% macro header(this, kwargs) %}
            {% for style in this.styles %}<style>{{ style }}</style>{% endfor %}
            {% for code in this.codes %}<script>{{ code }}</script>{% endfor %}
        {% endmacro %}
    """)

    def __init__(self, *, leaflet: bool) -> None:
        super().__init__()
        self._name = "Assets"
        self.styles = [*([_leaflet_style()] if leaflet else []), _text("browser/maps.css")]
        self.codes = [
            *([_leaflet_code(), _heat_code()] if leaflet else []),
            _text("browser/maps.js"),
            _text("browser/tools.js"),
        ]


class Heat(HeatMap):
    """A heat map, hidden at first, whose places the browser takes from a layer of records."""

    def __init__(self, name: str, *, offline: bool) -> None:
        gradient = dict(zip(("0.2", "0.5", "0.8", "1.0"), colours.HEAT, strict=True))
        super().__init__([], name=name, radius=10, blur=8, min_opacity=0.25, gradient=gradient, show=False)
        if offline:
            self.default_js = []


class Call(MacroElement):
    """A call of a function of maps.js, with elements and data as its arguments."""

    _template = Template("""
        {% macro script(this, kwargs) %}
            promesse.{{ this.function }}({{ this.arguments() }});
        {% endmacro %}
    """)

    def __init__(self, function: str, elements: Sequence[Any], data: Any = None) -> None:
        super().__init__()
        self._name = "Call"
        self.function, self.elements, self.data = function, elements, data

    def arguments(self) -> str:
        """Return the arguments as JavaScript: the names of elements (or lists of them), then the data if not None."""
        named = [
            element.get_name()
            if isinstance(element, MacroElement)
            else f"[{', '.join(each.get_name() for each in element)}]"
            for element in self.elements
        ]
        return ", ".join(named if self.data is None else [*named, literal(self.data)])


def new_map(*, tiles: Any, offline: bool, flat: bool, owner: str, figure: Figure, half: int | None = None) -> Map:
    """Return a map without layers, which sends no requests unless it has tiles or is not offline.

    Parameters
    ----------
    tiles : str, folium.TileLayer, xyzservices.TileProvider or None
        The background.
    offline : bool
        Whether to embed Leaflet instead of loading it from the network.
    flat : bool
        Whether coordinates are metres of a plane instead of degrees.
    owner : str
        The function whose parameters these are, for error messages.
    figure : branca.element.Figure
        The page.
    half : int, optional
        0 for the left half of the page, 1 for the right half.

    Raises
    ------
    TypeError, ValueError
        If `tiles` is invalid, or does not fit a flat map.
    """
    options: dict[str, Any] = {"maxZoom": 20, "zoomSnap": 0.25} if tiles is None else {}
    place: dict[str, Any] = {} if half is None else {"width": "50%", "left": f"{50 * half}%", "position": "absolute"}
    if flat:
        options["minZoom"] = -12
    crs = "Simple" if flat else "EPSG3857"
    if flat and tiles is not None and not isinstance(tiles, TileLayer):
        rule = "None or a folium.TileLayer for data in metres of a plane without a position on the globe"
        raise ValueError(invalid("tiles", owner, rule, tiles))
    check_flag(offline, name="offline", owner=owner)
    try:
        if tiles is not None and not tiles:
            raise TypeError
        base = Map(tiles=_unattached(tiles), crs=crs, prefer_canvas=True, font_size="13px", **place, **options)
    except (ValueError, AttributeError, TypeError):
        if tiles is None:
            raise
        rule = "the name of a background in folium such as 'OpenStreetMap', a folium.TileLayer or a TileProvider"
        kind = ValueError if isinstance(tiles, str) else TypeError
        raise kind(invalid("tiles", owner, rule, tiles)) from None
    if offline:
        base.default_js, base.default_css = [], []
    figure.add_child(base)
    if not half:
        figure.add_child(Assets(leaflet=offline), index=0)
    return base


def check_tiles(tiles: str, *, name: str, owner: str) -> None:
    """Raise ValueError if a text is no name of tiles."""
    try:
        if not tiles:
            raise ValueError
        TileLayer(tiles)
    except ValueError:
        rule = "the name of a background in folium such as 'OpenStreetMap'"
        raise ValueError(invalid(name, owner, rule, tiles)) from None


def _unattached(tiles: Any) -> Any:
    """Return a copy of a layer that belongs to no map: a layer can belong to one map only."""
    if not isinstance(tiles, TileLayer):
        return tiles
    layer = copy.copy(tiles)
    Element.__init__(layer)  # sets a new identifier, no parent and no children
    return layer


@cache
def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _leaflet_style() -> str:
    """Return Leaflet's style sheet with its images embedded."""

    def embed(match: re.Match[str]) -> str:
        image = base64.b64encode((_FOLDER / "leaflet" / match[1]).read_bytes()).decode()
        return f"url(data:image/png;base64,{image})"

    return re.sub(r"url\((images/[^)]*)\)", embed, _text("leaflet/leaflet.css"))


@cache
def _leaflet_code() -> str:
    """Return Leaflet with its licence, without the reference to a source map that does not exist."""
    code = _text("leaflet/leaflet.js").partition("//# sourceMappingURL")[0]
    return f"/*!\nLeaflet 1.9.4\n{_text('leaflet/LICENSE')}*/\n{code}"


@cache
def _heat_code() -> str:
    """Return the code of heat maps that folium has in its package."""
    return (Path(folium.__file__).parent / "templates" / "leaflet_heat.min.js").read_text(encoding="utf-8")
