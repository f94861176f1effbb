"""Formats are recognized by the content of a file or of a folder."""

import bz2
import dataclasses
import gzip
import re
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from conftest import ROOT
from format_samples import (
    ANDROID,
    CAB,
    CSV,
    FIT,
    GOOGLE,
    GPX,
    IGC,
    IOS,
    KML,
    MDC,
    NMEA,
    OVERLAND,
    OWNTRACKS,
    PLT,
    POLARSTEPS,
    RECORDS,
    SAMPLES,
    SEMANTIC,
    TCX,
    tarred,
    zipped,
)

import promesse_geo as pg
from promesse_geo.io import registry
from promesse_geo.io.registry import FORMATS, guess_format
from promesse_geo.io.sources import Format

SAMPLE = ROOT / "data" / "sample"


def made(folder, files):
    """A file, or a folder of files."""
    if isinstance(files, bytes):
        (folder / "data").write_bytes(files)
        return folder / "data"
    for name, content in files.items():
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / "data"


GUESSES = {
    "table: packed by bzip2": bz2.compress(CSV),
    "table: packed by zstd": pa.compress(CSV, "zstd", asbytes=True),
    "cabspotting: an archive": tarred({"cabspottingdata/new_abboip.txt": CAB}),
    "cabspotting: its folder": {"new_abboip.txt": CAB, "_cabs.txt": b"<cab/>", "README": b"Mobility traces"},
    "cabspotting: a folder about it": {"cabspottingdata/new_abboip.txt": CAB},
    "geolife: the zip": zipped({"Geolife Trajectories 1.3/Data/000/Trajectory/20081023025304.plt": PLT}),
    "geolife: its folder": {"Data/000/Trajectory/20081023025304.plt": PLT, "Data/000/labels.txt": b"Start Time\t"},
    "geolife: a user's folder": {"Trajectory/20081023025304.plt": PLT},
    "mdc: the tables": {
        "gps.csv": b"1\t1260000000\t6.6\t46.5" + b"\t0" * 8 + b"\n",
        "records.csv": b"1\t017\t1260000000\t-3600\tgps\n",
    },
    "mdc: a file with its header": MDC,
    "mdc: a folder of such files": {"gps.csv": MDC},
    "gpx: a file": GPX,
    "gpx: one with a mark": b"\xef\xbb\xbf" + GPX,
    "gpx: one with prefixes": re.sub(rb"(</?)(?=\w)", rb"\1g:", GPX),
    "gpx: one in UTF-16": GPX.decode().encode("utf-16"),
    "gpx: one that is packed": gzip.compress(GPX),
    "gpx: a folder": {"ana/ride.gpx": GPX, "ben/walk.gpx.gz": gzip.compress(GPX), "README.txt": b"Dear reader"},
    "tcx: a file": TCX,
    "tcx: a folder": {"ride.tcx": TCX, "walk.tcx.gz": gzip.compress(TCX)},
    "kml: a file": KML,
    "kml: a folder": {"ride.kml": KML, "walk.kmz": zipped({"doc.kml": KML})},
    "fit: a file": FIT,
    "fit: a folder": {"ride.fit": FIT, "walk.fit.gz": gzip.compress(FIT)},
    "google: positions": GOOGLE,
    "google: one that is packed": gzip.compress(GOOGLE),
    "google: visits": SEMANTIC,
    "google: Android": ANDROID,
    "google: iOS": IOS,
    "google: a folder": {"ana.json": GOOGLE, "ben.json.gz": gzip.compress(IOS), "README.txt": b"Dear reader"},
    "owntracks: lines": b"2024-03-04T08:00:00Z\t*                 \t" + OWNTRACKS + b"\n",
    "owntracks: messages": OWNTRACKS + b"\n" + OWNTRACKS + b"\n",
    "owntracks: a folder": {"2024-03.rec": b"2024-03-04T08:00:00Z\t*\t" + OWNTRACKS + b"\n"},
    "overland: a batch": OVERLAND,
    "overland: a folder": {"1.json": OVERLAND, "2.json": OVERLAND.replace(b"08:00", b"09:00")},
    "polarsteps: a trip": POLARSTEPS,
    "polarsteps: a folder": {"ana.json": POLARSTEPS, "ben.json": POLARSTEPS},
    "nmea: a log": NMEA,
    "nmea: a folder": {"boat.nmea": NMEA, "car.log": NMEA, "README.txt": b"Dear reader"},
    "igc: a flight": IGC,
    "igc: a folder": {"flight.igc": IGC, "glide.igc.gz": gzip.compress(IGC)},
    "json: an array": b"[" + RECORDS + b", " + RECORDS + b"]",
    "json: lines": RECORDS + b"\n" + RECORDS + b"\n",
    "json: a folder": {
        "ana.json": b"[" + RECORDS + b"]",
        "ben.jsonl.gz": gzip.compress(RECORDS.replace(b"08:00", b"09:00")),
    },
    "table: a CSV": CSV,
    "table: GeoJSON": b"""{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"user": "a",
        "time": "2024-03-04T08:00:00Z"}, "geometry": {"type": "Point", "coordinates": [4.8, 45.7]}}]}""",
    "table: one that is packed": gzip.compress(CSV),
    "table: one in UTF-16": CSV.decode().encode("utf-16"),
    "table: a folder": {"a/a.csv": CSV, "b/b.csv.gz": gzip.compress(CSV.replace(b"ana", b"ben"))},
}
for name in FORMATS:
    if name in SAMPLES and not any(kind.startswith(f"{name}: ") for kind in GUESSES):
        GUESSES[f"{name}: a folder"] = dict([SAMPLES[name]])


