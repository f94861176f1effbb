"""The same file read by us and by another library has the same records, places and times."""

import json
import xml.etree.ElementTree as ET
from functools import reduce
from operator import xor

import fitdecode
import geopandas as gpd
import gpxpy
import numpy as np
import pandas as pd
import pyogrio
import pytest
import shapely
from fit_encoder import STOP_ALL, event, fit, record
from hypothesis import given, settings
from hypothesis import strategies as st

import promesse_geo as pg

FIRST = 1_709_539_200  # 2024-03-04T08:00:00Z
fixes = st.tuples(
    st.integers(1, 90), st.floats(-80, 80).map(lambda y: round(y, 5)), st.floats(-179, 179).map(lambda x: round(x, 5))
)


@st.composite
def drawn_tracks(draw, shortest=1):
    """Segments of (seconds since 1970, latitude, longitude); times ascend."""
    seconds, segments = FIRST, []
    for segment in draw(st.lists(st.lists(fixes, min_size=shortest, max_size=6), min_size=1, max_size=4)):
        segments.append([])
        for step, latitude, longitude in segment:
            seconds += step
            segments[-1].append((seconds, latitude, longitude))
    return segments


tracks, lines = given(track=drawn_tracks()), given(track=drawn_tracks(shortest=2))
few = settings(max_examples=25, deadline=None)


def iso(seconds) -> str:
    return pd.Timestamp(seconds, unit="s", tz="UTC").strftime("%Y-%m-%dT%H:%M:%SZ")


def as_rows(times, latitudes, longitudes) -> list[tuple]:
    stamps = pd.to_datetime(list(times), utc=True).as_unit("ns").asi8.tolist()
    return list(zip(stamps, np.round(list(latitudes), 9), np.round(list(longitudes), 9), strict=True))


