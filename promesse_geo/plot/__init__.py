"""Figures and maps of original and protected traces."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from promesse_geo.plot.comparisons import trade_off
    from promesse_geo.plot.distributions import intervals, spatial_error, speeds
    from promesse_geo.plot.figures import overview, space_time
    from promesse_geo.plot.maps import draw_map, draw_map_pair
    from promesse_geo.plot.sweeps import tuning

_MODULES = {"draw_map": "maps", "draw_map_pair": "maps", "trade_off": "comparisons", "tuning": "sweeps"}
_MODULES |= dict.fromkeys(("intervals", "spatial_error", "speeds"), "distributions")
_MODULES |= dict.fromkeys(("overview", "space_time"), "figures")
_MODULES |= {"check_tiles": "elements"}  # for commands
# imported on first use: matplotlib and folium take a second


def __getattr__(name: str) -> Any:
    """Import the module of a figure or map on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'promesse_geo.plot' has no attribute {name!r}")
    return getattr(import_module(f"promesse_geo.plot.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)


__all__ = ["draw_map", "draw_map_pair", "intervals", "overview", "space_time", "spatial_error", "speeds", "trade_off"]
__all__ += ["tuning"]
