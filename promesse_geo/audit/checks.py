"""Checks of protected data before publication: what it shares with the original that it should not."""

import math
from collections.abc import Callable
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd

from promesse_geo.audit.comparison import CLOSE, FINE, Comparison
from promesse_geo.audit.ends import check_ends
from promesse_geo.audit.findings import FAILED, LEFT_OUT, PASSED, REVIEW, Finding, find_other_columns, worst_first
from promesse_geo.audit.frames import check_frame
from promesse_geo.audit.names import check_user_names
from promesse_geo.audit.originals import RECORDS, TIMES, check_locations, check_records, check_times
from promesse_geo.audit.recognition import identify, main_mechanism, noted_mechanism, raise_if_swapped
from promesse_geo.audit.seeds import has_guessable_noise
from promesse_geo.audit.stays import retrieve_stays
from promesse_geo.mechanisms import Chain, GeoIndistinguishability, Mechanism, Promesse, WaitForMe
from promesse_geo.mechanisms.base import keeps_periods
from promesse_geo.messages import counted, invalid
from promesse_geo.metrics.pairing import raise_if_renumbered
from promesse_geo.preprocess.calendar import uses_common_calendar
from promesse_geo.preprocess.problems import FASTEST, Problems, find_problems
from promesse_geo.threads import progress_bar
from promesse_geo.traces.columns import Name
from promesse_geo.traces.frames import as_points
from promesse_geo.traces.owners import number_owners
from promesse_geo.traces.traces import Traces, as_traces, read_frame
from promesse_geo.validation import check_number

JUMPS = "no impossible jumps in the original"
"""The test that only true times allow."""

_FIRST, _LAST = "first points are hidden", "last points are hidden"
_OTHER_CALENDAR = (
    "the protected days were moved to the common calendar, those of the original were not: publish compares times, and "
    "so does check with the output of prepare() (promesse-geo prepare)"
)
_SAMPLE = 100_000  # records that show quickly that there is no grid
_SAME = 1e-6  # metres by which coordinates of one row of a grid differ at most after they were read from a file
_FEW_STAYS, _MOST_STAYS = 0.1, 0.5  # shares of the original stays that chance retrieves, and that are far too many
_IF_KEPT = "if they were not dropped before"  # as publish and prepare do; the original shows what was recorded
_PAIRS = 20.0  # close pairs that chance would give: fewer are too few to recognize a grid


def check_published(
    original: gpd.GeoDataFrame | Traces,
    protected: gpd.GeoDataFrame | Traces,
    *,
    epsilon: float | None = None,
    mechanism: Mechanism | None = None,
    user: Name = ...,
    time: Name = ...,
) -> pd.DataFrame:
    """Run the checks before publication on protected data.

    Check protected data with the users of the original first, then rename them. Of renamed data all is checked but
    first and last points, which need the users.

    What a mechanism does by design is not reported: Promesse keeps the path, geo-indistinguishability and Wait for Me
    keep times, Wait for Me publishes one trace of each group as it is. Data and files of ours note their mechanism;
    otherwise it is recognized by its output.

    The original may be the raw data, too, whose days were moved to the common calendar before protection: then times
    are not compared, and tests that need them are left out.

    Publish each person once. Traces of the same people, published again with another epsilon or for other days, can be
    joined with the first ones, whatever their names.

    Parameters
    ----------
    original : geopandas.GeoDataFrame or Traces
        The data that was protected: the prepared data, with the users that it had then.
    protected : geopandas.GeoDataFrame or Traces
        The data to publish.
    epsilon : float, optional
        Metres that Promesse hides at both ends: the first published point of a trace keeps this distance from the
        original one, and from the last on at least as long a path is hidden. By default that of the mechanism.
    mechanism : Mechanism, optional
        What protected the data; by default what the data notes. Data that it cannot have made fails.
    user, time : column name, None or ...
        Columns of both frames; see `Traces.from_frame`.

    Returns
    -------
    pandas.DataFrame
        One row per test: test, verdict ("passed", "review", "failed", "left out") and reason, failed tests first,
        passed ones last. "review" marks what only you can decide, "left out" a test that cannot judge these data.
        Empty data fails. Passing all tests does not prove anonymity. Reasons print in full.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read, only one of the two has a time zone (and the protected times are not those of the
        common calendar), or original and protected data are swapped.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> parts = pg.prepare(pg.make_city(users=2, days=2, as_traces=True), seed=1)
    >>> table = pg.check_published(parts, pg.Promesse(200).protect(parts), epsilon=200)
    >>> table.set_index("test").verdict["first points are hidden"]
    'passed'
    """
    epsilon = check_epsilon(epsilon)
    if mechanism is not None and not isinstance(mechanism, Mechanism):
        raise TypeError(invalid("mechanism", "check", "a mechanism such as pg.Promesse(200), or None", mechanism))
    before = as_traces(original, user=user, time=time)
    if not isinstance(protected, Traces):
        protected = as_points(protected)
        after, dropped = read_frame(protected, user=user, time=time)
        of_frame = check_frame(protected, after, dropped)
    else:
        after, of_frame = as_traces(protected, user=user, time=time), [find_other_columns([])]
    raise_if_swapped(before, after, mechanism)
    return worst_first([*of_frame, *_compare(Comparison.of(before, after), mechanism, epsilon)])


