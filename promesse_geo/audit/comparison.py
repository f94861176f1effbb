"""Protected data beside the original: what is the same that should not be."""

import math
from collections.abc import Callable

import geopandas as gpd
import numpy as np
import pandas as pd
from tqdm import tqdm

from promesse_geo.audit.digits import FINE, digits, fine_points
from promesse_geo.audit.everybody import CLOSE, Everybody, sampled
from promesse_geo.audit.findings import FAILED, LOOK, NOT_COMPARABLE, PASSED, Finding, Findings, no_others
from promesse_geo.audit.frames import frame_findings
from promesse_geo.audit.names import user_names
from promesse_geo.messages import counted
from promesse_geo.metrics import PoiRetrieval
from promesse_geo.preprocess.calendar import DAY, FIRST_DAY
from promesse_geo.traces.columns import Name
from promesse_geo.traces.pairs import WIDER, Pairs, align
from promesse_geo.traces.traces import Traces, as_traces, read_frame
from promesse_geo.validation import check_number

_FEW = 5  # times that are next to true ones for one chance in a hundred, where half of all are and one in ten by chance
_PAUSE = DAY // 6  # where prepare cuts
_LONGEST = 1_000 * DAY  # more are hardly prepared
_PER_TRACE = ("first points are away", "last points are away", "times are new", "points are new", "stays are hidden")


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
        you can tell. Passing everything is no proof of anonymity. It prints whole.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read, or only one of the two has a time zone.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> parts = pg.prepare(pg.make_city(users=2, days=2, as_traces=True), seed=1)
    >>> pg.check_published(parts, pg.Promesse(200).protect(parts), epsilon=200).verdict.tolist()[3]
    'passed'
    """
    epsilon = checked_epsilon(epsilon)
    before = as_traces(original, user=user, time=time)
    if isinstance(protected, gpd.GeoDataFrame):
        after, left_out = read_frame(protected, user=user, time=time)
        beside = frame_findings(protected, after, left_out)
    else:
        after, beside = as_traces(protected, user=user, time=time), [no_others([])]
    pairs = align(before, after)
    return Findings(
        [
            user_names(before, after),
            *beside,
            _prepared(before),
            *_compared(pairs, after, epsilon),
            _records(before, after),
            digits(after),
        ]
    )


def checked_epsilon(epsilon: float | None) -> float | None:
    """Return the metres that Promesse promises, or say that they are none."""
    if epsilon is None:
        return None
    return check_number(epsilon, name="epsilon", owner="check", unit="metres", low=0.01, high=1e6)


def _prepared(before: Traces) -> Finding:
    """Whether the original was cut at long pauses, and moved to the common calendar."""
    test, reasons = "data are prepared", []
    if not before.records:
        return Finding(test, NOT_COMPARABLE, "there is no original")
    paused = (np.diff(before.times) >= _PAUSE) & (np.diff(before.trace_numbers) == 0)
    traces = len(np.unique(before.trace_numbers[:-1][paused]))
    if traces:
        reasons.append(f"{counted(traces, 'trace')} with pauses of 4 h or more, across which smoothing runs on")
    if before.times.min() < FIRST_DAY - DAY or before.times.max() >= FIRST_DAY + _LONGEST:  # a zone may shift a day
        reasons.append("days as they were recorded, not those of the common calendar")
    if reasons:
        return Finding(test, LOOK, f"the original has {', and '.join(reasons)}; prepare cuts pauses and moves days")
    return Finding(test, PASSED, "no pause of 4 h or more within a trace, and days of the common calendar")


def _compared(pairs: Pairs, after: Traces, epsilon: float | None) -> list[Finding]:
    """The tests that need the same users on both sides, and whether all traces had them."""
    test, compared = "all traces are compared", len(pairs.originals)
    if not compared:
        reason = (
            "the two have no user in common; compare before renaming" if len(after) else "nothing is to be compared"
        )
        return [Finding(name, NOT_COMPARABLE, reason) for name in (test, *_PER_TRACE)]
    counts = f"{compared:,} of {counted(len(after), 'trace')} compared"
    missing = len(pairs.original) - compared
    dropped = f"; {counted(missing, 'trace')} of the original are not published" if missing else ""
    whole = Finding(test, PASSED, counts + dropped)
    if compared < len(after):
        whole = Finding(test, NOT_COMPARABLE, f"{counts}; the original has no such users for the others")
    looks: list[Callable[[], Finding]] = [
        lambda: _end(pairs, epsilon, first=True),
        lambda: _end(pairs, epsilon, first=False),
        lambda: _times(pairs),
        lambda: _points(pairs),
        lambda: _stays(pairs),
    ]
    return [whole, *(look() for look in tqdm(looks, desc="comparing", unit=" tests", delay=1, disable=None))]


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
    reason = f"{close:,} of {counted(len(distances), 'trace')} {'begin' if first else 'end'} nearer; {nearest}"
    if not first:
        return Finding(test, LOOK, f"{reason} (Promesse does not promise it)")
    if short.max() < 2 * FINE:
        reason += "; as rounding does: protect with an epsilon that is some centimetres larger"
    return Finding(test, FAILED, reason)


def _times(pairs: Pairs) -> Finding:
    test = "times are new"
    found, near = pairs.same_times()
    same = np.flatnonzero(found >= 0)
    counts = f"{len(same):,} of {len(found):,} published times are true ones of their user"
    if _beyond_chance(len(same), int((near & 1).sum())):
        median = np.median(pairs.distances(found[same], same))
        reason = f"{counts}, who was then, in the median, {median:,.2f} m from the published point"
        return Finding(test, LOOK, reason)
    close = int((near >= 2).sum())
    if 2 * close > len(found) and close > _FEW:
        return Finding(test, LOOK, f"{close:,} of {len(found):,} published times are next to true ones of their user")
    if len(same):
        return Finding(test, PASSED, f"{counts}, which are no more than by chance")
    return Finding(test, PASSED, "no published time is a true one of its user")


def _beyond_chance(same: int, near: int) -> bool:
    """Whether far more are the same than what lies near lets expect.

    Twice as many are no leak: where true points crowd, as during stays, what is near is not spread evenly along a line.
    """
    expected = _by_chance(same, near)
    return same > 2 * expected + 3 * math.sqrt(expected)


def _by_chance(same: int, near: int) -> float:
    return (near - same) / (WIDER - 1)


def _points(pairs: Pairs) -> Finding:
    test, records = "points are new", pairs.protected.records
    nearness = pairs.nearness()
    same, near = (int((nearness >= least).sum()) for least in (2, 1))
    known = _mostly_known(pairs.protected.offsets, nearness == 2, same=same, near=near)
    if known:
        reason = f"{counted(known, 'trace')} would be published as recorded, point by point or for the most part"
        return Finding(test, FAILED, reason)
    counts = f"{same:,} of {records:,} published points are true ones of their user"
    if _beyond_chance(same, near):
        return Finding(test, LOOK, f"{counts}; chance would give {_by_chance(same, near):,.1f}")
    if 2 * near > records and 2 * len(fine_points(pairs.published)) > records:  # coarse digits bring all near
        return Finding(test, LOOK, f"{near:,} of {records:,} published points are next to true ones of their user")
    moved, median = _hardly_moved(pairs)
    if moved:
        return Finding(
            test, LOOK, f"{counted(moved, 'trace')} would be published point by point, moved by {median:,.2f} m"
        )
    if same:
        return Finding(test, PASSED, f"{counts}, which are no more than by chance")
    return Finding(test, PASSED, "no published point is a true one of its user")


def _hardly_moved(pairs: Pairs) -> tuple[int, float]:
    """How many traces have as many points as the true ones, most of them close to those, and how close."""
    theirs, ours = pairs.original.counts[pairs.originals], pairs.protected.counts
    records, offsets = sampled(ours)
    again = np.repeat(pairs.original.offsets[pairs.originals] - pairs.protected.offsets[:-1], np.diff(offsets))
    alike = np.repeat(theirs == ours, np.diff(offsets))
    distances = np.full(len(records), np.inf)
    distances[alike] = pairs.distances((records + again)[alike], records[alike])
    found = _mostly(offsets, distances <= CLOSE) & (ours > 2)
    return int(found.sum()), float(np.median(distances[np.repeat(found, np.diff(offsets))])) if found.any() else 0.0


def _records(before: Traces, after: Traces) -> Finding:
    """Whether anybody's records are published, under whatever name."""
    test = "records are nobody's"
    if not before.records or not after.records:
        return Finding(test, NOT_COMPARABLE, "nothing is to be compared")
    everybody = Everybody(before, after)
    nearness = everybody.shared()
    same, near = (int((nearness >= least).sum()) for least in (2, 1))
    known = _mostly_known(after.offsets, nearness == 2, same=same, near=near)
    counts = f"{same:,} of {after.records:,} published records have the place and time of somebody's true one"
    if known:
        return Finding(
            test, FAILED, f"{counts}; {counted(known, 'trace')} for the most part, whoever's it is said to be"
        )
    if _beyond_chance(same, near):
        return Finding(test, LOOK, f"{counts}; chance would give {_by_chance(same, near):,.1f}")
    some, offsets = sampled(after.counts)
    around = everybody.around(some)
    close, beside = (int((around >= least).sum()) for least in (2, 1))
    known = _mostly_known(offsets, around == 2, same=close, near=beside)
    if known:
        reason = f"most records of {counted(known, 'trace')} lie within {CLOSE:g} m of somebody's true ones"
        return Finding(test, LOOK, f"{reason} of about the same time")
    if same:
        return Finding(test, PASSED, f"{counts}, which are no more than by chance")
    return Finding(test, PASSED, "no published record has the place and time of anybody's true one")


