"""Split traces at gaps: long times without records."""

from typing import Any

import numpy as np

from promesse_geo.preprocess.pseudonyms import rename, virtual_names
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, Traces, map_traces
from promesse_geo.validation import check_duration, check_flag, check_number, check_seed

_MOST_PARTS = 100_000  # numbers of five digits, so that parts sort as text


def split_gaps(
    data: Data,
    gap: Any = "4h",
    *,
    distance: float | None = None,
    seed: int | str | None = None,
    keep_user: bool = False,
    user: Name = ...,
    time: Name = ...,
    segment: Name = ...,
) -> Data:
    """Split traces at gaps and at breaks between consecutive records, and name each part as a new virtual user.

    At a break nothing was recorded, however short the gap: the segments of a GPX track, for example.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    gap : str, timedelta or number of seconds
        Shortest time between records at which a trace is split.
    distance : float, optional
        Metres: a trace is also split between records that are farther apart.
    seed : int or str, optional
        Makes the new names repeatable, but also guessable; by default they are random.
    keep_user : bool
        Name the parts `<user>-00000`, `<user>-00001`, … for analysis. Do not publish such names.
    user, time, segment : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        Of the type of `data`, in the order of the new names, so that neighbours are not parts of one user.

    Raises
    ------
    ValueError
        If two parts get the same name, or a user has more than 100,000 parts with `keep_user=True`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.split_gaps(pg.make_city(users=1, days=2), keep_user=True)["user"].iloc[0]
    'user-000-00000'
    """
    nanoseconds, seed, keep_user = check_gap(gap, seed, keep_user, owner="split_gaps")
    if distance is not None:
        distance = check_number(distance, name="distance", owner="split_gaps", unit="metres")

    def work(traces: Traces) -> Traces:
        return split(traces, nanoseconds, distance=distance, seed=seed, keep_user=keep_user)

    return map_traces(data, work, user=user, time=time, segment=segment, selects=True)


def check_gap(gap: Any, seed: Any, keep_user: Any, *, owner: str) -> tuple[int, int | str | None, bool]:
    """Return the checked gap in nanoseconds, seed and keep_user."""
    return (
        check_duration(gap, name="gap", owner=owner),
        check_seed(seed, owner=owner),
        check_flag(keep_user, name="keep_user", owner=owner),
    )


def split(
    traces: Traces, gap: int, *, distance: float | None = None, seed: int | str | None, keep_user: bool
) -> Traces:
    """Split at breaks, and where consecutive records are at least `gap` ns or more than `distance` metres apart."""
    cut = np.ones(traces.records, bool)
    cut[1:] = np.diff(traces.times) >= gap
    if distance is not None:
        chords = np.linalg.norm(np.diff(traces.points, axis=0), axis=1)
        cut[1:] |= traces.space.metres(chords) > distance
    cut[traces.breaks] = True
    cut[traces.offsets[:-1]] = True
    starts = np.flatnonzero(cut)
    owners = np.searchsorted(traces.offsets, starts, side="right") - 1
    parts = np.arange(len(starts)) - np.searchsorted(owners, owners)
    users = [traces.users[owner] for owner in owners]
    if keep_user:
        if len(parts) and parts.max() >= _MOST_PARTS:
            raise ValueError(
                f"A user has more than {_MOST_PARTS:,} parts, the limit of five digits. "
                "Take a longer gap, or new names without keep_user (--keep-users)."
            )
        names = [f"{user}-{part:05d}" for user, part in zip(users, parts, strict=True)]
    else:
        names = virtual_names(users, parts.tolist(), seed=seed)
    return rename(traces, np.append(starts, traces.records), names)