@pytest.mark.parametrize("kind", GUESSES)
def test_the_content_identifies_the_format(kind, tmp_path):
    path = made(tmp_path, GUESSES[kind])
    assert guess_format(path) == kind.partition(":")[0]
    assert pg.read_file(path, as_traces=True).records >= 1


@pytest.mark.parametrize("name", ["new_abboip.txt", "20081023025304.plt"])
def test_some_names_identify_the_format(name, tmp_path):
    path = tmp_path / "000" / "Trajectory" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(PLT if name.endswith("plt") else CAB)
    assert pg.read_file(path, as_traces=True).records == 1


def test_the_tables_of_mdc_are_recognized_without_a_header(tmp_path):
    folder = made(tmp_path, GUESSES["mdc: the tables"])
    assert guess_format(folder / "gps.csv") == "mdc"
    assert pg.read_file(folder / "gps.csv", as_traces=True).users.tolist() == ["017"]


NOTHING_FITS = {
    "something": (b"\x01\x02" + bytes(99), "neither in a known format nor text"),
    "another zip": (zipped({"photo.jpg": b"\xff\xd8"}), "no file in a known format"),
    "an empty folder": ({"README": b""}, "no file in a known format"),
    "a folder of two formats": ({"new_a.txt": CAB, "b.csv": CSV}, r"several formats \(cabspotting, table\)"),
}


@pytest.mark.parametrize("kind", NOTHING_FITS)
def test_if_nothing_fits_the_error_names_the_file_and_the_formats(kind, tmp_path):
    files, words = NOTHING_FITS[kind]
    path = made(tmp_path, files)
    with pytest.raises(ValueError, match=words) as caught:
        pg.read_file(path, as_traces=True)
    message = str(caught.value)
    assert repr(str(path)) in message
    assert message.endswith(f"format= (--format): {', '.join(FORMATS)}.")


@pytest.mark.filterwarnings("ignore:1 file was not read")
def test_a_format_given_is_used(tmp_path):
    folder = made(tmp_path, {"a.gpx": GPX, "b.csv": CSV})
    assert pg.read_file(folder, format="gpx", as_traces=True).users.tolist() == ["a"]
    assert pg.read_file(folder, format="table", as_traces=True).users.tolist() == ["ana"]
    with pytest.raises(ValueError, match="'format' parameter of read_file must be one of"):
        pg.read_file(folder, format="csv", as_traces=True)


