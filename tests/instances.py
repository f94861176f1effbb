"""One instance of each metric and mechanism for the contract tests: the lines to add for a new one."""

import math
from inspect import Parameter, signature
from typing import Any, NamedTuple

import promesse_geo as pg


class Values(NamedTuple):
    """Values that a metric must have; None if there is nothing to require."""

    same: float | None = None
    """Of data compared with itself."""

    dropped: float | None = None
    """Of data of which a mechanism left nothing; NaN if undefined."""


METRICS = {
    pg.PoiRetrieval(): Values(same=100, dropped=0),
    pg.SpatialError(): Values(same=0, dropped=math.nan),
    pg.RangeQueryDistortion(20, seed=1): Values(same=0, dropped=100),
    pg.Compression(): Values(same=100, dropped=0),
    pg.AreaCoverage(): Values(same=100, dropped=0),
    pg.AdaptivePoiRetrieval(kind="geo-indistinguishability"): Values(same=100, dropped=0),
    pg.Residue(): Values(dropped=0),  # looks for what smoothing leaves, not for stays; see test_residue.py
}
"""Metrics that match traces by user. Those that match in another way have their own tests."""

MECHANISMS = {
    pg.Promesse(100): 1e-5,
    pg.GeoIndistinguishability(0.01): 2_000.0,
    pg.WaitForMe(): None,
    pg.PrivacyZones(): 1e-5,
    pg.Chain([pg.PrivacyZones(), pg.Promesse(100)]): 1e-5,
}
"""Mechanisms, and the metres by which each may move a point from the path; None if it refuses data with breaks."""

_INSTANCES = {type(each): each for each in (*METRICS, *MECHANISMS)}


def instance_of(kind: type) -> Any:
    """The instance of a class in the tables, or that of its defaults."""
    return _INSTANCES[kind] if kind in _INSTANCES else kind()


def needed_by(kind: type) -> dict[str, Any]:
    """Values of the parameters that have no default."""
    names = [name for name, each in signature(kind).parameters.items() if each.default is Parameter.empty]
    return {name: getattr(_INSTANCES[kind], name) for name in names}
