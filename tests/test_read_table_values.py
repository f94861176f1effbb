"""read_table: notations of times, numbers and users, and values that are invalid."""

import bz2
import gzip
import io
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from tables import HEADER, LINES, ROWS, SECONDS, TEXT, as_frame, assert_rows, csv_of, geojson_of, refused, written

import promesse_geo as pg
from promesse_geo.io.table import read_table

SAMPLE = ROOT / "data" / "sample" / "table"
NUMBERS = "the time column 'time' as {} since 1970"


def with_times(*texts, quote="") -> str:
    rows = zip(ROWS, texts, strict=True)
    return f"{HEADER}\n" + "".join(f"{user},{quote}{text}{quote},{lon},{lat}\n" for (user, _, lon, lat), text in rows)


def numbered(factor) -> list:
    return [second * factor for second in SECONDS]


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
    "UTF-16 without a mark": TEXT.encode("utf-16-le"),
    "UTF-16 without a mark, big end first": TEXT.encode("utf-16-be"),
    "UTF-16 without a mark, packed by gzip": gzip.compress(TEXT.encode("utf-16-le")),
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


@pytest.mark.parametrize(
    "way", ["commas", "UTF-16", "UTF-16 without a mark", "packed by gzip", "semicolons and decimal commas"]
)
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
    frame = pg.make_city(users=4, days=1, seed=3, recorder="phone")
    frame["time"] = (frame["time"].dt.tz_convert("UTC") + pd.Timedelta("123ms")).dt.tz_convert(zone)
    made = pg.Traces.from_frame(frame)
    pg.write(made, tmp_path / f"city.{ending}")
    back = read_table(tmp_path / f"city.{ending}", as_traces=True)
    assert back.users.tolist() == made.users.tolist()
    assert np.array_equal(back.offsets, made.offsets)
    assert np.array_equal(back.times, made.times)
    np.testing.assert_allclose(back.coordinates(), made.coordinates(), rtol=0, atol=1e-9)


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
        path = csv_of(tmp_path, HEADER, *(f"ana,{text},4.84,45.75" for text in texts))
    else:
        path = geojson_of(tmp_path, *({"user": "ana", "time": text} for text in texts))
    found = pd.DatetimeIndex(read_table(path)["time"])
    assert str(found.tz) == str(zone)
    assert found.tz_localize(None).as_unit("ns").equals(pd.DatetimeIndex(wanted).as_unit("ns"))


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
        (("0", "60", "30"), "numbers that are not seconds"),
        (("20240304080000", "20240304080100", "20240304080030"), "numbers that are not seconds"),
        (("45355.3", "45355.4", "45355.5"), "numbers that are not seconds"),
        (("-5", "-6", "-7"), "numbers that are not seconds"),
        (("04/03/2024 08:00", "04/03/2024 08:01", "04/03/2024 08:02"), "no time such as"),
        (("noon", "noon", "noon"), "no time such as"),
        (("2024-03-04T08:00:00Z", "2024-03-04T08:01:00", "2024-03-04T08:00:30Z"), "with and without a zone"),
        (("08:00:00", "08:01:00", "08:00:30"), "without a date"),
        (("2024-03-04", "2024-03-04", "2024-03-04"), "without a time of day"),
        (("true", "true", "false"), "values of the kind 'bool'"),
    ],
)
def test_other_times_are_refused(texts, words, tmp_path):
    assert words in refused(written(tmp_path, with_times(*texts)))


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


@pytest.mark.parametrize("word", ["", "NA", "null", r"\N", "0", "99", "4102444800"])  # the last is in 2100
def test_a_missing_number_among_times_is_counted(word, tmp_path):
    path = written(tmp_path, with_times(SECONDS[0], word, SECONDS[2]))
    with pytest.raises(ValueError, match=r"no time, or one that cannot be read: 1, first in row 1 of"):
        read_table(path)


