"""A synthetic city and its commuters: GPS traces with the true stays of their users."""

import itertools
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, overload

import geopandas as gpd
import numpy as np
import pandas as pd
import shapely
from numpy.random import Generator, SeedSequence, default_rng

from promesse_geo.traces.space import EARTH_RADIUS
from promesse_geo.traces.traces import Traces
from promesse_geo.validation import check_choice, check_flag, check_integer

CENTRE = (4.84, 45.76)  # longitude and latitude
MIDNIGHT = pd.Timestamp("2024-03-04", tz="Europe/Paris")  # a Monday, on which every trace begins
SHORTEST_STAY = 900  # seconds from which on a stay counts as a true POI, as in the paper
_RECORDERS = ("trips", "phone")
_TILT = math.radians(12)
_HOUR = 3_600
_LINES = 81  # streets in each direction
_AVENUE = 6  # every sixth street is an avenue
# Ways to travel: metres per second on streets and on avenues, chance and longest seconds of a stop at a crossing.
_WALK = (1.35, 1.35, 0.10, 30)
_BIKE = (4.4, 4.4, 0.15, 45)
_BUS = (7.5, 9.0, 0.40, 35)
_CAR = (8.3, 12.0, 0.22, 90)
# Seconds up to which a stay is short, and not long; for short, middle and long stays the chances that the trip after it
# is recorded, and that the device stays on during it.
_STAYS = (1.5 * _HOUR, 4 * _HOUR)
_USED = (0.9, 0.05, 0.9)
_LEFT_ON = (0.5, 0.0, 0.0)
# Hours that each kind of visit lasts at least, drawn between the two.
_LASTS = {"home": (0.5, 0.5), "work": (0.5, 1), "lunch": (0.6, 1), "errand": (0.33, 0.67), "leisure": (1, 3)}


_Yes = Literal[True]


class City(NamedTuple):
    """Streets, as their distances in metres from the centre, and (n, 2) places shared by all users."""

    columns: np.ndarray
    rows: np.ndarray
    offices: np.ndarray
    venues: np.ndarray
    shops: np.ndarray


class Visit(NamedTuple):
    """A stay at a place for a number of seconds, and at least until a second."""

    kind: str
    place: np.ndarray
    seconds: float
    until: float = 0.0


@overload
def make_city(users: int = ..., days: int = ..., seed: int = ..., *, recorder: str = ...) -> gpd.GeoDataFrame: ...
@overload
def make_city(
    users: int = ..., days: int = ..., seed: int = ..., *, recorder: str = ..., return_pois: _Yes
) -> tuple[gpd.GeoDataFrame, gpd.GeoDataFrame]: ...
@overload
def make_city(
    users: int = ..., days: int = ..., seed: int = ..., *, recorder: str = ..., return_streets: _Yes
) -> tuple[gpd.GeoDataFrame, gpd.GeoDataFrame]: ...
@overload
def make_city(
    users: int = ..., days: int = ..., seed: int = ..., *, recorder: str = ..., return_pois: _Yes, return_streets: _Yes
) -> tuple[gpd.GeoDataFrame, gpd.GeoDataFrame, gpd.GeoDataFrame]: ...
@overload
def make_city(
    users: int = ..., days: int = ..., seed: int = ..., *, recorder: str = ..., as_traces: _Yes
) -> Traces: ...
@overload
def make_city(
    users: int = ..., days: int = ..., seed: int = ..., *, recorder: str = ..., return_pois: _Yes, as_traces: _Yes
) -> tuple[Traces, gpd.GeoDataFrame]: ...
@overload
def make_city(
    users: int = ..., days: int = ..., seed: int = ..., *, recorder: str = ..., return_streets: _Yes, as_traces: _Yes
) -> tuple[Traces, gpd.GeoDataFrame]: ...
@overload
def make_city(
    users: int = ...,
    days: int = ...,
    seed: int = ...,
    *,
    recorder: str = ...,
    return_pois: _Yes,
    return_streets: _Yes,
    as_traces: _Yes,
) -> tuple[Traces, gpd.GeoDataFrame, gpd.GeoDataFrame]: ...
@overload
def make_city(
    users: int = ...,
    days: int = ...,
    seed: int = ...,
    *,
    recorder: str = ...,
    return_pois: bool = ...,
    return_streets: bool = ...,
    as_traces: bool = ...,
) -> gpd.GeoDataFrame | Traces | tuple[gpd.GeoDataFrame | Traces, *tuple[gpd.GeoDataFrame, ...]]: ...


