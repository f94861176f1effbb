"""Files of loggers, databases and other programs, odd but real, are read right, or refused with words that help."""

import bz2
import gzip
import io
import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from conftest import examples
from fit_encoder import STOP_ALL, event, fit, record
from format_samples import NMEA, tarred, zipped
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import promesse_geo as pg

LON, LAT = [4.8, 4.801, 4.802], [45.7, 45.701, 45.702]
STAMPS = pd.to_datetime([f"2024-03-04T08:0{minute}:00Z" for minute in range(3)])
ISO = [f"{stamp:%Y-%m-%dT%H:%M:%SZ}" for stamp in STAMPS]
BLANK = [f"{stamp:%Y-%m-%d %H:%M:%S}" for stamp in STAMPS]
SECONDS = [int(stamp.timestamp()) for stamp in STAMPS]
PLACES = list(zip(LON, LAT, strict=True))
BY_FILE = {"user": "file"}


def text(header, row, *, end="\n", above="", encoding="utf-8") -> bytes:
    """A table of three records; `row` returns a line for a number."""
    return "".join([above, *(f"{line}{end}" for line in [header, *map(row, range(3))])]).encode(encoding)


def parquet(**columns) -> bytes:
    content = io.BytesIO()
    options = {"use_deprecated_int96_timestamps": columns.pop("int96", False)}
    pq.write_table(pa.table(columns), content, **options)
    return content.getvalue()


GPX = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<gpx creator="StravaGPX" version="1.1" '
    'xmlns="http://www.topografix.com/GPX/1/1" xmlns:x="http://www.garmin.com/xmlschemas/TrackPointExtension/v1"><trk>'
    "<trkseg>"
    + "".join(
        f'<trkpt lat="{lat}" lon="{lon}"><ele>9</ele><time>{time}</time><extensions><x:hr>9</x:hr></extensions></trkpt>'
        for (lon, lat), time in zip(PLACES, ISO, strict=True)
    )
    + "</trkseg></trk></gpx>"
)
TCX = (  # Strava's own has blanks before the declaration
    '          <?xml version="1.0" encoding="UTF-8"?><TrainingCenterDatabase '
    'xmlns="http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2"><Activities><Activity Sport="Biking"><Lap>'
    "<Track>"
    + "".join(
        f"<Trackpoint><Time>{time}</Time><Position><LatitudeDegrees>{lat}</LatitudeDegrees><LongitudeDegrees>{lon}"
        "</LongitudeDegrees></Position><HeartRateBpm><Value>99</Value></HeartRateBpm></Trackpoint>"
        for (lon, lat), time in zip(PLACES, ISO, strict=True)
    )
    + "</Track></Lap></Activity></Activities></TrainingCenterDatabase>"
)
KML = (
    '<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">'
    "<Document><Folder><Placemark><gx:MultiTrack>"
    + "".join(
        f"<gx:Track><when>{time}</when><gx:coord>{lon} {lat} 9</gx:coord></gx:Track>"
        for (lon, lat), time in zip(PLACES, ISO, strict=True)
    )
    + "</gx:MultiTrack></Placemark></Folder></Document></kml>"
)
FIT = fit(
    *(record(second, lat, lon) for second, (lon, lat) in zip(SECONDS, PLACES, strict=True)), event(SECONDS[2], STOP_ALL)
)


def feature(geometry, **properties) -> dict:
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def collection(*features, **members) -> bytes:
    return json.dumps({"type": "FeatureCollection", "features": features, **members}).encode()


MOVING = {
    "type": "MovingGeomPoint",
    "crs": {"type": "Name", "properties": {"name": "EPSG:4326"}},
    "sequences": [
        {"coordinates": PLACES[:2], "datetimes": [f"{time}+00" for time in BLANK[:2]], "lower_inc": True},
        {"coordinates": PLACES[2], "datetimes": f"{BLANK[2]}+00", "interpolation": "Discrete"},
    ],
    "interpolation": "Linear",
}

