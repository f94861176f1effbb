"""Tables in the many ways in which people write them, each with what comes of it."""

import bz2
import gzip
import io
import json
import re
import time
import warnings
import zipfile

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import shapely
from conftest import ROOT

import promesse_geo as pg
from promesse_geo.io.table import read_table

SAMPLE = ROOT / "data" / "sample" / "table"
HEADER = "user,time,lon,lat"
ROWS = (
    ("ana", "2024-03-04T08:00:00Z", "4.84", "45.75"),
    ("ana", "2024-03-04T08:01:00Z", "4.85", "45.76"),
    ("ben", "2024-03-04T08:00:30Z", "-0.5", "44.8"),
)
LINES = "".join(",".join(row) + "\n" for row in ROWS)
TEXT = f"{HEADER}\n{LINES}"
SECONDS = [1_709_539_200, 1_709_539_260, 1_709_539_230]
TIMES = pd.to_datetime(SECONDS, unit="s", utc=True)
NUMBERS = r"^read_table took the numbers of the time column 'time' as {} since 1970-01-01 UTC\.$"


def written(folder, content, name="table.csv"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def assert_rows(frame, *, users=("ana", "ana", "ben")) -> None:
    """The three rows above, whatever the names of the columns."""
    user, when, place = frame.columns
    assert frame[user].tolist() == list(users)
    found = pd.DatetimeIndex(frame[when])
    assert str(found.tz) == "UTC"
    assert found.as_unit("ns").equals(pd.DatetimeIndex(TIMES).as_unit("ns"))
    np.testing.assert_allclose(frame[place].x, [4.84, 4.85, -0.5], rtol=0, atol=1e-12)
    np.testing.assert_allclose(frame[place].y, [45.75, 45.76, 44.8], rtol=0, atol=1e-12)
    assert frame.crs == "EPSG:4326"


def with_times(*texts, quote="") -> str:
    rows = zip(ROWS, texts, strict=True)
    return f"{HEADER}\n" + "".join(f"{user},{quote}{text}{quote},{lon},{lat}\n" for (user, _, lon, lat), text in rows)


def numbered(factor) -> list:
    return [second * factor for second in SECONDS]


# Ways to write a CSV.

WAYS = {
    "commas": TEXT,
    "CRLF": TEXT.replace("\n", "\r\n"),
    "semicolons": TEXT.replace(",", ";"),
    "tabs": TEXT.replace(",", "\t"),
    "bars": TEXT.replace(",", "|"),
    "semicolons and decimal commas": TEXT.replace(",", ";").replace(".", ","),
    "tabs and decimal commas": TEXT.replace(",", "\t").replace(".", ","),
    "everything quoted": re.sub(r"[^,\n]+", lambda field: f'"{field[0]}"', TEXT),
    "quoted decimal commas": re.sub(r"(-?\d+)\.(\d+)", r'"\1,\2"', TEXT),
    "a byte-order mark": TEXT.encode("utf-8-sig"),
    "UTF-16": TEXT.encode("utf-16"),
    "UTF-16, big end first": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "UTF-16 as a spreadsheet writes it": TEXT.replace(",", "\t").replace("\n", "\r\n").encode("utf-16"),
    "packed by gzip": gzip.compress(TEXT.encode()),
    "packed by bzip2": bz2.compress(TEXT.encode()),
    "UTF-16 packed by gzip": gzip.compress(TEXT.encode("utf-16")),
    "empty lines": "\n\n" + TEXT.replace("\n", "\n\n"),
    "capitals": TEXT.replace(HEADER, "User,TIME,Longitude,LAT"),
    "blanks about the names": TEXT.replace(HEADER, "user, time, lon, lat"),
    "names of Movebank": TEXT.replace(HEADER, "individual-local-identifier,timestamp,location-long,location-lat"),
    "an index without a name": "\n".join(f"{i},{line}" for i, line in enumerate(TEXT.splitlines())).replace("0,u", ",u")
    + "\n",
    "text in columns that are not read": TEXT.replace("\n", ",é; ok\n")
    .replace("lat,é; ok", "lat,note")
    .encode("cp1252"),
    "offsets from UTC": with_times("2024-03-04 08:00:00+00:00", "2024-03-04 09:01+01:00", "2024-03-04T03:00:30-05:00"),
    "fractions": with_times("2024-03-04T08:00:00.0Z", "2024-03-04T08:01:00.000000000Z", "2024-03-04T08:00:30.00Z"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_table_is_read_however_it_is_written(way, tmp_path):
    assert_rows(read_table(written(tmp_path, WAYS[way])))


@pytest.mark.parametrize("way", ["commas", "UTF-16", "packed by gzip", "semicolons and decimal commas"])
def test_the_ending_of_the_name_says_nothing(way, tmp_path):
    assert_rows(read_table(written(tmp_path, WAYS[way], "table.parquet")))


SAMPLES = sorted(file for file in SAMPLE.glob("*.*") if file.suffix != ".py")


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.name)
def test_the_samples_hold_the_same_records(file):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="read_table took the numbers")
        traces = read_table(file, as_traces=True)
        wanted = read_table(SAMPLE / "commas.csv", as_traces=True)
    assert traces.users.tolist() == wanted.users.tolist() == ["ana", "ben", "eve"]
    assert np.array_equal(traces.times, wanted.times)
    np.testing.assert_allclose(traces.coordinates(), wanted.coordinates(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("ending", ["parquet", "gpkg", "csv", "geojson"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", None])
def test_what_we_write_is_read_back(ending, zone, tmp_path):
    frame = pg.make_city(users=4, days=1, seed=3)
    frame["time"] = (frame["time"].dt.tz_convert("UTC") + pd.Timedelta("123ms")).dt.tz_convert(zone)
    made = pg.Traces.from_frame(frame)
    pg.write(made, tmp_path / f"city.{ending}")
    back = read_table(tmp_path / f"city.{ending}", as_traces=True)
    assert back.users.tolist() == made.users.tolist()
    assert np.array_equal(back.offsets, made.offsets)
    assert np.array_equal(back.times, made.times)
    np.testing.assert_allclose(back.coordinates(), made.coordinates(), rtol=0, atol=1e-9)


# Times.


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize(
    ("word", "numbers"),
    [
        ("seconds", numbered(1)),
        ("seconds", numbered(1.0)),
        ("milliseconds", numbered(10**3)),
        ("microseconds", numbered(10**6)),
        ("nanoseconds", numbered(10**9)),
    ],
)
def test_numbers_are_times_by_their_size_and_that_is_said(word, numbers, quote, tmp_path):
    with pytest.warns(UserWarning, match=NUMBERS.format(word)) as said:
        assert_rows(read_table(written(tmp_path, with_times(*numbers, quote=quote))))
    assert len(said) == 1


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
@pytest.mark.parametrize("ending", ["parquet", "geojson"])
def test_numbers_are_times_in_other_formats_too(kind, ending, tmp_path):
    path = tmp_path / f"table.{ending}"
    frame = as_frame().assign(time=pa.array(SECONDS).cast(kind).to_pandas())
    frame.to_parquet(path) if ending == "parquet" else frame.to_file(path)
    with pytest.warns(UserWarning, match=NUMBERS.format("seconds")):
        assert_rows(read_table(path))


def test_fractions_of_a_second_are_kept(tmp_path):
    numbers = [f"{second}.250001" for second in SECONDS]
    with pytest.warns(UserWarning, match="as seconds"):
        frame = read_table(written(tmp_path, with_times(*numbers)))
    assert set(frame["time"].dt.microsecond) == {250_001}


def test_nanoseconds_are_kept(tmp_path):
    numbers = [number + 7 for number in numbered(10**9)]
    with pytest.warns(UserWarning, match="as nanoseconds"):
        traces = read_table(written(tmp_path, with_times(*numbers)), as_traces=True)
    assert set(traces.times % 1000) == {7}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("0", "60", "30"), "holds numbers that are no seconds, milliseconds"),
        (("20240304080000", "20240304080100", "20240304080030"), "holds numbers that are no seconds, milliseconds"),
        (("45355.3", "45355.4", "45355.5"), "holds numbers that are no seconds, milliseconds"),
        (("-5", "-6", "-7"), "holds numbers that are no seconds, milliseconds"),
        (("04/03/2024 08:00", "04/03/2024 08:01", "04/03/2024 08:02"), "no times such as 2008-05-17T10:00:04Z"),
        (("noon", "noon", "noon"), "no times such as 2008-05-17T10:00:04Z"),
        (("2024-03-04T08:00:00Z", "2024-03-04T08:01:00", "2024-03-04T08:00:30Z"), "with and without a zone"),
        (("08:00:00", "08:01:00", "08:00:30"), "must hold datetimes. It holds values of the kind 'time32"),
        (("2024-03-04", "2024-03-04", "2024-03-04"), "must hold datetimes. It holds values of the kind 'date32"),
        (("true", "true", "false"), "must hold datetimes. It holds values of the kind 'bool'"),
    ],
)
def test_other_times_are_refused(texts, words, tmp_path):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        read_table(written(tmp_path, with_times(*texts)))
    assert "table.csv" in str(caught.value)


@pytest.mark.parametrize(
    "word",
    [
        "",
        "NA",
        "NaN",
        "null",
        "NULL",
        r"\N",
        "noon",
        "2024-13-45T99:00:00Z",
        "0024-03-04T08:00:00Z",
        "2300-03-04T08:00:00Z",
    ],
)
def test_a_missing_time_is_counted(word, tmp_path):
    path = written(tmp_path, with_times(ROWS[0][1], word, ROWS[2][1]))
    if word == "noon":  # a text without a zone
        path = written(tmp_path, with_times(ROWS[0][1][:-1], word, ROWS[2][1][:-1]))
    with pytest.raises(
        ValueError, match=r"1 record of 3 cannot be used .* no time, or one that cannot be read: 1, first in row 1 of"
    ):
        read_table(path)
    with pytest.warns(
        UserWarning, match=r"^read_table dropped 1 record \(no time, or one that cannot be read; first at row 1"
    ):
        assert len(read_table(path, errors="skip")) == 2


@pytest.mark.parametrize("word", ["", "NA", "null", r"\N", "0", "99"])
def test_a_missing_number_among_times_is_counted(word, tmp_path):
    path = written(tmp_path, with_times(SECONDS[0], word, SECONDS[2]))
    with pytest.raises(ValueError, match=r"no time, or one that cannot be read: 1, first in row 1 of"):
        read_table(path)


def test_times_backward_and_equal_are_put_in_order(tmp_path):
    path = written(
        tmp_path, f"{HEADER}\n" + "".join(f"a,2024-03-04T08:00:0{s}Z,{i},45\n" for i, s in enumerate([2, 1, 2, 1]))
    )
    assert read_table(path).geometry.x.tolist() == [1, 3, 0, 2]


# Records that cannot be used.


@pytest.mark.parametrize("word", ["", "NaN", "nan", "NA", "null", r"\N", "inf"])
def test_a_missing_coordinate_is_counted(word, tmp_path):
    path = written(tmp_path, TEXT.replace("4.85", word))
    with pytest.raises(ValueError, match=r"1 record of 3 .* or a coordinate that is not finite: 1, first in row 1 of"):
        read_table(path)
    with pytest.warns(
        UserWarning,
        match=r"dropped 1 record \(a missing or empty geometry.*first at row 1 of '.*table\.csv', counted from 0\)",
    ):
        assert len(read_table(path, errors="skip")) == 2


def test_all_complaints_come_at_once(tmp_path):
    moment = "2024-03-04T08:00:00Z"
    bad = f"cid,{moment},45,95\n,{moment},4,45\ndan,,4,45\neve,{moment},,45\nfay,,4,45\n"
    path = written(tmp_path, TEXT + bad)
    with pytest.raises(ValueError, match=r"^'.*table\.csv': 5 records of 8 cannot be used") as caught:
        read_table(path)
    said = str(caught.value)
    for words in (
        "not finite: 1, first in row 6",
        "swapped?): 1, first in row 3",
        "time, or one that cannot be read: 2, first in row 5",
    ):
        assert words in said
    assert "no user: 1, first in row 4" in said
    assert "errors='skip' (--skip)" in said
    with pytest.warns(UserWarning, match="^read_table dropped ") as warned:
        assert_rows(read_table(path, errors="skip"))
    assert len(warned) == 1


def test_lines_with_too_few_values_are_skipped_and_counted(tmp_path):
    path = written(tmp_path, TEXT + "cid,2024-03-04T08:0\n")
    with pytest.raises(ValueError, match=r"names 4 columns separated by commas, but a line holds 2 values \(line 5, "):
        read_table(path)
    with pytest.warns(UserWarning, match=r"1 record \(a line with too few or too many values; first at line 5 of '"):
        assert_rows(read_table(path, errors="skip"))


def test_lines_that_do_not_fit_and_are_no_utf_8_are_an_error(tmp_path):
    path = written(tmp_path, (TEXT + "zoé,1\n").encode("latin-1"))
    with pytest.raises(ValueError, match="cannot be read as values separated by commas, in UTF-8"):
        read_table(path, errors="skip")


def test_lines_that_all_differ_from_the_names_are_an_error(tmp_path):
    path = written(tmp_path, HEADER + "\n" + LINES.replace("\n", ",1\n"))
    for errors in ("raise", "skip"):
        with pytest.raises(ValueError, match="names 4 columns separated by commas, but a line holds 5 values"):
            read_table(path, errors=errors)


@pytest.mark.parametrize("way", ["commas", "semicolons and decimal commas", "UTF-16"])
@pytest.mark.parametrize("word", ["north", "45°46'", "4.57.6", "4,57,6", "1.234,5", "--"])
def test_what_is_no_number_is_told_or_counted(word, way, tmp_path):
    rows = LINES + f'cid,2024-03-04T08:00:00Z,4,"{word}"\n'
    if way != "commas":
        rows = rows.replace(f',"{word}"', ";\0").replace(",", ";").replace(".", ",").replace("\0", f'"{word}"')
    header = HEADER if way == "commas" else HEADER.replace(",", ";")
    path = written(tmp_path, f"{header}\n{rows}".encode("utf-16" if way == "UTF-16" else "utf-8"))
    with pytest.raises(
        ValueError,
        match=r"table\.csv': the column 'lat' holds something that is not a number, first in row 3, counted from 0\.$",
    ):
        read_table(path)
    with pytest.warns(UserWarning, match="dropped 1 record .*not finite; first at row 3 of"):
        assert_rows(read_table(path, errors="skip"))


@pytest.mark.parametrize("number", [" 4.84", "4.84 ", "+4.84", " +4.84 "])
def test_a_bad_number_spoils_no_other_one(number, tmp_path):
    rows = LINES.replace("4.84", number, 1)
    assert number in rows
    assert_rows(read_table(written(tmp_path, f"{HEADER}\n{rows}")))
    path = written(tmp_path, f"{HEADER}\n{rows}cid,2024-03-04T08:00:00Z, -- ,45\ncid,2024-03-04T08:00:00Z, NA ,45\n")
    with pytest.warns(UserWarning, match="dropped 2 records .*not finite; first at row 3 of"):
        assert_rows(read_table(path, errors="skip"))


def test_both_decimal_signs_are_told(tmp_path):
    path = written(tmp_path, TEXT.replace(",", ";").replace("45.76", "45,76"))
    with pytest.raises(
        ValueError, match=r"the column 'lat' holds something that is not a number, first in row 1, counted"
    ):
        read_table(path)


def test_words_for_all_numbers_are_an_error(tmp_path):
    path = written(tmp_path, re.sub(r"4.\.\d+\n", "north\n", TEXT))
    for errors in ("raise", "skip"):
        with pytest.raises(
            ValueError, match=r"the column 'lat' holds something that is not a number, first in row 0, counted from 0\."
        ):
            read_table(path, errors=errors)


# Columns.


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (
            "who,time,lon,lat",
            "No user column was found. Looked for 'uid'.*as in user='…' .* If all is a single ",
        ),
        (
            "who,time,lon,lat",
            "trace, pass user=None (--one-trace). If each file is a user, pass user='file' (--user file).",
        ),
        ("user,when,lon,lat", "No time column was found."),
        ("user,time,east,lat", "No lon column was found."),
        ("user,time,lon,north", "No lat column was found."),
        ("lon,time,Lat,lat", "There are several columns named 'lat'"),
        ("UID,user_id,lon,lat", "Several columns could hold the user: 'uid' and 'user_id'. Specify which"),
        ("user,time,time,lat,lon", "There are several columns named 'time'"),
        ("user,time,x,y", "say in which CRS"),
        ("user,time,X,Y", "say in which CRS"),
    ],
)
def test_columns_are_not_guessed(header, words, tmp_path):
    pattern = re.escape(words).replace(r"\.\*", ".*")
    with pytest.raises(ValueError, match=pattern) as caught:
        read_table(written(tmp_path, f"{header}\n{LINES}"))
    assert "table.csv" in str(caught.value)


