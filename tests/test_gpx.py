"""The GPX reader, on a corpus of odd files, each with what comes of it."""

import gzip
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT

from promesse_geo.datasets.gpx import read_gpx

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
    "before 1970": (gpx(track([point(time="1960-01-01T00:00:00Z")])), ["1960-01-01T00:00:00"]),
}

# What is read with a loss, and how it is said.
LOSSES = {
    "a point without a time": (
        track([point(0), point(time=None), point(1)]),
        "1 record (no time, or one that cannot be read; first at track point 2",
    ),
    "an empty time": (
        track([point(0), point(time=""), point(1)]),
        "1 record (no time, or one that cannot be read; first at track point 2",
    ),
    "times in words": (
        track([point(0), point(1), *[point(time="noon")] * 3]),
        "3 records (no time, or one that cannot be read; first at track point 3",
    ),
    "years beyond counting": (
        track([point(0), point(1), point(time="0024-03-04T08:00:00Z"), point(time="2300-01-01T00:00:00Z")]),
        "2 records (no time, or one that cannot be read; first at track point 3",
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
        track([point(0), point(1), '<trkpt lon="4.84"><time>2024-03-04T08:00:02Z</time></trkpt>']),
        "1 record (no coordinates; first at",
    ),
}

# What is no GPX with traces in it, and the reason given.
REFUSED = {
    "nothing": (b"", "is not GPX: it is empty"),
    "blanks": (b" \n\n", "is not GPX: it is empty"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is not GPX: it has no element <gpx>"),
    "KML": (b"<?xml version='1.0'?><kml><Document/></kml>", "is not GPX: it has no element <gpx>"),
    "a table": (b"user,time,lon,lat\n", "is not GPX: it has no element <gpx>"),
    "a prefix before every name": (gpx(TWO).replace("<", "<g:").replace("<g:/", "</g:"), "it has no element <gpx>"),
    "cut at the end": (gpx(TWO)[:-7], r"cut or damaged \(line 7: no element found\)"),
    "cut in a tag": (gpx(TWO)[:190], r"cut or damaged \(line 4: unclosed token\)"),
    "tags that do not match": (gpx(TWO.replace("</trkseg>", "")), r"cut or damaged \(line 6: mismatched tag\)"),
    "another encoding than it says": (gpx(TWO).replace("us", "Café").encode("latin-1"), r"\(line 2: not well-formed"),
    "cut gzip": (gzip.compress(gpx(TWO).encode())[:60], "packed by gzip, and cut or damaged"),
    "no tracks": (gpx('<wpt lat="1" lon="2"/>'), "has no track points; waypoints and routes are not records"),
    "nothing inside": (gpx(""), "has no track points"),
    "no times": (gpx(track([point(time=None)] * 3)), "has no times: none of its 3 track points has one"),
    "decimal commas": (
        gpx(track([point(0), point(1, lat="45,75")])),
        "the track point in line 5 has a coordinate that is",
    ),
    "a word for a number": (gpx(track([point(0), point(1, lon="east")])), "the track point in line 5 has a coordinate"),
    "an empty number": (gpx(track([point(0, lon="")])), "the track point in line 4 has a coordinate that is no number"),
}


@pytest.mark.parametrize("kind", READ)
def test_odd_files_are_read(kind, tmp_path):
    content, times = READ[kind]
    frame = read_gpx(written(tmp_path, content))
    assert times_of(frame) == times
    assert list(frame.columns) == ["user", "time", "geometry"]
    assert set(frame["user"]) == {"ride"}
    assert (set(frame.geometry.x), set(frame.geometry.y)) == ({4.84}, {45.75})
    assert (frame.crs, str(frame["time"].dt.tz)) == ("EPSG:4326", "UTC")


@pytest.mark.parametrize("kind", LOSSES)
def test_what_is_left_out_is_counted_once(kind, tmp_path):
    body, words = LOSSES[kind]
    with pytest.warns(UserWarning, match=re.escape(f"read_gpx left out {words}")) as said:
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
    assert "45.75" not in str(caught.value)


@pytest.mark.parametrize("kind", REFUSED)
def test_other_files_are_skipped_and_counted(kind, tmp_path):
    written(tmp_path, REFUSED[kind][0])
    written(tmp_path, gpx(TWO), "walk.gpx")
    with pytest.warns(UserWarning, match=r"^read_gpx left out 1 file \(first: .*ride\.gpx") as said:
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
    written(folder, gpx(TWO), "ana/tuesday.GPX")
    written(folder, gzip.compress(gpx(TWO).encode()), "ben/sunday.gpx.gz")
    written(folder, b"not mine", "ben/notes.txt")
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
    with pytest.raises(FileNotFoundError, match=r"1 user asked for with 'users' is not among the files"):
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
        ("nowhere.gpx", FileNotFoundError, "There is no file or folder"),
        ("nothing*.gpx", FileNotFoundError, "There is no file that fits the pattern"),
        ("empty", FileNotFoundError, r"holds no file that ends with \.gpx or \.gpx\.gz"),
    ],
)
def test_a_source_without_files_is_an_error(source, kind, words, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(kind, match=words):
        read_gpx(tmp_path / source)


@pytest.mark.parametrize("named", [{"source": []}, {"users": []}])
def test_nothing_to_read_is_an_error(named, tmp_path):
    with pytest.raises(ValueError, match="Nothing is to be read"):
        read_gpx(**({"source": written(tmp_path, gpx(TWO))} | named))


def test_two_files_of_one_name_are_not_one_user(tmp_path):
    written(make_folders(tmp_path), gpx(TWO), "ben/monday.gpx")
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
    with pytest.raises(ValueError, match=r"'user' parameter of read_gpx must be one of 'file', 'folder', 'track'"):
        read_gpx(path, user="name")
    with pytest.raises(ValueError, match=r"'errors' parameter of read_gpx must be one of 'raise', 'skip'"):
        read_gpx(path, errors="drop")
    with pytest.raises(TypeError, match=r"'users' parameter of read_gpx must be a list of users"):
        read_gpx(path, users="ride")


def test_where_nothing_can_be_read_skipping_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="None of 1 file could be read"):
        read_gpx(written(tmp_path, b""), errors="skip")


def test_the_sample_holds_the_oddities_of_real_files():
    with pytest.warns(
        UserWarning,
        match=r"left out 1 record \(no time, or one that cannot be read; first at track point 5 of '.*watch\.gpx'\)",
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
