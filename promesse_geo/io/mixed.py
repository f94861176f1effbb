"""Read files of several formats as one data set."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pyproj import CRS, Transformer
from pyproj.exceptions import ProjError

from promesse_geo.io import batch
from promesse_geo.io.contents import NO_HEAD
from promesse_geo.io.sources import BY_PLACE, Format
from promesse_geo.mechanisms.base import cuts_places
from promesse_geo.messages import DroppedWarning, counted, warn
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_errors, check_users, check_users_exist

_WGS84 = CRS.from_epsg(4326)

Group = tuple[Format, Sequence[Path]]
"""A format and its files."""


def read_mixed(
    groups: Sequence[Group], *, users: Iterable[Any] | None, errors: str, options: Mapping[str, Any]
) -> Traces:
    """Read each group with its format, and join them.

    Parameters
    ----------
    groups : sequence of (Format, sequence of pathlib.Path)
        Formats that read several files.
    users : iterable of text or integers, optional
        The users to read; all by default.
    errors : {"raise", "skip"}
        As in `read_file`.
    options : mapping
        Options of the formats by name; each format gets those that it has.

    Returns
    -------
    Traces
        In EPSG:4326 and UTC. Users are text.

    Raises
    ------
    ValueError
        If a table has times without zone or a CRS that cannot be transformed, or users of two formats have one name.
    """
    chosen = check_users(users, owner="read_file")
    if check_errors(errors, owner="read_file") == "drop":
        groups = _without_lost_files(groups)
    read = _read_groups(groups, errors=errors, options=options)
    for name, traces in read:
        _check_joinable(name, traces)
    if options.get("user") not in ("folder", "folder-2"):
        _check_users_differ(read)
    joined = batch.join([part for name, traces in read for part in _parts(name, traces)])
    check_users_exist(chosen, joined.users, owner="read_file")
    if chosen is None:
        return joined
    return joined.select(np.repeat([key in chosen for key in joined.users], joined.counts))


def _without_lost_files(groups: Sequence[Group]) -> list[Group]:
    """Leave out links to nothing, and warn of them."""
    lost = [file for _, files in groups for file in files if not file.exists()]
    if lost:
        words = f"read_file skipped {counted(len(lost), 'file')}. The first: {str(lost[0])!r} is a link to nothing."
        warn(DroppedWarning(words, {"files": len(lost)}))
    kept = [(form, [file for file in files if file not in lost]) for form, files in groups]
    return [(form, files) for form, files in kept if files]


def _read_groups(groups: Sequence[Group], *, errors: str, options: Mapping[str, Any]) -> list[tuple[str, Traces]]:
    """Read each group; skip, with a warning, those of which no file can be read, if that is not all."""
    read: list[tuple[str, Traces]] = []
    failures: list[tuple[Group, ValueError]] = []
    for form, files in groups:
        try:
            traces = form.read(list(files), as_traces=True, errors=errors, **_options_of(form, options))
            read.append((form.name, traces))
        except ValueError as error:
            if not batch.is_of_nothing_read(error):
                raise
            failures.append(((form, files), error))
    if not read:
        raise failures[0][1]
    for (form, files), failure in failures:
        warn(DroppedWarning(f"Format '{form.name}': {failure}", {"files": len(files)}))
    return read


def _options_of(form: Format, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a format has; names of columns are for tables only."""
    allowed = form.options(NO_HEAD)
    by_column = "time" in allowed
    return {
        name: value
        for name, value in options.items()
        if name in allowed and (name != "user" or by_column or value in BY_PLACE)
    }


def _check_joinable(name: str, traces: Traces) -> None:
    if traces.time_format.zone is None:
        problem = "have times without a zone"
        cure = "Specify it, as in tz='Europe/Paris' (--tz Europe/Paris), or read"
    elif traces.names.user is None:
        problem, cure = "have no users", "Read"
    else:
        return
    raise ValueError(
        f"The files of the format '{name}' {problem}, so they cannot be joined with those of other formats. {cure} one "
        f"format at a time, as in format='{name}' (--format {name})."
    )


def _check_users_differ(read: Sequence[tuple[str, Traces]]) -> None:
    """Raise ValueError if files of two formats have users of one name, who may be two people, or one person twice."""
    counts = Counter(str(user) for _, traces in read for user in traces.users)
    twice = sum(count > 1 for count in counts.values())
    if twice:
        names = " and ".join(f"'{name}'" for name, _ in read)
        raise ValueError(
            f"{counted(twice, 'user is', 'users are')} in files of several formats ({names}), so two people could "
            "become one, or one trip two. If each folder is a user, pass user='folder' (--user folder), else read one "
            f"format at a time, as in format='{read[0][0]}' (--format {read[0][0]})."
        )


def _parts(name: str, traces: Traces) -> Iterable[batch.Part]:
    """Yield the records of each trace, in EPSG:4326."""
    x, y = _degrees(name, traces)
    has_breaks = len(traces.breaks) > 0 or cuts_places(traces.protection)
    for number, user in enumerate(traces.users):
        rows = slice(traces.offsets[number], traces.offsets[number + 1])
        segments = traces.segment_numbers[rows].astype(np.int64) if has_breaks else None
        yield batch.Part(str(user), traces.times[rows], x[rows], y[rows], segments=segments)


def _degrees(name: str, traces: Traces) -> tuple[np.ndarray, np.ndarray]:
    """Return longitudes and latitudes in EPSG:4326, shape (records,) each."""
    x, y = traces.coordinates()
    crs = CRS.from_user_input(traces.space.crs)
    if crs.equals(_WGS84, ignore_axis_order=True):
        return x, y
    try:
        lon, lat = Transformer.from_crs(crs, _WGS84, always_xy=True).transform(x, y)
    except ProjError:
        lon = lat = np.full(len(x), np.nan)
    if not (np.isfinite(lon).all() and np.isfinite(lat).all()):
        raise ValueError(
            f"The files of the format '{name}' have a CRS that cannot be transformed to EPSG:4326, so they cannot be "
            f"joined with those of other formats. Read one format at a time, as in format='{name}' (--format {name})."
        )
    return lon, lat