def _mostly_known(offsets: np.ndarray, known: np.ndarray, *, same: int, near: int) -> int:
    """How many traces have more true points than others, beyond what chance can give in any trace.

    In n points at least n/2 are true by chance with a probability of (4p)^(true ones) at most.
    """
    records, beside = len(known), near - same
    chance = beside if 2 * beside > records else _by_chance(same, near)  # where most are near, that tells little
    odds = np.minimum(4 * min(chance, same) / records, 1.0) ** _counts(offsets, known) * (len(offsets) - 1)
    return int((_mostly(offsets, known) & (odds < 0.01)).sum())


def _mostly(offsets: np.ndarray, known: np.ndarray) -> np.ndarray:
    return 2 * _counts(offsets, known) > np.diff(offsets)


def _counts(offsets: np.ndarray, known: np.ndarray) -> np.ndarray:
    return np.add.reduceat(known, offsets[:-1], dtype=np.int64)


def _stays(pairs: Pairs) -> Finding:
    """What the paper's attack still finds."""
    test, attack = "stays are hidden", PoiRetrieval()
    detail = attack.detail(pairs.original, pairs.protected)
    stays, again = int(detail.original_pois.sum()), int(detail.matched.sum())
    if not stays:
        return Finding(test, PASSED, "nobody stayed anywhere in the original")
    if not again:
        return Finding(test, PASSED, f"the paper's attack finds none of {stays:,} again; stronger ones may")
    reason = f"the paper's attack finds {again:,} of {stays:,} again (F-score {attack.value(detail):.1f} %)"
    return Finding(test, LOOK, f"{reason}; stronger ones find more")