def ours(folder, content, name) -> tuple[list[tuple], pg.Traces]:
    """The rows of a file as we read it."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    traces = pg.read_file(path, as_traces=True)
    x, y = traces.coordinates()
    return list(zip(traces.times.tolist(), np.round(y, 9), np.round(x, 9), strict=True)), traces


def assert_same(found, other) -> None:
    assert [row[0] for row in found] == [row[0] for row in other]
    np.testing.assert_allclose([row[1:] for row in found], [row[1:] for row in other], rtol=0, atol=2e-9)


def starts(track) -> list[int]:
    """The records that begin a segment after the first."""
    return np.cumsum([len(segment) for segment in track])[:-1].tolist()


@few
@tracks
def test_gpx_as_gpxpy(track, tmp_path_factory):
    segments = "".join(
        "<trkseg>"
        + "".join(f'<trkpt lat="{lat}" lon="{lon}"><time>{iso(time)}</time></trkpt>' for time, lat, lon in segment)
        + "</trkseg>"
        for segment in track
    )
    text = f'<gpx version="1.1" creator="a" xmlns="http://www.topografix.com/GPX/1/1"><trk>{segments}</trk></gpx>'
    found, traces = ours(tmp_path_factory.mktemp("gpx"), text, "a.gpx")
    other = gpxpy.parse(text)
    points = [point for trk in other.tracks for segment in trk.segments for point in segment.points]
    assert_same(found, as_rows(*zip(*[(point.time, point.latitude, point.longitude) for point in points], strict=True)))
    assert traces.breaks.tolist() == np.cumsum([len(s.points) for s in other.tracks[0].segments])[:-1].tolist()


@few
@tracks
def test_fit_as_fitdecode(track, tmp_path_factory):
    stops = [[*(record(*fix) for fix in segment), event(segment[-1][0], STOP_ALL)] for segment in track]
    content = fit(*(message for segment in stops for message in segment))
    found, traces = ours(tmp_path_factory.mktemp("fit"), content, "a.fit")
    with fitdecode.FitReader(content, processor=fitdecode.StandardUnitsDataProcessor()) as frames:
        messages = [frame for frame in frames if isinstance(frame, fitdecode.FitDataMessage) and frame.name == "record"]
    columns = ("timestamp", "position_lat", "position_long")
    assert_same(found, as_rows(*([message.get_value(name) for message in messages] for name in columns)))
    assert traces.breaks.tolist() == starts(track)


def sentence(time, latitude, longitude) -> str:
    stamp = pd.Timestamp(time, unit="s", tz="UTC")

    def minutes(degrees, width):
        return f"{int(abs(degrees)):0{width}d}{abs(degrees) % 1 * 60:010.7f}"

    north, east = "NS"[latitude < 0], "EW"[longitude < 0]
    place = f"{minutes(latitude, 2)},{north},{minutes(longitude, 3)},{east}"
    body = f"GPRMC,{stamp:%H%M%S}.00,A,{place},0.5,54.7,{stamp:%d%m%y},,,A"
    return f"${body}*{reduce(xor, body.encode()):02X}\r\n"


@few
@tracks
def test_nmea_as_pynmea2(track, tmp_path_factory):
    pynmea2 = pytest.importorskip("pynmea2")
    lines = [sentence(*fix) for segment in track for fix in segment]
    found, _ = ours(tmp_path_factory.mktemp("nmea"), "".join(lines), "a.nmea")
    other = [pynmea2.parse(line, check=True) for line in lines]
    assert_same(found, as_rows(*zip(*[(each.datetime, each.latitude, each.longitude) for each in other], strict=True)))


def fix_of(time, latitude, longitude) -> str:
    stamp = pd.Timestamp(time, unit="s", tz="UTC")

    def minutes(degrees, width):
        thousandths = round(abs(degrees) * 60_000)
        return f"{thousandths // 60_000:0{width}d}{thousandths % 60_000:05d}"

    place = f"{minutes(latitude, 2)}{'NS'[latitude < 0]}{minutes(longitude, 3)}{'EW'[longitude < 0]}"
    return f"B{stamp:%H%M%S}{place}A0058700558\r\n"


@few
@tracks
@pytest.mark.parametrize("midnight", [False, True])
def test_igc_as_aerofiles(track, midnight, tmp_path_factory):
    igc = pytest.importorskip("aerofiles.igc")
    late = 16 * 3600 - 20 if midnight else 0  # the day ends after 20 s
    rows = [(time + late, latitude, longitude) for segment in track for time, latitude, longitude in segment]
    day = pd.Timestamp(rows[0][0], unit="s", tz="UTC")
    text = f"AXXX001\r\nHFDTE{day:%d%m%y}\r\n{''.join(fix_of(*row) for row in rows)}"
    folder = tmp_path_factory.mktemp("igc")
    found, _ = ours(folder, text, "a.igc")
    with (folder / "a.igc").open() as file:
        errors, records = igc.Reader().read(file)["fix_records"]
    assert not errors
    assert_same(found, as_rows(*([fix[name] for fix in records] for name in ("datetime", "lat", "lon"))))


@few
@tracks
def test_tcx_as_tcxreader(track, tmp_path_factory):
    reader = pytest.importorskip("tcxreader.tcxreader")
    laps = "".join(
        f'<Lap StartTime="{iso(segment[0][0])}"><TotalTimeSeconds>9</TotalTimeSeconds><Track>'
        + "".join(
            f"<Trackpoint><Time>{iso(time)}</Time><Position><LatitudeDegrees>{lat}</LatitudeDegrees>"
            f"<LongitudeDegrees>{lon}</LongitudeDegrees></Position></Trackpoint>"
            for time, lat, lon in segment
        )
        + "</Track></Lap>"
        for segment in track
    )
    space = 'xmlns="http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2"'
    activity = f'<Activity Sport="Running"><Id>{iso(FIRST)}</Id>{laps}</Activity>'
    text = f"<TrainingCenterDatabase {space}><Activities>{activity}</Activities></TrainingCenterDatabase>"
    folder = tmp_path_factory.mktemp("tcx")
    found, traces = ours(folder, text, "a.tcx")
    other = reader.TCXReader().read(str(folder / "a.tcx")).trackpoints
    assert_same(
        found, as_rows(*([getattr(each, name) for each in other] for name in ("time", "latitude", "longitude")))
    )
    assert traces.breaks.tolist() == starts(track)


KML = '<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document>{}</Document></kml>'


@few
@tracks
def test_placemarks_of_kml_as_gdal(track, tmp_path_factory):
    marks = "".join(
        f"<Placemark><TimeStamp><when>{iso(time)}</when></TimeStamp>"
        f"<Point><coordinates>{lon},{lat}</coordinates></Point></Placemark>"
        for segment in track
        for time, lat, lon in segment
    )
    folder = tmp_path_factory.mktemp("kml")
    found, _ = ours(folder, KML.format(marks), "a.kml")
    other = pyogrio.read_dataframe(folder / "a.kml", columns=["timestamp"])
    assert_same(found, as_rows(other["timestamp"], other.geometry.y, other.geometry.x))


@few
@lines
def test_tracks_of_kml_as_gdal(track, tmp_path_factory):
    """GDAL has the places of a track, and no times."""
    lines = "".join(
        "<Placemark><gx:Track>"
        + "".join(f"<when>{iso(time)}</when>" for time, _, _ in segment)
        + "".join(f"<gx:coord>{lon} {lat} 0</gx:coord>" for _, lat, lon in segment)
        + "</gx:Track></Placemark>"
        for segment in track
    )
    folder = tmp_path_factory.mktemp("kml")
    found, traces = ours(folder, KML.format(lines), "a.kml")
    other = pyogrio.read_dataframe(folder / "a.kml", columns=[])
    places = shapely.get_coordinates(other.geometry.to_numpy())
    whens = [element.text for element in ET.fromstring(KML.format(lines)).iter() if element.tag.endswith("when")]
    assert_same(found, as_rows(whens, places[:, 1], places[:, 0]))
    assert traces.breaks.tolist() == starts(track)


@few
@lines
@pytest.mark.filterwarnings("ignore")  # of movingpandas
def test_moving_features_as_movingpandas(track, tmp_path_factory):
    mpd = pytest.importorskip("movingpandas")
    features = [
        {
            "type": "Feature",
            "properties": {"traj_id": str(number), "user": "ana"},
            "temporalGeometry": {
                "type": "MovingPoint",
                "coordinates": [[lon, lat] for _, lat, lon in segment],
                "datetimes": [iso(time) for time, _, _ in segment],
            },
        }
        for number, segment in enumerate(track)
    ]
    folder = tmp_path_factory.mktemp("mf")
    found, traces = ours(folder, json.dumps({"type": "FeatureCollection", "features": features}), "a.json")
    other = mpd.read_mf_json(str(folder / "a.json"), traj_id_property="traj_id")
    frames = [each.df for each in getattr(other, "trajectories", [other])]
    points = gpd.GeoDataFrame(pd.concat(frames)).sort_index()
    assert_same(found, as_rows(points.index, points.geometry.y, points.geometry.x))
    assert traces.breaks.tolist() == starts(track)