def test_missing_numbers_among_times_do_not_decide_the_unit(tmp_path):
    path = written(tmp_path, with_times("", SECONDS[1], "0"))
    with pytest.raises(ValueError, match=r"no time, or one that cannot be read: 2, first in row 0 of"):
        read_table(path)


@pytest.mark.parametrize(
    ("first", "last"), [("1990-01-01T00:00:00", "1990-01-01T00:00:01"), ("2099-12-31T23:59:58", "2099-12-31T23:59:59")]
)
@pytest.mark.parametrize("factor", [1, 10**3, 10**6, 10**9])
def test_numbers_are_times_from_1990_to_2099(factor, first, last, tmp_path):
    seconds = np.array([first, last, last], "M8[s]")
    with pytest.warns(UserWarning, match="since 1970"):
        traces = read_table(written(tmp_path, with_times(*(seconds.astype(int) * factor))), as_traces=True)
    assert traces.times.tolist() == seconds.astype("M8[ns]").astype(int).tolist()


@pytest.mark.parametrize("time", ["1989-12-31T23:59:59", "2100-01-01T00:00:00"])
@pytest.mark.parametrize("factor", [1, 10**3])
def test_numbers_before_1990_and_after_2099_are_no_times(factor, time, tmp_path):
    number = int(np.datetime64(time, "s").astype(int)) * factor
    assert "not seconds" in refused(written(tmp_path, with_times(number, number, number)))


def test_times_backward_and_equal_are_put_in_order(tmp_path):
    path = written(
        tmp_path, f"{HEADER}\n" + "".join(f"a,2024-03-04T08:00:0{s}Z,{i},45\n" for i, s in enumerate([2, 1, 2, 1]))
    )
    assert read_table(path).geometry.x.tolist() == [1, 3, 0, 2]


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
    with pytest.raises(ValueError, match=r"names 4 columns separated by commas, but a line holds 2 values \(line 5\)"):
        read_table(path)
    with pytest.warns(UserWarning, match=r"1 record \(a line with too few or too many values; first at line 5 of '"):
        assert_rows(read_table(path, errors="skip"))


def test_lines_that_do_not_fit_and_are_no_utf_8_are_an_error(tmp_path):
    path = written(tmp_path, (TEXT + "zoé,1\n").encode("latin-1"))
    with pytest.raises(ValueError, match="not text in UTF-8"):
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
        match=r"table\.csv': the column 'lat' holds something .*not a number, first in row 3, .*errors='skip'",
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


@pytest.mark.filterwarnings("ignore:.*as programs write missing values")
def test_users_are_integers_only_where_nothing_is_lost(tmp_path):
    def users(*keys):
        lines = [f"{key},2024-03-04T08:00:00Z,4.84,45.75" for key in keys]
        return read_table(csv_of(tmp_path, HEADER, *lines))["user"].tolist()

    assert users(10, 9, -3) == [-3, 9, 10]
    assert users("017", "18") == ["017", "18"]
    assert users("9" * 18) == [10**18 - 1]
    assert users("9" * 19) == ["9" * 19]
    assert users("9" * 25) == ["9" * 25]
    assert users("1.0") == ["1.0"]
    assert users("NA", "null", '""') == ["", "NA", "null"]


def test_users_are_integers_where_all_files_say_so(tmp_path):
    one = written(tmp_path, TEXT.replace("ana", "1").replace("ben", "2"), "a.csv")
    two = written(tmp_path, TEXT.replace("ana", "03").replace("ben", "2").replace("T08", "T09"), "b.csv")
    assert read_table(one, as_traces=True).users.tolist() == [1, 2]
    assert read_table([one, two], as_traces=True).users.tolist() == ["03", "1", "2"]


