"""Figures and maps of original and protected traces."""

from importlib import import_module
from typing import Any

_MODULES = {
    "draw_map": "maps",
    "draw_map_pair": "maps",
    "intervals": "distributions",
    "overview": "figures",
    "space_time": "distributions",
    "spatial_error": "distributions",
    "speeds": "distributions",
    "trade_off": "comparisons",
}  # loaded when first used: matplotlib and folium take a second


def __getattr__(name: str) -> Any:
    """Load a figure's module when the figure is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'promesse_geo.plot' has no attribute {name!r}")
    return getattr(import_module(f"promesse_geo.plot.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)


__all__ = ["draw_map", "draw_map_pair", "intervals", "overview", "space_time", "spatial_error", "speeds", "trade_off"]
