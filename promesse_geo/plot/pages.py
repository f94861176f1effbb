"""What maps are made of in the browser: elements for folium, with everything that they need in the page itself."""

import base64
import copy
import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

try:
    from branca.element import Element, Figure, MacroElement
    from folium import FeatureGroup, LayerControl, Map, TileLayer
    from folium.template import Template
except ImportError as error:
    raise ImportError(
        'Maps need folium, which is not installed. Get it with: pip install "promesse-geo[notebooks]"'
    ) from error

from promesse_geo.messages import invalid

__all__ = ["Assets", "Call", "FeatureGroup", "Figure", "LayerControl", "Map", "literal", "new_map"]

_VIEW = Path(__file__).parent
_SURROGATES = range(0xD800, 0xE000)  # which no file can hold
_UNSAFE = {code: f"\\u{code:04x}" for code in (*map(ord, "<>&'{}%#\u2028\u2029"), *_SURROGATES)}


def literal(data: Any) -> str:
    """Return data as a JavaScript expression in which no text can end a script, an attribute or a Jinja template."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    return f"JSON.parse({json.dumps(text, ensure_ascii=False).translate(_UNSAFE)})"


class Assets(MacroElement):
    """The styles and the code of the maps, inside the page: Leaflet with its licence, where asked for, and our own."""

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
        self.codes = [*([_leaflet_code()] if leaflet else []), _text("browser/maps.js")]


class Call(MacroElement):
    """A call of one of our functions in the browser, with elements and data as its arguments."""

    _template = Template("""
        {% macro script(this, kwargs) %}
            promesse.{{ this.function }}({{ this.arguments() }});
        {% endmacro %}
    """)

    def __init__(
        self, function: str, elements: Sequence[MacroElement | Sequence[MacroElement]], data: Any = None
    ) -> None:
        super().__init__()
        self._name = "Call"
        self.function, self.elements, self.data = function, elements, data

    def arguments(self) -> str:
        """Return the arguments as JavaScript: names of elements (or lists of them), then the data if there is any."""
        named = [
            element.get_name()
            if isinstance(element, MacroElement)
            else f"[{', '.join(each.get_name() for each in element)}]"
            for element in self.elements
        ]
        return ", ".join(named if self.data is None else [*named, literal(self.data)])


def new_map(
    *, tiles: Any, offline: bool, flat: bool, owner: str, figure: Figure | None = None, half: int | None = None
) -> Map:
    """Return a map without layers, which asks nobody for anything unless tiles are given or it is not offline.

    Parameters
    ----------
    tiles : str, folium.TileLayer, xyzservices.TileProvider or None
        The background.
    offline : bool
        Whether Leaflet comes from this package rather than from the network.
    flat : bool
        Whether places are metres of a plane rather than degrees.
    owner : str
        Whose parameters these are, for an error.
    figure : branca.element.Figure, optional
        The page; one of its own by default.
    half : int, optional
        0 for the left half of the page, 1 for the right one.
    """
    options: dict[str, Any] = {"maxZoom": 20, "zoomSnap": 0.25} if tiles is None else {}
    place: dict[str, Any] = {} if half is None else {"width": "50%", "left": f"{50 * half}%", "position": "absolute"}
    if flat:
        options["minZoom"] = -12
    crs = "Simple" if flat else "EPSG3857"
    if flat and tiles is not None and not isinstance(tiles, TileLayer):
        rule = "None or a folium.TileLayer of your own: the data are metres of a plane without a place on the globe"
        raise ValueError(invalid("tiles", owner, rule, tiles))
    try:
        if tiles is not None and not tiles:
            raise TypeError
        base = Map(tiles=_unattached(tiles), crs=crs, prefer_canvas=True, font_size="13px", **place, **options)
    except (ValueError, AttributeError, TypeError):
        if tiles is None:
            raise
        rule = "the name of a background that folium knows, such as 'OpenStreetMap', a folium.TileLayer or a provider"
        kind = ValueError if isinstance(tiles, str) else TypeError
        raise kind(invalid("tiles", owner, rule, tiles)) from None
    if offline:
        base.default_js, base.default_css = [], []
    page = figure or Figure()
    page.add_child(base)
    if not any(isinstance(child, Assets) for child in page._children.values()):
        page.add_child(Assets(leaflet=offline), index=0)
    return base


def _unattached(tiles: Any) -> Any:
    """A layer like the given one, which may stand on another map already, and can stand on one alone."""
    if not isinstance(tiles, TileLayer):
        return tiles
    own = copy.copy(tiles)
    fresh = Element()
    own._id, own._parent, own._children = fresh._id, None, fresh._children
    return own


@cache
def _text(name: str) -> str:
    return (_VIEW / name).read_text(encoding="utf-8")


@cache
def _leaflet_style() -> str:
    """Leaflet's style with its pictures inside."""

    def inside(found: re.Match[str]) -> str:
        picture = base64.b64encode((_VIEW / "leaflet" / found[1]).read_bytes()).decode()
        return f"url(data:image/png;base64,{picture})"

    return re.sub(r"url\((images/[^)]*)\)", inside, _text("leaflet/leaflet.css"))


@cache
def _leaflet_code() -> str:
    """Leaflet under its licence, without the address of a file that is not there."""
    code = _text("leaflet/leaflet.js").partition("//# sourceMappingURL")[0]
    return f"/*!\nLeaflet 1.9.4\n{_text('leaflet/LICENSE')}*/\n{code}"
