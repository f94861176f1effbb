"""The choices of a publication, checked before any work."""

from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Any

from promesse_geo.io.writers import check_output
from promesse_geo.mechanisms import Chain, Mechanism, PrivacyZones, WaitForMe
from promesse_geo.mechanisms.words import chosen_texts
from promesse_geo.messages import invalid
from promesse_geo.preprocess.jumps import check_max_speed
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice, check_duration, check_flag, check_integer, check_path, check_zone

CALENDARS = {
    "common": "all days, moved to a common calendar",
    "paper": "the first 20 days of each user, moved to a common calendar",
    "keep-dates": "true dates, split at gaps only",
}
"""What happens to days, by the name of the choice."""

_SECRET = 32  # characters of a secret that nobody guesses


@dataclass(frozen=True)
class Choices:
    """The checked parameters of cleaning and preparation."""

    zone: tzinfo | None
    calendar: str
    gap: int
    min_days: int | None
    max_speed: float | None
    keep_zero: bool

    @classmethod
    def check(cls, tz: Any, calendar: Any, gap: Any, min_days: Any, max_speed: Any, keep_zero: Any) -> "Choices":
        """Check the parameters; raise TypeError or ValueError."""
        owner, speed = "publish", None
        if max_speed is not None:
            speed = check_max_speed(max_speed, owner=owner)
        return cls(
            None if tz is None else check_zone(tz, name="tz", owner=owner),
            check_choice(calendar, name="calendar", owner=owner, options=list(CALENDARS)),
            check_duration(gap, name="gap", owner=owner),
            None if min_days is None else check_integer(min_days, name="min_days", owner=owner),
            speed,
            check_flag(keep_zero, name="keep_zero", owner=owner),
        )


def check_mechanism(mechanism: Any) -> tuple[list[PrivacyZones], Mechanism]:
    """Return the privacy zones to apply to raw data, and the mechanism to apply to its parts.

    Raises
    ------
    TypeError
        If it is no mechanism.
    ValueError
        If a mechanism has a seed, zones have one that can be guessed, or zones are not followed by a mechanism.
    """
    if not isinstance(mechanism, Mechanism):
        raise TypeError(invalid("mechanism", "publish", "a mechanism such as pg.Promesse(200)", mechanism))
    zones, others = _divide(mechanism)
    if not others or any(isinstance(member, PrivacyZones) for member in others):
        raise ValueError(
            "publish applies privacy zones to the raw data, before all else, and needs a mechanism for what remains. "
            "Pass pg.Chain([pg.PrivacyZones(), pg.Promesse(200)])."
        )
    if any(isinstance(member, WaitForMe) and member.program for member in others):
        raise ValueError("WaitForMe with program='v1.1' draws from a known seed. Pass pg.WaitForMe() to publish.")
    if any(getattr(member, "seed", None) is not None for member in others):
        raise ValueError("The mechanism has a seed. Anyone who guesses it can undo the protection. Omit it to publish.")
    for member in zones:
        if member.seed is not None:
            check_secret(member.seed)
    return split_mechanism(mechanism)


def split_mechanism(mechanism: Mechanism) -> tuple[list[PrivacyZones], Mechanism]:
    """Return the privacy zones at the beginning of a checked mechanism, and the mechanism after them."""
    zones, others = _divide(mechanism)
    return zones, mechanism if not zones else others[0] if len(others) == 1 else Chain(others)


def _divide(mechanism: Mechanism) -> tuple[list[PrivacyZones], list[Mechanism]]:
    """Return the privacy zones at the beginning of a mechanism, and its other members."""
    members = list(mechanism.mechanisms) if isinstance(mechanism, Chain) else [mechanism]
    zones = list[PrivacyZones]()
    for member in members:
        if not isinstance(member, PrivacyZones):
            break
        zones.append(member)
    return zones, members[len(zones) :]


def check_secret(secret: int | str) -> str:
    """Return a secret; raise ValueError, without showing it, if it is short enough to be guessed."""
    if not isinstance(secret, str) or len(secret) < _SECRET:
        raise ValueError(
            f"The secret of privacy zones must be a text of at least {_SECRET} characters that nobody guesses: whoever "
            "does can undo the displacement. Make it with secrets.token_hex(32) (--secret-file and a new FILE), "
            "keep it, and use it again."
        )
    return secret


def check_description(mechanism: Mechanism, raw: Traces) -> None:
    """Raise ValueError if a parameter of a mechanism, which files name, is the key of a user."""
    users = {str(user) for user in raw.users}
    if not users.isdisjoint(chosen_texts(mechanism.description())):
        raise ValueError("A parameter of the mechanism is the key of a user, and files name the parameters. Omit it.")


def check_target(path: Any, *, dry_run: bool, force: Any) -> Path | None:
    """Return the file to write, None if nothing is to be written; raise if it cannot be written."""
    if path is None:
        if not dry_run:
            raise TypeError(invalid("path", "publish", "a path, or None with dry_run=True", path))
        return None
    target = check_path(path, name="path", owner="publish")
    check_output(target, force=check_flag(force, name="force", owner="publish") or dry_run)
    return None if dry_run else target
