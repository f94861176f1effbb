"""Clean raw trajectories, choose their days and split them at gaps, with counts of all that is odd or dropped."""

from dataclasses import replace

import numpy as np
import pandas as pd

from promesse_geo.mechanisms import PrivacyZones
from promesse_geo.mechanisms.zones import PlacedZones
from promesse_geo.messages import Remark
from promesse_geo.preprocess.calendar import collapse, keep_first_days
from promesse_geo.preprocess.gaps import split
from promesse_geo.preprocess.jumps import Steps, is_zero
from promesse_geo.preprocess.problems import are_axes_swapped, can_tell_axes, find_problems
from promesse_geo.publication.choices import Choices
from promesse_geo.traces.traces import Traces, freeze

_PAPER_DAYS = 20


def clean(raw: Traces, choices: Choices) -> tuple[Traces, dict[str, int]]:
    """Drop fixes at (0, 0) and jumps; return the rest, and counts of what was found and dropped."""
    odd, zero = find_problems(raw), is_zero(raw)
    located = raw.select(~zero) if zero.any() else raw
    found, speed = find_problems(located), choices.max_speed
    keep = np.ones(located.records, bool)
    if speed is not None and found.jumps is not None:  # on the common calendar days are closer than they were
        keep = Steps.survey(located, speed).longest_chains(speed)
    kept = zero & choices.keep_zero
    kept[~zero] = keep
    reached = raw.select(kept)
    rest = find_problems(reached)
    return reached, {
        "records": raw.records,
        "users": len(raw),
        "single_record_users": odd.single_record_users,
        "zero_fixes": odd.zero_fixes,
        "dropped_zero_fixes": 0 if choices.keep_zero else int(zero.sum()),
        "jumps": found.jumps or 0,
        "dropped_jumps": int((~keep).sum()),
        "kept_jumps": rest.jumps or 0,
        "fast_steps": rest.fast_steps or 0,
        "equal_times": odd.equal_times,
        "swapped_axes": are_axes_swapped(raw, zone=choices.zone),
        "unknown_axes": not can_tell_axes(raw, zone=choices.zone),
    }


def split_days(
    traces: Traces, recorded: np.ndarray, choices: Choices, *, seed: str | None = None
) -> tuple[Traces, dict[str, int], list[str]]:
    """Choose days and split Traces at gaps; return the parts, counts, and what was dropped in words.

    The parts have random names, which a secret seed makes repeatable. Parts are one more for each user than the breaks
    and gaps of the days that are kept. The breaks at the positions `recorded` are the recorder's, others of zones.
    """
    zone = choices.zone if traces.time_format.zone is not None else None  # naive times are local times
    days = _PAPER_DAYS if choices.calendar == "paper" else max(traces.records, 1)
    dated = _break_at_gaps(traces, choices.gap)
    if choices.calendar != "keep-dates":
        dated, zone = collapse(dated, zone), None
    kept, dropped = keep_first_days(dated, days, choices.min_days or 1, zone)
    parts = split(kept, choices.gap, seed=seed, keep_user=False)
    breaks, of_recorder = (
        int(np.isin(after, kept.positions).sum()) for after in (traces.positions[traces.breaks], recorded)
    )
    return (
        parts,
        {
            "kept_users": len(kept),
            "dropped_users": len(traces) - len(kept),
            "dropped_other_days": traces.records - kept.records,
            "breaks": of_recorder,
            "zone_breaks": breaks - of_recorder,
            "gaps": len(parts) - len(kept) - breaks,
            "traces": len(parts),
        },
        dropped.parts(),
    )


def _break_at_gaps(traces: Traces, gap: int) -> Traces:
    """Return Traces with breaks at gaps of true time, which the common calendar may close."""
    after = np.flatnonzero(np.diff(traces.times) >= gap) + 1
    after = np.setdiff1d(after, traces.segments)
    return replace(traces, breaks=freeze(np.union1d(traces.breaks, after)))


