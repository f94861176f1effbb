"""What is done with files: the parameters of all steps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from promesse_geo.bulk.arrow import Layout
from promesse_geo.mechanisms import Mechanism, chained
from promesse_geo.traces.columns import Names
from promesse_geo.traces.space import Space
from promesse_geo.traces.values import Unit


class Piece(NamedTuple):
    """Row groups first … last − 1 of a file, the row that the first begins with, and the file's size and time.

    `marks` are the columns of the file that mark bad records, which are left out, and `user` is the user of all its
    records if the name of the file or of a folder gives it. `apart` is a text that the file's segments have to
    themselves, or empty for the segments of files without such a column; None if its column is taken as it is.
    """

    path: str
    first: int
    last: int
    row: int
    state: tuple[int, int] = (-1, -1)
    marks: tuple[str, ...] = ()
    user: str | None = None
    apart: str | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """What is done, without the files that come and go.

    Parameters
    ----------
    scratch, parts : pathlib.Path
        The folders of spills and of finished parts.
    tasks : tuple of tuple of Piece
        The input of each scatter, in the order of paths and rows.
    layout : Layout
        How the files hold records.
    has_integers : bool
        Whether users are integers.
    time_numbers : str or None
        The unit of times that are numbers.
    space : Sphere or Plane
        Where distances are measured.
    zone : tzinfo or None
        The time zone.
    unit : {"s", "ms", "us", "ns"}
        The unit of the times that are read.
    chunk : int
        Records of a spill.
    buckets, name_buckets : int
        The number of buckets of users, and of new names.
    max_records : int
        Records that may be left of a bucket at a time.
    memory, workers : int
        Bytes of memory for all workers, and how many there are.
    key : bytes
        Secret key of the numbers of buckets.
    seed : str
        Secret seed of the new names.
    preparation : dict or None
        Parameters of `prepare`, with `max_speed` and `keep_zero`; None if data are not prepared.
    mechanism : Mechanism or None
        The mechanism, with a seed if it is random; None if data are only prepared.
    keep_users : bool
        Whether users keep their names.
    encoding : {"WKB", "point"}
        How points are written.
    time_unit : str or None
        The unit of written times; None for that of the mechanism.
    skips : bool
        Whether files that cannot be read are skipped.
    skipped : mapping of str to str
        Files that could not be read, and the reasons.
    period : tuple of int
        The first and the last time (ns) of all data, by which they are on the common calendar or not; set when they
        are read.
    """

    weight: ClassVar[int] = 1
    """Memory for a record of a bucket, relative to that of protecting it."""

    scratch: Path
    parts: Path = Path()
    tasks: tuple[tuple[Piece, ...], ...]
    layout: Layout
    has_integers: bool
    time_numbers: str | None
    space: Space
    zone: tzinfo | None
    unit: Unit = "ns"
    chunk: int
    buckets: int
    name_buckets: int = 1
    max_records: int = 2**31
    memory: int = 2**62
    workers: int = 1
    key: bytes = b""
    seed: str = ""
    preparation: Mapping[str, Any] | None = None
    mechanism: Mechanism | None = None
    keep_users: bool = True
    encoding: str = "WKB"
    time_unit: Unit | None = None
    skips: bool = False
    skipped: Mapping[str, str] = field(default_factory=dict)
    period: tuple[int, int] = (0, 0)

    @property
    def files(self) -> int:
        """The number of files."""
        return len({piece.path for task in self.tasks for piece in task})

    @property
    def protection(self) -> dict[str, Any] | None:
        """What protected the result, as for `Traces`: the mechanism, after what had protected the files."""
        return chained(self.layout.protection, None if self.mechanism is None else self.mechanism.description())

    @property
    def output_names(self) -> Names:
        """The columns of the result: parts of prepared data are users in any case."""
        return self.layout.output_names(has_segments=self.has_segments, names_users=self.preparation is not None)

    @property
    def renames(self) -> bool:
        """Whether users get new names."""
        return not self.keep_users and (self.layout.names.user is not None or self.preparation is not None)

    @property
    def has_segments(self) -> bool:
        """Whether the result has a column of segments, of which new names and `prepare` leave none."""
        kept = self.layout.names.segment is not None and self.preparation is None
        return not self.renames and (kept or (self.mechanism is not None and self.mechanism.makes_breaks))

    @property
    def output_zone(self) -> tzinfo | None:
        """The zone of written times, none on the common calendar of `prepare` unless a zone is kept."""
        if self.preparation is None:
            return self.zone
        return UTC if self.preparation.get("keep_zone") else None
