"""Split traces where nothing was recorded for a long time."""

from typing import Any

import numpy as np

from promesse_geo.preprocess.pseudonyms import rename, virtual_names
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Data, Traces, map_traces
from promesse_geo.validation import check_duration, check_flag, check_seed

_MOST_PARTS = 100_000  # parts are named in five digits, so that text order is part order


def split_gaps(
    data: Data,
    *,
    gap: Any = "4h",
    seed: int | str | None = None,
    keep_user: bool = False,
    user: Name = ...,
    time: Name = ...,
) -> Data:
    """Cut traces where two consecutive records are at least `gap` apart, and give each part a virtual user.

    Parameters
    ----------
    data : geopandas.GeoDataFrame or Traces
        The data.
    gap : str, timedelta or number of seconds
        Shortest pause that cuts.
    seed : int or str, optional
        Makes the new names repeatable, and guessable; by default they come from the operating system's randomness.
    keep_user : bool
        Name the parts `<user>-00000`, `<user>-00001`, … for analysis; never publish those.
    user, time : column name, None or ...
        Columns of the frame; see `Traces.from_frame`.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        The kind that came, in the order of the new names, so that neighbours are not parts of one user.

    Raises
    ------
    ValueError
        If two parts get the same name, or a user falls into more than 100,000 parts with `keep_user=True`.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> pg.split_gaps(pg.make_city(users=1, days=2), keep_user=True)["user"].iloc[0]
    'user-000-00000'
    """
    nanoseconds, seed, keep_user = check_gap(gap, seed, keep_user, owner="split_gaps")
    return map_traces(
        data,
        lambda traces: split(traces, nanoseconds, seed=seed, keep_user=keep_user),
        user=user,
        time=time,
        selects=True,
    )


def check_gap(gap: Any, seed: Any, keep_user: Any, *, owner: str) -> tuple[int, int | str | None, bool]:
    """Return gap (ns), seed and keep_user, checked."""
    return (
        check_duration(gap, name="gap", owner=owner),
        check_seed(seed, owner=owner),
        check_flag(keep_user, name="keep_user", owner=owner),
    )


def split(traces: Traces, gap: int, *, seed: int | str | None, keep_user: bool) -> Traces:
    """Split traces where two consecutive records are at least `gap` nanoseconds apart."""
    cut = np.ones(traces.records, bool)
    cut[1:] = np.diff(traces.times) >= gap
    cut[traces.offsets[:-1]] = True
    starts = np.flatnonzero(cut)
    owners = np.searchsorted(traces.offsets, starts, side="right") - 1
    parts = np.arange(len(starts)) - np.searchsorted(owners, owners)
    users = [traces.users[owner] for owner in owners]
    if keep_user:
        if len(parts) and parts.max() >= _MOST_PARTS:
            raise ValueError(
                f"A user falls into more than {_MOST_PARTS:,} parts, which five digits cannot number. "
                "Take a longer gap, or new names: no keep_user (--keep-users)."
            )
        names = [f"{user}-{part:05d}" for user, part in zip(users, parts, strict=True)]
    else:
        names = virtual_names(users, parts.tolist(), seed=seed)
    return rename(traces, np.append(starts, traces.records), names)
