"""read_table: files that are cut, damaged or no tables; nothing is lost silently, no error shows a value."""

import bz2
import gzip
import io
import json
import re
import sqlite3
import subprocess
import sys
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from tables import HEADER, LINE, LINES, TEXT, as_frame, assert_rows, parquet_bytes, refused, save, written

import promesse_geo as pg
from promesse_geo.io.table import read_table


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return packed.getvalue()


NO_HEADER = "No {} column was found: the first line names none of its {} as user, time, lon or lat"


JSON = "it holds JSON, but not as GeoJSON in UTF-8, unpacked"


FEATURE = {"type": "Feature", "properties": {"user": "zoé"}, "geometry": {"type": "Point", "coordinates": [4.8, 45.7]}}


FEATURES = json.dumps({"type": "FeatureCollection", "features": [FEATURE] * 3})


STRANGE = {
    "nothing": (b"", "is empty"),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)), "is an image"),
    "a workbook": (zipped(), "is a zip archive"),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "is an old Excel workbook"),
    "GPX": (b"<?xml version='1.0'?><gpx/>", "read_gpx"),
    "HTML": (b"<html><body>Not found</body></html>", "is XML (a web page), not a table"),
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
    "an array of objects": (json.dumps([{"user": "zoé", "lat": 45.7}] * 3), "JSON array of an unknown kind"),
    "an array of objects, packed": (gzip.compress(json.dumps([{"user": "zoé", "lat": 45.7}] * 3).encode()), JSON),
    "an array of arrays": (json.dumps([["zoé", 1709539200, "457"]] * 3), "JSON array of an unknown kind"),
    "GeoJSON in UTF-16": (FEATURES.encode("utf-16"), JSON),
    "GeoJSON packed": (gzip.compress(FEATURES.encode()), JSON),
    "a sequence without times": (f"\x1e{json.dumps(FEATURE)}\n" * 3, "No time column was found"),
    "GeoJSON in UTF-16 without a mark": (FEATURES.encode("utf-16-le"), JSON),
    "zeros in every second place": (bytes([1, 0, 2, 0]) * 999, "nor text in UTF-8 or UTF-16"),
    "prose": ("Dear Ford,\nthe ship is full of towels, and of tea.\n", NO_HEADER.format("lon", "2 columns")),
    "Cabspotting": ("45.75 4.84 0 1213084687\n", "first line holds values"),
    "names alone, cut": (HEADER, "separated by commas"),
    "Parquet of zeros": (b"PAR1" + bytes(400) + b"PAR1", "cut, damaged or not GeoParquet"),
    "the head of a GeoPackage": (b"SQLite format 3\0" + bytes(2_000), "cut or damaged"),
    "other JSON": ('{"user": "ana", "lon": 4.84}', "JSON, but not GeoJSON or another kind"),
    "users in Latin-1": (TEXT.replace("ana", "zoé").encode("latin-1"), "not text in UTF-8"),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_a_strange_file_is_named_with_the_reason(kind, tmp_path):
    content, words = STRANGE[kind]
    path = written(tmp_path, content)
    assert words in refused(path)


@pytest.mark.parametrize("kind", STRANGE)
def test_a_strange_file_is_skipped_and_counted(kind, tmp_path):
    written(tmp_path, STRANGE[kind][0], "strange.csv")
    written(tmp_path, TEXT, "table.csv")
    with pytest.warns(UserWarning, match=r"^read_table dropped 1 file \(first: .*strange\.csv") as said:
        assert_rows(read_table(tmp_path, errors="skip"))
    assert len(said) == 1


@pytest.mark.parametrize("text", [HEADER + "\n", f"{HEADER}\r\n"])
def test_only_a_header_is_a_table_without_records(text, tmp_path):
    frame = read_table(written(tmp_path, text))
    assert (len(frame), list(frame.columns)) == (0, ["user", "time", "geometry"])


@pytest.mark.parametrize("text", ["\n\n", "\ufeff\n", " \n \n"])
def test_an_empty_table_is_called_so(text, tmp_path):
    with pytest.raises(ValueError, match=r"table\.csv': it is empty\."):
        read_table(written(tmp_path, text))


