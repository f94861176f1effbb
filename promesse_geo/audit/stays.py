"""Stays of the original that an attack retrieves from protected data, with or without the users."""

import numpy as np

from promesse_geo.audit.comparison import Comparison
from promesse_geo.audit.matching import match_anywhere
from promesse_geo.metrics import AdaptivePoiRetrieval, PoiRetrieval
from promesse_geo.traces.space import Space

_ASIDE = 5  # times the threshold by which places are moved to see how many match by chance


def retrieve_stays(comparison: Comparison, *, noisy: bool) -> tuple[int, int, str]:
    """Return the number of original stays, of those that an attack retrieves, and its score in words.

    If users match, a place found in the data of a user retrieves stays of that user. Otherwise a place found in any
    trace retrieves stays of any user, and the number that chance gives is subtracted: that of places moved aside.

    Parameters
    ----------
    comparison : Comparison
        Original and protected data.
    noisy : bool
        Whether the attack averages noise.
    """
    attack = AdaptivePoiRetrieval(kind="geo-indistinguishability") if noisy else PoiRetrieval()
    if comparison.by_user:
        detail = attack.compare(comparison.pairs)
        stays, retrieved = int(detail.original_pois.sum()), int(detail.matched.sum())
        return stays, retrieved, f"F-score {attack.value(detail):.1f} %"
    places = attack.places(comparison.original, comparison.moved)
    stays = len(places[0])
    if not stays or not len(places[1]):
        return stays, 0, "of anybody"
    space, reach = comparison.original.space, attack.threshold
    found = _count(space, *places, reach)
    chance = float(np.mean([_count(space, places[0], moved, reach) for moved in _aside(space, places[1], reach)]))
    retrieved = round(stays * max(found - chance, 0.0) / max(stays - chance, 1.0))
    return stays, min(retrieved, found), f"of anybody; {chance:,.0f} more match by chance"


def _count(space: Space, original: np.ndarray, published: np.ndarray, reach: float) -> int:
    """Count the original places near a published one, each of which retrieves one at most."""
    counts = [
        (
            match_anywhere(others, places, np.zeros(len(places), np.int8), np.array([reach]), scale=space.scale) == 2
        ).sum()
        for places, others in ((original, published), (published, original))
    ]
    return int(min(counts))


def _aside(space: Space, points: np.ndarray, reach: float) -> list[np.ndarray]:
    """Return points moved by some times the reach in four directions."""
    axes = np.eye(space.dimension)[:2]
    shifts = [np.cross(points, axis) if space.curvature else np.broadcast_to(axis, points.shape) for axis in axes]
    lengths = [np.linalg.norm(shift, axis=1, keepdims=True) for shift in shifts]
    steps = [_ASIDE * reach / space.scale * shift / length for shift, length in zip(shifts, lengths, strict=True)]
    return [points + sign * step for step in steps for sign in (-1, 1)]
