"""Metrics and mechanisms with another value of one parameter, as `dataclasses.replace` makes them."""

import pickle
from dataclasses import replace
from inspect import signature

import geopandas as gpd
import pandas as pd
import pytest
from instances import instance_of, needed_by

import promesse_geo as pg

POINTS = gpd.GeoDataFrame({"user": ["a", "b"]}, geometry=gpd.points_from_xy([4.8, 4.9], [45.7, 45.8]), crs=4326)
QUERIES = pd.DataFrame({"half_side": 500.0, "start": pd.Timestamp(0), "end": pd.Timestamp(1, unit="D")}, index=[0, 1])
KINDS = [
    kind
    for name in pg.__all__
    if isinstance(kind := getattr(pg, name), type) and issubclass(kind, (pg.Metric, pg.Mechanism))
    if kind not in (pg.Metric, pg.Mechanism)
]
OTHERS = {
    "cell": 300,
    "chunk": True,
    "closeness": 0.5,
    "cost_cap": 7,
    "delta": 150,
    "diameter": 150,
    "draws": 70,
    "duration": "5min",
    "ends": 900,
    "epsilon": 0.5,
    "gap": "1h",
    "grid": 10,
    "k": 3,
    "kind": "promesse",
    "known": pg.Promesse(100),
    "least": 2,
    "linked": False,
    "max_interval": "3min",
    "max_radius": 7_000,
    "max_trash": 0.2,
    "mechanisms": [pg.Promesse(100), pg.GeoIndistinguishability(0.1)],
    "min_points": 4,
    "offset": 100,
    "places": 2,
    "points": 3,
    "program": "v1.1",
    "queries": gpd.GeoDataFrame(QUERIES, geometry=POINTS.geometry),
    "radius": 700,
    "radius_test": "v1.1",
    "rays": False,
    "seed": "another",
    "steps": (1, 1.0000001),
    "threshold": 70,
    "truth": POINTS,
    "unit": "trace",
    "variant": "pseudocode",
    "window": "2h",
    "within": "1h",
    "zones": POINTS,
}


def _another(value):
    """Another value of a parameter without one in `OTHERS`."""
    return not value if isinstance(value, bool) else value + 1 if isinstance(value, (int, float)) else value * 2


def _shown(make):
    """What is made, in words, or why it cannot be."""
    try:
        return repr(make())
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_other_parameters_stay(kind):
    names, needed = list(signature(kind).parameters), needed_by(kind)
    others = {name: OTHERS[name] if name in OTHERS else _another(getattr(instance_of(kind), name)) for name in names}
    for name in names:
        each = kind(**needed | {name: others[name]})
        assert replace(each) == each != kind(**needed)
        for other in names:
            of_both = needed | {name: others[name], other: others[other]}
            for copied in (each, pickle.loads(pickle.dumps(each))):
                found = _shown(lambda copied=copied, other=other: replace(copied, **{other: others[other]}))
                assert found == _shown(lambda of_both=of_both: kind(**of_both))


def test_the_unit_of_heat_maps_is_a_percentage_whatever_their_parameter():
    metric = replace(pg.HeatMapReidentification(unit="trace"), k=3)
    assert (metric.level, metric.k, metric.unit, type(metric).unit) == ("trace", 3, "%", "%")
    with pytest.raises(ValueError, match=r"'unit'.* Got '%'"):
        pg.HeatMapReidentification(unit="%")
