"""Maps of original and protected data. They return folium objects, and never show or save them."""

import re
from datetime import date
from typing import Any, Literal, NamedTuple, TypeAlias

import geopandas as gpd
import numpy as np
import pandas as pd
from folium import FeatureGroup, LayerControl

from promesse_geo.mechanisms.words import mechanism_in_words
from promesse_geo.messages import counted, invalid
from promesse_geo.metrics import PoiRetrieval
from promesse_geo.metrics.pairing import pair_by_user, warn_if_exchanged
from promesse_geo.plot.background import background_of
from promesse_geo.plot.elements import Call, Figure, Heat, Map, new_map
from promesse_geo.plot.inks import COLORS
from promesse_geo.plot.layers import (
    Layer,
    Projection,
    bounds_of,
    found_poi_layer,
    kind_of_map,
    map_zone,
    poi_layers,
    record_layer,
)
from promesse_geo.traces.columns import Name
from promesse_geo.traces.owners import with_parts
from promesse_geo.traces.pairs import align
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_choice, check_flag, check_integer, check_users, check_users_exist

Data: TypeAlias = gpd.GeoDataFrame | Traces

_ATTACK = PoiRetrieval()
_EDGE = 85.05113  # degrees of latitude at which web maps end
_WARNING = "Shows true locations: do not publish."
_TITLES = {
    "original": "original data",
    "protected": "protected data",
    "true": "data with true positions",
    "unknown": "data",
}
_UNKNOWN = "It is not known whether these data are protected: do not publish this map unless they are."
_TIME = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2}([T ][0-9]{2}(:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?)?)?)?)?")
_ZONED = re.compile(rf"{_TIME.pattern}( ?(Z|[+-][0-9]{{2}}:?[0-9]{{2}}))?")


def draw_map(
    original: Data,
    protected: Data | None = None,
    *,
    users: Any = None,
    period: Any = None,
    color: str = "data",
    background: Any = None,
    tiles: Any = None,
    offline: bool = True,
    slider: bool = False,
    attack: PoiRetrieval | None = _ATTACK,
    points: int = 20_000,
    kind: str | None = None,
    user: Name = ...,
    time: Name = ...,
) -> Map:
    """Draw original and protected data on a map, with the points of interest that an attack finds in both.

    Do not publish a map with original data: it contains true locations. A map of protected data alone shows what a file
    of this data shows, but numbers instead of user names and no points of interest: publish it if you publish the file.
    What `PrivacyZones` alone leaves has true positions and times: its map says so, and is not for publication.

    By default a map contains all code and data it needs and sends no requests, because a tile server would learn which
    places are viewed, and so where users live.

    The layers are the original and the protected records, the points of interest found in the original data, those
    that the attack still finds in the protected data (hit), no longer finds (missed), or finds only there (false), and
    heat maps of the drawn records, hidden at first. Each layer can be hidden. Tooltips show the user and the time of a
    record or a point of interest. Buttons choose users and save what the map shows as a picture.

    Parameters
    ----------
    original : geopandas.GeoDataFrame or Traces
        The original data, or protected data to be drawn alone.
    protected : geopandas.GeoDataFrame or Traces, optional
        The protected data, with the same user names. Without it only the first data set is drawn.
    users : user key or list of them, optional
        Users to draw; all by default. A user of whom there are parts only, named NAME-00000 and so on by `prepare`,
        stands for all of them.
    period : str or (start, end), optional
        A day such as '2008-05-18' (or a month, an hour or a minute) or two times, in the time zone of the data. An
        hour that occurs twice when clocks are set back is drawn twice.
    color : {"data", "user", "speed"}
        What the colours of records show: the data set, the user, or the speed of the step that leads to a record, in
        classes from below 5 to above 120 km/h.
    background : geopandas.GeoDataFrame or geopandas.GeoSeries, optional
        Lines or polygons to draw below the data, such as streets, in any CRS. What is near the data becomes part of the
        page, without its attributes; large backgrounds are simplified.
    tiles : str, folium.TileLayer or xyzservices.TileProvider, optional
        A background such as "OpenStreetMap", or your own tile server as a folium.TileLayer with its attribution. The
        server learns which places are viewed. The default is no background.
    offline : bool
        Embed all code in the page. With False, the page loads folium's code from the network; popups and icons that
        you add to the map may need it.
    slider : bool
        Add a time slider that moves users along their traces.
    attack : PoiRetrieval or None
        How to find and compare points of interest; None draws none.
    points : int
        Maximum number of records per layer. Larger layers are thinned. Records far from all others, and the first and
        the last record of each trace, are always drawn, even if they are more. Lines between records are simplified to
        three vertices per drawn record, and not drawn if they would cut corners that the screen shows. Up to 1,000
        points of interest are drawn per layer. The legend shows the full counts.
    kind : {"original", "protected"}, optional
        What a data set drawn alone is. By default it is protected if it names the mechanism that protected it, as data
        from a mechanism and its GeoParquet and GeoPackage files do, unless all mechanisms keep true positions, as
        `PrivacyZones` does. Of other data, such as any CSV, the map says that it is not known.
    user, time : column name, None or ...
        Columns of both frames; see `Traces.from_frame`.

    Returns
    -------
    folium.Map
        Jupyter displays it; `save("map.html")` writes a page that needs no other files. A new file is for its owner
        only (mode 0600), unless it shows protected data alone.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is invalid, the data cannot be read, or the original lacks users of the protected data.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> type(pg.draw_map(city, city.promesse.smooth(200))).__name__
    'Map'
    """
    slider = check_flag(slider, name="slider", owner="map")
    data = _choose(original, protected, users=users, period=period, user=user, time=time, owner="map")
    shown = kind_of_map(*data[:2], kind=kind)
    look = _Look(period, attack, points, color, background)
    content = _content(*data, look, kind=shown, owner="map")
    figure = Figure(title=f"Map of {_TITLES[shown] if data[1] is None else 'original and protected data'}")
    base = new_map(tiles=tiles, offline=offline, flat=content.projection.flat, owner="map", figure=figure)
    base.is_private = figure.is_private = shown != "protected"
    times = _slider_remarks(content) if slider else _time_remarks(content)
    remarks = [*content.remarks, *times, _remark_on(data[0], shown)]
    groups = _add_layers(base, content.records + content.pois, content, remarks, offline=offline)
    if slider:
        Call("slider", [base, groups[: len(content.records)]], content.zone).add_to(base)
    Call("addTools", [[base], groups]).add_to(base)
    return base


