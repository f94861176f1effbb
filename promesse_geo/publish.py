"""The check before publishing: what a careful friend would look at."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pyogrio

from promesse_geo import check
from promesse_geo.columns import Name, Names, find_names
from promesse_geo.datasets.table_columns import KNOWN_LATITUDES, KNOWN_LONGITUDES
from promesse_geo.mechanisms import Mechanism, Promesse
from promesse_geo.pairs import Pairs, align
from promesse_geo.traces import Traces, as_traces
from promesse_geo.write import METADATA_KEY

PASSED, LOOK, FAILED, NOT_COMPARABLE = "passed", "look", "failed", "not comparable"
FINE_DECIMALS = 7
"""Degrees with more decimals than this are finer than a centimetre."""

_PSEUDONYM = r"[0-9a-f]{16}"
_OWN_METADATA = {b"geo", b"pandas", b"ARROW:schema", METADATA_KEY.encode()}


class Finding(NamedTuple):
    """What one test says, and why."""

    test: str
    verdict: str
    reason: str


def check_published(
    original: gpd.GeoDataFrame | Traces,
    protected: gpd.GeoDataFrame | Traces,
    *,
    epsilon: float | None = None,
    user: Name = ...,
    time: Name = ...,
) -> pd.DataFrame:
    """Look at protected data as a careful friend would before it is published.

    Parameters
    ----------
    original : geopandas.GeoDataFrame or Traces
        What was protected: the prepared data, with the users that it had then.
    protected : geopandas.GeoDataFrame or Traces
        What is to be published; protect with the users kept to have traces compared, and rename them afterwards.
    epsilon : float, optional
        Metres that the first published point of a trace has to stay away from the true one, as Promesse promises;
        without it the distances are listed.
    user, time : column name, None or ...
        Columns of both frames; see `Traces.from_frame`.

    Returns
    -------
    pandas.DataFrame
        One row a test: test, verdict ("passed", "look", "failed", "not comparable") and reason. "Look" says that only
        you can tell. Passing everything is no proof of anonymity.

    Raises
    ------
    TypeError, ValueError, KeyError
        If the data cannot be read, or only one of the two has a time zone.

    Examples
    --------
    >>> import promesse_geo as pg
    >>> parts = pg.prepare(pg.make_city(users=2, days=2, as_traces=True), seed=1)
    >>> pg.check_published(parts, pg.Promesse(200).protect(parts), epsilon=200).verdict.tolist()[2]
    'passed'
    """
    if epsilon is not None:
        epsilon = check.number(epsilon, name="epsilon", owner="check", unit="metres", low=0.01, high=1e6)
    before, after = (as_traces(data, user=user, time=time) for data in (original, protected))
    findings = [_users(after), _columns(protected, user=user, time=time)]
    pairs = align(before, after)
    findings += _compared(pairs, epsilon) if len(pairs.originals) else _not_compared(after)
    findings.append(_digits(after))
    if isinstance(protected, gpd.GeoDataFrame):
        findings.append(_attributes(protected))
    return pd.DataFrame(findings)


def file_findings(path: str | os.PathLike[str], *, names: Names | None = None) -> pd.DataFrame:
    """Return what a file holds beside the records, as rows of `check_published`.

    Parameters
    ----------
    path : path
        A file that `write` makes: GeoParquet, GeoPackage, GeoJSON or CSV.
    names : Names, optional
        What the file calls user, time and geometry; by default user, time and geometry.

    Returns
    -------
    pandas.DataFrame
        test, verdict and reason, of the columns and of the file's own metadata.
    """
    path, names = Path(path), names or Names()
    own = {names.user, names.time, names.geometry, *KNOWN_LONGITUDES, *KNOWN_LATITUDES}
    foreign = [str(key) for key in sorted(_metadata(path)) if key != METADATA_KEY]
    metadata = Finding("metadata of the file", PASSED, "nothing but the mechanism and its parameters")
    if foreign:
        metadata = Finding(metadata.test, LOOK, f"the file carries metadata of its own: {check.listed(foreign)}")
    return pd.DataFrame([_no_others([name for name in _fields(path) if name not in own]), metadata])


def file_mechanism(path: str | os.PathLike[str]) -> Mechanism | None:
    """Return the mechanism that a file's metadata names, without its seed; None where it names none that we know."""
    path = Path(path)
    about = _metadata(path).get(METADATA_KEY) if path.is_file() else None
    if about is None:
        return None
    try:
        named = json.loads(about)
        kinds = {kind.__name__: kind for kind in Mechanism.__subclasses__()}
        return kinds[named["mechanism"]](**named["parameters"])
    except (KeyError, TypeError, ValueError):
        check.tell(f"The metadata of {str(path)!r} names a mechanism that cannot be read; it is passed over.")
        return None


def file_epsilon(path: str | os.PathLike[str]) -> float | None:
    """Return the epsilon of Promesse that a file's metadata names, if it does."""
    mechanism = file_mechanism(path)
    return mechanism.epsilon if isinstance(mechanism, Promesse) else None


