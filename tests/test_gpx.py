"""The GPX reader, on a corpus of odd files, each with what comes of it."""

import gzip
import itertools
import re
import sys
import threading
import warnings
from types import SimpleNamespace
from xml.parsers import expat

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, examples
from hypothesis import given
from hypothesis import strategies as st
from naive_gpx import records_of

from promesse_geo.io import xml
from promesse_geo.io.gpx import read_gpx

SAMPLE = ROOT / "data" / "sample" / "gpx"
NEW = 'xmlns="http://www.topografix.com/GPX/1/1"'
OLD = 'xmlns="http://www.topografix.com/GPX/1/0"'
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def gpx(body, *, space=NEW, about='version="1.1" creator="us"', head=HEAD) -> str:
    return f"{head}<gpx {about} {space}>\n{body}</gpx>\n"


def point(second=0, *, lat="45.75", lon="4.84", time="2024-03-04T08:00:{:02}Z", more="") -> str:
    when = "" if time is None else f"<time>{time.format(second)}</time>"
    return f'<trkpt lat="{lat}" lon="{lon}">{more}{when}</trkpt>\n'


def track(*segments) -> str:
    return "<trk>" + "".join(f"<trkseg>\n{''.join(points)}</trkseg>" for points in segments) + "</trk>\n"


TWO = track([point(0), point(1)])
UNBOUND = "<extensions><gpxtpx:hr>99</gpxtpx:hr></extensions>"