READ = {  # name of the file, content, options, users
    "AIS of Denmark": (
        "aisdk.csv",
        text(
            "# Timestamp,Type of mobile,MMSI,Latitude,Longitude,Navigational status,ROT,SOG",
            lambda i: f"04/03/2024 08:0{i}:00,Class A,219000002,{LAT[i]:.6f},{LON[i]:.6f},Unknown value,,0.1",
        ),
        {"time_format": "%d/%m/%Y %H:%M:%S", "tz": "UTC"},
        ["219000002"],
    ),
    "hemispheres in columns of their own (i-Blue 747, Qstarz)": (
        "747.csv",
        text(
            "INDEX,RCR,DATE,TIME,VALID,LATITUDE,N/S,LONGITUDE,E/W,HEIGHT,SPEED,HEADING,DISTANCE,",
            lambda i: f"{i},T,2024/03/04,08:0{i}:00,SPS,{LAT[i]},N,{LON[i]},E,513.863 M,15.862 km/h,178.24,34.60 M,",
        ),
        {**BY_FILE, "tz": "UTC"},
        ["747"],
    ),
    "degree signs (reports of Traccar)": (
        "van.csv",
        text("Valid;Time;Latitude;Longitude;Altitude;Speed", lambda i: f"True;{BLANK[i]};{LAT[i]}°;{LON[i]}°;0 m;1 kn"),
        {**BY_FILE, "tz": "UTC"},
        ["van"],
    ),
    "letters for hemispheres": (
        "boat.csv",
        text("user,time,lat,lon", lambda i: f"a,{ISO[i]},{LAT[i]}N,{LON[i]:08.3f} E"),
        {},
        ["a"],
    ),
    "units in names": (
        "car.csv",
        text("User,Time (UTC),Latitude[deg],Longitude [deg],Speed(m/s)", lambda i: f"a,{ISO[i]},{LAT[i]},{LON[i]},3"),
        {},
        ["a"],
    ),
    "positions of OwnTracks by ocat": (
        "ocat.csv",
        text(
            "username,device,tst,isotst,lat,lon,acc,alt,vel,cog,tid,t,batt",
            lambda i: f"jane,phone,{SECONDS[i]},{ISO[i]},{LAT[i]},{LON[i]},13,170,0,0,jj,u,80",
        ),
        {},
        ["jane"],
    ),
    "Dawarich, whose coordinates are text": (
        "export.json",
        collection(
            *(
                feature(
                    {"type": "Point", "coordinates": [str(lon), str(lat)]}, tracker_id="x", timestamp=second, inrids=[]
                )
                for (lon, lat), second in zip(PLACES, SECONDS, strict=True)
            )
        ),
        {"user": "tracker_id"},
        ["x"],
    ),
    "GPSLogger's GeoJSON, whose type comes last": (
        "day.geojson",
        json.dumps(
            {
                "features": [
                    {
                        "geometry": {"coordinates": place, "type": "Point"},
                        "properties": {"time": time.replace("08:", "15:").replace("Z", "+07:00"), "provider": "gps"},
                        "type": "Feature",
                    }
                    for place, time in zip(PLACES, ISO, strict=True)
                ],
                "type": "FeatureCollection",
            }
        ).encode(),
        BY_FILE,
        ["day"],
    ),
    "MobilityDB's MF-JSON": ("m.json", json.dumps(MOVING).encode(), BY_FILE, ["m"]),
    "MobilityDB's MF-JSON in a collection": (
        "m.json",
        collection({"type": "Feature", "properties": {"mmsi": 7}, "temporalGeometry": {**MOVING, "crs": None}}),
        {},
        ["7"],
    ),
    "togeojson": (
        "t.geojson",
        collection(
            feature(
                {"type": "MultiLineString", "coordinates": [PLACES[:1] * 1 + PLACES[1:2], PLACES[2:]]},
                name="Walk",
                coordinateProperties={"times": [ISO[:2], ISO[2:]]},
            )
        ),
        BY_FILE,
        ["t"],
    ),
    "Movebank with rows without a position": (
        "mb.csv",
        text(
            "event-id,visible,timestamp,location-long,location-lat,sensor-type,individual-local-identifier",
            lambda i: f'{i},true,{BLANK[i]}.000,{LON[i]},{LAT[i]},"gps","b"' + f'\n9,true,{BLANK[i]}.500,,,"gps","b"',
        ),
        {"errors": "skip", "tz": "UTC"},
        ["b"],
    ),
    "a table of PostGIS": (
        "pg.csv",
        text(
            "gid,user_id,recorded_at,geom",
            lambda i: (
                f"{i},1,{BLANK[i]}+00,"
                + shapely.to_wkb(shapely.set_srid(shapely.Point(PLACES[i]), 4326), hex=True, include_srid=True)
            ),
        ),
        {},
        ["1"],
    ),
    "check-ins without a header (Foursquare)": (
        "tsmc.txt",
        b"".join(
            f"470\t49bbd6\t4bf58d\tArts & Crafts\t{LAT[i]}\t{LON[i]}\t-240\tMon Mar 04 08:0{i}:00 +0000 2024\n".encode()
            for i in range(3)
        ),
        {"columns": "user,venue,kind,name,lat,lon,offset,time", "time_format": "%a %b %d %H:%M:%S %z %Y"},
        ["470"],
    ),
    "check-ins without a header (Gowalla)": (
        "loc.txt.gz",
        gzip.compress(b"".join(f"0\t{ISO[i]}\t{LAT[i]}\t{LON[i]}\t22847\n".encode() for i in range(3))),
        {"columns": "user,time,lat,lon,place"},
        ["0"],
    ),
    "blanks between values": (
        "cab.txt",
        b"".join(f"a {BLANK[i]} {LON[i]} {LAT[i]}\r\n".encode() for i in range(3)),
        {"columns": "user,date,time,lon,lat", "separator": " ", "tz": "UTC"},
        ["a"],
    ),
    "German Excel": (
        "de.csv",
        text(
            "Teilnehmer;Datum;Uhrzeit;Breite;Länge;Straße",
            lambda i: (
                f"Jörg;04.03.2024;09:0{i}:00;{LAT[i]};{LON[i]}".replace(".", ",").replace("04,03,", "04.03.") + ";x"
            ),
            end="\r\n",
            encoding="cp1252",
        ),
        {"encoding": "cp1252", "time_format": "%d.%m.%Y %H:%M:%S", "tz": "Europe/Berlin"},
        ["Jörg"],
    ),
    "a preamble with as many separators": (
        "log.csv",
        text(
            "user,time,lon,lat", lambda i: f"a,{ISO[i]},{LON[i]},{LAT[i]}", above="Device,X7,firmware 2\nOwner,Ana,\n\n"
        ),
        {},
        ["a"],
    ),
    "comments with separators": (
        "log.csv",
        text("#user,time,lon,lat", lambda i: f"a,{ISO[i]},{LON[i]},{LAT[i]}", above="# logger v2, serial 12\n#\n"),
        {},
        ["a"],
    ),
    "a line of units": (
        "log.csv",
        text("user,time,lon,lat\n-,UTC,deg,deg", lambda i: f"a,{ISO[i]},{LON[i]},{LAT[i]}"),
        {"errors": "skip"},
        ["a"],
    ),
    "Polars' Categorical": (
        "p.parquet",
        parquet(
            user=pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.uint32()), ["a"]), time=STAMPS, lon=LON, lat=LAT
        ),
        {},
        ["a"],
    ),
    "Parquet of DuckDB with views": (
        "d.parquet",
        parquet(user=pa.array(["a"] * 3, pa.string_view()), time=pa.array(ISO, pa.string_view()), lon=LON, lat=LAT),
        {},
        ["a"],
    ),
    "Parquet of Spark": (
        "s.parquet",
        parquet(user=["a"] * 3, time=STAMPS.tz_localize(None), lon=LON, lat=LAT, int96=True),
        {},
        ["a"],
    ),
    "Parquet with decimals": (
        "n.parquet",
        parquet(user=["a"] * 3, time=STAMPS, lon=pa.array(LON).cast(pa.decimal128(9, 6)), lat=pa.array(map(str, LAT))),
        {},
        ["a"],
    ),
    "TCX of Strava": ("102.tcx.gz", gzip.compress(TCX.encode()), {}, ["102"]),
    "KML with a track for each piece": ("walk.kml", KML.encode(), {}, ["walk"]),
    "KMZ": ("walk.kmz", zipped({"doc.kml": KML.encode(), "files/icon.png": b"\x89PNG\r\n"}), {}, ["walk"]),
    "FIT": ("103.fit.gz", gzip.compress(FIT), {}, ["103"]),
    "a zip with a tar": (
        "takeout.zip",
        zipped({"a/t.tar": tarred({"ana/ride.gpx": GPX.encode()}), "__MACOSX/._t": b"\0\5", "readme.md": b"hello"}),
        {},
        ["ride"],
    ),
    "a tar of bzip2 with a packed file": (
        "x.tar.bz2",
        bz2.compress(tarred({"ana/ride.gpx.gz": gzip.compress(GPX.encode())}, mode="w")),
        {"user": "folder"},
        ["ana"],
    ),
    "zstandard": ("ride.gpx.zst", pa.compress(GPX.encode(), "zstd", asbytes=True), {}, ["ride"]),
}