def draw_map_pair(
    original: Data,
    protected: Data,
    *,
    users: Any = None,
    period: Any = None,
    color: str = "data",
    background: Any = None,
    tiles: Any = None,
    offline: bool = True,
    attack: PoiRetrieval | None = _ATTACK,
    points: int = 20_000,
    user: Name = ...,
    time: Name = ...,
) -> Figure:
    """Draw a map of the original data beside a map of the protected data; both always show the same area.

    Parameters
    ----------
    original, protected, users, period, color, background, tiles, offline, attack, points, user, time
        As for `draw_map`.

    Returns
    -------
    branca.element.Figure
        Jupyter displays it; `save("pair.html")` writes a page that needs no other files, for its owner only.

    Raises
    ------
    TypeError, ValueError, KeyError
        As for `draw_map`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> type(pg.draw_map_pair(city, city.promesse.smooth(200))).__name__
    'Figure'
    """
    if protected is None:
        raise TypeError(invalid("protected", "map_pair", "a GeoDataFrame or Traces", protected))
    data = _choose(original, protected, users=users, period=period, user=user, time=time, owner="map_pair")
    content = _content(*data, _Look(period, attack, points, color, background), owner="map_pair")
    figure = Figure(title="Maps of original and protected data")
    maps: list[Map] = []
    groups: list[FeatureGroup] = []
    stays = f" Stays of the original are shown. {_WARNING}" if len(content.pois) > 1 else ""
    remarks = [[*content.remarks, *_time_remarks(content), f"Original data. {_WARNING}"], [f"Protected data.{stays}"]]
    for half, layers in enumerate((content.records[:1] + content.pois[:1], content.records[1:] + content.pois[1:])):
        flat = content.projection.flat
        maps.append(new_map(tiles=tiles, offline=offline, flat=flat, owner="map_pair", figure=figure, half=half))
        groups += _add_layers(maps[half], layers, content, remarks[half], offline=offline)
    Call("moveTogether", maps).add_to(figure)
    Call("addTools", [maps, groups]).add_to(figure)
    return figure


class _Look(NamedTuple):
    """The parameters of a map that determine what is drawn and how."""

    period: Any
    attack: Any
    points: Any
    color: Any
    background: Any


