"""A sample of each format in its true layout, small and made by hand, and archives of them."""

import io
import tarfile
import zipfile

import geopandas as gpd
import pandas as pd
from fit_encoder import fit, record

CAB = b"37.75134 -122.39488 0 1213084687\n"
PLT = (
    b"Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"
    + (b"39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04\r\n")
)
MDC = b"userid\ttime\ttz\tgps_time\taltitude\tlongitude\tlatitude\n017\t1260000000\t-3600\t1260000000\t400\t6.6\t46.5\n"
GPX = (
    b'<?xml version="1.0"?>\n<gpx version="1.1"><trk><trkseg><trkpt lat="45.7" lon="4.8">'
    b"<time>2024-03-04T08:00:00Z</time></trkpt></trkseg></trk></gpx>\n"
)
TCX = (
    b"<TrainingCenterDatabase><Activities><Activity><Lap><Track><Trackpoint><Time>2024-03-04T08:00:00Z</Time><Position>"
    b"<LatitudeDegrees>45.7</LatitudeDegrees><LongitudeDegrees>4.8</LongitudeDegrees></Position></Trackpoint></Track>"
    b"</Lap></Activity></Activities></TrainingCenterDatabase>"
)
KML = (
    b'<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><TimeStamp><when>2024-03-04T08:00:00Z</when></TimeStamp>'
    b"<Point><coordinates>4.8,45.7</coordinates></Point></Placemark></kml>"
)
FIT = fit(record(1_709_539_200, 45.7, 4.8))
GOOGLE = b'{"locations": [{"latitudeE7": 457000000, "longitudeE7": 48000000, "timestamp": "2024-03-04T08:00:00Z"}]}'
SEMANTIC = b"""{"timelineObjects": [{"placeVisit": {"location": {"latitudeE7": 457000000, "longitudeE7": 48000000},
    "duration": {"startTimestamp": "2024-03-04T08:00:00Z", "endTimestamp": "2024-03-04T09:00:00Z"}}}]}"""
ANDROID = b"""{"semanticSegments": [{"startTime": "2024-03-04T08:00:00.000+01:00",
    "endTime": "2024-03-04T10:00:00.000+01:00", "timelinePath": [
    {"point": "45.7\xc2\xb0, 4.8\xc2\xb0", "time": "2024-03-04T08:10:00.000+01:00"}]}]}"""
IOS = b"""[{"endTime": "2024-03-04T10:00:00.000+01:00", "startTime": "2024-03-04T08:00:00.000+01:00",
    "timelinePath": [{"durationMinutesOffsetFromStartTime": "10", "point": "geo:45.7,4.8"}]}]"""
OWNTRACKS = b'{"_type": "location", "lat": 45.7, "lon": 4.8, "tst": 1709539200, "tid": "an"}'
OVERLAND = b"""{"locations": [{"type": "Feature", "geometry": {"type": "Point", "coordinates": [4.8, 45.7]},
    "properties": {"timestamp": "2024-03-04T08:00:00Z", "device_id": "ana"}}]}"""
POLARSTEPS = b'{"locations": [{"lat": 45.7, "lon": 4.8, "time": 1709539200.5}]}'
NMEA = b"$GPRMC,123519,A,4807.038,N,01131.000,E,022.4,084.4,230394,003.1,W*6A\r\n"
IGC = b"AXXX001\r\nHFDTE040324\r\nB1101355206343N00006198WA0058700558\r\n"
RECORDS = b'{"deviceId": 7, "fixTime": "2024-03-04T08:00:00Z", "valid": true, "latitude": 45.7, "longitude": 4.8}'
CSV = b"user,time,lon,lat\nana,2024-03-04T08:00:00Z,4.84,45.75\n"


def tarred(members, *, mode="w:gz") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def zipped(members, *, compression=zipfile.ZIP_STORED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def stored(driver) -> bytes:
    """One record in a format of geopandas."""
    frame = gpd.GeoDataFrame({"user": ["ana"]}, geometry=gpd.points_from_xy([4.84], [45.75]), crs=4326)
    frame["time"] = pd.to_datetime(["2024-03-04T08:00:00Z"])
    content = io.BytesIO()
    if driver == "Parquet":
        frame.to_parquet(content)
    else:
        frame.to_file(content, driver=driver)
    return content.getvalue()


SAMPLES = {
    "cabspotting": ("new_abboip.txt", CAB),
    "geolife": ("000/Trajectory/20081023025304.plt", PLT),
    "mdc": ("gps.csv", MDC),
    "gpx": ("ana.gpx", GPX),
    "tcx": ("ana.tcx", TCX),
    "kml": ("ana.kml", KML),
    "fit": ("ana.fit", FIT),
    "google": ("Records.json", GOOGLE),
    "google: visits": ("2024_MARCH.json", SEMANTIC),
    "google: Android": ("Timeline.json", ANDROID),
    "google: iOS": ("location-history.json", IOS),
    "owntracks": ("2024-03.rec", OWNTRACKS),
    "overland": ("batch.json", OVERLAND),
    "polarsteps": ("locations.json", POLARSTEPS),
    "nmea": ("boat.nmea", NMEA),
    "igc": ("flight.igc", IGC),
    "json": ("positions.json", RECORDS),
    "table": ("ana.csv", CSV),
    "table: GeoJSON": ("ana.geojson", stored("GeoJSON")),
    "table: Parquet": ("ana.parquet", stored("Parquet")),
    "table: GeoPackage": ("ana.gpkg", stored("GPKG")),
    "table: FlatGeobuf": ("ana.fgb", stored("FlatGeobuf")),
}
"""Of each format, or "format: layout", a name of a file and its content, which is one record."""
