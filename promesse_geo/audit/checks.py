"""Checks of protected data before publication: what it shares with the original that it should not."""

import math
from collections.abc import Callable
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from promesse_geo.audit.comparison import CLOSE, FINE, Comparison, by_chance, sample
from promesse_geo.audit.findings import FAILED, PASSED, REVIEW, Finding, find_other_columns, worst_first
from promesse_geo.audit.names import check_user_names
from promesse_geo.audit.recognition import identify, noted_mechanism, raise_if_swapped
from promesse_geo.audit.seeds import has_guessable_noise
from promesse_geo.audit.stays import retrieve_stays
from promesse_geo.io.writers.crs import has_custom_text
from promesse_geo.mechanisms import GeoIndistinguishability, Mechanism, Promesse, WaitForMe
from promesse_geo.messages import counted, invalid, listed
from promesse_geo.preprocess.calendar import DAY, FIRST_DAY
from promesse_geo.preprocess.problems import FASTEST, find_problems
from promesse_geo.threads import progress_bar
from promesse_geo.traces.columns import ROLES, Name, Names, known_attributes
from promesse_geo.traces.frames import as_points
from promesse_geo.traces.records import DroppedColumns
from promesse_geo.traces.traces import Traces, as_traces, read_frame
from promesse_geo.validation import check_number

_FEW = 5  # times close to original ones: one chance in a hundred, where half of all are and one in ten by chance
_GAP = DAY // 6  # at which prepare splits
_LONGEST = 1_000 * DAY  # prepared data is shorter
_TIMES, _LOCATIONS = "no original timestamps", "no original locations"
_RECORDS = "no record equals an original one"
_SAMPLE = 100_000  # records that show quickly that there is no grid
_SAME = 1e-6  # metres by which coordinates of one row of a grid differ at most after they were read from a file
_FEW_STAYS, _MOST_STAYS = 0.1, 0.5  # of the original ones: retrieved by chance or by far too many
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
        One row per test: test, verdict ("passed", "review", "failed") and reason, failed tests first, passed ones
        last. "review" marks what only you can decide. Empty data fails. Passing all tests does not prove anonymity.
        Reasons print in full.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read, only one of the two has a time zone, or original and protected data are swapped.

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
    return worst_first([*of_frame, *_compare(Comparison(before, after), mechanism, epsilon)])


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


def _check_prepared(before: Traces) -> Finding:
    """Check that the original was split at long gaps and moved to the common calendar."""
    test, reasons = "data are prepared", []
    at_gap = (np.diff(before.times) >= _GAP) & (np.diff(before.trace_numbers) == 0)
    traces = len(np.unique(before.trace_numbers[:-1][at_gap]))
    if traces:
        reasons.append(f"{counted(traces, 'trace')} with gaps of 4 h or more, across which smoothing interpolates")
    if before.times.min() < FIRST_DAY - DAY or before.times.max() >= FIRST_DAY + _LONGEST:  # a zone may shift a day
        reasons.append("days as they were recorded, not those of the common calendar")
    if reasons:
        reason = f"the original has {', and '.join(reasons)}; prepare() splits at gaps and moves days"
        return Finding(test, REVIEW, reason)
    return Finding(test, PASSED, "no gap of 4 h or more within a trace, and days of the common calendar")


def _check_jumps(before: Traces) -> Finding:
    """Check that the original has no jumps and no fixes at (0, 0), which mechanisms take for true."""
    test, problems = "no impossible jumps in the original", find_problems(before)
    found = [
        words
        for count, words in (
            (problems.zero_fixes, f"{counted(problems.zero_fixes, 'fix', 'fixes')} at exactly (0, 0)"),
            (problems.jumps, f"{counted(problems.jumps or 0, 'record')} that would need over {FASTEST:g} m/s"),
        )
        if count
    ]
    if found:
        reason = f"the original has {' and '.join(found)}, to and from which paths are published"
        remedy = f"apply drop_zero() and drop_jumps(max_speed={FASTEST:g}) before all other steps, or publish()"
        return Finding(test, REVIEW, f"{reason}; {remedy}")
    if problems.jumps is None:  # speeds are unknown on the common calendar
        return Finding("no fix at (0, 0) in the original", PASSED, "no fix lies at exactly (0, 0)")
    return Finding(test, PASSED, f"no record needs over {FASTEST:g} m/s, and none lies at exactly (0, 0)")


