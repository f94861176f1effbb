"""Protect GPS traces before they are published, and say honestly what was gained and lost.

Importing the package registers the accessor `gdf.promesse` on GeoDataFrames::

    import promesse_geo as pg

    gdf = pg.read_cabspotting("cabspottingdata.tar.gz")
    parts = gdf.promesse.prepare(tz="America/Los_Angeles")
    safe = parts.promesse.smooth(200)

Every verb of the accessor is a function as well, for GeoDataFrames and for `Traces`, the columnar form that large
data stays in: `pg.prepare(data)`, `pg.describe(data)`, `pg.Promesse(200).protect(data)`. In the order of use:

- read: `read_file` (any of the formats), `read_table`, `read_cabspotting`, `read_geolife`, `read_mdc`, `read_gpx`;
  `make_city` makes data up, `run_demo` shows it all on such data
- look: `describe`, `pois` and `PoiExtractor` (where people stay), `draw_map` and `draw_map_pair` (before and after)
- prepare: `prepare`, or its steps `collapse_empty_days`, `first_days`, `split_gaps`; `drop_jumps` before it
- protect: `Promesse`, `GeoIndistinguishability`, `WaitForMe` (with a `WaitForMeReport`); `Mechanism` is what a new one
  derives from
- measure: `measure` one protected data set, `evaluate` many mechanisms (`save_results`, `load_results`), or
  `reproduce` the paper's tables; by `PoiRetrieval` and `match_pois`, `SpatialError`, `RangeQueryDistortion`,
  `Compression`, `AreaCoverage`, and the stronger attacks `AdaptivePoiRetrieval`, `Residue` and `Reidentification`;
  `Metric` is what a new one derives from
- publish: `check_published`, `pseudonymize`, `write`
- underneath: `Traces`, which lie on a `Sphere` or in a `Plane`

`help(pg.Promesse)` and so on tell the rest. The modules are no part of what is promised to stay: take names from here.

Which mechanism? `Promesse` hides where people stop and keeps the map exact, at the price of the times; it promises
nothing formal. `GeoIndistinguishability` promises something formal for single locations, at the price of the map; for a
trace the promise shrinks with every record, and places where people stay can be found again. `WaitForMe` makes groups
that go together, and publishes one trace of each unchanged. None makes publication safe by itself: look at
`gdf.promesse.check(safe)` before anything leaves the house.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from promesse_geo import accessor as _accessor  # registers gdf.promesse  # noqa: F401
from promesse_geo.audit import check_published
from promesse_geo.evaluation import evaluate, load_results, measure, save_results
from promesse_geo.io import (
    read_cabspotting,
    read_file,
    read_geolife,
    read_gpx,
    read_mdc,
    read_table,
)
from promesse_geo.io.writers import write
from promesse_geo.mechanisms import GeoIndistinguishability, Mechanism, Promesse, WaitForMe, WaitForMeReport
from promesse_geo.metrics import (
    AdaptivePoiRetrieval,
    AreaCoverage,
    Compression,
    Metric,
    PoiRetrieval,
    RangeQueryDistortion,
    Reidentification,
    Residue,
    SpatialError,
    match_pois,
)
from promesse_geo.preprocess import (
    collapse_empty_days,
    describe,
    drop_jumps,
    first_days,
    prepare,
    pseudonymize,
    split_gaps,
)
from promesse_geo.stays import pois
from promesse_geo.synthetic import make_city
from promesse_geo.traces.space import Plane, Sphere
from promesse_geo.traces.traces import Traces

if TYPE_CHECKING:
    from promesse_geo import paper as paper
    from promesse_geo import plot as plot
    from promesse_geo.demo import run_demo
    from promesse_geo.paper import reproduce
    from promesse_geo.plot.maps import draw_map, draw_map_pair
    from promesse_geo.stays.places import PoiExtractor

_HEAVY = {
    "PoiExtractor": "promesse_geo.stays.places",
    "draw_map": "promesse_geo.plot.maps",
    "draw_map_pair": "promesse_geo.plot.maps",
    "reproduce": "promesse_geo.paper",
    "run_demo": "promesse_geo.demo",
}  # loaded when first used, so that importing stays quick


def __getattr__(name: str) -> Any:
    """Load a heavy module when a name of it is first used."""
    if name in ("paper", "plot"):
        return import_module(f"promesse_geo.{name}")
    if name not in _HEAVY:
        raise AttributeError(f"module 'promesse_geo' has no attribute {name!r}")
    return getattr(import_module(_HEAVY[name]), name)


def __dir__() -> list[str]:
    """List the public names alone."""
    return sorted(__all__)


__version__ = "0.2.0"

__all__ = [
    "AdaptivePoiRetrieval",
    "AreaCoverage",
    "Compression",
    "GeoIndistinguishability",
    "Mechanism",
    "Metric",
    "Plane",
    "PoiExtractor",
    "PoiRetrieval",
    "Promesse",
    "RangeQueryDistortion",
    "Reidentification",
    "Residue",
    "SpatialError",
    "Sphere",
    "Traces",
    "WaitForMe",
    "WaitForMeReport",
    "check_published",
    "collapse_empty_days",
    "describe",
    "draw_map",
    "draw_map_pair",
    "drop_jumps",
    "evaluate",
    "first_days",
    "load_results",
    "make_city",
    "match_pois",
    "measure",
    "pois",
    "prepare",
    "pseudonymize",
    "read_cabspotting",
    "read_file",
    "read_geolife",
    "read_gpx",
    "read_mdc",
    "read_table",
    "reproduce",
    "run_demo",
    "save_results",
    "split_gaps",
    "write",
]
