"""POIs of the original data that an attacker finds in the protected data."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import geopandas as gpd
import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from promesse_geo import threads
from promesse_geo.kernels import poi_matching
from promesse_geo.messages import invalid
from promesse_geo.metrics.base import Metric, score
from promesse_geo.stays import Pois, find_pois
from promesse_geo.stays.stays import checked_stay
from promesse_geo.traces.columns import Name, find_column
from promesse_geo.traces.known_columns import USERS
from promesse_geo.traces.pairs import Pairs, align
from promesse_geo.traces.traces import Traces
from promesse_geo.traces.values import check_geometry
from promesse_geo.validation import check_duration_as_text, check_number, set_fields

Located: TypeAlias = tuple[np.ndarray, np.ndarray]
"""POIs in kernel coordinates, shape (points, 3) or (points, 2), and the offsets of each trace, shape (traces + 1,)."""


@dataclass(frozen=True)
class PoiRetrieval(Metric):
    """The paper's attack: POIs of a user that are found in the protected data (section V-B).

    POIs are stays (see `pois`) in the original and in the protected trace of each user. Each protected POI retrieves
    the nearest original one within `threshold`. An original POI that is retrieved twice counts once.

    The detail has one row per original trace: the number of POIs of the original and of the protected trace
    (`original_pois`, `protected_pois`), the number of original ones that are `matched`, `precision` = matched /
    protected, `recall` = matched / original (NaN without any), and their harmonic mean `fscore`, 0 without matches. A
    trace that the mechanism dropped has recall 0. The value is the mean of `fscore` in percent over the traces with at
    least one original POI, as in Table II: 0 is best for privacy.

    Promesse publishes points exactly ε apart. If the diameter of the attack equals ε, rounding decides whether two such
    points are a stay, which changes the value by some percent for slow traces. Compare with a diameter on either side
    of ε as well.

    Parameters
    ----------
    diameter : float
        Greatest distance in metres between any two records of a stay.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of a stay.
    threshold : float
        Greatest distance in metres at which an original POI is retrieved.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    References
    ----------
    Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data with
    High Utility. TrustCom 2015, section V-B and Table II.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> metric = pg.PoiRetrieval()
    >>> metric.measure(city, city), metric.measure(city, city.promesse.smooth(200))
    (100.0, 0.0)
    """

    diameter: float = 200.0
    duration: Any = "15min"
    threshold: float = 100.0
    unit: ClassVar[str] = "%"
    bounds: ClassVar[tuple[float, float]] = (0, 100)
    is_per_user: ClassVar[bool] = True
    undefined: ClassVar[str] = "no original trace has a POI"
    label: ClassVar[str] = "POI retrieval, F-score"
    meaning: ClassVar[str] = "lower is more private"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        coerce_stay(self)
        object.__setattr__(self, "threshold", _threshold(self.threshold, owner=type(self).__name__))

    def _index(self, original: Traces) -> Pois:
        return find_stays(self, original)

    def _detail(self, pairs: Pairs, index: Pois) -> pd.DataFrame:
        before = index.points, index.offsets(len(pairs.original))
        return compare_pois(pairs, before, self._attack(pairs.protected), threshold=self.threshold)

    def _attack(self, protected: Traces) -> Located:
        """Find POIs in protected data: kernel coordinates, and the offsets of each trace."""
        stays = find_stays(self, protected)
        return stays.points, stays.offsets(len(protected))

    def match(self, pairs: Pairs) -> tuple[Pois, Located, np.ndarray]:
        """Find POIs in original and protected data and match them.

        Parameters
        ----------
        pairs : Pairs
            Matched traces.

        Returns
        -------
        Pois
            POIs of the original.
        tuple of numpy.ndarray
            POIs of the protected data in kernel coordinates, float64 of shape (points, 3) or (points, 2), and the
            offsets of each trace, int64 of shape (traces + 1,).
        numpy.ndarray of int64, shape (points,)
            The number of the original POI that each protected one retrieves; −1 for none.
        """
        before, after = self._index(pairs.original), self._attack(pairs.protected)
        places = before.points, before.offsets(len(pairs.original))
        return before, after, match_nearest_pois(pairs, places, after, threshold=self.threshold)

    def places(self, original: Traces, protected: Traces) -> tuple[np.ndarray, np.ndarray]:
        """Find POIs of all users in original and protected data.

        Parameters
        ----------
        original, protected : Traces
            The data, in one space.

        Returns
        -------
        tuple of two numpy.ndarray of float64, shape (pois, 3) or (pois, 2)
            POIs in kernel coordinates.
        """
        return self._index(original).points, self._attack(protected)[0]

    def value(self, detail: pd.DataFrame) -> float:
        """Return the mean F-score in percent of the traces with original POIs; NaN without any."""
        return 100 * float(detail.fscore[detail.original_pois > 0].mean())


def coerce_stay(metric: Any) -> None:
    """Validate diameter and duration of a frozen metric and store them as its repr shows them."""
    owner = type(metric).__name__
    metres, _ = checked_stay(metric.diameter, metric.duration, owner=owner)
    duration = check_duration_as_text(metric.duration, name="duration", owner=owner)
    set_fields(metric, {"diameter": metres, "duration": duration})


def find_stays(metric: Any, traces: Traces) -> Pois:
    """Find stays with the diameter and duration of a metric."""
    metres, nanoseconds = checked_stay(metric.diameter, metric.duration, owner=type(metric).__name__)
    return find_pois(traces, diameter=metres, duration=nanoseconds)


def match_pois(
    original_pois: gpd.GeoDataFrame, protected_pois: gpd.GeoDataFrame, *, threshold: float = 100, user: Name = ...
) -> pd.DataFrame:
    """Compare POIs by user.

    The time is proportional to the number of pairs of POIs of each user: some seconds for 40,000 of one user in each
    frame.

    Parameters
    ----------
    original_pois, protected_pois : geopandas.GeoDataFrame
        One row per POI, with its user, such as `pois` returns. They may differ in CRS.
    threshold : float
        Greatest distance in metres at which an original POI is retrieved.
    user : column name, None or ...
        Column of the user; None if all POIs belong to one user.

    Returns
    -------
    pandas.DataFrame
        One row per user of either frame, as in the detail of `PoiRetrieval`. If the users of one frame are text and
        those of the other integers, all are text where necessary.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a frame has no points, no CRS or no column of the user, or a point has no coordinates in the CRS of
        `original_pois`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=1, recorder="phone")
    >>> stays = city.promesse.pois()
    >>> bool((pg.match_pois(stays, stays.iloc[:0]).recall == 0).all())
    True
    """
    metres = _threshold(threshold, owner="match_pois")
    before = _as_traces(original_pois, user=user, name="original_pois")
    after = _as_traces(protected_pois, user=user, name="protected_pois")
    pairs = align(before, after)
    after_pois = pairs.protected.points, pairs.protected.offsets
    table = compare_pois(pairs, (before.points, before.offsets), after_pois, threshold=metres)
    alone = ~after.users.isin(pairs.protected.users)
    if alone.any():
        counts = np.zeros(int(alone.sum()), np.int64)
        users = after.users[alone].rename(table.index.name)
        if len(before) and infer_dtype(users) != infer_dtype(table.index):
            users, table = users.astype(str), table.set_axis(table.index.astype(str))
        table = pd.concat((table, _scores(counts, after.counts[alone], counts, users=users))).sort_index()
    return table


def _threshold(value: Any, *, owner: str) -> float:
    return check_number(value, name="threshold", owner=owner, unit="metres", high=1e6)


def _as_traces(pois: gpd.GeoDataFrame, *, user: Name, name: str) -> Traces:
    """Convert POIs to traces with equal times, in the order of the rows."""
    if not isinstance(pois, gpd.GeoDataFrame):
        raise TypeError(invalid(name, "match_pois", "a GeoDataFrame of points such as pg.pois(gdf) returns", pois))
    check_geometry(pois)
    columns = [column for column in pois.columns if column != pois.active_geometry_name]
    frame: dict[Hashable, Any] = {}
    if user is not None:
        user = find_column(columns, user, role="user", known=USERS)
        frame[user] = pois[user].array
    time = next(name for name in ("time", "arrival") if name not in frame)
    frame[time] = np.zeros(len(pois), "M8[ns]")
    points = gpd.GeoDataFrame(frame, geometry=pois.geometry.array, crs=pois.crs)
    try:
        return Traces.from_frame(points, user=user, time=time)
    except ValueError as error:  # the remedy in its message is for records
        words = str(error).replace("with pg.Traces.from_frame(gdf, errors='skip')", f"from {name}")
        raise ValueError(words) from None


def compare_pois(pairs: Pairs, before: Located, after: Located, *, threshold: float) -> pd.DataFrame:
    """Compare POIs, given with the offsets of each original and each protected trace."""
    (points, offsets), (_, protected_offsets) = before, after
    nearest = match_nearest_pois(pairs, before, after, threshold=threshold)
    retrieved = np.zeros(len(points) + 1, np.int64)
    retrieved[1 + np.unique(nearest[nearest >= 0])] = 1
    matched = np.diff(np.cumsum(retrieved)[offsets])
    counts = np.zeros(len(offsets) - 1, np.int64)
    counts[pairs.originals] = np.diff(protected_offsets)
    name = pairs.original.names.user
    users = pairs.original.users.rename("user" if name is None else name)
    return _scores(np.diff(offsets), counts, matched, users=users)


def match_nearest_pois(pairs: Pairs, before: Located, after: Located, *, threshold: float | None) -> np.ndarray:
    """Return the number of the nearest original POI of each protected one, within the threshold if any; −1 for none."""
    (points, offsets), (candidates, protected_offsets) = before, after
    nearest = np.empty(len(candidates), np.int64)
    limit = np.inf if threshold is None else pairs.original.space.chord(threshold) ** 2
    threads.run(
        lambda first, last: poi_matching.match_nearest(
            points, offsets, candidates, protected_offsets, pairs.originals, limit, first, last, nearest
        ),
        threads.fair(np.diff(protected_offsets)),
    )
    return nearest


def _scores(original: np.ndarray, protected: np.ndarray, matched: np.ndarray, *, users: pd.Index) -> pd.DataFrame:
    columns = {"original_pois": original, "protected_pois": protected, "matched": matched}
    return pd.DataFrame(columns | score(original, protected, matched), index=users)