def check_epsilon(epsilon: float | None) -> float | None:
    """Return `epsilon` if it is None or a number of metres that Promesse takes.

    Raises
    ------
    TypeError, ValueError
        If it is neither.
    """
    if epsilon is None:
        return None
    return check_number(epsilon, name="epsilon", owner="check", unit="metres", low=0.01, high=1e6)


def _check_prepared(comparison: Comparison, found: Problems) -> Finding:
    """Check that traces were split at long gaps and days moved to the common calendar."""
    test, reasons, before = "data are prepared", [], comparison.original
    if found.gaps:
        gaps = f"{counted(found.gaps, 'gap')} of 4 h or more within traces, across which smoothing interpolates"
        remedy = "prepare() (promesse-geo prepare) splits there, and publish at its gap= (--gap)"
        reasons.append(f"{gaps} if traces were not split there before; {remedy}")
    if comparison.has_times and not uses_common_calendar(before):
        dates = "true dates, to which holidays, events and other data of the same days can be linked"
        remedy = "prepare() (promesse-geo prepare) moves days to a common calendar"
        reasons.append(f"{dates}; {remedy}, and so does publish with calendar='common' (--calendar common)")
    if reasons:
        return Finding(test, REVIEW, f"the original has {', and '.join(reasons)}")
    return Finding(test, PASSED, "no gap of 4 h or more within a trace, and days of the common calendar")


def _check_zero_fixes(found: Problems) -> Finding:
    """Check that the original has no fixes at (0, 0), which mechanisms take for true."""
    test, fixes = "no zero fixes in the original", counted(found.zero_fixes, "fix", "fixes")
    if found.zero_fixes:
        reason = f"the original has {fixes} at exactly (0, 0); {_IF_KEPT}, paths to and from there are published"
        return Finding(
            test, REVIEW, f"{reason}; first apply drop_zero() (promesse-geo prepare) to the raw data, or use publish"
        )
    return Finding(test, PASSED, "no fix lies at exactly (0, 0)")


def _check_jumps(found: Problems) -> Finding:
    """Check that the original has no jumps, which mechanisms take for true; only true times show speeds."""
    if found.jumps is None:
        reason = "days were moved to the common calendar, which hides speeds; info and publish count jumps of raw data"
        return Finding(JUMPS, LEFT_OUT, reason)
    if found.jumps:
        fast = f"{counted(found.jumps, 'record')} that would need over {FASTEST:g} m/s"
        reason = f"the original has {fast}; {_IF_KEPT}, paths to and from there are published"
        remedy = f"drop_jumps(max_speed={FASTEST:g}) (promesse-geo prepare --max-speed {FASTEST:g})"
        return Finding(JUMPS, REVIEW, f"{reason}; first apply {remedy} to the raw data, or use publish")
    return Finding(JUMPS, PASSED, f"no record needs over {FASTEST:g} m/s")


