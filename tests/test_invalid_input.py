"""Invalid and unusual input to traces and parameters: one case per line, with the error or the result."""

import datetime
import re
import traceback
import warnings
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from shapely import LineString, MultiPoint, Point

import promesse_geo as pg
from promesse_geo.messages import listed

KEYS = ["zaphod"] * 4 + ["trillian"] * 3
COUNT = len(KEYS)
X, Y = (48_371 + 100 * np.arange(COUNT)) / 10_000, np.full(COUNT, 45.7523)
TIMES = pd.date_range("2024-03-04 09:00", periods=COUNT, freq="min", tz="UTC")
TEXT = str(pd.Series(KEYS).dtype)
PLACE = Point(4.8371, 45.7523)
# What no message may hold: a user's key, the beginning of a coordinate.
SECRETS = re.compile(r"zaphod|trillian|4\.8|4\.9|45\.75")


def make_frame(*, crs=4326, index=None, **columns) -> gpd.GeoDataFrame:
    """Seven records of two users, going east; columns replace its own, None leaves one out."""
    taken = {"user": KEYS, "time": TIMES, "geometry": gpd.points_from_xy(X, Y)} | columns
    geometry = taken.pop("geometry")
    columns = {name: column for name, column in taken.items() if column is not None}
    return gpd.GeoDataFrame(columns, geometry=geometry, crs=crs, index=index)


def one_place(odd) -> gpd.GeoDataFrame:
    """A frame whose third geometry is odd."""
    geometry = np.array([Point(*place) for place in zip(X, Y, strict=True)], dtype=object)
    geometry[2] = odd
    return make_frame(geometry=geometry)


def read(frame, **named):
    return pg.Traces.from_frame(frame, **named)


def smooth(frame, epsilon=200, **named):
    return pg.Promesse(epsilon).protect(frame, **named)


