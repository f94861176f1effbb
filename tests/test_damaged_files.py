"""Files that are cut, damaged or named oddly: nothing is lost without a word, and no word shows what they hold."""

import gzip
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

from promesse_geo.io.table import read_table

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


def written(folder, content, name="table.geojson"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def geopackage(path, *, count=20_000):
    numbers = np.arange(count)
    times = pd.Timestamp("2024-03-04", tz="UTC") + pd.to_timedelta(numbers, unit="s")
    places = gpd.points_from_xy(4 + numbers / count, 45 + numbers / count)
    gpd.GeoDataFrame({"user": "ana", "time": times}, geometry=places, crs=4326).to_file(path)
    return path


# GeoJSON.

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


@pytest.mark.parametrize("users", [[1, "1"], [[1], [2]], [{"name": 1}, {"name": 2}]])
def test_users_of_no_single_kind_are_not_taken_for_damage(users, tmp_path):
    content = collection(one.replace('"ana"', json.dumps(user)) for one, user in zip(features(2), users, strict=True))
    with pytest.raises(TypeError, match="the user column 'user' must hold text or integers, of one kind"):
        read_table(written(tmp_path, content))


def test_true_among_whole_numbers_is_one(tmp_path):
    content = collection(one.replace('"ana"', user) for one, user in zip(features(3), ("1", "true", "2"), strict=True))
    assert read_table(written(tmp_path, content), as_traces=True).users.tolist() == [1, 2]


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
    with pytest.raises(ValueError, match=r"is not one JSON text|is cut, damaged or not GeoJSON"):
        read_table(written(tmp_path, content))


def test_gdal_prints_nothing_of_a_file(tmp_path):
    broken = [
        features()[0].replace("[4.5, 45.5]", f'["{SECRET}"]'),
        features()[1].replace("coordinates", SECRET),
        features()[2].replace('"Point"', f'"{SECRET}"'),
    ]
    path = written(tmp_path, collection([*broken, *features()]))
    code = f"import promesse_geo as pg; print(pg.read_table({str(path)!r}, errors='skip', as_traces=True).records)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5"]
    assert SECRET not in done.stderr
    assert "GeoJSON" not in done.stderr
    assert "dropped 3 records" in done.stderr


# GeoPackage.


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
    with pytest.raises(ValueError, match=r"a change of it is under way or was broken off, as '.*gpkg-journal' says"):
        read_table(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("select count(*) from 'table'").fetchone()  # takes the change back
    assert read_table(path, as_traces=True).users.tolist() == ["ana"]


# Names of files.

ODD = ["a!b", "a;b", "a\nb", "a b?&#", "a%20b", "a:b", "zip!c"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_names(name, tmp_path):
    written(tmp_path, WHOLE["a collection"], f"{name}.geojson")
    geopackage(tmp_path / "plain.gpkg", count=3).rename(tmp_path / f"{name}.gpkg")
    assert read_table(tmp_path, user="folder", as_traces=True).records == 8


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_not_utf_8_are_names_too(tmp_path):
    plain = geopackage(tmp_path / "plain.gpkg", count=3)
    gpd.read_file(plain).to_parquet(tmp_path / "plain.parquet")
    plain.rename(tmp_path / os.fsdecode(b"plain\xff.gpkg"))
    (tmp_path / "plain.parquet").rename(tmp_path / os.fsdecode(b"plain\xff.parquet"))
    written(tmp_path, "user,time,lon,lat\nana,2024-03-04T08:00:00Z,4.5,45.5\n", os.fsdecode(b"\xff.csv"))
    with pytest.raises(
        ValueError, match=r"udcff\.gpkg': GDAL reads no file whose name is not UTF-8\. Rename it"
    ) as caught:
        read_table(tmp_path)
    assert str(caught.value).isascii()
    with pytest.warns(UserWarning, match="dropped 1 file"):
        assert read_table(tmp_path, errors="skip", as_traces=True).records == 4


# The last line of a CSV.


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
        assert read_table(tmp_path, as_traces=True).records == 360
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
    ("notes", "lost"),
    [
        (["ok", '"Cafe', "x", "y", '"Bar', "ok"], 3),
        (["ok", '"Cafe', "x", "y", 'Bar"', "ok"], 3),
    ],
)
def test_lines_that_quotes_make_a_value_are_counted(notes, lost, encoding, separator, tmp_path):
    path = written(tmp_path, with_notes(*notes).replace(",", separator).encode(encoding), "table.csv")
    words = rf"part of a quoted value: {lost}, first in line 3 of '.*table\.csv'"
    with pytest.raises(ValueError, match=rf"{lost} records of {len(notes)} cannot be used .*{words}"):
        read_table(path)
    with pytest.warns(UserWarning, match=rf"{lost} records \(a line that became part of a quoted value"):
        assert read_table(path, errors="skip", as_traces=True).records == len(notes) - lost


def test_users_that_hold_records_are_no_users(tmp_path):
    path = written(tmp_path, with_notes("ana", '"ana', "ana", 'ana"', "ana", order="time,lon,lat,user"), "table.csv")
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


# Words for missing values, and commas.


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


@pytest.mark.parametrize("errors", ["raise", "skip"])
@pytest.mark.parametrize("x", ['"652,123"', "652123", '"652,123"\nana,2024-03-04T08:00:01Z,"1,652,123"'])
def test_commas_of_thousands_are_not_decimal(x, errors, tmp_path):
    lines = [f'ana,2024-03-04T08:00:00Z,{one},"862,456"' for one in x.split("\nana,2024-03-04T08:00:01Z,")]
    path = written(tmp_path, "\n".join(["user,time,x,y", *lines, ""]), "table.csv")
    words = "may be decimal, or group thousands|holds something that is not a number"
    with pytest.raises(ValueError, match=words) as caught:
        read_table(path, crs="EPSG:2154", errors=errors)
    assert "652" not in str(caught.value)


def test_decimal_commas_of_metres_are_read(tmp_path):
    path = written(tmp_path, "user;time;x;y\nana;2024-03-04T08:00:00Z;652123,5;6862456,25\n", "table.csv")
    place = read_table(path, crs="EPSG:2154").geometry[0]
    assert (place.x, place.y) == (652123.5, 6862456.25)


# What the system says.


def test_an_error_of_the_system_is_not_taken_for_damage(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(5, "Input/output error")

    path = written(tmp_path, csv_lines(), "table.csv")
    monkeypatch.setattr("pyarrow.csv.read_csv", fail)
    with pytest.raises(ValueError, match=r"table\.csv' cannot be read: Input/output error\."):
        read_table(path)
