"""Made-up traces for hypothesis: walks with stays, jumps and returns, anywhere on the globe or in a plane."""

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from promesse_geo import Traces

texts_of_seeds = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(
    lambda text: text.strip().lower() not in ("", "nan")
)
"""Text that may be a seed, which blanks and a missing number are not."""

EPSILONS = (0.05, 1.0, 25.0, 200.0, 5_000.0)
SECOND = 1_000_000_000

# Longitude and latitude, degrees: where walks on the globe begin.
PLACES = ((-122.4, 37.7), (0.0, 0.0), (-180.0, -45.0), (179.99999, 10.0), (25.0, 69.0), (77.0, 89.99999), (12.0, -90.0))

# Easting and northing, metres: where walks in the plane begin.
ORIGINS = ((0.0, 0.0), (550_000.0, 4_180_000.0), (-3_000.25, 12.5))


@dataclass(frozen=True)
class Walk:
    """One trace in the coordinates of its CRS, and an epsilon that suits its steps."""

    x: np.ndarray
    y: np.ndarray
    times: np.ndarray
    epsilon: float
    space: str

    @property
    def crs(self) -> str:
        return "EPSG:4326" if self.space == "sphere" else "EPSG:32610"

    def traces(self) -> Traces:
        return gathered([self])


def gathered(walks: list[Walk]) -> Traces:
    """Walks of one space as Traces, of users 0, 1, 2 …"""
    return Traces.from_arrays(
        np.concatenate([walk.x for walk in walks]),
        np.concatenate([walk.y for walk in walks]),
        times=np.concatenate([walk.times for walk in walks]),
        users=range(len(walks)),
        counts=np.array([len(walk.x) for walk in walks]),
        crs=walks[0].crs,
        space=walks[0].space,
    )


def moved(x: float, y: float, *, metres: float, bearing: float, space: str) -> tuple[float, float]:
    """Go some metres from a point, in a direction given in radians from north."""
    if space == "plane":
        return x + metres * math.sin(bearing), y + metres * math.cos(bearing)
    up, arc = math.radians(y), metres / 6_371_008.8
    north = math.sin(up) * math.cos(arc) + math.cos(up) * math.sin(arc) * math.cos(bearing)
    latitude = math.asin(max(-1.0, min(1.0, north)))
    turned = math.atan2(math.sin(bearing) * math.sin(arc) * math.cos(up), math.cos(arc) - math.sin(up) * north)
    return (x + math.degrees(turned) + 180.0) % 360.0 - 180.0, math.degrees(latitude)


spaces = st.sampled_from(("sphere", "plane"))
ratios = st.floats(0.01, 3.0)
turns = st.floats(-math.pi, math.pi)

# What a walker does next: (kind, how far in epsilons or how often, turn in radians).
moves = st.one_of(
    st.tuples(st.just("step"), ratios, turns),
    st.tuples(st.just("step"), ratios, st.floats(-0.3, 0.3)),
    st.tuples(st.just("step"), st.sampled_from((0.5, 1.0, 2.0, 10.0)), st.sampled_from((0.0, math.pi))),
    st.tuples(st.just("stay"), st.integers(1, 4), st.just(0.0)),
    st.tuples(st.just("jitter"), st.integers(2, 6), turns),
    st.tuples(st.just("jump"), st.floats(5.0, 60.0), turns),
    st.tuples(st.just("return"), st.integers(1, 30), st.just(0.0)),
)
pauses = st.one_of(
    st.integers(1, 90).map(lambda seconds: seconds * SECOND),
    st.integers(0, 10 * SECOND),
    st.sampled_from((0, 1, 3_600 * SECOND)),
)


@st.composite
def walks(draw: st.DrawFn, *, space: str | None = None, epsilon: float | None = None) -> Walk:
    """Random walks with stays, repeated points, equal times, long jumps, ways out and back; or a single record."""
    space = space or draw(spaces)
    epsilon = epsilon or draw(st.sampled_from(EPSILONS))
    bearing = draw(turns)
    way = [draw(st.sampled_from(PLACES if space == "sphere" else ORIGINS))]
    times = [draw(st.sampled_from((0, 1_211_018_404 * SECOND, -86_400 * SECOND + 1)))]
    for (kind, amount, turn), pause in draw(st.lists(st.tuples(moves, pauses), max_size=25)):
        bearing += turn
        if kind == "stay":
            way += [way[-1]] * amount
        elif kind == "jitter":
            for number in range(amount):
                around = bearing + 2.4 * number
                way.append(moved(*way[-1], metres=0.2 * epsilon, bearing=around, space=space))
        elif kind == "return":
            way += way[-2 : -2 - amount : -1]
        else:
            way.append(moved(*way[-1], metres=amount * epsilon, bearing=bearing, space=space))
        times += [times[-1] + pause * number for number in range(1, len(way) - len(times) + 1)]
    x, y = np.array(way).T
    return Walk(x, y, np.array(times), epsilon, space)


@st.composite
def crowds(draw: st.DrawFn) -> list[Walk]:
    """Up to a dozen walks in one space, made for one epsilon."""
    space, epsilon = draw(spaces), draw(st.sampled_from(EPSILONS))
    return draw(st.lists(walks(space=space, epsilon=epsilon), min_size=1, max_size=12))