def test_a_name_is_given_as_it_stands(tmp_path):
    path = written(tmp_path, TEXT.replace(HEADER, "Who,When,East,North"))
    assert_rows(read_table(path, user="Who", time="When", lon="East", lat="North"))
    with pytest.raises(KeyError, match="user column 'who' does not exist"):
        read_table(path, user="who", time="When", lon="East", lat="North")


def test_users_are_integers_where_all_files_say_so(tmp_path):
    one = written(tmp_path, TEXT.replace("ana", "1").replace("ben", "2"), "a.csv")
    two = written(tmp_path, TEXT.replace("ana", "03").replace("ben", "2"), "b.csv")
    assert read_table(one, as_traces=True).users.tolist() == [1, 2]
    assert read_table([one, two], as_traces=True).users.tolist() == ["03", "1", "2"]


# Other files under the name of a table.


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return packed.getvalue()


def parquet_bytes() -> bytes:
    packed = io.BytesIO()
    as_frame().to_parquet(packed)
    return packed.getvalue()


def as_frame() -> gpd.GeoDataFrame:
    users, _, lon, lat = zip(*ROWS, strict=True)
    points = gpd.points_from_xy(np.array(lon, float), np.array(lat, float))
    return gpd.GeoDataFrame({"user": users, "time": TIMES}, geometry=points, crs=4326)


