"""Report what attackers find in protected data before it is published."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geopandas as gpd
import pandas as pd

from promesse_geo.audit.owned_parts import OwnedParts
from promesse_geo.audit.recognition import contradiction, noted_mechanism
from promesse_geo.audit.risk_page import glance, percent, risk_page
from promesse_geo.audit.risks import Risks, find_risks
from promesse_geo.io.atomic import check_target, write_text
from promesse_geo.mechanisms import Mechanism, mechanism_in_words
from promesse_geo.mechanisms.words import chosen_texts
from promesse_geo.messages import invalid, warn
from promesse_geo.metrics.pairing import warn_if_exchanged
from promesse_geo.plot.page import ENDINGS
from promesse_geo.preprocess.pseudonyms import PSEUDONYM
from promesse_geo.traces.columns import Name
from promesse_geo.traces.traces import Traces, as_traces
from promesse_geo.validation import check_ending, check_flag, check_path, check_seed


@dataclass(frozen=True, eq=False, repr=False)
class RiskReport:
    """What `report` found; it prints the main results.

    Parameters
    ----------
    measures : pandas.DataFrame
        One row per attack: the `question` of the regulators, a `key`, `title` and `sentence`, the `basis`, of which
        values are a share, the `value` in the protected data, in the `raw` data and of guessing (`guess`), in %, and
        the `reason` if there is no value. Unicity has no value of guessing.
    utility : pandas.DataFrame
        One row per metric: `metric`, `title`, `sentence`, `value`, `unit`.
    people : pandas.DataFrame
        One row per user of the original, numbered anew, the worst first. `place_located` and `place_distance` are of
        the place where most traces begin or end, or a `second_place` with at least half as many, whichever is nearer.
        Values are missing where there is nothing to find.
    sizes : pandas.Series
        Numbers of users, traces and records, original and published. Traces are the original ones, split at gaps of
        4 h if there is one per user, and those of them that have published records.
    path : pathlib.Path
        The HTML page.

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> parts = pg.make_city(users=4, days=4).promesse.prepare(tz="Europe/Paris", keep_user=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = pg.report(parts, parts, pathlib.Path(folder) / "report.html", seed=1)
    >>> found.measures["question"].unique().tolist()
    ['singling out', 'linkability', 'inference']
    """

    measures: pd.DataFrame
    utility: pd.DataFrame
    people: pd.DataFrame
    sizes: pd.Series
    path: Path

    def __repr__(self) -> str:
        """Return the main results, and one line per attack."""
        rows = self.measures.to_dict("records")
        width = max(len(row["title"]) for row in rows)
        lines = [f"{row['title']:<{width}}  {_values(row)}" for row in rows]
        return "\n".join([*glance(self._risks()), "", *lines])

    def _risks(self) -> Risks:
        sizes = {str(name): int(count) for name, count in self.sizes.items()}
        return Risks(self.measures, self.utility, self.people, sizes)


def _values(row: Mapping[Any, Any]) -> str:
    """Return the values of a measure as text, or the reason why there is none."""
    value, raw, guess = (percent(row[name]) for name in ("value", "raw", "guess"))
    guessing = "" if math.isnan(row["guess"]) else f", guessing {guess}"
    return row["reason"] or f"{value} (raw data {raw}{guessing}; {row['basis']})"


def report(
    original: gpd.GeoDataFrame | Traces,
    protected: gpd.GeoDataFrame | Traces,
    path: str | os.PathLike[str],
    *,
    mechanism: Mechanism | None = None,
    seed: int | str | None = None,
    force: bool = False,
    user: Name = ...,
    time: Name = ...,
) -> RiskReport:
    """Write a risk report of protected data: one HTML page for those who decide on publication.

    The page answers the three questions of the European data protection authorities, singling out, linkability and
    inference, with the values of attacks on the protected data, on the raw data and of guessing, in plain words and
    bars. A table has what is found of each person, and others what remains useful and what was dropped. There are no
    positions and no names: people are numbered anew, the worst first. There is no overall grade.

    Parameters
    ----------
    original : geopandas.GeoDataFrame or Traces
        What was protected: prepared data, such as `prepare(keep_user=True)` returns, or one trace per user. With new
        names, without `keep_user`, each part counts as a person.
    protected : geopandas.GeoDataFrame or Traces
        The protected data under the names of the original (`--keep-users`), or of parts of its users.
    path : path of a file
        The HTML page to write; it ends in .html or .htm. A new file is for its owner only (mode 0600).
    mechanism : Mechanism, optional
        What protected the data. An attacker who applies it to what he knows is then tried as well.
    seed : int or str, optional
        Makes what is drawn repeatable: known points, queries, guesses, the order of people at equal risk, and what a
        random mechanism draws for the attacker. By default it comes from the operating system.
    force : bool
        Whether to overwrite an existing file.
    user, time : column name, None or ...
        Columns of both frames; see `Traces.from_frame`.

    Returns
    -------
    RiskReport
        The tables behind the page.

    Raises
    ------
    TypeError, ValueError, KeyError
        If a parameter is invalid, the data cannot be read, or protected traces have no user in the original.
    OSError
        If the file cannot be written, or exists and `force` is False.

    Warns
    -----
    UserWarning
        If the users of the original are new names of parts, or the original notes a mechanism that moved or dropped
        positions, and the protected data does not begin with it: the two may be exchanged; or if the protected data
        notes another mechanism than `mechanism`.

    Notes
    -----
    The attacker knows the original records before the midpoint of the period, and receives the protected records after
    it. Other attacks may find more.

    References
    ----------
    Article 29 Working Party: Opinion 05/2014 on Anonymisation Techniques (WP 216).

    Examples
    --------
    >>> import promesse_geo as pg, tempfile, pathlib
    >>> parts = pg.make_city(users=3, days=4).promesse.prepare(tz="Europe/Paris", keep_user=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "report.html"
    ...     found = pg.report(parts, parts.promesse.smooth(200), page, mechanism=pg.Promesse(200), seed=1)
    ...     "user-0" in page.read_text(encoding="utf-8")
    False
    >>> found.measures.set_index("key").raw["places"].item()
    100.0
    """
    if mechanism is not None and not isinstance(mechanism, Mechanism):
        raise TypeError(invalid("mechanism", "report", "a mechanism such as pg.Promesse(200), or None", mechanism))
    key = check_seed(seed, owner="report")
    target = check_ending(check_path(path, name="path", owner="report"), ENDINGS, name="path", owner="report")
    check_target(target, force=check_flag(force, name="force", owner="report"))
    before, after = (as_traces(data, user=user, time=time) for data in (original, protected))
    if len(before) and before.users.astype(str).str.fullmatch(PSEUDONYM).all():
        warn(
            "The users of the original are new names of parts, so each part counts as a person, and nobody has enough "
            "trips to locate a home. Prepare with keep_user=True (--keep-users)."
        )
    parts = OwnedParts.of(before, after)
    warn_if_exchanged(before, after)
    if mechanism is not None:
        warn(contradiction(mechanism, after.protection))
    risks = find_risks(parts, mechanism=mechanism, seed=key)
    words = _in_words(mechanism or noted_mechanism(after), before)
    write_text(target, risk_page(risks, mechanism=words), force=force, private=True)
    sizes = pd.Series(risks.dropped, name="count", dtype="int64")
    return RiskReport(risks.measures, risks.utility, risks.people, sizes, target)


def _in_words(mechanism: Mechanism | None, original: Traces) -> str:
    """Return the mechanism with its parameters, or its kind alone if a parameter is the key of a user."""
    if mechanism is None:
        return ""
    description = mechanism.description()
    is_named = not set(map(str, original.users)).isdisjoint(chosen_texts(description))
    return type(mechanism).__name__ if is_named else mechanism_in_words(description)