def _compare(comparison: Comparison, named: Mechanism | None, epsilon: float | None) -> list[Finding]:
    """Run the tests that need both data sets."""
    before, after = comparison.original, comparison.protected
    if not before.records or not after.records:
        reason = f"the {'protected data' if before.records else 'original'} is empty: there is nothing to compare"
        return [Finding("there are records", FAILED, reason)]
    noted = noted_mechanism(after)
    mechanism, identified = identify(comparison, named)
    if comparison.has_times and (keeps_periods(after.protection) or getattr(mechanism, "keeps_periods", False)):
        raise_if_renumbered(comparison.pairs)
    if epsilon is None and isinstance(mechanism, Promesse):
        epsilon = mechanism.epsilon
    if isinstance(mechanism, WaitForMe):  # moves traces as far as it needs
        comparison = replace(comparison, beside=math.inf)
    if isinstance(mechanism, GeoIndistinguishability):
        comparison = replace(comparison, beside=max(comparison.beside, 4 / mechanism.epsilon))  # twice the mean
    left_out, problems = _left_out(comparison, mechanism), find_problems(before)
    may_turn = _may_turn_back(noted if named is None else named)
    tests: list[Callable[[], Finding]] = [
        lambda: check_user_names(before, after),
        lambda: _check_prepared(comparison, problems),
        lambda: _check_zero_fixes(problems),
        lambda: _check_jumps(problems),
        lambda: _check_users(comparison, mechanism),
        lambda: left_out.get(_FIRST) or _check_first_points(comparison, epsilon, by_path=may_turn),
        lambda: left_out.get(_LAST) or _check_last_points(comparison, epsilon),
        lambda: left_out.get(TIMES) or check_times(comparison, mechanism),
        lambda: check_locations(comparison, mechanism),
        lambda: _check_stays(comparison, mechanism),
        lambda: left_out.get(RECORDS) or check_records(comparison, mechanism),
        lambda: _check_noise(comparison, mechanism, named=mechanism in map(main_mechanism, (named, noted))),
        lambda: check_digits(comparison, mechanism),
    ]
    people = number_owners(before)[0]
    alone = [one_person()] if len(people) == 1 else []
    findings = [test() for test in progress_bar(tests, label="checking", unit="tests")]
    return [identified, *alone, *findings, *check_ends(comparison)]


def one_person() -> Finding:
    """Return the finding on data of a single person, who cannot be confused with anybody."""
    return Finding(
        "there are several people",
        REVIEW,
        "all data are of one user: whoever knows who was recorded knows whose every trace is, and new names hide "
        "nothing. No test compares the user with other people",
    )


def _left_out(comparison: Comparison, mechanism: Mechanism | None) -> dict[str, Finding]:
    """Return the findings of tests that cannot judge these data, by test: by design, or without common users."""
    reasons = {} if comparison.has_times else dict.fromkeys((TIMES, RECORDS), _OTHER_CALENDAR)
    if isinstance(mechanism, GeoIndistinguishability):
        reasons |= dict.fromkeys((_FIRST, _LAST, TIMES), "geo-indistinguishability keeps times and does not hide ends")
    elif isinstance(mechanism, WaitForMe):
        kept = "Wait for Me keeps times and ends, and publishes one trace of each group unchanged"
        reasons |= dict.fromkeys((_FIRST, _LAST, TIMES, RECORDS), kept)
    elif not comparison.by_user:
        none = not len(comparison.pairs.originals)
        why = "no user is in both data sets" if none else "user names do not mean the same people"
        reasons |= dict.fromkeys((_FIRST, _LAST), f"{why}: compare before you rename users (--keep-users)")
    return {test: Finding(test, LEFT_OUT, reason) for test, reason in reasons.items()}


def _check_users(comparison: Comparison, mechanism: Mechanism | None) -> Finding:
    """Report how many traces have their user in both data sets, and whether they look like the same people."""
    test = "users are matched or renamed"
    before, after, compared = len(comparison.original), len(comparison.protected), len(comparison.pairs.originals)
    if not compared:
        reason = "no user is in both data sets"
        if mechanism is not None:
            return Finding(test, PASSED, f"{reason}, so they were renamed")
        return Finding(test, REVIEW, f"{reason}: compare with the users kept (--keep-users), before you rename them")
    reason = f"{compared:,} of {counted(after, 'trace')} compared"
    apart = int(comparison.apart.sum())
    if not comparison.by_user:
        lie = f"{apart:,} of {counted(compared, 'trace')} {'lies' if apart == 1 else 'lie'}"
        reason = f"{lie} apart from the original of the same user name, so names may not mean the same people"
        return Finding(test, REVIEW, f"{reason}; compare before you rename users")
    if compared < after:
        return Finding(test, REVIEW, f"{reason}; the original does not have the users of the others")
    missing = before - compared
    dropped = f"; {counted(missing, 'trace')} of the original {'is' if missing == 1 else 'are'} not published"
    return Finding(test, PASSED, reason + dropped if missing else reason)