def make_city(
    users: int = 50,
    days: int = 7,
    seed: int = 0,
    *,
    recorder: str = "trips",
    return_pois: bool = False,
    return_streets: bool = False,
    as_traces: bool = False,
) -> gpd.GeoDataFrame | Traces | tuple[gpd.GeoDataFrame | Traces, *tuple[gpd.GeoDataFrame, ...]]:
    """Make GPS traces of commuters in a synthetic city.

    Users travel along streets between home, work, shops and evenings out, on foot, by bike, bus or car. Their devices
    record with errors of some metres and lose the signal for minutes. The city lies where Lyon does, but no place or
    user is real.

    Parameters
    ----------
    users, days : int
        Number of users, and of days from Monday 2024-03-04 at midnight in Europe/Paris. Users are drawn
        independently: the first ones do not depend on the number of users.
    seed : int, default 0
        The same seed gives the same city, users and records.
    recorder : {"trips", "phone"}
        What records. "trips": devices that users switch on for most trips, and leave on during some short stays, as
        volunteers of a study do; they record every 1 to 5 s, and less than half of the time of their traces, split at
        gaps of 4 h, is in stays, as in Geolife. "phone": phones that record all day, every 5 to 15 s when moving and
        every 30 to 120 s when stationary, and are mostly off at night; 97 % of the time is in stays.
    return_pois, return_streets : bool, default False
        Whether to return the true stays and the streets as well, in this order.
    as_traces : bool, default False
        Whether to return the records as `Traces` rather than as a frame of points.

    Returns
    -------
    data : geopandas.GeoDataFrame or Traces
        Records: user ("user-000" and so on), time (UTC) and location (EPSG:4326), per user and day about 1,300 of
        trips and 1,200 of phones.
    pois : geopandas.GeoDataFrame
        Only with `return_pois`: stays of at least 15 minutes with records in them, by user and arrival, as user,
        kind ("home", "work", "lunch", "errand" or "leisure"), arrival, departure (UTC) and true location.
    streets : geopandas.GeoDataFrame
        Only with `return_streets`: lines, with kind ("street" or "avenue"). Pass it to `map` as its `background`.

    Raises
    ------
    TypeError, ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> records, pois = make_city(users=2, days=1, return_pois=True)
    >>> records["user"].unique().tolist()
    ['user-000', 'user-001']
    """
    users = check_integer(users, name="users", owner="make_city")
    days = check_integer(days, name="days", owner="make_city")
    seed = check_integer(seed, name="seed", owner="make_city", low=0)
    check_choice(recorder, name="recorder", owner="make_city", options=_RECORDERS)
    return_pois = check_flag(return_pois, name="return_pois", owner="make_city")
    return_streets = check_flag(return_streets, name="return_streets", owner="make_city")
    as_traces = check_flag(as_traces, name="as_traces", owner="make_city")
    city = _build_city(default_rng(seed))
    lives = _populate(city, users, days=days, seed=seed, recorder=recorder)
    keys, counts, times, x, y = _arrays(lives)
    traces = Traces.from_arrays(x, y, times=times, users=keys, counts=counts)
    data = traces if as_traces else traces.to_frame()
    others = [_pois(lives, keys=keys)] * return_pois + [_streets(city)] * return_streets
    return (data, *others) if others else data


def _populate(city: City, users: int, *, days: int, seed: int, recorder: str) -> list[tuple]:
    """Return the result of `_live` for every user, each with a separate generator."""
    record = _record_trips if recorder == "trips" else _record
    midnights = (pd.date_range(MIDNIGHT, periods=days + 1, freq="D") - MIDNIGHT).total_seconds().to_numpy()
    rngs = [default_rng(child) for child in SeedSequence(seed).spawn(users)]
    return [_live(rng, city=city, midnights=midnights, record=record) for rng in rngs]


