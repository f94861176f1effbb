"""GPX: the tracks that receivers, watches and phones write."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow.compute as pc

from promesse_geo.io import batch
from promesse_geo.io.batch import DroppedRecords, Part
from promesse_geo.io.compressed import Head, read_bytes
from promesse_geo.io.formats import Format
from promesse_geo.io.gpx_points import IS_GPX, as_degrees, as_times, read_points
from promesse_geo.io.sources import Source, find_files, name_users
from promesse_geo.messages import counted, warn
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice

ENDINGS = (".gpx", ".gpx.gz")
_STRAY = "in no segment of a track, or of another namespace than the file"


def read_gpx(
    source: Source,
    *,
    user: str = "file",
    users: Iterable[str] | None = None,
    as_traces: bool = False,
    errors: str = "raise",
) -> gpd.GeoDataFrame | Traces:
    """Read the tracks of GPX files.

    Only track points are taken, of all tracks and segments; waypoints, routes, elevations and extensions are not.
    Left out and counted in one warning are points without a time that can be read, points without a place on the
    globe, and points that lie in no segment or are of another namespace. Times without a zone are UTC, as GPX
    says; they are kept to the nanosecond. Files that gzip packed will do. One more warning says where tracks that
    become one trace overlap in time.

    Parameters
    ----------
    source : path, glob pattern, or several of these
        A GPX file, a folder with such files in it (`.gpx`, `.gpx.gz`, at any depth), a pattern such as
        `"rides/*.gpx"`, or several.
    user : {"file", "folder", "track"}
        Who made a track: the file (its name without ending), the folder that the file lies in, or each track its own
        (`<file>-1`, `<file>-2`, …, counted in the file).
    users : iterable of str, optional
        The users to read; all by default.
    as_traces : bool
        Whether to return Traces, which is much faster than a frame of points.
    errors : {"raise", "skip"}
        What becomes of a file that is no GPX, is cut, or has no track point with a time and a place: an error that
        names it, or a counted warning.

    Returns
    -------
    geopandas.GeoDataFrame or Traces
        user, time (UTC) and geometry (EPSG:4326).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file cannot be read, two files would be one user, or a user asked for is not there.

    Examples
    --------
    >>> import promesse_geo as pg, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "ride.gpx"
    >>> _ = file.write_text(
    ...     '<gpx version="1.1"><trk><trkseg><trkpt lat="45.7" lon="4.8"><time>2024-03-04T08:00:00Z</time></trkpt>'
    ...     "</trkseg></trk></gpx>"
    ... )
    >>> list(pg.read_gpx(file).user)
    ['ride']
    """
    check_choice(user, name="user", owner="read_gpx", options=("file", "folder", "track"))
    wanted = batch.wanted_users(users, owner="read_gpx")
    by_track = user == "track"
    named = name_users(
        find_files(source, endings=ENDINGS, owner="read_gpx"), by="folder" if user == "folder" else "file"
    )
    if wanted is not None:
        files = {name.rpartition("-")[0] if by_track else name for name in wanted}
        named = {path: name for path, name in named.items() if name in files}
        batch.check_wanted(files, named.values())
        if not files:
            raise ValueError("Nothing is to be read: 'users' of read_gpx is an empty list.")
    owners = {str(path): name for path, name in named.items()}
    parts, skipped = batch.read_parts(
        [(str(path), partial(read_bytes, path)) for path in named],
        partial(_parse, owners=owners, by_track=by_track),
        errors=errors,
        owner="read_gpx",
        total=len(named),
    )
    parts = [part for part in parts if wanted is None or part.user in wanted]
    batch.check_some_read(parts, skipped)
    batch.check_wanted(wanted, (part.user for part in parts if len(part.times)))
    batch.warn_dropped_records(parts, skipped, owner="read_gpx")
    if not by_track:
        _tell_overlaps(parts, {name: path.parent if user == "folder" else path for path, name in named.items()})
    traces = batch.join(parts)
    return traces if as_traces else traces.to_frame()


def _parse(name: str, content: bytes, *, owners: dict[str, str], by_track: bool) -> Iterator[Part]:
    """The records of a file, a part for each track."""
    points = read_points(name, content)
    count, strays = len(points.times), points.strays
    if not count:
        some = counted(len(strays), "point lies elsewhere or is", "points lie elsewhere or are")
        others = f" {some} of another namespace." if strays else ""
        raise ValueError(
            f"{name!r} has no track points in segments of tracks; waypoints and routes are not records.{others}"
        )
    times = as_times(points.times)
    timeless = np.isnat(times)
    if timeless.all():
        raise ValueError(f"{name!r} has no times: none of its {counted(count, 'track point')} has one.")
    latitudes, longitudes = (as_degrees(texts, name) for texts in (points.latitudes, points.longitudes))
    y, x = (degrees.fill_null(np.nan).to_numpy() for degrees in (latitudes, longitudes))
    reasons = {
        "no coordinates": pc.or_(latitudes.is_null(), longitudes.is_null()).to_numpy(zero_copy_only=False),
        "not on the globe": ~((np.abs(x) <= 180) & (np.abs(y) <= 90)),
        "no time, or one that cannot be read": timeless,
    }
    if np.logical_or.reduce(list(reasons.values())).all():
        raise ValueError(f"{name!r} has no track point with both a time and a place on the globe.")
    lost = [DroppedRecords(_STRAY, len(strays), f"line {strays[0]:,} of {name!r}")] if strays else []
    for number, (first, last) in enumerate(itertools.pairwise([*points.tracks, count]), 1):
        own = slice(first, last)
        if first < last:
            masks = {reason: mask[own] for reason, mask in reasons.items()}
            keep, left_out = batch.sort_out(masks, where=partial(_place, name, first))
            user = f"{owners[name]}-{number}" if by_track else owners[name]
            yield Part(user, times[own][keep].view(np.int64), x[own][keep], y[own][keep], left_out + lost)
            lost = []


def _place(name: str, first: int, number: int) -> str:
    return f"track point {first + number + 1:,} of {name!r}"


def _tell_overlaps(parts: Sequence[Part], places: Mapping[str | int, Path]) -> None:
    """Warn once of traces that were made of tracks at the same time, as those of several people are."""
    spans: dict[str | int, list[tuple[int, int]]] = {}
    for part in parts:
        if len(part.times):
            spans.setdefault(part.user, []).append((part.times.min(), part.times.max()))
    mixed = [user for user, own in spans.items() if _overlap(sorted(own))]
    if mixed:
        warn(
            f"In {counted(len(mixed), 'trace')} tracks overlap in time, as those of several people or devices do "
            f"(first: {str(places[mixed[0]])!r}). If each track is a user, say user='track' (--user track)."
        )


def _overlap(spans: Sequence[tuple[int, int]]) -> bool:
    ends = itertools.accumulate((last for _, last in spans), max)
    return any(first < end for (first, _), end in zip(spans[1:], ends, strict=False))


def is_gpx(head: Head, name: str) -> bool:
    """Return whether a file has an element <gpx>, in any encoding of XML."""
    text = head.content.replace(b"\0", b"")
    return IS_GPX.search(text) is not None and text.lstrip(b"\xef\xbb\xbf\xff\xfe \r\n\t").startswith(b"<")


FORMAT = Format(
    "gpx", read_gpx, is_gpx, files=tuple(f"*{ending}" for ending in ENDINGS), options=lambda head: ("user",)
)
