"""What the steps of protecting files return, as JSON can hold it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from promesse_geo.bulk.runs import Spill
from promesse_geo.messages import Remark
from promesse_geo.preprocess.problems import Problems
from promesse_geo.traces.values import Unit
from promesse_geo.validation import subclasses_by_name


@dataclass(frozen=True)
class Scattered:
    """What a scatter read.

    Parameters
    ----------
    spills : list of Spill
        In the order of the input.
    records, dropped : int
        Records read, and how many of them are invalid.
    invalid : dict of str to (int, str)
        The number of invalid records by reason, and the place of the first.
    elevation : bool
        Whether any point has Z.
    marked : dict of str to (int, str)
        The number of records that columns mark as bad by reason, and the place of the first. They are not in `dropped`.
    first, last : int or None
        Nanoseconds: the first and the last time; None without valid records.
    failed : dict of str to str
        Files that could not be read, and the reasons: what is read is not complete, and has records of them.
    skipped : dict of str to str
        Files of which nothing was read because they could not be read, and the reasons.
    """

    spills: list[Spill]
    records: int
    dropped: int
    invalid: dict[str, tuple[int, str]]
    elevation: bool
    marked: dict[str, tuple[int, str]]
    first: int | None = None
    last: int | None = None
    failed: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "Scattered":
        """Return what JSON describes."""
        invalid, marked = (
            {reason: (count, first) for reason, (count, first) in found[name].items()} for name in ("invalid", "marked")
        )
        spills = [Spill.of(each) for each in found["spills"]]
        return cls(**{**found, "spills": spills, "invalid": invalid, "marked": marked})


@dataclass(frozen=True)
class Gathered:
    """What a portion of a bucket of users became.

    Parameters
    ----------
    users, traces, records, prepared_records, protected_traces, protected_records, largest : int
        Counts before and after; the largest is the number of records of the longest trace of a user.
    unit : str
        The unit of times.
    bytes : int
        With the last portion of a bucket: the size of its part, if users keep their names.
    spills : list of Spill
        With the last portion of a bucket: what was written by new names.
    people, pseudonyms : int
        Users, of whom `<user>-00000`, `<user>-00001`, … are one, and those with names as `pseudonymize` gives them.
    odd : dict of str to int or None
        What is odd in the records of the users; see `Problems`.
    warned : list of list of dict
        The remarks of each warning, as JSON holds them.
    """

    users: int
    traces: int
    records: int
    prepared_records: int
    protected_traces: int
    protected_records: int
    largest: int
    unit: Unit
    bytes: int = 0
    spills: list[Spill] = field(default_factory=list)
    people: int = 0
    pseudonyms: int = 0
    odd: Mapping[str, Any] = field(default_factory=dict)
    warned: list[list[dict[str, Any]]] = field(default_factory=list)

    @property
    def problems(self) -> Problems:
        """What is odd in the records of the users."""
        return Problems(**self.odd)

    @property
    def remarks(self) -> list[list[Remark]]:
        """The remarks of each warning."""
        kinds = subclasses_by_name(Remark)
        return [[kinds[each["kind"]](**each["values"]) for each in remarks] for remarks in self.warned]

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Return the counts that JSON describes."""
        return cls(**{**found, "spills": [Spill.of(each) for each in found["spills"]]})

    @classmethod
    def all_of(cls, found: Sequence[Mapping[str, Any]]) -> list[Self]:
        """Return the counts of the portions of a bucket."""
        return [cls.of(each) for each in found]


def as_values(remark: Remark, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a remark as JSON holds it, with counts that are known better."""
    return {"kind": type(remark).__name__, "values": {**vars(remark), **found}}
