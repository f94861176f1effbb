"""The Geolife reader, on small files in the true format and on files that are not."""

import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from geopandas.testing import assert_geodataframe_equal

from promesse_geo.io import contents
from promesse_geo.io.geolife import read_geolife

HEADER = ["Geolife trajectory", "WGS 84", "Altitude is in Feet", "Reserved 3", "0,2,255,My Track,0,0,2,8421376", "0"]
LINES = {
    "000/Trajectory/20081023025304.plt": [
        "39.984702,116.318417,0,492,39744.1201851852,2008-10-23,02:53:04",
        "39.984683,116.31845,0,492,39744.1202546296,2008-10-23,02:53:10",
    ],
    "000/Trajectory/20081024020959.plt": ["40.008304,116.319876,0,-777,39745.0902662037,2008-10-24,02:09:59"],
    "001/Trajectory/20081023055305.plt": [
        "39.984094,-179.98,0,492,39744.2452430556,2008-10-23,05:53:05",
        "39.984198,179.98,0,492.5,39744.2452430556,2008-10-23,05:53:05",
    ],
}
RECORDS = [
    ("000", "2008-10-23 02:53:04", 39.984702, 116.318417),
    ("000", "2008-10-23 02:53:10", 39.984683, 116.31845),
    ("000", "2008-10-24 02:09:59", 40.008304, 116.319876),
    ("001", "2008-10-23 05:53:05", 39.984094, -179.98),
    ("001", "2008-10-23 05:53:05", 39.984198, 179.98),
]
RULE = "seven fields separated by commas: latitude, longitude, 0, altitude, days, date, time"
GOOD = LINES["000/Trajectory/20081023025304.plt"][0]


def content_of(lines, *, end="\r\n", header=HEADER) -> bytes:
    return "".join(line + end for line in [*header, *lines]).encode()


def write_folder(root: Path, *, end="\r\n", files=LINES) -> Path:
    for name, lines in files.items():
        file = root / "Data" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content_of(lines, end=end))
    (root / "Data" / "001" / "labels.txt").write_text("Start Time\tEnd Time\tTransportation Mode\r\n")
    return root


def write_zip(path: Path, *, files=LINES, top="Geolife Trajectories 1.3/Data/") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Geolife Trajectories 1.3/User Guide-1.3.pdf", b"%PDF")
        for name, lines in reversed(files.items()):  # the central directory is in no order
            archive.writestr(f"{top}{name}", content_of(lines))
        archive.writestr(f"{top}001/labels.txt", "Start Time\tEnd Time\tTransportation Mode\r\n")
        archive.writestr(f"__MACOSX/{top}000/Trajectory/._20081023025304.plt", b"\0\5\x16\7")
    return path