def _arrays(lives: list[tuple]) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return user keys, records per user, times (int64 nanoseconds, UTC), longitudes and latitudes."""
    seconds, positions, _ = zip(*lives, strict=True)
    width = max(3, len(str(len(seconds) - 1)))
    keys = [f"user-{number:0{width}d}" for number in range(len(seconds))]
    counts = np.array([len(times) for times in seconds], dtype=np.int64)
    times = np.concatenate(seconds) * 1_000_000_000 + MIDNIGHT.as_unit("ns").value
    longitudes, latitudes = np.concatenate(positions, axis=1)
    return keys, counts, times, longitudes, latitudes


def _pois(lives: list[tuple], *, keys: list[str]) -> gpd.GeoDataFrame:
    """Return the true stays as a frame of points."""
    rows = [(key, *stay) for key, (*_, stays) in zip(keys, lives, strict=True) for stay in stays]
    frame = pd.DataFrame(rows, columns=["user", "kind", "arrival", "departure", "longitude", "latitude"])
    points = gpd.points_from_xy(frame.pop("longitude"), frame.pop("latitude"))
    for column in ("arrival", "departure"):
        frame[column] = MIDNIGHT.tz_convert("UTC").as_unit("ns") + pd.to_timedelta(frame[column].round(), unit="s")
    return gpd.GeoDataFrame(frame, geometry=points, crs="EPSG:4326")


def _streets(city: City) -> gpd.GeoDataFrame:
    """Return all streets as a frame of lines, bent like the plan."""
    x, y = np.meshgrid(city.columns, city.rows, indexing="ij")
    crossings = _to_degrees(np.array([x, y]).reshape(2, -1)).T.reshape(*x.shape, 2)
    lines = [shapely.linestrings(ways) for ways in (crossings, crossings.swapaxes(0, 1))]
    kinds = np.where(np.arange(_LINES) % _AVENUE == 0, "avenue", "street")
    return gpd.GeoDataFrame({"kind": np.tile(kinds, 2)}, geometry=np.concatenate(lines), crs="EPSG:4326")


def _build_city(rng: Generator) -> City:
    """Draw the streets and the shared places."""
    columns, rows = (np.cumsum(axis) - axis[: _LINES // 2].sum() for axis in rng.uniform(120, 180, (2, _LINES)))
    districts = [(0, 0), (0, 0), (2_600, -1_200), (-1_800, 2_700)]
    quarters = [(300, 500), (-900, -600), (1_500, 1_600), (-2_400, 900), (1_900, -2_300)]
    offices = rng.choice(districts, 120) + rng.normal(0, 550, (120, 2))
    venues = rng.choice(quarters, 50) + rng.normal(0, 350, (50, 2))
    shops = rng.normal(0, 2_400, (40, 2))
    return City(columns, rows, *(_beside_street(places, rows=rows, rng=rng) for places in (offices, venues, shops)))


def _beside_street(places: np.ndarray, *, rows: np.ndarray, rng: Generator) -> np.ndarray:
    """Move (n, 2) places, at most 5.5 km from the middle, to the north side of the next east-west street."""
    x, y = np.clip(places, -5_500, 5_500).T
    return np.column_stack([x, rows[np.searchsorted(rows, y) - 1] + rng.uniform(12, 30, len(y))])


def _live(
    rng: Generator, *, city: City, midnights: np.ndarray, record: Callable[..., Any]
) -> tuple[np.ndarray, np.ndarray, list[tuple]]:
    """Draw a user: return the seconds of the records, (2, n) positions in degrees, and true stays."""
    visits = _plan(_settle(city, rng=rng), midnights=midnights, rng=rng)
    edges, moments, way = _move(visits, city=city, end=midnights[-1], rng=rng)
    visits = visits[: len(edges) // 2]
    times, legs = record([visit.kind for visit in visits], edges=edges, midnights=midnights, rng=rng)
    true = np.array([np.interp(times, moments, axis) for axis in way.T])
    positions = _to_degrees(true + _noise(legs, rng=rng))
    return times.astype(np.int64), positions, _stays(visits, edges=edges, times=times)


def _stays(visits: list[Visit], *, edges: np.ndarray, times: np.ndarray) -> list[tuple]:
    """Return kind, arrival, departure, longitude and latitude of the visits that count as true POIs."""
    arrivals, departures = edges[::2], edges[1::2]
    recorded = np.searchsorted(times, departures, side="right") > np.searchsorted(times, arrivals)
    positions = _to_degrees(np.array([visit.place for visit in visits]).T)
    stays = zip([visit.kind for visit in visits], arrivals, departures, *positions, strict=True)
    return list(itertools.compress(stays, recorded & (departures - arrivals >= SHORTEST_STAY)))


def _settle(city: City, *, rng: Generator) -> dict[str, np.ndarray]:
    """Draw a user's (n, 2) places of every kind."""
    home = _beside_street(rng.normal(0, 2_400, (1, 2)), rows=city.rows, rng=rng)
    # Few offices employ many people: popularity falls with the rank.
    office = city.offices[[int(len(city.offices) * rng.random() ** 2)]]
    canteen = city.venues[[np.abs(city.venues - office).sum(axis=1).argmin()]]
    shop = city.shops[[np.abs(city.shops - home).sum(axis=1).argmin()]]
    venues = rng.choice(city.venues, 4, replace=False)
    return {"home": home, "work": office, "lunch": canteen, "errand": shop, "leisure": venues}


