"""Clean, prepare and protect raw trajectories: what `publish` does between reading and checking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from promesse_geo.mechanisms import Mechanism, chained
from promesse_geo.messages import CountedWarning, Remark, collected_warnings, counted, remarks_of
from promesse_geo.preprocess.problems import Unprepared
from promesse_geo.publication.choices import Choices, split_mechanism
from promesse_geo.publication.cleaning import AppliedZones, clean, count_published_users, split_days
from promesse_geo.publication.counts import dropped_in_words
from promesse_geo.traces.traces import Traces


@dataclass(frozen=True, eq=False)
class Work:
    """What became of raw data.

    Parameters
    ----------
    cleaned : Traces
        The data without fixes at (0, 0) and jumps, before zones are removed.
    parts, protected : Traces
        The prepared data under random names, and what is left of them, under the same names.
    counts : dict of str to int
        Numbers of records, traces, and of what was odd and what was dropped.
    dropped, remarks : list of str
        What was dropped before the mechanism, and what zones and mechanism warned of, in words.
    warned : list of tuple of Remark
        The remarks of each warning of zones and mechanism, which can be added.
    """

    cleaned: Traces
    parts: Traces
    protected: Traces
    counts: dict[str, int]
    dropped: list[str]
    remarks: list[str]
    warned: list[tuple[Remark, ...]]


def protect_raw(raw: Traces, choices: Choices, mechanism: Mechanism, *, seed: str | None = None) -> Work:
    """Clean, prepare and protect raw data.

    Parameters
    ----------
    raw : Traces
        The raw data, with one trace for each person.
    choices : Choices
        The parameters.
    mechanism : Mechanism
        A mechanism that `check_mechanism` accepted.
    seed : str, optional
        A secret that makes the names of the parts repeatable.
    """
    zones, after = split_mechanism(mechanism)
    cleaned, counts = clean(raw, choices)
    applied = AppliedZones(cleaned, zones)
    parts, of_parts, remarks = split_days(applied.rest, applied.recorded_breaks, choices, seed=seed)
    counts |= applied.counts
    dropped = [*dropped_in_words(counts), *remarks]
    with collected_warnings() as caught:
        protected = applied.cut(after.protect(parts), parts) if parts.records else parts
    protected = replace(protected, protection=chained(raw.protection, mechanism.description()))
    counts |= of_parts | {
        "dropped_traces": len(parts) - len(protected),
        "published_users": count_published_users(raw, parts, protected) if protected.records else 0,
    }
    warned = [_without_remedies(warning) for warning in caught]
    words = [*applied.remarks, *(str(CountedWarning(remarks)) for remarks in warned)]
    return Work(cleaned, parts, protected, counts, dropped, words, [*applied.warned, *warned])


def check_rest(records: int, dropped: Sequence[str], reason: str) -> None:
    """Raise ValueError if no record is left, and say what was dropped before."""
    if not records:
        before = f" Dropped before: {', '.join(dropped)}." if dropped else ""
        raise ValueError(f"Nothing is left to publish: {reason}{'' if reason.endswith('.') else '.'}{before}")


def unkept(mechanism: Mechanism, counts: Mapping[str, int]) -> str:
    """Return that no record is left to protect, and what to change if privacy zones removed records."""
    words = "no record is left after cleaning and preparation."
    if counts.get("zone_records", 0):
        remedies = dict.fromkeys(zone.remedy for zone in split_mechanism(mechanism)[0])
        words += f" Privacy zones removed {counted(int(counts['zone_records']), 'record')}. {' '.join(remedies)}"
    return words.strip()


def unprotected(mechanism: Mechanism, counts: Mapping[str, int]) -> str:
    """Return that no trace could be protected, and what to change: also the gap if it left few records a trace."""
    words = f"no trace could be protected. {mechanism.remedy}".strip()
    if 4 * counts["gaps"] > counts["records"]:
        words += (
            f" {counted(int(counts['gaps']), 'gap')} split {counted(int(counts['records']), 'record')}: take a longer "
            "gap (--gap)."
        )
    return words


def _without_remedies(warning: UserWarning) -> tuple[Remark, ...]:
    """Return the remarks of a warning without remedies for data that are not prepared: the audit has those here."""
    return tuple(each for each in remarks_of(warning) if not isinstance(each, Unprepared))
