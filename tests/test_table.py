"""Tables that people bring: which columns are taken, and what is said of files that cannot be read."""

import gzip
import io
import json
import re
import tarfile
import zipfile

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyogrio
import pytest
import shapely

import promesse_geo as pg
from promesse_geo.io.registry import guess_format

HEADER = "user,time,lon,lat"
LINE = "zaphod,2008-05-17T10:00:04Z,-122.39488,37.75134"
LATER = "zaphod,2008-05-17T10:01:04Z,-122.39588,37.75234"
# What no message may hold: a user's key, a coordinate, and what pyarrow and GDAL say in theirs.
SECRETS = re.compile(r"zaphod|122\.3|37[.,]7")
OTHERS_WORDS = re.compile(r"sqlite|driver|parse error|magic|thrift|Arrow|utf-8'|column #", re.IGNORECASE)


def csv_of(tmp_path, *lines, name="table.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes("".join(line + "\n" for line in lines).encode(encoding))
    return path


def make_frame(**columns) -> gpd.GeoDataFrame:
    """Four records of two users; columns are added to it."""
    times = pd.date_range("2008-05-17 10:00:04", periods=4, freq="min", tz="UTC")
    points = gpd.points_from_xy([-122.39488, -122.39588, -122.3, -122.4], [37.75134, 37.75234, 37.7, 37.8])
    frame = {"user": ["zaphod", "zaphod", "trillian", "trillian"], "time": times} | columns
    return gpd.GeoDataFrame(frame, geometry=points, crs=4326)


def assert_as_made(found) -> None:
    wanted = pg.Traces.from_frame(make_frame()).to_frame()
    assert found["user"].tolist() == wanted["user"].tolist()
    assert pd.DatetimeIndex(found["time"]).as_unit("ns").equals(pd.DatetimeIndex(wanted["time"]).as_unit("ns"))
    assert found.geometry.geom_equals_exact(wanted.geometry, 1e-9).all()
    assert found.crs == wanted.crs


def refused(path, **named) -> str:
    """What is said of a file that cannot be read: its name, a reason in our words, and no value."""
    with pytest.raises((ValueError, TypeError, KeyError)) as caught:
        pg.read_table(path, **named)
    said = caught.value.args[0]
    assert type(caught.value) in (ValueError, TypeError, KeyError)
    assert said.startswith(repr(str(path)))
    assert not SECRETS.search(said)
    assert not OTHERS_WORDS.search(said.replace(str(path), ""))
    assert "\n" not in said
    return said


# Columns.

LONGITUDES, LATITUDES = ("lng", "lon", "long", "longitude"), ("lat", "latitude")
USERS = ("uid", "user", "user_id", "traj_id", "track_id", "individual-local-identifier")
TIMES = ("datetime", "timestamp", "time", "tracked_at", "t")


@pytest.mark.parametrize("lon", LONGITUDES)
@pytest.mark.parametrize("lat", LATITUDES)
def test_known_names_of_coordinates_are_found(lon, lat, tmp_path):
    found = pg.read_table(csv_of(tmp_path, f"user,time,{lon},{lat}", LINE))
    assert (found.geometry.x[0], found.geometry.y[0]) == pytest.approx((-122.39488, 37.75134))
    assert found.crs == "EPSG:4326"


@pytest.mark.parametrize(("user", "time"), list(zip(USERS, (*TIMES, "time"), strict=True)))
def test_known_names_of_users_and_times_are_found(user, time, tmp_path):
    assert list(pg.read_table(csv_of(tmp_path, f"{user},{time},lon,lat", LINE)).columns) == [user, time, "geometry"]
    for ending in ("parquet", "gpkg", "geojson"):
        path = tmp_path / f"table.{ending}"
        make_frame().rename(columns={"user": user, "time": time}).pipe(save, path)
        place = "geom" if ending == "gpkg" else "geometry"  # as GDAL calls it
        assert list(pg.read_table(path).columns) == [user, time, place]


def save(frame, path) -> None:
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_file(path)


def test_columns_may_stand_in_any_order_among_others(tmp_path):
    path = csv_of(tmp_path, "speed,lat,lon,note,time,user", "3,37.75134,-122.39488,hello,2008-05-17T10:00:04Z,zaphod")
    found = pg.read_table(path)
    assert list(found.columns) == ["user", "time", "geometry"]
    assert found.geometry.x[0] == pytest.approx(-122.39488)


def test_the_role_itself_goes_before_other_known_names(tmp_path):
    path = csv_of(tmp_path, "user,uid,time,timestamp,lon,lng,lat", "zaphod,other,2008-05-17T10:00:04Z,x,-122,y,37")
    found = pg.read_table(path)
    assert list(found.columns) == ["user", "time", "geometry"]


@pytest.mark.parametrize(
    ("header", "role", "candidates"),
    [
        ("uid,user_id,time,lon,lat", "user", "'uid' and 'user_id'"),
        ("user,datetime,timestamp,lon,lat", "time", "'datetime' and 'timestamp'"),
        ("user,time,lng,longitude,lat", "lon", "'lng' and 'longitude'"),
    ],
)
def test_several_candidates_are_an_error_that_lists_them(header, role, candidates, tmp_path):
    assert f"Several columns could hold the {role}: {candidates}." in refused(csv_of(tmp_path, header, "a,b,c,d,e"))


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("who,time,lon,lat", "user"),
        ("user,when,lon,lat", "time"),
        ("user,time,a,lat", "lon"),
        ("user,time,lon,b", "lat"),
    ],
)
def test_a_column_that_is_not_found_is_an_error_that_says_what_is_there(header, role, tmp_path):
    said = refused(csv_of(tmp_path, header, LINE))
    assert f"No {role} column was found." in said
    assert all(repr(name) in said for name in header.split(","))