NO_HEADER = "No {} column was found: the first line names none of its {} as user, time, lon or lat"
JSON = "it holds JSON, but not as GeoJSON in UTF-8, unpacked"
FEATURE = {"type": "Feature", "properties": {"user": "zoé"}, "geometry": {"type": "Point", "coordinates": [4.8, 45.7]}}
FEATURES = json.dumps({"type": "FeatureCollection", "features": [FEATURE] * 3})


STRANGE = {
    "nothing": (b"", "is empty"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "nor text in UTF-8 or UTF-16"),
    "a workbook": (zipped(), "is a zip archive"),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "is an Excel workbook"),
    "GPX": (b"<?xml version='1.0'?><gpx/>", r"is XML, not a table\. Read it with read_gpx"),
    "HTML": (b"<html><body>Not found</body></html>", r"is XML, not a table\.$"),
    "cut gzip": (gzip.compress(TEXT.encode() * 500)[:90], "it is compressed with gzip, and cut or damaged"),
    "cut bzip2": (bz2.compress(TEXT.encode() * 500)[:90], "it is compressed with bz2, and cut or damaged"),
    "cut Parquet": (parquet_bytes()[:-40], "is cut, damaged or not GeoParquet"),
    "another picture packed": (gzip.compress(b"\x89PNG" + bytes(99)), "nor text in UTF-8 or UTF-16"),
    "no names": (LINES, "its first line holds values, not the names of columns"),
    "no names, semicolons": (LINES.replace(",", ";"), "its first line holds values, not the names of columns"),
    "no names, whole numbers": ("zoé,1709539200,48,457\n" * 3, NO_HEADER.format("lon", "4 columns")),
    "no names, a user called as a column": ("t,1709539200,48,457\n" * 3, NO_HEADER.format("lon", "4 columns")),
    "no names, points as text": ("zoé;POINT (4.8 45.7);1709539200\n" * 3, NO_HEADER.format("lon", "3 columns")),
    "no names, exponents": ("zoé,2024-03-04,48e-1,457e-1\n" * 3, NO_HEADER.format("lon", "4 columns")),
    "no names, letters": ("zoé,2024-03-04,E4,N45 7\n" * 3, NO_HEADER.format("lon", "4 columns")),
    "no names, degrees": ("zoé,2024-03-04,4° 48' E,45° 7' N\n" * 3, NO_HEADER.format("lon", "4 columns")),
    "no names that are known": ("zoé,457\n", NO_HEADER.format("lon", "2 columns")),
    "an array of objects": (json.dumps([{"user": "zoé", "lat": 45.7}] * 3), JSON),
    "an array of objects, packed": (gzip.compress(json.dumps([{"user": "zoé", "lat": 45.7}] * 3).encode()), JSON),
    "an array of arrays": (json.dumps([["zoé", 1709539200, "457"]] * 3), NO_HEADER.format("lon", "9 columns")),
    "GeoJSON in UTF-16": (FEATURES.encode("utf-16"), JSON),
    "GeoJSON packed": (gzip.compress(FEATURES.encode()), JSON),
    "a sequence without times": (f"\x1e{json.dumps(FEATURE)}\n" * 3, "No time column was found"),
    "UTF-16 without a mark": (TEXT.encode("utf-16-le"), "nor text in UTF-8 or UTF-16"),
    "users in Latin-1": (TEXT.replace("ana", "zoé").encode("latin-1"), "values separated by commas, in UTF-8"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_strange_file_is_named_with_the_reason(kind, tmp_path):
    content, words = STRANGE[kind]
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=words) as caught:
        read_table(path)
    said = str(caught.value)
    assert repr(str(path)) in said
    assert not re.search(r"45[.,]?7|48|zo.|2024|17095", said.replace(str(path), ""))


