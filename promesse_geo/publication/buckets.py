"""Publish one bucket of users of a folder: clean, prepare, protect, check and measure it."""

import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import pandas as pd

from promesse_geo.audit import Finding, check_published
from promesse_geo.bulk.job import Job
from promesse_geo.bulk.results import Gathered, as_values
from promesse_geo.bulk.runs import Spill
from promesse_geo.bulk.tasks import count_kept, divide, read_bucket, write_portions
from promesse_geo.messages import collected_warnings
from promesse_geo.metrics import Metric
from promesse_geo.preprocess.calendar import uses_common_calendar
from promesse_geo.preprocess.pseudonyms import pseudonymize
from promesse_geo.publication.choices import Choices, check_description
from promesse_geo.publication.cleaning import named_by_owner, split_by_owner
from promesse_geo.publication.result import METRICS
from promesse_geo.publication.work import Work, protect_raw
from promesse_geo.traces.columns import Names
from promesse_geo.traces.traces import Traces

ENDS, *_OTHERS = METRICS
"""The attack on ends, whose owners are all in one bucket."""

DIVISIBLE = tuple(
    metric for metric in _OTHERS if metric.is_per_user or type(metric).measure_parts is not Metric.measure_parts
)
"""What else is measured of every publication, without metrics that compare users with each other."""

MAPPED_ONCE = tuple(metric for metric in DIVISIBLE if metric.maps_once)
"""Those that are computed of each bucket when it is published."""


@dataclass(frozen=True, kw_only=True)
class PublicationJob(Job):
    """What is published from files.

    Parameters
    ----------
    choices : Choices
        The parameters of cleaning and preparation.
    """

    weight: ClassVar[int] = 4

    choices: Choices

    @property
    def output_names(self) -> Names:
        """The columns of the result."""
        return self.layout.output_names(has_segments=False, names_users=True)

    @property
    def renames(self) -> bool:
        """Whether users get new names: always."""
        return True

    @property
    def has_segments(self) -> bool:
        """Whether the result has a column of segments: never, for traces are split at breaks."""
        return False

    @property
    def output_zone(self) -> Any:
        """The zone of written times, none on the common calendar."""
        return self.zone if self.choices.calendar == "keep-dates" else None


@dataclass(frozen=True, kw_only=True)
class Published(Gathered):
    """What a bucket of users became, with counts and findings.

    Parameters
    ----------
    counts : dict of str to int
        As those of `publish`.
    findings : sequence of Finding
        The checks of the bucket; none if nothing of it is left.
    is_dated : bool
        Whether the times of the bucket are true dates.
    """

    counts: dict[str, int]
    findings: Sequence[Finding]
    is_dated: bool

    @classmethod
    def of(cls, found: Any) -> Self:
        """Return the result that JSON describes."""
        return super().of({**found, "findings": [Finding(*each) for each in found["findings"]]})


def publish_bucket(job: PublicationJob, bucket: int, spills: Sequence[Spill]) -> list[Published]:
    """Clean, prepare, protect, check and measure the users of a bucket, and write what is left by new names."""
    raw = read_bucket(job, bucket, spills)
    assert job.mechanism is not None
    check_description(job.mechanism, raw)
    portions = divide(job, raw, lambda users: _protected(job, users).protected.records)
    return write_portions(job, bucket, portions, lambda each, number: _publish(job, each, f"{bucket:06d}-{number:04d}"))


def _protected(job: PublicationJob, raw: Traces) -> Work:
    assert job.mechanism is not None
    return protect_raw(raw, job.choices, job.mechanism, seed=f"{job.seed}/parts")


def _publish(job: PublicationJob, raw: Traces, name: str) -> tuple[Traces, Published]:
    """Clean, prepare, protect, check and measure users; return what is left under new names, with counts."""
    read = (len(raw), raw.records, int(raw.counts.max(initial=0)))
    with collected_warnings():
        work = _protected(job, raw)
        is_dated = raw.records > 0 and not uses_common_calendar(raw)
        parts, protected, findings = work.parts, work.protected, list[Finding]()
        if protected.records:
            table = check_published(parts, protected, mechanism=job.mechanism)
            findings = [Finding(*row) for row in table.itertuples(index=False)]
            named = named_by_owner(raw, parts, protected)
            before = split_by_owner(raw, work.cleaned, job.choices, like=parts)
            _save_details(job.scratch / f"details-{name}", ENDS.detail(before, named[1]), parts, protected)
            if len(MAPPED_ONCE) < len(DIVISIBLE):
                _save(job.scratch / f"traces-{name}", (parts, protected))
            del before, named
        published = pseudonymize(protected, seed=job.seed)
    counts = work.counts | {"published_traces": len(published), "published_records": published.records}
    kept = count_kept(published, read=read, prepared=(len(parts), parts.records), left=len(protected))
    warned = [[as_values(remark, {}) for remark in remarks] for remarks in work.warned]
    done = replace(kept, warned=warned)
    return published, Published(**vars(done), counts=counts, findings=findings, is_dated=is_dated)


@dataclass(frozen=True)
class SavedTraces:
    """The original and the protected traces of buckets, for metrics that read them several times.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        The files, one for each portion with published records.
    """

    paths: Sequence[Path]

    def map(self, work: Callable[..., Any], given: Sequence[Any] = ()) -> list[Any]:
        """Return `work(original, protected, *given)` of each bucket."""
        return [work(*pickle.loads(path.read_bytes()), *given) for path in self.paths]


@dataclass(frozen=True)
class SavedParts:
    """What metrics computed of each bucket, in the place of the data.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        The files, one for each portion with published records.
    metric : int
        The number of the metric in `MAPPED_ONCE`, from 1; 0 is `ENDS`.
    """

    paths: Sequence[Path]
    metric: int

    def map(self, work: Callable[..., Any], given: Sequence[Any] = ()) -> list[Any]:
        """Return what `work` returned for each bucket."""
        return [pickle.loads(path.read_bytes())[self.metric] for path in self.paths]


class _OneBucket:
    """The data of a bucket, of which the first result of `map` is kept."""

    def __init__(self, original: Traces, protected: Traces) -> None:
        self._both, self.result = (original, protected), None

    def map(self, work: Callable[..., Any], given: Sequence[Any] = ()) -> list[Any]:
        self.result = work(*self._both, *given)
        return [self.result]


def _save_details(path: Path, ends: pd.DataFrame, original: Traces, protected: Traces) -> None:
    """Write what each metric computes of a bucket to a file that only its owner can read."""
    results = list[Any]([ends])
    for metric in MAPPED_ONCE:
        bucket = _OneBucket(original, protected)
        metric.measure_parts(bucket)
        results.append(bucket.result)
    _save(path, results)


def _save(path: Path, content: Any) -> None:
    """Write an object to a file that only its owner can read."""
    with open(path, "wb", opener=partial(os.open, mode=0o600)) as file:
        pickle.dump(content, file, protocol=pickle.HIGHEST_PROTOCOL)