def zip_folder(root: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in root.rglob("*"):
            archive.write(file, file.relative_to(root))
    return path


def write_file(root: Path, content: bytes, *, user="000", name="a") -> Path:
    file = root / user / "Trajectory" / f"{name}.plt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def check_all(frame) -> None:
    """Everything of LINES, in order."""
    assert list(frame.columns) == ["user", "time", "geometry"]
    assert frame.crs == 4326
    assert str(frame["time"].dt.tz) == "UTC"
    x, y = frame.geometry.x, frame.geometry.y
    assert frame["user"].tolist() == [user for user, *_ in RECORDS]
    assert frame["time"].tolist() == [pd.Timestamp(time, tz="UTC") for _, time, *_ in RECORDS]
    assert np.allclose(np.column_stack([y, x]), [place for _, _, *place in RECORDS], rtol=0, atol=1e-9)


class TestWhatIsRead:
    @pytest.mark.parametrize("end", ["\r\n", "\n"], ids=["CRLF", "LF"])
    @pytest.mark.parametrize("inside", ["", "Data"])
    def test_the_folder_and_its_data(self, tmp_path, inside, end):
        check_all(read_geolife(write_folder(tmp_path, end=end) / inside))

    def test_the_folder_above(self, tmp_path):
        write_folder(tmp_path / "Geolife Trajectories 1.3")
        check_all(read_geolife(str(tmp_path)))

    def test_the_zip(self, tmp_path):
        check_all(read_geolife(write_zip(tmp_path / "Geolife Trajectories 1.3.zip")))

    @pytest.mark.parametrize("top", ["", "Data/", "Geolife/Data\\"])
    def test_a_zip_made_by_somebody_else(self, tmp_path, top):
        check_all(read_geolife(write_zip(tmp_path / "geolife", top=top)))

    @pytest.mark.parametrize("inside", ["000", "000/Trajectory"])
    def test_the_folder_of_one_user(self, tmp_path, inside):
        frame = read_geolife(write_folder(tmp_path) / "Data" / inside)
        assert frame["user"].tolist() == ["000"] * 3

    def test_the_folder_that_we_are_in(self, tmp_path, monkeypatch):
        monkeypatch.chdir(write_folder(tmp_path) / "Data" / "000")
        assert read_geolife(".")["user"].tolist() == ["000"] * 3
        monkeypatch.chdir("Trajectory")
        assert read_geolife("20081024020959.plt")["user"].tolist() == ["000"]

    def test_one_file(self, tmp_path):
        folder = write_folder(tmp_path)
        assert len(read_geolife(folder / "Data/000/Trajectory/20081023025304.plt")) == 2

    @pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
    def test_users_are_found_at_any_depth(self, tmp_path, packed):
        places = {
            "000": "000/Trajectory",
            "001": "000/trajectory/2008/10",
            "002": "Data/001/Trajectory",
            "003": "Data/002/TRAJECTORY",
            "004": "Data/003",
            "005": "copy/Data/ana/Trajectory",
        }
        for number, place in places.items():
            file = tmp_path / "g" / place / "20081023025304.plt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content_of([GOOD.replace("02:53:04", f"02:53:{int(number):02}")]))
        source = zip_folder(tmp_path / "g", tmp_path / "g.zip") if packed else tmp_path / "g"
        frame = read_geolife(source)
        assert frame["user"].tolist() == ["000", "000", "001", "002", "003", "ana"]
        assert frame["time"].dt.second.tolist() == [0, 1, 2, 3, 4, 5]
        assert read_geolife(source, users=["003"])["time"].dt.second.tolist() == [4]

    @pytest.mark.parametrize("users", [["001"], {"000", "001"}, ["000"]])
    def test_a_few_users(self, tmp_path, users):
        frame = read_geolife(write_folder(tmp_path), users=iter(users))
        assert sorted(set(frame["user"])) == sorted(users)
        assert_geodataframe_equal(frame, read_geolife(write_zip(tmp_path / "g.zip"), users=users))

    def test_as_traces(self, tmp_path):
        traces = read_geolife(write_folder(tmp_path), as_traces=True)
        assert traces.users.tolist() == ["000", "001"]
        assert traces.counts.tolist() == [3, 2]
        assert_geodataframe_equal(traces.to_frame(), read_geolife(tmp_path))

    def test_a_file_without_a_last_line_end_beside_others(self, tmp_path):
        folder = write_folder(tmp_path)
        for file in folder.rglob("*.plt"):
            file.write_bytes(file.read_bytes().rstrip())
        check_all(read_geolife(folder))

    def test_upper_case_endings_and_other_files(self, tmp_path):
        folder = write_folder(tmp_path)
        file = folder / "Data/000/Trajectory/20081023025304.plt"
        file.rename(file.with_suffix(".PLT"))
        (file.parent / "notes.txt").write_text("not read")
        (file.parent / "._20081023025304.plt").write_bytes(b"\0\5\x16\7")
        (folder / "Data" / "README").write_text("not read")
        check_all(read_geolife(folder))

    def test_a_byte_order_mark_and_empty_lines(self, tmp_path):
        content = b"\xef\xbb\xbf" + content_of([GOOD, "", GOOD, ""])
        assert len(read_geolife(write_file(tmp_path, content))) == 2

    def test_order_is_time_then_path_then_row(self, tmp_path):
        def line(latitude, time):
            return f"{latitude},116,0,0,0,2008-10-23,{time}"

        write_file(tmp_path, content_of([line(3, "10:00:00"), line(4, "09:00:00")]), name="b")
        write_file(tmp_path, content_of([line(1, "10:00:00"), line(2, "10:00:00"), line(1, "10:00:00")]), name="a")
        traces = read_geolife(tmp_path / "000", as_traces=True)
        assert traces.coordinates()[1].round().tolist() == [4, 1, 2, 1, 3]
        assert traces.positions.tolist() == [4, 0, 1, 2, 3]

    def test_one_content_under_two_users_is_read_twice(self, tmp_path):
        for user in ("000", "001"):
            write_file(tmp_path, content_of([GOOD]), user=user)
        assert read_geolife(tmp_path)["user"].tolist() == ["000", "001"]

    @pytest.mark.parametrize("how", ["together", "alone"])
    def test_many_files_of_a_user_together_or_alone(self, tmp_path, how):
        for i in range(123):
            lines = [f"39.{i:03d},116.3,0,0,0,2008-10-23,02:{i // 60:02d}:{i % 60:02d}"] * 2
            write_file(tmp_path, content_of(lines, end="\n"), name=f"{i:03d}")
        if how == "alone":
            for i in (7, 60):
                write_file(tmp_path, b"", name=f"{i:03d}x")
            with pytest.warns(
                UserWarning, match=r"^read_geolife dropped 2 files \(first: '.*007x\.plt' .*it is empty\)"
            ):
                frame = read_geolife(tmp_path, errors="skip")
        else:
            frame = read_geolife(tmp_path)
        assert np.allclose(frame.geometry.y, np.repeat(39 + np.arange(123) / 1000, 2))

    def test_a_file_of_several_megabytes(self, tmp_path):
        lines = [GOOD] * 40_000
        assert len(read_geolife(write_file(tmp_path, content_of(lines)), as_traces=True).times) == 40_000
        lines[39_000] = "39"
        with pytest.raises(ValueError, match=r"line 39,007 is not"):
            read_geolife(write_file(tmp_path, content_of(lines)))

    def test_a_few_fields_do_not_matter(self, tmp_path):
        file = write_file(tmp_path, content_of(["39,116,9,feet,,2008-10-23,02:53:04"]))
        assert len(read_geolife(file)) == 1


class TestWhatIsLeftOut:
    def test_places_and_times_that_cannot_be_are_counted(self, tmp_path):
        lines = [
            GOOD,
            "400.1667,116,0,0,0,2008-10-23,02:53:04",
            "39,181,0,0,0,2008-10-23,02:53:04",
            "nan,116,0,0,0,2008-10-23,02:53:04",
            "39,116,0,0,0,1899-12-30,00:00:00",
            GOOD,
        ]
        write_file(tmp_path, content_of([GOOD]), name="a")
        write_file(tmp_path, content_of(lines), name="b")
        words = (
            r"^read_geolife dropped 2 records \(latitude outside ±90°; first at line 8 of '.*b\.plt'\), "
            r"1 record \(longitude outside ±180°; first at line 9 of .*\), "
            r"1 record \(time outside 1970 to 2255; first at line 11 of .*\)\.$"
        )
        with pytest.warns(UserWarning, match=words) as caught:
            frame = read_geolife(tmp_path)
        assert len(frame) == 3
        assert len(caught) == 1
        assert "400" not in str(caught[0].message)

    def test_a_user_of_whom_nothing_is_left(self, tmp_path):
        write_file(tmp_path, content_of([GOOD]))
        write_file(tmp_path, content_of([GOOD.replace("39.98", "139.98")]), user="001")
        write_file(tmp_path, b"", user="002")
        with pytest.raises(ValueError, match=r"1 of 2 users not found"):
            read_geolife(tmp_path, users=["000", "001"])
        with pytest.warns(UserWarning, match="dropped 1 file"):
            assert read_geolife(tmp_path, users=["000", "002"], errors="skip")["user"].tolist() == ["000"]

    def test_empty_lines_count(self, tmp_path):
        file = write_file(tmp_path, content_of(["", "", GOOD, "", GOOD.replace("39.98", "139.98")]))
        with pytest.warns(UserWarning, match="first at line 11 of"):
            assert len(read_geolife(file)) == 1


# Odd files, and what is said of them after "is not in the format of Geolife: ".
ODD = {
    "empty": (b"", "it is empty"),
    "blank": (b"\r\n" * 9, "it is empty"),
    "cut in the header": (content_of([])[:50], "it ends within the six lines"),
    "cut after the header": (content_of([]), "it has no record below"),
    "cut in a record": (content_of([GOOD, GOOD])[:-30], f"line 8 is not {RULE}"),
    "cut in a time": (content_of([GOOD, GOOD])[:-3], f"line 8 is not {RULE}"),
    "five lines of header": (content_of([GOOD, GOOD], header=HEADER[1:]), "line 6, the last of the header"),
    "no header": (content_of([GOOD] * 9, header=[]), "line 6, the last of the header"),
    "seven lines of header": (content_of([GOOD], header=[*HEADER, "1"]), f"line 7 is not {RULE}"),
    "UTF-16": (content_of([GOOD]).decode().encode("utf-16"), "it is in UTF-16; save it as UTF-8"),
    "UTF-16, big endian": (b"\xfe\xff" + content_of([GOOD]).decode().encode("utf-16-be"), "it is in UTF-16"),
    "gzip": (b"\x1f\x8b\x08" + bytes(range(256)), r"it is compressed \(gzip\); decompress it"),
    "a zip": (b"PK\x03\x04" + bytes(range(256)), "it is a zip archive; read it with read_file"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "it ends within|line"),
    "a column too few": (content_of([GOOD, GOOD.replace(",0,", ",")]), f"line 8 is not {RULE}"),
    "a column too many": (content_of([GOOD, "", GOOD + ",0"]), f"line 9 is not {RULE}"),
    "semicolons": (content_of([GOOD.replace(",", ";")]), f"line 7 is not {RULE}"),
    "a word for a number": (content_of([GOOD, GOOD, GOOD.replace("39.984702", "north")]), f"line 9 is not {RULE}"),
    "no latitude": (content_of([GOOD.replace("39.984702", "")]), f"line 7 is not {RULE}"),
    "a time missing": (content_of([GOOD.replace("02:53:04", "")]), f"line 7 is not {RULE}"),
    "a date missing": (content_of([GOOD.replace("2008-10-23", "")]), f"line 7 is not {RULE}"),
    "a date that is none": (content_of([GOOD.replace("10-23", "02-30")]), f"line 7 is not {RULE}"),
    "a time that is none": (content_of([GOOD.replace("02:53", "24:53")]), f"line 7 is not {RULE}"),
    "a date written otherwise": (content_of([GOOD.replace("2008-10-23", "23/10/2008")]), f"line 7 is not {RULE}"),
    "a last line without its seconds": (content_of([GOOD] * 3)[:-5], "the file is cut"),
    "a last line without seconds": (content_of([GOOD] * 3)[:-4], "the file is cut"),
    "a last line with half of its seconds": (content_of([GOOD] * 3)[:-3], f"line 9 is not {RULE}"),
    "quotes": (content_of([GOOD.replace("39.984702", '"39.984702"')]), f"line 7 is not {RULE}"),
}


@pytest.mark.parametrize("company", [1, 3])
@pytest.mark.parametrize("kind", ODD)
def test_an_odd_file_is_named_or_skipped(tmp_path, kind, company):
    content, reason = ODD[kind]
    write_file(tmp_path, content, name="b")
    for name in "acd"[:company]:
        write_file(tmp_path, content_of([GOOD]), name=name)
    with pytest.raises(ValueError, match=rf"b\.plt' is not in the format of Geolife: ({reason})") as caught:
        read_geolife(tmp_path)
    assert not any(part in str(caught.value) for part in ("39.98", "116."))
    with pytest.warns(UserWarning, match=rf"^read_geolife dropped 1 file \(first: '.*b\.plt' is not .*({reason})"):
        assert len(read_geolife(tmp_path, errors="skip")) == company


class TestWhatIsWrong:
    def test_nothing_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nowhere' does not exist"):
            read_geolife(tmp_path / "nowhere")

    @pytest.mark.parametrize("name", ["a.plt", "more/a.plt", "Trajectory/more/a.plt"])
    @pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
    def test_a_file_of_an_unknown_user_is_told(self, tmp_path, name, packed):
        root = write_folder(tmp_path / "root")
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content_of([GOOD]))
        source = tmp_path / "g.zip" if packed else root
        if packed:
            zip_folder(root, source)
        words = rf"The user of '.*{name}' is unknown: its path does not end with <user>/Trajectory/<name>\.plt"
        with pytest.raises(ValueError, match=f"^{words}"):
            read_geolife(source)
        with pytest.warns(UserWarning, match=rf"^read_geolife dropped 1 file \(first: {words}\)\.$"):
            check_all(read_geolife(source, errors="skip"))
        with pytest.raises(ValueError, match=f"^{words}"):
            read_geolife(file)

    def test_a_folder_without_files_of_geolife(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"has no file of Geolife \(<user>/Trajectory/<name>\.plt\)"):
            read_geolife(tmp_path)

    def test_a_zip_without_files_of_geolife(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"g\.zip' has no file of Geolife"):
            read_geolife(write_zip(tmp_path / "g.zip", files={}))

    @pytest.mark.parametrize("content", [b"", b"hello\n", bytes(2000), b"\x1f\x8b\x08"])
    def test_something_else(self, tmp_path, content):
        (tmp_path / "geolife.zip").write_bytes(content)
        with pytest.raises(ValueError, match=r"geolife\.zip' is neither a folder nor a zip archive"):
            read_geolife(tmp_path / "geolife.zip")

    def test_no_cut_of_a_zip_loses_files_silently(self, tmp_path):
        path = write_zip(tmp_path / "g.zip")
        content = path.read_bytes()
        for end in range(4, len(content), 41):
            path.write_bytes(content[:end])
            with pytest.raises(ValueError, match=r"g\.zip' .*cut or damaged"):
                read_geolife(path)

    def test_a_zip_that_grows_beyond_measure_is_refused(self, tmp_path, monkeypatch):
        path = write_zip(tmp_path / "g.zip", files={"000/Trajectory/a.plt": [GOOD] * 30_000})
        assert read_geolife(path, as_traces=True).records == 30_000
        monkeypatch.setattr(contents, "_SMALL", 1 << 20)
        with pytest.raises(ValueError, match=r"g\.zip' would take more than .* GiB"):
            read_geolife(path)

    def test_a_damaged_member_is_named_or_skipped(self, tmp_path):
        path = write_zip(tmp_path / "g.zip")
        content = bytearray(path.read_bytes())
        content[content.index(b"000/Trajectory/20081023025304.plt") + 80] ^= 255
        path.write_bytes(content)
        words = r"g\.zip/.*000/Trajectory/20081023025304\.plt' is damaged"
        with pytest.raises(ValueError, match=words):
            read_geolife(path)
        with pytest.warns(UserWarning, match=rf"dropped 1 file \(first: .*{words}"):
            assert len(read_geolife(path, errors="skip")) == 3

    @pytest.mark.parametrize(
        ("offset", "value", "reason"), [(8, 1, "is encrypted"), (10, 9, "compressed in an unknown way")]
    )
    def test_a_member_that_cannot_be_unpacked_is_named(self, tmp_path, offset, value, reason):
        path = write_zip(tmp_path / "g.zip")
        content = bytearray(path.read_bytes())
        entry = content.rindex(b"PK\x01\x02", 0, content.rindex(b"000/Trajectory/20081024020959.plt"))
        struct.pack_into("<H", content, entry + offset, value)
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"000/Trajectory/20081024020959\.plt' .*{reason}"):
            read_geolife(path)
        with pytest.warns(UserWarning, match=r"dropped 1 file"):
            assert len(read_geolife(path, errors="skip")) == 4

    def test_a_user_in_two_folders_of_a_zip(self, tmp_path):
        twice = {"Data/" + name: lines for name, lines in LINES.items()} | {
            "Copy/" + name: LINES[name] for name in LINES
        }
        with pytest.raises(ValueError, match=r"Two folders in '.*g\.zip' are of the same user"):
            read_geolife(write_zip(tmp_path / "g.zip", files=twice, top=""))

    @pytest.mark.parametrize("inside", ["002", "002/Trajectory"])
    def test_a_folder_that_cannot_be_listed(self, tmp_path, lock, inside):
        folder = write_folder(tmp_path)
        write_file(folder / "Data", content_of([GOOD]), user="002")
        lock(folder / "Data" / inside)
        with pytest.raises(
            ValueError, match=rf"{inside}' cannot be read: Permission denied\.\nSkip files that cannot be read"
        ):
            read_geolife(tmp_path)
        with pytest.warns(UserWarning, match=rf"dropped 1 file \(first: '.*{inside}' cannot be read: Permission"):
            check_all(read_geolife(tmp_path, errors="skip"))

    def test_a_file_that_cannot_be_opened(self, tmp_path):
        folder = write_folder(tmp_path)
        (folder / "Data/000/Trajectory/20081023025305.plt").mkdir()
        with pytest.raises(ValueError, match=r"20081023025305\.plt' is a folder"):
            read_geolife(folder)
        with pytest.warns(UserWarning, match=r"dropped 1 file \(first: .*20081023025305\.plt"):
            check_all(read_geolife(folder, errors="skip"))

    def test_nothing_but_bad_files(self, tmp_path):
        file = write_file(tmp_path, b"")
        with pytest.raises(ValueError, match=r"^None of 1 file could be read\. The first: .*a\.plt' .*it is empty"):
            read_geolife(file, errors="skip")

    def test_a_bad_file_of_another_user_does_not_matter(self, tmp_path):
        folder = write_folder(tmp_path)
        write_file(folder / "Data", b"", user="001")
        assert len(read_geolife(folder, users=["000"])) == 3
        shutil.rmtree(folder / "Data" / "001" / "Trajectory")
        assert read_geolife(folder)["user"].tolist() == ["000"] * 3