@pytest.mark.parametrize("part", [0.03, 0.5, 0.9])
@pytest.mark.parametrize("ending", ["parquet", "gpkg", "geojson"])
def test_a_cut_file_is_an_error(ending, part, tmp_path):
    path = tmp_path / f"table.{ending}"
    save(as_frame(), path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
    assert "damaged" in refused(path)


@pytest.mark.parametrize("length", [30, 200])
def test_a_cut_archive_is_an_error_in_our_words(length, tmp_path):
    with tarfile.open(tmp_path / "whole.tar.gz", "w:gz") as archive:
        content = b"37.75134 -122.39488 0 1213084687\n" * 9_000
        member = tarfile.TarInfo("cabspottingdata/new_abboip.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    (tmp_path / "cut.tar.gz").write_bytes((tmp_path / "whole.tar.gz").read_bytes()[:length])
    with pytest.raises(ValueError, match=r"cut\.tar\.gz' is (neither an archive|cut)"):
        pg.read_file(tmp_path / "cut.tar.gz", as_traces=True)


SECRET = "45.7654321"


LOST = "a feature that is cut or damaged: {}, first in "


def features(count=5) -> list[str]:
    return [
        json.dumps(
            {
                "type": "Feature",
                "properties": {"user": "ana", "time": f"2024-03-04T08:00:{i:02d}Z"},
                "geometry": {"type": "Point", "coordinates": [4.5, 45.5]},
            }
        )
        for i in range(count)
    ]


def collection(members) -> str:
    return f'{{"type": "FeatureCollection", "features": [{", ".join(members)}]}}'


def geopackage(path, *, count=20_000):
    numbers = np.arange(count)
    times = pd.Timestamp("2024-03-04", tz="UTC") + pd.to_timedelta(numbers, unit="s")
    places = gpd.points_from_xy(4 + numbers / count, 45 + numbers / count)
    gpd.GeoDataFrame({"user": "ana", "time": times}, geometry=places, crs=4326).to_file(path)
    return path


WHOLE = {
    "a collection": collection(features()),
    "one feature a line": "\n".join(features()),
    "record separators": "".join(f"\x1e{one}\n" for one in features()),
    "empty lines between": "\n\n" + "\n\n".join(features()),
    "a user called as a member": collection(
        [one.replace("ana", '"Feature" "geometry"'.replace('"', '\\"')) for one in features()]
    ),
}


@pytest.mark.parametrize("name", ["table.geojson", "table.csv"])
@pytest.mark.parametrize("way", WHOLE)
def test_all_features_are_read(way, name, tmp_path):
    assert read_table(written(tmp_path, WHOLE[way], name), as_traces=True).records == 5


def test_a_feature_alone_is_one_record(tmp_path):
    assert read_table(written(tmp_path, features()[0]), as_traces=True).records == 1


LOSSES = {
    "lines, cut": ("\n".join(features())[:-30], 4, 1),
    "lines, one cut": ("\n".join([*features(3), features()[3][:-30], features()[4]]), 4, 1),
    "lines, two joined": ("\n".join(features()).replace("\n", "", 1), 4, 1),
    "record separators, cut": ("".join(f"\x1e{one}\n" for one in features())[:-30], 4, 1),
    "a member of another type": (collection(features()).replace('"type": "Feature"', '"type": "Featurf"', 2), 3, 2),
}


@pytest.mark.parametrize("way", LOSSES)
def test_a_feature_that_is_lost_is_counted(way, tmp_path):
    content, kept, lost = LOSSES[way]
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=rf"{lost} records? of 5 cannot be used .*{LOST.format(lost)}"):
        read_table(path)
    with pytest.warns(UserWarning, match=rf"dropped {lost} records? \(a feature that is cut or damaged") as said:
        assert read_table(path, as_traces=True, errors="skip").records == kept
    assert len(said) == 1


@pytest.mark.parametrize(
    "content",
    [
        "".join(features(2)),
        json.dumps(json.loads(features()[0]), indent=1) + "\n" + json.dumps(json.loads(features()[1]), indent=1),
        collection(features())[:-1],
        collection(features())[:200],
        collection(features()) + collection(features()),
    ],
    ids=["two on a line", "two over lines", "without its end", "cut", "two collections"],
)
def test_what_is_not_one_text_is_an_error(content, tmp_path):
    with pytest.raises(ValueError, match=r"not a single JSON text|damaged"):
        read_table(written(tmp_path, content))


def test_gdal_prints_nothing_of_a_file(tmp_path, run_fresh):
    broken = [
        features()[0].replace("[4.5, 45.5]", f'["{SECRET}"]'),
        features()[1].replace("coordinates", SECRET),
        features()[2].replace('"Point"', f'"{SECRET}"'),
    ]
    path = written(tmp_path, collection([*broken, *features()]))
    code = f"import promesse_geo as pg; print(pg.read_table({str(path)!r}, errors='skip', as_traces=True).records)"
    done = run_fresh(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["5"]
    assert SECRET not in done.stderr
    assert "GeoJSON" not in done.stderr
    assert "dropped 3 records" in done.stderr


@pytest.mark.parametrize("page", [300, 500])
def test_a_geopackage_with_a_damaged_page_is_an_error(page, tmp_path):
    content = bytearray(geopackage(tmp_path / "table.gpkg").read_bytes())
    content[page * 4096 : (page + 1) * 4096] = bytes(4096)
    path = written(tmp_path, bytes(content), "damaged.gpkg")
    with pytest.raises(ValueError, match=r"'.*damaged\.gpkg': it is a GeoPackage that is cut or damaged"):
        read_table(path)
    with pytest.warns(UserWarning, match=r"^read_table dropped 1 file \(first: .*damaged"):
        assert read_table(tmp_path, errors="skip", as_traces=True).records == 20_000


def test_a_cut_geopackage_is_an_error(tmp_path):
    content = geopackage(tmp_path / "table.gpkg").read_bytes()
    with pytest.raises(ValueError, match="it is a GeoPackage that is cut or damaged"):
        read_table(written(tmp_path, content[: len(content) * 2 // 3], "cut.gpkg"))


@pytest.mark.parametrize(("mode", "beside"), [("journal_mode=wal", "-wal"), ("cache_size=5", "-journal")])
def test_what_sqlite_left_beside_a_geopackage_is_taken_in_or_told(mode, beside, tmp_path):
    path = geopackage(tmp_path / "table.gpkg")
    code = (
        "import os, sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1])\n"
        f"database.execute('pragma {mode}')\n"
        "database.execute('drop trigger if exists rtree_table_geom_update6')\n"
        "database.execute('drop trigger if exists rtree_table_geom_update7')\n"
        "for name in ('ST_IsEmpty', 'ST_MinX', 'ST_MaxX', 'ST_MinY', 'ST_MaxY'):\n"
        "    database.create_function(name, 1, lambda geometry: 0)\n"
        "database.execute(\"update 'table' set user = 'ben'\")\n"
        f"{'database.commit()' if beside == '-wal' else ''}\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert Path(f"{path}{beside}").stat().st_size
    if beside == "-wal":
        assert read_table(path, as_traces=True).users.tolist() == ["ben"]
        return
    with pytest.raises(ValueError, match=r"a change of it is unfinished .*gpkg-journal"):
        read_table(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("select count(*) from 'table'").fetchone()  # takes the change back
    assert read_table(path, as_traces=True).users.tolist() == ["ana"]


def csv_lines(count=120, *, order="user,time,lon,lat", quote="") -> str:
    """A table without a newline at its end."""
    rows = [
        {"user": ("ana", "ben")[i % 2], "time": f"2024-03-04T08:{i // 60:02d}:{i % 60:02d}Z", "lon": 4840000 + i}
        for i in range(count)
    ]
    rows = [row | {"lon": f"4.{row['lon']}", "lat": f"45.{750000 + i}"} for i, row in enumerate(rows)]
    lines = [",".join(f"{quote}{row[name]}{quote}" for name in order.split(",")) for row in rows]
    return "\n".join([order, *lines])


ORDERS = ["user,time,lon,lat", "user,lon,lat,time"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("order", ORDERS)
def test_a_text_without_a_newline_at_its_end_is_read_with_a_warning(order, quote, encoding, tmp_path):
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path = written(tmp_path, mark + csv_lines(order=order, quote=quote).encode(encoding), "table.csv")
    with pytest.warns(UserWarning, match=r"^No newline at end of file: .*table\.csv' may be cut") as warned:
        assert read_table(path, as_traces=True).records == 120
    assert len(warned) == 1


def test_texts_without_a_newline_at_their_end_are_counted_in_one_warning(tmp_path):
    written(tmp_path, csv_lines()[:-1], "a.csv")
    written(tmp_path, csv_lines()[:-1], "b.csv")
    written(tmp_path, csv_lines() + "\n", "c.csv")
    with pytest.warns(UserWarning, match=r"a\.csv' and 1 other file may be cut") as warned:
        assert read_table(tmp_path, user="file", as_traces=True).records == 360
    assert len(warned) == 1


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_text_with_a_newline_at_its_end_is_read_without_a_warning(encoding, end, tmp_path):
    path = written(tmp_path, (csv_lines() + end).encode(encoding), "table.csv")
    assert read_table(path, as_traces=True).records == 120


def with_notes(*notes, order="time,lon,lat,user,note") -> str:
    """A table of as many lines as there are notes, which are users too where there is no column of notes."""
    named = order.endswith("note")
    rows = [f"2024-03-04T08:00:{i:02}Z,4.5,45.{i:03}{',ana' * named},{note}" for i, note in enumerate(notes)]
    return "\n".join([order, *rows, ""])


def test_a_line_break_within_quotes_is_no_cut(tmp_path):
    text = with_notes('"a, b, 1, 2, c\nd"', "", '"\n\n""e"" 5"', '5"', '"f"')
    for end in ("\n", "\r\n"):
        path = written(tmp_path, text.replace("\n", end), "table.csv")
        assert read_table(path, as_traces=True).records == 5
    path.write_bytes(gzip.compress(text.encode("utf-16")))
    assert read_table(path, as_traces=True).records == 5


@pytest.mark.parametrize("separator", ",\t")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("notes", "lost"), [(["ok", '"Cafe', "x", "y", '"Bar', "ok"], 3), (["ok", '"Cafe', "x", "y", 'Bar"', "ok"], 3)]
)
def test_lines_that_quotes_make_a_value_are_counted(notes, lost, encoding, separator, tmp_path):
    path = written(tmp_path, with_notes(*notes).replace(",", separator).encode(encoding), "table.csv")
    words = rf"part of a quoted value: {lost}, first in line 3 of '.*table\.csv'"
    with pytest.raises(ValueError, match=rf"{lost} records of {len(notes)} cannot be used .*{words}"):
        read_table(path)
    with pytest.warns(UserWarning, match=rf"{lost} records \(a line that became part of a quoted value"):
        assert read_table(path, errors="skip", as_traces=True).records == len(notes) - lost


@pytest.mark.parametrize("is_user_last", [True, False])
def test_users_that_hold_records_are_no_users(is_user_last, tmp_path):
    text = with_notes("ana", '"ana', "ana", 'ana"', "ana", order="time,lon,lat,user")
    if not is_user_last:
        text = re.sub(r"(?m)^(.+),(.+)$", r"\2,\1", text)
    path = written(tmp_path, text, "table.csv")
    with pytest.raises(ValueError, match=r"3 records of 5 .* no user: 1, first in row 1 of .*; a line that became"):
        read_table(path)
    with pytest.warns(UserWarning, match=r"dropped 1 record \(no user; .*\), 2 records \(a line that became part"):
        assert read_table(path, errors="skip", as_traces=True).users.tolist() == ["ana"]


def test_users_of_several_lines_are_users(tmp_path):
    text = f"{csv_lines(20, quote=chr(34))}\n".replace("ana", "an\na,1,2,3\n4").replace("ben", "\nben")
    assert read_table(written(tmp_path, text, "table.csv"), as_traces=True).users.tolist() == [
        "\nben",
        "an\na,1,2,3\n4",
    ]


@pytest.mark.parametrize("end", ['"ana\n', '"ana\r\n', '"ana\n\n', '"\n'])
def test_a_quote_in_the_last_line_makes_no_new_user(end, tmp_path):
    text = with_notes("ana", "ana", order="time,lon,lat,user") + "2024-03-04T08:00:09Z,4.5,45," + end
    path = written(tmp_path, text, "table.csv")
    with pytest.raises(ValueError, match=r"1 record of 3 cannot be used .*a quote that is never closed: 1, first"):
        read_table(path)
    with pytest.warns(UserWarning, match=r"1 record \(a quote that is never closed"):
        assert read_table(path, errors="skip", as_traces=True).users.tolist() == ["ana"]


@pytest.mark.parametrize("column", ["user", "note"])
@pytest.mark.parametrize("count", [3, 30, 30_000])
def test_quotes_that_are_never_closed_are_told(count, column, tmp_path):
    order = "time,lon,lat,user" + ",note" * (column == "note")
    text = with_notes("ana", '"ana', *["ana"] * count, order=order)
    path = written(tmp_path, text, "table.csv")
    with pytest.raises(ValueError, match=r"quotes|line break|cannot be read as values"):
        read_table(path)


@pytest.mark.parametrize("users", [[1, "1"], [[1], [2]], [{"name": 1}, {"name": 2}]])
def test_users_of_no_single_kind_are_not_taken_for_damage(users, tmp_path):
    content = collection(one.replace('"ana"', json.dumps(user)) for one, user in zip(features(2), users, strict=True))
    with pytest.raises(TypeError, match="the user column 'user' must hold text or integers, of one kind"):
        read_table(written(tmp_path, content))


def test_true_among_whole_numbers_is_one(tmp_path):
    content = collection(one.replace('"ana"', user) for one, user in zip(features(3), ("1", "true", "2"), strict=True))
    assert read_table(written(tmp_path, content), as_traces=True).users.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("line", "words"), [(f"{LINE},5", "a line holds 5 values"), (f'"{LINE}', "separated by commas")]
)
def test_a_line_that_does_not_fit_is_named_or_dropped(line, words, tmp_path):
    path = written(tmp_path, f"{TEXT}{line}\n")
    assert words in refused(path)
    with pytest.warns(UserWarning, match=r"1 record \(a line with too few or too many values; first at line 5 of"):
        assert_rows(read_table(path, errors="skip"))


@pytest.mark.parametrize("where", ["name", "value"])
def test_a_line_of_megabytes_is_named(tmp_path, where):
    long = "x" * 3_000_000
    header, row = ("user,time,lon,lat," + long, "ana") if where == "name" else ("user,time,lon,lat,note", long)
    path = written(tmp_path, f"{header}\n{row},2024-03-04T08:00:00Z,4.8,45.7,1\n" * 2)
    with pytest.raises(ValueError, match=r"table\.csv': a line is longer than 1 MiB") as caught:
        pg.read_table(path)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("above", ["", "# a title\n\n", "\n"])
@pytest.mark.parametrize(
    ("bad", "words"),
    [("cid,,4.8,45.7", "no time"), ("cid,2024-03-04T08:00:00Z,4.8,north", "not a number"), (",,,", "no time")],
)
def test_errors_name_the_line_of_a_text(above, bad, words, tmp_path):
    lines = f'{above}user,time,lon,lat\n"c\nid",2024-03-04T08:00:00Z,4.8,45.7\n\ncid,2024-03-04T08:01:00Z,4.8,45.7\n'
    path = tmp_path / "table.csv"
    path.write_text(f"{lines}{bad}\n")
    line = lines.count("\n") + 1
    with pytest.raises(ValueError, match=rf"{words}.*row 2\b.*line {line}\b"):
        read_table(path)