@pytest.mark.parametrize("kind", STRANGE)
def test_a_strange_file_is_skipped_and_counted(kind, tmp_path):
    written(tmp_path, STRANGE[kind][0], "strange.csv")
    written(tmp_path, TEXT, "table.csv")
    with pytest.warns(UserWarning, match=r"^read_table dropped 1 file \(first: .*strange\.csv") as said:
        assert_rows(read_table(tmp_path, errors="skip"))
    assert len(said) == 1


def test_parquet_is_read_by_its_content(tmp_path):
    assert_rows(read_table(written(tmp_path, parquet_bytes())))


@pytest.mark.parametrize("text", [HEADER + "\n", f"{HEADER}\r\n"])
def test_only_a_header_is_a_table_without_records(text, tmp_path):
    frame = read_table(written(tmp_path, text))
    assert (len(frame), list(frame.columns)) == (0, ["user", "time", "geometry"])


@pytest.mark.parametrize("text", ["\n\n", "\ufeff\n", " \n \n"])
def test_an_empty_table_is_called_so(text, tmp_path):
    with pytest.raises(ValueError, match=r"table\.csv': it is empty\."):
        read_table(written(tmp_path, text))


# Parquet, GeoPackage and GeoJSON.


def columns_of_numbers() -> pa.Table:
    users, _, lon, lat = zip(*ROWS, strict=True)
    numbers = {"longitude": pa.array(map(float, lon)), "latitude": pa.array(map(float, lat))}
    return pa.table({"uid": users, "datetime": pa.array(TIMES), "note": ["a", "b", "c"]} | numbers)


