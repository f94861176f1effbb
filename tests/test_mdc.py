"""The MDC reader, on small files of both layouts and on files that are neither."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from geopandas.testing import assert_geodataframe_equal

from promesse_geo.io import mdc
from promesse_geo.io.mdc import read_mdc

HEADER = [
    *("userid", "time", "tz", "gps_time", "altitude", "longitude", "latitude", "speed", "heading"),
    *("horizontal_accuracy", "horizontal_dop", "vertical_accuracy", "vertical_dop", "speed_accuracy"),
    *("heading_accuracy", "time_since_gps_boot"),
]
# User, unix seconds, longitude, latitude.
RECORDS = [
    ("017", 1255109147, "6.56", "46.51"),
    ("042", 1255109150, "6.61", "46.52"),
    ("017", 1255109140, "6.57", "46.53"),
    ("017", 1255109147, "6.58", "46.54"),
]
IN_ORDER = [RECORDS[2], RECORDS[0], RECORDS[3], RECORDS[1]]


def challenge_line(user, second, longitude, latitude, *, rest=r"\N") -> str:
    return "\t".join(map(str, [user, second, -3600, second, rest, longitude, latitude, *[rest] * 8, "31.0"]))


def content_of(lines, *, header=HEADER, end="\n") -> bytes:
    return "".join(line + end for line in ["\t".join(header), *lines]).encode()


def write_challenge(folder: Path, records=RECORDS, *, name="gps.csv", end="\n", rest=r"\N") -> Path:
    folder.mkdir(exist_ok=True)
    lines = [challenge_line(*record, rest=rest) for record in records]
    (folder / name).write_bytes(content_of(lines, end=end))
    return folder


def write_campaign(folder: Path, records=RECORDS, *, end="\n", rest=r"\N") -> Path:
    """Write the tables; those of records hold other sensors too, and stand in another order."""
    folder.mkdir(exist_ok=True)
    gps, keys = [], []
    for i, (user, second, longitude, latitude) in enumerate(records):
        gps.append("\t".join(map(str, [50 - i, second, longitude, latitude, *[rest] * 8])))
        keys += [f"{50 - i}\t{user}\t{second}\t-3600\tgps", f"{90 - i}\t{user}\t{second}\t-3600\twlan"]
    (folder / "gps.csv").write_bytes("".join(line + end for line in gps).encode())
    (folder / "records.csv").write_bytes("".join(line + end for line in sorted(keys)).encode())
    return folder


LAYOUTS = pytest.mark.parametrize("write", [write_challenge, write_campaign], ids=["challenge", "campaign"])


def check_all(frame, expected=IN_ORDER) -> None:
    assert list(frame.columns) == ["user", "time", "geometry"]
    assert frame.crs == 4326
    assert str(frame["time"].dt.tz) == "UTC"
    assert frame["user"].tolist() == [user for user, *_ in expected]
    assert frame["time"].tolist() == [pd.Timestamp(second, unit="s", tz="UTC") for _, second, *_ in expected]
    places = np.column_stack([frame.geometry.x, frame.geometry.y])
    assert np.allclose(places, [[float(x), float(y)] for *_, x, y in expected], rtol=0, atol=1e-9)


class TestWhatIsRead:
    @LAYOUTS
    @pytest.mark.parametrize("rest", [r"\N", "", "3.5"], ids=["N", "nothing", "numbers"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
    def test_a_folder(self, tmp_path, write, end, rest):
        check_all(read_mdc(write(tmp_path / "mdc", end=end, rest=rest)))

    def test_files_in_folders_below_are_told(self, tmp_path):
        folder = write_challenge(tmp_path / "mdc")
        for name in ("more", ".kept"):
            write_challenge(folder / name, [("099", *RECORDS[0][1:])], name="GPS_99.CSV")
        with pytest.warns(UserWarning, match=r"Not read: 1 GPS file in subfolders"):
            check_all(read_mdc(folder))
        assert len(set(read_mdc([folder, folder / "more"])["user"])) > len(set(read_mdc(folder / "gps.csv")["user"]))

    @LAYOUTS
    def test_a_file_by_its_path_as_text(self, tmp_path, write):
        check_all(read_mdc(str(write(tmp_path / "mdc") / "gps.csv")))

    def test_both_tables(self, tmp_path):
        folder = write_campaign(tmp_path / "mdc")
        check_all(read_mdc([folder / "records.csv", folder / "gps.csv"]))

    @pytest.mark.parametrize("name", ["records.csv", "unique_records.csv"])
    def test_tables_in_two_folders(self, tmp_path, name):
        folder, other = write_campaign(tmp_path / "mdc"), tmp_path / "other"
        other.mkdir()
        (folder / "records.csv").rename(other / name)
        check_all(read_mdc([folder, other]))
        check_all(read_mdc([folder / "gps.csv", other / name]))

    def test_records_under_another_name(self, tmp_path):
        folder = write_campaign(tmp_path / "mdc")
        (folder / "records.csv").rename(folder / "unique_records.csv")
        check_all(read_mdc(folder))

    @pytest.mark.parametrize("names", [("017.csv", "042.csv"), ("gps-1.tsv", "GPS-2.TSV")])
    def test_a_file_a_user(self, tmp_path, names):
        folder = write_challenge(tmp_path, [RECORDS[i] for i in (0, 2, 3)], name=names[0])
        write_challenge(folder, RECORDS[1:2], name=names[1])
        if names[0].startswith("gps"):
            (folder / "wlan.csv").write_text("not\tread\n")
        check_all(read_mdc(folder))

    def test_a_user_in_several_files_in_the_order_of_the_files(self, tmp_path):
        first = [("017", 1255109147, "6.5", "46.5"), ("017", 1255109147, "6.4", "46.5")]
        folder = write_challenge(tmp_path, first, name="gps2.csv")
        write_challenge(folder, [("017", 1255109147, "6.6", "46.5")], name="gps1.csv")
        assert read_mdc(folder).geometry.x.round(6).tolist() == [6.6, 6.5, 6.4]

    @LAYOUTS
    def test_a_few_users(self, tmp_path, write):
        frame = read_mdc(write(tmp_path / "mdc"), users=iter(["042"]))
        check_all(frame, IN_ORDER[3:])

    @LAYOUTS
    def test_as_traces(self, tmp_path, write):
        traces = read_mdc(write(tmp_path / "mdc"), as_traces=True)
        assert traces.users.tolist() == ["017", "042"]
        assert_geodataframe_equal(traces.to_frame(), read_mdc(tmp_path / "mdc"))

    def test_columns_in_another_order(self, tmp_path):
        lines = [f"{x}\t\t{user}\t{y}\t{second}" for user, second, x, y in RECORDS]
        header = ["longitude", "tz", "userid", "latitude", "time"]
        (tmp_path / "a.csv").write_bytes(content_of(lines, header=header))
        check_all(read_mdc(tmp_path / "a.csv"))

    @LAYOUTS
    def test_byte_order_marks_and_a_missing_last_line_end(self, tmp_path, write):
        folder = write(tmp_path / "mdc")
        for file in folder.iterdir():
            mark = b"\xef\xbb\xbf" if file.name == "gps.csv" else b""
            file.write_bytes(mark + file.read_bytes().rstrip(b"\n"))
        with pytest.warns(UserWarning, match="No newline at end of file"):
            check_all(read_mdc(folder))

    def test_a_table_of_records_is_read_in_pieces(self, tmp_path, monkeypatch):
        folder = write_campaign(tmp_path / "mdc")
        for size in (1, 7, 40, 1000):
            monkeypatch.setattr(mdc, "_BLOCK", size)
            check_all(read_mdc(folder))

    def test_rows_of_records_may_repeat(self, tmp_path):
        folder = write_campaign(tmp_path / "mdc")
        (folder / "records.csv").write_bytes((folder / "records.csv").read_bytes() * 2)
        check_all(read_mdc(folder))

    def test_users_without_places_are_not_there(self, tmp_path):
        folder = write_campaign(tmp_path / "mdc")
        with (folder / "records.csv").open("a") as file:
            file.write("7\t099\t1255109147\t0\tgsm\n")
        assert read_mdc(folder, as_traces=True).users.tolist() == ["017", "042"]
        with pytest.raises(ValueError, match=r"1 of 1 user not found"):
            read_mdc(folder, users=["099"])


class TestWhatIsLeftOut:
    @LAYOUTS
    def test_what_is_missing_or_impossible_is_counted(self, tmp_path, write):
        bad = [
            ("017", 1255109147, r"\N", "46"),
            ("042", 1255109147, "6", ""),
            ("042", r"\N", "6", "46"),
            ("017", 1255109147, "6", "91"),
            ("017", 1255109147, "-181", "46"),
            ("017", 1255109147000, "6", "46"),
            ("017", -1, "6", "46"),
            (r"\N", 1255109147, "6", "46"),
        ]
        folder = write(tmp_path / "mdc", [*RECORDS, *bad])
        line = 5 + (write is write_challenge)
        words = (
            rf"^read_mdc dropped 1 record \(no user; first at line {line + 7} of '.*gps\.csv'\), "
            rf"3 records \(no time, longitude or latitude; first at line {line} of '.*'\), "
            rf"1 record \(latitude outside ±90°; first at line {line + 3} of '.*'\), "
            rf"1 record \(longitude outside ±180°; first at line {line + 4} of '.*'\), "
            rf"2 records \(time outside 1970 to 2255; first at line {line + 5} of '.*'\)\.$"
        )
        with pytest.warns(UserWarning, match=words) as caught:
            check_all(read_mdc(folder))
        assert len(caught) == 1
        with pytest.warns(UserWarning, match=rf"dropped 2 records \(.*first at line {line + 1} of '.*gps\.csv'\)\.$"):
            check_all(read_mdc(folder, users=["042"]), IN_ORDER[3:])

    def test_keys_without_a_user_are_counted(self, tmp_path):
        folder = write_campaign(tmp_path / "mdc")
        lines = (folder / "records.csv").read_text().splitlines(keepends=True)
        (folder / "records.csv").write_text("".join(line for line in lines if not line.startswith("48")))
        with pytest.warns(UserWarning, match=r"dropped 1 record \(no user; first at line 3 of '.*gps\.csv'\)\.$"):
            check_all(read_mdc(folder), IN_ORDER[1:])

    @pytest.mark.parametrize("missing", ["", r"\N"])
    def test_a_record_without_a_key_is_of_no_user(self, tmp_path, missing):
        folder = write_campaign(tmp_path / "mdc", [*RECORDS, ("042", 1255109160, "6.6", "46.5")])
        for name in ("gps.csv", "records.csv"):
            lines = (folder / name).read_text().splitlines(keepends=True)
            without_key = [missing + line[2:] if line.startswith("46\t") else line for line in lines]
            (folder / name).write_text("".join(without_key))
        with pytest.warns(UserWarning, match=r"dropped 1 record \(no user; first at line 5 of '.*gps\.csv'\)"):
            check_all(read_mdc(folder))

    @LAYOUTS
    def test_a_user_of_whom_nothing_is_left(self, tmp_path, write):
        folder = write(tmp_path / "mdc", [*RECORDS, ("099", 1255109147, "", "")])
        with pytest.warns(UserWarning, match=r"dropped 1 record \(no time, longitude or latitude"):
            assert read_mdc(folder, as_traces=True).users.tolist() == ["017", "042"]
        with pytest.raises(ValueError, match=r"1 of 1 user not found"):
            read_mdc(folder, users=["099"])


LINE = challenge_line(*RECORDS[0])
FIELDS = "16 fields separated by tabs, with numbers for keys, times and coordinates"
# Odd files of the challenge, and what is said of them after "is not in the format of MDC: ".
ODD = {
    "empty": (b"", "it is empty"),
    "blank": (b"\n\r\n", "it is empty"),
    "header alone": (content_of([]), "it has no record"),
    "header alone, cut": (content_of([])[:-1], "it has no record"),
    "cut in the header": (content_of([])[:40], "its header does not name 'longitude' and 'latitude' once"),
    "cut in a record": (content_of([LINE, LINE])[:-20], f"line 3 is not {FIELDS}"),
    "no column of users": (content_of([LINE], header=["id", *HEADER[1:]]), "its header does not name 'userid' once"),
    "two columns of times": (content_of([LINE], header=["time", *HEADER]), "its header does not name 'time' once"),
    "a header with commas": (
        content_of([LINE.replace("\t", ",")], header=[",".join(HEADER)]),
        "line 1 is not 12 fields",
    ),
    "a column too few": (content_of([LINE, "", LINE.replace("\t31.0", "")]), f"line 4 is not {FIELDS}"),
    "a column too many": (content_of([LINE, LINE + "\t1"]), f"line 3 is not {FIELDS}"),
    "a word for a number": (content_of([LINE, LINE.replace("46.51", "north")]), f"line 3 is not {FIELDS}"),
    "a decimal comma": (content_of([LINE.replace("46.51", "46,51")]), f"line 2 is not {FIELDS}"),
    "a date for a time": (content_of([LINE.replace("1255109147", "2009-10-09")]), f"line 2 is not {FIELDS}"),
    "no user anywhere": (content_of([LINE.replace("017", "")] * 2), "none of its 2 records has a user"),
    "UTF-16": (content_of([LINE]).decode().encode("utf-16"), "it is in UTF-16; save it as UTF-8"),
    "gzip": (b"\x1f\x8b\x08" + bytes(range(256)), r"it is compressed \(gzip\); decompress it"),
    "a zip": (b"PK\x03\x04" + bytes(range(256)), "it is a zip archive; read it with read_file"),
    "a dump with a column too few": (b"1\t1255109147\t6.5\t46.5\n", "line 1 is not 12 fields"),
    "a dump alone": (b"1\t1255109147\t6.5\t46.5" + b"\t" * 8 + b"\n", "it has no header, and records"),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_is_named_or_skipped(tmp_path, kind):
    content, reason = ODD[kind]
    folder = write_challenge(tmp_path, name="gps2.csv")
    (folder / "gps1.csv").write_bytes(content)
    with pytest.raises(ValueError, match=rf"gps1\.csv' is not in the format of MDC: {reason}") as caught:
        read_mdc(folder)
    assert not any(part in str(caught.value) for part in ("46.5", "6.5", "12551", "017'"))
    with pytest.warns(UserWarning, match=rf"^read_mdc dropped 1 file \(first: '.*gps1\.csv' is not .*{reason}"):
        check_all(read_mdc(folder, errors="skip"))
    with pytest.raises(ValueError, match=r"^None of 1 file could be read\. The first: .*gps1\.csv'"):
        read_mdc(folder / "gps1.csv", errors="skip")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"50\t017\t1255109147\t-3600\tgps\n\n49\t042\n", "line 3 is not 5 fields separated by tabs"),
        (b"50\t017\t1255109147\t-3600\tgps\nkey\t042\t1255109147\t-3600\tgps\n", "line 2 is not 5 fields"),
        ("50\t017\t1255109147\t-3600\tgps\n".encode("utf-16"), "it is in UTF-16"),
    ],
    ids=["cut", "words", "UTF-16"],
)
@pytest.mark.parametrize("block", [20, 1000])
def test_an_odd_table_of_records_is_named(tmp_path, monkeypatch, content, reason, block):
    folder = write_campaign(tmp_path / "mdc")
    (folder / "records.csv").write_bytes(content)
    if "UTF-16" not in reason:
        monkeypatch.setattr(mdc, "_BLOCK", block)
    with pytest.raises(ValueError, match=rf"records\.csv' is not in the format of MDC: {reason}"):
        read_mdc(folder)


class TestWhatIsWrong:
    @pytest.mark.parametrize("content", [b"", b"50\t042\t1255109147\t-3600\tgps\n"], ids=["empty", "contradicting"])
    @pytest.mark.parametrize("block", [20, 1000])
    def test_a_table_of_records_that_does_not_tell_the_user(self, tmp_path, monkeypatch, content, block):
        monkeypatch.setattr(mdc, "_BLOCK", block)
        folder = write_campaign(tmp_path / "mdc")
        records = folder / "records.csv"
        records.write_bytes(content + (records.read_bytes() if content else b""))
        with pytest.raises(ValueError, match=r"two users for one db_key|none of its 4 records has a user"):
            read_mdc(folder)

    def test_records_alone(self, tmp_path):
        folder = write_campaign(tmp_path / "mdc")
        (folder / "gps.csv").unlink()
        for source in (folder, folder / "records.csv"):
            with pytest.raises(FileNotFoundError, match=r"records\.csv' has no locations"):
                read_mdc(source)

    def test_nothing_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere' does not exist"):
            read_mdc(tmp_path / "nowhere")
        (tmp_path / "README").write_text("not read")
        with pytest.raises(FileNotFoundError, match=r"has no file of MDC"):
            read_mdc(tmp_path)

    def test_an_empty_source(self):
        with pytest.raises(ValueError, match=r"'source' parameter of read_mdc .* empty list"):
            read_mdc([])

    def test_a_file_twice(self, tmp_path):
        folder = write_challenge(tmp_path / "mdc")
        with pytest.raises(ValueError, match="would be read twice"):
            read_mdc([folder, folder / "gps.csv"])

    def test_a_file_that_cannot_be_opened(self, tmp_path):
        folder = write_challenge(tmp_path)
        (folder / "gps2.csv").mkdir()
        with pytest.raises(ValueError, match=r"gps2\.csv"):
            read_mdc(folder)
        with pytest.warns(UserWarning, match=r"dropped 1 file \(first: .*gps2\.csv"):
            check_all(read_mdc(folder, errors="skip"))


def test_both_layouts_in_a_folder_are_told(tmp_path):
    write_campaign(tmp_path)
    write_challenge(tmp_path, name="users.csv")
    words = r"has both layouts of MDC.*\('users\.csv'\).*\('gps\.csv'\)"
    with pytest.raises(ValueError, match=words):
        read_mdc(tmp_path)
    check_all(read_mdc([tmp_path / "gps.csv", tmp_path / "records.csv"]))
    check_all(read_mdc(tmp_path / "users.csv"))


def test_a_file_without_a_newline_at_its_end_is_read_with_a_warning(tmp_path):
    lines = [f"017\t1255109147\t6.6{i:05d}\t46.5{i:05d}\n" for i in range(120)]
    path = tmp_path / "gps.csv"
    path.write_text("userid\ttime\tlongitude\tlatitude\n" + "".join(lines)[:-1])
    with pytest.warns(UserWarning, match=r"No newline at end of file: .*gps\.csv'"):
        assert len(read_mdc(path)) == 120


def test_users_that_no_file_has_are_named_beside_a_file_that_is_skipped(tmp_path):
    write_challenge(tmp_path, name="gps1.csv")
    (tmp_path / "gps2.csv").write_text("damaged\n")
    with pytest.raises(ValueError, match="1 of 1 user not found"):
        read_mdc(tmp_path, users=["nobody"], errors="skip")