@pytest.mark.filterwarnings("ignore:.*as programs write missing values")
def test_users_called_as_missing_values_are_users(tmp_path):
    rows = "".join(
        f"{user},2024-03-04T08:00:00Z,{lon},45.5\n" for user in ("NA", "null", "nan", "ana") for lon in (4.5, "NA")
    )
    path = written(tmp_path, f"user,time,lon,lat\n{rows}", "table.csv")
    with pytest.warns(UserWarning, match=r"dropped 4 records \(a missing or empty geometry"):
        assert read_table(path, errors="skip", as_traces=True).users.tolist() == ["NA", "ana", "nan", "null"]
    written(
        tmp_path,
        f"user,time,lon,lat\n{rows}".replace("ana,2024-03-04T08:00:00Z,4.5", "ana,2024-03-04T08:00:00Z,x"),
        "table.csv",
    )
    with pytest.warns(UserWarning, match=r"dropped 5 records \(a missing or empty geometry"):
        assert read_table(path, errors="skip", as_traces=True).users.tolist() == ["NA", "nan", "null"]


@pytest.mark.parametrize("word", ["NA", "NaN", "null", "None", "nan", "none"])
def test_users_called_as_missing_values_are_counted_once(word, tmp_path):
    time = "2024-03-04T0{}:00:00Z,4.84,45.75"
    lines = [f"{user},{time.format(hour)}" for hour in range(2) for user in ("ana", word)]
    more = [f"NULL,{time.format(4)}", f"Nadia,{time.format(5)}"]
    for name, rows in (("a.csv", lines), ("b.csv", more)):
        written(tmp_path, "".join(f"{line}\n" for line in (HEADER, *rows)), name)
    for source, users, records in ((tmp_path / "a.csv", "1 user", 2), (tmp_path, "2 users", 3)):
        for read in (read_table, pg.read_file):
            with pytest.warns(UserWarning, match="as programs write missing values") as caught:
                assert word in read(source, as_traces=True).users
            (warning,) = caught
            assert f"{users} ({records} records)" in str(warning.message)
    with warnings.catch_warnings(action="error"):
        read_table(tmp_path / "a.csv", user="file")


@pytest.mark.parametrize("errors", ["raise", "skip"])
@pytest.mark.parametrize("x", ['"652,123"', "652123", '"652,123"\nana,2024-03-04T08:00:01Z,"1,652,123"'])
def test_commas_of_thousands_are_not_decimal(x, errors, tmp_path):
    lines = [f'ana,2024-03-04T08:00:00Z,{one},"862,456"' for one in x.split("\nana,2024-03-04T08:00:01Z,")]
    path = written(tmp_path, "\n".join(["user,time,x,y", *lines, ""]), "table.csv")
    words = "may be decimal, or group thousands|holds something that is not a number"
    with pytest.raises(ValueError, match=words) as caught:
        read_table(path, crs="EPSG:2154", errors=errors)
    assert "652" not in str(caught.value)


@pytest.mark.parametrize(("x", "is_refused"), [("100,5", True), ("999,999", True), ("1000,0", False)])
def test_numbers_with_commas_below_1000_metres_may_be_thousands(x, is_refused, tmp_path):
    path = written(tmp_path, f"user;time;x;y\nana;2024-03-04T08:00:00Z;{x};6862456,25\n")
    if is_refused:
        with pytest.raises(ValueError, match="group thousands"):
            read_table(path, crs="EPSG:2154")
    else:
        assert read_table(path, crs="EPSG:2154").geometry.x[0] == 1000


def test_decimal_commas_of_metres_are_read(tmp_path):
    path = written(tmp_path, "user;time;x;y\nana;2024-03-04T08:00:00Z;652123,5;6862456,25\n", "table.csv")
    place = read_table(path, crs="EPSG:2154").geometry[0]
    assert (place.x, place.y) == (652123.5, 6862456.25)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.int64()])
