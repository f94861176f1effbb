"""Where the places of a map stand, and which of many are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from pyproj import Transformer
from pyproj.exceptions import ProjError

from promesse_geo.traces.space import Plane, Space
from promesse_geo.traces.traces import Traces


@dataclass(frozen=True, eq=False)
class Ground:
    """Where places stand on the map: longitude and latitude around a middle, or metres of a plane without a globe.

    What lies on another body stands at its longitude and latitude there. All that belongs to a user stands within
    180 degrees of the middle of their original trace, so that it stays together, and what is protected by what is
    original, even where a trace crosses the meridian opposite the middle of the map. Only who goes around the world or
    a pole stands within 180 degrees of the middle of the map; lines are broken at the meridian opposite.

    Parameters
    ----------
    space : Sphere or Plane
        The space of the points.
    transformer : pyproj.Transformer or None
        From the CRS to longitude and latitude on the Earth; None where there is no way.
    numbers : mapping of text to int
        The number of each user's trace in the original data, which tells users apart whose names are too long.
    middle : float
        The longitude in the middle of the map, so that data on both sides of the antimeridian stays together.
    middles : mapping of text to float
        The longitude in the middle of each user's trace; that of the map for who has none.
    """

    space: Space
    transformer: Transformer | None
    numbers: Mapping[str, int]
    middle: float = 0.0
    middles: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, original: Traces, protected: Traces | None, numbers: Mapping[str, int], *, most: int) -> "Ground":
        """Return the ground on which to draw traces, `most` records of each data set."""
        try:
            transformer = Transformer.from_crs(original.space.crs, "EPSG:4326", always_xy=True)
        except ProjError:
            transformer = None
        ground = cls(original.space, transformer, numbers)
        if ground.flat:
            return ground
        for traces in (protected, original):  # the middles of the original count
            if traces is not None and traces.records:
                ground = ground._amid(traces, thinned(traces.records, max(most, 10_000)))
        return ground

    def _amid(self, traces: Traces, chosen: np.ndarray) -> "Ground":
        """The same ground with the middles of these records, and of each trace."""
        numbers = numbers_of(chosen, traces.offsets)
        x = self.places(traces.points[chosen], traces, numbers)[:, 0]
        middle = float(np.degrees(np.angle(np.exp(1j * np.radians(x)).mean())))
        used, starts = np.unique(numbers, return_index=True)
        x = np.unwrap(x, period=360)  # on past 180 degrees; from one trace to the next it does not matter
        low, high = np.minimum.reduceat(x, starts), np.maximum.reduceat(x, starts)
        middles = np.where(high - low < 360, _beside(middle, (low + high) / 2), middle)
        users = map(str, traces.users.take(used).tolist())
        return replace(self, middle=middle, middles={**self.middles, **dict(zip(users, middles.tolist(), strict=True))})

    @property
    def flat(self) -> bool:
        """Whether the map is a plane."""
        return self.transformer is None and isinstance(self.space, Plane)

    def places(self, points: np.ndarray, traces: Traces, numbers: np.ndarray) -> np.ndarray:
        """Return x and y on the map, shape (n, 2), of points that belong to the traces with these numbers."""
        x, y = self.space.coordinates(points)
        if self.transformer is not None:
            x, y = self.transformer.transform(x, y)
        elif isinstance(self.space, Plane):
            return points
        else:
            x, y = self.space.to_base(x, y)
        middles = np.array([self.middles.get(str(user), self.middle) for user in traces.users.tolist()], float)
        return np.column_stack((_beside(middles[numbers], x), y))


def _beside(middle: np.ndarray | float, x: np.ndarray) -> np.ndarray:
    """Longitudes within 180 degrees of a middle."""
    return middle + (x - middle + 180) % 360 - 180


def numbers_of(positions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the number of the trace in which each position lies."""
    return np.searchsorted(offsets, positions, side="right") - 1


def thinned(count: int, most: int) -> np.ndarray:
    """Return positions of at most so many of `count` things, evenly spread, with the first and the last."""
    if count <= most:
        return np.arange(count)
    return np.linspace(0, count - 1, most).round().astype(np.int64)
