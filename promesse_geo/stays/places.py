"""POI extraction as a scikit-learn estimator, and the merging of stays into places."""

from dataclasses import replace
from typing import Any, Self

import geopandas as gpd
import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import DBSCAN, AgglomerativeClustering

from promesse_geo.messages import invalid
from promesse_geo.stays.stays import Pois, checked_stay, find_pois, measured
from promesse_geo.traces.columns import Name
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.space import Space
from promesse_geo.traces.traces import Traces, as_traces

MERGES = ("places", "density")
"""How stays are merged into places."""

_REACH = 0.75  # DBSCAN's eps in diameters (MOST 2014)


class PoiExtractor(ClusterMixin, BaseEstimator):
    """Find where users stayed, as `pois` does, and label each record with its stay.

    Parameters
    ----------
    diameter : float
        Greatest distance in metres between any two records of a stay, from 0.01 to 1,000,000.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of a stay.
    merge : {None, "places", "density"}
        None keeps every stay, as the paper does. "places" merges each user's repeated stays: scikit-learn's
        `AgglomerativeClustering` on the stays' centres with complete linkage, cut at `diameter`. So the centres of
        a place are all within `diameter` of each other, which is the rule that the records of a stay obey.
        DBSCAN and single linkage would chain neighbouring stays into places without bound, for example along a
        street; k-means would have to know their number. Memory grows with the square of a user's stays: 10,000 of
        them take 0.4 GB. "density" merges as Primault et al. (MOST 2014) do: scikit-learn's `DBSCAN` on the stays'
        centres, with eps = 0.75 · `diameter` and two stays at least. Stays of no cluster are dropped.

    Attributes
    ----------
    pois_ : geopandas.GeoDataFrame
        One row a stay, as `pois` returns them. A place has the arrival of its first and the departure of its last
        stay, the mean and the diameter of all its records, and in column `stays` the number of its stays. With
        "density", its location is the mean of the centres of its stays instead, whatever their records.
    labels_ : numpy.ndarray of int64, shape (records,)
        For each row of the frame (each record of Traces), the row of `pois_` that it belongs to; −1 for none.

    References
    ----------
    Hariharan, Toyama: Project Lachesis: Parsing and Modeling Location Histories. GIScience 2004. Paper, section V-B.
    Primault, Ben Mokhtar, Lauradoux, Brunie: Differentially Private Location Privacy in Practice. MOST 2014.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=2, days=2)
    >>> extractor = pg.PoiExtractor(merge="places").fit(city)
    >>> list(extractor.pois_.columns)
    ['user', 'arrival', 'departure', 'records', 'geometry', 'diameter', 'stays']
    >>> len(extractor.labels_) == len(city)
    True
    """

    pois_: gpd.GeoDataFrame
    labels_: np.ndarray

    def __init__(self, diameter: float = 200, duration: Any = "15min", merge: str | None = None) -> None:
        self.diameter = diameter
        self.duration = duration
        self.merge = merge

    def fit(self, X: gpd.GeoDataFrame | Traces, y: None = None, *, user: Name = ..., time: Name = ...) -> Self:
        """Find the points of interest of a data set.

        Parameters
        ----------
        X : geopandas.GeoDataFrame or Traces
            The data; it is not changed.
        y : None
            Not used; scikit-learn's convention.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        PoiExtractor
            Itself, with `pois_` and `labels_`.

        Raises
        ------
        TypeError, ValueError, KeyError
            If a parameter is wrong or the data cannot be read.
        """
        diameter, duration = checked_stay(self.diameter, self.duration, owner="PoiExtractor")
        if self.merge is not None and not (isinstance(self.merge, str) and self.merge in MERGES):
            kind = ValueError if isinstance(self.merge, str) else TypeError
            raise kind(invalid("merge", "PoiExtractor", "None, 'places' or 'density'", self.merge))
        traces = as_traces(X, user=user, time=time)
        stays = find_pois(traces, diameter=diameter, duration=duration)
        place_of = np.arange(len(stays))
        if self.merge is None:
            self.pois_ = stays.to_frame(traces)
        else:
            places, place_of = merge_stays(stays, traces, diameter=diameter, merge=self.merge)
            counts = np.bincount(place_of[place_of >= 0], minlength=len(places))
            self.pois_ = places.to_frame(traces, stays=counts)
        labels = np.full(traces.records, -1)
        labels[_each(stays.starts, stays.records)] = np.repeat(place_of, stays.records)
        self.labels_ = labels
        if not isinstance(X, Traces):
            self.labels_ = np.empty_like(labels)
            self.labels_[traces.positions] = labels
        return self