def quiet(action, *arguments, **named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return action(*arguments, **named)


def users(keys):
    """The users of Traces whose records have these keys, in order."""
    return list(read(make_frame(user=keys)).users)


def positions(times):
    """Where the records of Traces stood in the input."""
    return read(make_frame(time=times)).positions.tolist()


def user_error(keys):
    return lambda: read(make_frame(user=keys))


def time_error(times):
    return lambda: read(make_frame(time=times))


def without(name) -> gpd.GeoDataFrame:
    return make_frame(**{name: None})


def objects(*values) -> pd.Series:
    """A column of seven plain objects, repeating those given."""
    column = pd.Series([None] * COUNT, dtype=object)
    column[:] = [values[i % len(values)] for i in range(COUNT)]
    return column


def filled(value) -> pd.Series:
    """A column of seven equal objects, be they tuples."""
    return pd.Series([value for _ in range(COUNT)], dtype=object)


# Right answers, as functions of one line or a few.


def metres_between(frame, metres=1.0) -> list[float]:
    """Distances between consecutive points of the first user, in the plane of the CRS."""
    first = frame[frame["user"] == frame["user"].iloc[0]].geometry
    return np.round(np.hypot(np.diff(first.x), np.diff(first.y)) * metres, 4).tolist()


def mercator() -> float:
    """How many degrees EPSG:3857 is off EPSG:4326 at most."""
    expected, got = smooth(make_frame()), smooth(make_frame().to_crs(3857))
    assert got.crs == 3857
    back = got.to_crs(4326).geometry
    return max(np.abs(back.x - expected.geometry.x).max(), np.abs(back.y - expected.geometry.y).max())


def feet() -> set[float]:
    """Distances in metres of samples in US survey feet (EPSG:2263, New York)."""
    frame = make_frame(geometry=gpd.points_from_xy(X - 78.8, Y - 5)).to_crs(2263)
    assert read(frame).space.name == "plane"
    return set(metres_between(smooth(frame), metres=1200 / 3937))


def empty(frame, verb=smooth):
    """Length, CRS and kinds of columns of what a verb makes of no rows."""
    result = verb(frame.iloc[:0])
    time = str(result["time"].dtype) if "time" in result else str(result.index.dtype)
    return len(result), result.crs.to_epsg(), str(result["user"].dtype), time


def clocks_change() -> tuple[str, int]:
    """The zone, and by how many ns intervals differ, of a trace over the night of 2024-03-31 in Paris."""
    times = pd.date_range("2024-03-31 00:50", periods=COUNT, freq="10min", tz="UTC").tz_convert("Europe/Paris")
    result = smooth(make_frame(user=["a"] * COUNT, time=times))
    assert result["time"].iloc[0].utcoffset() != result["time"].iloc[-1].utcoffset()
    return str(result["time"].dt.tz), int(np.ptp(np.diff(pd.DatetimeIndex(result["time"]).asi8)))


def indexed(name="time") -> gpd.GeoDataFrame:
    return make_frame(time=None, index=TIMES.rename(name))


def read_only() -> bool:
    x, y, nanoseconds = X.copy(), Y.copy(), TIMES.as_unit("ns").asi8.copy()
    for array in (x, y, nanoseconds):
        array.flags.writeable = False
    traces = pg.Traces.from_arrays(x, y, times=nanoseconds, users=["zaphod", "trillian"], counts=np.array([4, 3]))
    return pg.Promesse(200).protect(traces).records == len(smooth(make_frame()))


def jumps() -> gpd.GeoDataFrame:
    """A user who commutes 400 times to the other side of the globe."""
    x = np.tile([0.0, 179.0], 200)
    times = pd.date_range("2024", periods=400, freq="h", tz="UTC")
    return gpd.GeoDataFrame({"user": "a", "time": times}, geometry=gpd.points_from_xy(x, 0 * x), crs=4326)


def refused(name, action, kind, message):
    return pytest.param(action, kind, message, id=name)


def answered(name, action, answer):
    return pytest.param(action, None, answer, id=name)


NO_FRAME = r"read from a GeoDataFrame of points\. Got a {} instead\. Make one with geopandas\.GeoDataFrame\("
NO_POINT = (
    r"1 record of 7 cannot be used \(rows are counted from 0\): a missing or empty geometry, one that is not a point, "
    r"or a coordinate that is not finite: 1, first in row 2\. .*errors='skip'"
)
SWAPPED = r"a latitude beyond 90 or a longitude beyond 360 degrees \(are the two swapped\?\): 1, first in row 2"
EPSILON = r"'epsilon' parameter of Promesse must be a finite number of metres above zero\. Got {} instead"
RANGE = r"'epsilon' .* must be between 0\.01 and 1,000,000 metres\. Got {} instead\. Is it in metres\?"
USERS = r"user column 'user' must hold text or integers\. Got values of the kind '{}'\."
DATETIMES = r"time column 'time' must hold datetimes\. Got values of the kind '{}'\. .*{}"
ZONES = r"'time' mixes time zones.*one zone: .*pd\.to_datetime\(frame\['time'\], utc=True\)"
YEARS = r"'time' holds dates outside the years 1678 to 2261"
NO_TIME = r"1 record of 7 cannot be used .*: no time: 1, first in row {}"
ONE_KIND = r"Two users differ only by their type, .*frame\['user'\]\.astype\(str\)"
_DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
GAP = r"'gap' parameter of split_gaps must be a duration above zero such as '15min'.*Got {} instead"
ZONE = r"'tz' parameter of {} must be a time zone such as 'Europe/Paris'\. Got {} instead"

WHAT_COMES = [
    # Not a frame of points
    refused("a DataFrame", lambda: smooth(pd.DataFrame(make_frame())), TypeError, NO_FRAME.format("pandas.DataFrame")),
    refused("a dict", lambda: pg.describe({"user": []}), TypeError, NO_FRAME.format("dict")),
    refused("None", lambda: pg.prepare(None), TypeError, NO_FRAME.format("NoneType")),
    refused("a GeoSeries", lambda: smooth(make_frame().geometry), TypeError, NO_FRAME.format(r"geopandas\.GeoSeries")),
    refused("a list", lambda: pg.split_gaps([1, 2]), TypeError, NO_FRAME.format("list")),
    refused(
        "no active geometry",
        lambda: read(gpd.GeoDataFrame({"user": ["a"], "time": TIMES[:1]})),
        ValueError,
        r"no active geometry column\. Choose one with gdf\.set_geometry",
    ),
    refused(
        "two geometries of one name",
        lambda: read(make_frame().assign(g=make_frame().geometry).rename(columns={"g": "geometry"})),
        ValueError,
        r"There are several columns named 'geometry'\. Rename all but the active geometry",
    ),
    refused(
        "names for Traces",
        lambda: pg.describe(read(make_frame()), user="user"),
        TypeError,
        r"'user', 'time' and 'segment' .* Traces have no columns",
    ),
    refused(
        "a word for a mechanism",
        lambda: make_frame().promesse.protect("promesse"),
        TypeError,
        r"'mechanism' .* must be a mechanism such as pg\.Promesse\(200\)\. Got 'promesse' instead",
    ),
    # Geometries
    refused("a missing geometry", lambda: read(one_place(None)), ValueError, NO_POINT),
    refused("an empty point", lambda: read(one_place(Point())), ValueError, NO_POINT),
    refused("NaN", lambda: read(one_place(Point(np.nan, 45.7523))), ValueError, NO_POINT),
    refused("inf", lambda: read(one_place(Point(4.8371, np.inf))), ValueError, NO_POINT),
    refused("a line", lambda: read(one_place(LineString([PLACE, (5, 46)]))), ValueError, NO_POINT),
    refused("a polygon", lambda: read(one_place(PLACE.buffer(1))), ValueError, NO_POINT),
    refused("a multipoint", lambda: read(one_place(MultiPoint([PLACE]))), ValueError, NO_POINT),
    refused("an empty collection", lambda: read(one_place(shapely.GeometryCollection())), ValueError, NO_POINT),
    refused("latitude 95", lambda: read(one_place(Point(4.8371, 95))), ValueError, SWAPPED),
    refused("latitude 1e300", lambda: read(one_place(Point(4.8371, 1e300))), ValueError, SWAPPED),
    refused(
        "latitude and longitude swapped",
        lambda: read(make_frame(geometry=gpd.points_from_xy(Y, X + 90))),
        ValueError,
        r"7 records of 7 .*a latitude beyond 90 .* \(are the two swapped\?\): 7, first in row 0",
    ),
    refused(
        "1e300 metres",
        lambda: read(make_frame(geometry=gpd.points_from_xy(X * 1e300, Y), crs=2154), space="plane"),
        ValueError,
        r"7 records of 7 .*a coordinate beyond 100,000 km from the origin \(is it the right CRS\?\): 7, first",
    ),
    answered(
        "Z",
        lambda: bool(quiet(pg.split_gaps, make_frame(geometry=gpd.points_from_xy(X, Y, Y))).geometry.has_z.any()),
        False,
    ),
    answered(
        "M",
        lambda: bool(
            shapely.has_m(
                quiet(pg.split_gaps, make_frame(geometry=shapely.from_wkt(["POINT M (1 2 3)"] * COUNT))).geometry
            ).any()
        ),
        False,
    ),
    answered("longitude 190", lambda: read(one_place(Point(190, 0))).to_frame().geometry.x[5], -170.0),
    answered("a pole", lambda: read(one_place(Point(10, 90))).points[5].round(12).tolist(), [0.0, 0.0, 1.0]),
    # CRS
    refused("no CRS", lambda: smooth(make_frame(crs=None)), ValueError, r"no CRS.* gdf\.set_crs\(4326\)"),
    refused(
        "geocentric",
        lambda: read(make_frame(crs=4978)),
        ValueError,
        r"of the kind 'Geocentric CRS'.*gdf\.to_crs\(4326\)",
    ),
    refused(
        "a plane of degrees",
        lambda: read(make_frame(), space="plane"),
        ValueError,
        r"'space' .* cannot be 'plane' for a geographic CRS.*Project the data first.*estimate_utm_crs",
    ),
    answered("EPSG:3857", lambda: mercator() < 1e-9, True),
    answered("US survey feet", feet, {200.0}),
    answered("a plane in metres", lambda: set(metres_between(smooth(make_frame().to_crs(32631)))), {200.0}),
    # Columns
    refused(
        "no user column",
        lambda: smooth(without("user")),
        ValueError,
        r"No user column was found\. Looked for 'user', 'uid'.*; the columns are 'time'\. .*user='…'.*user=None",
    ),
    refused(
        "no time column",
        lambda: smooth(without("time")),
        ValueError,
        r"No time column was found\. Looked for 'time', 'datetime'.*; the columns are 'user'\. .*time='…'",
    ),
    refused(
        "a named user column that is not there",
        lambda: smooth(make_frame(), user="cab"),
        KeyError,
        r"The user column 'cab' does not exist.*columns are 'user' and 'time'",
    ),
    refused(
        "a named time column that is not there",
        lambda: smooth(make_frame(), time="stamp"),
        KeyError,
        r"The time column 'stamp' does not exist.*columns are 'user' and 'time'",
    ),
    refused(
        "two candidates for the user",
        lambda: read(make_frame(user=None, uid=KEYS, pid=KEYS)),
        ValueError,
        r"Several columns could hold the user: 'uid' and 'pid'\. Specify which.*user='uid'",
    ),
    refused(
        "two candidates for the time",
        lambda: read(make_frame(time=None, timestamp=TIMES, ts=TIMES)),
        ValueError,
        r"Several columns could hold the time: 'timestamp' and 'ts'\. Specify which.*time='timestamp'",
    ),
    refused(
        "a DatetimeIndex and a candidate",
        lambda: read(make_frame(time=None, timestamp=TIMES, index=TIMES)),
        ValueError,
        r"Several columns could hold the time: 'timestamp' and 'the index'\. Specify which",
    ),
    refused("time=None", lambda: read(make_frame(), time=None), ValueError, r"'time' parameter cannot be None"),
    refused(
        "geometry as user",
        lambda: read(make_frame(), user="geometry"),
        KeyError,
        r"user column 'geometry' does not exist",
    ),
    *(
        refused(
            f"{name} as {role}, {number}",
            partial(call, **{role: value}),
            TypeError,
            rf"'{role}' parameter must be the name of a column\. Got {{}} instead\. .*as in {role}=".format(came),
        )
        for role in ("user", "time")
        for number, call in enumerate(
            (
                lambda **names: make_frame().promesse(**names).smooth(200),
                lambda **names: pg.describe(make_frame().set_index("time"), **names),
                lambda **names: pg.read_table("nowhere.csv", **names),
            )
        )
        for name, value, came in (
            ("a list", ["user"], "a value of type list and length 1"),
            ("NA", pd.NA, "<NA>"),
            ("an array", np.array(["user", "x"]), r"a value of type ndarray and shape \(2,\)"),
            ("a column", pd.Series(["user"]), r"a value of type Series and shape \(1,\)"),
            ("a tuple with an array", ("user", np.zeros(1)), "a value of type tuple and length 2"),
        )
    ),
    refused(
        "NA as lon", lambda: pg.read_table("nowhere.csv", lon=pd.NA), TypeError, "'lon' parameter must be the name"
    ),
    refused(
        "two user columns",
        lambda: read(pd.concat([make_frame(), make_frame()[["user"]]], axis=1)),
        ValueError,
        r"several columns named 'user'\. Rename all but the user's",
    ),
    refused("user in the index", lambda: read(make_frame().set_index(["user", "time"])), ValueError, r"No user column"),
    answered(
        "other columns twice",
        lambda: len(quiet(read, pd.concat([make_frame(), make_frame(z=1)[["z"]], make_frame(z=2)[["z"]]], axis=1))),
        2,
    ),
    answered(
        "numbers as column names",
        lambda: list(smooth(make_frame().rename(columns={"user": 0, "time": 1}), user=0, time=1).columns),
        [0, 1, "geometry"],
    ),
    answered("a renamed geometry", lambda: smooth(make_frame().rename_geometry("spot")).geometry.name, "spot"),
    answered(
        "another geometry made active",
        lambda: list(quiet(smooth, make_frame(spot=make_frame().geometry).set_geometry("spot"))),
        ["user", "time", "spot"],
    ),
    answered(
        "a dictionary of Arrow as users",
        lambda: list(read(make_frame(user=pd.Series(KEYS).astype(_DICTIONARY))).users),
        sorted(set(KEYS)),
    ),
    answered("user=None", lambda: list(quiet(smooth, make_frame(), user=None)), ["time", "geometry"]),
    answered("user=None is one trace", lambda: len(quiet(read, make_frame(), user=None)), 1),
    answered("a DatetimeIndex", lambda: smooth(indexed()).index.dtype == TIMES.as_unit("ns").dtype, True),
    answered("its name", lambda: smooth(indexed("stamp")).index.name, "stamp"),
    answered("a DatetimeIndex named as the user", lambda: list(smooth(indexed("user"))), ["user", "geometry"]),
    answered("a duplicate index", lambda: smooth(make_frame(index=[3] * COUNT)).index.is_unique, True),
    answered(
        "a MultiIndex",
        lambda: type(smooth(make_frame(index=pd.MultiIndex.from_product([[1], range(COUNT)]))).index),
        pd.RangeIndex,
    ),
    # Times
    refused("text", time_error(["2024-03-04"] * COUNT), TypeError, DATETIMES.format("string", r"utc=True")),
    refused("epochs", time_error(range(COUNT)), TypeError, DATETIMES.format("integer", r"unit='s', utc=True")),
    refused("float epochs", time_error(X), TypeError, DATETIMES.format("floating", r"unit='s', utc=True")),
    refused(
        "dates",
        time_error([datetime.date(2024, 3, 4)] * COUNT),
        TypeError,
        DATETIMES.format("date", r"pd\.to_datetime"),
    ),
    refused(
        "periods",
        time_error(pd.period_range("2024", periods=COUNT, freq="D")),
        TypeError,
        DATETIMES.format("period", r"to_timestamp"),
    ),
    refused(
        "durations",
        time_error(pd.to_timedelta(range(COUNT), unit="s")),
        TypeError,
        DATETIMES.format("timedelta64", r"pd\.to_datetime"),
    ),
    refused("categories", time_error(pd.Categorical(TIMES)), TypeError, DATETIMES.format("categorical", "Convert")),
    refused("booleans as times", time_error([True] * COUNT), TypeError, DATETIMES.format("boolean", "Convert")),
    refused("two zones", time_error(objects(TIMES[0], TIMES[0].tz_convert("Asia/Tokyo"))), ValueError, ZONES),
    refused("with and without zone", time_error(objects(TIMES[0], TIMES[0].tz_localize(None))), ValueError, ZONES),
    refused("NaT", time_error(TIMES.delete(3).insert(3, pd.NaT)), ValueError, NO_TIME.format(3)),
    refused("no time at all", time_error([None] * COUNT), ValueError, r"7 records of 7 .*no time: 7, first in row 0"),
    refused("the year 1500", time_error(np.full(COUNT, "1500-01-01", "M8[s]")), ValueError, YEARS),
    refused("the year 3000", time_error(objects(datetime.datetime(3000, 1, 1))), ValueError, YEARS),
    refused("the end of 1677", time_error(np.full(COUNT, "1677-12-31", "M8[ns]")), ValueError, YEARS),
    refused("the start of 2262", time_error(np.full(COUNT, "2262-01-01", "M8[ns]")), ValueError, YEARS),
    refused(
        "400 years",
        time_error(np.array(["1800", "2200"] * 3 + ["1800"], "M8[us]")),
        ValueError,
        r"'time' spans more than 292 years.*wrong dates",
    ),
    answered(
        "objects of one zone",
        lambda: str(read(make_frame(time=pd.Series(TIMES.tz_convert("Asia/Tokyo"), dtype=object))).time_index()[0]),
        "2024-03-04 18:04:00+09:00",
    ),
    answered(
        "Arrow timestamps",
        lambda: (
            read(make_frame(time=pd.Series(TIMES, dtype=pd.ArrowDtype(pa.timestamp("ms", "UTC"))))).times.tolist()
            == read(make_frame(user=KEYS)).times.tolist()
        ),
        True,
    ),
    answered(
        "Arrow timestamps without zone",
        lambda: str(
            read(make_frame(time=pd.Series(TIMES.tz_localize(None), dtype="timestamp[s][pyarrow]"))).time_index().dtype
        ),
        "datetime64[s]",
    ),
    answered("times in reverse", lambda: positions(TIMES[::-1]), [6, 5, 4, 3, 2, 1, 0]),
    answered("equal times", lambda: positions(TIMES[[0] * COUNT]), [4, 5, 6, 0, 1, 2, 3]),
    answered("equal times, smoothed", lambda: set(smooth(make_frame(time=TIMES[[0] * COUNT]))["time"]), {TIMES[0]}),
    answered("a change of clocks", lambda: clocks_change() in [("Europe/Paris", 0), ("Europe/Paris", 1)], True),
    # Users
    refused("floats", user_error(X), TypeError, USERS.format("floating") + r".*astype\('Int64'\)"),
    refused("integers and floats", user_error(objects(1, 2.5)), TypeError, USERS.format("mixed-integer-float")),
    refused("booleans", user_error([True] * COUNT), TypeError, USERS.format("boolean")),
    refused("booleans among text", user_error(objects("zaphod", True, 1)), TypeError, USERS.format("mixed-integer")),
    refused("tuples", user_error(filled(("zaphod", 1))), TypeError, USERS.format("mixed")),
    refused("bytes", user_error([b"zaphod"] * COUNT), TypeError, USERS.format("bytes")),
    refused("datetimes", user_error(TIMES), TypeError, USERS.format("datetime64")),
    refused("decimals", user_error(objects(Decimal(1))), TypeError, USERS.format("decimal")),
    refused("float categories", user_error(pd.Categorical(X)), TypeError, USERS.format("floating")),
    refused('1 and "1"', user_error(objects(1, "1")), ValueError, ONE_KIND),
    refused('categories 1 and "1"', user_error(pd.Categorical(objects(1, "1"))), ValueError, ONE_KIND),
    refused(
        "a lone surrogate", user_error(objects("a\ud800")), ValueError, r"not valid Unicode .*lone surrogate.*Rename"
    ),
    refused("no user", user_error([*KEYS[:5], None, np.nan]), ValueError, r"2 records .*no user: 2, first in row 5"),
    refused(
        "a missing category", user_error(pd.Categorical([None, *KEYS[1:]])), ValueError, r"no user: 1, first in row 0"
    ),
    refused(
        "a missing Int64", user_error(pd.array([1, None] * 3 + [2], "Int64")), ValueError, r"no user: 3, first in row 1"
    ),
    answered("integers", lambda: users([10, 9, 9, 10, 2, 2, 2]), [2, 9, 10]),
    answered("int32", lambda: users(np.array([10, 9, 9, 10, 2, 2, 2], np.int32)), [2, 9, 10]),
    answered("Int64", lambda: users(pd.array([10, 9, 9, 10, 2, 2, 2], "Int64")), [2, 9, 10]),
    answered("uint64", lambda: users(np.array([2**64 - 1] + [1] * 6, np.uint64)), [1, 2**64 - 1]),
    answered("integers beyond 64 bits", lambda: users(objects(2**70, 3)), [3, 2**70]),
    answered("text and integers", lambda: users(objects(10, "9", 2, "a")), [10, 2, "9", "a"]),
    answered(
        "unused categories", lambda: users(pd.Categorical(KEYS, ["ford", "zaphod", "trillian"])), sorted(set(KEYS))
    ),
    answered(
        "unused categories in the result",
        lambda: "ford" in repr(smooth(make_frame(user=pd.Categorical(KEYS, ["ford", *set(KEYS)])))["user"].dtype),
        False,
    ),
    answered("an empty text", lambda: users(["", *KEYS[1:]]), ["", "trillian", "zaphod"]),
    answered("a very long text", lambda: users(["x" * 100_000] * COUNT), ["x" * 100_000]),
    answered("lines and HTML", lambda: users(objects("<b>\n", "a\r\n", "\0")), ["\0", "<b>\n", "a\r\n"]),
    answered("a null byte at the end", lambda: users(objects("a\0", "a")), ["a", "a\0"]),
    # Parameters
    refused("epsilon -5", lambda: pg.Promesse(-5), ValueError, EPSILON.format("-5")),
    refused("epsilon 0", lambda: pg.Promesse(0), ValueError, EPSILON.format("0")),
    refused("epsilon NaN", lambda: pg.Promesse(np.nan), ValueError, EPSILON.format("nan")),
    refused("epsilon inf", lambda: pg.Promesse(np.inf), ValueError, EPSILON.format("inf")),
    refused("epsilon 10**400", lambda: pg.Promesse(10**400), ValueError, EPSILON.format(r"1000.*")),
    refused("epsilon True", lambda: pg.Promesse(True), TypeError, EPSILON.format("True")),
    refused("epsilon text", lambda: pg.Promesse("200"), TypeError, EPSILON.format("'200'")),
    refused("epsilon None", lambda: pg.Promesse(None), TypeError, EPSILON.format("None")),
    refused("epsilon NA", lambda: pg.Promesse(pd.NA), TypeError, EPSILON.format("<NA>")),
    refused(
        "epsilon an array",
        lambda: pg.Promesse(np.array([200.0])),
        TypeError,
        EPSILON.format(r"a value of type ndarray and shape \(1,\)"),
    ),
    refused("epsilon a duration", lambda: pg.Promesse(np.timedelta64(5, "s")), TypeError, EPSILON.format(".*5.*")),
    refused("epsilon 1 mm", lambda: pg.Promesse(0.001), ValueError, RANGE.format(r"0\.001")),
    refused("epsilon 2000 km", lambda: pg.Promesse(2e6), ValueError, RANGE.format(r"2000000\.0")),
    answered("epsilon of numpy", lambda: pg.Promesse(np.float32(200)), pg.Promesse(200)),
    refused(
        "variant", lambda: pg.Promesse(200, variant="x"), ValueError, r"'variant' .* one of 'polyline', 'pseudocode'"
    ),
    refused(
        "min_points", lambda: pg.Promesse(200, min_points=1.5), TypeError, r"'min_points' .* whole number.*Got 1\.5"
    ),
    refused("errors", lambda: read(make_frame(), errors="coerce"), ValueError, r"'errors' .* one of 'raise', 'skip'"),
    refused("gap text", lambda: pg.split_gaps(make_frame(), gap="soon"), ValueError, GAP.format("'soon'")),
    refused("gap 0", lambda: pg.split_gaps(make_frame(), gap=0), ValueError, GAP.format("0")),
    refused("gap NaT", lambda: pg.split_gaps(make_frame(), gap=pd.NaT), ValueError, GAP.format("NaT")),
    *(
        refused(
            f"gap {gap!r}",
            partial(lambda gap: pg.split_gaps(make_frame(), gap=gap), gap),
            ValueError,
            r"'gap' parameter of split_gaps must be a duration of at most 106,751 days",
        )
        for gap in (
            *("106752 days", "1e300", "inf", np.inf, 1e300, 106_752 * 86_400, 10**400),
            *(datetime.timedelta(days=200_000), np.timedelta64(200_000, "D")),
        )
    ),
    *(
        refused(
            f"gap {gap!r}", partial(lambda gap: pg.split_gaps(make_frame(), gap=gap), gap), ValueError, GAP.format(".*")
        )
        for gap in ("-106752 days", "-1e300", "-inf", -np.inf, "nan", datetime.timedelta(days=-200_000), "1e3 x")
    ),
    *(
        answered(
            f"gap {gap!r}",
            partial(lambda gap: pg.split_gaps(make_frame(), gap=gap, seed=1)["user"].nunique(), gap),
            pg.split_gaps(make_frame(), gap=1000, seed=1)["user"].nunique(),
        )
        for gap in ("1e3", " 1000 ", "+1000.0", "1000")
    ),
    refused(
        "gap a list",
        lambda: pg.split_gaps(make_frame(), gap=[4]),
        TypeError,
        GAP.format("a value of type list and length 1"),
    ),
    refused(
        "gap True", lambda: pg.prepare(make_frame(), gap=True), TypeError, r"'gap' parameter of prepare .*Got True"
    ),
    refused(
        "a zone on Mars",
        lambda: pg.collapse_empty_days(make_frame(), tz="Mars/Olympus"),
        ValueError,
        ZONE.format("collapse_empty_days", "'Mars/Olympus'"),
    ),
    refused("a number as zone", lambda: pg.prepare(make_frame(), tz=2), TypeError, ZONE.format("prepare", "2")),
    refused("days", lambda: pg.first_days(make_frame(), days=0), ValueError, r"'days' .* at least 1\. Got 0"),
    refused("min_days", lambda: pg.prepare(make_frame(), min_days=2.5), TypeError, r"'min_days' .* whole number.*2\.5"),
    refused("keep_user", lambda: pg.split_gaps(make_frame(), keep_user=1), TypeError, r"'keep_user' .* True or False"),
    refused(
        "a float seed", lambda: pg.pseudonymize(make_frame(), seed=0.5), TypeError, r"'seed' .*Got a float instead"
    ),
    refused(
        "a seed with a lone surrogate",
        lambda: pg.pseudonymize(make_frame(), seed="\udc80"),
        ValueError,
        r"'seed' .* valid Unicode",
    ),
    *(
        refused(f"{name} of 5,000 digits", partial(call, 10**5000), error, rf"'{name}' parameter of .* must be .*Got a")
        for name, call, error in (
            ("epsilon", pg.Promesse, ValueError),
            ("variant", lambda value: pg.Promesse(200, variant=value), TypeError),
            ("min_points", lambda value: pg.Promesse(200, min_points=-value), ValueError),
            ("grid", lambda value: pg.GeoIndistinguishability(0.01, grid=value), ValueError),
            ("seed", lambda value: pg.GeoIndistinguishability(0.01, seed=value), ValueError),
            ("gap", lambda value: pg.split_gaps(make_frame(), gap=value), ValueError),
            ("keep_user", lambda value: pg.split_gaps(make_frame(), keep_user=value), TypeError),
            ("tz", lambda value: pg.prepare(make_frame(), tz=value), TypeError),
            ("max_speed", lambda value: pg.drop_jumps(make_frame(), max_speed=value), ValueError),
        )
    ),
    *(
        refused(f"a duration as {name}", partial(call, np.timedelta64(5, "s")), TypeError, f"'{name}' .* whole number")
        for name, call in (
            ("min_points", lambda value: pg.Promesse(200, min_points=value)),
            ("days", lambda value: pg.first_days(make_frame(), days=value)),
            ("seed", lambda value: pg.pseudonymize(make_frame(), seed=value)),
        )
    ),
    *(
        refused(f"epsilon {value!r}", partial(pg.Promesse, value), TypeError, EPSILON.format(".*"))
        for value in (Decimal(200), Decimal("nan"), 200j, b"200", np.array(200.0), [200])
    ),
    refused(
        "a crs of several values",
        lambda: pg.Traces.from_arrays(np.zeros(1), np.zeros(1), times=[0], users="a", counts=[1], crs=np.arange(2)),
        ValueError,
        r"'crs' .* such as 'EPSG:4326'\. Got a value of type ndarray",
    ),
    refused("a speed of 0", lambda: pg.drop_jumps(make_frame(), max_speed=0), ValueError, r"'max_speed' .*Got 0"),
    # Little, and much
    answered("no rows", lambda: empty(make_frame()), (0, 4326, TEXT, "datetime64[ns, UTC]")),
    answered(
        "no rows of integers", lambda: empty(make_frame(user=range(COUNT))), (0, 4326, "int64", "datetime64[ns, UTC]")
    ),
    answered("no rows in Lambert 93", lambda: empty(make_frame().to_crs(2154)), (0, 2154, TEXT, "datetime64[ns, UTC]")),
    answered("no rows, indexed", lambda: empty(indexed()), (0, 4326, TEXT, "datetime64[ns, UTC]")),
    answered("no rows to prepare", lambda: empty(make_frame(), pg.prepare), (0, 4326, TEXT, "datetime64[ns]")),
    answered(
        "no rows to split",
        lambda: empty(make_frame(), pg.split_gaps),
        (0, 4326, TEXT, f"datetime64[{TIMES.unit}, UTC]"),
    ),
    answered(
        "a frame made of nothing",
        lambda: len(smooth(gpd.GeoDataFrame({"user": [], "time": []}, geometry=[], crs=4326))),
        0,
    ),
    answered(
        "columns without rows",
        lambda: len(smooth(gpd.GeoDataFrame(columns=["user", "time", "geometry"], geometry="geometry", crs=4326))),
        0,
    ),
    answered("one record", lambda: len(quiet(smooth, make_frame().iloc[:1])), 0),
    answered("one record, prepared", lambda: len(pg.prepare(make_frame().iloc[:1])), 1),
    answered("all in one place", lambda: len(quiet(smooth, make_frame(geometry=[PLACE] * COUNT))), 0),
    answered("read-only arrays", read_only, True),
    refused(
        "huge jumps and a tiny epsilon",
        lambda: smooth(jumps(), 0.01),
        MemoryError,
        r"Points 0\.01 m apart .*do not fit in memory\. Take a larger epsilon.*drop_jumps \(prepare --max-speed\)",
    ),
]


@pytest.mark.parametrize(("action", "kind", "outcome"), WHAT_COMES)
def test_what_comes_of(action, kind, outcome):
    if kind is None:
        assert action() == outcome
        return
    with pytest.raises(kind) as caught:
        action()
    message = str(caught.value)
    assert caught.type is kind
    assert re.search(outcome, message, re.DOTALL)
    assert not SECRETS.search(message)
    assert "promesse_geo" in traceback.extract_tb(caught.tb)[-1].filename


def test_there_are_fifty_and_more():
    assert len(WHAT_COMES) >= 50
    assert len({case.id for case in WHAT_COMES}) == len(WHAT_COMES)


@pytest.mark.parametrize(
    "warned",
    [
        lambda: read(make_frame(user=[None, *KEYS[1:]]), errors="skip"),
        lambda: smooth(make_frame(phone=KEYS)),
        lambda: smooth(make_frame(geometry=[PLACE] * COUNT)),
        lambda: pg.drop_jumps(make_frame(), max_speed=0.1),
        lambda: pg.first_days(make_frame(), min_days=2),
    ],
)
def test_a_warning_names_no_user_and_no_place(warned):
    with pytest.warns(UserWarning, match="dropped|removed|left out") as caught:
        warned()
    assert len(caught) == 1
    assert not SECRETS.search(str(caught[0].message))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "column", [pd.Categorical([None] * 7), [None] * 7, [np.nan] * 7, pd.array([None] * 7, "Int64")]
)
@pytest.mark.parametrize("errors", ["raise", "skip"])
@pytest.mark.parametrize("user", ["user", ...])
def test_a_user_column_that_is_empty_in_all_rows_is_refused_by_name(column, errors, user):
    empty = make_frame().assign(user=column)
    with pytest.raises(ValueError, match=r"The user column 'user' is empty in all rows\..*user=None"):
        pg.Traces.from_frame(empty, user=user, errors=errors)
    with pytest.warns(UserWarning, match="The column 'user' was dropped"):
        assert len(pg.Traces.from_frame(empty, user=None)) == 1


