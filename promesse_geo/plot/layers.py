"""What the layers of a map hold: records and points of interest, thinned and packed for the browser."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from promesse_geo.messages import counted
from promesse_geo.metrics import PoiRetrieval
from promesse_geo.plot import colours
from promesse_geo.plot.choice import map_zone
from promesse_geo.plot.ground import Ground, numbers_of, thinned
from promesse_geo.plot.tables import shortened
from promesse_geo.stays import Pois
from promesse_geo.traces.pairs import Pairs
from promesse_geo.traces.traces import Traces

MOST_POIS = 1000
"""Points of interest drawn in a layer."""

_MANY_POIS = 200  # from more on they are drawn smaller


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of a map.

    Parameters
    ----------
    function : {"records", "pois"}
        Which of our functions in the browser draws it.
    name : str
        What the legend says, with the number of all and of those drawn.
    glyph : str
        The sign of the layer, as SVG.
    places : numpy.ndarray, shape (n, 2)
        What is drawn.
    data : dict
        The same for the browser.
    """

    function: str
    name: str
    glyph: str
    places: np.ndarray
    data: dict[str, Any]

    @property
    def label(self) -> str:
        """The sign and the name, for the legend."""
        return f"{self.glyph} {self.name}"


def record_layer(traces: Traces, ground: Ground, *, most: int, kind: str) -> Layer:
    """Pack the records of one data set, `kind` being "Original" or "Protected"."""
    chosen = thinned(traces.records, most)
    numbers = numbers_of(chosen, traces.offsets)
    places = ground.places(traces.points[chosen], traces, numbers)
    original = kind == "Original"
    colour = colours.ORIGINAL if original else colours.PROTECTED
    data = _packed(traces, ground, numbers, places, traces.times[chosen], _NO_TIMES[1])
    data |= {
        "title": f"{kind} record",
        "colour": colour,
        "radius": (2 if len(chosen) > 5000 else 3) + original,
        "width": 6 if original else 1.5,  # a broad band, which shows on both sides of the protected path
        "shade": 0.3 if original else 0.7,
        "opacity": 0.45 if original and len(chosen) > 100 else 0.9,
        "lines": len(chosen) == traces.records,
        "around": 0 if ground.flat else 360,
    }
    name = f"{kind}: {_drawn(traces.records, len(chosen), 'record')}"
    return Layer("records", name, _glyph(f'<circle cx="8" cy="8" r="5" fill="{colour}"/>'), places, data)


def poi_layers(pairs: Pairs, ground: Ground, *, attack: PoiRetrieval) -> list[Layer]:
    """Pack the original points of interest, and which are still found, no longer found, and found for nothing."""
    before, (points, offsets), nearest = attack.match(pairs)
    found, first = np.unique(nearest[nearest >= 0], return_index=True)
    hits, false = np.sort(np.flatnonzero(nearest >= 0)[first]), np.flatnonzero(nearest < 0)
    shown = thinned(len(before), MOST_POIS)
    missed = shown[~np.isin(shown, found)]

    def after(kind: str, chosen: np.ndarray) -> Layer:
        some = chosen[thinned(len(chosen), MOST_POIS)]
        numbers = numbers_of(some, offsets)
        return _poi_layer(kind, pairs.protected, ground, points[some], numbers, _NO_TIMES, total=len(chosen))

    return [
        _stay_layer("before", pairs.original, before, shown, ground, total=len(before)),
        after("hit", hits),
        _stay_layer("missed", pairs.original, before, missed, ground, total=len(before) - len(found)),
        after("false", false),
    ]


def original_poi_layer(traces: Traces, pois: Pois, ground: Ground) -> Layer:
    """Pack the points of interest of a data set alone."""
    return _stay_layer("before", traces, pois, thinned(len(pois), MOST_POIS), ground, total=len(pois))


def _glyph(drawing: str) -> str:
    return f'<svg class="promesse-glyph" viewBox="0 0 16 16" aria-hidden="true">{drawing}</svg>'


def _line(path: str, colour: str) -> str:
    """An open path with an edge that parts it from what lies below."""
    return (
        f'<path class="promesse-edge" d="{path}" fill="none" stroke-width="4.5" stroke-linecap="round"/>'
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-linecap="round"/>'
    )


def _solid(path: str, colour: str) -> str:
    return f'<path class="promesse-edge" d="{path}" fill="{colour}" stroke-width="1"/>'


