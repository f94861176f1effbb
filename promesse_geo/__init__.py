"""Protect GPS traces before they are published, and say honestly what was gained and lost.

Importing the package registers the accessor `gdf.promesse` on GeoDataFrames::

    import promesse_geo as pg

    gdf = pg.read_cabspotting("cabspottingdata.tar.gz")
    parts = gdf.promesse.prepare(tz="America/Los_Angeles")
    safe = parts.promesse.smooth(200)

Every verb of the accessor is a function as well, for GeoDataFrames and for `Traces`, the columnar form that large
data stays in: `pg.prepare(data)`, `pg.describe(data)`, `pg.Promesse(200).protect(data)`.
"""

from promesse_geo import accessor as _accessor  # registers gdf.promesse  # noqa: F401
from promesse_geo.datasets import make_city, read_cabspotting
from promesse_geo.days import collapse_empty_days, first_days
from promesse_geo.mechanisms import Mechanism, Promesse
from promesse_geo.preprocess import describe, drop_jumps, prepare, pseudonymize, split_gaps
from promesse_geo.space import Plane, Sphere
from promesse_geo.traces import Traces

__version__ = "0.1.0"

__all__ = [
    "Mechanism",
    "Plane",
    "Promesse",
    "Sphere",
    "Traces",
    "collapse_empty_days",
    "describe",
    "drop_jumps",
    "first_days",
    "make_city",
    "prepare",
    "pseudonymize",
    "read_cabspotting",
    "split_gaps",
]
