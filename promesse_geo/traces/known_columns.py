"""Known names of columns that hold user, time and coordinates."""

import re
from collections.abc import Collection, Hashable, Sequence
from functools import cache
from typing import Any

Ranks = tuple[tuple[str, ...], ...]
"""Known names of a role; those of an earlier rank come first. Case, blanks, `-_.#:` and a unit in brackets at the end
do not count.
"""

TRIPS = ("trip_id", "track_id", "traj_id", "trajectory_id", "track_fid")
"""Names of columns of trajectories or trips: segments of their user if there is a user column, else the users."""

USERS: Ranks = (
    ("user",),
    (
        *("uid", "user_id", "username", "participant_id", "participant", "pid", "person_id"),
        *("individual-local-identifier", "Teilnehmer", "Benutzer", "Nutzer", "Proband", "Person"),
        *("utilisateur", "usuario"),
    ),
    ("subject_id", "subject", "animal_id", "rider_id", "rider", "driver_id", "driver", "Fahrer"),
    ("device_id", "tracker_id", "imei"),
    ("device",),
    ("tid",),
    ("MMSI", "icao24", "taxi_id", "vehicle_id", "cab_id", "bus_id"),
    TRIPS,
)
"""Persons and animals (in English, German, French and Spanish), devices, vehicles and trips.

`id` is none of them: it often numbers the records.
"""

TIMES: Ranks = (
    ("time",),
    ("datetime", "timestamp", "tracked_at", "ts", "tst", "BaseDateTime", "fixtime"),
    ("t",),
    ("UTC time", "isotst", "Zeitstempel", "Zeitpunkt", "Zeit", "Datum/Uhrzeit", "horodatage", "fecha_hora"),
    ("recorded_at", "measured_at", "observed_at", "time_utc", "timestamp_utc", "utc", "gps_time", "gps_timestamp"),
    ("unix_time", "epoch"),
    ("created_at",),
    ("Uhrzeit", "heure", "hora", "time_of_day"),  # beside a date
    ("date", "Datum", "fecha"),
)

LONGITUDES: Ranks = (
    ("lon",),
    ("lng", "long", "longitude", "location-long", "double_longitude", "Längengrad", "Laengengrad", "longitud"),
    ("gps_longitude", "gps_lon", "gps_lng", "longitude_deg", "lon_deg", "longitude_wgs84", "lon_wgs84"),
    ("Länge", "Laenge"),  # also a length
    ("x",),
)
LATITUDES: Ranks = (
    ("lat",),
    ("latitude", "location-lat", "double_latitude", "Breitengrad", "latitud"),
    ("gps_latitude", "gps_lat", "latitude_deg", "lat_deg", "latitude_wgs84", "lat_wgs84"),
    ("Breite",),  # also a width
    ("y",),
)

KNOWN: dict[str, Ranks] = {"user": USERS, "time": TIMES, "lon": LONGITUDES, "lat": LATITUDES, "segment": ()}
"""Known names of columns by role."""

_IGNORED = re.compile(r"[\s_.#:-]+")
_UNIT = re.compile(r"(?<=[^\s(\[])\s*(?:\([^()]*\)|\[[^\[\]]*\])\s*$")


def fold(name: Hashable) -> Hashable:
    """Return a name without what does not count when columns are detected: case, blanks, `-_.#:` and a unit.

    Examples
    --------
    >>> fold("location-long"), fold("Latitude [deg]")
    ('locationlong', 'latitude')
    """
    return _IGNORED.sub("", _UNIT.sub("", name)).casefold() if isinstance(name, str) else name


def candidates_for(columns: Sequence[Hashable], known: Ranks, *, every: bool = False) -> list[Any]:
    """Return the columns with a known name of the first rank that has any, or with `every` those of all ranks.

    The exact name comes before others.
    """
    candidates = []
    for rank in known:
        names = _folded(rank)
        fitting = list(dict.fromkeys(column for column in columns if fold(column) in names))
        if len(rank) == 1 and rank[0] in columns and not every:
            fitting = [rank[0]]
        if fitting and not every:
            return fitting
        candidates += fitting
    return candidates


@cache
def _folded(rank: tuple[str, ...]) -> frozenset[Hashable]:
    return frozenset(map(fold, rank))


def find_trips(columns: Sequence[Hashable], user: Hashable, *, but: Collection[Hashable] = ()) -> Any:
    """Return the only column of trips beside a column of users; None if there is none, or the users are trips.

    Columns in `but` do not count.
    """
    trips = [name for name in candidates_for(columns, (TRIPS,)) if name not in but]
    return trips[0] if len(trips) == 1 and fold(user) not in map(fold, (*TRIPS, "id")) else None