class _Content(NamedTuple):
    """What a map shows; `zone` is the name of the time zone, `ground` the data of the background."""

    projection: Projection
    records: list[Layer]
    pois: list[Layer]
    corners: np.ndarray | None
    remarks: list[str]
    zone: str
    ground: dict[str, Any] | None


def _remark_on(traces: Traces, kind: str) -> str:
    """Return whether a map of this kind can be published."""
    done = f": {mechanism_in_words(traces.protection)}" if traces.protection else ""
    if kind == "true":
        return f"Positions and times are true, of what this left{done}. {_WARNING}"
    if kind != "protected":
        return _UNKNOWN if kind == "unknown" else _WARNING
    return f"Protected data{done}."


def _content(
    before: Traces, after: Traces | None, numbers: dict[str, int], look: _Look, *, owner: str, kind: str = "original"
) -> _Content:
    """Return the layers and the remarks of a map; `kind` is that of the first data set."""
    attack = look.attack
    if attack is not None and not isinstance(attack, PoiRetrieval):
        raise TypeError(invalid("attack", owner, "None or an attack such as pg.PoiRetrieval()", attack))
    most = check_integer(look.points, name="points", owner=owner, low=2)
    color = check_choice(look.color, name="color", owner=owner, options=COLORS)
    projection = Projection.of(before, after, numbers, most=most)
    versions = {kind: before, **({} if after is None else {"protected": after})}
    records = [
        record_layer(traces, projection, most=most, kind=each, color=color, named=kind != "protected")
        for each, traces in versions.items()
    ]
    if attack is None or kind == "protected":
        pois = []
    elif after is None:
        pois = [found_poi_layer(kind, before, attack.index(before).content, projection)]
    else:
        pois = poi_layers(align(before, after), projection, attack=attack)
    corners, far = bounds_of(records + pois)
    remarks = _remarks(records, most, look.period, far=far, flat=projection.flat)
    ground = None
    if look.background is not None:
        ground, more = background_of(look.background, projection, corners, owner=owner)
        remarks += more
    return _Content(projection, records, pois, corners, remarks, map_zone(before), ground)


def _choose(
    original: Any, protected: Any, *, users: Any, period: Any, user: Name, time: Name, owner: str
) -> tuple[Traces, Traces | None, dict[str, int]]:
    """Return both data sets in the space of the original, for some users and a period, and all users' numbers."""
    before = as_traces(original, user=user, time=time)
    after = None
    if protected is not None:
        after = pair_by_user(before, as_traces(protected, user=user, time=time)).protected
        warn_if_exchanged(before, after)
    numbers = {str(user): number for number, user in enumerate(before.users.tolist())}
    both = [before, *([] if after is None else [after])]
    chosen = check_users(users, owner=owner)
    if chosen is not None:
        chosen = with_parts(chosen, list(numbers))
        check_users_exist(chosen, numbers, owner=owner, has_parts=True)
        both = [_of_users(traces, chosen) for traces in both]
    if period is not None:
        windows = _windows(period, before, owner=owner)
        both = [_within(traces, windows) for traces in both]
    return both[0], None if after is None else both[1], numbers


def _of_users(traces: Traces, users: set[str]) -> Traces:
    kept = [str(user) in users for user in traces.users.tolist()]
    return traces.select(np.repeat(kept, traces.counts))


def _within(traces: Traces, windows: list[tuple[int, int]]) -> Traces:
    """Return the records within any of the windows, in nanoseconds."""
    inside = [(first <= traces.times) & (traces.times <= last) for first, last in windows]
    return traces.select(np.logical_or.reduce(inside))


def _windows(period: Any, original: Traces, *, owner: str) -> list[tuple[int, int]]:
    """Return first and last nanosecond of a period, twice for a period that may occur twice."""
    try:
        if isinstance(period, str):
            if not _TIME.fullmatch(period):
                raise ValueError
            span = pd.Period(period)
            first, last = span.start_time, (span + 1).start_time.as_unit("ns") - pd.Timedelta(1, "ns")
            return [
                (_nanoseconds(first, original, second=second), _nanoseconds(last, original, second=second, back=True))
                for second in (False, True)
            ]
        begin, end = (_nanoseconds(_as_timestamp(time), original) for time in period)
        if end < begin:
            raise ValueError
    except (ValueError, TypeError, OverflowError):
        rule = "a day such as '2008-05-18' (or a month, an hour or a minute) or two ascending times, "
        rule += "with a time zone only if the data has one"
        raise ValueError(invalid("period", owner, rule, period)) from None
    return [(begin, end)]