def save(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.filterwarnings("ignore:read_table took", "ignore:read_table dropped", "ignore:The elevations")
@pytest.mark.parametrize("kind", READ)
def test_a_file_of_another_program_is_read(kind, tmp_path):
    name, content, options, users = READ[kind]
    frame = pg.read_file(save(tmp_path, name, content), **options)
    roles = frame.attrs["promesse"]
    assert sorted(set(frame[roles["user"]].astype(str))) == users
    assert frame[roles["time"]].tolist() == STAMPS.tolist()
    tolerance = 1e-7 if "fit" in name else 1e-12
    np.testing.assert_allclose(frame.geometry.x, LON, rtol=0, atol=tolerance)
    np.testing.assert_allclose(frame.geometry.y, LAT, rtol=0, atol=tolerance)


REFUSED = {
    "Columbus": (
        "v900.csv",
        b"INDEX,TAG,DATE,TIME,LATITUDE N/S,LONGITUDE E/W,HEIGHT\n1\0\0,T,240304,080000,45.7N,4.8E,318\0\0\n",
        "a file of a Columbus logger.*gpsbabel -i v900",
    ),
    "a day for each record": (
        "days.csv",
        text("user,time,lon,lat", lambda i: f"a,2024-03-0{i + 1},{LON[i]},{LAT[i]}"),
        "dates without a time of day",
    ),
    "a day for each record in text of Parquet": (
        "days.parquet",
        parquet(user=["a"] * 3, date=[f"2024-03-0{i + 1}" for i in range(3)], lon=LON, lat=LAT),
        "dates without a time of day",
    ),
    "seconds since the start of a trip": (
        "ved.csv",
        text("VehId,Trip,Timestamp(ms),Latitude[deg],Longitude[deg]", lambda i: f"8,7,{i}000,{LAT[i]},{LON[i]}"),
        r"user='Trip' \(--user Trip\).*not seconds, milliseconds",
    ),
    "degrees, minutes and seconds": (
        "dms.csv",
        text("user,time,lat,lon", lambda i: f"a,{ISO[i]},45°42'0\"N,4°48'{i}\"E"),
        "degrees, minutes and seconds.*decimal degrees",
    ),
    "places without times": (
        "places.kml",
        b"<kml><Placemark><Point><coordinates>4.8,45.7</coordinates></Point></Placemark></kml>",
        "no positions with times",
    ),
    "geometries without a header": (
        "roma.txt",
        b"156;2014-02-01 00:00:00.7+01;POINT(41.88 12.48)\n" * 3,
        r"if there is no header, name the columns.*--columns user,time,lon,lat",
    ),
    "no user, and a column that is called almost like one": (
        "g.csv",
        text("time,lat,lon,provider", lambda i: f"{ISO[i]},{LAT[i]},{LON[i]},gps"),
        r"No user column was found.*user='…'.*user='file'",
    ),
    "a name with a bracket": (
        "b.csv",
        text("user,Local Time (h),lat,lon", lambda i: f"a,{ISO[i]},{LAT[i]},{LON[i]}"),
        r"as in time='Local Time \(h\)' \(--time 'Local Time \(h\)'\)\.",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_of_another_program_is_refused_with_a_remedy(kind, tmp_path):
    name, content, words = REFUSED[kind]
    path = save(tmp_path, name, content)
    with pytest.raises((ValueError, TypeError), match=f"(?s){words}") as caught:
        pg.read_file(path)
    assert "45." not in str(caught.value).replace("45.0", "")
    assert repr(str(path)) in str(caught.value)


south = st.lists(
    st.tuples(
        st.floats(0, 179).map(lambda x: round(x, 5)), st.floats(0, 89).map(lambda y: round(y, 5)), *[st.booleans()] * 2
    ),
    min_size=2,
    max_size=9,
)


@settings(max_examples=40, deadline=None)
@given(
    places=south,
    notation=st.sampled_from(["columns", "words", "suffix", "prefix", "degrees"]),
    point=st.sampled_from([".", ","]),
)
def test_signs_of_hemispheres_in_any_notation(places, notation, point, tmp_path_factory):
    letters = [("NS"[is_south], "EW"[is_west]) for *_, is_south, is_west in places]
    lines = []
    for (x, y, *_), (ns, ew) in zip(places, letters, strict=True):
        lat, lon = (f"{value:.5f}".replace(".", point) for value in (y, x))
        words = {"N": "North", "S": "South", "E": "East", "W": "West"}
        lat, lon, first, second = {
            "columns": (lat, lon, ns.lower(), f" {ew}"),
            "words": (lat, lon, words[ns], words[ew]),
            "suffix": (f"{lat}{ns}", f"{lon} {ew.lower()}", "", ""),
            "prefix": (f"{ns}{lat}", f"{ew} {lon}", "", ""),
            "degrees": (f"{lat}°{ns}", f"{lon}° {ew}", "", ""),
        }[notation]
        lines.append(f"a;2024-03-04T08:00:{len(lines):02d}Z;{lat};{first};{lon};{second}\n")
    path = save(tmp_path_factory.mktemp("sides"), "a.csv", ("user;time;lat;N/S;lon;E/W\n" + "".join(lines)).encode())
    frame = pg.read_table(path)
    assert frame.geometry.x.tolist() == pytest.approx([-x if west else x for x, _, _, west in places], abs=1e-9)
    assert frame.geometry.y.tolist() == pytest.approx([-y if is_south else y for _, y, is_south, _ in places], abs=1e-9)


def test_an_export_of_strava_is_read_but_for_what_has_no_positions(tmp_path):
    files = {
        "activities.csv": b'Activity ID,Activity Date,Filename\n101,"Mar 4, 2024, 8:00:00 AM",activities/101.gpx\n',
        "profile.csv": b"Athlete ID,First Name\n1,A\n",
        "activities/101.gpx": GPX.encode(),
        "activities/102.tcx.gz": gzip.compress(TCX.encode()),
        "activities/103.fit.gz": gzip.compress(FIT),
        "routes/r.gpx": b'<gpx version="1.1"><rte><rtept lat="45.7" lon="4.8"/></rte></gpx>',
        "media/photo.jpg": b"\xff\xd8\xff\xe0",
    }
    for name, content in files.items():
        save(tmp_path, name, content)
    with (
        pytest.warns(UserWarning, match=r"1 file was not read.*\.jpg"),
        pytest.raises(ValueError, match="no track") as caught,
    ):
        pg.read_file(tmp_path)
    assert "errors='skip'" in caught.value.__notes__[0]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        traces = pg.read_file(tmp_path, errors="skip", as_traces=True)
    assert traces.users.tolist() == ["101", "102", "103"]
    words = " ".join(str(each.message) for each in said)
    assert "r.gpx" in words
    assert "Format 'table': None of 2 files could be read. The first:" in words


def test_text_files_of_a_folder_are_read_by_their_content(tmp_path):
    header = "type,date time,latitude,longitude,accuracy(m),name"
    track = text(header, lambda i: f"T,{BLANK[i]},{LAT[i]},{LON[i]},1.18,x")
    save(tmp_path, "a/20240304.txt", track)
    save(tmp_path, "b/20240305.txt", track)
    assert pg.read_file(tmp_path, user="file", as_traces=True).users.tolist() == ["20240304", "20240305"]
    save(tmp_path, "photo.jpg", b"\xff\xd8")
    with pytest.warns(UserWarning, match=r"1 file was not read.*\.jpg"):
        assert pg.read_file(tmp_path, user="folder", as_traces=True).users.tolist() == ["a", "b"]
    (tmp_path / "photo.jpg").unlink()
    save(tmp_path, "c/boat.txt", NMEA)
    assert pg.read_file(tmp_path, user="folder", tz="UTC", as_traces=True).users.tolist() == ["a", "b", "c"]
    save(tmp_path, "d/notes.txt", b"Dear reader, this is no table\n")
    with pytest.raises(ValueError, match=r"no file in a known format.*--columns"):
        pg.read_file(tmp_path)


HOSTILE = [
    b"\0",
    b'"',
    b"'",
    b"\xff\xfe",
    b"\r",
    b"\n\n",
    b",;,",
    b"<!DOCTYPE a>",
    b"\xed\xa0\x80",
    b"9" * 400,
    b"nan",
    b"{[",
    b"&x;",
]
SAMPLES = {kind: sample[:3] for kind, sample in READ.items()} | {
    kind: (*sample[:2], {}) for kind, sample in REFUSED.items()
}


@settings(examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(list(SAMPLES)), data=st.data(), skips=st.booleans())
def test_no_foreign_error_whatever_becomes_of_a_file(kind, data, skips, tmp_path):
    name, content, options = SAMPLES[kind]
    first, second = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    insert = data.draw(st.sampled_from([b"", *HOSTILE]))
    rest = data.draw(st.sampled_from([content[second:], content[first:], b"", content[first:second][::-1]]))
    path = save(tmp_path, name, content[:first] + insert + rest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pg.read_file(path, as_traces=True, **{**options, "errors": "skip"} if skips else options)
        except (ValueError, TypeError, KeyError, FileNotFoundError) as error:
            words = str(error.args[0])
            assert name.partition(".")[0] in words
            assert "promesse-geo-" not in words
    path.unlink()