def test_a_user_column_that_is_empty_in_all_rows_leaves_another_one_to_be_found():
    frame = make_frame()
    both = frame.assign(user=None, device_id=frame["user"])
    with pytest.warns(UserWarning, match="The column 'user' was dropped"):
        assert pg.Traces.from_frame(both).users.tolist() == pg.Traces.from_frame(frame).users.tolist()


def test_a_user_column_without_rows_is_one():
    assert len(pg.Traces.from_frame(make_frame().iloc[:0])) == 0


def test_a_user_key_of_too_many_digits_is_told():
    frame = make_frame()
    with pytest.raises(ValueError, match="too many digits"):
        read(frame.assign(user=pd.Series([10**5000] * len(frame), dtype=object)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"counts": 2}, "counts of Traces.from_arrays must be whole numbers"),
        ({"counts": [[1], [1, 2]]}, "counts of Traces.from_arrays must have one dimension"),
        ({"x": ["a", "b"]}, "x of Traces.from_arrays must hold numbers"),
        ({"y": np.array([1j, 2])}, "y of Traces.from_arrays must hold numbers"),
        ({"x": np.array([1, {}], object)}, "x of Traces.from_arrays must hold numbers"),
        ({"x": np.array(["2000", "2001"], "M8[s]")}, "x of Traces.from_arrays must hold numbers"),
        ({"x": np.ma.masked_array([1.0, 2.0], [0, 1])}, "no masked values. Got 1 of 2"),
        ({"times": np.ma.masked_array([1, 2], [1, 1])}, "no masked values. Got 2 of 2"),
        ({"names": 5}, "'names' parameter of Traces.from_arrays"),
        ({"names": 0}, "'names' parameter of Traces.from_arrays"),
    ],
)
def test_odd_arrays_are_refused_in_words(change, words):
    plain = {"x": np.zeros(2), "y": np.zeros(2), "times": np.array([0, 1]), "users": ["u"], "counts": [2]}
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        pg.Traces.from_arrays(**(plain | change))
    unmasked = pg.Traces.from_arrays(**(plain | {"x": np.ma.masked_array([1.0, 2.0])}))
    assert unmasked.coordinates()[0].tolist() == pytest.approx([1, 2])