def test_columns_can_be_named(tmp_path):
    path = csv_of(tmp_path, "who,when,a,b", LINE)
    found = pg.read_table(path, user="who", time="when", lon="a", lat="b")
    assert list(found.columns) == ["who", "when", "geometry"]
    said = refused(path, user="whom", time="when", lon="a", lat="b")
    assert "The user column 'whom' does not exist. The columns are 'who', 'when', 'a' and 'b'." in said


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_a_column_that_is_named_and_not_there_is_an_error_in_every_format(ending, tmp_path):
    save(make_frame(), tmp_path / f"table.{ending}")
    assert "The user column 'cab' does not exist" in refused(tmp_path / f"table.{ending}", user="cab")


@pytest.mark.parametrize("ending", ["csv", "parquet", "gpkg", "geojson"])
def test_a_file_can_be_one_trace(ending, tmp_path):
    path = tmp_path / f"table.{ending}"
    if ending == "csv":
        csv_of(tmp_path, "time,lon,lat", LINE.partition(",")[2])
    else:
        save(make_frame().drop(columns="user"), path)
    assert "pass user=None" in refused(path)
    found = pg.read_table(path, user=None, as_traces=True)
    assert len(found) == 1
    assert "user" not in found.to_frame().columns


def test_two_columns_of_one_name_are_an_error(tmp_path):
    assert "several columns named 'user'" in refused(csv_of(tmp_path, "user,user,time,lon,lat", f"a,{LINE}"))


def test_x_and_y_need_a_crs(tmp_path):
    path = csv_of(tmp_path, "user,time,x,y", "zaphod,2008-05-17T10:00:04Z,500000,5000000")
    assert "say in which CRS, as in crs='EPSG:32631'" in refused(path)
    found = pg.read_table(path, crs="EPSG:32631")
    assert found.crs == "EPSG:32631"
    assert (found.geometry.x[0], found.geometry.y[0]) == (500_000, 5_000_000)
    assert "must be a coordinate reference system" in refused(path, crs="EPSG:0")


def test_longitude_and_latitude_may_be_of_another_crs(tmp_path):
    assert pg.read_table(csv_of(tmp_path, HEADER, LINE), crs=4267).crs == "EPSG:4267"


def test_records_are_put_in_the_order_of_traces(tmp_path):
    lines = LATER, LINE.replace("zaphod", "arthur"), LINE
    found = pg.read_table(csv_of(tmp_path, HEADER, *lines))
    assert found["user"].tolist() == ["arthur", "zaphod", "zaphod"]
    assert found["time"].is_monotonic_increasing


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_other_columns_are_ignored(ending, tmp_path):
    path = tmp_path / f"table.{ending}"
    save(make_frame(speed=[1.0, 2.0, 3.0, 4.0], note=list("abcd")), path)
    assert_as_made(pg.read_table(path))


@pytest.mark.parametrize("ending", ["csv", "parquet", "gpkg", "geojson"])
def test_the_content_tells_the_format_whatever_the_name(ending, tmp_path):
    made, path = tmp_path / f"made.{ending}", tmp_path / "new_table.dat"
    pg.write(make_frame(), made)
    made.rename(path)
    assert guess_format(path) == "table"
    assert_as_made(pg.read_file(path).to_frame())


# Times and users of a CSV.