def merge_stays(stays: Pois, traces: Traces, *, diameter: float, merge: str) -> tuple[Pois, np.ndarray]:
    """Merge the stays of each trace into places, as `PoiExtractor` documents.

    Parameters
    ----------
    stays : Pois
        What `find_pois` returned for the traces.
    traces : Traces
        The data.
    diameter : float
        Metres: the diameter of the stays.
    merge : {"places", "density"}
        How to merge.

    Returns
    -------
    places : Pois
        In the order of traces and of the first stays.
    place_of : numpy.ndarray of int64, shape (stays,)
        The place of each stay; −1 for none.
    """
    space = traces.space
    if merge == "places":
        limit = np.nextafter(space.chord(diameter), np.inf)  # scikit-learn merges below it
        clustering = AgglomerativeClustering(n_clusters=None, linkage="complete", distance_threshold=limit)
        place_of = _clustered(stays, clustering, alone=True)
        return _merged(stays, traces, place_of), place_of
    place_of = _clustered(stays, DBSCAN(eps=space.chord(_REACH * diameter), min_samples=2), alone=False)
    places = _merged(stays, traces, place_of)
    return replace(places, points=_mean_centres(stays, place_of, len(places), space)), place_of


def _each(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the numbers start, start + 1, … of each run, one run after the other."""
    ends = as_offsets(counts)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], counts)


def _clustered(stays: Pois, clustering: ClusterMixin, *, alone: bool) -> np.ndarray:
    """Number the clusters of the stays of each trace in the order of their first stays; return each stay's cluster.

    A stay that is the only one of its trace is a cluster if `alone`; it is in none (−1) otherwise.
    """
    first_of = np.arange(len(stays)) if alone else np.full(len(stays), -1)
    _, firsts, counts = np.unique(stays.traces, return_index=True, return_counts=True)
    for first, count in zip(firsts[counts > 1], counts[counts > 1], strict=True):
        rows = slice(first, first + count)
        labels = clustering.fit_predict(stays.points[rows] - stays.points[first])
        _, first_stay, place = np.unique(labels, return_index=True, return_inverse=True)
        first_of[rows] = np.where(labels < 0, -1, first + first_stay[place])
    kept = first_of >= 0
    place_of = np.full(len(stays), -1)
    place_of[kept] = np.unique(first_of[kept], return_inverse=True)[1]
    return place_of


def _merged(stays: Pois, traces: Traces, place_of: np.ndarray) -> Pois:
    """Return places with the mean and the diameter of all records of their stays, without stays of no place."""
    order = np.argsort(place_of, kind="stable")
    order = order[place_of[order] >= 0]
    stays_of = as_offsets(np.bincount(place_of[order]))
    firsts, lasts = order[stays_of[:-1]], order[stays_of[1:] - 1]
    records = np.bincount(place_of[order], weights=stays.records[order]).astype(np.int64)
    inside = _each(stays.starts[order], stays.records[order])
    ends = as_offsets(records)
    points, diameters = measured(traces.points[inside], ends[:-1], ends[1:], traces.space)
    return Pois(stays.traces[firsts], stays.starts[firsts], stays.ends[lasts], records, points, diameters)


def _mean_centres(stays: Pois, place_of: np.ndarray, places: int, space: Space) -> np.ndarray:
    """Return the mean of the centres of the stays of each place, in kernel coordinates."""
    kept = place_of >= 0
    sums = np.zeros((places, space.dimension))
    np.add.at(sums, place_of[kept], stays.points[kept])
    if space.curvature:
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return sums / np.bincount(place_of[kept], minlength=places)[:, None]
