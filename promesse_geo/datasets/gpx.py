"""GPX: the tracks that receivers, watches and phones write."""

import re
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from xml.parsers import expat

import geopandas as gpd
import numpy as np
import pandas as pd
import pyogrio

from promesse_geo import check
from promesse_geo.datasets import batch
from promesse_geo.datasets.batch import LeftOut, Part
from promesse_geo.datasets.sources import Source, find_files, name_users, read_bytes
from promesse_geo.datasets.wkb import read_points
from promesse_geo.traces import Traces

ENDINGS = (".gpx", ".gpx.gz")
_NUMBER = rb"\s*(?:[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|NaN)\s*"
_NO_NUMBER = re.compile(rb"<trkpt\b[^>]*?\b(?:lat|lon)\s*=\s*(?:\"(?!" + _NUMBER + rb"\")|'(?!" + _NUMBER + rb"'))")
_POINT = re.compile(rb"<trkpt[\s>/]")
_BLANKS = re.compile(rb"<time>\s+")  # which GDAL does not pass over
_NO_MARKUP = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>", re.DOTALL)


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
    Left out and counted in one warning are points without a time that can be read, and points without a place on the
    globe. Times without a zone are UTC, as GPX says; times are kept to the millisecond. Files that gzip packed will do.

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
        What becomes of a file that is no GPX, is cut, or has no track point with a time: an error that names it, or a
        counted warning.

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
    >>> list(pg.datasets.gpx.read_gpx(file).user)
    ['ride']
    """
    check.choice(user, name="user", owner="read_gpx", options=("file", "folder", "track"))
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # GDAL's, of schemas and versions that it does not know
        parts, skipped = batch.read_parts(
            [(str(path), partial(read_bytes, path)) for path in named],
            partial(_parse, owners=owners, by_track=by_track),
            errors=errors,
            owner="read_gpx",
            total=len(named),
        )
    parts = [part for part in parts if wanted is None or part.user in wanted]
    batch.check_wanted(wanted, (part.user for part in parts))
    batch.check_some_read(parts, skipped)
    batch.tell_what_was_left_out(parts, skipped, owner="read_gpx")
    traces = batch.join(parts)
    return traces if as_traces else traces.to_frame()


def _parse(name: str, content: bytes, *, owners: dict[str, str], by_track: bool) -> Iterator[Part]:
    """The records of a file, as one part or as one a track."""
    content = _as_utf8(name, content)
    _check_numbers(name, content)
    tracks, times, longitudes, latitudes = _track_points(name, content)
    placed = (np.abs(longitudes) <= 180) & (np.abs(latitudes) <= 90)
    timed = (times.year >= 1678) & (times.year <= 2261)  # which nanoseconds can count; NaN where there is none
    if not timed.any():
        raise ValueError(f"{name!r} has no times: none of its {check.counted(len(times), 'track point')} has one.")
    left_out = [
        *_without_place(name, content, placed),
        *_left_out(name, "no time, or one that cannot be read", placed & ~timed),
    ]
    good = placed & timed
    numbers = np.unique(tracks[good]) if by_track else [None]
    for number in numbers:
        own = good if number is None else good & (tracks == number)
        user = owners[name] if number is None else f"{owners[name]}-{number + 1}"
        yield Part(user, times[own].as_unit("ns").asi8, longitudes[own], latitudes[own], left_out)
        left_out = []


def _as_utf8(name: str, content: bytes) -> bytes:
    """The document from its first bracket on; GDAL takes no UTF-16."""
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = content.decode("utf-16", errors="replace")
        content = re.sub(r"(<\?xml[^>]*?)\s+encoding=[\"'][^\"']*[\"']", r"\1", text, count=1).encode()
    content = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    if b"<gpx" not in content[:100_000]:
        found = "it is empty" if not content else "it has no element <gpx>"
        raise ValueError(f"{name!r} is not GPX: {found}.")
    return content


def _check_numbers(name: str, content: bytes) -> None:
    """Refuse coordinates such as 45,7, of which GDAL would take the 45."""
    wrong = _NO_NUMBER.search(content)
    if wrong:
        line = content.count(b"\n", 0, wrong.start()) + 1
        raise ValueError(f"{name!r} is not GPX: the track point in line {line:,} has a coordinate that is no number.")


def _track_points(name: str, content: bytes) -> tuple[np.ndarray, pd.DatetimeIndex, np.ndarray, np.ndarray]:
    """Number of the track, time (NaT where there is none), longitude and latitude of each track point."""
    try:
        about, table = pyogrio.read_arrow(
            _BLANKS.sub(b"<time>", content),
            layer="track_points",
            columns=["track_fid", "time"],
            datetime_as_string=True,
        )
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, pyogrio.errors.FeatureError) as error:
        raise ValueError(f"{name!r} is not GPX, or cut or damaged{_where(content)}.") from error
    if table.num_rows == 0:
        raise ValueError(f"{name!r} has no track points; waypoints and routes are not records.")
    longitudes, latitudes, _ = read_points(table.column(about["geometry_name"] or "wkb_geometry"))
    times = pd.to_datetime(table.column("time").to_pandas(), format="ISO8601", utc=True, errors="coerce")
    return table.column("track_fid").to_numpy(), pd.DatetimeIndex(times), longitudes, latitudes


def _where(content: bytes) -> str:
    try:
        expat.ParserCreate().Parse(content, True)
    except expat.ExpatError as error:
        return f" (line {error.lineno:,}: {expat.ErrorString(error.code)})"
    return ""


def _without_place(name: str, content: bytes, placed: np.ndarray) -> Iterator[LeftOut]:
    """Points off the globe, and those without a coordinate, which GDAL passes over."""
    yield from _left_out(name, "not on the globe", ~placed)
    missing = len(_POINT.findall(content)) - len(placed)
    if missing:
        missing = len(_POINT.findall(_NO_MARKUP.sub(b"", content))) - len(placed)
    if missing > 0:
        yield LeftOut("no coordinates", missing, repr(name))


def _left_out(name: str, reason: str, wrong: np.ndarray) -> Iterator[LeftOut]:
    if wrong.any():
        yield LeftOut(reason, int(wrong.sum()), f"track point {int(wrong.argmax()) + 1:,} of {name!r}")
