"""Layers of a map: records and points of interest, thinned and packed for the browser."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple
from zoneinfo import available_timezones

import numpy as np
from pyproj import Transformer
from pyproj.exceptions import ProjError

from promesse_geo.mechanisms.base import keeps_positions
from promesse_geo.messages import counted
from promesse_geo.metrics import PoiRetrieval
from promesse_geo.plot import colours
from promesse_geo.plot.inks import Inks, inks_of
from promesse_geo.plot.paths import drawable
from promesse_geo.plot.tables import shortened, zone_name
from promesse_geo.plot.thinning import landmarks, numbers_of, representative, thinned
from promesse_geo.stays import Pois
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.space import Plane, Space
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice

MOST_POIS = 1000
"""Largest number of points of interest drawn in a layer."""

KINDS = ("original", "protected")
"""What a data set drawn alone can be."""

_VERTICES = 3  # of a simplified path, for each record that a thinned layer draws
_MANY_POIS = 200  # layers with more of them draw them smaller
_OFFSET = re.compile(r"[+-][0-9]{2}:[0-9]{2}")
_NO_TIMES = np.empty((2, 0), np.int64)


@dataclass(frozen=True, eq=False)
class Projection:
    """Coordinates on the map: longitude and latitude around a centre, or metres of a plane without a globe.

    Data on another celestial body is drawn at its longitude and latitude there. Everything of a user is drawn within
    180 degrees of the centre of their original trace, so that a trace stays in one piece and protected data beside the
    original, even across the meridian opposite the centre of the map. Only a trace around the world or a pole is drawn
    within 180 degrees of the centre of the map, with its lines cut at the opposite meridian.

    Parameters
    ----------
    space : Sphere or Plane
        The space of the points.
    transformer : pyproj.Transformer or None
        From the CRS to longitude and latitude on the Earth; None if there is no transformation.
    numbers : mapping of str to int
        The number of each user's trace in the original data, to distinguish users with long names.
    centre : float
        Longitude of the centre of the map.
    centres : mapping of str to float
        Longitude of the centre of each user's trace; `centre` for other users.
    """

    space: Space
    transformer: Transformer | None
    numbers: Mapping[str, int]
    centre: float = 0.0
    centres: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, original: Traces, protected: Traces | None, numbers: Mapping[str, int], *, most: int) -> "Projection":
        """Return the projection of a map that draws up to `most` records of each data set."""
        try:
            transformer = Transformer.from_crs(original.space.crs, "EPSG:4326", always_xy=True)
        except ProjError:
            transformer = None
        projection = cls(original.space, transformer, numbers)
        if projection.flat:
            return projection
        for traces in (protected, original):  # the centres of the original override those of the protected data
            if traces is not None and traces.records:
                projection = projection._centred(traces, thinned(traces.records, max(most, 10_000)))
        return projection

    def _centred(self, traces: Traces, chosen: np.ndarray) -> "Projection":
        """Return the projection with the centres of these records and of each of their traces."""
        numbers = numbers_of(chosen, traces.offsets)
        x = self.coordinates(traces.points[chosen], traces, numbers)[:, 0]
        centre = float(np.degrees(np.angle(np.exp(1j * np.radians(x)).mean())))
        used, starts = np.unique(numbers, return_index=True)
        x = np.unwrap(x, period=360)  # continuous within a trace, beyond 180 degrees if need be
        low, high = np.minimum.reduceat(x, starts), np.maximum.reduceat(x, starts)
        centres = np.where(high - low < 360, _wrapped(centre, (low + high) / 2), centre)
        users = map(str, traces.users.take(used).tolist())
        return replace(self, centre=centre, centres={**self.centres, **dict(zip(users, centres.tolist(), strict=True))})

    @property
    def flat(self) -> bool:
        """Whether the map is a plane in metres."""
        return self.transformer is None and isinstance(self.space, Plane)

    def coordinates(self, points: np.ndarray, traces: Traces, numbers: np.ndarray) -> np.ndarray:
        """Return x and y on the map.

        Parameters
        ----------
        points : numpy.ndarray, shape (n, 3) or (n, 2)
            Kernel coordinates.
        traces : Traces
            The traces of the points.
        numbers : numpy.ndarray of int, shape (n,)
            The number of each point's trace.

        Returns
        -------
        numpy.ndarray, shape (n, 2)
            Degrees of longitude and latitude, or metres on a flat map.
        """
        if self.flat:
            return points
        x, y = self._degrees(points)
        centres = np.array([self.centres.get(str(user), self.centre) for user in traces.users.tolist()], float)
        return np.column_stack((_wrapped(centres[numbers], x), y))

    def paths(self, points: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Return x and y on the map of points of paths that are not of users, near the centre of the map.

        Parameters
        ----------
        points : numpy.ndarray, shape (n, 3) or (n, 2)
            Kernel coordinates.
        starts : numpy.ndarray of int, shape (paths,)
            The position of the first point of each path, which stays in one piece.

        Returns
        -------
        numpy.ndarray, shape (n, 2)
            Degrees of longitude and latitude, or metres on a flat map.
        """
        if self.flat or not len(points):
            return points[:, :2]
        x, y = self._degrees(points)
        numbers = np.searchsorted(starts, np.arange(len(x)), side="right") - 1
        turns = np.cumsum(np.rint(np.diff(x, prepend=x[0]) / -360))
        x = x + 360 * (turns - turns[starts][numbers])  # each vertex within 180 degrees of the one before
        middles = (np.minimum.reduceat(x, starts) + np.maximum.reduceat(x, starts)) / 2
        return np.column_stack((x + 360 * np.rint((self.centre - middles) / 360)[numbers], y))

    def _degrees(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return longitude and latitude on the map."""
        x, y = self.space.coordinates(points)
        if self.transformer is None:
            return self.space.to_base(x, y)
        x, y = self.transformer.transform(x, y)
        return x, y


def _wrapped(centre: np.ndarray | float, x: np.ndarray) -> np.ndarray:
    """Return longitudes within 180 degrees of a centre."""
    return centre + (x - centre + 180) % 360 - 180


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of a map.

    Parameters
    ----------
    function : {"records", "pois"}
        The JavaScript function that draws the layer.
    name : str
        Text in the legend, with the total count and the count drawn.
    glyph : str
        Symbol of the layer, as SVG.
    places : numpy.ndarray, shape (n, 2)
        Coordinates on the map.
    data : dict
        Data for the JavaScript function.
    heat : str
        Name of its heat map; empty for points of interest.
    scale : list of (str, str)
        Colours and their meanings, if they have any.
    is_thinned : bool
        Whether some records are not drawn.
    has_all_ends : bool
        Whether the first and the last record of each trace are drawn.
    """

    function: str
    name: str
    glyph: str
    places: np.ndarray
    data: dict[str, Any]
    heat: str = ""
    scale: list[tuple[str, str]] = field(default_factory=list)
    is_thinned: bool = False
    has_all_ends: bool = True


def kind_of_map(before: Traces, after: Traces | None, *, kind: Any = None) -> str:
    """Return what a map shows.

    That is "original" data, "protected" data only, "true" for what mechanisms that keep positions left of the original,
    or "unknown", data of which nothing is known.

    Parameters
    ----------
    before, after : Traces or None
        The data sets to draw.
    kind : {"original", "protected"}, optional
        What a data set drawn alone is, if it is specified.

    Raises
    ------
    TypeError, ValueError
        If the kind is invalid, or two data sets are drawn.
    """
    if kind is None:
        if after is not None or before.protection is None:
            return "unknown" if after is None else "original"
        return "true" if keeps_positions(before.protection) else "protected"
    if after is not None:
        raise ValueError("The 'kind' parameter of map is for a data set drawn alone. Omit it, or omit 'protected'.")
    return check_choice(kind, name="kind", owner="map", options=KINDS)


class _Nouns(NamedTuple):
    """How the legend and the tooltips call data of a kind."""

    data: str
    record: str


_NOUNS = {
    "original": _Nouns("Original", "Original record"),
    "protected": _Nouns("Protected", "Protected record"),
    "true": _Nouns("True positions", "True position"),
    "unknown": _Nouns("Data", "Record"),
}


def record_layer(
    traces: Traces, projection: Projection, *, most: int, kind: str, color: str = "data", named: bool = True
) -> Layer:
    """Pack the records of one data set.

    `kind` is original, protected, true or unknown, `color` what colours show, and `named` whether users are named.
    """
    kept = landmarks(traces, most)
    chosen = representative(traces.points, most, kept=kept)
    numbers = numbers_of(chosen, traces.offsets)
    places = projection.coordinates(traces.points[chosen], traces, numbers)
    original = kind != "protected"
    colour = colours.ORIGINAL if original else colours.PROTECTED
    users = np.array([projection.numbers[user] for user in map(str, traces.users.tolist())], np.int64)
    inks_at = partial(_inks_at, color, traces, users, colour)
    palette, inks, meanings = inks_at(chosen)
    data = _pack(traces, projection, numbers, places, traces.times[chosen], _NO_TIMES[1], named=named)
    data |= {
        "title": _NOUNS[kind].record,
        "colour": colour,
        "palette": palette,
        "inks": inks,
        "byUser": color == "user",
        "radius": (2 if len(chosen) > 5000 else 3) + original,
        "width": 6 if original else 1.5,  # a broad line, visible on both sides of the protected path
        "shade": 0.3 if original else 0.7,
        "opacity": 0.45 if original and len(chosen) > 100 else 0.9,
        "path": _path(traces, chosen, places, projection, inks_at, most=most),
        "breaks": _breaks(traces, chosen),
        "period": 0 if projection.flat else 360,
    }
    name = f"{_NOUNS[kind].data}: {counted(traces.records, 'record')}{_drawn(traces.records, len(chosen))}"
    glyph = _record_glyph(colour if color == "data" else colours.GROUND, original=original)
    scale = list(zip(palette, meanings, strict=False))
    heat = f"{_HEAT} Heat map{f', {kind}' if kind in KINDS else ''}"
    thinned_to = {"is_thinned": len(chosen) < traces.records, "has_all_ends": len(kept) > 0}
    return Layer("records", name, glyph, places, data, heat, scale, **thinned_to)


def _inks_at(color: str, traces: Traces, users: np.ndarray, colour: str, chosen: np.ndarray) -> Inks:
    """Return the colours of the chosen records; `users` are the numbers of the users of all traces."""
    return inks_of(color, traces, chosen, users[numbers_of(chosen, traces.offsets)], colour=colour)


def _path(
    traces: Traces,
    chosen: np.ndarray,
    places: np.ndarray,
    projection: Projection,
    inks_at: Callable[[np.ndarray], Inks],
    *,
    most: int,
) -> dict[str, Any] | None:
    """Return the path that lines show, none if they would cut corners, and nothing if it is that of the chosen records.

    `places` are those of the chosen records, and `most` is the greatest number of records that a layer draws.
    """
    if len(chosen) == traces.records:
        return {}

    def places_of(records: np.ndarray) -> np.ndarray:
        return projection.coordinates(traces.points[records], traces, numbers_of(records, traces.offsets))

    size = float(np.ptp(_view(places)[0], axis=0).max())
    vertices = drawable(places_of, traces.segments, size=size, most=_VERTICES * most)
    if vertices is None:
        return None
    used = np.unique(numbers_of(chosen, traces.offsets))
    numbers = numbers_of(vertices, traces.offsets)
    vertices = vertices[np.isin(numbers, used)]
    palette, inks, _ = inks_at(vertices)
    return packed(places_of(vertices), projection) | {
        "counts": np.bincount(numbers, minlength=len(traces))[used].tolist(),
        "breaks": _breaks(traces, vertices),
        "palette": palette,
        "inks": inks,
    }


def _breaks(traces: Traces, chosen: np.ndarray) -> list[int]:
    """Return which of the chosen records begin another segment than the one before."""
    return (np.flatnonzero(np.diff(np.searchsorted(traces.breaks, chosen, side="right"))) + 1).tolist()


def _record_glyph(colour: str, *, original: bool) -> str:
    """Return a dot; if colours do not distinguish data sets, that of the original is large and translucent."""
    size = 'r="5"' if colour != colours.GROUND else 'r="6" fill-opacity="0.5"' if original else 'r="4"'
    return _glyph(f'<circle cx="8" cy="8" {size} fill="{colour}"/>')


def poi_layers(pairs: Pairs, projection: Projection, *, attack: PoiRetrieval) -> list[Layer]:
    """Pack the points of interest of the original, and those still found, no longer found, and falsely found."""
    before, (points, offsets), nearest = attack.match(pairs)
    matched, first = np.unique(nearest[nearest >= 0], return_index=True)
    hits, false = np.sort(np.flatnonzero(nearest >= 0)[first]), np.flatnonzero(nearest < 0)
    shown = representative(before.points, MOST_POIS)
    missed = shown[~np.isin(shown, matched)]

    def protected(kind: str, chosen: np.ndarray) -> Layer:
        drawn = chosen[representative(points[chosen], MOST_POIS)]
        located = _Located(points[drawn], numbers_of(drawn, offsets), _NO_TIMES)
        return _poi_layer(kind, pairs.protected, projection, located, total=len(chosen))

    return [
        found_poi_layer("original", pairs.original, before, projection),
        protected("hit", hits),
        _stay_layer("missed", pairs.original, before, missed, projection, total=len(before) - len(matched)),
        protected("false", false),
    ]


def found_poi_layer(kind: str, traces: Traces, pois: Pois, projection: Projection) -> Layer:
    """Pack the points of interest of a data set; `kind` is original, true or unknown."""
    return _stay_layer(kind, traces, pois, representative(pois.points, MOST_POIS), projection, total=len(pois))


def _glyph(drawing: str) -> str:
    return f'<svg class="promesse-glyph" viewBox="0 0 16 16" aria-hidden="true">{drawing}</svg>'


def _stroke(path: str, colour: str) -> str:
    """Return an open path with an outline that separates it from what lies below."""
    return (
        f'<path class="promesse-outline" d="{path}" fill="none" stroke-width="4.5" stroke-linecap="round"/>'
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-linecap="round"/>'
    )


def _fill(path: str, colour: str) -> str:
    return f'<path class="promesse-outline" d="{path}" fill="{colour}" stroke-width="1"/>'


_HEAT = _glyph(
    f'<circle cx="8" cy="8" r="7" fill="{colours.HEAT[0]}" opacity="0.5"/><circle cx="8" cy="8" r="4" '
    f'fill="{colours.HEAT[2]}"/>'
)


class _Located(NamedTuple):
    """Points of interest: kernel coordinates, numbers of their traces, and arrivals and departures (or none)."""

    points: np.ndarray
    numbers: np.ndarray
    times: np.ndarray


class _Symbol(NamedTuple):
    """How one kind of point of interest is drawn; a higher rank is drawn above a lower one."""

    name: str
    drawing: str
    size: int
    rank: int


_CIRCLE = _stroke("M8 1a7 7 0 1 0 .01 0z", colours.ORIGINAL)
_SYMBOLS = {
    "original": _Symbol("Stays (POIs) in the original", _CIRCLE, 16, 0),
    **dict.fromkeys(("true", "unknown"), _Symbol("Stays (POIs)", _CIRCLE, 16, 0)),
    "hit": _Symbol("Hit, still found", _fill("M8 0 16 8 8 16 0 8z", colours.HIT), 16, 20_000),
    "missed": _Symbol("Missed, no longer found", _stroke("M4 4 12 12M12 4 4 12", colours.MISSED), 16, 10_000),
    "false": _Symbol("False, not in the original", _fill("M8 1 15.5 14 .5 14z", colours.FALSE), 11, -10_000),
}


def _stay_layer(
    kind: str, traces: Traces, pois: Pois, chosen: np.ndarray, projection: Projection, *, total: int
) -> Layer:
    times = np.stack((traces.times[pois.starts[chosen]], traces.times[pois.ends[chosen] - 1]))
    return _poi_layer(kind, traces, projection, _Located(pois.points[chosen], pois.traces[chosen], times), total=total)


def _poi_layer(kind: str, traces: Traces, projection: Projection, located: _Located, *, total: int) -> Layer:
    """Pack points of interest."""
    points, numbers, times = located
    symbol, places = _SYMBOLS[kind], projection.coordinates(points, traces, numbers)
    glyph = _glyph(symbol.drawing)
    data = _pack(traces, projection, numbers, places, *times)
    size = symbol.size if len(points) <= _MANY_POIS else 2 * symbol.size // 3
    data |= {
        "title": symbol.name.replace("Stays (POIs)", "Stay (POI)"),
        "glyph": glyph,
        "size": size,
        "rank": symbol.rank,
    }
    return Layer("pois", f"{symbol.name}: {total:,}{_drawn(total, len(points))}", glyph, places, data)


def _pack(
    traces: Traces,
    projection: Projection,
    numbers: np.ndarray,
    places: np.ndarray,
    times: np.ndarray,
    ends: np.ndarray,
    *,
    named: bool = True,
) -> dict[str, Any]:
    """Pack columns as differences of whole numbers, which are short as text; users by ascending trace number."""
    used, counts = np.unique(numbers, return_counts=True)
    return packed(places, projection) | {
        "users": [] if traces.names.user is None else _names(traces, used, projection, named=named),
        "counts": counts.tolist(),
        "times": _differences(times // 10**9),
        "ends": _differences(ends // 10**9),
        "zone": map_zone(traces),
    }


def packed(places: np.ndarray, projection: Projection) -> dict[str, Any]:
    """Pack coordinates on the map as differences of whole numbers; a unit is 1 / `scale`: 11 cm, or 1 cm if flat."""
    scale = 100 if projection.flat else 1_000_000
    x, y = (_differences(np.rint(axis * scale).astype(np.int64)) for axis in places.T)
    return {"scale": scale, "x": x, "y": y}


def _differences(values: np.ndarray) -> list[int]:
    return np.diff(values, prepend=0).tolist()


def _names(traces: Traces, used: np.ndarray, projection: Projection, *, named: bool) -> list[str]:
    """Return the names of users, or only numbers; they must differ because the slider identifies users by them."""
    texts = list(map(str, traces.users.take(used).tolist()))
    numbered = [f"trace {projection.numbers[text]:,}" for text in texts]
    return [
        number if not named else text if text == shortened(text) else f"{shortened(text)} ({number})"
        for text, number in zip(texts, numbered, strict=True)
    ]


def _drawn(total: int, drawn: int) -> str:
    return "" if drawn == total else f" ({drawn:,} drawn)"


def bounds_of(layers: Iterable[Layer]) -> tuple[np.ndarray | None, bool]:
    """Return the lower and upper corner of the view, shape (2, 2), and whether a few records are far outside of it.

    If a few records are far from all others, the view is that of the central 99 %.
    """
    filled = [layer.places for layer in layers if len(layer.places)]
    if not filled:
        return None, False
    return _view(np.concatenate(filled))


def _view(places: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the corners of the view of some places, at least one, and whether a few of them are far outside."""
    corners = np.stack((places.min(axis=0), places.max(axis=0)))
    core = np.quantile(places, (0.005, 0.995), axis=0)
    size, core_size = np.ptp(corners, axis=0).max(), np.ptp(core, axis=0).max()
    far = bool(len(places) >= 200 and size > 4 * core_size > 0)
    return (core if far else corners), far


def map_zone(traces: Traces) -> str:
    """Return the time zone of a map: that of the data, UTC if browsers do not know it, or "" without a zone."""
    zone = zone_name(traces)
    return zone if not zone or _OFFSET.fullmatch(zone) or zone in _named_zones() else "UTC"


@cache
def _named_zones() -> set[str]:
    return available_timezones() - {"localtime", "posixrules"}  # names of files on this machine
