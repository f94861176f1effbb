"""Maps: take frames or Traces, return folium's objects, never show or save."""

from typing import Any

import geopandas as gpd
import numpy as np

from promesse_geo.messages import counted, invalid
from promesse_geo.metrics import PoiRetrieval
from promesse_geo.metrics.base import pair_by_user
from promesse_geo.plot.choice import chosen_traces, map_zone
from promesse_geo.plot.ground import Ground
from promesse_geo.plot.layers import (
    Layer,
    bounds_of,
    original_poi_layer,
    poi_layers,
    record_layer,
)
from promesse_geo.plot.pages import Call, FeatureGroup, Figure, LayerControl, Map, new_map
from promesse_geo.traces.columns import Name
from promesse_geo.traces.pairs import align
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_flag, check_integer

MOST_TRACES = 20
"""Traces of each data set that a time slider moves."""

_ATTACK = PoiRetrieval()
_EDGE = 85.05113  # degrees of latitude at which the maps of the web end


def draw_map(
    original: gpd.GeoDataFrame | Traces,
    protected: gpd.GeoDataFrame | Traces | None = None,
    *,
    users: Any = None,
    period: Any = None,
    tiles: Any = None,
    offline: bool = True,
    slider: bool = False,
    attack: PoiRetrieval | None = _ATTACK,
    points: int = 20_000,
    user: Name = ...,
    time: Name = ...,
) -> Map:
    """Draw original and protected data on a map, with what an attacker finds in both.

    The map is for whoever holds the original data: it shows true locations, so it is not for publication. By default
    it is complete in itself. Whoever opens it asks nobody for anything: a server of map tiles would learn which places
    are looked at, and so where users live.

    Layers are the original and the protected records, the points of interest found in the original, and which of them
    are still found in the protected data (hit) or no longer (missed), and what is found there where none was (false).
    Each can be switched off. A record or a point of interest says its user and time when pointed at.

    Parameters
    ----------
    original : geopandas.GeoDataFrame or Traces
        The original data.
    protected : geopandas.GeoDataFrame or Traces, optional
        What became of it, under the same users. Without it the original alone is drawn.
    users : user key or list of them, optional
        Whom to draw; everybody by default.
    period : str or (start, end), optional
        When: a day as '2008-05-18' (or a month, an hour, a minute; both that clocks show twice), or two times; read
        in the zone of the data.
    tiles : str, folium.TileLayer or xyzservices.TileProvider, optional
        A background, such as "OpenStreetMap", or the address of a server of your own (as a folium.TileLayer, which
        names its source). Its server learns which places are looked at. By default there is none.
    offline : bool
        Keep all code in the page. With False, folium's own comes from the network, which popups and icons that you
        add to the map yourself may need.
    slider : bool
        Add a time slider that moves users, at most 20 traces.
    attack : PoiRetrieval or None
        How points of interest are found and compared; with None there are none.
    points : int
        Records drawn in each layer at most, evenly taken. Where not all are drawn they are not joined by lines,
        which would cut corners. Points of interest are drawn up to 1,000 in a layer; the legend counts all.
    user, time : column name, None or ...
        Columns of both frames; see `Traces.from_frame`.

    Returns
    -------
    folium.Map
        Jupyter shows it; `save("map.html")` writes a file that opens by itself.

    Raises
    ------
    ImportError
        If folium is not installed.
    TypeError, ValueError, KeyError
        If a parameter is wrong, the data cannot be read, or the original lacks users of the protected data.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> type(pg.draw_map(city, city.promesse.smooth(200))).__name__
    'Map'
    """
    points, attack, slider = _checked(points, attack, slider, owner="map")
    before, after, numbers = _chosen(original, protected, users=users, period=period, user=user, time=time, owner="map")
    ground = Ground.of(before, after, numbers, most=points)
    records = _record_layers(before, after, ground, most=points)
    layers = records + _attacked(before, after, ground, attack)
    corners, far = bounds_of(layers)
    base = new_map(tiles=tiles, offline=check_flag(offline, name="offline", owner="map"), flat=ground.flat, owner="map")
    times = _moving(before, after, records) if slider else _told(before)
    remarks = [*_limited(period), *_remarks(records, points, far=far, flat=ground.flat), *times, _SECRET]
    groups = _fill(base, layers, corners, remarks)
    if slider:
        _check_few(before, after)
        Call("slider", [base, groups[: len(records)]], map_zone(before)).add_to(base)
    return base