def test_parquet_without_metadata_is_read_by_its_coordinates(tmp_path):
    pq.write_table(columns_of_numbers(), tmp_path / "table.parquet")
    assert_rows(read_table(tmp_path / "table.parquet"))


def test_the_crs_of_coordinates_can_be_given(tmp_path):
    meters = as_frame().to_crs(3857)
    table = pa.table({"user": meters["user"], "time": meters["time"], "x": meters.geometry.x, "y": meters.geometry.y})
    pq.write_table(table, tmp_path / "table.parquet")
    frame = read_table(tmp_path / "table.parquet", crs=3857)
    assert frame.crs == "EPSG:3857"
    np.testing.assert_allclose(frame.geometry.x, meters.geometry.x, rtol=0, atol=1e-6)


def test_well_known_binary_without_metadata_needs_a_crs(tmp_path):
    frame = as_frame()
    table = pa.table({"user": frame["user"], "time": frame["time"], "geometry": shapely.to_wkb(frame.geometry)})
    pq.write_table(table, tmp_path / "table.parquet")
    with pytest.raises(ValueError, match=r"the CRS of 'geometry' is unknown\. Say it, as in crs="):
        read_table(tmp_path / "table.parquet")
    assert_rows(read_table(tmp_path / "table.parquet", crs=4326))