def _as_timestamp(time: Any) -> pd.Timestamp:
    """Return a timestamp of an ISO 8601 text, a date or a datetime; pandas would guess formats and accept numbers."""
    if (isinstance(time, str) and _ZONED.fullmatch(time)) or isinstance(time, (date, np.datetime64)):
        return pd.Timestamp(time)
    raise ValueError


def _nanoseconds(time: pd.Timestamp, traces: Traces, *, second: bool = False, back: bool = False) -> int:
    """Return a time in nanoseconds; a time without a zone is in that of the traces.

    Of a local time that occurs twice, the first or the `second` one is meant. A local time that does not exist moves
    to the next one that does, or `back` to the previous one.
    """
    if pd.isna(time) or (traces.time_format.zone is None and time.tz is not None):
        raise ValueError
    if traces.time_format.zone is not None and time.tz is None:
        missing: Literal["shift_backward", "shift_forward"] = "shift_backward" if back else "shift_forward"
        time = time.tz_localize(traces.time_format.zone, ambiguous=not second, nonexistent=missing)
    return int(time.as_unit("ns").value)


def _remarks(records: list[Layer], points: int, period: Any, *, far: bool, flat: bool) -> list[str]:
    """Return what a reader must know of the drawn records."""
    remarks = []
    if period is not None:
        text = period if isinstance(period, str) else " to ".join(map(str, period))
        remarks.append(f"Only records of this period are drawn: {text}.")
    thinned = [layer for layer in records if layer.is_thinned]
    if thinned:
        ends = " and ends of traces are" if all(layer.has_all_ends for layer in records) else " are"
        have = {layer.data["path"] is not None for layer in thinned}
        lines = "no lines" if have == {False} else f"simplified lines{'' if have == {True} else ' or none'}"
        text = f"Layers of more than {points:,} records are thinned and have {lines}"
        remarks.append(f"{text}; records far from all others{ends} drawn.")
    if far:
        remarks.append("A few records are far outside this view.")
    beyond = 0 if flat else sum(int((np.abs(layer.places[:, 1]) > _EDGE).sum()) for layer in records)
    if beyond:
        verb = "is" if beyond == 1 else "are"
        remarks.append(f"{counted(beyond, 'record')} beyond latitude {_EDGE:.2f}° {verb} drawn at the edge of the map.")
    return remarks


def _time_remarks(content: _Content) -> list[str]:
    return [f"Times are in {content.zone}."] if content.zone and len(content.records[0].places) else []


def _slider_remarks(content: _Content) -> list[str]:
    """Explain the dots that the slider moves, if there are any."""
    if not any(len(layer.places) for layer in content.records):
        return []
    dots = f"Large dots: users at this time{f' ({content.zone})' if content.zone else ''}"
    remarks = [f"{dots}." if len(content.records) == 1 else f"{dots}; dashes connect original and protected."]
    if any(layer.is_thinned for layer in content.records):
        remarks.append("Dots move in straight lines between drawn records.")
    return remarks


def _add_layers(
    base: Map, layers: list[Layer], content: _Content, remarks: list[str], *, offline: bool
) -> list[FeatureGroup]:
    """Add background, layers, heat maps, legend and remarks to a map; return the groups of the layers."""
    if content.ground is not None:
        Call("background", [base], content.ground).add_to(base)
    groups = [FeatureGroup(name=f"{layer.glyph} {layer.name}") for layer in layers]
    for group, layer in zip(groups, layers, strict=True):
        Call(layer.function, [group], layer.data).add_to(group)
        group.add_to(base)
    for group, layer in zip(groups, layers, strict=True):
        if layer.heat:
            heat = Heat(layer.heat, offline=offline)
            heat.add_to(base)
            Call("heat", [base, heat, group]).add_to(base)
    legend = LayerControl(collapsed=False)
    legend.add_to(base)
    view = None if content.corners is None else content.corners[:, ::-1].tolist()
    shown = {"corners": view, "closest": 1 if base.crs == "Simple" else 17, "remarks": remarks}
    Call("addControls", [base, legend], shown | {"scale": layers[0].scale}).add_to(base)
    return groups