def _distances_reason(distances: np.ndarray) -> str:
    return f"the nearest is {distances.min():,.1f} m away, the median {np.median(distances):,.1f} m"


def _judge_ends(test: str, distances: np.ndarray) -> Finding:
    """Judge the distances between published and original ends where no epsilon is known."""
    nearest, close = _distances_reason(distances), int((distances <= CLOSE).sum())
    if 2 * close > len(distances):
        lie = "lies" if close == 1 else "lie"
        return Finding(test, FAILED, f"{close:,} of {len(distances):,} {lie} within {CLOSE:g} m of the original ones")
    return Finding(test, REVIEW, f"specify epsilon= (--epsilon) to judge: {nearest}")


def _short_of(epsilon: float, distances: np.ndarray) -> np.ndarray:
    """Whether distances are less than ε, beyond the rounding of numbers."""
    return epsilon - distances > 1e-9 * epsilon + 1e-8


def _may_turn_back(known: Mechanism | None) -> bool:
    """Whether paths may turn back before first points, which lie farther along them: behind zones, with cut ends."""
    return isinstance(known, Chain) or (isinstance(known, Promesse) and known.ends > 0)


def _check_first_points(comparison: Comparison, epsilon: float | None, *, by_path: bool) -> Finding:
    """Check that first points are ε away from the original ones, or with `by_path` after at least ε of path."""
    test, distances = _FIRST, comparison.end_distances(first=True)
    nearest = _distances_reason(distances)
    if epsilon is None:
        return _judge_ends(test, distances)
    near = np.flatnonzero(_short_of(epsilon, distances))
    if len(near) and by_path and not comparison.has_times:
        return Finding(test, LEFT_OUT, _OTHER_CALENDAR)
    close = len(near)
    if by_path and close:
        close = int(_short_of(epsilon - 2 * FINE, comparison.hidden_paths(near, first=True)).sum())
    if not close:
        if not len(near):
            return Finding(test, PASSED, f"all are at least {epsilon:g} m away")
        returned = f"{counted(len(near), 'trace')} turned back and came nearer"
        return Finding(test, PASSED, f"all are at least {epsilon:g} m of path after the original start; {returned}")
    traces = counted(len(distances), "trace")
    reason = f"{close:,} of {traces} {'begins' if close == 1 else 'begin'} nearer; {nearest}"
    if epsilon - distances.min() < 2 * FINE:
        reason += "; rounding may cause this: protect with an epsilon that is some centimetres larger"
    return Finding(test, FAILED, reason)


def _check_last_points(comparison: Comparison, epsilon: float | None) -> Finding:
    """Check that from each last point on the original trace goes on for at least ε.

    Promesse publishes a point only if the trace gets ε away from it later. This point may be near the end if the trace
    turns back, but the path to the end is never shorter than ε.
    """
    test, distances = _LAST, comparison.end_distances(first=False)
    nearest = _distances_reason(distances)
    if epsilon is None:
        return _judge_ends(test, distances)
    near = np.flatnonzero(_short_of(epsilon, distances))
    if len(near) and not comparison.has_times:
        return Finding(test, LEFT_OUT, _OTHER_CALENDAR)
    close = int(_short_of(epsilon - 2 * FINE, comparison.hidden_paths(near, first=False)).sum())
    if close:
        traces = counted(len(distances), "trace")
        reason = f"{close:,} of {traces} {'ends' if close == 1 else 'end'} less than {epsilon:g} m before the original"
        return Finding(test, FAILED, f"{reason}; {nearest}")
    returned = f"; {counted(len(near), 'trace')} turned back and came nearer" if len(near) else ""
    return Finding(test, PASSED, f"all are at least {epsilon:g} m of path before the original end{returned}")