def written(folder, content, name="ride.gpx"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def times_of(frame) -> list[str]:
    return [time.isoformat().removeprefix("2024-03-04T").removesuffix("+00:00") for time in frame["time"]]


# What is read whole, and the times that come out.
READ = {
    "two points": (gpx(TWO), ["08:00:00", "08:00:01"]),
    "several tracks and segments, some empty": (
        gpx("<trk/>" + track([point(0)], [], [point(1)]) + "<trk><trkseg/></trk>" + track([point(2)])),
        ["08:00:00", "08:00:01", "08:00:02"],
    ),
    "waypoints and routes beside": (
        gpx(
            '<wpt lat="1" lon="2"><time>2024-03-04T07:00:00Z</time></wpt>'
            '<rte><rtept lat="1" lon="2"><time>2024-03-04T07:00:00Z</time></rtept></rte>' + TWO
        ),
        ["08:00:00", "08:00:01"],
    ),
    "offsets": (
        gpx(track([point(time=f"2024-03-04T08:00:00{zone}") for zone in ("+01:00", "-05:30", "+00:00", "Z")])),
        ["07:00:00", "08:00:00", "08:00:00", "13:30:00"],
    ),
    "no zone": (gpx(track([point(time="2024-03-04T08:00:00")])), ["08:00:00"]),
    "fractions of two to nine digits": (
        gpx(track([point(time=f"2024-03-04T08:00:0{i}.{'250000000'[:i]}Z") for i in range(2, 10)])),
        [f"08:00:0{i}.250000" for i in range(2, 10)],
    ),
    "blanks about the time": (gpx(track([point(time="\n  2024-03-04T08:00:00Z\t")])), ["08:00:00"]),
    "a time in the extensions": (
        gpx(track([point(0, more="<extensions><time>1999-01-01T00:00:00Z</time></extensions>")])),
        ["08:00:00"],
    ),
    "times that repeat and step back": (
        gpx(track([point(1), point(0), point(1), point(0)])),
        ["08:00:00", "08:00:00", "08:00:01", "08:00:01"],
    ),
    "a byte-order mark": ("\ufeff" + gpx(TWO), ["08:00:00", "08:00:01"]),
    "an empty line first": ("\n\n" + gpx(TWO), ["08:00:00", "08:00:01"]),
    "no declaration": (gpx(TWO, head=""), ["08:00:00", "08:00:01"]),
    "no namespace": (gpx(TWO, space=""), ["08:00:00", "08:00:01"]),
    "no creator": (gpx(TWO, about='version="1.1"'), ["08:00:00", "08:00:01"]),
    "no version": (gpx(TWO, about=""), ["08:00:00", "08:00:01"]),
    "an unknown version": (gpx(TWO, about='version="7"'), ["08:00:00", "08:00:01"]),
    "an unbound prefix": (gpx(track([point(0, more=UNBOUND)])), ["08:00:00"]),
    "GPX 1.0": (gpx(track([point(0, more="<speed>3</speed>")]), space=OLD, about='version="1.0"'), ["08:00:00"]),
    "CRLF": (gpx(TWO).replace("\n", "\r\n"), ["08:00:00", "08:00:01"]),
    "one line": (gpx(TWO).replace("\n", " "), ["08:00:00", "08:00:01"]),
    "single quotes": (gpx(TWO).replace('"', "'"), ["08:00:00", "08:00:01"]),
    "UTF-16": (gpx(TWO).replace("UTF-8", "UTF-16").encode("utf-16"), ["08:00:00", "08:00:01"]),
    "UTF-16, big end first": (b"\xfe\xff" + gpx(TWO, head="").encode("utf-16-be"), ["08:00:00", "08:00:01"]),
    "Latin-1": (
        gpx(TWO).replace("UTF-8", "ISO-8859-1").replace("us", "Café").encode("latin-1"),
        ["08:00:00", "08:00:01"],
    ),
    "packed by gzip": (gzip.compress(gpx(TWO).encode()), ["08:00:00", "08:00:01"]),
    "points in comments": (gpx(f"<!-- {point(5)} -->" + TWO), ["08:00:00", "08:00:01"]),
    "odd offsets": (
        gpx(
            track([point(time=f"2024-03-04T08:00:00{zone}") for zone in ("+05:30", "+0545", "+01:07", "-03:59", "+01")])
        ),
        ["02:15:00", "02:30:00", "06:53:00", "07:00:00", "11:59:00"],
    ),
    "zones and none in one file": (
        gpx(track([point(time="2024-03-04T08:00:00+01:00"), point(time="2024-03-04T07:30:00")])),
        ["07:00:00", "07:30:00"],
    ),
    "small letters": (gpx(track([point(time="2024-03-04t08:00:00z")])), ["08:00:00"]),
    "nearly a minute": (gpx(track([point(time="2024-03-04T08:00:59.9999Z")])), ["08:00:59.999900"]),
    "more digits than count": (gpx(track([point(time=f"2024-03-04T08:00:00.5{'0' * 40}Z")])), ["08:00:00.500000"]),
    "the end of a minute and of a day": (
        gpx(
            track(
                [
                    point(time="2024-03-04T08:59:60Z"),
                    point(time="2024-03-04T08:59:60.5+01:00"),
                    point(time="2024-03-03T24:00:00Z"),
                    point(time="2024-03-03T24:00:00.000+01:00"),
                ]
            )
        ),
        ["2024-03-03T23:00:00", "00:00:00", "08:00:00.500000", "09:00:00"],
    ),
    "seconds left out": (gpx(track([point(time="2024-03-04T08:00Z")])), ["08:00:00"]),
    "CDATA, references, comments and instructions in the time": (
        gpx(track([point(time="2024-<![CDATA[03-04T]]><!-- 9 -->08:<?now 7?>00:&#48;0Z")])),
        ["08:00:00"],
    ),
    "comments and instructions anywhere": (
        gpx("<?a <trkpt?>" + TWO.replace("<trkseg>", "<!-- lat=\"45,7\" --><trkseg><!-- <trkpt lat='1,5'> -->"))
        + "<!-- </gpx> --><?end?>\n",
        ["08:00:00", "08:00:01"],
    ),
    "points and times of others in the extensions": (
        gpx(
            track(
                [
                    point(
                        more='<extensions><x:trkpt xmlns:x="x" lat="1,5" lon="2"><x:time>a</x:time></x:trkpt>'
                        '<trkpt xmlns="y" lat="1" lon="2"><time>1999-01-01T00:00:00Z</time></trkpt>'
                        '<trk><trkseg><trkpt lat="1" lon="2"/></trkseg></trk></extensions>'
                        '<time xmlns="z">1999-01-01T00:00:00Z</time><y:time xmlns:y="y">noon</y:time>'
                    )
                ]
            )
        ),
        ["08:00:00"],
    ),
    "attributes of others": (gpx(TWO.replace(" lat=", ' xmlns:x="x" x:lat="1" lat=')), ["08:00:00", "08:00:01"]),
    "a prefix before every name": (
        gpx(TWO, head="", space='xmlns:g="http://www.topografix.com/GPX/1/1"')
        .replace("<", "<g:")
        .replace("<g:/", "</g:"),
        ["08:00:00", "08:00:01"],
    ),
    "a prefix before every name, not declared": (
        gpx(TWO, head="", space="").replace("<", "<g:").replace("<g:/", "</g:"),
        ["08:00:00", "08:00:01"],
    ),
    "two names of one namespace": (
        gpx(TWO.replace("trkpt", "g:trkpt"), space=f'{NEW} xmlns:g="http://www.topografix.com/GPX/1/1"'),
        ["08:00:00", "08:00:01"],
    ),
    "a long comment": (gpx(f"<!-- {'x' * 2_000_000} -->" + TWO), ["08:00:00", "08:00:01"]),
    "comments of 90 kB between points": (
        gpx(track([point(0), f"<!-- {'x' * 90_000} -->", point(1), f"<!-- {'x' * 150_000} -->", point(2)])),
        ["08:00:00", "08:00:01", "08:00:02"],
    ),
    "UTF-16 that says UTF-8": (gpx(TWO).encode("utf-16"), ["08:00:00", "08:00:01"]),
    "Windows-1252": (
        gpx(TWO).replace("UTF-8", "windows-1252").replace("us", "5 €").encode("cp1252"),
        ["08:00:00", "08:00:01"],
    ),
    "before 1970": (gpx(track([point(time="1960-01-01T00:00:00Z")])), ["1960-01-01T00:00:00"]),
}


def later(time: str) -> str:
    return point(time=time)


STRAY = "in no segment of a track, or of another namespace than the file"

# What is read with a loss, and how it is said.
LOSSES = {
    "a point without a time": (
        track([point(0), point(time=None), point(1)]),
        "1 record (no time, or an invalid one; first at track point 2",
    ),
    "an empty time": (
        track([point(0), point(time=""), point(1)]),
        "1 record (no time, or an invalid one; first at track point 2",
    ),
    "times in words": (
        track([point(0), point(1), *[point(time="noon")] * 3]),
        "3 records (no time, or an invalid one; first at track point 3",
    ),
    "years beyond counting": (
        track([point(0), point(1), point(time="0024-03-04T08:00:00Z"), point(time="2300-01-01T00:00:00Z")]),
        "2 records (no time, or an invalid one; first at track point 3",
    ),
    "beyond the pole": (
        track([point(0), point(1), point(2, lat="95")]),
        "1 record (not on the globe; first at track point 3",
    ),
    "beyond 180°": (
        track([point(2, lon="181"), point(0), point(1)]),
        "1 record (not on the globe; first at track point 1",
    ),
    "NaN": (track([point(0), point(1), point(2, lat="NaN")]), "1 record (not on the globe; first at track point 3"),
    "no latitude": (
        track([point(0), '<trkpt lon="4.84"><time>2024-03-04T08:00:02Z</time></trkpt>', point(1)]),
        "1 record (no coordinates; first at track point 2",
    ),
    "no longitude": (
        track([point(0)], ['<trkpt lat="4.84"/>', point(1)]),
        "1 record (no coordinates; first at track point 2",
    ),
    "two times": (
        track([point(0), point(2, more="<time>2024-03-04T07:00:00Z</time>"), point(1)]),
        "1 record (no time, or an invalid one; first at track point 2",
    ),
    "days, hours and words of a clock": (
        track([point(0), point(1), *map(later, ("2024-03-04", "2024-03-04T08", "now", "NaT", "1709539200"))]),
        "5 records (no time, or an invalid one; first at track point 3",
    ),
    "days and times that are none": (
        track(
            [
                point(0),
                point(1),
                *map(later, ("2024-02-30T08:00:00Z", "2024-03-04T24:00:01Z", "2024-03-04T08:00:61Z")),
                *map(later, ("2024-03-04T08:00:00+25:00", "2024-03-04T08:00:00,5Z", "2024-03-04T08:60:00Z")),
            ]
        ),
        "6 records (no time, or an invalid one; first at track point 3",
    ),
    "a hostile time": (
        track([point(0), point(time="2024-03-04T08:00:00Z" * 100_000), point(1)]),
        "1 record (no time, or an invalid one; first at track point 2",
    ),
    "points outside segments": (f"{point(3)}<trk>{point(3)}</trk>\n" + TWO, f"2 records ({STRAY}; first at line 3"),
    "points of another namespace": (
        TWO
        + track([point(2)]).replace("<trk>", '<trk xmlns="">')
        + track([point(3)]).replace("<trkseg>", f"<trkseg {OLD}>")
        + track([point(4).replace("<trkpt", '<trkpt xmlns="x"')])
        + "<y:trk xmlns:y='y'><y:trkseg><y:trkpt lat='1' lon='2'/></y:trkseg></y:trk>"
        + "<extensions><trk><trkseg><trkpt lat='1' lon='2'/></trkseg></trk></extensions>",
        f"4 records ({STRAY}; first at line 8",
    ),
    "numbers beyond counting": (
        track([point(0), point(1, lat="1e999"), point(1, lon="9" * 100_000), point(1)]),
        "2 records (not on the globe; first at track point 2",
    ),
}

# What is no GPX with traces in it, and the reason given.
REFUSED = {
    "nothing": (b"", "is not GPX: it is empty"),
    "blanks": (b" \n\n", "is not GPX: it is empty"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is not GPX: it has no element <gpx>"),
    "KML": (b"<?xml version='1.0'?><kml><Document/></kml>", "is not GPX: it has no element <gpx>"),
    "a table": (b"user,time,lon,lat\n", "is not GPX: it has no element <gpx>"),
    "a tag before the head": (b"<a>" + gpx(TWO).encode(), "it has no element <gpx>"),
    "gpx inside another": (b"<a>" + gpx(TWO, head="").encode() + b"</a>", "it has no element <gpx>"),
    "two documents": (gpx(TWO) * 2, r"cut or damaged \(line 8: junk after document element\)"),
    "words behind the end": (gpx(TWO) + "and so on", r"cut or damaged \(line 8: junk after document element\)"),
    "zeros behind the end": (gpx(TWO).encode() + bytes(512), r"cut or damaged \(line 8: not well-formed"),
    "a document type": (
        "<!DOCTYPE gpx>" + gpx(TWO, head=""),
        r"declares a document type \(DOCTYPE\), and GPX has none",
    ),
    "a bomb of entities": (
        '<!DOCTYPE gpx [<!ENTITY a "aaaaaaaaaa">'
        + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in ("ab", "bc", "cd", "de", "ef", "fg", "gh", "hi", "ij"))
        + "]>"
        + gpx(TWO.replace("08:00", "&j;"), head=""),
        r"declares a document type",
    ),
    "a file from elsewhere": (
        '<!DOCTYPE gpx [<!ENTITY a SYSTEM "file:///etc/hostname">]>' + gpx(TWO.replace("<trk>", "<trk>&a;"), head=""),
        r"declares a document type",
    ),
    "an unknown entity": (gpx(TWO.replace("<trk>", "<trk>&nbsp;")), r"cut or damaged \(line 3: undefined entity\)"),
    "an unknown encoding": (gpx(TWO).replace("UTF-8", "fancy"), "is not GPX: unknown encoding: fancy"),
    "an encoding of several bytes": (gpx(TWO).replace("UTF-8", "gbk"), "is not GPX: multi-byte encodings are not"),
    "UTF-16, cut": (gpx(TWO).encode("utf-16")[:-41], r"cut or damaged \(line 6: "),
    "a comment without end": (gpx("<!-- " + TWO), r"cut or damaged \(line 3: "),
    "a hostile comment": (
        gpx(f"<!-- {'x' * 40_000_000} -->" + TWO),
        "line 3 begins a tag or comment of more than 16 MB",
    ),
    "points of another namespace": (gpx(TWO.replace("<trk>", '<trk xmlns="x">')), "2 points are outside of segments"),
    "points outside segments alone": (
        gpx(f"<trk>{point(0)}</trk>"),
        "no track points in segments .* 1 point is outside",
    ),
    "times and places apart": (
        gpx(track([point(0, lat="95"), point(time=None)])),
        "no track point with both a time and a location on the globe",
    ),
    "cut at the end": (gpx(TWO)[:-7], r"cut or damaged \(line 7: no element found\)"),
    "cut in a tag": (gpx(TWO)[:190], r"cut or damaged \(line 4: unclosed token\)"),
    "tags that do not match": (gpx(TWO.replace("</trkseg>", "")), r"cut or damaged \(line 6: mismatched tag\)"),
    "another encoding than it says": (gpx(TWO).replace("us", "Café").encode("latin-1"), r"\(line 2: not well-formed"),
    "cut gzip": (gzip.compress(gpx(TWO).encode())[:60], "compressed with gzip, and cut or damaged"),
    "no tracks": (gpx('<wpt lat="1" lon="2"/>'), "no track points in segments"),
    "nothing inside": (gpx(""), "has no track points"),
    "no times": (gpx(track([point(time=None)] * 3)), "has no times: none of its 3 track points has one"),
    "decimal commas": (
        gpx(track([point(0), point(1, lat="45,75")])),
        "track point 2 has a coordinate that is no number such as 12.5",
    ),
    "commas without quotes between": (
        gpx(track([point(0, lon="'4,84'").replace('lon="', "lon=").replace("'\"", "'")])),
        "track point 1 has a coordinate",
    ),
    "other digits and signs": (gpx(track([point(0), point(1, lat="1_0")])), "track point 2 has a coordinate"),
    "infinity": (gpx(track([point(0), point(1, lat="inf")])), "track point 2 has a coordinate"),
    "a decimal comma behind an attribute with a bracket": (
        gpx(track([point(0), point(1, lat="45,75").replace("<trkpt", '<trkpt a=">"')])),
        "track point 2 has a coordinate",
    ),
    "a word for a number": (gpx(track([point(0), point(1, lon="east")])), "track point 2 has a coordinate"),
    "an empty number": (gpx(track([point(0, lon="")])), "track point 1 has a coordinate that is no number"),
}


@pytest.mark.parametrize("kind", READ)
def test_odd_files_are_read(kind, tmp_path):
    content, times = READ[kind]
    frame = read_gpx(written(tmp_path, content))
    assert times_of(frame) == times
    assert [column for column in frame.columns if column != "segment"] == ["user", "time", "geometry"]
    assert set(frame["user"]) == {"ride"}
    assert (set(frame.geometry.x), set(frame.geometry.y)) == ({4.84}, {45.75})
    assert (frame.crs, str(frame["time"].dt.tz)) == ("EPSG:4326", "UTC")


@pytest.mark.parametrize("kind", LOSSES)
def test_what_is_left_out_is_counted_once(kind, tmp_path):
    body, words = LOSSES[kind]
    with pytest.warns(UserWarning, match=re.escape(f"read_gpx dropped {words}")) as said:
        frame = read_gpx(written(tmp_path, gpx(body)))
    assert times_of(frame) == ["08:00:00", "08:00:01"]
    assert len(said) == 1
    assert "ride.gpx" in str(said[0].message)


@pytest.mark.parametrize("kind", REFUSED)
def test_other_files_are_refused_with_the_reason(kind, tmp_path):
    content, words = REFUSED[kind]
    with pytest.raises(ValueError, match=words) as caught:
        read_gpx(written(tmp_path, content))
    assert "ride.gpx" in str(caught.value)
    assert not re.search(r"45\.75|4\.84", str(caught.value))


@pytest.mark.parametrize("kind", REFUSED)
def test_other_files_are_skipped_and_counted(kind, tmp_path):
    written(tmp_path, REFUSED[kind][0])
    written(tmp_path, gpx(TWO), "walk.gpx")
    with pytest.warns(UserWarning, match=r"^read_gpx dropped 1 file \(first: .*ride\.gpx") as said:
        assert set(read_gpx(tmp_path, errors="skip")["user"]) == {"walk"}
    assert len(said) == 1


def test_equal_times_stay_in_the_order_of_the_file(tmp_path):
    points = [point(1, lon="1"), point(0, lon="2"), point(1, lon="3"), point(0, lon="4")]
    assert read_gpx(written(tmp_path, gpx(track(points)))).geometry.x.tolist() == [2, 4, 1, 3]


def test_coordinates_keep_all_their_digits(tmp_path):
    points = [point(0, lat="+45.123456789", lon="-.000000001"), point(1, lat="1e-7", lon=" -179.999999999 ")]
    frame = read_gpx(written(tmp_path, gpx(track(points))))
    np.testing.assert_allclose(frame.geometry.x, [-0.000000001, -179.999999999], rtol=0, atol=1e-12)
    np.testing.assert_allclose(frame.geometry.y, [45.123456789, 1e-7], rtol=0, atol=1e-12)


def make_folders(folder):
    written(folder, gpx(TWO + track([point(2)])), "ana/monday.gpx")
    written(folder, gpx(TWO).replace("T08", "T09"), "ana/tuesday.GPX")
    written(folder, gzip.compress(gpx(TWO).encode()), "ben/sunday.gpx.gz")
    written(folder, b"not mine", "ben/README.txt")
    written(folder, b"not mine", "ben/.hidden.gpx")
    return folder


@pytest.mark.parametrize(
    ("user", "counts"),
    [
        ("file", {"monday": 3, "sunday": 2, "tuesday": 2}),
        ("folder", {"ana": 5, "ben": 2}),
        ("track", {"monday-1": 2, "monday-2": 1, "sunday-1": 2, "tuesday-1": 2}),
    ],
)
def test_the_user_is_the_file_the_folder_or_the_track(user, counts, tmp_path):
    frame = read_gpx(make_folders(tmp_path), user=user)
    assert frame.groupby("user").size().to_dict() == counts


@pytest.mark.parametrize(
    ("user", "users", "records"),
    [("file", ["monday"], 3), ("folder", ["ben"], 2), ("track", ["monday-2", "sunday-1"], 3)],
)
def test_some_users_are_read_alone(user, users, records, tmp_path):
    frame = read_gpx(make_folders(tmp_path), user=user, users=users)
    assert sorted(set(frame["user"])) == users
    assert len(frame) == records


@pytest.mark.parametrize(
    ("user", "users"), [("file", ["monday", "friday"]), ("track", ["monday-7"]), ("track", ["x-1"])]
)
def test_users_that_are_missing_are_counted(user, users, tmp_path):
    with pytest.raises(ValueError, match=r"1 of \d users? not found"):
        read_gpx(make_folders(tmp_path), user=user, users=users)


def test_files_of_unwanted_users_are_not_opened(tmp_path):
    written(make_folders(tmp_path), b"broken", "ana/broken.gpx")
    assert len(read_gpx(tmp_path, users=["sunday"])) == 2


def test_a_pattern_and_a_list_are_sources(tmp_path):
    make_folders(tmp_path)
    assert len(read_gpx(str(tmp_path / "*" / "monday.gpx"))) == 3
    assert len(read_gpx([tmp_path / "ben", tmp_path / "ana" / "monday.gpx"])) == 5


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("nowhere.gpx", FileNotFoundError, "does not exist"),
        ("nothing*.gpx", FileNotFoundError, "No file matches the pattern"),
        ("empty", FileNotFoundError, r"has no file that ends with \.gpx or \.gpx\.gz"),
    ],
)
def test_a_source_without_files_is_an_error(source, kind, words, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(kind, match=words):
        read_gpx(tmp_path / source)


@pytest.mark.parametrize("named", [{"source": []}, {"users": []}])
def test_nothing_to_read_is_an_error(named, tmp_path):
    with pytest.raises(ValueError, match="empty list"):
        read_gpx(**({"source": written(tmp_path, gpx(TWO))} | named))


def test_two_files_of_one_name_are_not_one_user(tmp_path):
    written(make_folders(tmp_path), gpx(TWO).replace("T08", "T09"), "ben/monday.gpx")
    with pytest.raises(ValueError, match=r"1 file has the name of another one.*user='folder'"):
        read_gpx(tmp_path)
    assert len(read_gpx(tmp_path, user="folder")) == 9


def test_two_folders_of_one_name_are_not_one_user(tmp_path):
    make_folders(tmp_path / "here")
    make_folders(tmp_path / "there")
    with pytest.raises(ValueError, match=r"2 folders have the name of another one, so that two users would become one"):
        read_gpx(tmp_path, user="folder")


def test_a_file_is_not_read_twice(tmp_path):
    make_folders(tmp_path)
    with pytest.raises(ValueError, match=r"1 file would be read twice"):
        read_gpx([tmp_path, tmp_path / "ana" / "monday.gpx"])


def test_wrong_parameters_are_refused(tmp_path):
    path = written(tmp_path, gpx(TWO))
    with pytest.raises(ValueError, match=r"'user' parameter of read_gpx must be one of 'file', 'folder', .*'track'"):
        read_gpx(path, user="name")


def long_content(points: int) -> bytes:
    """A track of the kind that a receiver writes, of about 90 bytes per point."""
    times = (f"2024-03-04T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}Z" for i in range(points))
    return gpx(track([point(time=time, more="<ele>170.5</ele>") for time in times])).encode()


def raises_where_cut(content: bytes, cuts, tmp_path) -> None:
    for cut in cuts:
        with pytest.raises(ValueError, match=r"ride\.gpx' is not GPX"):
            read_gpx(written(tmp_path, content[:cut]))


CHUNK = 1 << 16


@pytest.fixture
def long_file(monkeypatch) -> bytes:
    """A file of more than three chunks, which are smaller than usual."""
    monkeypatch.setattr(xml, "_CHUNK", CHUNK)
    content = long_content(2_400)
    assert len(content) > 3 * CHUNK
    return content


def test_a_long_file_is_an_error_wherever_it_is_cut(long_file, tmp_path):
    end = len(long_file) - len("\n")
    cuts = {*np.linspace(1, end - 1, 16, dtype=int).tolist(), *range(end - 20, end), CHUNK, CHUNK + 7, 2 * CHUNK}
    raises_where_cut(long_file, cuts, tmp_path)
    assert len(read_gpx(written(tmp_path, long_file[:end]), as_traces=True).times) == 2_400


def test_a_file_of_three_megabytes_is_an_error_where_it_is_cut(tmp_path):
    content = long_content(35_000)
    assert len(content) > 3_000_000
    end = len(content) - len("\n")
    raises_where_cut(content, (1 << 20, (1 << 20) + 7, 2 << 20, end - 1), tmp_path)
    assert len(read_gpx(written(tmp_path, content[:end]), as_traces=True).times) == 35_000


def test_long_files_that_are_cut_are_skipped_and_counted(long_file, tmp_path):
    for number in range(1, 10):
        written(tmp_path, long_file[: number * len(long_file) // 10], f"cut-{number}.gpx")
    written(tmp_path, gpx(TWO), "walk.gpx")
    with pytest.warns(UserWarning, match=r"^read_gpx dropped 9 files \(first: .*cut-1\.gpx.*cut or damaged") as said:
        assert read_gpx(tmp_path, errors="skip")["user"].tolist() == ["walk", "walk"]
    assert len(said) == 1


# Hostile files by their size, from 1 to 250.
HOSTILE = {
    "unfinished tags": lambda size: gpx("<trkpt " * (16 * size)),
    "unfinished tags with attributes": lambda size: gpx("<trkpt lat='1' " * (200 * size)),
    "deep nesting": lambda size: gpx("<trk>" * (300 * size)),
    "tags in an attribute": lambda size: gpx("<a b='" + "<" * (300 * size)),
    "begins of comments": lambda size: gpx("<!-" * (300 * size)),
    "a long number": lambda size: gpx(track([point(lat="1" * (5_000 * size) + ",")])),
    "points in no track": lambda size: gpx("<trkpt/>" * (300 * size)),
}


class CountingParser:
    """An expat parser that counts the bytes that it scans, and again those of a tag that is not complete."""

    scanned = 0

    def __init__(self, *arguments) -> None:
        self.__dict__.update(parser=expat.ParserCreate(*arguments), given=0)

    def __getattr__(self, name):
        return getattr(self.parser, name)

    def __setattr__(self, name, value) -> None:
        setattr(self.parser, name, value)

    def Parse(self, content, is_last=False):  # the name in expat
        unfinished = self.given - max(self.parser.CurrentByteIndex, 0)
        CountingParser.scanned += unfinished + len(content)
        self.__dict__["given"] += len(content)
        return self.parser.Parse(content, is_last)


def calls_to_refuse(path) -> int:
    """How many functions are called, of Python and of C, until a file is refused."""
    calls = itertools.count()
    count = lambda frame, event, argument: next(calls) if event.endswith("call") else None  # noqa: E731
    sys.setprofile(count)
    threading.setprofile(count)  # of the thread that reads
    try:
        with pytest.raises(ValueError, match=r"ride\.gpx"):
            read_gpx(path)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return next(calls)


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_take_work_in_proportion_to_their_size(kind, tmp_path, monkeypatch):
    few, half, all_calls = (calls_to_refuse(written(tmp_path, HOSTILE[kind](size))) for size in (1, 20, 39))
    assert all_calls - half <= half - few + 1_000
    content = HOSTILE[kind](250)
    monkeypatch.setattr(xml, "_CHUNK", xml._CHUNK // 4)
    monkeypatch.setattr(xml, "expat", SimpleNamespace(**vars(expat) | {"ParserCreate": CountingParser}))
    monkeypatch.setattr(CountingParser, "scanned", 0)
    with pytest.raises(ValueError, match=r"ride\.gpx"):
        read_gpx(written(tmp_path, content))
    assert 0 < CountingParser.scanned <= 4 * len(content)


def test_what_is_left_out_of_a_track_is_said_where_that_track_is_read(tmp_path):
    path = written(tmp_path, gpx(track([point(0)]) + track([point(1), point(time=None)]) + track([point(time=None)])))
    assert read_gpx(path, user="track", users=["ride-1"])["user"].tolist() == ["ride-1"]
    with pytest.warns(UserWarning, match=r"dropped 1 record \(no time.*first at track point 3"):
        read_gpx(path, user="track", users=["ride-2"])
    with pytest.raises(ValueError, match=r"1 of 1 user not found"):
        read_gpx(path, user="track", users=["ride-3"])
    with pytest.warns(UserWarning, match=r"dropped 2 records \(no time.*first at track point 3"):
        assert read_gpx(path, user="track")["user"].tolist() == ["ride-1", "ride-2"]


TOGETHER = gpx(track([point(0), point(4)]) + track([point(2), point(6)]))
IN_TURN = gpx(track([point(4), point(6)]) + track([point(0)], [point(4)]) + track([point(6), point(6)]))


def test_tracks_at_the_same_time_in_one_trace_are_said_once(tmp_path):
    written(tmp_path, IN_TURN, "a.gpx")
    for name in ("b.gpx", "c.gpx"):
        written(tmp_path, TOGETHER, name)
    with pytest.warns(UserWarning, match=r"^In 2 traces tracks overlap in time, .*b\.gpx'\)\. .*user='track'") as said:
        assert read_gpx(tmp_path).groupby("user").size().to_dict() == {"a": 6, "b": 4, "c": 4}
    assert len(said) == 1
    assert len(set(read_gpx(tmp_path, user="track")["user"])) == 7


def test_files_of_a_folder_at_the_same_time_are_said(tmp_path):
    written(tmp_path, gpx(track([point(0), point(4)])), "ana/phone.gpx")
    written(tmp_path, gpx(track([point(1), point(5)])), "ana/watch.gpx")
    with pytest.warns(UserWarning, match=r"^In 1 trace tracks overlap in time, .*ana'\)"):
        assert len(read_gpx(tmp_path, user="folder")) == 4
    assert len(read_gpx(tmp_path)) == 4


def test_a_long_track_overlaps_those_that_it_spans(tmp_path):
    body = track([point(0), point(9)]) + track([point(1), point(2)]) + track([point(3), point(4)])
    with pytest.warns(UserWarning, match=r"^In 1 trace tracks overlap"):
        read_gpx(written(tmp_path, gpx(body)))


CLOCKS = st.sampled_from(
    [
        *("08:00:00", "08:00:59.9999", "23:59:60", "24:00:00", "24:00:01", "08:00", "8:00:00", "00:00:00.123456789123"),
        *("08:00:61", "24:00:00.00", "08:60:00", "12:34:56.7", ""),
    ]
)
DAYS = st.sampled_from(["2024-03-04", "2024-02-29", "2023-02-29", "1960-12-31", "0024-03-04", "2300-01-01", "2024-3-4"])
ZONES = st.sampled_from(["Z", "z", "", "+01:00", "+0545", "-03:59", "+01:07", "+01", "+24:00", "+01:60", "UTC", " Z"])
BLANKS = st.sampled_from(["", " ", "\n\t", "<!-- 5 -->", "<?a b?>"])
TIMES = st.one_of(
    st.builds("{}{}{}{}{}{}".format, BLANKS, DAYS, st.sampled_from("Tt  _"), CLOCKS, ZONES, BLANKS),
    st.sampled_from(["", "now", "<![CDATA[2024-03-04T08:00:00Z]]>", "2024-03-04T08:00:0&#48;Z", "1709539200", "NaT"]),
)
DEGREES = st.sampled_from(["45.75", "+4.84", "-.5", "5.", "1e-3", " 7 ", "NaN", "95", "-181", "1e400", "\n8"])
NOISE = st.sampled_from(
    [
        "",
        "\n",
        "<!-- <trkpt lat='1,5'> -->",
        "<?trkpt?>",
        "<ele>1</ele>",
        "<extensions><time>2024-01-01T00:00:00Z</time><trkpt lat='1' lon='2'/></extensions>",
        "<x:time xmlns:x='x'>2024-01-01T00:00:00Z</x:time>",
        "<time xmlns='x'>2024-01-01T00:00:00Z</time>",
        "<trk xmlns='x'><trkseg><trkpt lat='1' lon='2'/></trkseg></trk>",
        "<![CDATA[<trkpt lat='1,5'>]]>",
        "<wpt lat='1' lon='2'><time>2024-01-01T00:00:00Z</time></wpt>",
        "<name>time</name>",
    ]
)


@st.composite
def points_of_any_kind(draw) -> str:
    names = draw(st.permutations(["lat", "lon"]).map(lambda both: both[: draw(st.sampled_from([2, 2, 2, 1, 0]))]))
    attributes = "".join(f" {name}='{draw(DEGREES)}'" for name in names)
    times = "".join(f"<time>{time}</time>{draw(NOISE)}" for time in draw(st.lists(TIMES, min_size=0, max_size=2)))
    return f"<trkpt{attributes}>{draw(NOISE)}{times}</trkpt>{draw(NOISE)}"


def within(tag: str, inner):
    return st.builds(
        "<{0}>{1}{2}</{0}>{3}".format, st.just(tag), NOISE, st.lists(inner, max_size=4).map("".join), NOISE
    )


@examples(200)
@given(
    body=st.lists(within("trk", within("trkseg", points_of_any_kind())), max_size=3).map("".join),
    space=st.sampled_from([NEW, OLD, ""]),
)
def test_records_are_those_of_a_tree(body, space, tmp_path_factory):
    content = gpx(body, space=space)
    path = written(tmp_path_factory.mktemp("gpx"), content)
    expected = records_of(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if not expected:
            with pytest.raises(ValueError, match="has no t"):
                read_gpx(path)
            return
        traces = read_gpx(path, user="track", as_traces=True)
    x, y = traces.coordinates()
    users = traces.users.to_numpy()[traces.trace_numbers]
    found = zip(users, traces.times.tolist(), x, y, strict=True)
    assert [(user, when) for user, when, *_ in found] == [(f"ride-{number}", when) for number, when, *_ in expected]
    np.testing.assert_allclose(x, [lon for _, _, lon, _ in expected], rtol=0, atol=1e-9)
    np.testing.assert_allclose(y, [lat for *_, lat in expected], rtol=0, atol=1e-9)


def test_where_nothing_can_be_read_skipping_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="None of 1 file could be read"):
        read_gpx(written(tmp_path, b""), errors="skip")


def test_the_sample_holds_the_oddities_of_real_files():
    with pytest.warns(
        UserWarning, match=r"dropped 1 record \(no time, or an invalid one; first at track point 5 of '.*watch\.gpx'\)"
    ):
        frame = read_gpx(SAMPLE)
    assert frame.groupby("user").size().to_dict() == {"logger": 12, "phone": 12, "watch": 19}
    assert frame["time"].between("2024-03-04", "2024-03-05").all()


def test_a_hundred_thousand_points_are_read_at_once(tmp_path):
    times = pd.date_range("2024-03-04", periods=100_000, freq="s").strftime("%Y-%m-%dT%H:%M:%SZ")
    points = [point(time=time) for time in times]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traces = read_gpx(written(tmp_path, gpx(track(points))), as_traces=True)
    assert traces.records == 100_000
    assert np.all(np.diff(traces.times) == 10**9)