@pytest.mark.parametrize(
    ("texts", "wanted", "zone"),
    [
        (["2008-05-17T10:00:04Z"], ["2008-05-17 10:00:04"], "UTC"),
        (["2008-05-17 12:00:04+02:00"], ["2008-05-17 10:00:04"], "UTC"),
        (["2008-05-17T12:00:04.25+0200"], ["2008-05-17 10:00:04.25"], "UTC"),
        (["2008-03-30T01:30:00+01:00", "2008-03-30T03:30:00+02:00"], ["2008-03-30 00:30", "2008-03-30 01:30"], "UTC"),
        (["2008-05-17T10:00:04"], ["2008-05-17 10:00:04"], None),
        (["2008-05-17 10:00"], ["2008-05-17 10:00"], None),
        (["2008-05-17T10:00:04", "2008-05-17 10:00:05.5"], ["2008-05-17 10:00:04", "2008-05-17 10:00:05.5"], None),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "geojson"])
def test_times_are_iso_8601_with_a_zone_or_without(texts, wanted, zone, ending, tmp_path):
    if ending == "csv":
        path = csv_of(tmp_path, HEADER, *(f"zaphod,{text},-122.39488,37.75134" for text in texts))
    else:
        path = geojson_of(tmp_path, *({"user": "zaphod", "time": text} for text in texts))
    found = pd.DatetimeIndex(pg.read_table(path)["time"])
    assert str(found.tz) == str(zone)
    assert found.tz_localize(None).as_unit("ns").equals(pd.DatetimeIndex(wanted).as_unit("ns"))


def geojson_of(tmp_path, *records, geometry=None):
    point = {"type": "Point", "coordinates": [-122.39488, 37.75134]}
    features = [{"type": "Feature", "properties": record, "geometry": geometry or point} for record in records]
    path = tmp_path / "table.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["17.5.2008 10:00"], "holds texts that are no times such as 2008-05-17T10:00:04Z"),
        (["2008-05-17T10:00:04Z", "2008-05-17T10:00:05"], "mixes times with and without a zone"),
        (["zaphod"], "holds texts that are no times"),
        (["10:00:04"], "must hold datetimes|holds texts that are no times"),
    ],
)
def test_other_times_are_refused(texts, words, tmp_path):
    path = csv_of(tmp_path, HEADER, *(f"zaphod,{text},-122.39488,37.75134" for text in texts))
    assert re.search(words, refused(path))


def test_users_are_integers_only_where_nothing_is_lost(tmp_path):
    def users(*keys):
        lines = [f"{key},2008-05-17T10:00:04Z,-122.39488,37.75134" for key in keys]
        return pg.read_table(csv_of(tmp_path, HEADER, *lines))["user"].tolist()

    assert users(10, 9, -3) == [-3, 9, 10]
    assert users("017", "18") == ["017", "18"]
    assert users("9" * 25) == ["9" * 25]
    assert users("1.0") == ["1.0"]
    assert users("NA", "null", '""') == ["", "NA", "null"]


# Points of GeoParquet.