def test_a_mechanism_that_returns_no_traces_is_told():
    class Odd(pg.Promesse):
        def _protect(self, traces):
            return 5

    city = pg.make_city(users=2, days=1, as_traces=True, recorder="phone")
    for data in (city, city.to_frame()):
        with pytest.raises(TypeError, match=r"Odd\._protect must return Traces\. Got a value of type int"):
            Odd(100).protect(data)


NOT_AS_TRACES_ARE = {
    "2 records of 5 without a location": lambda traces: {
        "points": np.where(traces.times[:, None] > 2, np.nan, [1.0, 2.0])
    },
    "1 record of 5 without a location": lambda traces: {
        "points": np.where(traces.times[:, None] < 1, np.inf, [1.0, 2.0])
    },
    "in order of time": lambda traces: {"times": traces.times[::-1].copy()},
    "offsets must run": lambda traces: {"offsets": np.array([0, 2, 4])},
    "one or more for each": lambda traces: {"offsets": np.array([0, 5, 5])},
    "one or more for each user": lambda traces: {"users": traces.users[:1]},
    "arrays must have one length": lambda traces: {"points": traces.points[:4]},
    "the dimension of the space": lambda traces: {"points": traces.points[:, :1]},
}


@pytest.mark.parametrize("fault", NOT_AS_TRACES_ARE)
def test_a_mechanism_that_returns_what_is_no_trace_is_refused(fault):
    @dataclass(frozen=True)
    class Odd(pg.Mechanism):
        def _protect(self, traces):
            return replace(traces, **NOT_AS_TRACES_ARE[fault](traces))

    traces = pg.Traces.from_arrays(
        *np.ones((2, 5)), times=np.arange(5), users=["a", "b"], counts=[2, 3], crs="EPSG:32631", space="plane"
    )
    with pytest.raises(ValueError, match=rf"Odd\._protect returned invalid Traces.*{fault}"):
        Odd().protect(traces)


