"""What Wait for Me publishes of its groups, and the report on it."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from promesse_geo import threads
from promesse_geo.kernels import clustering as kernels
from promesse_geo.mechanisms.clustering import Groups, Tracks
from promesse_geo.traces.records import as_offsets
from promesse_geo.traces.space import LocalPlane
from promesse_geo.traces.traces import Traces, freeze

_RECORDS = 1 << 18  # written at a time, or one trace


@dataclass(frozen=True)
class WaitForMeReport:
    """What Wait for Me did, in metres, seconds and counts. `groups` shows who is grouped with whom: do not publish it.

    Parameters
    ----------
    traces, records : int
        In the original data; with program="v1.1" after thinning.
    clusters : int
        Published groups.
    trash, trashed_records : int
        Dropped traces, and their records.
    final_radius : float
        Metres: the radius with which the trash was small enough; with chunks, the largest of them.
    restarts : int
        How often the clustering started again with a larger radius.
    created, deleted : int
        The number of points that members lack, or have in excess, compared with their pivot.
    space_translation : float
        Sum of the metres beyond half of delta from the pivot, over moved points.
    time_translation : float
        Sum of the seconds between the pivot's points and those matched with them.
    moved, shifted : int
        The number of points whose place, or time, changed.
    discernibility : int
        `Σ |cluster|² + trash · traces`.
    pseudo_diameter : float
        Metres: diagonal of the bounding box of all records.
    groups : pandas.DataFrame
        Index user; columns cluster (−1: trash) and is_pivot.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> city = pg.make_city(users=3, days=1, recorder="phone")
    >>> _, report = pg.WaitForMe(k=2, max_trash=0, seed=1).protect_with_report(city)
    >>> report.traces, report.trash, int(report.groups.is_pivot.sum()) == report.clusters
    (3, 0, True)
    """

    traces: int
    records: int
    clusters: int
    trash: int
    trashed_records: int
    final_radius: float
    restarts: int
    created: int
    deleted: int
    space_translation: float
    time_translation: float
    moved: int
    shifted: int
    discernibility: int
    pseudo_diameter: float
    groups: pd.DataFrame = field(repr=False, compare=False)

    @property
    def summary(self) -> pd.Series:
        """All numbers, with the means per published trace and per original record of these traces."""
        numbers: dict[str, Any] = {name: value for name, value in vars(self).items() if name != "groups"}
        for kind in ("space", "time"):
            total = numbers[f"{kind}_translation"]
            for unit in ("trace", "record"):
                count = self.traces - self.trash if unit == "trace" else self.records - self.trashed_records
                numbers[f"{kind}_translation_per_{unit}"] = total / count if count else math.nan
        return pd.Series(numbers, name="value", dtype=object)


def publish_groups(
    traces: Traces, plane: LocalPlane, tracks: Tracks, parts: list[Groups], order: np.ndarray, *, delta: float, cap: int
) -> tuple[Traces, WaitForMeReport]:
    """Give every member its pivot's times and points near the pivot's, and report the changes.

    Parameters
    ----------
    traces : Traces
        The original data.
    plane, tracks : LocalPlane, Tracks
        Its records in the plane, and its traces there in the order of the algorithm.
    parts : list of Groups
        The groups of each chunk.
    order : numpy.ndarray of int64, shape (traces,)
        The number in `traces` of each of the tracks.
    delta, cap
        As in `WaitForMe`.

    Returns
    -------
    Traces, WaitForMeReport
    """
    groups = [group for part in parts for group in part.members]
    sizes = np.array([len(group) for group in groups], np.int64)
    members = np.array([trace for group in groups for trace in group], np.int64)
    pivots = np.repeat(np.array([pivot for part in parts for pivot in part.pivots], np.int64), sizes)
    trash = np.array([trace for part in parts for trace in part.trash], np.int64)
    table = pd.DataFrame({"cluster": np.full(len(traces), -1), "is_pivot": False}, index=traces.users.rename("user"))
    table.iloc[order[members], 0] = np.repeat(np.arange(len(groups)), sizes)
    table.iloc[order[pivots], 1] = True
    by_user = np.argsort(order[members])
    members, pivots = members[by_user], pivots[by_user]
    published, sums = _published(traces, plane, tracks, members, pivots, delta=delta, cap=cap)
    more = tracks.counts[pivots] - tracks.counts[members]
    report = WaitForMeReport(
        traces=len(traces),
        records=traces.records,
        clusters=len(groups),
        trash=len(trash),
        trashed_records=int(tracks.counts[trash].sum()),
        final_radius=float(max(part.radius for part in parts)),
        restarts=sum(part.restarts for part in parts),
        created=int(np.maximum(more, 0).sum()),
        deleted=int(np.maximum(-more, 0).sum()),
        space_translation=sums[0],
        time_translation=sums[2] / 1e9,
        moved=int(sums[1]),
        shifted=int(sums[3]),
        discernibility=int((sizes**2).sum()) + len(trash) * len(traces),
        pseudo_diameter=math.hypot(float(np.ptp(plane.x)), float(np.ptp(plane.y))),
        groups=table,
    )
    return replace(published, users=traces.users[order[members]]), report


def _published(
    traces: Traces,
    plane: LocalPlane,
    tracks: Tracks,
    members: np.ndarray,
    pivots: np.ndarray,
    *,
    delta: float,
    cap: int,
) -> tuple[Traces, list[float]]:
    """The published members, without their names, and the sums over them."""
    offsets = as_offsets(tracks.counts[pivots])
    points, times = np.empty((offsets[-1], traces.space.dimension)), np.empty(offsets[-1], np.int64)
    sums = np.empty((len(members), 4))
    half = delta / 2

    def work(first: int, last: int) -> None:
        records = slice(offsets[first], offsets[last])
        x, y, sources = np.empty((3, offsets[last] - offsets[first]))
        sources = sources.view(np.int64)
        kernels.write_members(
            *(tracks.x, tracks.y, tracks.z, traces.times, tracks.begins, tracks.ends, pivots, members),
            *(offsets - offsets[first], first, last, half, float(cap), half, (x, y, times[records], sources), sums),
        )
        places = plane.points(x, y)
        unchanged = np.flatnonzero(sources >= 0)
        places[unchanged] = traces.points[sources[unchanged]]
        points[records] = places

    shares = np.searchsorted(offsets, np.arange(0, offsets[-1], _RECORDS))
    threads.run_interruptible(work, np.unique(np.append(shares, len(members))))
    published = replace(
        traces,
        points=freeze(points),
        times=freeze(times),
        offsets=offsets,
        positions=freeze(np.arange(len(times))),
        time_format=replace(traces.time_format, unit="ns"),
    )
    return published, [math.fsum(column) for column in sums.T.tolist()]