def parquet_of(tmp_path, geometry, **metadata):
    """A GeoParquet file whose geometry is replaced."""
    make_frame().to_parquet(tmp_path / "made.parquet")
    table = pq.read_table(tmp_path / "made.parquet")
    kept = table.schema.metadata | {key.encode(): value for key, value in metadata.items()}
    table = table.set_column(table.column_names.index("geometry"), "geometry", geometry(table["geometry"]))
    pq.write_table(table.replace_schema_metadata(kept), tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


def as_big_endian(column):
    return pa.array([shapely.to_wkb(shapely.from_wkb(point), byte_order=0) for point in column.to_pylist()])


def as_mixed_endian(column):
    return pa.array([*as_big_endian(column).to_pylist()[:2], *column.to_pylist()[2:]])


BYTES = {
    "as they are": lambda column: column,
    "large": lambda column: column.cast(pa.large_binary()),
    "large, in pieces": lambda column: pa.chunked_array(
        [column.cast(pa.large_binary()).combine_chunks()[:1], column.cast(pa.large_binary()).combine_chunks()[1:]]
    ),
    "of fixed size": lambda column: column.cast(pa.binary(21)),
    "views": lambda column: column.cast(pa.binary_view()),
    "big endian": as_big_endian,
    "of both ends": as_mixed_endian,
}


@pytest.mark.parametrize("kind", BYTES)
def test_well_known_binary_is_read_in_every_shape(kind, tmp_path):
    assert_as_made(pg.read_table(parquet_of(tmp_path, BYTES[kind])))


def test_native_points_are_read(tmp_path):
    make_frame().to_parquet(tmp_path / "table.parquet", geometry_encoding="geoarrow")
    assert_as_made(pg.read_table(tmp_path / "table.parquet"))


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_elevations_are_left_out_and_said(ending, tmp_path):
    frame, path = make_frame(), tmp_path / f"table.{ending}"
    frame.geometry = gpd.points_from_xy(frame.geometry.x, frame.geometry.y, [1, 2, 3, 4])
    save(frame, path)
    with pytest.warns(UserWarning, match=r"^The elevations \(Z\) were dropped"):
        found = pg.read_table(path)
    assert_as_made(found)


@pytest.mark.parametrize("geometry", [None, shapely.Point(), shapely.LineString([(0, 0), (1, 1)])])
@pytest.mark.parametrize("ending", ["parquet", "gpkg"])
def test_records_without_a_point_are_counted(geometry, ending, tmp_path):
    frame, path = make_frame(), tmp_path / f"table.{ending}"
    places = np.array(frame.geometry, dtype=object)
    places[2] = geometry
    save(frame.set_geometry(gpd.GeoSeries(places, crs=4326)), path)
    said = refused(path)
    assert "1 record of 4 cannot be used (rows are counted from 0)" in said
    assert "first in row 2" in said


@pytest.mark.parametrize("rows", [0, 1])
def test_few_or_no_records_are_a_table_as_well(rows, tmp_path):
    make_frame().iloc[:rows].to_parquet(tmp_path / "table.parquet")
    assert len(pg.read_table(tmp_path / "table.parquet")) == rows
    assert len(pg.read_table(csv_of(tmp_path, HEADER, *[LINE] * rows))) == rows


def test_categories_and_dictionaries_are_users(tmp_path):
    frame = make_frame()
    frame["user"] = frame["user"].astype("category")
    frame.to_parquet(tmp_path / "table.parquet")
    assert pg.read_table(tmp_path / "table.parquet")["user"].tolist() == ["trillian"] * 2 + ["zaphod"] * 2


def test_a_geoparquet_index_of_times_is_found_by_its_name(tmp_path):
    make_frame().set_index("time").to_parquet(tmp_path / "table.parquet")
    assert_as_made(pg.read_table(tmp_path / "table.parquet"))


def test_geoparquet_without_crs_is_longitude_and_latitude(tmp_path):
    about = {"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Point"]}}}
    found = pg.read_table(parquet_of(tmp_path, BYTES["as they are"], geo=json.dumps(about).encode()))
    assert found.crs == "OGC:CRS84"


# Files that are something else.


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ('{"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "crs": null}}}', "CRS is unknown"),
        ("{cut", "metadata cannot be read"),
        ("[1]", "metadata cannot be read"),
        ('{"columns": {}}', "metadata cannot be read"),
        ('{"primary_column": "geometry", "columns": {"geometry": 3}}', "metadata cannot be read"),
    ],
)
def test_geoparquet_metadata_that_says_too_little_is_an_error(about, words, tmp_path):
    assert words in refused(parquet_of(tmp_path, BYTES["as they are"], geo=about.encode()))


def test_parquet_without_geometry_is_an_error(tmp_path):
    pd.DataFrame(make_frame().drop(columns="geometry")).to_parquet(tmp_path / "table.parquet")
    assert "no GeoParquet metadata" in refused(tmp_path / "table.parquet")


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("table.csv", content)
    return stream.getvalue()