@pytest.mark.parametrize("points", ["structures", "pairs", "triples"])
def test_points_of_geoarrow_are_read(points, tmp_path):
    x, y = as_frame().geometry.x, as_frame().geometry.y
    places = {
        "structures": lambda: pa.StructArray.from_arrays([pa.array(x), pa.array(y)], ["x", "y"]),
        "pairs": lambda: pa.FixedSizeListArray.from_arrays(np.column_stack([x, y]).ravel(), 2),
        "triples": lambda: pa.FixedSizeListArray.from_arrays(np.column_stack([x, y, x]).ravel(), 3),
    }[points]()
    about = {"ARROW:extension:name": "geoarrow.point", "ARROW:extension:metadata": json.dumps({"crs": "EPSG:4326"})}
    fields = [pa.field("user", pa.string()), pa.field("time", pa.timestamp("s", "UTC"))]
    schema = pa.schema([*fields, pa.field("place", places.type, metadata=about)])
    whole = pa.table([pa.array(as_frame()["user"]), pa.array(TIMES).cast(fields[1].type), places], schema=schema)
    pq.write_table(whole, tmp_path / "table.parquet")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert_rows(read_table(tmp_path / "table.parquet"))
    assert [str(one.message)[:18] for one in said] == (["The elevations (Z)"] if points == "triples" else [])


@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
def test_missing_points_are_counted(encoding, tmp_path):
    frame = as_frame()
    frame.geometry = [frame.geometry[0], None, shapely.Point()]
    frame.to_parquet(tmp_path / "table.parquet", geometry_encoding=encoding)
    with pytest.raises(ValueError, match=r"2 records of 3 cannot be used .* first in row 1 of"):
        read_table(tmp_path / "table.parquet")


def test_missing_users_of_integers_are_counted(tmp_path):
    as_frame().assign(user=pd.array([1, None, 2], "Int64")).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ValueError, match="no user: 1, first in row 1"):
        read_table(tmp_path / "table.parquet")
    with pytest.warns(UserWarning, match=r"1 record \(no user; first at row 1"):
        assert read_table(tmp_path / "table.parquet", errors="skip")["user"].tolist() == [1, 2]


@pytest.mark.parametrize("column", ["uid", "datetime"])
def test_columns_of_a_dictionary_are_read(column, tmp_path):
    table = columns_of_numbers()
    values = table[column].cast(pa.string()) if column == "uid" else table[column]
    table = table.set_column(table.column_names.index(column), column, values.dictionary_encode())
    pq.write_table(table, tmp_path / "table.parquet")
    assert_rows(read_table(tmp_path / "table.parquet"))


