"""Published names of users: whether they are pseudonyms, and none that leads back to a user."""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from promesse_geo.audit.findings import FAILED, LOOK, NOT_COMPARABLE, PASSED, Finding
from promesse_geo.messages import counted
from promesse_geo.preprocess.pseudonyms import WHOLE_USER, virtual_names
from promesse_geo.traces.traces import Traces

_PSEUDONYM = r"[0-9a-f]{16}"
_PART = re.compile(r"(.*)-(\d{5})", re.DOTALL)  # as split_gaps(keep_user=True) names them
_SEEDS = (*range(2101), 12_345, 123_456)  # what comes to mind first, years included
_USERS = 10  # whose names are made with each of the seeds: who drew one renamed all with it
_COUNTED = 2**44  # random names of 16 digits lie so near each other once in a million times
_LEAST = 8  # hex digits of a hash


def _hashes() -> Iterator[tuple[str, Callable[[bytes], str]]]:
    """The names of common hashes without a key, and what makes their hex digits."""
    for kind in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s"):
        yield kind, lambda text, kind=kind: hashlib.new(kind, text, usedforsecurity=False).hexdigest()  # type: ignore[misc]
    yield "blake2b", lambda text: hashlib.blake2b(text, digest_size=8).hexdigest()
    yield "crc32", lambda text: f"{zlib.crc32(text):08x}"
    yield "crc32", lambda text: f"{zlib.crc32(text):016x}"


def user_names(before: Traces, after: Traces) -> Finding:
    """Say whether the published keys look like pseudonyms, and whether they were made of the original ones.

    Tried are common hashes of the original keys, and of the users whose parts they name, and our own names for the
    seeds 0 to 2100 and a few more, for ten users. Names that count are looked at.
    """
    test = "user keys are pseudonyms"
    if not len(after):
        return Finding(test, NOT_COMPARABLE, "there is nothing in the protected data")
    if after.names.user is None:
        return Finding(test, PASSED, "there is no user: all is one trace")
    theirs, ours = (pd.Series([str(user) for user in one.users.tolist()], dtype=str) for one in (before, after))
    if made := _made(theirs.tolist(), ours[~ours.isin(theirs)].tolist()):
        return Finding(test, FAILED, f"{made}; take names of pseudonymize() without a seed")
    return Finding(test, *_looks(theirs, ours))


def _looks(theirs: pd.Series, ours: pd.Series) -> tuple[str, str]:
    """What can be seen of the published keys, beside the original ones."""
    others = int((~ours.str.fullmatch(_PSEUDONYM)).sum())
    known = int(ours.isin(theirs).sum())
    many = counted(len(ours), "user key")
    same = f"{known:,} of {many} are keys of the original"
    if others:
        reason = f"{others:,} of {many} do not look like the names of pseudonymize()"
        return LOOK, f"{reason}; {same}" if known else reason
    if known and not theirs.str.fullmatch(_PSEUDONYM).all():
        return LOOK, f"{same}, which has no pseudonyms, though they look like some"
    if _count(ours.tolist()):
        return LOOK, "they are numbers near each other, as of who counts, which keep an order of users"
    looks = "all look like pseudonyms (16 hex digits)"
    return PASSED, f"{looks}; {same}, which has pseudonyms too" if known else looks


def _made(originals: list[str], published: list[str]) -> str | None:
    """Say how published keys were made of original ones, if that is found out."""
    return (_hashed(originals, published) or _drawn(originals, published)) if originals and published else None


def _behind(keys: list[str]) -> list[tuple[str, int]]:
    """The users behind the keys, with the numbers under which they may have been renamed."""
    found = dict.fromkeys((key, number) for key in keys for number in (WHOLE_USER, 0))
    for key in keys:
        if part := _PART.fullmatch(key):
            found |= dict.fromkeys([(part[1], WHOLE_USER), (part[1], 0), (part[1], int(part[2]))])
    return list(found)


def _hashed(originals: list[str], published: list[str]) -> str | None:
    """Say how many published keys are hashes of original ones, or the head or tail of such, if that is no chance."""
    digits = pd.Series(published, dtype=str).str.lower()
    digits = digits[digits.str.fullmatch(r"[0-9a-f]+") & (digits.str.len() >= _LEAST)]
    if not len(digits):
        return None
    texts = [user.encode() for user in dict.fromkeys(user for user, _ in _behind(originals))]
    for kind, hashed in _hashes():
        whole = pd.Series([hashed(text) for text in texts], dtype=str)
        for length, some in digits.groupby(digits.str.len()):
            if length > len(whole.iloc[0]):
                continue
            found = int((some.isin(whole.str[:length]) | some.isin(whole.str[-length:])).sum())
            if found > 100 * len(some) * 2 * len(whole) / 16.0**length:
                are = (
                    f"is a hash ({kind}) of an original one" if found == 1 else f"are hashes ({kind}) of original ones"
                )
                return f"{counted(found, 'user key')} of {len(published):,} {are}, which anybody can make again"
    return None


def _drawn(originals: list[str], published: list[str]) -> str | None:
    """Say whether published keys are names of our own that a seed which is soon guessed gives."""
    names = set(published)
    if not any(re.fullmatch(_PSEUDONYM, name) for name in names):
        return None
    some = (
        [originals[i] for i in np.unique(np.linspace(0, len(originals) - 1, _USERS).astype(int))] if originals else []
    )
    users, parts = zip(*_behind(some), strict=True) if some else ((), ())
    if any(not names.isdisjoint(virtual_names(users, parts, seed=seed)) for seed in _SEEDS):
        return "user keys are names that a seed gives which is soon guessed"
    return None


def _count(published: list[str]) -> bool:
    """Whether names are numbers near each other."""
    numbers = [int(name, 16) for name in published]
    return max(numbers) - (min(numbers) if len(numbers) > 1 else 0) < _COUNTED