def _metadata(path: Path) -> dict[str, str]:
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".geoparquet"):
        found = pq.read_metadata(path).metadata or {}
        own = {key: value for key, value in found.items() if key not in _OWN_METADATA or key.decode() == METADATA_KEY}
        return {key.decode(errors="replace"): value.decode(errors="replace") for key, value in own.items()}
    if suffix == ".gpkg":
        information = pyogrio.read_info(path)
        parts = (information.get("dataset_metadata"), information.get("layer_metadata"))
        return {key: value for part in parts if part for key, value in part.items() if key != "DBF_DATE_LAST_UPDATE"}
    return {}


def _fields(path: Path) -> list[str]:
    """Names of a file's columns; the geometry of GDAL's formats is none."""
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".geoparquet"):
        return list(pq.read_schema(path).names)
    if suffix in (".gpkg", ".geojson", ".json"):
        return list(pyogrio.read_info(path)["fields"])
    return list(pd.read_csv(path, nrows=0, sep=None, engine="python").columns)


def _users(after: Traces) -> Finding:
    if not len(after):
        return Finding("user keys are pseudonyms", NOT_COMPARABLE, "there is nothing in the protected data")
    known = sum(not pd.Series([str(user)]).str.fullmatch(_PSEUDONYM).iloc[0] for user in after.users)
    if known:
        reason = f"{known:,} of {check.counted(len(after), 'user key')} do not look like the names of pseudonymize()"
        return Finding("user keys are pseudonyms", LOOK, reason)
    return Finding("user keys are pseudonyms", PASSED, "all are 16 hex digits")


def _columns(protected: gpd.GeoDataFrame | Traces, *, user: Name, time: Name) -> Finding:
    if isinstance(protected, Traces):
        return _no_others([])
    names = find_names(protected, user=user, time=time)
    others: list[Any] = [name for name in protected.columns if name not in (names.user, names.time, names.geometry)]
    if protected.geometry.has_z.any():
        others.append("Z")
    return _no_others(others)


def _no_others(others: list[Any]) -> Finding:
    if others:
        reason = f"there is more than user, time and location: {check.listed(others)}"
        return Finding("no other columns", FAILED, reason)
    return Finding("no other columns", PASSED, "user, time and location only")


def _compared(pairs: Pairs, epsilon: float | None) -> list[Finding]:
    return [
        _end(pairs, epsilon, first=True),
        _end(pairs, epsilon, first=False),
        _times(pairs),
        _points(pairs),
    ]


def _not_compared(after: Traces) -> list[Finding]:
    tests = ("first points are away", "last points are away", "times are new", "points are new")
    reason = "the two have no user in common; compare before renaming" if len(after) else "there is nothing to compare"
    return [Finding(test, NOT_COMPARABLE, reason) for test in tests]


def _end(pairs: Pairs, epsilon: float | None, *, first: bool) -> Finding:
    """Distance of the first (last) published point from the true one."""
    test = "first points are away" if first else "last points are away"
    distances = pairs.end_distances(first=first)
    nearest = f"the nearest is {distances.min():,.1f} m away, the median {np.median(distances):,.1f} m"
    if epsilon is None:
        return Finding(test, LOOK, f"no epsilon is known (say epsilon=, --epsilon); {nearest}")
    close = int((distances < epsilon - (1e-9 * epsilon + 1e-8)).sum())
    if not close:
        return Finding(test, PASSED, f"all are at least {epsilon:g} m away")
    reason = f"{close:,} of {check.counted(len(distances), 'trace')} {'begin' if first else 'end'} nearer; {nearest}"
    return Finding(test, FAILED if first else LOOK, reason if first else f"{reason} (Promesse does not promise it)")


def _times(pairs: Pairs) -> Finding:
    same = int(pairs.shared_times().sum())
    if same:
        return Finding(
            "times are new",
            LOOK,
            f"{same:,} of {pairs.protected.records:,} published times are true ones of their user",
        )
    return Finding("times are new", PASSED, "no published time is a true one of its user")


def _points(pairs: Pairs) -> Finding:
    test = "points are new"
    same = pairs.shared_points()
    whole = int(sum(part.all() for part in np.split(same, pairs.protected.offsets[1:-1])))
    if whole:
        return Finding(test, FAILED, f"{check.counted(whole, 'trace')} would be published point by point as recorded")
    if same.any():
        return Finding(
            test,
            LOOK,
            f"{int(same.sum()):,} of {pairs.protected.records:,} published points are true ones of their user",
        )
    return Finding(test, PASSED, "no published point is a true one of its user")


def _digits(after: Traces) -> Finding:
    test = "no needless digits"
    x, y = after.coordinates()
    decimals = FINE_DECIMALS if after.space.crs.is_geographic else 2
    fine = int(np.sum((np.round(x, decimals) != x) | (np.round(y, decimals) != y)))
    if fine:
        reason = (
            f"{fine:,} points are finer than a centimetre, as computed ones are; for noise, grid= makes them coarse"
        )
        return Finding(test, LOOK, reason)
    return Finding(test, PASSED, f"no more than {decimals} decimals")


def _attributes(protected: gpd.GeoDataFrame) -> Finding:
    if protected.attrs:
        names = check.listed(list(protected.attrs))
        return Finding("no attributes", LOOK, f"the frame's attrs travel into files: {names}")
    return Finding("no attributes", PASSED, "the frame's attrs are empty")
