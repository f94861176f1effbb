"""Location histories of Google are read in each of their layouts, and nothing is counted twice."""

import json
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

import promesse_geo as pg
from promesse_geo.io.contents import Head
from promesse_geo.io.google import _parse, is_google
from promesse_geo.io.registry import guess_format


def save(folder, data, name="Timeline.json"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    return path


def rows(path, **named):
    """(time in UTC, latitude, longitude) of each record."""
    frame = pg.read_file(path, format="google", **named, as_traces=True).to_frame()
    times = pd.DatetimeIndex(frame.time).strftime("%m-%d %H:%M:%S.%f").str.slice(0, 18)
    return list(zip(times, frame.geometry.y.round(7), frame.geometry.x.round(7), strict=True))


def e7(latitude, longitude, **others):
    return {"latitudeE7": round(latitude * 1e7), "longitudeE7": round(longitude * 1e7), **others}


RECORDS = {
    "locations": [
        e7(45.7, 4.8, accuracy=20, source="WIFI", deviceTag=-12, timestamp="2024-03-04T08:00:00.711Z"),
        e7(45.8, -4.9, accuracy=9, activity=[{"activity": [{"type": "STILL"}]}], timestamp="2024-03-04T08:05:00Z"),
        e7(45.9, 5.0, timestampMs="1709540100250", velocity=3, altitude=200),
    ]
}


def test_each_position_of_records_is_a_record(tmp_path):
    assert rows(save(tmp_path, RECORDS, "Records.json")) == [
        ("03-04 08:00:00.711", 45.7, 4.8),
        ("03-04 08:05:00.000", 45.8, -4.9),
        ("03-04 08:15:00.250", 45.9, 5.0),
    ]


def test_positions_beyond_the_globe_by_an_overflow_are_moved_back(tmp_path):
    item = {"latitudeE7": 457_000_000, "longitudeE7": -100_000_000 + 2**32, "timestampMs": "1709540100000"}
    assert rows(save(tmp_path, {"locations": [item]})) == [("03-04 08:15:00.000", 45.7, -10.0)]


VISIT = {"startTimestamp": "2024-03-04T08:00:00Z", "endTimestamp": "2024-03-04T09:00:00Z"}
TRIP = {"startTimestampMs": "1709542800000", "endTimestampMs": "1709543400000"}  # 09:00 to 09:10
SEMANTIC = {
    "timelineObjects": [
        {
            "placeVisit": {
                "location": e7(45.7, 4.8, name="Café", placeId="x"),
                "duration": VISIT,
                "childVisits": [{"location": e7(45.7, 4.81), "duration": VISIT}],
            }
        },
        {
            "activitySegment": {
                "startLocation": e7(45.71, 4.81),
                "endLocation": e7(45.8, 4.9),
                "duration": TRIP,
                "waypointPath": {"waypoints": [{"latE7": 457100000, "lngE7": 48100000}] * 3},
                "simplifiedRawPath": {
                    "points": [
                        {
                            "latE7": 457500000,
                            "lngE7": 48500000,
                            "timestamp": "2024-03-04T09:05:00Z",
                            "accuracyMeters": 9,
                        },
                        {"latE7": 457600000, "lngE7": 48600000, "timestampMs": "1709543220000"},
                    ]
                },
            }
        },
    ]
}


def test_visits_count_at_their_ends_and_paths_at_their_points(tmp_path):
    with pytest.warns(UserWarning, match="read_file dropped") as caught:
        read = rows(save(tmp_path, SEMANTIC))
    assert read == [
        ("03-04 08:00:00.000", 45.7, 4.8),
        ("03-04 09:00:00.000", 45.7, 4.8),
        ("03-04 09:05:00.000", 45.75, 4.85),
        ("03-04 09:07:00.000", 45.76, 4.86),
        ("03-04 09:10:00.000", 45.8, 4.9),
    ]
    message = str(caught[0].message)
    assert len(caught) == 1
    for words in ("3 records (waypoints without", "1 record (visits inside", "1 record (at the time of a more exact"):
        assert words in message


ANDROID = {
    "semanticSegments": [
        {
            "startTime": "2024-03-01T08:00:00.000+01:00",
            "endTime": "2024-03-01T10:00:00.000+01:00",
            "timelinePath": [
                {"point": "45.7°, 4.8°", "time": "2024-03-01T08:10:00.000+01:00"},
                {"point": "-45.7100000°, -4.8100000°", "time": "2024-03-01T08:20:00.000+01:00"},
            ],
        },
        {
            "startTime": "2024-03-01T10:00:00.000+01:00",
            "endTime": "2024-03-01T12:00:00.000+01:00",
            "startTimeTimezoneUtcOffsetMinutes": 60,
            "visit": {
                "hierarchyLevel": 0,
                "topCandidate": {"placeId": "x", "placeLocation": {"latLng": "45.72°, 4.82°"}},
            },
        },
        {
            "startTime": "2024-03-01T10:30:00.000+01:00",
            "endTime": "2024-03-01T11:00:00.000+01:00",
            "visit": {"hierarchyLevel": 1, "topCandidate": {"placeLocation": {"latLng": "45.72°, 4.82°"}}},
        },
        {
            "startTime": "2024-03-01T12:05:00.000+01:00",
            "endTime": "2024-03-01T12:30:00.000+01:00",
            "activity": {
                "start": {"latLng": "45.73°, 4.83°"},
                "end": {"latLng": "45.74°, 4.84°"},
                "distanceMeters": 9.0,
            },
        },
        {
            "startTime": "2024-03-01T00:00:00Z",
            "endTime": "2024-03-03T00:00:00Z",
            "timelineMemory": {"trip": {"distanceFromOriginKms": 7}},
        },
    ],
    "rawSignals": [
        {"wifiScan": {"deliveryTime": "2024-03-01T13:00:00.000+01:00", "devicesRecords": [{"mac": 1}]}},
        {"activityRecord": {"probableActivities": [], "timestamp": "2024-03-01T13:00:00.000+01:00"}},
    ],
    "userLocationProfile": {"frequentPlaces": [{"placeLocation": "45.7°, 4.8°"}]},
}
ANDROID_ROWS = [
    ("03-01 07:10:00.000", 45.7, 4.8),
    ("03-01 07:20:00.000", -45.71, -4.81),
    ("03-01 09:00:00.000", 45.72, 4.82),
    ("03-01 11:00:00.000", 45.72, 4.82),
    ("03-01 11:05:00.000", 45.73, 4.83),
    ("03-01 11:30:00.000", 45.74, 4.84),
]


def test_the_timeline_of_android_is_read(tmp_path):
    with pytest.warns(UserWarning, match=r"1 record \(visits inside of others; first at entry 3 of") as caught:
        assert rows(save(tmp_path, ANDROID)) == ANDROID_ROWS
    assert len(caught) == 1


def signal(time, latitude, longitude):
    point = f"{latitude}°, {longitude}°"
    return {"position": {"LatLng": point, "accuracyMeters": 13, "source": "WIFI", "timestamp": time}}


def test_only_raw_positions_count_in_their_period(tmp_path):
    """The raw ones are at 08:00 and 11:05 UTC: the visit and the start of the activity derive from such ones."""
    raw = [signal("2024-03-01T09:00:00.000+01:00", 45.1, 4.1), signal("2024-03-01T12:05:00.000+01:00", 45.2, 4.2)]
    with pytest.warns(UserWarning, match=r"3 records \(derived from raw positions"):
        read = rows(save(tmp_path, ANDROID | {"rawSignals": ANDROID["rawSignals"] + raw}))
    assert read == [
        *ANDROID_ROWS[:2],
        ("03-01 08:00:00.000", 45.1, 4.1),
        ("03-01 11:05:00.000", 45.2, 4.2),
        ANDROID_ROWS[-1],
    ]


def test_raw_positions_that_are_invalid_replace_nothing(tmp_path):
    raw = [signal("2024-03-01T09:00:00.000+01:00", 95.1, 4.1), signal("2024-03-01T12:05:00.000+01:00", "x", 4.2)]
    with pytest.warns(UserWarning, match=r"1 record \(latitude outside"):
        assert rows(save(tmp_path, ANDROID | {"rawSignals": raw})) == ANDROID_ROWS


IOS = [
    {
        "endTime": "2024-03-01T10:00:00.000+01:00",
        "startTime": "2024-03-01T08:00:00.000+01:00",
        "timelinePath": [
            {"durationMinutesOffsetFromStartTime": "10", "point": "geo:45.700000,4.800000"},
            {"durationMinutesOffsetFromStartTime": "20", "point": "geo:-45.710000,-4.810000"},
        ],
    },
    {
        "endTime": "2024-03-01T12:00:00.000+01:00",
        "startTime": "2024-03-01T10:00:00.000+01:00",
        "visit": {"hierarchyLevel": "0", "topCandidate": {"placeID": "x", "placeLocation": "geo:45.72,4.82"}},
    },
    {
        "endTime": "2024-03-01T11:00:00.000+01:00",
        "startTime": "2024-03-01T10:30:00.000+01:00",
        "visit": {"hierarchyLevel": "1", "topCandidate": {"placeLocation": "geo:45.72,4.82"}},
    },
    {
        "endTime": "2024-03-01T12:30:00.000+01:00",
        "startTime": "2024-03-01T12:05:00.000+01:00",
        "activity": {"start": "geo:45.73,4.83", "end": "geo:45.74,4.84", "distanceMeters": "9.0"},
    },
]


def test_the_timeline_of_ios_is_read_as_that_of_android(tmp_path):
    with pytest.warns(UserWarning, match="visits inside of others"):
        assert rows(save(tmp_path, IOS)) == ANDROID_ROWS


@pytest.mark.parametrize("data", [RECORDS, SEMANTIC, ANDROID, IOS], ids=["records", "semantic", "android", "ios"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.filterwarnings("ignore:read_file dropped")
def test_each_layout_is_recognized(data, indent, tmp_path):
    (tmp_path / "download").write_text(json.dumps(data, indent=indent))
    assert guess_format(tmp_path / "download") == "google"
    assert pg.read_file(tmp_path / "download", as_traces=True).users.tolist() == ["download"]


@pytest.mark.parametrize(
    "data",
    [
        {"type": "FeatureCollection", "features": [], "locations": [e7(1, 2)]},
        {"type": "Feature", "properties": {"semanticSegments": []}},
        [{"user": "a", "startTime": "2024-03-04", "lat": 45.7}],
        [{"startTime": "geo:1,2"}],
        {"locations": [{"lat": 45.7, "lon": 4.8, "time": 1709539200}]},
        {"user": ["locations"], "latitudeE7": [7]},
        [],
        {},
    ],
)
def test_other_json_is_not_taken(data):
    start = json.dumps(data).encode()
    assert not is_google(Head(start, start), "Records.json")


def test_the_months_of_a_history_have_one_user(tmp_path):
    month = {"timelineObjects": SEMANTIC["timelineObjects"][:1]}
    later = json.loads(json.dumps(month).replace("2024-03-04", "2025-01-04"))
    for person in ("ana", "ben"):
        save(tmp_path, month, f"{person}/Semantic Location History/2024/2024_MARCH.json")
        save(tmp_path, later, f"{person}/Semantic Location History/2025/2025_JANUARY.json")
    with pytest.warns(UserWarning, match="visits inside"):
        alone = pg.read_file(tmp_path / "ana", as_traces=True)
    assert (alone.users.tolist(), alone.records) == (["Semantic Location History"], 4)
    with pytest.raises(ValueError, match="user='folder'"):
        pg.read_file(tmp_path, as_traces=True)
    with pytest.warns(UserWarning, match="visits inside"):
        both = pg.read_file(tmp_path, user="folder", as_traces=True)
    assert (both.users.tolist(), both.counts.tolist()) == (["ana", "ben"], [4, 4])


def test_what_derives_from_records_is_not_read_beside_them(tmp_path):
    save(tmp_path, RECORDS, "Records.json")
    save(tmp_path, {"version": 3}, "Settings.json")
    save(tmp_path, SEMANTIC, "Semantic Location History/2024/2024_MARCH.json")
    with pytest.warns(UserWarning, match="2 files beside Records.json were not read"):
        assert rows(tmp_path) == rows(tmp_path / "Records.json")


def test_a_name_of_a_user_is_asked_for(tmp_path):
    save(tmp_path, RECORDS, "a.json")
    save(tmp_path, RECORDS, "b.json")
    assert pg.read_file(tmp_path, users=["b"], as_traces=True).users.tolist() == ["b"]
    with pytest.raises(ValueError, match="1 of 1 user not found"):
        pg.read_file(tmp_path, users=["c"], as_traces=True)
    with pytest.raises(ValueError, match="'user' parameter"):
        pg.read_file(tmp_path, user="device", as_traces=True)


def test_invalid_positions_are_dropped_and_counted(tmp_path):
    bad = [
        {},
        7,
        e7(45.7, 4.8),
        e7(45.7, 4.8, timestamp="yesterday"),
        e7(95.7, 4.8, timestamp="2024-03-04T08:00:00Z"),
        e7(45.7, 4.8, timestamp="1066-10-14T08:00:00Z"),
        e7(45.7, 4.8, timestampMs="9" * 30),
        {"latitudeE7": "x", "longitudeE7": True, "timestamp": "2024-03-04T08:00:00Z"},
    ]
    path = save(tmp_path, {"locations": RECORDS["locations"] + bad})
    with pytest.warns(UserWarning, match="read_file dropped") as caught:
        assert len(rows(path)) == 3
    message = str(caught[0].message)
    for words in (
        f"3 records (no coordinates, or invalid ones; first at entry 4 of {str(path)!r}",
        "3 records (no time",
        "1 record (latitude outside",
        "1 record (time outside",
    ):
        assert words in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("{", "cut or damaged"),
        ('{"locations": [', "line 1, character 16"),
        ('{"locations":\n[{"latitudeE7": 457000000,', "line 2"),
        ('{"locations": []}', "no position"),
        ('{"locations": [{}]}', "no coordinates"),
        ('{"locations": 7}', "no position"),
        ('{"settings": 7}', "no location history of Google"),
        ('{"locations": [{"latitudeE7": %s}]}' % ("9" * 5000), "too many digits"),
        ('{"locations": [%s' % ("[" * 100_000), "inside of one another"),
        ('{"locations": [1,]}', "a value is expected"),
        ('{"locations": [1 2]}', "expected"),
        ('{"locations" [1]}', "':' is expected"),
        ("7", "an object or an array"),
        ("\ud800", "no text in UTF-8"),
    ],
)
def test_damage_is_an_error_with_the_file_and_the_place(text, words, tmp_path):
    path = tmp_path / "Records.json"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(ValueError, match=words) as caught:
        pg.read_file(path, format="google", as_traces=True)
    assert repr(str(path)) in str(caught.value)
    assert "457" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:read_file dropped")
def test_a_cut_anywhere_is_an_error(tmp_path):
    path = save(tmp_path, ANDROID)
    content = path.read_bytes()
    for end in range(0, len(content), 7):
        with pytest.raises(ValueError, match=r"Timeline\.json"):
            list(_parse("Timeline.json", content[:end], "ana"))


@pytest.mark.filterwarnings("ignore:read_file dropped")
def test_encodings_and_marks_are_read(tmp_path):
    text = json.dumps(ANDROID, ensure_ascii=False)
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        (tmp_path / "Timeline.json").write_text(text, encoding=encoding)
        assert rows(tmp_path / "Timeline.json") == ANDROID_ROWS


NAMES = """
    locations timelineObjects semanticSegments rawSignals latitudeE7 longitudeE7 timestamp timestampMs placeVisit
    activitySegment duration startTimestamp endTimestamp simplifiedRawPath points waypointPath waypoints
    childVisits latE7 lngE7 location startLocation endLocation timelinePath point time visit activity start end
    topCandidate
    placeLocation latLng LatLng hierarchyLevel startTime endTime durationMinutesOffsetFromStartTime position
"""
KEYS = st.sampled_from(NAMES.split())
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -(10**400), 457_000_000, 1709540100000]),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["2024-03-04T08:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "45.7°, 4.8°"]),
    st.sampled_from(["geo:1,2", "geo:%s,2" % ("9" * 400), "NaN", "1e999", "0x10"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=30,
)


@given(VALUES)
@examples(300)
def test_whatever_json_holds_only_value_errors_come(value):
    with suppress(ValueError):
        parts = list(_parse("a.json", json.dumps(value).encode(), "ana"))
        assert sum(len(part.times) for part in parts) > 0


@given(st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=12))
@examples(300)
def test_whatever_an_entry_holds_the_others_are_read(value):
    good = RECORDS["locations"][:1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = list(_parse("a.json", json.dumps({"locations": [value, *good]}).encode(), "ana"))
    assert all(np.abs(part.y).max() <= 90 for part in parts)
    assert sum(len(part.times) for part in parts) in (1, 2)
