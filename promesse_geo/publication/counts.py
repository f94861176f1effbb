"""The counts of a publication, in words and as findings of the audit."""

from collections.abc import Mapping
from datetime import tzinfo

import pandas as pd

from promesse_geo.audit import FAILED, JUMPS, LEFT_OUT, PASSED, REVIEW, Finding, one_person
from promesse_geo.mechanisms import Mechanism, mechanism_in_words
from promesse_geo.mechanisms.privacy_zones import few_in_words, unclear_in_words
from promesse_geo.messages import counted, counted_of, span
from promesse_geo.preprocess.problems import FAST, FASTEST
from promesse_geo.publication.choices import CALENDARS, Choices, split_mechanism
from promesse_geo.publication.result import aligned

_CLEAR = "most traces of each user begin and end there, and no other place has half as many ends"


def findings_of(counts: Mapping[str, int], mechanism: Mechanism, *, are_dated: bool) -> list[Finding]:
    """Return the findings on the raw data; speeds are known only if the data `are_dated`, with true times."""
    alone = [one_person()] if counts["users"] == 1 else []
    return [*alone, *_of_places(counts, mechanism), *_of_speeds(counts, are_dated=are_dated), _of_axes(counts)]


def _of_places(counts: Mapping[str, int], mechanism: Mechanism) -> list[Finding]:
    """Return the findings on zones: on places that are found, and on users whom given zones name."""
    zones = split_mechanism(mechanism)[0]
    found = [each.places for each in zones if each.zones is None]
    named = any(each.zones is not None and each.zones.owners is not None for each in zones)
    return [*([_of_found(counts, found[0])] if found else []), *([_of_named(counts)] if named else [])]


def _of_found(counts: Mapping[str, int], places: int) -> Finding:
    test, users = "zones lie around the places of most ends", counts["users"]
    unclear, few = counts["zone_unclear_users"], counts["zone_users_with_few_ends"]
    reasons = [few_in_words(few, users)] * bool(few) + [unclear_in_words(unclear, users, places)] * bool(unclear)
    return Finding(test, REVIEW, "; ".join(reasons)) if reasons else Finding(test, PASSED, _CLEAR)


def _of_named(counts: Mapping[str, int]) -> Finding:
    test, users, without = "users have zones", counts["users"], counts["users_without_zone"]
    if not without:
        return Finding(test, PASSED, "zones= (--zones) names all of them")
    reason = f"{counted_of(without, users, 'user', 'has', 'have')} no zone, because zones= (--zones) names others only"
    if without < users:
        return Finding(test, REVIEW, reason)
    return Finding(test, FAILED, f"{reason}: the names must be those of the data, before users are renamed")


def _of_speeds(counts: Mapping[str, int], *, are_dated: bool) -> list[Finding]:
    test, jumps, fast = "no fast steps in the raw data", counts["kept_jumps"], counts["fast_steps"]
    if not are_dated:
        reason = "the raw data lie on the common calendar, which hides speeds"
        return [Finding(name, LEFT_OUT, reason) for name in (JUMPS, test)]
    findings = [Finding(name, PASSED, "none is kept") for name in (JUMPS, test)]
    if jumps:
        reason = f"{counted(jumps, 'record')} that would need over {FASTEST:g} m/s {'is' if jumps == 1 else 'are'} kept"
        remedy = f"with paths to and from there: max_speed={FASTEST:g} (--max-speed {FASTEST:g}) drops them"
        findings[0] = Finding(JUMPS, REVIEW, f"{reason}, {remedy}")
    if fast:
        steps = f"{counted(fast, 'step')} over {FAST:g} m/s {'is' if fast == 1 else 'are'} kept, with the path along"
        remedy = f"if nobody took a plane or a fast train, pass max_speed={FAST:g} (--max-speed {FAST:g})"
        findings[1] = Finding(test, REVIEW, f"{steps} them: {remedy}")
    return findings


def _of_axes(counts: Mapping[str, int]) -> Finding:
    test = "x and y are not swapped"
    if counts["swapped_axes"]:
        return Finding(test, REVIEW, "the data lie far from their CRS or time zone, and near it with x and y swapped")
    if counts["unknown_axes"]:
        return Finding(
            test, LEFT_OUT, "neither the area of the CRS nor a time zone (tz, --tz) tells where the data are"
        )
    return Finding(test, PASSED, "with x and y swapped, the data would lie no nearer to their CRS and time zone")


