"""Exports of programs, devices and data sets, under their true headers: which columns are found, and a whole read."""

import json
from typing import NamedTuple

import pandas as pd
import pytest
from tables import written
from test_cli import done, failed

import promesse_geo as pg

MINUTES = (0, 1, 2)
STAMPS = [pd.Timestamp("2024-03-04T08:00Z") + pd.Timedelta(minutes=minute) for minute in MINUTES]
ISO = [f"2024-03-04T08:0{minute}:00Z" for minute in MINUTES]
BLANK = [f"2024-03-04 08:0{minute}:00" for minute in MINUTES]
EPOCH = [int(stamp.timestamp()) for stamp in STAMPS]
LON, LAT = ["4.80", "4.81", "4.82"], ["45.7", "45.7", "45.7"]
FEATURE = {"battery": 62, "tracker_id": None, "topic": None, "trigger": "unknown", "timestamp": 0, "track_id": None}


class Export(NamedTuple):
    """A header, the values of the columns that count, by name, and what is found for user, trip, time, lon and lat."""

    header: str
    values: dict[str, list[str] | list[int] | str | int]
    user: str | None
    trip: str | None
    time: str
    lon: str | None
    lat: str | None
    options: dict[str, str] = {}  # noqa: RUF012
    separator: str = ","
    name: str = "export.csv"

    def write(self, folder):
        """Write three records; other columns hold 0."""
        columns = self.header.split(self.separator)
        plain = [column.strip('"') for column in columns]
        lines = [self.header]
        for row in range(3):
            values = [self.values.get(name, 0) for name in plain]
            lines.append(self.separator.join(str(v[row] if isinstance(v, list) else v) for v in values))
        return written(folder, "".join(f"{line}\r\n" for line in lines), self.name)