def _compare(comparison: Comparison, named: Mechanism | None, epsilon: float | None) -> list[Finding]:
    """Run the tests that need both data sets."""
    before, after = comparison.original, comparison.protected
    if not before.records or not after.records:
        reason = f"the {'protected data' if before.records else 'original'} is empty: there is nothing to compare"
        return [Finding("there are records", FAILED, reason)]
    mechanism, identified = identify(comparison, named)
    if epsilon is None and isinstance(mechanism, Promesse):
        epsilon = mechanism.epsilon
    if isinstance(mechanism, WaitForMe):  # moves traces as far as it needs
        comparison = replace(comparison, beside=math.inf)
    if isinstance(mechanism, GeoIndistinguishability):
        comparison = replace(comparison, beside=max(comparison.beside, 4 / mechanism.epsilon))  # twice the mean
    by_design = isinstance(mechanism, GeoIndistinguishability | WaitForMe)  # keep times, do not hide ends
    ends: list[Callable[[], Finding]] = [
        lambda: _check_first_points(comparison, epsilon),
        lambda: _check_last_points(comparison, epsilon),
    ]
    tests: list[Callable[[], Finding]] = [
        lambda: check_user_names(before, after),
        lambda: _check_prepared(before),
        lambda: _check_jumps(before),
        lambda: _check_users(comparison, mechanism),
        *(ends if comparison.by_user and not by_design else []),
        *([] if by_design else [lambda: _check_times(comparison, mechanism)]),
        lambda: _check_locations(comparison, mechanism),
        lambda: _check_stays(comparison, mechanism),
        *([] if isinstance(mechanism, WaitForMe) else [lambda: _check_records(comparison)]),
        lambda: _check_noise(comparison, mechanism, named=mechanism in (named, noted_mechanism(after))),
        lambda: check_digits(comparison, mechanism),
    ]
    return [identified, *(test() for test in progress_bar(tests, label="checking", unit="tests"))]


def _check_users(comparison: Comparison, mechanism: Mechanism | None) -> Finding:
    """Report how many traces have their user in both data sets, and whether they look like the same people."""
    test = "users are matched or renamed"
    before, after, compared = len(comparison.original), len(comparison.protected), len(comparison.pairs.originals)
    if not compared:
        reason = "no user is in both data sets, so first and last points are not checked"
        if mechanism is not None:
            return Finding(test, PASSED, f"{reason}; compare before you rename users (--keep-users)")
        return Finding(test, REVIEW, f"{reason}: compare with the users kept (--keep-users), before you rename them")
    reason = f"{compared:,} of {counted(after, 'trace')} compared"
    apart = int(comparison.apart.sum())
    if not comparison.by_user:
        lie = f"{apart:,} of {counted(compared, 'trace')} {'lies' if apart == 1 else 'lie'}"
        reason = f"{lie} apart from the original of the same user key, so keys may not mean the same people"
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
        return Finding(test, FAILED, f"{close:,} of {len(distances):,} lie within {CLOSE:g} m of the original ones")
    return Finding(test, REVIEW, f"specify epsilon= (--epsilon) to judge: {nearest}")


def _short_of(epsilon: float, distances: np.ndarray) -> np.ndarray:
    """Whether distances are less than ε, beyond the rounding of numbers."""
    return epsilon - distances > 1e-9 * epsilon + 1e-8


def _check_first_points(comparison: Comparison, epsilon: float | None) -> Finding:
    """Check that first points are ε away from the original ones."""
    test, distances = "first points are hidden", comparison.end_distances(first=True)
    nearest = _distances_reason(distances)
    if epsilon is None:
        return _judge_ends(test, distances)
    close = int(_short_of(epsilon, distances).sum())
    if not close:
        return Finding(test, PASSED, f"all are at least {epsilon:g} m away")
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
    test, distances = "last points are hidden", comparison.end_distances(first=False)
    nearest = _distances_reason(distances)
    if epsilon is None:
        return _judge_ends(test, distances)
    near = np.flatnonzero(_short_of(epsilon, distances))
    close = int(_short_of(epsilon - 2 * FINE, comparison.paths_to_end(near)).sum())
    if close:
        traces = counted(len(distances), "trace")
        reason = f"{close:,} of {traces} {'ends' if close == 1 else 'end'} less than {epsilon:g} m before the original"
        return Finding(test, FAILED, f"{reason}; {nearest}")
    returned = f"; {counted(len(near), 'trace')} turned back and came nearer" if len(near) else ""
    return Finding(test, PASSED, f"all are at least {epsilon:g} m of path before the original end{returned}")


