"""Folders with files of several formats that share extensions, and JSON that tells late what it is."""

import json

import pandas as pd
import pytest
from format_samples import CSV
from tables import written
from test_cli import done

import promesse_geo as pg
from promesse_geo.io.registry import guess_format
from promesse_geo.messages import sized

TIME = pd.Timestamp("2024-03-04T08:00Z")
SECOND = int(TIME.timestamp())
ISO = "2024-03-04T08:00:00Z"
POINT = {"type": "Point", "coordinates": [4.8, 45.7]}
E7 = {"latitudeE7": 457000000, "longitudeE7": 48000000, "timestamp": ISO}
JSON = {
    "google": {"locations": [E7]},
    "owntracks": [{"_type": "location", "lat": 45.7, "lon": 4.8, "tst": SECOND}],
    "overland": {"locations": [{"type": "Feature", "geometry": POINT, "properties": {"timestamp": ISO}}]},
    "polarsteps": {"locations": [{"lat": 45.7, "lon": 4.8, "time": SECOND}]},
    "json": [{"latitude": 45.7, "longitude": 4.8, "fixTime": ISO}],
    "table": {
        "type": "FeatureCollection",
        "features": [{"type": "Feature", "properties": {"user": "geojson", "time": ISO}, "geometry": POINT}],
    },
}
GPX = f'<gpx version="1.1"><trk><trkseg><trkpt lat="45.7" lon="4.8"><time>{ISO}</time></trkpt></trkseg></trk></gpx>'


def save(folder, kinds):
    for kind in kinds:
        written(folder, json.dumps(JSON[kind]), f"of-{kind}.json")


def users_of(kinds):
    return sorted("geojson" if kind == "table" else f"of-{kind}" for kind in kinds)


def assert_points(frame, users):
    assert sorted(frame["user"]) == users
    assert frame["time"].eq(TIME).all()
    assert frame.geometry.x.tolist() == pytest.approx([4.8] * len(users), abs=1e-9)
    assert frame.geometry.y.tolist() == pytest.approx([45.7] * len(users), abs=1e-9)


def test_each_file_of_a_folder_is_read_in_its_own_format(tmp_path):
    save(tmp_path, JSON)
    assert_points(pg.read_file(tmp_path), users_of(JSON))
    assert "6 traces" in done("info", tmp_path).stderr


@pytest.mark.parametrize("first", JSON)
@pytest.mark.parametrize("second", ["overland", "json"])
def test_two_formats_that_share_an_extension_are_told_apart(tmp_path, first, second):
    kinds = {first, second}
    save(tmp_path, kinds)
    assert_points(pg.read_file(tmp_path), users_of(kinds))


def test_a_file_that_no_format_recognizes_is_left_to_the_one_of_its_folder(tmp_path):
    save(tmp_path, ["polarsteps"])
    written(tmp_path, '{"locations": [{"lat": 45', "cut.json")
    with pytest.raises(ValueError, match=r"cut\.json.*cut or damaged"):
        pg.read_file(tmp_path)
    with pytest.warns(UserWarning, match="1 file"):
        assert len(pg.read_file(tmp_path, errors="skip")) == 1


LATE = {
    "google": {"locations": [{"locationMetadata": "x" * 9000, **E7}]},
    "owntracks": [{"note": "x" * 9000, **JSON["owntracks"][0]}],
    "overland": {"current": "x" * 9000, **JSON["overland"]},
    "polarsteps": {"locations": [{"note": "x" * 9000, **JSON["polarsteps"]["locations"][0]}]},
    "json": [{"note": "x" * 9000, **JSON["json"][0]}],
}


FILLER = {"settings": {"note": "x" * 90_000, "days": [{"note": "x" * 900}] * 90}, "other": [[7, "é" * 9000]] * 90}


def with_filler(value):
    """JSON whose telling keys come late: after other members of the outermost object, or of the first item."""
    if isinstance(value, list):
        return [{**FILLER, **value[0]}, *value[1:]]
    return {**FILLER, **value}


def later(value, size):
    """JSON with longer notes."""
    return json.loads(json.dumps(value).replace("x" * 9000, "é" * size))