class _Sign(NamedTuple):
    """How one kind of point of interest is drawn: what matters most on top."""

    name: str
    drawing: str
    size: int
    rank: int


_SIGNS = {
    "before": _Sign("POIs found in the original", _line("M8 1a7 7 0 1 0 .01 0z", colours.ORIGINAL), 16, 0),
    "hit": _Sign("Hit, still found", _solid("M8 0 16 8 8 16 0 8z", colours.HIT), 16, 20_000),
    "missed": _Sign("Missed, no longer found", _line("M4 4 12 12M12 4 4 12", colours.MISSED), 16, 10_000),
    "false": _Sign("False, found where none was", _solid("M8 1 15.5 14 .5 14z", colours.FALSE), 11, -10_000),
}


_NO_TIMES = np.empty((2, 0), np.int64)


def _stay_layer(kind: str, traces: Traces, pois: Pois, chosen: np.ndarray, ground: Ground, *, total: int) -> Layer:
    times = np.stack((traces.times[pois.starts[chosen]], traces.times[pois.ends[chosen] - 1]))
    return _poi_layer(kind, traces, ground, pois.points[chosen], pois.traces[chosen], times, total=total)


def _poi_layer(
    kind: str,
    traces: Traces,
    ground: Ground,
    points: np.ndarray,
    numbers: np.ndarray,
    times: np.ndarray,
    *,
    total: int,
) -> Layer:
    """Pack points of interest of traces with these numbers; times are those of arrival and departure, or none."""
    sign, places = _SIGNS[kind], ground.places(points, traces, numbers)
    glyph = _glyph(sign.drawing)
    data = _packed(traces, ground, numbers, places, *times)
    size = sign.size if len(points) <= _MANY_POIS else 2 * sign.size // 3
    data |= {"title": sign.name.replace("POIs", "POI"), "glyph": glyph, "size": size, "rank": sign.rank}
    count = f"{total:,}" if total == len(points) else f"{total:,} ({len(points):,} drawn)"
    return Layer("pois", f"{sign.name}: {count}", glyph, places, data)


def _packed(
    traces: Traces, ground: Ground, numbers: np.ndarray, places: np.ndarray, times: np.ndarray, ends: np.ndarray
) -> dict[str, Any]:
    """Steps from one to the next as whole numbers, which take few letters; users by ascending trace number."""
    scale = 100 if ground.flat else 1_000_000
    used, counts = np.unique(numbers, return_counts=True)
    x, y = (_steps(np.rint(axis * scale).astype(np.int64)) for axis in places.T)
    return {
        "users": [] if traces.names.user is None else _names(traces, used, ground),
        "counts": counts.tolist(),
        "scale": scale,
        "x": x,
        "y": y,
        "times": _steps(times // 10**9),
        "ends": _steps(ends // 10**9),
        "zone": map_zone(traces),
    }


def _steps(values: np.ndarray) -> list[int]:
    return np.diff(values, prepend=0).tolist()


def _names(traces: Traces, used: np.ndarray, ground: Ground) -> list[str]:
    """What users are called: each otherwise, for the slider knows them by these names."""
    texts = [str(user) for user in traces.users.take(used).tolist()]
    shorter = [shortened(text) for text in texts]
    return [
        name if name == text else f"{name} (trace {ground.numbers[text]:,})"
        for name, text in zip(shorter, texts, strict=True)
    ]


def _drawn(total: int, drawn: int, noun: str) -> str:
    text = counted(total, noun)
    return text if drawn == total else f"{text} ({drawn:,} drawn)"


def bounds_of(layers: Iterable[Layer]) -> tuple[np.ndarray | None, bool]:
    """Return the corners (low x and y, high x and y) to look at, shape (2, 2), and whether records lie beyond.

    A few records far from all others would make everything else a dot: then the middle 99 % of them are looked at.
    """
    some = [layer.places for layer in layers if len(layer.places)]
    if not some:
        return None, False
    places = np.concatenate(some)
    corners = np.stack((places.min(axis=0), places.max(axis=0)))
    core = np.quantile(places, (0.005, 0.995), axis=0)
    whole, middle = np.ptp(corners, axis=0).max(), np.ptp(core, axis=0).max()
    far = bool(len(places) >= 200 and whole > 4 * middle > 0)
    return (core if far else corners), far