def _check_times(comparison: Comparison, mechanism: Mechanism | None) -> Finding:
    """Check that published times are not original ones; Promesse may keep the first and the last of each trace."""
    same, expected = comparison.same_times
    if isinstance(mechanism, Promesse):
        offsets = (comparison.pairs.protected if comparison.by_user else comparison.protected).offsets
        same = same.copy()
        same[offsets[:-1]] = same[offsets[1:] - 1] = False
    count = int(same.sum())
    whose = " of their user" if comparison.by_user else ""
    counts = f"{count:,} of {len(same):,} published timestamps are original ones{whose}"
    if _beyond_chance(count, expected):
        if comparison.by_user:
            distances = comparison.distances(comparison.time_matches[0][same], np.flatnonzero(same))
            counts += f", who was, in the median, {np.median(distances):,.2f} m from the published location"
        return Finding(_TIMES, REVIEW, counts)
    close = np.count_nonzero(comparison.time_matches[1] >= 2) if comparison.by_user else 0
    if 2 * close > len(same) and close > _FEW:
        reason = f"{close:,} of {len(same):,} published timestamps are next to original ones{whose}"
        return Finding(_TIMES, REVIEW, reason)
    if count:
        return Finding(_TIMES, PASSED, f"{counts}, no more than by chance")
    return Finding(_TIMES, PASSED, f"no published timestamp is an original one{whose}")


def _beyond_chance(same: int, expected: float) -> bool:
    """Whether far more are the same than expected by chance.

    Twice as many are no leak: where original points crowd, as during stays, what is near is not evenly spread.
    """
    return same > 2 * expected + 3 * math.sqrt(expected)


def _check_locations(comparison: Comparison, mechanism: Mechanism | None) -> Finding:
    """Check that published locations are not original ones of their user, nor of anybody at any time."""
    tests = [_check_own_locations] if comparison.by_user else []
    tests += [_check_anywhere, *([_check_moved] if mechanism is None else [])]
    verdict, reason = PASSED, ""
    for check in tests:
        found, why = check(comparison)
        if not reason or (FAILED, REVIEW, PASSED).index(found) < (FAILED, REVIEW, PASSED).index(verdict):
            verdict, reason = found, why
        if verdict == FAILED:
            break
    if verdict == FAILED and isinstance(mechanism, WaitForMe):
        return Finding(_LOCATIONS, REVIEW, f"{reason}: Wait for Me publishes one trace of each group unchanged")
    return Finding(_LOCATIONS, verdict, reason)


def _check_own_locations(comparison: Comparison) -> tuple[str, str]:
    """Verdict and reason: whether locations are original ones of their user."""
    chosen, offsets = comparison.compared
    matches = comparison.location_matches
    same, near = (int((matches >= least).sum()) for least in (2, 1))
    total = len(matches)
    disclosed = _count_disclosed(offsets, matches == 2, same=same, near=near)
    if disclosed:
        return FAILED, f"{counted(disclosed, 'trace')} would be published as recorded, entirely or for the most part"
    counts = f"{same:,} of {total:,} published locations are original ones of their user"
    expected = by_chance(same, near)
    if _beyond_chance(same, expected):
        return REVIEW, f"{counts}; {expected:,.1f} are expected by chance"
    if _is_all_near(near, total, comparison.fine[chosen]):
        return REVIEW, f"{near:,} of {total:,} published locations are next to original ones of their user"
    moved, median = _count_barely_moved(comparison)
    if moved:
        verdict = FAILED if 2 * moved > len(offsets) - 1 else REVIEW
        return verdict, f"{counted(moved, 'trace')} would be published record by record, moved by {median:,.2f} m"
    if same:
        return PASSED, f"{counts}, no more than by chance"
    return PASSED, "no published location is an original one of their user"


def _check_anywhere(comparison: Comparison) -> tuple[str, str]:
    """Verdict and reason: whether locations are original ones of anybody, at whatever time."""
    (chosen, offsets), matches = sample(comparison.protected.counts), comparison.anywhere
    same, near = (int((matches >= least).sum()) for least in (2, 1))
    disclosed = _count_disclosed(offsets, matches == 2, same=same, near=near)
    if disclosed:
        traces = f"{counted(disclosed, 'trace')} {'consists' if disclosed == 1 else 'consist'} of original locations"
        return FAILED, f"{traces} of anybody, entirely or for the most part, whatever the times and the user keys"
    beside = near - same
    expected = float(beside) if 2 * beside > len(matches) else by_chance(same, near)  # unreliable if most are near
    counts = f"{same:,} of {len(matches):,} sampled locations are original ones"
    if _beyond_chance(same, expected) and (same > _FEW or not comparison.by_user):
        return REVIEW, f"{counts} of anybody; {expected:,.1f} are expected by chance"
    if not comparison.by_user and _is_all_near(near, len(matches), comparison.fine[chosen]):
        return REVIEW, f"{near:,} of {len(matches):,} sampled locations are next to original ones of anybody"
    return PASSED, f"{counts} of anybody, no more than by chance" if same else "no sampled location is an original one"


