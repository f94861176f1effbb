"""Anonymize GPS trajectories before you publish them, and measure privacy and utility.

Importing the package adds the accessor `gdf.promesse` to GeoDataFrames::

    import promesse_geo as pg

    gdf = pg.read_cabspotting("cabspottingdata.tar.gz")
    parts = gdf.promesse.prepare(tz="America/Los_Angeles")
    safe = parts.promesse.smooth(200)

Each method of the accessor is also a function, for GeoDataFrames and for `Traces`, the columnar form for large data:
`pg.prepare(data)`, `pg.describe(data)`, `pg.Promesse(200).protect(data)`. By order of use:

- read: `read_file` (any format), `read_table`, `read_cabspotting`, `read_geolife`, `read_mdc`, `read_gpx`; `make_city`
  makes synthetic data, and `run_demo` protects it and shows the result
- explore: `describe`, `pois` and `PoiExtractor` (stays of users), `draw_map` and `draw_map_pair`; `plot` has figures
- prepare: `drop_zero`, `drop_jumps`, then `prepare`, or its steps `collapse_empty_days`, `first_days` and `split_gaps`
- protect: `PrivacyZones` around homes, `Promesse`, `GeoIndistinguishability`, `WaitForMe` (with a `WaitForMeReport`);
  `Chain` applies several, `Mechanism` is the base class
- measure: `measure` one data set, `evaluate` many mechanisms (`save_results`, `load_results`), `tune` a parameter (the
  result is a `Tuning`), `reproduce` the paper's tables (`paper` has them one by one); metrics are `PoiRetrieval` (with
  `match_pois`), `SpatialError`, `RangeQueryDistortion`, `Compression` and `AreaCoverage`, stronger attacks
  `AdaptivePoiRetrieval`, `Residue`, `Reidentification`, `EndRetrieval`, `HeatMapReidentification`, `Linkage` and
  `Unicity`; `Metric` is the base class
- publish: `publish` does all steps, best with a `recommended` mechanism, and returns a `Publication`; its last ones are
  `check_published`, `pseudonymize` and `write`; `report` writes a page on the risks (the result is a `RiskReport`)
- scale: `protect_parquet` protects folders of Parquet in bounded memory, and returns a `Report`; `publish_parquet` does
  all steps of `publish`, `measure_parquet` measures; `protect_arrow` is for other engines
- data structures: `Traces`, in the spaces `Sphere` and `Plane`

Only the names of this package, of `promesse_geo.plot` and of `promesse_geo.paper` are stable; other modules may change.

Which mechanism? `Promesse` hides stops and keeps the path, but changes times; it has no formal guarantee.
`GeoIndistinguishability` has a formal guarantee for single locations, but moves each of them; it weakens with
every record of a trace, and long stays can be found again. `WaitForMe` groups traces and publishes one trace of each
group unchanged. None of them makes publication safe by itself: run `gdf.promesse.check(safe)` before you publish.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from promesse_geo import accessor as _accessor  # registers gdf.promesse  # noqa: F401
from promesse_geo.audit import RiskReport, check_published, report
from promesse_geo.bulk.arrow import protect_arrow
from promesse_geo.bulk.files import protect_parquet
from promesse_geo.bulk.measuring import measure_parquet
from promesse_geo.bulk.run import Report
from promesse_geo.evaluation import Tuning, evaluate, load_results, measure, save_results, tune
from promesse_geo.io import read_cabspotting, read_file, read_geolife, read_gpx, read_mdc, read_table
from promesse_geo.io.writers import write
from promesse_geo.mechanisms import (
    Chain,
    GeoIndistinguishability,
    Mechanism,
    PrivacyZones,
    Promesse,
    WaitForMe,
    WaitForMeReport,
    recommended,
)
from promesse_geo.metrics import Metric
from promesse_geo.metrics.attacks import (
    AdaptivePoiRetrieval,
    EndRetrieval,
    HeatMapReidentification,
    Linkage,
    PoiRetrieval,
    Reidentification,
    Residue,
    Unicity,
    match_pois,
)
from promesse_geo.metrics.utility import AreaCoverage, Compression, RangeQueryDistortion, SpatialError
from promesse_geo.preprocess import collapse_empty_days, describe, drop_jumps, drop_zero, first_days, split_gaps
from promesse_geo.preprocess.pipeline import prepare
from promesse_geo.preprocess.pseudonyms import pseudonymize
from promesse_geo.publication import Publication, publish, publish_parquet
from promesse_geo.stays import pois
from promesse_geo.synthetic import make_city
from promesse_geo.traces.space import Plane, Sphere
from promesse_geo.traces.traces import Traces

if TYPE_CHECKING:
    from promesse_geo import paper, plot
    from promesse_geo.demo import run_demo
    from promesse_geo.paper import reproduce
    from promesse_geo.plot.maps import draw_map, draw_map_pair
    from promesse_geo.stays.places import PoiExtractor

# imported on first use: matplotlib, folium and scikit-learn take a second
_MODULES = {"PoiExtractor": "stays.places", "reproduce": "paper", "run_demo": "demo"}
_MODULES |= {"draw_map": "plot.maps", "draw_map_pair": "plot.maps"}


def __getattr__(name: str) -> Any:
    """Load a heavy module when a name of it is first used."""
    if name in ("paper", "plot"):
        return import_module(f"promesse_geo.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'promesse_geo' has no attribute {name!r}")
    return getattr(import_module(f"promesse_geo.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names alone."""
    return sorted(__all__)


__version__ = "0.2.0"

__all__ = ["make_city", "read_cabspotting", "read_file", "read_geolife", "read_gpx", "read_mdc", "read_table"]
__all__ += ["collapse_empty_days", "describe", "drop_jumps", "drop_zero", "first_days"]
__all__ += ["prepare", "pseudonymize", "split_gaps"]
__all__ += ["Chain", "GeoIndistinguishability", "Mechanism", "PrivacyZones", "Promesse"]
__all__ += ["WaitForMe", "WaitForMeReport"]
__all__ += [
    "AdaptivePoiRetrieval",
    "EndRetrieval",
    "HeatMapReidentification",
    "Linkage",
    "PoiRetrieval",
    "Reidentification",
    "Residue",
    "Unicity",
    "match_pois",
]
__all__ += ["PoiExtractor", "pois"]
__all__ += ["AreaCoverage", "Compression", "Metric", "RangeQueryDistortion", "SpatialError"]
__all__ += ["evaluate", "load_results", "measure", "paper", "reproduce", "run_demo", "save_results"]
__all__ += ["Tuning", "tune"]
__all__ += ["RiskReport", "report"]
__all__ += ["Publication", "check_published", "draw_map", "draw_map_pair", "plot", "publish", "recommended", "write"]
__all__ += ["Report", "measure_parquet", "protect_arrow", "protect_parquet", "publish_parquet"]
__all__ += ["Plane", "Sphere", "Traces"]
