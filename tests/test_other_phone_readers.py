"""Positions of phones read by us and by pandas, or another library, have the same users, places and times.

The readers here are written anew from the layouts, with `pandas.json_normalize`, and share no code with ours.
"""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import promesse_geo as pg

FIRST = 1_709_539_200  # 2024-03-04T08:00:00Z
ZONES = ("UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata")
few = settings(max_examples=10, deadline=None)
places = st.tuples(
    st.floats(-80, 80).map(lambda y: round(y, 6) + 0.0), st.floats(-179, 179).map(lambda x: round(x, 6) + 0.0)
)


@st.composite
def drawn_fixes(draw, shortest=1):
    """(seconds since 1970, latitude, longitude) with times that ascend."""
    steps = draw(st.lists(st.tuples(st.integers(1, 9000), places), min_size=shortest, max_size=8))
    seconds = np.cumsum([FIRST] + [step for step, _ in steps])[1:].tolist()
    return [(second, *place) for second, (_, place) in zip(seconds, steps, strict=True)]


def iso(seconds, zone="UTC") -> str:
    """ISO 8601 with milliseconds and an offset."""
    return pd.Timestamp(seconds, unit="s", tz="UTC").tz_convert(zone).isoformat(timespec="milliseconds")


def ours(folder, content, name, **options) -> pd.DataFrame:
    """What we read, by user and time."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    frame = pg.read_file(path, **options)
    table = {"user": frame["user"], "time": frame["time"], "lat": frame.geometry.y, "lon": frame.geometry.x}
    return pd.DataFrame(table)


def assert_same(found: pd.DataFrame, other: pd.DataFrame) -> None:
    other = other.assign(time=pd.to_datetime(other["time"], utc=True, format="ISO8601"))
    other = other.sort_values(["user", "time"], kind="stable").reset_index(drop=True)
    assert found["user"].astype(str).tolist() == other["user"].astype(str).tolist()
    assert found["time"].tolist() == other["time"].tolist()
    np.testing.assert_allclose(found[["lat", "lon"]], other[["lat", "lon"]].astype(float), rtol=0, atol=2e-9)


def table(rows, user) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["time", "lat", "lon"]).assign(user=user)


# Google ---------------------------------------------------------------------------------------------------------------


def e7(latitude, longitude, names=("latitudeE7", "longitudeE7")) -> dict:
    return dict(zip(names, (round(latitude * 1e7), round(longitude * 1e7)), strict=True))


def records(fixes, *, old: bool) -> dict:
    """Records.json, or Location History.json of older exports."""
    stamp = (lambda s: {"timestampMs": str(s * 1000 + 7)}) if old else (lambda s: {"timestamp": iso(s)[:-6] + "Z"})
    return {"locations": [{**e7(y, x), "accuracy": 20, "source": "WIFI", **stamp(s)} for s, y, x in fixes]}


@few
@given(fixes=drawn_fixes(), old=st.booleans())
def test_records_of_google_as_pandas(fixes, old, tmp_path_factory):
    content = json.dumps(records(fixes, old=old))
    flat = pd.json_normalize(json.loads(content), record_path="locations")
    times = pd.to_datetime(flat["timestampMs"].astype("int64"), unit="ms") if old else flat["timestamp"]
    other = pd.DataFrame({"time": times, "lat": flat["latitudeE7"] / 1e7, "lon": flat["longitudeE7"] / 1e7})
    found = ours(tmp_path_factory.mktemp("google"), content, "Records.json")
    assert_same(found, other.assign(user="Records"))


@few
@given(fixes=drawn_fixes(), old=st.booleans())
@pytest.mark.filterwarnings("ignore:orjson not found")
def test_records_of_google_as_google_takeout_parser(fixes, old, tmp_path_factory):
    parser = pytest.importorskip("google_takeout_parser.parse_json")
    folder = tmp_path_factory.mktemp("google")
    found = ours(folder, json.dumps(records(fixes, old=old)), "Records.json")
    other = [(each.dt, each.lat, each.lng) for each in parser._parse_location_history(folder / "Records.json")]
    if old:  # of whose milliseconds it keeps none
        found["time"] = found["time"].dt.floor("s")
        other = [(time.replace(microsecond=0), lat, lon) for time, lat, lon in other]
    assert_same(found, table([(str(time), lat, lon) for time, lat, lon in other], "Records"))


@st.composite
def drawn_objects(draw):
    """Visits and activities of Semantic Location History, one after the other."""
    fixes = draw(drawn_fixes(shortest=3))
    objects = []
    for first, between, last in zip(*(fixes[i::3][: len(fixes) // 3] for i in range(3)), strict=True):
        duration = {"startTimestamp": iso(first[0])[:-6] + "Z", "endTimestamp": iso(last[0])[:-6] + "Z"}
        if draw(st.booleans()):
            location = {**e7(*first[1:]), "placeId": "x", "name": "Café", "address": "7 rue"}
            objects.append({"placeVisit": {"location": location, "duration": duration, "otherCandidateLocations": []}})
        else:
            path = {"points": [{**e7(*between[1:], ("latE7", "lngE7")), "timestamp": iso(between[0])[:-6] + "Z"}]}
            ends = {"startLocation": e7(*first[1:]), "endLocation": e7(*last[1:])}
            objects.append({"activitySegment": {**ends, "duration": duration, "simplifiedRawPath": path}})
    return objects


def semantic_as_pandas(objects) -> pd.DataFrame:
    flat = pd.json_normalize(objects, max_level=4)
    rows = []
    for _, row in flat.iterrows():
        for kind, places in (
            ("placeVisit", ("location", "location")),
            ("activitySegment", ("startLocation", "endLocation")),
        ):
            for end, place in zip(("start", "end"), places, strict=True):
                if pd.notna(time := row.get(f"{kind}.duration.{end}Timestamp")):
                    lat, lon = (row[f"{kind}.{place}.{axis}E7"] / 1e7 for axis in ("latitude", "longitude"))
                    rows.append((time, lat, lon))
        points = row.get("activitySegment.simplifiedRawPath.points")
        rows += (
            [(p["timestamp"], p["latE7"] / 1e7, p["lngE7"] / 1e7) for p in points] if isinstance(points, list) else []
        )
    return table(rows, "2024_MARCH")


@few
@given(objects=drawn_objects())
def test_semantic_location_history_as_pandas(objects, tmp_path_factory):
    content = json.dumps({"timelineObjects": objects})
    found = ours(tmp_path_factory.mktemp("semantic"), content, "2024_MARCH.json", user="file")
    assert_same(found.assign(user="2024_MARCH"), semantic_as_pandas(objects))


@few
@given(objects=drawn_objects())
@pytest.mark.filterwarnings("ignore:orjson not found")
def test_visits_as_google_takeout_parser(objects, tmp_path_factory):
    parser = pytest.importorskip("google_takeout_parser.parse_json")
    folder = tmp_path_factory.mktemp("visits")
    visits = [each for each in objects if "placeVisit" in each]
    if visits:
        found = ours(folder, json.dumps({"timelineObjects": visits}), "2024_MARCH.json").assign(user="a")
        other = list(parser._parse_semantic_location_history(folder / "2024_MARCH.json"))
        rows = [(str(time), v.lat, v.lng) for v in other for time in (v.startTime, v.endTime)]
        assert_same(found, table(rows, "a"))


@st.composite
def drawn_timelines(draw):
    """Segments of a Timeline: (kind, [(seconds, latitude, longitude), …]), one after the other, and raw positions."""
    fixes = draw(drawn_fixes(shortest=3))
    triples = [fixes[i : i + 3] for i in range(0, len(fixes) - 2, 3)]
    segments = [(draw(st.sampled_from(["path", "visit", "activity"])), triple) for triple in triples]
    raw = [(seconds + 90_000, y, x) for seconds, y, x in draw(drawn_fixes())] if draw(st.booleans()) else []
    return segments, [(seconds + fixes[-1][0] - FIRST, y, x) for seconds, y, x in raw]


def degrees(latitude, longitude) -> str:
    return f"{latitude:.7f}°, {longitude:.7f}°"


def android(segments, raw, zone) -> dict:
    made = []
    for kind, fixes in segments:
        (_, *first), (_, *_), (_, *last) = fixes
        item = {"startTime": iso(fixes[0][0], zone), "endTime": iso(fixes[-1][0], zone)}
        item |= {
            "path": {"timelinePath": [{"point": degrees(y, x), "time": iso(s, zone)} for s, y, x in fixes]},
            "visit": {"visit": {"hierarchyLevel": 0, "topCandidate": {"placeLocation": {"latLng": degrees(*first)}}}},
            "activity": {"activity": {"start": {"latLng": degrees(*first)}, "end": {"latLng": degrees(*last)}}},
        }[kind]
        made.append(item)
    signals = [{"position": {"LatLng": degrees(y, x), "source": "WIFI", "timestamp": iso(s, zone)}} for s, y, x in raw]
    return {"semanticSegments": made, "rawSignals": [{"wifiScan": {"deliveryTime": iso(FIRST)}}, *signals]}


def of_text(places: pd.Series) -> pd.DataFrame:
    """Latitudes and longitudes of "45.7°, 4.8°" or "geo:45.7,4.8"."""
    numbers = places.str.replace(r"[°\s]|geo:", "", regex=True).str.split(",", expand=True).astype(float)
    return numbers.set_axis(["lat", "lon"], axis="columns")


def located(times: pd.Series, places: pd.Series) -> pd.DataFrame:
    known = places.notna()
    return of_text(places[known]).assign(time=times[known]) if known.any() else pd.DataFrame()


def android_as_pandas(timeline) -> pd.DataFrame:
    names = ["startTime", "endTime", "visit.topCandidate.placeLocation.latLng"]
    names += ["activity.start.latLng", "activity.end.latLng"]
    flat = pd.json_normalize(timeline["semanticSegments"]).reindex(columns=names)
    paths = [point for each in timeline["semanticSegments"] for point in each.get("timelinePath", [])]
    walked = pd.DataFrame(paths, columns=["point", "time"])
    raw = pd.json_normalize(timeline["rawSignals"]).reindex(columns=["position.LatLng", "position.timestamp"])
    visits, starts, ends = (flat[name] for name in names[2:])
    parts = [
        located(walked["time"], walked["point"]),
        located(flat["startTime"], visits),
        located(flat["endTime"], visits),
        located(flat["startTime"], starts),
        located(flat["endTime"], ends),
        located(raw["position.timestamp"], raw["position.LatLng"]),
    ]
    return pd.concat(parts).assign(user="Timeline")


@few
@given(timeline=drawn_timelines(), zone=st.sampled_from(ZONES))
def test_the_timeline_of_android_as_pandas(timeline, zone, tmp_path_factory):
    made = android(*timeline, zone)
    content = json.dumps(made, ensure_ascii=False)
    assert_same(ours(tmp_path_factory.mktemp("android"), content, "Timeline.json"), android_as_pandas(made))


def ios(segments, zone) -> list:
    made = []
    for kind, fixes in segments:
        start = fixes[0][0]
        geo = [f"geo:{y:.6f},{x:.6f}" for _, y, x in fixes]
        item = {"startTime": iso(start, zone), "endTime": iso(fixes[-1][0], zone)}
        item |= {
            "path": {
                "timelinePath": [
                    {"point": point, "durationMinutesOffsetFromStartTime": str((seconds - start) // 60)}
                    for point, (seconds, *_) in zip(geo, fixes, strict=True)
                ]
            },
            "visit": {"visit": {"hierarchyLevel": "0", "topCandidate": {"placeLocation": geo[0]}}},
            "activity": {"activity": {"start": geo[0], "end": geo[-1]}},
        }[kind]
        made.append(item)
    return made


def ios_as_pandas(timeline) -> pd.DataFrame:
    names = ["startTime", "endTime", "visit.topCandidate.placeLocation", "activity.start", "activity.end"]
    flat = pd.json_normalize(timeline).reindex(columns=names)
    paths = [each for each in timeline if "timelinePath" in each]
    parts = [
        located(flat["startTime"], flat[names[2]]),
        located(flat["endTime"], flat[names[2]]),
        located(flat["startTime"], flat[names[3]]),
        located(flat["endTime"], flat[names[4]]),
    ]
    if paths:
        walked = pd.json_normalize(paths, record_path="timelinePath", meta="startTime")
        minutes = pd.to_timedelta(walked["durationMinutesOffsetFromStartTime"].astype(int), unit="min")
        times = (pd.to_datetime(walked["startTime"], utc=True) + minutes).map(lambda time: time.isoformat())
        parts.append(located(times, walked["point"]))
    return pd.concat(parts).assign(user="location-history")


@few
@given(timeline=drawn_timelines(), zone=st.sampled_from(ZONES))
def test_the_timeline_of_ios_as_pandas(timeline, zone, tmp_path_factory):
    segments = [(kind, [(seconds // 60 * 60, *place) for seconds, *place in fixes]) for kind, fixes in timeline[0]]
    times = [seconds for _, fixes in segments for seconds, *_ in fixes]
    if len(set(times)) == len(times):  # at the same time only the most exact position counts
        made = ios(segments, zone)
        found = ours(tmp_path_factory.mktemp("ios"), json.dumps(made), "location-history.json")
        assert_same(found, ios_as_pandas(made))


# OwnTracks, Overland, Polarsteps --------------------------------------------------------------------------------------

devices = st.lists(st.sampled_from(["an", "bo", "zé"]), min_size=8, max_size=8)


@few
@given(fixes=drawn_fixes(), device=devices, kind=st.sampled_from(["rec", "lines", "array", "answer"]))
def test_owntracks_as_pandas(fixes, device, kind, tmp_path_factory):
    messages = [
        {"_type": "location", "tid": tid, "lat": y, "lon": x, "tst": s, "acc": 5, "batt": 80}
        for tid, (s, y, x) in zip(device, fixes, strict=False)
    ]
    lines = [json.dumps(message) for message in messages]
    content = {
        "rec": "".join(f"{iso(FIRST)[:-10]}Z\t*                 \t{line}\n" for line in lines),
        "lines": "\n".join(lines),
        "array": json.dumps(messages),
        "answer": json.dumps({"count": len(lines), "data": messages, "status": 200, "version": "0.9"}),
    }[kind]
    folder = tmp_path_factory.mktemp("owntracks")
    found = ours(folder, content, "2024-03.rec" if kind == "rec" else "export.json")
    if kind == "rec":
        texts = pd.read_csv(folder / "2024-03.rec", sep="\t", header=None, quoting=3)[2]
        flat = pd.json_normalize(list(map(json.loads, texts)))
    elif kind == "answer":
        flat = pd.json_normalize(json.loads(content), record_path="data")
    else:
        flat = pd.read_json(folder / "export.json", lines=kind == "lines", dtype=False)
    times = pd.to_datetime(flat["tst"], unit="s", utc=True).map(lambda time: time.isoformat())
    assert_same(found, flat.assign(time=times, user=flat["tid"]))


@few
@given(fixes=drawn_fixes(), device=devices, zone=st.sampled_from(ZONES), batches=st.integers(1, 3))
def test_overland_as_pandas(fixes, device, zone, batches, tmp_path_factory):
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [x, y]},
            "properties": {
                "timestamp": iso(s, zone),
                "device_id": name,
                "horizontal_accuracy": 5,
                "motion": ["walking"],
            },
        }
        for name, (s, y, x) in zip(device, fixes, strict=False)
    ]
    parts = [part for i in range(batches) if (part := features[i::batches])]
    content = "\n".join(json.dumps({"locations": part, "current": {}}) for part in parts)
    found = ours(tmp_path_factory.mktemp("overland"), content, "batch.json")
    flat = pd.json_normalize(list(map(json.loads, content.splitlines())), record_path="locations")
    lon, lat = zip(*flat["geometry.coordinates"], strict=True)
    other = {"time": flat["properties.timestamp"], "user": flat["properties.device_id"], "lat": lat, "lon": lon}
    assert_same(found, pd.DataFrame(other))


@few
@given(fixes=drawn_fixes(), fraction=st.integers(0, 999))
def test_polarsteps_as_pandas(fixes, fraction, tmp_path_factory):
    content = json.dumps({"locations": [{"lat": y, "lon": x, "time": s + fraction / 1000} for s, y, x in fixes]})
    found = ours(tmp_path_factory.mktemp("polarsteps"), content, "locations.json")
    flat = pd.json_normalize(json.loads(content), record_path="locations")
    times = pd.to_datetime((flat["time"] * 1e6).round().astype("int64"), unit="us", utc=True)
    assert_same(found, flat.assign(time=times.map(lambda time: time.isoformat()), user="locations"))
