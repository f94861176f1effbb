"""Checks of published user names: whether they are pseudonyms that cannot be traced back to users."""

import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from promesse_geo.audit.findings import FAILED, PASSED, REVIEW, Finding
from promesse_geo.audit.seeds import GUESSES
from promesse_geo.messages import counted
from promesse_geo.preprocess.pseudonyms import PSEUDONYM, WHOLE_USER, messages_of, names_of
from promesse_geo.traces.traces import Traces

_PART = re.compile(r"(.*)-(\d{5})", re.DOTALL)  # as split_gaps(keep_user=True) names parts
_SEED_USERS = 10  # users whose names are made with each of these seeds: one seed renamed all users
_NEAR = 2**44  # random names of 16 digits lie within this of each other once in a million times
_SHORTEST_HASH = 8  # hex digits
_BEYOND_CHANCE = 100  # times as many matches as random names would give


def check_user_names(before: Traces, after: Traces) -> Finding:
    """Check that published user names look like pseudonyms and were not derived from the original keys.

    Common unkeyed hashes of the original keys are tried, of users as well as of the parts of their traces, and for ten
    users the names that `pseudonymize` and `split_gaps` give with seeds 0 to 2100 and a few more. Hashes count as found
    where `_BEYOND_CHANCE` times as many keys match as random keys of that length would. Consecutive numbers are to be
    reviewed.
    """
    test = "user names are pseudonyms"
    if after.names.user is None:
        return Finding(test, PASSED, "there is no user column: all records are one trace")
    originals, published = (pd.Series([str(user) for user in traces.users], dtype=str) for traces in (before, after))
    changed = published[~published.isin(originals)].tolist()
    if len(originals) and changed:
        derived = _count_hashes(originals.tolist(), changed) or _find_seed(originals.tolist(), changed)
        if derived:
            return Finding(test, FAILED, f"{derived}; rename users with pseudonymize, without a seed")
    return Finding(test, *_judge_looks(originals, published))


def _judge_looks(originals: pd.Series, published: pd.Series) -> tuple[str, str]:
    """Verdict and reason by the published keys as they are."""
    others = int((~published.str.fullmatch(PSEUDONYM)).sum())
    same = int(published.isin(originals).sum())
    keys = counted(len(published), "user name")
    unchanged = f"{same:,} of {keys} {'is a name' if same == 1 else 'are names'} of the original"
    if others:
        reason = f"{others:,} of {keys} {'does' if others == 1 else 'do'} not look like the names of pseudonymize"
        return REVIEW, f"{reason}; {unchanged}" if same else reason
    if same and not originals.str.fullmatch(PSEUDONYM).all():
        return REVIEW, f"{unchanged}, which has no pseudonyms, though they look like some"
    if _are_consecutive(published.tolist()):
        return REVIEW, "user names are consecutive numbers and may reveal the order of users"
    looks = "all look like pseudonyms (16 hex digits)"
    return PASSED, f"{looks}; {unchanged}, whose names all look like pseudonyms, too" if same else looks


def _users_behind(keys: list[str]) -> list[tuple[str, int]]:
    """Users that the keys may stand for, each with the part numbers under which it may have been renamed."""
    users = dict.fromkeys((key, number) for key in keys for number in (WHOLE_USER, 0))
    for key in keys:
        if part := _PART.fullmatch(key):
            users |= dict.fromkeys([(part[1], WHOLE_USER), (part[1], 0), (part[1], int(part[2]))])
    return list(users)


def _hashes() -> Iterator[tuple[str, Callable[[bytes], str]]]:
    """Names of common unkeyed hashes, and functions that return their hex digits."""
    for kind in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s"):
        yield kind, partial(_digest, hashlib.new(kind, usedforsecurity=False))
    yield "blake2b", lambda text: hashlib.blake2b(text, digest_size=8).hexdigest()
    yield "crc32", lambda text: f"{zlib.crc32(text):08x}"
    yield "crc32", lambda text: f"{zlib.crc32(text):016x}"


def _digest(empty: Any, text: bytes) -> str:
    """Return the hex digits of a text; a copy of a hash is made in a fraction of the time of a new one."""
    hashed = empty.copy()
    hashed.update(text)
    return str(hashed.hexdigest())


def _count_hashes(originals: list[str], published: list[str]) -> str | None:
    """Count published keys that begin or end the hash of an original key; None where that may be chance."""
    by_length: dict[int, list[str]] = {}
    for key in map(str.lower, published):
        if len(key) >= _SHORTEST_HASH and re.fullmatch(r"[0-9a-f]+", key):
            by_length.setdefault(len(key), []).append(key)
    texts = [user.encode() for user in dict.fromkeys(user for user, _ in _users_behind(originals))]
    for kind, hash_of in _hashes() if by_length else ():
        hashed = list(map(hash_of, texts))
        for length, keys in sorted(by_length.items()):
            if length > len(hashed[0]):
                continue
            found = {part for digits in hashed for part in (digits[:length], digits[-length:])}
            count = sum(key in found for key in keys)
            by_chance = len(keys) * 2 * len(hashed) / 16.0**length
            if count > _BEYOND_CHANCE * by_chance:
                are = f"is a hash ({kind}) of an original" if count == 1 else f"are hashes ({kind}) of original"
                one = "one" if count == 1 else "ones"
                return f"{counted(count, 'user name')} of {len(published):,} {are} {one}, which anybody can compute"
    return None


def _find_seed(originals: list[str], published: list[str]) -> str | None:
    """Report that published keys are the names that an obvious seed gives, if they are."""
    names = {name for name in published if re.fullmatch(PSEUDONYM, name)}
    if not names:
        return None
    chosen = np.unique(np.linspace(0, len(originals) - 1, _SEED_USERS).astype(int))
    users, parts = zip(*_users_behind([originals[number] for number in chosen]), strict=True)
    messages = messages_of(users, parts)
    if any(not names.isdisjoint(names_of(messages, seed=seed)) for seed in GUESSES):
        return "user names are the names that an easily guessed seed gives"
    return None


def _are_consecutive(published: list[str]) -> bool:
    """Whether names are numbers close to each other."""
    numbers = [int(name, 16) for name in published]
    return max(numbers) - (min(numbers) if len(numbers) > 1 else 0) < _NEAR