@pytest.mark.parametrize("users", [[1.5, 2.5, 3.5], [True, False, True], [b"a", b"b", b"c"], [["a"], ["b"], []]])
def test_users_of_other_kinds_are_refused_by_the_file(users, tmp_path):
    table = columns_of_numbers()
    pq.write_table(table.set_column(0, "uid", pa.array(users)), tmp_path / "table.parquet")
    with pytest.raises(TypeError, match=r"table\.parquet': the user column 'uid' must hold text or integers.*as text"):
        read_table(tmp_path / "table.parquet")


def test_a_file_that_says_its_crs_needs_none(tmp_path):
    as_frame().to_parquet(tmp_path / "table.parquet")
    assert_rows(read_table(tmp_path / "table.parquet", crs="OGC:CRS84"))
    with pytest.raises(ValueError, match="the file says its CRS itself"):
        read_table(tmp_path / "table.parquet", crs=2154)


@pytest.mark.parametrize("ending", ["parquet", "gpkg"])
def test_an_unknown_crs_can_be_given(ending, tmp_path):
    frame, path = as_frame().set_crs(None, allow_override=True), tmp_path / f"table.{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # GeoPandas warns too
        frame.to_parquet(path) if ending == "parquet" else frame.to_file(path)
    with pytest.raises(ValueError, match="its CRS is unknown"):
        read_table(path)
    assert_rows(read_table(path, crs=4326))


def test_a_layer_can_be_named(tmp_path):
    path = tmp_path / "table.gpkg"
    for layer in ("monday", "tuesday"):
        as_frame().to_file(path, layer=layer)
    with pytest.raises(ValueError, match=r"several layers, .*'monday' and 'tuesday'\. Name it, as in layer='monday'"):
        read_table(path)
    with pytest.raises(ValueError, match=r"no layer 'friday' with a geometry\. There are 'monday' and 'tuesday'"):
        read_table(path, layer="friday")
    assert_rows(read_table(path, layer="tuesday"))


# Several files.


def make_files(folder):
    """The three rows in one file for each user, in folders for each user; and what is no table."""
    for user in ("ana", "ben"):
        lines = "".join(",".join(row[1:]) + "\n" for row in ROWS if row[0] == user)
        written(folder, "time,lon,lat\n" + lines, f"{user}/{user}.csv")
    written(folder, "Dear reader", "README.txt")
    written(folder, "user,time,lon,lat", ".hidden/x.csv")
    return folder


@pytest.mark.parametrize("user", ["file", "folder"])
def test_the_user_may_be_the_file_or_the_folder(user, tmp_path):
    folder = make_files(tmp_path)
    assert_rows(read_table(folder, user=user))
    assert_rows(read_table(str(folder / "*" / "*.csv"), user=user))
    assert_rows(read_table([folder / "ben" / "ben.csv", folder / "ana"], user=user))
    assert read_table(folder, user=user, users=["ben"])["user"].tolist() == ["ben"]


def test_a_packed_file_is_named_without_its_endings(tmp_path):
    written(tmp_path, gzip.compress(b"time,lon,lat\n2024-03-04T08:00:00Z,4,45\n"), "ana.csv.gz")
    assert read_table(tmp_path, user="file")["user"].tolist() == ["ana"]


def test_files_are_one_trace_where_there_is_no_user(tmp_path):
    traces = read_table(make_files(tmp_path), user=None, as_traces=True)
    assert (len(traces), traces.records) == (1, 3)


def test_files_of_several_formats_are_one_data_set(tmp_path):
    for number, ending in enumerate(("csv", "parquet", "gpkg", "geojson")):
        frame = as_frame().assign(user=[f"{number}{user}" for user in as_frame()["user"]])
        pg.write(frame, tmp_path / f"{number}.{ending}")
    traces = read_table(tmp_path, as_traces=True)
    assert (len(traces), traces.records) == (8, 12)


def test_records_of_one_user_in_several_files_are_in_the_order_of_the_paths(tmp_path):
    for number in (2, 0, 1):
        written(tmp_path, f"{HEADER}\nana,2024-03-04T08:00:00Z,{number},45\n", f"{number}.csv")
    files = [tmp_path / f"{number}.csv" for number in (1, 2, 0)]
    assert read_table(files).geometry.x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("users", [["ana"], ("ana",), {"ana"}, iter(["ana"])])
def test_some_users_are_read_alone(users, tmp_path):
    frame = read_table(written(tmp_path, TEXT), users=users)
    assert frame["user"].tolist() == ["ana", "ana"]


def test_users_of_integers_can_be_asked_for(tmp_path):
    path = written(tmp_path, TEXT.replace("ana", "1").replace("ben", "2"))
    assert read_table(path, users=[2])["user"].tolist() == [2]


