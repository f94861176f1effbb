"""Errors about columns that do not exist or cannot be found."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from shlex import quote
from typing import Any

from promesse_geo.messages import listed
from promesse_geo.traces.known_columns import KNOWN, Ranks, candidates_for, fold

_MISSING = "missing_columns"  # attribute of errors
_ABSENT = "absent_roles"  # attribute of errors
_SHOWN = 7  # names that an error lists
_ALIKE = 0.75  # from 0 to 1, of names that differ by a letter or two
_WORD = re.compile(r"[A-ZÀ-Þ]?[a-zß-ÿ]+|[A-ZÀ-Þ]+")


@dataclass
class UnfilledRoles:
    """Roles without a column, and what to do about them.

    Parameters
    ----------
    columns : list
        Names of the columns.
    empty : list
        Columns of users that are empty in all rows.
    missing : dict of str to column name
        Names by role that do not exist.
    absent : dict of str to Ranks
        Known names by role, none of which exists.
    ambiguous : dict of str to list
        Columns by role of which only one can be it.
    """

    columns: list[Any]
    empty: list[Any]
    missing: dict[str, Any] = field(default_factory=dict)
    absent: dict[str, Ranks] = field(default_factory=dict)
    ambiguous: dict[str, list[Any]] = field(default_factory=dict)

    def check(self, found: Mapping[str, Any]) -> None:
        """Raise KeyError for missing columns, or ValueError for others; `found` are the columns of other roles."""
        if not (self.missing or self.absent or self.ambiguous):
            return
        error = (KeyError if self.missing else ValueError)(self._words(found))
        vars(error)[_MISSING], vars(error)[_ABSENT] = dict(self.missing), list(self.absent)
        raise error

    def _words(self, found: Mapping[str, Any]) -> str:
        free = [name for name in self.columns if name not in found.values() and name not in self.empty]
        sentences = [*self._existence(), *self._choices()]
        sentences += [
            f"Did you mean {_as_option(role, close)}?"
            for role, name in self.missing.items()
            if (close := _closest(name, free))
        ]
        if self.absent:
            remedies = [_as_option(role, _likely(free, known) or "…") for role, known in self.absent.items()]
            pronoun = "it" if len(remedies) == 1 else "them"
            sentences.append(f"Specify {pronoun}, as in {_joined(remedies)}.")
        if "user" in self.absent:
            sentences.append("If all is a single trace, pass user=None (--one-trace).")
        return " ".join(sentences)

    def _existence(self) -> Iterator[str]:
        """Yield sentences on columns that do not exist."""
        there = listed(self.columns) if self.columns else "none beside the geometry"
        if self.missing:
            names = _joined([f"the {role} column {name!r}" for role, name in self.missing.items()])
            yield f"{names[0].upper()}{names[1:]} {'does' if len(self.missing) == 1 else 'do'} not exist."
        if "user" in self.absent and self.empty:
            columns, are = ("column", "is") if len(self.empty) == 1 else ("columns", "are")
            yield f"The user {columns} {listed(self.empty)} {are} empty in all rows."
        absent = [role for role in self.absent if role != "user" or not self.empty]
        if absent:
            names = _joined([f"no {role} column" for role in absent])
            known = [name for rank in self.absent[absent[0]] for name in rank]
            looked = f". Looked for {_some(known)}" if len(absent) == 1 and not self.missing else ""
            yield f"N{names[1:]} {'was' if len(absent) == 1 else 'were'} found{looked}; the columns are {there}."
        elif self.missing or self.absent:
            yield f"The columns are {there}."

    def _choices(self) -> Iterator[str]:
        """Yield sentences on roles that several columns could have."""
        for role, candidates in self.ambiguous.items():
            which = f"Specify which, as in {_as_option(role, candidates[0])}."
            yield f"Several columns could hold the {role}: {listed(candidates)}. {which}"


def _some(names: list[str]) -> str:
    """Return the first of many names for a sentence, or all of few."""
    if len(names) <= _SHOWN:
        return listed(names)
    return ", ".join(repr(name) for name in names[: _SHOWN - 1]) + " and other common names"


def missing_columns(error: BaseException) -> dict[str, Any] | None:
    """Return the names by role that do not exist if an error is one of `find_columns`, else None."""
    missing: dict[str, Any] | None = vars(error).get(_MISSING)
    return missing


def renamed_error(error: BaseException, words: str) -> ValueError | TypeError | KeyError:
    """Return an error of the same plain kind with other words, and the same missing columns."""
    plain = (ValueError, TypeError, KeyError)
    renamed = next((kind for kind in plain if type(error) is kind), ValueError)(words)
    if (missing := missing_columns(error)) is not None:
        vars(renamed)[_MISSING] = missing
    return renamed


def with_index_named(error: ValueError | KeyError, levels: Sequence[Any]) -> ValueError | TypeError | KeyError:
    """Return an error of `find_columns` that names the levels of an index that could be the missing columns.

    Any other error, and one to which no level fits, stays as it is.
    """
    missing = missing_columns(error)
    if missing is None:
        return error
    inside = [name for role in vars(error).get(_ABSENT, ()) for name in candidates_for(levels, KNOWN[role])]
    inside += [name for name in missing.values() if name in levels]
    if not inside:
        return error
    names = list(dict.fromkeys(inside))
    verb = "is" if len(names) == 1 else "are"
    return renamed_error(error, f"{error.args[0]} {listed(names)} {verb} in the index: pass frame.reset_index().")


def _joined(parts: Sequence[str]) -> str:
    """Return parts of a sentence as a list: a, b and c."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _as_option(role: str, name: Any) -> str:
    return f"{role}={name!r} (--{role} {name if name == '…' else quote(str(name))})"


def _closest(name: Any, columns: Sequence[Any]) -> Any:
    """Return the column whose name is almost this one; None if there is none."""
    by_fold = {str(fold(column)): column for column in columns}
    return next((by_fold[close] for close in get_close_matches(str(fold(name)), by_fold, 1, _ALIKE)), None)


def _likely(columns: Sequence[Any], known: Ranks) -> Any:
    """Return the first column that has a known name as one of its words, or almost a known name; else None."""
    names = [str(fold(name)) for rank in known for name in rank if len(str(fold(name))) > 2]
    texts = [column for column in columns if isinstance(column, str)]
    for column in texts:
        if {word.casefold() for word in _WORD.findall(column)} & set(names):
            return column
    by_start = {start: [name for name in names if name[0] == start] for start in {name[0] for name in names}}
    folded = {column: str(fold(column)) for column in texts}
    return next(
        (column for column, name in folded.items() if get_close_matches(name, by_start.get(name[:1], []), 1, _ALIKE)),
        None,
    )