NOT_AS_ARRAYS_OF_TRACES_ARE = {
    "times must be": lambda traces: {"times": traces.times.tolist()},
    "times must be a": lambda traces: {"times": traces.times.astype("M8[ns]")},
    "times must be a numpy": lambda traces: {"times": traces.times.astype(">i8")},
    "times must be a numpy array": lambda traces: {"times": traces.times.astype(np.float64)},
    "offsets must be": lambda traces: {"offsets": traces.offsets.astype(np.int32)},
    "positions must be": lambda traces: {"positions": None},
    "breaks must be": lambda traces: {"breaks": [1]},
    "points must be": lambda traces: {"points": traces.points.astype(np.float32)},
    "points must be a": lambda traces: {"points": traces.points.astype(">f8")},
    "points .* length 1": lambda traces: {"points": traces.points * [[1], [1], [1.01], [1], [1]]},
    "length 1": lambda traces: {"points": traces.points * 0},
    "users must be": lambda traces: {"users": traces.users.tolist()},
    "distinct users": lambda traces: {"users": pd.Index(["a", "a"])},
    "none missing": lambda traces: {"users": pd.Index(["a", None])},
    "one dimension": lambda traces: {"times": traces.times[:, None]},
    "offsets one or more": lambda traces: {"offsets": traces.offsets[:0]},
}