def _check_stays(comparison: Comparison, mechanism: Mechanism | None) -> Finding:
    """Report how many stays an attack retrieves: that which averages noise for geo-indistinguishability."""
    test, noisy = "stays are hidden", isinstance(mechanism, GeoIndistinguishability)
    stays, retrieved, score = retrieve_stays(comparison, noisy=noisy)
    if not stays:
        return Finding(test, PASSED, "the original has no stays")
    attack = "an attack that averages noise" if noisy else "the paper's attack"
    measured = f"{attack} retrieves {retrieved:,} of {stays:,} ({score})"
    if retrieved <= _FEW_STAYS * stays:
        return Finding(test, PASSED, f"{measured}; stronger attacks may retrieve more")
    if noisy:
        return Finding(test, REVIEW, f"{measured}: geo-indistinguishability hides single records, not stays")
    if isinstance(mechanism, Promesse):
        return Finding(test, REVIEW, f"{measured}: a larger epsilon hides more")
    verdict = FAILED if mechanism is None and retrieved >= _MOST_STAYS * stays else REVIEW
    return Finding(test, verdict, f"{measured}; stronger attacks retrieve more")


def _check_noise(comparison: Comparison, mechanism: Mechanism | None, *, named: bool) -> Finding:
    """Check that no obvious seed gives the noise."""
    test = "noise has no guessable seed"
    if has_guessable_noise(comparison, mechanism, named=named):
        reason = "an easily guessed seed gives the noise, so anybody can subtract it; protect without a seed"
        return Finding(test, FAILED, reason)
    tried = "" if named else " at the levels of the paper or round ones; name the mechanism to try its own"
    return Finding(test, PASSED, f"no obvious seed of geo-indistinguishability gives these locations{tried}")


def check_digits(comparison: Comparison, mechanism: Mechanism | None) -> Finding:
    """Check that the digits of coordinates reveal no noise.

    The last digits of noise that was drawn as floating-point numbers narrow down the original location (Mironov, CCS
    2012), so each noisy record should lie on a grid, of a centimetre at least. Promesse and Wait for Me draw no noise.
    """
    test, fine, protected = "digits reveal no noise", np.flatnonzero(comparison.fine), comparison.protected
    if isinstance(mechanism, Promesse | WaitForMe):
        return Finding(test, PASSED, f"{type(mechanism).__name__} draws no noise")
    if not len(fine):
        return Finding(test, PASSED, "no point is finer than a centimetre")
    some = fine[:: len(fine) // _SAMPLE + 1]
    if _is_grid(protected, some, least=0) and _is_grid(protected, fine, least=_PAIRS):
        return Finding(test, PASSED, "the points lie on a grid no finer than a centimetre")
    points = f"{len(fine):,} of {counted(protected.records, 'point')} {'is' if len(fine) == 1 else 'are'}"
    condition = "" if isinstance(mechanism, GeoIndistinguishability) else "if noise moved them, "
    reason = (
        f"{points} finer than a centimetre: {condition}the last digits may reveal how it was drawn; protect with grid= "
        "(--grid), or round the coordinates to a centimetre"
    )
    return Finding(test, REVIEW, reason)


def _is_grid(traces: Traces, records: np.ndarray, *, least: float) -> bool:
    """Whether rows, and records of a row, lie a centimetre apart where chance would bring `least` pairs nearer."""
    x, y = traces.space.sinusoidal(traces.points[records])
    order = np.argsort(y)
    steps = np.diff(y[order])
    if np.any((steps > _SAME) & (steps < FINE - _SAME)):
        return False
    spread = max(np.ptp(np.quantile(axis, [0.1, 0.9])) for axis in (x, y))  # of most: outliers do not count
    if 0.64 * len(y) ** 2 * FINE < least * spread:
        return False
    rows = np.concatenate(([0], np.cumsum(steps > _SAME)))
    order = order[np.lexsort((x[order], rows))]
    steps = np.diff(x[order])
    return not np.any((np.diff(rows) == 0) & (steps > _SAME) & (steps < FINE - _SAME))