def _check_moved(comparison: Comparison) -> tuple[str, str]:
    """Verdict and reason: whether traces are original ones that were moved by the same distance everywhere."""
    matches, offsets = comparison.moved_steps
    filled = np.append(offsets[:-1][np.diff(offsets) > 0], offsets[-1])
    same, near = (int((matches >= least).sum()) for least in (2, 1))
    disclosed = _count_disclosed(filled, matches == 2, same=same, near=near) if len(matches) else 0
    if disclosed:
        traces = f"{counted(disclosed, 'trace')} {'has' if disclosed == 1 else 'have'} the steps of original ones"
        return FAILED, f"{traces}: moved by about the same distance everywhere, which one known place reveals"
    return PASSED, "no trace is an original one that was moved"


def _is_all_near(near: int, total: int, fine: np.ndarray) -> bool:
    """Whether most locations are near original ones, though their digits are fine: coarse digits bring all near."""
    return 2 * near > total and 2 * int(np.count_nonzero(fine)) > total


def _count_barely_moved(comparison: Comparison) -> tuple[int, float]:
    """Count the traces with as many records as the original, most of them close to those; and return how close."""
    records, others, offsets = comparison.twins
    if not len(records):
        return 0, 0.0
    distances = comparison.distances(others, records)
    long = np.diff(offsets) > 2
    moved = _are_most(offsets, distances <= CLOSE) & long
    return int(moved.sum()), float(np.median(distances[np.repeat(moved, np.diff(offsets))])) if moved.any() else 0.0


def _check_records(comparison: Comparison) -> Finding:
    """Check that no original records are published under any name."""
    protected, matches = comparison.protected, comparison.record_matches
    same, near = (int((matches >= least).sum()) for least in (2, 1))
    expected = by_chance(same, near)
    disclosed = _count_disclosed(protected.offsets, matches == 2, same=same, near=near)
    counts = f"{same:,} of {protected.records:,} published records have the location and time of an original one"
    if disclosed:
        reason = f"{counts}; {counted(disclosed, 'trace')} for the most part, under whatever name"
        return Finding(_RECORDS, FAILED, reason)
    if _beyond_chance(same, expected):
        return Finding(_RECORDS, REVIEW, f"{counts}; {expected:,.1f} are expected by chance")
    records, offsets = sample(protected.counts)
    around = comparison.nearby_records(records)
    close, beside = (int((around >= least).sum()) for least in (2, 1))
    disclosed = _count_disclosed(offsets, around == 2, same=close, near=beside)
    if disclosed:
        reason = f"most records of {counted(disclosed, 'trace')} lie within {CLOSE:g} m of original ones"
        return Finding(_RECORDS, REVIEW, f"{reason} of about the same time")
    if same:
        return Finding(_RECORDS, PASSED, f"{counts}, no more than by chance")
    return Finding(_RECORDS, PASSED, "no published record has the location and time of an original one")


def _count_disclosed(offsets: np.ndarray, disclosed: np.ndarray, *, same: int, near: int) -> int:
    """Count the traces with more original records than others, beyond what chance can give in any trace.

    Of n records at least n/2 are original by chance with a probability of (4p)^(original records) at most.
    """
    records, beside = len(disclosed), near - same
    chance = beside if 2 * beside > records else by_chance(same, near)  # unreliable if most are near
    odds = np.minimum(4 * min(chance, same) / records, 1.0) ** _count(offsets, disclosed) * (len(offsets) - 1)
    return int((_are_most(offsets, disclosed) & (odds < 0.01)).sum())


def _are_most(offsets: np.ndarray, records: np.ndarray) -> np.ndarray:
    return 2 * _count(offsets, records) > np.diff(offsets)