@pytest.mark.parametrize(
    ("users", "kind", "words"),
    [
        (["ana", "x", "y"], ValueError, "2 of 3 users not found"),
        ([], ValueError, "empty list"),
        ([3.5], TypeError, "'users' parameter of read_table"),
    ],
)
@pytest.mark.parametrize("user", [..., "file"])
def test_users_that_cannot_be_had_are_an_error(user, users, kind, words, tmp_path):
    source = make_files(tmp_path) if user == "file" else written(tmp_path, TEXT)
    with pytest.raises(kind, match=words):
        read_table(source, user=user, users=users)


def test_a_column_named_as_a_rule_is_not_guessed(tmp_path):
    path = written(tmp_path, TEXT.replace("user", "file"))
    with pytest.raises(ValueError, match=r"there is a column of that name too\. Rename the column"):
        read_table(path, user="file")


def test_files_of_several_crss_are_an_error(tmp_path):
    as_frame().to_parquet(tmp_path / "a.parquet")
    as_frame().to_crs(2154).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="1 file has another CRS than the first one"):
        read_table(tmp_path)


def test_files_with_and_without_zones_are_an_error(tmp_path):
    written(tmp_path, TEXT, "a.csv")
    written(tmp_path, TEXT.replace("Z", ""), "b.csv")
    with pytest.raises(ValueError, match="Some files hold times with a zone, others without"):
        read_table(tmp_path)


def test_a_file_without_records_among_others_changes_nothing(tmp_path):
    written(tmp_path, TEXT.replace("Z", ""), "b.csv")
    written(tmp_path, HEADER + "\n", "a.csv")
    assert read_table(tmp_path)["time"].dt.tz is None


def test_complaints_of_several_files_are_added_up(tmp_path):
    for name in ("a", "b"):
        written(tmp_path, TEXT.replace("4.85", ""), f"{name}.csv")
    with pytest.raises(ValueError, match=r"^2 records of 6 cannot be used .* finite: 2, first in row 1 of '.*a\.csv'"):
        read_table(tmp_path)


def test_two_files_of_one_name_are_not_one_user(tmp_path):
    make_files(tmp_path / "here")
    make_files(tmp_path / "there")
    with pytest.raises(ValueError, match="2 files have the name of another one"):
        read_table(tmp_path, user="file")


def test_where_nothing_can_be_read_skipping_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"None of 1 file could be read\. The first: .*is empty"):
        read_table(written(tmp_path, ""), errors="skip")


def test_errors_are_raised_or_dropped(tmp_path):
    with pytest.raises(ValueError, match="'errors' parameter of read_table must be one of"):
        read_table(written(tmp_path, TEXT), errors="ignore")


def test_a_million_records_are_read_within_seconds(tmp_path):
    count = 1_000_000
    seconds = np.datetime64("2024-01-01", "s") + np.arange(count)
    columns = {
        "user": np.repeat(np.arange(100), count // 100),
        "time": pa.array(np.datetime_as_string(seconds)),
        "lon": np.linspace(4, 5, count),
        "lat": np.linspace(45, 46, count),
    }
    pa.csv.write_csv(pa.table(columns), tmp_path / "table.csv")
    start = time.perf_counter()
    traces = read_table(tmp_path / "table.csv", as_traces=True)
    assert (len(traces), traces.records) == (100, count)
    assert time.perf_counter() - start < 10  # a second or less on a quiet machine


def test_one_time_that_cannot_be_read_is_one_record_without_a_time(tmp_path):
    path = tmp_path / "table.csv"
    rows = ["ana,2024-05-01T08:00:00Z,4.8,45.7", "ana,notatime,4.8,45.7", "ana,2024-05-01T08:00:10Z,4.8,45.7"]
    path.write_text("\n".join(["user,time,lon,lat", *rows, ""]), encoding="utf-8")
    with pytest.raises(ValueError, match="no time, or one that cannot be read: 1"):
        read_table(path)
    with pytest.warns(UserWarning, match=r"1 record .*no time, or one that cannot be read"):
        assert len(read_table(path, errors="skip")) == 2


@pytest.mark.parametrize("ending", [".parquet", ".gpkg", ".geojson"])
def test_a_format_that_cannot_lack_a_header_lists_its_columns(ending, tmp_path):
    frame = pg.make_city(users=1, days=1).rename(columns={"user": "driver_id", "time": "gps_time"})
    pg.write(frame, tmp_path / f"parts{ending}", user="driver_id", time="gps_time")
    with pytest.raises(ValueError, match=r"the columns are .*driver_id.*gps_time") as caught:
        read_table(tmp_path / f"parts{ending}")
    assert "header" not in str(caught.value)