EXPORTS = {
    "MovingPandas": Export(
        "X;Y;fid;id;sequence;trajectory_id;tracker;t",
        {"X": LON, "Y": LAT, "trajectory_id": 1, "t": [f"{time}+00" for time in BLANK]},
        *("trajectory_id", None, "t", "X", "Y"),
        options={"crs": "EPSG:4326"},
        separator=";",
    ),
    "trackintel": Export(
        ";user_id;tracked_at;latitude;longitude;elevation;accuracy",
        {"": [0, 1, 2], "user_id": 1, "tracked_at": ISO, "latitude": LAT, "longitude": LON},
        *("user_id", None, "tracked_at", "longitude", "latitude"),
        separator=";",
    ),
    "scikit-mobility": Export(
        "lat,lng,datetime,uid",
        {"lat": LAT, "lng": LON, "datetime": BLANK, "uid": 1},
        *("uid", None, "datetime", "lng", "lat"),
    ),
    "Movebank": Export(
        "event-id,visible,timestamp,location-long,location-lat,gps:dop,sensor-type,individual-taxon-canonical-name,"
        "tag-local-identifier,individual-local-identifier,study-name",
        {"timestamp": [f"{time}.000" for time in BLANK], "location-long": LON, "location-lat": LAT},
        *("individual-local-identifier", None, "timestamp", "location-long", "location-lat"),
    ),
    "Movebank through R": Export(
        '"","X","event.id","visible","timestamp","location.long","location.lat","sensor.type",'
        '"tag.local.identifier","individual.local.identifier","study.name"',
        {"X": [1, 2, 3], "timestamp": BLANK, "location.long": LON, "location.lat": LAT},
        *("individual.local.identifier", None, "timestamp", "location.long", "location.lat"),
    ),
    "AIS of NOAA": Export(
        "MMSI,BaseDateTime,LAT,LON,SOG,COG,Heading,VesselName,IMO,CallSign,VesselType,Status,Length,Width,Draft,Cargo",
        {"MMSI": 367000000, "BaseDateTime": [time[:-1] for time in ISO], "LAT": LAT, "LON": LON},
        *("MMSI", None, "BaseDateTime", "LON", "LAT"),
    ),
    "AIS of Denmark": Export(
        "# Timestamp,Type of mobile,MMSI,Latitude,Longitude,Navigational status,ROT,SOG,COG,Heading",
        {"# Timestamp": [f"04/03/2024 08:0{minute}:00" for minute in MINUTES], "Latitude": LAT, "Longitude": LON},
        *("MMSI", None, "# Timestamp", "Longitude", "Latitude"),
        options={"time_format": "%d/%m/%Y %H:%M:%S"},
    ),
    "OpenSky": Export(
        "time,icao24,lat,lon,velocity,heading,vertrate,callsign,onground,alert,spi,squawk,baroaltitude,geoaltitude,"
        "lastposupdate,lastcontact,hour",
        {"time": EPOCH, "icao24": "39c902", "lat": LAT, "lon": LON},
        *("icao24", None, "time", "lon", "lat"),
    ),
    "Beiwe": Export(
        "timestamp,UTC time,latitude,longitude,altitude,accuracy",
        {
            "timestamp": [1000 * second for second in EPOCH],
            "UTC time": [f"{time[:-1]}.000" for time in ISO],
            "latitude": LAT,
            "longitude": LON,
        },
        *(None, None, "timestamp", "longitude", "latitude"),
        name="p7/gps/2024-03-04 08_00_00+00_00.csv",
    ),
    "T-Drive": Export(
        "1,2008-02-02 15:36:08,116.51172,39.92123",
        {"1": 1, "2008-02-02 15:36:08": BLANK, "116.51172": LON, "39.92123": LAT},
        *("taxi_id", None, "date time", "lon", "lat"),
        options={"columns": "taxi_id,date time,lon,lat"},
        name="1.txt",
    ),
    "Porto": Export(
        '"TRIP_ID","CALL_TYPE","ORIGIN_CALL","ORIGIN_STAND","TAXI_ID","TIMESTAMP","DAY_TYPE","MISSING_DATA","POLYLINE"',
        {"TRIP_ID": list("abc"), "TIMESTAMP": EPOCH, "MISSING_DATA": '"False"', "TAXI_ID": 20000589}
        | {"POLYLINE": [f'"[[{lon},{lat}]]"' for lon, lat in zip(LON, LAT, strict=True)]},
        *("TAXI_ID", "TRIP_ID", "TIMESTAMP", None, None),
    ),
    "GPSLogger": Export(
        "time,lat,lon,elevation,accuracy,bearing,speed,satellites,provider,hdop,vdop,pdop,geoidheight,ageofdgpsdata,"
        "dgpsid,activity,battery,annotation,timestamp_ms,time_offset,distance,starttimestamp_ms,profile_name,"
        "battery_charging",
        {"time": ISO, "lat": LAT, "lon": LON},
        *(None, None, "time", "lon", "lat"),
    ),
    "Traccar": Export(
        "ID,PROTOCOL,DEVICEID,SERVERTIME,DEVICETIME,FIXTIME,VALID,LATITUDE,LONGITUDE,ALTITUDE,SPEED,COURSE,ADDRESS,"
        "ATTRIBUTES,ACCURACY,NETWORK,GEOFENCEIDS",
        {"ID": [1, 2, 3], "FIXTIME": [f"{time}.000000" for time in BLANK], "LATITUDE": LAT, "LONGITUDE": LON}
        | {"ATTRIBUTES": '"{""sat"":18,""distance"":9.7}"'},
        *("DEVICEID", None, "FIXTIME", "LONGITUDE", "LATITUDE"),
    ),
    "OwnTracks": Export(
        "tid,tst,isotst,lat,lon,acc,batt",
        {"tid": "an", "tst": EPOCH, "isotst": ISO, "lat": LAT, "lon": LON},
        *("tid", None, "tst", "lon", "lat"),
    ),
    "AWARE": Export(
        "_id,timestamp,device_id,double_latitude,double_longitude,double_bearing,double_speed,double_altitude,provider,"
        "accuracy,label",
        {
            "timestamp": [1000 * second for second in EPOCH],
            "device_id": "13dbc8a3-dae3-4834-823a-4bc96a7d459d",
            "double_latitude": LAT,
            "double_longitude": LON,
        },
        *("device_id", None, "timestamp", "double_longitude", "double_latitude"),
    ),
    "BasicAirData": Export(
        "type,date time,latitude,longitude,accuracy(m),altitude(m),geoid_height(m),speed(m/s),bearing(deg),sat_used,"
        "sat_inview,name,desc",
        {"type": "T", "date time": BLANK, "latitude": LAT, "longitude": LON},
        *(None, None, "date time", "longitude", "latitude"),
        name="20240304-080000.txt",
    ),
}