@pytest.mark.parametrize("fault", NOT_AS_ARRAYS_OF_TRACES_ARE)
def test_a_mechanism_that_returns_other_arrays_is_refused(fault):
    @dataclass(frozen=True)
    class Odd(pg.Mechanism):
        def _protect(self, traces):
            return replace(traces, **NOT_AS_ARRAYS_OF_TRACES_ARE[fault](traces))

    traces = pg.Traces.from_arrays(*np.ones((2, 5)), times=np.arange(5), users=["a", "b"], counts=[2, 3])
    with pytest.raises(ValueError, match=rf"Odd\._protect returned invalid Traces.*{fault}"):
        Odd().protect(traces)


@pytest.mark.parametrize(
    "users", ["\ud800", ["\ud800"], {"secret"}, {"secret": 1}, pd.DataFrame({"secret": [1]}), None, 5, b"secret"]
)
@pytest.mark.parametrize("wrap", [lambda users: users, lambda users: iter([users])])
def test_users_of_arrays_are_a_list(users, wrap):
    with pytest.raises((TypeError, ValueError), match="must be a list of text or integers") as caught:
        pg.Traces.from_arrays(*np.zeros((2, 2)), times=np.arange(2), users=wrap(users), counts=[2])
    assert not isinstance(caught.value, UnicodeError)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("seeds", ["secret", ["secret"], [1, "secret"], [b"secret"], 1.5, [None]])
def test_wrong_seeds_are_not_shown(seeds):
    city = pg.make_city(users=1, days=1, recorder="phone")
    with pytest.raises(TypeError, match="'seeds' parameter of evaluate") as caught:
        pg.evaluate({"city": city}, [pg.Promesse(200)], seeds=seeds)
    assert "secret" not in str(caught.value)
    assert "1.5" not in str(caught.value)


def test_long_and_many_names_are_cut_in_messages():
    assert listed(["a", "b"]) == "'a' and 'b'"
    assert len(listed(["x" * 3_000_000, "b"])) < 100
    assert listed([f"c{number}" for number in range(60)]).endswith("'c49' and 10 others")