TEXT = f"{HEADER}\n{LINE}\n".encode()
WRONG = {
    "nothing": (b"", "is empty"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 9, "nor text in UTF-8"),
    "a zip archive": (zipped(TEXT), "is a zip archive|zip"),
    "Latin-1 users": (f"{HEADER}\n{LINE.replace('a', 'ä')}\n".encode("latin-1"), "in UTF-8"),
    "text": (b"Dear Ford,\nthe ship is full of towels, and of tea.\n", "names 2 columns|No lon column"),
    "no names": (f"{LINE}\n{LATER}\n".encode(), "first line holds values"),
    "no names, semicolons": (f"{LINE}\n{LATER}\n".replace(",", ";").encode(), "first line holds values"),
    "Cabspotting": (b"37.75134 -122.39488 0 1213084687\n", "first line holds values"),
    "a longer line": (
        TEXT + LATER.encode() + b",5\n",
        "names 4 columns separated by commas, but a line holds 5 values",
    ),
    "an open quote": (TEXT + b'"' + LATER.encode() + b"\n", "separated by commas"),
    "text for a number": (TEXT.replace(b"37.75134", b"37.75134N"), "column 'lat' holds something that is not a number"),
    "swapped coordinates": (f"{HEADER}\nzaphod,2008-05-17T10:00:04Z,37.75134,-122.39488\n".encode(), "swapped?"),
    "no user": (f"{HEADER}\n{LINE[6:]}\n".encode(), "no user: 1, first in row 0"),
    "no place": (f"{HEADER}\nzaphod,2008-05-17T10:00:04Z,,\n".encode(), "coordinate that is not finite: 1"),
    "cut names": (b"user,time,lon,lat", "cannot be read as values separated by commas"),
    "parquet of zeros": (b"PAR1" + bytes(400) + b"PAR1", "cut, damaged or not GeoParquet"),
    "only the head of a GeoPackage": (
        b"SQLite format 3\0" + bytes(2_000),
        "cut, damaged or not a GeoPackage|is cut or damaged",
    ),
    "other JSON": (b'{"user": "zaphod", "lon": -122.39488}', "cut, damaged or not GeoJSON|is cut or damaged"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_named_with_the_reason(kind, tmp_path):
    content, words = WRONG[kind]
    (tmp_path / "table.csv").write_bytes(content)
    assert re.search(words, refused(tmp_path / "table.csv"))


@pytest.mark.parametrize("part", [0.03, 0.5, 0.9])
@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_a_cut_file_is_an_error(ending, part, tmp_path):
    path = tmp_path / f"table.{ending}"
    save(make_frame(), path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
    assert re.search("cut, damaged or not|is cut or damaged", refused(path))


def test_polygons_are_no_records(tmp_path):
    ring = [[-122.39488, 37.75134], [-122, 37], [-121, 37], [-122.39488, 37.75134]]
    square = {"type": "Polygon", "coordinates": [ring]}
    said = refused(geojson_of(tmp_path, {"user": "zaphod", "time": "2008-05-17T10:00:04Z"}, geometry=square))
    assert "one that is not a point" in said


def test_an_empty_geojson_has_no_columns(tmp_path):
    assert "No user column was found" in refused(geojson_of(tmp_path))


def test_a_geopackage_has_one_layer_with_a_geometry(tmp_path):
    path = tmp_path / "table.gpkg"
    pyogrio.write_dataframe(pd.DataFrame({"style": ["red"]}), path, layer="styles")
    assert "no layer with a geometry" in refused(path)
    make_frame().to_file(path, layer="traces")
    assert_as_made(pg.read_table(path))
    make_frame().to_file(path, layer="more")
    assert "several layers, and traces are one: 'traces' and 'more'." in refused(path)


def test_a_folder_without_tables_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no file that ends with"):
        pg.read_table(tmp_path)


@pytest.mark.parametrize("reader", [pg.read_table, pg.read_file])
def test_a_file_that_is_not_there_is_named(reader, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv' does not exist"):
        reader(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("length", [30, 200])
def test_a_cut_archive_is_an_error_in_our_words(length, tmp_path):
    with tarfile.open(tmp_path / "whole.tar.gz", "w:gz") as archive:
        content = b"37.75134 -122.39488 0 1213084687\n" * 9_000
        member = tarfile.TarInfo("cabspottingdata/new_abboip.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    (tmp_path / "cut.tar.gz").write_bytes((tmp_path / "whole.tar.gz").read_bytes()[:length])
    with pytest.raises(ValueError, match=r"cut\.tar\.gz' is (neither an archive|cut)"):
        pg.read_file(tmp_path / "cut.tar.gz")


def test_a_compressed_csv_is_read_by_its_name(tmp_path):
    (tmp_path / "table.csv.gz").write_bytes(gzip.compress(TEXT))
    assert pg.read_file(tmp_path / "table.csv.gz").records == 1


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    assert len(pg.read_table(csv_of(tmp_path, HEADER, LINE, encoding="utf-8-sig"))) == 1


def test_only_known_formats_can_be_named(tmp_path):
    with pytest.raises(ValueError, match=r"'format' parameter of read_file must be one of 'cabspotting', 'geolife'"):
        pg.read_file(csv_of(tmp_path, HEADER, LINE), format="csv")


def test_a_format_that_is_named_is_taken(tmp_path):
    path = csv_of(tmp_path, HEADER, LINE)
    assert pg.read_file(path, format="table").records == 1
    with pytest.raises(ValueError, match="neither an archive nor a file of Cabspotting"):
        pg.read_file(path, format="cabspotting")
