"""What an attacker still finds: the points of interest of the original data in the protected one."""

from dataclasses import dataclass
from typing import Any, ClassVar

import geopandas as gpd
import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from promesse_geo import threads
from promesse_geo.kernels import matching
from promesse_geo.messages import invalid
from promesse_geo.metrics.base import Metric
from promesse_geo.stays import Pois, find_pois
from promesse_geo.stays.stays import checked_stay, in_words
from promesse_geo.traces.columns import KNOWN_USERS, Name, check_geometry, find_column
from promesse_geo.traces.pairs import Pairs, align
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_number


@dataclass(frozen=True)
class PoiRetrieval(Metric):
    """The paper's attack: how many of a user's points of interest are found in the protected data (section V-B).

    Points of interest are stays (see `promesse_geo.stays`), in the original and in the protected trace of each user.
    Each protected one retrieves the nearest original one within `threshold`; what is retrieved twice counts once.

    The detail has one row per original trace: how many points of interest the original and the protected trace have,
    how many of the former are `matched`, `precision` = matched / protected, `recall` = matched / original (NaN
    without any) and their harmonic mean `fscore`, 0 where nothing is matched. A trace that the mechanism dropped has
    recall 0. The value is the mean of `fscore` in percent over the traces with at least one original point of
    interest, as in Table II: 0 is best.

    Promesse puts points exactly ε apart. Where the attack's diameter is that same ε, two such points are a stay or
    none by the last digit of a float, also in the F-score, by some percent where traces are slow: compare at a
    diameter on either side of ε as well.

    Parameters
    ----------
    diameter : float
        Greatest distance in metres between any two records of a stay.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of a stay.
    threshold : float
        Greatest distance in metres at which an original point of interest is retrieved.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of its range.

    References
    ----------
    Primault, Ben Mokhtar, Lauradoux, Brunie: Time Distortion Anonymization for the Publication of Mobility Data with
    High Utility. TrustCom 2015, section V-B and Table II.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2)
    >>> metric = pg.PoiRetrieval()
    >>> metric.measure(city, city), metric.measure(city, city.promesse.smooth(200))
    (100.0, 0.0)
    """

    diameter: float = 200.0
    duration: Any = "15min"
    threshold: float = 100.0
    unit: ClassVar[str] = "%"
    label: ClassVar[str] = "POI retrieval, F-score"

    def __post_init__(self) -> None:
        """Check the parameters."""
        settle_stay(self)
        threshold = _threshold(self.threshold, owner=type(self).__name__)
        object.__setattr__(self, "threshold", threshold)

    def _index(self, original: Traces) -> Pois:
        return stays_of(self, original)

    def _detail(self, pairs: Pairs, index: Pois) -> pd.DataFrame:
        before = index.points, index.offsets(len(pairs.original))
        return _compared(pairs, before, self._attack(pairs.protected), threshold=self.threshold)

    def _attack(self, protected: Traces) -> tuple[np.ndarray, np.ndarray]:
        """What is found in protected data: points, and where those of each trace begin."""
        found = stays_of(self, protected)
        return found.points, found.offsets(len(protected))

    def match(self, pairs: Pairs) -> tuple[Pois, tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Return what is found in the original and in the protected data, and which retrieves which.

        Parameters
        ----------
        pairs : Pairs
            Protected traces beside the original ones.

        Returns
        -------
        Pois
            Points of interest of the original.
        tuple of numpy.ndarray
            Points found in the protected data, in kernel coordinates, and where those of each trace begin.
        numpy.ndarray of int64, shape (points,)
            For each of these points the number of the original one that it retrieves, −1 without any.
        """
        before, after = self._index(pairs.original), self._attack(pairs.protected)
        places = before.points, before.offsets(len(pairs.original))
        return before, after, _nearest(pairs, places, after, self.threshold)

    def value(self, detail: pd.DataFrame) -> float:
        """Return the mean F-score in percent of the traces with original points of interest; NaN without any."""
        return 100 * float(detail.fscore[detail.original_pois > 0].mean())


def settle_stay(metric: Any) -> None:
    """Check the diameter and the duration of a frozen metric, and keep them as they are shown."""
    metres, nanoseconds = checked_stay(metric.diameter, metric.duration, owner=type(metric).__name__)
    object.__setattr__(metric, "diameter", metres)
    object.__setattr__(metric, "duration", in_words(nanoseconds))


def stays_of(metric: Any, traces: Traces) -> Pois:
    """Find the stays of a metric's diameter and duration."""
    metres, nanoseconds = checked_stay(metric.diameter, metric.duration, owner=type(metric).__name__)
    return find_pois(traces, diameter=metres, duration=nanoseconds)


def match_pois(
    original_pois: gpd.GeoDataFrame,
    protected_pois: gpd.GeoDataFrame,
    *,
    threshold: float = 100,
    user: Name = ...,
) -> pd.DataFrame:
    """Compare points of interest that were found already, user by user.

    Within each user every protected one meets every original one: twice as many take four times as long, 40,000 of
    one user's on both sides some seconds.

    Parameters
    ----------
    original_pois, protected_pois : geopandas.GeoDataFrame
        One row a point of interest, with its user; they may differ in CRS. Such frames come from
        `promesse_geo.stays` or from elsewhere.
    threshold : float
        Greatest distance in metres at which an original point of interest is retrieved.
    user : column name, None or ...
        Column of the user; None says that all are one user's.

    Returns
    -------
    pandas.DataFrame
        One row for each user of either frame, as in the detail of `PoiRetrieval`; where the users of one frame are text
        and those of the other integers, all are text if need be.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a frame has no points, no CRS or no column of the user, or a point has no place in the CRS of
        `original_pois`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2)
    >>> stays = city.promesse.pois()
    >>> bool((pg.match_pois(stays, stays.iloc[:0]).recall == 0).all())
    True
    """
    metres = _threshold(threshold, owner="match_pois")
    before = _as_traces(original_pois, user=user, name="original_pois")
    after = _as_traces(protected_pois, user=user, name="protected_pois")
    pairs = align(before, after)
    table = _compared(
        pairs, (before.points, before.offsets), (pairs.protected.points, pairs.protected.offsets), threshold=metres
    )
    alone = ~after.users.isin(pairs.protected.users)
    if alone.any():
        counts = np.zeros(int(alone.sum()), np.int64)
        users = after.users[alone].rename("user")
        if len(before) and infer_dtype(users) != infer_dtype(table.index):
            users, table = users.astype(str), table.set_axis(table.index.astype(str))
        table = pd.concat((table, _scores(counts, after.counts[alone], counts, users=users))).sort_index()
    return table


def _threshold(value: Any, *, owner: str) -> float:
    return check_number(value, name="threshold", owner=owner, unit="metres", high=1e6)


def _as_traces(pois: gpd.GeoDataFrame, *, user: Name, name: str) -> Traces:
    """Points of interest as traces without times, in the order in which they come."""
    if not isinstance(pois, gpd.GeoDataFrame):
        rule = "a GeoDataFrame of points such as pg.pois(gdf) returns"
        raise TypeError(invalid(name, "match_pois", rule, pois))
    check_geometry(pois)
    columns = [column for column in pois.columns if column != pois.active_geometry_name]
    at_once = np.zeros(len(pois), "M8[ns]")
    frame = {"time": at_once}
    if user is not None:
        found = find_column(columns, user, role="user", known=KNOWN_USERS)
        frame["user"] = pois[found].array
    try:
        return Traces.from_frame(
            gpd.GeoDataFrame(frame, geometry=pois.geometry.array, crs=pois.crs),
            user=None if user is None else "user",
            time="time",
        )
    except ValueError as error:  # whose cure is for records
        words = str(error).replace("with pg.Traces.from_frame(gdf, errors='skip')", f"from {name}")
        raise ValueError(words) from None


def _compared(
    pairs: Pairs, before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray], *, threshold: float
) -> pd.DataFrame:
    """Compare points of interest, given with where those of each original and each protected trace begin."""
    (points, offsets), (_, found_offsets) = before, after
    nearest = _nearest(pairs, before, after, threshold)
    retrieved = np.zeros(len(points) + 1, np.int64)
    retrieved[1 + np.unique(nearest[nearest >= 0])] = 1
    matched = np.diff(np.cumsum(retrieved)[offsets])
    counts = np.zeros(len(offsets) - 1, np.int64)
    counts[pairs.originals] = np.diff(found_offsets)
    return _scores(np.diff(offsets), counts, matched, users=pairs.original.users.rename("user"))


def _nearest(
    pairs: Pairs, before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray], threshold: float
) -> np.ndarray:
    """For each protected point of interest the number of the nearest original one within the threshold, or −1."""
    (points, offsets), (found, found_offsets) = before, after
    nearest = np.empty(len(found), np.int64)
    limit = pairs.original.space.chord(threshold) ** 2
    threads.run(
        lambda first, last: matching.retrieve(
            points, offsets, found, found_offsets, pairs.originals, limit, first, last, nearest
        ),
        threads.fair(np.diff(found_offsets)),
    )
    return nearest


def _scores(original: np.ndarray, protected: np.ndarray, matched: np.ndarray, *, users: pd.Index) -> pd.DataFrame:
    """Precision, recall and F-score: 2pr/(p + r) is 2 · matched / (original + protected)."""
    precision, recall = np.full((2, len(users)), np.nan)
    np.divide(matched, protected, out=precision, where=protected > 0)
    np.divide(matched, original, out=recall, where=original > 0)
    columns = {
        "original_pois": original,
        "protected_pois": protected,
        "matched": matched,
        "precision": precision,
        "recall": recall,
        "fscore": 2 * matched / np.maximum(original + protected, 1),
    }
    return pd.DataFrame(columns, index=users)