@pytest.mark.parametrize("size", [9000, 70_000, 1_500_000])
@pytest.mark.parametrize("kind", LATE)
def test_json_is_recognized_by_keys_that_come_late(tmp_path, kind, size):
    path = written(tmp_path, json.dumps(later(LATE[kind], size), ensure_ascii=False), "late.json")
    assert_points(pg.read_file(path), ["late"])
    written(tmp_path, json.dumps(JSON["google"]), "of-google.json")
    assert_points(pg.read_file(tmp_path), ["late", "of-google"])


@pytest.mark.parametrize("kind", LATE)
@pytest.mark.parametrize("lines", [False, True])
def test_json_is_recognized_whatever_stands_before_its_keys(tmp_path, kind, lines):
    value = with_filler(JSON[kind])
    if lines:
        value = value if isinstance(value, list) else [value]
    text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    assert_points(pg.read_file(written(tmp_path, text, "late.json"), user="file"), ["late"])


@pytest.mark.parametrize("start", [FILLER, {"type": "FeatureCollection"}, {"name": "a"}])
def test_geojson_is_no_other_json(tmp_path, start):
    feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [4.8, 45.7]}}
    features = [{**feature, "properties": {"user": "ana", "time": ISO, "locations": [E7]}}]
    path = written(tmp_path, json.dumps({**start, "features": features, "type": "FeatureCollection"}), "points.json")
    assert guess_format(path) == "table"
    if start == FILLER:
        with pytest.raises(ValueError, match=r"is GeoJSON that GDAL does not recognize.*'type' first"):
            pg.read_file(path)
    else:
        assert_points(pg.read_file(path), ["ana"])


def test_tables_in_another_crs_are_joined_with_other_formats(tmp_path):
    written(tmp_path, GPX, "of-gpx.gpx")
    x, y = 639_988.0, 5_062_223.0
    written(tmp_path, f"user,time,x,y\nof-csv,{ISO},{x},{y}\n", "table.csv")
    frame = pg.read_file(tmp_path, crs="EPSG:32631")
    assert frame.crs == "EPSG:4326"
    place = frame.set_index("user").geometry["of-csv"]
    back = pg.read_table(tmp_path / "table.csv", crs="EPSG:32631").to_crs(4326).geometry[0]
    assert (place.x, place.y) == pytest.approx((back.x, back.y), abs=1e-9)


def test_local_times_of_tables_are_joined_with_other_formats_in_a_zone(tmp_path):
    written(tmp_path, GPX, "of-gpx.gpx")
    written(tmp_path, "user,time,lon,lat\nof-csv,2024-03-04 09:00:00,4.8,45.7\n", "table.csv")
    with pytest.raises(ValueError, match=r"times without a zone.*tz='Europe/Paris'"):
        pg.read_file(tmp_path)
    assert_points(pg.read_file(tmp_path, tz="Europe/Paris"), ["of-csv", "of-gpx"])


def test_a_link_to_nothing_is_skipped_with_a_warning(tmp_path):
    (tmp_path / "a.csv").write_bytes(CSV)
    written(tmp_path, GPX, "b.gpx")
    (tmp_path / "d.csv").symlink_to(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="a link to nothing"):
        pg.read_file(tmp_path)
    for errors in ("skip", "drop"):
        with pytest.warns(UserWarning, match="skipped 1 file.*a link to nothing"):
            read = pg.read_file(tmp_path, errors=errors)
        assert read["user"].nunique() == 2


def test_users_that_differ_by_their_type_in_two_files_are_refused_with_what_helps(tmp_path):
    times = pd.to_datetime([ISO, ISO])
    written(tmp_path, f"user,time,lon,lat\n1,{ISO},4.8,45.7\nann,{ISO},4.8,45.7\n", "a.csv")
    table = pd.DataFrame({"user": [1, 2], "time": times, "lon": [4.8, 4.9], "lat": [45.7, 45.8]})
    table.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"in one type in all files.*user='file'") as caught:
        pg.read_file(tmp_path)
    assert "None" not in str(caught.value)
    assert "astype" not in str(caught.value)
    assert len(pg.read_file(tmp_path, user="file", as_traces=True)) == 2


def test_sizes_have_a_unit_that_suits_them():
    assert [sized(size) for size in (0, 999, 12_345, 1.24e6, 55e6, 1.2e9, 3e12)] == [
        *("0.0 kB", "1.0 kB", "12 kB", "1.2 MB", "55 MB", "1.2 GB", "3.0 TB")
    ]