def _count(offsets: np.ndarray, records: np.ndarray) -> np.ndarray:
    return np.add.reduceat(records, offsets[:-1], dtype=np.int64)


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
    """Check that points published at original times are no finer than a centimetre.

    The last digits of noise that was drawn as floating-point numbers narrow down the original location (Mironov, CCS
    2012), so each noisy record should lie on a grid. Points that were computed for new times, as Promesse's, belong to
    no single original record: their digits reveal no more than the path.
    """
    test, fine, protected = "no needless digits", np.flatnonzero(comparison.fine), comparison.protected
    if isinstance(mechanism, Promesse | WaitForMe):
        return Finding(test, PASSED, f"{type(mechanism).__name__} draws no noise")
    if not len(fine):
        return Finding(test, PASSED, "no point is finer than a centimetre")
    some = fine[:: len(fine) // _SAMPLE + 1]
    if _is_grid(protected, some, least=0) and _is_grid(protected, fine, least=_PAIRS):
        return Finding(test, PASSED, "the points lie on a grid no finer than a centimetre")
    same_times = comparison.same_times[0]
    if 2 * np.count_nonzero(same_times) <= len(same_times):
        return Finding(test, PASSED, "points are finer than a centimetre, but not those of original times")
    reason = (
        f"{counted(len(fine), 'point')} of {protected.records:,} are finer than a centimetre and most have original "
        "times: the last digits may reveal how the noise was drawn; protect with grid= (--grid)"
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


def check_frame(frame: gpd.GeoDataFrame, traces: Traces, dropped: DroppedColumns) -> list[Finding]:
    """Check columns, index, row order, categories and attributes of a frame and of the traces read from it."""
    others = [*dropped.columns, *(["Z or M"] if dropped.elevation else [])]
    return [
        find_other_columns(others),
        _check_index(frame, traces.names),
        check_row_order(traces),
        _check_categories(frame, traces.names),
        _check_attributes(frame),
    ]


def check_row_order(traces: Traces) -> Finding:
    """Check that the rows were sorted by user and time when the traces were read."""
    test = "rows are sorted"
    if np.all(traces.positions[1:] > traces.positions[:-1]):
        return Finding(test, PASSED, "they are sorted by user and time")
    reason = (
        "they are not sorted by user and time, and their order may reveal which traces belong together; "
        "pseudonymize() and write() sort them"
    )
    return Finding(test, REVIEW, reason)


def _check_index(frame: gpd.GeoDataFrame, names: Names) -> Finding:
    test, index = "plain index", frame.index
    if names.time_is_index:
        return Finding(test, PASSED, "the index is the time")
    plain = index.nlevels == 1 and pd.api.types.is_integer_dtype(index.dtype) and index.name is None
    if plain and np.array_equal(index.to_numpy(), np.arange(len(index))):
        return Finding(test, PASSED, "the index counts the rows")
    reason = "the index is written to files and does not just count the rows; drop it with reset_index(drop=True)"
    return Finding(test, FAILED, reason)


def _check_categories(frame: gpd.GeoDataFrame, names: Names) -> Finding:
    test = "no unused categories"
    unused, remedy = _unused_categories(None if names.user is None else frame[names.user])
    if not unused:
        return Finding(test, PASSED, "every category of users has a record")
    categories = counted(unused, "category", "categories")
    reason = f"the user column {names.user!r} would publish {categories} without a record; remove them with {remedy}"
    return Finding(test, FAILED, reason)


def _unused_categories(users: pd.Series | None) -> tuple[int, str]:
    """Number of categories without a record, and the call that removes them."""
    if users is not None and isinstance(users.dtype, pd.CategoricalDtype):
        return len(users.cat.categories) - users.nunique(), ".cat.remove_unused_categories()"
    if users is None or not isinstance(users.dtype, pd.ArrowDtype):
        return 0, ""
    column = pa.table([pa.array(users.array)], ["user"]).column(0)
    if not pa.types.is_dictionary(column.type) or not column.num_chunks:
        return 0, ""
    values = pa.chunked_array([chunk.dictionary for chunk in column.chunks]).unique()
    return pc.count(values).as_py() - users.nunique(), ".astype(str)"


def _check_attributes(frame: gpd.GeoDataFrame) -> Finding:
    test = "no attributes"
    others = [key for key in frame.attrs if key != ROLES or frame.attrs[key] != known_attributes(frame)]
    if others:
        return Finding(test, REVIEW, f"the frame's attrs are written to files: {listed(others)}")
    if any(name is not None for name in frame.columns.names):
        return Finding(test, REVIEW, "the columns have a name (frame.columns.name), which is written to files")
    if frame.crs is not None and has_custom_text(frame.crs):
        reason = "the CRS has a name, remarks or a scope that no registry knows; write() removes them, others do not"
        return Finding(test, REVIEW, reason)
    return Finding(test, PASSED, "the frame has no attrs but the roles of its columns and the mechanism")