def dropped_in_words(counts: Mapping[str, int]) -> list[str]:
    """Return in words how many records were dropped by cleaning."""
    words = {
        "dropped_zero_fixes": ("fix at exactly (0, 0)", "fixes at exactly (0, 0)"),
        "dropped_jumps": ("record that implies too high a speed", "records that imply too high a speed"),
    }
    return [counted(counts[name], *nouns) for name, nouns in words.items() if counts[name]]


def counts_in_words(
    counts: Mapping[str, int], choices: Choices, mechanism: Mechanism, *, zone: tzinfo | None
) -> list[str]:
    """Return the counts as lines of text: what was read, what was odd, and what was done with it."""
    zeros, speed = "dropped" if counts["dropped_zero_fixes"] else "kept", choices.max_speed
    slower_too = speed is not None and speed < FASTEST and counts["dropped_jumps"] > counts["jumps"]
    jumps = (
        "dropped" if counts["dropped_jumps"] else f"kept; max_speed={FASTEST:g} (--max-speed {FASTEST:g}) drops them"
    )
    if speed is not None and speed > FASTEST and counts["dropped_jumps"]:
        jumps = f"{counts['dropped_jumps']:,} over {speed:g} m/s dropped"
    slower = f"kept; if nobody travelled as fast, pass max_speed={FAST:g} (--max-speed {FAST:g})"
    gap, kept = span(pd.Timedelta(choices.gap, unit="ns")), counted(counts["kept_users"], "user")
    rows = [
        ("records", "record", f"of {counted(counts['users'], 'user')}", ""),
        ("zero_fixes", "fix", "at exactly (0, 0)", zeros),
        ("jumps", "record", f"that would need over {FASTEST:g} m/s", jumps),
        ("dropped_jumps", "record", f"in all that would need over {speed or 0:g} m/s", "dropped" * slower_too),
        ("fast_steps", "other step", f"over {FAST:g} m/s", slower),
        ("equal_times", "record", "at the time of the record before", "kept"),
        ("single_record_users", "user", "with a single record", ""),
        ("breaks", "break", "of the recorder", "traces are split there"),
        ("zone_records", "record", "in privacy zones", "removed"),
        ("zone_breaks", "break", "where they were removed", "traces are split there"),
        ("zone_users", "user", "in privacy zones entirely", "dropped"),
        ("zone_users_with_fewer_places", "user", "with fewer places than asked for", "a zone around each of them"),
        ("gaps", "gap", f"of {gap} or more", "traces are split there"),
        ("dropped_users", "user", "with too few days", "dropped"),
        ("dropped_other_days", "record", "of other days or such users", "dropped"),
        ("traces", "trace", "after splitting at gaps and breaks", f"of {kept}"),
        ("dropped_traces", "trace", "that cannot be protected", "dropped"),
        ("published_users", "user", "in the data to publish", ""),
        ("published_traces", "trace", "to publish", ""),
        ("published_records", "record", "to publish", ""),
    ]
    lines = [
        f"{counts[name]:,} {_noun(noun, counts[name])} {rest}{f' ({done})' if done else ''}"
        for name, noun, rest, done in rows
        if counts[name] and not (name == "dropped_jumps" and not done)
    ]
    protection = mechanism_in_words(mechanism.description())
    calendar = f"{CALENDARS[choices.calendar]}; {_days_of(choices, zone)}"
    return [f"Protected with {protection}. Calendar: {calendar}.", *aligned(lines)]


def _days_of(choices: Choices, zone: tzinfo | None) -> str:
    """Return where days begin: in the zone of the choices, else in that of the times."""
    if choices.zone is not None:
        return f"days of {choices.zone}"
    return "days of the local times" if zone is None else f"days of {zone}, the zone of the times (tz, --tz: another)"


def _noun(singular: str, count: int) -> str:
    """Return a noun in the form for a count."""
    return singular if count == 1 else f"{singular}es" if singular.endswith("x") else f"{singular}s"