def draw_map_pair(
    original: gpd.GeoDataFrame | Traces,
    protected: gpd.GeoDataFrame | Traces,
    *,
    users: Any = None,
    period: Any = None,
    tiles: Any = None,
    offline: bool = True,
    attack: PoiRetrieval | None = _ATTACK,
    points: int = 20_000,
    user: Name = ...,
    time: Name = ...,
) -> Figure:
    """Draw the original on the left and the protected data on the right; the two maps move together.

    Parameters
    ----------
    original, protected, users, period, tiles, offline, attack, points, user, time
        As for `draw_map`.

    Returns
    -------
    branca.element.Figure
        Jupyter shows it; `save("pair.html")` writes a file that opens by itself.

    Raises
    ------
    ImportError, TypeError, ValueError, KeyError
        As for `draw_map`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1)
    >>> type(pg.draw_map_pair(city, city.promesse.smooth(200))).__name__
    'Figure'
    """
    points, attack, _ = _checked(points, attack, False, owner="map_pair")
    offline = check_flag(offline, name="offline", owner="map_pair")
    before, after, numbers = _chosen(
        original, protected, users=users, period=period, user=user, time=time, owner="map_pair"
    )
    ground = Ground.of(before, after, numbers, most=points)
    records = _record_layers(before, after, ground, most=points)
    found = _attacked(before, after, ground, attack)
    corners, far = bounds_of(records + found)
    remarks = [*_limited(period), *_remarks(records, points, far=far, flat=ground.flat)]
    figure = Figure()
    maps: list[Map] = []
    for number, layers in enumerate(([records[0], *found[:1]], [*records[1:], *found[1:]])):
        half = new_map(tiles=tiles, offline=offline, flat=ground.flat, owner="map_pair", figure=figure, half=number)
        _fill(half, layers, corners, [*remarks, *([] if number else [*_told(before), _SECRET])])
        maps.append(half)
    Call("together", maps).add_to(figure)
    return figure


_SECRET = "Shows true locations: not for publication."


def _checked(points: Any, attack: Any, slider: Any, *, owner: str) -> tuple[int, PoiRetrieval | None, bool]:
    if attack is not None and not isinstance(attack, PoiRetrieval):
        raise TypeError(invalid("attack", owner, "None or one such as pg.PoiRetrieval()", attack))
    return (
        check_integer(points, name="points", owner=owner, low=2),
        attack,
        check_flag(slider, name="slider", owner=owner),
    )


def _chosen(
    original: Any, protected: Any, *, users: Any, period: Any, user: Name, time: Name, owner: str
) -> tuple[Traces, Traces | None, dict[str, int]]:
    """Traces of both data sets in the original's space, of the users and the period asked for; all users' numbers."""
    before = as_traces(original, user=user, time=time)
    after = None if protected is None else pair_by_user(before, as_traces(protected, user=user, time=time)).protected
    numbers = {str(user): number for number, user in enumerate(before.users.tolist())}
    return *chosen_traces(before, after, users=users, period=period, owner=owner), numbers


def _record_layers(before: Traces, after: Traces | None, ground: Ground, *, most: int) -> list[Layer]:
    both = (("Original", before), ("Protected", after))
    return [record_layer(traces, ground, most=most, kind=kind) for kind, traces in both if traces is not None]


def _attacked(before: Traces, after: Traces | None, ground: Ground, attack: PoiRetrieval | None) -> list[Layer]:
    if attack is None:
        return []
    if after is None:
        return [original_poi_layer(before, attack.index(before).content, ground)]
    return poi_layers(align(before, after), ground, attack=attack)


def _remarks(records: list[Layer], points: int, *, far: bool, flat: bool) -> list[str]:
    """What whoever looks at the map must know."""
    remarks = []
    if not all(layer.data["lines"] for layer in records):
        remarks.append(f"At most {points:,} records of a layer are drawn, evenly taken; larger layers have no lines.")
    if far:
        remarks.append("A few records lie far outside of this view.")
    beyond = 0 if flat else sum(int((np.abs(layer.places[:, 1]) > _EDGE).sum()) for layer in records)
    if beyond:
        remarks.append(f"Drawn at the map's edge, {_EDGE:.2f}° north or south: {counted(beyond, 'record')} beyond it.")
    return remarks


def _limited(period: Any) -> list[str]:
    """What must be known of a map of a period."""
    if period is None:
        return []
    words = period if isinstance(period, str) else " to ".join(map(str, period))
    return [f"Only records of a period are drawn: {words}."]


def _told(traces: Traces) -> list[str]:
    """What must be known of the times that records tell."""
    zone = map_zone(traces)
    return [f"Times are told in {zone}."] if zone and traces.records else []


def _moving(before: Traces, after: Traces | None, records: list[Layer]) -> list[str]:
    """What must be known of the dots that a slider moves, if there are any."""
    if not any(len(layer.places) for layer in records):
        return []
    zone = map_zone(before)
    dots = f"Large dots: users at this time{f' ({zone})' if zone else ''}"
    remarks = [f"{dots}." if after is None else f"{dots}; dashes join both."]
    if not all(layer.data["lines"] for layer in records):
        remarks.append("They move straight from one drawn record to the next.")
    return remarks


def _fill(base: Map, layers: list[Layer], corners: np.ndarray | None, remarks: list[str]) -> list[FeatureGroup]:
    groups = [FeatureGroup(name=layer.label) for layer in layers]
    for group, layer in zip(groups, layers, strict=True):
        Call(layer.function, [group], layer.data).add_to(group)
        group.add_to(base)
    legend = LayerControl(collapsed=False)
    legend.add_to(base)
    view = None if corners is None else corners[:, ::-1].tolist()
    closest = 1 if base.crs == "Simple" else 17
    Call("furnish", [base, legend], {"corners": view, "closest": closest, "remarks": remarks}).add_to(base)
    if layers[0].name.startswith("Original"):
        Call("below", [base, groups[0]]).add_to(base)
    return groups


def _check_few(before: Traces, after: Traces | None) -> None:
    most = max(len(before), 0 if after is None else len(after))
    if most > MOST_TRACES:
        raise ValueError(
            f"The 'slider' parameter of map can be True for at most {MOST_TRACES} traces. Got {most:,}. "
            "Choose some with users=[…]."
        )