@pytest.mark.filterwarnings("ignore:read_table took the numbers of the time column")
@pytest.mark.parametrize("kind", EXPORTS)
def test_an_export_is_read_whole(kind, tmp_path):
    export = EXPORTS[kind]
    path = export.write(tmp_path)
    options = export.options
    if export.user is None:
        with pytest.raises(ValueError, match="No user column was found"):
            pg.read_file(path, **options)
        options = {**options, "user": None}
    traces = pg.read_file(path, as_traces=True, **options)
    names = traces.names
    assert (names.user, names.segment, names.time) == (export.user, export.trip, export.time)
    assert (names.lon, names.lat) == (export.lon, export.lat)
    frame = traces.to_frame()
    count = 4 if kind == "T-Drive" else 3  # the line for a header is a record
    assert len(frame) == count
    assert frame.geometry.x.tolist()[-3:] == [4.8, 4.81, 4.82]
    assert frame.geometry.y.tolist()[-3:] == [45.7] * 3
    assert pd.to_datetime(frame[export.time], utc=True).tolist()[-3:] == STAMPS
    assert len(traces.breaks) == (2 if export.trip else 0)
    words = [
        word
        for name, value in options.items()
        for word in (["--one-trace"] if name == "user" else [f"--{name.replace('_', '-')}", value])
    ]
    said = done("info", path, *words).stdout
    assert said.splitlines()[0].split() == ["records", str(count)]
    roles = {"user": export.user, "time": export.time, "lon": export.lon, "lat": export.lat}
    roles["breaks where it changes"] = export.trip
    line = next(line for line in said.splitlines() if line.startswith("columns"))
    assert all(f"{name} ({role})" in line for role, name in roles.items() if name is not None)


def test_a_folder_of_beiwe_has_its_participants_as_users(tmp_path):
    for user in ("p7", "p8"):
        EXPORTS["Beiwe"]._replace(name=f"{user}/gps/2024-03-04 08_00_00+00_00.csv").write(tmp_path)
    with pytest.warns(UserWarning, match="as milliseconds since 1970"):
        assert pg.read_file(tmp_path, user="folder-2", as_traces=True).users.tolist() == ["p7", "p8"]
    done("smooth", tmp_path, tmp_path.with_suffix(".csv"), "--epsilon", 100, "--user", "folder-2")


@pytest.mark.parametrize("track", [None, 7])
def test_dawarich_is_one_trace_or_has_a_track(track, tmp_path):
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [float(lon), float(lat)]},
            "properties": FEATURE | {"timestamp": second, "latitude": lat, "longitude": lon, "track_id": track},
        }
        for second, lon, lat in zip(EPOCH, LON, LAT, strict=True)
    ]
    path = written(tmp_path, json.dumps({"type": "FeatureCollection", "features": features}), "export.json")
    if track is None:
        said = failed("info", path)
        assert "The user columns 'tracker_id' and 'track_id' are empty in all rows" in said
        assert "--one-trace" in said
    option = ["--one-trace"] if track is None else []
    said = done("info", path, *option).stdout
    assert "timestamp (time), geometry (geometry)" in said
    assert ("track_id (user)" in said) == (track is not None)


def test_strava_is_gpx(tmp_path):
    points = "".join(
        f'<trkpt lat="{lat}" lon="{lon}"><ele>170.2</ele><time>{time}</time></trkpt>'
        for lon, lat, time in zip(LON, LAT, ISO, strict=True)
    )
    start = '<?xml version="1.0" encoding="UTF-8"?><gpx creator="StravaGPX" version="1.1" '
    space = 'xmlns="http://www.topografix.com/GPX/1/1"><metadata><time>2024-03-04T08:00:00Z</time></metadata>'
    track = f"<trk><name>Lunch Ride</name><type>cycling</type><trkseg>{points}</trkseg></trk></gpx>"
    path = written(tmp_path, start + space + track, "10888.gpx")
    frame = pg.read_file(path)
    assert frame["user"].tolist() == ["10888"] * 3
    assert frame["time"].tolist() == STAMPS
    assert "columns" not in done("info", path).stdout
