"""Re-identification of users by their POIs."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.kernels import poi_matching
from promesse_geo.messages import counted, warn
from promesse_geo.metrics.attacks.halves import HalvesMetric
from promesse_geo.metrics.attacks.poi_retrieval import Located, coerce_stay, find_stays
from promesse_geo.stays import Pois
from promesse_geo.traces.owners import PART, owner_of
from promesse_geo.traces.pairs import Pairs, align
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_duration_as_text, set_fields

_CELLS = 4_000_000  # distances in memory at a time


@dataclass(frozen=True)
class Reidentification(HalvesMetric):
    """Users that an attacker identifies by their POIs (Primault et al., MOST 2014).

    The attacker knows where users stayed in the first half of the period of the data set and receives the second half,
    protected and with other names. The distance between two users is the median of the distances from each POI of one
    to the nearest POI of the other, in both directions. Each protected user is identified with the nearest known user.

    `split` makes the two halves, of parts as `prepare(keep_user=True)` names them, or of one trace per user. If the
    data has several days, first bring users to a common calendar with `collapse_empty_days` and `first_days`, as
    `prepare` does. Protect the second half, keep the names of its parts, and pass the first half and the protected
    second half to `detail`. The names serve for scoring alone: the user of a part is its name, or its name without a
    final hyphen and five digits, whichever is a user of the first half.

    The detail has one row per user of the first half: the number of POIs in it (`reference_pois`) and in the protected
    data (`protected_pois`), the `distance` in metres to the nearest known user, the number of users at this distance
    (`nearest`), and `identified`: 1 / nearest if the true user is one of them, else 0. A user without POIs in one of
    the halves is not identified and has no distance (NaN) and nearest 0. Users of the second half alone have no row,
    because the attacker does not know them. The value is the percentage of identified users among those with POIs in
    the first half: 0 is best for privacy, and random guesses identify 100 / their number.

    Parameters
    ----------
    diameter : float
        Greatest distance in metres between any two records of a stay.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of a stay.
    gap : str, timedelta or number of seconds
        Shortest gap at which the traces of the second half are split.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range.

    References
    ----------
    Primault, Ben Mokhtar, Lauradoux, Brunie: Differentially Private Location Privacy in Practice. MOST 2014.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> metric = pg.Reidentification()
    >>> known, second = metric.split(pg.make_city(users=4, days=4))
    >>> metric.measure(known, second)
    100.0
    """

    diameter: float = 200.0
    duration: Any = "15min"
    gap: Any = "4h"
    unit: ClassVar[str] = "%"
    bounds: ClassVar[tuple[float, float]] = (0, 100)
    undefined: ClassVar[str] = "no user has a known POI"
    label: ClassVar[str] = "re-identification"
    meaning: ClassVar[str] = "lower is more private"

    def __post_init__(self) -> None:
        """Validate the parameters."""
        coerce_stay(self)
        set_fields(self, {"gap": check_duration_as_text(self.gap, name="gap", owner="Reidentification")})

    def pair(self, original: Traces, protected: Traces) -> Pairs:
        """Match parts with the users of the first half, without those that the attacker does not know."""
        known = set(map(str, original.users))
        users = [owner_of(str(user), known) for user in protected.users]
        pairs = align(original, replace(protected, users=pd.Index(users, dtype=object)))
        if len(protected) and not len(pairs.protected):
            reason = f"None of the {counted(len(protected), 'protected trace')} belongs to a user of the first half"
            if len(original) and not any(PART.search(str(user)) for user in protected.users):
                raise ValueError(
                    f"{reason}. Protect the second part of metric.split(gdf), keep the names of its users, and compare "
                    "it with the first part."
                )
            warn(f"{reason}, so no user is identified.")
        return pairs

    def _index(self, original: Traces) -> Pois:
        return find_stays(self, original)

    def _detail(self, pairs: Pairs, index: Pois) -> pd.DataFrame:
        users = len(pairs.original)
        stays = find_stays(self, pairs.protected)
        owners = pairs.originals[stays.traces]
        known, protected = index.offsets(users), as_offsets(np.bincount(owners, minlength=users))
        points = stays.points[np.argsort(owners, kind="stable")]
        least, nearest, is_true = identify_users(pairs, (index.points, known), (points, protected))
        columns = {
            "reference_pois": np.diff(known),
            "protected_pois": np.diff(protected),
            "distance": np.where(np.isfinite(least), least * pairs.original.space.scale, np.nan),
            "nearest": nearest,
            "identified": is_true / np.maximum(nearest, 1),
        }
        return pd.DataFrame(columns, index=pairs.original.users.rename("user"))

    def value(self, detail: pd.DataFrame) -> float:
        """Return the percentage of identified users among those with known POIs; NaN without any."""
        return 100 * float(detail.identified[detail.reference_pois > 0].mean())


def identify_users(pairs: Pairs, reference: Located, protected: Located) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the users whose known POIs are nearest to the protected POIs of each user.

    Rows of the matrix of distances are computed in blocks.

    Parameters
    ----------
    pairs : Pairs
        Matched traces, one of each user.
    reference, protected : tuple of two numpy.ndarray
        POIs in kernel coordinates, and the offsets of each user of the original.

    Returns
    -------
    least : numpy.ndarray of float64, shape (users,)
        The smallest distance, in kernel units; infinite without POIs.
    nearest : numpy.ndarray of int64, shape (users,)
        The number of users at this distance.
    is_true : numpy.ndarray of bool, shape (users,)
        Whether the true user is one of them.
    """
    users = len(pairs.original)
    (known, known_offsets), (candidates, offsets) = reference, protected
    least, nearest, is_true = np.full(users, np.inf), np.zeros(users, np.int64), np.zeros(users, bool)
    columns, rows = (np.flatnonzero(np.diff(each)) for each in (known_offsets, offsets))
    if not len(columns):
        return least, nearest, is_true
    place = np.full(users, -1)
    place[columns] = np.arange(len(columns))
    starts, curvature = np.append(known_offsets[columns], len(known)), pairs.original.space.curvature
    step = max(1, _CELLS // len(columns))
    for block in (rows[begin : begin + step] for begin in range(0, len(rows), step)):
        begins = np.append(offsets[block], offsets[block[-1] + 1])
        distances = _distances(known, starts, candidates, begins, curvature)
        least[block] = distances.min(axis=1)
        equal = distances == least[block, None]
        nearest[block] = equal.sum(axis=1)
        is_true[block] = (place[block] >= 0) & equal[np.arange(len(block)), place[block]]
    return least, nearest, is_true


def _distances(
    known: np.ndarray, starts: np.ndarray, candidates: np.ndarray, begins: np.ndarray, curvature: float
) -> np.ndarray:
    """Return the distance from each set of protected POIs to each set of known ones, in kernel units."""
    distances = np.empty((len(begins) - 1, len(starts) - 1))
    threads.run(
        lambda first, last: poi_matching.compare_sets(
            known, starts, candidates, begins, curvature, first, last, distances
        ),
        threads.fair(np.diff(begins) * len(known)),
    )
    return distances