def _plan(places: dict[str, np.ndarray], *, midnights: np.ndarray, rng: Generator) -> list[Visit]:
    """Return all visits in order, from home to home."""
    habits = rng.uniform([7, 16, 0.4], [9, 19, 0.8])
    visits = []
    for day, midnight in enumerate(midnights[:-1].tolist()):
        for kind, hour in _weekday(rng, *habits) if day % 7 < 5 else _weekend(rng):
            seconds, until = rng.uniform(*_LASTS[kind]) * _HOUR, midnight + hour * _HOUR
            visits.append(Visit(kind, rng.choice(places[kind]), seconds, until))
    return [*visits, Visit("home", places["home"][0], math.inf)]


def _weekday(rng: Generator, leaves: float, finishes: float, sociable: float) -> list[tuple[str, float]]:
    """Return the kinds of visits of a working day, and the hour until which each lasts at least."""
    day = [("home", rng.normal(leaves, 0.2))]
    day += [("work", rng.normal(12.25, 0.25)), ("lunch", 0)] * (rng.random() < 0.3)
    day += [("work", rng.normal(finishes, 0.4))] + [("errand", 0)] * (rng.random() < 0.25)
    if rng.random() < sociable:
        day += [("home", rng.normal(20, 0.4))] * (rng.random() < 0.5) + [("leisure", 0)]
    return day


def _weekend(rng: Generator) -> list[tuple[str, float]]:
    """Return the visits of a day off, like those of a working day: two outings, one or none."""
    market = [("home", rng.normal(10.5, 0.7)), ("errand", 0)] * (rng.random() < 0.5)
    return market + [("home", rng.uniform(14, 19.5)), ("leisure", 0)] * (rng.random() < 0.65)


def _move(visits: list[Visit], *, city: City, end: float, rng: Generator) -> tuple[np.ndarray, ...]:
    """Return arrivals and departures in turn, and the way: moments and (n, 2) positions, straight in between."""
    commute = max(np.abs(visit.place - visits[0].place).sum() for visit in visits if visit.kind in ("home", "work"))
    vehicle = _BUS if rng.random() < 0.4 else _BIKE if commute < 3_500 else _CAR
    edges, moments, ways = [0.0], [np.zeros(1)], [visits[0].place[None]]
    for visit, following in itertools.pairwise(visits):
        departure = max(edges[-1] + visit.seconds, visit.until)
        if departure >= end:
            break
        ends = np.array([visit.place, following.place])
        mode = _WALK if np.abs(ends[1] - ends[0]).sum() < 900 else vehicle
        elapsed, way = _travel(ends, mode=mode, city=city, rng=rng)
        edges += [departure, departure + elapsed[-1]]
        moments.append(departure + elapsed)
        ways.append(way)
    return np.minimum([*edges, end], end), np.concatenate(moments), np.concatenate(ways)