@pytest.mark.parametrize("format", FORMATS)
def test_a_missing_file_is_an_error_in_every_format(format, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere' does not exist"):
        pg.read_file(tmp_path / "nowhere", format=format, as_traces=True)


@pytest.mark.parametrize(
    ("kind", "named", "user"),
    [
        ("gpx: a folder", {"user": "folder", "users": ["ben"]}, "ben"),
        ("gpx: a folder", {"users": ["ride"]}, "ride"),
        ("table: a folder", {"user": "file", "users": ["b"]}, "b"),
        ("table: a folder", {"users": ["ben"]}, "ben"),
        ("geolife: its folder", {"users": ["000"]}, "000"),
        ("cabspotting: its folder", {"users": ["abboip"]}, "abboip"),
        ("mdc: the tables", {"users": ["017"]}, "017"),
    ],
)
def test_users_are_passed_on(kind, named, user, tmp_path):
    assert pg.read_file(made(tmp_path, GUESSES[kind]), **named, as_traces=True).users.tolist() == [user]


@pytest.mark.parametrize("kind", ["gpx: a folder", "table: a folder"])
def test_errors_are_passed_on(kind, tmp_path):
    files = GUESSES[kind] | {f"broken.{'gpx' if kind < 'h' else 'csv'}": b"<gpx>"}
    with pytest.raises(ValueError, match="broken"):
        pg.read_file(made(tmp_path, files), as_traces=True)
    with pytest.warns(UserWarning, match="1 file .*broken"):
        assert pg.read_file(tmp_path / "data", errors="skip", as_traces=True).records == 2


@pytest.mark.parametrize("folder", ["gpx", "cabspotting", "geolife", "mdc/campaign", "mdc/challenge"])
@pytest.mark.filterwarnings("ignore:read_:UserWarning")
def test_the_samples_are_recognized(folder):
    assert guess_format(SAMPLE / folder) == folder.partition("/")[0]
    assert pg.read_file(SAMPLE / folder, as_traces=True).records > 0


FOLDERS = {kind.partition(":")[0]: kind for kind in reversed(GUESSES) if isinstance(GUESSES[kind], dict)}
"""The first folder of each format."""
every_format = pytest.mark.parametrize("kind", FOLDERS.values())


@every_format
def test_a_missing_user_is_a_value_error(kind, tmp_path):
    path = made(tmp_path, GUESSES[kind])
    user = pg.read_file(path, as_traces=True).users.tolist()[0]
    for users in ("nobody", ["nobody"], [user, "nobody"]):
        with pytest.raises(ValueError, match=r"1 of \d users? not found") as caught:
            pg.read_file(path, users=users, as_traces=True)
        assert "nobody" not in str(caught.value)


@every_format
def test_users_are_text_or_integers(kind, tmp_path):
    path = made(tmp_path, GUESSES[kind])
    user = pg.read_file(path, as_traces=True).users.tolist()[0]
    assert pg.read_file(path, users=user, as_traces=True).users.tolist() == [user]
    for users in ([None], [1.5], [[user]], 7.0, [True], [b"abc"]):
        with pytest.raises(TypeError, match="'users' parameter of read_"):
            pg.read_file(path, users=users, as_traces=True)
    with pytest.raises(ValueError, match=r"'users' parameter of .* empty list"):
        pg.read_file(path, users=[], as_traces=True)


@every_format
def test_skip_and_drop_mean_the_same(kind, tmp_path):
    path = made(tmp_path, GUESSES[kind])
    names = {"cabspotting": "new_bad.txt", "geolife": "Data/009/Trajectory/bad.plt", "mdc": "gps-bad.csv"}
    place = Path(next(iter(GUESSES[kind])))
    bad = path / names.get(kind.partition(":")[0], place.with_name(f"bad{place.suffix}"))
    bad.parent.mkdir(parents=True, exist_ok=True)
    bad.write_bytes(b"")
    users = {}
    for errors in ("skip", "drop"):
        with pytest.warns(UserWarning, match="dropped 1 file"):
            users[errors] = pg.read_file(path, errors=errors, as_traces=True).users.tolist()
    assert users["skip"] == users["drop"]
    with pytest.raises(ValueError, match="bad"):
        pg.read_file(path, as_traces=True)
    with pytest.raises(ValueError, match=r"'errors' parameter of read_.* must be one of"):
        pg.read_file(path, errors="ignore", as_traces=True)


def test_a_new_format_needs_only_its_entry(tmp_path, monkeypatch):
    def read_sizes(path, *, users, as_traces, errors):
        return path.stat().st_size

    new = Format("sizes", "Sizes", read_sizes, lambda head, name: head.content.startswith(b"SIZE"), files=("*.size",))
    monkeypatch.setattr(registry, "FORMATS", {"sizes": new, **FORMATS})
    folder = made(tmp_path, {"a.size": b"SIZE 1"})
    assert guess_format(folder) == guess_format(folder / "a.size") == "sizes"
    assert pg.read_file(folder / "a.size", as_traces=True) == 6
    with pytest.raises(ValueError, match=r"'crs'.* specifies another"):
        pg.read_file(folder / "a.size", crs="EPSG:32631", as_traces=True)
    (folder / "b.csv").write_bytes(CSV)
    monkeypatch.setattr(registry, "FORMATS", {"sizes": dataclasses.replace(new, joins=False), **FORMATS})
    with pytest.raises(ValueError, match=r"several formats .*sizes"):
        pg.read_file(folder, as_traces=True)


OPENED: list[list[str]] = []  # paths that the innermost call of `opens` opens


def _note_open(event: str, arguments: tuple) -> None:
    if OPENED and event == "open":
        OPENED[-1].append(str(arguments[0]))


sys.addaudithook(_note_open)


def opens(path, call) -> int:
    """How often a call opens a file, apart from what C libraries do."""
    OPENED.append([])
    try:
        call()
    finally:
        opened = OPENED.pop()
    return opened.count(str(path))


PACKED = ("packed", "archive", "the zip")


@pytest.mark.parametrize("kind", [kind for kind in GUESSES if isinstance(GUESSES[kind], bytes)])
def test_recognizing_a_file_that_is_not_packed_opens_it_once(kind, tmp_path):
    path = made(tmp_path, GUESSES[kind])
    if not any(word in kind for word in PACKED):
        assert opens(path, lambda: guess_format(path)) == 1


TEXT_CHOICES = {"columns": "a,b,c,d", "separator": ";", "decimal": ",", "encoding": "cp1252", "time_format": "%Y"}
PLACES = {"lon": "x", "lat": "y"}
WITHOUT = {
    "gpx": {"time": "when", "segment": "trip", "layer": "a", **PLACES, **TEXT_CHOICES},
    "json": {"time": "when", "segment": "trip", "layer": "a", **PLACES, **TEXT_CHOICES},
    "geojson": {"layer": "a", **PLACES, **TEXT_CHOICES},
    "gpkg": {**PLACES, **TEXT_CHOICES},
    "parquet": {"layer": "a", **TEXT_CHOICES},
    "csv": {"layer": "a"},
}


@pytest.mark.parametrize("ending", WITHOUT)
def test_parameters_that_do_not_apply_are_refused(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    city = pg.make_city(users=1, days=1, recorder="phone").head(9)
    if ending == "json":
        table = pd.DataFrame({"user": "a", "time": city["time"].astype(str), "lon": city.geometry.x, "lat": 45.0})
        table.to_json(path, orient="records")
    else:
        pg.write(city, path)
    for name, value in WITHOUT[ending].items():
        format = guess_format(path)  # else names of columns mean text
        with pytest.raises(ValueError, match=f"is read without '{name}'.* Omit it"):
            pg.read_file(path, format=format, **{name: value})
    with pytest.raises(ValueError, match=r"is read without .* Omit (them|it)"):
        pg.read_file(path, format=format, **WITHOUT[ending])
    assert len(pg.read_file(path, segment=None, tz="UTC")) == 9
