"""Protected data beside the original: what is the same that should not be."""

import math

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo import check
from promesse_geo.columns import Name
from promesse_geo.pairs import Pairs, align, has_decimals, unit_metres
from promesse_geo.publish.findings import FAILED, LOOK, NOT_COMPARABLE, PASSED, Finding, no_others
from promesse_geo.publish.frames import frame_findings
from promesse_geo.traces import Traces, as_traces, read_frame

FINE = 0.01
"""Metres below which a digit of a coordinate is needless."""

_PSEUDONYM = r"[0-9a-f]{16}"
_PER_TRACE = ("first points are away", "last points are away", "times are new", "points are new")


def check_published(
    original: gpd.GeoDataFrame | Traces,
    protected: gpd.GeoDataFrame | Traces,
    *,
    epsilon: float | None = None,
    user: Name = ...,
    time: Name = ...,
) -> pd.DataFrame:
    """Look at protected data as a careful friend would before it is published.

    Parameters
    ----------
    original : geopandas.GeoDataFrame or Traces
        What was protected: the prepared data, with the users that it had then.
    protected : geopandas.GeoDataFrame or Traces
        What is to be published; protect with the users kept to have traces compared, and rename them afterwards.
    epsilon : float, optional
        Metres that the first published point of a trace has to stay away from the true one, as Promesse promises;
        without it the distances are listed.
    user, time : column name, None or ...
        Columns of both frames; see `Traces.from_frame`.

    Returns
    -------
    pandas.DataFrame
        One row a test: test, verdict ("passed", "look", "failed", "not comparable") and reason. "Look" says that only
        you can tell. Passing everything is no proof of anonymity.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read, or only one of the two has a time zone.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> parts = pg.prepare(pg.make_city(users=2, days=2, as_traces=True), seed=1)
    >>> pg.check_published(parts, pg.Promesse(200).protect(parts), epsilon=200).verdict.tolist()[2]
    'passed'
    """
    epsilon = checked_epsilon(epsilon)
    before = as_traces(original, user=user, time=time)
    if isinstance(protected, gpd.GeoDataFrame):
        after, left_out = read_frame(protected, user=user, time=time)
        beside = frame_findings(protected, after.names, left_out)
    else:
        after, beside = as_traces(protected, user=user, time=time), [no_others([])]
    pairs = align(before, after)
    return pd.DataFrame([_users(after), *beside, *_compared(pairs, after, epsilon), _digits(after)])


def checked_epsilon(epsilon: float | None) -> float | None:
    """Return the metres that Promesse promises, or say that they are none."""
    if epsilon is None:
        return None
    return check.number(epsilon, name="epsilon", owner="check", unit="metres", low=0.01, high=1e6)


def _users(after: Traces) -> Finding:
    test = "user keys are pseudonyms"
    if not len(after):
        return Finding(test, NOT_COMPARABLE, "there is nothing in the protected data")
    if after.names.user is None:
        return Finding(test, PASSED, "there is no user: all is one trace")
    texts = pd.Series([str(user) for user in after.users.tolist()], dtype=str)
    others = int((~texts.str.fullmatch(_PSEUDONYM)).sum())
    if others:
        reason = f"{others:,} of {check.counted(len(after), 'user key')} do not look like the names of pseudonymize()"
        return Finding(test, LOOK, reason)
    return Finding(test, PASSED, "all are 16 hex digits")


def _compared(pairs: Pairs, after: Traces, epsilon: float | None) -> list[Finding]:
    """The tests that need the same users on both sides, and whether all traces had them."""
    test, compared = "all traces are compared", len(pairs.originals)
    if not compared:
        reason = (
            "the two have no user in common; compare before renaming" if len(after) else "nothing is to be compared"
        )
        return [Finding(name, NOT_COMPARABLE, reason) for name in (test, *_PER_TRACE)]
    counts = f"{compared:,} of {check.counted(len(after), 'trace')} compared"
    whole = Finding(test, PASSED, counts)
    if compared < len(after):
        whole = Finding(test, NOT_COMPARABLE, f"{counts}; the original has no such users for the others")
    ends = [_end(pairs, epsilon, first=first) for first in (True, False)]
    return [whole, *ends, _times(pairs), _points(pairs)]


def _end(pairs: Pairs, epsilon: float | None, *, first: bool) -> Finding:
    """Distance of the first (last) published point from the true one."""
    test = "first points are away" if first else "last points are away"
    distances = pairs.end_distances(first=first)
    nearest = f"the nearest is {distances.min():,.1f} m away, the median {np.median(distances):,.1f} m"
    if epsilon is None:
        return Finding(test, LOOK, f"no epsilon is known (say epsilon=, --epsilon); {nearest}")
    short = epsilon - distances
    close = int((short > 1e-9 * epsilon + 1e-8).sum())
    if not close:
        return Finding(test, PASSED, f"all are at least {epsilon:g} m away")
    reason = f"{close:,} of {check.counted(len(distances), 'trace')} {'begin' if first else 'end'} nearer; {nearest}"
    if not first:
        return Finding(test, LOOK, f"{reason} (Promesse does not promise it)")
    if short.max() < 2 * FINE:
        reason += "; as rounding does: protect with an epsilon that is some centimetres larger"
    return Finding(test, FAILED, reason)


def _times(pairs: Pairs) -> Finding:
    same = int(pairs.shared_times().sum())
    if same:
        return Finding(
            "times are new",
            LOOK,
            f"{same:,} of {pairs.protected.records:,} published times are true ones of their user",
        )
    return Finding("times are new", PASSED, "no published time is a true one of its user")


def _points(pairs: Pairs) -> Finding:
    test = "points are new"
    same = pairs.shared_points()
    whole = int(np.logical_and.reduceat(same, pairs.protected.offsets[:-1]).sum())
    if whole:
        return Finding(test, FAILED, f"{check.counted(whole, 'trace')} would be published point by point as recorded")
    if same.any():
        return Finding(
            test,
            LOOK,
            f"{int(same.sum()):,} of {pairs.protected.records:,} published points are true ones of their user",
        )
    return Finding(test, PASSED, "no published point is a true one of its user")


def _digits(after: Traces) -> Finding:
    test = "no needless digits"
    decimals = math.ceil(math.log10(unit_metres(after.space) / FINE) - 0.1)
    x, y = after.coordinates()
    fine = int((~(has_decimals(x, decimals) & has_decimals(y, decimals))).sum())
    if fine:
        return Finding(
            test,
            LOOK,
            f"{check.counted(fine, 'point')} of {after.records:,} are finer than a centimetre, as computed ones are; "
            "for noise, grid= makes them coarse, though on longitude and latitude such a grid has many decimals too; "
            "those of Promesse keep their digits, for rounding may bring them nearer than epsilon",
        )
    return Finding(test, PASSED, "no point is finer than a centimetre")