def _travel(ends: np.ndarray, *, mode: tuple, city: City, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds and (n, 2) positions from place to place: each crossing twice, at arrival and departure."""
    street_speed, avenue_speed, stop_chance, longest_stop = mode
    column, row = _crossings(ends, city=city, spacing=_AVENUE if avenue_speed > street_speed else 1, rng=rng)
    x = np.concatenate([[ends[0, 0]] * 2, city.columns[column], [ends[1, 0]] * 2])
    y = np.concatenate([ends[:1, 1], city.rows[[row[0], *row, row[-1]]], ends[1:, 1]])
    street = np.where(np.diff(column) == 0, column[1:], row[1:])
    speeds = np.full(len(x) - 1, street_speed) * rng.uniform(0.85, 1.15) * rng.uniform(0.8, 1.2, len(x) - 1)
    speeds[2:-2][street % _AVENUE == 0] *= avenue_speed / street_speed
    speeds[[0, -1]] = _WALK[0]  # between building and street
    rides = np.hypot(np.diff(x), np.diff(y)) / speeds
    stops = rng.uniform(4, longest_stop, len(rides)) * (rng.random(len(rides)) < stop_chance)
    elapsed = np.cumsum(np.column_stack([stops, rides]))
    return np.concatenate([[0.0], elapsed]), np.column_stack([np.repeat(x, 2), np.repeat(y, 2)])[:-1]


def _crossings(ends: np.ndarray, *, city: City, spacing: int, rng: Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and rows of the crossings on a staircase of at most five turns, drawn anew each time."""
    # The first and last crossing are on the side of the other place, so that no user turns back.
    first, last = np.searchsorted(city.columns, ends[:, 0]) - ([0, 1] if ends[1, 0] >= ends[0, 0] else [1, 0])
    start, stop = np.searchsorted(city.rows, ends[:, 1]) - 1
    across, up = _corners(first, last, spacing=spacing, rng=rng), _corners(start, stop, spacing=spacing, rng=rng)
    steps = np.abs([np.diff(across), np.diff(up)]).T.ravel()
    climbs = np.repeat([False, True] * 3, steps)
    columns = first + np.sign(last - first) * np.cumsum(~climbs)
    return np.append(first, columns), np.append(start, start + np.sign(stop - start) * np.cumsum(climbs))


def _corners(first: int, last: int, *, spacing: int, rng: Generator) -> np.ndarray:
    """Return the lines at which to turn on the way from the first to the last, on avenues where there are any."""
    low, high = sorted((first, last))
    turns = np.clip(np.round(rng.integers(low, high + 1, 2) / spacing) * spacing, low, high).astype(int)
    return np.array([first, *sorted(turns, reverse=bool(first > last)), last])


def _record(kinds: list[str], *, edges: np.ndarray, midnights: np.ndarray, rng: Generator) -> tuple[np.ndarray, ...]:
    """Return the seconds at which the phone records, and the leg of each: even when stationary, odd when moving."""
    intervals = np.tile(rng.uniform([50, 8], [85, 11]), len(kinds))[:-1]
    # One tick per record: ticks are short when the user moves, and long when stationary.
    ticks = np.append(0, np.cumsum(np.diff(edges) / intervals))
    due = np.arange(int(ticks[-1]))
    times = np.floor(np.interp(due + rng.uniform(0, 0.4, len(due)), ticks, edges))
    legs = _count_before(edges, times) - 1
    # Most phones are off on most nights, some hardly ever.
    silent = rng.random(len(midnights)) < rng.choice([0.9, 0.0], p=[0.85, 0.15])
    bedtimes, rises = rng.uniform([[-1.5], [5.8]], [[0.6], [7.6]], (2, len(midnights))) * _HOUR + midnights
    at_home = (np.array(kinds) == "home")[legs // 2] & (legs % 2 == 0)
    asleep = at_home & _within(times, bedtimes[silent], rises[silent])
    recorded = ~(asleep | _lost(times, end=edges[-1], days=len(midnights) - 1, rng=rng))
    return times[recorded], legs[recorded]


def _record_trips(
    kinds: list[str], *, edges: np.ndarray, midnights: np.ndarray, rng: Generator
) -> tuple[np.ndarray, ...]:
    """Return seconds and legs like `_record`, for a device that is switched on for most trips and some stays."""
    arrivals, departures = edges[::2], edges[1::2]
    length = np.searchsorted(_STAYS, departures - arrivals)  # short, of some hours, long
    # On from some minutes before each departure until some minutes after the arrival, or until the next departure.
    starts = departures[:-1] - rng.uniform(0, 180, len(kinds) - 1)
    left_on = rng.random(len(starts)) < np.array(_LEFT_ON)[length[1:]]
    ends = np.where(left_on, departures[1:], arrivals[1:] + rng.uniform(30, 240, len(starts)))
    used = rng.random(len(starts)) < np.array(_USED)[length[:-1]]
    used[:1] |= ~used.any()  # every user records something
    interval = int(rng.integers(1, 6))
    times = np.arange(float(rng.integers(0, interval)), float(edges[-1]), interval)
    recorded = _within(times, starts[used], ends[used])
    recorded &= ~_lost(times, end=edges[-1], days=len(midnights) - 1, rng=rng)
    times = times[recorded]
    return times, _count_before(edges, times) - 1


def _lost(times: np.ndarray, *, end: float, days: int, rng: Generator) -> np.ndarray:
    """Return which records are lost with the signal, about twice a day for minutes."""
    losses = np.sort(rng.uniform(0, end, rng.poisson(2 * days)))
    return _within(times, losses, losses + rng.lognormal(math.log(300), 0.8, len(losses)))


def _within(times: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return which times lie in one of the spans, given by start; spans may overlap."""
    latest = np.concatenate([[-math.inf], np.maximum.accumulate(ends)])
    return times < latest[_count_before(starts, times)]


def _count_before(moments: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return how many of a few sorted moments are at or before each of many sorted times."""
    firsts = np.searchsorted(times, moments)
    return np.repeat(np.arange(len(moments) + 1), np.diff(firsts, prepend=0, append=len(times)))


def _noise(legs: np.ndarray, *, rng: Generator) -> np.ndarray:
    """Return (2, n) errors in metres: they drift from record to record, and are larger and jump at times indoors."""
    indoors = legs % 2 == 0
    sigmas = np.where(indoors, rng.uniform(8, 12, legs.max() + 1)[legs], 4.5)
    # First-order autoregression with coefficient 0.8, cut where it has died away.
    memory = 0.6 * 0.8 ** np.arange(20)
    drift = [np.convolve(axis, memory, mode="valid") for axis in rng.standard_normal((2, len(legs) + 19))]
    noise = sigmas * drift + rng.normal(0, 25, (2, len(legs))) * (indoors & (rng.random(len(legs)) < 0.012))
    # At most 60 m, so that the records of a stay fit into 200 m.
    return noise * np.minimum(1, 60 / np.maximum(np.hypot(*noise), 1e-9))


def _to_degrees(points: np.ndarray) -> np.ndarray:
    """Return longitudes and latitudes, (2, n), of points of the street plan, which is bent a little and turned."""
    x, y = points + 180 * np.sin(points[::-1] / [[1_900], [2_300]] + [[1], [2]])
    east, north = x * math.cos(_TILT) - y * math.sin(_TILT), x * math.sin(_TILT) + y * math.cos(_TILT)
    degree, (longitude, latitude) = math.radians(EARTH_RADIUS), CENTRE
    longitudes = longitude + east / (degree * math.cos(math.radians(latitude)))
    return np.array([longitudes, latitude + north / degree]).round(6)