def test_users_may_be_a_dictionary_with_indices_of_any_type(tmp_path, kind):
    """Polars writes Categorical with unsigned indices."""
    users = pa.DictionaryArray.from_arrays(pa.array([1, 0], kind), pa.array(["b", "a"]))
    pq.write_table(two_rows().set_column(0, "user", users), tmp_path / "x.parquet")
    assert pg.read_table(tmp_path / "x.parquet").user.tolist() == ["a", "b"]


def two_rows():
    times = pd.to_datetime(["2024-01-01T10:00Z", "2024-01-01T10:01Z"])
    return pa.table({"user": ["a", "a"], "time": times, "lat": [45.7, 45.8], "lon": [4.8, 4.8]})


@pytest.mark.parametrize("texts", [["2024-01-01T10:00Z", "2024-01-01T10:01Z"], ["1704103200", "1704103260"]])
@pytest.mark.filterwarnings("ignore:read_table took the numbers")
def test_times_may_be_a_view_of_text(tmp_path, texts):
    times = pa.array(texts).cast(pa.string_view())
    pq.write_table(two_rows().set_column(1, "time", times), tmp_path / "x.parquet")
    assert pg.read_table(tmp_path / "x.parquet").time.tolist() == two_rows()["time"].to_pandas().tolist()


def test_int96_times_are_utc_with_a_warning(tmp_path):
    pq.write_table(two_rows(), tmp_path / "x.parquet", use_deprecated_int96_timestamps=True)
    with pytest.warns(UserWarning, match=r"'time'.* int96.* UTC"):
        read = pg.read_table(tmp_path / "x.parquet")
    assert read.time.tolist() == two_rows()["time"].to_pandas().tolist()


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("text", ["", " ", "None", "-", "#N/A", "NA", "null"])
def test_a_coordinate_that_is_no_number_is_counted_with_and_without_quotes(tmp_path, quote, text):
    rows = [["a", "2024-01-01T10:00:00Z", text, text], ["a", "2024-01-01T10:01:00Z", "45.7", "4.8"]]
    lines = ["user,time,lat,lon", *(",".join(f"{quote}{value}{quote}" for value in row) for row in rows)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match=r"1 record of 2 cannot be used.*errors='skip'"):
        pg.read_table(tmp_path / "x.csv")
    with pytest.warns(UserWarning, match="1 record"):
        assert len(pg.read_table(tmp_path / "x.csv", errors="skip")) == 1


@pytest.mark.parametrize("read", [pg.read_table, pg.read_gpx, pg.read_file, pg.read_mdc])
def test_an_open_file_is_no_path(read):
    with pytest.raises(TypeError, match=r"must be a path.*BytesIO.*to a file"):
        read(io.BytesIO(b"user,time\n"))


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.uint32(), pa.uint64(), pa.float64()])
def test_numbers_of_any_type_are_times_and_others_are_missing(tmp_path, kind):
    times = pa.array([1_704_103_200, 0, 1_704_103_260], kind)
    rows = pa.table({"user": ["a"] * 3, "time": times, "lat": [45.7] * 3, "lon": [4.8] * 3})
    pq.write_table(rows, tmp_path / "x.parquet")
    with pytest.warns(UserWarning, match="1 record |seconds"):
        read = pg.read_table(tmp_path / "x.parquet", errors="skip")
    assert read.time.dt.strftime("%H:%M").tolist() == ["10:00", "10:01"]


@pytest.mark.parametrize("word", ["now", "today"])
def test_the_time_of_the_run_is_no_time(tmp_path, word):
    path = tmp_path / "a.csv"
    path.write_text(f"user,time,lon,lat\na,{word},1,1\n")
    with pytest.raises(ValueError, match="no time"):
        pg.read_table(path)
    path.write_text(f"user,time,lon,lat\na,{word},1,1\na,2020-01-01,1,1\n")
    with pytest.warns(UserWarning, match="dropped 1 record"):
        assert len(pg.read_table(path, errors="skip")) == 1


def test_users_of_a_header_alone_are_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,time,lon,lat\n")
    assert pg.read_table(path)["user"].dtype == "str"