class AppliedZones:
    """Privacy zones that were applied to raw data, and are applied again to what is published of it.

    Parameters
    ----------
    raw : Traces
        The cleaned data, with one trace per user.
    mechanisms : list of PrivacyZones
        Zones in their order.
    """

    def __init__(self, raw: Traces, mechanisms: list[PrivacyZones]) -> None:
        self._raw, self._placed = raw, list[PlacedZones]()
        self.rest, self.remarks, self.warned, self._with_zone = raw, list[str](), list[tuple[Remark, ...]](), set[str]()
        for mechanism in mechanisms:
            self._placed.append(mechanism.place(raw))  # the edges of other zones look like ends
            self.rest, remark = mechanism.cut(self.rest, self._placed[-1])
            self.remarks += [str(remark)] if str(remark) else []
            self.warned.append((remark,))
            everybody = any(owner is None for owner in self._placed[-1].owners)
            self._with_zone |= set(map(str, raw.users)) if everybody else set(self._placed[-1].names)
        if mechanisms and self.rest.records == raw.records and len(self.rest.breaks) == len(raw.breaks):
            self.remarks.append("No record lies in a privacy zone: are the places of the zones and their CRS right?")

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of records and users removed, and of users with other or fewer places than asked."""
        return {
            "zone_records": self._raw.records - self.rest.records,
            "zone_users": len(self._raw) - len(self.rest),
            "zone_unclear_users": max((placed.unclear for placed in self._placed), default=0),
            "zone_users_with_fewer_places": max((placed.fewer for placed in self._placed), default=0),
            "zone_users_with_few_ends": max((placed.few for placed in self._placed), default=0),
            "users_without_zone": len(set(map(str, self._raw.users)) - self._with_zone) if self._placed else 0,
        }

    @property
    def recorded_breaks(self) -> np.ndarray:
        """The positions of the records of `rest` that begin a segment of the recorder, shape (breaks,)."""
        kept = np.zeros(self._raw.positions.max(initial=-1) + 1, bool)
        kept[self.rest.positions] = True
        recorded = self._raw.select(kept[self._raw.positions])
        return recorded.positions[recorded.breaks]

    def cut(self, protected: Traces, parts: Traces) -> Traces:
        """Return protected parts without points in zones, with breaks instead of lines that cross one."""
        owners = owners_of_parts(self._raw, parts)
        for placed in self._placed:
            users = [placed.names.get(str(user), "") for user in self._raw.users[owners]]
            protected = placed.cut(protected, dict(zip(map(str, parts.users), users, strict=True)))
        return protected


def owners_of_parts(raw: Traces, parts: Traces) -> np.ndarray:
    """Return the number of the raw trace that each part comes from, int64 of shape (parts,)."""
    owners = np.empty(raw.positions.max() + 1, np.int64)
    owners[raw.positions] = raw.trace_numbers
    return owners[parts.positions[parts.offsets[:-1]]]


def named_by_owner(raw: Traces, parts: Traces, protected: Traces) -> tuple[Traces, Traces]:
    """Return parts and protected parts, in their order, under names that show which are of one user: 0000012-00003."""
    chosen = parts.users.get_indexer(protected.users)
    if (chosen < 0).any():  # names that the mechanism made
        return parts, protected
    names = _owned_names(raw, parts)
    return replace(parts, users=names), replace(protected, users=names.take(chosen))


def split_by_owner(raw: Traces, cleaned: Traces, choices: Choices, *, like: Traces) -> Traces:
    """Return cleaned data split at gaps, under such names: where traces begin and end before zones are removed.

    Times keep their days, and are naive if those of `like` are.
    """
    parts = split(cleaned, choices.gap, seed=None, keep_user=False)
    return replace(parts, users=_owned_names(raw, parts), time_format=like.time_format)


def _owned_names(raw: Traces, parts: Traces) -> pd.Index:
    """Return a name for each part: the number of its user, and of the part in the order of time."""
    owners, begins = owners_of_parts(raw, parts), parts.times[parts.offsets[:-1]]
    order = np.lexsort((begins, owners))
    numbers = np.empty(len(order), np.int64)
    numbers[order] = pd.Series(owners[order]).groupby(owners[order]).cumcount()
    return pd.Index([f"{owner:07d}-{number:05d}" for owner, number in zip(owners, numbers, strict=True)], dtype=str)


def count_published_users(raw: Traces, parts: Traces, protected: Traces) -> int:
    """Number of users of whom anything is published."""
    chosen = parts.users.get_indexer(protected.users)
    return len(np.unique(owners_of_parts(raw, parts)[chosen[chosen >= 0]]))
