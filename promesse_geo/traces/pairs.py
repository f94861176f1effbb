"""Pairs of original and protected traces of the same name."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pyproj import Transformer
from pyproj.exceptions import ProjError

from promesse_geo.messages import counted
from promesse_geo.traces.traces import Traces


@dataclass(frozen=True, eq=False)
class Pairs:
    """Protected traces beside the original ones of their users.

    Parameters
    ----------
    original : Traces
        All original traces.
    protected : Traces
        The protected traces whose users the original has, in the original's space.
    originals : numpy.ndarray of int64, shape (protected traces,)
        The position of each protected trace's original.
    """

    original: Traces
    protected: Traces
    originals: np.ndarray


def align(original: Traces, protected: Traces) -> Pairs:
    """Pair protected traces with the original ones of their users, in the original's space.

    Parameters
    ----------
    original, protected : Traces
        They may differ in CRS, in the order of the input, and in whether users are text or integers.

    Returns
    -------
    Pairs

    Raises
    ------
    ValueError
        If only one of them has naive times, or protected points have no place in the original's CRS.
    """
    _check_zones(original, protected)
    numbers = _as_text(original.users).get_indexer(_as_text(protected.users))
    kept = numbers >= 0
    known = protected if kept.all() else protected.select(np.repeat(kept, protected.counts))
    return Pairs(original, in_space_of(original, known), numbers[kept])


def _check_zones(original: Traces, protected: Traces) -> None:
    """Raise ValueError if only one of two data sets has naive times."""
    zoned = [traces.time_format.zone is not None for traces in (original, protected)]
    if original.records and protected.records and zoned[0] != zoned[1]:
        with_zone, without = ("original", "protected") if zoned[0] else ("protected", "original")
        raise ValueError(
            f"The {with_zone} times have a time zone and the {without} ones have none, so they cannot be compared. "
            "Compare the protected data with what was protected: the output of prepare() (promesse-geo prepare). Else "
            "give both a zone, or none."
        )


def _as_text(users: pd.Index) -> pd.Index:
    return pd.Index([str(user) for user in users.tolist()], dtype=object)


def in_space_of(original: Traces, protected: Traces) -> Traces:
    """Return protected traces in the space of the original.

    Raises
    ------
    ValueError
        If only one of them has naive times, or a point has no place there.
    """
    _check_zones(original, protected)
    if protected.space == original.space:
        return protected
    x, y = protected.coordinates()
    if protected.space.crs != original.space.crs:
        try:
            change = Transformer.from_crs(protected.space.crs, original.space.crs, always_xy=True)
            x, y = change.transform(x, y)
        except ProjError:
            raise ValueError(
                "The CRS of the protected data cannot be converted to that of the original. Compare in one CRS."
            ) from None
    points = original.space.points(np.asarray(x), np.asarray(y))
    lost = int((~np.isfinite(points).all(axis=1)).sum())
    if lost:
        raise ValueError(
            f"{counted(lost, 'published point')} of {len(points):,} cannot be placed in the CRS of the original "
            "data. Compare in one CRS, for example with gdf.to_crs."
        )
    return replace(protected, points=points, space=original.space)
