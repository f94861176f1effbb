"""Whom an attacker recognises who knows where users used to stay."""

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.kernels import poi_sets
from promesse_geo.messages import counted, warn
from promesse_geo.metrics.attacks.poi_retrieval import settle_stay, stays_of
from promesse_geo.metrics.base import Metric
from promesse_geo.preprocess.gaps import split_gaps
from promesse_geo.stays import Pois
from promesse_geo.stays.stays import in_words
from promesse_geo.traces.columns import Name
from promesse_geo.traces.pairs import Pairs, align
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.traces import Data, Traces, map_traces
from promesse_geo.validation import check_duration

_PART = re.compile(r"-[0-9]{5}$")  # how `split` ends the names of parts
_CELLS = 4_000_000  # distances kept at a time


@dataclass(frozen=True)
class Reidentification(Metric):
    """How many users are recognised by their points of interest (Primault et al., MOST 2014).

    The attacker knows where users stayed in the first half of the data set's period, and is given the second half,
    protected and under other names. The distance of two users is the median over {each point of interest's distance
    to the nearest of the other user, in both directions}; each protected user is taken for the nearest known one.

    `split` makes the two halves. Its input is one trace a user, before gaps are cut: of several days, for which
    `collapse_empty_days` and `first_days` bring users to one calendar first. Protect the second half, keeping the
    names of its parts, and hand `detail` the first half and the protected second one. Names are led back only to
    score: the user is what stands before a name's last hyphen.

    The detail has one row per user of the first half: the points of interest known (`reference_pois`) and found in
    protected data (`protected_pois`), the metres to the nearest known user, how many users are equally near
    (`nearest`), and `identified`: 1 / nearest where the true user is one of them, else 0. Who lacks points of interest
    in either half is not identified, has no distance (NaN) and nearest 0. Users of the second half alone have no row,
    for the attacker does not know them. The value is the percentage of identified users among those with points of
    interest in the first half: 0 is best, and guessing has 100 / their number.

    Parameters
    ----------
    diameter : float
        Greatest distance in metres between any two records of a stay.
    duration : str, timedelta or number of seconds
        Least time from the first to the last record of a stay.
    gap : str, timedelta or number of seconds
        Shortest pause that cuts the traces of the second half.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not of its kind or out of its range.

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
    label: ClassVar[str] = "re-identification"

    def __post_init__(self) -> None:
        """Check the parameters."""
        settle_stay(self)
        nanoseconds = check_duration(self.gap, name="gap", owner="Reidentification")
        object.__setattr__(self, "gap", in_words(nanoseconds))

    def split(self, original: Data, *, user: Name = ..., time: Name = ...) -> tuple[Data, Data]:
        """Cut a data set at the midpoint of its period.

        Parameters
        ----------
        original : geopandas.GeoDataFrame or Traces
            One trace a user, gaps not yet cut.
        user, time : column name, None or ...
            Columns of the frame; see `Traces.from_frame`.

        Returns
        -------
        reference : geopandas.GeoDataFrame or Traces
            The kind that came, with the records before the midpoint: what the attacker knows.
        to_protect : geopandas.GeoDataFrame or Traces
            The records from the midpoint on, cut at gaps into parts named `<user>-00000`, `<user>-00001`, …

        Raises
        ------
        TypeError, ValueError, KeyError
            If the data cannot be read, or a user falls into more than 100,000 parts.
        """
        reference = map_traces(original, lambda traces: _half(traces, first=True), user=user, time=time, selects=True)
        second = map_traces(
            original,
            lambda traces: split_gaps(_half(traces, first=False), gap=self.gap, keep_user=True),
            user=user,
            time=time,
            selects=True,
        )
        return reference, second

    def pair(self, original: Traces, protected: Traces) -> Pairs:
        """Lead names of parts back to users; those of the second half alone are nobody that the attacker knows."""
        users = [text.rpartition("-")[0] if "-" in text else text for text in map(str, protected.users)]
        pairs = align(original, replace(protected, users=pd.Index(users, dtype=object)))
        if len(protected) and not len(pairs.protected):
            nobody = f"None of the {counted(len(protected), 'protected trace')} is of a user of the first half"
            if len(original) and not any(_PART.search(str(user)) for user in protected.users):
                raise ValueError(
                    f"{nobody}. Protect what metric.split(gdf) returns as its second part, keeping the names of its "
                    "users, and compare that with the first part."
                )
            warn(f"{nobody}, the only ones whom the attacker knows: nobody is identified.")
        return pairs

    def _index(self, original: Traces) -> Pois:
        return stays_of(self, original)

    def _detail(self, pairs: Pairs, index: Pois) -> pd.DataFrame:
        users = len(pairs.original)
        found = stays_of(self, pairs.protected)
        owners = pairs.originals[found.traces]
        known, protected = index.offsets(users), as_offsets(np.bincount(owners, minlength=users))
        points = found.points[np.argsort(owners, kind="stable")]
        least, nearest, own = _recognised(pairs, index.points, known, points, protected)
        columns = {
            "reference_pois": np.diff(known),
            "protected_pois": np.diff(protected),
            "distance": np.where(np.isfinite(least), least * pairs.original.space.scale, np.nan),
            "nearest": nearest,
            "identified": own / np.maximum(nearest, 1),
        }
        return pd.DataFrame(columns, index=pairs.original.users.rename("user"))

    def value(self, detail: pd.DataFrame) -> float:
        """Return the percentage of users with known points of interest that are identified; NaN without any."""
        return 100 * float(detail.identified[detail.reference_pois > 0].mean())


def _half(traces: Traces, *, first: bool) -> Traces:
    if not traces.records:
        return traces
    begin, end = int(traces.times.min()), int(traces.times.max())
    before = traces.times < begin + (end - begin) // 2
    return traces.select(before if first else ~before)


def _recognised(
    pairs: Pairs, known: np.ndarray, known_offsets: np.ndarray, found: np.ndarray, found_offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Recognise users: the least distance, in kernel units, how many are so near, and whether the true one is.

    They are infinite, 0 and False for users without any points of interest, who have no row and no column; rows are
    made in blocks.
    """
    users = len(pairs.original)
    least, nearest, own = np.full(users, np.inf), np.zeros(users, np.int64), np.zeros(users, bool)
    columns, rows = (np.flatnonzero(np.diff(offsets)) for offsets in (known_offsets, found_offsets))
    if not len(columns):
        return least, nearest, own
    place = np.full(users, -1)
    place[columns] = np.arange(len(columns))
    starts, curvature = np.append(known_offsets[columns], len(known)), pairs.original.space.curvature
    step = max(1, _CELLS // len(columns))
    for block in (rows[begin : begin + step] for begin in range(0, len(rows), step)):
        begins = np.append(found_offsets[block], found_offsets[block[-1] + 1])
        distances = _distances(known, starts, found, begins, curvature)
        least[block] = distances.min(axis=1)
        equal = distances == least[block, None]
        nearest[block] = equal.sum(axis=1)
        own[block] = (place[block] >= 0) & equal[np.arange(len(block)), place[block]]
    return least, nearest, own


def _distances(
    known: np.ndarray, starts: np.ndarray, found: np.ndarray, begins: np.ndarray, curvature: float
) -> np.ndarray:
    """The distance from each set of found points to each set of known ones, in kernel units."""
    distances = np.empty((len(begins) - 1, len(starts) - 1))
    threads.run(
        lambda first, last: poi_sets.compare(known, starts, found, begins, curvature, first, last, distances),
        threads.fair(np.diff(begins) * len(known)),
    )
    return distances
